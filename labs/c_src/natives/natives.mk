# Our own natives. Each has its core in plain C, tested without a VM, and a thin NIF or
# driver shell beside it.

NATIVES := $(HERE)natives/

TARGETS += $(OUT)/tame_echo_nif.so $(OUT)/tame_echo_isolated.so $(OUT)/tame_echo_drv.so

$(OUT)/tame_echo_isolated.so: $(NATIVES)echo/echo_isolated_nif.c
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

$(OUT)/tame_echo_nif.so: $(NATIVES)echo/echo_nif.c $(NATIVES)stateless.h
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

$(OUT)/tame_echo_drv.so: $(NATIVES)echo/echo_drv.c
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

# Job libraries, on tame.h. -O3, because the plain loops of their cores are to become vectors.
TAME_H := $(wildcard $(TAME)/c_include/*.h $(TAME)/c_include/tame/*.h)
TARGETS += $(OUT)/tame_echo.so

$(OUT)/tame_echo.so: $(NATIVES)echo/echo_job_nif.c $(TAME_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -I$(TAME)/c_include -o $@ $<

TARGETS += $(OUT)/tame_exor.so

$(OUT)/tame_exor.so: $(addprefix $(NATIVES)exor/,exor_nif.c exor.h exor_stream.h) $(TAME_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) -O3 $(SHARED) -I$(ERTS_INCLUDE) -I$(TAME)/c_include -o $@ $<

# Written by hand, without tame.h: what tame_exor is compared with.
TARGETS += $(OUT)/tame_exor_classic.so

$(OUT)/tame_exor_classic.so: $(NATIVES)exor/exor_classic_nif.c
	$(Q)mkdir -p $(@D)
	$(Q)$(C) -O3 $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

# Written by hand, without a job: what tame_spin is compared with.
TARGETS += $(OUT)/tame_thousand_cuts.so

$(OUT)/tame_thousand_cuts.so: $(NATIVES)spin/thousand_cuts_nif.c $(NATIVES)spin/spin.h $(TAME_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -I$(TAME)/c_include -o $@ $<

TARGETS += $(OUT)/tame_spin.so

$(OUT)/tame_spin.so: $(NATIVES)spin/spin_nif.c $(NATIVES)spin/spin.h $(TAME_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -I$(TAME)/c_include -o $@ $<

# The same work by a port driver, in three ways.
TARGETS += $(OUT)/tame_spin_drv.so

$(OUT)/tame_spin_drv.so: $(NATIVES)spin/spin_drv.c $(NATIVES)spin/spin.h $(TAME_H) $(wildcard $(TAME)/c_include/tame/drv/*.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -I$(TAME)/c_include -o $@ $<

# For the audit: looks into the emulator, and at the process that it runs in.
TARGETS += $(OUT)/tame_builtin.so $(OUT)/tame_audit_process.so

$(OUT)/tame_audit_process.so: $(NATIVES)audit/process_nif.c $(NATIVES)stateless.h
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

$(OUT)/tame_builtin.so: $(NATIVES)audit/builtin_nif.c $(NATIVES)stateless.h
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

# What the isolation lab lets crash, and the CPU time of an OS process, for pictures of who uses the cores.
TARGETS += $(OUT)/tame_crash.so $(OUT)/tame_cpu.so

$(OUT)/tame_crash.so: $(NATIVES)crash/crash_nif.c
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

$(OUT)/tame_cpu.so: $(NATIVES)cpu/cpu_nif.c $(NATIVES)stateless.h
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<

TESTS += $(TEST_BUILD)/spin_test

$(TEST_BUILD)/spin_test: $(TAME)/test/c/spin_test.c $(TAME)/test/c/check.h $(NATIVES)spin/spin.h $(TAME_H)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SANITIZE) -I$(NATIVES)spin -I$(TAME)/c_include -o $@ $<

# SIGINT in tasks.
TARGETS += $(OUT)/tame_sigint.so

$(OUT)/tame_sigint.so: $(NATIVES)signal/sigint_nif.c
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SHARED) -I$(ERTS_INCLUDE) -o $@ $<
