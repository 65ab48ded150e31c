/* See stream.h. One predictor serves all records; each record has a stream's state in a hash map. */
#define MTAN_INTERNALS
#include "stream.h"

#include "commands.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../../data/own_statics.h"
#include "far.h"
#include "rows.h"
#include "../options/settings.h"
#include "../model/shared_options.h"
#include "../run/curve_samples.h"
#include "../model/data_sets.h"

enum { USUAL_KEEP = 10000, USUAL_RECORDS = 10000 };

/* An observation of a record, as it was read. */
typedef struct held_row {
    own_time time;
    int32_t channel;
    mtan_real value;
} held_row;

typedef struct state {
    mtan_stream stream;
    void *memory;
    held_row *held;  /* the observations so far, as many as --keep says; an stb_ds array */
    own_time time;   /* of the last line, as it was read */
    own_time first;  /* of the earliest observation: the origin of relative times */
    double latest;   /* the largest time so far, from that origin, once it is known */
    double from, to; /* first and last time of the observations, once there is one */
    double shown;    /* `to` when a prediction was last printed */
    int lines, runs, was_shown, observed;
    int stale;    /* an observation in `held` came late: the stream is to be filled again before it predicts */
    int overfull; /* there were more than `held` may hold: nothing is held any more */
} state;

typedef struct state_entry {
    char *key;
    state *value;
} state_entry;

typedef struct channel_entry {
    char *key;
    int32_t value;
} channel_entry;

/* A line's text for a channel. */
typedef struct cell {
    int32_t channel;
    const char *text;
    mtan_observation raw;
    mtan_event event;
} cell;

typedef struct job {
    const stream_settings *settings;
    bundle bundle;
    source source;
    csv_reader csv;
    mtan_predictor predictor;
    void *memory;
    state_entry *states;
    channel_entry *channels;
    own_statics statics; /* of all records in the file of statics */
    own_row *given;      /* of one of those records */
    int32_t *wide;       /* the channels of a header's columns after record and time; NULL: each line names its
                          * channel */
    cell *cells;         /* of the line; stb_ds array, as the ones above and the next one */
    mtan_event *events;  /* of a record whose stream is filled again */
    size_t columns;      /* of a line that names its channel: record,time,channel,value and what a header has more */
    size_t state_bytes;
    double every;                                            /* 0: after every line; infinite: on request */
    int interpolates, dates, relative, failed, strict, lost; /* lost: the input cannot be parsed any further */
    size_t told;                                             /* lines that were wrong */
    size_t late; /* lines that came late, and whose record holds nothing any more */
    far_tally far;
    row_printer rows;
    double *p;
    mtan_real *out, *spread; /* (C), or (D) means and standard deviations */
} job;

void stream_settings_init(stream_settings *s) {
    memset(s, 0, sizeof *s);
    s->data = "-";
    s->every = "line";
    s->keep = USUAL_KEEP;
    s->records = USUAL_RECORDS;
    s->samples = -1;
}

/* ---- records ---- */

/* Reports the line as wrong. The next one may be good. */
static int bad_line(job *j, const char *what, const char *text) {
    if (complain_again(&j->told))
        complain("%s:%zu: %s%s%s", j->csv.text.name, j->csv.line, what, text ? ": " : "",
                 text ? field_quote(text).text : "");
    j->failed = 1;
    return 0;
}

/* Static values of a record stand at time 0, and do not start its clock. */
static void take_statics(job *j, state *s, const char *record) {
    const mtan_prep units = prep_view(&j->bundle.prep, SPLIT_TEST);
    arrsetlen(j->given, 0);
    own_statics_add(&j->statics, record, 0, &j->given);
    for (size_t i = 0; i < arrlenu(j->given); i++) {
        const mtan_observation raw = {0, j->given[i].channel, (double)j->given[i].value};
        mtan_event e;
        if (mtan_prep_event(&units, &raw, &e) == MTAN_OK)
            (void)mtan_stream_push(&s->stream, e.time, e.channel, e.value);
    }
}

static state *find_state(job *j, const char *record) {
    const int32_t window = j->settings->window > 0 ? j->settings->keep : 0;
    state *s = shget(j->states, record);
    if (s) return s;
    if ((int64_t)shlen(j->states) >= j->settings->records)
        return bad_line(j, "more records at once than --records allows; RECORD,end lets one go", record), NULL;
    s = tool_calloc(1, sizeof *s);
    s->memory = tool_realloc(NULL, j->state_bytes);
    if (mtan_stream_init(&s->stream, &j->predictor, window, s->memory, j->state_bytes) != MTAN_OK) {
        free(s->memory), free(s);
        return bad_line(j, "no stream for record", record), NULL;
    }
    shput(j->states, record, s);
    take_statics(j, s, record);
    return s;
}

static void free_state(state *s) {
    if (s) free(s->memory), arrfree(s->held);
    free(s);
}

static void drop_state(job *j, const char *record) {
    free_state(shget(j->states, record));
    (void)shdel(j->states, record);
}

/* ---- times ---- */

/* Are times counted from the record's first observation? */
static int counts(const job *j) {
    return j->dates || j->relative;
}

static int read_time(job *j, const char *text, own_time *time) {
    if (j->dates)
        return field_date(text, &time->ticks) || bad_line(j, "the model's times are dates, and this is none", text);
    return (field_number(text, &time->number) && fabs(time->number) <= FLT_MAX) ||
           bad_line(j, "not a time that a float can hold", text);
}

/* A time on the record's clock, as in own_moment. */
static double moment(const job *j, const state *s, own_time time) {
    if (j->dates) return (double)(time.ticks - s->first.ticks) / FIELD_TICKS_PER_HOUR;
    return j->relative ? time.number - s->first.number : time.number;
}

/* Where times are relative, the clock starts at the earliest line with a value; a request or a line without values does
 * not start it. A line that is earlier than the first one moves the origin, while the record holds what it needs to
 * fill its stream again. */
static void move_clock(const job *j, state *s, own_time time, int observes) {
    double now;
    s->lines = 1;
    s->time = time;
    if (!s->runs && counts(j) && !observes) return;
    if (!s->runs) s->first = time;
    now = moment(j, s, time);
    if (now < 0 && counts(j) && observes && !s->overfull) {
        s->latest -= now, s->from -= now, s->to -= now, s->shown -= now;
        s->first = time, s->stale = 1, now = 0;
    }
    s->latest = s->runs && s->latest > now ? s->latest : now;
    s->runs = 1;
}

/* ---- observations that come late ---- */

/* Does the line belong before, or at the place of, an observation that the record has? `mtan predict` reads them in the
 * order of time and averages repeats. */
static int comes_late(const job *j, const state *s, size_t cells) {
    const mtan_real now = (mtan_real)moment(j, s, s->time), newest = (mtan_real)s->to;
    if (!s->observed || now > newest) return 0;
    if (now < newest || s->overfull) return now < newest;
    for (size_t i = arrlenu(s->held); i-- > 0 && !((mtan_real)moment(j, s, s->held[i].time) < now);)
        for (size_t k = 0; k < cells; k++)
            if (s->held[i].channel == j->cells[k].channel) return 1;
    return 0;
}

static void hold(const job *j, state *s, size_t cells) {
    if (s->overfull) return;
    for (size_t i = 0; i < cells; i++) {
        const held_row row = {s->time, j->cells[i].channel, (mtan_real)j->cells[i].raw.value};
        arrput(s->held, row);
    }
    if (arrlen(s->held) <= j->settings->keep) return;
    arrfree(s->held);
    s->overfull = 1;
}

/* Forgets what the stream has forgotten. */
static void hold_from(const job *j, state *s, mtan_real before) {
    size_t kept = 0;
    for (size_t i = 0; i < arrlenu(s->held); i++)
        if (!(prep_time(&j->bundle.prep, SPLIT_TEST, moment(j, s, s->held[i].time)) < before))
            s->held[kept++] = s->held[i];
    if (s->held) arrsetlen(s->held, kept);
}

/* Fills the stream with what the record holds, in the order of time and with repeats averaged. */
static mtan_status fill_again(job *j, state *s, const char *record) {
    const mtan_prep units = prep_view(&j->bundle.prep, SPLIT_TEST);
    mtan_status status = mtan_stream_reset(&s->stream);
    int32_t n = (int32_t)arrlen(s->held);
    arrsetlen(j->events, (size_t)n);
    for (int32_t i = 0; i < n; i++)
        j->events[i] = (mtan_event){(mtan_real)moment(j, s, s->held[i].time), s->held[i].channel, s->held[i].value};
    n = mtan_events_merge(j->events, n);
    n = mtan_prep_scale(&units, j->events, n);
    if (status == MTAN_OK) take_statics(j, s, record);
    for (int32_t i = 0; i < n && status == MTAN_OK; i++)
        status = mtan_stream_push(&s->stream, j->events[i].time, j->events[i].channel, j->events[i].value);
    s->stale = status != MTAN_OK;
    return status;
}

/* ---- predictions ---- */

static int forget(job *j, state *s) {
    const mtan_real before = prep_time(&j->bundle.prep, SPLIT_TEST, s->latest - j->settings->window);
    const mtan_status status =
        j->settings->window > 0 && s->stream.events > 0 ? mtan_stream_expire(&s->stream, before) : MTAN_OK;
    if (status == MTAN_ERR_MEMORY)
        return bad_line(j, "the window holds more observations than --keep says: nothing is forgotten", NULL);
    if (status == MTAN_OK && j->settings->window > 0) hold_from(j, s, before);
    return status == MTAN_OK || bad_line(j, mtan_status_message(status), NULL);
}

static void put_prediction(job *j, const state *s, const char *record) {
    const mtan_config *c = &j->bundle.model.config;
    const prep *p = &j->bundle.prep;
    const field_excerpt time = own_time_text(j->dates ? OWN_DATES : OWN_NUMBERS, s->time);
    const double now = moment(j, s, s->time);
    const int outside = !s->observed || now < s->from || now > s->to;
    for (int32_t k = 0; !j->interpolates && k < mtan_config_outputs(c); k++) j->p[k] = (double)j->out[k];
    if (!j->interpolates) row_classes(&j->rows, record, c->classify == MTAN_CLASSIFY_TIME ? time.text : NULL, j->p);
    for (int32_t d = 0; j->interpolates && d < c->channels; d++)
        row_value(&j->rows, record, time.text, p->channels[d], prep_raw_value(p, d, (double)j->out[d]),
                  prep_raw_spread(p, d, (double)j->spread[d]), outside);
}

/* Does a prediction need a time? */
static int asks_time(const job *j) {
    return j->interpolates || j->bundle.model.config.classify == MTAN_CLASSIFY_TIME;
}

static int predict(job *j, state *s, const char *record) {
    const mtan_real time = prep_time(&j->bundle.prep, SPLIT_TEST, s->runs ? moment(j, s, s->time) : 0);
    mtan_record ask;
    mtan_status status;
    if (s->lines == 0 && asks_time(j)) return bad_line(j, "no line of this record has a time yet", record);
    if (!s->runs && asks_time(j))
        return bad_line(j, "times are counted from the first observation, and this record has none yet", record);
    memset(&ask, 0, sizeof ask);
    ask.times = &time, ask.n_times = 1;
    ask.id = mtan_bytes_hash(record, strlen(record));
    if (s->stale && (status = fill_again(j, s, record)) != MTAN_OK)
        return bad_line(j, mtan_status_message(status), record);
    forget(j, s);
    status = j->interpolates ? mtan_stream_interpolate(&s->stream, &ask, j->out, j->spread)
                             : mtan_stream_predict(&s->stream, &ask, j->out);
    if (status != MTAN_OK) return bad_line(j, mtan_status_message(status), record);
    put_prediction(j, s, record);
    s->shown = s->latest, s->was_shown = 1;
    return 1;
}

/* ---- lines ---- */

/* Reads the cell as an observation at the state's time. Returns 1; 0 if its value is missing; -1 if it is bad. */
static int read_cell(job *j, const state *s, const mtan_prep *units, cell *c) {
    double x;
    mtan_status status;
    if (field_missing(c->text)) return 0;
    if (!field_number(c->text, &x) || fabs(x) > FLT_MAX)
        return bad_line(j, "not a number that a float can hold", c->text), -1;
    c->raw = (mtan_observation){moment(j, s, s->time), c->channel, x};
    status = mtan_prep_event(units, &c->raw, &c->event);
    if (status == MTAN_OK) return 1;
    return status == MTAN_ERR_MISSING ? 0 : (bad_line(j, mtan_status_message(status), c->text), -1);
}

static int push_cell(job *j, state *s, const cell *c) {
    const mtan_status status = mtan_stream_push(&s->stream, c->event.time, c->event.channel, c->event.value);
    return status == MTAN_OK || bad_line(j, mtan_status_message(status), c->text);
}

/* Takes all of the line's observations or none; cells without a value do not count. */
static int observe(job *j, state *s) {
    const mtan_prep units = prep_view(&j->bundle.prep, SPLIT_TEST);
    size_t n = 0;
    for (size_t i = 0; i < arrlenu(j->cells); i++) {
        const int is = read_cell(j, s, &units, &j->cells[i]);
        if (is < 0) return 0;
        if (is) j->cells[n++] = j->cells[i];
    }
    if (n > 0 && comes_late(j, s, n)) s->overfull ? (void)j->late++ : (void)(s->stale = 1);
    for (size_t i = 0; i < n && !s->stale; i++)
        if (!push_cell(j, s, &j->cells[i])) return 0;
    hold(j, s, n);
    for (size_t i = 0; i < n; i++) {
        const double now = j->cells[i].raw.time;
        if (!s->observed++) s->from = s->to = now;
        s->from = fmin(s->from, now), s->to = fmax(s->to, now);
        far_count(&j->far, &units, &j->cells[i].raw);
    }
    return 1;
}

static int is_due(const job *j, const state *s) {
    if (!s->runs && asks_time(j)) return 0;
    return !s->was_shown ? isfinite(j->every) : s->latest - s->shown >= j->every || j->every == 0;
}

static int has_value(const job *j) {
    for (size_t i = 0; i < arrlenu(j->cells); i++)
        if (!field_missing(j->cells[i].text)) return 1;
    return 0;
}

/* Takes a line with its cells. If the line is refused, the record's state is restored; a record that began with this
 * line is removed. */
static void take_cells(job *j, const csv_field *f, int asks) {
    state *s = find_state(j, f[0].text), before;
    own_time time;
    if (!s) return;
    before = *s;
    if (read_time(j, f[1].text, &time)) {
        move_clock(j, s, time, has_value(j));
        if (asks || observe(j, s)) {
            if (asks || is_due(j, s)) predict(j, s, f[0].text);
            return;
        }
    }
    *s = before;
    if (s->lines == 0) drop_state(j, f[0].text);
}

static void add_cell(job *j, int32_t channel, const char *text) {
    const cell c = {.channel = channel, .text = text};
    arrput(j->cells, c);
}

static void take_four(job *j, const csv_field *f) {
    const int asks = f[2].length == 0 && f[3].length == 0;
    const ptrdiff_t at = shgeti(j->channels, f[2].text);
    arrsetlen(j->cells, 0);
    if (!asks && at < 0) {
        bad_line(j, "a channel that the model does not know", f[2].text);
        return;
    }
    if (!asks) add_cell(j, j->channels[at].value, f[3].text);
    take_cells(j, f, asks);
}

/* Takes a line of a wide file. A line without any value asks for a prediction. */
static void take_wide(job *j, const csv_field *f) {
    arrsetlen(j->cells, 0);
    for (size_t i = 0; i < arrlenu(j->wide); i++) add_cell(j, j->wide[i], f[2 + i].text);
    take_cells(j, f, !has_value(j));
}

static void take_two(job *j, const char *record, const char *word) {
    state *s;
    if (strcmp(word, "end") == 0) {
        drop_state(j, record);
    } else if (strcmp(word, "predict") != 0) bad_line(j, "must be RECORD,predict or RECORD,end", word);
    else if ((s = find_state(j, record))) predict(j, s, record);
}

/* Is the line a header: record,time,channel,value and columns to ignore, or record,time and the channels of a wide
 * file? */
static int take_header(job *j, const csv_field *f, size_t n) {
    if (j->csv.line != 1 || n < 3 || strcmp(f[0].text, "record") != 0 || strcmp(f[1].text, "time") != 0) return 0;
    if (n >= 4 && strcmp(f[2].text, "channel") == 0 && strcmp(f[3].text, "value") == 0) {
        if (n > 4) note("%s: the columns behind \"value\" are ignored", j->csv.text.name);
        return j->columns = n, 1;
    }
    for (size_t i = 2; i < n; i++) {
        const ptrdiff_t at = shgeti(j->channels, f[i].text);
        if (at < 0) return bad_line(j, "a channel that the model does not know", f[i].text), j->lost = 1;
        arrput(j->wide, j->channels[at].value);
    }
    return 1;
}

static void take_line(job *j) {
    const csv_field *f = j->csv.fields;
    const size_t n = arrlenu(f);
    if (take_header(j, f, n)) return;
    if (f[0].length == 0) bad_line(j, "the record has no name", NULL);
    else if (j->wide && n == 2 + arrlenu(j->wide)) take_wide(j, f);
    else if (!j->wide && n == j->columns) take_four(j, f);
    else if (n == 1 || n == 2) take_two(j, f[0].text, n == 2 ? f[1].text : "predict");
    else bad_line(j, j->wide ? "not as many fields as the header has" : "must be record,time,channel,value", NULL);
}

/* Some C libraries drop what they could not write, and then flush nothing successfully; but the stream's error flag
 * stays set. */
static int written_out(void) {
    return fflush(stdout) == 0 && !ferror(stdout);
}

/* Output is flushed before the next line is awaited. */
static int take_lines(job *j) {
    csv_status got;
    while ((got = csv_next(&j->csv)) == CSV_ROW || got == CSV_BAD) {
        if (got == CSV_ROW) take_line(j);
        else bad_line(j, j->csv.problem, NULL);
        if (j->lost) return BAD_USE;
        if (j->csv.text.at == j->csv.text.end && !written_out()) return complain("standard output: cannot write");
    }
    if (got == CSV_FAILED) return complain("%s", j->csv.text.error);
    rows_header(&j->rows);
    complain_rest(j->told);
    if (j->late)
        note("%zu lines came late to records of more than %d observations (--keep): these records' predictions may "
             "differ from those of `mtan predict`",
             j->late, (int)j->settings->keep);
    if (!written_out()) return complain("standard output: cannot write");
    const mtan_prep units = prep_view(&j->bundle.prep, SPLIT_TEST);
    return (far_tell(&j->far, &units) && j->strict) || j->failed ? BAD_RESULT : DONE;
}

/* ---- start and end ---- */

static int read_every(job *j) {
    const char *text = j->settings->every;
    if (strcmp(text, "line") == 0) return j->every = 0, 1;
    if (strcmp(text, "request") == 0) return j->every = INFINITY, 1;
    if (field_number(text, &j->every) && j->every > 0) return 1;
    return complain("--every %s: must be line, request or a time above 0", text), 0;
}

/* Names the channels of a model without channel names 0, 1, 2, ... */
static void name_channels(job *j) {
    prep *p = &j->bundle.prep;
    for (int32_t d = 0; d < j->bundle.model.config.channels; d++) {
        char number[16];
        snprintf(number, sizeof number, "%d", (int)d);
        if (d >= (int32_t)arrlen(p->channels)) arrput(p->channels, tool_text(number));
        shput(j->channels, p->channels[d], d);
    }
}

/* Opens the static values of the records that may come. */
static int open_statics(job *j) {
    const source_input in = {.statics = j->settings->statics};
    char text[512];
    source_tell_statics(&j->source, &in, &j->bundle);
    if (!in.statics) return 1;
    if (j->settings->window > 0) return complain("--window would forget what --static gives"), 0;
    if (!own_statics_read(&j->statics, in.statics, j->bundle.prep.channels, 0))
        return complain("%s", j->statics.error), 0;
    if (own_statics_strange(&j->statics, in.statics, text)) note("%s", text);
    return 1;
}

static int open_model(job *j, const options *o) {
    const char *path = j->settings->model;
    mtan_config *c = &j->bundle.model.config;
    char error[512] = "";
    if (!bundle_read(&j->bundle, path, error)) return complain("%s", error), 0;
    if (!option_backend(o, &j->bundle.model.backend)) return 0;
    if (c->architecture) return complain("%s is a %s: streams are for mTAN's models", path, model_title(c)), 0;
    if (!source_read(&j->source, &j->bundle, error)) return complain("%s: %s", path, error), 0;
    j->interpolates = c->classify == MTAN_CLASSIFY_NONE;
    if (j->settings->samples >= 0) c->predict_samples = j->settings->samples;
    else if (j->interpolates) c->predict_samples = curve_samples(c, USUAL_SAMPLES);
    j->dates = j->source.set->own && strcmp(j->bundle.prep.unit, "hours") == 0;
    j->relative = strcmp(j->source.origin, "record") == 0;
    if (j->source.has_means)
        note("series without an observation stay so: `mtan predict` gives them their mean at time 0");
    name_channels(j);
    return open_statics(j);
}

static int open_predictor(job *j) {
    const mtan_model *model = &j->bundle.model;
    const mtan_bounds bounds = {1, 0, 1};
    const size_t D = (size_t)model->config.channels, C = (size_t)mtan_config_outputs(&model->config);
    size_t bytes = 0;
    mtan_status status = mtan_stream_size(model, j->settings->window > 0 ? j->settings->keep : 0, &j->state_bytes);
    if (status == MTAN_ERR_CONFIG)
        return complain("%s: its reference points are each record's own times: use `mtan predict`", j->settings->model),
               0;
    if (status == MTAN_OK) status = mtan_predictor_size(model, &bounds, &bytes);
    if (status == MTAN_OK) j->memory = tool_realloc(NULL, bytes);
    if (status == MTAN_OK) status = mtan_predictor_init(&j->predictor, model, &bounds, j->memory, bytes);
    if (status != MTAN_OK) return complain("%s: %s", j->settings->model, mtan_status_message(status)), 0;
    j->predictor.seed = j->settings->seed;
    j->p = tool_calloc(C + 1, sizeof *j->p);
    j->out = tool_calloc(C + D, sizeof *j->out);
    j->spread = tool_calloc(D, sizeof *j->spread);
    return 1;
}

static int run(job *j, const options *o) {
    if (!read_every(j) || !open_model(j, o) || !open_predictor(j)) return BAD_USE;
    if (!csv_open(&j->csv, j->settings->data)) return complain("%s", j->csv.text.error);
    j->rows.config = &j->bundle.model.config, j->rows.classes = j->bundle.prep.classes;
    j->rows.number = j->bundle.prep.number;
    j->rows.interpolates = j->interpolates, j->rows.json = j->settings->json;
    return take_lines(j);
}

int stream_records(const stream_settings *s, const options *o) {
    job j;
    int status;
    memset(&j, 0, sizeof j);
    j.settings = s, j.columns = 4;
    j.strict = option_given(o, "strict");
    sh_new_strdup(j.states);
    sh_new_strdup(j.channels);
    status = run(&j, o);
    for (ptrdiff_t i = 0; i < shlen(j.states); i++) free_state(j.states[i].value);
    shfree(j.states), shfree(j.channels);
    own_statics_free(&j.statics);
    arrfree(j.given), arrfree(j.wide), arrfree(j.cells), arrfree(j.events);
    csv_close(&j.csv);
    free(j.memory), free(j.p), free(j.out), free(j.spread);
    far_free(&j.far);
    bundle_free(&j.bundle);
    return status;
}

int command_stream(const options *o) {
    stream_settings s;
    stream_settings_init(&s);
    s.model = o->argument[0];
    s.data = option_text(o, "data", s.data);
    s.every = option_text(o, "every", s.every);
    s.statics = option_text(o, "static", NULL);
    s.window = option_number(o, "window", 0);
    s.keep = (int32_t)option_integer(o, "keep", s.keep);
    s.records = option_integer(o, "records", s.records);
    s.samples = (int32_t)option_integer(o, "samples", s.samples);
    s.seed = (uint64_t)option_integer(o, "seed", 0);
    s.json = option_given(o, "json");
    return stream_records(&s, o);
}
