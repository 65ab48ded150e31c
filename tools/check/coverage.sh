#!/bin/sh
# Measures which lines and branches the tests reach: runs build/coverage/run-tests, suite by suite, calls gcov, prints a
# row per file and the sum of each area, and fails below an area's limit.
#
#   coverage.sh JOBS [FILE [SUITE...]]   FILE (a file, or a folder such as tools/data/) shows only that part, with the source text of
#                                        each line that was not reached. With SUITEs, only those run, and what they reach is added to
#                                        the earlier counts; without, all suites run and counting starts from zero.
#
# How branches are counted. gcov counts the edges of the control flow graph of gcc's front end. At -O0 nothing is
# merged, doubled or split by then, so `a && b` has four branches, a loop two, a switch one for each target and one for
# no matching label, and a comparison of floats two like any other. (The two jumps of a comparison with NaN on x86 are
# generated after the counters.) A constant condition has no branch. So every branch that gcov prints counts, whether
# its line ran or not. Sources that several objects contain: those in simd/ count once for each object, so that every
# instruction set has to be reached; lines and branches of other sources are reached if one object reaches them. If
# macros give a line different numbers of branches in different objects, each form of it counts separately.
#
# tests/coverage_exempt.txt lists what cannot be reached, and why. An entry is a paragraph:
#
#   file function 3 lines        or   file function 2 branches
#   text of that source line, or enough of it to be found once in the function
#   the reason, in as many lines as it needs
#
# `3 lines` exempts the line and the next two lines with code, with their branches; `2 branches` exempts two branches of
# the line that were not taken. An entry is an error if it matches no line or several lines, was reached after all, or
# has no reason.
set -eu
cd "$(dirname "$0")/../.."
jobs=$1 only=${2-}
shift $(($# > 1 ? 2 : 1))
folder=build/coverage log=build/coverage/log

run() {
    if [ $# = 0 ]; then
        find $folder -name '*.gcda' -exec rm -f {} +
        set -- $(sed -n 's/^X(\([a-z0-9_]*_suite\))$/\1/p' tests/suites.h)
    fi
    mkdir -p $log
    for suite; do echo "$suite"; done |
        xargs -P "$jobs" -I@ sh -c "$folder/run-tests -v -e -s @ >$log/@ 2>&1 || { echo 'FAILED @: $log/@'; exit 1; }"
}

report() {
    find $folder -name '*.gcno' ! -path '*/tests/*' | LC_ALL=C sort | while read -r notes; do gcov -b -c -t "$notes" 2>/dev/null; done |
        awk -v only="$only" -f tools/check/coverage.awk tests/coverage_exempt.txt -
}

# Sources that do not belong to the tests: separate programs, other machines.
others() {
    printf '\nnot part of the tests, and not counted:'
    find mtan.c simd tools platform -name '*.c' | LC_ALL=C sort | while read -r source; do
        [ -e "$folder/${source%.c}.gcno" ] || printf ' %s' "$source"
    done
    echo
}

ran=0
run "$@" || ran=1
report || ran=1
[ -n "$only" ] || others
exit $ran
