/* Why a model says what it says: how each observation of a record changes its prediction, how the prediction comes about in time,
 * and which channels a metric rests on. All of it asks the model about records that are slightly other than those observed; nothing
 * is approximated. For models that predict classes, a number or several labels. */
#ifndef MTAN_TOOLS_EXPLAIN_H
#define MTAN_TOOLS_EXPLAIN_H

#include "../../data/dataset.h"
#include "../../data/prep.h"
#include "../model/runner.h"
#include "worth.h"

/* The class of the highest of (classes) probabilities. */
int32_t likeliest(const double *p, int32_t classes);

/* A record with one answer: what its observations change. */
typedef struct record_influence {
    int32_t of;     /* the class: the one asked about, or the likeliest; or the label; of a number 0 */
    double said;    /* the log-odds of that class against all others, or of that label; of a number the number */
    double *change; /* (n_events) by how much each one raises that: with all, minus with all but this one */
} record_influence;
/* of: a class or a label, -1: the likeliest. A number is told in these units, NULL: in the model's. 1, or 0: run->status says why, and
 * there is nothing to free. */
int explain_observations(record_influence *f, runner *run, const mtan_record *record, int32_t of, const prep *units);
/* The same of all labels at once: f (labels). */
int explain_labels(record_influence *f, runner *run, const mtan_record *record);
void record_influence_free(record_influence *f);

/* What is predicted after each of a record's times, from what was observed by then. */
typedef struct record_course {
    size_t n;
    mtan_real *times; /* (n) distinct, ascending */
    double *p;        /* (n, outputs) */
} record_course;
int explain_course(record_course *c, runner *run, const mtan_record *record); /* as explain_observations */
void record_course_free(record_course *c);

/* By how much a metric falls when a channel's series are exchanged between the records at random: the mean over a few exchanges,
 * with the 95 % interval over records. */
typedef struct channel_drop {
    double drop;
    interval range;
} channel_drop;
typedef struct channel_question {
    judged_data on;
    int32_t draws;
} channel_question;
/* drops (channels) of the metric by which models of this task are judged (worth.h), which is *value now and called *key. tell, where it is
 * not NULL, is called before each channel. 1, or 0 as above. run: bounds for exchanged_bounds. */
int explain_channels(channel_drop *drops, double *value, const char **key, runner *run, const channel_question *q,
                     void (*tell)(size_t channel, size_t channels));
/* A record with another one's series has room. */
mtan_bounds exchanged_bounds(mtan_bounds b);

#endif
