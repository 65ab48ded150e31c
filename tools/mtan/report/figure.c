/* Plots as inline SVG: see figure.h. Writes no colours, no ids and no scripts. */
#include "figure.h"

#include <math.h>
#include <string.h>

#include "html.h"

/* Larger numbers are not drawn, so that sums and differences of two stay finite. */
static const double FIGURE_LARGEST = 1e300;
enum { FIGURE_TEXT_MOST = 64 }; /* characters of a text inside a figure */
/* A point of a line nearer than this to the one before, in pixels, is left out. */
static const double FIGURE_STEP = 0.25;

const axis axis_none = {INFINITY, -INFINITY, 0, 0};
const axis axis_unit = {0, 1, 0, 0};

static int drawable(double value) {
    return fabs(value) <= FIGURE_LARGEST; /* false for NaN */
}

/* ---- axes ---- */

void axis_fit(axis *a, const double *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!drawable(values[i]) || (a->log && !(values[i] > 0))) continue;
        a->low = fmin(a->low, values[i]);
        a->high = fmax(a->high, values[i]);
    }
}

int axis_settle(axis *a, double margin) {
    double size, pad;
    if (!(a->low <= a->high)) return a->low = 0, a->high = 1, a->log = 0, 0;
    if (a->log) {
        const double factor = fmax(pow(a->high / a->low, margin), a->high > a->low * 1.001 ? 1 : 2);
        a->low /= factor, a->high *= factor;
        return 1;
    }
    size = fmax(fabs(a->low), fabs(a->high));
    pad = (a->high - a->low) * margin;
    if (!(a->high - a->low > size * 1e-6)) pad = size > 0 ? size * 0.1 : 1; /* so that the labels of the ticks differ */
    a->low -= pad, a->high += pad;
    return 1;
}

/* 1, 2 or 5 times a power of ten, at least `least`. */
static double round_step(double least) {
    const double power = pow(10, floor(log10(least)));
    const double lead = least / power;
    return power * (lead <= 1.0001 ? 1 : lead <= 2.0001 ? 2 : lead <= 5.0001 ? 5 : 10);
}

static size_t decade_ticks(const axis *a, size_t most, double *ticks) {
    static const double lead[3] = {1, 2, 5};
    const int first = (int)ceil(log10(a->low) - 1e-9), last = (int)floor(log10(a->high) + 1e-9);
    const int every = 1 + (last - first) / (int)(most + 1), finer = last - first <= 1;
    size_t n = 0;
    for (int k = first - finer; k <= last && n + 3 < AXIS_TICKS_MOST; k += every)
        for (int i = 0; i < (finer ? 3 : 1); i++) {
            const double tick = lead[i] * pow(10, k);
            if (tick >= a->low * (1 - 1e-9) && tick <= a->high * (1 + 1e-9)) ticks[n++] = tick;
        }
    return n;
}

/* The multiples of a step inside the axis. */
static size_t even_ticks(const axis *a, double step, double *ticks) {
    const double slack = step * 1e-6, first = ceil((a->low - slack) / step);
    size_t n = 0;
    for (; n < AXIS_TICKS_MOST && (first + (double)n) * step <= a->high + slack; n++) {
        ticks[n] = (first + (double)n) * step;
        if (fabs(ticks[n]) < slack) ticks[n] = 0;
    }
    return n;
}

size_t axis_ticks(const axis *a, size_t most, double *ticks) {
    size_t n = 0;
    if (a->log) return decade_ticks(a, most, ticks);
    if (!(a->high > a->low)) return 0;
    for (size_t parts = most < 1 ? 1 : most; n < 2 && parts < 4 * most + 8; parts++) { /* a scale needs two ticks */
        const double step = round_step((a->high - a->low) / (double)parts);
        n = even_ticks(a, a->whole && step < 1 ? 1 : step, ticks);
    }
    return n;
}

int axis_power(const axis *a) {
    const double size = fmax(fabs(a->low), fabs(a->high));
    const int power = size > 0 ? (int)floor(log10(size) + 1e-9) : 0;
    return !a->log && (power >= 5 || power <= -3) ? power : 0;
}

/* A power of ten with raised digits. */
static void power_text(char text[32], int power) {
    static const char *raised[10] = {"\xE2\x81\xB0", "\xC2\xB9",     "\xC2\xB2",     "\xC2\xB3",     "\xE2\x81\xB4",
                                     "\xE2\x81\xB5", "\xE2\x81\xB6", "\xE2\x81\xB7", "\xE2\x81\xB8", "\xE2\x81\xB9"};
    char digits[16];
    snprintf(digits, sizeof digits, "%d", power < 0 ? -power : power);
    strcpy(text, "10");
    if (power < 0) strcat(text, "\xE2\x81\xBB");
    for (size_t i = 0; digits[i] && i < 4; i++) strcat(text, raised[digits[i] - '0']);
}

void axis_label(const axis *a, const double *ticks, size_t n, size_t i, char *text) {
    const double unit = pow(10, axis_power(a));
    const double value = ticks[i] / unit, step = n > 1 ? (ticks[1] - ticks[0]) / unit : fabs(value);
    int decimals = step > 0 ? (int)-floor(log10(step) + 1e-9) : 0;
    char plain[24];
    if (a->log) {
        const int power = (int)lround(log10(ticks[i]));
        if (power < -3 || power > 4) power_text(text, power);
        else html_number(text, ticks[i], 6);
        return;
    }
    decimals = decimals < 0 ? 0 : decimals > 6 ? 6 : decimals;
    snprintf(plain, sizeof plain, "%.*f", decimals, fabs(value));
    snprintf(text, 32, "%s%s", value < 0 ? "\xE2\x88\x92" : "", plain);
}

/* ---- coordinates ---- */

static double along(const axis *a, double value) {
    if (a->log) return value > 0 ? log(value / a->low) / log(a->high / a->low) : -FIGURE_LARGEST;
    return (value - a->low) / (a->high - a->low);
}

static double pixel_x(const frame *f, double x) {
    return f->left + f->width * along(&f->x, x);
}

static double pixel_y(const frame *f, double y) {
    return f->top + f->height * (1 - along(&f->y, y));
}

/* One decimal, without a trailing zero: a tenth of a pixel is visible enough. */
static void put(FILE *out, double value) {
    char text[400];
    const double tenths = round(value * 10) / 10;
    const int whole = tenths == floor(tenths);
    snprintf(text, sizeof text, whole ? "%.0f" : "%.1f", tenths == 0 ? 0.0 : tenths);
    fputs(text, out);
}

static void put_pair(FILE *out, const char *before, double x, double y) {
    fputs(before, out), put(out, x), fputc(' ', out), put(out, y);
}

static double clamp(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

static int inside(const frame *f, double x, double y) {
    const double slack = 0.01;
    return x >= f->left - slack && x <= f->left + f->width + slack && y >= f->top - slack &&
           y <= f->top + f->height + slack;
}

/* Clips a segment (pixels) to the frame, by Liang and Barsky; 0: it lies outside. */
static int cut(const frame *f, double p[2], double q[2]) {
    const double low[2] = {f->left, f->top}, high[2] = {f->left + f->width, f->top + f->height};
    const double from[2] = {p[0], p[1]}, d[2] = {q[0] - p[0], q[1] - p[1]};
    double enter = 0, leave = 1;
    for (int i = 0; i < 2; i++) {
        double a, b;
        if (d[i] == 0) {
            if (from[i] < low[i] || from[i] > high[i]) return 0;
            continue;
        }
        a = (low[i] - from[i]) / d[i], b = (high[i] - from[i]) / d[i];
        enter = fmax(enter, fmin(a, b)), leave = fmin(leave, fmax(a, b));
    }
    if (!(enter <= leave)) return 0;
    for (int i = 0; i < 2; i++) p[i] = from[i] + enter * d[i], q[i] = from[i] + leave * d[i];
    return 1;
}

/* ---- the figure and its axes ---- */

void figure_begin(FILE *out, int width, int height, const char *description) {
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", width, height);
    html_text(out, description);
    fputs("\">\n", out);
}

void figure_end(FILE *out) {
    fputs("</svg>\n", out);
}

static void text_at(FILE *out, const char *style, double x, double y, const char *text, size_t most) {
    if (!text || !*text) return;
    fputs("<text x=\"", out), put(out, x);
    fputs("\" y=\"", out), put(out, y);
    fprintf(out, "\" class=\"%s\">", style);
    html_short(out, text, most);
    fputs("</text>\n", out);
}

static void axis_name(FILE *out, const char *style, double x, double y, const char *name, const axis *a) {
    char power[32], text[160];
    power_text(power, axis_power(a));
    snprintf(text, sizeof text, "%.100s%s\xC3\x97%s", name, *name ? ", " : "", power);
    text_at(out, style, x, y, axis_power(a) ? text : name, FIGURE_TEXT_MOST);
}

static void x_axis(const frame *f, const char *name) {
    double ticks[AXIS_TICKS_MOST];
    char text[32];
    const double bottom = f->top + f->height;
    const size_t n = axis_ticks(&f->x, (size_t)clamp(f->width / 45, 2, 12), ticks);
    fputs("<path class=\"axis\" d=\"", f->out);
    put_pair(f->out, "M", f->left, bottom), fputs("h", f->out), put(f->out, f->width);
    for (size_t i = 0; i < n; i++) put_pair(f->out, "M", pixel_x(f, ticks[i]), bottom), fputs("v4", f->out);
    fputs("\"/>\n", f->out);
    if (!name) return;
    for (size_t i = 0; i < n; i++) {
        axis_label(&f->x, ticks, n, i, text);
        text_at(f->out, "tick middle", pixel_x(f, ticks[i]), bottom + 16, text, FIGURE_TEXT_MOST);
    }
    axis_name(f->out, "name middle", f->left + f->width / 2, bottom + 32, name, &f->x);
}

static void y_axis(const frame *f, const char *name) {
    double ticks[AXIS_TICKS_MOST];
    char text[32];
    const size_t n = axis_ticks(&f->y, (size_t)clamp(f->height / 32, 2, 12), ticks);
    fputs("<path class=\"grid\" d=\"", f->out);
    for (size_t i = 0; i < n; i++)
        put_pair(f->out, "M", f->left, pixel_y(f, ticks[i])), fputs("h", f->out), put(f->out, f->width);
    if (n == 0) put_pair(f->out, "M", f->left, f->top);
    fputs("\"/>\n", f->out);
    for (size_t i = 0; i < n; i++) {
        axis_label(&f->y, ticks, n, i, text);
        text_at(f->out, "tick end", f->left - 7, pixel_y(f, ticks[i]) + 4, text, FIGURE_TEXT_MOST);
    }
    axis_name(f->out, "name", fmax(f->left - 36, 2), f->top - 12, name, &f->y);
}

void frame_axes(const frame *f, const char *x_name, const char *y_name) {
    if (y_name) y_axis(f, y_name);
    x_axis(f, x_name);
}

void frame_message(const frame *f, const char *text) {
    fputs("<path class=\"axis\" d=\"", f->out);
    put_pair(f->out, "M", f->left, f->top + f->height), fputs("h", f->out), put(f->out, f->width);
    fputs("\"/>\n", f->out);
    text_at(f->out, "name middle", f->left + f->width / 2, f->top + f->height / 2, text, FIGURE_TEXT_MOST);
}

/* ---- what is drawn on them ---- */

/* Draws one segment of a line, clipped to the frame. It continues the path if the previous segment ended where it
 * starts. */
static void line_to(const frame *f, const double from[2], const double to[2], double last[2], int *started) {
    double p[2] = {from[0], from[1]}, q[2] = {to[0], to[1]};
    if (!cut(f, p, q)) return;
    if (!*started) fputs("<path class=\"line\" d=\"", f->out);
    if (!*started || p[0] != last[0] || p[1] != last[1]) put_pair(f->out, "M", p[0], p[1]);
    put_pair(f->out, "L", q[0], q[1]);
    last[0] = q[0], last[1] = q[1], *started = 1;
}

void frame_line(const frame *f, const char *style, const double *x, const double *y, size_t n) {
    double from[2] = {0, 0}, last[2] = {0, 0};
    int known = 0, started = 0;
    fprintf(f->out, "<g class=\"%s\">", style);
    for (size_t i = 0; i < n; i++) {
        double to[2];
        if (!drawable(x[i]) || !drawable(y[i])) {
            known = 0;
            continue;
        }
        to[0] = pixel_x(f, x[i]), to[1] = pixel_y(f, y[i]);
        if (known && i + 1 < n && drawable(y[i + 1]) && hypot(to[0] - from[0], to[1] - from[1]) < FIGURE_STEP) continue;
        if (known) line_to(f, from, to, last, &started);
        from[0] = to[0], from[1] = to[1], known = 1;
    }
    fputs(started ? "\"/></g>\n" : "</g>\n", f->out);
}

static int whole_band(const double *x, const double *low, const double *high, size_t i) {
    return drawable(x[i]) && drawable(low[i]) && drawable(high[i]);
}

void frame_band(const frame *f, const char *style, const double *x, const double *low, const double *high, size_t n) {
    const double right = f->left + f->width, bottom = f->top + f->height;
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && whole_band(x, low, high, end); end++) {
        }
        if (end == first) {
            end++;
            continue;
        }
        fprintf(f->out, "<path class=\"band %s\" d=\"", style);
        for (size_t k = 0; k < 2 * (end - first); k++) { /* along the upper border, and back along the lower */
            const int back = k >= end - first;
            const size_t i = back ? end - 1 - (k - (end - first)) : first + k;
            put_pair(f->out, k ? "L" : "M", clamp(pixel_x(f, x[i]), f->left, right),
                     clamp(pixel_y(f, back ? low[i] : high[i]), f->top, bottom));
        }
        fputs("z\"/>\n", f->out);
    }
}

void frame_points(const frame *f, const char *style, const double *x, const double *y, size_t n, double radius) {
    fprintf(f->out, "<g class=\"%s\">", style);
    for (size_t i = 0; i < n; i++) {
        if (!drawable(x[i]) || !drawable(y[i]) || !inside(f, pixel_x(f, x[i]), pixel_y(f, y[i]))) continue;
        fputs("<circle cx=\"", f->out), put(f->out, pixel_x(f, x[i]));
        fputs("\" cy=\"", f->out), put(f->out, pixel_y(f, y[i]));
        fputs("\" r=\"", f->out), put(f->out, radius), fputs("\"/>", f->out);
    }
    fputs("</g>\n", f->out);
}

/* A rectangle from (a, c) to (b, d), in pixels. */
static void rectangle(FILE *out, double a, double b, double c, double d) {
    put_pair(out, "M", a, c);
    fputs("h", out), put(out, b - a), fputs("v", out), put(out, d - c), fputs("h", out), put(out, a - b),
        fputs("z", out);
}

void frame_bar(const frame *f, const char *style, double x0, double x1, double y0, double y1) {
    const double right = f->left + f->width, bottom = f->top + f->height;
    if (!drawable(x0) || !drawable(x1) || !drawable(y0) || !drawable(y1)) return;
    fprintf(f->out, "<path class=\"bar %s\" d=\"", style);
    rectangle(f->out, clamp(pixel_x(f, x0), f->left, right), clamp(pixel_x(f, x1), f->left, right),
              clamp(pixel_y(f, y1), f->top, bottom), clamp(pixel_y(f, y0), f->top, bottom));
    fputs("\"/>\n", f->out);
}

void frame_rule(const frame *f, const char *style, double x0, double y0, double x1, double y1) {
    const double x[2] = {x0, x1}, y[2] = {y0, y1};
    frame_line(f, style, x, y, 2);
}

void frame_text(const frame *f, const char *style, double x, double y, double dx, double dy, const char *text,
                size_t most) {
    if (drawable(x) && drawable(y)) text_at(f->out, style, pixel_x(f, x) + dx, pixel_y(f, y) + dy, text, most);
}

/* ---- shades ---- */

/* The shade for a share of the largest value; 0: none. */
static int level_of(double share) {
    return share > 0 ? (int)floor(clamp(share, 0, 1) * FIGURE_LEVELS + 0.5) : 0;
}

/* The square root makes small values visible in a cell. */
static int cell_level(double value, double most) {
    return value > 0 && most > 0 ? level_of(sqrt(value / most)) : 0;
}

static int shade_begin(const frame *f, const char *kind, int level, int started) {
    if (!started) fprintf(f->out, "<path class=\"%s\" opacity=\"%.3f\" d=\"", kind, level / (double)FIGURE_LEVELS);
    return 1;
}

void frame_cells(const frame *f, const double *x, size_t cols, const double *y, size_t rows, const double *value,
                 double most) {
    for (int level = 1; level <= FIGURE_LEVELS; level++) { /* one path per shade keeps the file small */
        int started = 0;
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0, end; c < cols; c = end) {
                const double *row = value + r * cols;
                for (end = c + 1; end < cols && cell_level(row[end], most) == cell_level(row[c], most); end++) {
                }
                if (cell_level(row[c], most) != level) continue;
                started = shade_begin(f, "cell", level, started);
                rectangle(f->out, pixel_x(f, x[c]), pixel_x(f, x[end]), pixel_y(f, y[r + 1]), pixel_y(f, y[r]));
            }
        if (started) fputs("\"/>\n", f->out);
    }
}

void frame_links(const frame *f, const double *x_top, size_t tops, const double *x_bottom, size_t bottoms,
                 const double *weight, double most) {
    for (int level = 2; level <= FIGURE_LEVELS; level++) { /* the faintest level would hide the rest */
        int started = 0;
        for (size_t i = 0; i < tops * bottoms; i++) {
            if (level_of(weight[i] / most) != level) continue;
            started = shade_begin(f, "link", level, started);
            put_pair(f->out, "M", pixel_x(f, x_top[i / bottoms]), f->top);
            put_pair(f->out, "L", pixel_x(f, x_bottom[i % bottoms]), f->top + f->height);
        }
        if (started) fputs("\"/>\n", f->out);
    }
}
