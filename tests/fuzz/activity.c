/* Fuzz target: Human Activity. Any bytes are refused with a reason, or give a data set that is in order.
 *
 * The first byte: 1: as published. In the rest bytes below 32 stand for words, or for rows whose clock goes on: a record has fifty. */
#include "dataset_walk.h"

#include "../../tools/data/activity.h"

enum { ROW = 1, ROWS = 2, BACK = 3, MANY = 51 };

static const char *const words[FUZZ_WORDS] = {[4] = ",010-000-024-033,",
                                              [5] = ",020-000-032-221,",
                                              [6] = ",27.05.2009 14:03:25:127,",
                                              [7] = ",walking\n",
                                              [8] = ",standing up from sitting on the ground\n",
                                              [11] = ",sitting down\n",
                                              [12] = "633790226051280329",
                                              [14] = "B02",
                                              [15] = "0.5,1.5,2.5"};

/* n rows of the sequence A01, a tick apart. */
static size_t put_rows(uint8_t *out, size_t at, int n, double *clock) {
    char row[128];
    for (int i = 0; i < n; i++, *clock += 1e5) {
        const int length = snprintf(row, sizeof row, "A01,010-000-024-033,%.0f,,1,2,%d,walking\n", *clock, i);
        at = fuzz_put(out, at, row, (size_t)length);
    }
    return at;
}

static size_t spell(uint8_t *out, const uint8_t *data, size_t size) {
    double clock = 1e9;
    size_t at = 0;
    for (size_t i = 0; i < size; i++) {
        const char *word = data[i] < FUZZ_WORDS ? words[data[i]] : NULL;
        if (data[i] == ROW) at = put_rows(out, at, 1, &clock);
        else if (data[i] == ROWS) at = put_rows(out, at, MANY, &clock);
        else if (data[i] == BACK) clock -= 3e5;
        else at = word ? fuzz_put(out, at, word, strlen(word)) : fuzz_put(out, at, &data[i], 1);
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz_file file;
    static uint8_t bytes[FUZZ_ROOM];
    dataset d;
    if (size == 0) return 0;
    fuzz_fill(&file, "ConfLongDemo_JSI.txt", bytes, spell(bytes, data + 1, size - 1));
    if (activity_load(&d, file.path, data[0] & 1 ? MTAN_FAITHFUL : MTAN_CORRECT)) {
        PROMISE(arrlenu(d.records) > 0);
        dataset_walk(&d, 1);
        dataset_free(&d);
    } else PROMISE(d.error[0]);
    return 0;
}
