/* The Human Activity loader on a small file that the reference's own loader has cut into windows
 * (golden/data-activity.safetensors), on bad lines, and on the data themselves when MTAN_ACTIVITY names their folder. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "golden_events.h"
#include "golden_file.h"
#include "../../tools/data/activity.h"
#include "../../tools/data/prep.h"

#define GOLDEN "data-activity.safetensors"
#define FILE_NAME "ConfLongDemo_JSI.txt"

static char folder[64]; /* of the test that runs */

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void open_folder(void) {
    strcpy(folder, "build/activity-XXXXXX");
    if (!mkdtemp(folder)) perror("mtan: build"), exit(2);
}

static void close_folder(void) {
    remove(in_folder(FILE_NAME));
    rmdir(folder);
}

static void write_file(const char *text, size_t n) {
    FILE *f = fopen(in_folder(FILE_NAME), "wb");
    if (!f || fwrite(text, 1, n, f) != n || fclose(f) != 0) perror("mtan: build"), exit(2);
}

/* Labels and their times of the golden windows, from record `first` of the data set on. */
static int same_labels(const dataset *d, size_t first, const char *prefix) {
    char name[64];
    size_t n, m;
    snprintf(name, sizeof name, "%s.label", prefix);
    int32_t *label = golden_list(GOLDEN, name, MTAN_DTYPE_I32, &n);
    snprintf(name, sizeof name, "%s.label.time", prefix);
    float *time = golden_list(GOLDEN, name, MTAN_DTYPE_F32, &m);
    int good = label && time && n == m && n % ACTIVITY_ROWS == 0 && n > 0;
    for (size_t i = 0; good && i < n; i++) {
        const dataset_record *r = &d->records[first + i / ACTIVITY_ROWS];
        const size_t at = r->label0 + i % ACTIVITY_ROWS;
        good = r->n_labels == ACTIVITY_ROWS && d->labels[at] == label[i] && d->label_times[at] == (mtan_real)time[i];
        if (!good) printf("  BAD window %zu, row %zu\n", first + i / ACTIVITY_ROWS, i % ACTIVITY_ROWS);
    }
    return guard_free(label) & guard_free(time) & good;
}

/* Repeats within a tick, labels that change within one, a clock that goes back, the label that the reference loses. */
TEST crafted_windows_are_the_references(void) {
    size_t bytes, lost = 0;
    char *text = golden_list(GOLDEN, "crafted.text", MTAN_DTYPE_U8, &bytes);
    golden_events g;
    dataset d, correct;
    ASSERT(text && golden_events_read(&g, GOLDEN, "crafted"));
    open_folder();
    write_file(text, bytes);
    if (!activity_load(&d, folder, MTAN_FAITHFUL)) FAILm(d.error);
    ASSERT_EQ(g.records, arrlenu(d.records));
    for (size_t i = 0; i < g.records; i++) ASSERT(same_events(&d, i, &g, i));
    ASSERT(same_labels(&d, 0, "crafted"));
    ASSERT_STR_EQ("A01-0", dataset_name(&d, 0));
    ASSERT_STR_EQ("D03-0", dataset_name(&d, g.records - 1));
    ASSERT(d.records[0].group == 0 && d.records[g.records - 1].group == 3);
    ASSERT_EQ(ACTIVITY_CHANNELS, arrlen(d.channels));
    ASSERT_STR_EQ("ankle-left.x", d.channels[0]);
    ASSERT_STR_EQ("belt.z", d.channels[11]);
    ASSERT_EQ(ACTIVITY_CLASSES, arrlen(d.classes));
    ASSERT_STR_EQ("standing up", d.classes[4]);
    ASSERT_STR_EQ("unused-7", d.classes[7]);
    ASSERT_STR_EQ("10 ms", d.unit);
    ASSERT(arrlen(d.notes) == 1 && strstr(d.notes[0], "count as walking"));
    if (!activity_load(&correct, in_folder(FILE_NAME), MTAN_CORRECT)) FAILm(correct.error);
    ASSERT(arrlenu(d.labels) == arrlenu(correct.labels) && arrlen(correct.notes) == 0);
    for (size_t i = 0; i < arrlenu(d.labels); i++) {
        if (d.labels[i] == correct.labels[i]) continue;
        ASSERT(correct.labels[i] == 4 && (d.labels[i] == 0 || d.labels[i] > 4));
        lost += d.labels[i] == 0;
    }
    ASSERT(lost > 0);
    dataset_free(&d), dataset_free(&correct);
    close_folder();
    ASSERT(guard_free(text) & golden_events_free(&g));
    PASS();
}

#define TAG "010-000-024-033"
#define DATE "27.05.2009 14:03:25:127"
#define GOOD "A01," TAG ",633790226051280329," DATE ",4,1,0,walking\n"

TEST a_bad_line_is_named(void) {
    static const char *const bad[][2] = {
        {"", "no sequence of more than 50 rows"},
        {GOOD, "no sequence of more than 50 rows"},
        {GOOD "A01," TAG ",1," DATE ",4,1,walking\n", FILE_NAME ":2: not eight fields"},
        {GOOD "A01," TAG ",1," DATE ",4,1,0,walking,\n", FILE_NAME ":2: not eight fields"},
        {GOOD "A01,020,633790226051280329," DATE ",4,1,0,walking\n", FILE_NAME ":2: not one of the four tags: '020'"},
        {GOOD "\nA01," TAG ",633790226051280329," DATE ",4,1,0,flying\n", FILE_NAME ":3: not a label of this data set"},
        {"A01," TAG ",," DATE ",4,1,0,walking\n", FILE_NAME ":1: not a number: ''"},
        {"A01," TAG ",1," DATE ",4,inf,0,walking\n", FILE_NAME ":1: not a number: 'inf'"},
        {"A01," TAG ",1," DATE ",4,1,0x,walking\n", FILE_NAME ":1: not a number: '0x'"},
        {GOOD "A01," TAG ",1," DATE ",4,1,0,walking\n", FILE_NAME ":2: a clock far from"},
        {"01," TAG ",1," DATE ",4,1,0,walking\n", FILE_NAME ":1: not a sequence's name"},
        {"A0123456789012345," TAG ",1," DATE ",4,1,0,walking\n", FILE_NAME ":1: not a sequence's name"},
        {GOOD "A02," TAG ",1," DATE ",4,1,0,walking\n" GOOD, FILE_NAME ":3: a sequence that ended above begins again"}};
    dataset d;
    open_folder();
    ASSERT(!activity_load(&d, folder, MTAN_FAITHFUL) && strstr(d.error, "holds no ConfLongDemo"));
    ASSERT(!activity_load(&d, in_folder("nowhere"), MTAN_FAITHFUL) && strstr(d.error, "nowhere: "));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(bad[i][0], strlen(bad[i][0]));
        ASSERT_EQ(0, activity_load(&d, folder, MTAN_FAITHFUL));
        if (strncmp(d.error, "build/", 6) != 0 || !strstr(d.error, bad[i][1])) FAILm(d.error);
    }
    close_folder();
    PASS();
}

/* Windows while offset + 50 < rows: 50 rows make none, 51 one, 76 two. */
TEST windows_follow_each_other(void) {
    static const struct {
        int rows;
        size_t windows;
    } cases[] = {{50, 0}, {51, 1}, {75, 1}, {76, 2}};
    static char text[32768];
    dataset d;
    open_folder();
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int n = 0;
        for (int i = 0; i < cases[c].rows; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "B01," TAG ",%d," DATE ",%d,1,0,lying\n", i * 100000, i);
        write_file(text, (size_t)n);
        ASSERT_EQ_FMT(cases[c].windows > 0, activity_load(&d, folder, MTAN_CORRECT), "%d");
        if (!cases[c].windows) continue;
        ASSERT_EQ(cases[c].windows, arrlenu(d.records));
        for (size_t w = 0; w < cases[c].windows; w++) {
            const dataset_record *r = &d.records[w];
            ASSERT(r->n_times == 50 && r->n_events == 150 && r->group == 1 && d.labels[r->label0 + 49] == 2);
            ASSERT(d.events[r->event0].value == (mtan_real)(25 * w) && d.events[r->event0].time == 0);
            ASSERT(d.events[r->event0 + 149].time == 49);
        }
        dataset_free(&d);
    }
    close_folder();
    PASS();
}

/* ---- the data themselves ---- */

static int same_counts(const int32_t *got, const char *tensor, size_t n) {
    size_t m;
    int32_t *expected = golden_list(GOLDEN, tensor, MTAN_DTYPE_I32, &m);
    const int good = expected && m == n && check_same(tensor, got, expected, n * sizeof *got);
    return guard_free(expected) & good;
}

TEST windows_are_the_references_to_the_bit(void) {
    const char *path = getenv("MTAN_ACTIVITY");
    int32_t people[5] = {0}, classes[ACTIVITY_CLASSES] = {0};
    golden_events g;
    dataset d;
    if (!path) SKIPm("MTAN_ACTIVITY does not name the folder that holds ConfLongDemo_JSI.txt");
    if (!activity_load(&d, path, MTAN_FAITHFUL)) REFUSED(d.error);
    ASSERT_EQ(6554, arrlenu(d.records));
    ASSERT(same_hashes(&d, GOLDEN, "hash"));
    ASSERT(golden_events_read(&g, GOLDEN, "few"));
    ASSERT(same_events(&d, 0, &g, 0) && same_events(&d, 6553, &g, 1));
    for (size_t i = 0; i < arrlenu(d.records); i++) people[d.records[i].group]++;
    for (size_t i = 0; i < arrlenu(d.labels); i++) classes[d.labels[i]]++;
    ASSERT(same_counts(people, "people", 5) && same_counts(classes, "classes", ACTIVITY_CLASSES));
    dataset_free(&d);
    ASSERT(golden_events_free(&g));
    PASS();
}

/* The parts of the published split, and what the script divides their times by (Q37). */
TEST split_and_time_scale_are_the_references(void) {
    static const char *const parts[] = {"train", "valid", "test"};
    const char *path = getenv("MTAN_ACTIVITY");
    char name[32], error[256];
    float longest;
    dataset d;
    split s;
    prep p;
    if (!path) SKIPm("MTAN_ACTIVITY does not name the folder that holds ConfLongDemo_JSI.txt");
    if (!activity_load(&d, path, MTAN_FAITHFUL)) REFUSED(d.error);
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_PUBLISHED, 0, 0, SPLIT_FOLD_COUNT, 42}, error));
    prep_fit(&p, &d, &s, PREP_TIMES, 0, NULL);
    for (int part = 0; part < SPLIT_PARTS; part++) {
        const int32_t n = (int32_t)arrlen(s.part[part]);
        int32_t ends[16];
        memcpy(ends, s.part[part], 8 * sizeof *ends);
        memcpy(ends + 8, s.part[part] + n - 8, 8 * sizeof *ends);
        snprintf(name, sizeof name, "%s.count", parts[part]);
        ASSERT(same_counts(&n, name, 1));
        snprintf(name, sizeof name, "%s.ends", parts[part]);
        ASSERT(same_counts(ends, name, 16));
        snprintf(name, sizeof name, "%s.time", parts[part]);
        ASSERT(golden_read(GOLDEN, name, MTAN_DTYPE_F32, &longest, 1));
        ASSERT_EQ((double)longest, p.time_scale[part]);
    }
    prep_free(&p), split_free(&s), dataset_free(&d);
    PASS();
}

SUITE(activity_suite) {
    RUN_TEST(crafted_windows_are_the_references);
    RUN_TEST(a_bad_line_is_named);
    RUN_TEST(windows_follow_each_other);
    RUN_TEST(windows_are_the_references_to_the_bit);
    RUN_TEST(split_and_time_scale_are_the_references);
}
