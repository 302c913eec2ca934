"""RedisJSON, unmodified, beside redis-server 8.2.3 with the same file: paths, many writers, files, logs, replication."""

import threading
from json import loads

import pytest

from lib.bounds import eventually
from lib.real import real
from lib.resp import Error

DOCUMENT = '{"a":[1,2,{"b":3}],"name":"x","deep":{"n":1.5,"t":true,"z":null}}'
COMMANDS = [
    ("JSON.SET", "j", "$", DOCUMENT), ("JSON.GET", "j"), ("JSON.GET", "j", "$.a", "$.deep"), ("JSON.GET", "none"),
    ("JSON.SET", "j", "$.new", '"v"'), ("JSON.SET", "j", "$.name", '"y"', "XX"), ("JSON.SET", "j", "$.name", '"z"', "NX"),
    ("JSON.TYPE", "j", "$..n"), ("JSON.ARRAPPEND", "j", "$.a", "4", '{"c":5}'), ("JSON.ARRLEN", "j", "$.a"),
    ("JSON.ARRPOP", "j", "$.a", "0"), ("JSON.ARRINSERT", "j", "$.a", "0", "9"), ("JSON.ARRINDEX", "j", "$.a", "9"),
    ("JSON.ARRTRIM", "j", "$.a", "0", "2"), ("JSON.NUMINCRBY", "j", "$.deep.n", "2.25"),
    ("JSON.STRAPPEND", "j", "$.name", '"tail"'), ("JSON.STRLEN", "j", "$.name"), ("JSON.OBJKEYS", "j", "$.deep"),
    ("JSON.OBJLEN", "j", "$"), ("JSON.TOGGLE", "j", "$.deep.t"), ("JSON.MERGE", "j", "$.deep", '{"m":[1],"z":null}'),
    ("JSON.MSET", "k1", "$", "1", "k2", "$", '{"f":2}'), ("JSON.MGET", "k1", "k2", "none", "$"), ("JSON.DEL", "j", "$.new"),
    ("JSON.CLEAR", "k2", "$"), ("JSON.GET", "j", "INDENT", "  ", "NEWLINE", "\n", "$"), ("JSON.RESP", "j"),
    ("JSON.SET", "j", "$", "{not json"), ("JSON.GET", "j", "$["), ("SET", "s", "v"), ("JSON.GET", "s"), ("GET", "j"),
    ("TYPE", "j"), ("EXPIRE", "k1", "1000"), ("COPY", "j", "copy"), ("JSON.GET", "copy"), ("EXISTS", "copy"),
    ("MULTI",), ("JSON.NUMINCRBY", "k1", "$", "5"), ("JSON.GET", "k1"), ("EXEC",),
    ("EVAL", "return redis.call('JSON.GET', KEYS[1], '$.name')", "1", "j"),
]


@pytest.fixture
def json(make_server):
    def make(options=None, theirs=False):
        options = {"loadmodule": real("rejson.so"), "enable-debug-command": "yes", **(options or {})}
        return make_server(options, files=("dump.rdb", "appendonlydir"), path=real("redis-server") if theirs else None)

    return make


def fill(c):
    for words in COMMANDS:
        c.call(*words)


def looks(c):
    return [c.call("JSON.GET", key) for key in ("j", "k1", "k2")]


def seen(reply):
    """Of several paths the module tells in any order."""
    return loads(reply) if isinstance(reply, bytes) and reply.startswith(b'{"$') else reply


def test_replies(json):
    with json().connect() as ours, json(theirs=True).connect() as theirs:
        for words in COMMANDS:
            assert seen(ours.call(*words)) == seen(theirs.call(*words)), words


def test_many_writers(json):
    server, clients, rounds = json(), 20, 30
    faults = []

    def use(number):
        try:
            with server.connect() as c:
                for i in range(rounds):
                    replies = c.pipeline([["JSON.NUMINCRBY", "j", "$.n", "1"], ["JSON.ARRAPPEND", "j", "$.list", str(i)],
                                          ["JSON.SET", "j", "$.own%d" % number, str(i)], ["JSON.GET", "j", "$.own%d" % number]])
                    assert not [reply for reply in replies if isinstance(reply, Error)], replies
                    assert replies[3] == b"[%d]" % i
        except BaseException as fault:  # told by the thread that waits
            faults.append(fault)

    with server.connect() as c:
        c.ok("JSON.SET", "j", "$", '{"n":0,"list":[]}')
        threads = [threading.Thread(target=use, args=(n,)) for n in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not faults, faults[:3]
        assert c.call("JSON.GET", "j", "$.n") == b"[%d]" % (clients * rounds)
        assert c.call("JSON.ARRLEN", "j", "$.list") == [clients * rounds]


@pytest.mark.parametrize("preamble", ("yes", "no"))
def test_files(json, preamble):
    server = json({"appendonly": "yes", "appendfsync": "always", "aof-use-rdb-preamble": preamble})
    with server.connect() as c:
        fill(c)
        c.ok("DEBUG", "RELOAD")
        c.call("BGREWRITEAOF")
        eventually(lambda: b"aof_rewrite_in_progress:0" in c.call("INFO", "persistence"), "the log is rewritten")
        c.call("JSON.NUMINCRBY", "k1", "$", "3")
        expected = looks(c)
    server.kill()
    server.start()
    with server.connect() as c:
        assert looks(c) == expected


@pytest.mark.parametrize("ours_first", (True, False))
def test_replication(json, ours_first):
    primary = json({"repl-diskless-sync-delay": "0"}, theirs=not ours_first)
    with primary.connect() as c:
        fill(c)
        replica = json({"replicaof": "127.0.0.1 %d" % primary.port}, theirs=ours_first)
        with replica.connect() as r:
            eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link", 30)
            assert looks(r) == looks(c)
            c.call("JSON.ARRAPPEND", "j", "$.a", '"told"')
            eventually(lambda: looks(r) == looks(c), "what follows")
