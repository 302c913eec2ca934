"""Active replicas: a key that both sides of a cut have written thousands of times.  What is late then is put in without a look
at all that is behind it, so the sides agree at once when the links are back."""

from collections import Counter

import pytest

from lib.active import AT_ONCE, apart, check_equal, check_quiet, digest, make_node, mesh, together
from lib.bounds import eventually
from lib.replication import replication

__all__ = ["make_node"]  # fixtures

WRITES = 3000


def run(node, commands):
    with node.connect() as c:
        return c.pipeline(commands)


def states(nodes):
    return [replication(n)["active_states"] for n in nodes]


def queue_of(node, name, pops):
    """Jobs are put in and taken, so many of ten commands take; gives (put, taken)."""
    commands = [["LPOP", "queue"] if i % 10 < pops else ["RPUSH", "queue", "%s-%d" % (name, i)] for i in range(WRITES)]
    replies = run(node, commands)
    return ([c[2].encode() for c in commands if c[0] == "RPUSH"],
            [r for c, r in zip(commands, replies) if c[0] == "LPOP" and r is not None])


@pytest.mark.parametrize("pops", [5, 2], ids=["short", "long"])
def test_a_queue_on_both_sides(make_node, pops):
    """Each job is there unless somebody took it, each side's in their order. Nobody had to guess, unless so many jobs of the
    later side wait that they cannot be moved for each job of the other."""
    nodes = mesh(make_node, 2)
    old = ["old-%d" % i for i in range(200)]
    run(nodes[0], [["RPUSH", "queue", *old]])
    check_equal(nodes, "before")
    before = states(nodes)
    apart(*nodes)
    sides = [queue_of(n, name, pops) for n, name in zip(nodes, "ab")]
    together(*nodes)
    check_equal(nodes, "after")
    queue = run(nodes[0], [["LRANGE", "queue", 0, -1]])[0]
    put = [e.encode() for e in old] + sides[0][0] + sides[1][0]
    taken = set(sides[0][1]) | set(sides[1][1])
    assert Counter(queue) == Counter(e for e in put if e not in taken)
    for name in (b"old-", b"a-", b"b-"):
        numbers = [int(e[len(name):]) for e in queue if e.startswith(name)]
        assert numbers == sorted(numbers)
    assert pops == 2 or states(nodes) == before
    check_quiet(nodes)


def test_the_log_and_a_replica(make_node, make_server):
    """They have what was put below later elements as the node itself has it."""
    nodes = [make_node(["appendonlydir"], appendonly="yes"), make_node()]
    together(*nodes)
    replica = make_server(dict(AT_ONCE, replicaof=["127.0.0.1", str(nodes[0].address()[1])]))
    eventually(lambda: replication(replica)["master_link_status"] == "up", "a replica", 30)
    apart(*nodes, others=1)
    for node, name in zip(nodes, "ab"):
        queue_of(node, name, 5)
        run(node, [["LPUSH", "front", "%s-%d" % (name, i)] for i in range(100)])
    together(*nodes)
    check_equal(nodes, "after")
    check_quiet(nodes)
    eventually(lambda: digest(replica) == digest(nodes[0]), "the replica in step", 30)
    nodes[0].stop()
    nodes[0].start()
    assert digest(nodes[0]) == digest(nodes[1])


def test_counters_fields_and_entries_on_both_sides(make_node):
    nodes = mesh(make_node, 2)
    run(nodes[0], [["XGROUP", "CREATE", "stream", "group", "0", "MKSTREAM"]])
    check_equal(nodes, "before")
    before = states(nodes)
    apart(*nodes)
    for number, node in enumerate(nodes):
        run(node, [["INCR", "counter"] for _ in range(WRITES)])
        run(node, [["HINCRBY", "hash", "sum", 2] for _ in range(WRITES)])
        run(node, [["HSET", "hash", "f%d" % (i % 50), "%d-%d" % (number, i), "last", i] for i in range(WRITES)])
        run(node, [["XADD", "stream", "*", "by", number] for _ in range(WRITES)])
        run(node, [["XREADGROUP", "GROUP", "group", "worker-%d" % number, "COUNT", 1, "STREAMS", "stream", ">"]
                   for _ in range(WRITES)])
        run(node, [[("SADD", "SREM")[i % 2], "set", "m%d" % (i % 7)] for i in range(WRITES)])
    together(*nodes)
    check_equal(nodes, "after")
    assert run(nodes[1], [["GET", "counter"], ["HGET", "hash", "sum"], ["XLEN", "stream"]]) == \
        [b"%d" % (2 * WRITES), b"%d" % (4 * WRITES), 2 * WRITES]
    assert states(nodes) == before
    check_quiet(nodes)


@pytest.mark.parametrize("lines", [["APPEND key x"], ["RPUSH key 1", "LPOP key"],
                                   ["RPUSH key a b", "LTRIM key -20 -1", "LPOP key"]], ids=["append", "equal", "trim"])
def test_what_no_rule_puts_in(make_node, lines):
    """Some are guessed, since beginning anew for each would take for ever; a state settles it."""
    nodes = mesh(make_node, 2)
    apart(*nodes)
    for node in nodes:
        run(node, [lines[i % len(lines)].split() for i in range(WRITES)])
    together(*nodes)
    check_quiet(nodes)
    check_equal(nodes, "after")
