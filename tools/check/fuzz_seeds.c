/* Writes the seeds of the fuzz targets that read model files: each smallest model (tests/fuzz/smallest.h) as a description
 * (tests/fuzz/described.h), without and with what a trainer keeps. `make fuzz-seeds` runs it when settings or parameters have
 * changed.
 *
 *     fuzz_seeds FOLDER      FOLDER/model/NAME, FOLDER/trainer/NAME */
#include "../../tests/fuzz/described.h"
#include "../../tests/fuzz/smallest.h"

static const char *const own_names[SMALLEST_OWN] = {"enc",       "enc-time", "full", "interp",
                                                    "full-time", "rbf",      "rnn3", "per-head"};

static void put_pair(FILE *out, const char *key, const char *value) {
    fprintf(out, "\2%s\3%s", key, value);
}

/* Those that a reader would not take for granted. */
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

/* A parameter's name, with the words of described.h for its parts. */
static void put_name(FILE *out, const char *name) {
    while (*name) {
        int word = 16; /* the first that is a part of names */
        while (word < FUZZ_WORDS &&
               (!described_words[word] || strncmp(name, described_words[word], strlen(described_words[word])) != 0))
            word++;
        fputc(word < FUZZ_WORDS ? word : *name, out);
        name += word < FUZZ_WORDS ? strlen(described_words[word]) : 1;
    }
}

static void put_tensors(FILE *out, const mtan_config *c, int trained) {
    mtan_param p;
    for (int32_t i = 0; mtan_param_at(c, i, &p) == MTAN_OK; i++) {
        if (i > 0) fputc(7, out);
        put_name(out, p.name);
        fprintf(out, "\5%d", (int)p.rows);
        if (p.rank == 2) fprintf(out, ",%d", (int)p.cols);
        fputc(6, out);
    }
    for (int i = 1; trained && i <= 2; i++) fprintf(out, "\7mtan.moment%d\5%zu\6", i, mtan_weights_count(c));
}

/* The target's first byte, then the description, then data: 0.5 and -2 as F32. */
static int write_seed(const char *path, const mtan_config *c, char first, int trained) {
    static const char data[] = {0, 0, 0, 0x3f, 0, 0, 0, (char)0xc0};
    FILE *out = fopen(path, "wb");
    if (!out) return perror(path), 0;
    fputc(first, out);
    fputc(1, out);
    put_settings(out, c);
    if (trained) put_pair(out, "step", "3");
    fputc(4, out);
    put_tensors(out, c, trained);
    fwrite("}", 1, 2, out); /* with its zero */
    fwrite(data, 1, sizeof data, out);
    return fclose(out) == 0 || (perror(path), 0);
}

int main(int argc, char **argv) {
    mtan_config c;
    int good = argc == 2;
    for (int i = 0; good && smallest_config(&c, i); i++) {
        const char *name = c.architecture ? c.architecture->name : own_names[i];
        char path[512];
        if (mtan_config_check(&c) != MTAN_OK) return fprintf(stderr, "mtan: %s has settings that fail\n", name), 1;
        snprintf(path, sizeof path, "%s/model/%s", argv[1], name);
        good = write_seed(path, &c, c.architecture ? 1 : 0, 0);
        snprintf(path, sizeof path, "%s/trainer/%s", argv[1], name);
        good = good && write_seed(path, &c, (char)i, 1);
    }
    return good ? 0 : 2;
}
