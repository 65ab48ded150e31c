/* See difference.h. */
#include "difference.h"

#include <math.h>
#include <string.h>

/* ---- tensors ---- */

#define INTEGER_CASE(tag, type)                                                                                        \
    case tag: {                                                                                                        \
        type *raw = tool_calloc(v->count, sizeof *raw);                                                                \
        const mtan_status status = mtan_view_read_raw(v, tag, raw, v->count);                                          \
        for (size_t i = 0; i < v->count; i++) out[i] = (double)raw[i];                                                 \
        free(raw);                                                                                                     \
        return status == MTAN_OK;                                                                                      \
    }

/* Reads the elements; integers beyond 2^53 are rounded, so equality is decided by the bytes instead. Returns 0 for
 * floats of 8 bits, which are not supported. */
static int read_values(const mtan_tensor_view *v, double *out) {
    switch (v->dtype) {
        INTEGER_CASE(MTAN_DTYPE_BOOL, uint8_t)
        INTEGER_CASE(MTAN_DTYPE_U8, uint8_t)
        INTEGER_CASE(MTAN_DTYPE_I8, int8_t)
        INTEGER_CASE(MTAN_DTYPE_I16, int16_t)
        INTEGER_CASE(MTAN_DTYPE_U16, uint16_t)
        INTEGER_CASE(MTAN_DTYPE_I32, int32_t)
        INTEGER_CASE(MTAN_DTYPE_U32, uint32_t)
        INTEGER_CASE(MTAN_DTYPE_I64, int64_t)
        INTEGER_CASE(MTAN_DTYPE_U64, uint64_t)
    case MTAN_DTYPE_F16:
    case MTAN_DTYPE_BF16:
    case MTAN_DTYPE_F32:
    case MTAN_DTYPE_F64: return mtan_view_read_f64(v, out, v->count) == MTAN_OK;
    case MTAN_DTYPE_F8_E5M2:
    case MTAN_DTYPE_F8_E4M3: break;
    }
    return 0;
}

/* The distance from NaN to anything is infinite, even to a NaN with other bits. */
static double apart(double a, double b) {
    const double d = fabs(b - a);
    if (!(a < b) && !(a > b) && !isnan(a) && !isnan(b)) return 0; /* equal, infinities too */
    return isnan(d) ? INFINITY : d;
}

/* The numbers behind the integers: each times the scale of its row. */
static int read_scaled(const mtan_tensor_view *v, const mtan_tensor_view *scale, double *out) {
    double *factor;
    int good = read_values(v, out);
    if (!scale || !good) return good;
    factor = tool_calloc(scale->count, sizeof *factor);
    good = read_values(scale, factor);
    for (size_t i = 0; i < v->count; i++) out[i] *= factor[i / v->shape[1]];
    free(factor);
    return good;
}

static void compare_values(tensor_difference *t, const mtan_tensor_view *scale_a, const mtan_tensor_view *scale_b) {
    const size_t n = t->a.count;
    double *a = tool_calloc(n, sizeof *a), *b = tool_calloc(n, sizeof *b), norm = 0, norm_a = 0;
    if (!read_scaled(&t->a, scale_a, a) || !read_scaled(&t->b, scale_b, b)) t->largest = INFINITY;
    for (size_t i = 0; i < n; i++) {
        const double d = apart(a[i], b[i]);
        if (d > t->largest) t->largest = d, t->where = i;
        norm += d * d;
        norm_a += a[i] * a[i];
    }
    t->relative = norm > 0 ? sqrt(norm) / sqrt(norm_a) : 0;
    if (isnan(t->relative)) t->relative = INFINITY;
    free(a), free(b);
}

static int same_shape(const mtan_tensor_view *a, const mtan_tensor_view *b) {
    return a->rank == b->rank && memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

static int same_bits(const mtan_tensor_view *a, const mtan_tensor_view *b) {
    return a->dtype == b->dtype && a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

/* Index of each name in a set. */
typedef struct place {
    char *key;
    size_t value;
} place;

/* A set and the index of its names. */
typedef struct indexed {
    const tensor_set *set;
    place *places;
} indexed;

static indexed index_tensors(const tensor_set *set) {
    indexed x = {set, NULL};
    for (size_t i = 0; i < arrlenu(set->tensors); i++) shput(x.places, set->tensors[i].name, i);
    return x;
}

static const mtan_tensor_view *find_view(indexed *x, const char *name) {
    const ptrdiff_t at = shgeti(x->places, name);
    return at < 0 ? NULL : &x->set->tensors[x->places[at].value].view;
}

/* The scales of an int8 matrix, a tensor with the matrix's name and this ending; NULL: it has none. */
#define SCALE ".scale"

static const mtan_tensor_view *find_scale(indexed *x, const char *name) {
    const mtan_tensor_view *v = find_view(x, name), *scale;
    char *text;
    if (!v || v->dtype != MTAN_DTYPE_I8 || v->rank != 2) return NULL;
    text = tool_calloc(strlen(name) + sizeof SCALE, 1);
    scale = find_view(x, strcat(strcpy(text, name), SCALE));
    free(text);
    return scale && scale->rank == 1 && scale->count == v->shape[0] ? scale : NULL;
}

/* Does `name` hold the scales of a matrix that the other file stores in another type? Then they are compared as part of
 * its values. */
static int is_part_of_values(indexed *x, indexed *other, const char *name) {
    const size_t n = strlen(name), ending = sizeof SCALE - 1;
    char *text;
    int part;
    if (n <= ending || strcmp(name + n - ending, SCALE) != 0 || find_view(other, name)) return 0;
    text = tool_text(name);
    text[n - ending] = 0;
    part = find_scale(x, text) && find_view(other, text);
    free(text);
    return part;
}

static tensor_difference compare_pair(const char *name, indexed *of_a, indexed *of_b) {
    const mtan_tensor_view *a = find_view(of_a, name), *b = find_view(of_b, name);
    tensor_difference t;
    memset(&t, 0, sizeof t);
    t.name = tool_text(name);
    if (a) t.a = *a;
    if (b) t.b = *b;
    t.kind = !b                  ? DIFFERENCE_ONLY_A
             : !a                ? DIFFERENCE_ONLY_B
             : !same_shape(a, b) ? DIFFERENCE_SHAPE
             : same_bits(a, b)   ? DIFFERENCE_NONE
                                 : DIFFERENCE_VALUES;
    if (t.kind == DIFFERENCE_VALUES) compare_values(&t, find_scale(of_a, name), find_scale(of_b, name));
    return t;
}

static int is_optimiser(const char *name) {
    return strncmp(name, "optimizer.", 10) == 0 || strcmp(name, "mtan.moment1") == 0 ||
           strcmp(name, "mtan.moment2") == 0 || strcmp(name, "mtan.average") == 0;
}

static void find_tensors(differences *d, const tensor_set *a, const tensor_set *b) {
    const int all = a->torch == b->torch;
    indexed of_a = index_tensors(a), of_b = index_tensors(b);
    for (size_t i = 0; i < arrlenu(a->tensors); i++) {
        const char *name = a->tensors[i].name;
        if ((all || !is_optimiser(name)) && !is_part_of_values(&of_a, &of_b, name))
            arrput(d->tensors, compare_pair(name, &of_a, &of_b));
    }
    for (size_t i = 0; i < arrlenu(b->tensors); i++) {
        const char *name = b->tensors[i].name;
        if (!find_view(&of_a, name) && (all || !is_optimiser(name)) && !is_part_of_values(&of_b, &of_a, name))
            arrput(d->tensors, compare_pair(name, &of_a, &of_b));
    }
    shfree(of_a.places);
    shfree(of_b.places);
}

/* ---- metadata ---- */

static place *text_places(const tensor_set *set) {
    place *places = NULL;
    for (size_t i = 0; i < arrlenu(set->metadata); i++) shput(places, set->metadata[i].name, i);
    return places;
}

/* Settings and preprocessing decide what a model predicts. Training history and values derived from the weights do
 * not. */
static int decides(const char *key) {
    static const char *const others[] = {"mtan.run.", "mtan.plan.", "mtan.golden."};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strncmp(key, others[i], strlen(others[i])) == 0) return 0;
    return 1;
}

static void add_metadata(differences *d, const char *key, const char *a, const char *b) {
    metadata_difference m;
    if (a && b && strcmp(a, b) == 0) return;
    m.key = tool_text(key);
    m.a = a ? tool_text(a) : NULL;
    m.b = b ? tool_text(b) : NULL;
    m.counts = decides(key);
    arrput(d->metadata, m);
}

static void find_metadata(differences *d, const tensor_set *a, const tensor_set *b) {
    place *in_a = text_places(a), *in_b = text_places(b);
    for (size_t i = 0; i < arrlenu(a->metadata); i++) {
        const named_text *x = &a->metadata[i];
        const ptrdiff_t at = shgeti(in_b, x->name);
        add_metadata(d, x->name, x->text, at < 0 ? NULL : b->metadata[in_b[at].value].text);
    }
    for (size_t i = 0; i < arrlenu(b->metadata); i++)
        if (shgeti(in_a, b->metadata[i].name) < 0) add_metadata(d, b->metadata[i].name, NULL, b->metadata[i].text);
    shfree(in_a);
    shfree(in_b);
}

/* ---- both ---- */

void differences_find(differences *d, const tensor_set *a, const tensor_set *b) {
    memset(d, 0, sizeof *d);
    find_tensors(d, a, b);
    d->metadata_compared = a->torch == b->torch;
    if (d->metadata_compared) find_metadata(d, a, b);
}

int differences_equal(const differences *d, double tolerance) {
    for (size_t i = 0; i < arrlenu(d->tensors); i++) {
        const tensor_difference *t = &d->tensors[i];
        const int near = t->kind == DIFFERENCE_VALUES && tolerance > 0 && t->largest <= tolerance;
        if (t->kind != DIFFERENCE_NONE && !near) return 0;
    }
    for (size_t i = 0; i < arrlenu(d->metadata); i++)
        if (d->metadata[i].counts) return 0;
    return 1;
}

void differences_free(differences *d) {
    for (size_t i = 0; i < arrlenu(d->tensors); i++) free(d->tensors[i].name);
    for (size_t i = 0; i < arrlenu(d->metadata); i++)
        free(d->metadata[i].key), free(d->metadata[i].a), free(d->metadata[i].b);
    arrfree(d->tensors);
    arrfree(d->metadata);
}

/* ---- in their predictions ---- */

typedef enum metric_kind { AUC, ACCURACY, LOG_LOSS, MSE } metric_kind;

typedef struct drawn {
    const paired *x;
    metric_kind kind;
    double *values; /* (n, C) or (n): the gathered rows of a draw; stb_ds arrays, since draws by records differ in
                     * length */
    int32_t *label; /* (n) */
} drawn;

static double mean_squared_error(const paired *x, int side, const int32_t *rows, size_t n) {
    double sum = 0, points = 0;
    for (size_t i = 0; i < n; i++) sum += x->squared_sum[side][rows[i]], points += x->points[rows[i]];
    return sum / points; /* NaN without points */
}

static double metric_of(drawn *d, int side, const int32_t *rows, size_t n) {
    const paired *x = d->x;
    const int by_score = d->kind == AUC && x->classes == 2;
    const size_t width = by_score ? 1 : (size_t)x->classes;
    const double *from = by_score ? x->score[side] : x->p[side];
    if (d->kind == MSE) return mean_squared_error(x, side, rows, n);
    arrsetlen(d->values, n * width);
    arrsetlen(d->label, n);
    for (size_t i = 0; i < n; i++) {
        memcpy(d->values + i * width, from + (size_t)rows[i] * width, width * sizeof *from);
        d->label[i] = x->label[rows[i]];
    }
    if (by_score) return metric_auc(d->values, d->label, n);
    if (d->kind == AUC) return metric_auc_classes(d->values, d->label, n, x->classes);
    return d->kind == ACCURACY ? metric_accuracy(d->values, d->label, n, x->classes)
                               : metric_log_loss(d->values, d->label, n, x->classes);
}

static double difference_of(void *context, const int32_t *rows, size_t n) {
    return metric_of(context, 1, rows, n) - metric_of(context, 0, rows, n);
}

static paired_metric measure(drawn *d, const char *name, const int32_t *all, int32_t draws, uint32_t seed) {
    const size_t n = d->x->n;
    paired_metric m;
    m.name = name;
    m.a = metric_of(d, 0, all, n);
    m.b = metric_of(d, 1, all, n);
    m.difference.low = m.difference.high = NAN;
    if (draws > 0 && n > 0) m.difference = metric_bootstrap(difference_of, d, n, d->x->record, draws, seed);
    return m;
}

paired_metric *paired_metrics(const paired *x, int32_t draws, uint32_t seed) {
    static const char *const names[] = {"auc", "accuracy", "log-loss", "mse"};
    const int error = x->squared_sum[0] != NULL;
    int32_t *all = tool_calloc(x->n, sizeof *all);
    paired_metric *metrics = NULL;
    drawn d = {x, MSE, NULL, NULL};
    for (size_t i = 0; i < x->n; i++) all[i] = (int32_t)i;
    for (int kind = error ? MSE : AUC; kind <= (error ? MSE : LOG_LOSS); kind++) {
        d.kind = (metric_kind)kind;
        arrput(metrics, measure(&d, names[kind], all, draws, seed));
    }
    free(all);
    arrfree(d.values);
    arrfree(d.label);
    return metrics;
}

static int32_t largest_class(const double *p, int32_t classes) {
    int32_t best = 0;
    for (int32_t c = 1; c < classes; c++)
        if (p[c] > p[best]) best = c;
    return best;
}

size_t paired_changes(const paired *x) {
    size_t changes = 0;
    for (size_t i = 0; i < x->n; i++) {
        const size_t at = i * (size_t)x->classes;
        changes += largest_class(x->p[0] + at, x->classes) != largest_class(x->p[1] + at, x->classes);
    }
    return changes;
}
