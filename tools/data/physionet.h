/* Records of the PhysioNet/CinC Challenge 2012, parsed as in the published code, to the bit of its float32. Time is
 * hours + minutes / 60, rounded to a multiple of 0.016 h (half to even; Q49). A parameter repeated in consecutive rows
 * of the same time is averaged, as a running mean. There are 41 parameters (Q46); others (RecordID) are skipped; -1
 * codes stay values (Q36). Records are sorted by id (Q33).
 *
 * Input is hostile until checked: an error names file and line, and nothing is skipped silently except names that are
 * not <digits>.txt. A time that comes back later in a file makes separate events, as in the published code. */
#ifndef MTAN_TOOLS_PHYSIONET_H
#define MTAN_TOOLS_PHYSIONET_H

#include "dataset.h"

enum { PHYSIONET_CHANNELS = 41 };

/* Reads set-a ('a'), set-b ('b'), set-a and then set-b ('2'), or whichever of the two exist ('1'), from a folder that
 * holds set-X.tar.gz, set-X.tar or the unpacked set-X. An archive (.tar.gz, .tar) or a folder of .txt files is one set,
 * whichever was asked for. Labels come from Outcomes-a.txt and Outcomes-b.txt next to the sets or the .txt files, or
 * one folder above; a record without an outcome has no label. Like every loader, returns 1, or 0 with d->error set and
 * nothing to free. */
int physionet_load(dataset *d, const char *path, int which);

/* Generates records with PhysioNet's statistics, the same for the same arguments, normalised: times in [0, 1], values
 * uniform in [0, 1). channels and density are 41 and 1 for PhysioNet's statistics; a density of 2 doubles the cells at
 * the same times. */
void physionet_generate(dataset *d, size_t n, int32_t channels, double density);

/* Averages and extremes over the records. */
typedef struct physionet_summary {
    double times, cells, never;        /* means per record: time stamps, cells, channels never observed */
    double times_spread, cells_spread; /* standard deviations */
    int32_t most_times, most_cells;
    size_t records, only_start; /* all records; records whose only time is the first */
} physionet_summary;
physionet_summary physionet_summarise(const dataset *d);

#endif
