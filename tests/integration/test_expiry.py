"""Expiry: exact to the millisecond, gone at once, reclaimed without being asked for."""

import threading
import time

import pytest

from lib.bounds import eventually
from lib.server import parse_info


def dbsize(client):
    return client.call("DBSIZE")


def expired(client):
    return int(parse_info(client.call("INFO", "stats"))["expired_keys"])


def test_a_key_is_gone_when_its_time_has_come(client):
    client.ok("SET", "k", "v", "PX", "30")
    eventually(lambda: client.call("GET", "k") is None, "the key is gone")
    assert client.call("EXISTS", "k") == 0
    assert client.call("TTL", "k") == -2
    assert client.call("PTTL", "k") == -2
    assert client.call("TYPE", "k") == b"none"


def test_ttl_never_exceeds_what_was_set(client):
    client.ok("SET", "k", "v", "PX", "500000")
    assert 0 < client.call("PTTL", "k") <= 500000
    client.ok("SET", "k", "v", "EX", "500")
    assert 0 < client.call("TTL", "k") <= 500
    client.ok("SET", "k", "v", "EXAT", "4000000000")
    assert client.call("EXPIRETIME", "k") == 4000000000
    assert client.call("PEXPIRETIME", "k") == 4000000000000
    client.ok("SET", "k", "v", "PXAT", "4000000000123")
    assert client.call("PEXPIRETIME", "k") == 4000000000123


def test_a_time_in_the_past_deletes_at_once(client):
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    for words in (["EXPIRE", "k", "-1"], ["PEXPIRE", "k", "0"], ["EXPIREAT", "k", "1"],
                  ["PEXPIREAT", "k", "1"], ["PEXPIREAT", "k", "-1"]):
        client.ok("SET", "k", "v")
        assert client.call(*words) == 1
        assert dbsize(client) == 0


@pytest.mark.parametrize("read", [
    ["GET", "k"], ["STRLEN", "k"], ["EXISTS", "k"], ["TTL", "k"], ["TYPE", "k"],
    ["GETRANGE", "k", "0", "-1"], ["MGET", "k"], ["OBJECT", "ENCODING", "k"], ["TOUCH", "k"],
    ["LCS", "k", "k"], ["PERSIST", "k"], ["RENAME", "k", "x"], ["COPY", "k", "x"], ["DEL", "k"],
    ["UNLINK", "k"], ["EXPIRE", "k", "10"], ["GETDEL", "k"], ["GETEX", "k"], ["MOVE", "k", "1"],
    ["APPEND", "k", "new"], ["INCR", "k"], ["SETNX", "k", "new"], ["SETRANGE", "k", "1", "new"],
    ["SET", "k", "new", "NX"], ["SET", "k", "new", "XX"], ["SET", "k", "new", "GET"],
    ["SET", "k", "new", "KEEPTTL"], ["GETSET", "k", "new"], ["MSETNX", "k", "new"],
    ["RENAMENX", "other", "k"], ["RANDOMKEY"], ["KEYS", "*"], ["SCAN", "0"], ["DUMP", "k"],
    ["INCRBYFLOAT", "k", "1"], ["PEXPIRETIME", "k"],
], ids=" ".join)
def test_an_expired_key_is_as_if_it_were_not_there(client, oracle, needs, read):
    """Before anything has reclaimed it, by every command that could notice."""
    needs(read[0])
    with oracle.connect() as other:
        replies = []
        for c in (client, other):
            c.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            c.ok("SET", "k", "12", "PX", "1")
            time.sleep(0.005)
            replies.append([c.call(*read), c.call("GET", "k"), c.call("PTTL", "k"),
                            c.call("EXISTS", "other", "x")])
            c.ok("DEBUG", "SET-ACTIVE-EXPIRE", "1")
    assert replies[0] == replies[1]


def test_memory_usage_of_an_expired_key(client, ours_only):
    """The oracle still measures what has not been reclaimed; here a key that is gone is gone."""
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    client.ok("SET", "k", "12", "PX", "1")
    time.sleep(0.005)
    assert client.call("MEMORY", "USAGE", "k") is None


def test_reclaimed_without_access(client):
    before = expired(client)
    client.pipeline([["SET", "k%d" % n, "v", "PX", "20"] for n in range(3000)])
    client.ok("SET", "stays", "v", "EX", "1000")
    client.ok("SET", "always", "v")
    eventually(lambda: dbsize(client) == 2, "3000 expired keys are reclaimed")
    eventually(lambda: expired(client) - before == 3000, "they are counted")
    assert b"db0:keys=2,expires=1," in client.call("INFO", "keyspace")


def test_reclaimed_in_every_database(client):
    for db in (0, 1, 7, 15):
        client.ok("SELECT", db)
        client.pipeline([["SET", "k%d" % n, "v", "PX", "10"] for n in range(200)])
    for db in (0, 1, 7, 15):
        client.ok("SELECT", db)
        eventually(lambda: dbsize(client) == 0, "database %d is empty" % db)


def test_active_expiry_can_be_switched_off(client):
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    client.pipeline([["SET", "k%d" % n, "v", "PX", "1"] for n in range(100)])
    time.sleep(0.3)
    assert dbsize(client) == 100
    assert client.call("GET", "k5") is None
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "1")
    eventually(lambda: dbsize(client) == 0, "the rest is reclaimed")


def test_reads_reclaim_what_they_find_expired(client):
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    before = expired(client)
    client.pipeline([["SET", "k%d" % n, "v", "PX", "1"] for n in range(50)])
    time.sleep(0.005)
    client.call("MGET", *["k%d" % n for n in range(50)])
    eventually(lambda: dbsize(client) == 0, "what the read found expired is gone")
    eventually(lambda: expired(client) - before == 50, "it is counted")


def test_persist_and_overwriting_take_the_time_away(client):
    for words in (["PERSIST", "k"], ["SET", "k", "w"], ["GETSET", "k", "w"], ["MSET", "k", "w"],
                  ["GETEX", "k", "PERSIST"]):
        client.ok("SET", "k", "v", "PX", "100000")
        client.call(*words)
        assert client.call("PTTL", "k") == -1, words


def test_changing_in_place_keeps_the_time(client):
    for words in (["APPEND", "k", "1"], ["INCR", "k"], ["SETRANGE", "k", "0", "2"],
                  ["INCRBYFLOAT", "k", "1"], ["SET", "k", "5", "KEEPTTL"], ["DECRBY", "k", "3"],
                  ["APPEND", "k", "x" * 5000], ["GETEX", "k"]):
        client.ok("SET", "k", "10", "PX", "100000")
        client.call(*words)
        assert 0 < client.call("PTTL", "k") <= 100000, words


def test_rename_copy_and_move_take_the_time_along(client):
    client.ok("SET", "a", "v", "EX", "1000")
    client.ok("RENAME", "a", "b")
    assert 0 < client.call("TTL", "b") <= 1000
    assert client.call("COPY", "b", "c") == 1
    assert 0 < client.call("TTL", "c") <= 1000
    assert client.call("MOVE", "c", "1") == 1
    client.ok("SELECT", "1")
    assert 0 < client.call("TTL", "c") <= 1000
    client.ok("SET", "plain", "v")
    client.ok("SET", "timed", "v", "EX", "1000")
    client.ok("RENAME", "plain", "timed")
    assert client.call("TTL", "timed") == -1


@pytest.mark.parametrize("first,option,second,expected,left", [
    (None, "NX", 100, 1, 100), (50, "NX", 100, 0, 50), (None, "XX", 100, 0, -1),
    (50, "XX", 100, 1, 100), (50, "GT", 100, 1, 100), (100, "GT", 50, 0, 100),
    (None, "GT", 50, 0, -1), (50, "LT", 100, 0, 50), (100, "LT", 50, 1, 50),
    (None, "LT", 50, 1, 50)])
def test_conditions(client, first, option, second, expected, left):
    for command, scale in (("EXPIRE", 1000), ("PEXPIRE", 1)):
        client.ok("SET", "k", "v")
        unit = 1000 if command == "EXPIRE" else 1_000_000
        if first:
            client.call(command, "k", first * unit)
        assert client.call(command, "k", second * unit, option) == expected
        got = client.call("PTTL", "k")
        wanted = left * unit * scale if left > 0 else left
        assert wanted - 20_000 * scale < got <= wanted if left > 0 else got == wanted


def test_once_gone_never_seen_again(connect, server):
    """No read returns a value after any read, on any thread, saw it gone."""
    writer = connect()
    trouble = []
    for turn in range(15):
        key = "k%d" % turn
        gone_at = []
        start = threading.Barrier(5)

        def reader(k=key, gone=gone_at, barrier=start):
            with server.connect() as c:
                barrier.wait()
                deadline = time.monotonic() + 10
                while time.monotonic() < deadline:
                    called = time.monotonic_ns()
                    value = c.call("GET", k)
                    if value is None:
                        gone.append(time.monotonic_ns())
                        return
                    if gone and min(gone) < called:
                        trouble.append("%s read %r after another read saw it gone" % (k, value))
                        return

        writer.ok("SET", key, "v", "PX", "40")
        threads = [threading.Thread(target=reader) for _ in range(4)]
        for thread in threads:
            thread.start()
        start.wait()
        for thread in threads:
            thread.join()
        assert len(gone_at) == 4 or trouble
    assert not trouble


def test_keys_that_expire_under_a_pipeline(client):
    """Within one batch a key may expire, but it does not come back."""
    client.ok("SET", "k", "v", "PX", "5")
    replies = client.pipeline([["GET", "k"]] * 20_000)
    gone = replies.index(None) if None in replies else len(replies)
    assert all(r == b"v" for r in replies[:gone])
    assert all(r is None for r in replies[gone:])


def test_far_and_huge_times(client, oracle):
    with oracle.connect() as other:
        for words in (["EXPIRE", "k", "9223372036854775"], ["PEXPIRE", "k", "9223372036854775000"],
                      ["EXPIREAT", "k", "9223372036854775"], ["SET", "k", "v", "PX", "9" * 18],
                      ["PEXPIREAT", "k", "9223372036854775807"], ["EXPIRE", "k", "9" * 16],
                      ["SET", "k", "v", "EXAT", "9223372036854775"], ["EXPIREAT", "k", "9" * 18]):
            for c in (client, other):
                c.ok("SET", "k", "v")
            assert client.call(*words) == other.call(*words), words
            assert abs(client.call("PEXPIRETIME", "k") - other.call("PEXPIRETIME", "k")) < 60_000
