"""RediSearch, unmodified, beside redis-server 8.2.3 with the same file: an index on hashes that are written meanwhile,
and through a restart."""

import threading

import pytest

from lib.bounds import eventually
from lib.modules import in_threads
from lib.real import real
from lib.resp import Error

SCHEMA = ("FT.CREATE", "idx", "ON", "HASH", "PREFIX", "1", "doc:", "SCHEMA", "title", "TEXT", "SORTABLE", "tag", "TAG",
          "n", "NUMERIC", "SORTABLE", "place", "GEO")
QUERIES = [
    ("FT.SEARCH", "idx", "hello", "SORTBY", "n", "LIMIT", "0", "5"), ("FT.SEARCH", "idx", "@tag:{red}", "NOCONTENT", "SORTBY", "n"),
    ("FT.SEARCH", "idx", "@n:[10 20]", "SORTBY", "n", "NOCONTENT"), ("FT.SEARCH", "idx", "nothing"),
    ("FT.SEARCH", "idx", "@place:[13.4 52.5 100 km]", "NOCONTENT", "SORTBY", "n", "LIMIT", "0", "3"),
    ("FT.AGGREGATE", "idx", "*", "GROUPBY", "1", "@tag", "REDUCE", "SUM", "1", "@n", "AS", "sum", "SORTBY", "2", "@tag", "ASC"),
    ("FT.SEARCH", "none", "x"), ("FT._LIST",), ("FT.SEARCH", "idx", "@title:("), ("FT.TAGVALS", "idx", "tag"),
]


@pytest.fixture
def search(make_server):
    def make(options=None, theirs=False):
        options = {"loadmodule": real("redisearch.so"), "enable-debug-command": "yes", **(options or {})}
        return make_server(options, files=("dump.rdb", "appendonlydir"), path=real("redis-server") if theirs else None)

    return make


def document(i):
    return ("HSET", "doc:%d" % i, "title", "hello world %d" % i, "tag", ("red", "green", "blue")[i % 3], "n", str(i),
            "place", "13.%d,52.5" % (i % 9 + 1))


def fill(c, count=60):
    c.call(*SCHEMA)
    for i in range(count):
        c.call(*document(i))
    c.call("DEL", "doc:7")
    c.call("HSET", "doc:8", "title", "other words")


def found(c, query):
    reply = c.call(*query)
    return reply[0] if isinstance(reply, list) and reply else reply


def test_replies(search):
    with search().connect() as ours, search(theirs=True).connect() as theirs:
        for c in (ours, theirs):
            fill(c)
        for query in QUERIES:
            eventually(lambda query=query: ours.call(*query) == theirs.call(*query), str(query))
        for words in (("FT.DROPINDEX", "idx", "DD"), ("DBSIZE",), ("FT.SEARCH", "idx", "hello")):
            assert ours.call(*words) == theirs.call(*words), words


def test_searching_while_others_write(search):
    server, faults, writers, rounds = search(), [], 8, 100

    def write(number):
        try:
            with server.connect() as c:
                for i in range(rounds):
                    c.call(*document(number * rounds + i))
        except BaseException as fault:  # told by the thread that waits
            faults.append(fault)

    def look():
        try:
            with server.connect() as c:
                for _ in range(60):
                    for query in QUERIES[:4]:
                        reply = c.call(*query)
                        assert not isinstance(reply, Error), reply
        except BaseException as fault:  # told by the thread that waits
            faults.append(fault)

    with server.connect() as c:
        c.ok(*SCHEMA)
        threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)] + [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not faults, faults[:3]
        eventually(lambda: found(c, ("FT.SEARCH", "idx", "hello", "NOCONTENT", "LIMIT", "0", "0")) == writers * rounds, "all are found")


def test_restart(search):
    server = search()
    with server.connect() as c:
        fill(c)
        expected = [c.call(*query) for query in QUERIES[:5]]
        c.ok("SAVE")
    server.stop()
    server.start()
    with server.connect() as c:
        eventually(lambda: [c.call(*query) for query in QUERIES[:5]] == expected, "the index is there again", 30)


def test_what_goes_is_not_found(search):
    with search().connect() as c:
        fill(c)
        query = ("FT.SEARCH", "idx", "hello", "NOCONTENT", "LIMIT", "0", "0")
        eventually(lambda: found(c, query) == 58, "all are found")
        c.call("PEXPIRE", "doc:1", "1")
        c.call("UNLINK", "doc:2")
        c.call("RENAME", "doc:3", "elsewhere")
        eventually(lambda: found(c, query) == 55, "those are gone")
        c.call("FLUSHALL")
        assert c.call("DBSIZE") == 0


def test_cursors_while_others_write(search):
    """Each cursor is read to its end, or its index is dropped under it; nobody is answered wrongly."""
    server, rounds = search(), 20
    aggregate = ("FT.AGGREGATE", "idx", "*", "LOAD", "1", "@n", "WITHCURSOR", "COUNT", "7")

    def write(number):
        with server.connect() as c:
            for i in range(rounds * 5):
                c.call(*document(number * 1000 + i))

    def read():
        with server.connect() as c:
            for _ in range(rounds):
                reply, rows = c.call(*aggregate), 0
                while True:
                    assert not isinstance(reply, Error), reply
                    rows += len(reply[0]) - 1
                    if reply[1] == 0:
                        break
                    reply = c.call("FT.CURSOR", "READ", "idx", reply[1])
                assert rows >= 58

    def leave():
        with server.connect() as c:
            for _ in range(rounds):
                cursor = c.call(*aggregate)[1]
                assert cursor == 0 or c.call("FT.CURSOR", "DEL", "idx", cursor) == b"OK"

    with server.connect() as c:
        fill(c)
        in_threads(read, read, leave, *[lambda n=n: write(n + 1) for n in range(4)])
        open_ones = [c.call(*aggregate)[1] for _ in range(5)]
        c.ok("FT.DROPINDEX", "idx")
        for cursor in open_ones:
            assert isinstance(c.call("FT.CURSOR", "READ", "idx", cursor), Error)
        assert c.call("EXISTS", "doc:1") == 1


def test_dropping_while_others_search(search):
    server, rounds = search(), 15

    def search_on():
        with server.connect() as c:
            for _ in range(rounds * 20):
                reply = c.call("FT.SEARCH", "idx", "hello", "NOCONTENT")
                assert not isinstance(reply, Error) or b"idx" in reply or b"index" in reply.lower(), reply

    def write():
        with server.connect() as c:
            for i in range(rounds * 20):
                c.call(*document(i % 50))

    def drop():
        with server.connect() as c:
            for _ in range(rounds):
                c.ok(*SCHEMA)
                c.ok("FT.DROPINDEX", "idx")

    in_threads(search_on, search_on, write, drop)
    with server.connect() as c:
        c.ok(*SCHEMA)
        eventually(lambda: found(c, ("FT.SEARCH", "idx", "hello", "NOCONTENT")) == 50, "all are found", 30)


def test_expiry_of_indexed_keys(search):
    """Keys that expire by themselves, many at once, are not found: nor on a replica."""
    primary = search({"repl-diskless-sync-delay": "0"})
    with primary.connect() as c:
        fill(c)
        replica = search({"replicaof": "127.0.0.1 %d" % primary.port})
        with replica.connect() as r:
            query = ("FT.SEARCH", "idx", "hello", "NOCONTENT", "LIMIT", "0", "0")
            for client in (c, r):
                eventually(lambda client=client: found(client, query) == 58, "all are found", 30)
            for i in range(10, 40):
                c.call("PEXPIRE", "doc:%d" % i, str(1 + i % 5))
            for client in (c, r):
                eventually(lambda client=client: found(client, query) == 28, "those are gone", 30)
