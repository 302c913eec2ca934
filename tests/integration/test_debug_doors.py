"""DEBUG's doors into files and links, which test suites of Redis lean on."""

import os
import time

import pytest

from lib.bounds import eventually


def flipped(payload, at):
    return payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1:]


def test_checksums_of_payloads(client, oracle):
    """A payload whose checksum is wrong is refused until told otherwise; one of rubbish always is."""
    for c in (client, oracle.connect()):
        c.ok("SET", "k", "some text that is long enough")
        payload = c.call("DUMP", "k")
        wrong = flipped(payload, len(payload) - 1)
        assert b"checksum" in c.error("RESTORE", "new", "0", wrong)
        c.ok("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
        c.ok("RESTORE", "new", "0", wrong)
        assert c.call("GET", "new") == b"some text that is long enough"
        assert b"Bad data format" in c.error("RESTORE", "bad", "0", b"\x02\xff" + payload[-10:])
        c.ok("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "0")
        assert b"checksum" in c.error("RESTORE", "new", "0", wrong, "REPLACE")


def test_checksums_of_files(make_server):
    server = make_server(files=["dump.rdb"])
    with server.connect() as c:
        c.ok("SET", "k", "v")
        c.ok("SAVE")
        path = server.file("dump.rdb")
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(flipped(data, len(data) - 1))
        c.ok("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
        c.ok("DEBUG", "RELOAD", "NOSAVE")
        assert c.call("GET", "k") == b"v"


@pytest.mark.parametrize("value", ["2", "-1", "x", ""])
def test_switches_take_0_and_1(client, ours_only, value):
    client.error("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", value)


def test_a_slow_log(make_server):
    server = make_server({"appendonly": "yes", "appendfsync": "always"}, files=["appendonlydir"])
    with server.connect() as c:
        c.ok("DEBUG", "AOF-FLUSH-SLEEP", "300000")
        start = time.monotonic()
        c.ok("SET", "k", "v")
        assert time.monotonic() - start >= 0.3
        c.ok("DEBUG", "AOF-FLUSH-SLEEP", "0")
        for value in ("-1", "x", "9223372036854775807"):
            c.error("DEBUG", "AOF-FLUSH-SLEEP", value)


def test_what_only_replicas_are_told(make_server):
    primary = make_server({"appendonly": "yes"}, files=["appendonlydir"])
    replica = make_server({"replicaof": "127.0.0.1 %d" % primary.port}, files=["dump.rdb"])
    with primary.connect() as p, replica.connect() as r:
        eventually(lambda: b"master_link_status:up" in r.call("INFO", "replication"), "the link")
        p.ok("DEBUG", "REPLICATE", "SET", "k", "v")
        p.ok("DEBUG", "REPLICATE", "no command at all")
        p.ok("SET", "behind", "v")
        eventually(lambda: r.call("GET", "behind") == b"v", "the replica has it")
        assert r.call("GET", "k") == b"v" and p.call("GET", "k") is None
        p.ok("DEBUG", "LOADAOF")
        assert p.call("KEYS", "*") == [b"behind"]
        log = primary.file("appendonlydir")
        for name in os.listdir(log):
            with open(os.path.join(log, name), "rb") as file:
                assert b"no command at all" not in file.read()


def test_replicating_without_replicas(client, ours_only):
    client.ok("DEBUG", "REPLICATE", "SET", "k", "v")
    assert client.call("EXISTS", "k") == 0


def test_leaked_memory_stays(make_server):
    if "/build/asan" in os.environ.get("KEYDB_SERVER", ""):
        pytest.skip("the checker of leaks would say so at the end, as it should")
    server = make_server()
    with server.connect() as c:
        before = int(server.info("memory")["used_memory"])
        c.ok("DEBUG", "LEAK", b"x" * 10_000_000)
        eventually(lambda: 9_000_000 < int(server.info("memory")["used_memory"]) - before < 11_000_000,
                   "ten megabytes more")
