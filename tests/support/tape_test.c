/* See tape_test.h. */
#include "tape_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ladder.h"

/* ---- entries ---- */

static size_t entry_of(const piece *p, const piece_tensor *x, size_t i) {
    const size_t cols = (size_t)x->tensor.cols, at = x->map ? x->map(p, i, cols) : i;
    return at / cols * (size_t)x->tensor.stride + at % cols;
}

size_t piece_by_step(const piece *p, size_t i, size_t cols) {
    const size_t steps = (size_t)p->batch.steps, records = (size_t)p->batch.records, row = i / cols;
    return (row % steps * records + row / steps) * cols + i % cols;
}

size_t piece_by_step_and_sample(const piece *p, size_t i, size_t cols) {
    const size_t of_sample = (size_t)p->batch.steps * (size_t)p->batch.records * cols;
    const size_t at = piece_by_step(p, i % of_sample, cols);
    return (at / cols * (size_t)p->batch.samples + i / of_sample) * cols + at % cols;
}

/* ---- building ---- */

int piece_runs(const piece *p) {
    return p->tape.work && p->tape.status == MTAN_OK;
}

static void full_name(char out[128], const char *before, const piece *p, const char *name) {
    snprintf(out, 128, "%s%s.%s", before, p->name, name);
}

double piece_u(const piece *p, const char *name, size_t i) {
    char full[128];
    full_name(full, "", p, name);
    return golden_u(full, i);
}

double piece_cotangent(const piece *p, const char *name, size_t i) {
    char full[128];
    full_name(full, "cot.", p, name);
    return golden_u(full, i);
}

void piece_fill(piece *p, const char *name, mtan_tensor x, double scale, piece_map map) {
    piece_tensor t = {"", x, (size_t)x.rows * (size_t)x.cols, map, PIECE_VALUE};
    for (size_t i = 0; piece_runs(p) && i < t.count; i++)
        mtan_data(&p->tape, x)[entry_of(p, &t, i)] = (mtan_real)(scale * golden_u(name, i));
}

static void add_tensor(piece *p, piece_role role, const char *name, mtan_tensor x, size_t count, piece_map map) {
    piece_tensor *t = &p->tensors[p->count];
    if (p->count == PIECE_TENSORS) {
        fprintf(stderr, "mtan: %s:%d: %s has too many tensors\n", __FILE__, __LINE__, p->name);
        exit(2);
    }
    p->count++;
    snprintf(t->name, sizeof t->name, "%s", name);
    t->tensor = x, t->count = count, t->map = map, t->role = role;
}

void piece_input_view(piece *p, const char *name, mtan_tensor x, double scale, piece_map map) {
    char full[128];
    full_name(full, "", p, name);
    piece_fill(p, full, x, scale, map);
    add_tensor(p, PIECE_INPUT, name, x, (size_t)x.rows * (size_t)x.cols, map);
}

mtan_tensor piece_input(piece *p, const char *name, int32_t rows, int32_t cols, double scale, piece_map map) {
    const mtan_tensor x = mtan_new(&p->tape, rows, cols);
    piece_input_view(p, name, x, scale, map);
    return x;
}

mtan_tensor piece_weight(piece *p, const char *name, int32_t rows, int32_t cols, int32_t fan) {
    const mtan_tensor x = mtan_new(&p->tape, rows, cols);
    double scale = 1;
    while (scale * scale * fan > 1) scale /= 2;
    if (strstr(name, "periodic.weight")) scale *= 8;
    piece_fill(p, name, x, scale, NULL);
    add_tensor(p, PIECE_INPUT, name, x, (size_t)rows * (size_t)cols, NULL);
    return x;
}

void piece_output(piece *p, const char *name, mtan_tensor x, piece_map map) {
    add_tensor(p, PIECE_OUTPUT, name, x, (size_t)x.rows * (size_t)x.cols, map);
}

void piece_output_cells(piece *p, const char *name, mtan_tensor x, size_t count, piece_map map) {
    add_tensor(p, PIECE_OUTPUT, name, x, count, map);
}

void piece_keep(piece *p, piece_role role, const char *name, mtan_tensor x) {
    add_tensor(p, role, name, x, (size_t)x.rows * (size_t)x.cols, NULL);
}

/* ---- the batch ---- */

void piece_lengths(piece *p, int32_t records, const int32_t *length) {
    mtan_batch *batch = &p->batch;
    batch->records = records;
    batch->samples = 1;
    batch->steps = length[0];
    batch->order = p->order, batch->first = p->first, batch->length = p->length;
    for (int32_t b = 0; b < records; b++) p->order[b] = b, p->length[b] = length[b];
    for (int32_t k = 0; k < batch->steps; k++) {
        p->first[k + 1] = p->first[k];
        for (int32_t b = 0; b < records; b++) p->first[k + 1] += length[b] > k;
    }
    batch->rows = p->first[batch->steps];
}

void piece_sequence(piece *p, int32_t records, int32_t steps) {
    const int32_t length[PIECE_RECORDS] = {steps, steps, steps, steps};
    piece_lengths(p, records, length);
}

void piece_queries(piece *p, const int32_t *count) {
    p->batch.query0 = p->query0, p->batch.pair0 = p->pair0;
    for (int32_t b = 0; b < p->batch.records; b++) {
        p->query0[b + 1] = p->query0[b] + count[b];
        p->pair0[b + 1] = p->pair0[b] + count[b] * p->length[b];
    }
    p->batch.queries = p->query0[p->batch.records];
    p->batch.pairs = p->pair0[p->batch.records];
}

void piece_own_points(piece *p) {
    p->batch.point0 = p->point0;
    for (int32_t b = 0; b < p->batch.records; b++) p->point0[b + 1] = p->point0[b] + p->length[b];
}

void piece_events(piece *p, int32_t channels, const int32_t *keys, const piece_event *events, int32_t n) {
    mtan_batch *batch = &p->batch;
    int32_t at = 0;
    batch->channels = batch->outputs = channels;
    batch->time0 = p->time0, batch->score0 = p->score0, batch->begin = p->begin;
    batch->row = p->row, batch->value = p->value;
    batch->seen = mtan_new(&p->tape, batch->records, channels);
    for (int32_t b = 0; b < batch->records; b++) {
        p->time0[b + 1] = p->time0[b] + keys[b];
        p->score0[b + 1] = p->score0[b] + keys[b] * p->length[b];
        for (int32_t d = 0; d < channels; d++) {
            int32_t *begin = &p->begin[b * (channels + 1) + d];
            begin[0] = at;
            for (int32_t i = 0; i < n; i++)
                if (events[i].record == b && events[i].channel == d)
                    p->row[at] = events[i].row, p->value[at++] = events[i].value;
            begin[1] = at;
            if (piece_runs(p)) mtan_data(&p->tape, batch->seen)[b * channels + d] = begin[1] > begin[0] ? 1 : 0;
        }
    }
    batch->events = n;
    batch->times = p->time0[batch->records];
    batch->scores = p->score0[batch->records];
}

void piece_grid(piece *p, int32_t keys, int32_t channels) {
    const int32_t all[PIECE_RECORDS] = {keys, keys, keys, keys};
    piece_event events[PIECE_EVENTS];
    int32_t n = 0;
    for (int32_t i = 0; i < p->batch.records * keys * channels; i++) {
        if (i % channels == channels - 1 || piece_u(p, "mask", (size_t)i) < -0.5) continue;
        events[n].record = i / channels / keys, events[n].row = i / channels % keys, events[n].channel = i % channels;
        events[n++].value = (mtan_real)piece_u(p, "x", (size_t)i);
    }
    piece_events(p, channels, all, events, n);
}

/* ---- running ---- */

static void start(piece *p, const char *name, const void *argument, size_t reals, int counting) {
    memset(p, 0, sizeof *p);
    p->name = name;
    p->argument = argument;
    p->tape.backend = &mtan_backend_scalar;
    p->tape.batch = &p->batch;
    p->tape.recording = 1;
    p->tape.capacity = reals;
    if (!counting) p->tape.work = guard_alloc(reals * sizeof(mtan_real));
}

/* A workspace that is one cache line too small must be refused, with nothing written outside of it. */
static int refuses(piece *p, const char *name, piece_build build, const void *argument, size_t reals) {
    start(p, name, argument, reals, 0);
    build(p);
    if (p->tape.status != MTAN_ERR_MEMORY) printf("  BAD %s: runs in %zu reals, fewer than counted\n", name, reals);
    return (p->tape.status == MTAN_ERR_MEMORY) & guard_free(p->tape.work);
}

static void seed_outputs(piece *p) {
    for (int32_t k = 0; k < p->count; k++) {
        const piece_tensor *t = &p->tensors[k];
        for (size_t i = 0; t->role == PIECE_OUTPUT && t->tensor.grad != MTAN_NO_GRAD && i < t->count; i++)
            mtan_grad(&p->tape, t->tensor)[entry_of(p, t, i)] += (mtan_real)piece_cotangent(p, t->name, i);
    }
}

int piece_run(piece *p, const char *name, piece_build build, const void *argument) {
    size_t need;
    int ok;
    start(p, name, argument, 0, 1);
    build(p);
    need = p->tape.peak;
    ok = p->tape.status == MTAN_OK && need > 0 && refuses(p, name, build, argument, need - 64 / sizeof(mtan_real));
    start(p, name, argument, need, 0);
    build(p);
    if (p->tape.status != MTAN_OK || p->tape.peak != need) {
        printf("  BAD %s: %s; counted %zu reals, then %zu\n", name, mtan_status_message(p->tape.status), need,
               p->tape.peak);
        return 0;
    }
    seed_outputs(p);
    mtan_backpropagate(&p->tape);
    return ok && guard_check(p->tape.work);
}

int piece_end(piece *p) {
    const int ok = guard_free(p->tape.work);
    p->tape.work = NULL;
    return ok;
}

/* ---- comparing ---- */

mtan_tensor piece_find(const piece *p, const char *name) {
    for (int32_t k = 0; k < p->count; k++)
        if (strcmp(p->tensors[k].name, name) == 0) return p->tensors[k].tensor;
    fprintf(stderr, "mtan: %s:%d: %s has no tensor %s\n", __FILE__, __LINE__, p->name, name);
    exit(2);
}

static void gather(const piece *p, const piece_tensor *t, int gradient, mtan_real *out) {
    const mtan_real *from = gradient ? mtan_grad(&p->tape, t->tensor) : mtan_data(&p->tape, t->tensor);
    for (size_t i = 0; i < t->count; i++) out[i] = from[entry_of(p, t, i)];
}

static void gather_named(const piece *p, const char *name, int gradient, mtan_real *out) {
    for (int32_t k = 0; k < p->count; k++)
        if (strcmp(p->tensors[k].name, name) == 0) {
            gather(p, &p->tensors[k], gradient, out);
            return;
        }
    piece_find(p, name);
}

void piece_values(const piece *p, const char *name, mtan_real *out) {
    gather_named(p, name, 0, out);
}

void piece_gradient(const piece *p, const char *name, mtan_real *out) {
    gather_named(p, name, 1, out);
}

int piece_near(const char *name, const mtan_real *got, const double *expected, size_t n) {
    return check_norm(name, got, expected, n, 0, sizeof(mtan_real) == sizeof(double) ? ldexp(8, -53) : ldexp(8, -24));
}

typedef struct golden {
    void *blob;
    mtan_file file;
    double largest; /* norm of the piece's gradients */
} golden;

/* PIECE/name + suffix (free it); null: not in the file */
static double *golden_tensor(const golden *g, const piece *p, const char *name, const char *suffix, size_t *n) {
    char full[160];
    mtan_tensor_view view;
    double *out;
    snprintf(full, sizeof full, "%s/%s%s", p->name, name, suffix);
    if (mtan_file_tensor(&g->file, full, &view) != MTAN_OK) return NULL;
    out = malloc((view.count + 1) * sizeof *out);
    *n = view.count;
    if (out && mtan_view_read_f64(&view, out, view.count) == MTAN_OK) return out;
    free(out);
    return NULL;
}

static void golden_name(char out[80], const piece_tensor *t) {
    snprintf(out, 80, "%s%s", t->role == PIECE_INPUT ? "grad." : "", t->name);
}

static int golden_open(golden *g, const piece *p, const char *file) {
    size_t bytes = 0;
    memset(g, 0, sizeof *g);
    g->blob = slurp_golden(file, &bytes);
    if (!g->blob || mtan_file_open(&g->file, g->blob, bytes) != MTAN_OK) return 0;
    for (int32_t k = 0; k < p->count; k++) {
        char name[80];
        size_t n = 0;
        double *ref, norm = 0;
        if (p->tensors[k].role != PIECE_INPUT) continue;
        golden_name(name, &p->tensors[k]);
        if ((ref = golden_tensor(g, p, name, "", &n))) norm = check_length(ref, n);
        else if ((ref = golden_tensor(g, p, name, ".norm", &n))) norm = ref[0];
        free(ref);
        if (norm > g->largest) g->largest = norm;
    }
    return 1;
}

/* The limit for entries whose norm is at most `size` (golden/README.md, Limits). */
static double limit_of(const golden *g, double size, double err32) {
    if (sizeof(mtan_real) == sizeof(double)) return 1e-10 * size + 1e-14 * g->largest;
    return 4 * err32 + 4 * ldexp(size, -24);
}

static int compare_whole(const golden *g, const char *name, const mtan_real *got, const double *ref, size_t n,
                         double err32) {
    return check_norm(name, got, ref, n, limit_of(g, check_length(ref, n), err32), 0);
}

/* 256 entries, the sum and the norm. Sum and norm are compared as doubles, so they are passed as their own "got". */
static int compare_sampled(const golden *g, const piece *p, const char *name, const mtan_real *got, size_t n,
                           const double err32[3]) {
    size_t count = 0, one = 0;
    double *sample = golden_tensor(g, p, name, ".sample", &count), *sum = golden_tensor(g, p, name, ".sum", &one);
    double *norm = golden_tensor(g, p, name, ".norm", &one), total = 0, length = 0;
    mtan_real picked[256];
    int ok = sample && sum && norm && count == 256;
    for (size_t i = 0; ok && i < n; i++) total += (double)got[i], length += (double)got[i] * (double)got[i];
    for (size_t i = 0; ok && i < 256; i++) picked[i] = got[i * n / 256];
    if (ok) {
        const double reach = sizeof(mtan_real) == sizeof(double) ? 1 : sqrt((double)n);
        const double off[2] = {fabs(total - sum[0]), fabs(sqrt(length) - norm[0])};
        const double limit[2] = {limit_of(g, norm[0] * reach, err32[1]), limit_of(g, norm[0], err32[2])};
        ok = compare_whole(g, name, picked, sample, 256, err32[0]);
        for (int i = 0; i < 2; i++) {
            printf("  %s %s %s: off by %.3g of %.3g\n", off[i] <= limit[i] ? "ok" : "BAD", name, i ? "norm" : "sum",
                   off[i], limit[i]);
            ok = off[i] <= limit[i] && ok;
        }
    }
    free(sample), free(sum), free(norm);
    return ok;
}

static int compare_one(const golden *g, const piece *p, const char *name, const mtan_real *got, size_t n) {
    char label[160];
    size_t count = 0, errors = 0;
    double *ref = golden_tensor(g, p, name, "", &count), *err = golden_tensor(g, p, name, ".err32", &errors);
    int ok = 0;
    snprintf(label, sizeof label, "%s/%s", p->name, name);
    if (ref && err && count == n && errors == 1) ok = compare_whole(g, label, got, ref, n, err[0]);
    else if (!ref && err && errors == 3) ok = compare_sampled(g, p, name, got, n, err);
    else printf("  BAD %s: not in the file with %zu entries\n", label, n);
    free(ref), free(err);
    return ok;
}

int piece_compare_array(const piece *p, const char *file, const char *tensor, const mtan_real *got, size_t n) {
    golden g;
    const int ok = golden_open(&g, p, file) && compare_one(&g, p, tensor, got, n);
    return guard_free(g.blob) && ok;
}

int piece_compare(const piece *p, const char *file) {
    golden g;
    const int open = golden_open(&g, p, file);
    int ok = open;
    for (int32_t k = 0; open && k < p->count; k++) { /* compares all tensors, so that one run reports every
                                                      * difference */
        const piece_tensor *t = &p->tensors[k];
        mtan_real *got;
        char name[80];
        golden_name(name, t);
        if (t->role == PIECE_KEPT) continue;
        got = malloc(t->count * sizeof *got);
        gather(p, t, t->role == PIECE_INPUT, got);
        ok = compare_one(&g, p, name, got, t->count) && ok;
        free(got);
    }
    return guard_free(g.blob) && ok;
}

int piece_golden(const char *file, const char *name, piece_build build, const void *argument) {
    piece p;
    const int ran = piece_run(&p, name, build, argument), close = ran && piece_compare(&p, file);
    return piece_end(&p) && close;
}
