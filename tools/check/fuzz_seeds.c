/* Writes the seeds of the fuzz targets that read model files: each smallest model (tests/fuzz/smallest.h) as a
 * description (tests/fuzz/described.h), with and without a trainer's state; the first model also with int8 matrices,
 * with given points, and as an ensemble of two. Run it by `make fuzz-seeds` after a change of settings or parameters.
 *
 *     fuzz_seeds FOLDER      FOLDER/model/NAME, FOLDER/trainer/NAME */
#include "../../tests/fuzz/described.h"
#include "../../tests/fuzz/smallest.h"

typedef enum form { PLAIN, TRAINED, INT8, GIVEN } form;

static void put_pair(FILE *out, const char *key, const char *value) {
    fprintf(out, "\2%s\3%s", key, value);
}

/* Only settings that differ from a reader's defaults. */
static void put_settings(FILE *out, const mtan_config *c) {
    mtan_config usual;
    char value[64], expected[64];
    mtan_config_init(&usual, MTAN_ENC, MTAN_CLASSIFY_RECORD, 1, 2);
    for (int32_t i = 0; mtan_config_key(i); i++) {
        const char *key = mtan_config_key(i);
        mtan_config_get(c, key, value, sizeof value);
        mtan_config_get(&usual, key, expected, sizeof expected);
        if (i == 0 || strcmp(value, expected) != 0) put_pair(out, key, value);
    }
    if (!c->architecture) return;
    put_pair(out, "architecture", c->architecture->name);
    for (int i = 0; c->architecture->settings && c->architecture->settings[i]; i++) {
        mtan_config_get(c, c->architecture->settings[i], value, sizeof value);
        put_pair(out, c->architecture->settings[i], value);
    }
}

/* A parameter's name, written with described.h's words for its parts. */
static void put_name(FILE *out, const char *name) {
    while (*name) {
        int word = 16; /* the first word for a part of a name */
        while (word < FUZZ_WORDS &&
               (!described_words[word] || strncmp(name, described_words[word], strlen(described_words[word])) != 0))
            word++;
        fputc(word < FUZZ_WORDS ? word : *name, out);
        name += word < FUZZ_WORDS ? strlen(described_words[word]) : 1;
    }
}

/* A tensor's type and shape; 5 and 14 are the words for F32 and I8. */
static void put_shape(FILE *out, int type, size_t rows, size_t cols) {
    fprintf(out, "%c%zu", type, rows);
    if (cols) fprintf(out, ",%zu", cols);
    fputc(DESCRIBED_END, out);
}

static void put_tensor(FILE *out, const char *name, const char *ending, int type, size_t rows, size_t cols, int first) {
    if (!first) fputc(7, out);
    put_name(out, name);
    fputs(ending, out);
    put_shape(out, type, rows, cols);
}

/* Integers come last, so that reals are aligned to 4 bytes. */
static void put_tensors(FILE *out, const mtan_config *c, form f) {
    mtan_param p;
    for (int whole = 0; whole <= (f == INT8); whole++)
        for (int32_t i = 0; mtan_param_at(c, i, &p) == MTAN_OK; i++) {
            const size_t rows = (size_t)p.rows, cols = p.rank == 2 ? (size_t)p.cols : 0;
            const int narrow = f == INT8 && cols > 1;
            if (whole && narrow) put_tensor(out, p.name, "", 14, rows, cols, 0);
            else if (!whole && narrow) put_tensor(out, p.name, ".scale", 5, rows, 0, i == 0);
            else if (!whole) put_tensor(out, p.name, "", 5, rows, cols, i == 0);
        }
    for (int i = 1; f == TRAINED && i <= 2; i++)
        put_tensor(out, i == 1 ? "mtan.moment1" : "mtan.moment2", "", 5, mtan_weights_count(c), 0, 0);
    if (f == GIVEN) put_tensor(out, "mtan.ref", "", 5, (size_t)c->ref_points, 0, 0);
}

/* The target's first byte, then the description, then data: 0.5 and 2 as F32. */
static int write_seed(const char *folder, const char *name, const mtan_config *c, int first, form f) {
    static const char data[] = {0, 0, 0, 0x3f, 0, 0, 0, 0x40};
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", folder, f == TRAINED ? "trainer" : "model", name);
    FILE *out = fopen(path, "wb");
    if (!out) return perror(path), 0;
    fputc(first, out);
    fputc(1, out);
    put_settings(out, c);
    if (f == TRAINED) put_pair(out, "step", "3");
    if (f == GIVEN) put_pair(out, "reference", "given");
    fputc(4, out);
    put_tensors(out, c, f);
    fwrite("}", 1, 2, out); /* with its final zero */
    fwrite(data, 1, sizeof data, out);
    return fclose(out) == 0 || (perror(path), 0);
}

/* The other forms of file, for which the first model stands. */
static int write_forms(const char *folder, mtan_config *c) {
    const int good = write_seed(folder, "int8", c, 0, INT8) && write_seed(folder, "given", c, 0, GIVEN);
    c->members = 2;
    return good && write_seed(folder, "ensemble", c, 0, PLAIN);
}

int main(int argc, char **argv) {
    const char *name;
    mtan_config c;
    int good = argc == 2;
    for (int i = 0; good && (name = smallest_config(&c, i)); i++) {
        if (mtan_config_check(&c) != MTAN_OK) return fprintf(stderr, "mtan: %s has settings that fail\n", name), 1;
        good = write_seed(argv[1], name, &c, c.architecture ? 1 : 0, PLAIN) &&
               write_seed(argv[1], name, &c, i, TRAINED) && (i > 0 || write_forms(argv[1], &c));
    }
    return good ? 0 : 2;
}
