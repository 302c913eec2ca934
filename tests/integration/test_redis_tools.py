"""Debian's redis-cli and redis-benchmark against our server."""

import subprocess

import pytest

from lib.bounds import scaled


def run(program, server, *words, text=None):
    done = subprocess.run([program, "-p", str(server.port), *words], input=text,
                          capture_output=True, timeout=scaled(60), text=True)
    return done.returncode, done.stdout, done.stderr


def cli(server, *words, text=None):
    status, out, err = run("redis-cli", server, *words, text=text)
    assert status == 0, err
    return out


def test_one_shot(server):
    assert cli(server, "SET", "k", "v") == "OK\n"
    assert cli(server, "GET", "k") == "v\n"
    assert cli(server, "INCR", "n") == "1\n"
    assert cli(server, "--no-raw", "MGET", "k", "none") == '1) "v"\n2) (nil)\n'
    assert cli(server, "-3", "--no-raw", "GET", "none") == "(nil)\n"
    assert cli(server, "--json", "-3", "MGET", "k", "none") == '["v",null]\n'


def test_stdin_and_repeat(server):
    assert cli(server, text="SET a 1\nINCR a\nGET a\n") == "OK\n2\n2\n"
    assert cli(server, "-x", "SET", "big", text="y" * 100_000) == "OK\n"
    assert cli(server, "STRLEN", "big") == "100000\n"
    assert cli(server, "-r", "3", "INCR", "n") == "1\n2\n3\n"


def test_pipe_mode(server):
    text = "".join("*3\r\n$3\r\nSET\r\n$6\r\nk%05d\r\n$1\r\nv\r\n" % n for n in range(10_000))
    out = cli(server, "--pipe", text=text)
    assert "errors: 0, replies: 10000" in out
    assert cli(server, "DBSIZE") == "10000\n"


def test_scan_bigkeys_and_info(server):
    cli(server, text="".join("SET k%d %s\n" % (n, "x" * n) for n in range(1, 50)))
    assert len(cli(server, "--scan", "--pattern", "k1*").split()) == 11
    assert "Biggest string found" in cli(server, "--bigkeys")
    assert "Biggest string found" in cli(server, "--memkeys")
    assert "redis_version" in cli(server, "INFO", "server")
    assert "CLIENT <subcommand>" in cli(server, "CLIENT", "HELP")


@pytest.mark.parametrize("options", [
    ["-t", "ping_inline,ping_mbulk,set,get,incr,mset", "-n", "2000"],
    ["-t", "set,get", "-n", "20000", "-P", "32", "-r", "1000", "-d", "200"],
    ["-t", "set,get", "-n", "2000", "--threads", "2", "-c", "20"],
    ["-n", "2000", "-P", "8", "SET", "key:__rand_int__", "v"],
    ["-t", "get", "-n", "1000", "-3", "--csv"],
    ["-t", "set", "-n", "200", "-d", "100000", "-k", "0"],
], ids=lambda o: " ".join(o)[:40])
def test_benchmark(server, options):
    status, out, err = run("redis-benchmark", server, "-q", *options)
    assert status == 0
    assert "rror" not in out + err
    assert "requests per second" in out or "rps" in out
