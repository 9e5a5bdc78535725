# What the packages' Makefiles have in common for work on them. A package that was copied alone is built without this file,
# and has no tests then. A Makefile sets before it includes this one:
#
#   NATIVES       what is built in C, and anew for `sanitized`; without it there is no such target
#   FIRST         Erlang that a rebar3 user may run first; it raises when something is wrong
#   UNSANITIZED   options of mix test that leave out what sanitizers cannot run

SANITIZE ?= -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

test-mix:
	mix deps.get
	mix format --check-formatted
	mix test --warnings-as-errors
	MIX_ENV=prod mix compile --warnings-as-errors

# As a rebar3 user has it. The dependency by path: rebar3 takes what lies in _checkouts as it is.
test-rebar3: _checkouts/tame
	rebar3 compile
	@said=$$(erl -noinput -pa $$(rebar3 path --ebin | sed 's/ / -pa /g') -eval '$(FIRST), halt().' </dev/null 2>&1) || \
	    { echo "$$said"; exit 1; }

_checkouts/tame:
	mkdir -p _checkouts
	ln -s ../../.. _checkouts/tame

ifneq ($(NATIVES),)
# The tests in the real VM, with natives built with the address and undefined-behaviour sanitizers; see the Makefile of
# tame for the settings. By a name of their own (SANITIZED), because with CFLAGS tame would be built anew with them too.
sanitized:
	rm -rf $(NATIVES)
	MIX_ENV=test SANITIZED="$(SANITIZE)" mix compile
	ASAN_OPTIONS=detect_leaks=0 ERL_FLAGS="+Mea min" SANITIZED="$(SANITIZE)" \
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	    mix test $(UNSANITIZED); \
	status=$$?; rm -rf $(NATIVES); exit $$status

.PHONY: sanitized
endif

.PHONY: test-mix test-rebar3
