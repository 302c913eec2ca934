"""Expiry in a group: what one node takes away because of its time is gone only for whoever has it with that deadline.
Nodes that are cut off, deadlines that were moved or taken away elsewhere, members, clocks that differ by an hour."""

import time

import pytest

from lib.active import (PAIR_AND_MESH, apart, call, check_equal, check_quiet, comes, cut, digest, is_up, make_node, mesh, seams,
                        together)
from lib.bounds import eventually
from lib.replication import replication
from lib.seeds import generator, seeds


__all__ = ["make_node", "seams"]  # fixtures

SOON_MS = 1500
SILENCE = {"repl-timeout": "1"}  # then a node tells what it finds of others'


def fill(node, at_ms):
    with node.connect() as c:
        for name in ("moved", "kept", "due", "getex"):
            c.ok("SET", name, "v", "PXAT", at_ms)
        c.call("HSET", "hash", "moved", "1", "kept", "1", "due", "1", "none", "1")
        c.call("HPEXPIREAT", "hash", at_ms, "FIELDS", 3, "moved", "kept", "due")
        c.call("SADD", "set", "moved", "kept", "due", "none")
        c.call("ZADD", "zset", 1, "moved", 2, "kept", 3, "due", 4, "none")
        c.call("HSET", "whole", "f", "1")
        c.call("HPEXPIREAT", "whole", at_ms, "FIELDS", 1, "f")
        for key in ("set", "zset"):
            for member in ("moved", "kept", "due"):
                c.call("PEXPIREMEMBERAT", key, member, at_ms)


def prolong(node, later_ms):
    """As somebody does whose keys are in use."""
    with node.connect() as c:
        assert c.call("PEXPIREAT", "moved", later_ms) == 1
        assert c.call("PERSIST", "kept") == 1
        assert c.call("GETEX", "getex", "PXAT", later_ms) == b"v"
        assert c.call("HPEXPIREAT", "hash", later_ms, "FIELDS", 1, "moved") == [1]
        assert c.call("HPERSIST", "hash", "FIELDS", 1, "kept") == [1]
        assert c.call("HPEXPIREAT", "whole", later_ms, "FIELDS", 1, "f") == [1]
        for key in ("set", "zset"):
            assert c.call("PEXPIREMEMBERAT", key, "moved", later_ms) == 1
            assert c.call("PERSIST", key, "kept") == 1


def check_prolonged(node, later_ms):
    with node.connect() as c:
        assert c.call("PEXPIRETIME", "moved") == later_ms == c.call("PEXPIRETIME", "getex")
        assert c.call("GET", "kept") == b"v" and c.call("PTTL", "kept") == -1
        assert c.call("EXISTS", "due") == 0
        assert sorted(c.call("HKEYS", "hash")) == [b"kept", b"moved", b"none"]
        assert c.call("HPEXPIRETIME", "hash", "FIELDS", 2, "moved", "kept") == [later_ms, -1]
        assert sorted(c.call("SMEMBERS", "set")) == [b"kept", b"moved", b"none"]
        assert c.call("ZRANGE", "zset", 0, -1) == [b"moved", b"kept", b"none"]
        assert c.call("HPEXPIRETIME", "whole", "FIELDS", 1, "f") == [later_ms]


def cut_off_before_it_is_due(nodes, later_ms):
    """Whoever has not prolonged it all in time does it again, with more time; gives the deadline of the others."""
    a, rest = nodes[0], nodes[1:]
    soon_ms = SOON_MS
    while True:
        at_ms = int(time.time() * 1000) + soon_ms
        fill(a, at_ms)
        check_equal(nodes, "filled")
        apart(*nodes)
        try:
            prolong(rest[0], later_ms)
            return at_ms
        except AssertionError:
            if time.time() * 1000 < at_ms:
                raise
        together(*nodes)
        check_quiet(nodes)
        call(a, "FLUSHALL")
        eventually(lambda: not any(call(n, "DBSIZE") for n in nodes), "nothing is left", 30)
        soon_ms *= 4


@pytest.mark.parametrize("how", ["sweep", "write"])
@PAIR_AND_MESH
def test_what_was_prolonged_elsewhere_stays(make_node, count, how):
    """The node that wrote it is cut off, and takes it away when its time has come; or its clients do, who write."""
    nodes = mesh(make_node, count)
    a, rest = nodes[0], nodes[1:]
    later_ms = int(time.time() * 1000) + 3600000
    at_ms = cut_off_before_it_is_due(nodes, later_ms)
    eventually(lambda: time.time() * 1000 > at_ms + 50, "due", 60)
    if how == "write":
        with a.connect() as c:
            c.call("APPEND", "moved", "w")
            c.call("HSET", "hash", "none", "2")
            c.call("SADD", "set", "none")
            c.call("ZADD", "zset", 4, "none")
    eventually(lambda: call(a, "DBSIZE") in ((3, 4) if how == "sweep" else (4, 5)), "swept", 20)
    together(*nodes)
    check_equal(nodes, "together")
    check_quiet(nodes)
    check_equal(nodes, "quiet")
    if how == "sweep":
        for node in nodes:
            check_prolonged(node, later_ms)
    else:
        assert call(rest[0], "PEXPIRETIME", "moved") == later_ms
        assert call(a, "PTTL", "kept") == -1
        assert sorted(call(a, "SMEMBERS", "set")) == [b"kept", b"moved", b"none"]


def test_both_sides_of_a_cut_take_away_the_same(make_node):
    """No state is told for what both have lost."""
    a, b = mesh(make_node, 2, **SILENCE)
    at_ms = int(time.time() * 1000) + SOON_MS
    for node in (a, b):
        with node.connect() as c:
            c.pipeline([["SET", "%s:%d" % (node.address()[1], i), "v", "PXAT", at_ms] for i in range(200)])
    check_equal([a, b], "filled")
    apart(a, b)
    eventually(lambda: call(a, "DBSIZE") == call(b, "DBSIZE") == 0, "both have taken it away", 30)
    together(a, b)
    check_equal([a, b], "together")
    check_quiet([a, b])
    assert replication(a)["active_states"] == replication(b)["active_states"] == "0"


def skewed(node, skew_ms):
    """Started again, with a wall clock that is so far ahead."""
    node.stop()
    node.environment = dict(node.environment, KEYDB_ACTIVE_SKEW_MS=str(skew_ms))
    return node.start()


def prolonged_behind_a_cut(nodes, writer, other):
    """A key of the writer that is due soon, and that the other prolongs while they are apart."""
    soon_ms = SOON_MS
    while True:
        call(writer, "HSET", "h", "f", "1")
        call(writer, "PEXPIRE", "h", soon_ms)
        eventually(lambda: call(other, "PTTL", "h") > 0 or not call(writer, "EXISTS", "h"), "there")
        apart(*nodes)
        if call(other, "PTTL", "h") > 0 and call(other, "EXPIRE", "h", 7200) == 1:
            return
        together(*nodes)  # its time was over before that
        eventually(lambda: not any(call(n, "DBSIZE") for n in nodes), "gone", 20)
        soon_ms *= 4


@pytest.mark.parametrize("skew_ms", [3600000, -3600000])
def test_clocks_that_differ_by_an_hour(make_node, seams, skew_ms):
    """A key set for some time lives so long on each node; what one side of a cut prolonged stays, whoever's clock is
    ahead."""
    a, b = make_node(), skewed(make_node(), skew_ms)
    together(a, b)
    with a.connect() as ca, b.connect() as cb:
        for writer, other in ((ca, cb), (cb, ca)):
            assert comes(writer, other, "k", SOON_MS) <= SOON_MS
            eventually(lambda: cb.call("DBSIZE") == ca.call("DBSIZE") == 0, "gone", 20)
        for writer, other in ((a, b), (b, a)):
            prolonged_behind_a_cut((a, b), writer, other)
            eventually(lambda: call(writer, "DBSIZE") == 0, "it has taken it away", 60)
            together(a, b)
            eventually(lambda: call(writer, "EXISTS", "h") == 1, "back", 20)
            check_equal([a, b], "together")
            assert call(a, "DEL", "h") == 1
            eventually(lambda: call(b, "DBSIZE") == 0, "deleted")
    check_quiet([a, b])


def test_a_clock_that_is_behind_goes_on_between_words_of_others(make_node, seams):
    """The others' time is an hour ahead of this node's wall clock: a deadline comes nearer also while nothing is heard,
    and nothing else moves the clock on."""
    a, b = make_node(), skewed(make_node(), -3600000)
    together(a, b)
    assert call(a, "SET", "k", "1", "PX", 3600000) == b"OK"
    eventually(lambda: call(b, "EXISTS", "k") == 1, "there")
    apart(a, b)
    assert call(b, "DEBUG", "PAUSE-CRON", "1") == b"OK"
    left_ms = call(b, "PTTL", "k")
    eventually(lambda: call(b, "PTTL", "k") < left_ms, "time goes on")
    assert 3500000 < call(b, "PTTL", "k") <= 3600000
    assert call(b, "DEBUG", "PAUSE-CRON", "0") == b"OK"


def noted_ms(node):
    """How far the node's clock may have come, by its file."""
    with open(node.file("active-node")) as f:
        return int(f.read().split()[3], 16) >> 16


def test_a_clock_goes_on_from_where_it_was(make_node, seams):
    """A node that begins without its data, and apart from those whose clocks are ahead, writes no earlier than before."""
    a, b = skewed(make_node(), 3600000), make_node()
    together(a, b)
    assert call(b, "SET", "k", "before") == b"OK"
    check_equal([a, b], "together")
    eventually(lambda: noted_ms(b) > time.time() * 1000 + 3500000, "noted", 20)
    apart(a, b)
    b.kill_all()
    b.start()
    assert call(b, "GET", "k") is None and call(b, "SET", "k", "after") == b"OK"
    together(a, b)
    check_equal([a, b], "together again")
    assert call(a, "GET", "k") == b"after"
    check_quiet([a, b])


def test_when_an_entry_was_given_is_what_its_giver_says(make_node, seams):
    """By the giver's clock, also in the files of a node whose clock is behind that."""
    a, b = skewed(make_node(), 3600000), make_node(files=["appendonlydir"], appendonly="yes")
    together(a, b)
    with a.connect() as c:
        c.ok("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        c.call("XADD", "s", "*", "f", "v")
        assert c.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    eventually(lambda: call(b, "EXISTS", "s") and call(b, "XPENDING", "s", "g")[0] == 1, "told")
    check_equal([a, b], "told")
    apart(a, b)
    b.kill_all()
    b.start()
    assert digest(b) == digest(a)


LINES = ["SET k:%d v PXAT %d", "PEXPIREAT k:%d %d", "GETEX k:%d PXAT %d", "HSET h:%d f 1 g 2 h %d",
         "HPEXPIREAT h:%d %d FIELDS 2 f g", "HPEXPIREAT h:%d %d FIELDS 1 h", "SADD s:%d a b c %d",
         "PEXPIREMEMBERAT s:%d a %d", "PEXPIREMEMBERAT s:%d b %d", "INCRBY n:%d %d", "PEXPIREAT n:%d %d",
         "PEXPIREAT h:%d %d"]
PLAIN = ["PERSIST k:%d", "GETEX k:%d PERSIST", "HPERSIST h:%d FIELDS 1 f", "PERSIST s:%d a", "PERSIST s:%d", "DEL k:%d",
         "HDEL h:%d f", "INCR n:%d", "HINCRBY h:%d g 1", "EXISTS k:%d", "HGET h:%d f"]


@pytest.mark.long
@PAIR_AND_MESH
@pytest.mark.parametrize("seed", seeds(2))
def test_random_deadlines_with_cuts(make_node, count, seed):
    print("seed", seed)
    nodes = mesh(make_node, count, **SILENCE)
    random = generator(seed, "deadlines")
    for step in range(1500):
        node = random.choice(nodes)
        key = random.randrange(4)
        with node.connect() as c:
            if random.random() < 0.6:
                soon = int(time.time() * 10) * 100 + random.choice([0, 100, 200, 500, 3600000])
                c.call(*(random.choice(LINES) % (key, soon)).split())
            else:
                c.call(*(random.choice(PLAIN) % key).split())
        if step % 150 == 0:
            cut(random.choice(nodes))
        if step == 700:
            apart(*nodes)
        if step == 1000:
            together(*nodes)
    eventually(lambda: all(is_up(n, count - 1) for n in nodes), "links", 30)
    time.sleep(1.5)  # all that is due soon is due, and nobody is silent
    eventually(lambda: len({str(call(n, "DEBUG", "DIGEST")) for n in nodes}) == 1, "equal content", 30)
    check_quiet(nodes)
    check_equal(nodes, "seed %d" % seed)
