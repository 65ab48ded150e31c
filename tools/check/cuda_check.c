/* Compiles a CUDA file with NVRTC, NVIDIA's compiler as a library, which still supports GPUs that nvcc 13 has dropped.
 *
 *     cuda_check LIBNVRTC SOURCE INCLUDE ARCHITECTURE OUT
 *
 * ARCHITECTURE compute_52 gives PTX, sm_52 machine code. See tools/check/cuda_check.sh. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* nvrtcProgram is a pointer; results are 0 or an error number */
typedef struct {
    int (*create)(void **program, const char *source, const char *name, int headers, const char *const *texts,
                  const char *const *names);
    int (*compile)(void *program, int n, const char *const *options);
    int (*log_size)(void *program, size_t *bytes);
    int (*log)(void *program, char *text);
    int (*ptx_size)(void *program, size_t *bytes);
    int (*ptx)(void *program, char *out);
    int (*cubin_size)(void *program, size_t *bytes);
    int (*cubin)(void *program, char *out);
} nvrtc;

static int die(const char *what, const char *name) {
    fprintf(stderr, "mtan: cuda_check: %s %s\n", what, name);
    exit(2);
}

static nvrtc load(const char *path) {
    static const char *const names[] = {"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
                                        "nvrtcGetProgramLog", "nvrtcGetPTXSize",     "nvrtcGetPTX",
                                        "nvrtcGetCUBINSize",  "nvrtcGetCUBIN"};
    void *library = dlopen(path, RTLD_NOW), *address;
    nvrtc k;
    if (!library) die("cannot load", path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        address = dlsym(library, names[i]);
        if (!address) die("no function", names[i]);
        memcpy((char *)&k + i * sizeof address, &address, sizeof address);
    }
    return k;
}

static char *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0, room = 0;
    if (!f) die("cannot read", path);
    while (n == room) {
        text = realloc(text, (room = 2 * room + 65536) + 1);
        if (!text) die("no memory for", path);
        n += fread(text + n, 1, room - n, f);
    }
    text[n] = 0;
    fclose(f);
    return text;
}

static void print_log(const nvrtc *k, void *program) {
    size_t bytes = 0;
    char *text;
    if (k->log_size(program, &bytes) != 0 || bytes < 2 || !(text = malloc(bytes))) return;
    k->log(program, text);
    fputs(text, stderr);
    free(text);
}

int main(int argc, char **argv) {
    char include[1024], architecture[64];
    const char *options[] = {include, architecture, "--fmad=false", "--std=c++11"};
    void *program;
    size_t bytes = 0;
    char *out;
    nvrtc k;
    FILE *f;
    int machine;
    if (argc != 6) die("usage:", "cuda_check LIBNVRTC SOURCE INCLUDE ARCHITECTURE OUT");
    k = load(argv[1]);
    snprintf(include, sizeof include, "-I%s", argv[3]);
    snprintf(architecture, sizeof architecture, "--gpu-architecture=%s", argv[4]);
    machine = strncmp(argv[4], "sm_", 3) == 0;
    if (k.create(&program, read_file(argv[2]), argv[2], 0, NULL, NULL) != 0) die("NVRTC does not take", argv[2]);
    if (k.compile(program, 4, options) != 0) {
        print_log(&k, program);
        die("does not compile:", argv[2]);
    }
    if ((machine ? k.cubin_size : k.ptx_size)(program, &bytes) != 0 || !(out = malloc(bytes + 1)))
        die("nothing came of", argv[2]);
    if ((machine ? k.cubin : k.ptx)(program, out) != 0) die("nothing came of", argv[2]);
    f = fopen(argv[5], "wb");
    if (!f || fwrite(out, 1, machine ? bytes : bytes - 1, f) != (machine ? bytes : bytes - 1) || fclose(f) != 0)
        die("cannot write", argv[5]);
    return 0;
}
