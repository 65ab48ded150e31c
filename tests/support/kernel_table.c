/* See kernel_table.h. */
#include "kernel_table.h"

#include <string.h>

typedef void any_function(void);

typedef struct {
    const char *name;
    any_function *function;
} entry;

enum {
#define X(result, name, arguments) KERNEL_##name,
    MTAN_KERNELS(X, X)
#undef X
        KERNELS
};

static void entries_of(entry *list, const mtan_backend *b) {
#define X(result, kernel, arguments)                                                                                   \
    list[KERNEL_##kernel].name = #kernel, list[KERNEL_##kernel].function = (any_function *)b->kernel;
    MTAN_KERNELS(X, X)
#undef X
}

const char *kernel_missing(const mtan_backend *b) {
    entry list[KERNELS];
    entries_of(list, b);
    for (int i = 0; i < KERNELS; i++)
        if (!list[i].function) return list[i].name;
    return NULL;
}

const char *kernel_twin(const mtan_backend *b) {
    entry list[KERNELS];
    entries_of(list, b);
    for (int i = 0; i < KERNELS; i++)
        for (int k = 0; k < i; k++)
            if (list[i].function == list[k].function) return list[i].name;
    return NULL;
}
