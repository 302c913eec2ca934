"""repl-backlog-disk-reserve of active replicas: a node that was away for longer than memory keeps is sent the logs'
tail, not a whole data set; whatever becomes of the file costs a data set at most."""

import pytest

from lib.active import apart, check_equal, check_quiet, follow, is_up, make_node, mesh, more_commands, run_load, together
from lib.bounds import eventually
from lib.replication import replication
from lib.reserve import cut_off, damage, names_left, reserve_files

__all__ = ["make_node"]  # fixtures

SHORT = {"repl-backlog-size": "16kb"}
ON_DISK = dict(SHORT, **{"repl-backlog-disk-reserve": "64mb"})
SENT_ALL, SENT_TAIL = "has been sent the data set", "is sent what the disk has"


def fill(node, name, count, size=100):
    with node.connect() as c:
        for at in range(0, count, 500):
            c.pipeline([["SET", "%s:%d" % (name, i), name + "x" * size] for i in range(at, min(at + 500, count))])


def said(nodes, words):
    return sum(node.output().count(words) for node in nodes)


@pytest.mark.parametrize("count", [2, 3])
def test_away_longer_than_memory_keeps(make_node, count):
    nodes = mesh(make_node, count, **ON_DISK)
    away, others = nodes[0], nodes[1:]
    fill(others[0], "before", 100)
    check_equal(nodes, "before")
    apart(away, others=len(others))
    for node in others:
        with node.connect() as c:
            c.call("REPLICAOF", "REMOVE", "127.0.0.1", away.address()[1])
    eventually(lambda: replication(away)["connected_slaves"] == "0", "nobody pulls from it", 30)
    for number, node in enumerate(others):
        fill(node, "others%d" % number, 3000)
    fill(away, "away", 50)
    with others[0].connect() as c, away.connect() as d:
        for i in range(0, 100, 2):
            c.call("DEL", "before:%d" % i)
        for i in range(1, 100, 2):
            d.call("APPEND", "before:%d" % i, "+")
        c.call("HSET", "h", "f", "1")
        d.call("HSET", "h", "g", "2")
    follow(away, *others)
    for node in others:
        follow(node, away)
    eventually(lambda: all(is_up(n, count - 1) for n in nodes), "links", 60)
    check_equal(nodes, "again")
    if count == 2:  # from two at once what is new comes late, below such a short window: a state of each key
        check_quiet(nodes)
    with away.connect() as c:
        assert c.call("EXISTS", "before:0", "before:98") == 0
        assert c.call("EXISTS", "others0:0", "others0:2999", "away:49") == 3
        assert c.call("HLEN", "h") == 2
    assert said(nodes, SENT_ALL) == 0
    assert said(others, SENT_TAIL) >= 1
    about = replication(others[0])
    assert about["active_log_disk_state"] == "ready" and about["active_log_disk_faults"] == "0"
    assert int(about["active_log_disk_bytes"]) > 3000 * 100


def test_all_kinds_of_writes(make_node):
    nodes = mesh(make_node, 2, **ON_DISK)
    for round_number in range(3):
        apart(*nodes)
        run_load(nodes, round_number, lambda loads: more_commands(loads, 1000))
        together(*nodes)
        check_equal(nodes, "round %d" % round_number)
    assert said(nodes, SENT_ALL) == 0


@pytest.mark.parametrize("harm", [damage, cut_off])
def test_harm_to_the_file(make_node, harm):
    nodes = mesh(make_node, 2, **ON_DISK)
    apart(*nodes)
    fill(nodes[0], "first", 5000)
    fill(nodes[1], "second", 50)
    eventually(lambda: len(reserve_files(nodes[0])) == 1, "its file", 30)
    harm(nodes[0])
    together(*nodes)
    check_equal(nodes, "again")
    assert said(nodes[:1], "it is damaged") == 1
    eventually(lambda: said(nodes[:1], SENT_ALL) == 1, "sent everything", 20)
    assert replication(nodes[0])["active_log_disk_state"] == "broken"
    assert names_left(nodes[0]) == []


def test_slow_peer(make_node):
    """Who stands still holds as much memory as a replica may; what is beyond he reads from the disk."""
    nodes = mesh(make_node, 2, **ON_DISK, **{"client-output-buffer-limit": ["replica", "256kb", "256kb", "1"],
                                             "repl-timeout": "1000"})
    slow = nodes[1]
    with slow.standing_still():
        fill(nodes[0], "first", 20000, 500)
        assert int(replication(nodes[0])["active_log_bytes"]) < 2 << 20
    check_equal(nodes, "again")
    assert said(nodes, SENT_ALL) == 0


def test_restart(make_node):
    """The file is of no use to the next process: who was away then is sent everything, and all agree."""
    nodes = [make_node(files=["appendonlydir"], **ON_DISK, appendonly="yes") for _ in range(2)]
    together(*nodes)
    apart(*nodes)
    fill(nodes[0], "first", 5000)
    nodes[0].kill_all()
    assert names_left(nodes[0]) == []
    nodes[0].start()
    fill(nodes[0], "second", 10)
    together(*nodes)
    check_equal(nodes, "again")


def test_switched(make_node):
    """The file stays with the server, whatever it is just now."""
    nodes = mesh(make_node, 2, **ON_DISK)
    apart(*nodes)
    with nodes[0].connect() as c:
        c.ok("CONFIG", "SET", "multi-master", "no", "active-replica", "no")
        assert "active_log_disk_state" not in replication(nodes[0])
        c.ok("CONFIG", "SET", "active-replica", "yes", "multi-master", "yes")
    together(*nodes)
    check_equal(nodes, "again")
    apart(*nodes)
    tails = said(nodes, SENT_TAIL)
    fill(nodes[0], "later", 5000)
    together(*nodes)
    check_equal(nodes, "and again")
    assert said(nodes, SENT_TAIL) == tails + 1
