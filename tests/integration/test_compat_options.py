"""A drop-in: the file that Debian's redis-server installs starts our server, so does one with every
option of KeyDB, and what does not exist yet is refused by name and line."""

import os
import re
import subprocess

import pytest

from lib.resp import Error
from lib.server import Server

DEBIAN_FILE = "/etc/redis/redis.conf"

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]

# What the harness sets for all servers, and a test here wants as the file says.
AS_THE_FILE_SAYS = {"save": None, "bind": None, "enable-debug-command": None,
                    "server-threads": None, "min-clients-per-thread": None}

# Lines of Debian's file about places where only its own user may write, and the one that would take
# the server away from the test.
ADJUSTED = {"dir": ".", "logfile": "server.log", "pidfile": "server.pid", "daemonize": "no"}

# Every option of KeyDB that Redis has not (reference/keydb.md, 1.3), and every name of its
# CONFIG GET * that 7.0's has not, with a value that switches nothing on.
KEYDB = """
server-threads 2
server-thread-affinity false
min-clients-per-thread 20
active-client-balancing yes
replica-weighting-factor 2
active-replica no
multi-master no
multi-master-no-forward no
replica-quorum -1
allow-write-during-load no
enable-keydb-fastsync no
repl-backlog-disk-reserve 0
force-backlog-disk-reserve no
enable-async-commands yes
max-snapshot-slip 400
enable-async-rehash yes
prefetch-enabled yes
use-fork yes
multithread-load-enabled no
loading-process-events-interval-bytes 2097152
loading-process-events-interval-keys 8192
allow-rdb-resize-op yes
soft-shutdown no
maxclients-reserved 10
overload-protect-percent 0
delete-on-evict no
storage-provider-options ""
storage-cache-mode writethrough
storage-flush-period 500
maxstorage 0
flash-disable-key-cache no
semi-ordered-set-bucket-size 0
max-rand-count 4611686018427387903
db-s3-object ""
tls-allowlist client.example.org
tls-rotation yes
tls-auditlog-blocklist client.example.org
availability-zone us-east-1a
time-thread-priority no
enable-motd no
version-override 6.3.4
testmode no
rdbfuzz-mode no
blob-support no
io-threads-do-reads yes
use-exit-on-panic no
key-load-delay 0
rdb-key-save-delay 0
watchdog-period 0
lua-replicate-commands yes
"""

# Lines that would switch on what does not exist, and what is said of them.
REFUSED = [
    ("cluster-enabled yes", "cluster mode"),
    ("storage-provider flash /var/lib/keydb/flash", "storage providers"),
    ("scratch-file-path /tmp", "storage providers"),
    ("enable-keydb-fastsync yes", "fast sync"),
    ("force-backlog-disk-reserve yes", "backlog that is on disk"),
    ("use-fork no", "without a fork"),
    ("multithread-load-enabled yes", "several threads"),
    ("db-s3-object s3://bucket/dump.rdb", "S3"),
    ("watchdog-period 500", "watchdog"),
    ("testmode yes", "test mode"),
    ("rdbfuzz-mode yes", "fuzzing mode"),
    ("blob-support yes", "storage providers"),
    ("activedefrag yes", "Active defragmentation"),
]


def debian_text():
    """The file as it was installed; it may be its own user's only."""
    try:
        with open(DEBIAN_FILE, encoding="utf-8") as file:
            return file.read()
    except PermissionError:
        return subprocess.run(["sudo", "-n", "cat", DEBIAN_FILE], check=True, text=True,
                              stdout=subprocess.PIPE).stdout


def adjusted(text):
    for name, value in ADJUSTED.items():
        text, found = re.subn(r"(?m)^%s .*$" % name, "%s %s" % (name, value), text)
        assert found == 1, name
    return text


def names_of(text):
    return sorted({line.split()[0] for line in text.splitlines()
                   if line.strip() and not line.startswith("#")})


def shown(server, names):
    with server.connect() as c:
        return {name: c.call("CONFIG", "GET", name) for name in names}


def test_debians_file_starts_it(make_server):
    text = adjusted(debian_text())
    server = make_server(config=text, options=AS_THE_FILE_SAYS,
                         files=["server.log", "server.pid", "dump.rdb"])
    other = Server("/usr/bin/redis-server", config=text, options=AS_THE_FILE_SAYS)
    other.expected_files = {"server.log", "server.pid", "dump.rdb"}
    names = [n for n in names_of(text) if n not in set(ADJUSTED) | {"port"}]
    try:
        other.start()
        theirs = shown(other, names)
        other.stop()
        assert other.problems() == ""
    finally:
        other.remove()
    assert len(names) > 60
    assert shown(server, names) == theirs


@pytest.mark.parametrize("own", [True, False], ids=["file", "arguments"])
def test_every_option_of_keydb(make_server, own):
    lines = [line for line in KEYDB.splitlines() if line]
    if own:
        server = make_server(config="\n".join(lines), options={"server-threads": None,
                                                             "min-clients-per-thread": None})
    else:
        server = make_server(options=dict(line.split(" ", 1) for line in lines if '""' not in line))
    with server.connect() as c:
        for line in lines:
            name, value = line.split(" ", 1)
            assert c.call("CONFIG", "GET", name)[1:] == [value.replace('""', "").encode()], line


def test_all_names_that_the_oracle_shows(client, oracle):
    with oracle.connect() as other:
        flat = other.call("CONFIG", "GET", "*")
    ours = set(client.call("CONFIG", "GET", "*")[0::2])
    assert sorted(set(flat[0::2]) - ours) == []


# Those for which the defaults differ, and why.
OTHER_DEFAULT = {
    b"bind": "the harness binds both elsewhere", b"port": "each has its own",
    b"dir": "each has its own", b"pidfile": "Redis writes one", b"unixsocket": "the harness's",
    b"always-show-logo": "", b"set-max-listpack-entries": "", b"syslog-ident": "our own name",
    b"logfile": "", b"io-threads": "ours are server threads: two by default",
}


def test_the_oracles_defaults(client, oracle):
    with oracle.connect() as other:
        flat = other.call("CONFIG", "GET", "*")
    theirs = dict(zip(flat[0::2], flat[1::2]))
    flat = client.call("CONFIG", "GET", "*")
    ours = dict(zip(flat[0::2], flat[1::2]))
    different = {name: (ours[name], theirs[name]) for name in theirs
                 if name in ours and name not in OTHER_DEFAULT and ours[name] != theirs[name]}
    assert different == {}


@pytest.mark.parametrize("line,text", REFUSED, ids=lambda value: value.split()[0])
def test_what_does_not_exist_is_refused_by_line(make_server, line, text):
    server = make_server(config="# a comment\n\n%s\nhz 10\n" % line, start=False)
    said = server.start_fails()
    assert "at line 3 of server.conf" in said
    assert ">>> '%s'" % line in said
    assert text in said and "does not exist" in said.replace("do not", "does not") \
        or "this server has none" in said


def test_off_is_accepted_in_other_words(make_server):
    server = make_server(config="cluster-enabled NO\nrepl-backlog-disk-reserve 0gb\nuse-fork Yes\n")
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "use-fork") == [b"use-fork", b"yes"]
        for name, value in (("activedefrag", "yes"), ("enable-keydb-fastsync", "yes"), ("db-s3-object", "s3://x")):
            reply = c.call("CONFIG", "SET", name, value)
            assert isinstance(reply, Error) and name.encode() in reply, name
            assert c.call("CONFIG", "SET", name, "" if "s3" in name else "no") == b"OK"


# name, values that are refused, values that are taken: as the oracle has them.
VALUES = [
    ("proc-title-template", ["", "{foo}", "{title", "{}"], ["{title} {port}", "x{config-file}"]),
    ("oom-score-adj", ["maybe", ""], []),
    ("oom-score-adj-values", ["1", "1 2", "-3000 1 2", "1 2 3 4", "a b c", ""],
     ["300 200 100", "-2000 0 2000", "0 200 800"]),
    ("jemalloc-bg-thread", ["x"], ["no", "yes"]), ("shutdown-timeout", ["-1", "x"], ["0", "5"]),
    ("crash-log-enabled", ["x"], ["no", "yes"]), ("crash-memcheck-enabled", ["x"], ["no"]),
    ("set-proc-title", ["no"], []), ("server_cpulist", ["0"], []), ("bio_cpulist", ["0"], []),
    ("aof_rewrite_cpulist", ["0"], []), ("bgsave_cpulist", ["0"], []),
    ("ignore-warnings", [], ["ARM64-COW-BUG"]), ("cluster-enabled", ["yes", "no"], []),
    ("cluster-config-file", ["x"], []), ("cluster-port", ["1"], []),
    ("cluster-node-timeout", ["-1", "x"], ["0", "100"]),
    ("cluster-migration-barrier", ["-1"], ["3"]),
    ("cluster-announce-bus-port", ["70000", "-1"], ["7000"]),
    ("cluster-announce-hostname", ["ba_d!", "a b"], ["host-1.example.org", ""]),
    ("cluster-announce-ip", [], ["10.0.0.1", ""]),
    ("cluster-preferred-endpoint-type", ["x"], ["hostname", "unknown-endpoint", "ip"]),
    ("cluster-slave-validity-factor", ["-1"], ["0"]),
    ("cluster-replica-no-failover", ["x"], ["yes"]),
    ("cluster-link-sendbuf-limit", ["x"], ["1k"]),
    ("active-defrag-threshold-lower", ["2000", "-1"], ["0", "1000"]),
    ("active-defrag-cycle-min", ["0", "100"], ["99"]),
    ("active-defrag-max-scan-fields", ["0"], ["1"]),
    ("active-defrag-ignore-bytes", ["0"], ["1"]),
    ("aof-disable-auto-gc", ["x"], ["yes", "no"]),
    ("propagation-error-behavior", ["x", ""], ["panic", "panic-on-replicas", "ignore"]),
    ("replica-ignore-disk-write-errors", ["x"], ["yes"]),
    ("slave-ignore-maxmemory", ["x"], ["no", "yes"]),
]


@pytest.mark.parametrize("name,bad,good", VALUES, ids=lambda value: str(value)[:40])
def test_values_as_the_oracle_takes_them(client, oracle, name, bad, good):
    with oracle.connect() as other:
        start = other.call("CONFIG", "GET", name)
        try:
            for value in bad + good:
                ours = client.call("CONFIG", "SET", name, value)
                assert ours == other.call("CONFIG", "SET", name, value), value
                assert isinstance(ours, Error) == (value in bad), value
                assert client.call("CONFIG", "GET", name) == \
                    other.call("CONFIG", "GET", name), value
        finally:
            if good:
                other.call("CONFIG", "SET", name, start[1])


@pytest.mark.parametrize("option", ["shutdown-timeout x", "proc-title-template {x}",
                                    "oom-score-adj-values 1 2", "cluster-enabled maybe",
                                    "server_cpulist 0,x", "bio_cpulist 5-2", "bgsave_cpulist 1:2",
                                    "aof_rewrite_cpulist 0-7:0", "server_cpulist 99999"])
def test_faults_stop_the_start(make_server, option):
    said = make_server(config=option + "\n", start=False).start_fails()
    assert ">>> '%s'" % option in said and "argument" in said or "template format" in said


def test_is_flash_enabled_answers_as_keydbs_does():
    from lib.server import server_path  # not where a redis-server stands in
    assert subprocess.run([server_path(), "--is-flash-enabled"], check=False).returncode == 1


def test_force_all_writes_every_option(make_server):
    server = make_server(config="# mine\nhz 20\n")
    with server.connect() as c:
        flat = c.call("CONFIG", "GET", "*")
        c.ok("DEBUG", "CONFIG-REWRITE-FORCE-ALL")
    with open(server.file("server.conf"), encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("# mine\nhz 20\n")
    written = set(names_of(text))
    aliases = {"io-threads", "lua-time-limit"}
    missing = [n.decode() for n, v in zip(flat[0::2], flat[1::2])
               if v and n.decode() not in written | aliases and "slave" not in n.decode() and
               "ziplist" not in n.decode()]
    assert missing == []
    again = Server(config=re.sub(r"(?m)^(port|dir|bind|pidfile) .*\n", "", text))
    try:
        again.start()
        assert shown(again, ["hz", "cluster-node-timeout"])["hz"] == [b"hz", b"20"]
    finally:
        again.stop()
        assert again.problems() == ""
        again.remove()
