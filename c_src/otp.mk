# What every Makefile of ours needs to know of Erlang/OTP and of the C compiler. Included behind HERE, the folder of
# the Makefile that includes it.
#
# Variables you may set: CC, CPPFLAGS, CFLAGS, LDFLAGS, ERL (the erl of the OTP to build for), V=1 (show the commands).

ERL ?= erl

# One start of the VM answers all: ERTS version, its include folder, erl_interface, Jinterface. It is spared where the
# caller says what the runtime needs, ERTS_VERSION and ERTS_INCLUDE (build.sh).
ifndef ERTS_INCLUDE
OTP := $(shell $(ERL) -noinput -eval ' \
    Lib = fun(App) -> case code:lib_dir(App) of {error, _} -> "-"; Dir -> Dir end end, \
    io:format("~s ~s ~s ~s", [erlang:system_info(version), code:root_dir(), \
                              Lib(erl_interface), Lib(jinterface)]), halt().')
ERTS_VERSION := $(word 1,$(OTP))
ERTS_INCLUDE := $(word 2,$(OTP))/erts-$(ERTS_VERSION)/include
EI_INCLUDE := $(word 3,$(OTP))/include
EI_LIB := $(word 3,$(OTP))/lib
JINTERFACE_JAR := $(wildcard $(word 4,$(OTP))/priv/OtpErlang.jar)
endif
JAVAC = $(shell command -v javac)

# One folder for each emulator, because a library built for a newer one does not load in an older one.
OUT ?= $(HERE)../priv/erts-$(ERTS_VERSION)
# Objects, and programs for tests: never in OUT, because a release takes priv as it is.
BUILD := $(HERE)build/erts-$(ERTS_VERSION)
TEST_BUILD := $(HERE)build/test

ifeq ($(ERTS_VERSION),)
$(error no Erlang/OTP found: "$(ERL)" does not start. Set ERL or install erlang-base and erlang-dev)
endif
ifeq ($(wildcard $(ERTS_INCLUDE)/erl_nif.h),)
$(error erl_nif.h is not in $(ERTS_INCLUDE): install the package with OTP's C headers (Debian: erlang-dev))
endif

# Builds of one OUT wait for each other, by whichever door they come: a Mix in an editor beside a make. Where there is
# flock. LOCKED=1: the caller has the lock (build.sh). The erl is not asked once more.
WITH_LOCK = mkdir -p $(HERE)build && \
    $(if $(shell command -v flock),flock $(HERE)build/$(notdir $(abspath $(OUT))).lock) \
    $(MAKE) --no-print-directory -f $(firstword $(MAKEFILE_LIST)) LOCKED=1 ERTS_VERSION="$(ERTS_VERSION)" \
    ERTS_INCLUDE="$(ERTS_INCLUDE)" EI_INCLUDE="$(EI_INCLUDE)" EI_LIB="$(EI_LIB)" JINTERFACE_JAR="$(JINTERFACE_JAR)"

CFLAGS ?= -O2 -g
WARNINGS ?= -Wall -Wextra -Werror
C := $(CC) -std=gnu11 $(WARNINGS) $(CPPFLAGS) $(CFLAGS)
# What links; of a target's own C, where it has one.
LINK = $(C) $(LDFLAGS)
# macOS' linker is told that the VM has what is missing.
SHARED := -fPIC -shared -fvisibility=hidden $(if $(filter Darwin,$(shell uname -s)),-undefined dynamic_lookup)
SANITIZE := -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
Q := $(if $(V),,@)

