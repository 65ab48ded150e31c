#!/bin/sh
# Checks the layers of the command: a folder includes from itself and from folders before it in this list, never from
# one behind it. Prints file:line of each offence; exit status 1 if there is any.
set -eu
cd "$(dirname "$0")/../.."
layers=$(echo data baselines mtan/base mtan/options mtan/run mtan/measure mtan/model mtan/fit mtan/torch mtan/paper \
    mtan/report mtan/check mtan/command mtan/flat)
for folder in tools/mtan/*/; do
    folder=${folder#tools/}
    case " $layers " in *" ${folder%/} "*) ;; *) echo "mtan: tools/$folder is in no layer of $0"; exit 1 ;; esac
done
# shellcheck disable=SC2046,SC2086 # no name of a source file has a blank
awk -v layers="$layers" '
    BEGIN { n = split(layers, name, " "); for (i = 1; i <= n; i++) place["tools/" name[i]] = i }

    # The folder of an included file, without "..".
    function folder_of(path,    part, kept, n, m, i) {
        n = split(path, part, "/"); m = 0
        for (i = 1; i < n; i++) if (part[i] == "..") m--; else kept[++m] = part[i]
        path = m > 0 ? kept[1] : ""
        for (i = 2; i <= m; i++) path = path "/" kept[i]
        return path
    }

    FNR == 1 { here = FILENAME; sub(/\/[^\/]*$/, "", here) }
    /^#include "/ {
        split($0, quoted, "\"")
        there = folder_of(here "/" quoted[2])
        if (!(there in place) || place[there] <= place[here]) next
        print FILENAME ":" FNR ": " here " comes before " there
        bad = 1
    }
    END { exit bad }' $(for layer in $layers; do find "tools/$layer" -maxdepth 1 -name '*.[ch]'; done | sort)
