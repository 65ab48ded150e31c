/* mtan_simd.h: faster kernels than mtan_backend_scalar, one table per instruction set, and the choice among them.
 *
 *     mtan_model_init(&model, &config, weights, count);
 *     model.backend = mtan_backend_best();
 *
 * Each file simd/mtan_NAME.c is compiled with the flags it names. A macro MTAN_WITH_NAME, given to platform/cpu.c, says that
 * it is linked:
 *
 *     mtan_scalar_fma.c   MTAN_WITH_SCALAR_FMA   scalar code, fused multiply-add (x86-64)
 *     mtan_avx2.c         MTAN_WITH_AVX2
 *     mtan_avx512.c       MTAN_WITH_AVX512
 *     mtan_neon.c         MTAN_WITH_NEON         AArch64
 *     mtan_wasm.c         MTAN_WITH_WASM         WebAssembly's simd128
 *
 * Leaving one out costs speed, never a link error. Tables whose `fused` is 1 give the same bits as each other, and so do
 * those whose `fused` is 0; between the two, results agree within the limits of golden/README.md. */
#ifndef MTAN_SIMD_H
#define MTAN_SIMD_H

#include "../mtan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The instruction sets, one list, fastest first: X(name, NAME of the macro, name for users, machine: X86, ARM64 or ANY).
 * Each has a table mtan_backend_<name>. */
#define MTAN_INSTRUCTION_SETS(X)                                                                                       \
    X(avx512, AVX512, "avx512", X86)                                                                                   \
    X(avx2, AVX2, "avx2", X86)                                                                                         \
    X(neon, NEON, "neon", ARM64)                                                                                       \
    X(wasm, WASM, "wasm", ANY)                                                                                         \
    X(scalar_fma, SCALAR_FMA, "scalar-fma", ANY)

#define MTAN_DECLARE(name, macro, text, machine) extern const mtan_backend mtan_backend_##name;
MTAN_INSTRUCTION_SETS(MTAN_DECLARE)
#undef MTAN_DECLARE

/* The fastest that is linked and that this CPU and operating system run; mtan_backend_scalar if there is no other. */
const mtan_backend *mtan_backend_best(void);

/* By name: one of the list, "scalar", or "best"; null if unknown or unable to run here. */
const mtan_backend *mtan_backend_named(const char *name);

/* The backends there are, fastest first. */
typedef struct mtan_backend_choice {
    const char *name;
    const mtan_backend *backend; /* null when it cannot run */
    const char *reason;          /* why it cannot; null when it can */
} mtan_backend_choice;

/* The choice at index 0, 1, ...; returns 0 past the last and leaves `choice` alone. */
int mtan_backend_list(int index, mtan_backend_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
