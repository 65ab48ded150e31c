/* A run as a model card: Markdown with YAML front matter for the Hugging Face Hub (its libraries' ModelCard). It has
 * the content of the report's page. Names may contain any characters. */
#ifndef MTAN_TOOLS_CARD_H
#define MTAN_TOOLS_CARD_H

#include "report.h"

typedef struct card_facts {
    const char *task;      /* the Hub's name: "tabular-classification" */
    const char *data;      /* the data it was measured on */
    const char *part;      /* the part of the data: "test"; NULL: it was not measured */
    const char *what;      /* what it predicts: "a class", "a number", ... */
    char *const *channels; /* names of its inputs */
    char *const *outputs;  /* names of its outputs; n_outputs 0: none */
    size_t n_channels, n_outputs;
    /* how it is used */
    const char *model;  /* the name of its file, which lies beside the card */
    int interpolates;   /* it predicts curves */
    int statics;        /* it reads static channels, from a file of their own */
    double forecast;    /* how far it was trained to look ahead, in the data's unit; 0: not at all */
    double first, last; /* the times of the training records, in the data's unit; first > last: not known */
} card_facts;

void card_write(FILE *out, const report_data *r, const card_facts *f);
/* Writes the card as a file, atomically. 1, or 0 with error (512 bytes) set. */
int card_save(const char *path, const report_data *r, const card_facts *f, char *error);

#endif
