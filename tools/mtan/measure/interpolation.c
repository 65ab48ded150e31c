/* See interpolation.h. */
#include "interpolation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../baselines/arrange.h"
#include "../../data/generators.h"

void choose_times(unsigned char *shown, int32_t times, double share, uint64_t seed) {
    int32_t *order = tool_calloc((size_t)times, sizeof *order);
    const int32_t n = (int32_t)(times * share);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, (uint32_t)(seed ^ (seed >> 32)));
    numpy_permutation(&rng, order, (size_t)times);
    memset(shown, 0, (size_t)times);
    for (int32_t i = 0; i < n; i++) shown[order[i]] = 1;
    free(order);
}

static void holdout_future(holdout *h, const dataset *d, const dataset_record *r) {
    const mtan_event *e = dataset_events(d, r);
    for (int32_t i = 0; i < r->n_events; i++)
        if (e[i].time <= e[0].time || (double)e[i].time <= (double)e[r->n_events - 1].time - d->horizon)
            arrput(h->seen, e[i]);
        else arrput(h->held, e[i]);
}

void holdout_make(holdout *h, const dataset *d, size_t record, double share) {
    const dataset_record *r = &d->records[record];
    const mtan_event *e = dataset_events(d, r);
    const char *name = dataset_name(d, record);
    unsigned char *shown = tool_calloc((size_t)r->n_times, 1);
    int32_t time = -1;
    memset(h, 0, sizeof *h);
    if (d->horizon > 0) {
        holdout_future(h, d, r);
        free(shown);
        return;
    }
    choose_times(shown, r->n_times, share, mtan_bytes_hash(name, strlen(name)));
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

void shown_make(shown_records *s, const mtan_config *c, const dataset *d, const int32_t *positions, double share,
                size_t batch) {
    s->n = arrlenu(positions);
    s->holdout = tool_calloc(s->n, sizeof *s->holdout);
    s->records = tool_calloc(s->n, sizeof *s->records);
    for (size_t i = 0; i < s->n; i++) {
        holdout_make(&s->holdout[i], d, (size_t)positions[i], share);
        s->records[i] = dataset_view(d, (size_t)positions[i]);
        s->records[i].events = s->holdout[i].seen, s->records[i].n_events = (int32_t)arrlen(s->holdout[i].seen);
    }
    baseline_arrange(c, s->records, s->n, batch);
}

void shown_free(shown_records *s) {
    for (size_t i = 0; i < s->n; i++) holdout_free(&s->holdout[i]);
    free(s->holdout), free(s->records);
    memset(s, 0, sizeof *s);
}

typedef struct interpolation_job {
    const interpolation_request *request;
    shown_records shown;
    record_error *error; /* (n) */
    band_point **points; /* (n) stb_ds arrays: what was held out */
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

/* Mean squared error of a record as latent_ode measures it: the mean over a channel's points, then over all channels. A channel
 * without a point counts as 0. */
static double error_by_channel(const mtan_event *e, size_t n, const mtan_real *times, size_t queries,
                               const mtan_real *mean, size_t channels) {
    double *sum = tool_calloc(2 * channels, sizeof *sum), *count = sum + channels, total = 0;
    for (size_t i = 0; i < n; i++) {
        sum[e[i].channel] += squared_errors(&e[i], 1, times, queries, mean, channels);
        count[e[i].channel]++;
    }
    for (size_t d = 0; d < channels; d++) total += count[d] > 0 ? sum[d] / count[d] : 0;
    free(sum);
    return total / (double)channels;
}

/* Time from an event to the nearest seen event of its channel. */
static double gap_of(const mtan_event *e, const mtan_event *seen, size_t n) {
    double gap = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (seen[i].channel == e->channel) gap = fmin(gap, fabs((double)seen[i].time - (double)e->time));
    return gap;
}

/* The factor by which a model file widens the bands of a channel. */
static double widening(const prep *p, int32_t channel) {
    const int there = p && channel < (int32_t)arrlen(p->channel) && (p->channel[channel].has & MTAN_HAS_BAND);
    return there ? (double)p->channel[channel].band : 1;
}

/* The held-out events with their predictions. A fixed noise variance is not part of the model's sd, so it is added. */
static band_point *held_points(const interpolation_request *q, const mtan_config *c, const holdout *h,
                               const mtan_real *times, size_t queries, const mtan_real *mean, const mtan_real *std) {
    const double noise = c->variance == MTAN_VARIANCE_FIXED ? c->noise_std : 0;
    band_point *points = NULL;
    for (size_t i = 0; i < arrlenu(h->held); i++) {
        const mtan_event *e = &h->held[i];
        const mtan_real *time = bsearch(&e->time, times, queries, sizeof *times, compare_times);
        const size_t at = (size_t)(time - times) * (size_t)c->channels + (size_t)e->channel;
        const band_point p = {(double)e->value - (double)mean[at],
                              widening(q->prep, e->channel) * hypot((double)std[at], noise),
                              gap_of(e, h->seen, arrlenu(h->seen)), e->channel};
        arrput(points, p);
    }
    return points;
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
    const size_t channels = (size_t)predictor->model->config.channels;
    const dataset_record *r = &q->data->records[q->positions[index]];
    const holdout *h = &job->shown.holdout[index];
    record_error *error = &job->error[index];
    mtan_record record = job->shown.records[index];
    mtan_real *times = query_times(q->data, r), *mean = tool_calloc(arrlenu(times) * channels, sizeof *mean);
    mtan_real *std = tool_calloc(arrlenu(times) * channels, sizeof *std);
    mtan_status status = MTAN_OK;
    record.times = times, record.n_times = (int32_t)arrlen(times);
    if (arrlen(times) > 0) status = mtan_predictor_interpolate(predictor, &record, mean, std);
    if (status == MTAN_OK) {
        error->held = squared_errors(h->held, arrlenu(h->held), times, arrlenu(times), mean, channels);
        error->all = error->held + squared_errors(h->seen, arrlenu(h->seen), times, arrlenu(times), mean, channels);
        error->truth =
            squared_errors(dataset_truth(q->data, r), (size_t)r->n_truth, times, arrlenu(times), mean, channels);
        error->by_channel =
            error_by_channel(dataset_events(q->data, r), (size_t)r->n_events, times, arrlenu(times), mean, channels);
        error->held_points = arrlenu(h->held), error->points = (size_t)r->n_events,
        error->truth_points = (size_t)r->n_truth;
        job->points[index] = held_points(q, &predictor->model->config, h, times, arrlenu(times), mean, std);
    }
    arrfree(times), free(mean), free(std);
    return status;
}

static mtan_status interpolate_chunk(void *context, mtan_predictor *predictor, size_t first, size_t count) {
    mtan_status status = MTAN_OK;
    for (size_t i = first; i < first + count && status == MTAN_OK; i++)
        status = interpolate_record(context, predictor, i);
    return status;
}

/* Ratios of sums over chunks of `pooled` records, averaged with the number of records as weight (Q22). With all records
 * in one chunk this pools over points. */
static void pool_errors(interpolation_error *e, const record_error *r, size_t n, size_t pooled) {
    double all = 0, held = 0, truth = 0;
    memset(e, 0, sizeof *e);
    for (size_t first = 0; first < n; first += pooled) {
        const size_t count = n - first < pooled ? n - first : pooled;
        record_error sum = {0};
        for (size_t i = first; i < first + count; i++) {
            sum.all += r[i].all, sum.held += r[i].held, sum.truth += r[i].truth;
            sum.points += r[i].points, sum.held_points += r[i].held_points, sum.truth_points += r[i].truth_points;
        }
        all += sum.all / (double)sum.points * (double)count;
        held += sum.held / (double)sum.held_points * (double)count;
        truth += sum.truth / (double)sum.truth_points * (double)count;
        e->points += sum.points, e->held_points += sum.held_points;
    }
    for (size_t i = 0; i < n; i++) e->by_channel += r[i].by_channel / (double)n;
    e->all = all / (double)n, e->held = held / (double)n, e->truth = truth / (double)n;
}

/* Interval of the sum of squares over the number of points, by resampling records. */
static interval ratio_range(const double *above, const double *below, size_t n, int32_t draws) {
    const interval none = {NAN, NAN};
    metric_quotient q = {above, below, NULL};
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

/* Measures the bands on the held-out points of all records. */
static void measure_bands(interpolation_error *e, const interpolation_job *job, const mtan_config *c, size_t n) {
    band_point *all = NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < arrlenu(job->points[i]); k++) arrput(all, job->points[i][k]);
    bands_measure(&e->bands, all);
    if (job->request->fitted) bands_fit(job->request->fitted, c->channels, all);
    arrfree(all);
}

int interpolation_measure(interpolation_error *e, runner *run, const interpolation_request *q, int32_t draws) {
    const size_t n = arrlenu(q->positions);
    interpolation_job job;
    int good;
    job.request = q;
    job.error = tool_calloc(n, sizeof *job.error);
    job.points = tool_calloc(n, sizeof *job.points);
    shown_make(&job.shown, &run->model->config, q->data, q->positions, q->share, q->batch);
    good = runner_each(run, n, interpolate_chunk, &job);
    if (good) {
        pool_errors(e, job.error, n, q->pooled ? q->pooled : n);
        error_ranges(e, job.error, n, draws);
        measure_bands(e, &job, &run->model->config, n);
        if (q->each) memcpy(q->each, job.error, n * sizeof *q->each);
    }
    shown_free(&job.shown);
    for (size_t i = 0; i < n; i++) arrfree(job.points[i]);
    free(job.error), free(job.points);
    return good;
}
