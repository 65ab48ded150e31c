/* See eval_decisions.h. */
#include "eval_decisions.h"

#include <math.h>
#include <stdlib.h>

#include "../../data/shown.h"
#include "../measure/decisions.h"
#include "../base/json_text.h"

static const double thresholds[] = {0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
enum { THRESHOLDS = sizeof thresholds / sizeof thresholds[0] };

static void put_key(const char *before, const char *key, double x) {
    printf("%s\"%s\": ", before, key);
    json_number(stdout, x);
}

static void put_range(const char *key, double x, interval range) {
    printf(", \"%s\": {", key);
    put_key("", "value", x), put_key(", ", "low", range.low), put_key(", ", "high", range.high);
    putchar('}');
}

static void put_json(const char *positive, const recalibration *r, const decision *d) {
    fputs(", \"positive\": ", stdout), json_string(stdout, positive);
    put_range("calibration_slope", r->slope, r->slope_range);
    put_range("calibration_intercept", r->intercept, r->intercept_range);
    fputs(", \"thresholds\": [", stdout);
    for (int i = 0; i < THRESHOLDS; i++) {
        put_key(i ? ", {" : "{", "threshold", d[i].threshold), put_key(", ", "sensitivity", d[i].sensitivity);
        put_key(", ", "specificity", d[i].specificity), put_key(", ", "ppv", d[i].ppv), put_key(", ", "npv", d[i].npv);
        put_key(", ", "flagged", d[i].flagged), put_key(", ", "net_benefit", d[i].benefit);
        put_key(", ", "net_benefit_all", d[i].benefit_all), putchar('}');
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
    fputs("\nprobability of ", stdout), shown_put(stdout, positive, 0, SIZE_MAX), putchar('\n');
    put_line("slope", r->slope, r->slope_range, "1 is right, less: too extreme");
    put_line("intercept", r->intercept, r->intercept_range, "0 is right");
    printf("%9s %11s %11s %8s %8s %8s %11s %11s\n", "threshold", "sensitivity", "specificity", "PPV", "NPV", "flagged",
           "net benefit", "of all");
    for (int i = 0; i < THRESHOLDS; i++)
        printf("%9.2f %11.4f %11.4f %8.4f %8.4f %8.4f %11.4f %11.4f\n", d[i].threshold, d[i].sensitivity,
               d[i].specificity, d[i].ppv, d[i].npv, d[i].flagged, d[i].benefit, d[i].benefit_all);
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
