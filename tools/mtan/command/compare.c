/* mtan compare A B: the differences between two model files, tensor by tensor and key by key; with --data also between
 * their predictions for the same records. It only reads, and does not say which model to prefer. */
#include "commands.h"
#include "difference.h"
#include "../../data/shown.h"
#include "../base/json_text.h"
#include "../run/bounds.h"
#include "../model/session.h"
#include "../measure/worth.h"
#include "../model/shared_options.h"

#include <math.h>
#include <string.h>

enum { SEED = 0, LONGEST_VALUE = 34 };

/* The predictions of both models for the same records. */
typedef struct outcome {
    const char *part;
    paired_metric *metrics; /* stb_ds array */
    size_t rows, changes;
    int32_t classes; /* 0: interpolation */
} outcome;

/* ---- words ---- */

/* An extent is written "(128, 41)", an element's place in row-major order "[3, 7]". */
static const char *shape_text(char text[96], const mtan_tensor_view *v) {
    size_t used = (size_t)snprintf(text, 96, "(");
    for (int i = 0; i < v->rank && used < 80; i++)
        used += (size_t)snprintf(text + used, 96 - used, "%s%zu", i ? ", " : "", v->shape[i]);
    snprintf(text + used, 96 - used, ")");
    return text;
}

static const char *place_text(char text[96], const mtan_tensor_view *v, size_t where) {
    size_t place[MTAN_MAX_RANK], used = (size_t)snprintf(text, 96, "[");
    for (int i = v->rank; i-- > 0; where /= v->shape[i]) place[i] = where % v->shape[i];
    for (int i = 0; i < v->rank && used < 80; i++)
        used += (size_t)snprintf(text + used, 96 - used, "%s%zu", i ? ", " : "", place[i]);
    snprintf(text + used, 96 - used, "]");
    return text;
}

static const char *kind_text(difference_kind kind) {
    switch (kind) {
    case DIFFERENCE_NONE: return "equal bits";
    case DIFFERENCE_VALUES: return "values differ";
    case DIFFERENCE_SHAPE: return "shapes differ";
    case DIFFERENCE_ONLY_A: return "only in A";
    case DIFFERENCE_ONLY_B: return "only in B";
    }
    return "";
}

/* ---- text ---- */

static void print_tensor(const tensor_difference *t) {
    char shape[96], other[96];
    shown_put(stdout, t->name, 30, SIZE_MAX);
    printf(" %-12s ", shape_text(shape, t->kind == DIFFERENCE_ONLY_B ? &t->b : &t->a));
    if (t->kind == DIFFERENCE_VALUES)
        printf("%9.3g  %9.3g  %s\n", t->largest, t->relative, place_text(other, &t->a, t->where));
    else if (t->kind == DIFFERENCE_SHAPE) printf("in B %s\n", shape_text(other, &t->b));
    else printf("%s\n", kind_text(t->kind));
}

/* Long values (statistics per channel) are cut: `mtan inspect` shows them in full. */
static void print_value(const char *side, const char *value) {
    printf("    %s  ", side);
    puts(!value ? "(none)" : shown_put(stdout, value, 0, 2 * LONGEST_VALUE) ? "..." : "");
}

static void print_differences(const differences *d, double tolerance) {
    size_t equal = 0;
    printf("%-30s %-12s %9s  %9s  %s\n", "tensor", "shape", "largest", "relative", "largest at");
    for (size_t i = 0; i < arrlenu(d->tensors); i++) {
        equal += d->tensors[i].kind == DIFFERENCE_NONE;
        print_tensor(&d->tensors[i]);
    }
    printf("\n%zu of %zu tensors have equal bits", equal, arrlenu(d->tensors));
    if (!d->metadata_compared) printf("; a checkpoint and a model file: metadata is not compared\n");
    else if (arrlenu(d->metadata) == 0) printf("; the metadata is the same\n");
    else printf("; metadata that differs:\n");
    for (size_t i = 0; i < arrlenu(d->metadata); i++) {
        const metadata_difference *m = &d->metadata[i];
        printf("  ");
        shown_put(stdout, m->key, 0, SIZE_MAX);
        puts(m->counts ? "" : " (does not count)");
        print_value("A", m->a);
        print_value("B", m->b);
    }
    if (differences_equal(d, tolerance)) printf(tolerance > 0 ? "equal within %g\n" : "equal\n", tolerance);
    else printf("A and B differ\n");
}

static void print_outcome(const outcome *x) {
    printf("\nboth on the %s records: %zu rows\n", x->part, x->rows);
    printf("%-10s %10s %10s %10s   %s\n", "metric", "A", "B", "B - A", "95 % interval of B - A");
    for (size_t i = 0; i < arrlenu(x->metrics); i++) {
        const paired_metric *m = &x->metrics[i];
        printf("%-10s %10.4g %10.4g %+10.3g   ", m->name, m->a, m->b, m->b - m->a);
        if (isnan(m->difference.low)) printf("-\n");
        else printf("%+.3g to %+.3g\n", m->difference.low, m->difference.high);
    }
    if (x->classes) printf("%zu of %zu predictions change class\n", x->changes, x->rows);
}

/* ---- JSON ---- */

static void json_field(const char *name, double x) {
    printf(",\"%s\":", name);
    json_number(stdout, x);
}

static void json_shape(const char *name, const mtan_tensor_view *v) {
    printf(",\"%s\":[", name);
    for (int i = 0; i < v->rank; i++) printf("%s%zu", i ? "," : "", v->shape[i]);
    printf("]");
}

static void json_tensor(const tensor_difference *t) {
    printf("{\"name\":");
    json_string(stdout, t->name);
    printf(",\"result\":\"%s\"", kind_text(t->kind));
    if (t->kind != DIFFERENCE_ONLY_B) json_shape("shape_a", &t->a);
    if (t->kind != DIFFERENCE_ONLY_A) json_shape("shape_b", &t->b);
    if (t->kind == DIFFERENCE_VALUES) {
        json_field("largest", t->largest);
        json_field("relative", t->relative);
        printf(",\"at\":%zu", t->where);
    }
    printf("}");
}

static void json_differences(const differences *d, double tolerance) {
    printf("{\"equal\":%s,\"tensors\":[", differences_equal(d, tolerance) ? "true" : "false");
    for (size_t i = 0; i < arrlenu(d->tensors); i++) {
        if (i) printf(",");
        json_tensor(&d->tensors[i]);
    }
    printf("],\"metadata_compared\":%s,\"metadata\":[", d->metadata_compared ? "true" : "false");
    for (size_t i = 0; i < arrlenu(d->metadata); i++) {
        const metadata_difference *m = &d->metadata[i];
        printf(i ? ",{\"key\":" : "{\"key\":");
        json_string(stdout, m->key);
        printf(",\"counts\":%s,\"a\":", m->counts ? "true" : "false");
        json_string(stdout, m->a);
        printf(",\"b\":");
        json_string(stdout, m->b);
        printf("}");
    }
    printf("]");
}

static void json_outcome(const outcome *x) {
    printf(",\"part\":");
    json_string(stdout, x->part);
    printf(",\"rows\":%zu,\"metrics\":[", x->rows);
    for (size_t i = 0; i < arrlenu(x->metrics); i++) {
        const paired_metric *m = &x->metrics[i];
        printf("%s{\"name\":\"%s\"", i ? "," : "", m->name);
        json_field("a", m->a);
        json_field("b", m->b);
        json_field("difference", m->b - m->a);
        json_field("low", m->difference.low);
        json_field("high", m->difference.high);
        printf("}");
    }
    printf("]");
    if (x->classes) printf(",\"changes\":%zu", x->changes);
}

/* ---- predictions ---- */

/* The pairs need the same records in the same order. */
static int same_records(const session *a, const session *b) {
    const size_t n = arrlenu(a->positions);
    if (n != arrlenu(b->positions)) return 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(dataset_name(&a->data, (size_t)a->positions[i]), dataset_name(&b->data, (size_t)b->positions[i])) !=
            0)
            return 0;
    return 1;
}

/* The rows that have a label. */
typedef struct labelled {
    double *p[2], *score[2];
    int32_t *label, *record;
} labelled;

static void keep_labelled(labelled *k, const predictions *a, const predictions *b) {
    const size_t width = (size_t)a->classes;
    const predictions *both[2];
    both[0] = a, both[1] = b;
    memset(k, 0, sizeof *k);
    for (size_t i = 0; i < a->rows; i++) {
        if (a->label[i] == MTAN_UNLABELED) continue;
        arrput(k->label, a->label[i]);
        arrput(k->record, a->record[i]);
        for (int side = 0; side < 2; side++) {
            memcpy(arraddnptr(k->p[side], width), both[side]->p + i * width, width * sizeof(double));
            if (a->classes == 2) arrput(k->score[side], both[side]->score[i]);
        }
    }
}

static void free_labelled(labelled *k) {
    for (int side = 0; side < 2; side++) {
        arrfree(k->p[side]);
        arrfree(k->score[side]);
    }
    arrfree(k->label);
    arrfree(k->record);
}

static void measure(outcome *result, const options *o, const paired *x) {
    result->metrics = paired_metrics(x, (int32_t)option_integer(o, "bootstrap", 1000), SEED);
    result->rows = x->n;
    result->classes = x->classes;
    if (x->classes) result->changes = paired_changes(x);
}

static int same_labels(const predictions *a, const predictions *b) {
    return a->rows == b->rows && a->classes == b->classes &&
           (a->rows == 0 || memcmp(a->label, b->label, a->rows * sizeof *a->label) == 0);
}

static int measure_labelled(outcome *result, const options *o, const predictions *a, const predictions *b) {
    labelled kept;
    paired x;
    if (!same_labels(a, b)) return complain("the two models do not have the same classes: nothing to compare"), 0;
    keep_labelled(&kept, a, b);
    memset(&x, 0, sizeof x);
    x.n = arrlenu(kept.label), x.classes = a->classes, x.label = kept.label, x.record = kept.record;
    for (int side = 0; side < 2; side++) x.p[side] = kept.p[side], x.score[side] = kept.score[side];
    if (x.n > 0) measure(result, o, &x);
    else complain("none of these records has a label to compare with");
    free_labelled(&kept);
    return x.n > 0;
}

/* The metrics of the task; those of a number are in the data's unit. */
static int measure_numbers(outcome *result, const options *o, mtan_task task, const number_predictions *a,
                           const number_predictions *b) {
    const int32_t draws = (int32_t)option_integer(o, "bootstrap", 1000);
    worth of_a = worth_of_numbers(task, a), of_b = worth_of_numbers(task, b);
    const int metrics = worth_metrics(worth_metrics(&of_a) < worth_metrics(&of_b) ? &of_a : &of_b);
    result->rows = a->rows;
    for (int i = 0; i < metrics; i++) {
        worth_query qa = {&of_a, i, NULL, NULL}, qb = {&of_b, i, NULL, NULL}, both = {&of_b, i, &of_a, NULL};
        paired_metric m = {
            task_metric_key(task, i), worth_drawn(&qa, NULL, a->rows), worth_drawn(&qb, NULL, b->rows), {NAN, NAN}};
        if (draws > 0) m.difference = metric_bootstrap(worth_drawn, &both, a->rows, a->record, draws, SEED);
        arrput(result->metrics, m);
    }
    worth_free(&of_a), worth_free(&of_b);
    return 1;
}

static int same_names(char **a, char **b) {
    if (arrlen(a) != arrlen(b)) return 0;
    for (size_t i = 0; i < arrlenu(a); i++)
        if (strcmp(a[i], b[i]) != 0) return 0;
    return 1;
}

static int compare_numbers(outcome *result, const options *o, session *a, session *b) {
    number_predictions of_a, of_b;
    int done = 0;
    if (!a->data.numbers) return complain("--labels FILE is needed, with what the models predict"), 0;
    if (!session_numbers(a, o, &of_a)) return 0;
    if (!session_numbers(b, o, &of_b)) return numbers_free(&of_a), 0;
    if (of_a.rows == 0) complain("none of these records has a label to compare with");
    else if (of_a.rows != of_b.rows) complain("the two models do not have the same labels: nothing to compare");
    else done = measure_numbers(result, o, a->bundle.model.config.task, &of_a, &of_b);
    numbers_free(&of_a), numbers_free(&of_b);
    return done;
}

static int compare_classes(outcome *result, const options *o, session *a, session *b) {
    predictions of_a, of_b;
    int done;
    if (!session_predict(a, o, &of_a)) return 0;
    if (!session_predict(b, o, &of_b)) return predictions_free(&of_a), 0;
    done = measure_labelled(result, o, &of_a, &of_b);
    predictions_free(&of_a), predictions_free(&of_b);
    return done;
}

/* ---- interpolations ---- */

/* Errors of one model on the points that it was not shown, in the units of A: the errors of B are multiplied by the
 * ratio of the two scales. */
typedef struct unseen_errors {
    const session *s;
    shown_records shown;
    double *unit;         /* (D) */
    double *sum, *points; /* (records) */
} unseen_errors;

/* The held-out points. If everything is shown: the noise-free curve of a synthetic series, otherwise the
 * observations. */
static const mtan_event *find_targets(const dataset *d, const dataset_record *r, const holdout *h, size_t *n) {
    const int truth = r->n_truth > 0;
    if (arrlen(h->held) > 0) return *n = arrlenu(h->held), h->held;
    *n = (size_t)(truth ? r->n_truth : r->n_events);
    return truth ? dataset_truth(d, r) : dataset_events(d, r);
}

static void add_errors(const unseen_errors *e, size_t i, const mtan_event *target, size_t n, const mtan_real *mean,
                       size_t channels) {
    for (size_t k = 0, row = 0; k < n; k++) {
        const size_t channel = (size_t)target[k].channel;
        double error;
        row += k > 0 && target[k].time > target[k - 1].time;
        error = ((double)mean[row * channels + channel] - (double)target[k].value) * e->unit[channel];
        e->sum[i] += error * error, e->points[i] += 1;
    }
}

static mtan_status find_error(const unseen_errors *e, mtan_predictor *predictor, size_t i) {
    const size_t position = (size_t)e->s->positions[i], channels = (size_t)predictor->model->config.channels;
    mtan_record record = e->shown.records[i];
    mtan_real *times = NULL, *mean;
    mtan_status status = MTAN_OK;
    const mtan_event *target;
    size_t n;
    e->sum[i] = e->points[i] = 0; /* a chunk may be run again */
    target = find_targets(&e->s->data, &e->s->data.records[position], &e->shown.holdout[i], &n);
    for (size_t k = 0; k < n; k++)
        if (k == 0 || target[k].time > target[k - 1].time) arrput(times, target[k].time);
    record.times = times, record.n_times = (int32_t)arrlen(times), record.labels = NULL;
    mean = tool_calloc(arrlenu(times) * channels, sizeof *mean);
    if (n > 0) status = mtan_predictor_interpolate(predictor, &record, mean, NULL);
    if (status == MTAN_OK) add_errors(e, i, target, n, mean, channels);
    arrfree(times);
    free(mean);
    return status;
}

static mtan_status error_chunk(void *context, mtan_predictor *predictor, size_t first, size_t count) {
    mtan_status status = MTAN_OK;
    for (size_t i = first; i < first + count && status == MTAN_OK; i++) status = find_error(context, predictor, i);
    return status;
}

/* The scale of a channel in the data's own unit; 1 for a converted model without statistics, which takes values
 * unscaled. */
static double unit_of(const prep *p, int32_t channel) {
    return channel < (int32_t)arrlen(p->channel) ? fabs((double)p->channel[channel].scale) : 1;
}

static int find_errors(unseen_errors *e, session *s, const session *first, const options *o) {
    const int32_t D = s->bundle.model.config.channels;
    const size_t n = arrlenu(s->positions);
    char error[512];
    runner r;
    int done;
    memset(e, 0, sizeof *e);
    e->s = s;
    shown_make(&e->shown, &s->bundle.model.config, &s->data, s->positions, first->source.observed, session_batch(s));
    e->unit = tool_calloc((size_t)D, sizeof *e->unit);
    e->sum = tool_calloc(n, sizeof *e->sum), e->points = tool_calloc(n, sizeof *e->points);
    for (int32_t c = 0; c < D; c++)
        e->unit[c] = s == first ? 1 : unit_of(&s->bundle.prep, c) / unit_of(&first->bundle.prep, c);
    if (!runner_start(&r, &s->bundle.model, interpolation_bounds(&s->data), option_threads(o), error))
        return complain("%s", error), 0;
    done = runner_each(&r, n, error_chunk, e);
    if (!done) complain("interpolation failed: %s", mtan_status_message(r.status));
    runner_stop(&r);
    return done;
}

static void free_errors(unseen_errors *e) {
    shown_free(&e->shown);
    free(e->unit), free(e->sum), free(e->points);
}

static const char *asked(char text[48], const source *s) {
    if (s->forecast > 0) snprintf(text, 48, "forecasts %g", s->forecast);
    return s->forecast > 0 ? text : "interpolates";
}

/* The share of shown times is that of A for both models, but a forecast is asked for the end of a record. */
static int asked_alike(const source *a, const source *b) {
    char first[48], second[48];
    if (!(fabs(a->forecast - b->forecast) > 0)) return 1;
    return complain(
               "the first model %s and the second %s: they are not measured at the same points, nothing to compare",
               asked(first, a), asked(second, b)),
           0;
}

static int compare_errors(outcome *result, const options *o, session *a, session *b) {
    const size_t n = arrlenu(a->positions);
    unseen_errors of_a, of_b;
    paired x;
    int done = 0;
    memset(&of_b, 0, sizeof of_b);
    if (a->bundle.model.config.channels != b->bundle.model.config.channels)
        return complain("the two models do not have the same channels: nothing to compare"), 0;
    if (!asked_alike(&a->source, &b->source)) return 0;
    if (find_errors(&of_a, a, a, o) && find_errors(&of_b, b, a, o)) {
        memset(&x, 0, sizeof x);
        x.n = n, x.points = of_a.points, x.squared_sum[0] = of_a.sum, x.squared_sum[1] = of_b.sum;
        done = memcmp(of_a.points, of_b.points, n * sizeof *of_a.points) == 0;
        if (done) measure(result, o, &x);
        else complain("the two models do not see the same observations (missing codes differ): nothing to compare");
    }
    free_errors(&of_a), free_errors(&of_b);
    return done;
}

/* ---- the command ---- */

static int compare_opened(outcome *result, const options *o, session *a, session *b) {
    const mtan_config *x = &a->bundle.model.config, *y = &b->bundle.model.config;
    result->part = a->part;
    if (!same_records(a, b))
        return complain("the two models were split differently: their %s records are not the same; try --split all",
                        result->part),
               0;
    if (arrlen(a->positions) == 0) return complain("there are no %s records", result->part), 0;
    if (x->classify != y->classify)
        return complain("one model classifies what the other does not: nothing to compare"), 0;
    if (x->classify == MTAN_CLASSIFY_NONE) return compare_errors(result, o, a, b);
    if (x->task != y->task ||
        (x->task == MTAN_TASK_LABELS && !same_names(a->bundle.prep.classes, b->bundle.prep.classes)))
        return complain("the two models do not have the same labels: nothing to compare"), 0;
    return x->task == MTAN_TASK_CLASSES ? compare_classes(result, o, a, b) : compare_numbers(result, o, a, b);
}

static int compare_predictions(outcome *result, const options *o) {
    session a, b;
    int done;
    if (!session_open(&a, o, o->argument[0])) return 0;
    if (!session_open(&b, o, o->argument[1])) return session_close(&a), 0;
    done = compare_opened(result, o, &a, &b);
    session_close(&a), session_close(&b);
    return done;
}

/* Reads a file's bytes, which the set points into; NULL with a message printed. */
static void *open_tensors(tensor_set *set, const char *path) {
    char error[512];
    size_t bytes = 0;
    void *blob = tensor_set_read(path, &bytes, error);
    if (blob && tensor_set_open(set, path, blob, bytes, error)) return blob;
    complain("%s", error);
    return free(blob), NULL;
}

static int compare_files(const options *o, const tensor_set *a, const tensor_set *b) {
    const double tolerance = option_number(o, "tolerance", 0);
    const int json = option_given(o, "json"), data = option_given(o, "data");
    outcome result;
    differences d;
    int equal;
    memset(&result, 0, sizeof result);
    if (data && !compare_predictions(&result, o)) return BAD_USE; /* before anything is printed */
    differences_find(&d, a, b);
    equal = differences_equal(&d, tolerance);
    if (json) {
        json_differences(&d, tolerance);
        if (data) json_outcome(&result);
        printf("}\n");
    } else {
        print_differences(&d, tolerance);
        if (data) print_outcome(&result);
    }
    differences_free(&d);
    arrfree(result.metrics);
    return equal ? DONE : BAD_RESULT;
}

int command_compare(const options *o) {
    tensor_set a, b;
    void *of_a = open_tensors(&a, o->argument[0]), *of_b = of_a ? open_tensors(&b, o->argument[1]) : NULL;
    const int status = of_b ? compare_files(o, &a, &b) : BAD_USE;
    if (of_a) tensor_set_close(&a);
    if (of_b) tensor_set_close(&b);
    free(of_a), free(of_b);
    return status;
}
