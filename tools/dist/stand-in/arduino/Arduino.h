/* What a sketch of the example needs of Arduino. */
#ifndef ARDUINO_H
#define ARDUINO_H

#include <stdio.h>

struct console {
    void begin(long) {}
    void print(const char *text) { printf("%s", text); }
    void print(int number) { printf("%d", number); }
    template <typename T> void println(T x) { print(x), print("\n"); }
};
static console Serial;

static inline void delay(unsigned long) {}

#endif
