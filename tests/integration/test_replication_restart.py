"""Restarts: which history the data are, and how much of it, is in the RDB and AOF files.  After an
orderly end nobody needs a full transfer; after kill -9 the contents are equal all the same."""

import glob
import os
import shutil

import pytest

from lib.bounds import eventually
from lib.replication import Load, check_equal, everything, in_step, log_is_whole, replication
from lib.seeds import generator
from lib.server import free_port

PRIMARY = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1",
           "repl-backlog-size": "64mb"}
KEPT = {"rdb": {"save": ["3600", "1000000"]}, "aof": {"appendonly": "yes"}}


@pytest.fixture
def start(make_server, make_oracle):
    """start(kind, options): a server of ours, or a redis-server, that may leave its files."""
    def make(kind, options):
        if kind == "ours":
            return make_server(options, files=["dump.rdb", "appendonlydir"])
        return make_oracle(options)
    return make


def is_up(replica):
    return replication(replica).get("master_link_status") == "up"


def wait_up(*replicas):
    for replica in replicas:
        eventually(lambda r=replica: is_up(r), "link", 60)


def load_some(primary, seed, commands=1500):
    with Load(primary, [generator(seed, n) for n in range(3)]) as load:
        eventually(lambda: load.commands > commands or load.errors, "load", 60)


def stats(server, name):
    return int(server.info("stats")[name])


def replica_of(primary):
    return {"replicaof": ["127.0.0.1", str(primary.address()[1])]}


PAIRS = [("ours", "ours", "rdb"), ("ours", "ours", "aof"), ("redis", "ours", "rdb"),
         ("redis", "ours", "aof"), ("ours", "redis", "rdb")]


@pytest.mark.parametrize("primary_kind,replica_kind,kept", PAIRS)
def test_replica_goes_on(start, primary_kind, replica_kind, kept):
    primary = start(primary_kind, PRIMARY)
    replica = start(replica_kind, dict(KEPT[kept], **replica_of(primary)))
    wait_up(replica)
    load_some(primary, 11)
    with primary.connect() as c:
        c.ok("SELECT", 7)  # the stream is for a database that the next writes do not name
        c.ok("SET", "before", "1")
        eventually(lambda: in_step(primary, replica), "in step", 30)
        eventually(lambda: log_is_whole(replica), "a log that holds what the transfer brought", 60)
        replica.stop()
        c.ok("SET", "after", "2")
    load_some(primary, 12)
    full = stats(primary, "sync_full")
    replica.start()
    wait_up(replica)
    check_equal(primary, replica)
    assert stats(primary, "sync_full") == full
    assert stats(primary, "sync_partial_ok") >= 1


PAIRS = [("ours", "ours", "rdb"), ("ours", "ours", "aof"), ("ours", "redis", "rdb"),
         ("ours", "redis", "aof"), ("redis", "ours", "rdb")]


@pytest.mark.parametrize("primary_kind,replica_kind,kept", PAIRS)
def test_primary_goes_on(start, primary_kind, replica_kind, kept):
    """The end waits for replicas, so they are where the files end; they go on under a new id."""
    primary = start(primary_kind, dict(PRIMARY, port=str(free_port()), **KEPT[kept]))
    # Who is in the middle does not wait at its own end, which is no part of this: a ping a second
    # and an acknowledgement a second may miss one another for as long as a test waits.
    replica = start(replica_kind, dict(replica_of(primary), **{"shutdown-timeout": "0"}))
    behind = start("ours", replica_of(replica))
    wait_up(replica, behind)
    with primary.connect() as c:
        c.ok("SELECT", 3)
        for i in range(50):
            # Gone while the primary is down: told as deletions later.
            c.ok("SET", "short%d" % i, "x", "PX", 300)
    load_some(primary, 13)
    identity = replication(primary)["master_replid"]
    primary.stop()
    primary.start()
    about = replication(primary)
    assert about["master_replid2"] == identity and about["master_replid"] != identity
    wait_up(replica, behind)
    load_some(primary, 14)
    check_equal(primary, replica, behind)
    assert (stats(primary, "sync_full"), stats(primary, "sync_partial_ok")) == (0, 1)
    if replica_kind == "ours":
        assert stats(replica, "sync_full") == 1
    with replica.connect() as r:
        r.ok("SELECT", 3)
        eventually(lambda: not r.call("KEYS", "short*"), "gone")
        eventually(lambda: size(primary, 3) == size(replica, 3), "deleted", 30)


def test_middle_goes_on(start):
    """Under load: a replica that has a replica ends with the stream where its files say it is."""
    primary = start("ours", PRIMARY)
    middle = start("ours", dict(PRIMARY, port=str(free_port()), **KEPT["rdb"], **replica_of(primary)))
    last = start("ours", replica_of(middle))
    wait_up(middle, last)
    with Load(primary, [generator(50, n) for n in range(2)]) as load:
        for _ in range(2):
            begun = load.commands
            eventually(lambda at=begun: load.commands > at + 500 or load.errors, "load", 60)
            middle.stop()
            begun = load.commands
            eventually(lambda at=begun: load.commands > at + 200 or load.errors, "load", 60)
            middle.start()
            wait_up(middle, last)
            # `last` may not have seen yet that the one before was gone.
            eventually(lambda: replication(middle)["connected_slaves"] == "1", "the last one is there", 60)
    check_equal(primary, middle, last)
    assert stats(primary, "sync_full") == 1
    assert stats(middle, "sync_full") == 0


def kill(server):
    """kill -9; what a child process was at is left behind then."""
    server.kill_all()
    for name in glob.glob(server.file("temp-*")):
        os.unlink(name)


def size(server, db):
    with server.connect() as c:
        c.ok("SELECT", db)
        return c.call("DBSIZE")


@pytest.mark.parametrize("primary_kind,replica_kind", [("ours", "redis"), ("redis", "ours")])
def test_cuts_and_restarts_in_between(start, primary_kind, replica_kind):
    """As users migrate: everything is written all the time, and nothing on the way stays up."""
    primary = start(primary_kind, dict(PRIMARY, port=str(free_port()), **KEPT["rdb"]))
    replica = start(replica_kind, dict(KEPT["rdb"], **replica_of(primary)))
    wait_up(replica)
    for turn in range(2):
        with Load(primary, [generator(40 + turn, n) for n in range(3)]) as load:
            def more(load=load):
                begun = load.commands
                eventually(lambda: load.commands > begun + 300 or load.errors, "load", 60)
            more()
            with primary.connect() as c:
                eventually(lambda c=c: c.call("CLIENT", "KILL", "TYPE", "replica") > 0, "cut", 30)
            more()
            with replica.connect() as c:
                eventually(lambda c=c: c.call("CLIENT", "KILL", "TYPE", "master") > 0, "cut", 30)
            more()
            replica.stop()
            more()
            replica.start()
            more()
        wait_up(replica)
        primary.stop()
        primary.start()
        wait_up(replica)
    load_some(primary, 42, 600)
    check_equal(primary, replica)
    assert (stats(primary, "sync_full"), stats(primary, "sync_partial_ok")) == (0, 1)


@pytest.mark.parametrize("kept", ["rdb", "aof"])
def test_killed_replica(start, kept):
    """Under load, several times: what it has on disk may be old, but is never taken for more."""
    primary = start("ours", PRIMARY)
    replica = start("ours", dict(KEPT[kept], **replica_of(primary)))
    wait_up(replica)
    with Load(primary, [generator(15, n) for n in range(2)]) as load:
        for turn in range(3):
            begun = load.commands
            eventually(lambda at=begun: load.commands > at + 500 or load.errors, "load", 60)
            if turn == 1:
                with replica.connect() as r:
                    r.ok("SAVE")
                    begun = load.commands
                eventually(lambda at=begun: load.commands > at + 200 or load.errors, "load", 60)
            kill(replica)
            begun = load.commands
            eventually(lambda at=begun: load.commands > at + 200 or load.errors, "load", 60)
            replica.start()
            wait_up(replica)
    check_equal(primary, replica)


@pytest.mark.parametrize("kept", ["rdb", "aof"])
def test_killed_primary(start, kept):
    """Writes that replicas have and the disk has not are no part of any history any more."""
    primary = start("ours", dict(PRIMARY, port=str(free_port()), **KEPT[kept]))
    replica = start("ours", replica_of(primary))
    wait_up(replica)
    for turn in range(3):
        load_some(primary, 16 + turn, 600)
        with primary.connect() as c:
            c.ok("SAVE")
            c.ok("SET", "after", turn)
            # On the replica for certain; on the disk perhaps.
            assert c.call("WAIT", 1, 0) == 1
        kill(primary)
        primary.start()
        wait_up(replica)
        load_some(primary, 20 + turn, 300)
        check_equal(primary, replica)
    primary.stop()  # orderly: the notes stand at the end of the files
    primary.start()
    with primary.connect() as c:
        c.ok("SET", "behind", "1")
    kill(primary)  # and now something may stand behind them
    primary.start()
    wait_up(replica)
    check_equal(primary, replica)


def test_redis_takes_over_our_files(start, make_oracle):
    """Its replica goes on with what our RDB file says; our AOF it reads as well."""
    port = str(free_port())
    primary = start("ours", dict(PRIMARY, port=port, save=["3600", "1"], appendonly="yes"))
    replica = start("ours", replica_of(primary))
    wait_up(replica)
    load_some(primary, 30)
    primary.stop()
    log = sorted(glob.glob(primary.file("appendonlydir/*.incr.aof")))
    with open(log[-1], "rb") as file:
        assert b"\n#AUX:repl-stream-db=" in file.read()[-200:]
    other = make_oracle(dict(PRIMARY, port=port, save=""), start=False)
    last = make_oracle({"appendonly": "yes"}, start=False)
    for server in (other, last):
        shutil.copy(primary.file("dump.rdb"), server.directory)
        shutil.copytree(primary.file("appendonlydir"), server.file("appendonlydir"))
    other.start()
    wait_up(replica)
    check_equal(other, replica)
    # The replica may have had no time to see that the one before was gone.
    eventually(lambda: stats(other, "sync_full") + stats(other, "sync_partial_ok") > 0, "it has asked", 60)
    assert (stats(other, "sync_full"), stats(other, "sync_partial_ok")) == (0, 1)
    last.start()
    eventually(lambda: everything(last) == everything(other), "the log's content", 30)


@pytest.mark.parametrize("sync", ["everysec", "always"])
def test_what_a_replica_has_acknowledged_outlives_it(start, sync):
    """Its log has what WAIT counts, though no client has written there: kill -9 loses none of it."""
    primary = start("ours", PRIMARY)
    replica = start("ours", dict(KEPT["aof"], appendfsync=sync, **replica_of(primary)))
    wait_up(replica)
    with primary.connect() as c:
        for i in range(5):
            c.ok("SET", "k", str(i))
            assert c.call("WAIT", 1, 30000) == 1
            if i == 0:
                eventually(lambda: log_is_whole(replica), "the log's base", 30)
    replica.kill_all()
    del replica.options["replicaof"]
    replica.start()
    with replica.connect() as c:
        assert c.call("GET", "k") == b"4"
