/* See training.h. */
#include "training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../run/bounds.h"
#include "../model/bundle.h"
#include "../run/device.h"
#include "../measure/interpolation.h"
#include "knots.h"
#include "../measure/labels.h"
#include "../measure/numbers.h"
#include "../measure/predictions.h"
#include "pretrain.h"
#include "../run/solver_room.h"
#include "../../data/generators.h"

enum { DRAW_THIN = 1, DRAW_SHARE = 2, DRAW_TIMES = 3, DRAW_ORDER = 4, DRAW_HOOK = 5 };
static const double DIVERGED = 1e4; /* a loss this many times the first one: training has diverged */

/* Four random words for one kind of draw (`what`) for a record in an epoch. */
static void draw(uint32_t out[4], const training *t, uint32_t what, uint64_t record, uint32_t index) {
    const uint32_t counter[4] = {index, (uint32_t)(t->epoch + 1), (uint32_t)record, (uint32_t)(record >> 32)};
    const uint32_t key[2] = {(uint32_t)t->plan->seed, what};
    mtan_philox(out, counter, key);
}

static double uniform(uint32_t word) {
    return (double)word / 4294967296.0;
}

/* ---- start ---- */

static mtan_bounds training_bounds(const training *t) {
    mtan_bounds b = model_bounds(&t->plan->config, t->data);
    b.records = t->plan->batch;
    return b;
}

/* Bounds of the validation runner. */
static mtan_bounds runner_bounds(const training *t) {
    return t->plan->source.interpolation ? interpolation_bounds(t->data) : model_bounds(&t->plan->config, t->data);
}

static double rate_of(void *context, int64_t step, int32_t epoch) {
    const training *t = context;
    (void)epoch;
    return plan_rate(t->plan, step, (int64_t)training_batches(t) * t->plan->epochs);
}

/* Makes the trainer in a newly allocated block. */
static mtan_status make_trainer(training *t, const mtan_train_config *config) {
    const mtan_bounds bounds = training_bounds(t);
    size_t bytes = 0;
    const mtan_status status = mtan_trainer_size(&t->model, config, &bounds, &bytes);
    if (status != MTAN_OK) return status;
    t->memory = tool_realloc(NULL, bytes); /* not cleared, so that pages which no batch needs stay untouched */
    if (!device_hold(t->model.backend, t->memory, bytes)) return MTAN_ERR_DEVICE;
    return mtan_trainer_init(&t->trainer, &t->model, t->weights, config, &bounds, t->memory, bytes);
}

static int start_validation(training *t, char *error) {
    t->kept = t->model;
    if (t->trainer.average) t->kept.weights = t->trainer.average;
    return runner_borrow(&t->run, &t->trainer, &t->kept, &t->pool, runner_bounds(t), error);
}

static mtan_status start_trainer(training *t, const rank_set *r, int32_t threads) {
    const plan *p = t->plan;
    mtan_train_config config;
    mtan_train_config_init(&config);
    config.optimizer = p->optimizer ? MTAN_ADAMAX : MTAN_ADAM;
    config.lr = p->lr;
    config.clip = p->clip;
    config.decay = p->decay, config.average = p->average;
    config.class_weights = t->class_weights;
    config.dropout = p->dropout;
    config.kl_weight = p->kl_weight;
    config.seed = (uint64_t)p->seed;
    mtan_pool_start(&t->pool, t->model.backend->device ? 1 : threads); /* it may start fewer threads */
    config.parallel_for = mtan_pool_run, config.parallel_context = &t->pool, config.threads = t->pool.threads;
    if (r) config.rank = r->rank, config.ranks = r->ranks, config.allreduce = r->allreduce;
    if (r) config.allreduce_context = r->context;
    if (p->schedule != SCHEDULE_CONSTANT || p->warmup > 0) config.schedule = rate_of, config.schedule_context = t;
    return make_trainer(t, &config);
}

/* Makes room for more solver steps: a larger block with the state of the old one. 0: no more room is to be had. */
static int grow_trainer(training *t) {
    const mtan_trainer old = t->trainer;
    const size_t bytes = mtan_weights_count(&old.model->config) * sizeof *old.moment1;
    void *memory = t->memory;
    char error[512];
    if (!grow_steps(&t->model.config) || make_trainer(t, &old.config) != MTAN_OK) {
        if (t->memory != memory) free(t->memory);
        t->memory = memory, t->trainer = old;
        return 0;
    }
    memcpy(t->trainer.moment1, old.moment1, bytes);
    memcpy(t->trainer.moment2, old.moment2, bytes);
    if (old.average) memcpy(t->trainer.average, old.average, bytes);
    t->trainer.step = old.step;
    free(memory);
    runner_stop(&t->run);
    return start_validation(t, error);
}

/* Stores the channel means of the training records among the weights, for baselines that fill gaps with them. */
static void set_means(training *t) {
    const size_t D = (size_t)t->plan->config.channels;
    double *sum = tool_calloc(2 * D, sizeof *sum), *count = sum + D;
    mtan_param p;
    if (t->plan->config.architecture && param_find(&p, &t->plan->config, "rec.mean")) {
        for (size_t i = 0; i < arrlenu(t->split->part[SPLIT_TRAIN]); i++) {
            const mtan_record r = dataset_view(t->data, (size_t)t->split->part[SPLIT_TRAIN][i]);
            for (int32_t k = 0; k < r.n_events; k++)
                sum[r.events[k].channel] += (double)r.events[k].value, count[r.events[k].channel]++;
        }
        for (size_t d = 0; d < D; d++) t->weights[p.offset + d] = (mtan_real)(count[d] > 0 ? sum[d] / count[d] : 0);
    }
    free(sum);
}

int training_start(training *t, const plan *p, const dataset *d, const split *s, const mtan_backend *backend,
                   int32_t threads, const rank_set *r, char *error) {
    const size_t count = mtan_weights_count(&p->config), batches = backend->device ? 2 : 1;
    mtan_bounds most;
    mtan_status status;
    memset(t, 0, sizeof *t);
    t->plan = p, t->data = d, t->split = s;
    most = runner_bounds(t);
    t->best = INFINITY;
    t->first_loss = NAN;
    t->class_weights = plan_class_weights(p, d, s);
    t->weights = tool_calloc(count, sizeof *t->weights);
    t->records = tool_calloc(batches * (size_t)p->batch, sizeof *t->records);
    t->order = tool_calloc(arrlenu(s->part[SPLIT_TRAIN]), sizeof *t->order);
    if (p->source.interpolation && p->config.variance == MTAN_VARIANCE_LEARNED)
        t->bands = tool_calloc((size_t)p->config.channels, sizeof *t->bands);
    if (p->thin > 0 || p->source.interpolation)
        t->events = tool_realloc(NULL, batches * (size_t)p->batch * (size_t)most.events * sizeof *t->events);
    if ((t->hook = baseline_hook_of(&p->config)))
        t->room = tool_realloc(NULL, batches * (size_t)p->batch * (size_t)most.events * sizeof *t->room);
    status = mtan_weights_init(&p->config, t->weights, count, (uint32_t)p->seed);
    if (status == MTAN_OK) set_means(t), knots_fit(t->weights, p, d, s);
    if (status == MTAN_OK) status = mtan_model_init(&t->model, &p->config, t->weights, count);
    t->model.backend = backend;
    if (status == MTAN_OK && (!device_hold(backend, t->weights, count * sizeof *t->weights) ||
                              !device_send(backend, t->weights, count * sizeof *t->weights)))
        status = MTAN_ERR_DEVICE;
    if (status == MTAN_OK) status = start_trainer(t, r, threads);
    if (status == MTAN_OK && start_validation(t, error)) return 1;
    if (status == MTAN_ERR_CONFIG && backend->device)
        snprintf(error, 512, "the model cannot be trained on %s: baselines and --distributed run on CPUs",
                 mtan_backend_name(backend));
    else if (status != MTAN_OK) snprintf(error, 512, "the model cannot be trained: %s", status_message(status));
    training_stop(t);
    return 0;
}

int training_take(training *t, const mtan_model *pretrained) {
    pretrain_give(&t->model.config, t->weights, pretrained);
    return device_send(t->model.backend, t->weights, mtan_weights_count(&t->model.config) * sizeof *t->weights);
}

void training_stop(training *t) {
    runner_stop(&t->run);
    mtan_pool_stop(&t->pool);
    device_release(t->model.backend, t->memory), device_release(t->model.backend, t->weights);
    arrfree(t->class_weights);
    free(t->memory), free(t->weights), free(t->records), free(t->events), free(t->room), free(t->order);
    free(t->bands);
    memset(t, 0, sizeof *t);
}

/* ---- batches ---- */

int32_t training_batches(const training *t) {
    return (int32_t)((arrlen(t->split->part[SPLIT_TRAIN]) + t->plan->batch - 1) / t->plan->batch);
}

static void order_epoch(training *t) {
    const size_t n = arrlenu(t->split->part[SPLIT_TRAIN]);
    uint32_t word[4];
    mtan_mt19937 rng;
    draw(word, t, DRAW_ORDER, 0, 0);
    mtan_mt_seed(&rng, word[0]);
    if (t->plan->shuffle) numpy_permutation(&rng, t->order, n);
    else
        for (size_t i = 0; i < n; i++) t->order[i] = (int32_t)i;
}

/* Each observation stays with probability 1 - thin. */
static void thin_events(const training *t, mtan_record *r, mtan_event *out) {
    uint32_t word[4];
    int32_t n = 0;
    for (int32_t i = 0; i < r->n_events; i++) {
        if (i % 4 == 0) draw(word, t, DRAW_THIN, r->id, (uint32_t)i / 4);
        if (uniform(word[i % 4]) >= t->plan->thin) out[n++] = r->events[i];
    }
    r->events = out, r->n_events = n;
}

/* Copies the events at shown times (wanted 1) or hidden times (wanted 0) in their order; returns how many. */
static int32_t take_events(mtan_event *out, const mtan_record *r, const unsigned char *shown, int wanted) {
    int32_t n = 0, time = -1;
    for (int32_t i = 0; i < r->n_events; i++) {
        time += i == 0 || r->events[i].time > r->events[i - 1].time;
        if (shown[time] == wanted) out[n++] = r->events[i];
    }
    return n;
}

/* The encoder sees a share of the times; the decoder is scored on all observations. A decoder that learns its own
 * variance is scored on the hidden ones only: those that the encoder sees are easier than any others and would make it
 * overconfident. */
static void hide_times(const training *t, mtan_record *r, int32_t n_times, mtan_event *out) {
    const double low = t->plan->observed_low, high = t->plan->observed_high;
    unsigned char *shown = tool_calloc((size_t)n_times, 1);
    uint32_t word[4];
    draw(word, t, DRAW_SHARE, r->id, 0);
    const double share = low + (high - low) * uniform(word[0]);
    draw(word, t, DRAW_TIMES, r->id, 0);
    choose_times(shown, n_times, share, (uint64_t)word[0] << 32 | word[1]);
    const int32_t n = take_events(out, r, shown, 1);
    r->targets = r->events, r->n_targets = r->n_events;
    if (t->plan->config.variance == MTAN_VARIANCE_LEARNED && n < r->n_events)
        r->n_targets = take_events(out + n, r, shown, 0), r->targets = out + n;
    r->events = out, r->n_events = n;
    free(shown);
}

/* The encoder sees the events up to a time drawn between the record's first and last; the decoder is scored on the
 * events within the horizon after it. */
static void hide_future(const training *t, mtan_record *r) {
    const mtan_event *e = r->events;
    const int32_t n = r->n_events;
    uint32_t word[4];
    int32_t past = 0, future;
    draw(word, t, DRAW_SHARE, r->id, 0);
    if (n == 0) return;
    const double cut = (double)e[0].time + uniform(word[0]) * ((double)e[n - 1].time - (double)e[0].time);
    while (past < n && (double)e[past].time <= cut) past++;
    future = past;
    while (future < n && (double)e[future].time <= cut + t->data->horizon) future++;
    r->n_events = past;
    r->targets = e + past, r->n_targets = future - past;
}

static uint32_t hook_word(const void *context, uint64_t record) {
    uint32_t word[4];
    draw(word, context, DRAW_HOOK, record, 0);
    return word[0];
}

/* Lets a baseline rearrange a batch. */
static void arrange(const training *t, mtan_record *records, int32_t n, mtan_event *room, size_t most) {
    const baseline_batch b = {&t->plan->config, records, n, 1, room, most, hook_word, t};
    t->hook->arrange(&b);
}

/* The place of a batch's first record. On a device successive batches alternate between two places, as the next batch
 * is sent while the current one runs. */
static size_t batch_place(const training *t, int32_t batch) {
    return t->model.backend->device && batch % 2 ? (size_t)t->plan->batch : 0;
}

static int32_t fill_batch(training *t, int32_t batch) {
    const int32_t *train = t->split->part[SPLIT_TRAIN], total = (int32_t)arrlen(train), first = batch * t->plan->batch;
    const size_t most = (size_t)t->trainer.bounds.events, place = batch_place(t, batch);
    mtan_record *records = t->records + place;
    int32_t n = 0;
    for (; n < t->plan->batch && first + n < total; n++) {
        const size_t position = (size_t)train[t->order[first + n]];
        mtan_record *r = &records[n];
        mtan_event *out = t->events ? t->events + (place + (size_t)n) * most : NULL;
        *r = dataset_view(t->data, position);
        if (t->data->horizon > 0) hide_future(t, r);
        else if (t->plan->source.interpolation) hide_times(t, r, t->data->records[position].n_times, out);
        if (t->plan->thin > 0) thin_events(t, r, out);
    }
    if (t->hook) arrange(t, records, n, t->room + place * most, most);
    return n;
}

int training_step(training *t, step_result *step, char *error) {
    mtan_report report;
    mtan_status status;
    int32_t n;
    const double start = seconds();
    if (t->batch == training_batches(t)) return 0;
    if (t->batch == 0) {
        order_epoch(t);
        memset(t->sum, 0, sizeof t->sum);
        t->train_seconds = 0;
    }
    n = t->filled > 0 && t->filled == t->batch ? t->n_filled : fill_batch(t, t->batch);
    if (t->model.backend->device && t->batch + 1 < training_batches(t)) {
        t->filled = t->batch + 1, t->n_filled = fill_batch(t, t->filled);
        mtan_trainer_next(&t->trainer, t->records + batch_place(t, t->filled), t->n_filled);
    }
    do status = mtan_trainer_gradient(&t->trainer, t->records + batch_place(t, t->batch), n, t->epoch + 1, &report);
    while (status == MTAN_ERR_MEMORY && grow_trainer(t));
    if (status == MTAN_OK) {
        if (isnan(t->first_loss)) t->first_loss = report.loss;
        if (!(fabs(report.loss) <= DIVERGED * (1 + fabs(t->first_loss))) || !(report.gradient_norm < INFINITY)) {
            t->diverged = 1;
            snprintf(
                error, 512,
                "epoch %d, batch %d: the loss is %g and the gradient's norm %g: training diverged; a smaller --lr or "
                "--clip 1 may help; the weights of the step before are kept",
                (int)t->epoch + 1, (int)t->batch + 1, report.loss, report.gradient_norm);
            return -1;
        }
        status = mtan_trainer_update(&t->trainer, t->epoch + 1);
    }
    if (status != MTAN_OK) {
        snprintf(error, 512, "epoch %d, batch %d: %s", (int)t->epoch + 1, (int)t->batch + 1, status_message(status));
        return -1;
    }
    t->sum[0] += report.loss * n, t->sum[1] += report.recon * n, t->sum[2] += report.ce * n, t->sum[3] += report.kl * n;
    t->sum[4] += report.gradient_norm * n;
    t->batch++;
    t->train_seconds += seconds() - start;
    step->epoch = t->epoch + 1, step->batch = t->batch, step->loss = report.loss;
    step->gradient_norm = report.gradient_norm;
    return 1;
}

/* ---- validation ---- */

const char *training_metric(const training *t) {
    if (t->plan->source.interpolation) return "val_mse";
    if (t->plan->config.task == MTAN_TASK_NUMBER) return "val_rmse";
    return t->plan->config.classes == 2 || t->plan->config.task == MTAN_TASK_LABELS ? "val_auc" : "val_acc";
}

const char *training_choice(const training *t) {
    const plan *p = t->plan;
    const int classes = p->source.interpolation || p->config.task != MTAN_TASK_CLASSES ? 0 : p->config.classes;
    if (classes > 2 && p->select == SELECT_AUC) return "val_auc";
    return classes == 2 && p->select == SELECT_ACCURACY ? "val_acc" : NULL;
}

static double choice_of(plan_select by, const predictions *p) {
    if (by == SELECT_ACCURACY) return metric_accuracy(p->p, p->label, p->rows, p->classes);
    if (by != SELECT_AUC) return NAN;
    return p->classes == 2 ? metric_auc(p->score, p->label, p->rows)
                           : metric_auc_classes(p->p, p->label, p->rows, p->classes);
}

/* Validation records of a single class have no AUC; the loss decides then. */
static int validate_classes(training *t, epoch_result *result) {
    const int two = t->plan->config.classes == 2;
    predictions p;
    if (!predictions_make(&p, &t->run, t->data, t->split->part[SPLIT_VALID], t->plan->source.preset == MTAN_FAITHFUL,
                          (size_t)t->plan->batch))
        return 0;
    predictions_drop_unlabelled(&p);
    result->val_points = p.rows;
    result->val_loss = metric_log_loss(p.p, p.label, p.rows, p.classes);
    result->val_choice = choice_of(t->plan->select, &p);
    result->val_selected = isnan(result->val_choice) ? result->val_loss : -result->val_choice;
    result->val_metric = two ? metric_auc(p.score, p.label, p.rows) : metric_accuracy(p.p, p.label, p.rows, p.classes);
    predictions_free(&p);
    return 1;
}

/* In the model's units, which are standard deviations of the training records. The RMSE is that of the model as it is
 * saved, the loss that of the weights as they are trained. */
static int validate_numbers(training *t, epoch_result *result) {
    number_predictions p;
    number_query q = {&p, NUMBER_RMSE, NULL, NULL};
    double *middle;
    if (!numbers_make_unsorted(&p, &t->run, t->data, t->split->part[SPLIT_VALID])) return 0;
    t->width = width_find(&p, t->plan->config.interval);
    q.instead = middle = width_middles(&p, t->width);
    numbers_sort(&p);
    result->val_points = p.rows;
    result->val_metric = number_drawn(&q, NULL, p.rows);
    result->val_loss = result->val_selected = numbers_loss(&p, t->plan->config.interval);
    free(middle);
    numbers_free(&p);
    return 1;
}

/* The AUC is the mean over the labels. */
static int validate_labels(training *t, epoch_result *result) {
    number_predictions p;
    if (!numbers_make(&p, &t->run, t->data, NULL, t->split->part[SPLIT_VALID])) return 0;
    label_tables tables = label_tables_make(p.p, p.y, p.rows, p.outputs);
    label_query auc = {&tables, METRIC_AUC, -1, NULL}, loss = {&tables, METRIC_LOG_LOSS, -1, NULL};
    result->val_points = p.rows;
    result->val_metric = label_drawn(&auc, NULL, p.rows);
    result->val_loss = result->val_selected = label_drawn(&loss, NULL, p.rows);
    if (t->plan->select == SELECT_AUC && !isnan(result->val_metric)) result->val_selected = -result->val_metric;
    label_tables_free(&tables), numbers_free(&p);
    return 1;
}

static int validate_curves(training *t, epoch_result *result) {
    interpolation_error e;
    const interpolation_request q = {
        t->data, t->split->part[SPLIT_VALID], t->plan->source.observed, (size_t)t->plan->batch, 0, NULL, NULL,
        t->bands};
    if (!interpolation_measure(&e, &t->run, &q, 0)) return 0;
    result->val_points = t->plan->source.observed < 1 ? e.held_points : e.points;
    result->val_loss = e.all;
    result->val_metric = t->plan->source.observed < 1 ? e.held : arrlen(t->data->truth) > 0 ? e.truth : e.all;
    result->val_selected = result->val_metric;
    return 1;
}

/* Validation by the model's task. */
static int validate(training *t, epoch_result *result) {
    if (t->plan->source.interpolation) return validate_curves(t, result);
    switch (t->plan->config.task) {
    case MTAN_TASK_NUMBER: return validate_numbers(t, result);
    case MTAN_TASK_LABELS: return validate_labels(t, result);
    case MTAN_TASK_CLASSES: break;
    }
    return validate_classes(t, result);
}

int training_end_epoch(training *t, epoch_result *result, char *error) {
    const double n = (double)arrlen(t->split->part[SPLIT_TRAIN]), start = seconds();
    int good, best;
    result->train_loss = t->sum[0] / n, result->train_recon = t->sum[1] / n, result->train_ce = t->sum[2] / n;
    result->train_kl = t->sum[3] / n, result->gradient_norm = t->sum[4] / n;
    result->val_loss = result->val_metric = result->val_choice = result->val_selected = NAN, result->val_points = 0;
    result->seconds = t->train_seconds;
    good = runner_refresh(&t->run) == MTAN_OK;
    if (good && arrlen(t->split->part[SPLIT_VALID]) > 0) good = validate(t, result);
    if (!good) {
        t->diverged = t->run.status == MTAN_ERR_NUMERIC;
        return snprintf(error, 512, "epoch %d, validation: %s", (int)t->epoch + 1, status_message(t->run.status)), -1;
    }
    result->eval_seconds = seconds() - start;
    t->epoch++, t->batch = t->filled = 0;
    mtan_trainer_next(&t->trainer, NULL, 0); /* a search may have cut the epoch short */
    best = result->val_points == 0 ||
           (isfinite(result->val_selected) && (t->plan->select == SELECT_LAST || result->val_selected < t->best));
    if (best && result->val_points > 0) t->best = result->val_selected;
    if (best) t->best_epoch = t->epoch, t->since_best = 0;
    else t->since_best++;
    return best;
}

int training_finished(const training *t) {
    return t->epoch >= t->plan->epochs || (t->plan->patience > 0 && t->since_best >= t->plan->patience);
}

/* ---- widths of intervals ---- */

static mtan_real *kept_weights(const training *t) {
    return t->trainer.average ? t->trainer.average : t->weights;
}

static int change_kept(training *t, size_t bytes) {
    return device_send(t->kept.backend, kept_weights(t), bytes) && runner_refresh(&t->run) == MTAN_OK;
}

int training_widen(training *t, mtan_real **before) {
    const size_t count = mtan_weights_count(&t->kept.config), bytes = count * sizeof **before;
    *before = NULL;
    if (!width_changes(t->width)) return 1;
    *before = tool_realloc(NULL, bytes);
    memcpy(*before, kept_weights(t), bytes);
    width_apply(&t->kept.config, kept_weights(t), t->width);
    return change_kept(t, bytes);
}

int training_narrow(training *t, mtan_real *before) {
    const size_t bytes = mtan_weights_count(&t->kept.config) * sizeof *before;
    if (!before) return 1;
    memcpy(kept_weights(t), before, bytes);
    free(before);
    return change_kept(t, bytes);
}

/* ---- checkpoints ---- */

static void add_state(mtan_file_pair **pairs, const char *key, double x) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", x);
    pairs_add(pairs, key, text);
}

int training_fetch(training *t) {
    const mtan_backend *b = t->model.backend;
    const size_t bytes = mtan_weights_count(&t->model.config) * sizeof(mtan_real);
    return device_fetch(b, t->weights, bytes) && device_fetch(b, t->trainer.moment1, bytes) &&
           device_fetch(b, t->trainer.moment2, bytes) &&
           (!t->trainer.average || device_fetch(b, t->trainer.average, bytes));
}

void training_write(const training *t, mtan_file_pair **pairs) {
    static const char *const sums[] = {"loss", "recon", "ce", "kl", "norm"};
    char key[48];
    add_state(pairs, "mtan.run.epoch", t->epoch);
    add_state(pairs, "mtan.run.batch", t->batch);
    add_state(pairs, "mtan.run.best_epoch", t->best_epoch);
    add_state(pairs, "mtan.run.since_best", t->since_best);
    add_state(pairs, "mtan.run.best", t->best);
    add_state(pairs, "mtan.run.first_loss", t->first_loss);
    for (int i = 0; i < 5; i++) {
        snprintf(key, sizeof key, "mtan.run.sum.%s", sums[i]);
        add_state(pairs, key, t->sum[i]);
    }
    source_write_split(t->split, &t->plan->source, pairs);
}

int training_read(training *t, bundle *b, char *error) {
    static const char *const sums[] = {"loss", "recon", "ce", "kl", "norm"};
    const double epoch = bundle_number(b, "mtan.run.epoch", -1), batch = bundle_number(b, "mtan.run.batch", -1);
    char key[48];
    mtan_status status;
    if (!(epoch >= 0 && epoch < 1e9) || !(batch >= 0 && batch <= training_batches(t)))
        return snprintf(error, 512, "its mtan.run.* metadata is out of range"), 0;
    status = mtan_trainer_load(&t->trainer, &b->file);
    if (status != MTAN_OK) return snprintf(error, 512, "%s", status_message(status)), 0;
    t->epoch = (int32_t)epoch, t->batch = (int32_t)batch;
    t->best_epoch = (int32_t)fmax(0, fmin(epoch, bundle_number(b, "mtan.run.best_epoch", 0)));
    t->since_best = (int32_t)fmax(0, fmin(epoch, bundle_number(b, "mtan.run.since_best", 0)));
    t->best = bundle_number(b, "mtan.run.best", INFINITY);
    if (!isfinite(t->best)) t->best = INFINITY; /* older files may hold NaN, which no epoch would ever beat */
    t->first_loss = bundle_number(b, "mtan.run.first_loss", NAN);
    for (int i = 0; i < 5; i++) {
        snprintf(key, sizeof key, "mtan.run.sum.%s", sums[i]);
        t->sum[i] = bundle_number(b, key, 0);
    }
    if (t->batch > 0) order_epoch(t);
    return 1;
}
