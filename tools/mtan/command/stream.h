/* mtan stream: reads observations of many records line by line, in any order and mixed, and writes predictions line by
 * line.
 *
 *     record,time,channel,value      an observation; a row whose value is missing (field.h) is ignored
 *     record,time,,                  asks for a prediction, of that time where the model predicts times
 *     record                         asks for a prediction of the time of the record's last line
 *     record,predict                 the same
 *     record,end                     ends the record: its memory is freed, and its name may start anew
 *
 * A first row record,time,channel,value is skipped. A first row record,time,hr,bp,... starts the wide form: each line
 * then has a cell for each of these channels. An empty cell is not observed, and a line without any value asks for a
 * prediction. A line that cannot be used is reported with its number and changes nothing; the exit status is then 1.
 * Predictions equal those of `mtan predict` on the observations so far, in whatever order they came. Memory:
 * mtan_stream_size for each record, and 16 bytes for each of its observations, of at most `keep`. A record with more
 * holds none of them: a line that comes late then counts as the library's stream has it (mtan.h), and a second one of
 * the same time and channel counts separately.
 *
 * Times are numbers in the data's unit, or dates if the model was trained on dates, and are printed as they were read.
 * If the model's times start at the record's first observation, they start here at the earliest line with a value that
 * has arrived; until then there is no prediction of a time. */
#ifndef MTAN_TOOLS_STREAM_H
#define MTAN_TOOLS_STREAM_H

#include <stdint.h>

#include "../options/options.h"

typedef struct stream_settings {
    const char *model, *data; /* data "-": standard input */
    const char *statics;      /* a file of static values per record (own_statics.h); NULL: none */
    const char *every;        /* predict per "line", per "request", or each time a record advances by this many units of
                        * time */
    double window;            /* drops observations older than this before the record's latest time; 0: keeps all */
    int32_t keep;             /* most observations that a record holds, for the window and for lines that come late */
    int64_t records;          /* most records at once */
    int32_t samples;          /* of the latent state; negative: the model's own number */
    uint64_t seed;
    int json;
} stream_settings;

void stream_settings_init(stream_settings *s);
/* Returns the exit status. o chooses the backend. */
int stream_records(const stream_settings *s, const options *o);

#endif
