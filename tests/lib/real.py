"""Modules that people run, as their makers have built them, and the redis-server 8.2.3 that loads them all: fetched
by tests/real/fetch into build/real/. Tests that ask for one are skipped where it is not there."""

import os

import pytest

from lib.server import REPOSITORY

FOLDER = os.path.join(REPOSITORY, "build", "real")


def real(name):
    """The path of a module, or of redis-server."""
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path):
        pytest.skip("%s is not there: tests/real/fetch" % name)
    return path
