"""RediSearch, unmodified, beside redis-server 8.2.3 with the same file: an index on hashes that are written meanwhile,
and through a restart."""

import threading

import pytest

from lib.bounds import eventually
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
