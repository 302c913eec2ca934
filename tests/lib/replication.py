"""What tests of replication share: a mixed load over every type from several clients at once, and
the comparison of two servers' whole content by commands that both know."""

import threading

from integration.test_dump import content
from lib import grammar
from lib.bounds import eventually
from lib.grammar_stream import STREAMS, StreamGrammar
from lib.grammar_zset import ZSETS, ZsetGrammar
from lib.resp import Closed, Error
from lib.server import is_redis

DATABASES = 16
# No command that stops the client, makes it another one, or touches the configuration.
LEFT_OUT = {b"SUBSCRIBE", b"SHUTDOWN", b"QUIT", b"RESET", b"DEBUG", b"CONFIG", b"HELLO", b"SWAPDB"}
GENERAL = grammar.STRINGS + grammar.GENERIC + grammar.HASHES + grammar.LISTS + grammar.SETS + \
    grammar.GEO + grammar.BITMAPS + grammar.HYPERLOGLOGS


# What they do hangs on chance, time, or what was there: effects are told, not the script.
SCRIPTS = [
    "redis.pcall('INCRBY', KEYS[1], ARGV[1]) redis.pcall('RPUSH', KEYS[2], ARGV[1], ARGV[2]) "
    "return redis.pcall('SPOP', KEYS[3])",
    "redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) redis.pcall('SADD', KEYS[2], ARGV[1]) "
    "redis.pcall('HINCRBYFLOAT', KEYS[3], 'f', '0.5') return redis.pcall('PTTL', KEYS[1])",
    "local t = redis.call('TIME') redis.pcall('ZADD', KEYS[1], t[2], ARGV[1]) "
    "redis.pcall('XADD', KEYS[2], '*', 'at', t[1]) return redis.pcall('PEXPIRE', KEYS[3], ARGV[2])",
]


def program(random, length, by_redis=False):
    """Commands over every type, some of them in transactions or scripts, some with short expiries."""
    kinds = [grammar.Grammar(random, grammar.templates(GENERAL), True),
             ZsetGrammar(random, grammar.templates(ZSETS)),
             StreamGrammar(random, grammar.templates(STREAMS))]
    commands = []
    while len(commands) < length:
        chance = random.random()
        if chance < 0.02:
            commands.append(["SELECT", random.randrange(3)])
        elif chance < 0.06:
            commands.append([random.choice(["PEXPIRE", "PEXPIRE", "SADD"]), "k%d" % random.randrange(6),
                             random.randrange(1, 400)])
        elif chance < 0.10:
            inner = [random.choice(kinds[:2]).command() for _ in range(random.randrange(1, 5))]
            commands += [["MULTI"]] + [c for c in inner if usable(c, by_redis)] + [["EXEC"]]
        elif chance < 0.13:
            keys = ["k%d" % random.randrange(6) for _ in range(3)]
            commands.append(["EVAL", random.choice(SCRIPTS), len(keys)] + keys +
                            [random.randrange(100), random.randrange(1, 500)])
        else:
            command = random.choice(kinds).command()
            if usable(command, by_redis):
                commands.append(command)
    return commands


def usable(command, by_redis=False):
    """Nothing that waits, and nothing that would leave the two worlds of a test. As a primary Redis
    7.0.15 does not tell of a string that BITFIELD has made longer and then, for an overflow, not
    written: ours does."""
    words = [w.upper() for w in command if isinstance(w, bytes)]
    if by_redis and words[0] == b"BITFIELD" and b"FAIL" in words:
        return False
    return words[0] not in LEFT_OUT and b"BLOCK" not in words and not words[0].startswith(b"B") \
        or words[0].startswith(b"BIT")


class Load:
    """Clients that write to a server, each from a thread of its own, until stopped."""

    def __init__(self, server, randoms):
        self.server = server
        self.stopped = threading.Event()
        self.errors = []
        self.threads = [threading.Thread(target=self._run, args=(r,)) for r in randoms]
        self.commands = 0

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopped.set()
        for t in self.threads:
            t.join()
        assert not self.errors, self.errors

    def _run(self, random):
        try:
            with self.server.connect() as c:
                c.call("SADD", "wrong", "x")
                while not self.stopped.is_set():
                    commands = program(random, 50, is_redis(self.server.path))
                    for command in commands:
                        c.send(*command)
                    for _ in commands:
                        c.read()
                    self.commands += len(commands)
        except Exception as trouble:  # whatever it is, the test must show it
            self.errors.append(repr(trouble))


def everything(server):
    """The whole content, by database and key."""
    found = {}
    with server.connect() as c:
        for db in range(DATABASES):
            c.ok("SELECT", db)
            for key in c.call("KEYS", "*"):
                try:
                    found[db, key] = content(c, key), c.call("PEXPIRETIME", key)
                except (AssertionError, KeyError, TypeError, ValueError):
                    pass  # it has expired between two questions
    return found


def replication(server):
    return server.info("replication")


def log_is_whole(server):
    """No rewrite of it runs, nor is about to."""
    about = server.info("persistence")
    return about["aof_rewrite_in_progress"] == about["aof_rewrite_scheduled"] == "0"


def in_step(primary, *replicas):
    """Whether the replicas have all that the primary has said so far, and their links are up."""
    wanted = int(replication(primary)["master_repl_offset"])
    for replica in replicas:
        about = replication(replica)
        if about["role"] != "slave" or about["master_link_status"] != "up" or \
                int(about["master_repl_offset"]) < wanted:
            return False
    return True


def check_equal(primary, *replicas, bound_s=30.0):
    """Waits until all have the same content."""
    eventually(lambda: in_step(primary, *replicas), "replicas in step", bound_s)
    state = {}

    def equal():
        state["primary"] = everything(primary)
        state["replicas"] = [everything(r) for r in replicas]
        return all(r == state["primary"] for r in state["replicas"])
    try:
        eventually(equal, "equal content", bound_s, 0.2)
    except Exception:
        for r in state["replicas"]:
            for place in sorted(set(r) | set(state["primary"])):
                mine, theirs = r.get(place), state["primary"].get(place)
                assert mine == theirs, "%r: replica %.900r, primary %.900r" % (place, mine, theirs)
        raise


__all__ = ["Load", "check_equal", "everything", "in_step", "program", "replication", "Closed", "Error"]
