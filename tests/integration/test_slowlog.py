"""SLOWLOG."""

import time

import pytest


@pytest.fixture
def slow(client):
    client.ok("CONFIG", "SET", "slowlog-log-slower-than", "0")
    client.ok("CONFIG", "SET", "slowlog-max-len", "128")
    client.ok("SLOWLOG", "RESET")
    return client


def test_entries(slow):
    slow.ok("CLIENT", "SETNAME", "me")
    slow.ok("SET", "k", "v")
    entry = slow.call("SLOWLOG", "GET", "1")[0]
    assert len(entry) == 6
    identity, when, duration, words, peer, name = entry
    assert isinstance(identity, int) and abs(when - time.time()) < 30 and duration >= 0
    assert words == [b"SET", b"k", b"v"]
    assert peer == b"%s:%d" % (slow.sock.getsockname()[0].encode(), slow.sock.getsockname()[1])
    assert name == b"me"


def test_commands_in_slices(slow, connect):
    """A command that goes in slices is noted once, with its words, when it has ended."""
    names = [b"k%d" % i for i in range(30000)]
    for begin in range(0, len(names), 5000):
        slow.call("MSET", *[word for name in names[begin:begin + 5000] for word in (name, b"v")])
        slow.call("SADD", "a", *names[begin:begin + 5000])
        slow.call("SADD", "b", *names[begin:begin + 5000])
    slow.ok("SLOWLOG", "RESET")
    slow.ok("CONFIG", "RESETSTAT")
    assert len(slow.call("KEYS", "k*")) == len(names)
    assert slow.call("SINTERCARD", "2", "a", "b") == len(names)
    entries = slow.call("SLOWLOG", "GET", "-1")
    assert [e[3] for e in entries[:2]] == [[b"SINTERCARD", b"2", b"a", b"b"], [b"KEYS", b"k*"]]
    stats = slow.call("INFO", "commandstats")
    assert b"cmdstat_keys:calls=1," in stats and b"cmdstat_sintercard:calls=1," in stats


def test_newest_first_and_ids_grow(slow):
    for n in range(5):
        slow.ok("SET", "k", n)
    entries = [e for e in slow.call("SLOWLOG", "GET", "-1") if e[3][0] == b"SET"]
    assert [e[3][2] for e in entries] == [b"4", b"3", b"2", b"1", b"0"]
    identities = [e[0] for e in entries]
    assert identities == sorted(identities, reverse=True)


def test_length_and_reset(slow):
    slow.pipeline([["PING"]] * 20)
    assert slow.call("SLOWLOG", "LEN") >= 20
    assert len(slow.call("SLOWLOG", "GET")) == 10
    slow.ok("CONFIG", "SET", "slowlog-max-len", "3")
    slow.pipeline([["PING"]] * 20)
    assert len(slow.call("SLOWLOG", "GET", "-1")) == 3
    slow.ok("CONFIG", "SET", "slowlog-log-slower-than", "-1")
    slow.ok("SLOWLOG", "RESET")
    assert slow.call("SLOWLOG", "LEN") == 0
    assert slow.call("SLOWLOG", "GET", "0") == []


def test_long_commands_are_cut(slow):
    slow.ok("MSET", *["x" * 300] * 100)
    words = slow.call("SLOWLOG", "GET", "1")[0][3]
    assert len(words) == 32
    assert words[1] == b"x" * 128 + b"... (172 more bytes)"
    assert words[31] == b"... (70 more arguments)"


def test_secrets_stay_out(slow):
    slow.call("AUTH", "secret-word")
    slow.call("CONFIG", "SET", "requirepass", "")
    for entry in slow.call("SLOWLOG", "GET", "-1"):
        assert b"secret-word" not in b" ".join(entry[3])


def test_slower_than_the_threshold_only(client):
    client.ok("CONFIG", "SET", "slowlog-log-slower-than", "20000")
    client.ok("SLOWLOG", "RESET")
    client.ok("SET", "k", "v")
    client.ok("DEBUG", "SLEEP", "0.05")
    words = [e[3] for e in client.call("SLOWLOG", "GET", "-1")]
    assert [b"DEBUG", b"SLEEP", b"0.05"] in words
    entry = [e for e in client.call("SLOWLOG", "GET", "-1") if e[3][0] == b"DEBUG"][0]
    assert entry[2] >= 50_000


def test_commands_of_all_threads(slow, connect, threads):
    for number in range(4 * threads):
        connect().call("ECHO", "from-%d" % number)
    words = {e[3][1] for e in slow.call("SLOWLOG", "GET", "-1") if e[3][0] == b"ECHO"}
    assert words == {b"from-%d" % n for n in range(4 * threads)}
