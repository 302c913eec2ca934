"""KeyDB's nested hashes: KEYDB.NHSET and KEYDB.NHGET."""

import json

import pytest

from lib.resp import Error
from lib.seeds import generator, seeds

pytestmark = pytest.mark.any_threads

DEEPEST = 128
SYNTAX = b"ERR syntax error"


def test_strings_lists_and_levels(client, ours_only):
    assert client.call("KEYDB.NHSET", "k.a.b", "v") == 0
    assert client.call("KEYDB.NHSET", "k.a.b", "w") == 1
    assert client.call("KEYDB.NHSET", "k.a.c", "1", "2", "3") == 0
    assert client.call("KEYDB.NHSET", "k.d", "x") == 0
    assert client.call("KEYDB.NHGET", "k.a.b") == b"w"
    assert client.call("KEYDB.NHGET", "k.a.c") == [b"1", b"2", b"3"]
    assert client.call("KEYDB.NHGET", "RESP", "k.a") == [[b"b", b"w"], [b"c", [b"1", b"2", b"3"]]]
    assert client.call("KEYDB.NHGET", "k") == [
        [b"a", [[b"b", b"w"], [b"c", [b"1", b"2", b"3"]]]], [b"d", b"x"]]
    assert client.call("keydb.nhget", "json", "k") == \
        b'{"a" : {"b" : "w", "c" : ["1", "2", "3"]}, "d" : "x"}'
    assert client.call("keydb.nhget", "json", "k.d") == b'"x"'
    assert client.call("TYPE", "k") == b"nestedhash"
    assert client.call("OBJECT", "ENCODING", "k") == b"raw"
    assert client.call("SCAN", "0", "TYPE", "nestedhash") == [b"0", [b"k"]]


def test_what_stands_on_the_way(client, ours_only):
    client.call("KEYDB.NHSET", "k.a", "leaf")
    for path in ("k.a.b", "k.a.b.c"):
        assert client.error("KEYDB.NHSET", path, "v").startswith(b"WRONGTYPE")
    assert client.call("KEYDB.NHGET", "k") == [[b"a", b"leaf"]]
    # What a path ends at is replaced, whatever it is.
    client.call("KEYDB.NHSET", "k.m.n.o", "v")
    assert client.call("KEYDB.NHSET", "k.m", "v") == 1
    assert client.call("KEYDB.NHSET", "k", "all of it") == 1
    assert client.call("KEYDB.NHGET", "k") == b"all of it"
    assert client.error("KEYDB.NHSET", "k.a", "v").startswith(b"WRONGTYPE")


def test_faults(client, ours_only):
    for path in ("", ".", "a.", ".a", "a..b", "a.b.", "." * 100_000):
        assert client.error("KEYDB.NHSET", path, "v") == SYNTAX, path[:9]
        assert client.error("KEYDB.NHGET", path) == SYNTAX, path[:9]
    for path in ("missing", "missing.a", "k.missing", "k.a.b"):
        client.call("KEYDB.NHSET", "k.a", "v")
        assert client.error("KEYDB.NHGET", path) == b"ERR no such key"
    assert client.error("KEYDB.NHGET", "xml", "k") == SYNTAX
    assert client.error("KEYDB.NHGET", "json", "resp", "k") == SYNTAX
    client.ok("SET", "s", "x")
    assert client.error("KEYDB.NHGET", "s.a").startswith(b"WRONGTYPE")
    assert client.error("KEYDB.NHSET", "s.a", "v").startswith(b"WRONGTYPE")
    for words in (["GET", "k"], ["HGETALL", "k"], ["LPUSH", "k", "x"], ["SADD", "k", "x"],
                  ["ZADD", "k", "1", "x"], ["HSET", "k", "f", "v"], ["INCR", "k"], ["SORT", "k"]):
        assert client.error(*words).startswith(b"WRONGTYPE"), words


def test_the_key_is_what_stands_before_the_first_dot(client, ours_only):
    assert client.call("COMMAND", "GETKEYS", "KEYDB.NHSET", "k.a.b", "v", "w") == [b"k"]
    assert client.call("COMMAND", "GETKEYS", "KEYDB.NHGET", "json", "k.a") == [b"k"]
    assert client.call("COMMAND", "GETKEYS", "KEYDB.NHGET", "json") == [b"json"]
    client.call("KEYDB.NHSET", "k.a.b", "v")
    assert client.call("KEYS", "*") == [b"k"]
    assert client.call("EXISTS", "k.a.b") == 0


def test_depth(client, ours_only):
    """Deeper than the test's own client reads replies, hence as JSON."""
    deepest = "k" + ".n" * (DEEPEST - 1)
    assert client.call("KEYDB.NHSET", deepest, "v") == 0
    assert client.call("KEYDB.NHGET", deepest) == b"v"
    tree = json.loads(client.call("KEYDB.NHGET", "json", "k"))
    for _ in range(DEEPEST - 1):
        tree = tree["n"]
    assert tree == "v"
    for path in (deepest + ".n", "other" + ".n" * 500_000):
        assert client.error("KEYDB.NHSET", path, "v") == b"ERR a path has at most 128 parts"
    assert client.call("EXISTS", "other") == 0


def test_keys_as_a_whole(client, ours_only):
    client.call("KEYDB.NHSET", "k.a.b", "v")
    client.call("KEYDB.NHSET", "k.c", "1", "2")
    assert client.call("COPY", "k", "l") == 1
    assert client.call("DEBUG", "DIGEST-VALUE", "k") == client.call("DEBUG", "DIGEST-VALUE", "l")
    client.call("KEYDB.NHSET", "l.c", "1")
    assert client.call("DEBUG", "DIGEST-VALUE", "k") != client.call("DEBUG", "DIGEST-VALUE", "l")
    assert client.call("KEYDB.NHGET", "k.c") == [b"1", b"2"]
    assert client.call("RENAME", "l", "m") == b"OK"
    assert client.call("EXPIRE", "m", "1000") == 1
    client.call("KEYDB.NHSET", "m.c", "3")
    assert client.call("TTL", "m") > 990
    assert client.call("MEMORY", "USAGE", "m", "SAMPLES", "0") > 100
    for i in range(300):
        client.call("KEYDB.NHSET", "big.x.n%d" % i, "v" * 100)
    assert 300 * 100 < client.call("MEMORY", "USAGE", "big") < 300 * 1000
    # Both are freed in the background: a map that is replaced, and a key.
    assert client.call("KEYDB.NHSET", "big.x", "gone") == 1
    assert client.call("KEYDB.NHGET", "big") == [[b"x", b"gone"]]
    assert client.call("UNLINK", "k", "m", "big") == 3


@pytest.mark.parametrize("seed", seeds(3))
def test_json_is_json(client, ours_only, seed):
    """Whatever the bytes of names and strings; what is valid UTF-8 comes back as it was."""
    random = generator(seed, "nested")
    model = {}
    for _ in range(300):
        texts = [random.choice(["a", "b", "c\"\\", "d\n\t\x00\x1f", "\u20ac\U0001f600", "e/f"])
                 for _ in range(random.randint(1, 3))]
        values = [random.choice(["", "v", "\"", "\u00e5\r\n", "\x7f", "[1]"])
                  for _ in range(random.choice([1, 1, 2, 4]))]
        path = ".".join(["k"] + texts).encode()
        answer = client.call("KEYDB.NHSET", path, *[v.encode() for v in values])
        at = model
        for name in texts[:-1]:
            at = at.setdefault(name, {}) if isinstance(at, dict) else None
        if isinstance(answer, Error):
            assert answer.startswith(b"WRONGTYPE") and not isinstance(at, dict)
            continue
        assert answer == (texts[-1] in at)
        at[texts[-1]] = values if len(values) > 1 else values[0]
    assert json.loads(client.call("KEYDB.NHGET", "JSON", "k")) == model
    for _ in range(50):
        odd = bytes(random.randrange(256) for _ in range(20)).replace(b".", b"")
        client.call("KEYDB.NHSET", b"odd." + odd, odd)
    assert len(json.loads(client.call("KEYDB.NHGET", "json", "odd"))) == 50
