/* A model as one C header: const arrays for a board without files. See export.c. */
#ifndef MTAN_TOOLS_EXPORT_H
#define MTAN_TOOLS_EXPORT_H

#include "../model/bundle.h"

typedef struct export_settings {
    const char *name;      /* prefix of everything in the header */
    const char *source;    /* where the model comes from, for the comment at the top */
    int32_t events, times; /* most of a record: sizes NAME_memory */
} export_settings;

/* The header's text (free it) and its length, or NULL with error (512 bytes) set. */
char *export_text(bundle *b, const export_settings *s, size_t *length, char *error);

#endif
