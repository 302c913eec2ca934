"""Active replicas as far as they are built: real servers that all take writes, as a pair and as a
mesh of three, whose links are cut and made again.  They begin without data, and their logs hold
everything, so that no MERGE is needed.

Only builds with KEYDB_DEBUG (debug and sanitizer builds) let a test have `active-replica yes`
(src/repl/active.h); with others the tests here are skipped."""

import os
import signal
import time

import pytest

from lib.bounds import eventually, scaled
from lib.replication import Load, everything, replication
from lib.resp import Error
from lib.seeds import generator, seeds
from lib.server import Server, is_redis, server_path

PREVIEW = {"KEYDB_ACTIVE_PREVIEW": "1"}
OPTIONS = {"active-replica": "yes", "multi-master": "yes", "repl-backlog-size": "256mb"}
EQUAL_BOUND_S = 5.0


@pytest.fixture(scope="module")
def preview():
    """Skips where the program does not let tests have active replicas."""
    if is_redis(server_path()):
        pytest.skip("Redis has no active replicas")
    probe = Server(threads=1, options=OPTIONS)
    probe.environment = PREVIEW
    probe.expected_files.add("active-node")
    try:
        probe.start()
    except Exception as refusal:  # any other reason fails the tests of servers that must start
        if "does not exist in this version" in str(refusal):
            pytest.skip("a release build: active replicas are refused until they are complete")
        raise
    else:
        probe.stop()
    finally:
        probe.kill()
        probe.remove()


@pytest.fixture
def make_node(preview, make_server):
    def make(**more):
        node = make_server(dict(OPTIONS, **more), files=["active-node"], start=False)
        node.environment = PREVIEW
        return node.start()
    return make


def follow(node, *peers):
    with node.connect() as c:
        for peer in peers:
            c.ok("REPLICAOF", "127.0.0.1", peer.port)


def mesh(make_node, count, **more):
    nodes = [make_node(**more) for _ in range(count)]
    for node in nodes:
        follow(node, *[peer for peer in nodes if peer is not node])
    eventually(lambda: all(is_up(n, count - 1) for n in nodes), "links", 30)
    return nodes


def is_up(node, masters):
    about = replication(node)
    return int(about.get("connected_masters", 0)) == masters and \
        int(about["connected_slaves"]) >= masters


def digest(node):
    with node.connect() as c:
        return c.call("DEBUG", "DIGEST")


def differences(nodes):
    """What to show where they differ."""
    found = [everything(n) for n in nodes]
    places = sorted(set().union(*found))
    return [(place, [f.get(place) for f in found]) for place in places
            if any(f.get(place) != found[0].get(place) for f in found)][:5]


def check_equal(nodes, what):
    try:
        eventually(lambda: len({digest(n) for n in nodes}) == 1, "equal content", EQUAL_BOUND_S, 0.05)
    except AssertionError as trouble:
        facts = [{k: v for k, v in replication(n).items() if k.startswith("active")} for n in nodes]
        raise AssertionError("%s: %s\n%s\n%s" % (what, trouble, differences(nodes), facts)) from None


def told(nodes):
    about = [replication(n) for n in nodes]
    return [(a["active_own_units"], a["active_disputed_keys"]) for a in about]


def check_quiet(nodes):
    """Nothing is told any more: no dispute goes on for ever."""
    deadline = time.monotonic() + scaled(15)
    while time.monotonic() < deadline:
        before = told(nodes)
        time.sleep(scaled(0.4))
        if told(nodes) == before and all(disputes == "0" for _, disputes in before):
            return
    raise AssertionError("not quiet: %s, %s" % (before, told(nodes)))


def cut(node):
    with node.connect() as c:
        return c.call("CLIENT", "KILL", "TYPE", "replica")


def run_load(nodes, seed, during):
    """Random writes on all nodes at once, from two clients each, while during() happens."""
    loads = [Load(n, [generator(seed, i, c) for c in range(2)]) for i, n in enumerate(nodes)]
    for load in loads:
        load.__enter__()
    try:
        during(loads)
    finally:
        for load in loads:
            load.stopped.set()
        for load in loads:
            load.stop()


def more_commands(loads, count):
    begun = [load.commands for load in loads]
    eventually(lambda: all(load.errors or load.commands >= at + count
                           for load, at in zip(loads, begun)), "load", 60)


@pytest.mark.parametrize("count", [2, 3], ids=["pair", "mesh"])
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
        os.kill(c.pid, signal.SIGSTOP)
        try:
            with a.connect() as ca, b.connect() as cb:
                begun = time.monotonic()
                for i in range(300):
                    ca.ok("SET", "a%d" % i, "x" * 1000)
                    cb.ok("SET", "b%d" % i, "x" * 1000)
                check_equal([a, b], "while the third stands still")
                assert time.monotonic() - begun < scaled(10)
        finally:
            os.kill(c.pid, signal.SIGCONT)
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
        ca.ok("SET", "e", "1", "PX", "150")
        eventually(lambda: cb.call("EXISTS", "e") == 1, "e is there")
        eventually(lambda: cb.call("EXISTS", "e") == 0, "e is over")
        cb.call("INCR", "e")
        check_equal([a, b], "an expiry")
        assert ca.call("GET", "e") == b"1"
        assert isinstance(ca.call("SWAPDB", 0, 1), Error)
    check_quiet([a, b])


def test_deadlines_of_a_clock_that_is_ahead(make_node):
    """A key set for a time lives that long on both."""
    a, b = mesh(make_node, 2)
    with a.connect() as ca, b.connect() as cb:
        ca.ok("SET", "k", "v", "PX", "1500")
        eventually(lambda: cb.call("EXISTS", "k") == 1, "there")
        assert 0 < cb.call("PTTL", "k") <= 1500
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
        assert b"version" in c.call("KEYDB.PULL", "2", stranger, now)
        assert b"itself" in c.call("KEYDB.PULL", "1", node, now)
        assert b"ahead" in c.call("KEYDB.PULL", "1", stranger, now + (30 * 3600 * 1000 << 16))
        assert isinstance(c.call("KEYDB.PULL", "1", stranger, now, origin, "1"), Error)
        assert isinstance(c.call("KEYDB.PULL", "1", stranger, now, "x", "1", "1"), Error)
        assert isinstance(c.call("KEYDB.PULL", "1", "x", now), Error)
        follow(a, a)
        time.sleep(0.3)
        assert replication(a)["master_link_status"] == "down"
        c.ok("REPLICAOF", "NO", "ONE")
        c.send("KEYDB.PULL", "1", stranger, now)
        assert c.read() == b"PULL " + node.encode()


def test_what_is_not_kept(make_node):
    """A log that has dropped what a peer lacks: refused clearly, nobody else is concerned."""
    a, b = make_node(**{"repl-backlog-size": "16kb"}), make_node()
    with a.connect() as c:
        for i in range(100):
            c.ok("SET", "k%d" % i, "x" * 1000)
        stranger, now = "ab" * 16, int(time.time() * 1000) << 16
        with a.connect() as p:
            assert p.call("KEYDB.PULL", "1", stranger, now).startswith(b"NOMERGE ")
        follow(b, a)
        eventually(lambda: "NOMERGE" in b.output(), "the refusal is logged")
        assert replication(b)["master_link_status"] == "down"
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
