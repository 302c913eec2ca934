"""Parts of the data set that a connection asks for (REPLCONF rdb-only, rdb-filter-only), and Debian's
redis-cli and keydb-cli --rdb and --functions-rdb, which do so. Each beside redis-server."""

import contextlib
import os
import subprocess
import threading

import pytest

from lib.bounds import eventually, scaled
from lib.cli import CLI, THEIRS
from lib.replica import Played
from lib.replication import replication
from lib.resp import Closed

pytestmark = pytest.mark.any_threads

NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1000"}
LIBRARY = "#!lua name=lib\nredis.register_function('f', function() return 'from a library' end)"
EOF = ("capa", "eof")


@pytest.fixture(params=["ours", "redis"])
def make(request, make_server, make_oracle):
    """make(**options): a server with a key and a library."""
    def made(**options):
        server = (make_server if request.param == "ours" else make_oracle)(dict(NOW, **options))
        with server.connect() as c:
            assert c.call("FUNCTION", "LOAD", LIBRARY) == b"lib"
            c.ok("SET", "a key", "of mine")
        return server
    return made


@pytest.fixture
def play():
    with contextlib.ExitStack() as stack:
        yield lambda *words: stack.enter_context(contextlib.closing(Played(*words)))


def parts(rdb):
    return {word for word in (b"a key", b"from a library") if word in rdb}


UNSUPPORTED = b"ERR Unsupported rdb-filter-only option: "
BETWEEN = b"ERR value is out of range, value must between 0 and 1"
REPLIES = [
    ("rdb-filter-only", "", b"OK"), ("rdb-filter-only", " \t\n", b"OK"),
    ("RDB-FILTER-ONLY", "Functions", b"OK"), ("rdb-filter-only", "functions", b"OK"),
    ("rdb-filter-only", " functions  FUNCTIONS ", b"OK"), ("rdb-filter-only", '"functions"', b"OK"),
    ("rdb-filter-only", '"func\\x74ions"', b"OK"), ("rdb-filter-only", "'functions'", b"OK"),
    ("rdb-filter-only", "x", UNSUPPORTED + b"x"), ("rdb-filter-only", "functions x", UNSUPPORTED + b"x"),
    ("rdb-filter-only", "func", UNSUPPORTED + b"func"),
    ("rdb-filter-only", "functions,x", UNSUPPORTED + b"functions,x"),
    ("rdb-filter-only", '"x y"', UNSUPPORTED + b"x y"), ("rdb-filter-only", '""', UNSUPPORTED),
    ("rdb-filter-only", "z" * 300, UNSUPPORTED + b"z" * 300),
    ("rdb-filter-only", '"functions', b"ERR Missing rdb-filter-only values"),
    ("rdb-filter-only", "a'b", b"ERR Missing rdb-filter-only values"),
    ("rdb-only", "0", b"OK"), ("rdb-only", "1", b"OK"), ("rdb-only", "2", BETWEEN),
    ("rdb-only", "-1", BETWEEN), ("rdb-only", "x", b"ERR value is not an integer or out of range"),
    ("rdb-only", "", b"ERR value is not an integer or out of range"),
]


def test_replies(make):
    server = make()
    for word, value, reply in REPLIES:
        with server.connect() as c:
            assert c.call("REPLCONF", word, value) == reply, (word, value)
    with server.connect() as c:
        assert c.call("REPLCONF", "rdb-filter-only") == b"ERR syntax error"
        c.ok("REPLCONF", "rdb-filter-only", "functions", "rdb-only", "1")
        for command in ["SYNC"], ["PSYNC", "?", "-1"]:
            assert c.call(*command) == b"ERR Filtered replica requires EOF capability"
        assert c.call("PING") == b"PONG"
    assert replication(server)["connected_slaves"] == "0"


# What is said before, and what comes.
FILTERS = [
    ([("rdb-filter-only", "functions")], {b"from a library"}),
    ([("rdb-filter-only", "")], set()),
    ([("rdb-filter-only", "functions"), ("rdb-filter-only", "")], set()),
    ([("rdb-only", "1"), ("rdb-filter-only", "functions")], {b"from a library"}),
    ([("rdb-only", "1")], {b"a key", b"from a library"}),
    ([], {b"a key", b"from a library"}),
]


@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_what_comes(make, play, diskless):
    """Also behind an option that was refused; by a pipe whatever repl-diskless-sync says."""
    server = make(**{"repl-diskless-sync": diskless})
    for old in True, False:
        for words, wanted in FILTERS:
            p = play(server, EOF, *words)
            assert parts(p.full(old)[2]) == wanted, (old, words)
            p.close()
    p = play(server, EOF)
    for words, wanted in (("x", set()), ("functions x", {b"from a library"})):
        p = play(server, EOF)
        assert p.c.call("REPLCONF", "rdb-filter-only", words).startswith(UNSUPPORTED)
        assert parts(p.full()[2]) == wanted
    eventually(lambda: not [n for n in os.listdir(server.directory) if n.startswith("temp")], "no file")


def test_what_follows(make, play):
    """Who had a part goes on as a replica, once it has acknowledged the mark; who wanted nothing
    more is closed."""
    server = make()
    with server.connect() as c:
        p = play(server, EOF, ("listening-port", 1000), ("rdb-filter-only", "functions"))
        p.full(old=True)
        c.ok("SET", "b", "1")
        p.go_online(server, 1000)
        assert p.command() == [b"SELECT", b"0"] and p.command() == [b"SET", b"b", b"1"]
        about = replication(server)
        q = play(server, EOF, ("rdb-filter-only", "functions"))
        q.c.send("PSYNC", about["master_replid"], int(about["master_repl_offset"]) + 1)
        assert q.line() == b"+CONTINUE"
        for words in ("rdb-only", "1"), ("rdb-filter-only", "functions"):
            only = play(server, EOF, ("rdb-only", "1"), words)
            only.full(old=True)
            c.ok("SET", "b", "2")
            with pytest.raises(Closed):
                only.take(1)
        eventually(lambda: replication(server)["connected_slaves"] == "2", "gone")


def test_parts_and_the_whole_at_once(make, play):
    """Each gets what it asked for, from a transfer of its own."""
    server = make(**{"repl-diskless-sync-delay": "1"})
    players = [play(server, EOF, *words) for words, _ in FILTERS]
    for p in players:
        p.c.send("SYNC")
    for p, (_, wanted) in zip(players, FILTERS):
        head = p.line()
        rdb = p.bytes_all(head[5:]) if head.startswith(b"$EOF:") else p.take(int(head[1:]))
        assert parts(rdb) == wanted


@contextlib.contextmanager
def written_to(server):
    """Somebody writes meanwhile."""
    stopped = threading.Event()

    def write():
        with server.connect() as c:
            while not stopped.is_set():
                c.ok("SET", "other", "x" * 100)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stopped.set()
        writer.join()


@pytest.mark.parametrize("program", [THEIRS, CLI], ids=["redis-cli", "keydb-cli"])
@pytest.mark.parametrize("option", ["--rdb", "--functions-rdb"])
def test_redis_cli(make, make_server, make_oracle, option, program):
    """While others write; the file loads in both servers."""
    server = make()
    file = server.file("fetched.rdb")
    with written_to(server):
        done = subprocess.run([program, "-p", str(server.port), option, file], capture_output=True,
                              check=False, timeout=scaled(20))
        assert done.returncode == 0, done.stderr
    with open(file, "rb") as fetched:
        rdb = fetched.read()
    os.unlink(file)
    for reader in make_server(start=False, files=["dump.rdb"]), make_oracle(start=False):
        with open(reader.file("dump.rdb"), "wb") as copy:
            copy.write(rdb)
        reader.start()
        with reader.connect() as c:
            assert c.call("GET", "a key") == (b"of mine" if option == "--rdb" else None)
            assert c.call("FCALL", "f", 0) == b"from a library"
