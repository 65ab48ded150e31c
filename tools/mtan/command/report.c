/* mtan report: a run's model, log and test records as one HTML page. This file collects plain arrays for report_write
 * (report.h), in the data's own units. It decides what is shown; report_page.c decides how. The page is written
 * atomically. */
#define _POSIX_C_SOURCE 200809L
#include "../report/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../data/text_writer.h"
#include "commands.h"
#include "../measure/labels.h"
#include "../measure/metrics.h"
#include "../model/plan.h"
#include "../base/files.h"
#include "../report/card.h"
#include "../report/epoch_choice.h"
#include "../report/contest_text.h"
#include "../report/report_tables.h"
#include "../report/sketch.h"
#include "../report/html.h"
#include "../report/stories.h"
#include "../measure/decisions.h"
#include "eval_groups.h"
#include "../options/settings.h"
#include "../model/shared_options.h"
#include "../run/curve_samples.h"
#include "../model/session.h"
#include "../model/data_sets.h"

enum {
    COLUMNS_MOST = 64, /* columns of a log */
    RECORDS_SHOWN = 3,
    CHANNELS_SHOWN = 3,
    RARE = 3, /* a channel with fewer observations shows nothing of attention */
    DRAWS = 1000,
    PATH_BYTES = 4096
};

/* Everything that the page points to, freed together. */
typedef struct collection {
    report_data page;
    band_table bands;
    void **owned;
    report_number *numbers;
    report_curve *curves;
    report_panel *panels;
    report_attention *attention;
    report_table *tables;
    stories stories;
    epoch_choice choice;
    session *s;
    const options *o;
} collection;

/* ---- memory ---- */

static void *keep(collection *c, void *block) {
    arrput(c->owned, block);
    return block;
}

static double *reals(collection *c, size_t n) {
    return keep(c, tool_calloc(n + 1, sizeof(double)));
}

static char *text(collection *c, const char *format, ...) {
    char buffer[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return keep(c, tool_text(buffer));
}

static void collection_free(collection *c) {
    for (size_t i = 0; i < arrlenu(c->tables); i++) report_table_free(&c->tables[i]);
    for (size_t i = 0; i < arrlenu(c->owned); i++) free(c->owned[i]);
    arrfree(c->owned), arrfree(c->numbers), arrfree(c->curves), arrfree(c->panels), arrfree(c->attention);
    arrfree(c->tables);
    stories_free(&c->stories);
}

/* ---- the log ---- */

/* A table of numbers with named columns, like log.csv; an empty or non-numeric field is NaN. */
typedef struct log_table {
    char *names[COLUMNS_MOST];
    double *column[COLUMNS_MOST]; /* stb_ds arrays */
    size_t columns, rows;
} log_table;

/* Returns the next field of a line, zero-terminated, and moves on to the one after. NULL past the last. */
static char *next_field(char **line) {
    char *field = *line, *comma;
    if (!field) return NULL;
    comma = strchr(field, ',');
    if (comma) *comma = 0;
    *line = comma ? comma + 1 : NULL;
    return field;
}

static double number_of(const char *field) {
    char *end;
    const double value = field && *field ? strtod(field, &end) : NAN;
    return field && *field && *end == 0 ? value : NAN;
}

static void log_read(log_table *t, char *content) {
    char *rest = content, *line, *field;
    memset(t, 0, sizeof *t);
    for (int header = 1; rest && *rest; header = 0) {
        char *end = strchr(rest, '\n');
        line = rest, rest = end ? end + 1 : NULL;
        if (end) *end = 0;
        line[strcspn(line, "\r")] = 0;
        if (!header && !*line) continue;
        for (size_t i = 0; header && i < COLUMNS_MOST && (field = next_field(&line)); i++)
            t->names[t->columns++] = field;
        for (size_t i = 0; !header && i < t->columns; i++) arrput(t->column[i], number_of(next_field(&line)));
        t->rows += !header;
    }
}

static const double *log_column(const log_table *t, const char *name) {
    for (size_t i = 0; i < t->columns; i++)
        if (strcmp(t->names[i], name) == 0) return t->column[i];
    return NULL;
}

/* Columns are drawn together by the kind of model: a bound has another scale than the validated loss. */
enum { ENCODER = 1, FULL = 2, INTERPOLATION = 4 };
static const struct {
    const char *column, *plot, *name;
    int kinds, better; /* better: as in report_curve */
} drawn[] = {{"train_loss", "Loss", "training", ENCODER, 0},
             {"val_loss", "Loss", "validation", ENCODER, -1},
             {"train_loss", "Training loss", "training", FULL | INTERPOLATION, 0},
             {"train_ce", "Cross-entropy", "training", FULL, 0},
             {"val_loss", "Cross-entropy", "validation", FULL, -1},
             {"val_auc", "Validation AUC", "validation", ENCODER | FULL, 1},
             {"val_acc", "Validation accuracy", "validation", ENCODER | FULL, 1},
             {"val_rmse", "Validation RMSE, in standard deviations", "validation", ENCODER | FULL, -1},
             {"val_loss", "Validation error", "all", INTERPOLATION, -1},
             {"val_mse", "Validation error", NULL, INTERPOLATION, -1},
             {"seconds", "Seconds per epoch", "training", ENCODER | INTERPOLATION, 0}};

static int model_kind(const mtan_config *m) {
    return m->kind == MTAN_ENC ? ENCODER : m->classify == MTAN_CLASSIFY_NONE ? INTERPOLATION : FULL;
}

/* mtan_kl_anneal leaves the KL term out of the first ten epochs. */
static const char *curve_remark(const mtan_config *m, const char *plot, size_t epochs) {
    if (strcmp(plot, "Training loss") != 0 || !m->kl_anneal || epochs <= 10) return NULL;
    return "The loss includes a KL term; its weight grows from epoch 11 on, so that the loss may rise.";
}

static int any_finite(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) return 1;
    return 0;
}

static const double *copy(collection *c, const double *from, size_t n) {
    double *to = reals(c, n);
    if (n) memcpy(to, from, n * sizeof *to);
    return to;
}

/* Which epoch the model is of. The loss chooses where validation has no AUC. */
static void collect_choice(collection *c, const log_table *t) {
    const double *loss = log_column(t, "val_loss"), *auc = log_column(t, "val_auc"), last = c->page.epoch[t->rows - 1];
    char words[CHOICE_BYTES];
    if (!loss || !any_finite(loss, t->rows)) return;
    if (c->choice.by == SELECT_AUC && auc && !any_finite(auc, t->rows)) c->choice.by = SELECT_LOSS;
    c->page.best_epoch = c->choice.best, c->page.schedule_ended = choice_schedule_ended(&c->choice, last);
    if (choice_sentence(words, &c->choice, &c->s->bundle.model.config, last)) c->page.chosen = text(c, "%s", words);
}

static void collect_curves(collection *c, const log_table *t) {
    const mtan_config *m = &c->s->bundle.model.config;
    const char *by = choice_column(&c->choice);
    for (size_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++) {
        const double *value = log_column(t, drawn[i].column);
        if (!(drawn[i].kinds & model_kind(m)) || !value || !any_finite(value, t->rows)) continue;
        report_curve curve = {.plot = drawn[i].plot, .name = drawn[i].name, .better = drawn[i].better};
        curve.value = copy(c, value, t->rows), curve.remark = curve_remark(m, drawn[i].plot, t->rows);
        curve.chooses = by && strcmp(drawn[i].column, by) == 0;
        if (strcmp(drawn[i].column, "val_mse") == 0) curve.name = c->s->source.observed < 1 ? "held out" : "true curve";
        arrput(c->curves, curve);
    }
}

/* A missing log is fine; an unreadable one is a failure. */
static int collect_log(collection *c, const char *path) {
    const double *epoch;
    char error[512], *content;
    size_t bytes;
    log_table t;
    const int there = file_exists(path, error);
    if (there == 0) return note("%s: not there, no learning curves", path), 1;
    if (there < 0 || !(content = file_read(path, &bytes, error))) return complain("%s", error), 0;
    log_read(&t, content);
    epoch = log_column(&t, "epoch");
    if (!epoch) note("%s: no column `epoch`, no learning curves", path);
    else if (t.rows > 0) {
        c->page.epoch = copy(c, epoch, t.rows), c->page.epochs = t.rows;
        collect_choice(c, &t), collect_curves(c, &t);
    }
    for (size_t i = 0; i < t.columns; i++) arrfree(t.column[i]);
    free(content);
    return 1;
}

/* ---- classification ---- */

static void add_number(collection *c, const char *name, double value, interval range, const char *remark,
                       const char *baseline) {
    report_number n = {name, value, range.low, range.high, remark, baseline};
    arrput(c->numbers, n);
}

/* The baselines, a line each, and by how much the model is better than the best. NULL: no baseline has the metric. */
static const char *rivals_text(collection *c, const contest_number *numbers, const char *key) {
    const contest_number *n = NULL;
    char all[512] = "", a[32], b[32];
    for (size_t i = 0; i < arrlenu(numbers); i++)
        if (strcmp(numbers[i].key, key) == 0) n = &numbers[i];
    if (!n || n->best == RIVALS) return NULL;
    const int decimals = html_decimals(n->model, 3);
    for (int i = 0; i < RIVALS; i++)
        if (isfinite(n->rival[i]))
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s: %s\n", rival_title((rival_name)i),
                     html_fixed(a, n->rival[i], decimals));
    snprintf(all + strlen(all), sizeof all - strlen(all), "better by %s", html_fixed(a, n->better, decimals));
    if (isnan(n->range.low)) return text(c, "%s", all);
    return text(c, "%s (%s to %s)", all, html_fixed(a, n->range.low, decimals), html_fixed(b, n->range.high, decimals));
}

/* Sets the sentence at the top of the page. */
static void say_verdict(collection *c, const contest_number *headline) {
    char words[CONTEST_VERDICT_BYTES];
    c->page.verdict = text(c, "%s", contest_verdict(words, headline, &c->s->bundle.model.config));
}

/* Metrics with intervals, for which the bootstrap draws the times of one record together. */
static void collect_metrics(collection *c, const predictions *p) {
    const int32_t draws = (int32_t)option_integer(c->o, "bootstrap", DRAWS);
    metric_query q = {metric_table_new(p->p, p->classes == 2 ? p->score : NULL, p->label, p->rows, p->classes),
                      METRIC_AUC, NULL};
    const session *s = c->s;
    class_rivals rivals;
    contest_number *numbers;
    class_rivals_make(&rivals, &s->data, s->split.part[SPLIT_TRAIN], s->split.part[SPLIT_VALID], s->positions);
    numbers = contest_classes(&rivals, p, draws);
    say_verdict(c, contest_headline(numbers, p->classes));
    for (int i = 0; i < METRICS; i++) {
        q.name = (metric_name)i;
        if (draws > 0) progress("resampling: %s", metric_title(q.name));
        const interval range = metric_interval(&q, p->rows, p->record, draws);
        if (i == METRIC_AUC) c->page.auc_low = range.low, c->page.auc_high = range.high;
        add_number(c, metric_title(q.name), metric_drawn(&q, NULL, p->rows), range,
                   p->classes > 2 && i <= METRIC_AUPRC ? "mean over the classes" : NULL,
                   rivals_text(c, numbers, metric_key(q.name)));
    }
    progress_end();
    arrfree(numbers), class_rivals_free(&rivals);
    metric_table_free(q.table);
}

/* Logistic recalibration of the positive class. */
static void collect_calibration(collection *c, const predictions *p) {
    const int32_t positive = c->s->bundle.prep.positive >= 0 ? c->s->bundle.prep.positive : 1;
    double *of = reals(c, p->rows);
    int32_t *is = keep(c, tool_calloc(p->rows, sizeof *is));
    recalibration r;
    for (size_t i = 0; i < p->rows; i++) of[i] = p->p[2 * i + (size_t)positive], is[i] = p->label[i] == positive;
    r = recalibration_fit(of, is, p->rows, p->record, (int32_t)option_integer(c->o, "bootstrap", DRAWS));
    c->page.positive = positive;
    c->page.slope[0] = r.slope, c->page.slope[1] = r.slope_range.low, c->page.slope[2] = r.slope_range.high;
    c->page.intercept[0] = r.intercept;
    c->page.intercept[1] = r.intercept_range.low, c->page.intercept[2] = r.intercept_range.high;
}

/* --by: a table of the headline metric by group. */
static int collect_groups(collection *c, worth w) {
    const int told = worth_headline(&w);
    record_column column;
    subgroup *groups;
    report_pair *pairs = NULL;
    const int good = option_groups(&column, &groups, c->s, c->o, &w, (int32_t)option_integer(c->o, "bootstrap", DRAWS));
    for (size_t i = 0; i < arrlenu(groups); i++) {
        const subgroup *g = &groups[i];
        char range[64] = "";
        if (!isnan(g->range[told].low))
            snprintf(range, sizeof range, " (%.3f to %.3f)", g->range[told].low, g->range[told].high);
        report_pair_add(&pairs, g->name, "%.3f%s, %zu rows", g->value[told], range, g->rows);
    }
    if (pairs)
        arrput(c->tables,
               report_table_of(text(c, "%s by %.80s", task_metric_title(w.task, told), option_text(c->o, "by", "")),
                               pairs));
    arrfree(groups), record_column_free(&column), worth_free(&w);
    return good;
}

/* ---- numbers and labels ---- */

static void collect_number(collection *c, const number_predictions *p, const contest_number *rivals, int32_t draws) {
    const size_t O = (size_t)p->outputs;
    double *predicted = reals(c, p->rows), *low = reals(c, p->rows), *high = reals(c, p->rows);
    for (size_t i = 0; i < p->rows; i++)
        predicted[i] = numbers_middle(p, i), low[i] = p->p[i * O], high[i] = p->p[i * O + O - 1];
    c->page.n_predicted = p->rows, c->page.predicted = predicted, c->page.truth = copy(c, p->y, p->rows);
    if (O == 3) c->page.low = low, c->page.high = high, c->page.interval = c->s->bundle.model.config.interval;
    for (int i = 0; i < NUMBER_METRICS; i++) {
        number_query q = {p, (number_metric)i, NULL, NULL};
        interval range = {NAN, NAN};
        if (q.name == NUMBER_COVERAGE && O != 3) continue;
        if (draws > 0) range = metric_bootstrap(number_drawn, &q, p->rows, p->record, draws, 0);
        add_number(c, number_metric_title(q.name), number_drawn(&q, NULL, p->rows), range,
                   q.name == NUMBER_COVERAGE ? "share of the numbers" : NULL,
                   rivals_text(c, rivals, number_metric_key(q.name)));
    }
}

static report_label label_of(collection *c, const label_tables *t, const number_predictions *p, int32_t k,
                             int32_t draws) {
    double *x = reals(c, p->rows + 1), *y = reals(c, p->rows + 1), *score = reals(c, p->rows);
    report_label l = {.name = c->s->data.classes[k], .known = t->known[k], .share = t->mean[k]};
    interval range;
    for (size_t i = 0; i < p->rows; i++) score[i] = p->p[i * (size_t)p->outputs + (size_t)k];
    l.roc = (report_points){x, y, metric_roc(x, y, score, t->truth + (size_t)k * p->rows, p->rows)};
    l.auc = label_measure(t, p, METRIC_AUC, k, draws, &range), l.auc_low = range.low, l.auc_high = range.high;
    l.average = label_measure(t, p, METRIC_AUPRC, k, draws, &range);
    l.average_low = range.low, l.average_high = range.high;
    return l;
}

static void collect_labels(collection *c, const number_predictions *p, const contest_number *rivals, int32_t draws) {
    label_tables t = label_tables_make(p->p, p->y, p->rows, p->outputs);
    report_label *labels = keep(c, tool_calloc((size_t)t.labels, sizeof *labels));
    for (int i = 0; i < METRIC_CALIBRATION; i++) {
        const metric_name name = (metric_name)i;
        interval range;
        const double value = label_measure(&t, p, name, -1, draws, &range);
        add_number(c, metric_title(name), value, range, "mean over the labels",
                   rivals_text(c, rivals, metric_key(name)));
    }
    for (int32_t k = 0; k < t.labels; k++) {
        progress("resampling: %s", c->s->data.classes[k]);
        labels[k] = label_of(c, &t, p, k, draws);
    }
    progress_end();
    c->page.labels = labels, c->page.n_labels = (size_t)t.labels;
    label_tables_free(&t);
}

static int collect_numbers(collection *c) {
    const int32_t draws = (int32_t)option_integer(c->o, "bootstrap", DRAWS);
    const session *s = c->s;
    const int labels = s->bundle.model.config.task == MTAN_TASK_LABELS;
    number_predictions p;
    number_rivals r;
    contest_number *rivals;
    int good = 1;
    if (!s->data.numbers) return note("no labels: nothing to compare the predictions with"), 1;
    if (!session_numbers(c->s, c->o, &p)) return 0;
    number_rivals_make(&r, &s->data, &s->bundle.prep, s->split.part[SPLIT_TRAIN], s->split.part[SPLIT_VALID],
                       s->positions);
    rivals = labels ? contest_labels(&r, &p, draws) : contest_numbers(&r, &p, draws);
    say_verdict(c, contest_headline(rivals, contest_classes_of(&s->bundle.model.config)));
    if (p.rows == 0) note("no labels: nothing to compare the predictions with");
    else if (labels) collect_labels(c, &p, rivals, draws);
    else collect_number(c, &p, rivals, draws);
    if (p.rows > 0) good = collect_groups(c, worth_of_numbers(s->data.task, &p));
    arrfree(rivals), number_rivals_free(&r), numbers_free(&p);
    return good;
}

static int collect_classes(collection *c) {
    predictions p;
    if (c->s->bundle.model.config.classify == MTAN_CLASSIFY_NONE) return 1;
    if (c->s->bundle.model.config.task != MTAN_TASK_CLASSES) return collect_numbers(c);
    if (!session_predict(c->s, c->o, &p)) return 0;
    predictions_drop_unlabelled(&p);
    keep(c, p.p), keep(c, p.score), keep(c, p.label), keep(c, p.record);
    if (p.rows == 0) return note("no labels: no classification"), 1;
    c->page.rows = p.rows, c->page.classes = p.classes;
    c->page.p = p.p, c->page.label = p.label;
    if (p.classes == 2) c->page.score = p.score;
    if ((int32_t)arrlen(c->s->bundle.prep.classes) == p.classes)
        c->page.class_names = (const char *const *)c->s->bundle.prep.classes;
    collect_metrics(c, &p);
    if (p.classes == 2) collect_calibration(c, &p);
    return collect_groups(c, worth_of_classes(&p));
}

/* ---- interpolation ---- */

/* The baselines' errors are pooled over all points, as in the correct preset; the faithful preset averages the model's
 * over batches. */
static void add_errors(collection *c, const interpolation_error *e, const contest_number *rivals) {
    static const char units[] = "in the model's units";
    if (e->held_points > 0)
        add_number(c, "Squared error, held out", e->held, e->held_range, units, rivals_text(c, rivals, "mse_held_out"));
    add_number(c, e->held_points > 0 ? "Squared error, all points" : "Squared error, observed", e->all, e->all_range,
               units, rivals_text(c, rivals, "mse_all"));
    if (isfinite(e->truth))
        add_number(c, "Squared error, true curve", e->truth, e->truth_range, units,
                   rivals_text(c, rivals, "mse_truth"));
}

/* The errors of the model and of the baselines at a share of the times: `e` and an stb_ds array, NULL with a message
 * printed. */
static contest_number *measure_share(collection *c, double share, interpolation_error *e, int32_t draws) {
    const session *s = c->s;
    record_error *each = tool_calloc(arrlenu(s->positions), sizeof *each);
    contest_number *numbers = NULL;
    if (session_interpolate(c->s, c->o, share, e, each))
        numbers = contest_curves(&s->data, s->split.part[SPLIT_TRAIN], s->positions, share, each, draws);
    free(each);
    return numbers;
}

static double lines_error(const contest_number *numbers) {
    for (size_t i = 0; i < arrlenu(numbers); i++)
        if (strcmp(numbers[i].key, "mse_held_out") == 0) return numbers[i].rival[RIVAL_LINES];
    return NAN;
}

/* Errors in the model's units, in which models are compared: at the share of training, and at 50 to 90 %. */
static int collect_errors(collection *c) {
    enum { SHARES = 5 };
    double *share = reals(c, SHARES), *all = reals(c, SHARES), *held = reals(c, SHARES), *lines = reals(c, SHARES);
    interpolation_error e;
    contest_number *numbers;
    int curve;
    if (!c->s->source.interpolation) return 1;
    numbers = measure_share(c, c->s->source.observed, &e, (int32_t)option_integer(c->o, "bootstrap", DRAWS));
    if (!numbers) return 0;
    add_errors(c, &e, numbers);
    say_verdict(c, contest_headline(numbers, 0));
    arrfree(numbers);
    curve = e.held_points > 0;
    c->bands = e.bands, c->page.bands = &c->bands;
    c->page.band_units.time_scale = prep_raw_time(&c->s->bundle.prep, SPLIT_TEST, 1);
    c->page.band_units.unit = c->s->bundle.prep.unit;
    for (int i = 0; curve && i < SHARES; i++) {
        share[i] = 50 + 10 * i;
        progress("interpolating from %.0f %% of the times", share[i]);
        if (!(numbers = measure_share(c, share[i] / 100, &e, 0))) return progress_end(), 0;
        all[i] = e.all, held[i] = e.held, lines[i] = lines_error(numbers);
        arrfree(numbers);
        c->page.error_all = (report_points){share, all, SHARES};
        c->page.error_held = (report_points){share, held, SHARES};
        c->page.error_lines = (report_points){share, lines, SHARES};
    }
    progress_end();
    return 1;
}

static int descending(const void *left, const void *right) {
    const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a < b) - (a > b);
}

/* The first records with at least the median number of events. */
static size_t choose_records(const session *s, int32_t chosen[RECORDS_SHOWN]) {
    const size_t n = arrlenu(s->positions);
    int32_t *count = tool_calloc(n + 1, sizeof *count), middle;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) count[i] = s->data.records[s->positions[i]].n_events;
    qsort(count, n, sizeof *count, descending);
    middle = count[n / 2];
    free(count);
    for (size_t i = 0; i < n && found < RECORDS_SHOWN; i++) {
        const int32_t events = s->data.records[s->positions[i]].n_events;
        if (events > 0 && events >= middle) chosen[found++] = s->positions[i];
    }
    return found;
}

typedef struct tally {
    int32_t channel, count;
} tally;

static int more_often(const void *left, const void *right) {
    const tally *a = left, *b = right;
    return a->count != b->count ? (a->count < b->count) - (a->count > b->count)
                                : (a->channel > b->channel) - (a->channel < b->channel);
}

/* Channels by how often the records observe them: the most frequent ones, or with `spread` a few from the most frequent
 * to the rare. */
static size_t choose_channels(const dataset *d, const int32_t *records, size_t n, int spread,
                              int32_t chosen[CHANNELS_SHOWN]) {
    const size_t channels = arrlenu(d->channels);
    tally *rank = tool_calloc(channels + 1, sizeof *rank);
    size_t ranked = 0, found;
    for (size_t k = 0; k < channels; k++) rank[k].channel = (int32_t)k;
    for (size_t r = 0; r < n; r++)
        for (int32_t i = 0; i < d->records[records[r]].n_events; i++)
            rank[d->events[d->records[records[r]].event0 + (size_t)i].channel].count++;
    qsort(rank, channels, sizeof *rank, more_often);
    while (ranked < channels && rank[ranked].count >= (spread && ranked > 0 ? RARE : 1)) ranked++;
    found = ranked < CHANNELS_SHOWN ? ranked : CHANNELS_SHOWN;
    for (size_t i = 0; i < found; i++) chosen[i] = rank[spread ? i * ranked / found : i].channel;
    free(rank);
    return found;
}

static int collect_panels(collection *c, artist *a, const int32_t *records, size_t n) {
    int32_t channels[CHANNELS_SHOWN];
    const size_t m = choose_channels(&c->s->data, records, n, 0, channels);
    int good = 1;
    if (!interpolates(&a->model.config)) return 1;
    for (size_t r = 0; r < n && good; r++) {
        sketch k;
        good = sketch_make(&k, a, c->s, records[r]);
        for (size_t i = 0; i < m && good; i++)
            arrput(c->panels, sketch_panel(&c->owned, &k, c->s, records[r], channels[i]));
        sketch_free(&k);
    }
    if (!good) return complain("the curves of a record could not be computed"), 0;
    c->page.panel_columns = n, c->page.panel_rows = m;
    c->page.samples = a->model.config.predict_samples;
    c->page.noisy = a->model.config.variance == MTAN_VARIANCE_LEARNED;
    return 1;
}

/* ---- attention ---- */

static void add_attention(collection *c, artist *a, int32_t position, int32_t channel) {
    const report_attention shown = sketch_attention(&c->owned, a, c->s, position, channel);
    if (shown.times > 0) arrput(c->attention, shown);
}

/* A few channels of one record; for data with a single channel, a few records. */
static void collect_attention(collection *c, artist *a, const int32_t *records, size_t n) {
    int32_t channels[CHANNELS_SHOWN];
    const size_t m = choose_channels(&c->s->data, records, 1, 1, channels);
    for (size_t i = 0; i < (m == 1 ? n : m); i++)
        add_attention(c, a, records[m == 1 ? i : 0], channels[m == 1 ? 0 : i]);
}

static int collect_pictures(collection *c) {
    int32_t records[RECORDS_SHOWN];
    const size_t n = choose_records(c->s, records);
    artist a;
    int good;
    if (n == 0) return 1;
    good = artist_start(&a, c->s, curve_samples(&c->s->bundle.model.config, SKETCH_SAMPLES)) &&
           collect_panels(c, &a, records, n);
    if (good) collect_attention(c, &a, records, n);
    artist_end(&a);
    if (good) progress("leaving out observations");
    good = good && stories_make(&c->stories, c->s, c->o, records, n, c->page.positive);
    progress_end();
    return good;
}

/* ---- tables ---- */

static void add_table(collection *c, const char *title, report_pair *pairs) {
    arrput(c->tables, report_table_of(title, pairs));
}

/* Model files store choices as numbers, and numbers with all digits. */
static const char *plan_text(const char *key, const char *value, char *text_of) {
    const double number = number_of(value);
    const char *word = plan_word(key, number);
    if (word) return word;
    if (!isfinite(number)) return value;
    snprintf(text_of, 32, "%.6g", number);
    return text_of;
}

/* The plan and the run as `mtan train` stored them, under the same names. */
static void training_table(collection *c) {
    static const char *const kept[] = {"mtan.run.epoch", "mtan.run.best_epoch"};
    static const char *const names[] = {"epoch of these weights", "best epoch"};
    report_pair *pairs = NULL;
    char key[128], value[256], short_value[32];
    mtan_text raw_key, raw_value;
    for (size_t at = 0; mtan_file_metadata_next(&c->s->bundle.file, &at, &raw_key, &raw_value) == MTAN_OK;) {
        if (mtan_text_decode(&raw_key, key, sizeof key, NULL) != MTAN_OK || strncmp(key, "mtan.plan.", 10) != 0 ||
            mtan_text_decode(&raw_value, value, sizeof value, NULL) != MTAN_OK)
            continue;
        if (c->choice.known && strcmp(key, "mtan.plan.select") == 0)
            report_pair_add(&pairs, "select", "%s", plan_word("select", c->choice.by));
        else report_pair_add(&pairs, key + 10, "%s", plan_text(key + 10, value, short_value));
    }
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (bundle_text(&c->s->bundle, kept[i], NULL))
            report_pair_add(&pairs, names[i], "%s", bundle_text(&c->s->bundle, kept[i], ""));
    if (pairs) add_table(c, "Training", pairs);
}

static void data_table(collection *c) {
    static const char *const parts[SPLIT_PARTS] = {"training", "validation", "test"};
    session *s = c->s;
    report_pair *pairs = NULL;
    report_pair_add(&pairs, "data", "%s", s->source.set->name);
    if (*s->source.variant) report_pair_add(&pairs, "variant", "%s", s->source.variant);
    report_pair_add(&pairs, "preset", "%s", preset_names[s->source.preset]);
    if (arrlen(s->data.records) > 0) {
        report_pair_add(&pairs, "records", "%zu", arrlenu(s->data.records));
        report_pair_add(&pairs, "channels", "%zu", arrlenu(s->data.channels));
        for (int i = 0; i < SPLIT_PARTS; i++)
            report_pair_add(&pairs, parts[i], "%zu records", arrlenu(s->split.part[i]));
        report_pair_add(&pairs, "shown here", "%s", s->part);
    }
    report_pair_add(&pairs, "seed of the split", "%lu", (unsigned long)s->source.split.seed);
    report_pair_add(&pairs, "hash of the split", "%s", bundle_text(&s->bundle, "mtan.split.hash", "none"));
    add_table(c, "Data and split", pairs);
}

/* ---- the command ---- */

/* RUN is a folder, or a model file in a folder. */
typedef struct run_paths {
    char model[PATH_BYTES], log[PATH_BYTES], out[PATH_BYTES];
} run_paths;

static int is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int join(char out[PATH_BYTES], int folder_bytes, const char *folder, const char *name) {
    return snprintf(out, PATH_BYTES, "%.*s%s", folder_bytes, folder, name) < PATH_BYTES;
}

static int find_run(run_paths *r, const options *o) {
    const char *run = o->argument[0], *slash = strrchr(run, '/'), *out = option_text(o, "out", NULL);
    const int folder = is_folder(run), bytes = folder ? (int)strlen(run) : slash ? (int)(slash - run) : 0;
    const char *between = bytes > 0 ? "/" : "";
    char name[64], error[512];
    int fits = 1, there;
    snprintf(name, sizeof name, "%sbest.safetensors", between);
    fits &= folder ? join(r->model, bytes, run, name) : join(r->model, (int)strlen(run), run, "");
    snprintf(name, sizeof name, "%slast.safetensors", between);
    there = file_exists(r->model, error);
    if (folder && there == 0) fits &= join(r->model, bytes, run, name), there = file_exists(r->model, error);
    snprintf(name, sizeof name, "%slog.csv", between);
    fits &= join(r->log, bytes, run, name);
    snprintf(name, sizeof name, "%s%s", between, option_given(o, "card") ? "README.md" : "report.html");
    fits &= out ? join(r->out, (int)strlen(out), out, "") : join(r->out, bytes, run, name);
    if (!fits) return complain("%s: the path is too long", run), 0;
    if (there < 0) return complain("%s", error), 0;
    if (there == 0) return complain("%s: no such run: neither best.safetensors nor last.safetensors is there", run), 0;
    return 1;
}

/* Without --data only the model and its log are shown. */
static int open_run(session *s, const options *o, const char *model) {
    char error[512] = "";
    memset(s, 0, sizeof *s);
    if (!bundle_read(&s->bundle, model, error)) return complain("%s", error), 0;
    if (!source_read(&s->source, &s->bundle, error)) return complain("%s: %s", model, error), session_close(s), 0;
    if (!option_given(o, "data") && !o->columns && s->source.set->needs_data) {
        note("no --data: the page has learning curves and settings, but no results");
        return option_backend(o, &s->bundle.model.backend) ? 1 : (session_close(s), 0);
    }
    session_close(s);
    return session_open(s, o, model);
}

static void titles(collection *c) {
    static const char *const unseen = ", which were neither trained on nor used to choose the epoch";
    session *s = c->s;
    const char *model = model_title(&s->bundle.model.config);
    const char *name = bundle_text(&s->bundle, "mtan.plan.name", s->source.set->name);
    c->page.title = text(c, "%s: %.200s", model, name);
    if (!s->part) c->page.subtitle = "The model and how it was trained. No data was given.";
    else
        c->page.subtitle = text(c, "The %s preset. Results on %zu records (%.40s)%s.", preset_names[s->source.preset],
                                arrlenu(s->positions), s->part, strcmp(s->part, "test") == 0 ? unseen : "");
}

static int collect(collection *c, const char *log) {
    titles(c);
    c->choice = choice_read(&c->s->bundle);
    if (!collect_log(c, log)) return 0;
    if (c->s->part && !(collect_classes(c) && collect_errors(c) && collect_pictures(c))) return 0;
    add_table(c, "Model", report_model_pairs(&c->s->bundle.model.config));
    training_table(c), data_table(c);
    add_table(c, "Environment", report_environment_pairs(c->s->bundle.model.backend));
    c->page.time_unit = c->s->bundle.prep.unit;
    c->page.numbers = c->numbers, c->page.n_numbers = arrlenu(c->numbers);
    c->page.curves = c->curves, c->page.n_curves = arrlenu(c->curves);
    c->page.panels = c->panels, c->page.attention = c->attention, c->page.n_attention = arrlenu(c->attention);
    c->page.stories = c->stories.records, c->page.n_stories = arrlenu(c->stories.records);
    c->page.channels = c->stories.channels, c->page.n_channels = arrlenu(c->stories.channels);
    c->page.tables = c->tables, c->page.n_tables = arrlenu(c->tables);
    return 1;
}

static void write_page(FILE *out, void *page) {
    report_write(out, page);
}

int report_save(const char *path, const report_data *page, char *error) {
    size_t length;
    char *bytes = text_write(write_page, (void *)(uintptr_t)page, &length);
    const int good = file_write(path, bytes, length, error);
    free(bytes);
    return good;
}

static card_facts facts_of(const session *s) {
    static const struct {
        const char *task, *what;
    } kinds[] = {[MTAN_TASK_CLASSES] = {"tabular-classification", "a class"},
                 [MTAN_TASK_NUMBER] = {"tabular-regression", "a number"},
                 [MTAN_TASK_LABELS] = {"tabular-classification", "labels, each true or not"}};
    const mtan_config *m = &s->bundle.model.config;
    const prep *p = &s->bundle.prep;
    card_facts f = {
        .task = kinds[m->task].task, .what = kinds[m->task].what, .data = s->source.set->name, .part = s->part};
    f.channels = p->channels, f.n_channels = arrlenu(p->channels);
    f.outputs = p->classes, f.n_outputs = arrlenu(p->classes);
    if (m->classify == MTAN_CLASSIFY_NONE)
        f.task = "time-series-forecasting", f.what = "every channel at any time", f.n_outputs = 0, f.interpolates = 1;
    return f;
}

/* The settings do not tell whether a model that interpolates has static channels: it has them among the others. */
static void facts_of_use(card_facts *f, const session *s, const options *o, const char *model) {
    const char *slash = strrchr(model, '/');
    const prep *p = &s->bundle.prep;
    f->model = slash ? slash + 1 : model;
    f->statics = option_given(o, "static") || (o->columns && o->columns->statics > 0) ||
                 (s->source.set->own && s->bundle.model.config.statics > 0);
    f->forecast = s->source.forecast, f->first = p->first, f->last = p->last;
}

static int save(const collection *c, const run_paths *paths, char *error) {
    card_facts facts = facts_of(c->s);
    if (!option_given(c->o, "card")) return report_save(paths->out, &c->page, error);
    facts_of_use(&facts, c->s, c->o, paths->model);
    return card_save(paths->out, &c->page, &facts, error);
}

int command_report(const options *o) {
    char error[512] = "";
    run_paths paths;
    session s;
    collection c;
    int status = BAD_USE;
    if (!find_run(&paths, o) || !open_run(&s, o, paths.model)) return BAD_USE;
    memset(&c, 0, sizeof c);
    c.s = &s, c.o = o, c.page.best_epoch = NAN;
    if (collect(&c, paths.log)) {
        if (save(&c, &paths, error)) note("%s", paths.out), status = DONE;
        else complain("%s", error);
    }
    collection_free(&c);
    session_close(&s);
    return status;
}
