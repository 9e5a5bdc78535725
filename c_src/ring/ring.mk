# The shared memory between the VM and a host: the VM's NIFs (nif_*.c), and the host's end of it
# (ring_host*.c), which tame_host links.

RING := $(HERE)ring/
RING_H := $(wildcard $(RING)*.h) $(OS_HEADERS) $(addprefix $(HERE)../c_include/tame/,clock.h cycles.h os.h)
RING_HOST := $(wildcard $(RING)ring_host*.c) $(OS_SOURCES)

TARGETS += $(OUT)/tame_ring_nif.so

# Optimised across its units when it is linked, where the compiler can: without, a call of 0.6 us
# takes some per cent more.
RING_LTO = $(eval RING_LTO := $(shell echo 'int ring;' | \
    $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -flto=auto -Werror -shared -fPIC -x c -o /dev/null - 2>/dev/null && \
    echo -flto=auto))$(RING_LTO)
RING_BUILD := $(BUILD)/ring/$(notdir $(abspath $(OUT)))/
RING_COMPILE = $(Q)mkdir -p $(@D) && $(C) $(RING_LTO) -fPIC -fvisibility=hidden -D_GNU_SOURCE -I$(ERTS_INCLUDE) \
               -I$(HERE)../c_include -c -o $@ $<
RING_OBJECTS := $(patsubst $(RING)%.c,$(RING_BUILD)%.o,$(RING)tame_ring_nif.c $(wildcard $(RING)nif_*.c)) \
                $(patsubst $(OS)%.c,$(RING_BUILD)os/%.o,$(OS_SOURCES))

$(RING_BUILD)%.o: $(RING)%.c $(RING_H) $(addprefix $(HERE)../c_include/tame/,charge.h slice.h watch.h)
	$(RING_COMPILE)

$(RING_BUILD)os/%.o: $(OS)%.c $(OS_HEADERS)
	$(RING_COMPILE)

$(OUT)/tame_ring_nif.so: $(RING_OBJECTS)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(RING_LTO) $(SHARED) -o $@.new $^ && mv $@.new $@

# For tests and benches: a host that only echoes, or lies.
RING_ECHO := $(HERE)../test/support/c/

ring-echo: $(TEST_BUILD)/tame_ring_echo

$(TEST_BUILD)/tame_ring_echo: $(RING_ECHO)ring_echo.c $(RING_ECHO)ring_echo_hostile.h $(RING_HOST) $(RING_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -D_GNU_SOURCE -pthread -I$(RING) -o $@ $< $(RING_HOST)

.PHONY: ring-echo

# Twice: address and undefined-behaviour sanitizers, and the thread sanitizer.
TESTS += $(TEST_BUILD)/ring_test $(TEST_BUILD)/ring_test_threads
RING_TEST := $(HERE)../test/c/ring_test.c $(RING_HOST)
RING_TEST_FLAGS := -D_GNU_SOURCE -I$(RING) -pthread

$(TEST_BUILD)/ring_test: $(RING_TEST) $(HERE)../test/c/check.h $(RING_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(SANITIZE) $(RING_TEST_FLAGS) -o $@ $(RING_TEST)

$(TEST_BUILD)/ring_test_threads: $(RING_TEST) $(HERE)../test/c/check.h $(RING_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -fsanitize=thread $(RING_TEST_FLAGS) -o $@ $(RING_TEST)

# A worker and its caller on one CPU, and on two.
TESTS += $(TEST_BUILD)/beside_test

$(TEST_BUILD)/beside_test: $(HERE)../test/c/beside_test.c $(HERE)../test/c/check.h $(RING_HOST) $(RING_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(SANITIZE) $(RING_TEST_FLAGS) -I$(HERE)../c_include -o $@ $< $(RING_HOST)

# What a reply is searched for.
TESTS += $(TEST_BUILD)/etf_search_test

$(TEST_BUILD)/etf_search_test: $(HERE)../test/c/etf_search_test.c $(HERE)../test/c/check.h $(wildcard $(RING)etf_*.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(SANITIZE) -I$(RING) -o $@ $<

# The model of waiting, under a clock of the test's own.
TESTS += $(TEST_BUILD)/waiting_test

$(TEST_BUILD)/waiting_test: $(HERE)../test/c/waiting_test.c $(HERE)../test/c/check.h $(RING)waiting.h
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(SANITIZE) -I$(RING) -o $@ $<
