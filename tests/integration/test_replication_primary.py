"""Our server as a primary: of Debian's redis-server, and of a replica that the test plays itself."""

import re

import pytest

from lib.bounds import eventually
from lib.replica import MODERN
from lib.replication import Load, check_equal, replication
from lib.resp import Closed, Error
from lib.seeds import generator

pytestmark = pytest.mark.one_thread("replicas are fed by the thread that writes")

NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "3600"}
PIPE, FILE = dict(NOW), {"repl-diskless-sync": "no", "repl-ping-replica-period": "1"}


@pytest.fixture
def replica(make_oracle):
    """A redis-server that can be told to follow somebody."""
    return make_oracle()


def follow(replica, primary):
    with replica.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", primary.port)


def cut(replica):
    with replica.connect() as c:
        assert c.call("CLIENT", "KILL", "TYPE", "master") == 1


@pytest.mark.parametrize("options", [PIPE, FILE], ids=["pipe", "file"])
def test_redis_follows(make_server, replica, options):
    """Full transfer under load, cuts that the backlog covers, cuts that it does not."""
    primary = make_server(dict(options, **{"repl-backlog-size": "64mb"}))
    with Load(primary, [generator(1, n) for n in range(3)]) as load:
        follow(replica, primary)
        eventually(lambda: replication(replica).get("master_link_status") == "up", "link", 20)
        for _ in range(4):
            begun = load.commands
            eventually(lambda at=begun: load.commands > at + 300 or load.errors, "load", 20)
            cut(replica)
            eventually(lambda: replication(replica).get("master_link_status") == "up", "link", 20)
        eventually(lambda: load.commands > 3000 or load.errors, "load", 60)
    check_equal(primary, replica)
    stats = primary.info("stats")
    assert stats["sync_full"] == "1"
    assert int(stats["sync_partial_ok"]) >= 4


def test_backlog_does_not_cover(make_server, replica):
    primary = make_server(dict(NOW, **{"repl-backlog-size": "16kb"}))
    with primary.connect() as c:
        follow(replica, primary)
        eventually(lambda: replication(replica).get("master_link_status") == "up", "link", 20)
        with replica.connect() as r:
            r.ok("REPLICAOF", "127.0.0.1", "1")
        eventually(lambda: replication(primary)["connected_slaves"] == "0", "gone")
        for i in range(100):
            c.ok("SET", "key%d" % i, "x" * 1000)
        assert int(replication(primary)["repl_backlog_histlen"]) < 64 * 1024
        follow(replica, primary)
    check_equal(primary, replica)
    assert primary.info("stats")["sync_full"] == "2"


def test_stream(make_server, play):
    primary = make_server(NOW)
    p = play(primary, ("listening-port", "4321"), ("ip-address", "replica.example"), MODERN)
    with primary.connect() as c:
        c.ok("SET", "before", "1")
        identity, offset, rdb = p.full()
        assert b"before" in rdb
        assert replication(primary)["slave0"].startswith("ip=replica.example,port=4321,state=send_bulk")
        c.ok("SELECT", 3)
        c.ok("SET", "a", "1")
        c.call("GET", "a")
        p.c.send("REPLCONF", "ACK", offset)
        assert p.command() == [b"SELECT", b"3"]
        assert p.command() == [b"SET", b"a", b"1"]
        c.call("SPOP", "nothing")
        c.call("MULTI")
        c.call("SET", "b", "2")
        c.call("INCR", "b")
        c.call("EXEC")
        assert [p.command()[0] for _ in range(4)] == [b"MULTI", b"SET", b"INCR", b"EXEC"]
        about = replication(primary)
        assert about["master_replid"] == identity
        end = int(about["master_repl_offset"])

        def heard():
            # Again and again, as replicas do: the lag is of the last one.
            p.c.send("REPLCONF", "ACK", end)
            return replication(primary)["slave0"] == \
                "ip=replica.example,port=4321,state=online,offset=%d,lag=0" % end
        eventually(heard, "offset")
        assert c.call("ROLE") == [b"master", end, [[b"replica.example", b"4321", b"%d" % end]]]
        line = [entry for entry in c.call("CLIENT", "LIST", "TYPE", "replica").split(b"\n") if entry]
        assert len(line) == 1 and b" flags=S " in line[0] and b"cmd=replconf" in line[0]


def test_partial(make_server, play):
    primary = make_server(NOW)
    first = play(primary, MODERN)
    with primary.connect() as c:
        identity, offset, _ = first.full()
        first.c.send("REPLCONF", "ACK", offset)
        for i in range(2000):
            c.send("SET", "k%d" % i, "v" * 50)
        for i in range(2000):
            c.read()
        first.close()
        end = int(replication(primary)["master_repl_offset"])
        again = play(primary, MODERN)
        again.c.send("PSYNC", identity, offset + 1)
        assert again.line() == b"+CONTINUE " + identity.encode()
        assert again.command() == [b"SELECT", b"0"]
        for i in range(2000):
            assert again.command() == [b"SET", b"k%d" % i, b"v" * 50]
        # At the end, nothing; one byte in front of the first and behind the last, everything.
        old = play(primary)
        old.c.send("PSYNC", identity, end + 1)
        assert old.line() == b"+CONTINUE"
        for wanted, name in ((offset, identity), (end + 2, identity), (offset + 1, "f" * 40),
                             (0, identity), (-5, identity), ("x", identity)):
            p = play(primary)
            p.c.send("PSYNC", name, wanted)
            assert p.line().startswith(b"+FULLRESYNC " + identity.encode())
            p.close()


def test_old_forms(make_server, play):
    """SYNC, and replicas that do not know the mark."""
    primary = make_server(NOW)
    with primary.connect() as c:
        c.ok("SET", "a", "1")
        p = play(primary)
        assert b"a" in p.full(old=True)[2]
        c.ok("SET", "b", "2")
        assert p.command() == [b"SELECT", b"0"]
        assert p.command() == [b"SET", b"b", b"2"]
        q = play(primary, ("capa", "psync2"))
        q.full()
        c.ok("SET", "c", "3")
        assert q.command() == [b"SELECT", b"0"]
        assert q.command() == [b"SET", b"c", b"3"]


def test_rdb_only(make_server, play):
    primary = make_server(NOW)
    with primary.connect() as c:
        p = play(primary, ("rdb-only", "1"), ("capa", "eof"))
        c.ok("SET", "a", "1")
        assert b"a" in p.full(old=True)[2]
        c.ok("SET", "b", "1")
        assert c.call("WAIT", 1, 1) == 0
        with pytest.raises(Closed):
            p.take(1)
        eventually(lambda: replication(primary)["connected_slaves"] == "0", "gone")


def test_wait(make_server, play, connect):
    primary = make_server(NOW)
    p = play(primary, MODERN)
    with primary.connect() as c, primary.connect() as d:
        assert c.call("WAIT", 0, 0) == 0
        assert c.call("WAIT", 1, 10) == 0
        _, offset, _ = p.full()
        p.c.send("REPLCONF", "ACK", offset)
        c.ok("SET", "a", "1")
        c.send("WAIT", 1, 0)
        while p.command() != [b"REPLCONF", b"GETACK", b"*"]:
            pass
        assert b"cmd=wait" in d.call("CLIENT", "LIST")
        p.c.send("REPLCONF", "ACK", offset + 1)
        p.c.send("REPLCONF", "ACK", int(replication(primary)["master_repl_offset"]))
        assert c.read() == 1
        c.ok("SET", "a", "2")
        assert c.call("WAIT", 2, 20) == 0
        assert c.call("MULTI") == b"OK"
        c.call("WAIT", 1, 0)
        assert c.call("EXEC") == [0]
        c.send("WAIT", 1, 0)
        p.close()  # nobody is there to tell: until it is unblocked
        name = int(re.search(rb"id=(\d+)[^\n]*cmd=wait", eventually(
            lambda: re.search(rb"id=\d+[^\n]*flags=b[^\n]*cmd=wait", d.call("CLIENT", "LIST")),
            "blocked").group(0)).group(1))
        assert d.call("CLIENT", "UNBLOCK", name) == 1
        assert c.read() == 0
        for words in (["WAIT"], ["WAIT", "x", 0], ["WAIT", 1, "x"], ["WAIT", 1, -1]):
            assert isinstance(c.call(*words), Error)


def test_min_replicas(make_server, play):
    primary = make_server(dict(NOW, **{"min-replicas-to-write": "1", "min-replicas-max-lag": "5"}))
    with primary.connect() as c:
        eventually(lambda: c.call("SET", "a", "1") ==
                   b"NOREPLICAS Not enough good replicas to write.", "refused")
        assert c.call("GET", "a") is None
        assert replication(primary)["min_slaves_good_slaves"] == "0"
        p = play(primary, MODERN)
        offset = p.full()[1]

        def allowed():
            # Again and again, as replicas do: the first may come before its transfer counts as sent.
            p.c.send("REPLCONF", "ACK", offset)
            return c.call("SET", "a", "1") == b"OK"

        eventually(allowed, "allowed")
        p.close()
        eventually(lambda: isinstance(c.call("SET", "a", "1"), Error), "refused")
        c.ok("CONFIG", "SET", "min-replicas-to-write", 0)
        eventually(lambda: c.call("SET", "a", "1") == b"OK", "allowed")


def test_limits_and_kills(make_server, play):
    primary = make_server(dict(NOW, **{"repl-ping-replica-period": "1"}))
    with primary.connect() as c:
        c.ok("CONFIG", "SET", "client-output-buffer-limit", "replica 20mb 0 0")
        p = play(primary, MODERN)
        p.c.send("REPLCONF", "ACK", p.full()[1])
        assert p.command() == [b"PING"]
        for _ in range(400):
            c.call("SET", "big", "x" * 100000)
        eventually(lambda: replication(primary)["connected_slaves"] == "0", "closed by its limit")
        p = play(primary, MODERN)
        p.c.send("REPLCONF", "ACK", p.full()[1])
        assert c.call("CLIENT", "KILL", "TYPE", "replica") == 1
        eventually(lambda: replication(primary)["connected_slaves"] == "0", "killed")
        p = play(primary, MODERN)
        p.c.send("REPLCONF", "ACK", p.full()[1])
        c.ok("CONFIG", "SET", "repl-timeout", 1)
        eventually(lambda: replication(primary)["connected_slaves"] == "0", "silent for too long")


def test_backlog_is_forgotten(make_server, play):
    primary = make_server(dict(NOW, **{"repl-backlog-ttl": "1"}))
    p = play(primary, MODERN)
    identity = p.full()[0]
    p.close()
    eventually(lambda: replication(primary)["repl_backlog_active"] == "0", "forgotten")
    assert replication(primary)["master_replid"] != identity


def test_several_take_the_same_transfer(make_server, play):
    """They come while the delay runs, one of them reads nothing and goes away; all others have it."""
    primary = make_server({"repl-diskless-sync-delay": "3600", "repl-diskless-sync-max-replicas": "4"})
    with primary.connect() as c:
        for i in range(300):
            c.ok("SET", "k%d" % i, "%x" % i * 30000)
        played = [play(primary, MODERN) for _ in range(4)]
        for p in played:
            p.c.send("PSYNC", "?", "-1")
        for p in played[1:]:
            assert p.line().startswith(b"+FULLRESYNC")
            p.mark = p.line()[5:]
        played[0].close()
        got = [p.bytes_all(p.mark) for p in played[1:]]
        assert got[0] == got[1] == got[2]
        assert primary.info("stats")["sync_full"] == "4"


@pytest.mark.parametrize("options", [PIPE, FILE], ids=["pipe", "file"])
def test_large_transfer(make_server, replica, options):
    """More than what is in flight at a time, of what cannot be compressed."""
    primary = make_server(options)
    noise = generator(1, "noise")
    with primary.connect() as c:
        for i in range(40):
            c.ok("SET", "k%d" % i, noise.randbytes(1 << 20))
        follow(replica, primary)
    check_equal(primary, replica)
    assert primary.info("stats")["sync_full"] == "1"


def test_refusals(make_server, play):
    primary = make_server(NOW)
    with primary.connect() as c:
        for words in (["REPLCONF", "a"], ["REPLCONF", "nonsense", "1"], ["PSYNC", "?"],
                      ["REPLCONF", "listening-port", "x"], ["REPLCONF", "ip-address", "x" * 300],
                      ["PSYNC", "?", "-1", "FAILOVER"]):
            assert isinstance(c.call(*words), Error), words
        assert c.call("REPLCONF", "capa", "what-comes") == b"OK"
        assert c.call("GET", "a") is None  # still a client
        assert c.call("CLIENT", "LIST", "TYPE", "replica") == b""
