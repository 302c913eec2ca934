"""DEBUG RELOAD and DEBUG LOADAOF whose load fails: an error, and everything is as it was, in this process and
in the next one."""

import os
import re

import pytest

from lib.bounds import eventually

LIBRARY = "#!lua name=%s\nredis.register_function{function_name='%s', flags={'no-writes'}, " \
    "callback=function() return %d end}"
NOT_LOADED = b"ERR Error trying to load the RDB dump, check server logs."
COUNT = "return redis.call('INCR', KEYS[1])"


def fill(c):
    """Keys of several kinds and databases, with expiries, a job, and libraries."""
    c.ok("SET", "text", "memory", "PX", 1000000)
    c.call("RPUSH", "list", *range(200))
    c.call("HSET", "hash", "f", "v", "g", "w")
    c.call("HEXPIRE", "hash", 1000, "FIELDS", 1, "f")
    c.ok("KEYDB.CRON", "job", "repeat", 1000000000, COUNT, 1, "n")
    c.ok("SELECT", 2)
    c.call("SADD", "far", "a", "b")
    c.ok("SELECT", 0)
    c.call("FUNCTION", "LOAD", LIBRARY % ("l", "f", 1))


def everything(c):
    counts = re.sub(rb"avg_ttl=\d+", b"", c.call("INFO", "keyspace"))
    return c.call("DEBUG", "DIGEST"), c.call("FUNCTION", "LIST", "WITHCODE"), counts, c.call("PEXPIRETIME", "text")


def works(c):
    """What is there is alive: members expire, jobs run, clients wait."""
    c.ok("KEYDB.CRON", "job", "repeat", 0, 1000000000, COUNT, 1, "n")
    eventually(lambda: c.call("GET", "n") == b"1", "the job runs", 60)
    assert c.call("FCALL", "f", 0) == 1
    assert c.call("DEL", "job", "n") == 2


def damage(server, how):
    path = server.file("dump.rdb")
    if how == "missing":
        os.unlink(path)
        return
    with open(path, "rb") as file:
        data = file.read()
    data = {"empty": b"", "no RDB": b"x" * len(data), "torn": data[:len(data) * 2 // 3],
            "flipped": data[:len(data) // 2] + bytes([data[len(data) // 2] ^ 0xff]) + data[len(data) // 2 + 1:],
            "another checksum": data[:-1] + bytes([data[-1] ^ 1])}[how]
    with open(path, "wb") as file:
        file.write(data)


@pytest.mark.any_threads
@pytest.mark.parametrize("words", [[], ["NOFLUSH"], ["NOFLUSH", "MERGE"], ["MERGE"]], ids="-".join)
def test_a_file_that_does_not_load(make_server, words):
    server = make_server(files=["dump.rdb"])
    with server.connect() as c, server.connect() as watcher:
        for how in ("missing", "empty", "no RDB", "torn", "flipped", "another checksum"):
            c.ok("FLUSHALL")
            c.ok("FUNCTION", "FLUSH")
            c.ok("SET", "only in the file", "1")
            c.call("FUNCTION", "LOAD", LIBRARY % ("other", "other", 2))
            c.ok("DEBUG", "POPULATE", 500)
            c.ok("SAVE")
            c.ok("FLUSHALL")
            c.ok("FUNCTION", "FLUSH")
            fill(c)
            damage(server, how)
            before = everything(c)
            assert c.error("DEBUG", "RELOAD", "NOSAVE", *words) == NOT_LOADED, how
            assert everything(c) == before, how
            works(c)
        assert c.call("EXISTS", "only in the file") == 0
        # In a transaction, and then with a file that is sound again.
        watcher.ok("MULTI")
        watcher.call("DEBUG", "RELOAD", "NOSAVE", *words)
        watcher.call("INCR", "done")
        assert [str(r) for r in watcher.call("EXEC")[1:]] == ["1"]
        c.ok("SAVE")
        if "NOFLUSH" not in words or "MERGE" in words:
            c.ok("DEBUG", "RELOAD", "NOSAVE", *words)
        assert c.call("GET", "done") == b"1"
        works_still = c.call("FCALL", "f", 0)
        assert works_still == 1


@pytest.mark.any_threads
def test_over_a_key_that_is_there(make_server):
    server = make_server(files=["dump.rdb"])
    with server.connect() as c:
        fill(c)
        c.ok("SAVE")
        c.ok("SELECT", 1)
        c.ok("SET", "other", "v")
        c.ok("SELECT", 0)
        before = everything(c)
        assert c.error("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH") == NOT_LOADED
        assert c.error("DEBUG", "RELOAD", "NOFLUSH") == NOT_LOADED  # all that was just saved is there
        assert everything(c) == before
        assert "a key that is there twice" in server.output()
        # One key is enough, in any database; none of the others comes.
        c.ok("SAVE")
        c.ok("FLUSHDB")
        c.ok("FUNCTION", "FLUSH")
        assert c.error("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH") == NOT_LOADED
        assert c.call("DBSIZE") == 0 and c.call("FUNCTION", "LIST") == []
        # Without it they do.
        c.ok("FLUSHALL")
        c.ok("SET", "mine", "1")
        c.ok("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH")
        assert c.call("DEL", "mine") == 1
        assert everything(c)[0] == before[0] and c.call("FCALL", "f", 0) == 1
        works(c)


@pytest.mark.any_threads
def test_over_a_library_that_is_there(make_server):
    """Of the same name, or with a function of the same name: all libraries stay as they were."""
    server = make_server(files=["dump.rdb"])
    with server.connect() as c:
        c.call("FUNCTION", "LOAD", LIBRARY % ("a", "a", 1))
        c.call("FUNCTION", "LOAD", LIBRARY % ("l", "f", 1))
        c.ok("SET", "file", "1")
        c.ok("SAVE")
        for library, words in ((("l", "g", 5), []), (("m", "f", 5), []), (("m", "f", 5), ["MERGE"])):
            c.ok("FLUSHALL")
            c.ok("FUNCTION", "FLUSH")
            c.call("FUNCTION", "LOAD", LIBRARY % library)
            before = c.call("FUNCTION", "LIST", "WITHCODE")
            assert c.error("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", *words) == NOT_LOADED
            assert c.call("FUNCTION", "LIST", "WITHCODE") == before
            assert c.call("FCALL", library[1], 0) == 5 and c.call("EXISTS", "file") == 0
        c.ok("FUNCTION", "FLUSH")
        c.call("FUNCTION", "LOAD", LIBRARY % ("l", "g", 5))
        c.ok("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE")
        assert c.call("FCALL", "f", 0) == 1 and c.call("FCALL", "a", 0) == 1 and c.call("EXISTS", "file") == 1
        c.error("FCALL", "g", 0)


@pytest.mark.any_threads
def test_merged_jobs_and_expiries(make_server):
    """What replaces a key has its job and its deadlines, and what it replaced has none any more."""
    server = make_server(files=["dump.rdb"])
    with server.connect() as c:
        c.ok("KEYDB.CRON", "job", "repeat", 10, COUNT, 1, "from the file")
        c.ok("SET", "text", "file", "PX", 1000000)
        c.call("SADD", "set", "a", "b")
        c.call("EXPIREMEMBER", "set", "a", 1000)
        c.ok("SAVE")
        c.ok("KEYDB.CRON", "job", "repeat", 10, COUNT, 1, "from memory")
        c.ok("SET", "text", "memory")
        c.ok("SET", "set", "memory", "PX", 1000000)
        c.ok("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE")
        seen = int(c.call("GET", "from memory") or 0)
        c.call("DEL", "from the file")
        eventually(lambda: int(c.call("GET", "from the file") or 0) >= 3, "the file's job runs", 60)
        assert int(c.call("GET", "from memory") or 0) == seen
        assert c.call("TTL", "text") > 900 and c.call("TTL", "set") == -1 and c.call("TTL", "set", "a") > 900
        assert b"expires=1," in c.call("INFO", "keyspace")
        c.ok("FLUSHALL")
        assert c.call("DBSIZE") == 0


@pytest.mark.any_threads
def test_a_log_that_does_not_load(make_server):
    server = make_server({"appendonly": "yes", "aof-load-truncated": "no", "appendfsync": "always"},
                         files=["appendonlydir"])
    name = server.file("appendonlydir/appendonly.aof.1.incr.aof")
    with server.connect() as c:
        fill(c)
        before = everything(c)
        c.ok("DEBUG", "LOADAOF")
        assert everything(c) == before
        for rest in (b"*2\r\n$3\r\nSET\r\n$1\r\nk", b"no command\r\n",
                     b"*1\r\n$7\r\nUNKNOWN\r\n", b"*3\r\n$3\r\nSET\r\n$5\r\nextra\r\n$1\r\n1\r\n*"):
            size = os.path.getsize(name)
            with open(name, "ab") as file:
                file.write(rest)
            assert c.error("DEBUG", "LOADAOF") == b"ERR Error trying to load the AOF files, check server logs."
            assert everything(c) == before
            os.truncate(name, size)
        os.rename(name, name + ".away")
        c.error("DEBUG", "LOADAOF")
        assert everything(c) == before
        os.rename(name + ".away", name)
        # The log goes on where it was.
        works(c)
        c.ok("SET", "after", "1")
        before = everything(c)
        c.ok("DEBUG", "LOADAOF")
        assert everything(c) == before
    server.kill()
    server.start()
    with server.connect() as c:
        assert everything(c) == before
