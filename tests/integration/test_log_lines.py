"""The lines of the log that containers, supervisors and test harnesses wait for: Redis 7.2's words, in their order."""

import os
import re
import signal

import pytest

from lib.bounds import eventually
from lib.primary import HISTORY, HandMadePrimary

pytestmark = pytest.mark.any_threads

PID = r" PID: {pid}\b"
START = [PID, r"Running mode=standalone, port={port}\.", r"Server initialized\n"]
READY = r"Ready to accept connections tcp\n"
END = r"Redis is now ready to exit, bye bye\.\.\.\n"


def assert_said(server, lines, pid, since=0):
    """They stand in the log in this order."""
    pattern = ".*?".join(lines).format(pid=pid, port=server.port)
    assert re.search(pattern, server.output()[since:], re.DOTALL), server.output()[since:]


def test_start_and_end(make_server, ours_only):
    server = make_server({"save": ["3600", "1"]})
    server.expected_files.add("dump.rdb")
    first = server.pid
    with server.connect() as c:
        c.ok("SET", "k", "v")
    server.stop()
    assert_said(server, START + [READY, r"Received SIGTERM scheduling shutdown\.\.\.", r"User requested shutdown\.\.\.",
                                 r"Saving the final RDB snapshot before exiting\.", "DB saved on disk", END], first)
    before = len(server.output())
    server.start()
    second = server.pid
    with server.connect() as c:
        c.send("SHUTDOWN", "NOSAVE")
        assert server.wait_exit() == 0
    assert_said(server, START + [r"DB loaded from disk: \d+\.\d\d\d seconds", READY, r"User requested shutdown\.\.\.", END],
                second, before)


def test_start_with_a_log(make_server, ours_only):
    server = make_server({"appendonly": "yes", "unixsocket": "s.sock"})
    server.expected_files |= {"appendonlydir", "s.sock"}
    server.stop()
    before = len(server.output())
    server.start()
    assert_said(server, START + [r"DB loaded from append only file: \d+\.\d\d\d seconds", READY,
                                 r"Ready to accept connections unix\n"], server.pid, before)


# -- children

def assert_child_said(server, begin, started, ends, killed=False):
    """What one BGSAVE or BGREWRITEAOF says in the log."""
    before = len(server.output())
    with server.connect() as c:
        if killed:
            c.ok("CONFIG", "SET", "rdb-key-save-delay", "10000000")
        assert isinstance(c.call(begin), bytes)
        pid = int(eventually(lambda: re.findall(started + r" by pid (\d+)\n", server.output()[before:]), "a child")[0])
        if killed:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: re.search(ends, server.output()[before:]), "the end in the log: " + ends)
        c.ok("CONFIG", "SET", "rdb-key-save-delay", "0")


CHILDREN = [("BGSAVE", "Background saving started", "Background saving"),
            ("BGREWRITEAOF", "Background append only file rewriting started", "Background AOF rewrite")]


@pytest.mark.parametrize("begin,started,name", CHILDREN)
def test_children_that_end_well_and_that_are_killed(make_server, begin, started, name):
    server = make_server()
    server.expected_files |= {"dump.rdb", "appendonlydir"}
    with server.connect() as c:
        for n in range(20):
            c.ok("SET", "k%d" % n, "v")
    assert_child_said(server, begin, started, name + r" terminated with success\n")
    assert_child_said(server, begin, started, name + r" terminated by signal 9\n", killed=True)
    assert_child_said(server, begin, started, name + r" terminated with success\n")


def test_a_save_that_fails(make_server, ours_only):
    server = make_server()
    with server.connect() as c:
        c.ok("SET", "k", "v")
        os.mkdir(server.file("dump.rdb"))  # nothing can be renamed to that
        assert_child_said(server, "BGSAVE", "Background saving started", r"Background saving error")
        os.rmdir(server.file("dump.rdb"))


# -- a link that breaks

@pytest.fixture
def primary():
    made = HandMadePrimary()
    yield made
    made.close()


def said(server, text, times=1):
    eventually(lambda: server.output().count(text) >= times, "the log says: " + text)


def connected(primary, empty):
    """A link that has its data set; what it asked."""
    transfer = primary.transfer()
    transfer.say()
    assert transfer.send(b"$%d\r\n" % len(empty) + empty)
    return transfer


EMPTY = b"REDIS0010\xff" + bytes(8)


def test_why_a_link_broke_and_that_it_is_tried_again_at_once(make_server, ours_only, primary):
    server = make_server({"repl-timeout": "600", "replica-read-only": "no"})
    server.expected_files.add("dump.rdb")
    with server.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", str(primary.port))
        link = connected(primary, EMPTY)
        said(server, "Following primary")
        link.end()
        said(server, "again at once")
        assert re.search("has ended: (closed by the other side|Connection reset by peer), again at once", server.output())
        again = primary.transfer()
        assert again.asked[1] == HISTORY and again.asked[2] == b"1001"
        again.send(b"+CONTINUE\r\n")
        said(server, "Following primary", 2)
        again.send(b"no command at all\x00\r\n*x\r\n")
        said(server, "has ended: what came is no stream of commands")
        third = connected(primary, EMPTY)
        said(server, "Following primary", 3)
        c.ok("CONFIG", "SET", "repl-timeout", "2")  # not before: this test itself may be held up for that long
        said(server, "has ended: nothing was heard within repl-timeout")
        third.end()
        primary.close()
        said(server, ": Connection refused")
        c.ok("REPLICAOF", "NO", "ONE")
