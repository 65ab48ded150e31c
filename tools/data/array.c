/* See array.h. */
#define STB_DS_IMPLEMENTATION
#include "array.h"
