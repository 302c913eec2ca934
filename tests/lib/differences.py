"""The intended differences between our replies and those of the oracle (Redis 7.0.15), each with
its reason.  Whatever is not listed here is a defect."""

from lib.resp import Error


class Difference:
    """start: the command's first words in capitals; ours and theirs: tests on the Reply (None:
    anything).  A difference covers a reply only when both tests hold."""

    def __init__(self, start, reason, ours=None, theirs=None):
        self.start = start.split()
        self.reason = reason
        self.ours = ours or (lambda reply: True)
        self.theirs = theirs or (lambda reply: True)

    def covers(self, words, ours, theirs):
        upper = [w.upper().decode("latin-1") for w in words[:len(self.start)]]
        return upper == self.start and ours.raw is not None and theirs.raw is not None \
            and self.ours(ours) and self.theirs(theirs)


def _error(start):
    return lambda reply: isinstance(reply.tree, Error) and reply.tree.startswith(start)


def _is(text):
    return lambda reply: reply.tree == text


DIFFERENCES = [
    # Since 7.2 the arguments are looked at before the key; in 7.0 a missing key, one of another
    # type, or a range that is empty by its negative bounds hides their faults.
    Difference("BITCOUNT", "since 7.2 arguments are checked first", _error(b"ERR "),
               lambda reply: reply.raw == b":0\r\n" or reply.raw.startswith(b"-WRONGTYPE")),
    Difference("BITPOS", "since 7.2 arguments are checked first", _error(b"ERR "),
               lambda reply: reply.raw in (b":0\r\n", b":-1\r\n")
               or reply.raw.startswith(b"-WRONGTYPE")),
    Difference("OBJECT ENCODING", "since 7.2 small sets of strings are listpacks",
               _is(b"listpack"), _is(b"hashtable")),
    Difference("DEBUG SET-ACTIVE-EXPIRE", "what is no switch is refused, not taken as its first digits",
               _error(b"ERR value must be 0 or 1")),
    Difference("OBJECT ENCODING", "since 7.2 a small list is a listpack",
               lambda reply: reply.tree == b"listpack", lambda reply: reply.tree == b"quicklist"),
    Difference("LPOS", "since 7.2 a rank without a positive counterpart is refused",
               _error(b"ERR value is out of range, value must between")),
    Difference("XSETID", "since 7.2 an ID before a deleted one is refused",
               _error(b"ERR The ID specified in XSETID is smaller than current max_deleted")),
    Difference("LOLWUT", "the drawing is ours"),
    Difference("EVAL", "since 7.2 the error says how many it takes",
               _error(b"ERR redis.set_repl() requires one argument."),
               _error(b"ERR redis.set_repl() requires two arguments.")),
    Difference("COMMAND GETKEYS", "since 7.2 a command without arguments may be asked about",
               _error(b"ERR "), _error(b"ERR wrong number of arguments for 'command|getkeys'")),
    Difference("COMMAND GETKEYSANDFLAGS", "since 7.2 a command without arguments may be asked about",
               _error(b"ERR "),
               _error(b"ERR wrong number of arguments for 'command|getkeysandflags'")),
    Difference("TTL", "KeyDB's takes a member", None, _error(b"ERR wrong number of arguments")),
    Difference("PTTL", "KeyDB's takes a member", None, _error(b"ERR wrong number of arguments")),
    Difference("PERSIST", "KeyDB's takes a member", None, _error(b"ERR wrong number of arguments")),
    Difference("ZRANK", "WITHSCORE came with 7.2", None, _error(b"ERR wrong number of arguments")),
    Difference("ZREVRANK", "WITHSCORE came with 7.2", None,
               _error(b"ERR wrong number of arguments")),
    Difference("XREADGROUP", "since 7.2 the text names the command and its special ID",
               _error(b"ERR Unbalanced 'xreadgroup' list"), _error(b"ERR Unbalanced XREAD list")),
    Difference("XREAD", "since 7.2 the text names the command as XREADGROUP's does",
               _is(b"ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must "
                   b"be specified."), _error(b"ERR Unbalanced XREAD list")),
    # Also intended, and kept out of the generated programs: asking in vain makes a consumer (7.2);
    # XINFO CONSUMERS' idle counts from the last attempt, successful or not (7.2); the count of
    # deliveries stays at 2^63-1 where the oracle's goes on at -2^63; XAUTOCLAIM with a huge COUNT
    # works, since no memory is set aside for it; COMMAND GETKEYS of XREADGROUP is not misled by a
    # consumer named STREAMS.
]


class EventDifference:
    """start: the command's first word; ours, theirs: lists of events as (channel, payload)."""

    def __init__(self, start, reason, test):
        self.start, self.reason, self.test = start, reason, test

    def covers(self, words, ours, theirs):
        return words[0].upper().decode("latin-1") == self.start and self.test(ours, theirs)


EVENT_DIFFERENCES = [
    EventDifference("BITFIELD", "that OVERFLOW FAIL leaves a string which has grown is a change too",
                    lambda ours, theirs: ours[:len(theirs)] == theirs
                    and [payload for channel, payload in ours[len(theirs):]
                         if channel.startswith(b"__keyspace")] == [b"setbit"]),
]
