/* See decisions.h. */
#include "decisions.h"

#include <math.h>
#include <stdlib.h>

#include "../../data/array.h"

/* ---- thresholds ---- */

static double share(double part, double whole) {
    return whole > 0 ? part / whole : NAN;
}

decision decision_at(double threshold, const double *p, const int32_t *label, size_t n) {
    double count[2][2] = {{0, 0}, {0, 0}}; /* [flagged][label] */
    for (size_t i = 0; i < n; i++)
        if (label[i] == 0 || label[i] == 1) count[p[i] >= threshold][label[i]]++;
    const double found = count[1][1], troubled = count[1][0], missed = count[0][1], spared = count[0][0];
    const double all = found + troubled + missed + spared, odds = threshold / (1 - threshold);
    return (decision){threshold,
                      share(found, found + missed),
                      share(spared, spared + troubled),
                      share(found, found + troubled),
                      share(spared, spared + missed),
                      share(found + troubled, all),
                      share(found - odds * troubled, all),
                      share(found + missed - odds * (troubled + spared), all)};
}

/* ---- recalibration ---- */

enum { STEPS_MOST = 50 };
static const double CERTAIN = 1e-12;  /* p is clipped to [CERTAIN, 1 - CERTAIN] */
static const double SLOPE_MOST = 1e3; /* beyond it the classes are separable and the slope would grow without end */

typedef struct labelled_odds {
    double *log_odds; /* (n) */
    const int32_t *label;
    int intercept; /* the bootstrap is of the intercept (1) or of the slope (0) */
} labelled_odds;

/* Newton's method in two variables. 0: it does not converge. */
static int fit(const labelled_odds *x, const int32_t *rows, size_t n, double *intercept, double *slope) {
    double a = 0, b = 1;
    for (int step = 0; step < STEPS_MOST; step++) {
        double ga = 0, gb = 0, haa = 0, hab = 0, hbb = 0;
        for (size_t i = 0; i < n; i++) {
            const size_t row = rows ? (size_t)rows[i] : i;
            const double z = x->log_odds[row], p = 1 / (1 + exp(-(a + b * z))), w = p * (1 - p);
            if (x->label[row] != 0 && x->label[row] != 1) continue;
            ga += x->label[row] - p, gb += (x->label[row] - p) * z;
            haa += w, hab += w * z, hbb += w * z * z;
        }
        const double determinant = haa * hbb - hab * hab;
        const double da = (hbb * ga - hab * gb) / determinant, db = (haa * gb - hab * ga) / determinant;
        if (!(determinant > 0) || !isfinite(da) || !isfinite(db)) return 0;
        a += da, b += db;
        if (fabs(b) > SLOPE_MOST) return 0;
        if (fabs(da) + fabs(db) < 1e-10) return *intercept = a, *slope = b, 1;
    }
    return 0;
}

/* A metric_function. */
static double fitted(void *context, const int32_t *rows, size_t n) {
    const labelled_odds *x = context;
    double intercept, slope;
    if (!fit(x, rows, n, &intercept, &slope)) return NAN;
    return x->intercept ? intercept : slope;
}

recalibration recalibration_fit(const double *p, const int32_t *label, size_t n, const int32_t *group, int32_t draws) {
    recalibration r = {NAN, NAN, {NAN, NAN}, {NAN, NAN}};
    labelled_odds x = {tool_calloc(n, sizeof(double)), label, 0};
    for (size_t i = 0; i < n; i++) {
        const double near = fmin(fmax(p[i], CERTAIN), 1 - CERTAIN);
        x.log_odds[i] = log(near / (1 - near));
    }
    if (fit(&x, NULL, n, &r.intercept, &r.slope) && draws > 0) {
        r.slope_range = metric_bootstrap(fitted, &x, n, group, draws, 0);
        x.intercept = 1;
        r.intercept_range = metric_bootstrap(fitted, &x, n, group, draws, 0);
    }
    free(x.log_odds);
    return r;
}
