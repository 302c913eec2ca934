"""Active replicas for tests: servers that all take writes, as pairs and meshes.

Only builds with KEYDB_DEBUG (debug and sanitizer builds) let a test have `active-replica yes`
(src/repl/active.h); with others the tests that ask for `make_node` are skipped."""

import time

import pytest

from lib.bounds import BoundPassed, eventually, scaled
from lib.replication import Load, everything, replication
from lib.seeds import generator
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
    def make(files=(), **more):
        node = make_server(dict(OPTIONS, **more), files=["active-node", *files], start=False)
        node.environment = PREVIEW
        return node.start()
    return make


def follow(node, *peers):
    with node.connect() as c:
        for peer in peers:
            c.ok("REPLICAOF", "127.0.0.1", peer.address()[1])


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
    except BoundPassed as trouble:
        facts = [{k: v for k, v in replication(n).items() if k.startswith("active")} for n in nodes]
        raise AssertionError("%s: %s\n%s\n%s" % (what, trouble, differences(nodes), facts)) from None


def told(nodes):
    about = [replication(n) for n in nodes]
    return [(a["active_own_units"], a["active_conflicts"]) for a in about]


def check_quiet(nodes):
    """Nothing is told any more: no conflict goes on for ever."""
    deadline = time.monotonic() + scaled(15)
    while time.monotonic() < deadline:
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
