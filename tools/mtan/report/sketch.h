/* A model's output for single records, as plain arrays in the data's units: curves with samples of the posterior,
 * and attention. */
#ifndef MTAN_TOOLS_SKETCH_H
#define MTAN_TOOLS_SKETCH_H

#include "../model/session.h"
#include "report.h"

enum {
    SKETCH_GRID = 200,   /* points of a curve */
    SKETCH_SAMPLES = 100 /* as in the paper's figure */
};

/* A separate predictor for one record at a time. */
typedef struct artist {
    mtan_model model;
    mtan_predictor predictor;
    mtan_bounds bounds;
    void *memory;
} artist;
/* samples: of the latent state. 1, or 0 with a message printed; artist_end is due after both. */
int artist_start(artist *a, const session *s, int32_t samples);
void artist_end(artist *a);

/* Whether the model has curves: with a label per time the decoder only feeds the classifier (Q40). */
int interpolates(const mtan_config *m);

/* The curves of a record on an even grid over its own times: (SKETCH_GRID, D) mean and standard deviation. */
typedef struct sketch {
    mtan_real times[SKETCH_GRID], *mean, *sd;
    holdout h;
} sketch;
int sketch_make(sketch *k, artist *a, const session *s, int32_t position); /* sketch_free is due, whatever it returns */
void sketch_free(sketch *k);

/* One channel for a page. Its pointers belong to the session or to `owned`, an stb_ds array of blocks to free, which it
 * extends. */
report_panel sketch_panel(void ***owned, const sketch *k, const session *s, int32_t position, int32_t channel);
/* times 0: the model has no attention over time. */
report_attention sketch_attention(void ***owned, artist *a, const session *s, int32_t position, int32_t channel);

#endif
