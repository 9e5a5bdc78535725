# tame_host: runs a NIF library outside the VM. Everything but the API is hidden, so that no name of
# ours takes the place of one of the library's (-rdynamic exports what is visible).

HOST := $(HERE)host/
HOST_SOURCES := $(wildcard $(HOST)*.c $(HOST)*/*.c)
# The ring's end in the host, and what both need of the system.
HOST_RING := $(wildcard $(HERE)ring/ring_host*.c) $(OS_SOURCES)
HOST_HEADERS := $(wildcard $(HOST)*/*.h) $(HOST)enif_api.def $(wildcard $(HERE)ring/*.h) $(OS_HEADERS) \
                $(HERE)../c_include/tame/clock.h
# _GNU_SOURCE: dladdr. -Wmissing-prototypes: what another file may use is declared in
# a header, which tools/floors reads.
HOST_FLAGS := -D_GNU_SOURCE -fvisibility=hidden -Wmissing-prototypes -iquote $(HOST) -iquote $(HERE) \
              -isystem $(ERTS_INCLUDE) -pthread
HOST_LIBRARIES := -rdynamic -ldl -lm

TARGETS += $(OUT)/tame_host

# A folder for each OUT: what is built there may have CFLAGS of its own.
HOST_BUILD := $(BUILD)/host/$(notdir $(abspath $(OUT)))/
HOST_OBJECTS := $(patsubst $(HOST)%.c,$(HOST_BUILD)%.o,$(HOST_SOURCES))

# Optimised across its units, as the ring is (RING_LTO).
$(HOST_BUILD)%.o: $(HOST)%.c $(HOST_HEADERS)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(RING_LTO) $(HOST_FLAGS) -c -o $@ $<

$(OUT)/tame_host: $(HOST_OBJECTS) $(HOST_RING)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(RING_LTO) $(HOST_FLAGS) -o $@.new $^ $(HOST_LIBRARIES) && mv $@.new $@

# The same under sanitizers, for the tests: TAME_NATIVE_DIR names its folder.
HOST_SANITIZED := $(TEST_BUILD)/tame_host_sanitized
$(HOST_SANITIZED): $(HOST_SOURCES) $(HOST_RING) $(HOST_HEADERS)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -O1 $(SANITIZE) $(HOST_FLAGS) -o $@ $(HOST_SOURCES) $(HOST_RING) $(HOST_LIBRARIES)

host-sanitized: $(HOST_SANITIZED)

# The parsers under libFuzzer, for FUZZ_SECONDS each, from the corpus that is kept. What is found is
# put into the folder of the build; a finding that is corrected joins the corpus. The host's own
# pthread_create (thread_count.c) has another name there: clang's sanitizers have theirs in the program too,
# and take what a thread holds that they have not seen begin for a leak.
FUZZ_SECONDS ?= 20
FUZZ := $(HERE)../test/c/fuzz/
CLANG := $(shell command -v clang)
FUZZERS := $(addprefix $(TEST_BUILD)/,etf_fuzz elf_fuzz)

$(TEST_BUILD)/%_fuzz: $(FUZZ)%_fuzz.c $(HOST_SOURCES) $(HOST_RING) $(HOST_HEADERS)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined \
	    -fno-sanitize-recover=all -Dpthread_create=host_pthread_create $(HOST_FLAGS) -o $@ $< $(filter-out $(HOST)main.c,$(HOST_SOURCES)) $(HOST_RING) $(HOST_LIBRARIES)

# What is found lies in found_etf and found_elf.
$(TEST_BUILD)/%_fuzz.run: $(TEST_BUILD)/%_fuzz
	$(Q)mkdir -p $(TEST_BUILD)/found_$*; echo "== fuzz $*"
	$(Q)$< -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -verbosity=0 \
	    -artifact_prefix=$(TEST_BUILD)/found_ $(TEST_BUILD)/found_$* $(FUZZ)corpus/$*

ifeq ($(CLANG),)
fuzz:
	@echo "fuzz: skipped, there is no clang"
else
fuzz: $(FUZZERS)
	$(Q)$(MAKE) --no-print-directory -s -j2 $(addsuffix .run,$(FUZZERS))
endif

.PHONY: fuzz host-sanitized
