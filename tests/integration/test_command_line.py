"""The command line: a file, standard input and --options together, and what is no server's start."""

import subprocess

import pytest
import redis

from lib.bounds import eventually
from lib.server import is_redis, server_path

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
