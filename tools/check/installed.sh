#!/bin/sh
# Installs into an empty folder and builds one program with the library in every way described in platform/README.md: by
# hand with the archive and with the shared library, by pkg-config, by CMake's find_package, add_subdirectory and
# FetchContent. All must print the same line, with the fastest kernels of this CPU. It also checks the exported symbols,
# DESTDIR, and that uninstall leaves nothing. Without pkg-config or cmake, their part is skipped.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD cc=${CC:-cc}
dir=$(mktemp -d "${TMPDIR:-/tmp}/mtan.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 2' HUP INT TERM
prefix="$dir/prefix" program=$root/tests/library/installed_program.c
fail() { echo "mtan: installed: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
make_quiet() { ${MAKE:-make} --no-print-directory -s "$@" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "make $*"; }; }
unset MAKEFLAGS MFLAGS MAKELEVEL

prints() { # what it is, program and arguments
    name=$1
    shift
    "$@" >"$dir/line" || fail "$name: status $?"
    echo "$name: $(cat "$dir/line")"
    [ -f "$dir/first" ] || cp "$dir/line" "$dir/first"
    cmp "$dir/first" "$dir/line" || fail "$name prints something else"
}

make_quiet install PREFIX="$prefix"
best=$("$prefix/bin/mtan" backends | sed -n 's/ .*, the default$//p')

# The headers must work without the source tree.
cd "$dir"
"$cc" -std=c99 -pedantic -Wall -Wextra -Werror -I"$prefix/include" "$program" "$prefix/lib/libmtan.a" -o by-archive
prints archive ./by-archive
grep -q ", $best: " line || fail "the library takes $(cat line), the command $best"
"$cc" -I"$prefix/include" "$program" -L"$prefix/lib" -lmtan -Wl,-rpath,"$prefix/lib" -o by-hand
prints shared ./by-hand

if have readelf && [ -e "$prefix/lib/libmtan.so" ]; then
    readelf -d by-hand | grep -q 'NEEDED.*\[libmtan\.so\.0\]' || fail "the program does not ask for libmtan.so.0"
    readelf -d "$prefix/lib/libmtan.so" | grep NEEDED | grep -v 'libc\.' && fail "the library needs more than libc"
    nm -D --defined-only "$prefix/lib/libmtan.so" | awk '$3 !~ /^mtan_/ { print; bad = 1 } END { exit bad || !NR }' ||
        fail "a symbol of the shared library does not start with mtan_"
else
    echo "SKIP exported symbols: no readelf, or no ELF file"
fi

if have pkg-config; then
    export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
    # shellcheck disable=SC2046 # several words
    "$cc" "$program" $(pkg-config --cflags --libs "mtan >= 0.1") -Wl,-rpath,"$(pkg-config --variable=libdir mtan)" -o by-pkg-config
    prints pkg-config ./by-pkg-config
else
    echo "SKIP pkg-config: it is not here"
fi

by_cmake() { # what it is, lines that bring mtan, target
    mkdir "$1"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.14)' 'project(consumer C)' "$2" "add_executable(consumer $program)" \
        "target_link_libraries(consumer $3)" >"$1/CMakeLists.txt"
    { cmake -S "$1" -B "$1/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$1/build" -j 2; } \
        >log 2>&1 || { tail -n 30 log; fail "$1"; }
    prints "$1" "$1/build/consumer"
}

if have cmake; then
    by_cmake find_package 'find_package(mtan 0.1 REQUIRED)' mtan::mtan
    by_cmake find_package-static 'find_package(mtan 0.1 REQUIRED)' mtan::static
    by_cmake add_subdirectory "add_subdirectory($root mtan)" mtan::mtan
    by_cmake FetchContent "include(FetchContent)
FetchContent_Declare(mtan SOURCE_DIR $root)
set(BUILD_SHARED_LIBS ON)
FetchContent_MakeAvailable(mtan)" mtan::mtan
    for wrong in 0.2 1.0 99; do
        echo "cmake_minimum_required(VERSION 3.14)
project(wrong C)
find_package(mtan $wrong REQUIRED)" >CMakeLists.txt
        ! cmake -S . -B wrong -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 || fail "find_package takes this version for $wrong"
        grep -q "0\.1" log || { cat log; fail "find_package failed for another reason"; }
    done
else
    echo "SKIP find_package, add_subdirectory, FetchContent: no cmake"
fi

# No file contains DESTDIR; uninstall removes everything that install created.
cd "$root"
for folders in "PREFIX=$prefix" "DESTDIR=$dir/stage PREFIX=/usr LIBDIR=/usr/lib/odd INCLUDEDIR=/opt/odd MANDIR=/usr/man BINDIR=/bin"; do
    # shellcheck disable=SC2086 # several words
    make_quiet install $folders
    ! grep -rl "$dir/stage" "$dir/stage" 2>/dev/null || fail "DESTDIR is in a file"
    [ ! -d "$dir/stage" ] || [ -x "$dir/stage/bin/mtan" ] || fail "BINDIR is not heard"
    # shellcheck disable=SC2016 # pkg-config's variable
    [ ! -d "$dir/stage" ] || grep -q '^libdir=${prefix}/lib/odd$' "$dir/stage/usr/lib/odd/pkgconfig/mtan.pc" || fail "mtan.pc has another libdir"
    # shellcheck disable=SC2086
    make_quiet uninstall $folders
done
left=$(find "$prefix" "$dir/stage" ! -type d)
[ -z "$left" ] || fail "left behind: $left"
