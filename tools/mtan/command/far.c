/* See far.h. */
#include "far.h"

#include "../../data/array.h"
#include "../base/messages.h"

static void make_room(far_tally *f, int32_t channels) {
    while (arrlen(f->values) < channels) {
        arrput(f->values, 0);
        arrput(f->example, 0);
    }
}

void far_count(far_tally *f, const mtan_prep *p, const mtan_observation *raw) {
    if (mtan_prep_far_time(p, raw->time) && f->times++ == 0) f->time = raw->time;
    if (!mtan_prep_far_value(p, raw->channel, raw->value)) return;
    make_room(f, p->channels);
    if (f->values[raw->channel]++ == 0) f->example[raw->channel] = raw->value;
}

int far_tell(const far_tally *f, const mtan_prep *p) {
    int any = f->times > 0;
    for (int32_t d = 0; d < (int32_t)arrlen(f->values); d++) {
        const mtan_prep_channel *c = &p->channel[d];
        if (f->values[d] == 0) continue;
        any = 1;
        note("channel %s: %zu value%s far outside of training's %.6g to %.6g, the first %.6g: is the unit the same?",
             p->channel_names ? p->channel_names[d] : "", f->values[d], f->values[d] > 1 ? "s" : "", (double)c->least,
             (double)c->most, f->example[d]);
    }
    if (f->times > 0)
        note("%zu observation%s at times far outside of training's %.6g to %.6g, the first %.6g: is the unit the same?",
             f->times, f->times > 1 ? "s" : "", p->first, p->last, f->time);
    return any;
}

void far_free(far_tally *f) {
    arrfree(f->values), arrfree(f->example);
}
