/* demo: trains mTAND-Full on the synthetic series of the paper's appendix and interpolates the test series.
 *
 *     demo [--epochs N] [--seed N] [--lr R] [--threads N] [--report FILE] [--quiet]
 *
 * The series are those of the published code: 1000 smooth curves, each seen at 20 random points of [0, 1]; 800 train,
 * 200 test, by the published split. Prints the error on the points seen (reconstruction) and on the whole curve
 * (interpolation) beside two predictors that learn nothing, writes what was learned as one page (FILE, by default
 * build/demo.html; its folder has to exist) and says on the last line where it is. --quiet leaves out the first line and
 * the progress. The number of threads (by default that of the CPUs, at most 8) changes the time and nothing else. Exit
 * status 1 when the model is not at least five times better than the mean, 2 on bad usage or when the page cannot be
 * written.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../mtan.h"
#include "../../platform/pool.h"
#include "../../simd/mtan_simd.h"
#include "../data/array.h"
#include "../data/synthetic.h"
#include "../mtan/command/options.h"
#include "../mtan/report/report.h"
#include "../mtan/report/report_tables.h"
#include "../mtan/paper/recipes.h"
#include "../data/generators.h"

enum {
    SERIES = 1000,
    LENGTH = 20,
    GRID = SYNTHETIC_TRUTH,
    BATCH = 25,
    SHOWN = 3,    /* test series on the page */
    SAMPLES = 100 /* of the posterior, for the curves on the page: as the paper's figure */
};

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
    const char *report;
} settings;

typedef struct {
    double reconstruction, interpolation; /* mean squared errors on the test series */
} errors;

/* What training reported, epoch by epoch; stb_ds arrays. */
typedef struct {
    double *epoch, *loss, *squared, *kl;
} history;

static void die(const char *what, mtan_status status) {
    exit(complain("%s: %s", what, mtan_status_message(status)));
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
        d->records[i].id = mtan_bytes_hash(&i, sizeof i);
    }
    d->tests = (int)sklearn_split(d->order, SERIES, 0.8, 42);
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
    if ((status = mtan_predictor_interpolate(context, &r, mean, NULL)) != MTAN_OK) die("interpolate", status);
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
    recipe r;
    if (!recipe_named(&r, "toy-interp", MTAN_CORRECT)) die("toy-interp", MTAN_ERR_MISSING);
    *c = r.config;
    c->latent = 10; /* the paper's table; the published command has 1 (Q44) */
    c->embed = 32;  /* this and the next: a quarter of the arithmetic, the same error in the end */
    c->dec_hidden = 20;
    c->samples = 1;
    c->noise_std = 0.05;
}

/* Returns its weights, which the caller frees. */
static mtan_real *start_model(mtan_model *model, unsigned seed) {
    mtan_config config;
    mtan_real *weights;
    mtan_status status;
    size_t count;
    configure(&config);
    count = mtan_weights_count(&config);
    weights = tool_calloc(count, sizeof *weights);
    if ((status = mtan_weights_init(&config, weights, count, seed)) != MTAN_OK) die("weights", status);
    if ((status = mtan_model_init(model, &config, weights, count)) != MTAN_OK) die("model", status);
    model->backend = mtan_backend_best();
    return weights;
}

/* Returns its memory, which the caller frees. */
static void *start_predictor(mtan_predictor *run, const mtan_model *model, const mtan_bounds *bounds) {
    mtan_status status;
    size_t bytes;
    void *memory;
    if ((status = mtan_predictor_size(model, bounds, &bytes)) != MTAN_OK) die("predictor", status);
    memory = tool_calloc(bytes, 1);
    if ((status = mtan_predictor_init(run, model, bounds, memory, bytes)) != MTAN_OK) die("predictor", status);
    return memory;
}

static double rate(void *context, int64_t step, int32_t epoch) {
    const settings *o = context;
    (void)step;
    return epoch > o->epochs * 4 / 5 ? 0.2 : 1;
}

static void train(const data *d, mtan_model *model, mtan_real *weights, const settings *o, history *h) {
    const mtan_bounds bounds = {BATCH, LENGTH, LENGTH};
    const int n = SERIES - d->tests, *order = d->order + d->tests;
    mtan_record *batch = tool_calloc(BATCH, sizeof *batch);
    int32_t *shuffled = tool_calloc((size_t)n, sizeof *shuffled);
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
    if (mtan_pool_start(&pool, o->threads) != MTAN_OK) note("%d threads instead of %d", (int)pool.threads, o->threads);
    config.parallel_for = mtan_pool_run, config.parallel_context = &pool, config.threads = pool.threads;
    if ((status = mtan_trainer_size(model, &config, &bounds, &bytes)) != MTAN_OK) die("trainer", status);
    memory = tool_calloc(bytes, 1);
    if ((status = mtan_trainer_init(&trainer, model, weights, &config, &bounds, memory, bytes)) != MTAN_OK)
        die("trainer", status);
    for (int epoch = 1; epoch <= o->epochs; epoch++) {
        double loss = 0, squared = 0, cells = 0, kl = 0;
        numpy_permutation(&rng, shuffled, (size_t)n);
        for (int first = 0; first < n; first += BATCH) {
            mtan_report report;
            int m = 0;
            for (; m < BATCH && first + m < n; m++) batch[m] = d->records[order[shuffled[first + m]]];
            if ((status = mtan_trainer_step(&trainer, batch, m, epoch, &report)) != MTAN_OK) die("train", status);
            loss += report.loss * m, kl += report.kl * m, squared += report.squared_error,
                cells += (double)report.cells;
        }
        progress("epoch %d of %d   loss %.4f   squared error %.5f   %.0f s", epoch, o->epochs, loss / n,
                 squared / cells, seconds() - start);
        arrput(h->epoch, epoch), arrput(h->loss, loss / n), arrput(h->squared, squared / cells);
        arrput(h->kl, kl / n);
    }
    progress_end();
    mtan_pool_stop(&pool);
    free(memory), free(batch), free(shuffled);
}

/* ---- the page ---- */

/* Arrays that it points to; they live as long as it is being written. */
typedef struct {
    double grid[GRID], mean[SHOWN][GRID], sd[SHOWN][GRID];
    double time[SHOWN][LENGTH], *reference, *weight[SHOWN]; /* (K), (K, distinct times) */
    char name[SHOWN][32], share[48];
    report_number numbers[4];
    report_panel panels[SHOWN];
    report_attention attention[SHOWN];
} pictures;

/* The distinct times of a series: observations may fall on one (Q44). */
static size_t distinct_times(double *out, const double *time) {
    size_t n = 0;
    for (int i = 0; i < LENGTH; i++)
        if (i == 0 || time[i] > time[i - 1]) out[n++] = time[i];
    return n;
}

static void show_curve(pictures *p, const data *d, mtan_predictor *run, int place) {
    const int s = d->order[place];
    mtan_record r = d->records[s];
    mtan_real mean[GRID], sd[GRID];
    mtan_status status;
    r.times = d->grid;
    r.n_times = GRID;
    if ((status = mtan_predictor_interpolate(run, &r, mean, sd)) != MTAN_OK) die("interpolate", status);
    for (int g = 0; g < GRID; g++) p->mean[place][g] = (double)mean[g], p->sd[place][g] = (double)sd[g];
    snprintf(p->name[place], sizeof p->name[place], "series %d", s);
    p->panels[place] = (report_panel){p->name[place],
                                      "",
                                      {d->time + s * LENGTH, d->value + s * LENGTH, LENGTH},
                                      {NULL, NULL, 0},
                                      {p->grid, d->truth + s * GRID, GRID},
                                      {p->grid, p->mean[place], GRID},
                                      p->sd[place]};
}

static void show_attention(pictures *p, const data *d, mtan_predictor *run, int place) {
    const int s = d->order[place];
    const size_t K = (size_t)run->model->config.ref_points, L = distinct_times(p->time[place], d->time + s * LENGTH);
    mtan_real *weight = tool_calloc(K * L, sizeof *weight);
    const mtan_status status = mtan_predictor_attention(run, &d->records[s], 0, 0, weight);
    if (status != MTAN_OK) die("attention", status);
    p->weight[place] = tool_calloc(K * L, sizeof *p->weight[place]);
    for (size_t i = 0; i < K * L; i++) p->weight[place][i] = (double)weight[i];
    p->attention[place] = (report_attention){p->name[place], "", p->time[place], p->reference, p->weight[place], L, K};
    free(weight);
}

static void show_series(pictures *p, const data *d, const mtan_model *trained) {
    const mtan_bounds bounds = {1, LENGTH, GRID};
    mtan_model model = *trained;
    const size_t K = (size_t)model.config.ref_points;
    mtan_predictor run;
    void *memory;
    model.config.predict_samples = SAMPLES;
    memory = start_predictor(&run, &model, &bounds);
    p->reference = tool_calloc(K, sizeof *p->reference);
    for (size_t k = 0; k < K; k++) p->reference[k] = (double)k / (double)(K - 1);
    for (int g = 0; g < GRID; g++) p->grid[g] = (double)d->grid[g];
    for (int i = 0; i < SHOWN; i++) show_curve(p, d, &run, i), show_attention(p, d, &run, i);
    free(memory);
}

static void show_numbers(pictures *p, errors ours, errors linear, errors mean) {
    snprintf(p->share, sizeof p->share, "mean squared; %.1f %% of the mean's",
             100 * ours.interpolation / mean.interpolation);
    p->numbers[0] = (report_number){"Interpolation error", ours.interpolation, NAN, NAN, p->share};
    p->numbers[1] = (report_number){"Reconstruction error", ours.reconstruction, NAN, NAN, "on the points seen"};
    p->numbers[2] =
        (report_number){"Linear interpolation", linear.interpolation, NAN, NAN, "the same error, of straight lines"};
    p->numbers[3] =
        (report_number){"Mean of the series", mean.interpolation, NAN, NAN, "the same error, of a constant"};
}

static report_pair *training_pairs(const data *d, const settings *o) {
    report_pair *pairs = NULL;
    report_pair_add(&pairs, "series", "%d, %d of them held out", SERIES, d->tests);
    report_pair_add(&pairs, "points of a series", "%d", LENGTH);
    report_pair_add(&pairs, "epochs", "%d", o->epochs);
    report_pair_add(&pairs, "batch", "%d", BATCH);
    report_pair_add(&pairs, "optimizer", "adam");
    report_pair_add(&pairs, "lr", "%g, a fifth of it in the last fifth", o->lr);
    report_pair_add(&pairs, "clip", "1");
    report_pair_add(&pairs, "seed", "%u", o->seed);
    return pairs;
}

static int save_page(pictures *p, const data *d, const mtan_model *model, const history *h, const settings *o) {
    const report_curve curves[] = {{"Training loss", "training", h->loss},
                                   {"Squared error in training", "training", h->squared},
                                   {"KL divergence", "training", h->kl}};
    const report_table tables[] = {report_table_of("Training", training_pairs(d, o)),
                                   report_table_of("Model", report_model_pairs(&model->config)),
                                   report_table_of("Environment", report_environment_pairs(model->backend))};
    char error[512] = "";
    report_data page;
    int good;
    memset(&page, 0, sizeof page);
    page.title = "mTAND-Full: smooth curves from 20 points";
    page.subtitle = "The synthetic series of the paper's appendix. Results on series that were not trained on.";
    page.numbers = p->numbers, page.n_numbers = 4;
    page.epoch = h->epoch, page.epochs = arrlenu(h->epoch), page.best_epoch = NAN;
    page.curves = curves, page.n_curves = 3;
    page.panels = p->panels, page.panel_columns = SHOWN, page.panel_rows = 1, page.samples = SAMPLES;
    page.attention = p->attention, page.n_attention = SHOWN;
    page.tables = tables, page.n_tables = 3;
    good = report_save(o->report, &page, error);
    if (!good) complain("%s", error);
    for (size_t i = 0; i < page.n_tables; i++) report_table_free(&tables[i]);
    return good;
}

static int write_page(const data *d, const mtan_model *model, const history *h, const errors e[3], const settings *o) {
    pictures *p = tool_calloc(1, sizeof *p);
    int good;
    show_series(p, d, model);
    show_numbers(p, e[0], e[1], e[2]);
    good = save_page(p, d, model, h, o);
    for (int i = 0; i < SHOWN; i++) free(p->weight[i]);
    free(p->reference), free(p);
    return good;
}

/* ---- the command ---- */

static void print_row(const char *name, errors e, errors mean) {
    printf("%-22s %14.5f %14.5f   %5.1f %% of the mean's\n", name, e.reconstruction, e.interpolation,
           100 * e.interpolation / mean.interpolation);
}

static void print_table(const errors e[3]) {
    printf("%-22s %14s %14s\n", "mean squared error", "reconstruction", "interpolation");
    print_row("mTAND-Full", e[0], e[2]);
    print_row("linear interpolation", e[1], e[2]);
    print_row("mean of the series", e[2], e[2]);
}

/* Better now than after the training. */
static void need_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    const int bytes = slash ? (int)(slash - path) + (slash == path) : 1;
    char folder[4096];
    struct stat found;
    if (snprintf(folder, sizeof folder, "%.*s", bytes, slash ? path : ".") >= (int)sizeof folder)
        exit(complain("--report: the path is too long"));
    if (stat(folder, &found) != 0 || !S_ISDIR(found.st_mode))
        exit(complain("--report %s: there is no folder %s; make it, or name another place", path, folder));
}

static settings parse(int argc, char **argv) {
    settings o = {200, 0, 0, 1e-2, mtan_pool_cpus() < 8 ? mtan_pool_cpus() : 8, "build/demo.html"};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quiet") == 0) o.quiet = 1;
        else if (strcmp(argv[i], "--epochs") == 0 && i + 1 < argc) o.epochs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) o.seed = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--lr") == 0 && i + 1 < argc) o.lr = atof(argv[++i]);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) o.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--report") == 0 && i + 1 < argc) o.report = argv[++i];
        else {
            const int asked = strcmp(argv[i], "--help") == 0;
            fprintf(asked ? stdout : stderr,
                    "usage: demo [--epochs N] [--seed N] [--lr R] [--threads N] [--report FILE] [--quiet]\n");
            exit(asked ? DONE : BAD_USE);
        }
    }
    if (o.epochs < 1 || !(o.lr > 0)) exit(complain("--epochs and --lr must be above 0"));
    if (o.threads < 1 || o.threads > MTAN_POOL_MOST) exit(complain("--threads must be 1 to %d", MTAN_POOL_MOST));
    need_folder(o.report);
    if (o.quiet) messages_quiet(1);
    return o;
}

static void measure_all(const data *d, const mtan_model *trained, errors e[3]) {
    const mtan_bounds bounds = {1, LENGTH, LENGTH + GRID};
    mtan_model model = *trained;
    mtan_predictor run;
    void *memory;
    model.config.predict_samples = 0;
    memory = start_predictor(&run, &model, &bounds);
    e[0] = measure(d, predict_model, &run);
    e[1] = measure(d, predict_linear, NULL);
    e[2] = measure(d, predict_mean, NULL);
    free(memory);
}

int main(int argc, char **argv) {
    const settings o = parse(argc, argv);
    data *d = tool_calloc(1, sizeof *d);
    history h = {NULL, NULL, NULL, NULL};
    errors e[3]; /* the model, lines, the mean */
    mtan_model model;
    mtan_real *weights;
    int written;
    make_data(d);
    weights = start_model(&model, o.seed);
    if (!o.quiet)
        printf("mTAND-Full on %d series of %d points, %d held out; %zu weights; backend %s\n", SERIES, LENGTH, d->tests,
               mtan_weights_count(&model.config), mtan_backend_name(model.backend));
    train(d, &model, weights, &o, &h);
    measure_all(d, &model, e);
    print_table(e);
    written = write_page(d, &model, &h, e, &o);
    if (written) printf("report: %s\n", o.report);
    free(weights), free(d);
    arrfree(h.epoch), arrfree(h.loss), arrfree(h.squared), arrfree(h.kl);
    if (!written) return BAD_USE;
    if (e[0].interpolation <= e[2].interpolation / 5) return DONE;
    complain("interpolation is not five times better than the mean");
    return BAD_RESULT;
}
