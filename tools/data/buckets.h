/* Groups items 0..count-1 by a key (records by person, rows by record); the buckets are in order of first
 * appearance. */
#ifndef MTAN_TOOLS_BUCKETS_H
#define MTAN_TOOLS_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

typedef struct buckets {
    int32_t *member; /* (count) bucket after bucket, ascending within each */
    int32_t *first;  /* (n + 1) index of each bucket's start in `member` */
    size_t n;
} buckets;

/* An item with a negative key gets a bucket of its own. count below 2^31. */
buckets buckets_fill(const int32_t *key, size_t count);
int32_t buckets_largest(const buckets *b); /* size of the largest bucket */
void buckets_free(buckets *b);

#endif
