/* mtan eval: what a model is worth on the records that training left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "../../data/shown.h"
#include "../report/json_text.h"
#include "../model/metrics.h"
#include "../model/session.h"

static const struct {
    metric_name name;
    const char *key, *title;
} measures[] = {{METRIC_AUC, "auc", "AUC"},
                {METRIC_AUPRC, "auprc", "AUPRC"},
                {METRIC_ACCURACY, "accuracy", "accuracy"},
                {METRIC_LOG_LOSS, "log_loss", "log-loss"},
                {METRIC_BRIER, "brier", "Brier score"},
                {METRIC_CALIBRATION, "calibration_error", "calibration error"}};
enum { MEASURES = sizeof measures / sizeof measures[0], SHARES = 5 };

static void put_key(const char *key, double x) {
    printf(", \"%s\": ", key);
    json_number(stdout, x);
}

/* The opening that both kinds of models share. */
static void put_what(const session *s, const options *o, int json) {
    if (!json) return;
    fputs("{\"model\": ", stdout), json_string(stdout, o->argument[0]);
    fputs(", \"split\": ", stdout), json_string(stdout, s->part);
    printf(", \"records\": %td", arrlen(s->positions));
}

/* ---- classification ---- */

static void put_measure(metric_query *q, const predictions *p, int which, int32_t draws, int json) {
    interval range = {NAN, NAN};
    char name[40];
    double value;
    q->name = measures[which].name;
    value = metric_drawn(q, NULL, p->rows);
    if (draws > 0) range = metric_bootstrap(metric_drawn, q, p->rows, p->record, draws, 0);
    if (json) {
        put_key(measures[which].key, value);
        snprintf(name, sizeof name, "%s_low", measures[which].key), put_key(name, range.low);
        snprintf(name, sizeof name, "%s_high", measures[which].key), put_key(name, range.high);
    } else if (draws > 0)
        printf("%-18s %8.4f   95 %% interval %.4f to %.4f\n", measures[which].title, value, range.low, range.high);
    else printf("%-18s %8.4f\n", measures[which].title, value);
}

static const char *class_name(const session *s, int32_t k, char number[16]) {
    snprintf(number, 16, "%d", (int)k);
    return k < (int32_t)arrlen(s->data.classes) ? s->data.classes[k] : number;
}

static void put_classes_json(const session *s, const metric_class *table, const int64_t *counts, int32_t C) {
    char number[16];
    fputs(", \"classes\": [", stdout);
    for (int32_t k = 0; k < C; k++) {
        fputs(k ? ", {\"name\": " : "{\"name\": ", stdout), json_string(stdout, class_name(s, k, number));
        printf(", \"support\": %lld, \"predicted\": %lld", (long long)table[k].support, (long long)table[k].predicted);
        put_key("precision", table[k].precision), put_key("recall", table[k].recall), put_key("f1", table[k].f1);
        putchar('}');
    }
    fputs("], \"confusion\": [", stdout);
    for (int32_t i = 0; i < C; i++) {
        for (int32_t k = 0; k < C; k++) printf("%s%lld", k ? ", " : i ? ", [" : "[", (long long)counts[i * C + k]);
        putchar(']');
    }
    putchar(']');
}

static void put_classes(const session *s, const metric_class *table, int32_t C) {
    char number[16];
    printf("\n%-24s %9s %9s %9s %9s %9s\n", "class", "rows", "predicted", "precision", "recall", "F1");
    for (int32_t k = 0; k < C; k++) {
        if (table[k].support + table[k].predicted == 0) continue;
        shown_put(stdout, class_name(s, k, number), 24, SIZE_MAX);
        printf(" %9lld %9lld %9.4f %9.4f %9.4f\n", (long long)table[k].support, (long long)table[k].predicted,
               table[k].precision, table[k].recall, table[k].f1);
    }
}

static void put_tables(const session *s, const predictions *p, int json) {
    const size_t C = (size_t)p->classes;
    int64_t *counts = tool_calloc(C * C, sizeof *counts);
    metric_class *table = tool_calloc(C, sizeof *table);
    metric_confusion(counts, p->p, p->label, p->rows, p->classes);
    metric_per_class(table, counts, p->classes);
    if (json) put_classes_json(s, table, counts, p->classes);
    else put_classes(s, table, p->classes);
    free(counts), free(table);
}

static int eval_classes(session *s, const options *o, int json) {
    const int32_t draws = (int32_t)option_integer(o, "bootstrap", 1000);
    predictions p;
    metric_query q;
    if (!session_predict(s, o, &p)) return BAD_USE;
    predictions_drop_unlabelled(&p);
    if (p.rows == 0) return predictions_free(&p), complain("no record of this part has a label");
    memset(&q, 0, sizeof q);
    q.table = metric_table_new(p.p, p.classes == 2 ? p.score : NULL, p.label, p.rows, p.classes);
    put_what(s, o, json);
    if (json) printf(", \"rows\": %zu", p.rows);
    else printf("%td records of the part '%s', %zu labelled rows\n", arrlen(s->positions), s->part, p.rows);
    for (int i = 0; i < MEASURES; i++) put_measure(&q, &p, i, draws, json);
    put_tables(s, &p, json);
    if (json) puts("}");
    metric_table_free(q.table);
    predictions_free(&p);
    return DONE;
}

/* ---- interpolation ---- */

static void put_error(double x, interval range) {
    char text[64] = "-";
    if (!isnan(x)) snprintf(text, sizeof text, "%.6f", x);
    if (!isnan(x) && !isnan(range.low)) snprintf(text, sizeof text, "%.6f (%.4f-%.4f)", x, range.low, range.high);
    printf("  %-24s", text);
}

/* "mse_all": x, "mse_all_low": ..., "mse_all_high": ... */
static void put_error_json(const char *key, double x, interval range) {
    char name[40];
    put_key(key, x);
    snprintf(name, sizeof name, "%s_low", key), put_key(name, range.low);
    snprintf(name, sizeof name, "%s_high", key), put_key(name, range.high);
}

/* The share asked for, or the five of the paper's table. */
static int eval_curves(session *s, const options *o, int json) {
    const int one = option_given(o, "observed") || !(s->source.observed < 1), shares = one ? 1 : SHARES;
    const double asked = option_number(o, "observed", 1);
    interpolation_error errors[SHARES];
    for (int i = 0; i < shares; i++)
        if (!session_interpolate(s, o, one ? asked : 0.5 + 0.1 * i, &errors[i])) return BAD_USE;
    put_what(s, o, json);
    if (json) fputs(", \"interpolation\": [", stdout);
    else
        printf("%td records of the part '%s'; mean squared errors in the model's units, 95 %% intervals\n%10s  %-26s  "
               "%-26s  %-26s\n",
               arrlen(s->positions), s->part, "observed", "all points", "held out", "true curve");
    for (int i = 0; i < shares; i++) {
        const double share = one ? asked : 0.5 + 0.1 * i;
        const interpolation_error e = errors[i];
        if (json) {
            printf("%s{\"observed\": %g", i ? ", " : "", share);
            put_error_json("mse_all", e.all, e.all_range);
            put_error_json("mse_held_out", e.held, e.held_range);
            put_error_json("mse_truth", e.truth, e.truth_range);
            printf(", \"points\": %zu, \"held_out_points\": %zu}", e.points, e.held_points);
        } else {
            printf("%8.0f %%", 100 * share);
            put_error(e.all, e.all_range), put_error(e.held, e.held_range), put_error(e.truth, e.truth_range);
            putchar('\n');
        }
    }
    if (json) puts("]}");
    return DONE;
}

int command_eval(const options *o) {
    const int json = option_given(o, "json");
    session s;
    int status;
    if (!session_open(&s, o, o->argument[0])) return BAD_USE;
    session_explain(&s);
    status = s.source.interpolation ? eval_curves(&s, o, json) : eval_classes(&s, o, json);
    session_close(&s);
    return status;
}
