"""Filters of requests: the same module in redis-server 7.0.15 and here (tests/modules/filters.c)."""

import pytest

from lib.modules import beside_redis, path_of


@pytest.fixture
def both(make_server, make_oracle, connect):
    """both(word, ...): the reply of both servers, which is the same."""
    return beside_redis(make_server, make_oracle, connect, "filters")


REQUESTS = ("@insert k v", "LRANGE k 0 -1", "@insert", "@delete SET s v", "@delete", "@replace a b c", "@more x", "@more",
            "F.CALL @insert k w", "F.CALL @more x", "F.CALL @replace", "F.CALL @delete ECHO x", "LRANGE k 0 -1", "nope x",
            "SET plain v")


def test_requests(both):
    for words in REQUESTS:
        both(*words.split())
    both("F.SEEN")
    large = "x" * 300000
    both("@delete", "SET", "large", large)
    both("SET", "other", large)
    both("@insert", "list", large)
    for words in ("STRLEN large", "STRLEN other", "LLEN list"):
        both(*words.split())
    assert all(b"filters=2" in client.call("INFO", "modules") for client in both.clients)


def test_transactions(both):
    both("MULTI")
    for words in REQUESTS:
        if not words.startswith(("nope", "@insert k", "F.", "@delete", "@more")) or words == "@insert k v":
            both(*words.split())
    both("EXEC")
    both("LRANGE", "k", 0, -1)


def test_scripts(both):
    for words in ("@insert k v", "LRANGE k 0 -1", "@delete SET s v", "GET s", "@replace a b", "@more x", "F.CALL @more x", "@delete"):
        both("EVAL", "return redis.pcall(unpack(ARGV))", 0, *words.split())


def test_they_go(both):
    both("F.OFF")
    both("@replace")
    both("F.SEEN")
    both("MODULE", "UNLOAD", "filters")
    both("MODULE", "LOAD", path_of("filters"))
    both("@replace")
    both("MODULE", "UNLOAD", "filters")
    both("PING")
