/* Model cards: front matter for the Hub, Markdown for people. That its libraries parse it is tested where they are, in
 * tools/python. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/data/text_writer.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/report/card.h"
#include "command_line.h"

#define SMALL "--enc-hidden 8 --embed 8 --ref-points 6 --batch 16 --lr 0.01 --epochs 2 --threads 1 "
#define DATA "--data @/events.csv --labels @/labels.csv "

/* ---- of plain numbers ---- */

static report_number numbers[] = {{.name = "log-loss", .value = 2e-6, .low = 1e-6, .high = 3e-6},
                                  {.name = "AUC", .value = NAN, .low = NAN, .high = NAN}};
static char *hostile[] = {"a|b", "\"]\n---\n# x", "<b>"};
static report_data page = {.title = "m: \"x\"\\\n---", .subtitle = "s", .numbers = numbers, .n_numbers = 2};
static card_facts facts = {.task = "tabular-classification",
                           .data = "own",
                           .part = "test",
                           .what = "a class",
                           .channels = hostile,
                           .outputs = hostile,
                           .n_channels = 3,
                           .n_outputs = 3,
                           .model = "m.safetensors"};

static void write_card(FILE *out, void *unused) {
    (void)unused;
    card_write(out, &page, &facts);
}

TEST names_stay_names(void) {
    size_t length;
    char *card = text_write(write_card, NULL, &length), *end = strstr(card + 3, "\n---\n");
    ASSERT(strncmp(card, "---\n", 4) == 0 && end);
    ASSERT(strstr(card, "\n- name: \"m: \\\"x\\\"\\\\\\u000a---\"\n") < end);
    ASSERT(!strstr(end + 5, "\n---\n")); /* no name has made another line of them */
    ASSERT(strstr(card, "a&#124;b, ") && strstr(card, "&lt;b&gt;"));
    free(card);
    PASS();
}

/* YAML reads 2e-06 as a text, and has no number that is none. */
TEST metrics_are_numbers(void) {
    size_t length;
    char *card = text_write(write_card, NULL, &length);
    ASSERT(strstr(card, "    - type: log_loss\n      name: \"log-loss\"\n      value: 0.000002\n"));
    ASSERT(!strstr(card, "type: auc") && !strstr(card, "nan"));
    free(card);
    numbers[0].value = NAN;
    card = text_write(write_card, NULL, &length);
    ASSERT(!strstr(card, "model-index") && !strstr(card, "## Results"));
    numbers[0].value = 2e-6;
    free(card);
    PASS();
}

/* ---- of runs ---- */

TEST a_run_has_a_card(void) {
    char *text;
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/run --head-hidden 6 --quiet " DATA SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("report @/run --card --quiet " DATA), "%d");
    ASSERT(command_says("run/README.md", "---\nlibrary_name: mtan\npipeline_tag: tabular-classification\n"));
    ASSERT(command_says("run/README.md", "    - type: auc\n      name: \"AUC\"\n      value: "));
    ASSERT(command_says("run/README.md", "It reads 2 channels: heat, pulse. It predicts a class: "));
    ASSERT(command_says("run/README.md", "\n| AUC | ") && command_says("run/README.md", "\n| ref_points | 6 |\n"));
    ASSERT_EQ_FMT(DONE, command_run("report @/run --card -o @/card.md --quiet"), "%d"); /* without data */
    text = command_text("card.md");
    ASSERT(!strstr(text, "model-index") && strstr(text, "## Training"));
    free(text);
    PASS();
}

TEST curves_have_theirs(void) {
    ASSERT_EQ_FMT(DONE, command_run("train own --model interp --data @/events.csv --out @/run --quiet " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("report @/run --card -o @/card.md --data @/events.csv --quiet"), "%d");
    ASSERT(command_says("card.md", "pipeline_tag: time-series-forecasting\n"));
    ASSERT(command_says("card.md", "It predicts every channel at any time."));
    ASSERT_EQ_FMT(BAD_USE, command_run("report @/run --card -o @/nowhere/card.md --data @/events.csv --quiet"), "%d");
    PASS();
}

/* ---- of how a model is used ---- */

/* A static channel, a number and two labels for the records of events.csv. */
static void write_more(void) {
    char row[64];
    command_write("static.csv", "record,sex\n"), command_write("numbers.csv", "record,label\n");
    command_write("several.csv", "record,sepsis,stroke\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        snprintf(row, sizeof row, "r%d,%s\n", r, r % 3 ? "f" : "m"), command_append("static.csv", row);
        snprintf(row, sizeof row, "r%d,%.2f\n", r, 1.37 * r * r), command_append("numbers.csv", row);
        snprintf(row, sizeof row, "r%d,%d,%d\n", r, r % 2, r % 3 == 0), command_append("several.csv", row);
    }
}

/* A command of a card, with the folder in front of each file that it names. */
static void from_the_folder(char *line, size_t room, const char *printed, size_t length) {
    size_t used = 0;
    while (length > 0) {
        const size_t n = strcspn(printed, " \n"), word = n < length ? n : length;
        const int file = word > 4 && (!memcmp(printed + word - 4, ".csv", 4) || !memcmp(printed + word - 4, "sors", 4));
        used += (size_t)snprintf(line + used, room - used, "%s%.*s ", file ? "@/run/" : "", (int)word, printed);
        printed += word, length -= word;
        if (length > 0) printed++, length--;
    }
}

/* Runs every command of the card as it is printed, beside the model. Returns how many there are, -1: one fails. */
static int commands_run(void) {
    static const char prompt[] = "\n$ mtan ";
    char *card = command_text("run/README.md"), line[512];
    int n = 0;
    for (const char *at = card; n >= 0 && (at = strstr(at, prompt)) != NULL;) {
        at += strlen(prompt);
        from_the_folder(line, sizeof line, at, strcspn(at, "\n"));
        if (command_run(line) == DONE && command_bytes("out.txt") > 0 && command_bytes("err.txt") == 0) n++;
        else n = -1, printf("  BAD: %s\n", line), (void)command_says("err.txt", "nothing");
    }
    free(card);
    return n;
}

static void put_beside(const char *name) {
    char to[32], *text = command_text(name);
    snprintf(to, sizeof to, "run/%s", name);
    command_write(to, text);
    free(text);
}

/* Trains a model, with a card and data beside it. how: options of `train`; given: files that `train` and `report`
 * read. */
static int card_made(const char *how, const char *given) {
    char line[512];
    snprintf(line, sizeof line, "train own --data @/events.csv %s %s --out @/run --quiet " SMALL, how, given);
    if (command_run(line) != DONE) return 0;
    snprintf(line, sizeof line, "report @/run --card --data @/events.csv %s --quiet", given);
    if (command_run(line) != DONE) return 0;
    return put_beside("events.csv"), put_beside("static.csv"), 1;
}

typedef struct card_case {
    const char *how, *given, *printed;
} card_case;

TEST every_command_of_a_card_runs(const card_case *c) {
    write_more();
    ASSERT(card_made(c->how, c->given));
    ASSERT(command_says("run/README.md", c->printed));
    ASSERT_EQ_FMT(1, commands_run(), "%d");
    PASS();
}

static const card_case card_cases[] = {
    {"--model enc --head-hidden 6", "--labels @/labels.csv",
     "\nm = mtan.load(\"best.safetensors\")\nm.predict(events)\n```\n\n```console\n$ mtan predict best.safetensors "
     "--data events.csv\n"},
    {"--model enc --head-hidden 6", "--labels @/labels.csv --static @/static.csv", " --static static.csv\n"},
    {"--model interp", "--static @/static.csv", " --static static.csv --at 0:9:1\n"},
    {"--model interp", "", "\n$ mtan interpolate best.safetensors --data events.csv --at 1:9:1\n"},
    {"--model interp --forecast 2.5", "", " --forecast 2.5\n"},
    {"--model enc --head-hidden 6", "--labels @/numbers.csv", "\n| select | loss |\n"},
    {"--model enc --head-hidden 6", "--labels @/several.csv", "\n| select | auc |\n"},
    {"--model per-time --preset correct --head-hidden 6", "--labels @/times.csv", "\n$ mtan predict "},
};

SUITE(card_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(names_stay_names);
    RUN_TEST(metrics_are_numbers);
    RUN_TEST(a_run_has_a_card);
    RUN_TEST(curves_have_theirs);
    for (size_t i = 0; i < sizeof card_cases / sizeof card_cases[0]; i++)
        RUN_TEST1(every_command_of_a_card_runs, &card_cases[i]);
}
