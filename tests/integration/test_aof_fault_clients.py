"""What clients see of a log that fails (a full disk, a sync that failed) with appendfsync always, and
of the switches that they turn meanwhile. Who is at a write hears in a bounded time that it is not
safe, and its connection ends; it is never acknowledged. Who writes later is refused; everybody else
goes on. When the disk works again so does the server: what was acknowledged is in the log, whole."""

import errno
import os
import re
import subprocess
import threading

import pytest

from integration.test_aof import AOF
from integration.test_aof_faults import (MISCONF, check_doomed, check_refusal, make_faulty,  # noqa: F401
                                         restarted, rewritten, status, wait_for)
from lib.bounds import eventually
from lib.resp import Error, encode
from lib.server import is_redis, server_path

pytestmark = pytest.mark.skipif(is_redis(server_path()), reason="a promise of ours, not of Redis")

CHECK_AOF = os.path.join(os.path.dirname(server_path()), "keydb-check-aof")
FULL = {"write_error": errno.ENOSPC}
# How the log may fail: at once, in the middle of a record, at the sync.
WAYS = [FULL, {"write_error": errno.ENOSPC, "write_after": 1, "short_writes": 1}, {"fsync_error": errno.EIO}]


def error_of(switches):
    return switches.get("write_error") or switches["fsync_error"]


def break_log(server, faults, switches=None):  # noqa: F811
    """Has the log fail, at a write of somebody who is told."""
    switches = switches or FULL
    with server.connect() as c:
        faults.set(**switches)
        c.send("SET", "unsafe", "1" * 100)
        check_doomed(c, error_of(switches))
    assert status(server) == "err"


def check_log(server):
    """The log of a server that has ended is whole."""
    folder = server.file("appendonlydir")
    manifest = [name for name in os.listdir(folder) if name.endswith(".manifest")]
    result = subprocess.run([CHECK_AOF, os.path.join(folder, manifest[0])], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("switches", WAYS, ids=lambda v: "-".join(v))
def test_every_kind_of_writer_is_told(make_faulty, faults, switches):  # noqa: F811
    """Requests whose writes the failing log has: all that was to be replied to them is replaced by the
    reason, with both protocols, and the connection ends."""
    server = make_faulty(AOF)
    requests = [
        [["SET", "a", "1"]],
        [["GET", "k"], ["SET", "b", "1"], ["GET", "k"]],
        [["MULTI"], ["INCR", "c"], ["GET", "k"], ["EXEC"]],
        [["EVAL", "return redis.call('set', KEYS[1], '1')", "1", "d"]],
        [["LPUSH", "served", "x", "y"]],
        [["SET", "e", "1"], ["SUBSCRIBE", "channel"]],
        [["SET", "f", "1"], ["QUIT"]],
    ]
    with server.connect() as c:
        c.ok("SET", "k", "v")
        waiting = server.connect()
        waiting.send("BLPOP", "served", "0")
        eventually(lambda: server.info("clients")["blocked_clients"] == "1", "a wait")
        clients = [server.connect(proto=2 + i % 2) for i in range(len(requests))]
        first = server.connect()
        # All are in the log's hands before it has failed once: behind a sync that hangs.
        faults.set(sync_hangs=1)
        first.send("SET", "first", "1")
        eventually(lambda: c.call("EXISTS", "first"), "it has run")
        eventually(lambda: server.info("persistence")["aof_pending_bio_fsync"] == "1", "the sync hangs")
        for client, commands in zip(clients, requests):
            client.send_raw(b"".join(encode(*command) for command in commands))
        eventually(lambda: c.call("EXISTS", "a", "b", "c", "d", "e", "f") == 6, "they have run")
        eventually(lambda: c.call("LLEN", "served") == 1, "and the one that waited")
        faults.set(**switches)
        assert first.read() == b"OK"  # its sync comes back
        for client in clients + [waiting]:
            check_doomed(client, error_of(switches))
        assert c.error("SET", "refused", "1").startswith(MISCONF)
        faults.set()
        wait_for(server, "ok")
        c.ok("SET", "after", "1")
    with restarted(server) as c:
        assert c.call("EXISTS", "a", "b", "c", "d", "e", "f", "after", "k") == 8
        assert c.call("LRANGE", "served", "0", "-1") == [b"x"]
    server.stop()
    check_log(server)


@pytest.mark.parametrize("switches", [FULL, {"fsync_error": errno.EIO}], ids=lambda v: "-".join(v))
def test_everybody_else_goes_on(make_faulty, faults, switches):  # noqa: F811
    """Whatever writes nothing is answered as ever, and no connection ends, whatever else happens to be
    logged meanwhile: keys expire, also where a reader finds them."""
    server = make_faulty(AOF)
    with server.connect() as c, server.connect() as popping, server.connect() as reading, \
            server.connect() as listening, server.connect(proto=3) as tracking:
        c.pipeline([["SET", "k", "v"], ["DEBUG", "SET-ACTIVE-EXPIRE", "0"], ["RPUSH", "l", "x"]]
                   + [["SET", "gone%d" % i, "1", "PX", "1"] for i in range(8)])
        popping.send("BLPOP", "none", "0.3")
        reading.send("XREAD", "BLOCK", "300", "STREAMS", "none", "$")
        listening.call("SUBSCRIBE", "channel")
        tracking.ok("CLIENT", "TRACKING", "ON", "BCAST")
        c.call("GET", "k")
        break_log(server, faults, switches)
        for command in [["GET", "k"], ["LRANGE", "l", "0", "-1"], ["SCAN", "0"], ["INFO"],
                        ["CONFIG", "GET", "append*"], ["CLIENT", "LIST"], ["GET", "gone0"], ["TTL", "gone1"],
                        ["CONFIG", "SET", "maxmemory-samples", "6"], ["OBJECT", "FREQ", "none"],
                        ["LATENCY", "RESET"], ["SORT_RO", "l", "ALPHA"], ["RANDOMKEY"], ["DUMP", "gone2"],
                        ["EVAL_RO", "return redis.call('get', KEYS[1])", "1", "gone3"],
                        ["SCRIPT", "LOAD", "return 1"], ["PFCOUNT", "gone4"], ["DBSIZE"],
                        ["WAIT", "0", "10"], ["WAITAOF", "0", "0", "10"]]:
            reply = c.call(*command)
            assert not isinstance(reply, Error), (command, reply)
        began = c.call("BGREWRITEAOF")  # it needs a manifest, which it may not get
        assert began.startswith((b"Background", b"ERR Can't execute an AOF background")), began
        assert c.call("WAITAOF", "1", "0", "10") == [0, 0]
        assert c.call("EVAL", "return redis.call('get', KEYS[1])", "1", "gone5") is None
        c.ok("MULTI")
        assert c.pipeline([["GET", "k"], ["GET", "gone6"], ["EXEC"]])[-1] == [b"v", None]
        assert c.call("PUBLISH", "channel", "m") == 1 and listening.read() == [b"message", b"channel", b"m"]
        assert c.error("GETDEL", "gone7").startswith(MISCONF)
        assert c.error("BLPOP", "l", "0").startswith(MISCONF)
        assert popping.read() is None and reading.read() is None
        for client in [popping, reading, tracking]:
            assert client.call("GET", "k") == b"v"
        faults.set()
        wait_for(server, "ok")
        for client in [c, popping, reading]:
            client.ok("SET", "k", "w")
    with restarted(server) as c:
        assert c.call("GET", "k") == b"w" and c.call("LLEN", "l") == 1


def test_what_was_replied_before_comes_whole(make_faulty, faults):  # noqa: F811
    """Replies that wait for a full socket, not for the disk, come before the reason."""
    server = make_faulty(AOF)
    with server.connect() as c, server.connect() as other:
        c.ok("SET", "large", "x" * 20_000_000)
        c.send("GET", "large")
        eventually(lambda: re.search(rb" omem=[1-9]\d* .* cmd=get ", other.call("CLIENT", "LIST")),
                   "the socket is full")
        faults.set(**FULL)
        c.send("SET", "unsafe", "1")
        wait_for(server, "err")
        assert c.read() == b"x" * 20_000_000
        check_doomed(c, errno.ENOSPC)
        faults.set()
        wait_for(server, "ok")


@pytest.mark.parametrize("policy, switches", [
    ("always", WAYS[0]), ("everysec", WAYS[0]), ("no", WAYS[0]), ("always", WAYS[1]), ("no", WAYS[1]),
    ("always", WAYS[2]), ("everysec", WAYS[2])], ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_appendonly_no_is_a_way_out(make_faulty, faults, policy, switches):  # noqa: F811
    """Without a log there is nothing that could fail; and with a new one nothing that has failed."""
    server = make_faulty(dict(AOF, appendfsync=policy))
    with server.connect() as c, server.connect() as writer:
        c.ok("SET", "a", "1")
        faults.set(**switches)
        writer.send("SET", "b", "1")
        wait_for(server, "err")
        c.ok("CONFIG", "SET", "appendonly", "no")
        c.ok("SET", "c", "1")
        assert status(server) == "ok"
        c.ok("SET", "d", "1")
        assert server.info("persistence")["aof_rewrite_in_progress"] == "0"
        faults.set()
        c.ok("CONFIG", "SET", "appendonly", "yes")
        rewritten(server, "ok")
        c.ok("SET", "e", "1")
        assert status(server) == "ok"
    with restarted(server) as c:
        assert sorted(c.call("KEYS", "*")) == [b"a", b"b", b"c", b"d", b"e"]
    server.stop()
    check_log(server)


def test_other_policies_while_it_is_full(make_faulty, faults):  # noqa: F811
    """Writes are refused with each, whichever it was when it began."""
    server = make_faulty(AOF)
    with server.connect() as c:
        c.ok("SET", "a", "1")
        break_log(server, faults)
        for policy in ["everysec", "no", "always", "everysec"]:
            c.ok("CONFIG", "SET", "appendfsync", policy)
            check_refusal(c, errno.ENOSPC)
        faults.set()
        wait_for(server, "ok")
        # And what is acknowledged without a sync is not taken back by the switch.
        with server.connect() as writer:
            faults.set(**FULL)
            writer.ok("SET", "b", "1")
            wait_for(server, "err")
            c.ok("CONFIG", "SET", "appendfsync", "always")
            assert writer.error("SET", "refused", "1").startswith(MISCONF)
            faults.set()
            wait_for(server, "ok")
            writer.ok("SET", "c", "1")
    with restarted(server) as c:
        assert sorted(c.call("KEYS", "*")) == [b"a", b"b", b"c", b"unsafe"]


def test_shutdown_while_it_is_full(make_faulty, faults):  # noqa: F811
    server = make_faulty(AOF)
    with server.connect() as c:
        c.ok("SET", "a", "1")
        break_log(server, faults)
        for words in (["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["SHUTDOWN", "NOW"]):
            assert c.error(*words) == b"ERR Errors trying to SHUTDOWN. Check logs."
        check_refusal(c, errno.ENOSPC)
        c.send("SHUTDOWN", "FORCE")
        assert c.is_closed()
    assert server.wait_exit() == 0
    check_log(server)
    faults.set()
    server.start()
    with server.connect() as c:
        assert c.call("GET", "a") == b"1" and c.call("EXISTS", "refused") == 0
        c.ok("SET", "b", "1")


@pytest.mark.parametrize("switches", [FULL, {"fsync_error": errno.EIO}], ids=lambda v: "-".join(v))
def test_a_replica_whose_disk_is_full_follows_its_primary(make_server, make_faulty, faults,  # noqa: F811
                                                          switches):
    """Its own clients cannot write anyway; its readers who wait for the primary's writes get them."""
    primary = make_server({"repl-diskless-sync-delay": "0"})
    replica = make_faulty(dict(AOF, replicaof="127.0.0.1 %d" % primary.port))
    with primary.connect() as c, replica.connect() as there, replica.connect() as reading:
        eventually(lambda: replica.info("replication")["master_link_status"] == "up", "the link")
        rewritten(replica, "ok")
        reading.send("XREAD", "BLOCK", "0", "STREAMS", "s", "$")
        eventually(lambda: replica.info("clients")["blocked_clients"] == "1", "a wait")
        faults.set(**switches)
        c.ok("SET", "a", "1")
        wait_for(replica, "err")
        c.call("XADD", "s", "1-1", "f", "v")
        assert reading.read() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
        assert reading.call("GET", "a") == b"1"
        assert c.call("WAIT", "1", "0") == 1
        faults.set()
        wait_for(replica, "ok")
        c.ok("SET", "b", "1")
        assert c.call("WAITAOF", "0", "1", "0") == [0, 1]
        assert there.call("GET", "b") == b"1"


def test_no_acknowledged_write_is_lost_by_a_disk_that_is_full_at_times(make_faulty, faults):  # noqa: F811
    """Clients that count in parallel while the log fails in turn in each way: what was acknowledged,
    and what was not refused, is there after a kill."""
    server = make_faulty(dict(AOF, **{"auto-aof-rewrite-percentage": "0"}))
    stop, told = threading.Event(), {}

    def count(name):
        least = most = 0  # acknowledged; and with those that have run, as the client is told
        client = server.connect()
        while not stop.is_set():
            most += 1
            reply = client.call("INCR", name)
            if not isinstance(reply, Error):
                assert reply == most
                least = reply
            elif reply.startswith(MISCONF) and b"has been run" in reply:
                assert client.is_closed()
                client = server.connect()
            else:
                assert reply.startswith(MISCONF), reply
                most -= 1
        client.close()
        told[name] = (least, most)

    threads = [threading.Thread(target=count, args=("n%d" % i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    with server.connect() as c:
        for switches in WAYS:
            sum_before = sum_of(c)
            eventually(lambda: sum_of(c) > sum_before + 50, "they count", 30)
            faults.set(**switches)
            wait_for(server, "err")
            faults.set()
            wait_for(server, "ok")
        faults.set(**FULL)
        wait_for(server, "err")
    stop.set()
    for thread in threads:
        thread.join()
    assert len(told) == len(threads)
    server.kill_all()
    faults.set()
    server.start()
    with server.connect() as c:
        for name, (least, most) in told.items():
            assert least <= int(c.call("GET", name)) <= most, (name, least, most)
    server.stop()
    check_log(server)


def sum_of(c):
    return sum(int(n or 0) for n in c.call("MGET", *["n%d" % i for i in range(6)]))
