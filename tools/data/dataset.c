/* See dataset.h. */
#define MTAN_INTERNALS
#include "dataset.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *dataset_name(const dataset *d, size_t record) {
    return d->names + d->records[record].name;
}

void dataset_add_record(dataset *d, const char *name, int32_t group) {
    dataset_record r;
    const size_t bytes = strlen(name) + 1;
    memset(&r, 0, sizeof r);
    r.event0 = arrlenu(d->events);
    r.truth0 = arrlenu(d->truth);
    r.label0 = arrlenu(d->labels);
    r.name = arrlenu(d->names);
    r.time_text = arrlenu(d->time_texts);
    r.group = group;
    memcpy(arraddnptr(d->names, bytes), name, bytes);
    arrput(d->records, r);
}

void dataset_add_event(dataset *d, mtan_real time, int32_t channel, mtan_real value) {
    const mtan_event e = {time, channel, value};
    arrput(d->events, e);
    arrlast(d->records).n_events++;
}

void dataset_add_label(dataset *d, int32_t label) {
    arrput(d->labels, label);
    arrlast(d->records).n_labels++;
}

void dataset_add_time_text(dataset *d, const char *text) {
    const size_t bytes = strlen(text) + 1;
    memcpy(arraddnptr(d->time_texts, bytes), text, bytes);
}

mtan_event *dataset_events(const dataset *d, const dataset_record *r) {
    return r->n_events > 0 ? d->events + r->event0 : NULL;
}

mtan_event *dataset_truth(const dataset *d, const dataset_record *r) {
    return r->n_truth > 0 ? d->truth + r->truth0 : NULL;
}

mtan_real *dataset_numbers(const dataset *d, const dataset_record *r) {
    return d->numbers ? d->numbers + r->label0 * arrlenu(d->classes) : NULL;
}

int dataset_labelled(const dataset *d, const dataset_record *r) {
    for (size_t i = r->label0; i < r->label0 + (size_t)r->n_labels; i++)
        if (d->labels[i] != MTAN_UNLABELED) return 1;
    return 0;
}

/* ---- normal form ---- */

size_t dataset_end_record(dataset *d) {
    dataset_record *r = &arrlast(d->records);
    mtan_event *e = dataset_events(d, r);
    const int32_t n = r->n_events, kept = mtan_events_merge(e, n);
    r->n_times = kept > 0;
    for (int32_t i = 1; i < kept; i++) r->n_times += e[i].time > e[i - 1].time;
    r->n_events = kept;
    arrsetlen(d->events, r->event0 + (size_t)kept);
    return (size_t)(n - kept);
}

/* ---- words ---- */

void dataset_note(dataset *d, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    arrput(d->notes, tool_text(text));
}

int dataset_fail(dataset *d, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(d->error, sizeof d->error, format, arguments);
    va_end(arguments);
    return 0;
}

/* ---- the library's form ---- */

mtan_record dataset_view(const dataset *d, size_t record) {
    const dataset_record *r = &d->records[record];
    const char *name = dataset_name(d, record);
    mtan_record view;
    memset(&view, 0, sizeof view);
    view.events = dataset_events(d, r);
    view.n_events = r->n_events;
    view.id = mtan_bytes_hash(name, strlen(name));
    if (r->n_labels > 0) {
        view.labels = d->labels + r->label0;
        view.numbers = dataset_numbers(d, r);
        if (d->label_times) view.times = d->label_times + r->label0, view.n_times = r->n_labels;
    }
    return view;
}

mtan_bounds dataset_bounds(const dataset *d) {
    mtan_bounds b = {0, 1, 1};
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        const dataset_record *r = &d->records[i];
        const int32_t times = d->label_times && r->n_labels > r->n_times ? r->n_labels : r->n_times;
        if (r->n_events > b.events) b.events = r->n_events;
        if (times > b.times) b.times = times;
    }
    return b;
}

static void free_texts(char **texts) {
    for (size_t i = 0; i < arrlenu(texts); i++) free(texts[i]);
    arrfree(texts);
}

void dataset_free(dataset *d) {
    arrfree(d->records), arrfree(d->events), arrfree(d->truth), arrfree(d->labels), arrfree(d->label_times);
    arrfree(d->numbers);
    arrfree(d->names), arrfree(d->time_texts);
    free_texts(d->channels), free_texts(d->classes), free_texts(d->notes);
    d->channels = d->classes = d->notes = NULL;
}
