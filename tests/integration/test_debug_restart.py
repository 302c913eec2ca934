"""DEBUG RESTART and CRASH-AND-RECOVER: the program begins anew under the same pid. DEBUG
CLIENT-EVICTION and RELOAD's words."""

import os
import signal
import socket
import time

import pytest

from lib.bounds import eventually, scaled
from lib.resp import Closed, Connection, Error, Timeout
from lib.server import children_of, running_in


def run_id(server):
    try:
        with Connection(server.address(), timeout_s=2.0) as c:
            text = c.call("INFO", "server")
    except (OSError, Closed, Timeout):
        return None
    if isinstance(text, Error):
        return None
    return [line for line in text.split(b"\r\n") if line.startswith(b"run_id:")][0]


def anew(server, *words):
    """Runs the subcommand and waits for the server that follows."""
    before, pid = run_id(server), server.pid
    with server.connect() as c:
        c.send("DEBUG", *words)
        with pytest.raises((Closed, OSError)):
            c.read()
    eventually(lambda: run_id(server) not in (None, before), "the new one", scaled(20))
    assert server.pid == pid and server.alive()


def descriptors(server):
    found = {}
    for name in os.listdir("/proc/%d/fd" % server.pid):
        try:
            found[int(name)] = os.readlink("/proc/%d/fd/%s" % (server.pid, name))
        except OSError:
            pass
    return found


def test_restart(make_server):
    """Nothing is lost, nothing is left open."""
    server = make_server({"save": ["3600", "1000000"]}, files=["dump.rdb"])
    with server.connect() as c:
        c.ok("SET", "k", "v")
    started = len(descriptors(server))
    for n in range(3):
        anew(server, "RESTART")
        with server.connect() as c:
            assert c.call("GET", "k") == b"v"
            assert c.call("INCR", "n") == n + 1
    eventually(lambda: len(descriptors(server)) <= started, "no descriptors are left over")


def test_restart_saves_the_configuration(make_server):
    server = make_server(config="maxmemory-samples 7\nsave \"\"\n")
    with server.connect() as c:
        c.ok("CONFIG", "SET", "maxmemory-samples", "9")
    anew(server, "RESTART")
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "maxmemory-samples")[1] == b"9"


def listens(server):
    try:
        socket.create_connection(server.address(), 1).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize("verb", ["RESTART", "CRASH-AND-RECOVER"])
def test_the_delay(make_server, verb):
    """Nobody listens meanwhile."""
    server = make_server()
    begun = time.monotonic()
    with server.connect() as c:
        c.send("DEBUG", verb, 1500)
        with pytest.raises((Closed, OSError)):
            c.read()
    eventually(lambda: not listens(server), "nobody listens", scaled(20))
    eventually(lambda: run_id(server) is not None, "the new one", scaled(20))
    assert time.monotonic() - begun >= 1.5


def test_crash(make_server):
    """What was not saved is gone; what the log has is not."""
    server = make_server({"save": ["3600", "1000000"], "dir": "."}, files=["dump.rdb"])
    with server.connect() as c:
        c.ok("SET", "saved", "1")
        c.ok("SAVE")
        c.ok("SET", "lost", "1")
    for _ in range(2):
        anew(server, "CRASH-AND-RECOVER")
        with server.connect() as c:
            assert c.call("KEYS", "*") == [b"saved"]
    logged = make_server({"appendonly": "yes"}, files=["appendonlydir"])
    with logged.connect() as c:
        c.ok("SET", "k", "v")
    anew(logged, "CRASH-AND-RECOVER", 100)
    with logged.connect() as c:
        assert c.call("GET", "k") == b"v"


def test_crash_with_a_child(make_server):
    """A child that saves ends with the old program, and no zombie stays."""
    server = make_server({"rdb-key-save-delay": "100000"}, files=["dump.rdb"])
    with server.connect() as c:
        c.ok("DEBUG", "POPULATE", 1000)
        c.call("BGSAVE")
        eventually(lambda: len(running_in(server.pid)) == 2, "a child")
    anew(server, "CRASH-AND-RECOVER")
    eventually(lambda: running_in(server.pid) == [server.pid], "no child")
    eventually(lambda: not children_of(server.pid), "it was waited for")
    for name in os.listdir(server.directory):
        if name.startswith("temp-"):
            os.unlink(server.file(name))


def test_signals(make_server):
    """Mask and dispositions are those of a fresh start; SIGTERM ends it in order (the fixture)."""
    server = make_server({"crash-log-enabled": "yes"})

    def signals():
        with open("/proc/%d/status" % server.pid, encoding="ascii") as file:
            return [line for line in file if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
    before = signals()
    for verb in ("RESTART", "CRASH-AND-RECOVER"):
        anew(server, verb)
        eventually(lambda: signals() == before, "as at the first start")
    os.kill(server.pid, signal.SIGTERM)
    assert server.wait_exit() == 0


def test_systemd_is_told(make_server, tmp_path):
    """Not that the unit stops, but that it reloads, and is ready again."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(tmp_path / "notify"))
        notify.settimeout(scaled(20))
        server = make_server({"supervised": "systemd"}, start=False)
        server.environment = {"NOTIFY_SOCKET": notify.getsockname()}
        server.start()
        assert notify.recv(1000).startswith(b"READY=1\n")
        for verb in ("RESTART", "CRASH-AND-RECOVER"):
            anew(server, verb)
            said = notify.recv(1000)
            assert said.startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert notify.recv(1000).startswith(b"READY=1\n")
        server.stop()
        assert notify.recv(1000).startswith(b"STOPPING=1\n")


def test_what_is_refused(make_server):
    server = make_server()
    with server.connect() as c:
        for verb in ("RESTART", "CRASH-AND-RECOVER"):
            c.error("DEBUG", verb, "x")
            c.error("DEBUG", verb, "1", "2")


def test_a_restart_that_cannot_save_is_off(make_server):
    server = make_server({"save": ["3600", "1"], "stop-writes-on-bgsave-error": "no"},
                         files=["dump.rdb"])
    os.mkdir(server.file("dump.rdb"))
    with server.connect() as c:
        c.ok("SET", "k", "v")
        assert b"failed to restart" in c.error("DEBUG", "RESTART")
        c.ok("SET", "k", "w")
        os.rmdir(server.file("dump.rdb"))
        assert c.call("GET", "k") == b"w"


def test_client_eviction(client, oracle, ours_only):
    for c in (client, oracle.connect()):
        assert c.error("DEBUG", "CLIENT-EVICTION") == b"ERR maxmemory-clients is disabled."
    client.ok("CONFIG", "SET", "maxmemory-clients", "1mb")
    text = client.call("DEBUG", "CLIENT-EVICTION")
    client.ok("CONFIG", "SET", "maxmemory-clients", "0")
    lines = text.decode().splitlines()
    assert lines[0].startswith("limit: 1048576, tot-mem: ")
    assert sum(int(line.split("tot-mem:")[1].split(",")[0]) for line in lines[1:]) > 0


# ---- DEBUG RELOAD's words

LIBRARY = "#!lua name=l\nredis.register_function{function_name='f', flags={'no-writes'}, " \
    "callback=function() return %d end}"


def test_reload_merges(make_server, make_oracle):
    """The file's keys take the place of ours, the others stay; as with redis-server."""
    for server in (make_server(files=["dump.rdb"]), make_oracle()):
        with server.connect() as c:
            c.ok("SET", "both", "file", "PX", 1000000)
            c.call("RPUSH", "list", 1, 2)
            c.ok("SELECT", 2)
            c.ok("SET", "far", "file")
            c.call("FUNCTION", "LOAD", LIBRARY % 1)
            c.ok("SAVE")
            c.ok("SELECT", 0)
            c.ok("SET", "both", "memory")
            c.ok("SET", "list", "memory")
            c.ok("SET", "only", "memory")
            c.call("FUNCTION", "LOAD", "REPLACE", LIBRARY % 2)
            c.ok("DEBUG", "RELOAD", "MERGE", "nosave", "NOFLUSH")
            assert c.call("GET", "both") == b"file" and c.call("TTL", "both") > 900
            assert c.call("LRANGE", "list", 0, -1) == [b"1", b"2"]
            assert c.call("GET", "only") == b"memory"
            assert c.call("FCALL", "f", 0) == 1
            assert c.call("DBSIZE") == 3
            c.ok("DEBUG", "RELOAD", "NOFLUSH", "MERGE")
            assert c.call("DBSIZE") == 3
            c.ok("SET", "more", "memory")
            c.ok("DEBUG", "RELOAD", "NOSAVE")
            assert c.call("DBSIZE") == 3
            c.ok("DEBUG", "RELOAD", "NOSAVE", "MERGE")
            assert c.call("DBSIZE") == 3
            assert c.error("DEBUG", "RELOAD", "NOSAVE", "x") == \
                b"ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."
