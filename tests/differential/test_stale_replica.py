"""A replica whose primary cannot be reached: which commands it serves and which it refuses, and with
what words, command by command beside redis-server's, with and without replica-serve-stale-data."""

import pytest

from lib.bounds import eventually
from lib.resp import Closed, Error
from lib.server import closed_port

pytestmark = pytest.mark.any_threads

# They end the connection, make it another one, wait, or leave the test's world; the others of one
# name run as they are.
LEFT_OUT = {b"shutdown", b"monitor", b"subscribe", b"psubscribe", b"ssubscribe", b"quit", b"reset",
            b"failover", b"psync", b"sync", b"debug", b"replicaof", b"slaveof", b"module", b"cluster",
            b"hello", b"wait", b"save", b"bgsave", b"bgrewriteaof", b"lolwut", b"config|rewrite",
            b"config|set", b"client|kill", b"client|pause", b"client|reply"}


def requests(client):
    """Every command of redis-server with as few arguments as it takes, and one more."""
    found = []
    for about in client.call("COMMAND"):
        for name, arity in [(about[0], about[1])] + [(sub[0], sub[1]) for sub in about[9]]:
            if name not in LEFT_OUT and about[0] not in LEFT_OUT:
                words = name.split(b"|")
                words += [b"1"] * (abs(arity) - len(words))
                found += [words, words + [b"1"]]
    return found


def outcomes(server, words_of_all):
    """Each on a connection of its own: nothing of one remains for the next."""
    found = {}
    for words in words_of_all:
        with server.connect() as client:
            try:
                reply = client.call(*words)
            except Closed:
                reply = Error(b"closed")
            found[b" ".join(words)] = bytes(reply) if isinstance(reply, Error) else b"a reply"
    return found


def concerns(text):
    return text.startswith((b"MASTERDOWN", b"READONLY"))


@pytest.mark.parametrize("stale", ["yes", "no"])
@pytest.mark.parametrize("read_only", ["yes", "no"])
def test_which_commands_are_served(make_server, make_oracle, stale, read_only):
    with closed_port() as port:
        options = {"replicaof": ["127.0.0.1", str(port)], "replica-serve-stale-data": stale,
                   "replica-read-only": read_only}
        ours, theirs = make_server(options), make_oracle(options)
        with theirs.connect() as client:
            asked = requests(client)
        expected, got = outcomes(theirs, asked), outcomes(ours, asked)
        assert (sum(map(concerns, expected.values())) > 100) == ("yes" != stale or read_only == "yes")
        # Commands that take more in KeyDB or Redis 7.2 than in 7.0: tests/differential/test_arity.py.
        different = {words: (expected[words], got[words]) for words in expected
                     if (concerns(expected[words]) or concerns(got[words]))
                     and expected[words] != got[words]
                     and b"wrong number of arguments" not in expected[words]}
        assert not different


SCRIPTS = {
    "plain": "return 1",
    "reads": "return redis.call('GET', 'a')",
    "writes": "return redis.call('SET', 'a', '1')",
    "flagged": "#!lua flags=allow-stale,no-writes\nreturn 1",
    "flagged reads": "#!lua flags=allow-stale,no-writes\nreturn redis.call('GET', 'a')",
    "flagged asks": "#!lua flags=allow-stale,no-writes\nreturn redis.call('PING')",
    "not flagged": "#!lua flags=no-writes\nreturn 1",
    "shebang": "#!lua\nreturn 1",
}
LIBRARY = """#!lua name=stale
redis.register_function{function_name='plain', callback=function() return 1 end}
redis.register_function{function_name='reads', flags={'no-writes', 'allow-stale'},
    callback=function() return redis.call('GET', 'a') end}
redis.register_function{function_name='asks', flags={'no-writes', 'allow-stale'},
    callback=function() return redis.call('PING') end}
redis.register_function{function_name='fine', flags={'no-writes', 'allow-stale'},
    callback=function() return 1 end}
redis.register_function{function_name='strict', flags={'no-writes'}, callback=function() return 1 end}
"""


def play(server, port):
    """What transactions, scripts and functions come to once the primary is gone."""
    said = []
    with server.connect() as c:
        assert c.call("FUNCTION", "LOAD", LIBRARY) == b"stale"
        c.ok("SET", "a", "1")
        c.ok("CONFIG", "SET", "replica-serve-stale-data", "no")
        c.ok("REPLICAOF", "127.0.0.1", port)
        for script in SCRIPTS.values():
            said += [c.call("EVAL", script, 0), c.call("EVAL_RO", script, 0)]
        for name in "plain", "reads", "asks", "fine", "strict":
            said += [c.call("FCALL", name, 0), c.call("FCALL_RO", name, 0)]
        said += [c.call(*words.split()) for words in (
            "MULTI", "GET a", "EXEC", "MULTI", "INFO server", "DISCARD", "WATCH a", "MULTI", "EXEC",
            "UNWATCH", "SELECT 1", "CONFIG GET timeout", "ROLE", "DBSIZE", "KEYS *", "PING",
            "PUBLISH x y", "FUNCTION LIST", "FUNCTION DELETE stale", "FUNCTION FLUSH",
            "SCRIPT LOAD x", "SCRIPT EXISTS a", "REPLICAOF NO ONE", "GET a")]
    # It tries again and again: which of the two ROLE tells is up to the moment.
    said = [[b"connect" if word == b"connecting" else word for word in r] if isinstance(r, list) else r for r in said]
    return [bytes(r) if isinstance(r, Error) else r for r in said]


def test_scripts_functions_and_transactions(make_server, make_oracle):
    with closed_port() as port:
        expected, got = play(make_oracle(), port), play(make_server(), port)
    assert got == expected


@pytest.mark.parametrize("options", [
    {"replica-announce-ip": "replica.example"},
    {"replica-announce-port": "1234"},
    {"replica-announce-ip": "10.1.2.3", "replica-announce-port": "65535"},
    {"slave-announce-ip": "old.example", "slave-announce-port": "77", "replica-priority": "7"},
    {"replica-announced": "no"},
], ids=lambda o: " ".join("%s=%s" % i for i in o.items()))
@pytest.mark.parametrize("primary_is_ours", [True, False])
def test_what_a_replica_announces(make_server, make_oracle, options, primary_is_ours):
    seen = []
    for make in make_server, make_oracle:
        primary = (make_server if primary_is_ours else make_oracle)({"repl-diskless-sync-delay": "0"})
        replica = make(dict(options, replicaof=["127.0.0.1", str(primary.port)]))
        eventually(lambda r=replica: r.info("replication")["master_link_status"] == "up", "link", 60)
        eventually(lambda p=primary: "state=online" in p.info("replication").get("slave0", ""),
                   "online", 60)
        about = primary.info("replication")["slave0"].split(",")
        own = replica.info("replication")
        with primary.connect() as c:
            role = c.call("ROLE")[2][0][:2]
        port = str(replica.port)
        seen.append([[w.replace(port, "PORT") for w in about if w.startswith(("ip=", "port=", "state="))],
                     [w.replace(port.encode(), b"PORT") for w in role],
                     own["slave_priority"], own["replica_announced"]])
    assert seen[0] == seen[1]
