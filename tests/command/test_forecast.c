/* Forecasts: what is held out of a record, and the commands from training to the numbers beside last value and mean. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/data/dataset.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/measure/interpolation.h"
#include "check.h"
#include "command_line.h"

TEST the_end_of_a_record_is_held_out(void) {
    static const mtan_real times[] = {0, 1, 4, 5, 6};
    dataset d;
    holdout h;
    memset(&d, 0, sizeof d);
    dataset_add_record(&d, "a", -1);
    for (int i = 0; i < 5; i++) dataset_add_event(&d, times[i], i % 2, (mtan_real)i);
    dataset_end_record(&d);
    d.horizon = 2;
    holdout_make(&h, &d, 0, 0.5); /* 4 is as far away as the horizon is long: it is the past */
    ASSERT_EQ(3u, arrlenu(h.seen));
    ASSERT_EQ(2u, arrlenu(h.held));
    ASSERT(h.seen[2].time == 4 && h.held[0].time == 5 && h.held[1].value == 4);
    holdout_free(&h);
    d.horizon = 100; /* longer than the record: its first time is shown all the same */
    holdout_make(&h, &d, 0, 0.5);
    ASSERT(arrlenu(h.seen) == 1 && arrlenu(h.held) == 4);
    holdout_free(&h);
    dataset_free(&d);
    PASS();
}

#define SMALL                                                                                                          \
    "--enc-hidden 8 --embed 8 --ref-points 6 --latent 2 --dec-hidden 4 --mlp-hidden 4 --epochs 2 --seed 1 --threads "  \
    "1 "
#define TRAIN "train own --data @/events.csv --out @/run " SMALL

TEST a_forecast_is_trained_and_measured(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--model interp --variance learned --forecast 0.3"), "%d");
    ASSERT(command_says("err.txt", "without a model: the mean ") && command_says("err.txt", ", the last value "));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/run/best.safetensors --full"), "%d");
    ASSERT(command_says("out.txt", "mtan.data.forecast"));
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/events.csv --bootstrap 0"), "%d");
    ASSERT(command_says("out.txt", "  last 0.3 ") && command_says("out.txt", "nearest shown"));
    ASSERT(command_says("out.txt", "\nThe model "));
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/events.csv --bootstrap 0 --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "\"forecast\": 0.3"));
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/events.csv --observed 0.5 --bootstrap 0"),
                  "%d");
    ASSERT(command_says("out.txt", "50 %")); /* a share, where one is asked for */
    PASS();
}

/* Ten steps for each record, all behind its last observation. */
TEST the_future_is_predicted(void) {
    int rows = 0;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--model interp --forecast 0.3 --quiet"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/run/best.safetensors --data @/events.csv --forecast 0.3 --quiet"),
                  "%d");
    char *text = command_text("out.txt");
    for (char *line = strtok(text, "\n"); (line = strtok(NULL, "\n")) != NULL; rows++)
        ASSERT(strcmp(line + strlen(line) - 2, ",1") == 0);
    free(text);
    ASSERT(rows > 0 && rows % (10 * COMMAND_RECORDS) == 0);
    PASS();
}

enum { LINES = 20, HOURS = 12, AHEAD = 3 };

static double line_value(int record, int hour) {
    return 5 + record % 5 + 0.5 * hour + 0.3 * ((record * 7 + hour * 5) % 4);
}

/* Records with a value every hour: all of them, and those that a model sees before it forecasts the last AHEAD hours. */
static void write_lines(void) {
    char line[64];
    command_write("lines.csv", "record,time,channel,value\n");
    command_write("past.csv", "record,time,channel,value\n");
    for (int r = 0; r < LINES; r++)
        for (int h = 0; h < HOURS; h++) {
            snprintf(line, sizeof line, "r%d,%d,heat,%.9g\n", r, h, line_value(r, h));
            command_append("lines.csv", line);
            if (h < HOURS - AHEAD) command_append("past.csv", line);
        }
}

/* The held-out points as `mtan interpolate` predicts them without further options. */
static void measure_output(double *mse, double *inside) {
    char *text = command_text("out.txt");
    int record, hour, points = 0;
    double mean, sd;
    *mse = *inside = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (sscanf(line, "r%d,%d,heat,%lf,%lf", &record, &hour, &mean, &sd) != 4 || hour < HOURS - AHEAD) continue;
        const double error = mean - line_value(record, hour);
        *mse += error * error, *inside += fabs(error) <= 1.2815515655446004 * sd, points++;
    }
    *mse /= points, *inside /= points;
    free(text);
}

/* The curves of a model with a learned variance are those that eval measures; any other model has a deviation only
 * with samples. */
TEST the_curves_are_those_that_eval_measures(void) {
    double mse, inside;
    char *text;
    write_lines();
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --data @/lines.csv --out @/lines --model interp --scale none --forecast 3 "
                              "--quiet " SMALL),
                  "%d");
    ASSERT_EQ_FMT(
        DONE, command_run("eval @/lines/best.safetensors --data @/lines.csv --split all --bootstrap 0 --json"), "%d");
    text = command_text("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/lines/best.safetensors --data @/past.csv --at 0:11:1"), "%d");
    measure_output(&mse, &inside);
    ASSERT_NEAR(command_json(text, "\"interpolation\"", "mse_held_out"), mse, 1e-5 * mse);
    ASSERT_NEAR(command_json(text, "\"bands\"", "in_80"), inside, 1e-6);
    free(text);
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --data @/lines.csv --out @/fixed --model interp --variance fixed --forecast 3 "
                              "--quiet " SMALL),
                  "%d");
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/fixed/best.safetensors --data @/past.csv --at 0:0:1"), "%d");
    text = command_text("out.txt");
    double sd = 0;
    ASSERT(sscanf(strchr(text, '\n'), "\nr0,0,heat,%*f,%lf", &sd) == 1 && sd > 0);
    free(text);
    PASS();
}

TEST what_cannot_be_forecast_is_refused(void) {
    ASSERT(command_refused(TRAIN "--model enc --labels @/labels.csv --forecast 1",
                           "--forecast is for models that interpolate: --model interp"));
    ASSERT(command_refused(TRAIN "--model interp --observed 0.5 --forecast 1", "one of them"));
    command_tiny("curves", TINY_INTERP, "", 1, NULL, 0);
    ASSERT(command_refused("interpolate @/curves --data @/events.csv --at 0:1:1 --forecast 1", "one of them"));
    ASSERT(command_refused("interpolate @/curves --data @/events.csv", "--at FIRST:LAST:STEP is missing"));
    PASS();
}

SUITE(forecast_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(the_end_of_a_record_is_held_out);
    RUN_TEST(a_forecast_is_trained_and_measured);
    RUN_TEST(the_future_is_predicted);
    RUN_TEST(the_curves_are_those_that_eval_measures);
    RUN_TEST(what_cannot_be_forecast_is_refused);
}
