/* What the examples of all boards share: a model, its self-test, and a record through mtan_small_classify. It prints nothing: how to
 * do that is the board's affair. C99 and C++.
 *
 * model.h is what `mtan export` wrote; its first comment says what it needs. It was trained on the made-up patients of
 * tools/demo/example.sh, who have three channels: 0 pressure, 1 pulse, 2 temperature. Replace it by your own. */
#ifndef CLASSIFY_H
#define CLASSIFY_H

#include <string.h>

#include "mtan.h"
#include "model.h"

static unsigned char classify_memory[model_memory];

static inline mtan_status classify_record(const mtan_record *record, mtan_real probability[model_outputs]) {
    mtan_model model;
    const mtan_status status = model_open(&model);
    return status == MTAN_OK ? model_predict(&model, record, classify_memory, probability) : status;
}

/* The record that came with the model: 1 when it gives here what it gave where the model was exported. */
static inline int classify_self_test(void) {
    const mtan_record record = model_test_record();
    mtan_real p[model_outputs];
    if (classify_record(&record, p) != MTAN_OK) return 0;
    for (int i = 0; i < model_test_output_count; i++)
        if (!(p[i] - model_test_output[i] <= 1e-4f && model_test_output[i] - p[i] <= 1e-4f)) return 0;
    return 1;
}

enum { CLASSIFY_MOST = 64 }; /* observations of a record */

/* Observations as measured, in any order: hour of the day, channel, value. */
static inline mtan_status classify_observations(const mtan_observation *raw, int32_t n,
                                                mtan_real probability[model_outputs]) {
    static mtan_event events[CLASSIFY_MOST + model_channels];
    mtan_prepared found;
    mtan_record record;
    const mtan_status status = model_prepare(raw, n, events, CLASSIFY_MOST + model_channels, &found);
    if (status != MTAN_OK) return status;
    memset(&record, 0, sizeof record);
    record.events = events;
    record.n_events = found.events;
    return classify_record(&record, probability);
}

/* A patient whose pulse rises and whose pressure falls in the afternoon. */
static inline mtan_status classify_patient(mtan_real probability[model_outputs]) {
    static const mtan_observation raw[] = {{9, 1, 82},   {9.5, 0, 118}, {13, 2, 37.3}, {17.5, 1, 93},
                                           {19, 0, 104}, {21, 2, 38.0}, {22.5, 1, 99}};
    return classify_observations(raw, (int32_t)(sizeof raw / sizeof raw[0]), probability);
}

/* In thousandths, for consoles that print whole numbers alone. */
static inline int classify_thousandths(mtan_real p) {
    return (int)(p * 1000 + 0.5f);
}

#endif
