/* What `mtan check` computes: profiles of small data sets whose every number can be read off, leakage of splits made
 * by hand, problems of files that the test writes. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "../../tools/mtan/check/check_data.h"
#include "../../tools/mtan/base/shell_word.h"

#define COUNT(expected, got) ASSERT_EQ_FMT((size_t)(expected), (size_t)(got), "%zu")

static int near(double got, double expected) {
    const int good = fabs(got - expected) <= 1e-12 * (1 + fabs(expected));
    if (!good) printf("  BAD %.17g, expected %.17g\n", got, expected);
    return good;
}

/* ---- profiles ---- */

static void add(dataset *d, const char *name, int32_t group, int32_t label, const mtan_event *events, size_t n) {
    dataset_add_record(d, name, group);
    for (size_t i = 0; i < n; i++) dataset_add_event(d, events[i].time, events[i].channel, events[i].value);
    dataset_end_record(d);
    if (label != MTAN_UNLABELED) dataset_add_label(d, label);
}

/* Channel 0 has a code, channel 1 is constant, channel 2 never observed. c repeats a under another label, e and f are
 * empty. */
static void make_data(dataset *d) {
    static const mtan_event a[] = {{0, 0, 4}, {1, 0, -1}, {1, 1, 7}, {4, 0, 6}}, b[] = {{2, 0, -1}, {2.5, 0, 9}},
                            single[] = {{3, 1, 7}};
    memset(d, 0, sizeof *d);
    for (int i = 0; i < 3; i++) arrput(d->channels, tool_text(i == 0 ? "x" : i == 1 ? "y" : "z"));
    for (int i = 0; i < 2; i++) arrput(d->classes, tool_text(i ? "yes" : "no"));
    add(d, "a", 0, 1, a, 4);
    add(d, "b", 0, 0, b, 2);
    add(d, "c", 1, 0, a, 4);
    add(d, "d", 1, 0, single, 1);
    add(d, "e", -1, MTAN_UNLABELED, NULL, 0);
    add(d, "f", -1, MTAN_UNLABELED, NULL, 0);
}

TEST records_and_labels_are_counted(void) {
    dataset d;
    profile p;
    make_data(&d);
    profile_make(&p, &d);
    COUNT(6, p.records);
    COUNT(4, p.labelled);
    COUNT(4, p.labels);
    COUNT(3, p.classes[0]);
    COUNT(1, p.classes[1]);
    COUNT(2, p.unobserved);
    COUNT(1, p.single);
    COUNT(11, p.observations);
    COUNT(3 + 2 + 3 + 1, p.stamps);
    ASSERT(near(p.sparsity, 1 - 11.0 / 27));
    profile_free(&p);
    dataset_free(&d);
    PASS();
}

TEST channels_are_described(void) {
    dataset d;
    profile p;
    make_data(&d);
    profile_make(&p, &d);
    COUNT(3, arrlen(p.channels));
    COUNT(3, p.channels[0].records);
    COUNT(8, p.channels[0].observations);
    ASSERT(near(p.channels[0].share, 8.0 / 9));
    ASSERT(near(p.channels[0].low, -1) && near(p.channels[0].median, 4) && near(p.channels[0].high, 9));
    ASSERT(!p.channels[0].constant && near(p.channels[0].code, -1));
    COUNT(3, p.channels[0].codes);
    COUNT(3, p.channels[1].records);
    ASSERT(p.channels[1].constant && near(p.channels[1].median, 7) && isnan(p.channels[1].code));
    COUNT(0, p.channels[2].observations);
    ASSERT(isnan(p.channels[2].low) && isnan(p.channels[2].median) && !p.channels[2].constant);
    profile_free(&p);
    dataset_free(&d);
    PASS();
}

TEST times_and_gaps_are_described(void) {
    static const double quantiles[5] = {0, 0.25, 1.5, 2.75, 3}; /* numpy.quantile([3, 2, 3, 1, 0, 0], ...) */
    dataset d;
    profile p;
    make_data(&d);
    profile_make(&p, &d);
    ASSERT(near(p.first, 0) && near(p.last, 4));
    for (int q = 0; q < 5; q++) ASSERT(near(p.stamps_quantile[q], quantiles[q]));
    ASSERT(near(p.gap_median, 1)); /* 1, 3, 0.5, 1, 3 */
    ASSERT(near(p.gap_largest, 3));
    COUNT(0, p.gap_record);
    profile_free(&p);
    dataset_free(&d);
    PASS();
}

TEST equal_contents_are_found(void) {
    static const int32_t twin[6] = {0, 1, 0, 3, -1, -1};
    dataset d;
    profile p;
    make_data(&d);
    profile_make(&p, &d);
    COUNT(1, p.twins);
    COUNT(1, p.contradicting);
    COUNT(2, p.twin_example);
    ASSERT_MEM_EQ(twin, p.twin, sizeof twin);
    profile_free(&p);
    d.events[d.records[2].event0 + 3].value = 6.5; /* one value apart: no twin any more */
    profile_make(&p, &d);
    COUNT(0, p.twins);
    COUNT(0, p.contradicting);
    profile_free(&p);
    dataset_free(&d);
    PASS();
}

TEST an_empty_set_has_a_profile(void) {
    dataset d;
    profile p;
    memset(&d, 0, sizeof d);
    profile_make(&p, &d);
    COUNT(0, p.records);
    ASSERT(isnan(p.first) && isnan(p.gap_median) && isnan(p.sparsity) && isnan(p.stamps_quantile[2]));
    profile_free(&p);
    PASS();
}

static double code_of(const double *values, size_t n) {
    dataset d;
    profile p;
    double code;
    memset(&d, 0, sizeof d);
    arrput(d.channels, tool_text("x"));
    dataset_add_record(&d, "r", -1);
    for (size_t i = 0; i < n; i++) dataset_add_event(&d, (mtan_real)i, 0, (mtan_real)values[i]);
    dataset_end_record(&d);
    profile_make(&p, &d);
    code = p.channels[0].code;
    profile_free(&p);
    dataset_free(&d);
    return code;
}

TEST codes_stand_alone_at_an_end(void) {
    static const struct {
        double values[6];
        double code;                                                             /* 0: none */
    } cases[] = {{{-1, -1, 60, 70, 80, 90}, -1},  {{-1, 60, 60, 70, 80, 90}, 0}, /* once is no habit */
                 {{-1, -1, -0.9, 0, 1, 2}, 0},    {{-1, -1, 1, 1, 1, -1}, 0},    /* a sign */
                 {{-1, -1, 0, 0, 1, 1}, -1},      {{9999, 9999, 3, 4, 5, 6}, 9999},  {{97, 98, 99, 99, 99, 96}, 0},
                 {{99, 99, 1, 2, 3, 4}, 99},      {{-999, -999, -5, 4, 3, 2}, -999}, {{-9, -9, -8, -7, 0, 1}, 0},
                 {{998, 998, 3, 4, 5, 6}, 0},     {{-1, -1, -1, -1, -1, -1}, 0}, /* constant, and said to be */
                 {{-1, -1, 5, 6, 9999, 9999}, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double code = code_of(cases[i].values, 6);
        if (cases[i].code == 0 ? !isnan(code) : !near(code, cases[i].code)) {
            printf("  case %zu gives %g\n", i, code);
            FAIL();
        }
    }
    PASS();
}

/* ---- leakage ---- */

TEST leakage_is_counted_on_both_sides(void) {
    static const struct {
        int part[6]; /* of records a to f */
        size_t twins, shared_groups, shared_records;
    } cases[] = {{{SPLIT_TRAIN, SPLIT_TRAIN, SPLIT_TEST, SPLIT_TEST, SPLIT_TRAIN, SPLIT_TEST}, 1, 0, 0},
                 {{SPLIT_TRAIN, SPLIT_VALID, SPLIT_TRAIN, SPLIT_TEST, SPLIT_TRAIN, SPLIT_TEST}, 0, 2, 2},
                 {{SPLIT_VALID, SPLIT_TRAIN, SPLIT_TEST, SPLIT_TEST, SPLIT_TRAIN, SPLIT_TEST}, 0, 1, 1},
                 {{SPLIT_TEST, SPLIT_TEST, SPLIT_TRAIN, SPLIT_TRAIN, SPLIT_TRAIN, SPLIT_TEST}, 1, 0, 0}};
    dataset d;
    profile p;
    make_data(&d);
    profile_make(&p, &d);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        split s;
        leakage l;
        memset(&s, 0, sizeof s);
        for (int32_t r = 0; r < 6; r++) arrput(s.part[cases[i].part[r]], r);
        l = profile_leakage(&p, &d, &s);
        COUNT(cases[i].twins, l.twins);
        COUNT(2, l.groups); /* e and f belong to none */
        COUNT(cases[i].shared_groups, l.shared_groups);
        COUNT(cases[i].shared_records, l.shared_records);
        if (i == 0) ASSERT(l.twin_outside == 2 && l.twin_training == 0);
        if (i == 3) ASSERT(l.twin_outside == 0 && l.twin_training == 2);
        split_free(&s);
    }
    profile_free(&p);
    dataset_free(&d);
    PASS();
}

/* ---- suggestions and cost ---- */

TEST settings_follow_the_size(void) {
    static const struct {
        size_t labelled;
        double stamps;
        int32_t batch, hidden, points;
    } cases[] = {{10, 3, 4, 32, 8},        {159, 8, 4, 32, 8},        {160, 9, 8, 32, 16},
                 {499, 33, 16, 32, 64},    {500, 64, 16, 64, 64},     {1279, 65, 32, 64, 128},
                 {1280, 128, 64, 64, 128}, {2000, 500, 64, 128, 128}, {100000, 1, 64, 128, 8}};
    dataset d;
    profile p;
    mtan_real times[1] = {0};
    make_data(&d);
    profile_make(&p, &d);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        suggestion s;
        p.labelled = cases[i].labelled, p.stamps_quantile[2] = cases[i].stamps;
        s = profile_suggest(&p, &d);
        ASSERT_STR_EQ("enc", s.model);
        ASSERT_EQ_FMT(cases[i].batch, s.batch, "%d");
        ASSERT_EQ_FMT(cases[i].hidden, s.hidden, "%d");
        ASSERT_EQ_FMT(cases[i].points, s.ref_points, "%d");
    }
    d.label_times = times;
    ASSERT_STR_EQ("per-time", profile_suggest(&p, &d).model);
    d.label_times = NULL;
    p.classes[1] = 0;
    ASSERT_STR_EQ("interp", profile_suggest(&p, &d).model);
    profile_free(&p);
    dataset_free(&d);
    PASS();
}

TEST the_memory_is_the_trainers(void) {
    int32_t *training = NULL;
    mtan_bounds bounds = {2, 4, 3}; /* a has 4 events at 3 times */
    mtan_train_config train;
    mtan_config config;
    mtan_model model;
    size_t bytes = 0, count;
    mtan_real *weights;
    dataset d;
    cost c;
    make_data(&d);
    for (int32_t r = 0; r < 4; r++) arrput(training, r);
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 3, 2));
    config.enc_hidden = 4, config.embed = 8, config.ref_points = 4, config.head_hidden = 4;
    count = mtan_weights_count(&config);
    weights = tool_calloc(count, sizeof *weights);
    mtan_train_config_init(&train);
    train.dropout = 0.5; /* takes memory of its own */
    ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &config, weights, count));
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&model, &train, &bounds, &bytes));
    c = profile_cost(&config, train, &mtan_backend_scalar, &d, training, 2, 1, 0.01, bytes);
    ASSERT_EQ(MTAN_OK, c.status);
    COUNT(count, c.parameters);
    COUNT(bytes, c.bytes);
    COUNT(2, c.steps);
    ASSERT(c.step_seconds > 0);
    c = profile_cost(&config, train, &mtan_backend_scalar, &d, training, 2, 1, 0, bytes);
    ASSERT(c.status == MTAN_OK && c.rough && c.step_seconds > 0); /* no time for a whole batch */
    c = profile_cost(&config, train, &mtan_backend_scalar, &d, training, 2, 1, 0.01, bytes - 1);
    ASSERT(c.status == MTAN_OK && c.bytes == bytes && isnan(c.step_seconds)); /* too large to be run */
    free(weights);
    arrfree(training);
    dataset_free(&d);
    PASS();
}

/* ---- files with faults ---- */

static char folder[64]; /* of the test that runs */

static const char *write_file(const char *name, const char *text) {
    static char path[4][128];
    static int turn;
    char *at = path[turn++ % 4];
    FILE *f;
    if (!folder[0]) {
        strcpy(folder, "build/check-XXXXXX");
        if (!mkdtemp(folder)) perror("mtan: build"), exit(2);
    }
    snprintf(at, sizeof path[0], "%s/%s", folder, name);
    f = fopen(at, "wb");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) perror("mtan: build"), exit(2);
    return at;
}

static void remove_files(const char *const *names) {
    for (; *names; names++) remove(write_file(*names, ""));
    rmdir(folder);
    folder[0] = 0;
}

static const char *const both_files[] = {"e.csv", "l.csv", NULL};

/* Does problem i name this file and line? */
static int names_line(const problems *p, size_t i, const char *place) {
    const int good = i < arrlenu(p->text) && strstr(p->text[i], place) != NULL;
    if (!good) printf("  BAD problem %zu: %s\n", i, i < arrlenu(p->text) ? p->text[i] : "(none)");
    return good;
}

TEST every_bad_row_is_listed_and_the_good_ones_stay(void) {
    const char *events = write_file("e.csv", "record,time,channel,value\n"
                                             "a,0,x,1\n"
                                             "a,zero,x,1\n" /* 3: no time */
                                             "a,1,x\n"      /* 4: a field too few */
                                             "b,2,y,3\n"
                                             "b,3,y,much\n" /* 6: no value */
                                             ",3,y,1\n"     /* 7: no record */
                                             "b,4,y,\n"     /* nothing: left out, no fault */
                                             "a,5,\"x\",2.5\n"
                                             "b,6,\"y\"z,2\n" /* 10: text behind a quote */
                                             "c,1,x,9\n");
    const char *labels = write_file("l.csv", "record,label\na,yes\nb,no\na,no\nc,\nd,no\n"); /* 4: a twice */
    problems p = {NULL, 20, 0};
    dataset d;
    ASSERT(tolerant_load(&d, &p, events, labels, OWN_ORIGIN_AUTO));
    COUNT(6, p.count);
    ASSERT(names_line(&p, 0, "e.csv:3: ") && names_line(&p, 1, "e.csv:4: ") && names_line(&p, 2, "e.csv:6: "));
    ASSERT(names_line(&p, 3, "e.csv:7: ") && names_line(&p, 4, "e.csv:10: ") && names_line(&p, 5, "l.csv:4: "));
    COUNT(4, arrlen(d.records));
    COUNT(2, d.records[0].n_events);
    COUNT(1, d.records[1].n_events);
    COUNT(1, d.records[2].n_events);
    COUNT(0, d.records[3].n_events);
    ASSERT_STR_EQ("d", dataset_name(&d, 3));
    ASSERT_STR_EQ("no", d.classes[0]);
    ASSERT(d.labels[d.records[0].label0] == 1 && d.labels[d.records[1].label0] == 0 && d.records[2].n_labels == 0);
    dataset_free(&d);
    problems_free(&p);
    remove_files(both_files);
    PASS();
}

TEST a_long_list_is_cut_and_counted(void) {
    const char *events = write_file("e.csv", "record,time,channel,value\na,1,x,1\na,b,x,1\na,c,x,1\na,d,x,1\n");
    problems p = {NULL, 2, 0};
    dataset d;
    ASSERT(tolerant_load(&d, &p, events, NULL, OWN_ORIGIN_AUTO));
    COUNT(3, p.count);
    COUNT(2, arrlen(p.text));
    dataset_free(&d);
    problems_free(&p);
    remove_files(both_files);
    PASS();
}

/* Labels of times that came out of order count from the earliest. */
TEST labels_without_events_start_at_the_first(void) {
    const char *events = write_file("e.csv", "record,time,channel,value\na,1,x,1\n");
    const char *labels = write_file("l.csv", "record,time,label\nz,9,p\nz,4,q\n");
    problems p = {NULL, 2, 0};
    dataset d;
    ASSERT(tolerant_load(&d, &p, events, labels, OWN_ORIGIN_RECORD));
    COUNT(0, p.count);
    COUNT(2, arrlen(d.label_times));
    ASSERT(d.label_times[0] == 0 && d.label_times[1] == 5);
    dataset_free(&d);
    problems_free(&p);
    remove_files(both_files);
    PASS();
}

/* Without faults the two loaders agree to the bit. */
TEST good_files_load_as_they_do_for_training(const char *events_text, const char *labels_text) {
    const char *events = write_file("e.csv", events_text), *labels = write_file("l.csv", labels_text);
    problems p = {NULL, 20, 0};
    dataset d, e;
    ASSERT(tolerant_load(&d, &p, events, labels, OWN_ORIGIN_AUTO));
    ASSERT(own_load(&e, events, labels, NULL));
    COUNT(0, p.count);
    COUNT(arrlen(e.records), arrlen(d.records));
    for (size_t i = 0; i < arrlenu(e.records); i++)
        ASSERT(strcmp(dataset_name(&e, i), dataset_name(&d, i)) == 0 && e.records[i].group == d.records[i].group &&
               e.records[i].n_events == d.records[i].n_events && e.records[i].n_labels == d.records[i].n_labels);
    COUNT(arrlen(e.events), arrlen(d.events));
    for (size_t i = 0; i < arrlenu(e.events); i++)
        ASSERT(d.events[i].time == e.events[i].time && d.events[i].channel == e.events[i].channel &&
               d.events[i].value == e.events[i].value);
    ASSERT(arrlen(d.labels) >= 3);
    COUNT(arrlen(e.labels), arrlen(d.labels));
    ASSERT_MEM_EQ(e.labels, d.labels, arrlenu(d.labels) * sizeof *d.labels);
    ASSERT_EQ(!e.label_times, !d.label_times);
    if (d.label_times) ASSERT_MEM_EQ(e.label_times, d.label_times, arrlenu(d.labels) * sizeof *d.label_times);
    ASSERT_STR_EQ(e.classes[1], d.classes[1]);
    dataset_free(&d), dataset_free(&e);
    problems_free(&p);
    remove_files(both_files);
    PASS();
}

TEST what_cannot_be_read_says_why(void) {
    static const char *const bad[][2] = {
        {"", "empty"}, {"a,b,c\n1,2,3\n", "e.csv:1: "}, {"record,time,channel,value\n", "no record"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        problems p = {NULL, 20, 0};
        dataset d;
        ASSERT(!tolerant_load(&d, &p, write_file("e.csv", bad[i][0]), NULL, OWN_ORIGIN_AUTO));
        COUNT(1, p.count);
        ASSERT(names_line(&p, 0, bad[i][1]));
        problems_free(&p);
    }
    remove_files(both_files);
    PASS();
}

/* ---- words ---- */

TEST words_are_quoted_for_a_shell(void) {
    static const char *const cases[][2] = {{"a-b/c.csv", "x a-b/c.csv"},
                                           {"my data", "x 'my data'"},
                                           {"", "x ''"},
                                           {"it's", "x 'it'\\''s'"},
                                           {"$(rm)", "x '$(rm)'"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64] = "x";
        shell_append(text, sizeof text, cases[i][0]);
        ASSERT_STR_EQ(cases[i][1], text);
    }
    {
        char small[16] = "x";
        shell_append(small, sizeof small, "a very long word that does not fit");
        ASSERT(strlen(small) < sizeof small);
    }
    PASS();
}

TEST the_kind_is_told_by_the_names(void) {
    static const char *const of_physionet[] = {"132539.txt", NULL}, *const of_mimic[] = {"CHARTEVENTS.csv.gz", NULL},
                             *const of_others[] = {"README", NULL};
    ASSERT_STR_EQ("own", data_set_at("events.csv")->name);
    ASSERT_STR_EQ("physionet", data_set_at("some/set-a.tar.gz")->name);
    ASSERT_STR_EQ("activity", data_set_at("some/ConfLongDemo_JSI.txt.gz")->name);
    write_file("132539.txt", "");
    ASSERT_STR_EQ("physionet", data_set_at(folder)->name);
    remove_files(of_physionet);
    write_file("CHARTEVENTS.csv.gz", "");
    ASSERT_STR_EQ("mimic3", data_set_at(folder)->name);
    remove_files(of_mimic);
    write_file("README", "");
    ASSERT(!data_set_at(folder));
    remove_files(of_others);
    PASS();
}

SUITE(check_data_suite) {
    RUN_TEST(records_and_labels_are_counted);
    RUN_TEST(channels_are_described);
    RUN_TEST(times_and_gaps_are_described);
    RUN_TEST(equal_contents_are_found);
    RUN_TEST(an_empty_set_has_a_profile);
    RUN_TEST(codes_stand_alone_at_an_end);
    RUN_TEST(leakage_is_counted_on_both_sides);
    RUN_TEST(settings_follow_the_size);
    RUN_TEST(the_memory_is_the_trainers);
    RUN_TEST(every_bad_row_is_listed_and_the_good_ones_stay);
    RUN_TEST(a_long_list_is_cut_and_counted);
    RUN_TEST(labels_without_events_start_at_the_first);
    RUN_TESTp(good_files_load_as_they_do_for_training,
              "time,record,value,channel\n2,b,1.5,x\n0,a,7,y\n2,b,2.5,x\n1,b,3,y\n0.5,a,1,x\n",
              "record,time,label\nb,2,10\na,1,9\nb,1.5,9\n");
    RUN_TESTp(good_files_load_as_they_do_for_training,
              "subject_id,time,code,numeric_value\nb,2,x,1.5\na,0,y,7\nb,,z,2.5\nb,1,y,3\na,0.5,x,1\nc,,z,1\n",
              "subject_id,prediction_time,boolean_value\nb,1.5,true\nb,2,false\na,,true\n");
    RUN_TEST(what_cannot_be_read_says_why);
    RUN_TEST(words_are_quoted_for_a_shell);
    RUN_TEST(the_kind_is_told_by_the_names);
}
