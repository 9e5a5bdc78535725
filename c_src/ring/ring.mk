# The shared memory between the VM and a host: the VM's NIF, and the echo host that the tests and
# the bench put on the other side. tame_host links ring_host.c too.

RING := $(HERE)ring/
RING_H := $(wildcard $(RING)*.h)

PEERS := $(HERE)../labs/c_src/programs/
TARGETS += $(OUT)/tame_ring_nif.so $(OUT)/tame_ring_echo

$(OUT)/tame_ring_nif.so: $(RING)tame_ring_nif.c $(RING_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

$(OUT)/tame_ring_echo: $(RING)ring_echo.c $(RING)ring_host.c $(RING_H) $(PEERS)watch.h
	$(Q)mkdir -p $(@D)
	$(Q)$(C) -pthread -I$(PEERS) -o $@ $(RING)ring_echo.c $(RING)ring_host.c

# Twice: address and undefined-behaviour sanitizers, and the thread sanitizer.
TESTS += $(TEST_BUILD)/ring_test $(TEST_BUILD)/ring_test_threads
RING_TEST := $(HERE)../test/c/ring_test.c $(RING)ring_host.c
RING_TEST_FLAGS := -D_GNU_SOURCE -I$(RING) -pthread

$(TEST_BUILD)/ring_test: $(RING_TEST) $(HERE)../test/c/check.h $(RING_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SANITIZE) $(RING_TEST_FLAGS) -o $@ $(RING_TEST)

$(TEST_BUILD)/ring_test_threads: $(RING_TEST) $(HERE)../test/c/check.h $(RING_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) -fsanitize=thread $(RING_TEST_FLAGS) -o $@ $(RING_TEST)
