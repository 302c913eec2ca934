"""Modules that let clients in (tests/modules/keeper.c): asked by AUTH and HELLO; users of their own; requests that are
sent together with what changes the user; arguments that are hidden; all of that beside a script that takes long."""

import errno
import threading

import pytest

from lib.bounds import eventually
from lib.modules import in_threads, path_of
from lib.resp import Closed, Error

LONG = "while true do end"


@pytest.fixture
def kept(make_server):
    """A server with the module, and the user u, who has a password nobody uses here."""
    server = make_server({"loadmodule": [path_of("keeper")], "enable-module-command": "yes", "busy-reply-threshold": "20"})
    with server.connect() as c:
        c.ok("ACL", "SETUSER", "u", "on", ">right", "~*", "+@all", "-set")
    return server


def test_answers(kept):
    with kept.connect() as c:
        for password in ("in", "right", "second"):
            c.ok("AUTH", "u", password)
            assert c.call("ACL", "WHOAMI") == b"u"
            assert c.call("RESET") == b"RESET"
            assert c.call("ACL", "WHOAMI") == b"default"
        assert c.error("AUTH", "u", "out") == b"CLOSED the gate is closed"
        assert c.error("AUTH", "u", "plain") == b"ERR no way"
        for user, password in (("u", "nobody"), ("u", "wrong"), ("nobody", "in")):
            assert c.error("AUTH", user, password).startswith(b"WRONGPASS")
        assert c.call("ACL", "WHOAMI") == b"default"
        assert isinstance(c.call("HELLO", 2, "AUTH", "u", "out", "SETNAME", "x"), Error)
        assert c.call("CLIENT", "GETNAME") is None
        assert c.call("HELLO", 2, "AUTH", "u", "in", "SETNAME", "x")
        assert c.call("ACL", "WHOAMI") == b"u" and c.call("CLIENT", "GETNAME") == b"x"


def test_who_is_asked(kept):
    with kept.connect() as c:
        c.call("K.COUNTS")
        c.call("AUTH", "u", "in")
        c.call("AUTH", "u", "out")
        assert c.call("K.COUNTS") == [2, 0, 0]
        c.call("AUTH", "u", "second")
        assert c.call("K.COUNTS") == [1, 1, 1]
        c.call("AUTH", "u", "wrong")
        assert c.call("K.COUNTS") == [1, 1, 0]
        c.call("RESET")
        assert c.call("K.COUNTS") == [0, 0, 1]
        assert [entry[3] for entry in c.call("ACL", "LOG")] == [b"auth"]  # of the password that nobody knew
        c.ok("MODULE", "UNLOAD", "keeper")
        c.ok("AUTH", "u", "right")
        assert isinstance(c.call("AUTH", "u", "in"), Error)


# ---- answers that take a while

def freed(c, count):
    eventually(lambda: c.call("K.WAITS")[1] == count, "the data of %d are freed" % count)


def test_later(kept):
    with kept.connect() as c:
        c.ok("ACL", "SETUSER", "u", ">later-left")
        for password in ("later-in", "later-left", "later-second"):
            c.ok("AUTH", "u", password)
            assert c.call("ACL", "WHOAMI") == b"u"
            assert c.call("RESET") == b"RESET"
        assert c.error("AUTH", "u", "later-out") == b"LATE the gate is closed"
        assert c.error("AUTH", "u", "later-none").startswith(b"WRONGPASS")
        assert c.call("ACL", "WHOAMI") == b"default"
        c.hello(3, "AUTH", "u", "later-in", "SETNAME", "x")
        assert c.call("ACL", "WHOAMI") == b"u" and c.call("CLIENT", "GETNAME") == b"x"
        freed(c, 7)
        assert c.call("K.WAITS") == [7, 7, 0, 0]
        c.hello(2)
        assert [entry[3] for entry in c.call("ACL", "LOG")] == [b"auth"]


def test_later_in_a_pipeline(kept):
    """What stands behind it waits, and is looked at as the user's."""
    with kept.connect() as c:
        replies = c.pipeline([("GET", "k"), ("AUTH", "u", "later-in"), ("SET", "k", "v"), ("ACL", "WHOAMI"),
                              ("AUTH", "u", "later-out"), ("RESET",), ("SET", "k", "v")])
        assert replies[:2] == [None, b"OK"] and replies[3] == b"u" and replies[5:] == [b"RESET", b"OK"]
        assert replies[2].startswith(b"NOPERM") and replies[4].startswith(b"LATE")


def test_before_anybody_is_let_in(kept):
    with kept.connect() as c:
        c.ok("CONFIG", "SET", "requirepass", "secret")
        with kept.connect() as new:
            assert new.error("GET", "k").startswith(b"NOAUTH")
            new.ok("AUTH", "u", "later-in")
            assert new.call("GET", "k") is None
        c.ok("CONFIG", "SET", "requirepass", "")


def test_held(kept):
    """Others go on meanwhile; CLIENT UNBLOCK is not for it; whoever goes is told of."""
    with kept.connect() as c, kept.connect() as waits:
        number = waits.call("CLIENT", "ID")
        gone = kept.connect()
        for client in (waits, gone):
            client.send("AUTH", "u", "hold-in")
        eventually(lambda: b"blocked_clients:2" in c.call("INFO", "clients"), "two wait")
        assert c.call("CLIENT", "UNBLOCK", number) == c.call("CLIENT", "UNBLOCK", number, "ERROR") == 0
        assert b"blocked clients" in c.error("MODULE", "UNLOAD", "keeper")
        gone.close()
        eventually(lambda: c.call("K.WAITS")[2] == 1, "the module is told")
        assert c.call("K.LET") == 2
        assert waits.read() == b"OK" and waits.call("ACL", "WHOAMI") == b"u"
        freed(c, 2)
        assert c.call("K.WAITS") == [1, 2, 1, 0]


def test_who_cannot_wait(kept):
    with kept.connect() as c, kept.connect() as scripted:
        c.ok("MULTI")
        c.call("AUTH", "u", "later-in")
        c.call("ACL", "WHOAMI")
        replies = c.call("EXEC")
        assert replies[0].startswith(b"ERR Blocking module command called from transaction") and replies[1] == b"default"
        scripted.send("EVAL", LONG, 0)
        eventually(lambda: isinstance(c.call("PING"), Error), "the script takes long")
        assert c.error("AUTH", "u", "later-in").startswith(b"ERR Blocking module command called beside")
        c.ok("SCRIPT", "KILL")
        assert isinstance(scripted.read(), Error)
        freed(c, 2)


def test_later_from_all_threads(kept):
    def use():
        for i in range(30):
            with kept.connect() as c:
                c.ok("AUTH", "u", ("later-in", "in", "later-second", "right")[i % 4])
                assert c.call("ACL", "WHOAMI") == b"u"
                c.send("AUTH", "u", "later-in")  # and gone

    in_threads(*[use] * 8)
    with kept.connect() as c:
        eventually(lambda: b"blocked_clients:0" in c.call("INFO", "clients"), "nobody waits")

        def all_are_done():
            replied, freed, disconnected, refused = c.call("K.WAITS")
            return freed == replied + disconnected >= 8 * 22 and refused == 0

        eventually(all_are_done, "each was replied to, or is known to have gone")


def test_default_user(kept):
    with kept.connect() as c:
        assert b"without any password" in c.error("AUTH", "in")
        c.ok("CONFIG", "SET", "requirepass", "secret")
        with kept.connect() as new:
            assert new.error("GET", "k").startswith(b"NOAUTH")
            assert new.call("K.BECOME", "u") == 0
            assert new.call("GET", "k") is None
        with kept.connect() as new:
            new.ok("AUTH", "in")
            assert new.call("ACL", "WHOAMI") == b"default"
        c.ok("CONFIG", "SET", "requirepass", "")


def test_sent_together(kept):
    """Requests in front of what changes the user, and behind it, in one batch."""
    with kept.connect() as c:
        for round in range(3):
            replies = c.pipeline([("GET", "k"), ("AUTH", "u", "in"), ("SET", "k", "v"), ("GET", "k"), ("RESET",), ("SET", "k", "v"),
                                  ("DEL", "k")])
            assert replies[1:2] + replies[3:] == [b"OK", None, b"RESET", b"OK", 1]
            assert replies[2].startswith(b"NOPERM")
            replies = c.pipeline([("GET", "k"), ("K.TURN", "u"), ("SET", "k", "v"), ("ACL", "WHOAMI"), ("RESET",), ("PING",)])
            assert replies[1] == 0 and replies[3:] == [b"u", b"RESET", b"PONG"]
            assert replies[2].startswith(b"NOPERM"), round


def test_in_transactions(kept):
    for more in ([], [("SET", "other", "v")]):  # in shared mode at first, and in exclusive mode
        for password in ("in", "out", "second", "right", "wrong"):
            with kept.connect() as c:
                c.call("K.COUNTS")
                c.ok("MULTI")
                for words in [("GET", "k"), ("AUTH", "u", password), ("ACL", "WHOAMI")] + more:
                    assert c.call(*words) == b"QUEUED"
                replies = c.call("EXEC")
                denied = password in ("out", "wrong")
                assert replies[0] is None and isinstance(replies[1], Error) == denied
                assert replies[2] == (b"default" if denied else b"u")
                assert not more or isinstance(replies[3], Error) != denied
                assert c.call("K.COUNTS")[:2] == [1, int(password in ("second", "right", "wrong"))]


def test_own_users(kept):
    with kept.connect() as c, kept.connect() as other, kept.connect() as third:
        for client in (other, third):
            client.ok("AUTH", "whoever", "own")
            assert client.call("ACL", "WHOAMI") == b"keeper-own"
            assert client.error("PING").startswith(b"NOPERM")
        assert c.call("K.RULE", "+ping") == 0
        assert other.call("PING") == third.call("PING") == b"PONG"
        assert c.call("K.FREE") == 1
        assert other.is_closed() and third.is_closed()
        c.ok("AUTH", "whoever", "own")
        assert c.error("PING").startswith(b"NOPERM")
    with kept.connect() as c, kept.connect() as other:
        other.ok("AUTH", "whoever", "own")
        c.ok("MULTI")  # the world is not to be had there: clients are told a little later
        c.call("K.RULE", "+ping")
        assert c.call("EXEC") == [0]
        eventually(lambda: other.call("PING") == b"PONG", "its rule is the client's")
        c.ok("MULTI")
        c.call("K.RULE", "-ping")
        c.call("K.FREE")
        c.call("K.RULE", "+ping")
        assert c.call("EXEC") == [0, 1, 0]
        assert other.is_closed()
        c.ok("MODULE", "UNLOAD", "keeper")


def test_users_change_and_go_from_all_threads(kept):
    """What a module does with its user is one step to others, who find the old user or the new one (each round the
    module is new: what it needs is not known yet)."""
    def free(c):
        assert c.call("K.FREE") == 1

    def give_rule(c):
        assert c.call("K.RULE", "+ping") == 0

    def come_in(c):
        try:
            for _ in range(5):
                replies = c.pipeline([("AUTH", "whoever", "own"), ("ACL", "WHOAMI"), ("RESET",)])
                assert replies == [b"OK", b"keeper-own", b"RESET"], replies
        except (Closed, ConnectionError):
            pass  # it was the old user's

    for _ in range(20):
        together = threading.Barrier(7)

        def work(one):
            with kept.connect() as c:
                together.wait()
                one(c)

        with kept.connect() as c, kept.connect() as own:
            own.ok("AUTH", "whoever", "own")
            in_threads(*(lambda one=one: work(one) for one in (free, free, free, give_rule, give_rule, come_in, come_in)))
            assert own.is_closed()  # its user is gone
            c.ok("MODULE", "UNLOAD", "keeper")
            c.ok("MODULE", "LOAD", path_of("keeper"))


def test_the_own_user_is_the_caller(kept):
    with kept.connect() as c:
        assert c.call("K.RULE", "+k.free") == 0
        c.ok("AUTH", "whoever", "own")
        assert c.call("K.FREE") == 1
        assert c.is_closed()


def test_rights_of_calls(kept):
    with kept.connect() as c:
        c.ok("ACL", "SETUSER", "w", "on", ">x", "~a*", "+get")
        assert c.call("K.AS", "w", "GET", "abc") is None
        for words, why in (("- GET k", b"'get' command"), ("w GET k", b"to access a key"), ("w ACL WHOAMI", b"'acl|whoami'")):
            error = c.error("K.AS", *words.split())
            assert error.startswith(b"NOPERM") and why in error
        assert c.call("K.AS", "-", "ACL", "WHOAMI") == b"keeper-own"
        assert c.call("K.AS", "none", "ACL", "WHOAMI") == c.call("ACL", "WHOAMI") == b"default"


def test_rights_are_asked_when_the_world_stands(kept):
    """A command that needs the world waits for it, and others go on: the user may go meanwhile (as above: each round the
    module is new)."""
    with kept.connect() as c:
        c.ok("MODULE", "LOAD", path_of("example"))
        assert c.call("EX.CALL", "forward", "-", "CONFIG", "SET", "hz", "10") == b"OK"  # from now on it runs in the world
    for _ in range(20):
        together = threading.Barrier(4)

        def work(*words):
            with kept.connect() as c:
                together.wait()
                return c.call(*words)

        def call():
            reply = work("K.AS", "w", "EX.CALL", "forward", "C", "GET", "k")
            assert reply in (None, b"EACCES") or b"NOPERM" in reply, reply

        with kept.connect() as c:
            c.ok("ACL", "SETUSER", "w", "on", ">x", "~*", "+@all")
            in_threads(call, call, lambda: work("ACL", "DELUSER", "w"), lambda: work("ACL", "DELUSER", "w"))
            c.ok("MODULE", "UNLOAD", "keeper")
            c.ok("MODULE", "LOAD", path_of("keeper"))


def test_a_user_goes_amid_its_own_calls(kept):
    """What runs with its rights goes on with the default user's, as clients do that are closed after their reply."""
    with kept.connect() as c:
        c.ok("MODULE", "LOAD", path_of("example"))
        c.ok("ACL", "SETUSER", "default", "-set")
        for words in (("EX.CALL", "forward", "-"), ("K.AS", "none")):  # both run in the world from now on
            assert c.call(*words, "CONFIG", "SET", "hz", "10") == b"OK"
        c.ok("ACL", "SETUSER", "w", "on", ">x", "~*", "+@all")
        script = "redis.call(unpack(ARGV)) return {redis.pcall('get', 'k'), redis.pcall('set', 'k', 'v')}"
        for user, goes in (("w", ("EX.CALL", "forward", "-", "ACL", "DELUSER", "w")), ("-", ("K.FREE",))):
            assert c.call("K.RULE", "+@all") == c.call("K.RULE", "~*") == 0
            reply = c.call("K.AS", user, "EVAL", script, "0", *goes)
            assert reply[0] is None and b"no permissions to run the 'set'" in reply[1], reply
        assert c.call("ACL", "USERS") == [b"default", b"u"]
        assert c.call("K.AS", "-", "ACL", "WHOAMI") == b"keeper-own"


def test_categories(make_server):
    server = make_server({"loadmodule": [path_of("keeper"), "mine", "a b", "read", "other", "mine"],
                          "enable-module-command": "yes"})
    with server.connect() as c:
        assert c.call("K.CATEGORIES") == [0, errno.EINVAL, errno.EBUSY, 0, errno.EBUSY]
        assert {b"mine", b"other"} <= set(c.call("ACL", "CAT"))
        assert c.call("ACL", "CAT", "other") == [b"k.counts"]
        assert c.call("COMMAND", "INFO", "k.counts")[0][6] == [b"@other"]
        c.ok("ACL", "SETUSER", "w", "on", "nopass", "+@other")
        c.ok("ACL", "SETUSER", "v", "on", "nopass", "+@all", "-@other")
        for _ in range(2):
            c.ok("MODULE", "UNLOAD", "keeper")
            assert c.call("ACL", "CAT", "other") == []
            c.ok("MODULE", "LOAD", path_of("keeper"), "other", "third")
            assert c.call("K.CATEGORIES") == [0, 0]
            c.ok("MODULE", "UNLOAD", "keeper")
            c.ok("MODULE", "LOAD", path_of("keeper"), "third", "other")
            assert c.call("ACL", "DRYRUN", "w", "K.COUNTS") == b"OK"
            assert b"no permissions" in c.call("ACL", "DRYRUN", "v", "K.COUNTS")
            assert c.call("ACL", "DRYRUN", "v", "K.HIDE", "1") == b"OK"


def test_hidden_arguments(kept):
    with kept.connect() as c, kept.connect() as watcher:
        c.ok("CONFIG", "SET", "slowlog-log-slower-than", "0")
        watcher.ok("MONITOR")
        assert c.call("K.HIDE", "1", "x", "3", "secret", "0", "9", "-1") == 2
        assert c.call("K.HIDE", *range(1, 41)) == 40
        assert c.call("K.HIDE", "x", "shown") == 0
        lines = [watcher.read().decode() for _ in range(3)]
        assert lines[0].endswith('"K.HIDE" "(redacted)" "x" "(redacted)" "secret" "0" "9" "-1"')
        assert lines[1].count("(redacted)") == 40 and lines[2].endswith('"x" "shown"')
        log = [entry[3] for entry in c.call("SLOWLOG", "GET", "10") if entry[3][0] == b"K.HIDE"]
        assert log[0] == [b"K.HIDE", b"x", b"shown"]
        assert set(log[1][1:31]) == {b"(redacted)"}
        assert log[2] == b"K.HIDE (redacted) x (redacted) secret 0 9 -1".split()
        c.ok("CONFIG", "SET", "slowlog-log-slower-than", "10000")


def test_beside_a_long_script(kept):
    """AUTH is answered while a script takes long, by the thread that runs it; so are ends of users."""
    with kept.connect() as c, kept.connect() as scripted, kept.connect() as watched:
        clients = [kept.connect() for _ in range(6)]
        watched.ok("AUTH", "u", "in")
        c.call("K.COUNTS")
        scripted.send("EVAL", LONG, 0)
        eventually(lambda: isinstance(c.call("PING"), Error), "the script takes long")
        for client in clients:
            client.ok("AUTH", "u", "in")
            assert client.error("AUTH", "u", "out").startswith(b"CLOSED")
            assert client.error("GET", "k").startswith(b"BUSY")
            assert client.call("RESET") == b"RESET"
        watched.close()
        c.ok("SCRIPT", "KILL")
        assert isinstance(scripted.read(), Error)
        changes = []

        def all_are_told():
            changes.append(c.call("K.COUNTS")[2])
            return sum(changes) == 7

        eventually(all_are_told, "all changes are told")
        for client in clients:
            client.close()
