/* Static values of records: a CSV file record,name,value, or wide, record,age,sex,... with a column per name.
 *
 * A name whose values are all numbers is a channel of that name. Any other name is a category: it has a channel for
 * each value, called sex=F, which is 1 for records with that value and 0 for records with another. A record without a
 * value has no observation of these channels. For a model, the model's channels decide what is a category; a value
 * without a channel is 0 in all channels of its category, and is counted. */
#ifndef MTAN_TOOLS_OWN_STATICS_H
#define MTAN_TOOLS_OWN_STATICS_H

#include "own_rows.h"

typedef struct own_statics {
    char **channels; /* of the file, sorted by name, then by value: an stb_ds array; empty if a model's channels are
                      * used */
    names records;
    own_row *rows;       /* grouped by record; a row's channel is its index in `channels`, or in the model's */
    size_t *start;       /* (records + 1) */
    size_t unknown;      /* values of categories that the model does not have */
    char *first_unknown; /* the first of them, for a note */
    size_t used;         /* records that were looked up and found */
    char error[512];
} own_statics;

/* channels: the model's, or NULL. skip_unknown: names that the model does not have are left out. Returns 1, or 0 with
 * error set; own_statics_free is allowed after both, and on a zeroed struct. */
int own_statics_read(own_statics *s, const char *path, char **channels, int skip_unknown);
/* Adds the record's rows to an stb_ds array, with `first` added to their channels. */
void own_statics_add(own_statics *s, const char *record, int32_t first, own_row **rows);
/* Says in a sentence which values the model does not know; 0: it knows all. */
int own_statics_strange(const own_statics *s, const char *path, char text[512]);
/* Adds that sentence to the data set's notes, and one if no record was looked up. */
void own_statics_note(const own_statics *s, dataset *d, const char *path);
void own_statics_free(own_statics *s);

#endif
