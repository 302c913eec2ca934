"""HRANDFIELD, SRANDMEMBER and ZRANDMEMBER with a negative count: elements may repeat, so that the collection's size
bounds nothing.  What one reply may cost is bounded all the same, in elements, in bytes copied, and in references to large
values; what is too much is refused in whole."""

import pytest

from lib.resp import Error

REFUSED = b"ERR value is out of range"
MOST = 1 << 19
LARGE = 1000000         # replied by reference


@pytest.fixture
def filled(client):
    """Each kind of collection with two elements: tiny ones, some of 1,000 bytes, some of a megabyte."""
    for name, length in (("tiny", 1), ("kilo", 1000), ("mega", 1000000)):
        elements = ["a" * length, "b" * length]
        client.call("SADD", "set:" + name, *elements)
        client.call("ZADD", "zset:" + name, "1", elements[0], "2", elements[1])
        client.call("HSET", "hash:" + name, elements[0], "x", elements[1], "y")
    client.call("HSET", "hash:values", "a", "x" * LARGE, "b", "y" * LARGE)
    return client


COMMANDS = (("SRANDMEMBER", "set"), ("ZRANDMEMBER", "zset"), ("HRANDFIELD", "hash"))


@pytest.mark.parametrize("command, kind", COMMANDS)
def test_elements_are_bounded(filled, command, kind):
    key = kind + ":tiny"
    assert filled.call(command, key, -MOST - 1) == REFUSED
    assert filled.call(command, key, -2**63 + 1) == REFUSED
    got = filled.call(command, key, -100000)
    assert len(got) == 100000 and set(got) == {b"a", b"b"}
    if command != "SRANDMEMBER":
        option = "WITHSCORES" if command == "ZRANDMEMBER" else "WITHVALUES"
        assert filled.call(command, key, -MOST // 2 - 1, option) == REFUSED
        assert filled.call(command, key, -2**63 + 1, option) == REFUSED
        assert len(filled.call(command, key, -50000, option)) == 100000


@pytest.mark.parametrize("command, kind", COMMANDS)
def test_copied_bytes_are_bounded(filled, command, kind):
    assert len(filled.call(command, kind + ":kilo", -20000)) == 20000
    assert filled.call(command, kind + ":kilo", -40000) == REFUSED
    assert len(filled.call(command, kind + ":mega", -20)) == 20
    assert filled.call(command, kind + ":mega", -1000) == REFUSED


def test_references_are_bounded(filled):
    """Values that are not copied cost little: more of them than could be copied, but not any number."""
    got = filled.call("HRANDFIELD", "hash:values", -40, "WITHVALUES")
    assert len(got) == 80
    assert {(got[i], got[i + 1][:1], len(got[i + 1])) for i in range(0, 80, 2)} == \
        {(b"a", b"x", LARGE), (b"b", b"y", LARGE)}
    assert filled.call("HRANDFIELD", "hash:values", -MOST // 2, "WITHVALUES") == REFUSED
    assert filled.call("HRANDFIELD", "hash:values", -100000, "WITHVALUES") == REFUSED
    assert len(filled.call("HRANDFIELD", "hash:values", -100000)) == 100000


@pytest.mark.parametrize("proto", [2, 3])
def test_a_refusal_stands_alone(filled, proto):
    """What was written of the reply is taken back, and nothing of its neighbours."""
    filled.hello(proto)
    ask = [["ZRANDMEMBER", "zset:kilo", "-40000", "WITHSCORES"], ["HRANDFIELD", "hash:values", "-100000", "WITHVALUES"],
           ["SRANDMEMBER", "set:mega", "-100"]]
    for request in ask:
        echo = ["ECHO", "e" * 30000]
        replies = filled.pipeline([echo, ["GET", "none"], request, echo, request, ["PING"]])
        assert replies == [b"e" * 30000, None, REFUSED, b"e" * 30000, REFUSED, b"PONG"]
        assert all(isinstance(replies[at], Error) for at in (2, 4))
        replies = filled.pipeline([["MULTI"], echo, request, ["PING"], ["EXEC"]])
        assert replies[-1] == [b"e" * 30000, REFUSED, b"PONG"]


@pytest.mark.any_threads
@pytest.mark.parametrize("entries", ["0", "512"])
def test_draws_reach_all_elements_alike(client, entries):
    """Of 40 elements each is drawn about 500 times in 20,000: 22 is the standard deviation."""
    for option in ("set-max-listpack-entries", "hash-max-listpack-entries", "zset-max-listpack-entries"):
        client.ok("CONFIG", "SET", option, entries)
    names = ["m%d" % number for number in range(40)]
    client.call("SADD", "set", *names)
    client.call("HSET", "hash", *[word for name in names for word in (name, "v" + name)])
    client.call("ZADD", "zset", *[word for number, name in enumerate(names) for word in (number, name)])
    for command, key in COMMANDS:
        got = client.call(command, key, -20000)
        counts = {name: got.count(name.encode()) for name in names}
        assert sum(counts.values()) == 20000
        assert all(300 < count < 700 for count in counts.values()), (command, counts)
    got = client.call("ZRANDMEMBER", "zset", -500, "WITHSCORES")
    assert all(names[int(got[i + 1])].encode() == got[i] for i in range(0, 1000, 2))
    got = client.call("HRANDFIELD", "hash", -500, "WITHVALUES")
    assert all(b"v" + got[i] == got[i + 1] for i in range(0, 1000, 2))
