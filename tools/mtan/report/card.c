/* See card.h. */
#include "card.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/memory.h"
#include "../../data/text_writer.h"
#include "../base/files.h"
#include "../base/json_text.h"
#include "../base/shell_word.h"
#include "figure.h"
#include "html.h"

/* ---- texts ---- */

/* A text as Markdown, also within a table: characters with a meaning there are written as numeric entities. */
static void put_text(FILE *out, const char *text) {
    static const char marks[] = "|*[]`#\\~$";
    char *run = tool_text(text ? text : ""), *at = run;
    while (*at) {
        const size_t n = strcspn(at, marks);
        const char mark = at[n];
        at[n] = 0;
        html_text(out, at);
        if (!mark) break;
        fprintf(out, "&#%d;", mark);
        at += n + 1;
    }
    free(run);
}

static void put_list(FILE *out, char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) fputs(i ? ", " : "", out), put_text(out, names[i]);
}

/* "Brier score" as a key: brier_score. */
static void put_key(FILE *out, const char *name) {
    for (; *name; name++) fputc(isalnum((unsigned char)*name) ? tolower((unsigned char)*name) : '_', out);
}

/* ---- front matter: YAML, which includes JSON's strings ---- */

static void put_metric(FILE *out, const report_number *n) {
    if (!isfinite(n->value)) return;
    fputs("    - type: ", out), put_key(out, n->name);
    fputs("\n      name: ", out), json_string(out, n->name);
    fprintf(out, "\n      value: %.6f\n", n->value); /* without an exponent: YAML reads 1e-05 as a text */
}

static int is_measured(const report_data *r, const card_facts *f) {
    int measured = 0;
    for (size_t i = 0; f->part && i < r->n_numbers; i++) measured |= isfinite(r->numbers[i].value);
    return measured;
}

static void front_matter(FILE *out, const report_data *r, const card_facts *f) {
    fprintf(out, "---\nlibrary_name: mtan\npipeline_tag: %s\n", f->task);
    fputs("tags:\n- mtan\n- time-series\n- irregular-time-series\n- safetensors\n", out);
    if (is_measured(r, f)) {
        fputs("model-index:\n- name: ", out), json_string(out, r->title);
        fprintf(out, "\n  results:\n  - task:\n      type: %s\n    dataset:\n      type: ", f->task);
        json_string(out, f->data);
        fputs("\n      name: ", out), json_string(out, f->data);
        fputs("\n      split: ", out), json_string(out, f->part);
        fputs("\n    metrics:\n", out);
        for (size_t i = 0; i < r->n_numbers; i++) put_metric(out, &r->numbers[i]);
    }
    fputs("---\n\n", out);
}

/* ---- what people read ---- */

static void put_results(FILE *out, const report_data *r) {
    char a[32], b[32], c[32];
    fputs("## Results\n\n| | | 95 % interval | |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < r->n_numbers; i++) {
        const report_number *n = &r->numbers[i];
        fputs("| ", out), put_text(out, n->name);
        fprintf(out, " | %s | ", html_number(a, n->value, 4));
        if (isfinite(n->low)) fprintf(out, "%s to %s", html_number(b, n->low, 4), html_number(c, n->high, 4));
        fputs(" | ", out), put_text(out, n->note), fputs(" |\n", out);
    }
    fputc('\n', out);
}

static void put_table(FILE *out, const report_table *t) {
    fputs("## ", out), put_text(out, t->title), fputs("\n\n| | |\n|---|---|\n", out);
    for (size_t i = 0; i < t->n; i++) {
        fputs("| ", out), put_text(out, t->pairs[i].key);
        fputs(" | ", out), put_text(out, t->pairs[i].value), fputs(" |\n", out);
    }
    fputc('\n', out);
}

/* ---- how it is used: every command runs as it is printed, beside the model and files of these names ---- */

enum { TIMES_MOST = 10 };

/* Round times within those of the training records. */
static size_t round_times(const card_facts *f, double times[AXIS_TICKS_MOST]) {
    const double ends[] = {f->first, f->last};
    axis a = axis_none;
    if (f->first <= f->last) axis_fit(&a, ends, 2);
    axis_settle(&a, 0);
    return axis_ticks(&a, TIMES_MOST, times);
}

static void put_python(FILE *out, const card_facts *f) {
    double times[AXIS_TICKS_MOST];
    const size_t n = round_times(f, times);
    fputs("```python\nimport mtan\nimport pandas\n\nevents = mtan.Events(pandas.read_csv(\"events.csv\")", out);
    if (f->statics) fputs(", static=pandas.read_csv(\"static.csv\")", out);
    fputs(")\nm = mtan.load(", out), json_string(out, f->model), fputs(")\n", out);
    if (!f->interpolates) fputs("m.predict(events)\n", out);
    else if (f->forecast > 0) fprintf(out, "times, mean, sd = m.forecast(events, %.9g)\n", f->forecast);
    else {
        fputs("mean, sd = m.predict(events, at=[", out);
        for (size_t i = 0; i < n; i++) fprintf(out, "%s%.9g", i ? ", " : "", times[i]);
        fputs("])\n", out);
    }
    fputs("```\n\n", out);
}

static void put_command(FILE *out, const card_facts *f) {
    char line[1024] = "";
    double times[AXIS_TICKS_MOST];
    const size_t n = round_times(f, times);
    shell_append(line, sizeof line, f->model);
    fprintf(out, "```console\n$ mtan %s %s --data events.csv", f->interpolates ? "interpolate" : "predict", line);
    if (f->statics) fputs(" --static static.csv", out);
    if (f->interpolates && f->forecast > 0) fprintf(out, " --forecast %.9g", f->forecast);
    else if (f->interpolates) fprintf(out, " --at %.9g:%.9g:%.9g", times[0], times[n - 1], times[1] - times[0]);
    fputs("\n```\n\n", out);
}

static void put_use(FILE *out, const card_facts *f) {
    fputs("## Use\n\nRaw observations go in, rows of record, time, channel and value in the data's units", out);
    if (f->statics) fputs(", and what does not change in a record, a row for each with a column for each value", out);
    fputs(": the preprocessing is part of the file.\n\n", out);
    put_python(out, f), put_command(out, f);
}

void card_write(FILE *out, const report_data *r, const card_facts *f) {
    front_matter(out, r, f);
    fputs("# ", out), put_text(out, r->title), fputs("\n\n", out);
    put_text(out, r->subtitle), fputs("\n\n", out);
    if (r->verdict && *r->verdict) put_text(out, r->verdict), fputs("\n\n", out);
    fprintf(out, "It reads %zu channels: ", f->n_channels), put_list(out, f->channels, f->n_channels);
    fprintf(out, ". It predicts %s", f->what);
    if (f->n_outputs > 0) fputs(": ", out), put_list(out, f->outputs, f->n_outputs);
    fputs(".\n\n", out);
    if (is_measured(r, f)) put_results(out, r);
    put_use(out, f);
    for (size_t i = 0; i < r->n_tables; i++) put_table(out, &r->tables[i]);
}

typedef struct card {
    const report_data *r;
    const card_facts *f;
} card;

static void write_card(FILE *out, void *of) {
    const card *c = of;
    card_write(out, c->r, c->f);
}

int card_save(const char *path, const report_data *r, const card_facts *f, char *error) {
    card c = {r, f};
    size_t length;
    char *bytes = text_write(write_card, &c, &length);
    const int good = file_write(path, bytes, length, error);
    free(bytes);
    return good;
}
