/* See stop.h. */
#include "stop.h"

/* Of each thread, because programs train in several at once. */
static __thread struct {
    int (*unwanted)(void *context);
    void *context;
    int stopped;
} listener;

void stop_listen(int (*unwanted)(void *context), void *context) {
    listener.unwanted = unwanted, listener.context = context, listener.stopped = 0;
}

int stop_asked(void) {
    if (!listener.stopped && listener.unwanted) listener.stopped = listener.unwanted(listener.context) != 0;
    return listener.stopped;
}
