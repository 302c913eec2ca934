"""maxmemory: keys go where they may, commands are refused where they may not, and the memory in
use stays within the limit, whoever makes it grow."""

import threading

import pytest

from lib.bounds import eventually
from lib.pubsub import frame
from lib.resp import Error
from lib.server import parse_info

OOM = b"OOM command not allowed when used memory > 'maxmemory'."
ABORTED = b"EXECABORT Transaction discarded because of: " + OOM
MB = 1 << 20
VALUE = b"v" * 1000

EVICTING = ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu",
            "volatile-random", "volatile-ttl"]


@pytest.fixture(autouse=True)
def counted_from_zero(client):
    client.ok("CONFIG", "RESETSTAT")


def info(client, section="everything"):
    return parse_info(client.call("INFO", section))


def used(client):
    return int(info(client, "memory")["used_memory"])


def evicted(client):
    return int(info(client, "stats")["evicted_keys"])


def limit_to(client, more_bytes, policy):
    """Sets the limit `more_bytes` above what is in use; returns it."""
    limit = used(client) + more_bytes
    client.ok("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", str(limit))
    return limit


def volatile(policy):
    return policy.startswith("volatile")


def writes(policy, first, count):
    expiry = ["EX", "100000"] if volatile(policy) else []
    return [["SET", "key:%d" % i, VALUE] + expiry for i in range(first, first + count)]


# -- keeping to it

@pytest.mark.parametrize("policy", EVICTING)
def test_memory_stays_within_the_limit(client, connect, policy):
    writers = [connect() for _ in range(8)]
    limit = limit_to(client, 6 * MB, policy)
    for i in range(60):
        for w, writer in enumerate(writers):
            first = (i * len(writers) + w) * 50
            assert writer.pipeline(writes(policy, first, 50)) == [b"OK"] * 50
        assert used(client) < limit + MB
    assert 1000 < client.call("DBSIZE") < 10000
    # With values of a few sizes the allocator's classes, not chance, say how many fit. (One may go between two looks.)
    eventually(lambda: evicted(client) == 60 * 8 * 50 - client.call("DBSIZE"), "all that are gone were evicted")
    stats = info(client, "stats")
    assert int(stats["total_eviction_exceeded_time"]) >= int(stats["current_eviction_exceeded_time"])


def test_large_values(client, connect):
    writers = [connect() for _ in range(4)]
    limit = limit_to(client, 40 * MB, "allkeys-lru")
    for i in range(120):
        for w, writer in enumerate(writers):
            writer.ok("SET", "large:%d:%d" % (w, i), b"x" * (MB // 2 + 1000 * w))
        assert used(client) < limit + 8 * MB
    assert 20 < client.call("DBSIZE") < 85
    assert evicted(client) > 300


def test_many_threads_of_writers(server, client):
    """Each on a connection of its own, all at once; collections too, freed in the background."""
    client.ok("CONFIG", "SET", "lazyfree-lazy-eviction", "yes")
    limit = limit_to(client, 8 * MB, "allkeys-lru")
    trouble = []

    def write(number):
        try:
            with server.connect() as c:
                for i in range(60):
                    batch = [["SET", "s:%d:%d" % (number, k), VALUE]
                             for k in range(40 * i, 40 * i + 40)]
                    batch += [["RPUSH", "l:%d:%d" % (number, i)] + ["x%d" % k for k in range(400)],
                              ["SADD", "set:%d:%d" % (number, i)] + ["y%d" % k for k in range(400)]]
                    for reply in c.pipeline(batch):
                        if isinstance(reply, Error):
                            raise AssertionError(reply)
        except Exception as problem:  # told by the test's own thread
            trouble.append(problem)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        assert used(client) < limit + 4 * MB
    for t in threads:
        t.join()
    assert not trouble
    assert evicted(client) > 0


def test_growth_within_one_batch(client):
    """One pipeline of commands that each take far more than their own bytes."""
    limit = limit_to(client, 30 * MB, "noeviction")
    replies = client.pipeline([["SETRANGE", "k%d" % i, str(2 * MB), "x"] for i in range(100)])
    done = sum(1 for r in replies if r == 2 * MB + 1)
    assert 11 <= done <= 17  # by the allocator's size classes
    assert [r for r in replies if r != 2 * MB + 1] == [OOM] * (100 - done)
    assert used(client) < limit + 4 * MB


def test_growth_within_one_batch_is_made_up_for(client):
    limit = limit_to(client, 30 * MB, "allkeys-lru")
    replies = client.pipeline([["SETRANGE", "k%d" % i, str(2 * MB), "x"] for i in range(100)])
    assert replies == [2 * MB + 1] * 100
    assert used(client) < limit + 4 * MB


def test_an_exec_late_in_a_batch_that_has_outgrown_the_limit(client):
    limit_to(client, 10 * MB, "noeviction")
    big = [["SETRANGE", "k%d" % i, str(4 * MB), "x"] for i in range(4)]
    replies = client.pipeline(big + [["GET", "none"], ["MULTI"], ["SET", "a", "1"], ["EXEC"],
                                     ["DBSIZE"]])
    assert replies[4] is None
    assert OOM in replies[:4]
    assert replies[-2] in (ABORTED, b"EXECABORT Transaction discarded because of previous errors.")
    assert replies[-1] == replies[:4].count(4 * MB + 1)


def test_a_lower_limit_works_without_traffic(client):
    client.pipeline(writes("allkeys-lru", 0, 20000))
    before = used(client)
    client.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory",
              str(before - 10 * MB))
    # The asking connection's own thread evicts as well when it is asked: by far not all at once.
    eventually(lambda: used(client) <= before - 10 * MB, "the memory is within the new limit")
    eventually(lambda: info(client, "stats")["current_eviction_exceeded_time"] == "0",
               "the time over the limit has ended")


def test_all_databases_are_evicted_from(client):
    for db in range(8):
        client.ok("SELECT", str(db))
        client.pipeline(writes("allkeys-lru", 0, 500))
    limit_to(client, -2 * MB, "allkeys-random")
    eventually(lambda: evicted(client) > 1500, "keys are evicted")
    for db in range(8):
        client.ok("SELECT", str(db))
        assert client.call("DBSIZE") < 500


# -- whom

def test_the_volatile_policies_spare_what_has_no_expiry(client):
    client.pipeline(writes("allkeys-lru", 0, 2000))
    client.pipeline([["SET", "v%d" % i, VALUE, "EX", "100000"] for i in range(2000)])
    for policy in EVICTING[3:]:
        client.ok("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", "1")
        eventually(lambda: evicted(client) == 2000, "all that may go are gone")
        # It is done as long as the evicting goes on: then it is one of those that go.
        eventually(lambda: client.call("SET", "v0", "y", "EX", "100000") == OOM, "a write is refused")
        client.ok("CONFIG", "RESETSTAT")
        assert client.call("DBSIZE") == 2000
        assert client.call("EXISTS", *["v%d" % i for i in range(2000)]) == 0
        client.ok("CONFIG", "SET", "maxmemory", "0")
        client.pipeline([["SET", "v%d" % i, VALUE, "EX", "100000"] for i in range(2000)])


def test_lru_keeps_what_was_used(client):
    client.ok("SET", "old", VALUE)
    old = client.call("DUMP", "old")
    client.ok("FLUSHALL")
    for i in range(4000):
        client.ok("RESTORE", "key:%d" % i, "0", old, "IDLETIME", "1000" if i % 2 else "0")
    limit_to(client, -MB, "allkeys-lru")
    client.call("PING")
    eventually(lambda: evicted(client) >= 800, "about a thousand keys are evicted")
    alive = client.pipeline([["EXISTS", "key:%d" % i] for i in range(4000)])
    fresh_gone, old_gone = 2000 - sum(alive[0::2]), 2000 - sum(alive[1::2])
    assert old_gone > 700
    # Sanitizers' allocators count what was freed late: then all that is old goes, and more.
    late = b"mem_allocator:sanitizer" in client.call("INFO", "memory")
    assert fresh_gone < 10 or (late and old_gone > 1990), (fresh_gone, old_gone)


def test_ttl_takes_what_expires_first(client):
    client.ok("CONFIG", "SET", "maxmemory-samples", "64")
    client.pipeline([["SET", "key:%d" % i, VALUE, "EX", "100" if i % 2 else "100000"]
                     for i in range(4000)])
    limit_to(client, -MB, "volatile-ttl")
    eventually(lambda: evicted(client) >= 800, "about a thousand keys are evicted")
    alive = client.pipeline([["EXISTS", "key:%d" % i] for i in range(4000)])
    assert sum(alive[0::2]) > 1990


# -- what is told

def test_events_invalidations_and_watch(client, connect):
    client.ok("CONFIG", "SET", "notify-keyspace-events", "Ee")
    listener, tracker, watcher = connect(), connect(3), connect()
    assert listener.call("SUBSCRIBE", "__keyevent@0__:evicted")[0] == b"subscribe"
    tracker.ok("CLIENT", "TRACKING", "ON")
    client.ok("SET", "k", "v")
    assert tracker.call("GET", "k") == b"v"
    watcher.ok("WATCH", "k")
    before = evicted(client)
    client.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "1")
    eventually(lambda: evicted(client) == before + 1, "the key is evicted")
    assert listener.read() == [b"message", b"__keyevent@0__:evicted", b"k"]
    assert frame(tracker) == [b"invalidate", [b"k"]]
    client.ok("CONFIG", "SET", "maxmemory", "0")
    watcher.ok("MULTI")
    assert watcher.call("PING") == b"QUEUED"
    assert watcher.call("EXEC") is None


# -- refusing

def test_noeviction_refuses_what_needs_memory_and_nothing_else(client, connect):
    client.ok("SET", "a", "1")
    client.call("RPUSH", "l", "1", "2")
    client.ok("CONFIG", "SET", "maxmemory", "1")
    for other in [client] + [connect() for _ in range(8)]:
        for words in (["SET", "b", "1"], ["RPUSH", "l", "1"], ["INCR", "a"], ["HSET", "h", "a", "b"],
                      ["SETRANGE", "a", "1", "2"], ["APPEND", "a", "x"], ["COPY", "a", "c"],
                      ["BITOP", "NOT", "c", "a"], ["SORT", "l", "STORE", "c"], ["XADD", "x", "*", "a", "b"]):
            assert other.error(*words) == OOM, words
        assert other.call("GET", "a") == b"1"
        assert other.call("EXPIRE", "a", "100") == 1
        assert other.call("RENAME", "a", "a") == b"OK"
    assert client.call("LPOP", "l") == b"1"
    assert client.call("DEL", "l") == 1
    client.ok("CONFIG", "SET", "maxmemory", "0")
    client.ok("SET", "b", "1")


def test_what_a_pipeline_frees_the_next_command_may_use(client):
    client.ok("SET", "big", b"x" * (20 * MB))
    client.ok("SET", "a", "1")
    limit_to(client, -MB, "noeviction")
    many = 50
    replies = client.pipeline([["SET", "a", "2"]] * many + [["GET", "a"], ["DEL", "big"]]
                              + [["SET", "a", "3"]] * many + [["GET", "a"]])
    assert replies == [OOM] * many + [b"1", 1] + [b"OK"] * many + [b"3"]


def test_transactions(client, connect):
    other = connect()
    client.ok("MULTI")
    assert client.call("SET", "a", "1") == b"QUEUED"
    other.ok("CONFIG", "SET", "maxmemory", "1")
    assert client.error("EXEC") == ABORTED
    assert client.call("GET", "a") is None
    # Queueing takes memory as well.
    client.ok("MULTI")
    assert client.error("GET", "a") == OOM
    assert client.error("WATCH", "a") == OOM
    assert client.error("MULTI") == OOM
    assert client.error("EXEC") == b"EXECABORT Transaction discarded because of previous errors."
    client.ok("MULTI")
    client.ok("DISCARD")
    # What was queued in time and needs no memory is run.
    other.ok("CONFIG", "SET", "maxmemory", "0")
    client.ok("MULTI")
    assert client.call("GET", "a") == b"QUEUED"
    other.ok("CONFIG", "SET", "maxmemory", "1")
    assert client.call("EXEC") == [None]


@pytest.mark.parametrize("policy", ["noeviction", "allkeys-lru"])
def test_a_limit_below_what_the_server_itself_needs(client, policy):
    client.pipeline(writes(policy, 0, 1000))
    client.ok("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", "1")
    eventually(lambda: isinstance(client.call("SET", "x", "y"), Error), "writes are refused")
    assert client.call("DBSIZE") == (1000 if policy == "noeviction" else 0)
    assert int(info(client, "stats")["current_eviction_exceeded_time"]) >= 0
    client.ok("CONFIG", "SET", "maxmemory", "0")
    client.ok("SET", "x", "y")
    client.ok("CONFIG", "RESETSTAT")
    assert info(client, "stats")["total_eviction_exceeded_time"] == "0"
    assert evicted(client) == 0


def test_the_memory_of_the_machine(client):
    """Every machine that runs this uses more than one percent: all keys that may go do, though there
    is no maxmemory, and nothing is refused."""
    client.ok("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    for n in range(200):
        client.ok("SET", "stays%d" % n, VALUE)
        client.ok("SET", "goes%d" % n, VALUE, "EX", 10**6)
    client.ok("CONFIG", "SET", "force-eviction-percent", 1)
    eventually(lambda: client.call("DBSIZE") == 200, "keys with an expiry are evicted", 60)
    assert evicted(client) == 200
    client.ok("SET", "more", VALUE)
    assert client.call("KEYS", "goes*") == []
    client.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    eventually(lambda: client.call("DBSIZE") == 0, "all are", 60)
    assert isinstance(client.call("CONFIG", "SET", "force-eviction-percent", 101), Error)
    client.ok("CONFIG", "SET", "force-eviction-percent", 0)


def test_the_latency_monitor_sees_long_evictions(client):
    client.ok("CONFIG", "SET", "latency-monitor-threshold", "1", "maxmemory-eviction-tenacity",
              "100", "maxmemory-policy", "allkeys-lru")
    client.pipeline([["SET", "k%d" % i, "x" * 100] for i in range(60000)])
    client.ok("CONFIG", "SET", "maxmemory", "1")
    eventually(lambda: client.call("DBSIZE") == 0, "all keys are evicted")
    eventually(lambda: b"eviction-cycle" in [event[0] for event in client.call("LATENCY", "LATEST")],
               "it is measured when it is over")


# -- the count

def control(client, name):
    return client.call("DEBUG", "MALLCTL", name)


def allocator_says(client):
    """What jemalloc's statistics call allocated, less what it keeps in threads' caches."""
    client.call("DEBUG", "MALLCTL", "epoch", "1")
    return control(client, "stats.allocated") - control(client, "stats.arenas.4096.tcache_bytes")


def agree(client, part):
    """To a `part`-th; not while a thread is giving back what was removed."""
    truth = allocator_says(client)
    return abs(used(client) - truth) <= truth / part


def test_used_memory_is_what_the_allocator_says(client, connect):
    if isinstance(control(client, "stats.allocated"), Error):
        pytest.skip("this build's allocator does not tell")
    writers = [connect() for _ in range(8)]
    client.ok("MEMORY", "PURGE")
    for round_ in range(4):
        for w, writer in enumerate(writers):
            small = [["SET", "s:%d:%d:%d" % (round_, w, i), "x" * (i % 200)] for i in range(3000)]
            writer.pipeline(small)
            writer.pipeline([["SET", "l:%d:%d" % (w, i), b"x" * (1000000 * (1 + (i + round_) % 4))]
                             for i in range(4)])
            writer.pipeline([["HSET", "h:%d" % w] + ["f%d" % i for i in range(2000)],
                             ["DEL", "l:%d:1" % ((w + round_) % 8)]])
        eventually(lambda: agree(client, 100), "they agree")
    client.ok("FLUSHALL")
    eventually(lambda: agree(client, 50), "they agree")  # little is left, of which a percent is nothing
