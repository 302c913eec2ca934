"""HELLO and the two protocols on one connection."""

import pytest

from lib.resp import Error, Map

FIELDS = [b"server", b"version", b"proto", b"id", b"mode", b"role", b"modules"]


def test_fields(client, ours_only):
    flat = client.hello(2)
    assert flat[0::2] == FIELDS
    reply = dict(zip(flat[0::2], flat[1::2]))
    assert reply[b"server"] == b"redis" and reply[b"version"].startswith(b"7.2.")
    assert reply[b"proto"] == 2 and reply[b"id"] == client.call("CLIENT", "ID")
    assert reply[b"mode"] == b"standalone" and reply[b"role"] == b"master"
    assert reply[b"modules"] == []


def test_switching_back_and_forth(client):
    for proto in (3, 2, 3, 3, 2):
        reply = client.hello(proto)
        assert isinstance(reply, Map) == (proto == 3)
        assert client.call("GET", "missing") is None
        assert client.decoder.proto == proto
    assert isinstance(client.call("HELLO"), list)


def test_nil_in_both_spellings(connect):
    assert connect(2).call_raw("GET", "missing") == b"$-1\r\n"
    assert connect(3).call_raw("GET", "missing") == b"_\r\n"
    assert connect(2).call_raw("MGET", "missing") == b"*1\r\n$-1\r\n"
    assert connect(3).call_raw("MGET", "missing") == b"*1\r\n_\r\n"


def test_refused_hello_changes_nothing(client):
    assert client.hello(4) == b"NOPROTO unsupported protocol version"
    assert client.hello(1) == b"NOPROTO unsupported protocol version"
    assert client.error("HELLO", "x") == \
        b"ERR Protocol version is not an integer or out of range"
    assert client.hello(3, "AUTH", "nobody", "x").startswith(b"WRONGPASS")
    assert client.call_raw("GET", "missing") == b"$-1\r\n"
    assert isinstance(client.hello(3, "SETNAME", "a b"), Error)


def test_setname(client):
    client.hello(3, "SETNAME", "me")
    assert client.call("CLIENT", "GETNAME") == b"me"


def test_switching_inside_a_pipeline(client):
    """The reply of HELLO is already in the new protocol, the one before in the old."""
    client.send_raw(b"GET x\r\nHELLO 3\r\nGET x\r\n")
    assert client.read_reply()[0] == b"$-1\r\n"
    client.decoder.proto = 3
    assert isinstance(client.read(), Map)
    assert client.read_reply()[0] == b"_\r\n"


@pytest.mark.parametrize("kind,expected", [
    ("string", b"$11\r\nHello World\r\n"), ("integer", b":12345\r\n"),
    ("double", b",3.141\r\n"), ("null", b"_\r\n"), ("array", b"*3\r\n:0\r\n:1\r\n:2\r\n"),
    ("set", b"~3\r\n:0\r\n:1\r\n:2\r\n"), ("map", b"%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n"),
    ("verbatim", b"=29\r\ntxt:This is a verbatim\nstring\r\n"), ("true", b"#t\r\n"),
    ("false", b"#f\r\n"), ("bignum", b"(1234567999999999999999999999999999999\r\n")])
def test_every_type_of_resp3(connect, oracle, kind, expected):
    reply = connect(3).call_raw("DEBUG", "PROTOCOL", kind)
    assert reply == expected
    with oracle.connect(3) as other:
        assert reply == other.call_raw("DEBUG", "PROTOCOL", kind)
    with oracle.connect(2) as other:
        client = connect(2)
        assert client.call_raw("DEBUG", "PROTOCOL", kind) == \
            other.call_raw("DEBUG", "PROTOCOL", kind)


def test_attribute_and_push(connect, oracle):
    client = connect(3)
    with oracle.connect(3) as other:
        assert client.call_raw("DEBUG", "PROTOCOL", "attrib") == \
            other.call_raw("DEBUG", "PROTOCOL", "attrib")
        for c in (client, other):
            c.send("DEBUG", "PROTOCOL", "push")
        assert client.read_frame()[0] == other.read_frame()[0]
