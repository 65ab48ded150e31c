/* See session.h. */
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "../command/shared_options.h"
#include "bounds.h"
#include "device.h"

/* Everything is in the test part. */
static void split_none(split *s, const dataset *d) {
    split_free(s);
    memset(s, 0, sizeof *s);
    for (int32_t i = 0; i < (int32_t)arrlen(d->records); i++) arrput(s->part[SPLIT_TEST], i);
}

/* Is this the data, split as it was, that the model was trained with? */
static int same_data(session *s) {
    char hash[24], error[512];
    if (!split_make(&s->split, &s->data, s->source.split_kind, s->source.by_group, s->source.fold, s->source.seed,
                    error))
        return 0; /* too few records to have been split */
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)s->split.hash);
    return strcmp(hash, bundle_text(&s->bundle, "mtan.split.hash", "")) == 0;
}

/* The split of training if this is the same data, else all of it. */
static int session_split(session *s, const options *o) {
    const char *asked = option_text(o, "split", NULL);
    s->part = asked ? asked : "test";
    if (!same_data(s)) {
        if (asked && strcmp(asked, "all") != 0)
            return complain("--split %s: this is not the data that the model was trained with (its split has another "
                            "hash); leave --split out to use all records",
                            asked),
                   0;
        complain("not the data that the model was trained with: all %zu records are used", arrlenu(s->data.records));
        split_none(&s->split, &s->data);
        s->part = "all";
    }
    source_complete(&s->source, &s->data);
    if (!(s->positions = split_positions(&s->split, s->part)))
        return complain("--split %s: must be train, valid, test or all", s->part), 0;
    return arrlen(s->positions) > 0 ? 1 : (complain("--split %s: this split has no such records", s->part), 0);
}

static int channels_match(const session *s) {
    const prep *p = &s->bundle.prep;
    int32_t *map, absent = 0, unknown;
    if (arrlen(p->channels) == 0) return (int32_t)arrlen(s->data.channels) == s->bundle.model.config.channels;
    map = tool_calloc(arrlenu(s->data.channels), sizeof *map);
    unknown = prep_match(p, s->data.channels, map, &absent);
    for (int32_t i = 0; i < (int32_t)arrlen(s->data.channels) && !unknown; i++) unknown += map[i] != i;
    free(map);
    return !unknown && !absent;
}

int session_open(session *s, const options *o, const char *model) {
    const source_input in = option_input(o, &s->bundle.prep);
    char error[512] = "";
    memset(s, 0, sizeof *s);
    if (!bundle_read(&s->bundle, model, error)) return complain("%s", error), 0;
    if (!option_backend(o, &s->bundle.model.backend)) return session_close(s), 0;
    if (!source_read(&s->source, &s->bundle, error)) return complain("%s: %s", model, error), session_close(s), 0;
    if (!source_load(&s->data, &s->source, &in)) return session_close(s), 0;
    if (!channels_match(s)) {
        complain("%s: the data's channels are not the model's", model);
        return session_close(s), 0;
    }
    if (!unit_matches(&s->bundle.prep, &s->data) || !session_split(s, o)) return session_close(s), 0;
    prep_apply(&s->bundle.prep, &s->data, &s->split);
    if (option_given(o, "samples")) s->bundle.model.config.predict_samples = (int32_t)option_integer(o, "samples", 0);
    return 1;
}

void session_close(session *s) {
    arrfree(s->positions);
    split_free(&s->split);
    dataset_free(&s->data);
    bundle_free(&s->bundle);
}

size_t session_batch(session *s) {
    const double batch = bundle_number(&s->bundle, "mtan.plan.batch", 0);
    return batch >= 1 && batch < 1e6 ? (size_t)batch : 0;
}

int session_predict(session *s, const options *o, predictions *p) {
    char error[512] = "";
    runner run;
    int good;
    memset(p, 0, sizeof *p);
    if (s->bundle.model.config.classify == MTAN_CLASSIFY_NONE)
        return complain("this model interpolates and does not classify: `mtan interpolate`"), 0;
    if (!runner_start(&run, &s->bundle.model, model_bounds(&s->bundle.model.config, &s->data), option_threads(o),
                      error))
        return complain("%s", error), 0;
    runner_seed(&run, (uint64_t)option_integer(o, "seed", 0));
    good = predictions_make(p, &run, &s->data, s->positions, s->source.preset == MTAN_FAITHFUL, session_batch(s));
    if (!good)
        complain("record %s or one after it: %s", dataset_name(&s->data, (size_t)s->positions[run.failed]),
                 status_message(run.status));
    runner_stop(&run);
    return good;
}

int session_interpolate(session *s, const options *o, double share, interpolation_error *e) {
    const int faithful = s->source.preset == MTAN_FAITHFUL;
    const interpolation_request q = {&s->data, s->positions, share, session_batch(s), faithful ? session_batch(s) : 0};
    char error[512] = "";
    runner run;
    int good;
    if (s->bundle.model.config.kind != MTAN_FULL) return complain("this model classifies and does not interpolate"), 0;
    if (!runner_start(&run, &s->bundle.model, interpolation_bounds(&s->data), option_threads(o), error))
        return complain("%s", error), 0;
    runner_seed(&run, (uint64_t)option_integer(o, "seed", 0));
    good = interpolation_measure(e, &run, &q, (int32_t)option_integer(o, "bootstrap", 1000));
    if (!good)
        complain("record %s or one after it: %s", dataset_name(&s->data, (size_t)s->positions[run.failed]),
                 status_message(run.status));
    runner_stop(&run);
    return good;
}
