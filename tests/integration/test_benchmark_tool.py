"""keydb-benchmark against the oracle: each test runs, sends what redis-benchmark sends, and prints
what redis-benchmark prints, number for number in the same places."""

import json
import os
import re
import shutil
import subprocess

import pytest

from lib.bounds import eventually, scaled
from lib.server import REPOSITORY, closed_port

OURS = os.environ.get("KEYDB_BENCHMARK", os.path.join(REPOSITORY, "src", "keydb-benchmark"))
THEIRS = shutil.which("redis-benchmark")
BOTH = ["ping_inline", "ping_mbulk", "ping", "set", "get", "incr", "lpush", "rpush", "lpop", "rpop",
        "sadd", "hset", "spop", "zadd", "zpopmin", "lrange", "lrange_100", "lrange_300",
        "lrange_500", "lrange_600", "mset"]
OURS_ONLY = {"mget": "MGET (10 keys)", "hmset": "HMSET (10 fields)", "hmget": "HMGET (10 fields)",
             "xadd": "XADD"}
COLUMNS = ["rps", "avg_latency_ms", "min_latency_ms", "p50_latency_ms", "p95_latency_ms",
           "p99_latency_ms", "max_latency_ms"]


def run(program, server, *arguments, status=0, **keywords):
    command = [program, "-p", str(server.port)] + list(arguments)
    done = subprocess.run(command, capture_output=True, timeout=scaled(60), **keywords)
    # Not text=True: that would make line ends of the carriage returns.
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status, done.stderr + done.stdout
    return done


def ours(server, *arguments, **keywords):
    return run(OURS, server, *arguments, **keywords)


def shape(text):
    """The text with each number replaced and repeated rows of a distribution joined.  What is
    written over by a carriage return is not seen by anybody.  We print a blank line between two
    reports, which the oracle does not."""
    lines = [line.rsplit("\r", 1)[-1].strip() for line in text.split("\n")]
    joined = []
    for line in lines:
        line = re.sub(r"\d+\.\d{3}", "N.NNN", line)
        # Which is what redis-benchmark finds when all takes less than a millisecond.
        line = re.sub(r": inf requests", ": N.NN requests", line)
        line = re.sub(r"\d+\.\d{2}(?!\d)", "N.NN", line)
        line = re.sub(r"cumulative count \d+", "cumulative count N", line)
        line = re.sub(r"\s+", " ", line)
        if line.startswith("======") and joined and joined[-1] == "":
            joined.pop()
        if not joined or line != joined[-1] or "cumulative" not in line:
            joined.append(line)
    while joined and joined[-1] == "":
        joined.pop()
    return joined


def csv_rows(text):
    return [re.findall(r'"([^"]*)"', line) for line in text.splitlines() if line]


@pytest.mark.parametrize("test", BOTH)
def test_full_report_has_the_shape_of_redis_benchmark(oracle, test):
    arguments = ["-n", "400", "-c", "7", "-t", test]
    assert shape(ours(oracle, *arguments).stdout) == \
        shape(run(THEIRS, oracle, *arguments).stdout)


def test_full_report_with_threads(oracle):
    arguments = ["-n", "400", "-c", "7", "--threads", "2", "-t", "get,set", "-P", "3", "-d", "20"]
    assert shape(ours(oracle, *arguments).stdout) == \
        shape(run(THEIRS, oracle, *arguments).stdout)


def test_quiet_report(oracle):
    arguments = ["-q", "-n", "400", "-t", "ping,get,lrange_100"]
    assert shape(ours(oracle, *arguments).stdout) == \
        shape(run(THEIRS, oracle, *arguments).stdout)


def test_csv_has_the_same_columns_and_tests(oracle):
    arguments = ["--csv", "-n", "200", "-t", ",".join(BOTH)]
    mine = csv_rows(ours(oracle, *arguments).stdout)
    theirs = csv_rows(run(THEIRS, oracle, *arguments).stdout)
    assert [row[0] for row in mine] == [row[0] for row in theirs]
    assert mine[0][1:] == COLUMNS
    for row in mine[1:]:
        rps, avg, low, p50, p95, p99, high = map(float, row[1:])
        assert rps > 0
        assert 0 < low <= p50 <= p95 <= p99 <= high
        assert low <= avg <= high


def test_command_of_the_users(oracle):
    arguments = ["-n", "100", "-c", "5", "-r", "10", "sadd", "words", "w:__rand_int__"]
    assert shape(ours(oracle, *arguments).stdout) == \
        shape(run(THEIRS, oracle, *arguments).stdout)


class Monitor:
    """What a server was sent while the block ran, in order, without times and addresses."""

    def __init__(self, server):
        self.client = server.connect()
        self.marker = server.connect()
        self.client.ok("MONITOR")

    def commands(self):
        self.marker.call("ECHO", "the end")
        seen = []
        while True:
            line = bytes(self.client.read()).decode()
            words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
            if words == ["ECHO", "the end"]:
                self.client.close()
                self.marker.close()
                return seen
            seen.append(words)


def blur(commands):
    """Without the bytes of payloads and random numbers, whose length and place must not differ."""
    def word_blur(word):
        plain = re.sub(r"\\(.)", r"\1", word)
        if len(plain) in (3, 100) and not plain.isdigit():
            return "%d bytes" % len(plain)
        return re.sub(r"\d{12}", "#" * 12, plain)

    return [words[:1] + [word_blur(word) for word in words[1:]] for words in commands]


def sent_by(program, server, *arguments):
    monitor = Monitor(server)
    run(program, server, *arguments)
    commands = monitor.commands()
    return [words for words in commands if words[0].upper() != "CONFIG"]


@pytest.mark.parametrize("test", BOTH)
def test_sends_what_redis_benchmark_sends(oracle, test):
    for more in ([], ["-r", "1000"], ["-d", "100"]):
        arguments = ["-n", "1", "-c", "1", "-q", "-t", test] + more
        assert blur(sent_by(OURS, oracle, *arguments)) == blur(sent_by(THEIRS, oracle, *arguments))


@pytest.mark.parametrize("test", OURS_ONLY)
def test_our_own_tests_run(oracle, test):
    rows = csv_rows(ours(oracle, "--csv", "-n", "100", "-r", "50", "-t", test).stdout)
    assert rows[1][0] == OURS_ONLY[test]
    assert float(rows[1][1]) > 0


def test_all_tests_run_by_default(oracle):
    titles = [row[0] for row in csv_rows(ours(oracle, "--csv", "-n", "60").stdout)]
    assert titles[1:6] == ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR"]
    assert set(OURS_ONLY.values()) < set(titles)
    assert len(titles) == 25


def test_counts_are_exact(oracle):
    with oracle.connect() as client:
        for extra in ([], ["--threads", "3"], ["-P", "10"], ["--threads", "2", "-P", "5"],
                      ["-k", "0"], ["-3"]):
            client.ok("FLUSHALL")
            done = ours(oracle, "--json", "-n", "3000", "-t", "incr", *extra)
            assert json.loads(done.stdout)["requests"] == 3000
            assert int(client.call("GET", "counter:__rand_int__")) == 3000


def test_pipelines_are_sent_whole(oracle):
    done = ours(oracle, "--json", "-n", "1000", "-P", "7", "-t", "incr")
    assert json.loads(done.stdout)["requests"] == 1001
    with oracle.connect() as client:
        assert int(client.call("GET", "counter:__rand_int__")) == 1001


def test_sequential_numbers_hit_each_key_once(oracle):
    ours(oracle, "-q", "-n", "5000", "-r", "5000", "--sequential", "-P", "16", "--threads", "2",
         "-t", "set", "-d", "9")
    with oracle.connect() as client:
        assert client.call("DBSIZE") == 5000
        assert client.call("STRLEN", "key:000000000000") == 9
        assert client.call("EXISTS", "key:000000004999") == 1


def test_random_numbers_stay_in_their_range(oracle):
    ours(oracle, "-q", "-n", "2000", "-r", "20", "-t", "set")
    with oracle.connect() as client:
        keys = sorted(client.call("KEYS", "*"))
        assert keys == [b"key:%012d" % i for i in range(20)]


def test_a_key_space_of_nothing_is_one_key(oracle):
    for program in OURS, THEIRS:
        with oracle.connect() as client:
            client.ok("FLUSHALL")
            run(program, oracle, "-q", "-n", "20", "-r", "0", "-t", "set")
            assert client.call("KEYS", "*") == [b"key:000000000000"]


def test_a_seed_repeats_the_numbers(oracle):
    def values(seed):
        with oracle.connect() as client:
            client.ok("FLUSHALL")
            ours(oracle, "-q", "-n", "30", "-c", "1", "-r", "1000000", "--seed", seed, "-t", "sadd")
            return sorted(client.call("SMEMBERS", "myset"))

    first = values("7")
    assert values("7") == first
    assert values("8") != first


def test_values_larger_than_the_sockets_buffers(oracle):
    size = 7 * 1024 * 1024
    ours(oracle, "-q", "-n", "12", "-c", "3", "-r", "4", "-d", str(size), "-P", "2", "-t", "set,get")
    with oracle.connect() as client:
        for key in client.call("KEYS", "*"):
            assert re.fullmatch(rb"[A-Z]{%d}" % size, client.call("GET", key))


def test_data_in_a_command(oracle):
    ours(oracle, "-q", "-n", "1", "-c", "1", "-d", "10", "set", "k", "<__data__>")
    with oracle.connect() as client:
        assert re.fullmatch(rb"<[A-Z]{10}>", client.call("GET", "k"))


def test_last_argument_from_standard_input(oracle):
    ours(oracle, "-q", "-n", "1", "-c", "1", "-x", "set", "k", input=b"from stdin\n")
    with oracle.connect() as client:
        assert client.call("GET", "k") == b"from stdin\n"


def test_a_mix_sends_both(oracle):
    with oracle.connect() as client:
        client.ok("CONFIG", "RESETSTAT")
        done = ours(oracle, "--json", "-n", "2000", "--mix", "get=3,set=1", "-r", "100")
        assert json.loads(done.stdout)["requests"] == 2000
        stats = client.call("INFO", "commandstats").decode()
    calls = {name: int(n) for name, n in re.findall(r"cmdstat_(\w+):calls=(\d+)", stats)}
    assert calls["get"] + calls["set"] == 2000
    assert calls["get"] > calls["set"] > 0


def test_a_duration_ends_a_run(oracle):
    done = json.loads(ours(oracle, "--json", "--duration", "0.2", "-t", "get").stdout)
    assert done["requests"] > 0
    assert done["seconds"] > 0.1


def test_a_rate_is_kept(oracle):
    done = json.loads(ours(oracle, "--json", "--rate", "1000", "-n", "300", "-t", "get").stdout)
    assert done["requests"] == 300
    # 300 requests at a mean of 1000 a second cannot all be through in a tenth of that time.
    assert done["seconds"] > 0.03


def test_json_says_what_csv_says_and_more(oracle):
    done = json.loads(ours(oracle, "--json", "-n", "500", "-t", "get").stdout)
    assert done["test"] == "GET"
    assert done["errors"] == 0
    assert done["generator_cpu_seconds"] > 0
    latency = done["latency_ms"]
    order = [latency[name] for name in ("min", "p50", "p95", "p99", "p99.9", "p99.99", "max")]
    assert order == sorted(order)


def test_the_first_error_ends_the_run(oracle):
    with oracle.connect() as client:
        client.ok("SET", "k", "v")
    done = ours(oracle, "-q", "-n", "100", "lpush", "k", "x", status=1)
    assert done.stderr.count("WRONGTYPE") == 1
    assert "requests per second" not in done.stdout


def test_errors_pass_by_when_asked(oracle):
    with oracle.connect() as client:
        client.ok("SET", "k", "v")
    done = ours(oracle, "--json", "-e", "-n", "100", "lpush", "k", "x")
    assert "WRONGTYPE" in done.stderr
    assert json.loads(done.stdout)["errors"] == 100


def test_resp3_tracking_and_database(oracle):
    sent = sent_by(OURS, oracle, "-3", "--enable-tracking", "--dbnum", "9", "-n", "1", "-c", "1",
                   "-q", "-t", "get")
    assert [[word.upper() for word in words] for words in sent[:-1]] == \
        [["HELLO", "3"], ["SELECT", "9"], ["CLIENT", "TRACKING", "ON"]]
    # Invalidations that arrive between replies are not answers.
    done = ours(oracle, "--json", "-3", "--enable-tracking", "-n", "3000", "-r", "10", "-P", "5",
                "--mix", "get,set")
    assert json.loads(done.stdout)["requests"] == 3000


def test_unix_socket(oracle):
    done = subprocess.run([OURS, "-s", oracle.unix_address(), "-q", "-n", "100", "-t", "get"],
                          capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode == 0, done.stderr


def test_uri_and_password(oracle):
    with oracle.connect() as client:
        client.ok("ACL", "SETUSER", "bench", "on", ">a b/c", "~*", "+@all")
        try:
            uri = "redis://bench:a%%20b%%2Fc@127.0.0.1:%d/3" % oracle.port
            done = subprocess.run([OURS, "-u", uri, "-q", "-n", "10", "-t", "set"],
                                  capture_output=True, text=True, timeout=scaled(60))
            assert done.returncode == 0, done.stderr
            ours(oracle, "--user", "bench", "-a", "a b/c", "-q", "-n", "10", "-t", "set", "-3")
            wrong = ours(oracle, "--user", "bench", "-a", "no", "-q", "-n", "10", "-t", "set",
                         status=1)
            assert "WRONGPASS" in wrong.stderr
            client.ok("SELECT", "3")
            assert client.call("DBSIZE") == 1
        finally:
            client.call("ACL", "DELUSER", "bench")


def test_nobody_listens():
    with closed_port() as port:
        done = subprocess.run([OURS, "-p", str(port), "-q"], capture_output=True, text=True,
                              timeout=scaled(60))
    assert done.returncode == 1
    assert "Could not connect" in done.stderr and "refused" in done.stderr


def test_a_server_that_goes_away(oracle):
    victim = subprocess.Popen([OURS, "-p", str(oracle.port), "-q", "-l", "-t", "ping_mbulk"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        with oracle.connect() as client:
            def kill():
                """Whoever is there: at first it may be somebody else's client that goes just now."""
                client.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                return victim.poll() is not None
            eventually(kill, "it ends", 30)
        assert victim.wait(scaled(20)) == 1
        # Which of them depends on what was under way.
        assert re.search("Server closed the connection|reset by peer|Broken pipe",
                         victim.stderr.read())
    finally:
        victim.kill()
        victim.wait()
        victim.stderr.close()


def test_idle_connections(oracle):
    idle = subprocess.Popen([OURS, "-p", str(oracle.port), "-I", "-c", "30"],
                            stdout=subprocess.PIPE, text=True)
    try:
        assert "Creating 30 idle connections" in idle.stdout.readline()
        with oracle.connect() as client:
            # Another test's that goes just now may be seen beside them.
            eventually(lambda: idle.poll() is not None or client.call("CLIENT", "LIST").count(b"\n") == 31,
                       "they are there", 30)
            assert idle.poll() is None
    finally:
        idle.kill()
        idle.wait()
        idle.stdout.close()


# What each option of redis-benchmark is tried with beside it; None: where it is tried otherwise.
SAMPLES = {
    "-h": ["127.0.0.1"], "-p": None, "-s": None, "-a": None, "--user": None, "-u": None, "-c": ["9"], "-n": ["70"],
    "-d": ["9"], "--dbnum": ["2"], "-3": [], "--threads": ["2"], "--cluster": None, "--enable-tracking": ["-3"],
    "-k": ["0"], "-r": ["10"], "-P": ["3"], "-q": [], "--precision": ["3"], "--csv": [], "-l": None, "-t": ["set"],
    "-I": None, "-x": None, "--tls": None, "--sni": ["localhost"], "--cacert": ["/nonexistent"],
    "--cacertdir": ["/nonexistent"], "--insecure": [], "--cert": ["/nonexistent"], "--key": ["/nonexistent"],
    "--tls-ciphers": ["DEFAULT"], "--tls-ciphersuites": ["TLS_AES_128_GCM_SHA256"], "--help": None, "--version": None,
}


def options_of_redis_benchmark():
    text = subprocess.run([THEIRS, "--help"], capture_output=True, text=True).stdout.split("\nExamples:")[0]
    return re.findall(r"^ (-[^ ]+)", text, re.MULTILINE)


def test_every_option_of_redis_benchmark_beside_it(oracle):
    """Where one is without effect (those of TLS, here), it is taken and without effect with us, too."""
    options = options_of_redis_benchmark()
    assert set(options) == set(SAMPLES)
    for option in options:
        if SAMPLES[option] is not None:
            arguments = ["-n", "60", "-c", "3", "-t", "get", option] + SAMPLES[option]
            mine, theirs = ours(oracle, *arguments), run(THEIRS, oracle, *arguments)
            assert shape(mine.stdout) == shape(theirs.stdout), option
    assert "there is no such option" not in ours(oracle, "--cluster", status=1).stderr


def test_several_options_beside_redis_benchmark(oracle):
    socket = ["-s", oracle.unix_address()]
    uri = ["-u", "redis://127.0.0.1:%d/3" % oracle.port]
    with oracle.connect() as client:
        client.ok("ACL", "SETUSER", "bench", "on", ">pw", "~*", "+@all")
        try:
            for more in (socket, uri, ["--user", "bench", "-a", "pw"], ["-3", "--user", "bench", "-a", "pw"],
                         ["-k", "0", "-P", "4"], ["--threads", "0", "-r", "0"], ["--csv", "-P", "7", "--threads", "3"], ["-q", "-3", "-r", "5", "-d", "300"]):
                arguments = ["-n", "600", "-c", "6", "-t", "get,set"] + more
                assert shape(ours(oracle, *arguments).stdout) == shape(run(THEIRS, oracle, *arguments).stdout), more
        finally:
            client.call("ACL", "DELUSER", "bench")
    arguments = ["-n", "60", "-x", "set", "k"]
    assert shape(ours(oracle, *arguments, input=b"abc").stdout) == \
        shape(run(THEIRS, oracle, *arguments, input=b"abc").stdout)


@pytest.mark.parametrize("arguments, told", [
    (["--nosuch"], "--nosuch"), (["-n"], "-n"), (["-n", "0"], "-n"), (["-n", "12x"], "-n"),
    (["-c", "-1"], "-c"), (["-p", "65536"], "-p"), (["-P", "0"], "-P"), (["-d", "0"], "-d"),
    (["-k", "2"], "-k"), (["-r", "-1"], "-r"), (["-t", "get,nosuch"], "nosuch"),
    (["--threads", "501"], "--threads"), (["--mix", "nosuch=1"], "--mix"), (["-x"], "-x"),
    (["--mix", "get=0"], "--mix"), (["-u", "http://x"], "redis://"), (["--user", "me"], "-a"),
    (["--rate", "x"], "--rate"), (["--duration", "0"], "--duration"), (["--sequential"], "-r"),
    (["--tls", "--cacert", "/nonexistent"], "--tls"), (["--cacert"], "--cacert"),
    (["--tls", "--cert", "x"], "--cert"), (["--cluster"], "--cluster"),
])
def test_wrong_options_are_told(arguments, told):
    done = subprocess.run([OURS] + arguments, capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode == 1
    assert told in done.stderr
    assert done.stdout == ""


def test_help_and_version():
    text = subprocess.run([OURS, "--help"], capture_output=True, text=True, check=True).stdout
    for option in ("-h", "-p", "-s", "-a", "--user", "-u", "-c", "-n", "-d", "--dbnum", "-3",
                   "--threads", "-k", "-r", "-P", "-q", "--precision", "--csv", "-l", "-t", "-I",
                   "-x", "-e", "--seed", "--enable-tracking", "--tls", "--sni", "--cacert",
                   "--cacertdir", "--insecure", "--cert", "--key", "--tls-ciphers",
                   "--tls-ciphersuites"):
        assert re.search(r"^ %s\b" % option, text, re.MULTILINE), option
    version = subprocess.run([OURS, "--version"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"keydb-benchmark \d+\.\d+\.\d+\n", version)
