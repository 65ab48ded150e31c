/* See bundle.h. */
#include "bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../simd/mtan_simd.h"
#include "../../baselines/baselines.h"
#include "../../data/shown.h"
#include "../base/files.h"

enum { ERROR_SIZE = 512 };

static mtan_status write_piece(void *context, const void *bytes, size_t n) {
    return replacement_write(context, bytes, n) ? MTAN_OK : MTAN_ERR_WRITE;
}

static mtan_status append_piece(void *context, const void *bytes, size_t n) {
    char **out = context;
    memcpy(arraddnptr(*out, n), bytes, n);
    return MTAN_OK;
}

static mtan_status write_nothing(void *context, const void *bytes, size_t n) {
    (void)context, (void)bytes, (void)n;
    return MTAN_OK;
}

/* Reports the first name that is not UTF-8 in `error`; 0: there is none. */
static int find_bad_name(const char *what, char **names, char *error) {
    char text[200];
    for (size_t i = 0; i < arrlenu(names); i++) {
        if (text_is_utf8(names[i])) continue;
        shown_escape(text, sizeof text, names[i]);
        return snprintf(error, ERROR_SIZE, "the name of the %s \"%s\" is not UTF-8, and a model file takes no other",
                        what, text);
    }
    return 0;
}

/* Says why the library refused to write the model. Returns 0. */
static int explain(mtan_status status, const prep *p, const mtan_file_pair *pairs, char *error) {
    size_t bytes = 0;
    for (size_t i = 0; i < arrlenu(pairs); i++) bytes += strlen(pairs[i].key) + strlen(pairs[i].value);
    if (status == MTAN_ERR_INPUT &&
        (find_bad_name("channel", p->channels, error) || find_bad_name("class", p->classes, error)))
        return 0;
    if (status == MTAN_ERR_SIZE && bytes > MTAN_FILE_MAX_HEADER / 2)
        snprintf(
            error, ERROR_SIZE,
            "what a model file says of %zu channels and %zu classes takes up to %zu KB, and it has room for %u KB: "
            "fewer channels, or shorter names",
            arrlenu(p->channels), arrlenu(p->classes), bytes >> 10, MTAN_FILE_MAX_HEADER >> 10);
    else snprintf(error, ERROR_SIZE, "the model could not be saved: %s", mtan_status_message(status));
    return 0;
}

int bundle_check(const mtan_model *model, const prep *p, const mtan_file_pair *pairs, size_t n_pairs, size_t room,
                 char *error) {
    mtan_file_pair *all = NULL;
    char *blanks = memset(tool_calloc(room + 1, 1), ' ', room);
    const mtan_file_pair more = {"room", blanks};
    prep_write(p, &all);
    const size_t own = arrlenu(all);
    for (size_t i = 0; i < n_pairs; i++) arrput(all, pairs[i]);
    arrput(all, more);
    const mtan_status status = mtan_model_save(model, NULL, all, arrlenu(all), write_nothing, NULL);
    const int good = status == MTAN_OK || explain(status, p, all, error);
    pairs_free(all, own);
    arrfree(all);
    free(blanks);
    return good;
}

/* The pairs of the preprocessing come first. */
static mtan_status compose(const mtan_model *model, const mtan_trainer *trainer, const prep *p,
                           const mtan_file_pair *pairs, size_t n_pairs, mtan_write_fn write, void *context) {
    mtan_file_pair *all = NULL;
    mtan_status status;
    size_t own;
    prep_write(p, &all);
    own = arrlenu(all);
    for (size_t i = 0; i < n_pairs; i++) arrput(all, pairs[i]);
    status = mtan_model_save(model, trainer, all, arrlenu(all), write, context);
    pairs_free(all, own);
    arrfree(all);
    return status;
}

int bundle_write(const char *path, const mtan_model *model, const mtan_trainer *trainer, const prep *p,
                 const mtan_file_pair *pairs, size_t n_pairs, char *error) {
    mtan_status status;
    replacement r;
    int good;
    if (!replacement_open(&r, path, error)) return 0;
    status = compose(model, trainer, p, pairs, n_pairs, write_piece, &r);
    good = replacement_close(&r, status == MTAN_OK, error);
    if (status != MTAN_OK && status != MTAN_ERR_WRITE)
        snprintf(error, ERROR_SIZE, "%.400s: %s", path, mtan_status_message(status));
    return good;
}

int bundle_compose(char **file, const mtan_model *model, const prep *p, const mtan_file_pair *pairs, size_t n_pairs,
                   char *error) {
    mtan_status status;
    arrfree(*file);
    status = compose(model, NULL, p, pairs, n_pairs, append_piece, file);
    if (status == MTAN_OK) return 1;
    arrfree(*file);
    return snprintf(error, ERROR_SIZE, "%s", mtan_status_message(status)), 0;
}

void pairs_free(mtan_file_pair *pairs, size_t n) {
    for (size_t i = 0; i < n; i++) free((void *)(uintptr_t)pairs[i].key), free((void *)(uintptr_t)pairs[i].value);
}

int param_find(mtan_param *p, const mtan_config *config, const char *name) {
    for (int32_t i = 0; mtan_param_at(config, i, p) == MTAN_OK; i++)
        if (strcmp(p->name, name) == 0) return 1;
    return 0;
}

void pairs_add(mtan_file_pair **pairs, const char *key, const char *value) {
    const mtan_file_pair pair = {tool_text(key), tool_text(value)};
    arrput(*pairs, pair);
}

static char *decoded(const mtan_text *coded) {
    size_t length = 0;
    char *text;
    mtan_text_decode(coded, NULL, 0, &length);
    text = tool_calloc(length + 1, 1);
    mtan_text_decode(coded, text, length + 1, NULL);
    return text;
}

void pairs_copy(mtan_file_pair **pairs, const mtan_file *file, const char *beginning) {
    mtan_text key, value;
    for (size_t i = 0; i < file->pairs && mtan_file_metadata_at(file, i, &key, &value) == MTAN_OK; i++) {
        const mtan_file_pair pair = {decoded(&key), decoded(&value)};
        if (strncmp(pair.key, beginning, strlen(beginning)) == 0) arrput(*pairs, pair);
        else free((void *)(uintptr_t)pair.key), free((void *)(uintptr_t)pair.value);
    }
}

/* Loads the model from b->blob; frees the bundle if that fails. */
static int open_blob(bundle *b, const char *path, char *error) {
    mtan_status status;
    size_t count = 0;
    status = mtan_file_open(&b->file, b->blob, b->bytes);
    if (status == MTAN_OK) status = mtan_model_load_count(&b->file, baselines, &count);
    if (status == MTAN_OK) {
        b->weights = tool_calloc(count, sizeof *b->weights);
        status = mtan_model_load(&b->model, b->weights, count, &b->file, baselines);
    }
    if (status != MTAN_OK) {
        snprintf(error, ERROR_SIZE, "%.400s: %s", path, mtan_status_message(status));
        return bundle_free(b), 0;
    }
    b->model.backend = mtan_backend_best();
    if (!prep_read(&b->prep, &b->file, error)) {
        char reason[ERROR_SIZE];
        snprintf(reason, sizeof reason, "%s", error);
        snprintf(error, ERROR_SIZE, "%.200s: %.300s", path, reason);
        return bundle_free(b), 0;
    }
    return 1;
}

int bundle_read(bundle *b, const char *path, char *error) {
    memset(b, 0, sizeof *b);
    return (b->blob = file_read_while(path, safetensors_more, &b->bytes, error)) && open_blob(b, path, error);
}

int bundle_open(bundle *b, const void *bytes, size_t n, const char *name, char *error) {
    memset(b, 0, sizeof *b);
    b->blob = memcpy(tool_calloc(n + 1, 1), bytes, n), b->bytes = n;
    return open_blob(b, name, error);
}

const char *bundle_text(bundle *b, const char *key, const char *otherwise) {
    size_t length = 0;
    char *text;
    if (mtan_file_metadata(&b->file, key, NULL, 0, &length) != MTAN_OK) return otherwise;
    text = tool_calloc(length + 1, 1);
    mtan_file_metadata(&b->file, key, text, length + 1, NULL);
    arrput(b->texts, text);
    return text;
}

double bundle_number(bundle *b, const char *key, double otherwise) {
    const char *text = bundle_text(b, key, NULL);
    char *end;
    double x;
    if (!text) return otherwise;
    x = strtod(text, &end);
    return end == text || *end ? otherwise : x;
}

void bundle_free(bundle *b) {
    prep_free(&b->prep);
    for (size_t i = 0; i < arrlenu(b->texts); i++) free(b->texts[i]);
    arrfree(b->texts);
    free(b->weights), free(b->blob);
    memset(b, 0, sizeof *b);
}
