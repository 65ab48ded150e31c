/* Text inside HTML and SVG. Every name that comes from a file passes through here: it is escaped, and control
 * characters, marks that change the direction of writing and bytes that are not UTF-8 become U+FFFD. */
#ifndef MTAN_TOOLS_HTML_H
#define MTAN_TOOLS_HTML_H

#include <stddef.h>
#include <stdio.h>

/* NULL prints nothing. */
void html_text(FILE *out, const char *text);
/* At most `most` characters; a longer text ends with an ellipsis. */
void html_short(FILE *out, const char *text, size_t most);
/* How many characters html_text would show. */
size_t html_length(const char *text);

/* `digits` significant digits, for people: a true minus sign, "not available" as a dash. text holds 32 bytes. */
const char *html_number(char *text, double value, int digits);
/* html_fixed: a fixed number of decimals. html_decimals: the decimals that show `digits` significant digits of a
 * value. */
const char *html_fixed(char *text, double value, int decimals);
int html_decimals(double value, int digits);

#endif
