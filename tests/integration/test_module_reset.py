"""A module that empties the data set: what its append-only file says then."""

from lib.bounds import eventually
from lib.modules import path_of


def test_the_log_begins_anew(make_server):
    server = make_server({"loadmodule": [path_of("told")], "appendonly": "yes", "appendfsync": "always"},
                         files=["appendonlydir"])
    with server.connect() as c, server.connect(3) as tracking, server.connect() as watching:
        c.ok("SET", "old", "v")
        tracking.ok("CLIENT", "TRACKING", "ON")
        tracking.call("GET", "old")
        watching.ok("WATCH", "old")
        c.ok("T.RESET", 1, 0)
        assert c.call("DBSIZE") == 0
        assert tracking.read_frame()[1] == [b"invalidate", None]
        watching.ok("MULTI")
        watching.call("PING")
        assert watching.call("EXEC") is None
        c.ok("SET", "new", "v")
        eventually(lambda: b"aof_rewrite_in_progress:0" in c.call("INFO", "persistence") and
                   b"aof_rewrite_scheduled:0" in c.call("INFO", "persistence"), "the rewrite is done")
        c.ok("DEBUG", "LOADAOF")
        assert c.call("KEYS", "*") == [b"new"]


def test_without_a_new_log(make_server):
    server = make_server({"loadmodule": [path_of("told")], "appendonly": "yes"}, files=["appendonlydir"])
    with server.connect() as c:
        c.ok("SET", "old", "v")
        c.ok("T.RESET", 0, 1)
        assert c.call("DBSIZE") == 0
        c.ok("DEBUG", "LOADAOF")
        assert c.call("KEYS", "*") == [b"old"]
