"""Saving while something fails: errors of files, a full disk, no process, no descriptor, death at any
call. What is in memory stays, reads go on, writes obey stop-writes-on-bgsave-error, the file is the
old one or the new one, and service resumes when the fault is gone."""

import contextlib
import errno
import os
import signal
import subprocess
import tempfile

import pytest

from integration.test_rdb import until
from lib.faults import no_descriptors
from lib.resp import Closed, Error
from lib.server import Server

MISCONF = b"MISCONF Redis is configured to save RDB snapshots"


class Ends:
    """A server that is watched and removed; start() again after it died."""

    def __init__(self, threads, faults=None, **options):
        self.options = {"save": ["3600", "1000000"], **options}
        self.server = Server(threads=threads, options=self.options)
        self.server.expected_files |= {"dump.rdb"}
        if faults:
            self.server.environment = faults.environment()

    def __enter__(self):
        return self.server.start()

    def __exit__(self, kind, *_):
        self.server.stop()
        problems = self.server.problems()
        self.server.remove()
        assert kind or not problems, problems


def bgsave(server, c):
    """Starts one and waits for its end; what INFO says of it."""
    reply = c.call("BGSAVE")
    until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
    return reply, server.info("persistence")["rdb_last_bgsave_status"]


def temporary_files(server):
    return [n for n in os.listdir(server.file("")) if n.startswith("temp-")]


def check_refusal(server, c, cure):
    """Saving fails now; after cure() it does not."""
    assert bgsave(server, c)[1] == "err"
    assert c.call("GET", "k") == b"v"
    reply = c.call("SET", "x", "y")
    assert isinstance(reply, Error) and reply.startswith(MISCONF)
    for words in (["SET", "x", "y"], ["PING"]):
        c.ok("MULTI")
        assert c.call(*words).startswith(MISCONF)
        assert c.call("EXEC").startswith(b"EXECABORT")
    # Who asks how the server is hears it, as from Redis; a script and what was queued go on.
    assert c.error("PING").startswith(MISCONF)
    assert c.call("EVAL", "return redis.call('ping')", 0) == b"PONG"
    c.ok("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
    c.ok("SET", "x", "y")
    c.ok("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
    assert c.call("SET", "x", "z").startswith(MISCONF)
    assert temporary_files(server) == []
    cure()
    assert bgsave(server, c)[1] == "ok"
    c.ok("SET", "x", "z")
    assert c.call("PING") == b"PONG"
    assert temporary_files(server) == []


@pytest.mark.parametrize("switches", [
    {"write_error": errno.EIO}, {"write_error": errno.ENOSPC, "write_after": 1},
    {"fsync_error": errno.EIO}, {"rename_error": errno.EACCES}, {"open_error": errno.EROFS},
], ids=lambda s: "-".join(s))
def test_errors_of_files(threads, faults, switches):
    with Ends(threads, faults) as server, server.connect() as c:
        c.ok("SET", "k", "v")
        c.ok("SAVE")
        before = open(server.file("dump.rdb"), "rb").read()
        c.ok("SET", "large", "x" * 3000000)
        c.ok("CONFIG", "SET", "rdbcompression", "no")
        faults.set(**switches)
        assert isinstance(c.call("SAVE"), Error)
        assert open(server.file("dump.rdb"), "rb").read() == before
        check_refusal(server, c, faults.set)
        text = os.strerror(next(e for n, e in switches.items() if n.endswith("_error")))
        assert text in server.output()
        digest = c.call("DEBUG", "DIGEST")
        c.ok("DEBUG", "RELOAD")
        assert c.call("DEBUG", "DIGEST") == digest


def test_a_replica_may_come(threads, faults):
    """To a primary that cannot save, and says so to PING: the data are safest elsewhere."""
    with Ends(threads, faults) as server, server.connect() as c, \
            Ends(threads) as replica, replica.connect() as r:
        c.ok("SET", "k", "v")
        faults.set(rename_error=errno.EACCES)
        assert bgsave(server, c)[1] == "err"
        r.ok("REPLICAOF", "127.0.0.1", server.port)
        until(lambda: r.call("GET", "k") == b"v")
        faults.set()


def test_short_writes(threads, faults):
    """A write that takes half is no error: the rest follows."""
    with Ends(threads, faults) as server, server.connect() as c:
        c.ok("DEBUG", "POPULATE", 5000)
        c.ok("SET", "large", os.urandom(1000000))
        faults.set(short_writes=1)
        c.ok("SAVE")
        assert bgsave(server, c)[1] == "ok"
        digest = c.call("DEBUG", "DIGEST")
        c.ok("DEBUG", "RELOAD")
        assert c.call("DEBUG", "DIGEST") == digest


def test_no_process(threads, faults):
    with Ends(threads, faults) as server, server.connect() as c:
        c.ok("SET", "k", "v")
        faults.set(fork_error=errno.EAGAIN)
        assert isinstance(c.call("BGSAVE"), Error)
        assert server.info("persistence")["rdb_last_bgsave_status"] == "err"
        assert "fork: Resource temporarily unavailable" in server.output()
        assert c.call("SET", "x", "y").startswith(MISCONF)
        assert c.call("GET", "k") == b"v"
        faults.set()
        assert bgsave(server, c)[1] == "ok"
        c.ok("SET", "x", "y")


@pytest.fixture
def small_disk():
    """A file system of one megabyte."""
    path = tempfile.mkdtemp(prefix="kt-disk-")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", path],
                          capture_output=True, text=True)
    if done.returncode != 0:
        os.rmdir(path)
        pytest.skip("no tmpfs can be mounted here: %s" % done.stderr.strip())
    yield path
    subprocess.run(["umount", path], check=True)
    os.rmdir(path)


def test_full_disk(threads, small_disk):
    with Ends(threads, dir=small_disk) as server, server.connect() as c:
        c.ok("SET", "k", "v")
        c.ok("SAVE")
        before = open(os.path.join(small_disk, "dump.rdb"), "rb").read()
        c.ok("SET", "noise", os.urandom(400000))
        ballast = os.path.join(small_disk, "ballast")
        with open(ballast, "wb") as file:
            file.write(bytes(800000))
        assert isinstance(c.call("SAVE"), Error)
        assert open(os.path.join(small_disk, "dump.rdb"), "rb").read() == before
        assert sorted(os.listdir(small_disk)) == ["ballast", "dump.rdb"]
        c.ok("SET", "x", "y")
        check_refusal(server, c, lambda: os.unlink(ballast))
        # A SAVE that fails says nothing of the last BGSAVE, one that works does.
        with pytest.raises(OSError), open(ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        assert bgsave(server, c)[1] == "err" and isinstance(c.call("SAVE"), Error)
        assert c.call("SET", "x", "y").startswith(MISCONF)
        os.unlink(ballast)
        c.ok("SAVE")
        c.ok("SET", "x", "y")
        assert server.info("persistence")["rdb_last_bgsave_status"] == "ok"
        assert "No space left on device" in server.output()


def test_no_descriptors(threads):
    with Ends(threads) as server, server.connect() as c:
        c.ok("SET", "k", "v")
        with no_descriptors(server):
            assert isinstance(c.call("SAVE"), Error)
            assert "Too many open files" in server.output()
            assert c.call("GET", "k") == b"v"
            c.ok("SET", "x", "y")
            # The child has descriptors of its own to give.
            assert c.call("BGSAVE") == b"Background saving started"
        until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
        c.ok("SAVE")
        c.ok("SET", "x", "y")


@pytest.mark.parametrize("how", ["SAVE", "BGSAVE"])
def test_death_at_each_call(threads, faults, how):
    """The n-th call on files of a save is the process's last, for every n: the server starts by
    itself with the old content or the new, and no half file is taken for one."""
    number, results = 1, []
    while True:
        faults.set()
        server = Server(threads=threads, options={"save": ""})
        server.expected_files.add("dump.rdb")
        server.environment = faults.environment()
        try:
            server.start()
            with server.connect() as c:
                c.ok("SET", "k", "old")
                c.ok("SAVE")
                c.ok("SET", "k", "new")
                faults.set(kill_at=number)
                c.send(how)
                if how == "SAVE":
                    died = survives(c) is False
                else:
                    died = bgsave_survives(server, c) is False
            faults.set()
            server.kill()
            server.process = None
            server.start()
            with server.connect() as c:
                results.append(c.call("GET", "k"))
                assert c.call("DBSIZE") == 1
            # A process that died left its file, which the next save of that name replaces.
            server.expected_files |= set(temporary_files(server))
        finally:
            server.kill()
            server.remove()
        if not died:
            break
        number += 1
    assert number > 4 and results[0] == b"old" and results[-1] == b"new"
    assert results == sorted(results, reverse=True)  # old ... old new ... new


def bgsave_survives(server, c):
    """False when the child died, or the server itself did when it cleaned up behind it."""
    try:
        c.read()
        until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
        died = server.info("persistence")["rdb_last_bgsave_status"] == "err"
        assert c.call("GET", "k") == b"new"
    except (Closed, OSError):
        return False
    assert temporary_files(server) == []
    return not died


def survives(c):
    try:
        return c.read() == b"OK"
    except Exception:  # the connection ended with the server
        return False


def test_started_with_sigchld_ignored(threads):
    """As some init scripts do: the system would tell nobody how a child ended."""
    with contextlib.ExitStack() as stack:
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            server = stack.enter_context(Ends(threads))
        finally:
            signal.signal(signal.SIGCHLD, before)
        c = stack.enter_context(server.connect())
        c.ok("SET", "k", "v")
        assert bgsave(server, c) == (b"Background saving started", "ok")
