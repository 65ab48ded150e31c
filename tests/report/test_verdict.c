/* What the report's pictures are said to show: every sentence for data made to deserve it, and none where there is no ground. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "../../tools/mtan/report/verdict.h"

enum { EPOCHS = 40, TIMES = 20, REFERENCES = 30 };

/* A bend after epoch 16, scatter of 0.01: `early` and `late` are the slopes before and after. */
static void bend(double epoch[EPOCHS], double value[EPOCHS], double early, double late) {
    for (int i = 0; i < EPOCHS; i++) {
        epoch[i] = i + 1;
        value[i] = 1 + early * (i < 15 ? i : 15) + late * (i < 15 ? 0 : i - 15) + (i % 2 ? 0.01 : -0.01);
    }
}

static int says(const char *text, const char *words) {
    if (strstr(text, words)) return 1;
    printf("  BAD: \"%s\"\n  expected: %s\n", text, words);
    return 0;
}

TEST learning_is_judged(void) {
    double epoch[EPOCHS], train[EPOCHS], valid[EPOCHS];
    char text[VERDICT_BYTES];
    bend(epoch, train, -0.02, -0.01), bend(epoch, valid, -0.02, 0.01);
    ASSERT(
        says(verdict_learning(text, epoch, train, valid, EPOCHS, -1, END_OPEN), "worse after epoch 17: overfitting"));
    ASSERT(says(verdict_learning(text, epoch, NULL, valid, EPOCHS, -1, END_OPEN), "worse after epoch 17."));
    bend(epoch, train, -0.02, 0.02);
    ASSERT(says(verdict_learning(text, epoch, train, valid, EPOCHS, -1, END_OPEN), "worse after epoch 17."));
    bend(epoch, valid, -0.02, -0.01);
    ASSERT(says(verdict_learning(text, epoch, train, valid, EPOCHS, -1, END_OPEN), "Still improving"));
    bend(epoch, valid, -0.02, 0);
    ASSERT(says(verdict_learning(text, epoch, train, valid, EPOCHS, -1, END_OPEN), "Level at the end"));
    PASS();
}

/* The same courses upside down, for measures of which more is better; and gaps, where nothing was validated. */
TEST learning_knows_the_direction_and_gaps(void) {
    double epoch[EPOCHS], valid[EPOCHS];
    char text[VERDICT_BYTES];
    bend(epoch, valid, 0.02, 0.01);
    ASSERT(says(verdict_learning(text, epoch, NULL, valid, EPOCHS, 1, END_OPEN), "Still improving"));
    for (int i = 0; i < EPOCHS; i++)
        if (i % 3) valid[i] = NAN;
    ASSERT(says(verdict_learning(text, epoch, NULL, valid, EPOCHS, 1, END_OPEN), "Still improving"));
    ASSERT(says(verdict_learning(text, epoch, NULL, valid, 9, 1, END_OPEN), "Too few epochs"));
    for (int i = 0; i < EPOCHS; i++) valid[i] = NAN;
    ASSERT_STR_EQ("", verdict_learning(text, epoch, NULL, valid, EPOCHS, 1, END_OPEN));
    PASS();
}

/* More epochs are promised a gain only where they could go on as the last ones did. */
TEST learning_is_judged_by_its_end(void) {
    double epoch[EPOCHS], valid[EPOCHS];
    char text[VERDICT_BYTES];
    bend(epoch, valid, 0.02, 0.01);
    ASSERT(verdict_improves(epoch, valid, EPOCHS, 1));
    ASSERT_STR_EQ("Improving until the learning rate had fallen to its end.",
                  verdict_learning(text, epoch, NULL, valid, EPOCHS, 1, END_SCHEDULE));
    ASSERT_STR_EQ("Improving to the end, unlike the measure that chooses the epoch.",
                  verdict_learning(text, epoch, NULL, valid, EPOCHS, 1, END_CHOICE));
    valid[7] = valid[EPOCHS - 1] + 0.01; /* the best epoch, which the last ones come near again */
    ASSERT(!verdict_improves(epoch, valid, EPOCHS, 1));
    ASSERT(says(verdict_learning(text, epoch, NULL, valid, EPOCHS, 1, END_OPEN), "Level at the end: more epochs"));
    bend(epoch, valid, 0.02, 0);
    ASSERT_STR_EQ("Level at the end, where the learning rate had fallen to its end.",
                  verdict_learning(text, epoch, NULL, valid, EPOCHS, 1, END_SCHEDULE));
    bend(epoch, valid, 0.02, -0.01);
    ASSERT(says(verdict_learning(text, epoch, NULL, valid, EPOCHS, 1, END_SCHEDULE), "worse after epoch"));
    for (int i = 0; i < EPOCHS; i++) valid[i] = NAN;
    ASSERT(!verdict_improves(epoch, valid, EPOCHS, 1));
    PASS();
}

TEST ranking_is_judged_by_its_interval(void) {
    char text[VERDICT_BYTES];
    ASSERT(says(verdict_ranking(text, 0.56, 0.49, 0.63, 50), "At chance level"));
    ASSERT(says(verdict_ranking(text, 0.40, 0.33, 0.47, 50), "Worse than chance"));
    ASSERT(says(verdict_ranking(text, 0.92, 0.89, 0.94, 50), "92 % are ranked rightly"));
    ASSERT(says(verdict_ranking(text, 0.92, NAN, NAN, 50), "92 % are ranked rightly"));
    ASSERT_STR_EQ("", verdict_ranking(text, NAN, NAN, NAN, 50));
    ASSERT_STR_EQ("Too few rows of a class to tell: 1.", verdict_ranking(text, 1, 1, 1, 1));
    ASSERT_STR_EQ("Too few rows of a class to tell: 4.", verdict_precision(text, 1, 0.5, 4));
    ASSERT(says(verdict_precision(text, 0.5, 0.1, 50), "5.0 times what guessing has (0.100)"));
    ASSERT(says(verdict_precision(text, 0.1, 0.1, 50), "No better than guessing"));
    ASSERT_STR_EQ("", verdict_precision(text, NAN, 0.1, 50));
    PASS();
}

/* Every bin has `count` rows; what happened is `slope` times the distance from one half, and `shift` more. */
static const char *calibrated(char *text, int64_t count, double slope, double shift, int two) {
    metric_bin bins[METRIC_BINS];
    for (int k = 0; k < METRIC_BINS; k++) {
        const double p = (k + 0.5) / METRIC_BINS;
        bins[k] = (metric_bin){p, 0.5 + slope * (p - 0.5) + shift, count};
    }
    return verdict_calibration(text, bins, two, NULL, NULL);
}

/* The bins agree; the recalibration has this slope and this intercept, 0.2 of the slope and 0.3 to either side. */
static const char *recalibrated(char *text, double slope, double intercept) {
    const double fit[2][3] = {{slope, slope - 0.2, slope + 0.2}, {intercept, intercept - 0.3, intercept + 0.3}};
    metric_bin bins[METRIC_BINS];
    for (int k = 0; k < METRIC_BINS; k++) {
        const double p = (k + 0.5) / METRIC_BINS;
        bins[k] = (metric_bin){p, p, 100};
    }
    return verdict_calibration(text, bins, 1, fit[0], fit[1]);
}

TEST calibration_is_judged(void) {
    char text[VERDICT_BYTES];
    ASSERT(says(calibrated(text, 100, 1, 0, 1), "agree with what happened"));
    ASSERT(says(calibrated(text, 100, 1, -0.1, 1), "too high: 50 % on average, and 40 % were of class 1"));
    ASSERT(says(calibrated(text, 100, 1, 0.1, 0), "too low: 50 % on average, and 60 % were right"));
    ASSERT(says(calibrated(text, 100, 0.5, 0, 1), "too extreme"));
    ASSERT(says(calibrated(text, 100, 1.5, 0, 1), "too cautious"));
    ASSERT(says(calibrated(text, 1, 1, -0.1, 1), "agree with what happened")); /* 15 rows prove nothing */
    ASSERT_STR_EQ("", calibrated(text, 0, 1, 0, 1));
    PASS();
}

/* The page prints slope and intercept with their intervals, which the sentence must not contradict. */
TEST calibration_is_judged_by_its_fit(void) {
    const double one[3] = {1, 0.8, 1.2}, zero[3] = {0, -0.2, 0.2}, none[3] = {NAN, NAN, NAN};
    char text[VERDICT_BYTES];
    metric_bin cautious[METRIC_BINS];
    ASSERT(says(recalibrated(text, 1.1, 0.2), "agree with what happened"));
    ASSERT(says(recalibrated(text, 1.79, 1.53), "too cautious"));
    ASSERT(says(recalibrated(text, 0.6, 0), "too extreme"));
    ASSERT(says(recalibrated(text, 1, 0.5), "too low: where the model says 50 %, 62 % were of class 1"));
    ASSERT(says(recalibrated(text, 1, -0.5), "too high: where the model says 50 %, 38 % were of class 1"));
    for (int k = 0; k < METRIC_BINS; k++) {
        const double p = (k + 0.5) / METRIC_BINS;
        cautious[k] = (metric_bin){p, 0.5 + 1.5 * (p - 0.5), 100};
    }
    ASSERT(says(verdict_calibration(text, cautious, 1, one, zero), "agree with what happened")); /* as the fit says */
    ASSERT(says(verdict_calibration(text, cautious, 1, none, none), "too cautious"));
    PASS();
}

TEST curves_are_compared_with_straight_lines(void) {
    const double seen_x[] = {0, 10}, seen_y[] = {0, 0}, held_x[] = {5, 20}, held_y[] = {1, 1};
    const double grid[] = {0, 5, 20}, near[] = {0, 0.5, 0.5}, far[] = {0, 3, 3}, same[] = {0, 0, 0};
    report_panel p = {"r", "c", {seen_x, seen_y, 2}, {held_x, held_y, 2}, {0}, {grid, near, 3}, NULL};
    char text[VERDICT_BYTES];
    ASSERT(says(verdict_panel(text, &p), "Held out: squared error 75 % below that of straight lines."));
    p.mean.y = far;
    ASSERT(says(verdict_panel(text, &p), "4 times that of straight lines, which are better here"));
    p.mean.y = same;
    ASSERT(says(verdict_panel(text, &p), "about that of straight lines"));
    p.truth = p.held, p.held.n = 0;
    ASSERT(says(verdict_panel(text, &p), "Against the true curve: "));
    p.seen.n = 0;
    ASSERT(says(verdict_panel(text, &p), "Nothing of this channel was shown"));
    p.truth.n = 0;
    ASSERT_STR_EQ("", verdict_panel(text, &p));
    PASS();
}

TEST numbers_are_judged(void) {
    enum { N = 40 };
    double truth[N], said[N];
    char text[VERDICT_BYTES];
    ASSERT_STR_EQ("80 % of the numbers lie in their intervals, which promise 80 %.",
                  verdict_coverage(text, 0.8, 100, 0.8));
    ASSERT(says(verdict_coverage(text, 0.97, 100, 0.8), ": they are too wide."));
    ASSERT(says(verdict_coverage(text, 0.5, 100, 0.8), ": they are too narrow."));
    ASSERT_STR_EQ("", verdict_coverage(text, NAN, 0, 0.8));
    ASSERT(says(verdict_explained(text, 0.813), "explain 81 % of the variance"));
    ASSERT(says(verdict_explained(text, -0.1), "No better than the mean"));
    for (int i = 0; i < N; i++) truth[i] = i, said[i] = i + (i % 2 ? 1 : -1);
    ASSERT(says(verdict_residuals(text, said, truth, N), "No systematic error"));
    for (int i = 0; i < N; i++) said[i] += 3;
    ASSERT_STR_EQ("Predictions are too high: by 3 on average.", verdict_residuals(text, said, truth, N));
    for (int i = 0; i < N; i++) said[i] = 19.5 + 0.5 * (i - 19.5) + (i % 2 ? 1 : -1);
    ASSERT(says(verdict_residuals(text, said, truth, N), "too cautious"));
    for (int i = 0; i < N; i++) said[i] = 19.5 + 2 * (i - 19.5) + (i % 2 ? 1 : -1);
    ASSERT(says(verdict_residuals(text, said, truth, N), "too extreme"));
    ASSERT_STR_EQ("", verdict_residuals(text, said, truth, 9));
    for (int i = 0; i < N; i++) said[i] = 19.5; /* no line */
    ASSERT(says(verdict_residuals(text, said, truth, N), "No systematic error"));
    said[3] = NAN;
    ASSERT_STR_EQ("", verdict_residuals(text, said, truth, N));
    PASS();
}

TEST errors_are_compared_with_straight_lines(void) {
    const double x[] = {50, 90}, ours[] = {0.6, 0.3}, lines[] = {0.8, 0.4}, none[] = {NAN, NAN};
    report_points model = {x, ours, 2}, theirs = {x, lines, 2};
    char text[VERDICT_BYTES];
    ASSERT(says(verdict_errors(text, &model, &theirs), "25 % below that of straight lines."));
    ASSERT(says(verdict_errors(text, &theirs, &model), "33 % above that of straight lines"));
    theirs.y = none;
    ASSERT_STR_EQ("", verdict_errors(text, &model, &theirs));
    theirs.n = 0;
    ASSERT_STR_EQ("", verdict_errors(text, &model, &theirs));
    PASS();
}

/* Softmax of -sharpness * distance. */
static const char *attentive(char *text, double sharpness, size_t times) {
    double time[TIMES], reference[REFERENCES], weight[REFERENCES * TIMES];
    const report_attention a = {"r", "c", time, reference, weight, times, REFERENCES};
    for (size_t i = 0; i < times; i++) time[i] = (double)i / (TIMES - 1);
    for (size_t k = 0; k < REFERENCES; k++) {
        double sum = 0;
        reference[k] = (double)k / (REFERENCES - 1);
        for (size_t i = 0; i < times; i++)
            sum += weight[k * times + i] = exp(-sharpness * fabs(time[i] - reference[k]));
        for (size_t i = 0; i < times; i++) weight[k * times + i] /= sum;
    }
    return verdict_attention(text, &a);
}

TEST attention_is_judged(void) {
    char text[VERDICT_BYTES];
    ASSERT(says(attentive(text, 0, TIMES), "almost uniform: the model sees an average"));
    ASSERT(says(attentive(text, 0.1, TIMES), "almost uniform"));
    ASSERT(says(attentive(text, 1000, TIMES), "100 % of a point's attention lies within a tenth of the record"));
    ASSERT(says(attentive(text, -300, TIMES), "0 % of a point's attention lies within a tenth of the record"));
    ASSERT(says(attentive(text, 1, 1), "One observation"));
    ASSERT_STR_EQ("", attentive(text, 1, 0));
    ASSERT_STR_EQ("", attentive(text, NAN, TIMES));
    PASS();
}

SUITE(verdict_suite) {
    RUN_TEST(learning_is_judged);
    RUN_TEST(learning_knows_the_direction_and_gaps);
    RUN_TEST(learning_is_judged_by_its_end);
    RUN_TEST(ranking_is_judged_by_its_interval);
    RUN_TEST(calibration_is_judged);
    RUN_TEST(calibration_is_judged_by_its_fit);
    RUN_TEST(numbers_are_judged);
    RUN_TEST(curves_are_compared_with_straight_lines);
    RUN_TEST(errors_are_compared_with_straight_lines);
    RUN_TEST(attention_is_judged);
}
