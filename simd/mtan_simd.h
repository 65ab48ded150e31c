/* mtan_simd.h: faster kernels than mtan_backend_scalar, one table per instruction set, and the choice among them.
 *
 *     mtan_model_init(&model, &config, weights, count);
 *     model.backend = mtan_backend_best();
 *
 * Each file of simd/ is compiled with the flags it names and says by a macro, given to platform/cpu.c, that it is linked:
 *
 *     simd/mtan_scalar_fma.c   MTAN_WITH_SCALAR_FMA   mtan_backend_scalar_fma   scalar code, fused multiply-add (x86-64)
 *     simd/mtan_avx2.c         MTAN_WITH_AVX2         mtan_backend_avx2
 *     simd/mtan_avx512.c       MTAN_WITH_AVX512       mtan_backend_avx512
 *     simd/mtan_neon.c         MTAN_WITH_NEON         mtan_backend_neon         (AArch64)
 *     simd/mtan_wasm.c         MTAN_WITH_WASM         mtan_backend_wasm         (WebAssembly's simd128)
 *
 * Leaving one out costs speed, never a link error. Tables whose `fused` is 1 give the same bits as each other, and so do
 * those whose `fused` is 0; between the two, results agree within the limits of golden/README.md. */
#ifndef MTAN_SIMD_H
#define MTAN_SIMD_H

#include "../mtan.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const mtan_backend mtan_backend_scalar_fma;
extern const mtan_backend mtan_backend_avx2;
extern const mtan_backend mtan_backend_avx512;
extern const mtan_backend mtan_backend_neon;
extern const mtan_backend mtan_backend_wasm;

/* The fastest that is linked and that this CPU and operating system run; mtan_backend_scalar if there is no other. */
const mtan_backend *mtan_backend_best(void);

/* By name ("scalar", "scalar-fma", "avx2", "avx512", "neon", "wasm"; "best"); null if unknown or unable to run here. */
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
