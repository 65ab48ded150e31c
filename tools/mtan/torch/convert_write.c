/* From a model to a checkpoint with the published scripts' keys, names and args. All settings stand under `mtan`, so
 * that converting back loses nothing. A checkpoint has no place for preprocessing. */
#include "convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const prefixes[] = {"rec.", "dec.", "classifier."};

static void put_text_pair(torch_writer *w, const char *key, const char *value) {
    torch_put_text(w, key);
    torch_put_text(w, value);
}

static void put_whole_pair(torch_writer *w, const char *key, int64_t value) {
    torch_put_text(w, key);
    torch_put_whole(w, value);
}

static void put_real_pair(torch_writer *w, const char *key, double value) {
    torch_put_text(w, key);
    torch_put_real(w, value);
}

static void put_bool_pair(torch_writer *w, const char *key, int value) {
    torch_put_text(w, key);
    torch_put_bool(w, value);
}

/* Training settings under the scripts' names, if the model's file has them. */
static void put_training(torch_writer *w, bundle *b) {
    const double lr = bundle_number(b, "mtan.plan.lr", 0), batch = bundle_number(b, "mtan.plan.batch", 0),
                 epochs = bundle_number(b, "mtan.plan.epochs", 0), observed = bundle_number(b, "mtan.data.observed", 0);
    if (lr > 0) put_real_pair(w, "lr", lr);
    if (batch > 0) put_whole_pair(w, "batch_size", (int64_t)batch);
    if (epochs > 0) put_whole_pair(w, "niters", (int64_t)epochs);
    if (lr > 0) put_whole_pair(w, "seed", (int64_t)bundle_number(b, "mtan.plan.seed", 0));
    if (observed > 0 && b->model.config.classify == MTAN_CLASSIFY_NONE) put_real_pair(w, "sample_tp", observed);
}

/* The command line that the published scripts store, as a plain dict: torch.load(weights_only=True) would refuse a
 * Namespace. */
static void put_args(torch_writer *w, bundle *b) {
    const mtan_config *c = &b->model.config;
    static const char *const encoders[] = {"mtan_rnn", "interp", "enc_rnn3"}, *const decoders[] = {"mtan_rnn", "interp",
                                                                                                   "rnn3"};
    const int per_time = c->classify == MTAN_CLASSIFY_TIME;
    torch_put_text(w, "args");
    torch_put_open(w, TORCH_DICT);
    put_text_pair(w, "enc", c->kind == MTAN_FULL ? encoders[c->encoder] : per_time ? "mtan_enc_activity" : "mtan_enc");
    if (c->kind == MTAN_FULL) {
        put_text_pair(w, "dec", decoders[c->decoder]);
        put_whole_pair(w, "latent_dim", c->latent);
        put_whole_pair(w, "gen_hidden", c->dec_hidden);
        put_whole_pair(w, "enc_num_heads", c->enc_heads);
        put_whole_pair(w, "dec_num_heads", c->dec_heads);
        put_whole_pair(w, "k_iwae", c->samples);
        put_real_pair(w, "std", c->noise_std);
        put_bool_pair(w, "norm", c->norm);
        put_bool_pair(w, "kl", c->kl_anneal);
        put_real_pair(w, "alpha", c->alpha);
    } else {
        put_whole_pair(w, "num_heads", c->enc_heads);
        put_real_pair(w, "freq", c->embed_base);
    }
    put_whole_pair(w, "rec_hidden", c->enc_hidden);
    put_whole_pair(w, "embed_time", c->embed);
    put_whole_pair(w, "num_ref_points", c->ref_points);
    put_bool_pair(w, "learn_emb", c->embedding == MTAN_EMBED_LEARNED);
    put_bool_pair(w, "classif", c->classify != MTAN_CLASSIFY_NONE);
    put_bool_pair(w, "classify_pertp", per_time);
    put_training(w, b);
    torch_put_close(w, TORCH_DICT);
}

static void put_settings(torch_writer *w, const mtan_config *c) {
    char text[64];
    torch_put_text(w, "mtan");
    torch_put_open(w, TORCH_DICT);
    for (int32_t i = 0; mtan_config_key(i); i++)
        if (mtan_config_get(c, mtan_config_key(i), text, sizeof text) == MTAN_OK)
            put_text_pair(w, mtan_config_key(i), text);
    torch_put_close(w, TORCH_DICT);
}

static int in_part(const mtan_param *param, int part) {
    return strncmp(param->name, prefixes[part], strlen(prefixes[part])) == 0;
}

static void put_state_dict(torch_writer *w, const mtan_model *model, int part, const char *key) {
    torch_put_text(w, key);
    torch_put_open(w, TORCH_ORDERED_DICT);
    for (int32_t i = 0; i < mtan_param_count(&model->config); i++) {
        mtan_param p;
        mtan_param_at(&model->config, i, &p);
        if (!in_part(&p, part)) continue;
        torch_put_text(w, p.name + strlen(prefixes[part]));
        torch_put_tensor(w, p.rank, (size_t)p.rows, (size_t)p.cols, model->weights + model->offset[i]);
    }
    torch_put_close(w, TORCH_ORDERED_DICT);
}

mtan_optimizer convert_optimizer(bundle *b) {
    const int said = strcmp(bundle_text(b, "mtan.torch.optimizer", "adam"), "adamax") == 0;
    return bundle_number(b, "mtan.plan.optimizer", said) > 0 ? MTAN_ADAMAX : MTAN_ADAM;
}

/* The optimiser's moments, copied from the model's file: first those of all parameters, then the second moments; NULL
 * if it has none. */
static mtan_real *read_moments(const bundle *b) {
    mtan_tensor_view first, second;
    const size_t count = mtan_weights_count(&b->model.config);
    if (mtan_file_tensor(&b->file, "mtan.moment1", &first) != MTAN_OK || first.count != count ||
        mtan_file_tensor(&b->file, "mtan.moment2", &second) != MTAN_OK || second.count != count)
        return NULL;
    mtan_real *moments = tool_calloc(count, 2 * sizeof *moments);
    if (mtan_view_read(&first, moments, count) == MTAN_OK && mtan_view_read(&second, moments + count, count) == MTAN_OK)
        return moments;
    free(moments);
    return NULL;
}

/* The published scripts' order of the parameters: dec before rec if there is no classifier. */
static int part_at(const mtan_config *c, int place) {
    return c->classify == MTAN_CLASSIFY_NONE && place < 2 ? !place : place;
}

static int64_t put_moments(torch_writer *w, bundle *b, const mtan_real *moments, double step) {
    const mtan_config *c = &b->model.config;
    const char *const second = convert_optimizer(b) == MTAN_ADAMAX ? "exp_inf" : "exp_avg_sq";
    const size_t count = mtan_weights_count(c);
    int64_t id = 0;
    torch_put_text(w, "state");
    torch_put_open(w, TORCH_DICT);
    for (int place = 0; place < 3; place++)
        for (int32_t i = 0; i < mtan_param_count(c); i++) {
            mtan_param p;
            mtan_param_at(c, i, &p);
            if (!in_part(&p, part_at(c, place))) continue;
            if (moments) {
                torch_put_whole(w, id);
                torch_put_open(w, TORCH_DICT);
                torch_put_text(w, "step");
                torch_put_scalar(w, step);
                torch_put_text(w, "exp_avg");
                torch_put_tensor(w, p.rank, (size_t)p.rows, (size_t)p.cols, moments + p.offset);
                torch_put_text(w, second);
                torch_put_tensor(w, p.rank, (size_t)p.rows, (size_t)p.cols, moments + count + p.offset);
                torch_put_close(w, TORCH_DICT);
            }
            id++;
        }
    torch_put_close(w, TORCH_DICT);
    return id;
}

/* Always written, because the published scripts load it whenever they load weights; without moments its state is
 * empty. */
static void put_optimiser(torch_writer *w, bundle *b, const mtan_real *moments) {
    const double lr = bundle_number(b, "mtan.plan.lr", bundle_number(b, "mtan.torch.lr", 1e-3));
    torch_put_text(w, "optimizer_state_dict");
    torch_put_open(w, TORCH_DICT);
    const int64_t count = put_moments(w, b, moments, bundle_number(b, "mtan.step", 0));
    torch_put_text(w, "param_groups");
    torch_put_open(w, TORCH_LIST);
    torch_put_open(w, TORCH_DICT);
    put_real_pair(w, "lr", lr);
    torch_put_text(w, "betas");
    torch_put_open(w, TORCH_TUPLE);
    torch_put_real(w, 0.9);
    torch_put_real(w, 0.999);
    torch_put_close(w, TORCH_TUPLE);
    put_real_pair(w, "eps", 1e-8);
    put_whole_pair(w, "weight_decay", 0);
    if (convert_optimizer(b) == MTAN_ADAM) put_bool_pair(w, "amsgrad", 0);
    torch_put_text(w, "params");
    torch_put_open(w, TORCH_LIST);
    for (int64_t i = 0; i < count; i++) torch_put_whole(w, i);
    torch_put_close(w, TORCH_LIST);
    torch_put_close(w, TORCH_DICT);
    torch_put_close(w, TORCH_LIST);
    torch_put_close(w, TORCH_DICT);
}

uint8_t *convert_to_torch(bundle *b) {
    const mtan_config *c = &b->model.config;
    mtan_real *moments = read_moments(b); /* the writer points into them until it has finished */
    torch_writer w;
    torch_begin(&w);
    torch_put_open(&w, TORCH_DICT);
    put_args(&w, b);
    put_settings(&w, c);
    put_whole_pair(&w, "epoch", (int64_t)bundle_number(b, "mtan.run.epoch", bundle_number(b, "mtan.torch.epoch", 0)));
    put_state_dict(&w, &b->model, 0, "rec_state_dict");
    if (c->kind == MTAN_FULL) put_state_dict(&w, &b->model, 1, "dec_state_dict");
    if (c->kind == MTAN_FULL && c->classify != MTAN_CLASSIFY_NONE)
        put_state_dict(&w, &b->model, 2, "classifier_state_dict");
    put_optimiser(&w, b, moments);
    if (c->reference == MTAN_REF_GIVEN) {
        torch_put_text(&w, "ref_points");
        torch_put_tensor(&w, 1, (size_t)c->ref_points, 1, c->ref);
    }
    torch_put_close(&w, TORCH_DICT);
    uint8_t *file = torch_finish(&w);
    free(moments);
    return file;
}
