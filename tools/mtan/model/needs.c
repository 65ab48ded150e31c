/* See needs.h. */
#include "needs.h"

#include <string.h>

#include "../options/settings.h"

/* ---- options that nothing reads ---- */

/* Facts about a plan. Where an option lacks several, the first one here is told. */
enum {
    MTAN = 1 << 0, /* mTAND-Enc or mTAND-Full */
    LABELS = 1 << 1,
    RECORDS = 1 << 2, /* one label for each record */
    LATENT = 1 << 3,
    DECODER = 1 << 4,
    ATTENTION = 1 << 5, /* the encoder is no RBF */
    FIXED = 1 << 6,     /* the time embedding */
    BINS = 1 << 7,
    UNANNEALED = 1 << 8,
    CLASSES = 1 << 9,
    NUMBER = 1 << 10,
    NO_NUMBER = 1 << 11,
    TWO = 1 << 12,
    COLUMNS = 1 << 13, /* numbers that trees can split by */
    TREES = 1 << 14,
    ONE = 1 << 15 /* one class or number, not several labels */
};
#define BY_DATA (CLASSES | NUMBER | NO_NUMBER | ONE | TWO | COLUMNS | TREES)
#define OF_LABELS (CLASSES | NUMBER | NO_NUMBER | ONE | TWO) /* the same for all trials of a search */

/* What is said where a fact is missing: after the model's name, or before what the labels are, or alone. */
enum { AFTER_MODEL = MTAN | LATENT | DECODER, BEFORE_LABELS = CLASSES | NUMBER | NO_NUMBER | ONE };
static const struct {
    unsigned fact;
    const char *missing;
} facts[] = {
    {MTAN, " does not read it, mTAND-Enc and mTAND-Full do"},
    {LABELS, "a model that interpolates predicts no label"},
    {RECORDS, "it is for one label of each record, and these labels belong to times"},
    {LATENT, " has no latent state"},
    {DECODER, " has no decoder"},
    {ATTENTION, "it needs attention, and the encoder is rbf"},
    {FIXED, "it is for --embedding fixed, and the time embedding is learned"},
    {BINS, "it is for --values piecewise or quantile, and the values are plain"},
    {UNANNEALED, "it is read with --kl-anneal 0 only"},
    {CLASSES, "it is for classes, and the labels are "},
    {NUMBER, "it needs a number to predict, and the labels are "},
    {NO_NUMBER, "it is for classes or several labels, and the labels are "},
    {ONE, "it is for classes and numbers, and the labels are "},
    {TWO, "it is for two classes, and the data has more"},
    {COLUMNS, "trees split by summaries or static columns: --summaries must be 1 or more, or --static given"},
    {TREES, "there are no trees: --trees is 0"},
};
enum { FACTS = sizeof facts / sizeof facts[0] };

/* An option and what it needs. `off`: the value that asks for nothing; `only`: the one value that has the need. */
typedef struct need {
    const char *name;
    unsigned facts;
    const char *off, *only;
} need;

static const need needs[] = {
    {"latent", LATENT, NULL, NULL},
    {"samples", LATENT, NULL, NULL},
    {"predict-samples", LATENT, NULL, NULL},
    {"rule", LATENT | LABELS, NULL, NULL},
    {"alpha", LATENT | LABELS, NULL, NULL},
    {"noise-std", LATENT, NULL, NULL},
    {"bound", LATENT, NULL, NULL},
    {"kl-anneal", LATENT, NULL, NULL},
    {"kl-weight", LATENT | UNANNEALED, NULL, NULL},
    {"mlp-hidden", LATENT, NULL, NULL},
    {"norm", LATENT, NULL, NULL},
    {"skip-empty", LATENT, NULL, NULL},
    {"decoder", MTAN | DECODER, NULL, NULL},
    {"dec-heads", MTAN | DECODER, NULL, NULL},
    {"dec-hidden", MTAN | DECODER, NULL, NULL},
    {"variance", MTAN | DECODER, "fixed", NULL},
    {"statistics", MTAN | ATTENTION, "mean", NULL},
    {"values", MTAN | ATTENTION, "plain", NULL},
    {"bins", MTAN | BINS, NULL, NULL},
    {"summaries", MTAN | LABELS | RECORDS, "0", NULL},
    {"trees", MTAN | LABELS | RECORDS | ONE | COLUMNS, "0", NULL},
    {"embed-base", FIXED, NULL, NULL},
    {"embed-scale", FIXED, NULL, NULL},
    {"dropout", LABELS, "0", NULL},
    {"head-hidden", LABELS, NULL, NULL},
    {"interval", LABELS | NUMBER, "0", NULL},
    {"positive", LABELS | CLASSES | TWO, NULL, NULL},
    {"select", NO_NUMBER, NULL, "auc"},
    {"refit", ONE | TREES, NULL, "trees"},
};
enum { NEEDS = sizeof needs / sizeof needs[0] };

/* A baseline reads what it likes of the settings that are not mTAND's own. Pretraining adds a decoder to an encoder. */
static unsigned model_facts(const plan *p, const options *o) {
    const mtan_config *c = &p->config;
    unsigned has = 0;
    if (!c->architecture) has |= MTAN;
    if (c->architecture || c->kind == MTAN_FULL) has |= LATENT | DECODER;
    if (option_given(o, "pretrain") || p->pretrained[0]) has |= LATENT | DECODER | UNANNEALED;
    if (c->encoder != MTAN_RBF) has |= ATTENTION;
    if (c->architecture || c->embedding == MTAN_EMBED_FIXED) has |= FIXED;
    if (c->values != MTAN_VALUES_PLAIN) has |= BINS;
    if (c->kl_anneal == 0) has |= UNANNEALED;
    if (c->classify != MTAN_CLASSIFY_NONE) has |= LABELS;
    if (c->classify == MTAN_CLASSIFY_RECORD) has |= RECORDS;
    return has;
}

static unsigned data_facts(const plan *p) {
    const mtan_config *c = &p->config;
    unsigned has = 0;
    if (c->task == MTAN_TASK_CLASSES) has |= CLASSES;
    if (c->task == MTAN_TASK_NUMBER) has |= NUMBER;
    else has |= NO_NUMBER;
    if (c->task != MTAN_TASK_LABELS) has |= ONE;
    if (c->classes == 2) has |= TWO;
    if (c->summaries > 0 || c->statics > 0) has |= COLUMNS;
    if (plan_has_trees(p)) has |= TREES;
    return has;
}

static int is_asked(const need *n, const options *o) {
    const char *text = option_text(o, n->name, NULL);
    if (!text) return 0;
    if (n->only) return strcmp(text, n->only) == 0;
    return !n->off || strcmp(text, n->off) != 0;
}

static int refuse(const need *n, const plan *p, unsigned missing) {
    int i = 0;
    while (i + 1 < FACTS && !(facts[i].fact & missing)) i++;
    return complain("--%s: %s%s%s", n->name, facts[i].fact & AFTER_MODEL ? model_title(&p->config) : "",
                    facts[i].missing, facts[i].fact & BEFORE_LABELS ? plan_task_words(p) : ""),
           0;
}

int needs_are_met(const plan *p, const options *o, int with_data) {
    const unsigned has =
        model_facts(p, o) | (with_data ? data_facts(p) : BY_DATA) | (o->trial ? ~(unsigned)OF_LABELS : 0u);
    for (const need *n = needs; n < needs + NEEDS; n++)
        if ((n->facts & ~has) && is_asked(n, o)) return refuse(n, p, n->facts & ~has);
    return 1;
}

/* ---- values that no model can have ---- */

static int has_rbf(const mtan_config *c) {
    return c->encoder == MTAN_RBF || (c->kind == MTAN_FULL && c->decoder == MTAN_RBF);
}

static int heads_fit(const mtan_config *c, int32_t heads) {
    return heads > 0 && c->embed % heads == 0;
}

#define TEXT_OF(number) #number
#define TO(number) TEXT_OF(number)

const char *needs_reason(const mtan_config *c, const char *key) {
    const int learned = c->variance == MTAN_VARIANCE_LEARNED;
    const struct {
        const char *key;
        int wrong;
        const char *why;
    } reasons[] = {
        {"embed", c->embed < 2, "must be at least 2"},
        {"embed", c->embedding == MTAN_EMBED_FIXED && c->embed % 2 != 0, "must be even with --embedding fixed"},
        {"embed", !heads_fit(c, c->enc_heads) || !heads_fit(c, c->dec_heads),
         "must be a multiple of the numbers of heads, --enc-heads and --dec-heads"},
        {"enc_heads", !heads_fit(c, c->enc_heads), "--embed must be a multiple of it"},
        {"dec_heads", !heads_fit(c, c->dec_heads), "--embed must be a multiple of it"},
        {"enc_heads", c->encoder != MTAN_ATTENTION && c->enc_heads > 1, "only --encoder attention has more than one"},
        {"dec_heads", c->decoder != MTAN_ATTENTION && c->dec_heads > 1, "only --decoder attention has more than one"},
        {"enc_hidden", c->enc_hidden < 1, "must be at least 1"},
        {"dec_hidden", c->dec_hidden < 1, "must be at least 1"},
        {"mlp_hidden", c->mlp_hidden < 1, "must be at least 1"},
        {"latent", c->latent < 1, "must be at least 1"},
        {"ref_points", c->ref_points < 1, "must be at least 1"},
        {"samples", c->samples < 1, "must be at least 1"},
        {"bins", c->bins < 1 || c->bins > MTAN_MAX_BINS, "must be from 1 to " TO(MTAN_MAX_BINS)},
        {"summaries", c->summaries < 0 || c->summaries > 3, "must be from 0 to 3"},
        {"trees", c->trees < 0 || c->trees > MTAN_MAX_TREES, "must be from 0 to " TO(MTAN_MAX_TREES)},
        {"interval", !(c->interval >= 0 && c->interval < 1), "must be at least 0 and below 1"},
        {"noise_std", !(c->noise_std > 1e-9), "must be positive"},
        {"variance", learned && has_rbf(c), "needs attention, not rbf"},
        {"variance", learned && c->classify == MTAN_CLASSIFY_TIME, "is not for labels of times"},
        {"variance", learned && c->statistics, "reads the intensity, so --statistics must be mean or contain it"},
        {"encoder", c->encoder == MTAN_RBF && c->values != MTAN_VALUES_PLAIN, "goes with --values plain only"},
        {"encoder", c->encoder == MTAN_RBF && c->statics > 0, "cannot have static columns"},
        {"reference", c->reference == MTAN_REF_GIVEN, "the points themselves cannot be given to this command"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].wrong && strcmp(reasons[i].key, key) == 0) return reasons[i].why;
    return NULL;
}
