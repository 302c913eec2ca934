"""Restart loops under load: however the server is told to end, and when it is killed, a start finds what
was acknowledged. RDB files alone: what was there when the end was asked for."""

import os
import random
import signal
import threading

import pytest

from lib.bounds import eventually
from lib.resp import Closed, Error, Timeout
from lib.rounds import rounds
from lib.server import is_redis, server_path

pytestmark = pytest.mark.skipif(is_redis(server_path()), reason="a promise of ours, not of Redis")

CLIENTS = 4
WAYS = [signal.SIGTERM, signal.SIGINT, ["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["SHUTDOWN", "SAVE"],
        ["SHUTDOWN", "NOW"], ["SHUTDOWN", "FORCE"], ["SHUTDOWN", "NOSAVE", "NOW", "FORCE"],
        [signal.SIGTERM, signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]]


class Load:
    """Clients that count upwards, each at its own key, until the server is gone."""

    def __init__(self, server, depth=1):
        self.server, self.depth = server, depth
        self.failed = None
        with server.connect() as client:
            self.acknowledged = [int(client.call("GET", "k%d" % n) or 0) for n in range(CLIENTS)]
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def _run(self, n):
        try:
            with self.server.connect() as client:
                number = self.acknowledged[n]
                while True:
                    numbers = range(number + 1, number + 1 + self.depth)
                    replies = client.pipeline([["SET", "k%d" % n, str(i)] for i in numbers])
                    assert all(reply == b"OK" for reply in replies), replies
                    number = numbers[-1]
                    self.acknowledged[n] = number
        except (OSError, Closed, Timeout):
            pass
        except Exception as trouble:  # told when the threads are joined
            self.failed = trouble

    def wait(self, count):
        count += sum(self.acknowledged)
        eventually(lambda: sum(self.acknowledged) >= count, "%d writes" % count, 30)

    def end(self):
        for thread in self.threads:
            thread.join()
        if self.failed:
            raise self.failed


def check(server, load):
    with server.connect() as c:
        for n, number in enumerate(load.acknowledged):
            found = int(c.call("GET", "k%d" % n) or 0)
            assert number <= found <= number + load.depth, (n, number, found)


def tell(server, way):
    if isinstance(way, list) and isinstance(way[0], str):
        with server.connect() as c:
            c.send(*way)
            try:
                reply = c.read()
            except (Closed, OSError):
                return
            assert not isinstance(reply, Error), reply
    else:
        for number in way if isinstance(way, list) else [way]:
            os.kill(server.pid, number)


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_ends(make_server, policy):
    server = make_server({"appendonly": "yes", "appendfsync": policy, "save": ["3600", "1"]},
                         files=["appendonlydir", "dump.rdb"])
    for way in WAYS:
        load = Load(server, depth=4)
        load.wait(200)
        tell(server, way)
        assert server.wait_exit(30) == 0
        load.end()
        server.start()
        check(server, load)


def test_ends_while_a_child_works(make_server):
    """A rewrite or a BGSAVE is under way: it is called off, and leaves nothing."""
    server = make_server({"appendonly": "yes"}, files=["appendonlydir", "dump.rdb"])
    with server.connect() as c:
        c.pipeline([["SET", "k%d" % n, "v"] for n in range(20000)])
    for way in (signal.SIGTERM, ["SHUTDOWN", "NOSAVE"], ["SHUTDOWN", "SAVE"], ["SHUTDOWN", "NOW"]):
        for command in ("BGREWRITEAOF", "BGSAVE"):
            with server.connect() as c:
                c.call(command)
            tell(server, way)
            assert server.wait_exit(30) == 0
            server.start()
            with server.connect() as c:
                assert c.call("DBSIZE") == 20000
            assert not [n for n in os.listdir(server.directory) if n.startswith("temp-")]


def test_files_alone(make_server):
    """Without a log: SHUTDOWN SAVE keeps what was there, NOSAVE what the last file had."""
    server = make_server({"save": ""}, files=["dump.rdb"])
    for number in range(4):
        with server.connect() as c:
            c.ok("SET", "k", str(number))
        tell(server, ["SHUTDOWN", "SAVE"])
        assert server.wait_exit() == 0
        server.start()
        with server.connect() as c:
            assert c.call("GET", "k") == b"%d" % number
            c.ok("SET", "k", "lost")
        tell(server, ["SHUTDOWN", "NOSAVE"])
        assert server.wait_exit() == 0
        server.start()
        with server.connect() as c:
            assert c.call("GET", "k") == b"%d" % number


def kill_rounds(server, rounds, seed):
    rng = random.Random(seed)
    for number in range(rounds):
        load = Load(server, depth=rng.choice([1, 1, 4, 32]))
        load.wait(rng.randrange(1, 400))
        if rng.random() < 0.3:
            with server.connect() as c:
                c.call(rng.choice(["BGREWRITEAOF", "BGSAVE"]))
        server.kill_all()
        load.end()
        server.start()
        check(server, load)
        if number % 50 == 49:
            with server.connect() as c:
                c.ok("FLUSHALL")
    for name in os.listdir(server.directory):
        if name.startswith("temp-"):  # of children that were killed
            os.unlink(server.file(name))


@pytest.mark.rounds
@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_kills(make_server, policy):
    """kill -9 of the process, not of the machine, costs nothing that was acknowledged, whatever
    appendfsync says."""
    server = make_server({"appendonly": "yes", "appendfsync": policy},
                         files=["appendonlydir", "dump.rdb"])
    kill_rounds(server, rounds(8, 500), "kills/%s" % policy)
