/* See option_table.h. */
#include "option_table.h"

#include <math.h>
#include <string.h>

#include "../../../mtan.h"
#include "../../../platform/pool.h"
#include "../../data/split.h"
#include "settings.h"

#define FLAG NULL, OPTION_FLAG, 0, 0
#define TEXT(argument) argument, OPTION_TEXT, 0, 0
#define NUMBER(argument, low, high) argument, OPTION_NUMBER, low, high
#define WHOLE(argument, low, high) argument, OPTION_WHOLE, low, high
#define MODEL_USERS " eval explain predict interpolate stream report compare selftest quantize "
static const option table[] = {
    {"data", 0, TEXT("PATH"),
     " train eval predict interpolate stream report compare quantize table bench explain split ",
     "folder or file of the data (table: a folder that holds the data sets); - reads own events from standard input "
     "(predict, interpolate, stream)"},
    {"labels", 0, TEXT("FILE"), " train predict interpolate eval report compare check quantize explain split ",
     "labels of own data: record,label or record,time,label or subject_id,prediction_time,boolean_value; or, of "
     "several "
     "labels that are each true or not, record and a column of 1 and 0 for each"},
    {"static", 0, TEXT("FILE"), " train predict interpolate stream eval report compare check quantize explain split ",
     "what does not change in a record of own data: record,name,value, or record and a column per name; numbers or "
     "categories"},
    {"out", 'o', TEXT("PATH"), " train report export table figures ",
     "folder of the run (train), of all runs (table, default runs) or of the figures (default: this one), or the file "
     "to write (report, export)"},
    {"model", 0, TEXT("KIND"), " train check split ",
     "for own data: enc, full, per-time, interp, or a baseline, with -per-time or -interp behind its name"},
    {"task", 0, TEXT("KIND"), " check split ",
     "what the labels of own data are: classes, number or labels (several, each true or not); default: as they look"},
    {"preset", 0, TEXT("NAME"), " train table split ",
     "faithful: what the published code does; correct: what the paper says or what is right (default for the paper's "
     "data); best: what goes beyond the paper, where it was found to help (default for own data)"},
    {"epochs", 0, WHOLE("N", 1, 1e6), " train table ", "how many epochs at most"},
    {"epochs", 0, WHOLE("N", 1, 1000), " bench ", "how many epochs to measure (bench, default 3)"},
    {"resume", 0, FLAG, " train ",
     "go on from RUN/last.safetensors, to the same bits as a run that was never interrupted"},
    {"budget", 0, TEXT("TIME"), " train table ",
     "look for what nobody has given (model, time origin, frequencies, statistics, values, summaries, sizes, rate, "
     "regularisation) on the validation records for this long (90s, 10m, 2h) or in so many trials (27trials), and "
     "train "
     "the best to its end (train); make missing runs for this long (table)"},
    {"small", 0, FLAG, " train ", "a model for a common board: --flash 128k --ram 20k"},
    {"flash", 0, TEXT("SIZE"), " train ",
     "take sizes of the model that fit, in int8 and with the code, into a board's flash of this many bytes (128k, 1m)"},
    {"ram", 0, TEXT("SIZE"), " train ", "the same for the board's RAM"},
    {"only", 0, TEXT("ROWS"), " table ",
     "rows (gru-d), data sets (physionet; activity-people: split by person) or both (gru-d/physionet), between commas"},
    {"seeds", 0, TEXT("LIST"), " table ", "seeds to run and to count (default 0,1,2 to run, all to count)"},
    {"dry-run", 0, FLAG, " table ", "list the commands of the runs that are missing"},
    {"add", 0, TEXT("MODEL"), " table ", "measure a model file on its test records and add its numbers"},
    {"results", 0, TEXT("FILE"), " table ", "file of the results (default results.tsv)"},
    {"markdown", 0, FLAG, " table bench ", "print the tables as Markdown"},
    {"csv", 0, FLAG, " table ", "print a line for each number"},
    {"rows", 0, FLAG, " bench ",
     "every row of the paper's second table, on the data set of --data, one after the other"},
    {"ensemble", 0, WHOLE("N", 1, MTAN_MAX_MEMBERS), " train ",
     "train this many models, with seeds from --seed, in RUN/member-0, ...; best.safetensors is their average"},
    {"ensemble", 0, FLAG, " cv ",
     "the models of the folds as one, FOLDER/best.safetensors, which averages them; so preprocessing is fitted to all "
     "records (--fit all)"},
    {"pretrain", 0, TEXT("DATA"), " train ",
     "first train the encoder to interpolate these records, which need no labels, in RUN/pretrain: mTAND-Enc and "
     "mTAND-Full. "
     "Labelled validation and test records are left out"},
    {"pretrain-epochs", 0, WHOLE("N", 0, 1e6), " train ", "how many epochs of that; 0 (default): by the records"},
    {"batch", 0, WHOLE("N", 1, 1e5), " train ", "records per step"},
    {"lr", 0, NUMBER("R", 1e-12, 1e3), " train ", "learning rate"},
    {"schedule", 0, TEXT("KIND"), " train ",
     "of the learning rate: constant, exponential (--lr-decay) or cosine, which falls until the last epoch"},
    {"lr-decay", 0, NUMBER("R", 0.5, 1), " train ", "the learning rate is multiplied by this at every step; 1: never"},
    {"lr-floor", 0, NUMBER("R", 0, 1), " train ", "share of the learning rate that no schedule goes below"},
    {"warmup", 0, NUMBER("R", 0, 0.9), " train ", "share of all steps in which the learning rate rises from 0"},
    {"decay", 0, NUMBER("R", 0, 100), " train ",
     "weight decay, decoupled as AdamW has it: matrices shrink by this times the learning rate at every step; 0: none"},
    {"average", 0, NUMBER("R", 0, 0.999999), " train ",
     "validate and keep a moving average of the weights, which keeps this share of itself at every step; 0: none"},
    {"kl-weight", 0, NUMBER("R", 0, 1e3), " train ",
     "how much the KL divergence of mTAND-Full's latent state counts in the loss with --kl-anneal 0; 0: not at all"},
    {"optimizer", 0, TEXT("NAME"), " train ", "adam or adamax"},
    {"class-weights", 0, TEXT("WHAT"), " train ",
     "how much a class counts in the loss: none, balanced (rare ones more), or a number for each, between commas"},
    {"clip", 0, NUMBER("R", 0, 1e9), " train ", "largest norm of the gradient; 0: no clipping"},
    {"dropout", 0, NUMBER("R", 0, 0.95), " train ", "share of the classifier's hidden units left out in training"},
    {"thin", 0, NUMBER("R", 0, 0.95), " train ", "share of the observations left out at random in every training step"},
    {"patience", 0, WHOLE("N", 0, 1e6), " train ",
     "stop after this many epochs without a better value of --select; 0: never"},
    {"select", 0, TEXT("WHAT"), " train ",
     "what the best epoch is chosen by on the validation records: loss, auc, accuracy or mse (default: loss, or mse; "
     "auc for classes with --preset best); last: the last epoch is kept"},
    {"refit", 0, TEXT("WHAT"), " train ",
     "what is trained once more, on training and validation records together, for as many epochs and with as many "
     "trees as were best: nothing, trees, or all"},
    {"shuffle", 0, TEXT("YES|NO"), " train ", "new batches every epoch; the published code never shuffles"},
    {"observed", 0, NUMBER("R", 0.05, 1), " train eval ",
     "share of a record's times shown for interpolation; the rest is held out"},
    {"forecast", 0, NUMBER("H", 0, 1e12), " train eval interpolate ",
     "forecast so much time, in the data's unit: train on what lies within it after a time drawn anew for every record "
     "and epoch "
     "(train), measure the last of it in each record (eval), or ten steps of it after the last observation "
     "(interpolate)"},
    {"scale", 0, TEXT("KIND"), " train ",
     "of the values: zscore, minmax, published, none, or times (only times are scaled)"},
    {"fit", 0, TEXT("WHAT"), " train ",
     "which records preprocessing is fitted to, their inputs and the scale of a number: training (default), or all, "
     "which "
     "lets it see what is tested"},
    {"time-scale", 0, NUMBER("R", 0, 1e12), " train ", "times are divided by this; default: the largest training time"},
    {"origin", 0, TEXT("WHERE"), " train predict interpolate stream eval report compare check quantize explain split ",
     "of own data's times: record (the first observation), zero, or auto (default)"},
    {"skip-unknown", 0, FLAG, " predict interpolate eval report compare quantize explain split ",
     "leave out rows of channels that the model does not know, instead of refusing them"},
    {"strict", 0, FLAG, " predict interpolate stream ",
     "exit status 1 where values or times lie far outside of what the model saw in training, which is only told "
     "otherwise"},
    {"positive", 0, TEXT("CLASS"), " train ",
     "the class that the probability of two, the AUC and the AUPRC are about, by name: the second of the model's; "
     "default: "
     "the later name"},
    {"split-seed", 0, WHOLE("N", 0, UINT32_MAX), " train split ",
     "of the split into training, validation and test records; 42 as published"},
    {"by-group", 0, FLAG, " train split ",
     "keep records of one group (person, patient) on one side of the split; own data always does, its groups being the "
     "predictions of one subject"},
    {"groups", 0, TEXT("COLUMN"), " train split ",
     "own data: records with equal values in this column of the events or the labels stay on one side of the split"},
    {"splits", 0, TEXT("FILE"), " train split ",
     "which record is for what: record,part, with train, valid or test; the model file keeps it"},
    {"fold", 0, WHOLE("N", 0, SPLIT_FOLDS_MOST - 1), " train split ",
     "split into folds, balanced by the records' labels, of which this is the test set, from 0 (MIMIC-III always is)"},
    {"folds", 0, WHOLE("N", 2, SPLIT_FOLDS_MOST), " train split ", "how many folds there are (default 5)"},
    {"distributed", 0, FLAG, " train ", "share the work with the other ranks of mpirun (a build by make mpi)"},
    {"split", 0, TEXT("PART"), " predict interpolate eval report compare quantize explain ",
     "train, valid, test or all; default: test (quantize: valid; predict and interpolate: all, of any data)"},
    {"type", 0, TEXT("TYPE"), " quantize ", "of the matrices: int8 (default), f16 or bf16"},
    {"bootstrap", 0, WHOLE("N", 0, 1e6), " cv eval compare report explain ",
     "resamples for the 95 % intervals; 0: none (default 1000)"},
    {"by", 0, TEXT("COLUMN"), " eval report ", "metrics by subgroup too: by this column of the labels' file"},
    {"card", 0, FLAG, " report ",
     "a model card instead of the page: Markdown under front matter that the Hugging Face Hub reads"},
    {"channels", 0, FLAG, " explain ", "what the metric loses without each channel, instead of single observations"},
    {"over-time", 0, FLAG, " explain ", "the prediction after each time of a record, instead of single observations"},
    {"at", 0, TEXT("A:B:STEP"), " interpolate ", "times to interpolate at, in the data's unit"},
    {"every", 0, TEXT("WHEN"), " stream ",
     "print after every line (default), on request alone, or when a record has moved on by this time"},
    {"window", 0, NUMBER("TIME", 0, 1e12), " stream ",
     "forget what is older than this before the record's latest time"},
    {"keep", 0, WHOLE("N", 1, 1 << 20), " stream ",
     "most observations that a record holds, for --window and to put lines that come late in their place (default "
     "10000)"},
    {"records", 0, WHOLE("N", 1, INT32_MAX), " stream ", "most records at once (stream, default 10000)"},
    {"records", 0, WHOLE("N", 1, 1e6), " bench ", "records to train on in an epoch, whose time is scaled (bench)"},
    {"predict", 0, TEXT("CARD"), " bench ",
     "count instead of measuring, for titanx (both), titanx-maxwell or titanx-pascal"},
    {"samples", 0, WHOLE("N", 0, 10000), " predict interpolate stream eval ",
     "samples of the latent state; 0: its mean; default: the model's own number (curves of a model with --variance "
     "fixed: 20, as their sd is that of the samples)"},
    {"kind", 0, TEXT("KIND"), " check ", "physionet, activity, mimic3 or own; default: by what is there"},
    {"recipe", 0, TEXT("NAME"), " convert ", "the named configuration that the checkpoint belongs to"},
    {"stats-from", 0, TEXT("DATA"), " convert ", "compute the preprocessing from this data, as `mtan train` would"},
    {"events", 0, WHOLE("N", 1, 1 << 24), " inspect ",
     "most observations of a record, for the memory estimate (inspect, default 1500)"},
    {"events", 0, WHOLE("N", 1, 1e6), " export ",
     "most observations of a record that the header has memory for (export, default 1500)"},
    {"times", 0, WHOLE("N", 1, 1 << 24), " inspect ",
     "most time stamps of a record, for the memory estimate (inspect, default 200)"},
    {"times", 0, WHOLE("N", 1, 1e6), " export ",
     "most time stamps of a record that the header has memory for (export, default 200)"},
    {"c", 0, FLAG, " export ", "as a C header"},
    {"name", 0, TEXT("PREFIX"), " export ", "prefix of the names in the header (default model)"},
    {"full", 0, FLAG, " inspect ", "print long metadata whole"},
    {"tolerance", 0, NUMBER("X", 0, INFINITY), " compare ", "differences up to this count as equal"},
    {"seed", 0, WHOLE("N", 0, UINT32_MAX), " train eval predict interpolate stream report compare quantize explain ",
     "of initial weights, noise, shuffling (train) and of samples (default 0)"},
    {"threads", 0, WHOLE("N", 1, MTAN_POOL_MOST), " train report check table bench " MODEL_USERS,
     "default: the CPUs, at most 8; changes the time and nothing else"},
    {"backend", 0, TEXT("NAME"), " train table figures bench " MODEL_USERS,
     "scalar, avx2, cuda, ...: `mtan backends` lists them; default: the fastest CPU one"},
    {"json", 0, FLAG,
     " eval predict interpolate stream inspect compare check selftest backends table bench explain cv ",
     "output for programs"},
    {"quiet", 'q', FLAG, "*", "no progress, no remarks; errors only"},
    {"help", 'h', FLAG, "*", "help on the command"},
};
enum { TABLE = sizeof table / sizeof table[0] };

int option_first_of_baselines(void) {
    int shared = 0;
    while (mtan_config_key(shared)) shared++;
    return TABLE + shared;
}

const char *option_key(int i) {
    const int first = option_first_of_baselines();
    return i < TABLE ? NULL : i < first ? mtan_config_key(i - TABLE) : baseline_key(i - first);
}

const option *option_at(int i) {
    return i < TABLE ? &table[i] : NULL;
}

const char *option_name(int i, char name[64]) {
    const char *key = i < TABLE ? NULL : option_key(i);
    return i < TABLE ? table[i].name : key ? setting_option(key, name) : NULL;
}

static int word_in(const char *words, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += n)
        if (at > words && at[-1] == ' ' && at[n] == ' ') return 1;
    return 0;
}

/* These follow from other options or from the data: the kind of model from NAME, --model and --preset, the channels and
 * classes from the data. */
int option_is_fixed(const char *name) {
    return word_in(" kind classify channels classes faithful ", name);
}

/* `mtan cv` trains, so it takes the options of `mtan train`, except those that it sets itself and those of several
 * processes. */
static int of_training(const option *x, const command *c) {
    return (c->traits & COMMAND_TRAINS) && word_in(x->commands, "train") &&
           !word_in(" fold splits resume distributed ensemble ", x->name);
}

int option_belongs(int i, const command *c) {
    char name[64];
    if (i < TABLE)
        return table[i].commands[0] == '*' || word_in(table[i].commands, c->name) || of_training(&table[i], c);
    if (option_is_fixed(option_name(i, name))) return 0;
    return (c->traits & COMMAND_TRAINS) || ((c->traits & COMMAND_SETTINGS) && i < option_first_of_baselines());
}

int option_find(const command *c, const char *name, size_t length) {
    char buffer[64];
    const char *candidate;
    for (int i = 0; i < OPTIONS_MOST && (candidate = option_name(i, buffer)) != NULL; i++)
        if (option_belongs(i, c) && strlen(candidate) == length && memcmp(candidate, name, length) == 0) return i;
    return -1;
}

const option *option_of(const char *command_name, const char *name) {
    const command *c = command_named(command_name);
    const int i = c ? option_find(c, name, strlen(name)) : -1;
    return i < 0 ? NULL : option_at(i);
}
