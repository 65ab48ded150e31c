/* Recipes: mTAN's against the published code's commands and settings, the baselines' for what every model must have. */
#include <greatest.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "published.h"
#include "../../tools/baselines/baselines.h"
#include "../../tools/mtan/model/data_sets.h"
#include "../../tools/mtan/model/plan.h"
#include "../../tools/mtan/model/recipes.h"

/* ---- mTAN ---- */

TEST recipes_are_the_references_commands(void) {
    static const struct {
        const char *name;
        int batch, hidden, latent, points, samples, epochs, anneal;
        double lr, alpha, low, high;
    } rows[] = {{"toy-interp", 128, 32, 1, 20, 5, 5000, 1, 1e-4, 0, 1, 1},
                {"physionet-interp", 32, 64, 16, 64, 5, 500, 1, 1e-3, 0, 0.5, 0.9},
                {"physionet-full", 50, 256, 20, 128, 1, 300, 1, 1e-4, 100, 1, 1},
                {"physionet-enc", 128, 128, 0, 128, 1, 200, 0, 1e-4, 0, 1, 1},
                {"mimic3-full", 128, 256, 128, 128, 1, 300, 0, 1e-4, 5, 1, 1},
                {"mimic3-enc", 256, 256, 0, 128, 1, 200, 0, 1e-4, 0, 1, 1},
                {"activity-enc", 256, 512, 0, 0, 1, 1000, 0, 1e-3, 0, 1, 1}};
    char name[RECIPE_NAME];
    recipe r;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ASSERT(recipe_named(&r, rows[i].name, MTAN_FAITHFUL));
        ASSERT_STR_EQ(rows[i].name, recipe_name((int)i, name));
        ASSERTm(rows[i].name, r.batch == rows[i].batch && r.epochs == rows[i].epochs && r.lr == rows[i].lr);
        ASSERTm(rows[i].name, r.optimizer == MTAN_ADAM && r.decay == 1);
        ASSERTm(rows[i].name, r.sample_low == rows[i].low && r.sample_high == rows[i].high);
        ASSERTm(rows[i].name, r.config.enc_hidden == rows[i].hidden && r.config.samples == rows[i].samples);
        ASSERTm(rows[i].name, !rows[i].latent || r.config.latent == rows[i].latent); /* 0: the model has none */
        ASSERTm(rows[i].name, !rows[i].points || r.config.ref_points == rows[i].points);
        ASSERTm(rows[i].name, r.config.kind == MTAN_ENC || (r.config.kl_anneal == rows[i].anneal && r.config.norm));
        ASSERTm(rows[i].name, rows[i].alpha == 0 || r.config.alpha == rows[i].alpha);
        ASSERTm(rows[i].name, r.config.embed == 128 && r.config.enc_heads == 1 && r.config.dec_hidden == 50);
    }
    PASS();
}

/* What the published code's own files say of a setting. */
TEST settings_are_the_references(const char *name) {
    char path[64], key[64], expected[64], text[64];
    int compared = 0;
    size_t bytes = 0;
    mtan_file file;
    recipe r;
    snprintf(path, sizeof path, "%s.safetensors", name);
    void *blob = slurp_golden(path, &bytes);
    ASSERT(blob && mtan_file_open(&file, blob, bytes) == MTAN_OK);
    ASSERT(recipe_named(&r, name, MTAN_FAITHFUL));
    for (int32_t i = 0; mtan_config_key(i); i++) {
        snprintf(key, sizeof key, "mtan.%s", mtan_config_key(i));
        if (mtan_file_metadata(&file, key, expected, sizeof expected, NULL) != MTAN_OK) continue;
        ASSERT_EQ(MTAN_OK, mtan_config_get(&r.config, mtan_config_key(i), text, sizeof text));
        ASSERT_STR_EQ(expected, text);
        compared++;
    }
    ASSERT(compared > 10);
    ASSERT(guard_free(blob));
    PASS();
}

TEST a_preset_changes_the_loss(void) {
    recipe r;
    ASSERT(recipe_named(&r, "physionet-full", MTAN_CORRECT));
    ASSERT(r.config.noise_std == 0.1 && r.config.bound == MTAN_BOUND_ELBO);
    ASSERT(recipe_named(&r, "physionet-full", MTAN_FAITHFUL));
    ASSERT(r.config.noise_std == 0.01 && r.config.bound == MTAN_BOUND_FAITHFUL);
    PASS();
}

/* ---- all ---- */

TEST every_recipe_is_a_model(void) {
    char name[RECIPE_NAME], list[256];
    int models = 0, n = 0, expected = RECIPES_OF_MTAN;
    while (baselines[models]) models++;
    for (; recipe_name(n, name); n++)
        for (int preset = MTAN_FAITHFUL; preset <= MTAN_CORRECT; preset++) {
            recipe r;
            ASSERT(recipe_named(&r, name, (mtan_preset)preset));
            ASSERT_EQm(name, MTAN_OK, mtan_config_check(&r.config));
            ASSERT_EQm(name, n < RECIPES_OF_MTAN, !r.config.architecture);
            ASSERT(r.batch > 0 && r.epochs > 0 && r.lr > 0 && r.decay > 0 && r.decay <= 1);
            ASSERT(r.sample_low > 0 && r.sample_low <= r.sample_high && r.sample_high <= 1);
            ASSERT_EQ(preset == MTAN_FAITHFUL ? MTAN_BOUND_FAITHFUL : MTAN_BOUND_ELBO, r.config.bound);
        }
    for (const data_set *d = data_sets; d->name; d++) {
        if (d->own) continue;
        expected += d->classify == MTAN_CLASSIFY_NONE ? 0 : models;
        expected += d->classify == MTAN_CLASSIFY_TIME ? 0 : 3; /* interpolation by those with a latent state */
    }
    ASSERT_EQ_FMT(expected, n, "%d");
    ASSERT(!recipe_name(-1, name) && !recipe_name(n + 1, name) && !recipe_name(INT_MAX, name));
    recipe_list(list, sizeof list);
    ASSERT_STR_EQ("toy-interp, physionet-interp, physionet-full, physionet-enc, mimic3-full, mimic3-enc, activity-enc, "
                  "activity-full",
                  list);
    PASS();
}

/* As latent_ode trains on PhysioNet; on Activity it has classes alone, and own data has its own choice. */
TEST ode_rnn_tells_the_next_row(void) {
    static const struct {
        const char *name;
        int next;
        double alpha;
    } rows[] = {{"physionet-ode-rnn", 1, 100}, {"mimic3-ode-rnn", 1, 100}, {"activity-ode-rnn", 0, 1}};
    char text[32];
    recipe r;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int preset = MTAN_FAITHFUL; preset <= MTAN_CORRECT; preset++) {
            ASSERT(recipe_named(&r, rows[i].name, (mtan_preset)preset));
            ASSERT_EQ(MTAN_OK, mtan_config_get(&r.config, "next", text, sizeof text));
            ASSERTm(rows[i].name, (strtod(text, NULL) > 0) == rows[i].next);
            ASSERTm(rows[i].name, fabs(r.config.alpha - rows[i].alpha) < 1e-12);
        }
    ASSERT(recipe_for_own(&r, "ode-rnn", MTAN_CORRECT));
    ASSERT_EQ(MTAN_OK, mtan_config_get(&r.config, "next", text, sizeof text));
    ASSERT(!(strtod(text, NULL) > 0));
    PASS();
}

/* latent_ode's cross-entropy of three samples is divided by three twice. */
TEST latent_models_weigh_classes_as_published(void) {
    static const char *const names[] = {"physionet-rnn-vae", "physionet-l-ode-rnn", "physionet-l-ode-ode"};
    recipe faithful, correct;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ASSERT(recipe_named(&faithful, names[i], MTAN_FAITHFUL) && recipe_named(&correct, names[i], MTAN_CORRECT));
        ASSERT(faithful.config.samples == 3 && fabs(faithful.config.alpha - 100.0 / 3) < 1e-12);
        ASSERT(fabs(correct.config.alpha - 100) < 1e-12);
    }
    PASS();
}

/* The defaults of latent_ode's script and of its own curves' times; a latent state as the paper's table has it. */
TEST curves_are_trained_as_latent_ode_trains_its_own(void) {
    static const struct {
        const char *key, *value;
    } settings[] = {{"enc_hidden", "20"}, {"latent", "20"},    {"units", "100"},     {"gru_units", "100"},
                    {"rec_layers", "1"},  {"gen_layers", "1"}, {"mlp_hidden", "100"}};
    char text[32];
    recipe r;
    ASSERT(recipe_named(&r, "toy-l-ode-ode", MTAN_CORRECT));
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        ASSERT_EQ(MTAN_OK, mtan_config_get(&r.config, settings[i].key, text, sizeof text));
        ASSERT_STR_EQm(settings[i].key, settings[i].value, text);
    }
    ASSERT(fabs(data_set_named("toy", 3)->defaults[MTAN_CORRECT].baselines_time_scale - 0.2) < 1e-12);
    PASS();
}

TEST own_data_has_recipes(void) {
    static const char *const names[] = {"enc",   "full",           "per-time",         "interp",
                                        "gru-d", "gru-d-per-time", "l-ode-ode-interp", "rnn-vae"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        recipe r;
        ASSERTm(names[i], recipe_for_own(&r, names[i], MTAN_CORRECT));
        ASSERT_EQm(names[i], MTAN_OK, mtan_config_check(&r.config));
        ASSERT_EQm(names[i], strstr(names[i], "per-time") != NULL, r.config.classify == MTAN_CLASSIFY_TIME);
        ASSERT_EQm(names[i], strstr(names[i], "interp") != NULL, r.config.classify == MTAN_CLASSIFY_NONE);
        ASSERT_EQm(names[i], i < 4, !r.config.architecture);
    }
    PASS();
}

static int plan_of(plan *p, const char *line) {
    static char text[256];
    char *word[16];
    int n = 0;
    options o;
    snprintf(text, sizeof text, "mtan train %s", line);
    for (char *at = strtok(text, " "); at && n < 16; at = strtok(NULL, " ")) word[n++] = at;
    return options_parse(&o, n, word) && plan_make(p, &o);
}

/* Models that interpolate are trained as published by faithful alone: others hide points of every record, and their rate falls. */
TEST curves_have_presets(void) {
    plan p;
    ASSERT(plan_of(&p, "toy-interp --preset faithful"));
    ASSERT(p.observed_low >= 1 && p.epochs == 5000 && p.schedule == SCHEDULE_CONSTANT && p.config.kl_anneal);
    ASSERT(plan_of(&p, "toy-interp"));
    ASSERT(p.observed_low < 0.6 && p.source.observed >= 1 && p.schedule == SCHEDULE_COSINE && p.config.kl_anneal);
    ASSERT(plan_of(&p, "physionet-interp --preset best"));
    ASSERT(!p.config.kl_anneal && p.kl_weight <= 0 && p.config.variance == MTAN_VARIANCE_FIXED);
    ASSERT(plan_of(&p, "physionet-rnn-vae-interp --preset best"));
    ASSERT(p.schedule != SCHEDULE_COSINE && p.kl_weight >= 1);
    PASS();
}

/* Own data's bands are learned, unless the model that is asked for cannot. */
TEST own_curves_learn_their_bands(void) {
    plan p;
    ASSERT(plan_of(&p, "own --model interp --data x"));
    ASSERT(p.config.variance == MTAN_VARIANCE_LEARNED && p.config.noise_std < 0.02 && p.epochs == 0);
    ASSERT(plan_of(&p, "own --model interp --data x --noise-std 0.05"));
    ASSERT(fabs(p.config.noise_std - 0.05) < 1e-9 && mtan_config_check(&p.config) == MTAN_OK);
    ASSERT(plan_of(&p, "own --model interp --data x --statistics mean,spread"));
    ASSERT(p.config.variance == MTAN_VARIANCE_FIXED && mtan_config_check(&p.config) == MTAN_OK);
    ASSERT(plan_of(&p, "own --model interp --data x --decoder rbf"));
    ASSERT(p.config.variance == MTAN_VARIANCE_FIXED && mtan_config_check(&p.config) == MTAN_OK);
    ASSERT(plan_of(&p, "own --model interp --data x --preset correct"));
    ASSERT(p.config.variance == MTAN_VARIANCE_FIXED && p.config.kl_anneal);
    PASS();
}

TEST names_that_mean_nothing_are_refused(void) {
    static const char *const bad[] = {"physionet",
                                      "physionet-",
                                      "physionet-gru",
                                      "gru-d",
                                      "toy",
                                      "toy-inter",
                                      "toy-interp ",
                                      "toy-gru-d",
                                      "physionet-gru-d-interp",
                                      "own-gru-d-interp",
                                      "own-enc",
                                      "activity-l-ode-ode-interp",
                                      "",
                                      "own"};
    recipe r, before;
    memset(&r, 7, sizeof r), memset(&before, 7, sizeof before);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ASSERTm(bad[i], !recipe_named(&r, bad[i], MTAN_CORRECT));
        ASSERTm(bad[i], strcmp(bad[i], "gru-d") == 0 || !recipe_for_own(&r, bad[i], MTAN_CORRECT));
    }
    ASSERT(!recipe_for_own(&r, "gru-d-interp", MTAN_CORRECT) && !recipe_for_own(&r, "physionet-enc", MTAN_CORRECT));
    ASSERT(memcmp(&r, &before, sizeof r) == 0);
    PASS();
}

SUITE(recipes_suite) {
    RUN_TEST(recipes_are_the_references_commands);
    for (int i = 0; published_names[i]; i++) {
        if (strcmp(published_names[i], "activity-full") == 0) continue; /* its file has fewer points, and no script */
        greatest_set_test_suffix(published_names[i]);
        RUN_TEST1(settings_are_the_references, published_names[i]);
    }
    RUN_TEST(a_preset_changes_the_loss);
    RUN_TEST(every_recipe_is_a_model);
    RUN_TEST(ode_rnn_tells_the_next_row);
    RUN_TEST(latent_models_weigh_classes_as_published);
    RUN_TEST(curves_are_trained_as_latent_ode_trains_its_own);
    RUN_TEST(own_data_has_recipes);
    RUN_TEST(curves_have_presets);
    RUN_TEST(own_curves_learn_their_bands);
    RUN_TEST(names_that_mean_nothing_are_refused);
}
