/* Parses the text of a CSV field: a number, a date, or missing. Pure functions, independent of the locale.
 *
 * Texts are zero-terminated; blanks around them are allowed. Every function that returns int returns 1 if the whole
 * text fits, else 0. */
#ifndef MTAN_TOOLS_FIELD_H
#define MTAN_TOOLS_FIELD_H

#include <stdint.h>

/* Empty, or NaN, NA, null in any case. */
int field_missing(const char *text);

/* A finite decimal number, correctly rounded: 12, -0.5, +.5e-3. No hexadecimal, no inf, no thousands separators. */
int field_number(const char *text, double *number);
/* A number in the same form that a float can hold. */
int field_value(const char *text, double *number);

/* A decimal integer of at most 18 digits. */
int field_integer(const char *text, int64_t *integer);

/* An ISO-8601 date with or without a time of day: 2024-05-31, 2024-05-31T23:59, 2024-05-31 23:59:00.25+02:00 (also
 * +0200 and +02), Z. Years 0001 to 9999; a date alone is midnight, and a time without an offset is UTC; no leap second,
 * no 24:00. The result is in ticks of 100 ns since 1970; further digits are cut off. */
#define FIELD_TICKS_PER_HOUR 36e9
int field_date(const char *text, int64_t *ticks);

/* Does it begin like a date (0000-)? Then it is not meant as a number. */
int field_looks_like_date(const char *text);

/* Back to text: the shortest decimal that field_number reads as this number, with all digits for whole numbers below
 * 10^15; and a date in UTC, 2024-05-31T23:59:00Z, with as many digits of a second as needed. */
typedef struct field_excerpt {
    char text[48];
} field_excerpt;
field_excerpt field_number_text(double number);
field_excerpt field_date_text(int64_t ticks);

/* The text for use in a message: at most 40 bytes, no control characters. */
field_excerpt field_quote(const char *text);

#endif
