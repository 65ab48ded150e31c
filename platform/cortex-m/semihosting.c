/* Console and exit status through Arm semihosting: a breakpoint that a debugger or an emulator answers. On a board
 * without either it would stop there: replace board_print and board_exit by what the board has. */
#include "board.h"

enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

static void call_debugger(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void board_print(const char *text) {
    call_debugger(SYS_WRITE0, text);
}

void board_hex(uint32_t bits) {
    char text[9];
    for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[bits >> (28 - 4 * i) & 15];
    text[8] = 0;
    board_print(text);
}

void board_number(uint32_t number) {
    char text[11], *at = text + 10;
    *at = 0;
    do *--at = (char)('0' + number % 10), number /= 10;
    while (number);
    board_print(at);
}

void board_exit(int status) {
    const uint32_t block[2] = {APPLICATION_EXIT, (uint32_t)status};
    call_debugger(SYS_EXIT_EXTENDED, block);
    for (;;) continue;
}
