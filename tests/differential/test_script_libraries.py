"""The libraries of scripts through EVAL, to our server and to the oracle: what the unit tests of script/ cannot
see is the frozen environment that they live in there, and that a run leaves nothing for the next."""

import pytest

from lib.differential import Pair
from lib.differences import DIFFERENCES

pytestmark = pytest.mark.any_threads

SCRIPTS = r"""
return cjson.encode({1, 'a', {b = cjson.null}})
return cjson.decode('{"a": [1, 2.5, null, {"b": "c"}]}').a[4].b
return cjson.decode('[null]')[1] == cjson.null
return cjson.encode(redis.call('lrange', 'list', 0, -1))
return cjson.decode('[1')
return cjson.encode({[1] = 1, [100] = 2})
return cmsgpack.unpack(cmsgpack.pack({1, 2, {3, 'x'}}))
return cmsgpack.pack({a = 1}, 'b', 1.5)
return {cmsgpack.unpack_one(cmsgpack.pack(1, 2, 3), 1)}
return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2)}
return cmsgpack.unpack('\193')
return struct.pack('>I2i4', 1, -1)
return {struct.unpack('Bc0Lc0', struct.pack('Bc0Lc0', 3, 'abc', 4, 'defg'))}
return struct.pack('I99', 1)
return {bit.band(7, 3), bit.bor(1, 2), bit.tohex(255, 4), bit.lshift(1, 31)}
return bit.tohex(65535, -2147483647)
return {string.gsub('hello world', '(%w+)', '<%1>')}
return ('%d items'):format(3)
return ('x'):rep(10):upper()
return {('key=value'):match('(%w+)=(%w+)')}
local t = {3, 1, 2} table.sort(t) return t
local t = {} for w in ('a b c'):gmatch('%a') do table.insert(t, w) end return table.concat(t, ',')
return {unpack({1, 2, 3}, 2)}
table.insert(string, 1)
table.insert(redis, 'x')
table.insert(_G, 1, 'x')
table.insert(cjson, 'x')
return table.remove(string)
table.sort(cjson) return 1
cjson.encode = nil
cmsgpack.x = 1
struct.pack = nil
bit.band = 1
math.random = function() return 4 end
table.concat = nil
rawset(cjson, 'a', 1)
rawset(math, 'random', 1)
setmetatable(struct, {})
local n = 0 for k in pairs(bit) do n = n + 1 end return n
local n = 0 for k in pairs(cjson) do n = n + 1 end return n
local n = 0 for k in pairs(math) do n = n + 1 end return n
local n = 0 for k in pairs(table) do n = n + 1 end return n
return next(struct) ~= nil
return type(rawget(string, 'rep'))
math.randomseed(7) return {math.random(1000), math.random(1000), tostring(math.random())}
return math.random(0)
return math.random(1, 2, 3)
""".strip().split("\n")


@pytest.mark.parametrize("script", SCRIPTS)
def test_library(server, oracle, script):
    pair = Pair(server, oracle, 2, DIFFERENCES, [("RPUSH", "list", "a", "b", "c")])
    pair.check([[b"EVAL", script.encode(), b"0"]], 0, pipelined=False)


# What one script sets for itself ends with it; the oracle lets it go on for everybody.
@pytest.mark.parametrize("leave, look, expected", [
    ("cjson.encode_number_precision(3)", "return cjson.encode(3.14159)", b"3.14159"),
    ("cjson.encode_max_depth(1)", "return cjson.encode({{{}}})", b"[[{}]]"),
    ("cjson.decode_max_depth(1)", "return #cjson.decode('[[[]]]')", 1),
    ("cjson.encode_invalid_numbers(true)", "return {cjson.encode_invalid_numbers()}", [None]),
    ("cjson.decode_invalid_numbers(false)", "return cjson.decode('[0x10]')[1]", 16),
    ("cjson.encode_sparse_array(true)", "return {cjson.encode_sparse_array()}", [None, 2, 10]),
])
def test_a_script_leaves_no_settings(client, leave, look, expected):
    client.call("EVAL", leave, 0)
    assert client.call("EVAL", look, 0) == expected


def test_a_seed_is_the_script_s_own(client):
    draw = "return {tostring(math.random()), tostring(math.random())}"
    seeded = [client.call("EVAL", "math.randomseed(5) " + draw, 0) for _ in range(2)]
    assert seeded[0] == seeded[1]
    free = [client.call("EVAL", draw, 0) for _ in range(3)]
    assert len({value for pair in free + seeded[:1] for value in pair}) == 8
