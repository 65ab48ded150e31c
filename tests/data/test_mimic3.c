/* The MIMIC-III loader on small tables that the test writes itself, and on the open demo when MTAN_MIMIC3 names its
 * folder: there counts and sums are those of an extraction in pandas (tools/golden/golden_mimic3.py). */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef MTAN_ZLIB
#include <zlib.h>
#endif

#include "check.h"
#include "golden_file.h"
#include "../../tools/data/mimic3.h"

enum { SPO2, HR, RR, SBP, DBP, TEMP, TGCS, CRR, UO, FIO2, GLUCOSE, PH };

/* ---- tables ---- */

#define ADMISSIONS                                                                                                     \
    "ROW_ID,SUBJECT_ID,HADM_ID,ADMITTIME,DISCHTIME,DEATHTIME,DIAGNOSIS,HOSPITAL_EXPIRE_FLAG,HAS_CHARTEVENTS_DATA\n"
#define STAY(subject, hadm, from, to, death, label)                                                                    \
    "1," subject "," hadm ",2130-01-" from ":00,2130-01-" to ":00," death ",\"SEPSIS, \"\"SEVERE\"\"\"," label ",1\n"
#define ICUSTAYS "ROW_ID,SUBJECT_ID,HADM_ID,ICUSTAY_ID,DBSOURCE,INTIME\n"
#define ENTRY(hadm, time) "1,7," hadm ",9,carevue,2130-01-" time ":00\n"
#define CHART                                                                                                          \
    "ROW_ID,SUBJECT_ID,HADM_ID,ICUSTAY_ID,ITEMID,CHARTTIME,STORETIME,CGID,VALUE,VALUENUM,VALUEUOM,WARNING,ERROR\n"
#define FULL_ROW(hadm, item, time, value, number, error)                                                               \
    "1,7," hadm ",9," item ",2130-01-" time ":00,,,\"" value "\"," number ",u,0," error "\n"
#define ROW(item, time, number) FULL_ROW("100", item, time, number, number, "0")
#define WORD(item, time, value) FULL_ROW("100", item, time, value, "", "")
#define OUTPUT "row_id,subject_id,hadm_id,icustay_id,charttime,itemid,value,valueuom,storetime,cgid,iserror\n"
#define URINE(item, time, value, error) "1,7,100,9,2130-01-" time ":00," item "," value ",ml,,1," error "\n"

/* Three of 48 hours, one a minute short. The last died 30 hours after ICU entry, and was discharged 19 hours later. */
#define STAYS                                                                                                          \
    ADMISSIONS STAY("7", "100", "01 12:00", "09 12:00", "", "0") STAY("8", "90", "01 12:00", "03 11:59", "", "0")      \
        STAY("7", "200", "11 12:00", "13 12:00", "", "0")                                                              \
            STAY("6", "110", "01 12:00", "05 06:00", "2130-01-04 11:00:00", "1")
#define ENTRIES                                                                                                        \
    ICUSTAYS ENTRY("100", "03 00:00") ENTRY("100", "01 12:00") ENTRY("100", "02 00:00") ENTRY("200", "11 12:00")       \
        ENTRY("110", "03 05:00")

static char folder[64]; /* of the test that runs */
static const char *const files[] = {"ADMISSIONS.csv",  "admissions.csv",   "ICUSTAYS.csv",     "CHARTEVENTS.csv",
                                    "chartevents.csv", "OUTPUTEVENTS.csv", "outputevents.csv", "chartevents.csv.gz"};

static void open_folder(void) {
    strcpy(folder, "build/mimic3-XXXXXX");
    if (!mkdtemp(folder)) perror("mtan: build"), exit(2);
}

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void close_folder(void) {
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) remove(in_folder(files[i]));
    rmdir(folder);
}

static void write_text(const char *name, const char *text) {
    FILE *f = fopen(in_folder(name), "wb");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) perror("mtan: build"), exit(2);
}

static void write_tables(const char *admissions, const char *icustays, const char *chart, const char *output) {
    write_text("ADMISSIONS.csv", admissions);
    write_text("ICUSTAYS.csv", icustays);
    write_text("CHARTEVENTS.csv", chart);
    write_text("OUTPUTEVENTS.csv", output);
}

static int load(dataset *d, int faithful) {
    const int good = mimic3_load(d, folder, faithful, NULL, NULL);
    if (!good) printf("  %s\n", d->error);
    return good;
}

/* ---- what is expected ---- */

typedef struct expected {
    double time;
    int32_t channel;
    double value;
} expected;

static int record_is(const dataset *d, size_t record, const expected *e, int32_t n) {
    const dataset_record *r = &d->records[record];
    int32_t times = 0;
    if (r->n_events != n) return printf("  BAD %d events, expected %d\n", (int)r->n_events, (int)n), 0;
    for (int32_t i = 0; i < n; i++) {
        const mtan_event got = d->events[r->event0 + (size_t)i];
        times += i == 0 || e[i].time > e[i - 1].time;
        if (got.time == (mtan_real)e[i].time && got.channel == e[i].channel && got.value == (mtan_real)e[i].value)
            continue;
        printf("  BAD event %d: (%.9g, %d, %.9g), expected (%.9g, %d, %.9g)\n", (int)i, (double)got.time,
               (int)got.channel, (double)got.value, e[i].time, (int)e[i].channel, e[i].value);
        return 0;
    }
    return r->n_times == times;
}

#define RECORD_IS(d, record, e) record_is(d, record, e, (int32_t)(sizeof(e) / sizeof(e)[0]))

static int has_note(const dataset *d, const char *words) {
    for (size_t i = 0; i < arrlenu(d->notes); i++)
        if (strstr(d->notes[i], words)) return 1;
    return 0;
}

/* ---- faithful ---- */

/* Time 0 is that of a row without a value; 48 hours later is within, a minute more is not. */
TEST faithful_takes_48_hours_from_the_first_row(void) {
    static const expected events[] = {{1, SPO2, 97}, {1, HR, 80.5}, {48, HR, 500}};
    dataset d;
    open_folder();
    write_tables(STAYS, ENTRIES,
                 CHART ROW("211", "03 06:01", "70") ROW("646", "01 06:00", "") ROW("211", "03 06:00", "500")
                     ROW("211", "01 07:00", "80.5") FULL_ROW("100", "220277", "01 07:00", "97", "97", "1")
                         FULL_ROW("", "646", "01 01:00", "1", "1", "0") FULL_ROW("90", "646", "01 01:00", "1", "1", "0")
                             FULL_ROW("101", "646", "01 01:00", "1", "1", "0") ROW("999999999", "01 01:00", "1"),
                 OUTPUT);
    ASSERT(load(&d, 1));
    ASSERT_EQ(3, arrlen(d.records));
    ASSERT_STR_EQ("100", dataset_name(&d, 0));
    ASSERT_STR_EQ("200", dataset_name(&d, 1));
    ASSERT_STR_EQ("110", dataset_name(&d, 2));
    ASSERT(d.records[0].group == 7 && d.records[1].group == 7 && d.records[2].group == 6);
    ASSERT(arrlen(d.labels) == 3 && d.labels[0] == 0 && d.labels[2] == 1 && d.records[2].label0 == 2);
    ASSERT(RECORD_IS(&d, 0, events));
    ASSERT(d.records[1].n_events == 0 && d.records[2].n_events == 0);
    ASSERT(arrlen(d.channels) == 12 && strcmp(d.channels[PH], "pH") == 0 && strcmp(d.channels[CRR], "CRR") == 0);
    ASSERT(arrlen(d.classes) == 2 && strcmp(d.unit, "hours") == 0);
    ASSERT(has_note(&d, "3 of 4 admissions") && has_note(&d, "2 admissions without an observation kept") &&
           has_note(&d, "2 rows without a HADM_ID"));
    dataset_free(&d);
    close_folder();
    PASS();
}

/* 0, below and above 500 are missing; a series ends at the first time charted twice; pH misses two items and has the
 * dipstick; FiO2 and urine stay as they are; no parts of the coma scale. */
TEST faithful_has_the_published_defects(void) {
    static const expected events[] = {{0, SPO2, 98},       {0, FIO2, 0.5}, {0, PH, 5},         {0.5, HR, 60},
                                      {0.5, GLUCOSE, 400}, {1, UO, 30},    {1.5, GLUCOSE, 90}, {2, HR, 61},
                                      {2, TGCS, 12},       {2, UO, 0.25}};
    dataset d;
    open_folder();
    write_tables(STAYS, ENTRIES,
                 CHART ROW("646", "01 06:00", "98") ROW("646", "01 07:00", "0") ROW("646", "01 08:00", "-1")
                     ROW("211", "01 06:30", "60") ROW("211", "01 08:00", "61") ROW("220045", "01 08:00", "62")
                         ROW("211", "01 09:00", "63") ROW("811", "01 06:30", "400") ROW("811", "01 07:00", "500.5")
                             ROW("1529", "01 07:30", "90") ROW("223835", "01 06:00", "0.5")
                                 ROW("190", "01 07:00", "0.6") ROW("220734", "01 06:00", "5")
                                     ROW("6003", "01 06:30", "7.4") ROW("220274", "01 06:40", "7.4")
                                         ROW("226755", "01 08:00", "12") ROW("220739", "01 09:00", "4")
                                             ROW("223900", "01 09:00", "5") ROW("223901", "01 09:00", "6")
                                                 ROW("40055", "01 09:00", "77"),
                 OUTPUT URINE("40055", "01 07:00", "30", "1") URINE("43171", "01 08:00", "0.25", "")
                     URINE("226559", "01 08:30", "44", "") URINE("211", "01 09:30", "44", ""));
    ASSERT(load(&d, 1));
    ASSERT(RECORD_IS(&d, 0, events));
    dataset_free(&d);
    close_folder();
    PASS();
}

/* Celsius stands behind Fahrenheit and is seen only if it is later; without a value not even its time is. What
 * Fahrenheit has past the window blocks it, also where only the last row tells that it is past it. */
TEST faithful_appends_lists(void) {
    static const expected later[] = {{0, TEMP, 98}, {1, CRR, 1}, {2, TEMP, 37 * 1.8 + 32}, {2, CRR, 2}, {4, CRR, 1}};
    static const expected earlier[] = {{1, TEMP, 98}};
    static const expected blocked[] = {{0, TEMP, 98}};
    static const expected late[] = {{0, SPO2, 99}, {5, TEMP, 98}};
    static const char *const refill = WORD("3348", "01 07:00", "Brisk") WORD("8377", "01 10:00", "Normal <3 Seconds")
        WORD("115", "01 08:00", "Abnormal >3 secs") WORD("223951", "01 09:00", "Other/Remarks");
    char text[4096];
    dataset d;
    open_folder();
    snprintf(text, sizeof text, "%s%s%s", CHART, refill,
             ROW("676", "01 08:00", "37") ROW("676", "01 05:00", "") ROW("678", "01 06:00", "98"));
    write_tables(STAYS, ENTRIES, text, OUTPUT);
    ASSERT(load(&d, 1) && RECORD_IS(&d, 0, later));
    dataset_free(&d);
    write_text("CHARTEVENTS.csv", CHART ROW("223762", "01 06:00", "37") ROW("678", "01 07:00", "98"));
    ASSERT(load(&d, 1) && RECORD_IS(&d, 0, earlier));
    dataset_free(&d);
    write_text("CHARTEVENTS.csv",
               CHART ROW("678", "01 06:00", "98") ROW("678", "05 06:00", "98") ROW("676", "01 07:00", "37"));
    ASSERT(load(&d, 1) && RECORD_IS(&d, 0, blocked));
    dataset_free(&d);
    write_text("CHARTEVENTS.csv", CHART ROW("678", "01 11:00", "98") ROW("678", "03 08:00", "98")
                                      ROW("676", "03 05:00", "37") ROW("646", "01 06:00", "99"));
    ASSERT(load(&d, 1) && RECORD_IS(&d, 0, late));
    dataset_free(&d);
    close_folder();
    PASS();
}

/* Minutes from 01 06:00 on; every third row has no value, but its time counts. More rows than a block holds. */
TEST faithful_shows_200_times(void) {
    char text[32 * 1024] = CHART;
    dataset d;
    mtan_event last;
    open_folder();
    for (int i = 299; i >= 0; i--) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "1,7,100,9,211,2130-01-01 %02d:%02d:00,,,,%s,,,\n", 6 + i / 60,
                 i % 60, i % 3 ? "80" : "");
    }
    write_tables(STAYS, ENTRIES, text, OUTPUT);
    ASSERT(load(&d, 1));
    ASSERT_EQ(200 - 67, d.records[0].n_events);
    last = d.events[d.records[0].event0 + 132];
    ASSERT(last.time == (mtan_real)(199.0 / 60));
    dataset_free(&d);
    close_folder();
    PASS();
}

/* ---- correct ---- */

TEST correct_starts_at_the_icu(void) {
    static const expected events[] = {{0, HR, 70}, {48, HR, 71}};
    dataset d;
    open_folder();
    write_tables(STAYS, ENTRIES,
                 CHART ROW("211", "01 11:59", "69") ROW("211", "03 12:00", "71") ROW("211", "01 12:00", "70")
                     ROW("211", "03 12:01", "72") FULL_ROW("110", "211", "03 06:00", "70", "70", "0")
                         FULL_ROW("200", "220739", "11 13:00", "4", "4", "0"),
                 OUTPUT);
    ASSERT(load(&d, 0)); /* 200 has but a part of the coma scale; 110 died 30 hours after it entered */
    ASSERT(arrlen(d.records) == 1 && arrlen(d.labels) == 1 && arrlen(d.names) == 4);
    ASSERT(RECORD_IS(&d, 0, events));
    ASSERT(has_note(&d, "1 admissions without an observation left out"));
    dataset_free(&d);
    close_folder();
    PASS();
}

TEST correct_converts_and_limits(void) {
    static const expected events[] = {{1, SPO2, 100},
                                      {1, TEMP, (98.6 - 32) / 1.8},
                                      {1, TGCS, 15},
                                      {1, CRR, 1.5},
                                      {1, UO, 0},
                                      {1, FIO2, 50},
                                      {1, GLUCOSE, 1200},
                                      {1, PH, 7.25},
                                      {2, HR, 85},
                                      {2, TEMP, 36},
                                      {2, TGCS, 9},
                                      {2, FIO2, 40},
                                      {3, TEMP, (100.4 - 32) / 1.8},
                                      {3, UO, 500}};
    dataset d;
    open_folder();
    write_tables(STAYS, ENTRIES,
                 CHART ROW("646", "01 13:00", "100") ROW("646", "01 14:00", "101") ROW("646", "01 15:00", "0")
                     ROW("223761", "01 13:00", "98.6") ROW("678", "01 14:00", "36") ROW("676", "01 15:00", "100.4")
                         ROW("676", "01 16:00", "60") ROW("220739", "01 13:00", "4") ROW("223900", "01 13:00", "5") ROW(
                             "223901", "01 13:00", "6") ROW("220739", "01 14:00", "4") ROW("223900", "01 14:00", "1")
                             ROW("223901", "01 15:00", "6") ROW("198", "01 14:00", "9") ROW("226755", "01 16:00", "9")
                                 WORD("115", "01 13:00", "Brisk") WORD("8377", "01 13:00", "Delayed")
                                     WORD("8377", "01 14:00", "Purple") ROW("190", "01 13:00", "0.5")
                                         ROW("223835", "01 14:00", "40") ROW("223835", "01 15:00", "4")
                                             ROW("811", "01 13:00", "1200") ROW("811", "01 14:00", "")
                                                 ROW("220274", "01 13:00", "7.25") ROW("220734", "01 14:00", "7")
                                                     ROW("211", "01 14:00", "80") ROW("220045", "01 14:00", "90")
                                                         FULL_ROW("100", "211", "01 15:00", "80", "80", "1"),
                 OUTPUT URINE("40055", "01 13:00", "0", "") URINE("226559", "01 15:00", "500", "")
                     URINE("226559", "01 16:00", "500", "1") URINE("43171", "01 17:00", "3", "")
                         URINE("40055", "01 18:00", "9000", ""));
    ASSERT(load(&d, 0));
    ASSERT(RECORD_IS(&d, 0, events));
    ASSERT(has_note(&d, "2 rows marked") && has_note(&d, "5 implausible") && has_note(&d, "1 unknown word") &&
           has_note(&d, "2 repeats"));
    dataset_free(&d);
    close_folder();
    PASS();
}

/* 2104 has a 29th of February, 2100 has none. The second and the fourth are a minute short. */
TEST days_are_those_of_the_calendar(void) {
    static const char *const tail = ":00,,,0,1\n";
    char text[1024];
    dataset d;
    open_folder();
    snprintf(text, sizeof text,
             "%s1,7,1,2100-02-27 12:00:00,2100-03-01 12:00%s1,7,2,2104-02-28 12:00:00,2104-03-01 11:59%s"
             "1,7,3,2104-02-29 12:00:00,2104-03-02 12:00%s1,7,4,2099-12-31 12:00:00,2100-01-02 11:59%s",
             ADMISSIONS, tail, tail, tail, tail);
    write_tables(text, ENTRIES, CHART, OUTPUT);
    ASSERT(load(&d, 1));
    ASSERT(arrlen(d.records) == 2 && strcmp(dataset_name(&d, 0), "1") == 0 && strcmp(dataset_name(&d, 1), "3") == 0);
    dataset_free(&d);
    close_folder();
    PASS();
}

/* ---- series without an observation ---- */

TEST missing_series_get_the_mean(void) {
    static const expected all[] = {{0, SPO2, 95}, {0, HR, 72}, {2, UO, 10}};
    static const expected train[] = {{0, SPO2, 95}, {0, HR, 76}, {2, UO, 10}};
    static const expected given[] = {{0, SPO2, 95}, {0, HR, 70}, {0, UO, 5}, {3, HR, 74}};
    static const int32_t part[] = {1, 2};
    dataset d;
    open_folder();
    write_tables(STAYS, ENTRIES,
                 CHART ROW("646", "01 12:00", "95") FULL_ROW("200", "211", "11 12:00", "70", "70", "")
                     FULL_ROW("200", "211", "11 15:00", "74", "74", "")
                         FULL_ROW("110", "211", "03 15:00", "84", "84", "0"),
                 OUTPUT URINE("40055", "01 14:00", "10", ""));
    ASSERT(load(&d, 1));
    d.events[d.records[2].event0].value = 72; /* so that the mean of all three is 72 */
    mimic3_fill_missing(&d, NULL, 0);
    ASSERT(RECORD_IS(&d, 0, all));
    ASSERT_EQ(4, d.records[1].n_events);
    ASSERT(d.records[1].n_times == 2 && d.records[2].n_times == 1);
    dataset_free(&d);
    ASSERT(load(&d, 1));
    mimic3_fill_missing(&d, part, 2); /* SpO2 and urine were never seen in these */
    ASSERT(RECORD_IS(&d, 0, train));
    ASSERT_EQ(2, d.records[1].n_events);
    dataset_free(&d);
    ASSERT(load(&d, 1));
    {
        double means[MIMIC3_CHANNELS];
        mimic3_means(&d, NULL, 0, means);
        ASSERT(means[SPO2] == 95 && means[UO] == 10 && isnan(means[PH]));
        means[UO] = 5;
        mimic3_fill(&d, means);
        ASSERT(RECORD_IS(&d, 1, given));
    }
    dataset_free(&d);
    close_folder();
    PASS();
}

/* As published, admissions without an observation are kept: a set may have no event at all. */
TEST a_set_without_an_event_stays_so(void) {
    dataset d;
    open_folder();
    write_tables(STAYS, ENTRIES, CHART, OUTPUT);
    ASSERT(load(&d, 1));
    mimic3_fill_missing(&d, NULL, 0);
    ASSERT(arrlen(d.records) > 0 && arrlen(d.events) == 0);
    for (size_t i = 0; i < arrlenu(d.records); i++) ASSERT(d.records[i].n_events == 0 && d.records[i].n_times == 0);
    dataset_free(&d);
    close_folder();
    PASS();
}

/* The first observed time need not be 0 in the correct preset. */
TEST a_filled_record_may_gain_a_time(void) {
    static const expected events[] = {{0, UO, 20}, {1, HR, 70}};
    double means[MIMIC3_CHANNELS];
    dataset d;
    open_folder();
    write_tables(STAYS, ENTRIES, CHART ROW("211", "01 13:00", "70"), OUTPUT);
    ASSERT(load(&d, 0));
    for (int c = 0; c < MIMIC3_CHANNELS; c++) means[c] = c == UO ? 20 : NAN;
    mimic3_fill(&d, means);
    ASSERT(RECORD_IS(&d, 0, events));
    dataset_free(&d);
    close_folder();
    PASS();
}

/* ---- what can be wrong with the files ---- */

static int refuses(const char *name, const char *text, int faithful, const char *words) {
    dataset d;
    int good;
    write_tables(STAYS, ENTRIES, CHART, OUTPUT);
    write_text(name, text);
    good =
        !mimic3_load(&d, folder, faithful, NULL, NULL) && strncmp(d.error, "build/", 6) == 0 && strstr(d.error, words);
    if (!good) printf("  BAD \"%s\" instead of \"%s\"\n", d.error, words);
    return good;
}

TEST a_bad_line_is_named(void) {
    static const char *const bad[][3] = {
        {"ADMISSIONS.csv", ADMISSIONS "1,7\n", "ADMISSIONS.csv:2: too few fields"},
        {"ADMISSIONS.csv", ADMISSIONS STAY("7", "", "01 12:00", "09 12:00", "", "0"), "S.csv:2: HADM_ID is no number"},
        {"ADMISSIONS.csv", ADMISSIONS STAY("x", "1", "01 12:00", "09 12:00", "", "0"), "S.csv:2: SUBJECT_ID"},
        {"ADMISSIONS.csv", ADMISSIONS STAY("7", "1", "01 12:00", "09 12:00", "", "2"), "S.csv:2: HOSPITAL_EXPIRE"},
        {"ADMISSIONS.csv", ADMISSIONS STAY("7", "1", "01 12:00", "09 24:00", "", "0"), "S.csv:2: no time"},
        {"ADMISSIONS.csv", ADMISSIONS STAY("7", "1", "01 12:00", "09 12:00", "soon", "0"), "S.csv:2: no time"},
        {"ADMISSIONS.csv", ADMISSIONS STAY("7", "1", "01 12:00", "09 12:00", "2100-02-29 12:00:00", "0"),
         "S.csv:2: no time"},
        {"ADMISSIONS.csv", STAYS STAY("7", "90", "01 12:00", "09 12:00", "", "0"), "S.csv:6: this HADM_ID"},
        {"ADMISSIONS.csv", ADMISSIONS "1,7,1,2130-01-01 12:00:00,2130-01-09 12:00:00,,\"SEPSIS,0,1\n", "S.csv:2: too"},
        {"ADMISSIONS.csv", ADMISSIONS "1,7,1,2130-01-01 12:00:00,2130-01-09 12:00:00,,\"A\"B,0,1\n", "S.csv:2: too"},
        {"ADMISSIONS.csv", "SUBJECT_ID,HADM_ID\n", "ADMISSIONS.csv:1: no column ADMITTIME"},
        {"ADMISSIONS.csv", "", "ADMISSIONS.csv: the table is empty"},
        {"ADMISSIONS.csv", ADMISSIONS STAY("7", "1", "01 12:00", "02 12:00", "", "0"), ": no admission of 48 hours"},
        {"ICUSTAYS.csv", ICUSTAYS ENTRY("x", "01 12:00"), "ICUSTAYS.csv:2: HADM_ID"},
        {"ICUSTAYS.csv", ICUSTAYS ENTRY("100", "01 1200"), "ICUSTAYS.csv:2: no time"},
        {"CHARTEVENTS.csv", CHART ROW("12a", "01 12:00", "1"), "CHARTEVENTS.csv:2: ITEMID"},
        {"CHARTEVENTS.csv", CHART ROW("99999999999", "01 12:00", "1"), "CHARTEVENTS.csv:2: ITEMID"},
        {"CHARTEVENTS.csv", CHART "\n\n1,2,3\n", "CHARTEVENTS.csv:4: too few"},
        {"CHARTEVENTS.csv", CHART "1,7,100,9,211,2130-01-01 12:00:00,,,1,1\n", "CHARTEVENTS.csv:2: too few"},
        {"CHARTEVENTS.csv", CHART ROW("211", "32 12:00", "1"), "CHARTEVENTS.csv:2: no time"},
        {"CHARTEVENTS.csv", CHART ROW("211", "01 12:00", "1") ROW("211", "01 12:00", "nan"),
         "CHARTEVENTS.csv:3: the value"},
        {"CHARTEVENTS.csv", CHART ROW("211", "01 12:00", "1e999"), "CHARTEVENTS.csv:2: the value"},
        {"CHARTEVENTS.csv", CHART ROW("211", "01 12:00", "1-2"), "CHARTEVENTS.csv:2: the value"},
        {"CHARTEVENTS.csv", CHART FULL_ROW("1.5", "211", "01 12:00", "1", "1", "0"), "CHARTEVENTS.csv:2: HADM_ID"},
        {"OUTPUTEVENTS.csv", OUTPUT URINE("40055", "01 12:00", "some", ""), "OUTPUTEVENTS.csv:2: the value"}};
    open_folder();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) ASSERT(refuses(bad[i][0], bad[i][1], 0, bad[i][2]));
    ASSERT(refuses("CHARTEVENTS.csv", CHART ROW("211", "00 12:00", "1"), 1, "CHARTEVENTS.csv:2: no time"));
    close_folder();
    PASS();
}

TEST a_missing_table_is_named(void) {
    dataset d;
    open_folder();
    write_tables(STAYS, ENTRIES, CHART ROW("211", "01 13:00", "70"), OUTPUT);
    remove(in_folder("ICUSTAYS.csv"));
    ASSERT(!mimic3_load(&d, folder, 0, NULL, NULL) && strstr(d.error, ": no table ICUSTAYS (ICUSTAYS.csv or"));
    ASSERT(load(&d, 1)); /* does without */
    dataset_free(&d);
    remove(in_folder("OUTPUTEVENTS.csv"));
    ASSERT(!mimic3_load(&d, folder, 1, NULL, NULL) && strstr(d.error, ": no table OUTPUTEVENTS"));
    ASSERT(!mimic3_load(&d, in_folder("nowhere"), 1, NULL, NULL) && strstr(d.error, "nowhere: no table ADMISSIONS"));
    close_folder();
    PASS();
}

typedef struct seen {
    double share;
    int calls, falls;
} seen;

static void watch(void *context, double share, const char *what) {
    seen *s = context;
    s->falls += !(share >= s->share && share <= 1) || strncmp(what, "build/", 6) != 0;
    s->share = share;
    s->calls++;
}

/* Lower case names, columns in another order, rows without a time, Windows line ends, a packed table. */
TEST tables_may_look_different(void) {
    static const char chart[] = "valuenum,extra,charttime,\"error\",value,hadm_id,itemid\r\n"
                                "70,\"a, \"\"b\"\"\",2130-01-01 13:00:00,0,70,100,211\r\n"
                                "71,,,0,71,100,211\r\n";
    static const expected events[] = {{1, HR, 70}};
    seen s = {0, 0, 0};
    dataset d;
    open_folder();
    write_tables(STAYS, ENTRIES, CHART, OUTPUT);
    remove(in_folder("CHARTEVENTS.csv"));
    write_text("chartevents.csv", chart);
    ASSERT(mimic3_load(&d, folder, 0, watch, &s));
    ASSERT(RECORD_IS(&d, 0, events) && has_note(&d, "1 rows without a time"));
    ASSERT(s.calls >= 5 && s.falls == 0 && s.share == 1);
    dataset_free(&d);
#ifdef MTAN_ZLIB
    {
        gzFile f = gzopen(in_folder("chartevents.csv.gz"), "wb");
        ASSERT(f && gzwrite(f, chart, sizeof chart - 1) == (int)sizeof chart - 1 && gzclose(f) == Z_OK);
        remove(in_folder("chartevents.csv"));
        ASSERT(load(&d, 0) && RECORD_IS(&d, 0, events));
        dataset_free(&d);
    }
#endif
    close_folder();
    PASS();
}

/* ---- the demo ---- */

enum { MOST_RECORDS = 128 };

static int same_counts(const char *tensor, const int32_t *got, size_t n) {
    int32_t want[MOST_RECORDS];
    if (!golden_read("mimic3-demo.safetensors", tensor, MTAN_DTYPE_I32, want, n))
        return printf("  BAD %s\n", tensor), 0;
    return check_same(tensor, got, want, n * sizeof *got);
}

static int same_sums(const char *tensor, const double *got, size_t n) {
    const double limit = sizeof(mtan_real) == 8 ? 1e-12 : 1e-6;
    double want[MOST_RECORDS];
    if (!golden_read("mimic3-demo.safetensors", tensor, MTAN_DTYPE_F64, want, n))
        return printf("  BAD %s\n", tensor), 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= limit * fabs(want[i])))
            return printf("  BAD %s[%zu]: %.17g, expected %.17g\n", tensor, i, got[i], want[i]), 0;
    return 1;
}

static const char *tensor_name(const char *prefix, const char *name) {
    static char text[64];
    snprintf(text, sizeof text, "%s.%s", prefix, name);
    return text;
}

static int channels_agree(const dataset *d, const char *prefix) {
    int32_t events[MIMIC3_CHANNELS] = {0};
    double sum[MIMIC3_CHANNELS] = {0}, squares[MIMIC3_CHANNELS] = {0};
    for (size_t i = 0; i < arrlenu(d->events); i++) {
        const mtan_event e = d->events[i];
        events[e.channel]++, sum[e.channel] += (double)e.value, squares[e.channel] += (double)e.value * (double)e.value;
    }
    return same_counts(tensor_name(prefix, "channel.events"), events, MIMIC3_CHANNELS) &
           same_sums(tensor_name(prefix, "channel.sum"), sum, MIMIC3_CHANNELS) &
           same_sums(tensor_name(prefix, "channel.squares"), squares, MIMIC3_CHANNELS);
}

static int records_agree(const dataset *d, const char *prefix) {
    const size_t n = arrlenu(d->records);
    int32_t events[MOST_RECORDS], times[MOST_RECORDS];
    double sum[MOST_RECORDS] = {0}, weighted[MOST_RECORDS] = {0};
    for (size_t i = 0; i < n; i++) {
        const dataset_record *r = &d->records[i];
        events[i] = r->n_events, times[i] = r->n_times;
        for (int32_t j = 0; j < r->n_events; j++) {
            const mtan_event e = d->events[r->event0 + (size_t)j];
            sum[i] += (double)e.value;
            weighted[i] += (double)e.value * ((double)e.time + 1) * (e.channel + 1);
        }
    }
    return same_counts(tensor_name(prefix, "events"), events, n) & same_counts(tensor_name(prefix, "times"), times, n) &
           same_sums(tensor_name(prefix, "sum"), sum, n) & same_sums(tensor_name(prefix, "weighted"), weighted, n);
}

static int names_agree(const dataset *d, const char *prefix) {
    double ids[2] = {0};
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        ids[0] += (double)(i + 1) * atoi(dataset_name(d, i));
        ids[1] += (double)(i + 1) * d->records[i].group;
    }
    return same_sums(tensor_name(prefix, "ids"), ids, 2) &
           same_counts(tensor_name(prefix, "label"), d->labels, arrlenu(d->labels));
}

/* Before and after the missing series are filled: faithful from all records, correct from every other one. */
static int preset_agrees(const char *folder_name, const char *prefix, int faithful) {
    char filled[32];
    double means[MIMIC3_CHANNELS];
    int32_t train[MOST_RECORDS];
    size_t n = 0;
    dataset d;
    int good;
    if (!mimic3_load(&d, folder_name, faithful, NULL, NULL)) return printf("  BAD %s\n", d.error), 0;
    if (arrlenu(d.records) > MOST_RECORDS) return dataset_free(&d), 0;
    good = names_agree(&d, prefix) & channels_agree(&d, prefix) & records_agree(&d, prefix);
    for (size_t i = 0; i < arrlenu(d.records); i += 2) train[n++] = (int32_t)i;
    mimic3_means(&d, faithful ? NULL : train, n, means);
    mimic3_fill_missing(&d, faithful ? NULL : train, n);
    snprintf(filled, sizeof filled, "%s.filled", prefix);
    good &= same_sums(tensor_name(prefix, "mean"), means, MIMIC3_CHANNELS) & channels_agree(&d, filled) &
            records_agree(&d, filled);
    dataset_free(&d);
    return good;
}

TEST the_demo_agrees_with_pandas(void) {
    const char *path = getenv("MTAN_MIMIC3");
    if (!path) SKIPm("MTAN_MIMIC3 does not name the folder of MIMIC-III's demo");
    ASSERT(preset_agrees(path, "faithful", 1));
    ASSERT(preset_agrees(path, "correct", 0));
    PASS();
}

SUITE(mimic3_suite) {
    RUN_TEST(faithful_takes_48_hours_from_the_first_row);
    RUN_TEST(faithful_has_the_published_defects);
    RUN_TEST(faithful_appends_lists);
    RUN_TEST(faithful_shows_200_times);
    RUN_TEST(correct_starts_at_the_icu);
    RUN_TEST(correct_converts_and_limits);
    RUN_TEST(days_are_those_of_the_calendar);
    RUN_TEST(missing_series_get_the_mean);
    RUN_TEST(a_set_without_an_event_stays_so);
    RUN_TEST(a_filled_record_may_gain_a_time);
    RUN_TEST(a_bad_line_is_named);
    RUN_TEST(a_missing_table_is_named);
    RUN_TEST(tables_may_look_different);
    RUN_TEST(the_demo_agrees_with_pandas);
}
