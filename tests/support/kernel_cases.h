/* Every kernel of a backend on awkward shapes: one list of cases for all who compare backends or hash what they compute
 * (test_simd.c, the CUDA tests, bits_dump.c). A case takes its operands from a work, which says where they lie, and calls the
 * entries of the work's table. Two works with the same seed have the same operands, so their results can be compared. */
#ifndef MTAN_TESTS_KERNEL_CASES_H
#define MTAN_TESTS_KERNEL_CASES_H

#include "small.h"

enum { KERNEL_MOST_BLOCKS = 48 };

typedef struct kernel_work {
    const mtan_backend *backend;
    uint64_t random;
    int plain; /* operands in their range alone: no zeros, subnormals or large ones in between */
    /* another memory: null, or functions that allocate there, bring bytes there, fetch them and free */
    const struct kernel_memory *memory;
    struct {
        void *given;      /* what the kernel gets */
        mtan_real *reals; /* what came back, after kernel_collect; null: not to be compared */
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
        add; /* rows, columns, terms, further columns in memory, a switch: as a case understands them */
} kernel_shape;

/* Sums by trees are near the scalar ones, all else has the same bits: what a backend of another order of sums promises. */
typedef enum { KERNEL_SAME, KERNEL_NEAR } kernel_nearness;

typedef struct kernel_case {
    const char *name;
    void (*run)(kernel_work *w, const kernel_shape *s);
    int product; /* a matrix product: any shape; else m from 1 to 128 and n from 1 to 131 */
    kernel_nearness nearness;
} kernel_case;

extern const kernel_case kernel_cases[]; /* up to a null name */
const kernel_case *kernel_case_named(const char *name);

/* Fetches all that is to be compared and frees the operands; 0 when something was written beside them. */
int kernel_collect(kernel_work *w);
/* After it. */
void kernel_free(kernel_work *w);

#endif
