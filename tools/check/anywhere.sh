#!/bin/sh
# Runs `make demo` and a small `make test` as on a machine that has only a C compiler and make: a fresh copy, no program
# on PATH that could download, none of the system's headers for tools/deps.sh. All three dependencies must be replaced
# by their stand-ins, each reported in one line, and dependencies found later must replace the stand-ins. The whole
# takes half a minute on two idle cores.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d "${TMPDIR:-/tmp}/mtan.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 2' HUP INT TERM
fail() { echo "mtan: anywhere: $*"; exit 1; }

mkdir "$dir/bin" "$dir/copy"
for file in *; do
    case $file in build | runs) ;; *) cp -R "$file" "$dir/copy" ;; esac
done

# All programs of PATH except those that download. Links of ccache to itself would not find the compilers.
IFS=:
for folder in $PATH; do
    case $folder in /*ccache*) continue ;; esac
    [ ! -d "$folder" ] || ln -s "$folder"/* "$dir/bin" 2>/dev/null || : # the first program of a name wins
done
unset IFS
for program in apt apt-get aptitude dpkg curl wget git brew port conda pip 'pip[0-9]*' 'python*'; do
    # shellcheck disable=SC2086 # the star is one
    rm -f "$dir"/bin/$program
done

cd "$dir/copy"
unset DEPS_FROM CPATH C_INCLUDE_PATH MAKEFLAGS MFLAGS MAKELEVEL
export PATH="$dir/bin" DEPS_SYSTEM=
for program in apt-get curl wget pip brew; do
    ! command -v $program >/dev/null || fail "$program is still on PATH"
done

"${MAKE:-make}" -j"${JOBS:-2}" demo >../demo.log 2>&1 || { tail -n 20 ../demo.log; fail "make demo"; }
"${MAKE:-make}" test TESTS=bare CHECKS= JOBS="${JOBS:-2}" >../test.log 2>&1 || { tail -n 20 ../test.log; fail "make test"; }
for name in greatest simde stb; do
    [ -f build/deps/$name.stand-in ] || fail "$name came from somewhere"
    [ "$(cat ../demo.log ../test.log | grep -c "^deps: no $name ")" = 1 ] || fail "not one line about $name"
done
tail -n 1 ../test.log | grep '^[1-9][0-9]* passed, 0 failed, ' || fail "no sum of make test"

# A dependency that is found later replaces its stand-in, and everything is compiled again.
mkdir -p found/simde/x86 found/stb
echo simde >found/simde/x86/avx2.h
echo stb >found/stb/stb_ds.h
DEPS_SYSTEM="/nowhere $PWD/found" tools/deps.sh simde >../found.log
DEPS_FROM=found tools/deps.sh stb >>../found.log
cmp found/simde/x86/avx2.h build/deps/simde/x86/avx2.h && cmp found/stb/stb_ds.h build/deps/stb/stb_ds.h
for left in simde/none.h simde.stand-in stb.stand-in; do
    [ ! -e build/deps/$left ] || fail "build/deps/$left is still there"
done
[ -n "$(find Makefile -newer build/release/mtan.o)" ] || fail "make does not know that all has to be compiled anew"
