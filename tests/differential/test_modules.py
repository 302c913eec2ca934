"""The very same module in redis-server 7.0.15 and here: tests/modules/example.c, whose commands use the
interface part by part. What is intended to differ stands below, with its reason."""

import pytest

from lib.modules import path_of
from lib.resp import Error

KINDS = ("integer simple string empty verbatim markdown null true double long-double big-number error "
         "array map set nested null-array empty-array other").split()
TEXTS = ("", "abc", "12", "-3", "1.5", "1-2", "5", "18446744073709551615", "inf", "+", "-", "nan",
         "1e400", " 1", "0x10", b"a\0b")
FIXTURE = ("SET k v", "RPUSH l a b", "HSET h f v", "SADD s m", "ZADD z 1.5 m", "XADD x 1-1 f v", "SET n 123")
CALLED = ("GET k", "GET missing", "LRANGE l 0 -1", "HGETALL h", "SMEMBERS s", "ZRANGE z 0 -1 WITHSCORES",
          "INCR k", "XRANGE x - +", "PING", "NOSUCH a b", "GET", "INCR n", "EVAL return{1,{2,{ok='x'}}} 0",
          "CONFIG GET maxmemory", "CONFIG SET maxmemory 0", "CONFIG NOSUCH", "OBJECT ENCODING n",
          "LRANGE l 5 9", "ZSCORE z m", "SELECT 3", "DBSIZE", "EVAL return{err='E'x'} 0")
COMMANDS = ("ex.reply", "ex.set", "ex.get", "ex.pairs", "ex.documented", "ex.log", "ex.tell", "ex.keep",
            "EX.SET", "ex.box|get", "ex.box|put")


@pytest.fixture
def pair(make_server, make_oracle):
    options = {"loadmodule": [path_of("example"), "one", "two words"], "enable-module-command": "yes"}
    return make_server(options), make_oracle(options)


@pytest.fixture
def both(pair, connect):
    """both(word, ...): the reply of both servers, which is the same."""
    clients = [connect(to=server) for server in pair]

    def call(*words):
        replies = [plain(client.call(*words)) for client in clients]
        assert replies[0] == replies[1], words
        return replies[0]

    call.clients = clients
    for words in FIXTURE:
        call(*words.split())
    return call


def plain(reply):
    """Sets of flags and the like have no order."""
    if isinstance(reply, (set, frozenset)):
        return sorted(map(repr, reply))
    if isinstance(reply, dict):
        return {repr(plain(key)): plain(value) for key, value in reply.items()}
    return [plain(part) for part in reply] if isinstance(reply, list) else reply


@pytest.mark.parametrize("proto", (2, 3))
def test_replies(both, proto):
    for client in both.clients:
        client.hello(proto)
    for kind in KINDS:
        both("EX.REPLY", kind)
    both("EX.REPLY")
    both("EX.REPLY", "a", "b")


def test_strings(both):
    for text in TEXTS:
        both("EX.STRINGS", text)
    for text in ("a", "b" * 100000, "c"):
        both("EX.KEEP", text)
    both("EX.PARTS", "q" * 50000)


def test_calls(both):
    for flags in "- 3 E 3E 0 ! !A !R S SE W WE M C CE".split():
        both("FLUSHALL")
        for words in FIXTURE:
            both(*words.split())
        for words in CALLED:
            for how in ("describe", "proto") if "3" in flags else ("forward", "describe", "proto"):
                both("EX.CALL", how, flags, *words.split())
        both("GET", "n")
    both("EX.CALL", "forward", "x", "PING")


def test_keys(both):
    both("EX.SET", "e", "value")
    both("EX.GET", "e")
    both("EX.SET", "e", "77")
    both("EX.GET", "e")
    both("INCR", "e")
    both("EX.GET", "l")
    both("EX.SET", "l", "no list any more")
    for length in (5, 3000, 100000, 2, 0):
        both("EX.FILL", "f", length, "x")
        both("EX.GET", "f")
        both("STRLEN", "f")
        both("EXISTS", "f")
    both("EX.FILL", "h", 3, "a")
    both("EX.FILL", "n", 4, "a")
    both("GET", "n")
    for key in "k l h s z x none".split():
        both("EX.KEY", key)
    both("EX.EXPIRE", "none", 1)
    both("EX.EXPIRE", "k", 100000)
    both("EX.EXPIRE", "k", -1)
    both("TTL", "k")
    both("EX.EXPIRE", "k", -2)
    both("EX.DEL", "k")
    both("EX.DEL", "k")
    both("EX.TELL", 3)
    both("GET", "ex:told")
    for db in (2, 99, 0):
        both("EX.SELECT", db)
        both("EX.CONTEXT")


def test_where_keys_are(both):
    for words in ("EX.PAIRS 2 a b c", "EX.PAIRS 0", "EX.SET a b", "EX.DOCUMENTED a b FROM 2 x y", "EX.BOX get k",
                  "EX.REPLY k", "EX.PAIRS x"):
        both("COMMAND", "GETKEYS", *words.split())
        both("COMMAND", "GETKEYSANDFLAGS", *words.split())
    for words in ("SET k v", "MSET k v k2 v", "PING", "NOSUCH", "SET", "EX.PAIRS 1 k", "EVAL x 1 k"):
        both("EX.KEYSOF", *words.split())


def test_what_commands_are(both):
    for name in COMMANDS:
        info = [client.call("COMMAND", "INFO", name) for client in both.clients]
        for one in info:
            one[0][2], one[0][6] = sorted(one[0][2]), sorted(one[0][6])
        assert info[0] == info[1]
    assert both("EX.BOX", "get", "k") == [b"EX.BOX", b"get", b"k"]
    both("EX.BOX", "PUT", "k", "x")
    both("EX.BOX", "nope")
    both("EX.BOX")
    both("ex.box|get", "k")
    both("EX.DOCUMENTED", "a")
    both("EX.DOCUMENTED", "a", "b")
    both("MODULE", "LIST")
    ours, theirs = (set(c.call("COMMAND", "LIST", "FILTERBY", "MODULE", "example")) for c in both.clients)
    assert ours == theirs and b"ex.set" in ours and b"EX.Box|get" in ours


def test_docs(both):
    """Redis 7.0 knows no display_text, which 7.2 shows."""
    for name in COMMANDS:
        ours, theirs = (client.call("COMMAND", "DOCS", name) for client in both.clients)
        assert without_display_text(ours) == theirs


def without_display_text(reply):
    if not isinstance(reply, list):
        return reply
    parts, kept = iter(reply), []
    for part in parts:
        if part == b"display_text":
            next(parts)
        else:
            kept.append(without_display_text(part))
    return kept


def test_transactions_and_scripts(both):
    both("MULTI")
    both("EX.SET", "m", "1")
    both("EX.GET", "m")
    both("EX.CALL", "forward", "!", "INCR", "m")
    both("EX.REPLY", "error")
    both("EXEC")
    both("EVAL", "return redis.call('EX.SET', 'm', '2')", 0)
    both("EVAL", "return {redis.call('EX.REPLY', 'map'), redis.call('EX.REPLY', 'null')}", 0)
    both("EVAL", "redis.setresp(3) return redis.call('EX.REPLY', 'nested')", 0)
    both("EVAL", "return redis.pcall('EX.REPLY', 'error').err", 0)
    for client in both.clients:
        assert isinstance(client.call("EVAL", "return redis.call('EX.TELL', '2')", 0), Error)


def test_rights(both):
    """(The words of a denial are those of 7.2, which name the user.)"""
    both("ACL", "SETUSER", "u", "on", "nopass", "~k*", "+@read", "+ex.set", "+ex.pairs", "+ex.box|get")
    for words in ("ex.get k", "ex.set k v", "ex.set x v", "ex.del k", "ex.box get k", "ex.box put k", "ex.pairs 1 z",
                  "ex.pairs 1 k"):
        replies = [c.call("ACL", "DRYRUN", "u", *words.split()) for c in both.clients]
        assert (replies[0] == b"OK") == (replies[1] == b"OK"), words
    both("ACL", "SETUSER", "u", "+ex.call", "+get")
    both("AUTH", "u", "x")
    both("EX.CALL", "forward", "C", "GET", "k")
    both("EX.CALL", "forward", "C", "GET", "z")
    both("EX.CALL", "forward", "C", "SET", "k", "v")
    both("EX.CALL", "forward", "-", "SET", "k", "v")
    both("AUTH", "default", "x")


def test_unloading(both):
    both("MODULE", "UNLOAD", "nosuch")
    both("MODULE", "UNLOAD", "example")
    both("EX.REPLY", "map")
    both("MODULE", "LIST")
    both("COMMAND", "INFO", "ex.reply")
    for words in ((path_of("example"), "fail"), ("/nonexistent.so",), (__file__,)):
        for client in both.clients:
            assert client.error("MODULE", "LOAD", *words).startswith(b"ERR Error loading the extension")
    both("EX.REPLY", "map")
    both("MODULE", "LOADEX", path_of("example"), "ARGS", "x", "y")
    both("MODULE", "LIST")
    both("EX.REPLY", "map")


def test_dictionaries(make_server, make_oracle, connect):
    options = {"loadmodule": path_of("dicts"), "enable-module-command": "yes"}
    ours, theirs = connect(to=make_server(options)), connect(to=make_oracle(options))

    def both(*words):
        reply = ours.call(*words)
        assert reply == theirs.call(*words), words

    keys = ("", "a", "ab", "abc", "b", "ba", "foo", "foobar", "z" * 300, b"a\0b", b"\xff")
    for number, key in enumerate(keys):
        both("DICT.DO", "get", key, 0)
        both("DICT.DO", "set", key, number)
        both("DICT.DO", "set", key, 99)
        both("DICT.DO", "replace", key, number * 2)
    both("DICT.DO", "replace", "new", 5)
    for operator in ("^", "$", "<", "<=", "==", ">=", ">"):
        for key in (*keys, "aa", "foob", "zz"):
            for direction in ("next", "prev"):
                both("DICT.WALK", operator, key, direction, 5, "<=" if direction == "next" else ">", "abc")
    for key in ("ab", "none", "", "foo"):
        both("DICT.DO", "del", key, 0)
        both("DICT.DO", "get", key, 0)
        both("DICT.WALK", "^", "", "next", 20, "==", "b")
    ours.ok("MODULE", "UNLOAD", "dicts")
