/* See buckets.h. */
#include "buckets.h"

#include "array.h"

typedef struct keyed {
    int32_t key, index;
} keyed;

static int by_key(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The bucket of each item; a negative key gets a bucket of its own. */
static size_t number_buckets(int32_t *number, const int32_t *key, size_t count) {
    keyed *sorted = tool_calloc(count, sizeof *sorted);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) sorted[i].key = key[i], sorted[i].index = (int32_t)i;
    qsort(sorted, count, sizeof *sorted, by_key);
    for (size_t i = 0, first = 0; i < count; i++) { /* number: for now, the first item of that key */
        if (sorted[i].key < 0 || sorted[i].key != sorted[first].key) first = i;
        number[sorted[i].index] = sorted[first].index;
    }
    for (size_t i = 0; i < count; i++) number[i] = number[i] == (int32_t)i ? (int32_t)n++ : number[number[i]];
    free(sorted);
    return n;
}

buckets buckets_fill(const int32_t *key, size_t count) {
    int32_t *number = tool_calloc(count, sizeof *number), *next;
    buckets b;
    b.n = number_buckets(number, key, count);
    b.member = tool_calloc(count, sizeof *b.member);
    b.first = tool_calloc(b.n + 1, sizeof *b.first);
    next = tool_calloc(b.n + 1, sizeof *next);
    for (size_t i = 0; i < count; i++) b.first[number[i] + 1]++;
    for (size_t k = 0; k < b.n; k++) next[k + 1] = b.first[k + 1] += b.first[k];
    for (size_t i = 0; i < count; i++) b.member[next[number[i]]++] = (int32_t)i;
    free(number), free(next);
    return b;
}

void buckets_free(buckets *b) {
    free(b->member), free(b->first);
}

int32_t buckets_largest(const buckets *b) {
    int32_t most = 0;
    for (size_t k = 0; k < b->n; k++)
        if (b->first[k + 1] - b->first[k] > most) most = b->first[k + 1] - b->first[k];
    return most;
}
