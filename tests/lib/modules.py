"""Modules that tests load: tests/modules/*.c, compiled by `make test-modules` when they are asked for."""

import fcntl
import functools
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@functools.lru_cache(maxsize=None)
def build():
    """The folder with all of them. One make at a time, whoever else runs tests of this tree."""
    folder = os.path.join(ROOT, "build", "modules")
    os.makedirs(folder, exist_ok=True)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "SANITIZE", "CC")}
    with open(os.path.join(folder, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "-C", ROOT, "test-modules"], check=True, env=environment,
                       stdout=subprocess.DEVNULL)
    return folder


def path_of(name):
    """The shared object of tests/modules/<name>.c."""
    return os.path.join(build(), name + ".so")
