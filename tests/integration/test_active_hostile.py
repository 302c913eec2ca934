"""Broken and hostile peers: whatever one sends, its link is closed and the log says why; no key is touched, the other
nodes go on, and memory stays bounded. What units may say is tests/unit/active/test_hostile.c's."""

import contextlib
import socket
import struct
import time
from functools import partial

import pytest

from lib.active import (EPOCH, NODE, PULL_VERSION, Peer, check_equal, check_quiet, clock_frame, command, follow, frame,
                        head_record, is_up, key_record, make_node, origin_frame, record, stamp, write_frame)
from lib.bounds import eventually, scaled
from lib.modules import in_threads
from lib.replication import replication
from lib.resp import Error

__all__ = ["make_node"]  # fixtures

DAY_MS = 25 * 3600 * 1000
SET = command("SET", "k", "theirs")
OTHER = b"q" * 16
SET_COMES = frame(b"S")


@pytest.fixture
def peer():
    p = Peer()
    yield p
    p.close()


@pytest.fixture
def peers():
    made = [Peer() for _ in range(8)]
    yield made
    for p in made:
        p.close()


def named(*frames):
    return origin_frame(1) + b"".join(frames)


def write(sequence=1, when=None, commands=SET, db=0):
    return write_frame(1, sequence, stamp() if when is None else when, commands, db)


FRAMES = {
    "garbage": (lambda: b"\xff" * 100, "impossible length"),
    "text": (lambda: b"-ERR what\r\n" * 10, "impossible length"),
    "no length": (lambda: struct.pack("<IB", 0, 0), "impossible length"),
    "beyond a frame": (lambda: struct.pack("<I", (1 << 30) + 1) + b"W", "impossible length"),
    "unknown kind": (lambda: frame(b"Z"), "unknown kind"),
    "half an origin": (lambda: frame(b"O", b"12345"), "another length"),
    "half a clock": (lambda: frame(b"C", b"12345"), "half a clock"),
    "a data set that nobody wants": (lambda: SET_COMES, "not announced"),
    "a data set in a frame": (lambda: frame(b"S", b"x"), "within a frame"),
    "half a cause": (lambda: frame(b"A", b"12345"), "half a cause"),
    "nobody's write": (write, "not named"),
    "nobody's clock": (lambda: clock_frame(9, 0, 0, 0), "not named"),
    "two of one handle": (lambda: named(origin_frame(1, OTHER)), "another origin already"),
    "a gap": (lambda: named(write(2)), "predecessor is missing"),
    "no number": (lambda: named(write(0)), "without a number"),
    "no commands": (lambda: named(write(commands=b"")), "without commands"),
    "half a command": (lambda: named(write(commands=SET[:-4])), "no row of commands"),
    "a word without end": (lambda: named(write(commands=b"*2\r\n$3\r\nDEL\r\n$4294967296\r\nk\r\n")),
                           "no row of commands"),
    "words without end": (lambda: named(write(commands=b"*2000000000\r\n$3\r\nDEL\r\n")), "no row of commands"),
    "a stamp far ahead": (lambda: named(write(when=stamp(DAY_MS))), "a day ahead"),
    "the greatest stamp": (lambda: named(write(when=(1 << 64) - 1)), "a day ahead"),
    "a clock far ahead": (lambda: named(clock_frame(1, 0, stamp(DAY_MS), 0)), "a day ahead"),
    "a database too many": (lambda: named(write(db=999)), "database"),
    "another database": (lambda: named(write(commands=command("SELECT", 999) + SET)), "database"),
    "what is told otherwise": (lambda: named(write(commands=command("SPOP", "s"))), "no node may tell"),
    "an expiry of nothing": (lambda: named(write(commands=command("KEYDB.EXPIRED", "k"))), "no node may tell"),
    "half a state": (lambda: named(write(commands=command("KEYDB.STATE", "k", 0, "x"))), "no node may tell"),
    "digests of nothing": (lambda: named(write(commands=command("KEYDB.DIGESTS", "xxxx", "k", "d", 0))),
                           "no node may tell"),
    "digests without end": (lambda: named(write(commands=command(
        "KEYDB.DIGESTS", b"\0\0\0\0", *["k", "d", 0] * 65))), "no node may tell"),
    "no library": (lambda: named(write(commands=command("FUNCTION", "LOAD", "REPLACE", "nothing"))),
                   "no node may tell"),
    "stamps that go back": (lambda: origin_frame(1, OTHER) + write(1, stamp(0, 9), command("PUBLISH", "c", "m")) +
                            write(2, stamp(-5000)), "not above"),
    "origins without end": (lambda: b"".join(origin_frame(i + 1, NODE, i + 1) for i in range(5000)), "no room"),
    "positions without end": (lambda: named(write(commands=command(
        "KEYDB.STATE", "k", 0, "", struct.pack("<I", 60000) + b"".join(
            NODE + struct.pack("<QQ", i + 10, 1) for i in range(60000)), 0))), "no node may tell"),
}
MERGE_FRAMES = {
    "garbage": lambda: b"\xff" * 100,
    "a length without end": lambda: struct.pack("<Q", 1 << 63) + b"K",
    "beyond a record": lambda: struct.pack("<Q", (1 << 36) + 1) + b"K",
    "a head without end": lambda: struct.pack("<Q", 1 << 30) + b"H",
    "no head": lambda: key_record(b"k", b"x"),
    "two heads": lambda: head_record(stamp()) * 2,
    "an origin twice": lambda: head_record(stamp(), *[(NODE, EPOCH, 1)] * 2),
    "a head that counts wrong": lambda: record(b"H", b"\1" + struct.pack("<QI", stamp(), 9)),
    "another version": lambda: record(b"H", b"\2" + struct.pack("<QI", stamp(), 0)),
    "no value": lambda: head_record(stamp()) + key_record(b"k", b"not a payload"),
    "a name without end": lambda: head_record(stamp()) + record(b"K", struct.pack(
        "<HQH6xQI", 0, 0, 0, 0, 0xffffffff) + b"k"),
    "a dot that is not covered": lambda: head_record(stamp(), (NODE, EPOCH, 1)) + key_record(
        b"k", b"", when=stamp(), handle=1, sequence=2),
    "another number of keys": lambda: head_record(stamp()) + record(b"E", struct.pack("<Q", 7)),
    "half a library": lambda: head_record(stamp()) + record(b"L", b"S"),
}


def check_unharmed(node):
    with node.connect() as c:
        assert c.call("GET", "k") == b"ours" and c.call("DBSIZE") == 1
        c.ok("SET", "k", "ours")


def cut_off(peer, link, bound_s=20):
    """The node has closed the link. (It comes again, which the next transfer() shows.)"""
    link.sock.settimeout(scaled(bound_s))
    try:
        while link.sock.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass


def send_all(link, data):
    """In pieces that may be cut anywhere; the node may be gone before the end."""
    for at in range(0, len(data), 1000):
        if not link.send(data[at:at + 1000]):
            return


def accusations(node, peer):
    return [line for line in node.output().splitlines() if "127.0.0.1:%s sends is wrong" % peer.port in line]


def try_all(node, peers, cases, answer=b"+PULL"):
    """{name: what the log says of it}. Several peers at a time: a link that was wrong comes again later and later."""
    said = {}

    def play(peer, names):
        for name in names:
            before = len(accusations(node, peer))
            link = peer.link(answer)
            send_all(link, (SET_COMES if answer == b"+MERGE" else b"") + cases[name]())
            cut_off(peer, link)
            eventually(lambda: len(accusations(node, peer)) > before, name)
            said[name] = accusations(node, peer)[-1]
            check_unharmed(node)
    names = list(cases)
    with node.connect() as c:
        for peer in peers:
            c.ok("REPLICAOF", "127.0.0.1", peer.port)
        in_threads(*[partial(play, peer, names[i::len(peers)]) for i, peer in enumerate(peers)])
        for peer in peers:
            c.ok("REPLICAOF", "REMOVE", "127.0.0.1", peer.port)
    return said


def test_what_is_no_frame(make_node, peer, peers):
    node, other = make_node(), make_node()
    follow(node, other)
    follow(other, node)
    eventually(lambda: is_up(node, 1) and is_up(other, 1), "links", 30)
    with node.connect() as c:
        c.ok("SET", "k", "ours")
    alone = "origins without end"  # leaves no room to others' meanwhile
    said = try_all(node, peers, {name: data for name, (data, _) in FRAMES.items() if name != alone})
    said.update(try_all(node, [peer], {alone: FRAMES[alone][0]}))
    assert said.keys() == FRAMES.keys()
    for name, (_, reason) in FRAMES.items():
        assert reason in said[name], name
    with node.connect() as c, other.connect() as co:
        c.ok("SET", "k", "at last")
        eventually(lambda: co.call("GET", "k") == b"at last", "the others go on")
    check_equal([node, other], "afterwards")
    check_quiet([node, other])


def test_what_is_no_data_set(make_node, peer, peers):
    """Nothing of it is merged, and no file is left."""
    node = make_node()
    with node.connect() as c:
        c.ok("SET", "k", "ours")
        try_all(node, peers, MERGE_FRAMES, b"+MERGE")
        c.ok("REPLICAOF", "127.0.0.1", peer.port)
    # One that ends in its middle is no data set either.
    payload = b"\0" * 3
    link = peer.link(b"+MERGE")
    with node.connect() as c:
        payload = c.call("DUMP", "k")
    send_all(link, SET_COMES + head_record(stamp(), (NODE, EPOCH, 1)) + key_record(
        b"new", payload, when=stamp(), handle=1, sequence=1))
    link.end()
    peer.transfer()
    check_unharmed(node)
    with node.connect() as c:
        c.ok("REPLICAOF", "NO", "ONE")


def failures(node, port):
    return [line for line in node.output().splitlines() if "No link to active peer 127.0.0.1:%d: " % port in line]


@pytest.mark.parametrize("answer, reason", [
    (b"-ERR no\r\n", "it answers to KEYDB.PULL: -ERR no"),
    (b"+PULL x\r\n", "it answers to KEYDB.PULL: +PULL x"),
    (b"+PULL " + b"z" * 32 + b"\r\n", "it answers to KEYDB.PULL: +PULL zzz"),
    (b"+OK\r\n", "it answers to KEYDB.PULL: +OK"),
    (b"$-1\r\n", "it answers to KEYDB.PULL: $-1"),
    (b"+" + b"a" * 100000, "a line of the handshake is too long"),
    (b"", "closed by the other side")])
def test_what_is_no_answer(make_node, peer, answer, reason):
    node = make_node()
    with node.connect() as c:
        c.ok("SET", "k", "ours")
        c.ok("REPLICAOF", "127.0.0.1", peer.port)
        link = peer.transfer()
        link.send(answer)
        if not answer:
            link.end()
        again = peer.transfer()
        assert replication(node)["master_link_status"] == "down"
        assert [reason in line for line in failures(node, peer.port)] == [True]
        check_unharmed(node)
        c.ok("REPLICAOF", "NO", "ONE")
        again.end()


@pytest.mark.parametrize("said, reason", [
    (b"-ERR no\r\n", "it answers to PING: -ERR no"), (b"*1000000000\r\n", "it answers to PING: *1000000000"),
    (b"\0" * 5000, "a line of the handshake is too long"), (b"", "closed by the other side"),
    (None, "Connection refused")])
def test_who_is_no_server(make_node, said, reason):
    """Each try fails; the log says why, once as long as it is the same."""
    node, tries = make_node(), 3
    with socket.create_server(("127.0.0.1", 0)) as s, node.connect() as c:
        port = s.getsockname()[1]
        s.settimeout(scaled(30))
        if said is None:
            s.close()
        c.ok("REPLICAOF", "127.0.0.1", port)
        for _ in range(tries if said is not None else 0):
            link, _ = s.accept()
            with link:
                link.recv(100)
                link.sendall(said)
        eventually(lambda: failures(node, port), "said")
        assert [reason in line for line in failures(node, port)] == [True]
        c.ok("REPLICAOF", "NO", "ONE")


def test_a_peer_whose_clock_is_a_day_behind(make_node, peer):
    """Its writes are older than ours, and void; nothing else happens."""
    node = make_node()
    with node.connect() as c:
        c.ok("SET", "k", "ours")
        c.ok("REPLICAOF", "127.0.0.1", peer.port)
        link = peer.link()
        link.send(named(write(1, stamp(-DAY_MS)), write(2, 1 + stamp(-DAY_MS), command("SET", "l", "theirs"))))
        eventually(lambda: c.call("GET", "l") == b"theirs", "taken")
        assert c.call("GET", "k") == b"ours"
        c.ok("REPLICAOF", "NO", "ONE")


def test_who_asks_for_nonsense(make_node):
    """KEYDB.PULL and PULL-ACK from somebody: errors, or the end of his connection."""
    node = make_node()
    me, now, v = NODE.hex(), stamp(), PULL_VERSION
    with node.connect() as c:
        c.ok("SET", "k", "ours")
        for words in ([], [v], [v, me], [v, me, "x"], [v, me, -1], [v, "x" * 32, now], [v, me[:-1], now],
                      [v, me, now, "a"], [v, me, now, "ab" * 24, "-1", "1"], [v, me, now, "ab" * 24, "1", "2"],
                      [v, me, now, "ab" * 24, 1 << 60, "1"], [v, me, stamp(DAY_MS)], ["9", me, now]):
            assert isinstance(c.call("KEYDB.PULL", *words), Error), words
        c.ok("MULTI")
        assert isinstance(c.call("KEYDB.PULL", v, me, now), Error)
        assert isinstance(c.call("EXEC"), Error)
        assert isinstance(c.call("EVAL", "return redis.call('keydb.pull', unpack(ARGV))", 0, v, me, now), Error)
    with socket.create_connection(("127.0.0.1", node.port)) as p:
        p.settimeout(scaled(20))
        many = [word for i in range(20000) for word in ("%048x" % i, "5", "1")]  # nobody has heard of those
        p.sendall(command("KEYDB.PULL", PULL_VERSION, me, now, *many))
        assert p.recv(6) == b"+PULL "
        p.sendall(command("REPLCONF", "PULL-ACK", "nonsense"))
        while p.recv(1 << 16):
            pass
    eventually(lambda: "wants what is no origin" in node.output(), "said")
    check_unharmed(node)


def test_a_puller_that_never_reads(make_node):
    """It costs a bounded buffer, what a replica may have unread; then the log goes on without it."""
    node = make_node(**{"repl-backlog-size": "1mb", "repl-timeout": "1000",
                        "client-output-buffer-limit": ["replica", "8mb", "8mb", "60"]})
    with socket.create_connection(("127.0.0.1", node.port)) as deaf, node.connect() as c:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(command("KEYDB.PULL", PULL_VERSION, NODE.hex(), stamp()))
        eventually(lambda: replication(node)["connected_slaves"] == "1", "it pulls")
        used = int(node.info("memory")["used_memory"])
        for i in range(3000):
            c.ok("SET", "k", "x" * 20000)
        assert int(node.info("memory")["used_memory"]) < used + (24 << 20)
        assert int(replication(node)["active_log_bytes"]) <= 8 << 20
        c.ok("SET", "k", "ours")
    check_unharmed(node)


def test_who_says_nothing_is_forgotten(make_node, peer):
    """On both ends, after repl-timeout."""
    node = make_node(**{"repl-timeout": "1"})
    with node.connect() as c, socket.create_connection(("127.0.0.1", node.port)) as mute:
        c.ok("SET", "k", "ours")
        mute.settimeout(scaled(30))
        mute.sendall(command("KEYDB.PULL", PULL_VERSION, NODE.hex(), stamp()))
        heard = mute.makefile("rb")
        assert heard.read(6) == b"+PULL "
        with contextlib.suppress(ConnectionResetError):
            heard.read()  # to the end, which the node makes
        eventually(lambda: replication(node)["connected_slaves"] == "0", "it is forgotten", 30)
        begun = time.monotonic()
        c.ok("REPLICAOF", "127.0.0.1", peer.port)
        peer.link()
        peer.link()
        assert time.monotonic() - begun >= 0.9
        eventually(lambda: "says nothing any more" in node.output(), "said")
        c.ok("REPLICAOF", "NO", "ONE")
    check_unharmed(node)


def test_a_server_that_is_not_active_has_no_feeds(make_server):
    server = make_server()
    with server.connect() as c:
        assert b"no active replica" in c.call("KEYDB.PULL", PULL_VERSION, NODE.hex(), stamp())
        c.call("REPLCONF", "PULL-ACK", "x")
        assert c.call("PING") == b"PONG"
