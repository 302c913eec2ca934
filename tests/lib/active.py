"""Active replicas for tests: servers that all take writes, as pairs and meshes; and peers that the test plays."""

import functools
import struct
import time

import pytest

from lib.bounds import Bound, BoundPassed, eventually, scaled
from lib.primary import HandMadePrimary
from lib.replication import Load, everything, replication
from lib.seeds import generator
from lib.server import Server, is_redis, server_path

AT_ONCE = {"repl-diskless-sync-delay": "0"}  # no replica waits for others
OPTIONS = {"active-replica": "yes", "multi-master": "yes", "repl-backlog-size": "256mb", **AT_ONCE}
EQUAL_BOUND_S = 15.0
PULL_VERSION = "2"  # of KEYDB.PULL
# In the gate a pair; `make test-all` has meshes as well.
PAIR_AND_MESH = pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.long)], ids=["pair", "mesh"])


@pytest.fixture
def make_node(make_server):
    if is_redis(server_path()):
        pytest.skip("Redis has no active replicas")

    def make(files=(), **more):
        return make_server(dict(OPTIONS, **more), files=["active-node", *files])
    return make


@functools.cache
def has_seams():
    """Whether the program takes test seams from its environment: debug and sanitizer builds do."""
    probe = Server(threads=1)
    probe.environment = {"KEYDB_ACTIVE_SKEW_MS": str(10 ** 9)}
    try:
        probe.start()
        with probe.connect() as c:
            found = int(c.call("TIME")[0]) > time.time() + 10 ** 5
        probe.stop()
        return found
    finally:
        probe.kill()
        probe.remove()


@pytest.fixture(scope="module")
def seams():
    if not has_seams():
        pytest.skip("a release build has no test seams")


def follow(node, *peers):
    with node.connect() as c:
        for peer in peers:
            c.ok("REPLICAOF", "127.0.0.1", peer.address()[1])


def mesh(make_node, count, **more):
    nodes = [make_node(**more) for _ in range(count)]
    together(*nodes)
    return nodes


def is_up(node, masters):
    about = replication(node)
    return int(about.get("connected_masters", 0)) == masters and \
        int(about["connected_slaves"]) >= masters


def call(node, *words):
    with node.connect() as c:
        return c.call(*words)


def together(*nodes):
    """Each pulls from each."""
    for node in nodes:
        follow(node, *[peer for peer in nodes if peer is not node])
    eventually(lambda: all(is_up(n, len(nodes) - 1) for n in nodes), "links", 60)


def apart(*nodes, others=0):
    """They pull from nobody, and so many others at most go on pulling from each."""
    for node in nodes:
        assert call(node, "REPLICAOF", "NO", "ONE") == b"OK"
    eventually(lambda: all(int(replication(n)["connected_slaves"]) <= others for n in nodes), "no links", 30)


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
    except BoundPassed as trouble:
        facts = [{k: v for k, v in replication(n).items() if k.startswith("active")} for n in nodes]
        raise AssertionError("%s: %s\n%s\n%s" % (what, trouble, differences(nodes), facts)) from None


def comes(writer, other, key, lives_ms):
    """Given to the writer for that time, and again where it was over before it came; how long the other had it yet. Asked
    when it is there: a command's time is that of its beginning, and the clock that it goes by moves on with the write."""
    def left_ms():
        if not writer.call("EXISTS", key):
            writer.ok("SET", key, "1", "PX", lives_ms)
        return max(other.call("PTTL", key), 0) if other.call("EXISTS", key) else 0
    return eventually(left_ms, "%s is there" % key)


def told(nodes):
    about = [replication(n) for n in nodes]
    return [(a["active_own_units"], a["active_conflicts"]) for a in about]


def check_quiet(nodes):
    """Nothing is told any more: no conflict goes on for ever."""
    bound = Bound(scaled(60))
    while bound.left():
        before = told(nodes)
        time.sleep(scaled(0.4))
        if told(nodes) == before and all(conflicts == "0" for _, conflicts in before):
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


# ---- peers that the test plays

NODE = b"p" * 16
EPOCH = 7


class Peer(HandMadePrimary):
    """One that a node is to pull from: .transfer() is the next link that has asked with KEYDB.PULL."""

    def __init__(self):
        super().__init__(asks=b"KEYDB.PULL")

    def link(self, answer=b"+PULL"):
        link = self.transfer()
        link.send(b"%s %s\r\n" % (answer, NODE.hex().encode()))
        return link


def command(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def frame(kind, body=b""):
    return struct.pack("<I", len(body) + 1) + kind + body


def origin_frame(handle, node=NODE, epoch=EPOCH):
    return frame(b"O", struct.pack("<H", handle) + node + struct.pack("<Q", epoch))


def stamp(ahead_ms=0, counter=0):
    return int(time.time() * 1000 + ahead_ms) << 16 | counter


def six(number):
    return struct.pack("<Q", number)[:6]


def write_frame(handle, sequence, when, commands, db=0):
    return frame(b"W", struct.pack("<H", handle) + six(sequence) + struct.pack("<QH", when, db) + commands)


def clock_frame(handle, position, clock, seen):
    return frame(b"C", struct.pack("<H", handle) + six(position) + struct.pack("<QQ", clock, seen))


def record(kind, body=b""):
    """Of a whole data set."""
    return struct.pack("<Q", len(body) + 1) + kind + body


def head_record(clock, *positions):
    rows = b"".join(node + struct.pack("<QQ", epoch, position) for node, epoch, position in positions)
    return record(b"H", b"\1" + struct.pack("<QI", clock, len(positions)) + rows)


def key_record(key, payload, db=0, when=0, handle=0, sequence=0, deadline_ms=0):
    return record(b"K", struct.pack("<HQH", db, when, handle) + six(sequence) +
                  struct.pack("<QI", deadline_ms, len(key)) + key + payload)
