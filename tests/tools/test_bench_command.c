/* mtan bench: work that is counted instead of done, predictions from it, and the command. */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "command_line.h"
#include "tiny_model.h"
#include "../../tools/mtan/command/options.h"
#include "../../tools/mtan/paper/roofline.h"

/* ---- counts ---- */

static const roofline_entry *entry_of(const roofline *r, const char *name) {
    for (int i = 0; r->entry[i].name; i++)
        if (strcmp(r->entry[i].name, name) == 0) return &r->entry[i];
    printf("  BAD no entry %s\n", name);
    exit(2);
}

static void open_counting(tiny_model *s, tiny_kind kind, int32_t records) {
    mtan_train_config config;
    tiny_open(s, kind, records);
    s->model.backend = &roofline_backend;
    mtan_train_config_init(&config);
    config.dropout = 0.25;
    tiny_train(s, &config);
}

/* The work of some steps on the first n records. */
static mtan_status count_steps(roofline *r, tiny_model *s, int32_t n, int steps) {
    mtan_report report;
    mtan_status status = MTAN_OK;
    roofline_reset();
    while (status == MTAN_OK && steps-- > 0) status = mtan_train_step(&s->trainer, s->records, n, 11, &report);
    roofline_read(r);
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
    ASSERT(r.sent > 0 && r.fetched > 0 && r.waits > 0 && r.copies > 0);
    ASSERT(entry_of(&r, "gru_forward")->launches > 0 && entry_of(&r, "gru_backward")->turns > 0);
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
        ASSERT_EQ_FMT(3 * x->calls, y->calls, "%g");
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
        ASSERT_EQ(MTAN_OK, mtan_record_times(&s.records[b], &n));
        times += n;
    }
    roofline_reset();
    ASSERT_EQ(MTAN_OK, mtan_train_loss(&s.trainer, s.records, FEW, 1, &report));
    roofline_read(&few);
    roofline_reset();
    ASSERT_EQ(MTAN_OK, mtan_train_loss(&s.trainer, s.records, MANY, 1, &report));
    roofline_read(&many);
    ASSERT_EQ_FMT(2 * (times * K * c->embed + (MANY - FEW) * (3 * N * D * (K + 1) + N * F + F * F + F * C)),
                  product_flops(&many) - product_flops(&few), "%g");
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- launches: those of platform/cuda/backend.c ---- */

static double launches_of(const char *name) {
    roofline r;
    roofline_read(&r);
    roofline_reset();
    return entry_of(&r, name)->launches;
}

TEST long_sums_take_two_launches(void) {
    const mtan_backend *k = &roofline_backend;
    roofline_reset();
    k->product_nn(NULL, 1, NULL, 1, NULL, 1, 64, 64, 1023, 0);
    ASSERT_EQ_FMT(1.0, launches_of("product_nn"), "%g");
    k->product_nn(NULL, 1, NULL, 1, NULL, 1, 64, 64, 1024, 0);
    ASSERT_EQ_FMT(2.0, launches_of("product_nn"), "%g");
    k->product_tn(NULL, 1, NULL, 1, NULL, 1, 640, 640, 4096, 0); /* a hundred tiles are enough */
    ASSERT_EQ_FMT(1.0, launches_of("product_tn"), "%g");
    k->product_nt(NULL, 1, NULL, 1, NULL, 1, 0, 64, 64, 0);
    ASSERT_EQ_FMT(0.0, launches_of("product_nt"), "%g");
    k->add(NULL, 0, NULL, 3, 64, 3);
    ASSERT_EQ_FMT(1.0, launches_of("add"), "%g");
    k->add(NULL, 0, NULL, 3, 65, 3);
    ASSERT_EQ_FMT(2.0, launches_of("add"), "%g");
    k->add(NULL, 3, NULL, 3, 65, 3);
    ASSERT_EQ_FMT(1.0, launches_of("add"), "%g");
    PASS();
}

TEST wide_grus_take_a_launch_for_each_step(void) {
    mtan_batch b;
    memset(&b, 0, sizeof b);
    b.records = 3, b.steps = 5, b.rows = 15;
    roofline_reset();
    roofline_backend.device->gru_forward(&b, NULL, 1, NULL, 1, NULL, NULL, 1, NULL, 128, 2, 0);
    ASSERT_EQ_FMT(1.0, launches_of("gru_forward"), "%g");
    roofline_backend.device->gru_forward(&b, NULL, 1, NULL, 1, NULL, NULL, 1, NULL, 129, 2, 0);
    ASSERT_EQ_FMT(5.0, launches_of("gru_forward"), "%g");
    roofline_backend.device->gru_backward(&b, NULL, 1, NULL, NULL, NULL, NULL, 1, NULL, 1, 129, 2, 0);
    ASSERT_EQ_FMT(5.0, launches_of("gru_backward"), "%g");
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

static const char *json_value(const char *at);

static const char *json_blank(const char *at) {
    while (isspace((unsigned char)*at)) at++;
    return at;
}

static const char *json_text(const char *at) {
    if (*at++ != '"') return NULL;
    for (; *at != '"'; at++)
        if (*at == 0 || (*at == '\\' && *++at == 0)) return NULL;
    return at + 1;
}

/* Members or elements up to the closing bracket. */
static const char *json_list(const char *at, char end) {
    at = json_blank(at + 1);
    if (*at == end) return at + 1;
    for (;; at++) {
        at = json_blank(at);
        if (end == '}' && (!(at = json_text(at)) || *(at = json_blank(at)) != ':')) return NULL;
        if (!(at = json_value(json_blank(end == '}' ? at + 1 : at)))) return NULL;
        if (*(at = json_blank(at)) != ',') return *at == end ? at + 1 : NULL;
    }
}

/* Where a value ends; NULL: it is none. */
static const char *json_value(const char *at) {
    char *end;
    if (*at == '{') return json_list(at, '}');
    if (*at == '[') return json_list(at, ']');
    if (*at == '"') return json_text(at);
    if (strncmp(at, "null", 4) == 0) return at + 4;
    if (*at != '-' && !isdigit((unsigned char)*at)) return NULL;
    strtod(at, &end);
    return end;
}

static int is_json(const char *name) {
    char *text = command_text(name);
    const char *end = json_value(json_blank(text));
    const int good = end && *json_blank(end) == 0;
    if (!good) printf("  BAD not JSON: %s\n", text);
    free(text);
    return good;
}

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
    ASSERT(command_says("out.txt", "gru_backward"));
    ASSERT_EQ_FMT((size_t)0, command_bytes("err.txt"), "%zu");
    PASS();
}

TEST a_prediction_is_json(void) {
    ASSERT_EQ_FMT(DONE, command_run("bench physionet-enc --predict titanx-pascal --json --quiet"), "%d");
    ASSERT(is_json("out.txt"));
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
    ASSERT(is_json("out.txt"));
    ASSERT(number_behind("out.txt", "\"measured_records\": ") == 4);
    ASSERT(number_behind("out.txt", "\"threads\": ") == 1);
    ASSERT(number_behind("out.txt", "\"seconds\": ") > 0);
    ASSERT(number_behind("out.txt", "\"titanx-maxwell\": ") > 0);
    PASS();
}

TEST what_cannot_be_measured_is_said(void) {
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

SUITE(bench_command_suite) {
    for (int kind = 0; kind < TINY_KINDS; kind++) {
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TESTp(nothing_is_computed, (tiny_kind)kind);
    }
    RUN_TEST(counts_are_the_same_again);
    RUN_TEST(counts_grow_with_the_batches);
    RUN_TEST(products_are_those_of_the_formula);
    RUN_TEST(long_sums_take_two_launches);
    RUN_TEST(wide_grus_take_a_launch_for_each_step);
    RUN_TEST(time_is_launches_and_the_narrower_roof);
    RUN_TEST(the_newer_card_is_faster);
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_prediction_names_both_cards);
    RUN_TEST(a_prediction_is_json);
    RUN_TEST(a_part_of_an_epoch_is_scaled);
    RUN_TEST(what_cannot_be_measured_is_said);
}
