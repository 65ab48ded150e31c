/* Fuzz target: people's own files (own_files.h). Any bytes are refused or loaded; a split that is taken gives each record a part; and
 * what loads as a whole gives the same, record by record, as a stream, unless the stream asks for a sorted file. */
#include "dataset_walk.h"
#include "own_files.h"

static own_files files;

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
    PROMISE(own_stream_open(&s, files.path[EVENTS], &o));
    for (; (got = own_stream_next(&s, &one)) == OWN_RECORD; n++)
        same += n < arrlenu(whole->records) && same_record(whole, n, &one);
    if (got == OWN_END) PROMISE(n == arrlenu(whole->records) && same == n);
    else PROMISE(strstr(one.error, "comes back"));
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
    if (own_stream_open(&s, files.path[EVENTS], &o))
        while (got == OWN_RECORD || got == OWN_BAD_RECORD) {
            PROMISE(most-- > 0);
            got = own_stream_next(&s, &one);
            PROMISE(got == OWN_END || (got == OWN_RECORD) == !one.error[0]);
        }
    dataset_free(&one);
    own_stream_close(&s);
    arrfree(o.channels);
}

static void read_parts(dataset *d) {
    if (!own_read_parts(d, files.path[PARTS])) {
        PROMISE(d->error[0]);
        return;
    }
    for (size_t i = 0; i < arrlenu(d->records); i++) PROMISE(d->records[i].part > 0);
}

static void check_numbers(const dataset *d) {
    const size_t n = d->task == MTAN_TASK_CLASSES ? 0 : arrlenu(d->labels) * arrlenu(d->classes);
    PROMISE(arrlenu(d->numbers) == n);
    for (size_t i = 0; i < n; i++) PROMISE(!isinf(d->numbers[i])); /* NaN: not known */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const own_options *o = &files.options;
    dataset d;
    if (!own_files_fill(&files, data, size)) return 0;
    if (own_load(&d, files.path[EVENTS], files.path[LABELS], o)) {
        dataset_walk(&d, 0);
        check_numbers(&d);
        if (files.path[PARTS]) read_parts(&d);
        dataset_free(&d);
    } else PROMISE(d.error[0]);
    if (own_load(&d, files.path[EVENTS], NULL, o)) {
        if (d.channels) compare_stream(&d, *o);
        dataset_free(&d);
    }
    run_stream(*o, 40 * size + 2);
    return 0;
}
