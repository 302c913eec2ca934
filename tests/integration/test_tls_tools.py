"""keydb-cli and keydb-benchmark over TLS, beside Debian's tools."""

import json
import os
import re
import subprocess

import pytest

from lib.bounds import scaled
from lib.server import REPOSITORY, free_port, server_path
from lib.tls import make_pki


def tool(name):
    """The one beside the server under test, or the one that make leaves in src/."""
    beside = os.path.join(os.path.dirname(server_path()), name)
    return beside if os.access(beside, os.X_OK) else os.path.join(REPOSITORY, "src", name)


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return make_pki(str(tmp_path_factory.mktemp("pki")))


class Target:
    def __init__(self, server, port, pki):
        self.server, self.port, self.pki = server, port, pki
        self.trusts = ["--cacert", pki.cert("ca")]
        self.shows = ["--cert", pki.cert("client"), "--key", pki.key("client")]
        self.tls = ["--tls"] + self.trusts + self.shows

    def run(self, program, *words, stdin=b"", status=0):
        env = {k: v for k, v in os.environ.items() if not k.startswith("REDISCLI_")}
        done = subprocess.run([program, "-p", str(self.port), *map(str, words)], input=stdin,
                              capture_output=True, timeout=scaled(60), env=env)
        assert done.returncode == status, done
        return done

    def cli(self, *words, **more):
        return self.run(tool("keydb-cli"), *words, **more)

    def benchmark(self, *words, **more):
        return self.run(tool("keydb-benchmark"), *words, **more)


@pytest.fixture
def target(make_server, pki):
    port = free_port()
    return Target(make_server(pki.options(tls_port=str(port))), port, pki)


def test_cli_commands(target):
    assert target.cli(*target.tls, "ping").stdout == b"PONG\n"
    assert target.cli("-u", "rediss://localhost:%d/3" % target.port, *target.trusts, *target.shows,
                      "client", "info").stdout.count(b" db=3 ") == 1
    assert target.cli(*target.tls, "--sni", "localhost", "ping").stdout == b"PONG\n"
    assert target.cli("--tls", "--insecure", *target.shows, "ping").stdout == b"PONG\n"
    assert target.cli("--tls", "--cacert", target.pki.cert("ca"), "--tls-ciphersuites",
                      "TLS_CHACHA20_POLY1305_SHA256", *target.shows, "ping").stdout == b"PONG\n"
    target.cli(*target.tls, "-x", "set", "big", stdin=b"v" * 3000000)
    assert target.cli(*target.tls, "get", "big").stdout == b"v" * 3000000 + b"\n"
    lines = b"".join(b"set k%d %s\nget k%d\n" % (n, b"x" * n, n) for n in range(1, 300))
    replies = target.cli(*target.tls, stdin=lines).stdout.split(b"\n")
    assert replies[1:598:2] == [b"x" * n for n in range(1, 300)]


def test_cli_pipe_and_scan(target):
    data = b"".join(b"*3\r\n$3\r\nSET\r\n$6\r\nk%05d\r\n$500\r\n%s\r\n" % (n, b"v" * 500)
                    for n in range(20000))
    done = target.cli(*target.tls, "--pipe", stdin=data)
    assert b"errors: 0, replies: 20000" in done.stdout
    assert len(target.cli(*target.tls, "--scan").stdout.split()) == 20000
    data = b"*2\r\n$3\r\nGET\r\n$6\r\nk00001\r\n" * 20000
    assert b"errors: 0, replies: 20000" in target.cli(*target.tls, "--pipe", stdin=data).stdout


def test_cli_walks_and_transfers(target, tmp_path):
    """Pipelines with large pages and names, and a data set that is no reply."""
    data = b"".join(b"*3\r\n$3\r\nSET\r\n$405\r\n%s%05d\r\n$100\r\n%s\r\n" % (b"k" * 400, n, b"v" * 100)
                    for n in range(3000))
    assert b"errors: 0, replies: 3000" in target.cli(*target.tls, "--pipe", stdin=data).stdout
    target.cli(*target.tls, "config", "set", "rdbcompression", "no", "repl-diskless-sync-delay", "0")
    for count in "50", "20000":
        done = target.cli(*target.tls, "--bigkeys", "--count", count)
        assert b"3000 strings with 300000 bytes (100.00% of keys, avg size 100.00)\n" in done.stdout
    assert b"Keys sampled: 3000\n" in target.cli(*target.tls, "--keystats").stdout
    for words in target.tls, ["-u", "rediss://localhost:%d" % target.port, *target.trusts, *target.shows]:
        target.cli(*words, "--rdb", tmp_path / "got.rdb")
        with open(tmp_path / "got.rdb", "rb") as got:
            assert got.read().count(b"k" * 400) == 3000


@pytest.mark.any_threads
def test_cli_says_why_not_as_redis_cli(target):
    missing = "/nonexistent"
    for words in (["--tls", "--cacert", missing], ["--tls", *target.trusts, "--tls-ciphers", "foo"],
                  ["--tls", *target.trusts, "--tls-ciphersuites", "foo"],
                  ["--tls", *target.trusts, "--cert", missing, "--key", missing],
                  ["--tls", "--cacert", target.pki.stranger.cert("stranger")]):
        ours = target.cli(*words, "ping", status=1)
        theirs = target.run("/usr/bin/redis-cli", *words, "ping", status=1)
        # It tries twice, and tells twice, when its own files are no good.
        assert ours.stdout == theirs.stdout == b""
        assert ours.stderr.split(b"\n")[0] == theirs.stderr.split(b"\n")[0]
    half = target.cli("--tls", *target.trusts, "--cert", target.pki.cert("client"), "ping", status=1)
    assert b"--cert and --key belong together" in half.stderr
    # Without a certificate, without TLS, and TLS where there is none.
    assert target.cli("--tls", *target.trusts, "ping", status=1).stdout == b""
    assert target.cli("ping", status=1).stdout == b""
    target.port = target.server.port
    assert b"SSL_connect failed" in target.cli(*target.tls, "ping", status=1).stderr


def test_benchmark(target):
    common = [*target.tls, "-n", "2000", "-c", "10", "--json"]
    for more in (["-t", "set,get"], ["-t", "set,get", "-P", "16", "-r", "1000"],
                 ["-t", "set,get", "-d", "300000", "-n", "60"],
                 ["-t", "set,get", "-d", "300000", "-n", "60", "-P", "5"],
                 ["-t", "get", "--threads", "3"], ["-t", "ping", "-k", "0", "-n", "100"],
                 ["-t", "lrange_600", "-n", "300", "-3", "--dbnum", "2"]):
        lines = target.benchmark(*common, *more).stdout.splitlines()
        assert lines and all(json.loads(line)["rps"] > 0 for line in lines), more
    uri = ["-u", "rediss://localhost:%d/1" % target.port, *target.trusts, *target.shows]
    full = target.benchmark(*uri, "-n", "100", "-c", "2", "-t", "set")
    assert re.search(rb"host configuration .save.", full.stdout) and full.stderr == b""
    with target.server.connect() as c:
        c.ok("SELECT", "1")
        assert c.call("DBSIZE") == 1


@pytest.mark.any_threads
def test_benchmark_says_why_not(target):
    for words in (["--tls", "--cacert", "/nonexistent"], ["--tls", *target.trusts],
                  ["--tls", "--cacert", target.pki.stranger.cert("stranger"), *target.shows], []):
        done = target.benchmark(*words, "-n", "10", "-c", "1", "-q", "-t", "get", status=1)
        assert done.stderr != b""
