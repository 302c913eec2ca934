"""Intersections, unions and differences of more members than are looked at in one hold (src/commands/
SLICES.md), beside the oracle."""

import pytest

from lib.differences import DIFFERENCES
from lib.differential import Pair

MEMBERS = 21000
PART = 3000


def fill():
    """z and y share members, and many scores; n has integers, s is a set, few is small."""
    program = []
    for begin in range(0, MEMBERS, PART):
        numbers = range(begin, begin + PART)
        program += [
            ["ZADD", "z"] + [w for i in numbers for w in (i * 7919 % 1000 / 8, "member:%d" % i)],
            ["ZADD", "y"] + [w for i in numbers for w in (-i, "member:%d" % (i + MEMBERS // 2))],
            ["ZADD", "n"] + [w for i in numbers for w in (0, i * 3)],
            ["SADD", "s"] + ["member:%d" % (i * 2) for i in numbers],
            ["SADD", "t"] + [str(i * 2) for i in numbers],
        ]
    return program + [["ZADD", "few", "inf", "member:7", "-inf", "member:8", 1, "x"]]


READS = """
ZUNION 2 z y
ZUNION 2 z y WITHSCORES
ZUNION 3 z few y WEIGHTS 2 0 -1 WITHSCORES
ZUNION 3 s z few AGGREGATE MIN WITHSCORES
ZUNION 2 z z AGGREGATE MAX WITHSCORES
ZUNION 2 n t WEIGHTS 1 inf WITHSCORES
ZINTER 2 z y WITHSCORES
ZINTER 3 y s z WEIGHTS 1 2 0.5 WITHSCORES
ZINTER 2 n t AGGREGATE MAX
ZINTER 3 z missing y
ZDIFF 2 z y WITHSCORES
ZDIFF 3 y s few
ZDIFF 2 z z
ZINTERCARD 2 z y
ZINTERCARD 2 z y LIMIT 17000
ZINTERCARD 2 z s LIMIT 0
SINTERCARD 2 s s LIMIT 20999
SINTER s s
SUNION s t
SDIFF s t
ZUNION 2 z few WEIGHTS 1
ZINTER 2 z y AGGREGATE NONE
ZDIFF 2 z y WEIGHTS 1 1
"""
STORES = """
ZUNIONSTORE out 2 z y
ZUNIONSTORE out 3 z few y WEIGHTS 2 0 -1
ZUNIONSTORE out 2 s t AGGREGATE MAX
ZUNIONSTORE out 2 z s WEIGHTS inf -inf
ZINTERSTORE out 2 z y WEIGHTS 3 1
ZINTERSTORE out 2 s z AGGREGATE MIN
ZINTERSTORE out 3 z missing y
ZDIFFSTORE out 2 z s
ZDIFFSTORE out 2 z z
ZUNIONSTORE out 2 out z
SUNIONSTORE out s t
SINTERSTORE out s s
SDIFFSTORE out s t
SDIFFSTORE out s s
SUNIONSTORE s s t
ZUNIONSTORE z 2 z y
ZINTERSTORE y 2 z y
ZDIFFSTORE z 2 z s
"""


def program(text):
    return [line.split() for line in text.strip().split("\n")]


def words(commands):
    return [[str(w).encode() for w in command] for command in commands]


@pytest.mark.parametrize("proto", [2, 3])
def test_replies(server, oracle, proto):
    Pair(server, oracle, proto, DIFFERENCES, []).check(words(fill() + program(READS)), 0,
                                                       pipelined=False)


def test_what_is_stored(server, oracle):
    commands = fill()
    for command in program(STORES):
        key = command[1]
        reader = ["SMEMBERS", key] if command[0].startswith("S") else \
            ["ZRANGE", key, 0, -1, "WITHSCORES"]
        commands += [command, reader, ["OBJECT", "ENCODING", key], ["PTTL", key],
                     ["PEXPIRE", key, 100000000]]
    Pair(server, oracle, 2, DIFFERENCES, []).check(words(commands), 0, pipelined=False)
