/* See source.h. */
#include "source.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"
#include "data_sets.h"

/* ---- in a model file ---- */

static void add_number(mtan_file_pair **pairs, const char *key, double x) {
    char text[32];
    snprintf(text, sizeof text, "%.17g", x);
    pairs_add(pairs, key, text);
}

const char *const preset_names[] = {
    [MTAN_FAITHFUL] = "faithful", [MTAN_CORRECT] = "correct", [MTAN_BEST] = "best", NULL};

/* An unknown name counts as correct. */
static mtan_preset preset_of(const char *name) {
    for (int i = 0; preset_names[i]; i++)
        if (strcmp(preset_names[i], name) == 0) return (mtan_preset)i;
    return MTAN_CORRECT;
}

static const char *const fit_words[] = {"training", "all", NULL};

#define NUMBER(key, option, type, member, low, high, otherwise)                                                        \
    { key, option, type, offsetof(source, member), 0, low, high, otherwise, NULL }
#define TEXT(key, member)                                                                                              \
    { key, key, 't', offsetof(source, member), sizeof((source *)0)->member, 0, 0, 0, NULL }
const source_field source_fields[] = {
    NUMBER("split_kind", NULL, 'i', split.kind, 0, SPLIT_KINDS - 1, 0),
    NUMBER("by_group", "by-group", 'i', split.by_group, 0, 1, 0),
    NUMBER("fold", "fold", 'i', split.fold, 0, SPLIT_FOLDS_MOST - 1, 0),
    NUMBER("folds", "folds", 'i', split.folds, 1, SPLIT_FOLDS_MOST, SPLIT_FOLD_COUNT),
    NUMBER("split_seed", "split-seed", 'u', split.seed, 0, UINT32_MAX, SPLIT_SEED),
    NUMBER("observed", "observed", 'd', observed, 1e-12, 1, 1),
    NUMBER("forecast", "forecast", 'd', forecast, 0, 1e12, 0),
    {"fit", "fit", 'i', offsetof(source, fit_all), 0, 0, 1, 0, fit_words},
    TEXT("origin", origin),
    TEXT("groups", groups),
    {NULL, NULL, 0, 0, 0, 0, 0, 0, NULL},
};

double source_number(const source *s, const source_field *f) {
    const char *at = (const char *)s + f->offset;
    int32_t i;
    uint32_t u;
    double d;
    if (f->type == 'i') return memcpy(&i, at, sizeof i), (double)i;
    if (f->type == 'u') return memcpy(&u, at, sizeof u), (double)u;
    return memcpy(&d, at, sizeof d), d;
}

const char *source_text(const source *s, const source_field *f) {
    return (const char *)s + f->offset;
}

void source_set(source *s, const source_field *f, double x) {
    char *at = (char *)s + f->offset;
    const int32_t i = f->type == 'i' ? (int32_t)x : 0;
    const uint32_t u = f->type == 'u' ? (uint32_t)x : 0;
    if (f->type == 'i') memcpy(at, &i, sizeof i);
    else if (f->type == 'u') memcpy(at, &u, sizeof u);
    else memcpy(at, &x, sizeof x);
}

void source_write(const source *s, mtan_file_pair **pairs) {
    char key[64];
    pairs_add(pairs, "mtan.data.kind", s->set->name);
    pairs_add(pairs, "mtan.data.variant", s->variant);
    pairs_add(pairs, "mtan.data.preset", preset_names[s->preset]);
    add_number(pairs, "mtan.data.interpolation", s->interpolation);
    for (const source_field *f = source_fields; f->key; f++) {
        snprintf(key, sizeof key, "mtan.data.%s", f->key);
        if (f->type == 't') pairs_add(pairs, key, source_text(s, f));
        else if (f->words) pairs_add(pairs, key, f->words[(int)source_number(s, f)]);
        else add_number(pairs, key, source_number(s, f));
    }
}

const char *source_difference(const source *a, const source *b) {
    for (const source_field *f = source_fields; f->key; f++) {
        if (f->type == 't' ? strcmp(source_text(a, f), source_text(b, f)) == 0
                           : !(fabs(source_number(a, f) - source_number(b, f)) > 0))
            continue;
        return f->option ? f->option : b->split.kind == SPLIT_GIVEN ? "splits" : "fold";
    }
    return NULL;
}

/* In the order in which differences are reported. */
static const struct {
    const char *key;
    size_t offset;
    data_match other;
} hashes[] = {{"mtan.split.hash", offsetof(split, hash), DATA_OTHER_RECORDS},
              {"mtan.split.values", offsetof(split, values), DATA_OTHER_VALUES},
              {"mtan.split.labels", offsetof(split, labels), DATA_OTHER_LABELS}};
enum { HASHES = sizeof hashes / sizeof hashes[0] };

static void write_hash(char text[24], const split *s, int which) {
    uint64_t hash;
    memcpy(&hash, (const char *)s + hashes[which].offset, sizeof hash);
    snprintf(text, 24, "%016" PRIx64, hash);
}

/* A split that depends on more than the records' names: one digit per record, in their order, so that it can be
 * restored without labels and groups. */
static const char given_key[] = "mtan.split.given";

static int is_kept(const source *s) {
    return s->split.kind >= SPLIT_STRATIFIED && s->split.kind != SPLIT_ALL;
}

static char *write_given(const split *s) {
    size_t n = 0;
    for (int p = 0; p < SPLIT_PARTS; p++) n += arrlenu(s->part[p]);
    char *text = tool_calloc(n + 1, 1);
    for (int p = 0; p < SPLIT_PARTS; p++)
        for (size_t i = 0; i < arrlenu(s->part[p]); i++) text[s->part[p][i]] = (char)('0' + p);
    return text;
}

void source_give_parts(const source *s, dataset *d, bundle *b) {
    const char *text = is_kept(s) ? bundle_text(b, given_key, "") : "";
    const size_t n = arrlenu(d->records);
    if (n == 0 || d->records[0].part || strlen(text) != n) return;
    for (size_t i = 0; i < n; i++)
        if (text[i] >= '0' && text[i] < '0' + SPLIT_PARTS) d->records[i].part = 1 + text[i] - '0';
}

void source_write_split(const split *s, const source *from, mtan_file_pair **pairs) {
    char text[24], *given;
    for (int i = 0; i < HASHES; i++) write_hash(text, s, i), pairs_add(pairs, hashes[i].key, text);
    if (!is_kept(from)) return;
    given = write_given(s);
    pairs_add(pairs, given_key, given);
    free(given);
}

/* Sums of hashes over the records do not depend on their order, which the parts do. */
static int is_another_order(const split *s, bundle *b) {
    enum { VALUES = 1 };
    char text[24];
    write_hash(text, s, VALUES);
    return strcmp(text, bundle_text(b, hashes[VALUES].key, "")) == 0;
}

data_match source_match(const split *s, bundle *b) {
    const int classifies = b->model.config.classify != MTAN_CLASSIFY_NONE;
    char text[24];
    for (int i = 0; i < HASHES; i++) {
        const char *saved = bundle_text(b, hashes[i].key, NULL);
        if (!saved) return i == 0 ? DATA_UNKNOWN : DATA_SAME_NAMES;
        write_hash(text, s, i);
        if (strcmp(text, saved) == 0 || (!classifies && hashes[i].other == DATA_OTHER_LABELS)) continue;
        return hashes[i].other == DATA_OTHER_RECORDS && is_another_order(s, b) ? DATA_OTHER_ORDER : hashes[i].other;
    }
    return DATA_SAME;
}

const char *data_match_text(data_match match) {
    switch (match) {
    case DATA_SAME: break;
    case DATA_SAME_NAMES: return "by the names of the records, all that this older file keeps of its data";
    case DATA_OTHER_LABELS: return "other labels, or none";
    case DATA_OTHER_VALUES: return "the same records with other values or times";
    case DATA_OTHER_ORDER: return "the same records in another order or in other parts";
    case DATA_OTHER_RECORDS: return "other records, or another order of them";
    case DATA_UNKNOWN: return "its file does not say what that was";
    }
    return "";
}

/* For data sets that have means. A channel that was never observed has none. */
static void read_means(source *s, const prep *p) {
    for (int32_t c = 0; c < s->set->channels; c++) {
        const mtan_prep_channel *channel = &p->channel[c];
        s->means[c] = channel->has & MTAN_HAS_FILL ? (double)channel->fill : NAN;
    }
    s->has_means = 1;
}

/* The place of a word in a list, -1 if it is none of them. */
static int place_of(const char *const *words, const char *word) {
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0) return i;
    return -1;
}

static int read_field(source *s, bundle *b, const source_field *f) {
    char key[64];
    double x;
    snprintf(key, sizeof key, "mtan.data.%s", f->key);
    if (f->type == 't') {
        snprintf((char *)s + f->offset, f->size, "%s", bundle_text(b, key, ""));
        return 1;
    }
    if (f->words) x = place_of(f->words, bundle_text(b, key, f->words[(int)f->otherwise]));
    else x = bundle_number(b, key, f->otherwise);
    if (!(x >= f->low && x <= f->high)) return 0;
    source_set(s, f, x);
    return 1;
}

int source_read(source *s, bundle *b, char *error) {
    const char *name = bundle_text(b, "mtan.data.kind", "own");
    memset(s, 0, sizeof *s);
    s->set = data_set_named(name, strlen(name));
    snprintf(s->variant, sizeof s->variant, "%s", bundle_text(b, "mtan.data.variant", ""));
    s->preset = preset_of(bundle_text(b, "mtan.data.preset", "correct"));
    if (!s->set) return snprintf(error, 512, "its mtan.data.kind is no data set of this version"), 0;
    for (const source_field *f = source_fields; f->key; f++)
        if (!read_field(s, b, f)) return snprintf(error, 512, "its mtan.data.%s is out of range", f->key), 0;
    if (s->split.fold >= s->split.folds) return snprintf(error, 512, "its mtan.data.fold is out of range"), 0;
    if (!s->origin[0]) strcpy(s->origin, "auto");
    s->interpolation = b->model.config.classify == MTAN_CLASSIFY_NONE;
    if (s->set->means && (int32_t)arrlen(b->prep.channel) != s->set->channels)
        return snprintf(error, 512, "it has %d channels, and %s has %d", (int)arrlen(b->prep.channel), s->set->name,
                        (int)s->set->channels),
               0;
    if (s->set->means) read_means(s, &b->prep);
    return 1;
}

/* ---- reading ---- */

static int own_origin_named(own_origin *origin, const char *word) {
    static const char *const words[] = {"auto", "zero", "record"};
    static const own_origin kinds[] = {OWN_ORIGIN_AUTO, OWN_ORIGIN_ZERO, OWN_ORIGIN_RECORD};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(word, words[i]) == 0) return *origin = kinds[i], 1;
    return 0;
}

static int own_task_named(own_task *task, const char *word) {
    static const char *const words[] = {"classes", "number", "labels"};
    static const own_task kinds[] = {OWN_TASK_CLASSES, OWN_TASK_NUMBER, OWN_TASK_LABELS};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(word, words[i]) == 0) return *task = kinds[i], 1;
    return 0;
}

int source_own_options(own_options *own, const source_input *in, const source *from, char *error) {
    const char *origin = in->origin ? in->origin : from ? from->origin : "auto";
    memset(own, 0, sizeof *own);
    own->skip_unknown = in->skip_unknown;
    own->keep_times = in->keep_times;
    own->statics = in->statics, own->read = in->by;
    own->groups = from && from->groups[0] ? from->groups : NULL;
    if (in->model && arrlen(in->model->channels) > 0)
        own->channels = in->model->channels, own->codes = in->model->channel;
    if (in->model && arrlen(in->model->classes) > 0) own->classes = in->model->classes;
    if (in->model && arrlen(in->model->number) > 0) own->task = OWN_TASK_NUMBER;
    if (in->task && !own_task_named(&own->task, in->task))
        return snprintf(error, 512, "--task %.400s: must be classes, number or labels", in->task), 0;
    if (own_origin_named(&own->origin, origin)) return 1;
    return snprintf(error, 512, "--origin %.400s: must be record, zero or auto", origin), 0;
}

static void swap_classes(dataset *d) {
    char *first = d->classes[0];
    d->classes[0] = d->classes[1], d->classes[1] = first;
    for (size_t i = 0; i < arrlenu(d->labels); i++)
        if (d->labels[i] == 0 || d->labels[i] == 1) d->labels[i] = 1 - d->labels[i];
}

/* Scores, curves and probabilities are about the second of two classes: the class that was asked for, or the model's
 * second. */
static void order_classes(dataset *d, const source_input *in) {
    const int known = in->model && arrlen(in->model->classes) == 2;
    const char *second = known ? in->model->classes[1] : in->positive;
    if (second && arrlen(d->classes) == 2 && strcmp(d->classes[0], second) == 0) swap_classes(d);
}

int source_load(dataset *d, const source *s, const source_input *in) {
    int good;
    memset(d, 0, sizeof *d);
    if (s->set->needs_data && !in->path && !in->columns) good = dataset_fail(d, "--data is missing");
    else good = s->set->load(d, s, in);
    progress_end();
    if (good && in->splits && !own_read_parts(d, in->splits)) {
        complain("%s", d->error);
        return dataset_free(d), 0;
    }
    if (!good) return complain("%s", d->error), 0;
    order_classes(d, in);
    for (size_t i = 0; i < arrlenu(d->notes); i++) note("%s", d->notes[i]);
    return 1;
}

/* ---- after reading ---- */

void source_complete(const source *s, dataset *d) {
    if (s->has_means) s->set->fill(d, s->means);
}

int source_draw(split *s, const source *from, const dataset *d, char *error) {
    split_way way = from->split;
    if (way.kind != SPLIT_GIVEN && arrlen(d->records) > 0 && d->records[0].part)
        way.kind = SPLIT_GIVEN, way.by_group = 0; /* a file has stored the parts */
    return split_make(s, d, &way, error);
}

int source_split(split *s, source *from, dataset *d) {
    const int all = from->preset == MTAN_FAITHFUL || from->fit_all;
    const int32_t *train;
    char error[512] = "";
    if (!source_draw(s, from, d, error)) return complain("%s", error), 0;
    train = s->part[SPLIT_TRAIN];
    if (from->set->means && !from->has_means)
        from->set->means(d, all ? NULL : train, arrlenu(train), from->means), from->has_means = 1;
    source_complete(from, d);
    return 1;
}

static int is_among(const char *const *words, const char *word) {
    while (words && *words && strcmp(*words, word) != 0) words++;
    return words && *words;
}

void source_fit(prep *p, const source *from, const dataset *d, const split *s, prep_kind scale, double time_scale) {
    const char *const *coded = from->preset == MTAN_FAITHFUL ? NULL : from->set->coded;
    mtan_real *missing = NULL;
    split fitted = *s; /* prep_fit looks at its training part */
    if (from->fit_all) fitted.part[SPLIT_TRAIN] = split_positions(s, "all");
    for (size_t c = 0; coded && c < arrlenu(d->channels); c++)
        arrput(missing, is_among(coded, d->channels[c]) ? -1 : (mtan_real)NAN);
    prep_fit(p, d, &fitted, scale, time_scale, missing);
    if (from->interpolation && p->number) arrsetlen(p->number, 0); /* it predicts none of the labels */
    if (from->fit_all) arrfree(fitted.part[SPLIT_TRAIN]);
    arrfree(missing);
    p->from_first = strcmp(from->origin, "record") == 0 || (from->set->own && strcmp(d->unit, "hours") == 0);
    for (int32_t c = 0; from->has_means && c < from->set->channels; c++)
        if (!isnan(from->means[c])) p->channel[c].fill = (mtan_real)from->means[c], p->channel[c].has |= MTAN_HAS_FILL;
}

static int channels_match(const bundle *b, const dataset *d) {
    const prep *p = &b->prep;
    int32_t *map, absent = 0, unknown;
    if (arrlen(p->channels) == 0) return (int32_t)arrlen(d->channels) == b->model.config.channels;
    map = tool_calloc(arrlenu(d->channels), sizeof *map);
    unknown = prep_match(p, d->channels, map, &absent);
    for (int32_t i = 0; i < (int32_t)arrlen(d->channels) && !unknown; i++) unknown += map[i] != i;
    free(map);
    return !unknown && !absent;
}

void source_tell_statics(const source *s, const source_input *in, const bundle *b) {
    const int32_t n = b->model.config.statics;
    char names[160] = "";
    if (n == 0 || in->statics || !s->set->own) return;
    for (int32_t i = 0; i < n && i < (int32_t)arrlen(b->prep.channels) && strlen(names) < 100; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.40s", i ? ", " : "", b->prep.channels[i]);
    note("the model's static channels (%s%s) are missing: --static FILE gives them", names,
         strlen(names) >= 100 ? ", ..." : "");
}

int data_fits(const bundle *b, const dataset *d) {
    static const char *const words[] = {"classes", "a number", "several labels"};
    const mtan_config *c = &b->model.config;
    if (!channels_match(b, d)) return complain("the data's channels are not the model's"), 0;
    if (arrlen(d->labels) > 0 && c->classify != MTAN_CLASSIFY_NONE && c->task != d->task)
        return complain("the data's labels are %s, the model's %s", words[d->task], words[c->task]), 0;
    return unit_matches(&b->prep, d);
}

int unit_matches(const prep *p, const dataset *d) {
    const int timeless = arrlen(d->events) == 0 && arrlen(d->label_times) == 0; /* no times, so no unit */
    if (timeless || arrlen(p->channel) == 0 || strcmp(p->unit, d->unit) == 0) return 1;
    return complain("the data's times are %s, the model's %s", d->unit[0] ? d->unit : "numbers without a unit",
                    p->unit[0] ? p->unit : "numbers without a unit"),
           0;
}
