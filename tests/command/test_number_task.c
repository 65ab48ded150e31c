/* A number to predict: its metrics against scikit-learn, and own data whose labels are one, through the command. */
#define GOLDEN_FILE "tasks.safetensors"
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "golden_metrics.h"
#include "small.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/measure/metrics.h"
#include "../../tools/mtan/measure/numbers.h"
#include "../../tools/mtan/fit/widths.h"
#include "../../tools/mtan/model/bundle.h"

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

/* ---- widths of intervals ---- */

/* Of 1 .. 39 in intervals of 10 on either side of 0, 0.8 x 40 = 32 are within 32: 3.2 times as far. */
TEST widths_are_those_of_the_rows(void) {
    double p[3 * 39], y[39];
    number_predictions of = {39, 3, p, y, NULL, NULL};
    for (int i = 0; i < 39; i++) p[3 * i] = -10, p[3 * i + 1] = 0, p[3 * i + 2] = 10, y[i] = i % 2 ? i + 1 : -i - 1;
    ASSERT(same_number("wider", width_factor(&of, 0.8), 3.2, NEAR));
    for (int i = 0; i < 39; i++) p[3 * i] = -100; /* those below are well inside: only the others count */
    ASSERT(same_number("one side", width_factor(&of, 0.8), 2.4, NEAR));
    ASSERT(same_number("too rare", width_factor(&of, 0.99), 1, 0));
    for (int i = 0; i < 39; i++) p[3 * i + 2] = 0; /* no width to multiply */
    ASSERT(same_number("no width", width_factor(&of, 0.8), 1, 0));
    of.rows = 5;
    ASSERT(same_number("few rows", width_factor(&of, 0.5), 1, 0));
    of.outputs = 1;
    ASSERT(same_number("no interval", width_factor(&of, 0.5), 1, 0));
    PASS();
}

/* Intervals that are too short get a margin, so that crossings, here of 0.1 in every other record, are not multiplied.
 * Those that are too long get a factor, which keeps the side of both ends. */
TEST ends_stay_on_their_sides_of_the_median(void) {
    double p[3 * 39], y[39], *middle;
    number_predictions of = {39, 3, p, y, NULL, NULL};
    width_change w;
    for (int i = 0; i < 39; i++) {
        p[3 * i] = i % 2 ? 0.1 : -0.1, p[3 * i + 1] = 0, p[3 * i + 2] = 0.2;
        y[i] = i % 2 ? i + 1 : -i - 1;
    }
    w = width_find(&of, 0.8);
    ASSERT(same_number("no factor", w.factor, 1, 0) && same_number("margin", w.margin, 31.8, NEAR));
    middle = width_middles(&of, w);
    for (int i = 0; i < 39; i++) ASSERT(same_number("median", middle[i], 0, 0));
    free(middle);
    for (int i = 0; i < 39; i++) p[3 * i] = -100, p[3 * i + 2] = i % 2 ? 100 : 50;
    w = width_find(&of, 0.8);
    ASSERT(same_number("factor", w.factor, 0.32, NEAR) && same_number("no margin", w.margin, 0, 0));
    ASSERT(width_changes(w) && !width_changes((width_change){1, 0}) && !width_changes((width_change){0, 0}));
    of.rows = 5;
    ASSERT_FALSE(width_changes(width_find(&of, 0.5))); /* too few */
    of.outputs = 1;
    ASSERT(!width_changes(width_find(&of, 0.5)) && !width_middles(&of, w));
    PASS();
}

/* The margin is added to the ends as it is, and the row of the median keeps its bits. */
TEST a_margin_goes_into_the_bias(void) {
    small_model s;
    mtan_param weight, bias;
    ASSERT(small_open_named(&s, "enc interval"));
    ASSERT(width_layer(&s.config, &weight, &bias));
    const size_t count = mtan_weights_count(&s.config), row = (size_t)bias.offset;
    mtan_real *before = malloc(count * sizeof *before);
    memcpy(before, s.weights, count * sizeof *before);
    width_apply(&s.config, s.weights, (width_change){1, 0.25});
    for (size_t i = 0; i < count; i++) {
        const double moves = i < row || i >= row + 6 || i % 3 == (row + 1) % 3 ? 0 : i % 3 == row % 3 ? -0.25 : 0.25;
        ASSERT(fabs((double)s.weights[i] - (double)before[i] - moves) <= (fabs(moves) > 0 ? 1e-6 : 0));
    }
    free(before);
    ASSERT(small_close(&s));
    PASS();
}

/* Only the ends move, to twice their distance from the median; of two numbers each has its own. */
TEST the_last_layer_has_the_widths(void) {
    small_model s;
    mtan_predictor run;
    mtan_real before[6], after[6];
    size_t bytes;
    void *memory;
    uint64_t random = 3;
    const mtan_bounds most = {1, 12, 6};
    ASSERT(small_open_named(&s, "enc interval"));
    small_set set = small_records(&s.config, &most, 1, 0, &random);
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &most, &bytes));
    memory = calloc(bytes, 1);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(MTAN_OK, mtan_predictor_init(&run, &s.model, &most, memory, bytes));
        ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&run, set.records, 1, i ? after : before));
        width_apply(&s.config, s.weights, (width_change){2, 0});
    }
    for (int o = 0; o < 6; o++) {
        const mtan_real median = before[o / 3 * 3 + 1];

        ASSERT(fabs((double)(after[o] - median) - 2 * (double)(before[o] - median)) < 1e-5);
    }
    free(memory);
    ASSERT(small_free(&set) && small_close(&s));
    PASS();
}

/* ---- the command ---- */

#define SMALL                                                                                                          \
    " --enc-hidden 8 --embed 8 --ref-points 4 --head-hidden 8 --batch 16 --lr 0.02 --epochs 30 --dropout 0 "           \
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
    ASSERT(command_says("err.txt", "RMSE "));
    ASSERT_EQ_FMT(DONE, command_run("check @/means.csv --labels @/numbers.csv"), "%d");
    ASSERT(command_says("out.txt", "ridge        mean\nRMSE "));
    PASS();
}

/* 200 records whose label is a step of their mean, which trees take and a network with so few records hardly does. */
static void write_step(const char *events, const char *labels, uint32_t random) {
    char line[96];
    command_write(events, "record,time,channel,value\n"), command_write(labels, "record,label\n");
    for (int r = 0; r < 200; r++) {
        double sum = 0;
        for (int k = 0; k < 10; k++) {
            random = random * 1664525u + 1013904223u;
            const double x = (double)(r % 20) - 9.5 + (double)(random >> 16) / 65536;
            snprintf(line, sizeof line, "r%d,%d,a,%.6f\n", r, k, x), command_append(events, line);
            sum += x;
        }
        snprintf(line, sizeof line, "r%d,%.6f\n", r, (sum > 10 ? 7 : 3) + 0.001 * sum), command_append(labels, line);
    }
}

static double error_on_fresh(const char *more) {
    char line[512];
    snprintf(line, sizeof line,
             "train own --model enc --data @/step.csv --labels @/steps.csv --quiet --seed 1 %s%s --out @/%s", SMALL,
             more, *more ? "without" : "with");
    if (command_run(line) != DONE) return NAN;
    snprintf(line, sizeof line,
             "eval @/%s/best.safetensors --data @/fresh.csv --labels @/fresh-labels.csv --split all --json --quiet",
             *more ? "without" : "with");
    if (command_run(line) != DONE) return NAN;
    char *text = command_text("out.txt");
    const double error = command_json(text, "{", "rmse");
    free(text);
    return error;
}

/* Intervals too: they move with the trees, and hold as much as they promise. */
TEST trees_add_to_a_number(void) {
    char *text;
    write_step("step.csv", "steps.csv", 1), write_step("fresh.csv", "fresh-labels.csv", 99);
    const double with = error_on_fresh(""), without = error_on_fresh("--trees 0");
    if (!(with < 0.8 * without)) printf("  BAD RMSE %g, without trees %g\n", with, without);
    ASSERT(with < 0.8 * without);
    ASSERT_EQ_FMT(DONE, command_run("selftest @/with/best.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/step.csv --labels @/steps.csv --interval 0.8 --seed 1 "
                              "--out @/interval" SMALL),
                  "%d");
    ASSERT(command_says("err.txt", " trees, ") && command_says("err.txt", "validation squared error "));
    ASSERT_EQ_FMT(DONE,
                  command_run("eval @/interval/best.safetensors --data @/fresh.csv --labels @/fresh-labels.csv "
                              "--split all --json --quiet"),
                  "%d");
    text = command_text("out.txt");
    const double inside = command_json(text, "{", "coverage");
    free(text);
    if (!(inside > 0.7 && inside < 0.95)) printf("  BAD %g of 0.8 inside\n", inside);
    ASSERT(inside > 0.7 && inside < 0.95);
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

/* 900 records with a number that the net learns, and noise that it cannot. */
static void write_levels(void) {
    uint32_t random = 7;
    char line[96];
    command_write("means.csv", "record,time,channel,value\n");
    command_write("numbers.csv", "record,label\n");
    for (int r = 0; r < 900; r++) {
        double level = 0, noise = 0;
        for (int k = 0; k < 12; k++) {
            random = random * 1664525u + 1013904223u;
            *(k < 6 ? &level : &noise) += (double)(random >> 16) / 65536 - 0.5;
        }
        for (int k = 0; k < 8; k++) {
            snprintf(line, sizeof line, "r%d,%d,a,%.6f\n", r, k, level);
            command_append("means.csv", line);
        }
        snprintf(line, sizeof line, "r%d,%.6f\n", r, 100 + 20 * level + 2 * noise);
        command_append("numbers.csv", line);
    }
}

#define EVAL "eval @/run/best.safetensors --data @/means.csv --labels @/numbers.csv --json --quiet --bootstrap 0"

/* Dropout disturbs the net in training alone, so that what it learns of quantiles is far too wide: 0.98 of the numbers
 * lay in intervals of 0.8. */
TEST intervals_hold_what_they_promise(void) {
    char *text;
    write_levels();
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--model enc --interval 0.8 --quiet --dropout 0.5 --epochs 15"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(EVAL), "%d");
    text = command_text("out.txt");
    ASSERT(fabs(command_json(text, "{", "coverage") - 0.8) < 0.09);
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("selftest @/run/best.safetensors"), "%d");
    PASS();
}

enum { LOG_ERROR = 3 }; /* the column of val_rmse */

/* The last validation error of a log, in the model's units. */
static double logged_error(void) {
    char *text = command_text("run/log.csv"), *at = text, *row = text;
    double value;
    while ((at = strchr(at, '\n')) != NULL && *++at) row = at;
    for (int column = 0; column < LOG_ERROR && row; column++) row = strchr(row, ',') + 1;
    value = strtod(row, NULL);
    return free(text), value;
}

/* After two slow epochs the quantiles lie close together and many cross. Multiplied by one factor, they had an RMSE of
 * 30.4 on the test records, where the mean of the numbers has 14.0. */
TEST quantiles_that_cross_stay_small(void) {
    char error[512], *text;
    bundle b;
    double scale;
    write_levels();
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--model enc --trees 0 --interval 0.8 --quiet --epochs 2 --lr 0.0005"), "%d");
    ASSERT(bundle_read(&b, command_path("run/best.safetensors"), error));
    scale = numbers_raw(&b.prep, 1) - numbers_raw(&b.prep, 0);
    bundle_free(&b);
    ASSERT_EQ_FMT(DONE, command_run(EVAL " --split valid"), "%d");
    text = command_text("out.txt");
    ASSERT(same_number("as in the log", command_json(text, "{", "rmse"), scale * logged_error(), 0.01));
    free(text);
    ASSERT_EQ_FMT(DONE, command_run(EVAL), "%d");
    text = command_text("out.txt");
    ASSERT(command_json(text, "{", "rmse") < command_json(text, "\"rmse\": {", "mean"));
    ASSERT(fabs(command_json(text, "{", "coverage") - 0.8) < 0.09);
    free(text);
    PASS();
}

/* A model that interpolates has no use for the labels, which --groups needs all the same. */
TEST curves_beside_numbers(void) {
    write_means();
    ASSERT_EQ_FMT(
        DONE,
        command_run(
            "train own --model interp --out @/run --data @/means.csv --labels @/numbers.csv "
            "--epochs 2 --latent 2 --dec-hidden 5 --mlp-hidden 6 --quiet --embed 8 --enc-hidden 8 --ref-points 6"),
        "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/means.csv --labels @/numbers.csv"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/run/best.safetensors --data @/means.csv --at 0:1:0.5"), "%d");
    ASSERT_EQ_FMT(
        DONE, command_run("train own --resume --out @/run --data @/means.csv --labels @/numbers.csv --epochs 2"), "%d");
    PASS();
}

SUITE(number_task_suite) {
    RUN_TEST(metrics_are_scikit_learns);
    RUN_TEST(metrics_that_do_not_exist);
    RUN_TEST(widths_are_those_of_the_rows);
    RUN_TEST(ends_stay_on_their_sides_of_the_median);
    RUN_TEST(a_margin_goes_into_the_bias);
    RUN_TEST(the_last_layer_has_the_widths);
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    greatest_set_test_suffix("mean");
    RUN_TESTp(a_number_is_learned, TRAIN "--model enc", 0);
    greatest_set_test_suffix("interval");
    RUN_TESTp(a_number_is_learned, TRAIN "--model full --latent 2 --interval 0.9", 1);
    RUN_TEST(trees_add_to_a_number);
    RUN_TEST(labels_are_what_one_says);
    RUN_TEST(intervals_hold_what_they_promise);
    RUN_TEST(quantiles_that_cross_stay_small);
    RUN_TEST(curves_beside_numbers);
}
