"""keydb-cli's other modes beside redis-cli 7.0.15: messages of subscriptions and MONITOR, --stat, --scan, --latency,
--pipe; SHUTDOWN and redirections."""

import os
import re
import select
import subprocess
import time

import pytest

from lib.bounds import Bound, BoundPassed
from lib.cli import CLI, PATIENCE_S, THEIRS, Outcome, cli, run, same
from lib.cli_oracle import SEED, STYLES, Oracle, canned, oracle, shared_oracle

# ---- messages ----


def read_until(stream, wanted, patience_s=PATIENCE_S):
    data = b""
    bound = Bound(patience_s)
    while wanted not in data:
        left = bound.left()
        if not left:
            raise BoundPassed("waited for %r, got %r" % (wanted, data))
        if not select.select([stream], [], [], left)[0]:
            continue
        piece = os.read(stream.fileno(), 65536)
        assert piece, "ended with %r" % data
        data += piece
    return data


def streaming(command, first, publish, last):
    with subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        try:
            data = read_until(process.stdout, first)
            publish()
            return data + read_until(process.stdout, last)
        finally:
            process.kill()


@pytest.mark.parametrize("style", ["tty", "raw", "csv", "json", "tty3"])
@pytest.mark.parametrize("command", ["subscribe a b", "psubscribe a* b*", "ssubscribe a b"])
def test_messages_print_alike(oracle, style, command):
    def publish():
        name = "spublish" if command[0:2] == "ss" else "publish"
        assert cli("-p", oracle.port, name, "b", "hello").out == b"1\n"
        assert cli("-p", oracle.port, name, "b", "last").out == b"1\n"

    args = ["-p", oracle.port] + STYLES[style] + command.split()
    second = b"b*" if command[0] == "p" else b"b"
    outs = []
    for program in THEIRS, CLI:
        # redis-cli does not flush RESP3 pushes when its output is no terminal
        flush = ["stdbuf", "-oL"] if program == THEIRS else []
        outs.append(streaming(flush + [program] + args, second, publish, b"last"))
    assert outs[0].split(b"last")[0] == outs[1].split(b"last")[0]


def test_monitor_prints_alike(oracle):
    def act():
        cli("-p", oracle.port, "set", "a", "last")

    for style in "raw", "csv", "tty":
        outs = []
        for program in THEIRS, CLI:
            args = ["-p", oracle.port] + STYLES[style] + ["monitor"]
            outs.append(streaming([program] + args, b"OK", act, b"last"))
        shown = [re.sub(rb"[\d.]+ \[0 127.0.0.1:\d+\]", b"", out) for out in outs]
        assert shown[0].split(b"last")[0] == shown[1].split(b"last")[0]


def test_a_refused_subscription_ends(canned):
    """redis-cli would wait for messages that never come."""
    server = canned(b"-NOPERM no\r\n")
    outcome = cli("-p", server.port, "subscribe", "a")
    assert outcome.out == b"NOPERM no\n\n"
    assert cli("-p", server.port, "-e", "subscribe", "a").status == 1


def test_client_reply_off_and_skip_do_not_wait(oracle):
    """redis-cli waits forever."""
    outcome = cli("-p", oracle.port, stdin=b"client reply off\nset a 5\nclient reply on\nget a\n")
    assert outcome.out == b"OK\n5\n"
    outcome = cli("-p", oracle.port, stdin=b"client reply skip\nset a 6\nget a\n")
    assert outcome.out == b"6\n"


def test_shutdown(tmp_path):
    for program in THEIRS, CLI:
        oracle = Oracle(str(tmp_path))
        try:
            outcome = run(program, ["-p", oracle.port, "shutdown", "nosave"])
            assert outcome == Outcome(0, b"", b"")
            assert oracle.process.wait(timeout=PATIENCE_S) == 0
        finally:
            oracle.stop()


# ---- cluster redirections ----


def test_redirections_are_followed_with_c(canned):
    home = canned(b"$4\r\nhere\r\n")
    moved = canned(b"-MOVED 12182 127.0.0.1:%d\r\n" % home.port)
    ask = canned(b"-ASK 12182 127.0.0.1:%d\r\n" % home.port)
    for server in moved, ask:
        same("-p", server.port, "get", "foo")
        same("-c", "-p", server.port, "get", "foo")
        same("-c", "-p", server.port, stdin=b"get foo\nget foo\n")
    assert [b"ASKING"] in home.commands or [b"asking"] in home.commands


def test_redirections_in_circles_end(canned):
    server = canned(b"")
    server.answer = b"-MOVED 1 127.0.0.1:%d\r\n" % server.port
    outcome = cli("-c", "-p", server.port, "get", "foo")
    assert outcome.status == 1 and b"redirections" in outcome.err


# ---- scan, stat, latency, pipe ----


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--pattern", "s*"],
        ["--quoted-pattern", '"s*"'],
        ["--quoted-pattern", "'s*'"],
        ["--quoted-pattern", '"s*'],
        ["--pattern", "nosuch"],
        ["--no-raw"],
        ["--csv"],
        ["--json"],
        ["-i", "0.01"],
        ["-n", "5"],
        ["ignored"],
    ],
    ids=" ".join,
)
def test_scan_prints_alike(oracle, args):
    cli("-p", oracle.port, "--quoted-input", "set", '"bin\\xff\\n"', "x")
    args = ["-p", oracle.port, "--scan"] + args
    theirs, ours = run(THEIRS, args), run(CLI, args)
    for outcome in theirs, ours:  # the order changes when the server rehashes
        outcome.out = sorted(outcome.out.split(b"\n"))
    assert ours == theirs


def test_scan_prints_zero_bytes(oracle):
    """redis-cli stops at them, where its output is raw."""
    cli("-p", oracle.port, "--quoted-input", "set", '"bin\\x00y"', "x")
    assert cli("-p", oracle.port, "--scan", "--pattern", "bin*").out == b"bin\x00y\n"
    assert cli("-p", oracle.port, "--scan", "--quoted-pattern", '"bin\\x00*"').out == b"bin\x00y\n"


def test_scan_of_many_keys(oracle):
    cli("-p", oracle.port, "debug", "populate", "5000")
    plain = cli("-p", oracle.port, "--scan").out.split()
    assert len(set(plain)) == 5000 + len(SEED) - 1
    before = int(re.search(rb"cmdstat_scan:calls=(\d+)", cli("-p", oracle.port, "info", "commandstats").out).group(1))
    counted = cli("-p", oracle.port, "--scan", "--count", "6000").out.split()
    after = int(re.search(rb"cmdstat_scan:calls=(\d+)", cli("-p", oracle.port, "info", "commandstats").out).group(1))
    assert set(counted) == set(plain)
    assert after - before < 10


def test_scan_errors(canned):
    for answer in b"-ERR no\r\n", b"+OK\r\n", b"*2\r\n:1\r\n*0\r\n", b"*2\r\n$1\r\n0\r\n*1\r\n:1\r\n":
        outcome = cli("-p", canned(answer).port, "--scan")
        assert outcome.status == 1 and outcome.err.startswith(b"ERROR: ")


def test_stat(oracle):
    """The heading and the shape of the rows; the figures differ from run to run."""
    args = ["-p", oracle.port, "--stat", "-i", "0.05"]
    heading = None
    for program in THEIRS, CLI:
        flush = ["stdbuf", "-oL"] if program == THEIRS else []
        with subprocess.Popen(
            flush + [program] + [str(a) for a in args], stdout=subprocess.PIPE
        ) as process:
            lines = [process.stdout.readline() for _ in range(25)]
            process.kill()
        heading = heading or lines[0:2]
        assert lines[0:2] == heading
        assert lines[22:24] == heading, "again after 20 rows"
        for line in lines[2:22]:
            assert re.fullmatch(rb"9          [\d.]+[KM] +1       0       \d+ \(\+\d+\) +\d+ +\n", line), line
    outcome = cli(*args, "-r", "2")
    assert outcome.status == 0 and outcome.out.count(b"\n") == 4


@pytest.mark.parametrize(
    "style,shape",
    [
        ("raw", rb"\d+ \d+ \d+\.\d\d \d+\n"),
        ("csv", rb"\d+,\d+,\d+\.\d\d,\d+\n"),
        ("json", rb'\{"min": \d+, "max": \d+, "avg": \d+\.\d\d, "count": \d+\}\n'),
    ],
)
def test_latency(oracle, style, shape):
    args = ["-p", oracle.port, "-i", "0.1", "--latency"] + STYLES[style]
    for program in THEIRS, CLI:
        outcome = run(program, args)
        assert outcome.status == 0 and re.fullmatch(shape, outcome.out), outcome


def test_latency_history(oracle):
    args = ["-p", str(oracle.port), "-i", "0.05", "--latency-history"]
    with subprocess.Popen([CLI] + args, stdout=subprocess.PIPE) as process:
        lines = [process.stdout.readline() for _ in range(3)]
        process.kill()
    assert all(re.fullmatch(rb"\d+ \d+ \d+\.\d\d \d+\n", line) for line in lines)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"set a 1\r\nset b 2\r\n",
        b"set a 1\r\nfoo\r\nincr str\r\n",
        b"*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\n1\r\n",
        b"lrange list 0 -1\r\nping\r\n",
        b"*2\r\n$4\r\nECHO\r\n$20\r\n12345678901234567890\r\n",
        b"set a 1",
        b"*1\r\n$4\r\nPING\r\n" * 50000,
        b"debug protocol array\r\n" * 100,
    ],
    ids=lambda d: repr(d[:30]),
)
def test_pipe_acts_alike(oracle, data):
    same("-p", oracle.port, "--pipe", stdin=data)


def test_pipe_of_large_replies(oracle):
    """Both directions are full at once."""
    cli("-p", oracle.port, "-x", "set", "big", stdin=b"x" * 1000000)
    outcome = cli("-p", oracle.port, "--pipe", stdin=b"get big\r\n" * 100 + b"set big y\r\n" * 100000)
    assert outcome.out.endswith(b"errors: 0, replies: 100100\n") and outcome.status == 0


def test_pipe_gives_up(oracle, canned):
    start = time.monotonic()
    args = ["-p", oracle.port, "--pipe", "--pipe-timeout", "1"]
    outcome = same(*args, stdin=b"blpop none 0\r\n")
    assert outcome.status == 1
    assert time.monotonic() - start >= 2  # both waited
    # On a closed connection redis-cli ends without a word; we say why.
    theirs = run(THEIRS, args, b"*3\r\n$xx\r\nset\r\n")
    ours = run(CLI, args, b"*3\r\n$xx\r\nset\r\n")
    assert (ours.status, ours.out) == (theirs.status, theirs.out) and theirs.status == 1
    why = rb"Error reading from the server: (Server closed the connection|Connection reset by peer)\n"
    assert ours.err.startswith(theirs.err) and re.fullmatch(why, ours.err[len(theirs.err) :])
    outcome = cli("-p", canned(b"bad\r\n").port, "--pipe", stdin=b"*1\r\n$4\r\nPING\r\n")
    assert outcome.status == 1 and b'got "b"' in outcome.err
