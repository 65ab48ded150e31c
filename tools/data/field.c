/* See field.h. */
#include "field.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shown.h"

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *p) {
    while (*p == ' ' || *p == '\t') p++;
    return p;
}

static int at_end(const char *p) {
    return *skip_blanks(p) == 0;
}

/* Does the text equal this word (given in lower case), in any case? */
static int is_word(const char *p, const char *word) {
    for (; *word; p++, word++)
        if ((*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p) != *word) return 0;
    return at_end(p);
}

int field_missing(const char *text) {
    const char *p = skip_blanks(text);
    return *p == 0 || (((*p | 32) == 'n') && (is_word(p, "nan") || is_word(p, "na") || is_word(p, "null")));
}

/* ---- numbers ---- */

typedef struct decimal {
    uint64_t digits; /* the significant ones that fit */
    int exponent;    /* decimal, for the digits */
    int negative, exact;
} decimal;

/* Adds a digit of the mantissa. */
static void take_digit(decimal *d, char c, int behind_point) {
    if (d->digits < UINT64_C(100000000000000000)) {
        d->digits = 10 * d->digits + (uint64_t)(c - '0');
        d->exponent -= behind_point;
    } else {
        d->exact = 0;
    }
}

/* Returns the end of the number at p, or NULL. */
static const char *scan_number(decimal *d, const char *p) {
    int seen = 0, exponent = 0, minus;
    d->negative = *p == '-';
    p += *p == '-' || *p == '+';
    for (; is_digit(*p); p++, seen = 1) take_digit(d, *p, 0);
    if (*p == '.')
        for (p++; is_digit(*p); p++, seen = 1) take_digit(d, *p, 1);
    if (!seen || (*p | 32) != 'e') return seen ? p : NULL;
    minus = *++p == '-';
    p += *p == '-' || *p == '+';
    if (!is_digit(*p)) return NULL;
    for (; is_digit(*p); p++)
        if (exponent < 10000) exponent = 10 * exponent + (*p - '0');
    d->exponent += minus ? -exponent : exponent;
    return p;
}

/* A mantissa below 2^53, multiplied or divided by a power of ten up to 10^22: both are exact in double, so the result
 * is rounded once. strtod handles the rare rest. */
int field_number(const char *text, double *number) {
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *start = skip_blanks(text), *end;
    decimal d = {0, 0, 0, 1};
    double x;
    if (!(end = scan_number(&d, start)) || !at_end(end)) return 0;
    if (d.exact && d.digits <= (UINT64_C(1) << 53) && d.exponent >= -22 && d.exponent <= 22) {
        x = (double)d.digits;
        x = d.exponent < 0 ? x / power[-d.exponent] : x * power[d.exponent];
        *number = d.negative ? -x : x;
        return 1;
    }
    *number = strtod(start, NULL);
    return isfinite(*number);
}

int field_value(const char *text, double *number) {
    return field_number(text, number) && fabs(*number) <= FLT_MAX;
}

field_excerpt field_number_text(double number) {
    field_excerpt e;
    double back = NAN;
    if (!(floor(number) < number) && fabs(number) < 1e15) return sprintf(e.text, "%.0f", number), e;
    for (int digits = 1; digits <= 17 && !(back >= number && back <= number); digits++) {
        sprintf(e.text, "%.*g", digits, number);
        back = strtod(e.text, NULL);
    }
    return e;
}

int field_integer(const char *text, int64_t *integer) {
    const char *p = skip_blanks(text);
    const int negative = *p == '-';
    int n = 0;
    *integer = 0;
    for (p += negative; is_digit(*p) && n < 18; p++, n++) *integer = 10 * *integer + (*p - '0');
    if (negative) *integer = -*integer;
    return n > 0 && at_end(p);
}

/* ---- dates ---- */

int field_looks_like_date(const char *text) {
    const char *p = skip_blanks(text);
    return is_digit(p[0]) && is_digit(p[1]) && is_digit(p[2]) && is_digit(p[3]) && p[4] == '-';
}

/* Reads n digits as a number in low..high, followed by `then` (0: by anything), and moves past them. */
static int take(const char **p, int n, int low, int high, char then, int *number) {
    *number = 0;
    for (int i = 0; i < n; i++, ++*p) {
        if (!is_digit(**p)) return 0;
        *number = 10 * *number + (**p - '0');
    }
    if (then && *(*p)++ != then) return 0;
    return *number >= low && *number <= high;
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar. Years begin in March here, so that the leap day is the
 * last day. */
static int64_t days(int year, int month, int day) {
    const int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static int days_in(int year, int month) {
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return length[month - 1] + (leap && month == 2);
}

/* hh:mm[:ss[.fraction]] into ticks. */
static int take_clock(const char **p, int64_t *ticks) {
    int hour, minute, second;
    if (!take(p, 2, 0, 23, ':', &hour) || !take(p, 2, 0, 59, 0, &minute)) return 0;
    *ticks = INT64_C(600000000) * (60 * hour + minute);
    if (**p != ':') return 1;
    if (++*p, !take(p, 2, 0, 59, 0, &second)) return 0;
    *ticks += INT64_C(10000000) * second;
    if (**p != '.') return 1;
    if (!is_digit(*++*p)) return 0;
    for (int64_t unit = 1000000; is_digit(**p); ++*p, unit /= 10) *ticks += unit * (**p - '0');
    return 1;
}

/* Z, +hh:mm, +hhmm, +hh or nothing, into ticks east of Greenwich. */
static int take_offset(const char **p, int64_t *ticks) {
    const int sign = **p == '-' ? -1 : 1;
    int hour, minute = 0;
    *ticks = 0;
    if (**p == 'Z') return ++*p, 1;
    if (**p != '+' && **p != '-') return 1;
    ++*p;
    if (!take(p, 2, 0, 23, 0, &hour)) return 0;
    *p += **p == ':' && is_digit((*p)[1]);
    if (is_digit(**p) && !take(p, 2, 0, 59, 0, &minute)) return 0;
    *ticks = sign * INT64_C(600000000) * (60 * hour + minute);
    return 1;
}

int field_date(const char *text, int64_t *ticks) {
    const char *p = skip_blanks(text);
    int year, month, day;
    int64_t clock = 0, offset = 0;
    if (!take(&p, 4, 1, 9999, '-', &year) || !take(&p, 2, 1, 12, '-', &month) ||
        !take(&p, 2, 1, days_in(year, month), 0, &day))
        return 0;
    if (*p == 'T' || (*p == ' ' && is_digit(p[1])))
        if (++p, !take_clock(&p, &clock) || !take_offset(&p, &offset)) return 0;
    *ticks = INT64_C(864000000000) * days(year, month, day) + clock - offset;
    return at_end(p);
}

field_excerpt field_date_text(int64_t ticks) {
    const int64_t per_day = INT64_C(864000000000), per_second = 10000000;
    const int64_t day = (ticks - (ticks < 0 ? per_day - 1 : 0)) / per_day, clock = ticks - day * per_day;
    const int seconds = (int)(clock / per_second), fraction = (int)(clock % per_second);
    int year = (int)((double)day / 365.2425) + 1968, month = 1, n;
    field_excerpt e;
    while (days(year + 1, 1, 1) <= day) year++;
    while (month < 12 && days(year, month + 1, 1) <= day) month++;
    n = sprintf(e.text, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, (int)(day - days(year, month, 1)) + 1,
                seconds / 3600, seconds / 60 % 60, seconds % 60);
    if (fraction) n += sprintf(e.text + n, ".%07d", fraction);
    while (fraction && e.text[n - 1] == '0') n--;
    strcpy(e.text + n, "Z");
    return e;
}

/* ---- messages ---- */

field_excerpt field_quote(const char *text) {
    enum { MOST = 40 };
    field_excerpt e;
    size_t n = strlen(text);
    const int cut = n > MOST;
    if (cut)
        for (n = MOST; n > MOST - 4 && ((unsigned char)text[n] & 0xc0) == 0x80;) n--; /* keep UTF-8 characters whole */
    memcpy(e.text, text, n);
    strcpy(e.text + n, cut ? "..." : "");
    shown_clean(e.text);
    return e;
}
