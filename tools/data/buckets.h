/* Things 0..count-1 put together by a key (records by person, rows by record), buckets in order of first appearance. */
#ifndef MTAN_TOOLS_BUCKETS_H
#define MTAN_TOOLS_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

typedef struct buckets {
    int32_t *member; /* (count) bucket after bucket, ascending within each */
    int32_t *first;  /* (n + 1) where each starts in `member` */
    size_t n;
} buckets;

/* A negative key is shared with nobody. count below 2^31. */
buckets buckets_fill(const int32_t *key, size_t count);
int32_t buckets_largest(const buckets *b); /* members of the largest */
void buckets_free(buckets *b);

#endif
