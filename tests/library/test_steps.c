/* Parts of a training step whose results can be told beforehand: what dropout drops and leaves alone, what clipping
 * makes of a gradient that is too large to be squared, what the cross-entropy is divided by; and what neither noise
 * nor bounds may change. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_model.h"

static int find_param(const mtan_config *c, const char *name, mtan_param *p) {
    for (int32_t i = 0; i < mtan_param_count(c); i++)
        if (mtan_param_at(c, i, p) == MTAN_OK && strcmp(p->name, name) == 0) return 1;
    return 0;
}

/* One record: the gradient of the head's first layer is the product of an error, 0 for units that were dropped, with
 * the state of the GRU, which is never 0. A row of it is 0 as a whole or nowhere. */
TEST a_head_with_hidden_layers_reads_all_of_its_input(tiny_kind kind) {
    int moved = 0, still = 0;
    mtan_train_config config;
    mtan_report report;
    mtan_param w;
    tiny_model s;
    tiny_open(&s, kind, 8);
    ASSERT(s.config.head_hidden > 0 && find_param(&s.config, "rec.classifier.0.weight", &w));
    ASSERT(w.rows == s.config.head_hidden && w.cols == s.config.enc_hidden);
    mtan_train_config_init(&config);
    config.dropout = 0.5;
    tiny_train(&s, &config);
    for (int32_t b = 0; b < s.n; b++) {
        ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, &s.records[b], 1, 1, &report));
        for (int32_t r = 0; r < w.rows; r++) {
            const mtan_real *row = s.trainer.gradient + w.offset + (size_t)r * (size_t)w.cols;
            for (int32_t c = 0; c < w.cols; c++) ASSERT((row[c] != 0) == (row[0] != 0));
            if (row[0] != 0) moved++;
            else still++;
        }
    }
    ASSERT(moved > 8 && still > 8);
    ASSERT(tiny_close(&s));
    PASS();
}

static int near(mtan_real got, double expected, double limit) { /* NaN is not */
    return fabs((double)got - expected) <= limit;
}

/* Scaled down it is as good as any: one entry of it, so that the update is that of a gradient of length 1. Without
 * clipping its square would be infinite, and is refused. */
TEST clipping_saves_a_gradient_that_cannot_be_squared(void) {
    const mtan_real huge = (mtan_real)1e25;
    if (sizeof(mtan_real) != sizeof(float))
        SKIPm("in double a gradient's norm cannot be found where its square is infinite");
    for (int clips = 0; clips < 2; clips++) {
        mtan_train_config config;
        tiny_model s;
        mtan_real before;
        tiny_open(&s, TINY_ENC, 1);
        mtan_train_config_init(&config);
        config.clip = clips;
        tiny_train(&s, &config);
        memset(s.trainer.gradient, 0, s.count * sizeof *s.trainer.gradient);
        s.trainer.gradient[5] = -huge;
        before = s.weights[5];
        ASSERT_EQ(clips ? MTAN_OK : MTAN_ERR_INPUT, mtan_trainer_update(&s.trainer, 1));
        ASSERT_EQ(clips, (int)s.trainer.step);
        if (clips) {
            ASSERT(near(s.trainer.moment1[5], config.beta1 - 1, 1e-6));
            ASSERT(near(s.trainer.moment2[5], 1 - config.beta2, 1e-8));
            ASSERT(near(s.weights[5] - before, config.lr, 1e-3 * config.lr));
        } else {
            ASSERT(s.weights[5] == before && s.trainer.moment1[5] == 0);
        }
        ASSERT(tiny_close(&s));
    }
    PASS();
}

/* A model without a decoder has one row of logits for a label, however many samples its config names. */
TEST samples_mean_nothing_without_a_decoder(void) {
    mtan_report report[2];
    for (int i = 0; i < 2; i++) {
        mtan_train_config config;
        tiny_model s;
        tiny_open(&s, TINY_ENC, 6);
        s.model.config.samples = i ? 5 : 1;
        mtan_train_config_init(&config);
        tiny_train(&s, &config);
        ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, s.records, s.n, 1, &report[i]));
        ASSERT_EQ(6, (int)report[i].labels);
        ASSERT(tiny_close(&s));
    }
    ASSERT(report[0].ce > 0.1);
    ASSERT(check_same("cross-entropy", &report[1].ce, &report[0].ce, sizeof report[0].ce));
    ASSERT(check_same("loss", &report[1].loss, &report[0].loss, sizeof report[0].loss));
    ASSERT(check_same("gradient's norm", &report[1].gradient_norm, &report[0].gradient_norm, sizeof(double)));
    PASS();
}

/* The posterior and the attention come before the samples: too little noise is a mistake only where it is used. */
TEST the_posterior_needs_no_noise(void) {
    enum { K = 6, Z = 5 };
    static const mtan_real noise[1] = {1};
    mtan_real mean[2][K * Z], weight[K * TINY_TIMES], p[2];
    mtan_record little;
    tiny_model s;
    tiny_open(&s, TINY_FULL, 1);
    ASSERT(s.config.ref_points == K && s.config.latent == Z);
    tiny_predict(&s, 1);
    little = s.records[0];
    little.noise = noise, little.n_noise = 1;
    ASSERT_EQ(MTAN_OK, mtan_predictor_latent(&s.predictor, &s.records[0], mean[0], NULL));
    ASSERT_EQ(MTAN_OK, mtan_predictor_latent(&s.predictor, &little, mean[1], NULL));
    ASSERT(check_same("mean", mean[1], mean[0], sizeof mean[0]));
    ASSERT_EQ(MTAN_OK, mtan_predictor_attention(&s.predictor, &little, 0, 0, weight));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_predictor_classify(&s.predictor, &little, 1, p));
    ASSERT(tiny_close(&s));
    PASS();
}

/* splitmix64's finaliser */
static uint64_t finaliser(uint64_t z) {
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A unit whose word is w is kept while the whole part of dropout 2^32 is w or less: the neighbours of that limit. */
TEST dropout_is_sharp_to_the_last_word(void) {
    const uint64_t stream = finaliser(finaliser(5) ^ 77);
    const uint32_t key[2] = {(uint32_t)stream, (uint32_t)(stream >> 32)};
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t counter[4] = {i / 4, 2, 6, 0x40000000};
        uint32_t words[4];
        mtan_real kept[2];
        mtan_philox(words, counter, key);
        mtan_mask_fill(&kept[0], 1, ((double)words[i % 4] + 0.9999) / 4294967296.0, 5, 6, 77, 2, i);
        mtan_mask_fill(&kept[1], 1, ((double)words[i % 4] + 1) / 4294967296.0, 5, 6, 77, 2, i);
        ASSERT(kept[0] == 1 && kept[1] == 0);
    }
    PASS();
}

/* More reference points than events, and the other way round: what lies where in the workspace changes no bit. */
TEST gradients_do_not_depend_on_the_bounds(tiny_kind kind) {
    static const int32_t most[] = {TINY_EVENTS, 200};
    mtan_real *first = NULL;
    for (int i = 0; i < 2; i++) {
        mtan_train_config config;
        mtan_report report;
        tiny_model s;
        tiny_open(&s, kind, 3);
        s.model.config.ref_points = 90; /* no parameter has this size */
        s.bounds.events = s.bounds.times = most[i];
        mtan_train_config_init(&config);
        tiny_train(&s, &config);
        ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, s.records, s.n, 1, &report));
        if (i == 0) first = tiny_copy(s.trainer.gradient, s.count);
        else ASSERT(check_same("gradient", s.trainer.gradient, first, s.count * sizeof *first));
        ASSERT(tiny_close(&s));
    }
    free(first);
    PASS();
}

SUITE(steps_suite) {
    static const tiny_kind enc[] = {TINY_ENC, TINY_RBF_ENC, TINY_RNN3_ENC};
    for (size_t i = 0; i < sizeof enc / sizeof enc[0]; i++) {
        greatest_set_test_suffix(tiny_names[enc[i]]);
        RUN_TESTp(a_head_with_hidden_layers_reads_all_of_its_input, enc[i]);
    }
    RUN_TEST(dropout_is_sharp_to_the_last_word);
    for (tiny_kind kind = 0; kind < TINY_KINDS; kind++) {
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TESTp(gradients_do_not_depend_on_the_bounds, kind);
    }
    RUN_TEST(clipping_saves_a_gradient_that_cannot_be_squared);
    RUN_TEST(samples_mean_nothing_without_a_decoder);
    RUN_TEST(the_posterior_needs_no_noise);
}
