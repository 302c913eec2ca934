"""What a server tells its replicas, read by one that the test plays: each step of a program with the
commands that the stream got by it, so that two servers' streams can be laid side by side.

Times in the stream are of the clock: they are compared within NEAR_MS.  What differs on purpose is
brought to one form by RULES, each with its reason; what they do not cover is a defect."""

import re
import time

from lib.bounds import eventually
from lib.resp import Connection, encode

NEAR_MS = 60_000
TIME = re.compile(rb"(\d{13,19})(-\d+)?")
# Words that are the same in either case.
OPTIONS = {b"NX", b"XX", b"GT", b"LT", b"CH", b"GET", b"KEEPTTL", b"LEFT", b"RIGHT", b"ABSTTL"}

PAUSE_S = 0.003


class StreamReader:
    """A replica's end of the link; .take() is what was told since the last time."""

    def __init__(self, server):
        self.link = Connection(("127.0.0.1", server.port))
        self.ask = Connection(("127.0.0.1", server.port))
        self.link.ok("REPLCONF", "capa", "psync2")
        self.link.send("PSYNC", "?", "-1")
        head = self._line()
        assert head.startswith(b"+FULLRESYNC"), head
        self.at = int(head.split()[2])
        self._more(int(self._line()[1:]))

    def _more(self, size):
        got = b""
        while len(got) < size:
            got += self.link.receive(size - len(got))
        return got

    def _line(self):
        """The next line; signs of life between are left out."""
        line = b""
        while not line.endswith(b"\n"):
            line += self._more(1)
            line = b"" if line == b"\n" else line
        return line.rstrip(b"\r\n")

    def take(self):
        about = self.ask.call("INFO", "replication")
        end = int(re.search(rb"master_repl_offset:(\d+)", about).group(1))
        raw = self._more(end - self.at)
        self.at = end
        return parse(raw)

    def close(self):
        self.link.close()
        self.ask.close()


def parse(raw):
    """Whole commands, each a list of words."""
    commands, at = [], 0
    while at < len(raw):
        end = raw.index(b"\r\n", at)
        count, at, words = int(raw[at + 1:end]), end + 2, []
        for _ in range(count):
            end = raw.index(b"\r\n", at)
            size, at = int(raw[at + 1:end]), end + 2
            words.append(raw[at:at + size])
            at += size + 2
        commands.append(words)
    return commands


class Step:
    """One step of a program, what was replied to it (None: it waits), and what it told."""

    def __init__(self, words, tree, told):
        self.words, self.tree, self.told = words, tree, told
        self.name = words[0].upper()

    def __repr__(self):
        return "%.300r -> %.200r\n     told: %.900r" % (self.words, self.tree, self.told)


# ---- the intended differences ----
#
# Besides those below: what RANDOMKEY and SCAN find to be expired is left to the sweep, where 7.0
# removes and tells it, and WATCH removes and tells it, where 7.0 leaves it.  So no program has them
# behind a deadline.

def _unit_of_deletions(step, told):
    """7.0 puts the DELs of keys that a command finds to be expired into one unit with it; ours are
    told by themselves, whole each, and again when such a key is then removed."""
    if step.name not in (b"EXEC", b"EVAL", b"FCALL") and told[:1] == [[b"MULTI"]] \
            and told[1][0] in (b"DEL", b"UNLINK"):
        told = told[1:-1]
    seen = []
    for command in told:
        if not (command[0] in (b"DEL", b"UNLINK") and command in seen):
            seen.append(command)
    return seen


def _select_within(_, told):
    """7.0 tells SELECT before a unit's MULTI, 7.2 and ours behind it."""
    if len(told) > 1 and told[0][0] == b"SELECT" and told[1] == [b"MULTI"]:
        return [told[1], told[0]] + told[2:]
    return told


def _count_of_pops(step, told):
    """Ours tell how many were popped, not how many were wanted."""
    popped = len(step.tree) if isinstance(step.tree, list) else 1
    out = []
    for words in told:
        name = words[0].upper()
        if name in (b"ZPOPMIN", b"ZPOPMAX") and len(words) == 2:
            words = words + [b"1"]
        elif step.name in (b"LPOP", b"RPOP") and len(words) == 3:
            words = words[:2] + [b"%d" % min(popped, int(words[2]))]
        elif step.name in (b"ZPOPMIN", b"ZPOPMAX") and name == step.name:
            pairs = popped if step.tree and isinstance(step.tree[0], list) else popped // 2
            words = words[:2] + [b"%d" % min(pairs, int(words[2]))]
        out.append(words)
    return out


def _chosen_by_chance(step, told):
    """Which members SPOP takes is chance; 7.0 tells an SREM for each, 7.2 one for many."""
    taken = [w for w in told if w[0].upper() == b"SREM"]
    if step.name != b"SPOP" or not taken:
        return told
    return [taken[0][:2] + [b"any"] * sum(len(w) - 2 for w in taken)]


def _one_move(_, told):
    """A BRPOPLPUSH is told as the LMOVE that it is; 7.0 tells RPOPLPUSH, which is the same."""
    return [[b"LMOVE"] + w[1:] + [b"RIGHT", b"LEFT"] if w[0].upper() == b"RPOPLPUSH" else w
            for w in told]


def _tested_conditions(_, told):
    """Ours tell a deadline without the condition that it met here; 7.0 tells both."""
    return [w[:3] if w[0].upper() == b"PEXPIREAT" else w for w in told]


def _whole_id(text):
    """An ID as ours tell it: 7.0 tells one without its second part as it came."""
    return text if b"-" in text else text + b"-0"


def _trimming(_, told):
    """Ours tell how many entries a trimming left, and nothing of one that removed none; Redis tells
    the threshold.  (That replicas have the same entries is what tests of replicas show.)"""
    out = []
    for words in told:
        name = words[0].upper()
        if name == b"XTRIM":
            words = words[:2]
        elif name == b"XADD":
            at = 2
            while words[at].upper() in (b"NOMKSTREAM", b"MAXLEN", b"MINID", b"LIMIT"):
                at += 1 if words[at].upper() == b"NOMKSTREAM" else \
                    3 if words[at + 1] in (b"=", b"~") else 2
            words = words[:2] + [_whole_id(words[at])] + words[at + 1:]
        out.append(words)
    return out


GROUP_READS = (b"XREADGROUP", b"XCLAIM", b"XAUTOCLAIM", b"XADD")


def _groups(step, told):
    """7.2 makes a consumer as soon as it is named, and ours tell that it did; they tell how much a
    group has read as well (7.0 forgets that), entries that are deleted by XACK, the deliveries of a
    history that is read again, and the entries of one call in one XCLAIM."""
    if step.name not in GROUP_READS:
        return told
    out = []
    for words in told:
        name = words[0].upper()
        if name == b"XCLAIM":
            # key group consumer 0 id... TIME
            ids = words[5:words.index(b"TIME")]
            out += [[b"XACK or XCLAIM", *words[1:3], _whole_id(one)] for one in ids]
        elif name == b"XACK":
            out += [[b"XACK or XCLAIM", *words[1:3], one] for one in words[3:]]
        elif name not in (b"MULTI", b"EXEC", b"XGROUP"):
            out.append(words)
    history = step.name == b"XREADGROUP" and step.words[-1] != b">"
    return [] if history else sorted(out)


def _options_once(_, told):
    """An option of SET that is there twice is told once."""
    out = []
    for words in told:
        if words[0].upper() == b"SET":
            words = words[:3] + [w for n, w in enumerate(words[3:])
                                 if w.upper() not in [x.upper() for x in words[3:3 + n]]]
        out.append(words)
    return out


def _failed_fields(step, told):
    """7.0 does not tell of a string that BITFIELD has made longer and then, for an overflow, not
    written."""
    fails = step.name == b"BITFIELD" and b"FAIL" in [w.upper() for w in step.words]
    return [] if fails else told


def _counts_are_reads(step, told):
    """Redis keeps what PFCOUNT has counted in the value and tells of that; here a count is a read."""
    return [] if step.name == b"PFCOUNT" else told


def _restored(_, told):
    """A RESTORE with a deadline is told with REPLACE, and its options are in another order."""
    return [w[:4] + sorted({o.upper() for o in w[4:]} - {b"REPLACE"}) if w[0].upper() == b"RESTORE"
            else w for w in told]


RULES = [_select_within, _unit_of_deletions, _count_of_pops, _chosen_by_chance, _one_move,
         _tested_conditions, _trimming, _groups, _options_once, _failed_fields, _counts_are_reads, _restored]


def canonical(step):
    told = step.told
    for rule in RULES:
        told = rule(step, told)
    return told


# ---- comparing ----

def _same_word(a, b):
    if a == b or a.upper() == b.upper() and a.upper() in OPTIONS:
        return True
    one, two = TIME.fullmatch(a), TIME.fullmatch(b)
    return bool(one and two) and bool(one.group(2)) == bool(two.group(2)) and \
        abs(int(one.group(1)) - int(two.group(1))) <= NEAR_MS


def _same_command(a, b):
    return len(a) == len(b) and a[0].upper() == b[0].upper() and \
        all(_same_word(x, y) for x, y in zip(a[1:], b[1:]))


def same(ours, theirs):
    a, b = canonical(ours), canonical(theirs)
    return len(a) == len(b) and all(_same_command(x, y) for x, y in zip(a, b))


# ---- running ----

class Waits:
    """A step whose command waits, on a connection of its own, until a later step serves it."""

    def __init__(self, *words):
        self.words = list(words)


PAUSE = object()  # longer than the deadlines of a program


def _prepare(client, words):
    """The words as bytes; a callable among them makes its word of the connection."""
    made = [w(client) if callable(w) else w for w in words]
    return [w.encode() if isinstance(w, str) else w for w in made]


def _wait(server, words):
    waiter = server.connect()
    number = waiter.call("CLIENT", "ID")
    waiter.send(*words)
    with server.connect() as other:
        eventually(lambda: re.search(rb" flags=\w*b", other.call("CLIENT", "LIST", "ID", number)), "it waits")
    return waiter


def run(server, program):
    """The program, step by step; only what commands find is expired."""
    opened = [Connection(("127.0.0.1", server.port))]
    client, steps = opened[0], []
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    reader = StreamReader(server)
    try:
        for words in program:
            if words is PAUSE:
                time.sleep(PAUSE_S)
            elif isinstance(words, Waits):
                opened.append(_wait(server, words.words))
                steps.append(Step(_prepare(client, words.words), None, reader.take()))
            else:
                words = _prepare(client, words)
                client.send_raw(encode(*words))
                tree = client.read_reply()[1]
                steps.append(Step(words, tree, reader.take()))
        return steps
    finally:
        reader.close()
        for connection in opened:
            connection.close()
