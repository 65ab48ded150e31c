/* A model as one C header: const arrays for a board without files. See export.c. */
#ifndef MTAN_TOOLS_EXPORT_H
#define MTAN_TOOLS_EXPORT_H

#include "../model/board.h"
#include "../model/bundle.h"

typedef struct export_settings {
    const char *name;      /* prefix of everything in the header */
    const char *source;    /* origin of the model, for the comment at the top */
    int32_t events, times; /* of the largest record, for a predictor's memory */
} export_settings;

/* Returns the header's text (free it), its length and what the model needs on a board, or NULL with error (512 bytes)
 * set. For a model that needs a predictor, need->points is 0. */
char *export_text(bundle *b, const export_settings *s, size_t *length, board_need *need, char *error);

#endif
