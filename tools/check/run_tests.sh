#!/bin/sh
# Runs the tests of `make test` and adds up the results.
#
#   run_tests.sh all JOBS NAME:REASON...   makes test-NAME for each NAME without a REASON for skipping; then prints the sum on
#                                          the last line; status 1 if anything failed
#   run_tests.sh one NAME BINARY ARG...    runs one test binary; its output goes to build/NAME/log
#   run_tests.sh check NAME COMMAND...     runs a command whose exit status is the verdict
#
# `one` and `check` print one line, followed by the reason if something failed, and write "passed failed skipped" to
# build/results/NAME. If there is no such file after the run, the test never ran: that is a failure. When called
# directly, as by `make test-gcc-float`, each ends with status 1 if something failed; under `all` the sum decides.
set -u
cd "$(dirname "$0")/../.." || exit 2
results=build/results
limit=1200 # seconds: a test that hangs is a failure; on a busy machine the slowest takes some minutes

record() { # name, passed, failed, skipped, log
    if [ "$3" = 0 ]; then verdict=ok; else verdict=FAILED; fi
    printf '%-7s %-13s %s passed, %s failed, %s skipped\n' "$verdict" "$1" "$2" "$3" "$4"
    grep '^SKIP ' "$5" | sed 's/^/        /'
    if [ "$3" != 0 ]; then
        grep -vE '^(PASS |SKIP |  ok |\* Suite |[0-9]+ tests? - |Total: |Pass: |$)' "$5" | tail -n 60 | sed 's/^/        /'
    fi
    mkdir -p $results && echo "$2 $3 $4" >"$results/$1" || exit 2
    [ "$3" = 0 ] || [ -n "${MTAN_TESTS_SUMMED:-}" ]
    exit
}

limited() { if command -v timeout >/dev/null 2>&1; then timeout "$limit" "$@"; else "$@"; fi; }

one() {
    name=$1 log=build/$1/log
    shift
    limited "$@" >"$log" 2>&1
    status=$?
    # greatest ends with "Pass: 12, fail: 0, skip: 1."; without that line the program crashed, and the tests passed
    # before still count.
    set -- $(sed -n 's/^Pass: \([0-9]*\), fail: \([0-9]*\), skip: \([0-9]*\)\.$/\1 \2 \3/p' "$log" | tail -n 1)
    if [ $# != 3 ]; then
        [ $status != 124 ] || echo "took longer than $limit seconds" >>"$log"
        echo "ended with status $status in the middle of the tests" >>"$log"
        set -- "$(grep -c '^PASS ' "$log")" "$(($(grep -c '^FAIL ' "$log") + 1))" "$(grep -c '^SKIP ' "$log")"
    elif [ $status != 0 ] && [ "$2" = 0 ]; then # for example a leak, found at exit
        echo "ended with status $status" >>"$log"
        set -- "$1" 1 "$3"
    fi
    record "$name" "$@" "$log"
}

check() {
    name=$1 log=$results/$1.log
    shift
    mkdir -p $results || exit 2
    if limited "$@" >"$log" 2>&1; then record "$name" 1 0 0 "$log"; else record "$name" 0 1 0 "$log"; fi
}

all() {
    jobs=$1
    shift
    rm -rf $results && mkdir -p $results || exit 2
    run=
    for t in "$@"; do [ -n "${t#*:}" ] || run="$run test-${t%%:*}"; done
    # The outer make's flags would pass on its job server; this one has its own number of jobs. Old makes print output
    # as it comes.
    case $($MAKE --help) in *--output-sync*) sync=-Otarget ;; *) sync= ;; esac
    [ -z "$run" ] || MTAN_TESTS_SUMMED=1 MAKEFLAGS='' MFLAGS='' $MAKE --no-print-directory -k -j"$jobs" $sync $run 2>&1
    passed=0 failed=0 skipped=0
    for t in "$@"; do
        name=${t%%:*} reason=${t#*:}
        if [ -n "$reason" ]; then
            set -- 0 0 1
            printf '%-7s %-13s %s\n' SKIPPED "$name" "$reason"
        elif [ -f "$results/$name" ]; then
            set -- $(cat "$results/$name")
        else
            set -- 0 1 0
            printf '%-7s %-13s %s\n' FAILED "$name" "did not build"
        fi
        passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ] && [ $passed != 0 ]
}

"$@"
