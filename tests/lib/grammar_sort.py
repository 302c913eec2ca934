"""Templates and placeholders for SORT (see grammar.py): lists, sets and sorted sets, and the
strings and hashes that patterns lead to.

A set's own order is not compared, so nothing takes a part of it unsorted, and ties of weights are
asked of lists only (`seq`), whose order decides them on both servers."""

from lib.boundary import B, FLOATS
from lib.grammar import Grammar

NUMBERS = ["0", "1", "2", "3", "10", "-5", "7", "42"]
ELEMENTS = NUMBERS * 3 + list("abcdef") + ["A", "Z", "aa", "ab", "1.5", "-0", "007", "x" * 70]
ODD = ["", "\xff", "\xe4", "a\r\nb", "9223372036854775807", " 1", "1 ", "1e2"]
# No number out of a double's range: having met one, the oracle refuses good ones as well, since it
# does not clear errno.
DOUBLES = [f for f in FLOATS if f not in ("1e309", "5e-324", "1e-400", "1e5000")]

# Keys that patterns make of elements: strings, hashes, and what is neither.
PRELUDE = [("SADD", "wrong", "x"), ("SET", "str", "x"), ("HSET", "hash", "f", "1")] \
    + [("SET", "w_" + e, str((i * 7) % 5)) for i, e in enumerate(NUMBERS[:6] + list("abc"))] \
    + [("HSET", "h_" + e, "f", str((i * 3) % 4), "g", "t%d" % (i % 3))
       for i, e in enumerate(NUMBERS[:5] + list("abcd"))] \
    + [("RPUSH", "w_7", "list"), ("SET", "h_42", "string"), ("SET", "w_x", "no number")]

SORTS = """
SORT num|SORT num {ASC|DESC} {LIMIT bound bound}|SORT num LIMIT bound bound {ASC|DESC} {ALPHA}
SORT_RO num {ASC|DESC} {LIMIT bound bound}|SORT_RO any {ALPHA} {STORE dest}
SORT any ALPHA {ASC|DESC} {LIMIT bound bound}|SORT any ALPHA DESC|SORT any|SORT any {DESC}
SORT big LIMIT bound bound {DESC} {ALPHA}|SORT big {DESC} STORE dest|SORT big BY w_* LIMIT bound bound
SORT num STORE dest {LIMIT bound bound} {DESC} {ALPHA}|SORT any ALPHA STORE dest {DESC}
SORT num GET get {GET get} {DESC}|SORT num GET get GET get STORE dest {LIMIT bound bound}
SORT num BY weight {DESC} {LIMIT bound bound}|SORT num BY weight GET # GET get {DESC}
SORT seq BY weight ALPHA {DESC} {GET #}|SORT seq BY weight ALPHA {DESC} STORE dest
SORT seq BY weight {DESC} {GET get} {ALPHA}|SORT seq BY weight LIMIT bound bound
SORT seq BY nosort {DESC} {LIMIT bound bound} {GET get}|SORT seq BY nosort LIMIT bound bound DESC
SORT zset BY nosort {DESC} {LIMIT bound bound} {GET get} {STORE dest}
SORT zset BY nosort LIMIT bound bound {DESC}|SORT zset ALPHA {DESC}|SORT zset BY w_*
SORT set BY nosort STORE dest {LIMIT bound bound} {DESC}|SORT set {DESC} {LIMIT bound bound}
SORT set ALPHA {GET get} {DESC}|SORT set BY w_* {GET #}|SORT set STORE dest
SORT any {BY weight} {GET get} {LIMIT bound bound} {FOO|STORE} {ASC|DESC}
SORT seq {BY nosort} {BY w_*} {GET get|GET #} {STORE dest|STORE other}
LRANGE dest 0 -1|LRANGE dest 0 -1|LRANGE other 0 -1|TYPE dest|EXISTS dest
EXPIRE dest 100000|TTL dest|DEL dest|SET dest x|LLEN dest|SADD set a
RPUSH num number...|RPUSH num number number|LPUSH num number|RPUSH num odd|DEL num|LPOP num
RPUSH seq element...|LPUSH seq element...|LPOP seq|DEL seq|LTRIM seq 1 20
SADD set element...|SREM set element|DEL set|ZADD zset number element|ZADD zset number element
ZREM zset element|DEL zset|RPUSH big many
SET key value|SET key number|HSET hashkey f value|HSET hashkey f number g element|DEL hashkey
DEL key|SET k0 element|EXPIRE key 100000
COMMAND GETKEYS SORT any {LIMIT 0 STORE} {GET STORE} {BY STORE} {STORE dest} {STORE other}
COMMAND GETKEYS SORT_RO any {GET get} {STORE dest}
"""


class SortGrammar(Grammar):
    def _damage(self, words):
        """Where the keys stand in what is no valid SORT is nobody's business."""
        return words if words[0] == "COMMAND" else super()._damage(words)

    def command(self):
        words = super().command()
        return words if not self._shows_own_order(words) else self.command()

    @staticmethod
    def _shows_own_order(words):
        """An unsorted set, not stored."""
        return b"set" in words[1:2] and b"STORE" not in [w.upper() for w in words[2:-1]] and any(
            a.upper() == b"BY" and b"*" not in b for a, b in zip(words, words[1:]))

    def _token(self, token):
        if token == "many":
            return [str(self.random.randrange(-50, 50)) for _ in range(150)]
        if token in ("num", "seq", "set", "zset", "big", "dest"):
            return [token]
        return super()._token(token)

    def any(self):
        return self.random.choice(["num", "seq", "set", "zset", "num", "dest", "str", "hash",
                                   "missing", "big"])

    def other(self):
        return self.random.choice(["num", "seq", "set", "zset", "other", "str"])

    def number(self):
        return self.random.choice(NUMBERS)

    def odd(self):
        return self.random.choice(ODD + DOUBLES + ["a"])

    def element(self):
        return self.random.choice(ELEMENTS + ODD)

    def value(self):
        return self.random.choice(NUMBERS * 2 + ["x", "", "1.5", "t1", "y" * 2000] + B)

    def key(self):
        return "w_" + self.element()

    def hashkey(self):
        return "h_" + self.element()

    def weight(self):
        return self.random.choice(["w_*", "w_*", "w_*", "h_*->f", "h_*->f", "h_*->g", "h_*", "w_*->f",
                                   "none_*", "*", "w_*x", "h_*->", "h_*->f->g", "nosort", "#", "*#"])

    def get(self):
        return self.random.choice(["#", "#", self.weight(), self.weight(), "w_*", "h_*->g", "##",
                                   "", "->*", "w_**", "->", "*->*"])

    def bound(self):
        return self.random.choice(["0", "1", "2", "3", "5", "10", "-1", "50", "140"] * 2 + B)
