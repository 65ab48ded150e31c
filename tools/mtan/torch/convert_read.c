/* From a checkpoint of the published code to a model. Names and shapes of the tensors determine the model. What they
 * leave open (reference points, heads of mTAND-Enc, the loss) comes from the user, otherwise from the checkpoint's
 * args, otherwise from a named configuration; otherwise it is assumed, and a remark says so. A tensor that is missing,
 * left over or of another shape is refused, because half a model would silently give wrong numbers. */
#include "convert.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/text_writer.h"
#include "../base/json_text.h"

enum { ERROR_SIZE = 512, PARTS = 3, NAME_SIZE = 96, MOST_ARGS = 1024, LONGEST_ARGS = 65536 };
static const char *const prefixes[PARTS] = {"rec.", "dec.", "classifier."};
static const char *const part_keys[PARTS] = {"rec_state_dict", "dec_state_dict", "classifier_state_dict"};

typedef struct reader {
    const torchfile *file;
    const pickle *p;
    int32_t part[PARTS]; /* state dicts, or -1 */
    int prefixed;        /* one dict for all parts, whose names have prefixes */
    int32_t args, settings;
    const convert_given *given;
    const mtan_config *recipe; /* the configuration named by the user, or NULL */
    mtan_config config;
    converted *out;
    size_t narrowed; /* tensors of float64 that were converted to mtan_real */
    double change;   /* the largest relative change of a value in that conversion */
    char *error;
} reader;

static int refuse(reader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(r->error, ERROR_SIZE, format, args);
    va_end(args);
    return 0;
}

static void remark(reader *r, const char *format, ...) {
    char text[ERROR_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    arrput(r->out->remarks, tool_text(text));
}

/* ---- contents of the checkpoint ---- */

static int is_tensor(const pickle *p, int32_t value) {
    return value >= 0 && p->values[value].kind == PICKLE_TENSOR;
}

/* The published scripts' three dicts, or a single state_dict: of the encoder, or of all parts with prefixes. */
static int find_parts(reader *r) {
    const int32_t root = r->file->root;
    const pickle_value *dict = pickle_dict(r->p, root);
    if (!dict) return refuse(r, "holds no dict: save a checkpoint as the published scripts do, or a state_dict");
    for (int i = 0; i < PARTS; i++) {
        r->part[i] = pickle_get(r->p, root, part_keys[i]);
        if (r->part[i] >= 0 && !pickle_dict(r->p, r->part[i])) return refuse(r, "%s is no dict", part_keys[i]);
    }
    r->args = pickle_get(r->p, root, "args");
    r->settings = pickle_get(r->p, root, "mtan");
    if (r->part[0] >= 0) return 1;
    if (arrlen(dict->items) < 2 || !is_tensor(r->p, dict->items[1]))
        return refuse(r, "has no rec_state_dict, and is no state_dict itself");
    const pickle_value *first = &r->p->values[dict->items[0]];
    r->prefixed = first->kind == PICKLE_TEXT && first->length > 4 && memcmp(first->text, "rec.", 4) == 0;
    r->part[0] = root;
    if (r->prefixed) r->part[1] = r->part[2] = root;
    return 1;
}

/* The tensor under a name of the parameter table, or NULL. */
static const pickle_tensor *find(const reader *r, const char *name) {
    for (int i = 0; i < PARTS; i++) {
        const size_t n = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], n) != 0) continue;
        const int32_t value = pickle_get(r->p, r->part[i], r->prefixed ? name : name + n);
        return is_tensor(r->p, value) ? &r->p->tensors[r->p->values[value].whole] : NULL;
    }
    return NULL;
}

/* Extent d of a tensor; 0: no such tensor or extent. An extent beyond the largest possible in a model is cut to
 * that. */
static int32_t extent(const reader *r, const char *name, int d) {
    const pickle_tensor *x = find(r, name);
    if (!x || d >= x->rank) return 0;
    return x->shape[d] < INT32_MAX / 4 ? (int32_t)x->shape[d] : INT32_MAX / 4;
}

static int32_t extent_in(const reader *r, const char *part, const char *name, int d) {
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "%s%s", part, name);
    return extent(r, full, d);
}

/* A number among the args: an int, a bool or a float. */
static int argument(const reader *r, const char *name, double *x) {
    const int32_t value = pickle_get(r->p, r->args, name);
    const pickle_value *v = value < 0 ? NULL : &r->p->values[value];
    if (!v) return 0;
    if (v->kind == PICKLE_INT || v->kind == PICKLE_BOOL) *x = (double)v->whole;
    else if (v->kind == PICKLE_FLOAT) *x = v->real;
    else return 0;
    return *x > -1e9 && *x < 1e9;
}

static const char *given_text(const reader *r, const char *key) {
    const mtan_file_pair *pairs = r->given ? r->given->settings : NULL;
    for (size_t i = 0; i < arrlenu(pairs); i++)
        if (strcmp(pairs[i].key, key) == 0) return pairs[i].value;
    return NULL;
}

/* ---- the model: names and shapes ---- */

static int interpolation_kind(reader *r, const char *part, mtan_interp_kind *kind) {
    if (extent_in(r, part, "att.linears.0.weight", 0)) *kind = MTAN_ATTENTION;
    else if (extent_in(r, part, "bandwidth.weight", 0)) *kind = MTAN_RBF;
    else if (extent_in(r, part, "linears.0.weight", 0)) *kind = MTAN_RNN3;
    else return refuse(r, "its tensors are not those of a published class: no %satt.linears.0.weight", part);
    return 1;
}

static mtan_classify_kind classify_of(const reader *r, int full) {
    if (!full) return extent(r, "rec.gru.weight_hh_l0", 0) ? MTAN_CLASSIFY_TIME : MTAN_CLASSIFY_RECORD;
    if (extent(r, "classifier.gru_rnn.weight_hh_l0", 0)) return MTAN_CLASSIFY_RECORD;
    return extent(r, "classifier.0.weight", 0) ? MTAN_CLASSIFY_TIME : MTAN_CLASSIFY_NONE;
}

static int choose_recipe(reader *r, int full, mtan_classify_kind classify) {
    const char *name = r->given ? r->given->recipe : NULL;
    const mtan_config *c = name ? r->given->published : NULL;
    if (!name) return 1;
    if (!c) return refuse(r, "there is no recipe %s", name);
    if ((c->kind == MTAN_FULL) != full || c->classify != classify)
        return refuse(r, "its tensors are not those of %s: they are of %s", name,
                      full ? classify == MTAN_CLASSIFY_NONE ? "mTAND-Full without a classifier" : "mTAND-Full"
                      : classify == MTAN_CLASSIFY_TIME ? "mTAND-Enc with a class per time"
                                                       : "mTAND-Enc");
    r->recipe = c;
    return 1;
}

/* Extent d of a tensor that must exist. */
static int need(reader *r, int32_t *size, const char *part, const char *name, int d) {
    *size = extent_in(r, part, name, d);
    return *size > 0 ? 1 : refuse(r, "misses the tensor %s%s", part, name);
}

/* The head: two hidden layers, or a single linear one. */
static int head_sizes(reader *r, const char *part) {
    mtan_config *c = &r->config;
    const int per_time = c->kind == MTAN_FULL && c->classify == MTAN_CLASSIFY_TIME;
    const char *first = per_time ? "0.weight" : "classifier.0.weight",
               *last = per_time ? "4.weight" : "classifier.4.weight";
    const char *single = per_time ? "0.weight" : "classifier.weight";
    c->head_hidden = extent_in(r, part, last, 0) ? extent_in(r, part, first, 0) : 0;
    return need(r, &c->classes, part, c->head_hidden ? last : single, 0);
}

/* One embedding for all heads, or one for each (Q3): `linear` has as many rows as there are embeddings. */
static void embedding_sizes(reader *r) {
    mtan_config *c = &r->config;
    static const char *const parts[] = {"rec.", "dec."};
    for (int i = 0; i < 2; i++) {
        const mtan_interp_kind kind = i ? c->decoder : c->encoder;
        if (kind == MTAN_RBF || (i == 1 && c->kind != MTAN_FULL)) continue;
        c->embed = extent_in(r, parts[i], kind == MTAN_RNN3 ? "linears.0.weight" : "att.linears.0.weight", 0);
        c->embedding = extent_in(r, parts[i], "periodic.weight", 0) ? MTAN_EMBED_LEARNED : MTAN_EMBED_FIXED;
        if (extent_in(r, parts[i], "linear.weight", 0) > 1) c->embed_heads = MTAN_EMBED_PER_HEAD;
    }
}

/* An encoder's tensors give only the product of channels and heads; a decoder's output, or another kind of encoder,
 * gives the channels. */
static int channels_and_heads(reader *r) {
    mtan_config *c = &r->config;
    const int32_t product = extent(r, "rec.att.linears.2.weight", 1) / 2;
    const char *heads = given_text(r, "enc_heads");
    double n;
    c->channels = extent(r, "dec.z0_to_obs.2.weight", 0);
    if (c->encoder == MTAN_RBF) c->channels = extent(r, "rec.bandwidth.weight", 0) / 2;
    if (c->encoder == MTAN_RNN3) c->channels = extent(r, "rec.cross.weight", 1) / 2;
    if (c->encoder != MTAN_ATTENTION) return 1;
    if (c->channels) return c->enc_heads = product / c->channels, 1;
    if (heads) c->enc_heads = atoi(heads);
    else if (argument(r, "num_heads", &n) || argument(r, "enc_num_heads", &n)) c->enc_heads = (int32_t)n;
    else if (r->recipe) c->enc_heads = product / r->recipe->channels;
    else if (r->settings < 0) remark(r, "assumed one attention head (--enc-heads): the tensors do not tell");
    /* A file written by mtan states its channels, and the weights are checked against them later. */
    if (c->enc_heads < 1 || (product % c->enc_heads && r->settings < 0))
        return refuse(r, "%d attention heads do not go with the shape of rec.att.linears.2.weight", (int)c->enc_heads);
    c->channels = product / c->enc_heads;
    return 1;
}

static int decoder_sizes(reader *r) {
    mtan_config *c = &r->config;
    c->mlp_hidden = extent(r, "rec.hiddens_to_z0.0.weight", 0); /* present: this is how mTAND-Full is recognised */
    if (!need(r, &c->latent, "rec.", "hiddens_to_z0.2.weight", 0) ||
        !need(r, &c->dec_hidden, "dec.", "gru_rnn.weight_hh_l0", 1))
        return 0;
    c->latent /= 2; /* mean and log-variance */
    if (c->decoder == MTAN_ATTENTION) c->dec_heads = extent(r, "dec.att.linears.2.weight", 1) / (2 * c->dec_hidden);
    return 1;
}

static int shapes_tell(reader *r) {
    mtan_config *c = &r->config;
    const int full = extent(r, "rec.hiddens_to_z0.0.weight", 0) > 0;
    const mtan_classify_kind classify = classify_of(r, full);
    const int per_time = !full && classify == MTAN_CLASSIFY_TIME;
    if (full && r->part[1] < 0) return refuse(r, "has the encoder of mTAND-Full, but no dec_state_dict");
    if (!choose_recipe(r, full, classify)) return 0;
    mtan_config_init(c, full ? MTAN_FULL : MTAN_ENC, classify, 1, 2);
    mtan_config_preset(c, MTAN_FAITHFUL);
    if (r->recipe) *c = *r->recipe;
    if (!interpolation_kind(r, "rec.", &c->encoder) || (full && !interpolation_kind(r, "dec.", &c->decoder))) return 0;
    if (!need(r, &c->enc_hidden, "rec.",
              full || c->encoder != MTAN_ATTENTION ? "gru_rnn.weight_hh_l0"
              : per_time                           ? "gru.weight_hh_l0"
                                                   : "enc.weight_hh_l0",
              1))
        return 0;
    if (full && !decoder_sizes(r)) return 0;
    if (classify == MTAN_CLASSIFY_NONE) c->classes = 0;
    else if (!head_sizes(r, full ? "classifier." : "rec.")) return 0;
    embedding_sizes(r);
    return channels_and_heads(r);
}

/* ---- what shapes leave open ---- */

/* Reads the args under the published scripts' names. A setting that is not among them stays as it is. */
static void args_tell(reader *r) {
    mtan_config *c = &r->config;
    double x;
    if (argument(r, "num_ref_points", &x)) c->ref_points = (int32_t)x;
    if (argument(r, "std", &x)) c->noise_std = x;
    if (argument(r, "norm", &x)) c->norm = x > 0 || x < 0;
    if (argument(r, "kl", &x)) c->kl_anneal = x > 0 || x < 0;
    if (argument(r, "k_iwae", &x)) c->samples = (int32_t)x;
    if (argument(r, "alpha", &x)) c->alpha = x;
    if (c->kind == MTAN_ENC && argument(r, "freq", &x)) c->embed_base = x; /* Q8: the other classes have no base */
    if (c->reference == MTAN_REF_EVEN && !argument(r, "num_ref_points", &x) && !r->recipe && r->settings < 0 &&
        !given_text(r, "ref_points"))
        remark(r, "assumed %d reference points%s", (int)c->ref_points,
               r->args >= 0 && c->kind == MTAN_ENC ? ", as the published script for mTAND-Enc has" : " (--ref-points)");
}

/* The script's options for training, as far as mtan has them. */
static void args_tell_training(reader *r) {
    converted *m = r->out;
    double x;
    if (argument(r, "lr", &x) && x > 0) m->lr = x;
    if (argument(r, "batch_size", &x) && x >= 1) m->batch = (int32_t)x;
    if (argument(r, "niters", &x) && x >= 1) m->niters = (int32_t)x;
    if (argument(r, "seed", &x) && x >= 0) m->seed = (int64_t)x;
    if (argument(r, "sample_tp", &x) && x > 0 && x <= 1) m->sample_tp = x;
}

static int set(reader *r, const char *key, const char *text, size_t length) {
    char value[64];
    if (length >= sizeof value) return 0;
    memcpy(value, text, length);
    value[length] = 0;
    return mtan_config_set(&r->config, key, value) == MTAN_OK;
}

/* The settings that convert_to_torch wrote, then the user's. */
static int settings_tell(reader *r) {
    for (int32_t i = 0; mtan_config_key(i); i++) {
        const char *key = mtan_config_key(i), *given = given_text(r, key);
        const int32_t value = pickle_get(r->p, r->settings, key);
        const pickle_value *v = value < 0 ? NULL : &r->p->values[value];
        if (v && (v->kind != PICKLE_TEXT || !set(r, key, v->text, v->length)))
            return refuse(r, "its setting mtan.%s has a value that it cannot have", key);
        if (given && !set(r, key, given, strlen(given))) return refuse(r, "%s cannot be %.40s", key, given);
    }
    if (r->config.kind == MTAN_ENC && r->config.classify == MTAN_CLASSIFY_TIME) r->config.reference = MTAN_REF_OBSERVED;
    return 1;
}

/* ---- weights ---- */

static int same_shape(const pickle_tensor *x, const mtan_param *param) {
    return x->rank == param->rank && x->shape[0] == (size_t)param->rows &&
           (x->rank == 1 || x->shape[1] == (size_t)param->cols);
}

/* Records the rounding of a float64 tensor. 0: a value is beyond the range of mtan_real. */
static int weigh_loss(reader *r, const mtan_tensor_view *view, const mtan_real *out) {
    double *wide = tool_calloc(view->count, sizeof *wide);
    int fits = mtan_view_read_f64(view, wide, view->count) == MTAN_OK;
    for (size_t i = 0; i < view->count && fits; i++) {
        const double change = wide[i] < 0 || wide[i] > 0 ? fabs(((double)out[i] - wide[i]) / wide[i]) : 0;
        fits = isfinite((double)out[i]) || !isfinite(wide[i]);
        if (change > r->change) r->change = change;
    }
    r->narrowed++;
    free(wide);
    return fits;
}

static int copy_reals(reader *r, const pickle_tensor *x, mtan_real *out) {
    mtan_tensor_view view;
    uint8_t *scratch = NULL;
    torch_view(r->file, x, &view, &scratch);
    int good = mtan_view_read(&view, out, view.count) == MTAN_OK;
    if (good && view.dtype == MTAN_DTYPE_F64 && MTAN_DTYPE_REAL != MTAN_DTYPE_F64) good = weigh_loss(r, &view, out);
    arrfree(scratch);
    return good;
}

/* Number of tensors in the state dicts. */
static size_t count_tensors(const reader *r) {
    size_t n = 0;
    for (int i = 0; i < (r->prefixed ? 1 : PARTS); i++) {
        const pickle_value *dict = pickle_dict(r->p, r->part[i]);
        for (size_t k = 1; dict && k < arrlenu(dict->items); k += 2) n += (size_t)is_tensor(r->p, dict->items[k]);
    }
    return n;
}

static int check_tensors(reader *r) {
    const int32_t n = mtan_param_count(&r->config);
    for (int32_t i = 0; i < n; i++) {
        mtan_param param;
        mtan_param_at(&r->config, i, &param);
        const pickle_tensor *x = find(r, param.name);
        if (!x) return refuse(r, "misses the tensor %s", param.name);
        if (!same_shape(x, &param)) return refuse(r, "%s has another shape than the model it seems to be", param.name);
    }
    if (count_tensors(r) == (size_t)n) return 1;
    return refuse(r, "has %zu tensors where the published class has %d", count_tensors(r), (int)n);
}

/* The (K) reference points of a model written by mtan that were given by the caller; they are stored after its
 * weights. */
static int copy_points(reader *r, size_t count) {
    const int32_t value = pickle_get(r->p, r->file->root, "ref_points");
    const pickle_tensor *x = is_tensor(r->p, value) ? &r->p->tensors[r->p->values[value].whole] : NULL;
    if (!x || x->rank != 1 || x->shape[0] != (size_t)r->config.ref_points)
        return refuse(r, "misses the tensor ref_points of its %d reference points", (int)r->config.ref_points);
    if (!copy_reals(r, x, r->out->weights + count))
        return refuse(r, "ref_points is not of a floating type, or beyond float");
    r->config.ref = r->out->weights + count;
    return mtan_config_check(&r->config) == MTAN_OK ? 1 : refuse(r, "a reference point is not finite");
}

static int copy_weights(reader *r) {
    const int points = r->config.reference == MTAN_REF_GIVEN;
    if (points) r->config.reference = MTAN_REF_EVEN; /* until the points are read */
    const mtan_status status = mtan_config_check(&r->config);
    if (status != MTAN_OK) return refuse(r, "no model has these settings: %s", mtan_status_message(status));
    if (!check_tensors(r)) return 0;
    const size_t count = mtan_weights_count(&r->config), more = points ? (size_t)r->config.ref_points : 0;
    r->out->weights = tool_calloc(count + more, sizeof *r->out->weights);
    for (int32_t i = 0; i < mtan_param_count(&r->config); i++) {
        mtan_param param;
        mtan_param_at(&r->config, i, &param);
        if (!copy_reals(r, find(r, param.name), r->out->weights + param.offset))
            return refuse(r, "%s is not of a floating type, or beyond float", param.name);
    }
    if (points) r->config.reference = MTAN_REF_GIVEN;
    if (points && !copy_points(r, count)) return 0;
    return mtan_model_init(&r->out->model, &r->config, r->out->weights, count) == MTAN_OK;
}

/* ---- the optimiser ---- */

typedef struct optimiser {
    int32_t state;
    const pickle_value *ids; /* of the parameters, in the script's order */
    mtan_real *moment1, *moment2;
    double step;
    int adamax; /* then the second moment is a maximum */
} optimiser;

/* A number, given directly or as a tensor of one element. */
static int number_of(const reader *r, int32_t value, double *x) {
    const pickle_value *v = value < 0 ? NULL : &r->p->values[value];
    mtan_tensor_view view;
    uint8_t *scratch = NULL;
    if (!v) return 0;
    if (v->kind == PICKLE_INT) return *x = (double)v->whole, 1;
    if (v->kind == PICKLE_FLOAT) return *x = v->real, 1;
    if (v->kind != PICKLE_TENSOR || r->p->tensors[v->whole].count != 1) return 0;
    torch_view(r->file, &r->p->tensors[v->whole], &view, &scratch);
    const int good = mtan_view_read_f64(&view, x, 1) == MTAN_OK;
    arrfree(scratch);
    return good;
}

/* The moments of one parameter, at `place` in the script's list. */
static int copy_moments(reader *r, optimiser *o, size_t place, const mtan_param *param) {
    const pickle_value *id = &r->p->values[o->ids->items[place]];
    const int32_t entry = id->kind == PICKLE_INT ? pickle_get_whole(r->p, o->state, id->whole) : -1;
    const int32_t first = pickle_get(r->p, entry, "exp_avg");
    const int32_t second = pickle_get(r->p, entry, o->adamax ? "exp_inf" : "exp_avg_sq");
    double step;
    if (!is_tensor(r->p, first) || !is_tensor(r->p, second) || !number_of(r, pickle_get(r->p, entry, "step"), &step))
        return 0;
    const pickle_tensor *m = &r->p->tensors[r->p->values[first].whole], *v = &r->p->tensors[r->p->values[second].whole];
    if (!same_shape(m, param) || !same_shape(v, param) || !(step >= 0 && step < 1e15)) return 0;
    if (place == 0) o->step = step;
    if (step < o->step || step > o->step) return 0;
    return copy_reals(r, m, o->moment1 + param->offset) && copy_reals(r, v, o->moment2 + param->offset);
}

/* The scripts list the parameters module by module: rec, dec, classifier; for interpolation dec comes first. */
static int copy_in_order(reader *r, optimiser *o, const int order[PARTS]) {
    const size_t narrowed = r->narrowed;
    size_t place = 0;
    int good = 1;
    for (int k = 0; k < PARTS; k++)
        for (int32_t i = 0; i < mtan_param_count(&r->config); i++) {
            mtan_param param;
            mtan_param_at(&r->config, i, &param);
            if (strncmp(param.name, prefixes[order[k]], strlen(prefixes[order[k]])) != 0) continue;
            good = good && place < arrlenu(o->ids->items) && copy_moments(r, o, place++, &param);
        }
    good = good && place == arrlenu(o->ids->items);
    if (!good) r->narrowed = narrowed;
    return good;
}

static int32_t first_group(const reader *r, int32_t optimizer) {
    const int32_t groups = pickle_get(r->p, optimizer, "param_groups");
    const pickle_value *list = groups < 0 ? NULL : &r->p->values[groups];
    return list && list->kind == PICKLE_LIST && arrlen(list->items) == 1 ? list->items[0] : -1;
}

static void read_optimiser(reader *r) {
    static const int orders[2][PARTS] = {{0, 1, 2}, {1, 0, 2}};
    const int interpolates = r->config.classify == MTAN_CLASSIFY_NONE;
    const int32_t saved = pickle_get(r->p, r->file->root, "optimizer_state_dict"), group = first_group(r, saved);
    const int32_t ids = pickle_get(r->p, group, "params");
    const size_t count = mtan_weights_count(&r->config);
    optimiser o = {pickle_get(r->p, saved, "state"), ids < 0 ? NULL : &r->p->values[ids], NULL, NULL, 0, 0};
    if (saved < 0) return;
    if (!(r->out->lr > 0)) number_of(r, pickle_get(r->p, group, "lr"), &r->out->lr);
    const pickle_value *state = pickle_dict(r->p, o.state);
    if (state && arrlen(state->items) == 0) return; /* of a run that has not started */
    o.adamax = state && arrlen(state->items) > 1 && pickle_get(r->p, state->items[1], "exp_inf") >= 0;
    o.moment1 = tool_calloc(count, sizeof *o.moment1), o.moment2 = tool_calloc(count, sizeof *o.moment2);
    if (o.ids && o.ids->kind == PICKLE_LIST &&
        (copy_in_order(r, &o, orders[interpolates]) || copy_in_order(r, &o, orders[!interpolates]))) {
        r->out->moment1 = o.moment1, r->out->moment2 = o.moment2, r->out->step = (int64_t)o.step;
        r->out->optimizer = o.adamax ? MTAN_ADAMAX : MTAN_ADAM;
        return;
    }
    free(o.moment1), free(o.moment2);
    remark(
        r,
        "left the optimiser's state out: it is not Adam's or Adamax's for these parameters in the published scripts' "
        "order");
}

/* ---- information about the checkpoint ---- */

static void print_value(FILE *out, const pickle_value *v) {
    char *text;
    if (v->kind == PICKLE_BOOL) fputs(v->whole ? "true" : "false", out);
    else if (v->kind == PICKLE_INT) fprintf(out, "%lld", (long long)v->whole);
    else if (v->kind == PICKLE_FLOAT) json_number(out, v->real);
    else if (v->kind == PICKLE_TEXT) {
        text = tool_calloc(v->length + 1, 1);
        memcpy(text, v->text, v->length);
        json_string(out, text);
        free(text);
    } else fputs("null", out);
}

static void print_args(FILE *out, void *context) {
    const reader *r = context;
    const pickle_value *dict = pickle_dict(r->p, r->args);
    fputc('{', out);
    for (size_t i = 0, k = 0; i + 1 < arrlenu(dict->items) && ftell(out) < LONGEST_ARGS; i += 2) {
        if (r->p->values[dict->items[i]].kind != PICKLE_TEXT) continue;
        if (k++) fputs(", ", out);
        print_value(out, &r->p->values[dict->items[i]]);
        fputs(": ", out);
        print_value(out, &r->p->values[dict->items[i + 1]]);
    }
    fputc('}', out);
}

/* The plain values of the args as JSON. */
static char *args_text(reader *r) {
    const pickle_value *dict = pickle_dict(r->p, r->args);
    size_t length;
    char *text;
    if (!dict || arrlen(dict->items) > MOST_ARGS) return NULL;
    text = text_write(print_args, r, &length);
    if (length >= LONGEST_ARGS) free(text), text = NULL;
    return text;
}

int convert_from_torch(converted *m, const torchfile *t, const convert_given *given, char *error) {
    reader r;
    double epoch;
    memset(&r, 0, sizeof r);
    memset(m, 0, sizeof *m);
    r.file = t, r.p = &t->pickle, r.given = given, r.out = m, r.error = error, r.settings = r.args = -1;
    error[0] = 0;
    if (!find_parts(&r) || !shapes_tell(&r) || (args_tell(&r), !settings_tell(&r)) || !copy_weights(&r)) {
        if (!error[0]) refuse(&r, "cannot be converted");
        return converted_free(m), 0;
    }
    args_tell_training(&r);
    read_optimiser(&r);
    if (number_of(&r, pickle_get(r.p, t->root, "epoch"), &epoch) && epoch > 0 && epoch < 1e9) m->epoch = (int64_t)epoch;
    m->args = args_text(&r);
    if (r.narrowed)
        remark(&r, "narrowed %zu tensors of float64: a value changed by %.2g of itself at most", r.narrowed, r.change);
    return 1;
}

void converted_free(converted *m) {
    for (size_t i = 0; i < arrlenu(m->remarks); i++) free(m->remarks[i]);
    arrfree(m->remarks);
    free(m->weights), free(m->moment1), free(m->moment2), free(m->args);
    memset(m, 0, sizeof *m);
}
