/* See session.h. Sections: sources; sessions; classification; interpolation; options. */
#define _POSIX_C_SOURCE 200809L
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../simd/mtan_simd.h"
#include "../../baselines/recipes.h"
#include "../../data/activity.h"
#include "../../data/mimic3.h"
#include "../../data/own.h"
#include "../../data/physionet.h"
#include "../../data/synthetic.h"
#include "device.h"

enum { TOY_SERIES = 1000, TOY_LENGTH = 20, MOST_THREADS = 8 };

/* ---- sources ---- */

static void add_number(mtan_file_pair **pairs, const char *key, double x) {
    char text[32];
    snprintf(text, sizeof text, "%.17g", x);
    pairs_add(pairs, key, text);
}

void source_write(const source *s, mtan_file_pair **pairs) {
    pairs_add(pairs, "mtan.data.kind", s->kind);
    pairs_add(pairs, "mtan.data.variant", s->variant);
    pairs_add(pairs, "mtan.data.preset", s->preset == MTAN_FAITHFUL ? "faithful" : "correct");
    pairs_add(pairs, "mtan.data.origin", s->origin);
    add_number(pairs, "mtan.data.split_kind", (double)s->split_kind);
    add_number(pairs, "mtan.data.by_group", s->by_group);
    add_number(pairs, "mtan.data.fold", s->fold);
    add_number(pairs, "mtan.data.split_seed", s->seed);
    add_number(pairs, "mtan.data.interpolation", s->interpolation);
    add_number(pairs, "mtan.data.observed", s->observed);
    if (s->has_means) {
        char text[MIMIC3_CHANNELS * 26] = "";
        for (int c = 0; c < MIMIC3_CHANNELS; c++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.17g", c ? " " : "", s->means[c]);
        pairs_add(pairs, "mtan.data.means", text);
    }
}

/* The means of MIMIC-III's channels; a channel that was never seen has none. */
static int read_means(source *s, const char *text) {
    char *end;
    for (int c = 0; c < MIMIC3_CHANNELS; c++, text = end) {
        s->means[c] = strtod(text, &end);
        if (end == text) return 0;
    }
    return s->has_means = 1;
}

/* A whole number of a model file within its range, or -1. */
static int whole(bundle *b, const char *key, double most) {
    const double x = bundle_number(b, key, 0);
    return x >= 0 && x <= most ? (int)x : -1;
}

int source_read(source *s, bundle *b, char *error) {
    const int kind = whole(b, "mtan.data.split_kind", SPLIT_FOLDS), fold = whole(b, "mtan.data.fold", 4);
    const double seed = bundle_number(b, "mtan.data.split_seed", 42),
                 observed = bundle_number(b, "mtan.data.observed", 1);
    memset(s, 0, sizeof *s);
    snprintf(s->kind, sizeof s->kind, "%s", bundle_text(b, "mtan.data.kind", "own"));
    snprintf(s->variant, sizeof s->variant, "%s", bundle_text(b, "mtan.data.variant", ""));
    snprintf(s->origin, sizeof s->origin, "%s", bundle_text(b, "mtan.data.origin", "auto"));
    s->preset = strcmp(bundle_text(b, "mtan.data.preset", "correct"), "faithful") == 0 ? MTAN_FAITHFUL : MTAN_CORRECT;
    if (kind < 0 || fold < 0 || !(seed >= 0 && seed <= UINT32_MAX) || !(observed > 0 && observed <= 1))
        return snprintf(error, 512, "its mtan.data.* metadata is out of range"), 0;
    s->split_kind = (split_kind)kind;
    s->by_group = whole(b, "mtan.data.by_group", 1) == 1;
    s->fold = fold;
    s->seed = (uint32_t)seed;
    s->interpolation = b->model.config.classify == MTAN_CLASSIFY_NONE;
    s->observed = observed;
    if (strcmp(s->kind, "mimic3") == 0 && !read_means(s, bundle_text(b, "mtan.data.means", "")))
        return snprintf(error, 512, "its mtan.data.means is not usable"), 0;
    return 1;
}

static void show_progress(void *context, double share, const char *what) {
    (void)context;
    if (share >= 0) progress("reading %s: %.0f %%", what, 100 * share);
    else progress("reading %s", what);
}

static int read_origin(const options *o, const source *from, own_options *own) {
    const char *origin = option_text(o, "origin", from ? from->origin : "auto");
    static const char *const words[] = {"auto", "zero", "record"};
    static const own_origin kinds[] = {OWN_ORIGIN_AUTO, OWN_ORIGIN_ZERO, OWN_ORIGIN_RECORD};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(origin, words[i]) == 0) return own->origin = kinds[i], 1;
    return complain("--origin %s: must be record, zero or auto", origin), 0;
}

int own_options_make(own_options *own, const options *o, const source *from, const prep *model) {
    memset(own, 0, sizeof *own);
    own->skip_unknown = option_given(o, "skip-unknown");
    if (model && arrlen(model->channels) > 0) own->channels = model->channels;
    if (model && arrlen(model->classes) > 0) own->classes = model->classes;
    return read_origin(o, from, own);
}

static int load(dataset *d, const source *s, const char *path, const char *labels, const prep *model,
                const options *o) {
    own_options own;
    if (strcmp(s->kind, "toy") == 0) return synthetic_load(d, s->variant, TOY_SERIES, TOY_LENGTH, 0);
    if (!path) return dataset_fail(d, "--data is missing");
    if (strcmp(s->kind, "physionet") == 0) return physionet_load(d, path, s->variant[1] ? '2' : s->variant[0]);
    if (strcmp(s->kind, "activity") == 0) return activity_load(d, path, s->preset);
    if (strcmp(s->kind, "mimic3") == 0) return mimic3_load(d, path, s->preset == MTAN_FAITHFUL, show_progress, NULL);
    if (!own_options_make(&own, o, s, model)) exit(BAD_USE);
    return own_load(d, path, labels, &own);
}

int source_load(dataset *d, const source *s, const char *path, const char *labels, const prep *model,
                const options *o) {
    int good;
    memset(d, 0, sizeof *d);
    good = load(d, s, path, labels, model, o);
    progress_end();
    if (!good) return complain("%s", d->error), 0;
    for (size_t i = 0; i < arrlenu(d->notes); i++) note("%s", d->notes[i]);
    return 1;
}

int source_split(split *s, source *from, dataset *d) {
    char error[512] = "";
    if (!split_make(s, d, from->split_kind, from->by_group, from->fold, from->seed, error))
        return complain("%s", error), 0;
    if (strcmp(from->kind, "mimic3") == 0) {
        const int faithful = from->preset == MTAN_FAITHFUL;
        if (!from->has_means)
            mimic3_means(d, faithful ? NULL : s->part[SPLIT_TRAIN], arrlenu(s->part[SPLIT_TRAIN]), from->means);
        from->has_means = 1;
        mimic3_fill(d, from->means);
    }
    return 1;
}

void source_fit(prep *p, const source *from, const dataset *d, const split *s, prep_kind scale, double time_scale) {
    static const char *const coded[] = {"Height", "Weight", "Gender"}; /* -1 means unknown (Q36) */
    mtan_real *missing = NULL;
    if (strcmp(from->kind, "physionet") == 0 && from->preset == MTAN_CORRECT)
        for (size_t c = 0; c < arrlenu(d->channels); c++) {
            arrput(missing, (mtan_real)NAN);
            for (size_t k = 0; k < sizeof coded / sizeof coded[0]; k++)
                if (strcmp(d->channels[c], coded[k]) == 0) missing[c] = -1;
        }
    prep_fit(p, d, s, scale, time_scale, missing);
    arrfree(missing);
}

/* ---- sessions ---- */

/* Everything is in the test part. */
static void split_none(split *s, const dataset *d) {
    split_free(s);
    memset(s, 0, sizeof *s);
    for (int32_t i = 0; i < (int32_t)arrlen(d->records); i++) arrput(s->part[SPLIT_TEST], i);
}

/* Is this the data, split as it was, that the model was trained with? */
static int same_data(session *s) {
    char hash[24], error[512];
    if (!split_make(&s->split, &s->data, s->source.split_kind, s->source.by_group, s->source.fold, s->source.seed,
                    error))
        return 0; /* too few records to have been split */
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)s->split.hash);
    return strcmp(hash, bundle_text(&s->bundle, "mtan.split.hash", "")) == 0;
}

/* The split of training if this is the same data, else all of it. */
static int session_split(session *s, const options *o) {
    const char *asked = option_text(o, "split", NULL);
    s->part = asked ? asked : "test";
    if (!same_data(s)) {
        if (asked && strcmp(asked, "all") != 0)
            return complain("--split %s: this is not the data that the model was trained with (its split has another "
                            "hash); leave --split out to use all records",
                            asked),
                   0;
        complain("not the data that the model was trained with: all %zu records are used", arrlenu(s->data.records));
        split_none(&s->split, &s->data);
        s->part = "all";
    }
    if (s->source.has_means) mimic3_fill(&s->data, s->source.means);
    if (!(s->positions = split_positions(&s->split, s->part)))
        return complain("--split %s: must be train, valid, test or all", s->part), 0;
    return arrlen(s->positions) > 0 ? 1 : (complain("--split %s: this split has no such records", s->part), 0);
}

static int channels_match(const session *s) {
    const prep *p = &s->bundle.prep;
    int32_t *map, absent = 0, unknown;
    if (arrlen(p->channels) == 0) return (int32_t)arrlen(s->data.channels) == s->bundle.model.config.channels;
    map = tool_calloc(arrlenu(s->data.channels), sizeof *map);
    unknown = prep_match(p, s->data.channels, map, &absent);
    for (int32_t i = 0; i < (int32_t)arrlen(s->data.channels) && !unknown; i++) unknown += map[i] != i;
    free(map);
    return !unknown && !absent;
}

int unit_matches(const prep *p, const dataset *d) {
    if (arrlen(p->channel) == 0 || strcmp(p->unit, d->unit) == 0) return 1;
    return complain("the data's times are %s, the model's %s", d->unit[0] ? d->unit : "numbers without a unit",
                    p->unit[0] ? p->unit : "numbers without a unit"),
           0;
}

int session_open(session *s, const options *o, const char *model) {
    char error[512] = "";
    memset(s, 0, sizeof *s);
    if (!bundle_read(&s->bundle, model, error)) return complain("%s", error), 0;
    if (!option_backend(o, &s->bundle.model.backend)) return session_close(s), 0;
    if (!source_read(&s->source, &s->bundle, error)) return complain("%s: %s", model, error), session_close(s), 0;
    if (!source_load(&s->data, &s->source, option_text(o, "data", NULL), option_text(o, "labels", NULL),
                     &s->bundle.prep, o))
        return session_close(s), 0;
    if (!channels_match(s)) {
        complain("%s: the data's channels are not the model's", model);
        return session_close(s), 0;
    }
    if (!unit_matches(&s->bundle.prep, &s->data) || !session_split(s, o)) return session_close(s), 0;
    prep_apply(&s->bundle.prep, &s->data, &s->split);
    if (option_given(o, "samples"))
        s->bundle.model.config.predict_samples = (int32_t)option_integer(o, "samples", 0, 0, 10000);
    return 1;
}

void session_close(session *s) {
    arrfree(s->positions);
    split_free(&s->split);
    dataset_free(&s->data);
    bundle_free(&s->bundle);
}

/* ---- batches that are reversed ---- */

size_t swap_size(const mtan_config *c, double batch) {
    return baseline_swaps_records(c) && batch >= 1 && batch < 1e6 ? (size_t)batch : 0;
}

size_t swap_partner(size_t i, size_t n, size_t swap) {
    const size_t first = swap ? i / swap * swap : i;
    const size_t count = swap && n - first > swap ? swap : swap ? n - first : 1;
    return first + count - 1 - (i - first);
}

/* ---- classification ---- */

/* What the AUC ranks by: class 1's logit as published (Q26), else the difference of the two. */
static void rank_scores(predictions *p, const double *logit, int faithful) {
    for (size_t i = 0; i < p->rows; i++) p->score[i] = logit[2 * i + 1] - (faithful ? 0 : logit[2 * i]);
}

static void name_rows(predictions *p, const dataset *d, const int32_t *positions, const size_t *row0) {
    for (size_t i = 0; i < arrlenu(positions); i++) {
        const dataset_record *r = &d->records[positions[i]];
        for (size_t row = row0[i]; row < row0[i + 1]; row++) {
            const size_t k = row - row0[i];
            p->label[row] = (int32_t)k < r->n_labels ? d->labels[r->label0 + k] : MTAN_UNLABELED;
            p->record[row] = positions[i];
            p->labelled += p->label[row] != MTAN_UNLABELED;
        }
    }
}

static size_t rows_of(const dataset *d, int32_t position, int per_time) {
    const dataset_record *r = &d->records[position];
    return !per_time ? 1 : r->n_labels > 0 ? (size_t)r->n_labels : (size_t)r->n_times;
}

/* The i-th record, encoded from whose events it is. A class per time keeps its own times, which the labels bring. */
static mtan_record encoded_view(const dataset *d, const int32_t *positions, size_t i, size_t swap) {
    mtan_record r = dataset_view(d, (size_t)positions[i]);
    const mtan_record other = dataset_view(d, (size_t)positions[swap_partner(i, arrlenu(positions), swap)]);
    if (!d->label_times || r.times) r.events = other.events, r.n_events = other.n_events;
    return r;
}

int predictions_make(predictions *p, runner *run, const dataset *d, const int32_t *positions, int faithful,
                     size_t swap) {
    const size_t n = arrlenu(positions);
    const int per_time = run->model->config.classify == MTAN_CLASSIFY_TIME;
    mtan_record *records = tool_calloc(n, sizeof *records);
    size_t *row0 = tool_calloc(n + 1, sizeof *row0);
    double *logit;
    int good;
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < n; i++) {
        records[i] = encoded_view(d, positions, i, swap);
        row0[i + 1] = row0[i] + rows_of(d, positions[i], per_time);
    }
    p->rows = row0[n];
    p->classes = run->model->config.classes;
    p->p = tool_calloc(p->rows * (size_t)p->classes, sizeof *p->p);
    p->score = tool_calloc(p->rows, sizeof *p->score);
    p->label = tool_calloc(p->rows, sizeof *p->label);
    p->record = tool_calloc(p->rows, sizeof *p->record);
    logit = p->classes == 2 ? tool_calloc(2 * p->rows, sizeof *logit) : NULL;
    name_rows(p, d, positions, row0);
    good = runner_classify(run, records, n, row0, p->p, logit);
    if (good && logit) rank_scores(p, logit, faithful);
    free(logit), free(row0), free(records);
    if (!good) predictions_free(p);
    return good;
}

int session_predict(session *s, const options *o, predictions *p) {
    char error[512] = "";
    runner run;
    int good;
    memset(p, 0, sizeof *p);
    if (s->bundle.model.config.classify == MTAN_CLASSIFY_NONE)
        return complain("this model interpolates and does not classify: `mtan interpolate`"), 0;
    if (!runner_start(&run, &s->bundle.model, model_bounds(&s->bundle.model.config, &s->data), option_threads(o),
                      error))
        return complain("%s", error), 0;
    runner_seed(&run, (uint64_t)option_integer(o, "seed", 0, 0, UINT32_MAX));
    good = predictions_make(p, &run, &s->data, s->positions, s->source.preset == MTAN_FAITHFUL,
                            swap_size(&s->bundle.model.config, bundle_number(&s->bundle, "mtan.plan.batch", 0)));
    if (!good)
        complain("record %s or one after it: %s", dataset_name(&s->data, (size_t)s->positions[run.failed]),
                 status_message(run.status));
    runner_stop(&run);
    return good;
}

void predictions_drop_unlabelled(predictions *p) {
    const size_t C = (size_t)p->classes;
    size_t n = 0;
    for (size_t i = 0; i < p->rows; i++) {
        if (p->label[i] == MTAN_UNLABELED) continue;
        memmove(p->p + n * C, p->p + i * C, C * sizeof *p->p);
        p->score[n] = p->score[i], p->label[n] = p->label[i], p->record[n] = p->record[i];
        n++;
    }
    p->rows = p->labelled = n;
}

void predictions_free(predictions *p) {
    free(p->p), free(p->score), free(p->label), free(p->record);
    memset(p, 0, sizeof *p);
}

/* ---- interpolation ---- */

/* Which of `times` time stamps are shown: a permutation seeded by `seed`, the first int(times * share) of it. */
void choose_times(unsigned char *shown, int32_t times, double share, uint64_t seed) {
    int32_t *order = tool_calloc((size_t)times, sizeof *order);
    const int32_t n = (int32_t)(times * share);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, (uint32_t)(seed ^ (seed >> 32)));
    mtan_numpy_permutation(&rng, order, (size_t)times);
    memset(shown, 0, (size_t)times);
    for (int32_t i = 0; i < n; i++) shown[order[i]] = 1;
    free(order);
}

void holdout_make(holdout *h, const dataset *d, size_t record, double share) {
    const dataset_record *r = &d->records[record];
    const mtan_event *e = d->events + r->event0;
    const char *name = dataset_name(d, record);
    unsigned char *shown = tool_calloc((size_t)r->n_times, 1);
    int32_t time = -1;
    memset(h, 0, sizeof *h);
    choose_times(shown, r->n_times, share, mtan_hash(name, strlen(name)));
    for (int32_t i = 0; i < r->n_events; i++) {
        time += i == 0 || e[i].time > e[i - 1].time;
        if (shown[time]) arrput(h->seen, e[i]);
        else arrput(h->held, e[i]);
    }
    free(shown);
}

void holdout_free(holdout *h) {
    arrfree(h->seen), arrfree(h->held);
}

typedef struct record_error {
    double all, held, truth;
    size_t points, held_points, truth_points;
} record_error;

typedef struct interpolation_job {
    const interpolation_request *request;
    record_error *error; /* (n) */
} interpolation_job;

static int compare_times(const void *left, const void *right) {
    const mtan_real a = *(const mtan_real *)left, b = *(const mtan_real *)right;
    return (a > b) - (a < b);
}

/* Squared errors of events against (Q, D) predictions at ascending times. */
static double squared_errors(const mtan_event *e, size_t n, const mtan_real *times, size_t queries,
                             const mtan_real *mean, size_t channels) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const mtan_real *at = bsearch(&e[i].time, times, queries, sizeof *times, compare_times);
        const double difference =
            (double)mean[(size_t)(at - times) * channels + (size_t)e[i].channel] - (double)e[i].value;
        sum += difference * difference;
    }
    return sum;
}

/* Distinct times of the events and of the truth, ascending. */
static mtan_real *query_times(const dataset *d, const dataset_record *r) {
    mtan_real *times = NULL;
    size_t n = 0;
    for (int32_t i = 0; i < r->n_events; i++) arrput(times, d->events[r->event0 + (size_t)i].time);
    for (int32_t i = 0; i < r->n_truth; i++) arrput(times, d->truth[r->truth0 + (size_t)i].time);
    if (arrlen(times) > 0) qsort(times, arrlenu(times), sizeof *times, compare_times);
    for (size_t i = 0; i < arrlenu(times); i++)
        if (n == 0 || times[i] > times[n - 1]) times[n++] = times[i];
    arrsetlen(times, n);
    return times;
}

static mtan_status interpolate_record(const interpolation_job *job, mtan_predictor *predictor, size_t index) {
    const interpolation_request *q = job->request;
    const size_t position = (size_t)q->positions[index], channels = (size_t)predictor->model->config.channels;
    const size_t partner = (size_t)q->positions[swap_partner(index, arrlenu(q->positions), q->swap)];
    const dataset_record *r = &q->data->records[position];
    record_error *error = &job->error[index];
    mtan_record record = dataset_view(q->data, position);
    mtan_real *times = query_times(q->data, r), *mean = tool_calloc(arrlenu(times) * channels, sizeof *mean);
    mtan_status status = MTAN_OK;
    const mtan_event *seen;
    holdout h, other;
    memset(&other, 0, sizeof other);
    holdout_make(&h, q->data, position, q->share);
    if (partner != position) holdout_make(&other, q->data, partner, q->share);
    seen = partner != position ? other.seen : h.seen;
    record.events = seen, record.n_events = (int32_t)arrlen(seen);
    record.times = times, record.n_times = (int32_t)arrlen(times);
    if (arrlen(times) > 0) status = mtan_interpolate(predictor, &record, mean, NULL);
    if (status == MTAN_OK) {
        error->held = squared_errors(h.held, arrlenu(h.held), times, arrlenu(times), mean, channels);
        error->all = error->held + squared_errors(h.seen, arrlenu(h.seen), times, arrlenu(times), mean, channels);
        error->truth =
            squared_errors(q->data->truth + r->truth0, (size_t)r->n_truth, times, arrlenu(times), mean, channels);
        error->held_points = arrlenu(h.held), error->points = (size_t)r->n_events,
        error->truth_points = (size_t)r->n_truth;
    }
    holdout_free(&h), holdout_free(&other);
    arrfree(times), free(mean);
    return status;
}

static mtan_status interpolate_chunk(void *context, mtan_predictor *predictor, size_t first, size_t count) {
    mtan_status status = MTAN_OK;
    for (size_t i = first; i < first + count && status == MTAN_OK; i++)
        status = interpolate_record(context, predictor, i);
    return status;
}

/* Ratios of sums over `batch` records, averaged by the number of records (Q22); one batch of all pools over points. */
static void pool_errors(interpolation_error *e, const record_error *r, size_t n, size_t batch) {
    double all = 0, held = 0, truth = 0;
    memset(e, 0, sizeof *e);
    for (size_t first = 0; first < n; first += batch) {
        const size_t count = n - first < batch ? n - first : batch;
        record_error sum = {0, 0, 0, 0, 0, 0};
        for (size_t i = first; i < first + count; i++) {
            sum.all += r[i].all, sum.held += r[i].held, sum.truth += r[i].truth;
            sum.points += r[i].points, sum.held_points += r[i].held_points, sum.truth_points += r[i].truth_points;
        }
        all += sum.all / (double)sum.points * (double)count;
        held += sum.held / (double)sum.held_points * (double)count;
        truth += sum.truth / (double)sum.truth_points * (double)count;
        e->points += sum.points, e->held_points += sum.held_points;
    }
    e->all = all / (double)n, e->held = held / (double)n, e->truth = truth / (double)n;
}

/* Interval of the sum of squares over the number of points, by resampling records. */
static interval ratio_range(const double *above, const double *below, size_t n, int32_t draws) {
    const interval none = {NAN, NAN};
    metric_quotient q = {above, below};
    return draws > 0 ? metric_bootstrap(metric_pooled, &q, n, NULL, draws, 0) : none;
}

static void error_ranges(interpolation_error *e, const record_error *r, size_t n, int32_t draws) {
    double *column = tool_calloc(6 * n, sizeof *column);
    for (size_t i = 0; i < n; i++) {
        const double numbers[6] = {r[i].all,   (double)r[i].points,      r[i].held, (double)r[i].held_points,
                                   r[i].truth, (double)r[i].truth_points};
        for (size_t k = 0; k < 6; k++) column[k * n + i] = numbers[k];
    }
    e->all_range = ratio_range(column, column + n, n, draws);
    e->held_range = ratio_range(column + 2 * n, column + 3 * n, n, draws);
    e->truth_range = ratio_range(column + 4 * n, column + 5 * n, n, draws);
    free(column);
}

mtan_bounds interpolation_bounds(const dataset *d) {
    mtan_bounds b = dataset_bounds(d);
    int32_t most = b.times;
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        const dataset_record *r = &d->records[i];
        if (r->n_times + r->n_truth > most) most = r->n_times + r->n_truth;
    }
    b.times = most;
    return b;
}

int interpolation_measure(interpolation_error *e, runner *run, const interpolation_request *q, int32_t draws) {
    const size_t n = arrlenu(q->positions);
    interpolation_job job = {q, tool_calloc(n, sizeof *job.error)};
    const int good = runner_each(run, n, interpolate_chunk, &job);
    if (good) {
        pool_errors(e, job.error, n, q->batch ? q->batch : n);
        error_ranges(e, job.error, n, draws);
    }
    free(job.error);
    return good;
}

int session_interpolate(session *s, const options *o, double share, interpolation_error *e) {
    const int faithful = s->source.preset == MTAN_FAITHFUL;
    const double batch = bundle_number(&s->bundle, "mtan.plan.batch", 0);
    const interpolation_request q = {&s->data, s->positions, share,
                                     faithful && batch >= 1 && batch < 1e6 ? (size_t)batch : 0,
                                     swap_size(&s->bundle.model.config, batch)};
    char error[512] = "";
    runner run;
    int good;
    if (s->bundle.model.config.kind != MTAN_FULL) return complain("this model classifies and does not interpolate"), 0;
    if (!runner_start(&run, &s->bundle.model, interpolation_bounds(&s->data), option_threads(o), error))
        return complain("%s", error), 0;
    runner_seed(&run, (uint64_t)option_integer(o, "seed", 0, 0, UINT32_MAX));
    good = interpolation_measure(e, &run, &q, (int32_t)option_integer(o, "bootstrap", 1000, 0, 1000000));
    if (!good)
        complain("record %s or one after it: %s", dataset_name(&s->data, (size_t)s->positions[run.failed]),
                 status_message(run.status));
    runner_stop(&run);
    return good;
}

/* ---- options ---- */

int32_t option_threads(const options *o) {
    const int32_t cpus = mtan_pool_cpus();
    return (int32_t)option_integer(o, "threads", cpus < MOST_THREADS ? cpus : MOST_THREADS, 1, MTAN_POOL_MOST);
}

/* Commands whose models run in blocks that a device can hold. */
static int uses_device(const options *o) {
    static const char *const names[] = {"train", "eval", "predict", "interpolate", "selftest", "bench", "table"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(o->command->name, names[i]) == 0) return 1;
    return 0;
}

static int option_device(const options *o, const mtan_backend **b) {
    char text[DEVICE_TEXT];
    if (!uses_device(o)) return complain("--backend cuda: `mtan %s` runs on the CPU alone", o->command->name), 0;
    *b = device_open(text);
    if (!*b) return complain("--backend cuda: %s", text), 0;
    note("cuda: %s", text);
    return 1;
}

int option_backend(const options *o, const mtan_backend **b) {
    const char *name = option_text(o, "backend", "best");
    const mtan_backend *found = mtan_backend_named(name);
    mtan_backend_choice choice;
    if (found) return *b = found, 1;
    if (strcmp(name, "cuda") == 0) return option_device(o, b);
    for (int i = 0; mtan_backend_list(i, &choice); i++)
        if (strcmp(choice.name, name) == 0 && choice.reason)
            return complain("--backend %s: %s", name, choice.reason), 0;
    return complain("--backend %s: there is none of this name; `mtan backends` lists them", name), 0;
}
