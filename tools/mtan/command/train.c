/* mtan train: a run in a folder. RUN/best.safetensors is the best model by validation, RUN/last.safetensors the newest
 * state with optimiser and counters. RUN/log.csv has a row per epoch, RUN/steps.csv a row per step. RUN/pretrain is the
 * run of a pretraining.
 *
 * Nothing is half-written: model files are replaced as a whole, and a log that is ahead of last.safetensors (after a
 * kill between the two) is cut back when the run is resumed. At the end of an epoch the order is best, log, last.
 * Durations stand only in the tables, so model files of the same training have the same bytes, on any number of
 * threads, interrupted or not. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "../fit/trees.h"
#include "../model/data_sets.h"
#include "../run/device.h"
#include "../model/ensemble.h"
#include "../fit/distributed.h"
#include "../base/files.h"
#include "../model/golden_record.h"
#include "../fit/pretrain.h"
#include "../measure/stop.h"
#include "outcome.h"
#include "search.h"
#include "train.h"
#include "../fit/training.h"
#include "../model/shared_options.h"

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

/* The first signal asks for an end after the current step; a second one ends the process at once. */
static void watch_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupt;
    action.sa_flags = (int)SA_RESETHAND | SA_RESTART; /* so that no read or write fails */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- the folder of a run ---- */

typedef struct folder {
    char best[4096], last[4096], log[4096], steps[4096];
    char chosen[4096]; /* the best model before it was trained again on the validation records too */
    char first[4096];  /* of an ensemble: the state of its first member */
    FILE *log_file, *steps_file;
    int lost;         /* errno of the first row of these that could not be written; or 0 */
    char *held;       /* stb_ds: contents of the best model's file, while they are not on the disk; or NULL */
    double saved;     /* when the state was last written to the disk; 0: never */
    claim claim;      /* keeps other processes from training in it */
    const char *made; /* its path, if this process created it; or NULL */
    int writes;       /* only rank 0 does */
    const rank_set *ranks;
    train_watch *watch; /* or NULL */
} folder;

static int folder_name(char out[4096], const char *path, const char *name) {
    return snprintf(out, 4096, "%s/%s", path, name) < 4096;
}

static int folder_start(folder *f, const char *path, const rank_set *r, train_watch *w) {
    memset(f, 0, sizeof *f);
    f->ranks = r;
    f->watch = w;
    f->writes = !r || r->rank == 0;
    if (!path) return complain("--out is missing: the folder of the run"), 0;
    if (!folder_name(f->best, path, "best.safetensors") || !folder_name(f->last, path, "last.safetensors") ||
        !folder_name(f->first, path, "member-0/last.safetensors") || !folder_name(f->log, path, "log.csv") ||
        !folder_name(f->steps, path, "steps.csv") || !folder_name(f->chosen, path, "chosen.safetensors"))
        return complain("%s: the path is too long", path), 0;
    return 1;
}

/* Is there a newest state of the run, or of the first member of an ensemble? 1, 0, or -1 with a message printed. */
static int has_run(const folder *f) {
    char error[512];
    int there = file_exists(f->last, error);
    if (there == 0) there = file_exists(f->first, error);
    if (there < 0) complain("%s", error);
    return there;
}

static int holds_run(const char *path) {
    return complain("%s holds a run: --resume goes on with it, another --out starts a new one", path);
}

int train_is_free(const char *path) {
    folder f;
    if (!folder_start(&f, path, NULL, NULL)) return 0;
    const int there = has_run(&f);
    if (there > 0) holds_run(path);
    return there == 0;
}

/* Creates the folder if needed and claims it for this process, before the data is read, which may take long. */
static int folder_open(folder *f, const char *path, int resume) {
    const char *const files[] = {f->best, f->last, f->log, f->steps};
    char error[512];
    int made = 0, there;
    if (!f->writes) return 1;
    if ((there = resume ? has_run(f) : 1) < 0) return 0;
    if (!there) return complain("%s: %s", f->last, strerror(ENOENT)), 0;
    if (!resume && (made = folder_make(path, error)) < 0) return complain("%s", error), 0;
    if (made) f->made = path;
    if (!claim_take(&f->claim, path, error)) return complain("%s", error), 0;
    if ((there = has_run(f)) < 0) return 0;
    if (!resume && there) return holds_run(path), 0;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) replacement_clear(files[i]);
    return 1;
}

/* Keeps the rows of finished epochs (and batches) under a new header; the other rows will be produced again. */
static int cut_table(const char *path, const char *header, int32_t epochs, int32_t batches) {
    char error[512], *text, *kept, *line;
    size_t bytes = 0, n;
    int good;
    if (!(text = file_read(path, &bytes, error))) return complain("%s", error), 0;
    kept = tool_calloc(bytes + strlen(header) + 2, 1);
    n = (size_t)sprintf(kept, "%s\n", header);
    for (line = text + strcspn(text, "\n"); *line && *++line;) {
        char *end = strchr(line, '\n'), *rest;
        const long epoch = strtol(line, &rest, 10), batch = *rest == ',' ? strtol(rest + 1, NULL, 10) : 0;
        const size_t length = end ? (size_t)(end - line) : strlen(line);
        if (end && (epoch <= epochs || (batches >= 0 && epoch == epochs + 1 && batch <= batches)))
            memcpy(kept + n, line, length + 1), n += length + 1;
        line += length;
    }
    good = file_write(path, kept, n, error);
    free(text), free(kept);
    return good ? 1 : (complain("%s", error), 0);
}

static FILE *append(const char *path, const char *header, int fresh) {
    FILE *file = fopen(path, fresh ? "wb" : "ab");
    if (!file) return complain("%s: %s", path, strerror(errno)), NULL;
    if (fresh) fprintf(file, "%s\n", header);
    return file;
}

/* The seconds in the last row of steps, which count from the start of its epoch; 0: the table has no rows. */
static int last_seconds(const char *path, double *x) {
    char error[512], *text, *row;
    size_t bytes = 0;
    if (!(text = file_read(path, &bytes, error))) return complain("%s", error), 0;
    if (bytes > 0) text[bytes - 1] = 0; /* the end of the last row */
    if (!(row = strrchr(text, '\n')) || sscanf(row + 1, "%*d,%*d,%*g,%*g,%lf", x) != 1) *x = 0;
    free(text);
    return 1;
}

static int folder_tables(folder *f, training *t, int resume) {
    static const char steps[] = "epoch,batch,loss,gradient_norm,seconds";
    const char *choice = training_choice(t);
    char log[160];
    if (!f->writes) return 1;
    snprintf(log, sizeof log,
             "epoch,train_loss,val_loss,%s,seconds,eval_seconds,train_recon,train_ce,train_kl,gradient_norm%s%s",
             training_metric(t), choice ? "," : "", choice ? choice : "");
    if (resume && (!cut_table(f->log, log, t->epoch, -1) || !cut_table(f->steps, steps, t->epoch, t->batch))) return 0;
    if (t->batch > 0 && !last_seconds(f->steps, &t->train_seconds)) return 0;
    f->log_file = append(f->log, log, !resume);
    f->steps_file = append(f->steps, steps, !resume);
    return f->log_file && f->steps_file;
}

/* May a table get another row? Not after a row was lost, so that it has no hole; flush_tables reports the error. */
static int may_grow(const folder *f, FILE *file) {
    return f->writes && !ferror(file);
}

/* Writes a number of a table; NaN becomes an empty field. */
static void put_number(FILE *file, const char *before, double x, const char *format) {
    fputs(before, file);
    if (!isnan(x)) fprintf(file, format, x);
}

static int flush_table(const folder *f, FILE *file, const char *path) {
    if (stream_flush(file)) return 1;
    return complain("%s: cannot be written: %s", path, strerror(f->lost ? f->lost : errno)), 0;
}

static int flush_tables(const folder *f) {
    return flush_table(f, f->log_file, f->log) && flush_table(f, f->steps_file, f->steps);
}

static void log_epoch(folder *f, const training *t, const epoch_result *r) {
    const double numbers[] = {r->train_loss,  r->val_loss, r->val_metric, r->seconds,      r->eval_seconds,
                              r->train_recon, r->train_ce, r->train_kl,   r->gradient_norm};
    if (!may_grow(f, f->log_file)) return;
    fprintf(f->log_file, "%d", (int)t->epoch);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        put_number(f->log_file, ",", numbers[i], i == 3 || i == 4 ? "%.3f" : "%.9g");
    if (training_choice(t)) put_number(f->log_file, ",", r->val_choice, "%.9g");
    fputc('\n', f->log_file);
    if (fflush(f->log_file) != 0 && !f->lost) f->lost = errno; /* flushed, so that others can follow the run */
}

/* The preprocessing for a model file, with the bands of the channels that were fitted on validation. Free its
 * channels. */
static prep with_bands(const prep *p, const training *t) {
    prep own = *p;
    own.channel = NULL;
    for (size_t d = 0; d < arrlenu(p->channel); d++) {
        arrput(own.channel, p->channel[d]);
        if (!t->bands) continue;
        own.channel[d].band = t->bands[d], own.channel[d].has |= MTAN_HAS_BAND;
    }
    return own;
}

/* The metadata of a file about the run; NULL with a message printed. Free it with drop_pairs. */
static mtan_file_pair *run_pairs(training *t) {
    mtan_file_pair *pairs = NULL;
    if (!training_fetch(t)) return complain("%s", status_message(MTAN_ERR_DEVICE)), NULL;
    plan_write(t->plan, &pairs);
    training_write(t, &pairs);
    return pairs;
}

static void drop_pairs(mtan_file_pair *pairs) {
    pairs_free(pairs, arrlenu(pairs));
    arrfree(pairs);
}

static int save_state(const folder *f, training *t, const prep *p) {
    mtan_file_pair *pairs;
    char error[512] = "";
    int good;
    if (!f->writes) return 1;
    if (!(pairs = run_pairs(t))) return 0;
    good = bundle_write(f->last, &t->model, &t->trainer, p, pairs, arrlenu(pairs), error);
    drop_pairs(pairs);
    return good ? 1 : (complain("%s", error), 0);
}

static int compose_best(folder *f, training *t, const prep *p) {
    mtan_file_pair *pairs;
    char error[512] = "";
    prep own;
    int good;
    if (!(pairs = run_pairs(t))) return 0;
    golden_record_write(&t->run, t->data, t->split, &pairs);
    own = with_bands(p, t);
    good = bundle_compose(&f->held, &t->kept, &own, pairs, arrlenu(pairs), error);
    arrfree(own.channel);
    drop_pairs(pairs);
    return good ? 1 : (complain("%s: %s", f->best, error), 0);
}

/* The best model is kept with intervals as wide as validation asks for; training goes on with the original weights. */
static int hold_best(folder *f, training *t, const prep *p) {
    mtan_real *before = NULL;
    int good, same;
    if (!f->writes) return 1;
    same = training_fetch(t) && training_widen(t, &before);
    good = same && compose_best(f, t, p);
    same = training_narrow(t, before) && same;
    return same ? good : (complain("%s", status_message(MTAN_ERR_DEVICE)), 0);
}

static int write_held(folder *f) {
    char error[512] = "";
    int good;
    if (!f->held) return 1;
    (void)remove(f->chosen);
    good = file_write(f->best, f->held, arrlenu(f->held), error);
    arrfree(f->held);
    return good ? 1 : (complain("%s", error), 0);
}

/* The best model and the rows are on the disk before last.safetensors refers to them: a power cut must not leave a run
 * without them. */
static int put_on_disk(folder *f, training *t, const prep *p) {
    if (!f->writes) return 1;
    if (!write_held(f) || !flush_tables(f) || !save_state(f, t, p)) return 0;
    f->saved = seconds();
    return 1;
}

/* A crash may cost a second of work. Waiting for the disk at every epoch took four fifths of the time with short
 * epochs: 5.4 s for 240 records of 24 observations, against 1.1 s with a folder in memory. */
static int is_due(const folder *f, const training *t) {
    const double pause = 1;
    return !(f->saved > 0 && seconds() < f->saved + pause) || training_finished(t) || (f->watch && f->watch->late);
}

/* Writes the best model's file again, with its metadata of the run. If the model changed, the self-test's output is
 * renewed. */
static int rewrite_best(const folder *f, const plan *p, bundle *b, int changed, int again) {
    static const char *const kept[] = {"mtan.run.", "mtan.split.", "mtan.golden."}; /* in the order of compose_best */
    mtan_file_pair *pairs = NULL;
    char error[512] = "";
    int good;
    plan_write(p, &pairs);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) pairs_copy(&pairs, &b->file, kept[i]);
    if (again) pairs_add(&pairs, RUN_AGAIN, "1");
    if (changed) golden_record_renew(b, &b->model, pairs);
    good = bundle_write(f->best, &b->model, NULL, &b->prep, pairs, arrlenu(pairs), error);
    if (!good) complain("%s", error);
    drop_pairs(pairs);
    return good;
}

/* The best model's file records its plan, and a resumed run may have more epochs or more patience. */
static int renew_best(const folder *f, const plan *p) {
    char error[512] = "";
    bundle b;
    int good;
    const int there = f->writes ? file_exists(f->best, error) : 0;
    if (there == 0) return 1;
    if (there < 0 || !bundle_read(&b, f->best, error)) return complain("%s", error), 0;
    good = rewrite_best(f, p, &b, 0, 0);
    bundle_free(&b);
    return good;
}

/* If the plan has trees, fits them to the best network's inputs for each record, and adds them to its file. If that is
 * stopped, the file stays as it was. */
static int add_trees(const folder *f, const training *t, const options *o, trees_fit *fit) {
    char error[512] = "", from[80] = "";
    bundle b;
    int good;
    memset(fit, 0, sizeof *fit);
    if (!plan_has_trees(t->plan) || !f->writes) return 1;
    if (!bundle_read(&b, f->best, error)) return complain("%s", error), 0;
    good = trees_add(&b, t->data, t->split, t->plan->seed, option_threads(o), fit, error) || (complain("%s", error), 0);
    if (good && stop_asked()) return bundle_free(&b), 1;
    if (good && fit->regression > 0)
        snprintf(from, sizeof from, ", %d of them a regression and what goes on from it", (int)fit->regression);
    if (good && fit->count > 0)
        note("%d trees%s: validation %s %.4f, of the network %.4f, together %.4f (%.1f and %.1f of them)",
             (int)fit->count, from, t->model.config.task == MTAN_TASK_NUMBER ? "squared error" : "log-loss", fit->trees,
             fit->network, fit->together, fit->trees_share, fit->network_share);
    good = good && rewrite_best(f, t->plan, &b, 1, 0);
    bundle_free(&b);
    return good;
}

/* Removes the folder if it was created for nothing. */
static void folder_close(folder *f) {
    if (f->log_file) fclose(f->log_file);
    if (f->steps_file) fclose(f->steps_file);
    arrfree(f->held);
    claim_drop(&f->claim);
    if (f->made) (void)rmdir(f->made);
}

/* ---- the loop ---- */

static void show_step(const training *t, const step_result *s, double last_metric) {
    const double done = (double)s->batch / training_batches(t),
                 rate = s->batch * (double)t->plan->batch / t->train_seconds;
    const double left = (t->plan->epochs - t->epoch - done) * t->train_seconds / done;
    char metric[48] = "";
    if (!isnan(last_metric)) snprintf(metric, sizeof metric, "  %s %.4f", training_metric(t), last_metric);
    progress("epoch %d/%d  batch %d/%d  loss %.4f%s  %.0f records/s  %.0f:%02d:%02d left", (int)s->epoch,
             (int)t->plan->epochs, (int)s->batch, (int)training_batches(t), s->loss, metric, rate, floor(left / 3600),
             (int)fmod(left / 60, 60), (int)fmod(left, 60));
}

static void show_epoch(const training *t, const epoch_result *r, int best) {
    const char *name = training_choice(t);
    char validation[96] = "", choice[48] = "";
    if (!isnan(r->val_loss))
        snprintf(validation, sizeof validation, "  val_loss %.4f  %s %.4f", r->val_loss, training_metric(t),
                 r->val_metric);
    if (name && !isnan(r->val_choice)) snprintf(choice, sizeof choice, "  %s %.4f", name, r->val_choice);
    note("epoch %3d  loss %.4f%s%s  %.2f s + %.2f s%s", (int)t->epoch, r->train_loss, validation, choice, r->seconds,
         r->eval_seconds, best && !isnan(r->val_loss) ? "  best" : "");
}

/* Calls the watcher, who may end the run; step or epoch, if not NULL, has just been done. */
static void ask(const folder *f, const training *t, const step_result *step, const epoch_result *epoch) {
    train_watch *w = f->watch;
    if (w && w->go_on && !w->go_on(w->context, t, step, epoch)) w->late = 1;
}

/* Has the deadline passed, or has the run been stopped? */
static int is_over(const folder *f) {
    if (f->watch && seconds() >= f->watch->deadline) f->watch->late = 1;
    return distributed_any(f->ranks, interrupted || stop_asked() || (f->watch && f->watch->late));
}

static const char *why_over(void) {
    return interrupted ? "interrupted" : stop_asked() ? "stopped" : "the time is up";
}

/* What goes on with a run that is over. */
static const char *how_again(const folder *f) {
    return f->watch && f->watch->again ? f->watch->again : "--resume";
}

/* Must the run end after this step? */
static int must_stop(const folder *f, const training *t, const step_result *step) {
    ask(f, t, step, NULL);
    return is_over(f);
}

/* Runs one epoch. Returns DONE, INTERRUPTED with the state saved, or BAD_USE with a message printed. */
static int run_epoch(folder *f, training *t, const prep *p, double *metric) {
    epoch_result result;
    step_result step;
    char error[512] = "";
    int more, best;
    while ((more = training_step(t, &step, error)) == 1) {
        if (may_grow(f, f->steps_file) &&
            fprintf(f->steps_file, "%d,%d,%.9g,%.9g,%.3f\n", (int)step.epoch, (int)step.batch, step.loss,
                    step.gradient_norm, t->train_seconds) < 0 &&
            !f->lost)
            f->lost = errno;
        if (must_stop(f, t, &step)) {
            if (!write_held(f)) return BAD_USE;
            if (f->writes) (void)flush_tables(f); /* the state is saved even if its rows cannot be */
            if (!save_state(f, t, p)) return BAD_USE;
            note("%s after epoch %d, batch %d; the state is in %s: go on with %s", why_over(), (int)step.epoch,
                 (int)step.batch, f->last, how_again(f));
            return INTERRUPTED;
        }
        show_step(t, &step, *metric);
    }
    best = more < 0 ? -1 : training_end_epoch(t, &result, error);
    if (f->watch) f->watch->diverged = t->diverged;
    if (best < 0) return (void)write_held(f), complain("%s", error);
    *metric = result.val_metric;
    show_epoch(t, &result, best);
    if (best && !hold_best(f, t, p)) return BAD_USE;
    log_epoch(f, t, &result);
    ask(f, t, NULL, &result);
    if (is_due(f, t) && !put_on_disk(f, t, p)) return BAD_USE;
    return f->watch && f->watch->late && !training_finished(t) ? INTERRUPTED : DONE;
}

static int is_aloud(const folder *f) {
    return !f->watch || f->watch->aloud;
}

/* Without a validation metric to choose by there is no model to show, as in a run that diverged. */
static int no_best(const folder *f, const training *t) {
    if (f->watch) f->watch->diverged = 1;
    return complain("no best model: in no epoch was the validation %s a finite number; the newest state is in %s",
                    t->plan->select == SELECT_MSE ? "error" : "loss", f->last);
}

static int run_epochs(folder *f, training *t, const prep *p) {
    double metric = NAN;
    int status = DONE;
    if (!f->watch || !f->watch->go_on || f->watch->signals) watch_signals();
    while (status == DONE && !training_finished(t)) status = run_epoch(f, t, p, &metric);
    return status;
}

/* ---- the command ---- */

static int saved_plan(plan *p, bundle *saved, const folder *f, const options *o) {
    char error[512] = "";
    const char *path = file_exists(f->last, error) == 1 ? f->last : f->first;
    if (!bundle_read(saved, path, error)) return complain("%s", error), 0;
    return plan_read(p, saved, o, error) ? 1 : (complain("%s: %s", path, error), 0);
}

static int has_groups(const dataset *d) {
    for (size_t i = 0; i < arrlenu(d->records); i++)
        if (d->records[i].group >= 0) return 1;
    return 0;
}

/* Sets the positive class, whose probability is reported, by its name. */
static int choose_positive(prep *p, const options *o, int resumed) {
    const char *name = option_text(o, "positive", NULL);
    const mtan_prep names = prep_view(p, SPLIT_TEST);
    const int32_t chosen = name ? mtan_prep_class_named(&names, name) : 0;
    if (!name) return 1;
    if (chosen < 0) return complain("--positive %s: no class of the data is called so", name), 0;
    if (resumed && chosen != names.positive)
        return complain("--positive: a resumed run keeps the setting that it was started with"), 0;
    p->positive = chosen;
    return 1;
}

/* resumed: the file of the run to resume, or NULL. */
static int prepare(plan *p, dataset *d, split *s, prep *prepared, bundle *resumed, const options *o) {
    const source_input in = option_input(o, resumed ? &resumed->prep : NULL);
    char error[512];
    if (!source_load(d, &p->source, &in)) return 0;
    if (option_given(o, "by-group") && !has_groups(d))
        return complain("--by-group: no record of this data is in a group%s",
                        p->source.set->own
                            ? "; own data has groups where its labels have a prediction_time, or by --groups COLUMN"
                            : ""),
               0;
    if (!plan_prepare(p, o, d, s, prepared, resumed) || !choose_positive(prepared, o, resumed != NULL)) return 0;
    if (!plan_can_be_saved(p, prepared, error)) return complain("%s", error), 0;
    note("%s, %s: %zu records (%td training, %td validation, %td test), %td channels, %zu parameters", p->name,
         preset_names[p->source.preset], arrlenu(d->records), arrlen(s->part[SPLIT_TRAIN]),
         arrlen(s->part[SPLIT_VALID]), arrlen(s->part[SPLIT_TEST]), arrlen(d->channels),
         mtan_weights_count(&p->config));
    if (p->source.interpolation && option_given(o, "labels"))
        note("--labels: a model that interpolates does not learn from them");
    if (arrlen(s->part[SPLIT_TRAIN]) == 0) return complain("no record is left for training"), 0;
    return 1;
}

/* The folder of a single member is resumed like that of any model. */
static int is_member(const folder *f, int resume) {
    char error[512];
    return resume && file_exists(f->last, error) == 1;
}

/* Shared by the members of an ensemble. */
typedef struct task {
    const options *options;
    const mtan_backend *backend;
    const rank_set *ranks;
    const dataset *data;
    const split *split;
    const prep *prep;
    const pretraining *pretraining; /* the records without labels, or NULL */
    const char *out;                /* the folder of the whole run */
} task;

/* Starts a training in an open folder, from its beginning or from a saved state (or NULL). Returns 1, or 0 with a
 * message printed. */
static int start(training *t, folder *f, const plan *p, const task *k, bundle *saved) {
    char error[512] = "";
    if (!training_start(t, p, k->data, k->split, k->backend, option_threads(k->options), k->ranks, error))
        return complain("%s", error), 0;
    if (saved && !training_read(t, saved, error)) return complain("%s: %s", f->last, error), 0;
    return (!saved || renew_best(f, p)) && folder_tables(f, t, saved != NULL);
}

/* ---- pretraining ---- */

/* Is the encoder ready? If not, b is the state in which the pretraining stopped, or zeros. -1 with a message
 * printed. */
static int is_pretrained(bundle *b, const folder *f, const plan *p) {
    char error[512] = "";
    const int there = file_exists(f->last, error);
    memset(b, 0, sizeof *b);
    if (there < 0 || (there && !bundle_read(b, f->last, error))) return complain("%s", error), -1;
    return there && bundle_number(b, "mtan.run.epoch", 0) >= p->pretrain_epochs;
}

/* A separate run, of a model that interpolates. */
static int pretrain(folder *f, const char *path, const task *k, bundle *saved) {
    const pretraining *x = k->pretraining;
    const task own = {k->options, k->backend, k->ranks, &x->data, &x->split, &x->prep, NULL, path};
    training t;
    int status = BAD_USE;
    note("pretraining on %zu records, %zu left out as they are for validation or test", arrlenu(x->data.records),
         x->left_out);
    memset(&t, 0, sizeof t);
    if (folder_open(f, path, saved->blob != NULL) && start(&t, f, &x->plan, &own, saved->blob ? saved : NULL))
        status = run_epochs(f, &t, &x->prep);
    training_stop(&t);
    folder_close(f);
    return status;
}

/* Takes over the encoder of RUN/pretrain. The run's own state is saved before, so that it can be resumed, and after. */
static int take_pretrained(training *t, const folder *f, const task *k) {
    const plan *p = t->plan;
    char path[4096];
    folder made;
    bundle b;
    int status = BAD_USE, ready;
    snprintf(path, sizeof path, "%.4000s/pretrain", k->out);
    if (!save_state(f, t, k->prep) || !folder_start(&made, path, k->ranks, f->watch)) return BAD_USE;
    ready = is_pretrained(&b, &made, p);
    if (ready == 0 && !k->pretraining) complain("--pretrain is missing: the pretraining in %s has not ended", path);
    else if (ready == 0) {
        status = pretrain(&made, path, k, &b);
        bundle_free(&b);
        (void)distributed_any(k->ranks, 0); /* waits until the first rank has written the file that all ranks read
                                             * now */
        if (status == DONE) ready = is_pretrained(&b, &made, p);
    }
    if (ready > 0 && !training_take(t, &b.model)) status = complain("%s", status_message(MTAN_ERR_DEVICE));
    else if (ready > 0) status = save_state(f, t, k->prep) ? DONE : BAD_USE;
    bundle_free(&b);
    return status;
}

/* ---- what follows the last epoch ---- */

typedef struct follow_up {
    const folder *folder;
    const training *training;
    memory_undo undo;
} follow_up;

/* Has a signal or the watcher stopped it? A deadline does not: the model is to be whole. */
static int is_unwanted(void *context) {
    const follow_up *x = context;
    const train_watch *w = x->folder->watch;
    return interrupted || (w && w->go_on && !w->go_on(w->context, x->training, NULL, NULL));
}

static void hear_no_more(void *unused) {
    (void)unused;
    stop_listen(NULL, NULL);
}

static void follow_up_start(follow_up *x, const folder *f, const training *t) {
    x->folder = f, x->training = t;
    memory_remember(&x->undo, hear_no_more, NULL);
    stop_listen(is_unwanted, x);
}

static void follow_up_end(follow_up *x) {
    hear_no_more(NULL);
    memory_forget(&x->undo);
}

/* Ends it: `what` is left out, and is done again when the run is resumed, whose state is that of the last epoch. */
static int leave_out(const folder *f, const char *what) {
    note("%s in %s, which is left out with all that follows: go on with %s", why_over(), what, how_again(f));
    return INTERRUPTED;
}

/* ---- training again, on the validation records too ---- */

static int copy_file(const char *from, const char *to) {
    char error[512] = "", *bytes;
    size_t n = 0;
    const int good = (bytes = file_read(from, &n, error)) && file_write(to, bytes, n, error);
    free(bytes);
    return good ? 1 : (complain("%s", error), 0);
}

/* If a resumed run had already been trained again, restores the model that was chosen before. */
static int restore_chosen(const folder *f) {
    char error[512] = "";
    const int there = f->writes ? file_exists(f->chosen, error) : 0;
    if (there < 0) return complain("%s", error), 0;
    return !there || copy_file(f->chosen, f->best);
}

/* An interrupted second training keeps nothing: it starts from its beginning when the run is resumed. */
static int run_again(const folder *f, training *t, int32_t epochs) {
    epoch_result result;
    step_result step;
    char error[512] = "";
    while (t->epoch < epochs) {
        int more;
        while ((more = training_step(t, &step, error)) == 1) {
            if (is_over(f)) return leave_out(f, "the second training");
            show_step(t, &step, NAN);
        }
        if (more < 0 || training_end_epoch(t, &result, error) < 0) return complain("%s", error);
    }
    return training_fetch(t) ? DONE : complain("%s", status_message(MTAN_ERR_DEVICE));
}

/* Starts like the training of the chosen model. */
static int start_again(training *t, const training *chosen, const split *all, const task *k, const folder *f) {
    const plan *p = chosen->plan;
    char error[512] = "", path[4096];
    folder made;
    bundle b;
    int good;
    if (!training_start(t, p, k->data, all, k->backend, option_threads(k->options), k->ranks, error))
        return complain("%s", error), 0;
    if (!p->pretrained[0]) return 1;
    snprintf(path, sizeof path, "%.4000s/pretrain", k->out);
    if (!folder_start(&made, path, k->ranks, f->watch) || is_pretrained(&b, &made, p) < 0) return 0;
    good = training_take(t, &b.model) || (complain("%s", status_message(MTAN_ERR_DEVICE)), 0);
    bundle_free(&b);
    return good;
}

/* weights: of the network, NULL: the chosen ones; positions: of the records that the trees are fitted to. */
static int write_again(const folder *f, const training *t, const mtan_real *weights, const int32_t *positions,
                       const trees_fit *trees) {
    char error[512] = "";
    bundle b;
    int status = BAD_USE;
    if (!f->writes) return DONE;
    if (!bundle_read(&b, f->best, error)) return complain("%s", error);
    if (weights) memcpy(b.weights, weights, mtan_weights_count(&b.model.config) * sizeof *b.weights);
    trees_refit(&b, t->data, positions, t->plan->seed, trees);
    if (stop_asked()) status = leave_out(f, "the second training");
    else if (copy_file(f->best, f->chosen) && rewrite_best(f, t->plan, &b, 1, 1)) status = DONE;
    bundle_free(&b);
    return status;
}

static int train_network_again(const folder *f, const training *chosen, const split *all, const task *k,
                               const trees_fit *trees) {
    training t;
    int status = BAD_USE;
    memset(&t, 0, sizeof t);
    note("once more, %d epochs on the %td records of training and validation", (int)chosen->best_epoch,
         arrlen(all->part[SPLIT_TRAIN]));
    if (start_again(&t, chosen, all, k, f)) status = run_again(f, &t, chosen->best_epoch);
    if (status == DONE) status = write_again(f, &t, t.kept.weights, all->part[SPLIT_TRAIN], trees);
    training_stop(&t);
    return status;
}

/* Everything chosen on the validation records stays: the epoch, and of the trees their number and their shares. */
static int train_again(const folder *f, const training *chosen, const task *k, const trees_fit *trees) {
    split all = {0};
    int status = DONE;
    for (int part = SPLIT_TRAIN; part <= SPLIT_VALID; part++)
        for (size_t i = 0; i < arrlenu(k->split->part[part]); i++)
            arrput(all.part[SPLIT_TRAIN], k->split->part[part][i]);
    if (chosen->plan->refit == REFIT_ALL) status = train_network_again(f, chosen, &all, k, trees);
    else if (trees->count > 0) {
        note("the trees once more, on the %td records of training and validation", arrlen(all.part[SPLIT_TRAIN]));
        status = write_again(f, chosen, NULL, all.part[SPLIT_TRAIN], trees);
    }
    split_free(&all);
    return status;
}

/* ---- models ---- */

/* An ensemble's members are measured together, unless they were also trained on the validation records. Only the first
 * rank fits trees and measures, but all ranks stop. */
static int complete(const folder *f, const training *t, const task *k) {
    const int alone = t->plan->ensemble == 1, aloud = f->writes && is_aloud(f);
    trees_fit trees;
    int status = DONE;
    if (!restore_chosen(f) || !add_trees(f, t, k->options, &trees)) return BAD_USE;
    if (distributed_any(f->ranks, stop_asked())) return leave_out(f, "the fit of trees");
    if (aloud && (alone || t->plan->refit != REFIT_NOTHING)) outcome_say(f->best, t, k->options);
    if (distributed_any(f->ranks, stop_asked())) return leave_out(f, "the comparison with simpler models");
    if (t->plan->refit != REFIT_NOTHING) status = train_again(f, t, k, &trees);
    if (status == DONE && aloud && alone) outcome_next(f->best, k->options);
    return status;
}

static int finish(const folder *f, const training *t, const task *k) {
    follow_up x;
    int status;
    if (t->best_epoch == 0) return no_best(f, t);
    note("best epoch %d of %d: %s", (int)t->best_epoch, (int)t->epoch, f->best);
    follow_up_start(&x, f, t);
    status = complete(f, t, k);
    follow_up_end(&x);
    return status;
}

/* Trains one model in an open folder; saved: the state to resume from, or NULL. The caller stops the training. */
static int train_one(training *t, folder *f, const plan *p, const task *k, bundle *saved) {
    int status = start(t, f, p, k, saved) ? DONE : BAD_USE;
    if (status == DONE && p->pretrained[0] && t->epoch == 0 && t->batch == 0) status = take_pretrained(t, f, k);
    if (status == DONE) status = run_epochs(f, t, k->prep);
    return status == DONE ? finish(f, t, k) : status;
}

/* A member resumes from its own state, if it has one. */
static int train_member(training *t, folder *f, const char *path, const plan *p, const task *k) {
    char error[512] = "";
    bundle saved;
    int status = BAD_USE;
    const int resume = option_given(k->options, "resume") ? file_exists(f->last, error) : 0;
    if (resume < 0) return complain("%s", error);
    memset(&saved, 0, sizeof saved);
    if (!folder_open(f, path, resume)) return BAD_USE;
    if (resume && !bundle_read(&saved, f->last, error)) complain("%s", error);
    else status = train_one(t, f, p, k, resume ? &saved : NULL);
    bundle_free(&saved);
    return status;
}

static int say_joined(const folder *f, const training *t, const task *k) {
    follow_up x;
    int status;
    follow_up_start(&x, f, t);
    outcome_say(f->best, t, k->options);
    status = stop_asked() ? leave_out(f, "the comparison with simpler models") : DONE;
    follow_up_end(&x);
    return status;
}

/* Trains the members one after the other, each with its own seed, and joins their best models. */
static int train_members(const folder *f, const char *out, const plan *p, const task *k) {
    char(*best)[4096] = tool_calloc((size_t)p->ensemble, sizeof *best), path[4096], error[512] = "";
    int status = DONE;
    for (int32_t i = 0; i < p->ensemble && status == DONE; i++) {
        const int last = i + 1 == p->ensemble;
        plan own = *p;
        training t;
        folder member;
        memset(&t, 0, sizeof t);
        own.seed += i;
        snprintf(path, sizeof path, "%.4000s/member-%d", out, (int)i);
        if (!folder_start(&member, path, k->ranks, f->watch)) status = BAD_USE;
        else {
            note("member %d of %d, seed %lld", (int)i + 1, (int)p->ensemble, (long long)own.seed);
            status = train_member(&t, &member, path, &own, k);
            memcpy(best[i], member.best, sizeof best[i]);
        }
        if (status == DONE && last && f->writes) {
            if (!ensemble_join(f->best, p, best, p->ensemble, NULL, error)) status = complain("%s", error);
            else note("the average of %d models: %s", (int)p->ensemble, f->best);
            if (status == DONE && is_aloud(f) && p->refit == REFIT_NOTHING) status = say_joined(f, &t, k);
            if (status == DONE && is_aloud(f)) outcome_next(f->best, k->options);
        }
        training_stop(&t);
        folder_close(&member);
    }
    free(best);
    return status;
}

/* Opens the records without labels, if they are given. */
static int prepare_pretraining(pretraining *x, plan *p, task *k) {
    const char *path = option_text(k->options, "pretrain", NULL);
    if (path && !pretrain_open(x, p, k->data, k->split, k->prep, path)) return 0;
    if (path) k->pretraining = x;
    return 1;
}

static int train(const options *o, const rank_set *r, train_watch *w) {
    const int resume = option_given(o, "resume");
    const char *out = option_text(o, "out", NULL);
    bundle saved;
    folder f;
    plan p;
    dataset d;
    split s;
    prep prepared;
    training t;
    pretraining x;
    task k = {o, NULL, r, &d, &s, &prepared, NULL, out};
    int status = BAD_USE;
    memset(&saved, 0, sizeof saved), memset(&d, 0, sizeof d), memset(&s, 0, sizeof s),
        memset(&prepared, 0, sizeof prepared);
    memset(&f, 0, sizeof f), memset(&t, 0, sizeof t), memset(&x, 0, sizeof x);
    if ((resume || plan_is_named(o)) && option_backend(o, &k.backend) && folder_start(&f, out, r, w) &&
        (resume || plan_make(&p, o)) && folder_open(&f, out, resume) && (!resume || saved_plan(&p, &saved, &f, o)) &&
        prepare(&p, &d, &s, &prepared, resume ? &saved : NULL, o) && prepare_pretraining(&x, &p, &k))
        status = p.ensemble > 1 && !is_member(&f, resume) ? train_members(&f, out, &p, &k)
                                                          : train_one(&t, &f, &p, &k, resume ? &saved : NULL);
    training_stop(&t);
    folder_close(&f);
    pretrain_close(&x);
    prep_free(&prepared), split_free(&s), dataset_free(&d), bundle_free(&saved);
    return status;
}

int train_run(const options *o, train_watch *w) {
    if (w) w->late = w->diverged = 0;
    if (option_given(o, "budget") && !option_given(o, "resume")) return search_run(o, w);
    return train(o, NULL, w);
}

int command_train(const options *o) {
    rank_set r;
    int status;
    if (!option_given(o, "distributed") || option_given(o, "budget")) return train_run(o, NULL);
    if (!distributed_start(&r)) return BAD_USE;
    if (r.rank > 0) messages_quiet(1);
    status = train(o, &r, NULL);
    distributed_stop(status);
    return status;
}
