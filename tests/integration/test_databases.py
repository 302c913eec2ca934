"""SELECT, MOVE, COPY between databases, SWAPDB, FLUSHDB, FLUSHALL."""

import pytest

from lib.bounds import eventually
from lib.server import parse_info


def put(client, db, **pairs):
    client.ok("SELECT", db)
    for key, value in pairs.items():
        client.ok("SET", key, value)


def look(client, db, key):
    client.ok("SELECT", db)
    return client.call("GET", key)


def test_databases_are_apart(client):
    for db in range(16):
        put(client, db, k="db%d" % db)
    for db in range(16):
        assert look(client, db, "k") == b"db%d" % db
        assert client.call("DBSIZE") == 1


def test_select_belongs_to_the_connection(connect):
    a, b = connect(), connect()
    put(a, 5, k="five")
    assert b.call("GET", "k") is None
    assert a.call("GET", "k") == b"five"
    a.send("RESET")
    assert a.read() == b"RESET"
    assert a.call("GET", "k") is None


def test_flushdb_empties_one_and_flushall_all(client):
    for words in (["FLUSHDB"], ["FLUSHDB", "ASYNC"], ["FLUSHDB", "SYNC"]):
        put(client, 2, a="1")
        put(client, 1, a="1")
        client.ok(*words)
        assert client.call("DBSIZE") == 0
        assert look(client, 2, "a") == b"1"
    for words in (["FLUSHALL"], ["FLUSHALL", "ASYNC"], ["FLUSHALL", "SYNC"]):
        put(client, 2, a="1")
        put(client, 1, a="1")
        client.ok(*words)
        assert look(client, 1, "a") is None and look(client, 2, "a") is None


def test_swapdb(client):
    put(client, 0, k="zero", only0="x")
    put(client, 9, k="nine")
    client.call("EXPIRE", "k", "1000")
    client.ok("SWAPDB", "0", "9")
    assert look(client, 0, "k") == b"nine"
    assert 0 < client.call("TTL", "k") <= 1000
    assert look(client, 9, "k") == b"zero"
    assert client.call("DBSIZE") == 2
    client.ok("SWAPDB", "9", "9")
    assert client.call("DBSIZE") == 2


def test_move_refuses_to_overwrite(client):
    put(client, 1, k="there")
    put(client, 0, k="here")
    assert client.call("MOVE", "k", "1") == 0
    assert look(client, 0, "k") == b"here"
    assert client.call("MOVE", "missing", "1") == 0
    assert client.error("MOVE", "k", "0") == b"ERR source and destination objects are the same"
    assert client.call("MOVE", "k", "2") == 1
    assert look(client, 0, "k") is None and look(client, 2, "k") == b"here"


def test_copy(client):
    put(client, 3, k="old")
    put(client, 0, k="new")
    assert client.call("COPY", "k", "k", "DB", "3") == 0
    assert client.call("COPY", "k", "k", "DB", "3", "REPLACE") == 1
    assert look(client, 3, "k") == b"new"
    assert client.call("COPY", "k", "k2") == 1
    client.call("APPEND", "k2", "er")
    assert client.call("GET", "k") == b"new"


@pytest.mark.parametrize("mode", ["ASYNC", "SYNC"])
def test_flushing_much_gives_the_memory_back(client, mode):
    used = lambda: int(parse_info(client.call("INFO", "memory"))["used_memory"])
    before = used()
    client.pipeline([["SET", "k%d" % n, "x" * 2000] for n in range(20_000)])
    assert used() - before > 30_000_000  # what tests before left behind may go meanwhile
    client.ok("FLUSHALL", mode)
    eventually(lambda: used() - before < 8_000_000, "the memory of the flushed keys is free")


@pytest.mark.any_threads
def test_number_of_databases(make_server):
    server = make_server({"databases": "3"})
    with server.connect() as c:
        c.ok("SELECT", "2")
        assert c.error("SELECT", "3") == b"ERR DB index is out of range"
        assert c.call("CONFIG", "GET", "databases") == [b"databases", b"3"]


@pytest.mark.any_threads
def test_unlink_and_del_of_large_values(client):
    for command in ("DEL", "UNLINK"):
        client.ok("SET", "big", "x" * 5_000_000)
        assert client.call(command, "big", "missing") == 1
        assert client.call("EXISTS", "big") == 0
