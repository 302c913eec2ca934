"""The commands that the server must have, by group, with one call each that its key positions can
be read from."""

STRING = {
    "APPEND": "k v", "DECR": "k", "DECRBY": "k 1", "GET": "k", "GETDEL": "k", "GETEX": "k EX 10",
    "GETRANGE": "k 0 1", "GETSET": "k v", "INCR": "k", "INCRBY": "k 1", "INCRBYFLOAT": "k 1.5",
    "LCS": "k1 k2 LEN", "MGET": "k1 k2 k3", "MSET": "k1 v1 k2 v2", "MSETNX": "k1 v1 k2 v2",
    "PSETEX": "k 100000 v", "SET": "k v EX 10", "SETEX": "k 10 v", "SETNX": "k v",
    "SETRANGE": "k 0 v", "STRLEN": "k", "SUBSTR": "k 0 1",
}

BITMAP = {
    "BITCOUNT": "k 0 1 BIT", "BITFIELD": "k SET u8 0 1 GET u8 0", "BITFIELD_RO": "k GET u8 0",
    "BITOP": "AND k1 k2 k3", "BITPOS": "k 1 0 1 BIT", "GETBIT": "k 0", "SETBIT": "k 0 1",
}

HYPERLOGLOG = {
    "PFADD": "k a b", "PFCOUNT": "k1 k2", "PFDEBUG": "ENCODING k", "PFMERGE": "k1 k2 k3",
    "PFSELFTEST": "",
}

GEO = {
    "GEOADD": "k 1 2 m", "GEODIST": "k a b", "GEOHASH": "k a", "GEOPOS": "k a",
    "GEORADIUS": "k 1 2 3 km STORE d", "GEORADIUSBYMEMBER": "k m 3 km STOREDIST d",
    "GEORADIUSBYMEMBER_RO": "k m 3 km", "GEORADIUS_RO": "k 1 2 3 km",
    "GEOSEARCH": "k FROMLONLAT 1 2 BYRADIUS 3 km",
    "GEOSEARCHSTORE": "d k FROMMEMBER m BYBOX 3 4 km",
}

GENERIC = {
    "COPY": "k1 k2 DB 1", "DEL": "k1 k2", "EXISTS": "k1 k2", "EXPIRE": "k 10", "EXPIREAT": "k 10",
    "EXPIRETIME": "k", "KEYS": "*", "MOVE": "k 1", "OBJECT|ENCODING": "k", "OBJECT|FREQ": "k",
    "OBJECT|HELP": "", "OBJECT|IDLETIME": "k", "OBJECT|REFCOUNT": "k", "OBJECT": "HELP",
    "PERSIST": "k", "PEXPIRE": "k 100000", "PEXPIREAT": "k 10", "PEXPIRETIME": "k", "PTTL": "k",
    "RANDOMKEY": "", "RENAME": "k1 k2", "RENAMENX": "k1 k2", "SCAN": "0",
    "SORT": "k BY w_* STORE d", "SORT_RO": "k BY w_*", "TOUCH": "k1 k2", "TTL": "k", "TYPE": "k", "UNLINK": "k1 k2",
}

LIST = {
    "LINDEX": "k 0", "LINSERT": "k BEFORE p v", "LLEN": "k", "LMOVE": "k1 k2 LEFT RIGHT",
    "LMPOP": "2 k1 k2 LEFT", "LPOP": "k 2", "LPOS": "k v RANK 1", "LPUSH": "k v1 v2",
    "LPUSHX": "k v1 v2", "LRANGE": "k 0 -1", "LREM": "k 0 v", "LSET": "k 0 v", "LTRIM": "k 0 1",
    "RPOP": "k 2", "RPOPLPUSH": "k1 k2", "RPUSH": "k v1 v2", "RPUSHX": "k v1 v2",
}

CONNECTION = {
    "AUTH": "p", "CLIENT": "ID", "CLIENT|GETNAME": "", "CLIENT|HELP": "", "CLIENT|ID": "",
    "CLIENT|INFO": "", "CLIENT|KILL": "ID 1", "CLIENT|LIST": "", "CLIENT|NO-EVICT": "ON",
    "CLIENT|PAUSE": "1", "CLIENT|REPLY": "ON", "CLIENT|SETNAME": "n", "CLIENT|UNBLOCK": "1",
    "CLIENT|UNPAUSE": "", "ECHO": "m", "HELLO": "3", "PING": "", "RESET": "", "SELECT": "1",
}

SERVER = {
    "COMMAND": "", "COMMAND|COUNT": "", "COMMAND|DOCS": "", "COMMAND|GETKEYS": "GET k",
    "COMMAND|GETKEYSANDFLAGS": "GET k", "COMMAND|HELP": "", "COMMAND|INFO": "",
    "COMMAND|LIST": "", "CONFIG": "HELP", "CONFIG|GET": "x", "CONFIG|HELP": "",
    "CONFIG|RESETSTAT": "", "CONFIG|REWRITE": "", "CONFIG|SET": "x 1", "DBSIZE": "",
    "DEBUG": "SLEEP 0", "FLUSHALL": "", "FLUSHDB": "", "INFO": "", "LATENCY": "LATEST",
    "LATENCY|DOCTOR": "", "LATENCY|GRAPH": "e", "LATENCY|HELP": "", "LATENCY|HISTOGRAM": "",
    "LATENCY|HISTORY": "e", "LATENCY|LATEST": "", "LATENCY|RESET": "", "LOLWUT": "",
    "MEMORY": "DOCTOR", "MEMORY|DOCTOR": "", "MEMORY|HELP": "", "MEMORY|MALLOC-STATS": "",
    "MEMORY|PURGE": "", "MEMORY|STATS": "", "MEMORY|USAGE": "k SAMPLES 1", "MONITOR": "",
    "SHUTDOWN": "", "SLOWLOG": "LEN", "SLOWLOG|GET": "", "SLOWLOG|HELP": "", "SLOWLOG|LEN": "",
    "SLOWLOG|RESET": "", "SWAPDB": "0 1", "TIME": "",
}

HASH = {
    "HDEL": "k f", "HEXISTS": "k f", "HGET": "k f", "HGETALL": "k", "HINCRBY": "k f 1",
    "HINCRBYFLOAT": "k f 1.5", "HKEYS": "k", "HLEN": "k", "HMGET": "k f", "HMSET": "k f v",
    "HRANDFIELD": "k", "HSCAN": "k 0", "HSET": "k f v", "HSETNX": "k f v", "HSTRLEN": "k f",
    "HVALS": "k",
}

SORTED_SET = {
    "ZADD": "k 1 m", "ZCARD": "k", "ZCOUNT": "k 0 1", "ZDIFF": "2 k1 k2", "ZDIFFSTORE": "d 2 k1 k2",
    "ZINCRBY": "k 1 m", "ZINTER": "2 k1 k2", "ZINTERCARD": "2 k1 k2", "ZINTERSTORE": "d 2 k1 k2",
    "ZLEXCOUNT": "k - +", "ZMPOP": "2 k1 k2 MIN", "ZMSCORE": "k m", "ZPOPMAX": "k",
    "ZPOPMIN": "k", "ZRANDMEMBER": "k", "ZRANGE": "k 0 -1", "ZRANGEBYLEX": "k - +",
    "ZRANGEBYSCORE": "k 0 1", "ZRANGESTORE": "d k 0 -1", "ZRANK": "k m", "ZREM": "k m",
    "ZREMRANGEBYLEX": "k - +", "ZREMRANGEBYRANK": "k 0 1", "ZREMRANGEBYSCORE": "k 0 1",
    "ZREVRANGE": "k 0 -1", "ZREVRANGEBYLEX": "k + -", "ZREVRANGEBYSCORE": "k 1 0",
    "ZREVRANK": "k m", "ZSCAN": "k 0", "ZSCORE": "k m", "ZUNION": "2 k1 k2",
    "ZUNIONSTORE": "d 2 k1 k2",
}

STREAM = {
    "XADD": "k * f v", "XDEL": "k 1-1", "XINFO": "HELP", "XINFO|HELP": "", "XLEN": "k",
    "XRANGE": "k - +", "XREAD": "COUNT 1 STREAMS k1 k2 0 0", "XREVRANGE": "k + -",
    "XSETID": "k 1-1", "XTRIM": "k MAXLEN 1",
}

STREAM_GROUP = {
    "XACK": "k g 1-1", "XAUTOCLAIM": "k g c 0 0", "XCLAIM": "k g c 0 1-1", "XGROUP": "HELP",
    "XGROUP|CREATE": "k g 0", "XGROUP|CREATECONSUMER": "k g c", "XGROUP|DELCONSUMER": "k g c",
    "XGROUP|DESTROY": "k g", "XGROUP|HELP": "", "XGROUP|SETID": "k g 0",
    "XINFO|CONSUMERS": "k g", "XINFO|GROUPS": "k", "XINFO|STREAM": "k FULL COUNT 1",
    "XPENDING": "k g - + 1", "XREADGROUP": "GROUP g c COUNT 1 STREAMS k1 k2 > >",
}

# Since 7.2, so without a counterpart in the oracle: arity, and flags that matter.
SINCE_7_2 = {"CLIENT|NO-TOUCH": 3, "CLIENT|SETINFO": 4, "QUIT": -1}

ALL = {**STRING, **BITMAP, **HYPERLOGLOG, **HASH, **LIST, **SORTED_SET, **GEO, **STREAM,
       **STREAM_GROUP, **GENERIC, **CONNECTION, **SERVER}


def call_of(name):
    """The words of the sample call."""
    return name.split("|") + ALL[name].split()
