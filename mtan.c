/* mtan.c: the whole library behind mtan.h, which is also the manual. Nothing here allocates memory, prints, exits,
 * starts threads or keeps state. A section calls only earlier ones, except through the tables of the architectures:
 *
 *    1. Basics            status messages, checked sizes
 *    2. Math              exp, log, sin, cos, tanh, sigmoid, softplus, sqrt
 *    3. Kernels           the scalar backend, which specifies all others
 *    4. Tape              workspace, tensors, recorded ops
 *    5. Ops               one forward and one backward each
 *    6. Configuration     settings, architectures, the parameter table
 *    7. Random numbers    initial weights, ids
 *    8. Batches           records in normal form
 *    9. Models            what all models share: parameters as tensors, folding, noise, the forward pass
 *   10. Gathered sums     attention summed observation by observation
 *   11. mTAND             the paper's two models: folding, encoder, decoder, heads
 *   12. Prediction
 *   13. Streams           and small memory
 *   14. Training
 *   15. Files             safetensors, model files
 *   16. Preparation       turns raw observations into what a model sees, as its file specifies
 *
 * Compiles on its own: cc -c mtan.c. The pragmas below turn off the contraction of a*b+c, because results must not
 * depend on the compiler's choice. MTAN_FMA marks every place where a fused multiply-add is meant. */
#ifndef MTAN_CONSTANTS_ONLY
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
#ifdef __FAST_MATH__
#error "mtan needs IEEE arithmetic: compile without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "mtan needs float evaluated as float: -fexcess-precision=fast (s390x), or -msse2 -mfpmath=sse (32-bit x86)"
#endif

#ifndef MTAN_INTERNALS
#define MTAN_INTERNALS
#endif
#include "mtan.h"

#include <string.h>

/* ==== 1. Basics ================================================================================================ */

#ifndef MTAN_KERNELS_ONLY

const char *mtan_backend_name(const mtan_backend *backend) {
    return backend ? backend->name : "";
}

int32_t mtan_backend_fused(const mtan_backend *backend) {
    return backend ? backend->fused : 0;
}

const char *mtan_version(void) {
    return MTAN_VERSION;
}

const char *mtan_status_message(mtan_status status) {
    switch (status) {
    case MTAN_OK: return "success";
    case MTAN_ERR_NULL: return "a pointer that must not be null is null";
    case MTAN_ERR_CONFIG: return "a setting is out of range or contradicts another";
    case MTAN_ERR_MEMORY: return "the memory given is too small, or a record exceeds the bounds it was sized for";
    case MTAN_ERR_SIZE: return "the sizes asked for are too large";
    case MTAN_ERR_INPUT:
        return "bad input: a time or value that is not finite, a channel or label out of range, or a negative count";
    case MTAN_ERR_FILE: return "not a valid safetensors file, or not a model of this library";
    case MTAN_ERR_MISSING: return "no such tensor, metadata key, setting or configuration";
    case MTAN_ERR_SHAPE: return "a tensor has another shape or type than the model needs";
    case MTAN_ERR_WRITE: return "the write callback failed";
    case MTAN_ERR_DEVICE: return "the backend's device failed";
    case MTAN_ERR_NUMERIC: return "a weight or a result is not finite: NaN, or too large for the arithmetic";
    }
    return "unknown status";
}

static int32_t is_finite(mtan_real x) {
    return x - x == 0;
}

/* Marks a missing number. Its bits are copied: to compute it would raise the exception of an invalid operation, which
 * some programs trap. */
static mtan_real not_a_number(void) {
#ifdef MTAN_DOUBLE
    const uint64_t bits = 0x7ff8000000000000;
#else
    const uint32_t bits = 0x7fc00000;
#endif
    mtan_real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int32_t all_finite(const mtan_real *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!is_finite(x[i])) return 0;
    return 1;
}

/* Arithmetic on counts. size_t may have 32 bits: a result that it cannot hold becomes SIZE_MAX, which bytes_for
 * refuses. */
static size_t count_sum(size_t a, size_t b) {
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

static size_t count_product(size_t a, size_t b) { /* a is at least 1 */
    return b > SIZE_MAX / a ? SIZE_MAX : a * b;
}

/* The few string functions needed: on bare metal some of those in <string.h> are missing. */
/* The bound exceeds any name or header. Without it gcc turns the loop into a call of strlen, which bare metal lacks. */
static size_t text_length(const char *s) {
    size_t n = 0;
    while (n < MTAN_FILE_MAX_HEADER && s[n]) n++;
    return n;
}

static int32_t text_equal(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

#define NUMBER_SIZE 40

/* Text that reads back as exactly x, for |x| < 1e15: as few decimals as possible, or C's hexadecimal form if 15
 * decimals are not enough. */
static void format_number(char text[NUMBER_SIZE], double x) {
    char digits[NUMBER_SIZE];
    double power = 1, whole = 0;
    int32_t n = 0, decimals = 0, base = 10, exponent = 0;
    uint64_t m;
    if (x < 0) *text++ = '-', x = -x;
    for (;; decimals++, power *= 10) {
        whole = (double)(uint64_t)(x * power + 0.5);
        if (whole / power == x || decimals == 15 || whole > 1e14) break;
    }
    if (whole / power != x) {
        for (; x < 4503599627370496.0; exponent--) x *= 2; /* from 2^52 on every double is an integer */
        whole = x, base = 16, decimals = 0;
        *text++ = '0', *text++ = 'x';
    }
    for (m = (uint64_t)whole; m > 0 || n <= decimals; m /= (uint64_t)base)
        digits[n++] = "0123456789abcdef"[m % (uint64_t)base];
    while (n > 0) {
        *text++ = digits[--n];
        if (n == decimals && decimals > 0) *text++ = '.';
    }
    if (base == 16) {
        *text++ = 'p', *text++ = '-';
        for (exponent = -exponent; exponent > 0; exponent /= 10) digits[n++] = (char)('0' + exponent % 10);
        while (n > 0) *text++ = digits[--n];
    }
    *text = 0;
}

/* Reads the hexadecimal form written above, after its 0x, exactly: 1234p-56. */
static int32_t parse_hexadecimal(const char *s, double *out) {
    uint64_t m = 0;
    int32_t digits = 0, exponent = 0;
    for (;; s++, digits++) {
        const char c = *s;
        if (c >= '0' && c <= '9') m = m * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f') m = m * 16 + (uint64_t)(c - 'a' + 10);
        else break;
    }
    if (digits == 0 || digits > 14 || *s++ != 'p' || *s++ != '-' || !*s) return 0;
    for (; *s >= '0' && *s <= '9'; s++) exponent = exponent < 10000 ? exponent * 10 + (*s - '0') : exponent;
    if (*s || exponent > 1126) return 0; /* 2^52 x 2^-1126 is the smallest double above 0 */
    for (*out = (double)m; exponent > 0; exponent--) *out *= 0.5;
    return 1;
}

/* ---- decimals, correctly rounded ---- */

/* A whole number of up to 1536 bits, the lowest word first: 30 digits times 10^340 need 1230. */
enum { BIG_WORDS = 48 };
typedef struct bignum {
    uint32_t word[BIG_WORDS];
    int32_t n; /* words in use: the last is not 0 */
} bignum;

/* b = b * factor + more */
static void big_scale(bignum *b, uint32_t factor, uint32_t more) {
    uint64_t carry = more;
    for (int32_t i = 0; i < b->n; i++) {
        carry += (uint64_t)b->word[i] * factor;
        b->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry > 0) b->word[b->n++] = (uint32_t)carry;
}

static void big_power(bignum *b, int32_t exponent) {
    for (; exponent >= 9; exponent -= 9) big_scale(b, 1000000000u, 0);
    for (; exponent > 0; exponent--) big_scale(b, 10, 0);
}

static int32_t big_less(const bignum *a, const bignum *b) {
    int32_t i = a->n - 1;
    if (a->n != b->n) return a->n < b->n;
    while (i > 0 && a->word[i] == b->word[i]) i--;
    return a->word[i] < b->word[i]; /* b is never 0, so n >= 1 */
}

/* a -= b, for b <= a */
static void big_subtract(bignum *a, const bignum *b) {
    uint64_t borrow = 0;
    for (int32_t i = 0; i < a->n; i++) {
        const uint64_t less = borrow + (i < b->n ? b->word[i] : 0);
        borrow = a->word[i] < less;
        a->word[i] = (uint32_t)(a->word[i] - less);
    }
    while (a->n > 0 && a->word[a->n - 1] == 0) a->n--;
}

/* Shifts the shorter number up by whole words until both have the same length. Returns how many bits a moved up,
 * negative if b moved. */
static int32_t big_align(bignum *a, bignum *b) {
    const int32_t apart = b->n - a->n, words = apart < 0 ? -apart : apart;
    bignum *small = apart > 0 ? a : b;
    memmove(small->word + words, small->word, (size_t)small->n * sizeof *small->word);
    memset(small->word, 0, (size_t)words * sizeof *small->word);
    small->n += words;
    return 32 * apart;
}

/* The double nearest to a / b, for a and b above 0: binary long division with one extra digit, for rounding to even. */
static double big_ratio(bignum *a, bignum *b) {
    int32_t exponent = -big_align(a, b), bits = 53;
    uint64_t q = 0;
    double x;
    for (; big_less(a, b); exponent--) big_scale(a, 2, 0);
    for (bignum twice = *b; big_scale(&twice, 2, 0), !big_less(a, &twice); exponent++) *b = twice;
    if (exponent < -1022) bits = exponent + 1075; /* a subnormal number has fewer bits */
    for (int32_t i = 0; i <= bits; i++, big_scale(a, 2, 0)) {
        const int32_t one = !big_less(a, b);
        q = 2 * q + (uint64_t)one;
        if (one) big_subtract(a, b);
    }
    q = q / 2 + (q % 2 && (q / 2 % 2 || a->n > 0));
    x = (double)q;
    for (exponent -= bits - 1; exponent < 0; exponent++) x *= 0.5;
    for (; exponent > 0; exponent--) x *= 2;
    return x;
}

/* digits x 10^exponent, above 0 */
static double exact_decimal(const char *digits, int32_t n, int32_t exponent) {
    bignum a = {{0}, 0}, b = {{1}, 1};
    for (int32_t i = 0; i < n; i++) big_scale(&a, 10, (uint32_t)(digits[i] - '0'));
    big_power(exponent < 0 ? &b : &a, exponent < 0 ? -exponent : exponent);
    return big_ratio(&a, &b);
}

enum { MOST_DIGITS = 30, MOST_EXPONENT = 340 };

/* If the digits and the power of ten are both exact in double, one multiplication or division rounds once. Other
 * numbers, which are rare in model files, take exact_decimal. */
static double decimal(const char *digits, int32_t n, int32_t exponent) {
    double mantissa = 0, power = 1;
    for (int32_t i = 0; i < n; i++) mantissa = mantissa * 10 + (digits[i] - '0');
    if (!(mantissa > 0)) return 0;
    if (mantissa > 9007199254740992.0 || exponent > 22 || exponent < -22) return exact_decimal(digits, n, exponent);
    for (int32_t i = exponent < 0 ? -exponent : exponent; i > 0; i--) power *= 10;
    return exponent < 0 ? mantissa / power : mantissa * power;
}

/* Reads what format_number writes, and decimals with an exponent. Returns 0 if the text is not a finite number. */
static int32_t parse_number(const char *s, double *out) {
    char digits[MOST_DIGITS];
    double x;
    int32_t exponent = 0, n = 0, sign = 1, negative = 0, fraction = 0, any = 0;
    if (*s == '-') sign = -1, s++;
    if (s[0] == '0' && s[1] == 'x') {
        if (!parse_hexadecimal(s + 2, &x)) return 0;
        *out = sign * x;
        return 1;
    }
    for (; (*s >= '0' && *s <= '9') || (*s == '.' && !fraction); s++) {
        if (*s == '.') {
            fraction = 1;
            continue;
        }
        if (n == MOST_DIGITS) return 0;
        if (n > 0 || *s != '0') digits[n++] = *s; /* leading zeros do not count */
        exponent -= fraction, any = 1;
    }
    if (!any) return 0;
    if (*s == 'e' || *s == 'E') {
        int32_t e = 0;
        s++;
        if (*s == '-' || *s == '+') negative = *s++ == '-';
        if (!(*s >= '0' && *s <= '9')) return 0;
        for (; *s >= '0' && *s <= '9'; s++) e = e < 1000 ? e * 10 + (*s - '0') : e;
        exponent += negative ? -e : e;
    }
    if (*s || exponent > MOST_EXPONENT || exponent < -MOST_EXPONENT) return 0;
    x = decimal(digits, n, exponent);
    if (!(x - x == 0)) return 0;
    *out = sign * x;
    return 1;
}

/* Square root in double, for a handful of scalars: Newton's method from above, until the estimate stops falling. */
static double scalar_sqrt(double x) {
    double y = x > 1 ? x : 1, next;
    if (!(x == x)) return x;
    if (!(x > 0)) return 0;
    while ((next = 0.5 * (y + x / y)) < y) y = next;
    return y;
}

/* Base 2 logarithm and exponential in double, bit by bit. They serve the initial weights, which must be the same on
 * every machine. x > 0. */
static double scalar_log2(double x) {
    double y = 0, bit = 1;
    for (; x >= 2; y++) x *= 0.5;
    for (; x < 1; y--) x *= 2;
    for (int32_t i = 0; i < 52; i++) {
        x *= x, bit *= 0.5;
        if (x >= 2) x *= 0.5, y += bit;
    }
    return y;
}

static double scalar_exp2(double y) {
    double x = 1, root = 2;
    for (; y >= 1; y--) x *= 2;
    for (; y < 0; y++) x *= 0.5;
    for (int32_t i = 0; i < 52; i++) {
        root = scalar_sqrt(root), y *= 2;
        if (y >= 1) x *= root, y--;
    }
    return x;
}

/* x^n for n >= 0 */
static double scalar_power(double x, int64_t n) {
    double result = 1;
    for (; n > 0; n /= 2, x *= x)
        if (n % 2) result *= x;
    return result;
}

#endif

#endif /* MTAN_CONSTANTS_ONLY */

/* ==== 2. Math ====================================================================================================
 * exp, log, sin, cos, tanh, sigmoid, softplus and sqrt, so that no libm is needed and the bits do not depend on one.
 *
 * Float arithmetic and 32-bit integers only, with selects in place of branches: mul, add, fma, divide, compare, shift
 * and reinterpret, each of which a vector unit does lane by lane with the same rounding. Only sqrt differs: vector
 * units have it, correctly rounded, and the version here reaches the same bits by 64-bit integers. Adding and
 * subtracting ROUND rounds to an integer. MTAN_FMA rounds once where the hardware has it and twice elsewhere, so there
 * are two classes of results, fused and unfused. The errors given below are the largest over all 2^32 floats
 * (`make ulp`), in units in the last place of the true value, as fused / unfused.
 *
 * Polynomials are minimax fits of the relative error (Remez exchange in 160-bit arithmetic). Their leading terms are
 * fixed at the Taylor values, the others were rounded to float after the fit. The comments give the interval and the
 * remaining error. Special values follow C99's Annex F; subnormal arguments and results are correct. */

/* ---- constants, shared by the scalar code, the vector code and the GPU code, which defines MTAN_CONSTANTS_ONLY ----
 * A polynomial is a list for Horner's rule: FIRST(c) with the coefficient of the highest power, then NEXT(c) down to
 * the lowest. */
#ifndef MTAN_CONSTANTS
#define MTAN_CONSTANTS

/* 1.5 x 2^23. There the spacing of floats is 1, so the low bits of x + ROUND hold x rounded, for x of either sign. */
#define ROUND 12582912.0f
#define ROUND_BITS 0x4B400000u
#define SIGN_BIT 0x80000000u
#define WHOLE_BITS 0x4B000000u /* 2^23 */
#define LEAST_NORMAL 1.17549435e-38f
#define LARGEST 3.40282347e38f
#define FRACTION_BITS 0x007FFFFFu
#define ONE_BITS 0x3F800000u
#define INFINITE_BITS 0x7F800000u
#define NAN_BITS 0x7FC00000u

/* ln 2 as a sum: LN2_HI has 10 bits, so that its product with an exponent is exact even without fma. */
#define LN2_HI 0.693359375f
#define LN2_LO (-2.12194442e-4f)
#define LOG2_E 1.44269502f

/* Above EXP_MOST e^x is Inf, below EXP_LEAST it is 0. */
#define EXP_MOST 89.0f
#define EXP_LEAST (-104.0f)
#define REST_MOST 0.35f /* ln 2 / 2 plus the rounding errors of the reduction */
/* p in e^r = 1 + r + r^2 p(r) on |r| <= 0.347, error 2^-27.7 */
#define EXP_POLYNOMIAL(FIRST, NEXT)                                                                                    \
    FIRST(0.00138144672f) NEXT(0.00836878084f) NEXT(0.0416683927f) NEXT(0.166665196f) NEXT(0.49999994f)

#define ROOT_HALF_BITS 0x3F3504F3u /* of sqrt(1/2) */
/* p in log(1 + f) = f - f^2 / 2 + f^3 p(f) for 1 + f in [sqrt(1/2), sqrt(2)), error 2^-27.2 */
/* clang-format off */
#define LOG_POLYNOMIAL(FIRST, NEXT)                                                                                    \
    FIRST(-0.0763451383f) NEXT(0.127615958f) NEXT(-0.13160184f) NEXT(0.142017558f) NEXT(-0.166233569f)                 \
    NEXT(0.200012267f) NEXT(-0.250008196f) NEXT(0.333333313f)
/* clang-format on */

/* pi/2 as a sum: with fma three pieces of 24 bits; without it five pieces of at most 8 bits (n has 16 bits, a product
 * 24) and one of 24. */
#define TWO_OVER_PI 0.636619747f
#define HALF_PI_1 1.57079637f
#define HALF_PI_2 (-4.37113883e-8f)
#define HALF_PI_3 (-1.71512451e-15f)
#define HALF_PI_SHORT_1 1.5703125f
#define HALF_PI_SHORT_2 4.84466553e-4f
#define HALF_PI_SHORT_3 (-6.40749931e-7f)
#define HALF_PI_SHORT_4 9.89530236e-10f
#define HALF_PI_SHORT_5 2.55795385e-12f
#define HALF_PI_SHORT_6 5.39030295e-15f
#define ANGLE_MOST 1e5f /* beyond it floats are at least 1/128 apart, too coarse for an angle */
/* On |r| <= 1.01 pi/4: s in sin(r) = r + r^3 s(r^2), error 2^-27.6; c in cos(r) = 1 - r^2/2 + r^4 c(r^2), error
 * 2^-30.2. */
#define SIN_POLYNOMIAL(FIRST, NEXT) FIRST(-1.95087414e-4f) NEXT(0.0083321128f) NEXT(-0.166666538f)
#define COS_POLYNOMIAL(FIRST, NEXT) FIRST(2.44256807e-5f) NEXT(-0.00138872513f) NEXT(0.0416666456f)

/* p in tanh(x) = x + x^3 p(x^2) up to TANH_NEAR, error 2^-26.7 */
#define TANH_NEAR 0.625f
#define TANH_POLYNOMIAL(FIRST, NEXT)                                                                                   \
    FIRST(-0.00570498826f) NEXT(0.020639088f) NEXT(-0.0537397154f) NEXT(0.133314416f) NEXT(-0.333332807f)

#define SOFTPLUS_LARGE 0.41421357f /* sqrt(2) - 1: for a larger e a factor 2 is taken out of 1 + e */

#define INT8_DEPTH 512 /* terms of an int8 product whose sum an int32_t holds: see int8 products */

#define TWO_PI 6.283185307179586476925
#define LOG_TWO_PI 1.8378770664093453
/* 2^-32: a channel whose weights sum to less is summed again under a base of its own. See sparse attention. */
#define ATTEND_FAR 2.3283064365386962890625e-10
#endif

#ifndef MTAN_CONSTANTS_ONLY
#ifdef MTAN_DOUBLE
#include <math.h>
#endif

#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define MTAN_FUSED 1
#ifdef MTAN_DOUBLE
#define MTAN_FMA(a, b, c) __builtin_fma((a), (b), (c))
#else
#define MTAN_FMA(a, b, c) __builtin_fmaf((a), (b), (c))
#endif
#else
#define MTAN_FUSED 0
#define MTAN_FMA(a, b, c) ((a) * (b) + (c))
#endif

#ifdef MTAN_DOUBLE

/* The double build serves tests against float64 references, on a host that has libm. */
static mtan_real real_exp(mtan_real x) {
    return exp(x);
}
static mtan_real real_abs(mtan_real x) {
    return fabs(x);
}
static mtan_real real_log_under(mtan_real x, mtan_real base) {
    int k;
    const mtan_real significand = frexp(x, &k);
    return log(significand) + (k + base) * 0.69314718055994530942;
}
static mtan_real real_log(mtan_real x) {
    return log(x);
}
static mtan_real real_sin(mtan_real x) {
    return sin(x);
}
static mtan_real real_cos(mtan_real x) {
    return cos(x);
}
static mtan_real real_tanh(mtan_real x) {
    return tanh(x);
}
static mtan_real real_sqrt(mtan_real x) {
    return sqrt(x);
}

static mtan_real real_sigmoid(mtan_real x) {
    mtan_real e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static mtan_real real_softplus(mtan_real x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* At 2^52 the spacing of doubles is 1. */
static mtan_real real_exponent(mtan_real x) {
    const mtan_real whole = copysign(4503599627370496.0, x);
    return (x * 1.4426950408889634 + whole) - whole;
}

/* ln 2 as a sum: the first part has 33 bits, so that its product with an exponent is exact. */
static mtan_real real_significand(mtan_real x, mtan_real exponent) {
    const mtan_real r = (x - exponent * 6.93147180369123816490e-01) - exponent * 1.90821492927058770002e-10;
    return exp(r > 0.35 ? 0.35 : r < -0.35 ? -0.35 : r);
}

static mtan_real real_power(mtan_real k) {
    return k >= -1022 ? ldexp(1, (int)k) : 0;
}

#else

/* Horner's rule in x: POLYNOMIAL(START, STEP) leaves the sum in p. */
#define START(c) mtan_real p = c;
#define STEP(c) p = MTAN_FMA(p, x, c);

/* A union, because in a freestanding build memcpy is a call, which would take most of the time of a sine. */
static uint32_t real_bits(mtan_real x) {
    union {
        mtan_real x;
        uint32_t u;
    } both;
    both.x = x;
    return both.u;
}

static mtan_real real_from_bits(uint32_t u) {
    union {
        uint32_t u;
        mtan_real x;
    } both;
    both.u = u;
    return both.x;
}

static mtan_real real_abs(mtan_real x) {
    return real_from_bits(real_bits(x) & ~SIGN_BIT);
}

/* y, negated where the sign bit of x is set. */
static mtan_real real_times_sign(mtan_real y, mtan_real x) {
    return real_from_bits(real_bits(y) ^ (real_bits(x) & SIGN_BIT));
}

/* x - n ln 2 */
static mtan_real real_exp_rest(mtan_real x, mtan_real n) {
    return MTAN_FMA(n, -LN2_LO, MTAN_FMA(n, -LN2_HI, x));
}

/* e^x for a reduced argument: 1 + x + x^2 p(x) */
static mtan_real real_exp_reduced(mtan_real x) {
    EXP_POLYNOMIAL(START, STEP)
    return MTAN_FMA(p, x * x, x) + 1.0f;
}

/* e^x = 2^n e^r, n = round(x / ln 2). Largest error 1.02 / 0.99 ulp. Arguments are clamped to [-104, 89], whose ends
 * give 0 and Inf. 2^n is applied as two normal factors: the first product is exact, the second rounds once if it is
 * subnormal. */
static mtan_real real_exp(mtan_real x) {
    mtan_real t, p;
    uint32_t e;
    x = x > EXP_MOST ? EXP_MOST : x;
    x = x < EXP_LEAST ? EXP_LEAST : x;
    t = MTAN_FMA(x, LOG2_E, ROUND);
    p = real_exp_reduced(real_exp_rest(x, t - ROUND));
    e = real_bits(t) - ROUND_BITS + 2 * 127; /* n plus the bias of both factors: positive */
    return p * real_from_bits((e >> 1) << 23) * real_from_bits((e - (e >> 1)) << 23);
}

/* The exponent n of e^x = e^r 2^n. Adding and subtracting 2^23 with the sign of x rounds to an integer for every x up
 * to 2e38, because from 2^23 on floats are at least 1 apart. */
static mtan_real real_exponent(mtan_real x) {
    const mtan_real whole = real_from_bits((real_bits(x) & SIGN_BIT) | WHOLE_BITS);
    return MTAN_FMA(x, LOG2_E, whole) - whole;
}

/* The significand e^r of e^x = e^r 2^n, from 0.7 to 1.42. Where x is so large that r is only rounding error, r is
 * clamped to its interval; the result then belongs to an argument that differs from x by at most its last place. */
static mtan_real real_significand(mtan_real x, mtan_real exponent) {
    mtan_real r = real_exp_rest(x, exponent);
    r = r > REST_MOST ? REST_MOST : r;
    return real_exp_reduced(r < -REST_MOST ? -REST_MOST : r);
}

/* 2^k for an integer k up to 127; 0 where 2^k is subnormal */
static mtan_real real_power(mtan_real k) {
    k = k < -127.0f ? -127.0f : k;
    return real_from_bits(real_bits(k + (ROUND + 127.0f)) << 23);
}

/* k ln 2 + log(1 + x) for an integer k, smallest terms first: x - x^2 / 2 + x^3 p(x). */
static mtan_real real_log_reduced(mtan_real x, mtan_real k) {
    const mtan_real z = x * x;
    LOG_POLYNOMIAL(START, STEP)
    p = MTAN_FMA(p * x, z, k * LN2_LO);
    p = MTAN_FMA(-0.5f, z, p) + x;
    return MTAN_FMA(k, LN2_HI, p);
}

/* log(x 2^base) for an integer base, x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). The result depends on the
 * product alone, however its power of two is divided between x and base. */
static mtan_real real_log_under(mtan_real x, mtan_real base) {
    int tiny = x < LEAST_NORMAL; /* subnormal: scale by 2^23 */
    uint32_t u = real_bits(tiny ? x * 8388608.0f : x) + (ONE_BITS - ROOT_HALF_BITS);
    mtan_real k = real_from_bits(ROUND_BITS + (u >> 23)) - (ROUND + 127.0f);
    mtan_real f = real_from_bits((u & FRACTION_BITS) + ROOT_HALF_BITS) - 1.0f;
    mtan_real y = real_log_reduced(f, (tiny ? k - 23.0f : k) + base);
    y = x > 0 ? y : (x == 0 ? real_from_bits(SIGN_BIT | INFINITE_BITS) : real_from_bits(NAN_BITS));
    return x <= LARGEST ? y : x; /* Inf and NaN are their own logarithms */
}

/* Largest error 0.87 / 0.87 ulp. */
static mtan_real real_log(mtan_real x) {
    return real_log_under(x, 0);
}

/* x - n pi/2 for an integer 0 <= n < 2^16, rounded once, however close x is to the multiple (the closest is 2^-28
 * away). Cody and Waite's method: pi/2 is split into pieces so that products and differences are exact where the result
 * is small. Where the result is large and a difference rounds, its error e is carried into the next difference. The
 * neglected part is below 2^-56. */
static mtan_real real_reduce(mtan_real x, mtan_real n) {
#if MTAN_FUSED
    mtan_real a = MTAN_FMA(n, -HALF_PI_1, x), p = n * -HALF_PI_2, r = a + p, e = (a - r) + p;
    return r + (e + MTAN_FMA(n, -HALF_PI_3, MTAN_FMA(n, -HALF_PI_2, -p)));
#else
    const mtan_real piece[3] = {HALF_PI_SHORT_3, HALF_PI_SHORT_4, HALF_PI_SHORT_5};
    mtan_real r = (x - n * HALF_PI_SHORT_1) - n * HALF_PI_SHORT_2, e = 0;
    int i;
    for (i = 0; i < 3; i++) {
        mtan_real c = n * piece[i] - e, next = r - c;
        e = (r - next) - c;
        r = next;
    }
    return r + (e - n * HALF_PI_SHORT_6);
#endif
}

/* sin(r) and cos(r) of a reduced argument */
static mtan_real real_sin_reduced(mtan_real r) {
    const mtan_real x = r * r;
    SIN_POLYNOMIAL(START, STEP)
    return MTAN_FMA(p, r * x, r);
}

static mtan_real real_cos_reduced(mtan_real r) {
    const mtan_real x = r * r;
    COS_POLYNOMIAL(START, STEP)
    return MTAN_FMA(p, x * x, x * -0.5f) + 1.0f;
}

/* sin(x + quarter pi/2) for x >= 0: x = n pi/2 + r, and n + quarter selects one of +-sin(r), +-cos(r).
 * Beyond ANGLE_MOST a finite x counts as 0; Inf and NaN give NaN. */
static mtan_real real_sine(mtan_real x, uint32_t quarter) {
    mtan_real t, r, s, c;
    x = x <= ANGLE_MOST ? x : x - x;
    t = MTAN_FMA(x, TWO_OVER_PI, ROUND);
    r = real_reduce(x, t - ROUND);
    s = real_sin_reduced(r), c = real_cos_reduced(r);
    quarter += real_bits(t);
    return real_from_bits(real_bits(quarter & 1 ? c : s) ^ (quarter & 2) << 30);
}

/* Largest error 1.55 / 1.55 ulp for |x| <= 1e5; beyond, 0 with the sign of x. */
static mtan_real real_sin(mtan_real x) {
    return real_times_sign(real_sine(real_abs(x), 0), x);
}

/* Largest error 1.56 / 1.54 ulp for |x| <= 1e5; beyond, 1. */
static mtan_real real_cos(mtan_real x) {
    return real_sine(real_abs(x), 1);
}

/* a + a^3 p(a^2) near 0; further out 1 - 2 / (e^2a + 1), where little cancels. Largest error 1.34 / 1.34 ulp. */
static mtan_real real_tanh(mtan_real argument) {
    const mtan_real a = real_abs(argument), x = a * a, large = 1.0f - 2.0f / (real_exp(a + a) + 1.0f);
    TANH_POLYNOMIAL(START, STEP)
    p = MTAN_FMA(p, x * a, a);
    return real_times_sign(a < TANH_NEAR ? p : large, argument);
}

/* 1 / (1 + e^-x), with e^-|x| so that nothing overflows and small results keep their digits.
 * Largest error 2.41 / 2.41 ulp. */
static mtan_real real_sigmoid(mtan_real x) {
    mtan_real e = real_exp(-real_abs(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* log(1 + e^x) = max(x, 0) + log(1 + e), e = e^-|x| in [0, 1]; 1 + e is not formed, it would lose a small e.
 * Largest error 1.71 / 1.71 ulp. */
static mtan_real real_softplus(mtan_real x) {
    mtan_real e = real_exp(-real_abs(x));
    int big = e > SOFTPLUS_LARGE;
    mtan_real y = real_log_reduced(big ? MTAN_FMA(e, 0.5f, -0.5f) : e, big ? 1.0f : 0.0f);
    return (x > 0 ? x : 0.0f) + y;
}

/* Correctly rounded. With x = m 2^2h, m in [1, 4), Heron's rule gives the root of m: it starts from a line, whose error
 * is below 3 %; two steps reduce it to 4e-4 and 1e-7, and the third leaves only rounding errors. As a 24-bit integer
 * the root is off by at most one. It is the nearest if (root - 1/2)^2 < square < (root + 1/2)^2. These bounds are
 * integers plus 1/4, so integer comparisons decide. */
static mtan_real real_sqrt(mtan_real x) {
    int tiny = x < LEAST_NORMAL; /* subnormal: scale by 2^24 and undo 2^12 */
    uint32_t u = real_bits(tiny ? x * 16777216.0f : x), exponent = u >> 23, even = exponent & 1;
    mtan_real m = real_from_bits((u & FRACTION_BITS) | (even ? ONE_BITS : 0x40000000u));
    mtan_real s = (m + 2.0f) * 0.343145758f, y;
    uint64_t square = (uint64_t)((u & FRACTION_BITS) | 0x00800000u) << (even ? 23 : 24), root;
    if (!(x > 0 && x <= LARGEST)) {
        return x < 0 ? real_from_bits(NAN_BITS) : x; /* zeros, Inf and NaN are their own roots */
    }
    s = 0.5f * (s + m / s);
    s = 0.5f * (s + m / s);
    s = 0.5f * (s + m / s);
    root = (uint32_t)(s * 8388608.0f);
    if (square > root * root + root) {
        root++;
    } else if (square <= root * root - root) {
        root--;
    }
    y = real_from_bits((uint32_t)root + ((((exponent + 1) >> 1) + 62) << 23));
    return tiny ? y * 2.44140625e-4f : y;
}

#endif

/* e^x / 2^base for an integer base not below the exponent of x. The base only scales the result by a power of two: a
 * sum of such terms that is rescaled from base to base has the same digits as a sum made under the last base. */
static mtan_real real_exp_under(mtan_real x, mtan_real base) {
    const mtan_real n = real_exponent(x);
    return real_significand(x, n) * real_power(n - base);
}

/* ==== 3. Kernels ==================================================================================================
 * The scalar kernels specify every backend. A sum has one accumulator and runs in ascending index; products are added
 * by MTAN_FMA. A backend file may define MTAN_BACKEND and MTAN_KERNELS_ONLY and include this file. It then has all
 * kernels, compiled with its own flags, in a table of its own name. */

#ifndef MTAN_BACKEND
#define MTAN_BACKEND mtan_backend_scalar
#define MTAN_BACKEND_NAME "scalar"
#endif

/* The table of the backend being compiled. Kernels for a batch call elementary kernels through it, so that a faster
 * elementary kernel speeds up every kernel built on it. */
extern const mtan_backend MTAN_BACKEND;
static const mtan_backend *const kernels = &MTAN_BACKEND;

static void scalar_map(mtan_function f, mtan_real *y, const mtan_real *x, size_t n) {
    size_t i;
    switch (f) {
    case MTAN_EXP:
        for (i = 0; i < n; i++) y[i] = real_exp(x[i]);
        break;
    case MTAN_LOG:
        for (i = 0; i < n; i++) y[i] = real_log(x[i]);
        break;
    case MTAN_SIN:
        for (i = 0; i < n; i++) y[i] = real_sin(x[i]);
        break;
    case MTAN_COS:
        for (i = 0; i < n; i++) y[i] = real_cos(x[i]);
        break;
    case MTAN_TANH:
        for (i = 0; i < n; i++) y[i] = real_tanh(x[i]);
        break;
    case MTAN_SIGMOID:
        for (i = 0; i < n; i++) y[i] = real_sigmoid(x[i]);
        break;
    case MTAN_SOFTPLUS:
        for (i = 0; i < n; i++) y[i] = real_softplus(x[i]);
        break;
    case MTAN_SQRT:
        for (i = 0; i < n; i++) y[i] = real_sqrt(x[i]);
        break;
    }
}

static void scalar_exp_parts(mtan_real *significand, mtan_real *exponent, const mtan_real *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        exponent[i] = real_exponent(x[i]);
        significand[i] = real_significand(x[i], exponent[i]);
    }
}

static void scalar_fill(mtan_real *y, size_t n, mtan_real value) {
    for (size_t i = 0; i < n; i++) y[i] = value;
}

static void scalar_scale(mtan_real *y, size_t ldy, int32_t rows, int32_t cols, mtan_real factor) {
    for (int32_t r = 0; r < rows; r++, y += ldy)
        for (int32_t c = 0; c < cols; c++) y[c] *= factor;
}

static double scalar_sum(const mtan_real *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i];
    return sum;
}

static double scalar_sum_squares(const mtan_real *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

static void scalar_copy(mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols) {
    for (int32_t r = 0; r < rows; r++, y += ldy, x += ldx) memcpy(y, x, (size_t)cols * sizeof *y);
}

static void scalar_add(mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols) {
    for (int32_t r = 0; r < rows; r++, y += ldy, x += ldx)
        for (int32_t c = 0; c < cols; c++) y[c] += x[c];
}

/* ---- matrix products: c[i][j] = (add ? c[i][j] : 0) + sum over p ---- */

static void start_product(mtan_real *c, size_t ldc, int32_t m, int32_t n, int32_t add) {
    if (add) return;
    for (int32_t i = 0; i < m; i++) scalar_fill(c + (size_t)i * ldc, (size_t)n, 0);
}

/* a (m, k), b (k, n) */
static void scalar_product_nn(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                              int32_t m, int32_t n, int32_t k, int32_t add) {
    start_product(c, ldc, m, n, add);
    for (int32_t i = 0; i < m; i++, c += ldc, a += lda)
        for (int32_t p = 0; p < k; p++) {
            const mtan_real s = a[p], *row = b + (size_t)p * ldb;
            for (int32_t j = 0; j < n; j++) c[j] = MTAN_FMA(s, row[j], c[j]);
        }
}

/* a (m, k), b (n, k): computing four outputs at a time hides the latency of the additions */
static void scalar_product_nt(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                              int32_t m, int32_t n, int32_t k, int32_t add) {
    start_product(c, ldc, m, n, add);
    for (int32_t i = 0; i < m; i++, c += ldc, a += lda) {
        int32_t j = 0;
        for (; j + 4 <= n; j += 4) {
            const mtan_real *b0 = b + (size_t)j * ldb, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
            mtan_real s0 = c[j], s1 = c[j + 1], s2 = c[j + 2], s3 = c[j + 3];
            for (int32_t p = 0; p < k; p++) {
                s0 = MTAN_FMA(a[p], b0[p], s0);
                s1 = MTAN_FMA(a[p], b1[p], s1);
                s2 = MTAN_FMA(a[p], b2[p], s2);
                s3 = MTAN_FMA(a[p], b3[p], s3);
            }
            c[j] = s0, c[j + 1] = s1, c[j + 2] = s2, c[j + 3] = s3;
        }
        for (; j < n; j++) {
            const mtan_real *row = b + (size_t)j * ldb;
            mtan_real s = c[j];
            for (int32_t p = 0; p < k; p++) s = MTAN_FMA(a[p], row[p], s);
            c[j] = s;
        }
    }
}

/* a (k, m), b (k, n) */
static void scalar_product_tn(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                              int32_t m, int32_t n, int32_t k, int32_t add) {
    start_product(c, ldc, m, n, add);
    for (int32_t p = 0; p < k; p++, a += lda, b += ldb)
        for (int32_t i = 0; i < m; i++) {
            const mtan_real s = a[i];
            mtan_real *row = c + (size_t)i * ldc;
            for (int32_t j = 0; j < n; j++) row[j] = MTAN_FMA(s, b[j], row[j]);
        }
}

/* The scalar backend packs b (n, k) as its plain transpose (k, n). */
static size_t scalar_pack_count(int32_t n, int32_t k) {
    return (size_t)n * (size_t)k;
}

static void scalar_pack(mtan_real *packed, const mtan_real *b, size_t bj, size_t bp, int32_t n, int32_t k) {
    for (int32_t p = 0; p < k; p++)
        for (int32_t j = 0; j < n; j++) *packed++ = b[(size_t)j * bj + (size_t)p * bp];
}

static void scalar_product_packed(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed,
                                  int32_t m, int32_t n, int32_t k, int32_t add, int32_t last_first) {
    (void)last_first;
    scalar_product_nn(c, ldc, a, lda, packed, (size_t)n, m, n, k, add);
}

/* ---- int8 products: c = [c +] a b^T ----
 * A row of b is integers in -127..127 times one scale. A row of a is quantised in blocks of INT8_DEPTH terms: integers
 * in -32767..32767 times one scale per block, the block's largest magnitude / 32767. An int32_t holds the sum of a
 * block's products, as 512 x 127 x 32767 < 2^31. That sum is exact in any order, and one MTAN_FMA adds it to c. */

/* Adding and subtracting TO_WHOLE, where the spacing of reals is 1, rounds to an integer, ties to even. */
#define TO_WHOLE ((mtan_real)(sizeof(mtan_real) == sizeof(float) ? 12582912.0 : 6755399441055744.0))

/* The largest magnitude in a row; NaN if an element is not finite; 0 if all elements are below 2^-100, because the
 * inverse of their scale might overflow. */
static mtan_real row_magnitude(const mtan_real *x, size_t n) {
    mtan_real largest = 0, bad = 0;
    for (size_t i = 0; i < n; i++) {
        const mtan_real a = x[i] < 0 ? -x[i] : x[i];
        bad += x[i] - x[i];
        largest = a > largest ? a : largest;
    }
    if (!(bad == 0)) return bad;
    return largest < (mtan_real)0x1p-100 ? 0 : largest;
}

/* The scale of a row of weights, NaN if a weight is not finite. It is rounded to float in the double build too, because
 * files store floats. */
static mtan_real weight_scale(const mtan_real *x, size_t n) {
    return (mtan_real)(float)(row_magnitude(x, n) / 127);
}

/* The integer nearest to x / scale */
static int8_t quantize_weight(mtan_real x, mtan_real scale) {
    return (int8_t)(scale > 0 ? (x / scale + TO_WHOLE) - TO_WHOLE : 0);
}

/* Quantises up to INT8_DEPTH activations and returns their scale. */
static mtan_real quantize_block(int16_t *q, const mtan_real *x, size_t n) {
    const mtan_real largest = row_magnitude(x, n), inverse = largest > 0 ? 32767 / largest : 0;
    for (size_t i = 0; i < n; i++) q[i] = (int16_t)(largest > 0 ? (x[i] * inverse + TO_WHOLE) - TO_WHOLE : 0);
    return largest / 32767;
}

/* Layout: the scales, then the int8 rows one after another. */
static size_t scalar_pack_int8_count(int32_t n, int32_t k) {
    return (size_t)n + ((size_t)n * (size_t)k + sizeof(mtan_real) - 1) / sizeof(mtan_real);
}

static void scalar_pack_int8(mtan_real *packed, const mtan_real *b, size_t ldb, int32_t n, int32_t k) {
    int8_t *q = (int8_t *)(void *)(packed + n);
    for (int32_t j = 0; j < n; j++, b += ldb) {
        packed[j] = weight_scale(b, (size_t)k);
        for (int32_t p = 0; p < k; p++) *q++ = quantize_weight(b[p], packed[j]);
    }
}

/* sum[i] = a times row i of b, for four rows k bytes apart: a is loaded once for all of them. A header included before
 * this file may define MTAN_INT8_SUMS and a version for its CPU (simd/mtan_dsp.h). */
#ifndef MTAN_INT8_SUMS
static void int8_sums(int32_t sum[4], const int16_t *a, const int8_t *b, size_t k, size_t n) {
    const int8_t *b0 = b, *b1 = b0 + k, *b2 = b1 + k, *b3 = b2 + k;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (size_t p = 0; p < n; p++) {
        s0 += a[p] * b0[p];
        s1 += a[p] * b1[p];
        s2 += a[p] * b2[p];
        s3 += a[p] * b3[p];
    }
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}
#endif

static int32_t int8_sum(const int16_t *a, const int8_t *b, size_t n) {
    int32_t sum = 0;
    for (size_t p = 0; p < n; p++) sum += a[p] * b[p];
    return sum;
}

/* Adds one block of terms to one row of c (n). b points at the block's first term; its rows are k bytes apart. */
static void int8_row(mtan_real *c, const int16_t *q, mtan_real factor, const mtan_real *scale, const int8_t *b,
                     size_t k, int32_t n, size_t terms) {
    int32_t sum[4], j = 0;
    for (; j + 4 <= n; j += 4, b += 4 * k) {
        int8_sums(sum, q, b, k, terms);
        for (int32_t i = 0; i < 4; i++) c[j + i] = MTAN_FMA((mtan_real)sum[i], scale[j + i] * factor, c[j + i]);
    }
    for (; j < n; j++, b += k) c[j] = MTAN_FMA((mtan_real)int8_sum(q, b, terms), scale[j] * factor, c[j]);
}

static size_t int8_terms(size_t k, size_t first) {
    return k - first < INT8_DEPTH ? k - first : INT8_DEPTH;
}

/* b (n, k) and its scales (n), not packed */
static void scalar_product_nt_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b,
                                   const mtan_real *scale, int32_t m, int32_t n, int32_t k, int32_t add) {
    const size_t K = (size_t)k;
    int16_t q[INT8_DEPTH];
    start_product(c, ldc, m, n, add);
    for (int32_t i = 0; i < m; i++, c += ldc, a += lda)
        for (size_t p = 0; p < K; p += INT8_DEPTH) {
            const mtan_real factor = quantize_block(q, a + p, int8_terms(K, p));
            int8_row(c, q, factor, scale, b + p, K, n, int8_terms(K, p));
        }
}

static void scalar_product_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed,
                                int32_t m, int32_t n, int32_t k, int32_t add) {
    scalar_product_nt_int8(c, ldc, a, lda, (const int8_t *)(const void *)(packed + n), packed, m, n, k, add);
}

/* sum[i] = a times column i of b, for four columns; the rows of b are n bytes apart */
static void int8_columns(int32_t sum[4], const int16_t *a, const int8_t *b, size_t n, size_t terms) {
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (size_t p = 0; p < terms; p++, b += n) {
        s0 += a[p] * b[0];
        s1 += a[p] * b[1];
        s2 += a[p] * b[2];
        s3 += a[p] * b[3];
    }
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

/* c = [c +] a b, with b (k, n) not packed. The scales of b's rows are not applied here: the caller has multiplied the
 * columns of a by them. */
static void scalar_product_nn_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b, int32_t m,
                                   int32_t n, int32_t k, int32_t add) {
    const size_t K = (size_t)k, N = (size_t)n;
    int16_t q[INT8_DEPTH];
    int32_t sum[4];
    start_product(c, ldc, m, n, add);
    for (int32_t i = 0; i < m; i++, c += ldc, a += lda)
        for (size_t p = 0; p < K; p += INT8_DEPTH) {
            const size_t terms = int8_terms(K, p);
            const mtan_real factor = quantize_block(q, a + p, terms);
            const int8_t *from = b + p * N;
            size_t j = 0;
            for (; j + 4 <= N; j += 4) {
                int8_columns(sum, q, from + j, N, terms);
                for (size_t l = 0; l < 4; l++) c[j + l] = MTAN_FMA((mtan_real)sum[l], factor, c[j + l]);
            }
            for (; j < N; j++) {
                sum[0] = 0;
                for (size_t t = 0; t < terms; t++) sum[0] += q[t] * from[t * N + j];
                c[j] = MTAN_FMA((mtan_real)sum[0], factor, c[j]);
            }
        }
}

/* ---- time embedding: phi(t)[0] = w0 t + b0, phi(t)[i] = sin(w_i t + b_i) ---- */

static void scalar_embed_forward(mtan_real *y, const mtan_real *time, const mtan_real *lw, const mtan_real *lb,
                                 const mtan_real *pw, const mtan_real *pb, int32_t times, int32_t embed) {
    for (int32_t i = 0; i < times; i++, y += embed) {
        y[0] = MTAN_FMA(lw[0], time[i], lb[0]);
        for (int32_t e = 1; e < embed; e++) y[e] = real_sin(MTAN_FMA(pw[e - 1], time[i], pb[e - 1]));
    }
}

static void scalar_embed_backward(mtan_real *dlw, mtan_real *dlb, mtan_real *dpw, mtan_real *dpb, const mtan_real *dy,
                                  const mtan_real *time, const mtan_real *pw, const mtan_real *pb, int32_t times,
                                  int32_t embed) {
    for (int32_t i = 0; i < times; i++, dy += embed) {
        dlw[0] = MTAN_FMA(dy[0], time[i], dlw[0]);
        dlb[0] += dy[0];
        for (int32_t e = 1; e < embed; e++) {
            const mtan_real d = dy[e] * real_cos(MTAN_FMA(pw[e - 1], time[i], pb[e - 1]));
            dpw[e - 1] = MTAN_FMA(d, time[i], dpw[e - 1]);
            dpb[e - 1] += d;
        }
    }
}

/* The positional encoding (Q8): phi(t)[2i] = sin(scale t base^(-2i/E)), phi(t)[2i+1] = cos of the same */
static void scalar_embed_fixed(mtan_real *y, const mtan_real *time, mtan_real base, mtan_real scale, int32_t times,
                               int32_t embed) {
    const mtan_real slope = -real_log(base) / (mtan_real)embed;
    for (int32_t i = 0; i < times; i++, y += embed)
        for (int32_t e = 0; e < embed; e += 2) {
            const mtan_real angle = scale * time[i] * real_exp((mtan_real)e * slope);
            y[e] = real_sin(angle);
            y[e + 1] = real_cos(angle);
        }
}

/* ---- elementwise ---- */

/* NaN stays NaN, as in torch. Turned into 0, it would end up as a valid-looking prediction. */
static void scalar_relu_forward(mtan_real *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = y[i] <= 0 ? 0 : y[i];
}

static void scalar_relu_backward(mtan_real *dy, const mtan_real *y, size_t n) {
    for (size_t i = 0; i < n; i++) dy[i] = y[i] > 0 ? dy[i] : 0;
}

static void scalar_tanh_backward(mtan_real *dy, const mtan_real *y, size_t n) {
    for (size_t i = 0; i < n; i++) dy[i] *= 1 - y[i] * y[i];
}

static void scalar_softplus_backward(mtan_real *dx, const mtan_real *dy, const mtan_real *x, size_t n) {
    for (size_t i = 0; i < n; i++) dx[i] = MTAN_FMA(dy[i], real_sigmoid(x[i]), dx[i]);
}

static mtan_real row_max(const mtan_real *x, int32_t n) {
    mtan_real max = x[0];
    for (int32_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

static void scalar_softmax_forward(mtan_real *y, int32_t rows, int32_t cols) {
    for (int32_t r = 0; r < rows; r++, y += cols) {
        const mtan_real max = row_max(y, cols);
        mtan_real sum = 0;
        for (int32_t c = 0; c < cols; c++) sum += y[c] = real_exp(y[c] - max);
        for (int32_t c = 0; c < cols; c++) y[c] /= sum;
    }
}

/* dx = y (dy - sum of y dy) */
static void scalar_softmax_backward(mtan_real *dy, const mtan_real *y, int32_t rows, int32_t cols) {
    for (int32_t r = 0; r < rows; r++, y += cols, dy += cols) {
        mtan_real sum = 0;
        for (int32_t c = 0; c < cols; c++) sum = MTAN_FMA(y[c], dy[c], sum);
        for (int32_t c = 0; c < cols; c++) dy[c] = y[c] * (dy[c] - sum);
    }
}

/* ---- sparse attention: y[q][d] = sum of w x / sum of w over the events of channel d, w = exp(score) / 2^base ----
 * The score depends on (time, query) alone, so its exponential is taken once for all channels. The base of a query is
 * the exponent of its largest score over all times. A channel observed only at times with much lower scores would lose
 * precision to underflow: if its total is below MTAN_FAR, it is summed again under a base of its own. A base is a power
 * of two, so the choice of base changes no digit while nothing underflows. A stream, whose bases rise as observations
 * arrive (section 10), therefore gives the same bits.
 * No w x underflows if a channel has up to 2^24 weights that span at most 2^48 and its values are 0 or above 2^-22, as
 * MTAN_FAR 2^-24 2^-48 2^-22 = 2^-126. A weight that does underflow is below 2^-94 of its channel's total. */
#define MTAN_FAR ((mtan_real)ATTEND_FAR)

/* One record and one head. */
typedef struct attend_record {
    const mtan_real *score;     /* (L, Q): key-major, so that the lanes of a vector are queries */
    mtan_real *weight;          /* (L, Q): exp(score) / 2^base, the base of a query the exponent of its largest score */
    mtan_real *total;           /* (D, Q): sum of weights; negative where the channel needed a base of its own */
    mtan_real *scratch;         /* (2, Q) */
    const int32_t *begin, *row; /* (D + 1), events; D counts the channels that are not static */
    const mtan_real *value;
    const int32_t *first; /* (Q) y's row of query q is first[q] + position */
    int32_t position, keys, queries, channels;
} attend_record;

/* Drops const from weight and total, because the forward pass writes them. */
static attend_record attend_at(const mtan_batch *b, int32_t position, const mtan_real *score, const mtan_real *weight,
                               const mtan_real *total, mtan_real *scratch) {
    attend_record a;
    a.score = score + b->score0[position];
    a.weight = (mtan_real *)(uintptr_t)weight + b->score0[position];
    a.channels = b->channels - b->statics;
    a.total = (mtan_real *)(uintptr_t)total + (size_t)position * (size_t)a.channels * (size_t)b->steps;
    a.scratch = scratch;
    a.begin = b->begin + (size_t)position * ((size_t)b->channels + 1) + b->statics;
    a.row = b->row, a.value = b->value;
    a.first = b->first, a.position = position;
    a.keys = b->time0[position + 1] - b->time0[position];
    a.queries = b->length[position];
    return a;
}

static mtan_real own_base(const attend_record *a, int32_t channel, int32_t q) {
    mtan_real max = a->score[(size_t)a->row[a->begin[channel]] * (size_t)a->queries + (size_t)q];
    for (int32_t j = a->begin[channel] + 1; j < a->begin[channel + 1]; j++) {
        const mtan_real s = a->score[(size_t)a->row[j] * (size_t)a->queries + (size_t)q];
        max = s > max ? s : max;
    }
    return real_exponent(max);
}

/* The weight of event j for query q: under the channel's own base if far, else under the query's. */
static mtan_real event_weight(const attend_record *a, int32_t j, int32_t q, int32_t far, mtan_real base) {
    const size_t at = (size_t)a->row[j] * (size_t)a->queries + (size_t)q;
    return far ? real_exp_under(a->score[at], base) : a->weight[at];
}

/* The exponent of each query's largest score, for a record that has observations. */
static void attend_bases(const attend_record *a, mtan_real *base) {
    const size_t Q = (size_t)a->queries;
    memcpy(base, a->score, Q * sizeof *base);
    for (size_t i = 1; i < (size_t)a->keys; i++)
        for (size_t q = 0; q < Q; q++) base[q] = a->score[i * Q + q] > base[q] ? a->score[i * Q + q] : base[q];
    for (size_t q = 0; q < Q; q++) base[q] = real_exponent(base[q]);
}

static void attend_exponentials(const attend_record *a) {
    const size_t Q = (size_t)a->queries;
    mtan_real *base = a->scratch;
    if (a->keys == 0) return;
    attend_bases(a, base);
    for (size_t i = 0; i < (size_t)a->keys; i++)
        for (size_t q = 0; q < Q; q++) a->weight[i * Q + q] = real_exp_under(a->score[i * Q + q], base[q]);
}

static void attend_far(const attend_record *a, int32_t channel, int32_t q, mtan_real *num, mtan_real *total) {
    const mtan_real base = own_base(a, channel, q);
    mtan_real n = 0, t = 0;
    for (int32_t j = a->begin[channel]; j < a->begin[channel + 1]; j++) {
        const mtan_real w = event_weight(a, j, q, 1, base);
        n = MTAN_FMA(w, a->value[j], n);
        t += w;
    }
    *num = n;
    *total = -t;
}

static void attend_one(const attend_record *a, mtan_real *y, size_t ldy) {
    const int32_t Q = a->queries;
    attend_exponentials(a);
    for (int32_t d = 0; d < a->channels; d++) {
        mtan_real *num = a->scratch, *total = a->total + (size_t)d * (size_t)Q;
        scalar_fill(num, (size_t)Q, 0);
        scalar_fill(total, (size_t)Q, 0);
        for (int32_t j = a->begin[d]; j < a->begin[d + 1]; j++) {
            const mtan_real *w = a->weight + (size_t)a->row[j] * (size_t)Q, x = a->value[j];
            for (int32_t q = 0; q < Q; q++) {
                num[q] = MTAN_FMA(w[q], x, num[q]);
                total[q] += w[q];
            }
        }
        for (int32_t q = 0; q < Q; q++) {
            mtan_real *out = y + (size_t)(a->first[q] + a->position) * ldy + d;
            if (a->begin[d] == a->begin[d + 1]) {
                *out = 0; /* Q4: a channel without observation gives 0 */
                continue;
            }
            if (total[q] < MTAN_FAR) attend_far(a, d, q, &num[q], &total[q]);
            *out = num[q] / (total[q] < 0 ? -total[q] : total[q]);
        }
    }
}

/* Adds to dscore for a channel's events and query q, under whichever base the channel's total has. */
static void attend_slopes_far(const attend_record *a, mtan_real *dscore, int32_t channel, int32_t q, mtan_real share,
                              mtan_real mean) {
    const int32_t far = a->total[(size_t)channel * (size_t)a->queries + (size_t)q] < 0;
    const mtan_real base = far ? own_base(a, channel, q) : 0;
    for (int32_t j = a->begin[channel]; j < a->begin[channel + 1]; j++) {
        mtan_real *ds = dscore + (size_t)a->row[j] * (size_t)a->queries + (size_t)q;
        *ds = MTAN_FMA(event_weight(a, j, q, far, base) * share, a->value[j] - mean, *ds);
    }
}

/* dscore[i][q] += w / total * dy[q][d] * (x - y[q][d]) */
static void attend_one_back(const attend_record *a, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,
                            size_t ldy) {
    const int32_t Q = a->queries;
    mtan_real *share = a->scratch, *mean = share + Q;
    for (int32_t d = 0; d < a->channels; d++) {
        const mtan_real *total = a->total + (size_t)d * (size_t)Q;
        if (a->begin[d] == a->begin[d + 1]) continue;
        for (int32_t q = 0; q < Q; q++) {
            const size_t r = (size_t)(a->first[q] + a->position);
            share[q] = dy[r * ldy + (size_t)d] / (total[q] < 0 ? -total[q] : total[q]);
            mean[q] = y[r * ldy + (size_t)d];
        }
        for (int32_t j = a->begin[d]; j < a->begin[d + 1]; j++) {
            const mtan_real *w = a->weight + (size_t)a->row[j] * (size_t)Q;
            mtan_real *ds = dscore + (size_t)a->row[j] * (size_t)Q;
            for (int32_t q = 0; q < Q; q++)
                if (!(total[q] < 0)) ds[q] = MTAN_FMA(w[q] * share[q], a->value[j] - mean[q], ds[q]);
        }
        for (int32_t q = 0; q < Q; q++)
            if (total[q] < 0) attend_slopes_far(a, dscore, d, q, share[q], mean[q]);
    }
}

static void attend_one_weights(const attend_record *a, mtan_real *weight, int32_t channel) {
    for (int32_t q = 0; q < a->queries; q++) {
        const mtan_real total = a->total[(size_t)channel * (size_t)a->queries + (size_t)q];
        const int32_t far = total < 0;
        const mtan_real base = far ? own_base(a, channel, q) : 0;
        mtan_real *out = weight + (size_t)q * (size_t)a->keys;
        scalar_fill(out, (size_t)a->keys, 0);
        for (int32_t j = a->begin[channel]; j < a->begin[channel + 1]; j++)
            out[a->row[j]] += event_weight(a, j, q, far, base) / (far ? -total : total);
    }
}

typedef void attend_function(const attend_record *a, mtan_real *y, size_t ldy);
typedef void attend_back_function(const attend_record *a, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,
                                  size_t ldy);

static void attend_each(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *score, mtan_real *weight,
                        mtan_real *total, mtan_real *scratch, attend_function *one) {
    for (int32_t i = 0; i < b->records; i++) {
        const attend_record a = attend_at(b, i, score, weight, total, scratch);
        one(&a, y, ldy);
    }
}

static void attend_each_back(const mtan_batch *b, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,
                             size_t ldy, const mtan_real *score, const mtan_real *weight, const mtan_real *total,
                             mtan_real *scratch, attend_back_function *one) {
    for (int32_t i = 0; i < b->records; i++) {
        const attend_record a = attend_at(b, i, score, weight, total, scratch);
        one(&a, dscore + b->score0[i], dy, y, ldy);
    }
}

static void scalar_attend_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *score,
                                  mtan_real *weight, mtan_real *total, mtan_real *scratch) {
    attend_each(b, y, ldy, score, weight, total, scratch, attend_one);
}

static void scalar_attend_backward(const mtan_batch *b, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,
                                   size_t ldy, const mtan_real *score, const mtan_real *weight, const mtan_real *total,
                                   mtan_real *scratch) {
    attend_each_back(b, dscore, dy, y, ldy, score, weight, total, scratch, attend_one_back);
}

static void scalar_attend_weights(const mtan_batch *b, mtan_real *shown, const mtan_real *score,
                                  const mtan_real *weight, const mtan_real *total, int32_t channel) {
    for (int32_t i = 0; i < b->records; i++) {
        const attend_record a = attend_at(b, i, score, weight, total, NULL);
        attend_one_weights(&a, shown + b->score0[i], channel - b->statics);
    }
}

/* log(|x| 2^base). It joins the exponent of x and base first, so that the choice of base changes no bit. */
static void scalar_log_under(mtan_real *y, const mtan_real *x, const mtan_real *base, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = real_log_under(real_abs(x[i]), base[i]);
}

/* ---- local statistics: attention that yields more than a mean ----
 * With w as above, let u = x - the channel's first value, d = rate (t - r) the distance in time from the reference
 * point r, and [v] the mean of v over a channel's events, weighted by w. The features of a channel are
 *    mean       [x]
 *    spread     sqrt(var + e^2) - e           var = [u u] - [u]^2, or 0;  e = 1/32, so that its slope is finite
 *    intensity  log(1 + sum of exp(score))
 *    position   [d] rho                       rho = 1 / sqrt(1 + [d d]); -1: all events long before r, 1: long after
 *    trend      ([d u] - [d] [u]) rho         in magnitude at most the standard deviation
 *    shift      -trend position               what the trend adds to the mean at r itself
 * The observations bound all of them, and all are 0 for a channel without observations. config.statistics selects them;
 * the mean is always there. */

enum { MOMENT_X, MOMENT_W, MOMENT_UU, MOMENT_D, MOMENT_DD, MOMENT_DU };
#define SPREAD_LEAST ((mtan_real)0.03125)

/* How many features a channel has. */
static int32_t statistics_count(int32_t statistics) {
    return 1 + !!(statistics & MTAN_SPREAD) + !!(statistics & MTAN_INTENSITY) + (statistics & MTAN_SLOPE ? 3 : 0);
}

static void scalar_moments_add(mtan_real *sums, size_t stride, const mtan_real *weight, const mtan_real *point,
                               size_t n, const mtan_moment *o) {
    const mtan_real u = o->value - o->origin, uu = u * u;
    for (size_t i = 0; i < n; i++, sums++) {
        const mtan_real w = weight[i], d = o->rate * (o->time - point[i]);
        sums[MOMENT_X * stride] = MTAN_FMA(w, o->value, sums[MOMENT_X * stride]);
        sums[MOMENT_W * stride] += w;
        sums[MOMENT_UU * stride] = MTAN_FMA(w, uu, sums[MOMENT_UU * stride]);
        sums[MOMENT_D * stride] = MTAN_FMA(w, d, sums[MOMENT_D * stride]);
        sums[MOMENT_DD * stride] = MTAN_FMA(w, d * d, sums[MOMENT_DD * stride]);
        sums[MOMENT_DU * stride] = MTAN_FMA(w, d * u, sums[MOMENT_DU * stride]);
    }
}

/* The values that the features are made of. total is a magnitude: the sum of weights is negative under an own base. */
typedef struct local_moments {
    mtan_real total, mean, u, uu, d, dd, du; /* [ ] of the sums */
    mtan_real var, root, rho, cov;           /* root: sqrt(var + e^2) */
} local_moments;

static local_moments moments_at(const mtan_real *sums, size_t stride, mtan_real origin) {
    local_moments m;
    m.total = sums[MOMENT_W * stride] < 0 ? -sums[MOMENT_W * stride] : sums[MOMENT_W * stride];
    m.mean = sums[MOMENT_X * stride] / m.total;
    m.uu = sums[MOMENT_UU * stride] / m.total;
    m.d = sums[MOMENT_D * stride] / m.total;
    m.dd = sums[MOMENT_DD * stride] / m.total;
    m.du = sums[MOMENT_DU * stride] / m.total;
    m.u = m.mean - origin;
    m.var = m.uu - m.u * m.u;
    m.var = m.var > 0 ? m.var : 0;
    m.root = real_sqrt(m.var + SPREAD_LEAST * SPREAD_LEAST);
    m.rho = 1 / real_sqrt(1 + m.dd);
    m.cov = m.du - m.d * m.u;
    return m;
}

static void scalar_moments_read(mtan_real *y, const mtan_real *sums, size_t stride, const mtan_real *base,
                                mtan_real origin, int32_t statistics, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const local_moments m = moments_at(sums + i, stride, origin);
        const mtan_real position = m.d * m.rho, trend = m.cov * m.rho;
        mtan_real *out = y + i;
        *out = m.mean;
        if (statistics & MTAN_SPREAD) *(out += n) = m.root - SPREAD_LEAST;
        if (statistics & MTAN_INTENSITY) *(out += n) = real_softplus(real_log_under(m.total, base[i]));
        if (statistics & MTAN_SLOPE) out[n] = position, out[2 * n] = trend, out[3 * n] = -(trend * position);
    }
}

/* One record and one head. a.total holds the sums, (D, MTAN_MOMENTS, Q). */
typedef struct moments_record {
    attend_record a;
    const mtan_real *point, *time; /* (Q), (L) */
    mtan_real rate;
    int32_t statistics;
} moments_record;

static moments_record moments_of(const mtan_batch *b, int32_t position, const mtan_real *score, const mtan_real *weight,
                                 const mtan_real *sums, mtan_real *scratch, const mtan_real *point,
                                 const mtan_real *time, mtan_real rate, int32_t statistics) {
    moments_record r;
    r.a = attend_at(b, position, score, weight, sums, scratch);
    r.a.total =
        (mtan_real *)(uintptr_t)sums + (size_t)position * (size_t)r.a.channels * MTAN_MOMENTS * (size_t)b->steps;
    r.point = point + (b->point0 ? b->point0[position] : 0);
    r.time = time + b->time0[position];
    r.rate = rate;
    r.statistics = statistics;
    return r;
}

static mtan_real *moments_sums(const moments_record *r, int32_t channel) {
    return r->a.total + (size_t)channel * MTAN_MOMENTS * (size_t)r->a.queries;
}

static mtan_moment moment_of(const moments_record *r, int32_t channel, int32_t event) {
    mtan_moment o;
    o.value = r->a.value[event], o.origin = r->a.value[r->a.begin[channel]];
    o.time = r->time[r->a.row[event]], o.rate = r->rate;
    return o;
}

/* Makes the sums of one query under the channel's own base and returns the base. A negative sum of weights marks it. */
static mtan_real moments_far(const moments_record *r, int32_t channel, int32_t q) {
    const attend_record *a = &r->a;
    const size_t Q = (size_t)a->queries;
    const mtan_real base = own_base(a, channel, q);
    mtan_real *sums = moments_sums(r, channel) + q;
    for (size_t part = 0; part < MTAN_MOMENTS; part++) sums[part * Q] = 0;
    for (int32_t j = a->begin[channel]; j < a->begin[channel + 1]; j++) {
        const mtan_real w = event_weight(a, j, q, 1, base);
        const mtan_moment o = moment_of(r, channel, j);
        scalar_moments_add(sums, Q, &w, &r->point[q], 1, &o);
    }
    sums[MOMENT_W * Q] = -sums[MOMENT_W * Q];
    return base;
}

/* scratch: the bases of the record, the bases of the channel, the features */
static void moments_one(const moments_record *r, mtan_real *y, size_t ldy) {
    const attend_record *a = &r->a;
    const size_t Q = (size_t)a->queries, D = (size_t)a->channels, F = (size_t)statistics_count(r->statistics);
    mtan_real *base = a->scratch + Q, *feature = base + Q;
    attend_exponentials(a);
    for (int32_t d = 0; d < a->channels; d++) {
        mtan_real *sums = moments_sums(r, d);
        scalar_fill(sums, MTAN_MOMENTS * Q, 0);
        for (int32_t j = a->begin[d]; j < a->begin[d + 1]; j++) {
            const mtan_moment o = moment_of(r, d, j);
            scalar_moments_add(sums, Q, a->weight + (size_t)a->row[j] * Q, r->point, Q, &o);
        }
        if (a->begin[d] == a->begin[d + 1]) scalar_fill(feature, F * Q, 0);
        else {
            memcpy(base, a->scratch, Q * sizeof *base);
            for (int32_t q = 0; q < a->queries; q++)
                if (sums[MOMENT_W * Q + (size_t)q] < MTAN_FAR) base[q] = moments_far(r, d, q);
            scalar_moments_read(feature, sums, Q, base, a->value[a->begin[d]], r->statistics, Q);
        }
        for (size_t q = 0; q < Q; q++)
            for (size_t f = 0; f < F; f++)
                y[(size_t)(a->first[q] + a->position) * ldy + f * D + (size_t)d] = feature[f * Q + q];
    }
}

/* An event at distance t with deviation u adds w share (c + u (x + u uu + t du) + t (d + t dd)), in terms of these
 * members, to the gradient of its score. */
typedef struct moment_slopes {
    mtan_real share, c, x, uu, d, dd, du;
} moment_slopes;

/* Backpropagates the features' gradients g to the means [ ] of moments_at. The elements of g and of the features y are
 * `step` reals apart. */
static moment_slopes slopes_at(const local_moments *m, const mtan_real *g, const mtan_real *y, size_t step,
                               int32_t statistics) {
    moment_slopes s = {1 / m->total, 0, *g, 0, 0, 0, 0};
    mtan_real more = 0;
    if (statistics & MTAN_SPREAD) {
        g += step, y += step;
        s.uu = m->var > 0 ? *g / (2 * m->root) : 0;
        s.x = s.x - 2 * m->u * s.uu;
    }
    if (statistics & MTAN_INTENSITY) {
        g += step, y += step;
        more = *g * (1 - real_exp(-*y));
    }
    if (statistics & MTAN_SLOPE) {
        const mtan_real position = y[step], trend = y[2 * step];
        const mtan_real of_position = g[step] - g[3 * step] * trend, of_trend = g[2 * step] - g[3 * step] * position;
        s.du = of_trend * m->rho;
        s.d = of_position * m->rho - s.du * m->u;
        s.x = s.x - s.du * m->d;
        s.dd = (of_trend * m->cov + of_position * m->d) * ((mtan_real)-0.5 * (m->rho * m->rho * m->rho));
    }
    s.c = more - (((s.x * m->u + s.uu * m->uu) + (s.d * m->d + s.dd * m->dd)) + s.du * m->du);
    return s;
}

static mtan_real moments_slope(const moment_slopes *s, mtan_real u, mtan_real d) {
    const mtan_real by_value = MTAN_FMA(u, s->uu, MTAN_FMA(d, s->du, s->x));
    return MTAN_FMA(u, by_value, MTAN_FMA(d, MTAN_FMA(d, s->dd, s->d), s->c));
}

/* Adds to dscore for a channel's events and query q, under whichever base the channel's sums have. */
static void moments_slopes_far(const moments_record *r, mtan_real *dscore, int32_t channel, int32_t q,
                               const moment_slopes *s) {
    const attend_record *a = &r->a;
    const size_t Q = (size_t)a->queries;
    const int32_t far = moments_sums(r, channel)[MOMENT_W * Q + (size_t)q] < 0;
    const mtan_real base = far ? own_base(a, channel, q) : 0, origin = a->value[a->begin[channel]];
    for (int32_t j = a->begin[channel]; j < a->begin[channel + 1]; j++) {
        const mtan_real d = r->rate * (r->time[a->row[j]] - r->point[q]), u = a->value[j] - origin;
        mtan_real *ds = dscore + (size_t)a->row[j] * Q + (size_t)q;
        *ds = MTAN_FMA(event_weight(a, j, q, far, base) * s->share, moments_slope(s, u, d), *ds);
    }
}

static void moments_one_back(const moments_record *r, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,
                             size_t ldy) {
    const attend_record *a = &r->a;
    const size_t D = (size_t)a->channels;
    for (int32_t d = 0; d < a->channels; d++) {
        if (a->begin[d] == a->begin[d + 1]) continue;
        for (int32_t q = 0; q < a->queries; q++) {
            const size_t at = (size_t)(a->first[q] + a->position) * ldy + (size_t)d;
            const local_moments m = moments_at(moments_sums(r, d) + q, (size_t)a->queries, a->value[a->begin[d]]);
            const moment_slopes s = slopes_at(&m, dy + at, y + at, D, r->statistics);
            moments_slopes_far(r, dscore, d, q, &s);
        }
    }
}

static void scalar_moments_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *score,
                                   mtan_real *weight, mtan_real *sums, mtan_real *scratch, const mtan_real *point,
                                   const mtan_real *time, mtan_real rate, int32_t statistics) {
    for (int32_t i = 0; i < b->records; i++) {
        const moments_record r = moments_of(b, i, score, weight, sums, scratch, point, time, rate, statistics);
        moments_one(&r, y, ldy);
    }
}

static void scalar_moments_backward(const mtan_batch *b, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,
                                    size_t ldy, const mtan_real *score, const mtan_real *weight, const mtan_real *sums,
                                    mtan_real *scratch, const mtan_real *point, const mtan_real *time, mtan_real rate,
                                    int32_t statistics) {
    for (int32_t i = 0; i < b->records; i++) {
        const moments_record r = moments_of(b, i, score, weight, sums, scratch, point, time, rate, statistics);
        moments_one_back(&r, dscore + b->score0[i], dy, y, ldy);
    }
}

/* ---- RBF smoothing (Q15): weights exp(-beta_d (q - t)^2) under the exponent of the channel's largest weight ---- */

static mtan_real square(mtan_real x) {
    return x * x;
}

/* One record. */
typedef struct rbf_record {
    const mtan_real *query; /* (Q) */
    const mtan_real *time;  /* (L) */
    const mtan_real *beta;  /* (D) */
    const int32_t *begin, *row;
    const mtan_real *value;
    const int32_t *first;
    int32_t position, keys, queries, channels;
} rbf_record;

static rbf_record rbf_at(const mtan_batch *b, int32_t position, const mtan_real *query, const mtan_real *time,
                         const mtan_real *beta) {
    rbf_record a;
    a.query = query + (b->point0 ? b->point0[position] : 0);
    a.time = time + b->time0[position];
    a.beta = beta;
    a.begin = b->begin + (size_t)position * ((size_t)b->channels + 1);
    a.row = b->row, a.value = b->value;
    a.first = b->first, a.position = position;
    a.keys = b->time0[position + 1] - b->time0[position];
    a.queries = b->length[position];
    a.channels = b->channels;
    return a;
}

static mtan_real rbf_base(const rbf_record *a, int32_t channel, mtan_real query) {
    mtan_real least = square(query - a->time[a->row[a->begin[channel]]]);
    for (int32_t j = a->begin[channel] + 1; j < a->begin[channel + 1]; j++) {
        const mtan_real d = square(query - a->time[a->row[j]]);
        least = d < least ? d : least;
    }
    return real_exponent(-a->beta[channel] * least);
}

static mtan_real rbf_weight(mtan_real beta, mtan_real query, mtan_real time, mtan_real base) {
    return real_exp_under(-beta * square(query - time), base);
}

static void rbf_one(const rbf_record *a, mtan_real *y, size_t ldy) {
    for (int32_t q = 0; q < a->queries; q++)
        for (int32_t d = 0; d < a->channels; d++) {
            mtan_real num = 0, total = 0, base;
            mtan_real *out = y + (size_t)(a->first[q] + a->position) * ldy + d;
            *out = 0;
            if (a->begin[d] == a->begin[d + 1]) continue;
            base = rbf_base(a, d, a->query[q]);
            for (int32_t j = a->begin[d]; j < a->begin[d + 1]; j++) {
                const mtan_real w = rbf_weight(a->beta[d], a->query[q], a->time[a->row[j]], base);
                num = MTAN_FMA(w, a->value[j], num);
                total += w;
            }
            *out = num / total;
        }
}

/* dbeta_d += dy sum of w / total * -(distance^2) * (x - y) */
static void rbf_one_back(const rbf_record *a, mtan_real *dbeta, const mtan_real *dy, const mtan_real *y, size_t ldy) {
    for (int32_t q = 0; q < a->queries; q++)
        for (int32_t d = 0; d < a->channels; d++) {
            const size_t r = (size_t)(a->first[q] + a->position);
            mtan_real slope = 0, total = 0, base;
            if (a->begin[d] == a->begin[d + 1]) continue;
            base = rbf_base(a, d, a->query[q]);
            for (int32_t j = a->begin[d]; j < a->begin[d + 1]; j++) {
                const mtan_real t = a->time[a->row[j]], w = rbf_weight(a->beta[d], a->query[q], t, base);
                slope = MTAN_FMA(-w * square(a->query[q] - t), a->value[j] - y[r * ldy + (size_t)d], slope);
                total += w;
            }
            dbeta[d] = MTAN_FMA(dy[r * ldy + (size_t)d], slope / total, dbeta[d]);
        }
}

static void rbf_one_weights(const rbf_record *a, mtan_real *weight, int32_t channel) {
    const int32_t begin = a->begin[channel], end = a->begin[channel + 1];
    for (int32_t q = 0; q < a->queries; q++, weight += a->keys) {
        mtan_real total = 0, base;
        scalar_fill(weight, (size_t)a->keys, 0);
        if (begin == end) continue;
        base = rbf_base(a, channel, a->query[q]);
        for (int32_t j = begin; j < end; j++) {
            const mtan_real w = rbf_weight(a->beta[channel], a->query[q], a->time[a->row[j]], base);
            weight[a->row[j]] += w;
            total += w;
        }
        for (int32_t i = 0; i < a->keys; i++) weight[i] /= total;
    }
}

static void scalar_rbf_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query,
                               const mtan_real *time, const mtan_real *beta) {
    for (int32_t i = 0; i < b->records; i++) {
        const rbf_record a = rbf_at(b, i, query, time, beta);
        rbf_one(&a, y, ldy);
    }
}

static void scalar_rbf_backward(const mtan_batch *b, mtan_real *dbeta, const mtan_real *dy, const mtan_real *y,
                                size_t ldy, const mtan_real *query, const mtan_real *time, const mtan_real *beta) {
    for (int32_t i = 0; i < b->records; i++) {
        const rbf_record a = rbf_at(b, i, query, time, beta);
        rbf_one_back(&a, dbeta, dy, y, ldy);
    }
}

static void scalar_rbf_weights(const mtan_batch *b, mtan_real *shown, const mtan_real *query, const mtan_real *time,
                               const mtan_real *beta, int32_t channel) {
    for (int32_t i = 0; i < b->records; i++) {
        const rbf_record a = rbf_at(b, i, query, time, beta);
        rbf_one_weights(&a, shown + b->score0[i], channel);
    }
}

/* ---- rows of the sequence and of the queries ---- */

/* Rows of the sequence at step k, without samples. */
static int32_t step_rows(const mtan_batch *b, int32_t k) {
    return b->first[k + 1] - b->first[k];
}

/* The sequence's row of a record, step and sample. The S samples of a record's step are adjacent. */
static size_t sequence_row(const mtan_batch *b, int32_t record, int32_t step, int32_t sample, int32_t samples) {
    return (size_t)(b->first[step] + record) * (size_t)samples + (size_t)sample;
}

static int32_t query_count(const mtan_batch *b, int32_t record) {
    return b->query0[record + 1] - b->query0[record];
}

/* The first row of a record and sample where rows are ordered by record, sample and query. */
static size_t query_rows(const mtan_batch *b, int32_t record, int32_t sample) {
    return (size_t)(b->query0[record] * b->samples + sample * query_count(b, record));
}

static void scalar_spread_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                                  int32_t cols) {
    for (int32_t k = 0; k < b->steps; k++)
        kernels->copy(y + (size_t)b->first[k] * ldy, ldy, x, ldx, step_rows(b, k), cols);
}

static void scalar_spread_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                                   int32_t cols) {
    for (int32_t k = 0; k < b->steps; k++)
        kernels->add(dx, ldx, dy + (size_t)b->first[k] * ldy, ldy, step_rows(b, k), cols);
}

static void scalar_last_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                                int32_t cols, int32_t samples) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < samples; s++, y += ldy) {
            const int32_t k = b->length[i] - 1;
            if (k < 0) kernels->fill(y, (size_t)cols, 0);
            else kernels->copy(y, ldy, x + sequence_row(b, i, k, s, samples) * ldx, ldx, 1, cols);
        }
}

static void scalar_last_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                                 int32_t cols, int32_t samples) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < samples; s++, dy += ldy) {
            const int32_t k = b->length[i] - 1;
            if (k >= 0) kernels->add(dx + sequence_row(b, i, k, s, samples) * ldx, ldx, dy, ldy, 1, cols);
        }
}

/* Copies a row of the sequence to its place in another order of rows or, with `back`, adds its gradient back. */
static void move_row(mtan_real *to, const mtan_real *from, int32_t cols, int32_t back) {
    (back ? kernels->add : kernels->copy)(to, 0, from, 0, 1, cols);
}

static void scalar_regroup_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                                   int32_t cols) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++)
            for (int32_t k = 0; k < b->length[i]; k++, y += ldy)
                move_row(y, x + sequence_row(b, i, k, s, b->samples) * ldx, cols, 0);
}

static void scalar_regroup_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                                    int32_t cols) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++)
            for (int32_t k = 0; k < b->length[i]; k++, dy += ldy)
                move_row(dx + sequence_row(b, i, k, s, b->samples) * ldx, dy, cols, 1);
}

static void scalar_at_queries_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                                      int32_t cols) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++)
            for (int32_t q = b->query0[i]; q < b->query0[i + 1]; q++, y += ldy)
                move_row(y, x + sequence_row(b, i, b->query_row[q], s, b->samples) * ldx, cols, 0);
}

static void scalar_at_queries_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                                       int32_t cols) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++)
            for (int32_t q = b->query0[i]; q < b->query0[i + 1]; q++, dy += ldy)
                move_row(dx + sequence_row(b, i, b->query_row[q], s, b->samples) * ldx, dy, cols, 1);
}

/* ---- scores: a block (rows, points) per record, one after another ----
 * Encoder: the rows are the record's times, which are the keys, and the points are the queries. Blocks are key-major,
 * so that the lanes of a vector are queries. Decoder: the rows are the queries. All records share the points (K, e),
 * and the blocks form one matrix (T, K); or each record has points of its own. */

static void scalar_score_forward(const mtan_batch *b, mtan_real *score, const mtan_real *row, size_t ldr,
                                 const mtan_real *point, size_t ldp, int32_t inner, int32_t decoder) {
    const int32_t *row0 = decoder ? b->query0 : b->time0, *block0 = decoder ? b->pair0 : b->score0;
    for (int32_t i = 0; i < b->records; i++)
        kernels->product_nt(score + block0[i], (size_t)b->length[i], row + (size_t)row0[i] * ldr, ldr,
                            point + (b->point0 ? (size_t)b->point0[i] * ldp : 0), ldp, row0[i + 1] - row0[i],
                            b->length[i], inner, 0);
}

static void scalar_score_backward(const mtan_batch *b, mtan_real *drow, size_t ldr, mtan_real *dpoint, size_t ldp,
                                  const mtan_real *dscore, const mtan_real *row, const mtan_real *point, int32_t inner,
                                  int32_t decoder) {
    const int32_t *row0 = decoder ? b->query0 : b->time0, *block0 = decoder ? b->pair0 : b->score0;
    for (int32_t i = 0; i < b->records; i++) {
        const size_t at = (size_t)row0[i] * ldr, to = b->point0 ? (size_t)b->point0[i] * ldp : 0;
        const int32_t rows = row0[i + 1] - row0[i], points = b->length[i];
        const mtan_real *ds = dscore + block0[i];
        if (drow) kernels->product_nn(drow + at, ldr, ds, (size_t)points, point + to, ldp, rows, inner, points, 1);
        if (dpoint) kernels->product_tn(dpoint + to, ldp, ds, (size_t)points, row + at, ldr, points, inner, rows, 1);
    }
}

/* ---- decoder attention: one block of weights (queries, points) per record, used for all its samples ---- */

static void scalar_softmax_pairs_forward(const mtan_batch *b, mtan_real *weight) {
    for (int32_t i = 0; i < b->records; i++)
        if (b->length[i] > 0) kernels->softmax_forward(weight + b->pair0[i], query_count(b, i), b->length[i]);
}

static void scalar_softmax_pairs_backward(const mtan_batch *b, mtan_real *dweight, const mtan_real *weight) {
    for (int32_t i = 0; i < b->records; i++)
        kernels->softmax_backward(dweight + b->pair0[i], weight + b->pair0[i], query_count(b, i), b->length[i]);
}

/* If all records share the points, the values of a record and sample are rows of the sequence, B S rows apart.
 * Otherwise they have been regrouped and are adjacent. */
static size_t value_at(const mtan_batch *b, int32_t record, int32_t sample, size_t ldv) {
    return (b->point0 ? (size_t)(b->point0[record] * b->samples + sample * b->length[record])
                      : (size_t)(record * b->samples + sample)) *
           ldv;
}

static size_t value_stride(const mtan_batch *b, size_t ldv) {
    return ldv * (b->point0 ? 1 : (size_t)(b->records * b->samples));
}

static void scalar_values_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *weight,
                                  const mtan_real *value, size_t ldv, int32_t cols) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++)
            kernels->product_nn(y + query_rows(b, i, s) * ldy, ldy, weight + b->pair0[i], (size_t)b->length[i],
                                value + value_at(b, i, s, ldv), value_stride(b, ldv), query_count(b, i), cols,
                                b->length[i], 0);
}

static void scalar_values_backward(const mtan_batch *b, mtan_real *dweight, mtan_real *dvalue, const mtan_real *dy,
                                   size_t ldy, const mtan_real *weight, const mtan_real *value, size_t ldv,
                                   int32_t cols) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++) {
            const int32_t queries = query_count(b, i), points = b->length[i];
            const size_t at = value_at(b, i, s, ldv), stride = value_stride(b, ldv);
            const mtan_real *slope = dy + query_rows(b, i, s) * ldy;
            kernels->product_nt(dweight + b->pair0[i], (size_t)points, slope, ldy, value + at, stride, queries, points,
                                cols, 1);
            kernels->product_tn(dvalue + at, stride, weight + b->pair0[i], (size_t)points, slope, ldy, points, cols,
                                queries, 1);
        }
}

/* ---- decoder attention with RBF weights, one bandwidth per column ---- */

/* One record and sample: values (keys, cols) at `queries` times. */
typedef struct smooth_record {
    const mtan_real *query, *key, *beta, *value;
    size_t y, at, stride; /* offsets of its rows of y and of value; stride of value's rows */
    int32_t queries, keys, cols;
} smooth_record;

static smooth_record smooth_at(const mtan_batch *b, int32_t i, int32_t s, size_t ldy, const mtan_real *query,
                               const mtan_real *key, const mtan_real *beta, const mtan_real *value, size_t ldv,
                               int32_t cols) {
    smooth_record a;
    a.query = query + b->query0[i];
    a.key = key + (b->point0 ? b->point0[i] : 0);
    a.beta = beta;
    a.y = query_rows(b, i, s) * ldy;
    a.at = value_at(b, i, s, ldv), a.stride = value_stride(b, ldv);
    a.value = value + a.at;
    a.queries = query_count(b, i), a.keys = b->length[i], a.cols = cols;
    return a;
}

static mtan_real nearest_key(const mtan_real *key, int32_t keys, mtan_real query) {
    mtan_real least = square(query - key[0]);
    for (int32_t k = 1; k < keys; k++) least = square(query - key[k]) < least ? square(query - key[k]) : least;
    return least;
}

static void smooth_one(const smooth_record *a, mtan_real *y, size_t ldy) {
    for (int32_t q = 0; q < a->queries; q++, y += ldy) {
        const mtan_real least = nearest_key(a->key, a->keys, a->query[q]);
        for (int32_t c = 0; c < a->cols; c++) {
            const mtan_real base = real_exponent(-a->beta[c] * least);
            mtan_real num = 0, total = 0;
            for (int32_t k = 0; k < a->keys; k++) {
                const mtan_real w = rbf_weight(a->beta[c], a->query[q], a->key[k], base);
                num = MTAN_FMA(w, a->value[(size_t)k * a->stride + (size_t)c], num);
                total += w;
            }
            y[c] = num / total;
        }
    }
}

static void smooth_one_back(const smooth_record *a, mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy,
                            const mtan_real *y, size_t ldy) {
    for (int32_t q = 0; q < a->queries; q++, y += ldy, dy += ldy) {
        const mtan_real least = nearest_key(a->key, a->keys, a->query[q]);
        for (int32_t c = 0; c < a->cols; c++) {
            const mtan_real base = real_exponent(-a->beta[c] * least);
            mtan_real slope = 0, total = 0;
            for (int32_t k = 0; k < a->keys; k++) total += rbf_weight(a->beta[c], a->query[q], a->key[k], base);
            for (int32_t k = 0; k < a->keys; k++) {
                const size_t at = (size_t)k * a->stride + (size_t)c;
                const mtan_real p = rbf_weight(a->beta[c], a->query[q], a->key[k], base) / total;
                dvalue[at] = MTAN_FMA(p, dy[c], dvalue[at]);
                slope = MTAN_FMA(-p * square(a->query[q] - a->key[k]), a->value[at] - y[c], slope);
            }
            dbeta[c] = MTAN_FMA(dy[c], slope, dbeta[c]);
        }
    }
}

typedef void smooth_function(const smooth_record *a, mtan_real *y, size_t ldy);
typedef void smooth_back_function(const smooth_record *a, mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy,
                                  const mtan_real *y, size_t ldy);

static void smooth_each(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                        const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t cols, smooth_function *one) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++) {
            const smooth_record a = smooth_at(b, i, s, ldy, query, key, beta, value, ldv, cols);
            if (a.keys > 0) one(&a, y + a.y, ldy);
            else
                for (int32_t q = 0; q < a.queries; q++) kernels->fill(y + a.y + (size_t)q * ldy, (size_t)cols, 0);
        }
}

static void smooth_each_back(const mtan_batch *b, mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy,
                             const mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                             const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t cols,
                             smooth_back_function *one) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++) {
            const smooth_record a = smooth_at(b, i, s, ldy, query, key, beta, value, ldv, cols);
            if (a.keys > 0) one(&a, dvalue + a.at, dbeta, dy + a.y, y + a.y, ldy);
        }
}

static void scalar_smooth_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query,
                                  const mtan_real *key, const mtan_real *beta, const mtan_real *value, size_t ldv,
                                  int32_t cols) {
    smooth_each(b, y, ldy, query, key, beta, value, ldv, cols, smooth_one);
}

static void scalar_smooth_backward(const mtan_batch *b, mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy,
                                   const mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                                   const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t cols) {
    smooth_each_back(b, dvalue, dbeta, dy, y, ldy, query, key, beta, value, ldv, cols, smooth_one_back);
}

/* ---- GRU gates, torch's order r, z, n:  n = tanh(g_n + r gh_n),  h = (1 - z) n + z before ---- */

static void scalar_gates_forward(mtan_real *h, size_t ldh, mtan_real *g, size_t ldg, mtan_real *hn, const mtan_real *gh,
                                 const mtan_real *before, size_t ldb, int32_t rows, int32_t hidden) {
    const int32_t N = hidden;
    for (int32_t i = 0; i < rows; i++, h += ldh, g += ldg, gh += 3 * N) {
        for (int32_t j = 0; j < N; j++) {
            const mtan_real r = real_sigmoid(g[j] + gh[j]);
            const mtan_real z = real_sigmoid(g[N + j] + gh[N + j]);
            const mtan_real n = real_tanh(MTAN_FMA(r, gh[2 * N + j], g[2 * N + j]));
            h[j] = MTAN_FMA(z, (before ? before[j] : 0) - n, n);
            g[j] = r, g[N + j] = z, g[2 * N + j] = n;
            if (hn) hn[j] = gh[2 * N + j];
        }
        if (hn) hn += N;
        if (before) before += ldb;
    }
}

static void scalar_gates_backward(mtan_real *dh, mtan_real *g, size_t ldg, mtan_real *hn, const mtan_real *before,
                                  size_t ldb, int32_t rows, int32_t hidden) {
    const int32_t N = hidden;
    for (int32_t i = 0; i < rows; i++, dh += N, hn += N, g += ldg) {
        for (int32_t j = 0; j < N; j++) {
            const mtan_real r = g[j], z = g[N + j], n = g[2 * N + j];
            const mtan_real dn = dh[j] * (1 - z) * (1 - n * n);
            g[j] = dn * hn[j] * r * (1 - r);
            g[N + j] = dh[j] * ((before ? before[j] : 0) - n) * z * (1 - z);
            g[2 * N + j] = dn;
            hn[j] = dn * r;
            dh[j] *= z;
        }
        if (before) before += ldb;
    }
}

/* ---- GRU over the batch's sequence ----
 * Records are sorted by falling length, so the records that reach a step are the first ones. In a forward run the state
 * before a step has at least as many rows as the step. In a reverse run it may have fewer; the other rows start from
 * zero. */

typedef struct gru_step {
    size_t row, before;  /* first row of the step and of the state before it */
    int32_t rows, known; /* rows of the step, and how many of them have a state before */
    int32_t odd;         /* every second step reads the recurrent weights from their end */
} gru_step;

/* step number i in the order of the run */
static gru_step gru_step_at(const mtan_batch *b, int32_t i, int32_t samples, int32_t reverse) {
    const int32_t k = reverse ? b->steps - 1 - i : i, from = reverse ? k + 1 : k - 1;
    gru_step s;
    s.row = (size_t)b->first[k] * (size_t)samples;
    s.rows = step_rows(b, k) * samples;
    s.before = i == 0 ? 0 : (size_t)b->first[from] * (size_t)samples;
    s.known = i == 0 ? 0 : step_rows(b, from) * samples;
    s.known = s.known < s.rows ? s.known : s.rows;
    s.odd = i % 2;
    return s;
}

/* y += x w^T with packed weights */
static void gru_multiply(mtan_precision precision, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                         const mtan_real *packed, int32_t rows, int32_t n, int32_t k, int32_t last_first) {
    if (precision == MTAN_INT8) kernels->product_int8(y, ldy, x, ldx, packed, rows, n, k, 1);
    else kernels->product_packed(y, ldy, x, ldx, packed, rows, n, k, 1, last_first);
}

/* gh += h W^T, with the weights packed or not */
static void gru_recur(const mtan_gru *layer, mtan_real *gh, const mtan_real *h, size_t ldh, int32_t rows, int32_t odd) {
    const int32_t N = layer->hidden;
    const size_t wide = 3 * (size_t)N;
    if (!layer->packed) kernels->product_nt(gh, wide, h, ldh, layer->w, layer->ldw, rows, 3 * N, N, 1);
    else gru_multiply(layer->precision, gh, wide, h, ldh, layer->packed, rows, 3 * N, N, odd);
}

/* How many rows of g get their input at once: as many steps of `widest` rows as fit into 128 KB of floats, but at least
 * one step. These rows stay in the second-level cache until their steps have run. */
static int32_t gru_block_rows(int32_t widest, int32_t hidden) {
    const int32_t steps = (1 << 15) / (3 * hidden) / widest;
    return (steps > 1 ? steps : 1) * widest;
}

/* Steps low to high - 1 of the batch, which get their input at once. */
typedef struct gru_block {
    int32_t low, high;
} gru_block;

/* The block that starts with step number i in the order of the run: as many steps as fit, or all steps if the layer
 * computes no input. */
static gru_block gru_block_at(const mtan_batch *b, const mtan_gru *layer, int32_t i) {
    gru_block k = {0, b->steps};
    int32_t most;
    if (!layer->x) return k;
    most = gru_block_rows(b->records * layer->samples, layer->hidden) / layer->samples;
    k.low = layer->reverse ? b->steps - 1 - i : i, k.high = k.low + 1;
    if (layer->reverse)
        while (k.low > 0 && b->first[k.high] - b->first[k.low - 1] <= most) k.low--;
    else
        while (k.high < b->steps && b->first[k.high + 1] - b->first[k.low] <= most) k.high++;
    return k;
}

/* g = constant + x w_in^T for the rows of a block */
static void gru_feed(const mtan_batch *b, const mtan_gru *layer, gru_block block, mtan_real *g, size_t ldg) {
    const size_t S = (size_t)layer->samples, first = (size_t)b->first[block.low] * S;
    const int32_t rows = (b->first[block.high] - b->first[block.low]) * layer->samples;
    for (int32_t k = block.low; k < block.high; k++)
        kernels->copy(g + ((size_t)b->first[k] * S - first) * ldg, ldg, layer->constant, layer->ldc,
                      step_rows(b, k) * layer->samples, 3 * layer->hidden);
    for (size_t p = 0; p < (size_t)layer->parts; p++)
        gru_multiply(layer->in_precision, g, ldg, layer->x + first * layer->ldx + p * (size_t)layer->columns,
                     layer->ldx, layer->w_in + p * layer->part, rows, 3 * layer->hidden, layer->columns, 0);
}

/* One step; g points at the step's first row. */
static void gru_forward_step(const mtan_gru *layer, gru_step s, mtan_real *y, size_t ldy, mtan_real *g, size_t ldg,
                             mtan_real *hn, mtan_real *scratch) {
    const size_t N = (size_t)layer->hidden, known = (size_t)s.known, rest = s.row + known;
    kernels->copy(scratch, 3 * N, layer->bias, 0, s.rows, 3 * layer->hidden);
    if (s.known) gru_recur(layer, scratch, y + s.before * ldy, ldy, s.known, s.odd);
    kernels->gates_forward(y + s.row * ldy, ldy, g, ldg, hn ? hn + s.row * N : NULL, scratch, y + s.before * ldy, ldy,
                           s.known, layer->hidden);
    kernels->gates_forward(y + rest * ldy, ldy, g + known * ldg, ldg, hn ? hn + rest * N : NULL,
                           scratch + 3 * N * known, NULL, 0, s.rows - s.known, layer->hidden);
}

static void scalar_gru_forward(const mtan_batch *b, const mtan_gru *layer, mtan_real *y, size_t ldy, mtan_real *g,
                               size_t ldg, mtan_real *hn, mtan_real *scratch) {
    for (int32_t i = 0; i < b->steps;) {
        const gru_block block = gru_block_at(b, layer, i);
        const size_t first = (size_t)(b->first[block.low] * layer->samples), lost = layer->x && !hn ? first : 0;
        if (layer->x) gru_feed(b, layer, block, g + (first - lost) * ldg, ldg);
        for (int32_t end = i + block.high - block.low; i < end; i++) {
            const gru_step s = gru_step_at(b, i, layer->samples, layer->reverse);
            gru_forward_step(layer, s, y, ldy, g + (s.row - lost) * ldg, ldg, hn, scratch);
        }
    }
}

/* Weight gradients. The gradients of the recurrent part's outputs are in g for r and z, and in hn for n. Consecutive
 * steps with equally many rows are adjacent in memory and become one long product. */
static void gru_weights_back(const mtan_batch *b, const mtan_gru *layer, mtan_real *dw, mtan_real *db,
                             const mtan_real *g, size_t ldg, const mtan_real *hn, const mtan_real *y, size_t ldy) {
    const int32_t N = layer->hidden, S = layer->samples, pairs = b->steps - 1, R = b->first[b->steps] * S;
    mtan_real *dwn = dw + (size_t)(2 * N) * layer->ldw;
    for (int32_t i = 0, next; i < pairs; i = next) { /* steps i and i + 1: the later state has no more rows */
        const size_t low = (size_t)(b->first[i] * S), high = (size_t)(b->first[i + 1] * S);
        const size_t row = layer->reverse ? low : high, before = layer->reverse ? high : low;
        int32_t rows = step_rows(b, i + 1);
        for (next = i + 1; next < pairs && step_rows(b, next + 1) == step_rows(b, i); next++)
            rows += step_rows(b, next + 1);
        kernels->product_tn(dw, layer->ldw, g + row * ldg, ldg, y + before * ldy, ldy, 2 * N, N, rows * S, 1);
        kernels->product_tn(dwn, layer->ldw, hn + row * (size_t)N, (size_t)N, y + before * ldy, ldy, N, N, rows * S, 1);
    }
    kernels->add(db, 0, g, ldg, R, 2 * N);
    kernels->add(db + 2 * N, 0, hn, (size_t)N, R, N);
}

/* dh += g W, with the weights packed or not; for n, hn takes the place of g */
static void gru_recur_back(const mtan_gru *layer, mtan_real *dh, const mtan_real *g, size_t ldg, const mtan_real *hn,
                           int32_t rows, int32_t odd) {
    const int32_t n = layer->hidden;
    const size_t N = (size_t)n;
    if (layer->back) {
        kernels->product_packed(dh, N, g, ldg, layer->back, rows, n, 2 * n, 1, odd);
        kernels->product_packed(dh, N, hn, N, layer->back + kernels->pack_count(n, 2 * n), rows, n, n, 1, odd);
    } else {
        kernels->product_nn(dh, N, g, ldg, layer->w, layer->ldw, rows, n, 2 * n, 1);
        kernels->product_nn(dh, N, hn, N, layer->w + 2 * N * layer->ldw, layer->ldw, rows, n, n, 1);
    }
}

static void scalar_gru_backward(const mtan_batch *b, const mtan_gru *layer, mtan_real *dw, mtan_real *db, mtan_real *g,
                                size_t ldg, mtan_real *hn, mtan_real *scratch, const mtan_real *dy, const mtan_real *y,
                                size_t ldy) {
    const int32_t n = layer->hidden;
    const size_t N = (size_t)n;
    mtan_real *dh = scratch;
    int32_t carried = 0; /* rows of dh that hold a gradient from the step after */
    for (int32_t i = b->steps - 1; i >= 0; i--) {
        const gru_step s = gru_step_at(b, i, layer->samples, layer->reverse);
        const size_t rest = s.row + (size_t)s.known;
        if (carried < s.rows) kernels->fill(dh + (size_t)carried * N, (size_t)(s.rows - carried) * N, 0);
        kernels->add(dh, N, dy + s.row * ldy, ldy, s.rows, n);
        kernels->gates_backward(dh, g + s.row * ldg, ldg, hn + s.row * N, y + s.before * ldy, ldy, s.known, n);
        kernels->gates_backward(dh + (size_t)s.known * N, g + rest * ldg, ldg, hn + rest * N, NULL, 0, s.rows - s.known,
                                n);
        gru_recur_back(layer, dh, g + s.row * ldg, ldg, hn + s.row * N, s.known, s.odd);
        carried = s.known;
    }
    gru_weights_back(b, layer, dw, db, g, ldg, hn, y, ldy);
}

/* ---- the variational part ---- */

/* z = mean + noise exp(logvar / 2) */
static void scalar_sample_forward(mtan_real *z, const mtan_real *posterior, const mtan_real *noise, int32_t rows,
                                  int32_t samples, int32_t latent) {
    for (int32_t r = 0; r < rows; r++, posterior += 2 * latent)
        for (int32_t s = 0; s < samples; s++, z += latent, noise += latent)
            for (int32_t i = 0; i < latent; i++)
                z[i] = MTAN_FMA(noise[i], real_exp((mtan_real)0.5 * posterior[latent + i]), posterior[i]);
}

/* dmean += dz,  dlogvar += dz (z - mean) / 2 */
static void scalar_sample_backward(mtan_real *dposterior, const mtan_real *dz, const mtan_real *z,
                                   const mtan_real *posterior, int32_t rows, int32_t samples, int32_t latent) {
    for (int32_t r = 0; r < rows; r++, posterior += 2 * latent, dposterior += 2 * latent)
        for (int32_t s = 0; s < samples; s++, z += latent, dz += latent)
            for (int32_t i = 0; i < latent; i++) {
                dposterior[i] += dz[i];
                dposterior[latent + i] =
                    MTAN_FMA(dz[i], (mtan_real)0.5 * (z[i] - posterior[i]), dposterior[latent + i]);
            }
}

/* The rows of the posterior that belong to record i are latent_first(b)[k] + i, k = 0 .. latent_steps(b, i) - 1. */
static const int32_t *latent_first(const mtan_batch *b) {
    static const int32_t only = 0;
    return b->one_latent ? &only : b->first;
}

static int32_t latent_steps(const mtan_batch *b, int32_t i) {
    return b->one_latent ? 1 : b->length[i];
}

static size_t latent_row(const mtan_batch *b, int32_t i, int32_t k) {
    return (size_t)(latent_first(b)[k] + i);
}

/* KL(q || N(0, 1)) = sum of (exp(logvar) + mean^2 - 1 - logvar) / 2 */
static void scalar_kl_forward(const mtan_batch *b, mtan_real *kl, const mtan_real *posterior, int32_t latent) {
    for (int32_t i = 0; i < b->records; i++) {
        double sum = 0;
        for (int32_t k = 0; k < latent_steps(b, i); k++) {
            const mtan_real *mean = posterior + latent_row(b, i, k) * 2 * (size_t)latent, *logvar = mean + latent;
            for (int32_t j = 0; j < latent; j++)
                sum += 0.5 * ((double)real_exp(logvar[j]) + (double)mean[j] * (double)mean[j] - 1 - (double)logvar[j]);
        }
        kl[i] = (mtan_real)sum;
    }
}

static void scalar_kl_backward(const mtan_batch *b, mtan_real *dposterior, const mtan_real *posterior,
                               const mtan_real *dkl, int32_t latent) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t k = 0; k < latent_steps(b, i); k++) {
            const size_t at = latent_row(b, i, k) * 2 * (size_t)latent;
            const mtan_real *mean = posterior + at, *logvar = mean + latent;
            mtan_real *dmean = dposterior + at, *dlogvar = dmean + latent;
            for (int32_t j = 0; j < latent; j++) {
                dmean[j] = MTAN_FMA(dkl[i], mean[j], dmean[j]);
                dlogvar[j] = MTAN_FMA(dkl[i], (mtan_real)0.5 * (real_exp(logvar[j]) - 1), dlogvar[j]);
            }
        }
}

/* log q(z|x) - log p(z) = sum of (z^2 - noise^2 - logvar) / 2: the constants cancel */
static void scalar_ratio_forward(const mtan_batch *b, mtan_real *ratio, const mtan_real *z, const mtan_real *posterior,
                                 const mtan_real *noise, int32_t latent) {
    const size_t Z = (size_t)latent, S = (size_t)b->samples;
    for (size_t i = 0; i < (size_t)b->records * S; i++) {
        const int32_t record = (int32_t)(i / S);
        double sum = 0;
        for (int32_t k = 0; k < latent_steps(b, record); k++) {
            const size_t row = latent_row(b, record, k), at = (row * S + i % S) * Z;
            const mtan_real *logvar = posterior + (2 * row + 1) * Z;
            for (size_t j = 0; j < Z; j++) {
                const double zj = (double)z[at + j], nj = (double)noise[at + j];
                sum += 0.5 * (zj * zj - nj * nj - (double)logvar[j]);
            }
        }
        ratio[i] = (mtan_real)sum;
    }
}

static void scalar_ratio_backward(const mtan_batch *b, mtan_real *dz, mtan_real *dposterior, const mtan_real *z,
                                  const mtan_real *dratio, int32_t latent) {
    const size_t Z = (size_t)latent, S = (size_t)b->samples;
    for (size_t i = 0; i < (size_t)b->records * S; i++) {
        const int32_t record = (int32_t)(i / S);
        for (int32_t k = 0; k < latent_steps(b, record); k++) {
            const size_t row = latent_row(b, record, k), at = (row * S + i % S) * Z;
            mtan_real *dlogvar = dposterior + (2 * row + 1) * Z;
            for (size_t j = 0; j < Z; j++) {
                dz[at + j] = MTAN_FMA(dratio[i], z[at + j], dz[at + j]);
                dlogvar[j] -= (mtan_real)0.5 * dratio[i];
            }
        }
    }
}

/* The index of a record's target cell j in the prediction of a sample. */
static size_t cell_at(const mtan_batch *b, int32_t record, int32_t sample, int32_t j) {
    return (query_rows(b, record, sample) + (size_t)b->cell_row[j]) * (size_t)b->outputs + (size_t)b->cell_channel[j];
}

/* log N(x; prediction, std^2) over the cells */
static void scalar_loglik_forward(const mtan_batch *b, mtan_real *logp, const mtan_real *prediction, double std) {
    const double constant = LOG_TWO_PI + 2 * (double)real_log((mtan_real)std);
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++) {
            double squares = 0;
            for (int32_t j = b->cell0[i]; j < b->cell0[i + 1]; j++) {
                const double e = (double)b->cell_value[j] - (double)prediction[cell_at(b, i, s, j)];
                squares += e * e;
            }
            *logp++ = (mtan_real)(-0.5 * (constant * (b->cell0[i + 1] - b->cell0[i]) + squares / (std * std)));
        }
}

static void scalar_loglik_backward(const mtan_batch *b, mtan_real *dprediction, const mtan_real *prediction,
                                   const mtan_real *dlogp, double std) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++, dlogp++) {
            const mtan_real factor = (mtan_real)((double)*dlogp / (std * std));
            for (int32_t j = b->cell0[i]; j < b->cell0[i + 1]; j++) {
                const size_t at = cell_at(b, i, s, j);
                dprediction[at] = MTAN_FMA(factor, b->cell_value[j] - prediction[at], dprediction[at]);
            }
        }
}

/* The same with a standard deviation per cell, sd = least + softplus(raw) */
static void scalar_loglik_sd_forward(const mtan_batch *b, mtan_real *logp, const mtan_real *prediction,
                                     const mtan_real *raw, mtan_real least) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++) {
            double sum = 0;
            for (int32_t j = b->cell0[i]; j < b->cell0[i + 1]; j++) {
                const size_t at = cell_at(b, i, s, j);
                const mtan_real sd = least + real_softplus(raw[at]);
                const double e = ((double)b->cell_value[j] - (double)prediction[at]) / (double)sd;
                sum += LOG_TWO_PI + 2 * (double)real_log(sd) + e * e;
            }
            *logp++ = (mtan_real)(-0.5 * sum);
        }
}

/* dprediction += dlogp e / sd,  draw += dlogp (e^2 - 1) / sd sigmoid(raw), with e = (x - prediction) / sd */
static void scalar_loglik_sd_backward(const mtan_batch *b, mtan_real *dprediction, mtan_real *draw,
                                      const mtan_real *prediction, const mtan_real *raw, const mtan_real *dlogp,
                                      mtan_real least) {
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++, dlogp++)
            for (int32_t j = b->cell0[i]; j < b->cell0[i + 1]; j++) {
                const size_t at = cell_at(b, i, s, j);
                const mtan_real sd = least + real_softplus(raw[at]), factor = *dlogp / sd;
                const mtan_real e = (b->cell_value[j] - prediction[at]) / sd;
                dprediction[at] = MTAN_FMA(factor, e, dprediction[at]);
                draw[at] = MTAN_FMA(factor * real_sigmoid(raw[at]), MTAN_FMA(e, e, (mtan_real)-1), draw[at]);
            }
}

/* squared error of the prediction averaged over the samples */
static void scalar_squared_error(const mtan_batch *b, double *error, const mtan_real *prediction) {
    for (int32_t i = 0; i < b->records; i++) {
        double sum = 0;
        for (int32_t j = b->cell0[i]; j < b->cell0[i + 1]; j++) {
            double mean = 0;
            for (int32_t s = 0; s < b->samples; s++) mean += (double)prediction[cell_at(b, i, s, j)] / b->samples;
            sum += (mean - (double)b->cell_value[j]) * (mean - (double)b->cell_value[j]);
        }
        error[i] = sum;
    }
}

/* Sums over the few samples of a record run in double. */
static void scalar_bound_forward(int32_t records, mtan_real *loss, mtan_real *weight, const mtan_real *logp,
                                 const mtan_real *kl, int32_t kl_stride, int32_t samples, mtan_bound bound,
                                 double kl_weight, const mtan_real *share) {
    for (int32_t i = 0; i < records; i++, weight += samples, logp += samples, kl += kl_stride ? samples : 1) {
        double max = 0, sum = 0, mean = 0;
        for (int32_t s = 0; s < samples; s++) {
            const double v = ((double)logp[s] - kl_weight * (double)kl[s * kl_stride]) * (double)share[i];
            max = s == 0 || v > max ? v : max;
            mean += v / samples;
        }
        for (int32_t s = 0; s < samples; s++) {
            const double v = ((double)logp[s] - kl_weight * (double)kl[s * kl_stride]) * (double)share[i];
            weight[s] = bound == MTAN_BOUND_ELBO ? 1 : real_exp((mtan_real)(v - max));
            sum += (double)weight[s];
        }
        for (int32_t s = 0; s < samples; s++) weight[s] = (mtan_real)((double)weight[s] / sum);
        loss[i] = (mtan_real) - (bound == MTAN_BOUND_ELBO ? mean : max + (double)real_log((mtan_real)(sum / samples)));
    }
}

static void scalar_bound_backward(int32_t records, mtan_real *dlogp, mtan_real *dkl, int32_t kl_stride,
                                  const mtan_real *weight, int32_t samples, mtan_real kl_weight, mtan_real seed,
                                  const mtan_real *share) {
    for (int32_t i = 0; i < records; i++, dlogp += samples, weight += samples, dkl += kl_stride ? samples : 1)
        for (int32_t s = 0; s < samples; s++) {
            const mtan_real d = seed * share[i] * weight[s];
            dlogp[s] -= d;
            dkl[s * kl_stride] += kl_weight * d;
        }
}

/* One row of logits; weight (classes) scales the loss by the row's label, or is null. */
static void cross_entropy_row(mtan_real *loss, mtan_real *p, const mtan_real *x, int32_t label, const mtan_real *weight,
                              int32_t classes) {
    const mtan_real max = row_max(x, classes);
    mtan_real sum = 0;
    for (int32_t c = 0; c < classes; c++) sum += p[c] = real_exp(x[c] - max);
    for (int32_t c = 0; c < classes; c++) p[c] /= sum;
    *loss = label < 0 ? 0 : real_log(sum) - (x[label] - max);
    if (weight && label >= 0) *loss *= weight[label];
}

static void cross_entropy_row_back(mtan_real *dx, const mtan_real *p, int32_t label, const mtan_real *weight,
                                   mtan_real seed, int32_t classes) {
    if (label < 0) return;
    if (weight) seed *= weight[label];
    for (int32_t c = 0; c < classes; c++) dx[c] = MTAN_FMA(seed, p[c] - (c == label ? 1 : 0), dx[c]);
}

/* Each label belongs to `samples` consecutive rows; with samples 0, to all rows of its query. */
static void scalar_cross_entropy_forward(const mtan_batch *b, mtan_real *loss, mtan_real *p, const mtan_real *x,
                                         const int32_t *label, const mtan_real *weight, int32_t rows, int32_t samples,
                                         int32_t classes) {
    const size_t C = (size_t)classes;
    for (int32_t r = 0; samples && r < rows; r++, loss++, p += C, x += C)
        cross_entropy_row(loss, p, x, label[r / samples], weight, classes);
    for (int32_t i = 0; !samples && i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++)
            for (int32_t q = b->query0[i]; q < b->query0[i + 1]; q++, loss++, p += C, x += C)
                cross_entropy_row(loss, p, x, label[q], weight, classes);
}

static void scalar_cross_entropy_backward(const mtan_batch *b, mtan_real *dx, const mtan_real *p, const int32_t *label,
                                          const mtan_real *weight, mtan_real seed, int32_t rows, int32_t samples,
                                          int32_t classes) {
    const size_t C = (size_t)classes;
    for (int32_t r = 0; samples && r < rows; r++, dx += C, p += C)
        cross_entropy_row_back(dx, p, label[r / samples], weight, seed, classes);
    for (int32_t i = 0; !samples && i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++)
            for (int32_t q = b->query0[i]; q < b->query0[i + 1]; q++, dx += C, p += C)
                cross_entropy_row_back(dx, p, label[q], weight, seed, classes);
}

/* ---- targets that are numbers, or labels of which several may hold; rows as for the cross-entropy ---- */

/* Outputs per target: one, or three for the low end, the median and the high end of an interval. */
static int32_t levels_of(const mtan_targets *t) {
    return t->task == MTAN_TASK_NUMBER && t->interval > 0 ? 3 : 1;
}

/* The quantile level of output o of three: the share of numbers that should lie below it. */
static mtan_real quantile_of(const mtan_targets *t, int32_t o) {
    return (1 + (mtan_real)(o - 1) * t->interval) / 2;
}

/* softplus(x) - x y, with softplus(x) = max(x, 0) + softplus(-|x|), so that large logits do not cost the small term its
 * digits. */
static mtan_real label_loss(mtan_real x, mtan_real y) {
    return ((x > 0 ? x : 0) - x * y) + real_softplus(x > 0 ? -x : x);
}

static mtan_real pinball(mtan_real x, mtan_real y, mtan_real quantile) {
    return (y > x ? quantile : quantile - 1) * (y - x);
}

static void numbers_row(mtan_real *loss, mtan_real *p, const mtan_real *x, const mtan_real *y, const mtan_targets *t) {
    const int32_t levels = levels_of(t);
    *loss = 0;
    for (int32_t i = 0; i < t->count; i++)
        for (int32_t o = 0; o < levels; o++, x++, p++) {
            *p = t->task == MTAN_TASK_LABELS ? real_sigmoid(*x) : *x;
            if (y[i] != y[i]) continue;
            *loss += t->task == MTAN_TASK_LABELS ? label_loss(*x, y[i])
                     : levels == 3               ? pinball(*x, y[i], quantile_of(t, o))
                                                 : (*x - y[i]) * (*x - y[i]);
        }
}

static void numbers_row_back(mtan_real *dx, const mtan_real *p, const mtan_real *y, const mtan_targets *t,
                             mtan_real seed) {
    const int32_t levels = levels_of(t);
    for (int32_t i = 0; i < t->count; i++)
        for (int32_t o = 0; o < levels; o++, dx++, p++) {
            if (y[i] != y[i]) continue;
            *dx = MTAN_FMA(seed,
                           t->task == MTAN_TASK_LABELS ? *p - y[i]
                           : levels == 3               ? (y[i] > *p ? 0 : 1) - quantile_of(t, o)
                                                       : 2 * (*p - y[i]),
                           *dx);
        }
}

static void scalar_numbers_forward(const mtan_batch *b, mtan_real *loss, mtan_real *p, const mtan_real *x,
                                   const mtan_real *y, const mtan_targets *t, int32_t rows, int32_t samples) {
    const size_t C = (size_t)t->count, O = C * (size_t)levels_of(t);
    for (int32_t r = 0; samples && r < rows; r++, loss++, p += O, x += O)
        numbers_row(loss, p, x, y + (size_t)(r / samples) * C, t);
    for (int32_t i = 0; !samples && i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++)
            for (int32_t q = b->query0[i]; q < b->query0[i + 1]; q++, loss++, p += O, x += O)
                numbers_row(loss, p, x, y + (size_t)q * C, t);
}

static void scalar_numbers_backward(const mtan_batch *b, mtan_real *dx, const mtan_real *p, const mtan_real *y,
                                    const mtan_targets *t, mtan_real seed, int32_t rows, int32_t samples) {
    const size_t C = (size_t)t->count, O = C * (size_t)levels_of(t);
    for (int32_t r = 0; samples && r < rows; r++, dx += O, p += O)
        numbers_row_back(dx, p, y + (size_t)(r / samples) * C, t, seed);
    for (int32_t i = 0; !samples && i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++)
            for (int32_t q = b->query0[i]; q < b->query0[i + 1]; q++, dx += O, p += O)
                numbers_row_back(dx, p, y + (size_t)q * C, t, seed);
}

/* ---- optimisers, as torch.optim computes them. c: beta1', beta2, beta2', epsilon, rate, 1/sqrt(correction2);
 * x' is 1 - x ---- */

static void scalar_adam(mtan_real *w, mtan_real *m, mtan_real *v, const mtan_real *g, size_t n, const mtan_real c[6]) {
    for (size_t i = 0; i < n; i++) {
        m[i] = MTAN_FMA(c[0], g[i] - m[i], m[i]);
        v[i] = MTAN_FMA(c[2] * g[i], g[i], c[1] * v[i]);
        w[i] -= c[4] * (m[i] / MTAN_FMA(real_sqrt(v[i]), c[5], c[3]));
    }
}

static void scalar_adamax(mtan_real *w, mtan_real *m, mtan_real *u, const mtan_real *g, size_t n,
                          const mtan_real c[6]) {
    for (size_t i = 0; i < n; i++) {
        const mtan_real size = (g[i] < 0 ? -g[i] : g[i]) + c[3], faded = c[1] * u[i];
        m[i] = MTAN_FMA(c[0], g[i] - m[i], m[i]);
        u[i] = faded > size ? faded : size;
        w[i] -= c[4] * (m[i] / u[i]);
    }
}

static void scalar_average(mtan_real *mean, const mtan_real *x, size_t n, mtan_real share) {
    for (size_t i = 0; i < n; i++) mean[i] = MTAN_FMA(share, x[i] - mean[i], mean[i]);
}

/* Box-Muller: n pairs of standard normals from uniforms u and v in [0, 1) and w = 1 - u > 0,
 *     out[0][i] = r cos(2 pi v),   out[1][i] = r sin(2 pi v),   r = sqrt(-2 log(1 - u)).
 * Both u and w are passed because each keeps digits that the other loses to rounding. Near 0, w needs its own digits;
 * near 1, it has too few, and log(w) u / (1 - w) has the relative precision of u. */
static void scalar_normal_pairs(mtan_real *out /* (2, n) */, const mtan_real *u, const mtan_real *w, const mtan_real *v,
                                size_t n) {
    const mtan_real two_pi = (mtan_real)TWO_PI;
    for (size_t i = 0; i < n; i++) {
        mtan_real minus_log = w[i] == 1 ? u[i] : -real_log(w[i]) * (u[i] / (1 - w[i]));
        mtan_real r = real_sqrt(2 * minus_log), angle = two_pi * v[i];
        out[i] = r * real_cos(angle);
        out[n + i] = r * real_sin(angle);
    }
}

/* ---- random numbers of a batch: a counter-based generator, so that those of a record depend only on its own
 * coordinates ---- */

/* Philox4x32-10: ten rounds, with its paper's two multipliers and two Weyl constants (golden ratio, sqrt(3) - 1). */
static void philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    for (uint32_t round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)a * 0xd2511f53u, q = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(q >> 32) ^ b ^ (key[0] + round * 0x9e3779b9u);
        c = (uint32_t)(p >> 32) ^ d ^ (key[1] + round * 0xbb67ae85u);
        b = (uint32_t)q;
        d = (uint32_t)p;
    }
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

/* The finaliser of splitmix64, a bijection in which every input bit affects every output bit. */
static uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The numbers of one record and sample in one epoch or step. */
typedef struct counter_stream {
    uint32_t counter[4], key[2];
} counter_stream;

/* For a given seed, different records have different keys. Counter: index / 4, sample, epoch. */
static counter_stream noise_stream(uint64_t seed, uint64_t epoch, uint64_t record, uint32_t sample) {
    const uint64_t key = mix64(mix64(seed) ^ record);
    const counter_stream r = {{0, sample, (uint32_t)epoch, (uint32_t)(epoch >> 32)},
                              {(uint32_t)key, (uint32_t)(key >> 32)}};
    return r;
}

/* Bit 62, which no epoch of noise sets, keeps the streams of masks apart from those of noise. */
static counter_stream mask_stream(uint64_t seed, uint64_t step, uint64_t record, uint32_t sample) {
    return noise_stream(seed, step | UINT64_C(0x4000000000000000), record, sample);
}

/* Sixteen uniforms, multiples of 2^-24, become sixteen normals. As in PyTorch the first eight are u, the others v. */
static void normal16(const mtan_backend *backend, mtan_real x[16]) {
    mtan_real u[8], w[8], v[8];
    for (int j = 0; j < 8; j++) {
        u[j] = x[j];
        w[j] = 1 - x[j]; /* exact, never 0 */
        v[j] = x[8 + j];
    }
    backend->normal_pairs(x, u, w, v, 8);
}

static void next_normals(const mtan_backend *backend, mtan_real x[16], counter_stream *r) {
    uint32_t bits[16];
    for (int i = 0; i < 16; i += 4, r->counter[0]++) philox(bits + i, r->counter, r->key);
    for (int i = 0; i < 16; i++) x[i] = (mtan_real)(bits[i] >> 8) / 16777216; /* 24 bits: exact */
    normal16(backend, x);
}

static void scalar_noise(const mtan_batch *b, mtan_real *z, uint64_t seed, uint64_t epoch, int32_t latent) {
    const size_t Z = (size_t)latent;
    for (int32_t i = 0; i < b->records; i++)
        for (int32_t s = 0; s < b->samples; s++) {
            counter_stream r = noise_stream(seed, epoch, b->id[i], (uint32_t)s);
            mtan_real x[16];
            size_t n = 0;
            for (int32_t k = 0; k < latent_steps(b, i); k++) {
                mtan_real *row = z + (latent_row(b, i, k) * (size_t)b->samples + (size_t)s) * Z;
                for (size_t j = 0; j < Z; j++, n++) {
                    if (n % 16 == 0) next_normals(kernels, x, &r);
                    row[j] = x[n % 16];
                }
            }
        }
}

/* Units first .. first + n - 1: 0 with the probability `dropout`, else 1. */
static void fill_units(mtan_real *out, size_t n, double dropout, counter_stream r, uint64_t first) {
    const uint64_t least = (uint64_t)(dropout * 4294967296.0); /* of 2^32 */
    uint32_t bits[4];
    for (size_t i = 0; i < n; i++) {
        r.counter[0] = (uint32_t)((first + i) / 4);
        if (i == 0 || (first + i) % 4 == 0) philox(bits, r.counter, r.key);
        out[i] = bits[(first + i) % 4] >= least ? 1 : 0;
    }
}

/* class_rows: how many rows of a record are classified, for each of the S samples. class_row: where row i of a record
 * and sample lies. */
static int32_t class_rows(const mtan_batch *b, mtan_row_order order, int32_t record) {
    return order == MTAN_ROWS_BY_RECORD ? 1 : order == MTAN_ROWS_BY_STEP ? b->length[record] : query_count(b, record);
}

static size_t class_row(const mtan_batch *b, mtan_row_order order, int32_t record, int32_t i, int32_t sample) {
    if (order == MTAN_ROWS_BY_QUERY) return query_rows(b, record, sample) + (size_t)i;
    return order == MTAN_ROWS_BY_STEP ? sequence_row(b, record, i, sample, b->samples)
                                      : (size_t)(record * b->samples + sample);
}

/* Units are numbered across both hidden layers, row by row of the record, so that no two share a number. */
static void scalar_mask(const mtan_batch *b, mtan_real *mask, double dropout, uint64_t seed, uint64_t step,
                        int32_t width, mtan_row_order order, int32_t hidden_layer) {
    for (int32_t r = 0; r < b->records; r++)
        for (int32_t i = 0; i < class_rows(b, order, r); i++)
            for (int32_t s = 0; s < b->samples; s++)
                fill_units(mask + class_row(b, order, r, i, s) * (size_t)width, (size_t)width, dropout,
                           mask_stream(seed, step, b->id[r], (uint32_t)s),
                           (2 * (uint64_t)i + (uint64_t)hidden_layer) * (uint64_t)width);
}

/* Table entries for the scalar kernels: .map = scalar_map, and so on. */
#define MTAN_SCALAR(result, name, arguments) .name = scalar_##name,

#ifndef MTAN_NO_TABLE
const mtan_backend MTAN_BACKEND = {
    MTAN_KERNELS(MTAN_SCALAR, MTAN_SCALAR).fused = MTAN_FUSED,
    .name = MTAN_BACKEND_NAME,
};
#endif

#ifndef MTAN_KERNELS_ONLY
/* ==== 4. Tape ====================================================================================================
 * A workspace is one block of reals: tensors grow from its start, recorded nodes from its end. Without a block the same
 * forward function only counts the reals it needs, so the computed size always fits the layout. */

/* Tensors start at multiples of one cache line, which is also the widest vector. */
#define MTAN_ALIGN 64u
#define ALIGN_REALS (MTAN_ALIGN / sizeof(mtan_real))
#define LARGEST_COUNT ((size_t)INT32_MAX)

static size_t align_count(size_t n) {
    return (n + ALIGN_REALS - 1) / ALIGN_REALS * ALIGN_REALS;
}

static mtan_real *align_memory(void *memory) {
    return (mtan_real *)(((uintptr_t)memory + MTAN_ALIGN - 1) / MTAN_ALIGN * MTAN_ALIGN);
}

/* Bytes to ask the caller for: `count` reals at an aligned address inside a block of any alignment. */
static mtan_status bytes_for(size_t count, size_t *bytes) {
    if (count > (SIZE_MAX - MTAN_ALIGN) / sizeof(mtan_real)) return MTAN_ERR_SIZE;
    *bytes = count * sizeof(mtan_real) + MTAN_ALIGN - 1;
    return MTAN_OK;
}

static void fail(mtan_tape *tape, mtan_status status) {
    if (tape->status == MTAN_OK) tape->status = status;
}

/* Whether ops should run their kernels: not when counting, after a failure or when the tape is idle. */
static int runs(const mtan_tape *tape) {
    return tape->work != NULL && tape->status == MTAN_OK && !tape->idle;
}

/* ---- a device's memory: the host says what it has written and what it is about to read; no effect on CPUs ---- */

static void send(mtan_tape *tape, const void *from, size_t bytes) {
    const mtan_device *device = tape->backend->device;
    if (device && runs(tape) && !device->send(from, bytes)) fail(tape, MTAN_ERR_DEVICE);
}

/* Bytes from the first element of a tensor to its last: of columns of a wider one, the rest of the last row is not theirs. */
static size_t span_of(mtan_tensor x) {
    return x.rows > 0 ? ((size_t)(x.rows - 1) * (size_t)x.stride + (size_t)x.cols) * sizeof(mtan_real) : 0;
}

static void send_tensor(mtan_tape *tape, mtan_tensor x) {
    send(tape, mtan_data(tape, x), span_of(x));
}

static void fetch_tensor(mtan_tape *tape, mtan_tensor x) {
    const mtan_device *device = tape->backend->device;
    if (device && runs(tape) && x.rows > 0 && !device->fetch(mtan_data(tape, x), span_of(x)))
        fail(tape, MTAN_ERR_DEVICE);
}

/* Waits for the kernels launched so far and reports whether they failed. */
static mtan_status device_status(const mtan_backend *backend, mtan_real *any) {
    return backend->device && !backend->device->fetch(any, 0) ? MTAN_ERR_DEVICE : MTAN_OK;
}

/* The kernels for the few computations that the host does on fetched data. */
static const mtan_backend *host_kernels(const mtan_tape *tape) {
    return tape->backend->device ? &mtan_backend_scalar : tape->backend;
}

/* The number of nodes fits in 32 bits and their bytes in a quarter of size_t's range, so that workspace plus nodes
 * cannot overflow. */
#define LARGEST_NODES                                                                                                  \
    (SIZE_MAX / 4 / sizeof(mtan_node) < UINT32_MAX ? SIZE_MAX / 4 / sizeof(mtan_node) : UINT32_MAX - 1)

static size_t node_reals(size_t nodes) {
    return align_count((nodes * sizeof(mtan_node) + sizeof(mtan_real) - 1) / sizeof(mtan_real));
}

/* Takes n reals of workspace and returns their offset. */
static size_t take(mtan_tape *tape, size_t n) {
    const size_t at = tape->top;
    if (tape->status != MTAN_OK) return 0;
    if (at > LARGEST_COUNT || n > LARGEST_COUNT - at) {
        fail(tape, MTAN_ERR_SIZE);
        return 0;
    }
    n = align_count(n);
    if (tape->work && at + n + node_reals(tape->nodes) > tape->capacity) {
        fail(tape, MTAN_ERR_MEMORY);
        return 0;
    }
    tape->top += n;
    if (tape->top + node_reals(tape->nodes) > tape->peak) tape->peak = tape->top + node_reals(tape->nodes);
    return at;
}

static mtan_tensor matrix(uint32_t space, size_t data, uint32_t grad, int32_t rows, int32_t cols) {
    mtan_tensor x;
    x.data = (uint32_t)data;
    x.grad = grad;
    x.rows = rows, x.cols = cols, x.stride = cols;
    x.space = space;
    return x;
}

/* rows x cols as a count; 0 and a failed tape if that is too large */
static size_t area(mtan_tape *tape, int32_t rows, int32_t cols) {
    if (rows < 0 || cols < 0 || (cols > 0 && (size_t)rows > LARGEST_COUNT / (size_t)cols)) {
        fail(tape, MTAN_ERR_SIZE);
        return 0;
    }
    return (size_t)rows * (size_t)cols;
}

mtan_tensor mtan_new_constant(mtan_tape *tape, int32_t rows, int32_t cols) {
    return matrix(MTAN_SPACE_WORK, take(tape, area(tape, rows, cols)), MTAN_NO_GRAD, rows, cols);
}

mtan_tensor mtan_new_gates(mtan_tape *tape, int32_t rows, int32_t cols) {
    mtan_tensor x = mtan_new_constant(tape, rows, cols);
    if (tape->recording) x.grad = x.data;
    return x;
}

mtan_tensor mtan_new(mtan_tape *tape, int32_t rows, int32_t cols) {
    mtan_tensor x = mtan_new_constant(tape, rows, cols);
    if (tape->recording) {
        x.grad = (uint32_t)take(tape, area(tape, rows, cols));
        if (runs(tape)) tape->backend->fill(mtan_grad(tape, x), area(tape, rows, cols), 0);
    }
    return x;
}

mtan_tensor mtan_new_fold_constant(mtan_tape *tape, int32_t rows, int32_t cols) {
    const size_t n = area(tape, rows, cols), at = tape->fold_top;
    if (count_sum(at, n) > LARGEST_COUNT - tape->n_params) fail(tape, MTAN_ERR_SIZE);
    else tape->fold_top += align_count(n);
    return matrix(MTAN_SPACE_FOLD, at, MTAN_NO_GRAD, rows, cols);
}

mtan_tensor mtan_new_fold(mtan_tape *tape, int32_t rows, int32_t cols) {
    mtan_tensor x = mtan_new_fold_constant(tape, rows, cols);
    x.grad = (uint32_t)tape->n_params + x.data;
    tape->fold_graded = tape->fold_top;
    return x;
}

mtan_tensor mtan_columns(mtan_tensor x, int32_t first, int32_t count) {
    x.data += (uint32_t)first;
    if (x.grad != MTAN_NO_GRAD) x.grad += (uint32_t)first;
    x.cols = count;
    return x;
}

mtan_tensor mtan_rows(mtan_tensor x, int32_t first, int32_t count) {
    x.data += (uint32_t)first * (uint32_t)x.stride;
    if (x.grad != MTAN_NO_GRAD) x.grad += (uint32_t)first * (uint32_t)x.stride;
    x.rows = count;
    return x;
}

/* Casts const away from the weights. Only the optimiser writes them, and it does not call this function. */
mtan_real *mtan_data(const mtan_tape *tape, mtan_tensor x) {
    mtan_real *base = tape->work;
    if (x.space == MTAN_SPACE_PARAM) base = (mtan_real *)(uintptr_t)tape->params;
    if (x.space == MTAN_SPACE_FOLD) base = tape->fold;
    return base ? base + x.data : NULL;
}

mtan_real *mtan_grad(const mtan_tape *tape, mtan_tensor x) {
    mtan_real *base = x.space == MTAN_SPACE_WORK ? tape->work : tape->grads;
    return base && x.grad != MTAN_NO_GRAD ? base + x.grad : NULL;
}

int32_t *mtan_new_ints(mtan_tape *tape, size_t n) {
    const size_t at = take(tape, n); /* a real is at least as wide as an int32_t */
    return runs(tape) ? (int32_t *)(void *)(tape->work + at) : NULL;
}

/* Nodes are counted from the end of the workspace, which is aligned. */
static mtan_node *node_at(const mtan_tape *tape, uint32_t i) {
    return (mtan_node *)(void *)(tape->work + tape->capacity) - 1 - i;
}

mtan_node *mtan_record_op(mtan_tape *tape, uint32_t op) {
    mtan_node *node;
    if (!tape->recording || tape->status != MTAN_OK) return NULL;
    if (tape->nodes >= LARGEST_NODES) {
        fail(tape, MTAN_ERR_SIZE);
        return NULL;
    }
    tape->nodes++;
    if (tape->top + node_reals(tape->nodes) > tape->peak) tape->peak = tape->top + node_reals(tape->nodes);
    if (!tape->work) return NULL;
    if (tape->top + node_reals(tape->nodes) > tape->capacity) {
        tape->nodes--;
        fail(tape, MTAN_ERR_MEMORY);
        return NULL;
    }
    node = node_at(tape, tape->nodes - 1);
    memset(node, 0, sizeof *node);
    node->op = op;
    return node;
}

static mtan_node *record_tensors(mtan_tape *tape, uint32_t op, const mtan_tensor *t, int32_t n) {
    mtan_node *node = mtan_record_op(tape, op);
    if (node) memcpy(node->t, t, (size_t)n * sizeof *t);
    return node;
}

/* For ops that may be used on constants: no node if the result t[0] or the last tensor has no gradient. */
static mtan_node *record_graded(mtan_tape *tape, uint32_t op, const mtan_tensor *t, int32_t n) {
    return t[0].grad == MTAN_NO_GRAD || t[n - 1].grad == MTAN_NO_GRAD ? NULL : record_tensors(tape, op, t, n);
}

/* A tape over `count` aligned reals, or a counting one when work is null. */
static mtan_tape tape_start(const mtan_backend *backend, mtan_real *work, size_t count, int32_t recording) {
    mtan_tape tape;
    memset(&tape, 0, sizeof tape);
    tape.backend = backend;
    tape.work = work;
    tape.capacity = count / ALIGN_REALS * ALIGN_REALS;
    tape.recording = recording;
    return tape;
}

/* ==== 5. Ops ====================================================================================================
 * Each op has a forward function, which records a node with the tensors that the backward pass needs, and a backward
 * function. Ops do not read or write data themselves: they call kernels. */

/* The list of ops. Op NAME has the number OP_NAME on a tape and the backward function NAME_back. */
/* clang-format off */
#define OPS(X) \
    X(embed) X(linear) X(matmul) X(scale) X(relu) X(tanh) X(dropout) X(softplus) X(copy) X(add) X(spread) X(last) \
    X(softmax) X(softmax_pairs) X(regroup) X(at_queries) X(score) X(attend) X(moments) X(attend_rbf) \
    X(attend_values) X(smooth) X(gru) X(sample) X(kl) X(ratio) X(loglik) X(loglik_sd) X(bound) X(cross_entropy) \
    X(numbers)
/* clang-format on */

enum {
#define X(name) OP_##name,
    OPS(X)
#undef X
        OP_COUNT
};

/* An empty tensor, for omitted arguments. */
static const mtan_tensor nothing = {0, MTAN_NO_GRAD, 0, 0, 0, MTAN_SPACE_WORK};

static size_t count_of(mtan_tensor x) {
    return (size_t)x.rows * (size_t)x.cols;
}

static void copy_tensor(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    tape->backend->copy(mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x), x.rows == 1 ? 0 : (size_t)x.stride,
                        y.rows, y.cols);
}

/* ---- time embedding ---- */

void mtan_op_embed(mtan_tape *tape, mtan_tensor y, mtan_tensor time, const mtan_tensor param[4]) {
    const mtan_tensor t[6] = {y, time, param[0], param[1], param[2], param[3]};
    record_tensors(tape, OP_embed, t, 6);
    if (!runs(tape)) return;
    tape->backend->embed_forward(mtan_data(tape, y), mtan_data(tape, time), mtan_data(tape, param[0]),
                                 mtan_data(tape, param[1]), mtan_data(tape, param[2]), mtan_data(tape, param[3]),
                                 time.rows, y.cols);
}

static void embed_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor *t = n->t;
    tape->backend->embed_backward(mtan_grad(tape, t[2]), mtan_grad(tape, t[3]), mtan_grad(tape, t[4]),
                                  mtan_grad(tape, t[5]), mtan_grad(tape, t[0]), mtan_data(tape, t[1]),
                                  mtan_data(tape, t[4]), mtan_data(tape, t[5]), t[1].rows, t[0].cols);
}

void mtan_op_embed_fixed(mtan_tape *tape, mtan_tensor y, mtan_tensor time, double base, double scale) {
    if (!runs(tape)) return;
    tape->backend->embed_fixed(mtan_data(tape, y), mtan_data(tape, time), (mtan_real)base, (mtan_real)scale, time.rows,
                               y.cols);
}

/* ---- linear: y = x w^T + b, or y += x w^T ---- */

/* y = [y +] x w^T with w as the backend packs it for the tape's precision */
static void multiply_packed(const mtan_tape *tape, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                            mtan_tensor packed, int32_t rows, int32_t n, int32_t k, int32_t add) {
    const mtan_real *w = mtan_data(tape, packed);
    if (tape->precision == MTAN_INT8) tape->backend->product_int8(y, ldy, x, ldx, w, rows, n, k, add);
    else tape->backend->product_packed(y, ldy, x, ldx, w, rows, n, k, add, 0);
}

/* packed: w as the backend packs it, or `nothing`. A packed product always adds to y, so it needs a bias or add. */
static void linear(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor w, const mtan_tensor *bias,
                   mtan_tensor packed, int32_t add) {
    const mtan_tensor t[4] = {y, x, w, bias ? *bias : nothing};
    record_tensors(tape, OP_linear, t, 4);
    if (!runs(tape)) return;
    if (bias) tape->backend->copy(mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, *bias), 0, y.rows, y.cols);
    if (packed.cols)
        multiply_packed(tape, mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x), (size_t)x.stride, packed,
                        y.rows, y.cols, x.cols, 1);
    else
        tape->backend->product_nt(mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x), (size_t)x.stride,
                                  mtan_data(tape, w), (size_t)w.stride, y.rows, y.cols, x.cols, add || bias != NULL);
}

void mtan_op_linear(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor w, const mtan_tensor *bias) {
    linear(tape, y, x, w, bias, nothing, 0);
}

void mtan_op_linear_add(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor w) {
    linear(tape, y, x, w, NULL, nothing, 1);
}

static void linear_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_backend *k = tape->backend;
    const mtan_tensor y = n->t[0], x = n->t[1], w = n->t[2], b = n->t[3];
    const mtan_real *dy = mtan_grad(tape, y);
    if (x.grad != MTAN_NO_GRAD)
        k->product_nn(mtan_grad(tape, x), (size_t)x.stride, dy, (size_t)y.stride, mtan_data(tape, w), (size_t)w.stride,
                      y.rows, x.cols, y.cols, 1);
    if (w.grad != MTAN_NO_GRAD)
        k->product_tn(mtan_grad(tape, w), (size_t)w.stride, dy, (size_t)y.stride, mtan_data(tape, x), (size_t)x.stride,
                      y.cols, x.cols, y.rows, 1);
    if (b.grad != MTAN_NO_GRAD) k->add(mtan_grad(tape, b), 0, dy, (size_t)y.stride, y.rows, y.cols);
}

/* ---- y = a b ---- */

void mtan_op_matmul(mtan_tape *tape, mtan_tensor y, mtan_tensor a, mtan_tensor b) {
    const mtan_tensor t[3] = {y, a, b};
    record_tensors(tape, OP_matmul, t, 3);
    if (!runs(tape)) return;
    tape->backend->product_nn(mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, a), (size_t)a.stride,
                              mtan_data(tape, b), (size_t)b.stride, y.rows, y.cols, a.cols, 0);
}

static void matmul_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], a = n->t[1], b = n->t[2];
    const mtan_real *dy = mtan_grad(tape, y);
    if (a.grad != MTAN_NO_GRAD)
        tape->backend->product_nt(mtan_grad(tape, a), (size_t)a.stride, dy, (size_t)y.stride, mtan_data(tape, b),
                                  (size_t)b.stride, y.rows, a.cols, y.cols, 1);
    if (b.grad != MTAN_NO_GRAD)
        tape->backend->product_tn(mtan_grad(tape, b), (size_t)b.stride, mtan_data(tape, a), (size_t)a.stride, dy,
                                  (size_t)y.stride, a.cols, y.cols, y.rows, 1);
}

/* ---- elementwise: most ops work in place, and so do their backward functions on the gradient ---- */

void mtan_op_scale(mtan_tape *tape, mtan_tensor x, double factor) {
    mtan_node *node = record_graded(tape, OP_scale, &x, 1);
    if (node) node->x[0] = (mtan_real)factor;
    if (runs(tape)) tape->backend->scale(mtan_data(tape, x), (size_t)x.stride, x.rows, x.cols, (mtan_real)factor);
}

static void scale_back(mtan_tape *tape, const mtan_node *n) {
    tape->backend->scale(mtan_grad(tape, n->t[0]), (size_t)n->t[0].stride, n->t[0].rows, n->t[0].cols, n->x[0]);
}

void mtan_op_relu(mtan_tape *tape, mtan_tensor x) {
    record_graded(tape, OP_relu, &x, 1);
    if (runs(tape)) tape->backend->relu_forward(mtan_data(tape, x), count_of(x));
}

static void relu_back(mtan_tape *tape, const mtan_node *n) {
    tape->backend->relu_backward(mtan_grad(tape, n->t[0]), mtan_data(tape, n->t[0]), count_of(n->t[0]));
}

void mtan_op_tanh(mtan_tape *tape, mtan_tensor x) {
    record_graded(tape, OP_tanh, &x, 1);
    if (runs(tape)) tape->backend->map(MTAN_TANH, mtan_data(tape, x), mtan_data(tape, x), count_of(x));
}

static void tanh_back(mtan_tape *tape, const mtan_node *n) {
    tape->backend->tanh_backward(mtan_grad(tape, n->t[0]), mtan_data(tape, n->t[0]), count_of(n->t[0]));
}

/* y = mask y / (1 - dropout), by two kernels that every backend has: the first sets y to 0 where the mask is 0. */
static void drop_units(const mtan_tape *tape, mtan_real *y, mtan_tensor mask, mtan_real factor) {
    tape->backend->relu_backward(y, mtan_data(tape, mask), count_of(mask));
    tape->backend->scale(y, (size_t)mask.stride, mask.rows, mask.cols, factor);
}

/* May follow an in-place ReLU on the same tensor: a kept unit keeps its sign, and a dropped unit has no gradient that
 * the ReLU would have to stop. */
void mtan_op_dropout(mtan_tape *tape, mtan_tensor x, mtan_tensor mask, double dropout) {
    const mtan_tensor t[2] = {x, mask};
    const mtan_real factor = (mtan_real)(1 / (1 - dropout));
    mtan_node *node = record_tensors(tape, OP_dropout, t, 2);
    if (node) node->x[0] = factor;
    if (runs(tape)) drop_units(tape, mtan_data(tape, x), mask, factor);
}

static void dropout_back(mtan_tape *tape, const mtan_node *n) {
    drop_units(tape, mtan_grad(tape, n->t[0]), n->t[1], n->x[0]);
}

void mtan_op_softplus(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_tensor t[2] = {y, x};
    record_graded(tape, OP_softplus, t, 2);
    if (runs(tape)) tape->backend->map(MTAN_SOFTPLUS, mtan_data(tape, y), mtan_data(tape, x), count_of(x));
}

static void softplus_back(mtan_tape *tape, const mtan_node *n) {
    tape->backend->softplus_backward(mtan_grad(tape, n->t[1]), mtan_grad(tape, n->t[0]), mtan_data(tape, n->t[1]),
                                     count_of(n->t[1]));
}

void mtan_op_softmax(mtan_tape *tape, mtan_tensor x) {
    record_graded(tape, OP_softmax, &x, 1);
    if (runs(tape)) tape->backend->softmax_forward(mtan_data(tape, x), x.rows, x.cols);
}

static void softmax_back(mtan_tape *tape, const mtan_node *n) {
    tape->backend->softmax_backward(mtan_grad(tape, n->t[0]), mtan_data(tape, n->t[0]), n->t[0].rows, n->t[0].cols);
}

/* ---- moving rows ---- */

void mtan_op_copy(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_tensor t[2] = {y, x};
    record_graded(tape, OP_copy, t, 2);
    if (runs(tape)) copy_tensor(tape, y, x);
}

static void copy_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], x = n->t[1];
    tape->backend->add(mtan_grad(tape, x), x.rows == 1 ? 0 : (size_t)x.stride, mtan_grad(tape, y), (size_t)y.stride,
                       y.rows, y.cols);
}

/* y += x */
void mtan_op_add(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_tensor t[2] = {y, x};
    record_graded(tape, OP_add, t, 2);
    if (runs(tape))
        tape->backend->add(mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x), (size_t)x.stride, x.rows, x.cols);
}

static void add_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], x = n->t[1];
    tape->backend->add(mtan_grad(tape, x), (size_t)x.stride, mtan_grad(tape, y), (size_t)y.stride, y.rows, y.cols);
}

void mtan_op_spread(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_tensor t[2] = {y, x};
    record_graded(tape, OP_spread, t, 2);
    if (!runs(tape)) return;
    tape->backend->spread_forward(tape->batch, mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x),
                                  (size_t)x.stride, y.cols);
}

static void spread_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], x = n->t[1];
    tape->backend->spread_backward(tape->batch, mtan_grad(tape, x), (size_t)x.stride, mtan_grad(tape, y),
                                   (size_t)y.stride, y.cols);
}

/* The last row of each sequence, for each of a record's samples; a record without steps gives zeros. */
void mtan_op_last(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_tensor t[2] = {y, x};
    record_graded(tape, OP_last, t, 2);
    if (!runs(tape)) return;
    tape->backend->last_forward(tape->batch, mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x), (size_t)x.stride,
                                y.cols, y.rows / tape->batch->records);
}

static void last_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], x = n->t[1];
    tape->backend->last_backward(tape->batch, mtan_grad(tape, x), (size_t)x.stride, mtan_grad(tape, y),
                                 (size_t)y.stride, y.cols, y.rows / tape->batch->records);
}

/* Reorders rows from (step, record, sample) to (record, sample, step), for ragged sequences. */
void mtan_op_regroup(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_tensor t[2] = {y, x};
    record_graded(tape, OP_regroup, t, 2);
    if (!runs(tape)) return;
    tape->backend->regroup_forward(tape->batch, mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x),
                                   (size_t)x.stride, y.cols);
}

static void regroup_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], x = n->t[1];
    tape->backend->regroup_backward(tape->batch, mtan_grad(tape, x), (size_t)x.stride, mtan_grad(tape, y),
                                    (size_t)y.stride, y.cols);
}

/* Picks rows of (step, record, sample) as (record, sample, query), for a class per time. */
void mtan_op_at_queries(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_tensor t[2] = {y, x};
    record_graded(tape, OP_at_queries, t, 2);
    if (!runs(tape)) return;
    tape->backend->at_queries_forward(tape->batch, mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x),
                                      (size_t)x.stride, y.cols);
}

static void at_queries_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], x = n->t[1];
    tape->backend->at_queries_backward(tape->batch, mtan_grad(tape, x), (size_t)x.stride, mtan_grad(tape, y),
                                       (size_t)y.stride, y.cols);
}

/* ---- scores ---- */

void mtan_op_score(mtan_tape *tape, mtan_tensor score, mtan_tensor row, mtan_tensor point, int32_t decoder) {
    const mtan_tensor t[3] = {score, row, point};
    mtan_node *node = record_tensors(tape, OP_score, t, 3);
    if (node) node->n[0] = decoder;
    if (!runs(tape)) return;
    tape->backend->score_forward(tape->batch, mtan_data(tape, score), mtan_data(tape, row), (size_t)row.stride,
                                 mtan_data(tape, point), (size_t)point.stride, row.cols, decoder);
}

static void score_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor score = n->t[0], row = n->t[1], point = n->t[2];
    tape->backend->score_backward(tape->batch, mtan_grad(tape, row), (size_t)row.stride, mtan_grad(tape, point),
                                  (size_t)point.stride, mtan_grad(tape, score), mtan_data(tape, row),
                                  mtan_data(tape, point), row.cols, n->n[0]);
}

void mtan_op_softmax_pairs(mtan_tape *tape, mtan_tensor weight) {
    record_tensors(tape, OP_softmax_pairs, &weight, 1);
    if (runs(tape)) tape->backend->softmax_pairs_forward(tape->batch, mtan_data(tape, weight));
}

static void softmax_pairs_back(mtan_tape *tape, const mtan_node *n) {
    tape->backend->softmax_pairs_backward(tape->batch, mtan_grad(tape, n->t[0]), mtan_data(tape, n->t[0]));
}

/* ---- sparse attention over the batch's events: y (R, D) of one head ---- */

/* Buffers for the exponentials, the totals and scratch. */
static void attend_buffers(mtan_tape *tape, mtan_tensor t[5]) {
    const mtan_batch *batch = tape->batch;
    t[2] = mtan_new_constant(tape, 1, batch->scores);
    t[3] = mtan_new_constant(tape, (int32_t)area(tape, batch->records, batch->channels - batch->statics), batch->steps);
    t[4] = mtan_new_constant(tape, 2, batch->steps);
}

/* t: y, score, and the buffers */
static void attend(mtan_tape *tape, const mtan_tensor t[5]) {
    record_tensors(tape, OP_attend, t, 5);
    if (!runs(tape)) return;
    tape->backend->attend_forward(tape->batch, mtan_data(tape, t[0]), (size_t)t[0].stride, mtan_data(tape, t[1]),
                                  mtan_data(tape, t[2]), mtan_data(tape, t[3]), mtan_data(tape, t[4]));
}

void mtan_op_attend(mtan_tape *tape, mtan_tensor y, mtan_tensor score) {
    mtan_tensor t[5];
    t[0] = y, t[1] = score;
    attend_buffers(tape, t);
    attend(tape, t);
}

static void attend_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor *t = n->t;
    tape->backend->attend_backward(tape->batch, mtan_grad(tape, t[1]), mtan_grad(tape, t[0]), mtan_data(tape, t[0]),
                                   (size_t)t[0].stride, mtan_data(tape, t[1]), mtan_data(tape, t[2]),
                                   mtan_data(tape, t[3]), mtan_data(tape, t[4]));
}

/* ---- local statistics: y (R, features x D) of one head ---- */

void mtan_op_moments(mtan_tape *tape, mtan_tensor y, mtan_tensor score, mtan_tensor point, double rate,
                     int32_t statistics) {
    const mtan_batch *batch = tape->batch;
    const int32_t channels = (int32_t)area(tape, batch->records, batch->channels - batch->statics);
    mtan_tensor t[7];
    mtan_node *node;
    t[0] = y, t[1] = score, t[2] = point, t[3] = batch->time;
    t[4] = mtan_new_constant(tape, 1, batch->scores);
    t[5] = mtan_new_constant(tape, (int32_t)area(tape, channels, MTAN_MOMENTS), batch->steps);
    t[6] = mtan_new_constant(tape, 2 + statistics_count(statistics), batch->steps);
    if ((node = record_tensors(tape, OP_moments, t, 7))) node->n[0] = statistics, node->x[0] = (mtan_real)rate;
    if (!runs(tape)) return;
    tape->backend->moments_forward(batch, mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, score),
                                   mtan_data(tape, t[4]), mtan_data(tape, t[5]), mtan_data(tape, t[6]),
                                   mtan_data(tape, point), mtan_data(tape, t[3]), (mtan_real)rate, statistics);
}

static void moments_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor *t = n->t;
    tape->backend->moments_backward(tape->batch, mtan_grad(tape, t[1]), mtan_grad(tape, t[0]), mtan_data(tape, t[0]),
                                    (size_t)t[0].stride, mtan_data(tape, t[1]), mtan_data(tape, t[4]),
                                    mtan_data(tape, t[5]), mtan_data(tape, t[6]), mtan_data(tape, t[2]),
                                    mtan_data(tape, t[3]), n->x[0], n->n[0]);
}

/* ---- RBF smoothing over the batch's events: y (R, D); query holds the points, shared or per record ---- */

void mtan_op_attend_rbf(mtan_tape *tape, mtan_tensor y, mtan_tensor query, mtan_tensor beta) {
    const mtan_tensor t[3] = {y, query, beta};
    record_tensors(tape, OP_attend_rbf, t, 3);
    if (!runs(tape)) return;
    tape->backend->rbf_forward(tape->batch, mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, query),
                               mtan_data(tape, tape->batch->time), mtan_data(tape, beta));
}

static void attend_rbf_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], query = n->t[1], beta = n->t[2];
    tape->backend->rbf_backward(tape->batch, mtan_grad(tape, beta), mtan_grad(tape, y), mtan_data(tape, y),
                                (size_t)y.stride, mtan_data(tape, query), mtan_data(tape, tape->batch->time),
                                mtan_data(tape, beta));
}

/* ---- decoder attention, unmasked (Q7): y (Q S, C) = weights values, the same weights for all samples ---- */

void mtan_op_attend_values(mtan_tape *tape, mtan_tensor y, mtan_tensor weight, mtan_tensor value) {
    const mtan_tensor t[3] = {y, weight, value};
    record_tensors(tape, OP_attend_values, t, 3);
    if (!runs(tape)) return;
    tape->backend->values_forward(tape->batch, mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, weight),
                                  mtan_data(tape, value), (size_t)value.stride, y.cols);
}

static void attend_values_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], weight = n->t[1], value = n->t[2];
    tape->backend->values_backward(tape->batch, mtan_grad(tape, weight), mtan_grad(tape, value), mtan_grad(tape, y),
                                   (size_t)y.stride, mtan_data(tape, weight), mtan_data(tape, value),
                                   (size_t)value.stride, y.cols);
}

/* Decoder attention with RBF weights, one bandwidth per column; a record without points gives zeros. */
void mtan_op_smooth(mtan_tape *tape, mtan_tensor y, mtan_tensor key, mtan_tensor beta, mtan_tensor value) {
    const mtan_tensor t[4] = {y, key, beta, value};
    record_tensors(tape, OP_smooth, t, 4);
    if (!runs(tape)) return;
    tape->backend->smooth_forward(tape->batch, mtan_data(tape, y), (size_t)y.stride,
                                  mtan_data(tape, tape->batch->query), mtan_data(tape, key), mtan_data(tape, beta),
                                  mtan_data(tape, value), (size_t)value.stride, y.cols);
}

static void smooth_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], key = n->t[1], beta = n->t[2], value = n->t[3];
    tape->backend->smooth_backward(tape->batch, mtan_grad(tape, value), mtan_grad(tape, beta), mtan_grad(tape, y),
                                   mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, tape->batch->query),
                                   mtan_data(tape, key), mtan_data(tape, beta), mtan_data(tape, value),
                                   (size_t)value.stride, y.cols);
}

/* ---- GRU over the batch's sequence ----
 * The gates overwrite gx, whose values no other backward function needs. In the backward pass the gradients of the
 * gates overwrite the gates. If mtan_new_gates made gx, data and gradient share memory, so that is gx's gradient. */

/* A GRU's recurrent weights, packed by the backend for the forward and the backward pass; either may be `nothing`. */
typedef struct gru_packed {
    mtan_tensor w, back;
} gru_packed;

/* t: y (R, N), gx (R, 3N), w_hh, b_hh, hn (R, N) or nothing, scratch (rows of the first step, 3N), w_hh packed for the
 * backward pass or nothing. */
static mtan_gru gru_of(const mtan_tape *tape, const mtan_tensor *t, mtan_tensor packed, int32_t samples,
                       int32_t reverse) {
    mtan_gru layer;
    memset(&layer, 0, sizeof layer);
    layer.w = mtan_data(tape, t[2]), layer.ldw = (size_t)t[2].stride;
    layer.packed = packed.cols ? mtan_data(tape, packed) : NULL;
    layer.back = t[6].cols ? mtan_data(tape, t[6]) : NULL;
    layer.precision = tape->precision;
    layer.bias = mtan_data(tape, t[3]);
    layer.hidden = t[0].cols;
    layer.samples = samples;
    layer.reverse = reverse;
    return layer;
}

/* An input that the GRU projects itself: gx = constant + x w^T, with x and w in parts. */
typedef struct gru_source {
    mtan_tensor x;        /* (R, parts V) */
    mtan_tensor w;        /* (3N, V) of the first part; the next part starts `apart` columns on */
    mtan_tensor packed;   /* all of w as the backend packs it, or nothing */
    mtan_tensor constant; /* (B, 3N), or one row for all */
    int32_t parts, apart;
} gru_source;

/* The weights of a source, packed. */
static mtan_tensor source_weights(mtan_tape *tape, const gru_source *from) {
    const int32_t columns = from->x.cols / from->parts;
    mtan_tensor packed = from->packed;
    if (packed.cols) return packed;
    packed = mtan_new_constant(tape, from->parts, (int32_t)tape->backend->pack_count(from->constant.cols, columns));
    for (int32_t p = 0; runs(tape) && p < from->parts; p++)
        tape->backend->pack(mtan_data(tape, mtan_rows(packed, p, 1)),
                            mtan_data(tape, mtan_columns(from->w, p * from->apart, columns)), (size_t)from->w.stride, 1,
                            from->constant.cols, columns);
    return packed;
}

static void gru_reads(const mtan_tape *tape, mtan_gru *layer, const gru_source *from, mtan_tensor packed) {
    layer->x = mtan_data(tape, from->x), layer->ldx = (size_t)from->x.stride;
    layer->parts = packed.rows, layer->columns = from->x.cols / packed.rows;
    layer->w_in = mtan_data(tape, packed), layer->part = (size_t)packed.stride;
    layer->in_precision = from->packed.cols ? tape->precision : MTAN_REAL;
    layer->constant = mtan_data(tape, from->constant);
    layer->ldc = from->constant.rows == 1 ? 0 : (size_t)from->constant.stride;
}

/* from: the source to compute gx from; null if gx is already computed. */
static void run_gru(mtan_tape *tape, mtan_tensor y, mtan_tensor gx, const gru_source *from, mtan_tensor w_hh,
                    mtan_tensor b_hh, gru_packed packed, int32_t samples, int32_t reverse) {
    const int32_t widest = (int32_t)area(tape, tape->batch->records, samples);
    const mtan_tensor w_in = from ? source_weights(tape, from) : nothing;
    mtan_tensor t[7];
    mtan_node *node;
    mtan_gru layer;
    t[0] = y, t[1] = gx, t[2] = w_hh, t[3] = b_hh;
    t[4] = tape->recording ? mtan_new_constant(tape, y.rows, y.cols) : nothing;
    t[5] = mtan_new_constant(tape, widest, 3 * y.cols);
    t[6] = packed.back;
    node = record_tensors(tape, OP_gru, t, 7);
    if (node) node->n[0] = samples, node->n[1] = reverse;
    if (!runs(tape)) return;
    layer = gru_of(tape, t, packed.w, samples, reverse);
    if (from) gru_reads(tape, &layer, from, w_in);
    tape->backend->gru_forward(tape->batch, &layer, mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, gx),
                               (size_t)gx.stride, t[4].rows ? mtan_data(tape, t[4]) : NULL, mtan_data(tape, t[5]));
}

void mtan_op_gru(mtan_tape *tape, mtan_tensor y, mtan_tensor gx, mtan_tensor w_hh, mtan_tensor b_hh,
                 const mtan_tensor *packed, int32_t samples, int32_t reverse) {
    const gru_packed forward = {packed ? *packed : nothing, nothing};
    run_gru(tape, y, gx, NULL, w_hh, b_hh, forward, samples, reverse);
}

/* A GRU on a source. The ops that compute gx are recorded for the backward pass, but only a device runs them. On a CPU
 * the GRU computes gx itself, a few steps at a time; without a backward pass gx has room for only those steps. */
static void gru_on(mtan_tape *tape, mtan_tensor y, const gru_source *from, mtan_tensor w_hh, mtan_tensor b_hh,
                   gru_packed packed, int32_t samples, int32_t reverse) {
    const int32_t device = tape->backend->device != NULL, columns = from->x.cols / from->parts;
    const int32_t widest = (int32_t)area(tape, tape->batch->records, samples); /* 0: too many, the tape failed */
    const int32_t block = widest > 0 ? gru_block_rows(widest, y.cols) : 0;
    const mtan_tensor gx =
        mtan_new_gates(tape, device || tape->recording || from->x.rows < block ? from->x.rows : block, 3 * y.cols);
    tape->idle = !device;
    (from->constant.rows == 1 ? mtan_op_copy : mtan_op_spread)(tape, gx, from->constant);
    for (int32_t p = 0; p < from->parts; p++)
        linear(tape, gx, mtan_columns(from->x, p * columns, columns), mtan_columns(from->w, p * from->apart, columns),
               NULL, from->packed, 1);
    tape->idle = 0;
    run_gru(tape, y, gx, device ? NULL : from, w_hh, b_hh, packed, samples, reverse);
}

static void gru_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], gx = n->t[1];
    const mtan_gru layer = gru_of(tape, n->t, nothing, n->n[0], n->n[1]);
    const size_t ldg = (size_t)gx.stride;
    tape->backend->gru_backward(tape->batch, &layer, mtan_grad(tape, n->t[2]), mtan_grad(tape, n->t[3]),
                                mtan_data(tape, gx), ldg, mtan_data(tape, n->t[4]), mtan_data(tape, n->t[5]),
                                mtan_grad(tape, y), mtan_data(tape, y), (size_t)y.stride);
    if (gx.grad != gx.data) tape->backend->add(mtan_grad(tape, gx), ldg, mtan_data(tape, gx), ldg, gx.rows, gx.cols);
}

/* ---- the variational part. posterior (R, 2Z), noise and z (R S, Z), kl (B, 1), ratio and logp (B S, 1) ---- */

void mtan_op_sample(mtan_tape *tape, mtan_tensor z, mtan_tensor posterior, mtan_tensor noise) {
    const mtan_tensor t[3] = {z, posterior, noise};
    record_tensors(tape, OP_sample, t, 3);
    if (!runs(tape) || posterior.rows == 0) return;
    tape->backend->sample_forward(mtan_data(tape, z), mtan_data(tape, posterior), mtan_data(tape, noise),
                                  posterior.rows, z.rows / posterior.rows, z.cols);
}

static void sample_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor z = n->t[0], posterior = n->t[1];
    if (posterior.rows == 0) return;
    tape->backend->sample_backward(mtan_grad(tape, posterior), mtan_grad(tape, z), mtan_data(tape, z),
                                   mtan_data(tape, posterior), posterior.rows, z.rows / posterior.rows, z.cols);
}

void mtan_op_kl(mtan_tape *tape, mtan_tensor kl, mtan_tensor posterior) {
    const mtan_tensor t[2] = {kl, posterior};
    record_tensors(tape, OP_kl, t, 2);
    if (!runs(tape)) return;
    tape->backend->kl_forward(tape->batch, mtan_data(tape, kl), mtan_data(tape, posterior), posterior.cols / 2);
}

static void kl_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor kl = n->t[0], posterior = n->t[1];
    tape->backend->kl_backward(tape->batch, mtan_grad(tape, posterior), mtan_data(tape, posterior), mtan_grad(tape, kl),
                               posterior.cols / 2);
}

void mtan_op_ratio(mtan_tape *tape, mtan_tensor ratio, mtan_tensor z, mtan_tensor posterior, mtan_tensor noise) {
    const mtan_tensor t[3] = {ratio, z, posterior};
    record_tensors(tape, OP_ratio, t, 3);
    if (!runs(tape)) return;
    tape->backend->ratio_forward(tape->batch, mtan_data(tape, ratio), mtan_data(tape, z), mtan_data(tape, posterior),
                                 mtan_data(tape, noise), z.cols);
}

static void ratio_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor ratio = n->t[0], z = n->t[1], posterior = n->t[2];
    tape->backend->ratio_backward(tape->batch, mtan_grad(tape, z), mtan_grad(tape, posterior), mtan_data(tape, z),
                                  mtan_grad(tape, ratio), z.cols);
}

void mtan_op_loglik(mtan_tape *tape, mtan_tensor logp, mtan_tensor prediction, double std) {
    const mtan_tensor t[2] = {logp, prediction};
    mtan_node *node = record_tensors(tape, OP_loglik, t, 2);
    if (node) node->x[0] = (mtan_real)std;
    if (runs(tape)) tape->backend->loglik_forward(tape->batch, mtan_data(tape, logp), mtan_data(tape, prediction), std);
}

static void loglik_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor logp = n->t[0], prediction = n->t[1];
    tape->backend->loglik_backward(tape->batch, mtan_grad(tape, prediction), mtan_data(tape, prediction),
                                   mtan_grad(tape, logp), (double)n->x[0]);
}

void mtan_op_loglik_sd(mtan_tape *tape, mtan_tensor logp, mtan_tensor prediction, mtan_tensor raw, double least) {
    const mtan_tensor t[3] = {logp, prediction, raw};
    mtan_node *node = record_tensors(tape, OP_loglik_sd, t, 3);
    if (node) node->x[0] = (mtan_real)least;
    if (runs(tape))
        tape->backend->loglik_sd_forward(tape->batch, mtan_data(tape, logp), mtan_data(tape, prediction),
                                         mtan_data(tape, raw), (mtan_real)least);
}

static void loglik_sd_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor logp = n->t[0], prediction = n->t[1], raw = n->t[2];
    tape->backend->loglik_sd_backward(tape->batch, mtan_grad(tape, prediction), mtan_grad(tape, raw),
                                      mtan_data(tape, prediction), mtan_data(tape, raw), mtan_grad(tape, logp),
                                      n->x[0]);
}

/* loss (B, 1), logp (B S, 1), kl (B or B S, 1), share (B, 1); t[4] (B S, 1): a sample's weight in the gradient */
void mtan_op_bound(mtan_tape *tape, mtan_tensor loss, mtan_tensor logp, mtan_tensor kl, mtan_tensor share,
                   mtan_bound bound, double kl_weight, double seed) {
    const int32_t B = loss.rows;
    mtan_tensor t[5];
    mtan_node *node;
    t[0] = loss, t[1] = logp, t[2] = kl, t[3] = share, t[4] = mtan_new_constant(tape, logp.rows, 1);
    node = record_tensors(tape, OP_bound, t, 5);
    if (node) node->x[0] = (mtan_real)kl_weight, node->x[1] = (mtan_real)seed;
    if (!runs(tape) || B == 0) return;
    tape->backend->bound_forward(B, mtan_data(tape, loss), mtan_data(tape, t[4]), mtan_data(tape, logp),
                                 mtan_data(tape, kl), kl.rows == B ? 0 : 1, logp.rows / B, bound, kl_weight,
                                 mtan_data(tape, share));
}

static void bound_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor logp = n->t[1], kl = n->t[2];
    const int32_t B = n->t[0].rows;
    if (B == 0) return;
    tape->backend->bound_backward(B, mtan_grad(tape, logp), mtan_grad(tape, kl), kl.rows == B ? 0 : 1,
                                  mtan_data(tape, n->t[4]), logp.rows / B, n->x[0], n->x[1], mtan_data(tape, n->t[3]));
}

/* The labels come from the batch. */
void mtan_op_cross_entropy(mtan_tape *tape, mtan_tensor loss, mtan_tensor p, mtan_tensor x, const mtan_tensor *weight,
                           int32_t samples, double seed) {
    const mtan_tensor t[4] = {loss, p, x, weight ? *weight : x};
    mtan_node *node = record_tensors(tape, OP_cross_entropy, t, 4);
    if (node) node->x[0] = (mtan_real)seed, node->n[0] = samples, node->n[1] = weight != NULL;
    if (!runs(tape)) return;
    tape->backend->cross_entropy_forward(tape->batch, mtan_data(tape, loss), mtan_data(tape, p), mtan_data(tape, x),
                                         tape->batch->label, weight ? mtan_data(tape, *weight) : NULL, x.rows, samples,
                                         x.cols);
}

static void cross_entropy_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor p = n->t[1], x = n->t[2];
    tape->backend->cross_entropy_backward(tape->batch, mtan_grad(tape, x), mtan_data(tape, p), tape->batch->label,
                                          n->n[1] ? mtan_data(tape, n->t[3]) : NULL, n->x[0], x.rows, n->n[0], x.cols);
}

/* The numbers come from the batch. */
void mtan_op_numbers(mtan_tape *tape, mtan_tensor loss, mtan_tensor p, mtan_tensor x, const mtan_targets *targets,
                     int32_t samples, double seed) {
    const mtan_tensor t[3] = {loss, p, x};
    mtan_node *node = record_tensors(tape, OP_numbers, t, 3);
    if (node) {
        node->n[0] = samples, node->n[1] = (int32_t)targets->task, node->n[2] = targets->count;
        node->x[0] = (mtan_real)seed, node->x[1] = targets->interval;
    }
    if (!runs(tape)) return;
    tape->backend->numbers_forward(tape->batch, mtan_data(tape, loss), mtan_data(tape, p), mtan_data(tape, x),
                                   tape->batch->number, targets, x.rows, samples);
}

static void numbers_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor p = n->t[1], x = n->t[2];
    const mtan_targets targets = {(mtan_task)n->n[1], n->n[2], n->x[1]};
    tape->backend->numbers_backward(tape->batch, mtan_grad(tape, x), mtan_data(tape, p), tape->batch->number, &targets,
                                    n->x[0], x.rows, n->n[0]);
}

static const mtan_backward backward_of[] = {
#define X(name) name##_back,
    OPS(X)
#undef X
};

void mtan_backpropagate(mtan_tape *tape) {
    for (uint32_t i = tape->nodes; runs(tape) && i-- > 0;) {
        const mtan_node *node = node_at(tape, i);
        if (node->op < OP_COUNT) backward_of[node->op](tape, node);
        else tape->user[node->op - MTAN_OP_USER](tape, node);
    }
}

/* ==== 6. Configuration ========================================================================================== */

/* ---- settings as text: one table serves reading, writing and listing ---- */

static const char *const kind_names[] = {[MTAN_ENC] = "enc", [MTAN_FULL] = "full", NULL};
static const char *const classify_names[] = {
    [MTAN_CLASSIFY_NONE] = "none", [MTAN_CLASSIFY_RECORD] = "record", [MTAN_CLASSIFY_TIME] = "time", NULL};
static const char *const task_names[] = {
    [MTAN_TASK_CLASSES] = "classes", [MTAN_TASK_NUMBER] = "number", [MTAN_TASK_LABELS] = "labels", NULL};
static const char *const interp_names[] = {
    [MTAN_ATTENTION] = "attention", [MTAN_RBF] = "rbf", [MTAN_RNN3] = "rnn3", NULL};
static const char *const embedding_names[] = {[MTAN_EMBED_LEARNED] = "learned", [MTAN_EMBED_FIXED] = "fixed", NULL};
static const char *const embed_heads_names[] = {
    [MTAN_EMBED_SHARED] = "shared", [MTAN_EMBED_PER_HEAD] = "per_head", NULL};
static const char *const frequencies_names[] = {
    [MTAN_FREQUENCIES_PUBLISHED] = "published", [MTAN_FREQUENCIES_LOG] = "log", NULL};
static const char *const statistics_names[] = {
    "mean",       "mean,spread",       "mean,intensity",       "mean,spread,intensity",
    "mean,slope", "mean,spread,slope", "mean,intensity,slope", "mean,spread,intensity,slope",
    NULL}; /* indexed by the bits of config.statistics */
static const char *const values_names[] = {
    [MTAN_VALUES_PLAIN] = "plain", [MTAN_VALUES_QUANTILE] = "quantile", [MTAN_VALUES_PIECEWISE] = "piecewise", NULL};
static const char *const reference_names[] = {
    [MTAN_REF_EVEN] = "even", [MTAN_REF_GIVEN] = "given", [MTAN_REF_OBSERVED] = "observed", NULL};
static const char *const bound_names[] = {
    [MTAN_BOUND_FAITHFUL] = "faithful", [MTAN_BOUND_ELBO] = "elbo", [MTAN_BOUND_IWAE] = "iwae", NULL};
static const char *const variance_names[] = {
    [MTAN_VARIANCE_FIXED] = "fixed", [MTAN_VARIANCE_LEARNED] = "learned", NULL};
static const char *const rule_names[] = {
    [MTAN_MEAN_PROBABILITY] = "mean_probability", [MTAN_MEAN_LOG_PROBABILITY] = "mean_log_probability", NULL};

typedef struct setting {
    const char *key;
    const char *const *names; /* of an enumeration; null for a number */
    int32_t real;             /* a double rather than a whole number */
    uint32_t offset, bytes;
} setting;

/* clang-format off */
#define FIELD(field) (uint32_t)offsetof(mtan_config, field), (uint32_t)sizeof(((mtan_config *)0)->field)
#define CHOICE(field, names) {#field, names, 0, FIELD(field)}
#define WHOLE(field) {#field, NULL, 0, FIELD(field)}
#define REAL(field) {#field, NULL, 1, FIELD(field)}
static const setting settings[] = {
    CHOICE(kind, kind_names), CHOICE(classify, classify_names), CHOICE(task, task_names), CHOICE(encoder, interp_names),
    CHOICE(decoder, interp_names), CHOICE(embedding, embedding_names), CHOICE(embed_heads, embed_heads_names),
    CHOICE(reference, reference_names), CHOICE(frequencies, frequencies_names), REAL(slowest), REAL(fastest), CHOICE(statistics, statistics_names), CHOICE(values, values_names), WHOLE(bins), WHOLE(summaries), WHOLE(statics), WHOLE(trees), WHOLE(channels), WHOLE(classes), WHOLE(embed), WHOLE(enc_heads),
    WHOLE(dec_heads), WHOLE(enc_hidden), WHOLE(dec_hidden), WHOLE(latent), WHOLE(ref_points), WHOLE(mlp_hidden),
    WHOLE(head_hidden), REAL(embed_base), REAL(embed_scale), CHOICE(bound, bound_names), WHOLE(samples), WHOLE(norm),
    WHOLE(skip_empty), WHOLE(kl_anneal), CHOICE(variance, variance_names), REAL(noise_std), REAL(alpha), REAL(interval), CHOICE(rule, rule_names), WHOLE(predict_samples),
    WHOLE(members)
};
/* clang-format on */
#undef FIELD
#undef CHOICE
#undef WHOLE
#undef REAL
enum { SETTINGS = sizeof settings / sizeof settings[0] };

/* A whole number of the config. An enumeration may be one byte wide (Arm ABI for bare metal). */
static int32_t load_whole(const mtan_config *config, const setting *s) {
    const char *field = (const char *)config + s->offset;
    uint8_t narrow;
    int32_t wide;
    if (s->bytes == 1) return memcpy(&narrow, field, 1), narrow;
    return memcpy(&wide, field, sizeof wide), wide;
}

static void store_whole(mtan_config *config, const setting *s, int32_t value) {
    char *field = (char *)config + s->offset;
    const uint8_t narrow = (uint8_t)value;
    if (s->bytes == 1) memcpy(field, &narrow, 1);
    else memcpy(field, &value, sizeof value);
}

/* load_whole and store_whole assume that an enumeration is as wide as a byte or an int32_t. */
typedef char enum_widths[sizeof(mtan_kind) == 1 || sizeof(mtan_kind) == sizeof(int32_t) ? 1 : -1];

static const mtan_architecture *architecture_of(const mtan_config *c);

/* Name of extra setting i, which the model's architecture defines; null past the last. */
static const char *extra_name(const mtan_config *config, int32_t i) {
    const mtan_architecture *a = architecture_of(config);
    return a->settings && i < MTAN_MAX_EXTRA ? a->settings[i] : NULL;
}

static double *extra_setting(const mtan_config *config, const char *key) {
    for (int32_t i = 0; extra_name(config, i); i++)
        if (text_equal(extra_name(config, i), key)) return (double *)(uintptr_t)&config->extra[i];
    return NULL;
}

static const setting *find_setting(const char *key) {
    for (int32_t i = 0; i < SETTINGS; i++)
        if (text_equal(settings[i].key, key)) return &settings[i];
    return NULL;
}

const char *mtan_config_key(int32_t index) {
    return index >= 0 && index < SETTINGS ? settings[index].key : NULL;
}

mtan_status mtan_config_get(const mtan_config *config, const char *key, char *text, size_t size) {
    char digits[NUMBER_SIZE];
    const char *value = digits;
    const setting *s;
    const double *extra;
    int32_t whole;
    double real;
    if (!config || !key || !text) return MTAN_ERR_NULL;
    extra = extra_setting(config, key);
    if (!(s = find_setting(key)) && !extra) return MTAN_ERR_MISSING;
    if (extra || s->real) {
        memcpy(&real, extra ? (const char *)extra : (const char *)config + s->offset, sizeof real);
        if (!(real > -1e9 && real < 1e9)) return MTAN_ERR_CONFIG; /* the limit of mtan_config_check; rejects NaN too */
        format_number(digits, real);
    } else {
        whole = load_whole(config, s);
        if (s->names) {
            if (whole < 0) return MTAN_ERR_CONFIG;
            for (int32_t i = 0; i <= whole; i++)
                if (!s->names[i]) return MTAN_ERR_CONFIG;
            value = s->names[whole];
        } else {
            format_number(digits, whole);
        }
    }
    if (text_length(value) + 1 > size) return MTAN_ERR_MEMORY;
    memcpy(text, value, text_length(value) + 1);
    return MTAN_OK;
}

mtan_status mtan_config_set(mtan_config *config, const char *key, const char *text) {
    const setting *s;
    double *extra;
    int32_t whole = 0;
    double number;
    if (!config || !key || !text) return MTAN_ERR_NULL;
    if ((extra = extra_setting(config, key))) return parse_number(text, extra) ? MTAN_OK : MTAN_ERR_CONFIG;
    if (!(s = find_setting(key))) return MTAN_ERR_MISSING;
    if (s->names) {
        while (s->names[whole] && !text_equal(s->names[whole], text)) whole++;
        if (!s->names[whole]) return MTAN_ERR_CONFIG;
    } else {
        if (!parse_number(text, &number)) return MTAN_ERR_CONFIG;
        if (!s->real) {
            if (!(number >= -1e9 && number <= 1e9)) return MTAN_ERR_CONFIG;
            whole = (int32_t)number;
            if ((double)whole != number) return MTAN_ERR_CONFIG;
        }
    }
    if (s->real) memcpy((char *)config + s->offset, &number, sizeof number);
    else store_whole(config, s, whole);
    return MTAN_OK;
}

/* ---- defaults, presets ---- */

mtan_status mtan_config_preset(mtan_config *config, mtan_preset preset) {
    const int32_t faithful = preset == MTAN_FAITHFUL;
    if (!config) return MTAN_ERR_NULL;
    if (preset != MTAN_FAITHFUL && preset != MTAN_CORRECT && preset != MTAN_BEST) return MTAN_ERR_CONFIG;
    config->noise_std = faithful ? 0.01 : 0.1;                        /* Q16: the variances 1e-4 and 0.01 */
    config->bound = faithful ? MTAN_BOUND_FAITHFUL : MTAN_BOUND_ELBO; /* Q17: the paper has the mean over samples */
    config->skip_empty = !faithful;                                   /* Q18: records without observation */
    config->predict_samples = faithful ? 1 : 8;                       /* Q25: of the latent state */
    config->rule = MTAN_MEAN_PROBABILITY;
    if (preset == MTAN_BEST && !config->architecture && config->encoder == MTAN_ATTENTION) {
        config->statistics = MTAN_SPREAD | MTAN_INTENSITY | MTAN_SLOPE;
        config->frequencies = MTAN_FREQUENCIES_LOG;
        config->summaries = config->classify == MTAN_CLASSIFY_RECORD ? 3 : 0;
    }
    return MTAN_OK;
}

mtan_status mtan_config_init(mtan_config *config, mtan_kind kind, mtan_classify_kind classify, int32_t channels,
                             int32_t classes) {
    const int32_t per_time = kind == MTAN_ENC && classify == MTAN_CLASSIFY_TIME;
    mtan_config c;
    mtan_status status;
    if (!config) return MTAN_ERR_NULL;
    memset(&c, 0, sizeof c);
    c.kind = kind;
    c.classify = classify;
    c.channels = channels;
    c.classes = classes;
    c.reference = per_time ? MTAN_REF_OBSERVED : MTAN_REF_EVEN;
    c.bins = 5;
    c.embed = 128;
    c.enc_heads = c.dec_heads = 1;
    c.enc_hidden = kind == MTAN_ENC ? 128 : 256;
    c.dec_hidden = 50;
    c.latent = 20;
    c.ref_points = 128;
    c.mlp_hidden = 50;
    c.head_hidden = per_time ? 0 : 300; /* Q12: on Activity a single linear layer */
    c.embed_base = 10;
    c.embed_scale = 48;
    c.samples = 1;
    c.members = 1;
    c.norm = 1;
    c.alpha = 1;
    mtan_config_preset(&c, MTAN_CORRECT);
    if ((status = mtan_config_check(&c)) == MTAN_OK) *config = c;
    return status;
}

static int32_t has_decoder(const mtan_config *c) {
    return c->kind == MTAN_FULL;
}

/* The targets that outputs are compared with, in a task other than classes. */
static mtan_targets targets_of_task(const mtan_config *c) {
    const mtan_targets t = {c->task, c->classes, (mtan_real)c->interval};
    return t;
}

int32_t mtan_config_outputs(const mtan_config *config) {
    if (!config || config->classify == MTAN_CLASSIFY_NONE) return 0;
    return config->classes * (config->task == MTAN_TASK_NUMBER && config->interval > 0 ? 3 : 1);
}

static int32_t in_range(int32_t x, int32_t low, int32_t high) {
    return x >= low && x <= high;
}

/* No dimension above 2^20: products of two then fit in 64 bits, and the counts below catch the rest. */
#define LARGEST_DIMENSION (1 << 20)

static mtan_status config_ranges(const mtan_config *c) {
    const int32_t top = LARGEST_DIMENSION;
    const int32_t whole[] = {c->channels, c->embed, c->enc_hidden, c->ref_points, c->samples};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (whole[i] < 1) return MTAN_ERR_CONFIG;
        else if (whole[i] > top) return MTAN_ERR_SIZE;
    if (!in_range((int32_t)c->kind, MTAN_ENC, MTAN_FULL) ||
        !in_range((int32_t)c->classify, MTAN_CLASSIFY_NONE, MTAN_CLASSIFY_TIME) ||
        !in_range((int32_t)c->task, MTAN_TASK_CLASSES, MTAN_TASK_LABELS) ||
        !in_range((int32_t)c->embedding, MTAN_EMBED_LEARNED, MTAN_EMBED_FIXED) || !in_range((int32_t)c->rule, 0, 1) ||
        !in_range((int32_t)c->embed_heads, 0, 1) || !in_range((int32_t)c->frequencies, 0, 1) ||
        !in_range((int32_t)c->variance, MTAN_VARIANCE_FIXED, MTAN_VARIANCE_LEARNED) ||
        !in_range((int32_t)c->reference, MTAN_REF_EVEN, MTAN_REF_OBSERVED) ||
        !in_range((int32_t)c->bound, MTAN_BOUND_FAITHFUL, MTAN_BOUND_IWAE))
        return MTAN_ERR_CONFIG;
    if (c->classify != MTAN_CLASSIFY_NONE && !in_range(c->classes, c->task == MTAN_TASK_CLASSES ? 2 : 1, top))
        return MTAN_ERR_CONFIG;
    if (!(c->interval >= 0 && c->interval < 1) || (c->interval > 0 && c->task != MTAN_TASK_NUMBER))
        return MTAN_ERR_CONFIG;
    if (!in_range(c->statistics, 0, MTAN_SPREAD | MTAN_INTENSITY | MTAN_SLOPE)) return MTAN_ERR_CONFIG;
    if (c->statistics && c->architecture) return MTAN_ERR_CONFIG;
    if (!in_range((int32_t)c->values, MTAN_VALUES_PLAIN, MTAN_VALUES_PIECEWISE)) return MTAN_ERR_CONFIG;
    if (c->values != MTAN_VALUES_PLAIN && (c->architecture || !in_range(c->bins, 1, MTAN_MAX_BINS)))
        return MTAN_ERR_CONFIG;
    if (!in_range(c->summaries, 0, 3) || !in_range(c->statics, 0, c->channels - 1)) return MTAN_ERR_CONFIG;
    if ((c->summaries || c->statics) && (c->classify != MTAN_CLASSIFY_RECORD || c->architecture))
        return MTAN_ERR_CONFIG;
    if (!in_range(c->trees, 0, c->summaries || c->statics ? MTAN_MAX_TREES : 0)) return MTAN_ERR_CONFIG;
    if (!in_range(c->head_hidden, 0, top) || !in_range(c->predict_samples, 0, top) ||
        !in_range(c->members, 0, MTAN_MAX_MEMBERS))
        return MTAN_ERR_CONFIG;
    if (has_decoder(c) &&
        (!in_range(c->latent, 1, top) || !in_range(c->dec_hidden, 1, top) || !in_range(c->mlp_hidden, 1, top)))
        return MTAN_ERR_CONFIG;
    return MTAN_OK;
}

/* ---- architectures ---- */

/* The paper's two models: section 11. */
static const mtan_architecture mtand_enc, mtand_full;

/* A config without an architecture is the paper's model of its kind. */
static const mtan_architecture *architecture_of(const mtan_config *c) {
    return c->architecture ? c->architecture : c->kind == MTAN_FULL ? &mtand_full : &mtand_enc;
}

static int32_t has_trait(const mtan_config *c, mtan_trait trait) {
    return (architecture_of(c)->traits & (uint32_t)trait) != 0;
}

mtan_status mtan_config_architecture(mtan_config *config, const mtan_architecture *architecture) {
    if (!config || !architecture) return MTAN_ERR_NULL;
    config->architecture = architecture;
    if (!has_trait(config, MTAN_HAS_POINTS)) config->reference = MTAN_REF_OBSERVED;
    for (int32_t i = 0; i < MTAN_MAX_EXTRA; i++) config->extra[i] = 0;
    for (int32_t i = 0; extra_name(config, i); i++) config->extra[i] = architecture->defaults[i];
    return mtan_config_check(config);
}

/* ---- the parameter table ----
 * One walk over the model builds it. Counting, naming, loading, saving and initialising all use this walk. */

typedef struct slot {
    uint32_t offset;
    int32_t rows, cols, rank;
} slot;

struct mtan_params {
    int32_t n;
    int32_t members; /* config.members; each parameter holds theirs, stacked by rows */
    uint64_t count;  /* P */
    slot slots[MTAN_MAX_PARAMS];
    int32_t roles[MTAN_MAX_ROLES]; /* the architecture's struct of indices */
    int32_t wanted;                /* index of the parameter to describe, or -1 */
    mtan_param *found;             /* receives the description */
    const char *prefix;            /* of the names added from now on */
};

static void append(char *text, size_t size, const char *more) {
    size_t n = text_length(text);
    while (*more && n + 1 < size) text[n++] = *more++;
    text[n] = 0;
}

static int32_t add_param(mtan_params *p, const char *layer, const char *tensor, int32_t rows, int32_t cols,
                         int32_t rank, int32_t fan) {
    rows =
        rows <= INT32_MAX / p->members ? rows * p->members : INT32_MAX; /* an ensemble stacks the rows of its members */
    const slot s = {(uint32_t)p->count, rows, cols, rank};
    if (p->n < MTAN_MAX_PARAMS) p->slots[p->n] = s;
    if (p->n == p->wanted) {
        mtan_param *found = p->found;
        memset(found, 0, sizeof *found);
        append(found->name, sizeof found->name, p->prefix);
        append(found->name, sizeof found->name, layer);
        append(found->name, sizeof found->name, tensor);
        found->rows = rows, found->cols = cols, found->rank = rank, found->fan = fan, found->offset = s.offset;
    }
    p->count += (uint64_t)rows * (uint64_t)cols;
    if (p->count > UINT32_MAX) p->count = UINT32_MAX; /* too many: the count saturates */
    return p->n++;
}

int32_t mtan_params_add(mtan_params *params, const char *name, int32_t rows, int32_t cols, int32_t rank, int32_t fan) {
    if (rows < 0 || cols < 0 || rank < 1 || rank > 2 || fan < 1) { /* this count makes mtan_config_check fail */
        params->count = UINT32_MAX;
        return params->n;
    }
    return add_param(params, name, "", rows, cols, rank, fan);
}

static int32_t members_of(const mtan_config *c) {
    return c->members > 1 ? c->members : 1;
}

static void walk_params(mtan_params *p, const mtan_config *c, int32_t wanted, mtan_param *found) {
    memset(p, 0, sizeof *p);
    p->wanted = wanted;
    p->found = found;
    p->prefix = "";
    p->members = members_of(c);
    architecture_of(c)->params(c, p, p->roles);
}

static mtan_status check_architecture(const mtan_config *c) {
    const mtan_architecture *a = architecture_of(c);
    if (!a->name || !a->params || (!a->forward && !a->small)) return MTAN_ERR_CONFIG;
    if (a->roles > MTAN_MAX_ROLES || a->folded > MTAN_MAX_FOLDED) return MTAN_ERR_CONFIG;
    if (c->reference != MTAN_REF_OBSERVED && !has_trait(c, MTAN_HAS_POINTS)) return MTAN_ERR_CONFIG;
    if (c->variance == MTAN_VARIANCE_LEARNED && (!has_trait(c, MTAN_HAS_VARIANCE) || c->classify == MTAN_CLASSIFY_TIME))
        return MTAN_ERR_CONFIG;
    for (int32_t i = 0; i < MTAN_MAX_EXTRA; i++)
        if (!(c->extra[i] > -1e9 && c->extra[i] < 1e9)) return MTAN_ERR_CONFIG;
    return a->check ? a->check(c) : MTAN_OK;
}

mtan_status mtan_config_check(const mtan_config *config) {
    const mtan_config *c = config;
    mtan_status status;
    mtan_params p;
    if (!c) return MTAN_ERR_NULL;
    if ((status = config_ranges(c)) != MTAN_OK) return status;
    if ((status = check_architecture(c)) != MTAN_OK) return status;
    if (!(c->slowest >= 0 && c->slowest < 1e9 && c->fastest >= 0 && c->fastest < 1e9)) return MTAN_ERR_CONFIG;
    if (!(c->embed_base > 0 && c->embed_base < 1e9) || !(c->embed_scale > -1e9 && c->embed_scale < 1e9))
        return MTAN_ERR_CONFIG;
    if (!(c->noise_std > 1e-9 && c->noise_std < 1e9) || !(c->alpha >= 0 && c->alpha < 1e9)) return MTAN_ERR_CONFIG;
    if (c->kind == MTAN_ENC && c->classify == MTAN_CLASSIFY_NONE) return MTAN_ERR_CONFIG;
    walk_params(&p, c, -1, NULL);
    return p.n > MTAN_MAX_PARAMS || p.count > LARGEST_COUNT / 4 ? MTAN_ERR_SIZE : MTAN_OK;
}

int32_t mtan_param_count(const mtan_config *config) {
    mtan_params p;
    if (mtan_config_check(config) != MTAN_OK) return 0;
    walk_params(&p, config, -1, NULL);
    return p.n;
}

/* The config must have been checked, and the index must be below its count. */
static mtan_param param_at(const mtan_config *config, int32_t index) {
    mtan_param found;
    mtan_params p;
    memset(&found, 0, sizeof found);
    walk_params(&p, config, index, &found);
    return found;
}

mtan_status mtan_param_at(const mtan_config *config, int32_t index, mtan_param *param) {
    const mtan_status status = mtan_config_check(config);
    if (status != MTAN_OK) return status;
    if (!param) return MTAN_ERR_NULL;
    if (index < 0 || index >= mtan_param_count(config)) return MTAN_ERR_MISSING;
    *param = param_at(config, index);
    return MTAN_OK;
}

size_t mtan_weights_count(const mtan_config *config) {
    mtan_params p;
    if (mtan_config_check(config) != MTAN_OK) return 0;
    walk_params(&p, config, -1, NULL);
    return (size_t)p.count;
}

/* Whether a parameter has weight decay in training and may become int8. Matrices of one column do not: the frequencies
 * of the time embedding are among them. */
static int32_t is_matrix(const mtan_param *p) {
    return p->rank == 2 && p->cols > 1;
}

/* The knots of encoded values, or null if there are none. They are the last parameter, so that the initial weights of
 * all others are the same with and without them. */
static const mtan_real *knots_of(const mtan_model *model) {
    mtan_params p;
    if (model->config.values == MTAN_VALUES_PLAIN) return NULL;
    walk_params(&p, &model->config, -1, NULL);
    return model->weights + model->offset[p.n - 1];
}

/* Binds a model to weights. The config must have been checked. */
static void model_bind(mtan_model *model, const mtan_config *config, const mtan_real *weights) {
    mtan_params p;
    walk_params(&p, config, -1, NULL);
    memset(model, 0, sizeof *model);
    model->config = *config;
    model->backend = &mtan_backend_scalar;
    model->weights = weights;
    for (int32_t i = 0; i < p.n; i++) model->offset[i] = p.slots[i].offset;
}

mtan_status mtan_model_init(mtan_model *model, const mtan_config *config, const mtan_real *weights, size_t count) {
    const mtan_status status = mtan_config_check(config);
    if (!model || !weights) return MTAN_ERR_NULL;
    if (status != MTAN_OK) return status;
    if (count < mtan_weights_count(config)) return MTAN_ERR_MEMORY;
    model_bind(model, config, weights);
    return MTAN_OK;
}

mtan_status mtan_model_member(mtan_model *member, const mtan_model *model, int32_t index) {
    mtan_params p;
    mtan_model made;
    if (!member || !model) return MTAN_ERR_NULL;
    if (index < 0 || index >= members_of(&model->config)) return MTAN_ERR_INPUT;
    made = *model;
    made.config.members = 1;
    walk_params(&p, &made.config, -1, NULL);
    for (int32_t i = 0; i < p.n; i++) {
        const uint32_t rows = (uint32_t)index * (uint32_t)p.slots[i].rows, cols = (uint32_t)p.slots[i].cols;
        const int32_t whole = made.rows && made.row0[i] != MTAN_NO_ROWS; /* int8: its reals are one scale per row */
        made.offset[i] += whole ? rows : rows * cols;
        if (whole) made.row0[i] += rows * cols;
    }
    *member = made;
    return MTAN_OK;
}

/* Whether two configs of the same settings have the same reference points: those of MTAN_REF_GIVEN are no setting. */
static int32_t same_points(const mtan_config *a, const mtan_config *b) {
    if (a->reference != MTAN_REF_GIVEN || a->ref == b->ref) return 1;
    if (!a->ref || !b->ref) return 0;
    for (int32_t k = 0; k < a->ref_points; k++)
        if (a->ref[k] < b->ref[k] || a->ref[k] > b->ref[k]) return 0;
    return 1;
}

/* Compares settings by the text that files hold. */
static int32_t same_settings(const mtan_config *a, const mtan_config *b) {
    char x[NUMBER_SIZE], y[NUMBER_SIZE];
    if (architecture_of(a) != architecture_of(b)) return 0;
    for (int32_t i = 0; i < MTAN_MAX_EXTRA; i++)
        if (a->extra[i] < b->extra[i] || a->extra[i] > b->extra[i]) return 0;
    for (int32_t i = 0; mtan_config_key(i); i++) {
        if (mtan_config_get(a, mtan_config_key(i), x, sizeof x) != MTAN_OK) return 0;
        if (mtan_config_get(b, mtan_config_key(i), y, sizeof y) != MTAN_OK || !text_equal(x, y)) return 0;
    }
    return same_points(a, b);
}

static mtan_status check_members(const mtan_model *members, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        if (!members[i].weights) return MTAN_ERR_NULL;
        if (members[i].rows || members_of(&members[i].config) > 1) return MTAN_ERR_CONFIG;
        if (!same_settings(&members[0].config, &members[i].config)) return MTAN_ERR_CONFIG;
    }
    return mtan_config_check(&members[0].config);
}

mtan_status mtan_model_join(mtan_model *model, mtan_real *weights, size_t count, const mtan_model *members, int32_t n) {
    mtan_config config;
    mtan_params one;
    mtan_model made;
    mtan_status status;
    if (!model || !weights || !members) return MTAN_ERR_NULL;
    if (n < 1 || n > MTAN_MAX_MEMBERS) return MTAN_ERR_INPUT;
    if ((status = check_members(members, n)) != MTAN_OK) return status;
    walk_params(&one, &members[0].config, -1, NULL);
    config = members[0].config;
    config.members = n;
    if ((status = mtan_model_init(&made, &config, weights, count)) != MTAN_OK) return status;
    for (int32_t i = 0; i < one.n; i++) {
        const size_t size = (size_t)one.slots[i].rows * (size_t)one.slots[i].cols;
        for (int32_t k = 0; k < n; k++)
            memcpy(weights + made.offset[i] + (size_t)k * size, members[k].weights + members[k].offset[i],
                   size * sizeof *weights);
    }
    made.backend = members[0].backend, made.precision = members[0].precision;
    *model = made;
    return MTAN_OK;
}

/* ==== 7. Random numbers ==========================================================================================
 * MT19937 for initial weights, as in NumPy and PyTorch. It uses integers, and floating point that is exact or rounded
 * once in double, so the bits are the same everywhere. The counter generator for noise and masks is in section 3. */

enum { MT_N = 624, MT_M = 397 };

void mtan_mt_seed(mtan_mt19937 *rng, uint32_t seed) {
    uint32_t x = seed;
    for (uint32_t i = 0; i < MT_N; i++) {
        rng->state[i] = x;
        x = 1812433253u * (x ^ (x >> 30)) + i + 1;
    }
    rng->index = MT_N;
}

/* The recurrence of Matsumoto and Nishimura (1998), the whole state at once. */
static void mt_refill(mtan_mt19937 *rng) {
    uint32_t *s = rng->state;
    for (int i = 0; i < MT_N; i++) {
        uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % MT_N] & 0x7fffffffu);
        s[i] = s[(i + MT_M) % MT_N] ^ (y >> 1) ^ ((y & 1) ? 0x9908b0dfu : 0);
    }
    rng->index = 0;
}

uint32_t mtan_mt_next(mtan_mt19937 *rng) {
    if ((uint32_t)rng->index >= MT_N) mt_refill(rng);
    uint32_t y = rng->state[rng->index++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* A float has 24 significant bits, so PyTorch keeps the low 24 bits of a word. u * (high - low) has at most 48 bits and
 * is exact in double. The sum is exact too, unless low is over 16 times as large as high - low, or not 0 and 2^24 times
 * as small. Then the sum is rounded as well, and the float is one bit off with a probability of about 2^-29. */
void mtan_torch_uniform(mtan_mt19937 *rng, float *out, size_t n, float low, float high) {
    float range = high - low;
    for (size_t i = 0; i < n; i++) {
        double u = (mtan_mt_next(rng) & 0xffffffu) / 16777216.0;
        out[i] = (float)(u * (double)range + (double)low);
    }
}

uint64_t mtan_bytes_hash(const void *bytes, size_t n) {
    const unsigned char *p = (const unsigned char *)bytes;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return mix64(h);
}

void mtan_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    philox(out, counter, key);
}

void mtan_noise_fill(const mtan_backend *backend, mtan_real *out, size_t n, uint64_t seed, uint64_t epoch,
                     uint64_t record, uint32_t sample) {
    counter_stream r = noise_stream(seed, epoch, record, sample);
    mtan_real x[16];
    for (size_t done = 0; done < n; done += 16) {
        next_normals(backend, x, &r);
        memcpy(out + done, x, (n - done < 16 ? n - done : 16) * sizeof *x);
    }
}

void mtan_mask_fill(mtan_real *out, size_t n, double dropout, uint64_t seed, uint64_t step, uint64_t record,
                    uint32_t sample, uint64_t first) {
    fill_units(out, n, dropout, mask_stream(seed, step, record, sample), first);
}

mtan_status mtan_weights_init(const mtan_config *config, mtan_real *weights, size_t count, uint32_t seed) {
    const int32_t n = mtan_param_count(config);
    float chunk[64];
    mtan_mt19937 rng;
    if (!weights) return MTAN_ERR_NULL;
    if (n == 0) return mtan_config_check(config);
    if (members_of(config) > 1) return MTAN_ERR_CONFIG; /* initialise each member, then join them */
    if (count < mtan_weights_count(config)) return MTAN_ERR_MEMORY;
    mtan_mt_seed(&rng, seed);
    for (int32_t i = 0; i < n; i++) {
        const mtan_param p = param_at(config, i);
        const size_t entries = (size_t)p.rows * (size_t)p.cols;
        const float bound = (float)(1 / scalar_sqrt((double)p.fan));
        for (size_t j = 0; j < entries; j += 64) {
            const size_t m = entries - j < 64 ? entries - j : 64;
            mtan_torch_uniform(&rng, chunk, m, -bound, bound);
            for (size_t q = 0; q < m; q++) weights[p.offset + j + q] = (mtan_real)chunk[q];
        }
    }
    if (architecture_of(config)->init) {
        mtan_params params;
        walk_params(&params, config, -1, NULL);
        architecture_of(config)->init(config, params.roles, weights, &rng);
    }
    return MTAN_OK;
}

/* ==== 8. Batches ================================================================================================
 * Brings records into the normal form of mtan_batch. If `records` is null, only counts the arrays, for `n` records of the
 * largest size that the bounds allow. The arrays filled here are plain data on the host; kernels read them. */

/* The times at which the decoder or the head is queried. */
typedef enum queries_from { QUERY_NONE, QUERY_TIMES, QUERY_TARGETS } queries_from;

static const mtan_event *targets_of(const mtan_record *r, int32_t *n) {
    *n = r->targets ? r->n_targets : r->n_events;
    return r->targets ? r->targets : r->events;
}

static mtan_status check_events(const mtan_event *events, int32_t n, int32_t channels, int32_t most) {
    if (n < 0) return MTAN_ERR_INPUT;
    if (n > 0 && !events) return MTAN_ERR_NULL;
    if (n > most) return MTAN_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++)
        if (!is_finite(events[i].time) || !is_finite(events[i].value) || events[i].channel < 0 ||
            events[i].channel >= channels)
            return MTAN_ERR_INPUT;
    return MTAN_OK;
}

/* Whether the query times are steps of the sequence, in addition to the event times. */
static int32_t joins_queries(const mtan_config *c) {
    return c->classify == MTAN_CLASSIFY_TIME && has_trait(c, MTAN_JOINS_QUERIES);
}

static mtan_status check_record(const mtan_record *r, const mtan_config *c, const mtan_bounds *bounds) {
    int32_t n;
    const mtan_event *targets = targets_of(r, &n);
    mtan_status status = check_events(r->events, r->n_events, c->channels, bounds->events);
    if (status == MTAN_OK && r->targets) status = check_events(targets, n, c->channels, bounds->events);
    if (status != MTAN_OK || !r->times) return status;
    if (r->n_times < 0) return MTAN_ERR_INPUT;
    if (r->n_times > bounds->times) return MTAN_ERR_MEMORY;
    for (int32_t i = 0; i < r->n_times; i++)
        if (!is_finite(r->times[i]) || (joins_queries(c) && i > 0 && r->times[i] < r->times[i - 1]))
            return MTAN_ERR_INPUT;
    return MTAN_OK;
}

/* Stable bottom-up merge sort of indices by time; `spare` is as long as `index`. */
static void sort_by_time(int32_t *index, int32_t *spare, const mtan_event *events, int32_t n) {
    int32_t sorted = 1; /* most records arrive sorted */
    for (int32_t i = 0; i < n; i++) {
        index[i] = i;
        sorted = sorted && (i == 0 || events[i - 1].time <= events[i].time);
    }
    for (int32_t width = sorted ? n : 1; width<n; width = width> n / 2 ? n : 2 * width) {
        for (int32_t low = 0;; low += 2 * width) {
            const int32_t mid = n - low > width ? low + width : n, high = n - mid > width ? mid + width : n;
            int32_t a = low, b = mid;
            for (int32_t i = low; i < high; i++)
                spare[i] =
                    b >= high || (a < mid && events[index[a]].time <= events[index[b]].time) ? index[a++] : index[b++];
            if (n - low <= 2 * width) break;
        }
        memcpy(index, spare, (size_t)n * sizeof *index);
    }
}

/* Writes the distinct times of sorted events, at most `most` of them, and the row of each event unless `row` is null.
 * Returns the number of distinct times, which may exceed `most`. */
static int32_t distinct_times(mtan_real *time, int32_t most, int32_t *row, const int32_t *index,
                              const mtan_event *events, int32_t n) {
    int32_t count = 0;
    mtan_real last = 0;
    for (int32_t i = 0; i < n; i++) {
        const mtan_real t = events[index[i]].time;
        if (i == 0 || t != last) {
            if (count < most) time[count] = t;
            last = t;
            count++;
        }
        if (row) row[i] = count - 1;
    }
    return count;
}

typedef struct batch_request {
    const mtan_config *config;
    const mtan_bounds *bounds;
    const mtan_record *records; /* null when counting */
    int32_t n, samples;
    queries_from queries;
    const void *gathered;   /* the sums of a stream, which replace the record's events; or null */
    int32_t checked;        /* the records have been checked already */
    const mtan_real *knots; /* the model's knots, or null */
} batch_request;

/* Whether the steps of a record's own sequence are its event times rather than its queries. */
static int32_t reads_times(const mtan_config *c) {
    return has_trait(c, MTAN_READS_TIMES);
}

static int32_t observed(const mtan_config *c) {
    return c->reference == MTAN_REF_OBSERVED;
}

/* Merges the ascending times `more` into n distinct ascending times, in place and without duplicates. Returns the new
 * number of times. place (n) receives the new index of each of the n times, where_more (n_more) that of each time in
 * `more`. */
static int32_t merge_times(mtan_real *time, int32_t n, const mtan_real *more, int32_t n_more, int32_t *place,
                           int32_t *where_more) {
    int32_t total = n, a = n, b = n_more;
    for (int32_t i = 0, j = 0; j < n_more; j++) {
        while (i < n && time[i] < more[j]) i++;
        total += (i == n || time[i] > more[j]) && (j == 0 || more[j - 1] < more[j]);
    }
    for (int32_t to = total - 1; to >= 0; to--) { /* from the end, so that no time is overwritten before it has moved */
        const int32_t later = b > 0 && (a == 0 || more[b - 1] > time[a - 1]);
        const mtan_real t = later ? more[b - 1] : time[a - 1];
        for (; b > 0 && more[b - 1] >= t; b--) where_more[b - 1] = to;
        if (!later) place[--a] = to;
        time[to] = t;
    }
    return total;
}

/* Number of distinct times among the sorted events and the query times. */
static int32_t count_joined(const mtan_record *r, const int32_t *index) {
    int32_t count = 0, i = 0, j = 0;
    while (i < r->n_events || j < r->n_times) {
        const int32_t event = j == r->n_times || (i < r->n_events && r->events[index[i]].time <= r->times[j]);
        const mtan_real t = event ? r->events[index[i]].time : r->times[j];
        while (i < r->n_events && r->events[index[i]].time <= t) i++;
        while (j < r->n_times && r->times[j] <= t) j++;
        count++;
    }
    return count;
}

/* Number of steps in a record's own sequence. The steps are the query times (mTAND-Enc); the distinct event times,
 * which must be counted; or both, where the architecture joins them. */
static int32_t count_points(const mtan_record *r, const mtan_config *c, int32_t *index, int32_t *spare) {
    if (r->times && !reads_times(c)) return r->n_times;
    sort_by_time(index, spare, r->events, r->n_events);
    if (r->times && joins_queries(c)) return count_joined(r, index);
    return distinct_times(NULL, 0, NULL, index, r->events, r->n_events);
}

/* Sorts the records by length and lays out the steps of the sequence. */
static void batch_steps(mtan_tape *tape, mtan_batch *batch, const batch_request *q, int32_t *index, int32_t *spare) {
    const int32_t ragged = observed(q->config), most = ragged ? q->bounds->times : q->config->ref_points;
    batch->order = mtan_new_ints(tape, (size_t)q->n);
    batch->length = mtan_new_ints(tape, (size_t)q->n);
    batch->first = mtan_new_ints(tape, (size_t)most + 1);
    batch->steps = most;
    batch->rows = (int32_t)area(tape, most, q->n);
    if (!runs(tape)) return;
    for (int32_t b = 0; b < q->n; b++) {
        const int32_t length = ragged ? count_points(&q->records[b], q->config, index, spare) : most;
        int32_t at = b;
        for (; at > 0 && batch->length[at - 1] < length; at--) { /* insertion sort: longest first, stable */
            batch->length[at] = batch->length[at - 1];
            batch->order[at] = batch->order[at - 1];
        }
        batch->length[at] = length;
        batch->order[at] = b;
    }
    batch->steps = batch->length[0];
    if (batch->steps > most) {
        fail(tape, MTAN_ERR_MEMORY);
        return;
    }
    batch->first[0] = 0;
    for (int32_t k = 0, running = q->n; k < batch->steps; k++) {
        while (batch->length[running - 1] <= k) running--;
        batch->first[k + 1] = batch->first[k] + running;
    }
    batch->rows = batch->first[batch->steps];
}

/* Merges the query times of record b into its `count` event times and corrects the rows of its events. Returns the new
 * number of times. */
static int32_t join_queries(mtan_tape *tape, mtan_batch *batch, const mtan_record *r, int32_t b, int32_t count,
                            int32_t *row) {
    int32_t *query_row = batch->query_row + batch->query0[b];
    if (!r->times) { /* then the event times are the queries */
        for (int32_t i = 0; i < count; i++) query_row[i] = i;
        return count;
    }
    count = merge_times(mtan_data(tape, batch->time) + batch->time0[b], count, r->times, r->n_times, batch->place,
                        query_row);
    for (int32_t i = 0; i < r->n_events; i++) row[i] = batch->place[row[i]];
    return count;
}

/* One record's events: distinct times, and events grouped by channel. Returns the number of times. */
static int32_t fill_events(mtan_tape *tape, mtan_batch *batch, const batch_request *q, int32_t b, int32_t base,
                           int32_t *index, int32_t *spare) {
    const mtan_record *r = &q->records[batch->order[b]];
    const int32_t D = batch->channels, n = r->n_events;
    int32_t *begin = batch->begin + (size_t)b * ((size_t)D + 1), count;
    mtan_real *seen = mtan_data(tape, batch->seen) + (size_t)b * (size_t)D;
    sort_by_time(index, spare, r->events, n);
    count = distinct_times(mtan_data(tape, batch->time) + batch->time0[b], n, spare, index, r->events, n);
    if (joins_queries(q->config)) count = join_queries(tape, batch, r, b, count, spare);
    for (int32_t d = 0; d <= D; d++) begin[d] = 0;
    for (int32_t i = 0; i < n; i++) begin[r->events[i].channel + 1]++;
    for (int32_t d = 0; d < D; d++) {
        seen[d] = begin[d + 1] > 0 ? 1 : 0;
        begin[d + 1] += begin[d];
    }
    for (int32_t d = D; d > 0; d--) begin[d] = base + begin[d - 1]; /* begin[d + 1]: next place to fill in channel d */
    for (int32_t i = 0; i < n; i++) {
        const mtan_event *e = &r->events[index[i]];
        const int32_t at = begin[e->channel + 1]++;
        batch->row[at] = spare[i];
        batch->value[at] = e->value;
    }
    begin[0] = base;
    return count;
}

/* Fills one record's query times and, with QUERY_TARGETS, its target cells. Returns the number of queries. */
static int32_t fill_queries(mtan_tape *tape, mtan_batch *batch, const batch_request *q, int32_t b, int32_t *index,
                            int32_t *spare) {
    const mtan_record *r = &q->records[batch->order[b]];
    mtan_real *query = mtan_data(tape, batch->query) + batch->query0[b];
    const int32_t cell = batch->cell0[b];
    int32_t n, count;
    const mtan_event *targets = targets_of(r, &n);
    if (q->queries == QUERY_TIMES) {
        if (r->times) {
            for (int32_t i = 0; i < r->n_times; i++) query[i] = r->times[i];
            return r->n_times;
        }
        sort_by_time(index, spare, r->events, r->n_events);
        return distinct_times(query, q->bounds->times, NULL, index, r->events, r->n_events);
    }
    sort_by_time(index, spare, targets, n);
    count = distinct_times(query, q->bounds->times, batch->cell_row + cell, index, targets, n);
    for (int32_t i = 0; i < n; i++) {
        batch->cell_channel[cell + i] = targets[index[i]].channel;
        batch->cell_value[cell + i] = targets[index[i]].value;
    }
    batch->cell0[b + 1] = cell + n;
    return count;
}

/* ---- rows that are classified: one per record, or one per query time of a record; S samples of each ---- */

static mtan_row_order row_order(const mtan_config *c) {
    if (c->classify == MTAN_CLASSIFY_RECORD) return MTAN_ROWS_BY_RECORD;
    return reads_times(c) ? MTAN_ROWS_BY_QUERY : MTAN_ROWS_BY_STEP;
}

/* Index of the label for row i of a record: the record's position, a row of the sequence, or a query. */
static int32_t label_at(const mtan_batch *b, mtan_row_order order, int32_t record, int32_t i) {
    return order == MTAN_ROWS_BY_RECORD ? record
           : order == MTAN_ROWS_BY_STEP ? b->first[i] + record
                                        : b->query0[record] + i;
}

/* Whether a number is a valid target: finite, or a label between 0 and 1, or missing (NaN). */
static int32_t can_be_target(const mtan_config *c, mtan_real y) {
    return y != y || (c->task == MTAN_TASK_LABELS ? y >= 0 && y <= 1 : is_finite(y));
}

static void fill_numbers(mtan_tape *tape, mtan_batch *batch, const batch_request *q) {
    const mtan_config *c = q->config;
    const size_t C = (size_t)c->classes;
    for (int32_t b = 0; b < q->n; b++) {
        const mtan_record *r = &q->records[batch->order[b]];
        for (int32_t i = 0; i < class_rows(batch, row_order(c), b); i++)
            for (size_t k = 0; k < C; k++) {
                const mtan_real y = r->numbers ? r->numbers[(size_t)i * C + k] : not_a_number();
                if (!can_be_target(c, y)) fail(tape, MTAN_ERR_INPUT);
                batch->number[(size_t)label_at(batch, row_order(c), b, i) * C + k] = y;
            }
    }
}

static void fill_labels(mtan_tape *tape, mtan_batch *batch, const batch_request *q) {
    const mtan_config *c = q->config;
    if (c->classify == MTAN_CLASSIFY_NONE) return; /* labels are allowed and ignored */
    if (c->task != MTAN_TASK_CLASSES) {
        if (runs(tape)) fill_numbers(tape, batch, q);
        return;
    }
    for (int32_t b = 0; runs(tape) && b < q->n; b++) {
        const mtan_record *r = &q->records[batch->order[b]];
        for (int32_t i = 0; i < class_rows(batch, row_order(c), b); i++) {
            const int32_t label = r->labels ? r->labels[i] : MTAN_UNLABELED;
            if (label < MTAN_UNLABELED || label >= c->classes) fail(tape, MTAN_ERR_INPUT);
            batch->label[label_at(batch, row_order(c), b, i)] = label;
        }
    }
}

/* ---- summaries: what the classifier of records reads of a channel in addition to the sequence ----
 * Sums over the channel's observations in time order, in double and without fused multiply-add, so that a stream, which
 * adds them one by one, gets the same bits. Deviations are taken from the first observation added, which keeps
 * cancellation small. A late observation counts in every sum except those of steps (steps, squares, cubes, near,
 * nearness) and away. */

/* A step is a value minus the value before it. Models without the summaries of shape or course allocate only the fields
 * above `shape` or `course`. */
typedef struct channel_summary {
    double count, first, last, least, most; /* of the values */
    double began, latest;                   /* times of the first and the last */
    double value0, time0;                   /* origin of the deviations */
    double x, xx, t, tt, tx;                /* sums of deviations of values and times, and of their products */
    double steps;                           /* sum of |step| */
    /* shape */
    double xxx, xxxx;      /* sums of powers of a value's deviation */
    double squares, cubes; /* sums of powers of a step */
    double near, nearness; /* sum of weight |step|, and of the weights */
    double away;           /* sum of |value - mean of the values before it| */
    /* course */
    double part[MTAN_COURSE], parts[MTAN_COURSE]; /* for each part of time: sum of deviations, number of values */
} channel_summary;

static int32_t summary_reals(const mtan_config *c) {
    const size_t bytes = c->summaries > 2   ? sizeof(channel_summary)
                         : c->summaries > 1 ? offsetof(channel_summary, part)
                                            : offsetof(channel_summary, xxx);
    return (int32_t)(bytes / sizeof(mtan_real));
}

/* Channel d's summary. The size of a summary depends on config.summaries. */
static channel_summary *summary_at(channel_summary *all, const mtan_config *c, int32_t d) {
    return (channel_summary *)(void *)((mtan_real *)(void *)all + (size_t)d * (size_t)summary_reals(c));
}

/* Default of config.fastest: cycles per unit of time. */
#define FASTEST 16

/* Typical gaps per unit of time, in which time differences are counted. A gap is half a cycle of the fastest
 * frequency. */
static mtan_real statistics_rate(const mtan_config *c) {
    return (mtan_real)(2 * (c->fastest > 0 ? c->fastest : FASTEST));
}

static double magnitude(double x) {
    return x < 0 ? -x : x;
}

/* x is the value's deviation. `steps` says that the value is neither the first nor late; then step is its step, and gap
 * is the time since the value before it, in typical gaps. */
static void shape_add(channel_summary *s, double x, int32_t steps, double step, double gap) {
    const double weight = 1 / (1 + gap * gap);
    s->xxx += x * x * x, s->xxxx += x * x * (x * x);
    if (!steps) return;
    s->squares += step * step, s->cubes += step * step * step;
    s->near += weight * magnitude(step), s->nearness += weight;
    s->away += magnitude(x - s->x / s->count);
}

/* Times before 0 count in the first part, times after 1 in the last. */
static void course_add(channel_summary *s, double time, double x) {
    const double at = time * MTAN_COURSE;
    const int32_t part = !(at > 0) ? 0 : at < MTAN_COURSE ? (int32_t)at : MTAN_COURSE - 1;
    s->part[part] += x, s->parts[part]++;
}

static void summary_add(channel_summary *s, const mtan_config *c, double time, double value) {
    const int32_t steps = s->count > 0 && !(time < s->latest);
    if (!(s->count > 0)) {
        s->first = s->last = s->least = s->most = s->value0 = value;
        s->began = s->latest = s->time0 = time;
    }
    const double x = value - s->value0, t = time - s->time0, step = value - s->last;
    if (c->summaries > 1) shape_add(s, x, steps, step, (double)statistics_rate(c) * (time - s->latest));
    if (c->summaries > 2) course_add(s, time, x);
    s->count++;
    s->x += x, s->xx += x * x, s->t += t, s->tt += t * t, s->tx += t * x;
    if (value < s->least) s->least = value;
    if (value > s->most) s->most = value;
    if (time < s->began) s->began = time, s->first = value;
    if (steps) s->steps += magnitude(step);
    if (!(time < s->latest)) s->latest = time, s->last = value;
}

static double summary_mean(const channel_summary *s) {
    return s->count > 0 ? s->value0 + s->x / s->count : 0;
}

/* Covariance of n pairs, from the sums of both members and of their product. */
static double covariance(double n, double a, double b, double ab) {
    return ab / n - a / n * (b / n);
}

static double natural_log(double x) {
    return 0.6931471805599453 * scalar_log2(x);
}

/* Compresses a number that may be large: log(1 + x), or -log(1 - x) below 0. */
static double drawn(double x) {
    return x < 0 ? -natural_log(1 - x) : natural_log(1 + x);
}

/* MTAN_SUMMARIES numbers. */
static void summary_level(double *out, const channel_summary *s) {
    const double n = s->count > 0 ? s->count : 1;
    const double width = scalar_sqrt(covariance(n, s->t, s->t, s->tt));
    const double numbers[MTAN_SUMMARIES] = {s->count > 0 ? 1 : 0,
                                            natural_log(1 + s->count),
                                            summary_mean(s),
                                            scalar_sqrt(covariance(n, s->x, s->x, s->xx)),
                                            s->first,
                                            s->last,
                                            s->least,
                                            s->most,
                                            s->steps / (n > 1 ? n - 1 : 1),
                                            width > 0 ? covariance(n, s->t, s->x, s->tx) / width : 0,
                                            s->latest};
    memcpy(out, numbers, sizeof numbers);
}

/* Rounds to the nearest multiple of 2^-16 and clamps to +-2^14. A channel with two distinct values always has a
 * kurtosis of 1; rounding errors in the last digits must not tell such channels apart. */
static double rounded(double x) {
    const double most = 16384, y = x < most ? x : most, z = y > -most ? y : -most;
    return (double)(int32_t)(z * 65536 + (z < 0 ? -0.5 : 0.5)) / 65536;
}

/* MTAN_SHAPES numbers, none of which depends on the unit of the values. All are 0 if all values are equal. */
static void summary_shape(double *out, const channel_summary *s) {
    const double n = s->count, steps = n - 1, mean = n > 0 ? s->x / n : 0;
    const double variance = n > 0 ? covariance(n, s->x, s->x, s->xx) : 0, spread = scalar_sqrt(variance);
    const double root = scalar_sqrt(s->squares / (n > 1 ? steps : 1));
    memset(out, 0, MTAN_SHAPES * sizeof *out);
    if (!(spread > 0 && root > 0)) return;
    const double third = s->xxx / n - 3 * mean * (s->xx / n) + 2 * mean * mean * mean;
    const double fourth =
        s->xxxx / n - 4 * mean * (s->xxx / n) + 6 * mean * mean * (s->xx / n) - 3 * mean * mean * (mean * mean);
    const double kurtosis = fourth / (variance * variance);
    out[0] = drawn(third / (variance * spread));
    out[1] = natural_log(kurtosis > 1 ? kurtosis : 1);
    out[2] = drawn((s->most - s->value0 - mean) / spread);
    out[3] = drawn((s->value0 + mean - s->least) / spread);
    out[4] = s->steps / steps / spread;
    out[5] = s->near / s->nearness / spread;
    out[6] = s->steps / steps / root;
    out[7] = drawn(s->cubes / steps / (root * root * root));
    out[8] = s->away / steps / spread;
    for (int i = 0; i < MTAN_SHAPES; i++) out[i] = rounded(out[i]);
}

/* MTAN_COURSE numbers: the mean of each part of time. A part without observations takes the mean of the part before it;
 * at the start, that of the first part with observations. */
static void summary_course(double *out, const channel_summary *s) {
    double mean = 0;
    for (int32_t i = MTAN_COURSE; i-- > 0;)
        if (s->parts[i] > 0) mean = s->value0 + s->part[i] / s->parts[i];
    for (int32_t i = 0; i < MTAN_COURSE; i++) {
        if (s->parts[i] > 0) mean = s->value0 + s->part[i] / s->parts[i];
        out[i] = mean;
    }
}

/* How many numbers the setting `summaries` gives for a channel. */
static int32_t channel_numbers(const mtan_config *c) {
    return (c->summaries > 0 ? MTAN_SUMMARIES : 0) + (c->summaries > 1 ? MTAN_SHAPES : 0) +
           (c->summaries > 2 ? MTAN_COURSE : 0);
}

/* Writes a channel's numbers `stride` apart. */
static void summary_numbers(mtan_real *out, size_t stride, const mtan_config *c, const channel_summary *s) {
    double numbers[MTAN_SUMMARIES + MTAN_SHAPES + MTAN_COURSE];
    summary_level(numbers, s);
    if (c->summaries > 1) summary_shape(numbers + MTAN_SUMMARIES, s);
    if (c->summaries > 2) summary_course(numbers + MTAN_SUMMARIES + MTAN_SHAPES, s);
    for (size_t i = 0; i < (size_t)channel_numbers(c); i++) out[i * stride] = (mtan_real)numbers[i];
}

/* Number of channels that are not static. */
static int32_t changing(const mtan_config *c) {
    return c->channels - c->statics;
}

static int32_t summary_width(const mtan_config *c) {
    return channel_numbers(c) * changing(c) + 2 * c->statics;
}

/* Writes channel d's entries in a record's row, which is ordered by number, then by channel. A static channel has its
 * mean, and 1 or 0 for observed or not. */
static void summary_put(mtan_real *row, const mtan_config *c, int32_t d, const channel_summary *s) {
    const int32_t M = c->statics;
    mtan_real *fixed = row + summary_width(c) - 2 * M;
    if (d < M) {
        fixed[d] = (mtan_real)summary_mean(s);
        fixed[M + d] = s->count > 0 ? 1 : 0;
    } else if (c->summaries) {
        summary_numbers(row + (d - M), (size_t)changing(c), c, s);
    }
}

static void summary_row(mtan_real *row, const mtan_config *c, channel_summary *channel /* (D) */) {
    for (int32_t d = 0; d < c->channels; d++) summary_put(row, c, d, summary_at(channel, c, d));
}

/* ---- trees: an ensemble of decision trees over a record's row, which adds to the logits ----
 * Trees only compare numbers with thresholds. They can use a number that is informative in one range only, or only
 * together with another number. Training does not change the trees (mtan.h, MTAN_LEAVES). */

enum { SPLIT_LEAF, SPLIT_NUMBER, SPLIT_THRESHOLD, SPLIT_SIDE, SPLIT_REALS };
enum { TREE_SPLITS = (MTAN_LEAVES - 1) * SPLIT_REALS, LOGITS_AT_ONCE = 8 };

/* How many numbers a tree may split by: the summaries and the means of static channels. */
static int32_t tree_numbers(const mtan_config *c) {
    return summary_width(c) - c->statics;
}

/* Reads a whole number from a tensor; -1 if it is not in [0, n). */
static int32_t whole_below(mtan_real x, int32_t n) {
    return x >= 0 && x < (mtan_real)n ? (int32_t)x : -1;
}

/* Whether a split sends the row to its new leaf. A split whose number does not exist sends no row. */
static int32_t split_sends(const mtan_real *split, const mtan_config *c, const mtan_real *row) {
    const int32_t n = tree_numbers(c), summaries = n - c->statics, j = whole_below(split[SPLIT_NUMBER], n);
    if (j < 0) return 0;
    if (!(row[j < summaries ? j % changing(c) : n + (j - summaries)] > 0)) return split[SPLIT_SIDE] > 0;
    return row[j] >= split[SPLIT_THRESHOLD];
}

static size_t tree_leaf(const mtan_real *split, const mtan_config *c, const mtan_real *row) {
    int32_t leaf = 0;
    for (int32_t k = 1; k < MTAN_LEAVES; k++, split += SPLIT_REALS)
        if (whole_below(split[SPLIT_LEAF], k) == leaf && split_sends(split, c, row)) leaf = k;
    return (size_t)leaf;
}

/* Sums n logits, from `first` on, over the trees: in double and in the order of the trees, so that the bits are the
 * same everywhere. */
static void tree_sums_of(mtan_real *out, const mtan_config *c, const mtan_real *row, const mtan_real *split,
                         const mtan_real *height, size_t first, size_t n) {
    const size_t outputs = (size_t)mtan_config_outputs(c);
    double sum[LOGITS_AT_ONCE] = {0};
    for (int32_t t = 0; t < c->trees; t++, split += TREE_SPLITS, height += MTAN_LEAVES * outputs) {
        const mtan_real *at = height + tree_leaf(split, c, row) * outputs + first;
        for (size_t i = 0; i < n; i++) sum[i] += (double)at[i];
    }
    for (size_t i = 0; i < n; i++) out[first + i] = (mtan_real)sum[i];
}

static void tree_sums(mtan_real *out, const mtan_config *c, const mtan_real *row, const mtan_real *split,
                      const mtan_real *height) {
    const size_t outputs = (size_t)mtan_config_outputs(c);
    for (size_t i = 0; i < outputs; i += LOGITS_AT_ONCE)
        tree_sums_of(out, c, row, split, height, i, outputs - i < LOGITS_AT_ONCE ? outputs - i : LOGITS_AT_ONCE);
}

static void clear_summaries(channel_summary *all, const mtan_config *c) {
    memset(all, 0, (size_t)c->channels * (size_t)summary_reals(c) * sizeof(mtan_real));
}

/* Room for (D) summaries in the workspace; null when counting or failed. */
static channel_summary *new_summaries(mtan_tape *tape, const mtan_config *c) {
    const int32_t D = summary_width(c) > 0 ? c->channels : 0;
    return (channel_summary *)(void *)mtan_data(tape, mtan_new_constant(tape, D, summary_reals(c)));
}

/* Fills each record's row and repeats it for every sample. */
static void fill_summaries(mtan_tape *tape, const mtan_batch *batch, const mtan_config *c) {
    const size_t width = (size_t)batch->summary.cols, D = (size_t)c->channels;
    channel_summary *channel = new_summaries(tape, c);
    if (width == 0 || !runs(tape)) return;
    for (int32_t b = 0; b < batch->records; b++) {
        const int32_t *begin = batch->begin + (size_t)b * (D + 1);
        const mtan_real *time = mtan_data(tape, batch->time) + batch->time0[b];
        mtan_real *row = mtan_data(tape, batch->summary) + (size_t)b * (size_t)batch->samples * width;
        clear_summaries(channel, c);
        for (int32_t d = 0; d < c->channels; d++)
            for (int32_t j = begin[d]; j < begin[d + 1]; j++)
                summary_add(summary_at(channel, c, d), c, (double)time[batch->row[j]], (double)batch->value[j]);
        summary_row(row, c, channel);
        for (int32_t s = 1; s < batch->samples; s++) memcpy(row + (size_t)s * width, row, width * sizeof *row);
    }
}

/* ---- values: what attention reads of an observation (mtan.h, mtan_values) ----
 * Attention weighs observations by time alone, so a channel's value and bins can be separate channels that are observed
 * at the same times. These replace the channel, after the static ones. Attention and its backends need not know about
 * the encoding. */

static int32_t value_parts(const mtan_config *c) {
    return c->values == MTAN_VALUES_PIECEWISE ? 1 + c->bins : 1;
}

/* Number of channels that attention sees (varying), and the same with the static ones before them (attended). */
static int32_t varying(const mtan_config *c) {
    return changing(c) * value_parts(c);
}

static int32_t attended(const mtan_config *c) {
    return c->statics + varying(c);
}

/* First of the attended channels that replace `channel`, which is not static. */
static int32_t attended_at(const mtan_config *c, int32_t channel) {
    return c->statics + (channel - c->statics) * value_parts(c);
}

/* Share of the bin from knot[0] to knot[1] that lies below x. A NaN knot gives NaN, which a prediction detects. */
static mtan_real bin_share(const mtan_real *knot, mtan_real x) {
    mtan_real share;
    if (knot[0] >= knot[1]) return x >= knot[1] ? 1 : 0;
    share = (x - knot[0]) / (knot[1] - knot[0]);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Part `part` of the encoded value x of a channel that is not static. */
static mtan_real encode_value(const mtan_config *c, const mtan_real *knots, int32_t channel, int32_t part,
                              mtan_real x) {
    const mtan_real *knot;
    mtan_real sum = 0;
    if (c->values == MTAN_VALUES_PLAIN || (c->values == MTAN_VALUES_PIECEWISE && part == 0)) return x;
    knot = knots + (size_t)(channel - c->statics) * ((size_t)c->bins + 1);
    if (c->values == MTAN_VALUES_PIECEWISE) return bin_share(knot + part - 1, x);
    for (int32_t j = 0; j < c->bins; j++) sum += bin_share(knot + j, x);
    return sum / (mtan_real)c->bins;
}

/* Writes a record's events, grouped by attended channel, from position `at` on. Returns the position after the last
 * one. */
static int32_t encode_record(mtan_batch *to, const mtan_batch *from, const batch_request *q, int32_t b, int32_t at) {
    const mtan_config *c = q->config;
    const int32_t P = value_parts(c);
    const int32_t *begin = from->begin + (size_t)b * ((size_t)c->channels + 1);
    int32_t *made = to->begin + (size_t)b * ((size_t)attended(c) + 1);
    for (int32_t d = 0; d < c->statics; d++) *made++ = at;
    for (int32_t d = 0; d < varying(c); d++) {
        const int32_t channel = c->statics + d / P;
        *made++ = at;
        for (int32_t i = begin[channel]; i < begin[channel + 1]; i++, at++) {
            to->row[at] = from->row[i];
            to->value[at] = encode_value(c, q->knots, channel, d % P, from->value[i]);
        }
    }
    return *made = at;
}

/* Replaces the values by encoded values. Runs after fill_summaries, which reads the original values. */
static void encode_events(mtan_tape *tape, mtan_batch *batch, const batch_request *q, int32_t events) {
    const int32_t wide = attended(q->config), n = q->n;
    mtan_batch made = *batch;
    if (q->config->values == MTAN_VALUES_PLAIN) return;
    events = (int32_t)area(tape, events, value_parts(q->config));
    made.channels = wide;
    made.begin = mtan_new_ints(tape, area(tape, n, wide + 1));
    made.row = mtan_new_ints(tape, (size_t)events);
    made.value = mtan_data(tape, mtan_new_constant(tape, events, 1));
    made.seen = mtan_new_constant(tape, n, wide);
    made.events = runs(tape) ? 0 : events;
    for (int32_t b = 0; runs(tape) && b < n; b++) {
        const int32_t *begin = made.begin + (size_t)b * ((size_t)wide + 1);
        mtan_real *seen = mtan_data(tape, made.seen) + (size_t)b * (size_t)wide;
        made.events = encode_record(&made, batch, q, b, made.events);
        for (int32_t d = 0; d < wide; d++) seen[d] = begin[d + 1] > begin[d] ? 1 : 0;
    }
    *batch = made;
}

static void batch_arrays(mtan_tape *tape, mtan_batch *batch, const batch_request *q, int32_t events, int32_t cells) {
    const int32_t n = q->n, D = q->config->channels;
    const int32_t times = q->queries == QUERY_NONE ? 0 : (int32_t)area(tape, n, q->bounds->times);
    const int32_t joined = joins_queries(q->config), more = joined ? times : 0;
    const int32_t labels = q->config->classify == MTAN_CLASSIFY_TIME ? times : n;
    const int32_t has_numbers = q->config->classify != MTAN_CLASSIFY_NONE && q->config->task != MTAN_TASK_CLASSES;
    if (events > INT32_MAX - more) fail(tape, MTAN_ERR_SIZE);
    batch->time0 = mtan_new_ints(tape, (size_t)n + 1);
    batch->query0 = mtan_new_ints(tape, (size_t)n + 1);
    batch->pair0 = mtan_new_ints(tape, (size_t)n + 1);
    batch->cell0 = mtan_new_ints(tape, (size_t)n + 1);
    batch->score0 = mtan_new_ints(tape, (size_t)n + 1);
    batch->begin = mtan_new_ints(tape, area(tape, n, D + 1));
    batch->row = mtan_new_ints(tape, (size_t)events);
    batch->value = mtan_data(tape, mtan_new_constant(tape, events, 1));
    batch->time = mtan_new_constant(tape, tape->status == MTAN_OK ? events + more : 0, 1);
    batch->query_row = mtan_new_ints(tape, joined ? (size_t)times : 0);
    batch->place = mtan_new_ints(tape, joined ? (size_t)q->bounds->events : 0);
    batch->seen = mtan_new_constant(tape, n, D);
    batch->summary = mtan_new_constant(tape, (int32_t)area(tape, n, q->samples), summary_width(q->config));
    batch->query = mtan_new_constant(tape, times, 1);
    batch->cell_row = mtan_new_ints(tape, (size_t)cells);
    batch->cell_channel = mtan_new_ints(tape, (size_t)cells);
    batch->cell_value = mtan_data(tape, mtan_new_constant(tape, cells, 1));
    batch->label = mtan_new_ints(tape, has_numbers ? 0 : (size_t)labels);
    if (has_numbers) batch->number = mtan_data(tape, mtan_new_constant(tape, labels, q->config->classes));
    batch->id = (uint64_t *)(void *)mtan_new_ints(tape, (size_t)n * sizeof(uint64_t) / sizeof(int32_t));
}

/* Totals over the records, or their bounds when counting. */
static void batch_totals(mtan_tape *tape, mtan_batch *batch, const batch_request *q) {
    const int32_t times =
        q->bounds->times < q->bounds->events || joins_queries(q->config) ? q->bounds->times : q->bounds->events;
    if (!runs(tape)) {
        batch->times = (int32_t)area(tape, q->n, times);
        batch->events = (int32_t)area(tape, q->n, q->bounds->events);
        batch->queries = q->queries == QUERY_NONE ? 0 : (int32_t)area(tape, q->n, q->bounds->times);
        batch->scores = (int32_t)area(tape, batch->times, has_trait(q->config, MTAN_ATTENDS) ? batch->steps : 0);
        batch->pairs = (int32_t)area(tape, batch->queries, has_trait(q->config, MTAN_ATTENDS) ? batch->steps : 0);
    } else {
        batch->times = batch->time0[q->n];
        batch->queries = batch->query0[q->n];
        batch->scores = batch->score0[q->n];
        batch->pairs = batch->pair0[q->n];
        batch->events = batch->begin[(size_t)q->n * ((size_t)batch->channels + 1) - 1];
        batch->cells = batch->cell0[q->n];
    }
    batch->time.rows = batch->times;
    batch->query.rows = batch->queries;
    if (!observed(q->config)) return;
    batch->point = reads_times(q->config) ? batch->time : batch->query;
    batch->point0 = reads_times(q->config) ? batch->time0 : batch->query0;
}

static void add_block(mtan_tape *tape, int32_t *first, int32_t b, int32_t rows, int32_t cols) {
    if ((int64_t)rows * cols > INT32_MAX - first[b]) fail(tape, MTAN_ERR_SIZE);
    else first[b + 1] = first[b] + rows * cols;
}

static void batch_fill(mtan_tape *tape, mtan_batch *batch, const batch_request *q, int32_t *index, int32_t *spare) {
    int32_t events = 0;
    batch->time0[0] = batch->query0[0] = batch->cell0[0] = batch->score0[0] = batch->pair0[0] = 0;
    for (int32_t b = 0; b < q->n && tape->status == MTAN_OK; b++) {
        const mtan_record *r = &q->records[batch->order[b]];
        const int32_t times = fill_events(tape, batch, q, b, events, index, spare);
        int32_t queries = 0;
        batch->id[b] = r->id;
        events += r->n_events;
        batch->time0[b + 1] = batch->time0[b] + times;
        batch->cell0[b + 1] = batch->cell0[b];
        if (q->queries != QUERY_NONE) queries = fill_queries(tape, batch, q, b, index, spare);
        batch->query0[b + 1] = batch->query0[b] + queries;
        if (times > q->bounds->times || queries > q->bounds->times) fail(tape, MTAN_ERR_MEMORY);
        batch->most_times = times > batch->most_times ? times : batch->most_times;
        batch->most_queries = queries > batch->most_queries ? queries : batch->most_queries;
        add_block(tape, batch->score0, b, times, has_trait(q->config, MTAN_ATTENDS) ? batch->length[b] : 0);
        add_block(tape, batch->pair0, b, queries, has_trait(q->config, MTAN_ATTENDS) ? batch->length[b] : 0);
    }
}

static void batch_build(mtan_tape *tape, mtan_batch *batch, const batch_request *q) {
    int32_t events = 0, cells = 0, *index, *spare;
    memset(batch, 0, sizeof *batch);
    batch->records = q->n;
    batch->samples = q->samples;
    batch->channels = batch->outputs = q->config->channels;
    batch->statics = q->config->statics;
    batch->one_latent = has_trait(q->config, MTAN_ONE_LATENT);
    tape->batch = batch;
    index = mtan_new_ints(tape, (size_t)q->bounds->events);
    spare = mtan_new_ints(tape, (size_t)q->bounds->events);
    if (tape->work) {
        for (int32_t b = 0; b < q->n; b++) {
            int32_t n;
            mtan_status status = q->checked ? MTAN_OK : check_record(&q->records[b], q->config, q->bounds);
            if (status != MTAN_OK) {
                fail(tape, status);
                return;
            }
            targets_of(&q->records[b], &n);
            events += q->records[b].n_events; /* each at most bounds.events, whose product with n was checked */
            cells += q->queries == QUERY_TARGETS ? n : 0;
        }
    } else {
        events = (int32_t)area(tape, q->n, q->bounds->events);
        cells = q->queries == QUERY_TARGETS ? events : 0;
    }
    batch_steps(tape, batch, q, index, spare);
    batch_arrays(tape, batch, q, events, cells);
    if (runs(tape)) batch_fill(tape, batch, q, index, spare);
    batch_totals(tape, batch, q);
    fill_summaries(tape, batch, q->config);
    fill_labels(tape, batch, q);
    encode_events(tape, batch, q, events);
}

/* Sends the batch, which lies in the workspace from `first` on, to a device in one transfer. */
static void batch_send(mtan_tape *tape, size_t first) {
    if (runs(tape)) send(tape, tape->work + first, (tape->top - first) * sizeof(mtan_real));
}

/* Number of distinct times of events in time order; -1 if the events are not in time order. */
static int32_t count_ordered(const mtan_event *events, int32_t n) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        if (i > 0 && events[i].time < events[i - 1].time) return -1;
        count += i == 0 || events[i].time > events[i - 1].time;
    }
    return count;
}

/* scratch (2, n) */
static int32_t count_times(const mtan_event *events, int32_t n, int32_t *scratch) {
    const int32_t count = count_ordered(events, n);
    if (count >= 0) return count;
    sort_by_time(scratch, scratch + n, events, n);
    return distinct_times(NULL, 0, NULL, scratch, events, n);
}

mtan_status mtan_record_times(const mtan_record *record, int32_t *scratch, int32_t *times) {
    if (!record || !times || (record->n_events > 0 && !record->events)) return MTAN_ERR_NULL;
    if (record->n_events < 0) return MTAN_ERR_INPUT;
    for (int32_t i = 0; i < record->n_events; i++)
        if (!is_finite(record->events[i].time)) return MTAN_ERR_INPUT;
    if (!scratch && count_ordered(record->events, record->n_events) < 0) return MTAN_ERR_MEMORY;
    *times = count_times(record->events, record->n_events, scratch);
    return MTAN_OK;
}

/* Index of the event after event `last` in time order, -1 after the final one. Events at the same time keep their
 * order. last = -1 asks for the first event. */
static int32_t event_after(const mtan_record *r, int32_t last) {
    int32_t next = -1;
    for (int32_t i = 0; i < r->n_events; i++) {
        const mtan_real t = r->events[i].time;
        if (last >= 0 && (t < r->events[last].time || (t <= r->events[last].time && i <= last))) continue;
        if (next < 0 || t < r->events[next].time) next = i;
    }
    return next;
}

/* Event number n of a record in the order of time, after event `last`. Events that are not `ordered` are searched for
 * one by one, in quadratic time, as there is no memory to sort them in. */
static int32_t next_in_time(const mtan_record *r, int32_t ordered, int32_t n, int32_t last) {
    return ordered ? n : event_after(r, last);
}

size_t mtan_summaries_count(const mtan_config *config) {
    return mtan_config_check(config) == MTAN_OK ? (size_t)summary_width(config) : 0;
}

mtan_status mtan_summaries(const mtan_config *config, const mtan_record *record, mtan_real *row, size_t count) {
    mtan_status status = mtan_config_check(config);
    const mtan_bounds any = {1, INT32_MAX, INT32_MAX};
    if (!config || !record || !row) return MTAN_ERR_NULL;
    if (status != MTAN_OK) return status;
    if (count < (size_t)summary_width(config)) return MTAN_ERR_MEMORY;
    if ((status = check_record(record, config, &any)) != MTAN_OK) return status;
    const int32_t ordered = count_ordered(record->events, record->n_events) >= 0;
    for (int32_t d = 0; d < config->channels; d++) {
        channel_summary s;
        memset(&s, 0, sizeof s);
        for (int32_t n = 0, i = -1; n < record->n_events; n++) {
            i = next_in_time(record, ordered, n, i);
            if (record->events[i].channel != d) continue;
            summary_add(&s, config, (double)record->events[i].time, (double)record->events[i].value);
        }
        summary_put(row, config, d, &s);
    }
    return MTAN_OK;
}

/* ==== 9. Models: shared parts =====================================================================================
 * An architecture defines a model: a list of parameters, a forward function made of ops and, where it saves time, a
 * prologue that folds what depends on the weights alone. Gradients come from the tape. Folded tensors are outputs of the
 * prologue's tape and leaves of the shards' tapes. */

typedef struct model_run {
    mtan_forward forward;
    mtan_params params;
    mtan_tensor folded[MTAN_MAX_FOLDED]; /* the architecture's struct of folded tensors */
} model_run;

/* Binds a model to a tape and lays out its folded weights. */
static void model_start(model_run *m, const mtan_model *model, mtan_tape *tape) {
    const mtan_architecture *a = architecture_of(&model->config);
    mtan_forward *f = &m->forward;
    memset(m, 0, sizeof *m);
    walk_params(&m->params, &model->config, -1, NULL);
    f->tape = tape;
    f->model = model;
    f->config = &model->config;
    f->params = &m->params;
    f->roles = m->params.roles;
    f->folded = m->folded;
    tape->params = model->weights;
    tape->n_params = align_count((size_t)m->params.count);
    tape->fold_top = tape->fold_graded = 0;
    tape->precision = model->precision;
    tape->user = a->backward;
    if (a->lay_fold) a->lay_fold(f, m->folded);
}

/* Runs the prologue, once per batch or predictor. */
static void model_fold(const model_run *m) {
    const mtan_architecture *a = architecture_of(m->forward.config);
    if (a->fold) a->fold(&m->forward);
}

static mtan_tensor param(const mtan_forward *f, int32_t index) {
    const slot s = f->params->slots[index];
    mtan_tensor x = matrix(MTAN_SPACE_PARAM, f->model->offset[index], s.offset, s.rows, s.cols);
    if (!f->tape->recording) x.grad = MTAN_NO_GRAD;
    return x;
}

/* A bias as a row vector, the shape in which it is added. */
static mtan_tensor bias(const mtan_forward *f, int32_t index) {
    mtan_tensor x = param(f, index);
    x.cols = x.stride = x.rows;
    x.rows = 1;
    return x;
}

mtan_tensor mtan_forward_param(const mtan_forward *f, int32_t index) {
    return f->params->slots[index].rank == 1 ? bias(f, index) : param(f, index);
}

void mtan_forward_rows(const mtan_forward *f, mtan_tensor x, mtan_tensor mask, mtan_tensor time) {
    const mtan_tape *tape = f->tape;
    const mtan_batch *batch = tape->batch;
    const size_t D = (size_t)batch->channels;
    if (!runs(tape)) return;
    memset(mtan_data(tape, x), 0, count_of(x) * sizeof(mtan_real));
    memset(mtan_data(tape, mask), 0, count_of(mask) * sizeof(mtan_real));
    for (int32_t b = 0; b < batch->records; b++) {
        const int32_t *begin = batch->begin + (size_t)b * (D + 1);
        for (int32_t k = 0; k < batch->length[b]; k++)
            mtan_data(tape, time)[batch->first[k] + b] = mtan_data(tape, batch->time)[batch->time0[b] + k];
        for (size_t d = 0; d < D; d++)
            for (int32_t j = begin[d], n = 1; j < begin[d + 1]; j++) {
                const size_t at = (size_t)(batch->first[batch->row[j]] + b) * D + d;
                n = j > begin[d] && batch->row[j] == batch->row[j - 1] ? n + 1 : 1; /* the n-th at this time */
                mtan_data(tape, x)[at] += (batch->value[j] - mtan_data(tape, x)[at]) / (mtan_real)n;
                mtan_data(tape, mask)[at] = 1;
            }
    }
}

/* ---- noise ---- */

typedef struct noise_source {
    uint64_t seed, epoch;
    int32_t zero; /* z is the posterior's mean */
} noise_source;

/* Replaces the drawn noise of record b by the record's own, (S, K, Z); K is its number of latent steps. */
static void place_noise(mtan_tape *tape, mtan_tensor noise, const mtan_record *r, int32_t b) {
    const mtan_batch *batch = tape->batch;
    const int32_t S = batch->samples, K = latent_steps(batch, b), Z = noise.cols;
    if (r->n_noise < S * K * Z) fail(tape, MTAN_ERR_INPUT);
    for (int32_t i = 0; runs(tape) && i < S * K; i++)
        memcpy(mtan_data(tape, noise) + (latent_row(batch, b, i % K) * (size_t)S + (size_t)(i / K)) * (size_t)Z,
               r->noise + (size_t)i * (size_t)Z, (size_t)Z * sizeof *r->noise);
}

/* Standard normals for every record, laid out as z. A device draws them itself, unless a record brings its own. */
static mtan_tensor noise_of(mtan_tape *tape, const batch_request *q, noise_source source) {
    const mtan_batch *batch = tape->batch;
    const int32_t rows = batch->one_latent ? batch->records : batch->rows;
    mtan_tensor noise = mtan_new_constant(tape, (int32_t)area(tape, rows, batch->samples), q->config->latent);
    int32_t brought = 0;
    if (!runs(tape)) return noise;
    if (source.zero) {
        tape->backend->fill(mtan_data(tape, noise), count_of(noise), 0);
        return noise;
    }
    for (int32_t b = 0; b < q->n; b++) brought |= q->records[b].noise != NULL;
    (brought ? host_kernels(tape) : tape->backend)
        ->noise(batch, mtan_data(tape, noise), source.seed, source.epoch, noise.cols);
    for (int32_t b = 0; brought && b < q->n; b++)
        if (q->records[batch->order[b]].noise) place_noise(tape, noise, &q->records[batch->order[b]], b);
    if (brought) send_tensor(tape, noise);
    return noise;
}

/* ---- the forward pass over a batch that has been built; wanted: MTAN_WANT_* ---- */

static mtan_outputs model_forward(model_run *m, const batch_request *q, noise_source noise, uint32_t wanted) {
    mtan_forward *f = &m->forward;
    mtan_outputs out;
    memset(&out, 0, sizeof out);
    f->wanted = wanted;
    f->epoch = (int32_t)noise.epoch, f->seed = noise.seed;
    f->records = q->records;
    f->gathered = q->gathered;
    if (has_decoder(f->config) && (wanted & (MTAN_WANT_LOGITS | MTAN_WANT_PREDICTION)))
        f->noise = noise_of(f->tape, q, noise);
    architecture_of(f->config)->forward(f, &out);
    return out;
}

/* ==== 10. Gathered sums ==========================================================================================
 * The running sums of sparse attention. For every channel and every point of every head they are the sums of w x, of w
 * and, with local statistics, of the other moments; w = exp(score) / 2^base. The base is the largest exponent of the
 * channel's scores so far. When it rises, the sums are multiplied by a power of two. A batch uses the base of the whole
 * record instead, which changes no digits: the sums agree as long as a channel's observations come in the batch's order.
 * A stream also keeps the rounding error of each sum (Knuth's two-sum), its rest. Once an observation of a channel comes
 * late, or after PLAIN_MOST others, the channel's sums are exact: a sum and its rest form one number with twice the
 * digits. */
enum { SUM_BASE, SUM_FIRST, SUM_VALUE = SUM_FIRST + MOMENT_X, SUM_WEIGHT = SUM_FIRST + MOMENT_W };

/* Number of sums: w x and w; with local statistics, the moments of section 3. */
static int32_t sums_kept(const mtan_config *c) {
    return c->statistics ? MTAN_MOMENTS : 2;
}

/* How many observations of a channel are summed plainly. Plain sums of 2^16 terms are off by 3e-6 (measured), those of
 * 10^7 terms by 2e-3; with more terms they stop growing. */
enum { PLAIN_MOST = 1 << 16 };

typedef struct attention_sums {
    const mtan_model *model;
    const mtan_real *embedding[4];     /* linear w, b; periodic w, b */
    const mtan_real *query;            /* (H P, E) A of section 11 at the points */
    const mtan_real *point, *beta;     /* (P) times of the points; RBF: (D) bandwidths */
    const mtan_real *knots;            /* of encoded values, which add channels; or null */
    mtan_real *seen;                   /* (D) 1 where a channel was observed */
    mtan_real *phi;                    /* (E) embedding of the last time */
    mtan_real *significand, *exponent; /* (H P) of exp(score) at the last time */
    mtan_real *weight, *before;        /* (H P) weights of the last observation; (kept, H P) the sums before it */
    mtan_real *latest, *origin;        /* (D) time of a channel's last observation; value of its first */
    int32_t *plain;                    /* (D) observations left until the channel's sums become exact; 0: they are */
    channel_summary *summary;          /* (D), or null: none are read */
    mtan_real *sums;                   /* (D, parts, H P) base, sums and, if exact, the rest of each */
    mtan_real time;
    int32_t has_time, points, parts, exact; /* P; exact: rests are kept */
} attention_sums;

/* exact: also keep the rest of each sum, so that sums can become exact. */
static void sums_layout(mtan_tape *tape, attention_sums *s, const mtan_model *model, int32_t points, int32_t exact) {
    const mtan_config *c = &model->config;
    const int32_t n = (int32_t)area(tape, c->enc_heads, points), kept = sums_kept(c), D = attended(c);
    memset(s, 0, sizeof *s);
    s->model = model;
    s->points = points;
    s->exact = exact;
    s->parts = SUM_FIRST + (exact ? 2 : 1) * kept;
    s->seen = mtan_data(tape, mtan_new_constant(tape, 1, D));
    s->phi = mtan_data(tape, mtan_new_constant(tape, 1, c->embed));
    s->significand = mtan_data(tape, mtan_new_constant(tape, 1, n));
    s->exponent = mtan_data(tape, mtan_new_constant(tape, 1, n));
    s->weight = mtan_data(tape, mtan_new_constant(tape, 1, n));
    s->before = exact ? mtan_data(tape, mtan_new_constant(tape, kept, n)) : NULL;
    s->latest = exact ? mtan_data(tape, mtan_new_constant(tape, 1, D)) : NULL;
    s->origin = c->statistics ? mtan_data(tape, mtan_new_constant(tape, 1, D)) : NULL;
    s->plain = exact ? mtan_new_ints(tape, (size_t)D) : NULL;
    s->summary = exact && summary_width(c) > 0 ? new_summaries(tape, c) : NULL;
    s->sums = mtan_data(tape, mtan_new_constant(tape, s->parts * D, n));
}

static void sums_clear(attention_sums *s) {
    const mtan_config *c = &s->model->config;
    s->has_time = 0;
    s->model->backend->fill(s->seen, (size_t)attended(c), 0);
    if (s->summary) clear_summaries(s->summary, c);
}

/* Index of a head's time embedding. */
static int32_t embed_index(const mtan_config *c, int32_t head) {
    return c->embed_heads == MTAN_EMBED_PER_HEAD ? head : 0;
}

/* exp(score) of a time stamp at all points of all heads */
static void sums_time(attention_sums *s, mtan_real time) {
    const mtan_config *c = &s->model->config;
    const mtan_backend *k = s->model->backend;
    const int32_t E = c->embed, P = s->points;
    if (s->has_time && time == s->time) return;
    s->time = time;
    s->has_time = 1;
    if (c->encoder == MTAN_RBF) return; /* its weights depend on the channel: sums_time_rbf */
    for (int32_t h = 0; h < c->enc_heads; h++) {
        const size_t own = (size_t)embed_index(c, h), w = own * ((size_t)E - 1), at = (size_t)h * (size_t)P;
        if (h == 0 && c->embedding != MTAN_EMBED_LEARNED)
            k->embed_fixed(s->phi, &time, (mtan_real)c->embed_base, (mtan_real)c->embed_scale, 1, E);
        if (c->embedding == MTAN_EMBED_LEARNED && (h == 0 || own > 0))
            k->embed_forward(s->phi, &time, s->embedding[0] + own, s->embedding[1] + own, s->embedding[2] + w,
                             s->embedding[3] + w, 1, E);
        k->product_nt(s->weight + at, (size_t)P, s->phi, (size_t)E, s->query + at * (size_t)E, (size_t)E, 1, P, E, 0);
    }
    k->exp_parts(s->significand, s->exponent, s->weight, (size_t)c->enc_heads * (size_t)P);
}

/* The same for RBF, which has one head and a bandwidth for each channel. */
static void sums_time_rbf(attention_sums *s, int32_t channel) {
    const size_t n = (size_t)s->points;
    for (size_t i = 0; i < n; i++) s->weight[i] = -s->beta[channel] * square(s->point[i] - s->time);
    s->model->backend->exp_parts(s->significand, s->exponent, s->weight, n);
}

/* A channel's sums, (parts, H P). */
static mtan_real *sums_of(const attention_sums *s, int32_t channel) {
    const size_t n = (size_t)s->model->config.enc_heads * (size_t)s->points;
    return s->sums + (size_t)channel * (size_t)s->parts * n;
}

/* Raises a channel's bases to the exponents, scales its sums accordingly, and computes the weights under the bases. */
static void sums_weigh(attention_sums *s, mtan_real *sums, size_t n) {
    mtan_real *base = sums + SUM_BASE * n;
    for (size_t i = 0; i < n; i++) {
        if (s->exponent[i] > base[i]) {
            const mtan_real fall = real_power(base[i] - s->exponent[i]);
            for (size_t part = SUM_FIRST; part < (size_t)s->parts; part++) sums[part * n + i] *= fall;
            base[i] = s->exponent[i];
        }
        s->weight[i] = s->significand[i] * real_power(s->exponent[i] - base[i]);
    }
}

/* Rounding error of after = before + x. */
static mtan_real lost(mtan_real before, mtan_real after, mtan_real x) {
    const mtan_real added = after - before;
    return (before - (after - added)) + (x - added);
}

/* Updates the rest of a sum after x was added. If the sum is exact, moves the rest into it, which leaves a rest below
 * the sum's last place. */
static void sum_rest(mtan_real *sum, mtan_real *rest, mtan_real before, mtan_real x, int32_t exact) {
    const mtan_real plain = *sum, left = *rest + lost(before, plain, x);
    *rest = left;
    if (!exact) return;
    *sum = plain + left;
    *rest = lost(plain, *sum, left);
}

/* The factor of an observation's weight in the sum of a moment: section 3. */
static mtan_real moment_factor(const mtan_moment *o, mtan_real point, int32_t moment) {
    const mtan_real u = o->value - o->origin, d = o->rate * (o->time - point);
    switch (moment) {
    case MOMENT_X: return o->value;
    case MOMENT_UU: return u * u;
    case MOMENT_D: return d;
    case MOMENT_DD: return d * d;
    case MOMENT_DU: return d * u;
    default: return 1;
    }
}

/* Updates a channel's rests after an observation. */
static void sums_rests(const attention_sums *s, int32_t channel, const mtan_moment *o, size_t n) {
    const int32_t kept = sums_kept(&s->model->config);
    mtan_real *sum = sums_of(s, channel) + SUM_FIRST * n, *rest = sum + (size_t)kept * n;
    int32_t exact;
    if (s->time < s->latest[channel]) s->plain[channel] = 0;
    exact = s->plain[channel] == 0;
    s->plain[channel] -= !exact;
    s->latest[channel] = s->time;
    for (int32_t m = 0; m < kept; m++)
        for (size_t i = 0, at = (size_t)m * n; i < n; i++, at++) {
            const mtan_real factor = moment_factor(o, s->point[i % (size_t)s->points], m);
            sum_rest(sum + at, rest + at, s->before[at], s->weight[i] * factor, exact);
        }
}

/* Starts the sums of a channel at its first observation. */
static void sums_open(attention_sums *s, int32_t channel, size_t n) {
    mtan_real *sums = sums_of(s, channel);
    memcpy(sums, s->exponent, n * sizeof *sums);
    s->model->backend->fill(sums + n, ((size_t)s->parts - 1) * n, 0);
    s->seen[channel] = 1;
    if (!s->exact) return;
    s->latest[channel] = s->time;
    s->plain[channel] = PLAIN_MOST;
}

/* Adds an observation to a channel's sums, which start at `sum`; fused where those of a batch are. */
static void sums_take(const attention_sums *s, mtan_real *sum, const mtan_moment *o, size_t n) {
    const mtan_backend *k = s->model->backend;
    const size_t P = (size_t)s->points;
    if (s->model->config.statistics) {
        for (size_t h = 0; h < n; h += P) k->moments_add(sum + h, n, s->weight + h, s->point, P, o);
        return;
    }
    k->product_nn(sum + MOMENT_X * n, n, &o->value, 1, s->weight, n, 1, (int32_t)n, 1, 1);
    k->add(sum + MOMENT_W * n, 0, s->weight, 0, 1, (int32_t)n);
}

/* Adds an observation at the time of the last sums_time. */
static void sums_add(attention_sums *s, int32_t channel, mtan_real x) {
    const mtan_config *c = &s->model->config;
    const size_t n = (size_t)c->enc_heads * (size_t)s->points, kept = (size_t)sums_kept(c);
    mtan_real *sums = sums_of(s, channel), *first = sums + SUM_FIRST * n;
    mtan_moment o;
    if (c->encoder == MTAN_RBF) sums_time_rbf(s, channel);
    if (s->origin && !(s->seen[channel] > 0)) s->origin[channel] = x;
    if (!(s->seen[channel] > 0)) sums_open(s, channel, n);
    o.value = x, o.origin = s->origin ? s->origin[channel] : 0, o.time = s->time, o.rate = statistics_rate(c);
    sums_weigh(s, sums, n);
    if (s->exact) memcpy(s->before, first, kept * n * sizeof *first);
    sums_take(s, first, &o, n);
    if (s->exact) sums_rests(s, channel, &o, n);
}

/* Reads a channel's features at a point of a head, `stride` apart. A channel without observations gives 0 (Q4). */
static void sums_read(const attention_sums *s, mtan_real *out, size_t stride, int32_t head, int32_t point,
                      int32_t channel) {
    const mtan_config *c = &s->model->config;
    const size_t n = (size_t)c->enc_heads * (size_t)s->points, F = (size_t)statistics_count(c->statistics);
    const mtan_real *at = sums_of(s, channel) + (size_t)head * (size_t)s->points + (size_t)point;
    mtan_real feature[MTAN_FEATURES] = {0};
    if (s->seen[channel] > 0 && c->statistics)
        s->model->backend->moments_read(feature, at + SUM_FIRST * n, n, at, s->origin[channel], c->statistics, 1);
    else if (s->seen[channel] > 0) feature[0] = at[SUM_VALUE * n] / at[SUM_WEIGHT * n];
    for (size_t f = 0; f < F; f++) out[f * stride] = feature[f];
}

/* The intensities (P, H D) of the sums, computed by the same kernels as a batch's. */
static void sums_intensity(const attention_sums *s, mtan_real *y) {
    const mtan_backend *k = s->model->backend;
    const size_t H = (size_t)s->model->config.enc_heads, P = (size_t)s->points, n = H * P;
    const size_t D = (size_t)varying(&s->model->config);
    for (size_t d = 0; d < D; d++) {
        const int32_t channel = s->model->config.statics + (int32_t)d;
        const mtan_real *sums = sums_of(s, channel);
        if (!(s->seen[channel] > 0)) k->fill(s->weight, n, 0);
        else k->log_under(s->weight, sums + SUM_WEIGHT * n, sums + SUM_BASE * n, n);
        if (s->seen[channel] > 0) k->map(MTAN_SOFTPLUS, s->weight, s->weight, n);
        for (size_t i = 0; i < n; i++) y[i % P * H * D + i / P * D + d] = s->weight[i];
    }
}

static void gather_event(attention_sums *s, const mtan_event *e) {
    const mtan_config *c = &s->model->config;
    if (s->summary) summary_add(summary_at(s->summary, c, e->channel), c, (double)e->time, (double)e->value);
    if (e->channel < c->statics) return;
    sums_time(s, e->time);
    for (int32_t part = 0; part < value_parts(c); part++)
        sums_add(s, attended_at(c, e->channel) + part, encode_value(c, s->knots, e->channel, part, e->value));
}

/* ==== 11. mTAND ==================================================================================================
 * The paper's two models, mTAND-Enc and mTAND-Full, as architectures. What depends on the weights alone is folded:
 *   encoder  A = (phi(r) Wq^T + bq) Wk / sqrt(dk), so that score = A . phi(t);  the key bias cancels in the softmax
 *            G = W_ih U, so that the GRU reads the interpolated values; the mask half of the input is 1 or 0 for a whole
 *            record (Q1) and becomes a bias of the record
 *   decoder  A likewise, with the roles of query and key exchanged, and with a bias; the first layer after the
 *            attention is multiplied by U */

/* ---- parameters, in the order in which the reference creates the tensors ----
 * A role is the index of a layer's first tensor. A layer has weight, then bias; a GRU weight_ih, weight_hh, bias_ih,
 * bias_hh. */

/* Columns of a head: V local statistics (value_columns) and M masks (mask_columns), which are 1 or 0 for a whole
 * record. There are no masks if the statistics include the intensity. */
static int32_t value_columns(const mtan_config *c) {
    return statistics_count(c->statistics) * varying(c);
}

static int32_t mask_columns(const mtan_config *c) {
    return c->statistics & MTAN_INTENSITY ? 0 : varying(c);
}

static int32_t head_columns(const mtan_config *c) {
    return value_columns(c) + mask_columns(c);
}

typedef struct attention_roles {
    int32_t query, key, out;  /* linears 0, 1, 2 (out: `cross` in the RBF and RNN3 encoders) */
    int32_t periodic, linear; /* time embedding */
    int32_t bandwidth;        /* RBF */
    int32_t gru[2], mlp[2];   /* forward and reverse; hiddens_to_z0 or z0_to_obs */
} attention_roles;

typedef struct mtand_roles {
    attention_roles enc, dec;
    int32_t cls_gru, head[3];
    int32_t variance[2]; /* z0_to_var */
    int32_t trees;       /* share, splits, heights */
    int32_t knots;       /* of encoded values: knots_of */
} mtand_roles;

static const mtand_roles *roles_of(const mtan_forward *f) {
    return (const mtand_roles *)f->roles;
}

static int32_t add_linear(mtan_params *p, const char *layer, int32_t out, int32_t in, int32_t fan) {
    const int32_t role = add_param(p, layer, ".weight", out, in, 2, fan);
    add_param(p, layer, ".bias", out, 1, 1, fan);
    return role;
}

static int32_t add_gru(mtan_params *p, const char *layer, int32_t in, int32_t hidden, int32_t reverse) {
    const int32_t role =
        add_param(p, layer, reverse ? ".weight_ih_l0_reverse" : ".weight_ih_l0", 3 * hidden, in, 2, hidden);
    add_param(p, layer, reverse ? ".weight_hh_l0_reverse" : ".weight_hh_l0", 3 * hidden, hidden, 2, hidden);
    add_param(p, layer, reverse ? ".bias_ih_l0_reverse" : ".bias_ih_l0", 3 * hidden, 1, 1, hidden);
    add_param(p, layer, reverse ? ".bias_hh_l0_reverse" : ".bias_hh_l0", 3 * hidden, 1, 1, hidden);
    return role;
}

static void add_grus(mtan_params *p, attention_roles *r, const char *layer, int32_t in, int32_t hidden, int32_t both) {
    r->gru[0] = add_gru(p, layer, in, hidden, 0);
    if (both) r->gru[1] = add_gru(p, layer, in, hidden, 1);
}

static void add_mlp(mtan_params *p, attention_roles *r, const char *first, const char *second, int32_t in,
                    int32_t hidden, int32_t out) {
    r->mlp[0] = add_linear(p, first, hidden, in, in);
    r->mlp[1] = add_linear(p, second, out, hidden, hidden);
}

static void add_embedding(mtan_params *p, attention_roles *r, const mtan_config *c, int32_t heads) {
    const int32_t n = c->embed_heads == MTAN_EMBED_PER_HEAD ? heads : 1;
    if (c->embedding != MTAN_EMBED_LEARNED) return;
    r->periodic = add_linear(p, "periodic", n * (c->embed - 1), 1, 1);
    r->linear = add_linear(p, "linear", n, 1, 1);
}

static void add_attention(mtan_params *p, attention_roles *r, const mtan_config *c, int32_t in, int32_t out) {
    r->query = add_linear(p, "att.linears.0", c->embed, c->embed, c->embed);
    r->key = add_linear(p, "att.linears.1", c->embed, c->embed, c->embed);
    r->out = add_linear(p, "att.linears.2", out, in, in);
}

static void add_head(mtan_params *p, mtand_roles *roles, const mtan_config *c, const char *const names[3],
                     const char *single, int32_t in) {
    if (c->head_hidden == 0) {
        roles->head[0] = add_linear(p, single, mtan_config_outputs(c), in, in);
        return;
    }
    roles->head[0] = add_linear(p, names[0], c->head_hidden, in, in);
    roles->head[1] = add_linear(p, names[1], c->head_hidden, c->head_hidden, c->head_hidden);
    roles->head[2] = add_linear(p, names[2], mtan_config_outputs(c), c->head_hidden, c->head_hidden);
}

static const char *const head_names[3] = {"classifier.0", "classifier.2", "classifier.4"};
static const char *const bare_names[3] = {"0", "2", "4"};

/* The encoder, in the order in which each of the reference's classes creates its layers. */
static void add_encoder(mtan_params *p, mtand_roles *roles, const mtan_config *c) {
    attention_roles *r = &roles->enc;
    const int32_t D2 = head_columns(c), N = c->enc_hidden, full = has_decoder(c), H = c->enc_heads;
    const char *gru = c->encoder != MTAN_ATTENTION || full ? "gru_rnn"
                      : c->classify == MTAN_CLASSIFY_TIME  ? "gru"
                                                           : "enc";
    p->prefix = "rec.";
    if (c->encoder == MTAN_ATTENTION) {
        add_attention(p, r, c, D2 * H, N);
        if (full || c->classify == MTAN_CLASSIFY_TIME) add_grus(p, r, gru, N, N, full);
        if (full) add_mlp(p, r, "hiddens_to_z0.0", "hiddens_to_z0.2", 2 * N, c->mlp_hidden, 2 * c->latent);
        else add_head(p, roles, c, head_names, "classifier", N + summary_width(c));
        if (!full && c->classify == MTAN_CLASSIFY_RECORD) add_grus(p, r, gru, N, N, 0);
        add_embedding(p, r, c, H);
        return;
    }
    if (c->encoder == MTAN_RBF) {
        r->out = add_linear(p, "cross", D2, D2, D2);
        r->bandwidth = add_param(p, "bandwidth", ".weight", D2, 1, 2, 1);
        add_grus(p, r, gru, D2, N, full);
    } else {
        r->out = add_linear(p, "cross", N, D2, D2);
        add_grus(p, r, gru, N, N, full);
        r->query = add_linear(p, "linears.0", c->embed, c->embed, c->embed);
        r->key = add_linear(p, "linears.1", c->embed, c->embed, c->embed);
        add_embedding(p, r, c, 1);
    }
    if (full) add_mlp(p, r, "hiddens_to_z0.0", "hiddens_to_z0.2", 2 * N, c->mlp_hidden, 2 * c->latent);
    else add_head(p, roles, c, head_names, "classifier", N + summary_width(c));
}

static void add_decoder(mtan_params *p, mtand_roles *roles, const mtan_config *c) {
    attention_roles *r = &roles->dec;
    const int32_t N = c->dec_hidden;
    p->prefix = "dec.";
    if (c->decoder == MTAN_ATTENTION) add_attention(p, r, c, 2 * N * c->dec_heads, 2 * N);
    if (c->decoder == MTAN_RBF) r->bandwidth = add_param(p, "bandwidth", ".weight", 2 * N, 1, 2, 1);
    add_grus(p, r, "gru_rnn", c->latent, N, 1);
    if (c->decoder == MTAN_RNN3) {
        r->query = add_linear(p, "linears.0", c->embed, c->embed, c->embed);
        r->key = add_linear(p, "linears.1", c->embed, c->embed, c->embed);
        r->out = add_linear(p, "linears.2", 2 * N, 2 * N, 2 * N);
        add_embedding(p, r, c, 1);
    }
    if (c->classify != MTAN_CLASSIFY_TIME) /* Q40: the head reads the embedding, nothing is reconstructed */
        add_mlp(p, r, "z0_to_obs.0", "z0_to_obs.2", 2 * N, c->mlp_hidden, c->channels);
    if (c->decoder == MTAN_ATTENTION) add_embedding(p, r, c, c->dec_heads);
}

static void add_classifier(mtan_params *p, mtand_roles *roles, const mtan_config *c) {
    p->prefix = "classifier.";
    if (c->classify == MTAN_CLASSIFY_RECORD) {
        roles->cls_gru = add_gru(p, "gru_rnn", c->latent, c->enc_hidden, 0);
        add_head(p, roles, c, head_names, "classifier", c->enc_hidden + summary_width(c));
    } else if (c->classify == MTAN_CLASSIFY_TIME) {
        add_head(p, roles, c, bare_names, "0", 2 * c->dec_hidden);
    }
}

/* Widths of the variance network's inputs for each head of the decoder: the states that the head attends to, and the
 * intensities of the encoder's heads. The states of all heads come first. */
static int32_t state_width(const mtan_config *c) {
    return 2 * c->dec_hidden;
}

static int32_t intensity_width(const mtan_config *c) {
    return c->variance == MTAN_VARIANCE_LEARNED ? c->enc_heads * varying(c) : 0;
}

/* Comes after the published layers, so that their initial weights are the same with and without it. */
static void add_variance(mtan_params *p, mtand_roles *roles, const mtan_config *c) {
    const int32_t in = c->dec_heads * (state_width(c) + intensity_width(c));
    if (c->variance != MTAN_VARIANCE_LEARNED) return;
    p->prefix = "dec.";
    roles->variance[0] = add_linear(p, "z0_to_var.0", c->mlp_hidden, in, in);
    roles->variance[1] = add_linear(p, "z0_to_var.2", c->channels, c->mlp_hidden, c->mlp_hidden);
}

/* Vectors, which have no weight decay in training and never become int8. */
static void add_trees(mtan_params *p, mtand_roles *roles, const mtan_config *c) {
    if (c->trees == 0) return;
    p->prefix = "rec.";
    roles->trees = add_param(p, "trees", ".share", 1, 1, 1, 1);
    add_param(p, "trees", ".split", c->trees * TREE_SPLITS, 1, 1, 1);
    add_param(p, "trees", ".height", c->trees * MTAN_LEAVES * mtan_config_outputs(c), 1, 1, 1);
}

/* A vector, like the trees. */
static void add_knots(mtan_params *p, mtand_roles *roles, const mtan_config *c) {
    if (c->values == MTAN_VALUES_PLAIN) return;
    p->prefix = "rec.";
    roles->knots = add_param(p, "values", ".knots", changing(c) * (c->bins + 1), 1, 1, 1);
}

static void mtand_params(const mtan_config *c, mtan_params *p, void *roles) {
    add_encoder(p, (mtand_roles *)roles, c);
    if (has_decoder(c)) {
        add_decoder(p, (mtand_roles *)roles, c);
        add_classifier(p, (mtand_roles *)roles, c);
        add_variance(p, (mtand_roles *)roles, c);
    }
    add_trees(p, (mtand_roles *)roles, c);
    add_knots(p, (mtand_roles *)roles, c);
}

static int32_t interp_ok(const mtan_config *c, mtan_interp_kind kind, int32_t heads) {
    return in_range((int32_t)kind, MTAN_ATTENTION, MTAN_RNN3) && in_range(heads, 1, c->embed) &&
           c->embed % heads == 0 && (kind == MTAN_ATTENTION || heads == 1);
}

/* walk_params and mtand_lay_fold compute these products in 32 bits. */
static int32_t widths_fit(const mtan_config *c) {
    const int64_t channels = attended(c);
    const int64_t wide = channels > c->dec_hidden || !has_decoder(c) ? channels : c->dec_hidden;
    const int64_t heads = c->enc_heads > c->dec_heads || !has_decoder(c) ? c->enc_heads : c->dec_heads;
    if (c->variance == MTAN_VARIANCE_LEARNED &&
        c->dec_heads * (2 * (int64_t)c->dec_hidden + c->enc_heads * channels) > INT32_MAX)
        return 0;
    if (c->trees > 0 && (int64_t)c->trees * MTAN_LEAVES * mtan_config_outputs(c) > INT32_MAX) return 0;
    return (1 + MTAN_FEATURES) * wide * heads <= INT32_MAX && heads * c->embed <= INT32_MAX &&
           heads * c->ref_points <= INT32_MAX;
}

static mtan_status mtand_check(const mtan_config *c) {
    if (!interp_ok(c, c->encoder, c->enc_heads) || (has_decoder(c) && !interp_ok(c, c->decoder, c->dec_heads)))
        return MTAN_ERR_CONFIG;
    if (c->embed < 2 || (c->embedding == MTAN_EMBED_FIXED && c->embed % 2 != 0)) return MTAN_ERR_CONFIG;
    if (c->variance == MTAN_VARIANCE_LEARNED && c->statistics && !(c->statistics & MTAN_INTENSITY))
        return MTAN_ERR_CONFIG; /* the variance network reads the intensity */
    if (c->variance == MTAN_VARIANCE_LEARNED && (c->encoder == MTAN_RBF || c->decoder == MTAN_RBF))
        return MTAN_ERR_CONFIG; /* only attention has an intensity and carries it to the queries */
    if ((c->statics > 0 || c->statistics || c->values != MTAN_VALUES_PLAIN) && c->encoder == MTAN_RBF)
        return MTAN_ERR_CONFIG; /* the RBF kernels do not support them */
    if (c->kind == MTAN_ENC && c->classify == MTAN_CLASSIFY_TIME && c->reference != MTAN_REF_OBSERVED)
        return MTAN_ERR_CONFIG;
    if (c->reference == MTAN_REF_GIVEN) {
        if (!c->ref) return MTAN_ERR_CONFIG;
        for (int32_t k = 0; k < c->ref_points; k++)
            if (!is_finite(c->ref[k])) return MTAN_ERR_CONFIG;
    }
    return widths_fit(c) ? MTAN_OK : MTAN_ERR_SIZE;
}

/* ---- initial weights beyond those of the reference ---- */

/* How far the score of a point with itself exceeds that with a distant point when training starts: e^4 = 55 times the
 * weight. The score is FIRST_PEAK times the mean of cos over the frequencies, which is 1 at a distance of 0 and near 0
 * far away. */
#define FIRST_PEAK 4

static double draw_unit(mtan_mt19937 *rng) {
    return (double)(mtan_mt_next(rng) & 0xffffffu) / 16777216.0;
}

/* Weight and bias of the periodic layer. The range of frequencies is cut into parts of equal ratio, and each part gets
 * one random frequency; phases are uniform. */
static void init_frequencies(const mtan_config *c, mtan_real *weight, mtan_real *bias, int32_t n, mtan_mt19937 *rng) {
    const double two_pi = 6.283185307179586, slowest = c->slowest > 0 ? c->slowest : 1;
    const double octaves = scalar_log2((c->fastest > 0 ? c->fastest : FASTEST) / slowest);
    for (int32_t i = 0; i < n; i++) {
        const double share = ((double)(i % (c->embed - 1)) + draw_unit(rng)) / (double)(c->embed - 1);
        weight[i] = (mtan_real)(two_pi * slowest * scalar_exp2(share * octaves));
        bias[i] = (mtan_real)(two_pi * draw_unit(rng));
    }
}

/* Sets key = query, scaled to give FIRST_PEAK. The entries are uniform with variance 1 / (3E) and the embedding has a
 * mean square of 1/2, so before scaling a head of E/H rows scores sqrt(E/H) / 6 at its own time. */
static void init_projections(const mtan_config *c, mtan_real *query, mtan_real *key, int32_t heads) {
    const size_t n = (size_t)c->embed * ((size_t)c->embed + 1); /* weight, then bias */
    const double gain = scalar_sqrt(6 * FIRST_PEAK / scalar_sqrt((double)c->embed / (double)heads));
    for (size_t i = 0; i < n; i++) query[i] = (mtan_real)(gain * (double)query[i]);
    memcpy(key, query, n * sizeof *key);
}

static void init_attention(const mtan_config *c, const attention_roles *r, mtan_interp_kind kind, int32_t heads,
                           mtan_real *weights, mtan_mt19937 *rng) {
    const int32_t embeddings = c->embed_heads == MTAN_EMBED_PER_HEAD ? heads : 1;
    if (kind == MTAN_RBF || c->embedding != MTAN_EMBED_LEARNED) return;
    init_frequencies(c, weights + param_at(c, r->periodic).offset, weights + param_at(c, r->periodic + 1).offset,
                     embeddings * (c->embed - 1), rng);
    init_projections(c, weights + param_at(c, r->query).offset, weights + param_at(c, r->key).offset, heads);
}

/* Trees add nothing until they are fitted. */
static void init_trees(const mtan_config *c, const mtand_roles *r, mtan_real *weights) {
    for (int32_t i = 0; i < 3; i++) {
        const mtan_param p = param_at(c, r->trees + i);
        for (int32_t k = 0; k < p.rows; k++) weights[p.offset + (size_t)k] = i == 0 ? 1 : 0;
    }
}

/* Even knots from 0 to 1, where most scaled values lie, until they are fitted. */
static void init_knots(const mtan_config *c, const mtand_roles *r, mtan_real *weights) {
    const mtan_param p = param_at(c, r->knots);
    for (int32_t k = 0; k < p.rows; k++)
        weights[p.offset + (size_t)k] = (mtan_real)(k % (c->bins + 1)) / (mtan_real)c->bins;
}

static void mtand_init(const mtan_config *c, const void *roles, mtan_real *weights, mtan_mt19937 *rng) {
    const mtand_roles *r = roles;
    if (c->trees > 0) init_trees(c, r, weights);
    if (c->values != MTAN_VALUES_PLAIN) init_knots(c, r, weights);
    if (c->frequencies != MTAN_FREQUENCIES_LOG) return;
    init_attention(c, &r->enc, c->encoder, c->encoder == MTAN_ATTENTION ? c->enc_heads : 1, weights, rng);
    if (has_decoder(c))
        init_attention(c, &r->dec, c->decoder, c->decoder == MTAN_ATTENTION ? c->dec_heads : 1, weights, rng);
}

mtan_status mtan_config_fit_frequencies(mtan_config *config, const mtan_record *records, int32_t n) {
    double longest = 0, sum = 0;
    int64_t gaps = 0;
    if (!config || (n > 0 && !records)) return MTAN_ERR_NULL;
    for (int32_t i = 0; i < n; i++) {
        const mtan_event *e = records[i].events;
        if (records[i].n_events > 1 && !e) return MTAN_ERR_NULL;
        for (int32_t j = 1; j < records[i].n_events; j++) {
            const double gap = (double)e[j].time - (double)e[j - 1].time;
            if (!(gap >= 0 && gap < 1e30)) return MTAN_ERR_INPUT;
            if (gap > 0) sum += scalar_log2(gap), gaps++;
        }
        if (records[i].n_events > 1 && (double)e[records[i].n_events - 1].time - (double)e[0].time > longest)
            longest = (double)e[records[i].n_events - 1].time - (double)e[0].time;
    }
    if (gaps == 0) return MTAN_ERR_INPUT;
    if (!(config->slowest > 0)) config->slowest = 1 / longest;
    if (!(config->fastest > 0)) config->fastest = 0.5 / scalar_exp2(sum / (double)gaps);
    if (config->fastest < config->slowest) config->fastest = config->slowest;
    return MTAN_OK;
}

/* ---- folded weights ---- */

typedef struct attention_fold {
    mtan_tensor score;      /* (H K, E) A */
    mtan_tensor score_bias; /* (1, H K), decoder only */
    mtan_tensor in[2];      /* encoder: (3N, H (V + M)) G of each direction, as published (3N, H 2D) */
    mtan_tensor in_bias[2]; /* (1, 3N) */
    mtan_tensor out;        /* decoder: (first layer, H 2N) */
    mtan_tensor out_bias;   /* (1, first layer) */
    mtan_tensor beta;       /* RBF: softplus of the bandwidths, (1, 2D) or (1, 2N) */
    gru_packed packed[2];   /* recurrent weights of each direction */
    mtan_tensor values[2];  /* encoder in INT8, in place of G: its columns for values, (3N, H V), packed */
    mtan_tensor masks[2];   /* and for masks, summed over the heads, which share them: (3N, M), packed */
} attention_fold;

typedef struct mtand_folded {
    mtan_tensor ref; /* (K, 1) reference points */
    attention_fold enc, dec;
    gru_packed cls_packed;
    mtan_tensor head_packed[3];
} mtand_folded;

static const mtand_folded *folded_of(const mtan_forward *f) {
    return (const mtand_folded *)f->folded;
}

typedef char roles_fit[sizeof(mtand_roles) <= MTAN_MAX_ROLES * sizeof(int32_t) ? 1 : -1];
typedef char folded_fits[sizeof(mtand_folded) <= MTAN_MAX_FOLDED * sizeof(mtan_tensor) ? 1 : -1];

static int32_t directions(const mtan_config *c) {
    return has_decoder(c) ? 2 : 1;
}

/* The layer after the decoder's attention: z0_to_obs, or the head for a class per time. */
static int32_t after_attention(const mtan_forward *f) {
    return f->config->classify == MTAN_CLASSIFY_TIME ? roles_of(f)->head[0] : roles_of(f)->dec.mlp[0];
}

/* phi(time) of one head: (n, E) */
static mtan_tensor embed(const mtan_forward *f, const attention_roles *r, mtan_tensor time, int32_t head) {
    const mtan_config *c = f->config;
    const int32_t learned = c->embedding == MTAN_EMBED_LEARNED, h = embed_index(c, head), E1 = c->embed - 1;
    mtan_tensor phi =
        learned ? mtan_new(f->tape, time.rows, c->embed) : mtan_new_constant(f->tape, time.rows, c->embed);
    mtan_tensor p[4];
    if (!learned) {
        mtan_op_embed_fixed(f->tape, phi, time, c->embed_base, c->embed_scale);
        return phi;
    }
    p[0] = mtan_rows(param(f, r->linear), h, 1);
    p[1] = mtan_rows(param(f, r->linear + 1), h, 1);
    p[2] = mtan_rows(param(f, r->periodic), h * E1, E1);
    p[3] = mtan_rows(param(f, r->periodic + 1), h * E1, E1);
    mtan_op_embed(f->tape, phi, time, p);
    return phi;
}

/* Embeds once and passes the same tensor to every head, or embeds once per head. */
static mtan_tensor embed_for(const mtan_forward *f, const attention_roles *r, mtan_tensor time, int32_t head,
                             mtan_tensor before) {
    return before.rows > 0 && f->config->embed_heads == MTAN_EMBED_SHARED ? before : embed(f, r, time, head);
}

/* One head of the query or key projection, (n, E/H); with a bias or without. */
static mtan_tensor project(const mtan_forward *f, mtan_tensor phi, int32_t role, int32_t heads, int32_t head,
                           int32_t biased) {
    const int32_t dk = f->config->embed / heads;
    const mtan_tensor b = mtan_columns(bias(f, role + 1), head * dk, dk);
    mtan_tensor y = mtan_new(f->tape, phi.rows, dk);
    mtan_op_linear(f->tape, y, phi, mtan_rows(param(f, role), head * dk, dk), biased ? &b : NULL);
    return y;
}

static double inverse_root(int32_t n) {
    return 1 / scalar_sqrt((double)n);
}

/* ---- folding: the layout, which shards repeat, and the computation, which the prologue does ---- */

static void lay_decoder(const mtan_forward *f, mtand_folded *to) {
    const mtan_config *c = f->config;
    if (c->decoder == MTAN_RBF) {
        to->dec.beta = mtan_new_fold(f->tape, 1, 2 * c->dec_hidden);
        return;
    }
    if (!observed(c)) {
        to->dec.score = mtan_new_fold(f->tape, c->dec_heads * c->ref_points, c->embed);
        to->dec.score_bias = mtan_new_fold(f->tape, 1, c->dec_heads * c->ref_points);
    }
    to->dec.out = mtan_new_fold(f->tape, param(f, after_attention(f)).rows, c->dec_heads * 2 * c->dec_hidden);
    to->dec.out_bias = mtan_new_fold(f->tape, 1, param(f, after_attention(f)).rows);
}

static int32_t in_int8(const mtan_forward *f) {
    return f->tape->precision == MTAN_INT8;
}

/* On a device the GRU reads real weights unpacked. */
static int32_t packs_gru(const mtan_forward *f) {
    return !f->tape->backend->device || in_int8(f);
}

/* Fold space for `count` reals. */
static mtan_tensor fold_room(const mtan_forward *f, size_t count) {
    if (count > LARGEST_COUNT) fail(f->tape, MTAN_ERR_SIZE);
    return mtan_new_fold_constant(f->tape, 1, count > LARGEST_COUNT ? 0 : (int32_t)count);
}

/* Fold space for a weight matrix (n, k) as the backend packs it. */
static mtan_tensor packed_layout(const mtan_forward *f, int32_t n, int32_t k) {
    const mtan_backend *b = f->tape->backend;
    return fold_room(f, (in_int8(f) ? b->pack_int8_count : b->pack_count)(n, k));
}

/* Fold space for mtan_gru.back, the recurrent weights of N units packed for the backward pass. */
static mtan_tensor back_layout(const mtan_forward *f, int32_t N) {
    const mtan_backend *b = f->tape->backend;
    return fold_room(f, count_sum(b->pack_count(N, 2 * N), b->pack_count(N, N)));
}

/* The first layer that head_layer runs. In mTAND-Full with a class per time, `decode` runs layer 0. */
static int32_t first_head(const mtan_config *c) {
    return has_decoder(c) && c->classify == MTAN_CLASSIFY_TIME;
}

static int32_t head_layers(const mtan_config *c) {
    return c->classify == MTAN_CLASSIFY_NONE ? 0 : c->head_hidden ? 3 : 1;
}

/* Fold space for packed weights: those that are multiplied by few rows at a time, which are the recurrent ones and the
 * head's, and the encoder's input weights in INT8. */
static void lay_packed(const mtan_forward *f, mtand_folded *to) {
    const mtan_config *c = f->config;
    const int32_t N = c->enc_hidden, M = c->dec_hidden;
    for (int32_t d = 0; packs_gru(f) && d < directions(c); d++) {
        to->enc.packed[d].w = packed_layout(f, 3 * N, N);
        if (!in_int8(f)) continue;
        to->enc.values[d] = packed_layout(f, 3 * N, c->enc_heads * value_columns(c));
        if (mask_columns(c) > 0) to->enc.masks[d] = packed_layout(f, 3 * N, mask_columns(c));
    }
    for (int32_t d = 0; packs_gru(f) && has_decoder(c) && d < 2; d++) to->dec.packed[d].w = packed_layout(f, 3 * M, M);
    if (packs_gru(f) && has_decoder(c) && c->classify == MTAN_CLASSIFY_RECORD)
        to->cls_packed.w = packed_layout(f, 3 * N, N);
    for (int32_t i = first_head(c); i < head_layers(c); i++) {
        const mtan_tensor w = param(f, roles_of(f)->head[i]);
        to->head_packed[i] = packed_layout(f, w.rows, w.cols);
    }
}

/* Fold space for recurrent weights packed for the backward pass. It comes last, because tapes that do not record have
 * none. */
static void lay_packed_back(const mtan_forward *f, mtand_folded *to) {
    const mtan_config *c = f->config;
    for (int32_t d = 0; d < directions(c); d++) to->enc.packed[d].back = back_layout(f, c->enc_hidden);
    for (int32_t d = 0; has_decoder(c) && d < 2; d++) to->dec.packed[d].back = back_layout(f, c->dec_hidden);
    if (has_decoder(c) && c->classify == MTAN_CLASSIFY_RECORD) to->cls_packed.back = back_layout(f, c->enc_hidden);
}

static void mtand_lay_fold(const mtan_forward *f, void *folded) {
    mtand_folded *to = (mtand_folded *)folded;
    const mtan_config *c = f->config;
    const int32_t N = c->enc_hidden, D2 = head_columns(c), attention = c->encoder != MTAN_RBF;
    if (attention && !observed(c)) to->enc.score = mtan_new_fold(f->tape, c->enc_heads * c->ref_points, c->embed);
    for (int32_t d = 0; d < directions(c); d++) {
        if (!in_int8(f)) to->enc.in[d] = mtan_new_fold(f->tape, 3 * N, c->enc_heads * D2);
        to->enc.in_bias[d] = mtan_new_fold(f->tape, 1, 3 * N);
    }
    if (!attention) to->enc.beta = mtan_new_fold(f->tape, 1, D2);
    if (has_decoder(c)) lay_decoder(f, to);
    to->ref = mtan_new_fold_constant(f->tape, c->ref_points, 1);
    lay_packed(f, to);
    if (f->tape->recording && packs_gru(f)) lay_packed_back(f, to);
}

static void pack_tensor(const mtan_forward *f, mtan_tensor packed, mtan_tensor w) {
    const mtan_backend *b = f->tape->backend;
    const size_t ldw = (size_t)w.stride;
    if (!runs(f->tape)) return;
    if (in_int8(f)) b->pack_int8(mtan_data(f->tape, packed), mtan_data(f->tape, w), ldw, w.rows, w.cols);
    else b->pack(mtan_data(f->tape, packed), mtan_data(f->tape, w), ldw, 1, w.rows, w.cols);
}

static void pack_param(const mtan_forward *f, mtan_tensor packed, int32_t index) {
    pack_tensor(f, packed, param(f, index));
}

/* Packs the recurrent weights of a GRU, the second of its four tensors. */
static void pack_gru(const mtan_forward *f, gru_packed packed, int32_t role) {
    const mtan_backend *b = f->tape->backend;
    const mtan_tensor w = param(f, role + 1);
    const size_t ldw = (size_t)w.stride, N = (size_t)w.cols;
    pack_tensor(f, packed.w, w);
    if (!runs(f->tape) || packed.back.cols == 0) return;
    b->pack(mtan_data(f->tape, packed.back), mtan_data(f->tape, w), 1, ldw, w.cols, 2 * w.cols);
    b->pack(mtan_data(f->tape, packed.back) + b->pack_count(w.cols, 2 * w.cols), mtan_data(f->tape, w) + 2 * N * ldw, 1,
            ldw, w.cols, w.cols);
}

static void pack_weights(const mtan_forward *f) {
    const mtan_config *c = f->config;
    const mtand_roles *l = roles_of(f);
    for (int32_t i = first_head(c); i < head_layers(c); i++) pack_param(f, folded_of(f)->head_packed[i], l->head[i]);
    if (!packs_gru(f)) return;
    for (int32_t d = 0; d < directions(c); d++) pack_gru(f, folded_of(f)->enc.packed[d], l->enc.gru[d]);
    for (int32_t d = 0; has_decoder(c) && d < 2; d++) pack_gru(f, folded_of(f)->dec.packed[d], l->dec.gru[d]);
    if (has_decoder(c) && c->classify == MTAN_CLASSIFY_RECORD) pack_gru(f, folded_of(f)->cls_packed, l->cls_gru);
}

/* Fills the reference points from index `first` on. As in torch.linspace(0, 1, K), the steps count from both ends, so
 * that both ends are exact. */
static void fill_reference(const mtan_forward *f, mtan_tensor point, int32_t first) {
    const mtan_config *c = f->config;
    const int32_t K = c->ref_points;
    const mtan_real step = K > 1 ? 1 / (mtan_real)(K - 1) : 0;
    for (int32_t i = 0; runs(f->tape) && i < point.rows; i++) {
        const int32_t k = first + i;
        const mtan_real r = k < K / 2 || K == 1 ? step * (mtan_real)k : 1 - step * (mtan_real)(K - 1 - k);
        mtan_data(f->tape, point)[i] = c->reference == MTAN_REF_GIVEN ? c->ref[k] : r;
    }
    send_tensor(f->tape, point);
}

/* Computes A of every head: projects the embedded reference points by `near`, then multiplies by the weights of
 * `far`. */
static void fold_scores(const mtan_forward *f, const attention_roles *r, const attention_fold *fold, mtan_tensor point,
                        int32_t heads, int32_t near, int32_t far, int32_t decoder) {
    const int32_t K = point.rows, dk = f->config->embed / heads;
    mtan_tensor phi = nothing;
    for (int32_t h = 0; h < heads; h++) {
        mtan_tensor side;
        phi = embed_for(f, r, point, h, phi);
        side = project(f, phi, near, heads, h, !decoder);
        mtan_op_scale(f->tape, side, inverse_root(dk));
        mtan_op_matmul(f->tape, mtan_rows(fold->score, h * K, K), side, mtan_rows(param(f, far), h * dk, dk));
        if (decoder)
            mtan_op_linear(f->tape, mtan_columns(fold->score_bias, h * K, K),
                           mtan_columns(bias(f, far + 1), h * dk, dk), side, NULL);
    }
}

/* G of one direction in INT8. The weights of values and of masks are packed apart, because values and masks have no
 * common scale. */
static void fold_input_int8(const mtan_forward *f, int32_t direction) {
    const int32_t V = value_columns(f->config), D = mask_columns(f->config), all = V + D, H = f->config->enc_heads,
                  N3 = 3 * f->config->enc_hidden;
    mtan_tensor g = mtan_new_constant(f->tape, N3, H * all), values = mtan_new_constant(f->tape, N3, H * V);
    mtan_tensor masks = mtan_new_constant(f->tape, N3, D);
    mtan_op_matmul(f->tape, g, param(f, roles_of(f)->enc.gru[direction]), param(f, roles_of(f)->enc.out));
    for (int32_t h = 0; h < H; h++) {
        const mtan_tensor mask = mtan_columns(g, h * all + V, D);
        mtan_op_copy(f->tape, mtan_columns(values, h * V, V), mtan_columns(g, h * all, V));
        if (D == 0) continue;
        if (h == 0) mtan_op_copy(f->tape, masks, mask);
        else if (runs(f->tape))
            f->tape->backend->add(mtan_data(f->tape, masks), (size_t)D, mtan_data(f->tape, mask), (size_t)mask.stride,
                                  N3, D);
    }
    pack_tensor(f, folded_of(f)->enc.values[direction], values);
    if (D > 0) pack_tensor(f, folded_of(f)->enc.masks[direction], masks);
}

static void mtand_fold(const mtan_forward *f) {
    const mtan_config *c = f->config;
    const mtand_roles *l = roles_of(f);
    fill_reference(f, folded_of(f)->ref, 0);
    pack_weights(f);
    if (c->encoder == MTAN_RBF) mtan_op_softplus(f->tape, folded_of(f)->enc.beta, bias(f, l->enc.bandwidth));
    else if (!observed(c))
        fold_scores(f, &l->enc, &folded_of(f)->enc, folded_of(f)->ref, c->enc_heads, l->enc.query, l->enc.key, 0);
    for (int32_t d = 0; d < directions(c); d++) {
        const mtan_tensor w = param(f, l->enc.gru[d]), b = bias(f, l->enc.gru[d] + 2);
        if (in_int8(f)) fold_input_int8(f, d);
        else mtan_op_matmul(f->tape, folded_of(f)->enc.in[d], w, param(f, l->enc.out));
        mtan_op_linear(f->tape, folded_of(f)->enc.in_bias[d], bias(f, l->enc.out + 1), w, &b);
    }
    if (!has_decoder(c)) return;
    if (c->decoder == MTAN_RBF) {
        mtan_op_softplus(f->tape, folded_of(f)->dec.beta, bias(f, l->dec.bandwidth));
    } else {
        const mtan_tensor w = param(f, after_attention(f)), b = bias(f, after_attention(f) + 1);
        if (!observed(c))
            fold_scores(f, &l->dec, &folded_of(f)->dec, folded_of(f)->ref, c->dec_heads, l->dec.key, l->dec.query, 1);
        mtan_op_matmul(f->tape, folded_of(f)->dec.out, w, param(f, l->dec.out));
        mtan_op_linear(f->tape, folded_of(f)->dec.out_bias, bias(f, l->dec.out + 1), w, &b);
    }
}

/* ---- encoder ---- */

/* Scores of one head. Shared embeddings are reused from the head before. */
static mtan_tensor head_scores(const mtan_forward *f, int32_t head, mtan_tensor *key_phi, mtan_tensor *query_phi) {
    const mtan_config *c = f->config;
    const mtan_batch *batch = f->tape->batch;
    const attention_roles *r = &roles_of(f)->enc;
    const int32_t H = c->enc_heads, K = c->ref_points;
    mtan_tensor score = mtan_new(f->tape, 1, batch->scores), query, key;
    *key_phi = embed_for(f, r, batch->time, head, *key_phi);
    if (!observed(c)) {
        mtan_op_score(f->tape, score, *key_phi, mtan_rows(folded_of(f)->enc.score, head * K, K), 0);
        return score;
    }
    *query_phi = embed_for(f, r, batch->point, head, *query_phi);
    query = project(f, *query_phi, r->query, H, head, 1);
    key = project(f, *key_phi, r->key, H, head, 0);
    mtan_op_scale(f->tape, query, inverse_root(c->embed / H));
    mtan_op_score(f->tape, score, key, query, 0);
    return score;
}

/* Reads the statistics from a stream's sums; a batch computes them from events by attention. */
static void read_gathered(const mtan_forward *f, mtan_tensor y) {
    const attention_sums *sums = (const attention_sums *)f->gathered;
    const int32_t D = varying(f->config), V = value_columns(f->config);
    for (int32_t i = 0; runs(f->tape) && i < y.rows * f->config->enc_heads; i++)
        for (int32_t d = 0; d < D; d++)
            sums_read(sums, mtan_data(f->tape, y) + (size_t)i * (size_t)V + d, (size_t)D, i % f->config->enc_heads,
                      i / f->config->enc_heads, f->config->statics + d);
}

/* The columns of the intensities among the statistics of a head. */
static mtan_tensor intensity_columns(const mtan_config *c, mtan_tensor of_head) {
    return mtan_columns(of_head, (c->statistics & MTAN_SPREAD ? 2 : 1) * varying(c), varying(c));
}

/* The statistics of one head. If only the variance network reads the intensity, it is computed together with the mean
 * and copied to its own tensor. */
static void attend_head(const mtan_forward *f, mtan_tensor own, mtan_tensor intensity, mtan_tensor point,
                        mtan_tensor score) {
    const mtan_config *c = f->config;
    const double rate = (double)statistics_rate(c);
    if (c->statistics) mtan_op_moments(f->tape, own, score, point, rate, c->statistics);
    else if (intensity.cols == 0) mtan_op_attend(f->tape, own, score);
    else {
        mtan_tensor both = mtan_new(f->tape, own.rows, own.cols + intensity.cols);
        mtan_op_moments(f->tape, both, score, point, rate, MTAN_INTENSITY);
        mtan_op_copy(f->tape, own, mtan_columns(both, 0, own.cols));
        mtan_op_copy(f->tape, intensity, mtan_columns(both, own.cols, intensity.cols));
    }
}

/* Local statistics of all heads, (R, H V); as published, only the interpolated values. Also the intensities, if the
 * variance is learned. */
static mtan_tensor interpolate_events(const mtan_forward *f, mtan_tensor *intensity) {
    const mtan_config *c = f->config;
    const mtan_batch *batch = f->tape->batch;
    const mtan_tensor point = observed(c) ? batch->point : folded_of(f)->ref;
    const int32_t H = c->enc_heads, D = varying(c), V = value_columns(c);
    mtan_tensor y = mtan_new(f->tape, batch->rows, H * V), key_phi = nothing, query_phi = nothing;
    *intensity = mtan_new(f->tape, batch->rows, intensity_width(c));
    if (f->gathered) read_gathered(f, y);
    if (f->gathered && runs(f->tape) && intensity->cols > 0 && !c->statistics)
        sums_intensity((const attention_sums *)f->gathered, mtan_data(f->tape, *intensity));
    if (c->encoder == MTAN_RBF && !f->gathered)
        mtan_op_attend_rbf(f->tape, y, point, mtan_columns(folded_of(f)->enc.beta, 0, V));
    for (int32_t h = 0; h < H && c->encoder != MTAN_RBF; h++) {
        const mtan_tensor own = mtan_columns(y, h * V, V);
        const mtan_tensor of_head = intensity->cols > 0 ? mtan_columns(*intensity, h * D, D) : nothing;
        if (!f->gathered) attend_head(f, own, of_head, point, head_scores(f, h, &key_phi, &query_phi));
        if (c->statistics && of_head.cols > 0) mtan_op_copy(f->tape, of_head, intensity_columns(c, own));
    }
    return y;
}

/* (B, D) 1 where a record observes a channel. A stream's batch has no events, so its sums say which it has seen. */
static mtan_tensor seen_of(const mtan_forward *f) {
    const attention_sums *sums = (const attention_sums *)f->gathered;
    const mtan_tensor seen = f->tape->batch->seen;
    if (sums && runs(f->tape)) memcpy(mtan_data(f->tape, seen), sums->seen, count_of(seen) * sizeof(mtan_real));
    return mtan_columns(seen, f->config->statics, varying(f->config));
}

/* (B S, ...) summaries; for a stream, those that it has gathered. */
static mtan_tensor summary_of(const mtan_forward *f) {
    const attention_sums *sums = (const attention_sums *)f->gathered;
    const mtan_tensor summary = f->tape->batch->summary;
    for (int32_t i = 0; sums && summary.cols > 0 && runs(f->tape) && i < summary.rows; i++)
        summary_row(mtan_data(f->tape, summary) + (size_t)i * (size_t)summary.cols, f->config, sums->summary);
    return summary;
}

/* The part of the GRU's input that is the same at every step of a record: the bias and, where there are masks, their
 * share. */
static mtan_tensor gru_constant(const mtan_forward *f, mtan_tensor seen, int32_t direction) {
    const int32_t V = value_columns(f->config), M = mask_columns(f->config), H = f->config->enc_heads;
    const mtan_tensor g = folded_of(f)->enc.in[direction], b = folded_of(f)->enc.in_bias[direction];
    mtan_tensor of_record;
    if (M == 0) return b;
    of_record = mtan_new(f->tape, f->tape->batch->records, b.cols);
    if (in_int8(f)) linear(f->tape, of_record, seen, nothing, &b, folded_of(f)->enc.masks[direction], 0);
    else mtan_op_linear(f->tape, of_record, seen, mtan_columns(g, V, M), &b);
    for (int32_t h = 1; h < H && !in_int8(f); h++)
        mtan_op_linear_add(f->tape, of_record, seen, mtan_columns(g, h * (V + M) + V, M));
    return of_record;
}

/* The GRU's input of one direction, (R, 3N). In G the values of head h start at column h (V + M), its mask at
 * column h (V + M) + V. */
static gru_source encoder_source(const mtan_forward *f, mtan_tensor x, mtan_tensor seen, int32_t direction) {
    const gru_source from = {x,
                             folded_of(f)->enc.in[direction],
                             folded_of(f)->enc.values[direction],
                             gru_constant(f, seen, direction),
                             in_int8(f) ? 1 : f->config->enc_heads,
                             head_columns(f->config)};
    return from;
}

/* The states of the encoder's GRU, (R, N) or (R, 2N), and the intensities. */
static mtan_tensor encode(const mtan_forward *f, mtan_tensor *intensity) {
    const int32_t N = f->config->enc_hidden;
    const mtan_tensor x = interpolate_events(f, intensity), seen = seen_of(f);
    mtan_tensor hidden = mtan_new(f->tape, x.rows, directions(f->config) * N);
    for (int32_t d = 0; d < directions(f->config); d++) {
        const int32_t role = roles_of(f)->enc.gru[d];
        const gru_source from = encoder_source(f, x, seen, d);
        gru_on(f->tape, mtan_columns(hidden, d * N, N), &from, param(f, role + 1), bias(f, role + 3),
               folded_of(f)->enc.packed[d], 1, d);
    }
    return hidden;
}

/* y = x W^T + b with the layer's own parameters. */
static mtan_tensor layer(const mtan_forward *f, mtan_tensor x, int32_t role) {
    const mtan_tensor w = param(f, role), b = bias(f, role + 1);
    mtan_tensor y = mtan_new(f->tape, x.rows, w.rows);
    mtan_op_linear(f->tape, y, x, w, &b);
    return y;
}

/* Mean and log-variance of z from one network, (R, 2Z) (Q11). */
static mtan_tensor posterior(const mtan_forward *f, mtan_tensor hidden) {
    mtan_tensor x = layer(f, hidden, roles_of(f)->enc.mlp[0]);
    mtan_op_relu(f->tape, x);
    return layer(f, x, roles_of(f)->enc.mlp[1]);
}

/* ---- dropout in the head ---- */

/* Dropout of a layer of the head, in place. */
static void drop_layer(const mtan_forward *f, mtan_tensor x, int32_t hidden_layer) {
    mtan_tensor mask;
    if (f->dropout == 0) return;
    mask = mtan_new_constant(f->tape, x.rows, x.cols);
    if (runs(f->tape))
        f->tape->backend->mask(f->tape->batch, mtan_data(f->tape, mask), f->dropout, f->seed, f->step, mask.cols,
                               row_order(f->config), hidden_layer);
    mtan_op_dropout(f->tape, x, mask, f->dropout);
}

/* A head of one layer has no hidden units, so dropout applies to its input. */
static int32_t drops_input(const mtan_forward *f) {
    return f->dropout > 0 && head_layers(f->config) == 1;
}

/* The input of the head. With dropout it is a copy, because a backward pass may still need x. */
static mtan_tensor head_input(const mtan_forward *f, mtan_tensor x) {
    mtan_tensor y;
    if (!drops_input(f)) return x;
    y = mtan_new(f->tape, x.rows, x.cols);
    mtan_op_copy(f->tape, y, x);
    drop_layer(f, y, 0);
    return y;
}

/* ---- decoder ---- */

/* GRUs over z, side by side: (R S, count N). The second one runs backwards. */
static mtan_tensor grus_over(const mtan_forward *f, mtan_tensor x, const int32_t *roles, const gru_packed *packed,
                             int32_t count, int32_t N) {
    mtan_tensor hidden = mtan_new(f->tape, x.rows, count * N);
    for (int32_t d = 0; d < count; d++) {
        const gru_source from = {x, param(f, roles[d]), nothing, bias(f, roles[d] + 2), 1, 0};
        gru_on(f->tape, mtan_columns(hidden, d * N, N), &from, param(f, roles[d] + 1), bias(f, roles[d] + 3), packed[d],
               f->tape->batch->samples, d);
    }
    return hidden;
}

/* Attention weights of one head of the decoder: a block (queries, points) per record. */
static mtan_tensor decoder_weights(const mtan_forward *f, int32_t head, mtan_tensor *query_phi, mtan_tensor *key_phi) {
    const mtan_config *c = f->config;
    const mtan_batch *batch = f->tape->batch;
    const attention_roles *r = &roles_of(f)->dec;
    const int32_t K = c->ref_points;
    mtan_tensor weight;
    *query_phi = embed_for(f, r, batch->query, head, *query_phi);
    if (observed(c)) {
        mtan_tensor query = project(f, *query_phi, r->query, c->dec_heads, head, 1), key;
        *key_phi = embed_for(f, r, batch->point, head, *key_phi);
        key = project(f, *key_phi, r->key, c->dec_heads, head, 0);
        mtan_op_scale(f->tape, query, inverse_root(c->embed / c->dec_heads));
        weight = mtan_new(f->tape, 1, batch->pairs);
        mtan_op_score(f->tape, weight, query, key, 1);
    } else {
        const mtan_tensor score_bias = mtan_columns(folded_of(f)->dec.score_bias, head * K, K);
        weight = mtan_new(f->tape, batch->queries, K); /* the same blocks, as all records share the points */
        mtan_op_linear(f->tape, weight, *query_phi, mtan_rows(folded_of(f)->dec.score, head * K, K), &score_bias);
    }
    mtan_op_softmax_pairs(f->tape, weight);
    return weight;
}

/* Rows of the sequence in the order in which the decoder attends to them: grouped by record where records have points
 * of their own. */
static mtan_tensor by_record(const mtan_forward *f, mtan_tensor x) {
    mtan_tensor y;
    if (!observed(f->config)) return x;
    y = mtan_new(f->tape, x.rows, x.cols);
    mtan_op_regroup(f->tape, y, x);
    return y;
}

/* Repeats the rows of the sequence, (R, C), for every sample: (R S, C). */
static mtan_tensor for_samples(const mtan_forward *f, mtan_tensor x) {
    const int32_t S = f->tape->batch->samples;
    mtan_tensor y;
    if (S == 1) return x;
    y = mtan_new(f->tape, (int32_t)area(f->tape, x.rows, S), x.cols);
    for (int32_t s = 0; s < S; s++) {
        mtan_tensor own = mtan_rows(y, s, 1);
        own.rows = x.rows, own.stride = S * y.stride;
        mtan_op_copy(f->tape, own, x);
    }
    return y;
}

/* What the decoder reads at the queries, (Q S, ...). */
typedef struct decoder_view {
    mtan_tensor states;    /* (Q S, H 2N) of its GRU over z */
    mtan_tensor intensity; /* (Q S, H He D) of the encoder's He heads; no columns if the variance is fixed */
} decoder_view;

static decoder_view attend_states(const mtan_forward *f, mtan_tensor z, mtan_tensor intensity) {
    const mtan_config *c = f->config;
    const mtan_batch *batch = f->tape->batch;
    const int32_t C = state_width(c), I = intensity.cols, H = c->dec_heads,
                  rows = (int32_t)area(f->tape, batch->queries, batch->samples);
    const mtan_tensor states = by_record(f, grus_over(f, z, roles_of(f)->dec.gru, folded_of(f)->dec.packed, 2, C / 2));
    const mtan_tensor counted = I > 0 ? by_record(f, for_samples(f, intensity)) : nothing;
    const decoder_view v = {mtan_new(f->tape, rows, H * C), mtan_new(f->tape, rows, H * I)};
    mtan_tensor query_phi = nothing, key_phi = nothing;
    if (c->decoder == MTAN_RBF) {
        mtan_op_smooth(f->tape, v.states, observed(c) ? batch->point : folded_of(f)->ref, folded_of(f)->dec.beta,
                       states);
        return v;
    }
    for (int32_t h = 0; h < H; h++) {
        const mtan_tensor weight = decoder_weights(f, h, &query_phi, &key_phi);
        mtan_op_attend_values(f->tape, mtan_columns(v.states, h * C, C), weight, states);
        if (I > 0) mtan_op_attend_values(f->tape, mtan_columns(v.intensity, h * I, I), weight, counted);
    }
    return v;
}

/* The first layer after the attention, (Q S, ...). */
static mtan_tensor decode(const mtan_forward *f, mtan_tensor attended) {
    const mtan_config *c = f->config;
    mtan_tensor y;
    if (c->decoder == MTAN_RBF) return layer(f, first_head(c) ? head_input(f, attended) : attended, after_attention(f));
    if (first_head(c) && drops_input(f)) /* dropout comes between the two layers that are otherwise folded into one */
        return layer(f, head_input(f, layer(f, attended, roles_of(f)->dec.out)), roles_of(f)->head[0]);
    y = mtan_new(f->tape, attended.rows, folded_of(f)->dec.out.rows);
    mtan_op_linear(f->tape, y, attended, folded_of(f)->dec.out, &folded_of(f)->dec.out_bias);
    return y;
}

/* The decoder's deviations before softplus, (Q S, D). */
static mtan_tensor deviations(const mtan_forward *f, const decoder_view *v) {
    const int32_t role = roles_of(f)->variance[0], C = v->states.cols;
    const mtan_tensor w = param(f, role), b = bias(f, role + 1);
    mtan_tensor x = mtan_new(f->tape, v->states.rows, w.rows);
    mtan_op_linear(f->tape, x, v->states, mtan_columns(w, 0, C), &b);
    mtan_op_linear_add(f->tape, x, v->intensity, mtan_columns(w, C, v->intensity.cols));
    mtan_op_relu(f->tape, x);
    return layer(f, x, roles_of(f)->variance[1]);
}

/* The decoder's means and, where the variance is learned, deviations. */
static void reconstruct(const mtan_forward *f, mtan_tensor intensity, mtan_outputs *out) {
    const decoder_view v = attend_states(f, out->z, intensity);
    mtan_tensor x = decode(f, v.states);
    mtan_op_relu(f->tape, x);
    out->prediction = layer(f, x, roles_of(f)->dec.mlp[1]);
    if (v.intensity.cols > 0) out->deviation = deviations(f, &v);
}

/* ---- classes ---- */

static mtan_tensor head_layer(const mtan_forward *f, mtan_tensor x, int32_t i) {
    const mtan_tensor w = param(f, roles_of(f)->head[i]), b = bias(f, roles_of(f)->head[i] + 1);
    mtan_tensor y = mtan_new(f->tape, x.rows, w.rows);
    linear(f->tape, y, x, w, &b, folded_of(f)->head_packed[i], 0);
    return y;
}

/* The layers of the head after its first. */
static mtan_tensor finish_head(const mtan_forward *f, mtan_tensor x) {
    for (int32_t i = 1; i < head_layers(f->config); i++) {
        mtan_op_relu(f->tape, x);
        drop_layer(f, x, i - 1);
        x = head_layer(f, x, i);
    }
    return x;
}

static mtan_tensor head(const mtan_forward *f, mtan_tensor x) {
    return finish_head(f, head_layer(f, head_input(f, x), 0));
}

/* Input of the classifier of records: the last state of the sequence and, next to it, the summaries. */
static mtan_tensor last_of(const mtan_forward *f, mtan_tensor hidden, int32_t rows) {
    const mtan_tensor summary = summary_of(f);
    mtan_tensor y = mtan_new(f->tape, rows, hidden.cols + summary.cols);
    mtan_op_last(f->tape, mtan_columns(y, 0, hidden.cols), hidden);
    if (summary.cols > 0) mtan_op_copy(f->tape, mtan_columns(y, hidden.cols, summary.cols), summary);
    return y;
}

/* share * logits + the sums over the trees. The host evaluates the trees, on the summaries that it has computed. */
static mtan_tensor add_trees_of(const mtan_forward *f, mtan_tensor logits, mtan_tensor summary) {
    const uint32_t *at;
    mtan_tensor sums;
    if (f->config->trees == 0) return logits;
    at = f->model->offset + roles_of(f)->trees;
    sums = mtan_new_constant(f->tape, logits.rows, logits.cols);
    for (int32_t i = 0; runs(f->tape) && i < sums.rows; i++)
        tree_sums(mtan_data(f->tape, sums) + (size_t)i * (size_t)sums.stride, f->config,
                  mtan_data(f->tape, summary) + (size_t)i * (size_t)summary.stride, f->model->weights + at[1],
                  f->model->weights + at[2]);
    send_tensor(f->tape, sums);
    mtan_op_scale(f->tape, logits, runs(f->tape) ? (double)f->model->weights[at[0]] : 1);
    mtan_op_add(f->tape, logits, sums);
    return logits;
}

/* The logits of records from the states of a sequence. */
static mtan_tensor classify_last(const mtan_forward *f, mtan_tensor hidden, int32_t rows) {
    return add_trees_of(f, head(f, last_of(f, hidden, rows)), f->tape->batch->summary);
}

/* ---- the models ---- */

static void enc_forward(const mtan_forward *f, mtan_outputs *out) {
    mtan_tensor intensity;
    const mtan_tensor hidden = encode(f, &intensity);
    const int32_t whole = f->config->classify == MTAN_CLASSIFY_RECORD;
    out->logits = whole ? classify_last(f, hidden, f->tape->batch->records) : head(f, hidden);
}

static void full_forward(const mtan_forward *f, mtan_outputs *out) {
    const mtan_config *c = f->config;
    const mtan_batch *batch = f->tape->batch;
    mtan_tensor intensity;
    out->posterior = posterior(f, encode(f, &intensity));
    if (!(f->wanted & (MTAN_WANT_LOGITS | MTAN_WANT_PREDICTION))) return;
    out->z = mtan_new(f->tape, f->noise.rows, c->latent);
    mtan_op_sample(f->tape, out->z, out->posterior, f->noise);
    if (f->wanted & MTAN_WANT_LOGITS) {
        if (c->classify == MTAN_CLASSIFY_TIME)
            out->logits = finish_head(f, decode(f, attend_states(f, out->z, nothing).states));
        if (c->classify == MTAN_CLASSIFY_RECORD)
            out->logits = classify_last(
                f, grus_over(f, out->z, &roles_of(f)->cls_gru, &folded_of(f)->cls_packed, 1, c->enc_hidden),
                (int32_t)area(f->tape, batch->records, batch->samples));
    }
    if (f->wanted & MTAN_WANT_PREDICTION) reconstruct(f, intensity, out);
}

/* Heads differ in their scores only, so this runs the attention of one head and reads off its weights. */
static void mtand_attention(const mtan_forward *f, int32_t head_index, int32_t channel, mtan_real *weight) {
    const mtan_batch *batch = f->tape->batch;
    mtan_tensor t[5], key_phi = nothing, query_phi = nothing;
    if (channel < f->config->statics) { /* static: attention leaves it out */
        if (runs(f->tape)) host_kernels(f->tape)->fill(weight, (size_t)batch->scores, 0);
        return;
    }
    if (f->config->encoder == MTAN_RBF) {
        const mtan_tensor beta = folded_of(f)->enc.beta, query = observed(f->config) ? batch->point : folded_of(f)->ref;
        fetch_tensor(f->tape, beta);
        if (runs(f->tape))
            host_kernels(f->tape)->rbf_weights(batch, weight, mtan_data(f->tape, query),
                                               mtan_data(f->tape, batch->time), mtan_data(f->tape, beta), channel);
        return;
    }
    t[0] = mtan_new(f->tape, batch->rows, varying(f->config));
    t[1] = head_scores(f, head_index, &key_phi, &query_phi);
    attend_buffers(f->tape, t);
    attend(f->tape, t);
    for (int32_t i = 1; i < 4; i++) fetch_tensor(f->tape, t[i]);
    if (runs(f->tape))
        host_kernels(f->tape)->attend_weights(batch, weight, mtan_data(f->tape, t[1]), mtan_data(f->tape, t[2]),
                                              mtan_data(f->tape, t[3]), attended_at(f->config, channel));
}

/* ---- streams: attention from running sums at all reference points ---- */

/* Points the sums at the weights of the time embedding and at the knots. The caller sets query, or point and beta. */
static void sums_weights(attention_sums *s, const mtan_forward *f) {
    const attention_roles *r = &roles_of(f)->enc;
    const int32_t role[4] = {r->linear, r->linear + 1, r->periodic, r->periodic + 1};
    if (f->config->values != MTAN_VALUES_PLAIN) s->knots = mtan_data(f->tape, param(f, roles_of(f)->knots));
    if (f->config->encoder == MTAN_RBF || f->config->embedding != MTAN_EMBED_LEARNED) return;
    for (int32_t i = 0; i < 4; i++) s->embedding[i] = mtan_data(f->tape, param(f, role[i]));
}

/* The size of attention_sums in a stream's memory: the same on every CPU, so that a PC can compute the memory that a
 * board needs. */
enum { SUMS_BYTES = 256 };
typedef char sums_fit[sizeof(attention_sums) <= SUMS_BYTES ? 1 : -1];

static void mtand_forget(void *gathered) {
    sums_clear((attention_sums *)gathered);
}

static void mtand_gather(void *gathered, const mtan_event *event) {
    gather_event((attention_sums *)gathered, event);
}

/* Records' own points are refused: their number, and so that of the sums, would change with every observation. */
static void *mtand_gather_start(const mtan_forward *f) {
    attention_sums laid, *s;
    if (observed(f->config)) fail(f->tape, MTAN_ERR_CONFIG);
    s = (attention_sums *)(void *)mtan_new_ints(f->tape, SUMS_BYTES / sizeof(int32_t));
    sums_layout(f->tape, &laid, f->model, f->config->ref_points, 1);
    if (!s) return NULL;
    *s = laid;
    sums_weights(s, f);
    s->query = mtan_data(f->tape, folded_of(f)->enc.score);
    s->point = mtan_data(f->tape, folded_of(f)->ref);
    s->beta = mtan_data(f->tape, folded_of(f)->enc.beta);
    mtand_forget(s);
    return s;
}

/* ---- small memory ----
 * Workspace is released after every step, so that the peak is that of one block of points. The weights are read where
 * they lie, as reals or int8. Nothing is folded: U and W_ih are applied one after the other, in place of G. */

/* The int8 rows of a weight matrix, from row `first` on; null if the matrix holds reals. */
static const int8_t *rows_of(const mtan_forward *f, int32_t weight, int32_t first) {
    const mtan_model *model = f->model;
    if (!model->rows || model->row0[weight] == MTAN_NO_ROWS) return NULL;
    return model->rows + model->row0[weight] + (size_t)first * (size_t)f->params->slots[weight].cols;
}

/* y = x W^T + b with as many rows of W as y has columns, from `first` on */
static void small_linear(const mtan_forward *f, mtan_tensor y, mtan_tensor x, int32_t weight, int32_t first,
                         mtan_tensor b) {
    const int8_t *rows = rows_of(f, weight, first);
    if (!rows) {
        mtan_op_linear(f->tape, y, x, mtan_rows(param(f, weight), first, y.cols), &b);
        return;
    }
    mtan_op_copy(f->tape, y, b);
    if (runs(f->tape))
        f->tape->backend->product_nt_int8(mtan_data(f->tape, y), (size_t)y.stride, mtan_data(f->tape, x),
                                          (size_t)x.stride, rows, f->model->weights + f->model->offset[weight] + first,
                                          y.rows, y.cols, x.cols, 1);
}

/* y = x W with as many rows of W as x has columns, from `first` on. May overwrite x. */
static void small_matmul(const mtan_forward *f, mtan_tensor y, mtan_tensor x, int32_t weight, int32_t first) {
    const int8_t *rows = rows_of(f, weight, first);
    const mtan_real *scale = f->model->weights + f->model->offset[weight] + first;
    if (!rows) {
        mtan_op_matmul(f->tape, y, x, mtan_rows(param(f, weight), first, x.cols));
        return;
    }
    for (int32_t i = 0; runs(f->tape) && i < x.cols; i++)
        f->tape->backend->scale(mtan_data(f->tape, x) + i, (size_t)x.stride, x.rows, 1, scale[i]);
    if (runs(f->tape))
        f->tape->backend->product_nn_int8(mtan_data(f->tape, y), (size_t)y.stride, mtan_data(f->tape, x),
                                          (size_t)x.stride, rows, y.rows, y.cols, x.cols, 0);
}

static mtan_tensor small_layer(const mtan_forward *f, mtan_tensor x, int32_t weight, int32_t bias_of) {
    const mtan_tensor y = mtan_new_constant(f->tape, x.rows, f->params->slots[weight].rows);
    small_linear(f, y, x, weight, 0, bias(f, bias_of));
    return y;
}

/* A of every head at these points, as fold_scores makes it. */
static void small_scores(const mtan_forward *f, mtan_tensor score, mtan_tensor point) {
    const attention_roles *r = &roles_of(f)->enc;
    const int32_t P = point.rows, H = f->config->enc_heads, dk = f->config->embed / H;
    mtan_tensor phi = nothing;
    for (int32_t h = 0; h < H; h++) {
        const mtan_tensor side = mtan_new_constant(f->tape, P, dk);
        phi = embed_for(f, r, point, h, phi);
        small_linear(f, side, phi, r->query, h * dk, mtan_columns(bias(f, r->query + 1), h * dk, dk));
        mtan_op_scale(f->tape, side, inverse_root(dk));
        small_matmul(f, mtan_rows(score, h * P, P), side, r->key, h * dk);
    }
}

/* Sets what the scores need at `point`: A or, for RBF, only the points and the bandwidths of the channels. */
static void small_points(const mtan_forward *f, attention_sums *s, mtan_tensor point) {
    const mtan_config *c = f->config;
    mtan_tensor score;
    size_t top;
    s->point = mtan_data(f->tape, point);
    if (c->encoder == MTAN_RBF) {
        const mtan_tensor beta = mtan_new_constant(f->tape, 1, c->channels);
        mtan_op_softplus(f->tape, beta, mtan_columns(bias(f, roles_of(f)->enc.bandwidth), 0, c->channels));
        s->beta = mtan_data(f->tape, beta);
        return;
    }
    score = mtan_new_constant(f->tape, (int32_t)area(f->tape, c->enc_heads, point.rows), c->embed);
    top = f->tape->top;
    small_scores(f, score, point);
    f->tape->top = top;
    s->query = mtan_data(f->tape, score);
}

/* Local statistics and masks of one point, as the layer after the attention reads them: (1, H (V + M)). */
static mtan_tensor small_values(const mtan_forward *f, const attention_sums *s, int32_t point) {
    const int32_t D = varying(f->config), H = f->config->enc_heads, V = value_columns(f->config),
                  all = head_columns(f->config);
    const mtan_tensor x = mtan_new_constant(f->tape, 1, H * all);
    for (int32_t i = 0; runs(f->tape) && i < H * D; i++) {
        mtan_real *out = mtan_data(f->tape, x) + (size_t)(i / D * all + i % D);
        const int32_t channel = f->config->statics + i % D;
        sums_read(s, out, (size_t)D, i / D, point, channel);
        if (all > V) out[V] = s->seen[channel];
    }
    return x;
}

/* hidden = GRU(values of a point, hidden); first: hidden is zero */
static void small_step(const mtan_forward *f, const attention_sums *s, mtan_tensor hidden, int32_t point,
                       int32_t first) {
    const size_t top = f->tape->top;
    const int32_t N = hidden.cols, gru = roles_of(f)->enc.gru[0], out = roles_of(f)->enc.out;
    const mtan_tensor gx = small_layer(f, small_layer(f, small_values(f, s, point), out, out + 1), gru, gru + 2);
    const mtan_tensor gh = mtan_new_constant(f->tape, 1, 3 * N);
    if (first) mtan_op_copy(f->tape, gh, bias(f, gru + 3));
    else small_linear(f, gh, hidden, gru + 1, 0, bias(f, gru + 3));
    if (runs(f->tape)) {
        mtan_real *h = mtan_data(f->tape, hidden);
        f->tape->backend->gates_forward(h, (size_t)N, mtan_data(f->tape, gx), (size_t)(3 * N), NULL,
                                        mtan_data(f->tape, gh), first ? NULL : h, (size_t)N, 1, N);
    }
    f->tape->top = top;
}

/* Attention at points first .. first + count - 1, and the GRU's steps over them. record is null when counting. */
static void small_block(const mtan_forward *f, const mtan_record *record, mtan_tensor hidden, int32_t first,
                        int32_t count) {
    const size_t top = f->tape->top;
    const mtan_tensor point = mtan_new_constant(f->tape, count, 1);
    attention_sums sums;
    sums_layout(f->tape, &sums, f->model, count, 0);
    fill_reference(f, point, first);
    sums_weights(&sums, f);
    small_points(f, &sums, point);
    if (runs(f->tape)) {
        sums_clear(&sums);
        for (int32_t i = 0; i < record->n_events; i++) gather_event(&sums, &record->events[i]);
    }
    for (int32_t k = 0; k < count; k++) small_step(f, &sums, hidden, k, first + k == 0);
    f->tape->top = top;
}

/* Memory must not grow with the record, and boards rarely need to sort. */
static void small_summary(const mtan_forward *f, mtan_tensor row, const mtan_record *record) {
    const size_t top = f->tape->top;
    channel_summary *channel = new_summaries(f->tape, f->config);
    if (row.cols > 0 && runs(f->tape)) {
        const int32_t ordered = count_ordered(record->events, record->n_events) >= 0;
        clear_summaries(channel, f->config);
        for (int32_t n = 0, i = -1; n < record->n_events; n++) {
            i = next_in_time(record, ordered, n, i);
            summary_add(summary_at(channel, f->config, record->events[i].channel), f->config,
                        (double)record->events[i].time, (double)record->events[i].value);
        }
        summary_row(mtan_data(f->tape, row), f->config, channel);
    }
    f->tape->top = top;
}

/* The logits, on a tape that counts (record null) or runs. */
static mtan_tensor enc_small(const mtan_forward *f, const mtan_record *record, int32_t points) {
    const mtan_config *c = f->config;
    const int32_t N = c->enc_hidden, W = summary_width(c);
    const mtan_tensor read = mtan_new_constant(f->tape, 1, N + W), hidden = mtan_columns(read, 0, N);
    mtan_tensor x;
    for (int32_t k = 0; k < c->ref_points; k += points)
        small_block(f, record, hidden, k, c->ref_points - k < points ? c->ref_points - k : points);
    small_summary(f, mtan_columns(read, N, W), record);
    x = small_layer(f, read, roles_of(f)->head[0], roles_of(f)->head[0] + 1);
    for (int32_t i = 1; i < head_layers(c); i++) {
        mtan_op_relu(f->tape, x);
        x = small_layer(f, x, roles_of(f)->head[i], roles_of(f)->head[i] + 1);
    }
    return add_trees_of(f, x, mtan_columns(read, N, W));
}

#define MTAND_TRAITS (MTAN_HAS_POINTS | MTAN_ATTENDS | MTAN_ON_DEVICE | MTAN_IN_INT8)

/* A build with MTAN_SMALL_ONLY, for boards, runs mtan_small_classify alone: the linker can drop everything else. */
#ifdef MTAN_SMALL_ONLY
#define MTAND_RUN(function) .forward = NULL
#else
#define MTAND_RUN(function)                                                                                            \
    .init = mtand_init, .lay_fold = mtand_lay_fold, .fold = mtand_fold, .forward = function,                           \
    .attention = mtand_attention, .gather_start = mtand_gather_start, .gather = mtand_gather, .forget = mtand_forget
#endif

static const mtan_architecture mtand_enc = {
    .name = "mtand-enc",
    .roles = sizeof(mtand_roles) / sizeof(int32_t),
    .folded = sizeof(mtand_folded) / sizeof(mtan_tensor),
    .traits = MTAND_TRAITS,
    .check = mtand_check,
    .params = mtand_params,
    MTAND_RUN(enc_forward),
    .small = enc_small,
};

static const mtan_architecture mtand_full = {
    .name = "mtand-full",
    .roles = sizeof(mtand_roles) / sizeof(int32_t),
    .folded = sizeof(mtand_folded) / sizeof(mtan_tensor),
    .traits = MTAND_TRAITS | MTAN_READS_TIMES | MTAN_USES_ALPHA | MTAN_HAS_VARIANCE,
    .check = mtand_check,
    .params = mtand_params,
    MTAND_RUN(full_forward),
};

/* ==== 12. Prediction ============================================================================================
 * A predictor's block holds the folded weights, then one workspace. Init folds the weights in that workspace, and every
 * call runs the model in it. */

static mtan_status check_bounds(const mtan_bounds *bounds) {
    if (!bounds) return MTAN_ERR_NULL;
    if (bounds->records < 1 || bounds->events < 0 || bounds->times < 0) return MTAN_ERR_INPUT;
    if (bounds->records > LARGEST_DIMENSION || bounds->events > LARGEST_DIMENSION || bounds->times > LARGEST_DIMENSION)
        return MTAN_ERR_SIZE;
    return MTAN_OK;
}

static mtan_status check_model(const mtan_model *model) {
    if (!model || !model->backend || !model->weights) return MTAN_ERR_NULL;
    if (model->precision != MTAN_REAL && (model->precision != MTAN_INT8 || !has_trait(&model->config, MTAN_IN_INT8)))
        return MTAN_ERR_CONFIG;
    if (model->backend->device && !has_trait(&model->config, MTAN_ON_DEVICE)) return MTAN_ERR_CONFIG;
    return mtan_config_check(&model->config);
}

/* Predictors and saving need every weight as a real: a model with int8 rows in place has only their scales as reals. */
static mtan_status check_reals(const mtan_model *model) {
    const mtan_status status = check_model(model);
    return status == MTAN_OK && model->rows ? MTAN_ERR_CONFIG : status;
}

/* The request for one chunk of prediction: n records, at most bounds.records, with all their samples. */
static batch_request predict_request(const mtan_predictor *p, const mtan_record *records, int32_t n,
                                     queries_from queries) {
    const mtan_config *c = &p->model->config;
    batch_request q;
    q.config = c;
    q.bounds = &p->bounds;
    q.records = records;
    q.n = n;
    q.samples = has_decoder(c) && c->predict_samples > 0 ? c->predict_samples : 1;
    q.queries = queries;
    q.gathered = NULL;
    q.checked = 0;
    q.knots = knots_of(p->model);
    return q;
}

/* Whether there is a decoder that predicts values. */
static int32_t interpolates(const mtan_config *c) {
    return has_decoder(c) && c->classify != MTAN_CLASSIFY_TIME;
}

/* Where the queries of a classification come from. */
static queries_from class_queries(const mtan_config *c) {
    return c->classify == MTAN_CLASSIFY_TIME || (observed(c) && !reads_times(c)) ? QUERY_TIMES : QUERY_NONE;
}

/* Builds the batch of one chunk and computes the `wanted` outputs. For classes, `row` (S, O) is scratch in which the
 * samples of one row are gathered. */
static mtan_outputs predict_forward(const mtan_predictor *p, mtan_tape *tape, mtan_batch *batch, const batch_request *q,
                                    uint32_t wanted, mtan_tensor *row) {
    const noise_source noise = {p->seed, 0, p->model->config.predict_samples == 0};
    model_run m;
    model_start(&m, p->model, tape);
    batch_build(tape, batch, q);
    batch_send(tape, 0);
    if (row) *row = mtan_new_constant(tape, q->samples, mtan_config_outputs(q->config));
    return model_forward(&m, q, noise, wanted);
}

/* Counts the folded weights, and the largest workspace that folding or any call of a predictor needs. */
static mtan_status predictor_counts(const mtan_model *model, const mtan_bounds *bounds, size_t *fold, size_t *work) {
    mtan_predictor p;
    mtan_tape tape = tape_start(model->backend, NULL, 0, 0);
    mtan_tensor row;
    mtan_batch batch;
    batch_request q;
    model_run m;
    memset(&p, 0, sizeof p);
    p.model = model;
    p.bounds = *bounds;
    model_start(&m, model, &tape);
    *fold = tape.fold_top;
    model_fold(&m);
    *work = tape.peak;
    if (tape.status != MTAN_OK) return tape.status;
    tape = tape_start(model->backend, NULL, 0, 0);
    q = predict_request(&p, NULL, bounds->records, class_queries(&model->config));
    predict_forward(&p, &tape, &batch, &q, MTAN_WANT_LOGITS, &row);
    *work = tape.peak > *work ? tape.peak : *work;
    if (tape.status != MTAN_OK || !interpolates(&model->config)) return tape.status;
    tape = tape_start(model->backend, NULL, 0, 0);
    q = predict_request(&p, NULL, 1, QUERY_TIMES);
    predict_forward(&p, &tape, &batch, &q, MTAN_WANT_PREDICTION, NULL);
    *work = tape.peak > *work ? tape.peak : *work;
    return tape.status;
}

/* A member of an ensemble, stored in the block of its predictor. Each takes MEMBER_BYTES, the same on every CPU. */
typedef struct ensemble_member {
    mtan_model model;
    mtan_predictor predictor;
} ensemble_member;

enum { MEMBER_BYTES = 2048 };
typedef char member_fits[sizeof(ensemble_member) <= MEMBER_BYTES ? 1 : -1];

static ensemble_member *member_at(const mtan_predictor *p, int32_t index) {
    return (ensemble_member *)(void *)((char *)p->members + (size_t)index * MEMBER_BYTES);
}

/* The predictor for results that are not averaged (curves, latent states, attention): an ensemble's first member, or
 * the predictor itself. */
static mtan_predictor *first_of(mtan_predictor *p) {
    if (!p->members) return p;
    member_at(p, 0)->predictor.seed = p->seed;
    return &member_at(p, 0)->predictor;
}

/* Reals for the average and for one member's own result: rows of class probabilities, or curves of means and
 * variances. */
static size_t result_count(const mtan_config *c, const mtan_bounds *bounds) {
    const size_t times = (size_t)(bounds->times > 0 ? bounds->times : 1), records = (size_t)bounds->records;
    const size_t rows = c->classify == MTAN_CLASSIFY_TIME ? count_product(records, times) : records;
    const size_t classes =
        c->classify == MTAN_CLASSIFY_NONE ? 0 : count_product(2 * (size_t)mtan_config_outputs(c), rows);
    const size_t curves = interpolates(c) ? count_product(4 * (size_t)c->channels, times) : 0;
    return align_count(classes > curves ? classes : curves);
}

/* Sizes in reals of the parts of a predictor's block, in this order: members, folded weights (the size is that of one
 * member), one workspace, results. */
typedef struct predictor_layout {
    size_t members, fold, work, result, total;
} predictor_layout;

static mtan_status lay_predictor(const mtan_model *model, const mtan_bounds *bounds, predictor_layout *l) {
    const size_t k = (size_t)members_of(&model->config);
    mtan_model first;
    mtan_status status;
    mtan_model_member(&first, model, 0);
    status = predictor_counts(&first, bounds, &l->fold, &l->work);
    if (status != MTAN_OK) return status;
    l->members = k > 1 ? k * (MEMBER_BYTES / sizeof(mtan_real)) : 0;
    l->result = k > 1 ? result_count(&model->config, bounds) : 0;
    l->total = count_sum(count_sum(l->members, count_product(k, l->fold)), count_sum(l->work, l->result));
    return MTAN_OK;
}

mtan_status mtan_predictor_size(const mtan_model *model, const mtan_bounds *bounds, size_t *bytes) {
    predictor_layout l;
    mtan_status status = check_reals(model);
    if (status == MTAN_OK) status = check_bounds(bounds);
    if (status != MTAN_OK) return status;
    if (!bytes) return MTAN_ERR_NULL;
    if (!architecture_of(&model->config)->forward) return MTAN_ERR_CONFIG;
    status = lay_predictor(model, bounds, &l);
    return status == MTAN_OK ? bytes_for(l.total, bytes) : status;
}

/* Initialises the predictor of a single model with the given fold space and workspace, and folds the weights. */
static mtan_status fold_predictor(mtan_predictor *predictor, const mtan_model *model, const mtan_bounds *bounds,
                                  mtan_real *fold, mtan_real *work, size_t work_count) {
    mtan_tape tape;
    model_run m;
    memset(predictor, 0, sizeof *predictor);
    predictor->model = model;
    predictor->bounds = *bounds;
    predictor->fold = fold;
    predictor->work = work;
    predictor->work_count = work_count;
    tape = tape_start(model->backend, work, work_count, 0);
    tape.fold = fold;
    model_start(&m, model, &tape);
    model_fold(&m);
    return tape.status == MTAN_OK ? device_status(model->backend, fold) : tape.status;
}

mtan_status mtan_predictor_init(mtan_predictor *predictor, const mtan_model *model, const mtan_bounds *bounds,
                                void *memory, size_t bytes) {
    const int32_t k = model ? members_of(&model->config) : 1;
    mtan_real *fold, *work;
    predictor_layout l;
    size_t needed;
    mtan_status status = mtan_predictor_size(model, bounds, &needed);
    if (status != MTAN_OK) return status;
    if (!predictor || !memory) return MTAN_ERR_NULL;
    if (bytes < needed) return MTAN_ERR_MEMORY;
    lay_predictor(model, bounds, &l);
    fold = align_memory(memory) + l.members;
    work = fold + (size_t)k * l.fold;
    if (k == 1) return fold_predictor(predictor, model, bounds, fold, work, l.work);
    memset(predictor, 0, sizeof *predictor);
    predictor->model = model;
    predictor->bounds = *bounds;
    predictor->fold = fold, predictor->work = work, predictor->work_count = l.work;
    predictor->members = align_memory(memory);
    predictor->result = work + l.work, predictor->result_count = l.result;
    for (int32_t i = 0; i < k && status == MTAN_OK; i++) {
        ensemble_member *m = member_at(predictor, i);
        mtan_model_member(&m->model, model, i);
        status = fold_predictor(&m->predictor, &m->model, bounds, fold + (size_t)i * l.fold, work, l.work);
    }
    return status;
}

static mtan_tape predict_tape(const mtan_predictor *p) {
    mtan_tape tape = tape_start(p->model->backend, p->work, p->work_count, 0);
    tape.fold = p->fold;
    return tape;
}

/* The status of a run that computed x, which must be on the host. A result that is not finite is MTAN_ERR_NUMERIC. */
static mtan_status result_status(const mtan_tape *tape, mtan_tensor x) {
    for (int32_t r = 0; tape->status == MTAN_OK && r < x.rows; r++)
        if (!all_finite(mtan_data(tape, mtan_rows(x, r, 1)), (size_t)x.cols)) return MTAN_ERR_NUMERIC;
    return tape->status;
}

/* Turns rows of logits into predictions in place: softmax for classes, sigmoid for labels, nothing for numbers. */
static void read_logits(const mtan_backend *k, const mtan_config *c, mtan_real *x, int32_t rows) {
    const int32_t O = mtan_config_outputs(c);
    if (c->task == MTAN_TASK_CLASSES) k->softmax_forward(x, rows, O);
    if (c->task == MTAN_TASK_LABELS) k->map(MTAN_SIGMOID, x, x, (size_t)rows * (size_t)O);
}

static void swap_down(mtan_real *x) {
    const mtan_real low = x[0];
    if (x[1] < low) x[0] = x[1], x[1] = low;
}

/* Quantiles are learned separately and may cross. Sorting them never makes them worse (Chernozhukov et al., 2010). */
static void order_quantiles(const mtan_config *c, mtan_real *x) {
    for (int32_t i = 0; c->interval > 0 && i < c->classes; i++, x += 3) {
        swap_down(x), swap_down(x + 1);
        swap_down(x);
    }
}

/* One row of predictions from S rows of logits, which may be overwritten. For labels, MTAN_MEAN_LOG_PROBABILITY needs
 * only the mean logit: the means of log p and of log(1 - p), normalised to sum to one, give sigmoid(mean logit). */
static void combine_samples(const mtan_backend *k, const mtan_config *c, mtan_real *out, mtan_real *logits,
                            int32_t samples) {
    const int32_t O = mtan_config_outputs(c), logs = c->rule == MTAN_MEAN_LOG_PROBABILITY;
    if (!logs || c->task != MTAN_TASK_LABELS) read_logits(k, c, logits, samples);
    if (logs && c->task == MTAN_TASK_CLASSES) k->map(MTAN_LOG, logits, logits, (size_t)samples * (size_t)O);
    k->fill(out, (size_t)O, 0);
    k->add(out, 0, logits, (size_t)O, samples, O);
    k->scale(out, (size_t)O, 1, O, 1 / (mtan_real)samples);
    if (logs) read_logits(k, c, out, 1);
    order_quantiles(c, out);
}

/* Replaces the first sample of every row by the prediction over the row's S samples. row (S, O) is scratch. */
static void classify_rows(const mtan_tape *tape, const mtan_config *c, mtan_tensor logits, mtan_tensor row) {
    const mtan_backend *k = host_kernels(tape);
    const mtan_batch *batch = tape->batch;
    const size_t O = (size_t)logits.cols;
    mtan_real *samples = mtan_data(tape, row), *x = mtan_data(tape, logits);
    for (int32_t b = 0; b < batch->records; b++)
        for (int32_t i = 0; i < class_rows(batch, row_order(c), b); i++) {
            for (int32_t s = 0; s < batch->samples; s++)
                k->copy(samples + (size_t)s * O, O, x + class_row(batch, row_order(c), b, i, s) * O, O, 1, logits.cols);
            combine_samples(k, c, x + class_row(batch, row_order(c), b, i, 0) * O, samples, batch->samples);
        }
}

/* Copies one chunk's results to `out` in the caller's order of records, the first `samples` of every row:
 * (rows, samples, O). Returns the end of the results. */
static mtan_real *deliver_classes(const mtan_tape *tape, const mtan_config *c, mtan_tensor logits, int32_t samples,
                                  mtan_real *out) {
    const mtan_batch *batch = tape->batch;
    const size_t O = (size_t)logits.cols;
    for (int32_t r = 0; r < batch->records; r++) {
        int32_t b = 0;
        while (batch->order[b] != r) b++;
        for (int32_t i = 0; i < class_rows(batch, row_order(c), b); i++)
            for (int32_t s = 0; s < samples; s++, out += O)
                memcpy(out, mtan_data(tape, logits) + class_row(batch, row_order(c), b, i, s) * O, O * sizeof *out);
    }
    return out;
}

/* For more records than fit one call: builds the batch of every chunk before any chunk runs, so that nothing is written
 * unless every record is valid. */
static mtan_status check_chunks(const mtan_predictor *p, const mtan_record *records, int32_t n) {
    const mtan_config *c = &p->model->config;
    for (int32_t done = 0, m; done < n; done += m) {
        m = n - done < p->bounds.records ? n - done : p->bounds.records;
        const batch_request q = predict_request(p, records + done, m, class_queries(c));
        mtan_tape tape = predict_tape(p);
        mtan_batch batch;
        batch_build(&tape, &batch, &q);
        if (tape.status != MTAN_OK) return tape.status;
        for (int32_t b = 0; has_decoder(c) && b < m; b++) {
            const mtan_record *r = &q.records[batch.order[b]];
            if (r->noise && r->n_noise < (int64_t)c->predict_samples * latent_steps(&batch, b) * c->latent)
                return MTAN_ERR_INPUT;
        }
    }
    return MTAN_OK;
}

/* Predicts one chunk with one model and advances *out past the results. `raw`: the logits of every sample. */
static mtan_status member_classes(const mtan_predictor *predictor, const batch_request *q, mtan_real **out,
                                  int32_t raw) {
    const mtan_config *c = &predictor->model->config;
    mtan_tape tape = predict_tape(predictor);
    mtan_batch batch;
    mtan_tensor row;
    const mtan_tensor logits = predict_forward(predictor, &tape, &batch, q, MTAN_WANT_LOGITS, &row).logits;
    mtan_status status;
    fetch_tensor(&tape, logits);
    if ((status = result_status(&tape, logits)) != MTAN_OK) return status;
    if (!raw) classify_rows(&tape, c, logits, row);
    if ((status = result_status(&tape, logits)) != MTAN_OK) return status; /* samples may rule out every class */
    *out = deliver_classes(&tape, c, logits, raw ? batch.samples : 1, *out);
    return MTAN_OK;
}

/* The request to an ensemble, adapted to member `index`. */
static batch_request member_request(const mtan_predictor *p, const batch_request *q, void *const *gathered,
                                    int32_t index) {
    ensemble_member *m = member_at(p, index);
    batch_request own = *q;
    m->predictor.seed = p->seed;
    own.config = &m->model.config;
    own.knots = knots_of(&m->model);
    own.bounds = &m->predictor.bounds;
    if (gathered) own.gathered = gathered[index];
    return own;
}

/* Turns sums over the members into means. With `raw`, probabilities become logits that would give them; those of 0 and
 * 1 are kept finite. */
static void finish_classes(const mtan_config *c, mtan_real *sum, size_t n, int32_t raw) {
    const mtan_real least = (mtan_real)1e-37;
    for (size_t i = 0; i < n; i++) {
        const mtan_real p = sum[i] /= (mtan_real)members_of(c);
        if (!raw || c->task == MTAN_TASK_NUMBER) continue;
        sum[i] = real_log(p > least ? p : least);
        if (c->task == MTAN_TASK_LABELS) sum[i] -= real_log(1 - p > least ? 1 - p : least);
    }
}

/* Predicts one chunk, or a stream's gathered sums (one set per member), averages over the members and advances *out
 * past the results. */
static mtan_status classes_chunk(const mtan_predictor *p, const batch_request *q, void *const *gathered,
                                 mtan_real **out, int32_t raw) {
    const int32_t k = members_of(&p->model->config);
    mtan_real *sum = p->result, *one, *end;
    size_t n = 0;
    if (!p->members) {
        batch_request own = *q;
        if (gathered) own.gathered = gathered[0];
        return member_classes(p, &own, out, raw);
    }
    one = sum + p->result_count / 2;
    for (int32_t i = 0; i < k; i++) {
        const batch_request own = member_request(p, q, gathered, i);
        const mtan_status status = member_classes(&member_at(p, i)->predictor, &own, (end = one, &end), 0);
        if (status != MTAN_OK) return status;
        n = (size_t)(end - one);
        for (size_t j = 0; j < n; j++) sum[j] = i ? sum[j] + one[j] : one[j];
    }
    finish_classes(&p->model->config, sum, n, raw);
    memcpy(*out, sum, n * sizeof *sum);
    *out += n;
    return MTAN_OK;
}

static mtan_status classes_of(mtan_predictor *predictor, const mtan_record *records, int32_t n, mtan_real *out,
                              int32_t raw) {
    const mtan_config *c;
    mtan_status status = MTAN_OK;
    if (!predictor || (n > 0 && (!records || !out))) return MTAN_ERR_NULL;
    c = &predictor->model->config;
    if (n < 0) return MTAN_ERR_INPUT;
    if (c->classify == MTAN_CLASSIFY_NONE) return MTAN_ERR_CONFIG;
    if (n > predictor->bounds.records && (status = check_chunks(predictor, records, n)) != MTAN_OK) return status;
    for (int32_t done = 0, m; done < n && status == MTAN_OK; done += m) {
        m = n - done < predictor->bounds.records ? n - done : predictor->bounds.records;
        batch_request q = predict_request(predictor, records + done, m, class_queries(c));
        q.checked = n > predictor->bounds.records;
        status = classes_chunk(predictor, &q, NULL, &out, raw);
    }
    return status;
}

mtan_status mtan_predictor_classify(mtan_predictor *predictor, const mtan_record *records, int32_t n,
                                    mtan_real *probability) {
    return classes_of(predictor, records, n, probability, 0);
}

/* Many records, split into pieces of bounds.records: one call of a predictor for each. */
typedef struct spread {
    mtan_predictor *predictors;
    const mtan_record *records;
    const int32_t *rows;
    mtan_real *probability;
    int32_t n;
} spread;

static void spread_piece(void *argument, int32_t index, int32_t thread) {
    const spread *s = argument;
    mtan_predictor *p = &s->predictors[thread];
    const int32_t first = index * p->bounds.records, left = s->n - first;
    const size_t row = (size_t)(s->rows ? s->rows[first] : first);
    const mtan_status status =
        mtan_predictor_classify(p, s->records + first, left < p->bounds.records ? left : p->bounds.records,
                                s->probability + row * (size_t)mtan_config_outputs(&p->model->config));
    if (status != MTAN_OK && (p->status == MTAN_OK || index < p->failed)) p->status = status, p->failed = index;
}

static int32_t same_bounds(const mtan_bounds *a, const mtan_bounds *b) {
    return a->records == b->records && a->events == b->events && a->times == b->times;
}

mtan_status mtan_predictors_classify(mtan_predictor *predictors, int32_t threads, mtan_parallel_for parallel_for,
                                     void *context, const mtan_record *records, int32_t n, const int32_t *rows,
                                     mtan_real *probability) {
    spread s = {predictors, records, rows, probability, n};
    const mtan_predictor *first = predictors;
    const int32_t each = predictors ? predictors[0].bounds.records : 1;
    if (!predictors || !parallel_for || (n > 0 && (!records || !probability))) return MTAN_ERR_NULL;
    if (n < 0 || threads < 1) return MTAN_ERR_INPUT;
    for (int32_t t = 0; t < threads; t++) {
        const mtan_predictor *p = &predictors[t];
        if (!p->model || !same_bounds(&p->bounds, &predictors[0].bounds) ||
            mtan_config_outputs(&p->model->config) != mtan_config_outputs(&predictors[0].model->config))
            return MTAN_ERR_CONFIG;
        predictors[t].status = MTAN_OK;
    }
    parallel_for(context, n / each + (n % each > 0), spread_piece, &s);
    for (int32_t t = 1; t < threads; t++) {
        const mtan_predictor *p = &predictors[t];
        if (p->status != MTAN_OK && (first->status == MTAN_OK || p->failed < first->failed)) first = p;
    }
    return first->status;
}

mtan_status mtan_predictor_logits(mtan_predictor *predictor, const mtan_record *records, int32_t n, mtan_real *logits) {
    return classes_of(predictor, records, n, logits, 1);
}

/* Decodes one record, or a stream's gathered sums, at the record's query times. Outputs lie on the caller's tape. */
static mtan_status decode_one(mtan_predictor *p, const mtan_record *record, const void *gathered, mtan_tape *tape,
                              mtan_batch *batch, mtan_outputs *out) {
    mtan_status status;
    batch_request q;
    if (!interpolates(&p->model->config)) return MTAN_ERR_CONFIG;
    q = predict_request(p, record, 1, QUERY_TIMES);
    q.gathered = gathered;
    *tape = predict_tape(p);
    *out = predict_forward(p, tape, batch, &q, MTAN_WANT_PREDICTION, NULL);
    fetch_tensor(tape, out->prediction), fetch_tensor(tape, out->deviation);
    status = result_status(tape, out->prediction);
    return status == MTAN_OK ? result_status(tape, out->deviation) : status;
}

/* Mean and variance over S samples with stride `apart`. */
static double samples_mean(const mtan_real *x, int32_t samples, size_t apart) {
    double sum = 0;
    for (int32_t s = 0; s < samples; s++) sum += (double)x[(size_t)s * apart];
    return sum / samples;
}

static double samples_variance(const mtan_real *x, int32_t samples, size_t apart, double mean) {
    double squares = 0;
    for (int32_t s = 0; s < samples; s++)
        squares += ((double)x[(size_t)s * apart] - mean) * ((double)x[(size_t)s * apart] - mean);
    return squares / samples;
}

static mtan_status member_interpolate(mtan_predictor *predictor, const mtan_record *record, const void *gathered,
                                      mtan_real *mean, mtan_real *std, size_t *count) {
    const double least = predictor->model->config.noise_std;
    mtan_tape tape;
    mtan_batch batch;
    mtan_outputs out;
    const mtan_status status = decode_one(predictor, record, gathered, &tape, &batch, &out);
    if (status != MTAN_OK) return status;
    if (out.deviation.cols > 0)
        host_kernels(&tape)->map(MTAN_SOFTPLUS, mtan_data(&tape, out.deviation), mtan_data(&tape, out.deviation),
                                 count_of(out.deviation));
    for (size_t i = 0, n = (size_t)batch.queries * (size_t)batch.outputs; i < n; i++) {
        const mtan_real *x = mtan_data(&tape, out.prediction) + i;
        const double center = samples_mean(x, batch.samples, n);
        double variance = samples_variance(x, batch.samples, n, center);
        if (out.deviation.cols > 0)
            variance += samples_variance(mtan_data(&tape, out.deviation) + i, batch.samples, n, -least);
        mean[i] = (mtan_real)center;
        if (std) std[i] = (mtan_real)scalar_sqrt(variance);
    }
    *count = (size_t)batch.queries * (size_t)batch.outputs;
    return MTAN_OK;
}

/* Updates the mean and variance of members 0..i-1 to those of members 0..i. The variance of all members is the mean of
 * their variances plus the variance of their means. */
static void join_member(mtan_real *mean, mtan_real *variance, const mtan_real *m, const mtan_real *std, size_t n,
                        int32_t i) {
    for (size_t j = 0; j < n; j++) {
        const double old = i ? (double)mean[j] : 0, before = i ? (double)variance[j] : 0;
        const double away = (double)m[j] - old, own = (double)std[j] * (double)std[j], share = 1.0 / (i + 1);
        mean[j] = (mtan_real)(old + away * share);
        variance[j] = (mtan_real)((1 - share) * (before + share * away * away) + share * own);
    }
}

static mtan_status interpolate_one(mtan_predictor *p, const mtan_record *record, void *const *gathered, mtan_real *mean,
                                   mtan_real *std) {
    const size_t part = p->result_count / 4;
    mtan_real *all = p->result, *variance, *one, *deviation;
    mtan_status status = MTAN_OK;
    size_t n = 0;
    if (!p->members) return member_interpolate(p, record, gathered ? gathered[0] : NULL, mean, std, &n);
    variance = all + part, one = variance + part, deviation = one + part;
    for (int32_t i = 0; i < members_of(&p->model->config) && status == MTAN_OK; i++) {
        mtan_predictor *m = &member_at(p, i)->predictor;
        m->seed = p->seed;
        status = member_interpolate(m, record, gathered ? gathered[i] : NULL, one, deviation, &n);
        if (status == MTAN_OK) join_member(all, variance, one, deviation, n, i);
    }
    if (status != MTAN_OK) return status;
    memcpy(mean, all, n * sizeof *mean);
    for (size_t j = 0; std && j < n; j++) std[j] = (mtan_real)scalar_sqrt((double)variance[j]);
    return MTAN_OK;
}

mtan_status mtan_predictor_interpolate(mtan_predictor *predictor, const mtan_record *record, mtan_real *mean,
                                       mtan_real *std) {
    if (!predictor || !record || !mean) return MTAN_ERR_NULL;
    return interpolate_one(predictor, record, NULL, mean, std);
}

mtan_status mtan_predictor_curves(mtan_predictor *predictor, const mtan_record *record, mtan_real *samples) {
    mtan_tape tape;
    mtan_batch batch;
    mtan_outputs out;
    mtan_status status;
    if (!predictor || !record || !samples) return MTAN_ERR_NULL;
    if ((status = decode_one(first_of(predictor), record, NULL, &tape, &batch, &out)) != MTAN_OK) return status;
    memcpy(samples, mtan_data(&tape, out.prediction), count_of(out.prediction) * sizeof *samples);
    return MTAN_OK;
}

mtan_status mtan_predictor_latent(mtan_predictor *predictor, const mtan_record *record, mtan_real *mean,
                                  mtan_real *logvar) {
    const mtan_config *c;
    mtan_tape tape;
    mtan_batch batch;
    mtan_tensor x;
    batch_request q;
    mtan_status status;
    if (!predictor || !record || !mean) return MTAN_ERR_NULL;
    predictor = first_of(predictor);
    c = &predictor->model->config;
    if (!has_decoder(c)) return MTAN_ERR_CONFIG;
    q = predict_request(predictor, record, 1, class_queries(c));
    q.samples = 1;
    tape = predict_tape(predictor);
    x = predict_forward(predictor, &tape, &batch, &q, MTAN_WANT_POSTERIOR, NULL).posterior;
    fetch_tensor(&tape, x);
    if ((status = result_status(&tape, x)) != MTAN_OK) return status;
    for (int32_t k = 0; k < x.rows; k++) {
        const size_t Z = (size_t)c->latent;
        const mtan_real *row = mtan_data(&tape, mtan_rows(x, k, 1));
        memcpy(mean + (size_t)k * Z, row, Z * sizeof *mean);
        if (logvar) memcpy(logvar + (size_t)k * Z, row + Z, Z * sizeof *logvar);
    }
    return MTAN_OK;
}

mtan_status mtan_predictor_attention(mtan_predictor *predictor, const mtan_record *record, int32_t head,
                                     int32_t channel, mtan_real *weight) {
    const mtan_config *c;
    mtan_tape tape;
    mtan_batch batch;
    batch_request q;
    model_run m;
    if (!predictor || !record || !weight) return MTAN_ERR_NULL;
    predictor = first_of(predictor);
    c = &predictor->model->config;
    if (!architecture_of(c)->attention) return MTAN_ERR_CONFIG;
    if (head < 0 || head >= c->enc_heads || channel < 0 || channel >= c->channels) return MTAN_ERR_INPUT;
    q = predict_request(predictor, record, 1, class_queries(c));
    q.samples = 1;
    tape = predict_tape(predictor);
    model_start(&m, predictor->model, &tape);
    batch_build(&tape, &batch, &q);
    batch_send(&tape, 0);
    architecture_of(c)->attention(&m.forward, head, channel, weight);
    if (tape.status != MTAN_OK) return tape.status;
    return all_finite(weight, (size_t)batch.scores) ? MTAN_OK : MTAN_ERR_NUMERIC;
}

/* ==== 13. Streams and small memory ==============================================================================
 * A stream passes observations to the model's architecture, which accumulates them in memory of constant size. A
 * predictor continues from these sums. The small path is implemented by the architecture. */

/* ---- streams ---- */

static mtan_status check_stream(const mtan_model *model, int32_t window) {
    const mtan_status status = check_model(model);
    if (status != MTAN_OK) return status;
    if (!architecture_of(&model->config)->gather_start || model->backend->device) return MTAN_ERR_CONFIG;
    if (model->rows) return MTAN_ERR_CONFIG; /* a predictor refuses it, too */
    if (window < 0) return MTAN_ERR_INPUT;
    return window > LARGEST_DIMENSION ? MTAN_ERR_SIZE : MTAN_OK;
}

/* Takes workspace for the gathered sums of one model and returns them empty; null when counting. */
static void *start_gathering(mtan_tape *tape, const mtan_model *model, mtan_real *fold) {
    model_run m;
    tape->fold = fold;
    model_start(&m, model, tape);
    return architecture_of(&model->config)->gather_start(&m.forward);
}

/* Counts a stream's memory or, on a tape with a workspace, lays it out for the stream's predictor. An event takes three
 * reals in either build; eight bytes are reserved for a pointer. */
static void stream_layout(mtan_tape *tape, mtan_stream *s, const mtan_model *model, int32_t window) {
    const mtan_predictor *p = tape->work ? s->predictor : NULL;
    const int32_t k = members_of(&model->config);
    mtan_model first;
    mtan_model_member(&first, model, 0);
    s->gathered = (void **)(void *)mtan_data(tape, mtan_new_constant(tape, k, (int32_t)(8 / sizeof(mtan_real))));
    for (int32_t i = 0; i < k; i++) {
        const ensemble_member *m = p && p->members ? member_at(p, i) : NULL;
        void *sums = !p  ? start_gathering(tape, &first, NULL)
                     : m ? start_gathering(tape, &m->model, m->predictor.fold)
                         : start_gathering(tape, model, p->fold);
        if (runs(tape)) s->gathered[i] = sums;
    }
    s->kept = (mtan_event *)(void *)mtan_data(tape, mtan_new_constant(tape, window, 3));
    s->window = window;
}

mtan_status mtan_stream_size(const mtan_model *model, int32_t window, size_t *bytes) {
    const mtan_status status = check_stream(model, window);
    mtan_stream s;
    mtan_tape tape;
    if (status != MTAN_OK) return status;
    if (!bytes) return MTAN_ERR_NULL;
    tape = tape_start(model->backend, NULL, 0, 0);
    stream_layout(&tape, &s, model, window);
    return tape.status == MTAN_OK ? bytes_for(tape.peak, bytes) : tape.status;
}

mtan_status mtan_stream_init(mtan_stream *stream, mtan_predictor *predictor, int32_t window, void *memory,
                             size_t bytes) {
    const mtan_model *model = predictor ? predictor->model : NULL;
    size_t needed;
    mtan_tape tape;
    const mtan_status status = mtan_stream_size(model, window, &needed);
    if (status != MTAN_OK) return status;
    if (!stream || !memory) return MTAN_ERR_NULL;
    if (bytes < needed) return MTAN_ERR_MEMORY;
    memset(stream, 0, sizeof *stream);
    stream->predictor = predictor;
    tape = tape_start(model->backend, align_memory(memory), (needed - (MTAN_ALIGN - 1)) / sizeof(mtan_real), 0);
    stream_layout(&tape, stream, model, window);
    return tape.status;
}

/* The config of the model that the stream was made for. */
static const mtan_config *stream_config(const mtan_stream *s) {
    return &s->predictor->model->config;
}

static void stream_forget(mtan_stream *s) {
    for (int32_t i = 0; i < members_of(stream_config(s)); i++)
        architecture_of(stream_config(s))->forget(s->gathered[i]);
}

static void stream_gather(mtan_stream *s, const mtan_event *event) {
    for (int32_t i = 0; i < members_of(stream_config(s)); i++)
        architecture_of(stream_config(s))->gather(s->gathered[i], event);
}

mtan_status mtan_stream_reset(mtan_stream *stream) {
    if (!stream) return MTAN_ERR_NULL;
    stream_forget(stream);
    stream->events = 0;
    stream->first = stream->count = stream->has_lost = 0;
    return MTAN_OK;
}

static mtan_event *kept_at(const mtan_stream *s, int32_t i) {
    return &s->kept[((int64_t)s->first + i) % s->window];
}

/* Appends an event to the ring buffer. A full ring drops the event that arrived first; `lost` is the latest time
 * dropped. */
static void keep(mtan_stream *s, const mtan_event *event) {
    if (s->window == 0) return;
    if (s->count == s->window) {
        const mtan_real time = kept_at(s, 0)->time;
        s->lost = s->has_lost && s->lost > time ? s->lost : time;
        s->has_lost = 1;
        s->first = (s->first + 1) % s->window;
        s->count--;
    }
    *kept_at(s, s->count) = *event;
    s->count++;
}

mtan_status mtan_stream_push(mtan_stream *stream, mtan_real time, int32_t channel, mtan_real value) {
    mtan_event event;
    mtan_status status;
    event.time = time, event.channel = channel, event.value = value;
    if (!stream) return MTAN_ERR_NULL;
    status = check_events(&event, 1, stream_config(stream)->channels, 1);
    if (status != MTAN_OK) return status;
    stream_gather(stream, &event);
    keep(stream, &event);
    stream->events++;
    return MTAN_OK;
}

mtan_status mtan_stream_expire(mtan_stream *stream, mtan_real before) {
    int32_t left = 0;
    if (!stream) return MTAN_ERR_NULL;
    if (!is_finite(before)) return MTAN_ERR_INPUT;
    if (stream->window == 0) return MTAN_ERR_CONFIG;
    if (stream->has_lost && stream->lost >= before) return MTAN_ERR_MEMORY;
    for (int32_t i = 0; i < stream->count; i++)
        if (kept_at(stream, i)->time >= before) *kept_at(stream, left++) = *kept_at(stream, i);
    if (left == stream->count && !stream->has_lost) return MTAN_OK;
    stream_forget(stream);
    for (int32_t i = 0; i < left; i++) stream_gather(stream, kept_at(stream, i));
    stream->events = stream->count = left;
    stream->has_lost = 0;
    return MTAN_OK;
}

/* The caller's question (query times, noise, id) as a record without events. */
static mtan_record question(const mtan_record *ask) {
    mtan_record r;
    memset(&r, 0, sizeof r);
    if (!ask) return r;
    r.times = ask->times, r.n_times = ask->n_times;
    r.noise = ask->noise, r.n_noise = ask->n_noise;
    r.id = ask->id;
    return r;
}

static mtan_status stream_classes(mtan_stream *s, const mtan_record *ask, mtan_real *out, int32_t raw) {
    const mtan_record r = question(ask);
    batch_request q;
    if (!s || !out) return MTAN_ERR_NULL;
    if (stream_config(s)->classify == MTAN_CLASSIFY_NONE) return MTAN_ERR_CONFIG;
    if (stream_config(s)->classify == MTAN_CLASSIFY_TIME && !r.times) return MTAN_ERR_NULL;
    q = predict_request(s->predictor, &r, 1, class_queries(stream_config(s)));
    return classes_chunk(s->predictor, &q, s->gathered, &out, raw);
}

mtan_status mtan_stream_predict(mtan_stream *stream, const mtan_record *ask, mtan_real *probability) {
    return stream_classes(stream, ask, probability, 0);
}

mtan_status mtan_stream_logits(mtan_stream *stream, const mtan_record *ask, mtan_real *logits) {
    return stream_classes(stream, ask, logits, 1);
}

mtan_status mtan_stream_interpolate(mtan_stream *stream, const mtan_record *ask, mtan_real *mean, mtan_real *std) {
    const mtan_record r = question(ask);
    if (!stream || !mean || !r.times) return MTAN_ERR_NULL;
    return interpolate_one(stream->predictor, &r, stream->gathered, mean, std);
}

/* ---- small memory ---- */

/* Counts the memory for a record (work null), or runs a record and writes its logits or probabilities. It is a separate
 * function so that its large frame (model_run) is never on the stack twice. */
static mtan_status small_run(const mtan_model *model, const mtan_record *record, int32_t points, mtan_real *work,
                             size_t *count, mtan_real *out, int32_t raw) {
    mtan_tape tape = tape_start(model->backend, work, *count, 0);
    mtan_tensor logits;
    mtan_status status;
    model_run m;
    model_start(&m, model, &tape);
    logits = architecture_of(&model->config)->small(&m.forward, record, points);
    *count = tape.peak;
    if (!runs(&tape)) return tape.status;
    if ((status = result_status(&tape, logits)) != MTAN_OK) return status;
    if (!raw) {
        read_logits(model->backend, &model->config, mtan_data(&tape, logits), 1);
        order_quantiles(&model->config, mtan_data(&tape, logits));
    }
    memcpy(out, mtan_data(&tape, logits), count_of(logits) * sizeof *out);
    return MTAN_OK;
}

mtan_status mtan_small_size(const mtan_model *model, int32_t points, size_t *bytes) {
    mtan_status status = check_model(model);
    size_t count = 0;
    if (status != MTAN_OK) return status;
    if (!bytes) return MTAN_ERR_NULL;
    if (!architecture_of(&model->config)->small || model->backend->device || observed(&model->config) ||
        members_of(&model->config) > 1 || model->config.classify != MTAN_CLASSIFY_RECORD)
        return MTAN_ERR_CONFIG;
    if (points < 1 || points > model->config.ref_points) return MTAN_ERR_INPUT;
    status = small_run(model, NULL, points, NULL, &count, NULL, 0);
    return status == MTAN_OK ? bytes_for(count, bytes) : status;
}

static mtan_status small_classes(const mtan_model *model, const mtan_record *record, int32_t points, void *memory,
                                 size_t bytes, mtan_real *out, int32_t raw) {
    size_t needed, count;
    mtan_status status = mtan_small_size(model, points, &needed);
    if (status != MTAN_OK) return status;
    if (!record || !memory || !out) return MTAN_ERR_NULL;
    if (bytes < needed) return MTAN_ERR_MEMORY;
    status = check_events(record->events, record->n_events, model->config.channels, INT32_MAX);
    count = (needed - (MTAN_ALIGN - 1)) / sizeof(mtan_real);
    return status == MTAN_OK ? small_run(model, record, points, align_memory(memory), &count, out, raw) : status;
}

mtan_status mtan_small_classify(const mtan_model *model, const mtan_record *record, int32_t points, void *memory,
                                size_t bytes, mtan_real *probability) {
    return small_classes(model, record, points, memory, bytes, probability, 0);
}

mtan_status mtan_small_logits(const mtan_model *model, const mtan_record *record, int32_t points, void *memory,
                              size_t bytes, mtan_real *logits) {
    return small_classes(model, record, points, memory, bytes, logits, 1);
}

/* ==== 14. Training ==============================================================================================
 * One step: the prologue folds the weights. The batch is cut into a power-of-two number of shards, each with its own
 * tape and gradient array. A binary tree adds the arrays; it is the same tree for any number of threads or ranks. The
 * epilogue runs the folding backwards. The optimiser updates the weights. */

void mtan_train_config_init(mtan_train_config *config) {
    if (!config) return;
    memset(config, 0, sizeof *config);
    config->optimizer = MTAN_ADAM;
    config->lr = 1e-3;
    config->beta1 = 0.9;
    config->beta2 = 0.999;
    config->epsilon = 1e-8;
    config->kl_weight = 1;
    config->threads = config->ranks = 1;
}

double mtan_kl_anneal(int32_t epoch) {
    return epoch <= 10 ? 0 : 1 - scalar_power(0.99, epoch - 10);
}

/* Eight shards serve eight threads; fewer than four records a shard would starve the matrix products. */
enum { MOST_SHARDS = 8 };

int32_t mtan_shard_count(int32_t n) {
    int32_t shards = 1;
    while (shards < MOST_SHARDS && n >= 8 * shards) shards *= 2;
    return shards;
}

/* A device takes the whole batch as one shard. */
static int32_t shards_on(const mtan_backend *backend, int32_t n) {
    return backend->device ? 1 : mtan_shard_count(n);
}

/* The first record of shard i. Sizes of shards differ by at most one. */
static int32_t shard_start(int32_t i, int32_t shards, int32_t n) {
    return i * (n / shards) + (i < n % shards ? i : n % shards);
}

/* Bytes reserved for a trainer's state, the same on every CPU. */
enum { STATE_BYTES = 256 };
typedef char state_fits[sizeof(struct mtan_trainer_state) <= STATE_BYTES ? 1 : -1];

/* What all shards of a step share. */
typedef struct train_batch {
    const mtan_trainer *trainer;
    const mtan_record *records;
    int32_t n, shards, recording;
    int32_t epoch;
    double kl_weight, recon_seed, class_seed; /* the loss is a sum over shards with these factors on its terms */
    struct shard_sums {
        double recon, ce, kl, squared_error;
        int64_t labels, correct, cells;
        int64_t status;
    } sums[MOST_SHARDS]; /* zeros for the shards of other ranks */
} train_batch;

static queries_from train_queries(const mtan_config *c) {
    if (!has_decoder(c)) return class_queries(c);
    return c->classify == MTAN_CLASSIFY_TIME ? QUERY_TIMES : QUERY_TARGETS;
}

/* Weight of the cross-entropy: alpha next to a bound or a penalty, else 1. With a class per time it is the loss. */
static double ce_weight(const mtan_config *c) {
    return has_trait(c, MTAN_USES_ALPHA) && c->classify != MTAN_CLASSIFY_TIME ? c->alpha : 1;
}

/* The factor on a record's term of the bound: 1 / cells with `norm`, 0 for a record that is left out (Q18). */
static mtan_real bound_share(const mtan_config *c, int32_t cells) {
    if (cells == 0 && c->skip_empty) return 0;
    return c->norm ? 1 / (mtan_real)(cells > 0 ? cells : 1) : 1;
}

typedef struct loss_tensors {
    mtan_tensor recon, kl, ce, probability;
    mtan_tensor squared_error; /* a double for each record */
} loss_tensors;

static void bound_loss(const mtan_forward *f, const mtan_outputs *out, const train_batch *t, loss_tensors *loss) {
    const mtan_config *c = f->config;
    const mtan_batch *batch = f->tape->batch;
    const int32_t B = batch->records, BS = (int32_t)area(f->tape, B, batch->samples);
    mtan_tensor logp = mtan_new(f->tape, BS, 1), share = mtan_new_constant(f->tape, B, 1), ratio;
    loss->recon = mtan_new_constant(f->tape, B, 1);
    loss->kl = mtan_new(f->tape, B, 1);
    for (int32_t b = 0; runs(f->tape) && b < B; b++)
        mtan_data(f->tape, share)[b] = bound_share(c, batch->cell0[b + 1] - batch->cell0[b]);
    send_tensor(f->tape, share);
    if (out->deviation.cols > 0) mtan_op_loglik_sd(f->tape, logp, out->prediction, out->deviation, c->noise_std);
    else mtan_op_loglik(f->tape, logp, out->prediction, c->noise_std);
    loss->squared_error = mtan_new_constant(f->tape, B, (int32_t)(sizeof(double) / sizeof(mtan_real)));
    if (runs(f->tape))
        f->tape->backend->squared_error(batch, (double *)(void *)mtan_data(f->tape, loss->squared_error),
                                        mtan_data(f->tape, out->prediction));
    mtan_op_kl(f->tape, loss->kl, out->posterior);
    ratio = loss->kl;
    if (c->bound == MTAN_BOUND_IWAE) {
        ratio = mtan_new(f->tape, BS, 1);
        mtan_op_ratio(f->tape, ratio, out->z, out->posterior, f->noise);
    }
    mtan_op_bound(f->tape, loss->recon, logp, ratio, share, c->bound, t->kl_weight, t->recon_seed);
}

static mtan_tensor class_weights(mtan_tape *tape, const double *given, int32_t classes) {
    const mtan_tensor weight = mtan_new_constant(tape, 1, classes);
    for (int32_t c = 0; runs(tape) && c < classes; c++) mtan_data(tape, weight)[c] = (mtan_real)given[c];
    send_tensor(tape, weight);
    return weight;
}

static loss_tensors model_loss(const mtan_forward *f, const mtan_outputs *out, const train_batch *t) {
    const int32_t samples = row_order(f->config) == MTAN_ROWS_BY_QUERY ? 0 : f->tape->batch->samples;
    const mtan_targets targets = targets_of_task(f->config);
    loss_tensors loss;
    memset(&loss, 0, sizeof loss);
    if (interpolates(f->config)) bound_loss(f, out, t, &loss);
    if (out->penalty.rows > 0 && f->tape->recording && runs(f->tape))
        f->tape->backend->fill(mtan_grad(f->tape, out->penalty), count_of(out->penalty), (mtan_real)t->recon_seed);
    if (f->config->classify != MTAN_CLASSIFY_NONE) {
        loss.ce = mtan_new_constant(f->tape, out->logits.rows, 1);
        loss.probability = mtan_new_constant(f->tape, out->logits.rows, out->logits.cols);
        const double *given = t->trainer->config.class_weights;
        const mtan_tensor weight = given ? class_weights(f->tape, given, f->config->classes) : loss.ce;
        if (f->config->task == MTAN_TASK_CLASSES)
            mtan_op_cross_entropy(f->tape, loss.ce, loss.probability, out->logits, given ? &weight : NULL, samples,
                                  t->class_seed);
        else mtan_op_numbers(f->tape, loss.ce, loss.probability, out->logits, &targets, samples, t->class_seed);
    }
    return loss;
}

/* Output c of row i of a record, summed over the samples. */
static double sample_sum(const mtan_forward *f, mtan_tensor probability, int32_t b, int32_t i, int32_t c) {
    const mtan_batch *batch = f->tape->batch;
    const mtan_real *p = mtan_data(f->tape, probability) + c;
    double sum = 0;
    for (int32_t s = 0; s < batch->samples; s++)
        sum += (double)p[class_row(batch, row_order(f->config), b, i, s) * (size_t)probability.cols];
    return sum;
}

/* Whether the mean probability over the samples is largest at the label. */
static int32_t is_correct(const mtan_forward *f, mtan_tensor probability, int32_t b, int32_t i, int32_t label) {
    double best = -1;
    int32_t guess = 0;
    for (int32_t c = 0; c < probability.cols; c++) {
        const double sum = sample_sum(f, probability, b, i, c);
        if (sum > best) best = sum, guess = c;
    }
    return guess == label;
}

/* Counts the numbers of a row that are not missing (NaN) and, of labels, those on the same side of 1/2 as the mean
 * probability. */
static void count_numbers(const mtan_forward *f, const loss_tensors *loss, int32_t b, int32_t i,
                          struct shard_sums *sums) {
    const mtan_config *c = f->config;
    const mtan_batch *batch = f->tape->batch;
    const mtan_real *y = batch->number + (size_t)label_at(batch, row_order(c), b, i) * (size_t)c->classes;
    for (int32_t k = 0; k < c->classes; k++) {
        if (y[k] != y[k]) continue;
        sums->labels++;
        if (c->task == MTAN_TASK_LABELS)
            sums->correct += (2 * sample_sum(f, loss->probability, b, i, k) > batch->samples) == ((double)y[k] > 0.5);
    }
}

static void count_correct(const mtan_forward *f, const loss_tensors *loss, struct shard_sums *sums) {
    const mtan_batch *batch = f->tape->batch;
    for (int32_t b = 0; b < batch->records; b++)
        for (int32_t i = 0; i < class_rows(batch, row_order(f->config), b); i++) {
            const int32_t at = label_at(batch, row_order(f->config), b, i);
            if (batch->number) count_numbers(f, loss, b, i, sums);
            else if (batch->label[at] >= 0)
                sums->labels++, sums->correct += is_correct(f, loss->probability, b, i, batch->label[at]);
        }
}

static void shard_report(const mtan_forward *f, const mtan_outputs *out, const loss_tensors *loss,
                         struct shard_sums *sums) {
    const mtan_batch *batch = f->tape->batch;
    const double *error;
    const mtan_backend *k = host_kernels(f->tape);
    fetch_tensor(f->tape, loss->ce), fetch_tensor(f->tape, loss->probability), fetch_tensor(f->tape, loss->recon);
    fetch_tensor(f->tape, loss->kl), fetch_tensor(f->tape, loss->squared_error);
    if (!runs(f->tape)) return;
    if (f->config->classify != MTAN_CLASSIFY_NONE) {
        sums->ce = k->sum(mtan_data(f->tape, loss->ce), count_of(loss->ce));
        count_correct(f, loss, sums);
    }
    if (out->penalty.rows > 0) sums->recon = k->sum(mtan_data(f->tape, out->penalty), count_of(out->penalty));
    if (!interpolates(f->config)) return;
    sums->recon += k->sum(mtan_data(f->tape, loss->recon), count_of(loss->recon));
    error = (const double *)(const void *)mtan_data(f->tape, loss->squared_error);
    for (int32_t b = 0; b < batch->records; b++) {
        const int32_t n = batch->cell0[b + 1] - batch->cell0[b];
        sums->kl += (double)mtan_data(f->tape, loss->kl)[b] * (double)bound_share(f->config, n);
        sums->cells += n;
        sums->squared_error += error[b];
    }
}

/* ---- batches for a device: while kernels work on one, the next is built in the other place and sent ahead ---- */

/* Each of the two places holds a batch's arrays and, at its end, the mtan_batch that describes them. */
static size_t structure_reals(void) {
    return align_count((sizeof(mtan_batch) + sizeof(mtan_real) - 1) / sizeof(mtan_real));
}

static mtan_batch *structure_at(const mtan_trainer *trainer, int32_t place) {
    return (mtan_batch *)(void *)(trainer->state->work + (size_t)(place + 1) * trainer->state->batch_count -
                                  structure_reals());
}

static batch_request train_request(const mtan_trainer *trainer, const mtan_record *records, int32_t n) {
    const mtan_config *c = &trainer->model->config;
    const batch_request q = {
        c, &trainer->bounds,        records, n, has_decoder(c) ? c->samples : 1, train_queries(c), NULL,
        0, knots_of(trainer->model)};
    return q;
}

void mtan_trainer_next(mtan_trainer *trainer, const mtan_record *records, int32_t n) {
    if (!trainer || !trainer->model->backend->device) return;
    trainer->state->next = n > 0 && n <= trainer->bounds.records ? records : NULL;
    trainer->state->n_next = n;
    if (!records) trainer->state->ahead.batch = NULL;
}

/* Builds the next batch and sends it ahead. If that fails, the next step builds it again and reports any error. */
static void send_next(mtan_trainer *trainer) {
    const mtan_device *device = trainer->model->backend->device;
    const size_t first = (size_t)!trainer->state->place * trainer->state->batch_count;
    mtan_tape tape = tape_start(trainer->model->backend, trainer->state->work, trainer->state->work_count, 1);
    const batch_request q = train_request(trainer, trainer->state->next, trainer->state->n_next);
    mtan_batch batch;
    if (!device || !trainer->state->next) return;
    trainer->state->next = NULL;
    tape.top = first;
    batch_build(&tape, &batch, &q);
    if (tape.status != MTAN_OK || !device->send_ahead(tape.work + first, (tape.top - first) * sizeof(mtan_real)))
        return;
    trainer->state->ahead.records = q.records, trainer->state->ahead.n = q.n;
    trainer->state->ahead.batch = structure_at(trainer, !trainer->state->place);
    *trainer->state->ahead.batch = batch;
}

/* The batch of a step: the one sent ahead, or a new one. On a CPU it lies at the start of the workspace. A batch sent
 * ahead is dropped if the next step has other records. */
static void take_batch(const mtan_trainer *trainer, mtan_tape *tape, mtan_batch *batch, const batch_request *q) {
    const mtan_batch *ahead = tape->work && tape->recording ? trainer->state->ahead.batch : NULL;
    if (ahead) trainer->state->ahead.batch = NULL;
    if (ahead && trainer->state->ahead.records == q->records && trainer->state->ahead.n == q->n) {
        *batch = *ahead;
        tape->batch = batch;
        trainer->state->place = !trainer->state->place;
        if (!tape->backend->device->arrive()) fail(tape, MTAN_ERR_DEVICE);
    } else {
        tape->top = (size_t)trainer->state->place * trainer->state->batch_count;
        batch_build(tape, batch, q);
        batch_send(tape, (size_t)trainer->state->place * trainer->state->batch_count);
    }
    if (trainer->state->batch_count) tape->top = count_product(2, trainer->state->batch_count);
}

/* Forward, loss and backward of one shard on a tape; used to count the workspace too. */
static void run_shard(const train_batch *t, mtan_tape *tape, const mtan_record *records, int32_t n,
                      struct shard_sums *sums) {
    const mtan_trainer *trainer = t->trainer;
    const mtan_config *c = &trainer->model->config;
    const noise_source noise = {trainer->config.seed, (uint64_t)t->epoch, 0};
    batch_request q = train_request(trainer, records, n);
    mtan_batch batch;
    const uint32_t wanted = MTAN_WANT_LOSS | MTAN_WANT_LOGITS | (interpolates(c) ? MTAN_WANT_PREDICTION : 0);
    model_run m;
    mtan_outputs out;
    loss_tensors loss;
    model_start(&m, trainer->model, tape);
    m.forward.step = (uint64_t)trainer->step;
    m.forward.dropout = tape->recording ? trainer->config.dropout : 0;
    q.checked = 1; /* by count_batch */
    take_batch(trainer, tape, &batch, &q);
    out = model_forward(&m, &q, noise, wanted);
    loss = model_loss(&m.forward, &out, t);
    if (!runs(tape)) return;
    shard_report(&m.forward, &out, &loss, sums);
    if (tape->recording) mtan_backpropagate(tape);
}

static void shard_body(void *argument, int32_t index, int32_t thread) {
    train_batch *t = (train_batch *)argument;
    const mtan_trainer *trainer = t->trainer;
    const int32_t start = shard_start(index, t->shards, t->n), end = shard_start(index + 1, t->shards, t->n);
    mtan_tape tape =
        tape_start(trainer->model->backend, trainer->state->work + (size_t)thread * trainer->state->work_count,
                   trainer->state->work_count, t->recording);
    tape.fold = trainer->state->fold;
    tape.grads = trainer->gradient + (size_t)index * trainer->state->n_gradient;
    if (t->recording) tape.backend->fill(tape.grads, trainer->state->n_gradient, 0);
    run_shard(t, &tape, t->records + start, end - start, &t->sums[index]);
    t->sums[index].status = tape.status;
}

/* A rank runs its own contiguous part of the shards. */
typedef struct rank_shards {
    train_batch *batch;
    int32_t first, count;
} rank_shards;

static void rank_body(void *argument, int32_t index, int32_t thread) {
    const rank_shards *own = (const rank_shards *)argument;
    shard_body(own->batch, own->first + index, thread);
}

/* ---- layout of a trainer's block ---- */

/* The most records in any shard of a batch of up to n records. The largest batch need not have the largest shards: a
 * batch just too small for twice as many shards may have larger ones. */
static int32_t largest_shard(const mtan_backend *backend, int32_t n) {
    int32_t most = 0;
    for (int32_t i = 1; i <= n; i++) {
        const int32_t shards = shards_on(backend, i), size = (i + shards - 1) / shards;
        most = size > most ? size : most;
    }
    return most;
}

static mtan_tape prologue_tape(const mtan_trainer *trainer) {
    mtan_tape tape = tape_start(trainer->model->backend, trainer->state->prologue, trainer->state->prologue_count, 1);
    tape.fold = trainer->state->fold;
    tape.grads = trainer->gradient;
    return tape;
}

/* Counts the sizes of the block's parts into the state. */
static mtan_status trainer_counts(const mtan_trainer *trainer) {
    const mtan_bounds *bounds = &trainer->bounds;
    struct mtan_trainer_state *state = trainer->state;
    mtan_tape tape = tape_start(trainer->model->backend, NULL, 0, 1);
    model_run m;
    train_batch t;
    model_start(&m, trainer->model, &tape);
    memset(&t, 0, sizeof t);
    t.trainer = trainer;
    state->n_params = tape.n_params;
    state->n_fold = tape.fold_top;
    state->n_gradient = tape.n_params + tape.fold_graded;
    model_fold(&m);
    state->prologue_count = tape.peak;
    if (tape.status != MTAN_OK) return tape.status;
    tape = tape_start(trainer->model->backend, NULL, 0, 1);
    state->shards = shards_on(trainer->model->backend, bounds->records);
    if (trainer->model->backend->device) {
        const batch_request q = train_request(trainer, NULL, bounds->records);
        mtan_batch batch;
        batch_build(&tape, &batch, &q);
        state->batch_count = tape.top + structure_reals();
        tape.top = 0;
    }
    run_shard(&t, &tape, NULL, largest_shard(trainer->model->backend, bounds->records), NULL);
    state->work_count = tape.peak;
    return tape.status;
}

/* Lays out a trainer's block. Counting uses the same layout: with base null only *total is meaningful. */
static mtan_status trainer_layout(mtan_trainer *trainer, mtan_real *base, size_t *total) {
    struct mtan_trainer_state *state = trainer->state;
    const mtan_status status = trainer_counts(trainer);
    size_t at = align_count(STATE_BYTES / sizeof(mtan_real));
    if (status != MTAN_OK) return status;
#define CARVE(field, count) ((field) = base ? base + at : NULL, at = count_sum(at, count))
    CARVE(state->fold, state->n_fold);
    CARVE(trainer->gradient, count_product((size_t)state->shards, state->n_gradient));
    CARVE(trainer->moment1, state->n_params);
    CARVE(trainer->moment2, state->n_params);
    if (trainer->config.average > 0) CARVE(trainer->average, state->n_params);
    CARVE(state->prologue, state->prologue_count);
    CARVE(state->work, count_product((size_t)trainer->config.threads, state->work_count));
#undef CARVE
    *total = at;
    return MTAN_OK;
}

static mtan_status check_train_config(const mtan_train_config *c) {
    if (c->threads < 1 || c->threads > 1024 || (c->threads > 1 && !c->parallel_for)) return MTAN_ERR_CONFIG;
    if (c->ranks < 1 || (c->ranks & (c->ranks - 1)) || c->rank < 0 || c->rank >= c->ranks ||
        (c->ranks > 1 && !c->allreduce))
        return MTAN_ERR_CONFIG;
    if (c->optimizer != MTAN_ADAM && c->optimizer != MTAN_ADAMAX) return MTAN_ERR_CONFIG;
    if (!(c->lr >= 0 && c->lr < 1e9) || !(c->kl_weight - c->kl_weight == 0) || !(c->epsilon < 1e9) ||
        !(c->beta1 >= 0 && c->beta1 < 1) || !(c->beta2 >= 0 && c->beta2 < 1) || !(c->epsilon >= 0) || !(c->clip >= 0) ||
        !(c->dropout >= 0 && c->dropout < 1) || !(c->decay >= 0 && c->decay < 1e9) ||
        !(c->average >= 0 && c->average < 1))
        return MTAN_ERR_CONFIG;
    return MTAN_OK;
}

/* Checks the arguments and sets up a trainer on the caller's temporary `state`, which mtan_trainer_init later copies
 * into the block. */
static mtan_status trainer_prepare(mtan_trainer *trainer, struct mtan_trainer_state *state, const mtan_model *model,
                                   const mtan_train_config *config, const mtan_bounds *bounds) {
    mtan_status status = check_model(model);
    if (status == MTAN_OK) status = check_bounds(bounds);
    if (status != MTAN_OK) return status;
    if (!config) return MTAN_ERR_NULL;
    if (!architecture_of(&model->config)->forward) return MTAN_ERR_CONFIG;
    if (members_of(&model->config) > 1) return MTAN_ERR_CONFIG;
    if (model->precision != MTAN_REAL || model->rows) return MTAN_ERR_CONFIG; /* int8 weights have no gradients */
    memset(trainer, 0, sizeof *trainer);
    memset(state, 0, sizeof *state);
    trainer->state = state;
    trainer->model = (mtan_model *)(uintptr_t)model;
    trainer->config = *config;
    trainer->bounds = *bounds;
    if (model->backend->device && (config->threads > 1 || config->ranks > 1)) return MTAN_ERR_CONFIG;
    for (int32_t c = 0; config->class_weights && c < model->config.classes; c++)
        if (!(config->class_weights[c] >= 0 && config->class_weights[c] < 1e9)) return MTAN_ERR_CONFIG;
    return check_train_config(config);
}

mtan_status mtan_trainer_size(const mtan_model *model, const mtan_train_config *config, const mtan_bounds *bounds,
                              size_t *bytes) {
    struct mtan_trainer_state state;
    mtan_trainer trainer;
    size_t total;
    mtan_status status = trainer_prepare(&trainer, &state, model, config, bounds);
    if (status != MTAN_OK) return status;
    if (!bytes) return MTAN_ERR_NULL;
    status = trainer_layout(&trainer, NULL, &total);
    return status == MTAN_OK ? bytes_for(total, bytes) : status;
}

mtan_status mtan_trainer_init(mtan_trainer *trainer, mtan_model *model, mtan_real *weights,
                              const mtan_train_config *config, const mtan_bounds *bounds, void *memory, size_t bytes) {
    struct mtan_trainer_state state;
    size_t total, needed;
    mtan_trainer made;
    mtan_status status = mtan_trainer_size(model, config, bounds, &needed);
    if (status != MTAN_OK) return status;
    if (!trainer || !memory || !weights) return MTAN_ERR_NULL;
    if (model->weights != weights) return MTAN_ERR_INPUT;
    if (bytes < needed) return MTAN_ERR_MEMORY;
    trainer_prepare(&made, &state, model, config, bounds);
    trainer_layout(&made, align_memory(memory), &total);
    made.weights = weights;
    made.state = (struct mtan_trainer_state *)(void *)align_memory(memory);
    *made.state = state;
    model->backend->fill(made.moment1, state.n_params, 0);
    model->backend->fill(made.moment2, state.n_params, 0);
    if (made.average) model->backend->fill(made.average, state.n_params, 0);
    *trainer = made;
    return device_status(model->backend, made.moment1);
}

void *mtan_trainer_scratch(const mtan_trainer *trainer, int32_t thread, size_t *bytes) {
    if (bytes) *bytes = 0;
    if (!trainer || !bytes || thread < 0 || thread >= trainer->config.threads || trainer->model->backend->device)
        return NULL;
    *bytes = trainer->state->work_count * sizeof(mtan_real);
    return trainer->state->work + (size_t)thread * trainer->state->work_count;
}

/* ---- the step ---- */

typedef struct tree_sum {
    mtan_trainer *trainer;
    int32_t first, shards, chunks;
} tree_sum;

/* Adds up one slice of the shards' gradient arrays into the first: neighbours, then sums of neighbours, and so on. */
static void tree_body(void *argument, int32_t index, int32_t thread) {
    const tree_sum *t = (const tree_sum *)argument;
    const size_t n = t->trainer->state->n_gradient;
    const size_t from = (size_t)((uint64_t)n * (uint64_t)index / (uint64_t)t->chunks);
    const size_t to = (size_t)((uint64_t)n * (uint64_t)(index + 1) / (uint64_t)t->chunks);
    mtan_real *g = t->trainer->gradient + (size_t)t->first * n + from;
    (void)thread;
    for (int32_t width = 1; width < t->shards; width *= 2)
        for (int32_t i = 0; i + width < t->shards; i += 2 * width)
            t->trainer->model->backend->add(g + (size_t)i * n, 0, g + (size_t)(i + width) * n, 0, 1,
                                            (int32_t)(to - from));
}

static void run_parallel(const mtan_train_config *c, int32_t n, mtan_body body, void *argument) {
    if (c->parallel_for) c->parallel_for(c->parallel_context, n, body, argument);
    else
        for (int32_t i = 0; i < n; i++) body(argument, i, 0);
}

/* Counts the labels of a record, weighted by class, or its numbers that are not missing (NaN). A label that is no class does
 * not count here; fill_labels refuses it. */
static double count_targets(const mtan_config *c, const double *weight, const mtan_record *r, int32_t rows) {
    double n = 0;
    if (c->task == MTAN_TASK_CLASSES) {
        for (int32_t i = 0; r->labels && i < rows; i++)
            if (r->labels[i] >= 0 && r->labels[i] < c->classes) n += weight ? weight[r->labels[i]] : 1;
    } else
        for (int64_t i = 0; r->numbers && i < (int64_t)rows * c->classes; i++) n += r->numbers[i] == r->numbers[i];
    return n;
}

/* Checks the records and counts what the batch's means divide by: labels weighted by class, and records that count. */
static mtan_status count_batch(const mtan_trainer *trainer, const mtan_record *records, int32_t n, double *labels,
                               int64_t *kept) {
    const mtan_config *c = &trainer->model->config;
    const double *weight = trainer->config.class_weights;
    *labels = 0, *kept = 0;
    for (int32_t b = 0; b < n; b++) {
        const mtan_record *r = &records[b];
        int32_t targets, queries = 1;
        mtan_status status = check_record(r, c, &trainer->bounds);
        if (status != MTAN_OK) return status;
        targets_of(r, &targets);
        *kept += targets > 0 || !c->skip_empty;
        if (c->classify == MTAN_CLASSIFY_NONE) continue;
        if (c->classify == MTAN_CLASSIFY_TIME)
            queries =
                r->times ? r->n_times : count_times(r->events, r->n_events, (int32_t *)(void *)trainer->state->work);
        *labels += count_targets(c, weight, r, queries);
    }
    return MTAN_OK;
}

/* Adds the shards' sums up in the order of the shards. */
static mtan_status gather_report(const train_batch *t, mtan_report *report) {
    memset(report, 0, sizeof *report);
    for (int32_t i = 0; i < t->shards; i++) {
        const struct shard_sums *s = &t->sums[i];
        if (s->status != MTAN_OK) return (mtan_status)s->status;
        report->recon += s->recon;
        report->ce += s->ce;
        report->kl += s->kl;
        report->squared_error += s->squared_error;
        report->labels += s->labels;
        report->correct += s->correct;
        report->cells += s->cells;
    }
    return MTAN_OK;
}

/* Gives every rank the sums and the status of every shard, so that all ranks make the same report or fail with the same
 * status. The bytes travel unchanged, sixteen bits per real: the other ranks add zeros, so nothing is rounded. */
static mtan_status share_sums(const mtan_train_config *c, struct shard_sums sums[MOST_SHARDS]) {
    enum { PIECES = MOST_SHARDS * sizeof(struct shard_sums) / sizeof(uint16_t) };
    uint16_t piece[PIECES];
    mtan_real moved[PIECES];
    mtan_status status;
    if (c->ranks == 1) return MTAN_OK;
    memcpy(piece, sums, sizeof piece);
    for (int32_t i = 0; i < PIECES; i++) moved[i] = (mtan_real)piece[i];
    if ((status = c->allreduce(c->allreduce_context, moved, PIECES)) != MTAN_OK) return status;
    for (int32_t i = 0; i < PIECES; i++) {
        if (!(moved[i] >= 0 && moved[i] <= 65535)) return MTAN_ERR_INPUT; /* not the sum of what the ranks gave */
        piece[i] = (uint16_t)moved[i];
    }
    memcpy(sums, piece, sizeof piece);
    return MTAN_OK;
}

/* Adds the gradients of the rank's shards, then those of all ranks, into the first array. With fewer shards than ranks
 * some ranks have no shard. They contribute -0: adding it changes no bit of any number. */
static mtan_status sum_gradients(mtan_trainer *trainer, const rank_shards *own) {
    const mtan_train_config *c = &trainer->config;
    const size_t n = trainer->state->n_gradient;
    tree_sum tree;
    tree.trainer = trainer;
    tree.first = own->first;
    tree.shards = own->count;
    tree.chunks = 4 * c->threads;
    run_parallel(c, tree.chunks, tree_body, &tree);
    if (c->ranks == 1) return MTAN_OK;
    if (own->count == 0) trainer->model->backend->fill(trainer->gradient, n, -(mtan_real)0);
    else if (own->first) memcpy(trainer->gradient, trainer->gradient + (size_t)own->first * n, n * sizeof(mtan_real));
    return c->allreduce(c->allreduce_context, trainer->gradient, n);
}

/* Loss and, when recording, the summed gradient of parameters and folded weights in the first gradient array. */
static mtan_status batch_pass(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                              int32_t recording, mtan_report *report) {
    const mtan_config *c = &trainer->model->config;
    const mtan_train_config *tc = &trainer->config;
    double labels;
    int64_t kept;
    train_batch t;
    rank_shards own;
    mtan_status status = count_batch(trainer, records, n, &labels, &kept);
    if (status != MTAN_OK) return status;
    memset(&t, 0, sizeof t);
    t.trainer = trainer;
    t.records = records;
    t.n = n;
    t.shards = shards_on(trainer->model->backend, n);
    t.recording = recording;
    t.epoch = epoch;
    t.kl_weight = c->kl_anneal ? mtan_kl_anneal(epoch) : tc->kl_weight;
    t.recon_seed = kept > 0 ? 1.0 / (double)kept : 0;
    t.class_seed = labels > 0 ? ce_weight(c) / (labels * (has_decoder(c) ? c->samples : 1)) : 0;
    own.batch = &t;
    own.first = (int32_t)((int64_t)tc->rank * t.shards / tc->ranks);
    own.count = (int32_t)((int64_t)(tc->rank + 1) * t.shards / tc->ranks) - own.first;
    run_parallel(tc, own.count, rank_body, &own);
    if ((status = share_sums(tc, t.sums)) != MTAN_OK) return status;
    if ((status = gather_report(&t, report)) != MTAN_OK) return status;
    if (recording && (status = sum_gradients(trainer, &own)) != MTAN_OK) return status;
    report->records = interpolates(c) ? kept : n;
    report->recon *= t.recon_seed;
    report->kl *= t.recon_seed;
    report->ce = labels > 0 ? report->ce / (labels * (has_decoder(c) ? c->samples : 1)) : 0;
    report->loss = report->recon + ce_weight(c) * report->ce;
    return MTAN_OK;
}

static mtan_status check_batch(const mtan_trainer *trainer, const mtan_record *records, int32_t n,
                               const mtan_report *report) {
    if (!trainer || !records || !report) return MTAN_ERR_NULL;
    if (n < 1) return MTAN_ERR_INPUT;
    return n > trainer->bounds.records ? MTAN_ERR_MEMORY : MTAN_OK;
}

/* Folds the weights on the prologue's tape, then runs the batch. */
static mtan_status fold_and_pass(mtan_trainer *trainer, mtan_tape *prologue, const mtan_record *records, int32_t n,
                                 int32_t epoch, int32_t recording, mtan_report *report) {
    model_run m;
    *prologue = prologue_tape(trainer);
    model_start(&m, trainer->model, prologue);
    model_fold(&m);
    if (prologue->status != MTAN_OK) return prologue->status;
    return batch_pass(trainer, records, n, epoch, recording, report);
}

mtan_status mtan_trainer_loss(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                              mtan_report *report) {
    mtan_tape prologue;
    mtan_report made;
    mtan_status status = check_batch(trainer, records, n, report);
    if (status == MTAN_OK) status = fold_and_pass(trainer, &prologue, records, n, epoch, 0, &made);
    if (status == MTAN_OK) *report = made;
    return status;
}

static mtan_status gradient_norm(const mtan_trainer *trainer, double *norm) {
    const mtan_backend *k = trainer->model->backend;
    *norm = scalar_sqrt(k->sum_squares(trainer->gradient, mtan_weights_count(&trainer->model->config)));
    return device_status(k, trainer->gradient);
}

mtan_status mtan_trainer_gradient(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                                  mtan_report *report) {
    mtan_tape prologue;
    mtan_report made;
    mtan_status status = check_batch(trainer, records, n, report);
    if (status == MTAN_OK) status = fold_and_pass(trainer, &prologue, records, n, epoch, 1, &made);
    if (status != MTAN_OK) {
        if (trainer) mtan_trainer_next(trainer, NULL, 0);
        return status;
    }
    mtan_backpropagate(&prologue);
    send_next(trainer);
    if ((status = gradient_norm(trainer, &made.gradient_norm)) != MTAN_OK) return status;
    if (prologue.status == MTAN_OK) *report = made;
    return prologue.status;
}

/* Decoupled weight decay: matrices are multiplied by 1 - rate decay, whatever their gradient. */
static void decay_weights(mtan_trainer *trainer, double rate) {
    const mtan_config *c = &trainer->model->config;
    const mtan_real kept = (mtan_real)(1 - rate * trainer->config.decay);
    for (int32_t i = 0, n = trainer->config.decay > 0 ? mtan_param_count(c) : 0; i < n; i++) {
        const mtan_param p = param_at(c, i);
        if (is_matrix(&p))
            trainer->model->backend->scale(trainer->weights + p.offset, (size_t)p.cols, p.rows, p.cols, kept);
    }
}

/* The optimiser's step; `norm` is the gradient's. A norm that is not finite changes nothing. */
static mtan_status update_weights(mtan_trainer *trainer, int32_t epoch, double norm) {
    const mtan_backend *k = trainer->model->backend;
    const mtan_train_config *c = &trainer->config;
    const size_t n = mtan_weights_count(&trainer->model->config);
    const int64_t step = trainer->step + 1;
    const double used = c->clip > 0 && norm > c->clip ? c->clip : norm;
    double rate;
    mtan_real v[6];
    if (!(norm - norm == 0) || !is_finite((mtan_real)(used * used)))
        return MTAN_ERR_INPUT;         /* the moments hold squares */
    if (c->clip > 0 && norm > c->clip) /* torch.nn.utils.clip_grad_norm_ */
        k->scale(trainer->gradient, n, 1, (int32_t)n, (mtan_real)(c->clip / (norm + 1e-6)));
    rate = c->lr * (c->schedule ? c->schedule(c->schedule_context, step, epoch) : 1);
    if (!is_finite((mtan_real)rate)) return MTAN_ERR_INPUT;
    trainer->step = step;
    v[0] = (mtan_real)(1 - c->beta1);
    v[1] = (mtan_real)c->beta2;
    v[2] = (mtan_real)(1 - c->beta2);
    v[3] = (mtan_real)c->epsilon;
    v[4] = (mtan_real)(rate / (1 - scalar_power(c->beta1, step)));
    v[5] = (mtan_real)(1 / scalar_sqrt(1 - scalar_power(c->beta2, step)));
    decay_weights(trainer, rate);
    (c->optimizer == MTAN_ADAM ? k->adam : k->adamax)(trainer->weights, trainer->moment1, trainer->moment2,
                                                      trainer->gradient, n, v);
    if (trainer->average) k->average(trainer->average, trainer->weights, n, (mtan_real)(step > 1 ? 1 - c->average : 1));
    return MTAN_OK;
}

/* The norm is computed again: the caller may have changed the gradient. */
mtan_status mtan_trainer_update(mtan_trainer *trainer, int32_t epoch) {
    double norm;
    mtan_status status;
    if (!trainer) return MTAN_ERR_NULL;
    if ((status = gradient_norm(trainer, &norm)) != MTAN_OK) return status;
    return update_weights(trainer, epoch, norm);
}

mtan_status mtan_trainer_step(mtan_trainer *trainer, const mtan_record *records, int32_t n, int32_t epoch,
                              mtan_report *report) {
    mtan_report made;
    mtan_status status = report ? mtan_trainer_gradient(trainer, records, n, epoch, &made) : MTAN_ERR_NULL;
    if (status == MTAN_OK && !(made.loss - made.loss == 0)) status = MTAN_ERR_INPUT;
    if (status == MTAN_OK) status = update_weights(trainer, epoch, made.gradient_norm);
    if (status == MTAN_OK) *report = made;
    return status;
}

/* ==== 15. Files =================================================================================================== */

/* ---------------------------------------------------------------------------------------------------------------
 * safetensors: bytes and element types
 *
 * The container is little-endian. Single numbers are assembled from bytes with shifts. Whole arrays are copied; a
 * big-endian host reverses the bytes of each element.
 */
static const struct {
    char name[8]; /* longest: F8_E5M2 and F8_E4M3, 7 and the zero */
    uint8_t width;
} dtype_table[] = {
#define DTYPE(name, width) [MTAN_DTYPE_##name] = {#name, width}
    DTYPE(BOOL, 1), DTYPE(U8, 1),  DTYPE(I8, 1),  DTYPE(F8_E5M2, 1), DTYPE(F8_E4M3, 1),
    DTYPE(I16, 2),  DTYPE(U16, 2), DTYPE(F16, 2), DTYPE(BF16, 2),    DTYPE(I32, 4),
    DTYPE(U32, 4),  DTYPE(F32, 4), DTYPE(F64, 8), DTYPE(I64, 8),     DTYPE(U64, 8),
#undef DTYPE
};
#define DTYPE_COUNT (sizeof dtype_table / sizeof dtype_table[0])

static int host_is_little(void) {
    const uint16_t one = 1;
    uint8_t low;
    memcpy(&low, &one, 1);
    return low;
}

static uint64_t load_little(const uint8_t *from, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* From file order to host order or back: both are the same reversal. */
static void copy_little(void *to, const void *from, size_t count, size_t width) {
    if (count == 0) return;
    if (width == 1 || host_is_little()) {
        memcpy(to, from, count * width);
        return;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < width; k++)
            ((uint8_t *)to)[i * width + k] = ((const uint8_t *)from)[i * width + width - 1 - k];
}

static double f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* binary16: 5 bits of exponent with bias 15 (112 less than binary32's 127), 10 of fraction (13 fewer than 23). */
static double f16_from_bits(uint32_t bits) {
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
    if (exponent == 0) /* zero and subnormals: units of 2^-24 */
        return (sign ? -1.0 : 1.0) * (double)fraction * 0x1p-24;
    if (exponent == 31) /* infinity, NaN */
        return f32_from_bits(sign | 0x7f800000u | fraction << 13);
    return f32_from_bits(sign | (exponent + 112u) << 23 | fraction << 13);
}

/* The number of elements of a shape. SIZE_MAX when it, or the number of bytes, overflows size_t, even if a later
 * dimension is 0. */
static size_t shape_count(const size_t *shape, int rank, size_t width) {
    size_t count = 1;
    for (int i = 0; i < rank; i++) {
        if (shape[i] != 0 && count > SIZE_MAX / shape[i]) return SIZE_MAX;
        count *= shape[i];
    }
    return count > SIZE_MAX / width ? SIZE_MAX : count;
}

/* ---------------------------------------------------------------------------------------------------------------
 * safetensors: strings
 *
 * Names and metadata stay in the header as JSON strings. Every operation on them (check, compare, hash, decode) uses
 * text_next, which returns one character at a time.
 */

/* The next UTF-8 character. Returns -1, and the cursor stays, at the end or where the character is malformed, cut
 * short, overlong, a surrogate, or above U+10FFFF. */
static int32_t utf8_next(const uint8_t **at, const uint8_t *end) {
    static const int32_t least[4] = {0, 0x80, 0x800, 0x10000}; /* smallest code with so many continuation bytes */
    const uint8_t *p = *at;
    if (p == end) return -1;
    int32_t code = *p++;
    const int more = code < 0x80 ? 0 : code < 0xc0 ? -1 : code < 0xe0 ? 1 : code < 0xf0 ? 2 : code < 0xf8 ? 3 : -1;
    if (more < 0 || end - p < more) return -1;
    if (more > 0) code &= 0x3f >> more; /* the bits after the leading ones */
    for (int i = 0; i < more; i++, p++) {
        if ((*p & 0xc0) != 0x80) return -1;
        code = code << 6 | (*p & 0x3f);
    }
    if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return -1;
    *at = p;
    return code;
}

/* The UTF-8 bytes of a character, 1 to 4. */
static size_t utf8_encode(int32_t code, uint8_t out[4]) {
    static const uint8_t lead[4] = {0, 0xc0, 0xe0, 0xf0};
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out[0] = (uint8_t)(lead[more] | code >> (6 * more));
    for (int i = 1; i <= more; i++) out[i] = (uint8_t)(0x80 | (code >> (6 * (more - i)) & 0x3f));
    return (size_t)more + 1;
}

/* The four hexadecimal digits of \uXXXX, or -1. */
static int32_t text_hex4(const uint8_t **at, const uint8_t *end) {
    int32_t code = 0;
    if (end - *at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const int32_t c = *(*at)++, letter = (c | 0x20) - 'a';
        if (c >= '0' && c <= '9') code = code << 4 | (c - '0');
        else if (letter >= 0 && letter < 6) code = code << 4 | (letter + 10);
        else return -1;
    }
    return code;
}

/* The character of an escape, after its backslash; -1 on an error. Codes above U+FFFF are two \u escapes, a high and a
 * low surrogate; neither may be alone. */
static int32_t text_escape(const uint8_t **at, const uint8_t *end) {
    static const char letter[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    if (*at == end) return -1;
    const uint8_t c = *(*at)++;
    for (int i = 0; letter[i] != 0; i++)
        if (c == (uint8_t)letter[i]) return meaning[i];
    if (c != 'u') return -1;
    const int32_t high = text_hex4(at, end);
    if (high < 0xd800 || high >= 0xe000) /* also -1 */
        return high;
    if (high >= 0xdc00 || end - *at < 2 || (*at)[0] != '\\' || (*at)[1] != 'u') return -1;
    *at += 2;
    const int32_t low = text_hex4(at, end);
    return low < 0xdc00 || low >= 0xe000 ? -1 : 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
}

static int32_t text_next_rare(const uint8_t **at, const uint8_t *end) {
    const uint8_t *p = *at;
    if (p == end || *p == '"' || *p < 0x20) return -1;
    if (*p != '\\') return utf8_next(at, end);
    p++;
    const int32_t code = text_escape(&p, end);
    if (code >= 0) *at = p;
    return code;
}

/* The next character of a JSON string. Returns -1, and the cursor stays, at the end, at a quote, at a control character
 * or at an error. So a string is valid when the cursor stops at its end. Plain ASCII takes the fast path. */
static int32_t text_next(const uint8_t **at, const uint8_t *end) {
    const uint8_t c = *at == end ? 0 : **at;
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' ? *(*at)++ : text_next_rare(at, end);
}

/* Compares two JSON strings; text_equals compares a JSON string with plain UTF-8. */
static int text_same(mtan_text a, mtan_text b) {
    const uint8_t *at_a = (const uint8_t *)a.raw, *end_a = at_a + a.length;
    const uint8_t *at_b = (const uint8_t *)b.raw, *end_b = at_b + b.length;
    int32_t code;
    do {
        code = text_next(&at_a, end_a);
        if (code != text_next(&at_b, end_b)) return 0;
    } while (code >= 0);
    return 1;
}

static int text_equals(mtan_text coded, const char *plain) {
    const uint8_t *at = (const uint8_t *)coded.raw, *const end = at + coded.length;
    uint8_t c[4];
    int32_t code;
    while ((code = text_next(&at, end)) > 0) { /* \u0000 ends it, too: plain strings have none */
        const size_t n = utf8_encode(code, c);
        for (size_t i = 0; i < n; i++)
            if ((uint8_t)*plain++ != c[i]) return 0;
    }
    return code < 0 && *plain == 0;
}

/* FNV-1a, by characters. */
static uint32_t text_hash(mtan_text coded) {
    const uint8_t *at = (const uint8_t *)coded.raw, *end = at + coded.length;
    uint32_t hash = 2166136261u;
    for (int32_t code; (code = text_next(&at, end)) >= 0;) hash = (hash ^ (uint32_t)code) * 16777619u;
    return hash;
}

mtan_status mtan_text_decode(const mtan_text *coded, char *text, size_t size, size_t *length) {
    if (coded == NULL || coded->raw == NULL || (text == NULL && size != 0)) return MTAN_ERR_NULL;
    const uint8_t *const start = (const uint8_t *)coded->raw, *const end = start + coded->length, *at = start;
    uint8_t c[4];
    size_t total = 0;
    for (int32_t code; (code = text_next(&at, end)) >= 0;) total += utf8_encode(code, c);
    if (at != end) return MTAN_ERR_FILE;
    if (text != NULL) {
        size_t left = total; /* the blob may have changed: never write more than was counted */
        if (size <= total) return MTAN_ERR_MEMORY;
        at = start;
        for (int32_t code; (code = text_next(&at, end)) >= 0;) {
            const size_t n = utf8_encode(code, c);
            if (n > left) return MTAN_ERR_FILE;
            left -= n;
            for (size_t i = 0; i < n; i++) *text++ = (char)c[i];
        }
        *text = 0;
    }
    if (length != NULL) *length = total;
    return MTAN_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * safetensors: the JSON of the header
 *
 * Not all of JSON, only the grammar of a header: an object of tensors with at most one object of strings. The nesting
 * is written out in code, so there is no recursion and no depth to limit. A function returns 1 when it has read the
 * element in its name and moved the cursor past it, 0 when the element is not there.
 */
typedef struct json {
    const uint8_t *at;
    const uint8_t *end;
    int first;   /* the next member of an object is its first: no comma before it */
    int checked; /* its strings are known to be valid: only their closing quotes are searched */
} json;

static void json_space(json *j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) j->at++;
}

static int json_take(json *j, char c) {
    json_space(j);
    if (j->at == j->end || *j->at != (uint8_t)c) return 0;
    j->at++;
    return 1;
}

static int json_open(json *j) {
    j->first = 1;
    return json_take(j, '{');
}

/* Moves to the closing quote of a string, or to the end of the header if there is none. */
static void json_skip(json *j) {
    while (j->at < j->end && *j->at != '"') j->at += *j->at == '\\' && j->end - j->at > 1 ? 2 : 1;
}

static int json_string(json *j, mtan_text *text) {
    if (!json_take(j, '"')) return 0;
    const uint8_t *const start = j->at;
    if (j->checked) json_skip(j);
    else
        while (text_next(&j->at, j->end) >= 0)
            ;
    text->raw = (const char *)start;
    text->length = (size_t)(j->at - start);
    if (j->at == j->end || *j->at != '"') return 0;
    j->at++;
    return 1;
}

/* Steps to the next member of an object and reads its key and colon: 1, 0 at the closing brace, -1 on an error. */
static int json_member(json *j, mtan_text *key) {
    const int first = j->first;
    j->first = 0;
    if (json_take(j, '}')) return 0;
    if (!first && !json_take(j, ',')) return -1;
    return json_string(j, key) && json_take(j, ':') ? 1 : -1;
}

/* A non-negative integer that fits in size_t: no sign, fraction, exponent or leading zero. */
static int json_size(json *j, size_t *value) {
    json_space(j);
    const uint8_t *const start = j->at;
    size_t sum = 0;
    for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++) {
        const size_t digit = (size_t)(*j->at - '0');
        if (sum > (SIZE_MAX - digit) / 10) return 0;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return j->at != start && (*start != '0' || j->at - start == 1);
}

/* An array of at most `most` sizes. */
static int json_sizes(json *j, size_t *values, int most, int *count) {
    int n = 0;
    if (!json_take(j, '[')) return 0;
    if (!json_take(j, ']')) {
        do {
            if (n == most || !json_size(j, &values[n++])) return 0;
        } while (json_take(j, ','));
        if (!json_take(j, ']')) return 0;
    }
    *count = n;
    return 1;
}

static int json_dtype(json *j, mtan_dtype *dtype) {
    mtan_text name;
    if (!json_string(j, &name)) return 0;
    for (size_t i = 0; i < DTYPE_COUNT; i++)
        if (text_equals(name, dtype_table[i].name)) {
            *dtype = (mtan_dtype)i;
            return 1;
        }
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * safetensors: reading
 */

/* The three fields of a tensor, each exactly once, in any order. */
static int scan_fields(json *j, mtan_tensor_view *view, size_t offsets[2]) {
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    int seen = 0, more, two;
    mtan_text key;
    if (!json_open(j)) return 0;
    while ((more = json_member(j, &key)) == 1) {
        int field = 0;
        if (text_equals(key, "dtype") && json_dtype(j, &view->dtype)) field = DTYPE;
        else if (text_equals(key, "shape") && json_sizes(j, view->shape, MTAN_MAX_RANK, &view->rank)) field = SHAPE;
        else if (text_equals(key, "data_offsets") && json_sizes(j, offsets, 2, &two) && two == 2) field = OFFSETS;
        if (field == 0 || seen & field) return 0;
        seen |= field;
    }
    return more == 0 && seen == ALL;
}

/* The value of a tensor's member. Its range must lie in the data and have the size that dtype and shape imply. */
static int scan_tensor(json *j, const mtan_file *file, mtan_tensor_view *view) {
    size_t offsets[2];
    memset(view, 0, sizeof *view);
    if (!scan_fields(j, view, offsets)) return 0;
    const size_t width = dtype_table[view->dtype].width;
    view->count = shape_count(view->shape, view->rank, width);
    if (view->count == SIZE_MAX) return 0;
    view->bytes = view->count * width;
    if (offsets[0] > offsets[1] || offsets[1] > file->data_bytes || offsets[1] - offsets[0] != view->bytes) return 0;
    view->data = file->data + offsets[0];
    view->aligned = (uintptr_t)view->data % width == 0;
    return 1;
}

/* The next pair of the metadata: 1, 0 at the end, -1 on an error. */
static int scan_pair(json *j, mtan_text *key, mtan_text *value) {
    const int more = json_member(j, key);
    return more == 1 && !json_string(j, value) ? -1 : more;
}

/* The value of __metadata__: an object of strings (*start is its opening brace), or null (*start is NULL). */
static int scan_metadata(json *j, const uint8_t **start, size_t *pairs) {
    mtan_text key, value;
    int more;
    *start = NULL;
    *pairs = 0;
    if (json_take(j, 'n')) {
        if (j->end - j->at < 3 || j->at[0] != 'u' || j->at[1] != 'l' || j->at[2] != 'l') return 0;
        j->at += 3;
        return 1;
    }
    if (!json_open(j)) return 0;
    *start = j->at - 1;
    while ((more = scan_pair(j, &key, &value)) == 1)
        if (++*pairs > MTAN_FILE_MAX_ENTRIES) return 0;
    return more == 0;
}

/* A member of the header: a tensor, or the metadata. */
typedef struct header_member {
    int is_metadata;
    const uint8_t *metadata;
    size_t pairs;
    mtan_tensor_view tensor;
} header_member;

/* 1, 0 at the end of the header's object, -1 on an error. Metadata that was scanned before is skipped. */
static int next_member(json *j, const mtan_file *file, header_member *member) {
    mtan_text name;
    const int more = json_member(j, &name);
    if (more != 1) return more;
    member->is_metadata = text_equals(name, "__metadata__");
    if (member->is_metadata && file->metadata_end != NULL && j->at < file->metadata_end)
        return j->at = file->metadata_end, 1;
    if (member->is_metadata) return scan_metadata(j, &member->metadata, &member->pairs) ? 1 : -1;
    if (!scan_tensor(j, file, &member->tensor)) return -1;
    member->tensor.name = name;
    return 1;
}

static int next_tensor(json *j, const mtan_file *file, mtan_tensor_view *view) {
    header_member member;
    int more;
    do {
        more = next_member(j, file, &member);
    } while (more == 1 && member.is_metadata);
    if (more == 1) *view = member.tensor;
    return more;
}

/* Cursors after the opening brace of the header, and of the metadata where there is one. */
static json file_tensors(const mtan_file *file) {
    const json j = {file->header + 1, file->data, 1, 1};
    return j;
}

static json file_pairs(const mtan_file *file) {
    const json j = {file->metadata + 1, file->data, 1, 1};
    return j;
}

/* First pass: checks that the header is well formed and followed only by spaces, and that the tensors' sizes sum to the
 * size of the data. *in_order: every tensor starts where the previous one ends. */
static int file_survey(mtan_file *file, int *in_order) {
    header_member member;
    size_t covered = 0;
    int more, metadata_seen = 0;
    json j = file_tensors(file);
    j.checked = 0;
    *in_order = 1;
    while ((more = next_member(&j, file, &member)) == 1) {
        if (member.is_metadata) {
            if (metadata_seen++) return 0;
            file->metadata = member.metadata;
            file->metadata_end = j.at;
            file->pairs = member.pairs;
        } else {
            if (++file->tensors > MTAN_FILE_MAX_ENTRIES || member.tensor.bytes > file->data_bytes - covered) return 0;
            *in_order &= member.tensor.data == file->data + covered;
            covered += member.tensor.bytes;
        }
    }
    while (j.at < j.end && *j.at == ' ') j.at++;
    return more == 0 && j.at == j.end && covered == file->data_bytes;
}

/* The next tensor's name, or the next pair's key. */
static int next_name(json *j, const mtan_file *file, int of_pairs, mtan_text *name) {
    mtan_tensor_view view;
    mtan_text value;
    if (of_pairs) return scan_pair(j, name, &value);
    const int more = next_tensor(j, file, &view);
    if (more == 1) *name = view.name;
    return more;
}

/* Whether the i-th name from the cursor equals `name`, or cannot be read. */
static int name_repeats(json j, const mtan_file *file, int of_pairs, int i, mtan_text name) {
    mtan_text earlier;
    int more;
    do {
        more = next_name(&j, file, of_pairs, &earlier);
    } while (more == 1 && i-- > 0);
    return more != 1 || text_same(earlier, name);
}

/* Checks that no name occurs twice, without memory for all names. The hashes of a batch of names are kept on the stack,
 * and all later names are compared with them; then the next batch starts where this one ended. n names take n/512
 * passes, at most 8, each over half of the header on average. Names are read again only where hashes agree, which
 * happens by chance in one of 500 files with the maximum of 4096 names. More than ACCIDENTS collisions are deliberate,
 * made to waste time, and are refused. */
static int names_differ(const mtan_file *file, json start, int of_pairs) {
    enum { BATCH = 512, ACCIDENTS = 16 }; /* 2 KB */
    uint32_t hashes[BATCH];
    mtan_text name;
    int n, more, accidents = 0;
    do {
        const json batch = start;
        json j = start;
        n = 0;
        while ((more = next_name(&j, file, of_pairs, &name)) == 1) {
            const uint32_t hash = text_hash(name);
            for (int i = 0; i < n; i++)
                if (hashes[i] == hash && (accidents++ == ACCIDENTS || name_repeats(batch, file, of_pairs, i, name)))
                    return 0;
            if (n < BATCH) {
                hashes[n++] = hash;
                start = j;
            }
        }
        if (more != 0) return 0;
    } while (n == BATCH);
    return 1;
}

/* Checks that no two tensors share a byte, in batches as names_differ does. Only files that do not list their tensors
 * in the order of the data need it. An empty range overlaps another range when it lies inside it, not at its edges. */
static int ranges_disjoint(const mtan_file *file, json start) {
    enum { BATCH = 128 }; /* 2 KB with 64-bit addresses */
    struct {
        const uint8_t *begin, *end;
    } batch[BATCH];
    mtan_tensor_view next;
    int n, more;
    do {
        json j = start;
        n = 0;
        while ((more = next_tensor(&j, file, &next)) == 1) {
            const uint8_t *const end = next.data + next.bytes;
            for (int i = 0; i < n; i++)
                if (batch[i].begin < end && next.data < batch[i].end) return 0;
            if (n < BATCH) {
                batch[n].begin = next.data;
                batch[n++].end = end;
                start = j;
            }
        }
        if (more != 0) return 0;
    } while (n == BATCH);
    return 1;
}

/* The header's length from the first 8 bytes of a file: 1, or 0 when no file starts like this. */
static int header_length(const uint8_t *blob, size_t *bytes) {
    const uint64_t length = load_little(blob, 8);
    *bytes = (size_t)length;
    return length > 0 && length <= MTAN_FILE_MAX_HEADER;
}

/* Ranges that lie in the data, do not overlap and together have its size leave no hole and no trailing byte. */
mtan_status mtan_file_open(mtan_file *file, const void *blob, size_t bytes) {
    if (file == NULL || blob == NULL) return MTAN_ERR_NULL;
    mtan_file f = {0, 0, (const uint8_t *)blob + 8, NULL, NULL, NULL, 0};
    size_t header_bytes;
    int in_order;
    if (bytes < 8 || !header_length(blob, &header_bytes) || header_bytes > bytes - 8 || f.header[0] != '{')
        return MTAN_ERR_FILE;
    f.data = f.header + header_bytes;
    f.data_bytes = bytes - 8 - header_bytes;
    if (!file_survey(&f, &in_order)) return MTAN_ERR_FILE;
    if (!in_order && !ranges_disjoint(&f, file_tensors(&f))) return MTAN_ERR_FILE;
    if (!names_differ(&f, file_tensors(&f), 0)) return MTAN_ERR_FILE;
    if (f.metadata != NULL && !names_differ(&f, file_pairs(&f), 1)) return MTAN_ERR_FILE;
    *file = f;
    return MTAN_OK;
}

/* Where the last tensor of a header ends in the data. */
static int data_length(json j, size_t *bytes) {
    mtan_tensor_view view;
    mtan_text name;
    const uint8_t *metadata;
    size_t pairs, offsets[2];
    int more;
    *bytes = 0;
    if (!json_open(&j)) return 0;
    while ((more = json_member(&j, &name)) == 1) {
        if (text_equals(name, "__metadata__")) {
            if (!scan_metadata(&j, &metadata, &pairs)) return 0;
        } else {
            if (!scan_fields(&j, &view, offsets)) return 0;
            if (offsets[1] > *bytes) *bytes = offsets[1];
        }
    }
    return more == 0;
}

mtan_status mtan_file_length(const void *start, size_t bytes, size_t *length) {
    if (start == NULL || length == NULL) return MTAN_ERR_NULL;
    size_t header_bytes, data_bytes = 0;
    if (bytes < 8) return *length = 8, MTAN_OK;
    if (!header_length(start, &header_bytes)) return MTAN_ERR_FILE;
    if (bytes - 8 >= header_bytes) {
        const uint8_t *const header = (const uint8_t *)start + 8;
        const json j = {header, header + header_bytes, 1, 0};
        if (!data_length(j, &data_bytes) || data_bytes > SIZE_MAX - 8 - header_bytes) return MTAN_ERR_FILE;
    }
    *length = 8 + header_bytes + data_bytes;
    return MTAN_OK;
}

/* The status of a walk that ended: at the end of the list, or because the blob has changed since mtan_file_open. */
static mtan_status file_ended(int more) {
    return more == 0 ? MTAN_ERR_MISSING : MTAN_ERR_FILE;
}

mtan_status mtan_file_tensor(const mtan_file *file, const char *name, mtan_tensor_view *view) {
    if (file == NULL || name == NULL || view == NULL) return MTAN_ERR_NULL;
    mtan_tensor_view next;
    int more;
    json j = file_tensors(file);
    while ((more = next_tensor(&j, file, &next)) == 1)
        if (text_equals(next.name, name)) {
            *view = next;
            return MTAN_OK;
        }
    return file_ended(more);
}

/* Resumes a caller's walk: `at` counts the bytes after the brace that opens the list; 0: before the first member. */
static json walk_resume(json start, size_t at) {
    const size_t most = (size_t)(start.end - start.at);
    start.first = at == 0;
    start.at += at < most ? at : most;
    return start;
}

mtan_status mtan_file_tensor_next(const mtan_file *file, size_t *at, mtan_tensor_view *view) {
    if (file == NULL || at == NULL || view == NULL) return MTAN_ERR_NULL;
    const json start = file_tensors(file);
    json j = walk_resume(start, *at);
    mtan_tensor_view next;
    const int more = next_tensor(&j, file, &next);
    if (more != 1) return file_ended(more);
    *at = (size_t)(j.at - start.at);
    *view = next;
    return MTAN_OK;
}

mtan_status mtan_file_tensor_at(const mtan_file *file, size_t index, mtan_tensor_view *view) {
    if (file == NULL || view == NULL) return MTAN_ERR_NULL;
    mtan_tensor_view next;
    size_t at = 0;
    mtan_status status;
    do {
        status = mtan_file_tensor_next(file, &at, &next);
    } while (status == MTAN_OK && index-- > 0);
    if (status == MTAN_OK) *view = next;
    return status;
}

mtan_status mtan_file_metadata(const mtan_file *file, const char *key, char *text, size_t size, size_t *length) {
    if (file == NULL || key == NULL) return MTAN_ERR_NULL;
    if (file->metadata == NULL) return MTAN_ERR_MISSING;
    mtan_text name, value;
    int more;
    json j = file_pairs(file);
    while ((more = scan_pair(&j, &name, &value)) == 1)
        if (text_equals(name, key)) return mtan_text_decode(&value, text, size, length);
    return file_ended(more);
}

mtan_status mtan_file_metadata_next(const mtan_file *file, size_t *at, mtan_text *key, mtan_text *value) {
    if (file == NULL || at == NULL || key == NULL || value == NULL) return MTAN_ERR_NULL;
    if (file->metadata == NULL) return MTAN_ERR_MISSING;
    const json start = file_pairs(file);
    json j = walk_resume(start, *at);
    mtan_text name, text;
    const int more = scan_pair(&j, &name, &text);
    if (more != 1) return file_ended(more);
    *at = (size_t)(j.at - start.at);
    *key = name;
    *value = text;
    return MTAN_OK;
}

mtan_status mtan_file_metadata_at(const mtan_file *file, size_t index, mtan_text *key, mtan_text *value) {
    if (file == NULL || key == NULL || value == NULL) return MTAN_ERR_NULL;
    mtan_text name, text;
    size_t at = 0;
    mtan_status status;
    do {
        status = mtan_file_metadata_next(file, &at, &name, &text);
    } while (status == MTAN_OK && index-- > 0);
    if (status == MTAN_OK) {
        *key = name;
        *value = text;
    }
    return status;
}

const mtan_real *mtan_view_in_place(const mtan_tensor_view *view) {
    if (view == NULL || view->dtype != MTAN_DTYPE_REAL || !view->aligned || !host_is_little()) return NULL;
    return (const mtan_real *)(const void *)view->data;
}

mtan_status mtan_view_read_raw(const mtan_tensor_view *view, mtan_dtype dtype, void *out, size_t n) {
    if (view == NULL || (out == NULL && n != 0)) return MTAN_ERR_NULL;
    if (view->dtype != dtype || view->count != n) return MTAN_ERR_SHAPE;
    copy_little(out, view->data, n, dtype_table[dtype].width);
    return MTAN_OK;
}

mtan_status mtan_view_read_i32(const mtan_tensor_view *view, int32_t *out, size_t n) {
    return mtan_view_read_raw(view, MTAN_DTYPE_I32, out, n);
}

static int dtype_is_real(mtan_dtype dtype) {
    return dtype == MTAN_DTYPE_F16 || dtype == MTAN_DTYPE_BF16 || dtype == MTAN_DTYPE_F32 || dtype == MTAN_DTYPE_F64;
}

/* Element i of a tensor of real numbers; exact, since double holds all four types. */
static double view_element(const mtan_tensor_view *view, size_t i) {
    const size_t width = dtype_table[view->dtype].width;
    const uint64_t bits = load_little(view->data + i * width, width);
    double value;
    if (view->dtype == MTAN_DTYPE_F16) return f16_from_bits((uint32_t)bits);
    if (view->dtype == MTAN_DTYPE_BF16) /* the upper half of a binary32 */
        return f32_from_bits((uint32_t)bits << 16);
    if (view->dtype == MTAN_DTYPE_F32) return f32_from_bits((uint32_t)bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

mtan_status mtan_view_read(const mtan_tensor_view *view, mtan_real *out, size_t n) {
    if (view == NULL || (out == NULL && n != 0)) return MTAN_ERR_NULL;
    if (view->dtype == MTAN_DTYPE_REAL) /* avoids double, which small CPUs emulate */
        return mtan_view_read_raw(view, MTAN_DTYPE_REAL, out, n);
    if (!dtype_is_real(view->dtype) || view->count != n) return MTAN_ERR_SHAPE;
    for (size_t i = 0; i < n; i++) out[i] = (mtan_real)view_element(view, i);
    return MTAN_OK;
}

mtan_status mtan_view_read_f64(const mtan_tensor_view *view, double *out, size_t n) {
    if (view == NULL || (out == NULL && n != 0)) return MTAN_ERR_NULL;
    if (!dtype_is_real(view->dtype) || view->count != n) return MTAN_ERR_SHAPE;
    for (size_t i = 0; i < n; i++) out[i] = view_element(view, i);
    return MTAN_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * safetensors: writing
 *
 * One function writes a file into a sink. Without a callback the sink only counts, and that count is the size.
 */
typedef struct sink {
    mtan_write_fn write; /* NULL: count */
    void *context;
    size_t count;
    mtan_status status; /* the first failure; nothing is passed on after it */
} sink;

typedef struct file_contents {
    const mtan_file_entry *entries;
    size_t entry_count;
    const mtan_file_pair *pairs;
    size_t pair_count;
} file_contents;

static void sink_put(sink *s, const void *bytes, size_t n) {
    if (s->status != MTAN_OK || n == 0) return;
    if (n > SIZE_MAX - s->count) s->status = MTAN_ERR_SIZE;
    else if (s->write != NULL && s->write(s->context, bytes, n) != MTAN_OK) s->status = MTAN_ERR_WRITE;
    else s->count += n;
}

static void sink_text(sink *s, const char *plain) {
    sink_put(s, plain, text_length(plain));
}

static void sink_size(sink *s, size_t value) {
    char digits[20]; /* 2^64 - 1 has 20 */
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    sink_put(s, digits + at, sizeof digits - at);
}

/* A JSON string. Only the quote, the backslash and control characters are escaped. */
static void sink_string(sink *s, const char *plain) {
    static const char hex[] = "0123456789abcdef";
    sink_put(s, "\"", 1);
    for (; *plain != 0; plain++) {
        const uint8_t c = (uint8_t)*plain;
        if (c < 0x20) {
            const char code[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            sink_put(s, code, sizeof code);
        } else {
            if (c == '"' || c == '\\') sink_put(s, "\\", 1);
            sink_put(s, plain, 1);
        }
    }
    sink_put(s, "\"", 1);
}

/* Elements, from the host's byte order to the file's. */
static void sink_elements(sink *s, const uint8_t *data, size_t count, size_t width) {
    uint8_t chunk[512]; /* a multiple of every width */
    if (s->write == NULL || host_is_little()) {
        sink_put(s, data, count * width);
        return;
    }
    while (count > 0) {
        const size_t n = count < sizeof chunk / width ? count : sizeof chunk / width;
        copy_little(chunk, data, n, width);
        sink_put(s, chunk, n * width);
        data += n * width;
        count -= n;
    }
}

/* The order of the tensors, in the header and in the data: wider elements first. Start from {8, 0}. */
typedef struct write_order {
    size_t width, index;
} write_order;

static const mtan_file_entry *next_entry(const file_contents *c, write_order *order) {
    for (; order->width != 0; order->width /= 2, order->index = 0)
        while (order->index < c->entry_count) {
            const mtan_file_entry *entry = &c->entries[order->index++];
            if (dtype_table[entry->dtype].width == order->width) return entry;
        }
    return NULL;
}

static void write_metadata(sink *s, const file_contents *c) {
    sink_text(s, "\"__metadata__\":{");
    for (size_t i = 0; i < c->pair_count; i++) {
        sink_text(s, i ? "," : "");
        sink_string(s, c->pairs[i].key);
        sink_text(s, ":");
        sink_string(s, c->pairs[i].value);
    }
    sink_text(s, "}");
}

static void write_tensor(sink *s, const mtan_file_entry *entry, size_t begin, size_t end) {
    sink_string(s, entry->name);
    sink_text(s, ":{\"dtype\":\"");
    sink_text(s, dtype_table[entry->dtype].name);
    sink_text(s, "\",\"shape\":[");
    for (int i = 0; i < entry->rank; i++) {
        sink_text(s, i ? "," : "");
        sink_size(s, entry->shape[i]);
    }
    sink_text(s, "],\"data_offsets\":[");
    sink_size(s, begin);
    sink_text(s, ",");
    sink_size(s, end);
    sink_text(s, "]}");
}

static void write_header(sink *s, const file_contents *c) {
    write_order order = {8, 0};
    const mtan_file_entry *entry;
    size_t begin = 0, end;
    int comma = c->pair_count != 0;
    sink_text(s, "{");
    if (c->pair_count != 0) write_metadata(s, c);
    for (; (entry = next_entry(c, &order)) != NULL; begin = end, comma = 1) {
        end = begin + shape_count(entry->shape, entry->rank, order.width) * order.width;
        sink_text(s, comma ? "," : "");
        write_tensor(s, entry, begin, end);
    }
    sink_text(s, "}");
}

/* Writes the whole file; contents_check must have passed. The header is counted first: its length precedes it. */
static void write_file(sink *s, const file_contents *c) {
    sink counter = {NULL, NULL, 0, MTAN_OK};
    write_order order = {8, 0};
    const mtan_file_entry *entry;
    uint8_t length[8];
    write_header(&counter, c);
    if (counter.status != MTAN_OK || counter.count > MTAN_FILE_MAX_HEADER - 63) {
        s->status = MTAN_ERR_SIZE;
        return;
    }
    const size_t padding = (64 - (8 + counter.count) % 64) % 64;
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)(counter.count + padding) >> (8 * i));
    sink_put(s, length, 8);
    write_header(s, c);
    for (size_t i = 0; i < padding; i++) sink_put(s, " ", 1);
    while ((entry = next_entry(c, &order)) != NULL)
        sink_elements(s, entry->data, shape_count(entry->shape, entry->rank, order.width), order.width);
}

static mtan_status string_check(const char *plain) {
    if (plain == NULL) return MTAN_ERR_NULL;
    const uint8_t *at = (const uint8_t *)plain, *const end = at + text_length(plain);
    while (utf8_next(&at, end) >= 0)
        ;
    return at == end ? MTAN_OK : MTAN_ERR_INPUT;
}

static int string_same(const char *a, const char *b) {
    while (*a != 0 && *a == *b) a++, b++;
    return *a == *b;
}

/* The sink checks that all tensors together fit in size_t. */
static mtan_status entry_check(const mtan_file_entry *entry) {
    const mtan_status status = string_check(entry->name);
    if (status != MTAN_OK) return status;
    if (string_same(entry->name, "__metadata__") || (size_t)entry->dtype >= DTYPE_COUNT) return MTAN_ERR_INPUT;
    if (entry->rank < 0 || entry->rank > MTAN_MAX_RANK) return MTAN_ERR_INPUT;
    const size_t width = dtype_table[entry->dtype].width, count = shape_count(entry->shape, entry->rank, width);
    if (count == SIZE_MAX) return MTAN_ERR_SIZE;
    return entry->data == NULL && count != 0 ? MTAN_ERR_NULL : MTAN_OK;
}

static mtan_status contents_check(const file_contents *c) {
    mtan_status status;
    if ((c->entries == NULL && c->entry_count != 0) || (c->pairs == NULL && c->pair_count != 0)) return MTAN_ERR_NULL;
    if (c->entry_count > MTAN_FILE_MAX_ENTRIES || c->pair_count > MTAN_FILE_MAX_ENTRIES) return MTAN_ERR_SIZE;
    for (size_t i = 0; i < c->entry_count; i++) {
        if ((status = entry_check(&c->entries[i])) != MTAN_OK) return status;
        for (size_t k = 0; k < i; k++)
            if (string_same(c->entries[i].name, c->entries[k].name)) return MTAN_ERR_INPUT;
    }
    for (size_t i = 0; i < c->pair_count; i++) {
        if ((status = string_check(c->pairs[i].key)) != MTAN_OK ||
            (status = string_check(c->pairs[i].value)) != MTAN_OK)
            return status;
        for (size_t k = 0; k < i; k++)
            if (string_same(c->pairs[i].key, c->pairs[k].key)) return MTAN_ERR_INPUT;
    }
    return MTAN_OK;
}

static mtan_status contents_size(const file_contents *c, size_t *bytes) {
    sink counter = {NULL, NULL, 0, MTAN_OK};
    const mtan_status status = contents_check(c);
    if (status != MTAN_OK) return status;
    write_file(&counter, c);
    if (counter.status == MTAN_OK) *bytes = counter.count;
    return counter.status;
}

mtan_status mtan_file_write_size(const mtan_file_entry *entries, size_t entry_count, const mtan_file_pair *pairs,
                                 size_t pair_count, size_t *bytes) {
    const file_contents c = {entries, entry_count, pairs, pair_count};
    return bytes == NULL ? MTAN_ERR_NULL : contents_size(&c, bytes);
}

mtan_status mtan_file_write(const mtan_file_entry *entries, size_t entry_count, const mtan_file_pair *pairs,
                            size_t pair_count, mtan_write_fn write, void *context) {
    const file_contents c = {entries, entry_count, pairs, pair_count};
    sink out = {write, context, 0, MTAN_OK};
    size_t bytes;
    if (write == NULL) return MTAN_ERR_NULL;
    const mtan_status status = contents_size(&c, &bytes); /* so that only the callback can fail halfway */
    if (status != MTAN_OK) return status;
    write_file(&out, &c);
    return out.status;
}

static mtan_status memory_write(void *context, const void *bytes, size_t n) {
    uint8_t **at = context;
    memcpy(*at, bytes, n);
    *at += n;
    return MTAN_OK;
}

mtan_status mtan_file_write_memory(const mtan_file_entry *entries, size_t entry_count, const mtan_file_pair *pairs,
                                   size_t pair_count, void *out, size_t size, size_t *bytes) {
    const file_contents c = {entries, entry_count, pairs, pair_count};
    uint8_t *at = out;
    sink memory = {memory_write, &at, 0, MTAN_OK};
    size_t needed = 0;
    if (out == NULL || bytes == NULL) return MTAN_ERR_NULL;
    const mtan_status status = contents_size(&c, &needed);
    if (status != MTAN_OK) return status;
    if (size < needed) return MTAN_ERR_MEMORY;
    write_file(&memory, &c);
    *bytes = memory.count;
    return memory.status;
}

/* ---- model files: settings as metadata mtan.<key>, weights under their names ---- */

#define KEY_PREFIX "mtan."
#define KEY_SIZE 40

static void settings_key(char key[KEY_SIZE], const char *name) {
    key[0] = 0;
    append(key, KEY_SIZE, KEY_PREFIX);
    append(key, KEY_SIZE, name);
}

/* A setting that did not exist when the file was written keeps its default. */
static mtan_status read_setting(mtan_config *config, const mtan_file *file, const char *name) {
    char key[KEY_SIZE], text[NUMBER_SIZE];
    mtan_status status;
    settings_key(key, name);
    status = mtan_file_metadata(file, key, text, sizeof text, NULL);
    if (status == MTAN_ERR_MISSING) return MTAN_OK;
    if (status == MTAN_OK) status = mtan_config_set(config, name, text);
    return status == MTAN_OK ? MTAN_OK : MTAN_ERR_FILE;
}

#define ARCHITECTURE KEY_PREFIX "architecture"

/* Sets the architecture of this name: one of the paper's two, which the kind in the config already implies, or one of
 * `known`. */
static mtan_status find_architecture(mtan_config *config, const mtan_architecture *const *known, const char *name) {
    if (text_equal(name, mtand_enc.name) || text_equal(name, mtand_full.name))
        return text_equal(name, architecture_of(config)->name) ? MTAN_OK : MTAN_ERR_FILE;
    while (known && *known && !text_equal((*known)->name, name)) known++;
    if (!known || !*known) return MTAN_ERR_MISSING;
    config->architecture = *known;
    return MTAN_OK;
}

/* Reads the architecture that a file names and the settings that it adds. Older files name none: they have the paper's
 * architecture. */
static mtan_status read_architecture(mtan_config *config, const mtan_architecture *const *known,
                                     const mtan_file *file) {
    char text[MTAN_NAME_SIZE];
    mtan_status status = mtan_file_metadata(file, ARCHITECTURE, text, sizeof text, NULL);
    if (status == MTAN_ERR_MISSING) return MTAN_OK;
    if (status != MTAN_OK) return MTAN_ERR_FILE;
    if ((status = find_architecture(config, known, text)) != MTAN_OK) return status;
    for (int32_t i = 0; extra_name(config, i); i++) config->extra[i] = architecture_of(config)->defaults[i];
    for (int32_t i = 0; extra_name(config, i); i++)
        if ((status = read_setting(config, file, extra_name(config, i))) != MTAN_OK) return status;
    return MTAN_OK;
}

/* Reads all settings of a file except given reference points. */
static mtan_status read_settings(mtan_config *config, const mtan_architecture *const *known, const mtan_file *file) {
    char text[NUMBER_SIZE];
    if (mtan_file_metadata(file, KEY_PREFIX "kind", text, sizeof text, NULL) != MTAN_OK) return MTAN_ERR_FILE;
    mtan_config_init(config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 1, 2);
    for (int32_t i = 0; mtan_config_key(i); i++) {
        const mtan_status status = read_setting(config, file, mtan_config_key(i));
        if (status != MTAN_OK) return status;
    }
    return read_architecture(config, known, file);
}

static mtan_status find_points(const mtan_file *file, const mtan_config *config, mtan_tensor_view *view) {
    const mtan_status status = mtan_file_tensor(file, KEY_PREFIX "ref", view);
    if (status != MTAN_OK) return status;
    return view->rank == 1 && view->count == (size_t)config->ref_points ? MTAN_OK : MTAN_ERR_SHAPE;
}

mtan_status mtan_model_load_config(mtan_config *config, const mtan_file *file, const mtan_architecture *const *known) {
    mtan_config made;
    mtan_tensor_view view;
    mtan_status status;
    if (!config || !file) return MTAN_ERR_NULL;
    if ((status = read_settings(&made, known, file)) != MTAN_OK) return status;
    if (made.reference == MTAN_REF_GIVEN) {
        if ((status = find_points(file, &made, &view)) != MTAN_OK) return status;
        if (!(made.ref = mtan_view_in_place(&view))) return MTAN_ERR_SHAPE;
    }
    if ((status = mtan_config_check(&made)) != MTAN_OK) return status;
    *config = made;
    return MTAN_OK;
}

/* Reads the config of a file before its given reference points. MTAN_REF_EVEN stands in for MTAN_REF_GIVEN: the number
 * of weights is the same. *points is how many points will follow. */
static mtan_status read_pointless(mtan_config *config, size_t *points, const mtan_file *file,
                                  const mtan_architecture *const *known) {
    mtan_status status = read_settings(config, known, file);
    *points = 0;
    if (status != MTAN_OK) return status;
    if (config->reference == MTAN_REF_GIVEN) {
        config->reference = MTAN_REF_EVEN;
        *points = (size_t)(config->ref_points > 0 ? config->ref_points : 0);
    }
    return mtan_config_check(config);
}

mtan_status mtan_model_load_count(const mtan_file *file, const mtan_architecture *const *known, size_t *count) {
    mtan_config config;
    size_t points;
    mtan_status status;
    if (!file || !count) return MTAN_ERR_NULL;
    if ((status = read_pointless(&config, &points, file, known)) != MTAN_OK) return status;
    *count = mtan_weights_count(&config) + points;
    return MTAN_OK;
}

/* Finds a parameter's tensor in a file and checks its shape, which is (n) for rank 1 and (rows, cols) for rank 2. */
static mtan_status find_param(const mtan_file *file, const mtan_param *p, mtan_tensor_view *view) {
    const mtan_status status = mtan_file_tensor(file, p->name, view);
    if (status != MTAN_OK) return status;
    if (view->rank != p->rank || view->shape[0] != (size_t)p->rows ||
        (p->rank == 2 && view->shape[1] != (size_t)p->cols))
        return MTAN_ERR_SHAPE;
    return MTAN_OK;
}

static int32_t readable(mtan_dtype dtype) {
    return dtype == MTAN_DTYPE_F16 || dtype == MTAN_DTYPE_BF16 || dtype == MTAN_DTYPE_F32 || dtype == MTAN_DTYPE_F64;
}

/* MTAN_OK when all elements are finite as reals, else `bad`. They are read 64 at a time into a buffer, since nothing
 * may be written to the destination yet. */
static mtan_status check_elements(mtan_tensor_view view, mtan_status bad) {
    mtan_real some[64];
    if (!readable(view.dtype)) return MTAN_ERR_SHAPE;
    for (size_t left = view.count; left > 0; left -= view.count) {
        view.count = left < 64 ? left : 64;
        mtan_view_read(&view, some, view.count);
        if (!all_finite(some, view.count)) return bad;
        view.data += view.count * dtype_table[view.dtype].width;
    }
    return MTAN_OK;
}

/* Checks that knots do not decrease within a channel. Other parameters pass. */
static mtan_status check_knots(const mtan_config *config, int32_t index, const mtan_tensor_view *view) {
    const size_t knots = (size_t)config->bins + 1;
    if (config->values == MTAN_VALUES_PLAIN || index < mtan_param_count(config) - 1) return MTAN_OK;
    for (size_t i = 1; i < view->count; i++)
        if (i % knots > 0 && view_element(view, i) < view_element(view, i - 1)) return MTAN_ERR_FILE;
    return MTAN_OK;
}

/* ---- int8 weights in files: I8 tensors of rank 2; "<name>.scale" holds the scales of the rows of <name> ---- */

mtan_real mtan_row_quantize(int8_t *q, const mtan_real *x, size_t n) {
    const mtan_real scale = weight_scale(x, n);
    for (size_t i = 0; i < n; i++) q[i] = quantize_weight(x[i], scale);
    return scale;
}

static mtan_status find_scale(const mtan_file *file, const mtan_param *p, mtan_tensor_view *view) {
    char name[MTAN_NAME_SIZE + 8] = "";
    mtan_status status;
    append(name, sizeof name, p->name);
    append(name, sizeof name, ".scale");
    if ((status = mtan_file_tensor(file, name, view)) != MTAN_OK) return status;
    return p->rank == 2 && view->rank == 1 && view->count == (size_t)p->rows && readable(view->dtype) ? MTAN_OK
                                                                                                      : MTAN_ERR_SHAPE;
}

/* Checks that the scales exist, are not negative, and stay finite times 128, the largest magnitude of an int8. */
static mtan_status check_scale(const mtan_file *file, const mtan_param *p) {
    mtan_tensor_view view;
    const mtan_status status = find_scale(file, p, &view);
    if (status != MTAN_OK) return status;
    for (size_t i = 0; i < view.count; i++) {
        const float x = (float)view_element(&view, i);
        if (!is_finite((mtan_real)(128 * x)) || x < 0) return MTAN_ERR_FILE;
    }
    return MTAN_OK;
}

static mtan_status read_int8(const mtan_file *file, const mtan_param *p, const mtan_tensor_view *view, mtan_real *out) {
    mtan_tensor_view scale;
    const mtan_status status = find_scale(file, p, &scale);
    for (size_t i = 0; status == MTAN_OK && i < view->count; i++) {
        const int32_t q = view->data[i] < 128 ? view->data[i] : view->data[i] - 256;
        out[i] = (mtan_real)q * (mtan_real)view_element(&scale, i / (size_t)p->cols);
    }
    return status;
}

mtan_status mtan_model_int8_counts(const mtan_config *config, size_t *count, size_t *bytes) {
    const mtan_status status = mtan_config_check(config);
    if (!count || !bytes) return MTAN_ERR_NULL;
    if (status != MTAN_OK) return status;
    *count = *bytes = 0;
    for (int32_t i = 0, n = mtan_param_count(config); i < n; i++) {
        const mtan_param p = param_at(config, i);
        *count += (size_t)p.rows * (is_matrix(&p) ? 1 : (size_t)p.cols);
        if (is_matrix(&p)) *bytes += (size_t)p.rows * (size_t)p.cols;
    }
    return MTAN_OK;
}

mtan_status mtan_model_init_int8(mtan_model *model, const mtan_config *config, const mtan_real *weights, size_t count,
                                 const int8_t *rows, size_t bytes) {
    size_t reals = 0, whole = 0;
    const mtan_status status = mtan_model_int8_counts(config, &reals, &whole);
    if (!model || !weights || !rows) return MTAN_ERR_NULL;
    if (status != MTAN_OK) return status;
    if (count < reals || bytes < whole) return MTAN_ERR_MEMORY;
    model_bind(model, config, weights);
    model->precision = MTAN_INT8;
    model->rows = rows;
    reals = whole = 0;
    for (int32_t i = 0, n = mtan_param_count(config); i < n; i++) {
        const mtan_param p = param_at(config, i);
        model->offset[i] = (uint32_t)reals;
        model->row0[i] = is_matrix(&p) ? (uint32_t)whole : MTAN_NO_ROWS;
        reals += (size_t)p.rows * (is_matrix(&p) ? 1 : (size_t)p.cols);
        if (is_matrix(&p)) whole += (size_t)p.rows * (size_t)p.cols;
    }
    return MTAN_OK;
}

/* Points the model to a parameter in the file: to its reals, or to its int8 rows and their scales. */
static mtan_status open_param(mtan_model *model, const mtan_file *file, int32_t index) {
    const mtan_param p = param_at(&model->config, index);
    mtan_tensor_view view;
    const mtan_real *at;
    size_t row0 = MTAN_NO_ROWS;
    mtan_status status = find_param(file, &p, &view);
    if (status == MTAN_OK && view.dtype == MTAN_DTYPE_I8) {
        if (!is_matrix(&p)) return MTAN_ERR_SHAPE;
        row0 = (size_t)(view.data - file->data);
        if (row0 >= MTAN_NO_ROWS) return MTAN_ERR_SHAPE;
        model->rows = (const int8_t *)(const void *)file->data;
        if ((status = check_scale(file, &p)) == MTAN_OK) status = find_scale(file, &p, &view);
    }
    if (status != MTAN_OK) return status;
    at = mtan_view_in_place(&view);
    if (!at || (size_t)(at - model->weights) > LARGEST_COUNT) return MTAN_ERR_SHAPE;
    if (!all_finite(at, view.count)) return MTAN_ERR_NUMERIC;
    if ((status = check_knots(&model->config, index, &view)) != MTAN_OK) return status;
    model->offset[index] = (uint32_t)(at - model->weights);
    model->row0[index] = (uint32_t)row0;
    return MTAN_OK;
}

/* The settings are read only once, so that the model stays consistent even if the file changes meanwhile. */
mtan_status mtan_model_open(mtan_model *model, const mtan_file *file, const mtan_architecture *const *known) {
    mtan_config config;
    mtan_model made;
    mtan_status status;
    if (!model) return MTAN_ERR_NULL;
    if ((status = mtan_model_load_config(&config, file, known)) != MTAN_OK) return status;
    if ((uintptr_t)file->data % sizeof(mtan_real)) return MTAN_ERR_SHAPE;
    model_bind(&made, &config, (const mtan_real *)(const void *)file->data);
    for (int32_t i = 0, n = mtan_param_count(&config); i < n; i++)
        if ((status = open_param(&made, file, i)) != MTAN_OK) return status;
    if (made.rows) made.precision = MTAN_INT8;
    *model = made;
    return MTAN_OK;
}

/* Checks that every parameter of the model is in the file with its shape, a readable type and finite values. *precision
 * becomes MTAN_INT8 when any tensor is I8. */
static mtan_status check_params(const mtan_file *file, const mtan_config *config, mtan_precision *precision) {
    *precision = MTAN_REAL;
    for (int32_t i = 0, n = mtan_param_count(config); i < n; i++) {
        const mtan_param p = param_at(config, i);
        mtan_tensor_view view;
        mtan_status status = find_param(file, &p, &view);
        if (status == MTAN_OK && view.dtype == MTAN_DTYPE_I8) *precision = MTAN_INT8, status = check_scale(file, &p);
        else if (status == MTAN_OK) status = check_elements(view, MTAN_ERR_NUMERIC);
        if (status == MTAN_OK) status = check_knots(config, i, &view);
        if (status != MTAN_OK) return status;
    }
    return MTAN_OK;
}

static mtan_status read_params(const mtan_file *file, const mtan_config *config, mtan_real *weights) {
    for (int32_t i = 0, n = mtan_param_count(config); i < n; i++) {
        const mtan_param p = param_at(config, i);
        mtan_tensor_view view;
        mtan_status status = find_param(file, &p, &view);
        if (status == MTAN_OK && view.dtype == MTAN_DTYPE_I8) status = read_int8(file, &p, &view, weights + p.offset);
        else if (status == MTAN_OK) status = mtan_view_read(&view, weights + p.offset, view.count);
        if (status != MTAN_OK) return status;
    }
    return MTAN_OK;
}

/* Everything is checked before anything is copied. The settings are read only once: they decide how much is written. */
mtan_status mtan_model_load(mtan_model *model, mtan_real *weights, size_t count, const mtan_file *file,
                            const mtan_architecture *const *known) {
    mtan_config config;
    mtan_tensor_view view;
    mtan_precision precision;
    mtan_status status;
    size_t points, P;
    if (!model || !weights || !file) return MTAN_ERR_NULL;
    if ((status = read_pointless(&config, &points, file, known)) != MTAN_OK) return status;
    P = mtan_weights_count(&config);
    if (count < P + points) return MTAN_ERR_MEMORY;
    if (points && (status = find_points(file, &config, &view)) != MTAN_OK) return status;
    if (points && (status = check_elements(view, MTAN_ERR_CONFIG)) != MTAN_OK) return status;
    if ((status = check_params(file, &config, &precision)) != MTAN_OK) return status;
    if ((status = read_params(file, &config, weights)) != MTAN_OK) return status;
    if (points) {
        config.reference = MTAN_REF_GIVEN;
        config.ref = weights + P;
        mtan_view_read(&view, weights + P, points);
    }
    model_bind(model, &config, weights);
    model->precision = precision;
    return MTAN_OK;
}

static mtan_file_entry entry_of(const char *name, int32_t rank, size_t rows, size_t cols, const mtan_real *data) {
    mtan_file_entry e;
    memset(&e, 0, sizeof e);
    e.name = name;
    e.dtype = MTAN_DTYPE_REAL;
    e.rank = rank;
    e.shape[0] = rows;
    e.shape[1] = rank == 2 ? cols : 0;
    e.data = data;
    return e;
}

enum { ALL_SETTINGS = SETTINGS + MTAN_MAX_EXTRA };

/* The name of setting i: the library's settings, then the architecture's; null past the last. */
static const char *setting_name(const mtan_config *config, int32_t i) {
    return i < SETTINGS ? mtan_config_key(i) : extra_name(config, i - SETTINGS);
}

mtan_status mtan_model_save(const mtan_model *model, const mtan_trainer *trainer, const mtan_file_pair *pairs,
                            size_t n_pairs, mtan_write_fn write, void *context) {
    mtan_file_entry entries[MTAN_MAX_PARAMS + 4];
    mtan_file_pair all[ALL_SETTINGS + 4 + MTAN_MAX_PAIRS];
    mtan_param params[MTAN_MAX_PARAMS];
    char keys[ALL_SETTINGS][KEY_SIZE], values[ALL_SETTINGS][NUMBER_SIZE], step[NUMBER_SIZE];
    size_t n = 0, m = 0, P;
    mtan_status status = check_reals(model);
    if (!write || (n_pairs > 0 && !pairs)) return MTAN_ERR_NULL;
    if (status != MTAN_OK) return status;
    if (n_pairs > MTAN_MAX_PAIRS) return MTAN_ERR_SIZE;
    P = mtan_weights_count(&model->config);
    for (int32_t i = 0; i < mtan_param_count(&model->config); i++, n++) {
        params[i] = param_at(&model->config, i);
        entries[n] = entry_of(params[i].name, params[i].rank, (size_t)params[i].rows, (size_t)params[i].cols,
                              model->weights + model->offset[i]);
    }
    if (model->config.reference == MTAN_REF_GIVEN)
        entries[n++] = entry_of(KEY_PREFIX "ref", 1, (size_t)model->config.ref_points, 1, model->config.ref);
    all[m].key = "format", all[m++].value = "pt";
    all[m].key = KEY_PREFIX "version", all[m++].value = MTAN_VERSION;
    all[m].key = ARCHITECTURE, all[m++].value = architecture_of(&model->config)->name;
    for (int32_t i = 0; setting_name(&model->config, i); i++, m++) {
        const char *name = setting_name(&model->config, i);
        settings_key(keys[i], name);
        if ((status = mtan_config_get(&model->config, name, values[i], sizeof values[i])) != MTAN_OK) return status;
        all[m].key = keys[i];
        all[m].value = values[i];
    }
    if (trainer) {
        entries[n++] = entry_of(KEY_PREFIX "moment1", 1, P, 1, trainer->moment1);
        entries[n++] = entry_of(KEY_PREFIX "moment2", 1, P, 1, trainer->moment2);
        if (trainer->average) entries[n++] = entry_of(KEY_PREFIX "average", 1, P, 1, trainer->average);
        format_number(step, (double)trainer->step);
        all[m].key = KEY_PREFIX "step", all[m++].value = step;
    }
    for (size_t i = 0; i < n_pairs; i++) all[m++] = pairs[i];
    return mtan_file_write(entries, n, all, m, write, context);
}

/* A tensor of a trainer's state in a file, (P) reals. `to` is null when this trainer does not have it. */
typedef struct trainer_tensor {
    const char *name;
    mtan_real *to;
} trainer_tensor;

enum { TRAINER_TENSORS = 3 };

static mtan_status find_trainer_tensor(const mtan_file *file, const trainer_tensor *t, size_t P,
                                       mtan_tensor_view *view) {
    const mtan_status status = t->to ? mtan_file_tensor(file, t->name, view) : MTAN_OK;
    if (status != MTAN_OK || !t->to) return status;
    if (view->count != P || view->dtype != MTAN_DTYPE_REAL) return MTAN_ERR_SHAPE;
    return check_elements(*view, MTAN_ERR_NUMERIC);
}

/* Sends the weights and the trainer's state to its device, if it has one. */
static mtan_status send_trainer(const mtan_trainer *trainer, const trainer_tensor *all, size_t bytes) {
    const mtan_device *device = trainer->model->backend->device;
    if (!device) return MTAN_OK;
    for (int32_t i = 0; i < TRAINER_TENSORS; i++)
        if (all[i].to && !device->send(all[i].to, bytes)) return MTAN_ERR_DEVICE;
    return device->send(trainer->weights, bytes) ? MTAN_OK : MTAN_ERR_DEVICE;
}

/* Everything is checked before anything is changed. */
mtan_status mtan_trainer_load(mtan_trainer *trainer, const mtan_file *file) {
    mtan_tensor_view view[TRAINER_TENSORS];
    const mtan_architecture *known[2] = {NULL, NULL};
    mtan_config saved; /* only checks that the file is one of ours; the shapes decide */
    mtan_precision precision;
    char text[NUMBER_SIZE];
    double step;
    size_t P;
    mtan_status status;
    if (!trainer || !file) return MTAN_ERR_NULL;
    const trainer_tensor all[TRAINER_TENSORS] = {{KEY_PREFIX "moment1", trainer->moment1},
                                                 {KEY_PREFIX "moment2", trainer->moment2},
                                                 {KEY_PREFIX "average", trainer->average}};
    known[0] = trainer->model->config.architecture;
    if ((status = read_settings(&saved, known, file)) != MTAN_OK) return status;
    P = mtan_weights_count(&trainer->model->config);
    for (int32_t i = 0; i < TRAINER_TENSORS; i++)
        if ((status = find_trainer_tensor(file, &all[i], P, &view[i])) != MTAN_OK) return status;
    if ((status = mtan_file_metadata(file, KEY_PREFIX "step", text, sizeof text, NULL)) != MTAN_OK) return status;
    if (!parse_number(text, &step) || !(step >= 0 && step < 1e15)) return MTAN_ERR_FILE;
    if ((status = check_params(file, &trainer->model->config, &precision)) != MTAN_OK) return status;
    if ((status = read_params(file, &trainer->model->config, trainer->weights)) != MTAN_OK) return status;
    for (int32_t i = 0; i < TRAINER_TENSORS; i++)
        if (all[i].to) mtan_view_read(&view[i], all[i].to, P);
    trainer->step = (int64_t)step;
    return send_trainer(trainer, all, P * sizeof(mtan_real));
}

/* ==== 16. Preparation ============================================================================================
 * Turns raw observations into the input of a model: times on the record's clock, events in order, repeats averaged,
 * unobserved channels filled, codes for missing values left out, values clipped and scaled. The preprocessing is copied
 * from the file into the caller's memory once; the file is not read again. */

#ifdef MTAN_DOUBLE
#define LARGEST_REAL 0x1.fffffffffffffp+1023
#else
#define LARGEST_REAL 0x1.fffffep+127f
#endif

/* ---- events in order ---- */

static int32_t event_before(const mtan_event *a, const mtan_event *b) {
    return a->time < b->time || (!(a->time > b->time) && a->channel < b->channel);
}

static void reverse_events(mtan_event *e, int32_t n) {
    for (int32_t i = 0, j = n - 1; i < j; i++, j--) {
        const mtan_event swap = e[i];
        e[i] = e[j], e[j] = swap;
    }
}

/* How many of n sorted events come before x; with `also_equal`, events equal to x count, too. */
static int32_t events_before(const mtan_event *e, int32_t n, const mtan_event *x, int32_t also_equal) {
    int32_t low = 0;
    while (n > 0) {
        const int32_t half = n / 2;
        if (also_equal ? !event_before(x, &e[low + half]) : event_before(&e[low + half], x))
            low += half + 1, n -= half + 1;
        else n = half;
    }
    return low;
}

/* Merges the sorted lists 0..middle-1 and middle..n-1 in place. Splits the longer list in half and the other list at
 * the same value, then exchanges the two inner parts by a rotation. Two smaller merges remain. */
static void merge_halves(mtan_event *e, int32_t middle, int32_t n) {
    int32_t i, j;
    if (middle == 0 || middle == n || !event_before(&e[middle], &e[middle - 1])) return;
    if (middle > n - middle) {
        i = middle / 2;
        j = middle + events_before(e + middle, n - middle, &e[i], 0);
    } else {
        j = n == 2 ? n : middle + (n - middle) / 2; /* n == 2: exchange the two */
        i = n == 2 ? 0 : events_before(e, middle, &e[j], 1);
    }
    reverse_events(e + i, middle - i);
    reverse_events(e + middle, j - middle);
    reverse_events(e + i, j - i);
    merge_halves(e, i, i + j - middle);
    merge_halves(e + i + j - middle, middle - i, n - (i + j - middle));
}

/* Whether the events are sorted already, as in most files. */
static int32_t in_order(const mtan_event *e, int32_t n) {
    for (int32_t i = 1; i < n; i++)
        if (event_before(&e[i], &e[i - 1])) return 0;
    return 1;
}

/* A stable merge sort in O(n log^2 n); linear when the events are sorted already. */
static void sort_events(mtan_event *e, int32_t n) {
    if (in_order(e, n)) return;
    sort_events(e, n / 2);
    sort_events(e + n / 2, n - n / 2);
    merge_halves(e, n / 2, n);
}

int32_t mtan_events_merge(mtan_event *events, int32_t n) {
    int32_t kept = 0;
    sort_events(events, n);
    for (int32_t i = 0, j; i < n; i = j) {
        double sum = 0;
        for (j = i; j < n && !event_before(&events[i], &events[j]); j++) sum += (double)events[j].value;
        events[kept] = events[i];
        events[kept++].value = (mtan_real)(sum / (double)(j - i));
    }
    return kept;
}

/* ---- arithmetic, in mtan_real as the published code has it ---- */

static mtan_real within(mtan_real x, mtan_real low, mtan_real high) {
    return x < low ? low : x > high ? high : x; /* NaN stays */
}

static mtan_real model_value(const mtan_prep_channel *c, mtan_real x) {
    if ((c->has & MTAN_HAS_LOW) && x < c->low) x = c->low;
    else if ((c->has & MTAN_HAS_HIGH) && x > c->high) x = c->high;
    return within((x - c->offset) / c->scale, -LARGEST_REAL, LARGEST_REAL);
}

static const mtan_prep_channel *channel_of(const mtan_prep *prep, int32_t channel) {
    return prep && prep->channel && channel >= 0 && channel < prep->channels ? &prep->channel[channel] : NULL;
}

mtan_real mtan_prep_time(const mtan_prep *prep, double time) {
    const mtan_real scale = prep ? (mtan_real)prep->time_scale : 1;
    return within((mtan_real)time / scale, -LARGEST_REAL, LARGEST_REAL);
}

double mtan_prep_raw_time(const mtan_prep *prep, double time) {
    return prep ? time * prep->time_scale : time;
}

double mtan_prep_raw_value(const mtan_prep *prep, int32_t channel, double value) {
    const mtan_prep_channel *c = channel_of(prep, channel);
    return c ? value * (double)c->scale + (double)c->offset : value;
}

double mtan_prep_raw_spread(const mtan_prep *prep, int32_t channel, double value) {
    const mtan_prep_channel *c = channel_of(prep, channel);
    const double scale = c ? (double)c->scale : 1; /* a published maximum may be negative */
    const double band = c && (c->has & MTAN_HAS_BAND) ? (double)c->band : 1;
    return value * (scale < 0 ? -scale : scale) * band;
}

mtan_real mtan_prep_number(const mtan_prep *prep, int32_t index, double number) {
    if (!prep || !prep->number || index < 0 || index >= prep->classes) return (mtan_real)number;
    return (mtan_real)((number - prep->number[index].offset) / prep->number[index].scale);
}

double mtan_prep_raw_number(const mtan_prep *prep, int32_t index, double number) {
    if (!prep || !prep->number || index < 0 || index >= prep->classes) return number;
    return number * prep->number[index].scale + prep->number[index].offset;
}

static int32_t is_missing(const mtan_prep_channel *c, mtan_real value) {
    return c && (c->has & MTAN_HAS_MISSING) && value == c->missing;
}

static void scale_event(const mtan_prep *prep, mtan_event *e) {
    const mtan_prep_channel *c = channel_of(prep, e->channel);
    e->time = mtan_prep_time(prep, (double)e->time);
    e->value = c ? model_value(c, e->value) : within(e->value, -LARGEST_REAL, LARGEST_REAL);
}

int32_t mtan_prep_scale(const mtan_prep *prep, mtan_event *events, int32_t n) {
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        if (is_missing(channel_of(prep, events[i].channel), events[i].value)) continue;
        events[kept] = events[i];
        scale_event(prep, &events[kept++]);
    }
    return kept;
}

/* ---- a record ---- */

/* Whether x lies outside of a range by more than the range's width. */
static int32_t is_far(double x, double least, double most) {
    const double width = most - least;
    return least <= most && (x < least - width || x > most + width);
}

int32_t mtan_prep_far_value(const mtan_prep *prep, int32_t channel, double value) {
    const mtan_prep_channel *c = channel_of(prep, channel);
    return c && (c->has & MTAN_HAS_RANGE) && is_far(value, (double)c->least, (double)c->most);
}

int32_t mtan_prep_far_time(const mtan_prep *prep, double time) {
    return prep && is_far(time, prep->first, prep->last);
}

static int32_t fits_real(double x) {
    return x >= -(double)LARGEST_REAL && x <= (double)LARGEST_REAL;
}

/* Turns a raw observation into an event in the data's units, with its time counted from `origin`. */
static mtan_status raw_event(const mtan_prep *prep, const mtan_observation *raw, double origin, mtan_event *event) {
    const double time = raw->channel < prep->statics ? 0 : raw->time - origin;
    if (!fits_real(time) || !fits_real(raw->value) || raw->channel < 0 || raw->channel >= prep->channels)
        return MTAN_ERR_INPUT;
    event->time = (mtan_real)time;
    event->channel = raw->channel;
    event->value = (mtan_real)raw->value;
    return MTAN_OK;
}

mtan_status mtan_prep_event(const mtan_prep *prep, const mtan_observation *raw, mtan_event *event) {
    mtan_event e;
    mtan_status status;
    if (!prep || !raw || !event) return MTAN_ERR_NULL;
    if ((status = raw_event(prep, raw, 0, &e)) != MTAN_OK) return status;
    if (mtan_prep_scale(prep, &e, 1) == 0) return MTAN_ERR_MISSING;
    *event = e;
    return MTAN_OK;
}

/* Of the observations that change; 0 if there is none. */
static double first_time(const mtan_prep *prep, const mtan_observation *raw, int32_t n) {
    double first = 0;
    int32_t found = 0;
    for (int32_t i = 0; i < n; i++)
        if (raw[i].channel >= prep->statics && (!found++ || raw[i].time < first)) first = raw[i].time;
    return first;
}

/* How many channels have a fill value for records that do not observe them. */
static int32_t count_fills(const mtan_prep *prep) {
    int32_t n = 0;
    for (int32_t d = 0; prep->channel && d < prep->channels; d++) n += (prep->channel[d].has & MTAN_HAS_FILL) != 0;
    return n;
}

static int32_t observes(const mtan_event *events, int32_t n, int32_t channel) {
    while (n > 0 && events[n - 1].channel != channel) n--;
    return n > 0;
}

/* Appends an event at time 0 for each channel that has a fill value and no observation. Returns how many. */
static int32_t fill_channels(const mtan_prep *prep, mtan_event *events, int32_t n) {
    int32_t filled = 0;
    for (int32_t d = 0; d < prep->channels; d++) {
        const mtan_event e = {0, d, prep->channel[d].fill};
        if ((prep->channel[d].has & MTAN_HAS_FILL) && !observes(events, n, d)) events[n + filled++] = e;
    }
    return filled;
}

static void count_far(const mtan_prep *prep, const mtan_event *events, int32_t n, mtan_prepared *found) {
    for (int32_t i = 0; i < n; i++) {
        const mtan_event *e = &events[i];
        found->far_values += mtan_prep_far_value(prep, e->channel, (double)e->value);
        found->far_times += mtan_prep_far_time(prep, (double)e->time);
    }
}

/* Codes for "not observed" are left out before repeats are averaged, so that no code enters a mean. */
mtan_status mtan_prep_record(const mtan_prep *prep, const mtan_observation *raw, int32_t n, mtan_event *events,
                             int32_t room, mtan_prepared *found) {
    mtan_prepared made;
    int32_t fills, kept = 0;
    if (!prep || (n > 0 && (!raw || !events))) return MTAN_ERR_NULL;
    if (n < 0 || room < 0) return MTAN_ERR_INPUT;
    fills = count_fills(prep);
    if (fills > 0 && !events) return MTAN_ERR_NULL;
    if (room - n < fills) return MTAN_ERR_MEMORY;
    memset(&made, 0, sizeof made);
    made.origin = prep->from_first ? first_time(prep, raw, n) : 0;
    for (int32_t i = 0; i < n; i++) {
        const mtan_status status = raw_event(prep, &raw[i], made.origin, &events[kept]);
        if (status != MTAN_OK) return status;
        kept += !is_missing(channel_of(prep, events[kept].channel), events[kept].value);
    }
    made.missing = n - kept;
    made.events = mtan_events_merge(events, kept);
    made.repeats = kept - made.events;
    count_far(prep, events, made.events, &made);
    if (fills > 0 && (made.filled = fill_channels(prep, events, made.events)) > 0) {
        made.events += made.filled;
        sort_events(events, made.events);
    }
    for (int32_t i = 0; i < made.events; i++) scale_event(prep, &events[i]);
    if (found) *found = made;
    return MTAN_OK;
}

/* ---- names ---- */

/* Compares bytes as strcmp does: negative, 0 or positive. */
static int32_t text_compare(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return (int32_t)(unsigned char)*a - (int32_t)(unsigned char)*b;
}

static void sift_down(int32_t *order, const char *const *names, int32_t at, int32_t n) {
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        const int32_t moved = order[at];
        if (child + 1 < n && text_compare(names[order[child]], names[order[child + 1]]) < 0) child++;
        if (text_compare(names[moved], names[order[child]]) >= 0) return;
        order[at] = order[child], order[child] = moved;
    }
}

/* Heapsort of the indices by name. */
void mtan_names_sort(int32_t *order, const char *const *names, int32_t n) {
    for (int32_t i = 0; i < n; i++) order[i] = i;
    for (int32_t i = n / 2; i > 0; i--) sift_down(order, names, i - 1, n);
    for (int32_t i = n - 1; i > 0; i--) {
        const int32_t largest = order[0];
        order[0] = order[i], order[i] = largest;
        sift_down(order, names, 0, i);
    }
}

static int32_t find_name(const char *const *names, const int32_t *order, int32_t n, const char *name) {
    int32_t low = 0, high = n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2, way = text_compare(names[order[middle]], name);
        if (way == 0) return order[middle];
        if (way < 0) low = middle + 1;
        else high = middle;
    }
    return -1;
}

static int32_t find_unsorted(const char *const *names, int32_t n, const char *name) {
    int32_t i = 0;
    while (i < n && !text_equal(names[i], name)) i++;
    return i < n ? i : -1;
}

/* Skips the leading zeros of a name that is all digits. Other names stay as they are. */
static const char *without_zeros(const char *name) {
    const char *end = name;
    while (*end >= '0' && *end <= '9') end++;
    if (*end || end == name) return name;
    while (name[0] == '0' && name[1]) name++;
    return name;
}

/* The channel of a model without channel names: the number that `name` spells, or -1. */
static int32_t numbered(const char *name, int32_t channels) {
    int64_t number = 0;
    if (!*name) return -1;
    for (; *name >= '0' && *name <= '9' && number < channels; name++) number = 10 * number + (*name - '0');
    return *name == 0 && number < channels ? (int32_t)number : -1;
}

static int32_t find_channel(const mtan_prep *prep, const char *name) {
    if (!prep->channel_names) return numbered(name, prep->channels);
    return prep->order ? find_name(prep->channel_names, prep->order, prep->channels, name)
                       : find_unsorted(prep->channel_names, prep->channels, name);
}

int32_t mtan_prep_channel_named(const mtan_prep *prep, const char *name) {
    int32_t found;
    if (!prep || !name) return -1;
    found = find_channel(prep, name);
    return found >= 0 ? found : find_channel(prep, without_zeros(name));
}

int32_t mtan_prep_class_named(const mtan_prep *prep, const char *name) {
    return prep && name && prep->class_names ? find_unsorted(prep->class_names, prep->classes, name) : -1;
}

/* ---- from a file ---- */

/* Metadata with one number per channel: its key, its field, the flag that it sets, and the word for no number. */
static const struct prep_field {
    const char *key;
    size_t offset;
    uint32_t flag; /* 0: the number is required and finite */
    const char *none;
} prep_fields[] = {
    {"mtan.prep.offset", offsetof(mtan_prep_channel, offset), 0, NULL},
    {"mtan.prep.scale", offsetof(mtan_prep_channel, scale), 0, NULL},
    {"mtan.prep.low", offsetof(mtan_prep_channel, low), MTAN_HAS_LOW, "-inf"},
    {"mtan.prep.high", offsetof(mtan_prep_channel, high), MTAN_HAS_HIGH, "inf"},
    {"mtan.prep.missing", offsetof(mtan_prep_channel, missing), MTAN_HAS_MISSING, "nan"},
    {"mtan.prep.fill", offsetof(mtan_prep_channel, fill), MTAN_HAS_FILL, "nan"},
    {"mtan.prep.least", offsetof(mtan_prep_channel, least), MTAN_HAS_RANGE, "nan"},
    {"mtan.prep.most", offsetof(mtan_prep_channel, most), MTAN_HAS_RANGE, "nan"},
    {"mtan.prep.band", offsetof(mtan_prep_channel, band), MTAN_HAS_BAND, "nan"},
};
enum { PREP_FIELDS = sizeof prep_fields / sizeof prep_fields[0], PREP_NEEDED = 5 };
static const char *const prep_kinds[] = {"none", "published", "minmax", "zscore", "times"};

/* Where the parts of a prep's memory begin, in bytes from its aligned start. */
typedef struct prep_layout {
    size_t numbers, names, channels, orders, texts, total;
    size_t channel_text, class_text, unit_text; /* bytes of each, with a zero */
} prep_layout;

/* The state while a file is read. */
typedef struct prep_reader {
    const mtan_file *file;
    const char *key; /* the last key looked up: where an error is */
    mtan_prep made;
} prep_reader;

/* A metadata value as it stands in the file. */
static mtan_status prep_text(prep_reader *r, const char *key, mtan_text *text) {
    mtan_text name;
    mtan_status status;
    size_t at = 0;
    r->key = key;
    while ((status = mtan_file_metadata_next(r->file, &at, &name, text)) == MTAN_OK)
        if (text_equals(name, key)) return MTAN_OK;
    return status;
}

/* The next word of a text, between spaces: 1, 0 at the end, -1 where it is too long for a number. */
static int32_t next_word(mtan_text *text, char word[NUMBER_SIZE]) {
    size_t n = 0;
    while (text->length > 0 && *text->raw == ' ') text->raw++, text->length--;
    while (text->length > 0 && *text->raw != ' ') {
        if (n + 1 == NUMBER_SIZE) return -1;
        word[n++] = *text->raw++, text->length--;
    }
    word[n] = 0;
    return n > 0;
}

/* Reads exactly n numbers and gives each to `put`. The word `none` (may be null) means no number and is skipped. */
typedef void (*take_number)(void *context, int32_t index, double x);

static mtan_status prep_numbers(prep_reader *r, const char *key, int32_t n, const char *none, take_number put,
                                void *context) {
    char word[NUMBER_SIZE];
    mtan_text text;
    mtan_status status = prep_text(r, key, &text);
    if (status != MTAN_OK) return status;
    for (int32_t i = 0; i < n; i++) {
        double x = 0;
        if (next_word(&text, word) != 1) return MTAN_ERR_FILE;
        if (none && text_equal(word, none)) continue;
        if (!parse_number(word, &x) || !is_finite((mtan_real)x)) return MTAN_ERR_FILE;
        put(context, i, x);
    }
    return next_word(&text, word) == 0 ? MTAN_OK : MTAN_ERR_FILE;
}

typedef struct field_target {
    mtan_prep_channel *channel;
    const struct prep_field *field;
} field_target;

static void take_field(void *context, int32_t index, double x) {
    const field_target *t = context;
    const mtan_real value = (mtan_real)x;
    memcpy((char *)&t->channel[index] + t->field->offset, &value, sizeof value);
    t->channel[index].has |= t->field->flag;
}

static void take_double(void *context, int32_t index, double x) {
    ((double *)context)[index] = x;
}

/* Older files have only the fields up to `missing`; their `fill` is mtan.data.means. Where a file has one end of a range
 * alone, the range stays empty, and nothing is far. */
static mtan_status read_fields(prep_reader *r, mtan_prep_channel *channel) {
    const int32_t D = r->made.channels;
    memset(channel, 0, (size_t)D * sizeof *channel);
    for (int32_t d = 0; d < D; d++) channel[d].least = LARGEST_REAL, channel[d].most = -LARGEST_REAL;
    for (int32_t f = 0; f < PREP_FIELDS; f++) {
        field_target target = {channel, &prep_fields[f]};
        mtan_status status = prep_numbers(r, target.field->key, D, target.field->none, take_field, &target);
        if (status == MTAN_ERR_MISSING && target.field->flag == MTAN_HAS_FILL)
            status = prep_numbers(r, "mtan.data.means", D, "nan", take_field, &target);
        if (status != MTAN_OK && (status != MTAN_ERR_MISSING || f < PREP_NEEDED)) return MTAN_ERR_FILE;
    }
    for (int32_t d = 0; d < D; d++)
        if (!(channel[d].has & MTAN_HAS_RANGE)) channel[d].least = channel[d].most = 0;
    return MTAN_OK;
}

/* Checks that every value can be scaled: scale is not 0, low is not above high, band is positive. */
static mtan_status check_fields(prep_reader *r, const mtan_prep_channel *c) {
    for (int32_t d = 0; d < r->made.channels; d++, c++) {
        r->key = prep_fields[1].key;
        if (!(c->scale < 0 || c->scale > 0)) return MTAN_ERR_FILE;
        r->key = prep_fields[2].key;
        if ((c->has & MTAN_HAS_LOW) && (c->has & MTAN_HAS_HIGH) && c->low > c->high) return MTAN_ERR_FILE;
        r->key = "mtan.prep.band";
        if ((c->has & MTAN_HAS_BAND) && !(c->band > 0)) return MTAN_ERR_FILE;
    }
    return MTAN_OK;
}

/* Of the three scales the third is for new records. The others are for training and validation records, which the
 * published code scaled separately. */
static mtan_status read_clock(prep_reader *r) {
    double scale[3] = {0, 0, 0}, span[2] = {1, 0};
    mtan_text text;
    mtan_status status = prep_numbers(r, "mtan.time.scale", 3, NULL, take_double, scale);
    if (status != MTAN_OK || !((mtan_real)scale[2] > 0)) return MTAN_ERR_FILE;
    r->made.time_scale = scale[2];
    status = prep_numbers(r, "mtan.time.span", 2, NULL, take_double, span);
    if (status != MTAN_OK && status != MTAN_ERR_MISSING) return MTAN_ERR_FILE;
    r->made.first = span[0], r->made.last = span[1];
    if (prep_text(r, "mtan.data.origin", &text) == MTAN_OK) r->made.from_first = text_equals(text, "record");
    if (!r->made.from_first && text_equal(r->made.unit, "hours")) /* own data with dates counts from the first, too */
        r->made.from_first = prep_text(r, "mtan.data.kind", &text) == MTAN_OK && text_equals(text, "own");
    return MTAN_OK;
}

/* Reads a list of up to n JSON strings, none of them empty, and decodes them in place. */
static mtan_status read_names(char *text, const char **names, int32_t n, int32_t *count) {
    json j = {(const uint8_t *)text, (const uint8_t *)text + text_length(text), 1, 0};
    mtan_text coded;
    *count = 0;
    if (!json_take(&j, '[')) return MTAN_ERR_FILE;
    do {
        char *name;
        size_t length = 0;
        if (*count == n || !json_string(&j, &coded)) return MTAN_ERR_FILE;
        name = text + (coded.raw - text);
        mtan_text_decode(&coded, name, coded.length + 1, &length); /* valid, and never longer */
        if (length == 0 || text_length(name) != length) return MTAN_ERR_FILE;
        names[(*count)++] = name;
    } while (json_take(&j, ','));
    json_space(&j);
    if (!json_take(&j, ']')) return MTAN_ERR_FILE;
    json_space(&j);
    return j.at == j.end ? MTAN_OK : MTAN_ERR_FILE;
}

static int32_t all_different(const int32_t *order, const char *const *names, int32_t n) {
    for (int32_t i = 1; i < n; i++)
        if (text_equal(names[order[i - 1]], names[order[i]])) return 0;
    return 1;
}

/* Reads and sorts the names under a key. Without names (size 0) *out stays null. There must be at least `least`;
 * missing ones, up to `most`, become "". */
static mtan_status open_names(prep_reader *r, const char *key, char *text, size_t size, const char **names,
                              int32_t *order, int32_t least, int32_t most, const char *const **out) {
    int32_t count;
    mtan_status status;
    r->key = key;
    if (size == 0) return MTAN_OK;
    if ((status = mtan_file_metadata(r->file, key, text, size, NULL)) != MTAN_OK) return MTAN_ERR_FILE;
    if ((status = read_names(text, names, most, &count)) != MTAN_OK) return status;
    if (count < least) return MTAN_ERR_FILE;
    mtan_names_sort(order, names, count);
    if (!all_different(order, names, count)) return MTAN_ERR_FILE;
    while (count < most) names[count++] = "";
    *out = names;
    return MTAN_OK;
}

/* Reads a count from the model's settings. The header limits it: each counted item takes at least two bytes there. */
static mtan_status read_count(prep_reader *r, const char *key, int32_t *n) {
    double x = 0;
    const mtan_status status = prep_numbers(r, key, 1, NULL, take_double, &x);
    if (status == MTAN_ERR_MISSING) return status;
    if (status != MTAN_OK || !(x >= 0 && x <= MTAN_FILE_MAX_HEADER / 2) || x != (double)(int32_t)x)
        return MTAN_ERR_FILE;
    *n = (int32_t)x;
    return MTAN_OK;
}

/* Without a kind there is no preprocessing, and none of its fields may be present. */
static mtan_status read_kind(prep_reader *r) {
    mtan_text text;
    int32_t kinds = sizeof prep_kinds / sizeof prep_kinds[0], found = 0;
    if (prep_text(r, "mtan.prep.kind", &text) == MTAN_OK) {
        while (found < kinds && !text_equals(text, prep_kinds[found])) found++;
        r->made.fitted = 1;
        return found < kinds ? MTAN_OK : MTAN_ERR_FILE;
    }
    for (int32_t f = 0; f < PREP_FIELDS; f++)
        if (prep_text(r, prep_fields[f].key, &text) == MTAN_OK) return MTAN_ERR_FILE;
    return MTAN_OK;
}

/* Bytes of a text with its terminating zero; 0 when the text is missing. */
static size_t text_room(const mtan_file *file, const char *key) {
    size_t length = 0;
    return mtan_file_metadata(file, key, NULL, 0, &length) == MTAN_OK ? length + 1 : 0;
}

#define CHANNEL_NAMES "mtan.names.channels"
#define CLASS_NAMES "mtan.names.classes"
#define TIME_UNIT "mtan.time.unit"
#define NUMBER_OFFSET "mtan.number.offset"
#define NUMBER_SCALE "mtan.number.scale"

static size_t place(size_t *top, size_t n, size_t size) {
    const size_t at = *top;
    *top = count_sum(at, count_product(size, n));
    return at;
}

/* Reads the counts and the kind, and lays out the memory. */
static mtan_status prep_start(prep_reader *r, prep_layout *l, const mtan_file *file) {
    mtan_status status;
    memset(r, 0, sizeof *r), memset(l, 0, sizeof *l);
    r->file = file;
    r->made.unit = "", r->made.time_scale = 1, r->made.first = 1, r->made.last = 0;
    if (read_count(r, "mtan.channels", &r->made.channels) != MTAN_OK || r->made.channels == 0) return MTAN_ERR_FILE;
    status = read_count(r, "mtan.classes", &r->made.classes);
    if (status != MTAN_OK && status != MTAN_ERR_MISSING) return status;
    status = read_count(r, "mtan.statics", &r->made.statics);
    if (status != MTAN_OK && status != MTAN_ERR_MISSING) return status;
    if ((status = read_kind(r)) != MTAN_OK) return status;
    l->channel_text = text_room(file, CHANNEL_NAMES);
    l->class_text = r->made.classes > 0 ? text_room(file, CLASS_NAMES) : 0;
    l->unit_text = text_room(file, TIME_UNIT);
    const size_t D = (size_t)r->made.channels, C = (size_t)r->made.classes;
    const size_t named = count_sum(l->channel_text ? D : 0, l->class_text ? C : 0);
    l->numbers = place(&l->total, text_room(file, NUMBER_OFFSET) ? C : 0, sizeof(mtan_prep_unit)); /* doubles first */
    l->names = place(&l->total, named, sizeof(char *));
    l->channels = place(&l->total, r->made.fitted ? D : 0, sizeof(mtan_prep_channel));
    l->orders = place(&l->total, named, sizeof(int32_t));
    l->texts = place(&l->total, count_sum(count_sum(l->channel_text, l->class_text), l->unit_text), 1);
    return l->total < SIZE_MAX - MTAN_ALIGN ? MTAN_OK : MTAN_ERR_SIZE;
}

mtan_status mtan_prep_size(const mtan_file *file, size_t *bytes) {
    prep_reader r;
    prep_layout l;
    mtan_status status;
    if (!file || !bytes) return MTAN_ERR_NULL;
    if ((status = prep_start(&r, &l, file)) != MTAN_OK) return status;
    *bytes = l.total + MTAN_ALIGN - 1;
    return MTAN_OK;
}

static mtan_status read_all_names(prep_reader *r, const prep_layout *l, char *base) {
    mtan_prep *made = &r->made;
    const char **names = (const char **)(void *)(base + l->names);
    int32_t *order = (int32_t *)(void *)(base + l->orders);
    char *text = base + l->texts;
    const int32_t D = l->channel_text ? made->channels : 0;
    mtan_status status =
        open_names(r, CHANNEL_NAMES, text, l->channel_text, names, order, D, made->channels, &made->channel_names);
    if (status != MTAN_OK) return status;
    if (made->channel_names) made->order = order;
    text += l->channel_text;
    status =
        open_names(r, CLASS_NAMES, text, l->class_text, names + D, order + D, 0, made->classes, &made->class_names);
    if (status != MTAN_OK) return status;
    text += l->class_text;
    r->key = TIME_UNIT;
    if (l->unit_text && mtan_file_metadata(r->file, TIME_UNIT, text, l->unit_text, NULL) != MTAN_OK)
        return MTAN_ERR_FILE;
    if (l->unit_text) made->unit = text;
    return MTAN_OK;
}

/* The positive class: the one that the file names, else the second of two. */
static mtan_status read_positive(prep_reader *r) {
    mtan_prep *made = &r->made;
    mtan_text text;
    made->positive = made->classes == 2 ? 1 : -1;
    if (prep_text(r, "mtan.names.positive", &text) != MTAN_OK) return MTAN_OK;
    for (int32_t c = 0; made->class_names && c < made->classes; c++)
        if (text_equals(text, made->class_names[c])) return made->positive = c, MTAN_OK;
    return MTAN_ERR_FILE;
}

static void take_offset(void *context, int32_t index, double x) {
    ((mtan_prep_unit *)context)[index].offset = x;
}

static void take_scale(void *context, int32_t index, double x) {
    ((mtan_prep_unit *)context)[index].scale = x;
}

/* Offset and scale that take predicted numbers to the data's units: present for all numbers, or for none. */
static mtan_status read_units(prep_reader *r, mtan_prep_unit *unit) {
    const int32_t C = r->made.classes;
    mtan_status status = prep_numbers(r, NUMBER_OFFSET, C, NULL, take_offset, unit);
    if (status == MTAN_ERR_MISSING) return MTAN_OK;
    if (status == MTAN_OK) status = prep_numbers(r, NUMBER_SCALE, C, NULL, take_scale, unit);
    for (int32_t c = 0; status == MTAN_OK && c < C; c++)
        if (!((mtan_real)unit[c].scale > 0)) status = MTAN_ERR_FILE;
    if (status == MTAN_OK) r->made.number = unit;
    return status == MTAN_OK ? MTAN_OK : MTAN_ERR_FILE;
}

static mtan_status prep_read(prep_reader *r, const prep_layout *l, char *base) {
    mtan_prep_channel *channel = (mtan_prep_channel *)(void *)(base + l->channels);
    mtan_status status = read_all_names(r, l, base);
    if (status == MTAN_OK) status = read_units(r, (mtan_prep_unit *)(void *)(base + l->numbers));
    if (status != MTAN_OK || (status = read_positive(r)) != MTAN_OK || !r->made.fitted) return status;
    r->made.channel = channel;
    if ((status = read_fields(r, channel)) != MTAN_OK) return status;
    if ((status = check_fields(r, channel)) != MTAN_OK) return status;
    return read_clock(r);
}

mtan_status mtan_prep_open(mtan_prep *prep, const mtan_file *file, void *memory, size_t bytes, const char **key) {
    prep_reader r;
    prep_layout l;
    mtan_status status;
    if (!prep || !file || !memory) return MTAN_ERR_NULL;
    status = prep_start(&r, &l, file);
    if (status == MTAN_OK && bytes < l.total + MTAN_ALIGN - 1) status = MTAN_ERR_MEMORY;
    if (status == MTAN_OK) status = prep_read(&r, &l, (char *)align_memory(memory));
    if (status != MTAN_OK && key) *key = r.key;
    if (status == MTAN_OK) *prep = r.made;
    return status;
}
#endif /* MTAN_KERNELS_ONLY */
#endif /* MTAN_CONSTANTS_ONLY */
