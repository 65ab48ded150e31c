/* What somebody writes who uses the installed library (tools/check/installed.sh): the version, the fastest table of kernels, and a
 * prediction by it. The weights are random ones, so the numbers say nothing but have to be the same however it was linked. */
#include <mtan.h>
#include <mtan_simd.h>

#include <stdio.h>
#include <string.h>

enum { WEIGHTS = 300000, BYTES = 1200000 };
static mtan_real weights[WEIGHTS];
static unsigned char memory[BYTES];

int main(void) {
    mtan_event events[] = {{0.00f, 0, 0.7f}, {0.25f, 2, -0.1f}, {0.30f, 0, 0.9f}};
    mtan_record record = {0};
    mtan_bounds most = {1, 3, 3};
    mtan_config config;
    mtan_model model;
    mtan_predictor run;
    mtan_real p[2];
    record.events = events, record.n_events = 3;
    if (strcmp(mtan_version(), MTAN_VERSION) != 0) return 1;
    if (mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 3, 2)) return 2;
    if (mtan_weights_init(&config, weights, WEIGHTS, 42)) return 3;
    if (mtan_model_init(&model, &config, weights, WEIGHTS)) return 4;
    model.backend = mtan_backend_best();
    if (mtan_predictor_init(&run, &model, &most, memory, sizeof memory)) return 5;
    if (mtan_predictor_classify(&run, &record, 1, p)) return 6;
    printf("mtan %s, %s: %.9g\n", mtan_version(), mtan_backend_name(model.backend), (double)p[1]);
    return 0;
}
