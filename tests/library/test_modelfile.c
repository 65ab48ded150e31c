/* Model files: what is saved comes back to the bit, from any address, order and type; what is wrong is refused and
 * changes nothing; a checkpoint resumes training as if it had never stopped. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "published.h"
#include "small.h"
#include "tiny_model.h"
#include "caller.h"

/* ---- writing into memory ---- */

typedef struct {
    uint8_t *bytes; /* null: only counts */
    size_t used;
    int left; /* calls until it fails; negative: never */
} sink;

static mtan_status pour(void *context, const void *bytes, size_t n) {
    sink *s = context;
    if (s->left == 0) return MTAN_ERR_INPUT; /* any failure will do */
    s->left -= s->left > 0;
    if (s->bytes) memcpy(s->bytes + s->used, bytes, n);
    s->used += n;
    return MTAN_OK;
}

/* A saved model in a guarded block of exactly its size. */
static void *save(const mtan_model *model, const mtan_trainer *trainer, const mtan_file_pair *pairs, size_t n_pairs,
                  size_t *bytes) {
    sink s = {NULL, 0, -1};
    if (mtan_model_save(model, trainer, pairs, n_pairs, pour, &s) != MTAN_OK) return NULL;
    *bytes = s.used;
    s.bytes = guard_alloc(s.used), s.used = 0;
    if (mtan_model_save(model, trainer, pairs, n_pairs, pour, &s) == MTAN_OK && s.used == *bytes) return s.bytes;
    guard_free(s.bytes);
    return NULL;
}

/* ---- the same file, written again with something changed ---- */

typedef struct {
    mtan_dtype dtype;        /* of every parameter */
    int sorted;              /* by name */
    const char *drop, *bend; /* tensor left out; tensor with another shape */
    const char *key, *value; /* metadata given another value; a null value leaves it out */
} change;

enum { MOST = 128 };
typedef struct {
    mtan_file_entry entries[MOST];
    mtan_file_pair pairs[MOST];
    size_t n, m;
    void *owned[4 * MOST];
    size_t owns;
} copy;

static void *keep(copy *c, void *memory) {
    return c->owned[c->owns++] = memory;
}

static char *plain_text(copy *c, const mtan_text *coded) {
    size_t length = 0;
    mtan_text_decode(coded, NULL, 0, &length);
    char *text = keep(c, malloc(length + 1));
    mtan_text_decode(coded, text, length + 1, NULL);
    return text;
}

/* Exact for multiples of 1/128 below 1, which is all that these tests store. */
static uint16_t half_of(double x) {
    uint32_t exponent = 15, sign = x < 0 ? 0x8000u : 0;
    if (x == 0) return 0;
    for (x = x < 0 ? -x : x; x < 1; x *= 2) exponent--;
    return (uint16_t)(sign | exponent << 10 | (uint32_t)((x - 1) * 1024));
}

static const void *as_dtype(copy *c, const mtan_tensor_view *view, mtan_dtype dtype) {
    double *wide = keep(c, malloc(view->count * sizeof *wide + 1));
    float *single = keep(c, malloc(view->count * sizeof *single + 1));
    uint16_t *narrow = keep(c, malloc(view->count * sizeof *narrow + 1));
    mtan_view_read_f64(view, wide, view->count);
    for (size_t i = 0; i < view->count; i++) {
        uint32_t bits;
        single[i] = (float)wide[i];
        memcpy(&bits, &single[i], sizeof bits);
        narrow[i] = dtype == MTAN_DTYPE_F16 ? half_of(wide[i]) : (uint16_t)(bits >> 16);
    }
    return dtype == MTAN_DTYPE_F64 ? (const void *)wide : dtype == MTAN_DTYPE_F32 ? (const void *)single : narrow;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const mtan_file_entry *)a)->name, ((const mtan_file_entry *)b)->name);
}

static void copy_tensor(copy *c, const mtan_file *file, size_t index, const change *how) {
    mtan_tensor_view view;
    mtan_file_entry *e = &c->entries[c->n];
    memset(e, 0, sizeof *e);
    mtan_file_tensor_at(file, index, &view);
    e->name = plain_text(c, &view.name);
    if (how->drop && strcmp(e->name, how->drop) == 0) return;
    e->dtype = how->dtype, e->rank = view.rank;
    memcpy(e->shape, view.shape, sizeof e->shape);
    if (how->bend && strcmp(e->name, how->bend) == 0) e->rank = 2, e->shape[0] = 1, e->shape[1] = view.count;
    e->data = as_dtype(c, &view, how->dtype == MTAN_DTYPE_I32 ? MTAN_DTYPE_F32 : how->dtype);
    c->n++;
}

static void copy_pair(copy *c, const mtan_file *file, size_t index, const change *how) {
    mtan_text key, value;
    mtan_file_pair *p = &c->pairs[c->m];
    mtan_file_metadata_at(file, index, &key, &value);
    p->key = plain_text(c, &key), p->value = plain_text(c, &value);
    if (how->key && strcmp(p->key, how->key) == 0) p->value = how->value;
    c->m += p->value != NULL;
}

static void (*spoil)(copy *c); /* what else is changed, or null */

/* A guarded block of exactly its size. */
static void *rewrite(const void *blob, size_t bytes, const change *how, size_t *made) {
    static copy c;
    mtan_file file;
    void *out = NULL;
    memset(&c, 0, sizeof c);
    if (mtan_file_open(&file, blob, bytes) != MTAN_OK || file.tensors > MOST || file.pairs > MOST) return NULL;
    for (size_t i = 0; i < file.tensors; i++) copy_tensor(&c, &file, i, how);
    for (size_t i = 0; i < file.pairs; i++) copy_pair(&c, &file, i, how);
    if (how->sorted) qsort(c.entries, c.n, sizeof *c.entries, by_name);
    if (spoil) spoil(&c);
    if (mtan_file_write_size(c.entries, c.n, c.pairs, c.m, made) == MTAN_OK) {
        out = guard_alloc(*made);
        mtan_file_write_memory(c.entries, c.n, c.pairs, c.m, out, *made, made);
    }
    while (c.owns > 0) free(c.owned[--c.owns]);
    return out;
}

/* ---- a model with weights that every type holds exactly ---- */

static void open_exact(tiny_model *t, tiny_kind kind) {
    tiny_open(t, kind, 4);
    for (size_t i = 0; i < t->count; i++) t->weights[i] = (mtan_real)((int)(golden_u("file", i) * 127) / 128.0);
}

/* What a model answers: two models with the same answer have the same weights where it matters. */
static int same_answers(tiny_model *t, const mtan_model *other) {
    mtan_real expected[4 * TINY_TIMES * 8 * TINY_CHANNELS] = {0}, got[4 * TINY_TIMES * 8 * TINY_CHANNELS] = {0};
    mtan_predictor predictor;
    size_t bytes = 0;
    tiny_predict(t, 4);
    if (mtan_predictor_size(other, &t->predictor.bounds, &bytes) != MTAN_OK) return 0;
    void *memory = guard_alloc(bytes);
    int good = mtan_predictor_init(&predictor, other, &t->predictor.bounds, memory, bytes) == MTAN_OK;
    if (t->config.classify == MTAN_CLASSIFY_NONE)
        good = good && mtan_predictor_curves(&t->predictor, t->records, expected) == MTAN_OK &&
               mtan_predictor_curves(&predictor, t->records, got) == MTAN_OK;
    else
        good = good && mtan_predictor_classify(&t->predictor, t->records, 4, expected) == MTAN_OK &&
               mtan_predictor_classify(&predictor, t->records, 4, got) == MTAN_OK;
    return guard_free(memory) && good && check_same("answers", got, expected, sizeof got);
}

/* What mtan_model_open says to a good file: it cannot be used in place where the bytes of a number are the other way round. */
static mtan_status opens(void) {
    return host_is_little() ? MTAN_OK : MTAN_ERR_SHAPE;
}

TEST saved_model_opens_in_place_and_loads(tiny_kind kind) {
    tiny_model t;
    mtan_model model;
    size_t bytes;
    open_exact(&t, kind);
    uint8_t *blob = save(&t.model, NULL, NULL, 0, &bytes);
    ASSERT(blob);
    ASSERT_EQ(opens(), blob_open(&model, blob, bytes));
    if (opens() == MTAN_OK) {
        ASSERT((const uint8_t *)model.weights >= blob && (const uint8_t *)model.weights < blob + bytes);
        ASSERT(same_answers(&t, &model));
    }
    mtan_real *weights = guard_alloc(t.count * sizeof *weights);
    ASSERT_EQ(MTAN_OK, blob_load(&model, weights, t.count, blob, bytes));
    ASSERT(model.weights == weights);
    ASSERT(check_same("weights", weights, t.weights, t.count * sizeof *weights));
    for (size_t shift = 1; shift < sizeof(mtan_real); shift++) { /* from an address that fits nothing */
        uint8_t *moved = guard_alloc(bytes + shift);
        memcpy(moved + shift, blob, bytes);
        memset(weights, 0, t.count * sizeof *weights);
        ASSERT_EQ(MTAN_ERR_SHAPE, blob_open(&model, moved + shift, bytes));
        ASSERT_EQ(MTAN_OK, blob_load(&model, weights, t.count, moved + shift, bytes));
        ASSERT(check_same("weights, unaligned", weights, t.weights, t.count * sizeof *weights));
        ASSERT(guard_free(moved));
    }
    ASSERT(same_answers(&t, &model));
    ASSERT(guard_free(weights) & guard_free(blob) & tiny_close(&t));
    PASS();
}

TEST any_order_and_type_load(tiny_kind kind) {
    static const mtan_dtype types[] = {MTAN_DTYPE_F16, MTAN_DTYPE_BF16, MTAN_DTYPE_F32, MTAN_DTYPE_F64};
    tiny_model t;
    mtan_model model;
    size_t bytes, made;
    open_exact(&t, kind);
    void *blob = save(&t.model, NULL, NULL, 0, &bytes);
    mtan_real *weights = guard_alloc(t.count * sizeof *weights);
    ASSERT(blob);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const change how = {types[i], 1, NULL, NULL, NULL, NULL};
        void *other = rewrite(blob, bytes, &how, &made);
        ASSERT(other);
        memset(weights, 0, t.count * sizeof *weights);
        ASSERT_EQ(MTAN_OK, blob_load(&model, weights, t.count, other, made));
        ASSERT(check_same("weights", weights, t.weights, t.count * sizeof *weights));
        const mtan_status in_place = blob_open(&model, other, made);
        ASSERT_EQ(types[i] == MTAN_DTYPE_REAL ? opens() : MTAN_ERR_SHAPE, in_place);
        ASSERT(same_answers(&t, &model)); /* opened in alphabetical order, or still the one loaded before */
        ASSERT(guard_free(other));
        ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &t.config, t.weights,
                                           mtan_weights_count(&t.config))); /* points into nothing that was freed */
    }
    ASSERT(guard_free(weights) & guard_free(blob) & tiny_close(&t));
    PASS();
}

/* ---- settings, the caller's pairs, reference points ---- */

static int same_settings(const mtan_config *a, const mtan_config *b) {
    char x[64], y[64];
    for (int32_t i = 0; mtan_config_key(i); i++) {
        const char *key = mtan_config_key(i);
        if (mtan_config_get(a, key, x, sizeof x) != MTAN_OK || mtan_config_get(b, key, y, sizeof y) != MTAN_OK)
            return 0;
        if (strcmp(x, y) != 0) printf("  BAD %s: %s, expected %s\n", key, x, y);
        if (strcmp(x, y) != 0) return 0;
    }
    return a->embed_base == b->embed_base && a->embed_scale == b->embed_scale && a->noise_std == b->noise_std &&
           a->alpha == b->alpha;
}

static int settings_come_back(const mtan_config *config) {
    const size_t count = mtan_weights_count(config);
    mtan_real *weights = calloc(count, sizeof *weights);
    mtan_model model;
    mtan_config back;
    size_t bytes;
    int good = mtan_model_init(&model, config, weights, mtan_weights_count(config)) == MTAN_OK;
    void *blob = good ? save(&model, NULL, NULL, 0, &bytes) : NULL;
    good = blob && blob_load_config(&back, blob, bytes) == MTAN_OK && same_settings(&back, config) &&
           mtan_weights_count(&back) == count;
    free(weights);
    return guard_free(blob) && good;
}

TEST published_settings_come_back(const char *name) {
    mtan_config config;
    ASSERT(published_config(&config, name));
    ASSERT(settings_come_back(&config));
    ASSERT_EQ(MTAN_OK, mtan_config_preset(&config, MTAN_CORRECT));
    ASSERT(settings_come_back(&config));
    PASS();
}

/* Numbers that people write, and numbers that no decimal of 15 digits reaches. */
TEST numbers_come_back_to_the_bit(void) {
    static const double written[] = {0.1,        0.7, 1e-3, 1e-8,    0.333333333333333,     3.14159265358979,
                                     123456.789, 48,  5e8,  1.0 / 3, 2.2250738585072014e-7, 1e-9 * (1 + 1e-12)};
    mtan_config c;
    tiny_config(&c, TINY_FULL);
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        c.noise_std = c.alpha = c.embed_base = written[i], c.embed_scale = -written[i];
        ASSERT(settings_come_back(&c));
    }
    PASS();
}

TEST pairs_of_the_caller_are_kept(void) {
    static const mtan_file_pair pairs[] = {
        {"preset", "faithful"}, {"channels", "HR \"bpm\"\n\xc3\xa9\\"}, {"empty", ""}};
    mtan_file_pair many[MTAN_MAX_PAIRS + 1];
    char keys[MTAN_MAX_PAIRS + 1][8], text[64];
    const mtan_file_pair taken = {"mtan.kind", "full"};
    tiny_model t;
    mtan_file file;
    size_t bytes;
    sink s = {NULL, 0, -1};
    open_exact(&t, TINY_ENC);
    void *blob = save(&t.model, NULL, pairs, 3, &bytes);
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(MTAN_OK, mtan_file_metadata(&file, pairs[i].key, text, sizeof text, NULL));
        ASSERT_STR_EQ(pairs[i].value, text);
    }
    ASSERT_EQ(MTAN_OK, mtan_file_metadata(&file, "format", text, sizeof text, NULL));
    ASSERT_STR_EQ("pt", text);
    ASSERT(guard_free(blob));
    for (size_t i = 0; i <= MTAN_MAX_PAIRS; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", (int)i);
        many[i].key = many[i].value = keys[i];
    }
    ASSERT_EQ(MTAN_OK, mtan_model_save(&t.model, NULL, many, MTAN_MAX_PAIRS, pour, &s));
    s.used = 0;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_model_save(&t.model, NULL, many, MTAN_MAX_PAIRS + 1, pour, &s));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_model_save(&t.model, NULL, &taken, 1, pour, &s));
    ASSERT_EQ(0, s.used);
    ASSERT(tiny_close(&t));
    PASS();
}

static const mtan_real points[6] = {(mtan_real)0.9, (mtan_real)-0.5, (mtan_real)0.1, 3, (mtan_real)0.25, 0};

TEST given_points_are_kept(tiny_kind kind) {
    tiny_model t;
    mtan_model model;
    mtan_config config;
    size_t bytes;
    open_exact(&t, kind);
    t.model.config.reference = MTAN_REF_GIVEN, t.model.config.ref = points;
    uint8_t *blob = save(&t.model, NULL, NULL, 0, &bytes);
    const size_t count = t.count + sizeof points / sizeof points[0];
    mtan_real *weights = guard_alloc(count * sizeof *weights);
    ASSERT(blob);
    ASSERT_EQ(opens(), blob_load_config(&config, blob, bytes));
    ASSERT_EQ(opens(), blob_open(&model, blob, bytes));
    if (opens() == MTAN_OK) {
        ASSERT_EQ(MTAN_REF_GIVEN, config.reference);
        ASSERT(check_same("points", config.ref, points, sizeof points));
        ASSERT(same_answers(&t, &model));
    }
    ASSERT_EQ(MTAN_OK, blob_load(&model, weights, count, blob, bytes));
    ASSERT(same_answers(&t, &model));
    ASSERT(guard_free(weights) & guard_free(blob) & tiny_close(&t));
    PASS();
}

/* mtan_model_load promises any address and any type, also where the model has points of its own. */
TEST given_points_load_from_anywhere(mtan_dtype dtype, size_t shift) {
    const change how = {dtype, 0, NULL, NULL, NULL, NULL};
    tiny_model t;
    mtan_model model;
    mtan_real exact[6];
    size_t bytes, made;
    open_exact(&t, TINY_FULL);
    for (int i = 0; i < 6; i++) exact[i] = (mtan_real)(i * i / 32.0);
    t.model.config.reference = MTAN_REF_GIVEN, t.model.config.ref = exact;
    void *blob = save(&t.model, NULL, NULL, 0, &bytes), *other = blob ? rewrite(blob, bytes, &how, &made) : NULL;
    ASSERT(other);
    uint8_t *moved = guard_alloc(made + shift);
    memcpy(moved + shift, other, made);
    size_t count = 0;
    ASSERT_EQ(MTAN_OK, blob_load_count(moved + shift, made, &count));
    ASSERT_EQ(t.count + 6, count); /* the weights, and the points behind them */
    mtan_real *weights = guard_alloc(count * sizeof *weights);
    ASSERT_EQ(MTAN_ERR_MEMORY, blob_load(&model, weights, count - 1, moved + shift, made));
    ASSERT_EQ(MTAN_OK, blob_load(&model, weights, count, moved + shift, made));
    ASSERT(model.config.ref == weights + t.count);
    ASSERT(same_answers(&t, &model));
    ASSERT(guard_free(weights) & guard_free(blob) & guard_free(other) & guard_free(moved) & tiny_close(&t));
    PASS();
}

static void open_trainer(tiny_model *t, tiny_kind kind, mtan_optimizer optimizer) {
    mtan_train_config config;
    tiny_open(t, kind, 12);
    mtan_train_config_init(&config);
    config.optimizer = optimizer, config.decay = 0.01, config.average = 0.9;
    tiny_train(t, &config);
}

/* ---- what is wrong ---- */

typedef struct {
    const char *what;
    mtan_status expected;
    change how;
} fault;

static int all_bytes_are(const void *memory, size_t n, uint8_t byte) {
    const uint8_t *p = memory;
    while (n > 0 && p[n - 1] == byte) n--;
    return n == 0;
}

/* Both readers refuse, with that status, and write nothing; the order of bytes may be what the one in place finds first. */
static int refuses(const void *blob, size_t bytes, mtan_status expected, size_t count) {
    mtan_real *weights = guard_alloc(count * sizeof *weights);
    mtan_model model;
    memset(&model, 0x5a, sizeof model);
    memset(weights, 0x5a, count * sizeof *weights);
    const mtan_status loaded = blob_load(&model, weights, count, blob, bytes);
    const mtan_status opened = blob_open(&model, blob, bytes);
    int good = loaded == expected && (opened == expected || (opened == opens() && opened != MTAN_OK));
    if (!good) printf("  BAD load: %d, open: %d, expected %d\n", loaded, opened, expected);
    good = good && all_bytes_are(&model, sizeof model, 0x5a) && all_bytes_are(weights, count * sizeof *weights, 0x5a);
    return guard_free(weights) && good;
}

#define FIFTY_DIGITS "00000000000000000000000000000000000000000000000016"

TEST wrong_files_are_refused(void) {
    const mtan_dtype real = MTAN_DTYPE_REAL;
    const fault faults[] = {
        {"no such tensor", MTAN_ERR_MISSING, {real, 0, "rec.gru_rnn.bias_hh_l0_reverse", NULL, NULL, NULL}},
        {"the last tensor missing", MTAN_ERR_MISSING, {real, 0, "classifier.classifier.4.bias", NULL, NULL, NULL}},
        {"a vector as a matrix", MTAN_ERR_SHAPE, {real, 0, NULL, "dec.att.linears.1.bias", NULL, NULL}},
        {"a matrix bent", MTAN_ERR_SHAPE, {real, 0, NULL, "dec.att.linears.1.weight", NULL, NULL}},
        {"whole numbers", MTAN_ERR_SHAPE, {MTAN_DTYPE_I32, 0, NULL, NULL, NULL, NULL}},
        {"another size", MTAN_ERR_SHAPE, {real, 0, NULL, NULL, "mtan.enc_hidden", "8"}},
        {"not of ours", MTAN_ERR_FILE, {real, 0, NULL, NULL, "mtan.kind", NULL}},
        {"unknown kind", MTAN_ERR_FILE, {real, 0, NULL, NULL, "mtan.kind", "partial"}},
        {"not a number", MTAN_ERR_FILE, {real, 0, NULL, NULL, "mtan.embed", "sixteen"}},
        {"points missing", MTAN_ERR_MISSING, {real, 0, NULL, NULL, "mtan.reference", "given"}},
        {"matrices of other widths", MTAN_ERR_SHAPE, {real, 0, NULL, NULL, "mtan.channels", "2"}},
        {"a long setting", MTAN_ERR_FILE, {real, 0, NULL, NULL, "mtan.embed", FIFTY_DIGITS}},
        {"the other architecture", MTAN_ERR_FILE, {real, 0, NULL, NULL, "mtan.architecture", "mtand-enc"}},
        {"a long architecture", MTAN_ERR_FILE, {real, 0, NULL, NULL, "mtan.architecture", FIFTY_DIGITS}},
        {"another's architecture", MTAN_ERR_MISSING, {real, 0, NULL, NULL, "mtan.architecture", "mtand-encoder"}},
    };
    tiny_model t;
    size_t bytes, made;
    open_exact(&t, TINY_FULL);
    uint8_t *blob = save(&t.model, NULL, NULL, 0, &bytes);
    ASSERT(blob);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        void *bad = rewrite(blob, bytes, &faults[i].how, &made);
        ASSERTm(faults[i].what, bad);
        ASSERTm(faults[i].what, refuses(bad, made, faults[i].expected, t.count + 6)); /* room for points too */
        ASSERT(guard_free(bad));
    }
    for (size_t cut = 0; cut < bytes; cut += cut < 64 ? 1 : 997) { /* truncated */
        void *part = guard_alloc(cut);
        memcpy(part, blob, cut);
        ASSERT(refuses(part, cut, MTAN_ERR_FILE, t.count));
        ASSERT(guard_free(part));
    }
    ASSERT(guard_free(blob) & tiny_close(&t));
    PASS();
}

/* Points in another shape, another number, another type or that are not finite: what they may not be. */
TEST wrong_points_are_refused(void) {
    const change good = {MTAN_DTYPE_REAL, 0, NULL, NULL, NULL, NULL};
    const change bent = {MTAN_DTYPE_REAL, 0, NULL, "mtan.ref", NULL, NULL};
    const change fewer = {MTAN_DTYPE_REAL, 0, NULL, NULL, "mtan.ref_points", "5"};
    const change narrow = {MTAN_DTYPE_BF16, 0, NULL, NULL, NULL, NULL};
    const struct {
        const change *how;
        int nan;
        mtan_status load, config;
    } cases[] = {{&good, 0, MTAN_OK, MTAN_OK},
                 {&bent, 0, MTAN_ERR_SHAPE, MTAN_ERR_SHAPE},
                 {&fewer, 0, MTAN_ERR_SHAPE, MTAN_ERR_SHAPE},
                 {&narrow, 0, MTAN_OK, MTAN_ERR_SHAPE}, /* it is read, but cannot be used where it is */
                 {&good, 1, MTAN_ERR_CONFIG, MTAN_ERR_CONFIG}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny_model t;
        mtan_model model;
        mtan_config config;
        mtan_real exact[6] = {0, (mtan_real)0.125, (mtan_real)0.25, (mtan_real)0.5, (mtan_real)0.75, 1};
        size_t bytes, made;
        open_exact(&t, TINY_FULL);
        t.model.config.reference = MTAN_REF_GIVEN, t.model.config.ref = exact;
        void *blob = save(&t.model, NULL, NULL, 0, &bytes);
        uint8_t *other = blob ? rewrite(blob, bytes, cases[i].how, &made) : NULL;
        ASSERT(other);
        mtan_file file;
        mtan_tensor_view view;
        ASSERT_EQ(MTAN_OK, mtan_file_open(&file, other, made));
        ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "mtan.ref", &view));
        if (cases[i].nan) memset(other + (view.data - other) + view.bytes - sizeof *exact, 255, sizeof *exact);
        mtan_real *weights = guard_alloc((t.count + 6) * sizeof *weights);
        memset(weights, 0x5a, (t.count + 6) * sizeof *weights);
        ASSERT_EQ(cases[i].load, blob_load(&model, weights, t.count + 6, other, made));
        if (cases[i].load) ASSERT(all_bytes_are(weights, (t.count + 6) * sizeof *weights, 0x5a));
        else ASSERT(check_same("points", model.config.ref, exact, sizeof exact));
        const mtan_status status = blob_load_config(&config, other, made);
        ASSERT(status == cases[i].config || (!host_is_little() && status == MTAN_ERR_SHAPE));
        ASSERT(guard_free(weights) & guard_free(blob) & guard_free(other) & tiny_close(&t));
    }
    PASS();
}

/* The caller's array lies over the file's header, so that the file changes while it is read: the failure is told. */
TEST a_file_that_changes_while_it_is_read(void) {
    static char note[8192];
    mtan_file_pair pairs[16];
    char names[16][16];
    tiny_model t;
    mtan_model model;
    mtan_file file;
    size_t bytes;
    open_trainer(&t, TINY_ENC, MTAN_ADAM);
    memset(note, 'n', sizeof note - 1);
    for (int i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], "note%d", i);
        pairs[i].key = names[i], pairs[i].value = note;
    }
    uint8_t *blob = save(&t.model, &t.trainer, pairs, 16, &bytes);
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    ASSERT((size_t)(file.data - blob) > 8 + t.count * sizeof(mtan_real)); /* the header is longer than the weights */
    uint8_t *before = guard_alloc(bytes);
    memcpy(before, blob, bytes);
    memset(&model, 0x5a, sizeof model);
    ASSERT_EQ(MTAN_ERR_FILE, mtan_model_load(&model, (mtan_real *)(void *)(blob + 8), t.count, &file, NULL));
    ASSERT(all_bytes_are(&model, sizeof model, 0x5a));
    memcpy(blob, before, bytes);
    mtan_real *const own = t.trainer.weights;
    t.trainer.weights = (mtan_real *)(void *)(blob + 8), t.trainer.step = 7;
    ASSERT_EQ(MTAN_ERR_FILE, mtan_trainer_load(&t.trainer, &file));
    ASSERT_EQ(7, (int)t.trainer.step);
    memcpy(blob, before, bytes);
    t.trainer.weights = own;
    ASSERT_EQ(MTAN_OK, mtan_trainer_load(&t.trainer, &file));
    ASSERT(guard_free(blob) & guard_free(before) & tiny_close(&t));
    PASS();
}

/* The last weight of each parameter in turn. */
TEST weights_that_are_not_finite_are_refused(tiny_kind kind) {
    const mtan_real bad[] = {(mtan_real)NAN, (mtan_real)INFINITY, (mtan_real)-INFINITY};
    tiny_model t;
    size_t bytes;
    open_exact(&t, kind);
    for (int32_t i = 0; i < mtan_param_count(&t.config); i++) {
        mtan_param p;
        ASSERT_EQ(MTAN_OK, mtan_param_at(&t.config, i, &p));
        mtan_real *last = t.weights + p.offset + (size_t)p.rows * (size_t)p.cols - 1;
        const mtan_real kept = *last;
        *last = bad[i % 3];
        void *blob = save(&t.model, NULL, NULL, 0, &bytes);
        ASSERT(blob);
        ASSERT(refuses(blob, bytes, MTAN_ERR_NUMERIC, t.count));
        ASSERT(guard_free(blob));
        *last = kept;
    }
    ASSERT(tiny_close(&t));
    PASS();
}

/* Knots may be the same, and a channel's may lie below those of the one before; within a channel they may not fall. */
TEST knots_that_fall_are_refused(void) {
    const change bent = {MTAN_DTYPE_REAL, 0, NULL, "rec.values.knots", NULL, NULL};
    const change fewer = {MTAN_DTYPE_REAL, 0, NULL, NULL, "mtan.bins", "2"};
    const change many = {MTAN_DTYPE_REAL, 0, NULL, NULL, "mtan.bins", "65"};
    const change *const wrong[] = {&bent, &fewer, &many};
    small_model s;
    mtan_model model;
    size_t bytes, made;
    mtan_param p;
    ASSERT(small_open_named(&s, "enc piecewise"));
    ASSERT_EQ(MTAN_OK, mtan_param_at(&s.config, mtan_param_count(&s.config) - 1, &p));
    mtan_real *knot = s.weights + p.offset, *weights = guard_alloc(s.count * sizeof *weights);
    knot[4] = knot[3] - 1, knot[1] = knot[2];
    void *blob = save(&s.model, NULL, NULL, 0, &bytes);
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, blob_load(&model, weights, s.count, blob, bytes));
    ASSERT_MEM_EQ(s.weights, weights, s.count * sizeof *weights);
    ASSERT_EQ(opens(), blob_open(&model, blob, bytes));
    for (int i = 0; i < 3; i++) {
        void *other = rewrite(blob, bytes, wrong[i], &made);
        ASSERT(other);
        ASSERT(refuses(other, made, i < 2 ? MTAN_ERR_SHAPE : MTAN_ERR_CONFIG, s.count));
        ASSERT(guard_free(other));
    }
    ASSERT(guard_free(blob));
    knot[p.rows - 1] = knot[p.rows - 2] - 1;
    ASSERT((blob = save(&s.model, NULL, NULL, 0, &bytes)));
    ASSERT(refuses(blob, bytes, MTAN_ERR_FILE, s.count));
    ASSERT(guard_free(blob));
    knot[p.rows - 1] = (mtan_real)NAN;
    ASSERT((blob = save(&s.model, NULL, NULL, 0, &bytes)));
    ASSERT(refuses(blob, bytes, MTAN_ERR_NUMERIC, s.count));
    ASSERT(guard_free(blob) & guard_free(weights) & small_close(&s));
    PASS();
}

/* What a double holds is infinite as a float. */
TEST weights_too_large_for_a_float_are_refused(void) {
    const change how = {MTAN_DTYPE_F64, 0, NULL, NULL, NULL, NULL};
    const double large = 1e300;
    tiny_model t;
    mtan_model model;
    size_t bytes, made;
    open_exact(&t, TINY_ENC);
    void *blob = save(&t.model, NULL, NULL, 0, &bytes), *wide = blob ? rewrite(blob, bytes, &how, &made) : NULL;
    mtan_real *weights = guard_alloc(t.count * sizeof *weights);
    ASSERT(wide);
    uint8_t *end = (uint8_t *)wide + made - sizeof large; /* the last weight of all, from its least significant byte */
    for (size_t i = 0; i < sizeof large; i++)
        end[i] = ((const uint8_t *)&large)[host_is_little() ? i : sizeof large - 1 - i];
    ASSERT_EQ(sizeof(mtan_real) == sizeof(float) ? MTAN_ERR_NUMERIC : MTAN_OK,
              blob_load(&model, weights, t.count, wide, made));
    ASSERT(guard_free(weights) & guard_free(wide) & guard_free(blob) & tiny_close(&t));
    PASS();
}

TEST settings_that_make_no_model_are_refused(void) {
    const change how = {MTAN_DTYPE_REAL, 0, NULL, NULL, "mtan.enc_heads", "3"}; /* does not divide 16 */
    mtan_config config;
    tiny_model t;
    size_t bytes, made;
    memset(&config, 0x5a, sizeof config);
    open_exact(&t, TINY_FULL);
    void *blob = save(&t.model, NULL, NULL, 0, &bytes), *bad = blob ? rewrite(blob, bytes, &how, &made) : NULL;
    ASSERT(bad);
    ASSERT_EQ(MTAN_ERR_CONFIG, blob_load_config(&config, bad, made));
    ASSERT(all_bytes_are(&config, sizeof config, 0x5a));
    ASSERT(refuses(bad, made, MTAN_ERR_CONFIG, t.count));
    ASSERT(guard_free(bad) & guard_free(blob) & tiny_close(&t));
    PASS();
}

TEST small_arrays_and_null_are_refused(void) {
    tiny_model t;
    mtan_model model;
    mtan_config config;
    size_t bytes;
    sink s = {NULL, 0, -1};
    open_exact(&t, TINY_ENC);
    void *blob = save(&t.model, NULL, NULL, 0, &bytes);
    mtan_real *weights = guard_alloc(t.count * sizeof *weights);
    ASSERT(blob);
    ASSERT_EQ(MTAN_ERR_MEMORY, blob_load(&model, weights, t.count - 1, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, blob_load(&model, NULL, t.count, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, blob_load(NULL, weights, t.count, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, blob_load(&model, weights, t.count, NULL, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, blob_open(NULL, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, blob_open(&model, NULL, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, blob_load_config(NULL, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, blob_load_config(&config, NULL, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_save(NULL, NULL, NULL, 0, pour, &s));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_save(&t.model, NULL, NULL, 0, NULL, &s));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_save(&t.model, NULL, NULL, 1, pour, &s));
    ASSERT_EQ(MTAN_ERR_NULL, blob_load_trainer(NULL, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_open(&model, NULL, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_load(&model, weights, t.count, NULL, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_load_count(NULL, NULL, &bytes));
    mtan_file file;
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_load_count(&file, NULL, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_load_config(&config, NULL, NULL));
    ASSERT_EQ(0, s.used);
    ASSERT(guard_free(weights) & guard_free(blob) & tiny_close(&t));
    PASS();
}

/* Every `step`th byte of the header in turn becomes another after the file was opened, and the length that was asked for is the
 * old one's: whatever is said, nothing is read outside the blob or written outside the weights. The header says the same of each
 * parameter, so that it is enough when a byte becomes one of the others: a later one of its kind becomes the next. */
TEST blob_may_change_after_it_was_opened(tiny_kind kind, size_t step) {
    MAY_BE_LEFT_OUT();
    static const uint8_t others[] = {'0', '9', '"', '{', '}', ',', ' ', 0xff};
    mtan_train_config train;
    tiny_model t;
    mtan_model model;
    mtan_config config;
    mtan_file file;
    size_t bytes, count = 0, tried = 0, refused = 0;
    open_exact(&t, kind);
    mtan_train_config_init(&train);
    tiny_train(&t, &train);
    uint8_t *blob = save(&t.model, &t.trainer, NULL, 0, &bytes);
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    ASSERT_EQ(MTAN_OK, mtan_model_load_count(&file, NULL, &count));
    mtan_real *weights = guard_alloc(count * sizeof *weights);
    for (size_t i = 8; blob + i < file.data; i += step) {
        const uint8_t was = blob[i];
        blob[i] = others[tried++ % sizeof others];
        mtan_model_load_config(&config, &file, NULL);
        mtan_model_open(&model, &file, NULL);
        refused += mtan_model_load(&model, weights, count, &file, NULL) != MTAN_OK;
        refused += mtan_trainer_load(&t.trainer, &file) != MTAN_OK;
        blob[i] = was;
    }
    ASSERT(refused > tried);
    ASSERT_EQ(MTAN_OK, mtan_model_load(&model, weights, count, &file, NULL));
    ASSERT(guard_free(weights) & guard_free(blob) & tiny_close(&t));
    PASS();
}

TEST failing_writes_are_reported(void) {
    tiny_model t;
    int calls = 0;
    mtan_status status = MTAN_ERR_WRITE;
    open_exact(&t, TINY_ENC);
    while (status != MTAN_OK && calls < 1000000) {
        sink s = {NULL, 0, calls};
        status = mtan_model_save(&t.model, NULL, NULL, 0, pour, &s);
        if (status != MTAN_OK) ASSERT_EQ(MTAN_ERR_WRITE, status);
        calls += calls < 50 ? 1 : 97;
    }
    ASSERT(status == MTAN_OK && calls > 10);
    ASSERT(tiny_close(&t));
    PASS();
}

/* ---- checkpoints ---- */

static int train_steps(tiny_model *t, int steps, int epoch) {
    mtan_report report;
    for (int i = 0; i < steps; i++)
        if (mtan_trainer_step(&t->trainer, t->records, t->n, epoch + i, &report) != MTAN_OK) return 0;
    return 1;
}

TEST checkpoint_resumes_to_the_bit(tiny_kind kind, mtan_optimizer optimizer) {
    tiny_model a, b;
    size_t bytes;
    open_trainer(&a, kind, optimizer);
    ASSERT(train_steps(&a, 5, 1));
    void *blob = save(&a.model, &a.trainer, NULL, 0, &bytes);
    ASSERT(blob);
    ASSERT(train_steps(&a, 5, 6));
    open_trainer(&b, kind, optimizer);
    ASSERT(train_steps(&b, 2, 1)); /* what it was before must not shine through */
    ASSERT_EQ(MTAN_OK, blob_load_trainer(&b.trainer, blob, bytes));
    ASSERT_EQ(5, (int)b.trainer.step);
    ASSERT(train_steps(&b, 5, 6));
    ASSERT(check_same("weights", b.weights, a.weights, a.count * sizeof *a.weights));
    ASSERT(check_same("first moments", b.trainer.moment1, a.trainer.moment1, a.count * sizeof *a.weights));
    ASSERT(check_same("second moments", b.trainer.moment2, a.trainer.moment2, a.count * sizeof *a.weights));
    ASSERT(check_same("average", b.trainer.average, a.trainer.average, a.count * sizeof *a.weights));
    ASSERT_EQ(10, (int)b.trainer.step);
    mtan_model model;
    ASSERT_EQ(opens(), blob_open(&model, blob, bytes)); /* a checkpoint is a model too */
    ASSERT(guard_free(blob) & tiny_close(&a) & tiny_close(&b));
    PASS();
}

TEST wrong_checkpoints_change_nothing(void) {
    tiny_model t, other;
    size_t bytes, made, foreign_bytes;
    const fault faults[] = {
        {"no moments", MTAN_ERR_MISSING, {MTAN_DTYPE_REAL, 0, "mtan.moment2", NULL, NULL, NULL}},
        {"no average", MTAN_ERR_MISSING, {MTAN_DTYPE_REAL, 0, "mtan.average", NULL, NULL, NULL}},
        {"no step", MTAN_ERR_MISSING, {MTAN_DTYPE_REAL, 0, NULL, NULL, "mtan.step", NULL}},
        {"no weight", MTAN_ERR_MISSING, {MTAN_DTYPE_REAL, 0, "rec.linear.bias", NULL, NULL, NULL}},
        {"step below 0", MTAN_ERR_FILE, {MTAN_DTYPE_REAL, 0, NULL, NULL, "mtan.step", "-1"}},
        {"step no number", MTAN_ERR_FILE, {MTAN_DTYPE_REAL, 0, NULL, NULL, "mtan.step", "x"}},
        {"step too large", MTAN_ERR_FILE, {MTAN_DTYPE_REAL, 0, NULL, NULL, "mtan.step", "1e15"}},
        {"moments of another type", MTAN_ERR_SHAPE, {MTAN_DTYPE_BF16, 0, NULL, NULL, NULL, NULL}},
        {"not of ours", MTAN_ERR_FILE, {MTAN_DTYPE_REAL, 0, NULL, NULL, "mtan.kind", NULL}},
    };
    open_trainer(&t, TINY_ENC, MTAN_ADAM);
    open_trainer(&other, TINY_RNN3_ENC, MTAN_ADAM);
    ASSERT(train_steps(&t, 2, 1));
    void *blob = save(&t.model, &t.trainer, NULL, 0, &bytes);
    void *foreign = save(&other.model, &other.trainer, NULL, 0, &foreign_bytes);
    ASSERT(blob && foreign);
    ASSERT(train_steps(&t, 1, 3));
    mtan_real *weights = tiny_copy(t.weights, t.count), *moment = tiny_copy(t.trainer.moment1, t.count);
    for (size_t i = 0; i <= sizeof faults / sizeof faults[0]; i++) {
        const int last = i == sizeof faults / sizeof faults[0];
        void *bad = last ? NULL : rewrite(blob, bytes, &faults[i].how, &made);
        const mtan_status status = blob_load_trainer(&t.trainer, last ? foreign : bad, last ? foreign_bytes : made);
        if (last) ASSERT(status == MTAN_ERR_MISSING || status == MTAN_ERR_SHAPE);
        else ASSERT_EQm(faults[i].what, faults[i].expected, status);
        ASSERT(check_same("weights", t.weights, weights, t.count * sizeof *weights));
        ASSERT(check_same("moments", t.trainer.moment1, moment, t.count * sizeof *moment));
        ASSERT_EQ(3, (int)t.trainer.step);
        ASSERT(guard_free(bad));
    }
    free(weights), free(moment);
    ASSERT(guard_free(blob) & guard_free(foreign) & tiny_close(&t) & tiny_close(&other));
    PASS();
}

static const char *spoilt; /* name of a tensor */

static mtan_file_entry *spoilt_entry(copy *c) {
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->entries[i].name, spoilt) == 0) return &c->entries[i];
    return NULL;
}

static void shorten(copy *c) {
    spoilt_entry(c)->shape[0]--;
}

static void narrow(copy *c) {
    spoilt_entry(c)->shape[1]--;
}

static void retype(copy *c) {
    spoilt_entry(c)->dtype = MTAN_DTYPE_I16; /* half of its bytes are enough */
}

/* A matrix whose rows are as many as they should be, and shorter. */
TEST a_narrow_matrix_changes_nothing(void) {
    const change same = {MTAN_DTYPE_REAL, 0, NULL, NULL, NULL, NULL};
    tiny_model t;
    mtan_param p;
    int32_t i = 0;
    size_t bytes, made;
    open_trainer(&t, TINY_ENC, MTAN_ADAM);
    void *blob = save(&t.model, &t.trainer, NULL, 0, &bytes);
    ASSERT(blob);
    do ASSERT_EQ(MTAN_OK, mtan_param_at(&t.model.config, i++, &p));
    while (p.rank != 2 || p.cols < 2);
    spoilt = p.name, spoil = narrow;
    void *bad = rewrite(blob, bytes, &same, &made);
    spoil = NULL;
    ASSERT(bad);
    mtan_real *weights = tiny_copy(t.weights, t.count);
    ASSERT_EQ(MTAN_ERR_SHAPE, blob_load_trainer(&t.trainer, bad, made));
    ASSERT(check_same("weights", t.weights, weights, t.count * sizeof *weights));
    free(weights);
    ASSERT(guard_free(blob) & guard_free(bad) & tiny_close(&t));
    PASS();
}

/* Any of the trainer's tensors may be what is wrong. */
TEST wrong_moments_change_nothing(void) {
    static const char *const moments[] = {"mtan.moment1", "mtan.moment2", "mtan.average"};
    static void (*const wrong[])(copy *) = {shorten, retype};
    const change same = {MTAN_DTYPE_REAL, 0, NULL, NULL, NULL, NULL};
    tiny_model t;
    mtan_file file;
    size_t bytes, made;
    open_trainer(&t, TINY_ENC, MTAN_ADAM);
    ASSERT(train_steps(&t, 2, 1));
    void *blob = save(&t.model, &t.trainer, NULL, 0, &bytes);
    ASSERT(blob);
    ASSERT(train_steps(&t, 1, 3));
    mtan_real *weights = tiny_copy(t.weights, t.count), *moment = tiny_copy(t.trainer.moment1, t.count);
    for (int i = 0; i < 6; i++) {
        spoilt = moments[i / 2], spoil = wrong[i % 2];
        void *bad = rewrite(blob, bytes, &same, &made);
        spoil = NULL;
        ASSERT(bad);
        ASSERT_EQ(MTAN_ERR_SHAPE, blob_load_trainer(&t.trainer, bad, made));
        ASSERT(check_same("weights", t.weights, weights, t.count * sizeof *weights));
        ASSERT(check_same("moments", t.trainer.moment1, moment, t.count * sizeof *moment));
        ASSERT_EQ(3, (int)t.trainer.step);
        ASSERT(guard_free(bad));
    }
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_trainer_load(NULL, &file));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_trainer_load(&t.trainer, NULL));
    free(weights), free(moment);
    ASSERT(guard_free(blob) & tiny_close(&t));
    PASS();
}

TEST checkpoints_that_are_not_finite_change_nothing(void) {
    tiny_model t;
    size_t bytes;
    open_trainer(&t, TINY_ENC, MTAN_ADAM);
    ASSERT(train_steps(&t, 2, 1));
    mtan_real *const array[] = {t.weights, t.trainer.moment1, t.trainer.moment2};
    for (int i = 0; i < 3; i++) {
        const mtan_real kept = array[i][t.count / 2];
        array[i][t.count / 2] = (mtan_real)NAN;
        void *blob = save(&t.model, &t.trainer, NULL, 0, &bytes);
        ASSERT(blob);
        array[i][t.count / 2] = kept;
        ASSERT(train_steps(&t, 1, 3));
        mtan_real *weights = tiny_copy(t.weights, t.count), *moment = tiny_copy(t.trainer.moment1, t.count);
        ASSERT_EQ(MTAN_ERR_NUMERIC, blob_load_trainer(&t.trainer, blob, bytes));
        ASSERT(check_same("weights", t.weights, weights, t.count * sizeof *weights));
        ASSERT(check_same("moments", t.trainer.moment1, moment, t.count * sizeof *moment));
        free(weights), free(moment);
        ASSERT(guard_free(blob));
    }
    ASSERT(tiny_close(&t));
    PASS();
}

SUITE(modelfile_suite) {
    for (int i = 0; i < TINY_KINDS; i++) {
        const tiny_kind kind = (tiny_kind)i;
        greatest_set_test_suffix(tiny_names[i]);
        RUN_TEST1(saved_model_opens_in_place_and_loads, kind);
        greatest_set_test_suffix(tiny_names[i]);
        RUN_TEST1(any_order_and_type_load, kind);
        greatest_set_test_suffix(tiny_names[i]);
        RUN_TESTp(checkpoint_resumes_to_the_bit, kind, i % 2 ? MTAN_ADAM : MTAN_ADAMAX);
    }
    for (int i = 0; published_names[i]; i++) {
        greatest_set_test_suffix(published_names[i]);
        RUN_TEST1(published_settings_come_back, published_names[i]);
    }
    RUN_TEST(numbers_come_back_to_the_bit);
    RUN_TEST(pairs_of_the_caller_are_kept);
    greatest_set_test_suffix("enc");
    RUN_TEST1(given_points_are_kept, TINY_ENC);
    greatest_set_test_suffix("interp");
    RUN_TEST1(given_points_are_kept, TINY_INTERP);
    greatest_set_test_suffix("unaligned");
    RUN_TESTp(given_points_load_from_anywhere, MTAN_DTYPE_REAL, (size_t)1);
    greatest_set_test_suffix("bf16");
    RUN_TESTp(given_points_load_from_anywhere, MTAN_DTYPE_BF16, (size_t)0);
    RUN_TEST(wrong_files_are_refused);
    RUN_TEST(wrong_points_are_refused);
    RUN_TEST(a_file_that_changes_while_it_is_read);
    RUN_TEST1(weights_that_are_not_finite_are_refused, TINY_ENC);
    RUN_TEST1(weights_that_are_not_finite_are_refused, TINY_FULL);
    RUN_TEST(knots_that_fall_are_refused);
    RUN_TEST(weights_too_large_for_a_float_are_refused);
    RUN_TEST(settings_that_make_no_model_are_refused);
    RUN_TEST(small_arrays_and_null_are_refused);
    RUN_TESTp(blob_may_change_after_it_was_opened, TINY_ENC, 1);
    RUN_TESTp(blob_may_change_after_it_was_opened, TINY_FULL, 3);
    RUN_TEST(failing_writes_are_reported);
    RUN_TEST(wrong_checkpoints_change_nothing);
    RUN_TEST(a_narrow_matrix_changes_nothing);
    RUN_TEST(wrong_moments_change_nothing);
    RUN_TEST(checkpoints_that_are_not_finite_change_nothing);
}
