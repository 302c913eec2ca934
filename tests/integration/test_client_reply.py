"""CLIENT REPLY ON, OFF and SKIP."""


def test_off_and_on(client):
    client.send("CLIENT", "REPLY", "OFF")
    client.send("SET", "k", "v")
    client.send("GET", "k")
    client.send("NOPE")
    client.send("CLIENT", "REPLY", "ON")
    assert client.read() == b"OK"
    assert client.call("GET", "k") == b"v"
    assert client.nothing_comes()


def test_skip(client):
    client.send("CLIENT", "REPLY", "SKIP")
    client.send("SET", "k", "v")
    assert client.call("GET", "k") == b"v"


def test_skip_in_a_pipeline(client):
    client.send_raw(b"PING a\r\nCLIENT REPLY SKIP\r\nPING b\r\nPING c\r\nCLIENT REPLY SKIP\r\n"
                    b"NOPE\r\nPING d\r\n")
    assert [client.read() for _ in range(3)] == [b"a", b"c", b"d"]
    assert client.nothing_comes()


def test_skip_while_off_stays_off(client):
    client.send_raw(b"CLIENT REPLY OFF\r\nCLIENT REPLY SKIP\r\nPING a\r\nPING b\r\n"
                    b"CLIENT REPLY ON\r\nPING c\r\n")
    assert [client.read() for _ in range(2)] == [b"OK", b"c"]


def test_a_loader_that_wants_no_replies(client, connect):
    client.send("CLIENT", "REPLY", "OFF")
    client.send_raw(b"".join(b"INCR n\r\n" for _ in range(20_000)))
    client.send("CLIENT", "REPLY", "ON")
    assert client.read() == b"OK"
    assert connect().call("GET", "n") == b"20000"


def test_reset_ends_it(client):
    client.send_raw(b"CLIENT REPLY OFF\r\nPING\r\nRESET\r\n")
    assert client.read() == b"RESET"
    assert client.call("PING") == b"PONG"


def test_errors_of_the_protocol_are_silent_too(client, ours_only):
    client.send_raw(b"CLIENT REPLY OFF\r\n*1\r\nx")
    assert client.is_closed()


def large_set(client):
    for begin in range(0, 40_000, 10_000):
        client.call("SADD", "s", *range(begin, begin + 10_000))


def test_what_goes_in_slices_is_silent_too(client):
    """Alone, so that it goes in slices, and before other requests, so that it is done at once."""
    large_set(client)
    client.send("CLIENT", "REPLY", "SKIP")
    client.send("SUNION", "s")
    assert client.call("PING") == b"PONG"
    client.send_raw(b"CLIENT REPLY SKIP\r\nSUNION s\r\nPING a\r\nPING b\r\n")
    assert [client.read() for _ in range(2)] == [b"a", b"b"]
    client.send_raw(b"CLIENT REPLY OFF\r\nSUNION s\r\nKEYS *\r\nSUNIONSTORE t s\r\nPING\r\n"
                    b"CLIENT REPLY ON\r\nPING c\r\n")
    assert [client.read() for _ in range(2)] == [b"OK", b"c"]
    client.send("CLIENT", "REPLY", "OFF")
    client.send("SUNION", "s")
    client.send("CLIENT", "REPLY", "ON")
    assert client.read() == b"OK"
    assert client.call("SCARD", "t") == 40_000
    assert client.nothing_comes()
