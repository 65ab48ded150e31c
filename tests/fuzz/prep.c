/* Fuzz target: preprocessing as it stands in a model file. Any metadata is refused with a reason, or gives a preprocessing that
 * keeps finite values finite and comes back to the same bits when it is written and read again.
 *
 * The input is the header of a file, in which bytes below 32 stand for keys and other words. */
#include "fuzz.h"

#include <math.h>

#include "../../tools/data/prep.h"

static const char *const words[FUZZ_WORDS] = {[1] = "{\"__metadata__\":{\"mtan.channels\":\"2\",\"mtan.classes\":\"2",
                                              [2] = "\",\"mtan.prep.kind\":\"",
                                              [3] = "\",\"mtan.prep.offset\":\"",
                                              [4] = "\",\"mtan.prep.scale\":\"",
                                              [5] = "\",\"mtan.prep.low\":\"",
                                              [6] = "\",\"mtan.prep.high\":\"",
                                              [7] = "\",\"mtan.prep.missing\":\"",
                                              [8] = "\",\"mtan.time.scale\":\"",
                                              [11] = "\",\"mtan.time.unit\":\"",
                                              [12] = "\",\"mtan.names.channels\":\"",
                                              [14] = "\",\"mtan.names.classes\":\"",
                                              [15] = "\\\"",
                                              [16] = "\\\\u00",
                                              [17] = "\"}}",
                                              [18] = "{\"__metadata__\":{\"mtan.channels\":\"",
                                              [19] = "\",\"mtan.classes\":\""};

/* A file in static memory: header and no data. */
static int open_file(mtan_file *file, uint8_t *bytes, size_t length) {
    for (int k = 0; k < 8; k++) bytes[k] = (uint8_t)((uint64_t)length >> (8 * k));
    return mtan_file_open(file, bytes, 8 + length) == MTAN_OK;
}

static void check_values(const prep *p) {
    static const mtan_real values[] = {0, -1, 1, (mtan_real)3e38, (mtan_real)-3e38, (mtan_real)1e-38};
    enum { VALUES = sizeof values / sizeof values[0] };
    for (int32_t c = 0; c < (int32_t)arrlen(p->channel) && c < 8; c++) {
        mtan_event e[VALUES];
        for (int i = 0; i < VALUES; i++) e[i].time = values[i], e[i].channel = c, e[i].value = values[i];
        const int32_t n = prep_events(p, SPLIT_TEST, e, VALUES);
        PROMISE(n >= 0 && n <= VALUES);
        for (int32_t i = 0; i < n; i++) PROMISE(isfinite(e[i].time) && isfinite(e[i].value) && e[i].channel == c);
    }
}

static int same_names(char **a, char **b) {
    if (arrlen(a) != arrlen(b)) return 0;
    for (ptrdiff_t i = 0; i < arrlen(a); i++)
        if (strcmp(a[i], b[i]) != 0) return 0;
    return 1;
}

/* By the bits; a NaN is a NaN. */
static int same_number(mtan_real a, mtan_real b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static void compare(const prep *a, const prep *b) {
    PROMISE(a->kind == b->kind && strcmp(a->unit, b->unit) == 0 && arrlen(a->channel) == arrlen(b->channel));
    PROMISE(memcmp(a->time_scale, b->time_scale, sizeof a->time_scale) == 0);
    PROMISE(same_names(a->channels, b->channels) && same_names(a->classes, b->classes));
    for (ptrdiff_t i = 0; i < arrlen(a->channel); i++) {
        const mtan_prep_channel *x = &a->channel[i], *y = &b->channel[i];
        PROMISE(x->has == y->has && same_number(x->fill, y->fill) && same_number(x->least, y->least) &&
                same_number(x->most, y->most));
        PROMISE(same_number(x->offset, y->offset) && same_number(x->scale, y->scale) && same_number(x->low, y->low) &&
                same_number(x->high, y->high) && same_number(x->missing, y->missing));
    }
}

/* The counts of channels and classes are settings of the model: they go along as they are. 0: one is longer than any number is. */
static int add_counts(mtan_file_pair **pairs, const mtan_file *file, char text[2][64]) {
    static const char *const counts[] = {"mtan.channels", "mtan.classes"};
    for (int i = 0; i < 2; i++) {
        const mtan_file_pair pair = {counts[i], text[i]};
        if (mtan_file_metadata(file, counts[i], text[i], 64, NULL) != MTAN_OK) return 0;
        arrput(*pairs, pair);
    }
    return 1;
}

static void write_and_read(const prep *p, const mtan_file *file) {
    static uint64_t memory[FUZZ_ROOM / 8];
    char text[2][64], error[256] = "";
    mtan_file_pair *pairs = NULL;
    size_t bytes = 0, made;
    mtan_file again;
    prep q;
    prep_write(p, &pairs);
    made = arrlenu(pairs);
    if (add_counts(&pairs, file, text) &&
        mtan_file_write_memory(NULL, 0, pairs, arrlenu(pairs), memory, sizeof memory, &bytes) == MTAN_OK) {
        PROMISE(mtan_file_open(&again, memory, bytes) == MTAN_OK);
        PROMISE(prep_read(&q, &again, error));
        compare(p, &q);
        prep_free(&q);
    }
    for (size_t i = 0; i < made; i++) free((void *)(uintptr_t)pairs[i].key), free((void *)(uintptr_t)pairs[i].value);
    arrfree(pairs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t spelled[FUZZ_ROOM + 8];
    const size_t length = fuzz_spell(spelled + 8, words, &data, &size);
    char error[256] = "";
    mtan_file file;
    prep p;
    if (!open_file(&file, spelled, length)) return 0;
    if (prep_read(&p, &file, error)) {
        check_values(&p);
        if (arrlen(p.channel) <= 64) write_and_read(&p, &file);
        prep_free(&p);
    } else PROMISE(error[0]);
    return 0;
}
