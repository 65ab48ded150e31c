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

/* ---- operands ---- */

static void *give_bytes(cuda_work *w, const void *x, size_t bytes) {
    void *given = w->device ? mtan_cuda_alloc(w->device, bytes) : guard_alloc(bytes);
    if (!given || w->n == CUDA_MOST_BLOCKS) exit(2);
    if (!w->device) memcpy(given, x, bytes);
    else if (mtan_cuda_upload(w->device, given, x, bytes)) exit(2);
    w->block[w->n].given = given;
    w->block[w->n].reals = NULL;
    w->block[w->n].count = 0;
    w->n++;
    return given;
}

mtan_real *cuda_give(cuda_work *w, const mtan_real *x, size_t n) {
    mtan_real *given = give_bytes(w, x, n * sizeof *x);
    w->block[w->n - 1].reals = malloc((n + 1) * sizeof *x);
    w->block[w->n - 1].count = n;
    return given;
}

const int32_t *cuda_give_ints(cuda_work *w, const int32_t *x, size_t n) {
    return give_bytes(w, x, n * sizeof *x);
}

static mtan_real *take_between(cuda_work *w, size_t n, double low, double high) {
    mtan_real *x = malloc((n + 1) * sizeof *x), *given;
    for (size_t i = 0; i < n; i++) x[i] = (mtan_real)(low + (high - low) * 0.5 * (1 + (double)small_real(&w->random)));
    given = cuda_give(w, x, n);
    free(x);
    return given;
}

mtan_real *cuda_take(cuda_work *w, size_t n, double scale) {
    return take_between(w, n, -scale, scale);
}

mtan_real *cuda_take_positive(cuda_work *w, size_t n, double low, double scale) {
    return take_between(w, n, low, scale);
}

mtan_real *cuda_take_nothing(cuda_work *w, size_t n) {
    return take_between(w, n, 0.5, 0.5);
}

/* As a sum of two reals: a double has more digits than one. */
void cuda_keep(cuda_work *w, double x) {
    const mtan_real high = (mtan_real)x, pair[2] = {high, (mtan_real)(x - (double)high)};
    cuda_give(w, pair, 2);
}

/* Fetches the results and frees the operands; 0 when something was written beside them. */
static int collect(cuda_work *w) {
    int ok = 1;
    for (int i = 0; i < w->n; i++) {
        const size_t bytes = w->block[i].count * sizeof(mtan_real);
        if (!w->device) {
            if (bytes) memcpy(w->block[i].reals, w->block[i].given, bytes);
            ok = guard_free(w->block[i].given) && ok;
            continue;
        }
        if (bytes) mtan_cuda_download(w->device, w->block[i].reals, w->block[i].given, bytes);
        ok = mtan_cuda_sync(w->device) == MTAN_CUDA_OK && ok;
        mtan_cuda_free(w->device, w->block[i].given);
    }
    return ok;
}

/* ---- comparisons ---- */

static double largest(const mtan_real *x, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fabs((double)x[i]) > most && x[i] - x[i] == 0 ? fabs((double)x[i]) : most;
    return most;
}

int cuda_compare(const char *name, const mtan_real *got, const mtan_real *expected, size_t n, cuda_nearness nearness) {
    const double limit = 1e-5 * largest(expected, n) + 1e-30;
    const int same = nearness == CUDA_SAME && cuda_expected()->fused;
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

int cuda_agree(const char *name, cuda_run *run, const cuda_shape *s, cuda_nearness nearness, mtan_cuda *device,
               uint64_t seed) {
    cuda_work got, expected;
    char text[128];
    int ok;
    snprintf(text, sizeof text, "%s (m %d, n %d, k %d, pad %d, add %d), seed %d", name, (int)s->m, (int)s->n, (int)s->k,
             (int)s->pad, (int)s->add, (int)seed);
    memset(&got, 0, sizeof got), memset(&expected, 0, sizeof expected);
    got.random = expected.random = 1000 * seed + (uint64_t)(s->m + 3 * s->n + 7 * s->k);
    got.backend = &mtan_backend_cuda, got.device = device;
    expected.backend = cuda_expected();
    shim.seed = seed;
    run(&expected, s), run(&got, s);
    ok = collect(&expected), ok = collect(&got) && ok;
    if (device->status) printf("  BAD %s: %s\n", text, device->message);
    for (int i = 0; i < got.n; i++) {
        char part[160];
        snprintf(part, sizeof part, "%s, operand %d", text, i);
        ok = ok && cuda_compare(part, got.block[i].reals, expected.block[i].reals, got.block[i].count, nearness);
        free(got.block[i].reals), free(expected.block[i].reals);
    }
    return cuda_no_faults(text) && ok;
}

#else

typedef int no_cuda_compare;

#endif
