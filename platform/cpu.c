/* cpu.c: which of the linked backends this CPU and operating system can run. See simd/mtan_simd.h, which names the
 * macros MTAN_WITH_*. Asks the hardware at each call: no state. */
#include "../simd/mtan_simd.h"

#include <string.h>

#if defined(__x86_64__) || defined(_M_X64)
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif

enum { EAX, EBX, ECX, EDX };

static void ask_cpu(uint32_t leaf, uint32_t out[4]) {
#if defined(_MSC_VER)
    __cpuidex((int *)out, (int)leaf, 0);
#else
    if (!__get_cpuid_count(leaf, 0, &out[EAX], &out[EBX], &out[ECX], &out[EDX])) memset(out, 0, 4 * sizeof *out);
#endif
}

/* The register sets that the operating system saves: XCR0. */
static uint32_t saved_registers(void) {
#if defined(_MSC_VER)
    return (uint32_t)_xgetbv(0);
#else
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

static int has(uint32_t bits, uint32_t wanted) {
    return (bits & wanted) == wanted;
}

static const char *scalar_fma_reason(void) {
    uint32_t one[4];
    ask_cpu(1, one);
    if (!has(one[ECX], 1u << 12 | 1u << 28)) return "the CPU has no FMA";
    if (!has(one[ECX], 1u << 27) || !has(saved_registers(), 0x6))
        return "the operating system does not save 256-bit registers";
    return NULL;
}

static const char *avx2_reason(void) {
    const char *reason = scalar_fma_reason();
    uint32_t seven[4];
    if (reason) return reason;
    ask_cpu(7, seven);
    return has(seven[EBX], 1u << 5) ? NULL : "the CPU has no AVX2";
}

static const char *avx512_reason(void) {
    const char *reason = avx2_reason();
    uint32_t seven[4];
    if (reason) return reason;
    ask_cpu(7, seven);
    if (!has(seven[EBX], 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31)) return "the CPU has no AVX-512 (F, DQ, BW and VL)";
    return has(saved_registers(), 0xE6) ? NULL : "the operating system does not save 512-bit registers";
}

#define X86_REASON(name) name##_reason

#else

static const char *needs_x86(void) {
    return "needs an x86-64 CPU";
}
#define X86_REASON(name) needs_x86

/* A compiler that may use fused multiply-add targets CPUs that have it: there is nothing to check. */
static const char *scalar_fma_reason(void) {
    return NULL;
}

#endif

#if defined(__aarch64__) || defined(_M_ARM64)

#if defined(__linux__)
#include <sys/auxv.h>
static const char *neon_reason(void) {
    return getauxval(AT_HWCAP) & 1u << 1 ? NULL : "the CPU has no Advanced SIMD"; /* HWCAP_ASIMD */
}
#else
static const char *neon_reason(void) {
    return NULL;
}
#endif
#define ARM64_REASON(name) name##_reason

#else

static const char *needs_arm64(void) {
    return "needs an AArch64 CPU";
}
#define ARM64_REASON(name) needs_arm64

#endif

#define ANY_REASON(name) name##_reason

/* A WebAssembly runtime without simd128 refuses the whole module; on other targets SIMDe provides plain vectors. */
static const char *wasm_reason(void) {
    return NULL;
}

/* LINKED(MTAN_WITH_X, table) is the table when the macro is defined as 1, as -D does, else NULL. LINKED_1 puts a comma
 * before the table, which makes the table the second argument. */
#define LINKED_1 0,
#define SECOND(first, second, ...) second
#define SECOND_OF(...) SECOND(__VA_ARGS__)
#define LINKED_IF(value, table) SECOND_OF(LINKED_##value table, NULL, 0)
#define LINKED(macro, table) LINKED_IF(macro, table)

/* A backend that is not linked has no table. If the CPU could not run it either, that reason comes first. */
#define ROW(name, macro, text, machine)                                                                                \
    {text, LINKED(MTAN_WITH_##macro, &mtan_backend_##name), machine##_REASON(name),                                    \
     "not linked: compile simd/mtan_" #name ".c and define MTAN_WITH_" #macro},

static const struct {
    const char *name;
    const mtan_backend *backend;
    const char *(*reason)(void);
    const char *missing;
} known[] = {
    MTAN_INSTRUCTION_SETS(ROW){"scalar", &mtan_backend_scalar, NULL, NULL},
};

int mtan_backend_list(int index, mtan_backend_choice *choice) {
    if (index < 0 || index >= (int)(sizeof known / sizeof *known)) return 0;
    choice->name = known[index].name;
    choice->reason = known[index].reason ? known[index].reason() : NULL;
    if (!choice->reason && !known[index].backend) choice->reason = known[index].missing;
    choice->backend = choice->reason ? NULL : known[index].backend;
    return 1;
}

const mtan_backend *mtan_backend_best(void) {
    return mtan_backend_named("best");
}

const mtan_backend *mtan_backend_named(const char *name) {
    mtan_backend_choice choice;
    for (int i = 0; mtan_backend_list(i, &choice); i++)
        if (choice.backend && (strcmp(name, "best") == 0 || strcmp(name, choice.name) == 0)) return choice.backend;
    return NULL;
}
