"""Programs with transactions: templates of other families between MULTI, EXEC and DISCARD, with
faults of all kinds inside (see grammar.py); and steps for two connections, of which one watches
keys that both change."""

from lib import grammar
from lib.grammar import Grammar

# What a transaction may hold: nothing that waits, or whose reply depends on time or chance; nor what
# takes more arguments than the oracle's, which then spoils a transaction (TTL, PERSIST: a member).
INSIDE = """
SET key value|GET key|GET key|INCR key|APPEND key value|MGET key...|MSET pair...|DEL key...
SET key value {NX|XX} {GET}|GETDEL key|GETSET key value|SETRANGE key offset value|STRLEN key
LPUSH key element...|RPUSH key element|LPOP key|LRANGE key 0 -1|LLEN key|LSET key index element
HSET key field value|HGET key field|HDEL key field...|HLEN key|SADD key member...|SCARD key
SREM key member...|ZADD key 1 member|ZCARD key|ZREM key member|EXPIRE key relative
EXISTS key...|TYPE key|RENAME key key|COPY key key {REPLACE}|MOVE key db|UNLINK key|EXPIRETIME missing
SELECT db|SELECT 0|SELECT 0|SWAPDB db db|FLUSHDB|DBSIZE|PING|PING any|ECHO any|UNWATCH
CLIENT GETNAME|CLIENT SETNAME word|CONFIG SET slowlog-max-len 128|CONFIG GET slowlog-max-len
CONFIG SET nothing any|KEYS nothing*|CONFIG RESETSTAT
NOPE|NOPE any|nope any any|GET|SET key|CLIENT NOPE|INCRBY key x|WATCH key|MULTI|LATENCY RESET x
"""
FRAME = """
MULTI|MULTI|MULTI|EXEC|EXEC|EXEC|DISCARD|WATCH key...|UNWATCH|EXEC x|DISCARD x|MULTI x|WATCH
"""


class MultiGrammar(Grammar):
    """A run of plain commands, then transactions of all lengths, properly framed for the most part."""

    def __init__(self, random):
        super().__init__(random, grammar.templates(INSIDE))
        self.frame = grammar.templates(FRAME)

    def _one(self, texts):
        whole, self.templates = self.templates, texts
        try:
            return self.command()
        finally:
            self.templates = whole

    def transaction(self):
        size = self.random.choice([0, 1, 2, 3, 5, 8, 20, 140])
        words = [[b"MULTI"]] + [self._sound() for _ in range(size)]
        if self.random.random() < 0.25:
            words.insert(self.random.randrange(1, len(words) + 1), self.command())
        return words + [[self.random.choice([b"EXEC"] * 6 + [b"DISCARD", b"exec"])]]

    def _sound(self):
        """A command that is queued: its faults show when it runs."""
        while True:
            words = self.command()
            if words[0].upper() not in (b"NOPE", b"MULTI", b"WATCH", b"CLIENT") and len(words) > 1 \
                    or words[0].upper() == b"PING":
                return words

    def program(self, length):
        words = []
        while len(words) < length:
            kind = self.random.random()
            if kind < 0.45:
                words += self.transaction()
            elif kind < 0.6:
                words.append(self._one(self.frame))
            else:
                words.append(self.command())
        return words + [[b"DISCARD"], [b"EXEC"]]


# What the two connections of a watch program do; * stands for who does it.
CHANGES = """
SET key value|SET key value NX|SET key value XX|SETNX key value|APPEND key value|INCR key|GETDEL key
SETRANGE key 0 value|MSET pair...|MSETNX pair...|GETSET key value|GETEX key PERSIST|GETEX key
GETEX key EX 100000|GET key|STRLEN key|DEL key...|UNLINK key|EXISTS key|TOUCH key|TYPE key
EXPIRE key 100000|EXPIRE key -1|EXPIRE key 100000 NX|PERSIST key|RENAME key key|RENAMENX key key
COPY key key|COPY key key REPLACE|MOVE key 1|FLUSHDB|FLUSHALL|SWAPDB 0 1|SWAPDB 1 2|SWAPDB 0 2
LPUSH key element|LPUSHX key element|LPOP key|LREM key 0 element|LSET key 0 element|LTRIM key 0 -1
LTRIM key 1 0|LINSERT key BEFORE element element|LMOVE key key LEFT RIGHT|RPOPLPUSH key key
HSET key field value|HSETNX key field value|HDEL key field|HINCRBY key field 0|HGET key field
SADD key member|SREM key member|SMOVE key key member|SPOP key|SINTERSTORE key key key
SUNIONSTORE key key key|SDIFFSTORE key key key|ZADD key 1 member|ZADD key XX 1 member
ZADD key NX 2 member|ZINCRBY key 0 member|ZREM key member|ZPOPMIN key|ZREMRANGEBYRANK key 0 -1
ZRANGESTORE key key 0 -1|ZUNIONSTORE key 1 key|ZINTERSTORE key 2 key key|SETBIT key 1 1
BITOP AND key key key|BITFIELD key SET u8 0 1|BITFIELD key GET u8 0|PFADD key member
PFMERGE key key|GEOADD key 1 1 member|GEOSEARCHSTORE key key FROMLONLAT 1 1 BYRADIUS 1 km
SETEX key 100000 value|INCRBYFLOAT key 0|HINCRBYFLOAT key field 0|LPOP key 0|SELECT 1|SELECT 0
SPOP key 0|ZADD key CH 1 member|ZPOPMAX key 0
"""


class WatchGrammar(Grammar):
    """Steps (who, words): who 0 watches and runs transactions, both change keys."""

    def __init__(self, random):
        super().__init__(random, grammar.templates(CHANGES))
        self.keys = ["k0", "k1", "k2"]

    def element(self):
        return self.random.choice("ab")

    member = field = element

    def value(self):
        return self.random.choice(["1", "x", ""])

    def _damage(self, words):
        return words

    def steps(self, rounds):
        steps = []
        for _ in range(rounds):
            for _ in range(self.random.randint(0, 4)):
                steps.append((self.random.randrange(2), self.command()))
            for _ in range(self.random.choice([1, 1, 1, 2])):
                keys = self.random.sample(self.keys, self.random.randint(1, 3))
                steps.append((0, [b"WATCH"] + [k.encode() for k in keys]))
            for _ in range(self.random.choice([0, 1, 1, 1, 1, 2, 3])):
                steps.append((self.random.choice([0, 1, 1, 1]), self.command()))
            if self.random.random() < 0.1:
                steps.append((0, [b"UNWATCH"]))
            steps += [(0, [b"MULTI"]), (0, [b"PING"])]
            if self.random.random() < 0.3:
                steps.append((1, self.command()))
            steps.append((0, [b"EXEC"]))
        return steps
