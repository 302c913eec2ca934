"""Programs of several clients that wait for keys and serve one another.  A step is (client, commands);
more than one command is a transaction.  No step makes several keys ready at once: Redis 7.0 serves by
the key, 7.2 and we run the waiter's command again.  And none stores a sorted set over another value:
Redis does not tell who waits for it, we do (integration/test_blocking.py)."""

KEYS = ["a", "b", "c", "d"]
BAD_TIMEOUTS = ["x", "", "-1", "0x", "nan", "1 "]


class BlockingGrammar:
    def __init__(self, random, clients):
        self.random = random
        self.clients = clients
        self.serial = 0

    def key(self):
        return self.random.choice(KEYS)

    def element(self):
        self.serial += 1
        return "e%d" % self.serial

    def timeout(self):
        return self.random.choice(BAD_TIMEOUTS) if self.random.random() < 0.05 else "0"

    def side(self, words):
        return self.random.choice(words)

    def wait(self):
        r, ends = self.random, ["LEFT", "RIGHT"]
        keys = [self.key() for _ in range(r.choice([1, 1, 2, 3]))]
        count = ["COUNT", str(r.choice([1, 2, 3]))] if r.random() < 0.5 else []
        return r.choice([
            lambda: ["BLPOP"] + keys + [self.timeout()],
            lambda: ["BRPOP"] + keys + [self.timeout()],
            lambda: ["BLMPOP", self.timeout(), str(len(keys))] + keys + [self.side(ends)] + count,
            lambda: ["BLMOVE", self.key(), self.key(), self.side(ends), self.side(ends),
                     self.timeout()],
            lambda: ["BRPOPLPUSH", self.key(), self.key(), self.timeout()],
            lambda: ["BZPOPMIN"] + keys + [self.timeout()],
            lambda: ["BZPOPMAX"] + keys + [self.timeout()],
            lambda: ["BZMPOP", self.timeout(), str(len(keys))] + keys
            + [self.side(["MIN", "MAX"])] + count,
        ])()

    def write(self):
        r, ends = self.random, ["LEFT", "RIGHT"]
        elements = [self.element() for _ in range(r.choice([1, 1, 2, 4]))]
        scored = [word for e in elements for word in (str(r.randrange(5)), e)]
        return r.choice([
            lambda: ["RPUSH", self.key()] + elements,
            lambda: ["LPUSH", self.key()] + elements,
            lambda: ["RPUSH", self.key()] + elements,
            lambda: ["ZADD", self.key()] + scored,
            lambda: ["ZADD", self.key()] + scored,
            lambda: ["LPUSHX", self.key()] + elements,
            lambda: ["LINSERT", self.key(), "BEFORE", "e1", elements[0]],
            lambda: ["LMOVE", self.key(), self.key(), self.side(ends), self.side(ends)],
            lambda: ["ZINCRBY", self.key(), "1", elements[0]],
            lambda: ["RENAME", self.key(), self.key()],
            lambda: ["RENAMENX", self.key(), self.key()],
            lambda: ["COPY", self.key(), self.key(), "REPLACE"],
            lambda: ["SET", self.key(), "string"],
            lambda: ["DEL", self.key()],
            lambda: ["DEL", self.key()],
            lambda: ["LPOP", self.key()],
            lambda: ["ZPOPMIN", self.key()],
            lambda: ["TYPE", self.key()],
            lambda: ["LRANGE", self.key(), "0", "-1"],
            lambda: ["FLUSHDB"],
        ])()

    def transaction(self):
        """Several commands, but only one key that anybody could be served with."""
        key, commands = self.key(), []
        for _ in range(self.random.choice([1, 2, 4])):
            element = self.element()
            commands.append(self.random.choice([
                ["RPUSH", key, element], ["RPUSH", key, element, element + "b"],
                ["ZADD", key, "1", element], ["DEL", key], ["LPOP", key], ["LLEN", key],
                ["ZPOPMAX", key], ["SET", key, "string"], ["BLPOP", self.key(), "0"],
                ["BZPOPMIN", self.key(), "0"],
            ]))
        return commands

    def store(self):
        target = self.key()
        return [["DEL", target], self.random.choice([
            ["ZRANGESTORE", target, self.key(), "0", "-1"],
            ["ZUNIONSTORE", target, "1", self.key()]])]

    def step(self, idle):
        r = self.random
        client = r.choice(idle)
        if len(idle) > 1 and r.random() < 0.5:
            return client, [self.wait()]
        if r.random() < 0.15:
            commands = self.store() if r.random() < 0.3 else self.transaction()
            return client, [["MULTI"]] + commands + [["EXEC"]]
        return client, [self.write()]
