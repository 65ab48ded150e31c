/* See session.h. */
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "shared_options.h"
#include "../run/bounds.h"
#include "../run/device.h"

/* Puts all records into the test part. */
static void split_none(split *s, const dataset *d) {
    split_free(s);
    memset(s, 0, sizeof *s);
    for (int32_t i = 0; i < (int32_t)arrlen(d->records); i++) arrput(s->part[SPLIT_TEST], i);
}

/* Splits the data as in training, and tells whether it is the same data. */
static data_match match_data(session *s) {
    char error[512];
    source_give_parts(&s->source, &s->data, &s->bundle);
    if (!source_draw(&s->split, &s->source, &s->data, error))
        return DATA_OTHER_RECORDS; /* too few records for a split */
    return source_match(&s->split, &s->bundle);
}

/* Records of the training count as training data even if their labels or values changed: a column that was left out
 * must not turn the records that trained the model into a test of it. */
static int is_training_data(const session *s) {
    return s->match <= DATA_OTHER_VALUES;
}

void session_explain(session *s) {
    static const char *const before[] = {[DATA_SAME] = "", [DATA_SAME_NAMES] = " ", [DATA_OTHER_LABELS] = " with "};
    char part[16] = "all parts";
    if (!is_training_data(s)) return;
    if (strcmp(s->part, "all") != 0) snprintf(part, sizeof part, "the %s part", s->part);
    if (s->match != DATA_OTHER_VALUES) /* which session_split tells */
        note("these are the training data%s%s: %s, %td records", before[s->match], data_match_text(s->match), part,
             arrlen(s->positions));
    if (strcmp(s->part, "test") != 0 && bundle_number(&s->bundle, RUN_AGAIN, 0) > 0)
        note("the model was trained on the validation records, too (--refit): chosen.safetensors beside it was not");
}

/* Uses the split of training for the training data, and all records of other data. */
static int session_split(session *s, const options *o) {
    const char *asked = option_text(o, "split", NULL);
    s->part = asked ? asked : "test";
    s->match = match_data(s);
    if (s->match == DATA_OTHER_ORDER && (!asked || strcmp(asked, "all") != 0))
        return complain("%s than those the model was trained on, so which are test records is not known: give them as "
                        "they were, or --split all takes them all",
                        data_match_text(s->match)),
               0;
    if (!is_training_data(s)) {
        if (asked && strcmp(asked, "all") != 0)
            return complain("--split %s: other data than the model was trained on (%s) has no such part; leave --split "
                            "out to use all records",
                            asked, data_match_text(s->match)),
                   0;
        complain("other data than the model was trained on (%s): all %zu records", data_match_text(s->match),
                 arrlenu(s->data.records));
        split_none(&s->split, &s->data);
        s->part = "all";
    }
    source_complete(&s->source, &s->data);
    if (!(s->positions = split_positions(&s->split, s->part)))
        return complain("--split %s: must be train, valid, test or all", s->part), 0;
    if (arrlen(s->positions) == 0 && s->source.split.kind == SPLIT_ALL && is_training_data(s))
        return complain("all of these records trained the model, and none is left to test it; --split train takes them "
                        "all the same"),
               0;
    if (arrlen(s->positions) == 0) return complain("--split %s: this split has no such records", s->part), 0;
    if (s->match == DATA_OTHER_VALUES)
        complain("these are %s than in training: part '%s', %td records%s", data_match_text(s->match), s->part,
                 arrlen(s->positions), asked ? "" : "; --split all takes all, those that trained the model too");
    return 1;
}

int session_read_model(session *s, const options *o, const char *model) {
    char error[512] = "";
    if (!bundle_read(&s->bundle, model, error)) return complain("%s", error), 0;
    if (!option_backend(o, &s->bundle.model.backend)) return 0;
    return source_read(&s->source, &s->bundle, error) ? 1 : (complain("%s: %s", model, error), 0);
}

int session_read_data(session *s, const options *o) {
    source_input in = option_input(o, &s->bundle.prep);
    in.keep_times = s->keep_times;
    source_tell_statics(&s->source, &in, &s->bundle);
    if (!source_load(&s->data, &s->source, &in)) return 0;
    return data_fits(&s->bundle, &s->data) && session_split(s, o);
}

static int open_either(session *s, const options *o, const char *model, int with_times) {
    memset(s, 0, sizeof *s);
    if (!session_read_model(s, o, model)) return session_close(s), 0;
    s->keep_times = with_times && s->bundle.model.config.classify == MTAN_CLASSIFY_TIME;
    if (!session_read_data(s, o)) return session_close(s), 0;
    prep_apply(&s->bundle.prep, &s->data, &s->split);
    s->source.forecast = option_number(o, "forecast", option_given(o, "observed") ? 0 : s->source.forecast);
    s->data.horizon = (double)prep_time(&s->bundle.prep, SPLIT_TEST, s->source.forecast);
    if (option_given(o, "samples")) s->bundle.model.config.predict_samples = (int32_t)option_integer(o, "samples", 0);
    return 1;
}

int session_open(session *s, const options *o, const char *model) {
    return open_either(s, o, model, 0);
}

int session_open_times(session *s, const options *o, const char *model) {
    return open_either(s, o, model, 1);
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
    if (s->bundle.model.config.task != MTAN_TASK_CLASSES)
        return complain("this model predicts no classes: `mtan eval` and `mtan predict` are for it"), 0;
    if (!runner_start(&run, &s->bundle.model, model_bounds(&s->bundle.model.config, &s->data), option_threads(o),
                      error))
        return complain("%s", error), 0;
    runner_seed(&run, (uint64_t)option_integer(o, "seed", 0));
    good = predictions_make(p, &run, &s->data, s->positions, s->source.preset == MTAN_FAITHFUL, session_batch(s));
    if (!good)
        complain("record %s%s: %s", dataset_name(&s->data, (size_t)s->positions[run.failed]), runner_doubt(&run),
                 status_message(run.status));
    runner_stop(&run);
    return good;
}

int session_numbers(session *s, const options *o, number_predictions *p) {
    char error[512] = "";
    runner run;
    int good;
    if (!runner_start(&run, &s->bundle.model, model_bounds(&s->bundle.model.config, &s->data), option_threads(o),
                      error))
        return complain("%s", error), 0;
    runner_seed(&run, (uint64_t)option_integer(o, "seed", 0));
    good = numbers_make(p, &run, &s->data, &s->bundle.prep, s->positions);
    if (!good)
        complain("record %s%s: %s", dataset_name(&s->data, (size_t)s->positions[run.failed]), runner_doubt(&run),
                 status_message(run.status));
    runner_stop(&run);
    return good;
}

int session_interpolate(session *s, const options *o, double share, interpolation_error *e, record_error *each) {
    const int faithful = s->source.preset == MTAN_FAITHFUL;
    const size_t batch = session_batch(s);
    const interpolation_request q = {&s->data, s->positions,    share, batch, faithful ? batch : 0,
                                     each,     &s->bundle.prep, NULL};
    char error[512] = "";
    runner run;
    int good;
    if (s->bundle.model.config.kind != MTAN_FULL) return complain("this model classifies and does not interpolate"), 0;
    if (!runner_start(&run, &s->bundle.model, interpolation_bounds(&s->data), option_threads(o), error))
        return complain("%s", error), 0;
    runner_seed(&run, (uint64_t)option_integer(o, "seed", 0));
    good = interpolation_measure(e, &run, &q, (int32_t)option_integer(o, "bootstrap", 1000));
    if (!good)
        complain("record %s%s: %s", dataset_name(&s->data, (size_t)s->positions[run.failed]), runner_doubt(&run),
                 status_message(run.status));
    runner_stop(&run);
    return good;
}
