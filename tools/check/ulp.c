/* ulp: measures the error of the library's elementary functions over all floats, against libm in double.
 *
 *     ulp              all 2^32 floats (some minutes)
 *     ulp --sample N   every N-th float and the awkward ones
 *     ulp --quiet      no progress line
 *
 * Prints one line per function: the largest error in ulp of the true value, its argument, and its fraction of the
 * limit. The exit code is 1 if a function exceeds its limit, 2 for a wrong argument. */
#include "ulp.h"
#include <stdio.h>
#include <stdlib.h>

#ifdef MTAN_DOUBLE
#error "ulp.c measures the float build"
#endif

enum { BLOCK = 4096 };

typedef struct {
    double error;
    float x, y;
    uint64_t count;
} worst_case;

static void measure(const mtan_backend *backend, mtan_function f, const float *x, size_t n, worst_case *worst) {
    float y[BLOCK];
    size_t i;
    backend->map(f, y, x, n);
    for (i = 0; i < n; i++) {
        double error = ulp_error(y[i], ulp_true(f, x[i]));
        if (!(error <= worst->error)) {
            worst->error = error;
            worst->x = x[i];
            worst->y = y[i];
        }
    }
    worst->count += n;
}

static worst_case scan(const mtan_backend *backend, const ulp_case *c, uint32_t step, int quiet) {
    worst_case worst = {0, 0, 0, 0};
    float x[BLOCK];
    uint64_t bits = 0, blocks = 0;
    uint32_t awkward = 0;
    size_t n;
    while (bits >> 32 == 0) {
        for (n = 0; n < BLOCK && bits >> 32 == 0; n++, bits += step) {
            x[n] = ulp_float((uint32_t)bits);
        }
        measure(backend, c->function, x, n, &worst);
        if (!quiet && blocks++ % 4096 == 0) {
            fprintf(stderr, "\r%-10s %3.0f %%", c->name, (double)bits / 0x1p32 * 100);
        }
    }
    do {
        for (n = 0; n < BLOCK && ulp_awkward(awkward, &x[n]); n++, awkward++) {
        }
        measure(backend, c->function, x, n, &worst);
    } while (n == BLOCK);
    if (!quiet) {
        fprintf(stderr, "\r%20s\r", "");
    }
    return worst;
}

static int usage(void) {
    fputs("usage: ulp [--sample N] [--quiet]\n", stderr);
    return 2;
}

int main(int argc, char **argv) {
    const mtan_backend *backend = &mtan_backend_scalar;
    unsigned long step = 1;
    int quiet = 0, over = 0, i;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quiet") == 0) {
            quiet = 1;
        } else if (strcmp(argv[i], "--sample") == 0 && i + 1 < argc) {
            char *end;
            step = strtoul(argv[++i], &end, 10);
            if (*end != '\0' || step < 1 || step > 0x7FFFFFFF) {
                return usage();
            }
        } else {
            return usage();
        }
    }
    printf("backend %s, one float in %lu%s\n", backend->name, step, step == 1 ? "" : " and the awkward ones");
    printf("%-10s %-11s %11s %7s %10s %16s %16s %7s\n", "function", "range", "arguments", "limit", "error/ulp", "at",
           "gives", "share");
    for (i = 0; i < ULP_CASES; i++) {
        const ulp_case *c = &ulp_cases[i];
        worst_case w = scan(backend, c, (uint32_t)step, quiet);
        int bad = !(w.error <= c->limit);
        printf("%-10s %-11s %11llu %7g %10.4f %16.9g %16.9g %6.1f%%%s\n", c->name, c->range,
               (unsigned long long)w.count, c->limit, w.error, (double)w.x, (double)w.y, w.error / c->limit * 100,
               bad ? "  OVER" : "");
        fflush(stdout);
        over |= bad;
    }
    return over;
}
