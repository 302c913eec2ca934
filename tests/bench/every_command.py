"""Row 21: CPU time an operation of every command, one connection with a pipeline of 32, both servers with the same
content.  And row 22: a short connection (connect, HELLO, two CLIENT SETINFO, GET, close)."""

import socket
import time

from load import Window, pairs, series, wait_quiet
from machine import Meter
from report import Measure, ratio_measure
from rows_load import load_note
from rows_types import fill, text, with_scores

PIPELINE = 32
GOAL = 0.9
SHORT_GOAL = 0.95
SHORT_CONNECTIONS = 3000
CASE_WINDOW_S = 0.3
ABSENT = "absent"


class Case:
    """One measured command.  `count` bounds windows whose command makes something grow or shrink, and `before` (a
    list of commands, a word (number, text) of which stands for so many texts) puts things back ahead of each."""

    def __init__(self, command, name=None, keys=1000, count=None, before=(), data=16):
        self.words = command if isinstance(command, (list, tuple)) else command.split()
        self.name = name or " ".join(self.words)
        self.keys = keys
        self.count = count
        self.before = before
        self.data = data

    def arguments(self):
        count = ["-n", self.count] if self.count else []
        return ["-c", 1, "-P", PIPELINE, "-d", self.data, "-r", self.keys] + count + list(self.words)

    def put_back(self, _bench, server):
        with server.client() as client:
            for command in self.before:
                client.call(*command)


def grows(command, key, name=None, count=100000, data=16):
    return Case(command, name, count=count, before=[("DEL", key)], data=data)


def numbered(prefix, count):
    return ["%s%012d" % (prefix, number) for number in range(count)]


FIELDS = [word for number in range(50) for word in ("field:%d" % number, "value:%010d" % number)]
MSET_10 = [word for number in range(10) for word in ("key:%012d" % number, "value:%d" % number)]
KEYS_10 = numbered("key:", 10)

STRINGS = (
    Case("get key:__rand_int__"), Case("set key:__rand_int__ __data__"), Case("get " + ABSENT),
    Case("set key:__rand_int__ __data__ ex 1000", "set ... ex"), Case("setex t __rand_int__1 __data__", "setex"),
    Case("psetex t __rand_int__1 __data__", "psetex"), Case("setnx key:__rand_int__ __data__"),
    Case("getset key:__rand_int__ __data__"), Case("getdel " + ABSENT), Case("getex key:__rand_int__"),
    Case("append appended __data__", count=20000, before=[("DEL", "appended")]), Case("strlen key:__rand_int__"),
    Case("incr counter"), Case("decr counter"), Case("incrby counter 7"), Case("decrby counter 7"),
    Case("incrbyfloat float 0.5"), Case("getrange large 100 199"), Case("substr large 100 199"),
    Case("setrange large 100 __data__"), Case(["mget"] + KEYS_10, "mget of 10"), Case(["mset"] + MSET_10, "mset of 10"),
    Case(["msetnx"] + MSET_10, "msetnx of 10, there"), Case("lcs words1 words2", "lcs of 100 bytes"),
    Case("setbit bits __rand_int__ 1", "setbit"), Case("getbit bits __rand_int__", "getbit"),
    Case("bitcount bits", "bitcount of 10 kB"), Case("bitcount bits 100 199"), Case("bitpos zeros 1", "bitpos of 10 kB"),
    Case("bitpos bits 0 100 199"), Case("bitop and bitsto bits bits2", "bitop and of 10 kB"),
    Case("bitop not bitsto bits", "bitop not of 10 kB"), Case("bitfield bits get u8 16 set u8 64 7 incrby i16 128 1", "bitfield of 3"),
    Case("bitfield_ro bits get u8 16"),
    Case("pfadd hlldense __rand_int__", "pfadd, dense"), Case("pfcount hlldense", "pfcount, dense"),
    Case("pfcount hllsparse", "pfcount, sparse"), Case("pfcount hlldense hlldense2", "pfcount of 2, dense"),
    Case("pfmerge hllto hlldense hlldense2", "pfmerge of 2, dense"),
)
KEYS = (
    Case("del " + ABSENT), Case("unlink " + ABSENT), Case("exists key:__rand_int__"), Case("type key:__rand_int__"),
    Case("touch key:__rand_int__"), Case("expire key:__rand_int__ 1000"), Case("pexpire key:__rand_int__ 1000000"),
    Case("expireat key:__rand_int__ 4000000000"), Case("pexpireat key:__rand_int__ 4000000000000"),
    Case("ttl volatile"), Case("pttl volatile"), Case("expiretime volatile"), Case("pexpiretime volatile"),
    Case("persist key:__rand_int__"), Case("rename there there", "rename to itself"), Case("renamenx there counter"),
    Case("copy hash50 copied replace", "copy, hash of 50"), Case("dump key:__rand_int__"), Case("dump hash50"),
    Case("object encoding hash50"), Case("object refcount hash50"), Case("object idletime hash50"),
    Case("memory usage hash50"), Case("randomkey"), Case("scan 0 count 10"), Case("keys nothing:*", "keys, nothing found"),
    Case("dbsize"), Case("sort list100 alpha", "sort of 100, alpha"), Case("sort numbers100", "sort of 100"),
    Case("sort_ro numbers100 limit 0 10", "sort_ro of 100, limit 10"), Case("move " + ABSENT + " 1", "move, absent"),
)
LISTS = (
    grows("lpush l __data__", "l"), grows("rpush l __data__", "l"), Case("lpushx " + ABSENT + " x"), Case("rpushx " + ABSENT + " x"),
    Case("lpop popped", count=50000, before=[("DEL", "popped"), ("RPUSH", "popped", (50100, "element"))]),
    Case("rpop popped", count=50000, before=[("DEL", "popped"), ("RPUSH", "popped", (50100, "element"))]),
    Case("llen list1000"), Case("lindex list1000 500"), Case("lset list1000 500 __data__", data=14),
    Case("linsert ins before a __data__", count=1000, before=[("DEL", "ins"), ("RPUSH", "ins", "a")]),
    Case("lrem list100 1 nothing", "lrem of 100, nothing found"), Case("lrange list1000 0 99"), Case("lrange list100 0 9"),
    Case("ltrim list1000 0 -1", "ltrim, nothing to do"), Case("lpos list100 element:50"), Case("lmove ring ring left right"),
    Case("rpoplpush ring ring"), Case("blmove ring ring left right 1"),
    Case("lmpop 1 popped left", count=50000, before=[("DEL", "popped"), ("RPUSH", "popped", (50100, "element"))]),
    Case("blpop popped 1", count=50000, before=[("DEL", "popped"), ("RPUSH", "popped", (50100, "element"))]),
    Case("brpop popped 1", count=50000, before=[("DEL", "popped"), ("RPUSH", "popped", (50100, "element"))]),
)
HASHES = (
    Case("hset hash50 field:7 __data__", "hset, hash of 50", data=16), Case("hset hbig field:__rand_int__ __data__", "hset, hash of 10,000", 10000),
    Case("hmset hash50 field:7 __data__ field:8 __data__", "hmset, hash of 50"), Case("hsetnx hash50 field:7 x"),
    Case("hget hash50 field:7", "hget, hash of 50"), Case("hget hbig field:__rand_int__", "hget, hash of 10,000", 10000),
    Case("hmget hash50 field:1 field:2 field:3 field:4 field:5", "hmget of 5"), Case("hmget hbig field:000000000001 field:000000000002 field:000000000003", "hmget of 3, hash of 10,000"),
    Case("hexists hash50 field:7"), Case("hexists hbig field:__rand_int__", keys=10000), Case("hstrlen hash50 field:7"), Case("hlen hash50"), Case("hlen hbig"),
    Case("hdel hash50 nothing"), Case("hgetall hash50"), Case("hkeys hash50"), Case("hvals hash50"),
    Case("hincrby hnum n 3"), Case("hincrbyfloat hnum f 0.5"), Case("hrandfield hash50 3"), Case("hrandfield hbig 3"), Case("hscan hash50 0"), Case("hscan hbig 0 count 10"),
)
SETS = (
    Case("sadd sbig member:__rand_int__", "sadd, set of 10,000", 10000), Case("sadd sints __rand_int__", "sadd, 500 integers", 500),
    Case("srem sbig nothing"), Case("sismember sbig member:__rand_int__", "sismember, set of 10,000", 10000), Case("sismember sints __rand_int__", "sismember, 500 integers", 500),
    Case("smismember sbig member:000000000001 member:000000000002 nothing", "smismember of 3"), Case("scard sbig"), Case("scard sints"),
    Case("smembers s100"), Case("srandmember sbig"), Case("srandmember sbig 5"),
    Case("spop spopped", count=20000, before=[("DEL", "spopped"), ("SADD", "spopped", (20100, "m"))]),
    Case("smove sbig s100 nothing"), Case("sinter s100 sbig", "sinter of 100 and 10,000"), Case("sintercard 2 s100 sbig", "sintercard"),
    Case("sunion s100 s100b"), Case("sdiff s100 sbig"), Case("sinterstore sto s100 sbig"), Case("sunionstore sto s100 s100b"), Case("sdiffstore sto s100 s100b"),
    Case("sscan s100 0"), Case("sscan sbig 0 count 10"),
)
ZSETS = (
    Case("zadd z100 __rand_int__ m:__rand_int__", "zadd, set of 100", 100), Case("zadd zbig __rand_int__ m:__rand_int__", "zadd, set of 10,000", 10000),
    Case("zincrby z100 1 m:000000000007"), Case("zincrby zbig 1 m:__rand_int__", keys=10000), Case("zrem zbig nothing"), Case("zscore z100 m:000000000007"), Case("zscore zbig m:__rand_int__", keys=10000),
    Case("zmscore zbig m:000000000001 m:000000000002 nothing"), Case("zcard zbig"), Case("zcount zbig 100 200"), Case("zlexcount zsame [a [z"),
    Case("zrank z100 m:000000000050"), Case("zrank zbig m:__rand_int__", keys=10000), Case("zrevrank zbig m:__rand_int__", keys=10000),
    Case("zrange zbig 0 9"), Case("zrange zbig 0 99 withscores"), Case("zrange z100 0 9"), Case("zrevrange zbig 0 9"), Case("zrangebyscore zbig 100 120"), Case("zrevrangebyscore zbig 120 100"),
    Case("zrangebylex zsame [a [z limit 0 10"), Case("zrevrangebylex zsame [z [a limit 0 10"), Case("zrangestore zto zbig 0 9"),
    Case("zpopmin zpopped", count=20000, before=[("DEL", "zpopped"), ("ZADD", "zpopped", (20100, "scores"))]),
    Case("zpopmax zpopped", count=20000, before=[("DEL", "zpopped"), ("ZADD", "zpopped", (20100, "scores"))]),
    Case("bzpopmin zpopped 1", count=20000, before=[("DEL", "zpopped"), ("ZADD", "zpopped", (20100, "scores"))]),
    Case("zmpop 1 zpopped min", count=20000, before=[("DEL", "zpopped"), ("ZADD", "zpopped", (20100, "scores"))]),
    Case("zremrangebyscore zbig -2 -1"), Case("zremrangebyrank zbig 20000 30000"), Case("zremrangebylex zsame [zz [zzz"), Case("zrandmember zbig 3"), Case("zscan z100 0"), Case("zscan zbig 0 count 10"),
    Case("zunion 2 z100 z100b"), Case("zinter 2 z100 zbig"), Case("zdiff 2 z100 zbig"), Case("zunionstore zto 2 z100 z100b"), Case("zinterstore zto 2 z100 zbig"), Case("zdiffstore zto 2 z100 zbig"), Case("zintercard 2 z100 zbig"),
)
GEO = (
    Case("geoadd geo 13.361389 38.115556 place:__rand_int__", "geoadd"), Case("geopos geo g:1 g:2"), Case("geodist geo g:1 g:2"), Case("geohash geo g:1 g:2"),
    Case("geosearch geo fromlonlat 5 45 byradius 50 km asc count 10", "geosearch"), Case("geosearchstore geoto geo fromlonlat 5 45 byradius 50 km", "geosearchstore"),
    Case("georadius_ro geo 5 45 50 km", "georadius_ro"), Case("georadiusbymember_ro geo g:1 50 km", "georadiusbymember_ro"),
)
STREAMS = (
    grows("xadd xgrown * field __data__", "xgrown"), Case("xadd xtrimmed maxlen ~ 1000 * field __data__", "xadd maxlen ~ 1000"), Case("xlen stream"), Case("xrange stream - + count 10"), Case("xrevrange stream + - count 10"),
    Case("xread count 10 streams stream 0"), Case("xread count 10 streams stream $", "xread, nothing new"), Case("xdel stream 1-9"), Case("xtrim stream maxlen 100000"),
    Case("xreadgroup group g c count 10 streams stream 0", "xreadgroup, history"),
    Case("xreadgroup group g c count 1 streams fresh >", "xreadgroup, new", count=9000, before=[("XGROUP", "DESTROY", "fresh", "g"), ("XGROUP", "CREATE", "fresh", "g", "0")]),
    Case("xack stream g 9-9"), Case("xpending stream g"), Case("xpending stream g - + 10"), Case("xclaim stream g c 0 1-1"), Case("xautoclaim stream g c 0 0 count 10"), Case("xinfo stream stream"), Case("xinfo groups stream"), Case("xinfo consumers stream g"), Case("xsetid stream 20000-0"),
)
SERVER = (
    Case("ping"), Case("echo __data__"), Case("select 0"), Case("hello 2"), Case("client id"), Case("client getname"), Case("client setname bench"), Case("client setinfo lib-name bench"), Case("client info"), Case("client list"),
    Case("info"), Case("info stats"), Case("time"), Case("lastsave"), Case("role"), Case("config get maxmemory"), Case("command count"), Case("command info get"), Case("command getkeys get k", "command getkeys"), Case("acl whoami"), Case("acl getuser default"), Case("slowlog len"), Case("latency latest"), Case("object help"), Case("wait 0 0"), Case("publish channel __data__"), Case("pubsub numsub channel"), Case("spublish channel __data__"), Case("pubsub channels"), Case("watch key:000000000001"), Case("unwatch"), Case("readonly"), Case("auth default x", "auth default"),
)
SCRIPTS = (
    Case(["eval", "return 1", "0"], "eval, return 1"), Case(["eval", "return redis.call('get', KEYS[1])", "1", "key:__rand_int__"], "eval, a get"),
    Case(["eval", "local n = 0 for i = 1, 1000 do n = n + i end return n", "0"], "eval, a loop of 1,000"),
    Case(["eval", "return cjson.encode(cjson.decode(ARGV[1]))", "0", '{"a":[1,2,3,{"b":"text","c":null}],"d":1.5,"e":"a longer text"}'], "eval, cjson"),
    Case(["eval", "return cmsgpack.pack(cmsgpack.unpack(ARGV[1]))", "0", "\x01"], "eval, cmsgpack"), Case(["eval_ro", "return redis.call('get', KEYS[1])", "1", "key:__rand_int__"], "eval_ro, a get"), Case("evalsha 1b936e3fe509bcbc9cd0664897bbe8fd0cac101b 0", "evalsha, return 1"), Case("fcall get1 1 key:__rand_int__"), Case("script exists 1b936e3fe509bcbc9cd0664897bbe8fd0cac101b", "script exists"),
)
CASES = STRINGS + KEYS + LISTS + HASHES + SETS + ZSETS + GEO + STREAMS + SERVER + SCRIPTS
LIBRARY = "#!lua name=bench\nredis.register_function{function_name='get1', flags={'no-writes'}, " \
          "callback=function(keys) return redis.call('get', keys[1]) end}"
