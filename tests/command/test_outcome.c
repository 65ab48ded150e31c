/* What the commands say of a model beside what needs none: the end of `mtan train`, the tables of `mtan eval`, the page. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "../../tools/mtan/command/commands.h"

#define SMALL "--enc-hidden 8 --embed 8 --ref-points 6 --batch 16 --lr 0.01 --epochs 2 --threads 1 "
#define CLASSES "train own --model enc --data @/events.csv --labels @/labels.csv --out @/run --head-hidden 6 " SMALL
#define DATA "--data @/events.csv --labels @/labels.csv "

static int ended_with(const char *name, const char *words) {
    char *text = command_text(name), *at = strstr(text, words), *rest = at ? strchr(at, '\n') : NULL;
    const int good = rest && rest[1] == 0;
    if (!good) printf("  %s does not end with \"%s\":\n%s\n", name, words, text);
    free(text);
    return good;
}

TEST a_run_ends_with_what_it_is_worth(void) {
    ASSERT_EQ_FMT(DONE, command_run(CLASSES), "%d");
    ASSERT(command_says("err.txt", "validation, "));
    ASSERT(command_says("err.txt", "; without a model: the largest class 0.5000, logistic regression on summaries "));
    ASSERT(command_says("err.txt", "\nThe model "));
    ASSERT(ended_with("err.txt", "next, on the test records: mtan eval "));
    PASS();
}

TEST a_quiet_run_says_nothing(void) {
    ASSERT_EQ_FMT(DONE, command_run(CLASSES "--quiet"), "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("err.txt"), "%zu");
    PASS();
}

/* As published, kernels are as wide as the record: after two small epochs nobody stands out. */
TEST uniform_attention_is_told(void) {
    ASSERT_EQ_FMT(DONE, command_run(CLASSES "--preset correct --lr 1e-6"), "%d");
    ASSERT(command_says("err.txt", "Attention is almost uniform"));
    PASS();
}

TEST curves_are_judged_too(void) {
    ASSERT_EQ_FMT(DONE, command_run("train own --model interp --data @/events.csv --out @/run --observed 0.5 " SMALL),
                  "%d");
    ASSERT(command_says("err.txt", "squared error, held out ") && command_says("err.txt", ", straight lines "));
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/events.csv --observed 0.5"), "%d");
    ASSERT(command_says("out.txt", "squared error, held out           mean        last       lines   better by"));
    ASSERT(command_says("out.txt", "\nThe model "));
    PASS();
}

TEST eval_has_everybodys_numbers(void) {
    char *text;
    ASSERT_EQ_FMT(DONE, command_run(CLASSES "--quiet"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors " DATA), "%d");
    ASSERT(
        command_says("out.txt", "without a model               majority  regression   better by  95 % interval\nAUC "));
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors " DATA "--json"), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(fabs(command_json(text, "\"baselines\"", "majority") - 0.5) < 1e-12);
    ASSERT(command_json(text, "\"baselines\"", "regression") > 0.9); /* the classes are easy */
    ASSERT(fabs(command_json(text, "\"baselines\"", "model") - command_json(text, "\"model\"", "auc")) < 1e-12);
    ASSERT(strstr(text, "\"verdict\": \"The model ") && strstr(text, "\"positive\": \"up\""));
    ASSERT(command_json(text, "\"threshold\": 0.02,", "sensitivity") >=
           command_json(text, "\"threshold\": 0.9,", "sensitivity"));
    free(text);
    PASS();
}

/* Of two records an AUC is 0, 0.5 or 1, and every draw that has one has the same. */
TEST a_handful_of_records_proves_nothing(void) {
    command_write("two.csv", "record,time,channel,value\na,1,heat,3.5\na,2,heat,4\nb,1,pulse,7\nb,2,heat,6.5\n");
    command_write("two-labels.csv", "record,label\na,down\nb,up\n");
    ASSERT_EQ_FMT(DONE, command_run(CLASSES "--quiet"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/two.csv --labels @/two-labels.csv"), "%d");
    ASSERT(command_says("out.txt",
                        "\n2 records are too few to tell whether the model beats the largest class: its AUC is "));
    ASSERT_EQ_FMT(DONE, command_run("report @/run --data @/two.csv --labels @/two-labels.csv -o @/page.html --quiet"),
                  "%d");
    ASSERT(command_says("page.html", "<p class=\"verdict\">2 records are too few to tell"));
    ASSERT(command_says("page.html", "<em>Too few rows of a class to tell: 1.</em>"));
    PASS();
}

TEST the_page_says_what_mattered(void) {
    ASSERT_EQ_FMT(DONE, command_run(CLASSES "--quiet"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("report @/run " DATA "-o @/page.html --quiet"), "%d");
    ASSERT(command_says("page.html", "<p class=\"verdict\">The model "));
    ASSERT(command_says("page.html", "<small>logistic regression on summaries: "));
    ASSERT(command_says("page.html", "<b>Decision curve</b>") && command_says("page.html", "<b>Thresholds</b>"));
    ASSERT(command_says("page.html", "<h2>What mattered</h2>") && command_says("page.html", "<b>Channels</b>"));
    ASSERT(command_says("page.html", "<tr><td>heat ") || command_says("page.html", "<tr><td>pulse "));
    PASS();
}

SUITE(outcome_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_run_ends_with_what_it_is_worth);
    RUN_TEST(a_quiet_run_says_nothing);
    RUN_TEST(uniform_attention_is_told);
    RUN_TEST(curves_are_judged_too);
    RUN_TEST(eval_has_everybodys_numbers);
    RUN_TEST(a_handful_of_records_proves_nothing);
    RUN_TEST(the_page_says_what_mattered);
}
