/* The tables of a page (report.h): pairs of texts, and the pairs that every page has. Pairs are stb_ds arrays that own
 * their texts; report_table_free frees both. They are the same in every run of the same program. */
#ifndef MTAN_TOOLS_REPORT_TABLES_H
#define MTAN_TOOLS_REPORT_TABLES_H

#include "../../../mtan.h"
#include "report.h"

/* Texts are cut to 1023 bytes. */
void report_pair_add(report_pair **pairs, const char *key, const char *format, ...);
report_pair *report_model_pairs(const mtan_config *config);
report_pair *report_environment_pairs(const mtan_backend *backend);

report_table report_table_of(const char *title, report_pair *pairs);
void report_table_free(const report_table *table);

#endif
