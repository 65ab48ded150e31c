/* mtan export: writes a model as one C header, for a board without files.
 *
 * Weights are decimals with the suffix f that read back to the same bits: valid in C99 and C++, and right in either
 * byte order and in the double build. On a Cortex-M4F, mtan_model_init on that array needs 4.7 KB less code than
 * mtan_model_open on the bytes of a model file, and saves the reader's 2.5 KB of stack and the file's metadata. C does
 * not require that decimals are rounded to the nearest float: NAME_hash, the mtan_bytes_hash of the weights' bytes,
 * detects a compiler that rounds differently.
 *
 * If mtan_small_classify can run the model, the header uses it, in a few kilobytes, and the matrices of an int8 file
 * stay int8, as bytes and their scales. Other models need a predictor, which needs reals, so int8 weights are expanded.
 *
 * It refuses what C text cannot express: weights that are NaN or infinite, and a NAME that is no prefix of C names. It
 * never writes half a header. Training state is left out. */
#define _POSIX_C_SOURCE 200809L
#define MTAN_INTERNALS
#include "export.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../data/text_writer.h"
#include "commands.h"
#include "../model/board.h"
#include "../model/golden_record.h"
#include "../options/options.h"
#include "../options/settings.h"
#include "../base/files.h"

enum { ERROR_SIZE = 512, WIDTH = 118, NAME_MOST = 40, MADE_EVENTS = 16, MADE_TIMES = 5 };

/* The parameters of an int8 file in the form that a board uses. */
typedef struct int8_arrays {
    mtan_model model;
    mtan_real *weights; /* (count) */
    int8_t *rows;       /* (bytes) */
    size_t count, bytes;
} int8_arrays;

typedef struct header {
    FILE *out;
    const char *name;
    const int8_arrays *int8; /* or NULL */
    board_need need;         /* need.points is 0 when the model needs a predictor */
    size_t predictor;        /* size of a predictor in bytes; 0 for an int8 model, which uses none */
    size_t column, numbers;  /* of the list being written */
} header;

/* ---- int8 ---- */

/* Reads one parameter of the file. Returns 0 if it is a matrix of another type. */
static int int8_take(int8_arrays *q, const bundle *b, int32_t index) {
    const mtan_model *m = &q->model;
    mtan_param p;
    mtan_tensor_view view;
    char name[MTAN_NAME_SIZE + 8];
    mtan_param_at(&m->config, index, &p);
    snprintf(name, sizeof name, "%s%s", p.name, m->row0[index] == MTAN_NO_ROWS ? "" : ".scale");
    if (mtan_file_tensor(&b->file, name, &view) != MTAN_OK ||
        mtan_view_read(&view, q->weights + m->offset[index], view.count) != MTAN_OK)
        return 0;
    if (m->row0[index] == MTAN_NO_ROWS) return 1;
    if (mtan_file_tensor(&b->file, p.name, &view) != MTAN_OK) return 0;
    return mtan_view_read_raw(&view, MTAN_DTYPE_I8, q->rows + m->row0[index], view.count) == MTAN_OK;
}

/* Returns 0 if the file's matrices are not all int8, or the model needs a predictor. Call int8_free in either case. */
static int int8_read(int8_arrays *q, const bundle *b) {
    const mtan_config *c = &b->model.config;
    board_need need;
    memset(q, 0, sizeof *q);
    if (!board_need_of(&need, c, 1) || mtan_model_int8_counts(c, &q->count, &q->bytes) != MTAN_OK) return 0;
    q->weights = tool_calloc(q->count, sizeof *q->weights), q->rows = tool_calloc(q->bytes, 1);
    if (mtan_model_init_int8(&q->model, c, q->weights, q->count, q->rows, q->bytes) != MTAN_OK) return 0;
    q->model.backend = b->model.backend;
    for (int32_t i = 0; i < mtan_param_count(c); i++)
        if (!int8_take(q, b, i)) return 0;
    return 1;
}

static void int8_free(int8_arrays *q) {
    free(q->weights), free(q->rows);
}

/* ---- what the model needs on a board ---- */

static board_need find_need(const bundle *b, const int8_arrays *q, size_t predictor) {
    board_need need;
    if (board_need_of(&need, &b->model.config, q != NULL)) return need;
    need.weights = mtan_weights_count(&b->model.config) * sizeof(float), need.memory = predictor;
    need.code = BOARD_PREDICTOR_CODE, need.stack = BOARD_PREDICTOR_STACK, need.points = 0;
    return need;
}

/* ---- lists of numbers ---- */

static void list_begin(header *h, const char *type, const char *what) {
    fprintf(h->out, "static const %s %s_%s[] = {", type, h->name, what);
    h->column = WIDTH, h->numbers = 0;
}

static void list_put(header *h, const char *item) {
    const size_t length = strlen(item) + 2;
    if (h->column + length > WIDTH) fputs("\n   ", h->out), h->column = 3;
    fprintf(h->out, " %s,", item);
    h->column += length, h->numbers++;
}

static void list_remark(header *h, const char *text) {
    fprintf(h->out, "\n    /* %s */", text);
    h->column = WIDTH;
}

/* C has no empty arrays: one without elements gets a single 0. */
static void list_end(header *h) {
    if (h->numbers == 0) list_put(h, "0");
    fputs("\n};\n", h->out);
}

/* A decimal of 9 or 17 digits that reads back to the same bits, as a C literal. */
static const char *real_text(mtan_real x, char text[40]) {
    const int narrow = !((double)x < (double)(float)x) && !((double)x > (double)(float)x);
    snprintf(text, 32, narrow ? "%.9g" : "%.17g", (double)x);
    if (!strpbrk(text, ".e")) strcat(text, ".0");
    if (narrow) strcat(text, "f");
    return text;
}

static void put_real(header *h, mtan_real x) {
    char text[40];
    list_put(h, real_text(x, text));
}

static void write_reals(header *h, const char *what, const mtan_real *x, size_t n) {
    list_begin(h, "mtan_real", what);
    for (size_t i = 0; i < n; i++) put_real(h, x[i]);
    list_end(h);
}

/* ---- texts ---- */

/* Writes a literal that is valid in C and C++: everything except plain ASCII in octal, without trigraphs. */
static void write_string(header *h, const char *text) {
    fputc('"', h->out);
    for (const unsigned char *s = (const unsigned char *)text; *s; s++)
        if (*s < 0x20 || *s > 0x7E) fprintf(h->out, "\\%03o", *s);
        else fprintf(h->out, strchr("\"\\?", *s) ? "\\%c" : "%c", *s);
    fputc('"', h->out);
}

/* Names, or their numbers if the model has no names. */
static void write_names(header *h, const char *what, char **names, int32_t n) {
    char number[16];
    fprintf(h->out, "static const char *const %s_%s[] = {", h->name, what);
    for (int32_t i = 0; i < n; i++) {
        snprintf(number, sizeof number, "%" PRId32, i);
        fputs("\n    ", h->out);
        write_string(h, (size_t)i < arrlenu(names) ? names[i] : number);
        fputc(',', h->out);
    }
    fputs(n > 0 ? "\n};\n" : "\n    0,\n};\n", h->out);
}

/* Writes code in which @ stands for the header's name. */
static void write_code(header *h, const char *code) {
    for (; *code; code++)
        if (*code == '@') fputs(h->name, h->out);
        else fputc(*code, h->out);
}

/* Replaces every character that could end a comment. */
static void write_remark(header *h, const char *text) {
    for (; *text; text++) fputc(isalnum((unsigned char)*text) || strchr("._-/ ", *text) ? *text : '_', h->out);
}

/* ---- the parts of a header ---- */

static const char *const use_predictor_code =
    " *\n"
    " *     static unsigned char memory[@_memory];\n"
    " *     static mtan_real out[@_outputs];\n"
    " *     mtan_model model;\n"
    " *     mtan_predictor run;\n"
    " *     mtan_bounds most = {1, @_events, @_times};\n"
    " *     @_open(&model); mtan_predictor_init(&run, &model, &most, memory, sizeof memory);\n"
    " *     @_prepare(raw, n, events, room, &found);                // observations as measured: mtan_observation\n"
    " *     record.events = events, record.n_events = found.events;\n"
    " *     @_predict(&run, &record, out);\n";

static const char *const use_small_code =
    " *\n"
    " *     static unsigned char memory[@_memory];\n"
    " *     mtan_real out[@_outputs];\n"
    " *     mtan_model model;\n"
    " *     @_open(&model);\n"
    " *     @_prepare(raw, n, events, room, &found);                // observations as measured: mtan_observation\n"
    " *     record.events = events, record.n_events = found.events;\n"
    " *     @_predict(&model, &record, memory, out);                // mtan_small_classify\n";

static void write_need(header *h) {
    const board_need *n = &h->need;
    fprintf(h->out,
            " *\n * Flash: %zu bytes of weights, and about %zu KB of code%s. RAM: %zu bytes of memory, and about\n"
            " * %zu KB of stack, the mtan_model with it. Code and stack are those of a Cortex-M4F, gcc -O2, and of "
            "mtan.c in the\n"
            " * packages for boards, which leave training out: platform/cortex-m/README.md.\n",
            n->weights, n->code / 1024, n->points ? " with -DMTAN_SMALL_ONLY" : "", n->memory, n->stack / 1024);
}

/* What times and results are counted in. */
static void write_units(header *h, const bundle *b) {
    const mtan_config *c = &b->model.config;
    fputs(" *\n * Times are in ", h->out);
    write_remark(h, b->prep.unit[0] ? b->prep.unit : "the unit of the training data");
    fputs(b->prep.from_first ? ", counted from the record's first observation" : ", counted as in the training data",
          h->out);
    write_code(h, ": @_prepare takes them so.\n");
    if (c->classify == MTAN_CLASSIFY_NONE)
        write_code(h, " * The model interpolates at record.times, each made by mtan_prep_time(&@_prep, time). A mean "
                      "in the data's\n"
                      " * unit is mtan_prep_raw_value(&@_prep, channel, mean).\n");
    else if (b->prep.number)
        write_code(h, " * A predicted number in the data's unit is mtan_prep_raw_number(&@_prep, k, out[k]).\n");
}

static void write_top(header *h, bundle *b, const export_settings *s) {
    fputs("/* A model of mtan " MTAN_VERSION ", from ", h->out);
    write_remark(h, s->source);
    fputs(". Include it in one file: every array is static.\n", h->out);
    write_code(h, h->need.points ? use_small_code : use_predictor_code);
    write_need(h);
    write_units(h, b);
    fprintf(h->out, " */\n#ifndef MTAN_EXPORT_%s_H\n#define MTAN_EXPORT_%s_H\n\n#include \"mtan.h\"\n", h->name,
            h->name);
}

static void write_size(header *h, const char *what, int64_t value, const char *remark) {
    fprintf(h->out, "    %s_%s = %" PRId64 ",%s\n", h->name, what, value, remark);
}

/* Numbers per row of the output. A row is a record or a query time. */
static int32_t row_size(const mtan_config *c) {
    return c->classify == MTAN_CLASSIFY_NONE ? c->channels : mtan_config_outputs(c);
}

/* The sizes hold for any record, since memory does not grow with it. */
static void write_small_sizes(header *h, const mtan_config *c) {
    write_size(h, "outputs", mtan_config_outputs(c), "");
    write_size(h, "points", h->need.points, " /* reference points at a time: more are faster, in more memory */");
    write_size(h, "memory", (int64_t)h->need.memory, " /* bytes that so many need, for a record of any length */");
}

static void write_predictor_sizes(header *h, const mtan_config *c, const export_settings *s) {
    const int64_t rows = c->classify == MTAN_CLASSIFY_RECORD ? 1 : s->times;
    const char *what = h->need.points ? "predictor_memory" : "memory";
    write_size(h, "events", s->events, " /* most observations of a record, for a predictor */");
    write_size(h, "times", s->times, " /* most distinct times, and most query times */");
    if (!h->need.points) write_size(h, "outputs", rows * row_size(c), " /* most numbers that a prediction has */");
    write_size(h, what, (int64_t)h->predictor, " /* bytes that a predictor needs for one such record */");
}

/* The macros are for programs that accept any kind of header. */
static void write_sizes(header *h, const bundle *b, const export_settings *s) {
    const mtan_config *c = &b->model.config;
    fputs("\nenum {\n", h->out);
    write_size(h, "channels", c->channels, "");
    write_size(h, "classes", c->classify == MTAN_CLASSIFY_NONE ? 0 : c->classes, "");
    if (h->need.points) write_small_sizes(h, c);
    if (!h->int8) write_predictor_sizes(h, c, s);
    write_size(h, "weight_count", (int64_t)(h->int8 ? h->int8->count : mtan_weights_count(c)), "");
    if (h->int8) write_size(h, "row_bytes", (int64_t)h->int8->bytes, "");
    fputs("};\n", h->out);
    if (h->need.points) write_code(h, "#define @_is_small 1\n");
    if (h->int8) write_code(h, "#define @_is_int8 1\n");
}

/* The number of reals of a parameter: one per element, or one scale per row of an int8 matrix. */
static size_t reals_of(const mtan_model *m, int32_t index, const mtan_param *p) {
    const int in_rows = m->rows && m->row0[index] != MTAN_NO_ROWS;
    return (size_t)p->rows * (in_rows ? 1 : (size_t)p->cols);
}

/* One flat array in the order of the parameter table, with each tensor's name in a comment. */
static int write_weights(header *h, const mtan_model *m, char *error) {
    char remark[MTAN_NAME_SIZE + 48];
    list_begin(h, "mtan_real", "weights");
    for (int32_t k = 0; k < mtan_param_count(&m->config); k++) {
        mtan_param p;
        if (mtan_param_at(&m->config, k, &p) != MTAN_OK)
            return snprintf(error, ERROR_SIZE, "no parameter %d", (int)k), 0;
        const size_t n = reals_of(m, k, &p);
        while (h->numbers < m->offset[k]) put_real(h, 0); /* padding between tensors */
        snprintf(remark, sizeof remark, "%s%s (%" PRId32 ", %" PRId32 ")",
                 n < (size_t)p.rows * (size_t)p.cols ? "scales of " : "", p.name, p.rows, p.cols);
        list_remark(h, remark);
        for (size_t i = 0; i < n; i++) {
            const mtan_real w = m->weights[m->offset[k] + i];
            if (!isfinite(w)) return snprintf(error, ERROR_SIZE, "%s holds a weight that is not a number", p.name), 0;
            put_real(h, w);
        }
    }
    list_end(h);
    return 1;
}

static void write_rows(header *h, const mtan_model *m) {
    char text[MTAN_NAME_SIZE + 40];
    list_begin(h, "int8_t", "rows");
    for (int32_t k = 0; k < mtan_param_count(&m->config); k++) {
        mtan_param p;
        mtan_param_at(&m->config, k, &p);
        if (m->row0[k] == MTAN_NO_ROWS) continue;
        snprintf(text, sizeof text, "%s (%" PRId32 ", %" PRId32 ")", p.name, p.rows, p.cols);
        list_remark(h, text);
        for (size_t i = 0; i < (size_t)p.rows * (size_t)p.cols; i++) {
            snprintf(text, sizeof text, "%d", m->rows[m->row0[k] + i]);
            list_put(h, text);
        }
    }
    list_end(h);
}

/* mtan_bytes_hash of the `count` reals of the weights as little-endian floats. */
static uint64_t hash_weights(const mtan_model *m, size_t count) {
    uint8_t *bytes = tool_calloc(count, 4);
    uint64_t hash;
    for (int32_t k = 0; k < mtan_param_count(&m->config); k++) {
        mtan_param p;
        mtan_param_at(&m->config, k, &p);
        for (size_t i = 0, n = reals_of(m, k, &p); i < n; i++) {
            const float w = (float)m->weights[m->offset[k] + i];
            uint32_t bits;
            memcpy(&bits, &w, sizeof bits);
            for (int j = 0; j < 4; j++) bytes[4 * (m->offset[k] + i) + (size_t)j] = (uint8_t)(bits >> 8 * j);
        }
    }
    hash = mtan_bytes_hash(bytes, 4 * count);
    free(bytes);
    return hash;
}

/* The weights, and the hash that shows whether a compiler read them correctly. */
static int write_arrays(header *h, const bundle *b, char *error) {
    const mtan_model *m = h->int8 ? &h->int8->model : &b->model;
    const size_t count = h->int8 ? h->int8->count : mtan_weights_count(&m->config);
    if (!write_weights(h, m, error)) return 0;
    if (h->int8) write_rows(h, m);
    fprintf(
        h->out,
        "/* mtan_bytes_hash of the weights as little-endian floats. */\nstatic const uint64_t %s_hash = 0x%016" PRIx64
        "u;\n",
        h->name, hash_weights(m, count));
    return 1;
}

/* MTAN_SPREAD | MTAN_SLOPE for "mean,spread,slope"; 0 for the mean alone. */
static void statistics_value(const char *text, char value[96]) {
    size_t n = 0;
    value[0] = '0', value[1] = 0;
    for (const char *word = strchr(text, ','); word && n < 64; word = strchr(word + 1, ',')) {
        n += (size_t)snprintf(value + n, 96 - n, "%sMTAN_", n > 0 ? " | " : "");
        for (const char *c = word + 1; *c && *c != ',' && n < 95; c++) value[n++] = (char)toupper((unsigned char)*c);
        value[n] = 0;
    }
}

/* A number in decimal, because C++ before 2017 has no hexadecimal floats. */
static void number_value(const char *text, char value[96]) {
    if (text[strspn(text, "-")] == '0' && strchr(text, 'x')) snprintf(value, 96, "%.17g", strtod(text, NULL));
    else snprintf(value, 96, "%s", text);
}

/* The C name of a setting's value: MTAN_BOUND_ELBO for bound = elbo; a number stays a number. 0: unknown. */
static int setting_value(const char *key, const char *text, char value[96]) {
    static const char *const prefixes[][2] = {
        {"kind", "MTAN_"},
        {"classify", "MTAN_CLASSIFY_"},
        {"task", "MTAN_TASK_"},
        {"encoder", "MTAN_"},
        {"decoder", "MTAN_"},
        {"embedding", "MTAN_EMBED_"},
        {"embed_heads", "MTAN_EMBED_"},
        {"reference", "MTAN_REF_"},
        {"bound", "MTAN_BOUND_"},
        {"rule", "MTAN_"},
        {"frequencies", "MTAN_FREQUENCIES_"},
        {"variance", "MTAN_VARIANCE_"},
        {"values", "MTAN_VALUES_"},
    };
    if (!isalpha((unsigned char)text[0])) return number_value(text, value), 1;
    if (strcmp(key, "statistics") == 0) return statistics_value(text, value), 1;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strcmp(prefixes[i][0], key) != 0) continue;
        snprintf(value, 96, "%s%.63s", prefixes[i][1], text);
        for (char *c = value; *c; c++) *c = (char)toupper((unsigned char)*c);
        return 1;
    }
    return 0;
}

/* Settings are written by name, so that fields added to mtan_config later keep their defaults. */
static int write_open(header *h, const bundle *b, char *error) {
    const mtan_config *c = &b->model.config;
    char text[64], value[96];
    if (c->reference == MTAN_REF_GIVEN) write_reals(h, "ref", c->ref, (size_t)c->ref_points);
    fprintf(h->out,
            "\n/* A model on the weights above. */\nstatic inline mtan_status %s_open(mtan_model *m) {\n"
            "    mtan_config c;\n    const mtan_status status = mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, "
            "1, 2);\n"
            "    if (status != MTAN_OK) return status;\n",
            h->name);
    for (int32_t i = 0; mtan_config_key(i); i++) {
        const char *key = mtan_config_key(i);
        if (mtan_config_get(c, key, text, sizeof text) != MTAN_OK || !setting_value(key, text, value))
            return snprintf(error, ERROR_SIZE, "the setting %s cannot be written as C", key), 0;
        fprintf(h->out, "    c.%s = %s;\n", key, value);
    }
    if (c->reference == MTAN_REF_GIVEN) fprintf(h->out, "    c.ref = %s_ref;\n", h->name);
    write_code(h, h->int8
                      ? "    return mtan_model_init_int8(m, &c, @_weights, @_weight_count, @_rows, @_row_bytes);\n}\n"
                      : "    return mtan_model_init(m, &c, @_weights, @_weight_count);\n}\n");
    return 1;
}

static const char *const predict_small_code =
    "\n/* One record: what mtan_predictor_classify says of it. `memory` has @_memory bytes, `out` @_outputs reals. */\n"
    "static inline mtan_status @_predict(const mtan_model *m, const mtan_record *record, void *memory, mtan_real *out) "
    "{\n"
    "    return mtan_small_classify(m, record, @_points, memory, @_memory, out);\n}\n";

static void write_predict(header *h, const mtan_config *c) {
    if (h->need.points) {
        write_code(h, predict_small_code);
        return;
    }
    fprintf(h->out,
            "\n/* One record: %s. `out` has %s_outputs reals. */\n"
            "static inline mtan_status %s_predict(mtan_predictor *run, const mtan_record *record, mtan_real *out) {\n"
            "    return %s;\n}\n",
            c->classify == MTAN_CLASSIFY_RECORD ? "what mtan_predictor_classify says of it"
            : c->classify == MTAN_CLASSIFY_TIME ? "what mtan_predictor_classify says of each query time"
                                                : "the channels' means at each query time",
            h->name, h->name,
            c->classify == MTAN_CLASSIFY_NONE ? "mtan_predictor_interpolate(run, record, out, 0)"
                                              : "mtan_predictor_classify(run, record, 1, out)");
}

/* ---- preprocessing ---- */

/* A row of the table of channels, in the order of mtan_prep_channel. */
static void write_channel(header *h, const mtan_prep_channel *c) {
    const mtan_real numbers[] = {c->offset, c->scale, c->low, c->high, c->missing, c->fill, c->least, c->most, c->band};
    char row[400] = "{", number[40];
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        strcat(row, real_text(numbers[i], number));
        strcat(row, ", ");
    }
    snprintf(row + strlen(row), 16, "%uu}", (unsigned)c->has);
    list_put(h, row);
}

static const char *const prepare_code =
    "\n/* n raw observations to what the model sees, as `mtan predict` does it; `events` has room for `room` of them, "
    "n +\n"
    " * @_channels at most. found may be null. */\n"
    "static inline mtan_status @_prepare(const mtan_observation *raw, int32_t n, mtan_event *events, int32_t room,\n"
    "                                    mtan_prepared *found) {\n"
    "    return mtan_prep_record(&@_prep, raw, n, events, room, found);\n"
    "}\n";

static void write_preprocessing(header *h, const bundle *b) {
    const mtan_prep view = prep_view(&b->prep, SPLIT_TEST);
    fprintf(
        h->out,
        "\n/* Preprocessing, %s: offset, scale, low, high, missing, fill, least, most, band; what of it there is. */\n",
        prep_kind_name(b->prep.kind));
    list_begin(h, "mtan_prep_channel", "prep_channels");
    for (int32_t i = 0; i < view.channels; i++) write_channel(h, &view.channel[i]);
    list_end(h);
    if (view.number) {
        list_begin(h, "mtan_prep_unit", "units");
        for (int32_t i = 0; i < view.classes; i++) {
            char item[64];
            snprintf(item, sizeof item, "{%.17g, %.17g}", view.number[i].offset, view.number[i].scale);
            list_put(h, item);
        }
        list_end(h);
    }
    fprintf(
        h->out,
        "static const mtan_prep %s_prep = {\n    %s_channels, %s_classes, %d, %d, %d,\n    %.17g, %.17g, %.17g,\n    ",
        h->name, h->name, h->name, b->prep.kind != PREP_NONE, (int)view.from_first, (int)view.positive, view.time_scale,
        view.first, view.last);
    write_string(h, view.unit);
    write_code(h, ",\n    @_prep_channels, @_channel_names, @_class_names, ");
    fprintf(h->out, view.number ? "%s_units, 0, %d\n};\n" : "%s0, 0, %d\n};\n", view.number ? h->name : "",
            (int)view.statics);
    write_code(h, prepare_code);
}

/* ---- the self-test ---- */

/* Makes a record for a model file that has none of its own. */
static void make_record(golden_record *x, const mtan_config *c) {
    golden_record_free(x);
    memset(x, 0, sizeof *x);
    for (int32_t i = 0; i < MADE_EVENTS; i++) {
        const mtan_event e = {(mtan_real)i / MADE_EVENTS, 7 * i % c->channels, (mtan_real)(i % 5 - 2) / 2};
        arrput(x->events, e);
    }
    for (int32_t i = 0; i < MADE_TIMES && c->classify != MTAN_CLASSIFY_RECORD; i++)
        arrput(x->times, (mtan_real)i / (MADE_TIMES - 1));
}

/* Runs the record here, so an exported model has worked at least once. A made-up record takes its expected output from
 * this run. */
static int try_record(golden_record *x, const mtan_model *m, char *error) {
    const mtan_bounds most = {1, (int32_t)arrlen(x->events) + 1, (int32_t)(arrlen(x->events) + arrlen(x->times)) + 1};
    const size_t n = golden_record_size(&m->config, x);
    mtan_real *out = tool_calloc(n, sizeof *out);
    mtan_status status;
    runner run;
    if (!runner_start(&run, m, most, 1, error)) return free(out), 0;
    status = golden_record_run(&run.predictor[0], x, out);
    if (status == MTAN_OK && arrlen(x->output) == 0) {
        memcpy(arraddnptr(x->output, n), out, n * sizeof *out);
        x->fused = mtan_backend_fused(m->backend);
    }
    for (size_t i = 0; i < arrlenu(x->output); i++)
        if (!isfinite(x->output[i])) status = MTAN_ERR_INPUT;
    runner_stop(&run);
    free(out);
    if (status != MTAN_OK)
        snprintf(error, ERROR_SIZE, "its record for a self-test cannot be run: %s", mtan_status_message(status));
    return status == MTAN_OK;
}

/* Tolerance against the output of the predictor that wrote the file, whose products are summed in another order. */
static int near_output(const mtan_real *expected, const mtan_real *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)(expected[i] - out[i])) <= 1e-4)) return 0;
    return 1;
}

/* Runs the record with mtan_small_classify, as a board does, and keeps that output as the expected one. */
static int try_small(golden_record *x, const mtan_model *m, const board_need *need, char *error) {
    const size_t n = golden_record_size(&m->config, x);
    mtan_real *out = tool_calloc(n, sizeof *out);
    void *memory = tool_calloc(need->memory, 1);
    mtan_status status;
    x->record.events = x->events, x->record.n_events = (int32_t)arrlen(x->events);
    status = mtan_small_classify(m, &x->record, need->points, memory, need->memory, out);
    if (status != MTAN_OK)
        snprintf(error, ERROR_SIZE, "its record for a self-test cannot be run: %s", mtan_status_message(status));
    else if (!m->rows && arrlenu(x->output) == n && !near_output(x->output, out, n))
        status = MTAN_ERR_INPUT, snprintf(error, ERROR_SIZE, "its record for a self-test gives another output here");
    arrsetlen(x->output, n);
    memcpy(x->output, out, n * sizeof *out);
    x->fused = mtan_backend_fused(m->backend);
    free(memory), free(out);
    return status == MTAN_OK;
}

static const char *const test_code = "\n/* Events as the model sees them, for @_predict. */\n"
                                     "static inline mtan_record @_test_record(void) {\n"
                                     "#ifdef __cplusplus\n"
                                     "    mtan_record r = mtan_record();\n"
                                     "#else\n"
                                     "    mtan_record r = {0};\n"
                                     "#endif\n"
                                     "    r.events = @_test_events;\n"
                                     "    r.n_events = @_test_event_count;\n"
                                     "    r.times = @_test_time_count > 0 ? @_test_times : 0;\n"
                                     "    r.n_times = @_test_time_count;\n"
                                     "    r.id = @_test_id;\n"
                                     "    return r;\n"
                                     "}\n";

static void write_test(header *h, const golden_record *x) {
    char time[40], value[40], event[120];
    fprintf(h->out,
            "\n/* A record with its expected output: the same bits in a build of the same class, fused or unfused, "
            "else 1e-4. */\n"
            "enum {\n    %s_test_fused = %d,\n    %s_test_event_count = %zu,\n    %s_test_time_count = %zu,\n"
            "    %s_test_output_count = %zu\n};\nstatic const uint64_t %s_test_id = 0x%016" PRIx64 "u;\n",
            h->name, x->fused, h->name, arrlenu(x->events), h->name, arrlenu(x->times), h->name, arrlenu(x->output),
            h->name, x->record.id);
    list_begin(h, "mtan_event", "test_events");
    for (size_t i = 0; i < arrlenu(x->events); i++) {
        snprintf(event, sizeof event, "{%s, %" PRId32 ", %s}", real_text(x->events[i].time, time), x->events[i].channel,
                 real_text(x->events[i].value, value));
        list_put(h, event);
    }
    if (arrlen(x->events) == 0) list_put(h, "{0, 0, 0}");
    list_end(h);
    write_reals(h, "test_times", x->times, arrlenu(x->times));
    write_reals(h, "test_output", x->output, arrlenu(x->output));
    write_code(h, test_code);
}

/* ---- the whole header ---- */

static int32_t at_least(int32_t a, ptrdiff_t b) {
    return b > a ? (int32_t)b : a;
}

typedef struct whole {
    bundle *b;
    const int8_arrays *int8; /* or NULL */
    const golden_record *x;
    export_settings settings;
    board_need *need;
    int good;
    char *error;
} whole;

static int write_header(FILE *out, bundle *b, const int8_arrays *int8, const golden_record *x, export_settings s,
                        board_need *need, char *error) {
    header h = {out, s.name, int8, {0, 0, 0, 0, 0}, 0, 0, 0};
    mtan_bounds most = {1, 0, 0};
    mtan_status status;
    most.events = s.events = at_least(s.events, arrlen(x->events));
    most.times = s.times = at_least(s.times, arrlen(x->events) < s.events ? arrlen(x->events) : s.events);
    most.times = s.times = at_least(s.times, arrlen(x->times));
    status = int8 ? MTAN_OK : mtan_predictor_size(&b->model, &most, &h.predictor);
    if (status != MTAN_OK || h.predictor > INT32_MAX || (int64_t)s.times * row_size(&b->model.config) > INT32_MAX)
        return snprintf(error, ERROR_SIZE, "%d events at %d times: %s", (int)s.events, (int)s.times,
                        mtan_status_message(status == MTAN_OK ? MTAN_ERR_SIZE : status)),
               0;
    *need = h.need = find_need(b, int8, h.predictor);
    write_top(&h, b, &s);
    write_sizes(&h, b, &s);
    write_names(&h, "channel_names", b->prep.channels, b->model.config.channels);
    write_names(&h, "class_names", b->prep.classes,
                b->model.config.classify == MTAN_CLASSIFY_NONE ? 0 : b->model.config.classes);
    fputs("\n", out);
    if (!write_arrays(&h, b, error) || !write_open(&h, b, error)) return 0;
    write_predict(&h, &b->model.config);
    write_preprocessing(&h, b);
    write_test(&h, x);
    fputs("\n#endif\n", out);
    return 1;
}

static int is_prefix(const char *name) {
    const size_t n = strlen(name);
    if (n > NAME_MOST || !isalpha((unsigned char)name[0]) || strncmp(name, "mtan", 4) == 0) return 0;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_') return 0;
    return 1;
}

static void write_whole(FILE *out, void *context) {
    whole *w = context;
    w->good = write_header(out, w->b, w->int8, w->x, w->settings, w->need, w->error);
}

char *export_text(bundle *b, const export_settings *s, size_t *length, board_need *need, char *error) {
    golden_record x;
    int8_arrays q;
    whole w = {b, NULL, &x, *s, need, 0, error};
    char *text = NULL;
    if (!is_prefix(s->name))
        return snprintf(error, ERROR_SIZE, "--name %.60s: must be a letter, then letters, digits and _, not mtan...",
                        s->name),
               NULL;
    if (!golden_record_read(&x, b)) make_record(&x, &b->model.config);
    if (int8_read(&q, b)) w.int8 = &q;
    *need = find_need(b, w.int8, 0);
    if (need->points ? try_small(&x, w.int8 ? &q.model : &b->model, need, error) : try_record(&x, &b->model, error))
        text = text_write(write_whole, &w, length);
    int8_free(&q);
    golden_record_free(&x);
    if (w.good) return text;
    free(text);
    return NULL;
}

/* The file is replaced as a whole, so a device or a pipe of that name is refused: it would be lost. */
static int put_text(const char *path, const char *model, const char *text, size_t n, char *error) {
    struct stat found;
    if (path && same_file(path, model))
        return snprintf(error, ERROR_SIZE, "--out is the model itself, which the header would replace"), 0;
    if (path && stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return snprintf(error, ERROR_SIZE, "%.200s is no regular file; without -o the header goes to standard output",
                        path),
               0;
    if (path) return file_write(path, text, n, error);
    if (fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0) return 1;
    return snprintf(error, ERROR_SIZE, "standard output: %s", strerror(errno)), 0;
}

int command_export(const options *o) {
    const char *path = o->argument[0], *out = option_text(o, "out", NULL), *slash = strrchr(path, '/');
    const export_settings s = {option_text(o, "name", "model"), slash ? slash + 1 : path,
                               (int32_t)option_integer(o, "events", 1500), (int32_t)option_integer(o, "times", 200)};
    char error[ERROR_SIZE] = "", *text;
    board_need need;
    size_t n = 0;
    int good;
    bundle b;
    if (!option_given(o, "c")) return complain("export: say --c, the only form there is");
    if (!bundle_read(&b, path, error)) return complain("%s", error);
    if (b.model.config.architecture) {
        complain("%s is a %s: only mTAN's models run on a board", path, model_title(&b.model.config));
        return bundle_free(&b), BAD_USE;
    }
    if (b.model.config.members > 1) {
        complain("%s is an ensemble of %d models: a board runs one of them, RUN/member-0/best.safetensors say", path,
                 (int)b.model.config.members);
        return bundle_free(&b), BAD_USE;
    }
    text = export_text(&b, &s, &n, &need, error);
    good = text && put_text(out, path, text, n, error);
    if (good && out)
        note("%s: %zu bytes of weights and about %zu KB of code, %zu bytes of RAM and about %zu KB of stack, by %s",
             out, need.weights, need.code / 1024, need.memory, need.stack / 1024,
             need.points ? "mtan_small_classify" : "a predictor");
    free(text);
    bundle_free(&b);
    return good ? DONE : complain("%s: %s", path, error);
}
