/* What training costs on a GPU, counted instead of run: a backend with a device whose kernels compute nothing and add
 * up how much work they were given. Everything the library does it does through kernels, so a training step on this
 * backend names all of a step's work in the time it takes to lay a batch out. From the counts follows a prediction for
 * a card.
 *
 * A launch is a launch of platform/cuda/backend.c, with its tiles and splits and without cuBLAS; every operand is read
 * or written once per launch, in float. Multiplications and additions count one each, a function (exp, sin, tanh, ...)
 * 20, a random normal 60.
 *
 * The entries of a backend know no context: there is one counter in the program, and one thread at a time may count. */
#ifndef MTAN_TOOLS_ROOFLINE_H
#define MTAN_TOOLS_ROOFLINE_H

#include "../../../mtan.h"

/* Work of one kind of kernel. Numbers stay far below 2^53, so sums are exact. */
typedef struct roofline_entry {
    const char *name; /* as in mtan_backend; those of mtan_device that do the same for a batch are counted with them */
    double calls, launches;
    double flops;
    double busy;          /* flops that ROOFLINE_UNITS multiprocessors could have done meanwhile: idle ones count too */
    double turns;         /* steps of GRUs, which come one after the other; more than once where not all rows fit */
    double read, written; /* bytes of the GPU's memory */
} roofline_entry;

enum { ROOFLINE_ENTRIES = 64, ROOFLINE_UNITS = 24 };

typedef struct roofline {
    roofline_entry entry[ROOFLINE_ENTRIES]; /* up to a NULL name */
    double sent, fetched;                   /* bytes, while nothing else happens */
    double ahead;                           /* bytes sent while kernels run */
    double copies, waits;                   /* copies of either kind but those ahead; times that the host waits */
} roofline;

/* Gives zeros where something is fetched, so losses and gradient norms are 0; weights stay as they are. */
extern const mtan_backend roofline_backend;

void roofline_reset(void);
void roofline_read(roofline *r); /* what was counted since the reset */
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
