/* See options.h. */
#include "options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "option_table.h"

/* ---- the parser ---- */

/* Edit distance from a to b: insert, delete, replace, swap neighbours. Names are short. */
static int distance(const char *a, const char *b) {
    int d[3][64];
    const int n = (int)strlen(a), m = (int)strlen(b);
    if (n > 62 || m > 62) return 99;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *row = d[i % 3], *above = d[(i + 2) % 3], *before = d[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return d[n % 3][m];
}

void keep_nearer(const char *typed, const char *name, const char **nearest, int *best) {
    const int d = distance(typed, name);
    if (d < *best) *best = d, *nearest = name;
}

static int unknown_option(const char *typed, const command *c) {
    char buffers[OPTIONS_MOST][64];
    const char *nearest = NULL, *name;
    int best = strlen(typed) > 5 ? 4 : 3;
    for (int i = 0; i < OPTIONS_MOST && (name = option_name(i, buffers[i])) != NULL; i++)
        if (option_belongs(i, c)) keep_nearer(typed, name, &nearest, &best);
    if (nearest) complain("%s: no option --%s; did you mean --%s?", c->name, typed, nearest);
    else complain("%s: no option --%s; `mtan help %s` lists them", c->name, typed, c->name);
    return 0;
}

const command *command_named(const char *name) {
    const char *nearest = NULL;
    int best = 4;
    for (const command *c = commands; c->name; c++) {
        if (strcmp(c->name, name) == 0) return c;
        keep_nearer(name, c->name, &nearest, &best);
    }
    if (nearest) complain("no command %s; did you mean %s?", name, nearest);
    else complain("no command %s; `mtan help` lists them", name);
    return NULL;
}

/* --name, --name=value, --name value, -o value. Returns how many words were used, 0 on an error. */
static int parse_option(options *o, char **words, int left) {
    const char *word = words[0], *equals = strchr(word, '=');
    int i = -1;
    if (word[1] == '-') {
        const size_t length = equals ? (size_t)(equals - word - 2) : strlen(word) - 2;
        char typed[64];
        snprintf(typed, sizeof typed, "%.*s", (int)length, word + 2);
        if ((i = option_find(o->command, word + 2, length)) < 0) return unknown_option(typed, o->command);
    } else {
        equals = NULL;
        for (int k = 0; option_at(k); k++)
            if (option_at(k)->letter && word[1] == option_at(k)->letter && !word[2] && option_belongs(k, o->command))
                i = k;
        if (i < 0) return unknown_option(word + 1, o->command);
    }
    if (option_at(i) && option_at(i)->kind == OPTION_FLAG) {
        if (equals) return complain("%.*s takes no value", (int)(equals - word), word), 0;
        o->value[i] = "";
        return 1;
    }
    if (!equals && left < 2) return complain("%s needs a value", word), 0;
    o->value[i] = equals ? equals + 1 : words[1];
    return equals ? 1 : 2;
}

/* Reads the number of an option that takes one. 0 with a message printed if the value is no number or out of range. */
static int read_number(options *o, int i) {
    const option *x = option_at(i);
    const char *text = o->value[i];
    char *end;
    double number;
    if (!text || x->kind < OPTION_NUMBER) return 1;
    number = o->number[i] = strtod(text, &end);
    if (end == text || *end) return complain("--%s %s: not a number", x->name, text), 0;
    if (!(number >= x->low && number <= x->high))
        return complain("--%s %s: must be from %g to %g", x->name, text, x->low, x->high), 0;
    if (x->kind == OPTION_WHOLE && floor(number) < number)
        return complain("--%s %s: must be a whole number", x->name, text), 0;
    return 1;
}

int options_parse(options *o, int argc, char **argv) {
    int ended = 0;
    memset(o, 0, sizeof *o);
    if (!(o->command = command_named(argv[1]))) return 0;
    for (int i = 2, used; i < argc; i += used) {
        const char *word = argv[i];
        used = 1;
        if (!ended && strcmp(word, "--") == 0) ended = 1;
        else if (!ended && word[0] == '-' && word[1]) {
            if ((used = parse_option(o, argv + i, argc - i)) == 0) return 0;
        } else if (o->arguments == ARGUMENTS_MOST) return complain("%s: too many arguments", o->command->name), 0;
        else o->argument[o->arguments++] = word;
    }
    if (option_given(o, "help")) return 1;
    if (o->arguments < o->command->least || o->arguments > o->command->most)
        return complain("usage: mtan %s %s", o->command->name, o->command->arguments), 0;
    for (int i = 0; option_at(i); i++)
        if (!read_number(o, i)) return 0;
    return 1;
}

/* ---- values ---- */

const char *option_text(const options *o, const char *name, const char *otherwise) {
    const int i = option_find(o->command, name, strlen(name));
    return i >= 0 && o->value[i] ? o->value[i] : otherwise;
}

int option_given(const options *o, const char *name) {
    return option_text(o, name, NULL) != NULL;
}

double option_number(const options *o, const char *name, double otherwise) {
    const int i = option_find(o->command, name, strlen(name));
    return i >= 0 && o->value[i] ? o->number[i] : otherwise;
}

void option_set(options *o, const char *name, const char *text, double number) {
    const int i = option_find(o->command, name, strlen(name));
    o->value[i] = text, o->number[i] = number;
}

int64_t option_integer(const options *o, const char *name, int64_t otherwise) {
    return (int64_t)option_number(o, name, (double)otherwise);
}
