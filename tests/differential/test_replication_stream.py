"""The whole replication stream of a program, ours beside the oracle's: what each command tells, in
which form, order and unit.  lib/stream.py has the list of intended differences."""

import pytest

from integration.test_propagation import grammars
from lib.seeds import seeds
from lib.stream import PAUSE, Waits, run, same

pytestmark = pytest.mark.any_threads

OPTIONS = {"repl-diskless-sync": "no", "repl-ping-replica-period": "3600",
           "rdbcompression": "no"}
GROUPS = ["string", "generic", "hash", "list", "set", "geo", "bitmap", "hyperloglog", "mixed",
          "stream", "stream_group", "zset", "sort", "multi"]
LENGTH = 250

LIBRARY = "#!lua name=lib\nredis.register_function('f', function(k, a) " \
    "redis.call('set', k[1], a[1]) return redis.call('incr', 'n') end)"


def dump(key):
    return lambda client: client.call("DUMP", key)


def dying(*more):
    """A key that is expired when the next command comes."""
    return [["SET", "a", "1", "PX", "1"], *more, PAUSE]


def split(text):
    return [line.split() for line in text.strip().splitlines()]


PROGRAMS = {
    "set": split("""
        SET a 1 EX 100
        SET a 1 PX 100000 NX
        SET b 1 EXAT 99999999999
        SET b 2 KEEPTTL
        SET b 2 XX GET
        SET b 2 KEEPTTL GET
        SET new 2 GET NX
        SET b 2 GET PXAT 99999999999000
        SETEX b 100 x
        PSETEX b 100000 x
        GETSET b y
        GETEX b EX 1000
        GETEX b PERSIST
        GETEX b PERSIST
        GETEX b
        GETEX b PXAT 1000
        GETDEL a
        GETDEL a
        SETNX n 1
        SETNX n 1
        MSET a 1 b 2
        MSETNX a 1 c 2
        INCR a
        INCRBYFLOAT a 1.5
        HINCRBYFLOAT h f 3.0e3
        SET k v EXAT 1
        SETRANGE zz 5 a""") + [["APPEND", "a", ""], ["APPEND", "none", ""], ["SETRANGE", "a", "0", ""]],
    "keys": split("""
        MSET a 1 b 1 c 1
        DEL a zz b
        UNLINK c
        SET a 1
        COPY a b
        COPY a b
        COPY a b REPLACE
        COPY a a2 DB 3
        MOVE a 4
        MOVE a 4
        RENAME b c
        RENAME c c
        RENAMENX c d
        SELECT 4
        GET a
        SET a 2
        SWAPDB 0 4
        SWAPDB 1 1
        SET q 1
        DEL none
        CONFIG SET lazyfree-lazy-user-del yes lazyfree-lazy-user-flush yes
        DEL a q
        SET a 1
        GETDEL a
        FLUSHDB
        CONFIG SET lazyfree-lazy-user-del no lazyfree-lazy-user-flush no"""),
    "flush": split("""
        FLUSHDB
        FLUSHALL
        SET a 1
        FLUSHDB
        FLUSHDB ASYNC
        FLUSHDB SYNC
        SELECT 3
        FLUSHDB
        SET a 1
        FLUSHALL ASYNC
        FLUSHALL SYNC
        FLUSHALL
        MULTI
        FLUSHDB
        EXEC
        MULTI
        SET b 1
        FLUSHALL
        SET a 1
        EXEC""") + [["EVAL", "redis.call('flushall') return redis.call('flushdb')", "0"]],
    "expired": split("""
        SET a 1
        EXPIRE a 100
        PEXPIRE a 100000 NX
        PEXPIRE a 200000 GT
        EXPIREAT a 99999999999
        PERSIST a
        PERSIST a
        EXPIRE a -1
        SET a 1
        PEXPIREAT a 1""")
    + sum((dying() + [words] for words in split("""
        GET a
        DEL a
        UNLINK a
        SET a 2
        INCR a
        EXISTS a
        RENAME a c
        COPY a c
        TYPE a
        TTL a
        OBJECT ENCODING a
        GETDEL a
        EXPIRE a 10
        TOUCH a
        KEYS *
        DUMP a
        SETNX a 1
        SETRANGE a 0 x
        LPUSH a x
        SADD a x
        SUNIONSTORE d a t
        SORT a STORE d
        SINTER a a""")), [])
    + [*dying(["SET", "b", "1", "PX", "1"]), ["MGET", "a", "b"],
       *dying(["SET", "b", "1", "PX", "1"]), ["MSET", "a", "3", "b", "4"],
       *dying(), ["MULTI"], ["GET", "a"], ["SET", "b", "1"], ["EXEC"],
       *dying(), ["MULTI"], ["GET", "a"], ["EXEC"],
       *dying(), ["EVAL", "redis.call('get', 'a') return redis.call('set', 'b', 1)", "0"],
       ["CONFIG", "SET", "lazyfree-lazy-expire", "yes"],
       *dying(), ["GET", "a"],
       *dying(), ["SET", "a", "2"]],
    "sets": split("""
        SADD s a b c
        SADD s a
        SPOP s 0
        SPOP s 10
        SADD s a
        SPOP s
        SPOP s
        SADD s a b c d
        SPOP s
        DEL s
        SADD s a b c d
        SPOP s 2
        DEL s
        SADD s a b
        SREM s a x
        SREM s b
        SADD s 1 2
        SADD t 2 3
        SINTERSTORE d s t
        SINTERSTORE d s zz
        SINTERSTORE d s zz
        SDIFFSTORE d s t
        SUNIONSTORE d s t
        SMOVE s t 1
        SMOVE s t 9
        SORT s STORE dd
        SORT zz STORE dd
        SORT zz STORE dd"""),
    "lists": split("""
        RPUSH l 1 2 3
        LPUSHX zz 1
        LPOP l
        RPOP l 0
        RPOP l 9
        RPUSH l 1 2 3
        LMOVE l m LEFT RIGHT
        RPOPLPUSH l m
        LMOVE zz m LEFT LEFT
        LTRIM m 0 -1
        LTRIM m 5 9
        LREM l 0 zz
        LREM l 0 2
        RPUSH l a
        LSET l 0 b
        LINSERT l BEFORE zz x
        LINSERT l BEFORE b x
        LMPOP 2 zz l LEFT COUNT 1
        LMPOP 1 zz LEFT
        RPUSH l 1 2 3
        LMPOP 1 l RIGHT COUNT 2
        BLPOP l 0
        RPUSH l 1 2
        BRPOP zz l 0
        BLMOVE l m LEFT RIGHT 0
        RPUSH l 1 2
        BRPOPLPUSH l m 0
        BLMPOP 0 2 zz l LEFT
        BLPOP zz 0.01"""),
    "zsets": split("""
        ZADD z 1 a
        ZADD z 1 a
        ZADD z XX 2 b
        ZADD z INCR 1 a
        ZADD z GT CH 9 a
        ZINCRBY z 0 a
        ZINCRBY z 1.5 a
        ZREM z zz
        ZADD z 1 b 2 c
        ZPOPMIN z
        ZPOPMAX z 0
        ZPOPMAX z 9
        ZADD z 1 b 2 c
        ZRANGESTORE d z 0 -1
        ZRANGESTORE d zz 0 -1
        ZRANGESTORE d zz 0 -1
        ZUNIONSTORE d 2 z zz
        ZDIFFSTORE d 1 zz
        ZREMRANGEBYRANK z 0 0
        ZREMRANGEBYSCORE z 90 99
        ZMPOP 2 zz z MIN COUNT 3
        ZADD z 1 a 2 b 3 c
        ZMPOP 1 z MAX
        BZPOPMAX zz z 0
        BZMPOP 0 1 z MIN
        ZADD z 1 a
        BZPOPMIN z 0
        GEOADD g 1 1 a
        GEOADD g 1 1 a
        GEOADD g NX 2 2 b 1 1 a
        GEOADD g XX CH 2 3 b
        GEOSEARCHSTORE d g FROMLONLAT 1 1 BYRADIUS 1000 km
        GEOSEARCHSTORE d g FROMLONLAT 50 50 BYRADIUS 1 m
        GEORADIUS g 1 1 1000 km STORE e
        GEORADIUSBYMEMBER g a 1 m STOREDIST e"""),
    "served": [
        Waits("BLPOP", "l", "x", "0"), ["RPUSH", "l", "1", "2"],
        Waits("BLMOVE", "l2", "m", "LEFT", "RIGHT", "0"), ["RPUSH", "l2", "1"],
        Waits("BRPOPLPUSH", "l3", "m", "0"), ["RPUSH", "l3", "1", "2"],
        Waits("BLMPOP", "0", "2", "zz", "l4", "RIGHT", "COUNT", "2"), ["RPUSH", "l4", "1", "2", "3"],
        Waits("BZPOPMIN", "z", "0"), ["ZADD", "z", "1", "a", "2", "b"],
        Waits("BZMPOP", "0", "2", "zz", "z2", "MAX", "COUNT", "5"), ["ZADD", "z2", "1", "a", "2", "b"],
        Waits("BLPOP", "t", "0"), ["MULTI"], ["RPUSH", "t", "1", "2"], ["SET", "x", "1"], ["EXEC"],
        Waits("BLPOP", "t2", "0"),
        ["EVAL", "redis.call('rpush', 't2', 'a') return redis.call('set', 'y', 1)", "0"],
        Waits("BLPOP", "t3", "0"), Waits("BLMOVE", "t4", "t3", "LEFT", "LEFT", "0"),
        ["RPUSH", "t4", "9"],
        Waits("BLPOP", "r", "0"), ["RPUSH", "rr", "1"], ["RENAME", "rr", "r"],
        ["XGROUP", "CREATE", "st", "g", "$", "MKSTREAM"],
        Waits("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "st", ">"),
        ["XADD", "st", "1-1", "f", "v"],
        Waits("BLPOP", "ex", "0"), ["SELECT", "2"], ["RPUSH", "ex", "1"], ["RPUSH", "e2", "3"],
        ["MOVE", "e2", "0"], ["SELECT", "0"], ["RPUSH", "ex", "1"]],
    "messages": split("""
        PUBLISH c m
        SPUBLISH c m
        publish c m
        SELECT 3
        PUBLISH c m
        MULTI
        PUBLISH c m
        EXEC
        MULTI
        PUBLISH c m
        SET a 1
        SPUBLISH c n
        EXEC
        MULTI
        PUBLISH c m
        DISCARD""") + [["EVAL", script, "0"] for script in (
            "redis.call('publish', 'c', 'm') return redis.call('set', 'a', 1)",
            "return redis.call('publish', 'c', 'm')",
            "redis.set_repl(redis.REPL_AOF) return redis.call('publish', 'c', 'm')",
            "redis.set_repl(redis.REPL_REPLICA) return redis.call('spublish', 'c', 'm')",
            "redis.set_repl(redis.REPL_NONE) redis.call('set', 'b', 1) "
            "redis.set_repl(redis.REPL_ALL) return redis.call('spublish', 'c', 'm')")],
    "scripts": [["EVAL", script, "0"] for script in (
        "return 1", "return redis.call('set', 'a', 1)",
        "redis.call('set', 'a', 1) return redis.call('incr', 'a')",
        "redis.set_repl(redis.REPL_NONE) redis.call('set', 'a', 1) "
        "redis.set_repl(redis.REPL_ALL) return redis.call('set', 'b', 1)",
        "redis.call('set', 'a', 1) return redis.call('nope')",
        "redis.call('set', 'a', 1) redis.call('lpush', 'a', 1)",
        "redis.call('select', 5) redis.call('set', 'a', 1) return 1",
        "redis.call('set', 'a', 1, 'EX', 100) redis.call('spop', 'none') "
        "return redis.call('expire', 'a', 50)",
        "redis.replicate_commands() redis.call('set', 'a', 1) return 1")] + [
        ["SET", "x", "1"],
        ["SCRIPT", "LOAD", "return 1"],
        ["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"],
        ["SCRIPT", "FLUSH"],
        ["FUNCTION", "LOAD", LIBRARY], ["FUNCTION", "LOAD", LIBRARY],
        ["FUNCTION", "LOAD", "REPLACE", LIBRARY], ["FCALL", "f", "1", "k", "v"],
        ["FUNCTION", "RESTORE", lambda client: client.call("FUNCTION", "DUMP"), "REPLACE"],
        ["FUNCTION", "DELETE", "lib"], ["FUNCTION", "DELETE", "lib"],
        ["FUNCTION", "FLUSH"], ["FUNCTION", "RESTORE", "x"],
        ["EVAL_RO", "return redis.call('get', 'a')", "0"],
        ["MULTI"], ["EVAL", "redis.call('set', 'a', 1) redis.call('set', 'b', 1)", "0"],
        ["SET", "c", "1"], ["EXEC"]],
    "units": split("""
        MULTI
        EXEC
        MULTI
        GET a
        EXEC
        MULTI
        SET a 1
        GET a
        DEL zz
        EXEC
        MULTI
        SET a 1
        INCR a
        EXEC
        MULTI
        SELECT 5
        SET a 1
        SELECT 6
        SET b 1
        EXEC
        SET c 1
        MULTI
        SET a x
        INCR a
        EXEC
        MULTI
        SELECT 0
        SET z 1
        EXEC
        MULTI
        SET a 1
        DISCARD"""),
    "restored": [
        ["SET", "a", "x"], ["RESTORE", "b", "0", dump("a")], ["RESTORE", "b", "0", dump("a"), "REPLACE"],
        ["RESTORE", "c", "100000", dump("a")], ["RESTORE", "c", "0", dump("a")],
        ["RESTORE", "d", "99999999999000", dump("a"), "ABSTTL"],
        ["RESTORE", "e", "1", dump("a"), "ABSTTL"],
        ["RESTORE", "b", "1", dump("a"), "ABSTTL", "REPLACE"],
        ["RESTORE", "f", "100000", dump("a"), "IDLETIME", "5"],
        ["RESTORE", "f", "0", dump("a"), "REPLACE", "FREQ", "5"],
        ["RESTORE", "f", "100000", dump("a"), "REPLACE", "FREQ", "5"]],
    "streams": split("""
        XADD s * a 1
        XADD t 1-1 a 1
        XADD t 1-* a 1
        XADD t MAXLEN 2 3-1 a 1
        XADD t MAXLEN ~ 2 4-1 a 1
        XADD t MINID 4 5-1 a 1
        XADD zz NOMKSTREAM * a 1
        XDEL t 5-1
        XDEL t 5-1
        XTRIM t MAXLEN 1
        XTRIM t MAXLEN 1
        XSETID t 9-9
        XGROUP CREATE t g 0
        XGROUP CREATE n g $ MKSTREAM
        XGROUP CREATECONSUMER t g c
        XGROUP CREATECONSUMER t g c
        XREADGROUP GROUP g c STREAMS t >
        XREADGROUP GROUP g newc STREAMS t >
        XADD t 11-1 a 1
        XADD t 11-2 a 1
        XREADGROUP GROUP g c STREAMS t >
        XACK t g 11-1
        XACK t g 11-1
        XCLAIM t g d 0 11-2
        XCLAIM t g d 0 11-2 JUSTID
        XCLAIM t g e 99999999 11-2
        XAUTOCLAIM t g f 0 0
        XGROUP SETID t g 0
        XGROUP DELCONSUMER t g d
        XGROUP DESTROY t g
        XGROUP DESTROY t g"""),
    "nothing": split("""
        CONFIG SET hz 10
        CLIENT SETNAME x
        SAVE
        ACL SETUSER bob on
        LATENCY RESET
        SCRIPT EXISTS a
        SLOWLOG RESET
        PFADD p a
        PFADD p a
        PFADD q
        PFMERGE r p q
        PFCOUNT p q
        BITFIELD b SET u8 0 5
        BITFIELD b GET u8 0
        SETBIT b 1 1
        BITOP NOT c b
        BITOP AND c zz
        BITOP AND c zz
        OBJECT ENCODING a
        RESET
        SET a 1"""),
}


def check(make_server, make_oracle, program):
    ours = run(make_server(OPTIONS, files=["dump.rdb"]), program)
    theirs = run(make_oracle(OPTIONS), program)
    assert len(ours) == len(theirs)
    for at, (a, b) in enumerate(zip(ours, theirs)):
        before = "".join("\n  %r" % step for step in ours[max(0, at - 8):at])
        assert same(a, b), "step %d%s\nours:   %r\noracle: %r" % (at, before, a, b)
    return ours


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_form(make_server, make_oracle, name):
    check(make_server, make_oracle, PROGRAMS[name])


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("seed", seeds(1))
def test_random_programs(make_server, make_oracle, group, seed):
    prelude, grammar = grammars(seed, group)
    ours = check(make_server, make_oracle, prelude + grammar.program(LENGTH))
    assert any(step.told for step in ours)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_many_seeds(make_server, make_oracle, group):
    for seed in seeds(10, base=100):
        prelude, grammar = grammars(seed, group)
        check(make_server, make_oracle, prelude + grammar.program(LENGTH))
