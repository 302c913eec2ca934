"""redis-py, as an application would use it."""

import threading

import pytest
import redis


@pytest.fixture
def r(server):
    host, port = server.address()
    with redis.Redis(host, port, decode_responses=True) as connection:
        yield connection
        connection.connection_pool.disconnect()


def test_strings(r):
    assert r.set("k", "v", ex=100) is True
    assert r.get("k") == "v" and 0 < r.ttl("k") <= 100
    assert r.set("k", "w", nx=True) is None
    assert r.set("k", "w", get=True) == "v"
    assert r.mset({"a": 1, "b": 2}) and r.mget("a", "b", "c") == ["1", "2", None]
    assert r.incr("n", 5) == 5 and r.decr("n") == 4 and r.incrbyfloat("n", 0.5) == 4.5
    assert r.append("k", "xyz") == 4 and r.getrange("k", 1, 2) == "xy" and r.strlen("k") == 4
    assert r.getdel("k") == "w" + "xyz" and r.getex("a", ex=5) == "1"
    assert r.setnx("fresh", "1") and r.setrange("fresh", 2, "x") == 3


def test_keys(r):
    r.mset({"k%d" % n: n for n in range(100)})
    assert set(r.scan_iter(match="k1*", count=10)) == {"k1"} | {"k1%d" % n for n in range(10)}
    assert r.exists("k1", "k2", "none") == 2 and r.delete("k1", "none") == 1
    assert r.unlink("k2") == 1 and r.rename("k3", "x") and r.renamenx("k4", "x") is False
    assert r.copy("k5", "y") and r.type("y") == "string" and r.touch("y") == 1
    assert r.object("encoding", "y") == "int" and r.dbsize() == 99
    assert r.expire("y", 10, nx=True) and r.persist("y") and r.randomkey()
    assert len(r.keys("*")) == 99


def test_pipeline(r):
    with r.pipeline(transaction=False) as p:
        for n in range(1000):
            p.set("k%d" % n, n).get("k%d" % n)
        replies = p.execute()
    assert replies[0::2] == [True] * 1000 and replies[1::2] == [str(n) for n in range(1000)]


def test_transactions(r, server):
    with r.pipeline() as p:  # MULTI and EXEC around it
        for n in range(300):
            p.set("k%d" % n, n).incr("k%d" % n)
        assert p.execute() == [x for n in range(300) for x in (True, n + 1)]
        p.lpush("l", "x").incr("l").llen("l")
        replies = p.execute(raise_on_error=False)
        assert replies[0] == replies[2] == 1 and isinstance(replies[1], redis.ResponseError)
        with pytest.raises(redis.ResponseError, match="unknown command"):
            p.set("k", "never").execute_command("NOPE").execute()
    assert not r.exists("k")


def test_optimistic_locking(r, server):
    def add_one(p):
        value = int(p.get("n") or 0)
        p.multi()
        p.set("n", value + 1)

    def work():
        with redis.Redis(*server.address(), decode_responses=True) as own:
            for _ in range(50):
                own.transaction(add_one, "n")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert r.get("n") == "200"
    with r.pipeline() as p:
        p.watch("n")
        r.set("n", "other")
        p.multi()
        p.get("n")
        with pytest.raises(redis.WatchError):
            p.execute()


def test_errors(r):
    with pytest.raises(redis.ResponseError, match="not an integer"):
        r.set("k", "text") and r.incr("k")
    with pytest.raises(redis.ResponseError, match="unknown command"):
        r.execute_command("NOPE", "x")


def test_server_commands(r):
    assert r.ping() and r.echo("x") == "x"
    assert r.info()["redis_version"].startswith("7.")
    assert r.config_set("timeout", 5) and r.config_get("timeout") == {"timeout": "5"}
    assert r.client_setname("py") and r.client_getname() == "py"
    assert any(c["name"] == "py" for c in r.client_list())
    assert r.client_id() == r.client_info()["id"]
    assert len(r.time()) == 2 and r.command_count() > 50
    assert isinstance(r.slowlog_get(), list) and r.slowlog_len() >= 0
    assert r.memory_usage("missing") is None
    r.flushall()
    assert r.dbsize() == 0


def test_threads_and_pool(server):
    host, port = server.address()
    pool = redis.ConnectionPool(host=host, port=port, max_connections=20)
    shared = redis.Redis(connection_pool=pool)

    def work():
        for _ in range(100):
            shared.incr("n")

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert shared.get("n") == b"800"
    pool.disconnect()


def test_unix_socket(server):
    with redis.Redis(unix_socket_path=server.unix_address()) as r:
        assert r.set("k", b"\x00\xff") and r.get("k") == b"\x00\xff"


def test_auth_and_database(make_server):
    server = make_server({"requirepass": "pw"}, password="pw")
    host, port = server.address()
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(host, port).ping()
    with redis.Redis(host, port, db=3, password="pw") as r:
        assert r.set("k", "v") and "db3" in r.info("keyspace")
    with redis.from_url("redis://:pw@%s:%d/3" % (host, port)) as r:
        assert r.get("k") == b"v"


def test_monitor(r):
    with r.monitor() as watcher:
        r.set("seen", "1")
        for command in watcher.listen():
            if command["command"].startswith("SET"):
                assert command["command"] == "SET seen 1" and command["db"] == 0
                break
