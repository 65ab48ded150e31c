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
                           .n_outputs = 3};

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

TEST curves_and_numbers_have_theirs(void) {
    ASSERT_EQ_FMT(DONE, command_run("train own --model interp --data @/events.csv --out @/run --quiet " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("report @/run --card -o @/card.md --data @/events.csv --quiet"), "%d");
    ASSERT(command_says("card.md", "pipeline_tag: time-series-forecasting\n"));
    ASSERT(command_says("card.md", "It predicts every channel at any time.") &&
           command_says("card.md", "mtan interpolate "));
    ASSERT_EQ_FMT(BAD_USE, command_run("report @/run --card -o @/nowhere/card.md --data @/events.csv --quiet"), "%d");
    PASS();
}

SUITE(card_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(names_stay_names);
    RUN_TEST(metrics_are_numbers);
    RUN_TEST(a_run_has_a_card);
    RUN_TEST(curves_and_numbers_have_theirs);
}
