"""FAILOVER, and the end that waits for replicas: the role changes hands and the server ends without
a write lost.  What is refused reads as redis-server says it."""

import os
import signal
import threading

import pytest

from lib.bounds import eventually
from lib.replication import check_equal, replication
from lib.resp import Closed, Error

pytestmark = pytest.mark.one_thread("the pause holds the only thread's clients")

NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}


def follow(replica, primary):
    with replica.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", primary.port)


def is_up(replica):
    return replication(replica).get("master_link_status") == "up"


def wait_up(*replicas):
    for replica in replicas:
        eventually(lambda r=replica: is_up(r), "link", 30)


def online(primary, count):
    about = replication(primary)
    return sum("state=online" in about.get("slave%d" % i, "") for i in range(count)) == count


def attach(primary, *replicas):
    """They follow it, and both sides say so. (A replica is up before its primary has heard that it is.)"""
    for replica in replicas:
        follow(replica, primary)
    wait_up(*replicas)
    eventually(lambda: online(primary, len(replicas)), "online", 30)


def test_roles_change(make_server):
    """Writes that come meanwhile wait, then hear that this is a replica; none is lost, and nobody
    needs a full transfer."""
    first, second, third = make_server(NOW), make_server(NOW), make_server(NOW)
    attach(first, second, third)
    written, trouble = [], []

    def write():
        try:
            with first.connect() as c:
                for i in range(1 << 30):
                    reply = c.call("SET", "k%d" % i, i)
                    if isinstance(reply, Error):
                        assert reply.startswith(b"READONLY"), reply
                        return
                    written.append(i)
        except Exception as error:  # the test shows it
            trouble.append(error)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for t in threads:
        t.start()
    eventually(lambda: len(written) > 200 or trouble, "writes", 30)
    with first.connect() as c:
        assert replication(first)["master_failover_state"] == "no-failover"
        c.ok("FAILOVER", "TO", "127.0.0.1", second.port)
        for t in threads:
            t.join()
        assert not trouble, trouble
        eventually(lambda: c.call("ROLE")[0] == b"slave", "a replica", 30)
    wait_up(first)
    follow(third, second)
    wait_up(third)
    with second.connect() as c:
        assert c.call("ROLE")[0] == b"master"
        for i in set(written):
            assert c.call("GET", "k%d" % i) is not None, i
        c.ok("SET", "new", "1")
    check_equal(second, first, third)
    assert second.info("stats")["sync_full"] == "0"
    assert replication(first)["master_failover_state"] == "no-failover"


@pytest.mark.parametrize("ours_first", [True, False], ids=["to-redis", "from-redis"])
def test_with_redis(make_server, make_oracle, ours_first):
    first, second = (make_server, make_oracle) if ours_first else (make_oracle, make_server)
    first, second = first(NOW), second(NOW)
    with first.connect() as c:
        attach(first, second)
        for i in range(100):
            c.ok("SET", "k%d" % i, i)
        c.ok("FAILOVER")
        eventually(lambda: replication(second)["role"] == "master", "taken over", 30)
    wait_up(first)
    with second.connect() as c:
        c.ok("SET", "new", "1")
        assert c.call("DBSIZE") == 101
    check_equal(second, first)
    assert second.info("stats")["sync_full"] == "0"


def test_time_out_abort_and_force(make_server):
    first, second = make_server(NOW), make_server(NOW)
    attach(first, second)
    with first.connect() as c, first.connect() as d:
        second.stand_still()
        c.ok("SET", "a", "1")
        c.ok("FAILOVER", "TIMEOUT", 100)
        eventually(lambda: replication(first)["master_failover_state"] == "no-failover", "aborted", 30)
        c.ok("SET", "a", "2")
        c.ok("FAILOVER", "TO", "127.0.0.1", second.port)
        assert replication(first)["master_failover_state"] == "waiting-for-sync"
        assert c.call("FAILOVER") == b"ERR FAILOVER already in progress."
        assert c.call("REPLICAOF", "NO", "ONE") == b"ERR REPLICAOF not allowed while failing over."
        assert c.call("PSYNC", "?", -1) == b"NOMASTERLINK Can't SYNC while failing over"
        d.send("SET", "a", "3")
        eventually(lambda: b"flags=b" in c.call("CLIENT", "LIST"), "held", 20)
        assert c.call("GET", "a") == b"2"
        assert c.call("EVAL", "#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])", 1, "a") == b"2"
        assert c.call("EVAL_RO", "return redis.call('get', KEYS[1])", 1, "a") == b"2"
        c.ok("CLIENT", "PAUSE", 100000, "WRITE")
        c.ok("CLIENT", "UNPAUSE")  # another pause: this one stays
        assert b"flags=b" in c.call("CLIENT", "LIST")
        c.ok("FAILOVER", "ABORT")
        assert d.read() == b"OK"
        assert c.call("FAILOVER", "ABORT") == b"ERR No failover in progress."
        c.ok("FAILOVER", "TO", "127.0.0.1", second.port, "FORCE", "TIMEOUT", 1)
        eventually(lambda: replication(first)["master_failover_state"] == "failover-in-progress",
                   "forced", 30)
        assert c.call("ROLE")[0] == b"slave"
        c.ok("FAILOVER", "ABORT")  # it does not answer
        assert c.call("ROLE")[0] == b"master"
        c.ok("SET", "a", "4")


def test_refusals(make_server, make_oracle):
    """The same words to a redis-server in the same state."""
    ours, theirs = make_server(NOW), make_oracle(NOW)
    ours_behind, theirs_behind = make_server(NOW), make_oracle(NOW)

    def compare(to_ours, to_theirs, *words):
        with to_ours.connect() as a, to_theirs.connect() as b:
            got, wanted = a.call(*words), b.call(*words)
            assert isinstance(wanted, Error) and got == wanted, (words, got, wanted)

    for words in (["FAILOVER"], ["FAILOVER", "ABORT"], ["FAILOVER", "TIMEOUT", "0"],
                  ["FAILOVER", "TIMEOUT", "x"], ["FAILOVER", "TO", "a"], ["FAILOVER", "TO", "a", "x"],
                  ["FAILOVER", "what"], ["FAILOVER", "FORCE"], ["SHUTDOWN", "ABORT"],
                  ["SHUTDOWN", "NOW", "ABORT"], ["PSYNC", "a" * 40, "1", "FAILOVER"]):
        compare(ours, theirs, *words)
    follow(ours_behind, ours)
    follow(theirs_behind, theirs)
    wait_up(ours_behind, theirs_behind)
    for server in (ours, theirs):
        eventually(lambda s=server: online(s, 1), "online", 30)
    for words in (["FAILOVER", "FORCE"], ["FAILOVER", "FORCE", "TIMEOUT", "1"],
                  ["FAILOVER", "TO", "127.0.0.1", "1"], ["FAILOVER", "TO", "x" * 300, "1"],
                  ["FAILOVER", "TO", "127.0.0.1", "1", "FORCE"], ["FAILOVER", "ABORT"]):
        compare(ours, theirs, *words)
    for words in (["FAILOVER"], ["PSYNC", "a" * 40, "1", "FAILOVER"]):
        compare(ours_behind, theirs_behind, *words)


# ---- SHUTDOWN ----

def test_end_waits_for_replicas(make_server):
    primary = make_server(dict(NOW, **{"shutdown-timeout": "3600"}))
    replica = make_server(NOW)
    attach(primary, replica)
    with primary.connect() as c, primary.connect() as asks, primary.connect() as writes:
        replica.stand_still()
        c.ok("SET", "a", "1")
        asks.send("SHUTDOWN")
        eventually(lambda: "shutdown_in_milliseconds" in primary.info("server"), "waiting", 30)
        writes.send("SET", "a", "2")
        eventually(lambda: c.call("CLIENT", "LIST").count(b"flags=b") == 2, "both wait", 30)
        assert c.call("GET", "a") == b"1"
        c.ok("SHUTDOWN", "ABORT")
        assert asks.read() == b"ERR Errors trying to SHUTDOWN. Check logs."
        assert writes.read() == b"OK"
        assert c.call("SHUTDOWN", "ABORT") == b"ERR No shutdown in progress."
        asks.send("SHUTDOWN")
        eventually(lambda: "shutdown_in_milliseconds" in primary.info("server"), "waiting", 30)
        os.kill(primary.pid, signal.SIGTERM)  # the same once more
        c.send("SHUTDOWN", "NOW")
        with pytest.raises(Closed):
            asks.read()
    assert primary.wait_exit() == 0


@pytest.mark.parametrize("how", ["command", "signal"])
def test_replicas_have_everything_at_the_end(make_server, how):
    primary = make_server(dict(NOW, **{"shutdown-timeout": "3600"}))
    replica = make_server(NOW)
    attach(primary, replica)
    with primary.connect() as c, primary.connect() as asks:
        replica.stand_still()
        for i in range(1000):
            c.ok("SET", "k%d" % i, "x" * 1000)
        if how == "command":
            asks.send("SHUTDOWN")
        else:
            os.kill(primary.pid, signal.SIGTERM)
        eventually(lambda: "shutdown_in_milliseconds" in primary.info("server"), "waiting", 30)
        replica.go_on()
    assert primary.wait_exit(60) == 0
    with replica.connect() as c:
        assert c.call("DBSIZE") == 1000


def test_end_waits_no_longer(make_server):
    primary = make_server(dict(NOW, **{"shutdown-timeout": "1"}))
    replica = make_server(NOW)
    attach(primary, replica)
    replica.stand_still()
    with primary.connect() as c:
        c.ok("SET", "a", "1")
        c.send("SHUTDOWN")
        with pytest.raises(Closed):
            c.read()
    assert primary.wait_exit(60) == 0
    assert "not everything" in primary.output()
