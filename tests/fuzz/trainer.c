/* Fuzz target: what a trainer kept in a model file. Any file is refused, and nothing is changed, or the trainer has what the file
 * says; saved and loaded again it is the same.
 *
 * The first byte chooses the trainer (smallest.h), the rest is a description (described.h). */
#include "described.h"
#include "smallest.h"

enum { MOST_WEIGHTS = 256, MOST_FILE = 1 << 15 };

typedef struct trained {
    mtan_config config;
    mtan_model model;
    mtan_real weights[MOST_WEIGHTS];
    mtan_trainer trainer;
    size_t count;
} trained;

static trained all[SMALLEST_MOST];
static int trainers;

static void make_trainer(trained *t) {
    const mtan_bounds bounds = {1, 1, 1};
    mtan_train_config config;
    size_t bytes = 0;
    mtan_train_config_init(&config);
    t->count = mtan_weights_count(&t->config);
    PROMISE(t->count > 0 && t->count <= MOST_WEIGHTS);
    PROMISE(mtan_weights_init(&t->config, t->weights, t->count, 0) == MTAN_OK);
    PROMISE(mtan_model_init(&t->model, &t->config, t->weights, t->count) == MTAN_OK);
    PROMISE(mtan_trainer_size(&t->model, &config, &bounds, &bytes) == MTAN_OK);
    PROMISE(mtan_trainer_init(&t->trainer, &t->model, t->weights, &config, &bounds, malloc(bytes), bytes) == MTAN_OK);
}

/* What a file changes. */
typedef struct kept {
    mtan_real weights[MOST_WEIGHTS], moment1[MOST_WEIGHTS], moment2[MOST_WEIGHTS];
    int64_t step;
} kept;

static void keep(kept *k, const trained *t) {
    const size_t bytes = t->count * sizeof(mtan_real);
    memcpy(k->weights, t->weights, bytes);
    memcpy(k->moment1, t->trainer.moment1, bytes);
    memcpy(k->moment2, t->trainer.moment2, bytes);
    k->step = t->trainer.step;
}

static int same(const kept *k, const trained *t) {
    const size_t bytes = t->count * sizeof(mtan_real);
    return k->step == t->trainer.step && memcmp(k->weights, t->weights, bytes) == 0 &&
           memcmp(k->moment1, t->trainer.moment1, bytes) == 0 && memcmp(k->moment2, t->trainer.moment2, bytes) == 0;
}

/* Is a tensor of the file, of exactly n elements, what the trainer has? */
static int is_tensor(const mtan_file *file, const char *name, const mtan_real *has, size_t n) {
    static mtan_real says[MOST_WEIGHTS];
    mtan_tensor_view view;
    if (mtan_file_tensor(file, name, &view) != MTAN_OK || view.count != n) return 0;
    if (view.dtype == MTAN_DTYPE_I8) return 1; /* its scales are another tensor */
    return mtan_view_read(&view, says, n) == MTAN_OK && memcmp(says, has, n * sizeof *has) == 0;
}

static void compare_file(const trained *t, const mtan_file *file) {
    mtan_param p;
    PROMISE(is_tensor(file, "mtan.moment1", t->trainer.moment1, t->count));
    PROMISE(is_tensor(file, "mtan.moment2", t->trainer.moment2, t->count));
    for (int32_t i = 0; mtan_param_at(&t->config, i, &p) == MTAN_OK; i++)
        PROMISE(is_tensor(file, p.name, t->weights + p.offset, (size_t)p.rows * (size_t)p.cols));
}

static uint8_t saved[MOST_FILE];
static size_t saved_bytes;

static mtan_status save(void *context, const void *bytes, size_t n) {
    (void)context;
    if (n > sizeof saved - saved_bytes) return MTAN_ERR_WRITE;
    memcpy(saved + saved_bytes, bytes, n);
    saved_bytes += n;
    return MTAN_OK;
}

/* Writes the trainer, changes it and reads it back. */
static void save_and_load(trained *t) {
    mtan_file file;
    kept now;
    keep(&now, t);
    saved_bytes = 0;
    PROMISE(mtan_model_save(&t->model, &t->trainer, NULL, 0, save, NULL) == MTAN_OK);
    memset(t->weights, 0, t->count * sizeof *t->weights);
    memset(t->trainer.moment1, 0, t->count * sizeof *t->weights);
    t->trainer.step = -1;
    PROMISE(mtan_file_open(&file, saved, saved_bytes) == MTAN_OK);
    PROMISE(mtan_trainer_load(&t->trainer, &file) == MTAN_OK);
    PROMISE(same(&now, t));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    described d;
    mtan_file file;
    kept before;
    trained *t;
    for (; trainers < SMALLEST_MOST && smallest_config(&all[trainers].config, trainers); trainers++)
        make_trainer(&all[trainers]);
    if (size == 0) return 0;
    d = described_file(data + 1, size - 1, 0);
    if (mtan_file_open(&file, d.bytes, d.length) != MTAN_OK) return 0;
    t = &all[data[0] % trainers];
    keep(&before, t);
    if (mtan_trainer_load(&t->trainer, &file) == MTAN_OK) compare_file(t, &file), save_and_load(t);
    else PROMISE(same(&before, t));
    return 0;
}
