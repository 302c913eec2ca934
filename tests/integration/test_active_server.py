"""What a server does beside its writes when it is an active replica: INFO and ROLE as KeyDB has them,
jobs, evictions, acknowledgements."""

import time

import pytest

from lib.active import call, check_equal, check_quiet, make_node, mesh, together
from lib.bounds import eventually
from lib.metrics import scrape, value
from lib.replication import replication
from lib.server import closed_port, free_port


__all__ = ["make_node"]  # fixtures


def test_metrics(make_node):
    port = free_port()
    a, b = make_node(**{"metrics-port": str(port)}), make_node()
    together(a, b)
    call(a, "SET", "k", "v")
    seen = {}

    def calm():
        """Nothing has come between two looks that say the same."""
        seen.update(about=replication(a), found=scrape(port))
        return counts(replication(a)) == counts(seen["about"])

    def counts(about):
        return [about["active_" + name] for name in ("origins", "conflicts", "sync_keys")]
    eventually(calm, "nothing moves meanwhile")
    found, about = seen["found"], seen["about"]
    for name in ("active_origins", "active_conflicts", "active_sync_keys"):
        assert value(found, "keydb_" + name) == int(about[name]), name
    assert value(found, "keydb_active_own_units_total") >= 1 and value(found, "redis_connected_masters") == 1


def test_info_and_role_of_several(make_node):
    nodes = mesh(make_node, 3)
    a, ports = nodes[0], [n.port for n in nodes]
    about = replication(a)
    assert about["role"] == "active-replica" and about["connected_masters"] == "2"
    assert about["master_global_link_status"] == "up"
    for prefix, port in zip(("master", "master_1"), ports[1:]):
        assert about[prefix + "_host"] == "127.0.0.1" and about[prefix + "_port"] == str(port)
        assert about[prefix + "_link_status"] == "up"
        assert int(about[prefix + "_last_io_seconds_ago"]) >= 0
        assert about[prefix + "_sync_in_progress"] == "0"
    assert about["slave_read_only"] == "0" and about["slave_priority"] == "100"
    with a.connect() as c, nodes[1].connect() as other:
        roles = c.call("ROLE")
        assert [r[:4] for r in roles] == [[b"active-replica", b"127.0.0.1", port, b"connected"]
                                          for port in ports[1:]]
        for _ in range(10):
            other.call("INCR", "n")
        eventually(lambda: c.call("GET", "n") == b"10", "there")
        # Units and not bytes; words of the nodes' own are among them, and come when they come.
        assert 10 <= c.call("ROLE")[0][4] - roles[0][4] < 100
        c.ok("REPLICAOF", "REMOVE", "127.0.0.1", ports[2])
        flat = c.call("ROLE")
        assert flat[:4] == [b"active-replica", b"127.0.0.1", ports[1], b"connected"]
        gone = replication(a)
        assert gone["connected_masters"] == "1" and "master_1_host" not in gone
    with closed_port() as closed, a.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", closed)
        about = replication(a)
        assert about["master_global_link_status"] == "down" and about["connected_masters"] == "1"
        assert about["master_1_link_status"] == "down" and "master_1_link_down_since_seconds" in about


def units(node):
    return int(replication(node)["active_own_units"])


def test_enough_replicas_are_peers_too(make_node):
    a, b = mesh(make_node, 2, **{"min-replicas-to-write": "1", "min-replicas-max-lag": "2"})
    with a.connect() as ca, b.connect() as cb:
        eventually(lambda: ca.call("SET", "k", "1") == b"OK", "it counts as one", 30)
        eventually(lambda: replication(a)["min_slaves_good_slaves"] == "1", "a good one", 30)
        with b.standing_still():
            eventually(lambda: ca.call("SET", "k", "2") == b"NOREPLICAS Not enough good replicas to write.",
                       "too few", 30)
            assert ca.call("GET", "k") is not None
        eventually(lambda: ca.call("SET", "k", "3") == b"OK", "enough again", 30)
        eventually(lambda: cb.call("SET", "l", "3") == b"OK", "enough again", 30)
    check_equal([a, b], "afterwards")


def test_a_burst_costs_nobody_a_data_set(make_node):
    """Many times what the logs keep comes between two looks of a link; what it has not read stays."""
    a, b = mesh(make_node, 2, **{"repl-backlog-size": "64kb"})
    with a.connect() as ca, b.connect() as cb:
        for _ in range(5):
            ca.pipeline([["SET", "k%d" % i, "x" * 200] for i in range(5000)])
        cb.pipeline([["SET", "l%d" % i, "x" * 200] for i in range(5000)])
        check_equal([a, b], "a burst")
        assert ca.call("DBSIZE") == 10000
        eventually(lambda: ca.ok("SET", "k", "1") or int(replication(a)["active_log_bytes"]) <= 64 << 10, "it is read", 20)
    assert "gets everything" not in a.output() + b.output()
    check_quiet([a, b])


@pytest.mark.long
def test_another_size_of_the_logs(make_node):
    """CONFIG SET repl-backlog-size: what is beyond goes, and more is kept from then on."""
    a, b = mesh(make_node, 2, **{"repl-backlog-size": "1mb"})
    with a.connect() as ca:
        def log_bytes():
            return int(replication(a)["active_log_bytes"])

        def write():
            for i in range(3000):
                ca.ok("SET", "k%d" % i, "x" * 1000)
        write()
        eventually(lambda: ca.ok("SET", "more", "1") or log_bytes() <= 1 << 20, "bounded, once it is read", 30)
        ca.ok("CONFIG", "SET", "repl-backlog-size", "16mb")
        eventually(lambda: ca.ok("SET", "more", "x" * 1000) or log_bytes() > 1 << 20, "it grows", 30)
        write()
        assert log_bytes() > 2 << 20
        ca.ok("CONFIG", "SET", "repl-backlog-size", "1mb")
        eventually(lambda: ca.ok("SET", "less", "1") or log_bytes() <= 1 << 20, "it shrinks", 30)
    check_equal([a, b], "afterwards")


def test_the_end_waits_for_peers(make_node):
    """Who pulls from a node that ends has all of its writes."""
    a, b = mesh(make_node, 2, **{"shutdown-timeout": "3600", "save": ""})
    with a.connect() as ca, a.connect() as asks, b.connect() as cb:
        with b.standing_still():
            for i in range(300):
                ca.ok("SET", "k%d" % i, "x" * 1000)
            asks.send("SHUTDOWN")
            eventually(lambda: "shutdown_in_milliseconds" in a.info("server"), "it waits", 30)
            ca.send("SET", "late", "1")  # is not done
        assert a.wait_exit(60) == 0
        assert cb.call("DBSIZE") == 300


def test_the_end_waits_no_longer_than_it_may(make_node):
    a, b = mesh(make_node, 2, **{"shutdown-timeout": "1", "save": ""})
    with a.connect() as ca, b.standing_still():
        ca.ok("SET", "k", "1")
        ca.send("SHUTDOWN")
        assert a.wait_exit(60) == 0
    assert "not everything" in a.output()


def test_when_a_key_was_written(make_node):
    a, b = mesh(make_node, 2)
    with a.connect() as ca, b.connect() as cb:
        ca.ok("SET", "k", "1")
        assert 0 <= ca.call("OBJECT", "LASTMODIFIED", "k") < 300
        eventually(lambda: cb.call("GET", "k") == b"1", "told")
        assert 0 <= cb.call("OBJECT", "LASTMODIFIED", "k") < 300
        eventually(lambda: cb.call("OBJECT", "LASTMODIFIED", "k") >= 1, "time goes by")
        ca.call("APPEND", "k", "2")
        assert ca.call("OBJECT", "LASTMODIFIED", "missing") is None


def test_a_job_runs_where_it_was_made(make_node):
    a, b = mesh(make_node, 2)
    script = "redis.call('INCR', KEYS[1])"
    with a.connect() as ca, b.connect() as cb:
        def runs():
            return int(ca.call("GET", "runs") or 0)
        ca.ok("KEYDB.CRON", "job", "repeat", 50, script, 1, "runs")
        eventually(lambda: runs() >= 5, "it runs", 30)
        assert units(b) == 0
        check_equal_at_last(a, b, ca)
        # Made anew on the other node, it runs there.
        cb.ok("KEYDB.CRON", "job", "repeat", 50, script, 1, "runs")
        eventually(lambda: units(b) >= 5, "it runs there", 30)

        def only_there():
            """Ten times on b and never on a, once that has heard of it."""
            before, at = units(a), units(b)
            eventually(lambda: units(b) >= at + 10, "it goes on", 30)
            return units(a) == before
        eventually(only_there, "it runs on b alone", 30)
        ca.call("DEL", "job")
        eventually(lambda: cb.call("EXISTS", "job") == 0, "away")
        ca.call("SET", "once", 0)
        ca.ok("KEYDB.CRON", "single", "single", 300, script, 1, "once")
        eventually(lambda: cb.call("GET", "once") == b"1", "it has run", 30)
        time.sleep(0.5)
        assert ca.call("GET", "once") == cb.call("GET", "once") == b"1"
        eventually(lambda: ca.call("EXISTS", "single") == cb.call("EXISTS", "single") == 0, "it is over everywhere", 30)
    check_equal([a, b], "jobs")
    check_quiet([a, b])


def check_equal_at_last(a, b, client):
    """While a job runs two digests are of two moments: it is paused."""
    client.ok("CLIENT", "PAUSE", 100000, "WRITE")
    check_equal([a, b], "while it is paused")
    client.ok("CLIENT", "UNPAUSE")


@pytest.mark.long
def test_what_one_evicts_is_deleted_everywhere(make_node):
    """The logs count as memory, as a backlog does; here they are smaller than what may be kept."""
    a, b = mesh(make_node, 2, **{"repl-backlog-size": "4mb"})
    with a.connect() as ca, b.connect() as cb:
        ca.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        cb.ok("SET", "of-b", "1")
        used = int(a.info("memory")["used_memory"])
        ca.ok("CONFIG", "SET", "maxmemory", used + (10 << 20))
        for i in range(9000):
            ca.ok("SET", "k%d" % i, "x" * 1000)
            if i % 200 == 0:
                eventually(lambda at=i: cb.call("EXISTS", "k%d" % at) == 1, "the peer keeps up")
        ca.ok("CONFIG", "SET", "maxmemory", 0)
        evicted = int(a.info("stats")["evicted_keys"])
        assert evicted > 500 and ca.call("DBSIZE") > 500
        check_equal([a, b], "evictions")
        assert ca.call("DBSIZE") == cb.call("DBSIZE") == 9001 - evicted
        assert b.info("stats")["evicted_keys"] == "0"
    check_quiet([a, b])


def test_wait_counts_peers(make_node):
    nodes = mesh(make_node, 3)
    a, _, c = nodes
    with a.connect() as ca:
        assert ca.call("WAIT", 2, 0) == 2
        for i in range(20):
            ca.ok("SET", "k", i)
            assert ca.call("WAIT", 2, 0) == 2
            with c.connect() as other:
                assert other.call("GET", "k") == b"%d" % i
        with c.standing_still():
            ca.ok("SET", "k", "late")
            assert ca.call("WAIT", 1, 0) >= 1
            assert ca.call("WAIT", 2, 500) == 1
        assert ca.call("WAIT", 2, 0) == 2
        ca.send("SET", "k", "pipelined")
        ca.send("WAIT", 2, 0)
        assert ca.read() == b"OK" and ca.read() == 2
        with c.connect() as other:
            assert other.call("GET", "k") == b"pipelined"
    check_equal(nodes, "WAIT")
