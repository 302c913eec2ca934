"""Libraries of functions in a group: loaded, replaced, deleted, flushed and restored on any node, through cuts, starts
from files and whole data sets; the last word about a name stands everywhere."""

import time

import pytest

from lib.active import check_quiet, cut, follow, is_up, make_node, mesh, preview
from lib.bounds import eventually
from lib.replication import replication
from lib.resp import Error
from lib.seeds import generator, seeds
from lib.server import free_port

pytestmark = pytest.mark.preview

__all__ = ["make_node", "preview"]  # fixtures

FILES = ["dump.rdb", "appendonlydir"]
KEPT = {"rdb": {"save": ["3600", "1000000"]}, "aof": {"appendonly": "yes"},
        "commands": {"appendonly": "yes", "aof-use-rdb-preamble": "no"}}


def source(name, functions=None, value="1"):
    text = "#!lua name=%s\n" % name
    for function in functions or [name]:
        text += "redis.register_function('%s', function() return '%s' end)\n" % (function, value)
    return text


def load(node, name, functions=None, value="1"):
    with node.connect() as c:
        assert c.call("FUNCTION", "LOAD", "REPLACE", source(name, functions, value)) == name.encode()


def run(node, *words):
    with node.connect() as c:
        return c.call(*words)


def libraries(node):
    """Name and source of each."""
    with node.connect() as c:
        found = {}
        for row in c.call("FUNCTION", "LIST", "WITHCODE"):
            about = dict(zip(row[::2], row[1::2]))
            found[about[b"library_name"].decode()] = about[b"library_code"].decode()
        return found


def check_libraries(nodes, expected):
    expected = {name: source(name, *rest) for name, *rest in expected}
    eventually(lambda: all(libraries(n) == expected for n in nodes), "libraries %s" % sorted(expected), 20)


def apart(*nodes):
    for node in nodes:
        run(node, "REPLICAOF", "NO", "ONE")
    eventually(lambda: all(replication(n)["connected_slaves"] == "0" for n in nodes), "no links", 30)


def together(*nodes):
    for node in nodes:
        follow(node, *[peer for peer in nodes if peer is not node])
    eventually(lambda: all(is_up(n, len(nodes) - 1) for n in nodes), "links", 60)


@pytest.mark.parametrize("count", [2, 3], ids=["pair", "mesh"])
def test_what_is_loaded_here_is_run_there(make_node, count):
    nodes = mesh(make_node, count)
    load(nodes[0], "one")
    load(nodes[-1], "two")
    check_libraries(nodes, [("one",), ("two",)])
    assert all(run(n, "FCALL", "one", 0) == b"1" for n in nodes)
    load(nodes[1], "one", None, "new")
    eventually(lambda: all(run(n, "FCALL", "one", 0) == b"new" for n in nodes), "replaced")
    assert run(nodes[0], "FUNCTION", "DELETE", "two") == b"OK"
    check_libraries(nodes, [("one", None, "new")])
    payload = run(nodes[0], "FUNCTION", "DUMP")
    assert run(nodes[0], "FUNCTION", "FLUSH") == b"OK"
    check_libraries(nodes, [])
    load(nodes[0], "three")
    assert run(nodes[1], "FUNCTION", "RESTORE", payload) == b"OK"
    check_libraries(nodes, [("one", None, "new"), ("three",)])
    assert run(nodes[1], "FUNCTION", "RESTORE", payload, "FLUSH") == b"OK"
    check_libraries(nodes, [("one", None, "new")])
    with nodes[1].connect() as c:
        c.ok("MULTI")
        c.call("SET", "k", "v")
        c.call("FUNCTION", "LOAD", source("four"))
        c.call("FUNCTION", "DELETE", "one")
        assert not any(isinstance(reply, Error) for reply in c.call("EXEC"))
    check_libraries(nodes, [("four",)])
    check_quiet(nodes)


@pytest.mark.parametrize("count", [2, 3], ids=["pair", "mesh"])
def test_on_both_sides_of_a_cut(make_node, count):
    """The later one of two; a deletion against a loading, either way; a flush against both."""
    nodes = mesh(make_node, count)
    a, b = nodes[0], nodes[-1]
    for name in ("both", "gone", "kept", "old"):
        load(a, name)
    check_libraries(nodes, [("both",), ("gone",), ("kept",), ("old",)])
    apart(*nodes)
    load(a, "both", None, "a")
    load(a, "gone", None, "a")
    run(b, "FUNCTION", "DELETE", "kept")
    time.sleep(0.05)  # only the clock says which is later
    load(b, "both", None, "b")
    run(b, "FUNCTION", "DELETE", "gone")
    load(a, "kept", None, "a")
    together(*nodes)
    check_libraries(nodes, [("both", None, "b"), ("kept", None, "a"), ("old",)])
    apart(*nodes)
    load(a, "before")
    time.sleep(0.05)
    run(b, "FUNCTION", "FLUSH")
    time.sleep(0.05)
    load(a, "behind")
    together(*nodes)
    check_libraries(nodes, [("behind",)])
    check_quiet(nodes)


def test_a_function_that_two_libraries_have(make_node):
    """Of two that do not go together the later one is loaded; the other one is back when that goes, also when the
    nodes have been started from files meanwhile."""
    a, b = [make_node(files=FILES, appendonly="yes", port=str(free_port())) for _ in range(2)]
    together(a, b)
    apart(a, b)
    load(a, "first", ["f", "g"])
    load(a, "aside")
    time.sleep(0.05)
    load(b, "second", ["g", "h"])
    together(a, b)
    check_libraries([a, b], [("second", ["g", "h"]), ("aside",)])
    for node in (a, b):
        node.kill_all()
        node.start()
    together(a, b)
    check_libraries([a, b], [("second", ["g", "h"]), ("aside",)])
    assert run(a, "FUNCTION", "DELETE", "second") == b"OK"
    check_libraries([a, b], [("first", ["f", "g"]), ("aside",)])
    check_quiet([a, b])


@pytest.mark.parametrize("kept", sorted(KEPT))
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_starts(make_node, kept, end):
    """Which word was the last one is known after a start, also of what is gone."""
    a, b = [make_node(files=FILES, port=str(free_port()), **KEPT[kept]) for _ in range(2)]
    together(a, b)
    for name in ("one", "two", "three"):
        load(a, name)
    check_libraries([a, b], [("one",), ("two",), ("three",)])
    apart(a, b)
    load(a, "one", None, "early")
    load(a, "two", None, "early")
    time.sleep(0.05)
    load(b, "one", None, "late")
    run(b, "FUNCTION", "DELETE", "two")
    if kept == "rdb":
        run(b, "SAVE")
    elif end == "kill":
        run(b, "BGREWRITEAOF")
        eventually(lambda: b.info("persistence")["aof_rewrite_in_progress"] == "0" and
                   b.info("persistence")["aof_rewrite_scheduled"] == "0", "rewritten", 30)
        load(b, "three", None, "late")
    b.kill_all() if end == "kill" else b.stop()
    b.start()
    together(a, b)
    three = ("three", None, "late") if kept != "rdb" and end == "kill" else ("three",)
    check_libraries([a, b], [("one", None, "late"), three])
    check_quiet([a, b])


@pytest.mark.parametrize("filled", [True, False], ids=["keys", "alone"])
def test_a_whole_data_set(make_node, filled):
    """Nodes that never met: of each name the last word, also that it is gone."""
    a, b = [make_node(**{"repl-backlog-size": "16kb"}) for _ in range(2)]
    load(a, "both", None, "a")
    load(a, "mine")
    load(b, "yours")
    load(b, "gone")
    time.sleep(0.05)
    load(b, "both", None, "b")
    load(a, "gone")
    run(a, "FUNCTION", "DELETE", "gone")
    for node in (a, b) if filled else ():
        with node.connect() as c:
            c.pipeline([["SET", "%s:%d" % (node.address()[1], i), "x" * 100] for i in range(500)])
    together(a, b)
    check_libraries([a, b], [("both", None, "b"), ("mine",), ("yours",)])
    run(b, "FUNCTION", "DELETE", "mine")
    check_libraries([a, b], [("both", None, "b"), ("yours",)])
    check_quiet([a, b])


def test_a_server_that_was_not_active(make_node, make_server):
    """Libraries that no node has written come along with a data set."""
    plain = make_server({"save": ["3600", "1000000"]}, files=["dump.rdb", "active-node"])
    load(plain, "one")
    run(plain, "SAVE")
    plain.stop()
    plain.environment = {"KEYDB_ACTIVE_PREVIEW": "1"}
    plain.options.update({"active-replica": "yes", "multi-master": "yes"})
    plain.start()
    b = make_node()
    together(plain, b)
    check_libraries([plain, b], [("one",)])
    load(b, "one", None, "b")
    check_libraries([plain, b], [("one", None, "b")])
    check_quiet([plain, b])


@pytest.mark.parametrize("count", [2, 3], ids=["pair", "mesh"])
@pytest.mark.parametrize("seed", seeds(1))
def test_random_words_with_cuts(make_node, count, seed):
    print("seed", seed)
    nodes = mesh(make_node, count)
    random = generator(seed, "words")
    for step in range(150):
        node = random.choice(nodes)
        name = random.choice("xyz")
        functions = random.sample("abcde", random.choice([1, 2]))
        what = random.random()
        with node.connect() as c:  # refused where a function is there already, or a library is not
            if what < 0.7:
                c.call("FUNCTION", "LOAD", "REPLACE", source(name, functions, str(step)))
            elif what < 0.95:
                c.call("FUNCTION", "DELETE", name)
            else:
                c.call("FUNCTION", "FLUSH")
        if step % 25 == 0:
            cut(random.choice(nodes))
    eventually(lambda: all(is_up(n, count - 1) for n in nodes), "links", 30)
    eventually(lambda: len({str(sorted(libraries(n).items())) for n in nodes}) == 1, "equal libraries", 20)
    check_quiet(nodes)
