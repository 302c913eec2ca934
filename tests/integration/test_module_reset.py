"""A module that empties the data set: what its append-only file says then."""

import pytest

from lib.active import check_equal, make_node, together
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


@pytest.mark.parametrize("restart, lazily", (pytest.param(0, 0, marks=pytest.mark.long), (1, 1)))
def test_a_group_has_one_data_set(make_node, restart, lazily):
    """All nodes are empty then, and no write before it comes back."""
    files = ["appendonlydir"]
    a, b = (make_node(loadmodule=path_of("told"), appendonly="yes", files=files) for _ in range(2))
    together(a, b)
    with a.connect() as ca, b.connect() as cb:
        ca.ok("SET", "of-a", "1")
        cb.ok("SET", "of-b", "1")
        check_equal([a, b], "filled")
        ca.ok("T.RESET", restart, lazily)
        assert ca.call("DBSIZE") == 0
        eventually(lambda: cb.call("DBSIZE") == 0, "the other one is empty")
        cb.ok("SET", "later", "1")
        ca.ok("SET", "too", "1")
        ca.ok("MULTI")
        ca.call("SET", "within", "1")
        ca.call("T.RESET", restart, lazily)
        ca.call("SET", "last", "1")
        ca.call("EXEC")
        check_equal([a, b], "after")
        assert set(cb.call("KEYS", "*")) - {b"later"} == {b"last"}
    a.kill()
    a.start()
    check_equal([a, b], "from its files")
