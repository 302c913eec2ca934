"""CLIENT PAUSE and UNPAUSE hold back clients of every thread."""

import hashlib
import time

import pytest

from lib.bounds import eventually
from lib.server import parse_info

pytestmark = pytest.mark.one_thread("those that wait and the one that ends it share a thread")


@pytest.fixture
def spread(connect, threads):
    """Clients on every thread."""
    return [connect() for _ in range(3 * threads)]


def test_pause_holds_everything(client, spread):
    """Also UNPAUSE, so it ends by itself.  The lower bound is the promise."""
    client.ok("SET", "k", "old")
    start = time.monotonic()
    client.ok("CLIENT", "PAUSE", "400")
    for other in spread:
        other.send("GET", "k")
    for other in spread:
        assert other.read() == b"old"
        assert time.monotonic() - start >= 0.395


def test_pause_of_writes_lets_reads_through(client, spread):
    client.ok("SET", "k", "old")
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    assert [other.call("GET", "k") for other in spread] == [b"old"] * len(spread)
    for number, other in enumerate(spread):
        other.send("APPEND", "k", "+")
    assert all(other.nothing_comes(0.05) for other in spread)
    assert client.call("GET", "k") == b"old"
    client.ok("CLIENT", "UNPAUSE")
    assert sorted(other.read() for other in spread) == list(range(4, 4 + len(spread)))


# A script that says it does not write runs at once, one that may write waits, and so does one that says nothing.
LIBRARY = """#!lua name=paused
redis.register_function('may', function() return 'ran' end)
redis.register_function{function_name='no', flags={'no-writes'}, callback=function() return 'ran' end}"""
NO_WRITES = "#!lua flags=no-writes\nreturn 'ran'"
MAY_WRITE = "#!lua\nreturn 'ran'"
PLAIN = "return 'ran'"
AT_ONCE = [("EVAL", NO_WRITES, "0"), ("EVALSHA", NO_WRITES, "0"), ("EVAL_RO", NO_WRITES, "0"), ("EVAL_RO", PLAIN, "0"),
           ("EVALSHA_RO", PLAIN, "0"), ("FCALL", "no", "0"), ("FCALL", "NO", "0"), ("FCALL_RO", "no", "0"),
           ("GET", "k"), ("EVAL", NO_WRITES + " .. redis.call('get', 'nokey')", "0")]
LATER = [("EVAL", PLAIN, "0"), ("EVAL", MAY_WRITE, "0"), ("EVAL_RO", MAY_WRITE, "0"), ("EVALSHA", PLAIN, "0"),
         ("EVALSHA", "0" * 40, "0"),
         ("FCALL", "may", "0"), ("FCALL", "nosuch", "0"), ("PFCOUNT", "nokey"), ("PUBLISH", "c", "m"),
         ("SPUBLISH", "c", "m"), ("EVAL", "#!lua flags=nosuch\nreturn 1", "0")]


def by_sha(words):
    script = words[1].encode()
    is_code = words[0].startswith("EVALSHA") and b"return" in script
    return (words[0], hashlib.sha1(script).hexdigest(), words[2]) if is_code else words


@pytest.mark.parametrize("which", ["server", "oracle"])
def test_scripts_that_do_not_write_run_while_writes_are_paused(request, which, connect):
    server = request.getfixturevalue(which)
    client = connect(to=server)
    client.call("FUNCTION", "LOAD", "REPLACE", LIBRARY)
    for script in (NO_WRITES, PLAIN):
        client.call("SCRIPT", "LOAD", script)
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    try:
        for words in AT_ONCE[:8]:
            client.ok("MULTI")
            assert client.call(*by_sha(words)) == b"QUEUED"
            assert client.call("EXEC") == [b"ran"]
        queuing = connect(to=server)
        queuing.ok("MULTI")
        queuing.send("EVAL", PLAIN, "0")
        at_once, later = [connect(to=server) for _ in AT_ONCE], [connect(to=server) for _ in LATER]
        for c, words in zip(at_once + later, AT_ONCE + LATER):
            c.send(*by_sha(words))
        for c, words in zip(at_once, AT_ONCE):
            assert c.read() == b"ran" or words not in AT_ONCE[:8], words
        assert queuing.nothing_comes(0.02)
        for c, words in zip(later, LATER):
            assert c.nothing_comes(0.002), words
    finally:
        client.ok("CLIENT", "UNPAUSE")
    for c in later:
        c.read()
    assert queuing.read() == b"QUEUED"
    client.ok("FUNCTION", "FLUSH")


def test_pause_of_writes_ends_by_itself(client, connect):
    other = connect()
    start = time.monotonic()
    client.ok("CLIENT", "PAUSE", "100", "WRITE")
    other.ok("SET", "k", "v")
    assert time.monotonic() - start >= 0.095


def test_a_held_pipeline_keeps_its_order(client, connect):
    other = connect()
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    other.send_raw(b"PING\r\nSET k 1\r\nGET k\r\nINCR k\r\nPING\r\n")
    assert other.read() == b"PONG"
    assert other.nothing_comes(0.05)
    client.ok("CLIENT", "UNPAUSE")
    assert [other.read() for _ in range(4)] == [b"OK", b"1", 2, b"PONG"]


def test_a_held_client_can_be_killed_and_can_leave(client, connect):
    leaving, killed = connect(), connect()
    name = str(killed.call("CLIENT", "ID"))
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    leaving.send("SET", "left", "1")
    killed.send("SET", "killed", "1")
    assert killed.nothing_comes(0.05)
    leaving.close()
    assert client.call("CLIENT", "KILL", "ID", name) == 1
    assert killed.is_closed()
    client.ok("CLIENT", "UNPAUSE")
    eventually(lambda: client.call("EXISTS", "killed") == 0, "the killed client's write is gone")


def test_expiry_stands_still_while_writes_are_paused(client):
    """Logically gone, yet nothing is deleted that would have to be propagated."""
    client.ok("SET", "k", "v", "PX", "50")
    client.ok("CLIENT", "PAUSE", "60000", "WRITE")
    eventually(lambda: client.call("GET", "k") is None, "the key is gone for readers")
    client.ok("CLIENT", "UNPAUSE")
    assert client.call("EXISTS", "k") == 0


@pytest.mark.parametrize("kind", ["WRITE", "ALL"])
def test_nothing_is_deleted_while_clients_are_paused(client, connect, kind):
    """Neither what has expired nor what would be evicted; afterwards both."""
    client.ok("SET", "other", "v")
    client.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")

    def paused():
        """Once more where the key's time was over before it began."""
        client.ok("CONFIG", "RESETSTAT")
        lasts_ms = "60000" if kind == "WRITE" else "1500"
        client.pipeline([["SET", "k", "v", "PX", "30"], ["CLIENT", "PAUSE", lasts_ms, kind]])
        if kind == "ALL" or parse_info(client.call("INFO", "stats"))["expired_keys"] == "0":
            return True
        client.ok("CLIENT", "UNPAUSE")
        return False
    eventually(paused, "paused before it is deleted")
    reader = connect()
    if kind == "WRITE":
        client.ok("CONFIG", "SET", "maxmemory", "1")
        for _ in range(30):
            assert reader.call("GET", "other") == b"v"
            assert reader.call("GET", "k") in (None, b"v")
        eventually(lambda: reader.call("GET", "k") is None, "its time is over")
        stats = parse_info(reader.call("INFO", "stats"))
        assert (stats["expired_keys"], stats["evicted_keys"]) == ("0", "0")
        client.ok("CLIENT", "UNPAUSE")
    else:
        reader.send("GET", "k")
    eventually(lambda: parse_info(client.call("INFO", "stats"))["expired_keys"] == "1",
               "the expired key is deleted")
    if kind == "WRITE":
        eventually(lambda: client.call("DBSIZE") == 0, "the other one is evicted")
