"""Input that is no request: the oracle's error text, byte for byte, then the end of the
connection; and nobody else notices."""

import pytest

from lib.resp import Closed, Error, encode

BROKEN = {
    "multibulk-text": b"*abc\r\n",
    "multibulk-empty": b"*\r\n",
    "multibulk-spaces": b"* 1\r\n",
    "multibulk-plus": b"*+1\r\n",
    "multibulk-2-31": b"*2147483648\r\n",
    "multibulk-2-63": b"*9223372036854775808\r\n",
    "multibulk-2-64": b"*18446744073709551616\r\n",
    "bulk-type": b"*1\r\nxPING\r\n",
    "bulk-type-cr": b"*1\r\n\r\nPING\r\n",
    "bulk-type-colon": b"*2\r\n$4\r\nECHO\r\n:1\r\n",
    "bulk-text": b"*1\r\n$abc\r\n",
    "bulk-empty": b"*1\r\n$\r\n",
    "bulk-negative": b"*1\r\n$-1\r\n",
    "bulk-plus": b"*1\r\n$+4\r\nPING\r\n",
    "bulk-zeros": b"*1\r\n$0004\r\nPING\r\n",
    "bulk-512m-1": b"*1\r\n$536870913\r\n",
    "bulk-2-31": b"*1\r\n$2147483648\r\n",
    "bulk-2-63": b"*1\r\n$9223372036854775807\r\n",
    "bulk-2-64": b"*1\r\n$18446744073709551617\r\n",
    "quote-open": b'SET a "x\r\n',
    "quote-single-open": b"SET a 'x\r\n",
    "quote-glued": b'SET a "x"y\r\n',
    "quote-single-glued": b"SET a 'x'y\r\n",
    "inline-too-long": b"a" * (64 * 1024 + 1),
    "inline-too-long-words": b"SET a " + b"b " * (40 * 1024),
    "multibulk-count-too-long": b"*" + b"1" * (64 * 1024 + 1),
    "bulk-count-too-long": b"*1\r\n$" + b"1" * (64 * 1024 + 1),
}


def outcome(client, data):
    """Raw frames until the server closes the connection."""
    try:
        client.send_raw(data)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return [raw for raw, _ in client.read_to_end()]


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_protocol_errors(client, connect, oracle, name):
    data = encode("PING") + BROKEN[name]
    ours = outcome(client, data)
    with oracle.connect() as other:
        assert ours == outcome(other, data)
    assert ours[0] == b"+PONG\r\n"
    assert ours[1].startswith(b"-ERR Protocol error"), ours
    assert connect().call("PING") == b"PONG"


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_protocol_errors_a_byte_at_a_time(connect, name):
    data = BROKEN[name]
    whole = outcome(connect(), data)
    client = connect(unix=True)
    try:
        pieces = 1 if len(data) < 1000 else 4093
        client.send_pieces(data[at:at + pieces] for at in range(0, len(data), pieces))
    except (BrokenPipeError, ConnectionResetError):
        pass
    try:
        split = [raw for raw, _ in client.read_to_end()]
    except Closed:
        split = []
    assert split == whole


def test_what_follows_a_protocol_error_is_not_run(client, connect):
    outcome(client, b"*1\r\n!\r\n" + encode("SET", "after", "1"))
    assert connect().call("EXISTS", "after") == 0


def test_protocol_error_in_resp3(connect):
    client = connect(3)
    client.send_raw(b"*1\r\nx")
    client.send_raw(b"\r\n")
    frames = client.read_to_end()
    assert frames[0][0] == b"-ERR Protocol error: expected '$', got 'x'\r\n"


@pytest.mark.parametrize("line", [b"POST / HTTP/1.1\r\n", b"Host: example.org\r\n",
                                  b"post /\r\n", b"HOST: x\r\n"])
def test_http_closes_the_connection(connect, line):
    client = connect()
    client.send_raw(line + encode("SET", "http", "1"))
    try:
        assert client.read_to_end() == []
    except ConnectionResetError:
        pass
    assert connect().call("EXISTS", "http") == 0


def test_a_get_request_of_a_browser_runs_nothing(connect):
    client = connect()
    client.send_raw(b"GET /SET/http/1 HTTP/1.1\r\nHost: a\r\n\r\nSET http 1\r\n")
    frames = client.read_to_end()
    assert len(frames) <= 1 and all(isinstance(tree, Error) for _, tree in frames)
    assert connect().call("EXISTS", "http") == 0


def test_no_byte_in_an_error_forges_a_reply(client):
    """k commands give exactly k well-formed replies, whatever is quoted in an error."""
    for byte in range(256):
        word = b"a" + bytes([byte]) + b"b"
        commands = [
            (word,), (b"GET", word, word), (b"CONFIG", word), (b"CLIENT", word, word),
            (b"SET", b"k", b"v", word), (b"OBJECT", word, word), (b"HELLO", word),
            (b"CONFIG", b"SET", word, word), (b"DEBUG", word), (b"CLIENT", b"KILL", word),
            (b"SELECT", word), (b"LATENCY", word), (b"HELLO", b"2", word), (word, word, word)]
        for reply in client.pipeline(commands):
            assert isinstance(reply, Error), (byte, reply)
        assert client.call("PING") == b"PONG"
