"""Values around every buffer boundary there may be, to 64 MiB and back."""

import hashlib

import pytest

from lib.resp import encode
from lib.seeds import generator

AROUND = [0, 1, 43, 44, 45, 63, 64, 65, 127, 128, 511, 512, 1023, 1024, 1025, 4095, 4096, 4097]
BUFFERS = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 1 << 20]
SIZES = AROUND + [size + off for size in BUFFERS for off in (-64, -16, -2, -1, 0, 1, 2, 16, 64)]


def noise(size, salt):
    return generator(size, salt).randbytes(size)


def test_round_trip(client):
    for size in SIZES:
        value = noise(size, "value")
        client.ok("SET", "k", value)
        assert client.call("STRLEN", "k") == size
        assert client.call("GET", "k") == value, size
        assert client.call("GETRANGE", "k", max(size - 3, 0), -1) == value[-3:]


def test_round_trip_in_one_pipeline(client):
    values = [noise(size, "pipe") for size in SIZES]
    requests = b"".join(encode("SET", "k%d" % n, v) for n, v in enumerate(values))
    requests += b"".join(encode("GET", "k%d" % n) for n in range(len(values)))
    replies = [tree for _, tree in client.exchange(requests, 2 * len(values))]
    assert replies[:len(values)] == [b"OK"] * len(values)
    assert replies[len(values):] == values


def test_long_keys(client):
    for size in SIZES:
        key = noise(size, "key")
        client.ok("SET", key, "v")
        assert client.call("GET", key) == b"v"
        assert client.call("DEL", key) == 1


def test_growing_past_every_boundary(client):
    expected = b""
    random = generator(1, "append")
    while len(expected) < 300_000:
        piece = random.randbytes(random.choice([1, 7, 60, 500, 5000, 40_000]))
        expected += piece
        assert client.call("APPEND", "k", piece) == len(expected)
    assert client.call("GET", "k") == expected


def test_overwriting_in_every_size_order(client):
    """A value in place, hanging off, and back; the expiry and the neighbours unharmed."""
    random = generator(2, "overwrite")
    client.ok("SET", "neighbour", "n")
    for _ in range(400):
        value = random.randbytes(random.choice(SIZES[:30]))
        client.ok("SET", "k", value, "EX", "1000")
        assert client.call("GET", "k") == value
        assert client.call("TTL", "k") > 900
    assert client.call("GET", "neighbour") == b"n"


@pytest.mark.parametrize("size", [5_000_000, 32 << 20, (64 << 20) - 1, 64 << 20])
def test_large_values(client, size):
    value = noise(1 << 16, "large") * (size // (1 << 16)) + b"x" * (size % (1 << 16))
    (_, first), (_, got) = client.exchange(encode("SET", "k", value) + encode("GET", "k"), 2)
    assert first == b"OK"
    assert hashlib.sha1(got).digest() == hashlib.sha1(value).digest()
    assert client.call("DEL", "k") == 1


def test_a_large_reply_to_a_slow_reader_while_the_value_changes(client, connect):
    """The reply is the value as it was when the GET ran."""
    old = noise(5_000_000, "old")
    client.ok("SET", "k", old)
    reader = connect()
    reader.send("GET", "k")
    assert client.call("PING") == b"PONG"
    client.ok("SET", "k", "new")
    assert client.call("APPEND", "k", "er") == 5
    assert client.call("DEL", "k") == 1
    got = reader.read()
    assert got == old or got in (b"new", b"newer", None)


def test_large_replies_pipelined_to_a_reader_that_waits(connect):
    writer, reader = connect(), connect()
    value = noise(1 << 20, "mib")
    writer.ok("SET", "k", value)
    reader.send_raw(encode("GET", "k") * 20)
    for _ in range(50):
        assert writer.call("GETRANGE", "k", 0, 2) == value[:3]
    for _ in range(20):
        assert reader.read() == value


def test_mget_of_large_values(client):
    values = [noise(200_000 + n, "mget") for n in range(10)]
    client.ok("MSET", *[word for n, v in enumerate(values) for word in ("k%d" % n, v)])
    assert client.call("MGET", *["k%d" % n for n in range(10)]) == values


def test_an_inline_request_just_under_the_limit(client):
    word = "v" * (64 * 1024 - 20)
    client.send_raw(b"SET k " + word.encode() + b"\r\n")
    assert client.read() == b"OK"
    assert client.call("STRLEN", "k") == len(word)


def test_many_arguments(client):
    client.ok("MSET", *[word for n in range(50_000) for word in ("k%d" % n, n)])
    assert client.call("DBSIZE") == 50_000
    assert client.call("EXISTS", *["k%d" % n for n in range(50_000)]) == 50_000
    assert client.call("DEL", *["k%d" % n for n in range(50_000)]) == 50_000
