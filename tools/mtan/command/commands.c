/* The table of commands, and the commands that need no file of their own. */
#include <stdio.h>

#include "../../../simd/mtan_simd.h"
#include "../../data/memory.h"
#include "commands.h"
#include "completion.h"
#include "help.h"
#include "../run/device.h"
#include "../base/json_text.h"

static int command_help(const options *o) {
    if (o->arguments == 0) return help_short(stdout), DONE;
    return help_command(stdout, o->argument[0]) ? DONE : BAD_USE;
}

static int command_man(const options *o) {
    (void)o;
    return help_man(stdout), DONE;
}

static int command_completion(const options *o) {
    const char *shell = o->arguments ? o->argument[0] : "bash";
    return complete_for(stdout, shell) ? DONE : complain("no completion for '%s': bash, zsh or fish", shell);
}

/* device: the GPU, or null */
static void show_backend(const mtan_backend_choice *c, const char *device, int json, int first) {
    if (json) {
        printf("%s{\"name\": \"%s\", \"runs\": %s, \"fused\": %s, \"reason\": ", first ? "[" : ",\n ", c->name,
               c->backend ? "true" : "false", c->backend && mtan_backend_fused(c->backend) ? "true" : "false");
        json_string(stdout, c->reason ? c->reason : ""), fputs(", \"device\": ", stdout);
        json_string(stdout, device ? device : ""), fputs("}", stdout);
    } else if (c->backend)
        printf("%-12s runs here%s%s%s%s\n", c->name, mtan_backend_fused(c->backend) ? ", fused multiply-add" : "",
               c->backend == mtan_backend_best() ? ", the default" : "", device ? ": " : "", device ? device : "");
    else printf("%-12s %s\n", c->name, c->reason);
}

int command_backends(const options *o) {
    const int json = option_given(o, "json");
    char text[DEVICE_TEXT];
    mtan_backend_choice c;
    for (int i = 0; mtan_backend_list(i, &c); i++) show_backend(&c, NULL, json, i == 0);
    c.name = "cuda";
    c.backend = device_open(text);
    c.reason = c.backend ? NULL : text;
    show_backend(&c, c.backend ? text : NULL, json, 0);
    if (json) puts("]");
    return DONE;
}

typedef struct call {
    const options *options;
    int status;
} call;

static void run_call(void *argument) {
    call *c = argument;
    c->status = c->options->command->run(c->options);
}

int command_call(const options *o) {
    call c = {o, BAD_USE};
    const size_t missing = memory_try(run_call, &c);
    return missing ? complain("out of memory: %zu bytes were not to be had", missing) : c.status;
}

const command commands[] = {
    {"train", command_train, "NAME --data PATH --out RUN [--option VALUE]...",
     "train a model and keep the best by validation",
     "NAME is one of toy-interp, physionet-interp, physionet-full, physionet-enc,\n"
     "mimic3-full, mimic3-enc, activity-enc, activity-full (the configurations of\n"
     "the published code); or physionet, mimic3 or activity, a dash and one of the\n"
     "paper's baselines: rnn-impute, rnn-dt, rnn-decay, gru-d, phased-lstm,\n"
     "ip-nets, seft, rnn-vae, ode-rnn, l-ode-rnn, l-ode-ode; with -interp behind\n"
     "rnn-vae, l-ode-rnn and l-ode-ode for interpolation, and toy-l-ode-ode; or own:\n"
     "a CSV of events with the columns record,time,channel,value in any order, or\n"
     "record,time and a column per channel, and labels record,label or\n"
     "record,time,label, or those of MEDS, whose prediction_time cuts what was observed later. RUN gets "
     "best.safetensors,\n"
     "last.safetensors, log.csv and steps.csv. SIGINT saves and exits 130; --resume\n"
     "goes on.\n"
     "\n"
     "  mtan train physionet-enc --data physionet2012 --preset faithful --out run\n"
     "  mtan train own --model enc --data events.csv --labels labels.csv --out run\n"
     "  mtan train own --data events.csv --labels labels.csv --out run --budget 10m\n"
     "  mtan train physionet-gru-d --data physionet2012 --out run --enc-hidden 64\n"
     "  mtan train physionet-enc --data physionet2012 --out run --resume\n",
     1, 1, COMMAND_TRAINS | COMMAND_ON_DEVICE | COMMAND_WRITES},
    {"eval", command_eval, "MODEL --data PATH [--split test]", "measure a model on the records that training left out",
     "AUC, AUPRC, accuracy, log-loss and Brier score with 95 % intervals, calibration\n"
     "error, and a table per class; for models that interpolate the mean\n"
     "squared error over all points and over the points held out when 50 to 90 %\n"
     "of the times are observed, and of the held-out points how many lie in their\n"
     "bands of 50, 80 and 95 %, by the time to the nearest observation of their\n"
     "channel that was shown. Brier score: as scikit-learn's, the mean squared\n"
     "distance from the probabilities to the truth, half of it for two classes.\n"
     "Calibration error: of the largest class's probability, in 15 even bins, the\n"
     "mean over records of |share that is right - probability|. It has no interval:\n"
     "resampling adds noise to every bin, which counts as error.\n"
     "Beside these what needs no model: the largest class and logistic regression on\n"
     "summaries, or the mean, the last value and straight lines, and by how much the\n"
     "model is better than the best of them. Of two classes also slope and intercept\n"
     "of a logistic recalibration, and for some thresholds whom who acts above them\n"
     "finds and troubles; net benefit: true positives minus false ones at the odds of\n"
     "the threshold, by row.\n"
     "\n"
     "  mtan eval run/best.safetensors --data physionet2012 --json\n",
     1, 1, COMMAND_ON_DEVICE},
    {"explain", command_explain, "MODEL --data PATH [--channels | --over-time]",
     "which observations and channels a prediction rests on",
     "For every observation of every record, as CSV: class (the positive one of two,\n"
     "else the likeliest), log_odds, what the model gives it, and change, by how much\n"
     "the observation raises them: with all, minus with all but this one. Exact: the\n"
     "model is asked without each. Of several labels a row for each; of a number\n"
     "predicted, in its unit, in place of log_odds. --over-time: what is predicted\n"
     "after each time from what was observed by then. --channels: by how much the AUC\n"
     "(accuracy, of more than two classes; R2, of a number) falls when a channel's\n"
     "series are exchanged between the records at random, with 95 % intervals, the\n"
     "most important channel first.\n"
     "\n"
     "  mtan explain run/best.safetensors --data events.csv --labels labels.csv\n"
     "  mtan explain run/best.safetensors --data physionet2012 --channels --json\n",
     1, 1, 0},
    {"predict", command_predict, "MODEL --data PATH|-", "class probabilities of records, or of their times",
     "Columns: record, time where the model classifies times, p_CLASS of each class\n"
     "(p_sick,p_well; p0,p1 where the classes have no names) and predicted, the\n"
     "likeliest class; --json has the same names. A file of\n"
     "events, or standard input, is read as a stream, in constant memory, and comes\n"
     "out in the order in which it came in; any model takes it, with the model's\n"
     "channels and units. A record that cannot be read, or whose result is\n"
     "not finite, is reported and left out; the exit status is then 1. --split predicts a part of the data that the "
     "model\n"
     "was trained with; --labels those records that labels with a prediction_time\n"
     "name.\n"
     "\n"
     "A name that a spreadsheet would compute, for it begins with = + - or @ and is\n"
     "no number, has an apostrophe in front, as has one that begins with an\n"
     "apostrophe: take one away to get the name. -5 stays -5; --json has the names\n"
     "as they are.\n"
     "\n"
     "  mtan predict run/best.safetensors --data new.csv > scores.csv\n"
     "  mtan predict run/best.safetensors --data physionet2012 --split test\n"
     "  cat new.csv | mtan predict run/best.safetensors --data - --json\n",
     1, 1, COMMAND_ON_DEVICE},
    {"interpolate", command_interpolate, "MODEL --data PATH|- --at A:B:STEP | --forecast H",
     "values at any times, with their spread",
     "Columns: record,time,channel,mean,sd,extrapolated; mean and sd in the data's own\n"
     "units. A model trained with --variance learned, as --preset best does for own\n"
     "data, gives the numbers that `mtan eval` measures: sd is that of an observation,\n"
     "noise included, and about 95 % of what is observed lies within 2 sd. Of any\n"
     "other model they are the mean and the standard deviation of the curves of 20\n"
     "samples of the latent state, or of --samples; the noise of an observation is not\n"
     "in sd.\n"
     "extrapolated is 1 before a record's first observation and after its last.\n"
     "\n"
     "  mtan interpolate run/best.safetensors --data new.csv --at 0:48:0.5\n"
     "  mtan interpolate run/best.safetensors --data new.csv --forecast 6\n",
     1, 1, COMMAND_ON_DEVICE},
    {"stream", command_stream, "MODEL [--data PATH|-] [--every line|request|TIME]",
     "predictions while observations arrive, many records at once",
     "Reads lines record,time,channel,value from standard input, records mixed and\n"
     "in any order, and prints what `mtan predict` prints after each. record,time,,\n"
     "and record,predict ask for a prediction, record,end lets a record go. A record\n"
     "holds at most --keep observations, to put lines that come late in their place;\n"
     "one with more holds none, and a late line may then change its predictions. A\n"
     "line that cannot be used is reported and changes nothing; the exit status is\n"
     "then 1.\n"
     "\n"
     "  tail -f ward.csv | mtan stream run/best.safetensors\n"
     "  mtan stream run/best.safetensors --every request --json < ward.csv\n"
     "  mtan stream run/best.safetensors --window 24 --keep 2000 < ward.csv\n",
     1, 1, 0},
    {"export", command_export, "MODEL --c -o FILE.h", "a model as one C header, for a board without files",
     "Const arrays of the weights (the same bits), settings, names, preprocessing\n"
     "and a record with its expected output. C99 and C++. Says what it needs on a\n"
     "board. mTAND-Enc with a class per record is run by mtan_small_classify, in a\n"
     "few kilobytes, and keeps int8 matrices; other models by a predictor.\n"
     "\n"
     "  mtan train own --model enc --small --data events.csv --labels labels.csv --out run\n"
     "  mtan quantize run/best.safetensors int8.safetensors\n"
     "  mtan export int8.safetensors --c -o model.h\n"
     "  mtan export curves/best.safetensors --c -o curves.h --events 300 --times 80\n",
     1, 1, COMMAND_WRITES},
    {"report", command_report, "RUN --data PATH -o FILE",
     "a page with curves, calibration, interpolations and attention",
     "One HTML file that needs nothing else; with --card a model card in Markdown,\n"
     "by default README.md beside the model.\n"
     "\n"
     "  mtan report run --data physionet2012 -o report.html\n"
     "  mtan report run --data physionet2012 --card\n",
     1, 1, COMMAND_WRITES},
    {"table", command_table, "[1 2 3 4 5] [--data FOLDER] [--budget TIME]", "the paper's tables beside ours",
     "Prints the paper's numbers, those of its own code where it was run here, and\n"
     "ours by preset, from the lines of --results: mean and standard deviation over\n"
     "the seeds, and the 95 % interval over the test records. A row that differs from\n"
     "the paper by more than two standard errors has a footnote. With --budget the\n"
     "runs that are missing are trained for this long (minutes, or 90s, 10m, 2h),\n"
     "measured and added; a run that is cut short goes on the next time.\n"
     "--data is a folder that holds physionet2012, activity and mimic3. --add takes\n"
     "in a model that was trained by hand.\n"
     "\n"
     "  mtan table 2 --data data --dry-run\n"
     "  mtan table 2 --data data --only gru-d,mtand-enc/physionet --budget 60\n"
     "  mtan table --add run/best.safetensors --data data\n",
     0, 5, COMMAND_ON_DEVICE},
    {"figures", command_figures, "MODEL [MODEL ...] [-o FOLDER]", "the paper's figures of the synthetic set, as SVG",
     "Three test records: interpolation.svg has the truth and what each model makes\n"
     "of the points shown, by 100 samples of the posterior, a row each in the order\n"
     "given; attention.svg has the attention of the first model of mTAN's.\n"
     "\n"
     "  mtan train toy-interp --latent 20 --out mtan\n"
     "  mtan train toy-l-ode-ode --latent 20 --out ode\n"
     "  mtan figures mtan/best.safetensors ode/best.safetensors -o figures\n",
     1, FIGURES_MODELS_MOST, 0},
    {"selftest", command_selftest, "MODEL", "prove a model on this machine by the record that its file keeps", "", 1, 1,
     COMMAND_ON_DEVICE},
    {"inspect", command_inspect, "FILE", "tensors, metadata, sizes and memory need of a model file", "", 1, 1, 0},
    {"compare", command_compare, "A B [--data PATH]",
     "differences of two models, tensor by tensor and in their metrics",
     "Exit status 0: the same bits, or within --tolerance. 1: they differ.\n", 2, 2, 0},
    {"convert", command_convert, "FROM TO", "checkpoints of the published code to safetensors, and back",
     "Nothing in a checkpoint is executed: what is not a tensor, a number, a text\n"
     "or a container of them is refused. What the tensors do not tell (reference\n"
     "points, heads of mTAND-Enc, the loss) is what the settings below say, else the\n"
     "checkpoint's args, else --recipe's. Tensors of float64 are narrowed, and a\n"
     "remark says how much that changes. A converted model has no preprocessing,\n"
     "unless --stats-from computes it from data.\n"
     "\n"
     "  mtan convert checkpoint.h5 model.safetensors --stats-from physionet2012\n"
     "  mtan convert weights.pt model.safetensors --ref-points 64 --enc-heads 2\n"
     "  mtan convert model.safetensors checkpoint.pt\n",
     2, 2, COMMAND_SETTINGS | COMMAND_WRITES},
    {"quantize", command_quantize, "MODEL OUT [--type int8|f16|bf16] [--data PATH]",
     "a smaller model file, and what that changes",
     "int8 keeps every matrix as whole numbers with a scale to a row, a quarter of\n"
     "the size, and predicts with products of integers; f16 and bf16 are half the\n"
     "size and change the file alone. With --data the AUC before and after, on the\n"
     "validation records; exit status 1 when it falls by more than 0.002.\n"
     "\n"
     "  mtan quantize run/best.safetensors small.safetensors --data physionet2012\n",
     2, 2, COMMAND_WRITES},
    {"split", command_split, "MODEL --data PATH | DATA [--labels FILE]",
     "which record is for training, validation and test",
     "Columns: record,part. Of a model's file what it was trained with, of data what\n"
     "`mtan train` would do with these options. The output can be changed and given to\n"
     "`mtan train --splits`.\n"
     "\n"
     "  mtan split run/best.safetensors --data events.csv\n"
     "  mtan split events.csv --labels labels.csv --groups ward > splits.csv\n",
     1, 1, 0},
    {"cv", command_cv, "NAME --data PATH --out FOLDER [--folds 5]",
     "cross-validation: a model for each fold, measured on it",
     "Takes the options of `mtan train` and trains in FOLDER/fold0, FOLDER/fold1 and so\n"
     "on, each without its fold; what was interrupted goes on. Then prints each metric's\n"
     "mean and standard deviation over the folds, and its value with a 95 % interval over\n"
     "all records together, each predicted by the model that had not seen it:\n"
     "FOLDER/predictions.csv has these. Folds are balanced by class; --groups COLUMN\n"
     "keeps groups together. --ensemble joins the models in FOLDER/best.safetensors. Its\n"
     "members must share their preprocessing, which then sees the inputs of all records\n"
     "(and the mean of a number), those of the fold that is measured too.\n"
     "\n"
     "  mtan cv own --model enc --data events.csv --labels labels.csv --out cv\n"
     "  mtan cv own --model enc --data events.csv --labels labels.csv --out cv --folds 10\n",
     1, 1, COMMAND_TRAINS | COMMAND_ON_DEVICE},
    {"check", command_check, "DATA [--labels FILE]", "profile a data set before training on it",
     "Problems by line, sparsity, gaps, leakage between the splits, suggested\n"
     "settings, expected time per epoch and memory.\n"
     "\n"
     "  mtan check events.csv --labels labels.csv\n",
     1, 1, 0},
    {"bench", command_bench, "[NAME...] [--rows] [--backend NAME] [--records N] [--markdown] [--predict CARD]",
     "seconds per epoch here, in the paper, and predicted for its card",
     "Trains NAME (default: physionet-enc and physionet-full) as published, on --data\n"
     "or on made records of PhysioNet's sizes, and prints the median time of an epoch,\n"
     "without validation, beside the paper's and beside a prediction for both cards\n"
     "called Titan X. The prediction is a roofline: launches, flops and bytes of the\n"
     "backend cuda, counted, and a few assumptions; it was never measured on a card.\n"
     "With --predict nothing is trained: the counts and times of each kind of kernel\n"
     "and all that is assumed, within seconds, on any machine. --rows with --threads 1\n"
     "measures every row of the paper's second table on PhysioNet or Human Activity in\n"
     "one sitting of at most ten minutes, and says where the machine had other work\n"
     "meanwhile; --records makes it shorter: the time is scaled.\n"
     "\n"
     "  mtan bench --data physionet2012 --backend cuda\n"
     "  mtan bench --rows --data physionet2012 --threads 1\n"
     "  mtan bench --rows --data activity --threads 1 --records 1280 --markdown\n"
     "  mtan bench physionet-enc --records 512 --epochs 1\n"
     "  mtan bench --predict titanx\n",
     0, ARGUMENTS_MOST, COMMAND_ON_DEVICE},
    {"backends", command_backends, "", "which kernels can run on this machine", "", 0, 0, 0},
    {"help", command_help, "[COMMAND]", "this list, or all about a command", "", 0, 1, 0},
    {"man", command_man, "", "the man page", "  mtan man | man -l -\n", 0, 0, 0},
    {"completion", command_completion, "[bash|zsh|fish]", "completion for a shell, bash if none is named",
     "  eval \"$(mtan completion)\"\n"
     "  mtan completion fish > ~/.config/fish/completions/mtan.fish\n",
     0, 1, 0},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, 0}};
