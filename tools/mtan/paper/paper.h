/* The paper's five tables: the numbers that stand in them, and the runs that give ours.
 *
 *     1  interpolation of PhysioNet            4  IP-Nets' kernel against the learned one
 *     2  classification, three data sets       5  interpolation of the synthetic set
 *     3  positional encoding against the learned embedding
 *
 * Tables 3 and 4 repeat numbers of table 2: such a row has its home there. */
#ifndef MTAN_TOOLS_PAPER_H
#define MTAN_TOOLS_PAPER_H

#include "../../data/array.h"
#include "../../../mtan.h"

enum { PAPER_TABLES = 5, PAPER_PRESETS = MTAN_BEST + 1 };
extern const char *const paper_titles[PAPER_TABLES + 1]; /* from 1 */

/* A number of a table. Metrics: auc, accuracy; mse-70, mse-all-70: mean squared error of the points held out and of all points when
 * 70 % of the times are shown; reconstruction and interpolation of the synthetic set: of the points shown, and of the true
 * curve. */
typedef struct paper_cell {
    int table;
    const char *row, *data, *metric;
    double value, spread; /* the paper's; NaN: it has none */
} paper_cell;
extern const paper_cell paper_cells[]; /* ends with table 0 */

typedef struct paper_row {
    int table;
    const char *row, *title;
    int home; /* the table of its runs, and their row there */
    const char *home_row;
    double minutes; /* per epoch, as the paper has it for PhysioNet; NaN: none */
} paper_row;
const paper_row *paper_row_of(int table, const char *row); /* NULL: no such */
/* The rows of table 2 on a data set, one after the other: the configuration's name, and the minutes that the paper has for an epoch of
 * it, NaN but on PhysioNet. 0: no more; none for a data set that the table does not have. */
enum { PAPER_NAME = 48 };
int paper_timed(int i, const char *data, char name[PAPER_NAME], double *minutes);

/* Why a number of ours is known to disagree with the paper's, or what was tried: note i of those that a number has; NULL: no more. */
const char *paper_note(const paper_cell *cell, int i);
extern const char paper_unexplained[]; /* in place of a note */

/* Words for a block of lines: "PhysioNet, AUC", a remark on all of it or NULL, a factor on what is printed, and decimals. */
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
    char metrics[128]; /* that it gives, between blanks */
} paper_run;

/* The data set that a run's or a cell's `data` is read from: that of activity-people, Human Activity split by person, is activity. */
const char *paper_data_set(const char *data);
/* Does the paper have no number of it? Then only rows with runs are shown. */
int paper_data_has_none(const char *data);

/* All runs of all tables for one seed, appended to an stb_ds array. */
void paper_runs(paper_run **list, int64_t seed);
/* Which run a model is of that was trained under this name and preset with these options (plan_describe), of those for its seed; -1:
 * none. Options that make no other row of a table may be anything. */
ptrdiff_t paper_run_of(const paper_run *list, const char *name, mtan_preset preset, const char *options);
const char *paper_preset(mtan_preset preset);
extern const char paper_rerun
    []; /* in place of a preset: the published code itself, run here; its lines of results are written by hand */
/* Is a row trained by a preset? What goes beyond the paper is mTAN's alone: not of the baselines, nor of what is compared with it. */
int paper_row_has(const char *row, mtan_preset preset);
/* As the results file keeps it: without data, folder and threads. */
void paper_command(const paper_run *r, char *text, size_t size);

#endif
