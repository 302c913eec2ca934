"""requirepass, AUTH, HELLO AUTH, and protected mode."""

import socket

import pytest

from lib.resp import Connection, Error

NOAUTH = b"NOAUTH Authentication required."
WRONG = b"WRONGPASS invalid username-password pair or user is disabled."


@pytest.fixture
def locked(make_server):
    return make_server({"requirepass": "secret"}, password="secret")


@pytest.fixture
def stranger(locked):
    with Connection(locked.address()) as client:
        yield client


def test_nothing_works_before_auth(stranger):
    for words in (["GET", "k"], ["SET", "k", "v"], ["PING"], ["INFO"], ["CONFIG", "GET", "*"],
                  ["CLIENT", "ID"], ["COMMAND"], ["MONITOR"], ["SHUTDOWN"], ["SELECT", "1"]):
        assert stranger.call(*words) == NOAUTH


def test_auth(stranger):
    assert stranger.call("AUTH", "wrong") == WRONG
    assert stranger.call("AUTH", "default", "wrong") == WRONG
    assert stranger.call("AUTH", "nobody", "secret") == WRONG
    assert stranger.call("AUTH", "") == WRONG
    assert stranger.call("AUTH", "secre") == WRONG
    assert stranger.call("AUTH", "secret\x00") == WRONG
    assert stranger.call("GET", "k") == NOAUTH
    stranger.ok("AUTH", "secret")
    assert stranger.call("PING") == b"PONG"
    assert stranger.call("AUTH", "wrong") == WRONG
    assert stranger.call("PING") == b"PONG"


def test_auth_with_the_user_name(stranger):
    stranger.ok("AUTH", "default", "secret")
    assert stranger.call("PING") == b"PONG"


def test_hello_with_auth(locked):
    with Connection(locked.address()) as client:
        assert client.hello(3).startswith(b"NOAUTH HELLO must be called with the client already")
        assert client.hello(3, "AUTH", "default", "wrong") == WRONG
        assert client.call("PING") == NOAUTH
        reply = client.hello(3, "AUTH", "default", "secret", "SETNAME", "me")
        assert reply.get(b"proto") == 3 and reply.get(b"server") == b"redis"
        assert client.call("CLIENT", "GETNAME") == b"me"


def test_reset_takes_the_authentication_away(locked):
    with locked.connect() as client:
        assert client.call("RESET") == b"RESET"
        assert client.call("PING") == NOAUTH
        client.ok("AUTH", "secret")


def test_quit_without_auth(stranger):
    stranger.send("QUIT")
    assert [tree for _, tree in stranger.read_to_end()] == [b"OK"]


def test_changing_the_password(locked):
    with locked.connect() as old:
        old.ok("CONFIG", "SET", "requirepass", "new")
        assert old.call("PING") == b"PONG"
        with Connection(locked.address()) as client:
            assert client.call("AUTH", "secret") == WRONG
            client.ok("AUTH", "new")
        old.ok("CONFIG", "SET", "requirepass", "")
        with Connection(locked.address()) as client:
            assert client.call("PING") == b"PONG"
            assert client.error("AUTH", "new").startswith(b"ERR AUTH <password> called without")
        assert old.call("CONFIG", "GET", "requirepass") == [b"requirepass", b""]
        old.ok("CONFIG", "SET", "requirepass", "secret")


def test_commands_pipelined_before_and_after_auth(stranger):
    replies = stranger.pipeline([["SET", "k", "1"], ["AUTH", "secret"], ["SET", "k", "2"],
                                 ["GET", "k"]])
    assert replies == [NOAUTH, b"OK", b"OK", b"2"]


def outside_address():
    """An address of this machine that is not loopback, or None."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.99", 9))
            name = probe.getsockname()[0]
            return None if name.startswith("127.") else name
    except OSError:
        return None


@pytest.mark.any_threads
def test_protected_mode(make_server):
    outside = outside_address()
    if outside is None:
        pytest.skip("this machine has no address but loopback")
    server = make_server({"bind": "*"})
    address = (outside, server.port)
    with Connection(address) as peer:
        frames = peer.read_to_end()
        assert len(frames) == 1 and isinstance(frames[0][1], Error)
        assert frames[0][1].startswith(b"DENIED ")
    with server.connect() as local:
        assert local.call("PING") == b"PONG"
        local.ok("CONFIG", "SET", "protected-mode", "no")
        with Connection(address) as peer:
            assert peer.call("PING") == b"PONG"
        local.ok("CONFIG", "SET", "protected-mode", "yes")
        local.ok("CONFIG", "SET", "requirepass", "x")
        with Connection(address) as peer:
            assert peer.call("PING") == NOAUTH
            peer.ok("AUTH", "x")


@pytest.mark.any_threads
@pytest.mark.parametrize("words", [["DEBUG", "SLEEP", "0"], ["MODULE", "LOAD", "x"]], ids=" ".join)
def test_protected_commands(make_server, words):
    server = make_server({"enable-debug-command": "no"})
    with server.connect() as client:
        assert isinstance(client.call(*words), Error)
        assert client.call("PING") == b"PONG"
    server = make_server({"enable-debug-command": "local"})
    with server.connect() as client:
        client.ok("DEBUG", "SLEEP", "0")
