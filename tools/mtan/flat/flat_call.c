/* See flat_call.h. */
#include "flat_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"

static __thread char message[1024];
static __thread struct {
    mtan_flat_listener hear;
    void *context;
} listener;

const char *mtan_flat_message(void) {
    return message;
}

void mtan_flat_listen(mtan_flat_listener hear, void *context) {
    listener.hear = hear, listener.context = context;
}

/* Joins the errors: the first is the cause, the following ones say where. */
static void hear(void *context, int wrong, const char *text) {
    const size_t used = strlen(message);
    (void)context;
    if (wrong) snprintf(message + used, sizeof message - used, "%s%s", used ? "; " : "", text);
    if (listener.hear) listener.hear(listener.context, wrong, text);
}

typedef struct call {
    int (*work)(void *job);
    void *job;
    int good;
} call;

static void run_call(void *argument) {
    call *c = argument;
    c->good = c->work(c->job);
}

int32_t flat_call(int (*work)(void *job), void *job) {
    call c = {work, job, 0};
    size_t missing;
    message[0] = 0;
    messages_listen(hear, NULL);
    missing = memory_try(run_call, &c);
    if (missing) complain("out of memory: %zu bytes were not to be had", missing);
    messages_listen(NULL, NULL);
    return c.good && !missing ? 0 : 1;
}

int flat_fail(const char *text, ...) {
    char *all = NULL;
    va_list more;
    va_start(more, text);
    for (; text; text = va_arg(more, const char *)) memcpy(arraddnptr(all, strlen(text)), text, strlen(text));
    va_end(more);
    arrput(all, 0);
    complain("%s", all);
    arrfree(all);
    return 0;
}

void *flat_take(size_t bytes) {
    return tool_calloc(1, bytes);
}

void flat_give_back(void *block) {
    free(block);
}
