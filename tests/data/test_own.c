/* People's own CSV files: what a row means, what is refused and in which words, whole files and streams.
 *
 * A data set is compared as text: "a 0:HR=80 1.5:BP=3 -> 1 | b" is record a with two observations and label 1, then b
 * with neither. Dates are held to Python's datetime, numbers to strtod. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef MTAN_ZLIB
#include <zlib.h>
#endif

#include "check.h"
#include "../../tools/data/csv.h"
#include "../../tools/data/field.h"
#include "../../tools/data/names.h"
#include "../../tools/data/own.h"
#include "../../tools/data/split.h"

#define HEADER "record,time,channel,value\n"

static char folder[64]; /* of the test that runs */
static own_options options;
static dataset set;
static char *shown; /* stb_ds array: what the last call of render or notes wrote */

static void set_up(void *unused) {
    (void)unused;
    strcpy(folder, "build/own-XXXXXX");
    if (!mkdtemp(folder)) perror("mtan: build"), exit(2);
    memset(&options, 0, sizeof options);
    memset(&set, 0, sizeof set);
}

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void tear_down(void *unused) {
    (void)unused;
    remove(in_folder("events.csv")), remove(in_folder("labels.csv"));
    rmdir(folder);
    arrfree(options.channels), arrfree(options.classes);
    dataset_free(&set);
    arrfree(shown);
}

static void write_bytes(const char *name, const char *bytes, size_t n) {
    FILE *f = fopen(in_folder(name), "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) perror("mtan: build"), exit(2);
}

static void write_text(const char *name, const char *text) {
    write_bytes(name, text, strlen(text));
}

/* ---- data sets as text ---- */

static void show(const char *format, ...) {
    char text[256];
    va_list arguments;
    int n;
    va_start(arguments, format);
    n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(arraddnptr(shown, (size_t)n), text, (size_t)n);
}

static void show_labels(const dataset *d, const dataset_record *r) {
    for (int32_t i = 0; i < r->n_labels; i++) {
        const int32_t label = d->labels[r->label0 + (size_t)i];
        show(i == 0 ? " -> " : " ");
        if (d->label_times) show("%.7g:", (double)d->label_times[r->label0 + (size_t)i]);
        show("%s", label == MTAN_UNLABELED ? "?" : d->classes[label]);
    }
}

static const char *render(const dataset *d) {
    arrsetlen(shown, 0);
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        const dataset_record *r = &d->records[i];
        show(i == 0 ? "%s" : " | %s", dataset_name(d, i));
        for (int32_t k = 0; k < r->n_events; k++) {
            const mtan_event e = d->events[r->event0 + (size_t)k];
            show(" %.7g:%s=%.7g", (double)e.time, d->channels[e.channel], (double)e.value);
        }
        show_labels(d, r);
    }
    arrput(shown, 0);
    return shown;
}

/* The notes, one after the other, without the folder. */
static const char *notes(const dataset *d) {
    arrsetlen(shown, 0);
    for (size_t i = 0; i < arrlenu(d->notes); i++) {
        const size_t prefix = strlen(folder) + 1;
        if (strncmp(d->notes[i], folder, prefix - 1) != 0) show("(no folder) ");
        show(i == 0 ? "%s" : "; %s", d->notes[i] + prefix);
    }
    arrput(shown, 0);
    return shown;
}

static int same(const char *expected, const char *got) {
    if (strcmp(expected, got) == 0) return 1;
    printf("  BAD    %s\n  wanted %s\n", got, expected);
    return 0;
}

/* ---- loading ---- */

static int load(const char *events, const char *labels) {
    dataset_free(&set);
    write_text("events.csv", events);
    if (labels) write_text("labels.csv", labels);
    char *labels_path = labels ? strdup(in_folder("labels.csv")) : NULL;
    const int good = own_load(&set, in_folder("events.csv"), labels_path, &options);
    free(labels_path);
    return good;
}

/* Is this what comes of it? */
static int gives(const char *events, const char *labels, const char *expected) {
    if (!load(events, labels)) return printf("  BAD    %s\n", set.error), 0;
    return same(expected, render(&set));
}

/* Is it refused with these words behind the folder? NULL: with any. */
static int refuses(const char *events, const char *labels, const char *expected) {
    char whole[600];
    snprintf(whole, sizeof whole, "%s/%s", folder, expected ? expected : "");
    if (load(events, labels)) return printf("  BAD    no error\n  wanted %s\n", whole), 0;
    return !expected || same(whole, set.error);
}

/* ---- columns ---- */

TEST the_columns_go_by_name(void) {
    static const char *const files[] = {
        HEADER "a,0,HR,80\na,1.5,BP,3\nb,2,HR,70\n",
        "value,channel,time,record\n80,HR,0,a\n3,BP,1.5,a\n70,HR,2,b\n",
        "subject_id,time,code,numeric_value\na,0,HR,80\na,1.5,BP,3\nb,2,HR,70\n",
        "time_series_id,channel_id,timestamp,value\na,HR,0,80\na,BP,1.5,3\nb,HR,2,70\n",
        "\xef\xbb\xbfRecord, TIME ,\"Channel\", Value\r\na , 0,HR,80\r\n\"a\", \"1.5\" , BP,\" 3\"\r\n\r\nb,2,HR,70",
        "record,timestamp,code,numeric_value\na,0,HR,80\na,1.5,BP,3\nb,2,HR,70\n", /* of several layouts */
        "\n \t\n" HEADER "\na,0,HR,80\n  \na,1.5,BP,3\r\n\r\nb,2,HR,70\n\n"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        ASSERT(gives(files[i], NULL, "a 0:HR=80 1.5:BP=3 | b 2:HR=70"));
        ASSERT_STR_EQ("", notes(&set));
        ASSERT_STR_EQ("", set.unit);
        ASSERT(!set.classes && !set.label_times && set.records[0].group == -1 && set.records[0].n_times == 2);
    }
    PASS();
}

TEST nixtla_has_a_single_channel(void) {
    ASSERT(gives("unique_id,ds,y,price,Promo day\n1,1,5,9,9\n1,2,6,9,9\n2,1,,9,9\n", NULL, "1 1:y=5 2:y=6 | 2"));
    ASSERT(same("events.csv: columns ignored: \"price\", \"Promo day\"; events.csv: 1 row without a y left out",
                notes(&set)));
    /* value and time are columns of another layout, and here no more than extra ones */
    ASSERT(gives("unique_id,ds,y,value,time\n1,1,5,x,x\n", NULL, "1 1:y=5"));
    arrput(options.channels, "x");
    ASSERT(refuses("unique_id,ds,y\n1,1,5\n", NULL,
                   "events.csv:2: the model has no channel \"y\" (--skip-unknown leaves such rows out)"));
    PASS();
}

/* A column per channel. */
TEST a_wide_file_is_read(void) {
    static const char *const files[] = {
        "record,time,HR,BP\na,0,80,\na,1.5,,3\nb,2,70,NA\n",
        "HR,Subject_ID,x y,BP, Timestamp\n80,a,,,0\n,a,,3,1.5\n70,b,nan,,2\n",
        "\xef\xbb\xbfunique_id,ds, \"HR\" ,BP\r\na,0,80,\r\na,1.5,,\" 3\"\r\n\r\nb,2,70,null"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        ASSERT(gives(files[i], NULL, "a 0:HR=80 1.5:BP=3 | b 2:HR=70"));
        ASSERT_STR_EQ("", notes(&set));
        ASSERT_EQ_FMT((size_t)2, arrlenu(set.channels), "%zu"); /* a column without a value is none */
    }
    ASSERT(gives("record,time,y,x\nb,2,1,2\na,1,3,\nb,2,3,\nc,,,\nb,1,,5\n", "record,label\na,u\nb,v\n",
                 "b 1:x=5 2:x=2 2:y=2 -> v | a 1:y=3 -> u | c"));
    ASSERT(same("events.csv: 1 repeat of a record, time and channel averaged; labels.csv: records without a label: 1",
                notes(&set)));
    ASSERT(gives("record,time,x,y,z\na,0,1,2,3\n", NULL, "a 0:x=1 0:y=2 0:z=3")); /* not Nixtla's y */
    ASSERT(gives("record,time,x\na,2024-01-01,1\na,2024-01-02,2\n", NULL, "a 0:x=1 24:x=2"));
    ASSERT_STR_EQ("hours", set.unit);
    arrput(options.channels, "x");
    ASSERT(refuses("record,time,x,z\na,0,1,\na,1,1,7\n", NULL,
                   "events.csv:3: the model has no channel \"z\" (--skip-unknown leaves such rows out)"));
    options.skip_unknown = 1;
    ASSERT(gives("record,time,x,z\na,0,1,\na,1,1,7\n", NULL, "a 0:x=1 1:x=1"));
    ASSERT(same("events.csv: 1 value of channels that the model does not have left out, \"z\" the first", notes(&set)));
    PASS();
}

TEST a_wide_file_is_refused(void) {
    static const char *const bad[][2] = {
        {"record,time,hr,label\n", "events.csv:1: column 4, \"label\", is no channel: labels have a file of their own"},
        {"record,time,hr,Boolean_Value\n",
         "events.csv:1: column 4, \"Boolean_Value\", is no channel: labels have a file of their own"},
        {",record,time,hr\n", "events.csv:1: column 1, \"\", has no name: it would be the channel's"},
        {"record,time,hr,bp,hr\n", "events.csv:1: column 5, \"hr\", is there twice"},
        {"record,time,hr,TIME\n", "events.csv:1: column 4, \"TIME\", is there twice"},
        {"record,time,hr,bp\na,0,1\n", "events.csv:2: 3 fields, but the header has 4"},
        {"record,time,hr,bp\n,0,1,2\n", "events.csv:2: the record's name is empty"},
        {"record,time,hr,bp\na,0,1,2\na,soon,1,2\n",
         "events.csv:3: \"soon\" is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z"},
        {"record,time,hr,sex\na,0,1,\na,1,,F\n", "events.csv:3: \"F\" in column \"sex\" is no value: a number that a "
                                                 "float can hold, or nothing (each column but "
                                                 "the record's and the time's is a channel)"},
        {"record,time,hr\na,0,1e39\n",
         "events.csv:2: \"1e39\" in column \"hr\" is no value: a number that a float can hold, or nothing (each column "
         "but the record's and the time's is a channel)"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) ASSERT(refuses(bad[i][0], NULL, bad[i][1]));
    PASS();
}

#define NAMES                                                                                                          \
    "record,time,channel,value or subject_id,time,code,numeric_value or unique_id,ds,y or "                            \
    "time_series_id,timestamp,channel_id,value, or record,time and one column per channel"

TEST a_header_that_does_not_do_is_named(void) {
    static const char *const bad[][2] = {
        {"", "events.csv: empty, without so much as a header"},
        {"\n\n", "events.csv: empty, without so much as a header"},
        {"a,0,HR,80\n", "events.csv:1: no column \"record\": the first line has to name the columns " NAMES},
        {"\n\nrecord,time,value\n",
         "events.csv:3: no column \"channel\": the first line has to name the columns " NAMES},
        {"record,time\n", "events.csv:1: no column \"channel\": the first line has to name the columns " NAMES},
        {"record,time,code,z\n", "events.csv:1: no column \"value\": the first line has to name the columns " NAMES},
        {"record,channel,value\n", "events.csv:1: no column \"time\": the first line has to name the columns " NAMES},
        {"record;time;channel;value\na;0;HR;80\n",
         "events.csv:1: the columns are separated by semicolons: this reader takes commas alone"},
        {"record\ttime\tchannel\tvalue\n",
         "events.csv:1: the columns are separated by tabs: this reader takes commas alone"},
        {"record,time,channel,value,Value\n", "events.csv:1: two columns are called \"value\""},
        {"record,\"time\n", "events.csv:1: a quote that is never closed"},
        {HEADER, "events.csv: no record"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) ASSERT(refuses(bad[i][0], NULL, bad[i][1]));
    ASSERT(refuses(HEADER "a,0,HR,80\n", "record,time\n",
                   "labels.csv:1: no column \"label\": the first line has to name the columns record,label or "
                   "record,time,label or subject_id,prediction_time,boolean_value, or record and one column of 1 and 0 "
                   "per label"));
    ASSERT(!own_load(&set, in_folder("nowhere.csv"), NULL, &options) && strstr(set.error, "nowhere.csv: No such file"));
    ASSERT(!own_load(&set, in_folder("events.csv"), "build/no labels", NULL) && strstr(set.error, "build/no labels: "));
    PASS();
}

/* ---- rows ---- */

TEST a_bad_row_is_named_with_its_line(void) {
    static const char *const bad[][2] = {
        {"a,0,HR\n", "3: 3 fields, but the header has 4"},
        {"a,0,HR,80,\n", "3: 5 fields, but the header has 4"},
        {"\n\n,0,HR,80\n", "5: the record's name is empty"},
        {"\" \",0, ,80\n", "3: the channel's name is empty"},
        {"a,0,\"\",\n", "3: the channel's name is empty"},
        {"a,0,HR,inf\n", "3: \"inf\" is no value: a number that a float can hold, or nothing"},
        {"a,0,HR,-Infinity\n", "3: \"-Infinity\" is no value: a number that a float can hold, or nothing"},
        {"a,0,HR,0x10\n", "3: \"0x10\" is no value: a number that a float can hold, or nothing"},
        {"a,0,HR,\"1,5\"\n", "3: \"1,5\" is no value: a number that a float can hold, or nothing"},
        {"a,0,HR,1e39\n", "3: \"1e39\" is no value: a number that a float can hold, or nothing"},
        {"a,0,HR,1 2\n", "3: \"1 2\" is no value: a number that a float can hold, or nothing"},
        {"a,0,HR,naan\n", "3: \"naan\" is no value: a number that a float can hold, or nothing"},
        {"a,,HR,1\n", "3: \"\" is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z"},
        {"a,nan,HR,1\n", "3: \"nan\" is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z"},
        {"a,1e999,HR,1\n", "3: \"1e999\" is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z"},
        {"a,2024-02-30,HR,1\n",
         "3: \"2024-02-30\" is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z"},
        {"a,2024-02-28,HR,1\n", "3: \"2024-02-28\" is a date, but the times before are numbers"},
        {"a,0,HR,\"1\"2\n", "3: text behind a closing quote"},
        {"a,0,H\"R,1\n", "3: a quote inside a field that does not begin with one"},
        {"a,0,\"HR,1\na,1,HR,2\n", "3: a quote that is never closed"},
        {"a,0,HR,1\ra,1,HR,2\n", "3: a carriage return inside a line: lines end with LF or CRLF"},
        {"a,0,\"two\nlines\",1\na,\"0\n\",HR,1\na,0,HR,x\n",
         "5: \"0?\" is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z"},
        {"a,0,HR,this text is longer than messages are wide\n",
         "3: \"this text is longer than messages are wi...\" is no value: a number that a float can hold, or "
         "nothing"}};
    char events[256], expected[256];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(events, sizeof events, "%sok,1,HR,1\n%s", HEADER, bad[i][0]);
        snprintf(expected, sizeof expected, "events.csv:%s", bad[i][1]);
        ASSERT(refuses(events, NULL, expected));
    }
    write_bytes("events.csv", HEADER "a,0,H\0,1\n", sizeof HEADER - 1 + 9);
    ASSERT(!own_load(&set, in_folder("events.csv"), NULL, NULL) && strstr(set.error, "events.csv:2: a zero byte"));
    ASSERT(refuses(HEADER "a,2024-01-01,HR,1\na,2024-01-01 12:00,HR,1\na,12,HR,1\n", NULL,
                   "events.csv:4: \"12\" is a number, but the times before are dates"));
    PASS();
}

TEST quotes_and_line_ends_are_part_of_names(void) {
    ASSERT(gives(HEADER
                 "\"a,1\",0,\" H\"\"R \",80\r\n\"two\r\nlines\",0,\"\"\"\",1\n\"a,1\",\"1\",\" H\"\"R \",\"81\"\n",
                 NULL, "a,1 0: H\"R =80 1: H\"R =81 | two\nlines 0:\"=1"));
    PASS();
}

TEST missing_values_are_left_out_and_counted(void) {
    ASSERT(gives(HEADER "a,0,HR,\na,1,HR,NaN\na,2,HR,nan\nb,3,BP,NA\nb,,HR,null\nb,x,Other,NULL\nc,4,HR,7\nc,5,HR, \n",
                 NULL, "a | b | c 4:HR=7"));
    ASSERT(same("events.csv: 7 rows without a value left out", notes(&set)));
    ASSERT_EQ(1, arrlen(set.channels)); /* of those that were ever observed */
    ASSERT(gives("subject_id,time,code,numeric_value,text_value\n1,,GENDER//M,,\n1,2024-01-01T00:00:00,HR,60,\n", NULL,
                 "1 0:HR=60"));
    ASSERT(same("events.csv: columns ignored: \"text_value\"; events.csv: 1 row without a numeric_value left out",
                notes(&set)));
    PASS();
}

TEST repeats_are_averaged_and_counted(void) {
    ASSERT(gives(HEADER "a,1,HR,1\na,1,BP,5\nb,1,HR,9\na,1.0,HR,2\na,0,HR,4\na,1e0,HR,6\n", NULL,
                 "a 0:HR=4 1:BP=5 1:HR=3 | b 1:HR=9"));
    ASSERT(same("events.csv: 2 repeats of a record, time and channel averaged", notes(&set)));
    PASS();
}

TEST the_order_of_rows_does_not_matter(void) {
    static const char *const rows[] = {"p,3,10,1\n", "p,1,9,2\n", "p,2,-1,3\n", "p,1,10,4\n", "p,2,9,5\n"};
    char events[256];
    for (size_t first = 0; first < 5; first++)
        for (size_t step = 1; step < 5; step++) {
            strcpy(events, HEADER);
            for (size_t i = 0; i < 5; i++) strcat(events, rows[(first + i * step) % 5]);
            ASSERT(gives(events, NULL, "p 1:9=2 1:10=4 2:-1=3 2:9=5 3:10=1"));
            ASSERT(same("-1", set.channels[0]) && same("9", set.channels[1]) && same("10", set.channels[2]));
        }
    /* One name that is no integer, and all go by their bytes. */
    ASSERT(gives(HEADER "p,1,b,1\np,1,10,2\np,1,9,3\np,1,B,4\n", NULL, "p 1:10=2 1:9=3 1:B=4 1:b=1"));
    ASSERT(gives(HEADER "z,1,c,1\n10,1,c,2\n9,2,c,3\nz,0,c,4\n9,1,c,5\n", NULL,
                 "z 0:c=4 1:c=1 | 10 1:c=2 | 9 1:c=5 2:c=3"));
    PASS();
}

TEST channels_of_a_model_keep_their_places(void) {
    arrput(options.channels, "Temp"), arrput(options.channels, "HR"), arrput(options.channels, "BP");
    ASSERT(gives(HEADER "a,1,BP,1\na,1,Temp,2\n", NULL, "a 1:Temp=2 1:BP=1"));
    ASSERT_EQ(3, arrlen(set.channels));
    ASSERT_EQ(2, set.events[1].channel);
    ASSERT(refuses(HEADER "a,1,BP,1\na,1,hr,2\n", NULL,
                   "events.csv:3: the model has no channel \"hr\" (--skip-unknown leaves such rows out)"));
    options.skip_unknown = 1;
    ASSERT(gives(HEADER "a,1,BP,1\na,1,hr,2\nb,2,X,3\nb,2,X,\n", NULL, "a 1:BP=1 | b"));
    ASSERT(
        same("events.csv: 1 row without a value left out; events.csv: 2 rows of channels that the model does not have "
             "left out, \"hr\" the first",
             notes(&set)));
    arrput(options.channels, "HR");
    ASSERT(!load(HEADER, NULL) && same("the model has two channels or two classes of one name", set.error));
    PASS();
}

/* ---- times and numbers ---- */

/* From Python: datetime.fromisoformat, as UTC where it says nothing, minus 1970-01-01, in 100 ns. */
TEST dates_are_those_of_python(void) {
    static const struct {
        const char *text;
        int64_t ticks;
    } dates[] = {{"1970-01-01", 0},
                 {"2024-05-31", INT64_C(17171136000000000)},
                 {"2024-02-29T23:59:59Z", INT64_C(17092511990000000)},
                 {"2024-05-31T23:59", INT64_C(17171999400000000)},
                 {"2024-05-31 23:59:00.25+02:00", INT64_C(17171927402500000)},
                 {"0001-01-01", INT64_C(-621355968000000000)},
                 {"9999-12-31T23:59:59.999999", INT64_C(2534023007999999990)},
                 {"1900-03-01 00:00:00", INT64_C(-22038912000000000)},
                 {"2000-02-29", INT64_C(9517824000000000)},
                 {"1969-12-31T23:59:59.5Z", INT64_C(-5000000)},
                 {"2024-01-01T00:00:00-05:30", INT64_C(17040870000000000)},
                 {"2024-05-31T01:02:03+0200", INT64_C(17171101230000000)},
                 {"2024-05-31T01:02:03+02", INT64_C(17171101230000000)},
                 {"2150-11-20 14:47:05.123456", INT64_C(57082420251234560)},
                 {"1583-10-15T12:00-23:59", INT64_C(-121876272600000000)},
                 {" 2100-02-28T23:00:00Z ", INT64_C(41075388000000000)}};
    static const char *const others[] = {"",
                                         "2024",
                                         "2024-05",
                                         "2024-5-31",
                                         "2024-13-01",
                                         "2024-00-01",
                                         "2024-01-00",
                                         "2023-02-29",
                                         "1900-02-29",
                                         "0000-01-01",
                                         "2024-05-31T",
                                         "2024-05-31T23",
                                         "2024-05-31T24:00",
                                         "2024-05-31T23:60",
                                         "2024-05-31T23:59:60",
                                         "2024-05-31T23:59:",
                                         "2024-05-31T23:59.5",
                                         "2024-05-31T23:59:00.",
                                         "2024-05-31T23:59:00,5",
                                         "2024-05-31T23:59:00+",
                                         "2024-05-31T23:59:00+2",
                                         "2024-05-31T23:59:00+24:00",
                                         "2024-05-31T23:59:00+02:60",
                                         "2024-05-31T23:59:00+02:",
                                         "2024-05-31T23:59:00+02:3",
                                         "2024-05-31T23:59:00Z1",
                                         "2024-05-31Z",
                                         "2024-05-31x",
                                         "2024-05-31  23:59",
                                         "2024/05/31"};
    int64_t ticks;
    for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++) {
        ASSERT(field_date(dates[i].text, &ticks));
        ASSERT_EQ_FMT((long long)dates[i].ticks, (long long)ticks, "%lld");
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (field_date(others[i], &ticks)) FAILm(others[i]);
    for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++) /* and back */
        if (!field_date(field_date_text(dates[i].ticks).text, &ticks) || ticks != dates[i].ticks) FAILm(dates[i].text);
    ASSERT_STR_EQ("1900-03-01T00:00:00Z", field_date_text(INT64_C(-22038912000000000)).text);
    ASSERT_STR_EQ("2024-05-31T21:59:00.25Z", field_date_text(INT64_C(17171927402500000)).text);
    for (int64_t day = -700000; day < 2900000; day += 11) {
        const int64_t noon = INT64_C(432000000000) * (2 * day + 1);
        ASSERT(field_date(field_date_text(noon).text, &ticks) && ticks == noon);
    }
    ASSERT(field_date("1970-01-01T00:00:00.123456789", &ticks) && ticks == 1234567);
    PASS();
}

static uint32_t draw(uint32_t *state, uint32_t below) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 16) % below;
}

/* One to twelve digits, a point, none to eleven digits, half of the time an exponent of two digits. */
static void random_number(char *text, uint32_t *state) {
    for (uint32_t n = 1 + draw(state, 12); n > 0; n--) *text++ = (char)('0' + draw(state, 10));
    *text++ = '.';
    for (uint32_t n = draw(state, 12); n > 0; n--) *text++ = (char)('0' + draw(state, 10));
    *text = 0;
    if (draw(state, 2)) sprintf(text, "e%d", (int)draw(state, 61) - 30);
}

TEST numbers_are_those_of_strtod(void) {
    static const char *const given[] = {"0",
                                        "-0",
                                        "+1",
                                        ".5",
                                        "5.",
                                        "1e5",
                                        "1E+5",
                                        "-1.25e-3",
                                        "1e22",
                                        "1e23",
                                        "1e-22",
                                        "1e-23",
                                        "1e308",
                                        "5e-324",
                                        "1e-400",
                                        "0.1",
                                        "9007199254740993",
                                        "123456789012345678901234567890",
                                        "0.000000000000000000000001",
                                        "2.2250738585072011e-308",
                                        "00012.50",
                                        " 7\t"};
    static const char *const others[] = {
        "",   " ",   "-",    "+",   ".",   "e5",  "1e",  "1e+",   "1.2.3",          "0x1p3",
        "1f", "1_0", "1e5.", "--1", "1 2", "inf", "nan", "1e309", "-1e999999999999"};
    uint32_t state = 1;
    double x;
    char text[64];
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
        if (!field_number(given[i], &x) || x != strtod(given[i], NULL)) FAILm(given[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (field_number(others[i], &x)) FAILm(others[i]);
    for (int i = 0; i < 20000; i++) {
        random_number(text, &state);
        if (!field_number(text, &x) || x != strtod(text, NULL)) FAILm(text);
        if (strtod(field_number_text(x).text, NULL) != x) FAILm(text); /* and back */
    }
    ASSERT_STR_EQ("4.51", field_number_text(4.51).text);
    ASSERT_STR_EQ("1700000032", field_number_text(1700000032).text);
    ASSERT_STR_EQ("100000", field_number_text(1e5).text);
    ASSERT_STR_EQ("-1e+300", field_number_text(-1e300).text);
    ASSERT_STR_EQ("0.30000000000000004", field_number_text(0.1 + 0.2).text);
    PASS();
}

TEST dates_become_hours_since_the_first_observation(void) {
    ASSERT(gives(HEADER "a,2150-01-02,HR,1\na,2150-01-01T12:30:00Z,HR,2\nb,2024-05-31 01:00:00+01:00,HR,3\n"
                        "b,2024-05-31 00:00:36,HR,4\na,2150-01-01T00:00:00,HR,\n",
                 NULL, "a 0:HR=2 11.5:HR=1 | b 0:HR=3 0.01:HR=4"));
    ASSERT_STR_EQ("hours", set.unit);
    options.origin = OWN_ORIGIN_RECORD; /* says the same */
    ASSERT(gives(HEADER "a,2150-01-02,HR,1\na,2150-01-01,HR,2\n", NULL, "a 0:HR=2 24:HR=1"));
    options.origin = OWN_ORIGIN_ZERO;
    ASSERT(refuses(HEADER "a,2150-01-02,HR,1\n", NULL,
                   "events.csv:2: \"2150-01-02\" is a date: --origin zero takes numbers"));
    PASS();
}

/* Seconds since 1970: a float tells them apart by 128. */
#define SECONDS HEADER "a,1700000000,HR,1\na,1700000032,HR,2\na,1699999999,HR,3\nb,1700000000,HR,4\n"

TEST numbers_follow_the_origin(void) {
    ASSERT(gives(HEADER "a,-5,HR,1\na,1e6,HR,2\n", NULL, "a -5:HR=1 1000000:HR=2"));
#ifdef MTAN_DOUBLE
    ASSERT(load(SECONDS, NULL) && set.records[0].n_times == 3);
#else
    ASSERT(refuses(
        SECONDS, NULL,
        "events.csv:4: the times 1699999999 and 1700000000 of record \"a\" are one in float: use --origin record"));
    options.origin = OWN_ORIGIN_ZERO;
    ASSERT(gives(SECONDS, NULL, "a 1.7e+09:HR=2 | b 1.7e+09:HR=4"));
    ASSERT(same(
        "events.csv: 2 repeats of a record, time and channel averaged; events.csv: 2 times became equal to another "
        "by rounding",
        notes(&set)));
    options.origin = OWN_ORIGIN_AUTO;
    ASSERT(refuses(HEADER "a,1e200,HR,1\n", NULL, "events.csv:2: the time is too large for a float"));
    ASSERT(gives(HEADER "a,0.5,HR,1\na,2600.53708,HR,2\na,2600.53712,HR,4\n", NULL, "a 0.5:HR=1 2600.537:HR=3"));
    /* two of a record that lasts years, seconds apart: another origin would help one time, not the next */
    ASSERT(gives(HEADER "a,300.5,HR,1\na,2600.53708,HR,2\na,2600.53712,HR,4\n", NULL, "a 300.5:HR=1 2600.537:HR=3"));
    ASSERT(
        same("events.csv: 1 repeat of a record, time and channel averaged; events.csv: 1 time became equal to another "
             "by rounding",
             notes(&set)));
#endif
    options.origin = OWN_ORIGIN_RECORD;
    ASSERT(gives(SECONDS, NULL, "a 0:HR=3 1:HR=1 33:HR=2 | b 0:HR=4"));
    ASSERT_STR_EQ("", notes(&set));
    PASS();
}

/* ---- labels ---- */

#define THREE HEADER "a,1,c,1\nb,2,c,2\nd,3,c,3\n"

TEST records_have_labels(void) {
    ASSERT(gives(THREE, "record,label\nb,10\na,9\n", "a 1:c=1 -> 9 | b 2:c=2 -> 10 | d 3:c=3"));
    ASSERT(same("9", set.classes[0]) && same("10", set.classes[1]) && arrlen(set.classes) == 2);
    ASSERT(same("labels.csv: records without a label: 1", notes(&set)));
    ASSERT(gives(THREE, "label,x,Record\n10,,b\nx,,a\n9,,d\n10,,b\n", "a 1:c=1 -> x | b 2:c=2 -> 10 | d 3:c=3 -> 9"));
    ASSERT(same("10", set.classes[0]) && same("9", set.classes[1]) && same("x", set.classes[2]));
    ASSERT(same("labels.csv: columns ignored: \"x\"", notes(&set)));
    ASSERT(gives(THREE, "subject_id,prediction_time,boolean_value\nz,,true\na,,false\n",
                 "a 1:c=1 -> false | b 2:c=2 | d 3:c=3 | z -> true"));
    ASSERT(same("labels.csv: labelled records without an observation: 1 of 2; labels.csv: records without a label: 2",
                notes(&set)));
    ASSERT(gives(THREE, "unique_id,label\na,\nb,NA\nd,1\na,2\nd,\n", "a 1:c=1 -> 2 | b 2:c=2 | d 3:c=3 -> 1"));
    ASSERT(same("labels.csv: 3 rows without a label left out; labels.csv: records without a label: 1", notes(&set)));
    ASSERT(gives(THREE, "time_series_id,label\na,1\n", "a 1:c=1 -> 1 | b 2:c=2 | d 3:c=3"));
    PASS();
}

TEST labels_that_do_not_do_are_refused(void) {
    char labels[1 << 16];
    size_t n;
    ASSERT(refuses(THREE, "record,label\na,1\nb,1\na,0\n",
                   "labels.csv:4: record \"a\" has label \"0\" here and \"1\" elsewhere"));
    ASSERT(refuses(THREE, "record,label\na,1\n,1\n", "labels.csv:3: the record's name is empty"));
    ASSERT(refuses(THREE, "record,label\na\n", "labels.csv:2: 1 field, but the header has 2"));
    ASSERT(refuses(THREE, "record,label\na,\n", "labels.csv: no label"));
    n = (size_t)sprintf(labels, "record,label\n");
    for (int i = 0; i < 10; i++) n += (size_t)sprintf(labels + n, "r%d,%d.5\n", i, i);
    ASSERT(
        refuses(THREE, labels,
                "labels.csv: all 10 labels are different: no class is learned from one record; is it --task number?"));
    sprintf(labels + n, "a,0.5\n");
    ASSERT(load(THREE, labels) && arrlen(set.classes) == 10);
    n = (size_t)sprintf(labels, "record,label\n");
    for (int i = 0; i <= OWN_CLASSES_MOST; i++) n += (size_t)sprintf(labels + n, "r%d,%d\n", i, i);
    sprintf(labels + n, "a,0\n");
    ASSERT(load(THREE, labels) && arrlen(set.classes) == 1 && set.numbers[4097] == 4096);
    options.task = OWN_TASK_CLASSES;
    ASSERT(refuses(THREE, labels, "labels.csv:4098: more than 4096 classes"));
    options.task = OWN_TASK_NUMBER;
    ASSERT(refuses(THREE, "record,label\na,1\nb,1.1e39\n",
                   "labels.csv:3: label \"1.1e39\" is no number that a float can hold"));
    options.task = OWN_TASK_GUESSED;
    arrput(options.classes, "sick"), arrput(options.classes, "fine");
    ASSERT(gives(THREE, "record,label\na,fine\n", "a 1:c=1 -> fine | b 2:c=2 | d 3:c=3"));
    ASSERT_EQ(1, set.labels[0]);
    ASSERT(refuses(THREE, "record,label\na,Fine\n", "labels.csv:2: the model has no class \"Fine\""));
    PASS();
}

/* A few bad cells, or a few numbers that occur often, make classes of numbers, and it is said. */
TEST numbers_that_become_classes_are_noted(void) {
    char labels[4096];
    size_t n = (size_t)sprintf(labels, "record,label\na,abc\n");
    for (int i = 0; i < 30; i++) n += (size_t)sprintf(labels + n, "r%d,%d.5\nq%d,%d.5\n", i, i, i, i);
    ASSERT(load(THREE, labels) && arrlen(set.classes) == 31);
    ASSERT(strstr(notes(&set), "30 of 31 different labels are numbers and \"abc\" is not: each is taken as a class"));
    n = (size_t)sprintf(labels, "record,label\na,1\n");
    for (int i = 0; i < 60; i++) n += (size_t)sprintf(labels + n, "r%d,%d\n", i, i % 30);
    ASSERT(load(THREE, labels) && arrlen(set.classes) == 30);
    ASSERT(strstr(notes(&set), "30 different numbers, each taken as a class; --task number predicts a number"));
    options.task = OWN_TASK_CLASSES;
    ASSERT(load(THREE, labels) && !strstr(notes(&set), "numbers"));
    PASS();
}

/* Then the two files write the names differently, and a model would learn nothing. */
TEST labels_of_other_records_are_refused(void) {
    ASSERT(refuses(THREE, "record,label\npa,x\npb,y\n", NULL) &&
           strstr(set.error, "/labels.csv: no labelled record (\"pa\""));
    ASSERT(strstr(set.error, "/events.csv (\"a\" is the first) has a label"));
    ASSERT(refuses(THREE, "record,time,label\npa,1,x\na,1,\n", NULL));
    ASSERT(refuses(THREE, "record,sick\npa,1\na,\n", NULL));
    ASSERT(load(THREE, "record,label\npa,x\npb,y\nd,x\n"));
    ASSERT(same("labels.csv: labelled records without an observation: 2 of 3; labels.csv: records without a label: 2",
                notes(&set)));
    ASSERT(load(HEADER "a,1,c,\n", "record,label\na,x\n")); /* the names agree, and no record has an observation */
    PASS();
}

#define MEDS "subject_id,time,code,numeric_value\n"
#define PREDICTIONS "subject_id,prediction_time,boolean_value\n"

/* What comes after a prediction is not seen by it; what comes at it is. */
TEST a_prediction_time_cuts_the_future(void) {
    ASSERT(gives(MEDS "a,3,c,3\na,1,c,1\na,2,c,2\nb,1,c,4\nd,1,c,5\n", PREDICTIONS "a,2,true\na,0.5,false\nb,9,true\n",
                 "d 1:c=5 | a@2 1:c=1 2:c=2 -> true | a@0.5 -> false | b@9 1:c=4 -> true"));
    ASSERT(!set.label_times &&
           same("labels.csv: labelled records without an observation: 1 of 3; labels.csv: records without a label: 1",
                notes(&set)));
    ASSERT_EQ_FMT(-1, (int)set.records[0].group, "%d");
    ASSERT(set.records[1].group >= 0 && set.records[1].group == set.records[2].group);
    ASSERT(set.records[3].group >= 0 && set.records[3].group != set.records[1].group);
    ASSERT(gives(
        MEDS "a,2024-01-01T06:00:00,c,1\na,2024-01-01 07:30:00,c,2\na,2024-01-02,c,3\n",
        PREDICTIONS "a,2024-01-01T07:30:00,true\na,2024-01-01T07:29:59,false\nz,2024-01-01,true\n",
        "a@2024-01-01T07:30:00 0:c=1 1.5:c=2 -> true | a@2024-01-01T07:29:59 0:c=1 -> false | z@2024-01-01 -> true"));
    ASSERT(same("labels.csv: labelled records without an observation: 1 of 3", notes(&set)));
    /* Without a time a label is the subject's own; the column counts beside any names, and before one called time. */
    ASSERT(gives(HEADER "a,1,c,1\na,2,c,2\n", "record,time,prediction_time,label\na,9,,x\na,9,1,y\na,9,1,y\n",
                 "a 1:c=1 2:c=2 -> x | a@1 1:c=1 -> y"));
    ASSERT(set.records[0].group == 0 && set.records[1].group == 0);
    PASS();
}

TEST prediction_times_that_do_not_do_are_refused(void) {
    ASSERT(refuses(MEDS "a,1,c,1\n", PREDICTIONS "a,2,true\na,2,false\n",
                   "labels.csv:3: record \"a@2\" has label \"false\" here and \"true\" elsewhere"));
    ASSERT(refuses(MEDS "a,1,c,1\n", PREDICTIONS "a,2024-01-01,true\n",
                   "labels.csv:2: \"2024-01-01\" is a date, but the times before are numbers"));
    ASSERT(refuses(MEDS "a,1,c,1\na@2,1,c,1\n", PREDICTIONS "a,2,true\n",
                   "labels.csv:2: record \"a@2\" is there already, and no part of \"a\""));
    PASS();
}

/* Static rows of MEDS stand at time 0 of their record, and no prediction time cuts them. */
TEST rows_without_a_time_are_static(void) {
    ASSERT(gives(MEDS "a,,age,60\na,5,c,1\nb,,age,70\nb,,sex,\n", PREDICTIONS "a,2,true\na,6,false\n",
                 "b 0:age=70 | a@2 0:age=60 -> true | a@6 0:age=60 5:c=1 -> false"));
    ASSERT(gives(MEDS "a,2024-01-02,c,1\na,,age,60\na,2024-01-01,c,2\n", NULL, "a 0:age=60 0:c=2 24:c=1"));
    options.origin = OWN_ORIGIN_RECORD;
    ASSERT(gives(MEDS "a,,age,60\na,7,c,1\na,9,c,2\n", NULL, "a 0:age=60 0:c=1 2:c=2"));
    options.origin = OWN_ORIGIN_AUTO;
    ASSERT(gives(MEDS "a,-1,c,3\na,,age,60\na,7,c,1\n", NULL, "a -1:c=3 0:age=60 7:c=1"));
    ASSERT(refuses(HEADER "a,,age,60\n", NULL,
                   "events.csv:2: \"\" is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z"));
    PASS();
}

/* The records of a column's groups: equal numbers for equal values. */
static const char *groups(void) {
    arrsetlen(shown, 0);
    for (size_t i = 0; i < arrlenu(set.records); i++) {
        size_t same_as = i;
        for (size_t k = 0; k < i && same_as == i && set.records[i].group >= 0; k++)
            if (set.records[k].group == set.records[i].group) same_as = k;
        if (set.records[i].group < 0) show("%s- ", dataset_name(&set, i));
        else show("%s=%s ", dataset_name(&set, i), dataset_name(&set, same_as));
    }
    arrput(shown, 0);
    return shown;
}

TEST a_column_has_groups(void) {
    options.groups = "Ward";
    ASSERT(gives(HEADER "a,0,x,1\nb,0,x,2\nc,0,x,3\nd,0,x,4\n", "record,ward,label\na,w,1\nb,v,0\nc,w,1\nd,,0\n",
                 "a 0:x=1 -> 1 | b 0:x=2 -> 0 | c 0:x=3 -> 1 | d 0:x=4 -> 0"));
    ASSERT(same("a=a b=b c=a d- ", groups()));
    ASSERT(same("", notes(&set))); /* not a column that is ignored */
    ASSERT(
        gives("record,time,WARD,x\na,0,w,1\na,1,,2\nb,0,w,2\n", NULL, "a 0:x=1 1:x=2 | b 0:x=2")); /* nor a channel */
    ASSERT(same("a=a b=a ", groups()));
    /* predictions of one subject stay together, and so do subjects of one group */
    ASSERT(gives(
        MEDS "s,0,x,1\nt,0,x,2\nu,0,x,3\n",
        "subject_id,prediction_time,boolean_value,ward\ns,1,true,w\ns,2,false,w\nt,1,true,w\nu,1,false,\nu,2,true,\n",
        "s@1 0:x=1 -> true | s@2 0:x=1 -> false | t@1 0:x=2 -> true | u@1 0:x=3 -> false | u@2 0:x=3 -> true"));
    ASSERT(same("s@1=s@1 s@2=s@1 t@1=s@1 u@1=u@1 u@2=u@1 ", groups()));
    ASSERT(refuses(HEADER "a,0,x,1\n", "record,label,ward\na,1,w\na,1,v\n",
                   "labels.csv:3: record \"a\" is in group \"v\" here and in \"w\" elsewhere"));
    ASSERT(refuses("record,time,channel,value,ward\na,0,x,1,w\na,0,x,1,v\n", NULL,
                   "events.csv:3: record \"a\" is in group \"v\" here and in \"w\" elsewhere"));
    ASSERT(refuses(HEADER "a,0,x,1\n", "record,label\na,1\n",
                   "events.csv: no column \"Ward\" for groups, here or in the labels"));
    PASS();
}

static const char *parts(const char *text) {
    write_text("splits.csv", text);
    for (size_t i = 0; i < arrlenu(set.records); i++) set.records[i].part = 0;
    const int good = own_read_parts(&set, in_folder("splits.csv"));
    remove(in_folder("splits.csv"));
    if (!good) return set.error + strlen(folder) + 1;
    arrsetlen(shown, 0);
    for (size_t i = 0; i < arrlenu(set.records); i++) show("%d ", (int)set.records[i].part);
    arrput(shown, 0);
    return shown;
}

TEST a_file_has_the_split(void) {
    ASSERT(gives(HEADER "a,0,x,1\nb,0,x,2\n\"c,d\",0,x,3\n", NULL, "a 0:x=1 | b 0:x=2 | c,d 0:x=3"));
    ASSERT(same("3 1 2 ", parts("record,part\nb,train\n\"c,d\",valid\na,test\na,test\n")));
    ASSERT(same("3 1 2 ", parts("part,age,SUBJECT_ID\ntrain,1,b\nvalid,2,\"c,d\"\ntest,3,a\ntrain,4,else\n")));
    ASSERT(same("splits.csv: records that the data does not have: 1", notes(&set)));
    ASSERT(same("splits.csv:3: \"dev\" is no part: train, valid or test", parts("record,part\na,test\nb,dev\n")));
    ASSERT(same("splits.csv:3: record \"a\" is in part train here and in test elsewhere",
                parts("record,part\na,test\na,train\n")));
    ASSERT(same("splits.csv: record \"b\" of the data has no part", parts("record,part\na,test\n")));
    ASSERT(same("splits.csv:1: no column \"part\": the first line has to name the columns record,part",
                parts("record,split\na,test\n")));
    ASSERT(same("splits.csv:2: 1 field, but the header has 2", parts("record,part\na\n")));
    ASSERT(same("splits.csv: empty, without so much as a header", parts("")));
    PASS();
}

/* ---- what does not change ---- */

static void use_statics(const char *text) {
    static char path[128];
    write_text("static.csv", text);
    snprintf(path, sizeof path, "%s", in_folder("static.csv"));
    options.statics = path;
}

#define EVENTS HEADER "a,1,x,5\na,2,x,6\nb,3,x,7\nc,4,x,8\n"

/* Numbers and categories, long and wide; the channels come first. */
TEST statics_are_channels(void) {
    static const char *const files[] = {"record,name,value\na,sex,F\na,age,60\nb,sex,M\nb,age,\nd,age,9\nd,sex,\n",
                                        "sex,RECORD,age\nF,a,60\nM,b,NA\n,d,9\nF,a,60\n"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        use_statics(files[i]);
        ASSERT(
            gives(EVENTS, NULL, "a 0:age=60 0:sex=F=1 0:sex=M=0 1:x=5 2:x=6 | b 0:sex=F=0 0:sex=M=1 3:x=7 | c 4:x=8"));
        ASSERT_EQ_FMT(3, (int)set.statics, "%d");
        ASSERT(strcmp(set.channels[0], "age") == 0 && strcmp(set.channels[2], "sex=M") == 0 &&
               strcmp(set.channels[3], "x") == 0);
        ASSERT_STR_EQ("", notes(&set));
    }
    options.origin = OWN_ORIGIN_RECORD; /* at the first observation */
    ASSERT(gives(EVENTS, NULL, "a 0:age=60 0:sex=F=1 0:sex=M=0 0:x=5 1:x=6 | b 0:sex=F=0 0:sex=M=1 0:x=7 | c 0:x=8"));
    options.origin = OWN_ORIGIN_AUTO;
    use_statics("record,name,value\ns,age,60\n"); /* of a subject: all that is cut out of it */
    ASSERT(gives(MEDS "s,0,x,1\ns,1,x,2\n", "subject_id,prediction_time,boolean_value\ns,0,true\ns,1,false\n",
                 "s@0 0:age=60 0:x=1 -> true | s@1 0:age=60 0:x=1 1:x=2 -> false"));
    use_statics("record,age\nz,1\n");
    ASSERT(gives(HEADER "a,0,x,1\n", NULL, "a 0:x=1"));
    ASSERT(strstr(notes(&set), "none of its records is in the data"));
    remove(in_folder("static.csv"));
    PASS();
}

/* A model has its channels: a value that it does not know is none of them, whole and as a stream. */
TEST statics_of_a_model_are_its_own(void) {
    arrput(options.channels, "age"), arrput(options.channels, "sex=F"), arrput(options.channels, "sex=M"),
        arrput(options.channels, "x");
    use_statics("record,age,sex\na,60,F\nb,,other\nc,7,\n");
    ASSERT(gives(EVENTS, NULL,
                 "a 0:age=60 0:sex=F=1 0:sex=M=0 1:x=5 2:x=6 | b 0:sex=F=0 0:sex=M=0 3:x=7 | c 0:age=7 4:x=8"));
    ASSERT(
        strstr(notes(&set), "static.csv: 1 value of categories that the model does not know, \"sex=other\" the first"));
    use_statics("record,age,sex,size\na,60,F,3\n");
    ASSERT(refuses(EVENTS, NULL, "static.csv:2: the model has no channel \"size\" (--skip-unknown leaves it out)"));
    options.skip_unknown = 1;
    ASSERT(gives(EVENTS, NULL, "a 0:age=60 0:sex=F=1 0:sex=M=0 1:x=5 2:x=6 | b 3:x=7 | c 4:x=8"));
    use_statics("record,age\na,old\n");
    ASSERT(refuses(EVENTS, NULL,
                   "static.csv:2: \"old\" is no value of \"age\": a number that a float can hold, or nothing"));
    remove(in_folder("static.csv"));
    PASS();
}

TEST statics_that_do_not_do_are_refused(void) {
    static const char *const bad[][2] = {
        {"", "static.csv: empty, without so much as a header"},
        {"record\na\n",
         "static.csv:1: no column \"name\": the first line has to name the columns record,name,value, or "
         "record and one column per name"},
        {"record,name\na,1\n", "static.csv:1: no column \"value\": the first line has to name the columns "
                               "record,name,value, or record and one column per name"},
        {"age,sex\n1,F\n",
         "static.csv:1: no column \"record\": the first line has to name the columns record,name,value, "
         "or record and one column per name"},
        {"record,age,age\n", "static.csv:1: column 3, \"age\", is there twice"},
        {"record,age,label\n", "static.csv:1: column 3, \"label\", is no channel: labels have a file of their own"},
        {"record,age\na,1\nb,2\na,3\n", "static.csv:4: \"age\" of record \"a\" is \"3\" here and \"1\" elsewhere"},
        {"record,name,value\na,,1\n", "static.csv:2: the name is empty"},
        {"record,age\na,1,2\n", "static.csv:2: 3 fields, but the header has 2"},
        {"record,age\n,1\n", "static.csv:2: the record's name is empty"},
        {"record,x\na,1\n", "static.csv: the events have a channel \"x\": what does not change needs another name"},
        {"record,x\na,F\n", "static.csv: the events have a channel \"x\": what does not change needs another name"},
        {"record,s,s=F\na,F,1\n", "static.csv:2: \"s=F\" is no name: an equals sign is for the values of categories"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        use_statics(bad[i][0]);
        ASSERT(refuses(EVENTS, NULL, bad[i][1]));
    }
    use_statics("record,sex\na,F\n"); /* a model could not tell a value of sex from this channel */
    ASSERT(refuses(HEADER "a,1,sex=M,2\n", NULL,
                   "static.csv: the events have a channel \"sex=M\": what does not change needs another name"));
    remove(in_folder("static.csv"));
    PASS();
}

TEST times_have_labels(void) {
    ASSERT(gives(THREE, "record,time,label\na,2,x\nb,0,y\na,1,y\na,3,\na,2,x\nz,5,x\n",
                 "a 1:c=1 -> 1:y 2:x 3:? | b 2:c=2 -> 0:y 2:? | d 3:c=3 | z -> 5:x"));
    ASSERT_EQ(3, dataset_view(&set, 0).n_times);
    ASSERT_EQ(6, arrlen(set.label_times));
    ASSERT(same("labels.csv: labelled records without an observation: 1 of 3; labels.csv: records without a label: 1",
                notes(&set)));
    ASSERT(refuses(THREE, "record,time,label\na,2,x\na,1,x\na,2.0,y\n",
                   "labels.csv:4: record \"a\" at one time has label \"y\" here and \"x\" elsewhere"));
    ASSERT(refuses(THREE, "record,time,label\na,2024-01-01,x\n",
                   "labels.csv:2: \"2024-01-01\" is a date, but the times before are numbers"));
    ASSERT(refuses(THREE, "record,time,label\na,,x\n",
                   "labels.csv:2: \"\" is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z"));
    options.origin = OWN_ORIGIN_RECORD; /* a record without events has its first label as origin */
    ASSERT(gives(HEADER "a,1700000007,c,1\na,1700000005,c,2\n",
                 "record,ds,label\na,1700000006,x\na,1700000004,y\nz,100,x\nz,101,y\n",
                 "a 0:c=2 2:c=1 -> -1:y 0:? 1:x 2:? | z -> 0:x 1:y"));
    ASSERT(gives(HEADER "a,2024-01-01T06:00:00,c,1\n", "record,timestamp,label\na,2024-01-01 07:30,x\na,2024-01-02,y\n",
                 "a 0:c=1 -> 0:? 1.5:x 18:y"));
    PASS();
}

/* The texts of a record's times, one after the other. */
static const char *time_texts(const dataset *d, size_t record, int n) {
    const char *text = d->time_texts + d->records[record].time_text;
    arrsetlen(shown, 0);
    for (int i = 0; i < n; i++, text += strlen(text) + 1) show(i == 0 ? "%s" : " %s", text);
    arrput(shown, 0);
    return shown;
}

/* What a model says at one time may depend on the other times that it is asked about, so labels of a few times come with
 * all observed times. */
TEST times_without_a_label_are_asked_as_well(void) {
    uint64_t hash;
    split all;
    char error[512];
    const split_way way = {.kind = SPLIT_ALL};
    options.keep_times = 1;
    ASSERT(gives(HEADER "a,3,c,1\na,1.0,c,2\na,1,b,2\na,2,c,4\nb,7,c,1\n",
                 "record,time,label\na,2.50,x\na,2.0,y\nz,1,x\n",
                 "a 1:b=2 1:c=2 2:c=4 3:c=1 -> 1:? 2:y 2.5:x 3:? | b 7:c=1 | z -> 1:x"));
    ASSERT_STR_EQ("1 2 2.5 3", time_texts(&set, 0, 4));
    ASSERT_STR_EQ("7", time_texts(&set, 1, 1));
    ASSERT_STR_EQ("1", time_texts(&set, 2, 1));
    ASSERT_EQ(4, dataset_bounds(&set).times);
    ASSERT(split_make(&all, &set, &way, error));
    hash = all.labels, split_free(&all);
    ASSERT(load(HEADER "a,3,c,1\na,1.0,c,2\na,1,b,2\na,2,c,4\nb,7,c,1\n",
                "record,time,label\na,2.50,x\na,2.0,y\na,3,\nz,1,x\n"));
    ASSERT(split_make(&all, &set, &way, error)); /* an empty label is none: the labels are the same */
    ASSERT_EQ_FMT((unsigned long long)hash, (unsigned long long)all.labels, "%llx");
    split_free(&all);
    ASSERT(gives(HEADER "a,3,c,1\na,1,c,2\n", "record,time,ill,dead\na,1,1,0\na,2,,1\n",
                 "a 1:c=2 3:c=1 -> 1:dead 2:dead 3:?")); /* render shows that there is a label, as class 0 */
    ASSERT_EQ(6, arrlen(set.numbers));
    ASSERT(set.numbers[1] > 0 && set.numbers[2] > 0 && isnan(set.numbers[3]) && isnan(set.numbers[5]));
    PASS();
}

/* ---- streams ---- */

static int open_stream(own_stream *s, const char *events) {
    write_text("events.csv", events);
    if (!options.channels) arrput(options.channels, "HR"), arrput(options.channels, "BP");
    return own_stream_open(s, in_folder("events.csv"), &options);
}

/* Every record or error of the stream, one after the other: "a 0:HR=1" or "a: file:line: ...". */
static int streams(const char *events, const char *expected) {
    own_stream s;
    own_status got;
    char *all = NULL;
    int good = open_stream(&s, events);
    if (!good) return printf("  BAD    %s\n", s.error), own_stream_close(&s), 0;
    do {
        char line[1024] = "end";
        got = own_stream_next(&s, &set);
        if (got == OWN_RECORD) snprintf(line, sizeof line, "%s | ", render(&set));
        else if (got == OWN_BAD_RECORD)
            snprintf(line, sizeof line, "BAD %s%s | ", render(&set), set.error + strlen(folder));
        else if (got == OWN_FAILED) snprintf(line, sizeof line, "FAILED %s", set.error + strlen(folder));
        memcpy(arraddnptr(all, strlen(line)), line, strlen(line));
    } while (got == OWN_RECORD || got == OWN_BAD_RECORD);
    arrput(all, 0);
    good = same(expected, all) && own_stream_next(&s, &set) == got; /* says it again */
    own_stream_close(&s);
    arrfree(all);
    return good;
}

TEST a_stream_gives_record_after_record(void) {
    ASSERT(streams(HEADER "a,2,HR,1\na,1,BP,2\na,1,BP,4\nb,7,BP,\nc,0,HR,5\n", "a 1:BP=3 2:HR=1 | b | c 0:HR=5 | end"));
    ASSERT(
        same("events.csv: 1 row without a value left out; events.csv: 1 repeat of a record, time and channel averaged",
             notes(&set)));
    dataset_free(&set);
    ASSERT(streams(HEADER "a,2024-01-01,HR,1\nb,2024-01-03,HR,2\nb,2024-01-02,BP,3\n",
                   "a 0:HR=1 | b 0:BP=3 24:HR=2 | end"));
    ASSERT_STR_EQ("hours", set.unit);
    ASSERT(streams(HEADER, "end"));
    options.skip_unknown = 1;
    dataset_free(&set);
    ASSERT(streams("unique_id,ds,y,z\na,1,2,3\n", "a | end"));
    ASSERT(
        same("events.csv: columns ignored: \"z\"; events.csv: 1 row of channels that the model does not have left out, "
             "\"y\" the first",
             notes(&set)));
    PASS();
}

/* A model's codes for "not observed" enter no mean of a repeat, and the first time is that of all rows, as mtan_prep_record has it. */
TEST codes_of_a_model_are_left_out(void) {
    const mtan_prep_channel codes[2] = {{.missing = -1, .has = MTAN_HAS_MISSING}, {.missing = 7}};
    const char *const events = HEADER "a,1,HR,-1\na,2,HR,-1\na,2,HR,80\na,2,BP,7\na,3,HR,-1\nb,0,HR,-1\n";
    options.codes = codes, options.origin = OWN_ORIGIN_RECORD;
    ASSERT(streams(events, "a 1:HR=80 1:BP=7 | b | end"));
    dataset_free(&set);
    ASSERT(gives(events, "record,time,label\na,2,x\n", "a 1:HR=80 1:BP=7 -> 1:x | b"));
    ASSERT_EQ(1, set.records[0].n_times);
    PASS();
}

TEST a_stream_is_wide(void) {
    ASSERT(streams("record,time,BP,HR\na,2,,1\na,1,3,\nb,7,,\nc,0,,5\nc,1,2,6\n",
                   "a 1:BP=3 2:HR=1 | b | c 0:HR=5 1:HR=6 1:BP=2 | end"));
    ASSERT(
        streams("record,time,BP,HR\na,0,1,x\na,1,2,3\nb,y,1,2\nc,0,,5\nc,1\nd,0,7,8\na,0,1,\n",
                "BAD a/events.csv:2: \"x\" in column \"HR\" is no value: a number that a float can hold, or nothing "
                "(each column but the record's and the time's is a channel) | BAD b/events.csv:4: \"y\" is no time: a "
                "number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z | BAD c/events.csv:6: 2 fields, but the "
                "header has 4 | d 0:HR=8 0:BP=7 | FAILED /events.csv:8: record \"a\" "
                "comes back after another began: sort the file by record"));
    PASS();
}

TEST a_stream_has_static_rows(void) {
    ASSERT(streams(MEDS "a,2024-01-01,HR,1\na,,BP,2\nb,,BP,3\nc,2024-01-03,HR,4\n",
                   "a 0:HR=1 0:BP=2 | b 0:BP=3 | c 0:HR=4 | end"));
    PASS();
}

TEST a_stream_goes_on_behind_a_bad_record(void) {
    ASSERT(streams(
        HEADER "a,0,HR,1\nb,0,HR,x\nb,1,HR,y\nc,0,HR,2\n",
        "a 0:HR=1 | BAD b/events.csv:3: \"x\" is no value: a number that a float can hold, or nothing | c 0:HR=2 | "
        "end"));
    ASSERT(streams(
        HEADER "a,0,HR,1\na,0,Hr,1\nb,0,HR,1\n",
        "BAD a/events.csv:3: the model has no channel \"Hr\" (--skip-unknown leaves such rows out) | b 0:HR=1 | "
        "end"));
    /* A line without a readable name spoils the record around it; between two, both. */
    ASSERT(streams(HEADER "a,0,HR,1\na,1\na,2,HR,1\nb,0,HR,1\n",
                   "BAD a/events.csv:3: 2 fields, but the header has 4 | b 0:HR=1 | end"));
    ASSERT(
        streams(HEADER "a,0,HR,1\na,1\n,1,HR,1\nb,0,HR,1\nb,1,HR,2\nc,0,HR,3\n",
                "BAD a/events.csv:3: 2 fields, but the header has 4 | BAD b/events.csv:4: the record's name is empty "
                "| c 0:HR=3 | end"));
    ASSERT(streams(
        HEADER "a\nb,0,HR,1\nc,0,HR,2\nd",
        "BAD b/events.csv:2: 1 field, but the header has 4 | BAD c/events.csv:5: 1 field, but the header has 4 | "
        "end"));
    ASSERT(streams(HEADER "a\nb\n", "BAD /events.csv:2: 1 field, but the header has 4 | end"));
    /* A stray quote does not swallow the rest. */
    ASSERT(streams(
        HEADER "a,0,HR,1\nb,0,\"HR,2\nb,1,HR,3\nc,0,HR,4\nd,0,HR,5\n",
        "BAD a/events.csv:3: a quote that is never closed | BAD b/events.csv:3: a quote that is never closed | c "
        "0:HR=4 | d 0:HR=5 | end"));
#ifndef MTAN_DOUBLE
    ASSERT(streams(
        SECONDS "c,0,HR,1\n",
        "BAD a/events.csv:4: the times 1699999999 and 1700000000 of record \"a\" are one in float: use --origin "
        "record | b 1.7e+09:HR=4 | c 0:HR=1 | end"));
#endif
    PASS();
}

/* A row that says its record, but has too few or too many fields. */
TEST a_bad_row_costs_its_own_record_alone(void) {
    ASSERT(streams(HEADER "a,1,HR,8\nb,1,HR,8\nc,1,HR\nd,1,HR,8\ne,1,HR,7\n",
                   "a 1:HR=8 | BAD c/events.csv:4: 3 fields, but the header has 4 | b 1:HR=8 | d 1:HR=8 | e 1:HR=7 | "
                   "end"));
    /* Once for a record, wherever its good rows are; and the first record, and the last. */
    ASSERT(streams(HEADER "a,0,HR,1,\na,1,HR\na,2,HR,1\na,3,HR\nb,1,HR,8\nc,1\nc,2\n",
                   "BAD a/events.csv:2: 5 fields, but the header has 4 | BAD c/events.csv:7: 2 fields, but the header "
                   "has 4 | b 1:HR=8 | end"));
    /* Within another record it costs that one nothing, and a row of a record that has ended only itself. */
    ASSERT(streams(HEADER "a,0,HR,1\nb,0,HR,2\nx,1\nb,1,HR,3\na,1,HR\nb,2,HR,4\n",
                   "a 0:HR=1 | BAD x/events.csv:4: 2 fields, but the header has 4 | BAD /events.csv:6: 3 fields, but "
                   "the header has 4 | b 0:HR=2 1:HR=3 2:HR=4 | end"));
    ASSERT(streams(HEADER "a,0,HR,1\nb,1\nc,0,HR,1\nb,2,HR,1\nd,0,HR,1\nb,3,HR,1\n",
                   "BAD b/events.csv:3: 2 fields, but the header has 4 | a 0:HR=1 | c 0:HR=1 | d 0:HR=1 | FAILED "
                   "/events.csv:7: record \"b\" comes back after another began: sort the file by record"));
    /* The name is not sure in another column, nor where the row may be cut within it. */
    ASSERT(streams("time,record,channel,value\n0,a,HR,1\n1,b,HR\n0,c,HR,1\n",
                   "BAD a/events.csv:3: 3 fields, but the header has 4 | BAD c/events.csv:3: 3 fields, but the header "
                   "has 4 | end"));
    ASSERT(streams(HEADER "a,0,HR,1\nb\nc,0,HR,1\n", "BAD a/events.csv:3: 1 field, but the header has 4 | BAD "
                                                     "c/events.csv:3: 1 field, but the header has 4 | end"));
    PASS();
}

TEST a_stream_ends_where_it_makes_no_sense(void) {
    own_stream s;
    ASSERT(streams(
        HEADER "a,0,HR,1\nb,0,HR,1\na,1,HR,1\nb,1,HR,1\n",
        "a 0:HR=1 | b 0:HR=1 | FAILED /events.csv:4: record \"a\" comes back after another began: sort the file by "
        "record"));
    ASSERT(!open_stream(&s, "record,time\n"));
    ASSERT(strstr(s.error, "events.csv:1: no column \"channel\""));
    own_stream_close(&s);
    arrfree(options.channels);
    ASSERT(!own_stream_open(&s, in_folder("events.csv"), &options));
    ASSERT_STR_EQ("a stream of records needs the channels of a model", s.error);
    own_stream_close(&s), own_stream_close(&s);
    PASS();
}

/* ---- size ---- */

/* A row with a field of n bytes, between two good ones. */
static int long_field(size_t n, const char *expected) {
    char *text = malloc(n + 100);
    size_t at = (size_t)sprintf(text, HEADER "a,0,HR,1\nb,0,");
    int good;
    if (!text) return 0;
    memset(text + at, 'x', n);
    strcpy(text + at + n, ",1\nc,0,HR,2\n");
    options.skip_unknown = 1;
    good = streams(text, expected);
    free(text);
    return good;
}

TEST long_fields_and_lines_are_refused(void) {
    ASSERT(long_field(CSV_FIELD_LONGEST, "a 0:HR=1 | b | c 0:HR=2 | end"));
    ASSERT(long_field(CSV_FIELD_LONGEST + 1,
                      "BAD a/events.csv:3: a field of more than 65536 bytes | BAD c/events.csv:3: a "
                      "field of more than 65536 bytes | end"));
    dataset_free(&set);
    ASSERT(long_field(3 * CSV_LONGEST, "FAILED /events.csv:3: a line of more than 1048576 bytes"));
    PASS();
}

/* Quotes that stay open for more than a row may hold: each line is given up alone. */
TEST an_open_quote_costs_its_line_alone(void) {
    MAY_BE_LEFT_OUT();
    enum { LINES = 200000 };
    char *text = malloc(LINES * 16 + 200);
    size_t at = (size_t)sprintf(text, HEADER "a,0,\"HR,1\n");
    int good = 0, bad = 0;
    own_stream s;
    own_status got;
    ASSERT(text);
    for (int i = 0; i < LINES; i++) at += (size_t)sprintf(text + at, "%06d,0,HR,1\n", i);
    ASSERT(open_stream(&s, text));
    while ((got = own_stream_next(&s, &set)) == OWN_RECORD || got == OWN_BAD_RECORD)
        good += got == OWN_RECORD, bad += got == OWN_BAD_RECORD;
    ASSERT_EQ(OWN_END, got);
    ASSERT_EQ(LINES - 1, good);
    ASSERT_EQ(1, bad);
    own_stream_close(&s);
    free(text);
    PASS();
}

TEST many_scattered_records_are_found_again(void) {
    enum { RECORDS = 20000, ROUNDS = 3 };
    char *text = malloc(ROUNDS * RECORDS * 32), name[16];
    size_t at = (size_t)sprintf(text, HEADER);
    names n;
    ASSERT(text);
    for (int k = 0; k < ROUNDS; k++)
        for (int i = 0; i < RECORDS; i++)
            at += (size_t)sprintf(text + at, "%d,%d,c%d,%d\n", i * 7919 % RECORDS, k, i % 5, k);
    ASSERT(load(text, NULL));
    ASSERT_EQ(RECORDS, arrlen(set.records));
    for (int i = 0; i < RECORDS; i++) {
        const dataset_record *r = &set.records[i];
        snprintf(name, sizeof name, "%d", i * 7919 % RECORDS);
        ASSERT_STR_EQ(name, dataset_name(&set, (size_t)i));
        ASSERT_EQ(ROUNDS, r->n_events);
        for (int k = 0; k < ROUNDS; k++) {
            const mtan_event e = set.events[r->event0 + (size_t)k];
            ASSERT(e.time == (mtan_real)k && e.value == (mtan_real)k && e.channel == i % 5);
        }
    }
    memset(&n, 0, sizeof n);
    ASSERT_EQ(-1, names_find(&n, "a", 1));
    ASSERT(names_add(&n, "a", 1) == 0 && names_add(&n, "", 0) == 1 && names_add(&n, "ab", 2) == 2);
    ASSERT(names_add(&n, "a", 1) == 0 && names_find(&n, "ab", 1) == 0 && names_find(&n, "b", 1) == -1);
    names_free(&n);
    free(text);
    PASS();
}

TEST compressed_files_are_read(void) {
#ifdef MTAN_ZLIB
    gzFile f = gzopen(in_folder("events.csv"), "wb");
    ASSERT(f && gzputs(f, HEADER "a,0,HR,80\n") > 0 && gzclose(f) == Z_OK);
    ASSERT(own_load(&set, in_folder("events.csv"), NULL, NULL));
    ASSERT(same("a 0:HR=80", render(&set)));
    PASS();
#else
    SKIPm("built without zlib");
#endif
}

TEST integers_have_at_most_eighteen_digits(void) {
    int64_t n = 0;
    ASSERT(field_integer("999999999999999999", &n) && n == 999999999999999999);
    ASSERT(field_integer(" -999999999999999999 ", &n) && n == -999999999999999999);
    ASSERT(!field_integer("1000000000000000000", &n));
    ASSERT(!field_integer("-9999999999999999999", &n)); /* beyond 64 bits */
    ASSERT(!field_integer("99999999999999999999999999999999999999x", &n));
    ASSERT(!field_integer("", &n) && !field_integer("-", &n) && !field_integer("1 2", &n));
    PASS();
}

SUITE(own_suite) {
    GREATEST_SET_SETUP_CB(set_up, NULL);
    GREATEST_SET_TEARDOWN_CB(tear_down, NULL);
    RUN_TEST(integers_have_at_most_eighteen_digits);
    RUN_TEST(the_columns_go_by_name);
    RUN_TEST(nixtla_has_a_single_channel);
    RUN_TEST(a_wide_file_is_read);
    RUN_TEST(a_wide_file_is_refused);
    RUN_TEST(a_header_that_does_not_do_is_named);
    RUN_TEST(a_bad_row_is_named_with_its_line);
    RUN_TEST(quotes_and_line_ends_are_part_of_names);
    RUN_TEST(missing_values_are_left_out_and_counted);
    RUN_TEST(repeats_are_averaged_and_counted);
    RUN_TEST(the_order_of_rows_does_not_matter);
    RUN_TEST(channels_of_a_model_keep_their_places);
    RUN_TEST(dates_are_those_of_python);
    RUN_TEST(numbers_are_those_of_strtod);
    RUN_TEST(dates_become_hours_since_the_first_observation);
    RUN_TEST(numbers_follow_the_origin);
    RUN_TEST(records_have_labels);
    RUN_TEST(labels_that_do_not_do_are_refused);
    RUN_TEST(numbers_that_become_classes_are_noted);
    RUN_TEST(labels_of_other_records_are_refused);
    RUN_TEST(a_prediction_time_cuts_the_future);
    RUN_TEST(prediction_times_that_do_not_do_are_refused);
    RUN_TEST(rows_without_a_time_are_static);
    RUN_TEST(a_column_has_groups);
    RUN_TEST(a_file_has_the_split);
    RUN_TEST(statics_are_channels);
    RUN_TEST(statics_of_a_model_are_its_own);
    RUN_TEST(statics_that_do_not_do_are_refused);
    RUN_TEST(times_have_labels);
    RUN_TEST(times_without_a_label_are_asked_as_well);
    RUN_TEST(a_stream_gives_record_after_record);
    RUN_TEST(codes_of_a_model_are_left_out);
    RUN_TEST(a_stream_is_wide);
    RUN_TEST(a_stream_has_static_rows);
    RUN_TEST(a_stream_goes_on_behind_a_bad_record);
    RUN_TEST(a_bad_row_costs_its_own_record_alone);
    RUN_TEST(a_stream_ends_where_it_makes_no_sense);
    RUN_TEST(long_fields_and_lines_are_refused);
    RUN_TEST(an_open_quote_costs_its_line_alone);
    RUN_TEST(many_scattered_records_are_found_again);
    RUN_TEST(compressed_files_are_read);
}
