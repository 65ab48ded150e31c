/* A piece: a few ops on a tape of their own, built by hand, for the tests of ops and blocks.
 *
 * A test writes one function that builds the piece. piece_run calls it three times: without a workspace, to count; on a
 * workspace one cache line too small, which must be refused; and on one of exactly the counted size between guards.
 * Then the cotangents are written to the outputs' gradients, and the tape runs backwards. Inputs, weights and
 * cotangents follow the rule of golden/README.md, so a piece can be compared with golden/ops or golden/blocks, or with
 * loops in the test. */
#ifndef MTAN_TESTS_TAPE_TEST_H
#define MTAN_TESTS_TAPE_TEST_H

#include "check.h"

enum { PIECE_TENSORS = 32, PIECE_RECORDS = 4, PIECE_STEPS = 16, PIECE_CHANNELS = 4, PIECE_EVENTS = 80 };

typedef struct piece piece;
typedef void (*piece_build)(piece *p);

/* The position in our tensor of `cols` columns, as row * cols + column, of entry i in the reference's tensor. Null: the
 * same position. */
typedef size_t (*piece_map)(const piece *p, size_t i, size_t cols);

typedef enum piece_role {
    PIECE_INPUT,  /* its gradient is compared */
    PIECE_OUTPUT, /* its values are compared, and it gets a cotangent */
    PIECE_VALUE,  /* its values are compared */
    PIECE_KEPT    /* for the test to look at */
} piece_role;

typedef struct piece_tensor {
    char name[64]; /* in the golden file, after "grad." for an input */
    mtan_tensor tensor;
    size_t count; /* number of entries in the reference's tensor */
    piece_map map;
    piece_role role;
} piece_tensor;

/* One observation; `row` is the index of its time among the record's keys. */
typedef struct piece_event {
    int32_t record, row, channel;
    mtan_real value;
} piece_event;

struct piece {
    const char *name;
    const void *argument; /* for the function that builds it */
    mtan_tape tape;
    mtan_batch batch; /* its pointers are the arrays below */
    int32_t order[PIECE_RECORDS], first[PIECE_STEPS + 1], length[PIECE_RECORDS];
    int32_t time0[PIECE_RECORDS + 1], score0[PIECE_RECORDS + 1], cell0[PIECE_RECORDS + 1];
    int32_t query0[PIECE_RECORDS + 1], pair0[PIECE_RECORDS + 1], point0[PIECE_RECORDS + 1];
    int32_t begin[PIECE_RECORDS * (PIECE_CHANNELS + 1)], row[PIECE_EVENTS];
    int32_t cell_row[PIECE_EVENTS], cell_channel[PIECE_EVENTS];
    mtan_real value[PIECE_EVENTS], cell_value[PIECE_EVENTS];
    piece_tensor tensors[PIECE_TENSORS];
    int32_t count;
};

/* ---- for the building function ---- */

/* Do the ops run, so that data may be written? Not while counting. */
int piece_runs(const piece *p);

/* Sets entry i to scale * u(name, i). */
void piece_fill(piece *p, const char *name, mtan_tensor x, double scale, piece_map map);

/* A new tensor with a gradient, scale * u("PIECE.name"). The second form is for a view of an existing tensor. */
mtan_tensor piece_input(piece *p, const char *name, int32_t rows, int32_t cols, double scale, piece_map map);
void piece_input_view(piece *p, const char *name, mtan_tensor x, double scale, piece_map map);

/* A parameter by its state_dict name; a bias has one row. */
mtan_tensor piece_weight(piece *p, const char *name, int32_t rows, int32_t cols, int32_t fan);

/* Registers x as the piece's output `name`; compares `count` entries by its own map, or all. */
void piece_output(piece *p, const char *name, mtan_tensor x, piece_map map);
void piece_output_cells(piece *p, const char *name, mtan_tensor x, size_t count, piece_map map);
/* The same without a cotangent, or without a comparison. */
void piece_keep(piece *p, piece_role role, const char *name, mtan_tensor x);

/* The batch: lengths of the records' sequences, descending; or all equal. One sample unless changed afterwards. */
void piece_lengths(piece *p, int32_t records, const int32_t *length);
void piece_sequence(piece *p, int32_t records, int32_t steps);
/* count[b] queries in record b. Call it after the lengths. */
void piece_queries(piece *p, const int32_t *count);
/* The records have their own points, as many as steps, instead of shared ones. */
void piece_own_points(piece *p);
/* Observations ordered by record and time; keys[b] times in record b. `seen` becomes a tensor with a gradient. */
void piece_events(piece *p, int32_t channels, const int32_t *keys, const piece_event *events, int32_t n);
/* The observations of a full grid (records, keys, channels): values u("PIECE.x"), present where u("PIECE.mask") >=
 * -0.5; the last channel never. */
void piece_grid(piece *p, int32_t keys, int32_t channels);

/* Maps. The reference has (B, steps, cols) or (S, B, steps, cols); ours has step-major rows, with the samples
 * together. */
size_t piece_by_step(const piece *p, size_t i, size_t cols);
size_t piece_by_step_and_sample(const piece *p, size_t i, size_t cols);

/* ---- for the test ---- */

/* Builds and runs, forward and backward. Returns 1 if sizes, guards and status are right. */
int piece_run(piece *p, const char *name, piece_build build, const void *argument);
/* checks the guards again, then frees */
int piece_end(piece *p);

/* Compares every tensor with golden/<file>, within the limits of golden/README.md. */
int piece_compare(const piece *p, const char *file);
/* Compares n numbers with one tensor of that file. */
int piece_compare_array(const piece *p, const char *file, const char *tensor, const mtan_real *got, size_t n);
/* All of the above. */
int piece_golden(const char *file, const char *name, piece_build build, const void *argument);

/* A named tensor, and its values or gradient in the reference's order, in `out`. */
mtan_tensor piece_find(const piece *p, const char *name);
void piece_values(const piece *p, const char *name, mtan_real *out);
void piece_gradient(const piece *p, const char *name, mtan_real *out);
/* Compares n numbers with loops in double: 8 roundings of the norm. */
int piece_near(const char *name, const mtan_real *got, const double *expected, size_t n);
/* Cotangent i of an output. */
double piece_cotangent(const piece *p, const char *name, size_t i);
/* u("PIECE.name", i) */
double piece_u(const piece *p, const char *name, size_t i);

#endif
