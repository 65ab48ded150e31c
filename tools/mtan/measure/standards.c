/* See standards.h. */
#include "standards.h"

#include <math.h>
#include <stdlib.h>

#include "../../data/memory.h"

double standard(const standards *s, const double *row, size_t k) {
    const double z = (row[k] - s->mean[k]) / s->scale[k];
    return isnan(z) ? 0 : fmin(fmax(z, -STANDARD_LIMIT), STANDARD_LIMIT);
}

standards standards_of(const double *x, size_t n, size_t features) {
    standards s = {features, tool_calloc(features, sizeof(double)), tool_calloc(features, sizeof(double))};
    for (size_t k = 0; k < features; k++) {
        double count = 0, sum = 0, squares = 0;
        for (size_t i = 0; i < n; i++) {
            const double value = x[i * features + k];
            if (!isnan(value)) sum += value, count++;
        }
        s.mean[k] = count > 0 ? sum / count : 0;
        for (size_t i = 0; i < n; i++) {
            const double off = x[i * features + k] - s.mean[k];
            if (!isnan(off)) squares += off * off;
        }
        s.scale[k] = squares > 0 ? sqrt(squares / count) : 1;
    }
    return s;
}

void standards_free(standards *s) {
    free(s->mean), free(s->scale);
}
