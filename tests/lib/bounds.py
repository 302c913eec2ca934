"""Bounds on waiting. They end a hung test; no test passes or fails by speed.

KEYDB_TEST_TIME_FACTOR multiplies all of them, for loaded machines; programs in build/ (sanitizers
and other variants) get 5 unless it says otherwise.

A bound that has passed is a BoundPassed. A test that failed of nothing else is run again, alone
(lib/outcome.py), so nothing but waiting may raise it: never what a server said or lost.
"""

import os
import resource
import signal
import subprocess
import threading
import time

_SLOW_VARIANT = "/build/" in os.environ.get("KEYDB_SERVER", "")
FACTOR = float(os.environ.get("KEYDB_TEST_TIME_FACTOR") or (5 if _SLOW_VARIANT else 1))
# What is a while of silence, where nothing is to come: no bound, it passes where all is well.
SILENCE_FACTOR = 5 if any(word in os.environ.get("KEYDB_SERVER", "") for word in ("/asan", "/ubsan", "/tsan")) else 1
# No test takes a tenth of it.
TEST_BOUND_S = 900


class BoundPassed(Exception):
    """What was waited for did not come within the bound."""


# Those of Python's own: a socket's bound and a program's.
PASSED = (BoundPassed, TimeoutError, subprocess.TimeoutExpired)


def scaled(seconds):
    return seconds * FACTOR


class Bound:
    """What a wait may take, in seconds as they are (not scaled). Who waits asks for what is left, waits for no
    longer, and asks again. A machine that stands still takes nothing from it: of the time between two looks
    COUNTED_S count at most."""

    COUNTED_S = 2.0

    def __init__(self, seconds):
        self._left_s = seconds
        self._looked_s = time.monotonic()

    def left(self):
        """For how long to wait now; nothing (0) where the bound has passed."""
        now_s = time.monotonic()
        self._left_s -= min(now_s - self._looked_s, self.COUNTED_S)
        self._looked_s = now_s
        return max(0, min(self._left_s, self.COUNTED_S / 2))


def eventually(condition, what, bound_s=10.0, pause_s=0.01):
    """Wait until condition() is true and give its value; fail after the bound."""
    bound = Bound(scaled(bound_s))
    while True:
        value = condition()
        if value:
            return value
        if not bound.left():
            raise BoundPassed("not within %g s: %s (last: %r)"
                              % (scaled(bound_s), what, value))
        time.sleep(pause_s)


class bounded_test:
    """Ends a test that hangs where nothing else does. For the main thread."""

    def __enter__(self):
        self.usable = threading.current_thread() is threading.main_thread()
        if self.usable:
            self.before = signal.signal(signal.SIGALRM, self._passed)
            signal.setitimer(signal.ITIMER_REAL, TEST_BOUND_S)

    def __exit__(self, *_):
        if self.usable:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self.before)

    @staticmethod
    def _passed(*_):
        raise BoundPassed("the test did not end within %d s" % TEST_BOUND_S)


def descriptors():
    """How many files this process may open, after asking for as many as it can get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
