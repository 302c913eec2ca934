"""FalkorDB, unmodified: a graph that several clients write and query at once, and one that is written to the end of its
memory's worth of threads. (What happens to its data: test_journeys.py.)"""

import pytest

from lib.bounds import eventually
from lib.modules import in_threads
from lib.real import real
from lib.resp import Error


@pytest.fixture
def graph(make_server):
    def make(options=None):
        return make_server({"loadmodule": real("falkordb.so"), **(options or {})}, files=("dump.rdb", "appendonlydir"))

    return make


def query(c, text, command="GRAPH.QUERY"):
    reply = c.call(command, "g", text)
    assert not isinstance(reply, Error), (text, reply)
    return reply[1] if len(reply) > 1 else []


def test_several_clients(graph):
    server, writers, rounds = graph(), 8, 30

    def write(number):
        with server.connect() as c:
            for i in range(rounds):
                query(c, "CREATE (:N {w:%d, i:%d})" % (number, i))
                if i:
                    query(c, "MATCH (a:N {w:%d, i:%d}), (b:N {w:%d, i:%d}) CREATE (a)-[:NEXT]->(b)" % (number, i - 1, number, i))

    def read():
        with server.connect() as c:
            before = 0
            for _ in range(rounds * 2):
                count = query(c, "MATCH (n:N) RETURN count(n)", "GRAPH.RO_QUERY")[0][0]
                assert count >= before
                before = count
                assert c.call("SET", "plain", count) == b"OK"

    with server.connect() as c:
        query(c, "CREATE (:First)")
    in_threads(read, read, read, *[lambda n=n: write(n) for n in range(writers)])
    with server.connect() as c:
        assert query(c, "MATCH (n:N) RETURN count(n)") == [[writers * rounds]] and query(c, "MATCH (f:First) RETURN count(f)") == [[1]]
        assert query(c, "MATCH (:N)-[e:NEXT]->(:N) RETURN count(e)") == [[writers * (rounds - 1)]]
        assert query(c, "MATCH p=(a:N {w:3, i:0})-[:NEXT*]->(b:N {w:3, i:9}) RETURN length(p)") == [[9]]


def test_who_goes_while_it_is_asked(graph):
    """Clients that leave before their answer, and a graph that is deleted meanwhile."""
    server = graph()
    with server.connect() as c:
        query(c, "UNWIND range(1, 300) AS i CREATE (:Q {i:i})")
        for _ in range(20):
            gone = server.connect()
            gone.send("GRAPH.QUERY", "g", "MATCH (a:Q), (b:Q) RETURN count(a)")
            gone.close()
        assert query(c, "MATCH (q:Q) RETURN count(q)") == [[300]]
        c.call("GRAPH.DELETE", "g")
        eventually(lambda: c.call("EXISTS", "g") == 0, "it is gone")
        assert c.call("PING") == b"PONG"


def test_many_graphs_expire(graph):
    with graph().connect() as c:
        for i in range(20):
            c.call("GRAPH.QUERY", "g%d" % i, "CREATE (:N)")
            c.call("PEXPIRE", "g%d" % i, str(1 + i))
        eventually(lambda: c.call("DBSIZE") == 0, "all are gone")
        assert c.call("GRAPH.LIST") == []
