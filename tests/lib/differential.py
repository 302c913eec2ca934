"""Runs one program of commands on two servers and compares the replies.

Replies are compared as raw bytes.  Where a reply depends on time, chance or the process, a named
rule of RULES says what is compared instead.  A reply that differs on purpose is named, with the
reason, in differential/differences.py.  A program that differs is cut down to the commands that
are needed to show it before it is reported.
"""

import time

from lib.resp import Closed, Error, Malformed, Map, Timeout, encode


class Reply:
    """raw bytes and decoded tree of one reply; None and a text where no reply came.  took_s: how long
    the run of both servers took that it is of: times and ages in it may differ by that much."""

    def __init__(self, raw, tree):
        self.raw = raw
        self.tree = tree
        self.took_s = 0

    def is_error(self):
        return isinstance(self.tree, Error)

    def __repr__(self):
        if self.raw is None:
            return "<%s>" % self.tree
        if len(self.raw) > 600:
            return "%r ... %d bytes" % (self.raw[:600], len(self.raw))
        return repr(self.raw)


def _same_kind(a, b, _):
    return a.is_error() == b.is_error() and a.raw[:1] == b.raw[:1]


def _close(tolerance):
    def compare(a, b, _):
        both = isinstance(a.tree, int) and isinstance(b.tree, int)
        if not both or a.tree < 0 or b.tree < 0:
            return a.raw == b.raw
        return abs(a.tree - b.tree) <= tolerance
    return compare


def _time_passes(units_per_s):
    """A time or what is left of one: a second is lost by rounding."""
    def compare(a, b, words):
        return _close((5 + a.took_s) * units_per_s)(a, b, words)
    return compare


def _unordered(a, b, _):
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    return a.raw[:1] == b.raw[:1] and sorted(a.tree) == sorted(b.tree)


def _pairs(tree):
    return sorted(tree) if isinstance(tree, Map) else sorted(zip(tree[0::2], tree[1::2]))


def _unordered_pairs(a, b, _):
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    return a.raw[:1] == b.raw[:1] and len(a.raw) == len(b.raw) and _pairs(a.tree) == _pairs(b.tree)


def _scanned_pairs(a, b, words):
    """A whole walk: the same pairs.  A part of one: any pairs, in the same form."""
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    whole = words[2] in (b"0", b"") and a.tree[0] == b.tree[0] == b"0"
    return not whole or _pairs(a.tree[1]) == _pairs(b.tree[1])


def _same_scan(a, b, words):
    """Whole walks show the same; of parts of walks only the errors are compared."""
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    if words[2] != b"0" or a.tree[0] != b"0" or b.tree[0] != b"0":
        return a.raw[:2] == b.raw[:2]
    return sorted(a.tree[1]) == sorted(b.tree[1])


def _both_or_neither_nil(a, b, _):
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    return (a.tree is None) == (b.tree is None)


def _kind_or_error(a, b, words):
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    return _same_kind(a, b, words)


def _hello(a, b, _):
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    one = a.tree if isinstance(a.tree, Map) else list(zip(a.tree[0::2], a.tree[1::2]))
    two = b.tree if isinstance(b.tree, Map) else list(zip(b.tree[0::2], b.tree[1::2]))
    changing = (b"version", b"id")
    return a.raw[:1] == b.raw[:1] and \
        [p for p in one if p[0] not in changing] == [p for p in two if p[0] not in changing] and \
        [k for k, _ in one] == [k for k, _ in two]


def _as_number(leaf):
    try:
        return repr(float(leaf)) if isinstance(leaf, (bytes, float)) else None
    except ValueError:
        return None


def _same_scores(a, b):
    """Trees equal but for the text of numbers with a fraction or an exponent: the oracle prints 17
    digits, 7.2 the shortest text of the same number."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same_scores(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and (
        a == b or _as_number(a) is not None and _as_number(a) == _as_number(b))


def _scores(a, b, _):
    return a.raw == b.raw or not a.is_error() and a.raw[:1] == b.raw[:1] and \
        _same_scores(a.tree, b.tree)


def _zscan(a, b, words):
    """The same members in any order where the walk is whole."""
    if a.is_error() or b.is_error() or words[2] != b"0" or a.tree[0] != b"0" or b.tree[0] != b"0":
        return a.is_error() == b.is_error() and a.raw[:1] == b.raw[:1]
    ours, theirs = (sorted(zip(r.tree[1][0::2], map(_as_number, r.tree[1][1::2])))
                    for r in (a, b))
    return ours == theirs


def _same_length(a, b, words):
    if isinstance(a.tree, list) and isinstance(b.tree, list):
        return len(a.tree) == len(b.tree)
    return _kind_or_error(a, b, words)


def _digests(a, b, _):
    """All zeros is the digest of what is not there."""
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    return [d == b"0" * 40 for d in a.tree] == [d == b"0" * 40 for d in b.tree]


def _without(tree, key):
    """The tree without that key of maps, which RESP2 shows as flat arrays."""
    if isinstance(tree, Map):
        return Map((k, _without(v, key)) for k, v in tree if k != key)
    if not isinstance(tree, list):
        return tree
    at = tree.index(key) if key in tree[0::2] else len(tree)
    return [_without(v, key) for v in tree[:at] + tree[at + 2:]]


def _same_but_times(a, b, took_s):
    """Equal trees, but for numbers that are times of the clock or pairs of ages."""
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(_same_but_times(x, y, took_s) for x, y in zip(a, b))
    tolerance_ms = (5 + took_s) * 1000
    times = isinstance(a, int) and isinstance(b, int) and min(a, b) > 10**12
    return type(a) is type(b) and (a == b or times and abs(a - b) < tolerance_ms)


def _stream_info(a, b, words):
    """FULL shows times, and since 7.2 when a consumer was active.  (The oracle may keep a node of
    which all is deleted, and counts it.)  How far groups are: as in _stream_groups."""
    if a.is_error() or b.is_error() or len(words) < 4:
        return a.raw == b.raw
    trees = [a.tree, b.tree]
    for key in (b"active-time", b"radix-tree-keys", b"radix-tree-nodes", b"entries-read", b"lag"):
        trees = [_without(tree, key) for tree in trees]
    return a.raw[:3] == b.raw[:3] and _same_but_times(*trees, a.took_s)


def _stream_groups(a, b, _):
    """Where entries were deleted, or counters set by hand, the oracle tells how far a group is, and wrongly;
    integration/test_stream_lag.py has the right numbers, differential/test_stream_lag.py what is alike."""
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    trees = [_without(_without(r.tree, b"lag"), b"entries-read") for r in (a, b)]
    return a.raw[:3] == b.raw[:3] and trees[0] == trees[1]


def _ages_as_times(tree, at):
    """Rows with the age at index `at`, as a time of a clock that is far away."""
    return [list(row[:at]) + [10**15 - row[at]] + list(row[at + 1:]) for row in tree]


def _pending(a, b, words):
    if a.is_error() or b.is_error() or len(words) < 4:
        return a.raw == b.raw
    return _same_but_times(_ages_as_times(a.tree, 2), _ages_as_times(b.tree, 2), a.took_s)


def _stream_consumers(a, b, _):
    """idle is an age; inactive came with 7.2."""
    if a.is_error() or b.is_error():
        return a.raw == b.raw
    rows = [[dict(c if isinstance(c, Map) else zip(c[0::2], c[1::2])) for c in r.tree] for r in (a, b)]
    ours, theirs = ([[c[b"name"], c[b"pending"], c[b"idle"]] for c in r] for r in rows)
    return a.raw[:1] == b.raw[:1] and all(b"inactive" in c for c in rows[0]) and \
        _same_but_times(_ages_as_times(ours, 2), _ages_as_times(theirs, 2), a.took_s)


# name of the rule, the first words it is for ($: and no more), comparison.  The first that fits
# is used.
RULES = [
    ("seconds pass", ["TTL", "EXPIRETIME"], _time_passes(1)),
    ("milliseconds pass", ["PTTL", "PEXPIRETIME"], _time_passes(1000)),
    ("tables have their own order", ["KEYS", "SCAN"], _unordered),
    ("tables have their own order", ["HGETALL"], _unordered_pairs),
    ("tables have their own order", ["HKEYS", "HVALS"], _unordered),
    ("tables have their own order", ["HSCAN"], _scanned_pairs),
    ("sets have no order", ["SMEMBERS", "SINTER", "SUNION", "SDIFF"], _unordered),
    ("tables have their own cursors", ["SSCAN"], _same_scan),
    ("chance", ["RANDOMKEY"], _both_or_neither_nil),
    ("chance", ["ZRANDMEMBER"], _same_length),
    ("tables have their own order", ["ZSCAN"], _zscan),
    ("scores have their shortest text",
     ["ZADD", "ZINCRBY", "ZSCORE", "ZMSCORE", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE",
      "ZREVRANGEBYSCORE", "ZPOPMIN", "ZPOPMAX", "ZMPOP", "ZUNION", "ZINTER", "ZDIFF"], _scores),
    ("the clock", ["XINFO STREAM"], _stream_info),
    ("the clock", ["XINFO CONSUMERS"], _stream_consumers),
    ("the oracle's lag is wrong once entries were deleted", ["XINFO GROUPS"], _stream_groups),
    ("the clock", ["XPENDING"], _pending),
    ("expired keys count until they are reclaimed", ["DBSIZE"], _close(12)),
    ("how an integer is shared is nobody's business", ["OBJECT REFCOUNT"], _kind_or_error),
    ("shared integers of Redis share their clock", ["OBJECT IDLETIME"], _kind_or_error),
    ("digests are for comparing servers of one kind", ["DEBUG DIGEST-VALUE"], _digests),
    ("names the process", ["HELLO"], _hello),
    ("names the process or the moment",
     ["CLIENT ID", "CLIENT INFO", "CLIENT LIST", "TIME", "LASTSAVE", "INFO", "MEMORY USAGE",
      "MEMORY DOCTOR", "MEMORY STATS", "SLOWLOG GET", "SLOWLOG LEN", "LATENCY RESET",
      "LATENCY DOCTOR", "LATENCY HISTOGRAM", "CONFIG REWRITE", "DEBUG OBJECT"], _kind_or_error),
    ("tables of commands are compared by test_command_tables",
     ["COMMAND COUNT", "COMMAND LIST", "COMMAND DOCS", "COMMAND$", "COMMAND INFO$"],
     _kind_or_error),
]


def rule_for(words):
    upper = [w.upper().decode("latin-1") for w in words]
    for name, starts, compare in RULES:
        for start in starts:
            parts = start.rstrip("$").split()
            if upper == parts or upper[:len(parts)] == parts and not start.endswith("$"):
                return name, compare
    return "same bytes", lambda a, b, _: a.raw == b.raw


def _follow_protocol(client, words):
    """Set the decoder for the reply to come; gives what to put back when it is an error."""
    before = client.decoder.proto
    upper = words[0].upper() if words else b""
    if upper == b"HELLO" and len(words) > 1 and words[1] in (b"2", b"3"):
        client.decoder.proto = int(words[1])
    elif upper == b"RESET" and len(words) == 1:
        client.decoder.proto = 2
    return before


def _one(client, words):
    before = _follow_protocol(client, words)
    try:
        client.send_raw(encode(*words))
        reply = Reply(*client.read_reply())
    except (Closed, Timeout, Malformed, OSError) as trouble:
        return Reply(None, "%s: %s" % (type(trouble).__name__, trouble))
    if reply.is_error():
        client.decoder.proto = before
    return reply


def replies(client, program, pipelined):
    """The Reply to each command; stops after the first that did not come."""
    if pipelined:
        data = b"".join(encode(*words) for words in program)
        try:
            return [Reply(*frame) for frame in client.exchange(data, len(program))]
        except (Closed, Timeout, Malformed) as trouble:
            text = "%s: %s" % (type(trouble).__name__, trouble)
            return [Reply(*frame) for frame in trouble.replies] + [Reply(None, text)]
    got = []
    for words in program:
        got.append(_one(client, words))
        if got[-1].raw is None:
            break
    return got


class Mismatch:
    """Where and how the two differ."""

    def __init__(self, at, words, ours, theirs, rule):
        self.at, self.words, self.ours, self.theirs, self.rule = at, words, ours, theirs, rule


def first_mismatch(program, ours, theirs, differences):
    for at, words in enumerate(program):
        if at >= len(ours) or at >= len(theirs):
            break
        a, b = ours[at], theirs[at]
        if a.raw is not None and a.raw == b.raw:
            continue
        name, compare = rule_for(words)
        if a.raw is not None and b.raw is not None and compare(a, b, words):
            continue
        if any(d.covers(words, a, b) for d in differences):
            continue
        return Mismatch(at, words, a, b, name)
    return None


class Pair:
    """Our server and the oracle, each emptied before every run."""

    def __init__(self, ours, oracle, proto, differences, prelude=()):
        self.servers = (ours, oracle)
        self.proto = proto
        self.differences = differences
        self.prelude = [list(map(lambda w: w.encode() if isinstance(w, str) else w, words))
                        for words in prelude]

    def _run_one(self, server, program, pipelined):
        with server.connect() as client:
            client.ok("FLUSHALL")
            for words in self.prelude:
                client.call(*words)
            if self.proto == 3:
                client.hello(3)
            return replies(client, program, pipelined)

    def compare(self, program, pipelined=True):
        begin = time.monotonic()
        ours, theirs = (self._run_one(s, program, pipelined) for s in self.servers)
        for reply in ours + theirs:
            reply.took_s = time.monotonic() - begin
        return first_mismatch(program, ours, theirs, self.differences)

    def check(self, program, seed, pipelined=True):
        """AssertionError with a minimal program when the two differ."""
        found = self.compare(program, pipelined)
        if found is None:
            return
        program, found = self._shrink(program[:found.at + 1], found, pipelined)
        steps = "\n".join("  " + show(words) for words in program)
        raise AssertionError(
            "seed %s, RESP%d, rule '%s': the last of\n%s\nours:   %r\noracle: %r\n"
            "again with KEYDB_TEST_SEED=%s"
            % (seed, self.proto, found.rule, steps, found.ours, found.theirs, seed))

    def _shrink(self, program, found, pipelined, runs=150):
        """Leave out ever smaller runs of commands while the last one still differs."""
        size = max(len(program) // 2, 1)
        while runs > 0:
            at, shorter = 0, False
            while at < len(program) - 1 and runs > 0:
                trial = program[:at] + program[min(at + size, len(program) - 1):]
                runs -= 1
                other = self.compare(trial, pipelined)
                if other is not None and other.at == len(trial) - 1:
                    program, found, shorter = trial, other, True
                else:
                    at += size
            if size == 1 and not shorter:
                break
            size = max(size // 2, 1)
        return program, found


def show(words):
    return " ".join(repr(w)[1:] if len(w) < 200 else "<%d bytes>" % len(w) for w in words)
