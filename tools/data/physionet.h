/* Records of the PhysioNet/CinC Challenge 2012 as lists of events, parsed as the published code parses them:
 * time is hours + minutes / 60, rounded to a multiple of 0.016 h (half to even); a parameter repeated at one time is
 * averaged; 41 parameters, others (RecordID) are skipped; -1 codes stay values. Records come sorted by id.
 *
 * The archive as published (.tar.gz) is read as a stream, through zlib where the build found it (MTAN_ZLIB); folders of
 * unpacked files need nothing. What is read is hostile until checked: an error names file and line, nothing is skipped
 * in silence but names that are not <digits>.txt.
 *
 *     physionet data;
 *     if (!physionet_read(&data, "physionet2012")) return fprintf(stderr, "%s\n", data.error), 2;
 *     physionet_normalise(&data);
 *     ... data.records[i].events ...
 *     physionet_free(&data);
 */
#ifndef MTAN_TOOLS_PHYSIONET_H
#define MTAN_TOOLS_PHYSIONET_H

#include <stddef.h>
#include <stdint.h>

#include "../../mtan.h"

enum { PHYSIONET_CHANNELS = 41 };

typedef struct physionet_record {
    mtan_event *events; /* ascending in time, then in channel; hours and raw values until normalised */
    int32_t n_events;
    int32_t n_times; /* distinct times */
    int32_t id;      /* the file's name */
} physionet_record;

typedef struct physionet {
    physionet_record *records; /* (n), ascending in id */
    size_t n;
    mtan_event *events; /* of all records; they point into it */
    char error[512];    /* "mtan: file:line: what is wrong" after a failure */
} physionet;

/* Name of a channel, as in the files; NULL past the last. */
const char *physionet_channel(int32_t channel);

/* Reads all records of `path`: a folder that holds set-a.tar.gz, an archive (.tar.gz), or a folder of unpacked .txt
 * files. 1 for success; 0 otherwise, with data->error set and nothing to free. */
int physionet_read(physionet *data, const char *path);

/* Hours become parts of 48 hours, values (x - min) / max over the records read, per channel (a max of 0 counts as 1). */
void physionet_normalise(physionet *data);

/* Records of the same statistics made from nothing, the same for the same arguments, normalised: times in [0, 1], values
 * uniform in [0, 1). channels and density are 41 and 1 for PhysioNet's statistics; a density of 2 doubles the cells of
 * the same times. 1 for success. */
int physionet_generate(physionet *data, size_t n, int32_t channels, double density);

void physionet_free(physionet *data);

/* Averages and extremes over the records. */
typedef struct physionet_summary {
    double times, cells, never;        /* means per record: time stamps, cells, channels never observed */
    double times_spread, cells_spread; /* standard deviations */
    int32_t most_times, most_cells;
    size_t records, only_start; /* records; those whose only time is the first */
} physionet_summary;
physionet_summary physionet_summarise(const physionet *data);

#endif
