# tame_host: runs a NIF library outside the VM. Everything but the API is hidden, so that no name of
# ours takes the place of one of the library's (-rdynamic exports what is visible).

HOST := $(HERE)host/
HOST_SOURCES := $(wildcard $(HOST)*.c)
HOST_HEADERS := $(wildcard $(HOST)*.h $(HERE)ring/*.h) $(HOST)enif_api.def
# clock, poll and thread functions of glibc; functions of the API that return what the header calls
# "must be used" are ours to define.
HOST_FLAGS := -D_GNU_SOURCE -fvisibility=hidden -iquote $(HOST) -isystem $(ERTS_INCLUDE) -pthread
HOST_LIBRARIES := -rdynamic -ldl -lm

TARGETS += $(OUT)/tame_host

HOST_BUILD := $(OUT)/.host/
HOST_OBJECTS := $(patsubst $(HOST)%.c,$(HOST_BUILD)%.o,$(HOST_SOURCES)) $(HOST_BUILD)ring_host.o

$(HOST_BUILD)%.o: $(HOST)%.c $(HOST_HEADERS)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(HOST_FLAGS) -c -o $@ $<

$(HOST_BUILD)ring_host.o: $(HERE)ring/ring_host.c $(HOST_HEADERS)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(HOST_FLAGS) -c -o $@ $<

$(OUT)/tame_host: $(HOST_OBJECTS)
	$(Q)$(C) $(HOST_FLAGS) -o $@ $^ $(HOST_LIBRARIES)
