/* The records of flat.h: columns, and the data set that a model makes from them. */
#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"
#include "../model/data_sets.h"
#include "flat_call.h"

mtan_flat_data *mtan_flat_data_new(int32_t n_records, const char *records, const int64_t *offset, int32_t n_channels,
                                   const char *channels, const double *time, const int64_t *date,
                                   const int32_t *channel, const double *value) {
    mtan_flat_data *data = calloc(1, sizeof *data);
    own_columns *c = data ? &data->columns : NULL;
    if (!data) return NULL;
    c->n_records = n_records, c->records = records, c->offset = offset;
    c->n_channels = n_channels, c->channels = channels;
    c->time = time, c->date = date, c->channel = channel, c->value = value;
    return data;
}

void mtan_flat_data_free(mtan_flat_data *data) {
    free(data);
}

void mtan_flat_data_statics(mtan_flat_data *data, int32_t n) {
    data->columns.statics = n;
}

void mtan_flat_data_classes(mtan_flat_data *data, int32_t n_classes, const char *classes, const int32_t *label) {
    data->columns.n_classes = n_classes, data->columns.classes = classes, data->columns.label = label;
}

void mtan_flat_data_numbers(mtan_flat_data *data, const double *number) {
    data->columns.number = number;
}

void mtan_flat_data_labels(mtan_flat_data *data, int32_t n_labels, const char *labels, const double *value) {
    data->columns.n_classes = n_labels, data->columns.classes = labels;
    data->columns.several = value;
}

void mtan_flat_data_label_times(mtan_flat_data *data, const int64_t *offset, const double *time, const int64_t *date) {
    data->columns.label_offset = offset, data->columns.label_time = time, data->columns.label_date = date;
}

void mtan_flat_data_groups(mtan_flat_data *data, const int32_t *group) {
    data->columns.group = group;
}

void mtan_flat_data_parts(mtan_flat_data *data, const int32_t *part) {
    data->columns.part = part;
}

void mtan_flat_data_queries(mtan_flat_data *data, const int64_t *offset, const double *time) {
    data->query_offset = offset, data->query_time = time;
}

void mtan_flat_data_skip_unknown(mtan_flat_data *data, int32_t skip) {
    data->skip_unknown = skip != 0;
}

/* Channels are matched by name, whatever data set the model was trained on, as `mtan predict` does with a file of
 * events. */
int flat_prepare(dataset *d, const mtan_flat_model *m, const own_columns *c, int skip_unknown) {
    const prep *p = &m->bundle.prep;
    char error[512] = "";
    source_input in;
    own_options own;
    memset(d, 0, sizeof *d);
    memset(&in, 0, sizeof in);
    in.model = p, in.skip_unknown = skip_unknown;
    if (!source_own_options(&own, &in, &m->source, error)) return complain("%s", error), 0;
    if (!own_take_columns(d, c, &own)) return complain("%s", d->error), 0;
    if ((m->source.set->own || d->unit[0]) && !unit_matches(p, d)) return 0;
    for (size_t i = 0; i < arrlenu(d->notes); i++) note("%s", d->notes[i]);
    source_complete(&m->source, d);
    prep_apply(p, d, NULL);
    return 1;
}
