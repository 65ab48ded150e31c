/* kernels.cu: all that runs on a GPU. One file, which nvcc, NVRTC, clang and, through tests/cuda/cuda_shim.h, any C++ compiler
 * take as it stands; it includes no header of CUDA's and needs no library.
 *
 * mtan.c's scalar kernels specify what is computed. Functions, products without a split, attention and all that is
 * elementwise have the bits of the fused class, because the order of every sum is the same and exp, log, sin and the others
 * are the same polynomials; sums over rows, softmax and long products run by fixed trees, which round differently but are
 * the same from run to run and from GPU to GPU. There are no atomics. Compile without contraction (--fmad=false): where a
 * fused multiply-add is meant, fmaf says so.
 *
 *    1. Math           2. Elementwise, moves, sums      3. Products        4. Embedding, softmax
 *    5. Attention      6. RBF smoothing                 7. GRU             8. The variational part, losses
 *    9. Moving rows   10. Decoder attention            11. Random numbers
 */
#include "arguments.h"

#define DEVICE static __device__ __forceinline__
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(name##_threads) name##_kernel
#define WHOLE_WARP 0xFFFFFFFFu

/* The table in arguments.h and the definitions below cannot disagree: these declarations come from it. */
#define X(name, arguments, x, y, hot) extern "C" __global__ void name##_kernel(const struct arguments a);
MTAN_CUDA_KERNELS(X)
#undef X

#define EACH(i, n) for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += gridDim.x * blockDim.x)

/* ==== 1. Math: section 2 of mtan.c, where the formulas and their errors are explained, with fmaf ==================== */

#define MTAN_CONSTANTS_ONLY
#include "../../mtan.c"

#define FAR ((float)ATTEND_FAR)
/* Horner's rule in x: POLYNOMIAL(START, STEP) leaves the sum in p. */
#define START(c) float p = c;
#define STEP(c) p = fmaf(p, x, c);

DEVICE float absolute(float x) {
    return __uint_as_float(__float_as_uint(x) & ~SIGN_BIT);
}

DEVICE float times_sign(float y, float x) {
    return __uint_as_float(__float_as_uint(y) ^ (__float_as_uint(x) & SIGN_BIT));
}

DEVICE float exp_rest(float x, float n) {
    return fmaf(n, -LN2_LO, fmaf(n, -LN2_HI, x));
}

DEVICE float exp_reduced(float x) {
    EXP_POLYNOMIAL(START, STEP)
    return fmaf(p, x * x, x) + 1.0f;
}

DEVICE float exp_of(float x) {
    float t, p;
    unsigned e;
    x = x > EXP_MOST ? EXP_MOST : x;
    x = x < EXP_LEAST ? EXP_LEAST : x;
    t = fmaf(x, LOG2_E, ROUND);
    p = exp_reduced(exp_rest(x, t - ROUND));
    e = __float_as_uint(t) - ROUND_BITS + 2 * 127;
    return p * __uint_as_float((e >> 1) << 23) * __uint_as_float((e - (e >> 1)) << 23);
}

/* exp(x) = significand 2^exponent */
DEVICE float exponent_of(float x) {
    const float whole = __uint_as_float((__float_as_uint(x) & SIGN_BIT) | WHOLE_BITS);
    return fmaf(x, LOG2_E, whole) - whole;
}

DEVICE float significand_of(float x, float exponent) {
    float r = exp_rest(x, exponent);
    r = r > REST_MOST ? REST_MOST : r;
    return exp_reduced(r < -REST_MOST ? -REST_MOST : r);
}

DEVICE float power_of(float k) {
    k = k < -127.0f ? -127.0f : k;
    return __uint_as_float(__float_as_uint(k + (ROUND + 127.0f)) << 23);
}

/* exp(x) / 2^base */
DEVICE float exp_under(float x, float base) {
    const float n = exponent_of(x);
    return significand_of(x, n) * power_of(n - base);
}

DEVICE float log_reduced(float x, float k) {
    const float z = x * x;
    LOG_POLYNOMIAL(START, STEP)
    p = fmaf(p * x, z, k * LN2_LO);
    p = fmaf(-0.5f, z, p) + x;
    return fmaf(k, LN2_HI, p);
}

/* log(x 2^base) */
DEVICE float log_under(float x, float base) {
    const int tiny = x < LEAST_NORMAL;
    const unsigned u = __float_as_uint(tiny ? x * 8388608.0f : x) + (ONE_BITS - ROOT_HALF_BITS);
    const float k = __uint_as_float(ROUND_BITS + (u >> 23)) - (ROUND + 127.0f);
    const float f = __uint_as_float((u & FRACTION_BITS) + ROOT_HALF_BITS) - 1.0f;
    float y = log_reduced(f, (tiny ? k - 23.0f : k) + base);
    y = x > 0 ? y : (x == 0 ? __uint_as_float(SIGN_BIT | INFINITE_BITS) : __uint_as_float(NAN_BITS));
    return x <= LARGEST ? y : x;
}

DEVICE float log_of(float x) {
    return log_under(x, 0);
}

DEVICE float reduce(float x, float n) {
    const float a = fmaf(n, -HALF_PI_1, x), p = n * -HALF_PI_2, r = a + p, e = (a - r) + p;
    return r + (e + fmaf(n, -HALF_PI_3, fmaf(n, -HALF_PI_2, -p)));
}

DEVICE float sin_reduced(float r) {
    const float x = r * r;
    SIN_POLYNOMIAL(START, STEP)
    return fmaf(p, r * x, r);
}

DEVICE float cos_reduced(float r) {
    const float x = r * r;
    COS_POLYNOMIAL(START, STEP)
    return fmaf(p, x * x, x * -0.5f) + 1.0f;
}

DEVICE float sine(float x, unsigned quarter) {
    float t, r, s, c;
    x = x <= ANGLE_MOST ? x : x - x;
    t = fmaf(x, TWO_OVER_PI, ROUND);
    r = reduce(x, t - ROUND);
    s = sin_reduced(r), c = cos_reduced(r);
    quarter += __float_as_uint(t);
    return __uint_as_float(__float_as_uint(quarter & 1 ? c : s) ^ (quarter & 2) << 30);
}

DEVICE float sin_of(float x) {
    return times_sign(sine(absolute(x), 0), x);
}

DEVICE float cos_of(float x) {
    return sine(absolute(x), 1);
}

DEVICE float tanh_of(float argument) {
    const float a = absolute(argument), x = a * a, large = 1.0f - 2.0f / (exp_of(a + a) + 1.0f);
    TANH_POLYNOMIAL(START, STEP)
    p = fmaf(p, x * a, a);
    return times_sign(a < TANH_NEAR ? p : large, argument);
}

DEVICE float sigmoid_of(float x) {
    const float e = exp_of(-absolute(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

DEVICE float softplus_of(float x) {
    const float e = exp_of(-absolute(x));
    const int big = e > SOFTPLUS_LARGE;
    const float y = log_reduced(big ? fmaf(e, 0.5f, -0.5f) : e, big ? 1.0f : 0.0f);
    return (x > 0 ? x : 0.0f) + y;
}

/* ==== 2. Elementwise, moves, sums ================================================================================== */

DEVICE float function_of(int f, float x) {
    switch (f) {
    case FUNCTION_EXP: return exp_of(x);
    case FUNCTION_LOG: return log_of(x);
    case FUNCTION_SIN: return sin_of(x);
    case FUNCTION_COS: return cos_of(x);
    case FUNCTION_TANH: return tanh_of(x);
    case FUNCTION_SIGMOID: return sigmoid_of(x);
    case FUNCTION_SOFTPLUS: return softplus_of(x);
    default: return __fsqrt_rn(x);
    }
}

KERNEL(map)(const struct elementwise a) {
    EACH(i, a.n) a.y[i] = function_of(a.function, a.x[i]);
}

/* y the significand of exp(x), m its exponent */
KERNEL(exp_parts)(const struct elementwise a) {
    EACH(i, a.n) {
        a.m[i] = exponent_of(a.x[i]);
        a.y[i] = significand_of(a.x[i], a.m[i]);
    }
}

KERNEL(fill)(const struct elementwise a) {
    EACH(i, a.n) a.y[i] = a.c[0];
}

/* NaN passes */
KERNEL(relu_forward)(const struct elementwise a) {
    EACH(i, a.n) a.y[i] = a.y[i] <= 0 ? 0 : a.y[i];
}

/* y is the gradient, x the result */
KERNEL(relu_backward)(const struct elementwise a) {
    EACH(i, a.n) a.y[i] = a.x[i] > 0 ? a.y[i] : 0;
}

KERNEL(tanh_backward)(const struct elementwise a) {
    EACH(i, a.n) a.y[i] *= 1 - a.x[i] * a.x[i];
}

/* y += d sigmoid(x) */
KERNEL(softplus_backward)(const struct elementwise a) {
    EACH(i, a.n) a.y[i] = fmaf(a.d[i], sigmoid_of(a.x[i]), a.y[i]);
}

/* mean y of weights x */
KERNEL(average)(const struct elementwise a) {
    EACH(i, a.n) a.y[i] = fmaf(a.c[0], a.x[i] - a.y[i], a.y[i]);
}

/* weights y, moments m and v, gradient x; c as scalar_adam of mtan.c has it */
KERNEL(adam)(const struct elementwise a) {
    EACH(i, a.n) {
        const float g = a.x[i], m = fmaf(a.c[0], g - a.m[i], a.m[i]), v = fmaf(a.c[2] * g, g, a.c[1] * a.v[i]);
        a.m[i] = m;
        a.v[i] = v;
        a.y[i] -= a.c[4] * (m / fmaf(__fsqrt_rn(v), a.c[5], a.c[3]));
    }
}

KERNEL(adamax)(const struct elementwise a) {
    EACH(i, a.n) {
        const float g = a.x[i], size = (g < 0 ? -g : g) + a.c[3], faded = a.c[1] * a.v[i];
        const float m = fmaf(a.c[0], g - a.m[i], a.m[i]), u = faded > size ? faded : size;
        a.m[i] = m;
        a.v[i] = u;
        a.y[i] -= a.c[4] * (m / u);
    }
}

/* Box-Muller: a pair from u, w = 1 - u and v */
DEVICE void normal_pair(float *cosine, float *sine_, float u, float w, float v) {
    const float minus_log = w == 1 ? u : -log_of(w) * (u / (1 - w));
    const float r = __fsqrt_rn(2 * minus_log), angle = (float)TWO_PI * v;
    *cosine = r * cos_of(angle);
    *sine_ = r * sin_of(angle);
}

/* y (2, n) from u = x, w = d and v = m */
KERNEL(normal_pairs)(const struct elementwise a) {
    EACH(i, a.n) normal_pair(&a.y[i], &a.y[a.n + i], a.x[i], a.d[i], a.m[i]);
}

KERNEL(scale)(const struct matrix a) {
    EACH(i, (unsigned)a.rows * (unsigned)a.cols)
    a.y[i / a.cols * a.ldy + i % a.cols] *= a.factor;
}

KERNEL(copy)(const struct matrix a) {
    EACH(i, (unsigned)a.rows * (unsigned)a.cols)
    a.y[i / a.cols * a.ldy + i % a.cols] = a.x[i / a.cols * a.ldx + i % a.cols];
}

KERNEL(add)(const struct matrix a) {
    EACH(i, (unsigned)a.rows * (unsigned)a.cols)
    a.y[i / a.cols * a.ldy + i % a.cols] += a.x[i / a.cols * a.ldx + i % a.cols];
}

/* y (cols, rows) = x^T, 32 x 32 at a time so that both sides are read and written along rows */
KERNEL(pack)(const struct matrix a) {
    __shared__ float tile[32][33];
    const int c0 = blockIdx.x * 32, r0 = blockIdx.y * 32, x = threadIdx.x;
    for (int y = threadIdx.y; y < 32; y += pack_y)
        if (r0 + y < a.rows && c0 + x < a.cols) tile[y][x] = a.x[(r0 + y) * a.ldx + c0 + x];
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += pack_y)
        if (r0 + x < a.rows && c0 + y < a.cols) a.y[(c0 + y) * a.rows + r0 + x] = tile[x][y];
}

/* ---- sums over rows: a block has 32 columns and a chunk of rows, 8 rows side by side ---- */

/* The sum of 8 rows of `part` in their order; threads of row 0 get it. */
DEVICE float over_rows(const float part[8][33]) {
    float s = part[0][threadIdx.x];
    for (int i = 1; i < 8; i++) s += part[i][threadIdx.x];
    return s;
}

KERNEL(column_parts)(const struct column_sums a) {
    __shared__ float part[8][33];
    const int c = blockIdx.x * 32 + threadIdx.x, chunk = blockIdx.y, begin = chunk * a.depth;
    const int end = a.rows - begin < a.depth ? a.rows : begin + a.depth;
    float s = 0;
    for (int r = begin + threadIdx.y; c < a.cols && r < end; r += 8) s += a.x[r * a.ldx + c];
    part[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.y > 0 || c >= a.cols) return;
    a.partial[chunk * a.cols + c] = over_rows(part);
}

/* y[c] += the parts in order; few rows are taken as they stand */
KERNEL(column_finish)(const struct column_sums a) {
    EACH(c, (unsigned)a.cols) {
        float s = a.y[c];
        for (int i = 0; i < a.rows; i++) s += a.x[i * a.ldx + c];
        a.y[c] = s;
    }
}

/* ---- sums of everything, in double ---- */

/* The sum over a block by a binary tree, for thread 0. Once in a kernel: the next call would have to wait for it. */
template <int THREADS> static __device__ double over_block(double *part, double x) {
    const int t = threadIdx.x;
    part[t] = x;
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (t < width) part[t] += part[t + width];
    }
    return part[t];
}

KERNEL(total_parts)(const struct total a) {
    __shared__ double part[total_parts_threads];
    double s = 0;
    EACH(i, a.n) s += a.squares ? (double)a.x[i] * (double)a.x[i] : (double)a.x[i];
    s = over_block<total_parts_threads>(part, s);
    if (threadIdx.x == 0) a.partial[blockIdx.x] = s;
}

KERNEL(total_finish)(const struct total a) {
    __shared__ double part[total_finish_threads];
    double s = 0;
    for (int i = threadIdx.x; i < a.parts; i += total_finish_threads) s += a.partial[i];
    s = over_block<total_finish_threads>(part, s);
    if (threadIdx.x == 0) *a.out = s;
}

/* ==== 3. Products ==================================================================================================
 * A block of 256 threads makes a tile of 64 x 64 entries of c, 4 x 4 to a thread, DEPTH terms at a time through shared
 * memory; what comes next is already on its way into registers. Every entry is one sum in ascending order, as in the
 * scalar code, unless few tiles share long sums: then those are cut into parts (`splits`), which product_finish adds up. */

enum { DEPTH = 16, PITCH = TILE + 4, LOADS = TILE * DEPTH / product_nn_threads };

/* An operand: entry (i, p) of `rows` x `terms` at x[i ld + p], or at x[p ld + i] when it does not lie along the terms. */
template <int ALONG> struct operand {
    const float *x;
    int ld, rows, terms;

    __device__ __forceinline__ void load(float *held, int i0, int p0) const {
#pragma unroll
        for (int l = 0; l < LOADS; l++) {
            const int e = threadIdx.x + l * product_nn_threads;
            const int i = i0 + (ALONG ? e / DEPTH : e % TILE), p = p0 + (ALONG ? e % DEPTH : e / TILE);
            held[l] = i < rows && p < terms ? x[ALONG ? i * ld + p : p * ld + i] : 0;
        }
    }

    __device__ __forceinline__ void store(float (*shared)[PITCH], const float *held) const {
#pragma unroll
        for (int l = 0; l < LOADS; l++) {
            const int e = threadIdx.x + l * product_nn_threads;
            shared[ALONG ? e % DEPTH : e / TILE][ALONG ? e / DEPTH : e % TILE] = held[l];
        }
    }
};

struct result {
    float *c;
    int ldc, m, n, add;
};

/* s += the outer product of four entries of each operand */
DEVICE void add_term(float (&s)[4][4], const float *u, const float *v) {
    const float4 a = *(const float4 *)u, b = *(const float4 *)v;
    const float us[4] = {a.x, a.y, a.z, a.w}, vs[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) s[i][j] = fmaf(us[i], vs[j], s[i][j]);
}

/* The tile of c at (i0, j0). All threads of the block come here, or none. */
template <int A, int B>
static __device__ void make_tile(float (*as)[PITCH], float (*bs)[PITCH], const struct result &c,
                                 const struct operand<A> &a, const struct operand<B> &b, int i0, int j0) {
    const int x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;
    float s[4][4], next_a[LOADS], next_b[LOADS];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            s[i][j] = c.add && i0 + y + i < c.m && j0 + x + j < c.n ? c.c[(i0 + y + i) * c.ldc + j0 + x + j] : 0;
    a.load(next_a, i0, 0);
    b.load(next_b, j0, 0);
    for (int p0 = 0; p0 < a.terms; p0 += DEPTH) {
        a.store(as, next_a);
        b.store(bs, next_b);
        __syncthreads();
        a.load(next_a, i0, p0 + DEPTH);
        b.load(next_b, j0, p0 + DEPTH);
        if (a.terms - p0 >= DEPTH) {
#pragma unroll
            for (int p = 0; p < DEPTH; p++) add_term(s, &as[p][y], &bs[p][x]);
        } else {
            for (int p = 0; p < a.terms - p0; p++) add_term(s, &as[p][y], &bs[p][x]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (i0 + y + i < c.m && j0 + x + j < c.n) c.c[(i0 + y + i) * c.ldc + j0 + x + j] = s[i][j];
}

/* One part of the terms: all of them, or split number blockIdx.z. */
template <int A, int B>
static __device__ void make_product(float (*as)[PITCH], float (*bs)[PITCH], const struct product &q) {
    const int from = blockIdx.z * q.depth, terms = q.k - from < q.depth ? q.k - from : q.depth;
    const struct operand<A> a = { q.a + (A ? from : from * q.lda), q.lda, q.m, terms };
    const struct operand<B> b = { q.b + (B ? from : from * q.ldb), q.ldb, q.n, terms };
    struct result c = {q.c, q.ldc, q.m, q.n, q.add};
    if (q.splits > 1) {
        c.c = q.partial + blockIdx.z * q.m * q.n;
        c.ldc = q.n;
        c.add = 0;
    }
    make_tile<A, B>(as, bs, c, a, b, blockIdx.x * TILE, blockIdx.y * TILE);
}

#define TILES                                                                                                          \
    __shared__ __align__(16) float as[DEPTH][PITCH];                                                                   \
    __shared__ __align__(16) float bs[DEPTH][PITCH]

/* a (m, k), b (k, n) */
KERNEL(product_nn)(const struct product a) {
    TILES;
    make_product<1, 0>(as, bs, a);
}

/* a (m, k), b (n, k) */
KERNEL(product_nt)(const struct product a) {
    TILES;
    make_product<1, 1>(as, bs, a);
}

/* a (k, m), b (k, n) */
KERNEL(product_tn)(const struct product a) {
    TILES;
    make_product<0, 0>(as, bs, a);
}

KERNEL(product_finish)(const struct product a) {
    const unsigned size = (unsigned)a.m * (unsigned)a.n;
    EACH(i, size) {
        float *c = &a.c[i / a.n * a.ldc + i % a.n], s = a.add ? *c : 0;
        for (int part = 0; part < a.splits; part++) s += a.partial[part * size + i];
        *c = s;
    }
}

/* ---- int8: sums of integers, exact in any order; see mtan.c ---- */

DEVICE float warp_max(float x) {
    for (int o = 16; o > 0; o /= 2) {
        const float other = __shfl_xor_sync(WHOLE_WARP, x, o);
        x = other > x ? other : x;
    }
    return x;
}

DEVICE float warp_sum(float x) {
    for (int o = 16; o > 0; o /= 2) x += __shfl_xor_sync(WHOLE_WARP, x, o);
    return x;
}

DEVICE int warp_sum_int(int x) {
    for (int o = 16; o > 0; o /= 2) x += __shfl_xor_sync(WHOLE_WARP, x, o);
    return x;
}

/* row_magnitude of mtan.c by one warp: below 2^-100 counts as nothing */
DEVICE float magnitude(const float *x, int n) {
    float largest = 0, bad = 0;
    for (int i = threadIdx.x; i < n; i += 32) {
        const float v = absolute(x[i]);
        bad += x[i] - x[i];
        largest = v > largest ? v : largest;
    }
    largest = warp_max(largest);
    bad = warp_sum(bad);
    if (!(bad == 0)) return bad;
    return largest < 7.88860905e-31f ? 0 : largest;
}

/* A warp takes a row of b: its scale, then its bytes. */
KERNEL(pack_int8)(const struct product_int8 a) {
    const int j = blockIdx.x * pack_int8_y + threadIdx.y;
    if (j >= a.n) return;
    const float *b = a.real + j * a.ldb, scale = magnitude(b, a.k) / 127;
    signed char *q = (signed char *)(a.packed + a.n) + j * a.k;
    if (threadIdx.x == 0) a.packed[j] = scale;
    for (int p = threadIdx.x; p < a.k; p += 32) q[p] = (signed char)(scale > 0 ? (b[p] / scale + ROUND) - ROUND : 0);
}

/* A block takes a row of a and 64 of b: it turns INT8_DEPTH terms of a into integers, then a warp takes a row of b. */
KERNEL(product_int8)(const struct product_int8 a) {
    __shared__ short q[INT8_DEPTH];
    __shared__ float factor;
    const float *x = a.a + blockIdx.x * a.lda;
    float *c = a.c + blockIdx.x * a.ldc;
    const int j0 = blockIdx.y * 64, j1 = a.n - j0 < 64 ? a.n : j0 + 64;
    for (int p0 = 0; p0 < a.k || p0 == 0; p0 += INT8_DEPTH) {
        const int terms = a.k - p0 < INT8_DEPTH ? a.k - p0 : INT8_DEPTH;
        if (threadIdx.y == 0) {
            const float largest = magnitude(x + p0, terms), inverse = largest > 0 ? 32767 / largest : 0;
            for (int p = threadIdx.x; p < terms; p += 32)
                q[p] = (short)(largest > 0 ? (x[p0 + p] * inverse + ROUND) - ROUND : 0);
            if (threadIdx.x == 0) factor = largest / 32767;
        }
        __syncthreads();
        for (int j = j0 + threadIdx.y; j < j1; j += product_int8_y) {
            int sum = 0;
            for (int p = threadIdx.x; p < terms; p += 32) sum += q[p] * a.b[j * a.row + (p0 + p) * a.term];
            sum = warp_sum_int(sum);
            if (threadIdx.x == 0) {
                const float before = a.add || p0 > 0 ? c[j] : 0;
                c[j] = terms > 0 ? fmaf((float)sum, (a.scale ? a.scale[j] : 1) * factor, before) : before;
            }
        }
        __syncthreads();
    }
}

/* ==== 4. Embedding, softmax ======================================================================================== */

KERNEL(embed_forward)(const struct embedding a) {
    EACH(i, (unsigned)a.times * (unsigned)a.embed) {
        const int e = i % a.embed;
        const float t = a.time[i / a.embed];
        a.y[i] = e == 0 ? fmaf(a.lw[0], t, a.lb[0]) : sin_of(fmaf(a.pw[e - 1], t, a.pb[e - 1]));
    }
}

/* slope = -log(base) / E */
KERNEL(embed_fixed)(const struct embedding a) {
    const unsigned half = a.embed / 2;
    EACH(i, (unsigned)a.times * half) {
        const int e = 2 * (i % half);
        const float angle = a.scale * a.time[i / half] * exp_of((float)e * a.slope);
        a.y[i / half * a.embed + e] = sin_of(angle);
        a.y[i / half * a.embed + e + 1] = cos_of(angle);
    }
}

/* partial (chunks, 2, E): sums of d t and of d, d being the gradient of w t + b */
KERNEL(embed_parts)(const struct embedding a) {
    __shared__ float slopes[8][33], shifts[8][33];
    const int e = blockIdx.x * 32 + threadIdx.x, chunk = blockIdx.y, begin = chunk * a.depth;
    const int end = a.times - begin < a.depth ? a.times : begin + a.depth;
    float slope = 0, shift = 0;
    for (int r = begin + threadIdx.y; e < a.embed && r < end; r += 8) {
        const float t = a.time[r], dy = a.dy[r * a.embed + e];
        const float d = e == 0 ? dy : dy * cos_of(fmaf(a.pw[e - 1], t, a.pb[e - 1]));
        slope = fmaf(d, t, slope);
        shift += d;
    }
    slopes[threadIdx.y][threadIdx.x] = slope;
    shifts[threadIdx.y][threadIdx.x] = shift;
    __syncthreads();
    if (threadIdx.y > 0 || e >= a.embed) return;
    a.partial[2 * chunk * a.embed + e] = over_rows(slopes);
    a.partial[(2 * chunk + 1) * a.embed + e] = over_rows(shifts);
}

KERNEL(embed_finish)(const struct embedding a) {
    EACH(e, (unsigned)a.embed) {
        float slope = 0, shift = 0;
        for (int i = 0; i < a.chunks; i++) {
            slope += a.partial[2 * i * a.embed + e];
            shift += a.partial[(2 * i + 1) * a.embed + e];
        }
        *(e == 0 ? a.dlw : a.dpw + e - 1) += slope;
        *(e == 0 ? a.dlb : a.dpb + e - 1) += shift;
    }
}

/* A warp takes a row. */
DEVICE void softmax_row(float *y, int n) {
    float max = __uint_as_float(0xFF800000u), sum = 0;
    for (int c = threadIdx.x; c < n; c += 32) max = y[c] > max ? y[c] : max;
    max = warp_max(max);
    for (int c = threadIdx.x; c < n; c += 32) {
        const float w = exp_of(y[c] - max);
        y[c] = w;
        sum += w;
    }
    sum = warp_sum(sum);
    for (int c = threadIdx.x; c < n; c += 32) y[c] /= sum;
}

/* dx = y (dy - sum of y dy) */
DEVICE void softmax_row_back(float *dy, const float *y, int n) {
    float sum = 0;
    for (int c = threadIdx.x; c < n; c += 32) sum = fmaf(y[c], dy[c], sum);
    sum = warp_sum(sum);
    for (int c = threadIdx.x; c < n; c += 32) dy[c] = y[c] * (dy[c] - sum);
}

KERNEL(softmax_forward)(const struct matrix a) {
    const int r = blockIdx.x * softmax_forward_y + threadIdx.y;
    if (r < a.rows) softmax_row(a.y + r * a.cols, a.cols);
}

/* y is the gradient, x the result */
KERNEL(softmax_backward)(const struct matrix a) {
    const int r = blockIdx.x * softmax_backward_y + threadIdx.y;
    if (r < a.rows) softmax_row_back(a.y + r * a.cols, a.x + r * a.cols, a.cols);
}

/* ==== 5. Attention =================================================================================================
 * A block has one record and a tile of its queries, lanes of a warp are queries. The warps share out the keys, then the
 * channels, so that every event is read by one warp of the block. */

struct attended { /* one record */
    const float *score;
    float *weight, *total;
    const int *begin;
    int position, keys, queries, channels; /* channels: those that are not static */
};

DEVICE struct attended attended_record(const struct attention &a, int r) {
    const struct batch &b = a.batch;
    struct attended x;
    x.score = a.score + b.score0[r];
    x.weight = a.weight + b.score0[r];
    x.channels = b.channels - b.statics;
    x.total = a.total + r * x.channels * b.steps;
    x.begin = b.begin + r * (b.channels + 1) + b.statics;
    x.position = r;
    x.keys = b.time0[r + 1] - b.time0[r];
    x.queries = b.length[r];
    return x;
}

/* The exponent of the largest score of a channel's events. */
DEVICE float channel_base(const struct attention &a, const struct attended &x, int d, int q) {
    float max = x.score[a.batch.row[x.begin[d]] * x.queries + q];
    for (int j = x.begin[d] + 1; j < x.begin[d + 1]; j++) {
        const float s = x.score[a.batch.row[j] * x.queries + q];
        max = s > max ? s : max;
    }
    return exponent_of(max);
}

/* A channel far below the record's base, under its own; its total is negative to tell. */
DEVICE float attend_far(const struct attention &a, const struct attended &x, int d, int q, float *total) {
    const float base = channel_base(a, x, d, q);
    float n = 0, t = 0;
    for (int j = x.begin[d]; j < x.begin[d + 1]; j++) {
        const float w = exp_under(x.score[a.batch.row[j] * x.queries + q], base);
        n = fmaf(w, a.batch.value[j], n);
        t += w;
    }
    *total = -t;
    return n;
}

DEVICE void attend_channel(const struct attention &a, const struct attended &x, int d, int q) {
    float *y = a.y + (a.batch.first[q] + x.position) * a.ldy + d, num = 0, total = 0;
    for (int j = x.begin[d]; j < x.begin[d + 1]; j++) {
        const float w = x.weight[a.batch.row[j] * x.queries + q];
        num = fmaf(w, a.batch.value[j], num);
        total += w;
    }
    if (x.begin[d] < x.begin[d + 1] && total < FAR) num = attend_far(a, x, d, q, &total);
    x.total[d * x.queries + q] = total;
    *y = x.begin[d] == x.begin[d + 1] ? 0 : num / absolute(total);
}

/* The weights of a tile of queries, by all warps of the block; returns the base of query q. */
DEVICE float attend_exponentials(float (*best)[ATTEND_TILE], const struct attended &x, int q) {
    const int y = threadIdx.y, warps = blockDim.y, asks = q < x.queries;
    float max = __uint_as_float(0xFF800000u);
    for (int i = y; asks && i < x.keys; i += warps) {
        const float s = x.score[i * x.queries + q];
        max = s > max ? s : max;
    }
    best[y][threadIdx.x] = max;
    __syncthreads();
    for (int i = 0; i < warps; i++) max = best[i][threadIdx.x] > max ? best[i][threadIdx.x] : max;
    const float base = exponent_of(max);
    for (int i = y; asks && i < x.keys; i += warps)
        x.weight[i * x.queries + q] = exp_under(x.score[i * x.queries + q], base);
    __syncthreads();
    return base;
}

KERNEL(attend_forward)(const struct attention a) {
    __shared__ float best[attend_forward_y][ATTEND_TILE];
    const struct attended x = attended_record(a, blockIdx.x / a.tiles);
    const int q = blockIdx.x % a.tiles * ATTEND_TILE + threadIdx.x, y = threadIdx.y, asks = q < x.queries;
    attend_exponentials(best, x, q);
    for (int d = y; asks && d < x.channels; d += attend_forward_y) attend_channel(a, x, d, q);
}

/* dscore[i][q] += w / total * dy[q][d] * (x - y[q][d]): a thread has a query and goes through all events. */
KERNEL(attend_backward)(const struct attention a) {
    const struct attended x = attended_record(a, blockIdx.x / a.tiles);
    const int q = blockIdx.x % a.tiles * ATTEND_BACK_TILE + threadIdx.x, Q = x.queries;
    float *dscore = a.dscore + a.batch.score0[blockIdx.x / a.tiles];
    if (q >= Q) return;
    const int r = a.batch.first[q] + x.position;
    for (int d = 0; d < x.channels; d++) {
        if (x.begin[d] == x.begin[d + 1]) continue;
        const float total = x.total[d * Q + q], mean = a.y[r * a.ldy + d];
        const float share = a.dy[r * a.ldy + d] / absolute(total), base = total < 0 ? channel_base(a, x, d, q) : 0;
        for (int j = x.begin[d]; j < x.begin[d + 1]; j++) {
            const int at = a.batch.row[j] * Q + q;
            const float w = total < 0 ? exp_under(x.score[at], base) : x.weight[at];
            dscore[at] = fmaf(w * share, a.batch.value[j] - mean, dscore[at]);
        }
    }
}

/* dscore is the result here, of one channel: a block (Q, L), normalised, for each record */
KERNEL(attend_weights)(const struct attention a) {
    const struct attended x = attended_record(a, blockIdx.x);
    const int d = a.channel;
    for (int q = threadIdx.x; q < x.queries; q += attend_weights_threads) {
        const float total = x.total[d * x.queries + q], base = total < 0 ? channel_base(a, x, d, q) : 0;
        float *out = a.dscore + a.batch.score0[blockIdx.x] + q * x.keys;
        for (int i = 0; i < x.keys; i++) out[i] = 0;
        for (int j = x.begin[d]; j < x.begin[d + 1]; j++) {
            const int at = a.batch.row[j] * x.queries + q;
            out[a.batch.row[j]] += (total < 0 ? exp_under(x.score[at], base) : x.weight[at]) / absolute(total);
        }
    }
}

/* d holds the bases */
KERNEL(log_under)(const struct elementwise a) {
    EACH(i, a.n) a.y[i] = log_under(absolute(a.x[i]), a.d[i]);
}

/* ---- local statistics: the formulas are those of mtan.c, section 3 ---- */

enum { MOMENT_X, MOMENT_W, MOMENT_UU, MOMENT_D, MOMENT_DD, MOMENT_DU, MOMENTS };
enum { WITH_SPREAD = 1, WITH_INTENSITY = 2, WITH_SLOPE = 4 };
#define SPREAD_LEAST 0.03125f

DEVICE void moments_take(float *sums, unsigned stride, float w, float value, float u, float d) {
    sums[MOMENT_X * stride] = fmaf(w, value, sums[MOMENT_X * stride]);
    sums[MOMENT_W * stride] += w;
    sums[MOMENT_UU * stride] = fmaf(w, u * u, sums[MOMENT_UU * stride]);
    sums[MOMENT_D * stride] = fmaf(w, d, sums[MOMENT_D * stride]);
    sums[MOMENT_DD * stride] = fmaf(w, d * d, sums[MOMENT_DD * stride]);
    sums[MOMENT_DU * stride] = fmaf(w, d * u, sums[MOMENT_DU * stride]);
}

struct local_moments {
    float total, mean, u, uu, d, dd, du, var, root, rho, cov;
};

DEVICE struct local_moments moments_at(const float *sums, unsigned stride, float origin) {
    struct local_moments m;
    m.total = absolute(sums[MOMENT_W * stride]);
    m.mean = sums[MOMENT_X * stride] / m.total;
    m.uu = sums[MOMENT_UU * stride] / m.total;
    m.d = sums[MOMENT_D * stride] / m.total;
    m.dd = sums[MOMENT_DD * stride] / m.total;
    m.du = sums[MOMENT_DU * stride] / m.total;
    m.u = m.mean - origin;
    m.var = m.uu - m.u * m.u;
    m.var = m.var > 0 ? m.var : 0;
    m.root = __fsqrt_rn(m.var + SPREAD_LEAST * SPREAD_LEAST);
    m.rho = 1 / __fsqrt_rn(1 + m.dd);
    m.cov = m.du - m.d * m.u;
    return m;
}

/* Features `step` apart. */
DEVICE void features_of(float *y, unsigned step, const struct local_moments &m, float base, int statistics) {
    const float position = m.d * m.rho, trend = m.cov * m.rho;
    *y = m.mean;
    if (statistics & WITH_SPREAD) *(y += step) = m.root - SPREAD_LEAST;
    if (statistics & WITH_INTENSITY) *(y += step) = softplus_of(log_under(m.total, base));
    if (statistics & WITH_SLOPE) y[step] = position, y[2 * step] = trend, y[3 * step] = -(trend * position);
}

DEVICE int feature_count(int statistics) {
    return 1 + !!(statistics & WITH_SPREAD) + !!(statistics & WITH_INTENSITY) + (statistics & WITH_SLOPE ? 3 : 0);
}

DEVICE struct attended moments_record(const struct moments &a, int r, const float **point, const float **time) {
    struct attended x = attended_record(a.attention, r);
    const struct batch &b = a.attention.batch;
    x.total = a.attention.total + r * x.channels * MOMENTS * b.steps;
    *point = a.point + (b.point0 ? b.point0[r] : 0);
    *time = a.time + b.time0[r];
    return x;
}

KERNEL(moments_forward)(const struct moments a) {
    __shared__ float best[moments_forward_y][ATTEND_TILE];
    const struct batch &b = a.attention.batch;
    const float *point, *time;
    const struct attended x = moments_record(a, blockIdx.x / a.attention.tiles, &point, &time);
    const int q = blockIdx.x % a.attention.tiles * ATTEND_TILE + threadIdx.x, Q = x.queries, asks = q < Q;
    const float shared = attend_exponentials(best, x, q);
    for (int d = threadIdx.y; asks && d < x.channels; d += moments_forward_y) {
        float *sums = x.total + d * MOMENTS * Q + q, base = shared;
        float *y = a.attention.y + (b.first[q] + x.position) * a.attention.ldy + d;
        const int begin = x.begin[d], end = x.begin[d + 1];
        for (int far = 0; far < 2; far++) { /* a channel far below the base is done again under its own */
            if (far && (begin == end || !(sums[MOMENT_W * Q] < FAR))) break;
            if (far) base = channel_base(a.attention, x, d, q);
            for (int part = 0; part < MOMENTS; part++) sums[part * Q] = 0;
            for (int j = begin; j < end; j++) {
                const int at = b.row[j] * Q + q;
                moments_take(sums, Q, far ? exp_under(x.score[at], base) : x.weight[at], b.value[j],
                             b.value[j] - b.value[begin], a.rate * (time[b.row[j]] - point[q]));
            }
            if (far) sums[MOMENT_W * Q] = -sums[MOMENT_W * Q];
        }
        for (int f = 0; begin == end && f < feature_count(a.statistics); f++) y[f * x.channels] = 0;
        if (begin < end) features_of(y, x.channels, moments_at(sums, Q, b.value[begin]), base, a.statistics);
    }
}

struct moment_slopes {
    float share, c, x, uu, d, dd, du;
};

DEVICE struct moment_slopes slopes_at(const struct local_moments &m, const float *g, const float *y, unsigned step,
                                      int statistics) {
    struct moment_slopes s = {1 / m.total, 0, *g, 0, 0, 0, 0};
    float more = 0;
    if (statistics & WITH_SPREAD) {
        g += step, y += step;
        s.uu = m.var > 0 ? *g / (2 * m.root) : 0;
        s.x = s.x - 2 * m.u * s.uu;
    }
    if (statistics & WITH_INTENSITY) {
        g += step, y += step;
        more = *g * (1 - exp_of(-*y));
    }
    if (statistics & WITH_SLOPE) {
        const float position = y[step], trend = y[2 * step];
        const float of_position = g[step] - g[3 * step] * trend, of_trend = g[2 * step] - g[3 * step] * position;
        s.du = of_trend * m.rho;
        s.d = of_position * m.rho - s.du * m.u;
        s.x = s.x - s.du * m.d;
        s.dd = (of_trend * m.cov + of_position * m.d) * (-0.5f * (m.rho * m.rho * m.rho));
    }
    s.c = more - (((s.x * m.u + s.uu * m.uu) + (s.d * m.d + s.dd * m.dd)) + s.du * m.du);
    return s;
}

/* A thread has a query and goes through all events. */
KERNEL(moments_backward)(const struct moments a) {
    const struct attention &t = a.attention;
    const struct batch &b = t.batch;
    const float *point, *time;
    const struct attended x = moments_record(a, blockIdx.x / t.tiles, &point, &time);
    const int q = blockIdx.x % t.tiles * ATTEND_BACK_TILE + threadIdx.x, Q = x.queries;
    float *dscore = t.dscore + b.score0[blockIdx.x / t.tiles];
    if (q >= Q) return;
    const int r = (b.first[q] + x.position) * t.ldy;
    for (int d = 0; d < x.channels; d++) {
        if (x.begin[d] == x.begin[d + 1]) continue;
        const float *sums = x.total + d * MOMENTS * Q + q, origin = b.value[x.begin[d]];
        const int far = sums[MOMENT_W * Q] < 0;
        const float base = far ? channel_base(t, x, d, q) : 0;
        const struct local_moments m = moments_at(sums, Q, origin);
        const struct moment_slopes s = slopes_at(m, t.dy + r + d, t.y + r + d, x.channels, a.statistics);
        for (int j = x.begin[d]; j < x.begin[d + 1]; j++) {
            const int at = b.row[j] * Q + q;
            const float w = far ? exp_under(x.score[at], base) : x.weight[at];
            const float u = b.value[j] - origin, e = a.rate * (time[b.row[j]] - point[q]);
            const float by_value = fmaf(u, s.uu, fmaf(e, s.du, s.x));
            dscore[at] = fmaf(w * s.share, fmaf(u, by_value, fmaf(e, fmaf(e, s.dd, s.d), s.c)), dscore[at]);
        }
    }
}

KERNEL(moments_add)(const struct moment a) {
    EACH(i, a.n)
    moments_take(a.sums + i, a.stride, a.weight[i], a.value, a.value - a.origin, a.rate * (a.time - a.point[i]));
}

KERNEL(moments_read)(const struct moment a) {
    EACH(i, a.n)
    features_of(a.y + i, a.n, moments_at(a.sums + i, a.stride, a.origin), a.base[i], a.statistics);
}

/* ==== 6. RBF smoothing ============================================================================================= */

struct smoothed { /* one record */
    const float *query, *time;
    const int *begin;
    int position, keys, queries;
};

DEVICE struct smoothed smoothed_record(const struct rbf &a, int r) {
    const struct batch &b = a.batch;
    struct smoothed x;
    x.query = a.query + (b.point0 ? b.point0[r] : 0);
    x.time = a.time + b.time0[r];
    x.begin = b.begin + r * (b.channels + 1);
    x.position = r;
    x.keys = b.time0[r + 1] - b.time0[r];
    x.queries = b.length[r];
    return x;
}

DEVICE float square(float x) {
    return x * x;
}

/* exp(-beta distance^2) / 2^base */
DEVICE float rbf_weight(float beta, float query, float time, float base) {
    return exp_under(-beta * square(query - time), base);
}

/* The exponent of the weight of a channel's nearest event. */
DEVICE float rbf_base(const struct rbf &a, const struct smoothed &x, int d, float query) {
    float least = square(query - x.time[a.batch.row[x.begin[d]]]);
    for (int j = x.begin[d] + 1; j < x.begin[d + 1]; j++) {
        const float s = square(query - x.time[a.batch.row[j]]);
        least = s < least ? s : least;
    }
    return exponent_of(-a.beta[d] * least);
}

KERNEL(rbf_forward)(const struct rbf a) {
    const struct smoothed x = smoothed_record(a, blockIdx.x / a.tiles);
    const int q = blockIdx.x % a.tiles * 32 + threadIdx.x;
    for (int d = threadIdx.y; q < x.queries && d < a.batch.channels; d += rbf_forward_y) {
        float num = 0, total = 0, *y = a.y + (a.batch.first[q] + x.position) * a.ldy + d;
        *y = 0;
        if (x.begin[d] == x.begin[d + 1]) continue;
        const float base = rbf_base(a, x, d, x.query[q]);
        for (int j = x.begin[d]; j < x.begin[d + 1]; j++) {
            const float w = rbf_weight(a.beta[d], x.query[q], x.time[a.batch.row[j]], base);
            num = fmaf(w, a.batch.value[j], num);
            total += w;
        }
        *y = num / total;
    }
}

/* A block has one record and channel: partial[r][d] = sum over the queries of dy times the slope. */
KERNEL(rbf_backward)(const struct rbf a) {
    __shared__ double part[rbf_backward_threads];
    const int D = a.batch.channels, r = blockIdx.x / D, d = blockIdx.x % D;
    const struct smoothed x = smoothed_record(a, r);
    double sum = 0;
    for (int q = threadIdx.x; x.begin[d] < x.begin[d + 1] && q < x.queries; q += rbf_backward_threads) {
        const int at = a.batch.first[q] + x.position;
        const float query = x.query[q], base = rbf_base(a, x, d, query), mean = a.y[at * a.ldy + d];
        float slope = 0, total = 0;
        for (int j = x.begin[d]; j < x.begin[d + 1]; j++) {
            const float t = x.time[a.batch.row[j]], w = rbf_weight(a.beta[d], query, t, base);
            slope = fmaf(-w * square(query - t), a.batch.value[j] - mean, slope);
            total += w;
        }
        sum += (double)(a.dy[at * a.ldy + d] * (slope / total));
    }
    sum = over_block<rbf_backward_threads>(part, sum);
    if (threadIdx.x == 0) a.partial[r * D + d] = (float)sum;
}

KERNEL(rbf_finish)(const struct rbf a) {
    EACH(d, (unsigned)a.batch.channels) {
        float s = 0;
        for (int r = 0; r < a.batch.records; r++) s += a.partial[r * a.batch.channels + d];
        a.dbeta[d] += s;
    }
}

/* y is the result here, of one channel: a block (Q, L) for each record */
KERNEL(rbf_weights)(const struct rbf a) {
    const struct smoothed x = smoothed_record(a, blockIdx.x);
    const int begin = x.begin[a.channel], end = x.begin[a.channel + 1];
    for (int q = threadIdx.x; q < x.queries; q += rbf_weights_threads) {
        float *out = a.y + a.batch.score0[blockIdx.x] + q * x.keys, total = 0;
        for (int i = 0; i < x.keys; i++) out[i] = 0;
        if (begin == end) continue;
        const float base = rbf_base(a, x, a.channel, x.query[q]);
        for (int j = begin; j < end; j++) {
            const float w = rbf_weight(a.beta[a.channel], x.query[q], x.time[a.batch.row[j]], base);
            out[a.batch.row[j]] += w;
            total += w;
        }
        for (int i = 0; i < x.keys; i++) out[i] /= total;
    }
}

/* ---- dense, in the decoder: a block has a record, a sample and a tile of (rows, cols) ---- */

struct dense { /* one record and sample */
    const float *query, *key, *value;
    int queries, keys, y0; /* y0: first row of y */
    unsigned value0;
};

DEVICE struct dense dense_record(const struct smooth &a, int group) {
    const struct batch &b = a.batch;
    const int r = group / b.samples, s = group % b.samples;
    struct dense x;
    x.queries = b.query0[r + 1] - b.query0[r];
    x.keys = b.length[r];
    x.query = a.query + b.query0[r];
    x.key = a.key + (b.point0 ? b.point0[r] : 0);
    x.y0 = b.query0[r] * b.samples + s * x.queries;
    x.value0 = b.point0 ? (b.point0[r] * b.samples + s * x.keys) * a.ldv : group * a.apart;
    x.value = a.value + x.value0;
    return x;
}

/* The squared distance from each query to its nearest key. */
KERNEL(smooth_nearest)(const struct smooth a) {
    const struct dense x = dense_record(a, blockIdx.x);
    for (int i = threadIdx.x; x.keys > 0 && i < x.queries; i += smooth_nearest_threads) {
        float least = square(x.query[i] - x.key[0]);
        for (int k = 1; k < x.keys; k++) {
            const float s = square(x.query[i] - x.key[k]);
            least = s < least ? s : least;
        }
        a.least[x.y0 + i] = least;
    }
}

/* Thread e of a tile: row e / cols, column e % cols. */
#define EACH_OF_TILE(e, n)                                                                                             \
    for (int e = blockIdx.x % a.tiles * blockDim.x + threadIdx.x; e < (n); e += a.tiles * blockDim.x)

KERNEL(smooth_forward)(const struct smooth a) {
    const struct dense x = dense_record(a, blockIdx.x / a.tiles);
    EACH_OF_TILE(e, x.queries * a.cols) {
        const int i = e / a.cols, c = e % a.cols, row = x.y0 + i;
        const float base = exponent_of(-a.beta[c] * a.least[row]);
        float num = 0, total = 0;
        for (int k = 0; k < x.keys; k++) {
            const float w = rbf_weight(a.beta[c], x.query[i], x.key[k], base);
            num = fmaf(w, x.value[k * a.ldv + c], num);
            total += w;
        }
        a.y[row * a.ldy + c] = x.keys > 0 ? num / total : 0;
    }
}

/* totals of the weights, and slopes: dy times the derivative of y by beta */
KERNEL(smooth_slopes)(const struct smooth a) {
    const struct dense x = dense_record(a, blockIdx.x / a.tiles);
    EACH_OF_TILE(e, x.queries * a.cols) {
        const int i = e / a.cols, c = e % a.cols, row = x.y0 + i;
        const float base = exponent_of(-a.beta[c] * a.least[row]);
        float slope = 0, total = 0;
        for (int k = 0; k < x.keys; k++) total += rbf_weight(a.beta[c], x.query[i], x.key[k], base);
        for (int k = 0; k < x.keys; k++) {
            const float p = rbf_weight(a.beta[c], x.query[i], x.key[k], base) / total;
            slope = fmaf(-p * square(x.query[i] - x.key[k]), x.value[k * a.ldv + c] - a.y[row * a.ldy + c], slope);
        }
        a.totals[row * a.cols + c] = total;
        a.slopes[row * a.cols + c] = x.keys > 0 ? a.dy[row * a.ldy + c] * slope : 0;
    }
}

KERNEL(smooth_values)(const struct smooth a) {
    const struct dense x = dense_record(a, blockIdx.x / a.tiles);
    EACH_OF_TILE(e, x.keys * a.cols) {
        const int k = e / a.cols, c = e % a.cols;
        float *dvalue = a.dvalue + x.value0 + k * a.ldv + c, s = *dvalue;
        for (int i = 0; i < x.queries; i++) {
            const int row = x.y0 + i;
            const float base = exponent_of(-a.beta[c] * a.least[row]);
            const float w = rbf_weight(a.beta[c], x.query[i], x.key[k], base);
            s = fmaf(w / a.totals[row * a.cols + c], a.dy[row * a.ldy + c], s);
        }
        *dvalue = s;
    }
}

/* ==== 7. GRU ======================================================================================================= */

struct gate_values {
    float r, z, n;
};

/* torch's order r, z, n: n = tanh(g_n + r gh_n), h = (1 - z) n + z before */
DEVICE float gru_state(struct gate_values *v, float gr, float gz, float gn, float hr, float hz, float hn,
                       float before) {
    v->r = sigmoid_of(gr + hr);
    v->z = sigmoid_of(gz + hz);
    v->n = tanh_of(fmaf(v->r, hn, gn));
    return fmaf(v->z, before - v->n, v->n);
}

/* The gates v become their gradients, *hn that of the recurrent part of n; returns what reaches `before` directly. */
DEVICE float gru_gradient(struct gate_values *v, float *hn, float dh, float before) {
    const float r = v->r, z = v->z, n = v->n, dn = dh * (1 - z) * (1 - n * n);
    v->r = dn * *hn * r * (1 - r);
    v->z = dh * (before - n) * z * (1 - z);
    v->n = dn;
    *hn = dn * r;
    return dh * z;
}

/* ---- one step, elementwise ---- */

KERNEL(gates_forward)(const struct gates a) {
    const int N = a.hidden;
    EACH(e, (unsigned)a.rows * (unsigned)N) {
        const int i = e / N, j = e % N;
        float *g = a.g + i * a.ldg + j;
        const float *gh = a.gh + i * 3 * N + j;
        struct gate_values v;
        const float before = a.before ? a.before[i * a.ldb + j] : 0;
        a.h[i * a.ldh + j] = gru_state(&v, g[0], g[N], g[2 * N], gh[0], gh[N], gh[2 * N], before);
        if (a.hn) a.hn[e] = gh[2 * N];
        g[0] = v.r, g[N] = v.z, g[2 * N] = v.n;
    }
}

KERNEL(gates_backward)(const struct gates a) {
    const int N = a.hidden;
    EACH(e, (unsigned)a.rows * (unsigned)N) {
        const int i = e / N, j = e % N;
        float *g = a.g + i * a.ldg + j, hn = a.hn[e];
        struct gate_values v = {g[0], g[N], g[2 * N]};
        a.dh[e] = gru_gradient(&v, &hn, a.dh[e], a.before ? a.before[i * a.ldb + j] : 0);
        g[0] = v.r, g[N] = v.z, g[2 * N] = v.n;
        a.hn[e] = hn;
    }
}

/* ---- whole sequences, weights on chip, for up to P hidden units ----
 * A block takes GRU_ROWS rows through all steps and needs nothing of any other block. It has a thread for each of the 3 P
 * rows of the recurrent weights (in the backward pass, columns of one gate), which keeps KEPT of its weights in registers
 * and the others, if any, in shared memory: with P = 128 registers alone are too few by some. The states are in shared
 * memory, where all threads read the same four at a time. 256 units would be 768 KB of weights, three times what a
 * multiprocessor has: they go step by step, below. */

/* The step that is number i of the run, and the one before it. */
struct run_step {
    int row, rows;     /* first row and number of rows */
    int before, known; /* the same of the step before: rows without one start from zero */
};

DEVICE struct run_step step_at(const struct sequence &a, int i) {
    const int k = a.reverse ? a.steps - 1 - i : i, from = a.reverse ? k + 1 : k - 1;
    struct run_step s;
    s.row = a.first[k] * a.samples;
    s.rows = a.first[k + 1] * a.samples - s.row;
    s.before = i == 0 ? 0 : a.first[from] * a.samples;
    s.known = i == 0 ? 0 : a.first[from + 1] * a.samples - s.before;
    return s;
}

/* The weights of a thread: entry p is kept[p], or rest[p - KEPT][thread]. */
template <int P, int KEPT> struct weights {
    float kept[KEPT];
    float *rest;

    /* x: the thread's first weight, or null: all zeros; `n` weights, `apart` from each other */
    __device__ __forceinline__ void load(const float *x, int apart, int n) {
#pragma unroll
        for (int p = 0; p < KEPT; p++) kept[p] = x && p < n ? x[p * apart] : 0;
        for (int p = KEPT; p < P; p++) rest[(p - KEPT) * 3 * P + threadIdx.x] = x && p < n ? x[p * apart] : 0;
    }

    __device__ __forceinline__ float at(int p) const {
        return p < KEPT ? kept[p] : rest[(p - KEPT) * 3 * P + threadIdx.x];
    }

    /* s[r] += sum over p of x[r][p] times weight p, for all rows at once so that their sums overlap */
    __device__ __forceinline__ void multiply(float (&s)[GRU_ROWS], const float *x, int ldx) const {
#pragma unroll
        for (int p = 0; p < P; p += 4) {
            const float w[4] = {at(p), at(p + 1), at(p + 2), at(p + 3)};
#pragma unroll
            for (int r = 0; r < GRU_ROWS; r++) {
                const float4 v = *(const float4 *)(x + r * ldx + p);
                s[r] = fmaf(v.x, w[0], s[r]);
                s[r] = fmaf(v.y, w[1], s[r]);
                s[r] = fmaf(v.z, w[2], s[r]);
                s[r] = fmaf(v.w, w[3], s[r]);
            }
        }
    }
};

/* h (GRU_ROWS, P) states, gh (GRU_ROWS, 3P) recurrent parts */
template <int P, int KEPT>
static __device__ __forceinline__ void run_sequence(const struct sequence &a, float *h, float *gh, float *rest) {
    const int N = a.hidden, t = threadIdx.x, unit = t % P, line = t / P * N + unit, row0 = blockIdx.x * GRU_ROWS;
    struct weights<P, KEPT> w;
    w.rest = rest;
    w.load(unit < N ? a.w + line * a.ldw : 0, 1, N);
    const float bias = unit < N ? a.bias[line] : 0;
    for (int e = t; e < GRU_ROWS * P; e += 3 * P) h[e] = 0;
    for (int i = 0; i < a.steps; i++) {
        const struct run_step step = step_at(a, i);
        float s[GRU_ROWS];
#pragma unroll
        for (int r = 0; r < GRU_ROWS; r++) s[r] = bias;
        __syncthreads();
        w.multiply(s, h, P);
#pragma unroll
        for (int r = 0; r < GRU_ROWS; r++) gh[r * 3 * P + t] = s[r];
        __syncthreads();
        for (int e = t; e < GRU_ROWS * P; e += 3 * P) {
            const int r = e / P, j = e % P, at = step.row + row0 + r;
            if (j >= N || row0 + r >= step.rows) continue;
            const float *part = gh + r * 3 * P + j;
            float *g = a.g + at * a.ldg + j;
            struct gate_values v;
            h[e] = gru_state(&v, g[0], g[N], g[2 * N], part[0], part[P], part[2 * P], h[e]);
            a.y[at * a.ldy + j] = h[e];
            if (a.hn) a.hn[at * N + j] = part[2 * P];
            g[0] = v.r, g[N] = v.z, g[2 * N] = v.n;
        }
    }
}

/* dh (GRU_ROWS, P) what reaches the step before directly; dg (GRU_ROWS, 3P) gradients of the recurrent parts; back
 * (GRU_ROWS, 3P) what reaches the step before through the weights, gate by gate. A thread keeps a column of one gate. */
template <int P, int KEPT>
static __device__ __forceinline__ void back_sequence(const struct sequence &a, float *dh, float *dg, float *back,
                                                     float *rest) {
    const int N = a.hidden, t = threadIdx.x, unit = t % P, gate = t / P, row0 = blockIdx.x * GRU_ROWS;
    struct weights<P, KEPT> w;
    w.rest = rest;
    w.load(unit < N ? a.w + gate * N * a.ldw + unit : 0, a.ldw, N);
    for (int e = t; e < GRU_ROWS * P; e += 3 * P) dh[e] = 0;
    for (int e = t; e < GRU_ROWS * 3 * P; e += 3 * P) back[e] = 0;
    for (int i = a.steps - 1; i >= 0; i--) {
        const struct run_step step = step_at(a, i);
        __syncthreads();
        for (int e = t; e < GRU_ROWS * P; e += 3 * P) {
            const int r = e / P, j = e % P, at = step.row + row0 + r;
            float *part = dg + r * 3 * P + j;
            part[0] = part[P] = part[2 * P] = 0;
            if (j >= N || row0 + r >= step.rows) continue;
            const float *through = back + r * 3 * P + j;
            float *g = a.g + at * a.ldg + j, hn = a.hn[at * N + j];
            struct gate_values v = {g[0], g[N], g[2 * N]};
            const float before = row0 + r < step.known ? a.y[(step.before + row0 + r) * a.ldy + j] : 0;
            const float d = dh[e] + through[0] + through[P] + through[2 * P] + a.dy[at * a.ldy + j];
            dh[e] = gru_gradient(&v, &hn, d, before);
            part[0] = v.r, part[P] = v.z, part[2 * P] = hn;
            g[0] = v.r, g[N] = v.z, g[2 * N] = v.n;
            a.hn[at * N + j] = hn;
        }
        __syncthreads();
        float s[GRU_ROWS];
#pragma unroll
        for (int r = 0; r < GRU_ROWS; r++) s[r] = 0;
        w.multiply(s, dg + gate * P, 3 * P);
#pragma unroll
        for (int r = 0; r < GRU_ROWS; r++) back[r * 3 * P + t] = s[r];
    }
}

/* RUN and BACK: weights in registers */
#define GRU_KERNELS(P, RUN, BACK)                                                                                      \
    KERNEL(gru_run##P)(const struct sequence a) {                                                                      \
        __shared__ __align__(16) float h[GRU_ROWS * P];                                                                \
        __shared__ __align__(16) float gh[GRU_ROWS * 3 * P];                                                           \
        __shared__ float rest[(P - RUN) * 3 * P + (P == RUN)];                                                         \
        run_sequence<P, RUN>(a, h, gh, rest);                                                                          \
    }                                                                                                                  \
    KERNEL(gru_back##P)(const struct sequence a) {                                                                     \
        __shared__ __align__(16) float dh[GRU_ROWS * P];                                                               \
        __shared__ __align__(16) float dg[GRU_ROWS * 3 * P];                                                           \
        __shared__ __align__(16) float back[GRU_ROWS * 3 * P];                                                         \
        __shared__ float rest[(P - BACK) * 3 * P + (P == BACK)];                                                       \
        back_sequence<P, BACK>(a, dh, dg, back, rest);                                                                 \
    }
GRU_KERNELS(32, 32, 32)
GRU_KERNELS(64, 64, 64)
GRU_KERNELS(96, 96, 96)
GRU_KERNELS(128, 108, 112)

/* ---- one step, product and gates together, for more hidden units: 16 rows and 32 units to a block of 32 x 4 threads ----
 * A thread has one unit, all three gates of it, and four rows: when the sums are done it has all that the gates need. */

enum { STEP_DEPTH = 16, STEP_THREADS = gru_step_threads };

KERNEL(gru_step)(const struct sequence a) {
    __shared__ __align__(16) float hs[STEP_DEPTH][GRU_STEP_ROWS + 4];
    __shared__ float ws[3][STEP_DEPTH][GRU_STEP_UNITS + 1];
    const struct run_step step = step_at(a, a.step);
    const int N = a.hidden, t = threadIdx.y * 32 + threadIdx.x, row0 = blockIdx.x * GRU_STEP_ROWS;
    const int unit0 = blockIdx.y * GRU_STEP_UNITS, j = unit0 + threadIdx.x;
    float s[3][4];
    if (row0 >= step.rows) return;
#pragma unroll
    for (int gate = 0; gate < 3; gate++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[gate][i] = j < N ? a.bias[gate * N + j] : 0;
    for (int p0 = 0; row0 < step.known && p0 < N; p0 += STEP_DEPTH) {
        for (int e = t; e < GRU_STEP_ROWS * STEP_DEPTH; e += STEP_THREADS) {
            const int r = row0 + e / STEP_DEPTH, p = p0 + e % STEP_DEPTH;
            hs[e % STEP_DEPTH][e / STEP_DEPTH] =
                p < N && r < step.known && r < step.rows ? a.y[(step.before + r) * a.ldy + p] : 0;
        }
#pragma unroll
        for (int gate = 0; gate < 3; gate++)
            for (int e = t; e < GRU_STEP_UNITS * STEP_DEPTH; e += STEP_THREADS) {
                const int u = unit0 + e / STEP_DEPTH, p = p0 + e % STEP_DEPTH;
                ws[gate][e % STEP_DEPTH][e / STEP_DEPTH] = p < N && u < N ? a.w[(gate * N + u) * a.ldw + p] : 0;
            }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < STEP_DEPTH; p++) {
            const float4 v = *(const float4 *)&hs[p][threadIdx.y * 4];
#pragma unroll
            for (int gate = 0; gate < 3; gate++) {
                const float w = ws[gate][p][threadIdx.x];
                s[gate][0] = fmaf(v.x, w, s[gate][0]);
                s[gate][1] = fmaf(v.y, w, s[gate][1]);
                s[gate][2] = fmaf(v.z, w, s[gate][2]);
                s[gate][3] = fmaf(v.w, w, s[gate][3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int r = row0 + threadIdx.y * 4 + i, at = step.row + r;
        if (j >= N || r >= step.rows) continue;
        float *g = a.g + at * a.ldg + j;
        struct gate_values v;
        const float before = r < step.known ? a.y[(step.before + r) * a.ldy + j] : 0;
        a.y[at * a.ldy + j] = gru_state(&v, g[0], g[N], g[2 * N], s[0][i], s[1][i], s[2][i], before);
        if (a.hn) a.hn[at * N + j] = s[2][i];
        g[0] = v.r, g[N] = v.z, g[2 * N] = v.n;
    }
}

/* Gradient that the step after (number step + 1 of the run) sends back through the weights, then the gates of this step.
 * dh (rows, N) holds what came back directly. 16 rows and 64 units to a block, four rows and two units to a thread. */
KERNEL(gru_step_back)(const struct sequence a) {
    __shared__ __align__(16) float gs[STEP_DEPTH][GRU_STEP_ROWS + 4];
    __shared__ float ws[STEP_DEPTH][GRU_BACK_UNITS];
    const struct run_step step = step_at(a, a.step);
    const int N = a.hidden, t = threadIdx.y * 32 + threadIdx.x, row0 = blockIdx.x * GRU_STEP_ROWS;
    const int unit0 = blockIdx.y * GRU_BACK_UNITS;
    struct run_step after = {0, 0, 0, 0};
    float s[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (row0 >= step.rows) return;
    if (a.step + 1 < a.steps) after = step_at(a, a.step + 1);
    const int carried = after.rows < step.rows ? after.rows : step.rows;
    for (int p0 = 0; row0 < carried && p0 < 3 * N; p0 += STEP_DEPTH) {
        for (int e = t; e < GRU_STEP_ROWS * STEP_DEPTH; e += STEP_THREADS) {
            const int r = row0 + e / STEP_DEPTH, p = p0 + e % STEP_DEPTH, at = after.row + r;
            float x = 0;
            if (r < carried && p < 3 * N) x = p < 2 * N ? a.g[at * a.ldg + p] : a.hn[at * N + p - 2 * N];
            gs[e % STEP_DEPTH][e / STEP_DEPTH] = x;
        }
        for (int e = t; e < GRU_BACK_UNITS * STEP_DEPTH; e += STEP_THREADS) {
            const int u = unit0 + e % GRU_BACK_UNITS, p = p0 + e / GRU_BACK_UNITS;
            ws[e / GRU_BACK_UNITS][e % GRU_BACK_UNITS] = p < 3 * N && u < N ? a.w[p * a.ldw + u] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < STEP_DEPTH; p++) {
            const float4 v = *(const float4 *)&gs[p][threadIdx.y * 4];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float w = ws[p][half * 32 + threadIdx.x];
                s[half][0] = fmaf(v.x, w, s[half][0]);
                s[half][1] = fmaf(v.y, w, s[half][1]);
                s[half][2] = fmaf(v.z, w, s[half][2]);
                s[half][3] = fmaf(v.w, w, s[half][3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = row0 + threadIdx.y * 4 + i, at = step.row + r, j = unit0 + half * 32 + threadIdx.x;
            if (j >= N || r >= step.rows) continue;
            float *g = a.g + at * a.ldg + j, hn = a.hn[at * N + j];
            struct gate_values v = {g[0], g[N], g[2 * N]};
            const float before = r < step.known ? a.y[(step.before + r) * a.ldy + j] : 0;
            const float d = (r < carried ? a.dh[r * N + j] + s[half][i] : 0) + a.dy[at * a.ldy + j];
            a.dh[r * N + j] = gru_gradient(&v, &hn, d, before);
            g[0] = v.r, g[N] = v.z, g[2 * N] = v.n;
            a.hn[at * N + j] = hn;
        }
}

/* ==== 8. The variational part, losses ============================================================================== */

/* z = mean + noise exp(logvar / 2) */
KERNEL(sample_forward)(const struct latent a) {
    const unsigned Z = a.latent;
    EACH(e, (unsigned)a.rows * (unsigned)a.samples * Z) {
        const float *posterior = a.posterior + e / Z / a.samples * 2 * Z + e % Z;
        a.z[e] = fmaf(a.noise[e], exp_of(0.5f * posterior[Z]), posterior[0]);
    }
}

/* dmean += dz, dlogvar += dz (z - mean) / 2: a thread has all samples of an entry */
KERNEL(sample_backward)(const struct latent a) {
    const unsigned Z = a.latent;
    EACH(e, (unsigned)a.rows * Z) {
        const unsigned at = e / Z * 2 * Z + e % Z;
        float dmean = a.dposterior[at], dlogvar = a.dposterior[at + Z];
        for (int s = 0; s < a.samples; s++) {
            const unsigned i = (e / Z * a.samples + s) * Z + e % Z;
            dmean += a.dz[i];
            dlogvar = fmaf(a.dz[i], 0.5f * (a.z[i] - a.posterior[at]), dlogvar);
        }
        a.dposterior[at] = dmean;
        a.dposterior[at + Z] = dlogvar;
    }
}

DEVICE int latent_steps(const struct latent &a, int r) {
    return a.length ? a.length[r] : 1;
}

DEVICE unsigned latent_row(const struct latent &a, int r, int k) {
    return (a.first ? a.first[k] : 0) + r;
}

/* A block has a record: out[r] = sum of (exp(logvar) + mean^2 - 1 - logvar) / 2 */
KERNEL(kl_forward)(const struct latent a) {
    __shared__ double part[kl_forward_threads];
    const int r = blockIdx.x, Z = a.latent;
    double s = 0;
    for (int e = threadIdx.x; e < latent_steps(a, r) * Z; e += kl_forward_threads) {
        const float *posterior = a.posterior + latent_row(a, r, e / Z) * 2 * Z + e % Z;
        const double mean = (double)posterior[0], logvar = (double)posterior[Z];
        s += 0.5 * ((double)exp_of(posterior[Z]) + mean * mean - 1 - logvar);
    }
    s = over_block<kl_forward_threads>(part, s);
    if (threadIdx.x == 0) a.out[r] = (float)s;
}

KERNEL(kl_backward)(const struct latent a) {
    const int r = blockIdx.x, Z = a.latent;
    const float d = a.dout[r];
    for (int e = threadIdx.x; e < latent_steps(a, r) * Z; e += kl_backward_threads) {
        const unsigned at = latent_row(a, r, e / Z) * 2 * Z + e % Z;
        a.dposterior[at] = fmaf(d, a.posterior[at], a.dposterior[at]);
        a.dposterior[at + Z] = fmaf(d, 0.5f * (exp_of(a.posterior[at + Z]) - 1), a.dposterior[at + Z]);
    }
}

/* A block has a record and a sample: out = sum of (z^2 - noise^2 - logvar) / 2 */
KERNEL(ratio_forward)(const struct latent a) {
    __shared__ double part[ratio_forward_threads];
    const int r = blockIdx.x / a.samples, sample = blockIdx.x % a.samples, Z = a.latent;
    double s = 0;
    for (int e = threadIdx.x; e < latent_steps(a, r) * Z; e += ratio_forward_threads) {
        const unsigned row = latent_row(a, r, e / Z), at = (row * a.samples + sample) * Z + e % Z;
        const double z = (double)a.z[at], noise = (double)a.noise[at];
        s += 0.5 * (z * z - noise * noise - (double)a.posterior[(2 * row + 1) * Z + e % Z]);
    }
    s = over_block<ratio_forward_threads>(part, s);
    if (threadIdx.x == 0) a.out[blockIdx.x] = (float)s;
}

/* A block has a record, a thread all samples of an entry. */
KERNEL(ratio_backward)(const struct latent a) {
    const int r = blockIdx.x, Z = a.latent;
    for (int e = threadIdx.x; e < latent_steps(a, r) * Z; e += ratio_backward_threads) {
        const unsigned row = latent_row(a, r, e / Z);
        float *dlogvar = a.dposterior + (2 * row + 1) * Z + e % Z, s = *dlogvar;
        for (int sample = 0; sample < a.samples; sample++) {
            const unsigned at = (row * a.samples + sample) * Z + e % Z;
            const float d = a.dout[r * a.samples + sample];
            a.dz[at] = fmaf(d, a.z[at], a.dz[at]);
            s -= 0.5f * d;
        }
        *dlogvar = s;
    }
}

/* ---- the cells of one record in the prediction of one sample ---- */

struct cells {
    const int *row, *channel;
    const float *value;
    int n;
    unsigned at, apart; /* where sample 0 starts, and from one sample to the next */
};

DEVICE struct cells cells_of(const struct likelihood &a, int r) {
    const struct batch &b = a.batch;
    const int from = b.cell0[r];
    struct cells x;
    x.row = b.cell_row + from;
    x.channel = b.cell_channel + from;
    x.value = b.cell_value + from;
    x.n = b.cell0[r + 1] - from;
    x.at = b.query0[r] * b.samples * b.outputs;
    x.apart = (b.query0[r + 1] - b.query0[r]) * b.outputs;
    return x;
}

KERNEL(loglik_forward)(const struct likelihood a) {
    __shared__ double part[loglik_forward_threads];
    const int r = blockIdx.x / a.batch.samples, s = blockIdx.x % a.batch.samples;
    const struct cells x = cells_of(a, r);
    const float *prediction = a.prediction + x.at + s * x.apart;
    double squares = 0;
    for (int j = threadIdx.x; j < x.n; j += loglik_forward_threads) {
        const double e = (double)x.value[j] - (double)prediction[x.row[j] * a.batch.outputs + x.channel[j]];
        squares += e * e;
    }
    squares = over_block<loglik_forward_threads>(part, squares);
    if (threadIdx.x == 0) a.logp[blockIdx.x] = (float)(-0.5 * (a.constant * x.n + squares / a.variance));
}

/* Cells come in the order of time, and two may be the same one: the first of those adds them all up, in order. */
KERNEL(loglik_backward)(const struct likelihood a) {
    const int r = blockIdx.x / a.batch.samples, s = blockIdx.x % a.batch.samples;
    const struct cells x = cells_of(a, r);
    const float factor = (float)((double)a.dlogp[blockIdx.x] / a.variance);
    for (int j = threadIdx.x; j < x.n; j += loglik_backward_threads) {
        const unsigned at = x.at + s * x.apart + x.row[j] * a.batch.outputs + x.channel[j];
        int first = j;
        for (int i = j - 1; i >= 0 && x.row[i] == x.row[j]; i--)
            if (x.channel[i] == x.channel[j]) first = i;
        if (first < j) continue;
        float d = a.dprediction[at];
        for (int i = j; i < x.n && x.row[i] == x.row[j]; i++)
            if (x.channel[i] == x.channel[j]) d = fmaf(factor, x.value[i] - a.prediction[at], d);
        a.dprediction[at] = d;
    }
}

/* The same with a deviation of each cell's own. */
KERNEL(loglik_sd_forward)(const struct likelihood a) {
    __shared__ double part[loglik_sd_forward_threads];
    const int r = blockIdx.x / a.batch.samples, s = blockIdx.x % a.batch.samples;
    const struct cells x = cells_of(a, r);
    double sum = 0;
    for (int j = threadIdx.x; j < x.n; j += loglik_sd_forward_threads) {
        const unsigned at = x.at + s * x.apart + x.row[j] * a.batch.outputs + x.channel[j];
        const float sd = a.least + softplus_of(a.raw[at]);
        const double e = ((double)x.value[j] - (double)a.prediction[at]) / (double)sd;
        sum += LOG_TWO_PI + 2 * (double)log_of(sd) + e * e;
    }
    sum = over_block<loglik_sd_forward_threads>(part, sum);
    if (threadIdx.x == 0) a.logp[blockIdx.x] = (float)(-0.5 * sum);
}

/* Of cells that are the same one the first adds them all up, as above. */
KERNEL(loglik_sd_backward)(const struct likelihood a) {
    const int r = blockIdx.x / a.batch.samples, s = blockIdx.x % a.batch.samples;
    const struct cells x = cells_of(a, r);
    for (int j = threadIdx.x; j < x.n; j += loglik_sd_backward_threads) {
        const unsigned at = x.at + s * x.apart + x.row[j] * a.batch.outputs + x.channel[j];
        const float sd = a.least + softplus_of(a.raw[at]), factor = a.dlogp[blockIdx.x] / sd;
        int first = j;
        for (int i = j - 1; i >= 0 && x.row[i] == x.row[j]; i--)
            if (x.channel[i] == x.channel[j]) first = i;
        if (first < j) continue;
        for (int i = j; i < x.n && x.row[i] == x.row[j]; i++) {
            const float e = (x.value[i] - a.prediction[at]) / sd;
            if (x.channel[i] != x.channel[j]) continue;
            a.dprediction[at] = fmaf(factor, e, a.dprediction[at]);
            a.draw[at] = fmaf(factor * sigmoid_of(a.raw[at]), fmaf(e, e, -1.0f), a.draw[at]);
        }
    }
}

/* error[r] = squared error of the mean prediction over the samples */
KERNEL(squared_error)(const struct likelihood a) {
    __shared__ double part[squared_error_threads];
    const struct cells x = cells_of(a, blockIdx.x);
    double sum = 0;
    for (int j = threadIdx.x; j < x.n; j += squared_error_threads) {
        const float *p = a.prediction + x.at + x.row[j] * a.batch.outputs + x.channel[j];
        double mean = 0;
        for (int s = 0; s < a.batch.samples; s++) mean += (double)p[s * x.apart] / a.batch.samples;
        sum += (mean - (double)x.value[j]) * (mean - (double)x.value[j]);
    }
    sum = over_block<squared_error_threads>(part, sum);
    if (threadIdx.x == 0) a.error[blockIdx.x] = sum;
}

/* ---- bound and cross-entropy: a thread has a record, or a row ---- */

DEVICE double bound_value(const struct bound &a, int r, int s) {
    const unsigned kl = a.kl_stride ? r * a.samples + s : r;
    return ((double)a.logp[r * a.samples + s] - a.kl_weight * (double)a.kl[kl]) * (double)a.share[r];
}

KERNEL(bound_forward)(const struct bound a) {
    EACH(r, (unsigned)a.records) {
        double max = 0, sum = 0, mean = 0;
        for (int s = 0; s < a.samples; s++) {
            const double v = bound_value(a, r, s);
            max = s == 0 || v > max ? v : max;
            mean += v / a.samples;
        }
        float *weight = a.weight + r * a.samples;
        for (int s = 0; s < a.samples; s++) {
            weight[s] = a.elbo ? 1 : exp_of((float)(bound_value(a, r, s) - max));
            sum += (double)weight[s];
        }
        for (int s = 0; s < a.samples; s++) weight[s] = (float)((double)weight[s] / sum);
        a.loss[r] = (float)-(a.elbo ? mean : max + (double)log_of((float)(sum / a.samples)));
    }
}

KERNEL(bound_backward)(const struct bound a) {
    EACH(r, (unsigned)a.records)
    for (int s = 0; s < a.samples; s++) {
        const float d = a.seed * a.share[r] * a.weight[r * a.samples + s];
        a.dlogp[r * a.samples + s] -= d;
        a.dkl[a.kl_stride ? r * a.samples + s : r] += (float)a.kl_weight * d;
    }
}

/* The rows of a block: 128 of all, or those of one record. */
struct labelled {
    int begin, end, stride;
};

DEVICE struct labelled rows_of(const struct cross_entropy &a) {
    struct labelled x = {(int)(blockIdx.x * blockDim.x + threadIdx.x), a.rows, (int)(gridDim.x * blockDim.x)};
    if (a.query0) {
        x.begin = a.query0[blockIdx.x] * a.samples + threadIdx.x;
        x.end = a.query0[blockIdx.x + 1] * a.samples;
        x.stride = blockDim.x;
    }
    return x;
}

/* Where the label or the numbers of a row are. */
DEVICE int target_of(const struct cross_entropy &a, int row) {
    if (!a.query0) return row / a.samples;
    const int from = a.query0[blockIdx.x], n = a.query0[blockIdx.x + 1] - from;
    return from + (row - from * a.samples) % n;
}

DEVICE int label_of(const struct cross_entropy &a, int row) {
    return a.label[target_of(a, row)];
}

KERNEL(cross_entropy_forward)(const struct cross_entropy a) {
    const struct labelled of = rows_of(a);
    for (int r = of.begin; r < of.end; r += of.stride) {
        const float *x = a.x + r * a.classes;
        const int y = label_of(a, r);
        float *p = a.p + r * a.classes, max = x[0], sum = 0;
        for (int c = 1; c < a.classes; c++) max = x[c] > max ? x[c] : max;
        for (int c = 0; c < a.classes; c++) sum += p[c] = exp_of(x[c] - max);
        for (int c = 0; c < a.classes; c++) p[c] /= sum;
        a.loss[r] = y < 0 ? 0 : log_of(sum) - (x[y] - max);
        if (a.weight && y >= 0) a.loss[r] *= a.weight[y];
    }
}

KERNEL(cross_entropy_backward)(const struct cross_entropy a) {
    const struct labelled of = rows_of(a);
    for (int r = of.begin; r < of.end; r += of.stride) {
        const int y = label_of(a, r);
        float *dx = a.dx + r * a.classes;
        const float *p = a.p + r * a.classes;
        const float seed = a.weight && y >= 0 ? a.seed * a.weight[y] : a.seed;
        for (int c = 0; y >= 0 && c < a.classes; c++) dx[c] = fmaf(seed, p[c] - (c == y ? 1 : 0), dx[c]);
    }
}

/* The share of numbers that shall lie below output o of three. */
DEVICE float quantile_of(const struct numbers &a, int o) {
    return (1 + (float)(o - 1) * a.interval) / 2;
}

DEVICE float number_loss(const struct numbers &a, float x, float y, int o) {
    if (a.labels) return ((x > 0 ? x : 0) - x * y) + softplus_of(x > 0 ? -x : x);
    if (a.levels == 1) return (x - y) * (x - y);
    return (y > x ? quantile_of(a, o) : quantile_of(a, o) - 1) * (y - x);
}

DEVICE float number_slope(const struct numbers &a, float p, float y, int o) {
    if (a.labels) return p - y;
    return a.levels == 1 ? 2 * (p - y) : (y > p ? 0 : 1) - quantile_of(a, o);
}

KERNEL(numbers_forward)(const struct numbers a) {
    const struct labelled of = rows_of(a.rows);
    const int outputs = a.rows.classes * a.levels;
    for (int r = of.begin; r < of.end; r += of.stride) {
        const float *x = a.rows.x + r * outputs, *y = a.y + target_of(a.rows, r) * a.rows.classes;
        float *p = a.rows.p + r * outputs, loss = 0;
        for (int o = 0; o < outputs; o++) {
            const float wanted = y[o / a.levels];
            p[o] = a.labels ? sigmoid_of(x[o]) : x[o];
            if (wanted == wanted) loss += number_loss(a, x[o], wanted, o % a.levels);
        }
        a.rows.loss[r] = loss;
    }
}

KERNEL(numbers_backward)(const struct numbers a) {
    const struct labelled of = rows_of(a.rows);
    const int outputs = a.rows.classes * a.levels;
    for (int r = of.begin; r < of.end; r += of.stride) {
        const float *p = a.rows.p + r * outputs, *y = a.y + target_of(a.rows, r) * a.rows.classes;
        float *dx = a.rows.dx + r * outputs;
        for (int o = 0; o < outputs; o++) {
            const float wanted = y[o / a.levels];
            if (wanted == wanted) dx[o] = fmaf(a.rows.seed, number_slope(a, p[o], wanted, o % a.levels), dx[o]);
        }
    }
}

/* ==== 9. Moving rows: y is what is written, in the backward kernels the gradient of what was read =================== */

/* (B, C) to the rows (R, C) of the sequence; a block has a step */
KERNEL(spread_forward)(const struct rows a) {
    const int from = a.first[blockIdx.x], n = (a.first[blockIdx.x + 1] - from) * a.cols;
    for (int e = threadIdx.x; e < n; e += spread_forward_threads)
        a.y[(from + e / a.cols) * a.ldy + e % a.cols] = a.x[e / a.cols * a.ldx + e % a.cols];
}

KERNEL(spread_backward)(const struct rows a) {
    EACH(e, (unsigned)a.records * (unsigned)a.cols) {
        const int b = e / a.cols, c = e % a.cols;
        float s = a.y[b * a.ldy + c];
        for (int k = 0; k < a.length[b]; k++) s += a.x[(a.first[k] + b) * a.ldx + c];
        a.y[b * a.ldy + c] = s;
    }
}

/* (R S, N) to (B S, N): the last step of each record, zeros where it has none */
KERNEL(last_forward)(const struct rows a) {
    EACH(e, (unsigned)a.records * (unsigned)a.samples * (unsigned)a.cols) {
        const int i = e / a.cols, b = i / a.samples, c = e % a.cols, k = a.length[b] - 1;
        a.y[i * a.ldy + c] = k < 0 ? 0 : a.x[((a.first[k] + b) * a.samples + i % a.samples) * a.ldx + c];
    }
}

KERNEL(last_backward)(const struct rows a) {
    EACH(e, (unsigned)a.records * (unsigned)a.samples * (unsigned)a.cols) {
        const int i = e / a.cols, b = i / a.samples, c = e % a.cols, k = a.length[b] - 1;
        if (k >= 0) a.y[((a.first[k] + b) * a.samples + i % a.samples) * a.ldy + c] += a.x[i * a.ldx + c];
    }
}

/* (step, record, sample) to (record, sample, step); a block has a record and a sample */
KERNEL(regroup_forward)(const struct rows a) {
    const int b = blockIdx.x / a.samples, s = blockIdx.x % a.samples, n = a.length[b];
    for (int e = threadIdx.x; e < n * a.cols; e += regroup_forward_threads) {
        const int k = e / a.cols, c = e % a.cols;
        a.y[(a.point0[b] * a.samples + s * n + k) * a.ldy + c] = a.x[((a.first[k] + b) * a.samples + s) * a.ldx + c];
    }
}

KERNEL(regroup_backward)(const struct rows a) {
    const int b = blockIdx.x / a.samples, s = blockIdx.x % a.samples, n = a.length[b];
    for (int e = threadIdx.x; e < n * a.cols; e += regroup_backward_threads) {
        const int k = e / a.cols, c = e % a.cols;
        a.y[((a.first[k] + b) * a.samples + s) * a.ldy + c] += a.x[(a.point0[b] * a.samples + s * n + k) * a.ldx + c];
    }
}

/* (step, record, sample) to (record, sample, query), for queries that are steps; a block has a record and a sample */
KERNEL(at_queries_forward)(const struct rows a) {
    const int b = blockIdx.x / a.samples, s = blockIdx.x % a.samples, q0 = a.query0[b], n = a.query0[b + 1] - q0;
    for (int e = threadIdx.x; e < n * a.cols; e += at_queries_forward_threads) {
        const int i = e / a.cols, c = e % a.cols, row = (a.first[a.query_row[q0 + i]] + b) * a.samples + s;
        a.y[(q0 * a.samples + s * n + i) * a.ldy + c] = a.x[row * a.ldx + c];
    }
}

/* Two queries may be one step: a thread has a column and takes the queries in their order. */
KERNEL(at_queries_backward)(const struct rows a) {
    const int b = blockIdx.x / a.samples, s = blockIdx.x % a.samples, q0 = a.query0[b], n = a.query0[b + 1] - q0;
    for (int c = threadIdx.x; c < a.cols; c += at_queries_backward_threads)
        for (int i = 0; i < n; i++) {
            const int row = (a.first[a.query_row[q0 + i]] + b) * a.samples + s;
            a.y[row * a.ldy + c] += a.x[(q0 * a.samples + s * n + i) * a.ldx + c];
        }
}

/* ==== 10. Decoder attention, and scores of records that have points of their own ==================================== */

/* A block has four rows of one record's block of weights (queries, points); c the weights, in the backward pass their
 * gradient, with the weights in a. */
KERNEL(softmax_pairs_forward)(const struct group a) {
    const int r = blockIdx.x / a.tiles_m, i = blockIdx.x % a.tiles_m * softmax_pairs_forward_y + threadIdx.y;
    const int n = a.batch.length[r];
    if (i < a.batch.query0[r + 1] - a.batch.query0[r]) softmax_row(a.c + a.batch.pair0[r] + i * n, n);
}

KERNEL(softmax_pairs_backward)(const struct group a) {
    const int r = blockIdx.x / a.tiles_m, i = blockIdx.x % a.tiles_m * softmax_pairs_backward_y + threadIdx.y;
    const int n = a.batch.length[r], at = a.batch.pair0[r] + i * n;
    if (i < a.batch.query0[r + 1] - a.batch.query0[r]) softmax_row_back(a.c + at, a.a + at, n);
}

/* Which tile of which record, or record and sample, a block has. */
struct place {
    int group, i0, j0;
};

DEVICE struct place place_of(const struct group &a) {
    const int tiles = a.tiles_m * a.tiles_n, tile = blockIdx.x % tiles;
    const struct place p = {(int)blockIdx.x / tiles, tile / a.tiles_n * TILE, tile % a.tiles_n * TILE};
    return p;
}

/* A record's block of scores: rows are its times, or its queries in the decoder; columns its points. */
struct score_block {
    unsigned at; /* in the scores */
    int row, rows, point, points;
};

DEVICE struct score_block score_of(const struct group &a, int r) {
    const struct batch &b = a.batch;
    const int *row0 = a.decoder ? b.query0 : b.time0;
    const struct score_block x = {(unsigned)(a.decoder ? b.pair0 : b.score0)[r], row0[r], row0[r + 1] - row0[r],
                                  b.point0 ? b.point0[r] : 0, b.length[r]};
    return x;
}

/* c scores, a rows, b points, both with `inner` columns */
KERNEL(score_forward)(const struct group a) {
    TILES;
    const struct place p = place_of(a);
    const struct score_block x = score_of(a, p.group);
    const struct result c = {a.c + x.at, x.points, x.rows, x.points, 0};
    const struct operand<1> u = { a.a + x.row *a.lda, a.lda, x.rows, a.inner };
    const struct operand<1> v = { a.b + x.point *a.ldb, a.ldb, x.points, a.inner };
    if (p.i0 < c.m && p.j0 < c.n) make_tile<1, 1>(as, bs, c, u, v, p.i0, p.j0);
}

/* c gradient of the rows, a gradient of the scores, b points */
KERNEL(score_row_backward)(const struct group a) {
    TILES;
    const struct place p = place_of(a);
    const struct score_block x = score_of(a, p.group);
    const struct result c = {a.c + x.row * a.ldc, a.ldc, x.rows, a.inner, 1};
    const struct operand<1> u = { a.a + x.at, x.points, x.rows, x.points };
    const struct operand<0> v = { a.b + x.point *a.ldb, a.ldb, a.inner, x.points };
    if (p.i0 < c.m && p.j0 < c.n) make_tile<1, 0>(as, bs, c, u, v, p.i0, p.j0);
}

/* c gradient of the record's own points, a gradient of the scores, b rows */
KERNEL(score_point_backward)(const struct group a) {
    TILES;
    const struct place p = place_of(a);
    const struct score_block x = score_of(a, p.group);
    const struct result c = {a.c + x.point * a.ldc, a.ldc, x.points, a.inner, 1};
    const struct operand<0> u = { a.a + x.at, x.points, x.points, x.rows };
    const struct operand<0> v = { a.b + x.row *a.ldb, a.ldb, a.inner, x.rows };
    if (p.i0 < c.m && p.j0 < c.n) make_tile<0, 0>(as, bs, c, u, v, p.i0, p.j0);
}

/* Weights (L, K) of a record, values (K, C) and results (L, C) of a record and sample: where each starts. */
struct value_block {
    unsigned weight, value;
    int y, queries, points;
};

DEVICE struct value_block values_of(const struct group &a, int r, int s, int ldv) {
    const struct batch &b = a.batch;
    struct value_block x;
    x.queries = b.query0[r + 1] - b.query0[r];
    x.points = b.length[r];
    x.weight = b.pair0[r];
    x.y = b.query0[r] * b.samples + s * x.queries;
    x.value = b.point0 ? (b.point0[r] * b.samples + s * x.points) * ldv : (r * b.samples + s) * a.apart;
    return x;
}

/* c results (L, C), a weights (L, K), b values (K, C); inner = C */
KERNEL(values_forward)(const struct group a) {
    TILES;
    const struct place p = place_of(a);
    const struct value_block x = values_of(a, p.group / a.batch.samples, p.group % a.batch.samples, a.ldb);
    const struct result c = {a.c + x.y * a.ldc, a.ldc, x.queries, a.inner, 0};
    const struct operand<1> u = { a.a + x.weight, x.points, x.queries, x.points };
    const struct operand<0> v = { a.b + x.value, a.ldb, a.inner, x.points };
    if (p.i0 < c.m && p.j0 < c.n) make_tile<1, 0>(as, bs, c, u, v, p.i0, p.j0);
}

/* c gradient of the weights (L, K), a that of the results (L, C), b values (K, C); the samples one after the other */
KERNEL(values_weight_backward)(const struct group a) {
    TILES;
    const struct place p = place_of(a);
    for (int s = 0; s < a.batch.samples; s++) {
        const struct value_block x = values_of(a, p.group, s, a.ldb);
        const struct result c = {a.c + x.weight, x.points, x.queries, x.points, 1};
        const struct operand<1> u = { a.a + x.y *a.lda, a.lda, x.queries, a.inner };
        const struct operand<1> v = { a.b + x.value, a.ldb, x.points, a.inner };
        if (p.i0 < c.m && p.j0 < c.n) make_tile<1, 1>(as, bs, c, u, v, p.i0, p.j0);
    }
}

/* c gradient of the values (K, C), a weights (L, K), b gradient of the results (L, C) */
KERNEL(values_backward)(const struct group a) {
    TILES;
    const struct place p = place_of(a);
    const struct value_block x = values_of(a, p.group / a.batch.samples, p.group % a.batch.samples, a.ldc);
    const struct result c = {a.c + x.value, a.ldc, x.points, a.inner, 1};
    const struct operand<0> u = { a.a + x.weight, x.points, x.points, x.queries };
    const struct operand<0> v = { a.b + x.y *a.ldb, a.ldb, a.inner, x.queries };
    if (p.i0 < c.m && p.j0 < c.n) make_tile<0, 0>(as, bs, c, u, v, p.i0, p.j0);
}

/* ==== 11. Random numbers: section 3 of mtan.c ====================================================================== */

struct words {
    unsigned v[4];
};

DEVICE struct words philox(unsigned a, unsigned b, unsigned c, unsigned d, unsigned long long key) {
    const unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
#pragma unroll
    for (unsigned round = 0; round < 10; round++) {
        const unsigned long long p = (unsigned long long)a * 0xd2511f53u, q = (unsigned long long)c * 0xcd9e8d57u;
        a = (unsigned)(q >> 32) ^ b ^ (k0 + round * 0x9e3779b9u);
        c = (unsigned)(p >> 32) ^ d ^ (k1 + round * 0xbb67ae85u);
        b = (unsigned)q;
        d = (unsigned)p;
    }
    const struct words w = {{a, b, c, d}};
    return w;
}

DEVICE unsigned long long mix64(unsigned long long z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* out (R S, Z) as z lies; a block has a record and a sample, a thread sixteen normals */
KERNEL(noise)(const struct random a) {
    const int b = blockIdx.x / a.samples, s = blockIdx.x % a.samples, Z = a.width;
    const int n = (a.length ? a.length[b] : 1) * Z;
    const unsigned long long key = mix64(mix64(a.seed) ^ a.id[b]);
    for (int from = threadIdx.x * 16; from < n; from += noise_threads * 16) {
        float x[16];
#pragma unroll
        for (int i = 0; i < 16; i += 4) {
            const struct words w = philox((from + i) / 4, s, (unsigned)a.epoch, (unsigned)(a.epoch >> 32), key);
#pragma unroll
            for (int j = 0; j < 4; j++) x[i + j] = (float)(w.v[j] >> 8) / 16777216;
        }
#pragma unroll
        for (int i = 0; i < 8; i++) normal_pair(&x[i], &x[8 + i], x[i], 1 - x[i], x[8 + i]);
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const int e = from + i, row = (a.first ? a.first[e < n ? e / Z : 0] : 0) + b;
            if (e < n) a.out[(row * a.samples + s) * Z + e % Z] = x[i];
        }
    }
}

/* out (rows of logits, width): 0 where a unit is dropped, else 1; a block has a record */
KERNEL(mask)(const struct random a) {
    const int b = blockIdx.x, queries = a.query0 ? a.query0[b + 1] - a.query0[b] : 0;
    const int n = a.layout == LAYOUT_RECORD ? 1 : a.layout == LAYOUT_STEP ? a.length[b] : queries;
    const unsigned long long key = mix64(mix64(a.seed) ^ a.id[b]);
    for (int e = threadIdx.x; e < n * a.samples * a.width; e += mask_threads) {
        const int c = e % a.width, s = e / a.width % a.samples, i = e / a.width / a.samples;
        const unsigned long long unit = (2ull * i + a.hidden_layer) * a.width + c;
        const struct words w =
            philox((unsigned)(unit / 4), s, (unsigned)a.epoch, (unsigned)(a.epoch >> 32) | 0x40000000u, key);
        const int row = a.layout == LAYOUT_RECORD ? b * a.samples + s
                        : a.layout == LAYOUT_STEP ? a.first[i] + b
                                                  : a.query0[b] * a.samples + s * n + i;
        const unsigned at = unit % 4, bits = at == 0 ? w.v[0] : at == 1 ? w.v[1] : at == 2 ? w.v[2] : w.v[3];
        a.out[row * a.width + c] = bits >= a.least ? 1 : 0;
    }
}
