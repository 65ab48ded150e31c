/* See pretrain.h. */
#include "pretrain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"
#include "../model/recipes.h"
#include "../model/bundle.h"
#include "../model/data_sets.h"

/* ---- the plan ---- */

/* The encoder keeps its settings; of mTAND-Full the decoder does too. */
static void interpolating_config(mtan_config *c, const mtan_config *usual) {
    if (c->kind == MTAN_ENC) c->latent = usual->latent;
    c->kind = MTAN_FULL, c->classify = MTAN_CLASSIFY_NONE, c->classes = 0;
    c->task = MTAN_TASK_CLASSES, c->interval = 0;
    c->channels -= c->statics;
    c->statics = c->summaries = c->trees = 0;
    c->samples = usual->samples, c->kl_anneal = usual->kl_anneal, c->noise_std = usual->noise_std;
}

/* The whole data set, without labels. */
static void interpolating_source(source *s, const recipe *r) {
    const split_way all = {SPLIT_ALL, 0, 0, SPLIT_FOLD_COUNT, SPLIT_SEED};
    snprintf(s->variant, sizeof s->variant, "%s", s->set->variant[1]);
    s->interpolation = 1, s->observed = r->sample_low, s->forecast = 0;
    s->split = all;
    s->groups[0] = 0;
}

static void interpolating_plan(plan *q, const plan *p) {
    recipe r;
    recipe_for_own(&r, "interp", p->source.preset);
    *q = *p;
    if (!p->source.set->own) snprintf(q->name, sizeof q->name, "%.20s-interp", p->source.set->name);
    interpolating_config(&q->config, &r.config);
    interpolating_source(&q->source, &r);
    q->observed_low = r.sample_low, q->observed_high = r.sample_high;
    q->pretrain_epochs = 0, q->pretrained[0] = 0;
    q->batch = r.batch, q->lr = r.lr, q->optimizer = 0, q->shuffle = 1, q->ensemble = 1;
    q->schedule = SCHEDULE_COSINE, q->warmup = 0.05, q->lr_decay = 1, q->lr_floor = 0;
    q->clip = 1, q->decay = q->average = q->dropout = q->thin = 0;
    q->select = SELECT_MSE, q->patience = 0;
    strcpy(q->class_weights, "none");
}

/* ---- the records ---- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of the labelled validation and test records, sorted. A record subject@time adds the name of its subject. */
static char **judging_names(const dataset *d, const split *s) {
    char **names = NULL;
    for (int part = SPLIT_VALID; part <= SPLIT_TEST; part++)
        for (size_t i = 0; i < arrlenu(s->part[part]); i++) {
            const dataset_record *r = &d->records[s->part[part][i]];
            const char *name = dataset_name(d, (size_t)s->part[part][i]), *at = strrchr(name, '@');
            if (r->n_labels == 0) continue;
            arrput(names, tool_text(name));
            if (r->group < 0 || !at) continue;
            arrput(names, tool_text(name));
            arrlast(names)[at - name] = 0;
        }
    if (names) qsort(names, arrlenu(names), sizeof *names, by_text);
    return names;
}

/* Removes the records that judge the model; returns how many. */
static size_t leave_out(dataset *d, const dataset *labelled, const split *s) {
    char **names = judging_names(labelled, s);
    const size_t n = arrlenu(d->records);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const char *name = dataset_name(d, i);
        if (!names || !bsearch(&name, names, arrlenu(names), sizeof *names, by_text))
            d->records[kept++] = d->records[i];
    }
    arrsetlen(d->records, kept);
    for (size_t i = 0; i < arrlenu(names); i++) free(names[i]);
    arrfree(names);
    return n - kept;
}

/* Removes the static channels, which come first. */
static void drop_statics(dataset *d, int32_t statics) {
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        dataset_record *r = &d->records[i];
        mtan_event *e = dataset_events(d, r);
        int32_t kept = 0;
        for (int32_t k = 0; k < r->n_events; k++) {
            if (e[k].channel < statics) continue;
            e[kept] = e[k];
            e[kept++].channel -= statics;
        }
        r->n_events = kept;
    }
    for (int32_t c = 0; c < statics; c++) free(d->channels[c]);
    if (statics > 0) arrdeln(d->channels, 0, (size_t)statics);
    d->statics = 0;
}

/* p keeps ownership of the channel names. */
static prep varying_prep(const prep *p, int32_t statics) {
    prep own = *p;
    own.channel = NULL, own.channels = own.classes = NULL, own.number = NULL;
    own.positive = -1;
    for (size_t c = (size_t)statics; c < arrlenu(p->channel); c++) arrput(own.channel, p->channel[c]);
    for (size_t c = (size_t)statics; c < arrlenu(p->channels); c++) arrput(own.channels, p->channels[c]);
    return own;
}

static int read_records(pretraining *x, const prep *prepared, const char *path) {
    source_input in;
    memset(&in, 0, sizeof in);
    in.path = path, in.model = prepared, in.some = 1;
    if (!source_load(&x->data, &x->plan.source, &in)) return 0;
    return unit_matches(prepared, &x->data);
}

/* How many steps of pretraining are enough: synthetic series of 48 observations whose class depends on the period, 60
 * labelled records and 1500 without labels, AUC on 1000 others, three seeds: without pretraining 0.55, 0.54 and 0.50;
 * with 600 steps 0.55, 0.54 and 0.94; with 2400 steps 0.997, 0.985 and 0.994.
 *
 * Pretraining does not always help. With 600 steps: where the class depends on a local shape, 0.63, 0.66 and 0.57
 * without it and 0.60, 0.54 and 0.54 with it; where it depends on two channels that move together, 0.56, 0.51 and 0.52
 * without it and 0.63, 0.57 and 0.55 with it. PhysioNet, `mtan train physionet-enc --preset best --trees 0 --pretrain
 * set-b.tar.gz`, validation AUC without and with it: all 2560 training records 0.827 and 0.825, another seed 0.833 and
 * 0.829; the first 250 of them, 100 epochs, three seeds, 0.663, 0.676 and 0.660 without it, 0.671, 0.679 and 0.667 with
 * it. */
enum { ENOUGH_STEPS = 2400 };

/* A resumed run must continue with the records that it started with. */
static int remember(plan *p, const split *s, const char *path) {
    char hash[sizeof p->pretrained];
    snprintf(hash, sizeof hash, "%016" PRIx64, s->values);
    if (p->pretrained[0] && strcmp(p->pretrained, hash) != 0)
        return complain("--pretrain %s: not the records that this run was pretrained on", path), 0;
    strcpy(p->pretrained, hash);
    return 1;
}

int pretrain_open(pretraining *x, plan *p, const dataset *labelled, const split *s, const prep *prepared,
                  const char *path) {
    memset(x, 0, sizeof *x);
    interpolating_plan(&x->plan, p);
    if (!read_records(x, prepared, path)) return 0;
    x->left_out = leave_out(&x->data, labelled, s);
    if (arrlen(x->data.records) == 0)
        return complain("--pretrain %s: no record is left that is not a validation or test record of --data", path), 0;
    if (!source_split(&x->split, &x->plan.source, &x->data) || !remember(p, &x->split, path)) return 0;
    drop_statics(&x->data, p->config.statics);
    x->prep = varying_prep(prepared, p->config.statics);
    prep_apply(&x->prep, &x->data, &x->split);
    if (p->pretrain_epochs == 0)
        p->pretrain_epochs = plan_enough_epochs(&x->plan, arrlenu(x->data.records), ENOUGH_STEPS);
    x->plan.epochs = p->pretrain_epochs;
    return 1;
}

void pretrain_close(pretraining *x) {
    arrfree(x->prep.channel), arrfree(x->prep.channels);
    split_free(&x->split), dataset_free(&x->data);
    memset(x, 0, sizeof *x);
}

/* ---- the weights ---- */

/* The interpolating model's name for a tensor. The reference implementation names the recurrent layer of mTAND-Enc
 * differently from that of mTAND-Full. mTAND-Enc's layer runs forwards in time, as the first of mTAND-Full's two layers
 * does. */
static void name_in_full(char out[MTAN_NAME_SIZE], const char *name) {
    static const char enc[] = "rec.enc.";
    const int recurrent = strncmp(name, enc, sizeof enc - 1) == 0;
    snprintf(out, MTAN_NAME_SIZE, "%s%.*s", recurrent ? "rec.gru_rnn." : "", MTAN_NAME_SIZE - 16,
             recurrent ? name + sizeof enc - 1 : name);
}

static int find_tensor(mtan_param *found, const mtan_config *c, const mtan_param *like) {
    char name[MTAN_NAME_SIZE];
    name_in_full(name, like->name);
    return param_find(found, c, name) && found->rows == like->rows && found->cols == like->cols;
}

int32_t pretrain_give(const mtan_config *to, mtan_real *weights, const mtan_model *from) {
    mtan_param p, theirs;
    int32_t given = 0;
    for (int32_t i = 0; i < mtan_param_count(to); i++) {
        if (mtan_param_at(to, i, &p) != MTAN_OK || !find_tensor(&theirs, &from->config, &p)) continue;
        memcpy(weights + p.offset, from->weights + theirs.offset, (size_t)p.rows * (size_t)p.cols * sizeof *weights);
        given++;
    }
    return given;
}
