/* See shell_word.h. */
#include "shell_word.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static int is_plain(const char *word) {
    for (const char *at = word; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_-./,:=+@%", *at)) return 0;
    return *word != 0;
}

void shell_append(char *text, size_t size, const char *word) {
    size_t used = strlen(text);
    const int plain = is_plain(word);
    used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", plain ? "" : "'");
    for (; *word && used + 6 < size; word++) /* ' inside quotes is '\'' */
        used += (size_t)snprintf(text + used, size - used, *word == '\'' ? "'\\''" : "%c", *word);
    if (!plain) snprintf(text + used, size - used, "'");
}
