/* See golden_record.h. */
#include "golden_record.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../simd/mtan_simd.h"
#include "../base/json_text.h"
#include "../run/device.h"

enum { FEWEST = 8, MOST_EVENTS = 400, QUERIES = 5 };
static const double BETWEEN_CLASSES =
    1e-4; /* fused and unfused arithmetic differ by rounding, amplified by the model */

#define REAL_FORMAT (sizeof(mtan_real) == sizeof(float) ? "%.9g" : "%.17g") /* enough digits to restore the same bits */

/* ---- one record through a model ---- */

static size_t outputs(const mtan_config *c, size_t times) {
    if (c->classify == MTAN_CLASSIFY_RECORD) return (size_t)mtan_config_outputs(c);
    return times * (size_t)(c->classify == MTAN_CLASSIFY_TIME ? mtan_config_outputs(c) : c->channels);
}

size_t golden_record_size(const mtan_config *c, const golden_record *x) {
    return outputs(c, arrlenu(x->times));
}

mtan_status golden_record_run(mtan_predictor *p, golden_record *x, mtan_real *out) {
    x->record.events = x->events, x->record.n_events = (int32_t)arrlen(x->events);
    x->record.times = x->times, x->record.n_times = (int32_t)arrlen(x->times);
    if (p->model->config.classify == MTAN_CLASSIFY_NONE) return mtan_predictor_interpolate(p, &x->record, out, NULL);
    return mtan_predictor_classify(p, &x->record, 1, out);
}

void golden_record_free(golden_record *x) {
    arrfree(x->events), arrfree(x->times), arrfree(x->output);
}

/* ---- writing ---- */

/* The smallest record with FEWEST to MOST_EVENTS events: a test record if there is one, else validation, else training;
 * -1: none. */
static int64_t pick_record(const dataset *d, const split *s) {
    for (int part = SPLIT_TEST; part >= SPLIT_TRAIN; part--) {
        int64_t best = -1;
        for (size_t i = 0; i < arrlenu(s->part[part]); i++) {
            const dataset_record *r = &d->records[s->part[part][i]];
            if (r->n_events >= FEWEST && r->n_events <= MOST_EVENTS &&
                (best < 0 || r->n_events < d->records[best].n_events))
                best = s->part[part][i];
        }
        if (best >= 0) return best;
    }
    return -1;
}

static void add_reals(char **text, const mtan_real *x, size_t n) {
    char number[40];
    for (size_t i = 0; i < n; i++) {
        const int length = snprintf(number, sizeof number, REAL_FORMAT, (double)x[i]);
        memcpy(arraddnptr(*text, (size_t)length + 1), number, (size_t)length);
        arrlast(*text) = ' ';
    }
}

static void add_pair(mtan_file_pair **pairs, const char *key, char *text) {
    if (arrlen(text) > 0) arrlast(text) = 0;
    else arrput(text, 0);
    pairs_add(pairs, key, text);
    arrfree(text);
}

static void write_example(const golden_record *x, const mtan_real *out, size_t n, int fused, mtan_file_pair **pairs) {
    char *events = NULL, *times = NULL, *output = NULL, id[24];
    for (size_t i = 0; i < arrlenu(x->events); i++) {
        const mtan_real triple[3] = {x->events[i].time, (mtan_real)x->events[i].channel, x->events[i].value};
        add_reals(&events, triple, 3);
    }
    add_reals(&times, x->times, arrlenu(x->times));
    add_reals(&output, out, n);
    add_pair(pairs, "mtan.golden.events", events);
    add_pair(pairs, "mtan.golden.times", times);
    add_pair(pairs, "mtan.golden.output", output);
    snprintf(id, sizeof id, "%016" PRIx64, x->record.id);
    pairs_add(pairs, "mtan.golden.id", id);
    pairs_add(pairs, "mtan.golden.fused", fused ? "1" : "0");
}

size_t golden_record_room(const mtan_config *c) {
    const size_t numbers = 3 * MOST_EVENTS + QUERIES + outputs(c, QUERIES);
    return numbers * (sizeof(mtan_real) == sizeof(float) ? 16 : 25) + 256; /* -1.23456789e-38 and a blank; 256: keys */
}

/* Query times: evenly spaced; for baselines with a class per time, whose query times become steps of the sequence, some
 * of the record's own times. */
static void add_times(golden_record *x, const mtan_config *c) {
    const size_t n = arrlenu(x->events);
    for (size_t i = 0; i < QUERIES && c->classify != MTAN_CLASSIFY_RECORD; i++) {
        const mtan_real t = c->architecture && c->classify == MTAN_CLASSIFY_TIME
                                ? x->events[i * (n - 1) / (QUERIES - 1)].time
                                : (mtan_real)i / (QUERIES - 1);
        if (i == 0 || t > arrlast(x->times)) arrput(x->times, t);
    }
}

typedef struct one_run {
    golden_record *x;
    mtan_real *out;
} one_run;

static mtan_status run_one(void *context, mtan_predictor *p, size_t first, size_t count) {
    const one_run *r = context;
    (void)first, (void)count;
    return golden_record_run(p, r->x, r->out);
}

static mtan_status run_record(runner *run, golden_record *x, mtan_real *out) {
    one_run r = {x, out};
    return runner_each(run, 1, run_one, &r) ? MTAN_OK : run->status;
}

static void write_record(runner *run, const dataset *d, const split *s, mtan_file_pair **pairs) {
    const int64_t position = pick_record(d, s);
    const mtan_config *config = &run->model->config;
    mtan_real *out;
    golden_record x;
    if (position < 0) return; /* the model file then has no self-test */
    memset(&x, 0, sizeof x);
    x.record.id = dataset_view(d, (size_t)position).id;
    for (int32_t i = 0; i < d->records[position].n_events; i++)
        arrput(x.events, d->events[d->records[position].event0 + (size_t)i]);
    add_times(&x, config);
    out = tool_calloc(golden_record_size(config, &x), sizeof *out);
    if (run_record(run, &x, out) == MTAN_OK)
        write_example(&x, out, golden_record_size(config, &x), mtan_backend_fused(run->model->backend), pairs);
    free(out);
    golden_record_free(&x);
}

/* A device's bits differ from a CPU's, so a CPU runs the weights, which were fetched before. */
void golden_record_write(runner *run, const dataset *d, const split *s, mtan_file_pair **pairs) {
    mtan_model here = *run->model;
    char error[512];
    runner own;
    if (!on_device(run->model->backend)) {
        write_record(run, d, s, pairs);
        return;
    }
    here.backend = mtan_backend_best();
    if (!runner_start(&own, &here, run->bounds, 1, error)) return;
    write_record(&own, d, s, pairs);
    runner_stop(&own);
}

/* ---- reading ---- */

/* Parses all numbers of a text; 0 if it contains anything else. */
static int parse_reals(mtan_real **out, const char *text) {
    char *end;
    for (;; text = end) {
        const double x = strtod(text, &end);
        if (end == text) break;
        arrput(*out, (mtan_real)x);
    }
    while (*text == ' ') text++;
    return *text == 0;
}

int golden_record_read(golden_record *x, bundle *b) {
    mtan_real *flat = NULL;
    const char *id = bundle_text(b, "mtan.golden.id", NULL);
    int good;
    memset(x, 0, sizeof *x);
    if (!id) return 0;
    x->record.id = strtoull(id, NULL, 16);
    x->fused = bundle_number(b, "mtan.golden.fused", 0) > 0;
    good = parse_reals(&flat, bundle_text(b, "mtan.golden.events", "")) && arrlen(flat) % 3 == 0 &&
           parse_reals(&x->times, bundle_text(b, "mtan.golden.times", "")) &&
           parse_reals(&x->output, bundle_text(b, "mtan.golden.output", ""));
    for (size_t i = 0; good && i + 2 < arrlenu(flat); i += 3) {
        const mtan_event e = {flat[i], (int32_t)fmax(-1, fmin(1e9, (double)flat[i + 1])), flat[i + 2]};
        arrput(x->events, e);
    }
    arrfree(flat);
    return good && arrlenu(x->output) == golden_record_size(&b->model.config, x) && arrlen(x->output) > 0;
}

/* The largest difference, relative to 1 + |expected|; NaN counts as infinite. */
static double worst_difference(const mtan_real *out, const mtan_real *expected, size_t n) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)out[i] - (double)expected[i]) / (1 + fabs((double)expected[i]));
        if (!(d <= worst)) worst = isnan(d) ? INFINITY : d;
    }
    return worst;
}

/* ---- another model on the same record ---- */

/* The output of a model for the record, malloc'd; NULL if it cannot be run. */
static mtan_real *output_of(const mtan_model *model, golden_record *x) {
    const mtan_bounds bounds = {0, (int32_t)arrlen(x->events) + 1, (int32_t)(arrlen(x->events) + arrlen(x->times)) + 1};
    mtan_real *out = tool_calloc(arrlenu(x->output), sizeof *out);
    char error[512];
    runner run;
    int good = runner_start(&run, model, bounds, 1, error);
    if (good) {
        good = run_record(&run, x, out) == MTAN_OK;
        runner_stop(&run);
    }
    if (good) return out;
    free(out);
    return NULL;
}

int golden_record_change(bundle *b, const mtan_model *other, double *change) {
    mtan_real *before = NULL, *after = NULL;
    golden_record x;
    int good = golden_record_read(&x, b);
    if (good) before = output_of(&b->model, &x), after = output_of(other, &x);
    good = before && after;
    *change = 0;
    for (size_t i = 0; good && i < arrlenu(x.output); i++)
        *change = fmax(*change, fabs((double)after[i] - (double)before[i]));
    free(before), free(after);
    golden_record_free(&x);
    return good;
}

static void renew(mtan_file_pair *pairs, const char *key, const char *value) {
    for (size_t i = 0; i < arrlenu(pairs); i++)
        if (strcmp(pairs[i].key, key) == 0) {
            free((void *)(uintptr_t)pairs[i].value);
            pairs[i].value = tool_text(value);
        }
}

void golden_record_renew(bundle *b, const mtan_model *other, mtan_file_pair *pairs) {
    mtan_real *out = NULL;
    char *text = NULL;
    golden_record x;
    if (golden_record_read(&x, b)) out = output_of(other, &x);
    if (out) {
        add_reals(&text, out, arrlenu(x.output));
        arrlast(text) = 0;
        renew(pairs, "mtan.golden.output", text);
        renew(pairs, "mtan.golden.fused", mtan_backend_fused(other->backend) ? "1" : "0");
        arrfree(text);
    }
    free(out);
    golden_record_free(&x);
}

/* ---- the self-test ---- */

int golden_record_test(golden_verdict *v, bundle *b, golden_record *x, char *error) {
    const mtan_real *expected = x->output;
    const size_t n = arrlenu(expected);
    const mtan_bounds bounds = {0, (int32_t)arrlen(x->events) + 1, (int32_t)(arrlen(x->events) + arrlen(x->times)) + 1};
    mtan_real *out;
    mtan_status status;
    runner run;
    if (!runner_start(&run, &b->model, bounds, 1, error)) return 0;
    out = tool_calloc(n, sizeof *out);
    status = run_record(&run, x, out);
    v->numbers = n;
    v->same_class = !on_device(b->model.backend) && x->fused == mtan_backend_fused(b->model.backend);
    v->worst = status == MTAN_OK ? worst_difference(out, expected, n) : INFINITY;
    v->passed = status == MTAN_OK &&
                (v->same_class ? memcmp(out, expected, n * sizeof *out) == 0 : v->worst <= BETWEEN_CLASSES);
    runner_stop(&run);
    free(out);
    return status != MTAN_ERR_DEVICE || (snprintf(error, 512, "%s", status_message(status)), 0);
}
