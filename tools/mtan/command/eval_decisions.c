/* See eval_decisions.h. */
#include "eval_decisions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/shown.h"
#include "../measure/decisions.h"
#include "../base/json_text.h"
#include "eval_parts.h"

static const double thresholds[] = {0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
enum { THRESHOLDS = sizeof thresholds / sizeof thresholds[0] };

/* The columns of the table, for programs and for people. */
enum { COLUMNS = 8 };
static const struct {
    const char *key, *title, *format;
    int width;
} columns[COLUMNS] = {{"threshold", "threshold", "%.2f", 9},
                      {"sensitivity", "sensitivity", "%.4f", 11},
                      {"specificity", "specificity", "%.4f", 11},
                      {"ppv", "PPV", "%.4f", 8},
                      {"npv", "NPV", "%.4f", 8},
                      {"flagged", "flagged", "%.4f", 8},
                      {"net_benefit", "net benefit", "%.4f", 11},
                      {"net_benefit_all", "of all", "%.4f", 11}};

static void cells_of(double cell[COLUMNS], const decision *d) {
    const double cells[COLUMNS] = {d->threshold, d->sensitivity, d->specificity, d->ppv,
                                   d->npv,       d->flagged,     d->benefit,     d->benefit_all};
    memcpy(cell, cells, sizeof cells);
}

static void range_json(const char *key, double x, interval range) {
    int first = 1;
    json_member(stdout, NULL, key), putchar('{'), json_key_number(stdout, &first, "value", x);
    json_key_number(stdout, &first, "low", range.low), json_key_number(stdout, &first, "high", range.high);
    putchar('}');
}

static void put_json(const char *positive, const recalibration *r, const decision *d) {
    double cell[COLUMNS];
    json_key_text(stdout, NULL, "positive", positive);
    range_json("calibration_slope", r->slope, r->slope_range);
    range_json("calibration_intercept", r->intercept, r->intercept_range);
    json_member(stdout, NULL, "thresholds");
    for (int i = 0; i < THRESHOLDS; i++) {
        int first = 1;
        cells_of(cell, &d[i]), fputs(i ? ", {" : "[{", stdout);
        for (int k = 0; k < COLUMNS; k++) json_key_number(stdout, &first, columns[k].key, cell[k]);
        putchar('}');
    }
    putchar(']');
}

static void put_line(const char *name, double x, interval range, const char *meant) {
    if (isnan(x)) return;
    printf("%-18s %8.4f", name, x);
    if (!isnan(range.low)) printf("   95 %% interval %.4f to %.4f", range.low, range.high);
    printf(" (%s)\n", meant);
}

static void put_text(const char *positive, const recalibration *r, const decision *d) {
    double cell[COLUMNS];
    char text[32];
    fputs("\nprobability of ", stdout), shown_put(stdout, positive, 0, SIZE_MAX), putchar('\n');
    put_line("slope", r->slope, r->slope_range, "1 is right, less: too extreme");
    put_line("intercept", r->intercept, r->intercept_range, "0 is right");
    for (int k = 0; k < COLUMNS; k++) printf("%s%*s", k ? " " : "", columns[k].width, columns[k].title);
    putchar('\n');
    for (int i = 0; i < THRESHOLDS; i++) {
        cells_of(cell, &d[i]);
        for (int k = 0; k < COLUMNS; k++)
            printf("%s%*s", k ? " " : "", columns[k].width, shown_number(text, columns[k].format, cell[k]));
        putchar('\n');
    }
}

void put_decisions(const session *s, const predictions *p, int32_t draws, int json) {
    const int32_t positive = s->bundle.prep.positive >= 0 ? s->bundle.prep.positive : 1;
    double *of = tool_calloc(p->rows, sizeof *of);
    int32_t *is = tool_calloc(p->rows, sizeof *is);
    decision d[THRESHOLDS];
    recalibration r;
    if (p->classes == 2) {
        for (size_t i = 0; i < p->rows; i++) of[i] = p->p[2 * i + (size_t)positive], is[i] = p->label[i] == positive;
        for (int i = 0; i < THRESHOLDS; i++) d[i] = decision_at(thresholds[i], of, is, p->rows);
        r = recalibration_fit(of, is, p->rows, p->record, draws);
        const char *name = arrlen(s->data.classes) == 2 ? s->data.classes[positive] : positive ? "1" : "0";
        if (json) put_json(name, &r, d);
        else put_text(name, &r, d);
    }
    free(of), free(is);
}
