#!/usr/bin/python3
"""maxmemory beside the oracle: how good the choice of keys is, and what inserting costs at the
limit.  See README.md in this folder.

    tests/bench/eviction.py hits [--seconds 40] [--policies allkeys-lru,allkeys-lfu]
    tests/bench/eviction.py fill [--quick]
"""

import argparse
import bisect
import collections
import itertools
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from servers import ORACLE, REPOSITORY, Server  # noqa: E402

# ---- hits: a Zipf trace, each miss is followed by a SET; the same for all

UNIVERSE = 200000
CAPACITY = 50000
EXPONENT = 0.99
RATE = 30000     # requests a second, the same for all: access clocks count seconds
BATCH = 300
SEED = 20231121
VALUE = b"v" * 16
HIT = len(b"$16\r\n\r\n") + len(VALUE)


def trace(count):
    """Key numbers: popularity falls with the rank; ranks are dealt to keys at random."""
    chance = random.Random(SEED)
    weights = itertools.accumulate(1.0 / (rank + 1) ** EXPONENT for rank in range(UNIVERSE))
    cumulated = list(weights)
    key_of = list(range(UNIVERSE))
    chance.shuffle(key_of)
    total = cumulated[-1]
    return [key_of[bisect.bisect(cumulated, chance.random() * total)] for _ in range(count)]


def exact_lru(keys, filled, skip):
    """The share of hits that keeping exactly the CAPACITY last used keys would have."""
    cache = collections.OrderedDict((key, None) for key in filled)
    hits = 0
    for i, key in enumerate(keys):
        if key in cache:
            cache.move_to_end(key)
            hits += i >= skip
        else:
            cache[key] = None
            if len(cache) > CAPACITY:
                cache.popitem(last=False)
    return hits / (len(keys) - skip)


class Pipe:
    """Many commands at once over one connection."""

    def __init__(self, server):
        self.client = server.client()
        self.socket = self.client.socket

    def receive(self, size):
        parts = []
        while size > 0:
            part = self.socket.recv(1 << 20)
            if not part:
                raise ConnectionError("closed")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def sets(self, names):
        self.socket.sendall(b"".join(
            b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$16\r\n%s\r\n" % (len(n), n, VALUE) for n in names))
        replies = self.receive(5 * len(names))
        if replies != b"+OK\r\n" * len(names):
            raise RuntimeError(replies[:200])

    def misses(self, names):
        """Which of them a GET does not find."""
        self.socket.sendall(b"".join(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(n), n)
                                     for n in names))
        missing, data, at = [], b"", 0
        for name in names:
            while len(data) < at + 5 or (data[at + 1] != 45 and len(data) < at + HIT):
                data += self.receive(1)
            if data[at + 1] == 45:
                missing.append(name)
                at += 5
            else:
                at += HIT
        return missing


def name_of(key):
    return b"key:%08d" % key


def used(server):
    return int(server.info("memory")["used_memory"])


def replay(path, threads, policy, keys, filled, skip):
    with Server(path, threads, "0,1") as server:
        pipe = Pipe(server)
        server.call("CONFIG", "SET", "maxmemory-policy", policy)
        empty = used(server)
        for i in range(0, len(filled), BATCH):
            pipe.sets([name_of(key) for key in filled[i:i + BATCH]])
        limit = used(server)
        each = (limit - empty) / len(filled)
        server.call("CONFIG", "SET", "maxmemory", limit)
        begin, hits, sizes = time.monotonic(), 0, []
        for i in range(0, len(keys), BATCH):
            # A key that comes twice in a batch is asked for once: its SET would come in between.
            names = [name_of(key) for key in dict.fromkeys(keys[i:i + BATCH])]
            missing = pipe.misses(names)
            if missing:
                pipe.sets(missing)
            if i >= skip:
                hits += len(keys[i:i + BATCH]) - len(missing)
            if i % (20 * BATCH) == 0:
                size = server.call("DBSIZE")
                if i >= skip:
                    sizes.append(size)
                else:
                    # What a key takes at the limit differs from what it took on the way there: the
                    # warm-up finds the limit at which both keep as many keys.
                    limit = int(limit + 0.3 * each * (CAPACITY - size))
                    server.call("CONFIG", "SET", "maxmemory", limit)
            late = begin + (i + BATCH) / RATE - time.monotonic()
            if late > 0:
                time.sleep(late)
        stats = server.info("stats")
        return {"ratio": hits / (len(keys) - skip), "keys": sum(sizes) / len(sizes),
                "evicted": int(stats["evicted_keys"]), "seconds": time.monotonic() - begin}


def hits(options):
    keys = trace(RATE * options.seconds)
    filled = random.Random(SEED + 1).sample(range(UNIVERSE), CAPACITY)
    skip = len(keys) // 3 // BATCH * BATCH
    print("Zipf %.2f over %d keys, room for %d, %d requests (the first third warms up)" %
          (EXPONENT, UNIVERSE, CAPACITY, len(keys)))
    print("exact LRU                        hits %.4f" % exact_lru(keys, filled, skip))
    for policy in options.policies.split(","):
        for label, path, threads in (("oracle", ORACLE, 1), ("ours, 1 thread", options.server, 1),
                                     ("ours, 4 threads", options.server, 4)):
            r = replay(path, threads, policy, keys, filled, skip)
            print("%-16s %-15s hits %.4f   keys kept %.0f   evicted %d   %.0f s" %
                  (policy, label, r["ratio"], r["keys"], r["evicted"], r["seconds"]), flush=True)


# ---- fill: CPU time of an insertion, before the limit and at it

def insert(server, pipe, first, count, size):
    """Inserts keys; microseconds of CPU, and of wall time, an insertion took."""
    value = b"x" * size
    batch = max(1, min(100, (1 << 20) // max(size, 1)))
    cpu, wall = server.cpu_s(), time.monotonic()
    for i in range(first, first + count, batch):
        pipe.socket.sendall(b"".join(
            b"*3\r\n$3\r\nSET\r\n$16\r\n%016d\r\n$%d\r\n%s\r\n" % (k, size, value)
            for k in range(i, min(i + batch, first + count))))
        pipe.receive(5 * (min(i + batch, first + count) - i))
    return ((server.cpu_s() - cpu) / count * 1e6, (time.monotonic() - wall) / count * 1e6)


def fill_one(label, path, size, count, policy):
    """Ten windows up to the limit, ten beyond."""
    with Server(path, 1, "1") as server:
        pipe = Pipe(server)
        server.call("CONFIG", "SET", "maxmemory-policy", policy)
        before, after, window = [], [], count // 10
        for w in range(10):
            before.append(insert(server, pipe, w * window, window, size))
        server.call("CONFIG", "SET", "maxmemory", server.info("memory")["used_memory"])
        over = 0
        for w in range(10, 20):
            after.append(insert(server, pipe, w * window, window, size))
            info = server.info("memory")
            over = max(over, int(info["used_memory"]) / int(info["maxmemory"]))
        evicted = int(server.info("stats")["evicted_keys"])
    mean = [sum(w[k] for w in windows) / 10 for windows in (before, after) for k in (0, 1)]
    worst = max(w[0] for w in after)
    print("%-14s %7d bytes %-14s CPU %8.2f -> %8.2f us (worst window %8.2f)   wall %8.2f -> %8.2f us"
          "   used/limit %.4f   evicted %d" % (label, size, policy, mean[0], mean[2], worst, mean[1],
                                               mean[3], over, evicted), flush=True)


def fill(options):
    part = 10 if options.quick else 1
    for policy in options.policies.split(","):
        for size, count in ((64, 1000000), (1000, 400000), (100000, 4000)):
            for label, path in (("oracle", ORACLE), ("ours, 1 thread", options.server)):
                fill_one(label, path, size, count // part, policy)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("hits", "fill"))
    parser.add_argument("--server", default=os.path.join(REPOSITORY, "src", "keydb-server"))
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--policies", default="allkeys-lru,allkeys-lfu")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    (hits if options.what == "hits" else fill)(options)


if __name__ == "__main__":
    main()
