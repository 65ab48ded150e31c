/* Preprocessing: fitted on the training records, kept in the model file as text. The library reads and applies it
 * (mtan.h, Preparation); these functions fit it, write it, and pass whole data sets to the library.
 *
 * faithful  x -> (x - min) / max over ALL records (Q34, Q35), -1 codes kept (Q36), times divided by the largest time of
 *           each part of the split (Q37)
 * correct   from the training records alone: x clipped to their 0.1 and 99.9 percentiles, then z-scores; or, for the
 *           paper's MSE tables, (x - min) / (max - min), not clipped; -1 codes of static descriptors missing; one time
 *           scale for all
 * none      values and times unchanged (a converted model)
 *
 * Nothing here makes a value NaN or infinite: a channel that training never saw has offset 0 and scale 1, a channel
 * that is constant there has scale 1, and a result beyond mtan_real becomes its largest number. A NaN in the input
 * stays NaN, for the library to refuse. */
#ifndef MTAN_TOOLS_PREP_H
#define MTAN_TOOLS_PREP_H

#include "dataset.h"
#include "split.h"

typedef enum prep_kind {
    PREP_NONE,
    PREP_PUBLISHED,
    PREP_MINMAX,
    PREP_ZSCORE, /* clipped, unless clipping would make the channel constant (a flag that is rarely set) */
    PREP_TIMES,  /* values unchanged, times as with PREP_PUBLISHED: Activity as published (Q41) */
    PREP_KINDS
} prep_kind;

typedef struct prep {
    prep_kind kind;
    mtan_prep_channel *channel;     /* (D) stb_ds array */
    double time_scale[SPLIT_PARTS]; /* all the same, except with PREP_PUBLISHED and PREP_TIMES */
    double first, last;             /* of the training records' times; first > last: not known */
    int from_first;                 /* times count from the record's first observation */
    char unit[24];
    mtan_prep_unit *number;     /* stb_ds array: scale of labels that are a number; empty: they are classes */
    char **channels, **classes; /* names, stb_ds arrays of malloc'd text; empty: a model without names */
    int32_t positive;           /* the class whose probability is reported, of two; -1: the second */
    int32_t statics;            /* of the model in a file: so many channels do not change within a record */
} prep;

/* "none", "published", "minmax", "zscore", "times", as in model files. */
const char *prep_kind_name(prep_kind kind);
/* A channel that leaves values unchanged. */
mtan_prep_channel prep_untouched(void);
/* In the library's form, for records of that part. It points into p. */
mtan_prep prep_view(const prep *p, int part);

/* Fits on the training part (PREP_PUBLISHED: min and max on all records). time_scale > 0 sets the scale of all parts;
 * otherwise it is the largest time of events and labels (PREP_NONE: 1). `missing` (D) may be NULL; NaN: the channel has
 * no such code. PREP_PUBLISHED honours it as well, though the published code has no codes. */
void prep_fit(prep *p, const dataset *d, const split *s, prep_kind kind, double time_scale, const mtan_real *missing);

/* Converts n raw events of a part to model units, in place; returns how many remain, without codes of missing values.
 * Events of a channel that the model does not have stay unchanged. */
int32_t prep_events(const prep *p, int part, mtan_event *events, int32_t n);
/* Converts the whole data set, truth and label times too. s NULL: every record counts as one of the test part. */
void prep_apply(const prep *p, dataset *d, const split *s);
mtan_real prep_time(const prep *p, int part, double time);            /* converts one time, as prep_events does */
double prep_raw_time(const prep *p, int part, double time);           /* and back */
double prep_raw_value(const prep *p, int32_t channel, double value);  /* back to the data's unit */
double prep_raw_spread(const prep *p, int32_t channel, double value); /* a standard deviation back to the data's unit */

/* As text: prep_write appends pairs for mtan_model_save (keys and values are malloc'd) to the stb_ds array, and
 * prep_read reads them back from a file, to the same bits. mtan.h lists the keys at mtan_prep_open. Names must be UTF-8,
 * or mtan_model_save refuses them.
 *
 * prep_read returns 1, or 0 with error (256 bytes) set and nothing to free. A file without mtan.prep.kind is a model
 * without preprocessing: PREP_NONE, with whatever names there are; a prep without channels is written in that form. */
void prep_write(const prep *p, mtan_file_pair **pairs);
int prep_read(prep *p, const mtan_file *file, char *error);

/* Maps the data's channels to the model's by name: (data channels), -1 for none. The channels of a model without names
 * are called 0, 1, 2, ...; leading zeros of a number are ignored. Returns how many of the data's channels the model
 * does not know; *absent is how many of the model's channels the data lack. */
int32_t prep_match(const prep *p, char **channels, int32_t *map, int32_t *absent);
void prep_free(prep *p);

#endif
