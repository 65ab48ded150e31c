/* Predicts many records on all CPUs: one model, one predictor per thread, and the records divided among them. The
 * result has the same bits as with one thread.
 *
 *     cc -O2 -I. tools/demo/parallel.c mtan.c platform/pool.c -pthread && ./a.out tools/demo/patients.safetensors */
#include "../../mtan.h"
#include "../../platform/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 1000, OBSERVATIONS = 12, ROOM = OBSERVATIONS + 3, AT_ONCE = 16 };

/* A made-up patient, whose pulse rises if its number is odd. */
static int prepare(const mtan_prep *prep, int i, mtan_event *events, mtan_record *record) {
    mtan_observation raw[OBSERVATIONS];
    mtan_prepared found;
    for (int k = 0; k < OBSERVATIONS; k++) {
        raw[k].time = 2.0 * k + 0.1 * (i % 7);
        raw[k].channel = mtan_prep_channel_named(prep, k % 3 ? "pulse" : "temperature");
        raw[k].value = k % 3 ? 80 + 1.5 * k * (i % 2) : 37;
    }
    memset(record, 0, sizeof *record);
    if (mtan_prep_record(prep, raw, OBSERVATIONS, events, ROOM, &found)) return 0;
    record->events = events;
    record->n_events = found.events;
    return 1;
}

/* Predicts all records on that many threads; returns 0 if something failed. */
static int classify(const mtan_model *model, const mtan_record *records, int32_t threads, mtan_real *p) {
    const mtan_bounds most = {AT_ONCE, ROOM, ROOM};
    mtan_predictor *predictors;
    mtan_pool pool;
    mtan_status status;
    size_t bytes = 0;
    if (mtan_pool_start(&pool, threads)) threads = pool.threads; /* as many as could be started */
    predictors = calloc((size_t)threads, sizeof *predictors);
    status = mtan_predictor_size(model, &most, &bytes);
    char *memory = malloc((size_t)threads * bytes + 1);
    for (int32_t t = 0; t < threads && !status; t++)
        status = mtan_predictor_init(&predictors[t], model, &most, memory + (size_t)t * bytes, bytes);
    if (!status)
        status = mtan_predictors_classify(predictors, threads, mtan_pool_run, &pool, records, RECORDS, NULL, p);
    mtan_pool_stop(&pool);
    free(predictors), free(memory);
    return status == MTAN_OK;
}

int main(int argc, char **argv) {
    static unsigned char blob[200000];
    static mtan_event events[RECORDS][ROOM];
    static mtan_record records[RECORDS];
    static mtan_real one[2 * RECORDS], many[2 * RECORDS];
    FILE *in = argc > 1 ? fopen(argv[1], "rb") : NULL;
    size_t bytes = in ? fread(blob, 1, sizeof blob, in) : 0, count = 0;
    mtan_file file;
    mtan_model model;
    mtan_prep prep;
    if (mtan_file_open(&file, blob, bytes) || mtan_model_load_count(&file, NULL, &count)) return 1;
    if (mtan_model_load(&model, malloc(count * sizeof(mtan_real)), count, &file, NULL)) return 1;
    if (mtan_prep_size(&file, &bytes) || mtan_prep_open(&prep, &file, malloc(bytes), bytes, NULL)) return 1;
    for (int i = 0; i < RECORDS; i++)
        if (!prepare(&prep, i, events[i], &records[i])) return 1;
    if (!classify(&model, records, 1, one) || !classify(&model, records, mtan_pool_cpus(), many)) return 1;
    printf("%d records on %d threads: p(%s) of the first two %.4f and %.4f, %s bits as on one thread\n", RECORDS,
           (int)mtan_pool_cpus(), prep.class_names[prep.positive], (double)many[prep.positive],
           (double)many[2 + prep.positive], memcmp(one, many, sizeof one) == 0 ? "the same" : "OTHER");
    return memcmp(one, many, sizeof one) != 0;
}
