/* A run as a model card: Markdown that people read, under front matter in YAML that the Hugging Face Hub reads (its libraries'
 * ModelCard). What is in it is what the report's page has. Names may hold anything. */
#ifndef MTAN_TOOLS_CARD_H
#define MTAN_TOOLS_CARD_H

#include "report.h"

typedef struct card_facts {
    const char *task;      /* as the Hub names it: "tabular-classification" */
    const char *data;      /* what it was measured on */
    const char *part;      /* of it: "test"; NULL: it was not measured */
    const char *what;      /* it predicts: "a class", "a number", ... */
    char *const *channels; /* that it reads */
    char *const *outputs;  /* that it predicts, by name; none: n_outputs 0 */
    size_t n_channels, n_outputs;
} card_facts;

void card_write(FILE *out, const report_data *r, const card_facts *f);
/* As a file, whole or not at all. 1, or 0 with error (512 bytes) set. */
int card_save(const char *path, const report_data *r, const card_facts *f, char *error);

#endif
