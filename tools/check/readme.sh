#!/bin/sh
# Checks the README: at most 200 lines of 110 columns, the program of the manual word for word, links that lead
# somewhere, and transcripts that are run. In a block ```console a line "$ command" is run (with the "> " lines after
# it), and the lines that follow must be its output, where a line "..." stands for any number of lines.
#   readme.sh DEMO      DEMO is the program behind `make demo`
set -eu
cd "$(dirname "$0")/../.."
root=$PWD work=build/readme demo=$1 bad=0
fail() { echo "mtan: README.md: $*" && bad=1; }

[ "$(wc -l <README.md)" -le 200 ] || fail "more than 200 lines"
awk 'length($0) > 110 { print "mtan: README.md:" FNR ": more than 110 columns"; bad = 1 } END { exit bad }' README.md || bad=1
links() { awk '{ while (match($0, /\]\([^)#]*\)/)) { print substr($0, RSTART + 2, RLENGTH - 3); $0 = substr($0, RSTART + RLENGTH) } }' "$1"; }
for link in $(links README.md | grep -v '^https:' | sort -u); do
    [ -e "$link" ] || fail "no such file: $link"
done

rm -rf $work && mkdir -p $work
sed -n '/^ \*     --- program ---$/,/^ \*     --- end ---$/p' mtan.h | sed -e '1d;$d' -e 's/^ \*     //' -e 's/^ \*$//' >$work/manual.c
sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >$work/readme.c
cmp -s $work/manual.c $work/readme.c || fail "its program is not that of mtan.h"

# Every command with its expected output: NNN.sh, NNN.expected.
awk -v dir=$work '
    function name() { return sprintf("%s/%03d", dir, n) }
    /^```console$/ { inside = 1; next }
    /^```$/ { inside = 0 }
    !inside { next }
    /^\$ / { n++; command = 1; print substr($0, 3) >(name() ".sh"); printf "" >(name() ".expected"); next }
    /^> / && command { print substr($0, 3) >(name() ".sh"); next }
    { command = 0; print >(name() ".expected") }' README.md

matches() { # expected, got
    awk 'NR == FNR { want[++n] = $0; next } { got[++m] = $0 }
        END {
            i = j = 1; star = 0
            while (j <= m) {
                if (i <= n && want[i] == "...") { star = ++i; back = j; continue }
                if (i <= n && want[i] == got[j]) { i++; j++; continue }
                if (star) { i = star; j = ++back; continue }
                exit 1
            }
            while (i <= n && want[i] == "...") i++
            exit i <= n
        }' "$1" "$2"
}

# The commands of a block run one after the other in one folder; make demo runs the demo that is already built.
PATH=$root/build:$PATH
cd $work
for script in [0-9]*.sh; do
    step=${script%.sh}
    case $(cat "$script") in
    "make demo") (cd "$root" && "$demo") >"$step.got" 2>&1 || fail "make demo failed" ;;
    *) printf 'cd "%s"\n' "$(cat folder 2>/dev/null || echo "$root/$work")" >step.sh
        sed "s|^tools/|$root/tools/|" "$script" >>step.sh
        printf 'pwd >"%s/folder"\n' "$root/$work" >>step.sh
        sh step.sh >"$step.got" 2>&1 || fail "$(head -n 1 "$script"): failed" ;;
    esac
    matches "$step.expected" "$step.got" && continue
    fail "$(head -n 1 "$script") prints something else:" && diff "$step.expected" "$step.got" || :
done
exit $bad
