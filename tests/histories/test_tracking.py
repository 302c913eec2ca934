"""Clients that cache what they read, and drop what they are told has changed, never hold an old
value once the writer has its reply and they have asked anything at all.

Writers count each key upwards and publish (in this process) what has been acknowledged.  A reader
takes that number, sends a PING and handles what comes before the answer; then a value in its cache
that is older than the number is stale.  Tried with a server that does not look at changes before it
runs requests: all modes fail with four threads."""

import threading
import time

import pytest

from lib.bounds import eventually, scaled
from lib.resp import Push
from lib.seeds import generator

KEYS = 6
READERS = 6
WRITERS = 3
SECONDS = 2.0


class Reader:
    def __init__(self, client, mode):
        self.client, self.cache, self.hits, self.told = client, {}, 0, 0
        client.ok("CLIENT", "TRACKING", "ON", *mode)

    def ask(self, *words):
        self.client.send(*words)
        while True:
            frame = self.client.read_frame()[1]
            if not isinstance(frame, Push):
                return frame
            assert frame[0] == b"invalidate"
            self.told += 1
            if frame[1] is None:
                self.cache.clear()
            else:
                for key in frame[1]:
                    self.cache.pop(key, None)

    def look(self, key, acknowledged):
        self.ask("PING")
        value = self.cache.get(key)
        if value is None:
            value = self.cache[key] = int(self.ask("GET", key) or 0)
        else:
            self.hits += 1
        assert value >= acknowledged, (key, value, acknowledged)


@pytest.mark.parametrize("mode", [[], ["NOLOOP"], ["BCAST", "PREFIX", "k"]],
                         ids=["default", "noloop", "bcast"])
def test_no_stale_reads(connect, mode):
    acknowledged, faults, stop = [0] * KEYS, [], threading.Event()
    readers = [Reader(connect(3), mode) for _ in range(READERS)]
    writers = [connect() for _ in range(WRITERS)]
    locks = [threading.Lock() for _ in range(KEYS)]

    def guarded(body):
        def run(*arguments):
            try:
                while not stop.is_set():
                    body(*arguments)
            except Exception as error:  # pylint: disable=broad-except
                faults.append(error)
                stop.set()
        return run

    def read(reader, random):
        for _ in range(20):
            k = random.randrange(KEYS)
            reader.look(b"k%d" % k, acknowledged[k])
        time.sleep(random.random() * 0.002)

    def write(client, random):
        k = random.randrange(KEYS)
        with locks[k]:
            if random.random() < 0.2:
                client.call("MULTI")
                client.call("INCR", "k%d" % k)
                acknowledged[k] = client.call("EXEC")[0]
            else:
                acknowledged[k] = client.call("INCR", "k%d" % k)
        time.sleep(random.random() * 0.003)

    threads = [threading.Thread(target=guarded(read), args=(r, generator(1, "reader", i)))
               for i, r in enumerate(readers)]
    threads += [threading.Thread(target=guarded(write), args=(w, generator(1, "writer", i)))
                for i, w in enumerate(writers)]
    for thread in threads:
        thread.start()
    stop.wait(SECONDS)
    try:
        eventually(lambda: stop.is_set() or all(r.hits and r.told for r in readers), "each has read and was told")
    finally:
        stop.set()
    for thread in threads:
        thread.join(scaled(30))
    assert not faults, faults[0]
    for reader in readers:
        assert reader.hits > 0 and reader.told > 0
    assert sum(acknowledged) > 0
