// The header as C++ sees it: a model made, run and asked for its probabilities through the C library.
#include "../../mtan.h"

#include <cstdio>
#include <vector>

static bool fine(mtan_status status) {
    if (status != MTAN_OK) std::printf("%s\n", mtan_status_message(status));
    return status == MTAN_OK;
}

int main() {
    const mtan_event events[] = {{0.1f, 0, 1.0f}, {0.5f, 1, -1.0f}};
    mtan_record record = mtan_record();
    record.events = events;
    record.n_events = 2;
    const mtan_bounds bounds = {1, 2, 2};

    mtan_config config;
    if (!fine(mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 2, 2))) return 1;
    std::vector<mtan_real> weights(mtan_weights_count(&config));
    mtan_model model;
    if (!fine(mtan_weights_init(&config, weights.data(), mtan_weights_count(&config), 1))) return 1;
    if (!fine(mtan_model_init(&model, &config, weights.data(), mtan_weights_count(&config)))) return 1;

    std::size_t bytes = 0;
    if (!fine(mtan_predictor_size(&model, &bounds, &bytes))) return 1;
    std::vector<unsigned char> memory(bytes);
    mtan_predictor predictor;
    mtan_real p[2] = {0, 0};
    if (!fine(mtan_predictor_init(&predictor, &model, &bounds, memory.data(), memory.size()))) return 1;
    if (!fine(mtan_predictor_classify(&predictor, &record, 1, p))) return 1;
    const mtan_real sum = p[0] + p[1];
    if (!(sum > 0.999f && sum < 1.001f)) return 1; // NaN is neither
    return 0;
}
