"""MONITOR sees the commands of all threads, each once, whole lines."""

import re
import socket

import pytest

from lib.bounds import eventually

pytestmark = pytest.mark.one_thread("a monitor is on the thread of those that it watches")

LINE = re.compile(rb"[0-9]{10}\.[0-9]{6} \[([0-9]+) ([^ ]+)\] (.*)\Z")


def monitor(connect):
    watcher = connect()
    watcher.ok("MONITOR")
    return watcher


def take(watcher, count):
    return [LINE.match(watcher.read()).groups() for _ in range(count)]


def test_lines(connect):
    watcher, client = monitor(connect), connect()
    client.ok("SELECT", "2")
    client.ok("SET", "k", "a\"b\\\r\n\x00\xff\t")
    client.call("get", "k")
    peer = b"%s:%d" % (client.sock.getsockname()[0].encode(), client.sock.getsockname()[1])
    lines = take(watcher, 3)
    assert lines[0][1] == peer and lines[0][2] == b'"SELECT" "2"'
    assert lines[1] == (b"2", peer, b'"SET" "k" "a\\"b\\\\\\r\\n\\x00\\xc3\\xbf\\t"')
    assert lines[2] == (b"2", peer, b'"get" "k"')


def test_commands_of_all_threads_each_once(connect, threads):
    watcher = monitor(connect)
    clients = [connect() for _ in range(4 * threads)]
    for turn in range(20):
        for number, client in enumerate(clients):
            client.send("ECHO", "%d-%d" % (number, turn))
    for client in clients:
        for _ in range(20):
            client.read()
    words = [line[2] for line in take(watcher, 20 * len(clients))]
    assert sorted(words) == sorted(b'"ECHO" "%d-%d"' % (number, turn)
                                   for turn in range(20) for number in range(len(clients)))
    for number in range(len(clients)):
        own = [w for w in words if w.startswith(b'"ECHO" "%d-' % number)]
        assert own == [b'"ECHO" "%d-%d"' % (number, turn) for turn in range(20)]
    assert watcher.nothing_comes()


def test_secrets_are_not_shown(connect, oracle):
    """And what an administrator does is not shown at all; as the oracle has it."""
    shown = []
    for server in (None, oracle):
        watcher, client = connect(to=server), connect(to=server)
        watcher.ok("MONITOR")
        for words in (["AUTH", "secret-word"], ["AUTH", "default", "secret-word"],
                      ["CONFIG", "SET", "requirepass", ""], ["CONFIG", "GET", "port"],
                      ["HELLO", "2", "AUTH", "default", "secret-word"], ["SLOWLOG", "LEN"],
                      ["CLIENT", "ID"], ["DEBUG", "SLEEP", "0"], ["INFO"], ["TIME"], ["PING"]):
            client.call(*words)
        lines = [LINE.match(watcher.read()).group(3)]
        while lines[-1] != b'"PING"':
            lines.append(LINE.match(watcher.read()).group(3))
        shown.append(lines)
    assert shown[0] == shown[1]
    assert b"secret-word" not in b"".join(shown[0])


def test_refused_commands_are_not_shown(connect):
    watcher, client = monitor(connect), connect()
    client.call("NOPE")
    client.call("GET")
    client.call("PING")
    assert take(watcher, 1)[0][2] == b'"PING"'


def test_a_monitor_that_wants_no_replies(connect, oracle):
    """A line is no push: CLIENT REPLY OFF holds it back, as with the oracle."""
    for server in (None, oracle):
        watcher, client = connect(to=server), connect(to=server)
        watcher.send("CLIENT", "REPLY", "OFF")
        watcher.send("MONITOR")
        assert watcher.nothing_comes()
        client.ok("SET", "k", "1")
        assert watcher.nothing_comes()
        watcher.send("CLIENT", "REPLY", "ON")
        assert watcher.read() == b"OK"
        assert watcher.read().endswith(b'"CLIENT" "REPLY" "ON"')
        client.ok("SET", "k", "2")
        assert watcher.read().endswith(b'"SET" "k" "2"')


def test_the_monitor_may_leave_or_die(connect):
    client = connect()
    for _ in range(10):
        monitor(connect).close()
        hard = monitor(connect)
        client.pipeline([["PING"]] * 50)
        hard.reset_hard()
        client.pipeline([["PING"]] * 50)
    watcher = monitor(connect)
    name = str([i for i in client.call("CLIENT", "LIST", "TYPE", "normal").split(b"\n") if i][-1])
    assert "flags=O" in name
    watcher.send("RESET")
    eventually(lambda: b"flags=O" not in client.call("CLIENT", "LIST"), "RESET ends MONITOR")


def lines_that_nobody_reads(watcher, client):
    """Lets a monitor have 20 MB of lines: the kernel keeps a fifth of that at most (tcp_wmem)."""
    # A small window: what the kernel keeps for a reader that does not read stays small.
    watcher.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    watcher.ok("MONITOR")
    data = b"*2\r\n$4\r\nECHO\r\n$10000\r\n" + b"x" * 10_000 + b"\r\n"
    for _ in range(10):
        client.exchange(data * 200, 200)


@pytest.mark.parametrize("limit", ["normal 1mb 1mb 0", "replica 1mb 1mb 0"])
def test_a_monitor_that_does_not_read_is_closed(make_server, limit):
    """A monitor is a normal client; where those have no limit (the default), it has the replicas'."""
    server = make_server({"client-output-buffer-limit": limit.split()})
    with server.connect() as watcher, server.connect() as client:
        lines_that_nobody_reads(watcher, client)
        eventually(lambda: b"flags=O" not in client.call("CLIENT", "LIST"),
                   "the monitor over its limit is closed")


def test_a_monitor_has_the_normal_limit_where_there_is_one(make_server):
    """A smaller limit for replicas is none of its business then."""
    server = make_server({"client-output-buffer-limit":
                          ["normal", "100mb", "100mb", "0", "replica", "1mb", "1mb", "0"]})
    with server.connect() as watcher, server.connect() as client:
        lines_that_nobody_reads(watcher, client)
        assert b"flags=O" in client.call("CLIENT", "LIST")
