/* Several labels, each true or not: their metrics against scikit-learn, and own data that has them, through the command. */
#define GOLDEN_FILE "tasks.safetensors"
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "golden_metrics.h"
#include "../../tools/data/own.h"
#include "../../tools/data/split.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/measure/contest.h"
#include "../../tools/mtan/measure/labels.h"

#define NEAR 1e-12

/* ---- golden ---- */

static int same_metric(const label_tables *t, size_t rows, metric_name name) {
    label_query q = {t, name, -1, NULL};
    char tensor[32];
    size_t n = 0;
    double *expected;
    int good;
    snprintf(tensor, sizeof tensor, "several.%s", metric_key(name));
    expected = golden_f64(tensor, &n);
    good = n == 1 && same_number(tensor, label_drawn(&q, NULL, rows), *expected, NEAR);
    free(expected);
    return good;
}

TEST metrics_are_scikit_learns(void) {
    size_t cells = 0;
    double *p = golden_f64("several.p", &cells), *y = golden_f64("several.y", &cells);
    const size_t rows = cells / 4;
    label_tables t = label_tables_make(p, y, rows, 4);
    label_query q = {&t, METRIC_AUC, 3, NULL};
    ASSERT(isnan(label_drawn(&q, NULL, rows))); /* it is always true */
    for (int i = 0; i < METRIC_CALIBRATION; i++) ASSERT(same_metric(&t, rows, (metric_name)i));
    q.label = 0, q.minus = &t;
    ASSERT(same_number("minus itself", label_drawn(&q, NULL, rows), 0, 0));
    q.minus = NULL;
    const double value = label_drawn(&q, NULL, rows);
    const interval range = metric_bootstrap(label_drawn, &q, rows, NULL, 200, 0);
    ASSERT(range.low < value && value < range.high);
    label_tables_free(&t);
    free(p), free(y);
    PASS();
}

/* ---- data ---- */

/* r0 to r119: `high` is a high mean, `busy` many observations, `odd` chance; every seventh cell is not known. */
enum { RECORDS = 120 };
static void write_data(void) {
    uint32_t random = 1;
    char line[96];
    command_write("series.csv", "record,time,channel,value\n");
    command_write("several.csv", "record,high,busy,odd,sex\n");
    command_write("marks.csv", "record,high,busy,odd\n");
    for (int r = 0; r < RECORDS; r++) {
        const int high = r % 2, busy = r / 2 % 2, odd = r * 7 % 5 == 0;
        for (int k = 0; k < (busy ? 12 : 5); k++) {
            random = random * 1664525u + 1013904223u;
            snprintf(line, sizeof line, "r%d,%d,a,%.4f\n", r, k, (high ? 1 : -1) + (double)(random >> 16) / 65536);
            command_append("series.csv", line);
        }
        snprintf(line, sizeof line, "r%d,%s,%d,%d,%s\n", r,
                 r % 7 == 0 ? ""
                 : high     ? "1"
                            : "0",
                 busy, odd, r % 3 ? "F" : "M");
        command_append("several.csv", line);
        *strrchr(line, ',') = '\n', line[strcspn(line, "\n") + 1] = 0;
        command_append("marks.csv", line);
    }
}

static int loads(dataset *d, const char *text, const char *words) {
    own_options o;
    memset(&o, 0, sizeof o);
    command_write("labels.csv", text);
    const int good = own_load(d, command_path("events.csv"), command_path("labels.csv"), &o);
    if (words && !good && strstr(d->error, words)) return 1;
    if (words || !good) printf("  BAD %s\n", good ? "was read" : d->error);
    return !words && good;
}

TEST a_column_is_a_label(void) {
    dataset d;
    ASSERT(loads(&d, "record,z,a\nr1,1,\nr0,0,True\nr2,,NA\nr1,1.0,0\n", NULL));
    ASSERT_EQ_FMT((int)MTAN_TASK_LABELS, (int)d.task, "%d");
    ASSERT(arrlen(d.classes) == 2 && strcmp(d.classes[0], "a") == 0 && strcmp(d.classes[1], "z") == 0);
    ASSERT(d.records[0].n_labels == 1 && d.records[1].n_labels == 1 && d.records[2].n_labels == 0);
    const mtan_real *first = dataset_view(&d, 0).numbers, *second = dataset_view(&d, 1).numbers;
    ASSERT(first[0] == 1 && first[1] == 0 && second[0] == 0 && second[1] == 1);
    dataset_free(&d);
    command_write("events.csv", "record,time,channel,value\nr0,0,heat,1\n");
    ASSERT(loads(&d, "record,time,z,a\nr0,2,1,\nr0,1,0,1\nr0,3,,\n", NULL));
    ASSERT(d.records[0].n_labels == 4 && d.labels[0] == MTAN_UNLABELED && d.labels[3] == MTAN_UNLABELED);
    ASSERT(d.label_times[0] == 0 && isnan(d.numbers[0]) && isnan(d.numbers[1])); /* the observation */
    ASSERT(d.label_times[1] == 1 && d.numbers[2] == 1 && d.numbers[3] == 0 && isnan(d.numbers[4]) && d.numbers[5] == 1);
    dataset_free(&d);
    PASS();
}

TEST what_is_no_label_is_refused(void) {
    dataset d;
    ASSERT(loads(&d, "record,a\nr0,sick\n", "labels.csv:2: \"sick\" in column \"a\" is no label: 1, 0 or nothing"));
    ASSERT(loads(&d, "record,a\nr0,0.5\n", "labels.csv:2: \"0.5\" in column \"a\" is no label"));
    ASSERT(loads(&d, "record,a\nr0,1\n\nr0,0\n", "labels.csv:4: record \"r0\" has \"a\" 0 here and 1 elsewhere"));
    ASSERT(loads(&d, "record,a,b,a\n", "labels.csv:1: column 4, \"a\", is there twice"));
    ASSERT(loads(&d, "record,,b\n", "labels.csv:1: column 2, \"\", has no name: it would be the label's"));
    ASSERT(loads(&d, "record,a\nr0,\n", "labels.csv: no label"));
    ASSERT(loads(&d, "record,time\nr0,1\n", "labels.csv:1: no column \"label\""));
    PASS();
}

/* The rarest label of a record decides which part it goes to: two of three are in training. */
TEST rare_labels_are_spread(void) {
    const split_way way = {.kind = SPLIT_STRATIFIED, .seed = SPLIT_SEED};
    own_options o;
    dataset d;
    split s;
    char error[512], line[64];
    int rare[SPLIT_PARTS] = {0};
    memset(&o, 0, sizeof o);
    write_data();
    command_write("rare.csv", "record,common,rare\n");
    for (int r = 0; r < RECORDS; r++) {
        snprintf(line, sizeof line, "r%d,%d,%d\n", r, r % 3 > 0, r < 5);
        command_append("rare.csv", line);
    }
    ASSERT(own_load(&d, command_path("series.csv"), command_path("rare.csv"), &o));
    ASSERT(split_make(&s, &d, &way, error));
    for (int part = 0; part < SPLIT_PARTS; part++)
        for (size_t i = 0; i < arrlenu(s.part[part]); i++) rare[part] += d.numbers[2 * s.part[part][i] + 1] > 0;
    ASSERT(rare[SPLIT_TRAIN] == 3 && rare[SPLIT_VALID] == 1 && rare[SPLIT_TEST] == 1);
    split_free(&s), dataset_free(&d);
    PASS();
}

/* ---- the contest ---- */

/* A regression finds the label that its rows tell, and has the share of one that is always the same. */
TEST rivals_know_the_shares(void) {
    dataset d;
    number_rivals r;
    int32_t *train = NULL, *test = NULL;
    memset(&d, 0, sizeof d);
    d.task = MTAN_TASK_LABELS;
    arrput(d.channels, tool_text("x")), arrput(d.classes, tool_text("never")), arrput(d.classes, tool_text("up"));
    for (int i = 0; i < 60; i++) {
        dataset_add_record(&d, "r", -1);
        for (int k = 0; k < 3; k++) dataset_add_event(&d, (mtan_real)k, 0, (mtan_real)(i % 2 ? k : -k));
        dataset_end_record(&d);
        dataset_add_label(&d, 0);
        arrput(d.numbers, 0), arrput(d.numbers, i % 10 == 9 ? (mtan_real)NAN : (mtan_real)(i % 2));
        if (i < 40) arrput(train, i);
        else arrput(test, i);
    }
    number_rivals_make(&r, &d, NULL, train, NULL, test);
    ASSERT(r.rows == 20 && r.count == 2 && r.p[RIVAL_PREVALENCE] && r.p[RIVAL_REGRESSION] && !r.p[RIVAL_RIDGE]);
    ASSERT(same_number("never", r.p[RIVAL_PREVALENCE][0], 1.0 / 42, NEAR));
    ASSERT(same_number("up", r.p[RIVAL_PREVALENCE][1], 17.0 / 38, NEAR));
    ASSERT(r.p[RIVAL_REGRESSION][1] < 0.2 && r.p[RIVAL_REGRESSION][3] > 0.8 && r.p[RIVAL_REGRESSION][0] < 0.1);
    contest_number *numbers = contest_labels(&r, NULL, 0);
    const contest_number *n = contest_headline(numbers, 2);
    ASSERT(n->best == RIVAL_REGRESSION && same_number("AUC", n->rival[RIVAL_REGRESSION], 1, NEAR));
    arrfree(numbers), number_rivals_free(&r);
    arrfree(train), arrfree(test), dataset_free(&d);
    PASS();
}

/* ---- the command ---- */

#define SMALL " --enc-hidden 8 --embed 8 --ref-points 4 --head-hidden 8 --batch 16 --lr 0.02 --epochs 30 --threads 1 "
#define DATA " --data @/series.csv --labels @/marks.csv "
#define MODEL "@/run/best.safetensors"

TEST labels_are_learned(const char *line) {
    char *text;
    write_data();
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_says("err.txt", "without a model: how often each label is true 0.5000, logistic regression"));
    ASSERT_EQ_FMT(DONE, command_run("eval " MODEL DATA "--json --quiet --bootstrap 50"), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(command_json(text, "\"name\": \"high\"", "auc") > 0.9);
    ASSERT(command_json(text, "{", "auc_low") < command_json(text, "{", "auc_high"));
    ASSERT(same_number("share", command_json(text, "\"name\": \"busy\"", "share"), 0.5, 0.2));
    ASSERT(command_json(text, "\"auc\": {", "prevalence") < command_json(text, "\"auc\": {", "model"));
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("eval " MODEL " --data @/series.csv --labels @/several.csv --bootstrap 50"), "%d");
    ASSERT(command_says("err.txt", "several.csv: columns that are no label of the model: 1")); /* the sex */
    ASSERT(command_says("out.txt", "labelled rows; means over the labels\nAUC "));
    ASSERT_EQ_FMT(DONE, command_run("eval " MODEL " --data @/series.csv --labels @/several.csv --bootstrap 0 --by sex"),
                  "%d");
    char *said = command_text("err.txt");
    ASSERT(!strstr(said, "no label of the model"));
    free(said);
    ASSERT(command_says("out.txt", "label                       known      true  AUC "));
    ASSERT_EQ_FMT(DONE, command_run("predict " MODEL " --data @/series.csv --quiet"), "%d");
    ASSERT(command_says("out.txt", "record,p_busy,p_high,p_odd\nr0,0."));
    ASSERT_EQ_FMT(DONE, command_run("predict " MODEL " --data @/series.csv --quiet --json"), "%d");
    ASSERT(command_says("out.txt", "{\"record\": \"r0\", \"p_busy\": 0."));
    PASS();
}

TEST a_label_that_is_never_known_has_no_numbers(void) {
    char row[32];
    write_data();
    command_write("unknown.csv", "record,busy,high,odd\n");
    for (int r = 0; r < 60; r++)
        snprintf(row, sizeof row, "r%d,%d,%d,\n", r, r % 2, r % 3 == 0), command_append("unknown.csv", row);
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/run --epochs 1 --quiet" DATA SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval " MODEL " --data @/series.csv --labels @/unknown.csv --split all"), "%d");
    ASSERT(command_says("out.txt", "\nodd                             0         -  -                     -  "));
    ASSERT_EQ_FMT(
        DONE, command_run("report @/run --data @/series.csv --labels @/unknown.csv --split all -o @/page.html"), "%d");
    ASSERT(command_says("page.html", "<tr><td>odd</td><td class=\"n\">0</td><td class=\"n\">\xE2\x80\x93</td>"));
    PASS();
}

TEST a_model_of_labels_goes_everywhere(void) {
    write_data();
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/run --ensemble 2 --quiet" DATA SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("stream " MODEL " --data @/series.csv"), "%d");
    ASSERT(command_says("out.txt", "record,p_busy,p_high,p_odd\nr0,0."));
    ASSERT_EQ_FMT(DONE, command_run("selftest " MODEL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("quantize @/run/member-0/best.safetensors @/small.safetensors --type f16" DATA),
                  "%d");
    ASSERT(command_says("err.txt", "AUC, mean "));
    ASSERT_EQ_FMT(DONE, command_run("export @/run/member-0/best.safetensors --c -o @/model.h"), "%d");
    ASSERT(command_says("model.h", "MTAN_TASK_LABELS") && command_says("model.h", "\"busy\""));
    ASSERT_EQ_FMT(DONE, command_run("report @/run/member-0 --bootstrap 20" DATA "-o @/page.html"), "%d");
    ASSERT(command_says("page.html", "<h2>Labels") && command_says("page.html", "how often each label is true"));
    ASSERT_EQ_FMT(DONE, command_run("check @/series.csv --labels @/marks.csv"), "%d");
    ASSERT(command_says("out.txt", "  label busy") && command_says("out.txt", "prevalence  regression"));
    ASSERT_EQ_FMT(DONE, command_run("cv own --model enc --out @/cv --folds 2 --epochs 2 --bootstrap 20" DATA SMALL),
                  "%d");
    ASSERT(command_says("out.txt", "2 folds, 120 labelled rows\n"));
    ASSERT(command_says("cv/predictions.csv", "record,fold,busy,high,odd,p_busy,p_high,p_odd\n"));
    PASS();
}

TEST what_labels_do_not_have_is_refused(void) {
    write_data();
    ASSERT(command_refused("train own --model enc --out @/run --task labels --data @/events.csv --labels @/labels.csv",
                           "labels.csv:1: --task labels takes record and one column of 1 and 0 per label, none"));
    ASSERT(command_refused("train own --model enc --out @/run --task classes" DATA,
                           "marks.csv:1: no column \"label\", which --task classes takes"));
    ASSERT(command_refused("train own --model enc --out @/run --class-weights balanced" DATA,
                           "--class-weights is for classes, and the labels are several labels"));
    ASSERT(command_refused("train own --model enc --out @/run --select accuracy" DATA, "--select accuracy is for"));
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/run --epochs 1 --quiet" DATA SMALL), "%d");
    ASSERT(
        command_refused("eval " MODEL " --data @/series.csv", "--labels FILE is needed, with what the model predicts"));
    ASSERT(command_refused("eval " MODEL " --by sex" DATA, "--by: "));
    command_write("other.csv", "record,x\nr0,1\n");
    ASSERT(command_refused("eval " MODEL " --data @/series.csv --labels @/other.csv",
                           "other.csv:1: no column \"label\", and none that is a label of the model"));
    PASS();
}

SUITE(labels_task_suite) {
    RUN_TEST(metrics_are_scikit_learns);
    RUN_TEST(rivals_know_the_shares);
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_column_is_a_label);
    RUN_TEST(what_is_no_label_is_refused);
    RUN_TEST(rare_labels_are_spread);
    greatest_set_test_suffix("enc");
    RUN_TESTp(labels_are_learned, "train own --model enc --out @/run --select auc" DATA SMALL);
    greatest_set_test_suffix("baseline");
    RUN_TESTp(labels_are_learned,
              "train own --model gru-d --out @/run" DATA "--batch 16 --lr 0.02 --epochs 30 --threads 1");
    RUN_TEST(a_label_that_is_never_known_has_no_numbers);
    RUN_TEST(a_model_of_labels_goes_everywhere);
    RUN_TEST(what_labels_do_not_have_is_refused);
}
