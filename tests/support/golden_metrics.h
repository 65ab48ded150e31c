/* Tensors of golden/metrics.safetensors, or of the file in GOLDEN_FILE, and comparisons with them. */
#ifndef MTAN_TESTS_GOLDEN_METRICS_H
#define MTAN_TESTS_GOLDEN_METRICS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

#ifndef GOLDEN_FILE
#define GOLDEN_FILE "metrics.safetensors"
#endif

/* A block with a tensor's elements (free it), and their number. A missing tensor ends the program. */
static inline void *golden_array(const char *tensor, mtan_dtype dtype, size_t element, size_t *n) {
    mtan_file file;
    mtan_tensor_view view;
    size_t bytes = 0;
    void *blob = slurp_golden(GOLDEN_FILE, &bytes), *out = NULL;
    if (blob && mtan_file_open(&file, blob, bytes) == MTAN_OK && mtan_file_tensor(&file, tensor, &view) == MTAN_OK &&
        (out = calloc(view.count + 1, element)) != NULL &&
        mtan_view_read_raw(&view, dtype, out, view.count) == MTAN_OK) {
        *n = view.count;
        guard_free(blob);
        return out;
    }
    fprintf(stderr, "mtan: golden/" GOLDEN_FILE ": no tensor %s of that type\n", tensor);
    exit(2);
}

static inline int32_t *golden_i32(const char *tensor, size_t *n) {
    return golden_array(tensor, MTAN_DTYPE_I32, sizeof(int32_t), n);
}

static inline double *golden_f64(const char *tensor, size_t *n) {
    return golden_array(tensor, MTAN_DTYPE_F64, sizeof(double), n);
}

static inline float *golden_f32(const char *tensor, size_t *n) {
    return golden_array(tensor, MTAN_DTYPE_F32, sizeof(float), n);
}

/* Within `relative` of the expected number; NaN and infinities must be the same. */
static inline int same_number(const char *name, double got, double expected, double relative) {
    const int good = isnan(expected)   ? isnan(got)
                     : isinf(expected) ? got == expected
                                       : fabs(got - expected) <= relative * fabs(expected);
    if (!good) printf("  BAD %s: %.17g, expected %.17g\n", name, got, expected);
    return good;
}

#endif
