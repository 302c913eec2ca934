"""The clients of a round of active replicas (active_round.py): writers that keep a ledger, writers of anything, and workers
that wait for what is put into a queue. Each goes on through the ends of its node, until the round ends it."""

import threading

from lib.active_ledger import DATABASE, Write
from lib.bounds import PASSED
from lib.replication import program
from lib.resp import Closed, Error

GONE = (Closed, OSError, *PASSED)
# What says that a write did nothing, while a node has just begun or its file could not be written.
REFUSALS = (b"LOADING", b"MISCONF", b"NOREPLICAS", b"NOGROUP", b"UNBLOCKED", b"OOM", b"READONLY", b"EXECABORT")


class Client:
    """A thread with a connection to a node that comes and goes."""

    def __init__(self, node, random):
        self.node, self.random = node, random
        self.over, self.trouble, self.breaks = threading.Event(), None, 0
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self.thread.start()

    def stop(self):
        self.over.set()

    def join(self):
        self.thread.join(120)
        assert not self.thread.is_alive(), "a client does not end"

    def _run(self):
        try:
            while not self.over.is_set():
                try:
                    with self.node.connect(timeout_s=60) as c:
                        loading = isinstance(c.call("SELECT", DATABASE), Error)
                        while not self.over.is_set() and not loading:
                            self.step(c)
                except GONE:
                    self.breaks += 1
                self.over.wait(0.02)
        except Exception as trouble:  # whatever it is, the round shows it
            self.trouble = trouble

    def step(self, c):
        raise NotImplementedError


class Writer(Client):
    """Writes elements of its own, to keys of its own and to shared ones."""

    def __init__(self, number, node, random, ledger, pace_s):
        super().__init__(node, random)
        self.number, self.ledger, self.pace_s = number, ledger, pace_s
        self.count, self.put, self.registers = 0, [], []

    def name(self):
        self.count += 1
        return "n%d-%d" % (self.number, self.count)

    def key(self, kind):
        shared = self.random.random() < 0.5
        return "%s:%s:%d" % ("shared" if shared else "own%d" % self.number, kind, self.random.randrange(2))

    def insert(self, unit=None):
        """(command, writes) that put one element."""
        kind, element = self.random.choice(["set", "hash", "list", "zset", "counter", "stream"]), self.name()
        key = self.key(kind)
        if kind == "counter":
            amount = self.random.randrange(1, 10)
            return ["INCRBY", key, amount], [Write(self.number, kind, key, "", amount=amount, unit=unit)]
        words = {"set": ["SADD", key, element], "hash": ["HSET", key, element, self.count],
                 "list": [self.random.choice(["RPUSH", "LPUSH"]), key, element],
                 "zset": ["ZADD", key, self.random.randrange(100), element],
                 "stream": ["XADD", key, "*", "e", element]}[kind]
        write = Write(self.number, kind, key, element, unit=unit)
        if unit is None and kind != "stream":
            self.put.append(write)
        return words, [write]

    def remove(self):
        """The same of an earlier one."""
        write = self.put.pop(self.random.randrange(len(self.put)))
        words = {"set": ["SREM", write.key, write.element], "hash": ["HDEL", write.key, write.element],
                 "list": ["LREM", write.key, 0, write.element], "zset": ["ZREM", write.key, write.element]}[write.kind]
        return words, [Write(self.number, write.kind, write.key, write.element, there=False)]

    def whole(self):
        """A key that is written whole, or deleted."""
        key, name = "own%d:register" % self.number, self.name() if self.random.random() < 0.8 else None
        writes = [Write(self.number, "register", key, old, there=False) for old in self.registers]
        if name is None:
            return ["DEL", key], writes
        padding = " " + "x" * self.random.choice([0, 10, 2000, 60000])
        return ["SET", key, name + padding], writes + [Write(self.number, "register", key, name)]

    def know(self, writes, outcome):
        """What may be in the register now."""
        for write in writes:
            if write.kind == "register" and outcome != "refused":
                if write.there:
                    self.registers.append(write.element)
                elif outcome == "done":
                    self.registers.remove(write.element)

    def unit(self):
        """A transaction or a script of several."""
        name = self.name()
        parts = [self.insert(name) for _ in range(self.random.randrange(2, 5))]
        return [words for words, _ in parts], [w for _, writes in parts for w in writes]

    def step(self, c):
        chance = self.random.random()
        if chance < 0.05:
            c.call("SET", "soon:%s" % self.name(), "v", "PX", self.random.randrange(50, 1500))
            return
        if chance < 0.15:
            commands, writes = self.unit()
            if chance < 0.10:
                self.send(c, [["MULTI"], *commands, ["EXEC"]], writes)
            else:
                self.send(c, [script(commands)], writes)
        else:
            if chance < 0.25:
                words, writes = self.whole()
            elif chance < 0.45 and self.put:
                words, writes = self.remove()
            else:
                words, writes = self.insert()
            self.send(c, [words], writes)
        if self.pace_s:
            self.over.wait(self.pace_s * self.random.random())

    def send(self, c, commands, writes):
        self.ledger.begin(writes)
        outcome = "unknown"
        try:
            reply = c.pipeline(commands)[-1]
            if isinstance(reply, Error):
                assert reply.startswith(REFUSALS), (commands, reply)
                outcome = "refused"
            else:  # what deletes what is not there does nothing
                outcome = "done" if reply != 0 or any(w.there for w in writes) else "refused"
        finally:
            self.ledger.end(writes, outcome)
            self.know(writes, outcome)


def script(commands):
    keys = [words[1] for words in commands]
    lines = ["redis.call(%s)" % ", ".join("'%s'" % w if i != 1 else "KEYS[%d]" % (at + 1) for i, w in enumerate(words))
             for at, words in enumerate(commands)]
    return ["EVAL", "\n".join(lines) + " return 1", len(keys), *keys]


class Noise(Client):
    """Random commands over every type in other databases, not looked at but for being the same everywhere."""

    def step(self, c):
        commands = [["SELECT", 0]] + [w for w in program(self.random, 20) if str(w[1:]) != "[b'%d']" % DATABASE]
        c.pipeline(commands)
        self.over.wait(0.05 * self.random.random())


class Producer(Client):
    """Puts elements of its own into the queue."""

    def __init__(self, number, node, random, ledger, kind):
        super().__init__(node, random)
        self.number, self.ledger, self.kind, self.count = number, ledger, kind, 0

    def step(self, c):
        self.count += 1
        element = "n%d-q%d" % (self.number, self.count)
        words = {"BLPOP": ["RPUSH", "queue", element], "BZPOPMIN": ["ZADD", "queue", self.count, element],
                 "XREADGROUP": ["XADD", "queue", "*", "e", element]}[self.kind]
        write = [Write(self.number, "queue", "queue", element)]
        self.ledger.begin(write)
        outcome = "unknown"
        try:
            outcome = "refused" if isinstance(c.call(*words), Error) else "done"
        finally:
            self.ledger.end(write, outcome)
        self.over.wait(0.04 * self.random.random())


class Worker(Client):
    """Waits for elements; .got are those that it was given, with its node's number."""

    def __init__(self, number, node, random, kind):
        super().__init__(node, random)
        self.number, self.kind, self.got, self.gone = number, kind, [], 0

    def step(self, c):
        words = {"BLPOP": ["BLPOP", "other", "queue", "0.2"], "BZPOPMIN": ["BZPOPMIN", "queue", "0.2"],
                 "XREADGROUP": ["XREADGROUP", "GROUP", "g", "c%d" % self.number, "COUNT", 2, "BLOCK", 200,
                                "STREAMS", "queue", ">"]}[self.kind]
        try:
            reply = c.call(*words)
        except GONE:
            self.gone += 1
            raise
        if isinstance(reply, Error):
            assert reply.startswith(REFUSALS), reply
            self.over.wait(0.05)
        elif reply is not None and self.kind == "XREADGROUP":
            # Given is what came, whether or not the node is there still to hear of it.
            self.got += [(fields[1].decode(), self.number) for _, fields in reply[0][1]]
            for entry, _ in reply[0][1]:
                c.call("XACK", "queue", "g", entry)
        elif reply is not None:
            self.got.append((reply[1].decode(), self.number))
