"""maxmemory-clients: the largest clients go, whichever thread has them; CLIENT NO-EVICT stays."""

import threading
import time

import pytest

from lib.bounds import eventually
from lib.resp import Closed, encode
from lib.server import parse_info

pytestmark = pytest.mark.one_thread("a thread evicts clients of its own in the middle of a turn")

MB = 1 << 20

# A tenth of a second.
TAKES_LONG = """
local function now() local t = redis.call('time') return t[1] * 1000000 + t[2] end
local begin = now()
while now() - begin < 100000 do end
return 1
"""


@pytest.fixture(autouse=True)
def counted_from_zero(client):
    client.ok("CONFIG", "RESETSTAT")
    client.ok("CLIENT", "NO-EVICT", "ON")


def evicted(client):
    return int(parse_info(client.call("INFO", "stats"))["evicted_clients"])


def identity(client):
    return client.call("CLIENT", "ID")


def present(client):
    lines = bytes(client.call("CLIENT", "LIST")).decode().splitlines()
    return {int(line.split("id=")[1].split()[0]) for line in lines}


def half_a_request(client, size):
    """Sends all of a SET but its end: so many bytes of the client's input wait. It may be closed
    for that meanwhile."""
    try:
        client.send_raw(encode("SET", "k", b"x" * size)[:-100])
    except OSError:
        pass


def test_the_largest_input_goes_first(client, connect):
    clients = [connect() for _ in range(8)]
    names = [identity(c) for c in clients]
    client.ok("CONFIG", "SET", "maxmemory-clients", str(20 * MB))
    for i, c in enumerate(clients[:4]):
        half_a_request(c, (2 + i) * MB)  # 14 MB
    eventually(lambda: evicted(client) == 0 and present(client) >= set(names), "all are there")
    half_a_request(clients[4], 8 * MB)   # 22 MB
    eventually(lambda: evicted(client) == 1, "one goes")
    assert clients[4].is_closed()
    assert present(client) >= set(names) - {names[4]}
    client.ok("CONFIG", "SET", "maxmemory-clients", str(11 * MB))
    eventually(lambda: clients[3].is_closed(), "the next largest goes")
    eventually(lambda: evicted(client) == 2, "it is counted")
    assert present(client) >= set(names) - {names[4], names[3]}


def test_unread_output(client, connect):
    client.ok("SET", "big", b"x" * MB)
    client.ok("CONFIG", "SET", "maxmemory-clients", str(30 * MB))
    greedy, modest = connect(), connect()
    names = [identity(greedy), identity(modest)]
    for _ in range(5):
        modest.send("GET", "big")
    greedy.send_raw(encode("GET", "big") * 60)
    eventually(lambda: names[0] not in present(client), "who reads nothing is gone")
    eventually(lambda: evicted(client) == 1, "it is counted")
    assert [len(modest.read()) for _ in range(5)] == [MB] * 5
    with pytest.raises((Closed, OSError)):
        for _ in range(60):
            greedy.read()


def test_no_evict(client, connect):
    client.ok("CONFIG", "SET", "maxmemory-clients", str(5 * MB))
    spared, others = connect(), [connect() for _ in range(3)]
    spared.ok("CLIENT", "NO-EVICT", "ON")
    name = identity(spared)
    half_a_request(spared, 20 * MB)
    for other in others:
        half_a_request(other, MB)
    for other in others:
        other.send_raw(b"y" * 100 + b"\r\n")
        other.read()  # what it was told does not matter here
    eventually(lambda: name in present(client), "it is there")
    assert evicted(client) == 0
    spared.send_raw(b"z" * 98 + b"\r\n")
    assert spared.read() == b"OK"
    spared.ok("CLIENT", "NO-EVICT", "OFF")
    half_a_request(spared, 20 * MB)
    eventually(lambda: evicted(client) == 1 and spared.is_closed(), "now it goes")


def test_beside_a_script_that_takes_long(make_server):
    """Who shares the script's turn is served out of it, and is in that turn no more when it ends."""
    server = make_server({"busy-reply-threshold": "10", "maxmemory-clients": "20mb"})
    with server.connect() as sleeper:
        clients = [server.connect() for _ in range(8)]
        sleeper.send("DEBUG", "SLEEP", "0.3")
        time.sleep(0.1)  # it sleeps, and what the others send is of one turn
        for c in clients:
            c.send("EVAL", TAKES_LONG, "0")
        assert sleeper.read() == b"OK"
        replies = [c.read() for c in clients]
        assert 1 in replies and all(reply == 1 or reply.startswith(b"BUSY") for reply in replies)
        for c in clients:
            assert c.call("PING") == b"PONG"
            c.close()
    assert server.alive()


def test_percentages_are_of_maxmemory(client, connect):
    big = connect()
    client.ok("CONFIG", "SET", "maxmemory-clients", "10%")
    half_a_request(big, 8 * MB)
    eventually(lambda: client.call("PING") == b"PONG", "there is no limit without maxmemory")
    assert evicted(client) == 0
    client.ok("CONFIG", "SET", "maxmemory", str(60 * MB), "maxmemory-clients", "9%")
    eventually(lambda: evicted(client) == 1, "it goes")
    assert big.is_closed()


def test_subscribers_and_queued_transactions(client, connect):
    client.ok("CONFIG", "SET", "maxmemory-clients", str(8 * MB),
              "client-output-buffer-limit", "pubsub 0 0 0")
    deaf, busy = connect(), connect()
    deaf.call("SUBSCRIBE", "c")
    name = identity(busy)
    message = b"m" * MB
    for _ in range(60):
        client.call("PUBLISH", "c", message)
        if evicted(client):
            break
    eventually(lambda: evicted(client) == 1, "who does not read goes")
    assert name in present(client)
    busy.ok("MULTI")
    with pytest.raises((Closed, OSError)):
        for i in range(200):
            busy.call("SET", "k%d" % i, b"x" * 100000)
    eventually(lambda: evicted(client) == 2, "it is counted")


def test_under_load_from_all_sides(server, client):
    """Clients grow on every thread, come and go, while the limit is changed."""
    trouble = []

    def work(number):
        try:
            for i in range(25):
                with server.connect() as c:
                    try:
                        c.ok("SET", "k:%d" % number, b"x" * 200000)
                        half_a_request(c, (1 + (number + i) % 5) * MB)
                        c.send_raw(b"y" * 98 + b"\r\n")
                        c.read()
                        c.send_raw(encode("GET", "k:%d" % number) * 20)
                        for _ in range(20):
                            c.read()
                    except (Closed, OSError):
                        pass
        except Exception as problem:
            trouble.append(problem)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    limits = ["3mb", "1mb", "0", "8mb", "1%"]
    turn = 0
    while any(t.is_alive() for t in threads):
        client.ok("CONFIG", "SET", "maxmemory-clients", limits[turn % len(limits)])
        client.call("CLIENT", "LIST")
        client.call("INFO", "memory")
        turn += 1
    for t in threads:
        t.join()
    assert not trouble
    assert client.call("PING") == b"PONG"


def test_info_counts_what_clients_have(client, connect):
    def normal():
        return int(parse_info(client.call("INFO", "memory"))["mem_clients_normal"])

    assert normal() > 0
    clients = [connect() for _ in range(6)]
    for c in clients:
        half_a_request(c, MB)
    eventually(lambda: normal() > 6 * MB, "all of them are counted")
    for c in clients:
        c.close()
    eventually(lambda: normal() < 5 * MB, "and not when they have gone")


def test_evicted_where_its_slices_end(client, connect):
    """A client whose command in slices ends is to be looked at in the next turn; the reply that
    nobody reads has it evicted at the end of this one.  (What is left of it is a sanitizer's to find.)"""
    for i in range(0, 200000, 20000):
        client.call("MSET", *(w for k in range(i, i + 20000) for w in ("%064d" % k, "")))
    for _ in range(10):
        client.ok("CONFIG", "SET", "maxmemory-clients", 4 * MB)
        before = evicted(client)
        with connect() as greedy:
            greedy.send_raw(encode("KEYS", "*") + encode("PING"))
            eventually(lambda before=before: evicted(client) > before, "eviction")
        client.ok("CONFIG", "SET", "maxmemory-clients", 0)
        assert client.call("PING") == b"PONG"
