/* Fault injection: the command of build/mtan runs into every failure of the system that it can meet, one at a time.
 *
 *     faults short|long COMMAND PRELOAD [CASE]
 *
 * FAULTS_DIR is where its folder is made, FAULTS_KEEP keeps it.
 *
 * After each fault: no signal ended it; its status is 0, 1 or 2, with a message unless it is 0; every output is the old file or a whole
 * new one; nothing is left over; status 0 means the output of the good run; and the next run comes to where the good run came. Then
 * power cuts and kills. The last line is the sum: N passed, N failed, N skipped. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "checks.h"

enum { SHORT_KILLS = 40, LONG_KILLS = 1000 };

static int sum(const score *s) {
    printf("%u passed, %u failed, %u skipped\n", s->passed, s->failed, s->skipped);
    return s->failed > 0;
}

static void check_case(fault_case *c, const place *p, int thorough, unsigned long counts[3], score *s) {
    if (case_needs_more(c, p)) {
        s->skipped++, printf("%-8s%-13s the command was built without zlib\n", "SKIPPED", c->name);
        return;
    }
    if (!case_open(c, p)) {
        s->failed++;
        return;
    }
    counts[0] += check_faults(c, p, thorough, s);
    if (thorough || !case_is_large(c)) counts[1] += check_power(c, p, s);
    if (c->run == FROM_START)
        counts[2] += check_kills(c, p, thorough ? LONG_KILLS : SHORT_KILLS, thorough ? (uint64_t)time(NULL) : 1, s);
    case_close(c);
}

int main(int argc, char **argv) {
    const int thorough = argc > 1 && strcmp(argv[1], "long") == 0;
    unsigned long counts[3] = {0, 0, 0};
    score s = {0, 0, 0, 0};
    tree data, data_after;
    int cases = 0;
    place p;
    if (argc < 4) return fprintf(stderr, "usage: faults short|long COMMAND PRELOAD [CASE]\n"), 2;
    place_open(&p, argv[2], argv[3]);
    cases_data(&p);
    data = tree_read(place_path(&p, "data"));
    for (fault_case *c = fault_cases; c->name; c++)
        if (argc < 5 || strcmp(argv[4], c->name) == 0) cases++, check_case(c, &p, thorough, counts, &s);
    if (cases == 0) s.failed++, printf("FAILED  there is no case of this name\n");
    data_after = tree_read(place_path(&p, "data"));
    if (tree_difference(&data, &data_after)) s.failed++, printf("FAILED  an input was changed\n");
    else s.passed++, printf("ok      no input was changed\n");
    tree_free(&data), tree_free(&data_after);
    place_close(&p);
    printf("%lu faults, %lu states after power cuts, %lu signals, %lu runs of the command\n", counts[0], counts[1],
           counts[2], s.runs);
    return sum(&s);
}
