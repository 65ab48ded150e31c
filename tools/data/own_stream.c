/* See own.h: one record at a time. The first row of a record ends the record before it, so one row waits in the CSV
 * reader between calls. */
#include "own.h"

#include <stdio.h>
#include <string.h>

#include "own_rows.h"
#include "own_statics.h"

/* Hashes of the names seen: open addressing, at most three quarters in use; 0 is free. */
typedef struct seen {
    uint64_t *slots; /* stb_ds array; its length is a power of two */
    size_t used;
} seen;

struct own_stream_state {
    own_options options;
    own_source source;
    names channels;
    seen seen;
    own_tally tally;
    own_row *rows;     /* of the record in progress */
    own_row *statics;  /* its rows without a time */
    own_statics given; /* from the file of static values */
    char *name;        /* its name, an stb_ds array; empty: no record in progress */
    char *stray;       /* the last record that was reported before any good row of it, likewise; empty: none */
    int reported;      /* the record in progress is that one */
    char trouble[512]; /* its first error, or what ended the stream; "" if there is none */
    char torn[512];    /* the first error of rows after its last good one */
    int waiting;       /* the row just read belongs to the next record */
    int ended, failed; /* the source has no more rows; the reason is in `trouble` */
};

/* ---- names seen ---- */

/* Inserts the hash; 0 if it exists already. */
static int put_hash(uint64_t *slots, uint64_t hash) {
    const size_t mask = arrlenu(slots) - 1;
    size_t i = (size_t)hash & mask;
    for (; slots[i]; i = (i + 1) & mask)
        if (slots[i] == hash) return 0;
    slots[i] = hash;
    return 1;
}

static int is_new(seen *s, const char *name, size_t length) {
    const uint64_t hash = mtan_bytes_hash(name, length);
    if (4 * (s->used + 1) > 3 * arrlenu(s->slots)) {
        uint64_t *old = s->slots;
        const size_t had = arrlenu(old), slots = had ? 2 * had : 64;
        s->slots = NULL;
        memset(arraddnptr(s->slots, slots), 0, slots * sizeof *old);
        for (size_t i = 0; i < had; i++)
            if (old[i]) put_hash(s->slots, old[i]);
        arrfree(old);
    }
    if (!put_hash(s->slots, hash ? hash : 1)) return 0;
    s->used++;
    return 1;
}

/* ---- rows ---- */

static void copy_error(char *to, const char *from) {
    if (!to[0]) memcpy(to, from, strlen(from) + 1);
}

static void set_name(char **to, const csv_field *name) {
    arrsetlen(*to, 0);
    memcpy(arraddnptr(*to, name->length + 1), name->text, name->length + 1);
}

/* Is that the name of the row just read? */
static int is_its_name(const struct own_stream_state *s, const char *name) {
    return arrlen(name) > 0 && strcmp(name, own_field(&s->source, OWN_NAME)->text) == 0;
}

/* The row just read begins a record. Returns 0 if that record came before. */
static int begin(struct own_stream_state *s) {
    const csv_field *name = own_field(&s->source, OWN_NAME);
    s->reported = is_its_name(s, s->stray);
    if (s->reported) arrsetlen(s->stray, 0);
    else if (!is_new(&s->seen, name->text, name->length))
        return own_complain(&s->source, s->source.csv.line,
                            "record \"%s\" comes back after another began: sort the file by record",
                            field_quote(name->text).text);
    set_name(&s->name, name);
    copy_error(s->trouble, s->torn);
    return 1;
}

/* The row just read has a name, but too few or too many fields. Is it of a record that is not in progress, and must be
 * reported? */
static int is_stray(struct own_stream_state *s) {
    s->torn[0] = 0;
    if (is_its_name(s, s->name)) copy_error(s->trouble, s->source.error);
    return !is_its_name(s, s->name) && !is_its_name(s, s->stray);
}

/* Puts the record of that row into `one`, unless it ended long ago: then the row alone is lost. */
static own_status report_stray(struct own_stream_state *s, dataset *one) {
    const csv_field *name = own_field(&s->source, OWN_NAME);
    copy_error(one->error, s->source.error);
    if (!is_new(&s->seen, name->text, name->length)) return OWN_BAD_RECORD;
    dataset_add_record(one, name->text, -1);
    set_name(&s->stray, name);
    return OWN_BAD_RECORD;
}

/* Adds the row just read to the record in progress. */
static void add_row(struct own_stream_state *s) {
    own_row row;
    s->torn[0] = 0;
    if (s->trouble[0]) return;
    memset(&row, 0, sizeof row);
    switch (own_read_event(&s->source, &s->channels, 1, s->options.skip_unknown, &row)) {
    case OWN_ROW_GOOD: arrput(s->rows, row); break;
    case OWN_ROW_STATIC: arrput(s->statics, row); break;
    case OWN_ROW_LEFT_OUT: break;
    default: copy_error(s->trouble, s->source.error);
    }
}

typedef enum found { FOUND_RECORD, FOUND_STRAY, FOUND_FAILURE } found;

/* Reads until a record ends, or a row of another record must be reported. */
static found read_record(struct own_stream_state *s) {
    while (!s->ended) {
        const own_outcome got = s->waiting ? OWN_ROW_GOOD : own_source_next(&s->source);
        s->waiting = 0;
        if (got == OWN_ROW_END) {
            s->ended = 1;
        } else if (got == OWN_ROW_TORN) {
            copy_error(s->torn, s->source.error);
            if (arrlen(s->name) > 0) copy_error(s->trouble, s->source.error);
        } else if (got == OWN_ROW_BAD) {
            if (is_stray(s)) return FOUND_STRAY;
        } else if (got == OWN_ROW_GOOD) {
            if (arrlen(s->name) > 0 && !is_its_name(s, s->name)) return s->waiting = 1, FOUND_RECORD;
            if (arrlen(s->name) == 0 && !begin(s)) return FOUND_FAILURE;
            add_row(s);
        } else {
            return FOUND_FAILURE;
        }
    }
    return FOUND_RECORD;
}

/* ---- records ---- */

static void clear(dataset *one, const own_options *o) {
    arrsetlen(one->records, 0), arrsetlen(one->events, 0), arrsetlen(one->names, 0), arrsetlen(one->time_texts, 0);
    arrsetcap(one->events, 1); /* never NULL: the record points into it even if it has no events */
    one->error[0] = 0;
    if (!one->channels)
        for (size_t i = 0; i < arrlenu(o->channels); i++) arrput(one->channels, tool_text(o->channels[i]));
}

/* Ends the record in progress. */
static void drop(struct own_stream_state *s) {
    arrsetlen(s->rows, 0), arrsetlen(s->statics, 0), arrsetlen(s->name, 0);
    s->trouble[0] = 0, s->reported = 0;
    if (s->ended) s->torn[0] = 0;
}

/* Moves the record in progress to `one`. */
static own_status deliver(struct own_stream_state *s, dataset *one) {
    dataset_add_record(one, s->name, -1);
    strcpy(one->unit, s->source.clock == OWN_DATES ? "hours" : "");
    own_statics_add(&s->given, s->name, 0, &s->statics);
    own_add_statics(&s->source, &s->rows, s->statics, arrlenu(s->statics));
    if (!s->trouble[0] && !own_add_events(one, &s->source, s->rows, arrlenu(s->rows), NULL, &s->tally))
        copy_error(s->trouble, s->source.error);
    copy_error(one->error, s->trouble);
    drop(s);
    if (!one->error[0]) return OWN_RECORD;
    arrsetlen(one->events, 0), arrsetlen(one->time_texts, 0), one->records[0].n_events = 0;
    return OWN_BAD_RECORD;
}

/* After the last record: reports bad rows that belong to no record, then the notes, once. */
static own_status finish(struct own_stream_state *s, dataset *one) {
    if (s->torn[0]) {
        copy_error(one->error, s->torn);
        s->torn[0] = 0;
        return OWN_BAD_RECORD;
    }
    if (one->notes) return OWN_END;
    own_note(one, &s->source, &s->tally);
    if (s->options.statics) own_statics_note(&s->given, one, s->options.statics);
    return OWN_END;
}

own_status own_stream_next(own_stream *stream, dataset *one) {
    struct own_stream_state *s = stream->state;
    found got = s->failed ? FOUND_FAILURE : read_record(s);
    clear(one, &s->options);
    for (; got == FOUND_RECORD && s->reported; got = read_record(s)) drop(s);
    if (got == FOUND_STRAY) return report_stray(s, one);
    if (got == FOUND_FAILURE && !s->failed) {
        s->failed = 1;
        s->trouble[0] = 0;
        copy_error(s->trouble, s->source.error);
    }
    if (s->failed) return copy_error(one->error, s->trouble), OWN_FAILED;
    return arrlen(s->name) > 0 ? deliver(s, one) : finish(s, one);
}

/* ---- beginning and end ---- */

int own_stream_open(own_stream *stream, const char *path, const own_options *o) {
    struct own_stream_state *s = tool_calloc(1, sizeof *s);
    memset(stream, 0, sizeof *stream);
    stream->state = s;
    s->options = *o;
    if (!names_set(&s->channels, o->channels)) copy_error(stream->error, "the model has two channels of one name");
    else if (!o->channels) copy_error(stream->error, "a stream of records needs the channels of a model");
    else if (!own_source_open(&s->source, path, OWN_EVENTS, o->origin, o->groups))
        copy_error(stream->error, s->source.error);
    else if (o->statics && !own_statics_read(&s->given, o->statics, o->channels, o->skip_unknown))
        copy_error(stream->error, s->given.error);
    s->source.keep_times = o->keep_times, s->source.codes = o->codes;
    return stream->error[0] == 0;
}

void own_stream_close(own_stream *stream) {
    struct own_stream_state *s = stream->state;
    if (!s) return;
    own_source_close(&s->source);
    names_free(&s->channels);
    own_statics_free(&s->given);
    arrfree(s->seen.slots), arrfree(s->rows), arrfree(s->statics), arrfree(s->name), arrfree(s->stray);
    free(s);
    stream->state = NULL;
}
