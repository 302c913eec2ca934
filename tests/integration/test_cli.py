"""keydb-cli beside Debian's redis-cli 7.0.15: the same arguments against the same server must print
the same bytes and end with the same status. Intended differences are tests of their own, at the end
of each part, and listed in src/tools/cli/README.md.

Two kinds of server: Debian's redis-server, and a canned one that answers every command with bytes
the test chose (which servers never send all of).
"""

import os
import re
import select
import socket
import stat
import subprocess
import time

import pytest

from lib.bounds import BoundPassed, eventually
from lib.cli import CLI, PATIENCE_S, ROOT, THEIRS, Canned, Outcome, Prompt, cli, run, same
from lib.server import closed_port, free_port, listens

SERVER = "/usr/bin/redis-server"

# ---- servers ----


class Oracle:
    def __init__(self, directory, *options):
        self.socket = os.path.join(directory, "s.sock")
        for _ in range(5):
            self.port = free_port()
            arguments = [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "::1"]
            arguments += ["--save", "", "--dir", directory, "--enable-debug-command", "yes"]
            arguments += ["--unixsocket", self.socket] + list(options)
            self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, start_new_session=True)
            if self._listens():
                return
        raise AssertionError("it ends: %s" % arguments)

    def _listens(self):
        """Itself, not whoever else has been given the port meanwhile: then it ends."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                if listens(self.process.pid, self.port):
                    return True
            except OSError:
                pass
            if time.monotonic() > deadline:
                self.stop()
                raise BoundPassed("nobody listens")
            time.sleep(0.02)
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def shared_oracle(tmp_path_factory):
    oracle = Oracle(str(tmp_path_factory.mktemp("oracle")))
    yield oracle
    oracle.stop()


SEED = [
    b'set str "hello \\"w\\" \\x01 \\xc3\\xa9 \\xff"',
    b"set empty ''",
    b'set lines "a\\nb\\n"',
    b"rpush list a b c",
    b"rpush long 1 2 3 4 5 6 7 8 9 10 11",
    b"hset hash f v g w",
    b"sadd set m",
    b"zadd zset 1.5 a 2 b",
    b"xadd stream 1-1 f v g w",
    b"xadd stream 2-1 f v",
]


@pytest.fixture
def oracle(shared_oracle):
    seed = b"flushall\n" + b"\n".join(SEED) + b"\n"
    assert run(THEIRS, ["-p", shared_oracle.port], stdin=seed).status == 0
    return shared_oracle


@pytest.fixture
def canned():
    started = []

    def start(answer, close=False):
        started.append(Canned(answer, close))
        return started[-1]

    yield start
    for server in started:
        server.stop()


# ---- output styles ----

STYLES = {
    "tty": ["--no-raw"],
    "raw": ["--raw"],
    "csv": ["--csv"],
    "json": ["--json"],
    "quoted-json": ["--quoted-json"],
    "tty3": ["--no-raw", "-3"],
    "raw3": ["--raw", "-3"],
    "csv3": ["--csv", "-3"],
    "json2": ["--json", "-2"],
}

COMMANDS = [
    "get none",
    "get empty",
    "get lines",
    "lrange list 0 -1",
    "lrange long 0 -1",
    "lrange none 0 -1",
    "hgetall hash",
    "hgetall none",
    "smembers set",
    "smembers none",
    "zrange zset 0 -1 withscores",
    "xrange stream - +",
    "xread streams stream 0",
    "xinfo stream stream full",
    "foo",
    "foo bar 'x",
    "incr str",
    "ping",
    "ping hello",
    "exists none",
    "object help",
    "debug protocol string",
    "debug protocol integer",
    "debug protocol double",
    "debug protocol null",
    "debug protocol array",
    "debug protocol set",
    "debug protocol map",
    "debug protocol verbatim",
    "debug protocol true",
    "debug protocol false",
    "debug protocol push",
    "config get maxmemory*",
    "command info get set",
    "command docs get client",
    "acl getuser default",
    "memory doctor",
    "latency doctor",
    "latency graph none",
    "lolwut version 99",
    "cluster info",
    "cluster nodes",
    "info replication",
    "info nothing",
    "debug htstats-key hash",
    "client no-evict on",
    "time now",
    "quit",
]


@pytest.mark.parametrize("style", STYLES)
def test_commands_print_alike(oracle, style):
    for command in COMMANDS:
        same("-p", oracle.port, *STYLES[style], *command.split(" "))


@pytest.mark.parametrize("style", [s for s in STYLES if s != "quoted-json"])
def test_binary_values_print_alike(oracle, style):
    same("-p", oracle.port, *STYLES[style], "get", "str")


REPLIES = [
    b"~0\r\n",
    b"%0\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"$-1\r\n",
    b"_\r\n",
    b"#t\r\n",
    b"#f\r\n",
    b":-9223372036854775808\r\n",
    b",inf\r\n",
    b",-inf\r\n",
    b",1e300\r\n",
    b",3.0\r\n",
    b",0.1000\r\n",
    b",-0\r\n",
    b"*2\r\n*0\r\n%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n",
    b"%2\r\n+k\r\n%2\r\n+a\r\n+b\r\n+c\r\n*2\r\n:1\r\n%2\r\n:1\r\n:2\r\n:3\r\n~1\r\n+x\r\n+l\r\n*0\r\n",
    b"*11\r\n" + b":1\r\n" * 9 + b"*1\r\n:2\r\n%1\r\n+k\r\n%10\r\n" + b":1\r\n:2\r\n" * 10,
    b"~11\r\n" + b"~1\r\n:1\r\n" * 11,
    b"*100\r\n" + b"*1\r\n+x\r\n" * 100,
    b"*3\r\n-ERR x\r\n+OK\r\n$-1\r\n",
    b"*1\r\n-ERR x\r\n",
    b"%1\r\n-ERR x\r\n-ERR y\r\n",
    b"=8\r\ntxt:a\nb\x01\r\n",
    b"=8\r\nmkd:a\nb\x01\r\n",
    b"*1\r\n=8\r\ntxt:a\nb\x01\r\n",
    b"%1\r\n#t\r\n_\r\n",
    b"%3\r\n_\r\n:1\r\n,1.5\r\n:2\r\n*1\r\n:1\r\n:2\r\n",
    b"%2\r\n*2\r\n:1\r\n:2\r\n~2\r\n+a\r\n+b\r\n%1\r\n:1\r\n:2\r\n*1\r\n:1\r\n",
    b"*2\r\n$-1\r\n+x\r\n",
    b"*2\r\n$0\r\n\r\n+x\r\n",
    b"*2\r\n*2\r\n*0\r\n*1\r\n*0\r\n~0\r\n",
    b"$0\r\n\r\n",
    b"$2\r\na\n\r\n",
    b"+\r\n",
    b"-\r\n",
    b"*1\r\n" * 9 + b":1\r\n",
    b"*2\r\n$7\r\n\x00\x07\t\xff/\x08\x1b\r\n$4\r\n\x0c\x0b\x7f'\r\n",
]


@pytest.mark.parametrize("style", STYLES)
def test_replies_print_alike(canned, style):
    for answer in REPLIES:
        if style == "quoted-json" and answer.startswith(b"*2\r\n$7"):
            continue
        if "json" in style and answer.startswith(b"%1\r\n-ERR"):
            continue  # the key holds quotes: see test_json_keys_are_strings
        if "json" in style and answer == REPLIES[28]:
            continue
        server = canned(answer)
        same("-p", server.port, *STYLES[style], "get", "x")
        server.stop()


@pytest.mark.parametrize(
    "answer",
    [
        b"xyz\r\n",
        b"\x00\r\n",
        b":abc\r\n",
        b":\r\n",
        b":99999999999999999999\r\n",
        b"#x\r\n",
        b"=3\r\ntxt\r\n",
        b"=5\r\ntxtab\r\n",
        b"$abc\r\n",
        b"$?\r\n",
        b"*-5\r\n",
        b"$-5\r\n",
        b"*9999999999999\r\n:1\r\n",
        b",abc\r\n",
        b"*?\r\n",
    ],
)
def test_malformed_replies_fail_alike(canned, answer):
    outcome = same("-p", canned(answer).port, "get", "x")
    assert outcome.status == 1 and outcome.err.startswith(b"Error: ")


@pytest.mark.parametrize("answer", [b"", b"$5\r\nab", b"*2\r\n:1\r\n", b"*3\r\n", b"$5\r\nhello"])
def test_cut_replies_fail_alike(canned, answer):
    outcome = same("-p", canned(answer, close=True).port, "get", "x")
    assert outcome.err == b"Error: Server closed the connection\n"


PUSHES = [
    b">2\r\n+a\r\n+b\r\n+OK\r\n",
    b">0\r\n+OK\r\n",
    b">2\r\n+a\r\n*1\r\n+b\r\n+OK\r\n",
    b">1\r\n%1\r\n+a\r\n+b\r\n+OK\r\n",
    b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n",
    b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nk\r\n$1\r\n\x01\r\n+OK\r\n",
    b">2\r\n$10\r\ninvalidate\r\n_\r\n+OK\r\n",
]


@pytest.mark.parametrize("show", ["y", "no"])
def test_pushes_print_alike(canned, show):
    for answer in PUSHES:
        for style in "tty", "raw", "csv", "json":
            server = canned(answer)
            same("-p", server.port, "--show-pushes", show, *STYLES[style], "get", "x")
            server.stop()


def test_json_keys_are_strings(canned):
    """redis-cli leaves quotes inside of a key as they are, which no JSON parser reads."""
    server = canned(b"%1\r\n%1\r\n+a\r\n:2\r\n:3\r\n")
    assert cli("-p", server.port, "--json", "x").out == b'{"{\\"a\\":2}":3}\n'


def test_quoted_json_is_json(oracle):
    """redis-cli escapes backslashes but not quotes."""
    import json

    outcome = cli("-p", oracle.port, "--quoted-json", "get", "str")
    assert json.loads(outcome.out) == 'hello \\"w\\" \\x01 \\xc3\\xa9 \\xff'


def test_big_numbers_and_attributes(oracle):
    """redis-cli 7.0 ends with an error on both."""
    big = b"1234567999999999999999999999999999999"
    for args, expected in (
        (["--no-raw"], b"(big number) " + big),
        (["--raw"], big),
        (["--csv"], big),
        (["--json"], big),
    ):
        outcome = cli("-p", oracle.port, "-3", *args, "debug", "protocol", "bignum")
        assert outcome.out == expected + b"\n" and outcome.status == 0
    outcome = cli("-p", oracle.port, "-3", "debug", "protocol", "attrib")
    assert outcome.out == b"Some real reply following the attribute\n"


def test_deep_nesting_is_refused(canned):
    server = canned(b"*1\r\n" * 100000 + b":1\r\n")
    outcome = cli("-p", server.port, "x")
    assert outcome.status == 1 and outcome.err == b"Error: Too deeply nested reply\n"


def test_promised_lengths_cost_nothing(canned):
    """Memory follows what has arrived: with a limit of 256 MB these would fail otherwise."""
    for answer in b"$60000000000\r\nx", b"*4000000000\r\n:1\r\n", b"%2000000000\r\n:1\r\n":
        server = canned(answer, close=True)
        done = subprocess.run(
            ["sh", "-c", "ulimit -v 262144; exec %s -p %d x" % (CLI, server.port)],
            capture_output=True,
            timeout=PATIENCE_S,
        )
        if b"AddressSanitizer" in done.stderr or b"ThreadSanitizer" in done.stderr:
            pytest.skip("a sanitizer needs more address space")
        assert done.stderr == b"Error: Server closed the connection\n"


# ---- options ----


@pytest.mark.parametrize(
    "args",
    [
        ["-e", "foo"],
        ["-e", "get", "none"],
        ["-e", "--no-raw", "incr", "str"],
        ["-e", "--csv", "foo"],
        ["-e", "--json", "foo"],
        ["-e", "-r", "3", "foo"],
        ["-d", ",", "lrange", "list", "0", "-1"],
        ["-d", "", "lrange", "list", "0", "-1"],
        ["-D", "", "lrange", "list", "0", "-1"],
        ["-D", "--", "-r", "2", "lrange", "list", "0", "-1"],
        ["-D", "--", "-r", "2", "incr", "str"],
        ["-d", "; ", "-3", "hgetall", "hash"],
        ["-r", "3", "ping"],
        ["-r", "0", "ping"],
        ["-r", "3", "-i", "0.01", "ping"],
        ["-n", "3", "dbsize"],
        ["-n", "99", "ping"],
        ["-n", "99", "--no-raw", "dbsize"],
        ["-a", "foo", "ping"],
        ["-a", "foo", "--no-auth-warning", "ping"],
        ["--pass", "foo", "ping"],
        ["--user", "u", "--pass", "foo", "ping"],
        ["--user", "u", "ping"],
        ["-a", "foo", "-n", "99", "-3", "ping"],
        ["--csv", "--json", "get", "str"],
        ["--csv", "--raw", "get", "str"],
        ["--json", "--no-raw", "get", "str"],
        ["--quoted-input", "set", '"a\\x00b"', '"c d"'],
        ["--quoted-input", "--no-raw", "echo", '"a\\x00b"'],
        ["--quoted-input", "--no-raw", "echo", "'a b'"],
        ["--quoted-input", "--no-raw", "echo", "a\\x00"],
        ["--quoted-input", "echo", '"a'],
        ["--quoted-input", "echo", '"a" "b"'],
        ["--quoted-input", "echo", '"a"b'],
        ["--show-pushes", "foo", "ping"],
        ["-c", "get", "str"],
        ["-2", "hgetall", "hash"],
        ["hello", "3"],
        ["-r", "2", "hello", "4"],
        ["-2", "-3", "ping"],
        ["-x", "-X", "T", "set", "a", "T"],
        ["--nosuch"],
        ["-zz"],
        ["-p"],
        ["-r"],
        ["-d"],
        ["--pattern"],
        ["--eval"],
        ["--user"],
        ["-"],
        ["--eval", "/nonexistent", "a"],
    ],
    ids=" ".join,
)
def test_options_act_alike(oracle, args):
    # HELLO tells each connection's id, which differs
    args = ["-p", str(oracle.port)] + args
    if "hello" in args:
        theirs, ours = run(THEIRS, args), run(CLI, args)
        for outcome in theirs, ours:
            outcome.out = re.sub(rb"id \d+", b"id", outcome.out)
        assert ours == theirs
    else:
        same(*args)


def test_stdin_as_argument(oracle):
    port = ["-p", oracle.port]
    same(*port, "-x", "set", "k", stdin=b"v1\n")
    same(*port, "--no-raw", "get", "k")
    same(*port, "-x", "set", "k", stdin=b"\x00\xff\r\n" * 50000)
    same(*port, "--no-raw", "get", "k")
    same(*port, "-X", "T", "set", "k", "T", stdin=b"tagged")
    same(*port, "--no-raw", "get", "k")
    same(*port, "-X", "T", "set", "T", "T", stdin=b"tagged")
    same(*port, "-X", "T", "set", "k", "Z", stdin=b"tagged")
    same(*port, "-x", "-r", "2", "setrange", "new", "0", stdin=b"two")


def test_dump_and_restore_through_files(oracle):
    """The recipe for copying a binary value."""
    dumped = cli("-p", oracle.port, "-D", "", "--raw", "dump", "zset")
    args = ["-p", oracle.port, "-X", "tag", "restore", "copy", "0", "tag", "replace"]
    assert cli(*args, stdin=dumped.out).out == b"OK\n"
    assert cli("-p", oracle.port, "zcard", "copy").out == b"2\n"


def test_addresses(oracle):
    port = oracle.port
    same("-s", oracle.socket, "-n", "3", "dbsize")
    same("-h", "localhost", "-p", port, "ping")
    same("-h", "::1", "-p", port, "ping")
    same("-u", "redis://127.0.0.1:%d/3" % port, "dbsize")
    same("-u", "redis://127.0.0.1:%d" % port, "dbsize")
    same("-u", "redis://u:p@127.0.0.1:%d/3" % port, "ping")
    same("-u", "redis://p@127.0.0.1:%d/3" % port, "ping")
    same("-u", "redis://u:p%%41@127.0.0.1:%d" % port, "ping")
    same("-u", "foo://127.0.0.1:%d" % port, "ping")
    same("-u", "127.0.0.1:%d" % port, "ping")
    same("-p", port, "ping", env={"REDISCLI_AUTH": "foo"})


def test_verbose(oracle):
    outcome = cli("-p", oracle.port, "--verbose", "-n", "1", "dbsize")
    assert outcome.out == b"0\n" and outcome.err == b"Connected to 127.0.0.1:%d\n" % oracle.port


def test_addresses_beyond_redis_cli(oracle):
    """redis-cli has no unix:// and takes the missing user of redis://:password@ for one named ''."""
    outcome = cli("-u", "redis://:p%%41@127.0.0.1:%d" % oracle.port, "ping")
    assert b"AUTH <password> called without any password" in outcome.err
    assert cli("-u", "unix://" + oracle.socket, "ping").out == b"PONG\n"
    assert cli("-u", "unix://" + oracle.socket + "?db=2", "client", "info").out.count(b" db=2 ")
    assert cli("-u", "redis://[::1]:%d/1" % oracle.port, "ping").out == b"PONG\n"
    assert cli("-u", "keydb://127.0.0.1:%d" % oracle.port, "ping").out == b"PONG\n"


def test_failing_to_connect(tmp_path):
    with closed_port() as port:
        same("-p", port, "ping")
        same("-p", port, "-r", "3", "ping")
        same("-p", port)
        same("-p", port, stdin=b"ping\nping\n")
        same("-s", str(tmp_path / "none"), "ping")
        same("-s", str(tmp_path / "none"), stdin=b"ping\n")
        same("-h", "nosuch.invalid", "-p", port, "ping")
        for mode in (
            "--scan --stat --latency --latency-history --latency-dist --pipe --bigkeys --memkeys"
            " --hotkeys --replica --slave"
        ).split():
            same("-p", port, mode)
        for mode in "--memkeys-samples 5", "--lru-test 5", "--rdb x", "--functions-rdb x":
            same("-p", port, *mode.split())


@pytest.mark.parametrize(
    "args",
    [
        ["-p", "abc"],
        ["-p", "0"],
        ["-p", "65536"],
        ["-n", "abc"],
        ["-n", "-1"],
        ["-r", "abc"],
        ["-r", "99999999999999999999"],
        ["-i", "abc"],
        ["-i", "-1"],
        ["-i", "nan"],
        ["--count", "0"],
        ["--pipe-timeout", "x"],
        ["--memkeys-samples", "-1"],
        ["--memkeys-samples", "x"],
        ["--keystats-samples", "1x"],
        ["--top", "-1"],
        ["--top", "1000001"],
        ["--cursor", "x"],
        ["--cursor", "-1"],
        ["--cursor", "123456789012345678901"],
        ["--lru-test", "0"],
        ["--lru-test", "x"],
        ["--intrinsic-latency", "0"],
        ["--intrinsic-latency", "99999999999"],
        ["-u", "redis://h:0"],
        ["-u", "redis://h:x/1"],
        ["-u", "redis://h/abc"],
        ["-u", "redis://a%zz@h"],
        ["-u", "redis://a%4@h"],
        ["-u", "redis://a%00@h"],
        ["-u", "redis://[::1"],
        ["-u", "unix://"],
        ["-u", "unix:///s?x=1"],
        ["-u", "rediss://h:0"],
    ],
    ids=" ".join,
)
def test_nonsense_is_refused(args):
    """redis-cli takes a number it cannot read for 0 (or waits forever with -i -1)."""
    outcome = cli(*args, "ping")
    assert outcome.status == 1 and outcome.err.count(b"\n") == 1 and outcome.out == b""


@pytest.mark.parametrize("option", ["--cluster", "--force"])
def test_what_is_missing_is_refused_by_name(option):
    outcome = cli(option, "1")
    assert outcome.status == 1
    assert outcome.err == b"keydb-cli: %s does not exist yet\n" % option.encode()


def test_no_motd_leaves_nothing_out(client, server):
    outcome = cli("--no-motd", "-p", str(server.port), "ping")
    assert (outcome.status, outcome.out, outcome.err) == (0, b"PONG\n", b"")


def test_sync_is_refused(oracle):
    for command in "sync", "psync":
        outcome = cli("-p", oracle.port, command, "?", "-1")
        assert outcome.status == 1 and b"does not exist yet" in outcome.err


def test_help_and_version():
    assert re.fullmatch(rb"keydb-cli \d+\.\d+\.\d+\n", cli("--version").out)
    assert cli("-v") == cli("--version")
    text = cli("--help")
    assert text.status == 0 and b"Usage: keydb-cli" in text.out and text.err == b""
    assert cli("-h") == text
    # Every option that exists is described.
    with open(os.path.join(ROOT, "src", "tools", "cli", "options.c")) as source:
        options = re.findall(r'\{"(--?[\w-]+)", (?:OPTION|MODE)', source.read())
    assert len(options) > 40
    for option in options:
        if option != "-v":
            assert option.encode() in text.out, option


def test_eval(oracle, tmp_path):
    script = tmp_path / "s.lua"
    script.write_text("return {#KEYS, #ARGV, KEYS[1] or 'none', ARGV[1] or 'none'}")
    port = ["-p", oracle.port]
    for words in ["k , a b", "k j , a", "k", "k ,", ", a", "k ,a b", "", "k , a ,"]:
        same(*port, "--no-raw", "--eval", str(script), *words.split())
    script.write_text("return redis.error_reply('MINE oops')")
    same(*port, "--eval", str(script))
    same(*port, "-e", "--eval", str(script))


def test_errors_in_a_transaction(oracle):
    same("-p", oracle.port, "--no-raw", stdin=b"multi\nincr str\nset a 1\nexec\nexec\n")


# ---- lines on standard input ----


@pytest.mark.parametrize("style", ["--raw", "--no-raw", "--csv", "--json"])
def test_lines_act_alike(oracle, style):
    lines = (
        b'set a 1\nget a\nfoo\n\n   \n"unbalanced\necho a"b"\necho "a"b\n'
        b"echo 'a b\\n'\necho \"\\x41\\n\\q\"\n3 ping\n0 ping\n-1 ping\n2\n2 3 ping\nping x y\n"
        b"lrange list 0 -1\nselect 3\ndbsize\nmulti\nset x y\nselect 4\ndiscard\nselect 99\n"
        b":set hints\n:set nohints\n#comment\n:x\nhello 3\nhgetall f\nreset\nget a\r\n"
    )
    theirs = run(THEIRS, ["-p", oracle.port, style], stdin=lines)
    ours = run(CLI, ["-p", oracle.port, style], stdin=lines)
    for outcome in theirs, ours:
        outcome.out = outcome.out.replace(b"redis-cli", b"keydb-cli")
        outcome.out = re.sub(rb'(id"? ?(=> \(integer\) |[,:]| )?)\d+', rb"\1", outcome.out)
    assert ours == theirs


def test_last_line_without_an_end(oracle):
    same("-p", oracle.port, stdin=b"ping\nget none")
    same("-p", oracle.port, stdin=b"ping\nexit now\nping\n")
    same("-p", oracle.port, stdin=b"ping\nQUIT\nping\n")


def test_lines_with_repeat_and_errors(oracle):
    same("-p", oracle.port, "-e", stdin=b"foo\nping\n")
    same("-p", oracle.port, "-e", "--no-raw", stdin=b"foo\nping\n")


def test_connect_line(oracle):
    with closed_port() as closed:
        lines = b"ping\nconnect 127.0.0.1 %d\nping\nconnect 127.0.0.1 %d\nping\nconnect a\n" % (
            closed,
            oracle.port,
        )
        same("-p", oracle.port, stdin=lines)
    assert b"Invalid port" in cli("-p", oracle.port, stdin=b"connect 127.0.0.1 x\n").out


def test_a_closed_connection_is_made_anew(oracle):
    lines = b"client kill type normal skipme no\nping\nping\nget none\n"
    theirs = run(THEIRS, ["-p", oracle.port], stdin=lines)
    ours = run(CLI, ["-p", oracle.port], stdin=lines)
    # A server that closes with the next request unread in its socket resets the connection.
    for outcome in (ours, theirs):
        assert re.fullmatch(rb"Error: (Server closed the connection|Connection reset by peer)\n",
                            outcome.err)
    assert (ours.status, ours.out) == (theirs.status, theirs.out)
    assert ours.out.endswith(b"PONG\n\n")


@pytest.mark.parametrize("what", ["get", "client kill", "migrate", "zadd", "xadd", "bitfield", "sort", "client", "acl", "foo", "client foo", "@generic", "@string", "@hash", "@sorted-set", "@foo", "@"])
def test_help_on_commands(oracle, what):
    """redis-cli has a table of its own, we ask the server: the same texts."""
    same("-p", oracle.port, "help", *what.split())
    same("-p", oracle.port, stdin=b"help " + what.encode() + b"\n")


def test_help_without_a_server():
    with closed_port() as port:
        assert cli("-p", port, "help").status == 0
        outcome = cli("-p", port, "help", "get")
        assert outcome.status == 1 and b"COMMAND DOCS" in outcome.err
        assert cli("-p", port, "help").out == cli("-p", port, "?").out


# ---- messages ----


def read_until(stream, wanted, patience_s=PATIENCE_S):
    data = b""
    deadline = time.monotonic() + patience_s
    while wanted not in data:
        ready = select.select([stream], [], [], max(0, deadline - time.monotonic()))[0]
        if not ready:
            raise BoundPassed("waited for %r, got %r" % (wanted, data))
        piece = os.read(stream.fileno(), 65536)
        assert piece, "ended with %r" % data
        data += piece
    return data


def streaming(command, first, publish, last):
    with subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        try:
            data = read_until(process.stdout, first)
            publish()
            return data + read_until(process.stdout, last)
        finally:
            process.kill()


@pytest.mark.parametrize("style", ["tty", "raw", "csv", "json", "tty3"])
@pytest.mark.parametrize("command", ["subscribe a b", "psubscribe a* b*", "ssubscribe a b"])
def test_messages_print_alike(oracle, style, command):
    def publish():
        name = "spublish" if command[0:2] == "ss" else "publish"
        assert cli("-p", oracle.port, name, "b", "hello").out == b"1\n"
        assert cli("-p", oracle.port, name, "b", "last").out == b"1\n"

    args = ["-p", oracle.port] + STYLES[style] + command.split()
    second = b"b*" if command[0] == "p" else b"b"
    outs = []
    for program in THEIRS, CLI:
        # redis-cli does not flush RESP3 pushes when its output is no terminal
        flush = ["stdbuf", "-oL"] if program == THEIRS else []
        outs.append(streaming(flush + [program] + args, second, publish, b"last"))
    assert outs[0].split(b"last")[0] == outs[1].split(b"last")[0]


def test_monitor_prints_alike(oracle):
    def act():
        cli("-p", oracle.port, "set", "a", "last")

    for style in "raw", "csv", "tty":
        outs = []
        for program in THEIRS, CLI:
            args = ["-p", oracle.port] + STYLES[style] + ["monitor"]
            outs.append(streaming([program] + args, b"OK", act, b"last"))
        shown = [re.sub(rb"[\d.]+ \[0 127.0.0.1:\d+\]", b"", out) for out in outs]
        assert shown[0].split(b"last")[0] == shown[1].split(b"last")[0]


def test_a_refused_subscription_ends(canned):
    """redis-cli would wait for messages that never come."""
    server = canned(b"-NOPERM no\r\n")
    outcome = cli("-p", server.port, "subscribe", "a")
    assert outcome.out == b"NOPERM no\n\n"
    assert cli("-p", server.port, "-e", "subscribe", "a").status == 1


def test_client_reply_off_and_skip_do_not_wait(oracle):
    """redis-cli waits forever."""
    outcome = cli("-p", oracle.port, stdin=b"client reply off\nset a 5\nclient reply on\nget a\n")
    assert outcome.out == b"OK\n5\n"
    outcome = cli("-p", oracle.port, stdin=b"client reply skip\nset a 6\nget a\n")
    assert outcome.out == b"6\n"


def test_shutdown(tmp_path):
    for program in THEIRS, CLI:
        oracle = Oracle(str(tmp_path))
        try:
            outcome = run(program, ["-p", oracle.port, "shutdown", "nosave"])
            assert outcome == Outcome(0, b"", b"")
            assert oracle.process.wait(timeout=PATIENCE_S) == 0
        finally:
            oracle.stop()


# ---- cluster redirections ----


def test_redirections_are_followed_with_c(canned):
    home = canned(b"$4\r\nhere\r\n")
    moved = canned(b"-MOVED 12182 127.0.0.1:%d\r\n" % home.port)
    ask = canned(b"-ASK 12182 127.0.0.1:%d\r\n" % home.port)
    for server in moved, ask:
        same("-p", server.port, "get", "foo")
        same("-c", "-p", server.port, "get", "foo")
        same("-c", "-p", server.port, stdin=b"get foo\nget foo\n")
    assert [b"ASKING"] in home.commands or [b"asking"] in home.commands


def test_redirections_in_circles_end(canned):
    server = canned(b"")
    server.answer = b"-MOVED 1 127.0.0.1:%d\r\n" % server.port
    outcome = cli("-c", "-p", server.port, "get", "foo")
    assert outcome.status == 1 and b"redirections" in outcome.err


# ---- scan, stat, latency, pipe ----


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--pattern", "s*"],
        ["--quoted-pattern", '"s*"'],
        ["--quoted-pattern", "'s*'"],
        ["--quoted-pattern", '"s*'],
        ["--pattern", "nosuch"],
        ["--no-raw"],
        ["--csv"],
        ["--json"],
        ["-i", "0.01"],
        ["-n", "5"],
        ["ignored"],
    ],
    ids=" ".join,
)
def test_scan_prints_alike(oracle, args):
    cli("-p", oracle.port, "--quoted-input", "set", '"bin\\xff\\n"', "x")
    args = ["-p", oracle.port, "--scan"] + args
    theirs, ours = run(THEIRS, args), run(CLI, args)
    for outcome in theirs, ours:  # the order changes when the server rehashes
        outcome.out = sorted(outcome.out.split(b"\n"))
    assert ours == theirs


def test_scan_prints_zero_bytes(oracle):
    """redis-cli stops at them, where its output is raw."""
    cli("-p", oracle.port, "--quoted-input", "set", '"bin\\x00y"', "x")
    assert cli("-p", oracle.port, "--scan", "--pattern", "bin*").out == b"bin\x00y\n"
    assert cli("-p", oracle.port, "--scan", "--quoted-pattern", '"bin\\x00*"').out == b"bin\x00y\n"


def test_scan_of_many_keys(oracle):
    cli("-p", oracle.port, "debug", "populate", "5000")
    plain = cli("-p", oracle.port, "--scan").out.split()
    assert len(set(plain)) == 5000 + len(SEED) - 1
    before = int(re.search(rb"cmdstat_scan:calls=(\d+)", cli("-p", oracle.port, "info", "commandstats").out).group(1))
    counted = cli("-p", oracle.port, "--scan", "--count", "6000").out.split()
    after = int(re.search(rb"cmdstat_scan:calls=(\d+)", cli("-p", oracle.port, "info", "commandstats").out).group(1))
    assert set(counted) == set(plain)
    assert after - before < 10


def test_scan_errors(canned):
    for answer in b"-ERR no\r\n", b"+OK\r\n", b"*2\r\n:1\r\n*0\r\n", b"*2\r\n$1\r\n0\r\n*1\r\n:1\r\n":
        outcome = cli("-p", canned(answer).port, "--scan")
        assert outcome.status == 1 and outcome.err.startswith(b"ERROR: ")


def test_stat(oracle):
    """The heading and the shape of the rows; the figures differ from run to run."""
    args = ["-p", oracle.port, "--stat", "-i", "0.05"]
    heading = None
    for program in THEIRS, CLI:
        flush = ["stdbuf", "-oL"] if program == THEIRS else []
        with subprocess.Popen(
            flush + [program] + [str(a) for a in args], stdout=subprocess.PIPE
        ) as process:
            lines = [process.stdout.readline() for _ in range(25)]
            process.kill()
        heading = heading or lines[0:2]
        assert lines[0:2] == heading
        assert lines[22:24] == heading, "again after 20 rows"
        for line in lines[2:22]:
            assert re.fullmatch(rb"9          [\d.]+[KM] +1       0       \d+ \(\+\d+\) +\d+ +\n", line), line
    outcome = cli(*args, "-r", "2")
    assert outcome.status == 0 and outcome.out.count(b"\n") == 4


@pytest.mark.parametrize(
    "style,shape",
    [
        ("raw", rb"\d+ \d+ \d+\.\d\d \d+\n"),
        ("csv", rb"\d+,\d+,\d+\.\d\d,\d+\n"),
        ("json", rb'\{"min": \d+, "max": \d+, "avg": \d+\.\d\d, "count": \d+\}\n'),
    ],
)
def test_latency(oracle, style, shape):
    args = ["-p", oracle.port, "-i", "0.1", "--latency"] + STYLES[style]
    for program in THEIRS, CLI:
        outcome = run(program, args)
        assert outcome.status == 0 and re.fullmatch(shape, outcome.out), outcome


def test_latency_history(oracle):
    args = ["-p", str(oracle.port), "-i", "0.05", "--latency-history"]
    with subprocess.Popen([CLI] + args, stdout=subprocess.PIPE) as process:
        lines = [process.stdout.readline() for _ in range(3)]
        process.kill()
    assert all(re.fullmatch(rb"\d+ \d+ \d+\.\d\d \d+\n", line) for line in lines)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"set a 1\r\nset b 2\r\n",
        b"set a 1\r\nfoo\r\nincr str\r\n",
        b"*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\n1\r\n",
        b"lrange list 0 -1\r\nping\r\n",
        b"*2\r\n$4\r\nECHO\r\n$20\r\n12345678901234567890\r\n",
        b"set a 1",
        b"*1\r\n$4\r\nPING\r\n" * 50000,
        b"debug protocol array\r\n" * 100,
    ],
    ids=lambda d: repr(d[:30]),
)
def test_pipe_acts_alike(oracle, data):
    same("-p", oracle.port, "--pipe", stdin=data)


def test_pipe_of_large_replies(oracle):
    """Both directions are full at once."""
    cli("-p", oracle.port, "-x", "set", "big", stdin=b"x" * 1000000)
    outcome = cli("-p", oracle.port, "--pipe", stdin=b"get big\r\n" * 100 + b"set big y\r\n" * 100000)
    assert outcome.out.endswith(b"errors: 0, replies: 100100\n") and outcome.status == 0


def test_pipe_gives_up(oracle, canned):
    start = time.monotonic()
    args = ["-p", oracle.port, "--pipe", "--pipe-timeout", "1"]
    outcome = same(*args, stdin=b"blpop none 0\r\n")
    assert outcome.status == 1
    assert time.monotonic() - start >= 2  # both waited
    # On a closed connection redis-cli ends without a word; we say why.
    theirs = run(THEIRS, args, b"*3\r\n$xx\r\nset\r\n")
    ours = run(CLI, args, b"*3\r\n$xx\r\nset\r\n")
    assert (ours.status, ours.out) == (theirs.status, theirs.out) and theirs.status == 1
    why = rb"Error reading from the server: (Server closed the connection|Connection reset by peer)\n"
    assert ours.err.startswith(theirs.err) and re.fullmatch(why, ours.err[len(theirs.err) :])
    outcome = cli("-p", canned(b"bad\r\n").port, "--pipe", stdin=b"*1\r\n$4\r\nPING\r\n")
    assert outcome.status == 1 and b'got "b"' in outcome.err


# ---- the prompt ----


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
