/* mtan quantize: writes a model file with its matrices in fewer bytes, and shows how the predictions change.
 *
 * Vectors and matrices of one column stay as they are: they are 3 % of a model, and include the frequencies of the time
 * embedding. The smaller file keeps all metadata but cannot be trained further: the optimiser's state is left out. */
#define MTAN_INTERNALS
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "../model/golden_record.h"
#include "../measure/labels.h"
#include "../measure/metrics.h"
#include "../options/settings.h"
#include "../base/files.h"
#include "../model/shared_options.h"
#include "../model/session.h"

static const double LARGEST_LOSS = 0.002; /* of AUC */

/* ---- 16-bit floats, rounded to nearest, ties to even ---- */

/* The upper 16 bits of a binary32, rounded. */
static uint16_t bf16_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Below 2^-14, a binary16 is a multiple of 2^-24, and so is a float just above 0.5: adding 0.5 rounds to it. Above, 13
 * bits of the fraction are rounded off, and the exponent's bias becomes 15 instead of 127. */
static uint16_t f16_of(float x) {
    const float size = fabsf(x), small = size + 0.5f;
    const uint32_t sign = x < 0 ? 0x8000u : 0;
    uint32_t bits;
    if (size < 0x1p-14f) {
        memcpy(&bits, &small, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    memcpy(&bits, &size, sizeof bits);
    bits += 0xfffu + (bits >> 13 & 1u);
    return (uint16_t)(sign | ((bits >> 13) - (112u << 10)));
}

/* The largest magnitude of the type: a larger weight would become infinite. */
static double largest_of(mtan_dtype dtype) {
    return dtype == MTAN_DTYPE_F16 ? 65504 : dtype == MTAN_DTYPE_F32 ? (double)FLT_MAX : 3e38;
}

/* ---- the file ---- */

typedef struct smaller {
    mtan_file_entry *entries; /* stb_ds arrays */
    mtan_file_pair *pairs;    /* malloc'd texts */
    void **owned;
} smaller;

static void *own(smaller *s, size_t n, size_t size) {
    void *memory = tool_calloc(n ? n : 1, size);
    arrput(s->owned, memory);
    return memory;
}

static void smaller_free(smaller *s) {
    for (size_t i = 0; i < arrlenu(s->owned); i++) free(s->owned[i]);
    pairs_free(s->pairs, arrlenu(s->pairs));
    arrfree(s->owned), arrfree(s->pairs), arrfree(s->entries);
}

static void add_entry(smaller *s, const char *name, mtan_dtype dtype, const mtan_param *shape, const void *data) {
    mtan_file_entry e;
    memset(&e, 0, sizeof e);
    e.name = name, e.dtype = dtype, e.rank = shape->rank, e.data = data;
    e.shape[0] = (size_t)shape->rows;
    if (shape->rank == 2) e.shape[1] = (size_t)shape->cols;
    arrput(s->entries, e);
}

static char *add_name(smaller *s, const char *name, const char *ending) {
    char *text = own(s, strlen(name) + strlen(ending) + 1, 1);
    return strcat(strcpy(text, name), ending);
}

static void add_int8(smaller *s, const mtan_param *p, const mtan_real *w) {
    const size_t rows = (size_t)p->rows, cols = (size_t)p->cols;
    int8_t *q = own(s, rows * cols, sizeof *q);
    float *scale = own(s, rows, sizeof *scale);
    mtan_param column = *p;
    for (size_t i = 0; i < rows; i++) scale[i] = (float)mtan_row_quantize(q + i * cols, w + i * cols, cols);
    column.rank = 1;
    add_entry(s, add_name(s, p->name, ""), MTAN_DTYPE_I8, p, q);
    add_entry(s, add_name(s, p->name, ".scale"), MTAN_DTYPE_F32, &column, scale);
}

static void add_half(smaller *s, const mtan_param *p, const mtan_real *w, mtan_dtype dtype) {
    const size_t n = (size_t)p->rows * (size_t)p->cols;
    uint16_t *out = own(s, n, sizeof *out);
    for (size_t i = 0; i < n; i++) out[i] = dtype == MTAN_DTYPE_F16 ? f16_of((float)w[i]) : bf16_of((float)w[i]);
    add_entry(s, add_name(s, p->name, ""), dtype, p, out);
}

static void add_real(smaller *s, const char *name, const mtan_param *p, const mtan_real *w) {
    const size_t n = (size_t)p->rows * (size_t)(p->rank == 2 ? p->cols : 1);
    float *out = own(s, n, sizeof *out);
    for (size_t i = 0; i < n; i++) out[i] = (float)w[i];
    add_entry(s, add_name(s, name, ""), MTAN_DTYPE_F32, p, out);
}

/* The type in which a parameter is kept. Trees have one column: they split by thresholds that must not be rounded, and
 * "known or not" is a threshold of FLT_MAX, which only a float holds. */
static mtan_dtype kept_in(const mtan_param *p, mtan_dtype dtype) {
    return p->rank != 2 || p->cols == 1 ? MTAN_DTYPE_F32 : dtype;
}

/* Returns 0 with a message printed if the type cannot hold a weight. */
static int add_tensors(smaller *s, const mtan_model *model, mtan_dtype dtype) {
    for (int32_t i = 0; i < mtan_param_count(&model->config); i++) {
        const mtan_real *w = model->weights + model->offset[i];
        mtan_dtype kept;
        mtan_param p;
        mtan_param_at(&model->config, i, &p);
        kept = kept_in(&p, dtype);
        for (size_t k = 0; k < (size_t)p.rows * (size_t)p.cols; k++)
            if (!(fabs((double)w[k]) <= largest_of(kept)))
                return complain("%s: the weight %g cannot be kept in this type", p.name, (double)w[k]), 0;
        if (kept == MTAN_DTYPE_F32) add_real(s, p.name, &p, w);
        else if (kept == MTAN_DTYPE_I8) add_int8(s, &p, w);
        else add_half(s, &p, w, kept);
    }
    if (model->config.reference == MTAN_REF_GIVEN) {
        mtan_param points;
        memset(&points, 0, sizeof points);
        points.rank = 1, points.rows = model->config.ref_points;
        add_real(s, "mtan.ref", &points, model->config.ref);
    }
    return 1;
}

static void add_metadata(smaller *s, const mtan_file *file) {
    pairs_copy(&s->pairs, file, "");
    for (size_t i = arrlenu(s->pairs); i-- > 0;) {
        if (strcmp(s->pairs[i].key, "mtan.step") != 0) continue; /* belongs to the optimiser's state */
        pairs_free(s->pairs + i, 1);
        arrdel(s->pairs, i);
    }
}

/* The file in memory; free() it. NULL with a message printed. */
static void *smaller_bytes(const smaller *s, size_t *bytes) {
    const size_t n = arrlenu(s->entries), m = arrlenu(s->pairs);
    mtan_status status = mtan_file_write_size(s->entries, n, s->pairs, m, bytes);
    void *out = status == MTAN_OK ? tool_calloc(*bytes, 1) : NULL;
    if (out) status = mtan_file_write_memory(s->entries, n, s->pairs, m, out, *bytes, bytes);
    if (status == MTAN_OK) return out;
    free(out);
    return complain("%s", mtan_status_message(status)), NULL;
}

/* ---- how the predictions change ---- */

/* Loads the model from a file in memory; *weights is malloc'd. */
static mtan_status load(mtan_model *model, mtan_real **weights, const void *blob, size_t bytes) {
    mtan_file file;
    size_t count = 0;
    mtan_status status = mtan_file_open(&file, blob, bytes);
    if (status == MTAN_OK) status = mtan_model_load_count(&file, NULL, &count);
    if (status != MTAN_OK) return status;
    *weights = tool_calloc(count, sizeof **weights);
    return mtan_model_load(model, *weights, count, &file, NULL);
}

static double auc(const predictions *p) {
    return p->classes == 2 ? metric_auc(p->score, p->label, p->rows)
                           : metric_auc_classes(p->p, p->label, p->rows, p->classes);
}

static double largest_change(const predictions *a, const predictions *b) {
    double worst = 0;
    for (size_t i = 0; i < a->rows * (size_t)a->classes; i++) {
        const double d = fabs(a->p[i] - b->p[i]);
        if (!(d <= worst)) worst = isnan(d) ? INFINITY : d;
    }
    return worst;
}

static int compare_classes(session *s, const options *o, const mtan_model *after) {
    predictions a, b;
    double change, before_auc, after_auc;
    if (!session_predict(s, o, &a)) return BAD_USE;
    s->bundle.model = *after;
    if (!session_predict(s, o, &b)) return predictions_free(&a), BAD_USE;
    change = largest_change(&a, &b);
    predictions_drop_unlabelled(&a), predictions_drop_unlabelled(&b);
    before_auc = auc(&a), after_auc = auc(&b);
    note("largest change     %.6f of a probability, %td records of the part '%s'", change, arrlen(s->positions),
         s->part);
    note("AUC                %.4f, was %.4f (%+.4f)", after_auc, before_auc, after_auc - before_auc);
    predictions_free(&a), predictions_free(&b);
    if (!(before_auc - after_auc > LARGEST_LOSS)) return DONE;
    complain("the AUC falls by more than %g: use --type f16, or train longer", LARGEST_LOSS);
    return BAD_RESULT;
}

/* The largest acceptable growth of a number's error, as a fraction of it. */
static const double LARGEST_GROWTH = 0.02;

/* The headline metric: RMSE of a number, mean AUC of labels. */
static double worth_of(const number_predictions *p, mtan_task task) {
    number_query rmse = {p, NUMBER_RMSE, NULL, NULL};
    label_tables t = {0};
    label_query auc = {&t, METRIC_AUC, -1, NULL};
    double value;
    if (task == MTAN_TASK_NUMBER) return number_drawn(&rmse, NULL, p->rows);
    t = label_tables_make(p->p, p->y, p->rows, p->outputs);
    value = label_drawn(&auc, NULL, p->rows);
    label_tables_free(&t);
    return value;
}

static int compare_numbers(session *s, const options *o, const mtan_model *after) {
    const mtan_task task = s->bundle.model.config.task;
    const int labels = task == MTAN_TASK_LABELS;
    number_predictions a, b;
    double was, is;
    if (!s->data.numbers) return complain("--labels FILE is needed, with what the model predicts");
    if (!session_numbers(s, o, &a)) return BAD_USE;
    s->bundle.model = *after;
    if (!session_numbers(s, o, &b)) return numbers_free(&a), BAD_USE;
    was = worth_of(&a, task), is = worth_of(&b, task);
    note("%-18s %.5g, was %.5g, %zu rows of the part '%s'", labels ? "AUC, mean" : "RMSE", is, was, a.rows, s->part);
    numbers_free(&a), numbers_free(&b);
    if (labels ? !(was - is > LARGEST_LOSS) : !(is > was * (1 + LARGEST_GROWTH))) return DONE;
    complain("the %s by more than %g: use --type f16, or train longer", labels ? "AUC falls" : "RMSE grows",
             labels ? LARGEST_LOSS : LARGEST_GROWTH * was);
    return BAD_RESULT;
}

static int compare_curves(session *s, const options *o, const mtan_model *after) {
    const double share = s->source.observed < 1 ? s->source.observed : 0.5;
    interpolation_error a, b;
    if (!session_interpolate(s, o, share, &a, NULL)) return BAD_USE;
    s->bundle.model = *after;
    if (!session_interpolate(s, o, share, &b, NULL)) return BAD_USE;
    note("mean squared error %.6f, was %.6f, at held-out points of the part '%s'", b.held, a.held, s->part);
    return DONE;
}

/* Uses the validation records, unless --split is given or the data is not the training data. */
static void choose_part(session *s, const options *o) {
    int32_t *valid;
    if (option_given(o, "split") || strcmp(s->part, "test") != 0) return;
    valid = split_positions(&s->split, "valid");
    if (arrlen(valid) == 0) return;
    arrfree(s->positions);
    s->positions = valid, s->part = "valid";
}

/* Without data: compares on the record that the model file keeps. */
static void compare_golden(bundle *b, const mtan_model *after) {
    double change;
    if (golden_record_change(b, after, &change))
        note("largest change     %.6f of an output of the file's own record; --data measures the AUC", change);
}

/* ---- the command ---- */

static int read_type(const options *o, mtan_dtype *dtype) {
    static const char *const names[] = {"int8", "f16", "bf16"};
    static const mtan_dtype types[] = {MTAN_DTYPE_I8, MTAN_DTYPE_F16, MTAN_DTYPE_BF16};
    const char *asked = option_text(o, "type", "int8");
    for (int i = 0; i < 3; i++)
        if (strcmp(asked, names[i]) == 0) return *dtype = types[i], 1;
    return complain("--type %s: must be int8, f16 or bf16", asked), 0;
}

/* Writes OUT and leaves its model on the old model's backend. The file is written twice, because it stores the expected
 * output of its own record, which must come from the smaller model. */
static int write_smaller(const options *o, bundle *b, mtan_dtype dtype, mtan_model *model, mtan_real **weights) {
    char error[512] = "";
    smaller s = {NULL, NULL, NULL};
    size_t bytes = 0;
    void *blob = NULL;
    mtan_status status;
    int good = add_tensors(&s, &b->model, dtype);
    if (good) add_metadata(&s, &b->file);
    good = good && (blob = smaller_bytes(&s, &bytes)) != NULL;
    if (good && (status = load(model, weights, blob, bytes)) != MTAN_OK)
        complain("%s", mtan_status_message(status)), good = 0;
    if (good) {
        model->backend = b->model.backend;
        golden_record_renew(b, model, s.pairs);
        free(blob);
        good = (blob = smaller_bytes(&s, &bytes)) != NULL;
    }
    if (good && !file_write(o->argument[1], blob, bytes, error)) complain("%s", error), good = 0;
    if (good) note("size               %zu bytes, was %zu", bytes, b->bytes);
    free(blob);
    smaller_free(&s);
    return good;
}

int command_quantize(const options *o) {
    const int with_data = option_given(o, "data");
    char error[512] = "";
    mtan_real *weights = NULL;
    mtan_model model;
    mtan_dtype dtype;
    session s;
    int status = BAD_USE;
    memset(&s, 0, sizeof s);
    if (!read_type(o, &dtype)) return BAD_USE;
    if (with_data && !session_open(&s, o, o->argument[0])) return BAD_USE;
    if (!with_data && !bundle_read(&s.bundle, o->argument[0], error)) return complain("%s", error);
    if (!with_data && !option_backend(o, &s.bundle.model.backend)) return bundle_free(&s.bundle), BAD_USE;
    if (s.bundle.model.config.architecture) {
        complain("%s is a %s: only mTAN's models are made smaller", o->argument[0],
                 model_title(&s.bundle.model.config));
        return session_close(&s), BAD_USE;
    }
    if (write_smaller(o, &s.bundle, dtype, &model, &weights)) {
        model.config.predict_samples = s.bundle.model.config.predict_samples;
        if (with_data) choose_part(&s, o);
        if (!with_data) compare_golden(&s.bundle, &model), status = DONE;
        else
            status = s.source.interpolation                            ? compare_curves(&s, o, &model)
                     : s.bundle.model.config.task == MTAN_TASK_CLASSES ? compare_classes(&s, o, &model)
                                                                       : compare_numbers(&s, o, &model);
    }
    free(weights);
    session_close(&s);
    return status;
}
