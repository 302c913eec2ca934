"""Fixtures: servers that are started, watched and stopped, and clients that are always closed.

server        a server shared by all tests of one thread count; empty and as configured at the
              start of each test; the test fails when the server died or reported an error
make_server   private servers with options of the test's own
make_oracle   the same of Debian's redis-server
play          replicas of a server that the test plays itself
connect       clients of `server`
client        one RESP2 client of `server`
oracle        Debian's redis-server, shared, empty at the start of each test

Environment: KEYDB_SERVER (program under test), KEYDB_TEST_THREADS (thread counts; without it 4, and 1 as well where
a test is marked `one_thread`), KEYDB_TEST_TIME_FACTOR (lib/bounds.py), KEYDB_TEST_SEED (lib/seeds.py).
"""

import contextlib
import os
import time

import pytest

from lib.bounds import scaled
from lib.disk import Recorder
from lib.faults import Faults
from lib.replica import Played
from lib.resp import Connection, Error
from lib.server import ORACLE, Server, is_redis, server_path


pytest_plugins = ["lib.outcome"]
# The files of each sanitizer's round of the gate, with the reason.
SANITIZED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sanitized.tsv")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well")
    parser.addoption("--long", action="store_true", help="run the tests marked long as well")
    parser.addoption("--previews", action="store_true", help="run the tests marked preview as well")
    parser.addoption("--sanitized", choices=["asan", "tsan"], help="only the files of this round of the gate")


def sanitized_files(sanitizer):
    """Paths, from tests/, that sanitized.tsv names for the round."""
    with open(SANITIZED, encoding="utf-8") as lines:
        rows = [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]
    here = os.path.dirname(SANITIZED)
    chosen = {os.path.join(here, path) for path, rounds, _ in rows if sanitizer in rounds.split(",")}
    for path in chosen:
        if not os.path.exists(path):
            raise pytest.UsageError("sanitized.tsv: there is no %s" % path)
    return chosen


def pytest_collection_modifyitems(config, items):
    options = {"slow": "--slow", "long": "--long", "preview": "--previews"}
    left_out = [name for name, option in options.items() if not config.getoption(option)]
    sanitizer = config.getoption("--sanitized")
    chosen = sanitizer and sanitized_files(sanitizer)
    kept, others = [], []
    for item in items:
        out = any(name in item.keywords for name in left_out) or chosen and str(item.path) not in chosen
        (others if out else kept).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = kept


def pytest_collection_finish(session):
    if any("threads" in item.fixturenames for item in session.items):
        if not os.access(server_path(), os.X_OK):
            pytest.exit("no program to test at %s (KEYDB_SERVER, or run make)" % server_path(), 2)


def thread_counts(one_thread_too):
    if is_redis(server_path()):
        return [1]
    given = os.environ.get("KEYDB_TEST_THREADS")
    if given:
        return [int(n) for n in given.split(",")]
    return [1, 4] if one_thread_too else [4]


def pytest_generate_tests(metafunc):
    if "threads" not in metafunc.fixturenames:
        return
    counts = thread_counts(metafunc.definition.get_closest_marker("one_thread"))
    if metafunc.definition.get_closest_marker("any_threads"):
        counts = counts[-1:]
    metafunc.parametrize("threads", counts, ids=["%dthr" % n for n in counts], scope="session")


class Shared:
    """One server kept for many tests, put back to its first state after each."""

    def __init__(self, path, threads):
        self.path = path
        self.threads = threads
        self.server = None
        self.config = {}
        self.users = []
        self.worn = False

    def _configuration(self, client):
        flat = client.call("CONFIG", "GET", "*")
        return dict(zip(flat[0::2], flat[1::2]))

    @contextlib.contextmanager
    def _visit(self):
        """A connection that the server knows no more when this is over: a test may count clients."""
        with self.server.connect() as client:
            yield client
            client.send("QUIT")
            client.read_to_end()

    def take(self):
        if self.server is None:
            self.server = Server(self.path, self.threads, {"unixsocket": "s.sock"})
            self.server.expected_files.add("s.sock")
            self.server.start()
            with self.server.connect() as client:
                self.config = self._configuration(client)
                self.users = client.call("ACL", "LIST")
        with self._visit() as client:
            client.ok("FLUSHALL")
            client.ok("FUNCTION", "FLUSH")
        return self.server

    def give_back(self):
        problems = self.server.problems()
        if not problems:
            problems = self._tidy()
        if problems:
            self.drop()
            pytest.fail("the server: " + problems, pytrace=False)
        if self.worn:
            self.end()

    def _tidy(self):
        try:
            with self._visit() as client:
                client.call("CLIENT", "UNPAUSE")
                if not self._others_have_gone(client):
                    return "the test left connections open:\n%s" % client.call("CLIENT", "LIST").decode()
                client.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")
                for name, value in self._configuration(client).items():
                    if self.config.get(name) != value:
                        client.call("CONFIG", "SET", name, self.config[name])
                self._tidy_users(client)
                self.worn = client.call("ACL", "LIST") != self.users
        except Exception as trouble:  # whatever it is, the test that caused it must show it
            return "does not answer after the test: %r" % trouble
        return ""

    def _others_have_gone(self, client):
        """What clients that have gone had sent is not to be run amid the next test. `client` came
        after all of them."""
        if is_redis(self.path):
            return True  # a test's clients of the oracle may still be there
        deadline = time.monotonic() + scaled(10)
        while client.call("CLIENT", "LIST").count(b"\n") > 1:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def _tidy_users(self, client):
        """A `default` that was ever reset says sanitize-payload for good: such a server is worn."""
        left = client.call("ACL", "LIST")
        for user in client.call("ACL", "USERS"):
            if user != b"default":
                client.call("ACL", "DELUSER", user)
        for line in self.users:
            _, name, *rules = line.split()
            if line not in left:
                client.ok("ACL", "SETUSER", name, "reset", *rules)

    def drop(self):
        self.server.kill()
        self.server.remove()
        self.server = None

    def end(self):
        if self.server is None:
            return
        self.server.stop()
        problems = self.server.problems()
        self.server.remove()
        self.server = None
        assert not problems, "the shared server at its end: " + problems


@pytest.fixture(scope="session")
def shared_server(threads):
    shared = Shared(server_path(), threads)
    yield shared
    shared.end()


@pytest.fixture(scope="session")
def shared_oracle():
    shared = Shared(ORACLE, 1)
    yield shared
    shared.end()


@pytest.fixture
def server(shared_server):
    yield shared_server.take()
    shared_server.give_back()


@pytest.fixture
def oracle(shared_oracle):
    yield shared_oracle.take()
    shared_oracle.give_back()


def end_all(servers):
    problems = []
    for server in servers:
        server.stop()
        problems.append(server.problems())
        server.remove()
    if any(problems):
        pytest.fail("the server: " + "\n".join(filter(None, problems)), pytrace=False)


@pytest.fixture
def make_server(threads):
    """make_server(options={...}, config=..., files={...}): a private server, started.  files
    names what it may leave in its directory, kind another class of servers."""
    servers = []

    def make(options=None, config=None, password=None, files=(), path=None, start=True, kind=Server):
        server = kind(path, threads, options, config, password)
        server.expected_files |= set(files)
        if "unixsocket" in server.options:
            server.expected_files.add(server.options["unixsocket"])
        servers.append(server)
        return server.start() if start else server

    yield make
    end_all(servers)


@pytest.fixture
def make_oracle():
    """make_oracle(options={...}): a private redis-server, started, that may leave its data behind."""
    servers = []

    def make(options=None, start=True):
        server = Server(ORACLE, 1, options)
        server.expected_files |= {"dump.rdb", "appendonlydir"}
        servers.append(server)
        return server.start() if start else server

    yield make
    end_all(servers)


@pytest.fixture
def connect(server):
    """connect(proto=2, to=server): a client, closed at the end of the test."""
    clients = []

    def make(proto=2, to=None, unix=False):
        if unix:
            client = Connection((to or server).unix_address())
            if proto == 3:
                client.hello(3)
        else:
            client = (to or server).connect(proto)
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(connect):
    return connect()


@pytest.fixture
def ours_only():
    """For what we promise and Redis, standing in for our server, does not keep."""
    if is_redis(server_path()):
        pytest.skip("a promise of ours, not of Redis")


@pytest.fixture
def needs(server):
    """needs("RPUSH"): skip the test where Redis stands in and has no such command."""

    def check(*commands):
        with server.connect() as c:
            for command in commands:
                if isinstance(c.call("COMMAND", "INFO", command), Error) or \
                        c.call("COMMAND", "INFO", command)[0] is None:
                    assert is_redis(server_path()), "the server has no %s" % command
                    pytest.skip("Redis has no %s" % command)

    return check


@pytest.fixture
def faults():
    """Makes calls on files fail (lib/faults.py)."""
    layer = Faults()
    yield layer
    layer.end()


@pytest.fixture
def recorder():
    """Notes what reaches the disk (lib/disk.py)."""
    layer = Recorder()
    yield layer
    layer.end()


@pytest.fixture
def play():
    """play(server, ("capa", "eof"), ...): a replica that the test plays, closed at its end."""
    played = []

    def make(server, *greeting):
        played.append(Played(server, *greeting))
        return played[-1]

    yield make
    for p in played:
        p.close()
