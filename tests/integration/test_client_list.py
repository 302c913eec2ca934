"""CLIENT LIST, INFO, ID, names and library names."""

import pytest

from lib.resp import Error

FIELDS = [b"id", b"addr", b"laddr", b"fd", b"name", b"age", b"idle", b"flags", b"db", b"sub",
          b"psub", b"ssub", b"multi", b"qbuf", b"qbuf-free", b"argv-mem", b"multi-mem", b"rbs",
          b"rbp", b"obl", b"oll", b"omem", b"tot-mem", b"events", b"cmd", b"user", b"redir",
          b"resp"]


def parse(line):
    return dict(word.split(b"=", 1) for word in line.strip().split(b" "))


def listed(client, *options):
    return [parse(line) for line in client.call("CLIENT", "LIST", *options).split(b"\n") if line]


def own(client):
    return parse(client.call("CLIENT", "INFO"))


def test_fields_in_redis_order(client, ours_only):
    names = [w.split(b"=")[0] for w in client.call("CLIENT", "INFO").strip().split(b" ")]
    assert names == FIELDS + [b"lib-name", b"lib-ver"]
    line = client.call("CLIENT", "LIST").split(b"\n")[0]
    assert [w.split(b"=")[0] for w in line.split(b" ")] == names
    assert client.call("CLIENT", "LIST").endswith(b"\n")


def test_what_the_fields_say(client, server):
    client.ok("SELECT", "7")
    client.ok("CLIENT", "SETNAME", "me")
    info = own(client)
    host, port = client.sock.getsockname()
    assert info[b"id"] == b"%d" % client.call("CLIENT", "ID")
    assert info[b"addr"] == b"%s:%d" % (host.encode(), port)
    assert info[b"laddr"] == b"127.0.0.1:%d" % server.port
    assert info[b"name"] == b"me" and info[b"db"] == b"7" and info[b"flags"] == b"N"
    assert info[b"cmd"] == b"client|info" and info[b"user"] == b"default"
    assert info[b"resp"] == b"2" and info[b"multi"] == b"-1" and info[b"redir"] == b"-1"
    client.hello(3)
    assert own(client)[b"resp"] == b"3"


def test_all_clients_of_all_threads_are_listed(connect, threads):
    clients = [connect() for _ in range(5 * threads)]
    ids = {b"%d" % c.call("CLIENT", "ID") for c in clients}
    assert len(ids) == len(clients)
    for client in clients:
        assert {info[b"id"] for info in listed(client)} == ids


def test_ids_grow(connect):
    ids = [connect().call("CLIENT", "ID") for _ in range(20)]
    assert ids == sorted(ids) and len(set(ids)) == 20


def test_filters(connect):
    clients = [connect() for _ in range(4)]
    ids = [str(c.call("CLIENT", "ID")) for c in clients]
    found = listed(clients[0], "ID", ids[1], ids[3], "999999999")
    assert [info[b"id"] for info in found] == [ids[1].encode(), ids[3].encode()]
    assert len(listed(clients[0], "TYPE", "normal")) == 4
    assert len(listed(clients[0], "TYPE", "NORMAL")) == 4
    for kind in ("master", "replica", "slave", "pubsub"):
        assert listed(clients[0], "TYPE", kind) == []
    assert clients[0].error("CLIENT", "LIST", "TYPE", "x") == b"ERR Unknown client type 'x'"


def test_names(connect):
    client, other = connect(), connect()
    assert client.call("CLIENT", "GETNAME") is None
    client.ok("CLIENT", "SETNAME", "worker-1")
    assert client.call("CLIENT", "GETNAME") == b"worker-1"
    assert [i[b"name"] for i in listed(other)] == [b"worker-1", b""]
    for bad in ("a b", "a\n", "\x7f", "é"):
        assert isinstance(client.call("CLIENT", "SETNAME", bad), Error)
    assert client.call("CLIENT", "GETNAME") == b"worker-1"
    client.ok("CLIENT", "SETNAME", "")
    assert client.call("CLIENT", "GETNAME") is None


def test_setinfo(client, ours_only):
    client.ok("CLIENT", "SETINFO", "LIB-NAME", "redis-py")
    client.ok("CLIENT", "SETINFO", "lib-ver", "5.0.1")
    info = own(client)
    assert info[b"lib-name"] == b"redis-py" and info[b"lib-ver"] == b"5.0.1"
    client.ok("CLIENT", "SETINFO", "LIB-NAME", "")
    assert own(client)[b"lib-name"] == b""
    assert client.error("CLIENT", "SETINFO", "LIB-NAME", "a b") == \
        b"ERR lib-name cannot contain spaces, newlines or special characters."
    assert client.error("CLIENT", "SETINFO", "nope", "x") == b"ERR Unrecognized option 'nope'"
    assert client.error("CLIENT", "SETINFO", "lib-ver").startswith(b"ERR wrong number")


def test_no_evict_and_no_touch(client, ours_only):
    client.ok("CLIENT", "NO-EVICT", "ON")
    assert b"e" in own(client)[b"flags"]
    client.ok("CLIENT", "NO-EVICT", "off")
    assert b"e" not in own(client)[b"flags"]
    client.ok("CLIENT", "NO-TOUCH", "on")
    assert b"T" in own(client)[b"flags"]
    client.ok("CLIENT", "NO-TOUCH", "OFF")
    assert own(client)[b"flags"] == b"N"
    assert isinstance(client.call("CLIENT", "NO-TOUCH", "maybe"), Error)


def test_reset_puts_everything_back(client, ours_only):
    client.hello(3)
    client.ok("SELECT", "3")
    client.ok("CLIENT", "SETNAME", "x")
    client.ok("CLIENT", "NO-EVICT", "ON")
    client.ok("CLIENT", "NO-TOUCH", "ON")
    client.send("RESET")
    client.decoder.proto = 2
    assert client.read() == b"RESET"
    info = own(client)
    assert info[b"db"] == b"0" and info[b"name"] == b"" and info[b"resp"] == b"2"
    assert info[b"flags"] == b"N"


def test_unix_clients(connect, server):
    client = connect(unix=True)
    info = own(client)
    assert info[b"addr"].endswith(b":0") and b"s.sock" in info[b"addr"]
    assert b"U" in info[b"flags"]


@pytest.mark.any_threads
def test_idle_and_age(client, connect):
    other = connect()
    identity = other.call("CLIENT", "ID")
    info = listed(client, "ID", str(identity))[0]
    assert 0 <= int(info[b"idle"]) <= int(info[b"age"]) + 1
    assert info[b"cmd"] == b"client|id"
