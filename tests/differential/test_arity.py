"""Each command with one argument too few and too many, and with none: errors as the oracle's."""

import pytest

from lib import commands
from lib.differences import DIFFERENCES
from lib.differential import _kind_or_error, replies, show
from lib.resp import Error

NEVER = {"MONITOR", "SHUTDOWN", "CLIENT|PAUSE", "RESET", "HELLO", "CLIENT|KILL", "DEBUG",
         "COMMAND|DOCS", "COMMAND|INFO", "COMMAND|LIST", "COMMAND", "INFO", "CONFIG|REWRITE"}


def trials(name):
    call = [w.encode() for w in commands.call_of(name)]
    head = name.count("|") + 1
    for length in range(1, len(call)):
        yield call[:length]
    yield call + [b"extra"]
    yield call + [b"extra"] * 3
    yield call[:head] + [b""] * 8


@pytest.mark.any_threads
@pytest.mark.parametrize("name", sorted(set(commands.ALL) - NEVER))
def test_arity(client, oracle, name):
    program = list(trials(name))
    with oracle.connect() as other:
        for words, a, b in zip(program, replies(client, program, True),
                               replies(other, program, True)):
            if any(d.covers(words, a, b) for d in DIFFERENCES):
                continue
            if isinstance(b.tree, Error) or isinstance(a.tree, Error):
                assert a.raw == b.raw, show(words)
            else:
                assert _kind_or_error(a, b, words), show(words)


ERRORS = [
    ["SHUTDOWN", "x"], ["SHUTDOWN", "NOSAVE", "SAVE"], ["SHUTDOWN", "ABORT", "NOW"],
    ["SHUTDOWN", "ABORT"], ["MONITOR", "x"], ["CLIENT", "PAUSE", "x"], ["CLIENT", "PAUSE", "-1"],
    ["CLIENT", "PAUSE", "1", "x"], ["CLIENT", "PAUSE"], ["CLIENT", "REPLY", "x"],
    ["CLIENT", "KILL"], ["CLIENT", "KILL", "TYPE", "x"], ["CLIENT", "KILL", "ID"],
    ["CLIENT", "KILL", "SKIPME", "maybe"], ["CLIENT", "KILL", "USER", "nobody"],
    ["DEBUG", "SLEEP"], ["DEBUG", "JMAP"], ["RESET", "x"], ["HELLO", "2", "AUTH", "x"],
    ["HELLO", "2", "SETNAME"], ["HELLO", "2", "SETNAME", "a b"], ["HELLO", "9" * 30],
    ["HELLO", "2", "x"],
    ["CONFIG", "REWRITE", "x"], ["CONFIG", "REWRITE"], ["INFO", "nosuchsection"],
    ["CLUSTER", "INFO"], ["CLUSTER", "SLOTS"], ["CLUSTER", "NODES"], ["READONLY"], ["ASKING"],
    ["CLIENT", "KILL", "ID", "0"], ["CLIENT", "KILL", "ID", "-5"], ["CLIENT", "KILL", "a", "b"],
    ["CLIENT", "KILL", "ADDR", "1.2.3.4:5", "LADDR", "1.2.3.4:6"], ["CLIENT", "KILL", "1.2.3.4:5"],
    ["CLIENT", "UNBLOCK", "x"], ["CLIENT", "UNBLOCK", "1", "x"], ["CLIENT", "NO-EVICT", "x"],
    ["CLIENT", "SETNAME", "a b"], ["CLIENT", "SETNAME", "a\n"], ["CLIENT", "LIST", "ID", "x"],
    ["CLIENT", "LIST", "ID"], ["CLIENT", "LIST", "TYPE", "x"], ["CLIENT", "LIST", "x"],
    ["SLOWLOG", "GET", "x"], ["SLOWLOG", "GET", "-2"], ["LOLWUT", "VERSION", "x"],
    ["SELECT", "16"], ["SELECT", "-1"], ["SELECT", "x"], ["SELECT", "1e0"], ["SELECT", "99" * 9],
    ["SWAPDB", "0", "16"], ["SWAPDB", "x", "1"], ["SWAPDB", "0", "x"], ["SWAPDB", "-1", "0"],
    ["FLUSHALL", "x"], ["FLUSHDB", "ASYNC", "SYNC"], ["MEMORY", "USAGE", "k", "SAMPLES", "-1"],
    ["MEMORY", "USAGE", "k", "SAMPLES", "x"], ["MEMORY", "USAGE", "k", "x"],
    ["AUTH", "x"], ["AUTH", "default", "x"], ["AUTH", "nobody", "x"], ["AUTH", "a", "b", "c"],
    ["OBJECT", "FREQ", "k"], ["OBJECT", "ENCODING", "k"], ["SCAN", "x"],
    ["SCAN", "0", "COUNT", "0"],
    ["SCAN", "0", "COUNT", "x"], ["SCAN", "0", "x"], ["SCAN", "-1"], ["SCAN", "0", "MATCH"],
    ["SCAN", "18446744073709551616"], ["SCAN", "0", "COUNT", "-1"], ["SCAN", "0", "TYPE"],
    ["SCAN", "0", "TYPE", "nothing"], ["SCAN", "0", "COUNT", "9223372036854775807"],
    ["LATENCY", "RESET", "x"], ["LATENCY", "HISTOGRAM", "nothing"], ["LATENCY", "GRAPH", "x"],
    ["COMMAND", "LIST", "FILTERBY", "x", "y"], ["COMMAND", "LIST", "x"], ["COMMAND", "x"],
    ["COMMAND", "INFO", "nothing", "client|nothing", "get|x"], ["COMMAND", "DOCS", "client|x"],
]


@pytest.mark.any_threads
@pytest.mark.parametrize("words", ERRORS, ids=lambda words: " ".join(words)[:40])
def test_error_texts(client, oracle, words):
    with oracle.connect() as other:
        assert client.call_raw(*words) == other.call_raw(*words)
