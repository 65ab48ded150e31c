/* See help.h. */
#define _POSIX_C_SOURCE 200809L
#include "help.h"

#include <string.h>
#include <unistd.h>

#include "../options/option_table.h"
#include "../options/settings.h"

/* Text for `out` ends one column before the terminal does. */
static int width_of(FILE *out) {
    return terminal_columns(fileno(out)) - 1;
}

/* Prints words from column `indent` on, where the cursor already is, and breaks lines at the terminal's width. Line
 * ends in the text count as blanks. */
static void print_wrapped(FILE *out, const char *text, int bytes, int indent) {
    const int width = width_of(out);
    const char *end = text + bytes;
    int column = indent;
    while (text < end) {
        const int length = (int)strcspn(text, " \n");
        if (length == 0) {
            text++;
            continue;
        }
        if (column > indent && column + 1 + length > width) fprintf(out, "\n%*s", indent, ""), column = indent;
        else if (column > indent) fputc(' ', out), column++;
        fprintf(out, "%.*s", length, text);
        column += length, text += length;
    }
    fputc('\n', out);
}

static void print_text(FILE *out, const char *text, int indent) {
    print_wrapped(out, text, (int)strlen(text), indent);
}

/* Fills paragraphs. Empty lines, and examples, which are indented, stay as they are. */
static void print_details(FILE *out, const char *text) {
    while (*text) {
        const char *end = text;
        if (*text == ' ' || *text == '\n') {
            end += strcspn(text, "\n") + 1;
            fprintf(out, "%.*s", (int)(end - text), text);
        } else {
            do end += strcspn(end, "\n"), end += *end == '\n';
            while (*end && *end != ' ' && *end != '\n');
            print_wrapped(out, text, (int)(end - text), 0);
        }
        text = end;
    }
}

void help_short(FILE *out) {
    fputs("mtan: Multi-Time Attention Networks for sparse and irregular time series\n\n"
          "usage: mtan COMMAND [ARGUMENT...] [--option VALUE]...\n\ncommands:\n",
          out);
    for (const command *c = commands; c->name; c++) fprintf(out, "  %-12s ", c->name), print_text(out, c->summary, 15);
    fputs("\nexamples:\n"
          "  mtan train own --model enc --data events.csv --labels labels.csv --out run\n"
          "  mtan eval run/best.safetensors --data events.csv --labels labels.csv\n"
          "  mtan predict run/best.safetensors --data new.csv > scores.csv\n"
          "  mtan train physionet-enc --data physionet2012 --out run\n"
          "  mtan report run --data physionet2012 -o report.html\n\n"
          "`mtan help COMMAND` says more.\n",
          out);
}

/* The description starts next to the option or, in a narrow terminal, below it. */
enum { BESIDE = 26, BELOW = 8, NARROW = 70 };

static void print_help(FILE *out, const char *left, const char *help) {
    if (width_of(out) < NARROW) fprintf(out, "  %s\n%*s", left, BELOW, ""), print_text(out, help, BELOW);
    else fprintf(out, "  %-23s ", left), print_text(out, help, BESIDE);
}

static void print_option(FILE *out, const option *x) {
    char left[48];
    snprintf(left, sizeof left, "%s%c%s--%s%s%s", x->letter ? "-" : " ", x->letter ? x->letter : ' ',
             x->letter ? ", " : "  ", x->name, x->argument ? " " : "", x->argument ? x->argument : "");
    print_help(out, left, x->help);
}

/* Settings of every model on a few lines, then the settings of only some baselines, each with its models. */
static void print_settings(FILE *out, const command *c) {
    const int first = option_first_of_baselines();
    char buffer[64], left[80], models[256];
    int column = 1;
    fputc('\n', out), print_text(out, "settings of the model, each with a value (mtan.h says what it is):", 0);
    fputc(' ', out);
    for (int i = 0; i < first && option_name(i, buffer); i++) {
        if (option_at(i) || !option_belongs(i, c)) continue;
        if (column + 3 + (int)strlen(buffer) > width_of(out)) fputs("\n ", out), column = 1;
        column += fprintf(out, " --%s", buffer);
    }
    fputs(option_name(first, buffer) && option_belongs(first, c) ? "\n\nsettings of baselines:\n" : "\n", out);
    for (int i = first; option_name(i, buffer); i++) {
        if (!option_belongs(i, c)) continue;
        baseline_key_models(option_key(i), models, sizeof models);
        snprintf(left, sizeof left, "    --%s", buffer);
        print_help(out, left, models);
    }
}

int help_command(FILE *out, const char *name) {
    const command *c = command_named(name);
    char line[256];
    if (!c) return 0;
    fputs("usage: ", out), snprintf(line, sizeof line, "mtan %s %s", c->name, c->arguments), print_text(out, line, 7);
    fputc('\n', out), snprintf(line, sizeof line, "%s.", c->summary), print_text(out, line, 0);
    if (c->details[0]) fputc('\n', out), print_details(out, c->details);
    fputs("\noptions:\n", out);
    for (int i = 0; option_at(i); i++)
        if (option_belongs(i, c)) print_option(out, option_at(i));
    if (option_find(c, "enc-hidden", strlen("enc-hidden")) >= 0) print_settings(out, c);
    return 1;
}

/* Filled text of the man page: lines below 80 bytes, and a new line for every sentence. A leading dot is escaped, since
 * it would start a macro. */
static void man_text(FILE *out, const char *text) {
    int column = 0;
    while (*(text += strspn(text, " \n"))) {
        const int length = (int)strcspn(text, " \n");
        if (column > 0 && column + 1 + length > 78) fputc('\n', out), column = 0;
        if (column > 0) fputc(' ', out), column++;
        if (column == 0 && (*text == '.' || *text == '\'')) fputs("\\&", out);
        fprintf(out, "%.*s", length, text);
        column += length;
        if (text[length - 1] == '.' || text[length - 1] == ':') fputc('\n', out), column = 0;
        text += length;
    }
    if (column > 0) fputc('\n', out);
}

/* Examples in `details` are indented and keep their lines; the rest is filled. */
static void man_details(FILE *out, const char *text) {
    const char *example = strstr(text, "\n  ");
    char words[1024];
    if (strncmp(text, "  ", 2) == 0) example = text - 1;
    else fputs(".Pp\n", out);
    snprintf(words, sizeof words, "%.*s", example ? (int)(example + 1 - text) : (int)strlen(text), text);
    man_text(out, words);
    if (!example) return;
    fputs(".Bd -literal -offset indent\n", out);
    for (const char *at = example + 1; *at; at += strcspn(at, "\n") + 1)
        fprintf(out, "%.*s\n", (int)strcspn(at + 2, "\n"), at + 2);
    fputs(".Ed\n", out);
}

/* Adds the full stop that a help text lacks. */
static void man_sentence(FILE *out, const char *text) {
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s.", text);
    man_text(out, sentence);
}

static void man_option(FILE *out, int i) {
    char buffer[64] = "", models[256];
    const option *x = option_at(i);
    const char *argument = x ? x->argument : "value", *name = option_name(i, buffer);
    fputs(".It ", out);
    if (x && x->letter) fprintf(out, "Fl %c , ", x->letter);
    fprintf(out, "Fl Fl %s%s%s\n", name ? name : buffer, argument ? " Ar " : "", argument ? argument : "");
    if (x) man_sentence(out, x->help);
    if (i < option_first_of_baselines()) return;
    snprintf(models, sizeof models, "Of ");
    baseline_key_models(option_key(i), models + 3, sizeof models - 3);
    man_sentence(out, models);
}

static const char man_head[] = ".Dd November 16, 2026\n"
                               ".Dt MTAN 1\n"
                               ".Os\n"
                               ".Sh NAME\n"
                               ".Nm mtan\n"
                               ".Nd Multi-Time Attention Networks for irregular time series\n"
                               ".Sh SYNOPSIS\n"
                               ".Nm\n"
                               ".Ar command\n"
                               ".Op Ar argument ...\n"
                               ".Op Fl Fl option Ar value\n"
                               ".Sh DESCRIPTION\n"
                               ".Nm\n"
                               "trains, evaluates and runs mTAND-Enc and mTAND-Full (Shukla and Marlin,\n"
                               "ICLR 2021) on time series that are sparse, irregular and multivariate.\n"
                               "Data goes to standard output, everything else to standard error.\n"
                               ".Sh COMMANDS\n";
static const char man_foot[] = ".El\n"
                               ".Sh ENVIRONMENT\n"
                               ".Bl -tag -width Ds\n"
                               ".It Ev COLUMNS\n"
                               "the width of lines of progress and help, if the terminal's is not wanted.\n"
                               ".El\n"
                               ".Sh EXIT STATUS\n"
                               ".Bl -tag -width Ds\n"
                               ".It 0\n"
                               "Done.\n"
                               ".It 1\n"
                               "Done, but not all is well: a record could not be read, a self-test or\n"
                               "comparison differs, a data set has problems.\n"
                               ".It 2\n"
                               "Wrong usage or input, or an output that could not be written.\n"
                               ".It 130\n"
                               "Interrupted; the run was saved.\n"
                               ".El\n";

void help_man(FILE *out) {
    char name[64];
    int i;
    fputs(man_head, out);
    for (const command *c = commands; c->name; c++) {
        fprintf(out, ".Ss %s\n.Bd -literal\nmtan %s%s%s\n.Ed\n.Pp\n", c->name, c->name, c->arguments[0] ? " " : "",
                c->arguments);
        man_sentence(out, c->summary);
        if (c->details[0]) man_details(out, c->details);
    }
    fputs(".Sh OPTIONS\n.Bl -tag -width Ds\n", out);
    for (i = 0; option_at(i); i++) man_option(out, i);
    fputs(".El\n.Pp\nSettings of the model, for\n.Cm train\nand\n.Cm convert :\n.Pp\n.Bl -tag -compact -width Ds\n",
          out);
    for (; option_name(i, name); i++)
        if (!option_is_fixed(name)) man_option(out, i);
    fputs(man_foot, out);
}
