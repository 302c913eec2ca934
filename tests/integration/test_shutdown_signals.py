"""shutdown-on-sigint and shutdown-on-sigterm."""

import os
import signal

import pytest

from lib.bounds import eventually

pytestmark = pytest.mark.one_thread("the only thread is the first one")

SIGNALS = pytest.mark.parametrize("name, number", [("shutdown-on-sigint", signal.SIGINT),
                                                   ("shutdown-on-sigterm", signal.SIGTERM)])


@pytest.mark.any_threads
@SIGNALS
@pytest.mark.parametrize("points, words, saves", [
    ("", "default", False), ("", "save", True), ("", "save now force", True),
    ("3600 1", "default", True), ("3600 1", "nosave", False), ("3600 1", "NOW NoSave", False)])
def test_what_is_saved(make_server, name, number, points, words, saves):
    server = make_server({"save": points.split() or ""}, files=["dump.rdb"])
    with server.connect() as c:
        c.ok("CONFIG", "SET", name, words)
        c.ok("SET", "k", "v")
        os.kill(server.pid, number)
        c.read_to_end()
    assert server.wait_exit() == 0
    assert os.path.exists(server.file("dump.rdb")) == saves


@pytest.mark.any_threads
@SIGNALS
def test_force_ends_without_a_file(make_server, name, number, ours_only):
    server = make_server({name: ["save"]}, files=["dump.rdb"])
    os.mkdir(server.file("dump.rdb"))  # no file can take its place
    with server.connect() as c:
        assert c.call("CONFIG", "GET", name)[1] == b"save"
        c.ok("SET", "k", "v")
        os.kill(server.pid, number)
        eventually(lambda: "the server goes on" in server.output(), "the save fails")
        assert c.call("GET", "k") == b"v"
        c.ok("CONFIG", "SET", name, "save force")
        os.kill(server.pid, number)
        c.read_to_end()
    assert server.wait_exit() == 0


@pytest.mark.any_threads
@pytest.mark.parametrize("name", ["shutdown-on-sigint", "shutdown-on-sigterm"])
def test_texts_of_the_oracle(client, oracle, name):
    with oracle.connect() as other:
        for value in ("default", "save", "nosave now force", "save nosave", "default save", "foo",
                      "", "SAVE Force", "now save now"):
            assert client.call("CONFIG", "SET", name, value) == \
                other.call("CONFIG", "SET", name, value), value
            assert client.call("CONFIG", "GET", name) == other.call("CONFIG", "GET", name), value
        other.ok("CONFIG", "SET", name, "default")


@pytest.mark.any_threads
@pytest.mark.parametrize("softly", ["no", "yes"])
def test_who_insists_is_obeyed_at_once(make_server, connect, softly, ours_only):
    """A second SIGINT ends the server (softly: a third) also while a script stands in its way. With status 1."""
    server = make_server({"soft-shutdown": softly})
    connect(to=server).send("EVAL", "redis.log(redis.LOG_WARNING, 'in the script') while true do end", "0")
    eventually(lambda: "in the script" in server.output(), "the script runs")
    for word in (["shutting down softly"] if softly == "yes" else []) + ["scheduling shutdown"]:
        os.kill(server.pid, signal.SIGINT)
        eventually(lambda w=word: w in server.output(), word)
    os.kill(server.pid, signal.SIGINT)
    assert server.wait_exit() == 1
    assert "Received SIGINT again: exiting at once" in server.output()


@pytest.mark.any_threads
def test_who_insists_leaves_no_half_file(make_server, connect):
    """Also while the last save stands still: here nobody reads what it writes. What it began goes."""
    server = make_server({"save": "", "shutdown-on-sigint": "save"})
    connect(to=server).ok("SET", "k", "v")
    half = server.file("temp-%d.rdb" % server.pid)
    os.mkfifo(half)
    os.kill(server.pid, signal.SIGINT)
    eventually(lambda: "Saving the final RDB snapshot" in server.output(), "the save begins")
    os.kill(server.pid, signal.SIGINT)
    assert server.wait_exit() == 1
    assert not os.path.lexists(half)
