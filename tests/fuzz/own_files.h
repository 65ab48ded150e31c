/* Two files of people's own data from one input, for the targets that read them. The first byte sets the options. Up to the next
 * zero byte the input is the file of events, then that of labels; bytes below 32 stand for words. */
#ifndef MTAN_FUZZ_OWN_FILES_H
#define MTAN_FUZZ_OWN_FILES_H

#include "fuzz.h"

#include "../../tools/data/own.h"

static const char *const own_words[FUZZ_WORDS] = {[1] = "record,time,channel,value\n",
                                                  [2] = "subject_id,time,code,numeric_value\n",
                                                  [3] = "unique_id,ds,y\n",
                                                  [4] = "record,label\n",
                                                  [5] = "record,time,label\n",
                                                  [6] = "a,0,c,1\n",
                                                  [7] = "a,1.5,d,2\n",
                                                  [8] = "b,2024-05-31T23:59:00.5+02:00,c,-3e2\n",
                                                  [11] = "a,1\n",
                                                  [12] = "b,0\n",
                                                  [14] = "1700000000.5",
                                                  [15] = "2024-02-29",
                                                  [16] = "nan",
                                                  [17] = "\"\"",
                                                  [18] = "\"\n",
                                                  [19] = "\xef\xbb\xbf",
                                                  [20] = "subject_id,prediction_time,boolean_value\n",
                                                  [21] = "record,time,c,d\n",
                                                  [22] = "a,2,,1\n"};

typedef struct own_files {
    fuzz_file events, labels;
    own_options options;
    int labelled;
} own_files;

/* 0 for no input at all. */
static inline int own_files_fill(own_files *f, const uint8_t *data, size_t size) {
    static uint8_t bytes[FUZZ_ROOM];
    if (size == 0) return 0;
    memset(&f->options, 0, sizeof f->options);
    f->options.origin = (own_origin)(data[0] % 3);
    f->options.skip_unknown = data[0] >> 7;
    data++, size--;
    f->labelled = memchr(data, 0, size) != NULL;
    fuzz_fill(&f->events, "events.csv", bytes, fuzz_spell(bytes, own_words, &data, &size));
    if (f->labelled) fuzz_fill(&f->labels, "labels.csv", bytes, fuzz_spell(bytes, own_words, &data, &size));
    return 1;
}

#endif
