/* See messages.h. */
#define _POSIX_C_SOURCE 200809L
#include "messages.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../../data/shown.h"

static struct {
    int quiet, open; /* open: the terminal shows a progress line */
    double last;     /* not on a terminal: time of the last progress line, or of the first call */
} messages;

/* Threads that train in parallel in one program hear only of their own runs. */
static __thread message_ear listener; /* NULL: standard error */

message_ear messages_listen(message_listener hear, void *context) {
    const message_ear before = listener;
    listener.hear = hear, listener.context = context;
    return before;
}

void messages_quiet(int on) {
    messages.quiet = on;
}

int quiet(void) {
    return messages.quiet;
}

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Prints a one-line message. Names in it cannot send control codes to the terminal. If memory is too short for a long
 * message (the message may be about just that), its beginning is printed. */
static void say(int wrong, const char *format, va_list arguments) {
    char room[1024], *more, *text = room;
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(room, sizeof room, format, again);
    va_end(again);
    if (length < 0) room[0] = 0;
    if (length >= (int)sizeof room && (more = malloc((size_t)length + 1)) != NULL) {
        vsnprintf(more, (size_t)length + 1, format, arguments);
        text = more;
    }
    shown_clean(text);
    if (listener.hear) listener.hear(listener.context, wrong, text);
    else progress_end(), fprintf(stderr, "%s%s\n", wrong ? "mtan: " : "", text);
    if (text != room) free(text);
}

int complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(1, format, arguments);
    va_end(arguments);
    return BAD_USE;
}

enum { TOLD_MOST = 20 };

int complain_again(size_t *told) {
    if (*told == TOLD_MOST) complain("more like these are counted, not shown");
    return (*told)++ < TOLD_MOST;
}

void complain_rest(size_t told) {
    if (told > TOLD_MOST) complain("%zu more like these", told - TOLD_MOST);
}

void note(const char *format, ...) {
    va_list arguments;
    if (messages.quiet && !listener.hear) return;
    va_start(arguments, format);
    say(0, format, arguments);
    va_end(arguments);
}

enum { COLUMNS_LEAST = 20, COLUMNS_USUAL = 80, PROGRESS_BYTES = 512 };

int terminal_columns(int descriptor) {
    const char *columns = getenv("COLUMNS");
    const int width = columns ? atoi(columns) : 0;
    if (width > COLUMNS_LEAST) return width;
#ifdef TIOCGWINSZ
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > COLUMNS_LEAST) return size.ws_col;
#else
    (void)descriptor;
#endif
    return COLUMNS_USUAL;
}

void progress(const char *format, ...) {
    char text[PROGRESS_BYTES];
    va_list arguments;
    const double now = seconds();
    if (messages.quiet || listener.hear) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    shown_clean(text);
    if (isatty(STDERR_FILENO)) {
        /* One column stays free: a full line would wrap and could not be rewritten. */
        fprintf(stderr, "\r\033[K%.*s", terminal_columns(STDERR_FILENO) - 1, text);
        messages.open = 1;
    } else if (!(messages.last > 0)) messages.last = now;
    else if (now - messages.last >= 10) fprintf(stderr, "%s\n", text), messages.last = now;
    fflush(stderr);
}

void progress_end(void) {
    if (listener.hear) return; /* a progress line would belong to another thread */
    if (messages.open) fputs("\r\033[K", stderr);
    messages.open = 0;
    messages.last = 0;
}
