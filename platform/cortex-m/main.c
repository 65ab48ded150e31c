/* A model on a board without an operating system: no files, no allocation, no libc.
 *
 * model.h is what `mtan export MODEL --c -o model.h` wrote. The program checks the weights and the record that came with
 * them, and ends with status 0 if both are right. To that it adds with
 *
 *     -DRECORDS='"records.h"'  golden records and what the published code gives for them (tools/edge/board_case.c): every
 *                              output is printed as bits, so that a PC's can be compared, and must be within LIMIT,
 *                              which -DLIMIT=1e-4f makes larger for int8;
 *                              -DMOST_RECORDS=2: no more of them
 *     -DPOINTS=1 -DMEMORY=n    other reference points side by side than the header's, and the bytes that mtan_small_size wants
 *                              for them
 *
 * A model that mtan_small_classify refuses (interpolation, a class per time, mTAND-Full) is run by a predictor in model_memory bytes.
 */
#include <string.h>

#include "board.h"
#include "model.h"
#ifdef RECORDS
#include RECORDS
#ifndef MOST_RECORDS
#define MOST_RECORDS golden_record_count
#endif
#endif

#ifndef LIMIT
#define LIMIT 1e-5f
#endif
#define NEAR 1e-4f /* other arithmetic, fused or in another order, differs by rounding, amplified by the model */

static mtan_real out[model_outputs];

/* ---- the two ways: start, and predict one record; all memory besides the weights in flash ---- */

static void print_line(const char *what, uint64_t number) {
    board_print(what), board_number((uint32_t)number), board_print("\n");
}

#ifndef model_is_small

static unsigned char memory[model_memory];
static mtan_predictor run;

static mtan_status start(const mtan_model *model) {
    const mtan_bounds most = {1, model_events, model_times};
    print_line("memory: ", sizeof memory);
    return mtan_predictor_init(&run, model, &most, memory, sizeof memory);
}

static mtan_status predict(const mtan_model *model, const mtan_record *record) {
    (void)model; /* the predictor has it */
    return model_predict(&run, record, out);
}

/* Logits show every bit of the arithmetic; probabilities near a half would hide some. */
static mtan_status predict_bits(const mtan_model *model, const mtan_record *record) {
    return model_classes > 0 ? mtan_predictor_logits(&run, record, 1, out) : predict(model, record);
}

#else

#ifndef POINTS
#define POINTS model_points
#define MEMORY model_memory
#endif
static unsigned char memory[MEMORY];

static mtan_status start(const mtan_model *model) {
    size_t needed = 0;
    const mtan_status status = mtan_small_size(model, POINTS, &needed);
    if (status == MTAN_OK) print_line("memory: ", needed);
    return status == MTAN_OK && needed > sizeof memory ? MTAN_ERR_MEMORY : status;
}

static mtan_status predict(const mtan_model *model, const mtan_record *record) {
    return mtan_small_classify(model, record, POINTS, memory, sizeof memory, out);
}

static mtan_status predict_bits(const mtan_model *model, const mtan_record *record) {
    return mtan_small_logits(model, record, POINTS, memory, sizeof memory, out);
}

#endif

/* ---- checks ---- */

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

static int self_test(const mtan_model *model) {
    const int same = mtan_backend_fused(model->backend) == model_test_fused;
    const mtan_record record = model_test_record();
    const int good = mtan_bytes_hash(model_weights, sizeof model_weights) == model_hash &&
                     predict(model, &record) == MTAN_OK &&
                     (same ? memcmp(out, model_test_output, sizeof model_test_output) == 0
                           : worst_difference(model_test_output, model_test_output_count) <= NEAR);
    print_bits("self-test ", 0, model_test_output_count);
    board_print(!good ? "self-test: FAILED\n" : same ? "self-test: the same bits\n" : "self-test: within 1e-4\n");
    return good;
}

#ifdef RECORDS

static uint64_t spin_ticks(uint32_t instructions) {
    const uint64_t start_ticks = board_ticks();
    board_spin(instructions / 2); /* two a turn */
    return board_ticks() - start_ticks;
}

static int golden_test(const mtan_model *model) {
    enum { SPIN = 2000000, RECORD_COUNT = golden_record_count < MOST_RECORDS ? golden_record_count : MOST_RECORDS };
    const uint64_t spin = spin_ticks(SPIN);
    const mtan_real *expected = golden_expected;
    mtan_real worst = 0;
    uint64_t ticks = 0;
    for (int32_t i = 0; i < RECORD_COUNT; i++) {
        const mtan_record *record = &golden_records[i];
        const int32_t n = record->n_times > 0 ? record->n_times * model_channels : model_classes;
        const uint64_t before = board_ticks();
        const mtan_status status = predict_bits(model, record);
        ticks += board_ticks() - before;
        if (status != MTAN_OK) return board_print(mtan_status_message(status)), board_print("\n"), 0;
        print_bits("record ", i, n);
        const mtan_real d = worst_difference(expected, n);
        worst = d > worst ? d : worst;
        expected += n;
    }
    print_line("difference x 1e9: ", (uint64_t)(worst * 1e9f));
    if (spin) print_line("instructions per prediction: ", ticks / RECORD_COUNT * SPIN / spin);
    return worst <= LIMIT;
}

#else

static int golden_test(const mtan_model *model) {
    return (void)model, (void)predict_bits, 1;
}

#endif

int main(void) {
    mtan_model model;
    mtan_status status = model_open(&model);
    if (status == MTAN_OK) status = start(&model);
    if (status != MTAN_OK) return board_print(mtan_status_message(status)), board_print("\n"), 2;
    print_line("fused: ", (uint64_t)(mtan_backend_fused(model.backend) != 0));
    const int tested = self_test(&model), agrees = golden_test(&model);
    print_line("stack: ", board_stack_used());
    return tested && agrees ? 0 : 1;
}
