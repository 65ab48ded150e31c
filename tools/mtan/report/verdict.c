/* See verdict.h. */
#include "verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "../measure/contest.h"

static const char *say(char *text, const char *words) {
    snprintf(text, VERDICT_BYTES, "%s", words);
    return text;
}

static double percent(double share) {
    return floor(100 * share + 0.5);
}

/* ---- learning ---- */

/* The finite values of a curve, negated if lower ones are better: here, more is always better. */
typedef struct course {
    double *value, *epoch; /* stb_ds arrays */
    size_t n;
} course;

static course course_make(const double *epoch, const double *value, size_t epochs, int better) {
    course c = {NULL, NULL, 0};
    for (size_t i = 0; i < epochs; i++) {
        if (!isfinite(value[i]) || !isfinite(epoch[i])) continue;
        arrput(c.value, better * value[i]);
        arrput(c.epoch, epoch[i]);
    }
    c.n = arrlenu(c.value);
    return c;
}

static void course_free(course *c) {
    arrfree(c->value), arrfree(c->epoch);
}

static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

/* The scatter of one epoch, from the differences of neighbours in the later half, so that a slow trend does not count
 * as scatter. */
static double scatter(const course *c) {
    const size_t first = c->n / 2;
    double sum = 0;
    for (size_t i = first + 1; i < c->n; i++) sum += (c->value[i] - c->value[i - 1]) * (c->value[i] - c->value[i - 1]);
    return sqrt(sum / (2 * (double)(c->n - first - 1)));
}

static size_t best_window(const course *c, size_t width) {
    size_t best = 0;
    for (size_t i = 1; i + width <= c->n; i++)
        if (mean_of(c->value + i, width) > mean_of(c->value + best, width)) best = i;
    return best;
}

static size_t best_place(const course *c) {
    size_t best = 0;
    for (size_t i = 1; i < c->n; i++)
        if (c->value[i] > c->value[best]) best = i;
    return best;
}

/* Whether the training measure improved after the epoch `since`. */
static int trained_on(const double *epoch, const double *train, size_t epochs, int better, double since) {
    double before = NAN, last = NAN;
    for (size_t i = 0; train && i < epochs; i++) {
        if (isfinite(train[i]) && epoch[i] <= since) before = better * train[i];
        if (isfinite(train[i])) last = better * train[i];
    }
    return last > before;
}

typedef enum course_kind { COURSE_NONE, COURSE_SHORT, COURSE_WORSE, COURSE_IMPROVING, COURSE_LEVEL } course_kind;

/* Windows of a fifth of the epochs. The best window is chosen out of many, so it must be ahead by four standard errors
 * of a difference; two windows that are fixed beforehand must differ by two. What improves has its best epoch in the
 * last window. */
static course_kind course_judge(const course *c) {
    const size_t width = c->n / 5;
    if (c->n < 10) return c->n > 0 ? COURSE_SHORT : COURSE_NONE;
    const double error = scatter(c) * sqrt(2 / (double)width), last = mean_of(c->value + c->n - width, width);
    const double before = mean_of(c->value + c->n - 2 * width, width);
    if (mean_of(c->value + best_window(c, width), width) - last > 4 * error) return COURSE_WORSE;
    return last - before > 2 * error && best_place(c) >= c->n - width ? COURSE_IMPROVING : COURSE_LEVEL;
}

static const char *improving_words(learning_end end) {
    switch (end) {
    case END_OPEN: break;
    case END_SCHEDULE: return "Improving until the learning rate had fallen to its end.";
    case END_CHOICE: return "Improving to the end, unlike the measure that chooses the epoch.";
    }
    return "Still improving when it ended: more epochs may help.";
}

const char *verdict_learning(char *text, const double *epoch, const double *train, const double *valid, size_t epochs,
                             int better, learning_end end) {
    course c = course_make(epoch, valid, epochs, better);
    const double since = c.n > 0 ? c.epoch[best_place(&c)] : NAN;
    *text = 0;
    switch (course_judge(&c)) {
    case COURSE_NONE: break;
    case COURSE_SHORT: say(text, "Too few epochs to tell whether it still improves."); break;
    case COURSE_WORSE:
        snprintf(text, VERDICT_BYTES, "Validation got worse after epoch %.0f%s.", since,
                 trained_on(epoch, train, epochs, better, since) ? ": overfitting" : "");
        break;
    case COURSE_IMPROVING: say(text, improving_words(end)); break;
    case COURSE_LEVEL:
        say(text, end == END_SCHEDULE ? "Level at the end, where the learning rate had fallen to its end."
                                      : "Level at the end: more epochs would change little.");
    }
    course_free(&c);
    return text;
}

int verdict_improves(const double *epoch, const double *valid, size_t epochs, int better) {
    course c = course_make(epoch, valid, epochs, better);
    const int improves = course_judge(&c) == COURSE_IMPROVING;
    course_free(&c);
    return improves;
}

/* ---- classification ---- */

static const char *say_too_few(char *text, size_t rarer) {
    snprintf(text, VERDICT_BYTES, "Too few rows of a class to tell: %zu.", rarer);
    return text;
}

const char *verdict_ranking(char *text, double auc, double low, double high, size_t rarer) {
    *text = 0;
    if (!(auc >= 0 && auc <= 1)) return text;
    if (rarer < CONTEST_OF_CLASS) return say_too_few(text, rarer);
    if (low <= 0.5 && high >= 0.5) return say(text, "At chance level: the interval of the area includes 0.5.");
    if (high < 0.5) return say(text, "Worse than chance: the model ranks the classes the wrong way round.");
    snprintf(text, VERDICT_BYTES, "Of two rows of different classes, %.0f %% are ranked rightly (chance: 50 %%).",
             percent(auc));
    return text;
}

const char *verdict_precision(char *text, double average, double share, size_t rarer) {
    *text = 0;
    if (!isfinite(average) || !(share > 0)) return text;
    if (rarer < CONTEST_OF_CLASS) return say_too_few(text, rarer);
    if (average < 1.05 * share) snprintf(text, VERDICT_BYTES, "No better than guessing, which has %.3f.", share);
    else snprintf(text, VERDICT_BYTES, "%.1f times what guessing has (%.3f).", average / share, share);
    return text;
}

/* Sums over all rows of the predicted probabilities and of the outcomes. In `extreme` the difference changes its sign
 * for rows below one half, which shows probabilities that are too extreme but right on average. */
typedef struct balance {
    double n, said, happened, extreme, variance;
} balance;

static balance balance_of(const metric_bin *bins) {
    balance b = {0, 0, 0, 0, 1}; /* variance starts at 1, so that no finite number of rows is certain */
    for (int k = 0; k < METRIC_BINS; k++) {
        const double n = (double)bins[k].count, p = bins[k].confidence, happened = bins[k].accuracy;
        if (!(n > 0)) continue;
        b.n += n, b.said += n * p, b.happened += n * happened;
        b.extreme += (p > 0.5 ? 1 : -1) * n * (p - happened);
        b.variance += n * p * (1 - p);
    }
    return b;
}

static int is_known(const double fitted[3]) {
    return fitted && fitted[1] <= fitted[2];
}

/* 1: the interval lies above x, -1: below it, 0: around it, or it is not known. */
static int beyond(const double fitted[3], double x) {
    return !is_known(fitted) ? 0 : fitted[1] > x ? 1 : fitted[2] < x ? -1 : 0;
}

/* 1: too cautious, -1: too extreme. The page prints the slope and its interval, so where they are known they decide: a
 * sentence from the bins could contradict them. */
static int caution(const balance *b, double doubt, int two, const double slope[3]) {
    if (is_known(slope)) return beyond(slope, 1);
    return !two || fabs(b->extreme) <= doubt ? 0 : b->extreme > 0 ? -1 : 1;
}

const char *verdict_calibration(char *text, const metric_bin bins[METRIC_BINS], int two, const double slope[3],
                                const double intercept[3]) {
    const balance b = balance_of(bins);
    const double off = b.said - b.happened, doubt = 2 * sqrt(b.variance);
    const int surer = caution(&b, doubt, two, slope), shift = beyond(intercept, 0);
    *text = 0;
    if (!(b.n > 0) || !isfinite(off) || !isfinite(doubt)) return text;
    if (fabs(off) > doubt)
        snprintf(text, VERDICT_BYTES, "Probabilities are too %s: %.0f %% on average, and %.0f %% %s.",
                 off > 0 ? "high" : "low", percent(b.said / b.n), percent(b.happened / b.n),
                 two ? "were of class 1" : "were right");
    else if (surer < 0) say(text, "Probabilities are too extreme: the model is surer than it should be.");
    else if (surer > 0) say(text, "Probabilities are too cautious: the model could be surer.");
    else if (shift)
        snprintf(text, VERDICT_BYTES, "Probabilities are too %s: where the model says 50 %%, %.0f %% were of class 1.",
                 shift > 0 ? "low" : "high", percent(1 / (1 + exp(-intercept[0]))));
    else say(text, "Probabilities agree with what happened, as far as these rows can tell.");
    return text;
}

/* ---- a number ---- */

const char *verdict_coverage(char *text, double inside, size_t n, double promised) {
    const double doubt = 2 * sqrt(promised * (1 - promised) / (double)n);
    *text = 0;
    if (n == 0 || !isfinite(inside)) return text;
    snprintf(text, VERDICT_BYTES, "%.0f %% of the numbers lie in their intervals, which promise %.0f %%%s.",
             percent(inside), percent(promised),
             inside > promised + doubt   ? ": they are too wide"
             : inside < promised - doubt ? ": they are too narrow"
                                         : "");
    return text;
}

const char *verdict_explained(char *text, double r2) {
    *text = 0;
    if (!isfinite(r2)) return text;
    if (r2 <= 0) return say(text, "No better than the mean of these numbers.");
    snprintf(text, VERDICT_BYTES, "The predictions explain %.0f %% of the variance.", percent(r2));
    return text;
}

/* Regresses the truth on the prediction: the offset should be 0 and the slope 1. */
const char *verdict_residuals(char *text, const double *predicted, const double *truth, size_t n) {
    double bias = 0, mean = 0, spread = 0, together = 0, left = 0, variance = 0;
    *text = 0;
    if (n < 10) return text;
    for (size_t i = 0; i < n; i++) bias += (predicted[i] - truth[i]) / (double)n, mean += predicted[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double x = predicted[i] - mean, e = predicted[i] - truth[i] - bias;
        spread += x * x, together += x * (x - e), variance += e * e / (double)(n - 1);
    }
    const double slope =
        spread > 1e-12 * variance * (double)n ? together / spread : 1; /* a constant prediction has no slope */
    for (size_t i = 0; i < n; i++) {
        const double e = truth[i] - (mean - bias) - slope * (predicted[i] - mean);
        left += e * e / (double)(n - 2);
    }
    const double doubt = 2 * sqrt(left / spread);
    if (!isfinite(bias) || !isfinite(variance) || !isfinite(slope)) return text;
    if (fabs(bias) > 2 * sqrt(variance / (double)n))
        snprintf(text, VERDICT_BYTES, "Predictions are too %s: by %.3g on average.", bias > 0 ? "high" : "low",
                 fabs(bias));
    else if (slope < 1 - doubt) say(text, "Predictions are too extreme: the truth lies nearer to the mean.");
    else if (slope > 1 + doubt) say(text, "Predictions are too cautious: the truth lies further from the mean.");
    else say(text, "No systematic error, as far as these rows can tell.");
    return text;
}

/* ---- interpolation ---- */

/* Linear interpolation between points in order of time, constant outside. */
static double lines_at(const report_points *p, double x) {
    size_t after = 0;
    while (after < p->n && p->x[after] < x) after++;
    if (after == p->n) return p->y[p->n - 1];
    if (after == 0 || p->x[after] <= x) return p->y[after];
    return p->y[after - 1] + (p->y[after] - p->y[after - 1]) * (x - p->x[after - 1]) / (p->x[after] - p->x[after - 1]);
}

static double squared_error(const report_points *curve, const report_points *truth) {
    double sum = 0;
    for (size_t i = 0; i < truth->n; i++) {
        const double difference = lines_at(curve, truth->x[i]) - truth->y[i];
        sum += difference * difference;
    }
    return sum;
}

/* "40 % below that of straight lines"; a factor from twice the error on. */
static void compare(char *words, size_t size, double model, double lines) {
    const double ratio = model / lines;
    if (ratio > 0.95 && ratio < 1.05) snprintf(words, size, "about that of straight lines");
    else if (ratio < 1) snprintf(words, size, "%.0f %% below that of straight lines", percent(1 - ratio));
    else if (ratio < 2)
        snprintf(words, size, "%.0f %% above that of straight lines, which are better here", percent(ratio - 1));
    else snprintf(words, size, "%.3g times that of straight lines, which are better here", ratio);
}

const char *verdict_panel(char *text, const report_panel *p) {
    const report_points *asked = p->held.n > 0 ? &p->held : &p->truth;
    char words[VERDICT_BYTES / 2];
    double model, lines;
    *text = 0;
    if (p->mean.n == 0 || asked->n == 0) return text;
    if (p->seen.n == 0) return say(text, "Nothing of this channel was shown: the curve rests on the others.");
    model = squared_error(&p->mean, asked), lines = squared_error(&p->seen, asked);
    if (!(lines > 0) || !isfinite(model / lines)) return text;
    compare(words, sizeof words, model, lines);
    snprintf(text, VERDICT_BYTES, "%s: squared error %s.", asked == &p->held ? "Held out" : "Against the true curve",
             words);
    return text;
}

const char *verdict_errors(char *text, const report_points *model, const report_points *lines) {
    char words[VERDICT_BYTES / 2];
    double ours = 0, theirs = 0;
    *text = 0;
    for (size_t i = 0; i < model->n && i < lines->n; i++)
        if (isfinite(model->y[i]) && isfinite(lines->y[i])) ours += model->y[i], theirs += lines->y[i];
    if (!(theirs > 0) || !isfinite(ours / theirs)) return text;
    compare(words, sizeof words, ours, theirs);
    snprintf(text, VERDICT_BYTES, "On held-out points the model's error is %s.", words);
    return text;
}

/* ---- attention ---- */

static const double STANDS_OUT = 1.5; /* in units of an even share */
static const double NEAR = 0.1;       /* share of the time span of the picture */

static double span_of(const report_attention *a) {
    const double first = fmin(a->time[0], a->reference[0]);
    return fmax(a->time[a->times - 1], a->reference[a->references - 1]) - first;
}

double verdict_peak(const report_attention *a) {
    double most = 0, sum = 0;
    for (size_t i = 0; i < a->references * a->times; i++) most = fmax(most, a->weight[i]), sum += a->weight[i];
    return sum > 0 && isfinite(sum) ? most * (double)(a->references * a->times) / sum : NAN;
}

const char *verdict_uniform(char *text, double peak) {
    *text = 0;
    if (peak < STANDS_OUT)
        snprintf(
            text, VERDICT_BYTES,
            "Attention is almost uniform: the model sees an average (the largest weight is %.2f of an even share).",
            peak);
    return text;
}

const char *verdict_attention(char *text, const report_attention *a) {
    double sum = 0, near = 0, even = 0, reach;
    *text = 0;
    if (a->times == 0 || a->references == 0) return text;
    if (a->times == 1) return say(text, "One observation takes all of the attention.");
    reach = NEAR * span_of(a);
    if (isnan(verdict_peak(a)) || !isfinite(reach) || *verdict_uniform(text, verdict_peak(a))) return text;
    for (size_t i = 0; i < a->references * a->times; i++) {
        const int close = fabs(a->time[i % a->times] - a->reference[i / a->times]) <= reach;
        sum += a->weight[i];
        if (close) near += a->weight[i], even += 1;
    }
    snprintf(text, VERDICT_BYTES,
             "%.0f %% of a point's attention lies within a tenth of the record around it (spread evenly: %.0f %%).",
             percent(near / sum), percent(even / (double)(a->references * a->times)));
    return text;
}
