/* What the sample needs of Zephyr. */
#include <stdio.h>

#define printk printf
