"""keydb-cli --rdb, --functions-rdb and --replica: beside redis-cli 7.0.15 against a primary that sends what the
test chose, and against real ones. What the server's side of it sends is test_rdb_asked_for.py's."""

import os
import re
import signal
import socket
import stat
import subprocess

import pytest

from lib.bounds import eventually
from lib.cli import CLI, PATIENCE_S, THEIRS, Listener, cli, run, same

pytestmark = pytest.mark.any_threads

NOW = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1000"}
MARK = b"0123456789abcdef0123456789abcdef01234567"


class Primary(Listener):
    """Says OK to each REPLCONF but those in `refused`, sends `answer` to SYNC, and closes, or stays
    open until the other side goes."""

    def __init__(self, answer, close=True, refused=()):
        self.answer, self.close, self.refused = answer, close, refused
        self.requests = []
        super().__init__()

    def _serve(self, connection):
        with connection.makefile("rb") as lines:
            while head := lines.readline().strip():
                self._answer(connection, self._words(head, lines))

    @staticmethod
    def _words(head, lines):
        """Of a command, inline or not."""
        if not head.startswith(b"*"):
            return head.split()
        words = []
        for _ in range(int(head[1:])):
            words.append(lines.read(int(lines.readline()[1:])))
            lines.readline()
        return words

    def _answer(self, connection, words):
        self.requests.append(words)
        if words[0] == b"SYNC":
            connection.sendall(self.answer)
            if self.close:
                connection.shutdown(socket.SHUT_WR)
        elif words[1] != b"ACK":
            connection.sendall(b"-ERR no\r\n" if words[1] in self.refused else b"+OK\r\n")


@pytest.fixture
def primary():
    started = []

    def start(*args, **options):
        started.append(Primary(*args, **options))
        return started[-1]
    yield start
    for each in started:
        each.stop()


# ---- --rdb ----

COUNTED = b"$10\r\nREDIS01234"
MARKED = b"$EOF:" + MARK + b"\r\nREDIS01234" + MARK


@pytest.mark.parametrize("refused", [(), (b"capa", b"rdb-only"), (b"rdb-filter-only",)], ids=repr)
@pytest.mark.parametrize("option", ["--rdb", "--functions-rdb"])
@pytest.mark.parametrize("answer", [COUNTED, b"\n\n\n" + COUNTED, MARKED, b"-ERR no\r\n", b""], ids=lambda a: repr(a)[:20])
def test_as_redis_cli(primary, tmp_path, answer, option, refused):
    file = tmp_path / "got.rdb"
    server = primary(answer, refused=refused)
    seen = []
    for program in THEIRS, CLI:
        outcome = run(program, ["-p", server.port, option, file])
        err = outcome.err.replace(b"\r\n", b"\n")  # redis-cli shows the end of an error's line
        seen.append((outcome.status, outcome.out, err, file.read_bytes() if file.exists() else None))
        file.unlink(missing_ok=True)
        assert os.listdir(tmp_path) == []
    assert seen[0] == seen[1]
    assert server.requests[: len(server.requests) // 2] == server.requests[len(server.requests) // 2 :]
    good = answer[-10:] in (b"REDIS01234", MARK[-10:]) and (refused != (b"rdb-filter-only",) or option == "--rdb")
    assert seen[1][0] == (0 if good else 1) and seen[1][3] == (b"REDIS01234" if good else None)


def test_to_standard_output(primary):
    assert same("-p", primary(COUNTED).port, "--rdb", "-").out == b"REDIS01234"
    # redis-cli prints the mark, too.
    outcome = cli("-p", primary(MARKED).port, "--rdb", "-")
    assert outcome.out == b"REDIS01234" and outcome.status == 0
    outcome = cli("-p", primary(b"$20\r\nREDIS").port, "--rdb", "-")
    assert outcome.out == b"REDIS" and outcome.status == 1


@pytest.mark.parametrize("answer", [
    b"$10\r\nREDIS", b"$EOF:" + MARK + b"\r\nREDIS" + MARK[:39], b"$9000000000000000000\r\nREDIS",
    b"$-1\r\n", b"$0\r\n", b"$99999999999999999999\r\nabc", b"$EOF:abc\r\nxxx", b"+OK\r\n", b"x" * 5000,
    b"-\x1b[2J\r\n", b"$10", b"\n" * 5000,
], ids=lambda a: repr(a)[:20])
def test_a_broken_transfer_leaves_no_file(primary, tmp_path, answer):
    """Nor harms one that is there. (redis-cli leaves the part it has got, and takes nonsense for a
    transfer with a mark.)"""
    file = tmp_path / "got.rdb"
    for old in None, b"what was there":
        if old:
            file.write_bytes(old)
        outcome = cli("-p", primary(answer).port, "--rdb", file)
        assert outcome.status == 1 and outcome.err.count(b"\n") in (3, 4)
        assert b"\x1b" not in outcome.err
        assert os.listdir(tmp_path) == (["got.rdb"] if old else [])
        assert not old or file.read_bytes() == old


def test_a_large_one_in_both_forms(primary, tmp_path):
    """With beginnings of the mark inside, and the mark across the pieces that are read."""
    file = tmp_path / "got.rdb"
    for size in 1, 65535, 65536 - 47, 65536 - 60, 3_000_000:
        data = (b"REDIS" + MARK[:39] + b"x") * (size // 45 + 1)
        for answer in b"$%d\r\n" % len(data) + data, b"$EOF:" + MARK + b"\r\n" + data + MARK:
            assert cli("-p", primary(answer).port, "--rdb", file).status == 0
            assert file.read_bytes() == data
            file.unlink()


def test_where_it_cannot_be_written(primary, tmp_path):
    outcome = same("-p", primary(COUNTED).port, "--rdb", tmp_path / "none" / "got.rdb")
    assert outcome.status == 1
    outcome = cli("-p", primary(COUNTED).port, "--rdb", "/dev/full")
    assert outcome.status == 1 and b"No space left on device" in outcome.err
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    assert cli("-p", primary(COUNTED).port, "--rdb", "/dev/null").status == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    outcome = cli("-p", primary(COUNTED).port, "--rdb", tmp_path)
    assert outcome.status == 1 and b"Is a directory" in outcome.err


def test_a_link_stays_a_link(primary, tmp_path):
    (tmp_path / "link.rdb").symlink_to(tmp_path / "real.rdb")
    (tmp_path / "real.rdb").write_bytes(b"old")
    assert cli("-p", primary(COUNTED).port, "--rdb", tmp_path / "link.rdb").status == 0
    assert (tmp_path / "link.rdb").is_symlink()
    assert (tmp_path / "real.rdb").read_bytes() == b"REDIS01234"


def test_ctrl_c_leaves_no_file(primary, tmp_path):
    server = primary(b"$100\r\nREDIS", close=False)
    with subprocess.Popen([CLI, "-p", str(server.port), "--rdb", "got.rdb"], cwd=tmp_path,
                          stderr=subprocess.DEVNULL) as process:
        eventually(lambda: [n for n in os.listdir(tmp_path) if os.stat(tmp_path / n).st_size == 5], "the beginning",
                   PATIENCE_S)
        assert not (tmp_path / "got.rdb").exists()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_with_a_password_and_real_servers(make_server, make_oracle, tmp_path, diskless):
    options = {**NOW, "requirepass": "secret", "repl-diskless-sync": diskless}
    for server in make_server(options, password="secret"), make_oracle(options):
        file = tmp_path / "got.rdb"
        outcome = cli("-p", server.port, "--rdb", file, env={"REDISCLI_AUTH": "secret"})
        assert outcome.status == 0, outcome
        assert file.read_bytes().startswith(b"REDIS00")
        file.unlink()
        outcome = cli("-p", server.port, "--rdb", file)
        assert outcome.status == 1 and b"NOAUTH" in outcome.err and not file.exists()


# ---- --replica ----

STREAM = b"""*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nset\r\n$1\r\na\r\n$4\r\nb"\n\xff\r\n*1\r\n$4\r\nPING\r\n"""
PRINTED = b'"SELECT","0"\n"set","a","b\\"\\n\\xff"\n"PING"\n'


@pytest.mark.parametrize("style", ["--raw", "--no-raw", "--csv", "-2"])
def test_stream_as_redis_cli(primary, style):
    server = primary(COUNTED + STREAM)
    theirs = run(THEIRS, ["-p", server.port, "--replica", style])
    ours = run(CLI, ["-p", server.port, "--replica", style])
    assert ours.out == theirs.out == PRINTED
    assert ours.status == theirs.status == 1
    # redis-cli 7.2 says "Full resync" where 7.0 says "SYNC".
    said = theirs.err.replace(b"SYNC with master, ", b"Full resync with master, ").replace(b"SYNC done", b"Full resync done")
    assert ours.err == said
    assert b"Full resync done. Logging commands from master.\n" in ours.err


def test_stream_behind_a_mark(primary):
    """Empty lines are signs of life. An acknowledgement of the mark lets the stream begin."""
    server = primary(MARKED + STREAM + b"\n\n" + STREAM)
    outcome = cli("-p", server.port, "--slave")
    assert outcome.out == PRINTED * 2 and outcome.status == 1
    assert b"Full resync done after 50 bytes. Logging commands from master.\nsending REPLCONF ACK 0\n" in outcome.err
    # It may have said so more than once, and the other side reads it when it gets to it.
    eventually(lambda: [b"REPLCONF", b"ACK", b"0"] in server.requests, "an acknowledgement")
    assert server.requests[:4] == [[b"REPLCONF", b"capa", b"eof"], [b"REPLCONF", b"rdb-filter-only", b""], [b"SYNC"],
                                   [b"REPLCONF", b"ACK", b"0"]]


@pytest.mark.parametrize("answer,wanted", [
    (b"-ERR no\r\n", rb"SYNC with master failed: -ERR no\n"),
    (b"+what\r\n", rb"SYNC with master failed: \+what\n"),
    (b"$10\r\nREDI", rb"Error reading RDB payload while Full resyncing\n"),
    (b"$EOF:" + MARK + b"\r\nREDIS", rb"Error reading RDB payload while Full resyncing\n"),
    (COUNTED + b"garbage\r\n", rb'Error: Protocol error, got "g" as reply type byte\n'),
    (COUNTED + b"*1\r\n$4\r\nPI", rb"Error: Server closed the connection\n"),
    (COUNTED + b"*99999999999\r\n", rb"Error: .*\n"),
], ids=lambda v: repr(v)[:30])
def test_streams_that_are_none(primary, answer, wanted):
    outcome = cli("-p", primary(answer).port, "--replica")
    assert outcome.status == 1 and re.search(wanted + b"$", outcome.err) and outcome.out == b""


def test_stream_of_real_servers(make_server, make_oracle, tmp_path):
    for server in make_server(NOW), make_oracle(NOW):
        seen = tmp_path / "seen"
        with open(seen, "wb") as out, server.connect() as c:
            process = subprocess.Popen([CLI, "-p", str(server.port), "--replica"], stdout=out,
                                       stderr=subprocess.DEVNULL)
            try:
                eventually(lambda: b"state=online" in c.call("INFO", "replication"), "online", PATIENCE_S)
                c.ok("SET", "a", 'b"\n\xff')
                c.call("HSET", "h", "f", "v")
                eventually(lambda: b'"f","v"\n' in seen.read_bytes(), "the last command", PATIENCE_S)
            finally:
                process.kill()
                process.wait()
        lines = [line for line in seen.read_bytes().lower().splitlines() if line != b'"ping"']
        assert lines == [b'"select","0"', b'"set","a","b\\"\\n\\xc3\\xbf"', b'"hset","h","f","v"']
