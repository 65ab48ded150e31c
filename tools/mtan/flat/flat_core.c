/* See flat_core.h. */
#include "flat_core.h"

const flat_core *flat_core_of(const mtan_flat_model *model) {
    return (const flat_core *)model;
}

/* ---- facts ---- */

const char *mtan_flat_version(void) {
    return mtan_version();
}

const char *mtan_flat_model_backend(const mtan_flat_model *model) {
    return mtan_backend_name(flat_core_of(model)->model.backend);
}

int32_t mtan_flat_model_outputs(const mtan_flat_model *model) {
    return mtan_config_outputs(&flat_core_of(model)->model.config);
}

int32_t mtan_flat_model_channels(const mtan_flat_model *model) {
    return flat_core_of(model)->model.config.channels;
}

static const char *name_at(const char *const *names, int32_t n, int32_t index) {
    return names && index >= 0 && index < n ? names[index] : NULL;
}

const char *mtan_flat_model_channel(const mtan_flat_model *model, int32_t index) {
    const mtan_prep *p = &flat_core_of(model)->prep;
    return name_at(p->channel_names, p->channels, index);
}

const char *mtan_flat_model_class(const mtan_flat_model *model, int32_t index) {
    const mtan_prep *p = &flat_core_of(model)->prep;
    return name_at(p->class_names, p->classes, index);
}

int32_t mtan_flat_model_positive(const mtan_flat_model *model) {
    return flat_core_of(model)->prep.positive;
}

const char *mtan_flat_model_unit(const mtan_flat_model *model) {
    return flat_core_of(model)->prep.unit;
}

int32_t mtan_flat_model_has_dates(const mtan_flat_model *model) {
    return flat_core_of(model)->dates;
}

int32_t mtan_flat_model_from_first(const mtan_flat_model *model) {
    return flat_core_of(model)->prep.from_first;
}

int32_t mtan_flat_model_range(const mtan_flat_model *model, int32_t channel, double *least, double *most) {
    const mtan_prep *p = &flat_core_of(model)->prep;
    const mtan_prep_channel *c = p->channel && channel >= 0 && channel < p->channels ? &p->channel[channel] : NULL;
    if (c && !(c->has & MTAN_HAS_RANGE)) return 1;
    if (c) return *least = (double)c->least, *most = (double)c->most, 0;
    if (channel >= 0 || p->first > p->last) return 1;
    return *least = p->first, *most = p->last, 0;
}

/* ---- the data's units ---- */

double flat_raw_output(const flat_core *c, size_t index, double output) {
    const mtan_config *config = &c->model.config;
    const size_t O = (size_t)mtan_config_outputs(config),
                 each = O / (size_t)config->classes; /* outputs of one number */
    return config->task == MTAN_TASK_NUMBER ? mtan_prep_raw_number(&c->prep, (int32_t)(index % O / each), output)
                                            : output;
}

void flat_raw_curves(const flat_core *c, size_t rows, const mtan_real *mean, const mtan_real *sd, double *raw_mean,
                     double *raw_sd) {
    const size_t D = (size_t)c->model.config.channels;
    for (size_t i = 0; i < rows * D; i++) {
        raw_mean[i] = mtan_prep_raw_value(&c->prep, (int32_t)(i % D), (double)mean[i]);
        raw_sd[i] = mtan_prep_raw_spread(&c->prep, (int32_t)(i % D), (double)sd[i]);
    }
}
