# One door to every tool. The two commands a newcomer needs:
#
#   make report   install what is missing, build, run the labs, write report/index.html (cowboy: tools/cowboy)
#   make test     install what is missing, build, run every test of every language
#
# And for those who work on tame:
#
#   make build    natives, the report's page script, Erlang and Elixir; warnings are errors
#   make check    formatting, lines of Erlang (tools/lines), what may include what (tools/floors), the C for other
#                 systems (tools/cross)
#   make soak     30 minutes of isolated libraries, and 10 of jobs, under load while everything goes wrong; one alone:
#                 make soak-isolated, make soak-jobs
#   make nif-suite   OTP's own test suite of NIFs, from Debian's source package, in the VM and in a host
#   make bench    the published figures, each from its script in bench/
#   make matrix   build and test on newer OTPs too (tools/matrix), each in a Debian root of its own
#   make docs     the HTML documentation, into doc/
#   make clean    remove everything built
#
# Variables you may set: REPORT_FLAGS (options of mix tame.report), V=1 (show C commands).

# Elixir wants UTF-8 file names whatever the terminal says.
export LC_ALL := C.UTF-8
MIX := mix
.DEFAULT_GOAL := build

report: deps-report build
	@mkdir -p report
	@test -e libraries/http/priv/tame_http.so || echo "no section on HTTP in a NIF: run MIX_ENV=prod mix compile in libraries/http first, which needs cargo"
	@cd libraries/tcp && MIX_ENV=prod $(MIX) do deps.get, compile
	cd labs && TAME_COWBOY="$$(../tools/cowboy || :)" $(MIX) tame.report --output ../report/index.html $(REPORT_FLAGS)

# Two or three at a time, each prints when it is done. The suite waits where it measures: what only computes takes what
# it leaves of the processors and no more (sched(7), SCHED_IDLE).
BESIDE = $(MAKE) --no-print-directory --output-sync=recurse
test: deps-test build
	@$(BESIDE) -j2 test-c check test-aarch64 test-warnings
	@$(BESIDE) -j3 test-async test-alone computed
	@$(BESIDE) -j3 test-sanitized test-libraries test-examples test-sanitized-host test-fuzz

computed:
	@chrt --idle 0 $(MAKE) --no-print-directory -j1 test-rebar3 sanitized built-http

deps-report:
	@tools/install-missing report

deps-test:
	@tools/install-missing test

build: natives assets
	$(MIX) compile --warnings-as-errors
	cd labs && $(MIX) compile --warnings-as-errors

natives:
	@$(MAKE) --no-print-directory -s -C c_src
	@$(MAKE) --no-print-directory -s -C labs/c_src

# The page's script and style, bundled from npm packages; rebuilt when a source is newer.
ASSETS := labs/priv/report/page.js
assets: $(ASSETS)

labs/assets/node_modules/.package-lock.json: labs/assets/package.json labs/assets/package-lock.json
	cd labs/assets && npm ci --no-audit --no-fund --loglevel=error

$(ASSETS): labs/assets/node_modules/.package-lock.json labs/assets/page.js labs/assets/page.css labs/assets/build.mjs
	cd labs/assets && npm run --silent build

check:
	$(MIX) format --check-formatted
	@set -e; for library in libraries/*/; do (cd $$library && $(MIX) format --check-formatted); done
	clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h' '*.cpp' '*.hpp')
	tools/lines src labs libraries/http/src
	tools/floors c_include/tame c_src/os c_src/ring c_src/host
	tools/cross

test-c:
	@$(MAKE) --no-print-directory -s -C c_src test
	@$(MAKE) --no-print-directory -s -C labs/c_src test
	@$(MAKE) --no-print-directory -s -C bench/natives test

# The same on an emulated aarch64, by Debian's qemu-user and cross compiler. No sanitizer's library is needed: a trap
# ends the program where something is undefined.
AARCH64 := CC=aarch64-linux-gnu-gcc TEST_RUN=qemu-aarch64 TEST_SKIP="%_threads %include_test" \
           TEST_BUILD=$(CURDIR)/c_src/build/aarch64 \
           SANITIZE="-O1 -g -static -fsanitize=undefined -fsanitize-undefined-trap-on-error"
test-aarch64:
	@for part in c_src labs/c_src bench/natives; do \
	    $(MAKE) --no-print-directory -s -C $$part test $(AARCH64) || exit 1; done
	@$(MAKE) --no-print-directory -s -C libraries/sha3 test-c $(AARCH64) BUILD=build/aarch64 IMPLEMENTATIONS=portable

# No test: a warning in a test file is told in ten seconds, and not after all the others.
test-warnings:
	@cd test && $(MIX) test --warnings-as-errors --exclude test --exclude doctest

# Many VMs share few cores here: threads that wait awake would take them from each other.
CALM := +sbwt none +sbwtdcpu none +sbwtdio none

# A test that makes its VM a node ends the epmd that it began, which another VM's tests may have found meanwhile.
OWN_EPMD = ERL_EPMD_PORT=$$((20000 + $$$$ % 12000))

# Those of the suite that may run beside each other, and in another VM at the same time those that need one for
# themselves: with `async: false`.
SUITE = cd test && $(OWN_EPMD) ERL_FLAGS="$(CALM)" $(MIX) test --warnings-as-errors
test-async:
	$(SUITE) --only async:true

test-alone:
	$(SUITE) --exclude async:true

# The natives that live in the VM, built with sanitizers, in the real VM. With +Mea min the emulator
# takes its memory from malloc, where the address sanitizer sees it. Leaks are not looked for: the
# emulator itself keeps memory to its end. The compiler loads what a test calls, and libraries of others with it
# (OpenCL's), which this emulator does not survive; so it has run before.
SANITIZED := $(CURDIR)/c_src/build/sanitized
SANITIZED_FLAGS := CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
sanitized:
	@$(MAKE) --no-print-directory -s -C c_src host-sanitized
	@$(MAKE) --no-print-directory -s -C c_src ring-echo TEST_BUILD=$(SANITIZED) $(SANITIZED_FLAGS)
	@for part in c_src labs/c_src; do \
	    $(MAKE) --no-print-directory -s -C $$part OUT=$(SANITIZED) $(SANITIZED_FLAGS) || exit 1; done

test-sanitized: sanitized
	@cd test && MIX_ENV=test $(MIX) compile
	cd test && $(OWN_EPMD) TAME_NATIVE_DIR=$(SANITIZED) TAME_LABS_NATIVE_DIR=$(SANITIZED) \
	TAME_TEST_RING_ECHO=$(SANITIZED)/tame_ring_echo ASAN_OPTIONS=detect_leaks=0 ERL_FLAGS="+Mea min $(CALM)" \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	    $(MIX) test --only isolation:shared

test-sanitized-host: sanitized
	cd test && TAME_TEST_SANITIZED=1 $(MIX) test c_include/tame_hpp_test.exs
	cd test && $(OWN_EPMD) TAME_TEST_HOST=$(CURDIR)/c_src/build/test/tame_host_sanitized \
	ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_sigfpe=0:handle_abort=0:use_sigaltstack=0:allocator_may_return_null=1 \
	    $(MIX) test host

# Cargo takes its time.
built-http:
	@$(MAKE) --no-print-directory -s -C libraries/http built

# The parsers of the host on random input, for a bounded time (FUZZ_SECONDS each, default 20).
test-fuzz:
	@$(MAKE) --no-print-directory -s -C c_src fuzz

# Isolated libraries under load while hosts crash, are stopped and lie, and our own processes are killed; and jobs
# while callers die, cancel and meet deadlines, and the library is replaced and deleted. SOAK_SECONDS each (default
# 1800, and 600). In the environment of the tests, whose natives and helpers they use.
soak: soak-isolated soak-jobs

soak-isolated: natives
	cd test && MIX_ENV=test $(MIX) run ../soak/soak.exs

soak-jobs: natives
	cd test && MIX_ENV=test $(MIX) run ../soak/jobs.exs

# OTP's own suite of NIFs, isolated: docs/reference/nif_suite.md.
nif-suite: deps-test nif-suite-here

# Without installing anything.
nif-suite-here: natives
	folder=$$(tools/nif-suite) && cd test && TAME_NIF_SUITE=$$folder $(MIX) test nif_suite

# The package as a rebar3 user gets it: src/ alone, compiled by rebar3, checked by Dialyzer. Then with the labs' Erlang.
test-rebar3: test-dialyzer
	rebar3 as labs dialyzer

test-dialyzer:
	rebar3 compile
	rebar3 dialyzer

# Strangers' projects, each built and run from its own folder as its README says.
test-examples:
	@set -e; for example in examples/*/; do \
	    echo "== $$example"; $(MAKE) --no-print-directory -C $$example test; done

# Each library as a package of its own, which depends on tame as anybody's does.
test-libraries:
	@set -e; for library in libraries/*/; do \
	    echo "== $$library"; $(MAKE) --no-print-directory -C $$library test; done

# What `make matrix` runs in each root: all but what needs a browser, a JDK or the report's bundler, which
# do not differ by version.
test-version: natives test-c
	$(MIX) compile --warnings-as-errors
	cd labs && $(MIX) compile --warnings-as-errors
	@$(MAKE) --no-print-directory test-warnings
	cd test && $(MIX) test --warnings-as-errors --exclude browser
	@$(MAKE) --no-print-directory test-version-libraries
	@$(MAKE) --no-print-directory test-dialyzer

# The packages whose tests are quick, built and tested by Mix alone, but for what measures the machine; tools/matrix
# reads these lines.
test-version-libraries:
	@set -e; for library in sha3 tcp tty nng; do \
	    echo "== libraries/$$library"; \
	    (cd libraries/$$library && $(MIX) deps.get >/dev/null && \
	     $(MIX) test --warnings-as-errors --exclude timing --exclude memory); done

matrix: test
	@tools/matrix $$(tools/matrix --versions | sed 's/ .*//')

# make matrix-27: on that version alone.
matrix-%:
	@tools/matrix $*

# Comments of Erlang modules become -moduledoc and -doc, which OTP 27 knows; ex_doc is Debian's.
docs:
	@if command -v ex_doc >/dev/null; then $(MAKE) --no-print-directory docs-here; else tools/matrix --docs; fi

DOCS := tmp/docs
docs-here: natives
	cd labs && $(MIX) compile
	rm -rf $(DOCS) doc && mkdir -p $(DOCS)/ebin
	cp _build/mix/dev/lib/tame/ebin/* _build/mix/dev/lib/tame_labs/ebin/* $(DOCS)/ebin/
	tools/erldoc $(DOCS)/src src labs
	erlc +debug_info -I src/isolate -pa $(DOCS)/ebin -o $(DOCS)/ebin $(DOCS)/src/*.erl
	ex_doc Tame $$(erl -noinput -eval '{ok,[{_,_,A}]}=file:consult("src/tame.app.src"), \
	    io:put_chars(proplists:get_value(vsn, A)), halt().') $(DOCS)/ebin \
	    --config docs/ex_doc.exs --proglang erlang --warnings-as-errors --formatter html --output doc

bench: build
	@cd labs && for script in ../bench/*.exs; do echo "== $$script"; $(MIX) run $$script; done

clean:
	$(MAKE) -C c_src clean
	$(MAKE) -C labs/c_src clean
	rm -rf _build labs/priv/report report tmp labs/assets/node_modules
	for example in examples/*/ libraries/*/; do $(MAKE) -C $$example clean; done

.PHONY: report test deps-report deps-test build natives assets check nif-suite nif-suite-here test-c test-aarch64 computed built-http test-warnings test-async test-alone sanitized \
        test-sanitized test-sanitized-host test-fuzz soak soak-isolated soak-jobs test-rebar3 test-dialyzer test-examples test-libraries test-version test-version-libraries matrix docs docs-here bench clean
