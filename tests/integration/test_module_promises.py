"""Modules that call commands which wait (tests/modules/promises.c): what is served, times out, is aborted or forgotten;
what logs and replicas are told; modules' own commands that block; the same from all threads at once."""

import os

import pytest

from lib.active import check_equal, follow, is_up, make_node
from lib.bounds import eventually
from lib.modules import in_threads, path_of
from lib.resp import Error

__all__ = ["make_node"]  # fixtures


@pytest.fixture
def promising(make_server):
    def make(options=None, files=()):
        options = {"loadmodule": [path_of("promises")], "enable-module-command": "yes", **(options or {})}
        server = make_server(options, files=files)
        with server.connect() as c:
            c.ok("MODULE", "LOAD", path_of("blocking"))
        return server

    return make


def waiting(c, count):
    eventually(lambda: c.call("PR.COUNTS")[1] == count, "%d calls wait" % count)


def test_served_at_once(promising):
    with promising().connect() as c:
        c.call("RPUSH", "q", "1", "2", "3")
        assert c.call("PR.CALL", "-", "BLPOP", "q", "0") == [b"q", b"1"]
        assert c.call("PR.THEN", "-", "out", "BRPOP", "q", "0") == [b"q", b"3"]
        assert c.call("PR.CALL", "-", "GET", "k") is None
        assert isinstance(c.call("PR.CALL", "-", "BLPOP", "q", "x"), Error)
        assert c.error("PR.CALL", "-", "NOSUCH").startswith(b"ERR unknown command")
        assert c.call("PR.COUNTS") == [0, 0, 0]


def test_served_later(promising):
    server = promising()
    with server.connect() as c, server.connect() as waits:
        waits.send("PR.CALL", "-", "BLPOP", "q", "other", "0")
        waiting(c, 1)
        assert c.call("RPUSH", "other", "v", "w") == 2
        assert waits.read() == [b"other", b"v"]
        assert c.call("PR.COUNTS") == [1, 0, 1]
        assert c.call("LRANGE", "other", "0", "-1") == [b"w"]
        waits.send("PR.CALL", "-", "BLMOVE", "from", "to", "LEFT", "RIGHT", "0")
        waiting(c, 1)
        c.call("RPUSH", "from", "x")
        assert waits.read() == b"x" and c.call("LRANGE", "to", "0", "-1") == [b"x"]
        waits.send("PR.CALL", "-", "XREAD", "BLOCK", "0", "STREAMS", "s", "$")
        waiting(c, 1)
        c.call("XADD", "s", "1-1", "f", "v")
        assert waits.read()
        eventually(lambda: {"cmdstat_blpop:calls=1", "cmdstat_xread:calls=1"} <=
                   set(c.call("INFO", "commandstats").decode().replace(",", "\r\n").split("\r\n")), "they are counted")


def test_the_handler_comes_before_the_writer_goes_on(promising):
    """In the writer's hold: its own next command finds what the handler has done."""
    with promising().connect() as c:
        assert c.call("PR.THEN", "!", "out", "BLPOP", "q", "0") == b"waits"
        assert c.pipeline([("RPUSH", "q", "v"), ("LLEN", "q"), ("LRANGE", "out", "0", "-1")]) == \
            [1, 0, [b"*2\r\n$1\r\nq\r\n$1\r\nv\r\n"]]


def test_order(promising):
    """Clients and promises are served in the order in which they came."""
    server = promising()
    with server.connect() as c, server.connect() as first, server.connect() as third:
        first.send("BLPOP", "q", "0")
        eventually(lambda: b"blocked_clients:1" in c.call("INFO", "clients"), "one waits")
        c.call("PR.THEN", "-", "out", "BLPOP", "q", "0")
        third.send("BLPOP", "q", "0")
        eventually(lambda: b"blocked_clients:2" in c.call("INFO", "clients"), "two wait")
        c.call("RPUSH", "q", "1", "2", "3")
        assert first.read() == [b"q", b"1"] and third.read() == [b"q", b"3"]
        assert b"2" in c.call("LPOP", "out")


def test_a_timeout(promising):
    with promising().connect() as c:
        assert c.call("PR.CALL", "-", "BLPOP", "q", "0.02") is None
        assert c.call("PR.THEN", "-", "out", "BLPOP", "q", "0.02") == b"waits"
        eventually(lambda: c.call("LRANGE", "out", "0", "-1") == [b"*-1\r\n"], "it is over")
        eventually(lambda: c.call("PR.COUNTS") == [2, 0, 2], "both are over")
        c.call("RPUSH", "q", "v")
        assert c.call("LLEN", "q") == 1


def test_aborted(promising):
    with promising().connect() as c:
        for _ in range(3):
            c.call("PR.THEN", "-", "out", "BLPOP", "q", "r", "100")
        c.call("PR.THEN", "-", "out", "BL.HOLD", "0")
        assert c.call("PR.ABORT") == [1, 1, 1, 1]
        assert c.call("PR.ABORT") == []
        c.call("RPUSH", "q", "v")
        assert c.call("LLEN", "q") == 1 and c.call("EXISTS", "out") == 0 and c.call("PR.COUNTS") == [0, 0, 0]
        eventually(lambda: c.call("BL.COUNTS")[1] == 1, "the other module is told")
        assert c.call("BL.LET", "1") == 1
        eventually(lambda: c.call("BL.COUNTS")[:2] == [1, 1], "and done")


def test_who_goes_takes_it_along(promising):
    server = promising()
    with server.connect() as c:
        gone = server.connect()
        gone.send("PR.CALL", "-", "BLPOP", "q", "0")
        waiting(c, 1)
        gone.close()
        waiting(c, 0)
        c.call("RPUSH", "q", "v")
        assert c.call("LLEN", "q") == 1


def test_nobody_asks(promising):
    with promising().connect() as c:
        assert c.call("PR.DROP", "-", "BLPOP", "q", "0") == 1
        assert c.call("RPUSH", "q", "v") == 1
        assert c.call("EXISTS", "q") == 0
        assert c.call("PR.DROP", "-", "PING") == 0


def test_again_and_again(promising):
    """A handler makes the call anew: what is there is served at once, what comes later when it comes."""
    with promising().connect() as c:
        assert c.call("PR.LOOP", "-", "9", "BLPOP", "q", "0") == b"waits"
        c.call("RPUSH", "q", *range(4))
        assert c.call("EXISTS", "q") == 0
        for i in range(6):
            assert c.call("PR.COUNTS")[1] == 1
            c.call("RPUSH", "q", i)
        assert c.call("PR.COUNTS")[1] == 0
        c.call("RPUSH", "q", "left")
        assert c.call("LLEN", "q") == 1


def test_a_module_that_blocks(promising):
    with promising().connect() as c:
        assert c.call("PR.CALL", "-", "BL.WORK", "5", "42", "0") == 42
        assert c.call("PR.CALL", "-", "BL.ADD", "5", "7") == [7, 7]
        assert c.call("PR.CALL", "-", "BL.MAYBE", "no", "1") == 1
        assert c.call("PR.CALL", "-", "BL.MAYBE", "yes", "2") == 2
        assert c.call("PR.CALL", "-", "BL.HOLD", "20") == b"timed out"
        eventually(lambda: c.call("BL.COUNTS")[2] == 1, "its callback was called")


def test_within_others(promising):
    """Transactions and scripts go on: the module waits for nothing there but its own promise."""
    with promising().connect() as c:
        c.ok("MULTI")
        c.call("PR.THEN", "-", "out", "BLPOP", "q", "0")
        c.call("RPUSH", "q", "v")
        c.call("LLEN", "q")
        assert c.call("EXEC") == [b"waits", 1, 1]
        assert c.call("EXISTS", "q") == 0 and c.call("LLEN", "out") == 1
        assert c.call("EVAL", "return redis.call('PR.THEN','-','out','BLPOP','q','0')", "0") == b"waits"
        c.call("RPUSH", "q", "v")
        assert c.call("LLEN", "out") == 2


def test_unloading(promising):
    with promising().connect() as c:
        c.call("PR.THEN", "-", "out", "BLPOP", "q", "0")
        assert b"blocked clients" in c.error("MODULE", "UNLOAD", "promises")
        c.call("RPUSH", "q", "v")
        c.ok("MODULE", "UNLOAD", "promises")


def test_at_the_end(promising):
    """What still waits when the server ends goes with it."""
    server = promising()
    with server.connect() as c:
        for flags in ("-", "!"):
            c.call("PR.THEN", flags, "out", "BLPOP", "q", "100")
        c.call("PR.DROP", "-", "BL.HOLD", "0")
        c.call("PR.LOOP", "-", "2", "BZPOPMIN", "z", "0")
    server.stop()


def test_what_logs_are_told(promising):
    server = promising({"appendonly": "yes", "appendfsync": "always"}, files=["appendonlydir"])
    with server.connect() as c:
        for flags in ("!", "-", "!A"):
            assert c.call("PR.THEN", flags, "out", "BLPOP", "q" + flags, "0") == b"waits"
            c.call("RPUSH", "q" + flags, "v")
        c.ok("SET", "end", "v")
        log = server.file("appendonlydir")

        def words():
            text = b"".join(open(os.path.join(log, name), "rb").read() for name in sorted(os.listdir(log)) if ".incr." in name)
            return [word for word in text.split(b"\r\n") if word and word[:1] not in b"*$"]

        eventually(lambda: b"end" in words(), "the log is written")
        told = [word for word in words()[words().index(b"RPUSH"):] if word != b"out"]
        expected = [b"RPUSH", b"q!", b"v", b"MULTI", b"LPOP", b"q!", b"RPUSH"]
        assert told[:len(expected)] == expected, told
        assert told.count(b"MULTI") == told.count(b"EXEC") == 1 and told.count(b"LPOP") == 1, told
        assert c.call("LLEN", "out") == 3


def test_a_replica(promising):
    primary = promising({"repl-diskless-sync-delay": "0"})
    replica = promising(files=["dump.rdb"])
    with primary.connect() as c, replica.connect() as r:
        r.ok("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link", 30)
        for i in range(20):
            c.call("PR.THEN", "!", "out", "BLPOP", "q", "0")
            c.call("RPUSH", "q", i, "left %d" % i)
            c.call("LPOP", "q")
        eventually(lambda: r.call("LRANGE", "out", "0", "-1") == c.call("LRANGE", "out", "0", "-1") and
                   r.call("LLEN", "out") == 20 and r.call("EXISTS", "q") == 0, "the replica has the same")


def test_active_replicas(make_node):
    """What is pushed at one node is given to a call that waits at the other."""
    a, b = (make_node(loadmodule=path_of("promises")) for _ in range(2))
    with a.connect() as ca, b.connect() as cb:
        for node, peer in ((a, b), (b, a)):
            follow(node, peer)
        eventually(lambda: is_up(a, 1) and is_up(b, 1), "links", 60)
        for i in range(4):
            assert cb.call("PR.THEN", "!", "out", "BLPOP", "q", "0") == b"waits"
            ca.call("RPUSH", "q", i)
            eventually(lambda count=i + 1: cb.call("LLEN", "out") == count, "it is given", 30)
        eventually(lambda: ca.call("LLEN", "out") == 4 and ca.call("EXISTS", "q") == 0, "all of it is told", 30)
        check_equal([a, b], "served")


def test_from_all_threads(promising):
    """Many wait, write, abort and go at once: nothing is served twice, nothing is lost."""
    server, clients, rounds = promising(), 8, 40
    seen = []

    def take(number):
        with server.connect() as c:
            for _ in range(rounds):
                reply = c.call("PR.CALL", "!", "BLPOP", "q", "0")
                assert reply[0] == b"q", reply
                seen.append(reply[1])

    def give(number):
        with server.connect() as c:
            for i in range(rounds):
                c.call("RPUSH", "q", "%d:%d" % (number, i))

    def disturb():
        with server.connect() as c:
            for i in range(rounds):
                c.call("PR.THEN", "-", "out", "BLPOP", "empty", "0.001")
                c.call("PR.CALL", "-", "BL.WORK", "0", i, "0")
                c.call("PR.ABORT")
                gone = server.connect()
                gone.send("PR.CALL", "-", "BLPOP", "empty", "0")
                gone.close()

    in_threads(disturb, *[lambda n=n: take(n) for n in range(clients)], *[lambda n=n: give(n) for n in range(clients)])
    assert len(seen) == len(set(seen)) == clients * rounds
    with server.connect() as c:
        assert c.call("EXISTS", "q") == 0
        eventually(lambda: c.call("PR.COUNTS")[1] == 0, "nothing waits")
