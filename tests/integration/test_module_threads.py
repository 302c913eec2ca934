"""Modules: clients that they block, and their threads. Most tests run beside a redis-server with the same modules."""

import os
import threading

import pytest

from lib.bounds import eventually
from lib.modules import path_of
from lib.resp import Error, wait_for


@pytest.fixture(params=["ours", "redis-server"])
def both(request, make_server, make_oracle):
    """A server with the modules `blocking` and `threads`: ours, and Debian's redis-server."""
    options = {"loadmodule": [path_of("blocking")], "enable-module-command": "yes"}
    server = make_server(options) if request.param == "ours" else make_oracle(options)
    server.has_locks = request.param == "ours"  # Redis has none for a wait that another thread ends
    with server.connect() as c:
        c.ok("MODULE", "LOAD", path_of("threads"))
    return server


def waits(c, *words):
    """Sends a call that is to wait."""
    c.send(*words)
    return c


def blocked(c, count):
    eventually(lambda: b"blocked_clients:%d\r" % count in c.call("INFO", "clients"), "%d clients wait" % count)


def counts(c):
    """[freed, disconnected, timed out, replied]"""
    return c.call("BL.COUNTS")[:4]


# ---- blocking

def test_a_thread_answers(both):
    with both.connect() as c:
        assert c.call("BL.WORK", 1, 42, 0) == 42
        assert c.call("BL.WORK", 0, -7, 0) == -7
        eventually(lambda: counts(c) == [2, 0, 0, 2], "the private data are freed")
        assert c.call("BL.ADD", 1, 5) == [5, 5]
        assert c.call("BL.ADD", 0, 6) == [6, 11]
        assert c.call("GET", "bl:sum") == b"11"
        blocked(c, 0)


def test_the_time_of_threads_counts(both):
    with both.connect() as c:
        assert c.call("BL.WORK", 30, 1, 0) == 1
        line = c.call("INFO", "commandstats").decode().split("cmdstat_bl.work:")[1]
        assert int(line.split("usec=")[1].split(",")[0]) >= 30000, line


def test_what_follows_waits(both):
    """A pipeline behind a call that waits is answered in its order."""
    with both.connect() as c:
        replies = c.pipeline([("BL.WORK", 20, 1, 0), ("INCR", "n"), ("BL.WORK", 1, 2, 0), ("INCR", "n"), ("PING",)])
        assert replies == [1, 1, 2, 2, b"PONG"]


def test_a_timeout(both):
    with both.connect() as c, both.connect() as admin:
        assert waits(c, "BL.HOLD", 30).read() == b"timed out"
        eventually(lambda: counts(admin)[2] == 1, "the callback was called")
        blocked(admin, 0)
        assert admin.call("BL.LET", 5) == 1
        eventually(lambda: admin.call("BL.COUNTS") == [1, 0, 1, 0, 1], "nobody was replied to, and the data are freed")
        assert c.call("PING") == b"PONG"


def test_unblocked_by_hand(both):
    clients = [both.connect() for _ in range(8)]
    with both.connect() as admin:
        for c in clients:
            waits(c, "BL.HOLD", 0)
        blocked(admin, 8)
        assert admin.call("BL.LET", 9) == 8
        assert [c.read() for c in clients] == [9] * 8
        eventually(lambda: counts(admin) == [8, 0, 0, 8], "all data are freed")
    for c in clients:
        c.close()


def test_a_client_that_goes(both):
    with both.connect() as admin:
        c = waits(both.connect(), "BL.HOLD", 0)
        blocked(admin, 1)
        c.close()
        eventually(lambda: counts(admin)[1] == 1, "the module is told")
        assert admin.call("BL.LET", 1) == 1
        eventually(lambda: admin.call("BL.COUNTS") == [1, 1, 0, 0, 1], "the data are freed, nobody is replied to")


def test_client_unblock(both):
    with both.connect() as c, both.connect() as admin:
        number = c.call("CLIENT", "ID")
        waits(c, "BL.HOLD", 0)
        blocked(admin, 1)
        assert admin.call("CLIENT", "UNBLOCK", number) == 1
        assert c.read() == b"timed out"
        waits(c, "BL.HOLD", 0)
        blocked(admin, 1)
        assert admin.call("CLIENT", "UNBLOCK", number, "ERROR") == 1
        assert isinstance(c.read(), Error)
        assert admin.call("BL.LET", 1) == 2
        eventually(lambda: counts(admin)[0] == 2, "all data are freed")


def test_client_unblock_without_a_callback(both):
    """Who gives no timeout callback is not asked."""
    with both.connect() as c, both.connect() as admin:
        number = c.call("CLIENT", "ID")
        for turn in range(1, 21):
            waits(c, "BL.ADD", 50 * turn, 1)
            # It may be over before anybody looks: then again, for longer.
            seen = eventually(lambda: b"blocked_clients:1\r" in admin.call("INFO", "clients") or
                              wait_for(c.sock, 0)[0] and "over", "it waits, or is over")
            if seen != "over":
                break
            assert c.read() == [1, turn]
        assert admin.call("CLIENT", "UNBLOCK", number) == 0
        assert c.read() == [1, turn]


def test_an_aborted_block(both):
    with both.connect() as c:
        assert c.call("BL.ABORT") == b"aborted"
        assert c.call("PING") == b"PONG"
        blocked(c, 0)


def test_a_block_that_is_regretted(make_server):
    """(Redis 7.0 replies twice.)"""
    server = make_server({"loadmodule": [path_of("blocking")]})
    with server.connect() as c:
        for _ in range(3):
            assert c.call("BL.REGRET") == b"regretted"
        assert c.call("PING") == b"PONG"
        eventually(lambda: counts(c) == [3, 0, 0, 0], "the data are freed")


def test_where_nobody_may_wait(both):
    with both.connect() as c:
        c.ok("MULTI")
        c.call("BL.HOLD", 0)
        reply = c.call("EXEC")
        assert isinstance(reply[0], Error) and b"called from transaction" in reply[0]
        assert b"called from Lua script" in c.error("EVAL", "return redis.call('BL.HOLD', '0')", 0)
        assert c.call("BL.LET", 1) == 2
        eventually(lambda: c.call("BL.COUNTS") == [2, 0, 0, 0, 2], "all data are freed, and nobody was there")


def test_unloading_waits_for_clients(both):
    with both.connect() as c, both.connect() as admin:
        waits(c, "BL.HOLD", 0)
        blocked(admin, 1)
        assert b"blocked clients" in admin.error("MODULE", "UNLOAD", "blocking")
        assert admin.call("BL.LET", 3) == 1
        assert c.read() == 3
        eventually(lambda: admin.call("MODULE", "UNLOAD", "blocking") == b"OK", "it can be unloaded")


# ---- long commands

@pytest.mark.parametrize("text", [None, "Still spinning"])
def test_a_long_command_yields(both, text):
    """Past busy-reply-threshold others are told so; what may run beside it does."""
    said = b"BUSY " + (text.encode() if text else b"Redis is busy running a module command.")
    with both.connect() as c, both.connect() as d:
        d.ok("CONFIG", "SET", "busy-reply-threshold", 20)
        waits(c, *(("BL.SPIN", text) if text else ("BL.SPIN",)))
        eventually(lambda: str(d.call("GET", "k")).encode().find(said) >= 0, "the command takes long")
        for words in (("SET", "k", 1), ("BL.COUNTS",), ("TH.COUNT", "k", 1, 1), ("EVAL", "return 1", 0)):
            assert said in d.error(*words)
        assert b"NOTBUSY" in d.error("SCRIPT", "KILL")
        with both.connect() as late:
            assert said in late.error("GET", "k")
            late.ok("BL.END")
        assert c.read() == b"over"
        d.ok("SET", "k", 1)
        assert d.call("GET", "k") == b"1"


def test_what_stands_behind_a_long_command(both):
    """The client's own requests run when it is over."""
    with both.connect() as c, both.connect() as d:
        d.ok("CONFIG", "SET", "busy-reply-threshold", 20)
        c.send("SET", "k", 1)
        c.send("BL.SPIN", "Spins")
        c.send("GET", "k")
        eventually(lambda: b"BUSY" in str(d.call("GET", "k")).encode(), "the command takes long")
        d.ok("BL.END")
        assert [c.read(), c.read(), c.read()] == [b"OK", b"over", b"1"]


def test_a_script_that_calls_a_long_command(make_server):
    """(Redis 7.0 crashes.)"""
    both = make_server({"loadmodule": [path_of("blocking")]})
    with both.connect() as c, both.connect() as d:
        d.ok("CONFIG", "SET", "busy-reply-threshold", 20)
        waits(c, "EVAL", "return {redis.call('BL.SPIN'), redis.call('SET', 'k', '1')}", 0)
        eventually(lambda: b"BUSY" in str(d.call("GET", "k")).encode(), "it takes long")
        d.ok("BL.END")
        assert c.read() == [b"over", b"OK"]


@pytest.mark.parametrize("module,command", (("blocking", "BL.SPIN"), ("threads", "TH.SPIN")))
def test_shutdown_beside_a_long_command(make_server, module, command):
    """NOSAVE ends the server within it: what was written before is in the log."""
    server = make_server({"loadmodule": [path_of(module)], "appendonly": "yes", "appendfsync": "no", "busy-reply-threshold": "20",
                          "unixsocket": "socket", "pidfile": "pid"}, files=["appendonlydir", "dump.rdb"])
    with server.connect() as c, server.connect() as d, server.connect() as e:
        c.call("RPUSH", "l", *range(1000))
        waits(c, command)
        eventually(lambda: b"BUSY" in str(d.call("GET", "k")).encode(), "it takes long")
        assert b"BUSY" in d.error("SHUTDOWN")
        d.send("SHUTDOWN", "NOSAVE")
        assert server.wait_exit(60) == 0
        assert e.is_closed()
    assert "within it" in server.output()
    assert not os.path.exists(server.file("socket")) and not os.path.exists(server.file("pid"))
    server.start()
    with server.connect() as c:
        assert c.call("LLEN", "l") == 1000


def test_a_thread_that_keeps_the_lock_long(make_server):
    """It may say so as a command may. (In Redis only the main thread may.)"""
    server = make_server({"loadmodule": [path_of("threads")]})
    with server.connect() as c, server.connect() as d:
        d.ok("CONFIG", "SET", "busy-reply-threshold", 20)
        waits(c, "TH.SPIN")
        eventually(lambda: b"BUSY a thread spins" in str(d.call("GET", "k")).encode(), "it takes long")
        d.ok("TH.END")
        assert c.read() == b"over"
        d.ok("SET", "k", 1)


def test_a_client_that_comes_beside_a_long_command(make_server):
    """Its thread does not wait for the long one, though a module wants to know of it: it is told later."""
    server = make_server({"loadmodule": [path_of("threads")], "enable-module-command": "yes"})
    with server.connect() as c, server.connect() as d:
        d.ok("MODULE", "LOAD", path_of("events"))
        d.ok("CONFIG", "SET", "busy-reply-threshold", 20)
        d.call("EV.LOG")
        d.ok("EV.CLIENTS", "yes")
        waits(c, "TH.SPIN")
        eventually(lambda: b"BUSY" in str(d.call("GET", "k")).encode(), "it takes long")
        others = [server.connect() for _ in range(4)]
        for other in others:
            assert b"BUSY" in other.error("GET", "k")
        others[0].ok("TH.END")
        assert c.read() == b"over"
        for other in others:
            assert other.call("GET", "k") is None
        seen = []
        eventually(lambda: seen.extend(d.call("EV.LOG")) or len(seen) >= 4, "it is told of all")
        assert [line.split()[:2] for line in seen] == [[b"client", b"0"]] * 4
        for other in others:
            other.close()


def test_a_script_within_a_script(make_server):
    """By way of a module: refused, there is one at a time."""
    server = make_server({"loadmodule": [path_of("example")]})
    with server.connect() as c:
        assert b"a script runs" in c.error(
            "EVAL", "return redis.call('EX.CALL', 'forward', 'E', 'EVAL', 'return 1', '0')", 0)
        assert c.call("EVAL", "return 7", 0) == 7


# ---- keys

def test_a_key_becomes_ready(both):
    with both.connect() as c, both.connect() as admin:
        waits(c, "BL.POP", 2, 0, "a", "b")
        blocked(admin, 1)
        admin.call("RPUSH", "b", "one")
        admin.call("SET", "a", "no list")
        blocked(admin, 1)
        admin.call("RPUSH", "b", "two")
        admin.ok("BL.SIGNAL", "b")  # Redis tells of keys that are new only
        assert c.read() == [b"b", b"one"]
        assert admin.call("LRANGE", "b", 0, -1) == [b"two"]
        eventually(lambda: counts(admin)[0] == 1, "the data are freed")


def test_keys_are_tried_in_order_of_coming(both):
    clients = [both.connect() for _ in range(4)]
    with both.connect() as admin:
        for i, c in enumerate(clients):
            waits(c, "BL.POP", 1, 0, "k")
            blocked(admin, i + 1)
        admin.call("RPUSH", "k", *range(3))
        assert [c.read() for c in clients[:3]] == [[b"k", b"%d" % i] for i in range(3)]
        admin.call("RPUSH", "k", 3)
        assert clients[3].read() == [b"k", b"3"]
    for c in clients:
        c.close()


def test_a_signal(both):
    """SignalKeyAsReady has clients tried; one that is not served waits on, and may time out."""
    with both.connect() as c, both.connect() as admin:
        admin.call("RPUSH", "k", 1)
        waits(c, "BL.POP", 2, 100, "k")
        admin.ok("BL.SIGNAL", "k")
        assert c.read() == b"timed out"


def test_a_wait_for_keys_that_the_module_ends(both):
    """Its client hears what it would hear in time."""
    hows = ((), ("thread",)) if both.has_locks else ((),)
    with both.connect() as c, both.connect() as admin:
        for number, how in enumerate(hows):
            waits(c, "BL.POP", 1, 0, "k")
            blocked(admin, 1)
            admin.ok("BL.DROP", *how)
            assert c.read() == b"timed out"
            eventually(lambda: counts(admin)[0] == number + 1, "the data are freed")
        assert c.call("PING") == b"PONG"


# ---- threads

@pytest.mark.parametrize("how", [(), ("TRY",)])
def test_threads_of_a_module_are_alone(both, how):
    with both.connect() as c:
        assert c.call("TH.COUNT", "n", 4, 200, *how) == b"done"
        assert c.call("GET", "n") == b"800"


def test_threads_beside_clients(both):
    """Nobody's additions are lost, and both sides get on."""
    bound, errors = 300, []

    def add(key):
        try:
            with both.connect() as c:
                for _ in range(bound):
                    c.call("INCR", key)
        except Exception as e:  # pylint: disable=broad-except
            errors.append(e)

    users = [threading.Thread(target=add, args=("user%d" % (i % 2),)) for i in range(4)]
    with both.connect() as c, both.connect() as d:
        for user in users:
            user.start()
        waits(c, "TH.COUNT", "n", 4, bound)
        assert d.call("TH.COUNT", "m", 4, bound) == b"done"
        assert c.read() == b"done"
        for user in users:
            user.join()
        assert not errors
        assert c.call("MGET", "n", "m", "user0", "user1") == [b"1200", b"1200", b"600", b"600"]


def test_a_thread_that_configures(both):
    """What needs all others to stand still, from a thread."""
    with both.connect() as c:
        for _ in range(5):
            assert c.call("TH.CONFIG") == [b"OK", [b"maxmemory-samples", b"9"]]


def test_a_thread_without_a_client(both):
    with both.connect() as c:
        c.ok("TH.DETACH")
        c.call("SELECT", 1)
        eventually(lambda: c.call("LRANGE", "detached", 0, -1) == [b"one"], "it has written")


def test_everything_from_four_threads(both):
    """Calls that wait for threads, for keys and for one another, from many clients at once."""
    errors = []

    def use(number):
        try:
            with both.connect() as c, both.connect() as pushed:
                own = c.call("CLIENT", "ID")
                for i in range(40):
                    assert c.call("BL.WORK", i % 3, number, 0) == number
                    assert c.call("BL.ADD", 0, 1)[0] == 1
                    waits(c, "BL.POP", 1, 0, "other", "list%d" % number)
                    # Whenever it has come to wait: a push that came before is not seen.
                    while not pushed.call("CLIENT", "LIST", "ID", own).count(b"flags=b"):
                        pass
                    pushed.call("RPUSH", "list%d" % number, i)
                    assert c.read() == [b"list%d" % number, b"%d" % i]
        except Exception as e:  # pylint: disable=broad-except
            errors.append(e)

    users = [threading.Thread(target=use, args=(n,)) for n in range(4)]
    for user in users:
        user.start()
    with both.connect() as c:
        assert c.call("TH.COUNT", "n", 4, 100) == b"done"
        for user in users:
            user.join()
        assert not errors, errors
        assert c.call("GET", "bl:sum") == b"160"
