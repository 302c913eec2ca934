"""Streams where the oracle cannot be asked: IDs by the clock, waiting readers, several threads, key
events, what is of 7.2, and what a stream is to the rest of the server."""

import threading
import time

import pytest

from lib import commands
from lib.bounds import eventually
from lib.resp import Error, encode


@pytest.fixture
def blocked(client, connect):
    """blocked("XREAD", ...): a client that waits already when this returns."""

    def make(*args, conn=None):
        conn = conn or connect()
        number = conn.call("CLIENT", "ID")
        conn.send(*args)
        eventually(lambda: b"flags=b" in client.call("CLIENT", "LIST", "ID", str(number)),
                   "the client waits")
        conn.client_id = number
        return conn

    return make


def number(entry_id):
    ms, seq = entry_id.split(b"-")
    return int(ms), int(seq)


def digest(client, key):
    return client.call("DEBUG", "DIGEST-VALUE", key)[0]


# ---- IDs ----


@pytest.mark.any_threads
def test_ids_by_the_clock(client, ours_only):
    before = time.time() * 1000
    ids = [number(client.call("XADD", "s", "*", "f", "v")) for _ in range(50)]
    after = time.time() * 1000
    assert ids == sorted(set(ids))
    # The turn's clock may be a little behind.
    assert before - 1000 <= ids[0][0] and ids[-1][0] <= after + 1


@pytest.mark.any_threads
def test_ids_when_the_clock_is_behind(client):
    assert client.call("XADD", "s", "99999999999999-18446744073709551614", "f", "v")
    assert client.call("XADD", "s", "*", "f", "v") == b"99999999999999-18446744073709551615"
    assert client.call("XADD", "s", "*", "f", "v") == b"100000000000000-0"
    assert isinstance(client.call("XADD", "s", "99999999999999-*", "f", "v"), Error)


def test_writers_on_all_threads(client, connect):
    """Each reply is an ID of its own, and in a writer's own order."""
    writers, entries = 6, 300
    replies = [[] for _ in range(writers)]
    conns = [connect() for _ in range(writers)]

    def write(w):
        for start in range(0, entries, 20):
            conns[w].send_raw(b"".join(encode("XADD", "s", "*", "w", str(w), "i", str(i))
                                       for i in range(start, start + 20)))
            replies[w] += [number(conns[w].read()) for _ in range(20)]

    threads = [threading.Thread(target=write, args=(w,)) for w in range(writers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(r == sorted(r) for r in replies)
    assert len({i for r in replies for i in r}) == writers * entries
    found = client.call("XRANGE", "s", "-", "+")
    assert [number(e[0]) for e in found] == sorted(i for r in replies for i in r)
    for w in range(writers):
        mine = [e[1] for e in found if e[1][1] == b"%d" % w]
        assert [int(e[3]) for e in mine] == list(range(entries))


# ---- waiting ----


def test_the_end_is_where_it_was_when_waiting_began(client, blocked):
    client.call("XADD", "s", "5-0", "f", "old")
    waiter = blocked("XREAD", "BLOCK", "0", "STREAMS", "other", "s", "$", "$")
    assert client.call("XADD", "s", "6-0", "f", "v") == b"6-0"
    assert waiter.read() == [[b"s", [[b"6-0", [b"f", b"v"]]]]]


def test_a_transaction_is_read_whole(client, blocked):
    waiter = blocked("XREAD", "BLOCK", "0", "STREAMS", "a", "b", "$", "0")
    client.ok("MULTI")
    for words in (["a", "1-1", "f", "1"], ["b", "2-2", "f", "2"], ["a", "3-3", "f", "3"]):
        client.call("XADD", *words)
    client.call("EXEC")
    assert waiter.read() == [[b"a", [[b"1-1", [b"f", b"1"]], [b"3-3", [b"f", b"3"]]]],
                             [b"b", [[b"2-2", [b"f", b"2"]]]]]


def test_waiting_in_resp3(client, connect, blocked):
    conn = connect(3)
    waiter = blocked("XREAD", "COUNT", "1", "BLOCK", "0", "STREAMS", "s", "0", conn=conn)
    client.call("XADD", "s", "1-1", "f", "v")
    reply = waiter.read()
    assert [list(pair) for pair in reply] == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    assert conn.call("XREAD", "BLOCK", "1", "STREAMS", "s", "$") is None


def test_all_readers_are_served(client, blocked):
    waiters = [blocked("XREAD", "BLOCK", "0", "STREAMS", "s", "$") for _ in range(8)]
    client.call("XADD", "s", "1-1", "f", "v")
    assert all(w.read() == [[b"s", [[b"1-1", [b"f", b"v"]]]]] for w in waiters)


def test_nothing_comes_before_the_id(client, blocked):
    """Entries up to the ID, a key of another type, a deleted key: all are nothing to read."""
    waiter = blocked("XREAD", "BLOCK", "0", "STREAMS", "s", "5-5")
    client.call("XADD", "s", "5-4", "f", "v")
    client.call("XADD", "s", "5-5", "f", "v")
    client.ok("SET", "s", "x")
    client.call("DEL", "s")
    client.call("XADD", "s", "1-1", "f", "v")
    assert waiter.nothing_comes(0.05)
    client.call("XADD", "s", "5-6", "f", "v")
    assert waiter.read() == [[b"s", [[b"5-6", [b"f", b"v"]]]]]


def test_waiting_ends_with_the_time(connect):
    assert connect().call("XREAD", "BLOCK", "20", "STREAMS", "s", "$") is None
    assert isinstance(connect().call("XREAD", "BLOCK", "-1", "STREAMS", "s", "$"), Error)
    assert isinstance(connect().call("XREAD", "BLOCK", "1.5", "STREAMS", "s", "$"), Error)


def test_nobody_waits_in_a_transaction(client):
    client.ok("MULTI")
    client.call("XREAD", "BLOCK", "0", "STREAMS", "s", "$")
    assert client.call("EXEC") == [None]


def test_another_way_to_a_stream(client, blocked):
    client.call("XADD", "from", "7-7", "f", "v")
    waiter = blocked("XREAD", "BLOCK", "0", "STREAMS", "s", "0")
    client.ok("RENAME", "from", "s")
    assert waiter.read() == [[b"s", [[b"7-7", [b"f", b"v"]]]]]


def test_followers_miss_nothing(client, connect):
    """Readers that go on from the last ID they saw get every entry once, in order, while several
    connections write and the stream's nodes are small."""
    client.ok("CONFIG", "SET", "stream-node-max-entries", "3")
    writers, entries, readers = 3, 150, 3
    conns = [connect() for _ in range(writers)]
    seen = [[] for _ in range(readers)]
    tails = [connect() for _ in range(readers)]

    def write(w):
        for i in range(entries):
            conns[w].call("XADD", "s", "*", "w", str(w), "i", str(i))

    def follow(r):
        last = b"0-0"
        while len(seen[r]) < writers * entries:
            reply = tails[r].call("XREAD", "COUNT", "7", "BLOCK", "0", "STREAMS", "s", last)
            seen[r] += [e[0] for e in reply[0][1]]
            last = seen[r][-1]

    threads = [threading.Thread(target=write, args=(w,)) for w in range(writers)] + \
        [threading.Thread(target=follow, args=(r,)) for r in range(readers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    wanted = [e[0] for e in client.call("XRANGE", "s", "-", "+")]
    assert len(wanted) == writers * entries
    assert all(s == wanted for s in seen)


# ---- events ----


@pytest.mark.any_threads
def test_events(client, connect, ours_only):
    client.ok("CONFIG", "SET", "notify-keyspace-events", "Etg")
    listener = connect()
    listener.call("PSUBSCRIBE", "__keyevent@0__:*")

    def events(*args):
        client.call(*args)
        client.call("PUBLISH", "__keyevent@0__:end", "")
        found = []
        while True:
            channel = listener.read()[2].split(b":", 1)[1].decode()
            if channel == "end":
                return " ".join(found)
            found.append(channel)

    assert events("XADD", "s", "1-1", "f", "v") == "xadd"
    assert events("XADD", "s", "1-1", "f", "v") == ""
    assert events("XADD", "none", "NOMKSTREAM", "*", "f", "v") == ""
    assert events("XADD", "s", "MAXLEN", "2", "2-1", "f", "v") == "xadd"
    assert events("XADD", "s", "MAXLEN", "1", "3-1", "f", "v") == "xadd xtrim"
    assert events("XTRIM", "s", "MAXLEN", "1") == ""
    assert events("XDEL", "s", "1-1") == ""
    assert events("XDEL", "s", "3-1", "3-1") == "xdel"
    assert events("XSETID", "s", "9-9") == "xsetid"
    assert events("XADD", "s", "10-0", "f", "v") == "xadd"
    assert events("XTRIM", "s", "MAXLEN", "0") == "xtrim"
    assert client.call("EXISTS", "s") == 1
    assert events("DEL", "s") == "del"


# ---- what is of 7.2 ----


@pytest.mark.any_threads
def test_no_id_before_a_deleted_one(client, ours_only):
    for i in ("1-1", "2-2", "3-3"):
        client.call("XADD", "s", i, "f", "v")
    client.call("XDEL", "s", "2-2", "3-3")
    refused = b"ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
    assert client.call("XSETID", "s", "2-2") == refused
    assert client.call("XSETID", "s", "0-1") == refused
    client.ok("XSETID", "s", "3-3", "ENTRIESADDED", "1", "MAXDELETEDID", "3-2")
    client.ok("XSETID", "s", "3-2")
    assert client.call("XADD", "s", "3-*", "f", "v") == b"3-3"


# ---- what a stream is to the server ----


@pytest.mark.any_threads
def test_digest_is_of_the_content(client, ours_only):
    for key, entries, size in (("a", "100", "4096"), ("b", "1", "4096"), ("c", "7", "50")):
        client.ok("CONFIG", "SET", "stream-node-max-entries", entries)
        client.ok("CONFIG", "SET", "stream-node-max-bytes", size)
        for i in range(1, 60):
            client.call("XADD", key, str(i), "f%d" % (i % 3), str(i), "g", "v" * i)
        client.call("XDEL", key, "7", "8", "59")
    assert digest(client, "a") == digest(client, "b") == digest(client, "c") != b"0" * 40
    assert client.call("COPY", "a", "d") == 1
    assert digest(client, "d") == digest(client, "a")
    client.call("XADD", "d", "*", "f", "v")
    assert digest(client, "d") != digest(client, "a")
    client.call("XDEL", "b", "20")
    assert digest(client, "b") != digest(client, "a")


@pytest.mark.any_threads
def test_kinds_and_sizes(client, ours_only):
    sizes = []
    for i in range(1, 401):
        client.call("XADD", "s", str(i), "field", "value-%d" % i)
        if i % 100 == 0:
            sizes.append(client.call("MEMORY", "USAGE", "s", "SAMPLES", "0"))
    assert sizes == sorted(sizes) and 400 * 12 < sizes[-1] < 400 * 40
    sampled = client.call("MEMORY", "USAGE", "s", "SAMPLES", "2")
    assert abs(sampled - sizes[-1]) < 1000
    assert client.call("OBJECT", "ENCODING", "s") == b"stream"
    assert client.call("TYPE", "s") == "stream" or client.call("TYPE", "s") == b"stream"
    client.ok("SET", "t", "x")
    assert client.call("SCAN", "0", "TYPE", "stream", "COUNT", "100")[1] == [b"s"]
    client.call("XTRIM", "s", "MAXLEN", "0")
    assert client.call("MEMORY", "USAGE", "s") < 500
    assert client.call("XINFO", "STREAM", "s")[1] == 0


@pytest.mark.any_threads
def test_wrong_type(client):
    """Every command refuses a string at its key."""
    client.ok("SET", "str", "x")
    answers = {}
    for name, words in commands.STREAM.items():
        call = ["str" if w in ("k", "k1", "k2") else w for w in words.split()]
        if call and call[0] != "HELP":
            answers[name] = client.call(*name.split("|"), *call)
    assert len(answers) >= 7
    assert [n for n, a in answers.items()
            if not (isinstance(a, Error) and a.startswith(b"WRONGTYPE"))] == []


@pytest.mark.any_threads
def test_many_streams_in_one_read(client):
    """More sources than have room on the stack, with some missing and one twice."""
    keys = ["s%d" % i for i in range(60)] + ["s4"]
    for key in keys[::2]:
        client.call("XADD", key, "5-%d" % len(key), "f", key)
    reply = client.call("XREAD", "COUNT", "1", "STREAMS", *keys, *(["0"] * len(keys)))
    assert [r[0].decode() for r in reply] == keys[::2]
    assert all(r[1][0][1] == [b"f", r[0]] for r in reply)
