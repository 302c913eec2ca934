"""Each state of a link between servers has its bound: whoever goes silent in it, or hangs, is given up
after repl-timeout, and nobody else waits for him longer than that."""

import contextlib
import socket
import threading

import pytest

from lib.bounds import eventually
from lib.primary import HISTORY
from lib.replica import MODERN, Played
from lib.replication import replication
from lib.resp import Closed

pytestmark = pytest.mark.any_threads

VALUE = 100_000
OPTIONS = {"save": "", "repl-timeout": "60", "repl-ping-replica-period": "3600", "repl-diskless-sync-delay": "0",
           "client-output-buffer-limit": "replica 0 0 0"}


def fill(server, megabytes):
    """Values that do not become shorter in a data set's bytes."""
    with server.connect() as c:
        c.call("EVAL", "math.randomseed(1) local t = {} for i = 1, %d do t[i] = string.char(math.random(0, 255)) end "
               "local v = table.concat(t) for i = 1, ARGV[1] do redis.call('SET', 'key:' .. i, v) end" % VALUE,
               0, megabytes * 10)


def names(server):
    """What the replicas that are there have told as their ports."""
    found = replication(server)
    return {found[key].split("port=")[1].split(",")[0] for key in found if key[:5] == "slave" and key[5:].isdigit()}


# ---- a replica, as its primary sees it

def begin(p):
    p.c.send("PSYNC", "?", "-1")
    assert p.line().startswith(b"+FULLRESYNC")


def hang_in_the_transfer(p):
    begin(p)
    p.take(1000)


def take_and_say_nothing(p):
    p.full()


def go_online_and_say_nothing(p):
    p.c.send("REPLCONF", "ACK", p.full()[1])


SILENT = {
    "1001": hang_in_the_transfer,
    "1002": take_and_say_nothing,
    "1003": go_online_and_say_nothing,
}


class Alive(threading.Thread):
    """A replica that loads what it got, and says so."""

    def __init__(self, p):
        super().__init__(daemon=True)
        self.p, self.stop = p, threading.Event()

    def run(self):
        with contextlib.suppress(OSError):
            while not self.stop.wait(0.3):
                self.p.c.send_raw(b"\n")


@pytest.mark.parametrize("way", ["pipe", "file"])
def test_replicas(make_server, play, way):
    """All steps at once. The one who hangs in the transfer has a full socket: nobody asks it for
    more. Who lives is not dropped with them, and gets what he waits for."""
    primary = make_server(dict(OPTIONS, **{"repl-diskless-sync": "yes" if way == "pipe" else "no"}))
    fill(primary, 1)
    alive = play(primary, ("listening-port", "2001"), MODERN)
    alive.full()
    for port in ("1002", "1003"):
        SILENT[port](play(primary, ("listening-port", port), MODERN))
    only = play(primary, ("listening-port", "1004"), ("rdb-only", "1"), MODERN)
    only.full()
    eventually(lambda: names(primary) >= {"2001", "1002", "1003"}, "they are there")
    fill(primary, 30)
    # The socket of one that is online is full now.
    with primary.connect() as c:
        c.ok("CONFIG", "SET", "repl-diskless-sync-delay", "30", "repl-diskless-sync-max-replicas", "2")
        hanging = play(primary, ("listening-port", "1001"), MODERN)
        hanging.c.send("PSYNC", "?", "-1")
        healthy = play(primary, ("listening-port", "2002"), MODERN)
        signs = Alive(alive)
        signs.start()
        # More than who lives may be kept from saying so on a busy machine.
        c.ok("CONFIG", "SET", "repl-timeout", "4")
        offset = healthy.full()[1]  # ends although the other one takes nothing
        eventually(lambda: (healthy.c.send("REPLCONF", "ACK", offset), alive.c.send_raw(b"\n"),
                            names(primary) == {"2001", "2002"})[2], "only who lives is left", 20)
    assert hanging.line().startswith(b"+FULLRESYNC")
    with pytest.raises((Closed, ConnectionResetError)):
        hanging.take(31 << 20)
    signs.stop.set()
    signs.join()


# ---- a primary, as its replica sees it

# After so many answers nothing more is said.
ANSWERS = [b"+PONG\r\n", b"+OK\r\n", b"+OK\r\n", b"+FULLRESYNC %s 1000\r\n" % HISTORY, b"$1000000\r\n", b"REDIS0011"]


class Mute:
    """Accepts, and answers `count` times."""

    def __init__(self, count):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.count, self.seen = self.listener.getsockname()[1], count, 0
        self.socks = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.seen += 1
            self.socks.append(sock)
            with contextlib.suppress(OSError):  # it may have given up meanwhile, and comes again
                for i in range(self.count):
                    if i < 4:
                        sock.recv(4096)
                    sock.sendall(ANSWERS[i])

    def close(self):
        self.listener.close()
        for sock in self.socks:
            sock.close()


def test_primaries(make_server):
    """A replica of each gives him up, and tries anew."""
    mutes = [Mute(count) for count in range(len(ANSWERS) + 1)]
    try:
        for mute in mutes:
            make_server({"save": "", "repl-timeout": "1", "replicaof": "127.0.0.1 %d" % mute.port})
        for mute in mutes:
            eventually(lambda m=mute: m.seen >= 2, "answered %d times, and given up" % mute.count, 20)
    finally:
        for mute in mutes:
            mute.close()
