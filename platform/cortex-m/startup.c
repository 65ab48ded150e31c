/* Start-up of a Cortex-M without an operating system: vector table, FPU, .data, .bss, painted stack, SysTick. Knows no
 * board: the linker script says where memory is. No interrupt but SysTick is used; any fault ends with status 3. */
#include "board.h"

#include <stddef.h>
#include <string.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CPACR REGISTER(0xE000ED88u)
#define SYSTICK_CONTROL REGISTER(0xE000E010u)
#define SYSTICK_RELOAD REGISTER(0xE000E014u)
#define SYSTICK_VALUE REGISTER(0xE000E018u)
#define SYSTICK_MOST 0xFFFFFFu
#define PAINT 0xA5A5A5A5u

extern uint32_t image_data_source[], image_data[], image_data_end[], image_bss[], image_bss_end[];
extern uint32_t image_stack_limit[], image_stack_top[];

int main(void);
void board_reset(void);

static volatile uint32_t wraps; /* of SysTick, which has 24 bits */

static void count_wrap(void) {
    wraps++;
}

static void fault(void) {
    board_print("fault\n");
    board_exit(3);
}

typedef struct vectors {
    void *stack;
    void (*handler[15])(void); /* reset, NMI, the faults, ..., SysTick */
} vectors;

__attribute__((section(".vectors"), used)) static const vectors table = {image_stack_top,
                                                                         {board_reset, fault, fault, fault, fault,
                                                                          fault, fault, fault, fault, fault, fault,
                                                                          fault, fault, fault, count_wrap}};

/* Below what this function itself uses. */
static void paint_stack(void) {
    uint32_t *here = (uint32_t *)__builtin_frame_address(0) - 16;
    for (volatile uint32_t *p = image_stack_limit; p < here; p++) *p = PAINT;
}

uint32_t board_stack_used(void) {
    const uint32_t *p = image_stack_limit;
    while (p < image_stack_top && *p == PAINT) p++;
    return (uint32_t)((const char *)image_stack_top - (const char *)p);
}

/* It counts down from SYSTICK_MOST and interrupts as it reaches 0, where it also starts. */
uint64_t board_ticks(void) {
    uint32_t before, value;
    do before = wraps, value = SYSTICK_VALUE;
    while (before != wraps);
    return ((uint64_t)before << 24) + (value ? SYSTICK_MOST + 1 - value : 0);
}

__attribute__((noinline)) void board_spin(uint32_t n) {
    __asm volatile("1: subs %0, %0, #1\n bne 1b" : "+r"(n) : : "cc");
}

void board_reset(void) {
#ifdef __ARM_FP
    CPACR |= 0xFu << 20; /* coprocessors 10 and 11: the FPU */
    __asm volatile("dsb\n isb" ::: "memory");
#endif
    memcpy(image_data, image_data_source, (size_t)((char *)image_data_end - (char *)image_data));
    memset(image_bss, 0, (size_t)((char *)image_bss_end - (char *)image_bss));
    paint_stack();
    SYSTICK_RELOAD = SYSTICK_MOST;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = 7; /* the processor's clock, interrupt, on */
    board_exit(main());
}
