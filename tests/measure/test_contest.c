/* The model beside what one has without it: shares, a regression and who fills in, against values worked out by hand; differences
 * on the same draws; and the sentences about them. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../tools/data/array.h"
#include "../../tools/data/split.h"
#include "../../tools/mtan/options/option_table.h"
#include "../../tools/mtan/measure/contest.h"
#include "../../tools/mtan/report/contest_text.h"
#include "check.h"

static int near(double got, double expected) {
    if (fabs(got - expected) <= 1e-6) return 1;
    printf("  BAD: %.9g, expected %.9g\n", got, expected);
    return 0;
}

/* Records for training and for the test. */
typedef struct field {
    dataset data;
    split split;
} field;

static void add_record(field *f, int part, int times, double slope) {
    const int32_t position = (int32_t)arrlen(f->data.records);
    char name[16];
    snprintf(name, sizeof name, "r%d", (int)position);
    dataset_add_record(&f->data, name, -1);
    for (int i = 0; i < times; i++) dataset_add_event(&f->data, (mtan_real)i, 0, (mtan_real)(slope * i));
    dataset_end_record(&f->data);
    arrput(f->split.part[part], position);
}

static field field_new(const char *const *classes, size_t n) {
    field f;
    memset(&f, 0, sizeof f);
    arrput(f.data.channels, tool_text("x"));
    for (size_t i = 0; i < n; i++) arrput(f.data.classes, tool_text(classes[i]));
    return f;
}

static void field_free(field *f) {
    dataset_free(&f->data), split_free(&f->split);
}

static const contest_number *number_called(const contest_number *numbers, const char *key) {
    for (size_t i = 0; i < arrlenu(numbers); i++)
        if (strcmp(numbers[i].key, key) == 0) return &numbers[i];
    return NULL;
}

static const char *const signs[] = {"down", "up"}, *const kinds[] = {"down", "flat", "up"};

/* ---- classes ---- */

/* Three of four training records are down: with one of each class added, 4 of 6. */
TEST guessing_has_what_it_has(void) {
    field f = field_new(signs, 2);
    class_rivals r;
    contest_number *numbers;
    for (int i = 0; i < 8; i++) {
        add_record(&f, i < 4 ? SPLIT_TRAIN : SPLIT_TEST, 3, 1);
        dataset_add_label(&f.data, i == 3 || i == 5 ? 1 : i == 7 ? MTAN_UNLABELED : 0);
    }
    class_rivals_make(&r, &f.data, f.split.part[SPLIT_TRAIN], NULL, f.split.part[SPLIT_TEST]);
    numbers = contest_classes(&r, NULL, 100);
    ASSERT_EQ_FMT((size_t)3, r.rows, "%zu");          /* one has no label */
    ASSERT(!r.p[RIVAL_REGRESSION] && isnan(r.ridge)); /* four rows are too few for one */
    ASSERT(near(r.p[RIVAL_SHARES][0], 4.0 / 6));
    ASSERT(near(number_called(numbers, "auc")->rival[RIVAL_SHARES], 0.5));
    ASSERT(near(number_called(numbers, "accuracy")->rival[RIVAL_SHARES], 2.0 / 3));
    ASSERT(near(number_called(numbers, "log_loss")->rival[RIVAL_SHARES], -(2 * log(4.0 / 6) + log(2.0 / 6)) / 3));
    ASSERT(!number_called(numbers, "calibration_error"));
    ASSERT(isnan(numbers[0].better) && isnan(numbers[0].range.low) && isnan(numbers[0].model));
    arrfree(numbers);
    class_rivals_free(&r);
    field_free(&f);
    PASS();
}

/* Classes that differ in their slope, which is a summary. */
static field slopes(const char *const *names, int classes) {
    field f = field_new(names, (size_t)classes);
    for (int i = 0; i < 30 * classes; i++) {
        const int part = i / classes % 3 == 0 ? SPLIT_TEST : i / classes % 3 == 1 ? SPLIT_VALID : SPLIT_TRAIN;
        add_record(&f, part, 5 + i % 4, (i % classes - 0.5 * (classes - 1)) * (1 + 0.1 * (i % 11)));
        dataset_add_label(&f.data, i % classes);
    }
    return f;
}

TEST a_regression_finds_slopes(int classes) {
    field f = slopes(classes == 2 ? signs : kinds, classes);
    const int32_t *test = f.split.part[SPLIT_TEST];
    class_rivals r;
    contest_number *numbers;
    class_rivals_make(&r, &f.data, f.split.part[SPLIT_TRAIN], f.split.part[SPLIT_VALID], test);
    numbers = contest_classes(&r, NULL, 0);
    ASSERT_EQ_FMT(arrlenu(test), r.rows, "%zu");
    ASSERT(number_called(numbers, "accuracy")->rival[RIVAL_REGRESSION] > 0.95);
    ASSERT_EQ(RIVAL_REGRESSION, contest_headline(numbers, classes)->best);
    arrfree(numbers);
    class_rivals_free(&r);
    class_rivals_make(&r, &f.data, NULL, NULL, test); /* other data than that of the training: nothing to fit */
    ASSERT(r.p[RIVAL_SHARES] && !r.p[RIVAL_REGRESSION]);
    class_rivals_free(&r);
    field_free(&f);
    PASS();
}

/* A label to a time: the value there tells. */
TEST a_regression_follows_times(void) {
    field f = field_new(signs, 2);
    class_rivals r;
    contest_number *numbers;
    for (int i = 0; i < 40; i++) {
        add_record(&f, i % 2 ? SPLIT_TRAIN : SPLIT_TEST, 8, i % 3 ? 1 : -1);
        f.data.records[i].label0 = arrlenu(f.data.labels);
        for (int k = 0; k < 4; k++) {
            dataset_add_label(&f.data, k == 3 ? MTAN_UNLABELED : (i % 3 ? 2 * k + 0.5 : -2 * k - 0.5) > 2);
            arrput(f.data.label_times, (mtan_real)(2 * k + 0.5));
        }
    }
    class_rivals_make(&r, &f.data, f.split.part[SPLIT_TRAIN], NULL, f.split.part[SPLIT_TEST]);
    numbers = contest_classes(&r, NULL, 0);
    ASSERT_EQ_FMT((size_t)60, r.rows, "%zu");
    ASSERT(number_called(numbers, "auc")->rival[RIVAL_REGRESSION] > 0.95);
    arrfree(numbers);
    class_rivals_free(&r);
    field_free(&f);
    PASS();
}

/* A model that says the truth, and one that says the opposite. */
TEST differences_are_paired(void) {
    field f = slopes(signs, 2);
    predictions p;
    class_rivals r;
    contest_number *numbers;
    memset(&p, 0, sizeof p);
    class_rivals_make(&r, &f.data, f.split.part[SPLIT_TRAIN], f.split.part[SPLIT_VALID], f.split.part[SPLIT_TEST]);
    memset(r.p[RIVAL_REGRESSION], 0, r.rows * 2 * sizeof(double)); /* out of the contest: it would be as good */
    p.rows = r.rows, p.classes = 2, p.label = r.label, p.record = r.record;
    p.p = tool_calloc(2 * r.rows, sizeof *p.p), p.score = tool_calloc(r.rows, sizeof *p.score);
    for (int good = 1; good >= 0; good--) {
        for (size_t i = 0; i < r.rows; i++) {
            p.score[i] = r.label[i] == good;
            p.p[2 * i + 1] = 0.1 + 0.8 * p.score[i], p.p[2 * i] = 1 - p.p[2 * i + 1];
        }
        numbers = contest_classes(&r, &p, 200);
        for (size_t i = 0; i < arrlenu(numbers); i++) {
            const contest_number *n = &numbers[i];
            ASSERT(near(n->better, n->higher * (n->model - n->rival[n->best])));
            ASSERT(n->range.low <= n->better && n->better <= n->range.high);
            ASSERT_EQ(good, !contest_lost(n));
        }
        arrfree(numbers);
    }
    p.rows--;
    ASSERT(!contest_classes(&r, &p, 0)); /* other rows cannot be paired */
    free(p.p), free(p.score);
    class_rivals_free(&r);
    field_free(&f);
    PASS();
}

/* ---- curves ---- */

/* On a ramp the lines are wrong outside of the times shown alone, the last value at every time held out. */
TEST straight_lines_follow_a_ramp(void) {
    field f = field_new(NULL, 0);
    const contest_number *held, *all;
    contest_number *numbers;
    add_record(&f, SPLIT_TRAIN, 2, 20); /* its mean is 10 */
    add_record(&f, SPLIT_TEST, 40, 1);
    numbers = contest_curves(&f.data, f.split.part[SPLIT_TRAIN], f.split.part[SPLIT_TEST], 0.5, NULL, 0);
    held = number_called(numbers, "mse_held_out"), all = number_called(numbers, "mse_all");
    ASSERT(held->rival[RIVAL_LINES] < 2 && held->rival[RIVAL_LAST] > held->rival[RIVAL_LINES]);
    ASSERT(held->rival[RIVAL_MEAN] > 50 && held->best == RIVAL_LINES && isnan(held->rival[RIVAL_SHARES]));
    ASSERT(near(all->rival[RIVAL_LINES], held->rival[RIVAL_LINES] / 2)); /* half is shown: lines pass through */
    ASSERT(near(all->rival[RIVAL_MEAN], 223.5));                         /* (40^2 - 1) / 12 + (19.5 - 10)^2 */
    ASSERT(!number_called(numbers, "mse_truth") && contest_headline(numbers, 0) == held);
    arrfree(numbers);
    numbers = contest_curves(&f.data, f.split.part[SPLIT_TRAIN], f.split.part[SPLIT_TEST], 0, NULL, 0);
    held = number_called(numbers, "mse_held_out"); /* nothing is shown: all have the mean */
    for (int i = RIVAL_MEAN; i < RIVALS; i++) ASSERT(near(held->rival[i], 223.5));
    arrfree(numbers);
    field_free(&f);
    PASS();
}

TEST a_model_is_judged_by_its_records(void) {
    field f = field_new(NULL, 0);
    record_error model[20];
    contest_number *numbers;
    memset(model, 0, sizeof model);
    add_record(&f, SPLIT_TRAIN, 2, 20);
    for (int i = 0; i < 20; i++) {
        add_record(&f, SPLIT_TEST, 10, 1 + 0.1 * i);
        model[i].held = 5 * 0.01, model[i].all = 10 * 0.01;
        model[i].held_points = 5, model[i].points = 10;
    }
    numbers = contest_curves(&f.data, f.split.part[SPLIT_TRAIN], f.split.part[SPLIT_TEST], 0.5, model, 100);
    for (size_t i = 0; i < arrlenu(numbers); i++) {
        ASSERT(near(numbers[i].model, 0.01) && near(numbers[i].better, numbers[i].rival[RIVAL_LINES] - 0.01));
        ASSERT(numbers[i].range.low > 0 && numbers[i].range.low < numbers[i].better && !contest_lost(&numbers[i]));
    }
    arrfree(numbers);
    field_free(&f);
    PASS();
}

/* ---- sentences ---- */

TEST a_sentence_says_who_won(void) {
    contest_number n = contest_number_new("auc", "AUC", 1);
    n.model = 0.9, n.rival[RIVAL_SHARES] = 0.5, n.rival[RIVAL_REGRESSION] = 0.8, n.best = RIVAL_REGRESSION;
    n.better = 0.1, n.range.low = 0.05, n.range.high = 0.15;
    char text[CONTEST_VERDICT_BYTES];
    mtan_config config;
    memset(&config, 0, sizeof config);
    ASSERT_STR_EQ(
        "The model beats logistic regression on summaries: its AUC is 0.9000 against 0.8000, better by 0.1000 "
        "(95 %: 0.0500 to 0.1500).",
        contest_verdict(text, &n, &config));
    n.range.low = -0.01; /* not sure: it has to say what to try */
    ASSERT(strstr(contest_verdict(text, &n, &config), "may be no better than logistic regression on summaries"));
    ASSERT(strstr(text, " Try --frequencies log") && strstr(text, ", or more records."));
    config.classify = MTAN_CLASSIFY_RECORD;
    ASSERT(strstr(contest_verdict(text, &n, &config), "--statistics mean,") && strstr(text, "--summaries 3"));
    ASSERT(strlen(text) + 64 < CONTEST_VERDICT_BYTES);
    config.frequencies = MTAN_FREQUENCIES_LOG; /* what it has already is not advised */
    config.statistics = config.summaries = 1;
    ASSERT(strstr(contest_verdict(text, &n, &config), " Try --budget"));
    ASSERT(!strstr(text, "--frequencies") && !strstr(text, "--statistics") && !strstr(text, "--summaries"));
    n.better = -0.1, n.range.low = -0.2, n.range.high = -0.05;
    ASSERT(strstr(contest_verdict(text, &n, &config), "does not beat logistic regression on summaries"));
    n.better = NAN;
    ASSERT_STR_EQ("", contest_verdict(text, &n, &config));
    ASSERT_STR_EQ("", contest_verdict(text, NULL, &config));
    ASSERT_STR_EQ("AUC 0.9000; without a model: the largest class 0.5000, logistic regression on summaries 0.8000",
                  contest_line(text, sizeof text, &n));
    PASS();
}

/* However clear the interval is: that of a handful of records is too narrow. */
TEST a_sentence_says_when_records_are_too_few(void) {
    contest_number n = contest_number_new("auc", "AUC", 1);
    char text[CONTEST_VERDICT_BYTES];
    mtan_config config;
    memset(&config, 0, sizeof config);
    n.model = 1, n.rival[RIVAL_SHARES] = 0.5, n.best = RIVAL_SHARES, n.better = n.range.low = n.range.high = 0.5;
    ASSERT(strstr(contest_verdict(text, &n, &config), "The model beats the largest class"));
    n.records = 2, n.rarest = 1;
    ASSERT_STR_EQ("2 records are too few to tell whether the model beats the largest class: its AUC is 1.0000 against "
                  "0.5000.",
                  contest_verdict(text, &n, &config));
    n.records = 100;
    ASSERT_STR_EQ("1 record of the rarer class is too few to tell whether the model beats the largest class: its AUC "
                  "is 1.0000 against 0.5000.",
                  contest_verdict(text, &n, &config));
    n.rarest = CONTEST_OF_CLASS;
    ASSERT(strstr(contest_verdict(text, &n, &config), "The model beats the largest class"));
    PASS();
}

/* Two rows of a record are not two records. */
TEST records_are_counted(void) {
    static const int32_t record[] = {4, 4, 7, 7, 9}, label[] = {0, 0, 0, 1, 1};
    ASSERT_EQ_FMT((size_t)3, contest_records(record, NULL, 5, 0), "%zu");
    ASSERT_EQ_FMT((size_t)2, contest_records(record, label, 5, 0), "%zu");
    ASSERT_EQ_FMT((size_t)2, contest_records(record, label, 5, 1), "%zu");
    ASSERT_EQ_FMT((size_t)0, contest_records(record, label, 5, 2), "%zu");
    PASS();
}

/* An option that is advised has to be there. */
TEST advice_names_options(void) {
    char name[64];
    const char *at;
    for (size_t i = 0; contest_advice_option(i); i++) {
        int found = 0;
        for (int k = 0; (at = option_name(k, name)) != NULL; k++) found |= strcmp(at, contest_advice_option(i)) == 0;
        ASSERTm(contest_advice_option(i), found);
    }
    PASS();
}

SUITE(contest_suite) {
    RUN_TEST(guessing_has_what_it_has);
    RUN_TESTp(a_regression_finds_slopes, 2);
    RUN_TESTp(a_regression_finds_slopes, 3);
    RUN_TEST(a_regression_follows_times);
    RUN_TEST(differences_are_paired);
    RUN_TEST(straight_lines_follow_a_ramp);
    RUN_TEST(a_model_is_judged_by_its_records);
    RUN_TEST(a_sentence_says_who_won);
    RUN_TEST(a_sentence_says_when_records_are_too_few);
    RUN_TEST(records_are_counted);
    RUN_TEST(advice_names_options);
}
