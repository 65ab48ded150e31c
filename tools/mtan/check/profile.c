/* See profile.h. Sections: channels; times; labels and twins; leakage; suggestions; cost. */
#include "profile.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "../../../platform/pool.h"
#include "../../data/buckets.h"
#include "../../data/percentile.h"
#include "../base/messages.h"
#include "../run/bounds.h"
#include "../run/solver_room.h"

/* The p-th percentile; NaN without values. */
static double percentile(const double *ascending, size_t n, double p) {
    return n ? percentile_sorted(ascending, n, p) : NAN;
}

/* ---- channels ---- */

/* Values that are often written for "missing". Ages of 99 and the like are real, so find_code adds further
 * conditions. */
static int is_code(double x) {
    static const double codes[] = {-1, -9, -99, -999, -9999, -99999, 99, 999, 9999, 99999, 999999};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (!(x < codes[i]) && !(x > codes[i])) return 1;
    return 0;
}

/* A code is the lowest or highest value, occurs more than once, and is half its own size away from the next value. {-1,
 * 1} is a sign, not a code. */
static void find_code(channel_profile *c, const double *ascending, size_t n) {
    size_t low = 0, high = 0;
    while (low < n && ascending[low] <= ascending[0]) low++;
    while (high < n && ascending[n - 1 - high] >= ascending[n - 1]) high++;
    c->code = NAN;
    if (low == n) return; /* constant */
    if (low > 1 && is_code(ascending[0]) && ascending[low] - ascending[0] >= fabs(ascending[0]) / 2 &&
        !(low + high == n && ascending[n - 1] <= -ascending[0] && ascending[n - 1] >= -ascending[0])) {
        c->code = ascending[0], c->codes = low;
    } else if (high > 1 && is_code(ascending[n - 1]) && ascending[n - 1] > 0 &&
               ascending[n - 1] - ascending[n - 1 - high] >= ascending[n - 1] / 2) {
        c->code = ascending[n - 1], c->codes = high;
    }
}

static void describe_channel(channel_profile *c, double *values, size_t n, size_t stamps) {
    sort_ascending(values, n);
    c->observations = n;
    c->share = stamps ? (double)n / (double)stamps : 0;
    c->low = n ? values[0] : NAN, c->high = n ? values[n - 1] : NAN;
    c->median = percentile(values, n, 50);
    c->constant = n > 1 && c->low >= c->high;
    find_code(c, values, n);
}

static void count_records(profile *p, const dataset *d) {
    size_t *last = tool_calloc(arrlenu(p->channels), sizeof *last); /* the last record counted, + 1 */
    for (size_t i = 0; i < arrlenu(d->records); i++)
        for (int32_t k = 0; k < d->records[i].n_events; k++) {
            const size_t c = (size_t)d->events[d->records[i].event0 + (size_t)k].channel;
            if (last[c] != i + 1) p->channels[c].records++;
            last[c] = i + 1;
        }
    free(last);
}

/* Groups all values by channel, then describes each channel. */
static void find_channels(profile *p, const dataset *d) {
    const size_t D = arrlenu(d->channels), n = arrlenu(d->events);
    size_t *start = tool_calloc(D + 1, sizeof *start), *at = tool_calloc(D, sizeof *at);
    double *values = tool_calloc(n, sizeof *values);
    for (size_t i = 0; i < n; i++) start[(size_t)d->events[i].channel + 1]++;
    for (size_t c = 0; c < D; c++) start[c + 1] += start[c], at[c] = start[c];
    for (size_t i = 0; i < n; i++) values[at[d->events[i].channel]++] = (double)d->events[i].value;
    arrsetlen(p->channels, D);
    if (D) memset(p->channels, 0, D * sizeof *p->channels);
    for (size_t c = 0; c < D; c++)
        describe_channel(&p->channels[c], values + start[c], start[c + 1] - start[c], p->stamps);
    count_records(p, d);
    free(start), free(at), free(values);
}

/* ---- times ---- */

static void find_gaps(profile *p, const dataset *d, size_t record, double **gaps) {
    const dataset_record *r = &d->records[record];
    const mtan_event *e = dataset_events(d, r);
    for (int32_t k = 1; k < r->n_events; k++) {
        const double gap = (double)e[k].time - (double)e[k - 1].time;
        if (!(gap > 0)) continue;
        arrput(*gaps, gap);
        if (!(gap <= p->gap_largest)) p->gap_largest = gap, p->gap_record = record; /* the first replaces NaN */
    }
    if (r->n_events == 0) return;
    if (!(p->first <= (double)e[0].time)) p->first = (double)e[0].time;
    if (!(p->last >= (double)e[r->n_events - 1].time)) p->last = (double)e[r->n_events - 1].time;
}

static void find_times(profile *p, const dataset *d) {
    double *gaps = NULL, *stamps = tool_calloc(p->records, sizeof *stamps);
    p->first = p->last = p->gap_largest = NAN;
    for (size_t i = 0; i < p->records; i++) {
        find_gaps(p, d, i, &gaps);
        stamps[i] = (double)d->records[i].n_times;
        p->stamps += (size_t)d->records[i].n_times;
        p->observations += (size_t)d->records[i].n_events;
        p->unobserved += d->records[i].n_events == 0;
        p->single += d->records[i].n_times == 1;
    }
    sort_ascending(gaps, arrlenu(gaps));
    sort_ascending(stamps, p->records);
    p->gap_median = percentile(gaps, arrlenu(gaps), 50);
    for (int q = 0; q < 5; q++) p->stamps_quantile[q] = percentile(stamps, p->records, q * 25.0);
    arrfree(gaps);
    free(stamps);
}

/* ---- labels and twins ---- */

/* A row counts for its class; with several labels, for each label that is true. */
static void count_row(profile *p, const dataset *d, size_t row) {
    const size_t C = arrlenu(p->classes);
    const int32_t label = d->labels[row];
    if (label < 0 || (size_t)label >= C) return;
    p->labels++;
    if (d->task != MTAN_TASK_LABELS) p->classes[label]++;
    else
        for (size_t c = 0; c < C; c++) p->classes[c] += d->numbers[row * C + c] > 0;
}

static void count_labels(profile *p, const dataset *d) {
    arrsetlen(p->classes, arrlenu(d->classes));
    for (size_t c = 0; c < arrlenu(p->classes); c++) p->classes[c] = 0;
    for (size_t i = 0; i < p->records; i++) {
        const size_t before = p->labels;
        for (size_t k = 0; k < (size_t)d->records[i].n_labels; k++) count_row(p, d, d->records[i].label0 + k);
        p->labelled += p->labels > before;
    }
}

/* Hashes the observations only, and field by field, as an mtan_event may have padding. */
static uint64_t content_hash(const dataset *d, const dataset_record *r, unsigned char **bytes) {
    enum { EVENT = 2 * sizeof(mtan_real) + sizeof(int32_t) };
    arrsetlen(*bytes, (size_t)r->n_events * EVENT);
    for (size_t k = 0; k < (size_t)r->n_events; k++) {
        const mtan_event *e = &d->events[r->event0 + k];
        unsigned char *to = *bytes + k * EVENT;
        memcpy(to, &e->time, sizeof e->time);
        memcpy(to + sizeof e->time, &e->value, sizeof e->value);
        memcpy(to + sizeof e->time + sizeof e->value, &e->channel, sizeof e->channel);
    }
    return mtan_bytes_hash(*bytes, arrlenu(*bytes));
}

static int same_real(mtan_real a, mtan_real b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static int same_content(const dataset *d, size_t a, size_t b) {
    const dataset_record *x = &d->records[a], *y = &d->records[b];
    if (x->n_events != y->n_events) return 0;
    for (size_t k = 0; k < (size_t)x->n_events; k++) {
        const mtan_event *e = &d->events[x->event0 + k], *f = &d->events[y->event0 + k];
        if (e->channel != f->channel || !same_real(e->time, f->time) || !same_real(e->value, f->value)) return 0;
    }
    return 1;
}

static int same_labels(const dataset *d, size_t a, size_t b) {
    const dataset_record *x = &d->records[a], *y = &d->records[b];
    const size_t n = (size_t)x->n_labels, cells = d->numbers ? n * arrlenu(d->classes) : 0;
    if (x->n_labels != y->n_labels || n == 0) return x->n_labels == y->n_labels;
    return memcmp(d->labels + x->label0, d->labels + y->label0, n * sizeof *d->labels) == 0 &&
           (cells == 0 || memcmp(dataset_numbers(d, x), dataset_numbers(d, y), cells * sizeof *d->numbers) == 0);
}

typedef struct content {
    uint64_t hash;
    size_t record;
} content;

static int by_hash(const void *a, const void *b) {
    const content *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->record < y->record ? -1 : 1;
}

static content *hash_contents(const dataset *d) {
    unsigned char *bytes = NULL;
    content *all = NULL;
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        const content c = {content_hash(d, &d->records[i], &bytes), i};
        if (d->records[i].n_events > 0) arrput(all, c);
    }
    if (all) qsort(all, arrlenu(all), sizeof *all, by_hash);
    arrfree(bytes);
    return all;
}

/* Equal contents have equal hashes and are adjacent, with the first record first. Hash collisions are practically
 * impossible; one between equal records would only hide a twin. */
static void find_twins(profile *p, const dataset *d) {
    content *all = hash_contents(d);
    arrsetlen(p->twin, p->records);
    for (size_t i = 0; i < p->records; i++) p->twin[i] = -1;
    for (size_t i = 0, first = 0; i < arrlenu(all); i++) {
        const size_t record = all[i].record;
        if (i == 0 || all[i].hash != all[first].hash || !same_content(d, all[first].record, record)) first = i;
        p->twin[record] = (int32_t)all[first].record;
        if (first == i) continue;
        if (p->twins++ == 0 || record < p->twin_example) p->twin_example = record;
        p->contradicting += !same_labels(d, all[first].record, record);
    }
    arrfree(all);
}

void profile_make(profile *p, const dataset *d) {
    memset(p, 0, sizeof *p);
    p->records = arrlenu(d->records);
    find_times(p, d);
    find_channels(p, d);
    count_labels(p, d);
    find_twins(p, d);
    p->sparsity = 1 - (double)p->observations / ((double)p->stamps * (double)arrlenu(d->channels)); /* NaN: no cells */
}

void profile_free(profile *p) {
    arrfree(p->channels);
    arrfree(p->classes);
    arrfree(p->twin);
}

/* ---- leakage ---- */

static void count_groups(leakage *l, const dataset *d, const split *s) {
    int32_t *group = NULL, training = (int32_t)arrlen(s->part[SPLIT_TRAIN]); /* training records come first */
    buckets b;
    for (int part = SPLIT_TRAIN; part < SPLIT_PARTS; part++)
        for (size_t i = 0; i < arrlenu(s->part[part]); i++) arrput(group, d->records[s->part[part][i]].group);
    b = buckets_fill(group, arrlenu(group));
    for (size_t g = 0; g < b.n; g++) {
        const int32_t first = b.first[g], end = b.first[g + 1];
        int32_t outside = 0;
        for (int32_t k = first; k < end; k++) outside += b.member[k] >= training;
        if (group[b.member[first]] < 0) continue;
        l->groups++;
        if (outside == 0 || outside == end - first) continue;
        l->shared_groups++;
        l->shared_records += (size_t)outside;
    }
    buckets_free(&b);
    arrfree(group);
}

leakage profile_leakage(const profile *p, const dataset *d, const split *s) {
    int32_t *training = tool_calloc(p->records, sizeof *training); /* (first twin) a training record + 1 */
    leakage l;
    memset(&l, 0, sizeof l);
    for (size_t i = arrlenu(s->part[SPLIT_TRAIN]); i-- > 0;) {
        const int32_t record = s->part[SPLIT_TRAIN][i];
        if (p->twin[record] >= 0) training[p->twin[record]] = record + 1;
    }
    for (int part = SPLIT_TRAIN + 1; part < SPLIT_PARTS; part++)
        for (size_t i = 0; i < arrlenu(s->part[part]); i++) {
            const int32_t record = s->part[part][i], twin = p->twin[record];
            if (twin < 0 || !training[twin]) continue;
            if (l.twins++ == 0) l.twin_outside = (size_t)record, l.twin_training = (size_t)training[twin] - 1;
        }
    free(training);
    count_groups(&l, d, s);
    return l;
}

/* ---- suggestions ---- */

static int32_t power_from(double x, int32_t low, int32_t high) {
    int32_t power = low;
    while (power < high && (double)power < x) power *= 2;
    return power;
}

suggestion profile_suggest(const profile *p, const dataset *d) {
    const size_t n = p->labelled ? p->labelled : p->records;
    suggestion s;
    size_t classes = 0;
    for (size_t c = 0; c < arrlenu(p->classes); c++) classes += p->classes[c] > 0;
    const int learns =
        d->task == MTAN_TASK_CLASSES ? classes >= 2 : classes >= 1; /* with one class there is nothing to learn */
    s.model = !learns ? "interp" : d->label_times ? "per-time" : "enc";
    s.batch = 4;
    while (s.batch < 64 && (size_t)s.batch * 2 * 20 <= n) s.batch *= 2;
    s.hidden = n < 500 ? 32 : n < 2000 ? 64 : 128;
    s.ref_points = power_from(p->stamps_quantile[2], 8, 128);
    return s;
}

/* ---- cost ---- */

/* Batch number `step`: every steps-th training record, so that each batch represents all of them. */
static int32_t fill_batch(mtan_record *records, const dataset *d, const int32_t *training, int32_t batch, size_t step,
                          size_t steps) {
    int32_t n = 0;
    for (size_t i = step; i < arrlenu(training) && n < batch; i += steps)
        records[n++] = dataset_view(d, (size_t)training[i]);
    return n;
}

static double time_step(cost *c, mtan_trainer *trainer, const mtan_record *records, int32_t n) {
    const double start = seconds();
    mtan_report report;
    c->status = mtan_trainer_step(trainer, records, n, 1, &report);
    return seconds() - start;
}

/* First an eighth of a batch, which touches the memory and shows whether a whole batch is affordable. Then the minimum
 * over the steps that fit into `most` seconds, as a busy machine only adds time; a hundred steps are enough for small
 * data. */
static void time_steps(cost *c, mtan_trainer *trainer, const dataset *d, const int32_t *training, int32_t batch,
                       double most) {
    mtan_record *records = tool_calloc((size_t)batch, sizeof *records);
    const int32_t all = fill_batch(records, d, training, batch, 0, (size_t)c->steps), few = (all + 7) / 8;
    const double start = seconds(), used = (double)clock();
    const double guess = time_step(c, trainer, records, few) * (double)all / (double)few;
    c->step_seconds = guess;
    c->rough = !(guess < most);
    for (size_t step = 0; step < 100 && guess < most && c->status == MTAN_OK && seconds() - start < most; step++) {
        const int32_t n = fill_batch(records, d, training, batch, step % (size_t)c->steps, (size_t)c->steps);
        const double taken = time_step(c, trainer, records, n);
        if (step == 0 || taken < c->step_seconds) c->step_seconds = taken;
    }
    c->cpu_share = ((double)clock() - used) / CLOCKS_PER_SEC / (seconds() - start) / trainer->config.threads;
    free(records);
}

static void run_trainer(cost *c, mtan_model *model, mtan_real *weights, mtan_train_config *train,
                        const mtan_bounds *bounds, const dataset *d, const int32_t *training, double most) {
    void *memory = tool_realloc(NULL, c->bytes); /* not cleared, so that pages which no batch needs stay untouched */
    mtan_trainer trainer;
    c->status = mtan_trainer_init(&trainer, model, weights, train, bounds, memory, c->bytes);
    if (c->status == MTAN_OK) time_steps(c, &trainer, d, training, bounds->records, most);
    free(memory);
}

cost profile_cost(const mtan_config *config, mtan_train_config train, const mtan_backend *backend, const dataset *d,
                  const int32_t *training, int32_t batch, int32_t threads, double seconds, size_t most) {
    const size_t count = mtan_weights_count(config);
    mtan_real *weights = tool_calloc(count, sizeof *weights);
    mtan_bounds bounds = model_bounds(config, d);
    mtan_model model;
    mtan_pool pool;
    cost c = {count, 0, (int32_t)((arrlenu(training) + (size_t)batch - 1) / (size_t)batch), NAN, NAN, 0, MTAN_OK};
    bounds.records = batch;
    mtan_pool_start(&pool, threads); /* it may start fewer threads */
    train.threads = pool.threads, train.parallel_for = mtan_pool_run, train.parallel_context = &pool;
    c.status = mtan_weights_init(config, weights, count, 0);
    if (c.status == MTAN_OK) c.status = mtan_model_init(&model, config, weights, count);
    model.backend = backend;
    for (int again = c.status == MTAN_OK; again;) {
        c.status = mtan_trainer_size(&model, &train, &bounds, &c.bytes);
        if (c.status == MTAN_OK && c.bytes <= most && c.steps > 0)
            run_trainer(&c, &model, weights, &train, &bounds, d, training, seconds);
        again = c.status == MTAN_ERR_MEMORY && grow_steps(&model.config);
    }
    mtan_pool_stop(&pool);
    free(weights);
    return c;
}
