/* mtan: Multi-Time Attention Networks (Shukla & Marlin, ICLR 2021) in two C99 files.
 *
 * The model learns from time series that are sparse, irregular and multivariate. A record is a list of observations
 * (time, channel, value) in any order, without padding and without a mask. The library trains and runs two models with
 * the numbers of the published PyTorch code:
 *     mTAND-Enc   classifies a record, or every time point of it
 *     mTAND-Full  a variational encoder and decoder that interpolates at any time, and can classify records too
 *
 * The library never allocates, prints, exits, starts a thread or keeps a global: the caller owns every byte. It needs
 * no libc beyond memcpy, memmove, memset and memcmp, and no libm.
 *
 * Below is a whole program: it opens a model that `mtan train` wrote, passes raw observations to it and prints a
 * prediction. `make vendored` cuts the program out of this comment, compiles it with one command and runs it on a model
 * of made-up patients:
 *
 *     --- program ---
 *     #include "mtan.h"
 *     #include <stdio.h>
 *     #include <stdlib.h>
 *
 *     int main(void) {
 *         static unsigned char blob[200000];
 *         FILE *in = fopen("model.safetensors", "rb");
 *         size_t bytes = in ? fread(blob, 1, sizeof blob, in) : 0;
 *         size_t count = 0;
 *         mtan_file file;
 *         mtan_model model;
 *         mtan_prep prep;
 *         mtan_predictor run;
 *         mtan_prepared found;
 *         mtan_event events[8];
 *         mtan_bounds most = {1, 8, 8};  // records at once, events and times of a record
 *         mtan_real p[2];
 *
 *         if (mtan_file_open(&file, blob, bytes)) return 1;
 *         if (mtan_model_load_count(&file, NULL, &count)) return 1;
 *         if (mtan_model_load(&model, malloc(count * sizeof(mtan_real)), count, &file, NULL)) return 1;
 *         if (mtan_prep_size(&file, &bytes)) return 1;
 *         if (mtan_prep_open(&prep, &file, malloc(bytes), bytes, NULL)) return 1;
 *         if (mtan_predictor_size(&model, &most, &bytes)) return 1;
 *         if (mtan_predictor_init(&run, &model, &most, malloc(bytes), bytes)) return 1;
 *
 *         mtan_observation raw[] = {     // in the data's own units: hours, beats a minute, degrees
 *             {1.5, mtan_prep_channel_named(&prep, "pulse"), 84},
 *             {13.25, mtan_prep_channel_named(&prep, "temperature"), 37.9},
 *             {21, mtan_prep_channel_named(&prep, "pulse"), 97},
 *         };
 *         if (mtan_prep_record(&prep, raw, 3, events, 8, &found)) return 1;
 *         mtan_record record = {events, found.events};
 *         if (mtan_predictor_classify(&run, &record, 1, p)) return 1;
 *         printf("p(%s) = %.4f\n", prep.class_names[prep.positive], p[prep.positive]);
 *         return 0;
 *     }
 *     --- end ---
 *
 * Life.  A config describes the model. The weights are a flat array of mtan_real, or a model file that is used where it
 * lies, without a copy. A predictor runs a model; a trainer changes its weights. Each needs one block of the caller's
 * memory: ask `*_size` how many bytes, pass the block to `*_init`, and keep it as long as the predictor or trainer is
 * used. The block may have any alignment. A block that is one byte too small is MTAN_ERR_MEMORY.
 * Bounds.  The size of a block follows from its bounds: how many records are handled at once, and how large the largest
 * record is. A record beyond the bounds is refused with MTAN_ERR_MEMORY, and nothing is changed.
 * Errors.  A function that can fail returns mtan_status, and 0 is success. On failure the results are not written. A
 * prediction that is not finite, because a sum overflowed or a weight is NaN, is a failure: MTAN_ERR_NUMERIC.
 * Threads.  No function keeps hidden state. A predictor or trainer serves one caller at a time. Any number of
 * predictors may share a model that is not being trained.
 *
 * The sections up to Prediction are enough to open a model and to predict. Streams, small memory, training and files
 * follow; the section "What is promised" is about bits, times and devices. Authors of models and backends find what
 * they need behind MTAN_INTERNALS; that part may change between versions, and so may struct layouts. Members that are
 * marked private belong to the library.
 *
 * Letters in shapes:  B records   L time points of a record   K reference points   Q query times   D channels   H heads
 * E time embedding   N hidden units   Z latent size   S samples   C classes, numbers or labels   O outputs
 * P parameters
 */
#ifndef MTAN_H
#define MTAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MTAN_VERSION "0.1.0"
const char *mtan_version(void); /* SemVer of the linked library; MTAN_VERSION is that of this header */

/* The arithmetic type. The double build exists to be compared with the reference in float64. */
#ifdef MTAN_DOUBLE
typedef double mtan_real;
#else
typedef float mtan_real;
#endif

/* ---- Status ------------------------------------------------------------------------------------------------- */

typedef enum mtan_status {
    MTAN_OK = 0,
    MTAN_ERR_NULL = -1,    /* a pointer that must not be null is null */
    MTAN_ERR_CONFIG = -2,  /* a setting is out of range or contradicts another */
    MTAN_ERR_MEMORY = -3,  /* the memory given is too small, or a record is larger than the bounds */
    MTAN_ERR_SIZE = -4,    /* the sizes asked for do not fit in 32-bit offsets */
    MTAN_ERR_INPUT = -5,   /* NaN or infinite time or value, channel or label out of range, negative count */
    MTAN_ERR_FILE = -6,    /* not a valid safetensors file, or not a model of this library */
    MTAN_ERR_MISSING = -7, /* no such tensor, metadata key, setting or named configuration */
    MTAN_ERR_SHAPE = -8,   /* a tensor does not have the shape or type that the model needs */
    MTAN_ERR_WRITE = -9,   /* the write callback failed */
    MTAN_ERR_DEVICE = -10, /* the backend's device failed; its own message says how */
    MTAN_ERR_NUMERIC = -11 /* a weight or a result is not finite: NaN, or too large */
} mtan_status;

const char *mtan_status_message(mtan_status status); /* one sentence, never null */

/* ---- Configuration ------------------------------------------------------------------------------------------ */

typedef enum mtan_kind { MTAN_ENC, MTAN_FULL } mtan_kind;

/* What the model classifies: nothing (MTAN_FULL only); each record; or each query time of a record. With MTAN_FULL, the
 * classifier of query times reads the decoder. */
typedef enum mtan_classify_kind { MTAN_CLASSIFY_NONE, MTAN_CLASSIFY_RECORD, MTAN_CLASSIFY_TIME } mtan_classify_kind;

/* What the model predicts for a record or for a query time:
 *     CLASSES  which one of C classes it belongs to
 *     NUMBER   C numbers, learned by squared error. With config.interval, a probability below 1, each number has three
 *              outputs, learned by pinball loss: low, median and high. The share `interval` of the numbers lies between
 *              low and high
 *     LABELS   C labels, of which it may have any subset */
typedef enum mtan_task { MTAN_TASK_CLASSES, MTAN_TASK_NUMBER, MTAN_TASK_LABELS } mtan_task;

/* How an encoder or decoder interpolates.
 *     ATTENTION  with the attention weights of the paper, in one or more heads
 *     RBF        with weights exp(-beta (q - t)^2), and a learned beta for each channel (in the decoder, for each
 *                hidden unit)
 *     RNN3       the same as ATTENTION with one head; only the names of its parameters differ, because they are those
 *                of the reference's enc_rnn3 and dec_rnn3 */
typedef enum mtan_interp_kind { MTAN_ATTENTION, MTAN_RBF, MTAN_RNN3 } mtan_interp_kind;

/* The time embedding. LEARNED: one linear component and E - 1 sines, with learned frequencies and phases. FIXED: sines
 * and cosines that follow from config.embed_base and config.embed_scale. */
typedef enum mtan_embedding { MTAN_EMBED_LEARNED, MTAN_EMBED_FIXED } mtan_embedding;
/* The learned embedding: one for all heads, as in the published code, or one for each head, as in the paper. */
typedef enum mtan_embed_heads { MTAN_EMBED_SHARED, MTAN_EMBED_PER_HEAD } mtan_embed_heads;

/* Initial weights of the learned time embedding. This setting changes nothing else.
 *     PUBLISHED  as in the published code: each frequency turns by at most one radian over the whole record, so
 *                attention starts as wide as the record
 *     LOG        frequencies evenly spaced on a log scale from config.slowest to config.fastest, and query and key
 *                projections with which a point attends to its neighbourhood */
typedef enum mtan_frequencies { MTAN_FREQUENCIES_PUBLISHED, MTAN_FREQUENCIES_LOG } mtan_frequencies;

/* Where the K reference points are:
 *     EVEN      evenly spaced from 0 to 1
 *     GIVEN     at the K times in config.ref
 *     OBSERVED  different for every record: at its query times (MTAN_ENC), or at its distinct event times (MTAN_FULL).
 *               K is then different for every record too */
typedef enum mtan_reference { MTAN_REF_EVEN, MTAN_REF_GIVEN, MTAN_REF_OBSERVED } mtan_reference;

/* How the S samples z_s of the latent state make one bound. Let v_s = (log p(x|z_s) - kl_weight * KL) / cells, where
 * the division by the number of observed cells happens only with config.norm.
 *     FAITHFUL  log mean exp of v_s over the samples, as in the published code
 *     ELBO      mean of v_s
 *     IWAE      log mean exp of v_s, with log q(z_s|x) - log p(z_s) of each sample in place of the KL */
typedef enum mtan_bound { MTAN_BOUND_FAITHFUL, MTAN_BOUND_ELBO, MTAN_BOUND_IWAE } mtan_bound;

/* The standard deviation of an observation, given z.
 *     FIXED    noise_std everywhere
 *     LEARNED  noise_std + softplus(output of a small network), a different value for each channel and time. The
 *              network reads the decoder's states at that time, and the encoder's intensity there, which is log(1 + sum
 *              of exp(score)) over a channel's observations. The intensity tells the network where a channel has a gap.
 *              For MTAN_FULL with attention in both the encoder and the decoder */
typedef enum mtan_variance { MTAN_VARIANCE_FIXED, MTAN_VARIANCE_LEARNED } mtan_variance;

/* Local statistics: what the encoder computes from the observations around a reference point, for each head and
 * channel, in addition to their weighted mean. The published model has the mean alone.
 *     SPREAD     how far the values spread (1 number)
 *     INTENSITY  how many observations there are and how near they are (1 number)
 *     SLOPE      whether they lie before the point or after it; whether the values rise; and what that trend adds to
 *                the mean at the point itself (3 numbers)
 * The formulas are in mtan.c, section 3. */
enum { MTAN_SPREAD = 1, MTAN_INTENSITY = 2, MTAN_SLOPE = 4 };

/* How attention reads an observation of value x.
 *     PLAIN      x itself, as published
 *     QUANTILE   one number from 0 to 1: where x lies among the values of its channel in training
 *     PIECEWISE  x, and a number from 0 to 1 for each of config.bins bins
 * Static channels, summaries and targets always keep the plain values.
 *
 * Both encodings rest on knots: each channel has bins + 1 of them, in ascending order from the smallest value to the
 * largest. They are the quantiles of the channel's training values, if somebody fits them. Bin j lies between knot j
 * (low) and knot j + 1 (high). The share of x in that bin is (x - low) / (high - low), limited to 0 below the bin and 1
 * above it; in a bin of width 0 it is 0 below the knots and 1 from them on. PIECEWISE passes x and the share of every
 * bin to attention as 1 + bins channels that are observed at the same times. (Gorishniy et al. 2022 use the shares
 * without x, and leave the outermost bins open.) QUANTILE passes the mean of the shares.
 *
 * The knots are a tensor of the model, rec.values.knots, channel by channel. They start evenly spaced from 0 to 1, and
 * training does not change them. In a file they must be finite (MTAN_ERR_NUMERIC) and must not decrease within a
 * channel (MTAN_ERR_FILE). */
typedef enum mtan_values { MTAN_VALUES_PLAIN, MTAN_VALUES_QUANTILE, MTAN_VALUES_PIECEWISE } mtan_values;
#define MTAN_MAX_BINS 64

/* The classifier of records can read numbers about each channel that is not static, in addition to the sequence. There
 * are three groups; config.summaries says how many of them it reads. They are computed from the channel's values in the
 * order of time.
 *
 * The first group has MTAN_SUMMARIES numbers. All are 0 for a channel without observations.
 *      0  1 if the channel was observed, else 0
 *      1  log(1 + number of observations)
 *      2  mean
 *      3  standard deviation
 *      4  first value
 *      5  last value
 *      6  smallest value
 *      7  largest value
 *      8  mean of |step|, where a step is a value minus the value before it
 *      9  trend: the correlation of value and time, times the standard deviation
 *     10  time of the last observation */
#define MTAN_SUMMARIES 11
/* The second group describes the shape of the values, with MTAN_SHAPES numbers that do not change with the unit. All
 * are 0 if the channel has only one distinct value. Steps are as above, sd is the standard deviation, and the weight of
 * a step across a gap is 1 / (1 + g^2), where g is the gap in typical gaps: half a cycle of config.fastest.
 *      0  skewness of the values
 *      1  log kurtosis of the values
 *      2  (largest value - mean) / sd
 *      3  (mean - smallest value) / sd
 *      4  mean of |step| / sd
 *      5  the same mean, weighted by the weights of the steps
 *      6  mean of |step| / root mean square of the steps
 *      7  skewness of the steps around 0: mean of step^3 / (root mean square)^3
 *      8  mean of |value - mean of the values before it| / sd
 * The two skewnesses (0 and 7) and the two distances (2 and 3) are compressed: x becomes log(1 + x), and a negative x
 * becomes -log(1 - x). All nine numbers are rounded to multiples of 2^-16. */
#define MTAN_SHAPES 9
/* The third group describes the course of the values, with MTAN_COURSE numbers: the mean of the values in each eighth
 * of the unit of time. Values before time 0 count in the first eighth, values after time 1 in the last. An eighth
 * without observations takes the mean of the eighth before it; if there is none before it, that of the first that has
 * any. */
#define MTAN_COURSE 8

/* A model of records may have decision trees in addition to the network. Each tree sorts a record into one of
 * MTAN_LEAVES leaves and adds that leaf's numbers (its heights) to the record's outputs: logits, or numbers before they
 * are in the data's unit. Trees split by the summaries above and by the means of static channels. A new model has trees
 * that add nothing, and training does not change them. A program that fits trees writes three tensors:
 *     rec.trees.share   one factor, by which the network's own outputs are multiplied
 *     rec.trees.split   MTAN_LEAVES - 1 splits for each tree. A split has four numbers: leaf, number, threshold, side
 *     rec.trees.height  for each tree and leaf, what it adds to each output
 * A record starts in leaf 0 and goes through the splits of a tree in order. Split k, from 0, applies only if the record
 * is in the split's `leaf`. `number` is an index into the record's row of mtan_summaries; the split moves the record to
 * leaf k + 1 if the value there is `threshold` or more. If the channel of that value was not observed, the record moves
 * if `side` is 1. */
#define MTAN_LEAVES 12
#define MTAN_MAX_TREES 4096

/* How the predictions of S samples make one: by the mean of the probabilities, or by the mean of their logs. */
typedef enum mtan_rule { MTAN_MEAN_PROBABILITY, MTAN_MEAN_LOG_PROBABILITY } mtan_rule;

typedef struct mtan_architecture mtan_architecture;
#define MTAN_MAX_EXTRA 12

typedef struct mtan_config {
    mtan_kind kind;
    mtan_classify_kind classify;
    mtan_task task;
    mtan_interp_kind encoder, decoder;
    mtan_embedding embedding;
    mtan_embed_heads embed_heads;
    mtan_reference reference;
    mtan_frequencies frequencies;
    /* frequencies in cycles per unit of time; 0: 1 and 16. The initial weights of MTAN_FREQUENCIES_LOG use both.
     * MTAN_SLOPE and MTAN_SHAPES measure distances in time in half cycles of `fastest` */
    double slowest, fastest;
    int32_t statistics; /* MTAN_SPREAD | ..., as text "mean,spread,..."; 0: the mean alone */
    mtan_values values; /* how attention reads an observation; not with MTAN_RBF */
    int32_t bins;       /* per channel, 1 to MTAN_MAX_BINS; MTAN_VALUES_PLAIN has none */
    /* what the classifier of records reads of each channel in addition to the sequence: 0: nothing; 1: MTAN_SUMMARIES
     * numbers; 2: MTAN_SHAPES more; 3: MTAN_COURSE more */
    int32_t summaries;
    /* the first `statics` channels do not change during a record. Attention leaves them out; the classifier of records
     * reads the mean of each and whether it was observed */
    int32_t statics;
    int32_t trees; /* how many trees the model has, see MTAN_LEAVES; they need summaries or statics. 0: none */
    int32_t channels, classes;      /* D, C */
    int32_t embed;                  /* E; even for the fixed embedding */
    int32_t enc_heads, dec_heads;   /* H, divides E */
    int32_t enc_hidden, dec_hidden; /* N of the GRUs: of encoder and classifier; of the decoder, per direction */
    int32_t latent, ref_points;     /* Z, K */
    int32_t mlp_hidden;             /* hidden units from GRU to latent state, and from decoder states to observation */
    int32_t head_hidden;            /* width of the classifier's two hidden layers; 0: a single linear layer */
    double embed_base, embed_scale; /* fixed embedding: sin and cos of embed_scale t embed_base^(-2i / E) */
    /* the loss: */
    mtan_bound bound;
    int32_t samples;          /* S in training */
    int32_t norm, skip_empty; /* 1: divide the bound by the observed cells; 1: leave out records without a target */
    int32_t kl_anneal; /* weight of the KL: 0: mtan_train_config.kl_weight; 1: 0 up to epoch 10, then growing to 1 */
    mtan_variance variance;
    double noise_std, alpha; /* standard deviation (or its minimum) in the model's units; weight of the cross-entropy */
    double interval;         /* numbers: 0: predict the mean; else an interval with this probability, and the median */
    /* predictions: */
    mtan_rule rule;
    int32_t predict_samples;               /* S in prediction; 0: a single z, the posterior's mean */
    int32_t members;                       /* models in an ensemble; 0 or 1: a single model. See mtan_model_member */
    const mtan_real *ref;                  /* (K) times for MTAN_REF_GIVEN; the caller's memory */
    const mtan_architecture *architecture; /* null: the paper's model of this kind */
    double extra[MTAN_MAX_EXTRA];          /* settings that an architecture adds */
} mtan_config;

/* Defaults: E 128, one head, K 128, hidden 128 (Enc) or 256 (Full), latent 20, the preset CORRECT. */
mtan_status mtan_config_init(mtan_config *config, mtan_kind kind, mtan_classify_kind classify, int32_t channels,
                             int32_t classes);
int32_t mtan_config_outputs(const mtan_config *config); /* O: C; 3 C of numbers with an interval; 0 without a task */

/* ---- Models ------------------------------------------------------------------------------------------------- */

/* The kernels that compute a model. simd/mtan_simd.h has faster ones. */
typedef struct mtan_backend mtan_backend;
extern const mtan_backend mtan_backend_scalar;
const char *mtan_backend_name(const mtan_backend *backend);
int32_t mtan_backend_fused(const mtan_backend *backend); /* 1: of the fused class, see "Same bits" */

/* How a predictor stores its matrices. INT8 makes them four times smaller, with one scale per row, and its products are
 * products of integers. That is faster for single records, most of all on CPUs without vector instructions. A trainer
 * needs REAL. */
typedef enum mtan_precision { MTAN_REAL, MTAN_INT8 } mtan_precision;

#define MTAN_MAX_PARAMS 64

typedef struct mtan_model {
    mtan_config config;
    const mtan_backend *backend; /* mtan_backend_scalar unless the caller sets another after init */
    mtan_precision precision;    /* MTAN_REAL; the caller may set another after init, before sizing a predictor */
    const mtan_real *weights;
    uint32_t offset[MTAN_MAX_PARAMS]; /* private */
    const int8_t *rows;               /* private, like row0 */
    uint32_t row0[MTAN_MAX_PARAMS];
} mtan_model;

/* A checked safetensors file in memory, see the section Files. It points into the blob. */
typedef struct mtan_file {
    size_t tensors;                                         /* number of tensors */
    size_t pairs;                                           /* number of metadata pairs */
    const uint8_t *header, *metadata, *metadata_end, *data; /* private, like data_bytes */
    size_t data_bytes;
} mtan_file;
mtan_status mtan_file_open(mtan_file *file, const void *blob, size_t bytes);

/* The functions below take `known`, a list of architectures that a file may name in addition to the paper's. The list
 * ends with a null; if `known` itself is null, there are none. mtan_model_open and mtan_model_load read every weight
 * once, and a weight that is not finite is MTAN_ERR_NUMERIC. mtan_model_init does not check weights.
 *
 * mtan_model_open uses the model in the file without copying it. The blob (flash, mmap) must stay, start at a multiple
 * of 4 bytes and hold F32, and the host must be little-endian. Otherwise the result is MTAN_ERR_SHAPE: use
 * mtan_model_load. A model with I8 matrices that was opened works with the small path only. */
mtan_status mtan_model_open(mtan_model *model, const mtan_file *file, const mtan_architecture *const *known);
/* mtan_model_load copies the weights, from any address and any floating type, on any host, into an array of
 * mtan_model_load_count reals: the weights, followed by the K points of MTAN_REF_GIVEN. If the file has I8 matrices,
 * the model's precision becomes MTAN_INT8. */
mtan_status mtan_model_load_count(const mtan_file *file, const mtan_architecture *const *known, size_t *count);
mtan_status mtan_model_load(mtan_model *model, mtan_real *weights, size_t count, const mtan_file *file,
                            const mtan_architecture *const *known);

/* An ensemble is one model with config.members > 1. Each of its parameters holds the members' parameters one below the
 * other, in memory as in files. Predictors and streams average the members: probabilities; or means, and the variance
 * of all members together. mtan_predictor_logits then gives logits of the averaged probabilities, one row per
 * prediction rather than S. Latent states, curves and attention are those of the first member. Trainers and the small
 * path need a single model, otherwise MTAN_ERR_CONFIG.
 *
 * mtan_model_member: one member as a model of its own, without copying. MTAN_ERR_INPUT if there is no such index. */
#define MTAN_MAX_MEMBERS 64
mtan_status mtan_model_member(mtan_model *member, const mtan_model *model, int32_t index);
/* Makes an ensemble of n models, which needs n times as many weights as one of them. Their settings must be the same,
 * otherwise MTAN_ERR_CONFIG. */
mtan_status mtan_model_join(mtan_model *model, mtan_real *weights, size_t count, const mtan_model *members, int32_t n);

/* ---- Records ------------------------------------------------------------------------------------------------ */

typedef struct mtan_event {
    mtan_real time;
    int32_t channel;
    mtan_real value;
} mtan_event;

#define MTAN_UNLABELED (-1)

/* One record. Only `events` and `n_events` are always needed; set the rest to zero. Observations may come in any order.
 * Observations with the same time, or the same time and channel, stay separate. A record may have none at all. */
typedef struct mtan_record {
    const mtan_event *events; /* what the model sees */
    int32_t n_events;
    int32_t n_targets;
    const mtan_event *targets; /* what the decoder is scored on; null: the events */
    const mtan_real *times;    /* query times, ascending; null: the distinct event times */
    int32_t n_times;
    int32_t n_noise;          /* length of `noise` in reals: S x K x Z or more */
    const int32_t *labels;    /* one, or one per query time; the loss ignores MTAN_UNLABELED; null: none */
    const mtan_real *numbers; /* targets of NUMBER, scaled, and of LABELS, 1 or 0: C per row; the loss ignores NaN */
    const mtan_real *noise;   /* (S, K, Z) standard normals; null: drawn from (seed, epoch, id, sample) */
    uint64_t id;              /* mtan_bytes_hash of the record's name: its noise depends on it */
} mtan_record;

typedef struct mtan_bounds {
    int32_t records; /* most records in one call of a predictor, or in one batch of a trainer */
    int32_t events;  /* most events of a record, and most targets */
    int32_t times;   /* most distinct times, and most query times; their sum if an architecture joins them */
} mtan_bounds;

/* Counts L, the distinct event times of a record. If the events are in the order of time, this takes linear time and no
 * scratch. Otherwise they are sorted in `scratch`, which holds two numbers per event; if it is null, the result is
 * MTAN_ERR_MEMORY. */
mtan_status mtan_record_times(const mtan_record *record, int32_t *scratch, int32_t *times);

/* ---- Preparation --------------------------------------------------------------------------------------------
 *
 * A model does not see the data's own numbers: values were clipped and scaled, and times were counted from an origin
 * and divided. A file of `mtan train` holds these rules. The functions here apply them to raw observations, and convert
 * results back to the data's units:
 *
 *     mtan_prep_size(&file, &bytes);
 *     mtan_prep_open(&prep, &file, memory, bytes, NULL);
 *     raw[0].time = 3.5, raw[0].channel = mtan_prep_channel_named(&prep, "HR"), raw[0].value = 81;
 *     mtan_prep_record(&prep, raw, n, events, n + prep.channels, &found);
 *     record.events = events, record.n_events = found.events;
 *
 * The results have the same bits as those of `mtan predict`. A time or value that is too large for mtan_real after
 * scaling becomes its largest number, never infinite. What does not change within a record (mtan_config.statics) is an
 * observation like any other, whose time does not matter. A model without `statics` may see such a value as a channel
 * with one observation: it belongs at the time of the record's first observation if times are counted from there, else
 * at 0, where `mtan train --static` puts it.
 */
enum {
    MTAN_HAS_LOW = 1,
    MTAN_HAS_HIGH = 2,
    MTAN_HAS_MISSING = 4,
    MTAN_HAS_FILL = 8,
    MTAN_HAS_RANGE = 16,
    MTAN_HAS_BAND = 32
};

typedef struct mtan_prep_channel {
    mtan_real offset, scale; /* x becomes (clipped x - offset) / scale */
    mtan_real low, high;     /* x is clipped to these */
    mtan_real missing;       /* a code: a value that means "not observed" */
    mtan_real fill;          /* the channel's value at time 0 in a record that does not observe it */
    mtan_real least, most;   /* range of the values in training */
    mtan_real band;          /* factor on an interpolated standard deviation, found on the validation records */
    uint32_t has;            /* which of these the channel has: MTAN_HAS_LOW | ... */
} mtan_prep_channel;

/* Units of a predicted number: the model sees (x - offset) / scale. */
typedef struct mtan_prep_unit {
    double offset, scale;
} mtan_prep_unit;

typedef struct mtan_prep {
    int32_t channels, classes;        /* D, C */
    int32_t fitted;                   /* 1: the file has preprocessing; 0: numbers are used as they are */
    int32_t from_first;               /* 1: times count from the record's first observation of what changes */
    int32_t positive;                 /* the class whose probability is reported when there are two; else -1 */
    double time_scale;                /* times are divided by this */
    double first, last;               /* range of the times in training, from the origin; first > last: unknown */
    const char *unit;                 /* of the times: "hours"; "" if the file does not say */
    const mtan_prep_channel *channel; /* (D); null: values are used as they are */
    const char *const *channel_names; /* (D); null: the names are 0, 1, 2, ... */
    const char *const *class_names;   /* (C) of classes, numbers or labels; null: none */
    const mtan_prep_unit *number;     /* (C) for a model that predicts numbers; null: they are used as they are */
    const int32_t *order;             /* private: (D) channels sorted by name, or null */
    int32_t statics;                  /* so many channels, the first ones, do not change within a record */
} mtan_prep;

/* The prep points into the memory, which must stay; the file may go. A file is hostile until it is checked. If its
 * preprocessing cannot be used, the result is MTAN_ERR_FILE, and *key (key may be null) is the metadata key at
 * fault. The keys, which a program that trains gives to mtan_model_save; a list has a number for each channel, between
 * blanks, and inf, -inf or nan where there is none:
 *     mtan.prep.kind                              none, published, minmax, zscore or times
 *     mtan.prep.{offset,scale,low,high,missing}   lists
 *     mtan.prep.{fill,least,most,band}            lists, or not there
 *     mtan.time.scale                             three numbers: of training, validation and test, which is used
 *     mtan.time.span                              two: the first and the last time in training; or not there
 *     mtan.time.unit                              "hours", or not there
 *     mtan.names.{channels,classes}               ["Age","HR"], a JSON array, or not there
 *     mtan.names.positive                         the name of a class, or not there
 *     mtan.number.{offset,scale}                  for each number that the model predicts, or not there
 *     mtan.data.origin                            "record": times count from the record's first observation */
mtan_status mtan_prep_size(const mtan_file *file, size_t *bytes);
mtan_status mtan_prep_open(mtan_prep *prep, const mtan_file *file, void *memory, size_t bytes, const char **key);

/* The index of the channel or class with that name, or -1. For channels, leading zeros of a number are ignored: "07"
 * finds "7". */
int32_t mtan_prep_channel_named(const mtan_prep *prep, const char *name);
int32_t mtan_prep_class_named(const mtan_prep *prep, const char *name);

/* A raw observation. */
typedef struct mtan_observation {
    double time; /* in the data's unit; from any origin if the prep counts times from the first observation */
    int32_t channel;
    double value;
} mtan_observation;

/* What mtan_prep_record did with a record. An observation is far if it lies outside the range of training by more than
 * the width of that range. That usually means a wrong unit. The observation is used all the same. */
typedef struct mtan_prepared {
    int32_t events;                /* events written */
    int32_t missing;               /* observations left out because their value is the code for "not observed" */
    int32_t repeats;               /* observations averaged into another one of the same time and channel */
    int32_t filled;                /* channels without an observation that got their `fill` at time 0 */
    int32_t far_values, far_times; /* observations whose value is far; whose time is far */
    double origin;                 /* the time from which times were counted */
} mtan_prepared;

/* Turns n raw observations in any order into events in the order of time. `events` must have room for `room` events: n,
 * and D more if channels have a `fill`. `found` may be null. Fails with MTAN_ERR_NULL, MTAN_ERR_MEMORY,
 * MTAN_ERR_INPUT. */
mtan_status mtan_prep_record(const mtan_prep *prep, const mtan_observation *raw, int32_t n, mtan_event *events,
                             int32_t room, mtan_prepared *found);
/* One observation for a stream. Its time must be counted from the record's origin already, and repeats are not
 * averaged. MTAN_ERR_MISSING if its value is the code for "not observed". */
mtan_status mtan_prep_event(const mtan_prep *prep, const mtan_observation *raw, mtan_event *event);
/* 1 if a raw value, or a time counted from the record's origin, is far, see mtan_prepared. */
int32_t mtan_prep_far_value(const mtan_prep *prep, int32_t channel, double value);
int32_t mtan_prep_far_time(const mtan_prep *prep, double time);

/* A time, counted from the record's origin, as the model sees it, and back. Then an interpolated value, and its
 * standard deviation, in the data's units. */
mtan_real mtan_prep_time(const mtan_prep *prep, double time);
double mtan_prep_raw_time(const mtan_prep *prep, double time);
double mtan_prep_raw_value(const mtan_prep *prep, int32_t channel, double value);
double mtan_prep_raw_spread(const mtan_prep *prep, int32_t channel, double value);
/* A raw number as mtan_record.numbers needs it, and a predicted number in the data's units. */
mtan_real mtan_prep_number(const mtan_prep *prep, int32_t index, double number);
double mtan_prep_raw_number(const mtan_prep *prep, int32_t index, double number);

/* ---- Prediction --------------------------------------------------------------------------------------------- */

typedef struct mtan_predictor {
    const mtan_model *model;
    mtan_bounds bounds;
    uint64_t seed;          /* of the noise, for records without noise of their own */
    mtan_real *fold, *work; /* private, like the rest */
    size_t work_count;
    void *members;     /* ensembles: a model and a predictor for each member, which share the workspace; or null */
    mtan_real *result; /* ensembles: room for the averages */
    size_t result_count;
    int32_t failed;
    mtan_status status;
} mtan_predictor;

mtan_status mtan_predictor_size(const mtan_model *model, const mtan_bounds *bounds, size_t *bytes);
/* Folds the weights: call it again after the model's weights have changed. */
mtan_status mtan_predictor_init(mtan_predictor *predictor, const mtan_model *model, const mtan_bounds *bounds,
                                void *memory, size_t bytes);

/* Predictions by config.rule over config.predict_samples samples. With MTAN_CLASSIFY_RECORD `probability` is (n, O), a
 * row for each record. With MTAN_CLASSIFY_TIME it has a row for each query time: first those of record 0, then those of
 * record 1, and so on. A row has:
 *     CLASSES  C probabilities that sum to 1
 *     LABELS   C separate probabilities
 *     NUMBER   O numbers, the mean over the samples: see mtan_prep_raw_number
 * If n is more than bounds.records, the records are taken in chunks. After MTAN_ERR_NUMERIC the results of earlier
 * chunks have been written. */
mtan_status mtan_predictor_classify(mtan_predictor *predictor, const mtan_record *records, int32_t n,
                                    mtan_real *probability);

/* Runs body(argument, index, thread) for every index from 0 to n-1, each exactly once, with thread from 0 to threads-1.
 * Returns when all are done. */
typedef void (*mtan_body)(void *argument, int32_t index, int32_t thread);
typedef void (*mtan_parallel_for)(void *context, int32_t n, mtan_body body, void *argument);

/* mtan_predictor_classify on several threads. Each thread has a predictor of its own; all are of one model and have the
 * same bounds. The rows of record i start at row rows[i] of `probability`; `rows` may be null if each record has one
 * row. The bits are those of a single predictor. If chunks of records fail, the result is the status of the first of
 * them; the other chunks are computed all the same. tools/demo/parallel.c is a whole program. */
mtan_status mtan_predictors_classify(mtan_predictor *predictors, int32_t threads, mtan_parallel_for parallel_for,
                                     void *context, const mtan_record *records, int32_t n, const int32_t *rows,
                                     mtan_real *probability);

/* The decoder's mean and standard deviation over the samples at the record's query times, both (Q, D); std may be null.
 * With MTAN_VARIANCE_FIXED, std is the spread of the samples' curves alone. With MTAN_VARIANCE_LEARNED it is that of an
 * observation, noise included: its square is the variance of the curves over the samples plus the mean of the learned
 * variances. mtan_predictor_curves gives each sample's own curve, (S, Q, D). */
mtan_status mtan_predictor_interpolate(mtan_predictor *predictor, const mtan_record *record, mtan_real *mean,
                                       mtan_real *std);
mtan_status mtan_predictor_curves(mtan_predictor *predictor, const mtan_record *record, mtan_real *samples);

/* The raw logits: (rows, S, C), or (rows, S, O) for numbers, with rows as above and S = max(1, config.predict_samples).
 * S is 1 for MTAN_ENC. */
mtan_status mtan_predictor_logits(mtan_predictor *predictor, const mtan_record *records, int32_t n, mtan_real *logits);

/* The posterior over z: mean and log-variance, both (K, Z); or (1, Z) if the architecture has one latent state per
 * record. logvar may be null. */
mtan_status mtan_predictor_latent(mtan_predictor *predictor, const mtan_record *record, mtan_real *mean,
                                  mtan_real *logvar);

/* The encoder's attention for one head and channel: weight (Q, L) of every distinct time of the record at every
 * reference point (Q = K, or the query times). Rows sum to 1, or to 0 if the channel is static or was never
 * observed. */
mtan_status mtan_predictor_attention(mtan_predictor *predictor, const mtan_record *record, int32_t head,
                                     int32_t channel, mtan_real *weight);

/* ---- Streams ------------------------------------------------------------------------------------------------
 *
 * A stream is one record whose observations arrive one by one, in any order. It keeps the sums of the encoder's
 * attention, not the observations: its memory is the same after ten observations and after 10^9, and a prediction costs
 * only what the network after the attention costs. Any number of streams share one predictor:
 *
 *     mtan_bounds most = {1, 0, 1};                         no events; as many query times as one question has
 *     mtan_predictor_init(&predictor, &model, &most, ...);
 *     mtan_stream_size(&model, 0, &bytes);
 *     mtan_stream_init(&stream, &predictor, 0, memory, bytes);
 *     while (...) { mtan_stream_push(&stream, time, channel, value); mtan_stream_predict(&stream, NULL, p); }
 *
 * Same bits.  A prediction has the same bits as that of a predictor on the observations so far, as long as the
 * observations of each channel arrive in the order of time and are at most 2^16. The order between channels does not
 * matter, and observations of the same time and channel are never late. Only underflow can make a difference: it drops
 * observations with less than 2^-94 of their channel's weight.
 * Late observations.  Once an observation arrives late, or after 2^16 others of its channel, the sums of the channel
 * are kept with twice the digits: 10^8 observations are as exact as ten, while the plain sums of a batch drift. Results
 * then agree with a predictor's to a few 1e-6 of their largest entry (at least 1). But `summaries` leave a late
 * observation out of the steps between neighbours, and models that have them may then predict something else: where it
 * matters, keep the observations, and after a late one reset the stream and push them again in the order of time.
 * Cost.  O(H K E) for an observation at another time than the one before, O(H K) for a further one at the same time.
 * Memory.  About 5 D H K reals (mTAND-Enc of PhysioNet: 109 KB), or 13 D H K with local statistics. For each channel
 * 120 bytes more with config.summaries 1, 176 with 2 and 304 with 3. Three reals for each event of the window.
 * Use.  A second observation of the same time and channel counts in addition to the first, as in a batch. Different
 * threads may push to different streams of one predictor at the same time. Predicting and interpolating use the
 * predictor's workspace: one call at a time. After a new mtan_predictor_init, for changed weights, call
 * mtan_stream_init again. Models whose reference points are the record's own (MTAN_REF_OBSERVED) have no streams:
 * MTAN_ERR_CONFIG.
 */
typedef struct mtan_stream {
    mtan_predictor *predictor;
    int64_t events; /* observations gathered */
    void **
        gathered; /* private, like the rest: sums of each member; a ring with the last events; the latest time that this
                   * ring lost */
    mtan_event *kept;
    int32_t window, first, count, has_lost;
    mtan_real lost;
} mtan_stream;

/* window: how many of the last observations are kept for mtan_stream_expire; 0: none.
 * Fails with MTAN_ERR_NULL, MTAN_ERR_CONFIG, MTAN_ERR_INPUT (window < 0), MTAN_ERR_SIZE, MTAN_ERR_MEMORY. */
mtan_status mtan_stream_size(const mtan_model *model, int32_t window, size_t *bytes);
/* The predictor, its model and the memory must stay as long as the stream. */
mtan_status mtan_stream_init(mtan_stream *stream, mtan_predictor *predictor, int32_t window, void *memory,
                             size_t bytes);

/* A late observation counts like any other, except that `summaries` leaves it out of the steps between neighbours. A
 * channel out of range, or a time or value that is not finite, is MTAN_ERR_INPUT, and nothing is changed. */
mtan_status mtan_stream_push(mtan_stream *stream, mtan_real time, int32_t channel, mtan_real value);

/* Like mtan_predictor_classify, _logits and _interpolate. Only the query times, the noise and the id of `ask` are used;
 * null if none of them is needed. A class per time, and interpolation, need query times. Fail with MTAN_ERR_NULL,
 * _CONFIG, _INPUT, _NUMERIC, and MTAN_ERR_MEMORY (more times than the predictor's bounds). */
mtan_status mtan_stream_predict(mtan_stream *stream, const mtan_record *ask, mtan_real *probability);
mtan_status mtan_stream_logits(mtan_stream *stream, const mtan_record *ask, mtan_real *logits);
mtan_status mtan_stream_interpolate(mtan_stream *stream, const mtan_record *ask, mtan_real *mean, mtan_real *std);

mtan_status mtan_stream_reset(mtan_stream *stream); /* forgets everything */

/* Forgets the observations before a time. The sums are computed again from the observations in the window, which costs
 * as much as pushing those again; it costs nothing if no observation is forgotten. Call it now and then. Fails with
 * MTAN_ERR_NULL; MTAN_ERR_INPUT (`before` is not finite); MTAN_ERR_CONFIG (no window); and MTAN_ERR_MEMORY if the
 * window was too small and has lost an observation at or after `before`; then nothing is changed. */
mtan_status mtan_stream_expire(mtan_stream *stream, mtan_real before);

/* ---- Small memory -------------------------------------------------------------------------------------------
 *
 * mTAND-Enc with a class per record can run on one record without a predictor. It takes a few reference points at a
 * time and uses the weights where they lie (flash); nothing is folded, and the memory does not grow with the record.
 * mtan_small_size says how many bytes are needed to compute `points` reference points at once, from 1 to K. More points
 * are faster, because the events are read K / points times, and the result has the same bits. mTAND-Enc of PhysioNet
 * needs 6527 bytes for 1 point, 9663 for 4, and less than 4 KB of stack. With config.summaries, events that are not in
 * the order of time take n^2 steps.
 *
 * The small path is slower than a predictor. Its products associate differently: in float its logits agree with a
 * predictor's to 1e-5 of the largest (at least 1). Calls with separate memory may run at the same time. Fail with
 * MTAN_ERR_NULL, MTAN_ERR_CONFIG (another kind of model, or the record's own reference points), MTAN_ERR_SIZE,
 * MTAN_ERR_INPUT, MTAN_ERR_MEMORY, MTAN_ERR_NUMERIC.
 *
 * If mtan.c is compiled with MTAN_SMALL_ONLY, this is the only way to run a model, and the code is 20 KB smaller
 * (platform/cortex-m/README.md).
 */
mtan_status mtan_small_size(const mtan_model *model, int32_t points, size_t *bytes);
mtan_status mtan_small_classify(const mtan_model *model, const mtan_record *record, int32_t points, void *memory,
                                size_t bytes, mtan_real *probability);
mtan_status mtan_small_logits(const mtan_model *model, const mtan_record *record, int32_t points, void *memory,
                              size_t bytes, mtan_real *logits);

/* ---- Settings and weights ----------------------------------------------------------------------------------- */

/* Presets of loss and prediction.
 *     FAITHFUL  as in the published code
 *     CORRECT   as the paper says or, where the paper is silent, as is right
 *     BEST      CORRECT, and beyond the paper. A model of the paper's with an attention encoder also gets local
 *               statistics, initial frequencies on a log scale (see mtan_config_fit_frequencies) and, if it classifies
 *               records, all summaries
 * FAITHFUL and CORRECT leave the architecture as it is. */
typedef enum mtan_preset { MTAN_FAITHFUL, MTAN_CORRECT, MTAN_BEST } mtan_preset;
mtan_status mtan_config_preset(mtan_config *config, mtan_preset preset);

/* MTAN_OK; or MTAN_ERR_CONFIG or MTAN_ERR_SIZE if no model can have these settings. */
mtan_status mtan_config_check(const mtan_config *config);

/* Settings as text, as in model files: key "enc_hidden", value "128"; key "bound", value "elbo". A number with too many
 * decimals comes in C's hexadecimal form; both forms are read back to the same bits. mtan_config_key lists the keys and
 * returns null past the last. */
const char *mtan_config_key(int32_t index);
mtan_status mtan_config_get(const mtan_config *config, const char *key, char *text, size_t size);
mtan_status mtan_config_set(mtan_config *config, const char *key, const char *text);

/* The parameter table, in the order in which the reference creates the tensors. */
#define MTAN_NAME_SIZE 48
typedef struct mtan_param {
    char name[MTAN_NAME_SIZE]; /* as in the reference's state_dict, with the prefix rec., dec. or classifier. */
    int32_t rows, cols;        /* a vector has one column */
    int32_t rank;              /* 1 or 2: its rank in the reference */
    int32_t fan;               /* initial values are uniform in +-1/sqrt(fan) */
    uint32_t offset;           /* in the flat array of weights, gradients and moments */
} mtan_param;
int32_t mtan_param_count(const mtan_config *config); /* 0 for a config that fails its check */
mtan_status mtan_param_at(const mtan_config *config, int32_t index, mtan_param *param);

/* The row of numbers that the classifier of records reads in addition to the sequence. First come the summaries of the
 * channels that change, as many as config.summaries says, number by number: the first number of all channels, then the
 * second of all, and so on. Then come the means of the static channels, then for each of these 1 if it was observed.
 * mtan_summaries_count: the length of the row in reals, 0 if there is none. Events that are not in the order of time
 * take n^2 steps. Fails with MTAN_ERR_NULL, _CONFIG, _SIZE, _INPUT, MTAN_ERR_MEMORY (count too small). */
size_t mtan_summaries_count(const mtan_config *config);
mtan_status mtan_summaries(const mtan_config *config, const mtan_record *record, mtan_real *row, size_t count);

/* mtan_weights_count: P, or 0 for a config that fails its check. mtan_weights_init: initial weights, those of the
 * published code after torch.manual_seed(seed). MTAN_ERR_CONFIG for several `members`: each is trained as a model of its
 * own, and mtan_model_join puts them together. */
size_t mtan_weights_count(const mtan_config *config);
mtan_status mtan_weights_init(const mtan_config *config, mtan_real *weights, size_t count, uint32_t seed);

/* Sets config.slowest and config.fastest, unless they are set already, from records as the model sees them. `slowest`
 * becomes one cycle in the duration of the longest record, `fastest` one cycle in twice the typical gap between two
 * times of a record, which is the geometric mean of all gaps. Events must be in the order of time, as mtan_prep_record
 * leaves them. */
mtan_status mtan_config_fit_frequencies(mtan_config *config, const mtan_record *records, int32_t n);

/* A model on a flat array of `count` reals, at least mtan_weights_count. The array may be const if it is never
 * trained. */
mtan_status mtan_model_init(mtan_model *model, const mtan_config *config, const mtan_real *weights, size_t count);

/* An INT8 model that is used where it lies, in a quarter of the memory. It works with mtan_small_classify and
 * mtan_small_logits only: predictors, streams and trainers need reals and refuse it with MTAN_ERR_CONFIG. Matrices of
 * more than one column are int8, in `rows`. `weights` has, in the order of the parameter table, all other parameters,
 * and for each int8 matrix the scales of its rows. mtan_model_int8_counts gives the lengths of both arrays;
 * `mtan quantize` and `mtan export` make them. */
mtan_status mtan_model_int8_counts(const mtan_config *config, size_t *count, size_t *bytes);
mtan_status mtan_model_init_int8(mtan_model *model, const mtan_config *config, const mtan_real *weights, size_t count,
                                 const int8_t *rows, size_t bytes);

/* A 64-bit hash of bytes: FNV-1a, then the finaliser of splitmix64. For record ids; not safe against an adversary. */
uint64_t mtan_bytes_hash(const void *bytes, size_t n);

/* ---- Training ----------------------------------------------------------------------------------------------- */

typedef enum mtan_optimizer { MTAN_ADAM, MTAN_ADAMAX } mtan_optimizer; /* as torch.optim defines them */

/* Replaces `data` by its sum over all ranks. The sum is a binary tree over the ranks in order: for eight ranks,
 *     ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))
 * All ranks get the same bits. If it fails, it fails on all ranks. */
typedef mtan_status (*mtan_allreduce)(void *context, mtan_real *data, size_t n);

/* Factor on the learning rate for a step and an epoch, both counted from 1. */
typedef double (*mtan_schedule)(void *context, int64_t step, int32_t epoch);

typedef struct mtan_train_config {
    mtan_optimizer optimizer;
    double lr, beta1, beta2, epsilon;
    double decay;                /* of the weights, decoupled from the gradient; 0: none. See mtan_trainer_step */
    double average;              /* in [0, 1): what the moving average keeps at each step; 0: no average. See there */
    const double *class_weights; /* (C), finite, not negative; null: all 1. As torch's CrossEntropyLoss(weight) */
    double clip;                 /* largest norm of the whole gradient; 0: no clipping */
    double kl_weight;            /* weight of the KL if the model's kl_anneal is 0 */
    double dropout;              /* in [0, 1), of the classifier's units in training; 0: none. See mtan_trainer_step */
    uint64_t seed;               /* of the noise and of dropout */
    mtan_schedule schedule;      /* null: constant */
    void *schedule_context;
    int32_t threads;                /* number of workspaces; 1 without parallel_for */
    mtan_parallel_for parallel_for; /* null: one shard after another */
    void *parallel_context;
    /* by default 0 of 1. `ranks` is a power of two. All ranks get the same batch and end with the same weights */
    int32_t rank, ranks;
    mtan_allreduce allreduce; /* needed when ranks > 1 */
    void *allreduce_context;
} mtan_train_config;

/* torch's defaults: Adam, lr 1e-3, betas 0.9 and 0.999, epsilon 1e-8; one thread, one rank. */
void mtan_train_config_init(mtan_train_config *config);

/* Means over one batch. */
typedef struct mtan_report {
    double loss;  /* recon + alpha * ce; ce alone if nothing is reconstructed */
    double recon; /* minus the bound, mean over records */
    /* cross-entropy, mean over labels and samples, weighted by the trainer's class weights; for numbers their loss */
    double ce;
    double kl;            /* analytic, divided like the bound; mean over records */
    double squared_error; /* of the mean over the samples, summed over the target cells */
    double gradient_norm; /* before clipping */
    int64_t records;      /* in the reconstruction loss; all if nothing is reconstructed */
    int64_t labels;       /* rows with a label; numbers that are not NaN */
    /* labels whose mean probability over the samples is the largest, or on the right side of 0.5 */
    int64_t correct;
    int64_t cells; /* target cells */
} mtan_report;

typedef struct mtan_trainer {
    mtan_model *model;
    mtan_real *weights; /* the model's, writable */
    mtan_train_config config;
    mtan_bounds bounds;
    int64_t step;
    mtan_real *gradient, *moment1, *moment2; /* (P), in the order of the parameter table */
    mtan_real *average;                      /* (P) likewise; null without config.average. See mtan_trainer_step */
    struct mtan_trainer_state *state;        /* private: in the trainer's memory */
} mtan_trainer;

/* model->weights must be the writable array `weights`. */
mtan_status mtan_trainer_size(const mtan_model *model, const mtan_train_config *config, const mtan_bounds *bounds,
                              size_t *bytes);
mtan_status mtan_trainer_init(mtan_trainer *trainer, mtan_model *model, mtan_real *weights,
                              const mtan_train_config *config, const mtan_bounds *bounds, void *memory, size_t bytes);

/* One step on a batch of n records: loss, gradient, clipping, optimiser. On failure the weights stay as they were. It
 * fails with MTAN_ERR_INPUT if the loss or the gradient is not finite: the model diverged, or a value is too large for
 * it.
 *
 * Dropout: each unit in the two hidden layers of the classifier (in its input, if head_hidden is 0) is set to 0 with
 * the probability `dropout`, and multiplied by 1/(1 - dropout) otherwise. Which units are dropped depends only on the
 * seed, the step, the record's id, the sample, the position of the query and the unit. Shards, threads, ranks and the
 * order of records do not matter, and a trainer that was loaded continues as the saved one would have.
 *
 * Decay: before the step, each matrix of more than one column is multiplied by 1 - lr * schedule * decay, as in
 * torch.optim.AdamW. Parameters with one column do not decay: biases, bandwidths and the frequencies of the time
 * embedding.
 *
 * Average: the trainer keeps an exponential moving average of the weights, like torch.optim.swa_utils.AveragedModel
 * with get_ema_multi_avg_fn. It starts as the weights after the first step. After each later step it becomes
 *     average * itself + (1 - average) * the new weights
 * Make a second model on trainer->average, and validate and keep that one; initialise its predictors again after
 * steps. */
mtan_status mtan_trainer_step(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                              mtan_report *report);
/* Announces, before a step, the records of the step after it, so that a device receives them while it works on this
 * step. They must not change until that step. It is no error if that step then uses other records. */
void mtan_trainer_next(mtan_trainer *trainer, const mtan_record *records, int32_t n);
/* mtan_trainer_step in two halves. mtan_trainer_gradient gives the gradient of the batch (trainer->gradient) and the
 * report as they are, finite or not. mtan_trainer_update changes the weights; MTAN_ERR_INPUT if the gradient is not
 * finite. */
mtan_status mtan_trainer_gradient(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                                  mtan_report *report);
mtan_status mtan_trainer_update(mtan_trainer *trainer, int32_t epoch);
/* The loss alone, for validation. It is computed like that of a step but without dropout, and changes nothing except
 * the workspace. It may be NaN or infinite. */
mtan_status mtan_trainer_loss(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                              mtan_report *report);

/* Writes a model: weights under their names, settings as mtan.* metadata, and the caller's own pairs, such as those that
 * mtan_prep_open reads. With a trainer, its moments, average and step are written too, and training that resumes from
 * the file gives the same bits. */
#define MTAN_MAX_PAIRS 128 /* of the caller's own */
typedef struct mtan_file_pair {
    const char *key, *value; /* UTF-8 */
} mtan_file_pair;
/* Takes the next n > 0 bytes of a file; n may be 1. Any result other than MTAN_OK stops the writing. */
typedef mtan_status (*mtan_write_fn)(void *context, const void *bytes, size_t n);
mtan_status mtan_model_save(const mtan_model *model, const mtan_trainer *trainer, const mtan_file_pair *pairs,
                            size_t n_pairs, mtan_write_fn write, void *context);
mtan_status mtan_trainer_load(mtan_trainer *trainer, const mtan_file *file);
/* Only the settings of a file. Given reference points are used where they lie, or the result is MTAN_ERR_SHAPE. */
mtan_status mtan_model_load_config(mtan_config *config, const mtan_file *file, const mtan_architecture *const *known);

/* ---- Files: safetensors, read from memory and written through a callback ---------------------------------------
 *
 * A file is eight bytes (the header's length, little-endian), a JSON header and the tensors' bytes. The reader works on
 * a blob that the caller keeps (flash, mmap, a buffer), copies nothing and allocates nothing. A blob from elsewhere is
 * hostile until mtan_file_open has returned MTAN_OK. That function checks once: the header's length, JSON, UTF-8 and
 * escapes; each tensor's dtype, shape, size and range; that the tensors cover the data without overlap, hole or
 * trailing bytes; and that no name and no metadata key occurs twice. A blob that fails is MTAN_ERR_FILE. The check
 * makes two passes over a header of up to 512 tensors and 512 pairs, and some twenty at the limits below: 0.15 seconds
 * on a PC. It needs no memory but 2.5 KB of stack.
 *
 * Limits, beyond those of the format: rank 8, 4096 tensors, 4096 metadata pairs, a header of 4 MiB, sizes that fit in
 * size_t. Any number of threads may read one mtan_file. If the blob changes meanwhile, the reader gives wrong values or
 * MTAN_ERR_FILE, but never reads outside the blob.
 */
#define MTAN_MAX_RANK 8
#define MTAN_FILE_MAX_ENTRIES 4096u
#define MTAN_FILE_MAX_HEADER (4u * 1024u * 1024u)

/* clang-format off */
typedef enum mtan_dtype {
    MTAN_DTYPE_BOOL, MTAN_DTYPE_U8, MTAN_DTYPE_I8, MTAN_DTYPE_F8_E5M2, MTAN_DTYPE_F8_E4M3, MTAN_DTYPE_I16, MTAN_DTYPE_U16,
    MTAN_DTYPE_F16, MTAN_DTYPE_BF16, MTAN_DTYPE_I32, MTAN_DTYPE_U32, MTAN_DTYPE_F32, MTAN_DTYPE_F64, MTAN_DTYPE_I64,
    MTAN_DTYPE_U64
} mtan_dtype;
/* clang-format on */
#define MTAN_DTYPE_REAL (sizeof(mtan_real) == 8 ? MTAN_DTYPE_F64 : MTAN_DTYPE_F32) /* of an array of mtan_real */

/* A string as it stands in the header: the bytes between the quotes, escapes included, without a terminating zero. */
typedef struct mtan_text {
    const char *raw;
    size_t length;
} mtan_text;

/* A tensor inside the blob. */
typedef struct mtan_tensor_view {
    mtan_text name;
    mtan_dtype dtype;
    int rank;                    /* 0 is a scalar: one element */
    size_t shape[MTAN_MAX_RANK]; /* row-major; unused entries are 0 */
    size_t count;                /* number of elements, 0 when a dimension is 0 */
    size_t bytes;
    const uint8_t *data; /* little-endian elements */
    int aligned;         /* 1 when the address of `data` is a multiple of the element's size */
} mtan_tensor_view;

/* The length of a file, from its first bytes. Given 8 bytes, *length is where the header ends; given that many bytes,
 * *length is the length of the whole file. MTAN_ERR_FILE: no file starts like this. mtan_file_open may still refuse a
 * file whose length was found. */
mtan_status mtan_file_length(const void *start, size_t bytes, size_t *length);

/* A tensor by its name, by its index in the header, or one after another: start with *at = 0 and call again until
 * MTAN_ERR_MISSING, which means that there is no such tensor, or no further one. The first two search the header in
 * each call; the third continues where it was. */
mtan_status mtan_file_tensor(const mtan_file *file, const char *name, mtan_tensor_view *view);
mtan_status mtan_file_tensor_at(const mtan_file *file, size_t index, mtan_tensor_view *view);
mtan_status mtan_file_tensor_next(const mtan_file *file, size_t *at, mtan_tensor_view *view);

/* The metadata value of `key`, decoded and zero-terminated, in `text` of `size` bytes; *length (may be null) is its
 * length without the zero. With text null and size 0 only the length is given. MTAN_ERR_MISSING; MTAN_ERR_MEMORY (size
 * <= length). */
mtan_status mtan_file_metadata(const mtan_file *file, const char *key, char *text, size_t size, size_t *length);
/* The index-th pair of the metadata, as it stands in the file; or all pairs one after another, as above.
 * mtan_text_decode decodes a name, key or value; a \u0000 in it becomes a zero byte. */
mtan_status mtan_file_metadata_at(const mtan_file *file, size_t index, mtan_text *key, mtan_text *value);
mtan_status mtan_file_metadata_next(const mtan_file *file, size_t *at, mtan_text *key, mtan_text *value);
mtan_status mtan_text_decode(const mtan_text *coded, char *text, size_t size, size_t *length);

/* The tensor's elements where they lie; null if they cannot be used there, because of another dtype than
 * MTAN_DTYPE_REAL, a misaligned address or a big-endian host. */
const mtan_real *mtan_view_in_place(const mtan_tensor_view *view);
/* Copy all n elements, from any address and on any host: mtan_view_read and _f64 convert from F16, BF16, F32 or F64;
 * _i32 reads an I32 tensor; _raw reads a tensor of exactly this dtype, in the host's byte order. MTAN_ERR_SHAPE: n is
 * not the tensor's count, or the dtype is another one. */
mtan_status mtan_view_read(const mtan_tensor_view *view, mtan_real *out, size_t n);
mtan_status mtan_view_read_f64(const mtan_tensor_view *view, double *out, size_t n);
mtan_status mtan_view_read_i32(const mtan_tensor_view *view, int32_t *out, size_t n);
mtan_status mtan_view_read_raw(const mtan_tensor_view *view, mtan_dtype dtype, void *out, size_t n);

/* A tensor to write: elements of that dtype in the host's byte order. */
typedef struct mtan_file_entry {
    const char *name; /* UTF-8 */
    mtan_dtype dtype;
    int rank;
    size_t shape[MTAN_MAX_RANK];
    const void *data; /* may be null when the tensor has no elements */
} mtan_file_entry;

/* mtan_file_write_size gives the exact size of a file. mtan_file_write passes the file to a callback, and
 * mtan_file_write_memory writes it into a buffer of at least that size (*bytes is the part that was used). The metadata
 * comes first. Tensors follow in the given order, except that wider elements come first, so that every tensor is
 * aligned to its elements. The data starts at a multiple of 64, so that vectors can be loaded straight from a mapped
 * file. The same input gives the same bytes on every host. Fails, before anything is written, with MTAN_ERR_NULL;
 * MTAN_ERR_INPUT (not UTF-8, a name or a key twice, the name "__metadata__", no such dtype or rank); MTAN_ERR_SIZE;
 * MTAN_ERR_MEMORY (the buffer is too small); and halfway with MTAN_ERR_WRITE (the callback failed). */
mtan_status mtan_file_write_size(const mtan_file_entry *entries, size_t entry_count, const mtan_file_pair *pairs,
                                 size_t pair_count, size_t *bytes);
mtan_status mtan_file_write(const mtan_file_entry *entries, size_t entry_count, const mtan_file_pair *pairs,
                            size_t pair_count, mtan_write_fn write, void *context);
mtan_status mtan_file_write_memory(const mtan_file_entry *entries, size_t entry_count, const mtan_file_pair *pairs,
                                   size_t pair_count, void *out, size_t size, size_t *bytes);

/* ---- What is promised ---------------------------------------------------------------------------------------
 * Same bits.  Every sum has one order: ascending index, one accumulator, and one fused multiply-add per term if the
 * backend is of the fused class. Results therefore do not depend on threads, on the compiler, on its optimisation
 * level, or on which other records are in the batch being predicted. There are two classes of backends, fused and
 * unfused: bits agree within a class, and to rounding between them. Sums of losses over the cells of a record are
 * accumulated in double.
 * Times.  Any finite time is allowed. The embedding's sine is accurate for arguments up to 1e5; beyond that the float
 * build takes sin as 0 and cos as 1.
 * Devices.  A backend may have a memory of its own (platform/cuda/mtan_cuda.h). The caller then copies the weights and
 * each block there before `*_init`, and fetches weights and moments before reading or saving them; the library does the
 * rest. A failing device is MTAN_ERR_DEVICE. Streams, the small path, other architectures, threads and ranks run on
 * CPUs only: MTAN_ERR_CONFIG.
 */

#ifdef __cplusplus
}
#endif
#endif /* MTAN_H */

#if defined(MTAN_INTERNALS) && !defined(MTAN_INTERNALS_H)
#define MTAN_INTERNALS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- For authors of models and backends ------------------------------------------------------------------------
 *
 * Define MTAN_INTERNALS before this header to write an architecture or a backend, or to look into a run. All of it may
 * change from one version to the next. More letters in shapes: T time points of all records; R rows of a sequence:
 * steps x records, step-major, the records of a step contiguous. A gradient carries a d: dx is the gradient of the loss
 * with respect to x. Gradients are added to, never set.
 */

/* ---- Preparation of data sets that are in memory already ---- */

/* Sorts events in place by time, then by channel, without other memory. Events of one time and channel are merged into
 * one with their mean, computed in double. Returns how many remain. */
int32_t mtan_events_merge(mtan_event *events, int32_t n);
/* What mtan_prep_record does to single events, in place, for times that are counted from the origin: removes codes for "not
 * observed", scales values and times. Values of a channel that the model does not have stay as they are. Returns
 * how many remain. */
int32_t mtan_prep_scale(const mtan_prep *prep, mtan_event *events, int32_t n);
/* order: the indices of the names, sorted by their bytes, as in mtan_prep.order. */
void mtan_names_sort(int32_t *order, const char *const *names, int32_t n);

/* ---- Random numbers: PyTorch's for initial weights, a counter-based generator for noise and dropout ---- */

/* The state of MT19937. It has no pointers: copy it to fork a stream, store it to resume one. Seed it before use. */
typedef struct mtan_mt19937 {
    uint32_t state[624];
    int32_t index; /* words of the state already handed out; 624: all of them */
} mtan_mt19937;

/* The same state as numpy.random.RandomState(seed) and torch.manual_seed(seed) for an integer seed below 2^32. */
void mtan_mt_seed(mtan_mt19937 *rng, uint32_t seed);
uint32_t mtan_mt_next(mtan_mt19937 *rng); /* the next 32 random bits */

/* torch.empty(n).uniform_(low, high), bit for bit with PyTorch on a CPU with fused multiply-add (AVX2 or later), which
 * rounds low + u * (high - low) once. Elsewhere PyTorch rounds twice and may differ in the last bit. */
void mtan_torch_uniform(mtan_mt19937 *rng, float *out /* (n) */, size_t n, float low, float high);

/* Philox4x32-10 (Salmon et al., 2011): four random words from a counter and a key. */
void mtan_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* Standard normals. out[i] depends only on (seed, epoch, record, sample, i), not on n and not on what was drawn before.
 * `record` is the record's id. For one seed no two sets of coordinates share a counter. */
void mtan_noise_fill(const mtan_backend *backend, mtan_real *out /* (n) */, size_t n, uint64_t seed, uint64_t epoch,
                     uint64_t record, uint32_t sample);

/* A mask for dropout in [0, 1): 0 with that probability, else 1. out[i] depends only on (seed, step, record, sample,
 * first + i). `record` is the record's id, first + i is below 2^34, step below 2^62. For one seed no two sets of
 * coordinates share a counter with each other, or with mtan_noise_fill for an epoch below 2^62. */
void mtan_mask_fill(mtan_real *out /* (n) */, size_t n, double dropout, uint64_t seed, uint64_t step, uint64_t record,
                    uint32_t sample, uint64_t first);

#define MTAN_NO_ROWS UINT32_MAX /* mtan_model.row0 of a parameter that is stored as reals */
/* Quantizes a row of n weights to integers q from -127 to 127 and returns their scale, so that |x - q scale| <= scale /
 * 2. The scale is a float. It is 0 for a row of zeros (all weights below 2^-100 count as 0), and NaN if a weight is not
 * finite. */
mtan_real mtan_row_quantize(int8_t *q, const mtan_real *x, size_t n);

/* ---- Training ---- */

/* The number of shards for a batch of n records: a power of two that depends on n alone. */
int32_t mtan_shard_count(int32_t n);
/* Weight of the KL in an epoch (from 1): 0 up to epoch 10, then 1 - 0.99^(epoch - 10). */
double mtan_kl_anneal(int32_t epoch);
/* A thread's memory that is free between two calls of the trainer, for example for a predictor that validates, and its
 * size. Null and 0 on a device. */
void *mtan_trainer_scratch(const mtan_trainer *trainer, int32_t thread, size_t *bytes);

/* ---- Ops: the layer on which models are written ---- */

typedef enum mtan_function {
    MTAN_EXP,
    MTAN_LOG,
    MTAN_SIN,
    MTAN_COS,
    MTAN_TANH,
    MTAN_SIGMOID,
    MTAN_SOFTPLUS,
    MTAN_SQRT
} mtan_function;

/* A matrix in one of three spaces; offsets count reals. The workspace holds activations. The parameter space holds the
 * model's weights. The fold space holds what the prologue computes from the weights once per batch. Gradients of the
 * workspace are in the workspace, those of the other two in the shard's gradient array. */
enum { MTAN_SPACE_WORK, MTAN_SPACE_PARAM, MTAN_SPACE_FOLD };
#define MTAN_NO_GRAD UINT32_MAX

typedef struct mtan_tensor {
    uint32_t data, grad;
    int32_t rows, cols, stride; /* stride: reals from one row to the next */
    uint32_t space;
} mtan_tensor;

/* Order of the rows that are classified: by record and sample; by step of the sequence; by record, sample and query. */
typedef enum mtan_row_order { MTAN_ROWS_BY_RECORD, MTAN_ROWS_BY_STEP, MTAN_ROWS_BY_QUERY } mtan_row_order;

/* Records in normal form: times distinct and ascending, events grouped by channel and ascending in time. If the
 * sequence is ragged (MTAN_REF_OBSERVED), positions 0..B-1 are the records sorted by descending number of steps. */
typedef struct mtan_batch {
    int32_t records;  /* B */
    int32_t samples;  /* S */
    int32_t channels; /* D; with encoded values, the channels that the encoder sees */
    int32_t statics;  /* the first `statics` channels, which attention leaves out */
    int32_t outputs;  /* columns of a prediction: the channels of the targets */
    int32_t steps;    /* of the longest sequence: K, or with MTAN_REF_OBSERVED the most times of a record */
    int32_t *order;   /* (B) position -> index of the record */
    int32_t *first;   /* (steps + 1) first row of each step of the sequence; R = first[steps] */
    int32_t *length;  /* (B) steps of each record */
    int32_t *time0;   /* (B + 1) first time of each record */
    int32_t *score0;  /* (B + 1) first real of each record's block of scores, (L, steps of the record) */
    int32_t *begin;   /* (B, D + 1) events of a channel, as positions in row and value */
    int32_t *row;     /* row of an event's time, counted from the record's first time */
    mtan_real *value; /* value of an event */
    mtan_tensor time; /* (T, 1) distinct event times */
    mtan_tensor seen; /* (B, D) 1 where a channel was ever observed */
    /* (B S, ...) what the classifier reads of each record in addition to the sequence; 0 columns: nothing */
    mtan_tensor summary;
    /* MTAN_REF_OBSERVED: times of the sequence's steps, record by record; the same tensor as `query` or `time` */
    mtan_tensor point;
    int32_t *point0; /* (B + 1); null when all records share the reference points */
    int32_t *pair0;  /* (B + 1) first real of each record's block of decoder weights, (queries, steps of the record) */
    mtan_tensor query;  /* (Q, 1) query times, or distinct target times, of all records */
    int32_t *query0;    /* (B + 1) */
    int32_t *query_row; /* if an architecture joins queries: (Q) the step of the record at which a query lies */
    int32_t *place;     /* scratch */
    int32_t *cell0;     /* (B + 1) first target cell of each record; cells are in the order of time: */
    int32_t *cell_row;  /* row of a cell's query, counted from the record's first query */
    int32_t *cell_channel;
    mtan_real *cell_value;
    int32_t *label;    /* by position of the record, or by row of the sequence or query; null if there are numbers */
    mtan_real *number; /* for tasks with numbers, C in place of each label; else null */
    int32_t times, queries, cells, rows, events; /* T, Q, cells, R, events: of all records */
    int32_t scores, pairs;                       /* reals in all blocks of scores, and of decoder weights */
    int32_t most_times, most_queries;            /* of one record */
    uint64_t *id;                                /* (B) id of the record at each position */
    int32_t one_latent;                          /* the posterior has one row for a record, not one for a step */
} mtan_batch;

/* The trainer's own part of its memory. */
struct mtan_trainer_state {
    /* reals for P parameters, for folded weights, and for all gradients; aligned */
    size_t n_params, n_fold, n_gradient;
    int32_t shards;
    mtan_real *fold, *prologue, *work;
    size_t prologue_count, work_count;
    /* on a device: the workspace starts with room for two batches of batch_count reals, this step's and the next */
    size_t batch_count;
    int32_t place;           /* 0 or 1: the room of this step */
    const mtan_record *next; /* announced by mtan_trainer_next; or null */
    int32_t n_next;
    struct { /* the batch that was sent ahead, as announced before the last step; batch null: none */
        const mtan_record *records;
        int32_t n;
        mtan_batch *batch;
    } ahead;
};

typedef struct mtan_tape mtan_tape;

/* One recorded op. It has only 32-bit fields and reals, so its size is the same on every CPU. */
typedef struct mtan_node {
    uint32_t op;
    int32_t n[4];
    mtan_real x[2];
    mtan_tensor t[7];
} mtan_node;

typedef void (*mtan_backward)(mtan_tape *tape, const mtan_node *node);

struct mtan_tape {
    const mtan_backend *backend;
    const mtan_batch *batch;
    mtan_real *work; /* null: the run only counts memory; no op touches data */
    const mtan_real *params;
    mtan_real *fold;
    mtan_real *grads;           /* of parameters, then of folded weights */
    const mtan_backward *user;  /* backward of ops MTAN_OP_USER, MTAN_OP_USER + 1, ... that are defined elsewhere */
    size_t top, peak, capacity; /* reals in use now, at most, and in total; nodes lie at the far end */
    size_t fold_top, n_params;
    size_t fold_graded; /* length of the part of the fold space that has gradients; that part comes first */
    uint32_t nodes;
    int32_t recording;
    int32_t idle;             /* ops are recorded but computed elsewhere */
    mtan_precision precision; /* of packed weights */
    mtan_status status;       /* the first failure; ops after it do nothing */
};

/* Ops that are defined elsewhere have numbers from MTAN_OP_USER on. A table by number holds their backward functions:
 *     static const mtan_backward backward[] = {MTAN_BACKWARD(OP_MINE, mine_back),
 *                                              MTAN_BACKWARD(OP_OTHER, other_back)}; */
#define MTAN_OP_USER 1000u
#define MTAN_BACKWARD(op, function) [(op)-MTAN_OP_USER] = function

/* Tensors. mtan_new takes workspace (with a gradient when recording), mtan_new_fold takes fold space. mtan_columns and
 * mtan_rows are views. mtan_data and mtan_grad give addresses for kernels. */
mtan_tensor mtan_new(mtan_tape *tape, int32_t rows, int32_t cols);
mtan_tensor mtan_new_constant(mtan_tape *tape, int32_t rows, int32_t cols);
/* for mtan_op_gru: the gradient overwrites the data */
mtan_tensor mtan_new_gates(mtan_tape *tape, int32_t rows, int32_t cols);
mtan_tensor mtan_new_fold(mtan_tape *tape, int32_t rows, int32_t cols);
mtan_tensor mtan_new_fold_constant(mtan_tape *tape, int32_t rows, int32_t cols); /* after all with gradients */
mtan_tensor mtan_columns(mtan_tensor x, int32_t first, int32_t count);
mtan_tensor mtan_rows(mtan_tensor x, int32_t first, int32_t count);
mtan_real *mtan_data(const mtan_tape *tape, mtan_tensor x);
mtan_real *mtan_grad(const mtan_tape *tape, mtan_tensor x);
int32_t *mtan_new_ints(mtan_tape *tape, size_t n); /* null when counting or after a failure */

/* Appends a node for an op that is defined elsewhere; null when not recording or after a failure. */
mtan_node *mtan_record_op(mtan_tape *tape, uint32_t op);
/* Runs the recorded ops backwards, last first. */
void mtan_backpropagate(mtan_tape *tape);

/* The targets of a row: `count` numbers, or labels that are 1 or 0. With an interval each number has three outputs. */
typedef struct mtan_targets {
    mtan_task task; /* NUMBER or LABELS */
    int32_t count;
    mtan_real interval;
} mtan_targets;

/* The caller always provides y, so a concatenation is a set of views. */
void mtan_op_embed(mtan_tape *tape, mtan_tensor y, mtan_tensor time,
                   const mtan_tensor param[4]); /* linear w, b; periodic w, b */
void mtan_op_embed_fixed(mtan_tape *tape, mtan_tensor y, mtan_tensor time, double base, double scale);
void mtan_op_linear(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor w,
                    const mtan_tensor *bias);                                          /* y = x w^T + b */
void mtan_op_linear_add(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor w); /* y += x w^T */
void mtan_op_matmul(mtan_tape *tape, mtan_tensor y, mtan_tensor a, mtan_tensor b);     /* y = a b */
void mtan_op_scale(mtan_tape *tape, mtan_tensor x, double factor);                     /* in place */
void mtan_op_relu(mtan_tape *tape, mtan_tensor x);                                     /* in place */
void mtan_op_tanh(mtan_tape *tape, mtan_tensor x);                                     /* in place */
/* In place: 0 where the mask (of x's shape) is 0, x / (1 - dropout) where it is 1. */
void mtan_op_dropout(mtan_tape *tape, mtan_tensor x, mtan_tensor mask, double dropout);
void mtan_op_softplus(mtan_tape *tape, mtan_tensor y, mtan_tensor x);
void mtan_op_copy(mtan_tape *tape, mtan_tensor y, mtan_tensor x); /* concatenate: copy into a view */
void mtan_op_add(mtan_tape *tape, mtan_tensor y, mtan_tensor x);  /* y += x */
/* (B, C) to the rows (R, C) of the batch's sequence: each record's row at all of its steps */
void mtan_op_spread(mtan_tape *tape, mtan_tensor y, mtan_tensor x);
void mtan_op_last(mtan_tape *tape, mtan_tensor y, mtan_tensor x); /* (R S, N) to (B S, N): last step of each sequence */
void mtan_op_softmax(mtan_tape *tape, mtan_tensor x);             /* over the columns of each row, in place */
/* Products of the rows of each record (its times, or in the decoder its queries) with its points; a block per
 * record. */
void mtan_op_score(mtan_tape *tape, mtan_tensor score, mtan_tensor row, mtan_tensor point, int32_t decoder);
void mtan_op_softmax_pairs(mtan_tape *tape, mtan_tensor weight);     /* over the points of each query, in place */
void mtan_op_regroup(mtan_tape *tape, mtan_tensor y, mtan_tensor x); /* rows of a sequence, record by record */
void mtan_op_attend(mtan_tape *tape, mtan_tensor y, mtan_tensor score);
/* y (R, features x D): the local statistics in `statistics`. point: the times of the reference points. */
void mtan_op_moments(mtan_tape *tape, mtan_tensor y, mtan_tensor score, mtan_tensor point, double rate,
                     int32_t statistics);
void mtan_op_attend_rbf(mtan_tape *tape, mtan_tensor y, mtan_tensor query, mtan_tensor beta);
void mtan_op_attend_values(mtan_tape *tape, mtan_tensor y, mtan_tensor weight, mtan_tensor value);
void mtan_op_smooth(mtan_tape *tape, mtan_tensor y, mtan_tensor key, mtan_tensor beta, mtan_tensor value);
/* gx comes in as x W_ih^T + b_ih and is overwritten by the gates. Each row of the sequence occurs `samples` times in
 * succession. packed is w_hh as the backend packs it, or null. */
void mtan_op_gru(mtan_tape *tape, mtan_tensor y, mtan_tensor gx, mtan_tensor w_hh, mtan_tensor b_hh,
                 const mtan_tensor *packed, int32_t samples, int32_t reverse);
void mtan_op_sample(mtan_tape *tape, mtan_tensor z, mtan_tensor posterior, mtan_tensor noise);
void mtan_op_kl(mtan_tape *tape, mtan_tensor kl, mtan_tensor posterior);
void mtan_op_ratio(mtan_tape *tape, mtan_tensor ratio, mtan_tensor z, mtan_tensor posterior, mtan_tensor noise);
void mtan_op_loglik(mtan_tape *tape, mtan_tensor logp, mtan_tensor prediction, double std);
void mtan_op_loglik_sd(mtan_tape *tape, mtan_tensor logp, mtan_tensor prediction, mtan_tensor raw,
                       double least); /* std = least + softplus(raw) */
/* The loss of each record, which is minus its bound. `share` (B, 1) is the factor on (log p - kl_weight KL): 1 / cells,
 * or 0 for a record that is left out. */
void mtan_op_bound(mtan_tape *tape, mtan_tensor loss, mtan_tensor logp, mtan_tensor kl, mtan_tensor share,
                   mtan_bound bound, double kl_weight, double seed);
/* The loss of each row against the batch's labels. Each label has `samples` rows; if samples is 0, rows lie as in
 * mtan_op_attend_values, with a label for each query. p becomes softmax(x). seed is the gradient of each row's loss.
 * weight (1, C) of the classes, or null. */
void mtan_op_cross_entropy(mtan_tape *tape, mtan_tensor loss, mtan_tensor p, mtan_tensor x, const mtan_tensor *weight,
                           int32_t samples, double seed);
/* The loss of each row against the batch's numbers, with rows as above. p becomes the prediction: x, or sigmoid(x) for
 * labels. */
void mtan_op_numbers(mtan_tape *tape, mtan_tensor loss, mtan_tensor p, mtan_tensor x, const mtan_targets *targets,
                     int32_t samples, double seed);

/* ---- Architectures -------------------------------------------------------------------------------------------
 *
 * A model is a list of parameters and a forward function made of ops (those above, and its own). The library then does
 * the rest, with the same promises: sizes, gradients, shards, threads, training, prediction, files and checkpoints. The
 * one condition: what the forward function computes for a record may depend on that record alone. mTAND-Enc and
 * mTAND-Full are written this way (mtan.c, section 11), and so are the eleven models of tools/baselines.
 *
 *     mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 41, 2);
 *     mtan_config_architecture(&config, &my_architecture);
 *
 * A model of kind MTAN_ENC gives logits. A model of kind MTAN_FULL also has a latent state: it gives a posterior, z,
 * and a prediction at the target times. The sequence of a record (first, length and rows of mtan_batch) is the
 * reference points or, with MTAN_REF_OBSERVED, the record's own times: see the traits. A hook may be null if the model
 * does not have that feature; calls that need it are MTAN_ERR_CONFIG.
 */

/* A list of parameters under construction. */
typedef struct mtan_params mtan_params;
/* Appends a parameter and returns its index: rows x cols, rank 1 or 2, initial values uniform in +-1/sqrt(fan). */
int32_t mtan_params_add(mtan_params *params, const char *name, int32_t rows, int32_t cols, int32_t rank, int32_t fan);

/* What a forward pass has to compute. */
enum { MTAN_WANT_LOGITS = 1, MTAN_WANT_POSTERIOR = 2, MTAN_WANT_PREDICTION = 4, MTAN_WANT_LOSS = 8 };

typedef struct mtan_forward {
    mtan_tape *tape; /* its batch is the batch */
    const mtan_model *model;
    const mtan_config *config;
    const mtan_params *params;
    const void *roles;  /* the architecture's struct of parameter indices, as its `params` filled it */
    const void *folded; /* its struct of folded tensors, as its `lay_fold` filled it */
    mtan_tensor noise;  /* standard normals, or zeros, laid out as z: MTAN_FULL */
    uint32_t wanted;    /* MTAN_WANT_* */
    double dropout;     /* of the head's units; 0: none */
    int32_t epoch;
    uint64_t seed, step;
    const mtan_record *records; /* batch->order[b] is the index of the record at position b; null when counting */
    const void *gathered;       /* what a stream has gathered, in place of the events of the one record; or null */
} mtan_forward;

typedef struct mtan_outputs {
    mtan_tensor logits;     /* rows of C classes, in a mtan_row_order */
    mtan_tensor posterior;  /* (rows, 2Z) mean and log-variance: one row per step, or one per record */
    mtan_tensor z;          /* (rows S, Z) */
    mtan_tensor prediction; /* (Q S, D), record by record: (S, queries, D) */
    /* with MTAN_VARIANCE_LEARNED, shaped like prediction; its standard deviation is noise_std + softplus(deviation) */
    mtan_tensor deviation;
    mtan_tensor penalty; /* (B, 1) added to the loss, mean over the records; rows 0: none */
} mtan_outputs;

/* Parameter `index` as a tensor: (rows, cols), a vector as the row (1, n). */
mtan_tensor mtan_forward_param(const mtan_forward *f, int32_t index);
/* The batch as dense rows of its sequence: x (R, D), the mean of repeated observations, 0 where nothing was observed;
 * mask (R, D); and time (R, 1). All are constants. */
void mtan_forward_rows(const mtan_forward *f, mtan_tensor x, mtan_tensor mask, mtan_tensor time);
/* Copies rows of the sequence, (R S, C) with the S samples of a row together, to the rows of the queries (Q S, C), in
 * the order of logits with a class per time. */
void mtan_op_at_queries(mtan_tape *tape, mtan_tensor y, mtan_tensor x);

/* Properties of an architecture. */
typedef enum mtan_trait {
    MTAN_HAS_POINTS = 1,    /* it has reference points; otherwise each record has its own times: MTAN_REF_OBSERVED */
    MTAN_READS_TIMES = 2,   /* its own times are event times, not query times; logits per time are ordered by query */
    MTAN_JOINS_QUERIES = 4, /* with a class per time, the query times are also steps of the sequence */
    MTAN_ATTENDS = 8,       /* it needs the batch's blocks of scores and pairs */
    MTAN_ONE_LATENT = 16,   /* the posterior has one row per record, not one per step */
    MTAN_USES_ALPHA = 32,   /* config.alpha weighs the cross-entropy of records */
    MTAN_ON_DEVICE = 64,    /* kernels of the table do all of its work */
    MTAN_IN_INT8 = 128,     /* its matrices may be int8 */
    MTAN_HAS_VARIANCE = 256 /* its prediction may have a deviation */
} mtan_trait;

#define MTAN_MAX_ROLES 32
#define MTAN_MAX_FOLDED 40

struct mtan_architecture {
    const char *name; /* in files as mtan.architecture */
    /* names of config.extra[0], [1], ... up to a null, at most MTAN_MAX_EXTRA; null: none */
    const char *const *settings;
    const double *defaults; /* one for each setting */
    int32_t roles;          /* number of int32_t in its struct of parameter indices, at most MTAN_MAX_ROLES */
    int32_t folded;         /* number of tensors in its struct of folded tensors, at most MTAN_MAX_FOLDED; 0: none */
    uint32_t traits;        /* the sum of its mtan_trait */
    /* MTAN_OK, MTAN_ERR_CONFIG or MTAN_ERR_SIZE; null: nothing to check */
    mtan_status (*check)(const mtan_config *config);
    /* adds the parameters and stores their indices in `roles`, which starts as zeros, for init and forward */
    void (*params)(const mtan_config *config, mtan_params *params, void *roles);
    /* sets initial weights that are not uniform, after the uniform ones; null: none */
    void (*init)(const mtan_config *config, const void *roles, mtan_real *weights, mtan_mt19937 *rng);
    /* Computes what depends on the weights alone, once for a batch or a predictor; null: nothing. lay_fold takes fold
     * space, on every tape of the model; fold fills it. */
    void (*lay_fold)(const mtan_forward *f, void *folded);
    void (*fold)(const mtan_forward *f);
    /* null: it has only `small`, and predictors and trainers refuse it with MTAN_ERR_CONFIG */
    void (*forward)(const mtan_forward *f, mtan_outputs *out);
    const mtan_backward *backward; /* of its own ops: MTAN_OP_USER, MTAN_OP_USER + 1, ... */
    /* optional hooks; null: the architecture does not have this one */
    /* for mtan_predictor_attention */
    void (*attention)(const mtan_forward *f, int32_t head, int32_t channel, mtan_real *weight);
    /* streams: gather_start takes workspace for the sums and returns it empty, or null when counting; gather adds an
     * observation that has been checked; forget empties the sums */
    void *(*gather_start)(const mtan_forward *f);
    void (*gather)(void *gathered, const mtan_event *event);
    void (*forget)(void *gathered);
    /* logits (1, C) of one record in little memory, `points` reference points at a time; record null: only counts */
    mtan_tensor (*small)(const mtan_forward *f, const mtan_record *record, int32_t points);
};

/* Sets the architecture, the defaults of its settings and, without MTAN_HAS_POINTS, MTAN_REF_OBSERVED. */
mtan_status mtan_config_architecture(mtan_config *config, const mtan_architecture *architecture);

/* The recurrent half of a GRU, as the kernels take it. */
typedef struct mtan_gru {
    const mtan_real *w; /* (3N, N), a row every ldw reals */
    size_t ldw;
    const mtan_real *packed; /* w as the backend packs it for this precision; null: not packed */
    /* For the backward pass, transposed and packed: w's rows of r and z, (N, 2N), then those of n, (N, N); or null. */
    const mtan_real *back;
    mtan_precision precision;
    const mtan_real *bias; /* (3N) */
    int32_t hidden;        /* N */
    int32_t samples;       /* each row of the sequence occurs `samples` times in succession */
    int32_t reverse;       /* 1: from the last step to the first */
    /* The input, which the GRU computes itself, a few steps at a time: g = constant + x w_in^T. The columns of x are in
     * parts of equal width, each with its own packed weights. Without hn, g keeps only those few steps. x null: g
     * already holds the input. */
    const mtan_real *x; /* (R, parts columns), a row every ldx reals */
    size_t ldx;
    int32_t parts, columns;
    const mtan_real *w_in; /* packed, a part every `part` reals */
    size_t part;
    mtan_precision in_precision;
    const mtan_real *constant; /* (rows of the first step, 3N), a row every ldc reals; ldc 0: one row for all */
    size_t ldc;
} mtan_gru;

/* An observation, for local statistics. */
typedef struct mtan_moment {
    mtan_real value, origin; /* origin: the channel's first value, from which deviations are measured */
    mtan_real time, rate;    /* distances in time are measured in units of 1 / rate */
} mtan_moment;
enum { MTAN_MOMENTS = 6, MTAN_FEATURES = 6 }; /* sums of a channel at a point; numbers made from them, at most */

/* The kernels, as one list: PREDICT(result, name, (arguments)) for those that a prediction needs, TRAIN for those that
 * only training needs. The struct, the scalar table and the tests are generated from it. A backend fills every entry.
 * All code that uses a fused multiply-add is in these kernels and nowhere else, so a backend file can be compiled with
 * flags of its own. Matrices are row-major; ld* is the stride between rows. */
/* clang-format off */
#define MTAN_KERNELS(PREDICT, TRAIN)                                                                                   \
    /* elementwise, in place where y is x */                                                                           \
    PREDICT(void, map, (mtan_function f, mtan_real *y, const mtan_real *x, size_t n))                                  \
    /* exp(x) = significand * 2^exponent; exponent is an integer, significand is from 0.7 to 1.42 */                   \
    PREDICT(void, exp_parts, (mtan_real *significand, mtan_real *exponent, const mtan_real *x, size_t n))              \
    PREDICT(void, fill, (mtan_real *y, size_t n, mtan_real value))                                                     \
    PREDICT(void, scale, (mtan_real *y, size_t ldy, int32_t rows, int32_t cols, mtan_real factor))                     \
    PREDICT(void, relu_forward, (mtan_real *y, size_t n))                                                              \
    TRAIN(void, relu_backward, (mtan_real *dy, const mtan_real *y, size_t n))                                          \
    TRAIN(void, tanh_backward, (mtan_real *dy, const mtan_real *y, size_t n))                                          \
    TRAIN(void, softplus_backward, (mtan_real *dx, const mtan_real *dy, const mtan_real *x, size_t n))                 \
    /* accumulated in double */                                                                                        \
    TRAIN(double, sum, (const mtan_real *x, size_t n))                                                                 \
    TRAIN(double, sum_squares, (const mtan_real *x, size_t n))                                                         \
    /* ldx 0: one row, repeated */                                                                                     \
    PREDICT(void, copy, (mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols))        \
    /* ldy 0: the sum of the rows */                                                                                   \
    PREDICT(void, add, (mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols))         \
    /* c = a b, a b^T, a^T b with c (m, n) and sums of k terms; `add` starts from c instead of 0 */                    \
    PREDICT(void, product_nn, (mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b,           \
                               size_t ldb, int32_t m, int32_t n, int32_t k, int32_t add))                              \
    PREDICT(void, product_nt, (mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b,           \
                               size_t ldb, int32_t m, int32_t n, int32_t k, int32_t add))                              \
    TRAIN(void, product_tn, (mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b,             \
                             size_t ldb, int32_t m, int32_t n, int32_t k, int32_t add))                                \
    /* product_nt with its b (n, k) packed once for many products: the number of reals; packing; c = [c +] a b^T.      \
     * Element (j, p) of b is at b[j bj + p bp], and bj or bp is 1, so a transposed matrix can be packed too.          \
     * last_first: from the last columns to the first, with the same result; of two products with the same weights the \
     * second then begins with what the first has left in the cache */                                                 \
    PREDICT(size_t, pack_count, (int32_t n, int32_t k))                                                                \
    PREDICT(void, pack, (mtan_real *packed, const mtan_real *b, size_t bj, size_t bp, int32_t n, int32_t k))           \
    PREDICT(void, product_packed, (mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed,  \
                                   int32_t m, int32_t n, int32_t k, int32_t add, int32_t last_first))                  \
    /* the same three with b in int8, one scale per row, and a in int16, one scale per block of 512 terms. The sums    \
     * are sums of integers, so the order of their terms does not matter */                                            \
    PREDICT(size_t, pack_int8_count, (int32_t n, int32_t k))                                                           \
    PREDICT(void, pack_int8, (mtan_real *packed, const mtan_real *b, size_t ldb, int32_t n, int32_t k))                \
    PREDICT(void, product_int8, (mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed,    \
                                 int32_t m, int32_t n, int32_t k, int32_t add))                                        \
    /* with b where it lies: c = [c +] a b^T, and c = [c +] a b, where a's columns already include the scales */       \
    PREDICT(void, product_nt_int8, (mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b,         \
                                    const mtan_real *scale, int32_t m, int32_t n, int32_t k, int32_t add))             \
    PREDICT(void, product_nn_int8, (mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b,         \
                                    int32_t m, int32_t n, int32_t k, int32_t add))                                     \
    /* time embedding: (times, embed) */                                                                               \
    PREDICT(void, embed_forward, (mtan_real *y, const mtan_real *time, const mtan_real *lw, const mtan_real *lb,       \
                                  const mtan_real *pw, const mtan_real *pb, int32_t times, int32_t embed))             \
    TRAIN(void, embed_backward, (mtan_real *dlw, mtan_real *dlb, mtan_real *dpw, mtan_real *dpb, const mtan_real *dy,  \
                                 const mtan_real *time, const mtan_real *pw, const mtan_real *pb, int32_t times,       \
                                 int32_t embed))                                                                       \
    PREDICT(void, embed_fixed, (mtan_real *y, const mtan_real *time, mtan_real base, mtan_real scale, int32_t times,   \
                                int32_t embed))                                                                        \
    /* over the columns of each row, in place */                                                                       \
    PREDICT(void, softmax_forward, (mtan_real *y, int32_t rows, int32_t cols))                                         \
    TRAIN(void, softmax_backward, (mtan_real *dy, const mtan_real *y, int32_t rows, int32_t cols))                     \
    /* For a batch. Tensors lie as the ops lay them out; the batch says where the parts of each record are. */         \
    /* copies of rows: spread, from (B, cols) to every step of the sequence; last, from the last step of each record   \
     * to (B S, cols), zeros if it has no step; regroup, to the order record, sample, step; at_queries, to the order   \
     * record, sample, query */                                                                                        \
    PREDICT(void, spread_forward, (const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,      \
                                   int32_t cols))                                                                      \
    TRAIN(void, spread_backward, (const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,     \
                                  int32_t cols))                                                                       \
    PREDICT(void, last_forward, (const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,        \
                                 int32_t cols, int32_t samples))                                                       \
    TRAIN(void, last_backward, (const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,       \
                                int32_t cols, int32_t samples))                                                        \
    PREDICT(void, regroup_forward, (const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,     \
                                    int32_t cols))                                                                     \
    TRAIN(void, regroup_backward, (const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,    \
                                   int32_t cols))                                                                      \
    PREDICT(void, at_queries_forward, (const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,  \
                                       int32_t cols))                                                                  \
    TRAIN(void, at_queries_backward, (const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy,             \
                                      size_t ldy, int32_t cols))                                                       \
    /* products of each record's rows (times, or the decoder's queries) with its points, or with the shared points;    \
     * drow or dpoint may be null */                                                                                   \
    PREDICT(void, score_forward, (const mtan_batch *b, mtan_real *score, const mtan_real *row, size_t ldr,             \
                                  const mtan_real *point, size_t ldp, int32_t inner, int32_t decoder))                 \
    TRAIN(void, score_backward, (const mtan_batch *b, mtan_real *drow, size_t ldr, mtan_real *dpoint, size_t ldp,      \
                                 const mtan_real *dscore, const mtan_real *row, const mtan_real *point,                \
                                 int32_t inner, int32_t decoder))                                                      \
    /* sparse attention, y (R, D) of one head. weight: exp(score) under a base; total (B, D, steps): sum of weights,   \
     * negative if the channel needed a base of its own; scratch (2, steps). shown: the weights of a channel, a block  \
     * (Q, L) per record */                                                                                            \
    PREDICT(void, attend_forward, (const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *score,              \
                                   mtan_real *weight, mtan_real *total, mtan_real *scratch))                           \
    TRAIN(void, attend_backward, (const mtan_batch *b, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,     \
                                  size_t ldy, const mtan_real *score, const mtan_real *weight,                         \
                                  const mtan_real *total, mtan_real *scratch))                                         \
    PREDICT(void, attend_weights, (const mtan_batch *b, mtan_real *shown, const mtan_real *score,                      \
                                   const mtan_real *weight, const mtan_real *total, int32_t channel))                  \
    /* log(|x| 2^base); the bases are integers; y may be base */                                                       \
    PREDICT(void, log_under, (mtan_real *y, const mtan_real *x, const mtan_real *base, size_t n))                      \
    /* local statistics: y (R, features x D) of one head; sums (B, D, MTAN_MOMENTS, steps), the second of which is     \
     * like total above; scratch (2 + features, steps); point: the times of the points, per record or shared. For a    \
     * stream, moments_add adds one observation to the sums (MTAN_MOMENTS, n) of n points, in parts `stride` apart */  \
    PREDICT(void, moments_forward, (const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *score,             \
                                    mtan_real *weight, mtan_real *sums, mtan_real *scratch, const mtan_real *point,    \
                                    const mtan_real *time, mtan_real rate, int32_t statistics))                        \
    TRAIN(void, moments_backward, (const mtan_batch *b, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,    \
                                   size_t ldy, const mtan_real *score, const mtan_real *weight,                        \
                                   const mtan_real *sums, mtan_real *scratch, const mtan_real *point,                  \
                                   const mtan_real *time, mtan_real rate, int32_t statistics))                         \
    PREDICT(void, moments_add, (mtan_real *sums, size_t stride, const mtan_real *weight, const mtan_real *point,       \
                                size_t n, const mtan_moment *observed))                                                \
    PREDICT(void, moments_read, (mtan_real *y, const mtan_real *sums, size_t stride, const mtan_real *base,            \
                                 mtan_real origin, int32_t statistics, size_t n))                                      \
    /* the same with weights exp(-beta_d (q - t)^2) */                                                                 \
    PREDICT(void, rbf_forward, (const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query,                 \
                                const mtan_real *time, const mtan_real *beta))                                         \
    TRAIN(void, rbf_backward, (const mtan_batch *b, mtan_real *dbeta, const mtan_real *dy, const mtan_real *y,         \
                               size_t ldy, const mtan_real *query, const mtan_real *time, const mtan_real *beta))      \
    PREDICT(void, rbf_weights, (const mtan_batch *b, mtan_real *shown, const mtan_real *query, const mtan_real *time,  \
                                const mtan_real *beta, int32_t channel))                                               \
    /* over the points of each of the decoder's queries, in place */                                                   \
    PREDICT(void, softmax_pairs_forward, (const mtan_batch *b, mtan_real *weight))                                     \
    TRAIN(void, softmax_pairs_backward, (const mtan_batch *b, mtan_real *dweight, const mtan_real *weight))            \
    /* values (points, cols), a row every ldv reals, weighted at the queries: y (Q S, cols) */                         \
    PREDICT(void, values_forward, (const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *weight,             \
                                   const mtan_real *value, size_t ldv, int32_t cols))                                  \
    TRAIN(void, values_backward, (const mtan_batch *b, mtan_real *dweight, mtan_real *dvalue, const mtan_real *dy,     \
                                  size_t ldy, const mtan_real *weight, const mtan_real *value, size_t ldv,             \
                                  int32_t cols))                                                                       \
    /* the same with RBF weights, one bandwidth per column; zeros for a record without points */                       \
    PREDICT(void, smooth_forward, (const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query,              \
                                   const mtan_real *key, const mtan_real *beta, const mtan_real *value, size_t ldv,    \
                                   int32_t cols))                                                                      \
    TRAIN(void, smooth_backward, (const mtan_batch *b, mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy,       \
                                  const mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,        \
                                  const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t cols))            \
    /* gates of one step: g (rows, 3N) has the input part on entry, r z n on return; gh (rows, 3N) is the recurrent    \
     * part; hn (rows, N) receives the recurrent part of n, or is null; before is h of the previous step, or null for  \
     * 0 */                                                                                                            \
    PREDICT(void, gates_forward, (mtan_real *h, size_t ldh, mtan_real *g, size_t ldg, mtan_real *hn,                   \
                                  const mtan_real *gh, const mtan_real *before, size_t ldb, int32_t rows,              \
                                  int32_t hidden))                                                                     \
    /* dh is the gradient of h on entry, and on return the part of it that reaches `before` directly; the gates g and  \
     * hn are overwritten by their gradients */                                                                        \
    TRAIN(void, gates_backward, (mtan_real *dh, mtan_real *g, size_t ldg, mtan_real *hn, const mtan_real *before,      \
                                 size_t ldb, int32_t rows, int32_t hidden))                                            \
    /* the whole sequence: y (R, N), g (R, 3N) as above, hn (R, N) or null when not recording, scratch (rows of the    \
     * first step, 3N) */                                                                                              \
    PREDICT(void, gru_forward, (const mtan_batch *b, const mtan_gru *layer, mtan_real *y, size_t ldy, mtan_real *g,    \
                                size_t ldg, mtan_real *hn, mtan_real *scratch))                                        \
    /* g and hn are overwritten by their gradients, from which dw (rows ldw apart) and db are computed */              \
    TRAIN(void, gru_backward, (const mtan_batch *b, const mtan_gru *layer, mtan_real *dw, mtan_real *db,               \
                               mtan_real *g, size_t ldg, mtan_real *hn, mtan_real *scratch, const mtan_real *dy,       \
                               const mtan_real *y, size_t ldy))                                                        \
    /* posterior (rows, 2Z) mean and log-variance; z and noise (rows S, Z) */                                          \
    PREDICT(void, sample_forward, (mtan_real *z, const mtan_real *posterior, const mtan_real *noise, int32_t rows,     \
                                   int32_t samples, int32_t latent))                                                   \
    TRAIN(void, sample_backward, (mtan_real *dposterior, const mtan_real *dz, const mtan_real *z,                      \
                                  const mtan_real *posterior, int32_t rows, int32_t samples, int32_t latent))          \
    /* KL of each record, (B); log q(z|x) - log p(z) of each record and sample, (B S), with its gradient in z and in   \
     * the log-variance */                                                                                             \
    TRAIN(void, kl_forward, (const mtan_batch *b, mtan_real *kl, const mtan_real *posterior, int32_t latent))          \
    TRAIN(void, kl_backward, (const mtan_batch *b, mtan_real *dposterior, const mtan_real *posterior,                  \
                              const mtan_real *dkl, int32_t latent))                                                   \
    TRAIN(void, ratio_forward, (const mtan_batch *b, mtan_real *ratio, const mtan_real *z,                             \
                                const mtan_real *posterior, const mtan_real *noise, int32_t latent))                   \
    TRAIN(void, ratio_backward, (const mtan_batch *b, mtan_real *dz, mtan_real *dposterior, const mtan_real *z,        \
                                 const mtan_real *dratio, int32_t latent))                                             \
    /* prediction (Q S, D) against the targets: Gaussian log-likelihood of each record and sample, (B S); squared      \
     * error of the mean over the samples, (B) */                                                                      \
    TRAIN(void, loglik_forward, (const mtan_batch *b, mtan_real *logp, const mtan_real *prediction, double std))       \
    TRAIN(void, loglik_backward, (const mtan_batch *b, mtan_real *dprediction, const mtan_real *prediction,            \
                                  const mtan_real *dlogp, double std))                                                 \
    TRAIN(void, loglik_sd_forward, (const mtan_batch *b, mtan_real *logp, const mtan_real *prediction,                 \
                                    const mtan_real *raw, mtan_real least))                                            \
    TRAIN(void, loglik_sd_backward, (const mtan_batch *b, mtan_real *dprediction, mtan_real *draw,                     \
                                     const mtan_real *prediction, const mtan_real *raw, const mtan_real *dlogp,        \
                                     mtan_real least))                                                                 \
    TRAIN(void, squared_error, (const mtan_batch *b, double *error, const mtan_real *prediction))                      \
    /* weight (B S) is an output: the weight of a sample in its record's gradient. kl has one value per record or,     \
     * with kl_stride 1, per record and sample; share (B) */                                                           \
    TRAIN(void, bound_forward, (int32_t records, mtan_real *loss, mtan_real *weight, const mtan_real *logp,            \
                                const mtan_real *kl, int32_t kl_stride, int32_t samples, mtan_bound bound,             \
                                double kl_weight, const mtan_real *share))                                             \
    TRAIN(void, bound_backward, (int32_t records, mtan_real *dlogp, mtan_real *dkl, int32_t kl_stride,                 \
                                 const mtan_real *weight, int32_t samples, mtan_real kl_weight, mtan_real seed,        \
                                 const mtan_real *share))                                                              \
    /* p = softmax(x), loss = -weight[label] log p[label]; rows without a label have loss 0. weight (C), null: ones.   \
     * Each label has `samples` rows; samples 0: rows as in values_forward, with a label for each query */             \
    TRAIN(void, cross_entropy_forward, (const mtan_batch *b, mtan_real *loss, mtan_real *p, const mtan_real *x,        \
                                        const int32_t *label, const mtan_real *weight, int32_t rows,                   \
                                        int32_t samples, int32_t classes))                                             \
    TRAIN(void, cross_entropy_backward, (const mtan_batch *b, mtan_real *dx, const mtan_real *p,                       \
                                         const int32_t *label, const mtan_real *weight, mtan_real seed,                \
                                         int32_t rows, int32_t samples, int32_t classes))                              \
    /* the loss of outputs x against y, `count` numbers per row; NaN is left out. It is the squared error, the pinball \
     * loss of three outputs per number, or the cross-entropy of each label. p is the prediction: x, or sigmoid(x) */  \
    TRAIN(void, numbers_forward, (const mtan_batch *b, mtan_real *loss, mtan_real *p, const mtan_real *x,              \
                                  const mtan_real *y, const mtan_targets *t, int32_t rows, int32_t samples))           \
    TRAIN(void, numbers_backward, (const mtan_batch *b, mtan_real *dx, const mtan_real *p, const mtan_real *y,         \
                                   const mtan_targets *t, mtan_real seed, int32_t rows, int32_t samples))              \
    /* standard normals for each record and sample, laid out like z; dropout masks, 0 or 1, of hidden layer 0 or 1 of  \
     * the classifier */                                                                                               \
    PREDICT(void, noise, (const mtan_batch *b, mtan_real *z, uint64_t seed, uint64_t epoch, int32_t latent))           \
    TRAIN(void, mask, (const mtan_batch *b, mtan_real *mask, double dropout, uint64_t seed, uint64_t step,             \
                       int32_t width, mtan_row_order order, int32_t hidden_layer))                                     \
    /* two normals per element, out (2, n), by Box-Muller */                                                           \
    PREDICT(void, normal_pairs, (mtan_real *out, const mtan_real *u, const mtan_real *w, const mtan_real *v,           \
                                 size_t n))                                                                            \
    /* mean += share (x - mean) */                                                                                     \
    TRAIN(void, average, (mtan_real *mean, const mtan_real *x, size_t n, mtan_real share))                             \
    /* c: six numbers that are computed from the step */                                                               \
    TRAIN(void, adam, (mtan_real *w, mtan_real *m, mtan_real *v, const mtan_real *g, size_t n, const mtan_real c[6]))  \
    TRAIN(void, adamax, (mtan_real *w, mtan_real *m, mtan_real *u, const mtan_real *g, size_t n,                       \
                         const mtan_real c[6]))
/* clang-format on */

struct mtan_backend {
    const char *name;
    int32_t fused;
#define MTAN_KERNEL(result, name, arguments) result(*name) arguments;
    MTAN_KERNELS(MTAN_KERNEL, MTAN_KERNEL)
#undef MTAN_KERNEL
    const struct mtan_device *device; /* null on CPUs */
};

/* Backends only: needed when the kernels run on a device with its own memory, one after another, while the host
 * continues. The blocks that the caller passes to the library have images there, tensor for tensor: kernels receive
 * host addresses and work on the images. The library says what it has written and what it wants to read. Weights and a
 * trainer's state stay on the device until the caller fetches them (platform/cuda/mtan_cuda.h). Each function returns 0
 * if the device has failed. */
typedef struct mtan_device {
    /* send returns when it has taken the bytes; fetch waits for all work before it */
    int32_t (*send)(const void *from, size_t bytes);
    int32_t (*fetch)(void *to, size_t bytes);
    /* the same in parallel with the running kernels, which do not touch these bytes; kernels launched after `arrive`
     * find them */
    int32_t (*send_ahead)(const void *from, size_t bytes);
    int32_t (*arrive)(void);
} mtan_device;

#ifdef __cplusplus
}
#endif
#endif /* MTAN_INTERNALS */
