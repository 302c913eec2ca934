"""The same module in redis-server 7.0.15 and here: what modules do to lists, sorted sets, hashes and streams
(tests/modules/values.c); replies, errno, and what is there afterwards, are the same."""

import random

import pytest

from lib.modules import beside_redis

KEYS = "l big s z zbig h hbig x none".split()
HOW = ("r", "w", "rw")


@pytest.fixture
def both(make_server, make_oracle, connect):
    """both(word, ...): the reply of both servers, which is the same."""
    call = beside_redis(make_server, make_oracle, connect, "values")
    call("RPUSH", "l", "a", "b", "c")
    call("RPUSH", "big", *("element:%d" % n for n in range(2000)))
    call("SET", "s", "text")
    call("ZADD", "z", 1, "a", 2, "b", 2, "bb", 3, "c", "inf", "d", "-inf", "e")
    call("ZADD", "zbig", *(word for n in range(500) for word in (n // 3, "m%d" % n)))
    call("HSET", "h", "f", "v", "number", "12", "long", "w" * 100)
    call("HSET", "hbig", *(word for n in range(600) for word in ("f%d" % n, n)))
    for n in range(1, 250):
        call("XADD", "x", "%d-%d" % (n // 2 + 1, n % 2 + 1), "n", n, *(("more", "field") if n % 5 == 0 else ()))
    return call


def shown(both):
    for key, words in (("l", "LRANGE l 0 -1"), ("big", "LRANGE big 0 -1"), ("z", "ZRANGE z 0 -1 WITHSCORES"),
                       ("zbig", "ZRANGE zbig 0 -1 WITHSCORES"), ("x", "XRANGE x - +"), ("none", "TYPE none"),
                       ("h", "HLEN h")):
        if both("TYPE", key) != b"none" or key == "none":
            both(*words.split())
        both("TTL", key)


@pytest.mark.parametrize("how", HOW)
def test_lists(both, how):
    for key in ("l", "big", "s", "z", "none"):
        for index in (0, 1, -1, -2, 2, 3, -3, -4, 1999, 2000, 99999, -99999):
            both("V.LGET", key, how, index)
            both("V.LSET", key, how, index, "set %d" % index)
            both("V.LINSERT", key, how, index, "insert %d" % index)
            if key != "none":
                both("V.LDEL", key, how, index)
        both("V.PUSH", key, how, "head", "h1", "h2")
        both("V.PUSH", key, how, "tail", "t1", "9")
        both("V.POP", key, how, "head")
        both("V.POP", key, how, "tail")
        both("V.LIST", key, "rw")
    shown(both)


def test_a_list_comes_and_goes(both):
    for end in ("head", "tail"):
        both("V.PUSH", "new", "w", end, "1", "2")
        for _ in range(3):
            both("V.POP", "new", "w", end)
        both("EXISTS", "new")
    for index in (0, -1, 1, -2):
        both("V.LINSERT", "new", "w", index, "x")
        both("V.LDEL", "new", "w", 0)
        both("EXISTS", "new")


@pytest.mark.parametrize("how", HOW)
def test_sorted_sets(both, how):
    for key in ("z", "zbig", "s", "none"):
        if key == "none" and how == "r":
            continue  # a NULL: redis-server does not survive that
        for flags in ("-", "q", "n", "x", "g", "l", "gx", "lx"):
            if key == "none" and "x" in flags:
                continue
            for member in ("a", "m7", "new" + flags):
                for score in ("2.5", "1", "1", "-inf", "inf"):
                    both("V.ZADD", key, how, flags, score, member)
                    if flags != "q":
                        both("V.ZINCRBY", key, how, flags, score, member)
                    both("V.ZSCORE", key, how, member)
        for member in ("a", "a", "m7", "nope"):
            both("V.ZREM", key, how, member)
    shown(both)


def test_a_sorted_set_goes(both):
    both("V.ZADD", "new", "w", "-", 1, "m")
    both("V.ZREM", "new", "w", "m")
    both("EXISTS", "new")


SCORES = (("-inf", "inf"), ("2", "3"), ("3", "2"), ("2", "2"), ("100", "140"), ("1000", "inf"), ("-5", "-1"))
MEMBERS = (("-", "+"), ("[a", "[c"), ("(a", "(c"), ("[m10", "[m2"), ("[zz", "+"), ("+", "-"), ("a", "b"), ("[b", "x"))


@pytest.mark.parametrize("end", ("first", "last"))
def test_ranges(both, end):
    steps = ("", "nnnnnnnnn", "ppppppppp", "nnppnp", "pnnpnn", "nsnp")
    for key in ("z", "zbig", "s"):
        for some in steps:
            for low, high in SCORES:
                for excluded in ("", "<", ">", "<>"):
                    both("V.ZRANGE", key, "r", "%s-score%s" % (end, excluded), low, high, some)
    both("DEL", "z")
    both("ZADD", "z", *(word for member in "a b c d e ab m1 m10 m11 m2 m3".split() for word in (0, member)))
    for some in steps:
        for low, high in MEMBERS:
            both("V.ZRANGE", "z", "r", end + "-lex", low, high, some)


def test_hashes(both):
    for key in ("h", "hbig", "s", "none"):
        for how in HOW:
            for flags in ("-", "n", "x", "c", "a", "na", "xa", "nca", "?", "e"):
                for field in ("f", "f7", "number", "new " + flags):
                    both("V.HSET", key, how, flags, field, "value " + flags)
                    both("V.HSET", key, how, flags, field, "DELETE", "other", "17")
                    both("V.HSET", key, how, flags, "f", "DELETE", "f", "back")
                    if key == "none" and how == "r":
                        continue
                    for kind in ("-", "c", "e", "ce"):
                        both("V.HGET", key, how, kind, field, "other")
    shown(both)
    assert both("HLEN", "hbig") > 500


def test_a_hash_comes_and_goes(both):
    both("V.HSET", "new", "w", "-", "f", "v")
    both("EXPIRE", "new", 1000)
    both("V.HSET", "new", "w", "-", "f", "DELETE", "g", "v")
    both("TTL", "new")
    both("V.HSET", "new", "w", "-", "g", "DELETE", "nope", "DELETE")
    both("EXISTS", "new")
    both("V.HSET", "new", "w", "x", "f", "v")
    both("EXISTS", "new")


@pytest.mark.parametrize("how", HOW)
def test_streams(both, how):
    for key in ("x", "s", "none"):
        for number in ("0-0", "5-1", "125-3", "125-3", "300-0", "18446744073709551615-18446744073709551614"):
            both("V.XADD", key, how, number, "a", "1", "b", "two")
            both("V.XDEL", key, how, number)
            both("V.XDEL", key, how, number)
        both("V.XADD", key, how, "*", "a", "1")
        both("V.XADD", key, how, "18446744073709551615-18446744073709551615", "a", "1")
        both("V.XADD", key, how, "*", "a", "1")
        for bound in ("-1", "240", "200", "150", "0"):
            both("V.XTRIM", key, how, "length", "~", bound)
            both("V.XTRIM", key, how, "length", "=", bound)
        both("V.XTRIM", key, how, "id", "=", "120-1")
        both("XLEN" if key == "x" else "TYPE", key)
    shown(both)


def test_trimming_by_id(both):
    for how in ("~", "="):
        for bound in ("0-0", "20-1", "100-2", "124-2", "1000-0"):
            both("V.XTRIM", "x", "rw", "id", how, bound)
            both("XLEN", "x")
    both("XINFO", "STREAM", "x")


BOUNDS = (("-", "-"), ("5-1", "8-2"), ("8-1", "5-1"), ("0-0", "2-0"), ("120-0", "-"), ("-", "2-1"), ("0-0", "0-0"),
          ("18446744073709551615-18446744073709551615", "-"), ("5-1", "5-1"))


def entries(both, key, flags, start, end):
    """How many a walk finds."""
    bounds = ["-" if start == "-" else start, "+" if end == "-" else end]
    if "x" in flags:
        bounds = [bound if bound in "-+" else "(" + bound for bound in bounds]
    reply = both.clients[0].call("XRANGE", key, *bounds)
    return len(reply) if isinstance(reply, list) else 0


def cut(steps, count):
    """The steps up to the first one that finds nothing: beyond it redis-server may end."""
    return "i".join(steps.split("i")[:count + 2])


@pytest.mark.parametrize("flags", ("-", "x", "r", "xr", "?"))
def test_walks(both, flags):
    for key in ("x", "s", "none"):
        for how in HOW:
            for start, end in BOUNDS:
                for steps in ("ifffiafffia", "faiadffiadia", "S", "sisS", "ia" * 13, "iadiaddfiadia", "ss", "iaS"):
                    if key == "none" and how == "r":
                        continue
                    both("V.XWALK", key, how, flags, start, end, cut(steps, entries(both, key, flags, start, end)))
    shown(both)


def test_walks_past_what_is_not_read(both):
    """The fields of an entry need not be read, nor all of them: redis-server does not survive that."""
    ours = both.clients[0]
    entries = ours.call("XRANGE", "x", "-", "+")
    walked = ours.call("V.XWALK", "x", "rw", "-", "-", "-", "i" * 20 + "fi" * 20 + "idid")
    found = [step for step in walked if isinstance(step, list) and isinstance(step[1], int)]
    assert found == [[name, len(fields) // 2] for name, fields in entries[:42]]
    assert walked[-3:] == [b"OK", found[41], b"OK"]
    assert ours.call("XLEN", "x") == len(entries) - 2


def test_generated_lists(both):
    """Many changes in a row: encodings come and go, and every index stays where it belongs."""
    chance = random.Random(7)
    for _ in range(1500):
        index = chance.randint(-40, 40)
        element = chance.choice(("x", "12345", "long" * 50, str(chance.random())))
        what = chance.randrange(6)
        if what < 2:
            both("V.LINSERT", "l", "rw", index, element)
        elif what == 2:
            both("V.LSET", "l", "rw", index, element)
        elif what == 3:
            both("V.LDEL", "l", "rw", index)
        elif what == 4:
            both("V.PUSH", "l", "rw", chance.choice(("head", "tail")), element)
        else:
            both("V.POP", "l", "rw", chance.choice(("head", "tail")))
    both("LRANGE", "l", 0, -1)
    both("V.LIST", "l", "r")
