/* Common parts of the recurrent classifiers: the rows of a batch, a run over them in either direction of time, and the
 * classes at its end or at the queries.
 *
 * The reverse direction mirrors the record in time: the same rows from the last to the first, with the same gaps. Rows
 * stay in place; only their order of processing changes. */
#ifndef MTAN_TOOLS_BASELINES_SEQUENCE_H
#define MTAN_TOOLS_BASELINES_SEQUENCE_H

#include "ops.h"

typedef struct dense_rows {
    mtan_tensor x, mask, time; /* (R, D), (R, D), (R, 1), all constants */
} dense_rows;
dense_rows read_rows(const mtan_forward *f);

/* Step i of a run. The last of its rows are those of records that have no row before; they start from zero. */
typedef struct run_step {
    int32_t k;           /* step of the sequence */
    size_t row, before;  /* first row of the step, and of the step before it in the run */
    int32_t rows, known; /* rows of the step; how many of them have a row before */
} run_step;
run_step run_at(const mtan_batch *batch, int32_t i, int32_t reverse);

/* Time since the row before in the order of the run, or to the row after: (R, 1), 0 if there is no such row. */
mtan_tensor gaps_before(const mtan_forward *f, mtan_tensor time, int32_t reverse);
mtan_tensor gaps_after(const mtan_forward *f, mtan_tensor time, int32_t reverse);

/* Is a setting 0 or 1? */
int32_t is_switch(double setting);
/* A class per record or per time, without a latent state; both directions only for a class per time. */
mtan_status check_sequence(const mtan_config *c, double bidirectional);
/* Logits of the states (R, N), or (R, 2N) with both directions; the head's parameters start at `index`. */
mtan_tensor classify_states(const mtan_forward *f, mtan_tensor states, int32_t index);

/* x (R, D) and rest (R, C), side by side, times the D + C columns of a recurrent layer's input weight, plus its bias:
 * the gates. */
mtan_tensor apply_input(const mtan_forward *f, int32_t weight, int32_t bias, mtan_tensor x, mtan_tensor rest);

/* "rec.NAME" or "rec.reverse.NAME", in text of MTAN_NAME_SIZE. */
const char *name_in_direction(char *text, const char *name, int32_t reverse);

#endif
