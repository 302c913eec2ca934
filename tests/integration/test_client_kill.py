"""CLIENT KILL, old and new form, on clients of every thread."""

import pytest

from lib.bounds import eventually
from lib.resp import Closed, Timeout

pytestmark = pytest.mark.one_thread("a client ends another one, or itself, on its own thread")


def ended(client):
    try:
        return client.is_closed()
    except (Timeout, ConnectionResetError):
        return False


def alive(client):
    try:
        return client.call("PING") == b"PONG"
    except (Closed, OSError):
        return False


def address(client):
    return "%s:%d" % client.sock.getsockname()


def identity(client):
    return str(client.call("CLIENT", "ID"))


def present(connect):
    """A client that the server knows already: connect() alone only says that the kernel does."""
    client = connect()
    assert alive(client)
    return client


def test_by_address_old_form(connect, threads):
    killer = connect()
    for victim in [present(connect) for _ in range(2 * threads)]:
        killer.ok("CLIENT", "KILL", address(victim))
        assert ended(victim)
    assert killer.error("CLIENT", "KILL", "1.2.3.4:5") == b"ERR No such client"


def test_by_id_and_address(connect, threads):
    killer = connect()
    for victim in [present(connect) for _ in range(2 * threads)]:
        assert killer.call("CLIENT", "KILL", "ID", identity(victim)) == 1
        assert ended(victim)
    victim = present(connect)
    assert killer.call("CLIENT", "KILL", "ADDR", address(victim)) == 1
    assert ended(victim)
    victim, other = present(connect), present(connect)
    assert killer.call("CLIENT", "KILL", "ADDR", address(victim), "ID", identity(other)) == 0
    assert killer.call("CLIENT", "KILL", "ADDR", address(victim), "ID", identity(victim)) == 1
    assert ended(victim) and alive(other)


def test_by_type_spares_oneself(connect, threads):
    killer = connect()
    victims = [present(connect) for _ in range(3 * threads)]
    assert killer.call("CLIENT", "KILL", "TYPE", "normal") == len(victims)
    assert all(ended(victim) for victim in victims)
    assert alive(killer)
    assert killer.call("CLIENT", "KILL", "TYPE", "pubsub") == 0


def test_by_user_and_local_address(connect, server):
    killer, victim = present(connect), present(connect)
    assert killer.call("CLIENT", "KILL", "USER", "default") == 1
    assert ended(victim)
    victim = present(connect)
    assert killer.call("CLIENT", "KILL", "LADDR", "127.0.0.1:%d" % server.port) == 1
    assert ended(victim)


def test_oneself(connect):
    client = connect()
    assert client.call("CLIENT", "KILL", "ID", identity(client), "SKIPME", "yes") == 0
    assert client.call("CLIENT", "KILL", "ID", identity(client), "SKIPME", "no") == 1
    assert ended(client)
    client = connect()
    client.ok("CLIENT", "KILL", address(client))
    assert ended(client)


def test_what_was_pipelined_after_ones_own_death_is_not_run(connect):
    client = connect()
    me = identity(client)
    client.send_raw(b"CLIENT KILL ID %s SKIPME no\r\nSET after 1\r\n" % me.encode())
    assert [tree for _, tree in client.read_to_end()] == [1]
    assert connect().call("EXISTS", "after") == 0


def test_a_victim_with_unread_replies(connect):
    killer, victim = present(connect), present(connect)
    me = identity(victim)
    killer.ok("SET", "big", "x" * 5_000_000)
    victim.send_raw(b"GET big\r\n" * 10)
    eventually(lambda: killer.call("CLIENT", "KILL", "ID", me) == 1, "the victim is found")
    killer.ok("SET", "big", "y")
    eventually(lambda: b"id=%s " % me.encode() not in killer.call("CLIENT", "LIST"), "it is gone")


def test_killing_each_other(server, connect):
    """Clients of all threads kill at random while others connect; the server lives."""
    import random
    import threading

    def rampage(seed):
        random_ = random.Random(seed)
        for _ in range(60):
            try:
                with server.connect() as c:
                    mine = c.call("CLIENT", "ID")
                    c.call("CLIENT", "KILL", "ID", str(mine - random_.randint(1, 6)))
                    c.call("SET", "k", "v")
                    c.call("CLIENT", "LIST")
            except (Closed, OSError):
                pass

    workers = [threading.Thread(target=rampage, args=(n,)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert alive(connect())


@pytest.mark.parametrize("words,text", [
    (["ID", "x"], b"ERR client-id should be greater than 0"),
    (["ID", "0"], b"ERR client-id should be greater than 0"),
    (["TYPE", "x"], b"ERR Unknown client type 'x'"),
    (["USER", "nobody"], b"ERR No such user 'nobody'"),
    (["SKIPME", "x"], b"ERR syntax error"), (["ID"], None), (["x", "y"], b"ERR syntax error"),
])
def test_errors(client, words, text):
    reply = client.error("CLIENT", "KILL", *words)
    assert text is None or reply == text
