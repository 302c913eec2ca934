"""Active replicas and their files: a node goes on from its RDB file or AOF with its dots, positions
and conflicts, so that what it missed comes once, and what it lost comes back."""

import os
import time

import pytest

from lib.active import (call, check_equal, check_quiet, digest, follow, is_up, make_node, more_commands, run_load)
from lib.bounds import eventually
from lib.links import Links
from lib.replication import Load, in_step, replication
from lib.resp import Error
from lib.seeds import generator
from lib.server import free_port


__all__ = ["make_node"]  # fixtures

KEPT = {"rdb": {"save": ["3600", "1000000"]}, "aof": {"appendonly": "yes"}}
FILES = ["dump.rdb", "appendonlydir"]


@pytest.fixture
def make_pair(make_node):
    """Two nodes with ports that stay; the second one keeps files, and has the first in its file of
    options."""
    def make(kept, **more):
        a, port = make_node(port=str(free_port())), str(free_port())
        b = make_node(FILES, port=port, replicaof=["127.0.0.1", a.options["port"]], **kept, **more)
        with a.connect() as c:
            c.ok("REPLICAOF", "127.0.0.1", port)
        eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 30)
        return a, b
    return make


def in_files(b):
    """The log has its base: nothing of what it holds waits for that."""
    about = b.info("persistence")
    return about["aof_rewrite_in_progress"] == about["aof_rewrite_scheduled"] == "0"


def load_both(a, b, seed):
    run_load([a, b], seed, lambda loads: more_commands(loads, 600))
    check_equal([a, b], "seed %d" % seed)
    check_quiet([a, b])


def count_up(*nodes):
    for node in nodes:
        with node.connect() as c:
            for _ in range(25):
                c.call("INCR", "n")
                c.call("RPUSH", "l", node.options["port"])


def counts(node):
    with node.connect() as c:
        return int(c.call("GET", "n") or 0), c.call("LLEN", "l")


def check_counts(a, b, before, more):
    """Nothing was lost, and nothing came twice."""
    check_equal([a, b], "counted")
    assert counts(a) == (before[0] + more, before[1] + more)


@pytest.mark.parametrize("end,kept", [("stop", "rdb"), ("kill", "aof"),
                                      pytest.param("stop", "aof", marks=pytest.mark.long),
                                      pytest.param("kill", "rdb", marks=pytest.mark.long)])
def test_a_node_goes_on(make_pair, kept, end):
    """It is given what was written meanwhile, once, and after kill -9 what its file lacks too, its
    own writes among that."""
    a, b = make_pair(KEPT[kept])
    node = replication(b)["active_node_id"]
    count_up(a, b)
    check_equal([a, b], "before")
    if kept == "rdb":
        with b.connect() as c:
            c.ok("SAVE")
    load_both(a, b, 21)
    before = counts(a)
    count_up(a, b)
    check_counts(a, b, before, 50)
    b.stop() if end == "stop" else b.kill_all()
    with Load(a, [generator(22)]) as load:
        more_commands([load], 600)
    before = counts(a)
    count_up(a)
    b.start()
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links again", 30)
    assert replication(b)["active_node_id"] == node
    count_up(a, b)
    check_counts(a, b, before, 75)
    load_both(a, b, 23)


@pytest.mark.parametrize("kept", sorted(KEPT))
def test_databases_that_have_changed_places(make_pair, kept):
    """Their keys' dots are in the files: nothing is told once more, and deletions stay."""
    a, b = make_pair(KEPT[kept])
    count_up(a, b)
    with b.connect() as c:
        c.ok("SET", "deleted", "1")
        c.ok("SELECT", 1)
        c.ok("SET", "0", "a key by the name of a database")
        check_equal([a, b], "before")
        c.ok("SWAPDB", 0, 1)
        assert c.call("DEL", "deleted") == 1
        check_equal([a, b], "swapped")
        if kept == "rdb":
            c.ok("SAVE")
    b.kill_all()
    with a.connect() as c:
        c.ok("SELECT", 1)
        c.ok("SET", "meanwhile", "1")
        c.ok("SWAPDB", 0, 1)
    b.start()
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links again", 30)
    count_up(a, b)
    check_equal([a, b], "afterwards")
    check_quiet([a, b])
    with b.connect() as c:
        assert c.call("EXISTS", "deleted") == 0 and c.call("EXISTS", "meanwhile") == 1
        assert c.call("GET", "n") == b"100"


@pytest.mark.long
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_log_through_rewrites_under_load(make_pair, preamble):
    """Whatever write is in the base or behind it, its dot and its position are with it."""
    a, b = make_pair(KEPT["aof"], **{"aof-use-rdb-preamble": preamble})
    count_up(a, b)

    def during(loads):
        with b.connect() as c:
            for _ in range(4):
                more_commands(loads, 200)
                c.call("BGREWRITEAOF")
                eventually(lambda: in_files(b), "rewritten", 60)
    run_load([a, b], 31, during)
    check_equal([a, b], "before")
    check_quiet([a, b])
    before = counts(a)
    with a.connect() as c:
        c.ok("REPLICAOF", "NO", "ONE")
    b.kill_all()
    del b.options["replicaof"]
    b.start()
    check_equal([a, b], "without a link")
    follow(b, a)
    follow(a, b)
    count_up(a, b)
    check_counts(a, b, before, 50)
    load_both(a, b, 32)


def test_a_replay_does_what_was_done_for_peers(make_pair):
    """What trims a stream is told to peers as deletions, and counts as such."""
    a, b = make_pair(KEPT["aof"])
    with b.connect() as c:
        for i in range(1, 9):
            c.call("XADD", "s", "MAXLEN", 3, "%d-1" % i, "f", "v")
    check_equal([a, b], "before")
    b.kill_all()
    b.start()
    check_equal([a, b], "after")
    with b.connect() as c:
        about = c.call("XINFO", "STREAM", "s")
        assert about[about.index(b"max-deleted-entry-id") + 1] == b"5-1"


@pytest.mark.long
def test_a_log_that_is_turned_on(make_pair):
    """From its first base on it is as one that was there from the start, and the command that turns
    it on may stand amid a load."""
    a, b = make_pair({})

    def during(loads):
        more_commands(loads, 300)
        with b.connect() as c:
            c.ok("CONFIG", "SET", "appendonly", "yes")
        more_commands(loads, 300)
    run_load([a, b], 41, during)
    check_equal([a, b], "before")
    before = counts(a)
    count_up(a, b)
    check_counts(a, b, before, 50)
    eventually(lambda: in_files(b), "its base", 60)
    b.kill_all()
    b.options["appendonly"] = "yes"
    b.start()
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links again", 30)
    count_up(a, b)
    check_counts(a, b, before, 100)
    check_quiet([a, b])


@pytest.mark.long
def test_reload_keeps_dots(make_pair):
    """DEBUG RELOAD: the later write stays the later one.  What would bring older data is refused."""
    a, b = make_pair(KEPT["aof"])
    load_both(a, b, 51)
    with a.connect() as ca, b.connect() as cb:
        ca.ok("REPLICAOF", "NO", "ONE")
        cb.ok("REPLICAOF", "NO", "ONE")
        eventually(lambda: not int(replication(b)["connected_slaves"]), "no links", 30)
        ca.ok("SET", "later", "a")
        ca.call("SADD", "set", "a")
        time.sleep(0.05)  # neither node knows of the other's write: only the clock says which is later
        cb.ok("SET", "later", "b")
        cb.call("SADD", "set", "b")
        kept = digest(b)
        cb.ok("DEBUG", "RELOAD")
        assert digest(b) == kept
        assert isinstance(cb.call("DEBUG", "LOADAOF"), Error)
        assert isinstance(cb.call("DEBUG", "RELOAD", "NOSAVE"), Error)
        assert digest(b) == kept
        follow(a, b)
        follow(b, a)
        check_equal([a, b], "after the reload")
        assert ca.call("GET", "later") == b"b"
        assert sorted(ca.call("SMEMBERS", "set")) == [b"a", b"b"]
    check_quiet([a, b])
    load_both(a, b, 52)


def test_what_expires_while_a_node_is_away(make_pair):
    a, b = make_pair(KEPT["aof"])
    with a.connect() as ca, b.connect() as cb:
        cb.ok("SET", "of-b", "1")
        ca.ok("SET", "of-a", "1")
        ca.ok("SET", "stays", "1")
        eventually(lambda: ca.call("DBSIZE") == cb.call("DBSIZE") == 3, "there")
        cb.call("PEXPIRE", "of-b", "700")
        ca.call("PEXPIRE", "of-a", "700")
        eventually(lambda: ca.call("PTTL", "of-b") != -1 != cb.call("PTTL", "of-a"), "with their deadlines, or over")
    b.kill_all()
    with a.connect() as c:
        eventually(lambda: not c.call("EXISTS", "of-a", "of-b"), "over")
    b.start()
    check_equal([a, b], "expired")
    with a.connect() as ca, b.connect() as cb:
        eventually(lambda: ca.call("DBSIZE") == cb.call("DBSIZE") == 1, "removed", 30)
    check_quiet([a, b])


@pytest.mark.long
def test_a_large_file_is_loaded_behind(make_pair):
    """Clients are refused until the node is there, and it is linked only then."""
    a, b = make_pair(KEPT["aof"])
    with b.connect() as c:
        for i in range(400):
            c.ok("SET", "k%d" % i, "x" * 50)
        c.call("BGREWRITEAOF")
        eventually(lambda: in_files(b), "rewritten", 60)
        c.call("INCR", "n")
    check_equal([a, b], "before")
    b.kill_all()
    count_up(a)
    b.options.update({"loading-process-events-interval-bytes": "1024", "key-load-delay": "2500"})
    b.start()
    seen = replication(b)
    assert seen["role"] == "active-replica"
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links again", 60)
    assert "Loading the data set while listening" in b.output()
    with a.connect() as c:
        assert c.call("DBSIZE") == 402
    check_equal([a, b], "after")
    assert replication(b)["active_origins"] == "3"


@pytest.mark.long
@pytest.mark.parametrize("kept", sorted(KEPT))
def test_data_that_no_node_has_written(make_node, make_server, kept):
    """They are the node's first write, now and after its next start."""
    server = make_server(dict(KEPT[kept], port=str(free_port())), files=FILES + ["active-node"])
    with server.connect() as c:
        c.ok("SET", "old", "1")
        c.call("RPUSH", "l", "x", "y")
    server.stop()
    server.options.update({"active-replica": "yes", "multi-master": "yes"})
    for life in range(3):
        server.start()
        with server.connect() as c:
            assert c.call("DBSIZE") == 2 + life and c.call("GET", "old") == b"1"
            c.ok("SET", "k%d" % life, "v")
        assert server.output().count("they count as new") == 1
        if life < 2:
            server.stop() if life or kept == "rdb" else server.kill_all()
    b = make_node()
    follow(b, server)
    check_equal([server, b], "all of it")


def test_a_copy_of_the_data_is_another_node(make_pair):
    """Two nodes of one id would tell each other nothing."""
    a, b = make_pair(KEPT["rdb"])
    count_up(a, b)
    check_counts(a, b, (0, 0), 50)
    node = replication(b)["active_node_id"]
    b.stop()
    os.unlink(b.file("active-node"))
    b.start()
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links again", 30)
    assert replication(b)["active_node_id"] != node and "begins as a new node" in b.output()
    count_up(a, b)
    check_counts(a, b, (0, 0), 100)


def test_a_plain_replica_goes_on_behind_a_node_that_begins_again(make_node, make_server):
    """A node whose configuration names whom it takes writes from is nobody's replica all the same."""
    b = make_node()
    a = make_node(files=FILES, port=str(free_port()), replicaof=["127.0.0.1", str(b.port)], **KEPT["rdb"])
    behind = make_server({"replicaof": ["127.0.0.1", str(a.address()[1])]})
    follow(b, a)
    with b.connect() as cb:
        cb.ok("SET", "k", "1")
        eventually(lambda: call(a, "GET", "k") == b"1", "a has it", 30)
        eventually(lambda: in_step(a, behind), "in step", 30)
        for life in range(2):
            a.stop()
            a.start()
            with a.connect() as ca:
                ca.call("INCR", "k")
                ca.call("INCR", "n")
            eventually(lambda: in_step(a, behind) and cb.call("GET", "n") == b"%d" % (life + 1), "told", 30)
    with behind.connect() as c:
        assert c.call("GET", "k") == b"3" and c.call("GET", "n") == b"2"


def replicaof_lines(node):
    return [line.split()[1:] for line in node.read("server.conf").splitlines()
            if line.startswith("replicaof ")]


def test_config_rewrite_tells_all_whom_it_pulls_from(make_node, make_server):
    """One line each, where the first one stood, and they are read again at the next start."""
    peers = [make_node() for _ in range(3)]
    hosts = [["127.0.0.1", str(p.address()[1])] for p in peers]
    text = "active-replica yes\nmulti-master yes\n# first\nreplicaof %s %s\n# last\n"
    node = make_server(config=text % tuple(hosts[0]), files=["active-node"], start=False)
    node.start()

    def pulls_from(count):
        return replication(node).get("connected_masters") == str(count)
    eventually(lambda: pulls_from(1), "link", 30)
    with node.connect() as c:
        c.ok("CONFIG", "REWRITE")
        assert replicaof_lines(node) == [hosts[0]]
        follow(node, *peers[1:])
        c.ok("CONFIG", "REWRITE")
    assert replicaof_lines(node) == hosts
    text = node.read("server.conf")
    assert text.index("# first") < text.index("replicaof") < text.rindex("replicaof") < \
        text.index("# last")
    node.stop()
    node.config = text
    node.start()
    eventually(lambda: pulls_from(3), "links", 30)
    with node.connect() as c:
        c.ok("REPLICAOF", "REMOVE", *hosts[1])
        c.ok("CONFIG", "REWRITE")
        assert replicaof_lines(node) == [hosts[0], hosts[2]]
        c.ok("REPLICAOF", "NO", "ONE")
        c.ok("CONFIG", "REWRITE")
        assert replicaof_lines(node) == []


def test_what_was_written_beyond_a_state_stays(make_node):
    """A node that tells its content of a key in conflict overwrites nothing that it did not know, though its state is the
    later one and comes with the whole data set."""
    links, nodes = Links(), []
    try:
        for i in range(2):
            port = links.add((i, 1 - i), lambda i=i: nodes[1 - i].address())
            nodes.append(make_node(FILES, replicaof=["127.0.0.1", str(port)], **KEPT["aof"]))
        a, b = nodes
        eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 30)
        with a.connect() as ca:
            ca.ok("SET", "k", "begin ")
            check_equal(nodes, "there")
            for pair in links:
                links[pair].cut()
            eventually(lambda: not int(replication(a)["connected_slaves"]) + int(replication(b)["connected_slaves"]),
                       "no links", 30)
            ca.call("APPEND", "k", "a ")
            time.sleep(0.05)  # only the clocks say who is later
            assert call(b, "APPEND", "k", "b ") == 8
            b.kill_all()
            b.start()  # it has no window any more: a's word, which is earlier, is a conflict
            links[1, 0].mend()
            eventually(lambda: b"a " in call(b, "GET", "k"), "a's word at b", 30, 0)
            links[1, 0].cut()
            ca.ok("SET", "k", "final")
            eventually(lambda: replication(b)["active_states"] != "0", "b's state", 30)
            links[0, 1].mend()
            eventually(lambda: replication(a)["master_link_status"] == "up", "a hears b", 30)
            assert ca.call("GET", "k") == b"final"
        links.mend()
        eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 30)
        check_equal(nodes, "linked")
        check_quiet(nodes)
        assert call(b, "GET", "k") == b"final"
    finally:
        links.close()


@pytest.mark.parametrize("sync", ["everysec", "always"])
def test_what_a_peer_has_acknowledged_outlives_it(make_pair, sync):
    """Its log has what WAIT counts, though no client has written there: kill -9 loses none of it."""
    a, b = make_pair(KEPT["aof"], appendfsync=sync)
    with a.connect() as c:
        for i in range(5):
            c.ok("SET", "k", str(i))
            assert c.call("WAIT", 1, 30000) == 1
    b.kill_all()
    del b.options["replicaof"]
    b.start()
    assert call(b, "GET", "k") == b"4"
