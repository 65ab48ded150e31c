/* board.h on a PC, so that the program for the board runs there too and its output can be compared. */
#include "board.h"

#include <stdio.h>
#include <stdlib.h>

void board_print(const char *text) {
    fputs(text, stdout);
}

void board_hex(uint32_t bits) {
    printf("%08x", (unsigned)bits);
}

void board_number(uint32_t number) {
    printf("%u", (unsigned)number);
}

void board_exit(int status) {
    exit(status);
}

uint64_t board_ticks(void) {
    return 0;
}

void board_spin(uint32_t n) {
    (void)n;
}

uint32_t board_stack_used(void) {
    return 0;
}
