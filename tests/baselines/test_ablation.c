/* The paper's ablations are settings of the models: a fixed time embedding, RBF kernels in place of attention, and the number of heads.
 * Each is trained through the command, as `mtan train physionet-full` with options, on a few small records in PhysioNet's files. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "command_line.h"
#include "../../tools/mtan/model/bundle.h"
#include "../../tools/mtan/options/options.h"
#include "../../tools/data/generators.h"

enum { RECORDS = 48 };

#define SMALL                                                                                                          \
    " --enc-hidden 8 --dec-hidden 5 --embed 8 --ref-points 6 --latent 3 --mlp-hidden 6 --head-hidden 8 --batch 8 "     \
    "--epochs 6 --lr 0.01 --quiet --threads 2 --data @ --out @/run"

/* set-a and its outcomes: who dies has a fast pulse. */
static void write_set_a(void) {
    FILE *outcomes = fopen(command_path("Outcomes-a.txt"), "w");
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 9);
    if (!outcomes || mkdir(command_path("set-a"), 0777) != 0) perror("mtan: build"), exit(2);
    fputs("RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n", outcomes);
    for (int r = 0; r < RECORDS; r++) {
        char name[32];
        FILE *f;
        snprintf(name, sizeof name, "set-a/%d.txt", 1000 + r);
        if (!(f = fopen(command_path(name), "w"))) perror("mtan: build"), exit(2);
        fprintf(f, "Time,Parameter,Value\n00:00,RecordID,%d\n00:00,Age,%d\n", 1000 + r, 40 + r);
        for (unsigned hour = numpy_interval(&rng, 5); hour < 48; hour += 1 + numpy_interval(&rng, 8))
            fprintf(f, "%02u:%02u,%s,%u\n", hour, numpy_interval(&rng, 59), hour % 3 ? "HR" : "Temp",
                    hour % 3 ? (r % 2 ? 120 : 60) + numpy_interval(&rng, 20) : 36 + numpy_interval(&rng, 3));
        fclose(f);
        fprintf(outcomes, "%d,6,1,5,-1,%d\n", 1000 + r, r % 2);
    }
    fclose(outcomes);
}

/* The training loss of the first and of the last epoch: the second column of the log. */
static int loss_fell(void) {
    char *text = command_text("run/log.csv"), *line = strchr(text, '\n');
    double first = 0, last = 0;
    int epoch = 0, rows = 0;
    for (; line && line[1]; line = strchr(line + 1, '\n'), rows++) {
        if (sscanf(line + 1, "%d,%lf", &epoch, &last) != 2) break;
        if (rows == 0) first = last;
    }
    free(text);
    if (rows < 2 || !(last < first)) printf("  BAD loss %g at first, %g in epoch %d\n", first, last, epoch);
    return rows >= 2 && last < first;
}

static int file_has(const char *key, const char *value) {
    char error[512], text[64] = "";
    bundle b;
    int same;
    if (!bundle_read(&b, command_path("run/best.safetensors"), error)) return printf("  BAD %s\n", error), 0;
    same = mtan_config_get(&b.model.config, key, text, sizeof text) == MTAN_OK && strcmp(text, value) == 0;
    if (!same) printf("  BAD %s is %s\n", key, text);
    bundle_free(&b);
    return same;
}

/* `settings`: key, value, key, value, ... up to a null: what the options must have made of the model. */
static int trains(const char *given, const char *const *settings) {
    char line[512];
    write_set_a();
    snprintf(line, sizeof line, "train physionet-full %s" SMALL, given);
    if (command_run(line) != DONE) return printf("  BAD %s\n%s", line, command_text("err.txt")), 0;
    for (; *settings; settings += 2)
        if (!file_has(settings[0], settings[1])) return 0;
    return loss_fell() &&
           command_run("eval @/run/best.safetensors --data @ --split all --bootstrap 0 --quiet") == DONE &&
           command_says("out.txt", "AUC");
}

TEST a_fixed_embedding_trains(void) {
    static const char *const settings[] = {"embedding", "fixed", NULL};
    ASSERT(trains("--embedding fixed", settings));
    PASS();
}

TEST rbf_kernels_train(void) {
    static const char *const settings[] = {"encoder", "rbf", "decoder", "rbf", NULL};
    ASSERT(trains("--encoder rbf --decoder rbf", settings));
    PASS();
}

TEST one_kernel_of_two_may_be_rbf(void) {
    static const char *const settings[] = {"encoder", "rbf", "decoder", "attention", NULL};
    ASSERT(trains("--encoder rbf", settings));
    PASS();
}

TEST heads_train(const char *heads) {
    const char *const settings[] = {"enc_heads", heads, "dec_heads", heads, NULL};
    char given[64];
    snprintf(given, sizeof given, "--enc-heads %s --dec-heads %s", heads, heads);
    ASSERT(trains(given, settings));
    PASS();
}

TEST heads_may_differ(void) {
    static const char *const settings[] = {"enc_heads", "4", "dec_heads", "2", NULL};
    ASSERT(trains("--enc-heads 4 --dec-heads 2", settings));
    PASS();
}

/* Three heads do not share 8 dimensions, and RBF kernels have one. */
TEST heads_that_do_not_fit_are_refused(void) {
    write_set_a();
    ASSERT_EQ_FMT(BAD_USE, command_run("train physionet-full --enc-heads 3" SMALL), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("train physionet-full --encoder rbf --enc-heads 2" SMALL), "%d");
    PASS();
}

SUITE(ablation_suite) {
    static const char *const heads[] = {"1", "2", "4"};
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_fixed_embedding_trains);
    RUN_TEST(rbf_kernels_train);
    RUN_TEST(one_kernel_of_two_may_be_rbf);
    for (int i = 0; i < 3; i++) {
        greatest_set_test_suffix(heads[i]);
        RUN_TEST1(heads_train, heads[i]);
    }
    RUN_TEST(heads_may_differ);
    RUN_TEST(heads_that_do_not_fit_are_refused);
}
