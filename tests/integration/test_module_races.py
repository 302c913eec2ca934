"""What modules ask for and are asked from all threads at once: users, filters, options, INFO, children
(tests/modules/keeper.c, filters.c, settings.c, told.c)."""

import threading

from lib.bounds import eventually
from lib.modules import in_threads, path_of
from lib.resp import Closed, Error

MODULES = ("keeper", "filters", "settings", "told")


def beside(server, ended, work):
    """Runs work(connection, round) again and again, with a new connection when the server has closed one, until
    `ended`."""
    rounds = 0
    while not ended.is_set() or not rounds:  # it may end before this thread gets to work
        try:
            with server.connect() as c:
                while not ended.is_set() or not rounds:
                    work(c, rounds)
                    rounds += 1
        except (Closed, ConnectionError):
            if not server.alive():
                raise


def test_everything_from_all_threads(make_server):
    server = make_server({"enable-module-command": "yes"})
    ended = threading.Event()
    with server.connect() as c:
        for name in MODULES:
            c.ok("MODULE", "LOAD", path_of(name))
        c.ok("ACL", "SETUSER", "u", "on", ">right", "~a*", "&*", "+@all")

    def come_in(c, rounds):
        how = ("in", "own", "out", "second", "wrong")[rounds % 5]
        replies = c.pipeline([("GET", "a"), ("AUTH", "u", how), ("GET", "a"), ("ACL", "WHOAMI"), ("RESET",), ("SET", "a", "v")])
        assert isinstance(replies[1], Error) == (how in ("out", "wrong")), replies
        assert replies[3] in (b"u", b"keeper-own", b"default"), replies

    def work(c, rounds):
        replies = c.pipeline([("@insert", "l", "x"), ("GET", "a"), ("@delete", "SET", "b", "v"), ("LTRIM", "l", "0", "9"),
                              ("EVAL", "return redis.pcall('get', 'a')", "0"), ("GET", "b")])
        assert not isinstance(replies[1], Error) and not isinstance(replies[5], Error), replies

    def ask(c, _):
        replies = c.pipeline([("GET", "a"), ("INFO", "everything"), ("CONFIG", "GET", "settings.*"), ("INFO", "told")])
        assert all(not isinstance(reply, Error) for reply in replies), replies

    def set_options(c, rounds):
        reply = c.call("CONFIG", "SET", "settings.number", rounds % 99, "settings.word", "word %d" % rounds)
        assert reply == b"OK" or b"Unknown option" in reply or b"bad luck" in reply, reply

    def change(c, rounds):
        words = (("K.RULE", "+ping"), ("K.FREE",), ("K.RULE", "-ping"), ("T.USER", "reset", "on"), ("T.FORK", "0", "0"),
                 ("T.CHILD",))[rounds % 6]
        assert not isinstance(c.call(*words), Error) or words[0] == "T.FORK"

    def toggle():
        try:
            with server.connect() as c:
                for rounds in range(80):
                    name = ("filters", "settings")[rounds % 2]
                    c.ok("MODULE", "UNLOAD", name)
                    c.ok("MODULE", "LOAD", path_of(name))
        finally:
            ended.set()

    in_threads(toggle, *(lambda work=one: beside(server, ended, work)
                          for one in (come_in, come_in, work, work, ask, set_options, change)))
    with server.connect() as c:
        eventually(lambda: b"module_fork_in_progress:0" in c.call("INFO", "persistence"), "the child has ended")
        for name in MODULES:
            c.ok("MODULE", "UNLOAD", name)
        assert c.call("MODULE", "LIST") == []
