/* A record with its expected output, kept in a model file, so that `mtan selftest MODEL` proves a model on any machine. */
#ifndef MTAN_TOOLS_GOLDEN_RECORD_H
#define MTAN_TOOLS_GOLDEN_RECORD_H

#include "session.h"

/* Picks a small record that was not trained on, runs it through the runner's model and adds it as mtan.golden.* */
void golden_record_write(const runner *run, const dataset *d, const split *s, mtan_file_pair **pairs);

#endif
