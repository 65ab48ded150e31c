#!/bin/sh
# Builds the fuzz targets (tests/fuzz) and runs them, one after the other. Prints a line for each, followed by the
# reason if something was found, and the sum on the last line; status 1 if anything was found.
#
#   fuzz.sh on SECONDS NAME...     continues from the last run, whose corpus is build/fuzz/NAME.corpus
#   fuzz.sh anew SECONDS NAME...   starts with only the seeds, and always with the same random numbers
#
# FUZZ_RUNS in the environment: so many executions of each target instead of the seconds. NAME-fast shares the
# dictionary, the seeds and the corpus of NAME.
#
# Inputs that fail are kept as build/fuzz/NAME.crash-... or similar; `build/fuzz/NAME FILE` reproduces the failure.
set -u
cd "$(dirname "$0")/../.." || exit 2
mode=$1 seconds=$2
shift 2
passed=0 failed=0 skipped=0
export ASAN_OPTIONS="quarantine_size_mb=16:${ASAN_OPTIONS-}" # a large quarantine would cost more memory than the readers

has_fuzzer() {
    echo 'int LLVMFuzzerTestOneInput(const char *data, long size) { return !data || !size; }' |
        clang -fsanitize=fuzzer,address,undefined -x c - -o /dev/null 2>/dev/null
}

# The target's own options, and the folder of its corpus; seeds that are elsewhere are copied there.
prepare() { # name, corpus
    mkdir -p "$2"
    case $1 in
    model) echo -max_len=1024 ;;     # the smallest models: files that are read fast
    activity) echo -max_len=128 ;;   # one byte can stand for fifty rows
    stream) echo -close_fd_mask=3 ;; # it prints predictions, and complains about each bad line
    predict) cp tests/fuzz/seeds/model/* "$2" && echo -max_len=1024 -dict=tests/fuzz/model.dict ;;
    torchfile) cp golden/torch-*.pt "$2" ;;
    esac
}

fuzz() { # name
    name=${1%-fast} target=build/fuzz/$1 corpus=build/fuzz/${1%-fast}.corpus seed=0
    length=${FUZZ_RUNS:+-runs=$FUZZ_RUNS}
    if [ "$mode" = anew ]; then
        corpus=build/fuzz/$name.anew seed=1
        rm -rf "$corpus"
    fi
    set -- "${length:--max_total_time=$seconds}" -max_len=4096 -timeout=60 -seed=$seed -print_final_stats=1 -print_funcs=0 \
        -artifact_prefix="$target." $(prepare "$name" "$corpus") "$corpus"
    [ ! -f "tests/fuzz/$name.dict" ] || set -- -dict="tests/fuzz/$name.dict" "$@"
    [ ! -d "tests/fuzz/seeds/$name" ] || set -- "$@" "tests/fuzz/seeds/$name"
    if "$target" "$@" >"$target.log" 2>&1; then verdict=ok; else verdict=FAILED; fi
    printf '%-7s %-13s %s executions, %s per second\n' "$verdict" "${target#build/fuzz/}" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$target.log")" \
        "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$target.log")"
    if [ $verdict = ok ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        grep -v '^#[0-9]' "$target.log" | tail -n 40 | sed 's/^/        /'
    fi
}

if ! has_fuzzer; then
    for name in "$@"; do printf '%-7s %-13s %s\n' SKIPPED "$name" "no clang, or no libFuzzer"; done
    skipped=$#
else
    targets=
    for name in "$@"; do targets="$targets build/fuzz/$name"; done
    # The outer make's flags would pass on its job server; this one has its own number of jobs.
    MAKEFLAGS='' MFLAGS='' $MAKE --no-print-directory -s -k -j"$JOBS" $targets
    built=$?
    for name in "$@"; do
        if [ $built = 0 ] || MAKEFLAGS='' $MAKE -q "build/fuzz/$name" 2>/dev/null; then
            fuzz "$name"
        else
            printf '%-7s %-13s %s\n' FAILED "$name" "did not build"
            failed=$((failed + 1))
        fi
    done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
