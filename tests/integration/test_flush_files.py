"""FLUSHALL and FLUSHDB and what is outside of memory: what was flushed does not come back by a file,
a child that still saves, a log or a replica."""

import os

import pytest

from lib.bounds import eventually
from lib.replication import check_equal, replication
from lib.resp import Error
from lib.server import is_redis, server_path

pytestmark = [
    pytest.mark.one_thread("who flushes is the thread that looks after children"),
    pytest.mark.skipif(is_redis(server_path()), reason="about our files"),
]

POINT = {"save": ["100000", "100000000"]}
NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "3600"}
LIBRARY = "#!lua name=lib\nredis.register_function('f', function() return redis.call('flushall') end)"
WAYS = {
    "FLUSHALL": [["FLUSHALL"]],
    "SYNC": [["FLUSHALL", "SYNC"]],
    "ASYNC": [["FLUSHALL", "ASYNC"]],
    "EXEC": [["MULTI"], ["SET", "before", "1"], ["FLUSHALL"], ["EXEC"]],
    "EXEC in the world": [["MULTI"], ["FLUSHALL"], ["CONFIG", "SET", "hz", "10"], ["EXEC"]],
    "EVAL": [["EVAL", "redis.call('set', 'before', 1) return redis.call('flushall')", "0"]],
    "EXEC of EVAL": [["MULTI"], ["EVAL", "return redis.call('flushall', 'async')", "0"], ["EXEC"]],
    "FCALL": [["FUNCTION", "LOAD", LIBRARY], ["FCALL", "f", "0"]],
    "pipeline": [["SET", "before", "1"], ["FLUSHALL"], ["FLUSHALL"], ["GET", "before"]],
}


def saves(server):
    """Changes to be saved, whether a child saves, how the last one went."""
    about = server.info("persistence")
    return tuple(about["rdb_" + name] for name in
                 ("changes_since_last_save", "bgsave_in_progress", "last_bgsave_status"))


def crash(server):
    server.kill_all()
    return server.start()


@pytest.mark.parametrize("way", WAYS)
def test_what_was_flushed_stays_so(make_server, way):
    server = make_server(POINT, files=["dump.rdb"])
    with server.connect() as c:
        c.call("SET", "old", "1")
        c.call("SELECT", "3")
        c.call("SET", "old", "1")
        c.ok("SAVE")
        c.call("SET", "older", "1")
        assert not [r for r in c.pipeline(WAYS[way]) if isinstance(r, Error)]
        assert saves(server) == ("0", "0", "ok")
    crash(server)
    with server.connect() as c:
        assert c.call("INFO", "keyspace") == b"# Keyspace\r\n"
        assert way != "FCALL" or c.call("FCALL", "f", "0") == b"OK"  # FLUSHALL leaves libraries


def test_a_unit_is_in_the_file_whole(make_server):
    """What stands behind FLUSHALL in its transaction or script is in the file as well: half of a
    unit is what nobody may see.  (Redis writes the file in the middle.)"""
    server = make_server(POINT, files=["dump.rdb"])
    for unit in ([["MULTI"], ["SET", "a", "1"], ["FLUSHALL"], ["SET", "b", "1"], ["EXEC"]],
                 [["EVAL", "redis.call('flushall') return redis.call('set', 'b', 1)", "0"]]):
        with server.connect() as c:
            c.pipeline(unit)
            assert saves(server) == ("0", "0", "ok")
        crash(server)
        with server.connect() as c:
            assert c.call("KEYS", "*") == [b"b"]


def test_without_save_points(make_server):
    """Nobody wants files: none is written, and the changes count on."""
    server = make_server(files=["dump.rdb"])
    with server.connect() as c:
        c.pipeline([["SET", "k%d" % n, "1"] for n in range(3)])
        c.ok("SAVE")
        c.ok("FLUSHDB")
        assert saves(server)[0] == "3"
        c.ok("FLUSHDB")
        c.ok("FLUSHALL")
        assert saves(server)[0] == "3"
        c.pipeline([["SET", "k", "1"], ["SELECT", "1"], ["SET", "k", "1"], ["SELECT", "0"]])
        c.ok("FLUSHALL", "ASYNC")
        assert saves(server)[0] == "7"
    crash(server)
    with server.connect() as c:
        assert c.call("DBSIZE") == 3


@pytest.mark.parametrize("options", [{}, POINT], ids=["without a point", "with a point"])
def test_a_child_ends(make_server, options):
    """Its file would bring back what was flushed; that it was ended is no failure."""
    server = make_server(dict(options, **{"rdb-key-save-delay": "1000000"}), files=["dump.rdb"])
    with server.connect() as c:
        c.call("DEBUG", "POPULATE", 1000)
        for flush in ([["FLUSHDB"]], [["FLUSHALL"]], [["MULTI"], ["SET", "a", "1"], ["FLUSHALL"], ["EXEC"]]):
            c.call("SET", "a", "1")
            c.call("BGSAVE")
            assert saves(server)[1:] == ("1", "ok")
            c.pipeline(flush)
            ended = flush != [["FLUSHDB"]]
            assert saves(server)[1:] == ("0" if ended else "1", "ok")
            if not ended:
                c.ok("FLUSHALL")
        names = [name for name in os.listdir(server.directory) if "rdb" in name]
        assert names == (["dump.rdb"] if options else [])
        c.ok("CONFIG", "SET", "rdb-key-save-delay", "0")
        c.call("SET", "a", "1")
        assert c.call("BGSAVE") == b"Background saving started"
        eventually(lambda: saves(server) == ("0", "0", "ok"), "a child saves again")


def test_a_replica_s_files(make_server):
    """FLUSHALL that comes by the stream empties the replica's file; a save of what a full transfer
    replaces ends."""
    primary = make_server(NOW)
    replica = make_server(dict(NOW, **POINT, **{"rdb-key-save-delay": "1000000"}), files=["dump.rdb"])
    with replica.connect() as r, primary.connect() as c:
        r.call("DEBUG", "POPULATE", 1000)
        r.call("BGSAVE")
        r.ok("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: replication(replica)["master_link_status"] == "up", "link", 20)
        assert saves(replica)[1] == "0"
        r.ok("CONFIG", "SET", "rdb-key-save-delay", "0")
        c.ok("SET", "a", "1")
        eventually(lambda: r.call("DBSIZE") == 1, "the write")
        r.ok("SAVE")
        c.ok("FLUSHALL")
        eventually(lambda: r.call("DBSIZE") == 0, "the flush")
        assert saves(replica)[0] == "0"
        r.ok("REPLICAOF", "NO", "ONE")
    crash(replica)
    with replica.connect() as r:
        assert r.call("DBSIZE") == 0


def test_while_a_full_transfer_is_under_way(make_server):
    """Its child goes on, with what was there; FLUSHALL follows behind it."""
    primary = make_server(dict(NOW, **POINT, **{"rdb-key-save-delay": "1000"}), files=["dump.rdb"])
    replica = make_server(NOW)
    with primary.connect() as c, replica.connect() as r:
        c.call("DEBUG", "POPULATE", 300)
        r.ok("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: "state=send_bulk" in replication(primary).get("slave0", ""), "a transfer")
        c.pipeline([["FLUSHALL"], ["SET", "new", "1"]])
        eventually(lambda: replication(replica)["master_link_status"] == "up", "link", 20)
        check_equal(primary, replica)
        assert r.call("KEYS", "*") == [b"new"]
        assert primary.info("stats")["sync_full"] == "1"


def test_the_file_s_place_in_the_stream(make_server):
    """A replica that has not heard of FLUSHALL when its primary dies does not keep its data: the
    empty file's place in the stream is behind FLUSHALL, not before it."""
    primary, replica = make_server(dict(NOW, **POINT), files=["dump.rdb"]), make_server(NOW)
    with primary.connect() as c:
        c.ok("SET", "a", "1")
        with replica.connect() as r:
            r.ok("REPLICAOF", "127.0.0.1", primary.port)
            eventually(lambda: r.call("GET", "a") == b"1", "the key", 20)
            eventually(lambda: replication(replica)["master_link_status"] == "up", "link", 20)
        with replica.standing_still():
            c.ok("FLUSHALL")
            crash(primary)
    with replica.connect() as r:
        r.ok("REPLICAOF", "127.0.0.1", primary.port)
    eventually(lambda: replication(replica)["master_link_status"] == "up", "link", 20)
    check_equal(primary, replica)
    with replica.connect() as r:
        assert r.call("DBSIZE") == 0


@pytest.mark.parametrize("flush", ["FLUSHDB", "FLUSHALL"])
def test_an_empty_database_is_flushed_elsewhere_too(make_server, flush):
    """A replica, or a log, may hold what is not here."""
    primary = make_server(dict(NOW, appendonly="yes"), files=["appendonlydir"])
    replica = make_server(dict(NOW, **{"replica-read-only": "no"}))
    with primary.connect() as c, replica.connect() as r:
        r.ok("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: replication(replica)["master_link_status"] == "up", "link", 20)
        r.ok("SET", "own", "1")
        for words in ([flush], [flush, "ASYNC"]):
            r.ok("SET", "own", "1")
            c.ok(*words)
            eventually(lambda: r.call("DBSIZE") == 0, "it is gone")
    primary.stop()
    folder = primary.file("appendonlydir")
    log = [name for name in os.listdir(folder) if name.endswith("incr.aof")]
    with open(os.path.join(folder, log[0]), "rb") as file:
        assert file.read().count(flush.encode()) == 2
    primary.start()
