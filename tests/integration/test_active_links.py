"""Links of active replicas: by TLS, as an ACL user with few rights, to a server that is no active replica, to one that
has another address by and by."""

import pytest

from lib.active import call, check_equal, follow, is_up, make_node
from lib.bounds import eventually
from lib.links import Links
from lib.replication import replication
from lib.server import free_port
from lib.tls import make_pki

__all__ = ["make_node"]  # fixtures


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return make_pki(str(tmp_path_factory.mktemp("pki")))


def both_write(a, b):
    with a.connect() as ca, b.connect() as cb:
        ca.call("INCR", "n")
        cb.call("INCR", "n")
        eventually(lambda: ca.call("GET", "n") == cb.call("GET", "n") == b"2", "both write", 30)
    check_equal([a, b], "a pair")


def test_by_tls(make_node, pki):
    """The first of them has a data set, which comes by the link as well."""
    ports = [free_port(), free_port()]
    a, b = [make_node(**pki.options(tls_port=str(port), tls_replication="yes")) for port in ports]
    with a.connect() as ca, b.connect() as cb:
        ca.ok("SET", "old", "x" * 100000)
        ca.ok("REPLICAOF", "127.0.0.1", ports[1])
        cb.ok("REPLICAOF", "127.0.0.1", ports[0])
        eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 30)
        eventually(lambda: cb.call("STRLEN", "old") == 100000, "the data set", 30)
    both_write(a, b)


def test_as_a_user_with_few_rights(make_node):
    """What a link needs: PING, REPLCONF and KEYDB.PULL."""
    user = "user peer on >secret -@all +ping +replconf +keydb.pull\n"
    a, b = [make_node(masteruser="peer", masterauth="secret", user=user.split()[1:]) for _ in range(2)]
    follow(a, b)
    follow(b, a)
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 30)
    both_write(a, b)
    with a.connect() as c:
        assert c.call("ACL", "GETUSER", "peer")
        c.ok("ACL", "SETUSER", "peer", ">other", "resetpass", ">other")
        assert c.call("CLIENT", "KILL", "TYPE", "replica") >= 0
    eventually(lambda: replication(b)["master_link_status"] == "down", "no more", 30)
    with b.connect() as c:
        c.ok("CONFIG", "SET", "masterauth", "other")
    eventually(lambda: is_up(b, 1), "with the new one", 30)


def test_who_is_no_active_replica_says_so(make_node, make_server):
    node, plain = make_node(), make_server()
    follow(node, plain)
    eventually(lambda: "no active replica" in node.output(), "said", 30)
    with node.connect() as c:
        assert replication(node)["master_link_status"] == "down"
        c.ok("SET", "k", "v")
        c.ok("REPLICAOF", "NO", "ONE")
    with plain.connect() as c:
        assert c.call("DBSIZE") == 0


def test_a_peer_at_another_address(make_node):
    """It has the same data and id at another port: whoever is told that goes on where it was."""
    a, b = make_node(), make_node(port=str(free_port()), files=["dump.rdb"], save=["3600", "1000000"])
    follow(a, b)
    follow(b, a)
    both_write(a, b)
    origins = replication(a)["active_origins"]
    old = b.address()[1]
    b.stop()
    b.options["port"] = str(free_port())
    b.start()
    with a.connect() as c:
        c.call("INCR", "n")
        c.ok("REPLICAOF", "127.0.0.1", b.address()[1])
        c.ok("REPLICAOF", "REMOVE", "127.0.0.1", old)
    follow(b, a)
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 30)
    with b.connect() as c:
        eventually(lambda: c.call("GET", "n") == b"3", "it goes on", 30)
        c.call("INCR", "n")
    check_equal([a, b], "at the new one")
    assert int(replication(a)["active_origins"]) == int(origins) + 1  # a new life of the same node


def test_who_does_not_forward(make_node):
    """multi-master-no-forward is of the one that has it: what it gets stays there until it forwards; what it writes goes
    to all. Of a chain's middle, then of all three of a mesh."""
    a, b, c = [make_node() for _ in range(3)]
    for one, other in ((a, b), (b, a), (c, b), (b, c)):
        follow(one, other)
    eventually(lambda: is_up(a, 1) and is_up(b, 2) and is_up(c, 1), "links", 30)
    with a.connect() as ca, b.connect() as cb, c.connect() as cc:
        cb.ok("CONFIG", "SET", "multi-master-no-forward", "yes")
        for i in range(3):
            ca.ok("SET", "a:%d" % i, "1")
            eventually(lambda i=i: cb.call("GET", "a:%d" % i) == b"1", "in the middle", 30)
            cb.ok("SET", "b:%d" % i, "1")  # later than the other one, so it would come behind it
            eventually(lambda i=i: cc.call("GET", "b:%d" % i) == b"1", "at the end", 30)
        assert cc.call("KEYS", "a:*") == []
        cb.ok("CONFIG", "SET", "multi-master-no-forward", "no")
        eventually(lambda: len(cc.call("KEYS", "a:*")) == 3, "what was left out", 30)
        check_equal([a, b, c], "a chain")
        follow(a, c)
        follow(c, a)
        eventually(lambda: is_up(a, 2) and is_up(c, 2), "a mesh", 30)
        for i, conn in enumerate((ca, cb, cc)):
            conn.ok("CONFIG", "SET", "multi-master-no-forward", "yes")
            conn.call("INCRBY", "n", 10 ** i)
    check_equal([a, b, c], "a mesh")
    assert call(c, "GET", "n") == b"111"


def test_what_a_peer_has_read_is_let_go_of(make_node):
    """What it has not read yet is kept beyond repl-backlog-size; when it has, that goes without another write."""
    a, b = [make_node(**{"repl-backlog-size": "1mb", "client-output-buffer-limit": ["replica 0 0 0"]}) for _ in range(2)]
    follow(a, b)
    follow(b, a)
    eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 30)

    def kept():
        return int(replication(a)["active_log_bytes"])
    with a.connect() as ca, b.connect() as cb:
        with b.standing_still():
            ca.pipeline([("SET", "k", "x" * 1000)] * 20000)
            assert kept() > 4 << 20
        eventually(lambda: kept() <= 1 << 20, "gone")
        eventually(lambda: cb.call("GET", "k") == b"x" * 1000, "there")
        ca.ok("SET", "k", "y")
        eventually(lambda: cb.call("GET", "k") == b"y", "goes on")


def test_a_hub_that_begins_empty(make_node):
    """Who is linked to it before it knows of the others gets their writes all the same."""
    links, nodes = Links(), []
    try:
        for i, masters in enumerate([(1, 2), (0,), (0,)]):
            ports = [links.add((i, m), lambda m=m: nodes[m].address()) for m in masters]
            nodes.append(make_node(replicaof=["127.0.0.1", str(ports[0])]))
            for port in ports[1:]:
                call(nodes[i], "REPLICAOF", "127.0.0.1", port)
        hub, a, b = nodes
        eventually(lambda: is_up(a, 1) and is_up(b, 1) and is_up(hub, 2), "links", 30)
        call(a, "INCR", "n")
        check_equal(nodes, "before")
        hub.kill_all()
        links[0, 1].cut()
        links[0, 2].cut()
        hub.start()
        eventually(lambda: replication(b)["master_link_status"] == "up", "the hub is there", 30)
        assert call(hub, "GET", "n") is None
        links[0, 1].mend()
        eventually(lambda: call(hub, "GET", "n") == b"1", "the hub has it again", 30)
        call(a, "INCR", "n")
        eventually(lambda: call(b, "GET", "n") == b"2", "by the hub", 30)
    finally:
        links.close()
