/* mtan convert: converts a checkpoint of the published code to a model file, or a model file to a checkpoint. The first
 * file decides the direction. The output replaces an old file only when it is complete. */
#include "../torch/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "../options/settings.h"
#include "../base/files.h"
#include "../model/recipes.h"
#include "../torch/tensor_set.h"

enum { ERROR_SIZE = 512 };

static void settings_given(const options *o, convert_given *given) {
    for (int32_t i = 0; mtan_config_key(i); i++) {
        char name[64];
        const mtan_file_pair pair = {mtan_config_key(i),
                                     option_text(o, setting_option(mtan_config_key(i), name), NULL)};
        if (pair.value) arrput(given->settings, pair);
    }
}

/* The origin of the weights. */
static void add_origin(mtan_file_pair **pairs, const converted *m) {
    char number[40];
    snprintf(number, sizeof number, "%lld", (long long)m->epoch);
    pairs_add(pairs, "mtan.torch.epoch", number);
    snprintf(number, sizeof number, "%.17g", m->lr);
    if (m->lr > 0) pairs_add(pairs, "mtan.torch.lr", number);
    if (m->moment1) pairs_add(pairs, "mtan.torch.optimizer", m->optimizer == MTAN_ADAMAX ? "adamax" : "adam");
    if (m->args) pairs_add(pairs, "mtan.torch.args", m->args);
}

static int write_model(const options *o, const converted *m) {
    char error[ERROR_SIZE];
    mtan_file_pair *pairs = NULL;
    mtan_trainer trainer; /* only its moments and step are written */
    prep p;
    int status = DONE;
    memset(&p, 0, sizeof p);
    memset(&trainer, 0, sizeof trainer);
    trainer.moment1 = m->moment1, trainer.moment2 = m->moment2, trainer.step = m->step;
    add_origin(&pairs, m);
    if (option_given(o, "stats-from") && !convert_statistics(&p, &pairs, o, m)) status = BAD_USE;
    else if (!bundle_write(o->argument[1], &m->model, m->moment1 ? &trainer : NULL, &p, pairs, arrlenu(pairs), error))
        status = complain("%s", error);
    pairs_free(pairs, arrlenu(pairs));
    arrfree(pairs);
    prep_free(&p);
    return status;
}

static void tell(const options *o, const converted *m) {
    const mtan_config *c = &m->model.config;
    for (size_t i = 0; i < arrlenu(m->remarks); i++) note("%s", m->remarks[i]);
    note("%s: %s, %d channels, %zu parameters, epoch %lld%s -> %s", o->argument[0],
         c->kind == MTAN_FULL ? "mTAND-Full" : "mTAND-Enc", (int)c->channels, mtan_weights_count(c),
         (long long)m->epoch,
         !m->moment1                   ? ""
         : m->optimizer == MTAN_ADAMAX ? ", with Adamax's moments"
                                       : ", with Adam's moments",
         o->argument[1]);
    if (!option_given(o, "stats-from"))
        note("it has no preprocessing: values and times are taken as they stand (--stats-from DATA computes it)");
}

static int from_torch(const options *o, const void *blob, size_t bytes) {
    convert_given given = {option_text(o, "recipe", NULL), NULL, NULL};
    char error[ERROR_SIZE];
    torchfile file;
    converted m;
    recipe r;
    if (given.recipe && recipe_named(&r, given.recipe, MTAN_FAITHFUL) && !r.config.architecture)
        given.published = &r.config;
    if (!torch_open(&file, o->argument[0], blob, bytes, error)) return complain("%s", error);
    settings_given(o, &given);
    int status = DONE;
    if (convert_from_torch(&m, &file, &given, error)) {
        status = write_model(o, &m);
        if (status == DONE) tell(o, &m);
        converted_free(&m);
    } else status = complain("%s: %s", o->argument[0], error);
    arrfree(given.settings);
    torch_close(&file);
    return status;
}

static int to_torch(const options *o) {
    const char *in = o->argument[0], *out = o->argument[1];
    char error[ERROR_SIZE];
    bundle b;
    if (!bundle_read(&b, in, error)) return complain("%s", error);
    if (b.model.config.architecture) {
        complain("%s is a %s: the published code has no checkpoint of it", in, model_title(&b.model.config));
        return bundle_free(&b), BAD_USE;
    }
    if (b.model.config.members > 1) {
        complain("%s is an ensemble: the published code has no checkpoint of it; its members have", in);
        return bundle_free(&b), BAD_USE;
    }
    const int has_prep = b.prep.kind != PREP_NONE;
    uint8_t *bytes = convert_to_torch(&b);
    int status = DONE;
    if (!bytes) status = complain("%s: too large for a checkpoint: archives end at 4 GiB", in);
    else if (!file_write(out, bytes, arrlenu(bytes), error)) status = complain("%s", error);
    if (status == DONE && has_prep)
        note("the preprocessing stays behind: a checkpoint has no place for it, and what it loads sees values as they "
             "stand");
    if (status == DONE && convert_optimizer(&b) == MTAN_ADAMAX)
        note("the optimiser's state is Adamax's: the published scripts, which use Adam, cannot go on with it");
    arrfree(bytes);
    bundle_free(&b);
    return status;
}

static int ends_with(const char *text, const char *tail) {
    const size_t n = strlen(text), m = strlen(tail);
    return n >= m && strcmp(text + n - m, tail) == 0;
}

int command_convert(const options *o) {
    char error[ERROR_SIZE];
    size_t bytes = 0;
    void *blob = tensor_set_read(o->argument[0], &bytes, error);
    if (!blob) return complain("%s", error);
    int status;
    if (torch_recognise(blob, bytes)) status = from_torch(o, blob, bytes);
    else if (ends_with(o->argument[1], ".safetensors"))
        status = complain("%s: not a checkpoint of PyTorch; to write one, give it another ending than .safetensors",
                          o->argument[0]);
    else status = to_torch(o);
    free(blob);
    return status;
}
