/* A run as one HTML page: the course of training, the model's metrics, and pictures of what it does. Plain arrays in,
 * text out: no files, no models. A section without data is left out; names may contain any characters.
 *
 * The page is self-contained: inline SVG and CSS, no script, nothing fetched. The same data give the same bytes. */
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
    const char *baseline;    /* the baselines' values, a few lines, or NULL */
} report_number;

typedef struct report_curve {
    const char *plot;    /* curves of one plot are adjacent */
    const char *name;    /* "train" */
    const double *value; /* (epochs) NaN: not measured */
    int better;          /* validation curves: 1: higher is better, -1: lower; 0: not judged */
    int chooses;         /* its best value chose the epoch */
    const char *remark;  /* a sentence above a plot without a verdict, or NULL */
} report_curve;

typedef struct report_points {
    const double *x, *y;
    size_t n;
} report_points;

/* One channel of a record: shown and held-out observations, the true curve, and the model's curve. */
typedef struct report_panel {
    const char *record, *channel;
    report_points seen, held, truth, mean; /* truth: n 0 if unknown */
    const double *sd;                      /* (mean.n) or NULL */
} report_panel;

typedef struct report_attention {
    const char *record, *channel;
    const double *time;      /* (times) of the channel's observations, ascending */
    const double *reference; /* (references) ascending */
    const double *weight;    /* (references, times) */
    size_t times, references;
} report_attention;

/* The influence of an observation on the log-odds of its record's class. */
typedef struct report_influence {
    const char *what; /* "pulse 97 at 21" */
    double change;
} report_influence;

/* The course of a record's prediction: the probability of a class after each time, and the most influential
 * observations. */
typedef struct report_story {
    const char *record, *of; /* of: the class */
    report_points course;
    const report_influence *told; /* null: the record is too long to leave out each observation */
    size_t n_told;
} report_story;

/* The metrics of one of several labels. */
typedef struct report_label {
    const char *name;
    size_t known;
    double share;                              /* of the known rows, the share in which it is true */
    double auc, auc_low, auc_high;             /* 95 %, NaN: not known */
    double average, average_low, average_high; /* average precision */
    report_points roc;
} report_label;

/* The drop of the metric when a channel is exchanged between records. */
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
    const char *verdict; /* whether the model beats the baselines, in a sentence; NULL or empty: nothing to say */
    const report_number *numbers;
    size_t n_numbers;
    /* learning */
    const double *epoch; /* (epochs) */
    size_t epochs;
    const report_curve *curves; /* (epochs) each */
    size_t n_curves;
    double best_epoch;  /* NaN: none */
    const char *chosen; /* which epoch that is, and what became of its weights, in a sentence; NULL: nothing to say */
    int schedule_ended; /* the learning rate had fallen to its end */
    /* classification */
    size_t rows;              /* labelled */
    int32_t classes;          /* 0: none */
    const double *p;          /* (rows, classes) */
    const double *score;      /* (rows) scores for ROC and precision-recall; NULL unless there are two classes */
    const int32_t *label;     /* (rows) */
    double auc_low, auc_high; /* 95 %, NaN: not known */
    const char *const *class_names;
    int32_t positive;              /* of two classes, the one that decisions are about */
    double slope[3], intercept[3]; /* of its calibration: value, low, high; NaN: not known */
    /* a number */
    size_t n_predicted;
    const double *predicted, *truth; /* (n_predicted) */
    const double *low, *high;        /* (n_predicted) ends of the intervals; NULL: none */
    double interval;                 /* the share of numbers that the intervals promise to hold */
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
    int samples;                         /* the number of samples behind a panel's mean and sd; 0: the mean */
    report_points error_all, error_held; /* mean squared error by share of observed times, in percent */
    report_points error_lines;           /* the same for linear interpolation, on held-out points */
    int noisy;                           /* a panel's sd includes the noise of an observation */
    const band_table *bands;             /* of held-out points, at the share of training; NULL: none */
    band_units band_units;
    const report_attention *attention;
    size_t n_attention;
    const report_table *tables;
    size_t n_tables;
} report_data;

void report_write(FILE *out, const report_data *r);
/* Writes the page as a file, atomically. 1, or 0 with error (512 bytes) set. */
int report_save(const char *path, const report_data *r, char *error);

#endif
