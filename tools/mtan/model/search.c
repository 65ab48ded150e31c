/* See search.h.
 *
 * Successive halving over a fixed list of candidates drawn from a small grid by the seed: all start, each gets the same time;
 * the better half by validation gets as much again, until one is left. Half of the budget goes there, the rest to training the
 * winner from the start. Candidates are compared on the validation records alone. */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../command/shared_options.h"
#include "../../data/generators.h"

enum { CANDIDATES = 8 };

typedef struct candidate {
    plan plan;
    training training;
    double best, seconds;
    int started, failed;
} candidate;

/* 90s, 10m, 2h, 600. */
static int parse_budget(const char *text, double *out) {
    char *end;
    const double x = strtod(text, &end);
    const double unit = *end == 0 || *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 0;
    if (end == text || !(unit > 0) || (*end && end[1]) || !(x * unit >= 1 && x * unit < 1e8))
        return complain("--budget %s: must be a time such as 90s, 10m or 2h", text), 0;
    *out = x * unit;
    return 1;
}

/* The widths that a model has of its own follow its hidden units. */
static void scale_units(mtan_config *c, double size) {
    char text[40];
    if (mtan_config_get(c, "units", text, sizeof text) != MTAN_OK) return;
    snprintf(text, sizeof text, "%.0f", fmax(8, 8 * floor(strtod(text, NULL) * size / 8)));
    (void)mtan_config_set(c, "units", text);
}

/* Candidate 0 is the plan as it stands; the others change what matters most. */
static void vary(plan *p, int index, mtan_mt19937 *rng) {
    static const double rates[] = {1.0 / 3, 1, 3}, drops[] = {0, 0.2, 0.4}, thins[] = {0, 0.15, 0.3};
    static const double sizes[] = {0.5, 1, 1.5};
    const int regular = p->config.classify != MTAN_CLASSIFY_NONE, hidden = p->config.enc_hidden;
    const double size = sizes[numpy_interval(rng, 2)], rate = rates[numpy_interval(rng, 2)];
    const double drop = drops[numpy_interval(rng, 2)], thin = thins[numpy_interval(rng, 2)];
    if (index == 0) return;
    p->lr *= rate;
    if (size > 1 || size < 1) {
        p->config.enc_hidden = (int32_t)fmax(8, 8 * floor(hidden * size / 8));
        scale_units(&p->config, size);
        if (!board_fits(&p->goal, &p->config)) p->config.enc_hidden = hidden;
    }
    if (regular) p->thin = thin;
    if (regular && !p->config.architecture) p->dropout = drop; /* which the baselines do not have */
}

/* Trains one candidate until its time is up; its best validation value so far counts. An epoch that is cut short is measured
 * too if it is the first. */
static void advance(candidate *c, double budget) {
    const double start = seconds();
    char error[512];
    epoch_result result;
    step_result step;
    while (!c->failed && !training_finished(&c->training) && seconds() - start < budget) {
        int more;
        while ((more = training_step(&c->training, &step, error)) == 1 && seconds() - start < budget) continue;
        if (more == 1 && c->training.epoch > 0) break;
        if (more < 0 || training_end_epoch(&c->training, &result, error) < 0) {
            c->failed = 1;
            if (!c->training.diverged) complain("%s", error);
        }
    }
    c->seconds += seconds() - start;
    c->best = c->failed ? INFINITY : c->training.best;
}

/* Has the candidate at `index` the settings of one before it? */
static int is_known(const candidate *all, int index) {
    const plan *p = &all[index].plan;
    for (int i = 0; i < index; i++) {
        const plan *q = &all[i].plan;
        if (memcmp(&p->lr, &q->lr, sizeof p->lr) == 0 && p->config.enc_hidden == q->config.enc_hidden &&
            memcmp(&p->dropout, &q->dropout, sizeof p->dropout) == 0 && memcmp(&p->thin, &q->thin, sizeof p->thin) == 0)
            return 1;
    }
    return 0;
}

static void describe(char text[160], const candidate *c) {
    snprintf(text, 160, "lr %-8.3g hidden %-4d dropout %-4g thin %-5g", c->plan.lr, (int)c->plan.config.enc_hidden,
             c->plan.dropout, c->plan.thin);
}

static int compare_candidates(const void *left, const void *right) {
    const candidate *const *a = left, *const *b = right;
    if ((*a)->best > (*b)->best || (*a)->best < (*b)->best) return (*a)->best > (*b)->best ? 1 : -1;
    return *a < *b ? -1 : *a > *b; /* the first of equals */
}

static void show(const candidate *c, int round) {
    char text[160];
    describe(text, c);
    note("  round %d  %s  %3d epochs  %6.1f s  validation %.5f", round, text, (int)c->training.epoch, c->seconds,
         c->best);
}

static int halve(candidate *all, double budget) {
    candidate *order[CANDIDATES];
    int left = CANDIDATES, rounds = 1;
    for (int n = CANDIDATES; n > 1; n /= 2) rounds++;
    for (int i = 0; i < CANDIDATES; i++) order[i] = &all[i];
    for (int round = 1; left > 1; round++, left /= 2) {
        for (int i = 0; i < left; i++) {
            progress("round %d of %d, candidate %d of %d", round, rounds - 1, i + 1, left);
            advance(order[i], budget / (rounds - 1) / left);
            show(order[i], round);
        }
        qsort(order, (size_t)left, sizeof order[0], compare_candidates);
        for (int i = left / 2; i < left; i++) training_stop(&order[i]->training);
    }
    return order[0]->best < INFINITY ? (int)(order[0] - all) : -1;
}

int search_settings(plan *p, const dataset *d, const split *s, const mtan_backend *backend, const options *o,
                    const rank_set *r) {
    const char *text = option_text(o, "budget", NULL);
    candidate *all;
    mtan_mt19937 rng;
    char error[512], words[160];
    double budget;
    int winner = -1, started = 0;
    if (!text) return 1;
    if (!parse_budget(text, &budget)) return 0;
    if (r) return complain("--budget compares by the clock, which ranks do not share: leave --distributed out"), 0;
    if (arrlen(s->part[SPLIT_VALID]) == 0) return complain("--budget needs validation records: this plan has none"), 0;
    all = tool_calloc(CANDIDATES, sizeof *all);
    mtan_mt_seed(&rng, (uint32_t)p->seed);
    note("searching for %.0f s on %td validation records:", budget / 2, arrlen(s->part[SPLIT_VALID]));
    for (; started < CANDIDATES; started++) {
        candidate *c = &all[started];
        for (int tries = 0; tries == 0 || (is_known(all, started) && tries < 100); tries++) {
            c->plan = *p;
            vary(&c->plan, started, &rng);
        }
        if (!training_start(&c->training, &c->plan, d, s, backend, option_threads(o), NULL, error)) break;
    }
    if (started < CANDIDATES) complain("%s", error);
    else if ((winner = halve(all, budget / 2)) < 0) complain("every candidate diverged: a smaller --lr may help");
    if (winner >= 0) {
        const candidate *c = &all[winner];
        const double epoch_seconds = c->seconds / fmax(1, c->training.epoch);
        *p = c->plan;
        p->epochs = (int32_t)fmax(1, fmin(p->epochs, budget / 2 / epoch_seconds));
        describe(words, c);
        note("best: %s; training it for at most %d epochs", words, (int)p->epochs);
    }
    for (int i = 0; i < started; i++) training_stop(&all[i].training);
    free(all);
    return winner >= 0;
}
