/* Fuzz target: model files, with and without the baselines among the known architectures. Any file is refused or is a model,
 * without an allocation.
 *
 * The first byte: 1: the baselines are known; 2: the rest is a file as it stands, not a description (described.h); 4: the weights
 * have a place too few; above: the address, modulo 8. */
#include "described.h"

#include "../../tools/baselines/baselines.h"

enum { MOST_WEIGHTS = 1 << 14, UNTOUCHED = 0xa5 };

static int untouched(const void *memory, size_t bytes) {
    const uint8_t *at = memory;
    return bytes == 0 ||
           (at[0] == UNTOUCHED && memcmp(at, at + 1, bytes - 1) == 0); /* each byte is as the one before */
}

static int is_finite(mtan_real x) {
    return x - x == 0;
}

/* Loads into `room` reals, of which there are as many as it asks for or one fewer. */
static mtan_status load(mtan_model *model, size_t room, const mtan_file *file, const mtan_architecture *const *known) {
    static mtan_real *fence;
    mtan_real *weights;
    mtan_status status;
    if (!fence) fence = (mtan_real *)(void *)described_fence(MOST_WEIGHTS * sizeof *fence);
    weights = fence - room;
    memset(weights, UNTOUCHED, room * sizeof *weights);
    status = mtan_model_load(model, weights, room, file, known);
    if (status == MTAN_OK)
        for (size_t i = 0; i < room; i++) PROMISE(is_finite(weights[i]));
    else PROMISE(untouched(weights, room * sizeof *weights));
    return status;
}

/* A model that is used where it lies has the weights of the one that was copied. */
static void compare(const mtan_model *opened, const mtan_model *loaded) {
    PROMISE(opened->precision == loaded->precision);
    for (int32_t i = 0, n = mtan_param_count(&opened->config); i < n && opened->precision == MTAN_REAL; i++) {
        mtan_param p;
        PROMISE(mtan_param_at(&loaded->config, i, &p) == MTAN_OK);
        PROMISE(memcmp(opened->weights + opened->offset[i], loaded->weights + p.offset,
                       (size_t)p.rows * (size_t)p.cols * sizeof(mtan_real)) == 0);
    }
}

/* Whole numbers have a scale for each row. */
static void check_scales(const mtan_model *loaded, const mtan_file *file) {
    mtan_param p;
    for (int32_t i = 0; mtan_param_at(&loaded->config, i, &p) == MTAN_OK; i++) {
        char name[MTAN_NAME_SIZE + 8];
        mtan_tensor_view view;
        PROMISE(mtan_file_tensor(file, p.name, &view) == MTAN_OK);
        if (view.dtype != MTAN_DTYPE_I8) continue;
        snprintf(name, sizeof name, "%s.scale", p.name);
        PROMISE(mtan_file_tensor(file, name, &view) == MTAN_OK && view.count == (size_t)p.rows);
    }
}

static void read_model(const mtan_file *file, const mtan_architecture *const *known, int starve) {
    mtan_model opened, loaded;
    size_t count = 0;
    mtan_status open_status, status = mtan_model_load_count(file, known, &count);
    memset(&opened, UNTOUCHED, sizeof opened);
    memset(&loaded, UNTOUCHED, sizeof loaded);
    open_status = mtan_model_open(&opened, file, known);
    if (open_status != MTAN_OK) PROMISE(untouched(&opened, sizeof opened));
    if (status != MTAN_OK) PROMISE(open_status != MTAN_OK);
    if (status != MTAN_OK || count > MOST_WEIGHTS) return;
    PROMISE(count > 0);
    status = load(&loaded, count - (size_t)starve, file, known);
    if (starve) PROMISE(status == MTAN_ERR_MEMORY);
    else PROMISE(open_status != MTAN_OK || status == MTAN_OK);
    if (status == MTAN_OK && loaded.precision == MTAN_INT8) check_scales(&loaded, file);
    if (status != MTAN_OK) PROMISE(untouched(&loaded, sizeof loaded));
    else if (open_status == MTAN_OK) compare(&opened, &loaded);
    else PROMISE(open_status == MTAN_ERR_SHAPE); /* another type, or not aligned */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    described d;
    mtan_file file;
    if (size == 0) return 0;
    if (data[0] & 2) d = described_at_fence(data + 1, size - 1, data[0] >> 3 & 7);
    else d = described_file(data + 1, size - 1, data[0] >> 3 & 7);
    if (mtan_file_open(&file, d.bytes, d.length) == MTAN_OK)
        read_model(&file, data[0] & 1 ? baselines : NULL, data[0] >> 2 & 1);
    return 0;
}
