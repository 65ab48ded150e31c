/* A model on a board without an operating system: no files, no allocation, no libc.
 *
 * model.h is what `mtan export MODEL --c -o model.h` wrote; records.h holds further records with the output that the
 * published code gives for them (tools/board_case.c). Prints every output as bits, so that a PC's can be compared.
 * Status 0: the self-test passed and all records are within LIMIT of the published code. */
#include <string.h>

#include "board.h"
#include "model.h"
#include "records.h"

#define LIMIT 1e-5f
#define OTHER_CLASS 1e-4f /* fused and unfused arithmetic differ by rounding, amplified by the model */

static unsigned char memory[model_memory]; /* all that predictions need besides the weights in flash */
static mtan_real out[model_outputs];
static uint64_t spin_ticks; /* of SPIN instructions */
enum { SPIN = 2000000 };

static void print_line(const char *what, uint64_t number) {
    board_print(what), board_number((uint32_t)number), board_print("\n");
}

static void print_bits(const char *what, int32_t index, int32_t n) {
    board_print("bits "), board_print(what), board_number((uint32_t)index);
    for (int32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &out[i], sizeof bits);
        board_print(" "), board_hex(bits);
    }
    board_print("\n");
}

/* The largest difference; NaN counts as infinite, that is as 1e9. */
static mtan_real worst_difference(const mtan_real *expected, int32_t n) {
    mtan_real worst = 0;
    for (int32_t i = 0; i < n; i++) {
        const mtan_real d = out[i] < expected[i] ? expected[i] - out[i] : out[i] - expected[i];
        if (!(d <= worst)) worst = d > worst ? d : 1e9f;
    }
    return worst;
}

static int self_test(mtan_predictor *run) {
    const int same_class = (run->model->backend->fused != 0) == model_test_fused;
    const mtan_record record = model_test_record();
    const int good = mtan_hash(model_weights, sizeof model_weights) == model_hash &&
                     model_predict(run, &record, out) == MTAN_OK &&
                     (same_class ? memcmp(out, model_test_output, sizeof model_test_output) == 0
                                 : worst_difference(model_test_output, model_test_output_count) <= OTHER_CLASS);
    print_bits("self-test ", 0, model_test_output_count);
    board_print(!good        ? "self-test: FAILED\n"
                : same_class ? "self-test: the same bits\n"
                             : "self-test: within 1e-4 of the other class\n");
    return good;
}

/* Logits show every bit of the arithmetic; probabilities near a half would hide some. */
static mtan_status predict(mtan_predictor *run, const mtan_record *record) {
    return model_classes > 0 ? mtan_logits(run, record, 1, out) : model_predict(run, record, out);
}

static int golden_test(mtan_predictor *run) {
    const mtan_real *expected = golden_expected;
    mtan_real worst = 0;
    uint64_t ticks = 0;
    for (int32_t i = 0; i < golden_record_count; i++) {
        const mtan_record *record = &golden_records[i];
        const int32_t n = record->n_times > 0 ? record->n_times * model_channels : model_classes;
        const uint64_t start = board_ticks();
        const mtan_status status = predict(run, record);
        ticks += board_ticks() - start;
        if (status != MTAN_OK) return board_print(mtan_status_message(status)), board_print("\n"), 0;
        print_bits("record ", i, n);
        const mtan_real d = worst_difference(expected, n);
        worst = d > worst ? d : worst;
        expected += n;
    }
    print_line("difference x 1e9: ", (uint64_t)(worst * 1e9f));
    if (spin_ticks) print_line("instructions per prediction: ", ticks / golden_record_count * SPIN / spin_ticks);
    return worst <= LIMIT;
}

int main(void) {
    const mtan_bounds most = {1, model_events, model_times};
    const uint64_t start = board_ticks();
    mtan_model model;
    mtan_predictor run;
    board_spin(SPIN / 2); /* two instructions a turn */
    spin_ticks = board_ticks() - start;
    if (model_open(&model) != MTAN_OK || mtan_predictor_init(&run, &model, &most, memory, sizeof memory) != MTAN_OK)
        return board_print("the model does not fit\n"), 2;
    print_line("memory: ", sizeof memory);
    print_line("fused: ", (uint64_t)(model.backend->fused != 0));
    const int tested = self_test(&run), agrees = golden_test(&run);
    print_line("stack: ", board_stack_used());
    return tested && agrees ? 0 : 1;
}
