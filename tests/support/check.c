/* See check.h. */
#include "check.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUARD_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(GUARD_ASAN)
#include <sanitizer/asan_interface.h>
#define FORBID(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define ALLOW(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define FORBID(p, n) ((void)(p), (void)(n))
#define ALLOW(p, n) ((void)(p), (void)(n))
#endif

int check_quiet;

/* Prints a line of a verdict, unless failure is expected. */
#define SAY(...) ((void)(check_quiet || printf("  " __VA_ARGS__)))

/* ---- comparisons ---- */

/* A difference of 0 uses no share of any limit. A NaN, or a positive difference with limit 0, gives infinity. */
static double share_of(double diff, double limit) {
    if (diff == 0 && limit >= 0) return 0;
    double share = diff / limit;
    return diff > 0 && share >= 0 ? share : HUGE_VAL;
}

int check_passes(const check_worst *worst) {
    return worst->share <= 1;
}

check_worst check_entries(const mtan_real *got, const double *ref, size_t n, double absolute, double relative) {
    check_worst worst = {0, 0, 0, 0, 0, n ? -1 : HUGE_VAL};
    for (size_t i = 0; i < n; i++) {
        check_worst now = {i, (double)got[i], ref[i], fabs((double)got[i] - ref[i]), absolute + relative * fabs(ref[i]),
                           0};
        now.share = share_of(now.diff, now.limit);
        if (now.share > worst.share) worst = now;
    }
    return worst;
}

check_worst check_distance(const mtan_real *got, const double *ref, size_t n, double absolute, double relative) {
    check_worst worst = check_entries(got, ref, n, 1, 0);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double diff = (double)got[i] - ref[i];
        sum += diff * diff;
    }
    worst.diff = sqrt(sum);
    worst.limit = absolute + relative * check_length(ref, n);
    worst.share = n ? share_of(worst.diff, worst.limit) : HUGE_VAL;
    return worst;
}

int host_is_little(void) {
    const uint16_t one = 1;
    return *(const uint8_t *)&one;
}

double check_length(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static int report(const char *name, const char *how, size_t n, check_worst worst) {
    int ok = check_passes(&worst);
    SAY("%s %s %s, %zu entries: worst at %zu: got %.9g, expected %.9g, off by %.3g of %.3g (%.3g %% of the limit)\n",
        ok ? "ok" : "BAD", name, how, n, worst.index, worst.got, worst.ref, worst.diff, worst.limit, 100 * worst.share);
    return ok;
}

int check_close(const char *name, const mtan_real *got, const double *ref, size_t n, double absolute, double relative) {
    return report(name, "by entry", n, check_entries(got, ref, n, absolute, relative));
}

int check_norm(const char *name, const mtan_real *got, const double *ref, size_t n, double absolute, double relative) {
    return report(name, "by norm", n, check_distance(got, ref, n, absolute, relative));
}

int check_near(double expected, double got, double tolerance) {
    if (fabs(got - expected) <= tolerance) return 1;
    SAY("BAD %.17g is not within %g of %.17g\n", got, tolerance, expected);
    return 0;
}

int check_same(const char *name, const void *got, const void *expected, size_t bytes) {
    const unsigned char *a = got, *b = expected;
    if (bytes && memcmp(a, b, bytes) == 0) return 1;
    size_t i = 0;
    while (i < bytes && a[i] == b[i]) i++;
    if (i < bytes) SAY("BAD %s: byte %zu of %zu is %02x, expected %02x\n", name, i, bytes, a[i], b[i]);
    else SAY("BAD %s: nothing to compare\n", name);
    return 0;
}

/* ---- guarded blocks ----
 * malloc | slack | header | zone of 64 | the block | zone of 64 */

#define ZONE 64
#define ZONE_BYTE 0xa5

typedef struct {
    void *base; /* returned by malloc */
    size_t bytes;
} guard_header;

static guard_header *header_of(const void *block) {
    return (guard_header *)((uintptr_t)block - ZONE - sizeof(guard_header));
}

guard_watcher guard_watch;

void *guard_alloc(size_t bytes) {
    size_t around = 64 + sizeof(guard_header) + 2 * ZONE;
    unsigned char *base = bytes <= SIZE_MAX - around ? malloc(bytes + around) : NULL;
    if (!base) {
        fprintf(stderr, "mtan: %s:%d: no memory for %zu bytes\n", __FILE__, __LINE__, bytes);
        exit(2);
    }
    unsigned char *block = base + sizeof(guard_header) + ZONE;
    block += (64 - (uintptr_t)block % 64) % 64;
    *header_of(block) = (guard_header){base, bytes};
    memset(block - ZONE, ZONE_BYTE, ZONE);
    memset(block, 0xff, bytes);
    memset(block + bytes, ZONE_BYTE, ZONE);
    FORBID(block - ZONE, ZONE);
    FORBID(block + bytes, ZONE);
    if (guard_watch.given) guard_watch.given(block, bytes);
    return block;
}

static int zone_intact(const unsigned char *zone, const char *where, size_t bytes) {
    ALLOW(zone, ZONE);
    size_t bad = 0;
    while (bad < ZONE && zone[bad] == ZONE_BYTE) bad++;
    FORBID(zone, ZONE);
    if (bad == ZONE) return 1;
    SAY("BAD guard: byte %zu of the zone %s a block of %zu bytes was written\n", bad, where, bytes);
    return 0;
}

int guard_check(const void *block) {
    size_t bytes = header_of(block)->bytes;
    int before = zone_intact((const unsigned char *)block - ZONE, "before", bytes);
    int after = zone_intact((const unsigned char *)block + bytes, "after", bytes);
    return before && after;
}

int guard_free(void *block) {
    if (!block) return 1;
    if (guard_watch.taken) guard_watch.taken(block);
    int ok = guard_check(block);
    guard_header header = *header_of(block);
    ALLOW((unsigned char *)block - ZONE, ZONE);
    ALLOW((unsigned char *)block + header.bytes, ZONE);
    free(header.base);
    return ok;
}

/* ---- files ---- */

void *slurp(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0) size = ftell(file);
    void *block = NULL;
    if (size >= 0) {
        rewind(file);
        block = guard_alloc((size_t)size);
        if (fread(block, 1, (size_t)size, file) != (size_t)size) {
            guard_free(block);
            block = NULL;
        }
    }
    if (file) fclose(file);
    if (block) *bytes = (size_t)size;
    else SAY("BAD cannot read %s\n", path);
    return block;
}

void *slurp_golden(const char *name, size_t *bytes) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", MTAN_GOLDEN_DIR, name);
    return slurp(path, bytes);
}

int case_left_out(const char *name) {
    const char *list = getenv("MTAN_SKIP_CASES");
    const size_t n = strlen(name);
    while (list && *list) {
        const size_t word = strcspn(list, " ");
        if (word == n && memcmp(list, name, n) == 0) return 1;
        list += word + (list[word] == ' ');
    }
    return 0;
}

void sort_knots(const mtan_config *config, mtan_real *weights) {
    const int32_t knots = config->bins + 1;
    mtan_param p;
    if (config->values == MTAN_VALUES_PLAIN || mtan_param_at(config, mtan_param_count(config) - 1, &p) != MTAN_OK)
        return;
    for (int32_t i = 0; i < p.rows; i++) {
        mtan_real *knot = weights + p.offset;
        const mtan_real x = knot[i];
        int32_t at = i;
        for (; at % knots > 0 && knot[at - 1] > x; at--) knot[at] = knot[at - 1];
        knot[at] = x;
    }
}
