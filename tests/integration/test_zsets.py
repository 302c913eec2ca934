"""Sorted sets where the oracle cannot be asked: WITHSCORE, NOSCORES, chance; and wrong types."""

import pytest

from lib import commands
from lib.resp import Error


@pytest.mark.any_threads
def test_rank_with_score(client, ours_only):
    client.call("ZADD", "k", "1", "a", "2.5", "b")
    assert client.call("ZRANK", "k", "b", "WITHSCORE") == [1, b"2.5"]
    assert client.call("ZREVRANK", "k", "b", "withscore") == [0, b"2.5"]
    assert client.call("ZRANK", "k", "x", "WITHSCORE") is None
    assert client.call("ZRANK", "none", "x", "WITHSCORE") is None
    assert isinstance(client.call("ZRANK", "k", "b", "WITHSCORES"), Error)


@pytest.mark.any_threads
@pytest.mark.parametrize("entries", ["0", "128"])
def test_scan_without_scores(client, ours_only, entries):
    client.ok("CONFIG", "SET", "zset-max-listpack-entries", entries)
    for i in range(100):
        client.call("ZADD", "k", str(i), "m%d" % i)
    found, cursor = [], b"0"
    while True:
        cursor, part = client.call("ZSCAN", "k", cursor, "COUNT", "7", "NOSCORES")
        found += part
        if cursor == b"0":
            break
    assert sorted(found) == sorted(b"m%d" % i for i in range(100))


@pytest.mark.any_threads
def test_wrong_type(client):
    """Every command refuses a string at each of its keys but a destination."""
    client.ok("SET", "str", "x")
    answers = {}
    for name, words in commands.SORTED_SET.items():
        call = [w.replace("k1", "str").replace("k2", "str") for w in words.split()]
        call = ["str" if w == "k" else w for w in call]
        answers[name] = client.call(name, *call)
    assert [n for n, a in answers.items()
            if not (isinstance(a, Error) and a.startswith(b"WRONGTYPE"))] == []


@pytest.mark.any_threads
def test_random_members_are_spread(client, ours_only):
    for entries in ("0", "128"):
        client.ok("CONFIG", "SET", "zset-max-listpack-entries", entries)
        client.call("DEL", "k")
        for i in range(40):
            client.call("ZADD", "k", "1", "m%d" % i)
        # A member is missed by all draws of one with a chance of 40 * (39/40)^1200 < 1e-11.
        for count, draws in ((1, 1200), (3, 400), (20, 100), (39, 60)):
            seen = set()
            for _ in range(draws):
                part = client.call("ZRANDMEMBER", "k", str(count))
                assert len(set(part)) == count
                seen.update(part)
            assert len(seen) == 40
        assert len(client.call("ZRANDMEMBER", "k", "-100")) == 100
        assert isinstance(client.call("ZRANDMEMBER", "k", str(-2**63 + 1)), Error)


@pytest.mark.any_threads
def test_what_is_no_score(client):
    """As the oracle: 0 * inf counts as 0 in the first input, and makes a sum 0 in the others."""
    client.call("ZADD", "inf", "inf", "x")
    client.call("ZADD", "five", "5", "x")
    for keys, weights, how, score in (
            (["inf", "five"], ["0", "1"], "SUM", b"5"), (["five", "inf"], ["1", "0"], "SUM", b"0"),
            (["five", "inf"], ["1", "0"], "MIN", b"5"), (["five", "inf"], ["1", "0"], "MAX", b"5"),
            (["inf", "five"], ["0", "1"], "MIN", b"0"),
            (["five", "five", "inf"], ["1", "1", "0"], "SUM", b"0")):
        assert client.call("ZINTER", str(len(keys)), *keys, "WEIGHTS", *weights, "AGGREGATE", how,
                           "WITHSCORES") == [b"x", score]
    assert client.call("ZUNION", "2", "five", "inf", "WEIGHTS", "1", "0", "WITHSCORES") == \
        [b"x", b"5"]
