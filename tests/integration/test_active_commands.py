"""Commands of several keys, of whole databases and of large values in a group, under load and through cuts."""

import os

import pytest

from lib.active import (PAIR_AND_MESH, check_equal, check_quiet, cut, is_up, make_node, mesh, more_commands, run_load,
                        seams)
from lib.bounds import eventually
from lib.resp import Error
from lib.seeds import generator, seeds


__all__ = ["make_node", "seams"]  # fixtures

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


@PAIR_AND_MESH
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


@PAIR_AND_MESH
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


@PAIR_AND_MESH
def test_databases_change_places_under_load(make_node, count):
    nodes = mesh(make_node, count)
    random = generator(1, "swaps")

    def swap():
        with random.choice(nodes).connect() as c:
            c.ok("SWAPDB", *random.sample(range(3), 2))

    def during(loads):
        for _ in range(8):
            more_commands(loads, 60)
            swap()
        cut(random.choice(nodes))
        swap()
        more_commands(loads, 60)
        swap()
        more_commands(loads, 20)
    run_load(nodes, 1, during)
    links_are_up(nodes)
    check_quiet(nodes)
    check_equal(nodes, "swaps")


def test_databases_change_places_at_rest(make_node):
    """All that was in one is in the other, of every type, and on each node; with itself it is nothing."""
    nodes = mesh(make_node, 2)
    with nodes[0].connect() as c, nodes[1].connect() as there:
        filled = [["SET", "s", "1"], ["RPUSH", "l", "a", "b"], ["HSET", "h", "f", "v"], ["ZADD", "z", "1.5", "m"],
                  ["XADD", "x", "1-1", "f", "v"], ["PEXPIREAT", "s", "4102444800000"], ["SET", "gone", "1", "PX", "1"],
                  ["SADD", "t", "a", "b"], ["EXPIREMEMBER", "t", "a", "10000"]]
        for words in filled:
            assert not isinstance(c.call(*words), Error), words
        c.ok("SELECT", 1)
        c.ok("SET", "s", "of the other")
        c.ok("SWAPDB", 0, 1)
        c.ok("SWAPDB", 1, 1)
        assert c.call("WAIT", 1, 20000) == 1
        assert there.call("GET", "s") == b"of the other" and there.call("DBSIZE") == 1
        there.ok("SELECT", 1)
        assert there.call("LRANGE", "l", 0, -1) == [b"a", b"b"] and there.call("PEXPIRETIME", "s") == 4102444800000
        assert there.call("GET", "gone") is None and there.call("TTL", "t", "a") > 0
    check_equal(nodes, "swapped")
    check_quiet(nodes)


@pytest.mark.long
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
        eventually(lambda: ca.call("GET", "beside") == b"1", "the other way", 60)
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


# ---- what is too long to be told: the seam says how long that is

@pytest.fixture
def make_short(make_node, seams, monkeypatch):
    monkeypatch.setenv("KEYDB_ACTIVE_UNIT_BYTES", "20000")
    return make_node


def test_a_write_that_is_too_long(make_short):
    """It goes with the whole data set, and nothing else is lost by that; so does a transaction."""
    a, b = nodes = mesh(make_short, 2)
    with a.connect() as ca, b.connect() as cb:
        ca.ok("SET", "short", "1")
        ca.ok("SET", "long", "x" * 30000)
        ca.ok("SET", "behind", "1")
        cb.ok("SET", "there", "1")
        eventually(lambda: cb.call("STRLEN", "long") == 30000 and cb.call("GET", "behind") == b"1", "there", 30)
        ca.call("RENAME", "long", "longer")
        eventually(lambda: cb.call("STRLEN", "longer") == 30000 and cb.call("EXISTS", "long") == 0, "renamed", 30)
        ca.ok("MULTI")
        for i in range(20):
            ca.call("SELECT", i % 2)
            ca.call("SET", "k%d" % i, "x" * 2000)
        assert len(ca.call("EXEC")) == 40
        eventually(lambda: cb.call("DBSIZE") >= 13, "a transaction", 30)
        check_equal(nodes, "a transaction")
        assert cb.call("APPEND", "longer", "tail") == 30004
        ca.ok("SELECT", 0)
        cb.ok("SWAPDB", 1, 0)
        eventually(lambda: ca.call("EXISTS", "longer") == 0, "databases that change places", 30)
    check_equal(nodes, "afterwards")
    check_quiet(nodes)


@PAIR_AND_MESH
def test_long_values_that_cross(make_short, count):
    """Also their states are too long; and it comes to rest."""
    nodes = mesh(make_short, count)
    random = generator(1, "long")
    for step in range(120):
        with random.choice(nodes).connect() as c:
            key = "k%d" % random.randrange(3)
            if random.random() < 0.2:
                c.call("SET", key, "x" * random.choice([100, 15000, 30000]))
            else:
                c.call("APPEND", key, "y" * 3000)
        if step % 40 == 0:
            cut(random.choice(nodes))
    links_are_up(nodes)
    check_quiet(nodes)
    check_equal(nodes, "long values")
