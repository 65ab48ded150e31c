/* mtan stream on small files: what it prints is compared with the library's batch on the same observations. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "small.h"
#include "../../tools/mtan/model/bundle.h"
#include "../../tools/mtan/command/stream.h"
#include "../../tools/mtan/base/files.h"

enum { MOST_ROWS = 64, MOST_EVENTS = 16 };

static char folder[64];
static prep scaling;

static const char *path_of(const char *name) {
    static char paths[4][160];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Values from 0 to 10 and times from 0 to 4 become 0 to 1. */
static void open_folder(void *unused) {
    static const char *const names[] = {"heat", "pulse", "a,b"};
    (void)unused;
    strcpy(folder, "build/stream-XXXXXX");
    if (!mkdtemp(folder)) perror("mtan: build"), exit(2);
    memset(&scaling, 0, sizeof scaling), scaling.positive = -1;
    scaling.kind = PREP_MINMAX;
    for (int c = 0; c < 3; c++) {
        mtan_prep_channel channel = prep_untouched();
        channel.scale = 10;
        arrput(scaling.channel, channel);
        arrput(scaling.channels, tool_text(names[c]));
    }
    scaling.channel[1].missing = -1, scaling.channel[1].has = MTAN_HAS_MISSING;
    for (int i = 0; i < SPLIT_PARTS; i++) scaling.time_scale[i] = 4;
}

static void close_folder(void *unused) {
    char line[96];
    (void)unused;
    prep_free(&scaling);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    if (system(line) != 0) perror("mtan: build"), exit(2);
}

static int write_model(const small_model *s) {
    char error[512] = "";
    const int good = bundle_write(path_of("model.safetensors"), &s->model, NULL, &scaling, NULL, 0, error);
    if (!good) printf("  BAD %s\n", error);
    return good;
}

static void write_lines(const char *text) {
    FILE *file = fopen(path_of("lines.csv"), "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) perror("mtan: build"), exit(2);
}

/* In a process of its own; standard input is lines.csv. */
static int run(stream_settings s, const char *lines) {
    static char line[][8] = {"mtan", "predict", "x"};
    char *argv[] = {line[0], line[1], line[2]};
    options o;
    int status = 0;
    pid_t child;
    write_lines(lines);
    s.model = path_of("model.safetensors");
    fflush(NULL);
    if ((child = fork()) == 0) {
        if (!freopen(path_of("out.txt"), "w", stdout) || !freopen(path_of("err.txt"), "w", stderr) ||
            !freopen(path_of("lines.csv"), "r", stdin) || !options_parse(&o, 3, argv))
            _exit(99);
        messages_quiet(0);
        exit(stream_records(&s, &o));
    }
    while (waitpid(child, &status, 0) < 0) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static char *text_of(const char *name) {
    char error[512];
    size_t bytes;
    return file_read(path_of(name), &bytes, error);
}

static int says(const char *name, const char *words) {
    char *text = text_of(name);
    const int found = text && strstr(text, words) != NULL;
    if (!found) printf("  BAD %s says:\n%s  expected: %s\n", name, text ? text : "(nothing)", words);
    free(text);
    return found;
}

/* Rows of out.txt: the name, and class 1's probability. */
typedef struct {
    char name[16];
    double p;
} row;

static int read_rows(row *rows) {
    FILE *file = fopen(path_of("out.txt"), "r");
    char line[256];
    int n = 0;
    if (!file || !fgets(line, sizeof line, file) || strcmp(line, "record,p0,p1,predicted\n") != 0) return -1;
    while (n < MOST_ROWS && fgets(line, sizeof line, file))
        if (sscanf(line, "%15[^,],%*[^,],%lf", rows[n].name, &rows[n].p) != 2) return -1;
        else n++;
    fclose(file);
    return n;
}

/* The library's word on raw events. */
static double batch(const mtan_model *model, const mtan_event *raw, int32_t n) {
    const mtan_bounds bounds = {1, MOST_EVENTS, MOST_EVENTS};
    mtan_event e[MOST_EVENTS];
    mtan_predictor predictor;
    mtan_record record;
    mtan_real p[2] = {0, (mtan_real)NAN};
    size_t bytes = 0;
    void *memory;
    memcpy(e, raw, (size_t)n * sizeof *e);
    memset(&record, 0, sizeof record);
    record.events = e, record.n_events = prep_events(&scaling, SPLIT_TEST, e, n);
    mtan_predictor_size(model, &bounds, &bytes);
    memory = guard_alloc(bytes);
    if (mtan_predictor_init(&predictor, model, &bounds, memory, bytes) == MTAN_OK)
        mtan_predictor_classify(&predictor, &record, 1, p);
    return guard_free(memory) ? (double)p[1] : NAN;
}

static int near(double got, double expected) {
    if (fabs(got - expected) <= 3e-6) return 1;
    printf("  BAD got %.9g, expected %.9g\n", got, expected);
    return 0;
}

static stream_settings usual(void) {
    stream_settings s;
    stream_settings_init(&s);
    return s;
}

static const mtan_event of_a[] = {{1, 0, 2}, {3, 1, 7}, {2, 2, 9}}, of_b[] = {{4, 1, 1}, {4, 1, 3}};

TEST a_prediction_per_line(void) {
    small_model s;
    row rows[MOST_ROWS];
    ASSERT(small_open_named(&s, "enc record even") && write_model(&s));
    ASSERT_EQ_FMT(DONE,
                  run(usual(), "record,time,channel,value\nA,1,heat,2\nB,4,pulse,1\nA,3,pulse,7\n"
                               "A,2,\"a,b\",9\nA,2,pulse,\nA,2.5,pulse,-1\nB,4,pulse,3\nC,0,,\n"),
                  "%d");
    ASSERT_EQ_FMT(8, read_rows(rows), "%d");
    ASSERT(near(rows[0].p, batch(&s.model, of_a, 1)));
    ASSERT(near(rows[1].p, batch(&s.model, of_b, 1)));
    ASSERT(near(rows[2].p, batch(&s.model, of_a, 2)));
    for (int i = 3; i < 6; i++) ASSERT(near(rows[i].p, batch(&s.model, of_a, 3))); /* then none, then a missing code */
    ASSERT(near(rows[6].p, batch(&s.model, of_b, 2)));
    ASSERT(near(rows[7].p, batch(&s.model, of_a, 0)));
    ASSERT(fabs(rows[0].p - rows[2].p) > 1e-4 && fabs(rows[2].p - rows[3].p) > 1e-4);
    ASSERT_STR_EQ("B", rows[6].name);
    ASSERT(small_close(&s));
    PASS();
}

TEST on_request_and_by_time(void) {
    small_model s;
    row rows[MOST_ROWS];
    stream_settings request = usual(), by_time = usual();
    ASSERT(small_open_named(&s, "enc record even") && write_model(&s));
    request.every = "request";
    ASSERT_EQ_FMT(DONE, run(request, "A,1,heat,2\nA,3,pulse,7\nA\nA,2,\"a,b\",9\nA,predict\nA,end\nA,1,heat,2\nA\n"),
                  "%d");
    ASSERT_EQ_FMT(3, read_rows(rows), "%d");
    ASSERT(near(rows[0].p, batch(&s.model, of_a, 2)));
    ASSERT(near(rows[1].p, batch(&s.model, of_a, 3)));
    ASSERT(near(rows[2].p, batch(&s.model, of_a, 1)));
    by_time.every = "2";
    ASSERT_EQ_FMT(DONE, run(by_time, "A,1,heat,2\nA,2.9,heat,1\nA,0,heat,1\nA,3,heat,2\nA,4.9,heat,1\nA,5,heat,1\n"),
                  "%d");
    ASSERT_EQ_FMT(3, read_rows(rows), "%d"); /* at 1, 3 and 5 */
    by_time.every = "often";
    ASSERT_EQ_FMT(BAD_USE, run(by_time, "A,1,heat,2\n"), "%d");
    ASSERT(says("err.txt", "--every often: must be line, request or a time above 0"));
    ASSERT(small_close(&s));
    PASS();
}

TEST a_window(void) {
    const mtan_event left[] = {{3, 1, 7}, {2, 2, 9}};
    small_model s;
    row rows[MOST_ROWS];
    stream_settings w = usual();
    ASSERT(small_open_named(&s, "enc record even") && write_model(&s));
    w.window = 1.5, w.keep = 3;
    ASSERT_EQ_FMT(DONE, run(w, "A,1,heat,2\nA,3,pulse,7\nA,2,\"a,b\",9\n"), "%d");
    ASSERT_EQ_FMT(3, read_rows(rows), "%d");
    ASSERT(near(rows[0].p, batch(&s.model, of_a, 1)));
    ASSERT(near(rows[1].p, batch(&s.model, left, 1))); /* time 1 is older than 3 - 1.5 */
    ASSERT(near(rows[2].p, batch(&s.model, left, 2)));
    w.keep = 1;
    ASSERT_EQ_FMT(BAD_RESULT, run(w, "A,1,heat,2\nA,1,pulse,7\n"), "%d");
    ASSERT(says("err.txt", "standard input:2: the window holds more"));
    ASSERT(small_close(&s));
    PASS();
}

TEST bad_lines_are_reported_and_change_nothing(void) {
    small_model s;
    row rows[MOST_ROWS];
    stream_settings few = usual();
    ASSERT(small_open_named(&s, "enc record even") && write_model(&s));
    few.records = 2;
    ASSERT_EQ_FMT(BAD_RESULT,
                  run(few, "A,1,heat,2\nA,soon,heat,1\nA,1,cold,1\nA,1,heat,much\nA,1,heat,1e300\nA,1\nA,1,heat\n"
                           ",1,heat,1\nX,y,heat,1\nA,\"x\"y,heat,1\nB,1,heat,1\nC,1,heat,1\nA,nan,heat,1\nA\n"),
                  "%d");
    ASSERT_EQ_FMT(3, read_rows(rows), "%d");
    ASSERT_STR_EQ("B", rows[1].name); /* X never came to be */
    ASSERT(near(rows[2].p, batch(&s.model, of_a, 1)));
    ASSERT(says("err.txt", "standard input:2: not a time that a float can hold: soon"));
    ASSERT(says("err.txt", "standard input:3: a channel that the model does not know: cold"));
    ASSERT(says("err.txt", "standard input:4: not a number that a float can hold: much"));
    ASSERT(says("err.txt", "standard input:5: not a number that a float can hold: 1e300"));
    ASSERT(says("err.txt", "standard input:6: must be RECORD,predict or RECORD,end: 1"));
    ASSERT(says("err.txt", "standard input:7: must be record,time,channel,value"));
    ASSERT(says("err.txt", "standard input:8: the record has no name"));
    ASSERT(says("err.txt", "standard input:10: "));
    ASSERT(says("err.txt", "standard input:12: more records at once than --records allows"));
    ASSERT(says("err.txt", "standard input:13: not a time that a float can hold: nan"));
    ASSERT(small_close(&s));
    PASS();
}

/* As in a file for predict. */
TEST many_bad_lines_are_counted(void) {
    char lines[1024] = "";
    small_model s;
    ASSERT(small_open_named(&s, "enc record even") && write_model(&s));
    for (int i = 0; i < 33; i++) strcat(lines, "A,1,heat,warm\n");
    ASSERT_EQ_FMT(BAD_RESULT, run(usual(), lines), "%d");
    ASSERT(says("err.txt", "standard input:20: not a number that a float can hold: warm\n"
                           "mtan: more like these are counted, not shown\nmtan: 13 more like these\n"));
    ASSERT(small_close(&s));
    PASS();
}

TEST columns_behind_the_value_are_ignored(void) {
    small_model s;
    row rows[MOST_ROWS];
    ASSERT(small_open_named(&s, "enc record even") && write_model(&s));
    ASSERT_EQ_FMT(DONE, run(usual(), "record,time,channel,value,ward\nA,1,heat,2,\"3, east\"\nA,predict\n"), "%d");
    ASSERT(says("err.txt", "standard input: the columns behind \"value\" are ignored"));
    ASSERT_EQ_FMT(2, read_rows(rows), "%d");
    ASSERT(near(rows[0].p, batch(&s.model, of_a, 1)));
    ASSERT_EQ_FMT(BAD_RESULT, run(usual(), "record,time,channel,value,ward\nA,1,heat,2\n"), "%d");
    ASSERT(small_close(&s));
    PASS();
}

TEST models_of_other_kinds(void) {
    small_model s;
    stream_settings json = usual();
    ASSERT(small_open_named(&s, "full none") && write_model(&s));
    ASSERT_EQ_FMT(DONE, run(usual(), "A,1,heat,2\n"), "%d");
    ASSERT(says("out.txt", "record,time,channel,mean,sd,extrapolated\nA,1,heat,"));
    ASSERT(says("out.txt", "\nA,1,\"a,b\","));
    ASSERT_EQ_FMT(BAD_RESULT, run(usual(), "A\n"), "%d");
    ASSERT(says("err.txt", "standard input:1: no line of this record has a time yet: A"));
    ASSERT(small_close(&s));
    ASSERT(small_open_named(&s, "full time") && write_model(&s));
    json.json = 1;
    ASSERT_EQ_FMT(DONE, run(json, "A,1,heat,2\nA,0.5,,\n"), "%d");
    ASSERT(says("out.txt", "{\"record\": \"A\", \"time\": 1, \"p0\": "));
    ASSERT(says("out.txt", "{\"record\": \"A\", \"time\": 0.5, \"p0\": "));
    ASSERT(small_close(&s));
    ASSERT(small_open_named(&s, "enc time") && write_model(&s));
    ASSERT_EQ_FMT(BAD_USE, run(usual(), "A,1,heat,2\n"), "%d");
    ASSERT(says("err.txt", "use `mtan predict`"));
    ASSERT(small_close(&s));
    PASS();
}

TEST a_clock_starts_with_a_value(void) {
    small_model s;
    strcpy(scaling.unit, "hours");
    ASSERT(small_open_named(&s, "full time") && write_model(&s));
    strcpy(scaling.unit, "");
    ASSERT_EQ_FMT(
        DONE, run(usual(), "A,2024-01-01,heat,\nA,2024-01-02T00:00:00.5,heat,2\nA,2024-01-02 03:00+01:00,,\n"), "%d");
    ASSERT(says("out.txt",
                "record,time,p0,p1,predicted\nA,2024-01-02T00:00:00.5Z,")); /* none of the line without a value */
    ASSERT(says("out.txt", "\nA,2024-01-02T02:00:00Z,"));
    ASSERT_EQ_FMT(BAD_RESULT, run(usual(), "A,2024-01-01,heat,\nA,2024-01-01T06:00,,\nA,soon,heat,1\n"), "%d");
    ASSERT(says("err.txt",
                "standard input:2: times are counted from the first observation, and this record has none yet"));
    ASSERT(says("err.txt", "standard input:3: the model's times are dates, and this is none: soon"));
    ASSERT(small_close(&s));
    PASS();
}

SUITE(stream_command_suite) {
    open_folder(NULL);
    RUN_TEST(a_prediction_per_line);
    RUN_TEST(on_request_and_by_time);
    RUN_TEST(a_window);
    RUN_TEST(bad_lines_are_reported_and_change_nothing);
    RUN_TEST(many_bad_lines_are_counted);
    RUN_TEST(columns_behind_the_value_are_ignored);
    RUN_TEST(models_of_other_kinds);
    RUN_TEST(a_clock_starts_with_a_value);
    close_folder(NULL);
}
