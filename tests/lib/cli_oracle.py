"""What keydb-cli is compared before: Debian's redis-server with some keys, and a server that answers every command with
bytes that the test chose. Fixtures: a test file imports those that it takes."""

import os
import socket
import subprocess
import time

import pytest

from lib.bounds import Bound, BoundPassed
from lib.cli import PATIENCE_S, THEIRS, Canned, run
from lib.server import free_port, listens

SERVER = "/usr/bin/redis-server"


class Oracle:
    def __init__(self, directory, *options):
        self.socket = os.path.join(directory, "s.sock")
        for _ in range(5):
            self.port = free_port()
            arguments = [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "::1"]
            arguments += ["--save", "", "--dir", directory, "--enable-debug-command", "yes"]
            arguments += ["--unixsocket", self.socket] + list(options)
            self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, start_new_session=True)
            if self._listens():
                return
        raise AssertionError("it ends: %s" % arguments)

    def _listens(self):
        """Itself, not whoever else has been given the port meanwhile: then it ends."""
        bound = Bound(PATIENCE_S)
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                if listens(self.process.pid, self.port):
                    return True
            except OSError:
                pass
            if not bound.left():
                self.stop()
                raise BoundPassed("nobody listens")
            time.sleep(0.02)
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def shared_oracle(tmp_path_factory):
    oracle = Oracle(str(tmp_path_factory.mktemp("oracle")))
    yield oracle
    oracle.stop()


# Output styles and the arguments that ask for them.
STYLES = {
    "tty": ["--no-raw"],
    "raw": ["--raw"],
    "csv": ["--csv"],
    "json": ["--json"],
    "quoted-json": ["--quoted-json"],
    "tty3": ["--no-raw", "-3"],
    "raw3": ["--raw", "-3"],
    "csv3": ["--csv", "-3"],
    "json2": ["--json", "-2"],
}

SEED = [
    b'set str "hello \\"w\\" \\x01 \\xc3\\xa9 \\xff"',
    b"set empty ''",
    b'set lines "a\\nb\\n"',
    b"rpush list a b c",
    b"rpush long 1 2 3 4 5 6 7 8 9 10 11",
    b"hset hash f v g w",
    b"sadd set m",
    b"zadd zset 1.5 a 2 b",
    b"xadd stream 1-1 f v g w",
    b"xadd stream 2-1 f v",
]


@pytest.fixture
def oracle(shared_oracle):
    seed = b"flushall\n" + b"\n".join(SEED) + b"\n"
    assert run(THEIRS, ["-p", shared_oracle.port], stdin=seed).status == 0
    return shared_oracle


@pytest.fixture
def canned():
    started = []

    def start(answer, close=False):
        started.append(Canned(answer, close))
        return started[-1]

    yield start
    for server in started:
        server.stop()
