"""Lists: encodings as Redis 7.2 has them, elements of all sizes, memory, and readers beside writers.
Replies are compared with the oracle's by differential/test_generated.py."""

import threading

import pytest

from lib.bounds import scaled
from lib.commands import LIST
from lib.server import parse_info

SIZES = [0, 1, 63, 64, 4095, 4096, 8100, 8190, 8192, 16000, 100_000, 3_000_000]


def content(client, key=b"k"):
    return client.call("LRANGE", key, "0", "-1")


def encoding(client, key="k"):
    return client.call("OBJECT", "ENCODING", key)


@pytest.mark.any_threads
def test_encodings_by_count(client, ours_only):
    client.ok("CONFIG", "SET", "list-max-listpack-size", "8")
    client.call("RPUSH", "k", *range(8))
    assert encoding(client) == b"listpack"
    client.call("LPUSH", "k", "x")
    assert encoding(client) == b"quicklist"
    client.call("LPOP", "k", "4")
    assert encoding(client) == b"quicklist"
    client.call("LPOP", "k")
    assert encoding(client) == b"listpack"
    assert content(client) == [b"4", b"5", b"6", b"7"]


@pytest.mark.any_threads
@pytest.mark.parametrize("shrink", [["LPOP", "k", "20"], ["RPOP", "k", "20"],
                                    ["LTRIM", "k", "20", "-1"], ["LTRIM", "k", "0", "3"],
                                    ["LREM", "k", "-20", "a"], ["LMPOP", "1", "k", "LEFT", "COUNT", "20"]],
                         ids=" ".join)
def test_encodings_come_back(client, ours_only, shrink):
    client.ok("CONFIG", "SET", "list-max-listpack-size", "8")
    client.call("RPUSH", "k", *["a"] * 24)
    assert encoding(client) == b"quicklist"
    client.call(*shrink)
    assert encoding(client) == b"listpack"
    assert content(client) == [b"a"] * 4


@pytest.mark.any_threads
def test_encodings_by_bytes(client, ours_only):
    client.call("RPUSH", "k", "x" * 8000)
    assert encoding(client) == b"listpack"
    client.call("RPUSH", "k", "y" * 200)
    assert encoding(client) == b"quicklist"
    client.ok("LSET", "k", "0", "small")
    client.call("RPUSH", "j", "x" * 8193)
    assert encoding(client, "j") == b"quicklist"
    client.ok("LSET", "j", "0", "1")
    assert encoding(client, "j") == b"listpack"
    client.call("RPUSH", "i", "1", "2")
    client.call("LINSERT", "i", "BEFORE", "2", "x" * 9000)
    assert encoding(client, "i") == b"quicklist"
    assert content(client, b"i") == [b"1", b"x" * 9000, b"2"]


@pytest.mark.any_threads
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_elements_of_all_sizes(client, depth):
    client.ok("CONFIG", "SET", "list-compress-depth", str(depth))
    expected = [bytes([97 + n % 26]) * size for n, size in enumerate(SIZES)]
    client.call("RPUSH", "k", *expected)
    assert content(client) == expected
    for n, element in enumerate(expected):
        assert client.call("LINDEX", "k", n) == element
        assert client.call("LPOS", "k", element) == n
    for element in expected:
        assert client.call("LMOVE", "k", "k", "LEFT", "RIGHT") == element
    assert content(client) == expected
    for n, element in enumerate(reversed(expected)):
        client.ok("LSET", "k", n, element)
    assert content(client) == expected[::-1]
    for element in expected:
        assert client.call("LINSERT", "k", "AFTER", element, element + b"!") > 0
    assert client.call("LLEN", "k") == 2 * len(expected)
    for element in expected:
        assert client.call("LREM", "k", "0", element) == 1
        assert client.call("RPOPLPUSH", "k", "j") == element + b"!"
    assert client.call("EXISTS", "k") == 0
    assert content(client, b"j") == [e + b"!" for e in expected[::-1]]


@pytest.mark.any_threads
def test_plain_nodes_from_a_threshold_on(client):
    assert client.error("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "x").startswith(b"ERR argument must")
    client.ok("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "10b")
    try:
        client.ok("CONFIG", "SET", "list-max-listpack-size", "4")
        expected = [b"x" * (n % 20) for n in range(200)]
        client.call("RPUSH", "k", *expected)
        for n in range(0, 200, 7):
            expected[n] = b"y" * (n % 15)
            client.ok("LSET", "k", n, expected[n])
        assert content(client) == expected
        assert client.call("LREM", "k", "0", "x" * 19) == expected.count(b"x" * 19)
        assert content(client) == [e for e in expected if e != b"x" * 19]
    finally:
        client.ok("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "0")


@pytest.mark.any_threads
def test_a_digest_for_equal_content(client):
    elements = [b"%d" % n for n in range(300)] + [b"text"] * 5
    client.call("RPUSH", "a", *elements)
    client.ok("CONFIG", "SET", "list-max-listpack-size", "3")
    client.ok("CONFIG", "SET", "list-compress-depth", "1")
    client.call("LPUSH", "b", *elements[::-1])
    client.call("COPY", "b", "c")
    client.call("LPOP", "c")
    a, b, c = client.call("DEBUG", "DIGEST-VALUE", "a", "b", "c")
    assert a == b != c


@pytest.mark.any_threads
@pytest.mark.parametrize("push", ["LPUSH", "RPUSH"])
def test_memory_of_an_element(client, push):
    # First a list that goes again: what the thread's buffers take for such requests is no element's.
    for key in ("warm", "k"):
        if key == "k":
            client.call("DEL", "warm")
            before = int(parse_info(client.call("INFO", "memory"))["used_memory"])
        for _ in range(100):
            client.call(push, key, *["x" * 100] * 1000)
    usage = client.call("MEMORY", "USAGE", "k", "SAMPLES", "0")
    after = int(parse_info(client.call("INFO", "memory"))["used_memory"])
    assert usage <= 110 * 100_000
    # The accounting does not take for the list's what threads' caches hold besides.
    assert after - before <= usage + (1 << 19)


@pytest.mark.any_threads
@pytest.mark.parametrize("name", sorted(LIST))
def test_wrong_type(client, name):
    """Nothing is changed, neither at the wrong key nor at a list beside it."""
    words = LIST[name].split()
    keys = [w for w in words if w.startswith("k")]
    for wrong in keys:
        client.ok("FLUSHALL")
        for key in keys:
            client.call("RPUSH", key, "v", "p")
        client.call("DEL", wrong)
        client.ok("SET", wrong, "text")
        if name == "LMPOP" and wrong != keys[0]:
            client.call("DEL", keys[0])
        others = {k: content(client, k.encode())
                  for k in keys if k != wrong}
        assert client.error(name, *words).startswith(b"WRONGTYPE")
        assert client.call("GET", wrong) == b"text"
        for key, elements in others.items():
            assert content(client, key.encode()) == elements


@pytest.mark.any_threads
def test_readers_beside_writers(server, connect, threads):
    """Numbers go in at one end and out at the other: whoever reads the list finds consecutive ones,
    whatever is compressed meanwhile."""
    setup = connect()
    setup.ok("CONFIG", "SET", "list-max-listpack-size", "5")
    setup.ok("CONFIG", "SET", "list-compress-depth", "1")
    setup.call("RPUSH", "k", *range(100))
    ended = threading.Event()
    trouble = []

    def write():
        with server.connect() as c:
            for n in range(100, 3000, 10):
                c.pipeline([["RPUSH", "k"] + [str(n + i) for i in range(10)], ["LPOP", "k", "10"]])
        ended.set()

    def read():
        with server.connect() as c:
            while not ended.is_set() and not trouble:
                for words in (["LRANGE", "k", "0", "-1"], ["LRANGE", "k", "30", "60"]):
                    got = [int(n) for n in c.call(*words)]
                    if got != list(range(got[0], got[0] + len(got))):
                        trouble.append(got)
                middle = c.call("LINDEX", "k", "50")
                found = c.call("LPOS", "k", middle)
                if found is not None and found > 60:
                    trouble.append((middle, found))

    workers = [threading.Thread(target=f) for f in [write] + [read] * (threads + 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(scaled(60))
    assert not trouble
    assert setup.call("LLEN", "k") == 100
    assert setup.call("LINDEX", "k", "0") == b"2900"
    setup.ok("DEBUG", "CHECK")


@pytest.mark.any_threads
def test_what_is_expired_is_gone_for_lists_too(client):
    client.call("RPUSH", "k", "a")
    client.call("PEXPIRE", "k", "1")
    while client.call("EXISTS", "k"):
        pass
    assert client.call("RPUSHX", "k", "b") == 0
    assert client.call("LMOVE", "k", "j", "LEFT", "LEFT") is None
    assert client.call("RPUSH", "k", "b") == 1
    assert client.call("TTL", "k") == -1
