/* mtan convert --stats-from DATA: stores the preprocessing of a converted model, which the published code computes from
 * that data, and the location of its test records, so that `mtan eval` and `mtan predict` can use the data directly. */
#include <string.h>

#include "convert.h"
#include "../model/plan.h"
#include "../model/shared_options.h"

/* The published command that trains a model of this shape. */
static const char *recipe_of(const mtan_config *c) {
    const int full = c->kind == MTAN_FULL;
    if (c->channels == 41)
        return c->classify == MTAN_CLASSIFY_NONE ? "physionet-interp" : full ? "physionet-full" : "physionet-enc";
    if (c->channels == 12 && c->classify == MTAN_CLASSIFY_TIME) return full ? "activity-full" : "activity-enc";
    if (c->channels == 12) return full ? "mimic3-full" : "mimic3-enc";
    return c->channels == 1 ? "toy-interp" : NULL;
}

/* Training settings in the checkpoint replace the published ones. */
static void keep_training(plan *p, const converted *m) {
    if (m->lr > 0) p->lr = m->lr;
    if (m->batch > 0) p->batch = m->batch;
    if (m->niters > 0) p->epochs = m->niters;
    if (m->seed > 0) p->seed = m->seed;
    if (m->moment1) p->optimizer = m->optimizer == MTAN_ADAMAX;
    if (m->sample_tp > 0 && p->source.interpolation)
        p->observed_low = p->observed_high = p->source.observed = m->sample_tp;
}

int convert_statistics(prep *p, mtan_file_pair **pairs, const options *o, const converted *m) {
    const mtan_config *config = &m->model.config;
    const char *name = option_text(o, "recipe", recipe_of(config));
    source_input in = option_input(o, NULL);
    plan published;
    dataset d;
    split s;
    int good;
    if (!name || !plan_published(&published, name) || published.config.architecture)
        return complain("--stats-from: no published configuration has %d channels; name one by --recipe",
                        (int)config->channels),
               0;
    memset(&s, 0, sizeof s);
    in.path = option_text(o, "stats-from", NULL);
    if (!source_load(&d, &published.source, &in)) return 0;
    if ((int32_t)arrlen(d.channels) != config->channels)
        return complain("%s: the data of %s has %td channels, the model %d", option_text(o, "stats-from", NULL), name,
                        arrlen(d.channels), (int)config->channels),
               dataset_free(&d), 0;
    if ((good = source_split(&s, &published.source, &d)) != 0) {
        source_fit(p, &published.source, &d, &s, published.scale, published.time_scale);
        keep_training(&published, m);
        plan_write(&published, pairs);
        source_write_split(&s, &published.source, pairs);
        note("preprocessing of %s, as published, from %zu records", name, arrlenu(d.records));
    }
    split_free(&s);
    dataset_free(&d);
    return good;
}
