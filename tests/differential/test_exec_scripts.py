"""Scripts that must not run now, in a transaction: what they say of themselves (shebang, flags of a
function) decides when they are queued, and once more when EXEC comes, as for any other command."""

import pytest

from lib.bounds import eventually

LIBRARY = """#!lua name=l
redis.register_function('writes', function() return 1 end)
redis.register_function{function_name='reads', callback=function() return 2 end,
                        flags={'no-writes'}}
redis.register_function{function_name='bears', callback=function() return 3 end,
                        flags={'no-writes', 'allow-stale', 'allow-oom'}}"""
FLAGS = ["", "no-writes", "allow-stale", "allow-oom", "no-writes,allow-stale",
         "allow-oom,allow-stale", "no-writes,allow-oom,allow-stale"]
BODIES = ["return 1"] + [("#!lua flags=%s\nreturn 1" % f if f else "#!lua\nreturn 1")
                         for f in FLAGS]
ODD = ["#!lua flags=none\nreturn 1", "#!ruby\nreturn 1", "#!lua key=1\nreturn 1", "#!lua"]

# Options that shut a gate, each on a server that is empty and of its own.
SHUT = {
    "replica": [["REPLICAOF", "127.0.0.1", "1"]],
    "stale": [["REPLICAOF", "127.0.0.1", "1"],
              ["CONFIG", "SET", "replica-serve-stale-data", "no"]],
    "memory": [["CONFIG", "SET", "maxmemory", "1"]],
    "few replicas": [["CONFIG", "SET", "min-replicas-to-write", "1"]],
}
OPEN = [["CONFIG", "SET", "replica-serve-stale-data", "yes"], ["REPLICAOF", "NO", "ONE"],
        ["CONFIG", "SET", "maxmemory", "0"], ["CONFIG", "SET", "min-replicas-to-write", "0"]]


def calls(client):
    """Calls of scripts, in the cache or not, and of functions."""
    for number, body in enumerate(BODIES):
        yield ["EVAL", body, "0"]
        yield ["EVAL_RO", body, "0"]
        # Half of them are known by their SHA1 only if EVAL has run them.
        if number % 2:
            yield ["EVALSHA", client.call("SCRIPT", "LOAD", body), "0"]
    for body in ODD:
        yield ["EVAL", body, "0"]
    for name in ("writes", "reads", "bears", "none"):
        yield ["FCALL", name, "0"]
        yield ["FCALL_RO", name, "0"]
    yield ["EVALSHA", "0" * 40, "0"]
    yield ["EVALSHA", "short", "0"]


def shut(client, steps):
    for step in steps:
        client.ok(*step)


def both(sides, *words):
    ours, oracle = (client.call(*words) for client in sides)
    assert ours == oracle, words
    return ours


@pytest.fixture
def servers(make_server, make_oracle):
    """Ours and the oracle, of this test alone."""
    found = [make_server(), make_oracle()]
    for server in found:
        with server.connect() as client:
            client.call("FUNCTION", "LOAD", LIBRARY)
    return found


@pytest.fixture
def sides(servers):
    clients = [server.connect() for server in servers]
    yield clients
    for client in clients:
        client.close()


@pytest.mark.parametrize("why", SHUT)
def test_queued_while_it_is_shut(sides, why):
    programs = [list(calls(client)) for client in sides][0]
    for client in sides:
        shut(client, SHUT[why])
    refused = 0
    for words in programs:
        both(sides, *words)
        both(sides, "MULTI")
        refused += both(sides, *words) != b"QUEUED"
        both(sides, "PING")
        both(sides, "EXEC")
    assert refused


@pytest.mark.parametrize("why", SHUT)
def test_shut_before_exec(servers, sides, why):
    programs = [list(calls(client)) for client in sides][0]
    discarded = 0
    for words in programs:
        both(sides, "MULTI")
        both(sides, *words)
        both(sides, "PING")
        for server in servers:
            with server.connect() as other:
                shut(other, SHUT[why])
        discarded += not isinstance(both(sides, "EXEC"), list)
        for server in servers:
            with server.connect() as other:
                shut(other, OPEN)
    assert discarded


def test_queued_beside_a_script_that_takes_long(servers, sides):
    others = [server.connect() for server in servers]
    for other, client in zip(others, sides):
        client.ok("CONFIG", "SET", "busy-reply-threshold", "10")
        client.ok("MULTI")
        other.send("EVAL", "while true do end", "0")
        eventually(lambda c=client: c.call("PING").startswith(b"BUSY"), "the script takes long")
    for words in (["EVAL", "#!lua\nreturn 1", "0"], ["FCALL", "reads", "0"], ["SCRIPT", "KILL"],
                  ["EXEC"]):
        both(sides, *words)
    for server, other in zip(servers, others):
        with server.connect() as killer:
            killer.ok("SCRIPT", "KILL")
        assert b"killed by user" in other.read()
        other.close()
    both(sides, "PING")
