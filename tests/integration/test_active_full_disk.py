"""A disk that is full, at a node whose peer writes on: the log, RDB files, a data set on its way, the node's own file. The
reason is said, nothing is done by halves, and when there is room again the nodes agree, also after a start from the files."""

import errno
import os

import pytest

from lib.active import EQUAL_BOUND_S, OPTIONS, call, check_equal, check_quiet, is_up
from lib.bounds import BoundPassed, eventually
from lib.replication import replication
from lib.server import is_redis, server_path

pytestmark = [
    pytest.mark.any_threads,
    pytest.mark.skipif(is_redis(server_path()), reason="a promise of ours, not of Redis"),
]

FILES = ["active-node", "dump.rdb", "appendonlydir"]
FULL = {"write_error": errno.ENOSPC}


@pytest.fixture
def make_pair(make_server, faults):
    """A node with a disk that stays whole, and one whose disk the test fills; linked, unless `apart`: then their logs are so
    short that whoever comes gets the whole data set."""
    def make(apart=False, **options):
        both = {**OPTIONS, "repl-backlog-size": "64kb"} if apart else OPTIONS
        a = make_server(both, files=FILES)
        b = make_server({**both, **options}, files=FILES, start=False)
        b.environment = faults.environment()
        b.start()
        if not apart:
            link(a, b)
        return a, b
    return make


def link(a, b):
    for one, other in ((a, b), (b, a)):
        call(one, "REPLICAOF", "127.0.0.1", other.address()[1])
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 30)


def start_again(a, b):
    """From its files, on another port: after kill -9."""
    call(a, "REPLICAOF", "REMOVE", "127.0.0.1", b.address()[1])
    b.kill_all()
    b.start()
    link(a, b)


def count(node, times, key="n"):
    for _ in range(times):
        assert isinstance(call(node, "INCR", key), int)
        call(node, "RPUSH", "l:" + key, "x")


def fill(node):
    with node.connect() as c:
        c.pipeline([["SET", "k%d" % i, "x" * 500] for i in range(500)])


def check_counts(nodes, number, key="n"):
    """That they are equal says nothing yet: as many of each other's may be missing on both."""
    def counts():
        return [(call(node, "GET", key), call(node, "LLEN", "l:" + key)) for node in nodes]

    right = [(b"%d" % number, number)] * len(nodes)
    try:
        eventually(lambda: counts() == right, "all is counted", EQUAL_BOUND_S)
    except BoundPassed:
        pass  # one that is lost or stands twice is no matter of time
    assert counts() == right
    check_equal(nodes, key)


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_the_log(make_pair, faults, policy):
    """Clients are refused; what the peer writes comes all the same, once."""
    a, b = make_pair(appendonly="yes", appendfsync=policy)
    count(a, 20)
    count(b, 20)
    check_counts([a, b], 40)
    faults.set(**FULL)
    count(a, 20)
    eventually(lambda: b.info("persistence")["aof_last_write_status"] == "err", "the log fails")
    assert call(b, "SET", "refused", "1").startswith(b"MISCONF Errors writing to the AOF file: ")
    count(a, 20)
    faults.set()
    eventually(lambda: b.info("persistence")["aof_last_write_status"] == "ok", "the log goes on", 30)
    check_counts([a, b], 80)
    assert call(a, "EXISTS", "refused") == 0
    count(b, 20)
    check_counts([a, b], 100)
    start_again(a, b)
    check_counts([a, b], 100)
    count(b, 5)
    count(a, 5)
    check_counts([a, b], 110)
    check_quiet([a, b])


def test_a_start_from_what_a_full_disk_has_kept(make_pair, faults):
    """kill -9 while it is full: the log ends somewhere before, and positions with it."""
    a, b = make_pair(appendonly="yes", appendfsync="everysec")
    count(a, 20)
    count(b, 20)
    check_counts([a, b], 40)
    faults.set(write_after=3, short_writes=1, **FULL)
    count(a, 50)
    eventually(lambda: b.info("persistence")["aof_last_write_status"] == "err", "the log fails")
    call(a, "REPLICAOF", "REMOVE", "127.0.0.1", b.address()[1])
    b.kill_all()
    faults.set()
    b.start()
    link(a, b)
    check_counts([a, b], 90)
    count(b, 5)
    check_counts([a, b], 95)


def test_an_rdb_file(make_pair, faults):
    """What could not be saved is not there after a start: the older file's positions are those of its content."""
    a, b = make_pair()
    count(a, 10)
    count(b, 10)
    check_counts([a, b], 20)
    assert call(b, "SAVE") == b"OK"
    count(a, 10)
    count(b, 10)
    check_counts([a, b], 40)
    faults.set(**FULL)
    assert call(b, "SAVE").startswith(b"ERR")
    call(b, "BGSAVE")
    eventually(lambda: b.info("persistence")["rdb_last_bgsave_status"] == "err", "it is not saved", 30)
    faults.set()
    start_again(a, b)
    check_counts([a, b], 40)
    count(b, 5)
    check_counts([a, b], 45)
    assert os.listdir(b.directory).count("dump.rdb") == 1


@pytest.mark.parametrize("policy", ["always", pytest.param(None, marks=pytest.mark.long)], ids=["aof", "no aof"])
def test_a_data_set_on_its_way(make_pair, faults, policy):
    """It is not taken, and nothing has changed; it comes again until there is room."""
    options = {"appendonly": "yes", "appendfsync": policy} if policy else {}
    a, b = make_pair(apart=True, **options)
    fill(a)
    count(b, 10)
    faults.set(**FULL)
    call(b, "REPLICAOF", "127.0.0.1", a.address()[1])
    said = "Can't take the data set of active peer"
    eventually(lambda: said in b.output() and os.strerror(errno.ENOSPC) in b.output(), "the reason in the log", 30)
    assert call(b, "EXISTS", "k0") == 0 and call(b, "GET", "n") == b"10"
    call(b, "REPLICAOF", "REMOVE", "127.0.0.1", a.address()[1])
    eventually(lambda: not [name for name in os.listdir(b.directory) if name.startswith("temp-")], "nothing is left of it")
    faults.set()
    call(b, "REPLICAOF", "127.0.0.1", a.address()[1])
    eventually(lambda: call(b, "EXISTS", "k499") == 1, "it comes again", 30)
    call(a, "REPLICAOF", "127.0.0.1", b.address()[1])
    check_counts([a, b], 10)
    check_quiet([a, b])


def test_a_child_that_writes_the_data_set(make_pair, faults):
    """Of the node whose disk is full a peer wants everything: it is told that there is none yet, and asks again."""
    a, b = make_pair(apart=True)
    fill(b)
    faults.set(**FULL)
    call(a, "REPLICAOF", "127.0.0.1", b.address()[1])
    eventually(lambda: os.strerror(errno.ENOSPC) in b.output(), "the reason in the log", 30)
    assert call(a, "EXISTS", "k0") == 0
    faults.set()
    eventually(lambda: call(a, "EXISTS", "k499") == 1, "it comes", 30)


def test_the_nodes_own_file(make_server, faults):
    """No epoch without its file: no node begins."""
    server = make_server({}, files=FILES, start=False)
    server.environment = faults.environment()
    server.start()
    assert call(server, "SET", "k", "v") == b"OK"
    faults.set(**FULL)
    assert call(server, "CONFIG", "SET", "active-replica", "yes").startswith(b"ERR")
    assert replication(server)["role"] == "master"
    faults.set()
    assert call(server, "CONFIG", "SET", "active-replica", "yes") == b"OK"
    assert replication(server)["role"] == "active-replica"
    server.stop()
    faults.set(**FULL)
    node = make_server(dict(OPTIONS), files=FILES, start=False)
    node.environment = faults.environment()
    assert "Can't write the node's id to active-node: " + os.strerror(errno.ENOSPC) in node.start_fails()
    faults.set()
    node.start()
    assert replication(node)["role"] == "active-replica"
