/* See small.h. */
#include "small.h"

#include "caller.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The settings that the cases below change. Sizes are odd if possible, so that swapped dimensions show. */
static const char base_settings[] =
    "embed 8 enc_hidden 5 dec_hidden 3 latent 2 ref_points 4 mlp_hidden 6 head_hidden 7 "
    "samples 2 predict_samples 3";

static const struct {
    const char *name, *settings;
} cases[] = {
    {"enc record even", "kind enc classify record"},
    {"enc record given", "kind enc classify record reference given"},
    {"enc record observed", "kind enc classify record reference observed"},
    {"enc time", "kind enc classify time reference observed"},
    {"enc time one layer", "kind enc classify time reference observed head_hidden 0 enc_heads 2"},
    {"enc heads", "kind enc classify record enc_heads 4"},
    {"enc per head", "kind enc classify record enc_heads 2 embed_heads per_head"},
    {"enc time per head", "kind enc classify time reference observed enc_heads 2 embed_heads per_head"},
    {"enc fixed", "kind enc classify record embedding fixed"},
    {"enc rbf", "kind enc classify record encoder rbf"},
    {"enc rbf observed", "kind enc classify record encoder rbf reference observed"},
    {"enc time rbf", "kind enc classify time encoder rbf reference observed"},
    {"enc rnn3", "kind enc classify record encoder rnn3"},
    {"enc time rnn3", "kind enc classify time encoder rnn3 reference observed"},
    {"enc one channel, one point", "kind enc classify record channels 1 ref_points 1 embed 2"},
    {"enc summaries", "kind enc classify record summaries 1"},
    {"enc summaries of some", "kind enc classify record summaries 1 statics 1 enc_heads 2 reference given"},
    {"enc shapes", "kind enc classify record summaries 2 statics 1"},
    {"enc course", "kind enc classify record summaries 3 statics 1"},
    {"enc trees", "kind enc classify record summaries 1 statics 1 trees 3"},
    {"enc statics", "kind enc classify record statics 1 head_hidden 0"},
    {"enc observed summaries", "kind enc classify record summaries 1 statics 1 reference observed"},
    {"enc rbf summaries", "kind enc classify record encoder rbf summaries 1"},
    {"full summaries", "kind full classify record summaries 1 statics 1"},
    {"full trees", "kind full classify record summaries 3 statics 1 trees 2"},
    {"enc spread", "kind enc classify record statistics mean,spread"},
    {"enc intensity", "kind enc classify record statistics mean,intensity fastest 3"},
    {"enc statistics",
     "kind enc classify record statistics mean,spread,intensity,slope enc_heads 2 summaries 1 statics 1"},
    {"enc slope observed", "kind enc classify record statistics mean,slope reference observed enc_heads 2"},
    {"enc time statistics", "kind enc classify time reference observed statistics mean,spread,intensity,slope"},
    {"enc rnn3 slope", "kind enc classify record encoder rnn3 statistics mean,spread,slope"},
    {"full statistics", "kind full classify record statistics mean,spread,intensity,slope reference given"},
    {"full none statistics", "kind full classify none statistics mean,intensity,slope enc_heads 2"},
    {"full statistics, variance", "kind full classify record statistics mean,spread,intensity,slope variance learned"},
    {"full intensity, variance", "kind full classify none statistics mean,intensity variance learned enc_heads 2"},
    {"enc piecewise", "kind enc classify record values piecewise bins 3 enc_heads 2"},
    {"enc quantile", "kind enc classify record values quantile bins 4 reference given"},
    {"enc piecewise statistics",
     "kind enc classify record values piecewise bins 2 statistics mean,spread,intensity,slope "
     "summaries 1 statics 1"},
    {"enc time piecewise", "kind enc classify time reference observed values piecewise bins 2 enc_heads 2"},
    {"enc rnn3 quantile", "kind enc classify record encoder rnn3 values quantile bins 1 summaries 1"},
    {"full piecewise", "kind full classify record values piecewise bins 3 summaries 1 statics 1"},
    {"full none quantile", "kind full classify none values quantile bins 3 reference observed"},
    {"full piecewise, variance", "kind full classify none values piecewise bins 2 variance learned enc_heads 2"},
    {"full none", "kind full classify none"},
    {"full record", "kind full classify record"},
    {"full time", "kind full classify time"},
    {"full given", "kind full classify record reference given bound faithful"},
    {"full heads", "kind full classify record enc_heads 2 dec_heads 4 bound iwae rule mean_log_probability"},
    {"full per head", "kind full classify none enc_heads 4 dec_heads 2 embed_heads per_head bound iwae"},
    {"full fixed", "kind full classify record embedding fixed dec_heads 2"},
    {"full rbf", "kind full classify record encoder rbf decoder rbf"},
    {"full time rbf", "kind full classify time encoder rbf decoder rbf"},
    {"full rnn3", "kind full classify record encoder rnn3 decoder rnn3"},
    {"full time rnn3", "kind full classify time encoder rnn3 decoder rnn3"},
    {"full observed", "kind full classify record reference observed"},
    {"full none observed", "kind full classify none reference observed enc_heads 2 dec_heads 4 bound iwae"},
    {"full time observed", "kind full classify time reference observed embed_heads per_head dec_heads 2"},
    {"full rbf observed", "kind full classify record encoder rbf decoder rbf reference observed"},
    {"full rnn3 observed", "kind full classify time encoder rnn3 decoder rnn3 reference observed"},
    {"full posterior mean", "kind full classify record predict_samples 0 skip_empty 0 norm 0 kl_anneal 1"},
    {"enc number", "kind enc classify record task number classes 1"},
    {"enc interval", "kind enc classify record task number classes 2 interval 0.8"},
    {"enc labels", "kind enc classify record task labels classes 3"},
    {"enc time labels", "kind enc classify time reference observed task labels"},
    {"full number", "kind full classify record task number"},
    {"full labels", "kind full classify record task labels rule mean_log_probability"},
    {"full time number", "kind full classify time task number"},
    {"full many samples", "kind full classify record samples 7 predict_samples 9"},
};

static const mtan_real given_points[4] = {(mtan_real)0.9, (mtan_real)-0.5, (mtan_real)0.1, (mtan_real)3};

int small_apply(mtan_config *config, const char *settings) {
    char key[32], value[32];
    int used;
    for (; sscanf(settings, "%31s %31s%n", key, value, &used) == 2; settings += used)
        if (mtan_config_set(config, key, value) != MTAN_OK) return 0;
    return 1;
}

uint64_t small_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int32_t small_whole(uint64_t *state, int32_t low, int32_t high) {
    const uint64_t span = (uint64_t)((int64_t)high - low + 1);
    return (int32_t)(low + (int64_t)(small_random(state) % span));
}

mtan_real small_real(uint64_t *state) {
    return (mtan_real)small_whole(state, -(1 << 20), (1 << 20) - 1) / (1 << 20);
}

int small_count(void) {
    return (int)(sizeof cases / sizeof cases[0]);
}

int small_open(small_model *s, int index) {
    uint64_t random = 7;
    if (index < 0 || index >= small_count()) return 0;
    memset(s, 0, sizeof *s);
    s->name = cases[index].name;
    mtan_config_init(&s->config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 3, 2);
    s->config.ref = given_points;
    if (!small_apply(&s->config, base_settings) || !small_apply(&s->config, cases[index].settings) ||
        (s->count = mtan_weights_count(&s->config)) == 0) {
        printf("  BAD case \"%s\" is not a model\n", s->name);
        return 0;
    }
    s->weights = guard_alloc(s->count * sizeof *s->weights);
    for (size_t i = 0; i < s->count; i++) s->weights[i] = small_real(&random) / 2;
    sort_knots(&s->config, s->weights);
    return mtan_model_init(&s->model, &s->config, s->weights, mtan_weights_count(&s->config)) == MTAN_OK;
}

int small_open_named(small_model *s, const char *name) {
    for (int i = 0; i < small_count(); i++)
        if (strcmp(cases[i].name, name) == 0) return small_open(s, i);
    return 0;
}

int small_close(small_model *s) {
    return guard_free(s->weights);
}

/* `times` distinct times over n events, with the last time first. */
static mtan_event *random_events(int32_t n, int32_t times, int32_t channels, uint64_t *random) {
    mtan_event *events = guard_alloc((size_t)n * sizeof *events);
    const int32_t start = small_whole(random, 0, 1000);
    for (int32_t i = 0; i < n; i++) {
        events[i].time = 1 - (mtan_real)((start + i) % times) / (mtan_real)times;
        events[i].channel = small_whole(random, 0, channels - 1);
        events[i].value = small_real(random);
    }
    return events;
}

/* Some are missing; all values are valid labels. */
static mtan_real *random_numbers(size_t n, uint64_t *random) {
    mtan_real *numbers = guard_alloc(n * sizeof *numbers);
    for (size_t i = 0; i < n; i++) {
        const int32_t whole = small_whole(random, -1, 1);
        numbers[i] = whole < 0 ? (mtan_real)NAN : (mtan_real)whole;
    }
    return numbers;
}

static int32_t pick(int32_t most, int largest, uint64_t *random) {
    return largest ? most : small_whole(random, 0, most);
}

/* If the bounds allow no events or no times, the record has no events. */
static mtan_event *some_events(const mtan_config *c, const mtan_bounds *bounds, int largest, uint64_t *random,
                               int32_t *n) {
    int32_t times;
    *n = bounds->times > 0 ? pick(bounds->events, largest, random) : 0;
    times = bounds->times < *n ? bounds->times : *n;
    return random_events(*n, times, c->channels, random);
}

small_set small_records(const mtan_config *c, const mtan_bounds *bounds, int32_t n, int largest, uint64_t *random) {
    small_set set = {guard_alloc((size_t)n * sizeof(mtan_record)), n};
    memset(set.records, 0, (size_t)n * sizeof(mtan_record));
    for (int32_t b = 0; b < n; b++) {
        mtan_record *r = &set.records[b];
        const int32_t queries = pick(bounds->times, largest, random);
        const int32_t n_labels = c->classify == MTAN_CLASSIFY_TIME ? queries : 1;
        mtan_real *times = guard_alloc((size_t)queries * sizeof *times);
        int32_t *labels = guard_alloc((size_t)n_labels * sizeof *labels);
        r->events = some_events(c, bounds, largest, random, &r->n_events);
        r->targets = some_events(c, bounds, largest, random, &r->n_targets);
        for (int32_t i = 0; i < queries; i++) times[i] = (mtan_real)(i + b) / (mtan_real)queries;
        for (int32_t i = 0; i < n_labels; i++)
            labels[i] = c->classes > 0 ? small_whole(random, MTAN_UNLABELED, c->classes - 1) : MTAN_UNLABELED;
        r->times = times;
        r->n_times = queries;
        r->labels = labels;
        if (c->task != MTAN_TASK_CLASSES) r->numbers = random_numbers((size_t)n_labels * (size_t)c->classes, random);
        r->id = small_random(random);
    }
    return set;
}

int small_free(small_set *set) {
    int ok = 1;
    for (int32_t b = 0; b < set->n; b++) {
        const mtan_record *r = &set->records[b];
        ok &= guard_free((void *)(uintptr_t)r->events) & guard_free((void *)(uintptr_t)r->targets) &
              guard_free((void *)(uintptr_t)r->times) & guard_free((void *)(uintptr_t)r->labels) &
              guard_free((void *)(uintptr_t)r->numbers);
    }
    return ok & guard_free(set->records);
}

int small_train(small_model *s, const mtan_bounds *bounds, const small_set *set, int steps) {
    mtan_train_config train;
    mtan_trainer trainer;
    mtan_report report;
    size_t bytes = 0;
    mtan_train_config_init(&train);
    train.lr = 0.01, train.decay = 1;
    int good = mtan_trainer_size(&s->model, &train, bounds, &bytes) == MTAN_OK;
    void *memory = guard_alloc(bytes);
    good = good && mtan_trainer_init(&trainer, &s->model, s->weights, &train, bounds, memory, bytes) == MTAN_OK;
    for (int i = 0; good && i < steps; i++)
        good = mtan_trainer_step(&trainer, set->records, set->n, 0, &report) == MTAN_OK;
    return guard_free(memory) & good;
}

int32_t small_distinct(const mtan_record *record) {
    int32_t times = -1;
    return times_of(record, &times) == MTAN_OK ? times : -1;
}

int32_t small_queries(const mtan_record *record) {
    return record->times ? record->n_times : small_distinct(record);
}

int32_t small_points(const mtan_config *config, const mtan_record *record) {
    if (config->reference != MTAN_REF_OBSERVED) return config->ref_points;
    return config->kind == MTAN_ENC ? small_queries(record) : small_distinct(record);
}

size_t small_class_rows(const mtan_config *config, const small_set *set) {
    size_t rows = 0;
    for (int32_t b = 0; b < set->n; b++)
        rows += config->classify == MTAN_CLASSIFY_TIME ? (size_t)small_queries(&set->records[b]) : 1;
    return rows;
}

int32_t small_samples(const mtan_config *config) {
    return config->kind == MTAN_FULL && config->predict_samples > 0 ? config->predict_samples : 1;
}
