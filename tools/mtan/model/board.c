/* See board.h. */
#include "board.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 256 };

/* ---- what a model needs ---- */

int board_need_of(board_need *need, const mtan_config *config, int int8) {
    static const mtan_real weights[1] = {0}; /* sizes do not read them */
    static const int8_t rows[1] = {0};
    size_t count = mtan_weights_count(config), bytes = 0;
    mtan_status status = int8 ? mtan_model_int8_counts(config, &count, &bytes) : MTAN_OK;
    mtan_model model;
    memset(need, 0, sizeof *need);
    need->points = config->ref_points < BOARD_POINTS ? config->ref_points : BOARD_POINTS;
    if (status == MTAN_OK)
        status = int8 ? mtan_model_init_int8(&model, config, weights, count, rows, bytes)
                      : mtan_model_init(&model, config, weights, count);
    if (status == MTAN_OK) status = mtan_small_size(&model, need->points, &need->memory);
    need->weights = count * sizeof(float) + bytes;
    need->code = BOARD_CODE, need->stack = int8 ? BOARD_INT8_STACK : BOARD_STACK;
    return status == MTAN_OK;
}

/* ---- a goal ---- */

/* 128k, 1m, 131072. */
static int parse_size(const options *o, const char *name, size_t otherwise, size_t *out) {
    const char *text = option_text(o, name, NULL);
    char *end;
    double x, unit;
    *out = otherwise;
    if (!text) return 1;
    x = strtod(text, &end);
    unit = *end == 0 ? 1 : *end == 'k' || *end == 'K' ? 1024 : *end == 'm' || *end == 'M' ? 1048576 : 0;
    if (end == text || !(unit > 0) || (*end && end[1]) || !(x * unit >= 1024 && x * unit <= 1e9))
        return complain("--%s %s: must be a size such as 128k, 1m or 131072", name, text), 0;
    *out = (size_t)(x * unit);
    return 1;
}

int board_goal_read(board_goal *goal, const options *o) {
    const int small = option_given(o, "small");
    memset(goal, 0, sizeof *goal);
    goal->embed = option_given(o, "embed"), goal->hidden = option_given(o, "enc-hidden");
    goal->points = option_given(o, "ref-points"), goal->head = option_given(o, "head-hidden");
    goal->trees = option_given(o, "trees");
    return parse_size(o, "flash", small ? 128 * 1024 : 0, &goal->flash) &&
           parse_size(o, "ram", small ? 20 * 1024 : 0, &goal->ram);
}

static int is_goal(const board_goal *goal) {
    return goal->flash > 0 || goal->ram > 0;
}

static int need_fits(const board_goal *goal, const board_need *need) {
    return (goal->flash == 0 || need->weights + need->code <= goal->flash) &&
           (goal->ram == 0 || need->memory + need->stack <= goal->ram);
}

int board_fits(const board_goal *goal, const mtan_config *config) {
    board_need need;
    return !is_goal(goal) || (board_need_of(&need, config, 1) && need_fits(goal, &need));
}

/* ---- sizes ---- */

typedef struct rung {
    int32_t embed, hidden, points, head, trees;
} rung;

/* Sizes in the order in which they are given up. Trees go first, as fewer trees with a larger rate do nearly as well.
 * Then the head's two hidden layers, which with 300 units are half of the model. Then the sizes that cost time more
 * than memory: time embedding and reference points. On PhysioNet's test records (seed 0) the AUC is 0.849 with the
 * paper's sizes and with the rung of 64s, and 0.840 with the rung of 32s. */
static const rung ladder[] = {
    {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX},
    {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, 250},
    {128, 128, 128, 128, 100},
    {64, 128, 64, 128, 100},
    {64, 128, 64, 64, 50},
    {64, 96, 64, 64, 50},
    {64, 64, 64, 64, 50},
    {64, 32, 64, 32, 50},
    {32, 32, 32, 32, 25},
    {32, 16, 32, 16, 25},
    {16, 16, 16, 16, 10},
    {8, 8, 8, 8, 0},
};
enum { RUNGS = sizeof ladder / sizeof ladder[0] };

static void lower(int32_t *x, int32_t most, int kept) {
    if (!kept && *x > most) *x = most;
}

static mtan_config step_down(const board_goal *goal, const mtan_config *from, const rung *r) {
    mtan_config c = *from;
    lower(&c.embed, r->embed, goal->embed), lower(&c.enc_hidden, r->hidden, goal->hidden);
    lower(&c.ref_points, r->points, goal->points || c.reference == MTAN_REF_GIVEN);
    lower(&c.head_hidden, r->head, goal->head), lower(&c.trees, r->trees, goal->trees);
    return c;
}

static const char *size_text(size_t bytes, char text[32]) {
    snprintf(text, 32, bytes % 1024 ? "%.1f KB" : "%.0f KB", (double)bytes / 1024);
    return text;
}

static void goal_text(const board_goal *goal, char text[96]) {
    char size[32];
    text[0] = 0;
    if (goal->flash > 0) snprintf(text, 96, "%s of flash", size_text(goal->flash, size));
    if (goal->ram > 0)
        snprintf(text + strlen(text), 96 - strlen(text), "%s%s of RAM", *text ? " and " : "",
                 size_text(goal->ram, size));
}

static void need_text(const board_need *need, char text[WORDS]) {
    char weights[32], code[32], memory[32], stack[32];
    snprintf(text, WORDS, "%s of weights and about %s of code, %s of RAM and about %s of stack",
             size_text(need->weights, weights), size_text(need->code, code), size_text(need->memory, memory),
             size_text(need->stack, stack));
}

/* Prints the chosen sizes, and whether the model must be quantized to int8. */
static void tell(const board_goal *goal, const mtan_config *c) {
    char limits[96], words[WORDS];
    board_need need;
    goal_text(goal, limits);
    note("for %s: --embed %d --enc-hidden %d --ref-points %d --head-hidden %d --trees %d", limits, (int)c->embed,
         (int)c->enc_hidden, (int)c->ref_points, (int)c->head_hidden, (int)c->trees);
    const int plain = board_need_of(&need, c, 0) && need_fits(goal, &need);
    if (!plain) board_need_of(&need, c, 1);
    need_text(&need, words);
    note("  %s: %s", plain ? "mtan export" : "mtan quantize to int8, then mtan export", words);
}

int board_choose(const board_goal *goal, mtan_config *config) {
    char limits[96], words[WORDS];
    board_need need;
    if (!is_goal(goal)) return 1;
    if (!board_need_of(&need, config, 1))
        return complain("--small, --flash and --ram are for mTAND-Enc with a class per record, as mtan_small_classify "
                        "runs no other model"),
               0;
    for (int i = 0; i < RUNGS; i++) {
        const mtan_config c = step_down(goal, config, &ladder[i]);
        if (mtan_config_check(&c) != MTAN_OK || !board_fits(goal, &c)) {
            board_need_of(&need, &c, 1);
            continue;
        }
        *config = c;
        tell(goal, config);
        return 1;
    }
    goal_text(goal, limits), need_text(&need, words);
    return complain("no model fits into %s: the smallest that may be taken needs, in int8, %s", limits, words), 0;
}
