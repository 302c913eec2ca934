"""Hashes: encodings and their options, walks, random fields, large values, many threads."""

import threading

import pytest

from lib.resp import Error
from lib.seeds import generator, seeds


def fill(client, key, count, prefix=b"f"):
    for start in range(0, count, 5000):
        client.call("HSET", key, *[w for n in range(start, min(start + 5000, count))
                                   for w in (b"%s%d" % (prefix, n), b"v%d" % n)])


def make(client, encoding, key="h", count=50):
    """A hash of `count` fields in that encoding."""
    if encoding == "hashtable":
        client.call("HSET", key, "long", "x" * 100)
    fill(client, key, count)
    if encoding == "hashtable":
        client.call("HDEL", key, "long")
    assert client.call("OBJECT", "ENCODING", key) == encoding.encode()


def pairs(flat):
    return dict(zip(flat[0::2], flat[1::2]))


both = pytest.mark.parametrize("encoding", ["listpack", "hashtable"])


# -- encodings

def test_encoding_follows_the_options(client, oracle):
    programs = [
        [["HSET", "k", "f", "v"]], [["HSET", "k", "f", "x" * 64]], [["HSET", "k", "f", "x" * 65]],
        [["HSET", "k", "x" * 65, "v"]], [["HSETNX", "k", "f", "x" * 65]],
        [["HSET", "k", "f", "v"], ["HSETNX", "k", "f", "x" * 65]],
        [["HSET", "k", "f", "x" * 65], ["HSET", "k", "f", "v"]],
        [["HINCRBY", "k", "f", "1"]], [["HINCRBYFLOAT", "k", "x" * 65, "1"]],
        [["HINCRBYFLOAT", "k", "f", "1e300"]],
        [["HSET", "k", "f%d" % n, "v"] for n in range(512)],
        [["HSET", "k", "f%d" % n, "v"] for n in range(513)],
        [["HSET", "k", "f", "x" * 65], ["COPY", "k", "k2"], ["RENAME", "k2", "k"]],
        [["CONFIG", "SET", "hash-max-ziplist-entries", "1"], ["HSET", "k", "a", "b", "c", "d"]],
        [["CONFIG", "SET", "hash-max-listpack-entries", "0"], ["HSET", "k", "a", "b"]],
        [["CONFIG", "SET", "hash-max-ziplist-value", "0"], ["HSET", "k", "", ""]],
        [["CONFIG", "SET", "hash-max-listpack-value", "1kb"], ["HSET", "k", "f", "x" * 1024]],
        [["CONFIG", "SET", "hash-max-listpack-value", "1kb"], ["HSET", "k", "f", "x" * 1025]],
    ]
    with oracle.connect() as other:
        for program in programs:
            got = []
            for c in (client, other):
                c.ok("FLUSHALL")
                for words in program:
                    c.call(*words)
                got.append(c.call("OBJECT", "ENCODING", "k"))
                c.ok("CONFIG", "SET", "hash-max-listpack-entries", "512", "hash-max-listpack-value",
                     "64")
            assert got[0] == got[1], program[:3]


def test_many_pairs_at_once_are_taken_as_a_hint(client, ours_only):
    """As in 7.2: more pairs in one command than a listpack may have fields."""
    client.call("HSET", "k", *["f", "v"] * 513)
    assert client.call("OBJECT", "ENCODING", "k") == b"hashtable"
    assert client.call("HGETALL", "k") == [b"f", b"v"]


@both
def test_order_of_a_listpack_and_content_of_both(client, encoding):
    make(client, encoding, count=300)
    got = client.call("HGETALL", "h")
    assert pairs(got) == {b"f%d" % n: b"v%d" % n for n in range(300)}
    if encoding == "listpack":
        assert got[0::2] == [b"f%d" % n for n in range(300)]
        assert client.call("HKEYS", "h") == got[0::2]
        assert client.call("HVALS", "h") == got[1::2]


@pytest.mark.parametrize("size", [16_382, 16_383, 16_384, 100_000, 3_000_000])
def test_large_values(client, size):
    value = bytes(range(256)) * (size // 256 + 1)
    value = value[:size]
    client.call("HSET", "h", "big", value, "small", "v")
    assert client.call("HGET", "h", "big") == value
    assert client.call("HSTRLEN", "h", "big") == size
    assert client.call("HMGET", "h", "small", "big", "none") == [b"v", value, None]
    assert pairs(client.call("HGETALL", "h")) == {b"big": value, b"small": b"v"}
    assert client.call("COPY", "h", "h2") == 1
    assert client.call("HSET", "h", "big", "short") == 0
    assert client.call("HGET", "h2", "big") == value
    assert client.call("HDEL", "h2", "small", "big") == 2
    assert client.call("EXISTS", "h2") == 0


def test_long_fields(client):
    fields = {b"%d" % n * (n + 1) for n in (1, 100, 253, 254, 255, 256, 257, 70_000)}
    for field in fields:
        assert client.call("HSET", "h", field, "v") == 1
    assert set(client.call("HKEYS", "h")) == fields
    for field in fields:
        assert client.call("HEXISTS", "h", field) == 1
        assert client.call("HDEL", "h", field) == 1
    assert client.call("EXISTS", "h") == 0


def test_digest_is_of_the_content(client, ours_only):
    for encoding, key in (("listpack", "a"), ("hashtable", "b")):
        make(client, encoding, key)
    one, two = client.call("DEBUG", "DIGEST-VALUE", "a", "b")
    assert one == two
    client.call("HSET", "b", "f1", "other")
    one, two = client.call("DEBUG", "DIGEST-VALUE", "a", "b")
    assert one != two


# -- HSCAN

def scan_all(client, key, *options, limit=100_000):
    cursor, items, turns = b"0", [], 0
    while True:
        cursor, part = client.call("HSCAN", key, cursor, *options)
        items += part
        turns += 1
        assert turns < limit, "the cursor never comes back to 0"
        if cursor == b"0":
            return items


@pytest.mark.parametrize("count", [1, 7, 100, 512, 513, 10_000])
@pytest.mark.parametrize("options", [[], ["COUNT", "1"], ["COUNT", "1000"], ["COUNT", "1000000"]],
                         ids=" ".join)
def test_scan_returns_everything(client, count, options):
    fill(client, "h", count)
    found = scan_all(client, "h", *options)
    assert len(found) == 2 * count
    assert pairs(found) == {b"f%d" % n: b"v%d" % n for n in range(count)}


@both
def test_scan_match_and_novalues(client, encoding, ours_only):
    make(client, encoding, count=200)
    found = scan_all(client, "h", "MATCH", "f1?", "NOVALUES")
    assert sorted(found) == [b"f1%d" % n for n in range(10)]
    assert len(scan_all(client, "h", "novalues", "COUNT", "3")) == 200
    assert scan_all(client, "h", "MATCH", "nothing*") == []


@pytest.mark.parametrize("seed", seeds(3))
def test_scan_returns_what_stays_while_others_come_and_go(client, connect, seed):
    random = generator(seed)
    fill(client, "h", 3000, b"stays")
    stop, other = threading.Event(), connect()

    def disturb():
        while not stop.is_set():
            names = [b"c%d" % random.randrange(20_000) for _ in range(200)]
            if random.random() < 0.5:
                other.call("HSET", "h", *[w for n in names for w in (n, b"v")])
            else:
                other.call("HDEL", "h", *names)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        found = scan_all(client, "h", "COUNT", "20")[0::2]
    finally:
        stop.set()
        thread.join()
    staying = sorted(f for f in found if f.startswith(b"stays"))
    assert set(staying) == {b"stays%d" % n for n in range(3000)}


def test_scan_from_odd_cursors(client, ours_only):
    make(client, "hashtable", count=100)
    for cursor in ("281474976710655", "281474976710656", "18446744073709551615", "-1", "+0"):
        reply = client.call("HSCAN", "h", cursor)
        assert len(reply) == 2 and reply[0].isdigit()
    assert isinstance(client.call("HSCAN", "h", "18446744073709551616"), Error)


# -- HRANDFIELD

@both
@pytest.mark.parametrize("count", [1, 2, 10, 49, 50, 51, 2**62 - 1])
def test_random_distinct_fields(client, encoding, count):
    make(client, encoding)
    fields = client.call("HRANDFIELD", "h", count)
    assert len(fields) == len(set(fields)) == min(count, 50)
    flat = client.call("HRANDFIELD", "h", count, "WITHVALUES")
    assert len(pairs(flat)) == min(count, 50)
    assert all(v == b"v" + f[1:] for f, v in pairs(flat).items())


@both
@pytest.mark.parametrize("count", [1, 10, 1000])
def test_random_repeating_fields(client, encoding, count):
    make(client, encoding)
    fields = client.call("HRANDFIELD", "h", -count)
    assert len(fields) == count
    assert set(fields) <= {b"f%d" % n for n in range(50)}
    assert count < 1000 or len(set(fields)) > 40
    flat = client.call("HRANDFIELD", "h", -count, "withvalues")
    assert len(flat) == 2 * count
    assert all(v == b"v" + f[1:] for f, v in zip(flat[0::2], flat[1::2]))


@both
def test_random_fields_in_resp3(connect, encoding):
    client = connect(3)
    make(client, encoding)
    for count in (5, -5):
        nested = client.call("HRANDFIELD", "h", count, "WITHVALUES")
        assert len(nested) == 5 and all(len(p) == 2 and p[1] == b"v" + p[0][1:] for p in nested)


@both
def test_every_field_is_drawn(client, encoding):
    make(client, encoding, count=20)
    assert {client.call("HRANDFIELD", "h") for _ in range(500)} == {b"f%d" % n for n in range(20)}
    assert client.call("HRANDFIELD", "missing") is None
    assert client.call("HRANDFIELD", "missing", "3") == []
    assert client.call("HRANDFIELD", "h", "0") == []


def test_random_field_errors(client, oracle):
    with oracle.connect() as other:
        for c in (client, other):
            c.call("SET", "s", "x")
            c.call("HSET", "h", "a", "1")
        for words in (["h", "x"], ["h", "1", "bad"], ["h", "1", "withvalues", "x"], ["s"],
                      ["s", "1"], ["s", "x"], ["h", "-9223372036854775808"], ["h", ""],
                      ["h", "9223372036854775808"], ["h", "4611686018427387904", "WITHVALUES"],
                      ["h", "-4611686018427387904", "WITHVALUES"], ["missing", "x"],
                      ["h", "4611686018427387903", "WITHVALUES"], ["h", "9223372036854775807"]):
            assert client.call("HRANDFIELD", *words) == other.call("HRANDFIELD", *words), words


@both
def test_huge_random_counts_are_refused(client, encoding, ours_only):
    make(client, encoding)
    for words in (["-9223372036854775807"], ["-4611686018427387904"], ["-1048577"],
                  ["-4611686018427387903", "WITHVALUES"]):
        got = client.call("HRANDFIELD", "h", *words)
        assert isinstance(got, Error) and got == b"ERR value is out of range"
    assert len(client.call("HRANDFIELD", "h", "-100000")) == 100_000


# -- KEYDB.HRENAME

@both
def test_rename(client, encoding, ours_only):
    make(client, encoding)
    assert client.call("KEYDB.HRENAME", "h", "f1", "new") == 1
    assert client.call("HMGET", "h", "f1", "new") == [None, b"v1"]
    assert client.call("KEYDB.HRENAME", "h", "f2", "f3") == 1
    assert client.call("HMGET", "h", "f2", "f3") == [None, b"v2"]
    assert client.call("HLEN", "h") == 49
    assert client.call("KEYDB.HRENAME", "h", "f3", "f3") == 1
    assert client.call("HGET", "h", "f3") == b"v2"
    assert client.call("KEYDB.HRENAME", "h", "gone", "f3") == b"ERR hash key doesn't exist"
    assert client.call("KEYDB.HRENAME", "missing", "a", "b") is None
    client.ok("SET", "s", "x")
    assert isinstance(client.call("KEYDB.HRENAME", "s", "a", "b"), Error)


# -- threads

def test_increments_from_many_clients_all_count(client, connect):
    fields = [b"n%d" % n for n in range(20)]

    def count():
        c = connect()
        for _ in range(50):
            for field in fields:
                c.call("HINCRBY", "h", field, "1")

    threads = [threading.Thread(target=count) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert pairs(client.call("HGETALL", "h")) == {f: b"400" for f in fields}
