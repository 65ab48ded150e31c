/* demo: trains mTAND-Full on the synthetic series of the paper's appendix and interpolates the test series.
 *
 *     demo [--epochs N] [--seed N] [--lr R] [--threads N] [--quiet]
 *
 * The series are those of the published code: 1000 smooth curves, each seen at 20 random points of [0, 1]; 800 train,
 * 200 test, by the published split. Prints the error on the points seen (reconstruction) and on the whole curve
 * (interpolation) beside two predictors that learn nothing. The number of threads (by default
 * that of the CPUs, at most 8) changes the time and nothing else. Exit status 1 when the model is not at least five
 * times better than the mean, 2 on bad usage.
 */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../mtan.h"
#include "../platform/threads.h"
#include "../simd/mtan_simd.h"
#include "data/synthetic.h"

enum { SERIES = 1000, LENGTH = 20, GRID = SYNTHETIC_TRUTH, BATCH = 25 };

typedef struct {
    double time[SERIES * LENGTH], value[SERIES * LENGTH], truth[SERIES * GRID];
    mtan_event events[SERIES * LENGTH];
    mtan_record records[SERIES];
    mtan_real grid[GRID];
    int32_t order[SERIES];
    int tests; /* order[0 .. tests) is the test set */
} data;

typedef struct {
    int epochs, quiet;
    unsigned seed;
    double lr;
    int threads;
} options;

typedef struct {
    double reconstruction, interpolation; /* mean squared errors on the test series */
} errors;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void die(const char *what, mtan_status status) {
    fprintf(stderr, "mtan: %s: %s\n", what, mtan_status_message(status));
    exit(2);
}

static void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (!memory) fprintf(stderr, "mtan: out of memory\n"), exit(2);
    return memory;
}

static void make_data(data *d) {
    synthetic_smooth(0, SERIES, LENGTH, d->time, d->value, d->truth, NULL);
    for (int i = 0; i < SERIES * LENGTH; i++) {
        d->events[i].time = (mtan_real)d->time[i];
        d->events[i].channel = 0;
        d->events[i].value = (mtan_real)d->value[i];
    }
    for (int g = 0; g < GRID; g++) d->grid[g] = (mtan_real)((double)g / (GRID - 1));
    for (int i = 0; i < SERIES; i++) {
        d->records[i].events = d->events + i * LENGTH;
        d->records[i].n_events = LENGTH;
        d->records[i].id = mtan_hash(&i, sizeof i);
    }
    d->tests = (int)mtan_split(d->order, SERIES, 0.8, 42);
}

/* ---- predictors: a curve at the grid, and at the points seen, from the points seen ---- */

typedef void (*curve)(void *context, const data *d, int series, double at_points[LENGTH], double at_grid[GRID]);

static void predict_mean(void *context, const data *d, int series, double at_points[LENGTH], double at_grid[GRID]) {
    double mean = 0;
    (void)context;
    for (int i = 0; i < LENGTH; i++) mean += d->value[series * LENGTH + i] / LENGTH;
    for (int i = 0; i < LENGTH; i++) at_points[i] = mean;
    for (int g = 0; g < GRID; g++) at_grid[g] = mean;
}

/* Straight lines between neighbours in time, flat before the first and after the last. */
static void predict_linear(void *context, const data *d, int series, double at_points[LENGTH], double at_grid[GRID]) {
    const double *t = d->time + series * LENGTH, *x = d->value + series * LENGTH;
    (void)context;
    for (int i = 0; i < LENGTH; i++) at_points[i] = x[i];
    for (int g = 0, i = 0; g < GRID; g++) {
        const double at = (double)g / (GRID - 1);
        while (i < LENGTH && t[i] <= at) i++; /* times are sorted: i is the first one beyond */
        if (i == 0) at_grid[g] = x[0];
        else if (i == LENGTH) at_grid[g] = x[LENGTH - 1];
        else at_grid[g] = x[i - 1] + (x[i] - x[i - 1]) * (at - t[i - 1]) / (t[i] - t[i - 1]);
    }
}

static void predict_model(void *context, const data *d, int series, double at_points[LENGTH], double at_grid[GRID]) {
    mtan_record r = d->records[series];
    mtan_real times[LENGTH + GRID], mean[LENGTH + GRID];
    mtan_status status;
    for (int i = 0; i < LENGTH; i++) times[i] = r.events[i].time;
    memcpy(times + LENGTH, d->grid, sizeof d->grid);
    r.times = times;
    r.n_times = LENGTH + GRID;
    if ((status = mtan_interpolate(context, &r, mean, NULL)) != MTAN_OK) die("interpolate", status);
    for (int i = 0; i < LENGTH; i++) at_points[i] = (double)mean[i];
    for (int g = 0; g < GRID; g++) at_grid[g] = (double)mean[LENGTH + g];
}

static errors measure(const data *d, curve predict, void *context) {
    double points[LENGTH], grid[GRID];
    errors e = {0, 0};
    for (int k = 0; k < d->tests; k++) {
        const int s = d->order[k];
        predict(context, d, s, points, grid);
        for (int i = 0; i < LENGTH; i++) e.reconstruction += pow(points[i] - d->value[s * LENGTH + i], 2);
        for (int g = 0; g < GRID; g++) e.interpolation += pow(grid[g] - d->truth[s * GRID + g], 2);
    }
    e.reconstruction /= d->tests * LENGTH;
    e.interpolation /= d->tests * GRID;
    return e;
}

/* ---- the model ---- */

static void configure(mtan_config *c) {
    mtan_recipe recipe;
    mtan_status status = mtan_recipe_named(&recipe, "toy-interp", MTAN_CORRECT);
    if (status != MTAN_OK) die("toy-interp", status);
    *c = recipe.config;
    c->latent = 10; /* the paper's table; the published command has 1 (Q44) */
    c->embed = 32;  /* this and the next: a quarter of the arithmetic, the same error in the end */
    c->dec_hidden = 20;
    c->samples = 1;
    c->noise_std = 0.05;
}

static double rate(void *context, int64_t step, int32_t epoch) {
    const options *o = context;
    (void)step;
    return epoch > o->epochs * 4 / 5 ? 0.2 : 1;
}

static void train(const data *d, mtan_model *model, mtan_real *weights, const options *o) {
    const mtan_bounds bounds = {BATCH, LENGTH, LENGTH};
    const int n = SERIES - d->tests, *order = d->order + d->tests;
    mtan_record *batch = allocate(BATCH * sizeof *batch);
    int32_t *shuffled = allocate((size_t)n * sizeof *shuffled);
    mtan_train_config config;
    mtan_trainer trainer;
    mtan_mt19937 rng;
    mtan_pool pool;
    mtan_status status;
    size_t bytes;
    void *memory;
    const double start = seconds();
    mtan_mt_seed(&rng, o->seed);
    mtan_train_config_init(&config);
    config.lr = o->lr;
    config.seed = o->seed;
    config.schedule = rate;
    config.schedule_context = (void *)(size_t)o;
    config.clip = 1;
    if (mtan_pool_start(&pool, o->threads) != MTAN_OK)
        fprintf(stderr, "mtan: %d threads instead of %d\n", (int)pool.threads, o->threads);
    config.parallel_for = mtan_pool_run, config.parallel_context = &pool, config.threads = pool.threads;
    if ((status = mtan_trainer_size(model, &config, &bounds, &bytes)) != MTAN_OK) die("trainer", status);
    memory = allocate(bytes);
    if ((status = mtan_trainer_init(&trainer, model, weights, &config, &bounds, memory, bytes)) != MTAN_OK)
        die("trainer", status);
    for (int epoch = 1; epoch <= o->epochs; epoch++) {
        double loss = 0, squared = 0, cells = 0;
        mtan_numpy_permutation(&rng, shuffled, (size_t)n);
        for (int first = 0; first < n; first += BATCH) {
            mtan_report report;
            int m = 0;
            for (; m < BATCH && first + m < n; m++) batch[m] = d->records[order[shuffled[first + m]]];
            if ((status = mtan_train_step(&trainer, batch, m, epoch, &report)) != MTAN_OK) die("train", status);
            loss += report.loss * m, squared += report.squared_error, cells += (double)report.cells;
        }
        if (!o->quiet) {
            fprintf(stderr, "\repoch %d of %d   loss %.4f   squared error %.5f   %.0f s ", epoch, o->epochs, loss / n,
                    squared / cells, seconds() - start);
            fflush(stderr);
        }
    }
    if (!o->quiet) fputc('\n', stderr);
    mtan_pool_stop(&pool);
    free(memory), free(batch), free(shuffled);
}

static void print_row(const char *name, errors e, errors mean) {
    printf("%-22s %14.5f %14.5f   %5.1f %% of the mean's\n", name, e.reconstruction, e.interpolation,
           100 * e.interpolation / mean.interpolation);
}

static options parse(int argc, char **argv) {
    options o = {200, 0, 0, 1e-2, mtan_pool_cpus() < 8 ? mtan_pool_cpus() : 8};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quiet") == 0) o.quiet = 1;
        else if (strcmp(argv[i], "--epochs") == 0 && i + 1 < argc) o.epochs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) o.seed = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--lr") == 0 && i + 1 < argc) o.lr = atof(argv[++i]);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) o.threads = atoi(argv[++i]);
        else {
            const int asked = strcmp(argv[i], "--help") == 0;
            fprintf(asked ? stdout : stderr, "usage: demo [--epochs N] [--seed N] [--lr R] [--threads N] [--quiet]\n");
            exit(asked ? 0 : 2);
        }
    }
    if (o.epochs < 1 || !(o.lr > 0)) fprintf(stderr, "mtan: --epochs and --lr must be above 0\n"), exit(2);
    if (o.threads < 1 || o.threads > MTAN_POOL_MOST)
        fprintf(stderr, "mtan: --threads must be 1 to %d\n", MTAN_POOL_MOST), exit(2);
    return o;
}

int main(int argc, char **argv) {
    const options o = parse(argc, argv);
    const mtan_bounds bounds = {1, LENGTH, LENGTH + GRID};
    data *d = allocate(sizeof *d);
    errors mean, linear, ours;
    mtan_config config;
    mtan_model model;
    mtan_predictor predictor;
    mtan_real *weights;
    mtan_status status;
    size_t bytes;
    void *memory;
    make_data(d);
    configure(&config);
    weights = allocate(mtan_weights_count(&config) * sizeof *weights);
    if ((status = mtan_weights_init(&config, weights, mtan_weights_count(&config), o.seed)) != MTAN_OK)
        die("weights", status);
    if ((status = mtan_model_init(&model, &config, weights, mtan_weights_count(&config))) != MTAN_OK)
        die("model", status);
    model.backend = mtan_backend_best();
    if (!o.quiet)
        printf("mTAND-Full on %d series of %d points, %d held out; %zu weights; backend %s\n", SERIES, LENGTH, d->tests,
               mtan_weights_count(&config), model.backend->name);
    train(d, &model, weights, &o);
    model.config.predict_samples = 0;
    if ((status = mtan_predictor_size(&model, &bounds, &bytes)) != MTAN_OK) die("predictor", status);
    memory = allocate(bytes);
    if ((status = mtan_predictor_init(&predictor, &model, &bounds, memory, bytes)) != MTAN_OK) die("predictor", status);
    mean = measure(d, predict_mean, NULL);
    linear = measure(d, predict_linear, NULL);
    ours = measure(d, predict_model, &predictor);
    printf("%-22s %14s %14s\n", "mean squared error", "reconstruction", "interpolation");
    print_row("mTAND-Full", ours, mean);
    print_row("linear interpolation", linear, mean);
    print_row("mean of the series", mean, mean);
    free(memory), free(weights), free(d);
    if (!(ours.interpolation <= mean.interpolation / 5)) {
        fprintf(stderr, "mtan: interpolation is not five times better than the mean\n");
        return 1;
    }
    return 0;
}
