/* platform/pool.c as it is where there are no threads, under names of its own beside the real one. */
#define MTAN_NO_THREADS
#define mtan_pool_cpus none_pool_cpus
#define mtan_pool_start none_pool_start
#define mtan_pool_run none_pool_run
#define mtan_pool_stop none_pool_stop
#include "../../platform/pool.c"
