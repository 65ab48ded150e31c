/* See plan.h. */
#include "plan.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../options/option_table.h"
#include "../options/settings.h"
#include "recipes.h"
#include "data_sets.h"
#include "golden_record.h"
#include "needs.h"
#include "../run/solver_room.h"

/* ---- the numbers of a plan: one table for options, model files and --resume ---- */

typedef struct field {
    const char *name; /* as an option; in files mtan.plan.<name> */
    char type;        /* i int32_t, l int64_t, d double */
    size_t offset;
    double low, high; /* of one that is no number on the command line */
    int may_change;   /* by an option when a run is resumed */
    double otherwise; /* in a file from before there was such a field; NAN: it always was there */
} field;

#define NUMBER(name, type, member, may_change)                                                                         \
    { name, type, offsetof(plan, member), NAN, NAN, may_change, NAN }
#define LATER(name, type, member, otherwise)                                                                           \
    { name, type, offsetof(plan, member), NAN, NAN, 0, otherwise }
#define OTHER(name, type, member, low, high)                                                                           \
    { name, type, offsetof(plan, member), low, high, 0, NAN }
static const field fields[] = {
    NUMBER("epochs", 'i', epochs, 1),
    NUMBER("batch", 'i', batch, 0),
    NUMBER("patience", 'i', patience, 1),
    NUMBER("lr", 'd', lr, 0),
    NUMBER("clip", 'd', clip, 0),
    NUMBER("dropout", 'd', dropout, 0),
    NUMBER("thin", 'd', thin, 0),
    LATER("lr-decay", 'd', lr_decay, 1),
    LATER("lr-floor", 'd', lr_floor, 0),
    LATER("warmup", 'd', warmup, 0),
    LATER("decay", 'd', decay, 0),
    LATER("average", 'd', average, 0),
    LATER("kl-weight", 'd', kl_weight, 1),
    LATER("ensemble", 'i', ensemble, 1),
    LATER("pretrain-epochs", 'i', pretrain_epochs, 0),
    NUMBER("time-scale", 'd', time_scale, 0),
    NUMBER("seed", 'l', seed, 0),
    OTHER("observed-low", 'd', observed_low, 0, 1),
    OTHER("observed-high", 'd', observed_high, 0, 1),
    OTHER("shuffle", 'i', shuffle, 0, 1),
    OTHER("optimizer", 'i', optimizer, 0, 1),
    OTHER("select", 'i', select, 0, SELECT_LAST),
    OTHER("scale", 'i', scale, 0, PREP_KINDS - 1),
    {"schedule", 'i', offsetof(plan, schedule), 0, SCHEDULE_COSINE, 0, SCHEDULE_EXPONENTIAL},
    {"refit", 'i', offsetof(plan, refit), 0, REFIT_TREES, 0, REFIT_NOTHING},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* Whether it is an option that takes a number. */
static int is_number(const field *f) {
    return isnan(f->low);
}

/* A file may say what the command line may: the range of a number stands in the table of options. */
static int field_takes(const field *f, double x) {
    const option *number = is_number(f) ? option_of("train", f->name) : NULL;
    return x >= (number ? number->low : f->low) && x <= (number ? number->high : f->high);
}

static double field_get(const plan *p, const field *f) {
    const char *at = (const char *)p + f->offset;
    int32_t i;
    int64_t l;
    double d;
    if (f->type == 'i') return memcpy(&i, at, sizeof i), (double)i;
    if (f->type == 'l') return memcpy(&l, at, sizeof l), (double)l;
    return memcpy(&d, at, sizeof d), d;
}

static void field_set(plan *p, const field *f, double x) {
    char *at = (char *)p + f->offset;
    const int32_t i = (int32_t)x;
    const int64_t l = (int64_t)x;
    if (f->type == 'i') memcpy(at, &i, sizeof i);
    else if (f->type == 'l') memcpy(at, &l, sizeof l);
    else memcpy(at, &x, sizeof x);
}

/* ---- words ---- */

/* The place of a word in a list, -1 with a message when it is none of them. */
static int word_option(const options *o, const char *name, int otherwise, const char *const *words) {
    const char *text = option_text(o, name, NULL);
    char all[128] = "";
    if (!text) return otherwise;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) return i;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", words[i]);
    }
    complain("--%s %s: must be one of %s", name, text, all);
    return -1;
}

static const char *const answers[] = {"no", "yes", NULL}, *const optimizers[] = {"adam", "adamax", NULL},
                         *const selections[] = {"loss", "auc", "mse", "accuracy", "last", NULL},
                         *const schedules[] = {"constant", "exponential", "cosine", NULL},
                         *const refits[] = {"nothing", "all", "trees", NULL}, *const scales[] = {"none",   "published",
                                                                                                 "minmax", "zscore",
                                                                                                 "times",  NULL};

/* The words that a field of the plan stands for, in the order of its numbers, or NULL: it is a number. */
static const char *const *words_of(const char *name) {
    static const struct {
        const char *name;
        const char *const *words;
    } choices[] = {{"shuffle", answers},    {"optimizer", optimizers}, {"select", selections},
                   {"schedule", schedules}, {"refit", refits},         {"scale", scales}};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (strcmp(name, choices[i].name) == 0) return choices[i].words;
    return NULL;
}

const char *plan_word(const char *name, double value) {
    const char *const *words = words_of(name);
    for (int k = 0; words && words[k]; k++)
        if (value >= k && value <= k) return words[k];
    return NULL;
}

/* ---- defaults ---- */

static void faithful_defaults(plan *p, const recipe *r) {
    p->observed_low = p->observed_high = r->sample_low;
}

static int is_mtand_of_records(const plan *p) {
    return !p->config.architecture && p->config.classify == MTAN_CLASSIFY_RECORD;
}

static int is_mtand_enc(const plan *p) {
    return is_mtand_of_records(p) && p->config.kind == MTAN_ENC;
}

/* A setting of the model, or a number or a word of the plan, by the name of its option. */
static void take_setting(plan *p, const data_setting *s) {
    const char *const *words = words_of(s->key);
    double value = atof(s->value);
    for (int k = 0; words && words[k]; k++)
        if (strcmp(words[k], s->value) == 0) value = k;
    for (const field *f = fields; f < fields + FIELDS; f++)
        if (strcmp(f->name, s->key) == 0) {
            field_set(p, f, value);
            return;
        }
    setting_set(&p->config, s->key, s->value);
}

static void take_settings(plan *p, const data_setting *s) {
    for (; s && s->key; s++) take_setting(p, s);
}

/* Learning rate, dropout and thinning of mTAND-Enc were chosen on PhysioNet's validation records, seeds 0 and 1; mean of the best
 * validation losses: lr 1e-3 0.299, 3e-4 0.296; 3e-4 with batch 32, dropout 0.5 and thinning 0.3 0.297; 5e-4 with dropout 0.5 and
 * thinning 0.3 0.298; 1e-3 with dropout 0.5 and thinning 0.4 0.300, with 64 hidden units and 0.5, 0.3 0.299. */
static void correct_defaults(plan *p, const recipe *r) {
    p->shuffle = 1;
    p->clip = p->config.kind == MTAN_FULL ? 1 : 0;
    p->patience = p->source.interpolation ? 0 : 15;
    p->observed_low = r->sample_low, p->observed_high = r->sample_high;
    if (is_mtand_enc(p)) {
        p->dropout = 0.3, p->thin = 0.2;
        if (p->source.set->enc_rate > 0) p->lr = p->source.set->enc_rate;
    }
    if (r->reconstructs) take_settings(p, p->source.set->reconstructed);
    if (p->source.interpolation && p->source.set->curves_again) p->refit = REFIT_ALL;
}

static int is_mtand_of_curves(const plan *p) {
    return !p->config.architecture && p->source.interpolation;
}

/* A model that interpolates. Shown a share of the points and asked for all of them, it learns to fill gaps; shown all, to copy. Beyond the
 * paper, its latent state need not look like noise: the KL divergence does not count, and predictions have the state's mean. */
static void curves_defaults(plan *p) {
    const int best = p->source.preset == MTAN_BEST;
    p->observed_low = 0.5, p->observed_high = 0.9;
    p->schedule = SCHEDULE_COSINE, p->warmup = 0.05;
    p->config.samples = 1;
    if (best) p->config.kl_anneal = 0, p->kl_weight = 0, p->config.predict_samples = 0;
    take_settings(p, p->source.set->curves[best]);
}

/* What goes beyond the paper, for records with a class. Made-up sets of 600 records in which one thing decides, test accuracy, correct
 * and best (a random forest on 45 features): the mean 0.81 and 0.79 (0.79), the spread 0.59 and 0.93 (0.97), where the observations lie
 * 0.62 and 1.00 (1.00), the period 0.53 and 0.97 (1.00); a third of the time. Trees change little there: data_sets.c has where they help.
 *
 * The shapes of `summaries` 2 were chosen on 800 made-up light curves of 28 kinds of stars, drawn three times, test accuracy: 0.48, 0.50 and 0.48
 * without them (regression on summaries 0.48, 0.52, 0.42), 0.71, 0.70 and 0.70 with them; without trees 0.33, 0.35, 0.31 and 0.54, 0.65, 0.53. A
 * random forest on 18 features, quantiles among them, has 0.78, 0.75 and 0.80. 240 records in which one thing decides, drawn three times,
 * AUC of 1000 more, without and with shapes: the mean 0.900 and 0.902 (correct 0.922), the spread 0.918 and 0.928, a local shape 0.973 and
 * 0.998, the period 0.970 and 0.971, how many there are 0.805 and 0.788. Then dropout 0.5 with thinning 0.3 instead of 0.3 with 0.2: 0.908,
 * 0.927, 0.998, 0.973 and 0.792.
 *
 * The course of `summaries` 3 was chosen on eight sets of the UCR and UEA archives with half of the points left out, test accuracy without and with it:
 * JapaneseVowels 0.961 and 0.977, BasicMotions 1 and 1, GunPoint 0.725 and 0.750, ItalyPowerDemand 0.973 and 0.977, ArrowHead 0.810 and 0.857, OSULeaf
 * 0.625 and 0.693, ACSF1 0.50 and 0.55, PLAID 0.814 and 0.809; the stars 0.71, 0.70, 0.69 and 0.70, 0.70, 0.70; one thing decides (AUC, order as
 * above) 0.907, 0.927, 0.998, 0.971, 0.792 and 0.898, 0.925, 0.999, 0.992, 0.777.
 *
 * Then what is trained once more on training and validation records, nothing, trees or all: the stars, mean of the three, 0.704, 0.730 and 0.734, the eight
 * sets 0.827, 0.825 and 0.818, one thing decides 0.898, 0.925, 0.999, 0.992, 0.777; 0.898, 0.925, 0.999, 0.992, 0.795; 0.898, 0.929, 0.999, 0.994, 0.794.
 * Trees take no time worth mentioning, all takes as long again.
 *
 * Where the mean alone decides, 240 records, AUC of 1000 more, correct has 0.917 over twelve draws, as much as there is to have, and best had 0.895. Eight
 * draws of the network without trees: as in correct 0.916, and with one thing of best's each, log frequencies 0.880, statistics 0.903, summaries 0.908.
 * Decay 10 to 100, dropout 0.7, thinning 0.5, half the units or a third of the rate bring 0.004 at most, and lose period or place. A regression
 * has 0.912, so half of the trees go on from one (fit/stairs.h). AUC of others, mean of eight draws, all trees from nothing and so: the mean 0.896
 * and 0.904, the spread 0.943 and 0.949, where they lie 0.993 both, how many there are 0.795 and 0.796, a local shape 0.999 and 0.998, the period
 * 0.949 and 0.953, the trend of the README's example 0.893 both. Where validation rather than a mean of both chose, the example had 0.885; a
 * regression beside the trees, from which none goes on, 0.996 for the shape and 0.951 for the period.
 *
 * A number to predict, 300 records of two channels, RMSE on 800 others, mean of four draws: without trees, with them, a random forest on 38 features and
 * gradient boosting on these (scikit-learn's defaults): the mean 0.430, 0.411, 0.428, 0.452; the spread 0.353, 0.321, 0.308, 0.322; the slope 0.449,
 * 0.430, 0.414, 0.438; a mean times the sign of a slope 0.798, 0.766, 0.770, 0.815; a squared mean 0.885, 0.857, 0.857, 0.954; a period 0.672, 0.613,
 * 0.601, 0.608; steps of mean and spread 0.798, 0.756, 0.709, 0.726. */
static void best_defaults(plan *p) {
    p->config.enc_hidden = 64, p->config.ref_points = 64, p->config.trees = 200;
    p->epochs = 0; /* by the data: plan_enough_epochs */
    p->lr = 1e-3, p->schedule = SCHEDULE_COSINE, p->warmup = 0.05, p->decay = 1;
    p->select = SELECT_AUC, p->patience = 0, p->dropout = 0.5, p->thin = 0.3, p->refit = REFIT_TREES;
    take_settings(p, p->source.set->best);
}

static int own_recipe(recipe *r, const options *o, mtan_preset preset) {
    const char *model = option_text(o, "model", NULL);
    if (!model) return complain("own data needs --model enc, full, per-time, interp or a baseline"), 0;
    if (recipe_for_own(r, model, preset)) return 1;
    complain("--model %s: must be enc, full, per-time, interp or a baseline: `mtan help train` lists them", model);
    return 0;
}

/* "physionet-enc" is a model of the data "physionet". */
static void plan_start(plan *p, const char *name, const recipe *r, mtan_preset preset) {
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", name);
    p->source.set = data_set_named(name, strcspn(name, "-"));
    p->config = r->config;
    p->source.preset = preset;
}

static int no_configuration(const char *name) {
    char names[2][RECIPE_NAME]; /* the one that is looked at, and the nearest so far */
    const char *nearest = NULL, *before;
    char all[256], guess[RECIPE_NAME + 32] = "";
    int best = strlen(name) > 5 ? 4 : 3, used = 0;
    keep_nearer(name, "own", &nearest, &best);
    for (int i = 0; recipe_name(i, names[used]); i++) {
        before = nearest;
        keep_nearer(name, names[used], &nearest, &best);
        if (nearest != before) used = !used;
    }
    if (nearest) snprintf(guess, sizeof guess, " did you mean %s?", nearest);
    recipe_list(all, sizeof all);
    complain("train: no configuration %s;%s %shere are %s, own, and those of the baselines: `mtan help train`", name,
             guess, nearest ? "T" : "t", all);
    return 0;
}

int plan_is_named(const options *o) {
    const char *name = o->argument[0];
    const data_set *set = data_set_named(name, strlen(name));
    recipe r;
    return (set && set->own) || recipe_named(&r, name, MTAN_CORRECT) || no_configuration(name);
}

static int plan_named(plan *p, const options *o, recipe *r) {
    const char *name = o->argument[0];
    const data_set *set = data_set_named(name, strcspn(name, "-"));
    const int preset = word_option(o, "preset", (int)(set ? set->preset : MTAN_CORRECT), preset_names);
    if (preset < 0) return 0;
    if (set && set->own && strcmp(name, set->name) == 0) {
        if (!own_recipe(r, o, (mtan_preset)preset)) return 0;
    } else if (!recipe_named(r, name, (mtan_preset)preset)) return no_configuration(name);
    plan_start(p, name, r, (mtan_preset)preset);
    return 1;
}

/* What the data set and the preset decide. */
static void source_defaults(plan *p) {
    source *s = &p->source;
    const data_defaults *d = &s->set->defaults[s->preset == MTAN_FAITHFUL ? MTAN_FAITHFUL : MTAN_CORRECT];
    const int task = s->interpolation = p->config.classify == MTAN_CLASSIFY_NONE;
    snprintf(s->variant, sizeof s->variant, "%s", s->set->variant[task]);
    s->split.kind = d->split[task], s->split.by_group = s->set->by_group;
    s->split.folds = SPLIT_FOLD_COUNT, s->split.seed = SPLIT_SEED;
    s->observed = task ? s->set->observed : 1;
    strcpy(s->origin, "auto");
    strcpy(p->class_weights, "none");
    p->scale = d->scale[task];
    p->time_scale = p->config.architecture ? d->baselines_time_scale : d->time_scale;
    p->select = task ? SELECT_MSE : SELECT_LOSS;
}

static int apply_words(plan *p, const options *o) {
    const int shuffle = word_option(o, "shuffle", p->shuffle, answers);
    const int optimizer = word_option(o, "optimizer", p->optimizer, optimizers);
    const int selection = word_option(o, "select", (int)p->select, selections);
    const int scale = word_option(o, "scale", (int)p->scale, scales);
    const int refit = word_option(o, "refit", (int)p->refit, refits);
    if (shuffle < 0 || optimizer < 0 || selection < 0 || scale < 0 || refit < 0) return 0;
    p->shuffle = shuffle, p->optimizer = optimizer, p->select = (plan_select)selection, p->scale = (prep_kind)scale;
    p->refit = (plan_refit)refit;
    if (p->select != SELECT_LAST && p->source.interpolation != (p->select == SELECT_MSE))
        return complain("--select %s does not go with this model", selections[selection]), 0;
    return 1;
}

/* A factor of the rate makes the schedule exponential, where no other is asked for. */
static int apply_schedule(plan *p, const options *o) {
    const int falls = option_given(o, "lr-decay") && p->lr_decay < 1;
    const int schedule = word_option(o, "schedule", falls ? SCHEDULE_EXPONENTIAL : (int)p->schedule, schedules);
    if (schedule < 0) return 0;
    if (option_given(o, "lr-decay") && schedule != SCHEDULE_EXPONENTIAL && (falls || schedule == SCHEDULE_COSINE))
        return complain("--lr-decay is for --schedule exponential, not %s", schedules[schedule]), 0;
    if (schedule == SCHEDULE_EXPONENTIAL && p->lr_decay >= 1 && option_given(o, "schedule"))
        return complain("--schedule exponential needs --lr-decay, the factor of a step"), 0;
    p->schedule = (plan_schedule)schedule;
    return 1;
}

/* ---- weights of the classes ---- */

/* Numbers between commas, each from 0 to 1e6, appended to an stb_ds array; 0: they are something else. */
static int parse_weights(double **out, const char *text) {
    for (;;) {
        char *end;
        const double x = strtod(text, &end);
        if (end == text || !(x >= 0 && x <= 1e6)) return 0;
        arrput(*out, x);
        if (!*end) return 1;
        if (*end != ',') return 0;
        text = end + 1;
    }
}

static int apply_class_weights(plan *p, const options *o) {
    const char *text = option_text(o, "class-weights", p->class_weights);
    double *numbers = NULL;
    const int good = strcmp(text, "none") == 0 || strcmp(text, "balanced") == 0 || parse_weights(&numbers, text);
    arrfree(numbers);
    if (!good || strlen(text) >= sizeof p->class_weights)
        return complain("--class-weights %s: must be none, balanced or a number for each class, between commas", text),
               0;
    if (p->config.classify == MTAN_CLASSIFY_NONE && strcmp(text, "none") != 0)
        return complain("--class-weights is for models that classify"), 0;
    if (text != p->class_weights) strcpy(p->class_weights, text);
    return 1;
}

static const char *const task_words[] = {"classes", "a number", "several labels, each true or not"};

const char *plan_task_words(const plan *p) {
    return task_words[p->config.task];
}

/* Whether what was chosen can be trained once more, on the validation records too. The widths of intervals and bands are
 * found on these, for the model that has not learned from them. */
static int fit_refit(const plan *p) {
    const mtan_config *c = &p->config;
    if (p->refit != REFIT_ALL) return 1;
    if (p->source.interpolation && c->variance == MTAN_VARIANCE_LEARNED)
        return complain(
                   "--refit all does not go with --variance learned, whose bands are fitted on the validation records"),
               0;
    if (p->source.interpolation || c->task == MTAN_TASK_CLASSES) return 1;
    return complain("--refit is for classes and curves, and the labels are %s", task_words[c->task]), 0;
}

static int fit_selection(const plan *p) {
    if (p->select != SELECT_ACCURACY || p->config.task == MTAN_TASK_CLASSES) return 1;
    return complain("--select accuracy is for classes, and the labels are %s", task_words[p->config.task]), 0;
}

/* As many numbers as classes. */
static int fit_class_weights(const plan *p) {
    double *numbers = NULL;
    const int given = parse_weights(&numbers, p->class_weights);
    const size_t n = arrlenu(numbers);
    arrfree(numbers);
    if (p->config.task != MTAN_TASK_CLASSES && strcmp(p->class_weights, "none") != 0)
        return complain("--class-weights is for classes, and the labels are %s", task_words[p->config.task]), 0;
    if (!given || n == (size_t)p->config.classes) return 1;
    return complain("--class-weights has %zu numbers, and the data %d classes", n, (int)p->config.classes), 0;
}

/* n / (C n_c), as scikit-learn's class_weight balanced has it, of the training records' labels; 0 for a class without any. */
static void balance_weights(double *weight, const dataset *d, const int32_t *train) {
    const size_t classes = arrlenu(weight);
    double total = 0;
    for (size_t i = 0; i < arrlenu(train); i++) {
        const dataset_record *r = &d->records[train[i]];
        for (int32_t k = 0; k < r->n_labels; k++) {
            const int32_t label = d->labels[r->label0 + (size_t)k];
            if (label >= 0) weight[label]++, total++;
        }
    }
    for (size_t c = 0; c < classes; c++) weight[c] = weight[c] > 0 ? total / ((double)classes * weight[c]) : 0;
}

double *plan_class_weights(const plan *p, const dataset *d, const split *s) {
    double *weight = NULL;
    if (parse_weights(&weight, p->class_weights)) return weight;
    arrfree(weight);
    if (strcmp(p->class_weights, "balanced") != 0) return NULL;
    for (int32_t c = 0; c < p->config.classes; c++) arrput(weight, 0);
    balance_weights(weight, d, s->part[SPLIT_TRAIN]);
    return weight;
}

static int has_key(const mtan_config *c, const char *key) {
    for (int32_t i = 0; setting_key(c, i); i++)
        if (strcmp(setting_key(c, i), key) == 0) return 1;
    return 0;
}

static int apply_settings(mtan_config *c, const options *o) {
    char name[64], models[256];
    const char *key, *text;
    for (int32_t i = 0; (key = baseline_key(i)) != NULL; i++) {
        if (has_key(c, key) || !option_given(o, setting_option(key, name))) continue;
        baseline_key_models(key, models, sizeof models);
        return complain("--%s is a setting of %s, not of %s", name, models, model_title(c)), 0;
    }
    for (int32_t i = 0; (key = setting_key(c, i)) != NULL; i++)
        if ((text = option_text(o, setting_option(key, name), NULL)) && !setting_set(c, key, text))
            return complain("--%s %s: not a value of this setting", name, text), 0;
    return 1;
}

static void plan_defaults(plan *p, const recipe *r) {
    source_defaults(p);
    p->batch = r->batch, p->epochs = r->epochs, p->lr = r->lr;
    p->optimizer = r->optimizer == MTAN_ADAMAX, p->lr_decay = r->decay, p->lr_floor = r->floor;
    p->schedule = p->lr_decay < 1 ? SCHEDULE_EXPONENTIAL : SCHEDULE_CONSTANT;
    p->ensemble = 1, p->kl_weight = 1;
    if (p->source.preset == MTAN_FAITHFUL) faithful_defaults(p, r);
    else correct_defaults(p, r);
    if (p->source.preset == MTAN_BEST && is_mtand_of_records(p)) best_defaults(p);
    if (p->source.preset != MTAN_FAITHFUL && is_mtand_of_curves(p)) curves_defaults(p);
}

int plan_published(plan *p, const char *name) {
    recipe r;
    if (!recipe_named(&r, name, MTAN_FAITHFUL)) return 0;
    plan_start(p, name, &r, MTAN_FAITHFUL);
    plan_defaults(p, &r);
    return 1;
}

static void apply_numbers(plan *p, const options *o) {
    for (const field *f = fields; f < fields + FIELDS; f++)
        if (is_number(f)) field_set(p, f, option_number(o, f->name, field_get(p, f)));
}

/* People's own records may be in any order, which the published folds rely on. */
static int apply_split(source *s, const options *o) {
    const char *groups = option_text(o, "groups", NULL);
    split_way *w = &s->split;
    if (option_given(o, "fold"))
        w->kind = s->set->own || option_given(o, "folds") ? SPLIT_STRATIFIED_FOLDS : SPLIT_FOLDS;
    if (option_given(o, "splits")) w->kind = SPLIT_GIVEN;
    if (option_given(o, "splits") && option_given(o, "fold"))
        return complain("--splits and --fold exclude each other"), 0;
    if (option_given(o, "folds") && !option_given(o, "fold"))
        return complain("--folds N needs --fold, which of them to leave out; `mtan cv` takes each in turn"), 0;
    w->by_group |= option_given(o, "by-group") || groups;
    if (groups && !s->set->own) return complain("--groups is for own data; --by-group keeps the groups of others"), 0;
    if (groups && strlen(groups) >= sizeof s->groups) return complain("--groups %s: too long a name", groups), 0;
    if (groups) snprintf(s->groups, sizeof s->groups, "%s", groups);
    return 1;
}

/* Options that set a field as they are. */
static int apply_fields(source *s, const options *o) {
    for (const source_field *f = source_fields; f->key; f++) {
        const option *x = f->option ? option_of("train", f->option) : NULL;
        const int place = f->words ? word_option(o, f->option, (int)source_number(s, f), f->words) : 0;
        if (place < 0) return 0;
        if (f->words) source_set(s, f, place);
        else if (x && (x->kind == OPTION_NUMBER || x->kind == OPTION_WHOLE))
            source_set(s, f, option_number(o, f->option, source_number(s, f)));
    }
    if (option_given(o, "origin")) snprintf(s->origin, sizeof s->origin, "%s", option_text(o, "origin", ""));
    return 1;
}

static int apply_source(plan *p, const options *o) {
    source *s = &p->source;
    if (option_given(o, "observed") && !s->interpolation)
        return complain("--observed is for models that interpolate; --thin leaves out observations of others"), 0;
    if (option_given(o, "forecast") && !s->interpolation)
        return complain("--forecast is for models that interpolate: --model interp"), 0;
    if (option_given(o, "forecast") && option_given(o, "observed"))
        return complain("--forecast shows the past, --observed a share of the times: one of them"), 0;
    p->observed_low = option_number(o, "observed", p->observed_low);
    p->observed_high = option_number(o, "observed", p->observed_high);
    return apply_fields(s, o) && apply_split(s, o);
}

/* Records without labels are for an encoder that a label of each record is predicted from. */
static int apply_pretraining(const plan *p, const options *o) {
    const int given = option_given(o, "pretrain");
    if (given && (p->config.architecture || p->config.classify != MTAN_CLASSIFY_RECORD))
        return complain("--pretrain is for mTAND-Enc and mTAND-Full, with labels of records"), 0;
    if (given || p->pretrained[0] || !option_given(o, "pretrain-epochs")) return 1;
    return complain("--pretrain-epochs needs --pretrain DATA, the records without labels"), 0;
}

/* What the options say replaces what the plan has. */
static int plan_options(plan *p, const options *o) {
    apply_numbers(p, o);
    if (p->config.architecture && p->dropout > 0)
        return complain("--dropout is for mTAN's models: %s has none", model_title(&p->config)), 0;
    return board_goal_read(&p->goal, o) && apply_source(p, o) && apply_words(p, o) && apply_schedule(p, o) &&
           apply_class_weights(p, o) && apply_pretraining(p, o) && apply_settings(&p->config, o) &&
           needs_are_met(p, o, 0);
}

/* The least deviation where it is learned, in the model's units: below what data in the range 0 to 1 is worth. */
#define LEAST_NOISE 0.01

/* Local statistics are attention's. What a preset has of them, an encoder without attention does not; and a variance is learned from one
 * of them, the intensity. Its bands are fitted on the validation records: fit_refit. */
static void fit_encoder(plan *p, const options *o) {
    mtan_config *c = &p->config;
    if (c->encoder != MTAN_ATTENTION && !option_given(o, "statistics")) c->statistics = 0;
    if (c->encoder == MTAN_RBF || c->decoder == MTAN_RBF || (c->statistics && !(c->statistics & MTAN_INTENSITY)))
        if (!option_given(o, "variance")) c->variance = MTAN_VARIANCE_FIXED;
    if (p->source.interpolation && c->variance == MTAN_VARIANCE_LEARNED && !option_given(o, "refit"))
        p->refit = REFIT_NOTHING;
}

int plan_make(plan *p, const options *o) {
    recipe r;
    if (!plan_named(p, o, &r)) return 0;
    plan_defaults(p, &r);
    if (!plan_options(p, o)) return 0;
    fit_encoder(p, o);
    if (p->config.variance == MTAN_VARIANCE_LEARNED && !option_given(o, "noise-std")) p->config.noise_std = LEAST_NOISE;
    return 1;
}

/* Half a cosine from the end of the warm-up to the last step, as torch's CosineAnnealingLR has it. */
static double cosine_rate(const plan *p, double step, double steps, double warm) {
    const double done = fmin(1, fmax(0, step - 1 - warm) / fmax(1, steps - warm));
    return p->lr_floor + (1 - p->lr_floor) * (1 + cos(3.14159265358979323846 * done)) / 2;
}

double plan_rate(const plan *p, int64_t step, int64_t steps) {
    const double warm = p->warmup * (double)steps, rise = (double)step < warm ? (double)step / warm : 1;
    if (p->schedule == SCHEDULE_CONSTANT) return rise;
    if (p->schedule == SCHEDULE_COSINE) return rise * cosine_rate(p, (double)step, (double)steps, warm);
    return rise * fmax(pow(p->lr_decay, (double)step), p->lr_floor);
}

int plan_has_trees(const plan *p) {
    return p->config.trees > 0 && p->config.task != MTAN_TASK_LABELS;
}

/* The settings that follow from the data. */
static void fit_config(plan *p, const dataset *d) {
    p->config.channels = (int32_t)arrlen(d->channels);
    if (d->statics > 0 && p->config.classify == MTAN_CLASSIFY_RECORD && !p->config.architecture)
        p->config.statics = d->statics; /* other models see them as channels with one observation */
    if (!p->config.summaries && p->config.statics == 0 && !p->goal.trees)
        p->config.trees = 0; /* a preset's have nothing to split by */
    if (p->config.classify == MTAN_CLASSIFY_NONE) return;
    if (d->task == MTAN_TASK_LABELS) p->config.trees = 0;
    p->config.task = d->task;
    p->config.classes = (int32_t)arrlenu(d->classes);
}

static int fit_labels(const plan *p, const dataset *d) {
    if (p->config.classify == MTAN_CLASSIFY_NONE) return 1;
    if (p->config.classes < 2 && d->task == MTAN_TASK_CLASSES)
        return complain("%s needs labels of at least two classes; --labels FILE has %d", p->name,
                        (int)p->config.classes),
               0;
    if ((p->config.classify == MTAN_CLASSIFY_TIME) != (d->label_times != NULL))
        return complain(d->label_times ? "the labels belong to times: --model per-time, or a baseline's -per-time"
                                       : "the labels belong to records: --model enc, full or a baseline"),
               0;
    return fit_class_weights(p) && fit_selection(p);
}

static void hear_nothing(void *context, int wrong, const char *text) {
    (void)context, (void)wrong, (void)text;
}

/* Whether a model could have the settings if option i had not been given. */
static int would_do_without(const options *o, const dataset *d, int i) {
    options fewer = *o;
    plan p;
    fewer.value[i] = NULL;
    if (!plan_make(&p, &fewer)) return 0;
    fit_config(&p, d);
    return mtan_config_check(&p.config) == MTAN_OK;
}

/* Says which of the given settings keeps all models from having them: one with a known reason, if there is any. */
static int blame_setting(const plan *p, const options *o, const dataset *d) {
    const message_ear before = messages_listen(hear_nothing, NULL);
    const char *why = NULL;
    char name[64];
    int blamed = -1;
    for (int i = 0; i < OPTIONS_MOST && option_name(i, name) && !why; i++) {
        if (!option_key(i) || !o->value[i] || !would_do_without(o, d, i)) continue;
        if ((why = needs_reason(&p->config, option_key(i))) || blamed < 0) blamed = i;
    }
    messages_listen(before.hear, before.context);
    if (blamed < 0) return complain("no model can have these settings together: `mtan help train` lists them"), 0;
    return complain("--%s %s: %s", option_name(blamed, name), o->value[blamed],
                    why ? why : "no model can have this value together with the other settings"),
           0;
}

static void refit_what_is_there(plan *p) {
    if (p->refit == REFIT_TREES && !plan_has_trees(p)) p->refit = REFIT_NOTHING;
}

int plan_fit(plan *p, const options *o, const dataset *d) {
    if (arrlen(d->channels) == 0) return complain("the data has no observation to train on"), 0;
    fit_config(p, d);
    if (!fit_labels(p, d) || !fit_refit(p) || (o && !needs_are_met(p, o, 1))) return 0;
    refit_what_is_there(p);
    if (mtan_config_check(&p->config) == MTAN_OK) return board_choose(&p->goal, &p->config);
    return o ? blame_setting(p, o, d) : (complain("no model can have these settings"), 0);
}

/* Steps on other data would be another run. */
static int is_run_data(const split *s, bundle *resumed) {
    const data_match match = source_match(s, resumed);
    if (match > DATA_SAME_NAMES)
        return complain("not the data of the run to be resumed: %s", data_match_text(match)), 0;
    if (match == DATA_SAME_NAMES) note("the data is taken for that of the run %s", data_match_text(match));
    return 1;
}

int32_t plan_enough_epochs(const plan *p, size_t records, double steps) {
    return (int32_t)fmin(200, fmax(20, ceil(steps / fmax(1, ceil((double)records / p->batch)))));
}

/* Frequencies that nobody has chosen follow from the training records. */
static void fit_frequencies(plan *p, const dataset *d, const int32_t *train) {
    mtan_record *records = tool_calloc(arrlenu(train), sizeof *records);
    for (size_t i = 0; i < arrlenu(train); i++) records[i] = dataset_view(d, (size_t)train[i]);
    mtan_config_fit_frequencies(&p->config, records,
                                (int32_t)arrlen(train)); /* single times have no gaps: the usual range */
    free(records);
}

enum { ENOUGH_STEPS = 600, ENOUGH_STEPS_OF_CURVES = 3200 };

int plan_prepare(plan *p, const options *o, dataset *d, split *s, prep *prepared, bundle *resumed) {
    if (resumed && !data_fits(resumed, d)) return 0;
    if (resumed) source_give_parts(&p->source, d, resumed);
    if (!plan_fit(p, o, d) || !source_split(s, &p->source, d)) return 0;
    if (!resumed) source_fit(prepared, &p->source, d, s, p->scale, p->time_scale);
    else if (!is_run_data(s, resumed)) return 0;
    else *prepared = resumed->prep, memset(&resumed->prep, 0, sizeof resumed->prep);
    prep_apply(prepared, d, s);
    memory_return(); /* what the data was read with is done with */
    d->horizon = (double)prep_time(prepared, SPLIT_TEST, p->source.forecast);
    if (!resumed && p->config.frequencies == MTAN_FREQUENCIES_LOG) {
        int32_t *looked_at = split_positions(s, p->source.fit_all ? "all" : "train");
        fit_frequencies(p, d, looked_at);
        arrfree(looked_at);
    }
    if (p->epochs == 0)
        p->epochs = plan_enough_epochs(p, arrlenu(s->part[SPLIT_TRAIN]),
                                       p->source.interpolation ? ENOUGH_STEPS_OF_CURVES : ENOUGH_STEPS);
    return 1;
}

/* ---- in words ---- */

typedef struct description {
    char *text;
    size_t size;
} description;

static void describe(description *d, const char *name, const char *value) {
    const size_t used = strlen(d->text);
    snprintf(d->text + used, d->size - used, value ? " --%s %s" : " --%s", name, value);
}

static void describe_number(description *d, const char *name, double value) {
    char text[40];
    snprintf(text, sizeof text, "%.10g", value);
    describe(d, name, text);
}

static int differ(double a, double b) {
    return fabs(a - b) > 0;
}

/* The model's settings, but for those that the data, the name and the preset decide. Room for a solver's steps grows as it must. */
static void describe_settings(description *d, mtan_config usual, mtan_config c) {
    char name[64], a[64], b[64];
    const char *key;
    usual.channels = c.channels, usual.classes = c.classes;
    if (usual.frequencies == MTAN_FREQUENCIES_LOG) usual.slowest = c.slowest, usual.fastest = c.fastest;
    for (int32_t i = 0; (key = setting_key(&c, i)) != NULL; i++)
        if (strcmp(key, STEPS_SETTING) != 0 && setting_get(&usual, key, a, sizeof a) &&
            setting_get(&c, key, b, sizeof b) && strcmp(a, b) != 0)
            describe(d, setting_option(key, name), b);
}

static int source_differs(const plan *usual, const plan *p, const source_field *f) {
    const source *a = &usual->source, *b = &p->source;
    const int shown = differ(usual->observed_low, p->observed_low) || differ(usual->observed_high, p->observed_high);
    if (f->type == 't') return strcmp(source_text(a, f), source_text(b, f)) != 0;
    if (strcmp(f->key, "fold") == 0 && a->split.kind != b->split.kind) return 1;
    return differ(source_number(a, f), source_number(b, f)) || (strcmp(f->key, "observed") == 0 && shown);
}

/* The kind of the split follows from the fold. */
static void describe_source(description *d, const plan *usual, const plan *p) {
    for (const source_field *f = source_fields; f->key; f++) {
        const option *x = f->option ? option_of("train", f->option) : NULL;
        const double value = f->type == 't' ? 0 : source_number(&p->source, f);
        if (!f->option || !source_differs(usual, p, f)) continue;
        if (f->type == 't') describe(d, f->option, source_text(&p->source, f));
        else if (f->words) describe(d, f->option, f->words[(int)value]);
        else if (x && x->kind == OPTION_FLAG) describe(d, f->option, NULL);
        else describe_number(d, f->option, value);
    }
}

int plan_describe(const plan *p, char *text, size_t size) {
    description d = {text, size};
    recipe r;
    plan usual;
    text[0] = 0;
    if (!recipe_named(&r, p->name, p->source.preset)) return 0;
    plan_start(&usual, p->name, &r, p->source.preset);
    plan_defaults(&usual, &r);
    if (usual.epochs == 0) usual.epochs = p->epochs; /* the data's, as frequencies are */
    for (int i = 0; i < FIELDS; i++) {
        const double value = field_get(p, &fields[i]);
        if (!differ(field_get(&usual, &fields[i]), value) || strcmp(fields[i].name, "seed") == 0) continue;
        if (is_number(&fields[i])) describe_number(&d, fields[i].name, value);
        else if (plan_word(fields[i].name, value)) describe(&d, fields[i].name, plan_word(fields[i].name, value));
    }
    if (strcmp(usual.class_weights, p->class_weights) != 0) describe(&d, "class-weights", p->class_weights);
    describe_settings(&d, usual.config, p->config);
    describe_source(&d, &usual, p);
    return 1;
}

/* ---- in a model file ---- */

void plan_write(const plan *p, mtan_file_pair **pairs) {
    char key[64], value[64];
    pairs_add(pairs, "mtan.plan.name", p->name);
    for (int i = 0; i < FIELDS; i++) {
        snprintf(key, sizeof key, "mtan.plan.%s", fields[i].name);
        snprintf(value, sizeof value, "%.17g", field_get(p, &fields[i]));
        pairs_add(pairs, key, value);
    }
    pairs_add(pairs, "mtan.plan.class-weights", p->class_weights);
    if (p->pretrained[0]) pairs_add(pairs, "mtan.plan.pretrained", p->pretrained);
    source_write(&p->source, pairs);
}

int plan_can_be_saved(const plan *p, const prep *prepared, char *error) {
    enum {
        COUNTERS = 4096,
        BAND = 16
    }; /* bytes: training_write's, and the optimiser's two tensors; a channel's band */
    const size_t count = mtan_weights_count(&p->config);
    const size_t bands = p->config.variance == MTAN_VARIANCE_LEARNED ? BAND * (size_t)p->config.channels : 0;
    mtan_real *weights = tool_calloc(count, sizeof *weights); /* of no meaning */
    mtan_file_pair *pairs = NULL;
    mtan_model model;
    plan_write(p, &pairs);
    const mtan_status status = mtan_model_init(&model, &p->config, weights, count);
    const int good = status == MTAN_OK ? bundle_check(&model, prepared, pairs, arrlenu(pairs),
                                                      golden_record_room(&p->config) + COUNTERS + bands, error)
                                       : (snprintf(error, 512, "%s", mtan_status_message(status)), 0);
    pairs_free(pairs, arrlenu(pairs));
    arrfree(pairs);
    free(weights);
    return good;
}

/* The numbers of the plan in a file. */
static int read_fields(plan *p, bundle *b, char *error) {
    char key[64];
    for (int i = 0; i < FIELDS; i++) {
        const field *f = &fields[i];
        snprintf(key, sizeof key, "mtan.plan.%s", f->name);
        const double saved = bundle_number(b, key, f->otherwise);
        if (!field_takes(f, saved)) return snprintf(error, 512, "the file says nothing usable for %s", key), 0;
        field_set(p, f, saved);
    }
    return 1;
}

/* The option that sets a field: its name, but one option sets both ends of the share that is shown. */
static const char *option_for(const field *f) {
    return option_of("train", f->name) ? f->name : "observed";
}

/* A setting that the options would change, but may not; NULL: none. */
static const char *contradiction(const plan *saved, const plan *asked) {
    for (int i = 0; i < FIELDS; i++)
        if (!fields[i].may_change && fabs(field_get(saved, &fields[i]) - field_get(asked, &fields[i])) > 0)
            return option_for(&fields[i]);
    for (int32_t i = 0; setting_key(&saved->config, i); i++) {
        const char *key = setting_key(&saved->config, i);
        char x[64], y[64];
        mtan_config_get(&saved->config, key, x, sizeof x);
        mtan_config_get(&asked->config, key, y, sizeof y);
        if (strcmp(x, y) != 0) return key;
    }
    if (strcmp(saved->class_weights, asked->class_weights) != 0) return "class-weights";
    if ((saved->schedule == SCHEDULE_COSINE || saved->warmup > 0) && saved->epochs != asked->epochs) return "epochs";
    return source_difference(&saved->source, &asked->source);
}

int plan_load(plan *p, bundle *b, char *error) {
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", bundle_text(b, "mtan.plan.name", ""));
    snprintf(p->class_weights, sizeof p->class_weights, "%s", bundle_text(b, "mtan.plan.class-weights", "none"));
    snprintf(p->pretrained, sizeof p->pretrained, "%s", bundle_text(b, "mtan.plan.pretrained", ""));
    p->config = b->model.config;
    p->config.members = 1; /* they are the plan's */
    if (!source_read(&p->source, b, error) || !read_fields(p, b, error)) return 0;
    if (p->lr_decay >= 1 && p->schedule == SCHEDULE_EXPONENTIAL) p->schedule = SCHEDULE_CONSTANT; /* of an old file */
    return 1;
}

int plan_read(plan *p, bundle *b, const options *o, char *error) {
    const char *preset = option_text(o, "preset", NULL), *changed, *name = bundle_text(b, "mtan.plan.name", "");
    plan asked;
    if (strcmp(name, o->argument[0]) != 0)
        return snprintf(error, 512, "the run in this folder is %.40s, not %.40s", name, o->argument[0]), 0;
    if (!plan_load(p, b, error)) return 0;
    asked = *p;
    if (!plan_options(&asked, o)) return snprintf(error, 512, "cannot be resumed with these options"), 0;
    refit_what_is_there(&asked);
    changed = contradiction(p, &asked);
    if (preset && strcmp(preset, preset_names[p->source.preset]) != 0) changed = "preset";
    if (option_given(o, "budget")) changed = "budget";
    if (option_given(o, "pretrain") && !p->pretrained[0]) changed = "pretrain";
    if (changed)
        return snprintf(error, 512, "--%s: a resumed run keeps the setting that it was started with", changed), 0;
    *p = asked;
    p->goal.embed = p->goal.hidden = p->goal.points = p->goal.head = 1; /* a run keeps its sizes */
    return 1;
}
