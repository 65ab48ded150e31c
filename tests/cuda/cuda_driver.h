/* A CUDA driver for tests: the functions of mtan_cuda_driver on the CPU. Device memory is the host's, filled with NaN when it
 * is given out and known to the shim, on which kernels run.
 *
 * It has two devices, each with a context, and a stack of contexts in the one thread there is: what was made in a context
 * can be used while that one is current, and goes when the context's last holder lets go of it.
 *
 * Any call can be made to fail, and what was given out and not given back is counted. With `deferred` a stream does its
 * work as late as it may, now and then a piece of it, as a real one would: what reads too early then reads something old,
 * and what is changed too early arrives changed. */
#ifndef MTAN_TESTS_CUDA_DRIVER_H
#define MTAN_TESTS_CUDA_DRIVER_H

#include "../../platform/cuda/mtan_cuda.h"

typedef struct driver_state {
    int calls;           /* so far */
    int fail_at;         /* the call that fails, from 1; 0: none */
    const char *fail_in; /* a function that fails whenever it is called, or null */
    int error;           /* how */
    const char *failed;  /* the call that did, or null */
    int blas_fails;      /* every product of cuBLAS */
    int deferred;        /* 1: late, 2: no sooner than waited for; set it when nothing is under way */
    int contexts, modules, streams, events, blocks, pinned, blas; /* given out */
    int launches, products, launched[128];                        /* in all; of cuBLAS; of each kernel */
    int pinned_asked;                                             /* how often pinned memory was asked for */
    int waits;                                                    /* for a stream */
    int hasty;                 /* memory given back before its context's streams were done */
    int left;                  /* what a context still had when it went */
    int uploaded;              /* copies to the device */
    unsigned long long random; /* of deferred work; not 0 */
} driver_state;
extern driver_state test_driver;

extern const mtan_cuda_driver test_driver_functions;
extern const mtan_cuda_blas test_blas_functions;
extern const unsigned char test_driver_image[];

/* Everything counted above, together. */
int driver_given_out(void);

/* The context on top of the thread's stack, or null; one that the program around has put there, of any kind. */
void *driver_current(void);
void driver_set_current(void *context);

/* mtan_cuda_load where there are these libraries, which lack a symbol or none. */
extern struct driver_libraries {
    char driver, blas;
    const char *missing;
} driver_libraries;
mtan_cuda_status driver_load(mtan_cuda_driver *driver, mtan_cuda_blas *blas, char *message, size_t size);

/* A lost device stays lost until the context is released; this forgets that, the counts of calls and what should fail. */
void driver_reset(void);

#endif
