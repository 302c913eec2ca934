"""Scripts whose modules' commands need the world to stand: CONFIG SET, ACL SETUSER and the like by RM_Call, RdbLoad. Redis lets
them; here the script runs in the world from its start."""

import threading

import pytest

from lib.bounds import eventually
from lib.modules import in_threads, path_of, rewrites
from lib.resp import to_bytes

SET_LENGTH = ["EX.CALL", "forward", "E", "CONFIG", "SET", "slowlog-max-len"]
GIVEN = "return redis.call(unpack(ARGV))"
LIBRARY = "#!lua name=l\nredis.register_function('f', function(keys, args) return redis.call(unpack(args)) end)"
# The name is in no string of the text.
HIDDEN = "local words = {'EX.' .. 'CALL', 'forward', 'E', 'CONFIG', 'SET', 'slowlog-max-len', ARGV[1]} "


@pytest.fixture
def with_modules(make_server):
    def make(options=None, **more):
        lines = "".join("loadmodule %s\n" % path_of(name) for name in ("example", "types"))
        return make_server({"enable-module-command": "yes", "repl-diskless-sync-delay": "0", **(options or {})}, config=lines, **more)

    return make


def length(c):
    return c.call("CONFIG", "GET", "slowlog-max-len")[1]


def by_eval(c, *words):
    return c.call("EVAL", GIVEN, 0, *words)


def by_sha(c, *words):
    return c.call("EVALSHA", c.call("SCRIPT", "LOAD", GIVEN), 0, *words)


def by_function(c, *words):
    c.call("FUNCTION", "LOAD", "REPLACE", LIBRARY)
    return c.call("FCALL", "f", 0, *words)


def by_text(c, *words):
    return c.call("EVAL", "return redis.call(%s)" % ", ".join("'%s'" % to_bytes(word).decode() for word in words), 0)


def amid_others(c, *words):
    text = "redis.call('SET', KEYS[1], 'v') local r = redis.call(unpack(ARGV)) return {r, redis.call('APPEND', KEYS[1], 'w')}"
    replies = c.call("EVAL", text, 1, "k", *words)
    assert replies[1] == (1 if words[0] == "TY.RDBLOAD" else 2)
    return replies[0]


def in_exec(c, *words):
    c.ok("MULTI")
    c.call("SET", "k", "v")
    c.call("EVAL", GIVEN, 0, *words)
    c.call("APPEND", "k", "w")
    replies = c.call("EXEC")
    assert [replies[0], replies[2]] == [b"OK", 1 if words[0] == "TY.RDBLOAD" else 2]
    return replies[1]


WAYS = [by_eval, by_sha, by_function, by_text, amid_others, in_exec]


@pytest.mark.parametrize("way", WAYS)
def test_the_first_call_and_later_ones(with_modules, way):
    with with_modules().connect() as c:
        for number in (b"70", b"71", b"72"):
            assert way(c, *SET_LENGTH, number) == b"OK"
            assert length(c) == number
        assert way(c, "EX.CALL", "forward", "E", "ACL", "SETUSER", "someone", "on") == b"OK"
        assert b"someone" in c.call("ACL", "USERS")
        assert c.call("EVAL", "return redis.pcall(unpack(ARGV))", 0, *SET_LENGTH, "none").startswith(b"ERR")


@pytest.mark.parametrize("way", [by_eval, by_sha, by_text, amid_others, in_exec])
def test_a_load(with_modules, way):
    """Log and replica have what is there afterwards."""
    server = with_modules({"appendonly": "yes", "appendfsync": "always"}, files=("dump.rdb", "appendonlydir", "kept.rdb"))
    replica = with_modules({"replicaof": "127.0.0.1 %d" % server.port})
    with server.connect() as c, replica.connect() as r:
        c.ok("SET", "s", "v")
        c.ok("TY.RDBSAVE", "kept.rdb", "0")
        c.ok("SET", "s", "later")
        eventually(lambda: r.call("GET", "s") == b"later", "the replica has it")
        before = eventually(lambda: rewrites(c) + 1, "none runs") - 1
        assert way(c, "TY.RDBLOAD", "kept.rdb", "0") == b"OK"
        assert c.call("GET", "s") == b"v"
        c.ok("SET", "last", "v")
        seen = c.call("MGET", "s", "last", "k")
        eventually(lambda: r.call("MGET", "s", "last", "k") == seen, "the replica has the same")
        eventually(lambda: rewrites(c) > before, "the log begins anew")
        c.ok("SET", "behind", "v")
    replica.stop()
    server.kill()
    server.start()
    with server.connect() as c:
        assert c.call("MGET", "s", "last", "k", "behind") == seen + [b"v"]


def test_a_load_by_a_function_is_refused(with_modules):
    """Functions are a part of what is loaded. (redis-server 8.2.3 crashes.)"""
    server = with_modules(files=("dump.rdb", "kept.rdb"))
    with server.connect() as c:
        c.ok("TY.RDBSAVE", "kept.rdb", "0")
        c.ok("SET", "s", "v")
        for _ in range(2):
            assert b"not supported" in by_function(c, "TY.RDBLOAD", "kept.rdb", "0")
        assert c.call("GET", "s") == b"v" and "while a function runs" in server.output()


def test_scripts_do_not_change_amid_one(with_modules):
    with with_modules({"enable-debug-command": "yes"}).connect() as c:
        for words in (("SCRIPT", "FLUSH"), ("SCRIPT", "EXISTS", "0" * 40), ("SCRIPT", "LOAD", "return 1"), ("FUNCTION", "FLUSH"),
                      ("FUNCTION", "LOAD", LIBRARY), ("FUNCTION", "LIST"), ("EVAL", "return 1", "0"), ("DEBUG", "RELOAD")):
            for way in (by_eval, by_function):
                assert b"ERR a script runs" in way(c, "EX.CALL", "forward", "E", *words)


def test_one_that_has_only_read_begins_anew(with_modules):
    """Where nothing tells beforehand that it comes to such a call; it catches nothing of its end, and is one call."""
    text = HIDDEN + """
        local before = redis.call('GET', KEYS[1])
        local fine, r = pcall(function() return redis.call(unpack(words)) end)
        local co = coroutine.create(function() return redis.call(unpack(words)) end)
        local _, again = coroutine.resume(co)
        return {before, tostring(fine), r, again, redis.call('APPEND', KEYS[1], 'w')}"""
    with with_modules().connect() as c:
        for number in (b"70", b"71"):
            c.ok("CONFIG", "RESETSTAT")
            c.ok("SET", "k", "v")
            assert c.call("EVAL", text, 1, "k", number) == [b"v", b"true", b"OK", b"OK", 2]
            assert length(c) == number
            assert b"cmdstat_eval:calls=1," in c.call("INFO", "commandstats")
            assert b"errorstat" not in c.call("INFO", "errorstats")


def test_one_that_has_done_something_is_refused_once(with_modules):
    text = HIDDEN + "redis.call('INCR', KEYS[1]) local r = redis.pcall(unpack(words)) return {r, redis.call('INCR', KEYS[1])}"
    with with_modules().connect() as c:
        first = c.call("EVAL", text, 1, "n", "70")
        assert b"stops all threads" in first[0] and first[1] == 2
        for turn, number in enumerate((b"71", b"72")):
            assert c.call("EVAL", text, 1, "n", number) == [b"OK", 4 + 2 * turn]
            assert length(c) == number
        c.ok("MULTI")
        c.call("EVAL", text, 1, "n", "73")
        assert c.call("EXEC") == [[b"OK", 8]]


def test_waiters_wait_for_its_end(with_modules):
    text = """redis.call('RPUSH', KEYS[1], 'a') redis.call(unpack(ARGV))
        redis.call('RPUSH', KEYS[1], 'b') return redis.call('LRANGE', KEYS[1], 0, -1)"""
    server = with_modules()
    with server.connect() as c, server.connect() as waiter:
        for _ in range(2):
            waiter.send("BLPOP", "l", "0")
            eventually(lambda: b"blocked_clients:1" in c.call("INFO", "clients"), "it waits")
            assert c.call("EVAL", text, 1, "l", *SET_LENGTH, "70") == [b"a", b"b"]
            assert waiter.read() == [b"l", b"a"]
            c.call("DEL", "l")


def test_one_that_takes_long_can_be_killed(with_modules):
    """From any thread."""
    server = with_modules({"busy-reply-threshold": "50"}, files=("dump.rdb", "kept.rdb"))
    for command in ("TY.RDBSAVE", "TY.RDBLOAD", "TY.RDBLOAD"):
        with server.connect() as scripted:
            others = [server.connect() for _ in range(6)]
            scripted.send("EVAL", "redis.call(unpack(ARGV)) while true do end", 0, command, "kept.rdb", "0")
            for other in others:
                eventually(lambda: b"BUSY" in (other.call("GET", "k") or b""), "it takes long")
            others[-1].ok("SCRIPT", "KILL")
            assert b"killed by user" in scripted.read()
            for other in others:
                assert other.call("GET", "k") is None
                other.close()


def test_a_command_that_takes_long_is_told_of(make_server):
    """It is not tried yet, so the script runs in the world, until it yields for long; what others see is whole all the same."""
    server = make_server({"loadmodule": path_of("blocking"), "busy-reply-threshold": "20"})
    text = "redis.call('INCR', 'a') local r = redis.call('BL.SPIN') redis.call('INCR', 'b') return r"
    with server.connect() as c, server.connect() as other:
        for turn in (1, 2):
            c.send("EVAL", text, 0)
            eventually(lambda: b"BUSY" in str(other.call("GET", "a")).encode(), "it takes long")
            other.ok("BL.END")
            eventually(lambda: other.call("MGET", "a", "b") == [b"%d" % turn] * 2, "it is over")
            assert c.read() == b"over"


def test_a_transaction_with_a_command_that_takes_long(make_server):
    """The same of EXEC; what stands behind it in the queue runs, and is seen with it."""
    server = make_server({"loadmodule": path_of("blocking"), "busy-reply-threshold": "20"})
    with server.connect() as c, server.connect() as waiter:
        others = [server.connect() for _ in range(6)]
        for turn in (1, 2):
            waiter.send("BLPOP", "l", "0")
            eventually(lambda: b"blocked_clients:1" in others[0].call("INFO", "clients"), "it waits")
            c.ok("MULTI")
            for words in (("RPUSH", "l", "a"), ("INCR", "a"), ("BL.SPIN",), ("INCR", "b"), ("RPUSH", "l", "b")):
                assert c.call(*words) == b"QUEUED"
            c.send("EXEC")
            for other in others:
                eventually(lambda: b"BUSY" in str(other.call("GET", "a")).encode(), "it takes long")
            others[-1].ok("BL.END")
            assert c.read() == [1, turn, b"over", turn, 2]
            assert waiter.read() == [b"l", b"a"]
            for other in others:
                assert other.call("MGET", "a", "b") == [b"%d" % turn] * 2
            c.call("DEL", "l")
        for other in others:
            other.close()


def test_a_script_in_a_transaction_can_be_killed(with_modules):
    """From any thread, though it names a command for which the world stands."""
    server = with_modules({"busy-reply-threshold": "50"}, files=("dump.rdb", "kept.rdb"))
    others = [server.connect() for _ in range(6)]
    with server.connect() as c:
        for _ in range(2):
            c.ok("MULTI")
            c.call("SET", "k", "1")
            c.call("EVAL", "if not KEYS[1] then while true do end end redis.call('EX.SET', 'a', 'b')", 0)
            c.call("GET", "k")
            c.send("EXEC")
            for other in others:
                eventually(lambda: b"BUSY" in (other.call("GET", "k") or b""), "it takes long")
            others[-1].ok("SCRIPT", "KILL")
            first, second, third = c.read()
            assert (first, third) == (b"OK", b"1") and b"killed by user" in str(second).encode()
            for other in others:
                assert other.call("GET", "k") == b"1"
            c.call("DEL", "k")
    for other in others:
        other.close()


def test_others_see_all_or_nothing(with_modules):
    """Threads that run such scripts beside others that look, write and change functions."""
    server = with_modules()
    text = "redis.call('INCR', 'a') redis.call(unpack(ARGV)) redis.call('INCR', 'b') return 1"
    library = "#!lua name=%s\nredis.register_function('%s', function(keys, args) " + text.replace("ARGV", "args") + " end)"
    turns, ended = 60, threading.Event()
    with server.connect() as c:
        c.call("FUNCTION", "LOAD", library % ("one", "one"))
        c.ok("MSET", "a", "0", "b", "0")

    def scripts(words):
        with server.connect() as c:
            for i in range(turns):
                assert c.call(*words, *SET_LENGTH, str(70 + i)) == 1

    def transactions():
        with server.connect() as c:
            for i in range(turns):
                c.ok("MULTI")
                c.call("INCR", "a")
                c.call("INCR", "b")
                c.call("EVAL", text, 0, *SET_LENGTH, str(70 + i))
                assert c.call("EXEC")[2] == 1

    def functions():
        with server.connect() as c:
            while not ended.is_set():
                c.call("FUNCTION", "LOAD", "REPLACE", library % ("one", "one"))
                c.call("FUNCTION", "LOAD", "REPLACE", library % ("two", "two"))
                c.ok("FUNCTION", "DELETE", "two")

    def looks():
        with server.connect() as c:
            while not ended.is_set():
                one, two = c.call("MGET", "a", "b")
                assert one == two
                assert c.call("EVAL", "return redis.call('GET', 'a') == redis.call('GET', 'b')", 0) == 1
                c.call("EX.SET", "other", "v")

    beside = [threading.Thread(target=task) for task in (functions, looks)]
    for thread in beside:
        thread.start()
    try:
        in_threads(lambda: scripts(["EVAL", text, 0]), lambda: scripts(["FCALL", "one", 0]), transactions)
    finally:
        ended.set()
        for thread in beside:
            thread.join()
    with server.connect() as c:
        assert c.call("MGET", "a", "b") == [b"%d" % (4 * turns)] * 2
