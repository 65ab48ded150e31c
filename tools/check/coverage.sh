#!/bin/sh
# Which lines and branches the tests reach: runs build/coverage/run-tests, suite by suite, asks gcov, prints a row per file
# and the sum of each area, and fails below an area's limit.
#
#   coverage.sh JOBS [FILE [SUITE...]]   FILE (a file, or a folder as tools/data/) shows that part alone, and each line of it that was
#                                        not reached with its source text. With SUITEs those alone run, and what they reach is
#                                        added to what was reached before; without, all run and counting starts from nothing.
#
# How branches are counted. gcov counts the edges of gcc's control flow graph as the front end made it: at -O0 nothing has been
# merged, doubled or split by then, so `a && b` has four branches, a loop two, a switch one for each target and one for none
# of its labels, and a comparison of floats two as any other has. (The two jumps that a comparison with NaN takes on x86 are made
# after the counters.) A condition that is constant has no branch. So every branch that gcov prints counts, whether its line ran or not.
# A source that several objects contain: what is in simd/ counts once for each object, so that every instruction set has to be
# reached; lines and branches of other sources are reached if one object reaches them. Where macros give a line another number of
# branches in one object than in another, each form of it counts on its own.
#
# tests/coverage_exempt.txt names what cannot be reached, and why. An entry is a paragraph:
#
#   file function 3 lines        or   file function 2 branches
#   text of that source line, or enough of it to be found once in the function
#   the reason, in as many lines as it needs
#
# `3 lines` takes the line and the next two that have code out of the count, with their branches; `2 branches` two branches of the
# line that were not taken. An entry that finds no line or several, that was reached after all, or has no reason, is an error.
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
