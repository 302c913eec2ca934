"""Libraries of functions, to our server and to the oracle."""

import pytest

from lib.differential import Pair
from lib.differences import DIFFERENCES

pytestmark = pytest.mark.any_threads

HEAD = "#!lua name=a\n"
LIBRARY = HEAD + """
local n = 0
redis.register_function("count", function(k, v) n = n + 1 return n end)
redis.register_function("echo", function(k, v) return {k, v} end)
redis.register_function("incr", function(k, v) return redis.call("incr", k[1]) end)
redis.register_function("again", function(k, v) redis.register_function("d", function() end) end)
redis.register_function("keys", function(k, v) return KEYS end)
redis.register_function("global", function(k, v) x = 1 end)
redis.register_function("fail", function(k, v) error("x") end)
redis.register_function("fail2", function(k, v) error({err = "x y"}) end)
redis.register_function("fail3", function(k, v) return {err = "x y"} end)
redis.register_function("nosuch", function(k, v) return redis.call("nosuch") end)
redis.register_function("lib", function(k, v) return string.upper("x") .. #cjson.encode({}) end)
redis.register_function{function_name = "ro", flags = {"no-writes", "allow-stale"}, description = "reads",
                        callback = function(k, v) return redis.call("get", k[1]) end}
redis.register_function{function_name = "ro2", flags = {"no-writes"},
                        callback = function(k, v) return redis.call("set", k[1], 1) end}
"""
OTHER = "#!lua name=b\nredis.register_function('other', function() return 'b' end)"
SAME = "#!lua name=b\nredis.register_function('ECHO', function() return 'b' end)"

LOADS = [
    "", "x", "#!lua", "#!lua name=a", "#!lua\nx", "#!lua name=\nx", "#!lua name=a-b\nx",
    "#!lua name=a name=b\nx", "#!lua name=a foo=b\nx", "#!js name=a\nx", '#!lua name="a b"\nx',
    HEAD, HEAD + "retur 1", HEAD + "return foo", HEAD + "x = 1", HEAD + "redis.foo = 1",
] + [HEAD + line for line in """
redis.call('get', 'a')
redis.setresp(3)
redis.log(2, 'a')
local x = error
local x = tonumber
local x = _G
local x = redis.sha1hex
local x = redis.LOG_DEBUG
redis.register_function()
redis.register_function('a')
redis.register_function('a', 'b')
redis.register_function('a', function() end)
redis.register_function(1, function() end)
redis.register_function('a b', function() end)
redis.register_function('', function() end)
redis.register_function({}, function() end)
redis.register_function(nil, function() end)
redis.register_function('a', function() end, 1)
redis.register_function{}
redis.register_function{function_name = 'x'}
redis.register_function{callback = function() end}
redis.register_function{function_name = 'x', callback = 1}
redis.register_function{function_name = {}, callback = function() end}
redis.register_function{function_name = 'x', callback = function() end, flags = 1}
redis.register_function{function_name = 'x', callback = function() end, flags = {1}}
redis.register_function{function_name = 'x', callback = function() end, flags = {'a'}}
redis.register_function{function_name = 'x', callback = function() end, flags = {}}
redis.register_function{function_name = 'x', callback = function() end, foo = 1}
redis.register_function{function_name = 'x', callback = function() end, [1] = 1}
redis.register_function{function_name = 'x', callback = function() end, description = {}}
""".strip().split("\n")]


def check(server, oracle, proto, *program):
    words = [[w if isinstance(w, bytes) else w.encode() for w in line] for line in
             (("FUNCTION", "FLUSH"),) + program + (("FUNCTION", "FLUSH"),)]
    Pair(server, oracle, proto, DIFFERENCES, [("SET", "n", "1")]).check(words, 0, pipelined=False)


@pytest.mark.parametrize("code", LOADS)
def test_load(server, oracle, code):
    check(server, oracle, 2, ("FUNCTION", "LOAD", code), ("FUNCTION", "LIST"),
          ("FUNCTION", "LOAD", "REPLACE", code), ("FUNCTION", "LIST", "WITHCODE"))


@pytest.mark.parametrize("proto", [2, 3])
def test_calls(server, oracle, proto):
    calls = [("FCALL", name, "0") for name in
             ["count", "COUNT", "echo", "again", "keys", "global", "fail", "fail2", "fail3", "nosuch",
              "lib", "missing", ""]]
    calls += [("FCALL", "echo", *rest) for rest in
              [("1", "a", "b", "c"), ("a",), ("-1",), ("2", "a"), ("1", "a"), ("9223372036854775807",)]]
    calls += [("FCALL_RO", name, "1", "n") for name in ["ro", "ro2", "echo", "missing"]]
    calls += [("FCALL", name, "1", "n") for name in ["ro", "ro2", "incr"]]
    check(server, oracle, proto, ("FUNCTION", "LOAD", LIBRARY), *calls,
          ("FUNCTION", "STATS"))


@pytest.mark.parametrize("proto", [2, 3])
def test_the_collection(server, oracle, proto):
    check(server, oracle, proto, ("FUNCTION", "LOAD", LIBRARY), ("FUNCTION", "LOAD", LIBRARY),
          ("FUNCTION", "LOAD", SAME), ("FUNCTION", "LOAD", OTHER), ("FUNCTION", "STATS"),
          ("FUNCTION", "LOAD", "REPLACE", SAME), ("FCALL", "other", "0"),
          ("FUNCTION", "LIST", "LIBRARYNAME", "b", "WITHCODE"), ("FUNCTION", "LIST", "LIBRARYNAME"),
          ("FUNCTION", "LIST", "foo"), ("FUNCTION", "LIST", "WITHCODE", "WITHCODE"),
          ("FUNCTION", "LIST", "LIBRARYNAME", "a", "LIBRARYNAME", "b"),
          ("FUNCTION", "LIST", "LIBRARYNAME", "nosuch*"),
          ("FUNCTION", "DELETE", "nosuch"), ("FUNCTION", "DELETE", "A"), ("FUNCTION", "DELETE", "a"),
          ("FCALL", "echo", "0"), ("FUNCTION", "LOAD", "REPLACE", SAME), ("FCALL", "echo", "0"),
          ("FCALL", "other", "0"), ("FUNCTION", "LOAD", "x", "y"), ("FUNCTION", "LOAD", "replace"),
          ("FUNCTION", "FLUSH", "x"), ("FUNCTION", "FLUSH", "SYNC", "x"), ("FUNCTION", "FLUSH", "ASYNC"),
          ("FUNCTION", "KILL"), ("FUNCTION", "STATS"), ("FUNCTION", "STATS", "x"),
          ("FUNCTION", "RESTORE", "abc"), ("FUNCTION", "RESTORE", "abc", "x"), ("FUNCTION", "DUMP"),
          ("FUNCTION", "NOSUCH"), ("FUNCTION",))


def test_payloads_of_each_other(server, oracle):
    with server.connect() as ours, oracle.connect() as theirs:
        for source, target in ((ours, theirs), (theirs, ours)):
            for c in (source, target):
                c.call("FUNCTION", "FLUSH")
            source.call("FUNCTION", "LOAD", LIBRARY)
            source.call("FUNCTION", "LOAD", OTHER)
            payload = source.call("FUNCTION", "DUMP")
            target.ok("FUNCTION", "RESTORE", payload)
            assert target.call("FCALL", "other", "0") == b"b"
            assert target.error("FUNCTION", "RESTORE", payload) in [
                b"ERR Library %s already exists" % name for name in (b"a", b"b")]
            target.ok("FUNCTION", "RESTORE", payload, "REPLACE")
            target.ok("FUNCTION", "RESTORE", payload, "FLUSH")
            assert target.call("FUNCTION", "STATS")[3][1] == [b"libraries_count", 2, b"functions_count", 14]
        for c in (ours, theirs):
            c.call("FUNCTION", "FLUSH")


def test_a_name_that_is_taken_is_seen_before_the_code_is_run(server, oracle):
    """Which of two faults is told."""
    with server.connect() as ours, oracle.connect() as theirs:
        for c in (ours, theirs):
            c.call("FUNCTION", "FLUSH")
            c.call("FUNCTION", "LOAD", "#!lua name=taken\nredis.register_function('f', function() end)")
            for code in ("x y", "error('never')", "while true do end", "return 1"):
                assert c.error("FUNCTION", "LOAD", "#!lua name=taken\n" + code) == \
                    b"ERR Library 'taken' already exists", code
            assert b"already exists" not in c.error("FUNCTION", "LOAD", "REPLACE",
                                                    "#!lua name=taken\nx y")
            assert c.call("FCALL", "f", "0") is None
            c.call("FUNCTION", "FLUSH")
