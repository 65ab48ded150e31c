/* Every baseline in every form that it accepts (with or without a latent state, task, preset, directions), small, with
 * weights moved off their initial values and random records, for the tests of the baselines. */
#ifndef MTAN_TESTS_BASELINE_CASE_H
#define MTAN_TESTS_BASELINE_CASE_H

#include "../../tools/baselines/baselines.h"
#include "small.h"

enum { BASELINE_CHANNELS = 3, BASELINE_RECORDS = 9, BASELINE_EVENTS = 12, BASELINE_TIMES = 14 };

typedef struct {
    char name[96]; /* "gru-d time faithful bidirectional" */
    mtan_config config;
    mtan_model model;
    mtan_real *weights; /* (count) */
    size_t count;
    mtan_bounds bounds;
    small_set set; /* within the bounds, queries included; some records are empty */
} baseline_case;

/* Opens form number `index` of all forms of all baselines; 0 past the last. baseline_form only returns its settings. */
int baseline_form(mtan_config *config, char *name, size_t size, int index);
int baseline_open(baseline_case *c, int index, int32_t records, int largest);
/* The same with one channel and every size 1, so that matrices are single columns. */
int baseline_open_thin(baseline_case *c, int index, int32_t records);
int baseline_close(baseline_case *c); /* 1: the guards are intact */

/* A setting of the architecture; `otherwise` if it has no setting of that name. */
double baseline_setting(const mtan_config *config, const char *name, double otherwise);

#endif
