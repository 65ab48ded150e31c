/* mtan stream: observations of many records line by line, in any order and mixed, predictions line by line.
 *
 *     record,time,channel,value      an observation; a value that is missing (field.h) is none
 *     record,time,,                  asks for a prediction, of that time where the model predicts times
 *     record                         asks for one, of the time of the record's last line
 *     record,predict                 the same
 *     record,end                     lets the record go: its memory is free, and its name starts anew
 *
 * A first row record,time,channel,value is passed over. A first row record,time,hr,bp,... makes lines of a cell for each of these
 * channels, of which an empty one is not observed; without any value such a line asks. A line that cannot be used is reported with its number and changes
 * nothing; the exit status is then 1. Predictions are those of `mtan predict` on the observations so far, but for one thing:
 * rows of one record, time and channel are averaged there and count separately here. Memory: mtan_stream_size for each
 * record, whatever the number of observations.
 *
 * Times are numbers in the data's unit, or dates where the model was trained on dates, and are printed as they came in. Where
 * the model's times start at the record's first observation, they start here at the first line with a value to arrive; until
 * then there is no prediction of a time. */
#ifndef MTAN_TOOLS_STREAM_H
#define MTAN_TOOLS_STREAM_H

#include <stdint.h>

#include "options.h"

typedef struct stream_settings {
    const char *model, *data; /* data "-": standard input */
    const char *statics;      /* a file of what does not change in a record (own_statics.h); NULL: none */
    const char *every; /* "line"; "request"; or a time in the data's unit: when a record has moved on by that much */
    double window;     /* forget what is older than this before the record's latest time; 0: nothing */
    int32_t keep;      /* observations kept for that, per record */
    int64_t records;   /* most at once */
    int32_t samples;   /* of the latent state; negative: the model's own number */
    uint64_t seed;
    int json;
} stream_settings;

void stream_settings_init(stream_settings *s);
/* Returns the exit status. o chooses the backend. */
int stream_records(const stream_settings *s, const options *o);

#endif
