# The tests of tame.h and of our jobs that need no VM, under sanitizers.

C_TESTS := $(TAME)/test/c/
C_TEST = $(Q)mkdir -p $(@D) && $(C) $(SANITIZE) -isystem $(ERTS_INCLUDE) -I$(TAME)/c_include \
         -I$(NATIVES)exor -o $@ $<

TESTS += $(addprefix $(TEST_BUILD)/,slice_test charge_test exor_test include_test)

$(TEST_BUILD)/slice_test: $(C_TESTS)slice_test.c $(C_TESTS)check.h $(TAME_H)
	$(C_TEST)

$(TEST_BUILD)/charge_test: $(C_TESTS)charge_test.c $(C_TESTS)check.h $(TAME_H)
	$(C_TEST)

$(TEST_BUILD)/exor_test: $(C_TESTS)exor_test.c $(C_TESTS)check.h $(wildcard $(NATIVES)exor/*.h) $(TAME_H)
	$(C_TEST)

# A script, so that it runs as the others do.
$(TEST_BUILD)/include_test: $(C_TESTS)include_test.sh $(wildcard $(C_TESTS)include_*.[ch]) $(TAME_H)
	$(Q)mkdir -p $(@D)
	$(Q)printf '#!/bin/sh\nexec %s %s %s\n' $< $(ERTS_INCLUDE) $(@D)/include > $@
	$(Q)chmod +x $@
