/* See bands_text.h. */
#include "bands_text.h"

#include <math.h>

#include "../base/json_text.h"

const band_row *bands_row(const band_table *table, int i, const band_units *units, char name[BAND_NAME]) {
    const char *space = units->unit[0] ? " " : "";
    const band_row *row = i < table->gaps ? &table->gap[i] : &table->all;
    if (i > table->gaps || table->all.points == 0) return NULL;
    if (i == table->gaps) snprintf(name, BAND_NAME, "all");
    else if (!(row->to < INFINITY)) snprintf(name, BAND_NAME, "channel not shown");
    else if (row->from > 0)
        snprintf(name, BAND_NAME, "%.3g to %.3g%s%s", row->from * units->time_scale, row->to * units->time_scale, space,
                 units->unit);
    else snprintf(name, BAND_NAME, "up to %.3g%s%s", row->to * units->time_scale, space, units->unit);
    return row;
}

void bands_put(FILE *out, const band_table *table, const band_units *units) {
    const band_row *row;
    char name[BAND_NAME];
    if (table->all.points == 0) return;
    fprintf(out, "\n%-24s %9s %10s %10s", "nearest shown", "held out", "MSE", "log-lik.");
    for (int k = 0; k < BAND_LEVELS; k++) fprintf(out, "  in %2.0f %%", 100 * band_levels[k]);
    fputc('\n', out);
    for (int i = 0; (row = bands_row(table, i, units, name)) != NULL; i++) {
        fprintf(out, "%-24s %9zu %10.6f %10.4f", name, row->points, row->mse, row->log_likelihood);
        for (int k = 0; k < BAND_LEVELS; k++) fprintf(out, "  %5.1f %%", 100 * row->inside[k]);
        fputc('\n', out);
    }
}

static void row_json(FILE *out, const band_row *row, const band_units *units) {
    char key[16];
    int first = 1;
    fputc('{', out), json_key_count(out, &first, "points", row->points);
    json_key_number(out, &first, "from", row->from * units->time_scale);
    json_key_number(out, &first, "to", row->to * units->time_scale);
    json_key_number(out, &first, "mse", row->mse), json_key_number(out, &first, "log_likelihood", row->log_likelihood);
    for (int k = 0; k < BAND_LEVELS; k++) {
        snprintf(key, sizeof key, "in_%.0f", 100 * band_levels[k]);
        json_key_number(out, &first, key, row->inside[k]);
    }
    fputc('}', out);
}

void bands_json(FILE *out, const band_table *table, const band_units *units) {
    if (table->all.points == 0) return;
    json_member(out, NULL, "bands"), fputs("{\"all\": ", out), row_json(out, &table->all, units);
    fputs(", \"by_gap\": [", out);
    for (int i = 0; i < table->gaps; i++) fputs(i ? ", " : "", out), row_json(out, &table->gap[i], units);
    fputs("]}", out);
}
