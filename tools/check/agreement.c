/* agreement: prints how far the library is from the reference, tensor by tensor.
 *
 *     agreement [CASE ...]      all cases of golden/ if none is given
 *     agreement --worst         one line per case: its worst tensor
 *
 * Prints case, tensor, difference (norm), limit and the fraction of the limit that was used; the exit status is 1 when
 * a limit is exceeded. The output has columns for people and for awk. */
#include <stdio.h>
#include <string.h>

#include "../../tests/support/ladder.h"

typedef struct {
    const char *name;
    char tensor[128];
    double difference, limit, share;
    int compared, over, each;
} tally;

static void print_row(const char *name, const char *tensor, double difference, double limit, double share) {
    printf("%-18s %-52s %12.3e %12.3e %8.3f%s\n", name, tensor, difference, limit, share, share <= 1 ? "" : "  OVER");
}

static void visit(void *context, const char *tensor, double difference, double limit, double share) {
    tally *t = context;
    t->compared++;
    t->over += !(share <= 1);
    if (t->each) print_row(t->name, tensor, difference, limit, share);
    if (t->compared == 1 || !(share <= t->share)) {
        snprintf(t->tensor, sizeof t->tensor, "%s", tensor);
        t->difference = difference, t->limit = limit, t->share = share;
    }
}

static int run(const char *name, int each, int *compared) {
    tally t;
    int status;
    memset(&t, 0, sizeof t);
    t.name = name, t.each = each;
    status = strncmp(name, "train-", 6) == 0 ? ladder_training(name, &mtan_backend_scalar, visit, &t)
                                             : ladder_model(name, &mtan_backend_scalar, visit, &t);
    if (!each) print_row(name, t.tensor, t.difference, t.limit, t.share);
    *compared += t.compared;
    return status < 0 || t.over > 0 || t.compared == 0;
}

int main(int argc, char **argv) {
    static const char *const training[] = {"train-enc", "train-full", "train-interp"};
    const int worst = argc > 1 && strcmp(argv[1], "--worst") == 0, named = argc > 1 + worst;
    int failed = 0, compared = 0;
    printf("%-18s %-52s %12s %12s %8s\n", "case", "tensor", "difference", "limit", "share");
    for (int i = 1 + worst; i < argc; i++) failed += run(argv[i], !worst, &compared);
    for (int i = 0; !named && ladder_case(i); i++) failed += run(ladder_case(i), !worst, &compared);
    for (int i = 0; !named && i < 3; i++) failed += run(training[i], !worst, &compared);
    printf("%d tensors compared, %d cases over a limit (%s build)\n", compared, failed,
           sizeof(mtan_real) == 8 ? "double" : "float");
    return failed > 0;
}
