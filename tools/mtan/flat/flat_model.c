/* The models of flat.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"
#include "../options/settings.h"
#include "../model/data_sets.h"
#include "../base/files.h"
#include "flat_call.h"

typedef struct opening {
    mtan_flat_model *model;
    const char *path; /* or */
    const void *bytes;
    size_t n;
} opening;

/* Numbers the channels of a model without channel names: 0, 1, 2, ... */
static void number_channels(prep *p, int32_t channels) {
    char number[16];
    while (arrlen(p->channels) < channels) {
        snprintf(number, sizeof number, "%d", (int)arrlen(p->channels));
        arrput(p->channels, tool_text(number));
    }
}

static int open_model(void *job) {
    opening *o = job;
    mtan_flat_model *m = tool_calloc(1, sizeof *m);
    const char *name = o->path ? o->path : "the model";
    char error[512] = "";
    if (o->path ? !bundle_read(&m->bundle, o->path, error) : !bundle_open(&m->bundle, o->bytes, o->n, name, error))
        return complain("%s", error), free(m), 0;
    if (!source_read(&m->source, &m->bundle, error)) {
        complain("%s: %s", name, error);
        return bundle_free(&m->bundle), free(m), 0;
    }
    const double batch = bundle_number(&m->bundle, "mtan.plan.batch", 0);
    m->batch = batch >= 1 && batch < 1e6 ? (size_t)batch : 0;
    number_channels(&m->bundle.prep, m->bundle.model.config.channels);
    m->core.model = m->bundle.model, m->core.prep = prep_view(&m->bundle.prep, SPLIT_TEST);
    m->core.prep.channels = m->bundle.model.config.channels; /* also for a model without preprocessing */
    m->core.dates = m->source.set->own && strcmp(m->bundle.prep.unit, "hours") == 0;
    o->model = m;
    return 1;
}

mtan_flat_model *mtan_flat_model_load(const char *path) {
    opening o = {NULL, path, NULL, 0};
    return flat_call(open_model, &o) == 0 ? o.model : NULL;
}

mtan_flat_model *mtan_flat_model_open(const void *bytes, size_t n) {
    opening o = {NULL, NULL, bytes, n};
    return flat_call(open_model, &o) == 0 ? o.model : NULL;
}

void mtan_flat_model_free(mtan_flat_model *model) {
    if (model) bundle_free(&model->bundle);
    free(model);
}

const void *mtan_flat_model_bytes(const mtan_flat_model *model, size_t *n) {
    *n = model->bundle.bytes;
    return model->bundle.blob;
}

typedef struct saving {
    const mtan_flat_model *model;
    const char *path;
} saving;

static int save_model(void *job) {
    const saving *s = job;
    char error[512] = "";
    return file_write(s->path, s->model->bundle.blob, s->model->bundle.bytes, error) || (complain("%s", error), 0);
}

int32_t mtan_flat_model_save(const mtan_flat_model *model, const char *path) {
    saving s = {model, path};
    return flat_call(save_model, &s);
}

typedef struct reading {
    const mtan_flat_model *model;
    const char *key;
    char *text;
    size_t size, *length;
} reading;

static int read_text(void *job) {
    const reading *r = job;
    char setting[256];
    if (setting_get(&r->model->bundle.model.config, r->key, setting, sizeof setting)) {
        if (r->length) *r->length = strlen(setting);
        if (!r->text) return 1;
        return snprintf(r->text, r->size, "%s", setting) < (int)r->size || (complain("%s: no room", r->key), 0);
    }
    const mtan_status status = mtan_file_metadata(&r->model->bundle.file, r->key, r->text, r->size, r->length);
    return status == MTAN_OK || (complain("%s: %s", r->key, mtan_status_message(status)), 0);
}

int32_t mtan_flat_model_text(const mtan_flat_model *model, const char *key, char *text, size_t size, size_t *length) {
    reading r = {model, key, text, size, length};
    return flat_call(read_text, &r);
}
