"""The test ground itself: the decoder refuses what is no reply, and a server that dies, reports
an error, hangs on to life or leaves something behind is noticed."""

import os
import socket
import stat
import threading

import pytest

import lib.bounds
import lib.server
from lib.bounds import Bound, BoundPassed, eventually
from lib.door import Door
from lib.resp import Decoder, Error, Malformed, Map, Push, Set, Simple, encode
from lib.server import Server, StartFailed, is_redis, server_path


def decode(data, proto=2):
    decoder = Decoder(proto)
    decoder.feed(data)
    return decoder.next()


GOOD = [
    (2, b"+OK\r\n", b"OK"),
    (2, b"-ERR no\r\n", b"ERR no"),
    (2, b":-12\r\n", -12),
    (2, b"$-1\r\n", None),
    (2, b"*-1\r\n", None),
    (2, b"$0\r\n\r\n", b""),
    (2, b"$4\r\na\r\nb\r\n", b"a\r\nb"),
    (2, b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", [1, [b"x"]]),
    (2, b"*4\r\n$1\r\nx\r\n$-1\r\n*2\r\n$0\r\n\r\n$2\r\nab\r\n$3\r\na\r\n\r\n", [b"x", None, [b"", b"ab"], b"a\r\n"]),
    (3, b"_\r\n", None),
    (3, b"#t\r\n", True),
    (3, b",1.5\r\n", 1.5),
    (3, b",-inf\r\n", float("-inf")),
    (3, b"(123456789012345678901234567890\r\n", 123456789012345678901234567890),
    (3, b"=7\r\ntxt:abc\r\n", b"abc"),
    (3, b"!5\r\nERR x\r\n", b"ERR x"),
    (3, b"~1\r\n:1\r\n", [1]),
    (3, b">1\r\n+x\r\n", [b"x"]),
    (3, b"%1\r\n+k\r\n:1\r\n", [(b"k", 1)]),
    (3, b"%2\r\n$1\r\nk\r\n*1\r\n$1\r\nv\r\n$1\r\nl\r\n_\r\n", [(b"k", [b"v"]), (b"l", None)]),
]

BAD = [
    (2, b"OK\r\n"), (2, b"+OK\n"), (2, b"+a\rb\r\n"), (2, b":1.5\r\n"), (2, b":+1\r\n"),
    (2, b":01\r\n"), (2, b":-0\r\n"), (2, b":\r\n"), (2, b":9223372036854775808\r\n"),
    (2, b"$-2\r\n"), (2, b"$03\r\nabc\r\n"), (2, b"$3\r\nabcd\r\n"), (2, b"*-2\r\n"),
    (2, b"*x\r\n"), (2, b"_\r\n"), (2, b"%0\r\n"), (2, b"#t\r\n"), (2, b",1\r\n"),
    (2, b"*1\r\n_\r\n"), (2, b"*2\r\n$1\r\nx\r\n$3\r\nabcd\r\n"),
    (2, b"*2\r\n$1\r\nx\r\n$03\r\nabc\r\n"), (3, b"$-1\r\n"), (3, b"*-1\r\n"), (3, b"_x\r\n"), (3, b"#x\r\n"),
    (3, b",1,5\r\n"), (3, b",\r\n"), (3, b"=2\r\nab\r\n"), (3, b"=4\r\nabcd\r\n"),
    (3, b"?0\r\n"), (2, b"*1\r\n" * 100 + b":1\r\n"), (2, b"$9999999999\r\n"),
]


@pytest.mark.parametrize("proto,data,tree", GOOD)
def test_decoder_reads_replies_split_at_every_byte(proto, data, tree):
    assert decode(data, proto) == (data, tree)
    decoder = Decoder(proto)
    for at in range(len(data)):
        assert decoder.next() is None
        decoder.feed(data[at:at + 1])
    assert decoder.next() == (data, tree)
    assert decoder.next() is None


@pytest.mark.parametrize("proto,data", BAD)
def test_decoder_refuses_what_is_no_reply(proto, data):
    with pytest.raises(Malformed):
        decode(data, proto)


def test_decoder_reads_what_has_attributes_split_at_every_byte():
    decoder = Decoder(3)
    for byte in b"|1\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n":
        assert decoder.next() is None
        decoder.feed(bytes([byte]))
    _, tree = decoder.next()
    assert tree.attributes == [(b"k", b"v")] and tree.value == [b"a", b"b"]


def test_decoder_keeps_the_types_apart():
    assert isinstance(decode(b"+x\r\n")[1], Simple)
    assert isinstance(decode(b"-x\r\n")[1], Error)
    assert type(decode(b"$1\r\nx\r\n")[1]) is bytes
    assert isinstance(decode(b"~0\r\n", 3)[1], Set)
    assert isinstance(decode(b">0\r\n", 3)[1], Push)
    assert isinstance(decode(b"%0\r\n", 3)[1], Map)


def test_encoder():
    assert encode("GET", b"a\r\n", 12) == b"*3\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n$2\r\n12\r\n"


def script(directory, text):
    path = os.path.join(directory, "program")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, stat.S_IRWXU)
    return path


def test_a_server_that_ends_while_starting_is_an_error(tmp_path):
    server = Server(script(tmp_path, "echo broken >&2; exit 3\n"))
    with pytest.raises(StartFailed, match="exit status 3"):
        server.start()
    server.remove()


def wrapped(tmp_path, before="", after=""):
    """The real server between two pieces of shell.  Runs as Redis or ours, as configured."""
    name = "redis-wrapped" if is_redis(server_path()) else "wrapped"
    path = os.path.join(tmp_path, name)
    with open(path, "w", encoding="utf-8") as file:
        # The trap first: the server may be ready, and its end asked for, before the shell goes on.
        file.write("#!/bin/sh\n%s\ntrap 'kill $!' TERM\n%s \"$@\" &\nchild=$!\n"
                   "wait $child\nwait $child\nstatus=$?\n%s\nexit $status\n"
                   % (before, server_path(), after))
    os.chmod(path, stat.S_IRWXU)
    return path


@pytest.mark.any_threads
@pytest.mark.parametrize("before,after,expected", [
    ("", "", ""),
    ("echo 'WARNING: ThreadSanitizer: data race' >&2", "", "ThreadSanitizer"),
    ("echo 'a.c:1:2: runtime error: overflow' >&2", "", "runtime error"),
    ("touch litter", "", "litter"),
    ("sleep 30 &", "", "left a process"),
    ("", "status=7", "exit status 7"),
])
def test_misbehaviour_is_noticed(tmp_path, threads, before, after, expected):
    server = Server(wrapped(tmp_path, before, after), threads)
    server.start()
    assert server.connect().call("PING") == b"PONG"
    server.stop()
    if expected:
        assert expected in server.problems()
    else:
        assert server.problems() == ""
    server.remove()


@pytest.mark.any_threads
def test_death_is_noticed(threads):
    server = Server(None, threads).start()
    server.process.kill()
    server.process.wait()
    assert "died" in server.problems()
    server.stop()
    assert "died" in server.problems()
    server.remove()


def test_a_door_that_is_closed():
    """Nobody listens any more, and no thread is left that could take another listener's connections."""
    served = []
    door = Door(served.append)
    socket.create_connection(("127.0.0.1", door.port)).close()
    eventually(lambda: served, "served")
    before = threading.active_count()
    door.close()
    assert threading.active_count() < before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", door.port))


@pytest.fixture(name="clock")
def _clock(monkeypatch):
    """A hand to move what bounds see of time."""
    hand = [1000.0]
    monkeypatch.setattr(lib.bounds.time, "monotonic", lambda: hand[0])
    return hand


def test_a_bound_passes(clock):
    bound = Bound(5)
    for _ in range(9):
        assert 0 < bound.left() <= Bound.COUNTED_S / 2  # who waits looks again in time
        clock[0] += 0.5
    clock[0] += 0.5
    assert bound.left() == 0


def test_a_machine_that_stands_still_takes_nothing_from_a_bound(clock):
    bound = Bound(5)
    clock[0] += 3600
    assert bound.left() > 0
    with pytest.raises(BoundPassed):
        eventually(lambda: clock.__setitem__(0, clock[0] + 1), "never", pause_s=0)


def test_a_port_that_was_taken_meanwhile(make_server, monkeypatch):
    """Two tests may find the same port free; the second server is not mistaken for the first."""
    first = make_server()
    free_port = lib.server.free_port
    given = [first.port]
    monkeypatch.setattr(lib.server, "free_port", lambda: given.pop() if given else free_port())
    second = make_server()
    assert second.port != first.port
    with second.connect() as client:
        client.ok("SET", "k", "v")
    with first.connect() as client:
        assert client.call("EXISTS", "k") == 0
