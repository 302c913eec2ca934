"""Who waits for elements on several active replicas: each element goes to one of all of them."""

import threading
import time

import pytest

from lib.active import (PAIR_AND_MESH, Peer, check_equal, check_quiet, command, follow, make_node,  # noqa: F401 (fixtures)
                        mesh, origin_frame, stamp, write_frame)
from lib.bounds import eventually
from lib.replication import in_step, replication
from lib.resp import Closed, Error


def agree(nodes):
    eventually(lambda: all(replication(n)["active_members"] == str(len(nodes)) and
                           replication(n)["active_members_agree"] == "1" for n in nodes), "they agree", 60)


def waiting(make_node, count, **more):
    nodes = mesh(make_node, count, **more)
    agree(nodes)
    return nodes


class Workers:
    """Clients that wait in a loop, on all nodes; what each of them got."""

    def __init__(self, nodes, each, words, taken):
        self.words, self.taken, self.over = words, taken, threading.Event()
        self.got, self.lock, self.errors = [], threading.Lock(), []
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in nodes for _ in range(each)]
        for t in self.threads:
            t.start()

    def run(self, node):
        try:
            with node.connect(timeout_s=60) as c:
                while not self.over.is_set():
                    reply = c.call(*self.words)
                    if isinstance(reply, Error):
                        raise AssertionError(reply)
                    if reply is not None:
                        with self.lock:
                            self.got += self.taken(reply)
        except Closed:
            pass
        except Exception as error:  # the test shows it
            self.errors.append(error)

    def stop(self):
        self.over.set()
        for t in self.threads:
            t.join()
        assert not self.errors, self.errors


KINDS = {
    "BLPOP": (("BLPOP", "q", "0.3"), lambda r: [r[1]], ("RPUSH", "q")),
    "BRPOP": (("BRPOP", "other", "q", "0.3"), lambda r: [r[1]], ("LPUSH", "q")),
    "BLMPOP": (("BLMPOP", "0.3", "1", "q", "LEFT", "COUNT", "3"), lambda r: r[1], ("RPUSH", "q")),
    "BZPOPMIN": (("BZPOPMIN", "q", "0.3"), lambda r: [r[1]], ("ZADD", "q", "1")),
    "BZMPOP": (("BZMPOP", "0.3", "1", "q", "MAX", "COUNT", "2"), lambda r: [m[0] for m in r[1]], ("ZADD", "q", "1")),
}


@PAIR_AND_MESH
@pytest.mark.parametrize("kind", [kind if kind in ("BLPOP", "BZMPOP") else pytest.param(kind, marks=pytest.mark.long)
                                  for kind in sorted(KINDS)])
def test_each_element_once(make_node, kind, count):
    nodes = waiting(make_node, count)
    words, taken, push = KINDS[kind]
    workers = Workers(nodes, 2, words, taken)
    pushed = []
    try:
        connections = [n.connect() for n in nodes]
        for i in range(150):
            pushed.append(b"e%d" % i)
            connections[i % count].call(*push, pushed[-1])
            if i % 10 == 0:
                time.sleep(0.01)
        eventually(lambda: len(workers.got) >= len(pushed), "all are given", 60)
        eventually(lambda: all(c.call("EXISTS", "q") == 0 for c in connections), "nothing is left", 30)
        for c in connections:
            c.close()
    finally:
        workers.stop()
    assert sorted(workers.got) == sorted(pushed)
    check_equal(nodes, "afterwards")
    check_quiet(nodes)


@pytest.mark.long
def test_nodes_that_begin_together(make_node):
    """Clients wait, and jobs come, before any node takes part: nobody gives before those who begin with it agree."""
    nodes = mesh(make_node, 3)
    words, taken, put = KINDS["BLPOP"]
    workers = Workers(nodes, 1, words, taken)
    try:
        with nodes[0].connect() as c:
            for i in range(300):
                c.call(*put, "e%d" % i)
                time.sleep(0.02)  # some before anybody takes part, some behind it
        agree(nodes)
        eventually(lambda: len(workers.got) >= 300, "all was given", 30)
    finally:
        workers.stop()
    assert sorted(workers.got) == sorted(b"e%d" % i for i in range(300))
    check_equal(nodes, "afterwards")


def test_a_node_that_is_heard_for_the_first_time(make_node):
    """What it has written may be with a client of its own already, and what says so on its way: nobody here is given
    it before both nodes agree."""
    node, peer = make_node(), Peer()
    with node.connect() as c, node.connect() as waiter:
        try:
            agree([node])
            waiter.send("BLPOP", "q", 0)
            eventually(lambda: node.info()["blocked_clients"] == "1", "he waits")
            c.ok("REPLICAOF", "127.0.0.1", peer.port)
            link = peer.link()
            link.send(origin_frame(1) + write_frame(1, 1, stamp(), command("KEYDB.VIEW", 77, 1)) +
                      write_frame(1, 2, stamp(counter=1), command("RPUSH", "q", "e")))
            eventually(lambda: c.call("LLEN", "q") == 1, "the element is here")
            assert waiter.nothing_comes(0.3)
        finally:
            peer.close()
        assert waiter.read() == [b"q", b"e"]  # it is away


def test_moves(make_node):
    nodes = waiting(make_node, 2)
    workers = Workers(nodes, 2, ("BLMOVE", "q", "done", "LEFT", "RIGHT", "0.3"), lambda r: [r])
    with nodes[0].connect() as a, nodes[1].connect() as b:
        try:
            for i in range(100):
                (a, b)[i % 2].call("RPUSH", "q", "e%d" % i)
            # Whose time is over when his element is moved has no reply: it is not put back.
            eventually(lambda: a.call("LLEN", "done") >= 100, "all are moved", 60)
        finally:
            workers.stop()
        check_equal(nodes, "afterwards")
        done = a.call("LRANGE", "done", 0, -1)
        assert sorted(done) == sorted(b"e%d" % i for i in range(100))
        assert workers.got and len(set(workers.got)) == len(workers.got) and set(workers.got) <= set(done)


def test_groups(make_node):
    """Each entry is delivered to one consumer of a group, wherever it was added and wherever he reads."""
    nodes = waiting(make_node, 3)
    with nodes[0].connect() as c:
        c.ok("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    check_equal(nodes, "the group")
    got, lock, over, errors = [], threading.Lock(), threading.Event(), []

    def consume(node, name):
        try:
            with node.connect(timeout_s=60) as c:
                while not over.is_set():
                    reply = c.call("XREADGROUP", "GROUP", "g", name, "COUNT", 3, "BLOCK", 200, "STREAMS", "s", ">")
                    for entry in reply[0][1] if reply else ():
                        c.call("XACK", "s", "g", entry[0])
                        with lock:
                            got.append(entry[0])
        except Exception as error:  # the test shows it
            errors.append(error)
    threads = [threading.Thread(target=consume, args=(n, "c%d" % i)) for i, n in enumerate(nodes)]
    for t in threads:
        t.start()
    added = []
    try:
        connections = [n.connect() for n in nodes]
        for i in range(150):
            added.append(connections[i % 3].call("XADD", "s", "*", "n", i))
        eventually(lambda: errors or len(got) >= len(added), "all are delivered", 60)
        for c in connections:
            c.close()
    finally:
        over.set()
        for t in threads:
            t.join()
    assert not errors, errors
    assert sorted(got) == sorted(added)
    check_equal(nodes, "afterwards")


def read_one(c):
    reply = c.call("XREADGROUP", "GROUP", "g", "me", "COUNT", 3, "BLOCK", 10, "NOACK", "STREAMS", "q", ">")
    return [fields[1] for _, fields in reply[0][1]] if reply else []


def pop_one(c):
    reply = c.call("BLPOP", "q", "0.01")
    return reply[1:] if reply else []


def test_logs_and_replicas_know_what_was_put_back_early(make_node, make_server):
    """What was given to a client that had gone, before the entry itself has come from another node."""
    node, follower = make_node(files=("appendonlydir",), appendonly="yes"), make_server({})

    def pending(server):
        with server.connect() as c:
            return [e[:2] for e in c.call("XPENDING", "x", "g", "-", "+", 10)]
    with follower.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", node.port)
    with node.connect() as c:
        c.ok("XGROUP", "CREATE", "x", "g", "0", "MKSTREAM")
        eventually(lambda: replication(node)["connected_slaves"] == "1" and in_step(node, follower), "linked", 60)
        c.call("KEYDB.XPEND", "x", "g", "5-1", 7, 1, "c", "5-1")
        assert pending(node) == [[b"5-1", b"c"]]
        assert c.call("XCLAIM", "x", "g", "(undelivered)", 0, "5-1", "TIME", 0, "RETRYCOUNT", 0, "JUSTID") == [b"5-1"]
        eventually(lambda: pending(node) == pending(follower) == [[b"5-1", b"(undelivered)"]], "put back", 30)
    node.stop()
    node.start()
    assert pending(node) == [[b"5-1", b"(undelivered)"]]
    with node.connect() as c:
        assert c.call("XREADGROUP", "GROUP", "g", "me", "STREAMS", "x", ">") is None
        c.call("KEYDB.XINSERT", "x", "5-1", "f", "late")
        assert c.call("XREADGROUP", "GROUP", "g", "me", "STREAMS", "x", ">") == [[b"x", [[b"5-1", [b"f", b"late"]]]]]


@pytest.mark.parametrize("take,put", [(pop_one, ("RPUSH", "q")), (read_one, ("XADD", "q", "*", "f"))],
                         ids=("BLPOP", "XREADGROUP"))
def test_who_waits_no_more_loses_nothing(make_node, take, put):
    """Clients that time out, or go, while something is on its way to them."""
    nodes = waiting(make_node, 2)
    got, lock, over = [], threading.Lock(), threading.Event()
    with nodes[0].connect() as c:
        if put[0] == "XADD":
            c.ok("XGROUP", "CREATE", "q", "g", "0", "MKSTREAM")
            check_equal(nodes, "the group")

    def come_and_go(node):
        while not over.is_set():
            with node.connect() as c:
                mine = take(c)
                with lock:
                    got.extend(mine)
    threads = [threading.Thread(target=come_and_go, args=(n,)) for n in nodes for _ in range(2)]
    for t in threads:
        t.start()
    with nodes[0].connect() as a, nodes[1].connect() as b:
        for i in range(200):
            (a, b)[i % 2].call(*put, "e%d" % i)
        try:
            eventually(lambda: len(got) >= 200, "all are given", 60)
        finally:
            over.set()
            for t in threads:
                t.join()
        assert sorted(got) == sorted(b"e%d" % i for i in range(200))
        check_equal(nodes, "afterwards")
        if put[0] == "RPUSH":
            assert a.call("EXISTS", "q") == 0


BACK = {
    "list": (["RPUSH", "q", "a", "b"], ["LRANGE", "q", 0, -1], [b"a", b"b"]),
    "sorted set": (["ZADD", "q", "1.5", "m"], ["ZRANGE", "q", 0, -1, "WITHSCORES"], [b"m", b"1.5"]),
    "group": (["XCLAIM", "s", "g", "(undelivered)", 0, "1-1", "TIME", 0, "RETRYCOUNT", 0, "JUSTID"],
              ["XREADGROUP", "GROUP", "g", "other", "STREAMS", "s", ">"], [[b"s", [[b"1-1", [b"f", b"v"]]]]]),
}


@pytest.mark.parametrize("kind", sorted(BACK))
def test_a_node_that_is_killed_when_it_has_put_back(make_node, kind):
    """Of what it was given for a client that had gone: who has heard of the one has done the other, and so has its log."""
    back, look, found = BACK[kind]
    node, peer = make_node(files=["appendonlydir"], appendonly="yes"), Peer()
    try:
        with node.connect() as c:
            c.ok("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
            c.call("XADD", "s", "1-1", "f", "v")
            assert c.call("XREADGROUP", "GROUP", "g", "gone", "STREAMS", "s", ">")
            c.ok("REPLICAOF", "127.0.0.1", peer.port)
            link = peer.link()
            give = command("KEYDB.GIVE", replication(node)["active_node_id"], 5, 0, "*0\r\n", len(back), *back)
            link.send(origin_frame(1) + write_frame(1, 1, stamp(), give) +
                      write_frame(1, 2, stamp(counter=1), command("SET", "behind", "it")))
            eventually(lambda: c.call("GET", "behind") == b"it", "both have come", 30, 0.001)
            c.ok("SET", "seen", "by a client")  # the log has what is before it
        node.kill_all()
    finally:
        peer.close()
    node.start()
    with node.connect() as c:
        assert c.call("GET", "behind") == b"it"
        assert c.call(*look) == found


def test_a_home_that_ends(make_node):
    """Whoever waited for it waits for another one: nothing stays undelivered."""
    nodes = waiting(make_node, 3)
    waiters = [n.connect(timeout_s=60) for n in nodes[:2] for _ in range(2)]
    for w in waiters:
        w.send("BLPOP", "a", "b", "c", "d", "e", "f", 0)
    time.sleep(0.3)
    nodes[2].kill_all()
    with nodes[0].connect() as c:
        for key in "abcd":
            c.call("RPUSH", key, "of " + key)
    got = sorted(w.read()[1] for w in waiters)
    assert got == [b"of a", b"of b", b"of c", b"of d"]
    for w in waiters:
        w.close()
    check_equal(nodes[:2], "afterwards")
    nodes[2].start()  # on another port
    for n in nodes:
        with n.connect() as c:
            c.ok("REPLICAOF", "NO", "ONE")
        follow(n, *[p for p in nodes if p is not n])
    agree(nodes)
    check_equal(nodes, "all")


@pytest.mark.long
def test_each_side_of_a_cut_gives_what_it_has(make_node):
    nodes = a, b = waiting(make_node, 2)
    with a.connect(timeout_s=60) as ca, b.connect(timeout_s=60) as cb, a.connect() as wa, b.connect() as wb:
        for n in nodes:
            with n.connect() as c:
                c.ok("REPLICAOF", "NO", "ONE")
        ca.send("BLPOP", "q", 0)
        cb.send("BLPOP", "q", 0)
        wa.call("RPUSH", "q", "of a")
        wb.call("RPUSH", "q", "of b")
        assert ca.read()[1] == b"of a" and cb.read()[1] == b"of b"
        eventually(lambda: all(replication(n)["active_members"] == "1" for n in nodes), "both know of the cut", 30)
        follow(a, b)
        follow(b, a)
        agree(nodes)
        check_equal(nodes, "after the cut")
        assert wa.call("EXISTS", "q") == 0
        # As before.
        ca.send("BLPOP", "q", 0)
        cb.send("BLPOP", "q", 0)
        wa.call("RPUSH", "q", 1, 2)
        assert sorted([ca.read()[1], cb.read()[1]]) == [b"1", b"2"]
    check_quiet(nodes)


def test_wrong_kinds_and_transactions(make_node):
    """What does not wait is served where it is; errors are as ever."""
    a, b = nodes = waiting(make_node, 2)
    with a.connect() as ca, b.connect() as cb:
        ca.ok("SET", "string", "1")
        ca.call("RPUSH", "q", "1", "2", "3", "4")
        check_equal(nodes, "there")
        for c in (ca, cb):
            assert c.error("BLPOP", "string", 1).startswith(b"WRONGTYPE")
            c.ok("MULTI")
            c.call("BLPOP", "q", 1)
            c.call("BLPOP", "none", 1)
            assert c.call("EXEC")[1] is None
            check_equal(nodes, "taken")
        assert ca.call("EVAL", "return redis.call('BLPOP', 'q', 1)", 0)[1] == b"3"
        check_equal(nodes, "taken")
        assert cb.call("BLPOP", "q", 0)[1] == b"4"
        check_equal(nodes, "all taken")
        for c in (ca, cb):
            assert c.call("BLPOP", "q", "0.05") is None
            assert c.error("XREADGROUP", "GROUP", "g", "c", "BLOCK", 10, "STREAMS", "s", ">").startswith(b"NOGROUP")


@pytest.mark.long
def test_ends_while_clients_wait(make_node):
    """Of the node itself and of others: it ends in order (the fixture looks)."""
    nodes = waiting(make_node, 2)
    clients = [n.connect() for n in nodes for _ in range(4)]
    for i, c in enumerate(clients):
        c.send("BLPOP", "q%d" % i, "r%d" % i, 0)
    eventually(lambda: all(int(replication(n)["active_waiting_guests"]) > 0 for n in nodes), "they are guests", 30)
    for n in nodes:
        n.stop()


def test_logs_and_replicas_know_what_is_undelivered(make_node, make_server, make_oracle):
    """Of a node: what came in below a group's position is pending at a consumer of its own there, too."""
    node = make_node(files=("appendonlydir",), appendonly="yes")
    followers = [make_server({}), make_oracle()]
    for f in followers:
        with f.connect() as c:
            c.ok("REPLICAOF", "127.0.0.1", node.port)

    def pending(server):
        with server.connect() as c:
            return c.call("XPENDING", "x", "g", "-", "+", 10)

    def have(what):
        eventually(lambda: all([e[:2] for e in pending(f)] == what for f in followers), what, 30)
    with node.connect() as c:
        c.ok("XGROUP", "CREATE", "x", "g", "9999999999999-0", "MKSTREAM")
        eventually(lambda: replication(node)["connected_slaves"] == "2" and in_step(node, *followers), "linked", 60)
        one, two = c.call("XADD", "x", "*", "f", "1"), c.call("XADD", "x", "MAXLEN", 5, "*", "f", "2")
        have([[one, b"(undelivered)"], [two, b"(undelivered)"]])
    node.stop()
    node.start()
    assert [e[:2] for e in pending(node)] == [[one, b"(undelivered)"], [two, b"(undelivered)"]]
    for f in followers:
        with f.connect() as c:
            c.ok("REPLICAOF", "127.0.0.1", node.port)
    with node.connect() as c:
        eventually(lambda: replication(node)["connected_slaves"] == "2" and in_step(node, *followers), "linked", 60)
        assert c.call("XREADGROUP", "GROUP", "g", "me", "STREAMS", "x", ">") == [
            [b"x", [[one, [b"f", b"1"]], [two, [b"f", b"2"]]]]]
        have([[one, b"me"], [two, b"me"]])
        assert [dict(zip(i[::2], i[1::2]))[b"name"] for i in c.call("XINFO", "CONSUMERS", "x", "g")] == [b"me"]


@pytest.mark.parametrize("take,put", [(pop_one, ("RPUSH", "q")), (read_one, ("XADD", "q", "*", "f"))],
                         ids=("BLPOP", "XREADGROUP"))
def test_a_log_of_who_was_given_something(make_node, take, put):
    """Nodes whose clients another node has served begin again from their logs, with nothing missing in them."""
    nodes = waiting(make_node, 2, appendonly="yes", files=("appendonlydir",))
    with nodes[0].connect() as a, nodes[1].connect() as b:
        if put[0] == "XADD":
            a.ok("XGROUP", "CREATE", "q", "g", "0", "MKSTREAM")
            check_equal(nodes, "the group")
        for i in range(20):
            for c in (a, b):
                c.send(*(("BLPOP", "q", 0) if put[0] == "RPUSH" else
                         ("XREADGROUP", "GROUP", "g", "me", "COUNT", 1, "BLOCK", 0, "STREAMS", "q", ">")))
            for c in nodes:
                with c.connect() as other:
                    other.call(*put, "e%d" % i)
            for c in (a, b):
                assert c.read()
    check_equal(nodes, "given")
    for node in nodes:
        node.kill_all()
        node.start()
    for node in nodes:
        follow(node, *[p for p in nodes if p is not node])
    check_equal(nodes, "from their logs")
