/* What `mtan compare` computes: differences of small files written in memory, and paired metrics of predictions made
 * up so that the answer is known. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "../../tools/mtan/command/difference.h"
#include "../../tools/mtan/base/json_text.h"
#include "../../tools/mtan/torch/torchfile.h"

typedef struct made_file {
    void *blob;
    tensor_set set;
} made_file;

static void make_file(made_file *f, const mtan_file_entry *entries, size_t n, const mtan_file_pair *pairs,
                      size_t n_pairs) {
    size_t bytes = 0;
    char error[512];
    if (mtan_file_write_size(entries, n, pairs, n_pairs, &bytes) != MTAN_OK) exit(2);
    f->blob = guard_alloc(bytes);
    if (mtan_file_write_memory(entries, n, pairs, n_pairs, f->blob, bytes, &bytes) != MTAN_OK) exit(2);
    if (!tensor_set_open(&f->set, "made", f->blob, bytes, error)) exit(2);
}

static int drop_file(made_file *f) {
    tensor_set_close(&f->set);
    return guard_free(f->blob);
}

static const float one[6] = {1, 2, 3, 4, 5, 6}, other[6] = {1, 2, 3, 4.5f, 5, 5.75f};

static tensor_difference *find(const differences *d, const char *name) {
    for (size_t i = 0; i < arrlenu(d->tensors); i++)
        if (strcmp(d->tensors[i].name, name) == 0) return &d->tensors[i];
    return NULL;
}

TEST tensors_are_matched_by_name_in_any_order(void) {
    const mtan_file_entry a[] = {{"w", MTAN_DTYPE_F32, 2, {2, 3}, one},
                                 {"v", MTAN_DTYPE_F32, 1, {3}, one},
                                 {"shape", MTAN_DTYPE_F32, 2, {2, 3}, one},
                                 {"gone", MTAN_DTYPE_F32, 1, {2}, one}};
    const mtan_file_entry b[] = {{"new", MTAN_DTYPE_F32, 1, {1}, one},
                                 {"shape", MTAN_DTYPE_F32, 2, {3, 2}, one},
                                 {"v", MTAN_DTYPE_F32, 1, {3}, other},
                                 {"w", MTAN_DTYPE_F32, 2, {2, 3}, other}};
    made_file f, g;
    differences d;
    make_file(&f, a, 4, NULL, 0);
    make_file(&g, b, 4, NULL, 0);
    differences_find(&d, &f.set, &g.set);
    ASSERT_EQ_FMT((size_t)5, arrlenu(d.tensors), "%zu");
    ASSERT_EQ(DIFFERENCE_VALUES, find(&d, "w")->kind);
    ASSERT_EQ_FMT(0.5, find(&d, "w")->largest, "%g");
    ASSERT_EQ_FMT((size_t)3, find(&d, "w")->where, "%zu");
    /* sqrt(0.25 + 0.0625) / sqrt(1 + 4 + 9 + 16 + 25 + 36) */
    ASSERT(fabs(find(&d, "w")->relative - sqrt(0.3125 / 91)) < 1e-15);
    ASSERT_EQ(DIFFERENCE_NONE, find(&d, "v")->kind);
    ASSERT_EQ(DIFFERENCE_SHAPE, find(&d, "shape")->kind);
    ASSERT_EQ(DIFFERENCE_ONLY_A, find(&d, "gone")->kind);
    ASSERT_EQ(DIFFERENCE_ONLY_B, find(&d, "new")->kind);
    ASSERT(!differences_equal(&d, 1e9)); /* no tolerance makes up for a missing tensor */
    differences_free(&d);
    ASSERT(drop_file(&f) && drop_file(&g));
    PASS();
}

TEST a_tolerance_is_inclusive_and_zero_means_equal_bits(void) {
    static const float plus[1] = {0.0f}, minus[1] = {-0.0f};
    const mtan_file_entry a[] = {{"w", MTAN_DTYPE_F32, 1, {6}, one}, {"zero", MTAN_DTYPE_F32, 1, {1}, plus}};
    const mtan_file_entry b[] = {{"w", MTAN_DTYPE_F32, 1, {6}, other}, {"zero", MTAN_DTYPE_F32, 1, {1}, plus}};
    const mtan_file_entry c[] = {{"w", MTAN_DTYPE_F32, 1, {6}, one}, {"zero", MTAN_DTYPE_F32, 1, {1}, minus}};
    made_file f, g, h;
    differences d;
    make_file(&f, a, 2, NULL, 0);
    make_file(&g, b, 2, NULL, 0);
    make_file(&h, c, 2, NULL, 0);
    differences_find(&d, &f.set, &g.set);
    ASSERT(differences_equal(&d, 0.5) && !differences_equal(&d, 0.49) && !differences_equal(&d, 0));
    differences_free(&d);
    differences_find(&d, &f.set, &h.set);
    ASSERT(!differences_equal(&d, 0) && differences_equal(&d, 1e-300)); /* 0 and -0: other bits, no distance */
    ASSERT_EQ_FMT(0.0, d.tensors[1].relative, "%g");
    differences_free(&d);
    differences_find(&d, &f.set, &f.set);
    ASSERT(differences_equal(&d, 0));
    differences_free(&d);
    ASSERT(drop_file(&f) && drop_file(&g) && drop_file(&h));
    PASS();
}

/* The same numbers in another type are near but not the same bits; whole numbers are compared as such. */
TEST types_are_compared_by_value(void) {
    static const double wide[6] = {1, 2, 3, 4, 5, 6.5};
    static const int64_t step[1] = {1000}, later[1] = {1003};
    const mtan_file_entry a[] = {{"w", MTAN_DTYPE_F32, 1, {6}, one}, {"step", MTAN_DTYPE_I64, 0, {0}, step}};
    const mtan_file_entry b[] = {{"w", MTAN_DTYPE_F64, 1, {6}, wide}, {"step", MTAN_DTYPE_I64, 0, {0}, later}};
    made_file f, g;
    differences d;
    make_file(&f, a, 2, NULL, 0);
    make_file(&g, b, 2, NULL, 0);
    differences_find(&d, &f.set, &g.set);
    ASSERT_EQ_FMT(0.5, find(&d, "w")->largest, "%g");
    ASSERT_EQ_FMT((size_t)5, find(&d, "w")->where, "%zu");
    ASSERT_EQ_FMT(3.0, find(&d, "step")->largest, "%g");
    ASSERT_EQ_FMT(0.003, find(&d, "step")->relative, "%g");
    differences_free(&d);
    ASSERT(drop_file(&f) && drop_file(&g));
    PASS();
}

TEST nan_and_infinity_are_never_near(void) {
    const float with_nan[3] = {1, NAN, 3}, with_infinity[3] = {1, INFINITY, 3}, plain[3] = {1, 2, 3};
    const float *const cases[][2] = {
        {plain, with_nan}, {with_nan, plain}, {plain, with_infinity}, {with_infinity, with_nan}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const mtan_file_entry a = {"w", MTAN_DTYPE_F32, 1, {3}, cases[i][0]},
                              b = {"w", MTAN_DTYPE_F32, 1, {3}, cases[i][1]};
        made_file f, g;
        differences d;
        make_file(&f, &a, 1, NULL, 0);
        make_file(&g, &b, 1, NULL, 0);
        differences_find(&d, &f.set, &g.set);
        ASSERT(isinf(d.tensors[0].largest) && isinf(d.tensors[0].relative) && !differences_equal(&d, 1e300));
        ASSERT_EQ_FMT((size_t)1, d.tensors[0].where, "%zu");
        differences_free(&d);
        ASSERT(drop_file(&f) && drop_file(&g));
    }
    PASS();
}

TEST metadata_that_differs_is_named(void) {
    const mtan_file_entry w = {"w", MTAN_DTYPE_F32, 1, {3}, one};
    const mtan_file_pair a[] = {{"mtan.latent", "20"}, {"same", "x"}, {"mtan.run.epoch", "3"}, {"gone", "y"}};
    const mtan_file_pair run[] = {{"mtan.run.seconds", "1"}, {"mtan.plan.lr", "2"}, {"mtan.golden.output", "3"}};
    const mtan_file_pair b[] = {{"new", "z"}, {"mtan.run.epoch", "4"}, {"same", "x"}, {"mtan.latent", "21"}};
    made_file f, g;
    differences d;
    make_file(&f, &w, 1, a, 4);
    make_file(&g, &w, 1, b, 4);
    differences_find(&d, &f.set, &g.set);
    ASSERT_EQ_FMT((size_t)4, arrlenu(d.metadata), "%zu");
    ASSERT_STR_EQ("mtan.latent", d.metadata[0].key);
    ASSERT_STR_EQ("20", d.metadata[0].a);
    ASSERT_STR_EQ("21", d.metadata[0].b);
    ASSERT_STR_EQ("mtan.run.epoch", d.metadata[1].key);
    ASSERT(d.metadata[0].counts && !d.metadata[1].counts);
    ASSERT(!d.metadata[2].b && strcmp(d.metadata[2].key, "gone") == 0);
    ASSERT(!d.metadata[3].a && strcmp(d.metadata[3].key, "new") == 0);
    ASSERT(!differences_equal(&d, 0));
    differences_free(&d);
    ASSERT(drop_file(&g));
    make_file(&g, &w, 1, a + 1, 1);
    differences_find(&d, &g.set, &g.set);
    ASSERT(differences_equal(&d, 0) && arrlen(d.metadata) == 0);
    differences_free(&d);
    ASSERT(drop_file(&f) && drop_file(&g));
    make_file(&f, &w, 1, run, 3);
    make_file(&g, &w, 1, NULL, 0);
    differences_find(&d, &f.set, &g.set);
    ASSERT(differences_equal(&d, 0) && arrlen(d.metadata) == 3); /* shown, but not counted */
    differences_free(&d);
    ASSERT(drop_file(&f) && drop_file(&g));
    PASS();
}

/* A checkpoint as the published scripts save it, beside the model file made of it: the names agree, and neither the
 * optimiser nor the metadata counts. */
TEST a_checkpoint_is_compared_with_a_model_file(void) {
    static const mtan_real weight[2] = {1, 2}, moved[2] = {1, 2.5};
    const mtan_file_entry same = {"rec.w", MTAN_DTYPE_REAL, 1, {2}, weight},
                          far = {"rec.w", MTAN_DTYPE_REAL, 1, {2}, moved};
    const mtan_file_pair pair = {"mtan.kind", "enc"};
    torch_writer w;
    uint8_t *checkpoint;
    made_file f, g;
    tensor_set set;
    differences d;
    char error[512];
    torch_begin(&w);
    torch_put_open(&w, TORCH_DICT);
    torch_put_text(&w, "epoch"), torch_put_whole(&w, 7);
    torch_put_text(&w, "rec_state_dict"), torch_put_open(&w, TORCH_ORDERED_DICT);
    torch_put_text(&w, "w"), torch_put_tensor(&w, 1, 2, 1, weight);
    torch_put_close(&w, TORCH_ORDERED_DICT);
    torch_put_text(&w, "optimizer_state_dict"), torch_put_open(&w, TORCH_DICT);
    torch_put_whole(&w, 0), torch_put_tensor(&w, 1, 2, 1, weight);
    torch_put_close(&w, TORCH_DICT);
    torch_put_close(&w, TORCH_DICT);
    checkpoint = torch_finish(&w);
    ASSERT(checkpoint && tensor_set_open(&set, "checkpoint", checkpoint, arrlenu(checkpoint), error));
    ASSERT_EQ_FMT((size_t)2, arrlenu(set.tensors), "%zu");
    ASSERT_STR_EQ("rec.w", set.tensors[0].name);
    ASSERT_STR_EQ("optimizer.0", set.tensors[1].name);
    ASSERT_STR_EQ("epoch", set.metadata[0].name);
    ASSERT_STR_EQ("7", set.metadata[0].text);
    make_file(&f, &same, 1, &pair, 1);
    make_file(&g, &far, 1, &pair, 1);
    differences_find(&d, &set, &f.set);
    ASSERT(arrlen(d.tensors) == 1 && d.tensors[0].largest == 0 && differences_equal(&d, 1e-300));
    ASSERT(!d.metadata_compared);
    differences_free(&d);
    differences_find(&d, &g.set, &set);
    ASSERT(arrlen(d.tensors) == 1 && d.tensors[0].largest == 0.5 && !differences_equal(&d, 0.25));
    differences_free(&d);
    tensor_set_close(&set);
    arrfree(checkpoint);
    ASSERT(drop_file(&f) && drop_file(&g));
    PASS();
}

TEST what_is_neither_is_refused(void) {
    static const char *const texts[] = {"", "PK\3\4", "\x80\2", "\x80\2.", "record,time", "12345678{}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const size_t n = strlen(texts[i]);
        char *blob = guard_alloc(n ? n : 1), error[512] = "";
        tensor_set set;
        memcpy(blob, texts[i], n);
        ASSERT(!tensor_set_open(&set, "file", blob, n, error));
        if (strncmp(error, "file: ", 6) != 0) FAILm(error);
        ASSERT(guard_free(blob));
    }
    PASS();
}

/* ---- predictions ---- */

enum { ROWS = 400 };

/* Scores and labels of the example in scikit-learn's documentation of roc_auc_score: 0.75. */
TEST metrics_of_both_sides_are_known(void) {
    static const double score[4] = {0.1, 0.4, 0.35, 0.8}, better[4] = {0.1, 0.3, 0.35, 0.8};
    static const double p[8] = {0.75, 0.25, 0.25, 0.75, 0.75, 0.25, 0.25, 0.75},
                        q[8] = {0.75, 0.25, 0.75, 0.25, 0.5, 0.5, 0.25, 0.75};
    static const int32_t label[4] = {0, 0, 1, 1};
    paired x = {4, 2, label, NULL, {p, q}, {score, better}, {NULL, NULL}, NULL};
    paired_metric *m = paired_metrics(&x, 0, 0);
    ASSERT_EQ_FMT((size_t)3, arrlenu(m), "%zu");
    ASSERT_STR_EQ("auc", m[0].name);
    ASSERT(fabs(m[0].a - 0.75) < 1e-15 && fabs(m[0].b - 1) < 1e-15);
    ASSERT_STR_EQ("accuracy", m[1].name);
    ASSERT(fabs(m[1].a - 0.5) < 1e-15 && fabs(m[1].b - 0.75) < 1e-15); /* a tie goes to the first class */
    ASSERT_STR_EQ("log-loss", m[2].name);
    ASSERT(fabs(m[2].a + (2 * log(0.75) + 2 * log(0.25)) / 4) < 1e-12);
    ASSERT(fabs(m[2].b + (3 * log(0.75) + log(0.5)) / 4) < 1e-12);
    ASSERT(isnan(m[0].difference.low) && isnan(m[0].difference.high)); /* no draws asked for */
    ASSERT_EQ_FMT((size_t)1, paired_changes(&x), "%zu");
    arrfree(m);
    PASS();
}

TEST equal_predictions_differ_by_nothing(void) {
    double p[2 * ROWS], score[ROWS];
    int32_t label[ROWS];
    paired x = {ROWS, 2, label, NULL, {p, p}, {score, score}, {NULL, NULL}, NULL};
    paired_metric *m;
    for (int i = 0; i < ROWS; i++) {
        label[i] = i % 3 == 0;
        score[i] = (i * 37 % 101) / 101.0;
        p[2 * i] = 1 - score[i], p[2 * i + 1] = score[i];
    }
    m = paired_metrics(&x, 50, 0);
    for (size_t i = 0; i < 3; i++) ASSERT(m[i].difference.low == 0 && m[i].difference.high == 0);
    ASSERT_EQ_FMT((size_t)0, paired_changes(&x), "%zu");
    arrfree(m);
    PASS();
}

/* B's squared error is above A's by 3 in half of the records and below by 1 in the others: 1 in the mean, 2 as the
 * standard deviation, so the interval is about 1 -+ 1.96 * 2 / sqrt(400) = 1 -+ 0.196. Unpaired it would be 1400
 * times as wide. */
TEST the_interval_is_that_of_pairs(void) {
    double a[ROWS], b[ROWS], points[ROWS];
    paired x;
    paired_metric *m, *again;
    memset(&x, 0, sizeof x);
    x.n = ROWS, x.squared_sum[0] = a, x.squared_sum[1] = b, x.points = points;
    for (int i = 0; i < ROWS; i++) {
        points[i] = 1;
        a[i] = 1000.0 * (i % 7);
        b[i] = a[i] + (i % 2 ? 3 : -1);
    }
    m = paired_metrics(&x, 2000, 7);
    again = paired_metrics(&x, 2000, 7);
    ASSERT_EQ_FMT((size_t)1, arrlenu(m), "%zu");
    ASSERT_STR_EQ("mse", m[0].name);
    ASSERT(fabs(m[0].b - m[0].a - 1) < 1e-9);
    ASSERT(fabs(m[0].difference.low - (1 - 0.196)) < 0.04 && fabs(m[0].difference.high - (1 + 0.196)) < 0.04);
    ASSERT(m[0].difference.low == again[0].difference.low && m[0].difference.high == again[0].difference.high);
    arrfree(m);
    arrfree(again);
    PASS();
}

/* Rows of one record come together: with all rows of a record alike, 8 records of 50 rows are 8 draws and not 400. The
 * accuracy of B is 1 and that of A 1 in half of the records: 0.5 -+ 1.96 * 0.5 / sqrt(8), in steps of 1/8. */
TEST records_are_drawn_whole(void) {
    double p[2 * ROWS], q[2 * ROWS], score[ROWS];
    int32_t label[ROWS], record[ROWS];
    paired x = {ROWS, 2, label, record, {p, q}, {score, score}, {NULL, NULL}, NULL};
    paired_metric *m;
    for (int i = 0; i < ROWS; i++) {
        const int wrong = i / 50 % 2;
        label[i] = i % 2, record[i] = 3 + i / 50, score[i] = i;
        q[2 * i] = !label[i], q[2 * i + 1] = label[i];
        p[2 * i] = wrong ? label[i] : !label[i], p[2 * i + 1] = 1 - p[2 * i];
    }
    m = paired_metrics(&x, 2000, 0);
    ASSERT(fabs(m[1].b - m[1].a - 0.5) < 1e-12);
    ASSERT(fabs(m[1].difference.low - 0.125) < 1e-12 && fabs(m[1].difference.high - 0.875) < 1e-12);
    ASSERT_EQ_FMT((size_t)200, paired_changes(&x), "%zu");
    arrfree(m);
    PASS();
}

/* ---- JSON ---- */

static const char *written(const char *text, double number) {
    static char back[128];
    FILE *f = tmpfile();
    size_t n;
    if (!f) perror("mtan: tmpfile"), exit(2);
    if (text) json_string(f, text);
    else json_number(f, number);
    rewind(f);
    n = fread(back, 1, sizeof back - 1, f);
    back[n] = 0;
    fclose(f);
    return back;
}

/* A byte that is no UTF-8 (alone, overlong, half of a pair, cut off) becomes U+FFFD. */
TEST json_is_valid_whatever_comes(void) {
    ASSERT_STR_EQ("\"a\\\"b\\\\c\"", written("a\"b\\c", 0));
    ASSERT_STR_EQ("\"\\u000a\\u001b[31m\"", written("\n\033[31m", 0));
    ASSERT_STR_EQ("\"\xC3\xA9\xF0\x9F\x98\x80\"", written("\xC3\xA9\xF0\x9F\x98\x80", 0));
    ASSERT_STR_EQ("\"\xEF\xBF\xBDx\"", written("\xFFx", 0));
    ASSERT_STR_EQ("\"\xEF\xBF\xBD\xEF\xBF\xBD\"", written("\xC0\xAF", 0));
    ASSERT_STR_EQ("\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"", written("\xED\xA0\x80", 0));
    ASSERT_STR_EQ("\"\xEF\xBF\xBD\xEF\xBF\xBD\"", written("\xE2\x82", 0));
    ASSERT_STR_EQ("null", written(NULL, NAN));
    ASSERT_STR_EQ("null", written(NULL, -INFINITY));
    ASSERT_STR_EQ("0.1", written(NULL, 0.1));
    ASSERT_EQ(1.0 / 3, strtod(written(NULL, 1.0 / 3), NULL));
    PASS();
}

SUITE(compare_suite) {
    RUN_TEST(tensors_are_matched_by_name_in_any_order);
    RUN_TEST(a_tolerance_is_inclusive_and_zero_means_equal_bits);
    RUN_TEST(types_are_compared_by_value);
    RUN_TEST(nan_and_infinity_are_never_near);
    RUN_TEST(metadata_that_differs_is_named);
    RUN_TEST(a_checkpoint_is_compared_with_a_model_file);
    RUN_TEST(what_is_neither_is_refused);
    RUN_TEST(metrics_of_both_sides_are_known);
    RUN_TEST(equal_predictions_differ_by_nothing);
    RUN_TEST(the_interval_is_that_of_pairs);
    RUN_TEST(records_are_drawn_whole);
    RUN_TEST(json_is_valid_whatever_comes);
}
