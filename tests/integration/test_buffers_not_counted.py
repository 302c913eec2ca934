"""Buffers that eviction makes longer are not counted for maxmemory: what replicas have not read,
and what the AOF's file has not got. INFO, MEMORY STATS and CLIENT LIST tell how much they hold."""

import re
import select

import pytest

from lib.bounds import eventually
from lib.replica import MODERN
from lib.replication import replication

pytestmark = pytest.mark.any_threads

MB = 1 << 20
KEYS = 100
OPTIONS = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "3600", "save": ""}
FILL = "for i = 1, tonumber(ARGV[1]) do redis.call('SET', 'key:' .. i %% %d, ARGV[2]) end" % KEYS


@pytest.fixture(params=["ours", "redis"])
def primary(request, make_server, make_oracle):
    """The same is asked of both."""
    make = make_server if request.param == "ours" else make_oracle
    server = make(OPTIONS)
    with server.connect() as c:
        c.ok("CONFIG", "SET", "client-output-buffer-limit", "replica 0 0 0", "repl-backlog-size", MB)
    return server


def fill(c, times):
    """Each key is there; each value is written over many times."""
    c.call("EVAL", FILL, 0, times, "x" * 10_000)


def memory(server):
    return {name: int(value) for name, value in server.info("memory").items() if value.isdigit()}


def evicted(server):
    return int(server.info("stats")["evicted_keys"])


def stats(c):
    flat = c.call("MEMORY", "STATS")
    return dict(zip(flat[::2], flat[1::2]))


def listed(c, field):
    """A number of the one replica in CLIENT LIST."""
    return int(re.search(r" %s=(\d+)" % field, c.call("CLIENT", "LIST", "TYPE", "replica").decode()).group(1))


def stopped_replica(play, server, c):
    """One that takes part, and reads nothing any more."""
    p = play(server, MODERN)
    offset = p.full()[1]
    # Redis begins to send with an ACK that comes when its child has ended.
    eventually(lambda: (p.c.send("REPLCONF", "ACK", offset),
                        "state=online" in replication(server).get("slave0", ""))[1], "online")
    p.c.send("REPLCONF", "ACK", offset)
    fill(c, KEYS)
    return p


def test_a_stopped_replica_evicts_nothing(primary, play):
    with primary.connect() as c:
        fill(c, KEYS)
        before = memory(primary)
        assert before["mem_total_replication_buffers"] == before["mem_clients_slaves"] == 0
        p = stopped_replica(play, primary, c)
        c.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", before["used_memory"] + 6 * MB)
        for _ in range(15):
            fill(c, 2 * KEYS)
        assert evicted(primary) == 0 and c.call("DBSIZE") == KEYS
        found = memory(primary)
        pending = found["mem_not_counted_for_evict"]
        assert found["used_memory"] > found["maxmemory"]
        assert pending > 15 * MB
        assert found["mem_clients_slaves"] > 15 * MB
        assert MB <= found["mem_replication_backlog"] < 1.2 * MB
        assert found["mem_total_replication_buffers"] == pytest.approx(
            found["mem_clients_slaves"] + found["mem_replication_backlog"], abs=MB // 8)
        assert found["used_memory_overhead"] > found["mem_total_replication_buffers"]
        told = stats(c)
        assert told[b"replication.backlog"] == pytest.approx(found["mem_replication_backlog"], abs=MB // 8)
        assert told[b"clients.slaves"] == pytest.approx(found["mem_clients_slaves"], abs=MB // 8)
        assert told[b"overhead.total"] > pending
        assert listed(c, "omem") > 15 * MB and listed(c, "tot-mem") >= listed(c, "omem")
        p.close()
        eventually(lambda: memory(primary)["mem_clients_slaves"] == 0, "freed with it")
        found = memory(primary)
        assert found["mem_not_counted_for_evict"] < MB // 8
        assert found["mem_total_replication_buffers"] < 1.2 * MB
        assert evicted(primary) == 0


def test_what_eviction_tells_evicts_nothing_more(primary, play):
    """Many small keys with long names: each DEL is longer than half of what its key takes."""
    with primary.connect() as c:
        stopped_replica(play, primary, c)
        c.ok("FLUSHALL")
        c.ok("CONFIG", "SET", "repl-backlog-size", 16384)
        name = "n" * 1000
        c.call("EVAL", "for i = 1, 30000 do redis.call('SET', ARGV[1] .. i, '') end", 0, name)
        found = memory(primary)
        counted = found["used_memory"] - found["mem_not_counted_for_evict"]
        c.ok("CONFIG", "SET", "maxmemory-eviction-tenacity", 100, "maxmemory-policy", "allkeys-random",
             "maxmemory", counted - 10 * MB)
        eventually(lambda: (c.call("SET", "one more", ""), evicted(primary) > 4000)[1], "evicted")
        eventually(lambda: memory(primary)["used_memory"] - memory(primary)["mem_not_counted_for_evict"]
                   <= memory(primary)["maxmemory"], "within it")
        # 10 MiB of keys that take at least 1,000 bytes each.
        assert evicted(primary) < 15_000


def test_the_log_is_not_counted(make_server):
    """With one thread: another one's look may fall between the script's end and the freeing of what it
    replaced."""
    server = make_server(dict(OPTIONS, **{"appendonly": "yes", "appendfsync": "always", "server-threads": "1"}))
    server.expected_files |= {"appendonlydir"}
    with server.connect() as c, server.connect() as writer:
        fill(c, KEYS)
        assert memory(server)["mem_aof_buffer"] < MB
        c.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory",
             memory(server)["used_memory"] + 6 * MB)
        c.ok("DEBUG", "AOF-FLUSH-SLEEP", 300_000)
        words = ["EVAL", FILL, 0, 20 * KEYS, "x" * 10_000]
        writer.send(*words)

        def in_the_buffer():
            """Once more where it was in the file before anybody looked."""
            if select.select([writer.sock], [], [], 0)[0]:
                assert writer.read() is None
                writer.send(*words)
            return memory(server)["mem_aof_buffer"] > 15 * MB
        eventually(in_the_buffer, "in the buffer")
        found = memory(server)
        assert found["mem_not_counted_for_evict"] >= found["mem_aof_buffer"] - MB
        assert writer.read() is None
        c.ok("DEBUG", "AOF-FLUSH-SLEEP", 0)
        assert stats(c)[b"aof.buffer"] < MB
        assert evicted(server) == 0 and c.call("DBSIZE") == KEYS


def test_replicas_do_not_count_for_maxmemory_clients(primary, play):
    with primary.connect() as c:
        p = stopped_replica(play, primary, c)
        c.ok("CONFIG", "SET", "maxmemory-clients", 4 * MB)
        for _ in range(5):
            fill(c, 2 * KEYS)
        assert listed(c, "tot-mem") > 4 * MB
        assert p.command() in ([b"SELECT", b"0"], [b"MULTI"])
        assert primary.info("stats")["evicted_clients"] == "0"
