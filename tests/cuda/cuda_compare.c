/* See cuda_compare.h. */
#ifdef MTAN_WITH_CUDA_SHIM

#include "cuda_compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../simd/mtan_simd.h"

const mtan_backend *cuda_expected(void) {
    const mtan_backend *fused = mtan_backend_named("scalar-fma");
    return mtan_backend_scalar.fused || !fused ? &mtan_backend_scalar : fused;
}

/* ---- the device's memory, for operands ---- */

static mtan_cuda *in_use;

static void *place(const void *from, size_t bytes) {
    void *to = mtan_cuda_alloc(in_use, bytes);
    if (!to || mtan_cuda_upload(in_use, to, from, bytes)) exit(2);
    return to;
}

static void fetch(void *to, const void *from, size_t bytes) {
    mtan_cuda_download(in_use, to, from, bytes);
    mtan_cuda_sync(in_use);
}

static void release(void *memory) {
    mtan_cuda_sync(in_use);
    mtan_cuda_free(in_use, memory);
}

static const kernel_memory device_memory = {place, fetch, release};

/* ---- comparisons ---- */

static double largest(const mtan_real *x, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fabs((double)x[i]) > most && x[i] - x[i] == 0 ? fabs((double)x[i]) : most;
    return most;
}

int cuda_compare(const char *name, const mtan_real *got, const mtan_real *expected, size_t n,
                 kernel_nearness nearness) {
    const double limit = 1e-5 * largest(expected, n) + 1e-30;
    const int same = nearness == KERNEL_SAME && cuda_expected()->fused;
    for (size_t i = 0; i < n; i++) {
        const int both_nan = got[i] != got[i] && expected[i] != expected[i];
        const int near = fabs((double)got[i] - (double)expected[i]) <= limit || got[i] == expected[i];
        if (both_nan || (same ? memcmp(&got[i], &expected[i], sizeof *got) == 0 : near)) continue;
        if (!check_quiet)
            printf("  BAD %s at %zu of %zu: %.9g, expected %.9g, limit %.3g\n", name, i, n, (double)got[i],
                   (double)expected[i], same ? 0 : limit);
        return 0;
    }
    return 1;
}

int cuda_no_faults(const char *name) {
    const int ok = shim.faults == 0;
    if (!ok && !check_quiet) printf("  BAD %s: %d faults, the first: %s\n", name, shim.faults, shim.text);
    shim_clear();
    return ok;
}

int cuda_agree(const kernel_case *c, const kernel_shape *s, kernel_nearness nearness, mtan_cuda *device,
               uint64_t seed) {
    kernel_work got, expected;
    char text[128];
    int ok;
    snprintf(text, sizeof text, "%s (m %d, n %d, k %d, pad %d, add %d), seed %d", c->name, (int)s->m, (int)s->n,
             (int)s->k, (int)s->pad, (int)s->add, (int)seed);
    memset(&got, 0, sizeof got), memset(&expected, 0, sizeof expected);
    got.random = expected.random = 1000 * seed + (uint64_t)(s->m + 3 * s->n + 7 * s->k);
    got.plain = expected.plain = 1;
    in_use = device;
    got.backend = &mtan_backend_cuda, got.memory = &device_memory;
    expected.backend = cuda_expected();
    shim.seed = seed;
    c->run(&expected, s), c->run(&got, s);
    ok = kernel_collect(&expected), ok = kernel_collect(&got) && ok && got.n == expected.n;
    if (device->status) printf("  BAD %s: %s\n", text, device->message), ok = 0;
    for (int i = 0; ok && i < got.n; i++) {
        char part[160];
        snprintf(part, sizeof part, "%s, operand %d", text, i);
        ok = cuda_compare(part, got.block[i].reals, expected.block[i].reals, got.block[i].count, nearness);
    }
    kernel_free(&got), kernel_free(&expected);
    return cuda_no_faults(text) && ok;
}

int cuda_kernels_agree(mtan_cuda *device, uint64_t seed) {
    static const kernel_shape of_products[] = {
        {1, 1, 1, 0, 0}, {2, 3, 7, 1, 1},   {5, 33, 0, 1, 0},   {5, 33, 0, 1, 1},  {0, 9, 4, 0, 0},
        {4, 0, 4, 0, 1}, {65, 7, 17, 3, 1}, {64, 64, 16, 0, 0}, {9, 67, 33, 2, 0}, {70, 66, 35, 0, 1}};
    static const kernel_shape long_sums[] = {{3, 5, 1024, 0, 1}, {17, 9, 1537, 2, 0}}; /* in parts */
    static const kernel_shape of_others[] = {{1, 1, 0, 0, 0},   {2, 7, 1, 1, 1},   {8, 9, 0, 2, 0},
                                             {11, 33, 1, 3, 1}, {70, 17, 0, 4, 0}, {33, 40, 1, 5, 1}};
    static const kernel_shape of_grus[] = {{3, 32, 1, 0, 0}, {4, 70, 1, 1, 1}, {3, 100, 1, 2, 0}, {1, 131, 1, 0, 1}};
    int ok = 1;
    for (const kernel_case *c = kernel_cases; c->name; c++) {
        for (size_t i = 0; c->product && i < sizeof of_products / sizeof *of_products; i++)
            ok &= cuda_agree(c, &of_products[i], c->nearness, device, seed);
        for (size_t i = 0; c->product && i < 2; i++) ok &= cuda_agree(c, &long_sums[i], KERNEL_NEAR, device, seed);
        for (size_t i = 0; !c->product && i < sizeof of_others / sizeof *of_others; i++)
            ok &= cuda_agree(c, &of_others[i], c->nearness, device, seed);
    }
    for (size_t i = 0; i < sizeof of_grus / sizeof *of_grus; i++)
        ok &= cuda_agree(kernel_case_named("gru"), &of_grus[i], KERNEL_NEAR, device, seed);
    return ok;
}

int cuda_barrier_run(int index, mtan_cuda *device) {
    static const struct {
        const char *name;
        kernel_shape shape;
    } runs[] = {{"product_nn", {5, 7, 33, 0, 0}},
                {"product_packed", {5, 40, 9, 0, 0}},
                {"product_int8", {2, 5, 600, 0, 0}},
                {"sums", {70, 3, 0, 0, 0}},
                {"embedding, backward", {70, 3, 0, 0, 0}},
                {"attention", {33, 40, 0, 0, 0}},
                {"gru", {3, 7, 1, 0, 0}},
                {"gru", {3, 131, 1, 0, 0}}};
    if (index >= (int)(sizeof runs / sizeof *runs)) return -1;
    return cuda_agree(kernel_case_named(runs[index].name), &runs[index].shape, KERNEL_NEAR, device, 3);
}

#else

typedef int no_cuda_compare;

#endif
