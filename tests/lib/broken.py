"""The server whose keyspace lock is broken on purpose (make broken-lock), and checks that have to
notice."""

import os
import subprocess
import time

import pytest

from lib.bounds import scaled
from lib.seeds import seeds
from lib.server import REPOSITORY, Server

# A round that finds it takes a second; on a busy machine, where the threads seldom run at the same
# time, it takes many.
ROUNDS_BOUND_S = 180.0


def broken_server():
    path = os.environ.get("KEYDB_BROKEN_SERVER",
                          os.path.join(REPOSITORY, "build", "release", "broken-lock", "keydb-server"))
    if not os.access(path, os.X_OK):
        pytest.skip("no server with a broken lock at %s: make broken-lock, or set "
                    "KEYDB_BROKEN_SERVER" % path)
    return path


def has_died(server):
    try:
        server.process.wait(timeout=scaled(5.0))
    except subprocess.TimeoutExpired:
        return False
    return True


def until_caught(path, one_round, fault):
    """Rounds, each with a new server, until one_round(address, seed) raises `fault`. A round in which
    the server dies does not count."""
    deadline = time.monotonic() + scaled(ROUNDS_BOUND_S)
    rounds = 0
    for seed in seeds(1000):
        rounds += 1
        server = Server(path, threads=4)
        try:
            server.start()
            one_round(server.address(), seed)
        except fault:
            return
        except Exception:  # what shares without a lock may also die of it: that proves nothing
            if not has_died(server):
                raise
        finally:
            server.kill()
            server.remove()
        if time.monotonic() > deadline:
            break
    pytest.fail("the broken lock was not noticed in %d rounds" % rounds)
