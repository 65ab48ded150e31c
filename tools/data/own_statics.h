/* What does not change about a record: a CSV file record,name,value, or wide, record,age,sex,...: a column per name.
 *
 * A name all of whose values are numbers is a channel of that name. Any other is a category: a channel for each value, called
 * sex=F, which is 1 for a record of that value and 0 for one of another. A record without a value has no observation of these. For
 * a model its channels say what is a category; a value that it has no channel for is 0 in all of them, and counted. */
#ifndef MTAN_TOOLS_OWN_STATICS_H
#define MTAN_TOOLS_OWN_STATICS_H

#include "own_rows.h"

typedef struct own_statics {
    char **channels; /* of the file, names in order, values of each in order: an stb_ds array; empty for a model's */
    names records;
    own_row *rows;       /* record after record; a row's channel is its place in `channels`, or in the model's */
    size_t *start;       /* (records + 1) */
    size_t unknown;      /* values of categories that the model does not have */
    char *first_unknown; /* the first of them, for a note */
    size_t used;         /* records that were asked for and found */
    char error[512];
} own_statics;

/* channels: the model's, or NULL. skip_unknown: names that it does not have are left out. 1, or 0 with error set; own_statics_free is
 * allowed after both, and of zeros. */
int own_statics_read(own_statics *s, const char *path, char **channels, int skip_unknown);
/* Adds the record's rows to an stb_ds array, their channels raised by `first`. */
void own_statics_add(own_statics *s, const char *record, int32_t first, own_row **rows);
void own_statics_note(const own_statics *s, dataset *d, const char *path);
void own_statics_free(own_statics *s);

#endif
