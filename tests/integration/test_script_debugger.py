"""The script debugger on the wire, beside Debian's redis-server 7.0.15: the same dialogue with both must bring the
same lines. What differs on purpose is tested by itself: `help` is in our own words, limits, what happens in SYNC to
the others."""

import re
import ssl

import pytest

from lib.bounds import eventually
from lib.resp import Closed, encode
from lib.seeds import generator, seeds
from lib.server import children_of, free_port, running_in
from lib.tls import TlsConnection, context, make_pki

STEPS = """local a = 1
local t = {1, 2, {x = 'y'}, nil, true}
local s = 'a "quoted" \\n line'
local function f(p)
  local inner = p * 2
  return inner
end
local n = f(21)
redis.call('set', KEYS[1], ARGV[1])
redis.call('lpush', 'list', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
local l = redis.call('lrange', 'list', 0, -1)
redis.debug('here', n, l, nil, true, 1.5)
local e = redis.pcall('incr', KEYS[1])
return {n, redis.call('get', KEYS[1])}
"""

LOOP = """local sum = 0
for i = 1, 3 do
  sum = sum + i
  if i == 2 then redis.breakpoint() end
  redis.debug(i, sum)
end
return sum
"""

# name: script, keys, arguments, what the client says
DIALOGUES = {
    "steps": (STEPS, ["k"], ["v"], ["s", "step", "n", "next"] + ["s"] * 12),
    "continue": (STEPS, ["k"], ["v"], ["continue"]),
    "continue, short": (STEPS, ["k"], ["v"], ["c"]),
    "capitals": (STEPS, ["k"], ["v"], ["S", "Step", "LIST", "C"]),
    "breakpoints": (STEPS, ["k"], ["v"], ["b", "b 5", "break 9 12 3", "b", "c", "t", "trace", "p", "c", "b -3", "b -3",
                                         "b 100", "b x", "b 12x 4", "b", "list", "b 0", "b", "b 11", "c", "c"]),
    "the same twice": (STEPS, ["k"], ["v"], ["b 5 5", "b", "b -5", "b", "c", "c"]),
    "a breakpoint here": (STEPS, ["k"], ["v"], ["b 1", "l", "s", "l", "b 1", "c"]),
    "print": (STEPS, ["k"], ["v"], ["p", "s", "p", "p a", "s", "p", "p t", "print t", "s", "p s", "p nothing", "p KEYS",
                                   "p ARGV", "p a t", "p redis", "p keys", "s", "s", "p f", "c"]),
    "inner frames": (STEPS, ["k"], ["v"], ["b 6", "c", "p", "p inner", "p p", "p a", "p n", "t", "s", "t", "p", "c"]),
    "list": (STEPS, ["k"], ["v"], ["l", "list", "l 3", "l 8 1", "list 8 2", "l 0", "l -3", "l 100", "l x", "l 1 0",
                                  "l 3 x", "l 3 -1", "w", "whole", "s", "l", "w", "l 0 1", "c"]),
    "redis": (STEPS, ["k"], ["v"], ["r set a 1", "redis get a", "r get nothing", "r lrange list 0 -1", "r incr a",
                                   "r rpush q 1 b", "r lrange q 0 -1", "r lpush a 1", "r mget a nothing a", "r",
                                   "redis", "r nosuchcommand", "r get", "r multi", "r echo " + 300 * "x",
                                   "r set a b", "r hset h f v", "r hgetall h", "r ping", "r exists a", "c"]),
    "many words": (STEPS, ["k"], ["v"], ["r rpush many 1 2 3 4 5 6 7 8 9 10 11 12 13", "c"]),
    "eval": (STEPS, ["k"], ["v"], ["e 1 + 1", "eval 'a' .. 1", "e return 5", "e local x = 5 return x * 2", "e a",
                                  "e KEYS[1]", "e {1, 2, 3}", "e redis.call('set', 'q', 5)", "e redis.call('get', 'q')",
                                  "e (", "e error('mine')", "e nil", "e", "eval",
                                  "e redis.error_reply('x y')", "e redis.status_reply('x')",
                                  "e 1, 2", "e print", "e x = 1", "e undefined", "e 0/0", "e 1/0", "e 1e100",
                                  "e 12345678901", "e 0.1", "e -5", "e {[1] = 1, [3] = 2}", "e {a = {b = {c = 1}}}",
                                  "e {}", "e {{}}", "e function() end ~= nil", "c"]),
    "nested": ("local t = {} local c = t for i = 1, 15 do c[1] = {} c = c[1] end\nreturn 1", [], [],
               ["s", "p t", "c"]),
    "maxlen": ("local s = string.rep('x', 400)\nredis.call('set', 'k', s)\nlocal t = {}\nfor i = 1, 200 do t[i] = i end"
               "\nreturn redis.call('get', 'k')", [], [],
               ["s", "p s", "p", "s", "maxlen", "m 100", "p s", "m 10", "p s", "m 60", "m 61", "m 0", "p s", "maxlen x",
                "m -5", "m 1 2", "b 5", "c", "p t", "s"]),
    "hint once": ("local s = string.rep('x', 400)\nreturn 1", [], [], ["s", "p s", "p s", "m", "p s", "c"]),
    "maxlen first": ("local s = string.rep('x', 400)\nreturn 1", [], [], ["m 100", "s", "p s", "p s", "c"]),
    "abort": (STEPS, ["k"], ["v"], ["s", "a"]),
    "abort, long": (STEPS, ["k"], ["v"], ["b 10", "c", "abort"]),
    "unknown": (STEPS, ["k"], ["v"], ["x", "quit", "restart", "stepp", "get k", "info", "c"]),
    "loop": (LOOP, [], [], ["c", "p", "c"]),
    "loop in steps": (LOOP, [], [], ["s"] * 15),
    "loop, break": (LOOP, [], [], ["b 3", "c", "c", "b 0", "c", "c"]),
    "breakpoint tells": ("local b = redis.breakpoint()\nlocal c = b\nreturn tostring(c)", [], [], ["c", "p", "c"]),
    "breakpoint last": ("return redis.breakpoint()", [], [], ["c"]),
    "debug": ("redis.debug()\nredis.debug('a')\nredis.debug({1, 2}, {a = 1}, redis.call, nil)\n"
              "redis.debug(string.rep('y', 600))\nredis.debug('line\\nend')\nreturn 1", [], [], ["s", "s", "s", "s", "c"]),
    "debug, continue": ("for i = 1, 5 do redis.debug(i) end\nreturn 1", [], [], ["c"]),
    "error": ("local a = 1\nerror('mine')", [], [], ["s", "s"]),
    "error of a command": ("redis.call('set', 'k', 'v')\nredis.call('incr', 'k')\nreturn 1", [], [], ["s", "s", "s"]),
    "error, continue": ("redis.call('set', 'k', 'v')\nredis.call('incr', 'k')\nreturn 1", [], [], ["c"]),
    "caught": ("redis.pcall('nosuch')\nlocal e = redis.pcall('get')\npcall(function() error('x') end)\n"
               "return e.err", [], [], ["s"] * 6),
    "error_reply": ("local e = redis.error_reply('MINE x')\nreturn e", [], [], ["s", "s"]),
    "compile error": ("local a = = 1", [], [], []),
    "empty": ("", [], [], ["l", "w", "b 1", "s"]),
    "comment": ("-- nothing", [], [], ["s"]),
    "errors": ("redis.error_reply('MINE x')\nredis.error_reply('-x')\nredis.error_reply('a\\r\\nb')\n"
               "redis.error_reply()\npcall(redis.call)\npcall(redis.call, {})\npcall(redis.setresp, 5)\n"
               "pcall(redis.log)\npcall(error, {err = 'a'})\npcall(redis.set_repl, 9)\nredis.setresp(5)", [], [],
               ["s"] * 14),
    "line ends": ("\n\nlocal a = 1\r\nlocal b = 2\n\n\n", [], [], ["w", "s", "l", "c"]),
    "shebang": ("#!lua flags=no-writes\nlocal a = 1\nreturn redis.call('get', 'k')", [], [], ["w", "s", "s"]),
    "resp 3": ("redis.setresp(3)\nredis.call('hset', 'h', 'f', 'v')\nredis.call('hgetall', 'h')\n"
               "redis.call('sadd', 's', 'a')\nredis.call('smembers', 's')\nredis.call('get', 'nothing')\n"
               "redis.call('zadd', 'z', 1.5, 'm')\nredis.call('zscore', 'z', 'm')\n"
               "redis.call('zrange', 'z', 0, -1, 'withscores')\nreturn 1", [], [], ["s"] * 12),
    "reply kinds": ("redis.call('rpush', 'l', 'a')\nredis.call('exists', 'l')\n"
                    "redis.call('hmget', 'none', 'f', 'g')\nredis.call('lrange', 'none', 0, -1)\n"
                    "redis.call('ping')\nredis.call('xadd', 'x', '1-1', 'f', 'v')\nredis.call('xrange', 'x', '-', '+')\n"
                    "return 1", [], [], ["s"] * 10),
    "coroutine": ("local co = coroutine.create(function()\n  local inner = 1\n  coroutine.yield(inner)\nend)\n"
                  "local ok, v = coroutine.resume(co)\nreturn v", [], [], ["s"] * 3 + ["p", "t"] + ["s"] * 3 + ["p"] +
                  ["s"] * 2),
    "keys": ("return #KEYS + #ARGV", ["a", "b"], ["c"], ["p KEYS", "p ARGV", "p", "c"]),
    "no such count": ("return 1", None, None, []),
}


class Session:
    """One debugged EVAL."""

    def __init__(self, connection, mode, script, keys, arguments):
        self.connection = connection
        connection.ok("SCRIPT", "DEBUG", mode)
        if keys is None:
            connection.send("EVAL", script, "1")
        else:
            connection.send("EVAL", script, str(len(keys)), *keys, *arguments)
        self.lines = self.read()

    def read(self):
        lines = [bytes(line) for line in self.connection.read()]
        if lines and lines[-1] == b"<endsession>":
            lines.append(self.connection.read_frame()[0])
            assert self.connection.is_closed()
            self.over = True
        else:
            self.over = False
        return lines

    def say(self, *words):
        self.connection.send(*words)
        return self.read()


def split(line):
    """As the clients do."""
    for name in "e ", "eval ":
        if line.startswith(name):
            return [name[:-1], line[len(name):]]
    return line.split()


def plain(lines):
    """Addresses differ, and so do the patches of the versions."""
    return [re.sub(rb"0x[0-9a-f]+", b"0x0", line) for line in lines]


def play(connection, mode, dialogue):
    script, keys, arguments, lines = dialogue
    session = Session(connection, mode, script, keys, arguments)
    seen = [("", plain(session.lines))]
    for line in lines:
        if session.over:
            break
        seen.append((line, plain(session.say(*split(line)))))
    assert session.over, seen[-1]
    return seen


@pytest.mark.any_threads
@pytest.mark.parametrize("mode", ["YES", "SYNC"])
@pytest.mark.parametrize("name", DIALOGUES)
def test_the_same_lines(server, oracle, name, mode):
    for each in server, oracle:
        with each.connect() as c:
            c.ok("FLUSHALL")
    with server.connect() as ours, oracle.connect() as theirs:
        mine = play(ours, mode, DIALOGUES[name])
        wanted = play(theirs, mode, DIALOGUES[name])
    for (line, got), (_, want) in zip(mine, wanted):
        assert got == want, "%r: ours %r, theirs %r" % (line, got, want)
    assert len(mine) == len(wanted)


def test_removing_a_breakpoint_leaves_the_others(server):
    """Redis 7.0.15 forgets others than the one that is named."""
    session = begin(server, "YES", "local a\na = 2\na = 3\na = 4\nreturn a")
    session.say("b", "2", "3", "4", "5")
    assert session.say("b", "-3") == [b"Breakpoint removed."]
    assert session.say("b") == [b"3 breakpoints set:", b"->#2   a = 2", b"  #4   a = 4", b"  #5   return a"]
    assert session.say("c")[0] == b"* Stopped at 4, stop reason = break point"


def test_errors_of_code(server):
    """Redis 7.0.15 crashes of errors that are tables."""
    for mode in "YES", "SYNC":
        session = begin(server, mode, "local a\nreturn 1")
        assert session.say("e", "error({err = 'MINE x'})") == [b"<error> MINE x"]
        assert session.say("e", "error({})") == [b"<error> unknown error"]
        assert session.say("e", "error()") == [b"<error> unknown error"]
        assert session.say("e", "redis.call('nosuch')") == [b"<error> ERR Unknown Redis command called from script"]
        assert session.say("e", "coroutine.yield(5)") == [b"<retval> 5"]
        session.say("c")


def debug_children(server):
    return [pid for pid in running_in(server.pid) if pid != server.pid]


def begin(server, mode, script, keys=(), arguments=()):
    return Session(server.connect(), mode, script, list(keys), list(arguments))


def test_a_forked_session_changes_nothing(server, client):
    client.ok("SET", "k", "before")
    session = begin(server, "YES", "redis.call('SET', 'k', 'after')\nreturn redis.call('GET', 'k')")
    session.say("s")
    assert session.say("e", "redis.call('GET', 'k')") == [b'<retval> "after"']
    # The server serves on meanwhile, and others' writes are not the session's.
    assert client.call("GET", "k") == b"before"
    client.ok("SET", "other", "1")
    assert session.say("r", "get", "other") == [b"<redis> get other", b"<reply> NULL"]
    lines = session.say("c")
    assert session.over and lines[-1] == b"$5\r\nafter\r\n"
    assert client.call("GET", "k") == b"before"


def test_in_sync_mode_changes_stay(server, client):
    session = begin(server, "SYNC", "redis.call('SET', 'k', 'v')\nreturn 1")
    session.say("c")
    assert session.over and client.call("GET", "k") == b"v"


def test_an_aborted_sync_session_keeps_what_was_written(server, client):
    session = begin(server, "SYNC", "redis.call('SET', 'k', 'v')\nredis.call('SET', 'j', 'v')\nreturn 1")
    session.say("s")
    lines = session.say("a")
    assert session.over and b"script aborted for user request" in lines[-1]
    assert client.call("MGET", "k", "j") == [b"v", None]


def test_many_sessions_at_once(server, client):
    sessions = [begin(server, "YES", "local a = ARGV[1]\nreturn a", (), (str(i),)) for i in range(8)]
    for i, session in enumerate(sessions):
        assert session.say("p", "ARGV") == [b'<value> {"%d"}' % i]
    for i, session in enumerate(sessions):
        assert session.say("c")[-1] == b"$1\r\n%d\r\n" % i
    client.ok("SET", "k", "v")


def test_no_more_sessions_than_there_may_be(make_server):
    server = make_server()
    sessions = [begin(server, "YES", "return 1") for _ in range(32)]
    with server.connect() as c:
        c.ok("SCRIPT", "DEBUG", "YES")
        assert c.error("EVAL", "return 1", 0).startswith(b"ERR Fork() failed: can't run EVAL in debugging mode: ")
        assert c.call("EVAL", "return 1", 0) == 1  # the mode is off again
    for session in sessions:
        session.connection.close()
    eventually(lambda: not debug_children(server), "children end with their clients")
    eventually(lambda: not children_of(server.pid), "the server has seen it, and has room")
    begin(server, "YES", "return 1").say("c")


def test_a_client_that_leaves_ends_its_child(make_server):
    server = make_server()
    session = begin(server, "YES", "while true do end")
    assert len(debug_children(server)) == 1
    session.connection.close()
    eventually(lambda: not debug_children(server), "the child ends")
    with server.connect() as c:
        c.ok("SET", "k", "v")


def test_a_client_that_leaves_in_sync_mode_lets_the_script_end(server, client, oracle):
    """As in Redis: it runs to its end without stops."""
    script = "redis.call('SET', 'a', 1)\nredis.breakpoint()\nredis.call('SET', 'b', 2)\nreturn 1"
    for each in server, oracle:
        session = begin(each, "SYNC", script)
        session.say("s")
        session.connection.close()
        with each.connect() as c:
            assert c.call("MGET", "a", "b") == [b"1", b"2"]


def test_the_server_ends_beside_sessions(make_server):
    server = make_server()
    session = begin(server, "YES", "return 1")
    server.stop()
    with pytest.raises((Closed, OSError)):
        session.say("c")
    assert b"Ending debugging session" in server.output().encode()


def test_the_server_ends_beside_a_session_in_sync_mode(make_server):
    """The script goes on to its end without stops."""
    server = make_server(options={"appendonly": "yes"}, files=["appendonlydir"])
    session = begin(server, "SYNC", "redis.call('SET', 'a', 1)\nredis.breakpoint()\nredis.call('SET', 'b', 2)\nreturn 1")
    session.say("s")
    server.stop()
    assert session.read() == [b"<endsession>", b":1\r\n"]
    server.start()
    with server.connect() as c:
        assert c.call("MGET", "a", "b") == [b"1", b"2"]


def test_shutdown_nosave_ends_a_session_in_sync_mode(make_server):
    server = make_server(options={"busy-reply-threshold": "50"})
    session = begin(server, "SYNC", "redis.call('SET', 'a', 1)\nreturn 1")
    session.say("s")
    with server.connect() as c:
        eventually(lambda: c.error("GET", "a").startswith(b"BUSY"), "others are not kept waiting")
        c.send("SHUTDOWN", "NOSAVE")
        assert server.wait_exit() == 0


def test_flush_and_save_beside_a_session(make_server):
    server = make_server(files=["dump.rdb"])
    with server.connect() as c:
        c.ok("SET", "k", "v")
        session = begin(server, "YES", "return redis.call('GET', 'k')")
        c.ok("SCRIPT", "FLUSH")
        c.ok("FLUSHALL")
        assert c.call("SAVE") == b"OK"
        assert session.say("c")[-1] == b"$1\r\nv\r\n"


def test_a_session_in_sync_mode_is_a_script_that_takes_long(make_server):
    server = make_server(options={"busy-reply-threshold": "50"})
    session = begin(server, "SYNC", "local a = 1\nreturn a")
    with server.connect() as c:
        c.send("GET", "k")
        assert c.read().startswith(b"BUSY")
        c.ok("SCRIPT", "KILL")
        lines = session.read()
        assert session.over and b"Script killed by user" in lines[-1]
        assert c.call("GET", "k") is None


def test_code_that_takes_long_ends(make_server):
    server = make_server(options={"busy-reply-threshold": "100"})
    for mode in "YES", "SYNC":
        session = begin(server, mode, "local a = 1\nreturn a")
        assert session.say("e", "while true do end") == [b"<error> ERR the code takes too long"]
        assert session.say("c")[-1] == b":1\r\n"


@pytest.mark.parametrize("threshold", ["100", "0"])
def test_a_loop_without_end_stops(make_server, make_oracle, threshold):
    """Without a threshold it has five seconds, lest a child never see that its client has left."""
    options = {"busy-reply-threshold": threshold}
    sessions = [begin(each, "YES", "local a = 1\nwhile true do end")
                for each in (make_server(options=options), make_oracle(options=options))]
    for session in sessions:
        session.say("s")
        session.connection.send("c")
    ours, theirs = [session.read() for session in sessions]
    assert ours == theirs and b"infinite loop" in ours[0]
    for session in sessions:
        assert b"script aborted" in session.say("a")[-1]


@pytest.mark.parametrize("mode", ["YES", "SYNC"])
@pytest.mark.parametrize("bytes_sent", [
    b"x\r\n", b"*0\r\n", b"*-1\r\n", b"*1025\r\n", b"*99999999999999\r\n", b"*1\r\n$0\r\n\r\n", b"*1\r\n$-1\r\n",
    b"*1\r\n$1025\r\n", b"*1\r\n:1\r\n", b"*1\r\n$1\r\ncXY", b"*1\rX", b"*\r\n", b"* 1\r\n", b"*1x\r\n",
])
def test_what_is_no_request_ends_the_session(server, client, mode, bytes_sent):
    session = begin(server, mode, "local a = 1\nreturn a")
    session.connection.send_raw(bytes_sent)
    lines = session.read()
    assert session.over and b"protocol error" in lines[-1]
    client.ok("SET", "k", "v")


@pytest.mark.parametrize("mode", ["YES", "SYNC"])
def test_requests_come_in_any_portions(server, mode):
    session = begin(server, mode, "local a = 1\nreturn a")
    data = encode("p", "KEYS") + encode("s") + encode("print", "a") + encode("c")
    session.connection.send_pieces([data[i:i + 1] for i in range(len(data))])
    assert session.read() == [b"<value> {}"]
    assert session.read()[0].startswith(b"* Stopped at 2")
    assert session.read() == [b"<value> 1"]
    session.read()
    assert session.over


CODE = ["1", "nil", "KEYS", "ARGV", "{", "}", "(", ")", "'", "return", "redis.call('lpush','l',1)", "redis.debug", "a",
        "redis.breakpoint()", "error()", "error({})", "coroutine.yield()", "string.rep('x', 5000)", "{{{}}}", "..",
        "coroutine.wrap(function() error({}) end)()", "redis.call('nosuch')", "setmetatable({}, {__index = error})",
        "local t = {} t[1] = t return t", "_G", "redis", "pcall(error)", "\x00", "\xff", "[==[", "=", ",", "print",
        "redis.setresp(3)", "redis.call('hgetall', 'l')", "redis.call('select', 5)", "cjson.encode({})", "0/0", "{1,nil,3}"]
WORDS = ["s", "n", "p", "p a", "p t", "l", "l -1 99999999999", "l 2 -2", "w", "b", "b 2", "b -2", "b 0", "t", "m", "m 0",
         "m 70", "b 9223372036854775807 -9223372036854775808", "r lrange l 0 -1", "r eval x 0", "r", "h", "x", "r flushall",
         "r subscribe c", "r get \x00", "b \x00", "m 99999999999999999999", "r multi", "r config get *"]


@pytest.mark.parametrize("mode", ["YES", "SYNC"])
@pytest.mark.parametrize("seed", seeds(3))
def test_any_words(server, mode, seed):
    """Whatever is asked and evaluated, the session goes on or ends, and the server lives."""
    random = generator(seed, "debugger words")
    for _ in range(6):
        session = begin(server, mode, "local a = {1}\nlocal t = {a = a}\nfor i = 1, 20 do\n  t[i] = redis.call('ping')\n"
                                      "  redis.debug(t)\nend\nreturn a", ("k",), ("v",))
        for _ in range(60):
            if session.over:
                break
            if random.random() < 0.5:
                session.say("e", " ".join(random.choices(CODE, k=random.randint(1, 4))))
            else:
                session.say(*random.choice(WORDS).split(" "))
        if not session.over:
            session.say("a")
        assert session.over
    with server.connect() as c:
        c.ok("SET", "k", "v")


def test_lines_are_bounded(make_server):
    """A script that talks without end takes no more memory than it may."""
    server = make_server(options={"busy-reply-threshold": "1000000"})
    session = begin(server, "YES", "for i = 1, 3000 do redis.debug(string.rep('x', 10000)) end\nreturn 1")
    lines = session.say("c")
    assert re.fullmatch(rb"<hint> \d+ more lines were too many\.", lines[-1])
    assert session.read() == [b"<endsession>", b":1\r\n"]


def test_where_it_is_refused(client, server, oracle):
    for each in server, oracle:
        with each.connect() as c:
            assert c.error("SCRIPT", "DEBUG", "MAYBE") == b"ERR Use SCRIPT DEBUG YES/SYNC/NO"
            c.ok("SCRIPT", "DEBUG", "YES")
            assert c.error("EVALSHA", 40 * "a", 0) == b"ERR Please use EVAL instead of EVALSHA for debugging"
            assert c.error("EVALSHA_RO", 40 * "a", 0) == b"ERR Please use EVAL instead of EVALSHA for debugging"
            c.ok("SCRIPT", "DEBUG", "no")
            assert c.call("EVAL", "return 1", 0) == 1
            assert b"not allowed from script" in c.error("EVAL", "return redis.call('SCRIPT', 'DEBUG', 'YES')", 0)
            c.send_raw(encode("PING") + encode("SCRIPT", "DEBUG", "YES"))
            assert c.read() == b"PONG"
            assert c.read() == b"ERR SCRIPT DEBUG must be called outside a pipeline"


def test_eval_ro_is_debugged_and_fcall_is_not(server, client):
    client.call("FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('f', function() return 7 end)")
    with server.connect() as c:
        c.ok("SCRIPT", "DEBUG", "YES")
        assert c.call("FCALL", "f", 0) == 7
        assert c.call("EVAL_RO", "return 1", 0)[0] == b"* Stopped at 1, stop reason = step over"
    client.call("FUNCTION", "DELETE", "lib")


def test_a_script_in_a_transaction_is_refused(server, client):
    """What was to be debugged must not run and leave its changes. (Redis begins a session amid the transaction.)"""
    with server.connect() as c:
        c.ok("SCRIPT", "DEBUG", "YES")
        c.ok("MULTI")
        assert c.call("EVAL", "return redis.call('SET', 'k', 'v')", 0) == b"QUEUED"
        assert c.call("EXEC") == [b"ERR EVAL under the debugger must be called outside a pipeline or transaction"]
        c.send_raw(encode("PING") + encode("EVAL", "return redis.call('SET', 'k', 'v')", 0))
        assert c.read() == b"PONG"
        assert c.read() == b"ERR EVAL under the debugger must be called outside a pipeline or transaction"
    assert client.call("EXISTS", "k") == 0


def test_reset_and_select(server, oracle):
    for each in server, oracle:
        with each.connect() as c:
            c.ok("SCRIPT", "DEBUG", "YES")
            assert c.call("RESET") == b"RESET"
            assert c.call("EVAL", "redis.call('select', 3)\nreturn 1", 0)[0].startswith(b"* Stopped at 1")
        with each.connect() as c:
            c.ok("MULTI")
            assert c.call("SCRIPT", "DEBUG", "YES") == b"QUEUED"
            assert c.call("EXEC") == [b"ERR SCRIPT DEBUG must be called outside a pipeline"]


def test_monitors_see_the_script_and_not_its_session(server, oracle):
    for each in server, oracle:
        with each.connect() as monitor:
            monitor.ok("MONITOR")
            begin(each, "YES", "redis.call('set', 'a', 'b')\nreturn 1").say("c")
            begin(each, "SYNC", "redis.call('set', 'a', 'c')\nreturn 1").say("c")
            told = [monitor.read().partition(b"] ")[2].partition(b" ")[0] for _ in range(5)]
            assert told == [b'"SCRIPT"', b'"EVAL"', b'"SCRIPT"', b'"EVAL"', b'"set"']


def test_over_a_unix_socket_and_in_resp3(server, connect):
    unix = connect(proto=3, unix=True)
    for mode in "YES", "SYNC":
        session = Session(unix, mode, "return {1.5, true}", [], [])
        assert session.say("c") == [b"<endsession>", b"*2\r\n:1\r\n:1\r\n"]
        unix = connect(proto=3, unix=True)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_over_tls(make_server, tmp_path, version):
    """The child goes on with the connection's keys, and the parent says no goodbye in its name."""
    pki = make_pki(str(tmp_path))
    port = free_port()
    make_server(pki.options(tls_port=str(port)))
    with_context = context(ca=pki.cert("ca"), cert=pki.cert("client"), key=pki.key("client"), version=version)
    for mode in "YES", "SYNC":
        session = Session(TlsConnection(("127.0.0.1", port), with_context), mode,
                          "local s = string.rep('x', 100000)\nreturn s .. s", [], [])
        assert session.say("s")[0].startswith(b"* Stopped at 2")
        assert session.say("m", "0") == [b"<value> replies are unlimited."]
        assert session.say("p", "s") == [b'<value> "' + 100000 * b"x" + b'"']
        assert session.say("c")[-1] == b"$200000\r\n" + 200000 * b"x" + b"\r\n"


def test_writes_of_a_session_reach_no_log(make_server):
    """Neither the AOF, nor listeners, nor clients that wait hear of a forked session."""
    server = make_server(options={"appendonly": "yes", "appendfsync": "always", "notify-keyspace-events": "KEA"},
                         files=["appendonlydir"])
    with server.connect() as waiter, server.connect() as listener, server.connect() as c:
        waiter.send("BLPOP", "q", 0)
        listener.call("PSUBSCRIBE", "*")
        session = begin(server, "YES", "redis.call('RPUSH', 'q', 1)\nredis.call('PUBLISH', 'c', 'm')\n"
                                       "redis.call('SET', 'k', 'v')\nredis.call('FLUSHALL', 'ASYNC')\nreturn 1")
        assert session.say("c")[-1] == b":1\r\n"
        assert waiter.nothing_comes() and listener.nothing_comes()
        assert c.call("DBSIZE") == 0
        c.ok("SET", "after", "1")
    server.stop()
    server.start()
    with server.connect() as c:
        assert c.call("KEYS", "*") == [b"after"]


def test_sessions_while_threads_are_at_work(make_server):
    """Forks amid traffic find no lock that is held for ever."""
    server = make_server(options={"latency-monitor-threshold": "1", "slowlog-log-slower-than": "0"})
    others = [server.connect() for _ in range(4)]
    for round_ in range(15):
        for c in others:
            c.send_raw(b"".join(encode("SET", "k%d" % i, "v") + encode("GET", "k%d" % i) + encode("NOSUCH")
                                for i in range(200)))
        session = begin(server, "YES", "for i = 1, 50 do redis.call('SET', 'k' .. i, i) redis.pcall('NOSUCH') end\n"
                                       "redis.call('UNLINK', 'k1')\nreturn redis.call('INFO', 'everything') ~= nil")
        assert session.say("s")
        assert session.say("c")[-1] == b":1\r\n", round_
        for c in others:
            for _ in range(600):
                c.read()
    for c in others:
        c.close()
