"""The log while something fails: errors of files, short writes, a full disk, no process, no
descriptor. Writers are told, reads go on, nothing that was acknowledged is lost, and service resumes
when the fault is gone. After a sync that failed no later one is believed. (What each kind of client
sees meanwhile: test_aof_fault_clients.py.)"""

import errno
import os
import select
import time

import pytest

from integration.test_aof import AOF, FILES, small_disk  # noqa: F401 (a fixture)
from lib.bounds import eventually
from lib.faults import no_descriptors
from lib.resp import Error
from lib.server import is_redis, server_path

pytestmark = pytest.mark.skipif(is_redis(server_path()), reason="a promise of ours, not of Redis")

MISCONF = b"MISCONF Errors writing to the AOF file: "
DOOMED = MISCONF + b"%s. What was sent has been run, but it is not known to be on the disk"


@pytest.fixture
def make_faulty(make_server, faults):
    def make(options):
        server = make_server(options, files=FILES, start=False)
        server.environment = faults.environment()
        return server.start()

    return make


def status(server):
    return server.info("persistence")["aof_last_write_status"]


def wait_for(server, wanted):
    eventually(lambda: status(server) == wanted, "aof_last_write_status:" + wanted, 30)


def check_refusal(c, error):
    """Every kind of write is refused, with the reason; nothing of it happens; reads go on."""
    text = MISCONF + os.strerror(error).encode()
    assert c.error("SET", "refused", "1") == text
    assert c.error("RPUSH", "refused", "1") == text
    assert c.error("PING") == text
    c.ok("MULTI")
    assert c.error("SET", "refused", "1") == text
    assert c.call("EXEC").startswith(b"EXECABORT")
    assert b"MISCONF" in c.error("EVAL", "return redis.call('set', KEYS[1], '1')", 1, "refused")
    assert c.call("EVAL", "return redis.call('get', KEYS[1])", 1, "a") == b"1"
    assert c.call("EXISTS", "refused") == 0
    assert c.call("GET", "a") == b"1"


def check_doomed(c, error):
    """The write that it was at is not acknowledged: it hears why, and nothing after that."""
    reply = c.read()
    assert isinstance(reply, Error) and reply == DOOMED % os.strerror(error).encode(), reply
    assert c.is_closed()


def restarted(server):
    server.kill_all()
    server.start()
    return server.connect()


@pytest.mark.parametrize("policy, switches", [
    ("always", {"write_error": errno.EIO}), ("everysec", {"write_error": errno.EIO}),
    ("no", {"write_error": errno.EIO}),
    ("always", {"write_error": errno.ENOSPC, "write_after": 1, "short_writes": 1}),
    ("everysec", {"write_error": errno.ENOSPC, "write_after": 1, "short_writes": 1}),
    ("always", {"fsync_error": errno.EIO}), ("everysec", {"fsync_error": errno.EIO}),
], ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_errors(make_faulty, faults, policy, switches):
    server = make_faulty(dict(AOF, appendfsync=policy))
    error = switches.get("write_error") or switches["fsync_error"]
    with server.connect() as c, server.connect() as other:
        c.ok("SET", "a", "1")
        faults.set(**switches)
        c.send("SET", "b", "2" * 10000)
        wait_for(server, "err")
        check_refusal(other, error)
        assert other.call("STRLEN", "b") == 10000
        if policy == "always":
            check_doomed(c, error)
        else:
            assert c.read() == b"OK"
        faults.set()
        wait_for(server, "ok")
        other.ok("SET", "c", "3")
    with restarted(server) as c:
        assert c.call("GET", "a") == b"1" and c.call("STRLEN", "b") == 10000
        assert c.call("GET", "c") == b"3" and c.call("EXISTS", "refused") == 0
    assert os.strerror(error) in server.output()


@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_a_disk_that_hangs(make_faulty, faults, policy):
    """With everysec replies stop after two seconds, so that no more than that can be lost; with `no`
    nobody waits."""
    server = make_faulty(dict(AOF, appendfsync=policy))
    with server.connect() as c, server.connect() as other:
        c.ok("SET", "a", "1")
        faults.set(sync_hangs=1)
        begin = time.monotonic()
        stopped = False
        while not stopped and time.monotonic() < begin + (60 if policy == "everysec" else 4):
            c.send("SET", "b", "1")
            stopped = not select.select([c.sock], [], [], 5 if policy == "everysec" else 60)[0]
            if not stopped:
                assert c.read() == b"OK"
                time.sleep(0.01)
        assert stopped == (policy == "everysec")
        assert not stopped or server.info("persistence")["aof_pending_bio_fsync"] == "1"
        faults.set()
        if stopped:
            assert c.read() == b"OK"
            eventually(lambda: server.info("persistence")["aof_delayed_fsync"] != "0", "it is told")
        other.ok("SET", "c", "1")


@pytest.mark.parametrize("switches", [
    {"write_error": errno.ENOSPC, "write_after": 2, "short_writes": 1}, {"fsync_error": errno.EIO}],
    ids=lambda v: "-".join(v))
def test_a_kill_while_it_fails(make_faulty, faults, switches):
    """What the write that failed left in the file is not in the way."""
    server = make_faulty(AOF)
    with server.connect() as c:
        for n in range(20):
            c.ok("SET", "k%d" % n, "1")
        faults.set(**switches)
        c.send("SET", "large", "x" * 100000)
        wait_for(server, "err")
        server.kill_all()
    faults.set()
    for _ in range(2):
        server.start()
        with server.connect() as c:
            assert set(c.call("KEYS", "k*")) >= {b"k%d" % n for n in range(20)}
            assert c.call("STRLEN", "large") in (0, 100000)
            c.ok("SET", "kmore", "1")
        server.kill_all()
    server.start()


def test_no_retry_is_believed(make_faulty, faults):
    """A sync failed: the next ones that say they succeeded may have lost the same bytes. Nothing is
    acknowledged until the log was rewritten, and that fails as well for a while."""
    server = make_faulty(AOF)
    with server.connect() as c, server.connect() as other:
        c.ok("SET", "a", "1")
        faults.set(fsync_error=errno.EIO, fork_error=errno.EAGAIN)  # nor is there a child whose sync succeeds later
        c.send("SET", "b", "1")
        wait_for(server, "err")
        # Now syncs succeed again, but no rewrite can begin.
        faults.set(fork_error=errno.EAGAIN)

        def failures():
            return int(server.info("persistence")["aof_rewrites_consecutive_failures"])

        check_doomed(c, errno.EIO)
        before = failures()
        eventually(lambda: failures() > before + 1, "rewrites fail", 30)
        check_refusal(other, errno.EIO)
        before = failures()
        faults.set(rename_error=errno.EACCES)
        eventually(lambda: failures() > before, "the rewrite's end fails", 30)
        check_refusal(other, errno.EIO)
        faults.set()
        wait_for(server, "ok")
        assert int(server.info("persistence")["aof_rewrites"]) > 0
        other.ok("SET", "c", "1")
    with restarted(server) as c:
        assert sorted(c.call("KEYS", "*")) == [b"a", b"b", b"c"]


def test_short_writes(make_faulty, faults):
    server = make_faulty(AOF)
    faults.set(short_writes=1)
    with server.connect() as c:
        for n in range(50):
            c.ok("SET", "k%d" % n, "x" * (n * 100))
        assert status(server) == "ok"
        c.call("BGREWRITEAOF")
        rewritten(server, "ok")
        c.ok("SET", "after", "1")
    with restarted(server) as c:
        assert c.call("DBSIZE") == 51 and c.call("STRLEN", "k49") == 4900


def rewritten(server, wanted):
    def ended():
        info = server.info("persistence")
        return info["aof_rewrite_in_progress"] == "0" and info["aof_rewrite_scheduled"] == "0" \
            and info["aof_last_bgrewrite_status"] == wanted

    eventually(ended, "a rewrite ends: " + wanted, 30)


def leftovers(server):
    return [name for place in (server.directory, server.file("appendonlydir"))
            for name in os.listdir(place) if name.startswith("temp-")]


@pytest.mark.parametrize("switches", [
    {"fork_error": errno.EAGAIN}, {"rename_error": errno.EACCES}, {"open_error": errno.EROFS}],
    ids=lambda v: "-".join(v))
def test_a_rewrite_that_fails(make_faulty, faults, switches):
    """The log goes on in the files that are there."""
    server = make_faulty(AOF)
    with server.connect() as c:
        c.ok("SET", "a", "1")
        faults.set(**switches)
        reply = c.call("BGREWRITEAOF")
        assert isinstance(reply, Error) or reply.startswith(b"Background")
        rewritten(server, "err")
        c.ok("SET", "b", "1")
        assert leftovers(server) == []
        faults.set()
        assert c.call("BGREWRITEAOF").startswith(b"Background")
        rewritten(server, "ok")
        c.ok("SET", "c", "1")
        assert leftovers(server) == []
    with restarted(server) as c:
        assert sorted(c.call("KEYS", "*")) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("switches", [{"fork_error": errno.EAGAIN}, {"open_error": errno.EROFS}],
                         ids=lambda v: "-".join(v))
def test_switching_on_fails(make_faulty, faults, switches):
    server = make_faulty(dict(AOF, appendonly="no"))
    with server.connect() as c:
        c.ok("SET", "a", "1")
        faults.set(**switches)
        assert c.error("CONFIG", "SET", "appendonly", "yes").endswith(
            b"Unable to turn on AOF. Check server logs.")
        assert server.info("persistence")["aof_enabled"] == "0"
        assert c.call("CONFIG", "GET", "appendonly")[1] == b"no"
        c.ok("SET", "b", "1")
        faults.set()
        c.ok("CONFIG", "SET", "appendonly", "yes")
        rewritten(server, "ok")
        c.ok("SET", "c", "1")
    server.options["appendonly"] = "yes"
    with restarted(server) as c:
        assert sorted(c.call("KEYS", "*")) == [b"a", b"b", b"c"]


def test_end_without_a_base(make_faulty, faults):
    """The base that is missing cannot be written: the end is refused, unless it is forced."""
    server = make_faulty(dict(AOF, **{"appendonly": "no", "rdb-key-save-delay": "10000"}))
    with server.connect() as c:
        c.ok("DEBUG", "POPULATE", 5000)
        c.ok("CONFIG", "SET", "appendonly", "yes")
        faults.set(open_error=errno.ENOSPC)
        for words in (["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"]):
            assert c.error(*words) == b"ERR Errors trying to SHUTDOWN. Check logs."
        assert c.call("INCR", "n") == 1
        faults.set()
        c.ok("CONFIG", "SET", "rdb-key-save-delay", "0")
        rewritten(server, "ok")
        assert c.call("INCR", "n") == 2
    server.options.update({"appendonly": "yes", "rdb-key-save-delay": "0"})
    with restarted(server) as c:
        assert c.call("DBSIZE") == 5001 and c.call("INCR", "n") == 3


def test_no_descriptors(make_server):
    """The log's file stays open; a rewrite needs new ones."""
    server = make_server(AOF, files=FILES)
    with server.connect() as c:
        c.ok("SET", "a", "1")
        with no_descriptors(server):
            assert c.error("BGREWRITEAOF").startswith(b"ERR Can't execute an AOF background")
            c.ok("SET", "b", "1")
            assert b"aof_last_write_status:ok" in c.call("INFO", "persistence")
            assert "Too many open files" in server.output()
        assert c.call("BGREWRITEAOF").startswith(b"Background")
        rewritten(server, "ok")
        c.ok("SET", "c", "1")
    with restarted(server) as c:
        assert sorted(c.call("KEYS", "*")) == [b"a", b"b", b"c"]


def test_no_room_for_a_rewrite(make_server, small_disk):  # noqa: F811
    """A rewrite that finds the disk full takes nothing from the log."""
    server = make_server(dict(AOF, dir=small_disk), files=FILES)
    with server.connect() as c:
        c.ok("CONFIG", "SET", "rdbcompression", "no")
        c.ok("SET", "half", "x" * 600000)
        c.call("BGREWRITEAOF")
        rewritten(server, "err")
        c.ok("SET", "b", "1")
        assert [n for n in os.listdir(small_disk) if n.startswith("temp-")] == []
        c.call("DEL", "half")
        c.call("BGREWRITEAOF")
        rewritten(server, "ok")
        c.ok("SET", "c", "1")
    with restarted(server) as c:
        assert sorted(c.call("KEYS", "*")) == [b"b", b"c"]


def test_a_size_that_cannot_be_had_at_the_start(make_faulty, faults):
    """The start stops; were the size taken for nothing, the log would be cut to that."""
    server = make_faulty({"appendonly": "yes"})
    with server.connect() as c:
        for i in range(100):
            c.ok("SET", "k%d" % i, "v")
    server.kill_all()
    folder = server.file("appendonlydir")
    before = {name: os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)}
    assert sum(before.values()) > 2000
    faults.set(fstat_error=errno.EIO)
    assert "Cannot open the AOF: " + os.strerror(errno.EIO) in server.start_fails()
    assert before == {name: os.path.getsize(os.path.join(folder, name)) for name in before}
    faults.set()
    server.start()
    with server.connect() as c:
        assert c.call("DBSIZE") == 100
