"""One connection kills clients, changes users and sets options, in a loop, while eight others run
everything: what ThreadSanitizer is to look at. Every reply is well formed, and nobody dies."""

import pytest

from integration.test_everything_at_once import (collections, comings_and_goings, data,
                                                 listening, run_all)
from lib.bounds import eventually
from lib.resp import Error
from lib.seeds import seeds
from lib.server import is_redis, parse_info, server_path

pytestmark = pytest.mark.skipif(is_redis(server_path()), reason="options and types of ours")

USERS = ["u0", "u1", "u2"]
RULES = ["on", "off", "nopass", ">p", "~*", "~k1*", "%R~k*", "resetkeys", "allkeys", "+@all",
         "-@dangerous", "+@read", "-@write", "&*", "resetchannels", "(+get ~k*)", "clearselectors"]
# What would take the test's own connections away, or leave files.
LEFT_OUT = {b"port", b"bind", b"dir", b"dbfilename", b"appendonly", b"save", b"requirepass",
            b"maxclients", b"unixsocket", b"logfile", b"maxmemory", b"maxmemory-clients",
            b"busy-reply-threshold", b"lua-time-limit", b"min-replicas-to-write",
            b"min-slaves-to-write", b"replicaof", b"slaveof"}
LIBRARY = """#!lua name=%s
redis.register_function('f_%s', function(k, a) return redis.call('INCR', k[1]) end)"""


def scripts(worker, client):
    """Scripts, functions, jobs and waits, under a user who comes and goes."""
    pick = worker.random.choice
    user = pick(USERS + ["default"])
    name, key = pick("abc"), "s%d" % worker.random.randrange(9)
    client.pipeline([["AUTH", user, pick(["", "p"])]] + [pick([
        ["EVAL", "return redis.call('INCRBY', KEYS[1], ARGV[1])", "1", key, "2"],
        ["EVAL", "local t = {} for i = 1, 300 do t[i] = redis.call('SET', KEYS[1], i) end return t",
         "1", key],
        ["EVAL_RO", "return redis.pcall('GET', KEYS[1])", "1", key], ["SCRIPT", "FLUSH"],
        ["SCRIPT", "LOAD", "return %d" % worker.turns], ["SCRIPT", "KILL"],
        ["FUNCTION", "LOAD", "REPLACE", LIBRARY % (name, name)], ["FUNCTION", "LIST"],
        ["FUNCTION", "DELETE", name], ["FCALL", "f_" + name, "1", key], ["FUNCTION", "STATS"],
        ["KEYDB.CRON", "j" + name, "repeat", pick(["1", "5"]), "return redis.call('INCR', 'n')"],
        ["KEYDB.CRON", "j" + name, "single", "1", "return redis.call('SET', 'm', 1)"],
        ["DEL", "j" + name, key], ["RENAME", "ja", "jb"], ["COPY", "ja", "jb", "REPLACE"],
        ["ACL", "WHOAMI"], ["ACL", "LOG"], ["ACL", "DRYRUN", user, "get", key],
        ["BLPOP", "q" + name, "0.01"], ["RPUSH", "q" + name, "e"], ["DUMP", "j" + name],
        ["CLIENT", "TRACKING", pick(["on", "off"])], ["GET", key], ["WAIT", "0", "1"],
    ]) for _ in range(worker.random.choice([1, 8, 30]))])


def administration(worker, client):
    """Its connection is the default user's, whose rights nobody changes."""
    pick = worker.random.choice
    if not getattr(worker, "options", None):
        flat = client.call("CONFIG", "GET", "*")
        worker.options = [(n, v) for n, v in zip(flat[::2], flat[1::2]) if n not in LEFT_OUT]
    name, value = pick(worker.options)
    command = pick([
        ["CONFIG", "SET", name, value], ["CONFIG", "SET", name, value], ["CONFIG", "GET", "*"],
        ["CONFIG", "SET", "hz", pick(["10", "500"]), "maxmemory-policy",
         pick(["noeviction", "allkeys-lfu", "volatile-ttl"])],
        ["CONFIG", "SET", "notify-keyspace-events", pick(["", "KEA"]), "slowlog-log-slower-than",
         pick(["0", "-1"]), "latency-tracking", pick(["yes", "no"])],
        ["CONFIG", "SET", "lazyfree-lazy-user-del", pick(["yes", "no"]),
         "lazyfree-lazy-user-flush", pick(["yes", "no"]), "tracking-table-max-keys",
         pick(["10", "1000000"])],
        ["ACL", "SETUSER", pick(USERS)] + [pick(RULES) for _ in range(worker.random.randrange(5))],
        ["ACL", "SETUSER", pick(USERS), "reset", "on", "nopass", "~*", "&*", "+@all"],
        ["ACL", "DELUSER", pick(USERS)], ["ACL", "SAVE"], ["ACL", "LOAD"], ["ACL", "LIST"],
        ["ACL", "GETUSER", pick(USERS)],
        ["CLIENT", "KILL", "USER", pick(USERS)], ["CLIENT", "KILL", "TYPE", "pubsub"],
        ["CLIENT", "KILL", "MAXAGE", "1", "SKIPME", "yes"], ["CLIENT", "LIST"],
        ["CLIENT", "KILL", "ID", str(worker.random.randrange(1, 200)), "SKIPME", "yes"],
        ["CLIENT", "PAUSE", "1", "WRITE"], ["CLIENT", "NO-EVICT", "on"], ["INFO", "everything"],
    ])
    reply = client.call(*command)
    # Options that are fixed, rules that do not fit together and users who are gone are told of.
    assert not isinstance(reply, Error) or command[1] in ("SET", "SETUSER", "KILL"), \
        (command, reply)


@pytest.mark.parametrize("seed", seeds(1))
def test_administration_loop(make_server, seed):
    server = make_server({"unixsocket": "s.sock", "aclfile": "users.acl"}, files=["users.acl"],
                         start=False)
    with open(server.file("users.acl"), "w", encoding="utf-8") as file:
        file.write("user default on nopass ~* &* +@all\nuser u0 on nopass ~* &* +@all\n")
    server.start()
    run_all(server, seed, [administration, data, data, collections, scripts, scripts, scripts,
                           listening, comings_and_goings])
    with server.connect() as client:
        # What the others had sent before they went is run to its end.
        eventually(lambda: parse_info(client.call("INFO", "clients"))["connected_clients"] == "1",
                   "all others are gone")
        client.ok("FLUSHALL", "SYNC")
        eventually(lambda: client.call("DBSIZE") == 0, "no job makes anything any more")
