#!/bin/sh
# Writes DIR/events.csv and DIR/labels.csv: 400 made-up patients with three channels measured at irregular hours; the
# trend in the second half of the day distinguishes sick from well patients. The README's session uses them.
#   example.sh DIR
set -eu
mkdir -p "$1"
awk -v dir="$1" '
    function uniform() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 } # the same draws with every awk
    function normal() { return sqrt(-2 * log(uniform())) * cos(6.2831853 * uniform()) }
    BEGIN {
        seed = 2021
        print "record,time,channel,value" >(dir "/events.csv")
        print "record,label" >(dir "/labels.csv")
        split("temperature pulse pressure", name, " ")
        base[1] = 37; base[2] = 80; base[3] = 120; spread[1] = 0.5; spread[2] = 8; spread[3] = 10
        for (r = 1; r <= 400; r++) {
            sick = uniform() < 0.4
            n = 6 + int(20 * uniform())
            for (k = 0; k < n; k++) {
                hour = 24 * uniform()
                c = 1 + int(3 * uniform())
                drift = sick && hour > 12 ? (hour - 12) / 8 : 0
                if (c == 3) drift = -drift
                printf "p%03d,%.2f,%s,%.1f\n", r, hour, name[c], base[c] + spread[c] * (normal() + drift) >(dir "/events.csv")
            }
            printf "p%03d,%s\n", r, sick ? "sick" : "well" >(dir "/labels.csv")
        }
    }'
