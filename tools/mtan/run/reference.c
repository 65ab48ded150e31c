/* See reference.h. */
#include "reference.h"

size_t distinct_times(const mtan_record *record, mtan_real *times) {
    size_t n = 0;
    for (int32_t i = 0; i < record->n_events; i++) {
        if (i > 0 && !(record->events[i].time > record->events[i - 1].time)) continue;
        if (times) times[n] = record->events[i].time;
        n++;
    }
    return n;
}

int times_ascend(const mtan_real *times, size_t n) {
    size_t i = 1;
    while (i < n && times[i] >= times[i - 1]) i++;
    return i >= n;
}

size_t asked_times(const mtan_record *record, mtan_real *times, size_t *row) {
    size_t n = 0;
    for (int32_t i = 0, j = 0; i < record->n_events || j < record->n_times; n++) {
        const int32_t is_query =
            j < record->n_times && !(i < record->n_events && record->events[i].time < record->times[j]);
        const mtan_real time = is_query ? record->times[j] : record->events[i].time;
        if (times) times[n] = time;
        for (; j < record->n_times && !(record->times[j] > time); j++)
            if (row) row[j] = n;
        while (i < record->n_events && !(record->events[i].time > time)) i++;
    }
    return n;
}

size_t reference_points(const mtan_config *c, size_t distinct) {
    return c->reference == MTAN_REF_OBSERVED ? distinct : (size_t)c->ref_points;
}

double reference_time(const mtan_config *c, const mtan_real *times, size_t point) {
    if (c->reference == MTAN_REF_OBSERVED) return (double)times[point];
    if (c->reference == MTAN_REF_GIVEN) return (double)c->ref[point];
    return c->ref_points > 1 ? (double)point / (double)(c->ref_points - 1) : 0;
}
