/* mtan for other languages: functions of numbers, texts and arrays, and three opaque handles. A binding needs no struct
 * definitions. The Python package (tools/python) is built on it and does what the command does, with the same code and
 * to the same bits. The WebAssembly module (tools/web) has the part that needs no files: models in memory, one record
 * at a time, streams.
 *
 * Calls. A function that returns int32_t returns 0 for success, else a failure; mtan_flat_message then returns a
 * sentence, and results are left untouched. A function that returns a handle returns NULL on failure. Several threads
 * may use a handle at once as long as none of them changes or frees it; a stream serves one thread at a time. Nothing
 * is printed, and nothing ends the program.
 * Names. Lists of names are zero-terminated UTF-8 texts, one after another.
 * Pointers and counts are trusted; numbers, names and files are checked. */
#ifndef MTAN_FLAT_H
#define MTAN_FLAT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) && defined(MTAN_FLAT_SHARED)
#define MTAN_FLAT __attribute__((visibility("default")))
#else
#define MTAN_FLAT
#endif

MTAN_FLAT const char *mtan_flat_version(void);
/* The message of this thread's last failed call; "" if there is none. Valid until the next call, which may clear it. */
MTAN_FLAT const char *mtan_flat_message(void);
/* Sets the listener for messages during this thread's calls, as they are made: remarks, and with `wrong` errors. NULL:
 * none. */
typedef void (*mtan_flat_listener)(void *context, int32_t wrong, const char *text);
MTAN_FLAT void mtan_flat_listen(mtan_flat_listener listener, void *context);

/* ---- Records ------------------------------------------------------------------------------------------------
 *
 * Columns as in tools/data/own_columns.h. Arrays stay the caller's and must outlive the handle. Either `time` (numbers)
 * or `date` (ticks of 100 ns since 1970) is NULL; dates become hours since a record's first observation. */
typedef struct mtan_flat_data mtan_flat_data;
MTAN_FLAT mtan_flat_data *mtan_flat_data_new(int32_t n_records, const char *records, const int64_t *offset,
                                             int32_t n_channels, const char *channels, const double *time,
                                             const int64_t *date, const int32_t *channel, const double *value);
MTAN_FLAT void mtan_flat_data_free(mtan_flat_data *data);
/* The first n channels are static: their rows have no time. */
MTAN_FLAT void mtan_flat_data_statics(mtan_flat_data *data, int32_t n);
/* The label of each record, a class (-1: not known) or a number (NaN: not known); or of each label time, if there are
 * any. */
MTAN_FLAT void mtan_flat_data_classes(mtan_flat_data *data, int32_t n_classes, const char *classes,
                                      const int32_t *label);
MTAN_FLAT void mtan_flat_data_numbers(mtan_flat_data *data, const double *number);
/* Several labels that are each true or not: rows of n values 1, 0, or NaN for not known. */
MTAN_FLAT void mtan_flat_data_labels(mtan_flat_data *data, int32_t n_labels, const char *labels, const double *value);
MTAN_FLAT void mtan_flat_data_label_times(mtan_flat_data *data, const int64_t *offset, const double *time,
                                          const int64_t *date);
/* (n_records) group: records of one group stay in the same part of a split; -1: no group. part: a given split: 0
 * training, 1 validation, 2 test. */
MTAN_FLAT void mtan_flat_data_groups(mtan_flat_data *data, const int32_t *group);
MTAN_FLAT void mtan_flat_data_parts(mtan_flat_data *data, const int32_t *part);
/* Times at which the model is queried, ascending in each record, delimited by `offset`. They are counted as the model
 * counts them, in the data's unit: from the record's first observation if times are dates or --origin record was given
 * in training. */
MTAN_FLAT void mtan_flat_data_queries(mtan_flat_data *data, const int64_t *offset, const double *time);
/* Ignores rows of channels that the model does not have; otherwise they are an error. */
MTAN_FLAT void mtan_flat_data_skip_unknown(mtan_flat_data *data, int32_t skip);

/* ---- Models ------------------------------------------------------------------------------------------------- */

typedef struct mtan_flat_model mtan_flat_model;
MTAN_FLAT mtan_flat_model *mtan_flat_model_load(const char *path);
/* A model file in memory, which is copied. */
MTAN_FLAT mtan_flat_model *mtan_flat_model_open(const void *bytes, size_t n);
MTAN_FLAT void mtan_flat_model_free(mtan_flat_model *model);
/* The file's bytes, which the model owns; and writing it to a file, atomically. */
MTAN_FLAT const void *mtan_flat_model_bytes(const mtan_flat_model *model, size_t *n);
MTAN_FLAT int32_t mtan_flat_model_save(const mtan_flat_model *model, const char *path);
/* The text of a setting ("enc_hidden") or of a metadata value ("mtan.plan.seed"), as mtan_file_metadata returns it. */
MTAN_FLAT int32_t mtan_flat_model_text(const mtan_flat_model *model, const char *key, char *text, size_t size,
                                       size_t *length);
/* The kernels that it uses on this machine: "avx2". */
MTAN_FLAT const char *mtan_flat_model_backend(const mtan_flat_model *model);
MTAN_FLAT int32_t mtan_flat_model_outputs(const mtan_flat_model *model); /* numbers in a row of a prediction */
MTAN_FLAT int32_t mtan_flat_model_channels(const mtan_flat_model *model);
MTAN_FLAT const char *mtan_flat_model_channel(const mtan_flat_model *model, int32_t index); /* NULL: no such channel */
/* The name of a class, a number or a label. NULL: no such name. */
MTAN_FLAT const char *mtan_flat_model_class(const mtan_flat_model *model, int32_t index);
/* With two classes the one that a probability is about, else -1. */
MTAN_FLAT int32_t mtan_flat_model_positive(const mtan_flat_model *model);
/* The unit of times: "hours", "" if the file does not say; whether times are dates; whether they are counted from a
 * record's first observation. */
MTAN_FLAT const char *mtan_flat_model_unit(const mtan_flat_model *model);
MTAN_FLAT int32_t mtan_flat_model_has_dates(const mtan_flat_model *model);
MTAN_FLAT int32_t mtan_flat_model_from_first(const mtan_flat_model *model);
/* The range of a channel's values in training or, with -1, of the times, as they are counted. Fails without a message
 * if unknown. */
MTAN_FLAT int32_t mtan_flat_model_range(const mtan_flat_model *model, int32_t channel, double *least, double *most);

/* ---- Prediction ---------------------------------------------------------------------------------------------
 *
 * threads: 0 for as many as the machine has, at most 8. samples of the latent state: 0 for its mean, -1 for the number
 * in the model's file, or for curves without a learned variance 20. seed: of the samples. A record that cannot be used fails the call, and the message names it. */

/* The distinct times of the records, as the model counts them, in the data's unit: offsets (n_records + 1), and the
 * times. Either may be NULL. */
MTAN_FLAT int32_t mtan_flat_times(const mtan_flat_model *model, const mtan_flat_data *data, int64_t *offset,
                                  double *time);
/* (rows, outputs): a row per record; for a model that predicts at times, a row per query or, without queries, per
 * distinct time. Such a model is asked at the distinct times too, as in training, because its answer at one time may
 * depend on the other times. Numbers are in the data's unit. */
MTAN_FLAT int32_t mtan_flat_predict(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                                    int32_t samples, uint64_t seed, double *out);
/* (queries, channels) in the data's units. */
MTAN_FLAT int32_t mtan_flat_interpolate(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                                        int32_t samples, uint64_t seed, double *mean, double *sd);
/* (records, ref_points, latent) of the posterior. */
MTAN_FLAT int32_t mtan_flat_latent(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                                   double *mean, double *logvar);
/* (points, times of the record): the weight of each of the record's times at each reference point. reference (points):
 * the times of the points; a model that uses the record's own times has as many points as the record has times. */
MTAN_FLAT int32_t mtan_flat_attention(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record,
                                      int32_t head, int32_t channel, double *weight, double *reference);
/* The observations of a record as the model sees them: repeats averaged, codes for missing left out; in the data's
 * units. count: their number; the others may be NULL. */
MTAN_FLAT int32_t mtan_flat_observations(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record,
                                         int32_t *count, double *time, int32_t *channel, double *value);
/* (observations) by how much each one raises the output for the record: the log-odds of a class or of a label, or the
 * number in the data's unit. of: the class or the label, or -1 for the likeliest, which it is set to; 0 for a number.
 * said: the output. */
MTAN_FLAT int32_t mtan_flat_importance(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record,
                                       int32_t threads, int32_t *of, double *said, double *change);
/* The metrics of predictions by the data's labels, or by the values held out of each record: one row for each metric
 * that mtan_flat_metric names, which returns NULL past the last. value (metrics, 3): the metric and its 95 % interval
 * from `draws` resamples of the records; NaN where there is none. */
MTAN_FLAT const char *mtan_flat_metric(const mtan_flat_model *model, int32_t index);
MTAN_FLAT int32_t mtan_flat_evaluate(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                                     int32_t samples, uint64_t seed, int32_t draws, double *value);

/* ---- Comparison ---------------------------------------------------------------------------------------------
 *
 * For comparisons with other implementations of a model. */

/* Records as the model sees them, repeats averaged, in order of time: offsets of their events (n_records + 1), and the
 * events in the model's units. All but offset may be NULL. */
MTAN_FLAT int32_t mtan_flat_prepare(const mtan_flat_model *model, const mtan_flat_data *data, int64_t *offset,
                                    double *time, int32_t *channel, double *value);
/* The number of parameters; the name of one, as in the published code's state dicts, and its shape, a vector being one
 * column. */
MTAN_FLAT int32_t mtan_flat_parameters(const mtan_flat_model *model);
MTAN_FLAT int32_t mtan_flat_parameter(const mtan_flat_model *model, int32_t index, char *name, size_t size,
                                      int32_t *rows, int32_t *cols);
/* The loss of labelled records as one batch, (4): loss, minus the bound, cross-entropy, KL; and its gradient, in the
 * order of mtan_flat_parameter. noise (n_records, samples, ref_points, latent): of the latent state; NULL: drawn with
 * the seed. */
MTAN_FLAT int32_t mtan_flat_gradient(const mtan_flat_model *model, const mtan_flat_data *data, const double *noise,
                                     uint64_t seed, double kl_weight, double *loss, double *gradient);

/* ---- Streams ------------------------------------------------------------------------------------------------
 *
 * A record whose observations arrive one by one, in the data's units. Times are counted as for mtan_flat_data_queries,
 * and the first observation sets their origin: a number, or ticks if the model's times are dates. name: of the record;
 * samples depend on it. The model must outlive the stream. */
typedef struct mtan_flat_stream mtan_flat_stream;
MTAN_FLAT mtan_flat_stream *mtan_flat_stream_new(const mtan_flat_model *model, const char *name, int32_t samples,
                                                 uint64_t seed);
MTAN_FLAT void mtan_flat_stream_free(mtan_flat_stream *stream);
MTAN_FLAT int32_t mtan_flat_stream_push(mtan_flat_stream *stream, double time, int64_t date, const char *channel,
                                        double value);
/* (outputs); or (channels) means and deviations. `time` or `date` matters only if a prediction belongs to a time. */
MTAN_FLAT int32_t mtan_flat_stream_predict(mtan_flat_stream *stream, double time, int64_t date, double *out);
MTAN_FLAT int32_t mtan_flat_stream_interpolate(mtan_flat_stream *stream, double time, int64_t date, double *mean,
                                               double *sd);
MTAN_FLAT int32_t mtan_flat_stream_reset(mtan_flat_stream *stream);

/* ---- Commands -----------------------------------------------------------------------------------------------
 *
 * Runs a command of `mtan`, given by its words without "mtan": train own, report, convert, quantize, export. Other
 * commands print results and are refused. data, if not NULL, replaces --data and --labels. Returns the command's exit
 * status. `mtan train own` on the command line writes the same bytes. */

/* Called after each step of a training, with NaN for the numbers of validation, and after each epoch, with batch 0. If
 * it returns 0, the run is saved and ends with status 130. After the last epoch, while trees are fitted or the model is
 * compared with others, it is called with epoch 0 and NaN for all numbers. */
typedef int32_t (*mtan_flat_progress)(void *context, int32_t epoch, int32_t epochs, int32_t batch, int32_t batches,
                                      double loss, double val_loss, double val_metric);
MTAN_FLAT int32_t mtan_flat_run(const mtan_flat_data *data, int32_t n_words, const char *const *words,
                                mtan_flat_progress progress, void *context);

#endif
