"""OBJECT, MEMORY, DEBUG, LOLWUT, TIME: what public suites and tools lean on."""

import time

import pytest

from lib.resp import Error


@pytest.mark.parametrize("value,encoding", [
    ("1", b"int"), ("-9223372036854775808", b"int"), ("9223372036854775807", b"int"),
    ("9223372036854775808", b"embstr"), ("01", b"embstr"), (" 1", b"embstr"), ("+1", b"embstr"),
    ("-0", b"embstr"), ("", b"embstr"), ("x" * 44, b"embstr"), ("x" * 45, b"raw"),
    ("1" * 20, b"embstr"), ("1.5", b"embstr"), ("x" * 5000, b"raw")], ids=lambda v: str(v)[:20])
def test_encoding_of_strings(client, value, encoding):
    client.ok("SET", "k", value)
    assert client.call("OBJECT", "ENCODING", "k") == encoding


def test_encoding_after_changes(client, oracle):
    programs = [
        [["SET", "k", "12"], ["APPEND", "k", "3"]], [["SET", "k", "a"], ["APPEND", "k", "b"]],
        [["APPEND", "k", "12"]], [["SETRANGE", "k", "0", "12"]], [["INCR", "k"]],
        [["SET", "k", "12"], ["SETRANGE", "k", "0", "3"]], [["INCRBYFLOAT", "k", "1"]],
        [["INCRBYFLOAT", "k", "1.5"]], [["SET", "k", "x" * 50], ["SET", "k", "5"]],
        [["SET", "k", "5"], ["GETSET", "k", "6"]], [["SET", "a", "7"], ["COPY", "a", "k"]],
        [["SET", "a", "7"], ["RENAME", "a", "k"]], [["SETEX", "k", "100", "8"]],
        [["MSET", "k", "9"]], [["SETNX", "k", "9"]], [["SET", "k", "9", "GET"]],
        [["SET", "a", "x"], ["APPEND", "a", "y"], ["COPY", "a", "k"]]]
    with oracle.connect() as other:
        for program in programs:
            got = []
            for c in (client, other):
                c.ok("FLUSHALL")
                for words in program:
                    c.call(*words)
                got.append(c.call("OBJECT", "ENCODING", "k"))
            assert got[0] == got[1], program


def test_idletime_and_touch(client, connect, ours_only):
    client.ok("SET", "k", "text")
    assert 0 <= client.call("OBJECT", "IDLETIME", "k") < 100
    assert client.call("OBJECT", "IDLETIME", "missing") is None
    assert client.call("TOUCH", "k", "missing") == 1


def test_idletime_grows_and_no_touch_leaves_it(client, connect, ours_only):
    client.ok("SET", "k", "text")
    quiet = connect()
    quiet.ok("CLIENT", "NO-TOUCH", "ON")
    time.sleep(2.2)
    assert quiet.call("GET", "k") == b"text"
    assert client.call("OBJECT", "IDLETIME", "k") >= 1
    touched = time.monotonic()
    client.call("GET", "k")
    idle_s = client.call("OBJECT", "IDLETIME", "k")
    assert idle_s <= time.monotonic() - touched + 1


def test_memory_usage(client):
    assert client.call("MEMORY", "USAGE", "missing") is None
    last = 0
    for size in (10, 500, 5_000, 100_000, 5_000_000):
        client.ok("SET", "k", "x" * size)
        usage = client.call("MEMORY", "USAGE", "k")
        assert size <= usage <= 2 * size + 200 and usage > last
        last = usage
    assert client.call("MEMORY", "USAGE", "k", "SAMPLES", "0") == last


def test_memory_stats(connect):
    client = connect(3)
    client.ok("SET", "k", "v")
    stats = client.call("MEMORY", "STATS").as_dict()
    for name in (b"peak.allocated", b"total.allocated", b"startup.allocated", b"clients.normal",
                 b"keys.count", b"keys.bytes-per-key", b"dataset.bytes", b"fragmentation"):
        assert name in stats
    assert stats[b"keys.count"] == 1
    assert client.call("MEMORY", "DOCTOR") and client.call("MEMORY", "MALLOC-STATS")
    client.ok("MEMORY", "PURGE")


def test_digest_is_of_the_content(client, needs):
    empty = client.call("DEBUG", "DIGEST")
    assert empty == b"0" * 40
    client.ok("MSET", "a", "1", "b", "2")
    first = client.call("DEBUG", "DIGEST")
    assert first != empty and len(first) == 40
    client.ok("FLUSHALL")
    client.ok("MSET", "b", "2", "a", "1")
    assert client.call("DEBUG", "DIGEST") == first
    client.ok("SET", "a", "3")
    assert client.call("DEBUG", "DIGEST") != first
    one, two, none = client.call("DEBUG", "DIGEST-VALUE", "a", "b", "none")
    assert one != two and none == b"0" * 40
    client.ok("SET", "b", "3")
    one, two = client.call("DEBUG", "DIGEST-VALUE", "a", "b")
    assert one == two


def test_debug_sleep_blocks_and_returns(client):
    start = time.monotonic()
    client.ok("DEBUG", "SLEEP", "0.1")
    assert time.monotonic() - start >= 0.1


def test_debug_object(client):
    client.ok("SET", "k", "hello")
    text = client.call("DEBUG", "OBJECT", "k")
    assert text.startswith(b"Value at:") and b"encoding:embstr" in text and b"lru:" in text
    assert client.error("DEBUG", "OBJECT", "none") == b"ERR no such key"


def test_debug_error_and_log(client, server):
    assert client.error("DEBUG", "ERROR", "MYERR some text") == b"MYERR some text"
    client.ok("DEBUG", "LOG", "a line for the log")
    assert "a line for the log" in server.output()


def test_debug_stringmatch_len(client, ours_only):
    assert isinstance(client.call("DEBUG", "STRINGMATCH-LEN", "1000", "x*"), int)


def test_what_does_not_exist_is_an_error(client, ours_only):
    for words in (["DEBUG", "JMAP"], ["DEBUG", "NOTHING"], ["WAIT", "0", "0"],
                  ["LPUSH", "k", "x"], ["SUBSCRIBE", "c"], ["EVAL", "return 1", "0"],
                  ["MODULE", "LOAD", "/x.so"], ["BGSAVE"], ["REPLICAOF", "NO", "ONE"]):
        reply = client.call(*words)
        known = client.call("COMMAND", "INFO", words[0])[0]
        assert isinstance(reply, Error) or known is not None, words


def test_what_clients_ask_first(client):
    assert client.call("MODULE", "LIST") == []
    for words in (["CLUSTER", "SLOTS"], ["CLUSTER", "INFO"], ["CLUSTER", "NODES"]):
        assert client.error(*words) == b"ERR This instance has cluster support disabled"


def test_time(client):
    seconds, micros = client.call("TIME")
    assert abs(int(seconds) - time.time()) < 30 and 0 <= int(micros) < 1_000_000


def test_lolwut(client):
    assert b"ver" in client.call("LOLWUT")
    for version in ("5", "6", "99"):
        assert b"\n" in client.call("LOLWUT", "VERSION", version)


def test_keydb_commands(connect, ours_only):
    client = connect(2)
    client.ok("MSET", "a", "1", "b", "2")
    assert client.call("KEYDB.MEXISTS", "a", "none", "b") == [1, 0, 1]
    assert connect(3).call("KEYDB.MEXISTS", "a", "none") == [True, False]
    client.ok("LFENCE")
    assert client.call("EXPDEL", "a", "none") == 1
    assert client.call("EXISTS", "a", "b") == 1
    assert isinstance(client.call("OBJECT", "LASTMODIFIED", "b"), Error)
