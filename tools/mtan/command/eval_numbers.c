/* See eval_numbers.h. */
#include "eval_numbers.h"

#include <math.h>
#include <stdio.h>

#include "../../data/shown.h"
#include "../measure/labels.h"
#include "../base/json_text.h"
#include "commands.h"
#include "eval_groups.h"
#include "eval_parts.h"

/* ---- a number ---- */

static void put_numbers(const number_predictions *p, int32_t draws, int json) {
    for (int i = 0; i < NUMBER_METRICS; i++) {
        number_query q = {p, (number_metric)i, NULL, NULL};
        interval range = {NAN, NAN};
        if (q.name == NUMBER_COVERAGE && p->outputs != 3) continue;
        if (draws > 0) range = metric_bootstrap(number_drawn, &q, p->rows, p->record, draws, 0);
        if (json) put_range(number_metric_key(q.name), number_drawn(&q, NULL, p->rows), range);
        else put_metric(number_metric_title(q.name), "%.5g", number_drawn(&q, NULL, p->rows), range);
    }
}

/* ---- labels ---- */

static const metric_name of_each[] = {METRIC_AUC, METRIC_AUPRC};
enum { OF_EACH = sizeof of_each / sizeof of_each[0] };

static void put_label_json(const session *s, const label_tables *t, const number_predictions *p, int32_t c,
                           int32_t draws) {
    int first = 1;
    fputs(c ? ", {" : "{", stdout), json_key_text(stdout, &first, "name", s->data.classes[c]);
    json_key_count(stdout, &first, "known", t->known[c]), json_key_number(stdout, &first, "share", t->mean[c]);
    for (int i = 0; i < OF_EACH; i++) {
        interval range;
        const double value = label_measure(t, p, of_each[i], c, draws, &range);
        put_range(metric_key(of_each[i]), value, range);
    }
    putchar('}');
}

/* "0.8123 (0.75-0.87)" */
static void put_cell(double x, interval range) {
    char text[64];
    shown_number(text, "%.4f", x);
    if (!isnan(range.low)) snprintf(text, sizeof text, "%.4f (%.3f-%.3f)", x, range.low, range.high);
    printf("  %-20s", text);
}

static void put_label(const session *s, const label_tables *t, const number_predictions *p, int32_t c, int32_t draws) {
    char share[32];
    shown_put(stdout, s->data.classes[c], 24, SIZE_MAX);
    printf(" %8zu %9s", t->known[c], shown_number(share, "%.1f %%", 100 * t->mean[c]));
    for (int i = 0; i < OF_EACH; i++) {
        interval range;
        const double value = label_measure(t, p, of_each[i], c, draws, &range);
        put_cell(value, range);
    }
    putchar('\n');
}

static void put_each(const session *s, const label_tables *t, const number_predictions *p, int32_t draws, int json) {
    if (json) json_member(stdout, NULL, "labels"), putchar('[');
    else printf("\n%-24s %8s %9s  %-20s  %-20s\n", "label", "known", "true", "AUC", "average precision");
    for (int32_t c = 0; c < t->labels; c++) {
        if (json) put_label_json(s, t, p, c, draws);
        else put_label(s, t, p, c, draws);
    }
    if (json) putchar(']');
}

static void put_labels(const session *s, const label_tables *t, const number_predictions *p, int32_t draws, int json) {
    for (int i = 0; i < METRIC_CALIBRATION; i++) {
        interval range;
        const double value = label_measure(t, p, (metric_name)i, -1, draws, &range);
        if (json) put_range(metric_key((metric_name)i), value, range);
        else put_metric(metric_title((metric_name)i), "%.4f", value, range);
    }
    put_each(s, t, p, draws, json);
}

/* ---- both ---- */

static void put_all(const session *s, const options *o, const number_predictions *p, const worth *w,
                    const subgroup *groups, int32_t draws, int json) {
    const int labels = s->data.task == MTAN_TASK_LABELS;
    contest_number *numbers;
    number_rivals r;
    put_what(s, o, json);
    if (json) json_key_count(stdout, NULL, "rows", p->rows);
    else
        printf("%td records of the part '%s', %zu %s\n", arrlen(s->positions), s->part, p->rows,
               labels ? "labelled rows; means over the labels" : "numbers");
    if (labels) put_labels(s, &w->labels, p, draws, json);
    else put_numbers(p, draws, json);
    number_rivals_make(&r, &s->data, &s->bundle.prep, s->split.part[SPLIT_TRAIN], s->split.part[SPLIT_VALID],
                       s->positions);
    numbers = labels ? contest_labels(&r, p, draws) : contest_numbers(&r, p, draws);
    put_rivals(s, numbers, json);
    put_groups(option_text(o, "by", ""), groups, w, json);
    if (json) puts("}");
    arrfree(numbers);
    number_rivals_free(&r);
}

int eval_numbers(session *s, const options *o, int json) {
    const int32_t draws = (int32_t)option_integer(o, "bootstrap", 1000);
    record_column column = {NULL};
    subgroup *groups = NULL;
    number_predictions p;
    worth w;
    int good;
    if (!s->data.numbers) return complain("--labels FILE is needed, with what the model predicts");
    if (!session_numbers(s, o, &p)) return BAD_USE;
    if (p.rows == 0) return numbers_free(&p), complain("no record of this part has a label");
    w = worth_of_numbers(s->data.task, &p);
    good = option_groups(&column, &groups, s, o, &w, draws);
    if (good) put_all(s, o, &p, &w, groups, draws, json);
    arrfree(groups), record_column_free(&column), worth_free(&w);
    numbers_free(&p);
    return good ? DONE : BAD_USE;
}
