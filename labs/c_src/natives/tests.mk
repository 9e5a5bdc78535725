# The tests of tame.h and of our jobs that need no VM, under sanitizers.

C_TESTS := $(TAME)/test/c/
C_TEST = $(Q)mkdir -p $(@D) && $(C) $(SANITIZE) -isystem $(ERTS_INCLUDE) -I$(TAME)/c_include \
         -I$(NATIVES)exor -o $@ $<

TESTS += $(addprefix $(TEST_BUILD)/,slice_test cycles_test charge_test run_test place_test queue_test os_test output_test \
         exor_test permits_test permits_test_threads watch_test fd_test fd_test_threads jobs_test jobs_test_threads short_test driver_test driver_test_threads include_test)

$(TEST_BUILD)/slice_test: $(C_TESTS)slice_test.c $(C_TESTS)check.h $(TAME_H)
	$(C_TEST)

$(addprefix $(TEST_BUILD)/,cycles_test charge_test place_test queue_test os_test output_test): \
    $(TEST_BUILD)/%: $(C_TESTS)%.c $(C_TESTS)check.h $(TAME_H)
	$(C_TEST)

$(TEST_BUILD)/output_test: $(C_TESTS)fake_binaries.h

# It reads the drawing.
$(TEST_BUILD)/run_test: $(C_TESTS)run_test.c $(C_TESTS)check.h $(TAME)/docs/architecture.md $(TAME_H)
	$(Q)mkdir -p $(@D) && $(C) $(SANITIZE) -I$(TAME)/c_include -DDRAWING='"$(TAME)/docs/architecture.md"' -o $@ $<

# A whole library, without a VM. Twice: address and undefined-behaviour sanitizers, and the thread sanitizer.
JOBS_TEST := $(C_TESTS)jobs_test.c $(C_TESTS)fake_nif.h $(wildcard $(C_TESTS)fake_nif/*) $(C_TESTS)fake_threads.h \
             $(C_TESTS)check.h $(TAME_H)

$(TEST_BUILD)/jobs_test: $(JOBS_TEST)
	$(C_TEST) -pthread

$(TEST_BUILD)/jobs_test_threads: $(JOBS_TEST)
	$(Q)mkdir -p $(@D) && $(C) -O1 -g -fsanitize=thread -isystem $(ERTS_INCLUDE) -I$(TAME)/c_include -o $@ $< -pthread

$(TEST_BUILD)/short_test: $(C_TESTS)short_test.c $(JOBS_TEST)
	$(C_TEST) -pthread

FD_TEST := $(C_TESTS)fd_test.c $(C_TESTS)fake_select.h $(C_TESTS)fake_nif.h $(wildcard $(C_TESTS)fake_nif/*) \
           $(C_TESTS)fake_threads.h $(C_TESTS)check.h $(TAME_H)

$(TEST_BUILD)/fd_test: $(FD_TEST)
	$(C_TEST) -pthread

$(TEST_BUILD)/fd_test_threads: $(FD_TEST)
	$(Q)mkdir -p $(@D) && $(C) -O1 -g -fsanitize=thread -isystem $(ERTS_INCLUDE) -I$(TAME)/c_include -o $@ $< -pthread

# A whole driver, in the same way.
DRIVER_TEST := $(C_TESTS)driver_test.c $(C_TESTS)fake_driver.h $(C_TESTS)fake_threads.h $(C_TESTS)check.h $(TAME_H) \
               $(wildcard $(TAME)/c_include/tame/drv/*.h)

$(TEST_BUILD)/driver_test: $(DRIVER_TEST)
	$(C_TEST) -pthread

$(TEST_BUILD)/driver_test_threads: $(DRIVER_TEST)
	$(Q)mkdir -p $(@D) && $(C) -O1 -g -fsanitize=thread -isystem $(ERTS_INCLUDE) -I$(TAME)/c_include -o $@ $< -pthread

$(TEST_BUILD)/permits_test: $(C_TESTS)permits_test.c $(C_TESTS)check.h $(TAME_H)
	$(C_TEST) -pthread

$(TEST_BUILD)/permits_test_threads: $(C_TESTS)permits_test.c $(C_TESTS)check.h $(TAME_H)
	$(Q)mkdir -p $(@D) && $(C) -O1 -g -fsanitize=thread -I$(TAME)/c_include -o $@ $< -pthread

$(TEST_BUILD)/watch_test: $(C_TESTS)watch_test.c $(C_TESTS)fake_threads.h $(C_TESTS)check.h $(TAME_H)
	$(C_TEST) -pthread

$(TEST_BUILD)/exor_test: $(C_TESTS)exor_test.c $(C_TESTS)check.h $(wildcard $(NATIVES)exor/*.h) $(TAME_H)
	$(C_TEST)

# A script, so that it runs as the others do.
$(TEST_BUILD)/include_test: $(C_TESTS)include_test.sh $(wildcard $(C_TESTS)include_*.[ch] $(C_TESTS)include_*.[ch]pp) $(TAME_H)
	$(Q)mkdir -p $(@D)
	$(Q)printf '#!/bin/sh\nexec %s %s %s\n' $< $(ERTS_INCLUDE) $(@D)/include > $@
	$(Q)chmod +x $@
