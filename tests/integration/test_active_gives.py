"""What a node gave to another one's client, and could not say before it ended: given back when it comes back with its files,
and never what has arrived."""

import os

import pytest

from lib.active import call, check_equal, check_quiet, follow, is_up, make_node  # noqa: F401 (fixture)
from lib.bounds import eventually
from lib.links import Links
from lib.replication import replication
from lib.resp import Error

pytestmark = pytest.mark.any_threads

KEYS = ["q%d" % i for i in range(12)]  # each node is home of some
LOG = {"appendonly": "yes", "appendfsync": "always"}


def agree(nodes):
    eventually(lambda: all(replication(n)["active_members"] == str(len(nodes)) and
                           replication(n)["active_members_agree"] == "1" for n in nodes), "they agree", 60)


def is_taken(c, key, group):
    return c.call("XPENDING", key, "g")[0] == 1 if group else c.call("EXISTS", key) == 0


KINDS = {
    "BLPOP": (["BLPOP", *KEYS, 0], ["RPUSH"], lambda r: [(r[0], r[1])]),
    "BZPOPMAX": (["BZPOPMAX", *KEYS, 0], ["ZADD", 7], lambda r: [(r[0], r[1])]),
    "BLMPOP": (["BLMPOP", 0, len(KEYS), *KEYS, "RIGHT", "COUNT", 3], ["RPUSH"], lambda r: [(r[0], r[1][0])]),
    "XREADGROUP": (["XREADGROUP", "GROUP", "g", "me", "BLOCK", 0, "STREAMS", *KEYS, *[">"] * len(KEYS)],
                   ["XADD", "*", "field"], lambda r: [(key, entries[0][1][1]) for key, entries in r]),
}


class Pair:
    """a gives to a client of b, by links that can be held."""

    def __init__(self, make_node, kind, a_keeps, b_keeps):
        self.words, self.put, self.got = KINDS[kind]
        self.group = kind == "XREADGROUP"
        self.a, self.b = make_node(files=["appendonlydir", "dump.rdb"], **a_keeps), make_node(files=["dump.rdb"], **b_keeps)
        self.links = Links()
        self.into_b = self.links.add("b from a", self.a.address)
        self.into_a = self.links.add("a from b", self.b.address)
        self.link()
        if self.group:
            with self.a.connect() as c:
                for key in KEYS:
                    c.ok("XGROUP", "CREATE", key, "g", "$", "MKSTREAM")
            check_equal([self.a, self.b], "groups")

    def link(self):
        call(self.a, "REPLICAOF", "127.0.0.1", self.into_a)
        call(self.b, "REPLICAOF", "127.0.0.1", self.into_b)
        eventually(lambda: is_up(self.a, 1) and is_up(self.b, 1), "links", 60)
        agree([self.a, self.b])

    def waiter(self):
        c = self.b.connect(timeout_s=60)
        c.send(*self.words)
        eventually(lambda: replication(self.a)["active_waiting_guests"] == "1", "a knows of him")
        return c

    def give(self):
        """The key by which a has given something to b's client."""
        with self.a.connect() as c:
            for key in KEYS:
                assert not isinstance(c.call(self.put[0], key, *self.put[1:], "of " + key), Error)
                if is_taken(c, key, self.group):
                    return key
        raise AssertionError("a is nobody's home")

    def keep(self, how):
        if how == "file":
            assert call(self.a, "SAVE") == b"OK"
        if how == "base":
            assert call(self.a, "CONFIG", "SET", "aof-use-rdb-preamble", "no") == b"OK"
            assert not isinstance(call(self.a, "BGREWRITEAOF"), Error)
            eventually(lambda: os.path.exists(self.a.file("appendonlydir/appendonly.aof.2.base.aof")) and
                       self.a.info("persistence")["aof_rewrite_in_progress"] == "0", "it is rewritten", 30)

    def begin_again(self, node):
        node.kill_all()
        node.start()
        self.link()

    def check_nothing_is_left(self, when):
        check_equal([self.a, self.b], when)
        check_quiet([self.a, self.b])
        with self.b.connect() as c:
            c.send(*self.words)
            assert c.nothing_comes(0.3), when
        check_equal([self.a, self.b], when)


def test_what_could_not_be_said(make_node, kind, keeps):
    """The link fails before b has heard of it, and a ends: the log, or the file, has it when a is back."""
    p = Pair(make_node, kind, {} if keeps == "file" else LOG, {})
    try:
        with p.waiter() as waiter:
            p.links["b from a"].hold(down=True)
            key = p.give()
            p.keep(keeps)
            p.a.kill_all()
            p.links["b from a"].cut()
            assert waiter.nothing_comes(0.1)
            p.a.start()
            p.links["b from a"].mend()
            p.link()
            got = p.got(waiter.read())
        check_equal([p.a, p.b], "afterwards")
        # The same element, or one of another key, which the view of two nodes gave first: then it is there for the next one.
        pushed = [(name.encode(), b"of " + name.encode()) for name in KEYS[:KEYS.index(key) + 1]]
        while len(got) < len(pushed):
            with p.b.connect(timeout_s=60) as c:
                got += p.got(c.call(*p.words))
        assert sorted(got) == sorted(pushed)
        p.check_nothing_is_left("all is given")
        # What it knew when it was saved is over: b says no more what it has missed.
        p.begin_again(p.a)
        p.check_nothing_is_left("a is back once more")
    finally:
        p.links.close()


def pytest_generate_tests(metafunc):
    if "keeps" in metafunc.fixturenames:
        gate = [("BLPOP", "log"), ("XREADGROUP", "file"), ("BZPOPMAX", "base")]
        rows = [(kind, keeps) for kind in sorted(KINDS) for keeps in ("log", "file", "base")]
        metafunc.parametrize("kind,keeps", [r if r in gate else pytest.param(*r, marks=pytest.mark.long) for r in rows])


def test_what_has_arrived(make_node):
    """b comes back with nothing, and misses all that a ever said: what b's client has had is not given again, by what a
    has in its log neither."""
    p = Pair(make_node, "BLPOP", LOG, {"save": ""})
    try:
        with p.waiter() as waiter:
            p.links["b from a"].hold(down=True)
            key = p.give()
            p.links["b from a"].mend()
            waiter.read()
        check_equal([p.a, p.b], "something is given")
        agree([p.a, p.b])
        wait_heard(p.a, 1)
        call(p.a, "UNLINK", *KEYS)
        with p.b.connect(timeout_s=60) as waiter, p.a.connect() as c:
            waiter.send("BLPOP", key, 0)
            eventually(lambda: replication(p.a)["active_waiting_guests"] == "1", "a knows of him")
            c.call("RPUSH", key, "again")
            assert waiter.read() == [key.encode(), b"again"]
        check_equal([p.a, p.b], "it is gone")
        wait_heard(p.a, 2)
        p.begin_again(p.a)
        p.begin_again(p.b)
        check_equal([p.a, p.b], "both are back")
        assert call(p.b, "EXISTS", key) == 0
        check_quiet([p.a, p.b])
        assert call(p.a, "EXISTS", key) == 0
    finally:
        p.links.close()


def wait_heard(node, times):
    """Until its AOF says so often that what was given has arrived; each look writes something, with which goes what is known."""
    def count():
        call(node, "INCR", "n")
        with open(node.file("appendonlydir/appendonly.aof.1.incr.aof"), "rb") as f:
            return f.read().count(b"HEARD")
    eventually(lambda: count() == times, "it has arrived", 30, 0.05)
