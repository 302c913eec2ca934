"""Options of modules: the same module in redis-server 7.0.15 and here (tests/modules/settings.c)."""

import pytest

from lib.modules import beside_redis, path_of
from lib.resp import Error


@pytest.fixture
def both(make_server, make_oracle, connect):
    """both(word, ...): the reply of both servers, which is the same."""
    return beside_redis(make_server, make_oracle, connect, "settings")


SETS = ("flag no", "flag yes", "FLAG no", "flag maybe", "number 7", "number 7", "number 13", "number 5000", "number x",
        "number -10", "memory 1mb", "memory 1x", "memory 100", "word x", "fixed x", "choice two", "choice TWO", "choice six",
        "choice", "nope 1")


def test_values(both):
    both("S.LOG")
    for name in ("settings.*", "settings.flag", "settings.FLAGS", "settings.nope", "settings.fixed"):
        replies = [client.call("CONFIG", "GET", name) for client in both.clients]
        pairs = [sorted(zip(reply[::2], reply[1::2])) for reply in replies]
        assert [[(n.lower(), v) for n, v in one] for one in pairs][0] == [(n.lower(), v) for n, v in pairs[1]]
    for words in SETS:
        name, *value = words.split(" ", 1)
        both("CONFIG", "SET", "settings." + name, *value)
        both("CONFIG", "GET", "settings." + name)
        both("S.LOG")
    for value in ("one two", "none", "four", "one six", "two one"):
        both("CONFIG", "SET", "settings.flags", value)
        both("CONFIG", "GET", "settings.flags")
        both("S.LOG")


def test_amid_reads(both):
    for client in both.clients:
        for _ in range(3):
            replies = client.pipeline([("GET", "k"), ("CONFIG", "GET", "settings.number"), ("GET", "k"),
                                       ("CONFIG", "GET", "settings.*")])
            assert replies[:3] == [None, [b"settings.number", b"5"], None] and len(replies[3]) == 14


def test_several_at_once(both):
    both("S.LOG")
    both("CONFIG", "SET", "settings.number", 8, "settings.flag", "no", "settings.choice", "four")
    both("CONFIG", "GET", "settings.number")
    both("CONFIG", "SET", "settings.flag", "yes", "settings.number", 13)
    both("CONFIG", "GET", "settings.flag")
    # 7.0 names the option without its module, 8.2 as it was given.
    replies = [client.error("CONFIG", "SET", "settings.number", 99) for client in both.clients]
    assert replies[0] == replies[1].replace(b"'number'", b"'settings.number'")
    both("CONFIG", "GET", "settings.number")
    both("CONFIG", "SET", "settings.number", 9, "maxmemory-policy", "nope")
    both("CONFIG", "GET", "settings.number")


def test_what_cannot_be_registered(both):
    both("MODULE", "UNLOAD", "settings")
    both("CONFIG", "GET", "settings.*")
    assert isinstance(both.clients[0].call("MODULE", "LOAD", path_of("settings"), "noload"), Error)
    both("CONFIG", "GET", "settings.*")
    both("MODULE", "LOAD", path_of("settings"), "bad")
    both("S.LOG")
    assert both.clients[0].call("S.LOG", "late") == b"bad=EBUSY;" * 5  # as 8.2; 7.0 lets it be


def test_loadex(both):
    both("MODULE", "UNLOAD", "settings")
    for words in ("CONFIG settings.number 77 CONFIG settings.word x ARGS y", "CONFIG settings.number 13",
                  "CONFIG settings.nope 1", "CONFIG other.number 1", "CONFIG settings.number", "NONSENSE", "ARGS x"):
        replies = [client.call("MODULE", "LOADEX", path_of("settings"), *words.split()) for client in both.clients]
        assert isinstance(replies[0], Error) == isinstance(replies[1], Error), (words, replies)
        both("CONFIG", "GET", "settings.number")
        both("CONFIG", "GET", "settings.word")
        for client in both.clients:
            client.call("MODULE", "UNLOAD", "settings")
        both("CONFIG", "GET", "settings.number")
