"""redis.set_repl: a script's effects from there on go to the append-only file only, to replicas
only, or nowhere. Against a replica of each kind, ours and Debian's redis-server, and a restart from
the file."""

import pytest
import redis

from lib.replication import in_step, replication
from lib.bounds import eventually
from lib.seeds import generator
from lib.server import is_redis, server_path

pytestmark = [pytest.mark.skipif(is_redis(server_path()), reason="starts our server")]

OPTIONS = {"appendonly": "yes", "appendfsync": "no", "repl-diskless-sync-delay": "0",
           "aof-use-rdb-preamble": "yes"}
FILES = ("appendonlydir",)
AIMS = {"REPL_ALL": ("aof", "replica"), "REPL_AOF": ("aof",), "REPL_REPLICA": ("replica",),
        "REPL_SLAVE": ("replica",), "REPL_NONE": ()}
# ARGV: an aim ("" for none) and a value in turn, for each key.
STEPS = """for i = 1, #KEYS do
  if ARGV[2 * i - 1] ~= '' then redis.set_repl(redis[ARGV[2 * i - 1]]) end
  redis.call('SET', KEYS[i], ARGV[2 * i])
end
return #KEYS"""
LIBRARY = """#!lua name=steps
redis.register_function('steps', function(KEYS, ARGV) %s end)""" % STEPS


@pytest.fixture
def oracle(make_oracle):
    return make_oracle()


def client(server):
    return redis.Redis(port=server.port, decode_responses=True)


def dataset(server):
    with client(server) as c:
        return {k: c.get(k) for k in c.keys("*")}


class Model:
    """What each place is to hold."""

    def __init__(self):
        self.here, self.aof, self.replica = {}, {}, {}
        self.count = 0

    def write(self, key, aims=("aof", "replica")):
        self.count += 1
        value = str(self.count)
        self.here[key] = value
        for place in aims:
            getattr(self, place)[key] = value
        return value

    def script(self, chance):
        """Keys and arguments of one run of STEPS."""
        keys, args, aims = [], [], AIMS["REPL_ALL"]
        for _ in range(chance.randrange(1, 6)):
            aim = chance.choice(["", *AIMS])
            aims = AIMS[aim] if aim else aims
            key = "k%d" % chance.randrange(12)
            keys.append(key)
            args += [aim, self.write(key, aims)]
        return keys, args


def run_one(c, model, chance):
    keys, args = model.script(chance)
    if chance.random() < 0.5:
        return c.eval(STEPS, len(keys), *keys, *args)
    return c.fcall("steps", len(keys), *keys, *args)


def run_some(c, model, chance):
    """A script or a plain write, alone or several in a transaction."""
    if chance.random() < 0.3:
        with c.pipeline(transaction=True) as p:
            for _ in range(chance.randrange(1, 4)):
                if chance.random() < 0.3:
                    p.set("k0", model.write("k0"))
                run_one(p, model, chance)
            p.execute()
    elif chance.random() < 0.2:
        c.set("k0", model.write("k0"))
    else:
        run_one(c, model, chance)


def test_each_place_has_its_own(make_server, oracle):
    chance = generator("script targets")
    primary = make_server(OPTIONS, files=FILES)
    follower = make_server()
    model = Model()
    for replica in (follower, oracle):
        with client(replica) as r:
            r.replicaof("127.0.0.1", primary.port)
        eventually(lambda r=replica: replication(r).get("master_link_status") == "up", "link", 30)
    with client(primary) as c:
        c.function_load(LIBRARY)
        for _ in range(300):
            run_some(c, model, chance)
    assert dataset(primary) == model.here
    eventually(lambda: in_step(primary, follower, oracle), "replicas in step", 30)
    assert dataset(follower) == model.replica
    assert dataset(oracle) == model.replica
    primary.stop()
    primary.start()
    assert dataset(primary) == model.aof


def test_watch_and_events_are_told_always(make_server):
    server = make_server({"notify-keyspace-events": "KEA"})
    with client(server) as c, client(server) as other, client(server) as third:
        heard = third.pubsub(ignore_subscribe_messages=True)
        heard.psubscribe("__keyspace@0__:*")
        heard.get_message(timeout=5)
        with other.pipeline() as p:
            p.watch("k")
            c.eval("redis.set_repl(redis.REPL_NONE) return redis.call('SET', KEYS[1], 1)", 1, "k")
            p.multi()
            p.get("k")
            with pytest.raises(redis.WatchError):
                p.execute()
        found = []
        eventually(lambda: found.append(heard.get_message(timeout=0.1)) or any(found), "event")
        message = [m for m in found if m][0]
        assert (message["channel"], message["data"]) == ("__keyspace@0__:k", "set")


def test_the_next_script_is_told_whole(make_server):
    """What a script sets ends with it, also when it ends by an error."""
    server = make_server(OPTIONS, files=FILES)
    with client(server) as c:
        for end in ("return 1", "error('x')", "redis.call('nosuch')"):
            try:
                c.eval("redis.set_repl(redis.REPL_NONE) redis.call('INCR', KEYS[1]) " + end, 1, "a")
            except redis.ResponseError:
                pass
            c.eval("return redis.call('INCR', KEYS[1])", 1, "b")
            c.incr("c")
    server.stop()
    server.start()
    assert dataset(server) == {"b": "3", "c": "3"}
