#!/bin/sh
# Runs the tests on CPUs that this machine is not, under emulation, and compares their bits with this machine's.
#
#   aarch64   every suite with the NEON backend, qemu-aarch64      gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user
#   wasm      the suite of the vector backends, node               emscripten, node
#
# A target whose tools are missing is skipped and said to be. The last line is the sum: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0 skipped=0
mkdir -p build/edge build/bits

verdict() { # name, status, log
    if [ "$2" = 0 ]; then passed=$((passed + 1)) word=ok; else failed=$((failed + 1)) word=FAILED; fi
    printf '%-7s %-28s %s\n' $word "$1" "$(grep '^Pass: ' "$3" | tail -n 1)"
    [ "$2" = 0 ] || tail -n 20 "$3"
}

skip() { skipped=$((skipped + 1)) && printf 'skipped %-28s %s\n' "$1" "$2"; }

missing() { for tool in "$@"; do command -v "$tool" >/dev/null 2>&1 || { echo "no $tool"; return; }; done; }

same_bits() { # name, class: build/bits/NAME-O2-CLASS.txt against this machine's
    log=build/edge/$1.bits.log
    ${MAKE:-make} -s --no-print-directory "build/bits/gcc-O2-$2.txt" >"$log" 2>&1 &&
        tools/bits.sh "build/bits/gcc-O2-$2.txt" "build/bits/$1-O2-$2.txt" >>"$log" 2>&1
    verdict "$1: bits of the $2 class" $? "$log"
}

reason=$(missing aarch64-linux-gnu-gcc qemu-aarch64)
if [ -n "$reason" ]; then
    skip aarch64 "$reason"
else
    log=build/edge/aarch64.log
    ${MAKE:-make} -s --no-print-directory build/aarch64/run-tests build/aarch64/bits >"$log" 2>&1 && qemu-aarch64 build/aarch64/run-tests -v >>"$log" 2>&1
    verdict "aarch64: every suite, NEON" $? "$log"
    qemu-aarch64 build/aarch64/bits >build/bits/aarch64-O2-fused.txt
    same_bits aarch64 fused
fi

reason=$(missing emcc node)
if [ -n "$reason" ]; then
    skip wasm "$reason"
else
    log=build/edge/wasm.log
    [ -d build/deps/simde ] || tools/deps.sh simde
    [ -f build/deps/greatest.h ] || tools/deps.sh greatest
    flags="-O2 -msimd128 -std=gnu99 -ffp-contract=off -I. -Itests -isystem build/deps -s SINGLE_FILE=1 -s ALLOW_MEMORY_GROWTH=1 -s TOTAL_STACK=4MB -s NODERAWFS=1"
    export NODE_PATH="${NODE_PATH:-/usr/share/nodejs}"
    # shellcheck disable=SC2086 # flags are several words
    emcc $flags -DMTAN_WITH_WASM -DMTAN_ONE_SUITE=simd_suite -DMTAN_GOLDEN_DIR='"golden"' tests/main.c tests/test_simd.c tests/small.c \
        tests/check.c platform/cpu.c simd/mtan_wasm.c mtan.c -o build/edge/suite.js >"$log" 2>&1 && node build/edge/suite.js -v >>"$log" 2>&1
    verdict "wasm: vector backends" $? "$log"
    emcc $flags -DMTAN_GOLDEN_DIR='"golden"' tests/bits_dump.c tests/ladder.c tests/check.c tests/tiny_model.c mtan.c -o build/edge/bits.js \
        >build/edge/wasm.bits.log 2>&1 && node build/edge/bits.js >build/bits/wasm-O2-unfused.txt
    same_bits wasm unfused
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
