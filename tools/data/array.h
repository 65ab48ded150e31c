/* Growing arrays and hash maps for the tools: stb_ds, which does not check realloc, with the allocator of memory.h, which never
 * returns NULL. */
#ifndef MTAN_TOOLS_ARRAY_H
#define MTAN_TOOLS_ARRAY_H

#include "memory.h"

#define STBDS_REALLOC(context, pointer, size) tool_realloc(pointer, size)
#define STBDS_FREE(context, pointer) free(pointer)
#include <stdlib.h>
#include <stb/stb_ds.h>

#endif
