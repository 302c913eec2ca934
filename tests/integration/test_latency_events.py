"""LATENCY's events: each step that Redis notes and that there is here is noted under Redis's name, and
shown by every subcommand. Calls on files take 3 ms longer than they need, and the threshold is 1 ms;
what frees keys frees so many elements that it cannot take less."""

import os
import signal

import pytest

from integration.test_aof_faults import make_faulty, rewritten  # noqa: F401 (fixtures)
from lib.bounds import eventually
from lib.server import children_of, is_redis, server_path

pytestmark = pytest.mark.skipif(is_redis(server_path()), reason="the layer is made for our calls on files")

SLOW_MS = 3
LARGE = "for i = 1, 200000 do redis.call('SADD', KEYS[1], 'member' .. i) end"
# What stands in engine/latency.h with its reason.
IMPOSSIBLE = {"aof-rewrite-diff-write", "eviction-lazyfree", "active-defrag-cycle", "while-blocked-cron",
              "module-acquire-GIL", "command-unblocking"}
FILES = {"fork", "aof-write", "aof-write-pending-fsync", "aof-write-active-child", "aof-write-alone",
         "aof-fsync-always", "aof-fstat", "aof-rename", "rdb-unlink-temp-file"}


def events(c):
    return {event[0].decode(): event for event in c.call("LATENCY", "LATEST")}


def wait_for_event(c, event):
    """And all that shows it."""
    def shown():
        """In both, unless another one has come between the two looks."""
        found = events(c).get(event)
        return found and found[1:3] in c.call("LATENCY", "HISTORY", event) and found
    _, _, latest, highest = eventually(shown, event)
    assert highest >= latest >= 1
    assert c.call("LATENCY", "GRAPH", event).startswith(b"%s - high " % event.encode())
    report = c.call("LATENCY", "DOCTOR")
    assert b". %s: " % event.encode() in report and b"Advice:" in report
    assert c.call("LATENCY", "RESET", event) == 1


def test_files(make_faulty, faults):  # noqa: F811
    server = make_faulty({"appendonly": "yes", "appendfsync": "always", "rdb-key-save-delay": "100000"})
    seen = set()

    def see(*names):
        for name in names:
            wait_for_event(c, name)
            seen.add(name)

    with server.connect() as c, server.connect() as writer:
        c.ok("DEBUG", "POPULATE", 2000)
        c.ok("CONFIG", "SET", "latency-monitor-threshold", "1")
        faults.set(slow_ms=SLOW_MS)
        c.ok("SET", "a", "1")
        see("aof-write", "aof-write-alone", "aof-fsync-always")
        assert c.call("BGSAVE").startswith(b"Background")
        c.ok("SET", "a", "2")
        see("fork", "aof-write-active-child")
        for pid in children_of(server.pid):
            os.kill(pid, signal.SIGKILL)
        see("rdb-unlink-temp-file")
        c.ok("CONFIG", "SET", "appendfsync", "everysec", "rdb-key-save-delay", "0")
        assert c.call("BGREWRITEAOF").startswith(b"Background")
        rewritten(server, "ok")
        see("aof-rename", "aof-fstat")
        faults.set(slow_ms=SLOW_MS, sync_hangs=1)

        def write():
            writer.send("SET", "a", "3")  # after a while it waits for the sync
            return "aof-write-pending-fsync" in events(c)

        eventually(write, "a write beside a sync")
        faults.set(slow_ms=SLOW_MS)
        see("aof-write-pending-fsync")
        c.ok("CONFIG", "SET", "latency-monitor-threshold", "0")
        c.call("LATENCY", "RESET")
        c.ok("SET", "a", "4")
        assert events(c) == {}
    assert seen == FILES


@pytest.mark.parametrize("lazily", ["no", "yes"])
def test_expiring(make_server, lazily):
    """With lazyfree nobody waits for what is freed."""
    server = make_server({"latency-monitor-threshold": "1", "lazyfree-lazy-expire": lazily,
                          "notify-keyspace-events": "Ex"})
    with server.connect() as c, server.connect() as listening:
        listening.call("SUBSCRIBE", "__keyevent@0__:expired")

        def expires():
            c.call("EVAL", LARGE, "1", "large")
            c.call("LATENCY", "RESET")
            c.call("PEXPIRE", "large", "1")
            assert listening.read()[2] == b"large"
        expires()
        if lazily == "no":
            wait_for_event(c, "expire-del")
            wait_for_event(c, "expire-cycle")
        else:
            for _ in range(5):
                if "expire-del" not in events(c):
                    break
                expires()  # a busy machine may have held it up for the millisecond
            assert "expire-del" not in events(c)


def test_evicting(make_server):
    server = make_server({"latency-monitor-threshold": "1", "maxmemory-policy": "allkeys-random",
                          "lazyfree-lazy-eviction": "no"})
    with server.connect() as c:
        c.call("EVAL", LARGE, "1", "large")
        c.call("LATENCY", "RESET")
        c.ok("CONFIG", "SET", "maxmemory", int(server.info("memory")["used_memory"]) - 1_000_000)
        c.call("SET", "small", "1")
        wait_for_event(c, "eviction-del")
        wait_for_event(c, "eviction-cycle")


def test_the_list_of_what_cannot_happen():
    """Every event that Redis 7.2 has is seen by a test here or stands in the list."""
    seen = FILES | {"expire-cycle", "expire-del", "eviction-cycle", "eviction-del", "command", "fast-command"}
    assert not seen & IMPOSSIBLE
    header = os.path.join(os.path.dirname(__file__), "..", "..", "src", "engine", "latency.h")
    with open(header, encoding="utf-8") as file:
        text = file.read()
    assert [name for name in sorted(seen | IMPOSSIBLE) if name not in text] == []
