/* A number to predict: its metrics against scikit-learn, and own data whose labels are one, through the command. */
#define GOLDEN_FILE "tasks.safetensors"
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "golden_metrics.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/model/metrics.h"
#include "../../tools/mtan/model/numbers.h"

#define NEAR 1e-12

/* ---- golden ---- */

static int same_metric(const number_predictions *p, number_metric name) {
    number_query q = {p, name, NULL, NULL};
    char tensor[32];
    size_t n = 0;
    double *expected;
    int good;
    snprintf(tensor, sizeof tensor, "numbers.%s", number_metric_key(name));
    expected = golden_f64(tensor, &n);
    good = n == 1 && same_number(tensor, number_drawn(&q, NULL, p->rows), *expected, NEAR);
    free(expected);
    return good;
}

TEST metrics_are_scikit_learns(void) {
    number_predictions p = {0, 3, NULL, NULL, NULL, NULL};
    size_t n = 0;
    double *y = golden_f64("numbers.y", &p.rows), *middle = golden_f64("numbers.p", &n);
    double *low = golden_f64("numbers.low", &n), *high = golden_f64("numbers.high", &n);
    p.y = y, p.p = calloc(3 * p.rows, sizeof *p.p);
    for (size_t i = 0; i < p.rows; i++) p.p[3 * i] = low[i], p.p[3 * i + 1] = middle[i], p.p[3 * i + 2] = high[i];
    for (int i = 0; i < NUMBER_METRICS; i++) ASSERT(same_metric(&p, (number_metric)i));
    number_query q = {&p, NUMBER_RMSE, NULL, NULL};
    const double value = number_drawn(&q, NULL, p.rows);
    const interval range = metric_bootstrap(number_drawn, &q, p.rows, NULL, 200, 0);
    ASSERT(range.low < value && value < range.high && range.high - range.low < value);
    free(y), free(middle), free(low), free(high), free(p.p);
    PASS();
}

/* Constant numbers have no R2; a model without an interval has no coverage. */
TEST metrics_that_do_not_exist(void) {
    double y[] = {3, 3, 3}, x[] = {1, 2, 3};
    const number_predictions p = {3, 1, x, y, NULL, NULL};
    number_query q = {&p, NUMBER_R2, NULL, NULL};
    ASSERT(isnan(number_drawn(&q, NULL, 3)));
    q.name = NUMBER_COVERAGE;
    ASSERT(isnan(number_drawn(&q, NULL, 3)));
    ASSERT(same_number("loss", numbers_loss(&p, 0), 5.0 / 3, NEAR));
    PASS();
}

/* ---- the command ---- */

#define SMALL                                                                                                          \
    " --enc-hidden 8 --embed 8 --ref-points 4 --head-hidden 8 --latent 2 --batch 16 --lr 0.02 --epochs 30 --dropout "  \
    "0 "                                                                                                               \
    "--threads 1 "
enum { RECORDS = 100 };

/* The label is 50 and 8 times the mean of what was observed. */
static void write_means(void) {
    uint32_t random = 1;
    char line[96];
    command_append("means.csv", "record,time,channel,value\n");
    command_append("numbers.csv", "record,label\n");
    for (int r = 0; r < RECORDS; r++) {
        double sum = 0;
        for (int k = 0; k < 10; k++) {
            random = random * 1664525u + 1013904223u;
            const double x = (double)(r % 10) - 5 + (double)(random >> 16) / 65536;
            snprintf(line, sizeof line, "r%d,%d,a,%.6f\n", r, k, x);
            command_append("means.csv", line);
            sum += x;
        }
        snprintf(line, sizeof line, "r%d,%.6f\n", r, 50 + 0.8 * sum);
        command_append("numbers.csv", line);
    }
}

#define TRAIN "train own --data @/means.csv --labels @/numbers.csv --out @/run --seed 1" SMALL

TEST a_number_is_learned(const char *line, int has_interval) {
    char *text;
    write_means();
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_says("err.txt", "numbers.csv: 100 different numbers: a number to predict; --task classes takes"));
    ASSERT(command_says("err.txt", " records: RMSE "));
    ASSERT(command_says("err.txt", "; without a model: ridge regression on summaries "));
    ASSERT_EQ_FMT(DONE,
                  command_run("eval @/run/best.safetensors --data @/means.csv --labels @/numbers.csv --json --quiet"),
                  "%d");
    text = command_text("out.txt");
    ASSERT(command_json(text, "{", "rmse") < 0.3 * command_json(text, "\"rmse\": {", "mean"));
    ASSERT(command_json(text, "{", "rmse_low") < command_json(text, "{", "rmse_high"));
    ASSERT(command_json(text, "{", "r2") > 0.8);
    ASSERT(isnan(command_json(text, "{", "coverage")) == !has_interval);
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/means.csv --quiet"), "%d");
    ASSERT(command_says("out.txt", has_interval ? "record,predicted,low,high\nr0," : "record,predicted\nr0,"));
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/means.csv"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("selftest @/run/best.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("report @/run --data @/means.csv --labels @/numbers.csv -o @/page.html"), "%d");
    ASSERT(command_says("page.html", "<h2>Predictions") &&
           command_says("page.html", "ridge regression on summaries: "));
    ASSERT(command_says("page.html", has_interval ? "lie in their intervals" : " of the variance"));
    ASSERT_EQ_FMT(DONE,
                  command_run("quantize @/run/best.safetensors @/small.safetensors --type f16 --data @/means.csv "
                              "--labels @/numbers.csv"),
                  "%d");
    ASSERT(command_says("out.txt", "RMSE "));
    ASSERT_EQ_FMT(DONE, command_run("check @/means.csv --labels @/numbers.csv"), "%d");
    ASSERT(command_says("out.txt", "ridge        mean\nRMSE "));
    PASS();
}

TEST labels_are_what_one_says(void) {
    write_means();
    ASSERT(command_refused("train own --model enc --task classes --data @/means.csv --labels @/numbers.csv --out @/run",
                           "all 100 labels are different: no class is learned from one record; is it --task number?"));
    ASSERT(command_refused("train own --model enc --task number --data @/events.csv --labels @/labels.csv --out @/run",
                           "is no number"));
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--model enc --epochs 2"), "%d");
    ASSERT(command_refused("eval @/run/best.safetensors --data @/means.csv", "--labels FILE is needed"));
    PASS();
}

SUITE(number_task_suite) {
    RUN_TEST(metrics_are_scikit_learns);
    RUN_TEST(metrics_that_do_not_exist);
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    greatest_set_test_suffix("mean");
    RUN_TESTp(a_number_is_learned, TRAIN "--model enc", 0);
    greatest_set_test_suffix("interval");
    RUN_TESTp(a_number_is_learned, TRAIN "--model full --interval 0.9", 1);
    RUN_TEST(labels_are_what_one_says);
}
