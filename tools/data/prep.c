/* See prep.h: fitting, applying and matching; prep_text.c writes and reads. Only PREP_PUBLISHED looks at records
 * outside the training part. */
#define MTAN_INTERNALS
#include "prep.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "percentile.h"

#ifdef MTAN_DOUBLE
#define LARGEST DBL_MAX
#else
#define LARGEST FLT_MAX
#endif

mtan_prep_channel prep_untouched(void) {
    mtan_prep_channel c;
    memset(&c, 0, sizeof c);
    c.scale = 1;
    return c;
}

mtan_prep prep_view(const prep *p, int part) {
    mtan_prep view;
    memset(&view, 0, sizeof view);
    view.channels = (int32_t)arrlen(p->channel), view.classes = (int32_t)arrlen(p->classes);
    view.fitted = 1, view.from_first = p->from_first;
    view.positive = p->positive >= 0 ? p->positive : view.classes == 2 ? 1 : -1;
    view.time_scale = p->time_scale[part];
    view.first = p->first, view.last = p->last;
    view.unit = p->unit;
    view.channel = p->channel, view.number = p->number;
    view.statics = p->statics;
    view.channel_names = (const char *const *)p->channels, view.class_names = (const char *const *)p->classes;
    return view;
}

static mtan_real clipped(const mtan_prep_channel *c, mtan_real x) {
    if ((c->has & MTAN_HAS_LOW) && x < c->low) return c->low;
    return (c->has & MTAN_HAS_HIGH) && x > c->high ? c->high : x;
}

/* A divisor that keeps finite values finite, or 1. */
static mtan_real usable(mtan_real scale) {
    return (scale < 0 || scale > 0) && scale >= -LARGEST && scale <= LARGEST ? scale : 1;
}

/* ---- fitting values ---- */

/* The values of some records, grouped by channel. */
typedef struct columns {
    mtan_real *value;
    size_t *first; /* (D + 1) */
} columns;

/* Called for each event of the first `parts` parts, except codes of missing values. */
typedef void (*visit)(columns *c, size_t channel, mtan_real value);

static int is_code(const mtan_prep_channel *c, mtan_real value) {
    return (c->has & MTAN_HAS_MISSING) && value == c->missing;
}

static void visit_events(columns *c, const prep *p, const dataset *d, const split *s, int parts, visit body) {
    for (int part = 0; part < parts; part++)
        for (size_t i = 0; i < arrlenu(s->part[part]); i++) {
            const dataset_record *r = &d->records[s->part[part][i]];
            const mtan_event *e = dataset_events(d, r);
            for (int32_t k = 0; k < r->n_events; k++)
                if (!is_code(&p->channel[e[k].channel], e[k].value)) body(c, (size_t)e[k].channel, e[k].value);
        }
}

static void count_value(columns *c, size_t channel, mtan_real value) {
    (void)value;
    c->first[channel + 1]++;
}

/* first[channel] is the index of the channel's next value, and ends as the start of the next channel. */
static void put_value(columns *c, size_t channel, mtan_real value) {
    c->value[c->first[channel]++] = value;
}

static columns gather(const prep *p, const dataset *d, const split *s, int parts) {
    const size_t channels = arrlenu(p->channel);
    columns c;
    c.first = tool_calloc(channels + 2, sizeof *c.first);
    c.first++; /* so that after put_value first[-1] = 0 starts channel 0 */
    visit_events(&c, p, d, s, parts, count_value);
    for (size_t k = 0; k < channels; k++) c.first[k + 1] += c.first[k];
    c.value = tool_calloc(c.first[channels], sizeof *c.value);
    visit_events(&c, p, d, s, parts, put_value);
    c.first--;
    return c;
}

static void find_range(mtan_real *low, mtan_real *high, const mtan_real *x, size_t n) {
    *low = *high = x[0];
    for (size_t i = 1; i < n; i++) {
        if (x[i] < *low) *low = x[i];
        if (x[i] > *high) *high = x[i];
    }
}

static void fit_clip(mtan_prep_channel *c, const mtan_real *x, size_t n) {
    double *sorted = tool_calloc(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++) sorted[i] = (double)x[i];
    sort_ascending(sorted, n);
    const mtan_real low = (mtan_real)percentile_sorted(sorted, n, 0.1);
    const mtan_real high = (mtan_real)percentile_sorted(sorted, n, 99.9);
    if (low < high) c->low = low, c->high = high, c->has |= MTAN_HAS_LOW | MTAN_HAS_HIGH;
    free(sorted);
}

static void fit_zscore(mtan_prep_channel *c, const mtan_real *x, size_t n) {
    mtan_real low, high;
    double sum = 0, squares = 0, mean;
    fit_clip(c, x, n);
    for (size_t i = 0; i < n; i++) sum += (double)clipped(c, x[i]);
    mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double apart = (double)clipped(c, x[i]) - mean;
        squares += apart * apart;
    }
    find_range(&low, &high, x, n); /* due to rounding, equal values can have a small deviation */
    c->offset = (mtan_real)mean;
    c->scale = low < high ? usable((mtan_real)sqrt(squares / (double)n)) : 1;
}

static void fit_channel(mtan_prep_channel *c, prep_kind kind, const mtan_real *x, size_t n) {
    mtan_real low, high;
    if (n == 0) return;
    if (kind == PREP_ZSCORE) {
        fit_zscore(c, x, n);
        return;
    }
    find_range(&low, &high, x, n);
    c->offset = low;
    c->scale = usable(kind == PREP_PUBLISHED ? high : high - low);
}

static void fit_values(prep *p, const dataset *d, const split *s) {
    columns c = gather(p, d, s, p->kind == PREP_PUBLISHED ? SPLIT_PARTS : SPLIT_TRAIN + 1);
    for (size_t k = 0; k < arrlenu(p->channel); k++)
        fit_channel(&p->channel[k], p->kind, c.value + c.first[k], c.first[k + 1] - c.first[k]);
    free(c.value), free(c.first);
}

/* The range of the training values, which reveals a record in another unit. */
static void fit_ranges(prep *p, const dataset *d, const split *s) {
    columns c = gather(p, d, s, SPLIT_TRAIN + 1);
    for (size_t k = 0; k < arrlenu(p->channel); k++) {
        mtan_prep_channel *channel = &p->channel[k];
        if (c.first[k + 1] == c.first[k]) continue;
        find_range(&channel->least, &channel->most, c.value + c.first[k], c.first[k + 1] - c.first[k]);
        channel->has |= MTAN_HAS_RANGE;
    }
    free(c.value), free(c.first);
}

/* ---- fitting times ---- */

static void fit_span(prep *p, const dataset *d, const int32_t *train) {
    p->first = INFINITY, p->last = -INFINITY;
    for (size_t i = 0; i < arrlenu(train); i++) {
        const dataset_record *r = &d->records[train[i]];
        if (r->n_events == 0) continue;
        p->first = fmin(p->first, (double)d->events[r->event0].time);
        p->last = fmax(p->last, (double)d->events[r->event0 + (size_t)r->n_events - 1].time);
    }
    if (!(p->first <= p->last)) p->first = 1, p->last = 0;
}

static double largest_time(const dataset *d, const int32_t *part) {
    double most = 0;
    for (size_t i = 0; i < arrlenu(part); i++) {
        const dataset_record *r = &d->records[part[i]];
        for (int32_t j = 0; j < r->n_events; j++) most = fmax(most, (double)d->events[r->event0 + (size_t)j].time);
        for (int32_t j = 0; d->label_times && j < r->n_labels; j++)
            most = fmax(most, (double)d->label_times[r->label0 + (size_t)j]);
    }
    return most > 0 ? most : 1;
}

static void fit_times(prep *p, const dataset *d, const split *s, double given) {
    const int each = p->kind == PREP_PUBLISHED || p->kind == PREP_TIMES;
    for (int part = 0; part < SPLIT_PARTS; part++)
        p->time_scale[part] = given > 0              ? given
                              : p->kind == PREP_NONE ? 1
                                                     : largest_time(d, s->part[each ? part : SPLIT_TRAIN]);
}

static char **copy_texts(char **from) {
    char **texts = NULL;
    for (size_t i = 0; i < arrlenu(from); i++) arrput(texts, tool_text(from[i]));
    return texts;
}

/* Mean and standard deviation of the training records' numbers: z-scores suit any optimiser. */
static void fit_number(prep *p, const dataset *d, const int32_t *records) {
    mtan_prep_unit unit = {0, 1};
    double sum = 0, squares = 0, n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < arrlenu(records); i++) {
            const dataset_record *r = &d->records[records[i]];
            for (size_t k = r->label0; k < r->label0 + (size_t)r->n_labels; k++) {
                const double x = (double)d->numbers[k];
                if (isnan(x)) continue;
                if (pass == 0) sum += x, n++;
                else squares += (x - unit.offset) * (x - unit.offset);
            }
        }
        if (n > 0) unit.offset = sum / n;
    }
    if (squares > 0) unit.scale = sqrt(squares / n);
    arrput(p->number, unit);
}

void prep_fit(prep *p, const dataset *d, const split *s, prep_kind kind, double time_scale, const mtan_real *missing) {
    memset(p, 0, sizeof *p);
    p->kind = kind, p->positive = -1;
    p->channels = copy_texts(d->channels);
    p->classes = copy_texts(d->classes);
    snprintf(p->unit, sizeof p->unit, "%s", d->unit);
    for (size_t k = 0; k < arrlenu(d->channels); k++) {
        arrput(p->channel, prep_untouched());
        if (!missing || isnan(missing[k])) continue;
        p->channel[k].missing = missing[k], p->channel[k].has |= MTAN_HAS_MISSING;
    }
    if (kind != PREP_NONE && kind != PREP_TIMES) fit_values(p, d, s);
    fit_ranges(p, d, s);
    fit_times(p, d, s, time_scale);
    fit_span(p, d, s->part[SPLIT_TRAIN]);
    if (d->task == MTAN_TASK_NUMBER) fit_number(p, d, s->part[SPLIT_TRAIN]);
}

/* ---- applying ---- */

mtan_real prep_time(const prep *p, int part, double time) {
    const mtan_prep view = prep_view(p, part);
    return mtan_prep_time(&view, time);
}

int32_t prep_events(const prep *p, int part, mtan_event *events, int32_t n) {
    const mtan_prep view = prep_view(p, part);
    return mtan_prep_scale(&view, events, n);
}

static void apply_record(const prep *p, int part, dataset *d, dataset_record *r) {
    mtan_event *e = dataset_events(d, r);
    r->n_events = prep_events(p, part, e, r->n_events);
    r->n_times = r->n_events > 0;
    for (int32_t i = 1; i < r->n_events; i++) r->n_times += e[i].time > e[i - 1].time;
    r->n_truth = prep_events(p, part, dataset_truth(d, r), r->n_truth);
    for (size_t k = r->label0; d->task == MTAN_TASK_NUMBER && k < r->label0 + (size_t)r->n_labels; k++) {
        const mtan_prep view = prep_view(p, part);
        d->numbers[k] = mtan_prep_number(&view, 0, (double)d->numbers[k]);
    }
    for (int32_t i = 0; d->label_times && i < r->n_labels; i++) {
        mtan_real *time = &d->label_times[r->label0 + (size_t)i];
        *time = prep_time(p, part, (double)*time);
    }
}

void prep_apply(const prep *p, dataset *d, const split *s) {
    if (!s)
        for (size_t i = 0; i < arrlenu(d->records); i++) apply_record(p, SPLIT_TEST, d, &d->records[i]);
    for (int part = 0; s && part < SPLIT_PARTS; part++)
        for (size_t i = 0; i < arrlenu(s->part[part]); i++) apply_record(p, part, d, &d->records[s->part[part][i]]);
}

double prep_raw_time(const prep *p, int part, double time) {
    const mtan_prep view = prep_view(p, part);
    return mtan_prep_raw_time(&view, time);
}

double prep_raw_value(const prep *p, int32_t channel, double value) {
    const mtan_prep view = prep_view(p, SPLIT_TEST);
    return mtan_prep_raw_value(&view, channel, value);
}

double prep_raw_spread(const prep *p, int32_t channel, double value) {
    const mtan_prep view = prep_view(p, SPLIT_TEST);
    return mtan_prep_raw_spread(&view, channel, value);
}

/* ---- matching ---- */

int32_t prep_match(const prep *p, char **channels, int32_t *map, int32_t *absent) {
    const size_t n = arrlenu(p->channel);
    int32_t *order = tool_calloc(n, sizeof *order), unknown = 0;
    char *found = tool_calloc(n, 1);
    mtan_prep view = prep_view(p, SPLIT_TEST);
    if (p->channels) mtan_names_sort(order, view.channel_names, view.channels), view.order = order;
    *absent = (int32_t)n;
    for (size_t i = 0; i < arrlenu(channels); i++) {
        map[i] = mtan_prep_channel_named(&view, channels[i]);
        if (map[i] < 0) unknown++;
        else *absent -= !found[map[i]], found[map[i]] = 1;
    }
    free(order), free(found);
    return unknown;
}

static void free_texts(char **texts) {
    for (size_t i = 0; i < arrlenu(texts); i++) free(texts[i]);
    arrfree(texts);
}

void prep_free(prep *p) {
    arrfree(p->channel), arrfree(p->number);
    free_texts(p->channels), free_texts(p->classes);
    memset(p, 0, sizeof *p);
}
