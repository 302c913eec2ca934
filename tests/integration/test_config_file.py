"""The configuration file and CONFIG REWRITE."""

import os
import subprocess

import pytest

from lib.server import server_path

pytestmark = pytest.mark.any_threads

FILE = """# A comment at the top that must stay.

timeout 100
# About the log:
loglevel notice

   # an indented comment
slowlog-log-slower-than 5000
tcp-keepalive 60
maxclients 500
client-output-buffer-limit normal 1mb 1mb 10
# the last line is a comment too
"""


def value(client, name):
    return client.call("CONFIG", "GET", name)[1]


def test_options_of_the_file_hold_and_arguments_win(make_server):
    server = make_server({"timeout": "7"}, config=FILE)
    with server.connect() as c:
        assert value(c, "timeout") == b"7"
        assert value(c, "tcp-keepalive") == b"60"
        assert value(c, "slowlog-log-slower-than") == b"5000"
        assert value(c, "client-output-buffer-limit").startswith(b"normal 1048576 1048576 10 ")


def test_rewrite_keeps_comments_and_order(make_server):
    server = make_server(config=FILE)
    with server.connect() as c:
        c.ok("CONFIG", "SET", "timeout", "222", "slowlog-log-slower-than", "1234")
        c.ok("CONFIG", "SET", "proto-max-bulk-len", "3mb")
        c.ok("CONFIG", "REWRITE")
    lines = [line.strip() for line in server.read("server.conf").split("\n")]
    kept = [line.strip() for line in FILE.split("\n") if line.strip().startswith("#")]
    positions = [lines.index(line) for line in kept]
    assert positions == sorted(positions)
    assert "timeout 222" in lines and "slowlog-log-slower-than 1234" in lines
    assert lines.index("timeout 222") < lines.index("# About the log:")
    assert lines.index("loglevel notice") < lines.index("slowlog-log-slower-than 1234")
    assert "tcp-keepalive 60" in lines
    assert any(line.startswith("proto-max-bulk-len ") for line in lines)
    assert lines.index("# the last line is a comment too") < [
        n for n, line in enumerate(lines) if line.startswith("proto-max-bulk-len ")][0]


def test_rewrite_twice_changes_nothing(make_server):
    server = make_server(config=FILE)
    with server.connect() as c:
        c.ok("CONFIG", "REWRITE")
        first = server.read("server.conf")
        c.ok("CONFIG", "REWRITE")
    assert server.read("server.conf").rstrip() == first.rstrip()


def test_rewritten_file_starts_the_same_server(make_server):
    server = make_server(config=FILE)
    with server.connect() as c:
        c.ok("CONFIG", "SET", "requirepass", "a \"b\\c'# d", "latency-monitor-threshold", "77")
        c.ok("CONFIG", "SET", "notify-keyspace-events", "KEx")
        before = c.call("CONFIG", "GET", "*")
        c.ok("CONFIG", "REWRITE")
    again = make_server(config=server.read("server.conf"), password="a \"b\\c'# d")
    with again.connect() as c:
        after = c.call("CONFIG", "GET", "*")
    before, after = (dict(zip(x[0::2], x[1::2])) for x in (before, after))
    different = {n for n in before if before[n] != after.get(n)}
    assert different <= {b"port", b"dir", b"pidfile"}


def test_values_with_line_ends_cannot_add_lines(make_server):
    server = make_server(config="timeout 1\n")
    with server.connect() as c:
        reply = c.call("CONFIG", "SET", "requirepass", "x\nmaxclients 3\r\ny")
        if reply == b"OK":
            c.ok("CONFIG", "REWRITE")
    assert "\nmaxclients 3" not in server.read("server.conf")


def test_file_mode_and_no_temporary_files_after_rewrite(make_server):
    server = make_server(config=FILE)
    os.chmod(server.file("server.conf"), 0o640)
    with server.connect() as c:
        c.ok("CONFIG", "REWRITE")
    assert sorted(os.listdir(server.directory)) == ["server.conf", "stderr", "stdout"]


def test_rewrite_without_a_file(client):
    assert client.error("CONFIG", "REWRITE") == b"ERR The server is running without a config file"


@pytest.mark.parametrize("text,words", [
    ("timeout 1\n\nno-such-option 5\n", ["3", "no-such-option"]),
    ("timeout x\n", ["1", "timeout"]),
    ("timeout\n", ["1", "timeout"]),
    ("timeout 1 2\n", ["1", "timeout"]),
    ("loglevel \"notice\n", ["1", "loglevel"]),
    ("maxclients -3\n", ["1", "maxclients"]),
    ("include missing-file.conf\n", ["missing-file.conf"]),
])
def test_wrong_files_stop_the_start_and_name_the_line(make_server, text, words):
    server = make_server(config=text, start=False)
    said = server.start_fails()
    assert all(word in said for word in words)


@pytest.mark.parametrize("options", [
    {"no-such-option": "1"}, {"timeout": "x"}, {"bind": "256.1.1.1"}])
def test_wrong_arguments_stop_the_start(make_server, options):
    server = make_server(options, start=False)
    assert server.start_fails()


def test_include(make_server):
    server = make_server(config="include part.conf\ntimeout 3\n", start=False,
                         files=["part.conf"])
    with open(server.file("part.conf"), "w", encoding="utf-8") as file:
        file.write("timeout 2\ntcp-keepalive 9\n")
    server.start()
    with server.connect() as c:
        assert value(c, "timeout") == b"3" and value(c, "tcp-keepalive") == b"9"


def test_quotes_case_and_memory_units(make_server):
    server = make_server(config="TIMEOUT \"1\\x32\"\nproto-max-bulk-len 2MB\n"
                                "client-query-buffer-limit 3m\nloglevel 'Verbose'\n")
    with server.connect() as c:
        assert value(c, "timeout") == b"12"
        assert value(c, "proto-max-bulk-len") == b"2097152"
        assert value(c, "client-query-buffer-limit") == b"3000000"
        assert value(c, "loglevel") == b"verbose"


def test_version_and_help():
    for option, word in (("--version", b"v="), ("-v", b"v="), ("--help", b"Usage"),
                         ("-h", b"Usage")):
        done = subprocess.run([server_path(), option], capture_output=True, timeout=20)
        assert word in done.stdout + done.stderr


@pytest.mark.parametrize("line", ['save 3600 1 ""', 'save "" 3600 1', "save '3600 1 \"\"'",
                                  'user "bob on >x"'])
def test_words_that_do_not_belong_together(make_server, make_oracle, line):
    """As with redis-server, an empty word takes nothing back beside others, and a user's name is a word."""
    oracle = make_oracle(start=False)
    oracle.config = line + "\n"
    for server in (make_server(config=line + "\n", start=False), oracle):
        server.options["save"] = None
        failure = server.start_fails()
        assert "at line 1" in failure or "ACL" in failure


def test_config_set_of_words_that_do_not_belong_together(client, oracle):
    for c in (client, oracle.connect()):
        before = c.call("CONFIG", "GET", "save")
        assert b"save" in c.error("CONFIG", "SET", "save", '3600 1 ""')
        assert c.call("CONFIG", "GET", "save") == before


# ---- CONFIG REWRITE beside included files

@pytest.fixture
def included(make_server):
    """included(main, parts): a server whose file includes parts ({name: text}); restart() reads what REWRITE left."""
    def start(main, parts):
        server = make_server({"save": None}, config=main, start=False, files=list(parts))
        for name, text in parts.items():
            with open(server.file(name), "w", encoding="utf-8") as file:
                file.write(text)
        server.expected_files.add("dump.rdb")
        return server.start()
    return start


def restart(server):
    server.stop()
    server.config = server.read("server.conf")
    server.start()


@pytest.mark.parametrize("main,save,written", [
    ("include part.conf\n", b"1 1", ""),
    ("include part.conf\nsave \"\"\nsave 7 7\n", b"7 7", 'save ""\nsave 7 7\n'),
    ("save 5 5\ninclude part.conf\nsave 7 7\n", b"5 5 1 1 7 7", "save 7 7\n"),
    ("save 5 5\ninclude p*.conf\ninclude server2.conf\n", b"5 5 1 1", ""),
])
def test_rewrite_beside_an_included_save(included, main, save, written):
    server = included(main, {"part.conf": "save 1 1\n", "server2.conf": "timeout 3\n"})
    with server.connect() as c:
        assert value(c, "save") == save
        c.ok("CONFIG", "SET", "maxclients", "77", "timeout", "5")
        c.ok("CONFIG", "REWRITE")
    assert "maxclients 77\n" in server.read("server.conf") and written in server.read("server.conf")
    restart(server)
    for points in (b"9 9", b"", save):
        with server.connect() as c:
            assert value(c, "maxclients") == b"77" and value(c, "timeout") == b"5"
            c.ok("CONFIG", "SET", "save", points)
            c.ok("CONFIG", "REWRITE")
            c.ok("CONFIG", "REWRITE")
        restart(server)
        with server.connect() as c:
            assert value(c, "save") == points


def test_rewrite_beside_every_repeated_option_of_an_included_file(included):
    parts = {"part.conf": "client-output-buffer-limit normal 1 1 1\nclient-output-buffer-limit pubsub 9 9 9\n"
                          "tls-allowlist a\ntls-auditlog-blocklist b\nmaxclients 90\nbind 127.0.0.1 127.0.0.2\n"}
    server = included("include part.conf\n", parts)
    names = ("client-output-buffer-limit", "tls-allowlist", "tls-auditlog-blocklist", "maxclients")
    values = ("normal 2 2 2 pubsub 0 0 0", "x y", "z", "91")
    with server.connect() as c:
        c.ok("CONFIG", "SET", *[word for pair in zip(names, values) for word in pair])
        before = [value(c, n) for n in names]
        c.ok("CONFIG", "REWRITE")
    restart(server)
    with server.connect() as c:
        assert [value(c, n) for n in names] == before
        assert value(c, "bind") == b"127.0.0.1"  # the harness's argument


def users(client):
    return {u.split()[1]: u for u in client.call("ACL", "LIST")}


def test_rewrite_beside_an_included_user(included):
    """Other users are written; of the included ones only what changed can't be, and all else is."""
    server = included("include part.conf\nuser ann on >a ~a* +get\n",
                      {"part.conf": "user bob on >b ~b* +get\nrename-command FLUSHALL NEVER\n"})
    with server.connect() as c:
        c.ok("ACL", "SETUSER", "cid", "on", ">c", "+get")
        c.ok("CONFIG", "REWRITE")
        before = users(c)
    assert "user bob" not in server.read("server.conf")
    restart(server)
    with server.connect() as c:
        assert users(c) == before
        c.ok("ACL", "SETUSER", "bob", "+set")
        c.ok("ACL", "SETUSER", "dan")
        c.ok("CONFIG", "SET", "timeout", "5")
        assert c.error("CONFIG", "REWRITE").startswith(b"ERR Rewriting config file: all was written but what lines of 'user'")
        changed = users(c)
    restart(server)
    with server.connect() as c:
        assert value(c, "timeout") == b"5"
        assert users(c) == {**changed, b"bob": before[b"bob"]}
        assert c.call("ACL", "DELUSER", "bob") == 1
        assert b"'user'" in c.error("CONFIG", "REWRITE")


def test_a_user_that_went_after_a_rewrite_goes_from_the_file(make_server):
    server = make_server(config="timeout 1\n")
    with server.connect() as c:
        c.ok("ACL", "SETUSER", "ann", "on", ">a")
        c.ok("CONFIG", "REWRITE")
        assert "user ann" in server.read("server.conf")
        assert c.call("ACL", "DELUSER", "ann") == 1
        c.ok("CONFIG", "REWRITE")
    assert "user ann" not in server.read("server.conf")


@pytest.mark.parametrize("main,part", [("replicaof 127.0.0.1 1\ninclude part.conf\n", "timeout 1\n"),
                                       ("include part.conf\n", "replicaof 127.0.0.1 1\n")])
def test_rewrite_of_a_replica_that_became_a_primary(included, make_oracle, main, part):
    server = included(main, {"part.conf": part})
    with server.connect() as c:
        c.ok("REPLICAOF", "NO", "ONE")
        c.ok("CONFIG", "REWRITE")
    restart(server)
    assert server.info("replication")["role"] == "master"
    oracle = make_oracle(start=False)
    oracle.config = "\n".join(x for x in server.read("server.conf").split("\n") if x.startswith("replicaof"))
    oracle.start()
    assert oracle.info("replication")["role"] == "master"
