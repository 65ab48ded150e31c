/* printf of newlib on the console of platform/cortex-m. */
#include <string.h>

#include "board.h"

int _write(int file, const char *text, int n);

int _write(int file, const char *text, int n) {
    char part[65];
    (void)file;
    for (int i = 0, m; i < n; i += m) {
        m = n - i < 64 ? n - i : 64;
        memcpy(part, text + i, (size_t)m);
        part[m] = 0;
        board_print(part);
    }
    return n;
}
