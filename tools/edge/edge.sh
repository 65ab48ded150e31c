#!/bin/sh
# Runs the tests for other machines, most of them emulated, and compares their bits with this machine's.
#
#   tools/edge/edge.sh [target...]   all targets, or those named. JOBS=2: so many at once (default 1). EDGE_INSTALL=1: as root, installs
#                               missing packages by apt-get, for five minutes at most. EDGE_SECONDS=900: the short form; a target
#                               that would start later than that is skipped.
#
#   target    what runs                                                 by                class
#   s390x     every suite; big-endian                                   qemu-s390x        fused
#   aarch64   every suite, with the NEON backend                        qemu-aarch64      fused
#   armhf     every suite; 32-bit addresses, VFPv4                      qemu-arm          fused
#   riscv64   the suites of the library                                 qemu-riscv64      fused
#   armv7     only the bits; VFPv3                                      qemu-arm          unfused
#   musl      every suite; another C library, linked statically         this CPU          unfused
#   windows   the suites of the library, its threads and backends       wine              unfused
#   wasm      the suite of the vector backends with simd128;            node,             unfused
#             modules, wrapper and page: tools/edge/wasm.sh                  a browser
#   cortex-m  models on boards without an operating system:             qemu-system-arm   both
#             tools/edge/edge_cortex_m.sh
#   export    `mtan export` with several compilers: tools/check/export_check.sh this CPU
#
# All targets of one class must have the same bits. A target whose tools are missing is skipped, and the table says
# which packages it needs. Under qemu the largest cases are left out (left_out below), and the table says so. The short
# form leaves out more: tests that take seconds, and suites that depend neither on byte order, word size, rounding nor
# files. It takes a minute or two on an emulated CPU instead of a quarter of an hour. The table at the end has verdict,
# target, what was run, and result. The last line is the sum of its rows: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/../.." || exit 2
all='s390x armv7 export cortex-m windows armhf wasm aarch64 musl riscv64' # the most revealing for their time come first
limit=${EDGE_LIMIT:-1200} # seconds: a target that hangs is a failure; a busy machine may need more
out=build/edge
make="${MAKE:-make} -s --no-print-directory"
unset MAKEFLAGS MFLAGS # the outer make's flags would pass on its job server

have() { command -v "$1" >/dev/null 2>&1; }
limited() { if have timeout; then timeout "$limit" "$@"; else "$@"; fi; }
row() { printf '%-7s  %-8s %-6s %s\n' "$@" >>"$out/$2.rows"; } # verdict, target, what, result

# ---- requirements of a target ----

compiler() {
    case $1 in
    armhf | armv7) echo arm-linux-gnueabihf-gcc ;;
    musl) echo musl-gcc ;;
    windows) echo x86_64-w64-mingw32-gcc-posix ;;
    cortex-m) echo arm-none-eabi-gcc ;;
    wasm) echo emcc ;;
    export) echo gcc ;;
    *) echo "$1-linux-gnu-gcc" ;;
    esac
}

# The program that runs its binaries. qemu-user-static's works as well; Debian keeps wine64 off the PATH.
emulator() {
    case $1 in
    musl | export) echo env && return ;;
    armhf | armv7) set -- qemu-arm qemu-arm-static ;;
    windows) set -- wine64 /usr/lib/wine/wine64 ;;
    cortex-m) set -- qemu-system-arm qemu-system-arm ;;
    wasm) set -- node nodejs ;;
    *) set -- "qemu-$1" "qemu-$1-static" ;;
    esac
    command -v "$1" || command -v "$2"
}

packages() {
    case $1 in
    aarch64) echo qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
    armhf | armv7) echo qemu-user gcc-arm-linux-gnueabihf libc6-dev-armhf-cross ;;
    musl) echo musl-tools ;;
    windows) echo gcc-mingw-w64-x86-64 wine64 ;;
    cortex-m) echo qemu-system-arm gcc-arm-none-eabi libnewlib-arm-none-eabi ;;
    wasm) echo emscripten nodejs ;;
    browser) echo chromium-headless-shell ;;
    export) echo gcc ;;
    *) echo qemu-user "gcc-$1-linux-gnu" "libc6-dev-$1-cross" ;;
    esac
}

can_run() {
    [ "$1" != browser ] || { have chromium-headless-shell; return; } # for tools/edge/wasm.sh, which can run without it
    emulator "$1" >/dev/null && have "$(compiler "$1")" || return 1
    case $1 in # a compiler may be installed without its C library
    wasm | export) ;;
    cortex-m) echo '#include <string.h>' | arm-none-eabi-gcc -E - >/dev/null 2>&1 ;;
    *) echo 'int main(void) { return 0; }' | "$(compiler "$1")" -static -x c - -o "$out/$1.probe" 2>/dev/null ;;
    esac
}

# Downloads first and with a time limit, because dpkg must not be stopped half-way. Stops at the first package that
# cannot be downloaded, even with a new list of packages.
install() {
    [ -n "${EDGE_INSTALL:-}" ] && have apt-get && have timeout && [ "$(id -u)" = 0 ] || return 0
    until=$(($(date +%s) + 300)) listed=
    for target in $targets $(case " $targets " in *" wasm "*) echo browser ;; esac); do
        can_run "$target" && continue
        echo "$target: installs $(packages "$target")"
        if ! apt_get "$target" --download-only; then
            [ -z "$listed" ] && timeout 60 apt-get update -q >"$out/update.log" 2>&1 && apt_get "$target" --download-only || return 0
            listed=yes
        fi
        apt_get "$target" --no-download
    done
}
apt_get() { # target, option
    left=$((until - $(date +%s)))
    [ "$2" = --no-download ] && left=600
    # shellcheck disable=SC2046 # several packages
    [ $left -gt 0 ] && DEBIAN_FRONTEND=noninteractive timeout $left apt-get install -q -y --no-install-recommends \
        -o DPkg::Lock::Timeout=60 -o Acquire::Retries=1 "$2" $(packages "$1") >"$out/$1.install.log" 2>&1 </dev/null
}

# ---- one target: writes its rows, and the output of bits_dump ----

# Words for MTAN_SKIP_CASES: golden cases, kinds of small models that are trained, tests and suites. An emulated CPU
# takes ten times as long, and a search ends by the clock.
left_out() {
    case $1 in
    aarch64) words="physionet-full mimic3-full $fewer" ;;
    riscv64 | s390x | armhf) words="physionet-full mimic3-full physionet-interp mimic3-enc activity-enc activity-full $fewer" ;;
    *) return ;;
    esac
    [ -z "${EDGE_SECONDS:-}" ] || words="$words $slow"
    echo "$words" | xargs # one line
}
fewer='search_suite large-record tiny-full tiny-per-head tiny-rbf-full tiny-rnn3-full tiny-full-time tiny-fixed tiny-observed'
# For the short form as well: tests that take seconds, suites that train or go through the command.
slow='physionet-enc tiny-variance tiny-observed-variance sizes_of_large_streams a_weight_that_is_nan_gives_no_prediction
    exact_blocks_are_enough_at_every_address sizes_rise_with_every_bound a_million_repeats
    large_headers_take_the_time_of_their_bytes large_files_take_the_time_of_their_bytes blob_may_change_after_it_was_opened
    any_byte_may_be_wrong a_flipped_byte_is_refused_or_harmless an_open_quote_costs_its_line_alone
    made_records_have_the_statistics a_run_becomes_a_page
    waste_suite baselines_suite latent_suite runs_suite command_suite own_command_suite baseline_command_suite bench_command_suite
    best_command_suite check_command_suite cv_command_suite number_task_suite published_command_suite table_suite ablation_suite
    refusals_suite labels_task_suite explain_command_suite'

class() { case $1 in armv7 | musl | windows | wasm) echo unfused ;; *) echo fused ;; esac; }

verdict() { # target, what, status, seconds, log of greatest
    counts=$(sed -n 's/^Pass: \([0-9]*\), fail: \([0-9]*\), skip: \([0-9]*\)\.$/\1 passed, \2 failed, \3 skipped/p' "$5" | tail -n 1)
    thinned=$(left_out "$1")
    [ -z "$thinned" ] || if [ -n "${EDGE_SECONDS:-}" ]; then thinned="; the short form"; else thinned="; left out: $thinned"; fi
    if [ "$3" = 0 ] && [ -n "$counts" ]; then row ok "$1" "$2" "$counts in $4 s$thinned"
    else row FAILED "$1" "$2" "${counts:-did not build, or ended in the middle (status $3)}: see $5"; fi
}

run() { # target, program, arguments
    program=build/$1/$2 by=$(emulator "$1")
    [ -f "$program" ] || program=$program.exe
    shift 2
    limited "$by" "$program" "$@"
}

run_cpu() { # target, goals of make
    target=$1 log=$out/$1.log
    shift
    $make "$@" >"$log" 2>&1 || { row FAILED "$target" build "see $log"; return; }
    run "$target" bits 2>>"$log" | tr -d '\r' >"$out/$target.bits"
    [ $# = 2 ] || return # only the bits
    start=$(date +%s)
    MTAN_SKIP_CASES=$(left_out "$target") run "$target" run-tests -v >>"$log" 2>&1
    status=$?
    tr -d '\r' <"$log" >"$log.unix" && mv "$log.unix" "$log"
    verdict "$target" suites $status $(($(date +%s) - start)) "$log"
}

run_wasm() {
    log=$out/wasm.log
    flags="-O2 -msimd128 -std=gnu99 -ffp-contract=off -I. -Itests/support -isystem build/deps -s SINGLE_FILE=1 -s ALLOW_MEMORY_GROWTH=1 -s TOTAL_STACK=4MB -s NODERAWFS=1"
    start=$(date +%s)
    # shellcheck disable=SC2086 # flags are several words
    emcc $flags -DMTAN_WITH_WASM -DMTAN_ONE_SUITE=simd_suite -DMTAN_GOLDEN_DIR='"golden"' tests/main.c tests/library/test_simd.c tests/support/small.c tests/support/caller.c tests/support/kernel_table.c tests/support/kernel_cases.c \
        tests/support/check.c platform/cpu.c simd/mtan_wasm.c mtan.c -o $out/suite.js >"$log" 2>&1 && limited node $out/suite.js -v >>"$log" 2>&1
    verdict wasm simd $? $(($(date +%s) - start)) "$log"
    # shellcheck disable=SC2086
    emcc $flags -DMTAN_GOLDEN_DIR='"golden"' tests/library/bits_dump.c tests/support/ladder.c tests/support/check.c tests/support/tiny_model.c tests/support/kernel_cases.c tests/support/small.c tests/support/caller.c mtan.c -o $out/bits.js \
        >>"$log" 2>&1 && node $out/bits.js >$out/wasm.bits 2>>"$log"
    run_script wasm tools/edge/wasm.sh
}

# A script prints a line "ok ...", "FAILED ..." or "skipped ..." for each thing it ran. The boards' lines contain
# figures and are kept; for other scripts the passed lines are counted.
run_script() { # target, script
    log=$out/$1.script.log
    MTAN=build/mtan BOARD_CASE=build/release/board_case SHARED=build/release/shared.a limited "$2" >"$log" 2>&1
    status=$?
    passed=$(grep -c '^ok ' "$log")
    [ "$1" = cortex-m ] || [ "$passed" = 0 ] || row ok "$1" checks "$passed passed: ${2#tools/}"
    sed -n "s/^\(ok\|FAILED\|skipped\)  *\([^ ]\)/\1 \2/p" "$log" | while read -r word line; do
        [ "$1" != cortex-m ] && [ "$word" = ok ] || printf '%-7s  %-8s %s\n' "$word" "$1" "$line"
    done >>"$out/$1.rows"
    if [ $status != 0 ] && ! grep -q '^FAILED ' "$out/$1.rows"; then row FAILED "$1" all "status $status: see $log"; fi
}

run_one() {
    if ! can_run "$1"; then
        row skipped "$1" all "needs the packages $(packages "$1")"
        return
    elif [ "$(date +%s)" -ge "$EDGE_END" ]; then
        row skipped "$1" all "no time was left: EDGE_SECONDS"
        return
    fi
    echo "$1: builds and runs"
    export NODE_PATH="${NODE_PATH:-/usr/share/nodejs}" WINEPREFIX="$PWD/$out/wine" WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml=
    case $1 in
    wasm) run_wasm ;;
    cortex-m) run_script "$1" tools/edge/edge_cortex_m.sh ;;
    export) run_script "$1" tools/check/export_check.sh ;;
    armv7) run_cpu "$1" "build/$1/bits" ;;
    *) run_cpu "$1" "build/$1/bits" "build/$1/run-tests" ;;
    esac
}

# ---- bits: all of a class compared with this machine's, or with the first if this CPU has no fused multiply-add ----

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
    if tools/check/bits.sh "$out/this-$kind.txt" "$out/$1-$kind.txt" >"$log" 2>&1; then
        row ok "$1" bits "those of the $kind class: $(wc -l <"$out/$1.bits") hashes"
    else
        row FAILED "$1" bits "differ from the $kind class: see $log"
    fi
}

# ---- all targets ----

if [ "${1:-}" = --one ]; then # a child of the command below
    run_one "$2"
    exit 0
fi
targets=${*:-$all}
for target in $targets; do
    case " $all " in *" $target "*) ;; *) echo "mtan: $0: no target $target; there are: $all"; exit 2 ;; esac
done
EDGE_END=$(($(date +%s) + ${EDGE_SECONDS:-1000000}))
export EDGE_END
mkdir -p $out build/bits && rm -f $out/*.rows $out/*.bits $out/*-fused.txt $out/*-unfused.txt
tools/deps.sh >$out/deps.log 2>&1 || { cat $out/deps.log; exit 2; }
install
case " $targets " in *" wasm "* | *" cortex-m "* | *" export "*) # now: their scripts run in parallel
    $make -j"${JOBS:-1}" mtan build/release/board_case >$out/make.log 2>&1 || { cat $out/make.log; exit 2; } ;;
esac
# shellcheck disable=SC2086 # a word per target
printf '%s\n' $targets | xargs -P "${JOBS:-1}" -I'{}' tools/edge/edge.sh --one '{}'
for target in $targets; do
    [ ! -f "$out/$target.bits" ] || same_bits "$target"
    [ -f "$out/$target.rows" ] || row FAILED "$target" all "ended without a result"
done
echo
printf '%-7s  %-8s %-6s %s\n' verdict target what result
for target in $targets; do cat "$out/$target.rows"; done | tee $out/table
echo "$(grep -c '^ok ' $out/table) passed, $(grep -c '^FAILED ' $out/table) failed, $(grep -c '^skipped ' $out/table) skipped"
! grep -q '^FAILED ' $out/table
