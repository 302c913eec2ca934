"""Bounds on waiting.  They end a hung test; no test passes or fails by speed.

KEYDB_TEST_TIME_FACTOR multiplies all of them, for loaded machines; programs in build/ (sanitizers
and other variants) get 5 unless it says otherwise.
"""

import os
import resource
import time

_SLOW_VARIANT = "/build/" in os.environ.get("KEYDB_SERVER", "")
FACTOR = float(os.environ.get("KEYDB_TEST_TIME_FACTOR") or (5 if _SLOW_VARIANT else 1))


def scaled(seconds):
    return seconds * FACTOR


def eventually(condition, what, bound_s=10.0, pause_s=0.01):
    """Wait until condition() is true and give its value; fail after the bound."""
    deadline = time.monotonic() + scaled(bound_s)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("not within %g s: %s (last: %r)"
                                 % (scaled(bound_s), what, value))
        time.sleep(pause_s)


def descriptors():
    """How many files this process may open, after asking for as many as it can get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
