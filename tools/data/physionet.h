/* Records of the PhysioNet/CinC Challenge 2012, parsed as the published code parses them, to the bit of its float32:
 * time is hours + minutes / 60, rounded to a multiple of 0.016 h (half to even; Q49); a parameter repeated in rows of
 * one time that follow each other is averaged, as a running mean; 41 parameters (Q46), others (RecordID) are skipped;
 * -1 codes stay values (Q36). Records come sorted by id (Q33).
 *
 * What is read is hostile until checked: an error names file and line, nothing is skipped in silence but names that are
 * not <digits>.txt. A time that comes back later in a file makes events of its own, as in the published code. */
#ifndef MTAN_TOOLS_PHYSIONET_H
#define MTAN_TOOLS_PHYSIONET_H

#include "dataset.h"

enum { PHYSIONET_CHANNELS = 41 };

/* Reads set-a ('a'), set-b ('b'), set-a and then set-b ('2') or those of the two that are there ('1') of a folder that holds
 * set-X.tar.gz, set-X.tar or the unpacked set-X. An archive (.tar.gz, .tar) or a folder of .txt files is one set, whichever was asked for. Labels are
 * those of Outcomes-a.txt and Outcomes-b.txt beside the sets or the .txt files, or one folder above these; a record
 * without an outcome has none. As every loader: 1, or 0 with d->error set and nothing to free. */
int physionet_load(dataset *d, const char *path, int which);

/* Records of the same statistics made from nothing, the same for the same arguments, normalised: times in [0, 1], values
 * uniform in [0, 1). channels and density are 41 and 1 for PhysioNet's statistics; a density of 2 doubles the cells of
 * the same times. */
void physionet_generate(dataset *d, size_t n, int32_t channels, double density);

/* Averages and extremes over the records. */
typedef struct physionet_summary {
    double times, cells, never;        /* means per record: time stamps, cells, channels never observed */
    double times_spread, cells_spread; /* standard deviations */
    int32_t most_times, most_cells;
    size_t records, only_start; /* records; those whose only time is the first */
} physionet_summary;
physionet_summary physionet_summarise(const dataset *d);

#endif
