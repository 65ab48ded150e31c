/* Fuzz target: any bytes are either refused or a checkpoint that can be read to its end.
 *
 * The input is taken three times: as a file; as the pickle of an archive whose storages are there; and as a pickle in which
 * control characters stand for the long words that torch.save writes, so that they are no walls in the way. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/data/array.h"
#include "../../tools/mtan/torch/convert.h"
#include "../../tools/mtan/torch/torchfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORD(text)                                                                                                     \
    { text, sizeof text - 1 }
static const struct {
    const char *text; /* may hold zeros */
    size_t length;
} words[] = {
    WORD("ctorch._utils\n_rebuild_tensor_v2\n"),
    WORD("((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\4tQ"),
    WORD("K\0K\2K\2\x86K\2K\1\x86\x89}tR"),
    WORD("ctorch\nLongStorage\n"),
    WORD("ccollections\nOrderedDict\n)R"),
    WORD("cargparse\nNamespace\n)\x81"),
    WORD("ctorch._utils\n_rebuild_parameter\n"),
    WORD("X\16\0\0\0rec_state_dict"),
    WORD("X\24\0\0\0optimizer_state_dict"),
    WORD("X\24\0\0\0att.linears.0.weight"),
    WORD("X\20\0\0\0bandwidth.weight"),
    WORD("X\14\0\0\0param_groups"),
};
enum { WORDS = sizeof words / sizeof words[0], LONGEST = 64 };

static void walk(const torchfile *t) {
    mtan_tensor_view view;
    converted m;
    char error[512];
    uint8_t *scratch = NULL;
    for (size_t i = 0; i < arrlenu(t->pickle.tensors); i++) {
        torch_view(t, &t->pickle.tensors[i], &view, &scratch);
        void *copy = malloc(view.bytes + 1);
        if (copy && mtan_view_read_raw(&view, view.dtype, copy, view.count) != MTAN_OK) abort();
        free(copy);
    }
    arrfree(scratch);
    if (convert_from_torch(&m, t, NULL, error)) converted_free(&m);
    else if (!error[0]) abort();
}

static void try_file(const uint8_t *bytes, size_t n) {
    char error[512] = "";
    torchfile t;
    uint8_t *exact = malloc(n + !n); /* of exactly its size, for the address sanitizer */
    if (!exact) return;
    memcpy(exact, bytes, n);
    if (torch_open(&t, "f", exact, n, error)) {
        walk(&t);
        torch_close(&t);
    } else if (!error[0]) abort();
    free(exact);
}

/* An archive as the writer makes it, with another pickle. */
static void try_pickle(const uint8_t *bytes, size_t n) {
    const mtan_real four[4] = {1, 2, 3, 4};
    torch_writer w;
    torch_begin(&w);
    torch_put_tensor(&w, 1, 4, 1, four);
    arrsetlen(w.pickle, 0);
    if (n) memcpy(arraddnptr(w.pickle, n), bytes, n);
    uint8_t *file = torch_finish(&w);
    try_file(file, arrlenu(file));
    arrfree(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *spelled = malloc(size * LONGEST + 1), *at = spelled;
    if (!spelled) return 0;
    try_file(data, size);
    try_pickle(data, size);
    for (size_t i = 0; i < size; i++) {
        const size_t word = (size_t)data[i] - 0xe0u;
        if (word < WORDS) memcpy(at, words[word].text, words[word].length), at += words[word].length;
        else *at++ = data[i];
    }
    try_pickle(spelled, (size_t)(at - spelled));
    free(spelled);
    return 0;
}
