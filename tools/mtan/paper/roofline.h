/* Predicts a GPU's time for work that was counted (trace.h): a roofline model with a few assumptions. */
#ifndef MTAN_TOOLS_ROOFLINE_H
#define MTAN_TOOLS_ROOFLINE_H

#include "../../../platform/cuda/mtan_cuda.h"

/* Work of one kernel. Numbers stay far below 2^53, so sums are exact. */
typedef struct roofline_entry {
    const char *name; /* as in platform/cuda/arguments.h */
    double launches;
    double flops;
    double busy;          /* flops that ROOFLINE_UNITS multiprocessors could do in that time, with the idle ones */
    double turns;         /* sequential steps of GRUs, times the number of rounds if not all rows fit at once */
    double read, written; /* bytes of the GPU's memory */
} roofline_entry;

enum { ROOFLINE_ENTRIES = MTAN_CUDA_MOST_KERNELS + 1, ROOFLINE_UNITS = 24 };

typedef struct roofline {
    roofline_entry entry[ROOFLINE_ENTRIES]; /* ends with a NULL name */
    double sent, fetched;                   /* bytes, with the GPU idle meanwhile */
    double ahead;                           /* bytes sent while kernels run */
    double copies, waits;                   /* copies in either direction, except those counted in `ahead`; times that
                                             * the host waits */
} roofline;

roofline_entry roofline_sum(const roofline *r);

typedef struct roofline_card {
    const char *name, *chip;
    double flops;     /* per second: cores x boost clock x 2 */
    double bandwidth; /* bytes per second */
} roofline_card;

extern const roofline_card roofline_cards[]; /* ends with a NULL name */

/* The assumptions of a prediction, in addition to the card's two numbers. None of them was measured on a GPU. */
typedef struct roofline_assumption {
    const char *name;
    double value;
    const char *help;
} roofline_assumption;
extern const roofline_assumption roofline_assumptions[]; /* ends with a NULL name */

/* launches x launch + the larger of (turns x turn + busy / reached flops) and bytes / reached bandwidth */
double roofline_seconds(const roofline_entry *e, const roofline_card *card);
double roofline_copy_seconds(const roofline *r); /* bytes sent ahead cost nothing */
double roofline_total(const roofline *r, const roofline_card *card);

#endif
