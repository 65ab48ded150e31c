/* See eval_parts.h. */
#include "eval_parts.h"

#include <math.h>
#include <stdio.h>

#include "../report/contest_text.h"
#include "../base/json_text.h"

void put_range(const char *key, double x, interval range) {
    char name[40];
    json_key_number(stdout, NULL, key, x);
    snprintf(name, sizeof name, "%s_low", key), json_key_number(stdout, NULL, name, range.low);
    snprintf(name, sizeof name, "%s_high", key), json_key_number(stdout, NULL, name, range.high);
}

void put_what(const session *s, const options *o, int json) {
    int first = 1;
    if (!json) return;
    putchar('{'), json_key_text(stdout, &first, "model", o->argument[0]);
    json_key_text(stdout, &first, "split", s->part), json_key_count(stdout, &first, "records", arrlenu(s->positions));
}

const char *shown_number(char text[32], const char *format, double x) {
    if (isnan(x)) snprintf(text, 32, "-");
    else snprintf(text, 32, format, x);
    return text;
}

void put_metric(const char *title, const char *format, double x, interval range) {
    char value[32], low[32], high[32];
    printf("%-18s %8s", title, shown_number(value, format, x));
    if (!isnan(range.low))
        printf("   95 %% interval %s to %s", shown_number(low, format, range.low),
               shown_number(high, format, range.high));
    putchar('\n');
}

void put_verdict(const session *s, const contest_number *headline, int json) {
    char text[CONTEST_VERDICT_BYTES];
    contest_verdict(text, headline, &s->bundle.model.config);
    if (json) json_key_text(stdout, NULL, "verdict", text);
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
