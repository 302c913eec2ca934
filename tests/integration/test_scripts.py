"""Scripts and functions: what they may do, whom they may disturb, and how they are ended."""

import hashlib

import pytest

from lib.bounds import eventually
from lib.resp import Error, Malformed
from lib.seeds import generator
from lib.workers import run_workers

pytestmark = pytest.mark.one_thread("a busy script serves the others from its own thread")

BUSY = b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
BUSY_FUNCTION = b"BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
SHA1_OF_A = hashlib.sha1(b"a").hexdigest().encode()
THRESHOLD = {"busy-reply-threshold": "100"}

# Scripts that never end, and defend themselves.
SHAPES = """
while true do end
repeat until false
for i = 1, 1e18 do end
local function f() return f() end f()
while true do pcall(function() while true do end end) end
while true do xpcall(function() while true do end end, function() while true do end end) end
xpcall(function() while true do end end, function() while true do end end)
local function f() return pcall(f) end while true do f() end
while true do local a = {} a[1] = 1 end
while true do local s = string.rep('x', 1000000) end
while true do local s = ('x'):rep(100) .. 'y' end
local t = {} for i = 1, 10000 do t[i] = i % 7 end while true do table.sort(t) end
local t = {} for i = 1, 10000 do t[i] = i % 7 end while true do table.sort(t, function(a, b) return a < b end) end
local t = {} for i = 1, 10000 do t[i] = 'x' end while true do table.concat(t) end
while true do string.gsub('aaaaaaaaaa', 'a', function() end) end
while true do string.find(string.rep('a', 3000), string.rep('a*', 100) .. 'b') end
string.find(string.rep('a', 30000), '.-.-.-.-.-.-.-b')
while true do for w in string.gmatch('a b c', '%a') do end end
while true do string.format('%s %d %f', 'x', 1, 2.5) end
while true do unpack({1, 2, 3}) end
while true do loadstring('return 1')() end
while true do redis.sha1hex('abc') end
while true do redis.call('get', 'x') end
while true do redis.pcall('nosuch') end
while true do redis.pcall({}) end
while true do local t = setmetatable({}, {__index = function(t, k) return k end}) local x = t[1] end
local co = coroutine.wrap(function() while true do end end) co()
while true do coroutine.wrap(function() for i = 1, 1000 do end end)() end
while true do pcall(coroutine.wrap(function() while true do pcall(function() while true do end end) end end)) end
while true do coroutine.resume(coroutine.create(function() while true do end end)) end
local f f = function() coroutine.wrap(f)() end while true do pcall(f) end
while true do cjson.decode(cjson.encode({1, 2, {a = 'b'}})) end
while true do cmsgpack.unpack(cmsgpack.pack({1, 2, {a = 'b'}})) end
while true do struct.unpack('>I4', struct.pack('>I4', 1)) end
while true do collectgarbage() end
local t = {} while true do t[#t + 1] = string.rep('x', 100000) .. #t end
""".strip().split("\n")


def begin(connect, server, script, *words):
    """A client whose script runs, and takes long."""
    client = connect(to=server)
    client.send(*(words or ("EVAL", script, "0")))
    with server.connect() as other:
        eventually(lambda: isinstance(other.call("GET", "nokey"), Error), "the script is noticed")
    return client


def end(server, client, text=b"Script killed by user"):
    """The script runs, or is about to: its request has been sent."""
    with server.connect() as killer:
        eventually(lambda: killer.call("SCRIPT", "KILL") == b"OK", "there is a script to kill")
    reply = client.read()
    assert isinstance(reply, Error) and text in reply, reply


@pytest.fixture(scope="module")
def patient(threads):
    """A server for scripts that take long, for all of them."""
    from lib.server import Server
    server = Server(None, threads, THRESHOLD).start()
    yield server
    server.stop()
    problems = server.problems()
    server.remove()
    assert not problems, problems


@pytest.mark.parametrize("script", SHAPES)
def test_every_script_can_be_ended(patient, connect, script, ours_only):
    before = connect(to=patient)
    before.ok("SET", "here", "x")
    client = begin(connect, patient, script)
    # Those who were there before, on whatever thread, and those who come.
    assert before.error("GET", "here") == BUSY
    assert before.error("PING") == BUSY
    for _ in range(4):
        with patient.connect() as late:
            assert late.error("SET", "here", "y") == BUSY
    end(patient, client)
    assert before.call("GET", "here") == b"x"
    assert client.call("EVAL", "return 1", "0") == 1


def test_many_clients_are_answered_while_a_script_runs(patient, connect, ours_only):
    clients = [connect(to=patient) for _ in range(40)]
    client = begin(connect, patient, "while true do end")
    for _ in range(3):
        for c in clients:
            c.send_raw(b"".join([b"*1\r\n$4\r\nPING\r\n"] * 5))
        for c in clients:
            for _ in range(5):
                assert c.read() == Error(BUSY)
    end(patient, client)
    for c in clients:
        assert c.call("PING") == b"PONG"


def test_clients_of_the_same_moment_are_answered(patient, connect, ours_only):
    """Requests that came together with the script's, of the same batch perhaps."""
    clients = [connect(to=patient) for _ in range(30)]
    for round_ in range(5):
        script = connect(to=patient)
        for at, c in enumerate(clients):
            if at == len(clients) // 2:
                script.send("EVAL", "while true do end", "0")
            c.send_raw(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
        for c in clients:
            got = [c.read(), c.read()]
            assert got[0] in (None, b"v", Error(BUSY)) and got[1] in (b"OK", Error(BUSY)), got
        end(patient, script)


def test_what_may_be_asked_while_a_script_runs(patient, connect, ours_only):
    watcher = connect(to=patient)
    queued = connect(to=patient)
    queued.ok("MULTI")
    assert queued.call("SET", "queued", "v") == b"QUEUED"
    client = begin(connect, patient, "while true do end")
    with patient.connect() as c:
        assert c.error("EVAL", "return 1", "0") == BUSY
        assert c.error("CONFIG", "GET", "maxmemory") == BUSY
        assert c.error("FUNCTION", "KILL") == BUSY
        assert c.error("FUNCTION", "STATS") == BUSY
        assert c.error("SHUTDOWN") == BUSY
        assert c.error("SHUTDOWN", "SAVE") == BUSY
        c.ok("WATCH", "k")
        c.ok("MULTI")
        assert c.error("GET", "k") == BUSY
        assert c.error("EXEC").startswith(b"EXECABORT Transaction discarded because of: BUSY")
        c.hello(3)
    assert queued.error("EXEC").startswith(b"EXECABORT Transaction discarded because of: BUSY")
    assert watcher.error("PUBLISH", "c", "m") == BUSY
    end(patient, client)
    assert queued.error("EXEC") == b"ERR EXEC without MULTI"
    assert watcher.call("GET", "queued") is None


def test_a_script_that_has_written_goes_on(make_server, connect, ours_only):
    server = make_server(THRESHOLD)
    client = begin(connect, server, "redis.call('set', 'k', 'v') while true do end")
    with server.connect() as c:
        assert c.error("SCRIPT", "KILL").startswith(b"UNKILLABLE Sorry the script already executed write")
        assert c.error("GET", "k") == BUSY
        c.send("SHUTDOWN", "NOSAVE")
        c.read_to_end()
    assert server.wait_exit() == 0
    client.close()


def test_a_script_in_a_transaction_can_be_ended(patient, connect, ours_only):
    client = connect(to=patient)
    client.send_raw(b"".join(client_words(*w) for w in
                             (("MULTI",), ("SET", "t", "1"), ("EVAL", "while true do end", "0"),
                              ("SET", "t", "2"), ("EXEC",))))
    other = connect(to=patient)
    eventually(lambda: isinstance(other.call("GET", "nokey"), Error), "the script is noticed")
    other.ok("SCRIPT", "KILL")
    replies = [client.read() for _ in range(5)]
    assert replies[:4] == [b"OK"] + [b"QUEUED"] * 3
    assert replies[4][0] == b"OK" and b"killed" in replies[4][1] and replies[4][2] == b"OK"
    assert other.call("GET", "t") == b"2"


def client_words(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)


def test_functions_are_ended_by_their_own_command(patient, connect, ours_only):
    with patient.connect() as c:
        c.call("FUNCTION", "LOAD", "REPLACE", "#!lua name=forever\nredis.register_function('forever',"
                                              " function(k, a) while true do end end)")
    client = begin(connect, patient, None, "FCALL", "forever", "1", "a", "b")
    with patient.connect() as c:
        assert c.error("GET", "k") == BUSY_FUNCTION
        assert c.error("SCRIPT", "KILL") == BUSY_FUNCTION
        running = c.call("FUNCTION", "STATS")[1]
        assert running[:4] == [b"name", b"forever", b"command", [b"FCALL", b"forever", b"1", b"a", b"b"]]
        assert running[5] >= 100
        c.ok("FUNCTION", "KILL")
    assert b"killed" in client.read()
    with patient.connect() as c:
        assert c.error("FUNCTION", "KILL") == b"NOTBUSY No scripts in execution right now."
        assert c.call("FUNCTION", "STATS")[1] is None


def test_loading_takes_a_bounded_time(client, ours_only):
    error = client.error("FUNCTION", "LOAD", "#!lua name=x\nwhile true do end")
    assert b"FUNCTION LOAD timeout" in error
    assert client.call("FUNCTION", "LIST") == []


def test_waits_end_on_time_beside_a_script(patient, connect, ours_only):
    """Blocked clients, expiry and closed connections have to wait for the lock; nobody else for them."""
    blocked = [connect(to=patient) for _ in range(8)]
    for c in blocked:
        c.send("BLPOP", "nolist", "0.05")
    expiring = connect(to=patient)
    expiring.ok("SET", "short", "x", "PX", "50")
    watching = [patient.connect() for _ in range(8)]
    for c in watching:
        c.ok("WATCH", "k")
    client = begin(connect, patient, "while true do end")
    for c in watching:
        c.close()
    for _ in range(8):
        with patient.connect() as c:
            assert c.error("PING") == BUSY
    end(patient, client)
    for c in blocked:
        assert c.read() is None
    assert expiring.call("GET", "short") is None


# ---- the sandbox


def state_of(client):
    """All that a script can reach, as text: names, kinds of values, and values."""
    return client.call("EVAL", """
        local seen, out = {}, {}
        local function walk(path, value)
            local kind = type(value)
            out[#out + 1] = path .. ':' .. kind .. ((kind == 'string' or kind == 'number') and tostring(value) or '')
            if kind == 'table' and not seen[value] then
                seen[value] = true
                local names = {}
                for k in pairs(value) do names[#names + 1] = tostring(k) end
                table.sort(names)
                for _, k in ipairs(names) do walk(path .. '.' .. k, rawget(value, k) or value[k]) end
                if getmetatable(value) then walk(path .. '!', getmetatable(value)) end
            end
        end
        walk('_G', _G)
        walk('strings', getmetatable(''))
        local hidden = {'io', 'package', 'debug', 'require', 'dofile', 'loadfile', 'newproxy', 'print',
                        'getfenv', 'setfenv', 'module'}
        for _, name in ipairs(hidden) do
            if rawget(_G, name) ~= nil then out[#out + 1] = 'HIDDEN ' .. name end
        end
        return table.concat(out, '\\n')""", "0")


ATTACKS = """
redis.call = function() return 'evil' end
rawset(redis, 'call', 1)
rawset(_G, 'evil', 1)
_G.evil = 1
evil = 1
string.upper = string.lower
rawset(string, 'upper', string.lower)
getmetatable('').__index = function() return 'evil' end
rawset(getmetatable(''), '__index', {})
setmetatable(_G, {__index = function() return 'evil' end})
setmetatable(redis, {__index = function() return 'evil' end})
setmetatable(getmetatable(''), {})
table.insert(redis, 'evil')
table.insert(_G, 'evil')
table.insert(KEYS, redis)
table.sort(redis)
table.remove(redis)
table.setn(redis, 5)
for k, v in pairs(_G) do pcall(rawset, _G, k, 1) end
for k, v in pairs(redis) do redis[k] = nil end
for k, v in next, string do string[k] = nil end
local mt = getmetatable(_G) if mt then mt.__index = nil mt.__newindex = nil end
local mt = getmetatable(redis) if mt then mt.__index = nil mt.__newindex = nil end
cjson.encode = 1
cjson.encode_max_depth(1)
cjson.encode_sparse_array(true, 1, 1)
cjson.encode_keep_buffer(false)
cjson.decode_max_depth(1)
cjson.encode_number_precision(3)
cjson.encode_invalid_numbers(true)
math.randomseed(5)
math.random = 1
math.pi = 3
collectgarbage('stop')
collectgarbage('setpause', 1000)
KEYS[1] = 'evil' ARGV.x = 1
KEYS = {}
_VERSION = 'evil'
redis.setresp(3)
coroutine.wrap = nil
local f = loadstring('evil = 1') f()
loadstring('string.x = 1')()
local co = coroutine.create(function() _G.evil = 1 end) coroutine.resume(co)
xpcall(function() error('x') end, function() _G.evil = 1 end)
setmetatable({}, {__gc = function() _G.evil = 1 end}) collectgarbage()
error(redis)
error(setmetatable({}, {__index = redis}))
return redis
bit.band = nil struct.pack = nil cmsgpack.pack = nil
os.clock = nil
local t = redis t.evil = 1
string.dump(function() end)
redis.call('select', 1)
""".strip().split("\n")


@pytest.mark.any_threads
def test_nothing_of_one_script_is_left_for_the_next(client, ours_only):
    client.call("SCRIPT", "FLUSH")
    before = state_of(client)
    assert b"HIDDEN" not in before and b"evil" not in before
    for attack in ATTACKS:
        client.call("EVAL", attack, "1", "key", "arg")
        client.call("EVAL", "return pcall(function() %s end)" % attack, "0")
        assert state_of(client) == before, attack
    assert client.call("EVAL", "return {redis.sha1hex('a'), ('x'):upper(), #KEYS, cjson.encode({1})}", "0") == \
        [SHA1_OF_A, b"X", 0, b"[1]"]


@pytest.mark.any_threads
def test_functions_are_kept_apart_too(client, ours_only):
    code = "#!lua name=l%d\nredis.register_function('f%d', function(keys, args) %s end)"
    for at, attack in enumerate(ATTACKS):
        client.call("FUNCTION", "LOAD", code % (at, at, attack.replace("KEYS", "keys")))
        client.call("FCALL", "f%d" % at, "0")
    client.call("FUNCTION", "LOAD", code % (999, 999, "return {('x'):upper(), redis.sha1hex('a'), cjson.encode({1})}"))
    assert client.call("FCALL", "f999", "0") == [b"X", SHA1_OF_A, b"[1]"]
    assert client.call("EVAL", "return ('x'):upper()", "0") == b"X"


@pytest.mark.any_threads
def test_sources_are_looked_at_before_they_are_parsed(client, ours_only):
    for source in ("\x1bLua", "#!lua\n\x1bLua"):
        error = client.error("EVAL", source, "0")
        assert error.startswith(b"ERR Error compiling script"), error
    for level in (10, 100, 101, 10000, 1000000):
        text = "return [%s[x]%s]" % ("=" * level, "=" * level)
        reply = client.call("EVAL", text, "0")
        assert reply == b"x" if level <= 100 else isinstance(reply, Error)
    assert client.call("EVAL", "--" + "=" * 1000 + "\nreturn 1", "0") == 1
    for nested in ("(" * 300 + ")" * 300, "{" * 300 + "}" * 300, "do " * 300 + "end " * 300, "x" * 100000,
                   "return " + "-" * 100000 + "1", "return " + "not " * 100000 + "1",
                   "local a" + ",a" * 300, "return function() " * 300, "a=" * 300, "[" * 1000, "[[", "[==[",
                   "'", "'\\", "\\", "return '\\999'", "\0", "return 1\0", "\xff", "return 0x", "return 1e",
                   "return ...", "goto x", "return a.b.c" + ".d" * 10000, "f" + "()" * 10000,
                   "local t = {" + "1," * 100000 + "}"):
        client.call("EVAL", nested, "0")
    for dump in ("return loadstring('\\27Lua')", "return load(function() return '\\27Lua' end)"):
        assert client.call("EVAL", "return {" + dump[7:] + "}", "0") in ([], [None])


@pytest.mark.any_threads
@pytest.mark.parametrize("script", [
    "local t = {} local x = t for i = 1, 10000 do x[1] = {} x = x[1] end return t",
    "local t = {} t[1] = t return t",
    "local t = {} t.map = t return t",
    "local t = {map = {}} t.map.a = t return t",
    "redis.call('set', unpack({}, 1, 7000))",
    "local t = {} for i = 1, 1000000 do t[i] = 'x' end return redis.call('set', unpack(t))",
    "local t = {} for i = 1, 1000000 do t[i] = 'x' end return t[1000000]",
    "return unpack({}, 1, 2147483647)",
    "return unpack({}, -2147483648, 2147483647)",
    "local function f() return f() + 1 end return f()",
    "local f f = function() return coroutine.wrap(f)() end return f()",
    "local f f = function() return pcall(f) end return {f()}",
    "local f f = function(n) return table.sort({1, 2, 3}, f) end f()",
    "local f f = function(n) return string.gsub('x', 'x', f) end f()",
    "local mt = {} mt.__index = function(t, k) return t[k .. 'x'] end return setmetatable({}, mt).a",
    "local mt = {} mt.__tostring = function(t) return tostring(t) end return tostring(setmetatable({}, mt))",
    "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x",
    "return string.rep('x', 1e9)",
    "return string.rep('x', -1)",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} while true do t[#t + 1] = string.rep(string.char(#t % 256, #t / 256), 500000) end",
    "return cjson.decode(string.rep('[', 100000))",
    "return string.find(string.rep('a', 100000), string.rep('a?', 100000) .. string.rep('a', 100000))",
    "return string.format('%99999d', 1)",
    "return ('x'):rep(100, 5)",
    "return tostring(nil) .. tostring({}):sub(1, 5)",
    "coroutine.resume(coroutine.running() or 1)",
    "local co co = coroutine.create(function() return coroutine.resume(co) end) return {coroutine.resume(co)}",
    "local co = coroutine.wrap(function() error({}) end) co()",
    "error(setmetatable({}, {__index = function() error('x') end}))",
    "error({})",
    "error({err = {}})",
    "error({err = 'a', source = {}, line = {}})",
    "return {err = setmetatable({}, {__tostring = function() error('x') end})}",
    "return setmetatable({}, {__index = function() error('x') end})",
    "return {double = {}, map = 1, set = 2}",
    "return {verbatim_string = {format = 'much too long', string = 'x'}}",
    "return {big_number = 'a\\r\\n+OK\\r\\n'}",
    "return {ok = 'a\\r\\n+OK\\r\\n'}",
    "return {err = 'a\\r\\n+OK\\r\\n'}",
    "return redis.error_reply('a\\r\\n+OK\\r\\n')",
    "return redis.pcall('a\\r\\n+OK\\r\\n')",
    "return redis.call('set', 'a\\r\\n', 'b', 'c\\r\\n+OK')",
    "redis.log(redis.LOG_DEBUG, 'a\\r\\nb\\0c')",
    "redis.log(redis.LOG_DEBUG, unpack({}, 1, 200))",
    "return #redis.sha1hex(string.rep('x', 10000000))",
    "return bit.tohex(65535, -2147483648)",
])
def test_hostile_scripts(client, connect, script):
    """The server lives, other connections are not touched, and this one stays in step unless the reply
    itself is too deep (or no number) for our strict client."""
    for proto in (2, 3):
        hostile = connect(proto)
        try:
            hostile.call("EVAL", script, "0")
            assert hostile.call("EVAL", "return 'alive'", "0") == b"alive"
        except Malformed as trouble:
            assert "deep" in str(trouble) or "integer" in str(trouble), trouble
        assert client.call("EVAL", "return 'alive'", "0") == b"alive"


def test_memory_of_scripts_is_given_back(client, ours_only):
    for _ in range(3):
        client.call("EVAL", "local t = {} for i = 1, 1000000 do t[i] = {i} end return #t", "0")
    info = client.call("INFO", "memory").decode()
    used = int(info.split("used_memory_vm_eval:")[1].split("\r\n")[0])
    assert used < 20 << 20


# ---- identity


@pytest.mark.any_threads
def test_the_callers_rights_hold_inside(client, connect):
    client.call("ACL", "SETUSER", "bob", "on", "nopass", "~a*", "+eval", "+get", "+fcall", "&c")
    bob = connect()
    bob.ok("AUTH", "bob", "x")
    call = "return redis.call(unpack(ARGV))"
    assert bob.call("EVAL", call, "0", "get", "ab") is None
    assert bob.error("EVAL", call, "0", "get", "b").startswith(b"ERR ")
    assert bob.error("EVAL", call, "0", "set", "a", "1").startswith(b"ERR ")
    assert bob.error("EVAL", call, "0", "publish", "d", "m").startswith(b"ERR ")
    allowed = "return redis.acl_check_cmd(unpack(ARGV)) and 'yes' or 'no'"
    for words, answer in ((("get", "ab"), b"yes"), (("get", "b"), b"no"), (("set", "a", "1"), b"no"),
                          (("publish", "c", "m"), b"no")):
        assert bob.call("EVAL", allowed, "0", *words) == answer
    assert bob.error("EVAL", "return 1", "1", "b").startswith(b"NOPERM")
    log = client.call("ACL", "LOG")
    contexts = {bytes(entry[5]) for entry in log}
    assert b"lua" in contexts


@pytest.mark.any_threads
def test_denials_are_told_as_by_7_2(client, connect, ours_only):
    client.call("ACL", "SETUSER", "bob", "on", "nopass", "~a*", "+eval", "+get")
    bob = connect()
    bob.ok("AUTH", "bob", "x")
    assert bob.call("EVAL", "return redis.pcall('set', 'a', 1).err", "0") == \
        b"ERR ACL failure in script: User bob has no permissions to run the 'set' command"
    assert bob.call("EVAL", "return redis.pcall('get', 'b').err", "0") == \
        b"ERR ACL failure in script: No permissions to access a key"


@pytest.mark.any_threads
def test_the_session_is_as_before(client):
    client.ok("SELECT", "3")
    assert client.call("EVAL", "redis.call('select', 5) redis.call('set', 'k', 'v') return redis.call('get', 'k')",
                       "0") == b"v"
    assert client.call("GET", "k") is None
    client.ok("SELECT", "5")
    assert client.call("GET", "k") == b"v"
    client.call("EVAL", "redis.call('select', 6) error('x')", "0")
    assert client.call("GET", "k") == b"v"
    client.call("EVAL", "redis.setresp(3)", "0")
    assert client.call("EVAL", "return true", "0") == 1


def test_monitors_see_the_script_before_its_commands(client, connect):
    monitor = connect()
    monitor.ok("MONITOR")
    client.call("EVAL", "redis.call('set', 'a', 1) return redis.pcall('nosuch')", "0")
    client.call("PING")
    lines = [monitor.read().split(b"]")[0].split(b"[")[1] + monitor_words for monitor_words in [b""] * 3]
    assert lines[1] == b"0 lua" and lines[0] != b"0 lua" and lines[2] != b"0 lua"


@pytest.mark.any_threads
def test_statistics(client):
    client.ok("CONFIG", "RESETSTAT")
    client.call("SET", "s", "x")
    client.call("EVAL", "redis.call('incr', 's')", "0")
    client.call("EVAL", "redis.pcall('nosuch')", "0")
    client.call("EVAL", "return foo", "0")
    stats = dict(line.split(":") for line in client.call("INFO", "commandstats").decode().split() if ":" in line)
    assert "calls=3" in stats["cmdstat_eval"] and "failed_calls=2" in stats["cmdstat_eval"]
    assert "calls=1" in stats["cmdstat_incr"] and "failed_calls=1" in stats["cmdstat_incr"]
    errors = client.call("INFO", "errorstats")
    assert b"errorstat_ERR:count=3" in errors


def test_the_cache(client, connect):
    sha = client.call("SCRIPT", "LOAD", "return 7")
    other = connect()
    assert other.call("EVALSHA", sha.upper(), "0") == 7
    assert other.call("SCRIPT", "EXISTS", sha, "a" * 40, "x") == [1, 0, 0]
    client.ok("SCRIPT", "FLUSH")
    assert other.error("EVALSHA", sha, "0").startswith(b"NOSCRIPT")
    client.call("EVAL", "return 7", "0")
    assert other.call("EVALSHA", sha, "0") == 7


def test_writes_of_scripts_wake_who_waits(client, connect):
    waiter = connect()
    waiter.send("BLPOP", "q", "0")
    eventually(lambda: b"blocked_clients:1" in client.call("INFO", "clients"), "it waits")
    assert client.call("EVAL", "redis.call('rpush', 'q', 'a', 'b') return redis.call('llen', 'q')", "0") == 2
    assert waiter.read() == [b"q", b"a"]
    assert client.call("LRANGE", "q", "0", "-1") == [b"b"]


def test_invalidations_of_scripts(client, connect):
    reader = connect(proto=3)
    reader.ok("CLIENT", "TRACKING", "ON")
    client.ok("SET", "k", "1")
    assert reader.call("EVAL", "return redis.call('get', 'k')", "0") == b"1"
    client.call("EVAL", "redis.call('set', 'k', 2)", "0")
    push = reader.read_frame()
    assert b"invalidate" in repr(push).encode() and b"k" in repr(push).encode()


# ---- scripts beside other things


def test_scripts_and_transactions_see_the_same_total(server, client):
    accounts = ["{bank}%d" % n for n in range(5)]
    client.ok("MSET", *[w for a in accounts for w in (a, "1000")])
    move = """local a, b, n = KEYS[1], KEYS[2], ARGV[1]
              redis.call('decrby', a, n)
              redis.call('incrby', b, n)
              local sum = 0
              for i = 0, 4 do sum = sum + redis.call('get', '{bank}' .. i) end
              return sum"""

    def work(c, number):
        random = generator(number)
        for _ in range(100):
            source, target = random.sample(accounts, 2)
            amount = str(random.randint(1, 50))
            kind = (number + random.randint(0, 1)) % 3
            if kind == 0:
                assert c.call("EVAL", move, "2", source, target, amount) == 5000
            elif kind == 1:
                c.ok("MULTI")
                for words in (["DECRBY", source, amount], ["INCRBY", target, amount], ["MGET"] + accounts):
                    assert c.call(*words) == b"QUEUED"
                assert sum(map(int, c.call("EXEC")[-1])) == 5000
            else:
                assert sum(map(int, c.call("MGET", *accounts))) == 5000

    run_workers(server.address(), work, 8)
    assert sum(map(int, client.call("MGET", *accounts))) == 5000


def test_flushes_loads_and_calls_on_all_threads(server, ours_only):
    def work(c, number):
        random = generator(number)
        for i in range(60):
            kind = random.randint(0, 7)
            name = random.randint(0, 3)
            if kind == 0:
                c.ok("SCRIPT", "FLUSH")
            elif kind == 1:
                c.call("FUNCTION", "LOAD", "REPLACE", "#!lua name=l%d\nredis.register_function('f%d', "
                                                      "function(k, a) return a[1] end)" % (name, name))
            elif kind == 2:
                c.call("FUNCTION", "DELETE", "l%d" % name)
            elif kind == 3:
                c.call("FUNCTION", "RESTORE", c.call("FUNCTION", "DUMP"), "REPLACE")
            elif kind == 4:
                assert c.call("FCALL", "f%d" % name, "0", "x") in (b"x", Error(b"ERR Function not found"))
            elif kind == 5:
                assert b"number_of_libraries" in c.call("INFO", "memory")
                c.call("FUNCTION", "STATS")
            else:
                assert c.call("EVAL", "return ARGV[1] .. %d" % i, "0", "x") == b"x%d" % i

    run_workers(server.address(), work, 8)


def test_kills_at_any_moment(patient, ours_only):
    """Kills that come before, while and after scripts run end those that run, and nothing else."""
    def work(c, number):
        random = generator(number)
        for _ in range(40):
            if number == 0:
                c.call("SCRIPT", "KILL")
            else:
                reply = c.call("EVAL", "for i = 1, tonumber(ARGV[1]) do end redis.call('incr', 'n')", "0",
                               str(random.choice([10, 10000, 1000000])))
                assert reply is None or isinstance(reply, Error) and \
                    (b"killed" in reply or reply.startswith(b"BUSY")), reply

    run_workers(patient.address(), work, 5)
    with patient.connect() as c:
        assert c.call("EVAL", "return 1", "0") == 1


@pytest.mark.any_threads
def test_expired_keys_and_time_stand_still(client):
    script = """redis.call('set', 'k', 'v', 'px', 1)
                local begin = redis.call('time')
                repeat local now = redis.call('time')
                until (now[1] - begin[1]) * 1000000 + now[2] - begin[2] > 5000 or true
                return redis.call('get', 'k')"""
    assert client.call("EVAL", script, "0") == b"v"


@pytest.mark.any_threads
def test_keydb_is_another_name_of_redis(client, ours_only):
    """One table with two names, wherever there is one: as frozen, and with nothing of its own."""
    assert client.call("EVAL", "return {keydb == redis, rawequal(keydb, redis), _G.keydb == redis}",
                       0) == [1, 1, 1]
    assert client.call("EVAL", "return keydb.call('ECHO', keydb.sha1hex('a'))", 0) == SHA1_OF_A
    for name in ("redis", "keydb"):
        assert b"Attempt to modify a readonly table" in client.error("EVAL", name + ".x = 1", 0)
        assert b"Attempt to modify a readonly table" in client.error(
            "EVAL", "rawset(%s, 'x', 1)" % name, 0)
        assert client.call("EVAL", "return %s.x" % name, 0) is None
    # While a library is loaded its own table of fewer functions has both names.
    client.call("FUNCTION", "LOAD", """#!lua name=both
local same = keydb == redis
keydb.register_function('same', function() return {same, keydb == redis, keydb.call == redis.call} end)
""")
    assert client.call("FCALL", "same", 0) == [1, 1, 1]
    assert b"Attempt to modify a readonly table" in client.error(
        "FUNCTION", "LOAD", "#!lua name=bad\nkeydb.x = 1")


@pytest.mark.any_threads
def test_breakpoints_without_debugger(client):
    """A script passes its breakpoints by, and hears that it did."""
    assert client.call("EVAL", "return {redis.breakpoint() == false, redis.debug('x') == nil}", 0) == [1, 1]
    assert client.call("EVAL", "redis.breakpoint() return redis.call('INCR', 'n')", 0) == 1
    client.ok("SCRIPT", "DEBUG", "NO")


@pytest.mark.any_threads
def test_many_scripts_are_told_apart(client):
    """More than are kept at hand, some of which say that they write nothing; flushed in between."""
    scripts = ["%s return {%d, #KEYS, ARGV[1] and redis.call('SET', KEYS[1], ARGV[1]).ok}" %
               ("#!lua flags=no-writes\n" if i % 3 == 0 else "", i) for i in range(400)]
    shas = [hashlib.sha1(script.encode()).hexdigest() for script in scripts]
    for _ in range(2):
        for what, names in (("EVAL", scripts), ("EVALSHA", shas), ("EVAL", scripts)):
            for i, name in enumerate(names):
                assert client.call(what, name, 0) == [i, 0]
                if i % 3 == 0:
                    assert b"not allowed from read-only" in client.error(what, name, 1, "k", "v")
                else:
                    assert client.call(what, name, 1, "k", "v") == [i, 1, b"OK"]
        client.ok("SCRIPT", "FLUSH")
        assert all(client.error("EVALSHA", sha, 0).startswith(b"NOSCRIPT") for sha in shas)
    assert client.error("EVAL", "return KEYS", "x")
    assert client.error("EVAL", "nonsense(", 0)
    assert client.call("EVAL", "return {KEYS[1] == nil, ARGV[1] == nil}", 0) == [1, 1]
