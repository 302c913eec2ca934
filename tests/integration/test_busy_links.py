"""Connections that come and go while a script takes long, replicas among them; beside redis-server."""

import contextlib
import os

import pytest

from lib.bounds import eventually
from lib.replica import MODERN, Played
from lib.replication import replication
from lib.resp import Closed

pytestmark = pytest.mark.one_thread("that thread serves the others out of the script's hook")

OPTIONS = {"busy-reply-threshold": "10", "repl-diskless-sync-delay": "0",
           "repl-ping-replica-period": "1000"}
EACH = 8  # of a kind: each thread has some


@pytest.fixture(params=["ours", "redis"])
def server(request, make_server, make_oracle):
    return (make_server if request.param == "ours" else make_oracle)(
        dict(OPTIONS, **{"rdb-key-save-delay": "0"}))


@pytest.fixture
def stack():
    with contextlib.ExitStack() as opened:
        yield opened


def sockets(server):
    """How many the server has open."""
    folder = "/proc/%d/fd" % server.pid
    found = 0
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            found += os.readlink(os.path.join(folder, name)).startswith("socket:")
    return found


def online(server, stack, port):
    """A replica that has all there was."""
    p = stack.enter_context(contextlib.closing(Played(server, ("listening-port", port), MODERN)))
    p.go_online(server, port, p.full()[1])
    return p


def begin_script(server, stack):
    """The client whose script runs until it is killed."""
    c = stack.enter_context(server.connect())
    with server.connect() as other:
        c.send("EVAL", "while true do end", 0)
        eventually(lambda: other.call("PING").startswith(b"BUSY"), "busy")
    return c


def end_script(server):
    with server.connect() as c:
        c.ok("SCRIPT", "KILL")
        eventually(lambda: c.call("PING") == b"PONG", "over")


def subscribe(c):
    c.call("SUBSCRIBE", "channel")


def half(c):
    c.send_raw(b"*2\r\n$4\r\nECHO\r\n$10\r\nabc")


def quit_(c):
    c.ok("QUIT")
    with pytest.raises(Closed):
        c.read()


def refused(c):
    assert c.call("GET", "k").startswith(b"BUSY")


def test_who_leaves(server, stack):
    """Their ends are closed at once, of whatever kind they are."""
    stay = online(server, stack, 1000)
    go = [online(server, stack, 1001 + n) for n in range(EACH)]
    before = {kind: [server.connect() for _ in range(EACH)] for kind in (subscribe, half)}
    for kind, clients in before.items():
        for c in clients:
            kind(c)
    idle = [server.connect() for _ in range(EACH)]
    for c in idle:
        c.call("PING")
    eventually(lambda: replication(server)["connected_slaves"] == str(EACH + 1), "there")
    script = begin_script(server, stack)
    for kind in half, quit_, refused:  # and who comes meanwhile
        for _ in range(EACH):
            with server.connect() as c:
                kind(c)
    leaving = [p.c for p in go] + idle + [c for clients in before.values() for c in clients]
    there = sockets(server)
    for c in leaving:
        c.close()
    eventually(lambda: sockets(server) <= there - len(leaving), "closed")
    with server.connect() as c:
        c.ok("REPLCONF", "listening-port", "2000")
        assert c.call("PSYNC", "?", "-1").startswith(b"BUSY")
    end_script(server)
    assert script.read().startswith(b"ERR ")
    assert replication(server)["connected_slaves"] == "1"
    with server.connect() as c:
        assert [port for _, port, _ in c.call("ROLE")[2]] == [b"1000"]
        c.ok("SET", "k", "1")
    assert stay.command() == [b"SELECT", b"0"] and stay.command() == [b"SET", b"k", b"1"]


def test_whose_script_it_is_leaves(server, stack):
    """The script goes on until it is killed."""
    there = sockets(server)
    begin_script(server, stack).close()
    with server.connect() as c:
        assert c.call("GET", "k").startswith(b"BUSY")
    end_script(server)
    eventually(lambda: sockets(server) <= there, "closed")


def test_a_transfer_goes_on(server, stack):
    """One that began before the script, and ends before it does."""
    with server.connect() as c:
        for n in range(200):
            c.ok("SET", "key%d" % n, "v" * 1000)
        c.ok("CONFIG", "SET", "rdb-key-save-delay", "2000")
        replicas = [stack.enter_context(contextlib.closing(Played(server, ("listening-port", 1000 + n), MODERN)))
                    for n in range(4)]
        for p in replicas:
            p.c.send("PSYNC", "?", "-1")
        heads = [(p.line(), p.line()) for p in replicas]
        begin_script(server, stack)
        for p, (_, head) in zip(replicas, heads):
            assert b"key199" in p.bytes_all(head[5:])
        end_script(server)
        for n, p in enumerate(replicas):
            p.go_online(server, 1000 + n, int(heads[n][0].split()[2]))
        c.ok("SET", "after", "1")
        for p in replicas:
            assert p.command() == [b"SELECT", b"0"] and p.command() == [b"SET", b"after", b"1"]
