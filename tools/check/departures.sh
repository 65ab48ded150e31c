#!/bin/sh
# Checks the numbers of departures, Q17 and the like: each number that a source file or golden/README.md cites must have
# a heading and a row in golden/departures.md. None may appear where users read: mtan.h, README.md, the tables of
# results, pages, and string literals in C, which become help, messages and reports. Prints file:line of each offence;
# exit status 1 if there is any.
set -eu
cd "$(dirname "$0")/../.."
document=golden/departures.md
sources=$(find . \( -name .git -o -path ./build -o -path ./runs \) -prune -o -type f \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' \
    -o -name '*.inc' -o -name '*.py' -o -name '*.sh' -o -name '*.js' -o -name '*.html' -o -name Makefile -o -name "*.mk" -o -path './.ci/run' \) -print |
    sed 's/^\.\///' | sort)
# shellcheck disable=SC2086 # no name of a source file has a blank
awk -v document=$document '
    function offence(what) { print FILENAME ":" FNR ": " what; bad = 1 }

    # Calls judge for every number in a text.
    function numbers(text, shown,    before) {
        while (match(text, /Q[0-9]+/)) {
            before = RSTART == 1 ? "" : substr(text, RSTART - 1, 1)
            if (before !~ /[A-Za-z0-9_]/ && substr(text, RSTART + RLENGTH, 1) !~ /[A-Za-z0-9_]/)
                judge(substr(text, RSTART, RLENGTH), shown)
            text = substr(text, RSTART + RLENGTH)
        }
    }
    function judge(number, shown) {
        if (shown) offence(number " stands where users read it: say it in words")
        else if (!(number in heading)) offence(number " is not explained in " document)
    }

    # The string literals of a line of C.
    function literals(line,    token) {
        while (match(line, in_comment ? "[*]/" : "\"([^\"\\\\]|\\\\.)*\"|\047([^\047\\\\]|\\\\.)+\047|/[*]|//")) {
            token = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
            if (token == "//") return
            in_comment = token == "/*"
            if (token ~ /^"/) numbers(token, 1)
        }
    }

    FNR == 1 {
        in_comment = 0
        is_c = FILENAME ~ /\.(c|h|cpp|cu|inc)$/
        for_users = FILENAME ~ /^(mtan\.h|README\.md)$|\.(txt|html)$/
    }
    NR == FNR { # the document, first pass: the numbers that it explains
        if ($1 == "###") { sub(/:$/, "", $2); heading[$2] = FNR }
        if (/^\| Q[0-9]+ \|/) row[$2] = 1
        next
    }
    { numbers($0, for_users) }
    is_c && !for_users { literals($0) }
    END {
        for (number in heading)
            if (!(number in row)) { print document ":" heading[number] ": " number " has no row in the table"; bad = 1 }
        exit bad
    }' $document $document golden/README.md README.md tools/mtan/paper/results.md $sources
