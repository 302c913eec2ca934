"""keydb-cli --ldb with our server, and each of the two beside Debian's redis-cli and redis-server 7.0.15: the same
lines typed, the same lines printed, on pipes to the byte and on a pseudo-terminal answer by answer."""

import re

import pytest

from lib.cli import CLI, THEIRS, Prompt, cli, run

SCRIPT = """local a = 1
redis.call('set', KEYS[1], ARGV[1])
redis.breakpoint()
redis.debug('here', a)
local s = string.rep('x', 300)
return {a, redis.call('get', KEYS[1])}
"""

TYPED = ["s", "s", "p", "p KEYS", "list", "b 6", "b", "l 2 1", "c", "e 1 + 1", "eval 'a  b' .. \"c\"", "e 'x",
         "p s", "r get k", "redis lpush k x", "nonsense", "t", "maxlen", "m 0", "s", "b 0"]


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "s.lua"
    path.write_text(SCRIPT)
    return path


def pairs(server, oracle):
    """Name of the pair, program, port."""
    return [("theirs with theirs", THEIRS, oracle.port), ("theirs with ours", THEIRS, server.port),
            ("ours with theirs", CLI, oracle.port), ("ours with ours", CLI, server.port)]


def plain(text, port):
    text = re.sub(rb"0x[0-9a-f]+", b"0x0", text).replace(b"redis-cli", b"keydb-cli")
    return text.replace(b":%d" % port, b":PORT")


def all_the_same(server, oracle, *args, stdin=b"", env=None):
    """The outcome of redis-cli with redis-server, which is that of all pairs."""
    wanted = None
    for name, program, port in pairs(server, oracle):
        got = run(program, ["-p", port, *args], stdin, env)
        got.out, got.err = plain(got.out, port), plain(got.err, port)
        wanted = wanted or got
        assert got == wanted, "%s: %r\nwanted %r" % (name, got, wanted)
    return wanted


@pytest.mark.any_threads
@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
@pytest.mark.parametrize("mode", ["--ldb", "--ldb-sync-mode"])
def test_on_pipes(server, oracle, script, mode, terminal):
    typed = "\n".join(TYPED + ["c", "ping", "get k", "quit", ""]).encode()
    outcome = all_the_same(server, oracle, mode, "--eval", script, "k", ",", "v", stdin=typed, env={"TERM": terminal})
    assert outcome.status == 0 and b"(Lua debugging session ended" in outcome.out
    assert (b"\x1b[" in outcome.out) == (terminal == "xterm")


@pytest.mark.any_threads
@pytest.mark.parametrize("typed", [
    b"", b"quit\n", b"exit\n", b"s\n", b"s\nrestart\ns\nquit\n", b"c\nrestart\nc\nquit\n", b"a\n", b"a\nping\n",
    b"restart\nrestart\nc\n", b"\n\n  \ns\nc\n", b"'unbalanced\nc\n", b"2 s\nc\n", b":set nohints\nc\n", b"connect\nc\n",
    b"w\nc\nrestart\nw\n",
])
def test_ends_and_restarts(server, oracle, script, typed):
    all_the_same(server, oracle, "--ldb", "--eval", script, "k", ",", "v", stdin=typed)


@pytest.mark.any_threads
def test_a_script_that_does_not_compile(server, oracle, tmp_path):
    path = tmp_path / "bad.lua"
    path.write_text("local a = = 1\n")
    outcome = all_the_same(server, oracle, "--ldb", "--eval", path, stdin=b"s\n")
    assert b"Eval debugging session can't start:\n" in outcome.out
    path.write_text("")
    all_the_same(server, oracle, "--ldb", "--eval", path)


@pytest.mark.any_threads
def test_from_the_prompt(server, oracle):
    """SCRIPT DEBUG and EVAL typed: the same session, with the usual prompt."""
    typed = b"script debug yes\neval 'local a = 1 return a' 0\np\nc\nping\n"
    all_the_same(server, oracle, "--no-raw", stdin=typed)
    all_the_same(server, oracle, "--no-raw", stdin=typed.replace(b"yes", b"sync"))
    all_the_same(server, oracle, "--no-raw", stdin=b"script debug yes\nscript debug no\neval 'return 1' 0\nping\n")
    all_the_same(server, oracle, "--no-raw", stdin=b"restart\nping\n")


def test_options(server, oracle, script):
    for arguments in ["--ldb"], ["--ldb-sync-mode"], ["--ldb", "ping"]:
        ours, theirs = run(CLI, arguments), run(THEIRS, arguments)
        assert (ours.status, ours.out) == (theirs.status, theirs.out)
        assert plain(ours.err, 0) == plain(theirs.err, 0).replace(b"/usr/bin/", b"")
    missing = all_the_same(server, oracle, "--ldb", "--eval", "/nonexistent/s.lua")
    assert missing.status == 1
    assert all_the_same(server, oracle, "--eval", script, "--ldb", "k", ",", "v", stdin=b"c\n").status == 0


def test_no_server(script):
    outcome = cli("-p", "1", "--ldb", "--eval", script)
    assert outcome.status == 1 and b"Could not connect" in outcome.err


# ---- on a pseudo-terminal ----

DEBUGGER = rb"lua debugger> (?:\x1b\[0K)?"


def clean(text):
    """What is left of what was drawn: neither the line as it was typed nor the cursor's moves."""
    text = re.sub(DEBUGGER + rb"$", b"", text)
    lines = text.split(b"\r\n")
    return [re.sub(rb"\x1b\[[0-9;]*[A-LN-Za-ln-z]", b"", line).rpartition(b"\r")[2] for line in lines[1:]]


def play(program, port, mode, script, home):
    """Every answer, and the text at the end."""
    prompt = Prompt("-p", port, mode, "--eval", script, "k", ",", "v", home=home, program=program)
    try:
        seen = [clean(b"\r\n" + prompt.expect(DEBUGGER))]
        usual = rb"127\.0\.0\.1:%d> (?:\x1b\[0K)?" % port
        for line in TYPED:
            seen.append(clean(prompt.say(line.encode(), rb"\n[^\n]*" + DEBUGGER)))
        ended = prompt.say(b"c", rb"\n[^\n]*" + usual)
        seen.append(clean(ended.rpartition(b"127.0.0.1")[0]))
        seen.append(clean(prompt.say(b"ping", rb"\n[^\n]*" + usual).rpartition(b"127.0.0.1")[0]))
        seen.append(clean(prompt.say(b"restart", rb"\n[^\n]*" + DEBUGGER)))
        prompt.say(b"s", rb"\n[^\n]*" + DEBUGGER)
        prompt.type(b"quit\r")
        assert prompt.status() == 0
        return seen
    finally:
        prompt.end()


@pytest.mark.any_threads
@pytest.mark.parametrize("mode", ["--ldb", "--ldb-sync-mode"])
def test_on_a_terminal(server, oracle, script, tmp_path, mode):
    wanted = None
    for name, program, port in pairs(server, oracle):
        got = play(program, port, mode, script, tmp_path)
        wanted = wanted or got
        assert len(got) == len(TYPED) + 4
        for line, mine, theirs in zip(["begin"] + TYPED + ["c", "ping", "restart"], got, wanted):
            assert mine == theirs, "%s, %r: %r, wanted %r" % (name, line, mine, theirs)
    assert any(line.startswith(b"(Lua debugging session ended") for line in wanted[-3])
    assert b"\x1b[0;33;49m-> 1   local a = 1\x1b[0m" in wanted[0]


def test_a_broken_connection_ends_the_session(make_server, script, tmp_path):
    server = make_server()
    prompt = Prompt("-p", server.port, "--ldb", "--eval", script, "k", ",", "v", home=tmp_path)
    try:
        prompt.expect(DEBUGGER)
        server.kill_all()
        prompt.say(b"s", rb"not connected> ")
        prompt.type(b"quit\r")
        assert prompt.status() == 0
    finally:
        prompt.end()
