/* JSON to a stream, for the commands' --json: strings escaped, numbers that JSON lacks (NaN, infinities) as null. The
 * braces, commas and keys are the caller's. */
#ifndef MTAN_TOOLS_JSON_TEXT_H
#define MTAN_TOOLS_JSON_TEXT_H

#include <stdio.h>

void json_string(FILE *out,
                 const char *text);    /* with its quotes; NULL is null; bytes that are not UTF-8 become U+FFFD */
void json_number(FILE *out, double x); /* as short as gives the same double back */

#endif
