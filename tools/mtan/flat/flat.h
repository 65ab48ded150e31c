/* mtan for other languages: functions of numbers, texts and arrays, and three opaque handles. A binding mirrors no struct. The
 * Python package (tools/python) stands on it; what it does is what the command does, by the same code and to the same bits. The
 * WebAssembly module (tools/web) has the part of it that needs no files: models in memory, one record at a time, streams.
 *
 * Calls.  What returns int32_t returns 0 for success, else a failure, and mtan_flat_message then has a sentence. Results are not
 * touched then. What returns a handle returns NULL on failure. Handles may be used by several threads at once as long as none of
 * them changes or frees one; a stream serves one at a time. Nothing is printed, nothing ends the program.
 * Names.  Lists of names are zero-terminated UTF-8 texts, one after the other.
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
/* What went wrong in this thread's last call that failed; "" before. Valid until the next one. */
MTAN_FLAT const char *mtan_flat_message(void);
/* Who hears what is said during this thread's calls, as it is said: remarks, and with `wrong` what goes wrong. NULL: nobody. */
typedef void (*mtan_flat_listener)(void *context, int32_t wrong, const char *text);
MTAN_FLAT void mtan_flat_listen(mtan_flat_listener listener, void *context);

/* ---- Records ------------------------------------------------------------------------------------------------
 *
 * Columns as tools/data/own_columns.h has them; arrays stay the caller's and must outlive the handle. `time` or `date` is NULL:
 * numbers, or ticks of 100 ns since 1970, of which hours since a record's first observation become. */
typedef struct mtan_flat_data mtan_flat_data;
MTAN_FLAT mtan_flat_data *mtan_flat_data_new(int32_t n_records, const char *records, const int64_t *offset,
                                             int32_t n_channels, const char *channels, const double *time,
                                             const int64_t *date, const int32_t *channel, const double *value);
MTAN_FLAT void mtan_flat_data_free(mtan_flat_data *data);
/* The first n channels do not change in a record: their rows have no time. */
MTAN_FLAT void mtan_flat_data_statics(mtan_flat_data *data, int32_t n);
/* What is to be learned of each record, a class (-1: not known) or a number (NaN: not known); of times where there are any. */
MTAN_FLAT void mtan_flat_data_classes(mtan_flat_data *data, int32_t n_classes, const char *classes,
                                      const int32_t *label);
MTAN_FLAT void mtan_flat_data_numbers(mtan_flat_data *data, const double *number);
/* Or several labels that are each true or not: rows of n values 1, 0 or NaN for not known. */
MTAN_FLAT void mtan_flat_data_labels(mtan_flat_data *data, int32_t n_labels, const char *labels, const double *value);
MTAN_FLAT void mtan_flat_data_label_times(mtan_flat_data *data, const int64_t *offset, const double *time,
                                          const int64_t *date);
/* (n_records) Records of one group stay on one side of a split, -1: of none; and a split that is given: 0 training, 1 validation,
 * 2 test. */
MTAN_FLAT void mtan_flat_data_groups(mtan_flat_data *data, const int32_t *group);
MTAN_FLAT void mtan_flat_data_parts(mtan_flat_data *data, const int32_t *part);
/* Times at which a model is asked, ascending in each record, as `offset` says; as the model counts them, in the data's unit: from the
 * record's first observation where times are dates or --origin record was given in training. */
MTAN_FLAT void mtan_flat_data_queries(mtan_flat_data *data, const int64_t *offset, const double *time);
/* Rows of channels that the model does not have are left out; else they are an error. */
MTAN_FLAT void mtan_flat_data_skip_unknown(mtan_flat_data *data, int32_t skip);

/* ---- Models ------------------------------------------------------------------------------------------------- */

typedef struct mtan_flat_model mtan_flat_model;
MTAN_FLAT mtan_flat_model *mtan_flat_model_load(const char *path);
MTAN_FLAT mtan_flat_model *mtan_flat_model_open(const void *bytes,
                                                size_t n); /* a model file in memory, which is copied */
MTAN_FLAT void mtan_flat_model_free(mtan_flat_model *model);
/* The file's bytes, which stay the model's; and the file, written whole or not at all. */
MTAN_FLAT const void *mtan_flat_model_bytes(const mtan_flat_model *model, size_t *n);
MTAN_FLAT int32_t mtan_flat_model_save(const mtan_flat_model *model, const char *path);
/* A setting ("enc_hidden") or a value of the file's metadata ("mtan.plan.seed"), as mtan_file_metadata gives it. */
MTAN_FLAT int32_t mtan_flat_model_text(const mtan_flat_model *model, const char *key, char *text, size_t size,
                                       size_t *length);
/* Its kernels on this machine: "avx2". */
MTAN_FLAT const char *mtan_flat_model_backend(const mtan_flat_model *model);
MTAN_FLAT int32_t mtan_flat_model_outputs(const mtan_flat_model *model); /* numbers in a row of a prediction */
MTAN_FLAT int32_t mtan_flat_model_channels(const mtan_flat_model *model);
MTAN_FLAT const char *mtan_flat_model_channel(const mtan_flat_model *model, int32_t index); /* NULL: no such channel */
/* Of a class, of a number or of a label. NULL: no such name. */
MTAN_FLAT const char *mtan_flat_model_class(const mtan_flat_model *model, int32_t index);
/* The class that a probability is about where there are two, else -1. */
MTAN_FLAT int32_t mtan_flat_model_positive(const mtan_flat_model *model);
/* Of the times: "hours", "" where the file does not say; whether they come as dates, and whether they are counted from a record's
 * first observation. */
MTAN_FLAT const char *mtan_flat_model_unit(const mtan_flat_model *model);
MTAN_FLAT int32_t mtan_flat_model_has_dates(const mtan_flat_model *model);
MTAN_FLAT int32_t mtan_flat_model_from_first(const mtan_flat_model *model);
/* What training saw of a channel, or, with -1, of the times, as they are counted. Fails, without a message, where that is not known. */
MTAN_FLAT int32_t mtan_flat_model_range(const mtan_flat_model *model, int32_t channel, double *least, double *most);

/* ---- Prediction ---------------------------------------------------------------------------------------------
 *
 * threads: 0 for as many as the machine has, at most 8. samples of the latent state: 0 for its mean, -1 for what the model's file
 * says. seed: of the samples. A record that cannot be used fails the call, which names it. */

/* A record's distinct times, as the model counts them in the data's unit: where they begin, (n_records + 1), and the times. Either
 * may be NULL. */
MTAN_FLAT int32_t mtan_flat_times(const mtan_flat_model *model, const mtan_flat_data *data, int64_t *offset,
                                  double *time);
/* (rows, outputs): a row for each record; of a model that predicts at times, for each query or, without any, for each of its
 * distinct times. Numbers are in the data's unit. */
MTAN_FLAT int32_t mtan_flat_predict(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                                    int32_t samples, uint64_t seed, double *out);
/* (queries, channels) in the data's units. */
MTAN_FLAT int32_t mtan_flat_interpolate(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                                        int32_t samples, uint64_t seed, double *mean, double *sd);
/* (records, ref_points, latent) of the posterior. */
MTAN_FLAT int32_t mtan_flat_latent(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                                   double *mean, double *logvar);
/* (points, times of the record): what each reference point takes of each of the record's times. reference, (points), are their
 * times; a model whose points are the record's own has as many as the record has times. */
MTAN_FLAT int32_t mtan_flat_attention(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record,
                                      int32_t head, int32_t channel, double *weight, double *reference);
/* The observations of a record as the model is shown them: repeats averaged, codes for missing left out; in the data's units.
 * count is how many; the others may be NULL. */
MTAN_FLAT int32_t mtan_flat_observations(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record,
                                         int32_t *count, double *time, int32_t *channel, double *value);
/* (observations) by how much each of them raises what is said of the record: the log-odds of a class or of a label, or the number, in
 * the data's unit. of: the class or the label, or -1 for the likeliest, which it becomes; of a number 0. */
MTAN_FLAT int32_t mtan_flat_importance(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record,
                                       int32_t threads, int32_t *of, double *said, double *change);
/* What predictions are worth by the data's labels, or by what is held out of each record: a row for each metric that
 * mtan_flat_metric names, NULL behind the last. value, (metrics, 3): the metric and its 95 % interval by `draws` resamples of the
 * records; NaN where there is none. */
MTAN_FLAT const char *mtan_flat_metric(const mtan_flat_model *model, int32_t index);
MTAN_FLAT int32_t mtan_flat_evaluate(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                                     int32_t samples, uint64_t seed, int32_t draws, double *value);

/* ---- Comparison ---------------------------------------------------------------------------------------------
 *
 * What other implementations of a model are compared with. */

/* Records as the model sees them, repeats averaged, in the order of time: where their events begin, (n_records + 1), and the events
 * in the model's units. All but offset may be NULL. */
MTAN_FLAT int32_t mtan_flat_prepare(const mtan_flat_model *model, const mtan_flat_data *data, int64_t *offset,
                                    double *time, int32_t *channel, double *value);
/* How many there are; and one of them: its name as in the published code's state dicts, and its shape, a vector of one column. */
MTAN_FLAT int32_t mtan_flat_parameters(const mtan_flat_model *model);
MTAN_FLAT int32_t mtan_flat_parameter(const mtan_flat_model *model, int32_t index, char *name, size_t size,
                                      int32_t *rows, int32_t *cols);
/* The loss of labelled records as one batch, (4): loss, minus the bound, cross-entropy, KL; and its gradient, parameter after
 * parameter. noise, (n_records, samples, ref_points, latent), of the latent state; NULL: drawn by the seed. */
MTAN_FLAT int32_t mtan_flat_gradient(const mtan_flat_model *model, const mtan_flat_data *data, const double *noise,
                                     uint64_t seed, double kl_weight, double *loss, double *gradient);

/* ---- Streams ------------------------------------------------------------------------------------------------
 *
 * One record whose observations arrive one by one, in the data's units. Times are counted as mtan_flat_data_queries says, and the
 * first observation sets where they begin: by a number, or by ticks where the model's times are dates. name: of the record, on which
 * samples depend. The model must outlive the stream. */
typedef struct mtan_flat_stream mtan_flat_stream;
MTAN_FLAT mtan_flat_stream *mtan_flat_stream_new(const mtan_flat_model *model, const char *name, int32_t samples,
                                                 uint64_t seed);
MTAN_FLAT void mtan_flat_stream_free(mtan_flat_stream *stream);
MTAN_FLAT int32_t mtan_flat_stream_push(mtan_flat_stream *stream, double time, int64_t date, const char *channel,
                                        double value);
/* (outputs); or (channels) means and deviations. The time counts where a prediction belongs to one. */
MTAN_FLAT int32_t mtan_flat_stream_predict(mtan_flat_stream *stream, double time, int64_t date, double *out);
MTAN_FLAT int32_t mtan_flat_stream_interpolate(mtan_flat_stream *stream, double time, int64_t date, double *mean,
                                               double *sd);
MTAN_FLAT int32_t mtan_flat_stream_reset(mtan_flat_stream *stream);

/* ---- Commands -----------------------------------------------------------------------------------------------
 *
 * A command of `mtan` by its words, without "mtan": train own, report, convert, quantize, export; others print and are refused. Data,
 * where it is not NULL, takes the place of --data and --labels. The result is the command's exit status. `mtan train own` and this write
 * the same bytes. */

/* Called after each step of a training, where validation's numbers are NaN, and after each epoch, where batch is 0. 0: the run is saved
 * and ends, with the status 130. */
typedef int32_t (*mtan_flat_progress)(void *context, int32_t epoch, int32_t epochs, int32_t batch, int32_t batches,
                                      double loss, double val_loss, double val_metric);
MTAN_FLAT int32_t mtan_flat_run(const mtan_flat_data *data, int32_t n_words, const char *const *words,
                                mtan_flat_progress progress, void *context);

#endif
