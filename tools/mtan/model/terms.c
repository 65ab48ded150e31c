/* See terms.h. */
#include "terms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boost.h"
#include "bounds.h"
#include "metrics.h"
#include "predictions.h"
#include "summaries.h"

enum { SHARES = 15 }; /* network and terms are each tried at 0, 0.1, ..., SHARES / 10 */

static mtan_real *tensor(bundle *b, const char *name) {
    mtan_param p;
    for (int32_t i = 0; mtan_param_at(&b->model.config, i, &p) == MTAN_OK; i++)
        if (strcmp(p.name, name) == 0) return b->weights + p.offset;
    return NULL;
}

static int32_t numbers_of(const mtan_config *c) {
    return (int32_t)mtan_summaries_count(c) - c->statics;
}

/* What a record has a term of, in the order of the terms; NaN where its channel was not observed. */
static void read_numbers(const mtan_config *c, const mtan_record *record, mtan_real *out, mtan_real *room) {
    const int32_t n = numbers_of(c), changing = n - c->statics, channels = c->channels - c->statics;
    (void)mtan_summaries(c, record, room,
                         mtan_summaries_count(c)); /* the network has read the record: it cannot fail */
    for (int32_t j = 0; j < n; j++) {
        const mtan_real seen = j < changing ? room[j % channels] : room[n + (j - changing)];
        out[j] = seen > 0 ? room[j] : (mtan_real)NAN;
    }
}

/* Records with a class. */
static boost_rows rows_of(const mtan_config *c, const dataset *d, const int32_t *positions) {
    summary_row *rows = summary_rows(d, positions);
    const size_t n = arrlenu(rows), numbers = (size_t)numbers_of(c);
    mtan_real *x = tool_calloc(n * numbers + 1, sizeof *x), *room = tool_calloc(mtan_summaries_count(c), sizeof *room);
    int32_t *label = tool_calloc(n + 1, sizeof *label);
    for (size_t i = 0; i < n; i++) {
        const mtan_record record = dataset_view(d, (size_t)rows[i].record);
        read_numbers(c, &record, x + i * numbers, room);
        label[i] = rows[i].label;
    }
    free(room), arrfree(rows);
    return (boost_rows){x, label, n};
}

static void rows_free(boost_rows r) {
    free((void *)r.x), free((void *)r.label);
}

/* As at the start of a training: the network alone. */
static void drop_terms(bundle *b) {
    const size_t n = (size_t)numbers_of(&b->model.config) * ((size_t)b->model.config.terms + 2) *
                     (size_t)mtan_config_outputs(&b->model.config);
    tensor(b, "rec.terms.share")[0] = 1;
    memset(tensor(b, "rec.terms.height"), 0, n * sizeof(mtan_real));
}

/* The log-probabilities of the network and the logits of the terms, (rows, classes), with room for those of both. */
typedef struct pair {
    const predictions *of;
    double *network, *term, *both;
} pair;

static double loss_of(const pair *x, double network_share, double terms_share) {
    const size_t C = (size_t)x->of->classes, n = x->of->rows * C;
    for (size_t i = 0; i < n; i++) x->both[i] = network_share * x->network[i] + terms_share * x->term[i];
    for (size_t i = 0; i < n; i += C) boost_softmax(x->both + i, C);
    return metric_log_loss(x->both, x->of->label, x->of->rows, x->of->classes);
}

static void weigh(terms_fit *fit, const pair *x) {
    fit->network = loss_of(x, 1, 0), fit->terms = loss_of(x, 0, 1);
    fit->together = INFINITY;
    for (int i = 0; i <= SHARES; i++)
        for (int k = 0; k <= SHARES; k++) {
            const double loss = loss_of(x, 0.1 * i, 0.1 * k);
            if (!(loss < fit->together)) continue;
            fit->together = loss, fit->network_share = 0.1 * i, fit->terms_share = 0.1 * k;
        }
}

/* Where every sum begins goes into the first number's term, which every record has. */
static void write_terms(bundle *b, const boost *fitted, const terms_fit *fit) {
    const size_t steps = (size_t)fitted->thresholds + 2, outputs = (size_t)fitted->classes,
                 columns = (size_t)fitted->columns;
    mtan_real *height = tensor(b, "rec.terms.height");
    tensor(b, "rec.terms.share")[0] = (mtan_real)fit->network_share;
    memcpy(tensor(b, "rec.terms.threshold"), fitted->threshold,
           fitted->numbers * (size_t)fitted->thresholds * sizeof *fitted->threshold);
    for (size_t i = 0; i < fitted->numbers * steps; i++)
        for (size_t k = 0; k < columns; k++)
            height[i * outputs + k + (columns == 1)] =
                (mtan_real)(fit->terms_share * (fitted->height[i * columns + k] + (i < steps ? fitted->start[k] : 0)));
}

static pair pair_make(const predictions *p, const boost *fitted, boost_rows rows) {
    const size_t C = (size_t)p->classes, n = p->rows * C;
    const pair x = {p, tool_calloc(n + 1, sizeof(double)), tool_calloc(n + 1, sizeof(double)),
                    tool_calloc(n + 1, sizeof(double))};
    for (size_t i = 0; i < n; i++) x.network[i] = log(fmax(p->p[i], 1e-15));
    for (size_t i = 0; i < p->rows; i++) boost_at(fitted, rows.x + i * fitted->numbers, x.term + i * C);
    return x;
}

static void pair_free(pair *x) {
    free(x->network), free(x->term), free(x->both);
}

/* rows: those of the records with a class at the positions. */
static int compare(bundle *b, const dataset *d, const int32_t *positions, boost_rows rows, const boost *fitted,
                   int32_t threads, terms_fit *fit, char *error) {
    predictions p;
    runner run;
    int good = runner_start(&run, &b->model, model_bounds(&b->model.config, d), threads, error);
    if (good && !(good = predictions_make(&p, &run, d, positions, 0, 0)))
        snprintf(error, 512, "%.400s", mtan_status_message(run.status));
    if (good) {
        predictions_drop_unlabelled(&p);
        pair x = pair_make(&p, fitted, rows);
        weigh(fit, &x);
        pair_free(&x), predictions_free(&p);
    }
    runner_stop(&run);
    return good;
}

int terms_add(bundle *b, const dataset *d, const split *s, int32_t threads, terms_fit *fit, char *error) {
    const mtan_config *c = &b->model.config;
    const boost_rows train = rows_of(c, d, s->part[SPLIT_TRAIN]), valid = rows_of(c, d, s->part[SPLIT_VALID]);
    boost fitted;
    int good = 1;
    memset(fit, 0, sizeof *fit);
    drop_terms(b);
    boost_fit(&fitted, train, valid, (boost_size){(size_t)numbers_of(c), c->classes, c->terms, BOOST_ROUNDS});
    fit->rounds = fitted.rounds;
    if (fitted.rounds > 0) good = compare(b, d, s->part[SPLIT_VALID], valid, &fitted, threads, fit, error);
    if (fitted.rounds > 0 && good) write_terms(b, &fitted, fit);
    boost_free(&fitted);
    rows_free(train), rows_free(valid);
    return good;
}
