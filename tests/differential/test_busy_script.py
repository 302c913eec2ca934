"""What clients may do beside a script that takes long, to our server and to the oracle: every command that is flagged
allow_busy is run, in all its forms, before and amid a transaction, and everything else is refused."""

import pytest

from lib.bounds import eventually
from lib.differential import rule_for, Reply
from lib.resp import Error, wait_for

pytestmark = pytest.mark.one_thread("a busy script serves the others from its own thread")

# Before the script; beside it; after it. @other: sent by another client.
PROGRAMS = {
    "watch": ([], ["WATCH k", "WATCH a b", "WATCH", "UNWATCH", "UNWATCH x"], ["MULTI", "EXEC"]),
    "watched beside": ([], ["WATCH k"], ["@SET k v", "MULTI", "PING", "EXEC", "MULTI", "PING", "EXEC"]),
    "watched beside, not changed": ([], ["WATCH k"], ["@SET l v", "MULTI", "PING", "EXEC"]),
    "watched before": (["WATCH k"], ["UNWATCH"], ["@SET k v", "MULTI", "PING", "EXEC"]),
    "watched, discard": (["WATCH k", "MULTI"], ["DISCARD", "DISCARD"], ["@SET k v", "MULTI", "PING", "EXEC"]),
    "watched, reset": (["WATCH k", "MULTI"], ["RESET"], ["@SET k v", "MULTI", "PING", "EXEC"]),
    "watched, refused": (["WATCH k", "MULTI", "PING"], ["EXEC", "EXEC"], ["@SET k v", "MULTI", "PING", "EXEC"]),
    "watch in multi": (["WATCH k", "MULTI"], ["WATCH x", "DISCARD"], ["@SET k v", "@SET x v", "MULTI", "EXEC"]),
    "multi": ([], ["MULTI", "MULTI", "GET x", "DISCARD", "MULTI", "WATCH x", "UNWATCH", "DISCARD", "MULTI x"], []),
    "queued": ([], ["MULTI", "AUTH x", "UNWATCH", "SCRIPT KILL", "EXEC"], ["PING"]),
    "hello": ([], ["HELLO 4", "HELLO x", "HELLO 2 AUTH nosuch x", "HELLO 2 SETNAME"], []),
    "auth": ([], ["AUTH x", "AUTH default x", "AUTH nosuch x", "AUTH", "PING"], []),
    "reset": ([], ["RESET", "RESET x"], []),
    "quit": ([], ["QUIT"], []),
    "replconf": ([], ["REPLCONF", "REPLCONF x", "REPLCONF x y"], []),
    "replconf words": ([], ["REPLCONF listening-port 1", "REPLCONF capa eof capa psync2", "REPLCONF ip-address a"], []),
    "function": ([], ["FUNCTION STATS", "FUNCTION KILL", "FUNCTION LIST", "FUNCTION HELP", "FUNCTION DUMP"], []),
    "script": ([], ["SCRIPT EXISTS x", "SCRIPT LOAD x", "SCRIPT FLUSH", "SCRIPT HELP", "SCRIPT KILL x"], []),
    "shutdown": ([], ["SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN ABORT", "SHUTDOWN NOW", "SHUTDOWN FORCE",
                      "SHUTDOWN NOSAVE SAVE", "SHUTDOWN x"], ["PING"]),
    "refused": ([], ["PING", "ECHO x", "SELECT 1", "CLIENT ID", "TIME", "INFO", "COMMAND COUNT", "SUBSCRIBE c",
                     "PUBLISH c x", "GET", "GET x y", "NOSUCH", "PSYNC ? -1", "MONITOR", "EVAL x 0", "CONFIG GET x",
                     "CLIENT NOSUCH", "EXEC", "READONLY", "KEYS *", "SAVE", "FLUSHALL", "ROLE", "WAIT 0 0"], []),
}


def run(client, line, replies):
    words = [word.encode() for word in line.split()]
    client.send(*words)
    replies.append((words, Reply(*client.read_reply())))


def history(server, program):
    """The replies of one server."""
    before, beside, after = program
    replies = []
    with server.connect() as client, server.connect() as other, server.connect() as script, \
            server.connect() as killer:
        for c in (client, other):
            c.ok("FLUSHALL")
        for line in before:
            run(client, line, replies)
        script.send("EVAL", "while true do end", "0")
        eventually(lambda: isinstance(killer.call("GET", "k"), Error), "the script takes long")
        try:
            for line in beside:
                run(client, line, replies)
        finally:
            assert killer.call("SCRIPT", "KILL") == b"OK" or b"SCRIPT KILL" in beside
            script.read()
        for line in after:
            run(other if line[0] == "@" else client, line.lstrip("@"), replies)
    return replies


@pytest.mark.parametrize("name", PROGRAMS)
def test_beside_a_script(server, oracle, name):
    for s in (server, oracle):
        with s.connect() as c:
            c.ok("CONFIG", "SET", "busy-reply-threshold", "10")
    try:
        ours, theirs = (history(s, PROGRAMS[name]) for s in (server, oracle))
    finally:
        with oracle.connect() as c:
            c.ok("CONFIG", "SET", "busy-reply-threshold", "5000")
    assert len(ours) == len(theirs)
    for (words, a), (_, b) in zip(ours, theirs):
        assert rule_for(words)[1](a, b, words), "%s: ours %r, oracle %r" % (b" ".join(words), a, b)


def test_each_command_that_may_run_has_been(client):
    """By the table of commands."""
    sent = {" ".join(line.split()[:n]).lower() for _, beside, _ in PROGRAMS.values() for line in beside for n in (1, 2)}

    def missing(commands, prefix=""):
        for command in commands:
            name = command[0].decode().split("|")[-1]
            if b"allow_busy" in command[2] and prefix + name not in sent:
                yield prefix + name
            yield from missing(command[9] or [], name + " ")
    assert not list(missing(client.call("COMMAND")))



def test_a_watch_sees_what_the_script_writes_afterwards(server, connect):
    """And not what it wrote before."""
    with server.connect() as c:
        c.ok("CONFIG", "SET", "busy-reply-threshold", "10")
    watchers = {key: connect() for key in ("before", "after", "never")}
    script, other = connect(), connect()

    def is_busy():
        return isinstance(other.call("GET", "k"), Error)

    got = {}
    for seconds in (0.3, 2, 10):  # until they have come in time
        script.send("EVAL", "redis.call('set', 'before', 1) local begin = redis.call('time') repeat local now = redis.call("
                    "'time') until now[1] - begin[1] + (now[2] - begin[2]) / 1e6 > tonumber(ARGV[1]) "
                    "redis.call('set', 'after', 1)", "0", seconds)
        eventually(lambda: is_busy() or wait_for(script.sock, 0)[0], "the script takes long")
        for key, watcher in watchers.items():
            watcher.ok("WATCH", key)
        in_time = is_busy()
        assert script.read() is None
        for key, watcher in watchers.items():
            watcher.ok("MULTI")
            watcher.call("PING")
            got[key] = watcher.call("EXEC")
        if in_time:
            break
    assert got == {"before": [b"PONG"], "after": None, "never": [b"PONG"]}
