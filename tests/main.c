/* Runs every suite of suites.h but those that MTAN_SKIP_CASES names. greatest's own options apply: -v names each test, -s SUITE and
 * -t TEST choose. */
#include "check.h"

#include <greatest.h>

#define X(suite) SUITE_EXTERN(suite);
#include "suites.h"
#undef X

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 1024); /* a crash must not swallow what was printed before it */
    GREATEST_MAIN_BEGIN();
#define X(suite)                                                                                                       \
    if (!case_left_out(#suite)) RUN_SUITE(suite);
#include "suites.h"
#undef X
    GREATEST_MAIN_END();
}
