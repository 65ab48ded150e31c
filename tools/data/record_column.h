/* Reads an extra column of people's own labels: a value per record, such as a sex, a hospital or an age group. */
#ifndef MTAN_TOOLS_RECORD_COLUMN_H
#define MTAN_TOOLS_RECORD_COLUMN_H

typedef struct record_value {
    char *key, *value; /* a record's name and its value; the map owns both */
} record_value;

typedef struct record_column {
    record_value *values; /* an stb_ds map */
} record_column;

/* Reads the column of that name, in any case, from a file of labels (own.h). If a record has several rows, the first
 * counts; an empty field is no value. Returns 1, or 0 with error (512 bytes) set and nothing to free. */
int record_column_read(record_column *c, const char *labels, const char *column, char *error);
const char *record_column_of(const record_column *c, const char *record); /* NULL: no value */
void record_column_free(record_column *c);

#endif
