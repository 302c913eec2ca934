"""RedisBloom, unmodified, beside redis-server 8.2.3 with the same file: replies, 50 clients at once, and its values
through files, logs, a kill, payloads and replication both ways."""

import threading

import pytest

from lib.bounds import eventually
from lib.real import real
from lib.resp import Error

COMMANDS = """
BF.RESERVE b 0.01 1000
BF.ADD b one
BF.ADD b one
BF.MADD b two three one
BF.EXISTS b one
BF.MEXISTS b one two nothing
BF.CARD b
BF.INFO b
BF.INSERT grown CAPACITY 10 ITEMS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
BF.INFO grown
BF.RESERVE b 0.01 10
BF.ADD none
BF.EXISTS none x
BF.SCANDUMP b 0
CF.RESERVE c 1000
CF.ADD c x
CF.ADDNX c x
CF.ADD c x
CF.COUNT c x
CF.DEL c x
CF.COUNT c x
CF.INFO c
CMS.INITBYDIM m 1000 5
CMS.INCRBY m a 3 b 5
CMS.QUERY m a b nothing
CMS.INFO m
CMS.INITBYPROB p 0.001 0.01
CMS.INFO p
TOPK.RESERVE t 3 50 4 0.9
TOPK.ADD t a b c a a d b
TOPK.LIST t WITHCOUNT
TOPK.QUERY t a z
TOPK.INFO t
TDIGEST.CREATE d COMPRESSION 100
TDIGEST.ADD d 1 2 3 4 5 6 7 8 9 10.5
TDIGEST.QUANTILE d 0 0.5 0.9 1
TDIGEST.CDF d 5 20
TDIGEST.MIN d
TDIGEST.MAX d
TDIGEST.INFO d
SET s v
BF.ADD s x
GET b
TYPE b
TYPE c
TYPE m
TYPE t
TYPE d
OBJECT ENCODING b
""".strip().splitlines()
LOOKS = """
BF.INFO b
BF.MEXISTS b one two three nothing
BF.INFO grown
CF.INFO c
CMS.QUERY m a b nothing
TOPK.LIST t WITHCOUNT
TDIGEST.QUANTILE d 0 0.5 0.9 1
DBSIZE
""".strip().splitlines()


@pytest.fixture
def bloom(make_server):
    """bloom(options={...}): our server with the module; theirs=True: Redis's."""

    def make(options=None, theirs=False, start=True, files=("dump.rdb", "appendonlydir")):
        options = {"loadmodule": real("redisbloom.so"), **(options or {})}
        options["enable-debug-command"] = "yes"
        return make_server(options, files=files, path=real("redis-server") if theirs else None, start=start)

    return make


def fill(c):
    return [c.call(*words.split()) for words in COMMANDS]


def looks(c):
    return [c.call(*words.split()) for words in LOOKS]


def test_replies(bloom):
    with bloom().connect() as ours, bloom(theirs=True).connect() as theirs:
        for words in COMMANDS:
            assert ours.call(*words.split()) == theirs.call(*words.split()), words
        assert ours.call("MEMORY", "USAGE", "b") > 0
        replies = [c.call("COPY", "b", "b2") for c in (ours, theirs)]
        assert replies[0] == replies[1]
        for words in ("MULTI", "BF.ADD b x", "CMS.INCRBY m a 1", "EXEC", "EVAL return{redis.call('BF.ADD','b','y')} 0"):
            assert ours.call(*words.split()) == theirs.call(*words.split()), words


def in_threads(tasks):
    faults = []

    def guarded(task):
        try:
            task()
        except BaseException as fault:  # told by the thread that waits
            faults.append(fault)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults[:3]


def test_many_clients(bloom):
    """A filter that is wide enough is exact, and so are the counts of a sketch: none is lost, none counted twice."""
    server, clients, rounds = bloom(), 50, 40

    def use(number):
        with server.connect() as c:
            for i in range(rounds):
                replies = c.pipeline([["BF.ADD", "wide", "%d:%d" % (number, i)], ["CMS.INCRBY", "m", "all", "1"],
                                      ["TOPK.ADD", "top", "hot" if i % 2 else "%d:%d" % (number, i)],
                                      ["SET", "plain:%d" % number, "v"], ["GET", "plain:%d" % number],
                                      ["BF.EXISTS", "wide", "%d:%d" % (number, i)]])
                assert not [reply for reply in replies if isinstance(reply, Error)], replies
                assert replies[0] == 1 and replies[4] == b"v" and replies[5] == 1

    with server.connect() as c:
        c.ok("BF.RESERVE", "wide", "0.000001", "100000")
        c.ok("CMS.INITBYDIM", "m", "2000", "10")
        c.ok("TOPK.RESERVE", "top", "5", "200", "7", "0.9")
        in_threads([lambda n=n: use(n) for n in range(clients)])
        assert c.call("BF.CARD", "wide") == clients * rounds
        assert c.call("CMS.QUERY", "m", "all") == [clients * rounds]
        assert c.call("TOPK.LIST", "top")[0] == b"hot"


def test_files(bloom):
    server = bloom()
    with server.connect() as c:
        fill(c)
        expected = looks(c)
        c.ok("DEBUG", "RELOAD")
        assert looks(c) == expected
        c.ok("SAVE")
    server.stop()
    server.start()
    with server.connect() as c:
        assert looks(c) == expected
        c.ok("FLUSHALL")
        assert c.call("DBSIZE") == 0


@pytest.mark.parametrize("preamble", ("yes", "no"))
def test_log(bloom, preamble):
    server = bloom({"appendonly": "yes", "appendfsync": "always", "aof-use-rdb-preamble": preamble})
    with server.connect() as c:
        fill(c)
        before = c.call("INFO", "persistence")
        c.call("BGREWRITEAOF")
        eventually(lambda: c.call("INFO", "persistence") != before and
                   b"aof_rewrite_in_progress:0" in c.call("INFO", "persistence"), "the log is rewritten")
        c.call("BF.ADD", "b", "behind the base")
        c.call("TOPK.ADD", "t", "a")
        expected = looks(c)
    server.kill()
    server.start()
    with server.connect() as c:
        assert looks(c) == expected and c.call("BF.EXISTS", "b", "behind the base") == 1


def test_swapdb_and_move(bloom):
    with bloom().connect() as c:
        fill(c)
        expected = looks(c)
        c.ok("SWAPDB", "0", "1")
        assert c.call("DBSIZE") == 0
        c.ok("SELECT", "1")
        assert looks(c) == expected
        assert c.call("MOVE", "b", "0") == 1
        c.ok("SELECT", "0")
        assert c.call("BF.EXISTS", "b", "one") == 1


def test_payloads_cross(bloom):
    with bloom().connect() as ours, bloom(theirs=True).connect() as theirs:
        fill(ours)
        for key in ("b", "grown", "c", "m", "t", "d"):
            theirs.ok("RESTORE", key, "0", ours.call("DUMP", key))
        assert looks(theirs)[:-1] == looks(ours)[:-1]


@pytest.mark.parametrize("ours_first", (True, False))
def test_replication(bloom, ours_first):
    """With everything at first, and what follows; then the link is cut, and the rest comes."""
    primary = bloom({"repl-diskless-sync-delay": "0"}, theirs=not ours_first)
    with primary.connect() as c:
        fill(c)
        replica = bloom({"replicaof": "127.0.0.1 %d" % primary.port}, theirs=ours_first)
        with replica.connect() as r:
            eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link", 30)
            assert looks(r) == looks(c)
            c.call("BF.ADD", "b", "told")
            c.call("CMS.INCRBY", "m", "a", "4")
            eventually(lambda: looks(r) == looks(c), "what follows")
            c.call("CLIENT", "KILL", "TYPE", "replica")
            c.call("TOPK.ADD", "t", "z")
            eventually(lambda: looks(r) == looks(c), "what came when the link was cut", 30)


def test_a_replica_of_our_own(bloom):
    primary = bloom({"repl-diskless-sync-delay": "0"})
    with primary.connect() as c:
        fill(c)
        replica = bloom({"replicaof": "127.0.0.1 %d" % primary.port})
        with replica.connect() as r:
            eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link", 30)
            c.call("BF.ADD", "b", "told")
            eventually(lambda: looks(r) == looks(c), "what follows")
            assert r.error("BF.ADD", "b", "x").startswith(b"READONLY")
