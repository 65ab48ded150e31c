/* mtan_cuda_load on libraries that a test makes up: load.c once more, under another name, with a linker of our own. */
#ifdef MTAN_WITH_CUDA_SHIM

#include <dlfcn.h>
#include <string.h>

#include "cuda_driver.h"

struct driver_libraries driver_libraries;

static void *fake_dlopen(const char *name, int flags) {
    (void)flags;
    if (strncmp(name, "libcublas", 9) == 0) return driver_libraries.blas ? &driver_libraries.blas : NULL;
    return driver_libraries.driver ? &driver_libraries.driver : NULL;
}

/* Some address: none of these is called. */
static void *fake_dlsym(void *library, const char *name) {
    const char *missing = driver_libraries.missing;
    return missing && strcmp(name, missing) == 0 ? NULL : library;
}

#define dlopen fake_dlopen
#define dlsym fake_dlsym
#define mtan_cuda_load driver_load
#include "../../platform/cuda/load.c"

#else

typedef int no_libraries;

#endif
