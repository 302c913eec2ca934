"""Streams of active replicas: entries that several nodes add at the same time are all there, in one order; groups
end with the same positions and pending entries."""

import threading
import time

import pytest

from lib.active import PAIR_AND_MESH, check_equal, check_quiet, follow, make_node, mesh  # noqa: F401 (fixtures)
from lib.bounds import eventually
from lib.replication import replication


def unlink(*nodes):
    for node in nodes:
        with node.connect() as c:
            c.ok("REPLICAOF", "NO", "ONE")
    eventually(lambda: not any(int(replication(n)["connected_slaves"]) for n in nodes), "no links", 30)


def link(*nodes):
    for node in nodes:
        follow(node, *[peer for peer in nodes if peer is not node])


def states(node):
    return int(replication(node)["active_states"])


def entries(client, key="s"):
    return client.call("XRANGE", key, "-", "+")


def test_appends_on_both_sides_of_a_cut_are_all_kept(make_node):
    a, b = mesh(make_node, 2)
    with a.connect() as ca, b.connect() as cb:
        first = ca.call("XADD", "s", "*", "n", "0")
        eventually(lambda: len(entries(cb)) == 1, "there")
        unlink(a, b)
        ids = {ca.call("XADD", "s", "*", "a", i) for i in range(50)} | \
            {cb.call("XADD", "s", "*", "b", i) for i in range(50)} | {first}
        ids |= {ca.call("XADD", "s", "99999999999999-*", "a", "x"), cb.call("XADD", "s", "99999999999999-*", "b", "x")}
        ids |= {ca.call("XADD", "s", "*", "behind", "x"), cb.call("XADD", "s", "*", "behind", "x")}
        assert len(ids) == 105
        link(a, b)
        check_equal([a, b], "after the cut")
        assert {e[0] for e in entries(ca)} == ids and len(entries(ca)) == 105
        about = ca.call("XINFO", "STREAM", "s")
        about = dict(zip(about[::2], about[1::2]))
        assert about[b"entries-added"] == 105 and about[b"length"] == 105
        # In the order of their ids, and each node's in the order in which it added them.
        listed = [tuple(map(int, e[0].split(b"-"))) for e in entries(ca)]
        assert listed == sorted(listed)
        assert [e[1][1] for e in entries(ca) if e[1][0] == b"a"][:50] == [b"%d" % i for i in range(50)]
    check_quiet([a, b])
    assert states(a) == states(b) == 0


@PAIR_AND_MESH
def test_appends_at_once(make_node, count):
    nodes = mesh(make_node, count)
    ids, lock = [], threading.Lock()

    def add(node):
        with node.connect() as c:
            own = [c.call("XADD", "s", "*", "f", i, "node", node.port) for i in range(300)]
        with lock:
            ids.extend(own)
    threads = [threading.Thread(target=add, args=(n,)) for n in nodes for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check_equal(nodes, "afterwards")
    with nodes[0].connect() as c:
        assert {e[0] for e in entries(c)} == set(ids) and len(ids) == count * 600
        assert c.call("XLEN", "s") == count * 600
    check_quiet(nodes)
    assert sum(map(states, nodes)) == 0


@pytest.mark.long
def test_trimmed_on_both_sides(make_node):
    a, b = mesh(make_node, 2)
    with a.connect() as ca, b.connect() as cb:
        for i in range(20):
            ca.call("XADD", "s", "*", "old", i)
        eventually(lambda: len(entries(cb)) == 20, "there")
        unlink(a, b)
        for i in range(30):
            ca.call("XADD", "s", "MAXLEN", 20, "*", "a", i)
            cb.call("XADD", "s", "MAXLEN", 20, "*", "b", i)
        link(a, b)
        check_equal([a, b], "after the cut")
        kept = [e[1] for e in entries(ca)]
        # What each side kept of its own is there: it trimmed nothing of the other's.
        assert sorted(kept) == sorted([[side, b"%d" % i] for side in (b"a", b"b") for i in range(10, 30)])
    check_quiet([a, b])


def test_groups_on_both_sides(make_node):
    """What was read and acknowledged on either side counts on both."""
    a, b = mesh(make_node, 2)
    with a.connect() as ca, b.connect() as cb:
        ids = [ca.call("XADD", "s", "*", "n", i) for i in range(8)]
        ca.ok("XGROUP", "CREATE", "s", "g", "0")
        ca.ok("XGROUP", "CREATE", "s", "h", "$")
        check_equal([a, b], "the groups")
        assert ca.call("XREADGROUP", "GROUP", "g", "one", "COUNT", 2, "STREAMS", "s", ">")
        assert cb.call("XGROUP", "CREATECONSUMER", "s", "g", "idle") == 1
        check_equal([a, b], "read by one")
        unlink(a, b)
        assert len(ca.call("XREADGROUP", "GROUP", "g", "one", "COUNT", 2, "STREAMS", "s", ">")[0][1]) == 2
        assert ca.call("XACK", "s", "g", ids[0]) == 1
        time.sleep(0.05)  # only the clocks say who is later
        assert len(cb.call("XREADGROUP", "GROUP", "g", "two", "COUNT", 4, "STREAMS", "s", ">")[0][1]) == 4
        assert cb.call("XACK", "s", "g", ids[1], ids[2], "5-5") == 2
        assert cb.call("XREADGROUP", "GROUP", "h", "none", "NOACK", "STREAMS", "s", ">") is None
        new = ca.call("XADD", "s", "*", "late", 1)
        assert cb.call("XREADGROUP", "GROUP", "h", "none", "NOACK", "STREAMS", "s", ">") is None
        assert len(ca.call("XREADGROUP", "GROUP", "h", "x", "NOACK", "STREAMS", "s", ">")[0][1]) == 1
        link(a, b)
        check_equal([a, b], "after the cut")
        groups = {g[1]: dict(zip(g[::2], g[1::2])) for g in cb.call("XINFO", "GROUPS", "s")}
        assert groups[b"g"][b"last-delivered-id"] == ids[5] and groups[b"g"][b"consumers"] == 3
        assert groups[b"h"][b"last-delivered-id"] == new
        # ids[2] and ids[3] were given to both; whoever was later has ids[3], and ids[2] is done.
        pending = cb.call("XPENDING", "s", "g", "-", "+", 10)
        assert [(p[0], p[1]) for p in pending] == [(ids[3], b"two"), (ids[4], b"two"), (ids[5], b"two")]
        assert ca.call("XAUTOCLAIM", "s", "g", "three", 0, "0", "COUNT", 2)[1]
        check_equal([a, b], "claimed")
        assert ca.call("XGROUP", "DELCONSUMER", "s", "g", "two") == 1
        check_equal([a, b], "a consumer less")
        assert cb.call("XGROUP", "DESTROY", "s", "h") == 1
        check_equal([a, b], "a group less")
    check_quiet([a, b])


@pytest.mark.long
def test_workers_of_a_group_on_all_nodes(make_node):
    """Consumers and producers everywhere: afterwards all say the same, nothing is pending, and each entry was worked
    on; on more than one node only within the time that a link takes."""
    nodes = mesh(make_node, 3)
    with nodes[0].connect() as c:
        c.ok("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    check_equal(nodes, "the group")
    added, done, lock, over = [], [], threading.Lock(), threading.Event()

    def produce(node):
        with node.connect() as c:
            own = [c.call("XADD", "s", "*", "n", i) for i in range(200)]
        with lock:
            added.extend(own)

    def consume(node, name):
        with node.connect() as c:
            while not over.is_set():
                got = c.call("XREADGROUP", "GROUP", "g", name, "COUNT", 5, "BLOCK", 20, "STREAMS", "s", ">")
                for entry in got[0][1] if got else ():
                    c.call("XACK", "s", "g", entry[0])
                    with lock:
                        done.append(entry[0])
    makers = [threading.Thread(target=produce, args=(n,)) for n in nodes]
    workers = [threading.Thread(target=consume, args=(n, "c%d" % i)) for i, n in enumerate(nodes)]
    for t in makers + workers:
        t.start()
    for t in makers:
        t.join()
    check_equal_when_quiet(nodes)
    over.set()
    for t in workers:
        t.join()
    check_equal(nodes, "afterwards")
    with nodes[1].connect() as c:
        assert c.call("XLEN", "s") == 600 and c.call("XPENDING", "s", "g")[0] == 0
        assert {e[0] for e in entries(c)} == set(added) and set(done) <= set(added)
    check_quiet(nodes)


def check_equal_when_quiet(nodes):
    def read_up():
        for node in nodes:
            with node.connect() as c:
                if c.call("XLEN", "s") != 600 or c.call("XPENDING", "s", "g")[0]:
                    return False
        return True
    eventually(read_up, "all worked on", 60, 0.05)


def pending(client):
    """But for how long they have been so."""
    return [p[:2] + p[3:] for p in client.call("XPENDING", "s", "g", "-", "+", 10)]


@pytest.mark.long
def test_ends_and_starts(make_node):
    """What came in between is in RDB and AOF."""
    for options in ({"appendonly": "yes"}, {}):
        a, b = mesh(make_node, 2, files=("appendonlydir", "dump.rdb"), **options)
        with a.connect() as ca, b.connect() as cb:
            ca.ok("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
            check_equal([a, b], "the group")
            unlink(a, b)
            for i in range(30):
                ca.call("XADD", "s", "*", "a", i)
                cb.call("XADD", "s", "*", "b", i)
            ca.call("XREADGROUP", "GROUP", "g", "one", "COUNT", 5, "STREAMS", "s", ">")
            link(a, b)
            check_equal([a, b], "after the cut")
            ca.ok("SET", "last", "1")  # what was told before is in the file as well when this is answered
            wanted = entries(ca), pending(ca), ca.call("DEBUG", "DIGEST")
            if not options:
                ca.ok("SAVE")
        a.kill_all()
        a.start()
        with a.connect() as ca:
            assert entries(ca) == wanted[0], options
            assert pending(ca) == wanted[1], options
            assert ca.call("DEBUG", "DIGEST") == wanted[2], options
            assert len(entries(ca)) == 60
