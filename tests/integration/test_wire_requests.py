"""Requests as bytes: inline and multibulk, pipelines of any depth, split anywhere."""

import pytest

from lib.resp import encode
from lib.seeds import generator, seeds

MIXED = (
    b"PING\r\n"
    b"ping hello\r\n"
    b"SET a \"x\\x41 y\\n\"\n"
    b"GET a\r\n"
    b"*0\r\n"
    b"*-1\r\n"
    b"\r\n"
    b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$6\r\n\r\n$1\r\n\r\n"
    b"*2\r\n$3\r\nget\r\n$1\r\nb\r\n"
    b"  echo   'single \\' quoted'  \r\n"
    b"*1\r\n$4\r\nNOPE\r\n"
    b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"
    b"*1\r\n$3\r\nGET\r\n"
    b"STRLEN b\r\n"
)
MIXED_REPLIES = [
    b"+PONG\r\n", b"$5\r\nhello\r\n", b"+OK\r\n", b"$5\r\nxA y\n\r\n", b"+OK\r\n",
    b"$6\r\n\r\n$1\r\n\r\n", b"$15\r\nsingle ' quoted\r\n",
    b"-ERR unknown command 'NOPE', with args beginning with: \r\n", b"$0\r\n\r\n",
    b"-ERR wrong number of arguments for 'get' command\r\n", b":6\r\n",
]


def raw_replies(client, data, count):
    return [raw for raw, _ in client.exchange(data, count)]


def test_inline_and_multibulk_mixed(client):
    assert raw_replies(client, MIXED, len(MIXED_REPLIES)) == MIXED_REPLIES


@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
def test_the_same_input_a_byte_at_a_time(connect, unix):
    client = connect(unix=unix)
    client.send_pieces(MIXED[at:at + 1] for at in range(len(MIXED)))
    assert [client.read_reply()[0] for _ in MIXED_REPLIES] == MIXED_REPLIES


def test_the_same_input_split_once_at_every_byte(connect):
    client = connect(unix=True)
    for at in range(1, len(MIXED)):
        client.send_pieces([MIXED[:at], MIXED[at:]])
        replies = [client.read_reply()[0] for _ in MIXED_REPLIES]
        assert replies == MIXED_REPLIES, "split at byte %d" % at


@pytest.mark.parametrize("seed", seeds(5))
def test_the_same_input_split_at_random_places(connect, seed):
    random = generator(seed, "splits")
    client = connect(unix=True)
    for _ in range(30):
        cuts = sorted(random.sample(range(1, len(MIXED)), random.randint(1, 12)))
        pieces = [MIXED[a:b] for a, b in zip([0] + cuts, cuts + [len(MIXED)])]
        client.send_pieces(pieces)
        replies = [client.read_reply()[0] for _ in MIXED_REPLIES]
        assert replies == MIXED_REPLIES, "seed %d, cuts at %r" % (seed, cuts)


@pytest.mark.parametrize("depth", [1, 2, 15, 16, 17, 255, 1024, 10_000])
def test_pipelines_of_any_depth(client, depth):
    requests, expected = [], []
    for n in range(depth):
        requests.append(encode("SET", "k%d" % (n % 7), n))
        requests.append(encode("GET", "k%d" % (n % 7)))
        expected += [b"+OK\r\n", b"$%d\r\n%d\r\n" % (len(str(n)), n)]
    assert raw_replies(client, b"".join(requests), 2 * depth) == expected


def test_a_deep_pipeline_sent_whole_before_anything_is_read(client):
    # About 100 kB of requests and of replies: fits the socket buffers of both sides.
    client.send_raw(encode("PING") * 10_000)
    for _ in range(10_000):
        assert client.read() == b"PONG"


def test_pipelines_of_several_clients_keep_apart(connect):
    clients = [connect() for _ in range(16)]
    for number, client in enumerate(clients):
        client.send_raw(b"".join(encode("ECHO", "%d-%d" % (number, n)) for n in range(500)))
    for number, client in enumerate(clients):
        for n in range(500):
            assert client.read() == b"%d-%d" % (number, n)


def test_replies_before_a_half_close_are_all_sent(client):
    client.send_raw(encode("ECHO", "x" * 1000) * 100)
    client.sock.shutdown(1)
    assert [tree for _, tree in client.read_to_end()] == [b"x" * 1000] * 100


def test_a_request_cut_by_the_end_of_the_stream_is_not_run(client, connect):
    client.send_raw(encode("SET", "cut", "value")[:-1])
    client.sock.shutdown(1)
    assert client.read_to_end() == []
    assert connect().call("EXISTS", "cut") == 0


def test_empty_requests_get_no_reply(client):
    client.send_raw(b"\r\n\n*0\r\n*-1\r\n*-5\r\n   \r\n" + encode("ECHO", "only"))
    assert client.read() == b"only"
    assert client.nothing_comes()


def test_every_byte_value_in_a_bulk(client):
    every = bytes(range(256)) * 3
    client.ok("SET", every, every)
    assert client.call("GET", every) == every
    assert client.call("KEYS", "*") == [every]


@pytest.mark.parametrize("text,word", [
    (b'"\\x00\\xff\\n\\r\\t\\b\\a\\\\\\""', b"\x00\xff\n\r\t\b\a\\\""),
    (b"'\\n\\''", b"\\n'"),
    (b'""', b""),
    (b"a\"b\"", None),
    (b'"\\q\\xg1"', b"q" + b"xg1"),
    (b"a\x0bb", None),
    (b"tab\tend", None),
])
def test_inline_quoting(client, oracle, text, word):
    line = b"ECHO " + text + b"\r\n"
    with oracle.connect() as other:
        other.send_raw(line)
        client.send_raw(line)
        ours = client.read_reply()
        assert ours == other.read_reply()
        if word is not None:
            assert ours[1] == word


def test_command_names_in_any_case(client):
    client.ok("sEt", "a", "1")
    assert client.call("gEt", "a") == b"1"
