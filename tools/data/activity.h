/* Human Activity: UCI's 'Localization Data for Person Activity' (ConfLongDemo_JSI.txt), cut as in the published code,
 * to the bit of its float32. Lines of one tag within one tick of 10 ms are averaged as a running mean. A row is
 * everything within one tick. A window is 50 rows and starts 25 rows after the last one, while `offset + 50 < rows`
 * (Q41).
 *
 * A record is a window, named after its sequence and number ("A01-0"). Its times count from its first row; its group is
 * the person (0 for A). 12 channels: x, y, z of four tags. Every row has a label. The labels are merged into 7 classes;
 * the published model has 11 outputs, so 11 classes are listed, the rest as unused.
 *
 * The published code did not expect two properties of the data:
 * - The clock goes back eight times (Q48). The published rows keep the file's order; here they are sorted by time
 *   within each of the 14 windows concerned, because a record's query times must ascend.
 * - The code writes "standing up from sit on grnd" where the data have "standing up from sitting on the ground" (Q47).
 *   So 2848 lines have no label, and a row of them counts as class 0, walking. MTAN_FAITHFUL keeps that; MTAN_CORRECT
 *   makes them class 4, standing up, as intended.
 *
 * Refused with file and line: an unknown tag or label, a line without eight fields, a sequence in two pieces. */
#ifndef MTAN_TOOLS_ACTIVITY_H
#define MTAN_TOOLS_ACTIVITY_H

#include "dataset.h"

enum { ACTIVITY_CHANNELS = 12, ACTIVITY_CLASSES = 11, ACTIVITY_ROWS = 50 };

/* Reads the file (plain or gzip, - for standard input), or the folder that holds it. Like every loader, returns 1, or 0
 * with d->error set and nothing to free. */
int activity_load(dataset *d, const char *path, mtan_preset preset);

#endif
