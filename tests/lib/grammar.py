"""Command sequences from templates.

A template is the command's words: literals in capitals, placeholders in small letters, and
{A|B x|C} for an option group, of which none, one or (rarely) more are put in, groups in any order.
On the way each command may be damaged: a word too many or too few, an option misspelled or given
twice, a boundary value where none belongs, the name in another case.
"""

import re

from lib.boundary import B, FLOATS

PATTERNS = ["*", "k*", "k?", "k[0-3]", "k[^0-3]", "[k", "\\k0", "k[3-0]", "", "*0*", "k\\", "**1",
            "?", "[]", "[^]", "k[0-", "nothing*", "*k*0*", "[a-z]?"]
KEYS = ["k0", "k1", "k2", "k3", "k4", "k5"]
ODD_KEYS = ["", "\x00bin\r\n", "k0 ", "a" * 70, "K0", "wrong"]
NOWHERE = "missing"


class Grammar:
    """Generates commands of the given templates from a random.Random.

    far_ms is a time far enough in the future that nothing expires while the test runs."""

    def __init__(self, random, templates, wrong_type=False):
        self.random = random
        self.templates = templates
        self.keys = KEYS * 3 + ODD_KEYS[:-1] + [NOWHERE] + (["wrong"] * 2 if wrong_type else [])

    def program(self, length):
        return [self.command() for _ in range(length)]

    def command(self):
        template = self.random.choice(self.templates)
        words = self._expand(template)
        # What follows SETNAME stays as it is: the oracle keeps the name of a HELLO that fails behind
        # it, since 7.2 nothing of a HELLO that fails is kept.
        if self.random.random() < 0.12 and "SETNAME" not in words[1:]:
            words = self._damage(words)
        if self.random.random() < 0.2:
            words[0] = self._case(words[0])
        return [w.encode("latin-1") if isinstance(w, str) else w for w in words]

    def _expand(self, template):
        groups = re.findall(r"\{([^}]*)\}", template)
        words = self._words(re.sub(r"\{[^}]*\}", "", template))
        options = []
        for group in groups:
            chance = self.random.random()
            count = 0 if chance < 0.6 else 1 if chance < 0.96 else 2
            for _ in range(count):
                options.append(self._words(self.random.choice(group.split("|"))))
        self.random.shuffle(options)
        for option in options:
            option[0] = self._case(option[0])
            words += option
        return words

    def _words(self, text):
        return [word for token in text.split() for word in self._token(token)]

    def _token(self, token):
        if token.endswith("..."):
            return [w for _ in range(self.random.randint(1, 4)) for w in self._token(token[:-3])]
        if token == "crowd":
            return [self.element() for _ in range(self.random.choice([10, 40, 150]))]
        if token == "pair":
            return [self.key(), self.value()]
        if token in ("fields", "bulk", "names"):
            return getattr(self, token)()
        if token == "places":
            count = self.random.choice([1, 1, 2, 10, 60])
            return [w for _ in range(count)
                    for w in (self.longitude(), self.latitude(), self.place())]
        if token == "fieldwrites":
            return self._field_operations(["GET", "SET", "INCRBY", "INCRBY", "OVERFLOW"])
        if token == "fieldreads":
            return self._field_operations(["GET"] * 9 + ["SET"])
        if token == "elements":
            return [self.counted() for _ in range(self.random.choice([0, 1, 2, 5, 40]))]
        if token == "run":
            return self._run()
        maker = getattr(self, token, None) if token.islower() else None
        return [maker()] if maker else [token]

    def _run(self):
        """Enough members in a row to change a collection's encoding, or to come near it."""
        first = self.random.choice([0, 0, 100, 40_000, -70_000, 3_000_000_000])
        # Not 512 or 513: whether arguments that are there twice count for intsets is another matter since 7.2.
        size = self.random.choice([5, 60, 127, 128, 129, 510, 511, 515])
        form = self.random.choice(["%d", "%d", "m%d"])
        return [form % i for i in range(first, first + size)]

    def _case(self, word):
        return "".join(self.random.choice((c.upper(), c.lower())) for c in word)

    def _damage(self, words):
        kind = self.random.randrange(6)
        at = self.random.randrange(1, len(words)) if len(words) > 1 else 0
        if kind == 0 and at:
            return words[:at] + words[at + 1:]
        if kind == 1:
            return words + [self.random.choice(["extra", "1", "", "NX", "EX", "0"])]
        if kind == 2 and at:
            # Not 1: as a time to live it would end while the test runs.
            odd = self.random.choice([w for w in B if w != "1"])
            return words[:at] + [odd] + words[at + 1:]
        if kind == 3 and at:
            return words + [words[at]]
        if kind == 4 and at:
            return words[:at] + [str(words[at]) + "x"] + words[at + 1:]
        return words[:1]

    # -- placeholders

    def key(self):
        return self.random.choice(self.keys)

    def value(self):
        kind = self.random.randrange(8)
        if kind < 3:
            return str(self.random.randint(-1000, 100_000))
        if kind == 3:
            return self.random.choice(FLOATS + B)
        if kind == 4:
            return self.random.choice(["", "hello", "a\r\nb", "\x00\xff", " 12", "x" * 44,
                                       "x" * 45])
        size = self.random.choice([1, 2, 5, 20, 43, 44, 45, 46, 100, 1000])
        return "".join(self.random.choice("abcdef") for _ in range(size))

    def member(self):
        """Of a small universe, so that sets overlap: small integers, texts, seldom something odd."""
        kind = self.random.randrange(20)
        if kind < 9:
            return str(self.random.randint(-3, 30))
        if kind < 17:
            return "m%d" % self.random.randint(0, 30)
        if kind == 17:
            return self.random.choice(["32767", "32768", "-32769", "2147483648", "-2147483649"] + B)
        return self.random.choice(["", "01", "a\r\nb", "\x00\xff", "x" * 64, "x" * 65, "y" * 300])
    def element(self):
        """Few different ones, so that they are found again; some too large for a node."""
        kind = self.random.randrange(40)
        if kind < 16:
            return self.random.choice("abcde")
        if kind < 28:
            return str(self.random.choice([0, 1, 2, 127, 128, -1, 4095, 4096, 70000, 2**31, 2**63]))
        if kind < 32:
            return self.random.choice(["01", "", "-0", " 1", "\x00\xff", "1.5"])
        if kind < 38:
            return self.random.choice("xy") * self.random.choice([63, 64, 500, 1000])
        return "z" * self.random.choice([4095, 4096, 8170, 8190, 9000, 20000])

    def end(self):
        return self._case(self.random.choice(["LEFT", "RIGHT"]))

    def side(self):
        return self._case(self.random.choice(["BEFORE", "AFTER"]))

    def index(self):
        """Of an element: mostly within a list."""
        if self.random.random() < 0.9:
            return str(self.random.choice([0, 1, 2, 3, -1, -2, -3, 7, 20, 60, -20, -60, 100]))
        return self.random.choice(B)

    def int(self):
        if self.random.random() < 0.7:
            return str(self.random.randint(-12, 25))
        return self.random.choice(B)

    def offset(self):
        """Offset of a write: small, or refused, never hundreds of megabytes."""
        choice = self.int()
        return choice if not re.fullmatch(r"[0-9]{6,}", choice) or int(choice) >= 2**31 else "99"

    def float(self):
        return self.random.choice(FLOATS + [str(self.random.randint(-50, 50)), "0.5", "-0.25"])

    def pattern(self):
        return self.random.choice(PATTERNS)

    def db(self):
        return self.random.choice(["0", "0", "1", "2", "9", "15", "16", "-1", "x", "",
                                   "99999999999"])

    def relative(self):
        """Seconds or milliseconds from now: refused, past at once, or far away."""
        return self.random.choice(["100000", "200000", "1000000", "900000"] * 4 + [
            w for w in B if w != "1"])

    def seconds(self):
        """Absolute Unix time in seconds: past, or far away."""
        return self.random.choice(["4000000000", "4100000000", "5000000000"] * 4 + B)

    def milliseconds(self):
        return self.random.choice(["4000000000000", "4100000000000", "5000000000000"] * 4 + B)

    def longitude(self):
        if self.random.random() < 0.03:
            return self.random.choice(["180", "-180", "180.0001", "-181", "nan", "inf", "x", ""])
        wide = self.random.choice([180, 180, 1, 0.01])
        return repr(self.random.uniform(-wide, wide))

    def latitude(self):
        if self.random.random() < 0.03:
            return self.random.choice(["85.05112878", "-85.05112878", "86", "-90", "nan", "x"])
        wide = self.random.choice([85, 85, 1, 0.01])
        return repr(self.random.uniform(-wide, wide))

    def place(self):
        """A member of a geo set: few, so that most are there."""
        return "p%d" % self.random.randint(0, 200)

    def distance(self):
        if self.random.random() < 0.05:
            return self.random.choice(["-1", "x", "", "nan", "inf", "1e300", "-0", "5e-324"])
        return self.random.choice(["0", "1", "100", "1000", "7000", "25000", "0.5"]
                                  + [repr(10 ** self.random.uniform(-2, 7.5))] * 4)

    def unit(self):
        return self.random.choice(["m", "km", "mi", "ft", "km", "KM", "Mi"] * 4 + ["x", ""])

    def copy(self):
        return self.random.choice(["c0", "c1", "c2", "c3"])

    def bit(self):
        return self.random.choice("01")

    def bitoffset(self):
        """Offset of a bit that is written: small, or refused."""
        if self.random.random() < 0.75:
            return str(self.random.choice([0, 1, 7, 8, 63, 64, 65, self.random.randint(0, 9000)]))
        refused = [w for w in B if not w.isdigit() or int(w) >= 2**32 or int(w) < 2]
        return self.random.choice(refused + ["4294967296", "#1"])

    def fieldoffset(self):
        if self.random.random() < 0.3:
            return "#%d" % self.random.randint(0, 70)
        return self.random.choice(["#-1", "#", "##1", "#9223372036854775807"]) \
            if self.random.random() < 0.1 else self.bitoffset()

    def fieldtype(self):
        if self.random.random() < 0.06:
            return self.random.choice(["u64", "i65", "u0", "i0", "x8", "8", "u", "", "U8", "u+8",
                                       "i-1", "u08", "u4294967304"])
        kind = self.random.choice("iu")
        return kind + str(self.random.choice([1, 2, 7, 8, 9, 31, 32, 33, 62, 63,
                                              64 if kind == "i" else 63,
                                              self.random.randint(1, 63)]))

    def fieldvalue(self):
        return self.random.choice([self.int(), str(self.random.randint(-300, 300)),
                                   str(self.random.randint(-2**63, 2**63 - 1)),
                                   str(2**63 - 1), str(-2**63)])

    def _field_operations(self, kinds):
        words = []
        for _ in range(self.random.randint(0, 4)):
            kind = self.random.choice(kinds)
            if kind == "OVERFLOW":
                words += [kind, self.random.choice(["WRAP", "sat", "FAIL", "Fail", "WRAP", "SAT"]
                                                   + ["x"] * (self.random.random() < 0.1))]
                continue
            words += [self._case(kind), self.fieldtype(), self.fieldoffset()]
            if kind != "GET":
                words.append(self.fieldvalue())
        return words

    def counted(self):
        if self.random.random() < 0.1:
            return self.value()
        return "e%d" % self.random.randint(0, 3000)

    def word(self):
        return self.random.choice(["name", "on", "off", "yes", "no", "-1", "0", "1", "x", "",
                                   "normal", "a b", "ID", "nothing"])

    def field(self):
        return self.random.choice(["f%d" % self.random.randrange(12)] * 6 + self.FIELDS)

    FIELDS = ["", "1", "-1", "4294967296", "9223372036854775807", "01", "k0", "n0", "x" * 64, "y" * 65,
              "z" * 255, "z" * 256, "\x00\xff\r\n", "F1"]

    def number(self):
        """Field that mostly holds a number."""
        return "n%d" % self.random.randrange(4)

    def fields(self):
        """Fields and values in turn, some of them more than once, once in a while too few."""
        count = self.random.choice([1, 1, 2, 3, 8])
        words = [w for _ in range(count) for w in (self.field(), self.value())]
        return words if self.random.random() < 0.95 else words[:-1]

    def bulk(self):
        """Enough fields in one command or a few to pass the usual thresholds, but never by the
        number of pairs in one command: 7.2 takes that as a hint, 7.0 does not."""
        start = self.random.randrange(700)
        return [w for n in range(start, start + self.random.choice([1, 40, 400]))
                for w in ("f%d" % n, str(n))]

    def names(self):
        start = self.random.randrange(700)
        return ["f%d" % n for n in range(start, start + self.random.choice([1, 40, 400]))]

    def count(self):
        return self.random.choice(["100000"] * 6 + [w for w in B if w != "1"])

    def any(self):
        return self.random.choice([self.value, self.int, self.key, self.pattern])()


STRINGS = """
APPEND key value|DECR key|INCR key|DECRBY key int|INCRBY key int|INCRBYFLOAT key float
GET key|GET key|GET key|GETDEL key|GETSET key value|STRLEN key|MGET key...
GETEX key {EX relative|PX relative|EXAT seconds|PXAT milliseconds|PERSIST}
GETRANGE key int int|SUBSTR key int int|SETRANGE key offset value
LCS key key {LEN} {IDX} {MINMATCHLEN int} {WITHMATCHLEN}
MSET pair...|MSETNX pair...|MSETNX key value
SET key value|SET key value|SET key value {NX|XX} {GET}
SET key value {NX|XX} {GET} {EX relative|PX relative|EXAT seconds|PXAT milliseconds|KEEPTTL}
SETNX key value|SETEX key relative value|PSETEX key relative value
"""

# No HRANDFIELD: with a huge negative count, which damage makes, the oracle never ends.
HASHES = """
HSET key fields|HSET key fields|HSET key fields|HSET key field value|HMSET key fields
HSETNX key field value|HGET key field|HGET key field|HMGET key field...|HGETALL key|HGETALL key
HDEL key field...|HDEL key field|HEXISTS key field|HKEYS key|HVALS key|HLEN key|HSTRLEN key field
HINCRBY key field int|HINCRBY key number int|HINCRBYFLOAT key number float|HSET key number float
HSET key number int|HGET key number
HSCAN key 0|HSCAN key 0 COUNT 100000|HSCAN key 0 {MATCH pattern} {COUNT count}
OBJECT ENCODING key|DEL key|TYPE key|COPY key key {REPLACE}|RENAME key key|SET key value
HSET many bulk|HSET many bulk|HDEL many names|HGET many field|HGETALL many|HLEN many
OBJECT ENCODING many|HSCAN many 0 COUNT 100000|HINCRBY many number int
"""

LISTS = """
LPUSH key element...|RPUSH key element...|LPUSHX key element...|RPUSHX key element...
LPUSH key crowd|RPUSH key crowd|RPUSH key crowd
LPOP key|RPOP key|LPOP key index|RPOP key index|LPOP key int|RPOP key int|LLEN key|LINDEX key index
LINDEX key index|LSET key index element|LSET key index element|LINSERT key side element element
LINSERT key side element element|LRANGE key index index|LRANGE key 0 -1|LRANGE key int int
LTRIM key index index|LTRIM key 1 -2|LTRIM key -100 -1|LREM key index element|LREM key 0 element
LREM key int element|LPOS key element {RANK int|RANK index} {COUNT int|COUNT index} {MAXLEN index}
LPOS key element COUNT 0|LMOVE key key end end|LMOVE key key end end|LMOVE k1 k1 end end
RPOPLPUSH key key|RPOPLPUSH k2 k2|LMPOP 1 key end {COUNT index}|LMPOP 2 key key end {COUNT index}
LMPOP int key key end {COUNT int}|LMPOP 3 missing key key end
TYPE key|DEL key|COPY key key {REPLACE}|RENAME key key|EXISTS key|OBJECT ENCODING key
SET key value|GET key|APPEND key value|EXPIRE key 100000|TTL key
"""

GEO = """
GEOADD key places|GEOADD key places|GEOADD key places|GEOADD key {NX|XX} {CH} places
GEOADD key NX places|GEOADD key XX CH places|GEOADD key CH places
GEODIST key place place|GEODIST key place place unit|GEOHASH key place...|GEOPOS key place...
GEOSEARCH key FROMMEMBER place BYRADIUS distance unit {ASC|DESC} {COUNT int|COUNT 5 ANY} {WITHDIST} {WITHCOORD} {WITHHASH}
GEOSEARCH key FROMLONLAT longitude latitude BYRADIUS distance unit {ASC|DESC} {COUNT 3} {WITHDIST} {WITHHASH}
GEOSEARCH key FROMLONLAT longitude latitude BYBOX distance distance unit {ASC|DESC} {COUNT 5} {WITHDIST} {WITHCOORD}
GEOSEARCH key FROMMEMBER place BYBOX distance distance unit {ASC|DESC} {COUNT int ANY}
GEOSEARCH key BYBOX distance distance unit {FROMMEMBER place|FROMLONLAT longitude latitude} {ANY}
GEOSEARCH key FROMMEMBER place {BYRADIUS distance unit|BYBOX distance distance unit} {COUNT int}
GEOSEARCHSTORE key key FROMMEMBER place BYRADIUS distance unit {ASC|DESC} {COUNT 5} {STOREDIST}
GEOSEARCHSTORE key key FROMLONLAT longitude latitude BYBOX distance distance unit {STOREDIST} {WITHDIST}
GEORADIUS key longitude latitude distance unit {ASC|DESC} {COUNT int} {WITHDIST} {WITHCOORD}
GEORADIUS key longitude latitude distance unit {STORE key|STOREDIST key} {COUNT 5} {WITHHASH}
GEORADIUSBYMEMBER key place distance unit {STORE key|STOREDIST key} {DESC} {WITHDIST}
GEORADIUSBYMEMBER key place distance unit {ASC|DESC} {COUNT int} {WITHCOORD}
GEORADIUS_RO key longitude latitude distance unit {ASC|DESC} {COUNT 7 ANY} {STORE key}
GEORADIUSBYMEMBER_RO key place distance unit {ASC|DESC} {WITHDIST} {STOREDIST key}
ZRANGE key 0 -1 WITHSCORES|ZCARD key|TYPE key|DEL key|SET key value|EXPIRE key relative|TTL key
"""

# Values that are changed as bits and looked at as strings.
BITMAPS = """
SETBIT key bitoffset bit|SETBIT key bitoffset bit|SETBIT key bitoffset int
GETBIT key bitoffset|GETBIT key bitoffset|SET key value|SET key value|GET key|STRLEN key
BITCOUNT key|BITCOUNT key int int|BITCOUNT key int int {BYTE|BIT|BITS}
BITCOUNT key int|BITCOUNT key int int BIT|BITPOS key bit int int BIT
BITPOS key bit|BITPOS key bit int|BITPOS key bit int int|BITPOS key bit int int {BYTE|BIT|BITS}
BITPOS key int
BITOP AND key key key...|BITOP OR key key key...|BITOP XOR key key key...|BITOP NOT key key
BITOP AND key key|BITOP NOT key key key|BITOP word key key
BITFIELD key fieldwrites|BITFIELD key fieldwrites|BITFIELD key fieldreads
BITFIELD_RO key fieldreads|BITFIELD_RO key fieldwrites
OBJECT ENCODING key|EXPIRE key relative|TTL key|DEL key|APPEND key value|COPY key key {REPLACE}
"""

HYPERLOGLOGS = """
PFADD key elements|PFADD key elements|PFADD key elements|PFADD key elements
PFMERGE key key...|PFMERGE key|PFMERGE key key|PFCOUNT key|PFCOUNT key key|PFCOUNT key...
COPY key copy REPLACE|GET key|GET key|STRLEN key
PFDEBUG ENCODING key|PFDEBUG DECODE key|PFDEBUG TODENSE key|PFDEBUG GETREG key
PFDEBUG word key|PFSELFTEST any
SET key value|SETRANGE missing 0 HYLL|OBJECT ENCODING key|DEL key|EXPIRE key relative|TTL key
"""

GENERIC = """
COPY key key {DB db} {REPLACE}|DEL key...|UNLINK key...|EXISTS key...|TOUCH key...|TYPE key
EXPIRE key relative {NX|XX|GT|LT}|PEXPIRE key relative {NX|XX|GT|LT}
EXPIREAT key seconds {NX|XX|GT|LT}|PEXPIREAT key milliseconds {NX|XX|GT|LT}
TTL key|PTTL key|EXPIRETIME key|PEXPIRETIME key|PERSIST key
KEYS pattern|RANDOMKEY|RENAME key key|RENAMENX key key|MOVE key db
OBJECT ENCODING key|OBJECT REFCOUNT key|OBJECT IDLETIME key|OBJECT FREQ key
OBJECT NOTHING key|OBJECT
DBSIZE|SELECT db|SELECT 0|SELECT 0|SELECT 0|SWAPDB db db|FLUSHDB|FLUSHDB {ASYNC|SYNC}
SET key value|SET key value|SET key value|SETEX key relative value|GET key
"""

# What is left to chance (SPOP, SRANDMEMBER) is in differential/test_sets.py.
SETS = """
SADD key member...|SADD key member...|SADD key member...|SADD key member...|SADD key run
SREM key member...|SREM key run|SISMEMBER key member|SMISMEMBER key member...|SCARD key
SMEMBERS key|SMOVE key key member|SMOVE key key member|SMOVE key key member
SINTER key...|SUNION key...|SDIFF key...|SINTERSTORE key key...|SUNIONSTORE key key...
SDIFFSTORE key key...|SINTERCARD 1 key|SINTERCARD 2 key key {LIMIT int}|SINTERCARD int key...
SINTERCARD 3 key key key {LIMIT int}|SSCAN key 0 {MATCH pattern} {COUNT 10000}
SSCAN key 0 {COUNT int} {MATCH pattern|TYPE set}|SSCAN key int
OBJECT ENCODING key|TYPE key|EXISTS key|DEL key|COPY key key {REPLACE}|RENAME key key
EXPIRE key relative|TTL key|GET key|DBSIZE
"""

# Nothing here may, however damaged, stop a server, silence or close a connection, or wait.
CONNECTION = """
PING|PING any|ECHO any|ECHO|SELECT db|RESET
CLIENT GETNAME|CLIENT SETNAME any|CLIENT SETNAME word|CLIENT SETNAME word
CLIENT NO-EVICT word|CLIENT NO-EVICT ON|CLIENT NO-EVICT OFF
CLIENT KILL word|CLIENT KILL ID -1|CLIENT KILL ID x|CLIENT KILL TYPE word|CLIENT KILL ADDR word
CLIENT KILL USER word|CLIENT KILL SKIPME x|CLIENT KILL LADDR word ID 99999999|CLIENT KILL
CLIENT KILL 127.0.0.1:1|CLIENT KILL ADDR 127.0.0.1:1|CLIENT KILL ID 999999999
CLIENT LIST TYPE word|CLIENT LIST ID word|CLIENT LIST word|CLIENT LIST ID 99999999
CLIENT REPLY x|CLIENT REPLY ON|CLIENT UNBLOCK int|CLIENT UNBLOCK 99999 {TIMEOUT|ERROR|BAD}
CLIENT UNPAUSE|CLIENT NOTHING|CLIENT NOTHING any
CLIENT ID any|CLIENT GETNAME any|CLIENT INFO any
HELLO int|HELLO 2 word|HELLO 4|HELLO 2 AUTH word|HELLO 2 SETNAME|HELLO 1|HELLO x|HELLO 2
HELLO 3|HELLO 3 SETNAME word|HELLO 3 AUTH default word|HELLO 2 SETNAME word AUTH default word
AUTH word|AUTH word word|AUTH word word word|AUTH default any
"""

SERVER = """
COMMAND COUNT any|COMMAND LIST any|COMMAND LIST FILTERBY word any|COMMAND LIST FILTERBY
COMMAND GETKEYS any|COMMAND GETKEYS GET key|COMMAND GETKEYS MSET pair pair
COMMAND GETKEYS SET key|COMMAND GETKEYS PING|COMMAND GETKEYS NOPE key
COMMAND GETKEYSANDFLAGS COPY key key|COMMAND GETKEYSANDFLAGS SET key value
COMMAND GETKEYSANDFLAGS SET key value GET|COMMAND INFO nothing|COMMAND NOTHING
COMMAND LIST FILTERBY ACLCAT nothing|COMMAND LIST FILTERBY PATTERN zz*
COMMAND LIST FILTERBY MODULE nothing|COMMAND DOCS nothing
CONFIG GET word|CONFIG GET|CONFIG SET word|CONFIG SET word any|CONFIG SET|CONFIG NOTHING
CONFIG SET nothing any word|CONFIG SET timeout word timeout word
CONFIG RESETSTAT any|CONFIG REWRITE any any|CONFIG RESETSTAT
DBSIZE|DBSIZE any|FLUSHALL|FLUSHALL {ASYNC|SYNC|BAD}|FLUSHDB {ASYNC|SYNC|BAD}|SET key value
LATENCY NOTHING|LATENCY LATEST any|LATENCY HISTORY|LATENCY HISTORY nothing|LATENCY RESET nothing
LATENCY GRAPH nothing|LATENCY HISTOGRAM nothing|LATENCY RESET
MEMORY NOTHING|MEMORY USAGE|MEMORY USAGE missing|MEMORY USAGE key SAMPLES word
MEMORY USAGE key SAMPLES -1|MEMORY USAGE key BAD 1|MEMORY PURGE any|MEMORY DOCTOR any
SLOWLOG NOTHING|SLOWLOG GET word|SLOWLOG GET -2|SLOWLOG LEN any|SLOWLOG RESET any|SLOWLOG GET 0
SWAPDB db db|SWAPDB int int|TIME any|LOLWUT VERSION word|LOLWUT VERSION
DEBUG|DEBUG NOTHING|DEBUG ERROR word|DEBUG LOG word
DEBUG SET-ACTIVE-EXPIRE 1|DEBUG OBJECT missing|DEBUG DIGEST-VALUE missing
INFO nothing|CLUSTER INFO|CLUSTER NOPE
CLUSTER SLOTS|CLUSTER|NOPE|NOPE any|nope any any|GET|SET key|FOO bar baz
"""


def templates(text):
    return [t.strip() for line in text.split("\n") if line for t in split_outside(line)]


def split_outside(line):
    """Split at the bars that are not inside braces."""
    return re.split(r"\|(?![^{]*\})", line)

