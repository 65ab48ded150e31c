/* mtan bench: work that is counted instead of done, predictions from it, and the command. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "command_line.h"
#include "tiny_model.h"
#include "../../tools/mtan/options/options.h"
#include "../../tools/mtan/paper/trace.h"

#ifndef MTAN_DOUBLE

#include "../../tools/mtan/paper/cost.h"
#include "caller.h"

/* ---- counts ---- */

static void hold_block(void *block, size_t bytes) {
    if (!device_hold(&mtan_backend_cuda, block, bytes)) exit(2);
}

static void release_block(void *block) {
    device_release(&mtan_backend_cuda, block);
}

/* Around every test: a device that counts, on which models have their memory. */
static void start_counting(void *unused) {
    char text[DEVICE_TEXT];
    (void)unused;
    if (!trace_open(text)) {
        printf("  BAD %s\n", text);
        exit(2);
    }
    guard_watch.given = hold_block, guard_watch.taken = release_block;
}

static void stop_counting(void *unused) {
    (void)unused;
    guard_watch.given = NULL, guard_watch.taken = NULL;
    trace_close();
}

static const roofline_entry *entry_of(const roofline *r, const char *name) {
    for (int i = 0; r->entry[i].name; i++)
        if (strcmp(r->entry[i].name, name) == 0) return &r->entry[i];
    printf("  BAD no kernel %s\n", name);
    exit(2);
}

/* With one step behind it: the first has the device get scratch memory, for which it waits. */
static void open_counting(tiny_model *s, tiny_kind kind, int32_t records) {
    mtan_train_config config;
    mtan_report report;
    tiny_open(s, kind, records);
    s->model.backend = &mtan_backend_cuda;
    mtan_train_config_init(&config);
    config.dropout = 0.25;
    tiny_train(s, &config);
    if (mtan_trainer_step(&s->trainer, s->records, records, 11, &report) != MTAN_OK) exit(2);
}

/* The work of some steps on the first n records. */
static mtan_status count_steps(roofline *r, tiny_model *s, int32_t n, int steps) {
    mtan_report report;
    mtan_status status = MTAN_OK;
    trace_reset();
    while (status == MTAN_OK && steps-- > 0) status = mtan_trainer_step(&s->trainer, s->records, n, 11, &report);
    trace_read(r);
    return status;
}

TEST nothing_is_computed(tiny_kind kind) {
    tiny_model s;
    roofline r;
    roofline_entry all;
    open_counting(&s, kind, 5);
    mtan_real *before = tiny_copy(s.weights, s.count);
    ASSERT_EQ_FMT(MTAN_OK, count_steps(&r, &s, 5, 2), "%d");
    ASSERT(check_same("weights", s.weights, before, s.count * sizeof *before));
    all = roofline_sum(&r);
    ASSERT(all.launches > 0 && all.flops > 0 && all.read > 0 && all.written > 0 && all.busy >= all.flops);
    ASSERT(all.turns > 0);
    ASSERT(r.sent > 0 && r.fetched > 0 && r.waits > 0 && r.copies > 0);
    ASSERT_EQ_FMT(0.0, r.ahead, "%g");
    ASSERT_EQ_FMT(2.0, entry_of(&r, "adam")->launches, "%g");
    ASSERT_EQ_FMT(2.0 * (double)s.count * 7 * 4, entry_of(&r, "adam")->read + entry_of(&r, "adam")->written, "%g");
    free(before);
    ASSERT(tiny_close(&s));
    PASS();
}

TEST counts_are_the_same_again(void) {
    tiny_model a, b;
    roofline first, second;
    open_counting(&a, TINY_FULL, 7), open_counting(&b, TINY_FULL, 7);
    ASSERT_EQ_FMT(MTAN_OK, count_steps(&first, &a, 7, 1), "%d");
    ASSERT_EQ_FMT(MTAN_OK, count_steps(&second, &b, 7, 1), "%d");
    ASSERT_MEM_EQ(&first, &second, sizeof first);
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

TEST counts_grow_with_the_batches(void) {
    tiny_model s;
    roofline one, three;
    open_counting(&s, TINY_FULL, 7);
    ASSERT_EQ_FMT(MTAN_OK, count_steps(&one, &s, 7, 1), "%d");
    ASSERT_EQ_FMT(MTAN_OK, count_steps(&three, &s, 7, 3), "%d");
    for (int i = 0; one.entry[i].name; i++) {
        const roofline_entry *x = &one.entry[i], *y = &three.entry[i];
        ASSERT_EQ_FMT(3 * x->launches, y->launches, "%g");
        ASSERT_EQ_FMT(3 * x->flops, y->flops, "%g");
        ASSERT_EQ_FMT(3 * x->busy, y->busy, "%g");
        ASSERT_EQ_FMT(3 * x->read, y->read, "%g");
        ASSERT_EQ_FMT(3 * x->written, y->written, "%g");
    }
    ASSERT_EQ_FMT(3 * one.sent, three.sent, "%g");
    ASSERT_EQ_FMT(3 * one.waits, three.waits, "%g");
    ASSERT(tiny_close(&s));
    PASS();
}

/* A batch that goes ahead is not waited for, and is not sent again. */
TEST what_goes_ahead_is_told_apart(void) {
    tiny_model s;
    mtan_report report;
    roofline plain, ahead, after;
    open_counting(&s, TINY_ENC, 4);
    ASSERT_EQ_FMT(MTAN_OK, count_steps(&plain, &s, 4, 1), "%d");
    mtan_trainer_next(&s.trainer, s.records, 4);
    ASSERT_EQ_FMT(MTAN_OK, count_steps(&ahead, &s, 4, 1), "%d");
    trace_reset();
    ASSERT_EQ_FMT(MTAN_OK, mtan_trainer_step(&s.trainer, s.records, 4, 11, &report), "%d");
    trace_read(&after);
    ASSERT(ahead.ahead > 0 && after.ahead == 0);
    ASSERT_EQ_FMT(plain.sent, ahead.sent, "%g");
    ASSERT_EQ_FMT(plain.sent - ahead.ahead, after.sent, "%g");
    ASSERT_EQ_FMT(plain.waits, ahead.waits, "%g");
    ASSERT(tiny_close(&s));
    PASS();
}

static double product_flops(const roofline *r) {
    return entry_of(r, "product_nn")->flops + entry_of(r, "product_nt")->flops + entry_of(r, "product_tn")->flops;
}

/* mTAND-Enc forward. Folding is done once a batch, so four records more cost what these records need: scores of their
 * times with the points, K E each; the GRU's input from values, K 3N D, and from the mask, 3N D; the head. */
TEST products_are_those_of_the_formula(void) {
    enum { FEW = 4, MANY = 8 };
    tiny_model s;
    mtan_report report;
    roofline few, many;
    double times = 0;
    open_counting(&s, TINY_ENC, MANY);
    const mtan_config *c = &s.config;
    const double K = c->ref_points, N = c->enc_hidden, D = c->channels, F = c->head_hidden, C = c->classes;
    for (int b = FEW; b < MANY; b++) {
        int32_t n;
        ASSERT_EQ(MTAN_OK, times_of(&s.records[b], &n));
        times += n;
    }
    trace_reset();
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, FEW, 1, &report));
    trace_read(&few);
    trace_reset();
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, MANY, 1, &report));
    trace_read(&many);
    ASSERT_EQ_FMT(2 * (times * K * c->embed + (MANY - FEW) * (3 * N * D * (K + 1) + N * F + F * F + F * C)),
                  product_flops(&many) - product_flops(&few), "%g");
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- costs, worked out by hand ---- */

TEST every_kernel_has_a_cost(void) {
#define X(name, arguments, x, y, hot) #name,
    static const char *const names[] = {MTAN_CUDA_KERNELS(X)};
#undef X
    int forgotten = 0;
    for (int i = 0; i < KERNEL_COUNT; i++)
        if (!kernel_has_cost((mtan_cuda_kernel)i)) printf("  BAD %s has no cost\n", names[i]), forgotten++;
    ASSERT_EQ(0, forgotten);
    PASS();
}

static int is_entry(const char *name, double launches, double flops, double busy, double turns, double read,
                    double written) {
    const roofline_entry wanted = {NULL, launches, flops, busy, turns, 4 * read, 4 * written};
    roofline r;
    trace_read(&r);
    const roofline_entry *e = entry_of(&r, name);
    const int good = e->launches == wanted.launches && e->flops == wanted.flops && e->busy == wanted.busy &&
                     e->turns == wanted.turns && e->read == wanted.read && e->written == wanted.written;
    if (!good)
        printf("  BAD %s: %g launches, %g flops, %g busy, %g turns, %g numbers read, %g written\n", name, e->launches,
               e->flops, e->busy, e->turns, e->read / 4, e->written / 4);
    return good;
}

/* A tile of 64 x 64: one of 24 multiprocessors has work. */
TEST a_short_product_is_one_launch(void) {
    trace_reset();
    mtan_backend_cuda.product_nn(NULL, 64, NULL, 100, NULL, 64, 60, 64, 100, 1);
    ASSERT(is_entry("product_nn", 1, 2.0 * 60 * 64 * 100, 24 * 2.0 * 64 * 64 * 100, 0, 60 * 100 + 64 * 100 + 60 * 64,
                    60 * 64));
    ASSERT(is_entry("product_finish", 0, 0, 0, 0, 0, 0));
    PASS();
}

/* 1024 terms are cut in two, which two multiprocessors take at the same time, and added to what was there. */
TEST a_long_product_is_two_launches(void) {
    trace_reset();
    mtan_backend_cuda.product_tn(NULL, 64, NULL, 64, NULL, 64, 64, 64, 1024, 1);
    ASSERT(is_entry("product_tn", 1, 2.0 * 64 * 64 * 1024, 24 * 2.0 * 64 * 64 * 512, 0, 2 * 64 * 1024, 2 * 64 * 64));
    ASSERT(is_entry("product_finish", 1, 2 * 64 * 64, 2 * 64 * 64, 0, 3 * 64 * 64, 64 * 64));
    PASS();
}

/* Two records of two steps and one of one, in two samples: ten rows, which a block takes through both steps. */
TEST a_gru_has_turns(void) {
    const int first[3] = {0, 3, 5};
    float kept;
    struct sequence a;
    memset(&a, 0, sizeof a);
    a.first = first, a.steps = 2, a.samples = 2, a.rows = 6, a.hidden = 100;
    trace_reset();
    mtan_cuda_launch(KERNEL_gru_run128, 1, 1, 1, &a);
    ASSERT(is_entry("gru_run128", 1, 10 * 100 * (3 * 20 + 10 + 6 * 100), 24 * 2 * 6.0 * 6 * 100 * 100, 2,
                    10 * 100 * 3 + 3 * 100 * 100, 10 * 100 * 4));
    a.hidden = 200, a.step = 1, a.hn = &kept;
    mtan_cuda_launch(KERNEL_gru_step, 1, 7, 1, &a); /* four rows are left; 32 of 200 units to a block */
    ASSERT(is_entry("gru_step", 1, 4 * 200 * (3 * 20 + 10 + 6 * 200), 24 * 6.0 * 16 * 32 * 200, 1,
                    4 * 200 * 4 + 3 * 200 * 200, 4 * 200 * 6));
    PASS();
}

/* One record with three times, two steps and five events, one with a time, a step and an event: seven scores, eleven pairs
 * of an event and a step, and three steps of two channels. */
TEST an_attention_follows_the_events(void) {
    const int length[2] = {2, 1}, time0[3] = {0, 3, 4}, begin[6] = {0, 2, 5, 5, 6, 6}, none[3] = {0};
    struct attention a;
    memset(&a, 0, sizeof a);
    a.batch.records = 2, a.batch.channels = 2, a.batch.steps = 2;
    a.batch.length = length, a.batch.time0 = time0, a.batch.begin = begin;
    a.batch.query0 = a.batch.cell0 = none;
    trace_reset();
    mtan_cuda_launch(KERNEL_attend_forward, 2, 1, 1, &a);
    ASSERT(is_entry("attend_forward", 1, 7 * 22 + 11 * 3 + 6, 193, 0, 7 + 6 * 2, 7 + 6 * 2));
    mtan_cuda_launch(KERNEL_attend_backward, 2, 1, 1, &a);
    ASSERT(is_entry("attend_backward", 1, 7 * 2 + 11 * 4 + 6, 64, 0, 7 * 3 + 6 * 2 + 6 * 3, 7));
    PASS();
}

/* ---- predictions ---- */

TEST time_is_launches_and_the_narrower_roof(void) {
    const roofline_card card = {"card", "chip", 2e12, 1e11};
    roofline_entry e;
    memset(&e, 0, sizeof e);
    e.launches = 4, e.busy = 1e9, e.read = 1e6;
    ASSERT(fabs(1.02e-3 - roofline_seconds(&e, &card)) < 1e-9); /* half of the peak */
    e.turns = 100;
    ASSERT(fabs(1.22e-3 - roofline_seconds(&e, &card)) < 1e-9);
    e.read = 1e8, e.written = 5e7;
    ASSERT(fabs(2.02e-3 - roofline_seconds(&e, &card)) < 1e-9); /* three quarters of the bandwidth */
    PASS();
}

TEST the_newer_card_is_faster(void) {
    tiny_model s;
    roofline r;
    open_counting(&s, TINY_FULL, 7);
    ASSERT_EQ_FMT(MTAN_OK, count_steps(&r, &s, 7, 1), "%d");
    ASSERT(roofline_total(&r, &roofline_cards[0]) > roofline_total(&r, &roofline_cards[1]));
    ASSERT(roofline_total(&r, &roofline_cards[1]) > roofline_copy_seconds(&r) && roofline_copy_seconds(&r) > 0);
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- the command ---- */

/* The first number behind some words; NaN: there is none. */
static double number_behind(const char *name, const char *words) {
    char *text = command_text(name), *at = strstr(text, words), *end = at;
    double x = NAN;
    if (at) {
        at += strlen(words);
        x = strtod(at, &end);
        if (end == at) x = NAN;
    }
    free(text);
    return x;
}

TEST a_prediction_names_both_cards(void) {
    ASSERT_EQ_FMT(DONE, command_run("bench --predict titanx --quiet"), "%d");
    ASSERT(command_says("out.txt", "Maxwell    Pascal"));
    ASSERT(command_says("out.txt", "titanx-maxwell"));
    ASSERT(command_says("out.txt", "titanx-pascal"));
    ASSERT(command_says("out.txt", "never measured on a card"));
    ASSERT(command_says("out.txt", "physionet-enc, one epoch of 2560 records in batches of 128"));
    ASSERT(command_says("out.txt", "physionet-full, one epoch of 2560 records in batches of 50"));
    ASSERT(command_says("out.txt", "gru_step_back"));
    ASSERT_EQ_FMT((size_t)0, command_bytes("err.txt"), "%zu");
    PASS();
}

TEST a_prediction_is_json(void) {
    ASSERT_EQ_FMT(DONE, command_run("bench physionet-enc --predict titanx-pascal --json --quiet"), "%d");
    ASSERT(command_is_json("out.txt"));
    ASSERT(number_behind("out.txt", "\"predicted_seconds\": {\"titanx-pascal\": ") > 0);
    ASSERT(number_behind("out.txt", "\"paper_seconds\": ") == 6);
    ASSERT(number_behind("out.txt", "\"launches\": ") > 0);
    ASSERT(command_says("out.txt", "\"seconds\": null"));
    ASSERT(isnan(number_behind("out.txt", "titanx-maxwell\": ")));
    PASS();
}

TEST a_part_of_an_epoch_is_scaled(void) {
    const char *line = "bench physionet-enc --records 4 --epochs 1 --backend scalar --threads 1 --quiet";
    char json[128];
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_says("out.txt", "physionet-enc was measured on 4 records and scaled to 2560."));
    snprintf(json, sizeof json, "%s --json", line);
    ASSERT_EQ_FMT(DONE, command_run(json), "%d");
    ASSERT(command_is_json("out.txt"));
    ASSERT(number_behind("out.txt", "\"measured_records\": ") == 4);
    ASSERT(number_behind("out.txt", "\"threads\": ") == 1);
    ASSERT(number_behind("out.txt", "\"seconds\": ") > 0);
    ASSERT(number_behind("out.txt", "\"titanx-maxwell\": ") > 0);
    PASS();
}

/* Ten records of the test's, all of an epoch, twice: the median of two is between them. */
TEST own_copies_of_the_data_are_measured(void) {
    char name[64], line[64], *text;
    int rows = 0;
    mkdir(command_path("set-a"), 0777);
    command_write("Outcomes-a.txt", "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n");
    for (int r = 1; r <= 10; r++) {
        snprintf(name, sizeof name, "set-a/%d.txt", r);
        command_write(name, "Time,Parameter,Value\n00:00,Age,60\n");
        snprintf(line, sizeof line, "01:36,HR,%d\n08:00,HR,70\n", 60 + r);
        command_append(name, line);
        snprintf(line, sizeof line, "%d,6,1,5,-1,%d\n", r, r % 2);
        command_append("Outcomes-a.txt", line);
    }
    ASSERT_EQ_FMT(DONE, command_run("bench physionet-enc --data @/ --epochs 2 --threads 1 --quiet"), "%d");
    ASSERT(command_says("out.txt", "seconds per epoch of training as published, on build/command-"));
    ASSERT(command_says("out.txt", "Measured: the median of 2 epochs.\n"));
    ASSERT_EQ_FMT(
        DONE, command_run("bench toy-interp physionet-enc --data @/ --records 5 --epochs 1 --threads 1 --json --quiet"),
        "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "\"paper_seconds\": null"));
    ASSERT_EQ_FMT(DONE, command_run("bench --rows --data @/ --epochs 1 --threads 1 --json --quiet"), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    for (const char *at = text; (at = strstr(at, "{\"configuration\": ")) != NULL; at++) rows++;
    ASSERT_EQ_FMT(13, rows, "%d"); /* of the paper's second table */
    ASSERT(fabs(command_json(text, "\"physionet-ode-rnn\"", "paper_seconds") - 990) < 1e-9);
    ASSERT(fabs(command_json(text, "\"physionet-full\"", "paper_seconds") - 12) < 1e-9);
    ASSERT(command_json(text, "\"physionet-gru-d\"", "seconds") > 0);
    ASSERT(command_json(text, "\"physionet-gru-d\"", "share_of_core") > 0);
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("bench --rows --data @/ --epochs 1 --records 4 --threads 1 --markdown --quiet"),
                  "%d");
    ASSERT(command_says("out.txt", "\n| physionet-ode-rnn | 6 | 4 | ") && command_says("out.txt", " | 990 s |\n"));
    ASSERT(command_says("out.txt", "1 thread, as published: the median of 1 epoch, without validation, scaled"));
    text = command_text("out.txt");
    ASSERTm(text, !strstr(text, command_path("")));
    free(text);
    ASSERT(command_refused("bench --rows --predict titanx --markdown", "--markdown is for what is measured"));
    ASSERT(command_refused("bench --rows --predict titanx", "no GPU runs it"));
    ASSERT(command_refused("bench --rows physionet-enc", "either --rows or names"));
    ASSERT(command_refused("bench physionet-enc --data @/nowhere", "nowhere"));
    ASSERT(command_refused("bench physionet-enc --backend none", "--backend none: there is none of this name"));
    PASS();
}

/* The paper has no time of it. */
TEST rows_of_human_activity_are_measured(void) {
    command_activity("activity");
    ASSERT_EQ_FMT(DONE,
                  command_run("bench --rows --data @/activity --epochs 1 --records 2 --threads 1 --markdown --quiet"),
                  "%d");
    ASSERT(command_says("out.txt", "\n| activity-rnn-impute | ") && command_says("out.txt", "\n| activity-full | "));
    char *text = command_text("out.txt");
    ASSERTm(text, !strstr(text, " s |"));
    free(text);
    PASS();
}

TEST what_cannot_be_measured_is_said(void) {
    ASSERT(
        command_refused("bench --rows --data @/events.csv", "holds none of the data sets of the paper's second table"));
    ASSERT_EQ_FMT(BAD_USE, command_run("bench physionet-end"), "%d");
    ASSERT(command_says("err.txt", "mtan: bench: no configuration physionet-end; there are toy-interp"));
    ASSERT_EQ_FMT(BAD_USE, command_run("bench mimic3-enc --predict titanx"), "%d");
    ASSERT(command_says("err.txt", "mimic3-enc needs --data"));
    ASSERT_EQ_FMT(BAD_USE, command_run("bench --predict titan"), "%d");
    ASSERT(command_says("err.txt", "--predict titan: must be titanx, titanx-maxwell or titanx-pascal"));
    ASSERT_EQ_FMT(BAD_USE, command_run("bench --records 0"), "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("out.txt"), "%zu");
    PASS();
}

static void count_tests(void) {
    GREATEST_SET_SETUP_CB(start_counting, NULL);
    GREATEST_SET_TEARDOWN_CB(stop_counting, NULL);
    for (int kind = 0; kind < TINY_KINDS; kind++) {
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TESTp(nothing_is_computed, (tiny_kind)kind);
    }
    RUN_TEST(counts_are_the_same_again);
    RUN_TEST(counts_grow_with_the_batches);
    RUN_TEST(what_goes_ahead_is_told_apart);
    RUN_TEST(products_are_those_of_the_formula);
    RUN_TEST(a_short_product_is_one_launch);
    RUN_TEST(a_long_product_is_two_launches);
    RUN_TEST(a_gru_has_turns);
    RUN_TEST(an_attention_follows_the_events);
    RUN_TEST(the_newer_card_is_faster);
}

SUITE(bench_command_suite) {
    RUN_TEST(time_is_launches_and_the_narrower_roof);
    RUN_TEST(every_kernel_has_a_cost); /* or no device that counts is opened */
    count_tests();
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_prediction_names_both_cards);
    RUN_TEST(a_prediction_is_json);
    RUN_TEST(a_part_of_an_epoch_is_scaled);
    RUN_TEST(own_copies_of_the_data_are_measured);
    RUN_TEST(rows_of_human_activity_are_measured);
    RUN_TEST(what_cannot_be_measured_is_said);
}

#else

TEST it_counts_in_float_alone(void) {
    ASSERT_EQ_FMT(BAD_USE, command_run("bench physionet-enc --predict titanx --quiet"), "%d");
    ASSERT(command_says("err.txt", "mtan: bench: physionet-enc: what a GPU would do is counted in float"));
    ASSERT_EQ_FMT((size_t)0, command_bytes("out.txt"), "%zu");
    PASS();
}

SUITE(bench_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(it_counts_in_float_alone);
}

#endif
