#!/bin/sh
# Builds tame's native parts into PRIV/erts-VERSION/. Mix (mix.exs) and rebar3 (rebar.config) run it when they
# compile tame, in a project or as a dependency. Prints nothing when they are up to date, and needs no compiler then.
#
#   build.sh [PRIV]   default: priv, beside c_src
#
# ERLANG_ROOT_DIR and ERLANG_ERTS_VER name the Erlang/OTP to build for, as rebar3 sets them for its hooks; without
# them the erl on PATH is asked. CC, CPPFLAGS, CFLAGS and LDFLAGS are the compiler's, as usual;
# where they are others than at the last build, or CC compiles for another machine, all is built anew (Makefile).
#
# What is missing is named in one line each, with the packages that have it. Exit status 1 when there is no build.
set -u
# Variables of a make that calls us, or of its user, are not meant for this one.
unset MAKEFLAGS MFLAGS MAKELEVEL
# As for the shell below, an empty one is none.
[ -n "${CC-}" ] || unset CC
cd "$(dirname "$0")" || exit 1

failed=0
fail() {
    echo "tame: $1" >&2
    failed=1
}
missing() { # WHAT DEBIAN FEDORA ALPINE MACOS
    fail "$1. Debian: apt-get install $2; Fedora: dnf install $3; Alpine: apk add $4; macOS: $5"
}

case $PWD in
*[[:space:]]*)
    fail "$(dirname "$PWD") has a space in its path, in which make does not build: move it, or the project that depends on it"
    exit 1
    ;;
esac

# Whether the C compiler makes a program of what it reads. With the flags as make gives them, by a shell: where the
# headers lie may be said there.
compiles() {
    eval "$compiler ${CPPFLAGS-} ${CFLAGS-} ${LDFLAGS-}"' -x c -o "$scratch/a.out" -' 2>"$scratch/errors"
}

if [ -z "${ERLANG_ROOT_DIR-}" ] || [ -z "${ERLANG_ERTS_VER-}" ]; then
    asked=$(erl -noinput -eval 'io:format("~ts ~ts", [erlang:system_info(version), code:root_dir()]), halt().') || {
        fail "no Erlang/OTP: erl does not start"
        exit 1
    }
    ERLANG_ERTS_VER=${asked%% *}
    ERLANG_ROOT_DIR=${asked#* }
fi
include=$ERLANG_ROOT_DIR/erts-$ERLANG_ERTS_VER/include
out=${1:-$(cd .. && pwd)/priv}/erts-$ERLANG_ERTS_VER

# The Makefiles are GNU make's, which the BSDs call gmake.
make=make
if command -v gmake >/dev/null 2>&1; then make=gmake; fi

build() {
    $make -s LOCKED=1 "OUT=$out" "ERTS_VERSION=$ERLANG_ERTS_VER" "ERTS_INCLUDE=$include" "WARNINGS=-Wall -Wextra" "$@"
}

if ! command -v $make >/dev/null 2>&1; then
    missing "there is no make on PATH" make make make "xcode-select --install"
elif build -q >/dev/null 2>&1; then
    exit 0
fi

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
compiler=${CC:-cc}
system=$(uname -s)
if ! command -v "${compiler%% *}" >/dev/null 2>&1; then
    missing "there is no C compiler on PATH ($compiler)" "gcc libc6-dev" "gcc glibc-devel" "gcc musl-dev linux-headers" \
        "xcode-select --install"
elif [ "$system" != Linux ]; then
    echo "tame: this is $system, where tame is not tested, and isolation says that it runs on Linux only"
elif ! printf '#include <stdio.h>\n#include <linux/futex.h>\nint main(void) { return 0; }\n' | compiles; then
    missing "the C compiler ($compiler) does not compile a program with <stdio.h> and <linux/futex.h>" \
        "gcc libc6-dev" "gcc glibc-devel" "gcc musl-dev linux-headers" "xcode-select --install"
    cat "$scratch/errors" >&2
elif ! printf '#include <execinfo.h>\n#include <gnu/libc-version.h>\nint main(void) { return 0; }\n' | compiles; then
    fail "the C library is not glibc: tame's host needs its backtrace and sigabbrev_np, which musl (Alpine) does not have"
fi
if ! [ -f "$include/erl_nif.h" ]; then
    missing "there is no erl_nif.h in $include" erlang-dev erlang-erts erlang-dev "brew install erlang"
fi
[ $failed = 0 ] || exit 1

if ! mkdir -p build "$out" 2>/dev/null || ! [ -w build ] || ! [ -w "$out" ]; then
    fail "$(dirname "$PWD") cannot be written: the native parts are built inside it, so make it writable while it is compiled"
    exit 1
fi
# A second build that starts meanwhile, by an editor for example, waits, where there is flock. So does a make (otp.mk).
if command -v flock >/dev/null 2>&1; then
    exec 9>"build/erts-$ERLANG_ERTS_VER.lock"
    flock 9
fi

echo "tame: building native parts for erts $ERLANG_ERTS_VER"
if ! build "-j$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)"; then
    fail "the native parts do not build in $PWD; the errors of make and the compiler are above"
    exit 1
fi
