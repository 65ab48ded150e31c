/* mtan convert in a process of its own: models of every kind there and back, checkpoints that the test writes tensor by tensor, so
 * that shapes, args, recipes and optimisers can be had in every combination, and what is refused. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "command_line.h"
#include "small.h"
#include "tiny_model.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/model/bundle.h"
#include "../../tools/mtan/base/files.h"
#include "../../tools/mtan/torch/torchfile.h"

/* ---- checkpoints by hand ---- */

static const char *const prefixes[] = {"rec.", "dec.", "classifier."};
static const char *const dicts[] = {"rec_state_dict", "dec_state_dict", "classifier_state_dict"};

typedef struct checkpoint {
    int prefixed;                  /* one state_dict of all, whose names have the module before them */
    const char *without;           /* a tensor or a dict that is left out */
    const char *flat;              /* one whose elements are all in one row */
    const char *twice;             /* one that stands there again under another name */
    const char *not_dict;          /* a key of the three dicts that is a number instead */
    void (*args)(torch_writer *w); /* pairs of the dict of args */
    void (*more)(torch_writer *w); /* other pairs of the checkpoint */
} checkpoint;

static int is_word(const char *a, const char *b) {
    return a && b && strcmp(a, b) == 0;
}

static void put_params(torch_writer *w, const mtan_model *model, const checkpoint *c, const char *prefix) {
    for (int32_t i = 0; i < mtan_param_count(&model->config); i++) {
        mtan_param p;
        mtan_param_at(&model->config, i, &p);
        const mtan_real *at = model->weights + model->offset[i];
        const size_t rows = (size_t)p.rows, cols = (size_t)p.cols;
        if (is_word(c->without, p.name) || (prefix && strncmp(p.name, prefix, strlen(prefix)) != 0)) continue;
        torch_put_text(w, p.name + (prefix ? strlen(prefix) : 0));
        torch_put_tensor(w, is_word(c->flat, p.name) ? 1 : p.rank, is_word(c->flat, p.name) ? rows * cols : rows, cols,
                         at);
        if (!is_word(c->twice, p.name)) continue;
        torch_put_text(w, "left.over");
        torch_put_tensor(w, p.rank, rows, cols, at);
    }
}

static void put_dicts(torch_writer *w, const mtan_model *model, const checkpoint *c) {
    const int full = model->config.kind == MTAN_FULL;
    const int parts = !full ? 1 : model->config.classify == MTAN_CLASSIFY_NONE ? 2 : 3;
    for (int i = 0; i < parts; i++) {
        if (is_word(c->without, dicts[i])) continue;
        torch_put_text(w, dicts[i]);
        if (is_word(c->not_dict, dicts[i])) {
            torch_put_whole(w, 1);
            continue;
        }
        torch_put_open(w, TORCH_ORDERED_DICT);
        put_params(w, model, c, prefixes[i]);
        torch_put_close(w, TORCH_ORDERED_DICT);
    }
}

static void write_checkpoint(const char *name, const mtan_model *model, const checkpoint *c) {
    char error[512] = "";
    torch_writer w;
    torch_begin(&w);
    torch_put_open(&w, c->prefixed ? TORCH_ORDERED_DICT : TORCH_DICT);
    if (c->prefixed) put_params(&w, model, c, NULL);
    else put_dicts(&w, model, c);
    if (c->args) {
        torch_put_text(&w, "args");
        torch_put_open(&w, TORCH_DICT);
        c->args(&w);
        torch_put_close(&w, TORCH_DICT);
    }
    if (c->more) c->more(&w);
    torch_put_close(&w, c->prefixed ? TORCH_ORDERED_DICT : TORCH_DICT);
    uint8_t *bytes = torch_finish(&w);
    if (!bytes || !file_write(command_path(name), bytes, arrlenu(bytes), error)) puts(error), exit(2);
    arrfree(bytes);
}

/* ---- comparisons ---- */

static int same_setting(const mtan_config *a, const mtan_config *b, const char *key) {
    char x[64] = "?", y[64] = "!";
    mtan_config_get(a, key, x, sizeof x), mtan_config_get(b, key, y, sizeof y);
    if (strcmp(x, y) != 0) printf("  BAD %s: %s, expected %s\n", key, x, y);
    return strcmp(x, y) == 0;
}

/* Has the file the settings of the model, those named or all, and its weights? */
static int is_model(const char *name, const mtan_model *model, const char *const *keys) {
    char error[512];
    bundle b;
    int good = bundle_read(&b, command_path(name), error);
    if (!good) return printf("  BAD %s\n", error), 0;
    for (int i = 0; keys && keys[i]; i++) good &= same_setting(&b.model.config, &model->config, keys[i]);
    for (int32_t i = 0; !keys && mtan_config_key(i); i++)
        good &= same_setting(&b.model.config, &model->config, mtan_config_key(i));
    const size_t count = mtan_weights_count(&model->config);
    good = good && mtan_weights_count(&b.model.config) == count &&
           check_same(name, b.weights, model->weights, count * sizeof *b.weights);
    bundle_free(&b);
    return good;
}

static double number_in(const char *name, const char *key) {
    char error[512];
    bundle b;
    if (!bundle_read(&b, command_path(name), error)) return printf("  BAD %s\n", error), NAN;
    const double x = bundle_number(&b, key, NAN);
    bundle_free(&b);
    return x;
}

static int32_t setting_in(const char *name, const char *key) {
    char error[512], text[64] = "-1";
    bundle b;
    if (!bundle_read(&b, command_path(name), error)) return printf("  BAD %s\n", error), -1;
    mtan_config_get(&b.model.config, key, text, sizeof text);
    bundle_free(&b);
    return atoi(text);
}

/* ---- there and back ---- */

/* Nothing is lost: neither a setting nor a bit of a weight. */
TEST a_model_comes_back(int index) {
    small_model s;
    ASSERT(small_open(&s, index));
    command_model("m.safetensors", &s.model, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.safetensors @/m.pt"), "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("err.txt"), "%zu"); /* there is no preprocessing to speak of */
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/back.safetensors"), "%d");
    ASSERT(is_model("back.safetensors", &s.model, NULL));
    ASSERT(command_says("err.txt", "it has no preprocessing: values and times are taken as they stand"));
    ASSERT(small_close(&s));
    PASS();
}

/* Reference points that were given are tensors of their own. */
TEST given_points_come_back(void) {
    static const mtan_real points[6] = {0, 0.125, 0.25, 0.5, 0.75, 2};
    char error[512];
    tiny_model s;
    bundle b;
    tiny_open(&s, TINY_ENC, 1);
    s.config.reference = MTAN_REF_GIVEN, s.config.ref = points;
    ASSERT_EQ(MTAN_OK, mtan_model_init(&s.model, &s.config, s.weights, s.count));
    command_model("m.safetensors", &s.model, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.safetensors @/m.pt"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/back.safetensors --quiet"), "%d");
    ASSERT(is_model("back.safetensors", &s.model, NULL) && command_bytes("err.txt") == 0);
    ASSERT(bundle_read(&b, command_path("back.safetensors"), error));
    ASSERT(check_same("points", b.model.config.ref, points, sizeof points));
    bundle_free(&b);
    ASSERT(tiny_close(&s));
    PASS();
}

static void put_given(torch_writer *w) {
    torch_put_text(w, "mtan");
    torch_put_open(w, TORCH_DICT);
    torch_put_text(w, "reference"), torch_put_text(w, "given");
    torch_put_text(w, "ref_points"), torch_put_text(w, "6");
    torch_put_close(w, TORCH_DICT);
}

static void put_points(torch_writer *w, size_t n, mtan_real last) {
    static mtan_real points[7] = {0, 1, 2, 3, 4, 5, 6};
    put_given(w);
    points[5] = last;
    torch_put_text(w, "ref_points");
    torch_put_tensor(w, 1, n, 1, points);
}

static void put_seven_points(torch_writer *w) {
    put_points(w, 7, 5);
}

static void put_point_that_is_none(torch_writer *w) {
    put_points(w, 6, (mtan_real)NAN);
}

static void put_number_of_points(torch_writer *w) {
    put_given(w);
    torch_put_text(w, "ref_points"), torch_put_whole(w, 6);
}

TEST points_that_are_not_there_are_missed(void) {
    static void (*const more[])(torch_writer *) = {put_given, put_seven_points, put_number_of_points};
    tiny_model s;
    tiny_open(&s, TINY_ENC, 1);
    checkpoint c = {0};
    for (int i = 0; i < 3; i++) {
        c.more = more[i];
        write_checkpoint("m.pt", &s.model, &c);
        ASSERT(command_refused("convert @/m.pt @/m.safetensors",
                               "m.pt: misses the tensor ref_points of its 6 reference points"));
    }
    c.more = put_point_that_is_none;
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT(command_refused("convert @/m.pt @/m.safetensors", "m.pt: a reference point is not finite"));
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- what shapes tell ---- */

static const char *const of_all[] = {"kind",      "classify",   "encoder",    "channels",
                                     "enc_heads", "enc_hidden", "ref_points", NULL};
static const char *const of_classes[] = {"classes", "head_hidden", NULL};
static const char *const of_embeddings[] = {"embed", "embedding", "embed_heads", NULL};
static const char *const of_decoders[] = {"decoder", "latent", "mlp_hidden", "dec_hidden", "dec_heads", NULL};

/* What goes beyond the published models has other shapes, which are taken for those of more channels or units: the settings in a
 * file of ours tell. */
static int is_published(const mtan_config *c) {
    return !c->statistics && !c->summaries && !c->statics && c->values == MTAN_VALUES_PLAIN &&
           c->variance == MTAN_VARIANCE_FIXED && c->task == MTAN_TASK_CLASSES && c->members <= 1;
}

/* Given points are not among the weights, and a class per record and one per time have the same tensors but for attention, whose
 * published classes call their GRUs by two names. */
static int tensors_tell(const mtan_config *c) {
    const int per_time = c->kind == MTAN_ENC && c->classify == MTAN_CLASSIFY_TIME;
    return is_published(c) && c->reference != MTAN_REF_GIVEN && !(per_time && c->encoder != MTAN_ATTENTION);
}

/* Tensors alone, as three dicts and as one; the user says what they cannot tell. */
TEST shapes_tell_the_model(int index) {
    char line[160];
    small_model s;
    checkpoint c = {0};
    ASSERT(small_open(&s, index));
    if (!tensors_tell(&s.config)) {
        ASSERT(small_close(&s));
        PASS();
    }
    const int full = s.config.kind == MTAN_FULL;
    for (c.prefixed = 0; c.prefixed < 2; c.prefixed++) {
        write_checkpoint("m.pt", &s.model, &c);
        snprintf(line, sizeof line, "convert @/m.pt @/m.safetensors --ref-points %d --enc-heads %d%s",
                 (int)s.config.ref_points, (int)s.config.enc_heads,
                 s.config.reference == MTAN_REF_OBSERVED ? " --reference observed" : "");
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        ASSERT(is_model("m.safetensors", &s.model, of_all));
        ASSERT(s.config.classify == MTAN_CLASSIFY_NONE || is_model("m.safetensors", &s.model, of_classes));
        ASSERT(s.config.encoder == MTAN_RBF || is_model("m.safetensors", &s.model, of_embeddings));
        ASSERT(!full || is_model("m.safetensors", &s.model, of_decoders));
    }
    ASSERT(small_close(&s));
    PASS();
}

TEST what_is_assumed_is_said(void) {
    tiny_model s;
    checkpoint c = {0};
    tiny_open(&s, TINY_ENC, 1);
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors"), "%d");
    ASSERT(command_says("err.txt", "assumed one attention head (--enc-heads): the tensors do not tell\n"));
    ASSERT(command_says("err.txt", "assumed 128 reference points (--ref-points)\n"));
    ASSERT_EQ_FMT(128, setting_in("m.safetensors", "ref_points"), "%d");
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- args ---- */

static void put_whole(torch_writer *w, const char *key, int64_t x) {
    torch_put_text(w, key), torch_put_whole(w, x);
}

static void put_real(torch_writer *w, const char *key, double x) {
    torch_put_text(w, key), torch_put_real(w, x);
}

static void put_bool(torch_writer *w, const char *key, int x) {
    torch_put_text(w, key), torch_put_bool(w, x);
}

static void put_all_args(torch_writer *w) {
    put_whole(w, "num_ref_points", 6), put_whole(w, "enc_num_heads", 2), put_whole(w, "k_iwae", 4);
    put_real(w, "std", 0.25), put_real(w, "alpha", 7), put_bool(w, "norm", 1), put_bool(w, "kl", 0);
    put_real(w, "lr", 0.0125), put_whole(w, "batch_size", 7), put_whole(w, "niters", 9), put_whole(w, "seed", 11);
    put_real(w, "sample_tp", 0.75);
    torch_put_text(w, "dataset"), torch_put_text(w, "a \"name\"");
    torch_put_text(w, "list"), torch_put_open(w, TORCH_LIST), torch_put_close(w, TORCH_LIST);
    torch_put_whole(w, 5), torch_put_text(w, "under a number");
}

static void put_epoch(torch_writer *w) {
    put_whole(w, "epoch", 12);
}

TEST args_become_settings(void) {
    char error[512];
    tiny_model s;
    bundle b;
    checkpoint c = {0};
    c.args = put_all_args, c.more = put_epoch;
    tiny_open(&s, TINY_FULL, 1);
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors"), "%d");
    ASSERT(bundle_read(&b, command_path("m.safetensors"), error));
    ASSERT_EQ_FMT(6, (int)b.model.config.ref_points, "%d");
    ASSERT_EQ_FMT(4, (int)b.model.config.samples, "%d");
    ASSERT(b.model.config.noise_std == 0.25 && b.model.config.alpha == 7);
    ASSERT(b.model.config.norm && !b.model.config.kl_anneal);
    ASSERT_STR_EQ(
        "{\"num_ref_points\": 6, \"enc_num_heads\": 2, \"k_iwae\": 4, \"std\": 0.25, \"alpha\": 7, \"norm\": true, "
        "\"kl\": false, \"lr\": 0.0125, \"batch_size\": 7, \"niters\": 9, \"seed\": 11, \"sample_tp\": 0.75, "
        "\"dataset\": \"a \\\"name\\\"\", \"list\": null}",
        bundle_text(&b, "mtan.torch.args", ""));
    ASSERT(bundle_number(&b, "mtan.torch.epoch", 0) == 12 && bundle_number(&b, "mtan.torch.lr", 0) == 0.0125);
    bundle_free(&b);
    ASSERT(tiny_close(&s));
    PASS();
}

static void put_odd_args(torch_writer *w) {
    put_whole(w, "num_heads", 1), put_real(w, "num_ref_points", 1e10), put_real(w, "std", -1e10);
    torch_put_text(w, "k_iwae"), torch_put_text(w, "many");
    put_real(w, "lr", -1), put_whole(w, "batch_size", 0), put_whole(w, "niters", 0), put_whole(w, "seed", -1);
    put_real(w, "sample_tp", 2), put_real(w, "freq", 5), put_real(w, "norm", -1), put_real(w, "kl", -1);
}

static void put_odd_epoch(torch_writer *w) {
    put_real(w, "epoch", -3);
}

static void put_huge_args(torch_writer *w) {
    char key[1000];
    memset(key, 'k', 996);
    for (int i = 0; i < 70; i++) snprintf(key + 980, 20, "%d", i), put_whole(w, key, i); /* more than 64 KB */
}

/* Numbers that cannot be meant are as good as none. */
TEST odd_args_are_left_alone(void) {
    tiny_model s;
    checkpoint c = {0};
    c.args = put_odd_args, c.more = put_odd_epoch;
    tiny_open(&s, TINY_ENC, 1);
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors"), "%d");
    ASSERT(command_says("err.txt", "assumed 128 reference points, as the published script for mTAND-Enc has\n"));
    ASSERT(command_says("err.txt", ", epoch 0 -> "));
    ASSERT_EQ_FMT(5, setting_in("m.safetensors", "embed_base"), "%d");
    ASSERT_EQ_FMT(1, setting_in("m.safetensors", "enc_heads"), "%d");
    ASSERT(isnan(number_in("m.safetensors", "mtan.torch.lr")));
    c.args = put_huge_args;
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("inspect @/m.safetensors"), "%d");
    char *text = command_text("out.txt");
    ASSERT(!strstr(text, "mtan.torch.args")); /* too long to be kept */
    free(text);
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- recipes ---- */

static void open_settings(tiny_model *s, tiny_kind kind, const char *settings) {
    tiny_open(s, kind, 1);
    if (!guard_free(s->weights) || !small_apply(&s->config, settings)) puts(settings), exit(2);
    s->count = mtan_weights_count(&s->config);
    s->weights = guard_alloc(s->count * sizeof *s->weights);
    if (mtan_weights_init(&s->config, s->weights, s->count, 0) != MTAN_OK ||
        mtan_model_init(&s->model, &s->config, s->weights, s->count) != MTAN_OK)
        puts(settings), exit(2);
}

TEST a_recipe_says_what_tensors_do_not(void) {
    tiny_model s;
    checkpoint c = {0};
    open_settings(&s, TINY_ENC, "channels 41");
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors --recipe physionet-enc"), "%d");
    ASSERT_EQ_FMT(128, setting_in("m.safetensors", "ref_points"), "%d");
    ASSERT_EQ_FMT(41, setting_in("m.safetensors", "channels"), "%d");
    char *text = command_text("err.txt");
    ASSERT(!strstr(text, "assumed"));
    free(text);
    ASSERT(command_refused("convert @/m.pt @/n.safetensors --recipe physionet-end",
                           "m.pt: there is no recipe physionet-end"));
    ASSERT(command_refused("convert @/m.pt @/n.safetensors --recipe physionet-gru-d",
                           "m.pt: there is no recipe physionet-gru-d"));
    ASSERT(command_refused("convert @/m.pt @/n.safetensors --recipe physionet-full",
                           "m.pt: its tensors are not those of physionet-full: they are of mTAND-Enc\n"));
    ASSERT(tiny_close(&s));
    PASS();
}

TEST a_recipe_of_another_model_is_refused(void) {
    static const struct {
        tiny_kind kind;
        const char *recipe, *words;
    } cases[] = {{TINY_FULL, "physionet-enc", "physionet-enc: they are of mTAND-Full\n"},
                 {TINY_FULL, "activity-full", "activity-full: they are of mTAND-Full\n"},
                 {TINY_INTERP, "physionet-full", "physionet-full: they are of mTAND-Full without a classifier\n"},
                 {TINY_ENC_TIME, "physionet-enc", "physionet-enc: they are of mTAND-Enc with a class per time\n"}};
    char line[128];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tiny_model s;
        checkpoint c = {0};
        tiny_open(&s, cases[i].kind, 1);
        write_checkpoint("m.pt", &s.model, &c);
        snprintf(line, sizeof line, "convert @/m.pt @/m.safetensors --recipe %s", cases[i].recipe);
        ASSERT(command_refused(line, cases[i].words));
        ASSERT(tiny_close(&s));
    }
    PASS();
}

/* ---- tensors that make no model ---- */

static void put_long_setting(torch_writer *w) {
    char text[101];
    memset(text, 'x', 100), text[100] = 0;
    torch_put_text(w, "mtan");
    torch_put_open(w, TORCH_DICT);
    torch_put_text(w, "ref_points"), torch_put_text(w, text);
    torch_put_close(w, TORCH_DICT);
}

static void put_number_setting(torch_writer *w) {
    torch_put_text(w, "mtan");
    torch_put_open(w, TORCH_DICT);
    put_whole(w, "ref_points", 4);
    torch_put_close(w, TORCH_DICT);
}

static void put_bad_setting(torch_writer *w) {
    torch_put_text(w, "mtan");
    torch_put_open(w, TORCH_DICT);
    torch_put_text(w, "encoder"), torch_put_text(w, "best");
    torch_put_close(w, TORCH_DICT);
}

TEST half_a_model_is_refused(void) {
    static const struct {
        tiny_kind kind;
        checkpoint c;
        const char *words;
    } cases[] = {
        {TINY_ENC,
         {.without = "rec.att.linears.0.weight"},
         "its tensors are not those of a published class: no rec.att.linears.0.weight"},
        {TINY_FULL,
         {.without = "dec.att.linears.0.weight"},
         "its tensors are not those of a published class: no dec.att.linears.0.weight"},
        {TINY_ENC, {.without = "rec.enc.weight_hh_l0"}, "misses the tensor rec.enc.weight_hh_l0"},
        {TINY_RBF_ENC, {.without = "rec.gru_rnn.weight_hh_l0"}, "misses the tensor rec.gru_rnn.weight_hh_l0"},
        {TINY_FULL, {.without = "rec.hiddens_to_z0.2.weight"}, "misses the tensor rec.hiddens_to_z0.2.weight"},
        {TINY_FULL, {.without = "dec.gru_rnn.weight_hh_l0"}, "misses the tensor dec.gru_rnn.weight_hh_l0"},
        {TINY_FULL, {.without = "dec_state_dict"}, "has the encoder of mTAND-Full, but no dec_state_dict"},
        {TINY_ENC, {.without = "rec.classifier.4.weight"}, "misses the tensor rec.classifier.weight"},
        {TINY_FULL_TIME, {.without = "classifier.4.weight"}, "has 45 tensors where the published class has 42"},
        {TINY_ENC, {.without = "rec.classifier.4.bias"}, "misses the tensor rec.classifier.4.bias"},
        {TINY_ENC,
         {.flat = "rec.att.linears.1.weight"},
         "rec.att.linears.1.weight has another shape than the model it seems to be"},
        {TINY_ENC, {.flat = "rec.enc.weight_hh_l0"}, "misses the tensor rec.enc.weight_hh_l0"},
        {TINY_ENC, {.twice = "rec.classifier.4.bias"}, "tensors where the published class has"},
        {TINY_FULL, {.not_dict = "dec_state_dict"}, "dec_state_dict is no dict"},
        {TINY_ENC, {.more = put_long_setting}, "its setting mtan.ref_points has a value that it cannot have"},
        {TINY_ENC, {.more = put_number_setting}, "its setting mtan.ref_points has a value that it cannot have"},
        {TINY_ENC, {.more = put_bad_setting}, "its setting mtan.encoder has a value that it cannot have"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tiny_model s;
        tiny_open(&s, cases[i].kind, 1);
        write_checkpoint("m.pt", &s.model, &cases[i].c);
        ASSERT(command_refused("convert @/m.pt @/m.safetensors", cases[i].words));
        ASSERT_EQ_FMT((size_t)0, command_bytes("m.safetensors"), "%zu");
        ASSERT(tiny_close(&s));
    }
    PASS();
}

TEST settings_of_no_model_are_refused(void) {
    tiny_model s;
    checkpoint c = {0};
    tiny_open(&s, TINY_ENC, 1);
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT(command_refused("convert @/m.pt @/n.safetensors --enc-heads 4",
                           "4 attention heads do not go with the shape of"));
    ASSERT(command_refused("convert @/m.pt @/n.safetensors --enc-heads x",
                           "0 attention heads do not go with the shape of"));
    ASSERT(command_refused("convert @/m.pt @/n.safetensors --ref-points many", "ref_points cannot be many"));
    ASSERT(command_refused("convert @/m.pt @/n.safetensors --ref-points 0", "no model has these settings: "));
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- files that are something else ---- */

static void write_root(const char *name, void (*put)(torch_writer *w)) {
    char error[512] = "";
    torch_writer w;
    torch_begin(&w);
    put(&w);
    uint8_t *bytes = torch_finish(&w);
    if (!bytes || !file_write(command_path(name), bytes, arrlenu(bytes), error)) puts(error), exit(2);
    arrfree(bytes);
}

static void put_five(torch_writer *w) {
    torch_put_whole(w, 5);
}

static void put_number_in_dict(torch_writer *w) {
    torch_put_open(w, TORCH_DICT);
    put_whole(w, "epoch", 1);
    torch_put_close(w, TORCH_DICT);
}

static void put_empty(torch_writer *w) {
    torch_put_open(w, TORCH_DICT), torch_put_close(w, TORCH_DICT);
}

static void put_tensor_under(torch_writer *w, int text, const char *name) {
    static const mtan_real one[1] = {1};
    torch_put_open(w, TORCH_DICT);
    if (text) torch_put_text(w, name);
    else torch_put_whole(w, 0);
    torch_put_tensor(w, 1, 1, 1, one);
    torch_put_close(w, TORCH_DICT);
}

static void put_tensor_under_number(torch_writer *w) {
    put_tensor_under(w, 0, NULL);
}

static void put_tensor_under_short(torch_writer *w) {
    put_tensor_under(w, 1, "w");
}

TEST other_files_are_refused(void) {
    write_root("five.pt", put_five), write_root("number.pt", put_number_in_dict), write_root("empty.pt", put_empty);
    write_root("key.pt", put_tensor_under_number), write_root("short.pt", put_tensor_under_short);
    ASSERT(command_refused("convert @/five.pt @/x.safetensors", "five.pt: holds no dict: save a checkpoint as"));
    ASSERT(
        command_refused("convert @/number.pt @/x.safetensors", "has no rec_state_dict, and is no state_dict itself"));
    ASSERT(command_refused("convert @/empty.pt @/x.safetensors", "has no rec_state_dict, and is no state_dict itself"));
    ASSERT(command_refused("convert @/key.pt @/x.safetensors", "its tensors are not those of a published class"));
    ASSERT(command_refused("convert @/short.pt @/x.safetensors", "its tensors are not those of a published class"));
    ASSERT(command_refused("convert @/none.pt @/x.safetensors", "none.pt: No such file"));
    ASSERT(command_refused("convert @/events.csv @/x.pt", "events.csv: not a valid safetensors file"));
    ASSERT(command_refused(
        "convert @/events.csv @/x.safetensors",
        "events.csv: not a checkpoint of PyTorch; to write one, give it another ending than .safetensors"));
    command_write("cut.pt", "PK\3\4and no more");
    ASSERT(command_refused("convert @/cut.pt @/x.safetensors", "cut.pt: "));
    ASSERT_EQ_FMT((size_t)0, command_bytes("x.safetensors"), "%zu");
    PASS();
}

TEST a_place_that_cannot_be_written_is_named(void) {
    tiny_model s;
    checkpoint c = {0};
    tiny_open(&s, TINY_ENC, 1);
    write_checkpoint("m.pt", &s.model, &c);
    command_model("m.safetensors", &s.model, NULL, 0);
    ASSERT(command_refused("convert @/m.pt @/no/m.safetensors", "no/m.safetensors: "));
    ASSERT(command_refused("convert @/m.safetensors @/no/m.pt", "no/m.pt: "));
    ASSERT(tiny_close(&s));
    PASS();
}

TEST a_baseline_has_no_checkpoint(void) {
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model gru-d --data @/events.csv --labels @/labels.csv --enc-hidden 4 --head-hidden 3 "
                    "--epochs 1 --quiet --threads 1 --out @/run"),
        "%d");
    ASSERT(command_refused("convert @/run/best.safetensors @/m.pt",
                           "best.safetensors is a gru-d: the published code has no checkpoint of it"));
    PASS();
}

/* ---- the optimiser ---- */

/* What is odd about the optimiser's state of the parameter in the middle. */
static struct {
    const mtan_model *model;
    const char *odd;
    int adamax;
} saved;

static void put_state(torch_writer *w, int32_t i) {
    static const mtan_real two[2] = {1, 2};
    const char *odd = i == 2 && saved.odd ? saved.odd : "";
    mtan_param p;
    mtan_param_at(&saved.model->config, i, &p);
    torch_put_open(w, TORCH_DICT);
    torch_put_text(w, "step");
    if (strcmp(odd, "another step") == 0) torch_put_whole(w, 4);
    else if (strcmp(odd, "two steps") == 0) torch_put_tensor(w, 1, 2, 1, two);
    else if (strcmp(odd, "a word for a step") == 0) torch_put_text(w, "three");
    else if (strcmp(saved.odd ? saved.odd : "", "steps before the first") == 0) torch_put_whole(w, -3);
    else if (strcmp(saved.odd ? saved.odd : "", "steps without end") == 0) torch_put_real(w, 1e16);
    else if (strcmp(saved.odd ? saved.odd : "", "whole steps") == 0) torch_put_whole(w, 3);
    else if (strcmp(saved.odd ? saved.odd : "", "real steps") == 0) torch_put_real(w, 3);
    else torch_put_scalar(w, 3);
    torch_put_text(w, strcmp(odd, "no first moment") == 0 ? "other" : "exp_avg");
    torch_put_tensor(w, p.rank, (size_t)(strcmp(odd, "a small first moment") == 0 ? 1 : p.rows), (size_t)p.cols,
                     saved.model->weights + p.offset);
    torch_put_text(w, strcmp(odd, "no second moment") == 0 ? "other" : saved.adamax ? "exp_inf" : "exp_avg_sq");
    torch_put_tensor(w, p.rank, (size_t)(strcmp(odd, "a small second moment") == 0 ? 1 : p.rows), (size_t)p.cols,
                     saved.model->weights + p.offset);
    torch_put_close(w, TORCH_DICT);
}

static void put_optimizer(torch_writer *w) {
    const int32_t n = mtan_param_count(&saved.model->config);
    const char *odd = saved.odd ? saved.odd : "";
    torch_put_text(w, "optimizer_state_dict");
    torch_put_open(w, TORCH_DICT);
    torch_put_text(w, "state");
    if (strcmp(odd, "no state") == 0) torch_put_whole(w, 0);
    else {
        torch_put_open(w, TORCH_DICT);
        for (int32_t i = 0; i < n; i++) torch_put_whole(w, i), put_state(w, i);
        torch_put_close(w, TORCH_DICT);
    }
    torch_put_text(w, "param_groups");
    torch_put_open(w, TORCH_LIST);
    for (int k = 0; k < (strcmp(odd, "two groups") == 0 ? 2 : 1); k++) {
        torch_put_open(w, TORCH_DICT);
        put_real(w, "lr", 0.5);
        torch_put_text(w, strcmp(odd, "no numbers") == 0 ? "other" : "params");
        if (strcmp(odd, "a number for numbers") == 0) torch_put_whole(w, 7);
        else {
            torch_put_open(w, TORCH_LIST);
            for (int32_t i = 0;
                 i < n - (strcmp(odd, "a number too few") == 0) + (strcmp(odd, "a number too many") == 0); i++)
                if (i == 2 && strcmp(odd, "a word for a number") == 0) torch_put_text(w, "two");
                else torch_put_whole(w, i);
            torch_put_close(w, TORCH_LIST);
        }
        torch_put_close(w, TORCH_DICT);
    }
    torch_put_close(w, TORCH_LIST);
    torch_put_close(w, TORCH_DICT);
}

TEST moments_come_along(const char *steps, int adamax) {
    char error[512], words[64];
    mtan_tensor_view view;
    mtan_real *moment;
    tiny_model s;
    bundle b;
    checkpoint c = {0};
    c.more = put_optimizer;
    tiny_open(&s, TINY_ENC, 1);
    saved.model = &s.model, saved.odd = steps, saved.adamax = adamax;
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors"), "%d");
    snprintf(words, sizeof words, ", with %s's moments -> ", adamax ? "Adamax" : "Adam");
    ASSERT(command_says("err.txt", words));
    ASSERT(bundle_read(&b, command_path("m.safetensors"), error));
    ASSERT(bundle_number(&b, "mtan.step", 0) == 3 && bundle_number(&b, "mtan.torch.lr", 0) == 0.5);
    ASSERT_STR_EQ(adamax ? "adamax" : "adam", bundle_text(&b, "mtan.torch.optimizer", ""));
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&b.file, "mtan.moment2", &view));
    moment = calloc(s.count, sizeof *moment);
    ASSERT_EQ(MTAN_OK, mtan_view_read(&view, moment, s.count));
    ASSERT(check_same("moment2", moment, s.weights, s.count * sizeof *moment));
    free(moment);
    bundle_free(&b);
    ASSERT(tiny_close(&s));
    PASS();
}

/* The weights are converted all the same. */
TEST moments_that_do_not_fit_are_left_out(void) {
    static const char *const odd[] = {"another step",
                                      "two steps",
                                      "a word for a step",
                                      "no first moment",
                                      "a small first moment",
                                      "a small second moment",
                                      "no second moment",
                                      "no state",
                                      "two groups",
                                      "no numbers",
                                      "a number for numbers",
                                      "a number too few",
                                      "a number too many",
                                      "a word for a number",
                                      "steps before the first",
                                      "steps without end"};
    tiny_model s;
    checkpoint c = {0};
    c.more = put_optimizer;
    tiny_open(&s, TINY_ENC, 1);
    saved.model = &s.model, saved.adamax = 0;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        saved.odd = odd[i];
        write_checkpoint("m.pt", &s.model, &c);
        ASSERT_EQ_FMTm(odd[i], DONE, command_run("convert @/m.pt @/m.safetensors --ref-points 6"), "%d");
        ASSERTm(odd[i], command_says("err.txt", "left the optimiser's state out: it is not Adam's or Adamax's"));
        ASSERT(is_model("m.safetensors", &s.model, of_all));
    }
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- statistics ---- */

static void write_physionet(void) {
    char name[64], line[64];
    mkdir(command_path("data"), 0777), mkdir(command_path("data/set-a"), 0777);
    command_write("data/Outcomes-a.txt", "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n");
    for (int r = 1; r <= 10; r++) {
        snprintf(name, sizeof name, "data/set-a/%d.txt", r);
        command_write(name, "Time,Parameter,Value\n00:00,Age,60\n");
        snprintf(line, sizeof line, "01:36,HR,%d\n08:00,HR,70\n", 60 + r);
        command_append(name, line);
        snprintf(line, sizeof line, "%d,6,1,5,-1,%d\n", r, r % 2);
        command_append("data/Outcomes-a.txt", line);
    }
}

/* Where the shape names the data, the data is read as published; values of the test's records are the statistics. */
TEST statistics_follow_the_shape(void) {
    char error[512];
    tiny_model s;
    bundle b;
    checkpoint c = {0};
    c.args = put_all_args;
    write_physionet();
    open_settings(&s, TINY_ENC, "channels 41");
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors --enc-heads 1 --stats-from @/data"), "%d");
    ASSERT(command_says("err.txt", "preprocessing of physionet-enc, as published, from 10 records\n"));
    ASSERT(bundle_read(&b, command_path("m.safetensors"), error));
    ASSERT(bundle_number(&b, "mtan.plan.lr", 0) == 0.0125 && bundle_number(&b, "mtan.plan.batch", 0) == 7);
    ASSERT(bundle_number(&b, "mtan.plan.epochs", 0) == 9 && bundle_number(&b, "mtan.plan.seed", 0) == 11);
    ASSERT(b.prep.kind == PREP_PUBLISHED && arrlen(b.prep.channels) == 41);
    bundle_free(&b);
    ASSERT(tiny_close(&s));
    open_settings(&s, TINY_FULL, "channels 41");
    c.args = NULL;
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors --stats-from @/data"), "%d");
    ASSERT(command_says("err.txt", "preprocessing of physionet-full, as published, from 10 records\n"));
    ASSERT(tiny_close(&s));
    open_settings(&s, TINY_INTERP, "channels 1");
    write_checkpoint("m.pt", &s.model, &c);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors --stats-from made"), "%d");
    ASSERT(command_says("err.txt", "preprocessing of toy-interp, as published, from 1000 records\n"));
    ASSERT(tiny_close(&s));
    PASS();
}

TEST statistics_of_other_data_are_refused(void) {
    static const struct {
        tiny_kind kind;
        const char *settings, *options, *words;
    } cases[] = {
        {TINY_ENC, "channels 3", "", "--stats-from: no published configuration has 3 channels; name one by --recipe"},
        {TINY_ENC, "channels 3", " --recipe physionet-enc --enc-heads 1",
         "the data of physionet-enc has 41 channels, the model 3"},
        {TINY_ENC, "channels 41", " --enc-heads 1", "nowhere"},
        {TINY_ENC, "channels 12", "", "nowhere"},
        {TINY_FULL, "channels 12", "", "nowhere"},
        {TINY_FULL_TIME, "channels 12", "", "nowhere"},
        {TINY_ENC_TIME, "channels 12", "", "nowhere"}};
    char line[160];
    write_physionet();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tiny_model s;
        checkpoint c = {0};
        open_settings(&s, cases[i].kind, cases[i].settings);
        write_checkpoint("m.pt", &s.model, &c);
        snprintf(line, sizeof line, "convert @/m.pt @/m.safetensors%s --stats-from @/%s", cases[i].options,
                 strcmp(cases[i].words, "nowhere") == 0 ? "nowhere" : "data");
        ASSERT(command_refused(line, cases[i].words));
        ASSERT_EQ_FMT((size_t)0, command_bytes("m.safetensors"), "%zu");
        ASSERT(tiny_close(&s));
    }
    PASS();
}

SUITE(convert_command_suite) {
    char suffix[16];
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    for (int i = 0; i < small_count(); i++) {
        snprintf(suffix, sizeof suffix, "%d", i), greatest_set_test_suffix(suffix);
        RUN_TESTp(a_model_comes_back, i);
        snprintf(suffix, sizeof suffix, "%d", i), greatest_set_test_suffix(suffix);
        RUN_TESTp(shapes_tell_the_model, i);
    }
    RUN_TEST(given_points_come_back);
    RUN_TEST(points_that_are_not_there_are_missed);
    RUN_TEST(what_is_assumed_is_said);
    RUN_TEST(args_become_settings);
    RUN_TEST(odd_args_are_left_alone);
    RUN_TEST(a_recipe_says_what_tensors_do_not);
    RUN_TEST(a_recipe_of_another_model_is_refused);
    RUN_TEST(half_a_model_is_refused);
    RUN_TEST(settings_of_no_model_are_refused);
    RUN_TEST(other_files_are_refused);
    RUN_TEST(a_place_that_cannot_be_written_is_named);
    RUN_TEST(a_baseline_has_no_checkpoint);
    RUN_TESTp(moments_come_along, NULL, 0);
    RUN_TESTp(moments_come_along, "whole steps", 1);
    RUN_TESTp(moments_come_along, "real steps", 0);
    RUN_TEST(moments_that_do_not_fit_are_left_out);
    RUN_TEST(statistics_follow_the_shape);
    RUN_TEST(statistics_of_other_data_are_refused);
}
