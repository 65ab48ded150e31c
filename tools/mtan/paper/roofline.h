/* How long a GPU would take for work that was counted (trace.h): a roofline, with a few assumptions. */
#ifndef MTAN_TOOLS_ROOFLINE_H
#define MTAN_TOOLS_ROOFLINE_H

#include "../../../platform/cuda/mtan_cuda.h"

/* Work of one kernel. Numbers stay far below 2^53, so sums are exact. */
typedef struct roofline_entry {
    const char *name; /* as in platform/cuda/arguments.h */
    double launches;
    double flops;
    double busy;          /* flops that ROOFLINE_UNITS multiprocessors could have done meanwhile: idle ones count too */
    double turns;         /* steps of GRUs, which come one after the other; more than once where not all rows fit */
    double read, written; /* bytes of the GPU's memory */
} roofline_entry;

enum { ROOFLINE_ENTRIES = MTAN_CUDA_MOST_KERNELS + 1, ROOFLINE_UNITS = 24 };

typedef struct roofline {
    roofline_entry entry[ROOFLINE_ENTRIES]; /* up to a NULL name */
    double sent, fetched;                   /* bytes, while nothing else happens */
    double ahead;                           /* bytes sent while kernels run */
    double copies, waits;                   /* copies of either kind but those ahead; times that the host waits */
} roofline;

roofline_entry roofline_sum(const roofline *r);

typedef struct roofline_card {
    const char *name, *chip;
    double flops;     /* per second: cores x boost clock x 2 */
    double bandwidth; /* bytes per second */
} roofline_card;

extern const roofline_card roofline_cards[]; /* up to a NULL name */

/* What a prediction assumes beside the card's two numbers. Nothing of this was measured on a GPU. */
typedef struct roofline_assumption {
    const char *name;
    double value;
    const char *help;
} roofline_assumption;
extern const roofline_assumption roofline_assumptions[]; /* up to a NULL name */

/* launches x launch + the larger of (turns x turn + busy / reached flops) and bytes / reached bandwidth */
double roofline_seconds(const roofline_entry *e, const roofline_card *card);
double roofline_copy_seconds(const roofline *r); /* what goes ahead costs nothing */
double roofline_total(const roofline *r, const roofline_card *card);

#endif
