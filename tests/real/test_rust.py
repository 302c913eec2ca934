"""A module in Rust, built with the binding that its users take (tests/real/rust, crate redis-module), beside
redis-server 8.2.3 with the same file."""

import os
import shutil
import subprocess

import pytest

from lib.bounds import eventually
from lib.modules import in_threads
from lib.real import FOLDER, real
from lib.server import REPOSITORY

COMMANDS = ["RU.NOTE n one", "RU.NOTE n two", "RU.READ n", "RU.READ none", "RU.NOTE n", "TYPE n", "RU.CALL ECHO x", "RU.CALL INCR i",
            "RU.CALL LRANGE none 0 -1", "RU.CALL NOSUCH", "RU.CALL", "RPUSH q 1 2", "RU.POP q 0", "RU.POP q 0", "RU.POP q 0.02",
            "RU.LATER i", "RU.LATER s", "SET s v", "RU.LATER s", "RU.READ s", "MULTI", "RU.NOTE n three", "RU.CALL GET i", "EXEC"]


@pytest.fixture(scope="session")
def rustic():
    """The shared object. Skipped where there is no cargo, or its registry does not answer."""
    if not shutil.which("cargo"):
        pytest.skip("no cargo")
    target = os.path.join(FOLDER, "rust")
    done = subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path",
                           os.path.join(REPOSITORY, "tests", "real", "rust", "Cargo.toml"), "--target-dir", target],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0 and "failed to download" in done.stderr:
        pytest.skip("crates.io does not answer")
    assert done.returncode == 0, done.stderr[-2000:]
    return os.path.join(target, "release", "librustic.so")


@pytest.fixture
def serving(make_server, rustic):
    def make(options=None, theirs=False):
        options = {"loadmodule": rustic, "enable-debug-command": "yes", **(options or {})}
        return make_server(options, files=("dump.rdb", "appendonlydir"), path=real("redis-server") if theirs else None)

    return make


def test_replies(serving):
    with serving().connect() as ours, serving(theirs=True).connect() as theirs:
        for words in COMMANDS:
            assert ours.call(*words.split()) == theirs.call(*words.split()), words


def test_files_and_replicas(serving):
    server = serving({"appendonly": "yes", "appendfsync": "always"})
    replica = serving({"replicaof": "127.0.0.1 %d" % server.port})
    with server.connect() as c:
        for i in range(20):
            c.call("RU.NOTE", "n%d" % (i % 3), "text %d" % i)
        c.ok("DEBUG", "RELOAD")
        c.call("BGREWRITEAOF")
        eventually(lambda: b"aof_rewrite_in_progress:0" in c.call("INFO", "persistence"), "the log is rewritten")
        c.call("RU.NOTE", "n0", "last")
        with replica.connect() as r:
            eventually(lambda: r.call("RU.READ", "n0") == b"last", "the replica has it", 30)
    server.kill()
    server.start()
    with server.connect() as c:
        assert c.call("RU.READ", "n0") == b"last" and c.call("RU.NOTE", "n1", "x") == 8


def test_from_all_threads(serving):
    server, clients, rounds = serving(), 8, 30

    def use(number):
        with server.connect() as c:
            for i in range(rounds):
                assert c.call("RU.LATER", "count") > 0
                c.call("RU.NOTE", "n", "%d %d" % (number, i))

    def pop():
        with server.connect() as c:
            for _ in range(rounds):
                assert c.call("RU.POP", "q", "20")[0] == b"q"

    def push():
        with server.connect() as c:
            for i in range(rounds):
                c.call("RPUSH", "q", i)

    in_threads(*[lambda n=n: use(n) for n in range(clients)], pop, pop, push, push)
    with server.connect() as c:
        assert c.call("GET", "count") == b"%d" % (clients * rounds)
        assert c.call("RU.NOTE", "n", "x") == clients * rounds + 1
