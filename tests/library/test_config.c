/* Configurations: the defaults one by one, those of the paper and its published code, and what is refused for what
 * it is attached to. */
#include <greatest.h>
#include <string.h>

#include "small.h"

/* ---- defaults ---- */

static int has_settings(const mtan_config *config, const char *const settings[][2], size_t n) {
    for (size_t i = 0; i < n; i++) {
        char text[64] = "";
        if (mtan_config_get(config, settings[i][0], text, sizeof text) == MTAN_OK && strcmp(text, settings[i][1]) == 0)
            continue;
        printf("  BAD %s is %s, %s is due\n", settings[i][0], text, settings[i][1]);
        return 0;
    }
    return 1;
}

#define HAS(config, settings) has_settings(config, settings, sizeof settings / sizeof settings[0])

TEST defaults_are_those_of_the_paper(void) {
    static const char *const common[][2] = {{"encoder", "attention"}, {"decoder", "attention"},
                                            {"embedding", "learned"}, {"embed_heads", "shared"},
                                            {"channels", "41"},       {"classes", "2"},
                                            {"embed", "128"},         {"enc_heads", "1"},
                                            {"dec_heads", "1"},       {"dec_hidden", "50"},
                                            {"latent", "20"},         {"ref_points", "128"},
                                            {"mlp_hidden", "50"},     {"embed_base", "10"},
                                            {"embed_scale", "48"},    {"bound", "elbo"},
                                            {"samples", "1"},         {"norm", "1"},
                                            {"skip_empty", "1"},      {"kl_anneal", "0"},
                                            {"noise_std", "0.1"},     {"alpha", "1"},
                                            {"predict_samples", "8"}, {"rule", "mean_probability"},
                                            {"task", "classes"},      {"interval", "0"}};
    static const char *const enc[][2] = {
        {"kind", "enc"}, {"enc_hidden", "128"}, {"head_hidden", "300"}, {"reference", "even"}, {"classify", "record"}};
    static const char *const enc_time[][2] = {
        {"kind", "enc"}, {"enc_hidden", "128"}, {"head_hidden", "0"}, {"reference", "observed"}, {"classify", "time"}};
    static const char *const full[][2] = {
        {"kind", "full"}, {"enc_hidden", "256"}, {"head_hidden", "300"}, {"reference", "even"}, {"classify", "record"}};
    mtan_config config;
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 41, 2));
    ASSERT(HAS(&config, common) && HAS(&config, enc));
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_TIME, 41, 2));
    ASSERT(HAS(&config, common) && HAS(&config, enc_time));
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_FULL, MTAN_CLASSIFY_RECORD, 41, 2));
    ASSERT(HAS(&config, common) && HAS(&config, full));
    ASSERT_EQ(MTAN_OK, mtan_config_preset(&config, MTAN_FAITHFUL));
    static const char *const faithful[][2] = {
        {"bound", "faithful"}, {"skip_empty", "0"}, {"noise_std", "0.01"}, {"predict_samples", "1"}};
    ASSERT(HAS(&config, faithful));
    PASS();
}

/* ---- architectures, devices and int8 ---- */

static void ones(const mtan_config *c, mtan_params *p, void *roles) {
    (void)roles;
    for (int32_t i = 0; i < (int32_t)c->extra[0]; i++) mtan_params_add(p, "w", 2, 3, 2, 3);
}

static void no_forward(const mtan_forward *f, mtan_outputs *out) {
    (void)f, (void)out;
}

static const char *const names[] = {"params", NULL};
static const double most[] = {MTAN_MAX_PARAMS};
static const mtan_architecture many = {
    .name = "many", .settings = names, .defaults = most, .params = ones, .forward = no_forward, .traits = MTAN_IN_INT8};

static mtan_config start(void) {
    mtan_config config;
    mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 3, 2);
    return config;
}

TEST an_architecture_must_be_there(void) {
    mtan_config config = start(), before = config;
    ASSERT_EQ(MTAN_ERR_NULL, mtan_config_architecture(&config, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_config_architecture(NULL, &many));
    ASSERT(memcmp(&config, &before, sizeof config) == 0);
    ASSERT_EQ(MTAN_OK, mtan_config_architecture(&config, &many));
    ASSERT_EQ(MTAN_MAX_PARAMS, mtan_param_count(&config));
    config.extra[0] = MTAN_MAX_PARAMS + 1;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_config_check(&config));
    PASS();
}

/* What the paper's models have beside the paper is for them alone; a preset knows that. */
TEST an_architecture_has_no_statistics(void) {
    mtan_config config = start();
    ASSERT_EQ(MTAN_OK, mtan_config_architecture(&config, &many));
    ASSERT_EQ(MTAN_OK, mtan_config_preset(&config, MTAN_BEST));
    ASSERT(config.statistics == 0 && config.summaries == 0 && config.frequencies == MTAN_FREQUENCIES_PUBLISHED);
    config.statistics = MTAN_SPREAD;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&config));
    config.statistics = 0, config.summaries = 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&config));
    config.summaries = 0, config.task = (mtan_task)9;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&config));
    PASS();
}

static void one_large(const mtan_config *config, mtan_params *params, void *roles) {
    (void)config, (void)roles;
    mtan_params_add(params, "large", INT32_MAX / MTAN_MAX_MEMBERS + 1, 1, 1, 1);
}

/* One such model may be; of as many as an ensemble may have no int32_t counts the rows. */
TEST members_of_too_many_rows(void) {
    static const mtan_architecture large = {.name = "large", .params = one_large, .forward = no_forward};
    mtan_config config = start();
    ASSERT_EQ(MTAN_OK, mtan_config_architecture(&config, &large));
    config.members = MTAN_MAX_MEMBERS;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_config_check(&config));
    PASS();
}

TEST widths_whose_product_is_too_large(void) {
    mtan_config config;
    mtan_config_init(&config, MTAN_FULL, MTAN_CLASSIFY_NONE, 1 << 12, 0);
    config.embed = config.enc_heads = config.dec_heads = 1 << 10, config.variance = MTAN_VARIANCE_LEARNED;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_config_check(&config));
    config.embed = config.enc_heads = config.dec_heads = 512, config.dec_hidden = 256;
    config.channels = 8191; /* 2^31 columns of a layer: 2^18 of the hidden states, the others of intensities */
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_config_check(&config));
    config.variance = MTAN_VARIANCE_FIXED, config.channels = 1 << 20;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_config_check(&config));
    PASS();
}

/* As many parameters as a model may have fill its tables to the last place, and no further. */
TEST a_full_table_of_parameters_in_int8(void) {
    enum { REALS = MTAN_MAX_PARAMS * 2, ROWS = MTAN_MAX_PARAMS * 6 };
    static mtan_real weights[REALS];
    static int8_t rows[ROWS];
    mtan_config config = start();
    mtan_model model;
    size_t count, bytes;
    ASSERT_EQ(MTAN_OK, mtan_config_architecture(&config, &many));
    ASSERT_EQ(MTAN_OK, mtan_model_int8_counts(&config, &count, &bytes));
    ASSERT_EQ((size_t)REALS, count);
    ASSERT_EQ((size_t)ROWS, bytes);
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_model_init_int8(&model, &config, weights, REALS - 1, rows, ROWS));
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_model_init_int8(&model, &config, weights, REALS, rows, ROWS - 1));
    ASSERT_EQ(MTAN_OK, mtan_model_init_int8(&model, &config, weights, REALS, rows, ROWS));
    ASSERT(model.weights == weights && model.rows == rows && model.precision == MTAN_INT8);
    for (uint32_t i = 0; i < MTAN_MAX_PARAMS; i++) ASSERT(model.offset[i] == 2 * i && model.row0[i] == 6 * i);
    config.channels = 0;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_model_init_int8(&model, &config, weights, REALS, rows, ROWS));
    PASS();
}

/* A model that says nothing of devices is refused on one before anything is asked of the device; the paper's models
 * are not. */
TEST devices_are_for_models_that_know_them(void) {
    static const mtan_device device;
    static mtan_real weights[MTAN_MAX_PARAMS * 6];
    const mtan_bounds bounds = {1, 4, 4};
    mtan_config config = start();
    mtan_backend backend = mtan_backend_scalar;
    mtan_model model;
    small_model small;
    size_t bytes = 7;
    backend.device = &device;
    ASSERT_EQ(MTAN_OK, mtan_config_architecture(&config, &many));
    ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &config, weights, MTAN_MAX_PARAMS * 6));
    model.backend = &backend;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictor_size(&model, &bounds, &bytes));
    ASSERT_EQ(7, (int)bytes);
    ASSERT(small_open_named(&small, "enc record even"));
    small.model.backend = &backend;
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&small.model, &bounds, &bytes));
    ASSERT(small_close(&small));
    PASS();
}

SUITE(config_suite) {
    RUN_TEST(defaults_are_those_of_the_paper);
    RUN_TEST(an_architecture_must_be_there);
    RUN_TEST(an_architecture_has_no_statistics);
    RUN_TEST(members_of_too_many_rows);
    RUN_TEST(widths_whose_product_is_too_large);
    RUN_TEST(a_full_table_of_parameters_in_int8);
    RUN_TEST(devices_are_for_models_that_know_them);
}
