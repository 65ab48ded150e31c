# Adds up what gcov prints; see coverage.sh.   awk -v only=FILE -f coverage.awk coverage_exempt.txt gcov-output
BEGIN {
    # areas: the prefixes of their files, and the required percentage of lines and of branches
    areas = split("mtan.c simd/ tools/ platform/", area, " ")
    limit_lines["mtan.c"] = 100; limit_branches["mtan.c"] = 100
    limit_lines["simd/"] = 100; limit_branches["simd/"] = 100
    limit_lines["tools/"] = 95; limit_branches["tools/"] = 90
}

function complain(what) {
    print "mtan: tests/coverage_exempt.txt: " what
    bad = 1
}

function area_of(name, i) {
    for (i = 1; i <= areas; i++)
        if (index(name, area[i]) == 1) return area[i]
    return ""
}

# ---- the exemptions: paragraphs ----

FILENAME == ARGV[1] {
    if ($0 ~ /^#/) next
    if ($0 ~ /^[ \t]*$/) { part = 0; next }
    part++
    if (part == 1) {
        exempt = ++exempts
        head[exempt] = $0
        exempt_file[exempt] = $1; exempt_function[exempt] = $2
        exempt_lines[exempt] = $4 ~ /^lines?$/ ? $3 + 0 : 0
        exempt_branches[exempt] = $4 ~ /^branch(es)?$/ ? $3 + 0 : 0
        if (exempt_lines[exempt] + exempt_branches[exempt] < 1) complain($0 ": no number of lines or branches")
    } else if (part == 2) {
        sub(/^[ \t]+/, ""); sub(/[ \t]+$/, "")
        exempt_text[exempt] = $0
    } else reason[exempt] = 1
    next
}

# ---- the output of gcov: lines, and the branches of each ----

function finish_line(key) { # its branches are complete
    if (at == "" || !n) return
    key = at SUBSEP n
    if (!(key in forms)) { forms[key] = 1; lists[at] = lists[at] " " n }
    for (i = 1; i <= n; i++) taken[key, i] += arm[i]
    n = 0
}

/^ *[-#=0-9*]+: *[0-9]+:/ {
    finish_line()
    at = ""
    split($0, field, ":")
    number = field[2] + 0
    text = substr($0, length(field[1]) + length(field[2]) + 3)
    if (number == 0) {
        if (text ~ /^Source:/) {
            file = substr(text, 8)
            wanted = area_of(file) != "" && (only == "" || index(file, only) == 1)
            named = grouped = ""
        }
        if (text ~ /^Graph:/) object = index(file, "simd/") == 1 ? substr(text, 7) : "" # a separate object for each instruction set
        next
    }
    if (!wanted) next
    if (field[1] ~ /-/) next
    at = file SUBSEP number SUBSEP grouped SUBSEP object
    if (!(at in count)) {
        if (!(file in lines)) files[++file_count] = file
        order[file, ++lines[file]] = at
        number_of[at] = number; text_of[at] = text
        function_of[at] = grouped != "" ? grouped : named
    }
    value = field[1]
    gsub(/[ *]/, "", value)
    count[at] += value ~ /^[0-9]+$/ ? value : 0
    next
}
/^function / { finish_line(); named = $2; next }
/^-----/ { finish_line(); at = ""; getline; grouped = $0 ~ /^[A-Za-z_0-9.]+:$/ ? substr($0, 1, length($0) - 1) : ""; next }
/^branch / { if (at != "") arm[++n] = $3 == "taken" ? $4 : 0 }

# ---- the report ----

function missed(at, k, i, m, list) { # branches that were not taken; their total goes to `all`
    m = all = 0
    split(lists[at], list, " ")
    for (k in list)
        for (i = 1; i <= list[k]; i++) { all++; if (!taken[at, list[k], i]) m++ }
    return m
}

function apply(e, i, at, file, found, last) {
    file = exempt_file[e]
    if (only != "" && index(file, only) != 1) return
    if (!reason[e]) complain(head[e] ": no reason is given")
    for (i = 1; i <= lines[file]; i++) {
        at = order[file, i]
        if (function_of[at] != exempt_function[e] || !index(text_of[at], exempt_text[e])) continue
        if (number_of[at] != last) found++
        last = number_of[at]
        spare(e, file, i)
    }
    if (found != 1) complain(head[e] ": " (found ? found " lines of that function have that text: " : "no such line: ") exempt_text[e])
}

function spare(e, file, k, i, at) { # the k-th line of the file
    for (i = k; i < k + exempt_lines[e]; i++) {
        at = order[file, i]
        if (count[at] || function_of[at] != exempt_function[e]) complain(head[e] ": was reached, or is elsewhere:" text_of[at])
        else left_out[at] = 1
    }
    at = order[file, k]
    if (missed(at) < (spared[at] += exempt_branches[e])) {
        complain(head[e] ": only " missed(at) " are not taken: " exempt_text[e])
        spared[at] = missed(at)
    }
}

function row(name, l, lt, b, bt) {
    printf "%-44s %6d of %6d lines %6.2f %%   %6d of %6d branches %6.2f %%", name, l, lt, share(l, lt), b, bt, share(b, bt)
}

# Rounded down, so that 100 means all.
function share(part, whole) { return whole ? int(10000 * part / whole) / 100 : 100 }

function report_file(file, i, at, m, l, lt, b, bt, none) {
    for (i = 1; i <= lines[file]; i++) {
        at = order[file, i]
        if (left_out[at]) { exempt_sum[area_of(file)]++; continue }
        m = missed(at) - spared[at]
        exempt_sum[area_of(file)] += spared[at]
        lt++; l += count[at] > 0
        bt += all - spared[at]; b += all - spared[at] - m
        if (only != "" && !count[at]) printf "%s:%d: %s: not reached:%s\n", file, number_of[at], function_of[at], text_of[at]
        else if (only != "" && m) printf "%s:%d: %s: %d of %d branches not taken (%s):%s\n", file, number_of[at], function_of[at], m, all, which(at), text_of[at]
    }
    row(file, l, lt, b, bt); print ""
    sums[area_of(file), 1] += l; sums[area_of(file), 2] += lt; sums[area_of(file), 3] += b; sums[area_of(file), 4] += bt
}

function which(at, k, i, list, text) { # the counts of its branches
    split(lists[at], list, " ")
    for (k = 1; k in list; k++) {
        text = text (k > 1 ? "; " : "")
        for (i = 1; i <= list[k]; i++) text = text (i > 1 ? " " : "") taken[at, list[k], i]
    }
    return text
}

function report_area(a, l, b) {
    if (!sums[a, 2]) return
    print ""
    row(a == "mtan.c" ? a : a " in all", sums[a, 1], sums[a, 2], sums[a, 3], sums[a, 4])
    if (exempt_sum[a]) printf "   (%d exempt)", exempt_sum[a]
    print ""
    if (!(a in limit_lines)) return
    l = share(sums[a, 1], sums[a, 2]); b = share(sums[a, 3], sums[a, 4])
    if (l < limit_lines[a] || b < limit_branches[a]) {
        printf "mtan: %s is below its limit of %d %% of lines and %d %% of branches\n", a, limit_lines[a], limit_branches[a]
        bad = 1
    }
}

END {
    finish_line()
    for (e = 1; e <= exempts; e++) apply(e)
    for (a = 1; a <= areas; a++) {
        for (f = 1; f <= file_count; f++)
            if (area_of(files[f]) == area[a]) report_file(files[f])
    }
    for (a = 1; a <= areas; a++) report_area(area[a])
    if (!file_count) { print "mtan: no such file, or nothing has run: " only; bad = 1 }
    exit bad
}
