/* Fuzz target: people's own files. Any bytes are refused or loaded; and what loads as a whole gives the same, record by
 * record, as a stream, unless the stream asks for a sorted file.
 *
 * The first byte sets the options. Up to the next zero byte the input is the file of events, then that of labels.
 * Control characters stand for headers and other words, so that long names are no walls in the way. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/data/own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const words[] = {"record,time,channel,value\n",
                                    "subject_id,time,code,numeric_value\n",
                                    "unique_id,ds,y\n",
                                    "record,label\n",
                                    "record,time,label\n",
                                    "a,0,c,1\n",
                                    "a,1.5,d,2\n",
                                    "b,2024-05-31T23:59:00.5+02:00,c,-3e2\n",
                                    NULL, /* tab, line feed: themselves */
                                    NULL,
                                    "a,1\n",
                                    "b,0\n",
                                    NULL, /* carriage return */
                                    "1700000000.5",
                                    "2024-02-29",
                                    "nan",
                                    "\"\"",
                                    "\"\n",
                                    "\xef\xbb\xbf",
                                    "subject_id,prediction_time,boolean_value\n"};
enum { WORDS = sizeof words / sizeof words[0] };

static char events_path[] = "/tmp/mtan-fuzz-events-XXXXXX", labels_path[] = "/tmp/mtan-fuzz-labels-XXXXXX";

static void remove_files(void) {
    remove(events_path), remove(labels_path);
}

static void make_files(void) {
    const int a = mkstemp(events_path), b = mkstemp(labels_path);
    if (a < 0 || b < 0) perror("mtan: /tmp"), exit(2);
    close(a), close(b);
    atexit(remove_files);
}

/* Writes the bytes up to the first zero, with the words they stand for. Returns how many it took. */
static size_t write_file(const char *path, const uint8_t *data, size_t size) {
    size_t i = 0;
    FILE *f = fopen(path, "wb");
    if (!f) perror(path), exit(2);
    for (; i < size && data[i] != 0; i++) {
        if (data[i] - 1 < WORDS && words[data[i] - 1]) fputs(words[data[i] - 1], f);
        else fputc(data[i] == 127 ? 0 : data[i], f);
    }
    if (fclose(f) != 0) perror(path), exit(2);
    return i;
}

/* Is the only record of `one` the same as record i of the whole? By the fields: there may be padding between them. */
static int same_record(const dataset *whole, size_t i, const dataset *one) {
    const dataset_record *a = &whole->records[i], *b = &one->records[0];
    if (a->n_events != b->n_events || a->n_times != b->n_times) return 0;
    if (strcmp(dataset_name(whole, i), dataset_name(one, 0)) != 0) return 0;
    for (int32_t k = 0; k < a->n_events; k++) {
        const mtan_event x = whole->events[a->event0 + (size_t)k], y = one->events[k];
        if (x.time != y.time || x.channel != y.channel || x.value != y.value) return 0;
    }
    return 1;
}

static void compare_stream(const dataset *whole, own_options o) {
    own_stream s;
    dataset one;
    own_status got;
    size_t n = 0, same = 0;
    memset(&one, 0, sizeof one);
    o.channels = whole->channels;
    if (!own_stream_open(&s, events_path, &o)) abort();
    for (; (got = own_stream_next(&s, &one)) == OWN_RECORD; n++)
        same += n < arrlenu(whole->records) && same_record(whole, n, &one);
    if (got == OWN_END ? n != arrlenu(whole->records) || same != n : !strstr(one.error, "comes back")) abort();
    dataset_free(&one);
    own_stream_close(&s);
}

/* With channels that the file hardly has, so that records go bad. Every call has to move on. */
static void run_stream(own_options o, size_t most) {
    own_stream s;
    dataset one;
    own_status got = OWN_RECORD;
    memset(&one, 0, sizeof one);
    o.channels = NULL;
    arrput(o.channels, "c");
    if (own_stream_open(&s, events_path, &o))
        while (got == OWN_RECORD || got == OWN_BAD_RECORD) {
            if (most-- == 0) abort();
            got = own_stream_next(&s, &one);
            if ((got == OWN_RECORD) == (one.error[0] != 0) && got != OWN_END) abort();
        }
    dataset_free(&one);
    own_stream_close(&s);
    arrfree(o.channels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int ready;
    own_options o;
    dataset d;
    size_t at = 1;
    if (!ready) make_files(), ready = 1;
    if (size == 0) return 0;
    memset(&o, 0, sizeof o);
    o.origin = (own_origin)(data[0] % 3);
    o.skip_unknown = data[0] >> 7;
    at += write_file(events_path, data + at, size - at);
    if (at < size) write_file(labels_path, data + at + 1, size - at - 1);
    if (own_load(&d, events_path, at < size ? labels_path : NULL, &o)) {
        for (size_t i = 0; i < arrlenu(d.records); i++) (void)dataset_view(&d, i);
        dataset_free(&d);
    }
    if (own_load(&d, events_path, NULL, &o)) {
        if (d.channels) compare_stream(&d, o);
        dataset_free(&d);
    }
    run_stream(o, 40 * size + 2);
    return 0;
}
