"""Scripts that spread or collect as many values as Lua's stack holds (7,999), and a few around that number, to our
server and to the oracle: in EVAL and in functions, some calls deep, through everything that takes or gives many."""

import pytest

from lib.differential import Pair
from lib.differences import DIFFERENCES
from lib.resp import encode

pytestmark = pytest.mark.any_threads

SIZES = (3999, 7990, 7991, 7996, 7997, 7998, 7999, 8000)

# `a` holds as many ones as the size says. What each leaves behind is looked at, too.
BODIES = r"""
return redis.call('lpush', 'l', unpack(a))
redis.call('lpush', 'l', unpack(a)) redis.call('lpush', 'l', 'more') return redis.call('llen', 'l')
return redis.pcall('rpush', 'l', unpack(a))
return redis.call('sadd', 's', unpack(a))
return redis.call('mget', unpack(a))
return redis.call('del', unpack(a))
return redis.call('nosuch', unpack(a))
return redis.call('get', unpack(a))
return redis.pcall('nosuch', unpack(a))
return redis.call('lpush', 'str', unpack(a))
return redis.pcall('lpush', 'str', unpack(a))
return {pcall(redis.call, 'lpush', 'l', unpack(a))}
return {pcall(redis.call, 'lpush', 'str', unpack(a))}
return redis.acl_check_cmd('lpush', 'l', unpack(a))
local function f(...) return redis.call('lpush', 'l', ...) end return f(unpack(a))
local function f(...) return redis.call('lpush', 'l', ...) end local function g(...) return f(...) end return g(unpack(a))
local function f(...) local n = redis.call('lpush', 'l', ...) return n end local function g(...) local n = f(...) return n end local function h(...) local n = g(...) return n end return h(unpack(a))
local function f(n) if n == 0 then return unpack(a) end return f(n - 1) end return redis.call('lpush', 'l', f(9))
local co = coroutine.wrap(function(...) return redis.call('lpush', 'l', ...) end) return co(unpack(a))
local co = coroutine.wrap(function(...) coroutine.yield(...) end) return #{co(unpack(a))}
local co = coroutine.create(function(...) return ... end) return #{coroutine.resume(co, unpack(a))}
return #redis.call('lrange', 'big', 0, #a - 1)
return redis.call('lrange', 'big', 0, #a - 1)
return {unpack(a)}
return #{unpack(a), unpack(a)}
return select('#', unpack(a))
return #{select(2, unpack(a))}
return #{pcall(unpack, a)}
return #{pcall(function(...) return ... end, unpack(a))}
return #{xpcall(function() return unpack(a) end, function(e) return e end)}
return #{assert(unpack(a))}
return #string.char(unpack(a))
return #{string.byte(string.rep('x', #a), 1, -1)}
return {('x'):rep(#a):byte(1, -1)}
return #string.format(('%d'):rep(#a), unpack(a))
return #string.format(('%s'):rep(#a), unpack(a))
return {('x'):rep(#a):gsub('x', 'y')}
return math.max(unpack(a)) + math.min(unpack(a))
return bit.bor(unpack(a)) + bit.band(unpack(a)) + bit.bxor(unpack(a))
return #table.concat(a, ',')
table.sort(a) return #a
return table.maxn(a)
return #cjson.encode(a)
return #cjson.decode(cjson.encode(a))
return cjson.encode(unpack(a))
return #cmsgpack.unpack(cmsgpack.pack(a))
return #{cmsgpack.unpack(('\1'):rep(#a))}
return {cmsgpack.unpack(('\161x'):rep(#a))}
return {cmsgpack.unpack_limit(('\1'):rep(#a), #a - 1)}
return #{cmsgpack.unpack_limit(('\1'):rep(#a), #a)}
return #struct.pack(('b'):rep(#a), unpack(a))
return {struct.unpack(('b'):rep(#a), ('x'):rep(#a))}
return #{struct.unpack(('Bc0'):rep(#a), ('\1x'):rep(#a))}
redis.log(redis.LOG_DEBUG, unpack(a)) return 1
return redis.status_reply(unpack(a))
return redis.error_reply(unpack(a))
return redis.sha1hex(unpack(a))
return redis.debug(unpack(a))
""".strip().split("\n")

PRELUDE = [("SET", "str", "x"), ("RPUSH", "big", *map(str, range(8000)))]
FILL = "local a = {} for i = 1, tonumber(%s) do a[i] = 1 end "


def check(server, oracle, *program):
    words = [[w.encode("latin-1") for w in line] for line in program]
    Pair(server, oracle, 2, DIFFERENCES, PRELUDE).check(words, 0, pipelined=False)


def left_behind():
    return ("LLEN", "l"), ("SCARD", "s"), ("GET", "str"), ("DEL", "l", "s")


@pytest.mark.parametrize("body", BODIES)
def test_script(server, oracle, body):
    calls = [("EVAL", FILL % "ARGV[1]" + body, "0", str(size)) for size in SIZES]
    check(server, oracle, *[line for call in calls for line in (call,) + left_behind()])


@pytest.mark.parametrize("body", BODIES[:22])
def test_function(server, oracle, body):
    library = "#!lua name=limits\nredis.register_function('f', function(keys, args) %s end)" % (
        FILL % "args[1]" + body)
    calls = [("FCALL", "f", "0", str(size)) for size in SIZES]
    check(server, oracle, ("FUNCTION", "LOAD", "REPLACE", library),
          *[line for call in calls for line in (call,) + left_behind()], ("FUNCTION", "FLUSH"))


# How deep a reply is written, and what stands in it where that ends: the stack again. A reader that
# follows it would need a stack as deep: bytes are compared.
@pytest.mark.parametrize("deeper", [
    "t = {t}", "t = {{}, t}", "t = {map = {x = t}}", "t = {set = {[t] = true}}", "t = {'x', {t}, 1}"])
@pytest.mark.parametrize("proto", [2, 3])
def test_a_deep_reply(server, oracle, deeper, proto):
    script = "local t = 1 for i = 1, 8100 do %s end return t" % deeper
    got = []
    for s in (server, oracle):
        with s.connect() as c:
            c.hello(proto)
            c.send_raw(encode("EVAL", script, "0") + encode("ECHO", "the end"))
            got.append(b"")
            while not got[-1].endswith(b"\r\nthe end\r\n"):
                data = c.sock.recv(1 << 18)
                assert data, "closed behind %d bytes" % len(got[-1])
                got[-1] += data
    assert got[0] == got[1]


# Where ours goes further: the oracle packs what half of the stack holds, and unpacks two tables less.
@pytest.mark.parametrize("body, sizes", [
    ("return {cmsgpack.unpack(cmsgpack.pack(unpack(a)))}", [3999, 7992]),
    (r"local t = {cmsgpack.unpack(('\145\1'):rep(#a))} return {#t, t[1], t[#t]}", [3999, 7999]),
    (r"local t = {cmsgpack.unpack(('\129\1\1'):rep(#a))} return {#t, t[1], t[#t]}", [3999, 7999])])
def test_more_of_message_pack(client, body, sizes):
    for size in sizes:
        got = client.call("EVAL", FILL % "ARGV[1]" + body, 0, size)
        assert got in ([1] * size, [size, [1], [1]])
    error = client.error("EVAL", FILL % "ARGV[1]" + body, 0, 8000)
    assert b"too many re" in error.lower() or b"Too many arguments" in error, error
