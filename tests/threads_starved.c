/* platform/threads.c on a system that gives only so many threads, under names of its own beside the real one. */
#if defined __linux__
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>

extern int starved_allowed;
int starved_allowed;

static int starved_create(pthread_t *id, const pthread_attr_t *attributes, void *(*entry)(void *), void *context) {
    return starved_allowed-- > 0 ? pthread_create(id, attributes, entry, context) : EAGAIN;
}
#define pthread_create starved_create
#define mtan_pool_cpus starved_pool_cpus
#define mtan_pool_start starved_pool_start
#define mtan_pool_run starved_pool_run
#define mtan_pool_stop starved_pool_stop
#include "../platform/threads.c"
