#!/bin/sh
# Runs the tests on CPUs that this machine is not, under emulation, and compares their bits with this machine's.
#
#   tools/edge.sh [target...]     all of them, or those named. JOBS=2: so many at once (default 1). EDGE_INSTALL=1: as root,
#                                 install what is missing by apt-get.
#
#   target    what runs                                         emulator         class
#   aarch64   every suite, with the NEON backend                qemu-aarch64     fused
#   riscv64   every suite                                       qemu-riscv64     fused
#   armhf     every suite; 32-bit addresses, VFPv4              qemu-arm         fused
#   armv7     the bits alone; VFPv3                             qemu-arm         unfused
#   s390x     every suite; big-endian                           qemu-s390x       fused
#   wasm      the suite of the vector backends, simd128         node             unfused
#   cortex-m  models on boards without an operating system      qemu-system-arm  both: tools/edge_cortex_m.sh
#
# All of one class must have the same bits. A target whose tools are missing is skipped, and the table says which packages it
# needs. The largest golden cases are left out where they would take as long as all else (left_out below), and the table says
# so. It stands at the end: verdict, target, what was run, result. The last line is the sum: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
all='aarch64 riscv64 armhf armv7 s390x wasm cortex-m'
limit=1200 # seconds: a target that hangs is a failure
out=build/edge
make="${MAKE:-make} -s --no-print-directory"
unset MAKEFLAGS MFLAGS # the outer make's would pass its job server on

have() { command -v "$1" >/dev/null 2>&1; }
limited() { if have timeout; then timeout "$limit" "$@"; else "$@"; fi; }
row() { printf '%-7s  %-8s %-6s %s\n' "$@" >>"$out/$2.rows"; } # verdict, target, what, result

compiler() {
    case $1 in
    armhf | armv7) echo arm-linux-gnueabihf-gcc ;;
    cortex-m) echo arm-none-eabi-gcc ;;
    wasm) echo emcc ;;
    *) echo "$1-linux-gnu-gcc" ;;
    esac
}

# The emulator's path; qemu-user-static's is as good.
emulator() {
    case $1 in
    armhf | armv7) set -- qemu-arm ;;
    cortex-m) set -- qemu-system-arm ;;
    wasm) set -- node ;;
    *) set -- "qemu-$1" ;;
    esac
    command -v "$1" || command -v "$1-static"
}

packages() {
    case $1 in
    aarch64) echo qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
    armhf | armv7) echo qemu-user gcc-arm-linux-gnueabihf libc6-dev-armhf-cross ;;
    cortex-m) echo qemu-system-arm gcc-arm-none-eabi libnewlib-arm-none-eabi ;;
    wasm) echo emscripten nodejs ;;
    *) echo qemu-user "gcc-$1-linux-gnu" "libc6-dev-$1-cross" ;;
    esac
}

# Golden cases, and one test that goes through them again: emulated floats of RISC-V and s390x take two to three times as long
# as ARM's.
slow() { case $1 in riscv64 | s390x) ;; *) return 1 ;; esac; }
left_out() { echo "physionet-full mimic3-full$(slow "$1" && echo ' activity-enc physionet-interp mimic3-enc')"; }
excluded() { ! slow "$1" || echo golden_logits_by_stream; }

class() { case $1 in armv7 | wasm) echo unfused ;; *) echo fused ;; esac; }

can_run() {
    emulator "$1" >/dev/null && have "$(compiler "$1")" || return 1
    case $1 in # a compiler may be there without its C library
    wasm) ;;
    cortex-m) echo '#include <string.h>' | arm-none-eabi-gcc -E - >/dev/null 2>&1 ;;
    *) echo 'int main(void) { return 0; }' | "$(compiler "$1")" -static -x c - -o "$out/$1.probe" 2>/dev/null ;;
    esac
}

install() { # apt-get takes one at a time
    [ -n "${EDGE_INSTALL:-}" ] && have apt-get || return 0
    for target in $targets; do
        # shellcheck disable=SC2046 # several packages
        can_run "$target" || apt-get install -qq -y $(packages "$target") >"$out/$target.install.log" 2>&1
    done
}

# ---- one target: leaves rows, and what bits_dump printed ----

verdict() { # target, what, status, seconds, log of greatest
    counts=$(sed -n 's/^Pass: \([0-9]*\), fail: \([0-9]*\), skip: \([0-9]*\)\.$/\1 passed, \2 failed, \3 skipped/p' "$5" | tail -n 1)
    thinned=$(sed -n 's/^SKIP model_agrees_\([^:]*\): named in MTAN_SKIP_CASES.*/ \1/p' "$5" | tr -d '\n')
    thinned=$thinned$(excluded "$1" | sed 's/^/ /')
    if [ "$3" = 0 ] && [ -n "$counts" ]; then row ok "$1" "$2" "$counts in $4 s${thinned:+; left out:$thinned}"
    else row FAILED "$1" "$2" "${counts:-did not build, or ended in the middle (status $3)}: see $5"; fi
}

run_cpu() { # target, goals of make
    target=$1 log=$out/$1.log
    shift
    $make "$@" >"$log" 2>&1 || { row FAILED "$target" build "see $log"; return; }
    "$(emulator "$target")" "build/$target/bits" >"$out/$target.bits" 2>>"$log"
    [ $# = 2 ] || return # the bits alone
    start=$(date +%s) x=$(excluded "$target")
    MTAN_SKIP_CASES=$(left_out "$target") limited "$(emulator "$target")" "build/$target/run-tests" -v ${x:+-x "$x"} >>"$log" 2>&1
    verdict "$target" suites $? $(($(date +%s) - start)) "$log"
}

run_wasm() {
    log=$out/wasm.log
    flags="-O2 -msimd128 -std=gnu99 -ffp-contract=off -I. -Itests -isystem build/deps -s SINGLE_FILE=1 -s ALLOW_MEMORY_GROWTH=1 -s TOTAL_STACK=4MB -s NODERAWFS=1"
    export NODE_PATH="${NODE_PATH:-/usr/share/nodejs}"
    start=$(date +%s)
    # shellcheck disable=SC2086 # flags are several words
    emcc $flags -DMTAN_WITH_WASM -DMTAN_ONE_SUITE=simd_suite -DMTAN_GOLDEN_DIR='"golden"' tests/main.c tests/test_simd.c tests/small.c \
        tests/check.c platform/cpu.c simd/mtan_wasm.c mtan.c -o $out/suite.js >"$log" 2>&1 && limited node $out/suite.js -v >>"$log" 2>&1
    verdict wasm simd $? $(($(date +%s) - start)) "$log"
    # shellcheck disable=SC2086
    emcc $flags -DMTAN_GOLDEN_DIR='"golden"' tests/bits_dump.c tests/ladder.c tests/check.c tests/tiny_model.c mtan.c -o $out/bits.js \
        >>"$log" 2>&1 && node $out/bits.js >$out/wasm.bits 2>>"$log"
}

run_script() { # target, script: prints a line "ok ...", "FAILED ..." or "skipped ..." for each thing it ran
    limited "$2" >"$out/$1.log" 2>&1
    status=$?
    sed -n "s/^\(ok\|FAILED\|skipped\)  *\([^ ]\)/\1 \2/p" "$out/$1.log" |
        while read -r word line; do printf '%-7s  %-8s %s\n' "$word" "$1" "$line"; done >"$out/$1.rows"
    if [ $status != 0 ] && ! grep -q '^FAILED ' "$out/$1.rows"; then row FAILED "$1" all "status $status: see $out/$1.log"; fi
}

run_one() {
    if ! can_run "$1"; then
        row skipped "$1" all "needs the packages $(packages "$1")"
        return
    fi
    echo "$1: builds and runs"
    case $1 in
    wasm) run_wasm ;;
    cortex-m) run_script "$1" tools/edge_cortex_m.sh ;;
    armv7) run_cpu "$1" "build/$1/bits" ;;
    *) run_cpu "$1" "build/$1/bits" "build/$1/run-tests" ;;
    esac
}

# ---- bits: all of a class against this machine's, or against the first where this CPU has no fused multiply-add ----

reference() { # class
    native=$(have gcc && echo gcc || echo clang)-O2-$1
    if [ "$1" = unfused ] || grep -qw fma /proc/cpuinfo 2>/dev/null; then
        $make "build/bits/$native.txt" >&2 && cp "build/bits/$native.txt" "$out/this-$1.txt"
    else
        for target in $targets; do
            [ "$(class "$target")" != fused ] || [ ! -s "$out/$target.bits" ] || { cp "$out/$target.bits" "$out/this-$1.txt" && return; }
        done
    fi
}

same_bits() { # target
    kind=$(class "$1") log=$out/$1.bits.log
    cp "$out/$1.bits" "$out/$1-$kind.txt"
    [ -s "$out/this-$kind.txt" ] || reference "$kind" 2>"$log"
    if tools/bits.sh "$out/this-$kind.txt" "$out/$1-$kind.txt" >"$log" 2>&1; then
        row ok "$1" bits "those of the $kind class: $(wc -l <"$out/$1.bits") hashes"
    else
        row FAILED "$1" bits "differ from the $kind class: see $log"
    fi
}

# ---- all ----

if [ "${1:-}" = --one ]; then # a child of the command below
    run_one "$2"
    exit 0
fi
targets=${*:-$all}
for target in $targets; do
    case " $all " in *" $target "*) ;; *) echo "mtan: $0: no target $target; there are: $all"; exit 2 ;; esac
done
mkdir -p $out build/bits && rm -f $out/*.rows $out/*.bits $out/*-fused.txt $out/*-unfused.txt
tools/deps.sh >$out/deps.log 2>&1 || { cat $out/deps.log; exit 2; }
install
# shellcheck disable=SC2086 # a word per target
printf '%s\n' $targets | xargs -P "${JOBS:-1}" -I'{}' tools/edge.sh --one '{}'
for target in $targets; do
    [ ! -f "$out/$target.bits" ] || same_bits "$target"
    [ -f "$out/$target.rows" ] || row FAILED "$target" all "ended without a result"
done
echo
for target in $targets; do cat "$out/$target.rows"; done | tee $out/table
echo "$(grep -c '^ok ' $out/table) passed, $(grep -c '^FAILED ' $out/table) failed, $(grep -c '^skipped ' $out/table) skipped"
! grep -q '^FAILED ' $out/table
