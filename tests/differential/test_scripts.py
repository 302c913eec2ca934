"""Scripts to our server and to the oracle: conversions, errors, the API, what the sandbox refuses.

Where 7.2 differs from the oracle's 7.0 by intention, test_scripts.py of integration/ says what ours is."""

import pytest

from lib.differential import Pair
from lib.differences import DIFFERENCES

pytestmark = pytest.mark.any_threads

PRELUDE = [("SET", "str", "x"), ("SET", "num", "41"), ("RPUSH", "list", "a", "b", "c"),
           ("HSET", "hash", "f", "v"), ("ZADD", "zset", "1.5", "m"), ("SADD", "set", "only")]

VALUES = """
return 1
return 1.9
return -1.9
return 1e300
return 0/0
return 1/0
return -1/0
return 'text'
return ''
return 'a\\0b\\r\\nc'
return true
return false
return nil
return
return 1, 2
return {}
return {1, 2, nil, 3}
return {1, 'a', true, false, {2, {}}}
return {nil, 1}
return {a = 1}
return {1, a = 2}
return {ok = 'fine'}
return {ok = 'fi\\r\\nne'}
return {ok = 1}
return {ok = 'a', 1}
return {err = 'My error'}
return {err = 'My\\r\\nerror'}
return {err = ''}
return {err = '-a b'}
return {err = 1}
return {err = {}, 1, 2}
return {err = 'x', ok = 'y'}
return {1, {err = 'x y'}, 2}
return {1, {ok = 'x y'}, 2}
return {double = 3.5}
return {double = 'x'}
return {double = 1/0}
return {map = {a = 1}}
return {map = 1}
return {map = {}}
return {set = {a = true}}
return {set = {}}
return {big_number = '1234567890123456789012345678901234567890'}
return {verbatim_string = {string = 'abc', format = 'txt'}}
return {verbatim_string = {string = 'abc'}}
return {map = {[1] = {map = {b = {set = {c = 1}}}}}}
return setmetatable({}, {__index = function() return 'x' end})
return setmetatable({1}, {__index = function() error('x') end})
return function() end
return coroutine.create(function() end)
return redis.sha1hex
return cjson.null
return redis.call("script", "kill")
redis.setresp(3) return true
redis.setresp(3) return false
redis.setresp(3) return {double = 3.5}
redis.setresp(3) return {true, false}
redis.setresp(3) redis.setresp(2) return true
return redis.call('get', 'str')
return redis.call('get', 'nokey')
return redis.call('incr', 'num')
return redis.call('lrange', 'list', 0, -1)
return redis.call('lrange', 'nokey', 0, -1)
return redis.call('hgetall', 'hash')
return redis.call('zrange', 'zset', 0, -1, 'withscores')
return redis.call('smembers', 'set')
return redis.call('set', 'str', 'y')
return redis.call('ping')
return redis.call('echo', 'a\\r\\nb')
return redis.call('mget', 'str', 'nokey', 'list')
return redis.call('zscore', 'zset', 'm')
return redis.call('type', 'list').ok
return type(redis.call('get', 'nokey'))
redis.setresp(3) return redis.call('get', 'nokey')
redis.setresp(3) return type(redis.call('get', 'nokey'))
redis.setresp(3) return redis.call('hgetall', 'hash')
redis.setresp(3) return redis.call('hgetall', 'hash').map.f
redis.setresp(3) return redis.call('smembers', 'set')
redis.setresp(3) return redis.call('smembers', 'set').set.only
redis.setresp(3) return redis.call('zrange', 'zset', 0, -1, 'withscores')
redis.setresp(3) return redis.call('zscore', 'zset', 'm')
redis.setresp(3) return redis.call('zscore', 'zset', 'm').double
redis.setresp(3) return redis.call('lrange', 'list', 0, -1)
redis.setresp(3) return redis.call('set', 'str', 'y')
return #redis.call('config', 'get', 'x')
redis.call('select', 1) redis.call('set', 'k', 'v') return redis.call('get', 'k')
redis.call('set', 'k', 3) return redis.call('get', 'k')
redis.call('set', 'k', 3.5) return redis.call('get', 'k')
redis.call('set', 'k', -3) return redis.call('get', 'k')
redis.call('set', 'k', 1e15) return redis.call('get', 'k')
redis.call('set', 'k', 2^53) return redis.call('get', 'k')
redis.call('set', 'k', 1e100) return redis.call('get', 'k')
redis.call('set', 'k', 1/0) return redis.call('get', 'k')
redis.call('set', 'k', -0) return redis.call('get', 'k')
return redis.sha1hex('')
return redis.sha1hex('abc')
return redis.sha1hex(1)
return redis.sha1hex({})
return redis.error_reply('My error')
return redis.error_reply('-My error')
return redis.error_reply('one')
return redis.error_reply('-')
return redis.error_reply('')
return redis.error_reply('- a')
return redis.error_reply('one\\r\\ntwo')
return redis.error_reply()
return redis.error_reply(1)
return redis.error_reply('a', 'b')
return redis.status_reply('fine')
return redis.status_reply('')
return redis.status_reply('a\\r\\nb')
return redis.status_reply()
return redis.status_reply({})
return {redis.REPL_ALL, redis.REPL_AOF, redis.REPL_NONE, redis.REPL_REPLICA, redis.REPL_SLAVE}
return {redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING}
return {redis.replicate_commands(), redis.set_repl(redis.REPL_ALL)}
redis.set_repl(redis.REPL_NONE) redis.set_repl(redis.REPL_AOF) return redis.set_repl(redis.REPL_SLAVE)
redis.set_repl('x') redis.set_repl(nil) redis.set_repl({}) redis.set_repl('3') redis.set_repl(1.7) return 1
redis.set_repl(-0.9) redis.set_repl(3.9) return 1
return redis.acl_check_cmd('set', 'a', 'b')
return redis.acl_check_cmd('set')
return redis.breakpoint()
return {redis.breakpoint('a', {}), type(redis.breakpoint())}
redis.breakpoint() return redis.call('incr', 'num')
return redis.debug('a')
return {redis.debug(), redis.debug(nil, {}, 1), 1}
return redis.log(redis.LOG_DEBUG, 'a', 1, {})
return redis.foo
return KEYS
return ARGV
return {#KEYS, #ARGV}
return loadstring('return 5')()
return load(function() return nil end)
return {loadstring('retur 1')}
return {loadstring('\\27Lua')}
return {pcall(error, 'a')}
return {pcall(redis.call, 'nosuch')}
return {pcall(redis.call, 'incr', 'str')}
return {pcall(function() return foo end)}
return {xpcall(function() error('x') end, function(e) return 'H' .. e end)}
return redis.pcall('incr', 'str')
return redis.pcall('incr', 'str').err
return redis.pcall('nosuch')
return redis.pcall('get')
return redis.pcall('multi')
return redis.pcall('set', 'a', {}).err
return {redis.pcall('incr', 'str'), 1}
local co = coroutine.wrap(function() coroutine.yield(1) return 2 end) return {co(), co()}
local co = coroutine.create(function() return redis.call('incr', 'str') end) return {coroutine.resume(co)}
local t = {} for k in pairs(redis) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs({b = 1, a = 2}) do t[#t + 1] = k end table.sort(t) return t
local n = 0 for k in next, {1, 2, 3} do n = n + 1 end return n
return tostring(_G._G == _G)
return _VERSION
return rawget({a = 1}, 'a')
return getmetatable(setmetatable({}, {__metatable = 5}))
return tostring(getmetatable({}))
return ('x'):upper()
return getmetatable('').__index == string
return rawequal(string, string)
return select('#', 1, 2, 3)
return tonumber('0x10')
return unpack({1, 2, 3})
"""

ERRORS = """
error('hi')
error('hi', 0)
error('hi', 2)
error(5)
error(nil)
error(true)
error({err = 'My thing'})
error({err = 'My thing', source = 'x', line = 'y'})
error({err = 5})
error(redis.error_reply('a b'))
error(redis.pcall('nosuch'))
return redis.call()
return redis.pcall()
return redis.call({})
return redis.call('get', nil)
return redis.call('set', 'a', true)
return redis.call('nosuch', 1)
return redis.call('')
return redis.call('get')
return redis.call('get', 'a', 'b')
return redis.call('incr', 'str')
return redis.call('lpush', 'str', 1)
return redis.call('multi')
return redis.call('exec')
return redis.call('eval', 'return 1', 0)
return redis.call('subscribe', 'x')
return redis.call('config', 'get', 'x')
return redis.call('config', 'nosuch')
return redis.call('select', 99)
return redis.call('client', 'id')
return redis.call('hello', 3)
return redis.call('auth', 'x')
redis.call('incr', 'str') return 1
foo = 1
return foo
return foo.bar
redis.foo = 1
redis.call = nil
string.upper = nil
_G.foo = 1
_G.redis = 1
KEYS = 'x'
function foo() end
getmetatable('').__index = 1
getmetatable('').foo = 1
setmetatable(_G, {})
setmetatable(redis, nil)
rawset(_G, 'a', 1)
rawset(redis, 'a', 1)
rawset(KEYS, 1, 1) return KEYS
print('x')
return io.time()
return io.open('x')
return require('x')
dofile('x')
loadfile('x')
newproxy()
getfenv(1)
setfenv(1, {})
local x = debug.getinfo(1)
return package
return redis.sha1hex()
return redis.sha1hex(1, 2)
return redis.log(redis.LOG_NOTICE)
return redis.log(9, 'a')
return redis.log('a', 'a')
return redis.setresp()
return redis.setresp(4)
return redis.setresp('x')
return redis.set_repl()
return redis.set_repl(99)
return redis.set_repl(-1)
return redis.set_repl(4)
return redis.set_repl(3, 3)
return redis.set_repl(2^32 + 1)
return redis.set_repl(0/0)
return redis.acl_check_cmd()
return redis.acl_check_cmd('nosuch')
return redis.acl_check_cmd('set', {})
return redis.register_function('a', function() end)
return loadstring('return foo')()
retur 1
return (
return 'x
return string.rep()
return ('x'):foo()
return nil .. 'a'
return {} + 1
return #nil
local t = nil t.x = 1
local function f() return f() + 1 end return f()
coroutine.yield(1)
local a = 1\\n\\nreturn redis.call('nosuch')
local function f()\\n redis.call('incr', 'str')\\nend\\nf()
"""


def scripts(text):
    return [line.replace("\\n", "\n") if "\\nreturn" in line or ")\\n" in line else line.replace("\\\\", "\\")
            for line in text.strip().split("\n")]




@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.parametrize("script", scripts(VALUES) + scripts(ERRORS))
def test_one_script(server, oracle, proto, script):
    pair = Pair(server, oracle, proto, DIFFERENCES, PRELUDE)
    pair.check([[b"EVAL", script.encode(), b"0"], [b"GET", b"k"]], 0, pipelined=False)


READ_ONLY = """
'publish', 'c', 'm'
'spublish', 'c', 'm'
'pfcount', 'nokey'
'pfcount'
'pfmerge', 'a', 'b'
'set', 'str', 'y'
'getex', 'str'
'getdel', 'str'
'sort', 'list', 'alpha'
'sort_ro', 'list', 'alpha'
'georadius', 'g', 1, 1, 1, 'm'
'georadius_ro', 'g', 1, 1, 1, 'm'
'xread', 'streams', 'stream', '0'
'xreadgroup', 'group', 'g', 'c', 'streams', 'stream', '>'
'bitfield', 'str', 'get', 'u8', 0
'bitfield_ro', 'str', 'get', 'u8', 0
'function', 'flush'
'touch', 'str'
'object', 'freq', 'str'
'get', 'str'
""".strip().split("\n")


@pytest.mark.parametrize("command", READ_ONLY)
@pytest.mark.parametrize("call", ["call", "pcall"])
def test_what_scripts_that_only_read_may_call(server, oracle, command, call):
    """Also what changes nothing here, and is sent to replicas all the same: PUBLISH, PFCOUNT."""
    body = "return redis.%s(%s)" % (call, command)
    library = "#!lua name=ro\nredis.register_function{function_name='no', flags={'no-writes'}, callback=" \
        "function() %s end} redis.register_function('may', function() %s end)" % (body, body)
    program = [("EVAL_RO", body, "0"), ("EVAL", "#!lua flags=no-writes\n" + body, "0"),
               ("EVAL", "#!lua\n" + body, "0"), ("EVAL", body, "0"), ("EVAL_RO", "#!lua\n" + body, "0"),
               ("EVAL_RO", "#!lua flags=no-writes\n" + body, "0"), ("FUNCTION", "LOAD", "REPLACE", library),
               ("FCALL", "no", "0"), ("FCALL_RO", "no", "0"), ("FCALL", "may", "0"), ("FCALL_RO", "may", "0"),
               ("FUNCTION", "FLUSH"), ("GET", "str")]
    prelude = PRELUDE + [("XADD", "stream", "1-1", "f", "v"), ("XGROUP", "CREATE", "stream", "g", "0")]
    words = [[w.encode() for w in line] for line in program]
    Pair(server, oracle, 2, DIFFERENCES, prelude).check(words, 0, pipelined=False)


BLOCK = """
'xread', 'streams', 'stream', '$'
'xread', 'block', 0, 'streams', 'stream', '$'
'XREAD', 'BLOCK', 10, 'STREAMS', 'stream', '0'
'xread', 'block', 'x', 'streams', 'stream', '0'
'xread', 'block', '-1', 'streams', 'stream', '0'
'xread', 'block'
'xread', 'count', 1, 'block', 0, 'streams', 'str', '0'
'xread', 'count', 'x', 'block', 0, 'streams', 'stream', '0'
'xread', 'streams', 'block', '0'
'xreadgroup', 'group', 'g', 'c', 'streams', 'stream', '>'
'XreadGroup', 'group', 'g', 'c', 'block', 0, 'streams', 'stream', '>'
'xreadgroup', 'block', 0, 'group', 'nosuch', 'c', 'streams', 'stream', '>'
'xreadgroup', 'group', 'g', 'c', 'block', '-1', 'streams', 'stream', '>'
'xreadgroup', 'group', 'g', 'c', 'noack', 'block', 1, 'streams', 'stream', '0'
""".strip().split("\n")


@pytest.mark.parametrize("command", BLOCK)
def test_scripts_may_not_ask_to_block(server, oracle, command):
    """In a transaction it only never does."""
    prelude = [("XADD", "stream", "1-1", "f", "v"), ("XGROUP", "CREATE", "stream", "g", "0"), ("SET", "str", "x")]
    library = "#!lua name=b\nredis.register_function('f', function() return redis.call(%s) end)" % command
    program = [("EVAL", "return redis.%s(%s)" % (call, command), "0") for call in ("call", "pcall")]
    program += [("FUNCTION", "LOAD", "REPLACE", library), ("FCALL", "f", "0"), ("FUNCTION", "FLUSH"), ("MULTI",),
                ("EVAL", "return redis.pcall(%s)" % command, "0"),
                tuple(word.strip(" '") for word in command.split(",")), ("EXEC",),
                ("XINFO", "GROUPS", "stream")]
    words = [[w.encode() for w in line] for line in program]
    Pair(server, oracle, 2, DIFFERENCES, prelude).check(words, 0, pipelined=False)
