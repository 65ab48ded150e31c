/* The table of data sets: every row is whole, and what is in no row is refused. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "../../tools/mtan/base/messages.h"
#include "../../tools/mtan/options/settings.h"
#include "../../tools/mtan/model/data_sets.h"
#include "../../tools/mtan/base/files.h"
#include "../../tools/mtan/model/plan.h"

TEST every_row_is_whole(void) {
    for (const data_set *s = data_sets; s->name; s++) {
        ASSERT_EQm(s->name, s, data_set_named(s->name, strlen(s->name)));
        ASSERTm(s->name, s->load && s->variant[0] && s->variant[1]);
        ASSERTm(s->name, s->channels > 0 && s->baseline_epochs > 0 && s->observed > 0 && s->observed <= 1);
        ASSERTm(s->name, !s->means == !s->fill && (!s->means || s->channels <= SOURCE_MEANS));
        ASSERT_EQm(s->name, s->needs_data && !s->own, s->recognise != NULL); /* it can be told from others */
        ASSERTm(s->name, !s->recognise == !s->folders[0] && !s->recognise == !s->how);
        for (int preset = MTAN_FAITHFUL; preset <= MTAN_CORRECT; preset++)
            ASSERTm(s->name, s->defaults[preset].time_scale >= 0 && s->defaults[preset].baselines_time_scale >= 0);
    }
    PASS();
}

/* What a preset has, its options can say: asked for by them it is the preset's own plan. */
static int are_settings(const char *model, const data_setting *list) {
    char line[1024], option[64], described[400] = "", *word[64];
    size_t used = (size_t)snprintf(line, sizeof line, "mtan train %s --preset best", model);
    int n = 0;
    options o;
    plan p;
    for (const data_setting *s = list; s->key; s++)
        used += (size_t)snprintf(line + used, sizeof line - used, " --%s %s", setting_option(s->key, option), s->value);
    for (char *at = strtok(line, " "); at && n < 64; at = strtok(NULL, " ")) word[n++] = at;
    return options_parse(&o, n, word) && plan_make(&p, &o) && plan_describe(&p, described, sizeof described) &&
           described[0] == 0;
}

TEST best_has_settings_that_there_are(void) {
    for (const data_set *s = data_sets; s->name; s++) {
        char enc[64], full[64];
        snprintf(enc, sizeof enc, "%s-enc", s->name), snprintf(full, sizeof full, "%s-full", s->name);
        ASSERTm(enc, !s->best || are_settings(enc, s->best));
        ASSERTm(full, !s->best || are_settings(full, s->best));
    }
    PASS();
}

TEST names_are_found_or_refused(void) {
    char text[128], expected[128] = "";
    const char *last = NULL;
    ASSERT_STR_EQ("toy", data_set_named("toy-interp", 3)->name);
    ASSERT(!data_set_named("toy-interp", 4) && !data_set_named("", 0) && !data_set_named("phys", 4));
    data_set_list(text, sizeof text);
    for (const data_set *s = data_sets; s->name; s++) {
        if (!s->needs_data) continue;
        if (last) strcat(strcat(expected, *expected ? ", " : ""), last);
        last = s->name;
    }
    ASSERT_STR_EQ(strcat(strcat(expected, " or "), last), text);
    PASS();
}

/* In a model file, whose bytes may be anybody's. */
TEST an_unknown_kind_is_refused(void) {
    char error[512], *blob, *at = NULL;
    size_t bytes = 0;
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model enc --data @/events.csv --labels @/labels.csv --enc-hidden 4 --embed 4 "
                    "--ref-points 4 --head-hidden 4 --epochs 1 --out @/run --quiet"),
        "%d");
    blob = file_read(command_path("run/best.safetensors"), &bytes, error);
    ASSERT(blob);
    for (size_t i = 0; i + 22 < bytes && !at; i++)
        if (memcmp(blob + i, "\"mtan.data.kind\":\"own\"", 22) == 0) at = blob + i;
    ASSERT(at);
    memcpy(at + 18, "odd", 3);
    ASSERT(file_write(command_path("odd.safetensors"), blob, bytes, error));
    free(blob);
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/odd.safetensors --data @/events.csv"), "%d");
    ASSERT(command_says("err.txt", "its mtan.data.kind is no data set of this version"));
    PASS();
}

SUITE(data_sets_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(every_row_is_whole);
    RUN_TEST(best_has_settings_that_there_are);
    RUN_TEST(names_are_found_or_refused);
    RUN_TEST(an_unknown_kind_is_refused);
}
