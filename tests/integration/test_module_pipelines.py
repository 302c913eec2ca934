"""Modules: what a client sends behind a command that blocks it, in one pipeline. Beside a redis-server.

A command that has never blocked shares its batch with what follows; when it does, that is taken back.
The module is fresh in each test, so that the first time is tried again and again."""

import pytest

from lib.bounds import eventually
from lib.modules import path_of
from lib.resp import Error
from lib.seeds import generator, seeds


@pytest.fixture(params=["ours", "redis-server"])
def both(request, make_server, make_oracle):
    options = {"loadmodule": [path_of("blocking")], "enable-debug-command": "yes"}
    return make_server(options) if request.param == "ours" else make_oracle(options)


def maybe(waits, number):
    return ("BL.MAYBE", "yes" if waits else "no", number)


def test_in_the_middle(both):
    """Each command sees what was before it, the first time and after it."""
    with both.connect() as c:
        for _ in range(3):
            c.call("DEL", "n")
            commands = [maybe(False, 1), ("INCR", "n"), maybe(True, 2), ("INCR", "n"), ("GET", "n"), maybe(False, 3),
                        maybe(True, 4), ("APPEND", "n", "x"), ("NONE",), ("GET",), ("GET", "n"), ("PING",)]
            replies = c.pipeline(commands)
            assert replies[:8] == [1, 1, 2, 2, b"2", 3, 4, 2]
            assert all(isinstance(r, Error) for r in replies[8:10])
            assert replies[10:] == [b"2x", b"PONG"]


def test_several_that_wait(both):
    with both.connect() as c:
        count = 60
        commands = []
        for i in range(count):
            commands += [maybe(i % 7 == 3, i), ("RPUSH", "l", i)]
        replies = c.pipeline(commands)
        assert replies == [n for i in range(count) for n in (i, i + 1)]
        assert c.call("LRANGE", "l", 0, -1) == [b"%d" % i for i in range(count)]


def test_the_session_is_as_it_was_sent(both):
    """What changes how others are understood, behind a command that waits."""
    with both.connect() as c:
        replies = c.pipeline([
            maybe(True, 1), ("SELECT", 2), ("SET", "k", "two"), maybe(False, 2), ("SELECT", 0), ("GET", "k"),
            ("SELECT", 2), ("GET", "k"), ("CLIENT", "SETNAME", "somebody"), ("CLIENT", "GETNAME"),
            ("CONFIG", "SET", "maxmemory-samples", 6), ("CONFIG", "GET", "maxmemory-samples")])
        assert replies == [1, b"OK", b"OK", 2, b"OK", None, b"OK", b"two", b"OK", b"somebody", b"OK",
                           [b"maxmemory-samples", b"6"]]


@pytest.mark.parametrize("waits", [True, False])
def test_transactions_behind(both, waits):
    with both.connect() as c:
        replies = c.pipeline([
            maybe(waits, 1), ("MULTI",), ("SET", "k", 1), maybe(False, 2), ("INCR", "k"), ("EXEC",), ("WATCH", "k"),
            maybe(False, 3), ("MULTI",), ("INCR", "k"), ("NONE",), ("EXEC",), ("GET", "k"), ("MULTI",), ("DISCARD",)])
        assert replies[:6] == [1, b"OK", b"QUEUED", b"QUEUED", b"QUEUED", [b"OK", 2, 2]]
        assert replies[6:10] == [b"OK", 3, b"OK", b"QUEUED"]
        assert isinstance(replies[10], Error) and isinstance(replies[11], Error)
        assert replies[12:] == [b"2", b"OK", b"OK"]


def test_a_module_that_blocks_in_a_transaction_does_not(both):
    with both.connect() as c:
        replies = c.pipeline([("MULTI",), maybe(True, 1), ("PING",), ("EXEC",), maybe(True, 2), ("PING",)])
        assert isinstance(replies[3][0], Error) and replies[3][1] == b"PONG"
        assert replies[4:] == [2, b"PONG"]
        eventually(lambda: c.call("BL.COUNTS")[0] == 2, "all data are freed")


def test_large_arguments_behind(both):
    """They are not copied: the request that is prepared anew has the same blocks."""
    large = b"x" * 300000
    with both.connect() as c:
        replies = c.pipeline([maybe(True, 1), ("SET", "k", large), ("STRLEN", "k"), maybe(True, 2), ("APPEND", "k", large),
                              ("GET", "k")])
        assert replies == [1, b"OK", 300000, 2, 600000, large * 2]


def test_replies_that_are_not_wanted(both):
    with both.connect() as c:
        for name in ("one", "two"):
            assert c.pipeline([maybe(True, 1), ("ECHO", name)]) == [1, name.encode()]
        c.send("CLIENT", "REPLY", "SKIP")
        c.send(*maybe(True, 5))
        assert c.pipeline([("ECHO", "a"), maybe(True, 6), ("ECHO", "b")]) == [b"a", 6, b"b"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_broken_stream_behind(both, waits):
    """What came before it is answered; then the connection ends."""
    with both.connect() as c:
        c.send_raw(b"*3\r\n$8\r\nBL.MAYBE\r\n$3\r\n" + (b"yes" if waits else b"no ") + b"\r\n$1\r\n7\r\n"
                   b"*1\r\n$4\r\nPING\r\n*1\r\n!4\r\nPING\r\n")
        assert [c.read(), c.read()] == [7, b"PONG"]
        assert b"Protocol error" in c.read()
        eventually(c.is_closed, "it is closed")


def test_a_client_that_goes_with_requests_behind(both):
    with both.connect() as admin:
        c = both.connect()
        c.send_raw(b"".join(b"*2\r\n$7\r\nBL.HOLD\r\n$1\r\n0\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n" for _ in range(3)))
        eventually(lambda: b"blocked_clients:1\r" in admin.call("INFO", "clients"), "it waits")
        c.close()
        eventually(lambda: b"blocked_clients:0\r" in admin.call("INFO", "clients"), "it has gone")
        assert admin.call("GET", "n") is None
        assert admin.call("BL.LET", 1) == 1
        eventually(lambda: admin.call("BL.COUNTS")[0] == 1, "the data are freed")


def test_a_pause_behind(both):
    """Requests that were taken back wait for the end of a pause that has begun meanwhile."""
    with both.connect() as c, both.connect() as admin:
        c.send(*("BL.HOLD", 0))
        eventually(lambda: b"blocked_clients:1\r" in admin.call("INFO", "clients"), "it waits")
        c.send("SET", "k", 1)
        c.send("GET", "k")
        admin.ok("CLIENT", "PAUSE", 100000, "WRITE")
        assert admin.call("BL.LET", 3) == 1
        assert c.read() == 3
        assert c.nothing_comes()
        admin.ok("CLIENT", "UNPAUSE")
        assert [c.read(), c.read()] == [b"OK", b"1"]


def test_subscribers_behind(both):
    """Who listens is told between the replies, in their order."""
    with both.connect() as c:
        c.hello(3)
        c.send(*maybe(True, 1))
        c.send("SUBSCRIBE", "ch")
        for command in (maybe(False, 2), maybe(True, 3), ("PING",)):
            c.send(*command)
        frames = [c.read_frame()[1] for _ in range(5)]
        assert frames == [1, [b"subscribe", b"ch", 1], 2, 3, b"PONG"]


def test_what_never_blocks_shares_a_batch(make_server):
    """Many commands, few batches: by the count, since speed proves nothing."""
    server = make_server({"loadmodule": [path_of("blocking")]})

    def batches(c):
        lines = c.call("INFO", "threads").decode().split("\r\n")
        return sum(int(line.split(",batches=")[1].split(",")[0]) for line in lines if ",batches=" in line)

    with server.connect() as c:
        before = batches(c)
        count = 2000
        assert c.pipeline([maybe(False, 1)] * count) == [1] * count
        assert batches(c) - before < count / 4
        # Once it has blocked, it is expected to for a while, and is not in the end.
        assert c.call("BL.MAYBE", "yes", 1) == 1
        before = batches(c)
        assert c.pipeline([maybe(False, 1)] * 256) == [1] * 256
        assert batches(c) - before >= 256
        before = batches(c)
        assert c.pipeline([maybe(False, 1)] * count) == [1] * count
        assert batches(c) - before < count / 4


def program_of(seed):
    """Commands of which few wait: so each finds a batch behind it that is to be cut."""
    random = generator(seed, "module pipelines")
    program = []
    while len(program) < 3000:
        choice = random.randrange(1000)
        if choice < 5:
            program.append(maybe(True, len(program)))
        elif choice < 600:
            program.append(maybe(False, len(program)))
        elif choice < 700:
            program.append(("SELECT", random.randrange(4)))
        elif choice < 720:
            program += [("MULTI",), ("INCR", "n"), maybe(False, 7), ("GET", "n"), ("EXEC",)]
        elif choice < 730:
            program.append(("APPEND", "large", "x" * random.choice((10, 40000, 70000))))
        elif choice < 750:
            program.append(random.choice((("NONE",), ("GET",), ("EXEC",), ("INCR", "large"))))
        else:
            program.append(random.choice((("INCR", "n"), ("GET", "n"), ("STRLEN", "large"), ("DBSIZE",))))
    return program


@pytest.mark.parametrize("seed", seeds(3))
def test_programs(make_server, seed):
    """In pipelines of any length a program has the replies that it has word by word."""
    random = generator(seed, "module pipelines' lengths")
    program = program_of(seed)
    replies = []
    for lengths in ((1,), (200, 20, 3)):
        server = make_server({"loadmodule": [path_of("blocking")]})
        with server.connect() as c:
            got, at = [], 0
            while at < len(program):
                length = random.choice(lengths)
                got += c.pipeline(program[at:at + length])
                at += length
        replies.append(got)
    assert replies[0] == replies[1]
