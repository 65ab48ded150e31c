/* How a run chose the epoch of a model file's weights, and what became of them. */
#ifndef MTAN_TOOLS_EPOCH_CHOICE_H
#define MTAN_TOOLS_EPOCH_CHOICE_H

#include "../model/bundle.h"
#include "../model/plan.h"

typedef struct epoch_choice {
    int known;            /* the file says what chose */
    plan_select by;       /* of a number it is the loss, whatever the plan says */
    plan_refit again;     /* what was trained once more, with the validation records */
    plan_schedule rate;   /* the schedule of the learning rate */
    double epochs;        /* those of the plan */
    double best, weights; /* the epoch that was chosen; the one whose weights these are. NaN: not known */
} epoch_choice;

epoch_choice choice_read(bundle *b);
/* The column of log.csv that chose; NULL: the last epoch was taken, or the file does not say. */
const char *choice_column(const epoch_choice *c);
/* Whether the learning rate had fallen to its end in this epoch. */
int choice_schedule_ended(const epoch_choice *c, double epoch);
/* "The dashed line marks epoch 7 of 20, ...": why that one, and whether its weights are used. NULL: not known. */
enum { CHOICE_BYTES = 400 };
const char *choice_sentence(char *text, const epoch_choice *c, const mtan_config *config, double epochs);

#endif
