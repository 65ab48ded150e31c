/* mtan: Multi-Time Attention Networks (Shukla & Marlin, ICLR 2021) in two C99 files.
 *
 * The model learns from time series that are sparse, irregular and multivariate. A record is a list of observations
 * (time, channel, value) in any order, without padding and without a mask. The library trains and runs mTAND-Enc
 * (classify a record, or every time point of it) and mTAND-Full (a variational encoder and decoder that interpolates
 * at any time, with or without a classifier), and gives the numbers of the published PyTorch code.
 *
 * It never allocates, prints, exits, starts a thread or keeps a global: the caller owns every byte. It needs no libc
 * beyond memcpy, memmove, memset and memcmp, and no libm.
 *
 * THE MANUAL
 * ==========
 * A whole program. `make vendored` cuts it out of this comment, compiles it with one line and runs it:
 *
 *     --- program ---
 *     #include "mtan.h"
 *     #include <stdio.h>
 *     static mtan_real weights[300000], memory[300000], p[2];                            // all memory is the caller's
 *     int main(void) {
 *         mtan_event events[] = {{0.00f, 0, 0.7f}, {0.25f, 2, -0.1f}, {0.30f, 0, 0.9f}}; // time, channel, value
 *         mtan_record record = {events, 3}; mtan_bounds most = {1, 3, 3};                // records, events, times
 *         mtan_config config; mtan_model model; mtan_predictor run;
 *         return mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 3, 2) ||      // 3 channels, 2 classes
 *                mtan_weights_init(&config, weights, 300000, 42) || mtan_model_init(&model, &config, weights, 300000) ||
 *                mtan_predictor_init(&run, &model, &most, memory, sizeof memory) ||
 *                mtan_classify(&run, &record, 1, p) || printf("p(class 1) = %.4f\n", p[1]) < 0;
 *     }
 *     --- end ---
 *
 * Order of life.  A config says what the model is. The weights are a flat array of mtan_real (mtan_weights_count), or
 * a model file used where it lies (mtan_model_open). A predictor runs a model; a trainer changes its weights. Each of
 * the two takes one block of the caller's memory: ask `*_size`, hand the block to `*_init`, keep it until the end.
 * The block may have any alignment; one byte too few is MTAN_ERR_MEMORY. A stream takes observations one by one, and
 * mtan_small_classify does without a predictor in a few kilobytes: both have sections of their own below.
 *
 * Bounds.  Sizes follow from the most records handled at once, the most observations and the most distinct time points
 * of one record. A record beyond its bounds is refused with MTAN_ERR_MEMORY and nothing is changed.
 *
 * Errors.  Every function that can fail returns mtan_status: 0 is success, negative is failure, and results are not
 * touched on failure. mtan_status_message gives a sentence.
 *
 * Threads.  No function keeps hidden state. A predictor or trainer serves one caller at a time; a model that is not
 * being trained may be shared by any number of predictors. Training runs its shards through the parallel_for callback.
 *
 * Devices.  A backend may have a memory of its own (platform/cuda/mtan_cuda.h). The caller then brings the weights and
 * each block there before `*_init`, and fetches weights and moments before it reads or saves them; the rest is the
 * library's. A failing device is MTAN_ERR_DEVICE. Streams, the small path, models defined elsewhere, threads and ranks
 * are for CPUs: MTAN_ERR_CONFIG.
 *
 * Same bits.  Every sum has one order (ascending index, one accumulator, one fused multiply-add per term where the
 * backend is of the fused class). Results therefore do not depend on threads, on the compiler, on its optimisation
 * level, or on which other records are in the batch being predicted. Two classes exist, fused and unfused; bits agree
 * inside a class. Sums of losses over the cells of a record run in double.
 *
 * Times.  Any finite time is allowed. The embedding's sine is accurate for arguments up to 1e5; beyond that the float
 * build takes sin as 0 and cos as 1.
 *
 * What is not promised: results across the two classes agree to rounding only; struct layouts may change between
 * versions; the section "Ops" at the end may change.
 *
 * GLOSSARY of the letters used in shapes
 *   B records   L time points of a record   T time points of all records   K reference points   Q query times
 *   D channels  H heads   E time embedding   N hidden units   Z latent size   S samples   C classes   P parameters
 *   R rows of a sequence: steps x records, step-major, records at a step contiguous
 * A gradient carries a d: dx is the gradient of the loss with respect to x. Gradients are added to, never set.
 */
#ifndef MTAN_H
#define MTAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MTAN_VERSION "0.1.0"

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
    MTAN_ERR_FILE = -6,    /* not a valid safetensors file, or not a model of ours */
    MTAN_ERR_MISSING = -7, /* no such tensor, metadata key, setting or named configuration */
    MTAN_ERR_SHAPE = -8,   /* a tensor has another shape or type than the model needs */
    MTAN_ERR_WRITE = -9,   /* the write callback failed */
    MTAN_ERR_DEVICE = -10  /* the backend's device failed; its own message says how */
} mtan_status;

/* One sentence, never null. */
const char *mtan_status_message(mtan_status status);

/* ---- Configuration ------------------------------------------------------------------------------------------ */

typedef enum mtan_kind { MTAN_ENC, MTAN_FULL } mtan_kind;

typedef enum mtan_classify_kind {
    MTAN_CLASSIFY_NONE,   /* reconstruct only (MTAN_FULL) */
    MTAN_CLASSIFY_RECORD, /* one label per record */
    MTAN_CLASSIFY_TIME /* one label per query time: mTAND-Enc on Activity; with MTAN_FULL the head reads the decoder (Q40) */
} mtan_classify_kind;

/* How an encoder or decoder interpolates (Q15). RNN3 computes what ATTENTION with one head computes, under the other
 * names that the reference's enc_rnn3 / dec_rnn3 give their parameters. */
typedef enum mtan_interp_kind { MTAN_ATTENTION, MTAN_RBF, MTAN_RNN3 } mtan_interp_kind;

typedef enum mtan_embedding { MTAN_EMBED_LEARNED, MTAN_EMBED_FIXED } mtan_embedding;
typedef enum mtan_embed_heads { MTAN_EMBED_SHARED, MTAN_EMBED_PER_HEAD } mtan_embed_heads; /* Q3 */

/* Reference points: K points evenly from 0 to 1, K points given by the caller, or every record's own: its query times
 * for MTAN_ENC (Q13), its distinct event times for MTAN_FULL, whose K is then another for every record. */
typedef enum mtan_reference { MTAN_REF_EVEN, MTAN_REF_GIVEN, MTAN_REF_OBSERVED } mtan_reference;

/* How S samples make one bound (Q17). v_s = (log p(x|z_s) - kl_weight * KL) / cells, cells only with `norm` (Q18).
 *   FAITHFUL  log mean exp of v_s, analytic KL: what the published code computes
 *   ELBO      mean of v_s, analytic KL
 *   IWAE      log mean exp, with log q(z_s|x) - log p(z_s) of each sample in place of the KL */
typedef enum mtan_bound { MTAN_BOUND_FAITHFUL, MTAN_BOUND_ELBO, MTAN_BOUND_IWAE } mtan_bound;

/* How S samples make one prediction (Q25). */
typedef enum mtan_rule { MTAN_MEAN_PROBABILITY, MTAN_MEAN_LOG_PROBABILITY } mtan_rule;

/* FAITHFUL reproduces the published code, CORRECT what the paper says or what is right (Q16, Q17, Q18, Q25). */
typedef enum mtan_preset { MTAN_FAITHFUL, MTAN_CORRECT } mtan_preset;

typedef struct mtan_architecture mtan_architecture;
#define MTAN_OWN_SETTINGS 12

typedef struct mtan_config {
    mtan_kind kind;
    mtan_classify_kind classify;
    mtan_interp_kind encoder, decoder;
    mtan_embedding embedding;
    mtan_embed_heads embed_heads;
    mtan_reference reference;
    int32_t channels;  /* D */
    int32_t classes;   /* C */
    int32_t embed;     /* E; even for the fixed embedding */
    int32_t enc_heads; /* H, divides E */
    int32_t dec_heads;
    int32_t enc_hidden;  /* N of the encoder's GRU and of the classifier's */
    int32_t dec_hidden;  /* N of the decoder's GRU, per direction */
    int32_t latent;      /* Z */
    int32_t ref_points;  /* K */
    int32_t mlp_hidden;  /* between GRU and latent, and between embedding and observation (Q11) */
    int32_t head_hidden; /* two hidden layers of the classifier (Q12); 0: a single linear layer */
    double embed_base;   /* fixed embedding: wavelengths up to this base (Q8) */
    double embed_scale;  /* fixed embedding: times are multiplied by this (Q8) */
    /* loss */
    mtan_bound bound;
    int32_t samples;    /* S in training */
    int32_t norm;       /* divide the bound by the number of observed cells */
    int32_t skip_empty; /* leave records without a target out of the reconstruction loss (Q18) */
    int32_t kl_anneal;  /* weight of the KL: 1, or by epoch as Q19 says */
    double noise_std;   /* of an observation given z (Q16) */
    double alpha;       /* weight of the cross-entropy beside the bound (Q20) */
    /* prediction */
    mtan_rule rule;
    int32_t predict_samples; /* 0: z is the posterior's mean */
    const mtan_real *ref;    /* (K) for MTAN_REF_GIVEN; the caller's memory */
    /* a model defined elsewhere (the last section but one); null: one of the paper's */
    const mtan_architecture *architecture;
    double own[MTAN_OWN_SETTINGS]; /* its own settings */
} mtan_config;

/* Defaults: E 128, one head, K 128, hidden 128 (Enc) or 256 (Full), latent 20, CORRECT preset. */
mtan_status mtan_config_init(mtan_config *config, mtan_kind kind, mtan_classify_kind classify, int32_t channels,
                             int32_t classes);

/* What one of the reference's documented commands trains: toy-interp, physionet-interp, physionet-full, physionet-enc,
 * mimic3-full, mimic3-enc, activity-enc; and activity-full (Q40). Also gives the command's optimiser settings. */
typedef struct mtan_recipe {
    mtan_config config;
    int32_t batch, epochs;
    double lr;
    double sample_low, sample_high; /* share of the time points shown to the encoder; 1, 1: all */
} mtan_recipe;
mtan_status mtan_recipe_named(mtan_recipe *recipe, const char *name, mtan_preset preset);
const char *mtan_recipe_name(int32_t index); /* null past the last */

/* Sets the loss and prediction settings of a preset; the architecture stays. */
mtan_status mtan_config_preset(mtan_config *config, mtan_preset preset);

/* MTAN_OK, or MTAN_ERR_CONFIG / MTAN_ERR_SIZE when no model can have these settings. */
mtan_status mtan_config_check(const mtan_config *config);

/* Settings as text, the way model files keep them: key "enc_hidden", value "128"; key "bound", value "elbo".
 * mtan_config_key lists the keys (null past the last). */
const char *mtan_config_key(int32_t index);
mtan_status mtan_config_get(const mtan_config *config, const char *key, char *text, size_t size);
mtan_status mtan_config_set(mtan_config *config, const char *key, const char *text);

/* ---- Weights and models ------------------------------------------------------------------------------------- */

#define MTAN_MAX_PARAMS 64
#define MTAN_NAME_SIZE 48

typedef struct mtan_param {
    char name[MTAN_NAME_SIZE]; /* as in the reference's state_dict, prefixed rec. / dec. / classifier. */
    int32_t rows, cols;        /* a vector has one column */
    int32_t rank;              /* 1 or 2: how the reference shapes it */
    int32_t fan;               /* starts uniform in +-1/sqrt(fan) */
    uint32_t offset;           /* in the flat array of weights, gradients and moments */
} mtan_param;

/* The parameter table, in the order in which the reference creates the tensors. */
int32_t mtan_param_count(const mtan_config *config); /* 0 for a config that fails its check */
mtan_status mtan_param_at(const mtan_config *config, int32_t index, mtan_param *param);
size_t mtan_weights_count(const mtan_config *config); /* P, 0 for a config that fails its check */

/* Initial weights: those of the published code after torch.manual_seed(seed). */
mtan_status mtan_weights_init(const mtan_config *config, mtan_real *weights, size_t count, uint32_t seed);

typedef struct mtan_backend mtan_backend;
extern const mtan_backend mtan_backend_scalar;

/* How a predictor keeps the weights of the recurrent layers, of the encoder's input and of the classifier's head. INT8 makes
 * them four times smaller, with a scale to a row, and their products products of integers: faster for single records, most of
 * all on CPUs without vectors or without floating point. A trainer works with REAL alone. */
typedef enum mtan_precision { MTAN_REAL, MTAN_INT8 } mtan_precision;

typedef struct mtan_model {
    mtan_config config;
    const mtan_backend *backend;      /* mtan_backend_scalar unless the caller sets another after init */
    mtan_precision precision;         /* MTAN_REAL unless the caller sets another after init, before any predictor's */
    const mtan_real *weights;         /* base of the offsets below */
    uint32_t offset[MTAN_MAX_PARAMS]; /* of each parameter, from weights */
    const int8_t *rows;               /* null; or base of the matrices that are whole numbers, used where they lie: */
    uint32_t row0[MTAN_MAX_PARAMS];   /* of each, from rows; its offset is that of its scales. MTAN_NO_ROWS: reals */
} mtan_model;

#define MTAN_NO_ROWS UINT32_MAX

/* A model on a flat array of count reals, at least mtan_weights_count. It may be const memory if it is never trained. */
mtan_status mtan_model_init(mtan_model *model, const mtan_config *config, const mtan_real *weights, size_t count);

/* A model in INT8 that is used where it lies, in a quarter of the memory, by mtan_small_classify alone: predictors, streams
 * and trainers, which need reals, refuse it with MTAN_ERR_CONFIG. Matrices of more than one column are whole numbers, as
 * mtan_quantize_row makes them, in `rows`; all else is in `weights`: in the order of the table the other parameters, and for
 * such a matrix the scales of its rows. mtan_int8_counts says how many of each. */
mtan_status mtan_int8_counts(const mtan_config *config, size_t *count, size_t *bytes);
mtan_status mtan_model_init_int8(mtan_model *model, const mtan_config *config, const mtan_real *weights, size_t count,
                                 const int8_t *rows, size_t bytes);

/* ---- Records ------------------------------------------------------------------------------------------------ */

typedef struct mtan_event {
    mtan_real time;
    int32_t channel;
    mtan_real value;
} mtan_event;

#define MTAN_UNLABELED (-1)

/* One record. Only events and n_events are always needed; zero the rest. Observations may come in any order; equal
 * times and equal (time, channel) pairs are kept as separate observations. No observation at all is allowed. */
typedef struct mtan_record {
    const mtan_event *events; /* what the model sees */
    int32_t n_events;
    int32_t n_targets;
    const mtan_event *targets; /* what the decoder is scored on; null: the events */
    const mtan_real *times;    /* query times, ascending, for classification per time; null: distinct event times */
    int32_t n_times;
    int32_t n_noise;        /* how many reals `noise` holds: S x K x Z or more */
    const int32_t *labels;  /* one, or one per query time; MTAN_UNLABELED is left out of the loss; null: none */
    const mtan_real *noise; /* (S, K, Z) standard normals; null: drawn from (seed, epoch, id, sample) */
    uint64_t id;            /* mtan_hash of the record's name: its noise depends on it */
} mtan_record;

typedef struct mtan_bounds {
    int32_t records; /* most records in one call of a predictor, or in one batch of a trainer */
    int32_t events;  /* most events, and most targets, of a record */
    int32_t times;   /* most distinct times, and most query times, of a record; of both together for a class per time by
                        a model defined elsewhere */
} mtan_bounds;

/* ---- Random numbers -----------------------------------------------------------------------------------------
 *
 * Two families. The Mersenne twister repeats what NumPy and PyTorch draw, so that splits, initial weights and noise of
 * the published code can be followed. The counter generator is for everything else: a record's noise is a function of
 * its own coordinates, so the order of records, batches, shards and threads cannot change it.
 *
 * Nothing here fails. A null `out` is allowed only with n = 0. One generator serves one thread at a time.
 */

/* The state of MT19937, and the second half of PyTorch's last pair of scalar normals. Plain numbers: copy it to fork a
 * stream, store it to resume one. Seed it before use. */
typedef struct mtan_mt19937 {
    uint32_t state[624];
    int32_t index;      /* words of the state already handed out; 624: all of them */
    int32_t has_normal; /* 1: `normal` is the next scalar normal of mtan_torch_normal */
    float normal;
} mtan_mt19937;

/* The same state as numpy.random.seed(seed), numpy.random.RandomState(seed) and torch.manual_seed(seed) for an integer
 * seed below 2^32. */
void mtan_mt_seed(mtan_mt19937 *rng, uint32_t seed);

/* The next 32 random bits. */
uint32_t mtan_mt_next(mtan_mt19937 *rng);

/* NumPy's legacy generator (numpy.random.* and RandomState). */

/* A whole number in [0, max], as shuffle, choice with replacement and randint(0, max + 1) draw it: the low bits that
 * can hold max, drawn again while above max. max = 0 draws nothing. */
uint32_t mtan_numpy_interval(mtan_mt19937 *rng, uint32_t max);

/* random_sample(): a double in [0, 1) with 53 bits. */
double mtan_numpy_uniform(mtan_mt19937 *rng);

/* RandomState.permutation(n): the numbers 0..n-1 in random order. n below 2^31. */
void mtan_numpy_permutation(mtan_mt19937 *rng, int32_t *out /* (n) */, size_t n);

/* scikit-learn's train_test_split(range(n), train_size=train_size, random_state=seed). Fills `order` and returns the
 * number of test items: order[0 .. n_test) is the test set, order[n_test .. n) the training set, both in scikit-learn's
 * order. The training set has floor(train_size * n) items; train_size outside [0, 1] counts as the nearer end, NaN as 0. */
size_t mtan_split(int32_t *order /* (n) */, size_t n, double train_size, uint32_t seed);

/* PyTorch's CPU generator, float32. */

/* torch.empty(n).uniform_(low, high), bit for bit with PyTorch on a CPU with fused multiply-add (AVX2 or later), which
 * rounds low + u * (high - low) once. Elsewhere PyTorch rounds twice and may differ in the last bit. */
void mtan_torch_uniform(mtan_mt19937 *rng, float *out /* (n) */, size_t n, float low, float high);

/* torch.randn(n) for any n, to 1e-5; the generator moves on exactly as PyTorch's does. n counts the whole tensor:
 * randn(2, 8) is one fill of 16, not two of 8. The backend computes the logarithm, sine and cosine. */
void mtan_torch_normal(const mtan_backend *backend, mtan_mt19937 *rng, float *out /* (n) */, size_t n);

/* The counter generator. */

/* Philox4x32-10 (Salmon et al., 2011): four random words from a counter and a key. */
void mtan_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* A 64-bit hash of bytes: FNV-1a, then the finaliser of splitmix64. For record ids; no defence against an adversary. */
uint64_t mtan_hash(const void *bytes, size_t n);

/* Standard normals. out[i] depends on (seed, epoch, record, sample, i) and on nothing else: not on n, not on what was
 * drawn before. `record` is mtan_hash of the record's id. For one seed no two sets of coordinates share a counter. */
void mtan_noise_fill(const mtan_backend *backend, mtan_real *out /* (n) */, size_t n, uint64_t seed, uint64_t epoch,
                     uint64_t record, uint32_t sample);

/* A mask of dropout, in [0, 1): 0 with that probability, else 1. out[i] depends on (seed, step, record, sample, first + i)
 * and on nothing else; `record` as above, first + i below 2^34, step below 2^62. For one seed no two sets of coordinates
 * share a counter, nor one with mtan_noise_fill for an epoch below 2^62. */
void mtan_mask_fill(mtan_real *out /* (n) */, size_t n, double dropout, uint64_t seed, uint64_t step, uint64_t record,
                    uint32_t sample, uint64_t first);

/* ---- Prediction --------------------------------------------------------------------------------------------- */

typedef struct mtan_predictor {
    const mtan_model *model;
    mtan_bounds bounds;
    uint64_t seed;   /* of the noise where a record brings none */
    mtan_real *fold; /* weights folded once by init */
    mtan_real *work;
    size_t work_count;
} mtan_predictor;

mtan_status mtan_predictor_size(const mtan_model *model, const mtan_bounds *bounds, size_t *bytes);
/* Folds the weights: call it again after the model's weights have changed. */
mtan_status mtan_predictor_init(mtan_predictor *predictor, const mtan_model *model, const mtan_bounds *bounds,
                                void *memory, size_t bytes);

/* Class probabilities by config.rule over config.predict_samples. `probability` is (n, C) for MTAN_CLASSIFY_RECORD;
 * for MTAN_CLASSIFY_TIME the rows of record 0, then record 1, ...: one per query time. */
mtan_status mtan_classify(mtan_predictor *predictor, const mtan_record *records, int32_t n, mtan_real *probability);

/* The raw logits, S samples to a row: (rows, S, C), rows as above, S = max(1, config.predict_samples), 1 for MTAN_ENC. */
mtan_status mtan_logits(mtan_predictor *predictor, const mtan_record *records, int32_t n, mtan_real *logits);

/* The decoder's mean and standard deviation over the samples at the record's query times, both (Q, D). std may be null. */
mtan_status mtan_interpolate(mtan_predictor *predictor, const mtan_record *record, mtan_real *mean, mtan_real *std);

/* Each sample's own curve at the query times: (S, Q, D). */
mtan_status mtan_curves(mtan_predictor *predictor, const mtan_record *record, mtan_real *samples);

/* The posterior over z: mean and log-variance, both (K, Z). logvar may be null. */
mtan_status mtan_latent(mtan_predictor *predictor, const mtan_record *record, mtan_real *mean, mtan_real *logvar);

/* The encoder's attention for one head and channel: weight (Q, L) of every distinct time of the record at every
 * reference point (Q = K, or the query times). Rows sum to 1, or to 0 when the channel was never observed. */
mtan_status mtan_attention(mtan_predictor *predictor, const mtan_record *record, int32_t head, int32_t channel,
                           mtan_real *weight);

/* How many distinct event times a record has: L. Needs no memory; n log n time is not promised. */
mtan_status mtan_record_times(const mtan_record *record, int32_t *times);

/* ---- Streams ------------------------------------------------------------------------------------------------
 *
 * One record whose observations arrive one by one, in any order. A stream keeps what the encoder's attention sums, not
 * the observations: its memory is the same after ten of them and after 10^9, and a prediction costs what the network
 * behind the attention costs. Any number of streams share one predictor:
 *
 *     mtan_bounds most = {1, 0, 1};                         no events; as many query times as one question has
 *     mtan_predictor_init(&predictor, &model, &most, ...);
 *     mtan_stream_size(&model, 0, &bytes);
 *     mtan_stream_init(&stream, &predictor, 0, memory, bytes);
 *     while (...) { mtan_stream_push(&stream, time, channel, value); mtan_stream_predict(&stream, NULL, p); }
 *
 * Equality. A prediction is that of mtan_classify, mtan_logits or mtan_interpolate on the observations so far: the same
 * bits, while each channel's observations come in the order of time and are at most 2^16. Channels need not wait for
 * each other, and observations of one time and channel are in order as they come. Only what underflows can differ: an
 * observation of less than 2^-94 of the weight of its channel, and none where a channel's weights at a point span at
 * most 2^48 and its values are 0 or above 2^-22.
 * Once an observation comes late, or beyond 2^16, the sums of its channel have twice the digits: 10^8 observations are
 * as exact as ten, where a batch's plain sums drift. The tests then hold the logits and the interpolation, in float, to
 * 2e-6 of their largest entry (1 at least); a trained model on 1000 records of PhysioNet, shuffled, stays within 5e-7.
 *
 * Cost. O(H K E) for an observation at another time than the one before, O(H K) for a further one at the same time.
 * Memory: about 5 D H K reals (mTAND-Enc of PhysioNet: 109 KB) and three reals for each event of the window.
 *
 * Input. A late observation counts as any other. A second one of the same time and channel counts beside the first, as in
 * a batch. A channel out of range, and a time or value that is not finite, is MTAN_ERR_INPUT, and nothing is changed.
 *
 * Models. All but those whose reference points are the record's own (MTAN_REF_OBSERVED): MTAN_ERR_CONFIG.
 *
 * Threads. Streams of one predictor may be pushed to by different threads at the same time, one thread to a stream;
 * predicting and interpolating use the predictor's workspace: one call at a time. When mtan_predictor_init has been
 * called again, for changed weights, so must be mtan_stream_init.
 */

/* Open sums of attention. Private: in a stream it is read by the library alone. */
typedef struct mtan_sums {
    const mtan_model *model;
    const mtan_real *embedding[4];     /* linear w, b; periodic w, b */
    const mtan_real *query;            /* (H P, E) of the points, folded */
    const mtan_real *point, *beta;     /* RBF: (P) times of the points, (D) bandwidths */
    mtan_real *seen;                   /* (D) 1 where a channel was observed */
    mtan_real *phi;                    /* (E) of the last time */
    mtan_real *significand, *exponent; /* (H P) of exp(score) at the last time */
    mtan_real *weight, *before;        /* (H P) of the last observation; (2, H P) the sums before it */
    mtan_real *latest;                 /* (D) time of a channel's last observation */
    int32_t *plain;                    /* (D) how many more may come in order before its sums are exact; 0: they are */
    mtan_real *sums;                   /* (D, parts, H P) base, sums of w x and of w, what each lost to rounding */
    mtan_real time;
    int32_t has_time, points, parts; /* P; 5, or 3 without what was lost */
} mtan_sums;

typedef struct mtan_stream {
    mtan_predictor *predictor;
    int64_t events; /* observations in the sums */
    mtan_sums sums;
    mtan_event *kept; /* the last ones to arrive, a ring: */
    int32_t window, first, count;
    int32_t has_lost; /* an observation is in the sums and no longer in the ring; */
    mtan_real lost;   /* the latest time of such */
} mtan_stream;

/* window: how many of the last observations are kept for mtan_stream_expire; 0: none.
 * Fails with MTAN_ERR_NULL, MTAN_ERR_CONFIG, MTAN_ERR_INPUT (window < 0), MTAN_ERR_SIZE, MTAN_ERR_MEMORY. */
mtan_status mtan_stream_size(const mtan_model *model, int32_t window, size_t *bytes);
/* The predictor, its model and the memory must stay until the stream's end. */
mtan_status mtan_stream_init(mtan_stream *stream, mtan_predictor *predictor, int32_t window, void *memory,
                             size_t bytes);

/* Fails with MTAN_ERR_NULL, MTAN_ERR_INPUT. */
mtan_status mtan_stream_push(mtan_stream *stream, mtan_real time, int32_t channel, mtan_real value);

/* As mtan_classify, mtan_logits and mtan_interpolate. `ask` is a record of which the query times, the noise and the id
 * count, and nothing else; null where none of them is needed. A class per time, and interpolation, need times.
 * Fail with MTAN_ERR_NULL, MTAN_ERR_CONFIG, MTAN_ERR_INPUT, MTAN_ERR_MEMORY (more times than the predictor's bounds). */
mtan_status mtan_stream_predict(mtan_stream *stream, const mtan_record *ask, mtan_real *probability);
mtan_status mtan_stream_logits(mtan_stream *stream, const mtan_record *ask, mtan_real *logits);
mtan_status mtan_stream_interpolate(mtan_stream *stream, const mtan_record *ask, mtan_real *mean, mtan_real *std);

/* Forgets everything. */
mtan_status mtan_stream_reset(mtan_stream *stream);

/* Forgets the observations before a time. What was summed cannot be taken out of a sum without loss, so the sums are made
 * anew from the observations kept, as they arrived: this costs as much as pushing them again, and nothing where none is
 * forgotten. Call it now and then, not at every observation. Fails with MTAN_ERR_NULL; MTAN_ERR_INPUT (not finite);
 * MTAN_ERR_CONFIG (no window); MTAN_ERR_MEMORY when an observation at or after `before` is no longer kept: the window is
 * too small, and nothing is changed. */
mtan_status mtan_stream_expire(mtan_stream *stream, mtan_real before);

/* ---- Small memory -------------------------------------------------------------------------------------------
 *
 * mTAND-Enc with a class per record, on one record, without a predictor: a few reference points at a time, weights used
 * where they lie (flash), nothing folded, no memory that grows with the record. The size query says how many bytes
 * `points` reference points side by side need, 1 to K: more are faster (the events are gone through K / points times),
 * and the result is the same bits. mTAND-Enc of PhysioNet: 6527 bytes with 1, 9663 with 4; and less than 4 KB of stack.
 * Slower than a predictor, and the association of products is another: the tests hold the logits, in float, to the
 * golden limits and to 1e-5 of the batch's largest (1 at least).
 *
 * Fail with MTAN_ERR_NULL, MTAN_ERR_CONFIG (another kind of model, or a record's own reference points), MTAN_ERR_SIZE,
 * MTAN_ERR_INPUT, MTAN_ERR_MEMORY. Calls with memory of their own may run at the same time.
 */
mtan_status mtan_small_size(const mtan_model *model, int32_t points, size_t *bytes);
mtan_status mtan_small_classify(const mtan_model *model, const mtan_record *record, int32_t points, void *memory,
                                size_t bytes, mtan_real *probability);
mtan_status mtan_small_logits(const mtan_model *model, const mtan_record *record, int32_t points, void *memory,
                              size_t bytes, mtan_real *logits);

/* ---- Training ----------------------------------------------------------------------------------------------- */

typedef enum mtan_optimizer { MTAN_ADAM, MTAN_ADAMAX } mtan_optimizer; /* as torch.optim defines them */

/* Runs body(argument, index, thread) for index 0..n-1, each exactly once, thread in 0..threads-1; returns when all are done. */
typedef void (*mtan_body)(void *argument, int32_t index, int32_t thread);
typedef void (*mtan_parallel_for)(void *context, int32_t n, mtan_body body, void *argument);

/* Replaces data by its sum over all ranks, added by a binary tree over the ranks in order: of eight,
 * ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)). All ranks get the same bits and, when it fails, a failure. */
typedef mtan_status (*mtan_allreduce)(void *context, mtan_real *data, size_t n);

/* Factor on the learning rate for a step (from 1) of an epoch (from 1). */
typedef double (*mtan_schedule)(void *context, int64_t step, int32_t epoch);

typedef struct mtan_train_config {
    mtan_optimizer optimizer;
    double lr, beta1, beta2, epsilon;
    double clip;            /* largest norm of the whole gradient; 0: no clipping */
    double kl_weight;       /* used when the model's kl_anneal is 0 */
    double dropout;         /* in [0, 1), of the classifier's units in training; 0: none. See mtan_train_step */
    uint64_t seed;          /* of the noise and of dropout */
    mtan_schedule schedule; /* null: constant */
    void *schedule_context;
    int32_t threads;                /* how many workspaces to lay out; 1 without parallel_for */
    mtan_parallel_for parallel_for; /* null: one after the other */
    void *parallel_context;
    int32_t rank, ranks; /* 0 of 1; ranks a power of two, all given the same batch: they end with the same weights */
    mtan_allreduce allreduce; /* needed when ranks > 1 */
    void *allreduce_context;
} mtan_train_config;

/* torch's defaults: Adam, lr 1e-3, betas 0.9 and 0.999, epsilon 1e-8; one thread, one rank. */
void mtan_train_config_init(mtan_train_config *config);

/* Weight of the KL in an epoch (from 1): 0 up to epoch 10, then 1 - 0.99^(epoch - 10) (Q19). */
double mtan_kl_anneal(int32_t epoch);

/* Means over one batch. */
typedef struct mtan_report {
    double loss;          /* recon + alpha * ce; ce alone without a decoder */
    double recon;         /* minus the bound, mean over records */
    double ce;            /* mean over labels and samples */
    double kl;            /* analytic, divided as the bound is; mean over records */
    double squared_error; /* of the mean over samples, summed over the target cells */
    double gradient_norm; /* before clipping */
    int64_t records;      /* in the reconstruction loss */
    int64_t labels;       /* rows with a label */
    int64_t correct;      /* of them, those whose mean probability over the samples is largest */
    int64_t cells;        /* target cells */
} mtan_report;

typedef struct mtan_trainer {
    mtan_model *model;
    mtan_real *weights; /* the model's, writable */
    mtan_train_config config;
    mtan_bounds bounds;
    int64_t step;
    size_t n_params, n_fold, n_gradient; /* reals for P parameters, for folded weights, and for both, aligned */
    int32_t shards;
    mtan_real *fold, *gradient, *moment1, *moment2, *prologue, *work;
    size_t prologue_count, work_count;
    /* on a device: the workspace starts with room for two batches of batch_count reals, this step's and the next one's */
    size_t batch_count;
    int32_t place;           /* 0 or 1: where this step's is */
    const mtan_record *next; /* said by mtan_train_next; or null */
    int32_t n_next;
    struct { /* what has gone ahead, as mtan_train_next said before the last step; batch null: nothing */
        const mtan_record *records;
        int32_t n;
        struct mtan_batch *batch;
    } ahead;
} mtan_trainer;

/* model->weights must be the flat, writable array `weights`. */
mtan_status mtan_trainer_size(const mtan_model *model, const mtan_train_config *config, const mtan_bounds *bounds,
                              size_t *bytes);
mtan_status mtan_trainer_init(mtan_trainer *trainer, mtan_model *model, mtan_real *weights,
                              const mtan_train_config *config, const mtan_bounds *bounds, void *memory, size_t bytes);

/* One step on a batch of n records: loss, gradient, clipping, optimiser. On failure the weights stay as they were.
 *
 * With dropout each unit of the two hidden layers of the head (of its input, where head_hidden is 0) is 0 with that
 * probability and 1/(1 - dropout) times itself otherwise, in the gradient and in the report that comes with it. Which
 * units is a function of the seed, the step, the record's id, the sample and the unit (with a class per time also of the
 * query's place in the record): shards, threads, ranks and the order of records do not change it, and a trainer that
 * was loaded goes on as the saved one would have. */
mtan_status mtan_train_step(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                            mtan_report *report);
/* Says before a step which records the step after it will have. A device then gets them while it works on this step; on a
 * CPU nothing happens. They have to stay as they are until that step; a step with other records is no mistake, and then,
 * as after null, they are forgotten. */
void mtan_train_next(mtan_trainer *trainer, const mtan_record *records, int32_t n);
/* The same in halves: the gradient of the batch (trainer->gradient, P reals in the order of the table), the update. */
mtan_status mtan_train_gradient(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                                mtan_report *report);
mtan_status mtan_train_update(mtan_trainer *trainer, int32_t epoch);
/* The loss alone, on the same path but without dropout, with nothing changed but workspace: what a validation set is
 * measured with. */
mtan_status mtan_train_loss(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                            mtan_report *report);

/* Into how many shards a batch of n records is cut: a power of two that depends on n alone. */
int32_t mtan_shard_count(int32_t n);

/* ---------------------------------------------------------------------------------------------------------------
 * Files: safetensors, read from memory and written through a callback
 *
 * A file is eight bytes (the header's length, little-endian), a JSON header and the tensors' bytes. The reader works on
 * a blob that the caller keeps (flash, mmap, a buffer), copies nothing and allocates nothing. A blob from elsewhere is
 * hostile until mtan_file_open has said MTAN_OK: it checks everything once, and what it refuses is MTAN_ERR_FILE.
 *
 *     mtan_file file;
 *     mtan_tensor_view view;
 *     status = mtan_file_open(&file, blob, bytes);
 *     status = mtan_file_tensor(&file, "rec.linear.weight", &view);
 *     weight = mtan_view_in_place(&view);                        NULL: copy it with mtan_view_read instead
 *
 * Limits, beyond those of the format: rank 8, 4096 tensors, 4096 metadata pairs, a header of 4 MiB, sizes that fit
 * in size_t. Any number of threads may read one mtan_file; a blob that changes meanwhile gives wrong values or
 * MTAN_ERR_FILE, never a read outside it. On failure results are untouched.
 */
#define MTAN_MAX_RANK 8
#define MTAN_FILE_MAX_ENTRIES 4096u
#define MTAN_FILE_MAX_HEADER (4u * 1024u * 1024u)

typedef enum mtan_dtype {
    MTAN_DTYPE_BOOL,
    MTAN_DTYPE_U8,
    MTAN_DTYPE_I8,
    MTAN_DTYPE_F8_E5M2,
    MTAN_DTYPE_F8_E4M3,
    MTAN_DTYPE_I16,
    MTAN_DTYPE_U16,
    MTAN_DTYPE_F16,
    MTAN_DTYPE_BF16,
    MTAN_DTYPE_I32,
    MTAN_DTYPE_U32,
    MTAN_DTYPE_F32,
    MTAN_DTYPE_F64,
    MTAN_DTYPE_I64,
    MTAN_DTYPE_U64
} mtan_dtype;

/* The type of an array of mtan_real in a file. */
#ifdef MTAN_DOUBLE
#define MTAN_DTYPE_REAL MTAN_DTYPE_F64
#else
#define MTAN_DTYPE_REAL MTAN_DTYPE_F32
#endif

/* A string as it stands in the header: between the quotes, escapes and all, no terminating zero. */
typedef struct mtan_text {
    const char *raw;
    size_t length;
} mtan_text;

/* An opened file. Read `tensors` and `pairs`; the rest is private. It points into the blob. */
typedef struct mtan_file {
    size_t tensors; /* number of tensors */
    size_t pairs;   /* number of metadata pairs; 0 when __metadata__ is absent, null or empty */
    const uint8_t *header;
    const uint8_t *metadata; /* the object of pairs, or NULL */
    const uint8_t *data;     /* ends the header, starts the tensors */
    size_t data_bytes;
} mtan_file;

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

/* Checks the whole blob: the header's length, JSON, UTF-8 and escapes; each tensor's dtype, shape, size and range; that
 * the tensors cover the data without overlap, hole or trailing bytes; that no name and no metadata key occurs twice
 * (compared after decoding). Time: (entries/64 + 1) passes over the header, no memory but 2.5 KB of stack.
 * Fails with MTAN_ERR_NULL or MTAN_ERR_FILE. */
mtan_status mtan_file_open(mtan_file *file, const void *blob, size_t bytes);

/* The tensor of that name, or the index-th in the header's order. One pass over the header.
 * Fails with MTAN_ERR_NULL, MTAN_ERR_MISSING. */
mtan_status mtan_file_tensor(const mtan_file *file, const char *name, mtan_tensor_view *view);
mtan_status mtan_file_tensor_at(const mtan_file *file, size_t index, mtan_tensor_view *view);

/* The metadata value of `key`, decoded and zero-terminated, in `text` of `size` bytes; *length (may be NULL) is its
 * length without the zero. With text NULL and size 0 only the length is given.
 * Fails with MTAN_ERR_NULL, MTAN_ERR_MISSING, MTAN_ERR_MEMORY (size <= length). */
mtan_status mtan_file_metadata(const mtan_file *file, const char *key, char *text, size_t size, size_t *length);

/* The index-th pair of the metadata, as it stands in the file. Fails with MTAN_ERR_NULL, MTAN_ERR_MISSING. */
mtan_status mtan_file_metadata_at(const mtan_file *file, size_t index, mtan_text *key, mtan_text *value);

/* Decodes a name, key or value; text, size and length as in mtan_file_metadata. A \u0000 in the file becomes a zero
 * byte inside the text: `length` tells.
 * Fails with MTAN_ERR_NULL, MTAN_ERR_MEMORY, MTAN_ERR_FILE (not a JSON string). */
mtan_status mtan_text_decode(const mtan_text *coded, char *text, size_t size, size_t *length);

/* The tensor's elements where they lie, or NULL when they cannot be used there: dtype not MTAN_DTYPE_REAL, address not
 * aligned, or a big-endian host. */
const mtan_real *mtan_view_in_place(const mtan_tensor_view *view);

/* Copies all n elements, converted from F16, BF16, F32 or F64, from any address and on any host.
 * Fails with MTAN_ERR_NULL, MTAN_ERR_SHAPE (n is not the tensor's count, or another dtype). */
mtan_status mtan_view_read(const mtan_tensor_view *view, mtan_real *out, size_t n);
mtan_status mtan_view_read_f64(const mtan_tensor_view *view, double *out, size_t n);

/* Copies all n elements of an I32 tensor, or of a tensor of exactly this dtype into the host's byte order (`out` is an
 * array of that type, e.g. uint64_t for U64, uint16_t for BF16). Fails as mtan_view_read does. */
mtan_status mtan_view_read_i32(const mtan_tensor_view *view, int32_t *out, size_t n);
mtan_status mtan_view_read_raw(const mtan_tensor_view *view, mtan_dtype dtype, void *out, size_t n);

/* What to write: a tensor (elements of that dtype in the host's byte order; mtan_real is MTAN_DTYPE_REAL) and a pair of
 * metadata. Strings are UTF-8. */
typedef struct mtan_file_entry {
    const char *name;
    mtan_dtype dtype;
    int rank;
    size_t shape[MTAN_MAX_RANK];
    const void *data; /* may be NULL when the tensor has no elements */
} mtan_file_entry;

typedef struct mtan_file_pair {
    const char *key;
    const char *value;
} mtan_file_pair;

/* Takes the next n > 0 bytes of a file; anything but MTAN_OK ends the writing. Pieces may be one byte long. */
typedef mtan_status (*mtan_write_fn)(void *context, const void *bytes, size_t n);

/* The exact size of a file; the file through a callback; the file into a buffer of at least that size (*bytes is what
 * was used of it). The metadata comes first, then the tensors: wider elements first, otherwise in the given order, so
 * that every tensor is aligned to its elements. The data starts at a multiple of 64 (a cache line, and the widest
 * vector), so that vectors can be loaded straight from a mapped file. Without pairs there is no __metadata__. The same
 * input gives the same bytes on every host. Fails, before anything is written, with MTAN_ERR_NULL; MTAN_ERR_INPUT (a
 * string that is not UTF-8, a name or a key twice, the name "__metadata__", a dtype or rank that does not exist);
 * MTAN_ERR_SIZE (a product that overflows, or a limit above); MTAN_ERR_MEMORY (the buffer is too small); and halfway
 * with MTAN_ERR_WRITE (the callback failed). */
mtan_status mtan_file_write_size(const mtan_file_entry *entries, size_t entry_count, const mtan_file_pair *pairs,
                                 size_t pair_count, size_t *bytes);
mtan_status mtan_file_write(const mtan_file_entry *entries, size_t entry_count, const mtan_file_pair *pairs,
                            size_t pair_count, mtan_write_fn write, void *context);
mtan_status mtan_file_write_memory(const mtan_file_entry *entries, size_t entry_count, const mtan_file_pair *pairs,
                                   size_t pair_count, void *out, size_t size, size_t *bytes);

/* ---- Model files -------------------------------------------------------------------------------------------- */

/* Opens a model in a safetensors blob without copying: the blob (flash, mmap) must stay, lie at a multiple of 4 bytes,
 * hold F32 and be read by a little-endian host, else MTAN_ERR_SHAPE: then use mtan_model_load. Matrices of more than one
 * column may be I8 as in mtan_model_load: then the model is one of mtan_model_init_int8, for mtan_small_classify alone. */
mtan_status mtan_model_open(mtan_model *model, const void *blob, size_t bytes);
/* The settings alone; given reference points are used in place, or MTAN_ERR_SHAPE. */
mtan_status mtan_model_load_config(mtan_config *config, const void *blob, size_t bytes);
/* Copies the weights, from any address, any floating type, on any host. The array needs mtan_model_load_count reals: the
 * weights, and behind them the K points of MTAN_REF_GIVEN. Matrices may be I8, each with a scale for every row in a vector
 * of its name and ".scale" (finite and not negative, else MTAN_ERR_FILE): then the model's precision is MTAN_INT8. */
mtan_status mtan_model_load_count(const void *blob, size_t bytes, size_t *count);
mtan_status mtan_model_load(mtan_model *model, mtan_real *weights, size_t count, const void *blob, size_t bytes);
/* The same for files that may hold a model defined elsewhere: `known` lists architectures up to a null. A file with another
 * one is MTAN_ERR_MISSING, here and above. */
mtan_status mtan_known_load_config(mtan_config *config, const mtan_architecture *const *known, const void *blob,
                                   size_t bytes);
mtan_status mtan_known_load_count(const mtan_architecture *const *known, const void *blob, size_t bytes, size_t *count);
mtan_status mtan_known_load(mtan_model *model, mtan_real *weights, size_t count, const mtan_architecture *const *known,
                            const void *blob, size_t bytes);

/* A row of n weights as whole numbers from -127 to 127; returns their scale, so that |x - q scale| <= scale / 2. The scale is
 * a float, 0 for a row of zeros (all below 2^-100 count as such) and NaN for one that is not finite. */
mtan_real mtan_quantize_row(int8_t *q, const mtan_real *x, size_t n);

/* Writes a model: weights under their names, settings as mtan.* metadata, and the caller's own pairs (preprocessing,
 * preset, channel names). With a trainer its moments and step are written too, so that training resumes to the same bits. */
#define MTAN_MAX_PAIRS 64 /* of the caller's own */
mtan_status mtan_model_save(const mtan_model *model, const mtan_trainer *trainer, const mtan_file_pair *pairs,
                            size_t n_pairs, mtan_write_fn write, void *context);
mtan_status mtan_trainer_load(mtan_trainer *trainer, const void *blob, size_t bytes);

/* ---- Ops: the layer on which models are written. This section may change. ------------------------------------ */

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

/* A matrix in one of three spaces; offsets count reals. The workspace holds activations, the parameter space the
 * model's weights, the fold space what the prologue makes of the weights once per batch. Gradients of the workspace lie
 * in the workspace, those of the other two in the shard's gradient array. */
enum { MTAN_SPACE_WORK, MTAN_SPACE_PARAM, MTAN_SPACE_FOLD };
#define MTAN_NO_GRAD UINT32_MAX

typedef struct mtan_tensor {
    uint32_t data, grad;
    int32_t rows, cols, stride; /* stride: reals from one row to the next */
    uint32_t space;
} mtan_tensor;

/* The normal form of a few records: times distinct and ascending, events grouped by channel, ascending in time.
 * Positions 0..B-1 are records sorted by falling number of steps where the sequence is ragged (MTAN_REF_OBSERVED). */
typedef struct mtan_batch {
    int32_t records;  /* B */
    int32_t samples;  /* S */
    int32_t channels; /* D */
    int32_t steps;    /* of the longest sequence: K, or the most query times */
    int32_t *order;   /* (B) position -> index of the record */
    int32_t *first;   /* (steps + 1) row at which a step of the sequence starts; R = first[steps] */
    int32_t *length;  /* (B) steps of each record */
    int32_t *time0;   /* (B + 1) first time of each record */
    int32_t *score0;  /* (B + 1) first real of each record's block of scores, (L, steps of the record) */
    int32_t *begin;   /* (B, D + 1) events of a channel, as positions in row and value */
    int32_t *row;     /* time row of an event, from the record's first */
    mtan_real *value; /* its value */
    mtan_tensor time; /* (T, 1) distinct event times */
    mtan_tensor seen; /* (B, D) 1 where a channel was ever observed (Q1) */
    mtan_tensor
        point;       /* MTAN_REF_OBSERVED: times of the sequence's steps, record by record; the same as query or time */
    int32_t *point0; /* (B + 1); null when all records share the reference points */
    int32_t *pair0;  /* (B + 1) first real of each record's block of decoder weights, (queries, steps of the record) */
    mtan_tensor query;  /* (Q, 1) query times, or distinct target times, of all records */
    int32_t *query0;    /* (B + 1) */
    int32_t *query_row; /* with an architecture and a class per time: (Q) the step of the record that a query is */
    int32_t *place;     /* scratch */
    int32_t *cell0;     /* (B + 1) target cells, in the order of time: */
    int32_t *cell_row;  /* query row of a cell, from the record's first */
    int32_t *cell_channel;
    mtan_real *cell_value;
    int32_t *label;                              /* per record position, or per row of the sequence or query */
    int32_t times, queries, cells, rows, events; /* T, Q, cells, R, events: of all records */
    int32_t scores, pairs;                       /* reals of the two kinds of blocks */
    int32_t most_times, most_queries;            /* of one record */
    uint64_t *id;                                /* (B) of the records at their positions; null on CPUs */
    int32_t one_latent;                          /* the posterior has one row for a record, not one for a step */
} mtan_batch;

typedef struct mtan_tape mtan_tape;

/* One recorded op. Only 32-bit fields and reals: its size is the same on every CPU. */
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
    mtan_real *work; /* null: count only; no op touches data */
    const mtan_real *params;
    mtan_real *fold;
    mtan_real *grads;           /* of parameters, then of folded weights */
    const mtan_backward *user;  /* backward of ops MTAN_OP_USER, MTAN_OP_USER + 1, ... defined elsewhere */
    size_t top, peak, capacity; /* reals in use, at the most, and in all; nodes lie at the far end */
    size_t fold_top, n_params;
    size_t fold_graded; /* of the fold space, the part that has gradients: it comes first */
    uint32_t nodes;
    int32_t recording;
    mtan_precision precision; /* of packed weights */
    mtan_status status;       /* the first failure; ops after it do nothing */
};

#define MTAN_OP_USER 1000u

/* Tensors. mtan_new takes workspace (with a gradient when recording), mtan_new_fold takes fold space,
 * mtan_columns and mtan_rows are views. mtan_data and mtan_grad give addresses for kernels. */
mtan_tensor mtan_new(mtan_tape *tape, int32_t rows, int32_t cols);
mtan_tensor mtan_new_constant(mtan_tape *tape, int32_t rows, int32_t cols);
mtan_tensor mtan_new_gates(mtan_tape *tape, int32_t rows,
                           int32_t cols); /* its gradient takes its place: for mtan_op_gru */
mtan_tensor mtan_new_fold(mtan_tape *tape, int32_t rows, int32_t cols);
mtan_tensor mtan_new_fold_constant(mtan_tape *tape, int32_t rows, int32_t cols); /* after all that have gradients */
mtan_tensor mtan_columns(mtan_tensor x, int32_t first, int32_t count);
mtan_tensor mtan_rows(mtan_tensor x, int32_t first, int32_t count);
mtan_real *mtan_data(const mtan_tape *tape, mtan_tensor x);
mtan_real *mtan_grad(const mtan_tape *tape, mtan_tensor x);
int32_t *mtan_new_ints(mtan_tape *tape, size_t n); /* null when counting or failed */

/* Appends a node for an op defined elsewhere; null when not recording or failed. */
mtan_node *mtan_record_op(mtan_tape *tape, uint32_t op);
/* Runs the recorded ops backwards, last first. */
void mtan_backpropagate(mtan_tape *tape);

/* y is always given by the caller, so a concatenation is a set of views. */
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
void mtan_op_spread(mtan_tape *tape, mtan_tensor y,
                    mtan_tensor x); /* (B, C) to the rows (R, C) of the batch's sequence */
void mtan_op_last(mtan_tape *tape, mtan_tensor y, mtan_tensor x); /* (R S, N) to (B S, N): last step of each sequence */
void mtan_op_softmax(mtan_tape *tape, mtan_tensor x);             /* rows, in place */
/* Products of every record's rows (its times, or its queries for the decoder) with its points, block after block. */
void mtan_op_score(mtan_tape *tape, mtan_tensor score, mtan_tensor row, mtan_tensor point, int32_t decoder);
void mtan_op_softmax_pairs(mtan_tape *tape, mtan_tensor weight);     /* over the points of each query, in place */
void mtan_op_regroup(mtan_tape *tape, mtan_tensor y, mtan_tensor x); /* rows of a sequence, record by record */
void mtan_op_attend(mtan_tape *tape, mtan_tensor y, mtan_tensor score);
void mtan_op_attend_rbf(mtan_tape *tape, mtan_tensor y, mtan_tensor query, mtan_tensor beta);
void mtan_op_attend_values(mtan_tape *tape, mtan_tensor y, mtan_tensor weight, mtan_tensor value);
void mtan_op_smooth(mtan_tape *tape, mtan_tensor y, mtan_tensor key, mtan_tensor beta, mtan_tensor value);
/* gx = x W_ih^T + b_ih comes in and is overwritten by the gates. Rows of the sequence come `samples` at a time. packed is
 * w_hh as the backend packs it, or null. */
void mtan_op_gru(mtan_tape *tape, mtan_tensor y, mtan_tensor gx, mtan_tensor w_hh, mtan_tensor b_hh,
                 const mtan_tensor *packed, int32_t samples, int32_t reverse);
void mtan_op_sample(mtan_tape *tape, mtan_tensor z, mtan_tensor posterior, mtan_tensor noise);
void mtan_op_kl(mtan_tape *tape, mtan_tensor kl, mtan_tensor posterior);
void mtan_op_ratio(mtan_tape *tape, mtan_tensor ratio, mtan_tensor z, mtan_tensor posterior, mtan_tensor noise);
void mtan_op_loglik(mtan_tape *tape, mtan_tensor logp, mtan_tensor prediction, double std);
/* The loss of each record, minus its bound; `share` (B, 1) is what the bracket is multiplied by (0: left out). */
void mtan_op_bound(mtan_tape *tape, mtan_tensor loss, mtan_tensor logp, mtan_tensor kl, mtan_tensor share,
                   mtan_bound bound, double kl_weight, double seed);
/* The loss of each row, rows `samples` to a label; samples 0: rows as mtan_op_attend_values has them, labels as queries.
 * p becomes softmax(x). seed is the gradient of each row's loss. */
void mtan_op_cross_entropy(mtan_tape *tape, mtan_tensor loss, mtan_tensor p, mtan_tensor x, const int32_t *label,
                           int32_t samples, double seed);

/* ---- Models defined elsewhere: this section may change --------------------------------------------------------
 *
 * A model of one's own is a list of parameters and a forward function of ops (those above, and its own). Sizes, gradients,
 * shards, threads, training, prediction, files and checkpoints are then the library's, with the same promises: whatever the
 * forward function computes of a record may depend on that record alone.
 *
 *     mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 41, 2);
 *     mtan_config_architecture(&config, &my_architecture);
 *
 * kind MTAN_ENC has logits, MTAN_FULL a latent state of one step per record beside: posterior (B, 2Z), z (B S, Z) and a
 * prediction at the target times. The sequence of a record (first, length, rows of mtan_batch) are its distinct event times,
 * with a class per time the query times among them. What does not apply - streams, mtan_small_*, mtan_attention, mtan_latent,
 * MTAN_INT8, dropout, reference points - is MTAN_ERR_CONFIG, or has no effect.
 */

/* A list of parameters that is being made. */
typedef struct mtan_params mtan_params;
/* Appends one and returns its index: rows x cols; rank 1 or 2; starts uniform in +-1/sqrt(fan). */
int32_t mtan_params_add(mtan_params *params, const char *name, int32_t rows, int32_t cols, int32_t rank, int32_t fan);

typedef struct mtan_forward {
    mtan_tape *tape; /* its batch is the batch */
    const mtan_config *config;
    mtan_tensor noise;  /* (B S, Z) standard normals, or zeros: MTAN_FULL */
    int32_t prediction; /* whether the prediction is needed */
    int32_t training;   /* whether the loss is needed */
    int32_t epoch;
    uint64_t seed, step;
    const mtan_record *records; /* batch->order[b] is the index of the record at position b; null when counting */
    const struct model_run *run;
} mtan_forward;

typedef struct mtan_outputs {
    mtan_tensor
        logits; /* (B S, C), S rows to a record; with a class per time (Q S, C): record by record (S, queries, C) */
    mtan_tensor posterior;  /* (B, 2Z) mean and log-variance */
    mtan_tensor z;          /* (B S, Z) */
    mtan_tensor prediction; /* (Q S, D), record by record: (S, queries, D) */
    mtan_tensor penalty;    /* (B, 1) added to the loss, mean over the records; rows 0: none */
} mtan_outputs;

/* Parameter `index` as a tensor: (rows, cols), a vector as the row (1, n). */
mtan_tensor mtan_forward_param(const mtan_forward *f, int32_t index);
/* The batch as dense rows of its sequence: x (R, D) 0 where nothing was observed, the mean of repeats; mask (R, D); and time (R, 1).
 * All constants. */
void mtan_forward_rows(const mtan_forward *f, mtan_tensor x, mtan_tensor mask, mtan_tensor time);
/* Rows of the sequence (R S, C), S together, to rows of the queries (Q S, C), as logits of a class per time lie. */
void mtan_op_at_queries(mtan_tape *tape, mtan_tensor y, mtan_tensor x);

struct mtan_architecture {
    const char *name; /* in files as mtan.architecture */
    const char *const
        *settings;          /* names of config.own[0], [1], ... up to a null, at most MTAN_OWN_SETTINGS; null: none */
    const double *defaults; /* as many */
    /* MTAN_OK, MTAN_ERR_CONFIG or MTAN_ERR_SIZE; null: nothing to check */
    mtan_status (*check)(const mtan_config *config);
    void (*params)(const mtan_config *config, mtan_params *params);
    /* after the uniform start: what starts otherwise; null: nothing */
    void (*init)(const mtan_config *config, mtan_real *weights, mtan_mt19937 *rng);
    void (*forward)(const mtan_forward *f, mtan_outputs *out);
    const mtan_backward *backward; /* of its own ops: MTAN_OP_USER, MTAN_OP_USER + 1, ... */
};

/* Sets the architecture, its default settings, and MTAN_REF_OBSERVED. */
mtan_status mtan_config_architecture(mtan_config *config, const mtan_architecture *architecture);

/* One record, one head of sparse attention, for the kernels. */
typedef struct mtan_attend {
    const mtan_real *score;     /* (L, Q): key-major, so that the lanes of a vector are queries */
    mtan_real *weight;          /* (L, Q): exp(score) / 2^base, the base of a query the exponent of its largest score */
    mtan_real *total;           /* (D, Q): sum of weights; negative where the channel needed a base of its own */
    mtan_real *scratch;         /* (2, Q) */
    const int32_t *begin, *row; /* (D + 1), events */
    const mtan_real *value;
    const int32_t *first; /* (Q) y's row of query q is first[q] + position */
    int32_t position, keys, queries, channels;
} mtan_attend;

/* One record of RBF smoothing: weights exp(-beta_d (q - t)^2). */
typedef struct mtan_rbf {
    const mtan_real *query; /* (Q) */
    const mtan_real *time;  /* (L) */
    const mtan_real *beta;  /* (D) */
    const int32_t *begin, *row;
    const mtan_real *value;
    const int32_t *first;
    int32_t position, keys, queries, channels;
} mtan_rbf;

/* The kernels. A backend fills every entry; all that uses a fused multiply-add is here and nowhere else, so a backend
 * file compiled with its own flags is whole. Matrices are row-major, ld* is the stride between rows. */
struct mtan_backend {
    const char *name;
    int32_t fused;
    void (*map)(mtan_function f, mtan_real *y, const mtan_real *x, size_t n);
    /* exp(x) = significand 2^exponent, the exponent whole, the significand from 0.7 to 1.42 */
    void (*exp_parts)(mtan_real *significand, mtan_real *exponent, const mtan_real *x, size_t n);
    void (*fill)(mtan_real *y, size_t n, mtan_real value);
    void (*scale)(mtan_real *y, size_t ldy, int32_t rows, int32_t cols, mtan_real factor);
    double (*sum)(const mtan_real *x, size_t n);         /* in double */
    double (*sum_squares)(const mtan_real *x, size_t n); /* in double */
    void (*copy)(mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows,
                 int32_t cols); /* ldx 0: one row, repeated */
    void (*add)(mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows,
                int32_t cols); /* ldy 0: sum of the rows */
    /* c = a b, a b^T, a^T b with c (m, n) and k terms a sum; `add` starts from c instead of 0 */
    void (*product_nn)(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                       int32_t m, int32_t n, int32_t k, int32_t add);
    void (*product_nt)(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                       int32_t m, int32_t n, int32_t k, int32_t add);
    void (*product_tn)(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                       int32_t m, int32_t n, int32_t k, int32_t add);
    void (*embed_forward)(mtan_real *y, const mtan_real *time, const mtan_real *lw, const mtan_real *lb,
                          const mtan_real *pw, const mtan_real *pb, int32_t times, int32_t embed);
    void (*embed_backward)(mtan_real *dlw, mtan_real *dlb, mtan_real *dpw, mtan_real *dpb, const mtan_real *dy,
                           const mtan_real *time, const mtan_real *pw, const mtan_real *pb, int32_t times,
                           int32_t embed);
    void (*embed_fixed)(mtan_real *y, const mtan_real *time, mtan_real base, mtan_real scale, int32_t times,
                        int32_t embed);
    void (*relu_forward)(mtan_real *y, size_t n);
    void (*relu_backward)(mtan_real *dy, const mtan_real *y, size_t n);
    void (*tanh_backward)(mtan_real *dy, const mtan_real *y, size_t n);
    void (*softplus_backward)(mtan_real *dx, const mtan_real *dy, const mtan_real *x, size_t n);
    void (*softmax_forward)(mtan_real *y, int32_t rows, int32_t cols);
    void (*softmax_backward)(mtan_real *dy, const mtan_real *y, int32_t rows, int32_t cols); /* in place */
    void (*attend_forward)(const mtan_attend *a, mtan_real *y, size_t ldy);
    void (*attend_backward)(const mtan_attend *a, mtan_real *dscore, const mtan_real *dy, size_t lddy,
                            const mtan_real *y, size_t ldy);
    void (*attend_weights)(const mtan_attend *a, mtan_real *weight, int32_t channel); /* (Q, L), normalised */
    void (*rbf_forward)(const mtan_rbf *a, mtan_real *y, size_t ldy);
    void (*rbf_backward)(const mtan_rbf *a, mtan_real *dbeta, const mtan_real *dy, size_t lddy, const mtan_real *y,
                         size_t ldy);
    void (*rbf_weights)(const mtan_rbf *a, mtan_real *weight, int32_t channel);
    /* dense RBF smoothing of values (keys, cols), a row every ldv reals, at `queries` times */
    void (*smooth_forward)(mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                           const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t queries, int32_t keys,
                           int32_t cols);
    void (*smooth_backward)(mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy, const mtan_real *y, size_t ldy,
                            const mtan_real *query, const mtan_real *key, const mtan_real *beta, const mtan_real *value,
                            size_t ldv, int32_t queries, int32_t keys, int32_t cols);
    /* gates of one step: g (rows, 3N) input part in, r z n out; gh (rows, 3N) recurrent part; hn (rows, N) keeps the
     * recurrent part of n, or is null; before is h of the step before, or null for zero */
    void (*gru_forward)(mtan_real *h, size_t ldh, mtan_real *g, size_t ldg, mtan_real *hn, const mtan_real *gh,
                        const mtan_real *before, size_t ldb, int32_t rows, int32_t hidden);
    /* dh in: gradient of h, out: the part of it that reaches `before` directly; the gates g and hn become their gradients */
    void (*gru_backward)(mtan_real *dh, mtan_real *g, size_t ldg, mtan_real *hn, const mtan_real *before, size_t ldb,
                         int32_t rows, int32_t hidden);
    /* posterior (rows, 2Z) mean and log-variance; z and noise (rows S, Z) */
    void (*sample_forward)(mtan_real *z, const mtan_real *posterior, const mtan_real *noise, int32_t rows,
                           int32_t samples, int32_t latent);
    void (*sample_backward)(mtan_real *dposterior, const mtan_real *dz, const mtan_real *z, const mtan_real *posterior,
                            int32_t rows, int32_t samples, int32_t latent);
    /* of one record: `steps` rows of the posterior, at first[k] + position */
    void (*kl_forward)(mtan_real *kl, const mtan_real *posterior, const int32_t *first, int32_t position, int32_t steps,
                       int32_t latent);
    void (*kl_backward)(mtan_real *dposterior, const mtan_real *posterior, const mtan_real *dkl, const int32_t *first,
                        int32_t position, int32_t steps, int32_t latent);
    /* log q(z|x) - log p(z) of one sample of one record; its gradient with respect to z and to the log-variance */
    void (*ratio_forward)(mtan_real *ratio, const mtan_real *z, const mtan_real *posterior, const mtan_real *noise,
                          const int32_t *first, int32_t position, int32_t steps, int32_t samples, int32_t sample,
                          int32_t latent);
    void (*ratio_backward)(mtan_real *dz, mtan_real *dposterior, const mtan_real *z, const mtan_real *dratio,
                           const int32_t *first, int32_t position, int32_t steps, int32_t samples, int32_t sample,
                           int32_t latent);
    /* Gaussian log-likelihood of `cells` cells of a prediction (rows, D) */
    void (*loglik_forward)(mtan_real *logp, const mtan_real *prediction, int32_t channels, const int32_t *row,
                           const int32_t *channel, const mtan_real *value, int32_t cells, double std);
    void (*loglik_backward)(mtan_real *dprediction, const mtan_real *prediction, const mtan_real *dlogp,
                            int32_t channels, const int32_t *row, const int32_t *channel, const mtan_real *value,
                            int32_t cells, double std);
    /* one record: weight (S) of each sample in the gradient comes out; kl has kl_stride reals from sample to sample */
    void (*bound_forward)(mtan_real *loss, mtan_real *weight, const mtan_real *logp, const mtan_real *kl,
                          int32_t kl_stride, int32_t samples, mtan_bound bound, double kl_weight,
                          const mtan_real *share);
    void (*bound_backward)(mtan_real *dlogp, mtan_real *dkl, int32_t kl_stride, const mtan_real *weight,
                           int32_t samples, mtan_real kl_weight, mtan_real seed, const mtan_real *share);
    double (*squared_error)(const mtan_real *prediction, size_t apart, int32_t samples, int32_t channels,
                            const int32_t *row, const int32_t *channel, const mtan_real *value, int32_t cells);
    /* p = softmax(x), loss = -log p[label]; rows without a label have loss 0 */
    void (*cross_entropy_forward)(mtan_real *loss, mtan_real *p, const mtan_real *x, const int32_t *label, int32_t rows,
                                  int32_t samples, int32_t classes);
    void (*cross_entropy_backward)(mtan_real *dx, const mtan_real *p, const int32_t *label, mtan_real seed,
                                   int32_t rows, int32_t samples, int32_t classes);
    void (*adam)(mtan_real *w, mtan_real *m, mtan_real *v, const mtan_real *g, size_t n, const mtan_real c[6]);
    void (*adamax)(mtan_real *w, mtan_real *m, mtan_real *u, const mtan_real *g, size_t n, const mtan_real c[6]);
    /* b (n, k) of product_nt laid out once for many products: how many reals, the layout, c = [c +] a b^T */
    size_t (*pack_count)(int32_t n, int32_t k);
    void (*pack)(mtan_real *packed, const mtan_real *b, size_t ldb, int32_t n, int32_t k);
    void (*product_packed)(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed, int32_t m,
                           int32_t n, int32_t k, int32_t add);
    /* normals out (2, n) by Box-Muller: see section 7 of mtan.c */
    void (*normal_pairs)(mtan_real *out, const mtan_real *u, const mtan_real *w, const mtan_real *v, size_t n);
    /* the three of `pack` with b in int8, a scale to a row, and a in int16, a scale to a block of 512 terms: the sums are
     * sums of integers, so the order of their terms does not matter */
    size_t (*pack_int8_count)(int32_t n, int32_t k);
    void (*pack_int8)(mtan_real *packed, const mtan_real *b, size_t ldb, int32_t n, int32_t k);
    void (*product_int8)(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed, int32_t m,
                         int32_t n, int32_t k, int32_t add);
    /* the same with b where it lies: c = [c +] a b^T, and c = [c +] a b, whose scales are in the columns of a already */
    void (*product_nt_int8)(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b,
                            const mtan_real *scale, int32_t m, int32_t n, int32_t k, int32_t add);
    void (*product_nn_int8)(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b, int32_t m,
                            int32_t n, int32_t k, int32_t add);
    const struct mtan_device *device; /* null on CPUs */
};

/* What a backend has besides when its kernels run elsewhere, on a memory of their own, one after the other while the host
 * goes on. The blocks that the caller hands to the library have images there, tensor for tensor: kernels are given the
 * host's addresses and work on the images. The library says what it has written and what it wants to read; weights and a
 * trainer's state stay there until the caller fetches them (platform/cuda/mtan_cuda.h).
 *
 * Kernels cost a launch, so what is done record by record or step by step above is done here for a whole batch. Tensors
 * lie as the ops lay them out. */
typedef struct mtan_device {
    /* 0: the device has failed. A send has taken the bytes when it returns; a fetch waits for all that went before it. */
    int32_t (*send)(const void *from, size_t bytes);
    int32_t (*fetch)(void *to, size_t bytes);
    /* the same beside the kernels under way, which do not touch these bytes; kernels launched after `arrive` find them */
    int32_t (*send_ahead)(const void *from, size_t bytes);
    int32_t (*arrive)(void);
    /* scores of records with points of their own; drow or dpoint may be null */
    void (*score_forward)(const mtan_batch *b, mtan_real *score, const mtan_real *row, size_t ldr,
                          const mtan_real *point, size_t ldp, int32_t inner, int32_t decoder);
    void (*score_backward)(const mtan_batch *b, mtan_real *drow, size_t ldr, mtan_real *dpoint, size_t ldp,
                           const mtan_real *dscore, const mtan_real *row, const mtan_real *point, int32_t inner,
                           int32_t decoder);
    void (*attend_forward)(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *score, mtan_real *weight,
                           mtan_real *total);
    void (*attend_backward)(const mtan_batch *b, mtan_real *dscore, const mtan_real *dy, const mtan_real *y, size_t ldy,
                            const mtan_real *score, const mtan_real *weight, const mtan_real *total);
    void (*rbf_forward)(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *time,
                        const mtan_real *beta);
    void (*rbf_backward)(const mtan_batch *b, mtan_real *dbeta, const mtan_real *dy, const mtan_real *y, size_t ldy,
                         const mtan_real *query, const mtan_real *time, const mtan_real *beta);
    void (*softmax_pairs_forward)(const mtan_batch *b, mtan_real *weight);
    void (*softmax_pairs_backward)(const mtan_batch *b, mtan_real *dweight, const mtan_real *weight);
    /* value: a row every ldv reals; y (Q S, cols) */
    void (*values_forward)(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *weight,
                           const mtan_real *value, size_t ldv, int32_t cols);
    void (*values_backward)(const mtan_batch *b, mtan_real *dweight, mtan_real *dvalue, const mtan_real *dy, size_t ldy,
                            const mtan_real *weight, const mtan_real *value, size_t ldv, int32_t cols);
    void (*smooth_forward)(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                           const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t cols);
    void (*smooth_backward)(const mtan_batch *b, mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy,
                            const mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                            const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t cols);
    /* g comes in as the input part and goes out as the gates; hn null when not recording. dh (rows of the first step, N) is
     * scratch; in the backward pass g and hn become their gradients, the weights' own are products over them. */
    void (*gru_forward)(const mtan_batch *b, mtan_real *y, size_t ldy, mtan_real *g, size_t ldg, mtan_real *hn,
                        const mtan_real *w, size_t ldw, const mtan_real *bias, int32_t hidden, int32_t samples,
                        int32_t reverse);
    void (*gru_backward)(const mtan_batch *b, mtan_real *g, size_t ldg, mtan_real *hn, mtan_real *dh,
                         const mtan_real *dy, const mtan_real *y, size_t ldy, const mtan_real *w, size_t ldw,
                         int32_t hidden, int32_t samples, int32_t reverse);
    void (*kl_forward)(const mtan_batch *b, mtan_real *kl, const mtan_real *posterior, int32_t latent);
    void (*kl_backward)(const mtan_batch *b, mtan_real *dposterior, const mtan_real *posterior, const mtan_real *dkl,
                        int32_t latent);
    void (*ratio_forward)(const mtan_batch *b, mtan_real *ratio, const mtan_real *z, const mtan_real *posterior,
                          const mtan_real *noise, int32_t latent);
    void (*ratio_backward)(const mtan_batch *b, mtan_real *dz, mtan_real *dposterior, const mtan_real *z,
                           const mtan_real *dratio, int32_t latent);
    void (*loglik_forward)(const mtan_batch *b, mtan_real *logp, const mtan_real *prediction, double std);
    void (*loglik_backward)(const mtan_batch *b, mtan_real *dprediction, const mtan_real *prediction,
                            const mtan_real *dlogp, double std);
    void (*squared_error)(const mtan_batch *b, double *error /* (B) on the device */, const mtan_real *prediction);
    /* kl has a value for a record, or with kl_stride 1 one for a record and sample */
    void (*bound_forward)(int32_t records, mtan_real *loss, mtan_real *weight, const mtan_real *logp,
                          const mtan_real *kl, int32_t kl_stride, int32_t samples, mtan_bound bound, double kl_weight,
                          const mtan_real *share);
    void (*bound_backward)(int32_t records, mtan_real *dlogp, mtan_real *dkl, int32_t kl_stride,
                           const mtan_real *weight, int32_t samples, mtan_real kl_weight, mtan_real seed,
                           const mtan_real *share);
    /* rows as mtan_op_attend_values has them, a label for each query */
    void (*cross_entropy_forward)(const mtan_batch *b, mtan_real *loss, mtan_real *p, const mtan_real *x,
                                  const int32_t *label, int32_t classes);
    void (*cross_entropy_backward)(const mtan_batch *b, mtan_real *dx, const mtan_real *p, const int32_t *label,
                                   mtan_real seed, int32_t classes);
    void (*spread_forward)(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t cols);
    void (*spread_backward)(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                            int32_t cols);
    void (*last_forward)(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t cols,
                         int32_t samples);
    void (*last_backward)(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy, int32_t cols,
                          int32_t samples);
    void (*regroup_forward)(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                            int32_t cols);
    void (*regroup_backward)(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                             int32_t cols);
    /* what mtan_noise_fill gives every record and sample, laid out as z; id (B) in the order of positions */
    void (*noise)(const mtan_batch *b, mtan_real *z, const uint64_t *id, uint64_t seed, uint64_t epoch, int32_t latent);
    /* what mtan_mask_fill gives; rows of a record lie together (0), by steps (1), or by queries (2), hidden_layer 0 or 1 */
    void (*mask)(const mtan_batch *b, mtan_real *mask, const uint64_t *id, double dropout, uint64_t seed, uint64_t step,
                 int32_t width, int32_t layout, int32_t hidden_layer);
} mtan_device;

#ifdef __cplusplus
}
#endif
#endif
