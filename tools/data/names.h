/* Numbers names 0, 1, 2, ... in order of first appearance. A name takes its bytes and about 25 more, in three blocks of
 * memory whatever the number of names. Start with a zeroed struct. */
#ifndef MTAN_TOOLS_NAMES_H
#define MTAN_TOOLS_NAMES_H

#include <stddef.h>
#include <stdint.h>

typedef struct names {
    char *bytes;   /* zero-terminated, one after the other: stb_ds arrays */
    size_t *start; /* arrlen: how many */
    struct names_slot {
        uint32_t hash;
        int32_t name; /* -1: free */
    } * slots;        /* 0 or a power of two slots, at most three quarters in use */
} names;

int32_t names_count(const names *n);
const char *names_text(const names *n, int32_t name);                /* valid until a name is added */
int32_t names_find(const names *n, const char *text, size_t length); /* -1: not found */
int32_t names_add(names *n, const char *text, size_t length); /* its number, new or existing; -1: 2^31 names already */
int names_set(names *n, char **texts);                        /* sets the names of an stb_ds array; 0: two are the
                                                               * same */
void names_free(names *n);

/* Appends copies of the names to *texts in order: numerically if all of them are integers, otherwise by their bytes.
 * Returns an stb_ds array (free it) with each name's place in that order. */
int32_t *names_sorted(const names *n, char ***texts);

#endif
