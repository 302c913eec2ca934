/* Linked into every unit test program: random numbers are the same in each run, so that chance does
 * not decide whether a commit passes. KEYDB_TEST_SEED=N runs with others (hash.h's secrets are
 * fixed by the tests themselves). */
#include "base/rand.h"

#include <stdlib.h>

__attribute__((constructor)) static void fix_seed(void)
{
    const char *seed = getenv("KEYDB_TEST_SEED");
    rand_set_seed(seed ? strtoull(seed, NULL, 10) : 1);
}
