"""Templates and placeholders for consumer groups of streams (see grammar.py).  A template that begins
with ! is never damaged: one with BLOCK (damage could make it wait for ever) and XAUTOCLAIM with
COUNT (for a huge one the oracle asks for memory, and refuses when it gets none).

Times: entries are as old as the test or, by XCLAIM, older than an hour; what asks for idle ones asks
for none, or for a quarter of an hour."""

from lib.boundary import B
from lib.grammar import Grammar

CONSUMERS = ["c", "d", "e", "", "STREAMS"]
LARGEST = str(2**63 - 1)

PRELUDE = [("SET", "wrong", "x"),
           ("CONFIG", "SET", "stream-node-max-entries", "5"),
           ("CONFIG", "SET", "stream-node-max-bytes", "4096")]

GROUP_TEMPLATES = """
XADD key next a value|XADD key next a value|XADD key next a value b value|XADD key next a value
XADD key next a value b value|XADD key next b value
!XADD k0 next a value|!XADD k0 next a value|!XADD k0 next b value a value|!XADD k1 next a value
!XADD k0 next a value|!XADD k0 next a value|!XADD k0 next b value a value|!XADD k1 next a value
!XADD k0 next a value|!XADD k0 next a value|!XADD k0 next b value a value|!XADD k1 next a value
!XREADGROUP GROUP g consumer COUNT few STREAMS k0 >|!XREADGROUP GROUP g consumer STREAMS k0 >
!XREADGROUP GROUP g consumer COUNT few STREAMS k0 k1 > >|!XREADGROUP GROUP h consumer STREAMS k0 >
!XREADGROUP GROUP g consumer COUNT few STREAMS k0 >|!XREADGROUP GROUP g consumer STREAMS k0 back
!XCLAIM k0 g consumer 0 id id id id|!XACK k0 g id|!XCLAIM k0 g consumer 0 id id IDLE 4000000
XDEL key id|XDEL key id id|XTRIM key MAXLEN few|XTRIM key MINID id
!XSETID key ahead|!XSETID key ahead ENTRIESADDED added|!XSETID key ahead ENTRIESADDED added MAXDELETEDID id
XGROUP CREATE key group place {MKSTREAM} {ENTRIESREAD read}|XGROUP CREATE key group 0 MKSTREAM
XGROUP CREATE key group 0 MKSTREAM|XGROUP CREATE key group $ MKSTREAM ENTRIESREAD read
XGROUP SETID key group place {ENTRIESREAD read}|XGROUP SETID key group back|XGROUP DESTROY victim group
XGROUP SETID key group place ENTRIESREAD read
XGROUP CREATECONSUMER key group consumer|XGROUP DELCONSUMER key group consumer
XREADGROUP GROUP group consumer STREAMS key >|XREADGROUP GROUP group consumer STREAMS key >
XREADGROUP GROUP group consumer COUNT few STREAMS key >
XREADGROUP GROUP group consumer COUNT few STREAMS key >
XREADGROUP GROUP group consumer {COUNT count} {NOACK} STREAMS key >
XREADGROUP GROUP group consumer {COUNT few} STREAMS key place
XREADGROUP GROUP group consumer STREAMS key 0|XREADGROUP GROUP group consumer STREAMS key id
XREADGROUP {COUNT few} GROUP group consumer {NOACK} STREAMS key key place place
XREADGROUP GROUP group consumer {COUNT few} {NOACK} STREAMS key key key > > 0
!XREADGROUP GROUP group consumer BLOCK 1 {COUNT few} STREAMS key >
!XREADGROUP GROUP group STREAMS STREAMS key >|!XREADGROUP GROUP group consumer BLOCK odd STREAMS key >
XACK key group id|XACK key group id id id|XACK key group id
XPENDING key group|XPENDING key group|XPENDING key group - + 100|XPENDING key group - + 100
XPENDING key group {IDLE idle} bound bound count {consumer}
XPENDING key group IDLE idle - + 50 {consumer}|XPENDING key group bound bound few consumer
XCLAIM key group consumer 0 id|XCLAIM key group consumer 0 id id id|XCLAIM key group consumer 0 id
XCLAIM key group consumer idle id id {IDLE 4000000|TIME time} {RETRYCOUNT retry} {FORCE} {JUSTID}
XCLAIM key group consumer 0 id id id id {IDLE 4000000} {JUSTID} {FORCE} {LASTID id}
XCLAIM key group consumer 0 id IDLE 4000000|XCLAIM key group consumer 0 id FORCE
XCLAIM key group consumer idle id {IDLE far|TIME far} {RETRYCOUNT retry}
XAUTOCLAIM key group consumer idle bound|XAUTOCLAIM key group consumer idle - {JUSTID}
!XAUTOCLAIM key group consumer idle bound COUNT few {JUSTID}
!XAUTOCLAIM key group consumer 0 0 COUNT few|!XAUTOCLAIM key group consumer 0 0 COUNT refused
XINFO GROUPS key|XINFO GROUPS key|XINFO CONSUMERS key group|XINFO STREAM key FULL|XINFO GROUPS k0|XINFO GROUPS k0
XINFO STREAM key FULL {COUNT count}|XINFO STREAM key FULL COUNT 0
XLEN key|TYPE key|DEL victim|COPY key k2 {REPLACE}|!COPY k0 k2 REPLACE|RENAME k2 k2
EXISTS key|SET k2 value|XRANGE key - +|OBJECT ENCODING key
"""


class StreamGroupGrammar(Grammar):
    def __init__(self, random, templates, wrong_type=False):
        super().__init__(random, templates, wrong_type)
        self.keys = ["k0"] * 40 + ["k1"] * 15 + ["k2"] * 6 + self.keys[-4:]
        self.last = 0

    def program(self, length):
        """Whatever makes a group makes all its consumers, and who was removed comes back: since 7.2
        asking in vain makes a consumer as well.  Now and then the groups are made that most
        commands are about."""
        commands = []
        while len(commands) < length:
            if self.random.random() < 0.01 or not commands:
                for key, group in ((b"k0", b"g"), (b"k0", b"h"), (b"k1", b"g")):
                    commands += self._with_consumers([b"XGROUP", b"CREATE", key, group, b"0",
                                                      b"MKSTREAM"])
            commands += self._with_consumers(self.command())
        return commands

    def _with_consumers(self, command):
        upper = [w.upper() for w in command[:2]]
        if upper == [b"XGROUP", b"CREATE"] and len(command) > 3:
            return [command] + [[b"XGROUP", b"CREATECONSUMER", command[2], command[3], c.encode()]
                                for c in CONSUMERS]
        if upper == [b"XGROUP", b"DELCONSUMER"] and len(command) == 5:
            return [command, [b"XGROUP", b"CREATECONSUMER"] + command[2:]]
        return [command]

    def command(self):
        whole = self.templates
        template = self.random.choice(whole)
        if template.startswith("!"):
            words = self._expand(template[1:])
            return [w.encode("latin-1") for w in words]
        self.templates = [template]
        try:
            return super().command()
        finally:
            self.templates = whole

    def group(self):
        return self.random.choice(["g"] * 60 + ["h"] * 10 + ["none", "g" * 3, ""])

    def victim(self):
        """A key that may lose what it holds."""
        return self.random.choice(["k2"] * 30 + ["k0", "k1"])

    def consumer(self):
        return self.random.choice(CONSUMERS[:4])

    def value(self):
        return self.random.choice(["x", "1", "-1", "v" * 70, ""])

    def next(self):
        """Mostly greater than the last one of every stream."""
        if self.random.random() < 0.05:
            return self.id()
        self.last += self.random.choice([0, 1, 1, 1, 1, 1, 1, 2])
        return "%d-%d" % (self.last // 4, self.last % 4 + (self.last < 4))

    def id(self):
        kind = self.random.random()
        if kind < 0.95:
            at = self.random.randrange(self.last + 3) if self.random.random() < 0.1 else \
                max(0, self.last - self.random.randrange(16))
            return "%d-%d" % (at // 4, at % 4)
        if kind < 0.97:
            return str(self.random.randrange(self.last // 4 + 2))
        return self.random.choice(["-", "+", "$", ">", "", "x", "1-x", "5-*", "(3"] + B)

    def ahead(self):
        """Not damaged: XSETID to an ID before the greatest deleted one is refused since 7.2."""
        self.last += 2
        return "%d-%d" % (self.last // 4, self.last % 4)

    def back(self):
        """A place shortly before the end."""
        at = max(0, self.last - self.random.randrange(20))
        return "%d-%d" % (at // 4, at % 4)

    def added(self):
        return self.random.choice(["0", "1", "10", "100", "1000"])

    def place(self):
        return self.random.choice([">", "0", "0"] * 3 + ["$", "-", "+"] + [self.id()] * 9)

    def bound(self):
        return self.random.choice(["-", "-", "+", self.id(), self.id(), "(" + self.id(),
                                   "(18446744073709551615-18446744073709551615", "(0-0", "(-"])

    def few(self):
        return self.random.choice("1235")

    def count(self):
        return self.random.choice(["0", "1", "2", "3", "-1", "10", "100"] * 2 + B)

    def refused(self):
        return self.random.choice(["0", "-1", "x", "", LARGEST, str(2**63), "576460752303423488"])

    def odd(self):
        """A time-out that is refused."""
        return self.random.choice(["-1", "x", "", "1.5", str(-2**63), str(2**63)])

    def read(self):
        return self.random.choice(["0", "1", "2", "3", "5", "10", "-1", "-2", "x", "100"])

    def retry(self):
        """Not the largest number: the oracle counts on from it to the smallest one."""
        return self.random.choice(["0", "1", "5", "-1"] + [w for w in B if w != LARGEST])

    def idle(self):
        return self.random.choice(["0", "0", "0", "900000", "900000", "-5", str(-2**63), "x", LARGEST])

    def time(self):
        return self.random.choice(["0", "5", "-5", LARGEST, str(2**53)])

    def far(self):
        return self.random.choice(["0", "-5", LARGEST, str(-2**63), str(-2**63 + 1), str(2**62)])

    def _damage(self, words):
        """No count of deliveries is made the largest one, and no consumer of others' names."""
        damaged = super()._damage(words)
        name = words[0]
        at = {"XCLAIM": 3, "XAUTOCLAIM": 3}.get(name)
        if name == "XREADGROUP" and "GROUP" in words:
            at = words.index("GROUP") + 2
        if at is not None and damaged[at:at + 1] != words[at:at + 1]:
            return words
        if name == "XAUTOCLAIM" and any(w.upper() == "COUNT" for w in damaged):
            return words
        return words if LARGEST in damaged and "RETRYCOUNT" in damaged else damaged


class WaitingGroupGrammar:
    """Steps of several clients, some of whom wait for entries through groups: (client, commands),
    more than one command being a transaction.  No step makes two keys ready at once, and none puts
    another value where somebody waits: 7.2 and we run the waiter's command again, 7.0 does not.  No
    group is set back: entries that are there then are delivered by the next XADD in Redis, by the
    next change of the stream here."""

    KEYS = ["a", "b"]

    def __init__(self, random):
        self.random = random
        self.last = 0

    def key(self):
        return self.random.choice(self.KEYS)

    def group(self):
        return self.random.choice("gggh")

    def add(self, key):
        self.last += 1
        return ["XADD", key, "%d-1" % self.last, "f", "v"]

    def make(self):
        return ["XGROUP", "CREATE", self.key(), self.group(), self.random.choice(["0", "$", "$"]),
                "MKSTREAM"]

    def wait(self):
        r = self.random
        keys = [self.key()] if r.random() < 0.8 else ["a", "b"]
        more = (["COUNT", r.choice("123")] if r.random() < 0.5 else []) \
            + (["NOACK"] if r.random() < 0.2 else [])
        if r.random() < 0.2:
            return ["XREAD", *more[:2 * (more[:1] == ["COUNT"])], "BLOCK", "0", "STREAMS", *keys,
                    *["$"] * len(keys)]
        return ["XREADGROUP", "GROUP", self.group(), r.choice("cde"), *more, "BLOCK", "0", "STREAMS",
                *keys, *[">"] * len(keys)]

    def write(self):
        r = self.random
        return r.choice([lambda: self.add(self.key())] * 8 + [self.make] * 3 + [
            lambda: ["XGROUP", "DESTROY", self.key(), self.group()],
            lambda: ["XGROUP", "SETID", self.key(), self.group(), "$"],
            lambda: ["XGROUP", "DELCONSUMER", self.key(), self.group(), r.choice("cde")],
            lambda: ["XDEL", self.key(), "%d-1" % self.last],
            lambda: ["XTRIM", self.key(), "MAXLEN", r.choice("0123")],
            lambda: ["XACK", self.key(), self.group(), "%d-1" % self.last],
            lambda: ["XREADGROUP", "GROUP", self.group(), "c", "STREAMS", self.key(), ">"],
            lambda: ["XAUTOCLAIM", self.key(), self.group(), "d", "0", "0", "JUSTID"],
            lambda: ["DEL", self.key()],
        ])()

    def transaction(self):
        key = self.key()
        return [["MULTI"]] + [self.add(key) for _ in range(self.random.choice([1, 2, 3]))] + \
            [["XLEN", key], ["EXEC"]]

    def step(self, idle):
        r = self.random
        client = r.choice(idle)
        if len(idle) > 1 and r.random() < 0.4:
            return client, [self.wait()]
        return client, self.transaction() if r.random() < 0.15 else [self.write()]
