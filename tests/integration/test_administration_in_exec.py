"""What changes the logs or saves, within a transaction: Sentinel sends REPLICAOF so.  The part before
it is whole in the log that ends there, nothing of it is in a file by half, and the server lives."""

import pytest

from integration.test_rdb import make, until  # noqa: F401 (a fixture)
from lib.server import closed_port

AOF = {"appendonly": "yes", "appendfsync": "always"}


def run(c, *commands):
    c.ok("MULTI")
    for words in commands:
        assert c.call(*words) == b"QUEUED", words
    return c.call("EXEC")


def log_of(server):
    server.expected_files.add("appendonlydir")
    return server.read("appendonlydir/appendonly.aof.1.incr.aof")


def rewrites(server):
    """Begun, and still running."""
    info = server.info("persistence")
    return info["aof_rewrites"], info["aof_rewrite_in_progress"]


@pytest.mark.parametrize("before, words", [
    ([], []), ([["SET", "a", "1"]], ["SET"]),
    ([["SET", "a", "1"], ["INCR", "n"]], ["MULTI", "SET", "INCR", "EXEC"])],
    ids=["nothing before", "one before", "two before"])
def test_aof_off(make, before, words):
    server = make(options=AOF)
    with server.connect() as c:
        replies = run(c, *before, ["CONFIG", "SET", "appendonly", "no"], ["INCR", "n"], ["INCR", "n"])
        assert len(before) + 3 == len(replies) and replies[-1] == len(before[1:]) + 2
        assert c.call("CONFIG", "GET", "appendonly") == [b"appendonly", b"no"]
        text = log_of(server).split()
        assert [w for w in text if w in ("MULTI", "SET", "INCR", "EXEC")] == words
        # On again, with all that was done, in a transaction as well.
        run(c, ["INCR", "n"], ["CONFIG", "SET", "appendonly", "yes"], ["INCR", "n"])
        until(lambda: rewrites(server) == ("1", "0"))
        value = c.call("GET", "n")
        c.ok("DEBUG", "LOADAOF")
        assert c.call("GET", "n") == value


def test_aof_is_not_loaded_by_half(make):
    server = make(options=AOF)
    with server.connect() as c:
        replies = run(c, ["INCR", "n"], ["INCR", "n"], ["DEBUG", "LOADAOF"], ["INCR", "n"])
        assert replies[2].startswith(b"ERR the append-only file") and replies[3] == 3
        c.ok("DEBUG", "LOADAOF")
        assert c.call("GET", "n") == b"3"
        log_of(server)


@pytest.mark.parametrize("options", [{}, AOF], ids=["no log", "log"])
def test_replicaof(make, options):
    """As Sentinel does it."""
    server = make(options=options)
    with closed_port() as nobody, server.connect() as c, server.connect() as other:
        c.ok("SET", "k", "v")
        replies = run(c, ["SET", "a", "1"], ["INCR", "n"], ["REPLICAOF", "127.0.0.1", nobody],
                      ["CLIENT", "KILL", "TYPE", "pubsub"])
        assert replies == [b"OK", 1, b"OK", 0]
        assert server.info("replication")["role"] == "slave"
        assert other.error("SET", "k", "w").startswith(b"READONLY")
        assert run(c, ["REPLICAOF", "NO", "ONE"], ["PING"]) == [b"OK", b"PONG"]
        assert run(c, ["INCR", "n"], ["INCR", "n"]) == [2, 3]
        assert server.info("replication")["role"] == "master"
        if options:
            log_of(server)
            c.ok("DEBUG", "LOADAOF")
        assert other.call("MGET", "k", "a", "n") == [b"v", b"1", b"3"]


def test_replicas_get_whole_transactions(make):
    """Of a server that becomes a replica and a primary again, with replicas of its own."""
    server, replica = make(), make()
    with closed_port() as nobody, server.connect() as c, replica.connect() as behind:
        behind.ok("REPLICAOF", "127.0.0.1", server.port)
        until(lambda: replica.info("replication")["master_link_status"] == "up")
        run(c, ["INCR", "n"], ["INCR", "n"], ["REPLICAOF", "127.0.0.1", nobody],
            ["REPLICAOF", "NO", "ONE"], ["INCR", "n"], ["INCR", "n"])
        c.call("INCR", "n")
        until(lambda: replica.info("replication")["master_link_status"] == "up"
              and behind.call("GET", "n") == b"5")


@pytest.mark.parametrize("options", [{}, AOF], ids=["no log", "log"])
def test_a_save_waits_for_the_end(make, options):
    server = make(options=options)
    with server.connect() as c:
        for words in (["BGSAVE"], ["BGSAVE", "SCHEDULE"]):
            c.ok("SET", "n", "0")
            replies = run(c, ["INCR", "n"], words, ["INCR", "n"])
            assert replies == [1, b"Background saving scheduled", 2]
            until(lambda: server.info("persistence")["rdb_changes_since_last_save"] == "0")
            server.expected_files.add("dump.rdb")
            if not options:
                c.ok("DEBUG", "RELOAD", "NOSAVE")
                assert c.call("GET", "n") == b"2"
        if options:
            log_of(server)
