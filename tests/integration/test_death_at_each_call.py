"""kill -9 at each call on files (lib/faults.c counts them) of a rewrite of the log, of switching it
on, of its opening, cutting and taking over at a start, of CONFIG REWRITE and of ACL SAVE: the n-th call
is the last of its process, for every n until the operation gets through. The server starts by itself
again, and has what was acknowledged. SAVE and BGSAVE are in test_rdb_faults.py."""

import os
import shutil

import pytest

from integration.test_aof import fill
from lib.bounds import eventually
from lib.content import content
from lib.power import Restartable
from lib.resp import Closed, Timeout, encode
from lib.server import StartFailed, is_redis, server_path

pytestmark = [
    pytest.mark.any_threads,
    pytest.mark.skipif(is_redis(server_path()), reason="looks at our files"),
]

ALWAYS = {"save": None, "appendonly": "yes", "appendfsync": "always"}
CALLS_MAX = 200


class Stage:
    """A directory as it was before, a server on a copy of it for each n, and a second start of it."""

    def __init__(self, threads, faults, options, prepare, again=None):
        self.threads, self.faults = threads, faults
        self.options, self.again = options, again or options
        self.results = []
        self.template = Restartable(threads=threads, options=dict(self.again))
        with open(self.template.file("server.conf"), "w", encoding="utf-8") as file:
            file.write("aclfile users.acl\n")
        with open(self.template.file("users.acl"), "w", encoding="utf-8"):
            pass
        self.expected = prepare(self.template)
        if self.template.process is not None:
            self.template.kill_all()

    def each_call(self, operate, check, at_start=False):
        """operate(server, client) until it gives True: it got through; how many calls it has.
        check(client) after the next start; what it gives is kept in .results."""
        try:
            for number in range(1, CALLS_MAX):
                if self._one(number, operate, check, at_start):
                    return number - 1
            raise AssertionError("it never gets through")
        finally:
            self.template.remove()

    def _one(self, number, operate, check, at_start):
        server = Restartable(threads=self.threads, options=dict(self.options))
        server.environment = self.faults.environment()
        shutil.copytree(self.template.directory, server.directory, dirs_exist_ok=True)
        try:
            through = self._operate(server, number, operate, at_start)
            if server.process is not None:
                server.kill_all()
            self.faults.set()
            server.options = dict(self.again)
            try:
                server.start()
            except StartFailed as trouble:
                raise AssertionError("killed at call %d: %s" % (number, trouble)) from None
            with server.connect() as c:
                self.results.append(check(c))
            return through
        finally:
            if server.process is not None:
                server.kill_all()
            server.remove()

    def _operate(self, server, number, operate, at_start):
        self.faults.set(kill_at=number if at_start else 0)
        try:
            server.start()
            if not at_start:
                self.faults.set(kill_at=number)
            with server.connect() as c:
                return operate(server, c)
        except (StartFailed, Closed, Timeout, OSError):
            assert self.faults.get("calls") >= number, "it ended by itself: " + server.output()
            return False


class Writes:
    """w0, w1 ... one after the other; what was acknowledged has to be there."""

    def __init__(self, expected):
        self.expected = expected
        self.begin()

    def begin(self):
        self.acknowledged = []

    def write(self, c):
        number = len(self.acknowledged)
        c.ok("SET", "w%d" % number, str(number))
        self.acknowledged.append(number)

    def check(self, c):
        found = content(c)
        written = {key: found.pop(key) for key in list(found) if key[1].startswith(b"w")}
        assert found == self.expected
        known = len(self.acknowledged)
        assert known <= len(written) <= known + 1
        assert sorted(written) == sorted((0, b"w%d" % n) for n in range(len(written)))
        return len(written)

    def check_once(self, c):
        """The next start is on a directory without them."""
        result = self.check(c)
        self.begin()
        return result


def filled(server):
    server.start()
    with server.connect() as c:
        fill(c)
        return content(c)


def ended(server, field, before):
    info = server.info()
    return info["aof_rewrite_in_progress"] == "0" and int(info[field]) > before


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_rewrite(threads, faults, preamble):
    options = dict(ALWAYS, **{"aof-use-rdb-preamble": preamble})
    stage = Stage(threads, faults, options, filled)
    writes = Writes(stage.expected)

    def operate(server, c):
        writes.begin()
        writes.write(c)
        before = int(server.info()["aof_rewrites"])
        assert c.call("BGREWRITEAOF").startswith(b"Background")
        writes.write(c)
        eventually(lambda: ended(server, "aof_rewrites", before), "the rewrite ends", 30)
        through = server.info()["aof_last_bgrewrite_status"] == "ok"
        writes.write(c)
        return through

    assert stage.each_call(operate, writes.check) > 12


def test_switching_on(threads, faults):
    """Files of an earlier log are in the directory: they stay until the new one is whole, and are no
    part of it."""
    def earlier(server):
        server.start()
        with server.connect() as c:
            c.ok("SET", "old", "1")
            c.call("BGREWRITEAOF")
            eventually(lambda: ended(server, "aof_rewrites", 0), "the rewrite ends", 30)
            c.ok("SET", "older", "1")

    stage = Stage(threads, faults, dict(ALWAYS, appendonly="no"), earlier, again=ALWAYS)
    steps = []

    def operate(server, c):
        steps.clear()
        c.ok("SET", "new", "1")
        c.ok("CONFIG", "SET", "appendonly", "yes")
        eventually(lambda: ended(server, "aof_rewrites", 0), "the rewrite ends", 30)
        if server.info()["aof_last_bgrewrite_status"] != "ok":
            return False
        steps.append("on")
        c.ok("SET", "newer", "1")
        steps.append("written")
        return True

    def check(c):
        keys = sorted(c.call("KEYS", "*"))
        allowed = [[b"new", b"newer"], [b"new"], [b"old", b"older"]]
        assert keys in allowed[:3 - len(steps)]
        return keys

    assert stage.each_call(operate, check) > 12
    assert stage.results[0] == [b"old", b"older"] and stage.results[-1] == [b"new", b"newer"]


def test_first_opening(threads, faults):
    stage = Stage(threads, faults, ALWAYS, lambda server: {})
    writes = Writes(stage.expected)

    def operate(server, c):
        writes.write(c)
        return True

    assert stage.each_call(operate, writes.check_once, at_start=True) > 6


def test_opening_a_torn_log(threads, faults):
    def torn(server):
        expected = filled(server)
        with server.connect() as c:
            c.ok("SET", "last", "x" * 100)
        server.kill_all()
        path = server.file("appendonlydir/appendonly.aof.1.incr.aof")
        os.truncate(path, os.path.getsize(path) - 7)
        return expected

    stage = Stage(threads, faults, ALWAYS, torn)
    writes = Writes(stage.expected)

    def operate(server, c):
        writes.write(c)
        return True

    assert stage.each_call(operate, writes.check_once, at_start=True) > 2


def test_taking_over_a_single_file(threads, faults):
    def old(server):
        with open(server.file("appendonly.aof"), "wb") as file:
            file.write(encode("SELECT", "0") + encode("SET", "k", "v"))

    stage = Stage(threads, faults, ALWAYS, old)

    def check(c):
        assert c.call("GET", "k") == b"v"

    assert stage.each_call(lambda server, c: c.call("GET", "k") == b"v", check, at_start=True) > 6


def test_config_rewrite(threads, faults):
    stage = Stage(threads, faults, {"save": None}, lambda server: None)
    done = []

    def operate(server, c):
        done.clear()
        c.ok("CONFIG", "SET", "slowlog-max-len", "1000")
        c.ok("CONFIG", "REWRITE")
        done.append(True)
        return True

    def check(c):
        found = c.call("CONFIG", "GET", "slowlog-max-len")[1]
        assert found in ([b"1000"] if done else [b"128", b"1000"])
        return found

    assert stage.each_call(operate, check) > 4
    assert stage.results[0] == b"128" and stage.results[-1] == b"1000"


def test_acl_save(threads, faults):
    stage = Stage(threads, faults, {"save": None}, lambda server: None)
    done = []

    def operate(server, c):
        done.clear()
        c.ok("ACL", "SETUSER", "u", "on", ">secret", "~u:*", "+@read")
        c.ok("ACL", "SAVE")
        done.append(True)
        return True

    def check(c):
        users = c.call("ACL", "USERS")
        assert users in ([[b"default", b"u"]] if done else [[b"default"], [b"default", b"u"]])
        return len(users)

    assert stage.each_call(operate, check) > 4
    assert stage.results[0] == 1 and stage.results[-1] == 2
