/* The files of people's own data from one input, for the targets that read them: events, labels, what does not change, and the parts
 * of a split, each up to the next zero byte; a file that is not begun is not given. Bytes below 32 stand for words. The first byte
 * sets the options: the origin (15), what labels are (48), groups in a column g (64), unknown channels are left out (128). */
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
                                                  [22] = "a,2,,1\n",
                                                  [23] = "record,name,value\n",
                                                  [24] = "record,age,sex\n",
                                                  [25] = "record,part\n",
                                                  [26] = "a,train\n",
                                                  [27] = "b,test\n",
                                                  [28] = "a,sex,F\n",
                                                  [29] = "b,sex,M\n",
                                                  [30] = "record,time,channel,value,g\n",
                                                  [31] = "record,label,g\n"};

typedef enum own_file { EVENTS, LABELS, STATICS, PARTS, OWN_FILES } own_file;

typedef struct own_files {
    fuzz_file file[OWN_FILES];
    const char *path[OWN_FILES]; /* NULL: not given */
    own_options options;
} own_files;

static inline void own_files_options(own_options *o, uint8_t bits) {
    memset(o, 0, sizeof *o);
    o->origin = (own_origin)((bits & 15) % 3);
    o->task = (own_task)(bits >> 4 & 3);
    o->groups = bits >> 6 & 1 ? "g" : NULL;
    o->skip_unknown = bits >> 7;
}

/* 0 for no input at all. */
static inline int own_files_fill(own_files *f, const uint8_t *data, size_t size) {
    static const char *const names[OWN_FILES] = {"events.csv", "labels.csv", "statics.csv", "parts.csv"};
    static uint8_t bytes[FUZZ_ROOM];
    if (size == 0) return 0;
    own_files_options(&f->options, *data++);
    size--;
    for (int i = 0, given = 1; i < OWN_FILES; i++) {
        f->path[i] = NULL;
        if (!given) continue;
        given = memchr(data, 0, size) != NULL;
        fuzz_fill(&f->file[i], names[i], bytes, fuzz_spell(bytes, own_words, &data, &size));
        f->path[i] = f->file[i].path;
    }
    f->options.statics = f->path[STATICS];
    return 1;
}

#endif
