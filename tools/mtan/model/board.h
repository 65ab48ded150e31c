/* The memory that a model needs on a microcontroller board, and model sizes that fit one: `mtan train --flash 128k
 * --ram 20k`.
 *
 * Code and stack sizes are unknown before an image is linked. The numbers below were measured on a Cortex-M4F with
 * arm-none-eabi-gcc 12 -O2 (platform/cortex-m/README.md) and rounded up; they hardly depend on the model. */
#ifndef MTAN_TOOLS_BOARD_H
#define MTAN_TOOLS_BOARD_H

#include "../options/options.h"
#include "../../../mtan.h"

enum {
    BOARD_POINTS = 4,                 /* reference points at a time */
    BOARD_CODE = 38 * 1024,           /* bytes of an image with mtan_small_classify alone, without its model */
    BOARD_PREDICTOR_CODE = 52 * 1024, /* of an image with a predictor */
    BOARD_STACK = 6 * 1024,           /* of mtan_small_classify, including the mtan_model */
    BOARD_INT8_STACK = 7 * 1024,
    BOARD_PREDICTOR_STACK = 11 * 1024
};

typedef struct board_need {
    size_t weights;     /* bytes of flash */
    size_t memory;      /* bytes of RAM for mtan_small_classify */
    size_t code, stack; /* bytes, estimated */
    int32_t points;     /* reference points at a time, with that much memory */
} board_need;

/* What mtan_small_classify needs for a model with these settings. int8: its matrices are int8. 0: it cannot run such a
 * model. */
int board_need_of(board_need *need, const mtan_config *config, int int8);

typedef struct board_goal {
    size_t flash, ram;                      /* bytes; 0: any */
    int embed, hidden, points, head, trees; /* flags: the user has set this size, so it stays */
} board_goal;

/* Reads the goal from --small, --flash and --ram; without them any model fits. 0 with a message: an option is
 * invalid. */
int board_goal_read(board_goal *goal, const options *o);
int board_fits(const board_goal *goal, const mtan_config *config); /* in int8 */
/* Picks the largest sizes that fit in int8, none above the config's own, and prints them. 0 with a message: none
 * fit. */
int board_choose(const board_goal *goal, mtan_config *config);

#endif
