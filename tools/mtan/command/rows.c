/* See rows.h. */
#define _POSIX_C_SOURCE 200809L
#include "rows.h"

#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/array.h"
#include "../../data/shown.h"
#include "../base/json_text.h"

static int is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* A spreadsheet would evaluate text with such a first character, but not a number. A leading apostrophe gets a second
 * one, so that removing one restores the name. */
static int needs_apostrophe(const char *name) {
    double x;
    return *name == '\'' || (*name && strchr("=+-@\t\r", *name) && !field_number(name, &x));
}

void row_field(FILE *file, const char *name) {
    const int quoted = strpbrk(name, ",\"\r\n") || is_blank(name[0]) || (*name && is_blank(name[strlen(name) - 1]));
    if (quoted) fputc('"', file);
    if (needs_apostrophe(name)) fputc('\'', file);
    for (; *name; name++) fprintf(file, *name == '"' ? "\"\"" : "%c", *name);
    if (quoted) fputc('"', file);
}

void row_name(const char *name) {
    static int terminal = -1;
    if (terminal < 0) terminal = isatty(STDOUT_FILENO);
    if (!terminal) {
        row_field(stdout, name);
        return;
    }
    char *clean = tool_text(name);
    shown_clean(clean);
    row_field(stdout, clean);
    free(clean);
}

field_excerpt row_time(mtan_real time) {
    double rounded = (double)time;
    for (int digits = 1; digits <= 17; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, (double)time);
        rounded = strtod(text, NULL);
        if ((mtan_real)rounded == time) break;
    }
    return field_number_text(rounded);
}

static void put_time_key(const char *time) {
    fputs(", \"time\": ", stdout);
    if (field_looks_like_date(time)) json_string(stdout, time);
    else fputs(time, stdout);
}

/* Does the model have names for its classes? */
static int has_names(const row_printer *r) {
    return (int32_t)arrlen(r->classes) == r->config->classes;
}

static const char *class_name(const row_printer *r, int32_t k, char number[16]) {
    snprintf(number, 16, "%d", (int)k);
    return has_names(r) ? r->classes[k] : number;
}

/* "p_sick", or "p0" if the classes have no names; malloc'd. */
static char *probability_name(const row_printer *r, int32_t k) {
    char number[16];
    const char *name = class_name(r, k, number);
    const size_t room = strlen(name) + 3;
    char *text = tool_calloc(room, 1);
    snprintf(text, room, "p%s%s", has_names(r) ? "_" : "", name);
    return text;
}

void rows_header(row_printer *r) {
    const mtan_config *c = r->config;
    if (r->begun || r->json) return;
    r->begun = 1;
    if (r->interpolates) {
        puts("record,time,channel,mean,sd,extrapolated");
        return;
    }
    fputs(c->classify == MTAN_CLASSIFY_TIME ? "record,time" : "record", stdout);
    if (c->task == MTAN_TASK_NUMBER) {
        puts(c->interval > 0 ? ",predicted,low,high" : ",predicted");
        return;
    }
    for (int32_t k = 0; k < c->classes; k++) {
        char *name = probability_name(r, k);
        putchar(','), row_name(name);
        free(name);
    }
    puts(c->task == MTAN_TASK_LABELS ? "" : ",predicted");
}

/* The first of equal values, as in metrics.h. */
static int32_t largest(const double *p, int32_t n) {
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++)
        if (p[k] > p[best]) best = k;
    return best;
}

static void row_classes_json(const row_printer *r, const char *record, const char *time, const double *p) {
    char number[16];
    fputs("{\"record\": ", stdout), json_string(stdout, record);
    if (time) put_time_key(time);
    for (int32_t k = 0; k < r->config->classes; k++) {
        char *name = probability_name(r, k);
        fputs(", ", stdout), json_string(stdout, name), fputs(": ", stdout), json_number(stdout, p[k]);
        free(name);
    }
    if (r->config->task == MTAN_TASK_CLASSES) {
        fputs(", \"predicted\": ", stdout);
        json_string(stdout, class_name(r, largest(p, r->config->classes), number));
    }
    puts("}");
}

static double raw_number(const row_printer *r, double x) {
    return r->number ? x * r->number->scale + r->number->offset : x;
}

/* The prediction, then the ends of its interval. */
static void row_number(const row_printer *r, const char *record, const char *time, const double *p) {
    static const char *const keys[] = {"predicted", "low", "high"};
    const double x[] = {p[r->config->interval > 0 ? 1 : 0], p[0], r->config->interval > 0 ? p[2] : NAN};
    const int outputs = mtan_config_outputs(r->config);
    if (r->json) fputs("{\"record\": ", stdout), json_string(stdout, record);
    else row_name(record);
    if (r->json && time) put_time_key(time);
    if (!r->json && time) printf(",%s", time);
    for (int i = 0; i < outputs; i++) {
        if (r->json) printf(", \"%s\": ", keys[i]), json_number(stdout, raw_number(r, x[i]));
        else printf(",%.9g", raw_number(r, x[i]));
    }
    puts(r->json ? "}" : "");
}

void row_classes(row_printer *r, const char *record, const char *time, const double *p) {
    const int32_t classes = r->config->classes;
    char number[16];
    rows_header(r);
    if (r->config->task == MTAN_TASK_NUMBER) {
        row_number(r, record, time, p);
        return;
    }
    if (r->json) {
        row_classes_json(r, record, time, p);
        return;
    }
    row_name(record);
    if (time) printf(",%s", time);
    for (int32_t k = 0; k < classes; k++) printf(",%.9g", p[k]);
    if (r->config->task == MTAN_TASK_CLASSES) putchar(','), row_name(class_name(r, largest(p, classes), number));
    putchar('\n');
}

void row_value(row_printer *r, const char *record, const char *time, const char *channel, double mean, double sd,
               int outside) {
    rows_header(r);
    if (r->json) {
        fputs("{\"record\": ", stdout), json_string(stdout, record);
        put_time_key(time);
        fputs(", \"channel\": ", stdout), json_string(stdout, channel);
        fputs(", \"mean\": ", stdout), json_number(stdout, mean);
        fputs(", \"sd\": ", stdout), json_number(stdout, sd);
        printf(", \"extrapolated\": %s}\n", outside ? "true" : "false");
        return;
    }
    row_name(record), printf(",%s,", time), row_name(channel);
    printf(",%.9g,%.9g,%d\n", mean, sd, outside);
}
