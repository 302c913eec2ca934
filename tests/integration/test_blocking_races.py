"""Time-outs, CLIENT UNBLOCK, CLIENT KILL and leaving clients race with writers on other threads: one
reply for each call, each element for one client."""

import threading

import pytest

from lib.bounds import eventually
from lib.resp import Closed, Error, encode
from lib.seeds import generator, seeds
from lib.server import parse_info

pytestmark = pytest.mark.one_thread("who waits and who serves are on the same thread")

KEYS = ["q1", "q2"]
UNBLOCKED = b"UNBLOCKED client unblocked via CLIENT UNBLOCK"


class Round:
    """Threads of this process, each with clients of its own; what went wrong is kept."""

    def __init__(self, server, seed):
        self.server = server
        self.seed = seed
        self.lock = threading.Lock()
        self.trouble = []
        self.popped, self.pushed = [], []
        self.lost_at_most = 0  # pops of clients that did not stay for their reply
        self.ids = {}          # of clients that may be unblocked or killed
        self.consuming = 0

    def run(self, jobs):
        def guarded(job, number):
            try:
                job(number, generator(self.seed, job.__name__, number))
            except Exception as trouble:
                with self.lock:
                    self.trouble.append("%s %d: %r" % (job.__name__, number, trouble))

        threads = [threading.Thread(target=guarded, args=(job, number))
                   for number, job in enumerate(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.trouble, "seed %s: %s" % (self.seed, "; ".join(self.trouble))

    def take(self, reply):
        if isinstance(reply, list):
            with self.lock:
                self.popped.append(reply[1])
        elif reply is not None and reply != UNBLOCKED:
            raise AssertionError("a reply that is none: %r" % reply)

    def consumer(self, number, random):
        """Every call has one reply: the ECHO behind it shows a missing or second one."""
        client = self.server.connect()
        with self.lock:
            self.ids[number] = client.call("CLIENT", "ID")
            self.consuming += 1
        for serial in range(150):
            token = b"%d-%d" % (number, serial)
            keys = random.sample(KEYS, random.choice([1, 2]))
            timeout = random.choice(["0.001", "0.002", "0.004"])
            client.send_raw(encode("BLPOP", *keys, timeout) + encode("ECHO", token))
            self.take(client.read())
            assert client.read() == token
        with self.lock:
            del self.ids[number]
            self.consuming -= 1
        client.close()

    def leaver(self, number, random):
        for _ in range(60):
            client = self.server.connect()
            with self.lock:
                self.lost_at_most += 1
            client.send("BLPOP", *KEYS, random.choice(["0", "0.002"]))
            if random.random() < 0.5:
                client.nothing_comes(random.choice([0.0005, 0.002]))
            if random.random() < 0.5:
                client.reset_hard()
            else:
                client.close()

    def victim(self, number, random):
        """Is killed while it waits, or just after it was served."""
        for _ in range(40):
            client = self.server.connect()
            with self.lock:
                self.ids[number] = client.call("CLIENT", "ID")
                self.lost_at_most += 1
            client.send("BLPOP", *KEYS, "0.004")
            try:
                reply = client.read()
                with self.lock:
                    self.lost_at_most -= 1
                self.take(reply)
            except (Closed, OSError):
                pass
            client.close()

    def unblocker(self, number, random):
        with self.server.connect() as client:
            for _ in range(300):
                with self.lock:
                    ids = sorted(self.ids.items())
                if ids:
                    name, target = random.choice(ids)
                    if name >= 100:
                        client.call("CLIENT", "KILL", "ID", str(target))
                    else:
                        client.call("CLIENT", "UNBLOCK", str(target),
                                    random.choice(["TIMEOUT", "ERROR"]))
                client.call("PING")

    def producer(self, number, random):
        with self.server.connect() as client:
            for serial in range(400):
                elements = [b"%d:%d.%d" % (number, serial, i) for i in range(random.choice([1, 2]))]
                with self.lock:
                    self.pushed += elements
                reply = client.call("RPUSH", random.choice(KEYS), *elements)
                assert not isinstance(reply, Error)


@pytest.mark.parametrize("seed", seeds(3))
def test_one_reply_for_each_call_one_client_for_each_element(server, client, seed):
    r = Round(server, seed)

    def victim(number, random):
        r.victim(number + 100, random)

    r.run([r.consumer] * 6 + [r.leaver] * 2 + [victim] * 2 + [r.unblocker] * 2 + [r.producer] * 2)
    left = [e for key in KEYS for e in client.call("LRANGE", key, "0", "-1")]
    gone = r.popped + left
    assert len(set(gone)) == len(gone)
    assert set(gone) <= set(r.pushed)
    assert len(r.pushed) - len(gone) <= r.lost_at_most

    def nobody_waits():
        """Nor will: of those who have left all has been read."""
        found = parse_info(client.call("INFO"))
        return found["connected_clients"] == "1" and \
            found["blocked_clients"] == found["total_blocking_keys"] == found["clients_in_timeout_table"] == "0"
    eventually(nobody_waits, "nobody waits")
