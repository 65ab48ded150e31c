/* The commands of flat.h: `mtan train` and others that write files, run inside another program. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../command/commands.h"
#include "../command/train.h"
#include "flat_call.h"

typedef struct running {
    const mtan_flat_data *data;
    int32_t n;
    const char *const *words;
    mtan_flat_progress progress;
    void *context;
    int status;
} running;

/* Commands that print results are refused, as they would print into another program's output. */
static int writes_files(const char *name) {
    const command *c = command_named(name);
    return c && (c->traits & COMMAND_WRITES);
}

static int go_on(void *context, const training *t, const step_result *step, const epoch_result *epoch) {
    const running *r = context;
    const int32_t epochs = t->plan->epochs, batches = training_batches(t);
    if (!step && !epoch) return r->progress(r->context, 0, epochs, 0, batches, NAN, NAN, NAN) != 0;
    if (epoch)
        return r->progress(r->context, t->epoch, epochs, 0, batches, epoch->train_loss, epoch->val_loss,
                           epoch->val_metric) != 0;
    return r->progress(r->context, step->epoch, epochs, step->batch, batches, step->loss, NAN, NAN) != 0;
}

static int32_t nobody_asks(void *context, int32_t epoch, int32_t epochs, int32_t batch, int32_t batches, double loss,
                           double val_loss, double val_metric) {
    (void)context, (void)epoch, (void)epochs, (void)batch, (void)batches, (void)loss, (void)val_loss, (void)val_metric;
    return 1;
}

/* The words as main gets them, with the program's name first. */
static char **arguments(const running *r) {
    char **list = tool_calloc((size_t)r->n + 2, sizeof *list);
    list[0] = tool_text("mtan");
    for (int32_t i = 0; i < r->n; i++) list[i + 1] = tool_text(r->words[i]);
    return list;
}

static void free_arguments(char **list) {
    for (size_t i = 0; list[i]; i++) free(list[i]);
    free(list);
}

static int run_words(running *r, char **list) {
    train_watch watch = {.deadline = INFINITY, .go_on = go_on, .context = r};
    options o;
    if (!options_parse(&o, r->n + 1, list)) return BAD_USE;
    o.columns = r->data ? &r->data->columns : NULL;
    return strcmp(o.command->name, "train") == 0 ? train_run(&o, &watch) : o.command->run(&o);
}

static int run(void *job) {
    running *r = job;
    char **list;
    if (r->n < 1 || !writes_files(r->words[0]))
        return complain("%s: only commands that write files run inside another program", r->n < 1 ? "" : r->words[0]),
               0;
    list = arguments(r);
    r->status = run_words(r, list);
    free_arguments(list);
    return r->status == DONE;
}

int32_t mtan_flat_run(const mtan_flat_data *data, int32_t n_words, const char *const *words, mtan_flat_progress asked,
                      void *context) {
    running r = {data, n_words, words, asked ? asked : nobody_asks, context, BAD_USE};
    return flat_call(run, &r) == 0 ? DONE : r.status;
}
