"""keydb-cli beside Debian's redis-cli 7.0.15: the same arguments against the same server must print
the same bytes and end with the same status. Intended differences are tests of their own, at the end
of each part, and listed in src/tools/cli/README.md.
"""

import os
import re
import subprocess

import pytest

from lib.cli import CLI, PATIENCE_S, ROOT, THEIRS, cli, run, same
from lib.cli_oracle import STYLES, canned, oracle, shared_oracle
from lib.server import closed_port

# ---- output styles ----

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
