/* See options.h. Sections: the table; the parser; values; help, man page and completion; messages. */
#define _POSIX_C_SOURCE 200809L
#include "options.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../mtan.h"
#include "../../baselines/recipes.h"
#include "settings.h"

/* ---- the table ---- */

typedef struct option {
    const char *name;
    char letter;          /* short form, 0: none */
    const char *argument; /* NULL: a flag */
    const char *commands; /* names between blanks; "*": every command */
    const char *help;     /* one sentence, without the full stop */
} option;

#define MODEL_USERS " eval predict interpolate stream report compare selftest quantize "
static const option table[] = {
    {"data", 0, "PATH", " train eval predict interpolate stream report compare quantize table bench ",
     "folder or file of the data (table: a folder that holds the data sets); - reads own events from standard input "
     "(predict, interpolate, stream)"},
    {"labels", 0, "FILE", " train eval report compare check quantize ",
     "labels of own data: record,label or record,time,label"},
    {"out", 'o', "PATH", " train report export table ",
     "folder of the run (train) or of all runs (table, default runs), or the file to write (report, export)"},
    {"model", 0, "KIND", " train check ",
     "for own data: enc, full, per-time, interp, or a baseline, with -per-time or -interp behind its name"},
    {"preset", 0, "NAME", " train table ",
     "faithful: what the published code does; correct: what the paper says or what is right (default)"},
    {"epochs", 0, "N", " train table bench ", "how many epochs at most; to measure (bench, default 3)"},
    {"resume", 0, NULL, " train ",
     "go on from RUN/last.safetensors, to the same bits as a run that was never interrupted"},
    {"budget", 0, "TIME", " train table ",
     "search learning rate, sizes and regularisation on the validation records for this long (90s, 10m, 2h), then "
     "train the best (train); make missing runs for this long (table)"},
    {"only", 0, "ROWS", " table ", "rows (gru-d), data sets (physionet) or both (gru-d/physionet), between commas"},
    {"seeds", 0, "LIST", " table ", "seeds to run and to count (default 0,1,2 to run, all to count)"},
    {"dry-run", 0, NULL, " table ", "list the commands of the runs that are missing"},
    {"add", 0, "MODEL", " table ", "measure a model file on its test records and add its numbers"},
    {"results", 0, "FILE", " table ", "file of the results (default results.tsv)"},
    {"batch", 0, "N", " train ", "records per step"},
    {"lr", 0, "R", " train ", "learning rate"},
    {"lr-decay", 0, "R", " train ", "the learning rate is multiplied by this at every step; 1: never"},
    {"lr-floor", 0, "R", " train ", "share of the learning rate at which its decay ends"},
    {"optimizer", 0, "NAME", " train ", "adam or adamax"},
    {"clip", 0, "R", " train ", "largest norm of the gradient; 0: no clipping"},
    {"dropout", 0, "R", " train ", "share of the classifier's hidden units left out in training"},
    {"thin", 0, "R", " train ", "share of the observations left out at random in every training step"},
    {"patience", 0, "N", " train ", "stop after this many epochs without a better validation loss; 0: never"},
    {"select", 0, "WHAT", " train ", "what the best model is chosen by: loss, auc or mse, on the validation records"},
    {"shuffle", 0, "YES|NO", " train ", "new batches every epoch; the published code never shuffles (Q30)"},
    {"observed", 0, "R", " train eval ", "share of a record's times shown for interpolation; the rest is held out"},
    {"scale", 0, "KIND", " train ", "of the values: zscore, minmax, published, none, or times (only times are scaled)"},
    {"time-scale", 0, "R", " train ", "times are divided by this; default: the largest training time"},
    {"origin", 0, "WHERE", " train predict interpolate stream eval report compare check quantize ",
     "of own data's times: record (the first observation), zero, or auto (default)"},
    {"skip-unknown", 0, NULL, " predict interpolate eval report compare quantize ",
     "leave out rows of channels that the model does not know, instead of refusing them"},
    {"split-seed", 0, "N", " train ", "of the split into training, validation and test records; 42 as published"},
    {"by-group", 0, NULL, " train ", "keep records of one group (person, patient) on one side of the split"},
    {"fold", 0, "N", " train ", "MIMIC-III: which of five folds is the test set, 0 to 4"},
    {"distributed", 0, NULL, " train ", "share the work with the other ranks of mpirun (a build by make mpi)"},
    {"split", 0, "PART", " eval report compare quantize ",
     "train, valid, test or all; default: test (quantize: valid)"},
    {"type", 0, "TYPE", " quantize ", "of the matrices: int8 (default), f16 or bf16"},
    {"bootstrap", 0, "N", " eval compare report ", "resamples for the 95 % intervals; 0: none (default 1000)"},
    {"at", 0, "A:B:STEP", " interpolate ", "times to interpolate at, in the data's unit"},
    {"every", 0, "WHEN", " stream ",
     "print after every line (default), on request alone, or when a record has moved on by this time"},
    {"window", 0, "TIME", " stream ", "forget what is older than this before the record's latest time"},
    {"keep", 0, "N", " stream ", "most observations in the window of a record (default 10000)"},
    {"records", 0, "N", " stream bench ",
     "most records at once (stream, default 10000), or to train on in an epoch, whose time is scaled (bench)"},
    {"predict", 0, "CARD", " bench ", "count instead of measuring, for titanx (both), titanx-maxwell or titanx-pascal"},
    {"samples", 0, "N", " interpolate stream eval ", "samples of the latent state; 0: its mean"},
    {"kind", 0, "KIND", " check ", "physionet, activity, mimic3 or own; default: by what is there"},
    {"recipe", 0, "NAME", " convert ", "the named configuration that the checkpoint belongs to"},
    {"stats-from", 0, "DATA", " convert ", "compute the preprocessing from this data, as `mtan train` would"},
    {"events", 0, "N", " inspect export ", "most observations of a record, for the memory estimate (default 1500)"},
    {"times", 0, "N", " inspect export ", "most time stamps of a record, for the memory estimate (default 200)"},
    {"c", 0, NULL, " export ", "as a C header"},
    {"name", 0, "PREFIX", " export ", "prefix of the names in the header (default model)"},
    {"full", 0, NULL, " inspect ", "print long metadata whole"},
    {"tolerance", 0, "X", " compare ", "differences up to this count as equal"},
    {"seed", 0, "N", " train eval predict interpolate stream report compare quantize ",
     "of initial weights, noise, shuffling (train) and of samples (default 0)"},
    {"threads", 0, "N", " train report check table bench " MODEL_USERS,
     "default: the CPUs, at most 8; changes the time and nothing else"},
    {"backend", 0, "NAME", " train table bench " MODEL_USERS,
     "scalar, avx2, cuda, ...: `mtan backends` lists them; default: the fastest CPU one"},
    {"json", 0, NULL, " eval predict interpolate stream inspect compare check selftest backends table bench ",
     "output for programs"},
    {"quiet", 'q', NULL, "*", "no progress, no remarks; errors only"},
    {"help", 'h', NULL, "*", "help on the command"},
};
enum { TABLE = sizeof table / sizeof table[0] };

/* The settings of mtan_config are options of their own: enc_hidden is --enc-hidden. Those of the baselines follow. */
static int first_of_baselines(void) {
    int shared = 0;
    while (mtan_config_key(shared)) shared++;
    return TABLE + shared;
}

static const char *key_of(int i) {
    const int first = first_of_baselines();
    return i < TABLE ? NULL : i < first ? mtan_config_key(i - TABLE) : baseline_key(i - first);
}

static const char *setting_name(int i, char name[64]) {
    const char *key = key_of(i);
    return key ? setting_option(key, name) : NULL;
}

static const char *option_name(int i, char name[64]) {
    return i < TABLE ? table[i].name : setting_name(i, name);
}

static int word_in(const char *words, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += n)
        if (at > words && at[-1] == ' ' && at[n] == ' ') return 1;
    return 0;
}

/* What kind of model it is follows from NAME, --model and --preset, its channels and classes from the data. */
static int is_fixed(const char *name) {
    return word_in(" kind classify channels classes faithful ", name);
}

static int belongs(int i, const command *c) {
    char name[64];
    if (i < TABLE) return table[i].commands[0] == '*' || word_in(table[i].commands, c->name);
    return strcmp(c->name, "train") == 0 && !is_fixed(option_name(i, name));
}

/* The option of that name that a command has; -1: none. */
static int option_find(const command *c, const char *name, size_t length) {
    char buffer[64];
    const char *candidate;
    for (int i = 0; i < OPTIONS_MOST && (candidate = option_name(i, buffer)) != NULL; i++)
        if (belongs(i, c) && strlen(candidate) == length && memcmp(candidate, name, length) == 0) return i;
    return -1;
}

/* ---- the parser ---- */

/* Edits (insert, delete, replace, swap neighbours) from a to b. Names are short. */
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

static void keep_nearer(const char *typed, const char *name, const char **nearest, int *best) {
    const int d = distance(typed, name);
    if (d < *best) *best = d, *nearest = name;
}

static int unknown_option(const char *typed, const command *c) {
    static char buffers[OPTIONS_MOST][64];
    const char *nearest = NULL, *name;
    int best = strlen(typed) > 5 ? 4 : 3;
    for (int i = 0; i < OPTIONS_MOST && (name = option_name(i, buffers[i])) != NULL; i++)
        if (belongs(i, c)) keep_nearer(typed, name, &nearest, &best);
    if (nearest) complain("%s: no option --%s; did you mean --%s?", c->name, typed, nearest);
    else complain("%s: no option --%s; `mtan help %s` lists them", c->name, typed, c->name);
    return 0;
}

static const command *find_command(const char *name) {
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

static int unknown_command(const char *typed) {
    const char *nearest = NULL;
    int best = 4;
    for (const command *c = commands; c->name; c++) keep_nearer(typed, c->name, &nearest, &best);
    if (nearest) complain("no command %s; did you mean %s?", typed, nearest);
    else complain("no command %s; `mtan help` lists them", typed);
    return 0;
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
        for (int k = 0; k < TABLE; k++)
            if (table[k].letter && word[1] == table[k].letter && !word[2] && belongs(k, o->command)) i = k;
        if (i < 0) return unknown_option(word + 1, o->command);
    }
    if (i < TABLE && !table[i].argument) {
        if (equals) return complain("%.*s takes no value", (int)(equals - word), word), 0;
        o->value[i] = "";
        return 1;
    }
    if (!equals && left < 2) return complain("%s needs a value", word), 0;
    o->value[i] = equals ? equals + 1 : words[1];
    return equals ? 1 : 2;
}

int options_parse(options *o, int argc, char **argv) {
    int ended = 0;
    memset(o, 0, sizeof *o);
    if (!(o->command = find_command(argv[1]))) return unknown_command(argv[1]);
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

double option_number(const options *o, const char *name, double otherwise, double low, double high) {
    const char *text = option_text(o, name, NULL);
    char *end;
    double x;
    if (!text) return otherwise;
    x = strtod(text, &end);
    if (end == text || *end) exit(complain("--%s %s: not a number", name, text));
    if (!(x >= low && x <= high)) exit(complain("--%s %s: must be from %g to %g", name, text, low, high));
    return x;
}

int64_t option_integer(const options *o, const char *name, int64_t otherwise, int64_t low, int64_t high) {
    const double x = option_number(o, name, (double)otherwise, (double)low, (double)high);
    if (floor(x) < x) exit(complain("--%s %s: must be a whole number", name, option_text(o, name, "")));
    return (int64_t)x;
}

/* ---- help, man page, completion ---- */

void options_help(FILE *out) {
    fputs("mtan: Multi-Time Attention Networks for sparse and irregular time series\n\n"
          "usage: mtan COMMAND [ARGUMENT...] [--option VALUE]...\n\ncommands:\n",
          out);
    for (const command *c = commands; c->name; c++) fprintf(out, "  %-12s %s\n", c->name, c->summary);
    fputs("\nexamples:\n"
          "  mtan train own --model enc --data events.csv --labels labels.csv --out run\n"
          "  mtan eval run/best.safetensors --data events.csv --labels labels.csv\n"
          "  mtan predict run/best.safetensors --data new.csv > scores.csv\n"
          "  mtan train physionet-enc --data physionet2012 --out run\n"
          "  mtan report run --data physionet2012 -o report.html\n\n"
          "`mtan help COMMAND` says more.\n",
          out);
}

/* Words from column `indent` on, new lines where 79 columns are full. */
static void print_wrapped(FILE *out, const char *text, int indent) {
    int column = indent;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > 79) fprintf(out, "\n%*s", indent, ""), column = indent;
        else if (column > indent) fputc(' ', out), column++;
        fprintf(out, "%.*s", length, text);
        column += length;
        text += length + (text[length] == ' ');
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const option *x) {
    char left[48];
    snprintf(left, sizeof left, "%s%c%s--%s%s%s", x->letter ? "-" : " ", x->letter ? x->letter : ' ',
             x->letter ? ", " : "  ", x->name, x->argument ? " " : "", x->argument ? x->argument : "");
    fprintf(out, "  %-23s ", left);
    print_wrapped(out, x->help, 26);
}

/* Settings that every model has on a few lines, then those that only some baselines have, each with its models. */
static void print_settings(FILE *out, const command *c) {
    const int first = first_of_baselines();
    char buffer[64], models[256];
    int column = 1;
    fputs("\nsettings of the model, each with a value (mtan.h says what it is):\n ", out);
    for (int i = TABLE; i < first && option_name(i, buffer); i++) {
        if (!belongs(i, c)) continue;
        if (column + 3 + (int)strlen(buffer) > 79) fputs("\n ", out), column = 1;
        column += fprintf(out, " --%s", buffer);
    }
    fputs(option_name(first, buffer) ? "\n\nsettings of baselines:\n" : "\n", out);
    for (int i = first; option_name(i, buffer); i++) {
        if (!belongs(i, c)) continue;
        baseline_key_models(key_of(i), models, sizeof models);
        fprintf(out, "      --%-17s ", buffer);
        print_wrapped(out, models, 26);
    }
}

int options_help_command(FILE *out, const char *name) {
    const command *c = find_command(name);
    if (!c) return unknown_command(name);
    fprintf(out, "usage: mtan %s %s\n\n%s.\n%s%s\noptions:\n", c->name, c->arguments, c->summary,
            c->details[0] ? "\n" : "", c->details);
    for (int i = 0; i < TABLE; i++)
        if (belongs(i, c)) print_option(out, &table[i]);
    if (strcmp(c->name, "train") == 0) print_settings(out, c);
    return 1;
}

/* Filled text of the man page: lines below 80 bytes, a new one for every sentence; a leading dot would be a command. */
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

/* Examples are indented in `details`: they keep their lines, the rest is filled. */
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

/* A help text is a sentence without its full stop. */
static void man_sentence(FILE *out, const char *text) {
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s.", text);
    man_text(out, sentence);
}

static void man_option(FILE *out, int i) {
    char buffer[64] = "", models[256];
    const char *argument = i < TABLE ? table[i].argument : "value", *name = option_name(i, buffer);
    fputs(".It ", out);
    if (i < TABLE && table[i].letter) fprintf(out, "Fl %c , ", table[i].letter);
    fprintf(out, "Fl Fl %s%s%s\n", name ? name : buffer, argument ? " Ar " : "", argument ? argument : "");
    if (i < TABLE) man_sentence(out, table[i].help);
    if (i < first_of_baselines()) return;
    snprintf(models, sizeof models, "Of ");
    baseline_key_models(key_of(i), models + 3, sizeof models - 3);
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
                               ".It Ev NO_COLOR\n"
                               "no colours.\n"
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

void options_man(FILE *out) {
    char name[64];
    fputs(man_head, out);
    for (const command *c = commands; c->name; c++) {
        fprintf(out, ".Ss %s\n.Bd -literal\nmtan %s%s%s\n.Ed\n.Pp\n", c->name, c->name, c->arguments[0] ? " " : "",
                c->arguments);
        man_sentence(out, c->summary);
        if (c->details[0]) man_details(out, c->details);
    }
    fputs(".Sh OPTIONS\n.Bl -tag -width Ds\n", out);
    for (int i = 0; i < TABLE; i++) man_option(out, i);
    fputs(".El\n.Pp\nSettings of the model, for\n.Cm train :\n.Pp\n.Bl -tag -compact -width Ds\n", out);
    for (int i = TABLE; option_name(i, name); i++)
        if (!is_fixed(name)) man_option(out, i);
    fputs(man_foot, out);
}

void options_completion(FILE *out) {
    char buffer[64];
    fputs("_mtan() {\n    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then words='",
          out);
    for (const command *c = commands; c->name; c++) fprintf(out, "%s%s", c == commands ? "" : " ", c->name);
    fputs("'\n    elif [ \"${word#-}\" != \"$word\" ]; then case $command in\n", out);
    for (const command *c = commands; c->name; c++) {
        fprintf(out, "        %s) words='", c->name);
        for (int i = 0; option_name(i, buffer); i++)
            if (belongs(i, c)) fprintf(out, "--%s ", option_name(i, buffer));
        fputs("' ;;\n", out);
    }
    fputs("    esac; elif [ \"$command\" = train ] && [ \"$COMP_CWORD\" -eq 2 ]; then words='own", out);
    for (int32_t i = 0; mtan_recipe_name(i); i++) fprintf(out, " %s", mtan_recipe_name(i));
    for (int i = 0; baseline_recipe_name(i); i++) fprintf(out, " %s", baseline_recipe_name(i));
    fputs("'; fi\n    if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    else COMPREPLY=($(compgen -f -- \"$word\")); fi\n}\ncomplete -o filenames -F _mtan mtan\n",
          out);
}

/* ---- messages ---- */

static struct {
    int quiet, open; /* open: a progress line stands on the terminal */
    double last;     /* elsewhere: when the last one was printed, or the first one asked for */
} messages;

void messages_start(const options *o) {
    messages.quiet = option_given(o, "quiet");
}

void messages_silence(void) {
    messages.quiet = 1;
}

int quiet(void) {
    return messages.quiet;
}

int use_color(FILE *stream) {
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(stream)) && !(no && *no);
}

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void say(const char *prefix, const char *format, va_list arguments) {
    progress_end();
    fputs(prefix, stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say("mtan: ", format, arguments);
    va_end(arguments);
    return BAD_USE;
}

void note(const char *format, ...) {
    va_list arguments;
    if (messages.quiet) return;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}

/* One column is left free: a full line would wrap, and could not be rewritten. */
static int terminal_width(void) {
    const char *columns = getenv("COLUMNS");
    const int width = columns ? atoi(columns) : 0;
    return width > 20 ? width - 1 : 79;
}

void progress(const char *format, ...) {
    char text[256];
    va_list arguments;
    const double now = seconds();
    if (messages.quiet) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K%.*s", terminal_width(), text);
        messages.open = 1;
    } else if (!(messages.last > 0)) messages.last = now;
    else if (now - messages.last >= 10) fprintf(stderr, "%s\n", text), messages.last = now;
    fflush(stderr);
}

void progress_end(void) {
    if (messages.open) fputs("\r\033[K", stderr);
    messages.open = 0;
    messages.last = 0;
}
