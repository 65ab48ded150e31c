/* Checkpoints of PyTorch: every tensor of files that PyTorch wrote comes out exactly; what is converted has the settings of the
 * model that was saved and goes back to the same bytes; hostile and damaged files are refused, never followed. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef MTAN_ZLIB
#include <zlib.h>
#endif

#include "check.h"
#include "command_line.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/torch/convert.h"
#include "../../tools/mtan/torch/tensor_set.h"
#include "../../tools/mtan/torch/torchfile.h"

/* ---- golden files ---- */

typedef struct pair {
    uint8_t *blob, *expected_blob; /* guarded */
    size_t bytes;
    torchfile torch;
    mtan_file expected;
} pair;

static int open_pair(pair *p, const char *name) {
    char path[64], error[512];
    size_t n = 0;
    snprintf(path, sizeof path, "torch-%s.pt", name);
    p->blob = slurp_golden(path, &p->bytes);
    snprintf(path, sizeof path, "torch-%s.safetensors", name);
    p->expected_blob = slurp_golden(path, &n);
    if (!p->blob || !p->expected_blob || mtan_file_open(&p->expected, p->expected_blob, n) != MTAN_OK) return 0;
    if (torch_open(&p->torch, name, p->blob, p->bytes, error)) return 1;
    printf("  %s\n", error);
    return 0;
}

static int close_pair(pair *p) {
    torch_close(&p->torch);
    return guard_free(p->blob) & guard_free(p->expected_blob);
}

/* A number of the expected file's metadata, or -1. */
static int32_t expected_number(const pair *p, const char *key) {
    char text[32];
    return mtan_file_metadata(&p->expected, key, text, sizeof text, NULL) == MTAN_OK ? atoi(text) : -1;
}

/* n reals against a tensor of the expected file, to the bit. */
static int same_reals(const pair *p, const char *name, const mtan_real *got, size_t n) {
    mtan_tensor_view view;
    if (mtan_file_tensor(&p->expected, name, &view) != MTAN_OK || view.count != n) return 0;
    mtan_real *expected = guard_alloc(n * sizeof *expected);
    const int read = mtan_view_read(&view, expected, n) == MTAN_OK;
    const int same = read && check_same(name, got, expected, n * sizeof *got);
    return guard_free(expected) && same;
}

/* Every setting that the file names is the config's. */
static int same_settings(const pair *p, const mtan_config *c, size_t *checked) {
    for (int32_t i = 0; mtan_config_key(i); i++) {
        char expected[64], got[64];
        const char *key = mtan_config_key(i);
        if (mtan_file_metadata(&p->expected, key, expected, sizeof expected, NULL) != MTAN_OK) continue;
        if (mtan_config_get(c, key, got, sizeof got) != MTAN_OK || strcmp(got, expected) != 0)
            return printf("  %s is %s, expected %s\n", key, got, expected), 0;
        ++*checked;
    }
    return 1;
}

static int same_params(const pair *p, const converted *m) {
    for (int32_t i = 0; i < mtan_param_count(&m->model.config); i++) {
        mtan_param param;
        char name[64];
        mtan_param_at(&m->model.config, i, &param);
        const size_t n = (size_t)param.rows * (size_t)param.cols;
        if (!same_reals(p, param.name, m->weights + param.offset, n)) return 0;
        snprintf(name, sizeof name, "moment1.%s", param.name);
        if (m->moment1 && !same_reals(p, name, m->moment1 + param.offset, n)) return 0;
        snprintf(name, sizeof name, "moment2.%s", param.name);
        if (m->moment2 && !same_reals(p, name, m->moment2 + param.offset, n)) return 0;
    }
    return 1;
}

TEST a_checkpoint_becomes_the_model_that_was_saved(const char *name) {
    pair p;
    converted m;
    char error[512];
    size_t settings = 0;
    ASSERT(open_pair(&p, name));
    ASSERT(convert_from_torch(&m, &p.torch, NULL, error));
    ASSERT(same_settings(&p, &m.model.config, &settings));
    ASSERT(settings >= 10);
    ASSERT(same_params(&p, &m));
    const size_t per_param = m.moment1 ? 3 : 1;
    ASSERT_EQ(p.expected.tensors, per_param * (size_t)mtan_param_count(&m.model.config));
    ASSERT_EQ_FMT(expected_number(&p, "epoch"), (int32_t)m.epoch, "%d");
    ASSERT_EQ_FMT(expected_number(&p, "step"), (int32_t)m.step, "%d");
    ASSERT_EQ(m.step > 0, m.moment1 != NULL);
    converted_free(&m);
    ASSERT(close_pair(&p));
    PASS();
}

/* Every type and layout, through the tree; the scalar's expectation has shape (1). */
TEST all_types_and_layouts_are_read(void) {
    pair p;
    uint8_t *scratch = NULL;
    size_t gathered = 0;
    ASSERT(open_pair(&p, "types"));
    const int32_t tensors = pickle_get(&p.torch.pickle, p.torch.root, "tensors");
    ASSERT_EQ(p.expected.tensors, 16);
    for (size_t i = 0; i < p.expected.tensors; i++) {
        mtan_tensor_view expected, got;
        char name[32];
        double wanted[32], x[32];
        int64_t whole[32];
        mtan_file_tensor_at(&p.expected, i, &expected);
        mtan_text_decode(&expected.name, name, sizeof name, NULL);
        const int32_t value = pickle_get(&p.torch.pickle, tensors, name);
        ASSERT(value >= 0 && p.torch.pickle.values[value].kind == PICKLE_TENSOR);
        torch_view(&p.torch, &p.torch.pickle.tensors[p.torch.pickle.values[value].whole], &got, &scratch);
        gathered += scratch != NULL && got.data == scratch;
        ASSERT_EQ(expected.count, got.count);
        ASSERT(got.rank == 0 || (got.rank == expected.rank && !memcmp(got.shape, expected.shape, sizeof got.shape)));
        ASSERT_EQ(MTAN_OK, mtan_view_read_f64(&expected, wanted, expected.count));
        if (got.dtype == MTAN_DTYPE_I64) {
            ASSERT_EQ(MTAN_OK, mtan_view_read_raw(&got, MTAN_DTYPE_I64, whole, got.count));
            for (size_t k = 0; k < got.count; k++) x[k] = (double)whole[k];
        } else if (mtan_view_read_f64(&got, x, got.count) != MTAN_OK) {
            ASSERT(got.bytes <= sizeof whole);
            for (size_t k = 0; k < got.count; k++) { /* small whole numbers, by the byte */
                const size_t item = got.bytes / got.count;
                uint32_t code = 0;
                for (size_t b = item; b-- > 0;) code = code << 8 | got.data[k * item + b];
                x[k] = got.dtype == MTAN_DTYPE_I8    ? (int8_t)code
                       : got.dtype == MTAN_DTYPE_I16 ? (int16_t)code
                                                     : (int32_t)code;
            }
        }
        if (got.count) ASSERT(check_same(name, x, wanted, got.count * sizeof *x));
    }
    ASSERT_EQ(3, gathered); /* transposed, sliced, diagonal */
    arrfree(scratch);
    ASSERT(close_pair(&p));
    PASS();
}

TEST plain_values_are_read(void) {
    pair p;
    ASSERT(open_pair(&p, "types"));
    const pickle *k = &p.torch.pickle;
    const int32_t plain = pickle_get(k, p.torch.root, "plain");
    const pickle_value *v = &k->values[pickle_get(k, plain, "text")];
    ASSERT(v->kind == PICKLE_TEXT && v->length == 10 && memcmp(v->text, "na\xc3\xafve \xe2\x98\x83", 10) == 0);
    v = &k->values[pickle_get(k, plain, "long_int")];
    ASSERT(v->kind == PICKLE_INT && v->whole == -((int64_t)1 << 40));
    v = &k->values[pickle_get(k, plain, "wide")];
    ASSERT(v->kind == PICKLE_INT && v->whole == (int64_t)1 << 31);
    ASSERT_EQ(-3, k->values[pickle_get(k, plain, "negative")].whole);
    v = &k->values[pickle_get(k, plain, "real")];
    const double tenth = 0.1;
    ASSERT(v->kind == PICKLE_FLOAT && memcmp(&v->real, &tenth, sizeof tenth) == 0);
    ASSERT_EQ(PICKLE_NONE, k->values[pickle_get(k, plain, "nothing")].kind);
    v = &k->values[pickle_get(k, plain, "flags")];
    ASSERT(v->kind == PICKLE_TUPLE && arrlen(v->items) == 2 && k->values[v->items[0]].whole == 1);
    ASSERT_EQ(-1, pickle_get(k, plain, "absent"));
    ASSERT(close_pair(&p));
    PASS();
}

/* ---- there and back ---- */

static char folder[64];

static void open_folder(void) {
    strcpy(folder, "build/torchfile-XXXXXX");
    if (!mkdtemp(folder)) perror("mtan: build"), exit(2);
}

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* A converted model as a model file, and that as a checkpoint. */
static uint8_t *back_to_torch(const converted *m, char *error) {
    mtan_trainer trainer;
    prep none;
    bundle b;
    mtan_file_pair epoch = {"mtan.torch.epoch", "10"}, *pairs = &epoch;
    memset(&trainer, 0, sizeof trainer);
    memset(&none, 0, sizeof none);
    trainer.moment1 = m->moment1, trainer.moment2 = m->moment2, trainer.step = m->step;
    if (!bundle_write(in_folder("m"), &m->model, m->moment1 ? &trainer : NULL, &none, pairs, 1, error)) return NULL;
    const int good = bundle_read(&b, in_folder("m"), error);
    remove(in_folder("m"));
    uint8_t *file = good ? convert_to_torch(&b) : NULL;
    if (good) bundle_free(&b);
    return file;
}

/* The second checkpoint, made from the first, has the same bytes, and what it holds is still what PyTorch saved. */
TEST a_model_goes_back_to_a_checkpoint(const char *name) {
    pair p;
    converted m, again;
    torchfile torch;
    char error[512] = "";
    open_folder();
    ASSERT(open_pair(&p, name));
    ASSERT(convert_from_torch(&m, &p.torch, NULL, error));
    uint8_t *first = back_to_torch(&m, error);
    ASSERT(first);
    ASSERT(torch_open(&torch, "first", first, arrlenu(first), error));
    ASSERT(convert_from_torch(&again, &torch, NULL, error));
    ASSERT(same_params(&p, &again));
    ASSERT_EQ(0, arrlen(again.remarks)); /* nothing is left to assume */
    ASSERT_EQ(10, again.epoch);
    ASSERT_EQ(m.step, again.step);
    uint8_t *second = back_to_torch(&again, error);
    ASSERT_EQ(arrlenu(first), arrlenu(second));
    ASSERT(check_same(name, second, first, arrlenu(first)));
    converted_free(&m), converted_free(&again);
    torch_close(&torch);
    arrfree(first);
    arrfree(second);
    rmdir(folder);
    ASSERT(close_pair(&p));
    PASS();
}

TEST what_the_user_says_goes_before_args(void) {
    pair p;
    converted m;
    char error[512];
    mtan_file_pair points = {"ref_points", "9"}, heads = {"enc_heads", "1"}, wrong = {"enc_heads", "4"};
    convert_given given = {NULL, NULL, NULL};
    mtan_config toy;
    ASSERT(open_pair(&p, "enc")); /* saved with two heads and three channels */
    arrput(given.settings, points);
    arrput(given.settings, heads);
    ASSERT(convert_from_torch(&m, &p.torch, &given, error));
    ASSERT_EQ(9, m.model.config.ref_points);
    ASSERT_EQ(6, m.model.config.channels);
    ASSERT_EQ(0, arrlen(m.remarks));
    converted_free(&m);
    given.settings[1] = wrong;
    ASSERT_FALSE(convert_from_torch(&m, &p.torch, &given, error));
    ASSERT(strstr(error, "attention heads"));
    given.recipe = "toy-interp", arrsetlen(given.settings, 0);
    ASSERT_FALSE(convert_from_torch(&m, &p.torch, &given, error));
    ASSERT(strstr(error, "there is no recipe toy-interp"));
    ASSERT_EQ(MTAN_OK, mtan_config_init(&toy, MTAN_FULL, MTAN_CLASSIFY_NONE, 1, 0));
    given.published = &toy;
    ASSERT_FALSE(convert_from_torch(&m, &p.torch, &given, error));
    ASSERT(strstr(error, "not those of toy-interp"));
    arrfree(given.settings);
    ASSERT(close_pair(&p));
    PASS();
}

/* Options that a message names are there. */
TEST the_command_takes_settings(void) {
    bundle b;
    char error[512] = "";
    command_open(NULL);
    ASSERT_EQ_FMT(DONE, command_run("convert " MTAN_GOLDEN_DIR "/torch-enc.pt @/m.safetensors"), "%d");
    ASSERT(command_says("err.txt", "assumed 128 reference points, as the published script"));
    ASSERT_EQ_FMT(DONE,
                  command_run("convert " MTAN_GOLDEN_DIR "/torch-enc.pt @/m.safetensors --ref-points 9 --enc-heads 1"),
                  "%d");
    ASSERT(bundle_read(&b, command_path("m.safetensors"), error));
    ASSERT(b.model.config.ref_points == 9 && b.model.config.enc_heads == 1 && b.model.config.channels == 6);
    bundle_free(&b);
    ASSERT_EQ_FMT(BAD_USE, command_run("convert " MTAN_GOLDEN_DIR "/torch-enc.pt @/n.safetensors --rec-solver euler"),
                  "%d");
    ASSERT(command_says("err.txt", "convert: no option --rec-solver"));
    ASSERT_EQ_FMT(DONE, command_run("help convert"), "%d");
    ASSERT(command_says("out.txt", "--ref-points") && command_says("out.txt", "--enc-heads"));
    command_close(NULL);
    PASS();
}

static double file_number(const char *name, const char *key) {
    char error[512] = "";
    double x = NAN;
    bundle b;
    if (!bundle_read(&b, command_path(name), error)) return printf("  BAD %s\n", error), x;
    x = bundle_number(&b, key, NAN);
    bundle_free(&b);
    return x;
}

/* Do the bytes, an stb_ds array, hold the text? */
static int holds(const uint8_t *bytes, const char *text) {
    const size_t n = strlen(text);
    for (size_t i = 0; i + n <= arrlenu(bytes); i++)
        if (memcmp(bytes + i, text, n) == 0) return 1;
    return 0;
}

#define SMALL "--enc-hidden 4 --embed 4 --ref-points 5 --quiet --threads 1 "

/* A checkpoint of PhysioNet's interpolation, trained as no recipe is: --stats-from adds statistics and changes nothing else. */
TEST statistics_leave_the_training_as_it_was(void) {
    char name[64], line[96];
    command_open(NULL);
    for (int set = 0; set < 2; set++)
        for (int i = 0; i < 10; i++) {
            if (set + i == 0) mkdir(command_path("data"), 0777);
            snprintf(name, sizeof name, "data/set-%c", 'a' + set);
            if (i == 0) mkdir(command_path(name), 0777);
            snprintf(name, sizeof name, "data/set-%c/%d.txt", 'a' + set, 1 + 10 * set + i);
            snprintf(line, sizeof line, "Time,Parameter,Value\n00:00,Age,60\n01:36,HR,%d\n08:00,HR,70\n", 60 + i);
            command_append(name, line);
        }
    ASSERT_EQ_FMT(
        DONE,
        command_run("train physionet-interp --preset faithful --data @/data --out @/run --lr 0.0125 --batch 7 "
                    "--epochs 2 --observed 0.75 --seed 4 --latent 2 --dec-hidden 3 --mlp-hidden 3 " SMALL),
        "%d");
    ASSERT_EQ_FMT(DONE, command_run("convert @/run/last.safetensors @/m.pt --quiet"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors --stats-from @/data --quiet"), "%d");
    ASSERT_EQ_FMT(0.0125, file_number("m.safetensors", "mtan.plan.lr"), "%g");
    ASSERT_EQ_FMT(7.0, file_number("m.safetensors", "mtan.plan.batch"), "%g");
    ASSERT_EQ_FMT(2.0, file_number("m.safetensors", "mtan.plan.epochs"), "%g");
    ASSERT_EQ_FMT(4.0, file_number("m.safetensors", "mtan.plan.seed"), "%g");
    ASSERT_EQ_FMT(0.75, file_number("m.safetensors", "mtan.plan.observed-low"), "%g");
    ASSERT_EQ_FMT(0.75, file_number("m.safetensors", "mtan.plan.observed-high"), "%g");
    ASSERT_EQ_FMT(0.75, file_number("m.safetensors", "mtan.data.observed"), "%g");
    ASSERT_EQ_FMT(DONE, command_run("eval @/m.safetensors --data @/data --observed 0.5"), "%d");
    command_close(NULL);
    PASS();
}

TEST moments_of_adamax_stay_adamaxs(void) {
    char error[512];
    uint8_t *bytes;
    bundle b;
    command_open(NULL);
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model enc --data @/events.csv --labels @/labels.csv --optimizer adamax --out "
                    "@/run --epochs 2 --head-hidden 3 " SMALL),
        "%d");
    ASSERT(bundle_read(&b, command_path("run/last.safetensors"), error));
    bytes = convert_to_torch(&b);
    ASSERT(holds(bytes, "exp_inf") && !holds(bytes, "exp_avg_sq") && !holds(bytes, "amsgrad"));
    arrfree(bytes);
    bundle_free(&b);
    ASSERT_EQ_FMT(DONE, command_run("convert @/run/last.safetensors @/m.pt"), "%d");
    ASSERT(command_says("err.txt", "the optimiser's state is Adamax's"));
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.pt @/m.safetensors"), "%d");
    ASSERT(command_says("err.txt", ", with Adamax's moments"));
    ASSERT(command_same_tensors("run/last.safetensors", "m.safetensors"));
    ASSERT_EQ_FMT(DONE, command_run("convert @/m.safetensors @/again.pt"), "%d");
    ASSERT(command_says("err.txt", "the optimiser's state is Adamax's"));
    command_close(NULL);
    PASS();
}

/* A tensor renamed in the bytes, as long as before: one is missing, and nothing half-made comes out. */
TEST a_missing_tensor_is_named(void) {
    size_t bytes = 0;
    char error[512];
    torchfile torch;
    converted m;
    uint8_t *blob = slurp_golden("torch-activity.pt", &bytes);
    ASSERT(blob);
    for (size_t i = 0; i + 10 < bytes; i++)
        if (memcmp(blob + i, "gru.bias_i", 10) == 0) blob[i + 9] = 'x';
    ASSERT(torch_open(&torch, "f", blob, bytes, error));
    ASSERT_FALSE(convert_from_torch(&m, &torch, NULL, error));
    ASSERT_STR_EQ("misses the tensor rec.gru.bias_ih_l0", error);
    torch_close(&torch);
    ASSERT(guard_free(blob));
    PASS();
}

/* ---- pickles made by hand ---- */

/* The error of reading a pickle; "" when it is read. */
static const char *pickle_error(const void *bytes, size_t n) {
    static char error[512];
    uint8_t *exact = guard_alloc(n);
    pickle p;
    memset(&p, 0, sizeof p);
    memcpy(exact, bytes, n);
    p.bytes = exact, p.n = n;
    const int32_t root = pickle_read(&p);
    snprintf(error, sizeof error, "%s", root < 0 ? p.error : "");
    if (root < 0 && !error[0]) strcpy(error, "refused without a word");
    pickle_free(&p);
    return guard_free(exact) ? error : "read outside its bytes";
}
#define ERROR_OF(text) pickle_error(text, sizeof text - 1)

#define STORAGE(count) "((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpu" count "tQ"
#define TENSOR(count, rest) "\x80\2ctorch._utils\n_rebuild_tensor_v2\n" STORAGE(count) rest "\x89}tR."

TEST code_is_never_run(void) {
    ASSERT(strstr(ERROR_OF("\x80\2cos\nsystem\nX\4\0\0\0true\x85R."), "refuses to load os.system"));
    ASSERT(strstr(ERROR_OF("\x80\2cbuiltins\neval\nX\1\0\0\0001\x85R."), "refuses to load builtins.eval"));
    ASSERT(strstr(ERROR_OF("\x80\4\x8c\5posix\x8c\6system\x93."), "refuses to load posix.system"));
    ASSERT(strstr(ERROR_OF("\x80\2ctorch\nload\n."), "refuses to load torch.load"));
    ASSERT(strstr(ERROR_OF("\x80\2ctorch.storage\n_load_from_bytes\n."), "torch.storage._load_from_bytes"));
    ASSERT(strstr(ERROR_OF("\x80\2c\33[31mx\n\7\n."), "refuses to load ?[31mx.?")); /* nothing for the terminal */
    ASSERT(strstr(ERROR_OF("\x80\2ccollections\nOrderedDict\n]\x85R."), "arguments that torch.save does not write"));
    ASSERT(strstr(ERROR_OF("\x80\2ios\nsystem\n."), "none that torch.save writes")); /* INST, of protocol 0 */
    ASSERT(strstr(ERROR_OF("\x80\1N."), "protocol 1"));
    PASS();
}

TEST malformed_pickles_are_refused(void) {
    static const char *const bad[] = {".",
                                      "R.",
                                      "a.",
                                      "s.",
                                      "t.",
                                      "e.",
                                      "u.",
                                      "b.",
                                      "Q.",
                                      "(.",
                                      "NN.",
                                      "N",
                                      "h\1.",
                                      "j\1\1\1\1.",
                                      "Nr\xff\xff\xff\xff.",
                                      "(Na.",
                                      "](NNu.",
                                      "}(Nu.",
                                      "}]Ns.",
                                      "}GAAAAAAAANs.",
                                      "N)R.",
                                      "X\xff\xff\xff\xff.",
                                      "\x8a\xff.",
                                      "\x8c\2\xc0\xaf.",
                                      "\x8c\1\xff.",
                                      "\x8c\3\xed\xa0\x80.",
                                      "NQ.",
                                      ")Q.",
                                      "N}b.",
                                      ")Nb.",
                                      "}Nb.",
                                      "\x85.",
                                      "\x93.",
                                      "c\n",
                                      "cx",
                                      "G.",
                                      "\x95."};
    ASSERT_STR_EQ("", ERROR_OF("\x80\2}(K\1NK\2]u."));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (!*pickle_error(bad[i], strlen(bad[i]))) FAILm(bad[i]);
    }
    ASSERT(strstr(ERROR_OF("\x80\2}(X\1\0\0\0aNX\1\0\0\0aNu."), "'a' occurs twice"));
    ASSERT(strstr(ERROR_OF("\x80\2}(K\7NM\7\0Nu."), "occurs twice"));
    PASS();
}

TEST a_tensor_stays_inside_its_storage(void) {
    ASSERT_STR_EQ("", ERROR_OF(TENSOR("K\6", "K\0K\2K\3\x86K\3K\1\x86")));
    ASSERT_STR_EQ("", ERROR_OF(TENSOR("K\6", "K\1K\2K\2\x86K\3K\1\x86")));
    ASSERT_STR_EQ("", ERROR_OF(TENSOR("K\6", "K\0K\0K\3\x86K\3K\1\x86")));                    /* empty */
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\2K\2K\2\x86K\3K\2\x86")), "beyond its storage")); /* one too far */
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\6))")), "beyond its storage"));                   /* scalar */
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0K\7\x85K\0\x85")), "beyond its storage"));       /* seven of one */
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0J\xff\xff\xff\x1f\x85K\0\x85")), "beyond its storage"));
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0K\2\x85\x8a\x08\0\0\0\0\0\0\0\x10\x85")),
                  sizeof(size_t) > 4 ? "beyond its storage" : "not understood")); /* a stride beyond 32 bits */
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0K\2\x85J\xff\xff\xff\xff\x85")), "not understood")); /* stride -1 */
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0K\2\x85)")), "not understood"));                     /* ranks differ */
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0(K\1K\1K\1K\1K\1K\1K\1K\1K\1t(K\1K\1K\1K\1K\1K\1K\1K\1K\1t")),
                  "not understood"));
    ASSERT(strstr(ERROR_OF(TENSOR("J\xff\xff\xff\xff", "K\0))")), "something other than a tensor's storage"));
    PASS();
}

#define OTHER "something other than a tensor's storage"

/* A persistent id in which one thing is not as torch.save writes it. */
TEST a_storage_is_what_it_says(void) {
    static const struct {
        const char *id, *words;
        size_t n;
    } cases[] = {
#define CASE(id, words) {"\x80\2(" id "tQ.", words, sizeof("\x80\2(" id "tQ.") - 1}
        CASE("X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\2", ""),
        CASE("X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\2N", ""), /* as old files have it */
        CASE("X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\2K\1", "a view of another"),
        CASE("X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\2NN", OTHER),
        CASE("X\6\0\0\0memoryctorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\2", OTHER),
        CASE("X\7\0\0\0storageX\5\0\0\0torchX\1\0\0\0000X\3\0\0\0cpuK\2", OTHER),
        CASE("X\7\0\0\0storageccollections\nOrderedDict\nX\1\0\0\0000X\3\0\0\0cpuK\2", OTHER),
        CASE("X\7\0\0\0storagectorch\nFloatStorage\nK\1X\3\0\0\0cpuK\2", OTHER),
        CASE("X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuN", OTHER),
        CASE("X\7\0\0\0storagectorch\nFloatStorage\nX\101\0\0\0"
             "00000000000000000000000000000000000000000000000000000000000000000X\3\0\0\0cpuK\2",
             OTHER), /* a key of 65 letters */
        CASE("X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpu\x8a\x08\0\0\0\0\0\0\0\x7f",
             "a storage is too large")};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *error = pickle_error(cases[i].id, cases[i].n);
        if (cases[i].words[0] ? !strstr(error, cases[i].words) : *error) {
            printf("  case %zu: %s\n", i, error);
            FAIL();
        }
    }
#define STORED(type, count) "(X\7\0\0\0storagectorch\n" type "\nX\1\0\0\0000X\3\0\0\0cpu" count "tQ"
    ASSERT_STR_EQ("", ERROR_OF("\x80\2](" STORED("FloatStorage", "K\2") STORED("FloatStorage", "K\2") "e."));
    ASSERT(strstr(ERROR_OF("\x80\2](" STORED("FloatStorage", "K\2") STORED("FloatStorage", "K\3") "e."),
                  "two types or sizes"));
    ASSERT(strstr(ERROR_OF("\x80\2](" STORED("FloatStorage", "K\2") STORED("DoubleStorage", "K\2") "e."),
                  "two types or sizes"));
    PASS();
}

/* Shapes and offsets that are no whole numbers, or none that a machine can count to. */
TEST a_tensor_is_what_it_says(void) {
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "NK\2\x85K\1\x85")), "not understood"));
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "J\xff\xff\xff\xffK\2\x85K\1\x85")), "not understood"));
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "\x8a\x08\0\0\0\0\0\0\0\x7fK\2\x85K\1\x85")), "not understood"));
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0N\x85K\1\x85")), "not understood"));
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0K\2\x85N\x85")), "not understood"));
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0J\xff\xff\xff\xff\x85K\1\x85")), "not understood"));
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0\x8a\x08\0\0\0\0\0\0\0\x7f\x85K\1\x85")), "not understood"));
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0K\2\x85\x8a\x08\0\0\0\0\0\0\0\x7f\x85")), "not understood"));
    ASSERT(strstr(ERROR_OF(TENSOR("K\6", "K\0NK\1\x85")), "not understood"));
    ASSERT(strstr(
        ERROR_OF("\x80\2ctorch._utils\n_rebuild_tensor_v2\n" STORAGE("K\6") "K\0K\2\x85K\1\x85\x89}}(K\1K\2utR."),
        "properties that are not understood"));
    ASSERT_STR_EQ("",
                  ERROR_OF("\x80\2ctorch._utils\n_rebuild_tensor_v2\n" STORAGE("K\6") "K\0K\2\x85K\1\x85\x89}}tR."));
    PASS();
}

/* Every kind of number and text, and the ends of what they can be. */
TEST plain_values_have_their_ends(void) {
    ASSERT_STR_EQ("", ERROR_OF("\x80\2\x8b\2\0\0\0\xff\xff."));                /* a long of two bytes */
    ASSERT_STR_EQ("", ERROR_OF("\x80\2\x8a\0."));                              /* a long of none, which is 0 */
    ASSERT_STR_EQ("", ERROR_OF("\x80\2X\4\0\0\0\xf4\x8f\xbf\xbf."));           /* U+10FFFF */
    ASSERT(strstr(ERROR_OF("\x80\2X\4\0\0\0\xf4\x90\x80\x80."), "not UTF-8")); /* one more */
    ASSERT_STR_EQ("", ERROR_OF("\x80\2X\3\0\0\0\xee\x80\x80."));               /* behind the surrogates */
    ASSERT(strstr(ERROR_OF("\x80\6N."), "protocol 6"));
    ASSERT(strstr(ERROR_OF("\x80\4N\x8c\1x\x93."), "malformed"));
    ASSERT(strstr(ERROR_OF("\x80\2c\177\nx\n."), "refuses to load ?.x"));
    ASSERT(strstr(ERROR_OF("\x80\2N(."), "malformed at its end"));
    ASSERT(strstr(ERROR_OF("\x80\2cargparse\nNamespace\nN\x85R."), "arguments that torch.save does not write"));
    PASS();
}

/* Far more than any checkpoint: refused at a limit, not when memory ends. */
TEST numbers_of_values_have_a_limit(void) {
    const size_t n = 1 << 20;
    char *many = malloc(n);
    memset(many, ')', n);
    ASSERT(strstr(pickle_error(many, n), "more than 262144 values"));
    memset(many, '(', n); /* marks on marks */
    ASSERT(strstr(pickle_error(many, n), "cut off"));
    memset(many, ']', 2000); /* lists in lists: no recursion */
    memset(many + 2000, 'a', 1999);
    many[3999] = '.';
    ASSERT_STR_EQ("", pickle_error(many, 4000));
    free(many);
    PASS();
}

/* ---- time ---- */

static void put_bytes(uint8_t **out, const void *bytes, size_t n) {
    memcpy(arraddnptr(*out, n), bytes, n);
}

static void put_text(uint8_t **out, const char *text, size_t n) {
    const uint8_t length[5] = {'X', (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), (uint8_t)(n >> 24)};
    put_bytes(out, length, 5);
    put_bytes(out, text, n);
}

/* A list of n dicts that share two keys, which are half of the bytes and differ in the last one alone. */
static uint8_t *shared_keys(size_t n) {
    static const char dict[] = "}h\0h\0sh\1h\0s";
    uint8_t *out = NULL;
    char *text = calloc(5 * n, 1);
    put_bytes(&out, "](", 2);
    for (int i = 0; i < 2; i++) {
        memset(text, 'x', 5 * n);
        text[5 * n - 1] = (char)('a' + i);
        put_text(&out, text, 5 * n);
        put_bytes(&out, i ? "q\1" : "q\0", 2);
    }
    for (size_t i = 0; i < n; i++) put_bytes(&out, dict, sizeof dict - 1);
    put_bytes(&out, "e.", 2);
    free(text);
    return out;
}

/* A list of storages, up to 4096 different ones, and each of the last named fifty times. */
static uint8_t *many_storages(size_t n) {
    static const char type[] = "(X\7\0\0\0storagectorch\nFloatStorage\n", rest[] = "X\3\0\0\0cpuK\6tq\1Q";
    uint8_t *out = NULL;
    char key[64];
    put_bytes(&out, "](", 2);
    for (size_t i = 0; i < n; i++) {
        put_bytes(&out, type, sizeof type - 1);
        put_text(&out, key, (size_t)snprintf(key, sizeof key, "%040zu", i));
        put_bytes(&out, rest, sizeof rest - 1);
        for (int k = 0; k < 50; k++) put_bytes(&out, "h\1Q", 3);
    }
    put_bytes(&out, "e.", 2);
    return out;
}

/* A safetensors file of n tensors and n pairs with long names. */
static uint8_t *many_names(size_t n) {
    char(*names)[400] = calloc(n, sizeof *names);
    mtan_file_entry *entries = calloc(n, sizeof *entries);
    mtan_file_pair *pairs = calloc(n, sizeof *pairs);
    uint8_t *out = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "%zu.%0370d", i, 0);
        entries[i].name = pairs[i].key = pairs[i].value = names[i];
        entries[i].rank = 1; /* without elements */
    }
    if (mtan_file_write_size(entries, n, pairs, n, &bytes) != MTAN_OK) exit(2);
    arrsetlen(out, bytes);
    mtan_file_write_memory(entries, n, pairs, n, out, bytes, &bytes);
    free(names), free(entries), free(pairs);
    return out;
}

static const char *set_error(const void *bytes, size_t n) {
    static char error[512];
    tensor_set set;
    error[0] = 0;
    if (tensor_set_open(&set, "f", bytes, n, error)) tensor_set_close(&set);
    return error;
}

/* A kind of file that once took time with the square of its size: n of something, and who reads it. */
typedef struct growing {
    const char *name;
    uint8_t *(*make)(size_t n); /* an stb_ds array */
    const char *(*read)(const void *bytes, size_t n);
    size_t small, large;
} growing;
static const growing growing_kinds[] = {{"shared_keys", shared_keys, pickle_error, 1000, 100000},
                                        {"storages", many_storages, pickle_error, 40, 4000},
                                        {"safetensors", many_names, set_error, 32, 3200}};

/* Nanoseconds of CPU time for a byte, the least of three runs. */
static double read_time(const growing *kind, size_t n, size_t times) {
    uint8_t *bytes = kind->make(n);
    double least = HUGE_VAL;
    for (int run = 0; run < 3; run++) {
        const clock_t start = clock();
        for (size_t i = 0; i < times; i++)
            if (*kind->read(bytes, arrlenu(bytes))) exit(2);
        const double spent =
            (double)(clock() - start) / CLOCKS_PER_SEC * 1e9 / ((double)times * (double)arrlenu(bytes));
        least = spent < least ? spent : least;
    }
    arrfree(bytes);
    return least;
}

TEST large_files_take_the_time_of_their_bytes(const growing *kind) {
    MAY_BE_LEFT_OUT();
    const double few = read_time(kind, kind->small, kind->large / kind->small), many = read_time(kind, kind->large, 1);
    if (greatest_get_verbosity()) printf("%.2f ns a byte of a small one, %.2f of a large one\n", few, many);
    ASSERT(many < 10 * few);
    PASS();
}

/* ---- damaged files ---- */

/* 1: read, 0: refused with a message; -1: a promise is broken. */
static int outcome(const uint8_t *bytes, size_t n) {
    char error[512] = "";
    mtan_tensor_view view;
    torchfile t;
    converted m;
    uint8_t *scratch = NULL, *exact = guard_alloc(n);
    memcpy(exact, bytes, n);
    const int read = torch_open(&t, "f", exact, n, error);
    int good = read || strncmp(error, "f: ", 3) == 0;
    for (size_t i = 0; read && i < arrlenu(t.pickle.tensors); i++) {
        torch_view(&t, &t.pickle.tensors[i], &view, &scratch);
        void *copy = malloc(view.bytes + 1);
        good &= mtan_view_read_raw(&view, view.dtype, copy, view.count) == MTAN_OK;
        free(copy);
    }
    arrfree(scratch);
    if (read && convert_from_torch(&m, &t, NULL, error)) converted_free(&m);
    if (read) torch_close(&t);
    return guard_free(exact) && good ? read : -1;
}

TEST every_truncation_is_refused(const char *name) {
    size_t bytes = 0;
    uint8_t *blob = slurp_golden(name, &bytes);
    ASSERT(blob);
    ASSERT_EQ(1, outcome(blob, bytes));
    for (size_t n = 0; n < bytes; n += n < 64 || n + 64 > bytes ? 1 : 61) ASSERT_EQ_FMT(0, outcome(blob, n), "%d");
    ASSERT(guard_free(blob));
    PASS();
}

/* In an archive, checksums find a changed byte of any content; padding and times are free. */
TEST a_flipped_byte_is_refused_or_harmless(const char *name, size_t stride) {
    MAY_BE_LEFT_OUT();
    size_t bytes = 0, refused = 0, tried = 0;
    uint8_t *blob = slurp_golden(name, &bytes);
    ASSERT(blob);
    for (size_t i = 0; i < bytes; i += stride, tried++) {
        const uint8_t kept = blob[i];
        blob[i] = (uint8_t)(kept ^ (1u << (i % 8)));
        const int result = outcome(blob, bytes);
        ASSERT(result >= 0);
        refused += !result;
        blob[i] = kept;
    }
    ASSERT(refused > tried / 8);
    ASSERT(guard_free(blob));
    PASS();
}

TEST a_changed_weight_is_noticed(void) {
    size_t bytes = 0;
    char error[512];
    torchfile t;
    uint8_t *blob = slurp_golden("torch-full.pt", &bytes);
    ASSERT(blob && torch_open(&t, "f", blob, bytes, error));
    const size_t at = (size_t)(t.pickle.storages[0].data - blob);
    torch_close(&t);
    blob[at] ^= 1;
    ASSERT_FALSE(torch_open(&t, "f", blob, bytes, error));
    ASSERT(strstr(error, "checksum") && strstr(error, "data/0"));
    ASSERT(guard_free(blob));
    PASS();
}

/* ---- archives made by hand ---- */

typedef struct made {
    uint8_t *bytes, *directory; /* stb_ds arrays */
    int entries;
} made;

static void put(uint8_t **out, uint64_t x, int n) {
    for (int i = 0; i < n; i++) arrput(*out, (uint8_t)(x >> (8 * i)));
}

/* One entry with a method and sizes of the test's choice. */
static void add_entry(made *m, const char *name, const void *data, size_t packed, size_t size, uint32_t checksum,
                      int method) {
    const size_t start = arrlenu(m->bytes), n = strlen(name);
    for (int central = 0; central < 2; central++) {
        uint8_t **out = central ? &m->directory : &m->bytes;
        put(out, central ? 0x02014b50 : 0x04034b50, 4);
        if (central) put(out, 20, 2);
        put(out, 20, 2), put(out, 0, 2), put(out, (uint64_t)method, 2), put(out, 0, 4), put(out, checksum, 4);
        put(out, packed, 4), put(out, size, 4), put(out, n, 2), put(out, 0, 2);
        if (central) put(out, 0, 8), put(out, 0, 2), put(out, start, 4);
        memcpy(arraddnptr(*out, n), name, n);
    }
    if (packed) memcpy(arraddnptr(m->bytes, packed), data, packed);
    m->entries++;
}

static void end_archive(made *m) {
    const size_t start = arrlenu(m->bytes), n = arrlenu(m->directory);
    if (n) memcpy(arraddnptr(m->bytes, n), m->directory, n);
    put(&m->bytes, 0x06054b50, 4), put(&m->bytes, 0, 4);
    put(&m->bytes, (uint64_t)m->entries, 2), put(&m->bytes, (uint64_t)m->entries, 2);
    put(&m->bytes, n, 4), put(&m->bytes, start, 4), put(&m->bytes, 0, 2);
    arrfree(m->directory);
}

/* The message of opening an archive, "" when it opens. Frees it. */
static const char *archive_error(made *m) {
    static char error[512];
    torchfile t;
    error[0] = 0;
    end_archive(m);
    if (torch_open(&t, "f", m->bytes, arrlenu(m->bytes), error)) torch_close(&t);
    arrfree(m->bytes);
    return error;
}

static void add_stored(made *m, const char *name, const void *data, size_t n) {
    add_entry(m, name, data, n, n, zip_checksum(data, n), 0);
}

/* The message of opening these bytes as they stand. */
static const char *bytes_error(const uint8_t *bytes, size_t n) {
    static char error[512];
    torchfile t;
    error[0] = 0;
    if (torch_open(&t, "f", bytes, n, error)) torch_close(&t);
    return error;
}

/* One entry whose sizes stand in 64 bits, in an extra field that the test gives. */
static const char *wide_error(const char *extra, size_t n, size_t entry_size) {
    static const char none[] = "\x80\2N.";
    static const char *words;
    made m = {NULL, NULL, 0};
    uint8_t *central = NULL;
    add_entry(&m, "a/data.pkl", none, 4, entry_size, zip_checksum(none, 4), 0);
    put(&central, 0x02014b50, 4), put(&central, 20, 2), put(&central, 20, 2), put(&central, 0, 8);
    put(&central, zip_checksum(none, 4), 4), put(&central, 0xffffffff, 4), put(&central, 0xffffffff, 4),
        put(&central, 10, 2);
    put(&central, n, 2), put(&central, 0, 8), put(&central, 0, 2), put(&central, 0, 4);
    memcpy(arraddnptr(central, 10), "a/data.pkl", 10);
    if (n) memcpy(arraddnptr(central, n), extra, n);
    arrfree(m.directory);
    m.directory = central;
    words = archive_error(&m);
    return words;
}
#define WIDE_ERROR(extra) wide_error(extra, sizeof extra - 1, 4)

TEST sizes_of_64_bits_are_read(void) {
#define FOUR "\4\0\0\0\0\0\0\0"
    ASSERT_STR_EQ("", WIDE_ERROR("\1\0\20\0" FOUR FOUR));
    ASSERT_STR_EQ("", WIDE_ERROR("\7\0\2\0xx\1\0\20\0" FOUR FOUR)); /* behind a field of somebody else's */
    ASSERT(strstr(WIDE_ERROR(""), "misses sizes of 64 bits"));
    ASSERT(strstr(WIDE_ERROR("\1\0\10\0" FOUR), "misses sizes of 64 bits"));      /* one of two */
    ASSERT(strstr(WIDE_ERROR("\1\0\40\0" FOUR FOUR), "misses sizes of 64 bits")); /* longer than there is */
    ASSERT(strstr(WIDE_ERROR("\1\0\20\0" FOUR "\0\0\0\0\1\0\0\0"), "longer than the file"));
    PASS();
}

/* The end of an archive that has one of 64 bits too. */
static void put_end64(made *m, uint64_t disk, uint64_t entries, uint64_t at_most) {
    const size_t start = arrlenu(m->bytes), n = arrlenu(m->directory);
    memcpy(arraddnptr(m->bytes, n), m->directory, n);
    const size_t end64 = arrlenu(m->bytes);
    put(&m->bytes, 0x06064b50, 4), put(&m->bytes, 44, 8), put(&m->bytes, 45, 2), put(&m->bytes, 45, 2),
        put(&m->bytes, disk, 4);
    put(&m->bytes, 0, 4), put(&m->bytes, entries, 8), put(&m->bytes, entries, 8), put(&m->bytes, n, 8),
        put(&m->bytes, start, 8);
    put(&m->bytes, 0x07064b50, 4), put(&m->bytes, 0, 4), put(&m->bytes, at_most ? at_most : end64, 8),
        put(&m->bytes, 1, 4);
    put(&m->bytes, 0x06054b50, 4), put(&m->bytes, 0, 4), put(&m->bytes, entries, 2), put(&m->bytes, entries, 2);
    put(&m->bytes, n, 4), put(&m->bytes, start, 4), put(&m->bytes, 0, 2);
    arrfree(m->directory);
}

TEST an_end_of_64_bits_is_read(void) {
    static const struct {
        uint64_t disk, entries, at;
        const char *words;
    } cases[] = {{0, 1, 0, ""},
                 {1, 1, 0, "a zip archive in parts"},
                 {0, 20000, 0, "more than 16384 entries"},
                 {0, 1, 5, ""}, /* no such record there: the other end counts */
                 {0, 1, 1u << 30, ""} /* nor beyond the file */};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made m = {NULL, NULL, 0};
        add_stored(&m, "a/data.pkl", "\x80\2N.", 4);
        put_end64(&m, cases[i].disk, cases[i].entries, cases[i].at);
        const char *error = bytes_error(m.bytes, arrlenu(m.bytes));
        if (cases[i].words[0] ? !strstr(error, cases[i].words) : *error) FAILm(error);
        arrfree(m.bytes);
    }
    PASS();
}

/* Bytes of a good archive, changed one field at a time. */
TEST fields_of_an_archive_are_checked(void) {
    static const struct {
        int from_end; /* counted from the end record, or from the directory's first entry */
        size_t at;
        uint8_t byte;
        const char *words;
    } cases[] = {{1, 4, 1, "a zip archive in parts"},
                 {1, 6, 1, "a zip archive in parts"},
                 {0, 8, 1, "the zip archive is encrypted"},
                 {0, 42, 3, "lies outside the file"},        /* where no entry begins */
                 {0, 45, 0x7f, "lies outside the file"},     /* beyond the end */
                 {0, 29, 1, "directory is cut off"},         /* a longer name than there is */
                 {0, 46, 'b', "does not match its entries"}, /* another name */
                 {0, 16, 9, "the checksum of 'a/data.pkl' in the zip archive is wrong"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made m = {NULL, NULL, 0};
        add_stored(&m, "a/data.pkl", "\x80\2N.", 4);
        const size_t directory = arrlenu(m.bytes);
        end_archive(&m);
        m.bytes[(cases[i].from_end ? arrlenu(m.bytes) - 22 : directory) + cases[i].at] = cases[i].byte;
        const char *error = bytes_error(m.bytes, arrlenu(m.bytes));
        if (!strstr(error, cases[i].words)) FAILm(error);
        arrfree(m.bytes);
    }
    made m = {NULL, NULL, 0};
    add_entry(&m, "a/data.pkl", "\x80\2N.", 4, 4, 1, 0);
    const char *plain = archive_error(&m);
    ASSERT(strstr(plain, "the checksum of 'a/data.pkl'"));
    memset(&m, 0, sizeof m);
    add_stored(&m, "a/data.pkl", "\x80\2N.", 4), add_entry(&m, "a/byteorder", "little", 6, 6, 1, 0);
    ASSERT(strstr(archive_error(&m), "the checksum of 'a/byteorder'"));
    memset(&m, 0, sizeof m);
    add_stored(&m, "a/data.pkl", "\x80\2N.", 4), add_stored(&m, "a/byteorder", "middle", 6);
    ASSERT(strstr(archive_error(&m), "big-endian"));
    memset(&m, 0, sizeof m);
    add_entry(&m, "\33[31m\177/data.pkl", "\x80\2N.", 4, 4, 1, 0);
    ASSERT(strstr(archive_error(&m), "the checksum of '?[31m?/data.pkl'")); /* nothing for the terminal */
    memset(&m, 0, sizeof m);
    add_stored(&m, "a/b/data.pkl", "\x80\2N.", 4);
    ASSERT(strstr(archive_error(&m), "not one of torch.save"));
    memset(&m, 0, sizeof m);
    ASSERT(strstr(archive_error(&m), "f: ")); /* nothing at all */
    PASS();
}

TEST hostile_archives_are_refused(void) {
    static const char four[] = TENSOR("K\4", "K\0K\4\x85K\1\x85"), none[] = "\x80\2N.";
    const uint8_t data[16] = {0};
    made m = {NULL, NULL, 0};
    add_stored(&m, "a/data.pkl", four, sizeof four - 1), add_stored(&m, "a/data/0", data, 16);
    ASSERT_STR_EQ("", archive_error(&m));
    memset(&m, 0, sizeof m);
    add_stored(&m, "a/data.pkl", four, sizeof four - 1);
    ASSERT(strstr(archive_error(&m), "misses the data"));
    memset(&m, 0, sizeof m);
    add_stored(&m, "a/data.pkl", four, sizeof four - 1), add_stored(&m, "a/data/0", data, 15);
    ASSERT(strstr(archive_error(&m), "another size"));
    memset(&m, 0, sizeof m);
    add_stored(&m, "a/data.pkl", none, 4), add_stored(&m, "a/data.pkl", none, 4);
    ASSERT(strstr(archive_error(&m), "occurs twice"));
    memset(&m, 0, sizeof m);
    add_stored(&m, "a/data.pkl", none, 4), add_stored(&m, "b/data.pkl", none, 4);
    ASSERT(strstr(archive_error(&m), "not one of torch.save"));
    memset(&m, 0, sizeof m);
    add_stored(&m, "a/data.pkl", none, 4), add_stored(&m, "a/byteorder", "big", 3);
    ASSERT(strstr(archive_error(&m), "big-endian"));
    memset(&m, 0, sizeof m);
    add_entry(&m, "a/data.pkl", none, 4, 4, zip_checksum(none, 4), 12);
    ASSERT(strstr(archive_error(&m), "compressed in a way"));
    memset(&m, 0, sizeof m);
    add_entry(&m, "a/data.pkl", none, 4, 0xfffffff0, 0, 8); /* four bytes that claim to be 4 GB */
    const char *error = archive_error(&m);
    ASSERT(strstr(error, "claims to be larger") || strstr(error, "without zlib"));
    PASS();
}

#ifndef MTAN_DOUBLE
/* The same archive with every tensor in float64, `factor` times as large. */
static made widen(const uint8_t *archive, double factor) {
    made m = {NULL, NULL, 0};
    char error[512];
    zipfile z;
    if (!zip_open(&z, archive, arrlenu(archive), error)) return m;
    for (size_t i = 0; i < arrlenu(z.entries); i++) {
        const zip_entry *e = &z.entries[i];
        const uint8_t *from = zip_content(&z, e, error);
        char name[64];
        uint8_t *to = NULL;
        snprintf(name, sizeof name, "%.*s", (int)e->name_length, e->name);
        for (size_t k = 0; strstr(name, "/data/") && k < e->bytes / 4; k++) {
            float narrow;
            double wide;
            uint64_t bits;
            memcpy(&narrow, from + 4 * k, 4);
            wide = (double)narrow * factor;
            memcpy(&bits, &wide, 8), put(&to, bits, 8);
        }
        for (size_t k = 0; strstr(name, ".pkl") && k < e->bytes; k++) {
            const int found = k + 12 <= e->bytes && memcmp(from + k, "FloatStorage", 12) == 0;
            if (found) memcpy(arraddnptr(to, 13), "DoubleStorage", 13), k += 11;
            else arrput(to, from[k]);
        }
        if (to) add_stored(&m, name, to, arrlenu(to));
        arrfree(to);
    }
    zip_close(&z);
    end_archive(&m);
    return m;
}

/* The numbers are on a little-endian host, as the archive's are. */
TEST what_float_loses_is_said(void) {
    pair p;
    converted m, again;
    torchfile torch;
    char error[512] = "";
    const uint16_t one = 1;
    if (*(const uint8_t *)&one == 0) SKIPm("the test makes a file of this host's numbers");
    open_folder();
    ASSERT(open_pair(&p, "interp") && convert_from_torch(&m, &p.torch, NULL, error));
    uint8_t *narrow = back_to_torch(&m, error);
    made exact = widen(narrow, 1), changed = widen(narrow, 1 + 1e-9), beyond = widen(narrow, 1e60);
    ASSERT(torch_open(&torch, "exact", exact.bytes, arrlenu(exact.bytes), error));
    ASSERT(convert_from_torch(&again, &torch, NULL, error));
    ASSERT(same_params(&p, &again));
    ASSERT_EQ(1, arrlen(again.remarks));
    ASSERT(strstr(again.remarks[0], "narrowed ") && strstr(again.remarks[0], "changed by 0 of itself at most"));
    converted_free(&again);
    torch_close(&torch);
    ASSERT(torch_open(&torch, "changed", changed.bytes, arrlenu(changed.bytes), error));
    ASSERT(convert_from_torch(&again, &torch, NULL, error));
    ASSERT(same_params(&p, &again) && again.moment1);
    char expected[96];
    snprintf(expected, sizeof expected, "narrowed %d tensors of float64: a value changed by 1e-09 of itself at most",
             3 * (int)mtan_param_count(&again.model.config));
    ASSERT_STR_EQ(expected, again.remarks[0]);
    converted_free(&again);
    torch_close(&torch);
    ASSERT(torch_open(&torch, "beyond", beyond.bytes, arrlenu(beyond.bytes), error));
    ASSERT_FALSE(convert_from_torch(&again, &torch, NULL, error));
    ASSERT(strstr(error, "or beyond float"));
    torch_close(&torch);
    arrfree(narrow);
    arrfree(exact.bytes), arrfree(changed.bytes), arrfree(beyond.bytes);
    converted_free(&m);
    rmdir(folder);
    ASSERT(close_pair(&p));
    PASS();
}
#endif

/* The check value of CRC-32 in the catalogues: that of "123456789". */
TEST the_checksum_is_crc32(void) {
    ASSERT_EQ_FMT(0xcbf43926u, zip_checksum("123456789", 9), "%x");
    PASS();
}

/* An archive with this pickle and one storage; 1: it can be looked at. */
static int set_opens(const uint8_t *pickle_bytes, const void *storage, size_t n, char *error) {
    made m = {NULL, NULL, 0};
    tensor_set set;
    add_stored(&m, "a/data.pkl", pickle_bytes, arrlenu(pickle_bytes));
    if (n) add_stored(&m, "a/data/0", storage, n);
    end_archive(&m);
    const int good = tensor_set_open(&set, "f", m.bytes, arrlenu(m.bytes), error);
    if (good) tensor_set_close(&set);
    arrfree(m.bytes);
    return good;
}

/* A list of one text or tensor, many times: two bytes of the file name all of it each time. */
static uint8_t *repeated(const uint8_t *value, size_t n, size_t times) {
    uint8_t *out = NULL;
    put_bytes(&out, "](", 2);
    put_bytes(&out, value, n);
    put_bytes(&out, "q\0", 2);
    for (size_t i = 1; i < times; i++) put_bytes(&out, "h\0", 2);
    put_bytes(&out, "e.", 2);
    return out;
}

TEST what_is_named_many_times_is_limited(void) {
    static const char tensor[] =
        "ctorch._utils\n_rebuild_tensor_v2\n" STORAGE("M\0\x40") "K\0M\0\x40\x85K\1\x85\x89}tR";
    static const float storage[0x4000];
    uint8_t *text = NULL, *bytes;
    char error[512] = "", *letters = malloc(20000);
    memset(letters, 'x', 20000);
    put_text(&text, letters, 20000);
    bytes = repeated(text, arrlenu(text), 1000);
    ASSERTm(error, set_opens(bytes, NULL, 0, error));
    arrfree(bytes);
    bytes = repeated(text, arrlenu(text), 5000);
    ASSERT_FALSE(set_opens(bytes, NULL, 0, error));
    ASSERT(strstr(error, "MiB of text"));
    arrfree(bytes);
    bytes = repeated((const uint8_t *)tensor, sizeof tensor - 1, 16);
    ASSERTm(error, set_opens(bytes, storage, sizeof storage, error));
    arrfree(bytes);
    bytes = repeated((const uint8_t *)tensor, sizeof tensor - 1, 100);
    ASSERT_FALSE(set_opens(bytes, storage, sizeof storage, error));
    arrfree(bytes);
    arrfree(text);
    free(letters);
    PASS();
}

#ifdef MTAN_ZLIB
static size_t deflated(uint8_t *out, size_t room, const void *in, size_t n) {
    z_stream s;
    memset(&s, 0, sizeof s);
    deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    s.next_in = (Bytef *)(uintptr_t)in, s.avail_in = (uInt)n, s.next_out = out, s.avail_out = (uInt)room;
    deflate(&s, Z_FINISH);
    deflateEnd(&s);
    return room - s.avail_out;
}

TEST compressed_entries_are_unpacked_within_limits(void) {
    static const char none[] = "\x80\2N.";
    static uint8_t zeros[1 << 20], packed[4096];
    const size_t n = deflated(packed, sizeof packed, none, 4);
    made m = {NULL, NULL, 0};
    add_entry(&m, "a/data.pkl", packed, n, 4, zip_checksum(none, 4), 8);
    ASSERT_STR_EQ("", archive_error(&m));
    memset(&m, 0, sizeof m);
    add_entry(&m, "a/data.pkl", packed, n, 5, zip_checksum(none, 4), 8); /* says five, holds four */
    ASSERT(strstr(archive_error(&m), "cannot be unpacked"));
    memset(&m, 0, sizeof m);
    add_entry(&m, "a/data.pkl", packed, n, 3, zip_checksum(none, 3), 8); /* says three */
    ASSERT(strstr(archive_error(&m), "cannot be unpacked"));
    memset(&m, 0, sizeof m);
    const size_t bomb = deflated(packed, sizeof packed, zeros, sizeof zeros); /* a MB of zeros is a pickle of nothing */
    add_entry(&m, "a/data.pkl", packed, bomb, sizeof zeros, zip_checksum(zeros, sizeof zeros), 8);
    ASSERT(strstr(archive_error(&m), "0x00 at byte 0"));
    PASS();
}

/* What was unpacked has to live as long as the views of it. */
TEST unpacked_tensors_stay_while_they_are_looked_at(void) {
    static const char four[] = TENSOR("K\4", "K\0K\4\x85K\1\x85");
    static uint8_t packed[256];
    const float data[4] = {1, 2, 3, 4};
    float read[4] = {0};
    const size_t n = deflated(packed, sizeof packed, data, sizeof data);
    made m = {NULL, NULL, 0};
    char error[512] = "";
    tensor_set set;
    add_stored(&m, "a/data.pkl", four, sizeof four - 1);
    add_entry(&m, "a/data/0", packed, n, sizeof data, zip_checksum(data, sizeof data), 8);
    end_archive(&m);
    ASSERT(tensor_set_open(&set, "f", m.bytes, arrlenu(m.bytes), error));
    ASSERT_EQ_FMT((size_t)1, arrlenu(set.tensors), "%zu");
    ASSERT_EQ(MTAN_OK, mtan_view_read_raw(&set.tensors[0].view, MTAN_DTYPE_F32, read, 4));
    ASSERT(check_same("unpacked", read, data, sizeof data));
    tensor_set_close(&set);
    arrfree(m.bytes);
    PASS();
}
#endif

SUITE(torchfile_suite) {
    static const char *const cases[] = {"interp", "full", "enc", "activity", "rnn3"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        RUN_TESTp(a_checkpoint_becomes_the_model_that_was_saved, cases[i]);
        RUN_TESTp(a_model_goes_back_to_a_checkpoint, cases[i]);
    }
    RUN_TEST(all_types_and_layouts_are_read);
    RUN_TEST(plain_values_are_read);
    RUN_TEST(what_the_user_says_goes_before_args);
    RUN_TEST(the_command_takes_settings);
    RUN_TEST(statistics_leave_the_training_as_it_was);
    RUN_TEST(moments_of_adamax_stay_adamaxs);
    RUN_TEST(a_missing_tensor_is_named);
    RUN_TEST(code_is_never_run);
    RUN_TEST(malformed_pickles_are_refused);
    RUN_TEST(a_tensor_stays_inside_its_storage);
    RUN_TEST(a_storage_is_what_it_says);
    RUN_TEST(a_tensor_is_what_it_says);
    RUN_TEST(plain_values_have_their_ends);
    RUN_TEST(numbers_of_values_have_a_limit);
    for (size_t i = 0; i < sizeof growing_kinds / sizeof growing_kinds[0]; i++) {
        greatest_set_test_suffix(growing_kinds[i].name);
        RUN_TESTp(large_files_take_the_time_of_their_bytes, &growing_kinds[i]);
    }
    RUN_TEST(what_is_named_many_times_is_limited);
    RUN_TESTp(every_truncation_is_refused, "torch-interp.pt");
    RUN_TESTp(every_truncation_is_refused, "torch-types.pt");
    RUN_TESTp(a_flipped_byte_is_refused_or_harmless, "torch-interp.pt", 13);
    RUN_TESTp(a_flipped_byte_is_refused_or_harmless, "torch-types.pt", 1);
    RUN_TESTp(a_flipped_byte_is_refused_or_harmless, "torch-enc.pt", 7);
    RUN_TEST(a_changed_weight_is_noticed);
    RUN_TEST(sizes_of_64_bits_are_read);
    RUN_TEST(an_end_of_64_bits_is_read);
    RUN_TEST(fields_of_an_archive_are_checked);
    RUN_TEST(hostile_archives_are_refused);
#ifndef MTAN_DOUBLE
    RUN_TEST(what_float_loses_is_said);
#endif
    RUN_TEST(the_checksum_is_crc32);
#ifdef MTAN_ZLIB
    RUN_TEST(compressed_entries_are_unpacked_within_limits);
    RUN_TEST(unpacked_tensors_stay_while_they_are_looked_at);
#endif
}
