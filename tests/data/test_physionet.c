/* The PhysioNet loader on small files that the test writes itself, among them records that the reference's own loader
 * has parsed (golden/data-physionet.safetensors), and on set-a and set-b when MTAN_PHYSIONET names their folder. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef MTAN_ZLIB
#include <zlib.h>
#endif

#include "check.h"
#include "golden_events.h"
#include "../../tools/data/physionet.h"
#include "../../tools/data/prep.h"
#include "../../tools/data/split.h"

#define GOLDEN "data-physionet.safetensors"

#define HEADER "Time,Parameter,Value\n"
#define OUTCOMES "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n"

/* 00:12 and 00:36 are 12.5 and 37.5 quanta of 0.016 h: both go to the even neighbour. Rows out of order are allowed. */
#define FIRST                                                                                                          \
    HEADER "00:00,RecordID,2\n00:00,Age,54\n00:36,HR,90\n00:07,WBC,3\n00:07,HR,80\n00:07,WBC,4\n00:07,WBC,8\n00:12,"   \
           "HR,70\r\n"
#define SECOND HEADER "00:00,Age,-1\n47:59,Unknown,what\n48:00,HR,-30.5\n"

static char folder[64]; /* of the test that runs */

static void open_folder(void) {
    strcpy(folder, "build/physionet-XXXXXX");
    if (!mkdtemp(folder)) perror("mtan: build"), exit(2);
}

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t n) {
    FILE *f = fopen(in_folder(name), "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) perror("mtan: build"), exit(2);
}

static void close_folder(void) {
    static const char *const names[] = {"2.txt",       "10.txt",       "300.txt",        "4000.txt",
                                        "set-a/2.txt", "set-b/10.txt", "Outcomes-a.txt", "set-a.tar.gz",
                                        "set-a.tar",   "set-a",        "set-b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) remove(in_folder(names[i]));
    rmdir(folder);
}

static int same_event(mtan_event e, double time, int32_t channel, double value) {
    const int good = e.time == (mtan_real)(float)time && e.channel == channel && e.value == (mtan_real)(float)value;
    if (!good)
        printf("  BAD event (%g, %d, %g), expected (%g, %d, %g)\n", (double)e.time, (int)e.channel, (double)e.value,
               time, (int)channel, value);
    return good;
}

/* FIRST and SECOND as records 2 and 10. */
static int holds_both(const dataset *d) {
    const dataset_record *r = d->records;
    const mtan_event *e = d->events + r[0].event0, *f = d->events + r[1].event0;
    return arrlenu(r) == 2 && strcmp(dataset_name(d, 0), "2") == 0 && strcmp(dataset_name(d, 1), "10") == 0 &&
           r[0].n_times == 4 && r[0].n_events == 5 && r[1].n_times == 2 && r[1].n_events == 2 &&
           same_event(e[0], 0, 0, 54) && same_event(e[1], 7 * 0.016, 19, 80) && same_event(e[2], 7 * 0.016, 40, 5) &&
           same_event(e[3], 12 * 0.016, 19, 70) && same_event(e[4], 38 * 0.016, 19, 90) && same_event(f[0], 0, 0, -1) &&
           same_event(f[1], 3000 * 0.016, 19, -30.5);
}

TEST a_folder_of_texts_is_read(void) {
    dataset d;
    open_folder();
    write_bytes("10.txt", SECOND, sizeof SECOND - 1);
    write_bytes("2.txt", FIRST, sizeof FIRST - 1);
    write_bytes("Outcomes-a.txt", OUTCOMES "10,6,1,5,-1,1\n", sizeof OUTCOMES "10,6,1,5,-1,1\n" - 1);
    ASSERT(physionet_load(&d, folder, 'a'));
    ASSERT(holds_both(&d));
    ASSERT_EQ(PHYSIONET_CHANNELS, arrlen(d.channels));
    ASSERT_STR_EQ("Age", d.channels[0]);
    ASSERT_STR_EQ("WBC", d.channels[40]);
    ASSERT_STR_EQ("hours", d.unit);
    ASSERT_EQ(2, arrlen(d.classes));
    ASSERT_EQ(0, d.records[0].n_labels);
    ASSERT(d.records[1].n_labels == 1 && d.labels[d.records[1].label0] == 1);
    ASSERT_STR_EQ("1 of 2 records have no outcome", d.notes[0]);
    dataset_free(&d);
    close_folder();
    PASS();
}

/* What the reference's own loader makes of the same text: repeats, times that come back, half quanta, no event. */
TEST crafted_records_are_the_references(void) {
    size_t bytes, n;
    char *text = golden_list(GOLDEN, "crafted.text", MTAN_DTYPE_U8, &bytes), name[32];
    int32_t *offset = golden_list(GOLDEN, "crafted.offset", MTAN_DTYPE_I32, &n);
    int32_t *id = golden_list(GOLDEN, "crafted.id", MTAN_DTYPE_I32, &n);
    int32_t *label = golden_list(GOLDEN, "crafted.label", MTAN_DTYPE_I32, &n);
    char *outcomes = golden_list(GOLDEN, "crafted.outcomes", MTAN_DTYPE_U8, &bytes);
    golden_events g;
    dataset d;
    ASSERT(text && offset && id && label && outcomes && golden_events_read(&g, GOLDEN, "crafted"));
    open_folder();
    write_bytes("Outcomes-a.txt", outcomes, bytes);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%d.txt", (int)id[i]);
        write_bytes(name, text + offset[i], (size_t)(offset[i + 1] - offset[i]));
    }
    if (!physionet_load(&d, folder, 'a')) FAILm(d.error);
    ASSERT_EQ(n, arrlenu(d.records));
    for (size_t i = 0; i < n; i++) {
        ASSERT(same_events(&d, i, &g, i));
        ASSERT_EQ(label[i] >= 0, d.records[i].n_labels);
        if (label[i] >= 0) ASSERT_EQ(label[i], d.labels[d.records[i].label0]);
    }
    dataset_free(&d);
    close_folder();
    ASSERT(guard_free(text) & guard_free(offset) & guard_free(id) & guard_free(label) & guard_free(outcomes) &
           golden_events_free(&g));
    PASS();
}

TEST sets_are_found_in_their_folder(void) {
    dataset d;
    open_folder();
    ASSERT(mkdir(in_folder("set-a"), 0777) == 0 && mkdir(in_folder("set-b"), 0777) == 0);
    write_bytes("set-a/2.txt", FIRST, sizeof FIRST - 1);
    write_bytes("set-b/10.txt", SECOND, sizeof SECOND - 1);
    ASSERT(physionet_load(&d, folder, '2'));
    ASSERT(holds_both(&d) && arrlenu(d.classes) == 0);
    dataset_free(&d);
    for (int i = 0; i < 2; i++) {
        ASSERT(physionet_load(&d, folder, i ? 'b' : 'a'));
        ASSERT_EQ(1, arrlen(d.records));
        ASSERT_STR_EQ(i ? "10" : "2", dataset_name(&d, 0));
        dataset_free(&d);
    }
    write_bytes("Outcomes-a.txt", OUTCOMES "2,6,1,5,-1,1\n", sizeof OUTCOMES "2,6,1,5,-1,1\n" - 1);
    ASSERT(physionet_load(&d, in_folder("set-a"), 'a') && arrlenu(d.labels) == 1 && d.labels[0] == 1);
    dataset_free(&d);
    ASSERT(symlink("Outcomes-b.txt", in_folder("Outcomes-b.txt")) == 0); /* a link to itself: nobody sees what it is */
    ASSERT(!physionet_load(&d, folder, 'a') && strstr(d.error, "Outcomes-b.txt: "));
    remove(in_folder("Outcomes-b.txt"));
    ASSERT(symlink("set-b.tar", in_folder("set-b.tar")) == 0);
    ASSERT(!physionet_load(&d, folder, '1') && strstr(d.error, "set-b.tar: "));
    remove(in_folder("set-b.tar"));
    remove(in_folder("set-b/10.txt"));
    ASSERT(!physionet_load(&d, folder, '2') && strstr(d.error, "set-b: no record"));
    remove(in_folder("set-b"));
    ASSERT(!physionet_load(&d, folder, '2') && strstr(d.error, "but no set-b"));
    close_folder();
    PASS();
}

TEST a_bad_file_is_named_with_its_line(void) {
    static const char *const bad[][2] = {{"", NULL}, /* no events: a record without an observation */
                                         {"Time;Parameter;Value\n", "2.txt:1: the first line"},
                                         {HEADER "00:00,Age,54\n0000,Age,54\n", "2.txt:3: no time"},
                                         {HEADER ":30,Age,54\n", "2.txt:2: no time"},
                                         {HEADER "00:60,Age,54\n", "2.txt:2: no time"},
                                         {HEADER "99999999999999:00,Age,54\n", "2.txt:2: no time"},
                                         {HEADER "00:00,Age\n", "2.txt:2: not three fields"},
                                         {HEADER "00:00,Age,\n", "2.txt:2: the value"},
                                         {HEADER "00:00,Age,nan\n", "2.txt:2: the value"},
                                         {HEADER "00:00,Age,1e99\n", "2.txt:2: the value"},
                                         {HEADER "00:00,Age,5,4\n", "2.txt:2: the value"}};
    dataset d;
    open_folder();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_bytes("2.txt", bad[i][0], strlen(bad[i][0]));
        ASSERT_EQ_FMT(!bad[i][1], physionet_load(&d, folder, 'a'), "%d");
        if (bad[i][1] && (strncmp(d.error, "build/", 6) != 0 || !strstr(d.error, bad[i][1]))) FAILm(d.error);
        if (!bad[i][1]) dataset_free(&d);
    }
    write_bytes("2.txt", HEADER "\0", sizeof HEADER);
    ASSERT(!physionet_load(&d, folder, 'a') && strstr(d.error, "zero byte"));
    remove(in_folder("2.txt"));
    ASSERT(!physionet_load(&d, folder, 'a') && strstr(d.error, "no record"));
    ASSERT(!physionet_load(&d, in_folder("nowhere"), 'a') && strstr(d.error, "no such file"));
    close_folder();
    PASS();
}

TEST a_bad_outcome_is_named_with_its_line(void) {
    static const char *const bad[][2] = {{"RecordID,Death\n", "Outcomes-a.txt:1: the first line"},
                                         {OUTCOMES "2,6,1,5,-1,0\n10,6,1,5,-1\n", "Outcomes-a.txt:3: not six"},
                                         {OUTCOMES "2,6,1,5,-1,2\n", "Outcomes-a.txt:2: not six"},
                                         {OUTCOMES "2,6,1,5,-1,nan\n", "Outcomes-a.txt:2: not six"},
                                         {OUTCOMES "2,6,1,5,-1,\n", "Outcomes-a.txt:2: not six"},
                                         {OUTCOMES "2,6,1,5,-1,0,0\n", "Outcomes-a.txt:2: not six"},
                                         {OUTCOMES "-2,6,1,5,-1,0\n", "Outcomes-a.txt:2: not six"},
                                         {OUTCOMES "2.5,6,1,5,-1,0\n", "Outcomes-a.txt:2: not six"},
                                         {OUTCOMES "2,6,1,5,-1,0\n2,6,1,5,-1,1\n", "record 2 has two outcomes"}};
    dataset d;
    open_folder();
    write_bytes("2.txt", FIRST, sizeof FIRST - 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_bytes("Outcomes-a.txt", bad[i][0], strlen(bad[i][0]));
        ASSERT_EQ_FMT(0, physionet_load(&d, folder, 'a'), "%d");
        if (strncmp(d.error, "build/", 6) != 0 || !strstr(d.error, bad[i][1])) FAILm(d.error);
    }
    close_folder();
    PASS();
}

/* A tar archive in memory: members of at most one block of text. */
enum { BLOCK = 512 };
typedef struct {
    unsigned char bytes[16 * BLOCK];
    size_t n;
} tar;

static void tar_seal(unsigned char *header) {
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++) sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
}

static void tar_add(tar *t, const char *name, char kind, const char *text) {
    unsigned char *header = t->bytes + t->n;
    strcpy((char *)header, name);
    snprintf((char *)header + 124, 12, "%011o", (unsigned)strlen(text));
    header[156] = (unsigned char)kind;
    tar_seal(header);
    memcpy(header + BLOCK, text, strlen(text));
    t->n += strlen(text) ? 2 * BLOCK : BLOCK;
}

static void tar_make(tar *t) {
    memset(t, 0, sizeof *t);
    tar_add(t, "set-a/", '5', "");
    tar_add(t, "set-a/10.txt", '0', SECOND);
    tar_add(t, "set-a/README", '0', "not a record");
    tar_add(t, "set-a/2.txt", 0, FIRST);
    t->n += 2 * BLOCK;
}

static int tar_read(dataset *d, const tar *t, size_t n) {
    write_bytes("set-a.tar", t->bytes, n);
    return physionet_load(d, folder, 'a');
}

TEST an_archive_is_read_and_a_damaged_one_refused(void) {
    tar t;
    dataset d;
    open_folder();
    tar_make(&t);
    ASSERT_EQ(1, tar_read(&d, &t, t.n));
    ASSERT(holds_both(&d));
    dataset_free(&d);
    ASSERT(physionet_load(&d, in_folder("set-a.tar"), 'b')); /* the archive itself, whichever set was asked for */
    ASSERT(holds_both(&d));
    dataset_free(&d);
    for (size_t cut = 0; cut < t.n - 2 * BLOCK + 1; cut += 100)
        ASSERT(tar_read(&d, &t, cut) == 0 && strstr(d.error, "ends early"));
    t.bytes[BLOCK] ^= 1;
    ASSERT(tar_read(&d, &t, t.n) == 0 && strstr(d.error, "wrong checksum"));
    tar_make(&t);
    memcpy(t.bytes + BLOCK + 124, "77777777777", 11), tar_seal(t.bytes + BLOCK);
    ASSERT(tar_read(&d, &t, t.n) == 0 && strstr(d.error, "unpacks to more"));
    memcpy(t.bytes + BLOCK + 124, "00010000000", 11), tar_seal(t.bytes + BLOCK);
    ASSERT(tar_read(&d, &t, t.n) == 0 && strstr(d.error, "larger than"));
    memset(t.bytes + BLOCK + 124, 0xff, 11), tar_seal(t.bytes + BLOCK);
    ASSERT(tar_read(&d, &t, t.n) == 0 && strstr(d.error, "unreadable size"));
    tar_make(&t);
    memcpy(t.bytes + BLOCK, "set-a/2.txt\0", 13), tar_seal(t.bytes + BLOCK);
    ASSERT(tar_read(&d, &t, t.n) == 0 && strstr(d.error, "twice"));
    close_folder();
    PASS();
}

TEST a_packed_archive_is_read_and_a_damaged_one_refused(void) {
#ifdef MTAN_ZLIB
    tar t;
    dataset d;
    char packed[4096];
    size_t n;
    gzFile z;
    FILE *f;
    open_folder();
    tar_make(&t);
    z = gzopen(in_folder("set-a.tar.gz"), "wb");
    ASSERT(z && gzwrite(z, t.bytes, (unsigned)t.n) == (int)t.n && gzclose(z) == Z_OK);
    ASSERT(physionet_load(&d, folder, 'a'));
    ASSERT(holds_both(&d));
    dataset_free(&d);
    f = fopen(in_folder("set-a.tar.gz"), "rb");
    ASSERT(f);
    n = fread(packed, 1, sizeof packed, f);
    fclose(f);
    packed[n - 6] = (char)(packed[n - 6] ^ 1); /* the checksum that gzip keeps in the last eight bytes */
    write_bytes("set-a.tar.gz", packed, n);
    ASSERT(!physionet_load(&d, folder, 'a') && strstr(d.error, "set-a.tar.gz: the compressed file is damaged"));
    write_bytes("set-a.tar.gz", packed, n - 8);
    ASSERT(!physionet_load(&d, folder, 'a') && strstr(d.error, "set-a.tar.gz: the compressed file ends early"));
    close_folder();
    PASS();
#else
    SKIPm("built without zlib");
#endif
}

TEST made_records_have_the_statistics(void) {
    MAY_BE_LEFT_OUT();
    dataset a, b;
    physionet_summary s;
    double cells;
    physionet_generate(&a, 1000, PHYSIONET_CHANNELS, 1), physionet_generate(&b, 1000, PHYSIONET_CHANNELS, 1);
    s = physionet_summarise(&a);
    cells = s.cells;
    ASSERT(fabs(s.times - 74.8) <= 2 && fabs(s.cells - 437.6) <= 15 && s.most_times <= 203);
    ASSERT(fabs(s.times_spread - 23.1) <= 4 && fabs(s.cells_spread - 128.3) <= 25 && fabs(s.never - 10.3) <= 1);
    ASSERT_EQ(arrlenu(a.events), arrlenu(b.events));
    for (size_t i = 0; i < arrlenu(a.events); i++) /* by the fields: there may be padding between them */
        ASSERT(a.events[i].time == b.events[i].time && a.events[i].channel == b.events[i].channel &&
               a.events[i].value == b.events[i].value);
    dataset_free(&b);
    physionet_generate(&b, 1000, PHYSIONET_CHANNELS, 0.5);
    s = physionet_summarise(&b);
    ASSERT(fabs(s.cells / cells - 0.5) <= 0.02);
    dataset_free(&b);
    physionet_generate(&b, 1000, 2 * PHYSIONET_CHANNELS, 1);
    s = physionet_summarise(&b);
    ASSERT(fabs(s.cells / cells - 1) <= 0.02);
    dataset_free(&a), dataset_free(&b);
    PASS();
}

TEST a_set_without_an_event_has_statistics(void) {
    dataset d;
    physionet_summary s;
    memset(&d, 0, sizeof d);
    dataset_add_record(&d, "1", -1);
    s = physionet_summarise(&d);
    ASSERT(s.records == 1 && s.cells == 0 && s.times == 0 && s.never == PHYSIONET_CHANNELS && s.most_cells == 0);
    dataset_free(&d);
    PASS();
}

/* ---- the data themselves ---- */

static const char *real_data(void) {
    return getenv("MTAN_PHYSIONET");
}
#define NO_DATA "MTAN_PHYSIONET does not name the folder that holds set-a.tar.gz"

/* What is published of set-a, and what the published parsing makes of it. */
TEST set_a_has_its_statistics(void) {
    dataset d;
    physionet_summary s;
    size_t n, deaths = 0;
    uint8_t *label;
    if (!real_data()) SKIPm(NO_DATA);
    if (!physionet_load(&d, real_data(), 'a')) REFUSED(d.error);
    s = physionet_summarise(&d);
    ASSERT_EQ(4000, s.records);
    ASSERT(fabs(s.times - 74.8) <= 0.05 && fabs(s.cells - 437.6) <= 0.05 && fabs(s.never - 10.3) <= 0.06);
    ASSERT_EQ(203, s.most_times);
    ASSERT_EQ(1501, s.most_cells);
    ASSERT_EQ(3, s.only_start);
    ASSERT((label = golden_list(GOLDEN, "label.a", MTAN_DTYPE_U8, &n)) && n == 4000);
    for (size_t i = 0; i < n; i++) {
        const dataset_record *r = &d.records[i];
        ASSERT(r->n_events > 0 && !(d.events[r->event0].time > 0));
        ASSERT(r->n_labels == 1 && d.labels[r->label0] == label[i]);
        deaths += label[i];
    }
    ASSERT_EQ(554, deaths);
    dataset_free(&d);
    ASSERT(guard_free(label));
    PASS();
}

TEST sets_are_the_references_to_the_bit(void) {
    size_t n;
    uint32_t *expected, hash[4000];
    dataset d;
    if (!real_data()) SKIPm(NO_DATA);
    if (!physionet_load(&d, real_data(), 'a')) REFUSED(d.error);
    ASSERT(same_hashes(&d, GOLDEN, "hash.a"));
    dataset_free(&d);
    if (!physionet_load(&d, real_data(), '2')) REFUSED(d.error);
    ASSERT_EQ(8000, arrlenu(d.records));
    ASSERT_STR_EQ("132539", dataset_name(&d, 0));
    ASSERT_EQ(0, d.records[4000].n_labels);
    for (size_t i = 0; i < 4000; i++) hash[i] = record_hash(&d, 4000 + i);
    ASSERT((expected = golden_list(GOLDEN, "hash.b", MTAN_DTYPE_U32, &n)) && n == 1);
    ASSERT_EQ_FMT(expected[0], (uint32_t)mtan_bytes_hash(hash, sizeof hash), "%u");
    dataset_free(&d);
    ASSERT(guard_free(expected));
    PASS();
}

TEST some_records_are_the_references(void) {
    size_t n;
    int32_t *position;
    golden_events g;
    dataset d;
    if (!real_data()) SKIPm(NO_DATA);
    if (!physionet_load(&d, real_data(), 'a')) REFUSED(d.error);
    ASSERT(golden_events_read(&g, GOLDEN, "few"));
    ASSERT((position = golden_list(GOLDEN, "few.position", MTAN_DTYPE_I32, &n)) && n == g.records);
    for (size_t i = 0; i < n; i++) ASSERT(same_events(&d, (size_t)position[i], &g, i));
    dataset_free(&d);
    ASSERT(guard_free(position) & golden_events_free(&g));
    PASS();
}

/* Splits and normalised values as the published training script has them; in float, as it computes. */
TEST normalised_records_are_the_references(void) {
    static const char *const parts[] = {"train", "valid", "test"};
    char name[32], error[256];
    dataset d;
    split s;
    prep p;
    if (!real_data()) SKIPm(NO_DATA);
    if (sizeof(mtan_real) != sizeof(float)) SKIPm("the reference normalises in float");
    if (!physionet_load(&d, real_data(), 'a')) REFUSED(d.error);
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_PUBLISHED, 0, 0, SPLIT_FOLD_COUNT, 42}, error));
    for (int part = 0; part < SPLIT_PARTS; part++) {
        size_t n;
        snprintf(name, sizeof name, "%s.ends", parts[part]);
        int32_t *ends = golden_list(GOLDEN, name, MTAN_DTYPE_I32, &n);
        ASSERT(ends && n == 16);
        ASSERT(check_same(name, s.part[part], ends, 8 * sizeof *ends));
        ASSERT(check_same(name, s.part[part] + arrlenu(s.part[part]) - 8, ends + 8, 8 * sizeof *ends));
        ASSERT(guard_free(ends));
    }
    prep_fit(&p, &d, &s, PREP_PUBLISHED, 0, NULL);
    prep_apply(&p, &d, &s);
    ASSERT(same_hashes(&d, GOLDEN, "normalised.a"));
    prep_free(&p), split_free(&s), dataset_free(&d);
    PASS();
}

SUITE(physionet_suite) {
    RUN_TEST(a_folder_of_texts_is_read);
    RUN_TEST(crafted_records_are_the_references);
    RUN_TEST(sets_are_found_in_their_folder);
    RUN_TEST(a_bad_file_is_named_with_its_line);
    RUN_TEST(a_bad_outcome_is_named_with_its_line);
    RUN_TEST(an_archive_is_read_and_a_damaged_one_refused);
    RUN_TEST(a_packed_archive_is_read_and_a_damaged_one_refused);
    RUN_TEST(made_records_have_the_statistics);
    RUN_TEST(a_set_without_an_event_has_statistics);
    RUN_TEST(set_a_has_its_statistics);
    RUN_TEST(sets_are_the_references_to_the_bit);
    RUN_TEST(some_records_are_the_references);
    RUN_TEST(normalised_records_are_the_references);
}
