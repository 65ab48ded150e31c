/* See epoch_choice.h. */
#include "epoch_choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A choice of the plan; `otherwise` if the file has none. */
static int choice_of(bundle *b, const char *name, int otherwise) {
    char key[48];
    snprintf(key, sizeof key, "mtan.plan.%s", name);
    const double x = bundle_number(b, key, NAN);
    return plan_word(name, x) ? (int)x : otherwise;
}

epoch_choice choice_read(bundle *b) {
    const mtan_config *m = &b->model.config;
    const int is_number = m->classify != MTAN_CLASSIFY_NONE && m->task == MTAN_TASK_NUMBER;
    epoch_choice c;
    memset(&c, 0, sizeof c);
    c.known = choice_of(b, "select", -1) >= 0;
    c.by = (plan_select)choice_of(b, "select", SELECT_LOSS);
    if (is_number && c.by != SELECT_LAST) c.by = SELECT_LOSS;
    if (bundle_number(b, RUN_AGAIN, 0) > 0) c.again = (plan_refit)choice_of(b, "refit", REFIT_NOTHING);
    c.rate = (plan_schedule)choice_of(b, "schedule", SCHEDULE_CONSTANT);
    c.epochs = bundle_number(b, "mtan.plan.epochs", NAN);
    c.best = bundle_number(b, "mtan.run.best_epoch", NAN), c.weights = bundle_number(b, "mtan.run.epoch", NAN);
    return c;
}

const char *choice_column(const epoch_choice *c) {
    static const char *const columns[] = {[SELECT_LOSS] = "val_loss",
                                          [SELECT_AUC] = "val_auc",
                                          [SELECT_MSE] = "val_mse",
                                          [SELECT_ACCURACY] = "val_acc",
                                          [SELECT_LAST] = NULL};
    return c->known ? columns[c->by] : NULL;
}

/* The exponential schedule has no end: it falls by the same factor in each step. */
int choice_schedule_ended(const epoch_choice *c, double epoch) {
    return c->rate == SCHEDULE_COSINE && epoch >= c->epochs;
}

static const char *measure_words(const epoch_choice *c, const mtan_config *config) {
    switch (c->by) {
    case SELECT_LOSS: return "lowest validation loss";
    case SELECT_MSE: return "lowest validation error";
    case SELECT_ACCURACY: return "highest validation accuracy";
    case SELECT_LAST: return NULL;
    case SELECT_AUC: break;
    }
    if (config->task == MTAN_TASK_LABELS) return "highest mean of the labels' validation AUC";
    return config->classes > 2 ? "highest mean of the classes' validation AUC" : "highest validation AUC";
}

/* What follows the epoch: a clause about its weights, or a sentence about others. */
static const char *weights_words(char other[96], const epoch_choice *c) {
    snprintf(other, 96, ". The weights used below are those after epoch %.0f.", c->weights);
    if (c->again == REFIT_ALL)
        return ". The weights used below were trained once more in as many epochs, on the records of training and "
               "validation together.";
    if (c->again == REFIT_TREES)
        return " and whose network is used below; the trees were fitted once more, to the records of training and "
               "validation together.";
    return c->weights < c->best || c->weights > c->best ? other : " and whose weights are used below.";
}

const char *choice_sentence(char *text, const epoch_choice *c, const mtan_config *config, double epochs) {
    const char *measure = measure_words(c, config);
    char other[96];
    if (isnan(c->best)) return NULL;
    const int n = snprintf(text, CHOICE_BYTES, "The dashed line marks epoch %.0f of %.0f, which ", c->best, epochs);
    char *end = text + n;
    const size_t room = CHOICE_BYTES - (size_t)n;
    if (!c->known) snprintf(end, room, "was kept.");
    else if (!measure) snprintf(end, room, "is the last%s", weights_words(other, c));
    else snprintf(end, room, "had the %s%s", measure, weights_words(other, c));
    return text;
}
