"""What happens to the data of modules that people run: saved and loaded again, through a log that was rewritten and a
kill, at replicas of ours and of redis-server 8.2.3 with everything and with the rest, FLUSHALL, SWAPDB. What a module
does of its own accord there is compared with what it does in redis-server."""

import pytest

from lib.bounds import eventually
from lib.modules import in_threads
from lib.real import real
from lib.resp import Error

VECTOR = {i: bytes([0, 0, 128, 63, 0, 0, i, 64]) for i in range(60)}  # two floats
NEAR = bytes([0, 0, 128, 63, 0, 16, 7, 64])  # to 7, then 8: equally near ones come in any order


class Bloom:
    modules = ["redisbloom.so"]
    fills = [("BF.RESERVE", "b", "0.01", "1000"), ("BF.MADD", "b", *range(200)), ("CF.RESERVE", "c", "1000"), ("CF.ADD", "c", "x"),
             ("CMS.INITBYDIM", "m", "1000", "5"), ("CMS.INCRBY", "m", "a", "3"), ("TOPK.RESERVE", "t", "3", "50", "4", "0.9"),
             ("TOPK.ADD", "t", "a", "b", "a", "c"), ("TDIGEST.CREATE", "d"), ("TDIGEST.ADD", "d", "1", "2", "3.5")]
    looks = [("BF.CARD", "b"), ("BF.MEXISTS", "b", "1", "199", "none"), ("CF.COUNT", "c", "x"), ("CMS.QUERY", "m", "a", "b"),
             ("TOPK.LIST", "t", "WITHCOUNT"), ("TDIGEST.QUANTILE", "d", "0.5"), ("DBSIZE",)]
    more = [("BF.ADD", "b", "more"), ("CMS.INCRBY", "m", "b", "2"), ("TOPK.ADD", "t", "c", "c", "c")]


class Json:
    modules = ["rejson.so"]
    fills = [("JSON.SET", "j", "$", '{"a":[1,2],"n":1.5,"deep":{"x":"y"}}'), ("JSON.MSET", "k", "$", "[]", "l", "$", "null"),
             ("PEXPIRE", "l", "100000000")]
    looks = [("JSON.GET", "j"), ("JSON.GET", "k"), ("JSON.TYPE", "l", "$"), ("JSON.ARRLEN", "j", "$.a"), ("DBSIZE",)]
    more = [("JSON.ARRAPPEND", "j", "$.a", "3"), ("JSON.NUMINCRBY", "j", "$.n", "0.25"), ("JSON.DEL", "j", "$.deep")]


class Search:
    modules = ["redisearch.so"]
    fills = [("FT.CREATE", "idx", "PREFIX", "1", "doc:", "SCHEMA", "title", "TEXT", "tag", "TAG", "n", "NUMERIC", "SORTABLE",
              "place", "GEO", "v", "VECTOR", "FLAT", "6", "TYPE", "FLOAT32", "DIM", "2", "DISTANCE_METRIC", "L2")] + \
        [("HSET", "doc:%d" % i, "title", "word%d common" % (i % 4), "tag", "odd" if i % 2 else "even", "n", i,
          "place", "13.%d,52.5" % (i % 9 + 1), "v", VECTOR[i]) for i in range(60)]
    looks = [("FT.SEARCH", "idx", "common", "NOCONTENT", "SORTBY", "n", "LIMIT", "0", "100"),
             ("FT.SEARCH", "idx", "word1 @tag:{odd}", "NOCONTENT", "SORTBY", "n"),
             ("FT.SEARCH", "idx", "@n:[10 (20]", "NOCONTENT", "SORTBY", "n"),
             ("FT.SEARCH", "idx", "@place:[13.4 52.5 40 km]", "NOCONTENT", "SORTBY", "n", "LIMIT", "0", "50"),
             ("FT.SEARCH", "idx", "*=>[KNN 3 @v $q AS far]", "PARAMS", "2", "q", NEAR, "NOCONTENT", "SORTBY", "far",
              "DIALECT", "2"),
             ("FT.AGGREGATE", "idx", "*", "GROUPBY", "1", "@tag", "REDUCE", "SUM", "1", "@n", "AS", "s", "SORTBY", "2", "@tag", "ASC"),
             ("FT._LIST",), ("DBSIZE",)]
    more = [("DEL", "doc:3"), ("HSET", "doc:4", "title", "other"), ("HSET", "doc:100", "title", "common", "n", "100", "tag", "odd")]


class SearchJson:
    modules = ["rejson.so", "redisearch.so"]
    fills = [("FT.CREATE", "idx", "ON", "JSON", "PREFIX", "1", "j:", "SCHEMA", "$.title", "AS", "title", "TEXT", "$.n", "AS", "n",
              "NUMERIC", "SORTABLE", "$.tags[*]", "AS", "tag", "TAG")] + \
        [("JSON.SET", "j:%d" % i, "$", '{"title":"word%d common","n":%d,"tags":["t%d","all"]}' % (i % 4, i, i % 3)) for i in range(40)]
    looks = [("FT.SEARCH", "idx", "common", "NOCONTENT", "SORTBY", "n", "LIMIT", "0", "100"),
             ("FT.SEARCH", "idx", "@tag:{t1} @n:[-inf 20]", "NOCONTENT", "SORTBY", "n"), ("JSON.GET", "j:7"), ("DBSIZE",)]
    more = [("JSON.SET", "j:5", "$.title", '"other"'), ("JSON.ARRAPPEND", "j:6", "$.tags", '"t1"'), ("DEL", "j:7")]


class Graph:
    modules = ["falkordb.so"]
    fills = [("GRAPH.QUERY", "g", "CREATE (:P {name:'a', n:1})-[:KNOWS {w:2}]->(:P {name:'b', n:2})-[:KNOWS {w:3}]->(:P {name:'c', n:3})"),
             ("GRAPH.QUERY", "g", "UNWIND range(1, 50) AS i CREATE (:Q {i:i})"), ("GRAPH.QUERY", "g", "CREATE INDEX FOR (q:Q) ON (q.i)")]
    looks = [("GRAPH.RO_QUERY", "g", "MATCH (a)-[k:KNOWS]->(b) RETURN a.name, k.w, b.name ORDER BY a.name"),
             ("GRAPH.RO_QUERY", "g", "MATCH (q:Q) WHERE q.i > 40 RETURN count(q), sum(q.i)"),
             ("EXISTS", "g")]  # a query that took long makes one more key, telemetry{g}
    more = [("GRAPH.QUERY", "g", "MATCH (p:P {name:'a'}) SET p.n = 10 CREATE (p)-[:KNOWS {w:9}]->(:P {name:'d', n:4})"),
            ("GRAPH.QUERY", "g", "MATCH (q:Q {i:50}) DELETE q")]


class OldSearch:
    modules = ["old-redisearch.so"]
    fills = [("FT.CREATE", "idx", "SCHEMA", "title", "TEXT", "n", "NUMERIC", "SORTABLE")] + \
        [("FT.ADD", "idx", "doc%d" % i, "1.0", "FIELDS", "title", "word%d common" % (i % 4), "n", i) for i in range(30)]
    looks = [("FT.SEARCH", "idx", "common", "NOCONTENT", "SORTBY", "n", "LIMIT", "0", "100"), ("FT.SEARCH", "idx", "word1 @n:[0 10]", "NOCONTENT")]
    more = [("FT.DEL", "idx", "doc3"), ("FT.ADD", "idx", "doc99", "0.5", "FIELDS", "title", "common", "n", "99")]


JOBS = [Bloom, Json, Search, SearchJson, Graph, OldSearch]


@pytest.fixture(params=JOBS, ids=[job.__name__ for job in JOBS])
def job(request):
    return request.param


@pytest.fixture
def serving(make_server, job):
    def make(options=None, theirs=False):
        config = "".join("loadmodule %s\n" % real(name) for name in job.modules)
        return make_server({"enable-debug-command": "yes", "repl-diskless-sync-delay": "0", **(options or {})}, config=config,
                           files=("dump.rdb", "appendonlydir"), path=real("redis-server") if theirs else None)

    return make


def told(reply):
    """Times that a graph has taken are in its replies."""
    if isinstance(reply, list):
        return [told(part) for part in reply if not (isinstance(part, bytes) and b"execution time" in part) and
                not (isinstance(part, bytes) and part.startswith(b"Cached execution"))]
    return reply


def do(c, commands):
    for words in commands:
        reply = c.call(*words)
        assert not isinstance(reply, Error), (words, reply)


def looks(c, job):
    return [told(c.call(*words)) for words in job.looks]


def comes_to(c, job, expected, what):
    eventually(lambda: looks(c, job) == expected, what, 30)


def settled(c, job):
    """What is looked at, when indexing in the background is done."""
    seen = [None]

    def twice_the_same():
        before, seen[0] = seen[0], looks(c, job)
        return before == seen[0]

    eventually(twice_the_same, "nothing changes any more", 30, 0.2)
    return seen[0]


def test_replies(serving, job):
    with serving().connect() as ours, serving(theirs=True).connect() as theirs:
        for c in (ours, theirs):
            do(c, job.fills)
        comes_to(ours, job, settled(theirs, job), "the same is found")
        for c in (ours, theirs):
            do(c, job.more)
        comes_to(ours, job, settled(theirs, job), "the same is found then")


def test_save_and_restart(serving, job):
    server = serving()
    with server.connect() as c:
        do(c, job.fills)
        expected = settled(c, job)
        c.ok("SAVE")
    for _ in range(2):
        server.stop()
        server.start()
        with server.connect() as c:
            comes_to(c, job, expected, "it is there again")


def test_log_and_kill(serving, job):
    server = serving({"appendonly": "yes", "appendfsync": "always"})
    with server.connect() as c:
        do(c, job.fills)
        c.call("BGREWRITEAOF")
        eventually(lambda: b"aof_rewrite_in_progress:0" in c.call("INFO", "persistence"), "the log is rewritten", 30)
        do(c, job.more)
        expected = settled(c, job)
    server.kill()
    server.start()
    with server.connect() as c:
        comes_to(c, job, expected, "it is there again")


@pytest.mark.parametrize("theirs", ("none", "primary", "replica"))
def test_replication(serving, job, theirs):
    primary = serving(theirs=theirs == "primary")
    with primary.connect() as c:
        do(c, job.fills)
        replica = serving({"replicaof": "127.0.0.1 %d" % primary.port}, theirs=theirs == "replica")
        with replica.connect() as r:
            eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link", 60)
            comes_to(r, job, settled(c, job), "everything comes")
            c.call("CLIENT", "KILL", "TYPE", "replica")
            do(c, job.more)
            comes_to(r, job, settled(c, job), "the rest comes")
            partial = int(c.call("INFO", "stats").split(b"sync_partial_ok:")[1].split(b"\r")[0])
            assert partial >= 1


@pytest.mark.parametrize("words", (("FLUSHALL",), ("FLUSHALL", "SYNC"), ("SWAPDB", "0", "1"), ("FLUSHDB", "ASYNC")), ids=" ".join)
def test_databases(serving, job, words):
    """What becomes of indexes and graphs then is the module's to decide: the same as in redis-server."""
    with serving().connect() as ours, serving(theirs=True).connect() as theirs:
        for c in (ours, theirs):
            do(c, job.fills)
            settled(c, job)
            c.ok(*words)
        comes_to(ours, job, settled(theirs, job), "the same is left")
        for c in (ours, theirs):
            c.ok("SELECT", "1")
        comes_to(ours, job, settled(theirs, job), "the same is in the other database")


def test_many_clients(serving, job):
    """Each looks and changes; nobody gets an error, and in the end all is as one client's work."""
    server, clients = serving(), 50
    with server.connect() as c:
        do(c, job.fills)

    def use(number):
        with server.connect() as c:
            for i in range(10):
                replies = [c.call(*words) for words in job.looks] + \
                    c.pipeline([("SET", "plain%d" % number, i), ("GET", "plain%d" % number)])
                assert not [reply for reply in replies if isinstance(reply, Error)] and replies[-1] == b"%d" % i, replies

    def change():
        with server.connect() as c:
            do(c, job.more)

    in_threads(change, *[lambda n=n: use(n) for n in range(clients)])
    with server.connect() as c, serving().connect() as alone:
        do(alone, job.fills)
        do(alone, job.more)
        do(alone, [("SET", "plain%d" % n, "9") for n in range(clients)])
        comes_to(c, job, settled(alone, job), "all is done")
