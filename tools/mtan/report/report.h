/* A run as one HTML page: what happened in training, what the model is worth, what it sees. Plain arrays in, text out: no
 * files, no models. Every section is left out when there is nothing for it; names may hold anything.
 *
 * The page stands alone: inline SVG and CSS, no script, nothing fetched. The same data give the same bytes. */
#ifndef MTAN_TOOLS_REPORT_H
#define MTAN_TOOLS_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bands_text.h"

typedef struct report_number {
    const char *name;
    double value, low, high; /* the interval, NaN: none */
    const char *note;        /* a few words, or NULL */
    const char *baseline;    /* what one has without a model, in a few lines, or NULL */
} report_number;

typedef struct report_curve {
    const char *plot;    /* curves of one plot follow each other */
    const char *name;    /* "train" */
    const double *value; /* (epochs) NaN: not measured */
    int better;          /* of what is validated: 1: higher is better, -1: lower; 0: nothing to judge */
    const char *remark;  /* a sentence over a plot that has nothing to judge, or NULL */
} report_curve;

typedef struct report_points {
    const double *x, *y;
    size_t n;
} report_points;

/* One record's channel: what was seen, what was held out, the curve behind it, and the model's. */
typedef struct report_panel {
    const char *record, *channel;
    report_points seen, held, truth, mean; /* truth: n 0 when nobody knows it */
    const double *sd;                      /* (mean.n) or NULL */
} report_panel;

typedef struct report_attention {
    const char *record, *channel;
    const double *time;      /* (times) of the channel's observations, ascending */
    const double *reference; /* (references) ascending */
    const double *weight;    /* (references, times) */
    size_t times, references;
} report_attention;

/* What an observation changes in the log-odds of its record's class. */
typedef struct report_influence {
    const char *what; /* "pulse 97 at 21" */
    double change;
} report_influence;

/* How a record's prediction comes about: the probability of a class after each time, and the observations that changed most. */
typedef struct report_story {
    const char *record, *of; /* of: the class */
    report_points course;
    const report_influence *told; /* null: the record is too long to ask without each */
    size_t n_told;
} report_story;

/* One of several labels: how well it is told. */
typedef struct report_label {
    const char *name;
    size_t known;
    double share;                              /* of the known rows in which it is true */
    double auc, auc_low, auc_high;             /* 95 %, NaN: not known */
    double average, average_low, average_high; /* precision */
    report_points roc;
} report_label;

/* What the metric loses when a channel is exchanged between records. */
typedef struct report_channel {
    const char *name;
    double drop, low, high; /* the interval, NaN: none */
} report_channel;

typedef struct report_pair {
    const char *key, *value;
} report_pair;

typedef struct report_table {
    const char *title;
    const report_pair *pairs;
    size_t n;
} report_table;

typedef struct report_data {
    const char *title, *subtitle;
    const char *verdict; /* whether the model is worth having, in a sentence; NULL or empty: nothing to say */
    const report_number *numbers;
    size_t n_numbers;
    /* learning */
    const double *epoch; /* (epochs) */
    size_t epochs;
    const report_curve *curves; /* (epochs) each */
    size_t n_curves;
    double best_epoch; /* NaN: none */
    /* classification */
    size_t rows;              /* labelled */
    int32_t classes;          /* 0: none */
    const double *p;          /* (rows, classes) */
    const double *score;      /* (rows) what ROC and precision-recall rank; NULL unless there are two classes */
    const int32_t *label;     /* (rows) */
    double auc_low, auc_high; /* 95 %, NaN: not known */
    const char *const *class_names;
    int32_t positive;              /* of two classes the one that is acted upon */
    double slope[3], intercept[3]; /* of its calibration: value, low, high; NaN: not known */
    /* a number */
    size_t n_predicted;
    const double *predicted, *truth; /* (n_predicted) */
    const double *low, *high;        /* likewise, the ends of the intervals; NULL: none */
    double interval;                 /* the share that they promise */
    /* labels */
    const report_label *labels;
    size_t n_labels;
    const report_story *stories;
    size_t n_stories;
    const report_channel *channels; /* the most important first */
    size_t n_channels;
    /* interpolation */
    const char *time_unit;
    const report_panel *panels; /* (panel_columns, panel_rows): a column is a record */
    size_t panel_columns, panel_rows;
    int samples;                         /* of which a panel's mean and sd are */
    report_points error_all, error_held; /* mean squared error by share of observed times, in percent */
    report_points error_lines;           /* the same of straight lines, on held-out points */
    int noisy;                           /* a panel's sd holds the noise of an observation */
    const band_table *bands;             /* of held-out points, at the share of training; NULL: none */
    band_units band_units;
    const report_attention *attention;
    size_t n_attention;
    const report_table *tables;
    size_t n_tables;
} report_data;

void report_write(FILE *out, const report_data *r);
/* As a file, whole or not at all. 1, or 0 with error (512 bytes) set. */
int report_save(const char *path, const report_data *r, char *error);

#endif
