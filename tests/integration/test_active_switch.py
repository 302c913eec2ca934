"""CONFIG SET active-replica and multi-master at run time: a primary, or what was a replica, becomes an active replica,
and one is none any more; what was written meanwhile, files, links, clients that wait, replicas behind."""

import pytest

from lib.active import AT_ONCE, apart, call, check_equal, check_quiet, follow, is_up, make_node, together
from lib.bounds import eventually
from lib.replication import everything, in_step, replication
from lib.resp import Error
from lib.server import free_port

__all__ = ["make_node"]  # fixtures

FILES = ["active-node", "dump.rdb", "appendonlydir"]
KEPT = {"rdb": {"save": ["3600", "1000000"]}, "aof": {"appendonly": "yes"},
        "commands": {"appendonly": "yes", "aof-use-rdb-preamble": "no"}}
ON = ("CONFIG", "SET", "active-replica", "yes", "multi-master", "yes")
OFF = ("CONFIG", "SET", "active-replica", "no", "multi-master", "no")


def switch(node, words):
    assert call(node, *words) == b"OK"


def fill(node, value):
    with node.connect() as c:
        c.ok("SET", "k", value)
        c.call("HSET", "h", "f", value)
        c.call("RPUSH", "l", value)
        c.ok("SET", "e", value, "PX", 10 ** 9)


def test_a_primary_and_its_replica_become_a_pair(make_server):
    """Their data are the same: no state of a key is told, and a write made between is kept."""
    a, b = make_server(AT_ONCE, files=FILES), make_server(AT_ONCE, files=FILES)
    with a.connect() as ca, b.connect() as cb:
        for i in range(200):
            ca.ok("SET", "k%d" % i, "v")
        fill(a, "old")
        cb.ok("REPLICAOF", "127.0.0.1", a.port)
        eventually(lambda: cb.call("DBSIZE") == 204, "replicated", 30)
        switch(a, ON)
        assert b"REPLICAOF NO ONE first" in cb.call(*ON)
        ca.ok("SET", "k1", "before")
        cb.ok("REPLICAOF", "NO", "ONE")
        ca.ok("SET", "between", "a")
        ca.ok("SET", "k2", "between")
        switch(b, ON)
        assert replication(a)["role"] == replication(b)["role"] == "active-replica"
        together(a, b)
        check_equal([a, b], "a pair")
        check_quiet([a, b])
        assert cb.call("GET", "between") == b"a" and cb.call("MGET", "k1", "k2") == [b"before", b"between"]
        assert int(replication(a)["active_states"]) + int(replication(b)["active_states"]) <= 6
        ca.call("INCR", "n")
        cb.call("INCR", "n")
        eventually(lambda: ca.call("GET", "n") == cb.call("GET", "n") == b"2", "both write")
        assert ca.call("OBJECT", "LASTMODIFIED", "n") < 300


def test_a_pair_becomes_a_primary_and_its_replica(make_node):
    a, b = make_node(), make_node()
    together(a, b)
    fill(a, "v")
    check_equal([a, b], "a pair")
    with a.connect() as ca, b.connect() as cb:
        assert b"REPLICAOF NO ONE first" in ca.call(*OFF)
        apart(a, b)
        switch(a, OFF)
        switch(b, OFF)
        assert replication(a)["role"] == replication(b)["role"] == "master"
        assert ca.call("ROLE")[0] == b"master" and "active_node_id" not in replication(a)
        cb.ok("REPLICAOF", "127.0.0.1", a.port)
        ca.ok("SET", "k", "w")
        eventually(lambda: in_step(a, b), "in step", 30)
        assert cb.call("GET", "k") == b"w" and isinstance(cb.call("SET", "k", "x"), Error)
        assert isinstance(ca.call("OBJECT", "LASTMODIFIED", "k"), Error)


@pytest.mark.parametrize("kept", sorted(KEPT))
def test_there_and_back(make_node, kept):
    """What was made while one was none is new to the others; what it deleted is back, and of what both have theirs
    stands, for nobody knows when it was written here. A start from its files, in either life, finds what was there."""
    a, b = make_node(files=FILES, port=str(free_port()), **KEPT[kept]), make_node()
    together(a, b)
    fill(a, "v")
    fill(b, "w")
    check_equal([a, b], "a pair")
    stood = call(b, "GET", "k")
    apart(a, b)
    switch(a, OFF)
    with a.connect() as c:
        c.ok("SET", "k", "alone")
        c.call("RPUSH", "l", "alone")
        c.call("DEL", "h")
        c.ok("SET", "new", "alone")
    before = everything(a)
    a.options.update({"active-replica": "no", "multi-master": "no"})
    a.stop()
    a.start()
    assert everything(a) == before
    switch(a, ON)
    a.options.update({"active-replica": "yes", "multi-master": "yes"})
    call(a, "SET", "on", "again")
    before = everything(a)
    a.stop()
    a.start()
    assert everything(a) == before
    together(a, b)
    check_equal([a, b], "a pair again")
    check_quiet([a, b])
    with b.connect() as c:
        assert c.call("GET", "k") == stood and c.call("GET", "new") == b"alone" and c.call("GET", "on") == b"again"
        assert c.call("EXISTS", "h") == 1
        c.call("DEL", "h", "k")
    eventually(lambda: call(a, "EXISTS", "h", "k") == 0, "deleted everywhere")


def test_without_a_stop(make_node):
    """Off and on within one process: nothing of the first life is believed in the second one."""
    a, b = make_node(), make_node()
    together(a, b)
    fill(a, "v")
    call(a, "SET", "short", "v", "PX", 300)
    check_equal([a, b], "a pair")
    for life in range(3):
        apart(a, b)
        switch(a, OFF)
        call(a, "SET", "life%d" % life, "off")
        call(b, "SET", "k", life)
        switch(a, ON)
        call(a, "APPEND", "life%d" % life, "on")
        together(a, b)
        check_equal([a, b], "life %d" % life)
        assert call(b, "GET", "life%d" % life) == b"offon" and call(a, "GET", "k") == b"%d" % life
    check_quiet([a, b])
    eventually(lambda: call(a, "EXISTS", "short") == call(b, "EXISTS", "short") == 0, "its time is over", 20)


def test_who_pulls_is_sent_away_and_comes_again(make_node):
    """Whoever has it in his `replicaof` need not be told."""
    a, b = make_node(), make_node()
    together(a, b)
    fill(a, "v")
    check_equal([a, b], "a pair")
    call(a, "REPLICAOF", "NO", "ONE")
    switch(a, OFF)
    eventually(lambda: replication(b)["master_link_status"] == "down", "sent away", 20)
    call(a, "SET", "alone", "a")
    call(b, "SET", "elsewhere", "b")
    eventually(lambda: "no active replica" in b.output(), "told why", 20)
    switch(a, ON)
    follow(a, b)
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 30)
    check_equal([a, b], "a pair again")
    assert call(b, "GET", "alone") == b"a" and call(a, "GET", "elsewhere") == b"b"
    check_quiet([a, b])


def test_clients_that_wait(make_node):
    """Who waits goes on waiting, and is served by whatever the server is then."""
    a, b = make_node(), make_node()
    together(a, b)
    eventually(lambda: replication(a)["active_members_agree"] == replication(b)["active_members_agree"] == "1" and
               replication(a)["active_members"] == "2", "views", 30)
    with a.connect() as one, a.connect() as two:
        one.send("BLPOP", "q", 0)
        two.send("BLPOP", "r", 0)
        eventually(lambda: a.info("clients")["blocked_clients"] == "2", "they wait")
        apart(a, b)
        switch(a, OFF)
        call(a, "RPUSH", "q", "x")
        assert one.read() == [b"q", b"x"]
        switch(a, ON)
        call(a, "RPUSH", "r", "y")
        assert two.read() == [b"r", b"y"]
        one.send("BLPOP", "s", "0.2")
        assert one.read() is None


def test_who_waits_is_served_from_elsewhere_once_it_is_a_node(make_server, make_node):
    """Whoever of the two is home: a call that waited before there were others is one of all that wait."""
    a, b = make_server(AT_ONCE, files=FILES), make_node()
    waiting = [a.connect() for _ in range(6)]
    for i, c in enumerate(waiting):
        c.send("BLPOP", "q%d" % i, 0)
    eventually(lambda: a.info("clients")["blocked_clients"] == "6", "they wait")
    switch(a, ON)
    together(a, b)
    eventually(lambda: all(replication(n)["active_members_agree"] == "1" and replication(n)["active_members"] == "2"
                           for n in (a, b)), "views", 30)
    for i, c in enumerate(waiting):
        call(b, "RPUSH", "q%d" % i, "x")
        assert c.read() == [b"q%d" % i, b"x"]
        c.close()
    check_equal([a, b], "all are taken")


def test_a_replica_behind_goes_on(make_server):
    """A plain replica of what becomes an active replica, and is none any more."""
    a, behind = make_server(AT_ONCE, files=FILES), make_server(AT_ONCE, files=FILES)
    call(behind, "REPLICAOF", "127.0.0.1", a.port)
    fill(a, "v")
    eventually(lambda: in_step(a, behind), "in step", 30)
    for words in (ON, OFF, ON):
        switch(a, words)
        call(a, "INCR", "n")
        eventually(lambda: in_step(a, behind), "in step", 30)
    assert call(behind, "GET", "n") == b"3"
    assert replication(a)["connected_slaves"] == "1" and behind.output().count("MASTER <-> REPLICA sync") <= 2


def test_refusals(make_server, make_node):
    server = make_server(AT_ONCE, files=FILES)
    with server.connect() as c:
        assert b"multi-master needs active-replica yes" in c.call("CONFIG", "SET", "multi-master", "yes")
        assert call(server, "CONFIG", "GET", "multi-master") == [b"multi-master", b"no"]
        assert isinstance(c.call("CONFIG", "SET", "active-replica", "yes", "maxmemory", "nonsense"), Error)
        assert isinstance(c.call("CONFIG", "SET", "active-replica", "yes", "replica-priority", "-1"), Error)
        assert replication(server)["role"] == "master"
        c.ok("MULTI")
        c.call(*ON)
        assert isinstance(c.call("EXEC")[0], Error)
        assert replication(server)["role"] == "master"
        switch(server, ON)
        switch(server, ON)
        assert b"multi-master needs active-replica yes" in c.call("CONFIG", "SET", "active-replica", "no")
        c.ok("CONFIG", "SET", "multi-master", "no")
    peers = [make_node(), make_node()]
    follow(server, peers[0])
    follow(server, peers[1])  # without multi-master it is the only one
    assert call(server, "ROLE")[2] == peers[1].port
    switch(server, ("CONFIG", "SET", "multi-master", "yes"))
    follow(server, peers[0])
    assert b"REPLICAOF REMOVE" in call(server, "CONFIG", "SET", "multi-master", "no")
    call(server, "REPLICAOF", "REMOVE", "127.0.0.1", peers[0].port)
    switch(server, ("CONFIG", "SET", "multi-master", "no"))
    apart(server)
    switch(server, OFF)


def test_config_rewrite(make_server, make_node):
    """What it is stands in the file, and the next start is that."""
    peer = make_node()
    server = make_server(config="save \"\"\n", files=FILES)
    switch(server, ON)
    follow(server, peer)
    call(server, "CONFIG", "REWRITE")
    text = server.read("server.conf")
    for line in ("active-replica yes\n", "multi-master yes\n", "replicaof 127.0.0.1 %d\n" % peer.port):
        assert line in text
    server.stop()
    server.config = text
    server.start()
    eventually(lambda: replication(server).get("master_link_status") == "up", "link", 30)
    apart(server)
    switch(server, OFF)
    call(server, "CONFIG", "REWRITE")
    text = server.read("server.conf")
    assert "active-replica yes" not in text and "replicaof 127" not in text


def test_more_or_fewer_that_must_be_there(make_node):
    """replica-serve-stale-data no: clients read while all whom it pulls from are there, or replica-quorum of them."""
    a, b, c = make_node(), make_node(port=str(free_port())), make_node()
    together(a, b, c)
    call(a, "SET", "k", "v")
    with a.connect() as ca:
        ca.ok("CONFIG", "SET", "replica-serve-stale-data", "no")
        assert ca.call("GET", "k") == b"v"
        b.kill_all()
        eventually(lambda: b"MASTERDOWN" in (ca.call("GET", "k") or b""), "one is missing", 30)
        assert replication(a)["master_global_link_status"] == "down"
        ca.ok("CONFIG", "SET", "replica-quorum", 1)
        eventually(lambda: ca.call("GET", "k") == b"v", "one is enough", 30)
        assert replication(a)["master_global_link_status"] == "up"
        ca.ok("CONFIG", "SET", "replica-quorum", 2)
        eventually(lambda: b"MASTERDOWN" in (ca.call("GET", "k") or b""), "two are not there", 30)
        b.options["replica-serve-stale-data"] = "no"  # both wait for one another, and come together
        b.start()
        follow(b, a, c)
        eventually(lambda: ca.call("GET", "k") == b"v", "two are there", 30)
        ca.ok("CONFIG", "SET", "replica-quorum", 9)
        eventually(lambda: b"MASTERDOWN" in (ca.call("GET", "k") or b""), "never", 30)
        ca.ok("CONFIG", "SET", "replica-serve-stale-data", "yes")
        eventually(lambda: ca.call("GET", "k") == b"v", "whatever is there", 30)
