/* What a program on a board needs besides mtan.h: a console, a clock, the depth of the stack. startup.c and
 * semihosting.c provide it on a Cortex-M, host.c on a PC. */
#ifndef MTAN_BOARD_H
#define MTAN_BOARD_H

#include <stdint.h>

void board_print(const char *text);
void board_hex(uint32_t bits);      /* eight digits */
void board_number(uint32_t number); /* decimal */
void board_exit(int status);        /* ends the emulator, or the process, with this status */

/* SysTick: cycles of the processor's clock; in qemu with -icount shift=0 a fixed share of an instruction. 0 on a PC. */
uint64_t board_ticks(void);
/* Runs 2 * n instructions and no more: what measures a tick. */
void board_spin(uint32_t n);
/* Bytes of stack in use at the deepest point so far; 0 on a PC. */
uint32_t board_stack_used(void);

#endif
