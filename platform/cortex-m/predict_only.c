/* mtan.c for an image that only predicts: the same code under a table without the kernels of losses, gradients and
 * optimisers, which so fall to the linker's --gc-sections. Stands in for mtan.c. A trainer in such a build would call a
 * null pointer. */
#define MTAN_NO_TABLE
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunused-function" /* what the table leaves out */
#endif
#include "../../mtan.c"

#define TRAINS(kernel) 0

/* In the order of mtan.c's, by position: a kernel that is new there does not compile here until it is named. */
/* clang-format off */
const mtan_backend mtan_backend_scalar = {
    MTAN_BACKEND_NAME, MTAN_FUSED, map_kernel, exp_parts, fill_kernel, scale_kernel, sum_kernel, sum_squares_kernel,
    copy_kernel, add_kernel, product_nn, product_nt, product_tn,
    embed_forward, TRAINS(embed_backward), embed_fixed,
    relu_forward, TRAINS(relu_backward), TRAINS(tanh_backward), TRAINS(softplus_backward),
    softmax_forward, TRAINS(softmax_backward),
    attend_forward, TRAINS(attend_backward), attend_weights,
    rbf_forward, TRAINS(rbf_backward), rbf_weights,
    smooth_forward, TRAINS(smooth_backward),
    gru_forward, TRAINS(gru_backward),
    sample_forward, TRAINS(sample_backward),
    TRAINS(kl_forward), TRAINS(kl_backward), TRAINS(ratio_forward), TRAINS(ratio_backward),
    TRAINS(loglik_forward), TRAINS(loglik_backward), TRAINS(bound_forward), TRAINS(bound_backward), TRAINS(squared_error),
    TRAINS(cross_entropy_forward), TRAINS(cross_entropy_backward), TRAINS(adam_kernel), TRAINS(adamax_kernel),
    pack_count, pack, product_packed, normal_pairs,
    pack_int8_count, pack_int8, product_int8, product_nt_int8, product_nn_int8, NULL
};
/* clang-format on */
