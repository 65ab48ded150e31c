/* See roofline.h. */
#include "roofline.h"

#include <string.h>

/* Published specifications at boost clock: GM200 with 3072 cores and 336.5 GB/s, GP102 with 3584 cores and 480 GB/s. */
const roofline_card roofline_cards[] = {{"titanx-maxwell", "Maxwell", 3072 * 1.075e9 * 2, 336.5e9},
                                        {"titanx-pascal", "Pascal", 3584 * 1.531e9 * 2, 480e9},
                                        {NULL, NULL, 0, 0}};

enum { LAUNCH, TURN, FLOPS_SHARE, BANDWIDTH_SHARE, BUS, WAIT };

const roofline_assumption roofline_assumptions[] = {
    {"launch_seconds", 5e-6, "a launch or a copy"},
    {"turn_seconds", 2e-6, "a step of a GRU beside its products: two barriers and the gates, one after the other"},
    {"flops_share", 0.5, "of the peak at boost clock that kernels reach"},
    {"bandwidth_share", 0.75, "of the memory's bandwidth that kernels reach"},
    {"bus_bytes_per_second", 12e9, "PCIe 3.0 x16, of 15.75e9"},
    {"wait_seconds", 10e-6, "each time the host waits for the GPU"},
    {NULL, 0, NULL}};

static double assumed(int i) {
    return roofline_assumptions[i].value;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

double roofline_seconds(const roofline_entry *e, const roofline_card *card) {
    const double arithmetic = e->busy / (assumed(FLOPS_SHARE) * card->flops);
    const double memory = (e->read + e->written) / (assumed(BANDWIDTH_SHARE) * card->bandwidth);
    return e->launches * assumed(LAUNCH) + larger(e->turns * assumed(TURN) + arithmetic, memory);
}

double roofline_copy_seconds(const roofline *r) {
    return r->copies * assumed(LAUNCH) + r->waits * assumed(WAIT) + (r->sent + r->fetched) / assumed(BUS);
}

double roofline_total(const roofline *r, const roofline_card *card) {
    double sum_of_all = roofline_copy_seconds(r);
    for (int i = 0; r->entry[i].name; i++) sum_of_all += roofline_seconds(&r->entry[i], card);
    return sum_of_all;
}

roofline_entry roofline_sum(const roofline *r) {
    roofline_entry s;
    memset(&s, 0, sizeof s);
    s.name = "all";
    for (int i = 0; r->entry[i].name; i++) {
        const roofline_entry *e = &r->entry[i];
        s.launches += e->launches, s.flops += e->flops, s.busy += e->busy, s.turns += e->turns;
        s.read += e->read, s.written += e->written;
    }
    return s;
}
