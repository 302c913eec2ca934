"""Clients on all server threads share one keyspace."""

import threading

import pytest

from lib.bounds import eventually
from lib.server import parse_info

pytestmark = pytest.mark.one_thread("what is said of threads holds for one")


def clients_of_all_threads(connect, threads):
    """Enough clients that every thread has some."""
    return [connect() for _ in range(4 * threads)]


def in_parallel(jobs):
    """Run functions in threads; the first exception comes out."""
    trouble = []

    def run(job):
        try:
            job()
        except BaseException as error:
            trouble.append(error)

    workers = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if trouble:
        raise trouble[0]


def test_a_write_is_seen_by_everyone_at_once(connect, threads):
    clients = clients_of_all_threads(connect, threads)
    for turn in range(50):
        for number, writer in enumerate(clients):
            writer.ok("SET", "k", "%d-%d" % (turn, number))
            reader = clients[(number + turn) % len(clients)]
            assert reader.call("GET", "k") == b"%d-%d" % (turn, number)


def test_counters_lose_nothing(server, connect, threads):
    def count():
        with server.connect() as c:
            for _ in range(20):
                c.pipeline([["INCR", "n"], ["INCRBY", "m", "3"], ["APPEND", "s", "x"]] * 50)

    in_parallel([count] * 8)
    client = connect()
    assert client.call("GET", "n") == b"8000"
    assert client.call("GET", "m") == b"24000"
    assert client.call("STRLEN", "s") == 8000


def test_setnx_has_one_winner(server, connect):
    wins = []

    def race():
        with server.connect() as c:
            for n in range(300):
                if c.call("SETNX", "lock%d" % n, "x"):
                    wins.append(n)

    in_parallel([race] * 6)
    assert sorted(wins) == list(range(300))


def test_getdel_has_one_winner(server, connect):
    client = connect()
    client.ok("MSET", *[w for n in range(500) for w in ("k%d" % n, n)])
    taken = []

    def race():
        with server.connect() as c:
            for n in range(500):
                value = c.call("GETDEL", "k%d" % n)
                if value is not None:
                    taken.append(int(value))

    in_parallel([race] * 6)
    assert sorted(taken) == list(range(500))
    assert client.call("DBSIZE") == 0


def test_mset_is_one_step(server, connect):
    """Nobody sees half of an MSET, also while the table grows."""
    stop = threading.Event()
    names = ["part%d" % n for n in range(8)]

    def write(number):
        with server.connect() as c:
            turn = 0
            while not stop.is_set():
                turn += 1
                value = "%d-%d" % (number, turn)
                c.ok("MSET", *[w for name in names for w in (name, value)])
                c.ok("SET", "filler-%s" % value, "x")

    def read():
        with server.connect() as c:
            for _ in range(3000):
                assert len(set(c.call("MGET", *names))) == 1
        stop.set()

    def guarded_read():
        try:
            read()
        finally:
            stop.set()

    in_parallel([lambda: write(1), lambda: write(2), guarded_read, guarded_read])


def test_a_value_is_never_torn(server, connect):
    """Overwrites in place, of equal and of different size, against reads on other threads."""
    stop = threading.Event()

    def write(letter):
        with server.connect() as c:
            while not stop.is_set():
                for size in (10, 10, 60, 64, 200, 900, 1100, 20_000, 60):
                    c.ok("SET", "k", letter * size)

    def read():
        try:
            with server.connect() as c:
                c.call("SETNX", "k", "a")
                for _ in range(4000):
                    value = c.call("GET", "k")
                    assert len(set(value)) == 1
        finally:
            stop.set()

    in_parallel([lambda: write("a"), lambda: write("b"), read, read])


def test_flushall_swapdb_and_move_while_others_work(server, connect):
    """Every reply is one that some order of the commands allows, and nobody dies."""
    stop = threading.Event()

    def work(number):
        with server.connect() as c:
            while not stop.is_set():
                replies = c.pipeline([["SELECT", "0"], ["SET", "k%d" % number, "mine"],
                                      ["GET", "k%d" % number], ["MOVE", "k%d" % number, "1"],
                                      ["SELECT", "1"], ["GET", "k%d" % number],
                                      ["DEL", "k%d" % number]])
                assert replies[0] == replies[1] == replies[4] == b"OK"
                assert replies[2] in (b"mine", None)
                assert replies[3] in (0, 1) and replies[6] in (0, 1)

    def disturb():
        try:
            with server.connect() as c:
                for turn in range(300):
                    c.ok("SWAPDB", "0", "1")
                    c.ok(["FLUSHALL", "FLUSHDB"][turn % 2], ["ASYNC", "SYNC"][turn // 2 % 2])
        finally:
            stop.set()

    in_parallel([lambda n=n: work(n) for n in range(4)] + [disturb])
    client = connect()
    client.ok("FLUSHALL")
    assert client.call("DBSIZE") == 0


def test_swapdb_is_seen_by_clients_that_selected_before(connect, threads):
    clients = clients_of_all_threads(connect, threads)
    one = connect()
    one.ok("SELECT", "1")
    one.ok("SET", "k", "one")
    clients[0].ok("SET", "k", "zero")
    clients[0].ok("SWAPDB", "0", "1")
    assert [c.call("GET", "k") for c in clients] == [b"one"] * len(clients)
    assert one.call("GET", "k") == b"zero"


def test_rename_never_shows_both_or_none(server, connect):
    connect().ok("SET", "a", "v")
    stop = threading.Event()

    def swing():
        with server.connect() as c:
            while not stop.is_set():
                c.ok("RENAME", "a", "b")
                c.ok("RENAME", "b", "a")

    def look():
        try:
            with server.connect() as c:
                for _ in range(5000):
                    assert c.call("EXISTS", "a", "b") == 1
        finally:
            stop.set()

    in_parallel([swing, look, look])


def test_clients_are_spread_over_the_threads(server, connect, threads, ours_only):
    kept = [connect() for _ in range(8 * threads)]
    client = connect()

    def spread():
        info = parse_info(client.call("INFO", "everything"))
        counts = [int(info["thread_%d_clients" % n]) for n in range(threads)]
        return min(counts) > 0 and sum(counts) == len(kept) + 1

    eventually(spread, "every thread has clients")


def test_many_connects_and_closes_at_once(server, connect):
    def churn():
        for n in range(150):
            with server.connect() as c:
                assert c.call("ECHO", "x%d" % n) == b"x%d" % n

    in_parallel([churn] * 6)
    client = connect()
    eventually(lambda: parse_info(client.call("INFO", "clients"))["connected_clients"] == "1",
               "all closed connections are forgotten")


def test_growth_under_load(server, connect):
    """Ten thousands of keys set by all threads; none lost while segments split."""
    def fill(number):
        with server.connect() as c:
            for start in range(0, 20_000, 500):
                c.pipeline([["SET", "g%d-%d" % (number, n), n] for n in range(start, start + 500)])
                probe = start // 2
                assert c.call("GET", "g%d-%d" % (number, probe)) == str(probe).encode()

    in_parallel([lambda n=n: fill(n) for n in range(4)])
    client = connect()
    assert client.call("DBSIZE") == 80_000
    for number in range(4):
        names = ["g%d-%d" % (number, n) for n in range(20_000)]
        assert client.call("MGET", *names) == [str(n).encode() for n in range(20_000)]


@pytest.mark.any_threads
def test_a_deep_pipeline_starves_nobody(server, connect):
    heavy, light = connect(), connect()
    data = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n" * 20_000
    served = threading.Event()

    def load():
        while not served.is_set():
            heavy.exchange(data * 3, 60_000)

    def ask():
        try:
            for _ in range(100):
                assert light.call("PING") == b"PONG"
        finally:
            served.set()

    in_parallel([load, ask])
