/* See summaries.h. */
#include "summaries.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"

/* ---- channels of a record ---- */

series_set series_new(const dataset *d) {
    series_set s = {NULL, NULL, arrlenu(d->channels)};
    s.first = tool_calloc(s.channels + 1, sizeof *s.first);
    return s;
}

void series_fill(series_set *s, const mtan_event *e, size_t n) {
    memset(s->first, 0, (s->channels + 1) * sizeof *s->first);
    for (size_t i = 0; i < n; i++) s->first[e[i].channel + 1]++;
    for (size_t d = 0; d < s->channels; d++) s->first[d + 1] += s->first[d];
    arrsetlen(s->seen, n);
    for (size_t i = n; i-- > 0;) { /* backwards: each channel's end moves down to its start */
        const mtan_observation seen = {(double)e[i].time, e[i].channel, (double)e[i].value};
        s->seen[--s->first[e[i].channel + 1]] = seen;
    }
    for (size_t d = 0; d < s->channels; d++) s->first[d] = s->first[d + 1];
    s->first[s->channels] = (int32_t)n;
}

rival_series series_of(const series_set *s, size_t channel) {
    const int32_t first = s->first[channel];
    return (rival_series){s->seen ? s->seen + first : NULL, s->first[channel + 1] - first};
}

void series_free(series_set *s) {
    arrfree(s->seen), free(s->first);
}

/* ---- rows ---- */

summary_row *summary_rows(const dataset *d, const int32_t *positions) {
    summary_row *rows = NULL;
    for (size_t i = 0; i < arrlenu(positions); i++) {
        const dataset_record *r = &d->records[positions[i]];
        for (size_t k = r->label0; k < r->label0 + (size_t)r->n_labels; k++) {
            const summary_row row = {positions[i], d->labels[k], k, d->label_times ? (double)d->label_times[k] : NAN};
            if (row.label != MTAN_UNLABELED) arrput(rows, row);
        }
    }
    return rows;
}

enum { AT_A_TIME = 3 };

static size_t features_of(const dataset *d) {
    return arrlenu(d->channels) * (d->label_times ? AT_A_TIME : RIVAL_SUMMARIES);
}

static void describe(const series_set *s, double time, double *out) {
    for (size_t d = 0; d < s->channels; d++) {
        double all[RIVAL_SUMMARIES];
        rival_summarise(series_of(s, d), all);
        if (isnan(time)) memcpy(out + d * RIVAL_SUMMARIES, all, sizeof all);
        else {
            const double three[AT_A_TIME] = {rival_linear(series_of(s, d), time, NAN), all[1], all[4]};
            memcpy(out + d * AT_A_TIME, three, sizeof three);
        }
    }
}

/* Neighbouring rows belong to one record, whose channels are sorted once. */
static summary_table table_make(const dataset *d, const summary_row *rows, size_t n, size_t every) {
    summary_table t = {NULL, NULL, NULL, n / every, features_of(d)};
    series_set s = series_new(d);
    int32_t record = -1;
    t.x = tool_calloc(t.n * t.features, sizeof *t.x);
    t.label = tool_calloc(t.n, sizeof *t.label), t.place = tool_calloc(t.n, sizeof *t.place);
    for (size_t i = 0; i < t.n; i++) {
        const summary_row *row = &rows[i * every];
        const dataset_record *r = &d->records[row->record];
        if (row->record != record) series_fill(&s, dataset_events(d, r), (size_t)r->n_events);
        record = row->record;
        describe(&s, row->time, t.x + i * t.features);
        t.label[i] = row->label, t.place[i] = row->place;
    }
    series_free(&s);
    return t;
}

static void table_free(summary_table *t) {
    free(t->x), free(t->label), free(t->place);
}

/* ---- fits ---- */

/* Most multiplications of a pass over the rows. A fit takes a few hundred passes, which at this size are a few
 * seconds. */
static const double WORK_MOST = 4e6;
enum { ROWS_LEAST = 20, VALID_PART = 5 };

static size_t thinning(size_t rows, size_t features, int32_t columns) {
    const double work = (double)rows * (double)features * columns;
    return work > WORK_MOST ? (size_t)ceil(work / WORK_MOST) : 1;
}

int summary_fit_make(summary_fit *f, const dataset *d, const summary_row *train, const summary_row *valid,
                     int32_t columns) {
    size_t n = arrlenu(train), kept;
    const size_t every = thinning(n, features_of(d), columns);
    if (features_of(d) == 0 || n / every < ROWS_LEAST) return 0;
    kept = arrlenu(valid) > 0 ? 0 : n / VALID_PART / every * every;
    f->train = table_make(d, train, n - kept, every);
    f->valid = kept ? table_make(d, train + (n - kept), kept, every)
                    : table_make(d, valid, arrlenu(valid), thinning(arrlenu(valid), features_of(d), columns));
    return 1;
}

void summary_fit_free(summary_fit *f) {
    table_free(&f->train), table_free(&f->valid);
}

double *summary_ask(const dataset *d, const summary_row *rows, summary_answer answer, const void *regression,
                    size_t width) {
    enum { AT_ONCE = 64 }; /* a table of all rows might be too large */
    const size_t n = arrlenu(rows);
    double *out = tool_calloc(n * width, sizeof *out);
    for (size_t first = 0; first < n; first += AT_ONCE) {
        summary_table t = table_make(d, rows + first, n - first < AT_ONCE ? n - first : AT_ONCE, 1);
        for (size_t i = 0; i < t.n; i++) answer(regression, t.x + i * t.features, out + (first + i) * width);
        table_free(&t);
    }
    return out;
}
