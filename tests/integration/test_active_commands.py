"""Commands of several keys, of whole databases and of large values in a group, under load and through cuts."""

import os

import pytest

from lib.active import check_equal, check_quiet, cut, is_up, make_node, mesh, more_commands, preview, run_load
from lib.bounds import eventually
from lib.seeds import generator, seeds

pytestmark = pytest.mark.preview

__all__ = ["make_node", "preview"]  # fixtures

LINES = ["RENAME K J", "RENAMENX K J", "COPY K J REPLACE", "COPY K J DB 1 REPLACE", "MOVE K 1", "SET K N", "APPEND K N",
         "RPUSH l:K N", "RENAME l:K l:J", "COPY l:K l:J REPLACE", "HSET h:K f N g N", "RENAME h:K h:J", "MOVE h:K 1",
         "HINCRBY h:K f 1", "SADD s:K N", "SMOVE s:K s:J N", "DEL K J", "EXPIRE h:K 1000", "LMOVE l:K l:J LEFT RIGHT"]


def word(random, pattern):
    """K and J are keys, N a number."""
    if pattern == "N":
        return str(random.randrange(9))
    return pattern[:-1] + random.choice("abcd") if pattern in ("K", "J") or pattern[1:] in (":K", ":J") else pattern


def links_are_up(nodes):
    eventually(lambda: all(is_up(n, len(nodes) - 1) for n in nodes), "links", 60)


@pytest.mark.parametrize("count", [2, 3], ids=["pair", "mesh"])
@pytest.mark.parametrize("seed", seeds(1))
def test_keys_that_move(make_node, count, seed):
    print("seed", seed)
    nodes = mesh(make_node, count)
    random = generator(seed, "moves")
    for step in range(1500):
        words = [word(random, w) for w in random.choice(LINES).split()]
        with random.choice(nodes).connect() as c:
            c.ok("SELECT", random.randrange(2))
            c.call(*words)
            if step % 40 == 0:
                payload = c.call("DUMP", words[1])
                if isinstance(payload, bytes):
                    c.call("RESTORE", "r:" + random.choice("ab"), 0, payload, "REPLACE")
        if step % 200 == 0:
            cut(random.choice(nodes))
    links_are_up(nodes)
    check_quiet(nodes)
    check_equal(nodes, "seed %d" % seed)


@pytest.mark.parametrize("count", [2, 3], ids=["pair", "mesh"])
@pytest.mark.parametrize("what", ["FLUSHALL", "FLUSHDB"])
def test_flushes_under_load(make_node, count, what):
    nodes = mesh(make_node, count)
    random = generator(1, what)

    def during(loads):
        for _ in range(8):
            more_commands(loads, 60)
            with random.choice(nodes).connect() as c:
                c.ok(what)
        cut(random.choice(nodes))
        more_commands(loads, 60)
        with random.choice(nodes).connect() as c:
            c.ok(what)
        more_commands(loads, 20)
    run_load(nodes, 1, during)
    links_are_up(nodes)
    check_quiet(nodes)
    check_equal(nodes, what)


@pytest.mark.parametrize("backlog", ["256mb", "1mb"])
def test_a_value_of_100_mib(make_node, backlog):
    """Also one that the logs do not hold; and the link lives while it comes."""
    a, b = mesh(make_node, 2, **{"repl-backlog-size": backlog})
    value = os.urandom(1 << 20) * 100
    with a.connect() as ca, b.connect() as cb:
        ca.ok("SET", "large", value)
        cb.ok("SET", "beside", "1")
        eventually(lambda: cb.call("STRLEN", "large") == len(value), "there", 60)
        links_are_up([a, b])
        assert ca.call("GET", "beside") == b"1"
        assert cb.call("APPEND", "large", "tail") == len(value) + 4
        eventually(lambda: ca.call("STRLEN", "large") == len(value) + 4, "back", 60)
        ca.call("COPY", "large", "copy")
        cut(a)
        ca.ok("SET", "after", "1")
        eventually(lambda: cb.call("STRLEN", "copy") == len(value) + 4 and cb.call("GET", "after") == b"1",
                   "the copy", 60)
        assert cb.call("GET", "copy") == value + b"tail"
    links_are_up([a, b])
    check_quiet([a, b])
