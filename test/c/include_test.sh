#!/bin/sh
# The headers as a stranger includes them: each alone and twice, in C11 and C++17, without a
# warning; from two files that are linked together; and no symbol of theirs leaves the library.
#
#   include_test.sh ERTS_INCLUDE FOLDER      CC, CXX, CLANG and CLANGXX may be set
set -eu
erts_include=$1
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
c_include=$here/../../c_include
flags="-Wall -Wextra -Werror -isystem $erts_include -I$c_include"
# Of the headers in C, which a stranger may compile with these too.
strict="-Wshadow -Wsign-conversion"
checks=0

compiles() { # LANGUAGE HEADER COMPILER...
    language=$1 header=$2
    shift 2
    # What the first line lacks, the second does not bring.
    printf '#include <%s>\n#include <%s>\n' "$header" "$header" |
        "$@" $flags -x "$language" -fsyntax-only -
    checks=$((checks + 1))
}

for c in "${CC:-cc}" "${CLANG:-clang}"; do
    command -v "$c" >/dev/null || { echo "  skip  no $c on PATH"; continue; }
    for header in $(cd "$c_include" && ls tame.h tame/*.h); do
        compiles c "$header" "$c" -std=c11 $strict
        compiles c "$header" "$c" -std=gnu17
    done
done
for cxx in "${CXX:-c++}" "${CLANGXX:-clang++}"; do
    command -v "$cxx" >/dev/null || { echo "  skip  no $cxx on PATH"; continue; }
    for header in $(cd "$c_include" && ls tame.h tame/*.h); do
        compiles c++ "$header" "$cxx" -std=c++17 $strict
    done
    for standard in 17 20; do
        for more in "" "-fno-exceptions -fno-rtti"; do
            # shellcheck disable=SC2086
            compiles c++ tame.hpp "$cxx" -std=c++$standard -Wpedantic $more
        done
    done
done
for header in $(cd "$c_include" && ls tame/cpp/*.hpp); do
    compiles c++ "$header" "${CXX:-c++}" -std=c++17 -Wpedantic
done
echo "  ok    each header alone, twice, in C11 and C++17, tame.hpp in C++20 too ($checks checks)"

said=$(echo '#include <tame.h>' | ${CC:-cc} -std=c99 $flags -x c -fsyntax-only - 2>&1 | grep -m 1 error || :)
case $said in
*"tame.h is for C11"*) echo "  ok    an older C is told by an #error" ;;
*) echo "  FAIL  C99 is told: $said" && exit 1 ;;
esac

mkdir -p "$folder"
for file in include_one include_two; do
    ${CC:-cc} -std=c11 $flags -O2 -fPIC -c -o "$folder/$file.o" "$here/$file.c"
done
${CC:-cc} -shared -o "$folder/include_test.so" "$folder/include_one.o" "$folder/include_two.o"
echo "  ok    from two files linked together"

for file in include_one include_two; do
    ${CXX:-c++} -std=c++17 $flags -Wpedantic -O2 -fPIC -c -o "$folder/$file.cpp.o" "$here/$file.cpp"
done
${CXX:-c++} -shared -o "$folder/include_cpp_test.so" "$folder/include_one.cpp.o" "$folder/include_two.cpp.o"
echo "  ok    in C++ as well"

# What the toolchain itself puts into every shared library is no symbol of ours.
symbols=$(nm -D --defined-only --format=posix "$folder/include_test.so" |
    awk '$1 !~ /^(_init|_fini|_edata|_end|__bss_start)$/ { print $1 }' | tr '\n' ' ')
if [ "$symbols" != "nif_init " ]; then
    echo "  FAIL  the library exports: $symbols(expected: nif_init)"
    exit 1
fi
echo "  ok    nif_init is the only symbol that leaves the library"

# What an author's struct makes of the standard library leaves a library in C++; nothing of ours does.
symbols=$(nm -D --defined-only --format=posix "$folder/include_cpp_test.so" | awk '{ print $1 }')
if ! echo "$symbols" | grep -qx nif_init || echo "$symbols" | grep -E '^(tame|_ZG?[TN][A-Z]*4tame)'; then
    echo "  FAIL  the library in C++ exports these (expected: nif_init and nothing of tame)"
    exit 1
fi
echo "  ok    nothing of tame leaves a library in C++"
