/* JSON to a stream, for the commands' --json: strings are escaped, and numbers that JSON lacks (NaN, infinities) become
 * null. The caller writes braces, commas and keys. */
#ifndef MTAN_TOOLS_JSON_TEXT_H
#define MTAN_TOOLS_JSON_TEXT_H

#include <stdio.h>

/* Prints a string with its quotes. NULL becomes null; bytes that are not UTF-8 become U+FFFD. */
void json_string(FILE *out, const char *text);
void json_number(FILE *out, double x); /* the shortest text that restores the same double */

#endif
