/* Fuzz target: the file of results. Any bytes are refused with a reason, or give a list in order without repeats, in which each
 * result is found. Bytes below 32 stand for words and lines. */
#include "fuzz.h"

#include "../../tools/data/array.h"
#include "../../tools/mtan/paper/results.h"

static const char *const words[FUZZ_WORDS] = {
    [1] = "table\trow\tdata\tpreset\tseed\tmetric\tvalue\tepochs\tbest_epoch\tseconds_per_"
          "epoch\tthreads\tbackend\tcommand\tdate\n",
    [2] =
        "1\tmtand-full\tphysionet\tcorrect\t0\tauc\t0.858\t300\t120\t8.1\t2\tavx2\tmtan train\t2026-11-16T14:05:09Z\n",
    [3] = "1\tmtand-full\tphysionet\tcorrect\t1\tauc\tnan\t-\t-\t-\t-\t-\tx\t2026-11-16T14:05:10Z\n",
    [4] = "2\tgru-d\tmimic3\tfaithful\t42\tmse\t4.2e-3\t10\t9\t0.5\t1\tscalar\tmtan train\t2026\n",
    [5] = "\t-\t-\t-\t-\t-\t",
    [6] = "<<<<<<< HEAD\n",
    [7] = "=======\n",
    [8] = "2\trow\tdata\tcorrect\t0\tmse\t",
    [11] = "\tscalar\tcommand\t2026\n"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz_file file;
    static uint8_t bytes[FUZZ_ROOM];
    char error[512] = "";
    result *list = NULL;
    fuzz_fill(&file, "results.tsv", bytes, fuzz_spell(bytes, words, &data, &size));
    if (results_read(&list, file.path, error)) {
        for (size_t i = 0; i < arrlenu(list); i++) {
            const result *r = &list[i];
            PROMISE(i == 0 || r->table >= r[-1].table);
            PROMISE(results_find(list, r->table, r->row, r->data, r->preset, r->seed, r->metric) == r);
        }
        arrfree(list);
    } else PROMISE(error[0] && !list);
    return 0;
}
