/* Definitions that clang needs to compile kernels.cu without a header or a library of CUDA: the keywords that it does
 * not know by itself. */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))

struct index3 {
    unsigned x, y, z;
};
static __device__ __forceinline__ index3 thread_index() {
    return {(unsigned)__nvvm_read_ptx_sreg_tid_x(), (unsigned)__nvvm_read_ptx_sreg_tid_y(),
            (unsigned)__nvvm_read_ptx_sreg_tid_z()};
}
static __device__ __forceinline__ index3 block_index() {
    return {(unsigned)__nvvm_read_ptx_sreg_ctaid_x(), (unsigned)__nvvm_read_ptx_sreg_ctaid_y(),
            (unsigned)__nvvm_read_ptx_sreg_ctaid_z()};
}
static __device__ __forceinline__ index3 block_size() {
    return {(unsigned)__nvvm_read_ptx_sreg_ntid_x(), (unsigned)__nvvm_read_ptx_sreg_ntid_y(),
            (unsigned)__nvvm_read_ptx_sreg_ntid_z()};
}
static __device__ __forceinline__ index3 grid_size() {
    return {(unsigned)__nvvm_read_ptx_sreg_nctaid_x(), (unsigned)__nvvm_read_ptx_sreg_nctaid_y(),
            (unsigned)__nvvm_read_ptx_sreg_nctaid_z()};
}
#define threadIdx thread_index()
#define blockIdx block_index()
#define blockDim block_size()
#define gridDim grid_size()

struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};
static __device__ __forceinline__ float fmaf(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
static __device__ __forceinline__ float __fsqrt_rn(float x) {
    return __nvvm_sqrt_rn_f(x);
}
static __device__ __forceinline__ unsigned __float_as_uint(float x) {
    return __builtin_bit_cast(unsigned, x);
}
static __device__ __forceinline__ float __uint_as_float(unsigned u) {
    return __builtin_bit_cast(float, u);
}
static __device__ __forceinline__ int __shfl_xor_sync(unsigned mask, int x, int lane) {
    return __nvvm_shfl_sync_bfly_i32(mask, x, lane, 31);
}
static __device__ __forceinline__ float __shfl_xor_sync(unsigned mask, float x, int lane) {
    return __nvvm_shfl_sync_bfly_f32(mask, x, lane, 31);
}
