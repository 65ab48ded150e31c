/* Compares loaded records with golden/data-*.safetensors: event by event, and by the hash defined in
 * tools/golden/golden_data.py. Both use the bits of float32, whatever mtan_real is. */
#ifndef MTAN_TESTS_GOLDEN_EVENTS_H
#define MTAN_TESTS_GOLDEN_EVENTS_H

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "../../tools/data/dataset.h"

/* For a loader that refuses data named by an environment variable: the test is skipped if only zlib is missing. */
#define REFUSED(error)                                                                                                 \
    do {                                                                                                               \
        if (strstr(error, "without zlib")) SKIPm(error);                                                               \
        FAILm(error);                                                                                                  \
    } while (0)

/* All elements of a tensor of that type, guarded (guard_free it), and their number; NULL, with the reason printed, if
 * there is no such tensor. */
static void *golden_list(const char *file_name, const char *tensor, mtan_dtype dtype, size_t *n) {
    mtan_file file;
    mtan_tensor_view view;
    size_t bytes = 0;
    void *blob = slurp_golden(file_name, &bytes), *list = NULL;
    if (blob && mtan_file_open(&file, blob, bytes) == MTAN_OK && mtan_file_tensor(&file, tensor, &view) == MTAN_OK) {
        list = guard_alloc(view.bytes);
        *n = view.count;
        if (mtan_view_read_raw(&view, dtype, list, view.count) != MTAN_OK) guard_free(list), list = NULL;
    }
    if (!list) printf("  BAD %s: no tensor %s of the type expected\n", file_name, tensor);
    guard_free(blob);
    return list;
}

/* PREFIX.first, .time, .channel, .value of a golden file. */
typedef struct golden_events {
    int32_t *first, *channel;
    float *time, *value;
    size_t records;
} golden_events;

static int golden_events_read(golden_events *g, const char *file_name, const char *prefix) {
    char name[64];
    size_t n;
#define FIELD(field, suffix, dtype)                                                                                    \
    snprintf(name, sizeof name, "%s." suffix, prefix);                                                                 \
    if (!(g->field = golden_list(file_name, name, dtype, &n))) return 0;
    FIELD(time, "time", MTAN_DTYPE_F32)
    FIELD(channel, "channel", MTAN_DTYPE_I32)
    FIELD(value, "value", MTAN_DTYPE_F32)
    FIELD(first, "first", MTAN_DTYPE_I32)
#undef FIELD
    g->records = n - 1;
    return 1;
}

static int golden_events_free(golden_events *g) {
    return guard_free(g->first) & guard_free(g->time) & guard_free(g->channel) & guard_free(g->value);
}

/* Does record i of the data set have exactly the events of the golden record? */
static int same_events(const dataset *d, size_t i, const golden_events *g, size_t record) {
    const dataset_record *r = &d->records[i];
    const int32_t n = g->first[record + 1] - g->first[record];
    int32_t times = 0;
    if (r->n_events != n) printf("  BAD record %zu has %d events, expected %d\n", i, (int)r->n_events, (int)n);
    for (int32_t j = 0; j < n && r->n_events == n; j++) {
        const mtan_event e = d->events[r->event0 + (size_t)j];
        const int32_t k = g->first[record] + j;
        times += j == 0 || g->time[k] > g->time[k - 1];
        if (e.time == (mtan_real)g->time[k] && e.channel == g->channel[k] && e.value == (mtan_real)g->value[k])
            continue;
        printf("  BAD record %zu, event %d is (%.9g, %d, %.9g), expected (%.9g, %d, %.9g)\n", i, (int)j, (double)e.time,
               (int)e.channel, (double)e.value, (double)g->time[k], (int)g->channel[k], (double)g->value[k]);
        return 0;
    }
    if (r->n_times != times) printf("  BAD record %zu has %d times, expected %d\n", i, (int)r->n_times, (int)times);
    return r->n_events == n && r->n_times == times;
}

/* The low half of mtan_bytes_hash over (time, channel, value) of the events, and (time, class) of the labelled
 * times. */
static uint32_t record_hash(const dataset *d, size_t i) {
    const dataset_record *r = &d->records[i];
    const size_t events = (size_t)r->n_events, rows = d->label_times ? (size_t)r->n_labels : 0;
    unsigned char *bytes = guard_alloc(12 * events + 8 * rows), *at = bytes;
    for (size_t j = 0; j < events; j++, at += 12) {
        const mtan_event *e = &d->events[r->event0 + j];
        const float time = (float)e->time, value = (float)e->value;
        memcpy(at, &time, 4), memcpy(at + 4, &e->channel, 4), memcpy(at + 8, &value, 4);
    }
    for (size_t j = 0; j < rows; j++, at += 8) {
        const float time = (float)d->label_times[r->label0 + j];
        memcpy(at, &time, 4), memcpy(at + 4, &d->labels[r->label0 + j], 4);
    }
    const uint32_t hash = (uint32_t)mtan_bytes_hash(bytes, 12 * events + 8 * rows);
    guard_free(bytes);
    return hash;
}

/* Compares every record's hash with a golden tensor, in the data set's order. */
static int same_hashes(const dataset *d, const char *file_name, const char *tensor) {
    size_t n = 0, bad = 0;
    uint32_t *expected = golden_list(file_name, tensor, MTAN_DTYPE_U32, &n);
    if (!expected) return 0;
    for (size_t i = 0; i < n && n == arrlenu(d->records); i++)
        if (record_hash(d, i) != expected[i] && bad++ == 0)
            printf("  BAD record %zu (%s) differs\n", i, dataset_name(d, i));
    printf("  %s %s: %zu records, %zu expected, %zu differ\n", bad || n != arrlenu(d->records) ? "BAD" : "ok", tensor,
           arrlenu(d->records), n, bad);
    guard_free(expected);
    return n == arrlenu(d->records) && !bad;
}

#endif
