/* See cuda_shim.h: fibres, the order in which they run, and the watch over memory. */
#ifdef MTAN_WITH_CUDA_SHIM

#include "cuda_shim.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

shim_state shim;

enum { MOST_THREADS = 1024, WARP = 32, STACK_BYTES = 32 << 10, ARGUMENT_BYTES = 1024 };

typedef enum { READY, AT_BARRIER, IN_WARP, DONE } fibre_state;

/* ---- switching stacks: by hand where it is known how, else by ucontext, which asks the system each time ---- */

#if defined __x86_64__ && defined __ELF__

typedef void *context;

/* Keeps what a call must keep, changes stacks, and goes on where the other left off. */
void shim_switch_stacks(context *from, context to);
__asm__(".text\n"
        ".type shim_switch_stacks, @function\n"
        "shim_switch_stacks:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size shim_switch_stacks, . - shim_switch_stacks\n");

static void switch_to(context *from, context *to) {
    shim_switch_stacks(from, *to);
}

/* As if it had switched away at the first instruction of entry: a return address, six registers. */
static void prepare(context *c, char *stack, void (*entry)(void)) {
    uintptr_t *top = (uintptr_t *)(void *)(stack + STACK_BYTES);
    *--top = 0;
    *--top = (uintptr_t)entry;
    for (int i = 0; i < 6; i++) *--top = 0;
    *c = top;
}

#else

#include <ucontext.h>

typedef ucontext_t context;

static void switch_to(context *from, context *to) {
    swapcontext(from, to);
}

static void prepare(context *c, char *stack, void (*entry)(void)) {
    getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = STACK_BYTES;
    c->uc_link = NULL;
    makecontext(c, entry, 0);
}

#endif

/* ---- the machine ---- */

typedef struct {
    context context;
    char *stack;
    fibre_state state;
    int line; /* of the barrier or exchange it stands at */
    unsigned exchanges, sent[2];
    unsigned warp_time; /* barriers of its warp so far */
    shim_index index;
} fibre;

typedef struct {
    char arguments[ARGUMENT_BYTES];
    const shim_kernel *kernel;
    shim_index grid, block, at; /* at: the block that runs */
    unsigned launch;            /* counts launches, from 1: a mark of an earlier one does not matter */
    unsigned block_number, time;
    int threads, current, broken;
    unsigned long long random;
    context scheduler;
    int watched;
} machine_state;

static machine_state machine;
static fibre *fibres;

static unsigned draw(unsigned n) {
    machine.random ^= machine.random << 13;
    machine.random ^= machine.random >> 7;
    machine.random ^= machine.random << 17;
    return (unsigned)(machine.random >> 33) % n;
}

void shim_clear(void) {
    shim.faults = 0;
    memset(shim.found, 0, sizeof shim.found);
    shim.first = SHIM_NONE;
    shim.text[0] = 0;
}

int shim_watches(void) {
    return machine.watched;
}

shim_index shim_thread_index(void) {
    return fibres[machine.current].index;
}
shim_index shim_block_index(void) {
    return machine.at;
}
shim_index shim_block_size(void) {
    return machine.block;
}
shim_index shim_grid_size(void) {
    return machine.grid;
}

/* ---- device memory ---- */

typedef struct {
    uintptr_t from, to;
} range;

static range *ranges;
static int range_count, range_room, last_range;

void shim_memory_add(const void *from, size_t bytes) {
    if (range_count == range_room) {
        range_room = 2 * range_room + 16;
        ranges = realloc(ranges, (size_t)range_room * sizeof *ranges);
        if (!ranges) exit(2);
    }
    ranges[range_count].from = (uintptr_t)from;
    ranges[range_count++].to = (uintptr_t)from + bytes;
}

void shim_memory_remove(const void *from) {
    for (int i = 0; i < range_count; i++)
        if (ranges[i].from == (uintptr_t)from) {
            ranges[i] = ranges[--range_count];
            break;
        }
    last_range = 0;
    if (range_count > 0) return;
    free(ranges);
    ranges = NULL, range_room = 0;
}

static int inside(range r, uintptr_t from, size_t bytes) {
    return from >= r.from && bytes <= r.to - r.from && from - r.from <= r.to - r.from - bytes;
}

static int is_device_memory(uintptr_t from, size_t bytes) {
    if (last_range < range_count && inside(ranges[last_range], from, bytes)) return 1;
    for (int i = 0; i < range_count; i++)
        if (inside(ranges[i], from, bytes)) {
            last_range = i;
            return 1;
        }
    return 0;
}

#ifdef __ELF__
/* The linker puts these around the section that __shared__ names. */
extern char __start_mtan_shared[], __stop_mtan_shared[];
#else
static char __start_mtan_shared[1], *const __stop_mtan_shared = __start_mtan_shared; /* none that is known */
#endif

/* Reals of shared memory before `at`; as many as there are, or more, outside of it. */
static size_t shared_place(uintptr_t at) {
    return (at - (uintptr_t)__start_mtan_shared) / 4;
}

static size_t shared_words(void) {
    return (size_t)(__stop_mtan_shared - __start_mtan_shared + 3) / 4;
}

static int is_shared(uintptr_t at) {
    return shared_place(at) < shared_words();
}

/* ---- marks: who touched a word last in this launch ---- */

enum { NOBODY = -1, SEVERAL = -2 }; /* SEVERAL: threads of more than one warp */
#define SEVERAL_BLOCKS 0xFFFFFFFFu

typedef struct {
    unsigned block, time, warp_time;
    int thread;     /* NOBODY: no such access */
    int whole_warp; /* others of the thread's warp as well */
} touch;

typedef struct {
    uintptr_t word; /* the address; of a byte twice it and 1 */
    unsigned launch;
    touch write, read;
} mark;

static mark *marks, *shared_marks; /* a table by address; and one mark for each word of shared memory */
static size_t mark_room, mark_count;

static size_t slot_of(const mark *table, size_t room, uintptr_t word) {
    size_t i = (size_t)(word * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);
    while (table[i].word != 0 && table[i].word != word) i = (i + 1) & (room - 1);
    return i;
}

/* Twice the room, or the same when most marks are of earlier launches. */
static void grow_marks(void) {
    size_t live = 0, room = 1 << 14;
    mark *table;
    for (size_t i = 0; i < mark_room; i++) live += marks[i].word != 0 && marks[i].launch == machine.launch;
    while (room < 4 * live) room *= 2;
    table = calloc(room, sizeof *table);
    if (!table) exit(2);
    for (size_t i = 0; i < mark_room; i++)
        if (marks[i].word != 0 && marks[i].launch == machine.launch)
            table[slot_of(table, room, marks[i].word)] = marks[i];
    free(marks);
    marks = table, mark_room = room, mark_count = live;
}

static mark *find_mark(uintptr_t word) {
    mark *m;
    if (2 * mark_count >= mark_room) grow_marks();
    m = &marks[slot_of(marks, mark_room, word)];
    mark_count += m->word == 0;
    m->word = word;
    return m;
}

static mark *mark_of(uintptr_t at, int byte, int shared) {
    mark *m = byte ? find_mark(at << 1 | 1) : shared ? &shared_marks[shared_place(at)] : find_mark(at & ~(uintptr_t)3);
    if (m->launch != machine.launch) {
        m->launch = machine.launch;
        m->write.thread = m->read.thread = NOBODY;
    }
    return m;
}

static const char *const fault_names[] = {"nothing", "race", "outside", "unwritten", "barrier"};

static void fault(shim_fault kind, const char *what, uintptr_t at, int other) {
    shim.found[kind]++;
    if (shim.faults++ > 0) return;
    shim.first = kind;
    snprintf(shim.text, sizeof shim.text, "%s: %s: %s; block %u, thread %d, other %d, %s %#lx", machine.kernel->name,
             fault_names[kind], what, machine.block_number, machine.current, other, is_shared(at) ? "shared" : "global",
             (unsigned long)at);
}

/* Whether an access that was recorded comes before what the current thread does now. */
static int is_ordered(const touch *t) {
    const fibre *me = &fibres[machine.current];
    if (t->thread == NOBODY) return 1;
    if (t->block != machine.block_number) return 0;
    if (t->time < machine.time) return 1;
    if (t->thread == SEVERAL) return 0;
    if (t->thread == machine.current && !t->whole_warp) return 1;
    return t->thread / WARP == machine.current / WARP && t->warp_time < me->warp_time;
}

static void set_touch(touch *t) {
    t->block = machine.block_number;
    t->time = machine.time;
    t->warp_time = fibres[machine.current].warp_time;
    t->thread = machine.current;
    t->whole_warp = 0;
}

/* Of reads that are not ordered all count, as any of them may be too near a later write. */
static void add_read(touch *t) {
    const touch before = *t;
    if (before.thread == NOBODY || (before.block == machine.block_number && before.time < machine.time)) {
        set_touch(t);
    } else if (before.block != machine.block_number) {
        t->block = SEVERAL_BLOCKS;
    } else if (before.thread == SEVERAL || before.thread / WARP != machine.current / WARP) {
        t->thread = SEVERAL;
    } else {
        set_touch(t);
        t->whole_warp = before.thread != machine.current || before.whole_warp;
    }
}

/* Bytes have marks of their own, so that neighbours are not taken for one word; nothing reads as words what was written
 * as bytes. */
static void touch_word(uintptr_t at, int byte, int shared, int writes) {
    mark *m = mark_of(at, byte, shared);
    if (shared && m->write.thread != NOBODY && m->write.block != machine.block_number)
        m->write.thread = m->read.thread = NOBODY; /* another block's shared memory is another memory */
    if (!writes && shared && m->write.thread == NOBODY)
        fault(SHIM_UNWRITTEN, "shared memory is read before it is written", at, NOBODY);
    if (!is_ordered(&m->write))
        fault(SHIM_RACE, writes ? "written by two threads" : "written by one thread, read by another", at,
              m->write.thread);
    if (writes && !is_ordered(&m->read)) fault(SHIM_RACE, "read by one thread, written by another", at, m->read.thread);
    if (writes) set_touch(&m->write);
    else add_read(&m->read);
}

/* Called by the kernels at each load and store. */
static void touch_memory(const void *address, size_t bytes, int writes) {
    const uintptr_t at = (uintptr_t)address, own = (uintptr_t)fibres[machine.current].stack;
    const int shared = is_shared(at);
    machine.watched = 1;
    if (at - own < STACK_BYTES) return;
    if (at - (uintptr_t)&machine < sizeof machine) return;
    if (shim.check_memory && !shared && !is_device_memory(at, bytes)) {
        fault(SHIM_OUTSIDE, writes ? "written outside" : "read outside", at, NOBODY);
        return;
    }
    for (size_t i = 0; i < bytes; i += bytes < 4 ? 1 : 4) touch_word(at + i, bytes < 4, shared, writes);
}

/* ---- the names under which the compiler calls it ---- */

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *pc);
void __tsan_func_entry(void *pc) {
    (void)pc;
}
void __tsan_func_exit(void *pc);
void __tsan_func_exit(void *pc) {
    (void)pc;
}

#define HOOK(name, bytes, writes)                                                                                      \
    void name(void *at);                                                                                               \
    void name(void *at) {                                                                                              \
        touch_memory(at, bytes, writes);                                                                               \
    }
#define HOOKS(bytes)                                                                                                   \
    HOOK(__tsan_read##bytes, bytes, 0)                                                                                 \
    HOOK(__tsan_write##bytes, bytes, 1)                                                                                \
    HOOK(__tsan_unaligned_read##bytes, bytes, 0)                                                                       \
    HOOK(__tsan_unaligned_write##bytes, bytes, 1)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(void *at, unsigned long bytes);
void __tsan_read_range(void *at, unsigned long bytes) {
    touch_memory(at, bytes, 0);
}
void __tsan_write_range(void *at, unsigned long bytes);
void __tsan_write_range(void *at, unsigned long bytes) {
    touch_memory(at, bytes, 1);
}
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
    touch_memory(from, bytes, 0);
    touch_memory(to, bytes, 1);
    return memcpy(to, from, bytes);
}
void *__tsan_memset(void *to, int value, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes) {
    touch_memory(to, bytes, 1);
    return memset(to, value, bytes);
}

/* ---- barriers ---- */

static void leave(fibre_state state, int line) {
    fibre *me = &fibres[machine.current];
    me->state = state;
    me->line = line;
    switch_to(&me->context, &machine.scheduler);
}

static void note_line(int line) {
    for (int i = 0; i < shim.lines; i++)
        if (shim.line[i] == line) return;
    if (shim.lines < (int)(sizeof shim.line / sizeof *shim.line)) shim.line[shim.lines++] = line;
}

void shim_barrier(int line) {
    note_line(line);
    if (line != shim.skipped) leave(AT_BARRIER, line);
}

void shim_warp_barrier(int line) {
    leave(IN_WARP, line);
    fibres[machine.current].warp_time++;
}

/* The bits that the lane across sends at its own call. Two places to leave them in: no lane is two calls ahead. */
unsigned shim_exchange(unsigned bits, unsigned lane_xor, int line) {
    fibre *me = &fibres[machine.current];
    const unsigned turn = me->exchanges++ % 2;
    const int other = (int)((unsigned)machine.current ^ lane_xor);
    me->sent[turn] = bits;
    leave(IN_WARP, line);
    return other < machine.threads ? fibres[other].sent[turn] : bits;
}

/* ---- running a block ---- */

static void fibre_main(void) {
    machine.kernel->run(machine.arguments);
    leave(DONE, 0);
}

static void start_block(void) {
    for (int i = 0; i < machine.threads; i++) {
        fibre *f = &fibres[i];
        const unsigned n = (unsigned)i;
        f->state = READY;
        f->exchanges = f->warp_time = 0;
        f->index.x = n % machine.block.x;
        f->index.y = n / machine.block.x % machine.block.y;
        f->index.z = n / machine.block.x / machine.block.y;
        prepare(&f->context, f->stack, fibre_main);
    }
    machine.time = 0;
}

/* Every fibre that can, in an order of its own. */
static void run_ready(void) {
    static int order[MOST_THREADS];
    for (int i = 0; i < machine.threads; i++) {
        const int j = (int)draw((unsigned)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < machine.threads; i++) {
        if (fibres[order[i]].state != READY) continue;
        machine.current = order[i];
        switch_to(&machine.scheduler, &fibres[order[i]].context);
    }
}

/* Are all of these threads in one state, at one line? */
static int all_at(int from, int to, fibre_state state) {
    for (int i = from; i < to; i++)
        if (fibres[i].state != state || fibres[i].line != fibres[from].line) return 0;
    return 1;
}

static int release(int from, int to, fibre_state state) {
    if (!all_at(from, to, state)) return 0;
    for (int i = from; i < to; i++) fibres[i].state = READY;
    return 1;
}

/* Lets go on who may: whole warps, then the whole block. 0: nobody may. */
static int release_waiting(void) {
    int any = 0;
    for (int i = 0; i < machine.threads; i += WARP)
        any |= release(i, i + WARP < machine.threads ? i + WARP : machine.threads, IN_WARP);
    if (any) return 1;
    if (!release(0, machine.threads, AT_BARRIER)) return 0;
    machine.time++;
    return 1;
}

static void run_block(void) {
    start_block();
    do run_ready();
    while (release_waiting());
    if (all_at(0, machine.threads, DONE)) return;
    for (machine.current = 0; fibres[machine.current].state == DONE;) machine.current++;
    fault(SHIM_BARRIER, "not all threads reach the same barrier", 0, NOBODY);
    machine.broken = 1;
}

static unsigned common_divisor(unsigned a, unsigned b) {
    while (b) {
        const unsigned rest = a % b;
        a = b, b = rest;
    }
    return a;
}

static void run_blocks(unsigned blocks) {
    unsigned stride = draw(blocks) + 1, first = draw(blocks);
    while (common_divisor(stride, blocks) != 1) stride++;
    for (unsigned i = 0; i < blocks && !machine.broken; i++) {
        const unsigned n = (unsigned)((first + (unsigned long long)i * stride) % blocks);
        machine.block_number = n;
        machine.at.x = n % machine.grid.x;
        machine.at.y = n / machine.grid.x % machine.grid.y;
        machine.at.z = n / machine.grid.x / machine.grid.y;
        run_block();
    }
}

int shim_launch(const shim_kernel *kernel, shim_index grid, shim_index block, const void *arguments) {
    const unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
    if (threads < 1 || threads > MOST_THREADS || kernel->bytes > ARGUMENT_BYTES) return 0;
    if ((unsigned long long)grid.x * grid.y * grid.z < 1) return 0;
    if (!fibres) {
        char *stacks = malloc((size_t)MOST_THREADS * STACK_BYTES + 16);
        fibres = calloc(MOST_THREADS, sizeof *fibres);
        shared_marks = calloc(shared_words() + 1, sizeof *shared_marks);
        if (!fibres || !stacks || !shared_marks) exit(2);
        stacks += 16 - (uintptr_t)stacks % 16;
        for (int i = 0; i < MOST_THREADS; i++) fibres[i].stack = stacks + (size_t)i * STACK_BYTES;
    }
    memcpy(machine.arguments, arguments, kernel->bytes);
    machine.kernel = kernel;
    machine.grid = grid, machine.block = block;
    machine.threads = (int)threads;
    machine.launch++;
    machine.random = (shim.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ machine.launch;
    machine.broken = 0;
    run_blocks(grid.x * grid.y * grid.z);
    return !machine.broken;
}

#else

typedef int no_shim;

#endif
