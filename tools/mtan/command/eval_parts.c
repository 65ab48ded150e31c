/* See eval_parts.h. */
#include "eval_parts.h"

#include <math.h>
#include <stdio.h>

#include "../report/contest_text.h"
#include "../base/json_text.h"

void put_key(const char *key, double x) {
    printf(", \"%s\": ", key);
    json_number(stdout, x);
}

void put_range(const char *key, double x, interval range) {
    char name[40];
    put_key(key, x);
    snprintf(name, sizeof name, "%s_low", key), put_key(name, range.low);
    snprintf(name, sizeof name, "%s_high", key), put_key(name, range.high);
}

void put_what(const session *s, const options *o, int json) {
    if (!json) return;
    fputs("{\"model\": ", stdout), json_string(stdout, o->argument[0]);
    fputs(", \"split\": ", stdout), json_string(stdout, s->part);
    printf(", \"records\": %td", arrlen(s->positions));
}

void put_metric(const char *title, const char *format, double x, interval range) {
    char value[32], low[32], high[32];
    snprintf(value, sizeof value, format, x);
    snprintf(low, sizeof low, format, range.low), snprintf(high, sizeof high, format, range.high);
    printf("%-18s %8s", title, value);
    if (!isnan(range.low)) printf("   95 %% interval %s to %s", low, high);
    putchar('\n');
}

void put_verdict(const session *s, const contest_number *headline, int json) {
    char text[CONTEST_VERDICT_BYTES];
    contest_verdict(text, headline, &s->bundle.model.config);
    if (json) fputs(", \"verdict\": ", stdout), json_string(stdout, text);
    else if (*text) puts(text);
}

void put_rivals(const session *s, const contest_number *numbers, int json) {
    if (json) contest_json(stdout, numbers);
    else if (numbers) {
        putchar('\n'), contest_heading(stdout, "without a model", &numbers[0]);
        for (size_t i = 0; i < arrlenu(numbers); i++) contest_row(stdout, numbers[i].title, &numbers[i]);
    }
    put_verdict(s, contest_headline(numbers, contest_classes_of(&s->bundle.model.config)), json);
}
