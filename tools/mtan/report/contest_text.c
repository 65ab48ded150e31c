/* See contest_text.h. */
#include "contest_text.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "../../data/array.h"
#include "../base/json_text.h"

/* ---- tables ---- */

enum { TITLE = 26, COLUMN = 11 };

static int takes_part(const contest_number *n, int rival) {
    return !isnan(n->rival[rival]);
}

/* Values in units have five significant digits, metrics four decimals. */
static const char *format_of(const contest_number *n) {
    return n->in_units ? "%.5g" : "%.4f";
}

static const char *number_text(char text[32], const contest_number *n, double x) {
    snprintf(text, 32, format_of(n), x);
    return text;
}

void contest_heading(FILE *out, const char *title, const contest_number *like) {
    fprintf(out, "%-*s", TITLE, title);
    for (int i = 0; i < RIVALS; i++)
        if (takes_part(like, i)) fprintf(out, " %*s", COLUMN, rival_key((rival_name)i));
    if (!isnan(like->model)) fprintf(out, " %*s  %s", COLUMN, "better by", "95 % interval");
    fputc('\n', out);
}

void contest_row(FILE *out, const char *title, const contest_number *n) {
    char a[32], b[32];
    fprintf(out, "%-*s", TITLE, title);
    for (int i = 0; i < RIVALS; i++)
        if (takes_part(n, i)) fprintf(out, " %*s", COLUMN, number_text(a, n, n->rival[i]));
    if (!isnan(n->better)) fprintf(out, " %*s", COLUMN, number_text(a, n, n->better));
    if (!isnan(n->range.low))
        fprintf(out, "  %s to %s", number_text(a, n, n->range.low), number_text(b, n, n->range.high));
    fputc('\n', out);
}

static void number_json(FILE *out, const contest_number *n) {
    int first = 1;
    fputc('{', out), json_key_number(out, &first, "model", n->model);
    for (int i = 0; i < RIVALS; i++)
        if (takes_part(n, i)) json_key_number(out, &first, rival_key((rival_name)i), n->rival[i]);
    if (n->best < RIVALS) json_key_text(out, &first, "best", rival_key(n->best));
    json_key_number(out, &first, "better_by", n->better);
    json_key_number(out, &first, "low", n->range.low), json_key_number(out, &first, "high", n->range.high);
    fputc('}', out);
}

void contest_json(FILE *out, const contest_number *numbers) {
    int first = 1;
    json_member(out, NULL, "baselines"), fputc('{', out);
    for (size_t k = 0; k < arrlenu(numbers); k++)
        json_member(out, &first, numbers[k].key), number_json(out, &numbers[k]);
    fputc('}', out);
}

/* ---- sentences ---- */

static void append(char *text, size_t size, const char *format, ...) {
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

const char *contest_line(char *text, size_t size, const contest_number *n) {
    const char *before = "; without a model: ";
    char a[32];
    snprintf(text, size, "%s %s", n->title, number_text(a, n, n->model));
    for (int i = 0; i < RIVALS; i++)
        if (takes_part(n, i))
            append(text, size, "%s%s %s", before, rival_title((rival_name)i), number_text(a, n, n->rival[i])),
                before = ", ";
    return text;
}

/* Advice for a model that does no better than simple baselines. The sentences use this list, and the tests look the
 * options up in it. */
static int published_frequencies(const mtan_config *c) {
    return c->frequencies == MTAN_FREQUENCIES_PUBLISHED && c->embedding == MTAN_EMBED_LEARNED && !c->architecture;
}

static int mean_alone(const mtan_config *c) {
    return c->statistics == 0 && !c->architecture;
}

static int sequence_alone(const mtan_config *c) {
    return c->summaries == 0 && c->classify == MTAN_CLASSIFY_RECORD && !c->architecture;
}

static int always(const mtan_config *c) {
    (void)c;
    return 1;
}

static const struct {
    const char *option, *words;
    int (*applies)(const mtan_config *config);
} advice[] = {
    {"frequencies", "--frequencies log (attention that can be narrow)", published_frequencies},
    {"statistics", "--statistics mean,spread,intensity,slope (more than local means)", mean_alone},
    {"summaries", "--summaries 3 (the classifier also reads what the regression does, and more)", sequence_alone},
    {"budget", "--budget 10m (a search for settings)", always},
    {NULL, "more records", always}};
enum { ADVICE = sizeof advice / sizeof advice[0] };

const char *contest_advice_option(size_t i) {
    return i < ADVICE ? advice[i].option : NULL;
}

static void append_advice(char *text, size_t size, const mtan_config *config) {
    const char *before = " Try ";
    for (size_t i = 0; i < ADVICE; i++) {
        if (!advice[i].applies(config)) continue;
        append(text, size, "%s%s", i + 1 < ADVICE ? before : ", or ", advice[i].words);
        before = ", ";
    }
    append(text, size, ".");
}

int contest_lost(const contest_number *n) {
    return !((isnan(n->range.low) ? n->better : n->range.low) > 0);
}

const char *contest_few(char text[CONTEST_FEW_BYTES], const contest_number *n) {
    const int all = n->records < CONTEST_RECORDS;
    const size_t few = all ? n->records : n->rarest;
    if (!all && few >= CONTEST_OF_CLASS) return NULL;
    snprintf(text, CONTEST_FEW_BYTES, "%zu record%s%s %s too few to tell", few, few == 1 ? "" : "s",
             all ? "" : " of the rarer class", few == 1 ? "is" : "are");
    return text;
}

const char *contest_verdict(char *text, const contest_number *n, const mtan_config *config) {
    const size_t size = CONTEST_VERDICT_BYTES;
    char a[32], b[32], c[32], few[CONTEST_FEW_BYTES];
    *text = 0;
    if (!n || isnan(n->better)) return text;
    if (contest_few(few, n)) append(text, size, "%s whether the model beats", few);
    else
        append(text, size, "The model %s",
               !contest_lost(n) ? "beats"
               : n->better > 0  ? "may be no better than"
                                : "does not beat");
    append(text, size, " %s: its %s is %s against %s", rival_title(n->best), n->title, number_text(a, n, n->model),
           number_text(b, n, n->rival[n->best]));
    if (contest_few(few, n)) return append(text, size, "."), text;
    if (!isnan(n->range.low))
        append(text, size, ", better by %s (95 %%: %s to %s)", number_text(a, n, n->better),
               number_text(b, n, n->range.low), number_text(c, n, n->range.high));
    append(text, size, ".");
    if (contest_lost(n)) append_advice(text, size, config);
    return text;
}
