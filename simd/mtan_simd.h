/* mtan_simd.h: faster kernels than mtan_backend_scalar, one table per instruction set, and functions to choose one.
 *
 *     mtan_model_init(&model, &config, weights, count);
 *     model.backend = mtan_backend_best();
 *
 * Each file simd/mtan_NAME.c is compiled with the flags it names. If it is linked, platform/cpu.c is compiled with the
 * macro MTAN_WITH_NAME:
 *
 *     mtan_scalar_fma.c   MTAN_WITH_SCALAR_FMA   scalar code, fused multiply-add (x86-64)
 *     mtan_avx2.c         MTAN_WITH_AVX2
 *     mtan_avx512.c       MTAN_WITH_AVX512
 *     mtan_neon.c         MTAN_WITH_NEON         AArch64
 *     mtan_wasm.c         MTAN_WITH_WASM         WebAssembly's simd128
 *
 * Leaving one out costs speed, never a link error. All tables whose `fused` is 1 give the same bits, and so do all
 * tables whose `fused` is 0. Between the two classes results agree within the limits of golden/README.md. */
#ifndef MTAN_SIMD_H
#define MTAN_SIMD_H

#include "../mtan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The list of instruction sets, fastest first: X(name, NAME of the macro, name for users, machine: X86, ARM64 or ANY).
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

/* The fastest backend that is linked and that this CPU and operating system can run; mtan_backend_scalar if there is no
 * other. */
const mtan_backend *mtan_backend_best(void);

/* The backend of a name from the list, "scalar" or "best"; null if it is unknown or cannot run here. */
const mtan_backend *mtan_backend_named(const char *name);

/* One of the backends, which mtan_backend_list lists fastest first. */
typedef struct mtan_backend_choice {
    const char *name;
    const mtan_backend *backend; /* null when it cannot run */
    const char *reason;          /* why it cannot; null when it can */
} mtan_backend_choice;

/* Fills in the choice at index 0, 1, ...; past the last it returns 0 and leaves `choice` alone. */
int mtan_backend_list(int index, mtan_backend_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
