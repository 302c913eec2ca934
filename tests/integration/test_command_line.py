"""The command line: a file, standard input and --options together, and what is no server's start."""

import subprocess

import pytest
import redis

from lib.bounds import eventually
from lib.server import ORACLE, is_redis, server_path

pytestmark = pytest.mark.any_threads


def answers(client):
    try:
        return client.ping()
    except redis.ConnectionError:
        return False


@pytest.fixture
def started(tmp_path):
    """started(arguments, stdin): a server on a Unix socket in tmp_path, and a client of it."""
    running = []

    def start(arguments, stdin=""):
        process = subprocess.Popen([server_path(), *arguments], cwd=tmp_path, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        client = redis.Redis(unix_socket_path=str(tmp_path / "s.sock"), decode_responses=True)
        running.append((process, client))
        process.stdin.write(stdin)
        process.stdin.close()
        eventually(lambda: process.poll() is not None or answers(client), "the server's start")
        assert process.poll() is None, process.stdout.read()
        return client

    yield start
    for process, client in running:
        client.close()
        process.terminate()
        process.stdout.close()
        assert process.wait(20) == 0


def test_standard_input_lies_between_file_and_options(started, tmp_path):
    (tmp_path / "server.conf").write_text("port 0\nunixsocket s.sock\ntimeout 1\nmaxclients 51\n")
    client = started(["server.conf", "--timeout", "3", "-"], "timeout 2\nmaxclients 52\nhz 20")
    assert client.config_get("timeout") == {"timeout": "3"}
    assert client.config_get("maxclients") == {"maxclients": "52"}
    assert client.config_get("hz") == {"hz": "20"}


def test_standard_input_leaves_the_file_to_config_rewrite(started, tmp_path):
    path = tmp_path / "server.conf"
    path.write_text("port 0\nunixsocket s.sock\n# stays\n")
    client = started(["server.conf", "-"], "timeout 7\n")
    assert client.info("server")["config_file"] == str(path)
    assert client.config_rewrite()
    assert "# stays" in path.read_text() and "timeout 7" in path.read_text()


def test_standard_input_alone(started):
    client = started(["-"], "port 0\nunixsocket s.sock\ntimeout 7\n")
    assert client.config_get("timeout") == {"timeout": "7"}
    with pytest.raises(redis.ResponseError, match="without a config file"):
        client.config_rewrite()


def test_a_wrong_line_of_standard_input_is_named(tmp_path):
    (tmp_path / "server.conf").write_text("port 0\n")
    done = subprocess.run([server_path(), "server.conf", "-"], cwd=tmp_path, text=True, timeout=20,
                          input="timeout 1\nno-such-option 1\n", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 1 and ">>> 'no-such-option 1'" in done.stdout
    assert is_redis(server_path()) or "line 2 of standard input" in done.stdout


def test_info_counts_errors_and_names_the_build(started, tmp_path):
    client = started(["-"], "port 0\nunixsocket s.sock\n")
    before = client.info("stats")["total_error_replies"]
    for word in ("NOSUCH", "GET", "NOSUCH"):
        with pytest.raises(redis.ResponseError):
            client.execute_command(word)
    assert client.info("stats")["total_error_replies"] == before + 3
    version = subprocess.run([server_path(), "--version"], text=True, timeout=20,
                             stdout=subprocess.PIPE).stdout
    info = client.info("server")
    assert " build=%s" % info["redis_build_id"] in version


def outcome(path, words, option, directory, file=()):
    """What CONFIG GET says about an option after a start with these words; None: no start."""
    process = subprocess.Popen(
        [path, *file, "--port", "0", "--unixsocket", "o.sock", "--dir", str(directory), *words],
        cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=str(directory / "o.sock"), decode_responses=True)
    try:
        eventually(lambda: process.poll() is not None or answers(client), "start or refusal", 30)
        return client.config_get(option)[option] if process.poll() is None else None
    finally:
        client.close()
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.mark.parametrize("words", [
    ["--save", "3600 1"],
    ["--save", "3600", "1", "300", "100"],
    ["--save", "3600 1 300 100"],
    ["--save", " 60  5 "],
    ["--save", ""],
    ["--save", " "],
    ["--save"],
    ["--save", "--timeout", "5"],
    ["--save", "3600 1", "--save", "300 100"],
    ["--save", "", "--save", "60 5"],
    ["--save", "60 5", "--save", ""],
    ["--save", "60 5", "--save"],
    ["--save", "3600 1", "300 100"],
    ["--save", "3600"],
    ["--save", '"3600 1"'],
    ["--save", "a b"],
    ["--bind", "127.0.0.1 127.0.0.2"],
    ["--replicaof", "127.0.0.1 1"],
    ["--replicaof", "127.0.0.1"],
    ["--oom-score-adj-values", " 0  200 800"],
    ["--client-output-buffer-limit", "normal 1 1 1 pubsub 2 2 2"],
    ["--shutdown-on-sigterm", "save now"],
    ["--latency-tracking-info-percentiles", "1 2"],
    ["--latency-tracking-info-percentiles", ""],
    ["--hz", "20 30"],
    ["--timeout"],
    # What follows a name alone is its value, also where it looks like a name.
    ["--masterauth", "--zz"],
    ["--masterauth", "--zz", "--timeout", "5"],
    ["--timeout", "5", "--masterauth", "--"],
    ["--proc-title-template", "--my--title"],
    ["--syslog-ident", "-x"],
    ["--syslog-ident", ""],
    ["--masterauth", "--timeout", "5"],
    ["--masterauth", "a", "--zz"],
    ["--masterauth", "a", "b"],
    ["--timeout 5"],
    ["--timeout 5", "--hz", "20"],
    ["--timeout ", "5"],
    ["--timeout 5 ", "6"],
    ['--masterauth "a b"', "--hz", "20"],
    ['--masterauth "a b'],
    ["--", "timeout", "5"],
    ["--SAVE", "--timeout", "5"],
    ["--save 60 1", "--timeout", "5"],
    ["--save", "60", "--save", "1"],
    ["--client-output-buffer-limit", "--timeout", "5"],
    ["-timeout", "5"],
], ids=" ".join)
def test_one_word_of_several(words, tmp_path):
    """Words that belong together may be one argument, as scripts quote them."""
    option = words[0].strip("-").split(" ")[0].lower() or "timeout"
    for name in "ours", "redis":
        (tmp_path / name).mkdir()
    assert outcome(server_path(), words, option, tmp_path / "ours") == \
        outcome(ORACLE, words, option, tmp_path / "redis")


def test_one_word_of_several_in_a_file(started, tmp_path):
    (tmp_path / "server.conf").write_text('port 0\nunixsocket s.sock\nsave "3600 1"\nsave "60 5 7 8"\n')
    client = started(["server.conf"])
    assert client.config_get("save") == {"save": "3600 1 60 5 7 8"}
    client.config_set("save", "1 2")
    assert client.config_rewrite()
    assert "save 1 2\n" in (tmp_path / "server.conf").read_text()


@pytest.mark.parametrize("lines", [
    "save", "save 60 5\nsave", 'save ""\nsave 5 5\nsave\nsave 6 6', 'save 4 4\nsave ""\nsave', "bind 127.0.0.1\nbind",
    "client-output-buffer-limit", "client-output-buffer-limit normal 1 1 1\nclient-output-buffer-limit",
    "latency-tracking-info-percentiles 5\nlatency-tracking-info-percentiles", "shutdown-on-sigint",
    "oom-score-adj-values", "replicaof", "timeout", "masterauth"])
def test_names_alone_on_a_line(lines, tmp_path):
    option = lines.split(" ")[0].split("\n")[0]
    for name in "ours", "redis":
        (tmp_path / name).mkdir()
        (tmp_path / name / "server.conf").write_text(lines + "\n")
    assert outcome(server_path(), [], option, tmp_path / "ours", ["server.conf"]) == \
        outcome(ORACLE, [], option, tmp_path / "redis", ["server.conf"])


def test_rewrite_keeps_or_replaces_names_alone(started, tmp_path):
    path = tmp_path / "server.conf"
    path.write_text("port 0\nunixsocket s.sock\nsave\nlatency-tracking-info-percentiles\n# end\n")
    client = started(["server.conf"])
    client.config_set("latency-tracking-info-percentiles", "50")
    assert client.config_rewrite()
    lines = path.read_text().split("\n")
    assert lines[2] in ("save", 'save ""')
    assert lines[3:5] == ["latency-tracking-info-percentiles 50", "# end"]


@pytest.mark.parametrize("words", [["-v"], ["--version", "--port", "1"], ["-h", "x"], ["--help", "--nonsense"]])
def test_questions_before_other_words(words):
    for path in server_path(), ORACLE:
        done = subprocess.run([path, *words], timeout=20, stdin=subprocess.DEVNULL, capture_output=True)
        asks_version = words[0] in ("-v", "--version")
        assert done.returncode == (0 if asks_version or path == server_path() else 1)
        assert (b" v=" if asks_version else b"Usage: ") in done.stdout + done.stderr
