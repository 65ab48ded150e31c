/* Every kernel of a backend on awkward shapes: one list of cases for all tests that compare backends or hash their
 * results (test_simd.c, the CUDA tests, bits_dump.c). A case takes its operands from a work, which decides where they
 * are stored, and calls the entries of the work's table. Two works with the same seed have the same operands, so their
 * results can be compared. */
#ifndef MTAN_TESTS_KERNEL_CASES_H
#define MTAN_TESTS_KERNEL_CASES_H

#include "small.h"

enum { KERNEL_MOST_BLOCKS = 48 };

typedef struct kernel_work {
    const mtan_backend *backend;
    uint64_t random;
    int plain; /* operands only within their range: no zeros, subnormals or large values in between */
    /* for another memory: null, or functions that allocate there, copy bytes there, fetch them and free */
    const struct kernel_memory *memory;
    struct {
        void *given;      /* passed to the kernel */
        mtan_real *reals; /* the result, after kernel_collect; null: not compared */
        size_t count;
    } block[KERNEL_MOST_BLOCKS];
    int n;
} kernel_work;

typedef struct kernel_memory {
    void *(*place)(const void *from, size_t bytes); /* never null */
    void (*fetch)(void *to, const void *from, size_t bytes);
    void (*free)(void *memory);
} kernel_memory;

typedef struct {
    int32_t m, n, k, pad,
        add; /* rows, columns, terms, extra columns in memory, a switch: each case interprets them in its own way */
} kernel_shape;

/* The promise of a backend with another order of sums: tree sums are near the scalar ones, all else has the same
 * bits. */
typedef enum { KERNEL_SAME, KERNEL_NEAR } kernel_nearness;

typedef struct kernel_case {
    const char *name;
    void (*run)(kernel_work *w, const kernel_shape *s);
    int product; /* 1: a matrix product, of any shape; 0: m from 1 to 128 and n from 1 to 131 */
    kernel_nearness nearness;
} kernel_case;

extern const kernel_case kernel_cases[]; /* ends with a null name */
const kernel_case *kernel_case_named(const char *name);

/* Fetches everything to be compared and frees the operands; returns 0 if something was written outside of them. */
int kernel_collect(kernel_work *w);
/* Called after kernel_collect. */
void kernel_free(kernel_work *w);

#endif
