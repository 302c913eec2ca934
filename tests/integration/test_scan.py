"""SCAN: what exists throughout is returned, whatever grows, shrinks and changes meanwhile."""

import threading

import pytest

from lib.resp import Error
from lib.seeds import generator, seeds


def scan_all(client, *options, limit=100_000):
    """All keys of one whole iteration, with repetitions."""
    cursor, keys, turns = b"0", [], 0
    while True:
        cursor, part = client.call("SCAN", cursor, *options)
        keys += part
        turns += 1
        assert turns < limit, "the cursor never comes back to 0"
        if cursor == b"0":
            return keys


def fill(client, prefix, count):
    for start in range(0, count, 5000):
        client.ok("MSET", *[w for n in range(start, min(start + 5000, count))
                            for w in (b"%s%d" % (prefix, n), b"v")])


@pytest.mark.parametrize("count", [0, 1, 7, 8, 100, 10_000])
@pytest.mark.parametrize("options", [[], ["COUNT", "1"], ["COUNT", "3"], ["COUNT", "1000"],
                                     ["COUNT", "1000000"]], ids=" ".join)
def test_everything_is_returned(client, count, options):
    if count:
        fill(client, b"k", count)
    found = scan_all(client, *options)
    assert set(found) == {b"k%d" % n for n in range(count)}


def test_exactly_once_while_nothing_changes(client):
    fill(client, b"k", 5000)
    found = scan_all(client, "COUNT", "7")
    assert len(found) == len(set(found)) == 5000


def test_match_and_type(client):
    fill(client, b"a", 300)
    fill(client, b"b", 300)
    assert set(scan_all(client, "MATCH", "a1*")) == {
        b"a%d" % n for n in range(300) if str(n).startswith("1")}
    assert len(set(scan_all(client, "TYPE", "string", "COUNT", "50"))) == 600
    assert scan_all(client, "TYPE", "hash") == []
    assert set(scan_all(client, "TYPE", "STRING", "MATCH", "*99")) == {b"a99", b"b99", b"a199",
                                                                    b"b199", b"a299", b"b299"}


def test_a_cursor_that_was_never_given(client):
    fill(client, b"k", 1000)
    for cursor in ("1", "5", "18446744073709551615", "9223372036854775808", "123456789"):
        reply = client.call("SCAN", cursor)
        assert not isinstance(reply, Error)
        assert reply[0].isdigit()


def test_expired_keys_are_not_returned(client):
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    fill(client, b"k", 100)
    for n in range(50):
        client.call("PEXPIREAT", b"k%d" % n, "1")
    for n in range(50, 75):
        client.call("PEXPIRE", b"k%d" % n, "100000")
    assert set(scan_all(client)) == {b"k%d" % n for n in range(50, 100)}


@pytest.mark.parametrize("seed", seeds(3))
def test_growth_and_shrink_between_the_calls(client, seed):
    """One client, so that each step is known: permanent keys are all returned, keys that never
    existed are not."""
    random = generator(seed, "scan")
    fill(client, b"stay", 2000)
    cursor, found, serial, temporary = b"0", [], 0, []
    while True:
        cursor, part = client.call("SCAN", cursor, "COUNT", random.randint(1, 60))
        found += part
        if cursor == b"0":
            break
        if random.random() < 0.5 and serial < 60_000:
            names = [b"temp%d" % n for n in range(serial, serial + 1500)]
            serial += 1500
            client.ok("MSET", *[w for name in names for w in (name, b"v")])
            temporary += names
        elif temporary:
            random.shuffle(temporary)
            cut = random.randint(0, len(temporary))
            gone, temporary = temporary[:cut], temporary[cut:]
            if gone:
                client.call("DEL", *gone)
    stay = [key for key in found if key.startswith(b"stay")]
    assert set(stay) == {b"stay%d" % n for n in range(2000)}, "seed %d" % seed
    assert all(key.startswith((b"stay", b"temp")) for key in found)


def test_with_concurrent_writers(connect, server):
    """Writers on other connections grow and shrink the table during the whole iteration."""
    client = connect()
    fill(client, b"stay", 3000)
    stop = threading.Event()
    trouble = []

    def writer(number):
        try:
            with server.connect() as c:
                while not stop.is_set():
                    names = [b"t%d-%d" % (number, n) for n in range(700)]
                    c.ok("MSET", *[w for name in names for w in (name, b"v" * 30)])
                    c.call("UNLINK", *names)
        except Exception as error:
            trouble.append(error)

    threads = [threading.Thread(target=writer, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            found = scan_all(client, "COUNT", "50")
            stay = {key for key in found if key.startswith(b"stay")}
            assert stay == {b"stay%d" % n for n in range(3000)}
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not trouble


def test_keys_with_concurrent_writers(connect, server):
    """KEYS walks in bounded holds; what exists throughout is there once."""
    client = connect()
    fill(client, b"stay", 20_000)
    stop = threading.Event()

    def writer():
        with server.connect() as c:
            while not stop.is_set():
                names = [b"t%d" % n for n in range(3000)]
                c.ok("MSET", *[w for name in names for w in (name, b"v")])
                c.call("DEL", *names)

    thread = threading.Thread(target=writer)
    thread.start()
    try:
        for _ in range(10):
            found = client.call("KEYS", "stay*")
            assert len(found) == 20_000 and len(set(found)) == 20_000
    finally:
        stop.set()
        thread.join()


def test_scan_of_each_database_on_its_own(client):
    client.ok("SET", "zero", "v")
    client.ok("SELECT", "1")
    client.ok("SET", "one", "v")
    assert scan_all(client) == [b"one"]
    client.ok("SELECT", "0")
    assert scan_all(client) == [b"zero"]


def test_randomkey_reaches_every_key(client):
    assert client.call("RANDOMKEY") is None
    names = {b"k%d" % n for n in range(8)}
    client.ok("MSET", *[w for name in names for w in (name, b"v")])
    seen = set(client.pipeline([["RANDOMKEY"]] * 2000))
    assert seen == names
