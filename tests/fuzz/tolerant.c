/* Fuzz target: people's own files (own_files.h) with their faults. What own_load takes has none here, and the same records and events;
 * what it refuses has at least one, unless it is the labels as a whole that it refuses. */
#include "dataset_walk.h"
#include "own_files.h"

#include "../../tools/data/own_tolerant.h"

static int same_texts(char **a, char **b) {
    if (arrlen(a) != arrlen(b)) return 0;
    for (ptrdiff_t i = 0; i < arrlen(a); i++)
        if (strcmp(a[i], b[i]) != 0) return 0;
    return 1;
}

static void compare(const dataset *a, const dataset *b) {
    PROMISE(arrlen(a->records) == arrlen(b->records));
    PROMISE(same_texts(a->channels, b->channels) && same_texts(a->classes, b->classes));
    for (size_t i = 0; i < arrlenu(a->records); i++) {
        const mtan_record x = dataset_view(a, i), y = dataset_view(b, i);
        PROMISE(strcmp(dataset_name(a, i), dataset_name(b, i)) == 0 && a->records[i].group == b->records[i].group);
        PROMISE(x.n_events == y.n_events);
        for (int32_t k = 0; k < x.n_events; k++)
            PROMISE(x.events[k].time == y.events[k].time && x.events[k].channel == y.events[k].channel &&
                    x.events[k].value == y.events[k].value);
    }
}

/* What is wrong with all labels together; and a time of a label that counts from one of a row without a label, which is not read. */
static int refuses_labels(const char *error) {
    return strstr(error, ": no label") || strstr(error, "labels are different") ||
           strstr(error, "classes: this looks") ||
           (strstr(error, "labels.csv:") && strstr(error, "too large for a float"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static own_files files;
    problems p = {NULL, 4, 0};
    dataset whole, good;
    if (!own_files_fill(&files, data, size)) return 0;
    const own_options o = {.origin = files.options.origin}; /* all that it takes */
    const int loads = own_load(&whole, files.path[EVENTS], files.path[LABELS], &o);
    const int tolerates = tolerant_load(&good, &p, files.path[EVENTS], files.path[LABELS], o.origin);
    if (loads) PROMISE(p.count == 0 && tolerates);
    else PROMISE(p.count > 0 || refuses_labels(whole.error));
    if (tolerates) dataset_walk(&good, 0);
    else PROMISE(p.count > 0);
    if (loads && whole.task == good.task) compare(&whole, &good); /* it takes numbers for classes */
    if (tolerates) dataset_free(&good);
    if (loads) dataset_free(&whole);
    problems_free(&p);
    return 0;
}
