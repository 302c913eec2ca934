"""keydb-cli's prompt on a pseudo-terminal: what redis-cli 7.0.15 shows, and what an editor of lines has to do."""

import os
import re
import stat

import pytest

from lib.bounds import eventually
from lib.cli import PATIENCE_S, Prompt, cli, same
from lib.cli_oracle import Oracle, canned, oracle, shared_oracle
from lib.server import closed_port

@pytest.fixture
def prompt(tmp_path):
    started = []

    def start(*args, **options):
        options.setdefault("home", tmp_path)
        started.append(Prompt(*args, **options))
        return started[-1]

    yield start
    for each in started:
        each.end()


def ready(oracle, extra=rb""):
    return rb"127\.0\.0\.1:%d%s> \x1b\[0K" % (oracle.port, extra)


def test_prompt_shows_where_it_is(oracle, prompt):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    assert b'"a"' in p.say(b'echo "a"', ready(oracle))
    p.say(b"multi", ready(oracle, rb"\(TX\)"))
    assert b"QUEUED" in p.say(b"select 4", ready(oracle, rb"\[4\]\(TX\)"))
    p.say(b"discard", ready(oracle))
    p.say(b"select 3", ready(oracle, rb"\[3\]"))
    p.say(b"multi", ready(oracle, rb"\[3\]\(TX\)"))
    p.say(b"exec", ready(oracle, rb"\[3\]"))
    p.say(b"reset", ready(oracle))
    assert b"(error) ERR unknown" in p.say(b"foo", ready(oracle))
    assert re.search(rb"\((0\.[6-9]|[1-9]\d*\.\d)\ds\)", p.say(b"debug sleep 0.6", ready(oracle)))
    with closed_port() as closed:
        p.say(b"connect 127.0.0.1 %d" % closed, rb"not connected> ")
        p.say(b"ping", rb"Connection refused\r\n.*not connected> ")
    p.say(b"connect 127.0.0.1 %d" % oracle.port, ready(oracle))
    p.type(b"quit\r")
    assert p.status() == 0


def test_prompt_on_a_unix_socket(oracle, prompt):
    p = prompt("-s", oracle.socket, "-n", "2")
    p.expect(b"redis " + re.escape(oracle.socket.encode()) + rb"\[2\]> ")


def test_hints(oracle, prompt):
    grey = rb"\x1b\[0;90;49m"
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    for typed, hint in (
        (b"get", rb" key\x1b"),
        (b" ", rb"key\x1b"),
        (b"k", rb"> get k\x1b\[0K"),
        (b"\x15set k v EX", rb" seconds \[NX"),
        (b" 5", rb" \[NX\|XX\] \[GET\]\x1b"),
        (b"\x15blpop a", rb" \[key \.\.\.\] timeout"),
        (b"\x15client kill", rb" ip:port"),
    ):
        p.type(typed)
        p.expect(grey + hint if hint[0:1] != b">" else hint)
    p.type(b"\x15")
    p.say(b":set nohints", ready(oracle))
    p.type(b"get ")
    assert b"\x1b[0;90" not in p.expect(rb"> get \x1b\[0K")
    p.type(b"\x15")
    p.say(b":set hints", ready(oracle))
    p.type(b"get ")
    p.expect(grey + b"key")


def test_preferences(oracle, prompt, tmp_path):
    (tmp_path / ".redisclirc").write_text(":set nohints\n")
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    p.type(b"get ")
    assert b"\x1b[0;90" not in p.expect(rb"> get \x1b\[0K")
    (tmp_path / "other").write_text("bogus\n:set hints\n")
    p = prompt("-p", oracle.port, env={"REDISCLI_RCFILE": str(tmp_path / "other")})
    p.expect(rb"other: unknown preference 'bogus'.*" + ready(oracle))
    p.type(b"get ")
    p.expect(rb"\x1b\[0;90;49mkey")


def test_completion(oracle, prompt):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    p.type(b"geor\t")
    p.expect(rb"> GEORADIUS\x1b\[0;90")
    p.type(b"\t")
    p.expect(rb"> GEORADIUSBYMEMBER\x1b\[0;90")
    p.type(b"\x1b[Z")
    p.expect(rb"> GEORADIUS\x1b\[0;90")
    p.type(b"\x1b")
    p.expect(rb"> geor\x1b\[0K")
    p.type(b"\x15help @sor\t")
    p.expect(rb"> help @sorted-set\x1b\[0K")
    p.type(b"\x15client no-\t")
    p.expect(rb"> CLIENT NO-EVICT\x1b")
    p.type(b"\x15set a b exa\t")
    p.expect(rb"> set a b EXAT\x1b")
    p.type(b"\x15nosuchthing\t")
    p.expect(rb"\a")


def test_editing(oracle, prompt):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    for keys, said in (
        (b"echo abd\x1b[Dc", b'"abcd"'),
        (b"cho x\x01e", b'"x"'),
        (b"echo abc\x02\x02\x04", b'"ac"'),
        (b"echo abc\x7fd", b'"abd"'),
        (b"echo one two\x17three", b"wrong number"),
        (b"echo one\x17two", b'"two"'),
        (b"garbage\x15echo y", b'"y"'),
        (b"echo z garbage\x1bb\x02\x0b", b'"z"'),
        (b"echo ab\x14", b'"ba"'),
        (b"echo cut\x17pasted\x19", b'"pastedcut"'),
        (b"echo \xc3\xa9\xe2\x82\xac\x7f", b'"\\xc3\\xa9"'),
        (b"echo \xc3\xa9\x1b[D\x1b[3~x", b'"x"'),
        (b"\x1b[1;5C\x1b[H\x1b[Fecho \x1b[200~a\tb\x1b[201~", b"wrong number"),
    ):
        p.type(keys + b"\r")
        out = p.expect(rb"\x1b\[\?2004l.*\x1b\[\?2004h\r" + ready(oracle))
        assert said in out.rsplit(b"\x1b[?2004l", 1)[1], (keys, out)


def test_multi_line_paste_runs_each_line(oracle, prompt):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    p.type(b"\x1b[200~echo one\necho two\necho three\n\x1b[201~")
    p.expect(rb'"one"\r\n.*"two"\r\n.*"three"\r\n.*' + ready(oracle))


def test_long_lines_scroll(oracle, prompt):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    p.type(b"echo " + b"x" * 300 + b"\x01")
    p.expect(ready(oracle)[: -len(rb"\x1b\[0K")] + rb"echo x+\x1b\[0K")
    p.type(b"\r")
    p.expect(b'"' + b"x" * 300 + b'"')


def test_control_c_and_d(oracle, prompt):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    p.type(b"half a line\x03")
    p.expect(rb"\^C.*" + ready(oracle))
    p.type(b"ping\r")
    p.expect(b"PONG.*" + ready(oracle))
    p.type(b"\x03")
    assert p.status() == 0
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    p.type(b"\x04")
    assert p.status() == 0


def test_control_c_ends_a_wait(oracle, prompt):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    p.type(b"blpop none 0\r")
    p.expect(rb"\x1b\[\?2004l")
    eventually(lambda: b"blocked_clients:1\r\n" in cli("-p", oracle.port, "info", "clients").out, "it waits", PATIENCE_S)
    p.type(b"\x03")
    p.expect(ready(oracle))
    assert b"PONG" in p.say(b"ping", ready(oracle))


def test_control_c_ends_repetition(oracle, prompt):
    p = prompt("-p", oracle.port, "-i", "0.05")
    p.expect(ready(oracle))
    p.type(b"100000 ping\r")
    p.expect(rb"PONG\r\nPONG")
    p.type(b"\x03")
    p.expect(ready(oracle))


def test_subscribed_prompt(oracle, prompt):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    p.type(b"subscribe a\r")
    p.expect(rb'Reading messages\.\.\. \(press Ctrl-C to quit or any key to type command\)\r\n'
             rb'1\) "subscribe"\r\n2\) "a"\r\n3\) \(integer\) 1\r\n')
    assert cli("-p", oracle.port, "publish", "a", "hello").out == b"1\n"
    p.expect(rb'1\) "message"\r\n2\) "a"\r\n3\) "hello"\r\n')
    p.type(b"s")
    p.expect(rb"\(subscribed mode\)> s")
    p.type(b"ubscribe b\r")
    p.expect(rb'2\) "b"\r\n3\) \(integer\) 2\r\n')
    p.type(b"u")
    p.expect(rb"\(subscribed mode\)> u")
    p.type(b"nsubscribe\r")
    p.expect(rb'3\) \(integer\) 0\r\n.*' + ready(oracle))
    assert b"PONG" in p.say(b"ping", ready(oracle))
    p.type(b"psubscribe *\r")
    p.expect(rb"3\) \(integer\) 1\r\n")
    p.type(b"\x03")
    p.expect(ready(oracle))
    p.type(b"monitor\r")
    p.expect(rb"OK\r\n")
    cli("-p", oracle.port, "set", "seen", "x")
    p.expect(rb'"set" "seen" "x"\r\n')
    p.type(b"\x03")
    p.expect(ready(oracle))
    assert b"PONG" in p.say(b"ping", ready(oracle))


def test_history(oracle, prompt, tmp_path):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    for line in b"echo first", b"echo second", b"echo second", b"auth secret", b"config set requirepass ''", b"acl setuser x >secret":
        p.say(line, rb"\x1b\[\?2004l.*" + ready(oracle))
    p.type(b"\x1b[A")
    p.expect(rb"> echo second\x1b\[0K")
    p.type(b"\x1b[A")
    p.expect(rb"> echo first\x1b\[0K")
    p.type(b"\x1b[B\x1b[B")
    p.expect(rb"> \x1b\[0K")
    p.type(b"\x12firs")
    p.expect(rb"\(reverse-i-search\)`firs': echo first")
    p.type(b"\r")
    p.expect(rb'"first"\r\n')
    p.type(b"quit\r")
    p.status()
    path = tmp_path / ".rediscli_history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"echo first\necho second\necho first\nquit\n"
    # The next prompt continues it.
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    p.type(b"\x10\x10")
    p.expect(rb"> echo first\x1b\[0K")


def test_history_file_elsewhere(oracle, prompt, tmp_path):
    path = tmp_path / "my history"
    path.write_text("")
    path.chmod(0o644)
    p = prompt("-p", oracle.port, env={"REDISCLI_HISTFILE": str(path)})
    p.expect(ready(oracle))
    p.say(b"echo x", ready(oracle))
    assert path.read_text() == "echo x\n" and stat.S_IMODE(path.stat().st_mode) == 0o600
    p = prompt("-p", oracle.port, env={"REDISCLI_HISTFILE": "/dev/null"})
    p.expect(ready(oracle))
    p.say(b"echo y", ready(oracle))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_IMODE(os.stat("/dev/null").st_mode) == 0o666
    assert not (tmp_path / ".rediscli_history").exists()


def test_dumb_terminals_get_plain_lines(oracle, prompt):
    p = prompt("-p", oracle.port, env={"TERM": "dumb"})
    p.expect(rb"^127.0.0.1:%d> $" % oracle.port)
    p.type(b"echo plain\n")
    data = p.expect(rb'"plain"\r\n127.0.0.1:%d> ' % oracle.port)
    assert b"\x1b" not in data


def test_help_and_clear(oracle, prompt):
    p = prompt("-p", oracle.port)
    p.expect(ready(oracle))
    assert b"help @<group>" in p.say(b"help", ready(oracle))
    assert b"Get the value of a key" in p.say(b"help get", ready(oracle))
    p.say(b"clear", rb"\x1b\[H\x1b\[2J")
    p.expect(ready(oracle))
    assert b"unknown keydb-cli internal command" in p.say(b":bogus", ready(oracle))
    assert b"Invalid argument(s)" in p.say(b'get "', ready(oracle))


def test_password_prompt(tmp_path, prompt):
    oracle = Oracle(str(tmp_path), "--requirepass", "abc")
    try:
        p = prompt("-p", oracle.port, "--askpass")
        p.expect(b"Please input password: ")
        p.type(b"abX\x7fc\r")
        data = p.expect(ready(oracle))
        assert b"abc" not in data and b"***" in data
        assert b"PONG" in p.say(b"ping", ready(oracle))
        p = prompt("-p", oracle.port, "--askpass")
        p.expect(b"Please input password: ")
        p.type(b"ab\x03")
        p.expect(b"No password was given")
        assert os.waitstatus_to_exitcode(p.status()) == 1
        args = ["-p", oracle.port, "--askpass", "ping"]
        assert cli(*args, stdin=b"abc\n").out == b"PONG\n"
        assert cli(*args).status == 1
        # AUTH at the prompt outlives a lost connection, and brings hints.
        p = prompt("-p", oracle.port)
        p.expect(ready(oracle))
        assert b"NOAUTH" in p.say(b"ping", ready(oracle))
        p.say(b"auth abc", rb"OK\r\n.*" + ready(oracle))
        # Killed by another client it is gone before it speaks again, and reads an end, no reset.
        killer = ["-p", oracle.port, "-a", "abc", "--no-auth-warning"]
        assert int(cli(*killer, "client", "kill", "type", "normal").out) > 0
        p.say(b"ping", rb"Server closed the connection\r\n.*not connected> ")
        assert b"PONG" in p.say(b"ping", ready(oracle))
        p.type(b"get ")
        p.expect(rb"\x1b\[0;90;49mkey")
        assert same("-p", oracle.port, "-a", "abc", "--no-auth-warning", "ping").out == b"PONG\n"
        assert same("-p", oracle.port, "ping", env={"REDISCLI_AUTH": "abc"}).out == b"PONG\n"
        assert same("-p", oracle.port, "ping").out == b"NOAUTH Authentication required.\n\n"
    finally:
        oracle.stop()


def test_completion_with_a_server_before_command_docs(canned, prompt):
    server = canned(b"")

    def reply(connection, name):
        arguments = server.commands[-1]
        if arguments[1:] == [b"DOCS"]:
            connection.sendall(b"-ERR Unknown subcommand or wrong number of arguments for 'DOCS'\r\n")
        elif name == b"command":
            connection.sendall(b"*3\r\n*2\r\n$3\r\nget\r\n:2\r\n*0\r\n*1\r\n$6\r\ngetset\r\n")
        else:
            connection.sendall(b"+OK\r\n")
        return True

    server._reply = reply
    p = prompt("-p", server.port)
    p.expect(rb"> \x1b\[0K")
    p.type(b"ge\t")
    p.expect(rb"> GET\x1b")
    p.type(b"\t")
    p.expect(rb"> GETSET\x1b")
    p.type(b"\r")
    p.expect(rb"OK\r\n.*> \x1b\[0K")
    assert server.commands == [[b"COMMAND", b"DOCS"], [b"COMMAND"], [b"GETSET"]]


def test_a_hostile_server_at_the_prompt(canned, prompt):
    """COMMAND DOCS may answer anything."""
    for answer in b"*3\r\n+a\r\n:1\r\n+b\r\n", b"%1\r\n*0\r\n*0\r\n", b"%1\r\n+get\r\n%1\r\n+arguments\r\n:5\r\n":
        server = canned(b"+OK\r\n")
        server._reply = lambda connection, name: connection.sendall(answer) is None
        p = prompt("-p", server.port)
        p.expect(rb"> \x1b\[0K")
        p.type(b"get \t\r")
        p.expect(rb"> \x1b\[0K")
        p.type(b"quit\r")
        assert p.status() == 0


# ---- the server under test ----


@pytest.mark.any_threads
def test_with_our_server(server, prompt):
    port = ["-p", server.port]
    assert cli(*port, "set", "a", "1").out == b"OK\n"
    assert cli(*port, "--no-raw", "get", "a").out == b'"1"\n'
    assert cli(*port, "--no-raw", "get", "none").out == b"(nil)\n"
    assert cli(*port, "--json", "get", "a").out == b'"1"\n'
    assert cli(*port, "-e", "incr", "a", "b").status == 1
    assert cli(*port, "-3", "-n", "1", "dbsize").out == b"0\n"
    assert cli(*port, "-s", server.unix_address(), "ping").out == b"PONG\n"
    assert cli(*port, "--scan").out == b"a\n"
    outcome = cli(*port, "--pipe", stdin=b"set b 2\r\nnosuch\r\nget b\r\n")
    assert outcome.out.endswith(b"errors: 1, replies: 3\n") and outcome.status == 1
    outcome = cli(*port, "--stat", "-r", "2", "-i", "0.01")
    assert re.match(rb"2 ", outcome.out.splitlines()[2]) and outcome.status == 0
    assert re.fullmatch(rb"\d+ \d+ \d+\.\d\d \d+\n", cli(*port, "--latency", "-i", "0.05").out)
    assert b"redis_version:" in cli(*port, "info").out
    p = prompt(*port)
    p.expect(ready(server))
    if b"\nmulti\n" in cli(*port, "command", "list").out:  # transactions come with a later issue
        p.type(b"multi\r")
        p.expect(ready(server, rb"\(TX\)"))
        p.type(b"exec\r")
        p.expect(rb"\(empty array\).*" + ready(server))


@pytest.mark.any_threads
def test_our_server_documents_itself(server, prompt):
    """help, hints and completion know what the server's COMMAND LIST names."""
    port = ["-p", server.port]
    names = cli(*port, "command", "list").out.split()
    assert len(names) > 50
    lines = b"".join(b"help %s\n" % name.replace(b"|", b" ") for name in names)
    text = cli(*port, stdin=lines).out
    for name in names:
        title = b"\x1b[1m%s\x1b[0m" % name.replace(b"|", b" ").upper()
        assert title in text, name
    assert text.count(b"summary:") == text.count(b"since:") >= len(names)
    assert b"\x1b[1mSET\x1b[0m \x1b[90mkey value" in cli(*port, "help", "@string").out
    p = prompt(*port)
    p.expect(ready(server))
    p.type(b"getra\t")
    p.expect(rb"> GETRANGE\x1b\[0;90;49m key start end")
