/* See settings.h. */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../baselines/baselines.h"

static const char *const solvers[] = {"euler", "rk4", "dopri5"};
enum { SOLVERS = sizeof solvers / sizeof solvers[0] };

const char *model_title(const mtan_config *c) {
    if (c->architecture) return c->architecture->name;
    return c->kind == MTAN_FULL ? "mTAND-Full" : "mTAND-Enc";
}

static int32_t shared_settings(void) {
    int32_t n = 0;
    while (mtan_config_key(n)) n++;
    return n;
}

const char *setting_key(const mtan_config *c, int32_t i) {
    const int32_t shared = shared_settings();
    if (i < shared) return mtan_config_key(i);
    return c->architecture && c->architecture->settings ? c->architecture->settings[i - shared] : NULL;
}

static int is_solver(const char *key) {
    return strcmp(key, "rec_solver") == 0 || strcmp(key, "dec_solver") == 0;
}

int setting_get(const mtan_config *c, const char *key, char *text, size_t size) {
    if (mtan_config_get(c, key, text, size) != MTAN_OK) return 0;
    if (is_solver(key) && text[0] >= '0' && text[0] < '0' + SOLVERS && !text[1])
        snprintf(text, size, "%s", solvers[text[0] - '0']);
    return 1;
}

int setting_show(const mtan_config *c, const char *key, char *text, size_t size) {
    if (!setting_get(c, key, text, size)) return 0;
    if (strncmp(text, "0x", 2) == 0 || strncmp(text, "-0x", 3) == 0) snprintf(text, size, "%.6g", strtod(text, NULL));
    return 1;
}

int setting_set(mtan_config *c, const char *key, const char *text) {
    char number[16];
    for (int i = 0; is_solver(key) && i < SOLVERS; i++)
        if (strcmp(text, solvers[i]) == 0) snprintf(number, sizeof number, "%d", i), text = number;
    return mtan_config_set(c, key, text) == MTAN_OK;
}

static int has_setting(const mtan_architecture *a, const char *key) {
    for (int i = 0; a->settings && a->settings[i]; i++)
        if (strcmp(a->settings[i], key) == 0) return 1;
    return 0;
}

/* Lists each key once, where it first occurs. */
const char *baseline_key(int32_t i) {
    for (int m = 0; baselines[m]; m++)
        for (int k = 0; baselines[m]->settings && baselines[m]->settings[k]; k++) {
            int before = 0;
            while (before < m && !has_setting(baselines[before], baselines[m]->settings[k])) before++;
            if (before == m && i-- == 0) return baselines[m]->settings[k];
        }
    return NULL;
}

void baseline_key_models(const char *key, char *text, size_t size) {
    text[0] = 0;
    for (int m = 0; baselines[m]; m++)
        if (has_setting(baselines[m], key))
            snprintf(text + strlen(text), size - strlen(text), "%s%s", text[0] ? ", " : "", baselines[m]->name);
}

const char *setting_option(const char *key, char name[64]) {
    snprintf(name, 64, "%s", key);
    for (char *at = name; *at; at++) *at = *at == '_' ? '-' : *at;
    return name;
}
