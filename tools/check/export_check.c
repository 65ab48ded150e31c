/* Checks that a header of `mtan export` still holds its model after a compiler has read it. tools/check/export_check.sh
 * compiles this file in C, with that header as model.h. It compares weights, settings, names, preprocessing and the
 * record of the self-test with the file.
 *
 *     export_check MODEL.safetensors */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "../mtan/model/bundle.h"
#include "../data/generators.h"

enum { RAW = 4000 };

static int bad;

static void check(int good, const char *what) {
    if (!good) printf("export_check: %s differ\n", what), bad = 1;
}

#ifdef model_is_int8

/* Compares integers and scales with the file's tensors. */
static void check_int8(const bundle *b, const mtan_model *m, int32_t k, const mtan_param *p) {
    const size_t rows = (size_t)p->rows, count = rows * (size_t)p->cols;
    mtan_tensor_view view;
    mtan_real *scale = tool_calloc(rows, sizeof *scale);
    char name[MTAN_NAME_SIZE + 8];
    snprintf(name, sizeof name, "%s.scale", p->name);
    check(mtan_file_tensor(&b->file, p->name, &view) == MTAN_OK && view.dtype == MTAN_DTYPE_I8 && view.bytes == count &&
              memcmp(m->rows + m->row0[k], view.data, count) == 0,
          p->name);
    check(mtan_file_tensor(&b->file, name, &view) == MTAN_OK && mtan_view_read(&view, scale, rows) == MTAN_OK &&
              memcmp(m->weights + m->offset[k], scale, rows * sizeof *scale) == 0,
          name);
    free(scale);
}

#endif

static void check_weights(const bundle *b, const mtan_model *m) {
    for (int32_t k = 0; k < mtan_param_count(&b->model.config); k++) {
        mtan_param p;
        mtan_param_at(&b->model.config, k, &p);
#ifdef model_is_int8
        if (m->row0[k] != MTAN_NO_ROWS) {
            check_int8(b, m, k, &p);
            continue;
        }
#endif
        check(memcmp(m->weights + m->offset[k], b->model.weights + b->model.offset[k],
                     (size_t)p.rows * (size_t)p.cols * sizeof(mtan_real)) == 0,
              p.name);
    }
    check(mtan_bytes_hash(model_weights, sizeof model_weights) == model_hash, "hashes of the weights");
}

static void check_settings(const bundle *b, const mtan_model *m) {
    char ours[64], theirs[64];
    for (int32_t i = 0; mtan_config_key(i); i++) {
        const char *key = mtan_config_key(i);
        check(mtan_config_get(&m->config, key, ours, sizeof ours) == MTAN_OK &&
                  mtan_config_get(&b->model.config, key, theirs, sizeof theirs) == MTAN_OK && strcmp(ours, theirs) == 0,
              key);
    }
    for (size_t i = 0; i < arrlenu(b->prep.channels); i++)
        check(strcmp(model_channel_names[i], b->prep.channels[i]) == 0, "names of channels");
    for (size_t i = 0; i < arrlenu(b->prep.classes); i++)
        check(model_class_names[i] && strcmp(model_class_names[i], b->prep.classes[i]) == 0, "names of classes");
}

/* Compares the header's tables with the file's, on values around the clips, missing codes, repeats, and input that is
 * refused. */
static void check_preparation(const bundle *b) {
    static const double special[] = {-1, 0, 1, 3, 1e30, -1e30};
    static mtan_observation raw[RAW];
    static mtan_event ours[RAW + model_channels], theirs[RAW + model_channels];
    const mtan_prep view = prep_view(&b->prep, SPLIT_TEST);
    mtan_prepared here, there;
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 1);
    for (int i = 0; i < RAW; i++) {
        const uint32_t pick = numpy_interval(&rng, 31);
        raw[i].value = pick < 6 ? special[pick] : 10 * numpy_uniform(&rng) - 5;
        raw[i].time = floor(600 * numpy_uniform(&rng)) / 10;
        raw[i].channel = (int32_t)numpy_interval(&rng, model_channels - 1);
    }
    memset(&here, 0, sizeof here), memset(&there, 0, sizeof there);
    check(model_prepare(raw, RAW, ours, RAW + model_channels, &here) == MTAN_OK &&
              mtan_prep_record(&view, raw, RAW, theirs, RAW + model_channels, &there) == MTAN_OK,
          "preparation");
    check(here.events > 0 && memcmp(&here, &there, sizeof here) == 0, "what became of the record");
    check(memcmp(ours, theirs, (size_t)here.events * sizeof *ours) == 0, "prepared events");
    raw[RAW / 2].channel = model_channels;
    check(model_prepare(raw, RAW, ours, RAW + model_channels, &here) == MTAN_ERR_INPUT, "a channel that is not there");
    raw[RAW / 2].channel = 0, raw[RAW / 2].value = NAN;
    check(model_prepare(raw, RAW, ours, RAW + model_channels, &here) == MTAN_ERR_INPUT, "a value that is no number");
}

static mtan_status predict(const mtan_model *m, const mtan_record *record, void *memory, mtan_real *out) {
#ifdef model_is_small
    return model_predict(m, record, memory, out);
#else
    const mtan_bounds most = {1, model_events, model_times};
    mtan_predictor run;
    const mtan_status status = mtan_predictor_init(&run, m, &most, memory, model_memory);
    return status == MTAN_OK ? model_predict(&run, record, out) : status;
#endif
}

static void check_record(const bundle *b, mtan_model *m) {
    static mtan_real out[model_outputs];
    const mtan_record record = model_test_record();
    void *memory = tool_calloc(model_memory, 1);
    m->backend = b->model.backend;
    check(predict(m, &record, memory, out) == MTAN_OK && memcmp(out, model_test_output, sizeof model_test_output) == 0,
          "outputs of the self-test");
    free(memory);
}

int main(int argc, char **argv) {
    char error[512] = "";
    mtan_model m;
    bundle b;
    if (argc != 2 || !bundle_read(&b, argv[1], error)) return printf("export_check: %s\n", error), 2;
    if (model_open(&m) != MTAN_OK) return printf("export_check: the header's model cannot be opened\n"), 1;
    check_weights(&b, &m);
    check_settings(&b, &m);
    check_preparation(&b);
    check_record(&b, &m);
    bundle_free(&b);
    return bad;
}
