"""The events of what a waiter is served with: the same as the oracle's, in the same order."""

import pytest

from lib.bounds import eventually

CASES = {
    "pop": ([("BLPOP", "k", "0")], ("RPUSH", "k", "a")),
    "pop, some left": ([("BRPOP", "k", "0")], ("RPUSH", "k", "a", "b")),
    "several": ([("BLPOP", "k", "0"), ("BLPOP", "k", "0"), ("BLMPOP", "0", "1", "k", "LEFT")],
                ("RPUSH", "k", "a", "b", "c")),
    "move": ([("BLMOVE", "k", "t", "LEFT", "RIGHT", "0")], ("LPUSH", "k", "a")),
    "move chain": ([("BLMOVE", "k", "t", "RIGHT", "LEFT", "0"), ("BRPOPLPUSH", "t", "u", "0"),
                    ("BLPOP", "u", "0")], ("LPUSH", "k", "a")),
    "move to itself": ([("BLMOVE", "k", "k", "LEFT", "RIGHT", "0")], ("LPUSH", "k", "a", "b")),
    "lowest": ([("BZPOPMIN", "k", "0")], ("ZADD", "k", "1", "a")),
    "highest of several": ([("BZPOPMAX", "k", "0"), ("BZMPOP", "0", "1", "k", "MIN", "COUNT", "9")],
                           ("ZADD", "k", "1", "a", "2", "b", "3", "c")),
    "renamed": ([("BLPOP", "k", "0")], ("RENAME", "source", "k")),
}


def events_of(server, waiting, writing):
    control, listener = server.connect(), server.connect()
    waiters = [server.connect() for _ in waiting]
    try:
        control.ok("CONFIG", "SET", "notify-keyspace-events", "KEA")
        control.call("RPUSH", "source", "x")
        for waiter, words in zip(waiters, waiting):
            number = waiter.call("CLIENT", "ID")
            waiter.send(*words)
            eventually(lambda: b" flags=b" in control.call("CLIENT", "LIST", "ID", str(number)),
                       "it waits")
        listener.call("PSUBSCRIBE", "__key*@0__:*")
        control.call(*writing)
        replies = [waiter.read() for waiter in waiters]
        control.ok("SET", "end", "v")
        seen = []
        while not seen or seen[-1] != [b"__keyevent@0__:set", b"end"]:
            seen.append(listener.read()[2:])
        return replies, seen
    finally:
        for connection in waiters + [control, listener]:
            connection.close()


@pytest.mark.parametrize("waiting, writing", CASES.values(), ids=list(CASES))
def test_same_events(server, oracle, waiting, writing):
    assert events_of(server, waiting, writing) == events_of(oracle, waiting, writing)
