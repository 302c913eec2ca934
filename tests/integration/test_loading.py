"""Loading while the server listens: who is answered and how, figures, the end in the middle."""

import os
import signal
import socket
import tempfile
import threading

import pytest

from integration.test_rdb import make, until, with_file  # noqa: F401 (a fixture)
from lib.resp import Closed, Error, Timeout, encode
from lib.server import ORACLE, Server, parse_info

pytestmark = pytest.mark.one_thread("clients are answered by the thread that loads")

KEYS = 5000
LOADING = b"LOADING Redis is loading the dataset in memory"
# So slow that a test decides when it ends: 5,000 keys take more than any bound.
SLOWLY = {"key-load-delay": "20000", "loading-process-events-interval-bytes": "1024"}


@pytest.fixture(scope="module")
def data():
    oracle = Server(ORACLE, options={"save": ""}).start()
    oracle.expected_files.add("dump.rdb")
    try:
        with oracle.connect() as c:
            c.ok("DEBUG", "POPULATE", KEYS)
            c.ok("SAVE")
        with open(oracle.file("dump.rdb"), "rb") as file:
            return file.read()
    finally:
        oracle.stop()
        oracle.remove()


class Loading(Server):
    """Counts as started when it answers at all."""

    def _wait_ready(self):
        def answers():
            assert self.process.poll() is None, self.output()
            try:
                with self.connect(timeout_s=5.0) as c:
                    c.call("PING")
                return True
            except (OSError, Closed, Timeout):
                return False
        until(answers)


@pytest.fixture
def loading(threads, data):
    server = Loading(threads=threads, options=dict(SLOWLY))
    server.expected_files.add("dump.rdb")
    with open(server.file("dump.rdb"), "wb") as file:
        file.write(data)
    server.start()
    yield server
    server.stop()
    problems = server.problems()
    server.remove()
    assert not problems, problems


def finish(server, keys=KEYS):
    with server.connect() as c:
        c.ok("CONFIG", "SET", "key-load-delay", "0")
        until(lambda: not isinstance(c.call("PING"), Error))
        assert c.call("DBSIZE") == keys


def test_answers_while_loading(loading):
    with loading.connect() as c, loading.connect() as other:
        for refused in (["PING"], ["GET", "key:1"], ["SET", "a", "b"], ["DBSIZE"], ["BGSAVE"],
                        ["SAVE"], ["FLUSHALL"], ["WAIT", 0, 0], ["MEMORY", "USAGE", "a"],
                        ["KEYS", "*"], ["DUMP", "a"]):
            reply = c.call(*refused)
            assert isinstance(reply, Error) and reply == LOADING, refused
        assert c.call("ECHO", "x") == b"x"
        c.ok("SELECT", 1)
        c.ok("SELECT", 0)
        assert c.call("LASTSAVE") > 0
        assert c.call("CONFIG", "GET", "save") == [b"save", b""]
        assert c.call("PUBLISH", "ch", "m") == 0
        assert c.call("NOSUCH").startswith(b"ERR unknown command")
        assert c.call("GET").startswith(b"ERR wrong number")
        c.ok("MULTI")
        assert c.call("GET", "a") == LOADING
        assert c.call("EXEC").startswith(b"EXECABORT")
        c.ok("MULTI")
        assert c.call("ECHO", "y") == b"QUEUED"
        assert c.call("EXEC") == [b"y"]
        # A pipeline is answered in order.
        other.send_raw(b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nz\r\n*1\r\n$4\r\nPING\r\n")
        assert [other.read(), other.read(), other.read()] == [LOADING, b"z", LOADING]
    finish(loading)


def test_figures_while_loading(loading, data):
    with loading.connect() as c:
        info = parse_info(c.call("INFO", "persistence"))
        assert info["loading"] == "1" and info["async_loading"] == "0"
        assert int(info["loading_total_bytes"]) == len(data)
        assert 0 <= int(info["loading_loaded_bytes"]) <= len(data)
        assert 0 <= float(info["loading_loaded_perc"]) <= 100
        assert int(info["loading_start_time"]) > 0
        assert int(info["loading_rdb_used_mem"]) > 0
        assert int(info["loading_eta_seconds"]) >= 1
    finish(loading)
    info = loading.info("persistence")
    assert info["loading"] == "0" and "loading_total_bytes" not in info
    assert info["rdb_last_load_keys_loaded"] == str(KEYS)
    assert "Ready to accept connections" in loading.output()


def test_systemd_hears_of_it(threads, data):
    """STATUS and longer time-outs while loading, READY when everything is there and not before."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, \
            tempfile.TemporaryDirectory(prefix="kt-notify-") as directory:
        notify.bind(os.path.join(directory, "notify"))
        notify.settimeout(20)
        server = Loading(threads=threads, options=dict(SLOWLY, supervised="systemd"))
        server.expected_files.add("dump.rdb")
        server.environment = {"NOTIFY_SOCKET": notify.getsockname()}
        with open(server.file("dump.rdb"), "wb") as file:
            file.write(data)
        try:
            server.start()
            assert notify.recv(4096).startswith(b"STATUS=Loading the data set: 0 %")
            assert notify.recv(4096).startswith(b"EXTEND_TIMEOUT_USEC=60000000")
            finish(server)
            heard = b""
            while b"READY=1" not in heard:
                assert heard == b"" or heard.startswith((b"STATUS=Loading", b"EXTEND_TIMEOUT_USEC="))
                heard = notify.recv(4096)
            server.stop()
            assert not server.problems(), server.problems()
        finally:
            server.kill()
            server.remove()


def test_end_while_loading(loading):
    """SIGTERM: it ends at once, by itself, and leaves the file as it is."""
    before = open(loading.file("dump.rdb"), "rb").read()
    loading.process.send_signal(signal.SIGTERM)
    assert loading.wait_exit() == 0
    assert open(loading.file("dump.rdb"), "rb").read() == before


@pytest.mark.parametrize("how", [["SHUTDOWN"], ["SHUTDOWN", "SAVE"], ["SHUTDOWN", "NOSAVE"]])
def test_shutdown_while_loading(loading, how):
    """What is half there never takes the place of the whole."""
    before = open(loading.file("dump.rdb"), "rb").read()
    with loading.connect() as c:
        c.send(*how)
        assert loading.wait_exit() == 0
    assert open(loading.file("dump.rdb"), "rb").read() == before


def test_world_stops_while_loading(loading):
    """CONFIG SET and CLIENT LIST need the world, which the loader lets them have."""
    errors = []

    def ask():
        try:
            with loading.connect() as c:
                for i in range(30):
                    c.ok("CONFIG", "SET", "hash-max-listpack-entries", str(100 + i))
                    assert c.call("CLIENT", "LIST")
                    assert c.call("INFO")
        except Exception as trouble:  # shown below
            errors.append(trouble)
    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert not errors
    finish(loading)


@pytest.mark.parametrize("where", [0.5, 0.98])
def test_damage_found_while_listening(threads, data, where):
    broken = bytearray(data)
    for i in range(int(len(data) * where), int(len(data) * where) + 8):
        broken[i] ^= 0xff
    server = Server(threads=threads, options={"loading-process-events-interval-bytes": "1024"})
    server.expected_files.add("dump.rdb")
    with open(server.file("dump.rdb"), "wb") as file:
        file.write(broken)
    try:
        text = server.start_fails()
        assert "exit status 1" in text and "Cannot load dump.rdb" in text and "at offset" in text
        assert open(server.file("dump.rdb"), "rb").read() == bytes(broken)
    finally:
        server.kill()
        server.remove()


def test_subscriber_and_blocked_commands_while_loading(loading):
    """Events of keys that are loaded are nobody's: they were written long ago."""
    with loading.connect() as c, loading.connect() as events:
        c.ok("CONFIG", "SET", "notify-keyspace-events", "KEAn")
        events.send("PSUBSCRIBE", "__key*__:*")
        assert events.read()[0] == b"psubscribe"
        assert c.call("BLPOP", "l", 0) == LOADING
        finish(loading)
        c.ok("SET", "after", "x")
        assert events.read()[2].endswith(b"after")


@pytest.fixture
def logged(threads):
    """logged(script): a server with a log of a few commands, of which one is the script."""
    made = []

    def make_logged(script):
        server = Loading(threads=threads, options={"appendonly": "yes", "save": "", "busy-reply-threshold": "50"})
        made.append(server)
        folder = server.file("appendonlydir")
        os.mkdir(folder)
        server.expected_files.add("appendonlydir")
        with open(os.path.join(folder, "appendonly.aof.manifest"), "w") as file:
            file.write("file appendonly.aof.1.incr.aof seq 1 type i\n")
        with open(os.path.join(folder, "appendonly.aof.1.incr.aof"), "wb") as file:
            for words in (("SELECT", "0"), ("SET", "a", "1"), ("EVAL", script, "0"), ("SET", "b", "2")):
                file.write(encode(*words))
        return server.start()
    yield make_logged
    for server in made:
        server.stop()
        problems = server.problems()
        server.remove()
        assert not problems, problems


@pytest.mark.parametrize("how", ["SHUTDOWN", "SIGTERM"])
def test_a_script_of_the_log_that_takes_long(logged, how):
    """However small the log is. Clients are answered, and the end is not held up."""
    server = logged("while true do end")
    with server.connect() as c:
        busy = b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        until(lambda: c.call("ECHO", "x") == Error(busy))
        for refused in ("PING", "GET a", "SET a b", "DBSIZE", "SCRIPT KILL", "FLUSHALL", "MULTI x"):
            assert c.call(*refused.split()) == LOADING or refused == "MULTI x", refused
        for refused in ("INFO", "CONFIG GET save", "CLIENT ID", "SELECT 1", "ROLE", "SHUTDOWN SAVE", "SHUTDOWN"):
            assert c.error(*refused.split()) == busy, refused
        c.ok("WATCH", "a")
        c.ok("MULTI")
        assert c.call("PING") == LOADING
        assert c.error("EXEC").startswith(b"EXECABORT")
        if how == "SIGTERM":
            os.kill(server.pid, signal.SIGTERM)
        else:
            c.send("SHUTDOWN", "NOSAVE")
        c.read_to_end()
    assert server.wait_exit() == 0


def test_a_script_of_the_log_that_takes_long_and_ends(logged):
    server = logged("local begin = redis.call('time') repeat local now = redis.call('time') until now[1] - begin[1] + "
                    "(now[2] - begin[2]) / 1e6 > 1.2 redis.call('set', 'c', 3)")
    with server.connect() as c:
        until(lambda: not isinstance(c.call("PING"), Error))
        assert c.call("MGET", "a", "b", "c") == [b"1", b"2", b"3"]
