"""Templates and placeholders for streams without consumer groups (see grammar.py).  A template that
begins with ! is never damaged.  IDs that the clock gives cannot be compared, so "*" is used on
"future" alone, whose last ID is ahead of the clock.  XSETID sets no ID that 7.0 takes and 7.2 does
not (before a deleted one)."""

from lib.boundary import B
from lib.grammar import Grammar

FIELDS = list("abc") + ["a", "b", "", "1", "-1", "f" * 70, "007"]
VALUES = list("xyz") + ["", "0", "127", "128", "-1", "4095", "-4097", "65536", "9223372036854775807",
                        "-9223372036854775808", "v" * 63, "v" * 64, "\x00\xff", "007", "a\r\nb"]
U64 = "18446744073709551615"

PRELUDE = [("SET", "wrong", "x"),
           ("CONFIG", "SET", "stream-node-max-entries", "100"),
           ("CONFIG", "SET", "stream-node-max-bytes", "4096"),
           ("XADD", "future", "99999999999999-5", "a", "b")]

STREAMS = """
XADD key id pair...|XADD key id a value b value|XADD key id a value b value|XADD key next a value
XADD key next a value b value|XADD key next pair...|XADD key next field value
XADD key {NOMKSTREAM} next a value|XADD key NOMKSTREAM id field value
XADD key MAXLEN sign small next a value|XADD key MINID sign id next a value
XADD key MAXLEN small next a value b value|XADD key MINID id next a value b value
XADD key MAXLEN ~ small {LIMIT limit} next a value|XADD key {MAXLEN sign small} {LIMIT limit} id a value
XADD key MINID ~ id {LIMIT limit} {NOMKSTREAM} next a value
XADD key {MAXLEN small} {MINID id} next a value|XADD key next many
XLEN key|XLEN key|XRANGE key - +|XRANGE key bound bound|XRANGE key bound bound {COUNT count}
XREVRANGE key + -|XREVRANGE key bound bound {COUNT count}|XRANGE key - + COUNT count
XRANGE key bound + COUNT 1|XREVRANGE key bound - COUNT 1
XDEL key id|XDEL key id id id|XDEL key id id id id id id|XDEL key id
XTRIM key MAXLEN sign small|XTRIM key MINID sign far|XTRIM key MAXLEN small|XTRIM key MINID far
XTRIM key MAXLEN ~ small {LIMIT limit}|XTRIM key MINID ~ id {LIMIT limit}
XTRIM key {MAXLEN sign small} {LIMIT limit} {MINID id}
!XSETID key 70-0|!XSETID key 70-0 {ENTRIESADDED added} {MAXDELETEDID id}|!XSETID key 70 ENTRIESADDED 500
!XSETID key 70-0 {ENTRIESADDED added} {MAXDELETEDID bad}|!XSETID key 5-x|!XSETID key 70 ENTRIESADDED
XREAD STREAMS key far|XREAD {COUNT count} STREAMS key far|XREAD COUNT count STREAMS key key far far
XREAD STREAMS key key $ far|XREAD STREAMS key $|XREAD {COUNT count} STREAMS key key key far far far
XREAD STREAMS key key far|XREAD STREAMS key >|XREAD {NOACK} {COUNT count} {STREAMS key} far
XREAD {GROUP a} b {STREAMS key far}|XREAD COUNT count key far
XINFO STREAM key|XINFO STREAM key|XINFO STREAM key|XINFO STREAM key FULLY|XINFO STREAM nokey
OBJECT ENCODING key|TYPE key|DEL key|COPY key key {REPLACE}|RENAME key key|EXISTS key
EXPIRE key 100000|TTL key|PERSIST key|SET key value|GET key
!CONFIG SET stream-node-max-entries entries|!CONFIG SET stream-node-max-bytes bytes
!XADD future * a value|!XADD future * pair...|!XADD future MAXLEN 10 * a value|!XRANGE future - +
!XREAD COUNT 2 BLOCK 1 STREAMS key key far far|!XREAD BLOCK -1 STREAMS key far
!XINFO STREAM future|!XADD future NOMKSTREAM * a value|!XREAD STREAMS future $
"""


class StreamGrammar(Grammar):
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

    def _token(self, token):
        if token == "pair":
            return [self.field(), self.value()]
        if token == "many":
            return [w for i in range(self.random.choice([5, 50, 130])) for w in ("f%d" % i, str(i))]
        return super()._token(token)

    def field(self):
        return self.random.choice(FIELDS)

    def value(self):
        return self.random.choice(VALUES)

    def next(self):
        """Mostly an ID that may be greater than the last one."""
        kind = self.random.random()
        if kind < 0.8:
            return "%d-*" % self.random.choice([5, 6, 7, 8, 9, 10, 50])
        return "%d-%d" % (self.random.randrange(8, 60), self.random.randrange(4))

    def id(self):
        kind = self.random.random()
        if kind < 0.7:
            return "%d-%d" % (self.random.randrange(11), self.random.randrange(12))
        return str(self.random.randrange(52)) if kind < 0.9 else self.bad()

    def bad(self):
        """What is no ID, or a strange one."""
        return self.random.choice(["0-0", "0-1", "0", "007-08", "50-*", "0-*", "-", "+", "$", ">", "",
                                   "5-", "-5", "5-x", "x", "1-1-1", "5--1"])

    def far(self):
        """IDs to look for. They are not added: what is deleted there bars XSETID since 7.2."""
        kind = self.random.random()
        if kind < 0.9:
            return self.id()
        if kind < 0.95:
            return self.random.choice([U64, U64 + "-" + U64, U64 + "-0", "0-" + U64])
        return self.random.choice(B)

    def bound(self):
        kind = self.random.random()
        if kind < 0.3:
            return self.random.choice("-+")
        if kind < 0.35:
            return self.random.choice(["(", "(-", "(+", "(0-0", "(0", "((5", "(" + U64,
                                       "(" + U64 + "-" + U64])
        return self.random.choice(["", "("]) + self.far()

    def sign(self):
        return self.random.choice("=~")

    def small(self):
        return self.random.choice(["0", "1", "2", "3", "5", "10", "20", "50", "100", "-1"] * 3 + B)

    def added(self):
        """Not as many as can be counted: Redis counts on, from -2**63, where ours stays (test_stream_lag.py)."""
        count = self.small()
        return count if count != str(2**63 - 1) else str(2**62)

    def limit(self):
        return self.random.choice(["0", "1", "2", "5", "10", "100", "-1", "x"])

    def count(self):
        return self.random.choice(["0", "1", "2", "3", "-1", "10", "100"] * 2 + B)

    def entries(self):
        return self.random.choice(["0", "1", "2", "3", "5", "10", "100", "100", "x", "-1"])

    def bytes(self):
        return self.random.choice(["0", "1", "64", "256", "4096", "4096", "4kb", "x", "-1"])
