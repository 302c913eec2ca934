"""Types of values that a module makes, in redis-server 7.0.15 and here: tests/modules/types.c. What its
methods are told, what its commands reply, and values that cross between the two, by payload and by file."""

import os
import shutil

import pytest

from lib.bounds import eventually
from lib.modules import path_of

WORDS = ("TY.PUSH b one two three", "TY.PUSH b 4 -5 70000", "TY.NUMBERS b -7 18446744073709551615 1.5 -0.25 3.1",
         "TY.PUSH big " + "x" * 5000, "TY.PLAIN p -12", "TY.PUSH lone once", "SET s v", "RPUSH l a b")
KEYS = "b big p lone s l missing".split()


def load(make, *words, **options):
    return make({"loadmodule": [path_of("types"), *words], "enable-module-command": "yes",
                 "enable-debug-command": "yes", **options})


@pytest.fixture(params=("1", "2", "3", "4", "5"))
def versioned(request, make_server, make_oracle):
    """Both servers, where the module has methods of that version."""
    return [load(make, "version", request.param) for make in (make_server, make_oracle)]


@pytest.fixture
def pair(make_server, make_oracle):
    return [load(make) for make in (make_server, make_oracle)]


def speaker(servers, connect):
    clients = [connect(to=server) for server in servers]

    def both(*words):
        replies = [client.call(*words) for client in clients]
        assert replies[0] == replies[1], words
        return replies[0]

    both.clients = clients
    return both


def fill(both):
    for words in WORDS:
        both(*words.split())
    both("TY.LOG")


def same_notes(both, but=()):
    """What was noted, in any order, but for what is said to differ."""
    logs = [sorted(note for note in client.call("TY.LOG") if not note.startswith(tuple(but) or b"\0"))
            for client in both.clients]
    assert logs[0] == logs[1]
    return logs[0]


def test_commands(versioned, connect):
    both = speaker(versioned, connect)
    fill(both)
    for key in KEYS:
        for words in (("TY.KIND", key), ("TY.ALL", key), ("TY.PLAIN", key), ("TYPE", key),
                      ("OBJECT", "ENCODING", key) if key not in "sl" else ("PING",)):
            both(*words)
    for name in ("testboxes", "TESTPLAIN", "string", "nothing"):
        replies = [sorted(client.call("SCAN", "0", "TYPE", name, "COUNT", "100")[1]) for client in both.clients]
        assert replies[0] == replies[1] or name == "TESTPLAIN"  # whether case matters depends on the version
    assert both("TY.REPLACE", "b") == 6
    both("TY.REPLACE", "p")
    both("TY.REPLACE", "missing")
    both("TY.PUSH", "s", "x")
    both("TY.PLAIN", "b", "1")
    both("TY.LIVE")
    both("GET", "p")
    both("MODULE", "UNLOAD", "types")
    both("FLUSHALL")
    both("TY.LIVE")


def test_what_methods_are_told(versioned, connect):
    both = speaker(versioned, connect)
    fill(both)
    for words in ("COPY b c", "COPY b c", "COPY b c REPLACE", "COPY b d DB 3", "COPY lone x", "COPY p x",
                  "DEL c", "UNLINK b", "SET big v", "TY.PUSH e 1", "PEXPIRE e -1", "TY.PUSH f 1", "RENAME f g",
                  "MOVE g 5", "SELECT 5", "FLUSHDB SYNC", "SELECT 3", "DEL d", "SELECT 0"):
        both(*words.split())
        # How often effort and size are asked for is each server's own.
        same_notes(both, (b"effort", b"memory"))


def test_memory(versioned, connect):
    """The bytes that the module tells come on top of what each server needs itself."""
    both = speaker(versioned, connect)
    fill(both)
    for words in (("b",), ("b", "SAMPLES", "0"), ("b", "SAMPLES", "9")):
        sizes = [client.call("MEMORY", "USAGE", *words) for client in both.clients]
        assert all(100000 < size < 100400 for size in sizes), sizes
        same_notes(both)
    assert all(client.call("MEMORY", "USAGE", "p") < 400 for client in both.clients)


def test_digests(pair, connect):
    both = speaker(pair, connect)
    fill(both)
    for c in both.clients:
        first = c.call("DEBUG", "DIGEST-VALUE", "b")
        c.call("COPY", "b", "same")
        assert c.call("DEBUG", "DIGEST-VALUE", "same") == first
        c.call("TY.PUSH", "same", "more")
        assert c.call("DEBUG", "DIGEST-VALUE", "same") != first
        whole = c.call("DEBUG", "DIGEST")
        c.call("TY.PUSH", "same", "more")
        assert c.call("DEBUG", "DIGEST") != whole


def test_payloads_cross(pair, connect):
    both = speaker(pair, connect)
    fill(both)
    ours, theirs = both.clients
    for key in ("b", "big", "p"):
        for source, target in ((ours, theirs), (theirs, ours)):
            target.ok("RESTORE", "from " + key, "0", source.call("DUMP", key), "REPLACE")
            command = "TY.PLAIN" if key == "p" else "TY.ALL"
            assert target.call(command, "from " + key) == source.call(command, key)
    same_notes(both)


def test_payloads_know_their_place(make_server, make_oracle, connect):
    """Of DUMP, RESTORE and MIGRATE the module learns key and database."""
    servers = [load(make, "saves") for make in (make_server, make_oracle)]
    both = speaker(servers, connect)
    both("SELECT", "3")
    fill(both)
    payloads = [c.call("DUMP", "b") for c in both.clients]
    for c, payload in zip(both.clients, payloads):
        c.ok("RESTORE", "again", "0", payload)
        c.ok("SELECT", "5")
        c.ok("RESTORE", "b", "0", payload)
        c.ok("SELECT", "3")
    assert {b"save b db 3", b"load again db 3", b"load b db 5"} <= set(same_notes(both))
    for c, server in zip(both.clients, reversed(servers)):  # each to the other
        c.ok("MIGRATE", "127.0.0.1", str(server.port), "again", "7", "5000", "COPY")
    assert {b"save again db 7", b"load again db 7"} <= set(same_notes(both))
    both("TY.STRING", "b")
    same_notes(both)


def test_values_in_strings(pair, connect):
    both = speaker(pair, connect)
    fill(both)
    text = both("TY.STRING", "b")
    assert both("TY.STRING", "made", text, "0") == b"OK"
    assert both("TY.STRING", "made", text, "1") == b"OK"
    assert both("TY.STRING", "made", text, "2") is None
    both("TY.ALL", "made")


def test_walks(pair, connect):
    both = speaker(pair, connect)
    fill(both)
    for words in ("SADD ints 3 1 2", "SADD words x y", "HSET h f v g 12", "ZADD z 1.5 m 3.14 n inf o 1e20 p"):
        both(*words.split())
    both("SADD", "many", *map(str, range(1000)), "x")
    both("HSET", "wide", *(str(n) for n in range(4000)))
    both("ZADD", "long", *(str(n) for n in range(2000)))
    for key in "ints words h z many wide long s l b missing".split():
        replies = [client.call("TY.ELEMENTS", key) for client in both.clients]
        parts = [(sorted(map(repr, zip(reply[:-3:2], reply[1:-3:2]))), reply[-3:]) for reply in replies]
        assert parts[0] == parts[1], key
    for words in (("TY.SCAN",), ("TY.SCAN", "delete")):
        replies = [client.call(*words) for client in both.clients]
        parts = [(sorted(zip(reply[:-2:2], reply[1:-2:2])), reply[-2:]) for reply in replies]
        assert parts[0] == parts[1]
    assert both("DBSIZE") == 0


@pytest.mark.parametrize("ours_first", (True, False))
@pytest.mark.parametrize("aux", ((), ("aux2",)))
def test_files_cross(make_server, make_oracle, connect, ours_first, aux):
    """A file of the one is loaded by the other: values, expiries, databases, and what is no key."""
    if aux and not ours_first:
        pytest.skip("7.0.15 has no aux_save2")
    makers = (make_server, make_oracle) if ours_first else (make_oracle, make_server)
    first = load(makers[0], *aux)
    first.expected_files.add("dump.rdb")
    c = connect(to=first)
    for words in WORDS:
        c.call(*words.split())
    c.call("PEXPIREAT", "big", "99999999999999")
    c.call("SELECT", "7")
    c.call("TY.PUSH", "in seven", "x")
    c.call("TY.AUX", "before", "early words")
    c.call("TY.AUX", "after", "late words")
    c.ok("SAVE")
    second = makers[1]({"loadmodule": [path_of("types")], "enable-module-command": "yes"}, start=False)
    second.expected_files.add("dump.rdb")
    shutil.copy(first.file("dump.rdb"), second.file("dump.rdb"))
    second.start()
    d = connect(to=second)
    notes = sorted(d.call("TY.LOG"))
    assert [note for note in notes if note.startswith(b"load")] == [
        b"load b db 0", b"load big db 0", b"load in seven db 7", b"load lone db 0"]
    assert ours_first or (b"aux 1 after 0 keys" in notes and b"aux 2 after 6 keys" in notes)
    assert d.call("TY.AUX", "before") == b"early words" and d.call("TY.AUX", "after") == b"late words"
    assert d.call("PEXPIRETIME", "big") == 99999999999999
    c.call("SELECT", "0")
    for key in ("b", "big", "lone"):
        assert d.call("TY.ALL", key) == c.call("TY.ALL", key)
    assert d.call("TY.PLAIN", "p") == -12
    assert os.path.exists(second.file("dump.rdb"))


@pytest.mark.parametrize("ours_first", (True, False))
def test_logs_cross(make_server, make_oracle, connect, ours_first):
    """Rewritten as commands: EmitAOF."""
    makers = (make_server, make_oracle) if ours_first else (make_oracle, make_server)
    options = {"appendonly": "yes", "aof-use-rdb-preamble": "no"}
    first = load(makers[0], **options)
    first.expected_files.add("appendonlydir")
    c = connect(to=first)
    for words in WORDS:
        c.call(*words.split())
    c.call("PEXPIREAT", "big", "99999999999999")
    c.call("BGREWRITEAOF")
    eventually(lambda: all(word in c.call("INFO", "persistence") for word in
                           (b"aof_rewrite_in_progress:0", b"aof_rewrite_scheduled:0")), "the log is rewritten")
    expected = {key: c.call("TY.ALL", key) for key in ("b", "big", "lone")}
    first.stop()
    second = makers[1]({"loadmodule": [path_of("types")], **options}, start=False)
    second.expected_files.add("appendonlydir")
    shutil.copytree(first.file("appendonlydir"), second.file("appendonlydir"))
    second.start()
    d = connect(to=second)
    assert {key: d.call("TY.ALL", key) for key in expected} == expected
    assert d.call("TY.PLAIN", "p") == -12
    assert d.call("PEXPIRETIME", "big") == 99999999999999


@pytest.mark.parametrize("ours_first", (True, False))
def test_replication_crosses(make_server, make_oracle, connect, ours_first):
    """A full sync with values and data of modules, then their commands, either way."""
    makers = (make_server, make_oracle) if ours_first else (make_oracle, make_server)
    primary = load(makers[0], **{"repl-diskless-sync-delay": "0"})
    primary.expected_files.add("dump.rdb")
    c = connect(to=primary)
    for words in WORDS:
        c.call(*words.split())
    c.call("TY.AUX", "before", "early words")
    replica = load(makers[1], replicaof="127.0.0.1 %d" % primary.port)
    replica.expected_files.add("dump.rdb")
    d = connect(to=replica)
    eventually(lambda: b"master_link_status:up" in d.call("INFO", "replication"), "the link")
    c.call("TY.PUSH", "b", "later")
    eventually(lambda: d.call("TY.ALL", "b") == c.call("TY.ALL", "b"), "the replica has it")
    assert d.call("TY.AUX", "before") == b"early words"
    assert d.call("TY.SEE", "p") == -12
