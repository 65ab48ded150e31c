/* mtan inspect: shows a file of tensors, be it an mtan model, another safetensors file or a PyTorch checkpoint: every
 * tensor with its statistics, the metadata, and for a model its settings and the memory it needs. It only reads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../baselines/baselines.h"
#include "../../data/shown.h"
#include "commands.h"
#include "../torch/convert.h"
#include "../base/json_text.h"
#include "../options/settings.h"
#include "../torch/tensor_set.h"

enum { ERROR_SIZE = 512, LONGEST = 72, BATCH = 32, POINTS = 4 };

/* ---- statistics ---- */

typedef struct statistics {
    int known; /* 0: a type that cannot be read */
    double mean, sd, least, most;
    size_t nan;
} statistics;

static const char *const dtype_names[] = {"bool", "u8",  "i8",  "f8_e5m2", "f8_e4m3", "i16", "u16", "f16",
                                          "bf16", "i32", "u32", "f32",     "f64",     "i64", "u64"};

static int is_signed(mtan_dtype dtype) {
    return dtype == MTAN_DTYPE_I8 || dtype == MTAN_DTYPE_I16 || dtype == MTAN_DTYPE_I32 || dtype == MTAN_DTYPE_I64;
}

static int is_float(mtan_dtype dtype) {
    return dtype == MTAN_DTYPE_F16 || dtype == MTAN_DTYPE_BF16 || dtype == MTAN_DTYPE_F32 || dtype == MTAN_DTYPE_F64;
}

/* Element i as a double; integers beyond 2^53 are rounded. */
static double element(const mtan_tensor_view *v, size_t i) {
    const size_t item = v->bytes / v->count;
    mtan_tensor_view one = *v;
    uint64_t bits = 0;
    double x = NAN;
    one.data += i * item, one.count = 1;
    if (is_float(v->dtype)) return mtan_view_read_f64(&one, &x, 1), x;
    for (size_t k = item; k-- > 0;) bits = bits << 8 | one.data[k];
    if (!is_signed(v->dtype) || !(bits >> (8 * item - 1))) return (double)bits;
    return -(double)(~bits << (64 - 8 * item) >> (64 - 8 * item)) - 1;
}

/* Over the elements that are not NaN, in two passes; sd divides by n. */
static statistics measure(const mtan_tensor_view *v) {
    statistics s = {1, NAN, NAN, NAN, NAN, 0};
    double sum = 0, squares = 0;
    if (v->dtype == MTAN_DTYPE_F8_E5M2 || v->dtype == MTAN_DTYPE_F8_E4M3) s.known = 0;
    for (size_t i = 0; s.known && i < v->count; i++) {
        const double x = element(v, i);
        s.nan += isnan(x) != 0;
        if (isnan(x)) continue;
        sum += x;
        if (!(s.least <= x)) s.least = x;
        if (!(s.most >= x)) s.most = x;
    }
    const double n = (double)(v->count - s.nan);
    if (!s.known || !(n > 0)) return s;
    s.mean = sum / n;
    for (size_t i = 0; i < v->count; i++) {
        const double d = element(v, i) - s.mean;
        if (!isnan(d)) squares += d * d;
    }
    s.sd = sqrt(squares / n);
    return s;
}

/* ---- the model, if the file holds one ---- */

typedef struct subject {
    const char *path;
    size_t bytes;
    tensor_set set;
    int is_model;
    mtan_model model;
    mtan_real *weights;
    converted converted; /* of a checkpoint */
    mtan_bounds bounds;
    size_t predict_bytes, train_bytes; /* 0: more than the library can lay out */
    size_t small_bytes;                /* of mtan_small_classify, `points` reference points at a time; 0: it cannot run
                                        * the model */
    int32_t points;
} subject;

static void find_model(subject *s, const void *blob, size_t bytes) {
    char error[ERROR_SIZE];
    torchfile torch;
    mtan_file file;
    size_t count = 0;
    if (s->set.torch) {
        if (!torch_open(&torch, s->path, blob, bytes, error)) return;
        s->is_model = convert_from_torch(&s->converted, &torch, NULL, error);
        if (s->is_model) s->model = s->converted.model;
        torch_close(&torch);
    } else if (mtan_file_open(&file, blob, bytes) == MTAN_OK &&
               mtan_model_load_count(&file, baselines, &count) == MTAN_OK) {
        s->weights = tool_calloc(count, sizeof *s->weights);
        s->is_model = mtan_model_load(&s->model, s->weights, count, &file, baselines) == MTAN_OK;
    }
}

static void find_memory(subject *s, const options *o) {
    mtan_train_config train;
    mtan_train_config_init(&train);
    s->bounds.records = 1;
    s->bounds.events = (int32_t)option_integer(o, "events", 1500);
    s->bounds.times = (int32_t)option_integer(o, "times", 200);
    if (mtan_predictor_size(&s->model, &s->bounds, &s->predict_bytes) != MTAN_OK) s->predict_bytes = 0;
    s->points = s->model.config.ref_points < POINTS ? s->model.config.ref_points : POINTS;
    if (mtan_small_size(&s->model, s->points, &s->small_bytes) != MTAN_OK) s->small_bytes = 0;
    s->bounds.records = BATCH;
    if (mtan_trainer_size(&s->model, &train, &s->bounds, &s->train_bytes) != MTAN_OK) s->train_bytes = 0;
}

/* ---- text ---- */

/* Text from a file, shortened unless `full`. */
static void print_text(const char *text, int full) {
    if (shown_put(stdout, text, 0, full ? SIZE_MAX : LONGEST)) printf("... (%zu bytes)", strlen(text));
}

static void print_bytes(const char *what, size_t bytes) {
    if (bytes == 0) printf("%s: more than can be laid out\n", what);
    else if (bytes < 10u << 20) printf("%s: %.1f KB\n", what, (double)bytes / 1024);
    else printf("%s: %.1f MB\n", what, (double)bytes / 1048576);
}

static void print_model(const subject *s) {
    const mtan_config *c = &s->model.config;
    char text[64], what[96];
    printf("model: %s, %zu parameters", model_title(c), mtan_weights_count(c));
    if (c->members > 1) printf(" of %d members", (int)c->members);
    printf("\n ");
    for (int32_t i = 0; setting_key(c, i); i++)
        if (setting_show(c, setting_key(c, i), text, sizeof text))
            printf(" %s %s%s", setting_key(c, i), text, !setting_key(c, i + 1) ? "\n" : i % 6 == 5 ? ",\n " : ",");
    for (size_t i = 0; i < arrlenu(s->converted.remarks); i++) printf("  %s\n", s->converted.remarks[i]);
    snprintf(what, sizeof what, "memory to predict a record of at most %d observations at %d times",
             (int)s->bounds.events, (int)s->bounds.times);
    print_bytes(what, s->predict_bytes);
    snprintf(what, sizeof what, "memory to predict any record, %d reference points at a time", (int)s->points);
    if (s->small_bytes) print_bytes(what, s->small_bytes);
    snprintf(what, sizeof what, "memory to train on %d such records a step, on one thread", (int)BATCH);
    if (c->members > 1) puts("an ensemble: its members are trained apart");
    else if (s->model.precision == MTAN_REAL) print_bytes(what, s->train_bytes);
    else puts("its matrices are int8: it cannot be trained on");
}

static void print_tensor(const named_tensor *t) {
    const statistics s = measure(&t->view);
    char shape[128] = "";
    size_t used = 0;
    for (int i = 0; i < t->view.rank && used < 100; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%zu", i ? " x " : "", t->view.shape[i]);
    printf("%-8s %-12s", dtype_names[t->view.dtype], t->view.rank ? shape : "scalar");
    if (s.known && t->view.count > s.nan) printf(" %11.4g %11.4g %11.4g %11.4g", s.mean, s.sd, s.least, s.most);
    else printf(" %11s %11s %11s %11s", "-", "-", "-", "-");
    printf(" %5zu  ", s.nan);
    print_text(t->name, 1);
    putchar('\n');
}

/* Keys that are not printed: a model's settings, which are printed above, and lists of parameter numbers. */
static int is_dull(const subject *s, const char *name) {
    if (strncmp(name, "optimizer.param_groups.0.params.", 32) == 0) return 1;
    for (int32_t i = 0; s->is_model && strncmp(name, "mtan.", 5) == 0 && setting_key(&s->model.config, i); i++)
        if (strcmp(name + 5, setting_key(&s->model.config, i)) == 0) return 1;
    return 0;
}

static void print_all(const subject *s, int full) {
    size_t elements = 0;
    for (size_t i = 0; i < arrlenu(s->set.tensors); i++) elements += s->set.tensors[i].view.count;
    print_text(s->path, 1);
    printf(": %s, %zu bytes, %zu tensors, %zu elements\n", s->set.torch ? "PyTorch checkpoint" : "safetensors",
           s->bytes, arrlenu(s->set.tensors), elements);
    if (s->is_model) print_model(s);
    if (arrlen(s->set.metadata)) puts("metadata:");
    for (size_t i = 0; i < arrlenu(s->set.metadata); i++) {
        if (!full && is_dull(s, s->set.metadata[i].name)) continue;
        printf("  ");
        print_text(s->set.metadata[i].name, 1);
        printf(" = ");
        print_text(s->set.metadata[i].text, full);
        putchar('\n');
    }
    printf("%-8s %-12s %11s %11s %11s %11s %5s  %s\n", "type", "shape", "mean", "sd", "min", "max", "NaN", "name");
    for (size_t i = 0; i < arrlenu(s->set.tensors); i++) print_tensor(&s->set.tensors[i]);
}

/* ---- JSON ---- */

static void json_field(const char *name, double value) {
    printf(", \"%s\": ", name);
    json_number(stdout, value);
}

static void json_tensor(const named_tensor *t) {
    const statistics s = measure(&t->view);
    printf("{\"name\": ");
    json_string(stdout, t->name);
    printf(", \"dtype\": \"%s\", \"shape\": [", dtype_names[t->view.dtype]);
    for (int i = 0; i < t->view.rank; i++) printf("%s%zu", i ? ", " : "", t->view.shape[i]);
    printf("], \"count\": %zu", t->view.count);
    json_field("mean", s.mean);
    json_field("sd", s.sd);
    json_field("min", s.least);
    json_field("max", s.most);
    printf(", \"nan\": %zu}", s.nan);
}

static void json_model(const subject *s) {
    const mtan_config *c = &s->model.config;
    char text[64];
    printf("{\"parameters\": %zu, \"settings\": {", mtan_weights_count(c));
    for (int32_t i = 0, n = 0; setting_key(c, i); i++)
        if (setting_get(c, setting_key(c, i), text, sizeof text))
            printf("%s\"%s\": \"%s\"", n++ ? ", " : "", setting_key(c, i), text);
    printf(
        "}, \"memory\": {\"events\": %d, \"times\": %d, \"predict_bytes\": %zu, \"small_bytes\": %zu, \"batch\": %d, "
        "\"train_bytes\": %zu}}",
        (int)s->bounds.events, (int)s->bounds.times, s->predict_bytes, s->small_bytes, (int)BATCH, s->train_bytes);
}

static void json_all(const subject *s) {
    printf("{\"file\": ");
    json_string(stdout, s->path);
    printf(", \"bytes\": %zu, \"format\": \"%s\",\n \"model\": ", s->bytes, s->set.torch ? "pytorch" : "safetensors");
    if (s->is_model) json_model(s);
    else printf("null");
    printf(",\n \"metadata\": {");
    for (size_t i = 0; i < arrlenu(s->set.metadata); i++) {
        printf(i ? ",\n  " : "\n  ");
        json_string(stdout, s->set.metadata[i].name);
        printf(": ");
        json_string(stdout, s->set.metadata[i].text);
    }
    printf("},\n \"tensors\": [");
    for (size_t i = 0; i < arrlenu(s->set.tensors); i++) {
        printf(i ? ",\n  " : "\n  ");
        json_tensor(&s->set.tensors[i]);
    }
    puts("]}");
}

int command_inspect(const options *o) {
    subject s;
    char error[ERROR_SIZE];
    memset(&s, 0, sizeof s);
    s.path = o->argument[0];
    void *blob = tensor_set_read(s.path, &s.bytes, error);
    if (!blob) return complain("%s", error);
    int status = DONE;
    if (tensor_set_open(&s.set, s.path, blob, s.bytes, error)) {
        find_model(&s, blob, s.bytes);
        if (s.is_model) find_memory(&s, o);
        if (option_given(o, "json")) json_all(&s);
        else print_all(&s, option_given(o, "full"));
        tensor_set_close(&s.set);
        converted_free(&s.converted);
        free(s.weights);
    } else status = complain("%s", error);
    free(blob);
    return status;
}
