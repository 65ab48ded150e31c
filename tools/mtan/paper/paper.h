/* The paper's five tables: its numbers, and the runs that produce ours.
 *
 *     1  interpolation of PhysioNet            4  IP-Nets' kernel against the learned one
 *     2  classification, three data sets       5  interpolation of the synthetic set
 *     3  positional encoding against the learned embedding
 *
 * Tables 3 and 4 repeat numbers of table 2; their rows refer to the rows there. */
#ifndef MTAN_TOOLS_PAPER_H
#define MTAN_TOOLS_PAPER_H

#include "../../data/array.h"
#include "../../../mtan.h"

enum { PAPER_TABLES = 5, PAPER_PRESETS = MTAN_BEST + 1 };
extern const char *const paper_titles[PAPER_TABLES + 1]; /* from 1 */

/* A number of a table. Metrics: auc and accuracy; mse-70 and mse-all-70, the mean squared error of the held-out points
 * and of all points when 70 % of the times are shown; reconstruction and interpolation of the synthetic set, the errors
 * at the points shown and over the true curve. */
typedef struct paper_cell {
    int table;
    const char *row, *data, *metric;
    double value, spread; /* the paper's; NaN: not in the paper */
} paper_cell;
extern const paper_cell paper_cells[]; /* ends with table 0 */

typedef struct paper_row {
    int table;
    const char *row, *title;
    int home; /* the table that has its runs, and the row there */
    const char *home_row;
    double minutes; /* per epoch on PhysioNet, in the paper; NaN: not in the paper */
} paper_row;
const paper_row *paper_row_of(int table, const char *row); /* NULL: no such row */
/* The rows of table 2 on a data set, one per call: the configuration's name, and the paper's minutes per epoch, NaN
 * except on PhysioNet. 0: no more rows; a data set that is not in the table has none. */
enum { PAPER_NAME = 48 };
int paper_timed(int i, const char *data, char name[PAPER_NAME], double *minutes);

/* Why our number is known to disagree with the paper's, or what was tried: note i of a number; NULL: no more. */
const char *paper_note(const paper_cell *cell, int i);
extern const char paper_unexplained[]; /* in place of a note */

/* Describes a block of lines: a title such as "PhysioNet, AUC", a remark on the whole block or NULL, the factor on
 * printed values, and their decimals. */
typedef struct paper_block {
    const char *title, *note;
    double factor;
    int decimals;
} paper_block;
paper_block paper_block_of(int table, const char *data, const char *metric);

/* One run: `mtan train NAME --preset PRESET --seed SEED OPTIONS`. */
typedef struct paper_run {
    int table;
    char row[32], data[16], name[48], options[64];
    mtan_preset preset;
    int64_t seed;
    char metrics[128]; /* those that it gives, between blanks */
} paper_run;

/* The name of the data set behind a run's or a cell's `data`: activity for activity-people, which is Human Activity
 * split by person. */
const char *paper_data_set(const char *data);
/* Does the paper have no numbers of this data set? Then only rows with runs are shown. */
int paper_data_has_none(const char *data);

/* All runs of all tables for one seed, appended to an stb_ds array. */
void paper_runs(paper_run **list, int64_t seed);
/* Index of the run that a model belongs to, among the runs for its seed, from the model's name, preset and options
 * (plan_describe); -1: none. Options that do not distinguish rows of a table may be anything. */
ptrdiff_t paper_run_of(const paper_run *list, const char *name, mtan_preset preset, const char *options);
const char *paper_preset(mtan_preset preset);
extern const char paper_rerun
    []; /* in place of a preset: the published code itself, run here; these lines of results are written by hand */
/* Is a row trained with a preset? The preset best goes beyond the paper and is for mTAN's own rows only, not for
 * baselines and variants. */
int paper_row_has(const char *row, mtan_preset preset);
/* The run's command for the results file: without data, folder and threads. */
void paper_command(const paper_run *r, char *text, size_t size);

#endif
