/* platform/pool.c on a system that gives only so many threads, under names of its own beside the real one. */
#if defined __linux__
#define _GNU_SOURCE
#endif

extern int starved_allowed;
int starved_allowed;

#ifdef _WIN32
#include <windows.h>
#include <process.h>
static uintptr_t starved_begin(void *security, unsigned stack, unsigned(__stdcall *entry)(void *), void *context,
                               unsigned flags, unsigned *id) {
    return starved_allowed-- > 0 ? _beginthreadex(security, stack, entry, context, flags, id) : 0;
}
#define _beginthreadex starved_begin
#else
#include <errno.h>
#include <pthread.h>
static int starved_create(pthread_t *id, const pthread_attr_t *attributes, void *(*entry)(void *), void *context) {
    return starved_allowed-- > 0 ? pthread_create(id, attributes, entry, context) : EAGAIN;
}
#define pthread_create starved_create
#endif
#define mtan_pool_cpus starved_pool_cpus
#define mtan_pool_start starved_pool_start
#define mtan_pool_run starved_pool_run
#define mtan_pool_stop starved_pool_stop
#include "../../platform/pool.c"
