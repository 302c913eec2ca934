"""Keyspace events of generated command sequences of all types, from our server and from the oracle:
the same events for each command, in the same order.  A mark that the writer publishes behind each
command tells which events are its own.  Expiry is left out: a reader that finds a key's time past
has it removed a little later here (integration/test_pubsub.py has those events)."""

import pytest

from lib import grammar, grammar_sort, grammar_stream, grammar_stream_group, grammar_zset
from lib.bounds import eventually
from lib.differences import EVENT_DIFFERENCES
from lib.differential import show
from lib.pubsub import frame, subscribe
from lib.resp import encode
from lib.seeds import generator, seeds

# name: (grammar, templates, commands before)
PLAIN = {name: (grammar.Grammar, text, [("SET", "wrong", "x")]) for name, text in {
    "string": grammar.STRINGS,
    "generic": grammar.GENERIC,
    "hash": grammar.HASHES,
    "geo": grammar.GEO,
    "bitmap": grammar.BITMAPS,
    "hyperloglog": grammar.HYPERLOGLOGS,
    "list": grammar.LISTS,
    "set": grammar.SETS,
    "mixed": grammar.STRINGS + grammar.GENERIC + grammar.HASHES + grammar.LISTS + grammar.SETS,
}.items()}
GROUPS = dict(
    PLAIN,
    zset=(grammar_zset.ZsetGrammar, grammar_zset.ZSETS, grammar_zset.PRELUDE),
    stream=(grammar_stream.StreamGrammar, grammar_stream.STREAMS, grammar_stream.PRELUDE),
    group=(grammar_stream_group.StreamGroupGrammar, grammar_stream_group.GROUP_TEMPLATES,
           grammar_stream_group.PRELUDE),
    sort=(grammar_sort.SortGrammar, grammar_sort.SORTS, grammar_sort.PRELUDE),
)
LENGTH = 300
CLASSES = "KEAn"  # all but the misses, which a reader tells later here


def program(group, seed):
    make, text, _ = GROUPS[group]
    random = generator(seed, "events", group)
    return make(random, grammar.templates(text), wrong_type=True).program(LENGTH)


def events(server, group, steps):
    """A list of events for each step: (channel, payload)."""
    before = GROUPS[group][2]
    with server.connect() as writer, server.connect() as listener:
        writer.ok("FLUSHALL")
        for words in before:
            writer.call(*words)
        writer.ok("CONFIG", "SET", "notify-keyspace-events", CLASSES)
        subscribe(listener, "PSUBSCRIBE", "__key*@*__:*")
        subscribe(listener, "SUBSCRIBE", "mark")
        data = b"".join(encode(*words) + encode("PUBLISH", "mark", "%d" % at)
                        for at, words in enumerate(steps))
        replies = [tree for _, tree in writer.exchange(data, 2 * len(steps))][::2]
        found = []
        for at in range(len(steps)):
            own = []
            while True:
                tree = frame(listener)
                if tree[0] == b"message":
                    assert tree[2] == b"%d" % at
                    break
                if tree[3] != b"expired" and not tree[2].endswith(b":expired"):
                    own.append((tree[2], tree[3]))
            found.append(own)
        return found, replies


def first_difference(server, oracle, group, steps):
    (ours, _), (theirs, replies) = (events(s, group, steps) for s in (server, oracle))
    for at, (a, b) in enumerate(zip(ours, theirs)):
        if a != b and not any(d.covers(steps[at], a, b) for d in EVENT_DIFFERENCES):
            return at, a, b, replies[at]
    return None


def shorten(server, oracle, group, steps, runs=120):
    """Leave out what the last step's difference does not need."""
    size = max(len(steps) // 2, 1)
    while runs > 0:
        at, shorter = 0, False
        while at < len(steps) - 1 and runs > 0:
            trial = steps[:at] + steps[min(at + size, len(steps) - 1):]
            runs -= 1
            found = first_difference(server, oracle, group, trial)
            if found and found[0] == len(trial) - 1:
                steps, shorter = trial, True
            else:
                at += size
        if size == 1 and not shorter:
            break
        size = max(size // 2, 1)
    return steps


def check(server, oracle, group, seed):
    steps = program(group, seed)
    found = first_difference(server, oracle, group, steps)
    if not found:
        return
    steps = shorten(server, oracle, group, steps[:found[0] + 1])
    _, ours, theirs, reply = first_difference(server, oracle, group, steps)
    raise AssertionError("seed %s: the events of the last of\n%s\n(reply %r)\nours:   %r\n"
                         "oracle: %r" % (seed, "\n".join("  " + show(words) for words in steps),
                                         reply, ours, theirs))


@pytest.mark.parametrize("group", sorted(GROUPS))
@pytest.mark.parametrize("seed", seeds(4))
def test_same_events(server, oracle, group, seed):
    check(server, oracle, group, seed)


@pytest.mark.slow
@pytest.mark.parametrize("group", sorted(GROUPS))
def test_same_events_many_seeds(server, oracle, group):
    for seed in seeds(100, base=1000):
        check(server, oracle, group, seed)


# A waiter, what its keys are given, and by whom it is served.
WAITS = [
    (["BLPOP", "a", "b", "0"], [["RPUSH", "b", "1", "2"]]),
    (["BRPOP", "a", "0"], [["LPUSH", "a", "1"]]),
    (["BLMPOP", "0", "1", "a", "LEFT", "COUNT", "2"], [["RPUSH", "a", "1", "2", "3"]]),
    (["BLMOVE", "a", "b", "LEFT", "RIGHT", "0"], [["RPUSH", "a", "1"]]),
    (["BRPOPLPUSH", "a", "b", "0"], [["RPUSH", "a", "1", "2"]]),
    (["BLMOVE", "a", "a", "LEFT", "RIGHT", "0"], [["RPUSH", "a", "1", "2"]]),
    (["BZPOPMIN", "a", "0"], [["ZADD", "a", "1", "x"]]),
    (["BZPOPMAX", "a", "0"], [["ZADD", "a", "1", "x", "2", "y"]]),
    (["BZMPOP", "0", "2", "a", "b", "MIN", "COUNT", "3"], [["ZADD", "b", "1", "x", "2", "y"]]),
    (["BLPOP", "a", "0"], [["RPUSH", "c", "1"], ["RENAME", "c", "a"]]),
    (["BLPOP", "a", "0"], [["MULTI"], ["RPUSH", "a", "1"], ["SET", "b", "x"], ["EXEC"]]),
    (["BLPOP", "a", "0"], [["MULTI"], ["RPUSH", "a", "1"], ["DEL", "a"], ["RPUSH", "a", "2"],
                           ["EXEC"]]),
    (["XREAD", "BLOCK", "0", "STREAMS", "a", "0"], [["XADD", "a", "1-1", "f", "v"]]),
    (["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"],
     [["XADD", "s", "1-1", "f", "v"]]),
]


def events_of_a_wait(server, wait, writes):
    with server.connect() as waiter, server.connect() as writer, server.connect() as listener:
        writer.ok("FLUSHALL")
        writer.ok("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        writer.call("XGROUP", "CREATECONSUMER", "s", "g", "c")
        writer.ok("CONFIG", "SET", "notify-keyspace-events", CLASSES)
        subscribe(listener, "PSUBSCRIBE", "__key*@*__:*")
        subscribe(listener, "SUBSCRIBE", "mark")
        waiter.send(*wait)
        eventually(lambda: server.info()["blocked_clients"] == "1", "it waits")
        for words in writes:
            writer.call(*words)
        waiter.read()
        writer.call("PUBLISH", "mark", "end")
        found = []
        while not found or found[-1][0] != b"message":
            found.append(frame(listener))
        return found


@pytest.mark.parametrize("wait,writes", WAITS, ids=lambda words: str(words[0]))
def test_events_of_those_who_waited(server, oracle, wait, writes):
    """What is served to a waiter happens behind the write that it waited for."""
    assert events_of_a_wait(server, wait, writes) == events_of_a_wait(oracle, wait, writes)
