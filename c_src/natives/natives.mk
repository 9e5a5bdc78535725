# Our own natives. Each has its core in plain C, tested without a VM, and a thin NIF or
# driver shell beside it.

NATIVES := $(HERE)natives/

TARGETS += $(OUT)/tame_echo_nif.so $(OUT)/tame_echo_drv.so

$(OUT)/tame_echo_nif.so: $(NATIVES)echo/echo_nif.c $(NATIVES)echo/queue.h
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

$(OUT)/tame_echo_drv.so: $(NATIVES)echo/echo_drv.c
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

TESTS += $(TEST_BUILD)/queue_test

$(TEST_BUILD)/queue_test: $(HERE)../test/c/queue_test.c $(HERE)../test/c/check.h $(NATIVES)echo/queue.h
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SANITIZE) -I$(NATIVES)echo -o $@ $< -lpthread
