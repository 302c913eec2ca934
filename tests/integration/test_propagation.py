"""Whatever is written: the log of it, replayed, gives the same data.  Random calls of every command
that writes, transactions, what waits, what expires; then a restart from the log alone."""

import os
import random
import time

import pytest

from lib import documented, grammar, grammar_multi, grammar_sort, grammar_stream
from lib import grammar_stream_group, grammar_zset
from lib.bounds import eventually
from lib.content import content, deadlines, drop_dying
from lib.resp import Error
from lib.seeds import generator, seeds
from lib.server import is_redis, server_path
from lib.states import NOT_YET, STATES, choose, names, prepared

pytestmark = [
    pytest.mark.skipif(is_redis(server_path()), reason="asks for KeyDB's own commands"),
]

AOF = {"appendonly": "yes", "appendfsync": "no"}
FILES = ("appendonlydir",)


def grammars(seed, group):
    chance = generator(seed, "propagation", group)
    if group == "stream":
        return grammar_stream.PRELUDE, grammar_stream.StreamGrammar(
            chance, grammar.templates(grammar_stream.STREAMS))
    if group == "stream_group":
        return grammar_stream_group.PRELUDE, grammar_stream_group.StreamGroupGrammar(
            chance, grammar.templates(grammar_stream_group.GROUP_TEMPLATES))
    if group == "zset":
        return grammar_zset.PRELUDE, grammar_zset.ZsetGrammar(
            chance, grammar.templates(grammar_zset.ZSETS))
    if group == "sort":
        return grammar_sort.PRELUDE, grammar_sort.SortGrammar(
            chance, grammar.templates(grammar_sort.SORTS))
    if group == "multi":
        return [], grammar_multi.MultiGrammar(chance)
    texts = {"string": grammar.STRINGS, "generic": grammar.GENERIC, "hash": grammar.HASHES,
             "list": grammar.LISTS, "set": grammar.SETS, "geo": grammar.GEO,
             "bitmap": grammar.BITMAPS, "hyperloglog": grammar.HYPERLOGLOGS,
             "mixed": grammar.STRINGS + grammar.GENERIC + grammar.HASHES + grammar.LISTS
             + grammar.SETS}
    return [], grammar.Grammar(chance, grammar.templates(texts[group]))


GROUPS = ["string", "generic", "hash", "list", "set", "geo", "bitmap", "hyperloglog", "mixed",
          "stream", "stream_group", "zset", "sort", "multi"]


def again(server):
    """The server ends and begins anew, from its log."""
    server.stop()
    return server.start()


def check_restart(server):
    with server.connect() as client:
        client.call("DEBUG", "DIGEST")  # deletes what is due
        drop_dying(client)
        before, due_before = content(client), deadlines(client)
        assert before
        digest = client.call("DEBUG", "DIGEST")
    again(server)
    with server.connect() as client:
        after = content(client)
        differ = {key: (before.get(key), after.get(key))
                  for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert not differ, differ
        assert deadlines(client) == due_before
        assert client.call("DEBUG", "DIGEST") == digest


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("seed", seeds(3))
def test_random_programs(make_server, group, seed):
    server = make_server(AOF, files=FILES)
    prelude, program = grammars(seed, group)
    with server.connect() as client:
        for words in prelude:
            client.call(*words)
        for _ in range(8):
            client.pipeline(program.program(100))
    check_restart(server)


@pytest.mark.any_threads
@pytest.mark.parametrize("seed", seeds(2))
def test_every_command_that_writes(make_server, seed):
    """Documented calls on values of every type, in several databases."""
    server = make_server(dict(AOF, databases="20"), files=FILES)
    chance = random.Random(seed)
    with server.connect() as client:
        flags = {info[0].decode().upper(): info[2] for info in client.call("COMMAND")}
        writes = {name: fields for name, fields in names(client).items()
                  if b"write" in flags.get(name.split("|")[0], ()) or "|" in name}
        assert len(writes) > 120
        for number, (name, fields) in enumerate(writes.items()):
            if name in NOT_YET:
                continue
            program = [["SELECT", str(number % 16)]]
            for state in STATES:
                key = "%s/%s" % (name, state)
                ground = [[key if w == "k" else key + w[1:] if w.startswith("k.") else w for w in words]
                          for words in prepared(client, state)]
                for attempt in range(3):
                    keys = (key, key, key + "/other")
                    call = documented.make_call(name, fields, chance, keys)
                    words = documented.fill(call, choose(name, call, chance))
                    program += ground + [["MULTI"], words, ["EXEC"]]
            client.pipeline(program)
    check_restart(server)


def test_expiry_is_told(make_server):
    """Keys and members that end, in every way in which they may be found to have."""
    server = make_server(AOF, files=FILES)
    with server.connect() as client:
        client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        for n in range(20):
            client.ok("SET", "read%d" % n, "v", "PX", "1")
            client.ok("SET", "written%d" % n, "v", "PX", "1")
            client.ok("SET", "swept%d" % n, "v", "PX", "1")
            client.call("SADD", "source%d" % n, "a", "b")
            client.call("PEXPIRE", "source%d" % n, "1")
            client.call("HSET", "fields%d" % n, "a", "1", "b", "2")
            client.call("HPEXPIRE", "fields%d" % n, "1", "FIELDS", "1", "a")
            client.call("SADD", "members%d" % n, "a", "b")
            client.call("EXPIREMEMBER", "members%d" % n, "a", "1", "ms")
            client.call("ZADD", "gone%d" % n, "1", "a")
            client.call("EXPIREMEMBER", "gone%d" % n, "a", "1", "ms")
        time.sleep(0.02)
        for n in range(20):
            client.call("GET", "read%d" % n)
            client.call("APPEND", "written%d" % n, "w")
            client.call("SADD", "other%d" % n, "x")
            client.call("SUNIONSTORE", "target%d" % n, "source%d" % n, "other%d" % n)
            client.call("HINCRBY", "fields%d" % n, "a", "5")
            client.call("SUNIONSTORE", "copy%d" % n, "members%d" % n)
            client.call("ZADD", "gone%d" % n, "2", "b")
        client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        assert client.call("GET", "written3") == b"w"
        assert client.call("HGETALL", "fields3") == [b"b", b"2", b"a", b"5"]
        assert client.call("SMEMBERS", "copy3") == [b"b"]
    check_restart(server)


def test_nothing_expires_in_a_replay(make_server):
    """A log that is replayed after the time of its keys: what was done before that time stays done."""
    server = make_server(AOF, files=FILES)
    with server.connect() as client:
        for n in range(50):
            k, h, s, r = ("%s%d" % (name, n) for name in "khsr")
            for _ in range(5):
                # In one turn; and once more if that was held up for longer than those times.
                replies = client.pipeline([
                    ["SET", k, "v"], ["PEXPIRE", k, "300"], ["PERSIST", k],
                    ["HSET", h, "f", "v"], ["HPEXPIRE", h, "300", "FIELDS", "1", "f"],
                    ["HPERSIST", h, "FIELDS", "1", "f"],
                    ["SET", s, "v", "PX", "300"], ["SET", s, "w", "KEEPTTL"], ["RENAME", s, r], ["PERSIST", r]])
                if (replies[2], replies[5], replies[9]) == (1, [1], 1):
                    break
                client.call("DEL", k, h, s, r)
        assert client.call("DBSIZE") == 150
        time.sleep(0.31)
        again(server)
    with server.connect() as client:
        assert client.call("DBSIZE") == 150
        assert client.call("GET", "r7") == b"w"
        assert client.call("HGET", "h7", "f") == b"v"


def test_what_waited_is_told(make_server):
    server = make_server(AOF, files=FILES)
    with server.connect() as writer, server.connect() as one, server.connect() as two, \
            server.connect() as three, server.connect() as four:
        writer.call("XGROUP", "CREATE", "x", "g", "$", "MKSTREAM")
        one.send("BLPOP", "a", "b", "0")
        two.send("BLMOVE", "c", "d", "LEFT", "RIGHT", "0")
        three.send("BZMPOP", "0", "1", "z", "MAX", "COUNT", "2")
        four.send("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "x", ">")
        eventually(lambda: b"blocked_clients:4" in writer.call("INFO", "clients"), "four wait")
        writer.pipeline([["MULTI"], ["RPUSH", "b", "1", "2", "3"], ["RPUSH", "c", "1", "2"],
                         ["ZADD", "z", "1", "a", "2", "b", "3", "c"], ["XADD", "x", "*", "f", "v"],
                         ["EXEC"]])
        for waiter in (one, two, three, four):
            assert not isinstance(waiter.read(), Error)
        assert writer.call("LRANGE", "b", "0", "-1") == [b"2", b"3"]
    check_restart(server)


def test_entries_below_a_groups_position(make_server):
    """Nobody is given them, and a log's replay finds nothing else (an active replica's would)."""
    server = make_server(AOF, files=FILES)
    with server.connect() as client:
        client.ok("XGROUP", "CREATE", "x", "g", "100-0", "MKSTREAM")
        assert client.call("XADD", "x", "50-0", "f", "v") == b"50-0"
        assert client.call("XINFO", "CONSUMERS", "x", "g") == []
    check_restart(server)
    with server.connect() as client:
        assert client.call("XINFO", "CONSUMERS", "x", "g") == []


def test_a_transaction_is_whole(make_server):
    """The log is cut behind its last but one record: what MULTI began and EXEC did not end is not
    there."""
    server = make_server(AOF, files=FILES)
    with server.connect() as client:
        client.ok("SET", "a", "1")
        client.pipeline([["MULTI"], ["SET", "b", "1"], ["SET", "c", "1"], ["EXEC"]])
    server.stop()
    path = server.file("appendonlydir/appendonly.aof.1.incr.aof")
    with open(path, "rb") as file:
        log = file.read()
    assert log.endswith(b"*1\r\n$4\r\nEXEC\r\n") and log.count(b"MULTI") == 1
    os.truncate(path, len(log) - 14)
    server.start()
    with server.connect() as client:
        assert client.call("KEYS", "*") == [b"a"]
