/* Explanations of a prediction: how each observation of a record changes it, how it develops over time, and which
 * channels a metric depends on. All of them run the model on modified records; nothing is approximated. For models that
 * predict classes, a number or several labels. */
#ifndef MTAN_TOOLS_EXPLAIN_H
#define MTAN_TOOLS_EXPLAIN_H

#include "../../data/dataset.h"
#include "../../data/prep.h"
#include "../run/runner.h"
#include "worth.h"

/* The class with the highest of (classes) probabilities. */
int32_t likeliest(const double *p, int32_t classes);

/* How the observations of a record change one of its outputs. */
typedef struct record_influence {
    int32_t of;     /* the class asked about, or the likeliest; or the label; 0 for a number */
    double said;    /* the output: the log-odds of that class against all others, or of that label; or the number */
    double *change; /* (n_events) by how much each raises it: the output with all minus the output without it */
} record_influence;
/* of: a class or a label, -1: the likeliest. units: the units of a number, NULL: the model's. 1, or 0: run->status says
 * why, and there is nothing to free. */
int explain_observations(record_influence *f, runner *run, const mtan_record *record, int32_t of, const prep *units);
/* The same for all labels at once: f (labels). */
int explain_labels(record_influence *f, runner *run, const mtan_record *record);
void record_influence_free(record_influence *f);

/* The predictions after each of a record's times, from the observations up to then. */
typedef struct record_course {
    size_t n;
    mtan_real *times; /* (n) distinct, ascending */
    double *p;        /* (n, outputs) */
} record_course;
int explain_course(record_course *c, runner *run, const mtan_record *record); /* as explain_observations */
void record_course_free(record_course *c);

/* Permutation importance: by how much a metric falls when a channel's series are exchanged between the records at
 * random. The mean over a few exchanges, with the 95 % interval over records. */
typedef struct channel_drop {
    double drop;
    interval range;
} channel_drop;
typedef struct channel_question {
    judged_data on;
    int32_t draws;
} channel_question;
/* drops (channels): of the headline metric of this task (worth.h), whose value is stored in *value and whose name in
 * *key. tell, if not NULL, is called before each channel. 1, or 0 as above. `run` needs the bounds of
 * exchanged_bounds. */
int explain_channels(channel_drop *drops, double *value, const char **key, runner *run, const channel_question *q,
                     void (*tell)(size_t channel, size_t channels));
/* Bounds for a record that holds another record's series in addition. */
mtan_bounds exchanged_bounds(mtan_bounds b);

#endif
