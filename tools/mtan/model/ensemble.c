/* See ensemble.h. */
#include "ensemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden_record.h"

/* Channels, classes and the preprocessing of values and times must equal the first member's, as the joined file stores
 * them once. Bands may differ: they follow from each member's weights. */
static int same_preprocessing(bundle *a, bundle *b) {
    static const char *const beginnings[] = {"mtan.prep.", "mtan.names.", "mtan.time.", "mtan.number."};
    int same = 1;
    for (size_t k = 0; k < sizeof beginnings / sizeof beginnings[0]; k++) {
        mtan_file_pair *x = NULL, *y = NULL;
        pairs_copy(&x, &a->file, beginnings[k]), pairs_copy(&y, &b->file, beginnings[k]);
        same = same && arrlen(x) == arrlen(y);
        for (size_t i = 0; same && i < arrlenu(x); i++)
            same = strcmp(x[i].key, y[i].key) == 0 &&
                   (strcmp(x[i].key, "mtan.prep.band") == 0 || strcmp(x[i].value, y[i].value) == 0);
        pairs_free(x, arrlenu(x)), pairs_free(y, arrlenu(y));
        arrfree(x), arrfree(y);
    }
    return same;
}

static int write_joined(const char *path, const plan *p, const mtan_model *model, bundle *first,
                        const mtan_file_pair *parts, char *error) {
    mtan_file_pair *pairs = NULL;
    plan_write(p, &pairs);
    if (!parts) pairs_copy(&pairs, &first->file, "mtan.split.");
    for (size_t i = 0; i < arrlenu(parts); i++) pairs_add(&pairs, parts[i].key, parts[i].value);
    pairs_copy(&pairs, &first->file, RUN_AGAIN);
    pairs_copy(&pairs, &first->file, "mtan.golden.");
    golden_record_renew(first, model, pairs);
    const int good = bundle_write(path, model, NULL, &first->prep, pairs, arrlenu(pairs), error);
    pairs_free(pairs, arrlenu(pairs));
    arrfree(pairs);
    return good;
}

/* Averages the members' factors on deviations, as the members themselves are averaged. */
static void join_bands(bundle *all, int32_t n) {
    for (int32_t d = 0; d < all[0].model.config.channels && d < (int32_t)arrlen(all[0].prep.channel); d++) {
        double sum = 0;
        for (int32_t i = 0; i < n; i++) sum += (double)all[i].prep.channel[d].band;
        all[0].prep.channel[d].band = (mtan_real)(sum / n);
    }
}

static int join_bundles(const char *path, const plan *p, bundle *all, int32_t n, const mtan_file_pair *parts,
                        char *error) {
    const size_t count = (size_t)n * mtan_weights_count(&all[0].model.config);
    mtan_model *members = tool_calloc((size_t)n, sizeof *members), joined;
    mtan_real *weights = tool_calloc(count, sizeof *weights);
    for (int32_t i = 0; i < n; i++) members[i] = all[i].model;
    join_bands(all, n);
    const mtan_status status = mtan_model_join(&joined, weights, count, members, n);
    const int good = status == MTAN_OK
                         ? write_joined(path, p, &joined, &all[0], parts, error)
                         : (snprintf(error, 512, "the models cannot be joined: %s", mtan_status_message(status)), 0);
    free(members), free(weights);
    return good;
}

int ensemble_join(const char *path, const plan *p, char (*members)[4096], int32_t n, const mtan_file_pair *parts,
                  char *error) {
    bundle *all = tool_calloc((size_t)n, sizeof *all);
    int32_t read = 0;
    int good = 1;
    for (; good && read < n; read += good) {
        if (!(good = bundle_read(&all[read], members[read], error))) break;
        if ((good = same_preprocessing(&all[0], &all[read]))) continue;
        snprintf(error, 512, "%.200s has other preprocessing than %.200s: they cannot be joined", members[read],
                 members[0]);
        bundle_free(&all[read]);
    }
    good = good && join_bundles(path, p, all, n, parts, error);
    for (int32_t i = 0; i < read; i++) bundle_free(&all[i]);
    free(all);
    return good;
}
