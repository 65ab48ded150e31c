/* The library against the published code: every model case of golden/ (outputs and all gradients), and the first ten
 * losses of three trainings. A line per tensor stands in `make agreement`; here only the worst of a case is named. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ladder.h"

typedef struct {
    char tensor[128];
    double difference, limit, share;
    int compared, over;
} golden_tally;

static void tally_tensor(void *context, const char *tensor, double difference, double limit, double share) {
    golden_tally *t = context;
    t->over += !(share <= 1);
    if (t->compared++ && share <= t->share) return;
    snprintf(t->tensor, sizeof t->tensor, "%s", tensor);
    t->difference = difference, t->limit = limit, t->share = share;
}

static enum greatest_test_res verdict(const char *name, int status, const golden_tally *t) {
    const int good = status >= 1 && t->compared == status && t->over == 0;
    if (!good || greatest_get_verbosity())
        printf("  %s %s: %d tensors, %d over their limit; worst %s, off by %.3g of %.3g (%.3g %% of the limit)\n",
               good ? "ok" : "BAD", name, t->compared, t->over, t->compared ? t->tensor : "none", t->difference,
               t->limit, 100 * t->share);
    ASSERTm("no tensor was compared", status >= 1);
    ASSERTm("a tensor is over its limit", good);
    PASS();
}

TEST model_agrees(const char *name) {
    golden_tally t;
    if (case_left_out(name)) SKIPm(LEFT_OUT);
    memset(&t, 0, sizeof t);
    const int status = ladder_model(name, &mtan_backend_scalar, tally_tensor, &t);
    return verdict(name, status, &t);
}

TEST training_agrees(const char *name) {
    golden_tally t;
    memset(&t, 0, sizeof t);
    const int status = ladder_training(name, &mtan_backend_scalar, tally_tensor, &t);
    return verdict(name, status, &t);
}

/* The tally itself must see what it is there for. */
TEST nan_counts_as_over(void) {
    golden_tally t;
    memset(&t, 0, sizeof t);
    tally_tensor(&t, "fine", 0, 1, 0);
    tally_tensor(&t, "nan", 0, 1, NAN);
    ASSERT_EQ(1, t.over);
    ASSERT_STR_EQ("nan", t.tensor);
    PASS();
}

SUITE(golden_suite) {
    static const char *const trainings[] = {"train-enc", "train-full", "train-interp"};
    RUN_TEST(nan_counts_as_over);
    for (int i = 0; ladder_case(i); i++) {
        greatest_set_test_suffix(ladder_case(i));
        RUN_TEST1(model_agrees, ladder_case(i));
    }
    for (int i = 0; i < 3; i++) {
        greatest_set_test_suffix(trainings[i]);
        RUN_TEST1(training_agrees, trainings[i]);
    }
}
