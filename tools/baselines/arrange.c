/* See arrange.h. */
#include "arrange.h"

#include <stdlib.h>
#include <string.h>

#include "../data/array.h"
#include "architecture_settings.h"
#include "baselines.h"
#include "../data/generators.h"

/* ---- IP-Nets ---- */

/* Holds out, of the c observations of each channel among n events, exactly floor(c / 5) if that is two or more, with
 * every choice equally likely: an event is taken with probability wanted / left. Returns their number. */
static int32_t hold_out(mtan_event *held, const mtan_event *events, int32_t n, int32_t channels, mtan_mt19937 *rng) {
    int32_t *left = tool_calloc(2 * (size_t)channels, sizeof *left), *wanted = left + channels, count = 0;
    for (int32_t i = 0; i < n; i++) left[events[i].channel]++;
    for (int32_t d = 0; d < channels; d++) wanted[d] = left[d] / 5 >= 2 ? left[d] / 5 : 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t d = events[i].channel;
        if (wanted[d] > 0 && numpy_uniform(rng) * left[d] < wanted[d]) held[count++] = events[i], wanted[d]--;
        left[d]--;
    }
    free(left);
    return count;
}

/* IP-Nets learns to reconstruct cells that it does not see: a record's targets are cells held out of its events. */
static void hold_cells_out(const baseline_batch *b) {
    for (int32_t i = 0; b->training && i < b->n; i++) {
        mtan_record *r = &b->records[i];
        mtan_event *held = b->room + (size_t)i * b->most;
        mtan_mt19937 rng;
        mtan_mt_seed(&rng, b->draw(b->context, r->id));
        r->n_targets = hold_out(held, r->events, r->n_events, b->config->channels, &rng);
        r->targets = held;
    }
}

/* ---- RNN-VAE as published ---- */

/* A class per time is read at the record's own times. Without labels these are the times of its events, so the events
 * must stay. */
static int32_t keeps_events(const baseline_batch *b, const mtan_record *r) {
    return !b->training && b->config->classify == MTAN_CLASSIFY_TIME && !r->times;
}

static void take_events(const baseline_batch *b, mtan_record *r, const mtan_record *from) {
    if (!keeps_events(b, r)) r->events = from->events, r->n_events = from->n_events;
}

/* The published code reverses the batch instead of time: record i of n is encoded from the events of record n - 1 - i,
 * and scored on its own. */
static void reverse_records(const baseline_batch *b) {
    for (int32_t i = 0; b->training && i < b->n; i++) {
        mtan_record *r = &b->records[i];
        if (!r->targets) r->targets = r->events, r->n_targets = r->n_events;
    }
    for (int32_t i = 0; i < b->n / 2; i++) {
        mtan_record *x = &b->records[i], *y = &b->records[b->n - 1 - i];
        const mtan_record before = *x;
        take_events(b, x, y);
        take_events(b, y, &before);
    }
}

/* ---- the models' hooks ---- */

static const struct {
    const char *model;
    int32_t faithful; /* 1: only with the published settings */
    baseline_hook hook;
} hooks[] = {{"ip-nets", 0, {hold_cells_out, 0}}, {"rnn-vae", 1, {reverse_records, 1}}};

const baseline_hook *baseline_hook_of(const mtan_config *c) {
    for (size_t i = 0; c->architecture && i < sizeof hooks / sizeof hooks[0]; i++)
        if (strcmp(c->architecture->name, hooks[i].model) == 0)
            return !hooks[i].faithful || setting_of(c, "faithful") > 0 ? &hooks[i].hook : NULL;
    return NULL;
}

void baseline_arrange(const mtan_config *c, mtan_record *records, size_t n, size_t batch) {
    const baseline_hook *hook = baseline_hook_of(c);
    baseline_batch b = {c, NULL, 0, 0, NULL, 0, NULL, NULL};
    for (size_t first = 0; hook && batch > 0 && first < n; first += batch) {
        b.records = records + first;
        b.n = (int32_t)(n - first < batch ? n - first : batch);
        hook->arrange(&b);
    }
}
