#!/bin/sh
# Compares the results of builds of mtan.c: build/bits/COMPILER-LEVEL-CLASS.txt, the output of
# tests/library/bits_dump.c. Within a class all must be equal; prints one line per build, followed by the first lines
# that differ. Exit status 1 if any differs.
set -u
[ $# -gt 1 ] || { echo "mtan: $0: nothing to compare"; exit 2; }
bad=0
for class in unfused fused; do
    first=
    for file in "$@"; do
        case $file in *-"$class".txt) ;; *) continue ;; esac
        [ -s "$file" ] || { echo "mtan: $0: $file is empty"; exit 2; }
        : "${first:=$file}"
        verdict=same
        cmp -s "$first" "$file" || verdict=DIFFERS bad=1
        printf '%-20s %s lines, checksum %s %s\n' "$(basename "$file" .txt)" "$(wc -l <"$file")" "$(cksum <"$file" | cut -d' ' -f1)" $verdict
        [ $verdict = same ] || diff "$first" "$file" | head -n 12
    done
done
exit $bad
