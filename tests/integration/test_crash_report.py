"""crash-log-enabled: what the log holds of a crash, and that a crash stays one."""

import os
import re
import signal

import pytest

from lib.modules import path_of
from lib.resp import Closed
from lib.server import Server

pytestmark = pytest.mark.usefixtures("ours_only")

# Ways to die, the signal of it, and what the log says before the report.
WAYS = [("SEGFAULT", signal.SIGSEGV, "DEBUG SEGFAULT"), ("ASSERT", signal.SIGABRT, "Assertion"),
        ("PANIC", signal.SIGABRT, "DEBUG PANIC"), ("OOM", signal.SIGABRT, "Out of memory")]


@pytest.fixture
def doomed(threads):
    """make(options): a server that may die. Nobody asks afterwards how it behaved."""
    servers = []

    def make(options=None):
        server = Server(threads=threads, options=dict(options or {}, logfile="server.log"))
        # Without sanitizers' own handlers, who would end the process in another way.
        server.environment = {"ASAN_OPTIONS": "handle_segv=0:handle_abort=0:disable_coredump=1",
                              "TSAN_OPTIONS": "handle_segv=0:handle_abort=0"}
        servers.append(server)
        return server.start()

    yield make
    for server in servers:
        server.kill()
        server.remove()


def die(server, *words):
    with server.connect() as c:
        c.ok("SET", "greeting", "hello")
        c.send(*words)
        with pytest.raises((Closed, OSError)):
            c.read()
    return server.process.wait(60)


def report_of(server):
    text = server.read("server.log")
    match = re.search(r"=== KEYDB CRASH REPORT begins.*?CRASH REPORT ends[^\n]*\n", text, re.DOTALL)
    return match and match.group(0), text


@pytest.mark.parametrize("way,number,before", WAYS, ids=[way[0] for way in WAYS])
def test_the_report(doomed, threads, way, number, before):
    server = doomed()
    status = die(server, "DEBUG", way)
    report, text = report_of(server)
    assert before in text.split("=== KEYDB")[0]
    assert report and text.count("CRASH REPORT begins") == 1
    assert "crashed by signal %d (%s)" % (number, number.name) in report
    assert status == -number
    assert len(re.findall(r"\(\+0x[0-9a-f]+\)", report)) >= 3  # a backtrace
    assert "cmd=debug" in report and "argv[1] (%d bytes): %s" % (len(way), way) in report
    names = re.findall(r"^thread \d+ (\S+)$", report, re.MULTILINE)
    assert "keydb-server" in names
    assert {"server-%d" % i for i in range(threads)} <= set(names)
    assert "changes:1\n" in report and "connected_clients:" in report
    assert int(re.search(r"^resident_kib:(\d+)$", report, re.MULTILINE).group(1)) > 0


def test_no_report_when_it_is_off(doomed):
    server = doomed()
    with server.connect() as c:
        c.ok("CONFIG", "SET", "crash-log-enabled", "no")
    status = die(server, "DEBUG", "PANIC")
    report, text = report_of(server)
    assert status == -signal.SIGABRT and report is None and "DEBUG PANIC" in text


def test_it_can_be_switched_on_again(doomed):
    server = doomed({"crash-log-enabled": "no"})
    with server.connect() as c:
        c.ok("CONFIG", "SET", "crash-log-enabled", "yes")
    die(server, "DEBUG", "PANIC")
    report, _ = report_of(server)
    assert report


def test_exit_in_place_of_abort(doomed):
    server = doomed({"use-exit-on-panic": "yes"})
    status = die(server, "DEBUG", "PANIC")
    report, _ = report_of(server)
    assert status == 1 and report


def test_a_signal_from_outside(doomed):
    server = doomed()
    os.kill(server.pid, signal.SIGSEGV)
    status = server.process.wait(60)
    report, _ = report_of(server)
    assert status == -signal.SIGSEGV and "Sent by process %d" % os.getpid() in report
    assert "--- The command of this thread\nnone\n" in report


def test_passwords_stay_out(doomed):
    """A script that brings the server down while it sets a password."""
    server = doomed()
    with server.connect() as c:
        c.ok("SET", "greeting", "hello")
        c.send("CONFIG", "SET", "requirepass", "very-secret", "dir", "x" * 200)
        c.read()
        os.kill(server.pid, signal.SIGSEGV)
    server.process.wait(60)
    report, text = report_of(server)
    assert report and "very-secret" not in text


def test_a_module_is_named(doomed):
    server = doomed({"loadmodule": [path_of("example")]})
    assert die(server, "EX.CALL", "forward", "-", "DEBUG", "SEGFAULT") == -signal.SIGSEGV
    report, _ = report_of(server)
    assert "within module example\n" in report and "cmd=debug" in report


@pytest.mark.parametrize("how", ("no more", "fault", pytest.param("wait", marks=pytest.mark.long)))
def test_what_modules_add(doomed, how):
    """They are asked in a child: whatever they do there, the report has its end, and the crash stays what it was."""
    server = doomed({"loadmodule": [path_of("told"), how], "enable-debug-command": "yes"})
    assert die(server, "DEBUG", "PANIC") == -signal.SIGABRT
    report, _ = report_of(server)
    said = report.split("--- What modules say\n")[1]
    if how == "no more":
        assert "# told_crash\ntold_is:reported\n" in said and "told_negative:-9223372036854775808\n" in said
        assert "told_Other" in said and "not all of them" not in said
    else:
        number = signal.SIGSEGV if how == "fault" else signal.SIGALRM
        assert "not all of them, or none: what was asked ended by signal %d\n" % number in said
