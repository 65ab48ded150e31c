/* See prep.h: fitting, applying and matching; prep_text.c writes and reads. Never looks at a record outside the
 * training part, but for PREP_PUBLISHED. */
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

/* ---- arithmetic, in mtan_real as the published code has it ---- */

static mtan_real between(mtan_real x, mtan_real low, mtan_real high) {
    return x < low ? low : x > high ? high : x; /* NaN stays */
}

static mtan_real model_value(const prep_channel *c, mtan_real x) {
    return between((between(x, c->low, c->high) - c->offset) / c->scale, -LARGEST, LARGEST);
}

prep_channel prep_untouched(void) {
    const prep_channel c = {0, 1, -(mtan_real)INFINITY, (mtan_real)INFINITY, (mtan_real)NAN};
    return c;
}

/* A divisor that leaves finite values finite, or 1. */
static mtan_real usable(mtan_real scale) {
    return (scale < 0 || scale > 0) && scale >= -LARGEST && scale <= LARGEST ? scale : 1;
}

/* ---- fitting values ---- */

/* The values of some records, channel after channel. */
typedef struct columns {
    mtan_real *value;
    size_t *first; /* (D + 1) */
} columns;

/* What to do with each event of the first `parts` parts that is not a missing code. */
typedef void (*visit)(columns *c, size_t channel, mtan_real value);

static void visit_events(columns *c, const prep *p, const dataset *d, const split *s, int parts, visit body) {
    for (int part = 0; part < parts; part++)
        for (size_t i = 0; i < arrlenu(s->part[part]); i++) {
            const dataset_record *r = &d->records[s->part[part][i]];
            for (const mtan_event *e = d->events + r->event0, *end = e + r->n_events; e < end; e++)
                if (!(e->value == p->channel[e->channel].missing)) body(c, (size_t)e->channel, e->value);
        }
}

static void count_value(columns *c, size_t channel, mtan_real value) {
    (void)value;
    c->first[channel + 1]++;
}

/* first[channel] is where the next value goes, and ends as the start of the next channel. */
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

static void fit_clip(prep_channel *c, const mtan_real *x, size_t n) {
    double *sorted = tool_calloc(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++) sorted[i] = (double)x[i];
    sort_ascending(sorted, n);
    const mtan_real low = (mtan_real)percentile_sorted(sorted, n, 0.1);
    const mtan_real high = (mtan_real)percentile_sorted(sorted, n, 99.9);
    if (low < high) c->low = low, c->high = high;
    free(sorted);
}

static void fit_zscore(prep_channel *c, const mtan_real *x, size_t n) {
    mtan_real low, high;
    double sum = 0, squares = 0, mean;
    fit_clip(c, x, n);
    for (size_t i = 0; i < n; i++) sum += (double)between(x[i], c->low, c->high);
    mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double apart = (double)between(x[i], c->low, c->high) - mean;
        squares += apart * apart;
    }
    find_range(&low, &high, x, n); /* rounding gives equal values a deviation */
    c->offset = (mtan_real)mean;
    c->scale = low < high ? usable((mtan_real)sqrt(squares / (double)n)) : 1;
}

static void fit_channel(prep_channel *c, prep_kind kind, const mtan_real *x, size_t n) {
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

/* ---- fitting times ---- */

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

void prep_fit(prep *p, const dataset *d, const split *s, prep_kind kind, double time_scale, const mtan_real *missing) {
    memset(p, 0, sizeof *p);
    p->kind = kind;
    p->channels = copy_texts(d->channels);
    p->classes = copy_texts(d->classes);
    snprintf(p->unit, sizeof p->unit, "%s", d->unit);
    for (size_t k = 0; k < arrlenu(d->channels); k++) {
        arrput(p->channel, prep_untouched());
        if (missing) p->channel[k].missing = missing[k];
    }
    if (kind != PREP_NONE && kind != PREP_TIMES) fit_values(p, d, s);
    fit_times(p, d, s, time_scale);
}

/* ---- applying ---- */

mtan_real prep_time(const prep *p, int part, double time) {
    return between((mtan_real)time / (mtan_real)p->time_scale[part], -LARGEST, LARGEST);
}

int32_t prep_events(const prep *p, int part, mtan_event *events, int32_t n) {
    const size_t channels = arrlenu(p->channel);
    const prep_channel other = prep_untouched();
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        mtan_event e = events[i];
        const prep_channel *c = e.channel >= 0 && (size_t)e.channel < channels ? &p->channel[e.channel] : &other;
        if (e.value == c->missing) continue;
        e.time = prep_time(p, part, (double)e.time);
        e.value = model_value(c, e.value);
        events[kept++] = e;
    }
    return kept;
}

static void apply_record(const prep *p, int part, dataset *d, dataset_record *r) {
    mtan_event *e = d->events + r->event0;
    r->n_events = prep_events(p, part, e, r->n_events);
    r->n_times = r->n_events > 0;
    for (int32_t i = 1; i < r->n_events; i++) r->n_times += e[i].time > e[i - 1].time;
    if (r->n_truth > 0) r->n_truth = prep_events(p, part, d->truth + r->truth0, r->n_truth);
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
    return time * p->time_scale[part];
}

double prep_raw_value(const prep *p, int32_t channel, double value) {
    return value * (double)p->channel[channel].scale + (double)p->channel[channel].offset;
}

double prep_raw_spread(const prep *p, int32_t channel, double value) {
    return value * fabs((double)p->channel[channel].scale); /* a published maximum may be negative */
}

/* ---- matching ---- */

typedef struct place {
    char *key;
    int32_t value;
} place;

static const char *without_zeros(const char *name) {
    if (name[0] == 0 || name[strspn(name, "0123456789")] != 0) return name;
    while (name[0] == '0' && name[1] != 0) name++;
    return name;
}

/* The number that a model without names calls its channel, or -1. */
static int32_t numbered(const char *name, size_t channels) {
    const char *digits = without_zeros(name);
    const size_t n = strlen(digits);
    const long number = n > 0 && n < 9 && strspn(digits, "0123456789") == n ? strtol(digits, NULL, 10) : -1;
    return number >= 0 && (size_t)number < channels ? (int32_t)number : -1;
}

static int32_t find_channel(const prep *p, place **places, const char *name) {
    ptrdiff_t at;
    if (!p->channels) return numbered(name, arrlenu(p->channel));
    at = shgeti(*places, name);
    if (at < 0) at = shgeti(*places, without_zeros(name));
    return at < 0 ? -1 : (*places)[at].value;
}

int32_t prep_match(const prep *p, char **channels, int32_t *map, int32_t *absent) {
    const size_t n = arrlenu(p->channel);
    char *found = tool_calloc(n, 1);
    place *places = NULL;
    int32_t unknown = 0;
    for (size_t k = 0; k < arrlenu(p->channels); k++) shput(places, p->channels[k], (int32_t)k);
    *absent = (int32_t)n;
    for (size_t i = 0; i < arrlenu(channels); i++) {
        map[i] = find_channel(p, &places, channels[i]);
        if (map[i] < 0) unknown++;
        else *absent -= !found[map[i]], found[map[i]] = 1;
    }
    shfree(places);
    free(found);
    return unknown;
}

static void free_texts(char **texts) {
    for (size_t i = 0; i < arrlenu(texts); i++) free(texts[i]);
    arrfree(texts);
}

void prep_free(prep *p) {
    arrfree(p->channel);
    free_texts(p->channels), free_texts(p->classes);
    memset(p, 0, sizeof *p);
}
