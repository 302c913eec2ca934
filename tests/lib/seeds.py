"""Seeds of random tests.  Each is printed in the failure; KEYDB_TEST_SEED=N runs that one again
(alone, where a test would take several)."""

import os
import random

_GIVEN = os.environ.get("KEYDB_TEST_SEED")


def seeds(count, base=1):
    """The seeds to run: fixed ones, so that a run of the suite can be compared with the last."""
    return [int(_GIVEN)] if _GIVEN else list(range(base, base + count))


def generator(seed, *salt):
    return random.Random("%s/%s" % (seed, "/".join(map(str, salt))))
