# The core: plain C, without the VM. Who includes this names CORE_BUILD, a directory for its objects, and CORE_FLAGS;
# CORE_OBJECTS are what to link. An instruction set is asked for in its own file alone. For another processor than
# x86-64, or a compiler that does not say which, those files are empty and keccak.c does not know of them.

CORE_DIR := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
CORE_NAMES := keccak keccak_portable keccak_avx2 keccak_avx512 sponge sp800_185 tree parallel_hash kt hash_many hasher
CORE_OBJECTS := $(CORE_NAMES:%=$(CORE_BUILD)/%.o)

ifneq ($(filter x86_64% amd64%,$(shell $(CC) -dumpmachine)),)
$(CORE_BUILD)/keccak.o: CORE_TARGET := -DKECCAK_X86_64
$(CORE_BUILD)/keccak_avx2.o: CORE_TARGET := -mavx2 -mbmi -mbmi2
$(CORE_BUILD)/keccak_avx512.o: CORE_TARGET := -mavx512f -mavx512vl
endif

# All headers: they are few.
$(CORE_OBJECTS): $(CORE_BUILD)/%.o: $(CORE_DIR)%.c $(wildcard $(CORE_DIR)*.h) $(CORE_DIR)core.mk
	@mkdir -p $(CORE_BUILD)
	$(Q)$(CC) -std=gnu11 -Wall -Wextra -Werror -fPIC $(CORE_FLAGS) $(CORE_TARGET) -c -o $@ $<
