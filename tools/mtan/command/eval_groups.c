/* See eval_groups.h. */
#include "eval_groups.h"

#include <math.h>
#include <string.h>

#include "../../data/shown.h"
#include "../base/json_text.h"
#include "../base/messages.h"
#include "eval_parts.h"

int option_groups(record_column *column, subgroup **groups, const session *s, const options *o, const worth *w,
                  int32_t draws) {
    const char *by = option_text(o, "by", NULL), *labels = option_text(o, "labels", NULL);
    char error[512] = "";
    column->values = NULL, *groups = NULL;
    if (!by) return 1;
    if (!labels) return complain("--by %s: is a column of the file of --labels, which is missing", by), 0;
    if (!record_column_read(column, labels, by, error)) return complain("--by: %s", error), 0;
    *groups = subgroups_measure(column, &s->data, w, draws, error);
    return *groups || (complain("--by %s: %s", by, error), 0);
}

static void put_json(const char *column, const subgroup *groups, const worth *w) {
    int first = 1;
    json_member(stdout, NULL, "by"), putchar('{'), json_key_text(stdout, &first, "column", column);
    json_member(stdout, &first, "groups"), putchar('[');
    for (size_t k = 0; k < arrlenu(groups); k++) {
        const subgroup *g = &groups[k];
        fputs(k ? ", {" : "{", stdout), first = 1;
        json_key_text(stdout, &first, "name", g->name), json_key_count(stdout, &first, "rows", g->rows);
        for (int i = 0; i < worth_metrics(w); i++) put_range(task_metric_key(w->task, i), g->value[i], g->range[i]);
        putchar('}');
    }
    fputs("]}", stdout);
}

/* Shares have four decimals, numbers in the data's unit four significant digits. */
static void put_cell(double x, interval range, int in_units) {
    char text[64];
    shown_number(text, in_units ? "%.4g" : "%.4f", x);
    if (!isnan(range.low))
        snprintf(text + strlen(text), sizeof text - strlen(text), in_units ? " (%.3g to %.3g)" : " (%.3f to %.3f)",
                 range.low, range.high);
    printf("  %-23s", text);
}

void put_groups(const char *column, const subgroup *groups, const worth *w, int json) {
    enum { TOLD = 3 };
    static const int of_classes[TOLD] = {METRIC_AUC, METRIC_ACCURACY, METRIC_LOG_LOSS},
                     of_numbers[TOLD] = {NUMBER_RMSE, NUMBER_MAE, NUMBER_R2};
    const int is_number = w->task == MTAN_TASK_NUMBER, *told = is_number ? of_numbers : of_classes;
    if (!groups) return;
    if (json) {
        put_json(column, groups, w);
        return;
    }
    putchar('\n'), shown_put(stdout, column, 16, 16), printf(" %6s", "rows");
    for (int i = 0; i < TOLD; i++) printf("  %-23s", task_metric_title(w->task, told[i]));
    putchar('\n');
    for (size_t k = 0; k < arrlenu(groups); k++) {
        shown_put(stdout, groups[k].name, 16, 16), printf(" %6zu", groups[k].rows);
        for (int i = 0; i < TOLD; i++)
            put_cell(groups[k].value[told[i]], groups[k].range[told[i]],
                     is_number && number_metric_in_units((number_metric)told[i]));
        putchar('\n');
    }
}
