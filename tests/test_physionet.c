/* The PhysioNet loader on small files that the test writes itself, and on set-a when MTAN_PHYSIONET names its folder. */
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
#include "tools/data/physionet.h"

#define HEADER "Time,Parameter,Value\n"

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
    static const char *const names[] = {"2.txt", "10.txt", "Outcomes-a.txt", "set-a.tar.gz"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) remove(in_folder(names[i]));
    rmdir(folder);
}

static int same_event(mtan_event e, double time, int32_t channel, double value) {
    const int good = e.time == (mtan_real)time && e.channel == channel && e.value == (mtan_real)value;
    if (!good)
        printf("  BAD event (%g, %d, %g), expected (%g, %d, %g)\n", (double)e.time, (int)e.channel, (double)e.value,
               time, (int)channel, value);
    return good;
}

/* FIRST and SECOND as records 2 and 10. */
static int holds_both(const physionet *d) {
    const physionet_record *r = d->records;
    return d->n == 2 && r[0].id == 2 && r[1].id == 10 && r[0].n_times == 4 && r[0].n_events == 5 && r[1].n_times == 2 &&
           r[1].n_events == 2 && same_event(r[0].events[0], 0, 0, 54) &&
           same_event(r[0].events[1], 7 * 0.016, 19, 80) && same_event(r[0].events[2], 7 * 0.016, 40, 5) &&
           same_event(r[0].events[3], 12 * 0.016, 19, 70) && same_event(r[0].events[4], 38 * 0.016, 19, 90) &&
           same_event(r[1].events[0], 0, 0, -1) && same_event(r[1].events[1], 3000 * 0.016, 19, -30.5);
}

TEST a_folder_of_texts_is_read(void) {
    physionet d;
    open_folder();
    write_bytes("10.txt", SECOND, sizeof SECOND - 1);
    write_bytes("2.txt", FIRST, sizeof FIRST - 1);
    write_bytes("Outcomes-a.txt", "not a record", 12);
    ASSERT(physionet_read(&d, folder));
    ASSERT(holds_both(&d));
    physionet_normalise(&d); /* Age from -1 to 54, HR from -30.5 to 90 */
    ASSERT(same_event(d.records[0].events[0], 0, 0, (mtan_real)55 / 54));
    ASSERT(same_event(d.records[0].events[3], (mtan_real)(12 * 0.016) / 48, 19, (mtan_real)100.5 / 90));
    ASSERT(same_event(d.records[1].events[1], 1, 19, 0));
    physionet_free(&d);
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
    physionet d;
    open_folder();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_bytes("2.txt", bad[i][0], strlen(bad[i][0]));
        ASSERT_EQ_FMT(!bad[i][1], physionet_read(&d, folder), "%d");
        if (bad[i][1] && (strncmp(d.error, "mtan: build/", 12) != 0 || !strstr(d.error, bad[i][1]))) FAILm(d.error);
        physionet_free(&d);
    }
    write_bytes("2.txt", HEADER "\0", sizeof HEADER);
    ASSERT(!physionet_read(&d, folder) && strstr(d.error, "zero byte"));
    remove(in_folder("2.txt"));
    ASSERT(!physionet_read(&d, folder) && strstr(d.error, "no record"));
    ASSERT(!physionet_read(&d, in_folder("nowhere")) && strstr(d.error, "no such file"));
    close_folder();
    PASS();
}

#ifdef MTAN_ZLIB
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

static int tar_read(physionet *d, const tar *t, size_t n) {
    gzFile f = gzopen(in_folder("set-a.tar.gz"), "wb");
    if (!f || gzwrite(f, t->bytes, (unsigned)n) != (int)n || gzclose(f) != Z_OK) return -1;
    return physionet_read(d, folder);
}
#endif

TEST an_archive_is_read_and_a_damaged_one_refused(void) {
#ifdef MTAN_ZLIB
    tar t;
    physionet d;
    char packed[4096];
    size_t n;
    FILE *f;
    open_folder();
    tar_make(&t);
    ASSERT_EQ(1, tar_read(&d, &t, t.n));
    ASSERT(holds_both(&d));
    physionet_free(&d);
    f = fopen(in_folder("set-a.tar.gz"), "rb");
    ASSERT(f);
    n = fread(packed, 1, sizeof packed, f);
    fclose(f);
    packed[n - 6] = (char)(packed[n - 6] ^ 1); /* the checksum that gzip keeps in the last eight bytes */
    write_bytes("set-a.tar.gz", packed, n);
    ASSERT(!physionet_read(&d, folder) && strstr(d.error, "set-a.tar.gz: "));
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
#else
    SKIPm("built without zlib");
#endif
}

TEST made_records_have_the_statistics(void) {
    physionet a, b;
    physionet_summary s;
    double cells;
    ASSERT(physionet_generate(&a, 1000, PHYSIONET_CHANNELS, 1) && physionet_generate(&b, 1000, PHYSIONET_CHANNELS, 1));
    s = physionet_summarise(&a);
    cells = s.cells;
    ASSERT(fabs(s.times - 74.8) <= 2 && fabs(s.cells - 437.6) <= 15 && s.most_times <= 203);
    ASSERT(fabs(s.times_spread - 23.1) <= 4 && fabs(s.cells_spread - 128.3) <= 25 && fabs(s.never - 10.3) <= 1);
    for (size_t i = 0; i < a.n; i++) {
        ASSERT_EQ(a.records[i].n_events, b.records[i].n_events);
        for (int32_t j = 0; j < a.records[i].n_events; j++) { /* by the fields: there may be padding between them */
            const mtan_event e = b.records[i].events[j];
            ASSERT(same_event(a.records[i].events[j], (double)e.time, e.channel, (double)e.value));
        }
    }
    physionet_free(&b);
    ASSERT(physionet_generate(&b, 1000, PHYSIONET_CHANNELS, 0.5));
    s = physionet_summarise(&b);
    ASSERT(fabs(s.cells / cells - 0.5) <= 0.02);
    physionet_free(&b);
    ASSERT(physionet_generate(&b, 1000, 2 * PHYSIONET_CHANNELS, 1));
    s = physionet_summarise(&b);
    ASSERT(fabs(s.cells / cells - 1) <= 0.02);
    physionet_free(&a), physionet_free(&b);
    PASS();
}

/* What is published of set-a, and what the published parsing makes of it. */
TEST set_a_has_its_statistics(void) {
    const char *path = getenv("MTAN_PHYSIONET");
    physionet d;
    physionet_summary s;
    if (!path) SKIPm("MTAN_PHYSIONET does not name the folder that holds set-a.tar.gz");
    if (!physionet_read(&d, path)) FAILm(d.error);
    s = physionet_summarise(&d);
    ASSERT_EQ(4000, s.records);
    ASSERT(fabs(s.times - 74.8) <= 0.05 && fabs(s.cells - 437.6) <= 0.05 && fabs(s.never - 10.3) <= 0.06);
    ASSERT_EQ(203, s.most_times);
    ASSERT_EQ(1501, s.most_cells);
    ASSERT_EQ(3, s.only_start);
    for (size_t i = 0; i < d.n; i++) ASSERT(d.records[i].n_events > 0 && !(d.records[i].events[0].time > 0));
    physionet_free(&d);
    PASS();
}

SUITE(physionet_suite) {
    RUN_TEST(a_folder_of_texts_is_read);
    RUN_TEST(a_bad_file_is_named_with_its_line);
    RUN_TEST(an_archive_is_read_and_a_damaged_one_refused);
    RUN_TEST(made_records_have_the_statistics);
    RUN_TEST(set_a_has_its_statistics);
}
