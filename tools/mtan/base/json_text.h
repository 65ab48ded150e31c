/* JSON to a stream, for the commands' --json: strings are escaped, and numbers that JSON lacks (NaN, infinities) become
 * null. The caller writes braces and brackets. */
#ifndef MTAN_TOOLS_JSON_TEXT_H
#define MTAN_TOOLS_JSON_TEXT_H

#include <stdio.h>

/* Prints a string with its quotes. NULL becomes null; bytes that are not UTF-8 become U+FFFD. */
void json_string(FILE *out, const char *text);
void json_number(FILE *out, double x); /* the shortest text that restores the same double */

/* A member of an object, with a comma in front unless *first is 1, which becomes 0. first NULL: another member stands
 * in front. json_member: the value follows.
 *
 *     int first = 1;
 *     putchar('{'), json_key_text(stdout, &first, "name", name), json_key_number(stdout, &first, "auc", auc);
 *     putchar('}'); */
void json_member(FILE *out, int *first, const char *key);
void json_key_text(FILE *out, int *first, const char *key, const char *text);
void json_key_number(FILE *out, int *first, const char *key, double x);
void json_key_count(FILE *out, int *first, const char *key, size_t n);

#endif
