/* Bands: coverage of normal errors, rows by gap, the factors that validation fits, and what training and eval make of them. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/data/array.h"
#include "../../tools/data/percentile.h"
#include "../../tools/mtan/measure/bands.h"
#include "check.h"
#include "command_line.h"
#include "../../tools/mtan/command/commands.h"

/* n points whose errors are `wide` times as spread as their sd says; gaps 1, 2, 3, 4 in turn, and none for every fifth. */
static band_point *normal_points(size_t n, double wide) {
    mtan_real *noise = malloc(n * sizeof *noise);
    band_point *points = NULL;
    mtan_noise_fill(&mtan_backend_scalar, noise, n, 3, 0, 1, 0);
    for (size_t i = 0; i < n; i++) {
        const double sd = 0.5 + (double)(i % 7);
        const band_point p = {wide * sd * (double)noise[i], sd, i % 5 == 4 ? INFINITY : (double)(1 + i % 5),
                              (int32_t)(i % 2)};
        arrput(points, p);
    }
    free(noise);
    return points;
}

TEST normal_errors_fill_their_bands(void) {
    band_point *points = normal_points(20000, 1);
    band_table t;
    double likelihood = 0;
    for (size_t i = 0; i < arrlenu(points); i++)
        likelihood += log(exp(-0.5 * pow(points[i].error / points[i].sd, 2)) / (points[i].sd * sqrt(2 * acos(-1.0))));
    bands_measure(&t, points);
    ASSERT_EQ(20000u, t.all.points);
    for (int k = 0; k < BAND_LEVELS; k++) ASSERT(fabs(t.all.inside[k] - band_levels[k]) < 0.01);
    ASSERT(fabs(t.all.log_likelihood - likelihood / 20000) < 1e-9);
    arrfree(points);
    PASS();
}

TEST rows_are_cut_between_gaps(void) {
    band_point *points = normal_points(1000, 1);
    band_table t;
    size_t sum = 0;
    bands_measure(&t, points);
    ASSERT_EQ_FMT(5, t.gaps, "%d");
    for (int i = 0; i < t.gaps; i++) {
        ASSERT_EQ(200u, t.gap[i].points);
        if (i < 4) ASSERT(t.gap[i].to == i + 1 && t.gap[i].from == i);
        sum += t.gap[i].points;
    }
    ASSERT(isinf(t.gap[4].to) && sum == t.all.points);
    arrfree(points);
    bands_measure(&t, NULL);
    ASSERT(t.all.points == 0 && t.gaps == 0);
    PASS();
}

/* The factor makes the band of 80 % right, and leaves alone what has too few points to tell. */
TEST factors_widen_to_what_is_true(void) {
    band_point *points = normal_points(20000, 1.7);
    mtan_real factor[3];
    const band_point rare = {9, 1, 1, 2};
    band_table t;
    arrput(points, rare);
    bands_fit(factor, 3, points);
    ASSERT(fabs((double)factor[0] - 1.7) < 0.05 && fabs((double)factor[1] - 1.7) < 0.05);
    ASSERT(factor[2] == 1);
    for (size_t i = 0; i < arrlenu(points); i++) points[i].sd *= (double)factor[points[i].channel];
    bands_measure(&t, points);
    for (int k = 0; k < BAND_LEVELS; k++) ASSERT(fabs(t.all.inside[k] - band_levels[k]) < 0.02);
    arrfree(points);
    PASS();
}

#define SMALL                                                                                                          \
    "--model interp --enc-hidden 8 --embed 8 --ref-points 6 --latent 2 --dec-hidden 4 --mlp-hidden 4 --epochs 2 "      \
    "--seed 1 --quiet"

/* A learned variance: the model file has the bands, eval and the report tell of them, interpolate gives wider ones. */
TEST a_learned_variance_goes_all_the_way(void) {
    ASSERT_EQ_FMT(
        DONE, command_run("train own --data @/events.csv --out @/run --observed 0.5 --variance learned " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("inspect @/run/best.safetensors --full"), "%d");
    ASSERT(command_says("out.txt", "mtan.prep.band") && command_says("out.txt", "mtan.variance"));
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/events.csv --bootstrap 0 --json"), "%d");
    ASSERT(command_is_json("out.txt"));
    char *text = command_text("out.txt");
    const double inside = command_json(text, "\"all\"", "in_80");
    ASSERT(inside > 0.3 && inside <= 1);
    ASSERT(command_json(text, "\"all\"", "points") > 0);
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/events.csv --bootstrap 0 --quiet"), "%d");
    ASSERT(command_says("out.txt", "nearest shown") && command_says("out.txt", "in 95 %"));
    ASSERT_EQ_FMT(DONE, command_run("report @/run --data @/events.csv -o @/page.html --bootstrap 0 --quiet"), "%d");
    ASSERT(command_says("page.html", "<b>Bands</b>") && command_says("page.html", "as the model learned it"));
    PASS();
}

/* The factors multiply what interpolate prints. */
TEST bands_are_in_what_is_printed(void) {
    ASSERT_EQ_FMT(
        DONE, command_run("train own --data @/events.csv --out @/run --observed 0.5 --variance learned " SMALL), "%d");
    double sd[2];
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ_FMT(DONE,
                      command_run("interpolate @/run/best.safetensors --data @/events.csv --at 0:0:1 --json --quiet"),
                      "%d");
        char *text = command_text("out.txt");
        sd[i] = command_json(text, "\"channel\"", "sd");
        free(text);
        command_metadata("run/best.safetensors", "mtan.prep.band", i == 0 ? "2 2" : NULL);
    }
    ASSERT(sd[0] > 0 && sd[1] > 0 && fabs(sd[1] - sd[0]) > 1e-6 * sd[0]);
    command_metadata("run/best.safetensors", "mtan.prep.band", "2 -1");
    ASSERT(command_refused("interpolate @/run/best.safetensors --data @/events.csv --at 0:0:1",
                           "mtan.prep.band must be a number above 0 for each channel"));
    PASS();
}

SUITE(bands_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_learned_variance_goes_all_the_way);
    RUN_TEST(bands_are_in_what_is_printed);
    RUN_TEST(normal_errors_fill_their_bands);
    RUN_TEST(rows_are_cut_between_gaps);
    RUN_TEST(factors_widen_to_what_is_true);
}
