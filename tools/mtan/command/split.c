/* mtan split: prints each record's part: training, validation or test. The output can be given to `mtan train
 * --splits`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "../options/option_table.h"
#include "rows.h"
#include "../model/shared_options.h"
#include "../model/data_sets.h"
#include "../model/plan.h"
#include "../model/session.h"

static void put_parts(const dataset *d, const split *s) {
    const size_t n = arrlenu(d->records);
    uint8_t *part = tool_calloc(n, 1);
    for (int p = 0; p < SPLIT_PARTS; p++)
        for (size_t i = 0; i < arrlenu(s->part[p]); i++) part[s->part[p][i]] = (uint8_t)p;
    puts("record,part");
    for (size_t i = 0; i < n; i++) row_name(dataset_name(d, i)), printf(",%s\n", split_part_name(part[i]));
    free(part);
    note("%td training, %td validation, %td test", arrlen(s->part[SPLIT_TRAIN]), arrlen(s->part[SPLIT_VALID]),
         arrlen(s->part[SPLIT_TEST]));
}

/* The split that a model file records. */
static int split_of_model(const options *o) {
    session s;
    int status = BAD_USE;
    memset(&s, 0, sizeof s);
    if (session_read_model(&s, o, o->argument[0]) && session_read_data(&s, o)) {
        if (s.match <= DATA_OTHER_LABELS) put_parts(&s.data, &s.split), status = DONE;
        else complain("%s was trained on other data: %s", o->argument[0], data_match_text(s.match));
    }
    session_close(&s);
    return status;
}

/* The plan that `mtan train` would make of the options; own data with labels gets a classifier. */
static int plan_for(plan *p, const options *o, const data_set *set) {
    const int model = option_find(o->command, "model", 5);
    options train = *o;
    char name[64];
    snprintf(name, sizeof name, "%s%s", set->name, set->own ? "" : "-enc");
    train.argument[0] = name;
    if (!train.value[model]) train.value[model] = option_given(o, "labels") ? "enc" : "interp";
    return plan_make(p, &train);
}

static int split_of_data(const options *o, const data_set *set) {
    source_input in = option_input(o, NULL);
    dataset d;
    split s;
    plan p;
    in.path = o->argument[0];
    if (!plan_for(&p, o, set) || !source_load(&d, &p.source, &in)) return BAD_USE;
    const int good = source_split(&s, &p.source, &d);
    if (good) put_parts(&d, &s), split_free(&s);
    dataset_free(&d);
    return good ? DONE : BAD_USE;
}

int command_split(const options *o) {
    static const char tail[] = ".safetensors";
    const char *path = o->argument[0];
    const size_t n = strlen(path), m = strlen(tail);
    const data_set *set;
    if (n >= m && strcmp(path + n - m, tail) == 0) return split_of_model(o);
    set = data_set_at(path);
    if (!set) return complain("%s: %s", path, errno ? strerror(errno) : "no data set known by its files");
    return split_of_data(o, set);
}
