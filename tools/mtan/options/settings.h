/* Names and settings of a model, an mTAN model or a baseline. The library has the settings that all models share
 * (mtan_config_key); a baseline has a few of its own. */
#ifndef MTAN_TOOLS_SETTINGS_H
#define MTAN_TOOLS_SETTINGS_H

#include "../../../mtan.h"

const char *model_title(const mtan_config *c); /* "mTAND-Enc", "mTAND-Full", "gru-d" */

/* Key of the model's i-th setting: the library's, then its own; NULL past the last. */
const char *setting_key(const mtan_config *c, int32_t i);
/* The value as text: in the form of mtan_config_get and mtan_config_set, except that solvers are words. Returns 1, or
 * 0. */
int setting_get(const mtan_config *c, const char *key, char *text, size_t size);
/* The same for display: a number whose exact form is hexadecimal is shown with six digits. */
int setting_show(const mtan_config *c, const char *key, char *text, size_t size);
int setting_set(mtan_config *c, const char *key, const char *text);

/* Key of the i-th setting that only some baseline has; NULL past the last. */
const char *baseline_key(int32_t i);
/* The baselines that have the setting, as text: "rnn-vae, ode-rnn". */
void baseline_key_models(const char *key, char *text, size_t size);
/* A key as the name of an option: gru_units is --gru-units. */
const char *setting_option(const char *key, char name[64]);

#endif
