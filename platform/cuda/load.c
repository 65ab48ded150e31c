/* mtan_cuda_load: the driver and cuBLAS, looked for when the program runs. */
#include "mtan_cuda.h"

#include <stdio.h>
#include <string.h>

#if defined _WIN32

#include <windows.h>

static void *open_library(const char *name) {
    return (void *)LoadLibraryA(name);
}
static void *symbol(void *library, const char *name) {
    void *address;
    FARPROC found = GetProcAddress((HMODULE)library, name);
    memcpy(&address, &found, sizeof address);
    return address;
}
static const char *const driver_names[] = {"nvcuda.dll", NULL};
static const char *const blas_names[] = {"cublas64_13.dll", "cublas64_12.dll", "cublas64_11.dll", NULL};

#elif defined __unix__ || defined __APPLE__

#include <dlfcn.h>

static void *open_library(const char *name) {
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
static void *symbol(void *library, const char *name) {
    return dlsym(library, name);
}
static const char *const driver_names[] = {"libcuda.so.1", "libcuda.so", NULL};
static const char *const blas_names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so", NULL};

#else

static void *open_library(const char *name) {
    (void)name;
    return NULL;
}
static void *symbol(void *library, const char *name) {
    (void)library, (void)name;
    return NULL;
}
static const char *const driver_names[] = {NULL}, *const blas_names[] = {NULL};

#endif

typedef char tables_are_pointers[sizeof(void *) == sizeof(void (*)(void)) ? 1 : -1];

/* The libraries stay loaded: the driver does not like to be unloaded. */
static void *first_library(const char *const *names) {
    void *library = NULL;
    for (; *names && !library; names++) library = open_library(*names);
    return library;
}

/* Fills a table of `n` functions; returns the name of the first that is missing, or null. */
static const char *fill_table(void *table, void *library, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        void *address = symbol(library, names[i]);
        if (!address) return names[i];
        memcpy((char *)table + i * sizeof address, &address, sizeof address);
    }
    return NULL;
}

mtan_cuda_status mtan_cuda_load(mtan_cuda_driver *driver, mtan_cuda_blas *blas, char *message, size_t size) {
#define X(name, symbol, parameters) #symbol,
    static const char *const driver_symbols[] = {MTAN_CUDA_DRIVER(X)}, *const blas_symbols[] = {MTAN_CUDA_BLAS(X)};
#undef X
    const char *missing = NULL;
    void *library = first_library(driver_names);
    memset(driver, 0, sizeof *driver);
    if (blas) memset(blas, 0, sizeof *blas);
    if (library) missing = fill_table(driver, library, driver_symbols, sizeof driver_symbols / sizeof *driver_symbols);
    if (!library || missing) {
        memset(driver, 0, sizeof *driver);
        if (message && missing) snprintf(message, size, "CUDA: the NVIDIA driver is too old: it has no %s", missing);
        else if (message) snprintf(message, size, "CUDA: no NVIDIA driver here: libcuda is missing");
        return MTAN_CUDA_NO_DRIVER;
    }
    library = blas ? first_library(blas_names) : NULL;
    if (library && fill_table(blas, library, blas_symbols, sizeof blas_symbols / sizeof *blas_symbols))
        memset(blas, 0, sizeof *blas);
    return MTAN_CUDA_OK;
}
