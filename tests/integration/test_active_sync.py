"""A whole data set over a link of active replicas: nodes that never met, that were away for longer than the logs
keep, or that join while all write, agree afterwards; nothing that was deleted comes back, nothing that was
acknowledged and not overwritten is lost."""

import contextlib
import os
import re
import shutil
import time

import pytest

from lib.active import (PAIR_AND_MESH, apart, check_equal, check_quiet, digest, follow, is_up, make_node, mesh,
                        more_commands, run_load)
from lib.bounds import eventually
from lib.content import drop_dying
from lib.links import Links
from lib.replication import replication
from lib.resp import Error
from lib.seeds import generator, seeds
from lib.server import StartFailed


__all__ = ["make_node"]  # fixtures

SHORT = {"repl-backlog-size": "16kb"}


def fill(node, name, count, size=20):
    with node.connect() as c:
        for at in range(0, count, 500):
            c.pipeline([["SET", "%s:%d" % (name, i), name + "x" * size] for i in range(at, min(at + 500, count))])


def is_up_one_way(node):
    return replication(node).get("master_link_status") == "up"


def linked(*nodes):
    for node in nodes:
        with node.connect() as c:
            for peer in nodes:
                if peer is not node:
                    assert c.call("REPLICAOF", "127.0.0.1", peer.address()[1]).startswith(b"OK")
    eventually(lambda: all(is_up(n, len(nodes) - 1) for n in nodes), "links", 60)


def test_two_filled_nodes_that_never_met(make_node):
    a, b = make_node(**SHORT), make_node(**SHORT)
    fill(a, "a", 200)
    fill(b, "b", 200)
    with a.connect() as ca, b.connect() as cb:
        ca.ok("SET", "both", "earlier")
        time.sleep(0.05)  # neither node knows of the other's write: only the clock says which is later
        cb.ok("SET", "both", "later")
        ca.call("RPUSH", "list", "1", "2", "3")
        cb.call("HSET", "hash", "f", "v")
        cb.call("EXPIRE", "hash", 1000)
        linked(a, b)
        check_equal([a, b], "met")
        assert ca.call("DBSIZE") == 403
        assert cb.call("LRANGE", "list", 0, -1) == [b"1", b"2", b"3"]
        assert ca.call("GET", "both") == b"later"
        assert ca.call("EXPIRETIME", "hash") == cb.call("EXPIRETIME", "hash") > 0
    check_quiet([a, b])


def test_a_node_without_files_writes_before_it_is_linked(make_node):
    """What it has written is put on top of what the other one has, key by key."""
    a, b = make_node(**SHORT), make_node(**SHORT)
    links = Links()
    try:
        with a.connect() as ca:
            fill(a, "a", 600)
            ca.call("RPUSH", "list", "1", "2", "3")
        port = links.add("b from a", a.address)
        links["b from a"].cut()
        with b.connect() as cb:
            cb.ok("REPLICAOF", "127.0.0.1", port)
            cb.call("RPUSH", "list", "4")
            time.sleep(0.5)  # nobody else is known, so all have seen it
            with a.connect() as ca:
                ca.call("RPUSH", "list", "5")
                cb.call("RPUSH", "list", "6")
                links["b from a"].mend()
                eventually(lambda: is_up_one_way(b), "link", 60)
                assert sorted(cb.call("LRANGE", "list", 0, -1)) == [b"1", b"2", b"3", b"4", b"5", b"6"]
                follow(a, b)
                check_equal([a, b], "met")
                assert sorted(ca.call("LRANGE", "list", 0, -1)) == [b"1", b"2", b"3", b"4", b"5", b"6"]
    finally:
        links.close()


def test_two_nodes_that_were_filled_alike(make_node):
    """What both have written is not told again, but for what differs: digests will do."""
    a, b = make_node(**SHORT), make_node(**SHORT)
    for node in (a, b):
        fill(node, "k", 600, 200)
        with node.connect() as c:
            c.pipeline([["HSET", "h:%d" % i, "f", "1", "g", "2"] for i in range(60)])
            c.pipeline([["PEXPIREAT", "h:%d" % i, 4102444800000 + i] for i in range(60)])
    fill(b, "k", 20, 100)
    linked(a, b)
    check_equal([a, b], "met")
    check_quiet([a, b])
    about = [replication(n) for n in (a, b)]
    assert sum(int(r["active_digests"]) for r in about) >= 640
    assert sum(int(r["active_states"]) for r in about) < 60


@pytest.mark.long
def test_a_node_that_was_away_for_too_long(make_node):
    a, b = mesh(make_node, 2, **SHORT)
    fill(a, "k", 600)
    check_equal([a, b], "before")
    with a.connect() as ca, b.connect() as cb:
        apart(a, b)
        ca.call("DEL", *["k:%d" % i for i in range(300)])
        fill(a, "more", 600)
        fill(b, "other", 600)
        cb.call("APPEND", "k:599", "tail")
        linked(a, b)
        check_equal([a, b], "after")
        assert ca.call("DBSIZE") == 1500
        assert not any(ca.pipeline([["EXISTS", "k:%d" % i] for i in range(300)])), "nothing deleted comes back"
        assert ca.call("GET", "k:599").endswith(b"tail")
    check_quiet([a, b])


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(2))
def test_a_node_joins_a_mesh_under_load(make_node, seed):
    print("seed", seed)
    nodes = mesh(make_node, 2, **{"repl-backlog-size": "1mb"})
    fill(nodes[0], "k", 5000, 200)
    joined = make_node(**{"repl-backlog-size": "1mb"})
    fill(joined, "own", 500)

    def during(loads):
        more_commands(loads, 500)
        linked(*nodes, joined)
        more_commands(loads, 500)
    run_load([*nodes, joined], seed, during)
    eventually(lambda: all(is_up(n, 2) for n in [*nodes, joined]), "links", 60)
    check_equal([*nodes, joined], "seed %d" % seed)
    check_quiet([*nodes, joined])


def test_an_old_file_is_put_back(make_node):
    """Its node takes what it lacks, and tells nothing anew that others have deleted."""
    a, b = mesh(make_node, 2, **SHORT, save="", files=["dump.rdb"])
    fill(a, "k", 1000)
    check_equal([a, b], "before")
    with b.connect() as cb:
        cb.ok("SAVE")
        with open(b.file("dump.rdb"), "rb") as file:
            old = file.read()
    fill(a, "more", 2000)
    with a.connect() as ca:
        ca.call("DEL", *["k:%d" % i for i in range(500)])
        check_equal([a, b], "more")
        b.kill()
        with open(b.file("dump.rdb"), "wb") as file:
            file.write(old)
        fill(a, "late", 2000)
        b.start()
        linked(a, b)
        check_equal([a, b], "after")
        assert ca.call("DBSIZE") == 4500
    check_quiet([a, b])


def stand_still_for(node, seconds):
    with node.standing_still():
        time.sleep(seconds)


@pytest.mark.long
def test_who_takes_long_to_merge_needs_one_data_set(make_node):
    """What a node writes while the other one is still taking its data set, for longer than a silent link is waited
    for, is kept for it: nobody needs everything twice, however short the logs are."""
    a, b = (make_node(**{"repl-backlog-size": "64kb"}) for _ in range(2))
    fill(a, "a", 50000)
    fill(b, "b", 50000)
    follow(a, b)
    eventually(lambda: replication(a)["active_sync_receiving"] == "1" or is_up_one_way(a), "it comes", 30, 0)
    stand_still_for(a, 3.5)  # a link may be silent for three seconds
    eventually(lambda: replication(a)["active_sync_merging"] == "1" or is_up_one_way(a), "it is merged", 30, 0)
    stand_still_for(a, 1.5)  # and once a second a peer is told what is requested
    eventually(lambda: replication(a)["active_sync_merging"] == "1" or is_up_one_way(a), "it still is", 30, 0)
    with a.standing_still():
        fill(b, "later", 10000, 100)
        time.sleep(0.5)
    with a.connect() as c:
        eventually(lambda: c.call("DBSIZE") == 110000 and is_up_one_way(a), "all of it", 60)
    assert a.output().count("sends all that it has") == 1


@pytest.mark.long
def test_files_wait_for_the_end(make_node):
    """No file is made of data that are half merged; SAVE has them merged first."""
    a, b = make_node(**SHORT), make_node(**SHORT, files=["dump.rdb"])
    fill(a, "a", 20000, 100)
    fill(b, "b", 20000, 100)
    with b.connect() as cb:
        follow(b, a)
        eventually(lambda: replication(b)["active_sync_merging"] == "1" or is_up_one_way(b), "merging", 30, 0)
        cb.ok("SAVE")
        assert replication(b)["active_sync_merging"] == "0" and cb.call("DBSIZE") in (20000, 40000)
        eventually(lambda: cb.call("DBSIZE") == 40000, "merged", 60)
        cb.ok("SAVE")
        b.kill()
        b.start()
    with b.connect() as cb:
        assert cb.call("DBSIZE") == 40000
        assert not isinstance(cb.call("PING"), Error)


@pytest.mark.long
def test_a_peer_that_dies_meanwhile(make_node):
    """What has come in part is forgotten; what has begun to be merged is merged."""
    a, b = make_node(**SHORT), make_node(**SHORT)
    fill(a, "a", 20000, 500)
    follow(b, a)
    eventually(lambda: replication(b)["active_sync_receiving"] == "1" or
               replication(b)["active_sync_keys"] != "0", "it comes", 30, 0)
    a.kill_all()
    eventually(lambda: replication(b)["active_sync_receiving"] == "0" and
               replication(b)["active_sync_merging"] == "0", "nothing comes", 30)
    with b.connect() as cb:
        assert cb.call("DBSIZE") in (0, 20000)
        cb.ok("SET", "goes", "on")


AOF = {"appendonly": "yes", "save": "", "auto-aof-rewrite-percentage": "0"}
AOF_FILES = ["appendonlydir"]


def begin_to_merge(b, a):
    """b merges what a has, and not all of it yet."""
    follow(b, a)
    eventually(lambda: int(replication(b)["active_sync_keys_merged"]) > 0, "merging", 30, 0)


@pytest.mark.long
@pytest.mark.parametrize("life", range(3))
def test_kill_in_the_middle(make_node, life):
    """With a log, what was merged before kill -9 and what clients wrote meanwhile is there afterwards, and the rest is
    merged before anybody is served."""
    log = {"repl-backlog-size": "1mb"}  # states have a pace by it
    a, b = make_node(**log), make_node(files=AOF_FILES, **log, **AOF)
    fill(a, "a", 30000, 100)
    fill(b, "b", 1000)
    with a.connect() as ca:
        for i in range(100):
            ca.call("RPUSH", "l%d" % i, "theirs")
            ca.call("INCRBY", "n%d" % i, 10)
    done, deleted = [], []
    with b.connect() as cb:
        begin_to_merge(b, a)
        for i in range(100):
            replies = cb.pipeline([["RPUSH", "l%d" % i, "ours"], ["INCR", "n%d" % i], ["SET", "own%d" % i, "1"],
                                   ["RANDOMKEY"]])
            done.append(i)
            if replies[-1].startswith(b"a:") and cb.call("DEL", replies[-1]):
                deleted.append(replies[-1])
            if replication(b)["active_sync_merging"] == "0":
                break
        merging = replication(b)["active_sync_merging"] == "1"
        b.kill_all()
    for _ in range(life):
        b.start()
        b.kill_all()
    b.start()
    # What was merged to its end may not be in the file yet: the log is written behind the replies.
    assert b.output().count("going on with") in ([1] if merging else [0, 1])
    linked(a, b)
    check_equal([a, b], "after")
    with a.connect() as ca, b.connect() as cb:
        for i in done:
            assert cb.call("GET", "own%d" % i) == b"1"
            # Of a key that both had written, and that was not merged yet, what is later stands as a whole: the window
            # is not in files.
            assert b"ours" in cb.call("LRANGE", "l%d" % i, 0, -1), i
            assert cb.call("GET", "n%d" % i) in (b"1", b"11"), i
        assert not any(cb.call("EXISTS", name) for name in deleted), "what was deleted stays so"
        assert cb.call("DBSIZE") == 30000 + 1000 + 200 + len(done) - len(deleted)
        before = replication(b)["active_node_id"]
        cb.call("BGREWRITEAOF")
    check_quiet([a, b])
    b.kill_all()
    b.start()
    linked(a, b)
    check_equal([a, b], "once more")
    assert replication(b)["active_node_id"] == before


@pytest.mark.long
def test_writes_are_refused_while_merging(make_node):
    """allow-write-during-load no: LOADING, in MULTI and scripts too; reads go on, and it may be set meanwhile."""
    a, b = make_node(**SHORT), make_node(**SHORT, **{"allow-write-during-load": "no"})
    fill(a, "a", 40000, 100)
    fill(b, "b", 1000)
    refused = b"LOADING Redis is loading the dataset in memory"
    with b.connect() as c:
        c.ok("SET", "before", "1")
        begin_to_merge(b, a)
        replies = c.pipeline([["SET", "x", "1"], ["GET", "before"], ["EVAL", "return redis.call('SET', 'x', '1')", 0],
                              ["MULTI"], ["SET", "x", "1"], ["EXEC"], ["CONFIG", "SET", "allow-write-during-load", "yes"],
                              ["SET", "y", "1"], ["CONFIG", "SET", "allow-write-during-load", "no"], ["SET", "z", "1"]])
        if replication(b)["active_sync_merging"] == "1":
            assert replies[0] == refused and replies[1] == b"1" and replies[2].startswith(refused), replies
            assert replies[4] == refused and replies[5].startswith(b"EXECABORT"), replies
            assert replies[6:] == [b"OK", b"OK", b"OK", refused], replies
        eventually(lambda: is_up_one_way(b), "merged", 60)
        c.ok("SET", "after", "1")
        done = isinstance(replies[5], list) or b"OK" in (replies[0], replies[2], replies[9])
        assert c.call("EXISTS", "x", "z") == 0 or done


def increment(node):
    """The growing file of the log."""
    directory = node.file("appendonlydir")
    return os.path.join(directory, max(name for name in os.listdir(directory) if ".incr." in name))


def increment_text(node):
    with open(increment(node), "rb") as file:
        return file.read().decode("latin-1")


def keys_files(node):
    return [name for name in os.listdir(node.directory) if name.endswith(".keys")]


@pytest.mark.long
def test_a_log_that_ends_within_a_merge(make_node):
    """At any of the places that it names: the file of the merge belongs to it, and the merge is gone on with."""
    a, b = make_node(**SHORT), make_node(files=AOF_FILES, **SHORT, **AOF)
    fill(a, "a", 30000, 100)
    fill(b, "b", 1000)
    follow(b, a)
    name = eventually(lambda: keys_files(b), "a data set comes", 30, 0)[0]
    os.link(b.file(name), b.file("kept"))
    eventually(lambda: is_up_one_way(b), "merged", 60)
    eventually(lambda: not keys_files(b), "its file is gone", 60)
    with b.connect() as cb:
        assert cb.call("DBSIZE") == 31000
    b.kill_all()
    with open(increment(b), "rb") as file:
        log = file.read()
    places = [m.start() for m in re.finditer(rb"\*3\r\n\$13\r\nKEYDB.MERGING", log)]
    assert len(places) > 2
    for place in (places[1], places[len(places) // 2], places[-1]):
        with open(increment(b), "wb") as file:
            file.write(log[:place])
        with contextlib.suppress(StartFailed):
            b.start()  # a long log is loaded behind
        eventually(lambda: b.process.poll() is not None, "it ends", 60)
        assert b.process.returncode == 1 and "put it back" in b.output()
        b.kill()
        shutil.copy(b.file("kept"), b.file(name))
        b.start()
        with b.connect() as cb:
            assert cb.call("DBSIZE") == 31000
        assert "going on with " + name in b.output() and not keys_files(b)
        b.kill_all()
    b.start()
    linked(a, b)
    check_equal([a, b], "after")
    os.unlink(b.file("kept"))


def libraries(c):
    return sorted(about[1] for about in c.call("FUNCTION", "LIST"))


@pytest.mark.long
def test_libraries_are_in_the_log(make_node):
    """What a data set brought of functions is there after kill -9; what a client deleted since is not."""
    a, b = make_node(**SHORT), make_node(files=AOF_FILES, **SHORT, **AOF)
    with a.connect() as ca:
        for name in ("one", "two", "three"):
            ca.call("FUNCTION", "LOAD", "#!lua name=%s\nredis.register_function('%s', function() return '%s' end)" %
                    (name, name, name))
    fill(a, "a", 20000, 100)
    with b.connect() as cb:
        cb.ok("SET", "own", "1")
        cb.call("FUNCTION", "LOAD", "#!lua name=three\nredis.register_function('three', function() return 'ours' end)")
        begin_to_merge(b, a)
        cb.ok("FUNCTION", "DELETE", "two")
        eventually(lambda: is_up_one_way(b), "merged", 60)
        eventually(lambda: not keys_files(b), "the log is on the disk", 60)
        assert libraries(cb) == [b"one", b"three"]
    b.kill_all()
    b.start()
    with b.connect() as cb:
        assert libraries(cb) == [b"one", b"three"]
        assert cb.call("FCALL", "one", 0) == b"one" and cb.call("FCALL", "three", 0) == b"ours"


@pytest.mark.long
def test_a_file_aside_is_never_another_ones(make_node):
    """The log may say for a while that a file is being merged: no other one gets its name, in no life. What is of no
    use goes at the start."""
    a, b = make_node(**SHORT), make_node(files=AOF_FILES, **SHORT, **AOF)
    names = set()
    for life in range(3):
        fill(a, "a%d" % life, 20000, 100)
        with b.connect() as cb:
            cb.ok("SET", "own", str(life))
            linked(a, b)
            names |= {re.search(r"KEYDB.MERGING\r\n\$\d+\r\n(\S+)\r\n(?!.*KEYDB.MERGING)", increment_text(b), re.S)[1]}
            check_equal([a, b], "life %d" % life)
        apart(a, b)
        eventually(lambda: not keys_files(b), "its file is gone", 60)
        b.kill_all()
        for rest in ("temp-full-sync-0.keys", "temp-full-sync-5-77.keys"):
            with open(b.file(rest), "wb"):
                pass
        b.start()
        assert not keys_files(b)
    assert len(names) == 3, names


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(2))
@PAIR_AND_MESH
def test_logs_under_load(make_node, seed, count):
    """Nodes with logs that need everything again and again, killed and started, agree; and their files say the same."""
    print("seed", seed)
    random = generator(seed, "kills")
    nodes = [make_node(files=AOF_FILES, **SHORT, **AOF) for _ in range(count)]
    linked(*nodes)
    for turn in range(3):
        run_load(nodes, seed * 10 + turn, lambda loads: more_commands(loads, 100))
        killed = random.choice(nodes)
        killed.kill_all()
        others = [n for n in nodes if n is not killed]
        run_load(others, seed * 10 + turn + 5, lambda loads: more_commands(loads, 100))
        killed.start()
        linked(*nodes)
    check_equal(nodes, "seed %d" % seed)
    with nodes[0].connect() as c:
        drop_dying(c)  # or it may go between the two digests of a node
    check_equal(nodes, "seed %d" % seed)
    check_quiet(nodes)
    for node in nodes:
        before = digest(node)
        node.kill_all()
        node.start()
        assert digest(node) == before


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(3))
def test_short_logs_and_cuts(make_node, seed):
    """Logs so short that each cut under load needs everything anew."""
    print("seed", seed)
    random = generator(seed, "cuts")
    nodes = mesh(make_node, 3, **SHORT)

    def during(loads):
        for _ in range(3):
            more_commands(loads, 50)
            apart(*random.sample(nodes, 2), others=1)
            more_commands(loads, 50)
            linked(*nodes)
    run_load(nodes, seed, during)
    check_equal(nodes, "seed %d" % seed)
    check_quiet(nodes)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(2))
def test_data_sets_go_round_a_circle_once(make_node, seed):
    """Each node pulls from one. What one of them has to give as a whole, so have those behind it, each once; writes that go
    on all the while do not keep it going round."""
    print("seed", seed)
    links, nodes = Links(), []
    try:
        for i in range(4):
            port = links.add(i, lambda i=i: nodes[(i + 1) % 4].address())
            nodes.append(make_node(files=AOF_FILES, replicaof=["127.0.0.1", str(port)], **AOF))
        eventually(lambda: all(map(is_up_one_way, nodes)), "links", 60)

        def during(loads):
            more_commands(loads, 100)
            links[3].cut()  # what node 0 has got from now on is in its file, and in no log when it begins again
            more_commands(loads, 100)
            with nodes[0].connect() as c, nodes[1].connect() as c1:
                c1.ok("SET", "on the way", "1")
                eventually(lambda: c.call("GET", "on the way") == b"1", "node 0 has what node 1 wrote", 60)
                c.ok("SET", "of node 0", "1")
                assert c.call("WAITAOF", 1, 0, 60000)[0] == 1
            nodes[0].kill_all()
            nodes[0].start()
            links.mend()
            more_commands(loads, 100)
            eventually(lambda: all(map(is_up_one_way, nodes)), "links again", 60)
            more_commands(loads, 500)
        run_load(nodes[1:], seed, during)
        check_equal(nodes, "seed %d" % seed)
        merges = [node.output().count("is merged, in") for node in nodes]
        assert merges[3] >= 1 and sum(merges) <= 2 * len(nodes), merges
        check_quiet(nodes)
    finally:
        links.close()
