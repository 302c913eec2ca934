"""Active replicas: real servers that all take writes, as a pair and as a mesh of three, whose links are cut and made
again.  Their logs hold everything, so that no MERGE is needed."""

import time

import pytest

from lib import pubsub
from lib.active import (PAIR_AND_MESH, PULL_VERSION, check_equal, check_quiet, comes, cut, follow, is_up, make_node, mesh,
                        more_commands, run_load)
from lib.bounds import Bound, BoundPassed, eventually, scaled
from lib.replication import replication
from lib.resp import Error
from lib.seeds import generator, seeds


__all__ = ["make_node"]  # fixtures


@PAIR_AND_MESH
@pytest.mark.parametrize("seed", seeds(2))
def test_random_writes(make_node, count, seed):
    print("seed", seed)
    nodes = mesh(make_node, count)
    run_load(nodes, seed, lambda loads: more_commands(loads, 2000))
    check_equal(nodes, "seed %d" % seed)
    check_quiet(nodes)


@pytest.mark.parametrize("count", [2, 3], ids=["pair", "mesh"])
@pytest.mark.parametrize("seed", seeds(1, 50))
def test_random_writes_with_cuts(make_node, count, seed):
    print("seed", seed)
    nodes = mesh(make_node, count)
    random = generator(seed, "cuts")

    def during(loads):
        for _ in range(6):
            more_commands(loads, 200)
            eventually(lambda: cut(random.choice(nodes)) > 0, "cut", 30)
    run_load(nodes, seed, during)
    eventually(lambda: all(is_up(n, count - 1) for n in nodes), "links", 30)
    check_equal(nodes, "seed %d" % seed)
    check_quiet(nodes)


def test_writes_while_there_is_no_link(make_node):
    """What was written on both sides of a cut is merged, not chosen."""
    a, b = mesh(make_node, 2)
    with a.connect() as ca, b.connect() as cb:
        ca.ok("SET", "n", "10")
        ca.call("SADD", "s", "old")
        eventually(lambda: cb.call("GET", "n") == b"10" and cb.call("SCARD", "s") == 1, "there")
        ca.ok("REPLICAOF", "NO", "ONE")
        cb.ok("REPLICAOF", "NO", "ONE")
        eventually(lambda: not int(replication(a)["connected_slaves"]) and
                   not int(replication(b)["connected_slaves"]), "no links", 30)
        for _ in range(7):
            ca.call("INCR", "n")
            cb.call("INCRBY", "n", 100)
        ca.call("SADD", "s", "a")
        cb.call("SREM", "s", "old")
        cb.call("SADD", "s", "b")
        ca.call("HSET", "h", "f", "1")
        cb.call("HSET", "h", "g", "2")
        ca.ok("SET", "one", "first")
        time.sleep(0.05)  # neither node knows of the other's write: only the clock says which is later
        cb.ok("SET", "one", "later")
        assert ca.call("GET", "n") == b"17" and cb.call("GET", "n") == b"710"
        follow(a, b)
        follow(b, a)
        check_equal([a, b], "after the cut")
        assert ca.call("GET", "n") == b"717"
        assert sorted(ca.call("SMEMBERS", "s")) == [b"a", b"b"]
        assert sorted(ca.call("HGETALL", "h")) == [b"1", b"2", b"f", b"g"]
        assert ca.call("GET", "one") == b"later"
    check_quiet([a, b])


def test_a_peer_that_stands_still(make_node):
    """The others go on without it; afterwards it has everything, and they have its writes."""
    nodes = mesh(make_node, 3)
    a, b, c = nodes
    with c.connect() as cc:
        cc.ok("SET", "before", "1")
        with c.standing_still():
            with a.connect() as ca, b.connect() as cb:
                bound = Bound(scaled(10))
                for i in range(300):
                    ca.ok("SET", "a%d" % i, "x" * 1000)
                    cb.ok("SET", "b%d" % i, "x" * 1000)
                    bound.left()
                check_equal([a, b], "while the third stands still")
                if not bound.left():
                    raise BoundPassed("they wait for the one that stands still")
    check_equal(nodes, "afterwards")
    with a.connect() as ca:
        assert ca.call("DBSIZE") == 601
    check_quiet(nodes)


def test_a_node_that_comes_back_empty(make_node):
    """It has lost its data and not its id: in a new epoch, it gets back what its peers know, its own
    former writes among it."""
    a, b = mesh(make_node, 2)
    with a.connect() as ca, b.connect() as cb:
        for i in range(50):
            ca.call("INCR", "n")
            cb.call("INCR", "n")
        check_equal([a, b], "before")
        node = replication(a)["active_node_id"]
        port = a.port
        a.kill_all()
        a.start()
        cb.ok("REPLICAOF", "REMOVE", "127.0.0.1", port)
        assert isinstance(cb.call("REPLICAOF", "REMOVE", "127.0.0.1", port), Error)
        follow(b, a)
        follow(a, b)
        check_equal([a, b], "after")
        with a.connect() as again:
            assert again.call("GET", "n") == b"100"
            again.call("INCR", "n")
        eventually(lambda: cb.call("GET", "n") == b"101", "the new epoch's first write")
        about = replication(a)
        assert about["active_node_id"] == node and about["active_origins"] == "3"
    check_quiet([a, b])


def test_ends_of_hold(make_node):
    """Transactions, scripts, blocked calls and expiries: each is one unit, told once."""
    a, b = mesh(make_node, 2)
    with a.connect() as ca, b.connect() as cb, a.connect() as waits:
        ca.ok("MULTI")
        for i in range(5):
            ca.call("SELECT", i % 3)
            ca.call("SET", "t%d" % i, i)
        ca.call("EXEC")
        ca.ok("SELECT", 0)
        ca.call("EVAL", "for i = 1, 10 do redis.call('RPUSH', 'l', i) end", 0)
        assert replication(a)["active_own_units"] == "2"
        waits.send("BLPOP", "q", 0)
        eventually(lambda: a.info("clients")["blocked_clients"] == "1", "waits")
        cb.call("RPUSH", "q", "x", "y")
        assert waits.read() == [b"q", b"x"]
        check_equal([a, b], "a blocked pop")
        assert cb.call("LRANGE", "q", 0, -1) == [b"y"]
        comes(ca, cb, "e", 150)
        eventually(lambda: cb.call("EXISTS", "e") == 0, "e is over")
        cb.call("INCR", "e")
        check_equal([a, b], "an expiry")
        assert ca.call("GET", "e") == b"1"
    check_quiet([a, b])


def test_deadlines_of_a_clock_that_is_ahead(make_node):
    """A key set for a time lives that long on both."""
    a, b = mesh(make_node, 2)
    with a.connect() as ca, b.connect() as cb:
        assert comes(ca, cb, "k", 1500) <= 1500
        eventually(lambda: ca.call("EXISTS", "k") == 0 and cb.call("EXISTS", "k") == 0, "gone")
        eventually(lambda: ca.call("DBSIZE") == 0 and cb.call("DBSIZE") == 0, "removed")
    check_quiet([a, b])


def test_info_and_role(make_node):
    a, b = mesh(make_node, 2)
    about = replication(a)
    assert about["role"] == "active-replica" and about["master_global_link_status"] == "up"
    assert about["master_host"] == "127.0.0.1" and about["master_port"] == str(b.port)
    assert about["master_link_status"] == "up" and about["slave0"].startswith("ip=127.0.0.1,port=")
    with a.connect() as c:
        assert c.call("ROLE")[:4] == [b"active-replica", b"127.0.0.1", b.port, b"connected"]
        assert c.call("REPLICAOF", "127.0.0.1", b.port).startswith(b"OK Already connected")
        assert replication(a)["connected_masters"] == "1"
        assert c.call("CLIENT", "KILL", "TYPE", "master") == 1
        eventually(lambda: is_up(a, 1), "made anew")
        c.ok("REPLICAOF", "NO", "ONE")
        eventually(lambda: not int(replication(b)["connected_slaves"]), "no more")
        assert "master_host" not in replication(a)
        assert c.call("ROLE")[0] == b"active-replica"


def test_refusals(make_node):
    """KEYDB.PULL says what is wrong, and a node does not pull from itself."""
    a = make_node()
    node = replication(a)["active_node_id"]
    stranger, origin = "ab" * 16, "cd" * 24
    now = int(time.time() * 1000) << 16
    with a.connect() as c:
        assert b"version" in c.call("KEYDB.PULL", "1", stranger, now)
        assert b"itself" in c.call("KEYDB.PULL", PULL_VERSION, node, now)
        assert b"ahead" in c.call("KEYDB.PULL", PULL_VERSION, stranger, now + (30 * 3600 * 1000 << 16))
        assert isinstance(c.call("KEYDB.PULL", PULL_VERSION, stranger, now, origin, "1"), Error)
        assert isinstance(c.call("KEYDB.PULL", PULL_VERSION, stranger, now, "x", "1", "1"), Error)
        assert isinstance(c.call("KEYDB.PULL", PULL_VERSION, "x", now), Error)
        follow(a, a)
        time.sleep(0.3)
        assert replication(a)["master_link_status"] == "down"
        c.ok("REPLICAOF", "NO", "ONE")
        c.send("KEYDB.PULL", PULL_VERSION, stranger, now)
        assert c.read() == b"PULL " + node.encode()


def test_what_is_not_kept(make_node):
    """A log that has dropped what a peer lacks: everything comes first (test_active_sync.py)."""
    a, b = make_node(**{"repl-backlog-size": "16kb"}), make_node()
    with a.connect() as c:
        for i in range(100):
            c.ok("SET", "k%d" % i, "x" * 1000)
        stranger, now = "ab" * 16, int(time.time() * 1000) << 16
        with a.connect() as p:
            assert p.call("KEYDB.PULL", PULL_VERSION, stranger, now) == b"MERGE " + replication(a)["active_node_id"].encode()
        follow(b, a)
        check_equal([a, b], "all of it")
        assert c.call("DBSIZE") == 100


def test_password(make_node):
    a = make_node(requirepass="secret")
    a.password = "secret"
    b = make_node(masterauth="wrong")
    follow(b, a)
    eventually(lambda: "masterauth" in b.output(), "refused")
    with b.connect() as c:
        c.ok("CONFIG", "SET", "masterauth", "secret")
        with a.connect() as ca:
            ca.ok("SET", "k", "v")
        eventually(lambda: c.call("GET", "k") == b"v", "linked", 30)


def test_messages(make_node):
    """What is published on one node the subscribers of each hear once, whatever restarts."""
    nodes = mesh(make_node, 3, appendonly="yes", files=["appendonlydir"])
    listeners = [node.connect(3) for node in nodes]
    for listener in listeners:
        pubsub.subscribe(listener, "SUBSCRIBE", "news")
    with nodes[0].connect() as c:
        c.pipeline([["PUBLISH", "news", "one"],
                    ["MULTI"], ["SET", "a", "1"], ["PUBLISH", "news", "two"], ["EXEC"],
                    ["EVAL", "redis.call('publish', 'news', 'three') return redis.call('set', 'b', 1)",
                     "0"], ["PUBLISH", "news", "last"]])
    for listener in listeners:
        assert [frame[-1] for frame in pubsub.frames(listener, 4)] == [b"one", b"two", b"three", b"last"]
        assert listener.call("PING") == b"PONG" and not listener.pushes
        listener.close()
    check_equal(nodes, "the data")
    for node in nodes:
        node.stop()
        node.start()
    check_equal(nodes, "the data")
