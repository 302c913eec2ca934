"""Options about what other servers and logs tell: propagation-error-behavior, aof-disable-auto-gc,
replica-ignore-maxmemory; loglevel nothing."""

import os
import signal

import pytest

from lib.bounds import eventually
from lib.resp import encode
from lib.server import Server

pytestmark = pytest.mark.usefixtures("ours_only")


@pytest.fixture
def doomed(threads):
    """make(options): a server that may die. Nobody asks afterwards how it behaved."""
    servers = []

    def make(options):
        servers.append(Server(threads=threads, options=options))
        return servers[-1]

    yield make
    for server in servers:
        server.kill()
        server.remove()


# -- propagation-error-behavior

def follows(primary, replica):
    with replica.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", str(primary.port))
        eventually(lambda: b"master_link_status:up" in c.call("INFO", "replication"), "it follows")


@pytest.mark.parametrize("behavior,writable,dies", [
    ("ignore", False, False), ("panic", False, True), ("panic-on-replicas", False, True), ("panic", True, False),
    ("panic-on-replicas", True, False)])
def test_an_error_in_the_primarys_stream(make_server, doomed, behavior, writable, dies):
    """Where clients may write to the replica, they may have made the difference."""
    primary = make_server({"repl-diskless-sync-delay": "0"})
    replica = doomed({"propagation-error-behavior": behavior, "replica-read-only": "no"}).start()
    follows(primary, replica)
    with primary.connect() as p, replica.connect() as r:
        r.ok("SET", "counter", "not a number")
        r.ok("CONFIG", "SET", "replica-read-only", "no" if writable else "yes")
        assert p.call("INCR", "counter") == 1
        p.ok("SET", "after", "1")
        if dies:
            assert replica.process.wait(60) != 0
            assert "propagation-error-behavior ends the server" in replica.output()
        else:
            eventually(lambda: r.call("GET", "after") == b"1", "the stream goes on")
            assert r.call("GET", "counter") == b"not a number"


def log_with_an_error(server):
    os.mkdir(server.file("appendonlydir"))
    with open(server.file("appendonlydir/appendonly.aof.manifest"), "wb") as file:
        file.write(b"file appendonly.aof.1.incr.aof seq 1 type i\n")
    with open(server.file("appendonlydir/appendonly.aof.1.incr.aof"), "wb") as file:
        file.write(encode("SELECT", "0") + encode("SET", "k", "x") + encode("INCR", "k") +
                   encode("SET", "after", "1"))


@pytest.mark.parametrize("behavior,dies", [("ignore", False), ("panic", True),
                                           ("panic-on-replicas", False)])
def test_an_error_in_the_log(doomed, behavior, dies):
    server = doomed({"propagation-error-behavior": behavior, "appendonly": "yes"})
    log_with_an_error(server)
    if dies:
        assert "told by the append-only file, failed here" in server.start_fails()
        return
    server.start()
    with server.connect() as c:
        assert c.call("MGET", "k", "after") == [b"x", b"1"]


# -- aof-disable-auto-gc

def rewrite(c):
    c.call("BGREWRITEAOF")
    eventually(lambda: b"aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0" in
               c.call("INFO", "persistence"), "the rewrite ends")


@pytest.mark.any_threads
def test_replaced_files_of_the_log_can_stay(make_server):
    server = make_server({"appendonly": "yes", "aof-disable-auto-gc": "yes"},
                         files=["appendonlydir"])

    def history():
        with open(server.file("appendonlydir/appendonly.aof.manifest"), encoding="utf-8") as file:
            return [line.split()[1] for line in file if line.rstrip().endswith("type h")]

    with server.connect() as c:
        c.ok("SET", "k", "1")
        rewrite(c)
        kept = eventually(history, "a history in the manifest")
        assert all(os.path.exists(server.file("appendonlydir/" + name)) for name in kept)
        c.ok("SET", "k", "2")
        rewrite(c)
        eventually(lambda: len(history()) > len(kept), "the history grows")
        c.ok("CONFIG", "SET", "aof-disable-auto-gc", "no")
        c.ok("SET", "k", "3")
        rewrite(c)
        eventually(lambda: not history(), "the history is forgotten")
        eventually(lambda: not any(os.path.exists(server.file("appendonlydir/" + name))
                                   for name in kept), "its files go")


# -- replica-ignore-maxmemory

@pytest.mark.parametrize("ignores", ["yes", "no"])
def test_whether_a_replica_evicts(make_server, ignores):
    primary = make_server({"repl-diskless-sync-delay": "0"})
    replica = make_server({"replica-ignore-maxmemory": ignores, "maxmemory-policy":
                           "allkeys-random"}, files=["dump.rdb"])
    follows(primary, replica)
    with primary.connect() as p, replica.connect() as r:
        used = int(replica.info("memory")["used_memory"])
        r.ok("CONFIG", "SET", "maxmemory", str(used + 4_000_000))
        for start in range(0, 20000, 1000):
            p.pipeline([("SET", "key:%d" % i, "v" * 1000) for i in range(start, start + 1000)])
        p.ok("SET", "last", "1")
        done = int(primary.info("replication")["master_repl_offset"])
        eventually(lambda: int(replica.info("replication")["slave_repl_offset"]) >= done, "everything has arrived")
        assert p.call("DBSIZE") == 20001
        if ignores == "yes":
            assert r.call("DBSIZE") == 20001
            assert replica.info("stats")["evicted_keys"] == "0"
        else:
            eventually(lambda: int(r.call("DBSIZE")) < 15000, "the replica has evicted")
            assert int(replica.info("stats")["evicted_keys"]) > 0
            # What it did is not told, and the link goes on.
            p.ok("SET", "more", "1")
            eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "up")
            assert primary.info("replication")["connected_slaves"] == "1"


# -- rdb-key-save-delay

@pytest.mark.any_threads
def test_a_child_that_takes_its_time(make_server):
    server = make_server(files=["dump.rdb"])
    with server.connect() as c:
        c.ok("MSET", "a", "1", "b", "2", "c", "3")
        c.ok("CONFIG", "SET", "rdb-key-save-delay", "600000000")
        c.ok("SAVE")  # no child
        assert c.call("BGSAVE") == b"Background saving started"
        assert b"rdb_bgsave_in_progress:1" in c.call("INFO", "persistence")
        assert c.call("BGSAVE").startswith(b"ERR Background save already in progress")
    server.stop()  # takes the child with it
    server = make_server({"rdb-key-save-delay": "-2"}, files=["dump.rdb"])
    with server.connect() as c:
        c.ok("DEBUG", "POPULATE", "1000")
        c.call("BGSAVE")
        eventually(lambda: b"rdb_bgsave_in_progress:0" in c.call("INFO", "persistence"), "saved")
        assert b"rdb_last_bgsave_status:ok" in c.call("INFO", "persistence")


# -- loglevel nothing

@pytest.mark.any_threads
def test_a_log_of_nothing(make_server):
    server = make_server({"loglevel": "nothing"})
    with server.connect() as c:
        c.ok("DEBUG", "LOG", "you do not see this")
        assert server.output() == ""
        c.ok("CONFIG", "SET", "loglevel", "warning")
        c.ok("DEBUG", "LOG", "but this")
        assert "but this" in server.output()
    os.kill(server.pid, signal.SIGTERM)
    assert server.wait_exit() == 0
