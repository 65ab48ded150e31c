/* intrinsics.h: SIMDE(name) is the intrinsic of that name, for the files of this folder. If SIMDe's headers are found,
 * it is SIMDe's version, which works on every CPU; otherwise it is the compiler's own, which is the same instruction
 * and gives the same bits. MTAN_NO_SIMDE asks for the compiler's own in any case. */
#ifndef MTAN_SIMD_INTRINSICS_H
#define MTAN_SIMD_INTRINSICS_H

#include <stddef.h>
#include <stdint.h>

/* tools/deps.sh creates simde/none.h if it finds no SIMDe. */
#if !defined(MTAN_NO_SIMDE) && defined(__has_include)
#if !__has_include(<simde/x86/avx2.h>) || __has_include(<simde/none.h>)
#define MTAN_NO_SIMDE
#endif
#endif

#ifndef MTAN_NO_SIMDE

#define SIMDE(name) simde_##name
#include <simde/x86/sse.h>
#if defined(__aarch64__) || defined(_M_ARM64)
#include <simde/arm/neon.h>
#elif defined(__AVX512F__) || defined(MTAN_EMULATED)
#include <simde/x86/avx512.h>
#elif defined(__AVX2__)
#include <simde/x86/avx2.h>
#include <simde/x86/fma.h>
#endif

#elif defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>
#define SIMDE(name) _##name
#define SIMDE_CMP_LT_OQ _CMP_LT_OQ
#define SIMDE_CMP_LE_OQ _CMP_LE_OQ
#define SIMDE_CMP_EQ_OQ _CMP_EQ_OQ

#elif defined(__aarch64__) || defined(_M_ARM64)

#define SIMDE(name) name

#else
#error "this CPU's vectors need SIMDe's headers: name their folder with -isystem"
#endif

#if defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h> /* SIMDe 0.7.4 lacks division and square root */
#endif

#endif
