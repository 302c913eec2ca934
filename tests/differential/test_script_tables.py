"""What scripts and functions find: every name of every table that they can reach, with its type, beside
the oracle's; and while a library is loaded, each name by itself, since nothing can be walked there."""

import pytest

pytestmark = pytest.mark.any_threads

TABLES = ["redis", "string", "table", "math", "cjson", "cmsgpack", "bit", "struct", "coroutine", "os",
          "io", "debug", "package", "server"]
# One line for each name. _G's own names may be hidden (they are behind a metatable), hence by pcall.
DUMP = """
local function find(name)
    local ok, value = pcall(function() return _G[name] end)
    if not ok then value = nil end
    return value
end
local lines = {}
for name, value in pairs(_G) do lines[#lines + 1] = name .. ' ' .. type(value) end
for name in ('%s'):gmatch('%%S+') do
    local found = find(name)
    lines[#lines + 1] = name .. ' ' .. type(found)
    if type(found) == 'table' then
        for key, value in pairs(found) do
            local shown = type(value) == 'number' and ' ' .. value or ''
            lines[#lines + 1] = name .. '.' .. key .. ' ' .. type(value) .. shown
        end
    end
end
return lines
""" % " ".join(TABLES)

# What only one of them has, each with its reason.
OURS_ONLY = {
    "keydb table": "KeyDB's name of the table redis",
    "os table": "7.2 has os.clock, which 7.0 has not", "os.clock function": "the same",
    "redis.REDIS_VERSION_NUM number 459270": "the version",
}
THEIRS_ONLY = {
    "os nil": "as above",
    "redis.REDIS_VERSION_NUM number 458767": "the version",
    "string.dump function": "bytecode, which nothing here takes",
    "__redis__err__handler function": "a script that Redis itself is made of",
    "cmsgpack._COPYRIGHT string": "who wrote the library that Redis has",
    "cmsgpack._DESCRIPTION string": "the same",
}


def library(body):
    return "#!lua name=tables\n%s" % body


def lines(client, way):
    if way == "EVAL":
        return {line.decode() for line in client.call("EVAL", DUMP, 0)}
    client.call("FUNCTION", "LOAD", "REPLACE", library(
        "redis.register_function('dump', function() %s end)" % DUMP))
    return {line.decode() for line in client.call("FCALL", "dump", 0)}


@pytest.mark.parametrize("way", ["EVAL", "FCALL"])
def test_names(server, oracle, way):
    with server.connect() as ours, oracle.connect() as theirs:
        mine, its = lines(ours, way), lines(theirs, way)
    assert len(mine) > 100
    assert mine - its - set(OURS_ONLY) == set()
    assert its - mine - set(THEIRS_ONLY) == set()


def test_names_while_loading(server, oracle):
    """Each name that scripts have, in the body of a library."""
    with server.connect() as ours, oracle.connect() as theirs:
        names = {line.split()[0] for line in lines(theirs, "EVAL") | lines(ours, "EVAL")}
        for name in sorted(names - {"keydb", "os", "os.clock"}):
            body = library("local x = %s\nredis.register_function('f', function() return type(x) end)" % name)
            mine, its = [(c.call("FUNCTION", "LOAD", "REPLACE", body), c.call("FCALL", "f", 0))
                         for c in (ours, theirs)]
            assert mine == its, name


CALLS = ["redis.breakpoint()", "return redis.breakpoint()", "return {redis.breakpoint(1, 2), 1}",
         "return redis.debug('x')", "return {redis.debug('x', 1, {}), 1}", "return redis.debug()",
         "return select('#', redis.debug('x'))", "return select('#', redis.breakpoint())",
         "return redis.replicate_commands()", "return redis.set_repl(redis.REPL_ALL)",
         "redis.breakpoint = 1", "return redis.nothing"]


@pytest.mark.parametrize("call", CALLS)
def test_calls(server, oracle, call):
    """In a script, in a function, and while a library is loaded."""
    body = library("redis.register_function('f', function() %s end)" % call)
    loading = library("(function() %s end)()\nredis.register_function('f', function() end)" % call)
    with server.connect() as ours, oracle.connect() as theirs:
        for way in (["EVAL", call, 0], ["FUNCTION", "LOAD", "REPLACE", body], ["FCALL", "f", 0],
                    ["FUNCTION", "LOAD", "REPLACE", loading]):
            assert ours.call(*way) == theirs.call(*way), way
