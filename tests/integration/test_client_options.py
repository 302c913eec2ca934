"""KeyDB's options about clients, and what the server says of itself: maxclients-reserved,
overload-protect-percent, soft-shutdown and SHUTDOWN SOFT, max-rand-count, version-override,
availability-zone, replica-weighting-factor."""

import os
import signal
import threading

import pytest

from lib.bounds import eventually
from lib.resp import Closed, Connection, Error

pytestmark = pytest.mark.usefixtures("ours_only")

SOFTLY = b"ERR The server is shutting down softly"


# -- maxclients-reserved

def other_address():
    """An address of this machine that is not its loopback's, or None."""
    import socket
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = probe.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") else address


def test_places_are_kept_for_this_machine(make_server):
    address = other_address()
    if not address:
        pytest.skip("the machine has no address but the loopback's")
    server = make_server({"maxclients": "10", "maxclients-reserved": "4", "protected-mode": "no",
                          "bind": ["127.0.0.1", address]})
    far = (address, server.port)
    clients = []
    try:
        for _ in range(6):
            clients.append(Connection(far))
            assert clients[-1].call("PING") == b"PONG"
            if len(clients) == 1:
                eventually(lambda: b"connected_clients:1\r\n" in clients[0].call("INFO", "clients"),
                           "who saw it start has gone")
        with Connection(far) as refused:
            assert refused.read() == b"ERR max number of clients reached"
        for _ in range(4):
            clients.append(server.connect())
            assert clients[-1].call("PING") == b"PONG"
        with server.connect() as refused:
            assert refused.read() == b"ERR max number of clients reached"
        clients[0].ok("CONFIG", "SET", "maxclients-reserved", "0")
        clients.pop().close()
        eventually(lambda: int(clients[0].call("INFO", "clients").split(b"connected_clients:")[1]
                               .split()[0]) == 9, "one has gone")
        with Connection(far) as taken:
            assert taken.call("PING") == b"PONG"
    finally:
        for c in clients:
            c.close()


# -- overload-protect-percent

def test_ordinary_clients_are_closed_under_load(make_server):
    server = make_server({"overload-protect-percent": "1", "min-clients-per-thread": "0"})
    over = threading.Event()

    def load():
        """Comes again whenever it is closed."""
        while not over.is_set():
            try:
                with server.connect() as c:
                    while not over.is_set():
                        c.pipeline([("SET", "k", "v" * 10000)] * 100)
            except (Closed, OSError):
                continue

    worker = threading.Thread(target=load)
    with server.connect() as subscriber, server.connect() as exempt, \
            server.connect(timeout_s=120) as idle:
        subscriber.call("SUBSCRIBE", "news")
        exempt.ok("CLIENT", "NO-EVICT", "ON")
        # Each look of the cron counts, not one in ten seconds.
        exempt.ok("DEBUG", "EAGER-BALANCE", "1")
        worker.start()
        try:
            idle.read_to_end()
        finally:
            over.set()
            worker.join()
        assert exempt.call("PING") == b"PONG"
        exempt.ok("CONFIG", "SET", "overload-protect-percent", "0")
        assert exempt.call("PUBLISH", "news", "hello") == 1
        assert subscriber.read() == [b"message", b"news", b"hello"]
        exempt.ok("DEBUG", "EAGER-BALANCE", "0")
    assert "Overload protection" in server.output()


# -- soft ends

def test_shutdown_soft_waits_for_those_who_are_there(make_server):
    server = make_server()
    with server.connect() as asks, server.connect() as works:
        works.ok("SET", "k", "v")
        asks.ok("SHUTDOWN", "SOFT")
        assert works.call("GET", "k") == b"v"
        works.ok("SET", "k", "w")
        assert works.call("PING") == SOFTLY and works.call("PING", "x") == SOFTLY
        with server.connect() as late:
            assert late.read() == SOFTLY
        asks.close()
        assert works.call("GET", "k") == b"w"
    assert server.wait_exit(60) == 0


def test_shutdown_soft_can_be_called_off(make_server):
    server = make_server()
    with server.connect() as c:
        assert c.call("SHUTDOWN", "ABORT") == b"ERR No shutdown in progress."
        c.ok("SHUTDOWN", "SOFT", "NOSAVE")
        assert c.call("PING") == SOFTLY
        c.ok("SHUTDOWN", "ABORT")
        assert c.call("PING") == b"PONG"
        assert c.call("SHUTDOWN", "ABORT") == b"ERR No shutdown in progress."
    with server.connect() as c:
        assert c.call("PING") == b"PONG"


@pytest.mark.parametrize("words,saves", [(["SAVE"], True), (["NOSAVE"], False), ([], False)])
def test_shutdown_soft_saves_as_it_was_told(make_server, words, saves):
    server = make_server(files=["dump.rdb"])
    with server.connect() as c:
        c.ok("SET", "k", "v")
        c.ok("SHUTDOWN", "SOFT", *words)
    assert server.wait_exit(60) == 0
    assert os.path.exists(server.file("dump.rdb")) == saves


def test_words_that_make_no_sense(client):
    for words in (["SOFT", "ABORT"], ["SOFT", "x"], ["SOFT", "SAVE", "NOSAVE"]):
        assert client.call("SHUTDOWN", *words) == b"ERR syntax error"
    assert client.call("PING") == b"PONG"


def test_hard_after_soft(make_server):
    server = make_server()
    with server.connect() as c:
        c.ok("SHUTDOWN", "SOFT")
        c.send("SHUTDOWN", "NOSAVE")
        c.read_to_end()
    assert server.wait_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_softly_and_a_second_one_at_once(make_server, number):
    server = make_server({"soft-shutdown": "yes"})
    with server.connect() as c:
        os.kill(server.pid, number)
        eventually(lambda: c.call("PING") == SOFTLY, "the signal is heard")
        c.ok("SET", "k", "v")
        os.kill(server.pid, number)
        c.read_to_end()
    assert server.wait_exit() == 0


def test_a_signal_with_nobody_there_ends_it(make_server):
    server = make_server({"soft-shutdown": "yes"})
    os.kill(server.pid, signal.SIGTERM)
    assert server.wait_exit(60) == 0


def test_replicas_do_not_keep_it(make_server):
    server = make_server({"repl-diskless-sync-delay": "0"})
    replica = make_server({"replicaof": ["127.0.0.1", str(server.port)]}, files=["dump.rdb"])
    eventually(lambda: replica.info("replication")["master_link_status"] == "up", "it follows")
    with server.connect() as c:
        c.ok("SHUTDOWN", "SOFT")
    assert server.wait_exit(60) == 0


# -- max-rand-count

def test_random_elements_at_once(client):
    client.call("SADD", "set", "a", "b", "c")
    client.call("HSET", "hash", "a", "1", "b", "2", "c", "3")
    client.call("ZADD", "zset", "1", "a", "2", "b", "3", "c")
    client.ok("CONFIG", "SET", "max-rand-count", "5")
    for name, key in (("SRANDMEMBER", "set"), ("HRANDFIELD", "hash"), ("ZRANDMEMBER", "zset")):
        assert len(client.call(name, key, "5")) == 3 and len(client.call(name, key, "-5")) == 5
        for count in ("6", "-6", "9223372036854775807", "-9223372036854775807"):
            assert client.call(name, key, count) == b"ERR value is out of range", name
        assert isinstance(client.call(name, key, "x"), Error)
    assert client.call("CONFIG", "SET", "max-rand-count", "-1").startswith(b"ERR CONFIG SET failed")


# -- what it says of itself

@pytest.mark.any_threads
def test_version_and_zone(make_server):
    server = make_server({"version-override": "6.2.14", "availability-zone": "eu-north-1b"})
    with server.connect() as c:
        fields = server.info("server")
        assert fields["redis_version"] == "6.2.14" and fields["availability_zone"] == "eu-north-1b"
        assert fields["keydb_version"] == "7.2.0"
        hello = c.call("HELLO")
        assert hello[hello.index(b"version") + 1] == b"6.2.14"
        c.ok("CONFIG", "SET", "availability-zone", "eu-north-1c")
        assert server.info("server")["availability_zone"] == "eu-north-1c"
        assert isinstance(c.call("CONFIG", "SET", "availability-zone", "a\r\nb:1"), Error)
        assert isinstance(c.call("CONFIG", "SET", "version-override", "7.0.0"), Error)
    said = make_server({"version-override": "seven"}, start=False).start_fails()
    assert "argument must be a version" in said


# -- replica-weighting-factor

@pytest.mark.any_threads
def test_a_replica_counts_for_several_clients(make_server):
    server = make_server({"server-threads": "2", "replica-weighting-factor": "4",
                          "repl-diskless-sync-delay": "0"})
    make_server({"replicaof": ["127.0.0.1", str(server.port)]}, files=["dump.rdb"])
    clients = [server.connect()]
    try:
        eventually(lambda: "state=online" in server.info("replication").get("slave0", ""),
                   "the replica is fed")

        def threads():
            text = clients[0].call("INFO", "clients").decode()
            return [int(line.split(":")[1]) for line in text.split("\r\n")
                    if line.startswith("thread_")]

        def shared_out():
            return sum(threads()) == len(clients) + 1

        eventually(shared_out, "those who asked have gone")
        for _ in range(7):
            clients.append(server.connect())
            assert clients[-1].call("PING") == b"PONG"
        # The replica's thread has it and three others fewer than the other one has.
        assert sorted(threads()) in ([3, 6], [4, 5])
        assert max(threads()) >= 5
    finally:
        for c in clients:
            c.close()
