/* What a model needs on a board, and the sizes of a model that fits one: `mtan train --flash 128k --ram 20k`.
 *
 * Code and stack are not known before there is an image. The numbers below were measured on a Cortex-M4F with arm-none-eabi-gcc 12 -O2
 * (platform/cortex-m/README.md) and rounded up; they hardly depend on the model. */
#ifndef MTAN_TOOLS_BOARD_H
#define MTAN_TOOLS_BOARD_H

#include "../command/options.h"
#include "../../../mtan.h"

enum {
    BOARD_POINTS = 4,                 /* reference points at a time */
    BOARD_CODE = 38 * 1024,           /* bytes of an image that has mtan_small_classify alone, without its model */
    BOARD_PREDICTOR_CODE = 52 * 1024, /* of one that has a predictor */
    BOARD_STACK = 6 * 1024,           /* of mtan_small_classify, the mtan_model with it */
    BOARD_INT8_STACK = 7 * 1024,
    BOARD_PREDICTOR_STACK = 11 * 1024
};

typedef struct board_need {
    size_t weights;     /* bytes of flash */
    size_t memory;      /* bytes of RAM that mtan_small_classify takes */
    size_t code, stack; /* about */
    int32_t points;     /* reference points at a time in so much memory */
} board_need;

/* What mtan_small_classify needs for a model with such settings, its matrices in int8 or not. 0: it cannot run one. */
int board_need_of(board_need *need, const mtan_config *config, int int8);

typedef struct board_goal {
    size_t flash, ram;                      /* bytes; 0: any */
    int embed, hidden, points, head, trees; /* settings that are the user's and stay */
} board_goal;

/* The goal that --small, --flash and --ram set; without them any model will do. 0 with a message: they cannot be understood. */
int board_goal_read(board_goal *goal, const options *o);
int board_fits(const board_goal *goal, const mtan_config *config); /* in int8 */
/* Takes the largest sizes that fit in int8, none larger than the config's own, and says which. 0 with a message: none do. */
int board_choose(const board_goal *goal, mtan_config *config);

#endif
