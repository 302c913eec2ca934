"""WAITAOF: what was written before is on the disk here, and at so many replicas."""

import errno
import re

import pytest

from integration.test_replication_primary import NOW
from lib.bounds import eventually
from lib.faults import Faults
from lib.replica import MODERN
from lib.replication import in_step, replication
from lib.resp import Error
from lib.server import is_redis, server_path

pytestmark = [
    pytest.mark.skipif(is_redis(server_path()), reason="Redis 7.0 has no WAITAOF"),
    pytest.mark.one_thread("who waits for the log is on the thread that writes"),
]

FILES = ("appendonlydir", "dump.rdb")
# Long enough for whatever is to come; the tests wait for no time-out of this length.
LONG_MS = 60000


def aof(policy, **more):
    return dict({"appendonly": "yes", "appendfsync": policy}, **NOW, **more)


def test_errors(make_server):
    server = make_server(files=FILES)
    with server.connect() as c:
        for words, text in (
                (("1", "0", "0"), b"ERR WAITAOF cannot be used when numlocal is set but appendonly is "
                                  b"disabled."),
                (("2", "0", "0"), b"ERR value is out of range, value must between 0 and 1"),
                (("-1", "0", "0"), b"ERR value is out of range, value must between 0 and 1"),
                (("x", "0", "0"), b"ERR value is not an integer or out of range"),
                (("0", "-1", "0"), b"ERR value is out of range, must be positive"),
                (("0", "0", "-1"), b"ERR timeout is negative"),
                (("0", "0", "x"), b"ERR timeout is not an integer or out of range")):
            assert c.call("WAITAOF", *words) == Error(text), words
        assert isinstance(c.call("WAITAOF", "1", "0"), Error)
        assert c.call("WAITAOF", "0", "0", "0") == [0, 0]
        assert c.call("WAITAOF", "0", "1", "10") == [0, 0]
        c.ok("REPLICAOF", "127.0.0.1", "1")
        assert c.call("WAITAOF", "0", "0", "0") == Error(
            b"ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
            b"replicas are just local and are not propagated.")


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_local(make_server, policy):
    server = make_server(aof(policy), files=FILES)
    with server.connect() as c, server.connect() as d:
        assert c.call("WAITAOF", "1", "0", LONG_MS) == [1, 0]
        for n in range(3):
            c.ok("SET", "k", n)
            d.call("INCR", "other")
            assert d.call("WAITAOF", "1", "0", LONG_MS) == [1, 0]
            assert c.call("WAITAOF", "1", "0", "0") == [1, 0]
        # In one pipeline: the write's reply, then the wait's, then what is behind it.
        assert c.pipeline([["INCR", "n"], ["WAITAOF", "1", "0", LONG_MS], ["INCR", "n"]]) == [1, [1, 0], 2]


def test_local_without_syncs(make_server):
    """With appendfsync no nothing is promised; the policy can be changed under the waiter."""
    server = make_server(aof("no"), files=FILES)
    with server.connect() as c, server.connect() as d:
        c.ok("SET", "k", "v")
        assert c.call("WAITAOF", "1", "0", "50") == [0, 0]
        c.send("WAITAOF", "1", "0", "0")
        eventually(lambda: re.search(rb"flags=b[^\n]*cmd=waitaof", d.call("CLIENT", "LIST")), "blocked")
        d.ok("CONFIG", "SET", "appendfsync", "everysec")
        assert c.read() == [1, 0]


def test_where_nobody_waits(make_server):
    server = make_server(aof("no"), files=FILES)
    with server.connect() as c:
        c.ok("SET", "k", "v")
        replies = c.pipeline([["MULTI"], ["SET", "k", "w"], ["WAITAOF", "1", "1", "0"], ["EXEC"]])
        assert replies[-1] == [b"OK", [0, 0]]
        assert c.call("EVAL", "return redis.call('WAITAOF', 1, 1, 0)", "0") == [0, 0]


def test_unblock_and_off(make_server):
    server = make_server(aof("no"), files=FILES)
    with server.connect() as c, server.connect() as d:
        def waits():
            c.send("WAITAOF", "1", "0", "0")
            return int(eventually(lambda: re.search(rb"id=(\d+)[^\n]*flags=b[^\n]*cmd=waitaof",
                                                    d.call("CLIENT", "LIST")), "blocked").group(1))
        c.ok("SET", "k", "v")
        name = waits()
        assert d.call("CLIENT", "UNBLOCK", name) == 1
        assert c.read() == [0, 0]
        name = waits()
        assert d.call("CLIENT", "UNBLOCK", name, "ERROR") == 1
        assert c.read().startswith(b"UNBLOCKED")
        waits()
        d.ok("CONFIG", "SET", "appendonly", "no")
        assert c.read() == Error(b"ERR WAITAOF cannot be used when numlocal is set but appendonly is "
                                 b"disabled.")
        waits_for_none = c.call("WAITAOF", "0", "0", "0")
        assert waits_for_none == [0, 0]


def test_turned_on_while_it_runs(make_server):
    """What was written before the log was there is on the disk when its base is."""
    server = make_server(files=FILES)
    with server.connect() as c:
        for n in range(50):
            c.ok("SET", "k%d" % n, "v" * 1000)
        c.ok("CONFIG", "SET", "appendonly", "yes")
        assert c.call("WAITAOF", "1", "0", LONG_MS) == [1, 0]
        assert server.info("persistence")["aof_rewrite_in_progress"] == "0"
        c.ok("SET", "last", "v")
        c.call("BGREWRITEAOF")
        assert c.call("WAITAOF", "1", "0", LONG_MS) == [1, 0]
        # Killed before, it would leave the child's file.
        eventually(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0", "rewritten")
    server.kill()
    server.options["appendonly"] = "yes"
    server.start()
    with server.connect() as c:
        assert c.call("DBSIZE") == 51


def test_many_waiters(make_server):
    """On all threads, each for its own write."""
    server = make_server(aof("everysec"), files=FILES)
    clients = [server.connect() for _ in range(20)]
    for _ in range(2):
        for n, c in enumerate(clients):
            c.send("SET", "k%d" % n, "v")
            c.send("WAITAOF", "1", "0", "0")
        for c in clients:
            assert c.read() == b"OK"
            assert c.read() == [1, 0]
    for c in clients:
        c.close()


def test_failed_syncs(make_server):
    """What could not be synced is not promised, until a rewrite has made it safe."""
    faults = Faults()
    try:
        server = make_server(aof("everysec"), files=FILES, start=False)
        server.environment = faults.environment()
        server.start()
        with server.connect() as c:
            c.ok("SET", "k", "v")
            assert c.call("WAITAOF", "1", "0", LONG_MS) == [1, 0]
            faults.set(fsync_error=errno.EIO)
            c.ok("SET", "k", "w")
            eventually(lambda: server.info("persistence")["aof_last_write_status"] == "err", "fault")
            assert c.call("WAITAOF", "1", "0", "50") == [0, 0]
            c.send("WAITAOF", "1", "0", "0")
            faults.set()
            assert c.read() == [1, 0]
            assert server.info("persistence")["aof_last_write_status"] == "ok"
        server.stop()
    finally:
        faults.end()


# ---- replicas

def test_a_replica_that_is_played(make_server, play):  # noqa: F811
    primary = make_server(NOW, files=FILES)
    p = play(primary, MODERN)
    with primary.connect() as c:
        _, offset, _ = p.full()
        p.c.send("REPLCONF", "ACK", offset)
        assert c.call("WAITAOF", "0", "1", "20") == [0, 0]
        c.ok("SET", "a", "1")
        c.send("WAITAOF", "0", "1", "0")
        while p.command() != [b"SET", b"a", b"1"]:
            pass
        assert p.command() == [b"REPLCONF", b"GETACK", b"*"]
        now = int(replication(primary)["master_repl_offset"])
        p.c.send("REPLCONF", "ACK", now)
        p.c.send("REPLCONF", "ACK", now, "FACK", "x")
        p.c.send("REPLCONF", "ACK", now, "FACK", offset)
        p.c.send("REPLCONF", "ACK", now, "FACK", now)
        assert c.read() == [0, 1]
        assert c.call("WAITAOF", "0", "0", "0") == [0, 1]
        assert c.call("WAIT", "1", "0") == 1
        c.ok("SET", "a", "2")
        assert c.call("WAITAOF", "0", "1", "20") == [0, 0]


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_our_replica(make_server, policy):
    primary = make_server(aof("everysec"), files=FILES)
    with primary.connect() as c:
        for n in range(100):
            c.ok("SET", "k%d" % n, "v")
        replica = make_server(aof(policy, replicaof=["127.0.0.1", str(primary.port)]), files=FILES)
        eventually(lambda: in_step(primary, replica), "link")
        assert c.call("WAITAOF", "1", "1", LONG_MS) == [1, 1]
        c.ok("SET", "last", "v")
        assert c.call("WAITAOF", "1", "1", LONG_MS) == [1, 1]
        replica.kill()
        # The kernel has what was written: this shows that the base is the primary's data set.
        replica.options.pop("replicaof")
        replica.start()
        with replica.connect() as r:
            assert r.call("DBSIZE") == 101
    replica.stop()


def test_replica_without_log(make_server):
    primary = make_server(aof("always"), files=FILES)
    replica = make_server(dict(NOW, replicaof=["127.0.0.1", str(primary.port)]), files=FILES)
    with primary.connect() as c, replica.connect() as r:
        eventually(lambda: in_step(primary, replica), "link")
        c.ok("SET", "k", "v")
        assert c.call("WAIT", "1", "0") == 1
        assert c.call("WAITAOF", "1", "1", "50") == [1, 0]
        r.ok("CONFIG", "SET", "appendonly", "yes")
        assert c.call("WAITAOF", "1", "1", LONG_MS) == [1, 1]
