/* Thresholds, net benefit and recalibration against scikit-learn (golden/rivals.safetensors), and at their ends. */
#define GOLDEN_FILE "rivals.safetensors"
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "golden_metrics.h"
#include "../../tools/mtan/measure/decisions.h"

TEST thresholds_are_scikit_learns(void) {
    size_t n, rows, many;
    double *p = golden_f64("decisions.p", &n), *at = golden_f64("decisions.threshold", &rows);
    double *expected = golden_f64("decisions.rows", &many);
    int32_t *label = golden_i32("decisions.label", &n);
    for (size_t i = 0; i < rows; i++) {
        const decision d = decision_at(at[i], p, label, n);
        const double got[] = {d.sensitivity, d.specificity, d.ppv, d.npv, d.flagged, d.benefit, d.benefit_all};
        for (size_t k = 0; k < 7; k++) ASSERT(same_number("decision", got[k], expected[7 * i + k], 1e-12));
    }
    free(p), free(at), free(expected), free(label);
    PASS();
}

TEST recalibration_is_scikit_learns(void) {
    size_t n, two;
    double *p = golden_f64("decisions.p", &n), *expected = golden_f64("decisions.recalibration", &two);
    int32_t *label = golden_i32("decisions.label", &n);
    const recalibration r = recalibration_fit(p, label, n, NULL, 200);
    ASSERT(same_number("intercept", r.intercept, expected[0], 1e-6) &&
           same_number("slope", r.slope, expected[1], 1e-6));
    ASSERT(r.slope_range.low < r.slope && r.slope < r.slope_range.high && r.slope_range.high < 1); /* too extreme */
    ASSERT(r.intercept_range.low < r.intercept && r.intercept < r.intercept_range.high);
    free(p), free(expected), free(label);
    PASS();
}

/* What cannot be said is NaN. */
TEST nothing_is_made_up(void) {
    static const double p[] = {0.1, 0.2, 0.8, 1, 0.5};
    static const int32_t apart[] = {0, 0, 1, 1, -1}, one[] = {1, 1, 1, 1, 1};
    const decision nobody = decision_at(1.0, p, one, 3), none = decision_at(0.5, p, one, 0);
    const decision clear = decision_at(0.5, p, apart, 5); /* the last has no label */
    ASSERT(isnan(recalibration_fit(p, apart, 5, NULL, 10).slope) &&
           isnan(recalibration_fit(p, one, 5, NULL, 10).slope));
    ASSERT(isnan(recalibration_fit(p, one, 0, NULL, 10).slope));
    ASSERT(nobody.flagged == 0 && isnan(nobody.ppv) && isnan(nobody.specificity) && isnan(none.flagged));
    ASSERT(clear.sensitivity == 1 && clear.specificity == 1 && clear.flagged == 0.5 && clear.benefit == 0.5);
    PASS();
}

SUITE(decisions_suite) {
    RUN_TEST(thresholds_are_scikit_learns);
    RUN_TEST(recalibration_is_scikit_learns);
    RUN_TEST(nothing_is_made_up);
}
