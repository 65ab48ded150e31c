/* A piece: a few ops on a tape of their own, built by hand, for the tests of ops and blocks.
 *
 * A test writes one function that builds the piece. piece_run calls it three times: without a workspace, which
 * counts; on a workspace one cache line too small, which must be refused; and on one of exactly the counted size
 * between guards. Then the cotangents go into the outputs' gradients and the tape runs backwards. Inputs, weights
 * and cotangents follow the rule of golden/README.md, so a piece may be compared with golden/ops or golden/blocks,
 * or with loops of the test. */
#ifndef MTAN_TESTS_TAPE_TEST_H
#define MTAN_TESTS_TAPE_TEST_H

#include "check.h"

enum { PIECE_TENSORS = 32, PIECE_RECORDS = 4, PIECE_STEPS = 16, PIECE_CHANNELS = 4, PIECE_EVENTS = 80 };

typedef struct piece piece;
typedef void (*piece_build)(piece *p);

/* Where entry i of the reference's tensor lies in ours of `cols` columns, as row * cols + column. Null: in the
 * same place. */
typedef size_t (*piece_map)(const piece *p, size_t i, size_t cols);

typedef enum piece_role {
    PIECE_INPUT,  /* its gradient is compared */
    PIECE_OUTPUT, /* its values are compared, and it gets a cotangent */
    PIECE_VALUE,  /* its values are compared */
    PIECE_KEPT    /* for the test to look at */
} piece_role;

typedef struct piece_tensor {
    char name[64]; /* as the golden file has it, behind "grad." for an input */
    mtan_tensor tensor;
    size_t count; /* entries of the reference's tensor */
    piece_map map;
    piece_role role;
} piece_tensor;

/* One observation; its time is the row `row` among the record's keys. */
typedef struct piece_event {
    int32_t record, row, channel;
    mtan_real value;
} piece_event;

struct piece {
    const char *name;
    const void *argument; /* of the function that builds it */
    mtan_tape tape;
    mtan_batch batch; /* its arrays are those below */
    int32_t order[PIECE_RECORDS], first[PIECE_STEPS + 1], length[PIECE_RECORDS];
    int32_t time0[PIECE_RECORDS + 1], score0[PIECE_RECORDS + 1], cell0[PIECE_RECORDS + 1];
    int32_t query0[PIECE_RECORDS + 1], pair0[PIECE_RECORDS + 1], point0[PIECE_RECORDS + 1];
    int32_t begin[PIECE_RECORDS * (PIECE_CHANNELS + 1)], row[PIECE_EVENTS];
    int32_t cell_row[PIECE_EVENTS], cell_channel[PIECE_EVENTS];
    mtan_real value[PIECE_EVENTS], cell_value[PIECE_EVENTS];
    piece_tensor tensors[PIECE_TENSORS];
    int32_t count;
};

/* ---- for the function that builds ---- */

/* Do the ops run, so that data may be written? Not when counting. */
int piece_runs(const piece *p);

/* Entry i becomes scale * u(name, i). */
void piece_fill(piece *p, const char *name, mtan_tensor x, double scale, piece_map map);

/* A new tensor with a gradient, scale * u("PIECE.name"). The second form is for a view of a tensor that exists. */
mtan_tensor piece_input(piece *p, const char *name, int32_t rows, int32_t cols, double scale, piece_map map);
void piece_input_view(piece *p, const char *name, mtan_tensor x, double scale, piece_map map);

/* A parameter by its state_dict name; a bias has one row. */
mtan_tensor piece_weight(piece *p, const char *name, int32_t rows, int32_t cols, int32_t fan);

/* x is compared as the piece's output `name`; `count` entries by a map of its own, or all. */
void piece_output(piece *p, const char *name, mtan_tensor x, piece_map map);
void piece_output_cells(piece *p, const char *name, mtan_tensor x, size_t count, piece_map map);
/* The same without a cotangent, or not to be compared at all. */
void piece_keep(piece *p, piece_role role, const char *name, mtan_tensor x);

/* The batch: lengths of the records' sequences, falling; or all alike. One sample unless changed afterwards. */
void piece_lengths(piece *p, int32_t records, const int32_t *length);
void piece_sequence(piece *p, int32_t records, int32_t steps);
/* count[b] queries in record b. Call it after the lengths. */
void piece_queries(piece *p, const int32_t *count);
/* The records have points of their own, as many as steps, instead of sharing them. */
void piece_own_points(piece *p);
/* Observations in the order of record and time; keys[b] times in record b. `seen` becomes a tensor with a gradient. */
void piece_events(piece *p, int32_t channels, const int32_t *keys, const piece_event *events, int32_t n);
/* The observations of a full grid (records, keys, channels): values u("PIECE.x"), there where u("PIECE.mask") >=
 * -0.5, the last channel never. */
void piece_grid(piece *p, int32_t keys, int32_t channels);

/* Maps. The reference has (B, steps, cols) or (S, B, steps, cols); ours are rows step-major, samples together. */
size_t piece_by_step(const piece *p, size_t i, size_t cols);
size_t piece_by_step_and_sample(const piece *p, size_t i, size_t cols);

/* ---- for the test ---- */

/* Builds and runs, forward and backward. 1: sizes, guards and status are as they should. */
int piece_run(piece *p, const char *name, piece_build build, const void *argument);
/* guards once more, then frees */
int piece_end(piece *p);

/* Every tensor against golden/<file>, within the limits of golden/README.md. */
int piece_compare(const piece *p, const char *file);
/* n numbers against one tensor of it. */
int piece_compare_array(const piece *p, const char *file, const char *tensor, const mtan_real *got, size_t n);
/* All of the above. */
int piece_golden(const char *file, const char *name, piece_build build, const void *argument);

/* A named tensor, and its values or gradient in the reference's order, in `out`. */
mtan_tensor piece_find(const piece *p, const char *name);
void piece_values(const piece *p, const char *name, mtan_real *out);
void piece_gradient(const piece *p, const char *name, mtan_real *out);
/* n numbers against loops in double: 8 roundings of the norm. */
int piece_near(const char *name, const mtan_real *got, const double *expected, size_t n);
/* Cotangent i of an output. */
double piece_cotangent(const piece *p, const char *name, size_t i);
/* u("PIECE.name", i) */
double piece_u(const piece *p, const char *name, size_t i);

#endif
