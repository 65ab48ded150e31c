/* mtan_dsp.h: int8 products by the DSP instructions of a Cortex-M (M4, M7, M33, M55, M85), two terms at a time. It
 * has no table of its own: it is included before mtan.c, which gives the same bits with it as without it.
 *
 *     arm-none-eabi-gcc -O2 -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16 -include simd/mtan_dsp.h -c mtan.c
 */
#ifndef MTAN_DSP_H
#define MTAN_DSP_H

#ifndef __ARM_FEATURE_SIMD32
#error "this CPU has no SMLAD: leave mtan_dsp.h out"
#endif

#include <stddef.h>
#include <stdint.h>

#define MTAN_INT8_SUMS

/* Four bytes from any address: one LDR. */
static inline uint32_t dsp_word(const void *from) {
    uint32_t word;
    __builtin_memcpy(&word, from, 4);
    return word;
}

/* sum + four terms of a row: bytes 0 and 2 times the halves of `even`, bytes 1 and 3 times the halves of `odd` */
static inline int32_t dsp_terms(int32_t sum, uint32_t even, uint32_t odd, uint32_t bytes) {
    uint32_t pair;
    __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(bytes));
    __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(pair), "r"(even));
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(bytes));
    __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(pair), "r"(odd));
    return sum;
}

static inline void int8_sums(int32_t sum[4], const int16_t *a, const int8_t *b, size_t k, size_t n) {
    const int16_t *const fours = a + n / 4 * 4, *const end = a + n;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (; a < fours; a += 4, b += 4) {
        const uint32_t low = dsp_word(a), high = dsp_word(a + 2);
        uint32_t even, odd;
        __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(even) : "r"(low), "r"(high));
        __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(odd) : "r"(high), "r"(low));
        s0 = dsp_terms(s0, even, odd, dsp_word(b));
        s1 = dsp_terms(s1, even, odd, dsp_word(b + k));
        s2 = dsp_terms(s2, even, odd, dsp_word(b + 2 * k));
        s3 = dsp_terms(s3, even, odd, dsp_word(b + 3 * k));
    }
    for (; a < end; a++, b++) s0 += *a * b[0], s1 += *a * b[k], s2 += *a * b[2 * k], s3 += *a * b[3 * k];
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

#endif
