/* Checks that a table of kernels is complete. The names come from the one list of mtan.h. */
#ifndef MTAN_TESTS_KERNEL_TABLE_H
#define MTAN_TESTS_KERNEL_TABLE_H

#define MTAN_INTERNALS
#include "../../mtan.h"

/* The first kernel missing in a table; NULL: none. */
const char *kernel_missing(const mtan_backend *b);
/* The first kernel whose function already occurs under another name; NULL: none. */
const char *kernel_twin(const mtan_backend *b);

#endif
