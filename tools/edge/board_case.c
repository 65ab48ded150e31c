/* Prepares a case of golden/ for a board: its model as a model file, for `mtan export`, and its records with the
 * outputs of the published code as a C header, for platform/cortex-m/main.c.
 *
 *     board_case CASE MODEL.safetensors RECORDS.h
 *
 * Accepts cases with a class per record (logits are compared) and interpolation of one channel (means over the
 * samples); refuses others. */
#include <stdio.h>
#include <string.h>

#include "../../tests/support/ladder.h"
#include "../mtan/model/bundle.h"
#include "../mtan/base/files.h"

typedef struct board_case {
    mtan_file file, sets; /* the case, and all golden records */
    char set[32];
    mtan_config config;
    size_t records, events;
    int32_t *offset, *channel;
    mtan_real *time, *value;
    double *reference; /* unchanged from the file */
} board_case;

static void refuse(const char *what) {
    fprintf(stderr, "mtan: board_case: %s\n", what);
    exit(2);
}

static void open_file(mtan_file *file, const char *name) {
    char path[128], error[512];
    size_t bytes = 0;
    snprintf(path, sizeof path, MTAN_GOLDEN_DIR "/%.60s.safetensors", name);
    void *blob = file_read(path, &bytes, error); /* not freed before the end */
    if (!blob) refuse(error);
    if (mtan_file_open(file, blob, bytes) != MTAN_OK) refuse(path);
}

static double number_of(const mtan_file *file, const char *key, double otherwise) {
    char text[64];
    return mtan_file_metadata(file, key, text, sizeof text, NULL) == MTAN_OK ? atof(text) : otherwise;
}

static mtan_tensor_view view_of(const mtan_file *file, const char *set, const char *field) {
    mtan_tensor_view view;
    char name[96];
    snprintf(name, sizeof name, "%s%s%s", set, *set ? "/" : "", field);
    if (mtan_file_tensor(file, name, &view) != MTAN_OK) refuse(name);
    return view;
}

static int32_t *read_ints(const board_case *c, const char *field, size_t *n) {
    const mtan_tensor_view view = view_of(&c->sets, c->set, field);
    int32_t *out = tool_calloc(*n = view.count, sizeof *out);
    if (mtan_view_read_i32(&view, out, *n) != MTAN_OK) refuse(field);
    return out;
}

static mtan_real *read_reals(const board_case *c, const char *field) {
    const mtan_tensor_view view = view_of(&c->sets, c->set, field);
    mtan_real *out = tool_calloc(view.count, sizeof *out);
    if (mtan_view_read(&view, out, view.count) != MTAN_OK) refuse(field);
    return out;
}

static void read_config(board_case *c) {
    char key[64], text[64];
    mtan_config_init(&c->config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 1, 2);
    mtan_config_preset(&c->config, MTAN_FAITHFUL);
    for (int32_t i = 0; mtan_config_key(i); i++) {
        snprintf(key, sizeof key, "mtan.%s", mtan_config_key(i));
        if (mtan_file_metadata(&c->file, key, text, sizeof text, NULL) == MTAN_OK &&
            mtan_config_set(&c->config, mtan_config_key(i), text) != MTAN_OK)
            refuse(key);
    }
    c->config.predict_samples = c->config.samples;
    if (mtan_config_check(&c->config) != MTAN_OK) refuse("settings");
}

static void read_case(board_case *c, const char *name) {
    mtan_tensor_view view;
    size_t n;
    open_file(&c->file, name), open_file(&c->sets, "records");
    if (mtan_file_metadata(&c->file, "golden.records", c->set, sizeof c->set, NULL) != MTAN_OK) refuse("no records");
    read_config(c);
    c->offset = read_ints(c, "offset", &n), c->records = n - 1;
    c->channel = read_ints(c, "channel", &c->events);
    c->time = read_reals(c, "time"), c->value = read_reals(c, "value");
    if (c->config.kind == MTAN_ENC && c->config.classify == MTAN_CLASSIFY_RECORD)
        view = view_of(&c->file, "", "logits");
    else if (c->config.classify == MTAN_CLASSIFY_NONE && c->config.channels == 1) view = view_of(&c->file, "", "pred");
    else refuse("neither a class per record nor interpolation of one channel");
    c->reference = tool_calloc(view.count, sizeof *c->reference);
    if (mtan_view_read_f64(&view, c->reference, view.count) != MTAN_OK) refuse("reference");
}

/* ---- the model ---- */

/* Made-up preprocessing that uses every feature: a clip, a missing code, a time scale. */
static void make_prep(prep *p, const mtan_config *c) {
    char name[32];
    memset(p, 0, sizeof *p), p->positive = -1;
    p->kind = PREP_ZSCORE;
    for (int part = 0; part < SPLIT_PARTS; part++) p->time_scale[part] = 48;
    strcpy(p->unit, "hours");
    for (int32_t i = 0; i < c->channels; i++) {
        mtan_prep_channel channel = prep_untouched();
        channel.offset = (mtan_real)(i + 1) / 3, channel.scale = (mtan_real)(i + 2) / 7;
        if (i % 2 == 0) channel.low = -1, channel.high = (mtan_real)i + 3, channel.has |= MTAN_HAS_LOW | MTAN_HAS_HIGH;
        if (i % 3 == 0) channel.missing = -1, channel.has |= MTAN_HAS_MISSING;
        snprintf(name, sizeof name, "c%d", (int)i);
        arrput(p->channel, channel);
        arrput(p->channels, tool_text(name));
    }
    for (int32_t i = 0; c->classify != MTAN_CLASSIFY_NONE && i < c->classes; i++) {
        snprintf(name, sizeof name, "class %d", (int)i);
        arrput(p->classes, tool_text(name));
    }
}

static void write_model(const board_case *c, const char *path) {
    const size_t n = mtan_weights_count(&c->config);
    mtan_real *weights = tool_calloc(n, sizeof *weights);
    char error[512];
    mtan_model model;
    prep p;
    golden_weights(&c->config, weights, number_of(&c->file, "golden.freq", 8), number_of(&c->file, "golden.gain", 1));
    if (mtan_model_init(&model, &c->config, weights, n) != MTAN_OK) refuse("model");
    make_prep(&p, &c->config);
    if (!bundle_write(path, &model, NULL, &p, NULL, 0, error)) refuse(error);
    prep_free(&p);
    free(weights);
}

/* ---- the records ---- */

static int by_value(const void *a, const void *b) {
    const mtan_real x = *(const mtan_real *)a, y = *(const mtan_real *)b;
    return (x > y) - (x < y);
}

/* Every list is one line of exact decimals. A missing list (times, noise) becomes a single 0, because C has no empty
 * arrays. */
static void put_real(FILE *out, double x) {
    fprintf(out, " %.9ef,", x);
}

static void write_logits(const board_case *c, FILE *out, size_t record) {
    for (int32_t i = 0; i < c->config.classes; i++)
        put_real(out, c->reference[record * (size_t)c->config.classes + (size_t)i]);
}

/* The published code decodes at every event; the first event stands for all events at its time. */
static void write_means(const board_case *c, FILE *out, size_t record) {
    const int32_t first = c->offset[record], end = c->offset[record + 1];
    for (int32_t i = first; i < end; i++) {
        double sum = 0;
        if (i > first && !(c->time[i] > c->time[i - 1])) continue;
        for (int32_t s = 0; s < c->config.samples; s++) sum += c->reference[(size_t)s * c->events + (size_t)i];
        put_real(out, sum / c->config.samples);
    }
}

/* In the order of one record; the noise of the golden rule is (S, B, K, Z). */
static void write_noise(const board_case *c, FILE *out, size_t record) {
    const size_t n = (size_t)c->config.ref_points * (size_t)c->config.latent;
    for (size_t s = 0; s < (size_t)c->config.samples; s++)
        for (size_t i = 0; i < n; i++) put_real(out, 2 * golden_u("noise", (s * c->records + record) * n + i));
}

/* Ascending distinct times of each record. Sorts `time` in place: it is only used for interpolation from here on, which
 * needs that order. */
static size_t write_times(board_case *c, FILE *out, size_t record) {
    const size_t first = (size_t)c->offset[record], end = (size_t)c->offset[record + 1];
    size_t n = 0;
    qsort(c->time + first, end - first, sizeof *c->time, by_value);
    for (size_t i = first; i < end; i++)
        if (i == first || c->time[i] > c->time[i - 1]) put_real(out, (double)c->time[i]), n++;
    return n;
}

static void write_records(board_case *c, FILE *out) {
    const int samples = c->config.kind == MTAN_FULL;
    const int32_t noise = samples ? c->config.samples * c->config.ref_points * c->config.latent : 0;
    size_t *queries = tool_calloc(c->records, sizeof *queries), query = 0;
    fprintf(out, "/* Golden records (set %s) and what the published code computes from them, in float64. */\n", c->set);
    fputs("static const mtan_event golden_events[] = {", out);
    for (size_t i = 0; i < c->events; i++)
        fprintf(out, " {%.9ef, %d, %.9ef},", (double)c->time[i], (int)c->channel[i], (double)c->value[i]);
    fputs("};\nstatic const mtan_real golden_times[] = {", out);
    for (size_t r = 0; r < c->records && samples; r++) queries[r] = write_times(c, out, r);
    fputs(" 0};\nstatic const mtan_real golden_noise[] = {", out);
    for (size_t r = 0; r < c->records && samples; r++) write_noise(c, out, r);
    fputs(" 0};\nstatic const mtan_real golden_expected[] = {", out);
    for (size_t r = 0; r < c->records; r++) samples ? write_means(c, out, r) : write_logits(c, out, r);
    fputs("};\nstatic const mtan_record golden_records[] = {\n", out);
    for (size_t r = 0; r < c->records; query += queries[r++]) {
        fprintf(out, "    {.events = golden_events + %d, .n_events = %d", (int)c->offset[r],
                (int)(c->offset[r + 1] - c->offset[r]));
        if (samples)
            fprintf(out, ", .times = golden_times + %zu, .n_times = %zu, .noise = golden_noise + %zu, .n_noise = %d",
                    query, queries[r], r * (size_t)noise, (int)noise);
        fputs("},\n", out);
    }
    fprintf(out, "};\nenum { golden_record_count = %zu };\n", c->records);
    free(queries);
}

int main(int argc, char **argv) {
    static board_case c;
    FILE *out;
    if (argc != 4) refuse("usage: board_case CASE MODEL.safetensors RECORDS.h");
    read_case(&c, argv[1]);
    write_model(&c, argv[2]);
    if (!(out = fopen(argv[3], "w"))) refuse(argv[3]);
    write_records(&c, out);
    if (fclose(out) != 0) refuse(argv[3]);
    return 0;
}
