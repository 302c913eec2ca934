"""Keys that modules keep open while the database changes (tests/modules/handles.c), which no redis-server allows; and
contexts that look after many things, beside one."""

import pytest

from lib.modules import path_of

STRING, LIST, NONE = 1, 2, 0  # as modules know types


@pytest.fixture
def with_handles(make_server):
    server = make_server({"loadmodule": [path_of("handles")]})
    with server.connect() as c:
        c.call("RPUSH", "l", *range(20))
        c.ok("SET", "s", "four")
    return server


# By the command that is called meanwhile: the key, what it was, and what it is then.
CHANGES = (
    ("SET k value", None, (STRING, 5)), ("DEL k", "four", (NONE, 0)), ("UNLINK k", "four", (NONE, 0)),
    ("APPEND k " + "x" * 100000, "four", (STRING, 100004)), ("SET k " + "x" * 1000, "four", (STRING, 1000)),
    ("COPY l k REPLACE", "four", (LIST, 20)), ("RENAME l k", "four", (LIST, 20)), ("RENAME k other", "four", (NONE, 0)),
    ("PEXPIRE k -1", "four", (NONE, 0)), ("EXPIRE k 100", "four", (STRING, 4)), ("MOVE k 1", "four", (NONE, 0)),
    ("SWAPDB 0 1", "four", (STRING, 9)), ("FLUSHDB", "four", (NONE, 0)), ("FLUSHALL ASYNC", "four", (NONE, 0)),
    ("MSET " + " ".join("new%d 1" % i for i in range(5000)), "four", (STRING, 4)), ("GET k", "four", (STRING, 4)),
    ("EVAL redis.call('DEL','k') 0", "four", (NONE, 0)), ("DEL s", "four", (STRING, 4)),
)


@pytest.mark.parametrize("words,before,after", CHANGES, ids=[words[:20] for words, _, _ in CHANGES])
def test_a_command_beside_handles(with_handles, connect, words, before, after):
    client = connect(to=with_handles)
    if before:
        client.ok("SET", "k", before)
    if words.startswith("SWAPDB"):
        client.ok("SELECT", 1)
        client.ok("SET", "k", "elsewhere")
        client.ok("SELECT", 0)
    seen = [[STRING, 4]] * 2 if before else [[NONE, 0]] * 2
    later = [list(after)] * 2 if before else [[NONE, 0], list(after)]  # there is no handle to read what was missing
    last = [[STRING, 1]] * 2 if before else [[NONE, 0], [STRING, 1]]
    assert client.call("H.BESIDE", "k", *words.split(" ")) == seen + later + last
    assert client.call("GET", "k") == b"k"


def test_a_handle_beyond_its_command(with_handles, connect):
    """Others change the key, from all threads, between the uses of a handle."""
    client, *others = (connect(to=with_handles) for _ in range(9))
    assert client.call("H.OPEN", "k") == [NONE, 0]
    for turn, other in enumerate(others):
        other.ok("SET", "k", "x" * turn)
        assert client.call("H.LOOK") == others[0].call("H.LOOK") == [STRING, turn]
        other.call("MSET", *[word for i in range(1000) for word in ("%d:%d" % (turn, i), "v")])
        assert others[turn - 1].call("H.LOOK") == [STRING, turn]
        other.call("DEL", "k")
        other.ok("SET", "s", "again")
        assert client.call("H.LOOK") == other.call("H.LOOK") == [NONE, 0]
        assert other.call("RPUSH", "k", 1, 2, 3) == 3
        assert client.call("H.LOOK") == [LIST, 3]
        other.call("LPUSH", "k", *["element" * 10] * 200)
        assert client.call("H.LOOK") == [LIST, 203]
        other.call("DEL", "k")
    client.ok("H.CLOSE")


@pytest.mark.parametrize("count", (1, 7, 8, 9, 16, 17, 60))
def test_many_things_of_a_context(make_server, make_oracle, count):
    replies = []
    for make in (make_server, make_oracle):
        with make({"loadmodule": [path_of("handles")]}).connect() as c:
            replies.append(c.call("H.MANY", count))
    assert replies[0] == replies[1]
