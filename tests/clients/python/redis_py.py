"""redis-py: locks, pipelines, transactions, pub/sub, scripts, streams; RESP2 and RESP3."""

import threading

import redis

from common import HOST, JOBS, PORT, run


def connect(**options):
    return redis.Redis(HOST, PORT, decode_responses=True, socket_timeout=60, **options)


def in_threads(count, work):
    """Runs work(0) to work(count - 1) at the same time; what one raises is raised here."""
    errors = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def distributed_lock():
    client = connect()
    client.set("counter", 0)

    def work(_):
        own = connect()
        for _ in range(50):
            with own.lock("the-lock", timeout=30, sleep=0.002):
                own.set("counter", int(own.get("counter")) + 1)

    in_threads(8, work)
    assert client.get("counter") == "400", client.get("counter")
    lock = client.lock("other", timeout=30)
    assert lock.acquire() and lock.owned() and not client.lock("other").acquire(blocking=False)
    assert lock.extend(10) and lock.reacquire()
    lock.release()
    assert not client.exists("other")


def pipelines(protocol=2):
    client = connect(protocol=protocol)
    client.flushdb()
    with client.pipeline(transaction=False) as pipe:
        for i in range(10000):
            pipe.set("p%d" % i, i).incr("p%d" % i)
        replies = pipe.execute()
    assert replies[1::2] == list(range(1, 10001)) and all(replies[0::2])
    with client.pipeline() as pipe:
        pipe.hset("h", mapping={"a": 1, "b": 2}).hgetall("h").zadd("z", {"m": 1.5}).zscore("z", "m")
        assert pipe.execute() == [2, {"a": "1", "b": "2"}, 1, 1.5]
    with client.pipeline(transaction=False) as pipe:
        pipe.set("s", "x").lpush("s", 1).get("s")
        replies = pipe.execute(raise_on_error=False)
    assert isinstance(replies[1], redis.ResponseError) and replies[2] == "x", replies


def pipelines_resp3():
    pipelines(3)


def optimistic_increments():
    client = connect()
    client.set("balance", 0)

    def add(pipe):
        value = int(pipe.get("balance"))
        pipe.multi()
        pipe.set("balance", value + 1)

    def work(_):
        own = connect()
        for _ in range(100):
            own.transaction(add, "balance")

    in_threads(4, work)
    assert client.get("balance") == "400", client.get("balance")


def chat(protocol=2):
    """Four members, each with a connection of its own, hear every line once and each speaker in order."""
    members, lines = 4, 250
    client = connect(protocol=protocol)
    listeners = []
    for _ in range(members):
        listener = connect(protocol=protocol).pubsub(ignore_subscribe_messages=True)
        listener.subscribe("room")
        listener.psubscribe("roo?")
        # The first message is that of the second subscription: both are made.
        seen = 0
        while seen < 2:
            seen += listener.parse_response(block=True) is not None
        listeners.append(listener)

    def speak(i):
        own = connect(protocol=protocol)
        for n in range(lines):
            assert own.publish("room", "%d %d" % (i, n)) == 2 * members

    in_threads(members, speak)
    for listener in listeners:
        heard = {"message": {}, "pmessage": {}}
        for _ in range(2 * members * lines):
            message = listener.get_message(timeout=30)
            speaker, n = message["data"].split()
            heard[message["type"]].setdefault(speaker, []).append(int(n))
        for kind in heard.values():
            assert len(kind) == members and all(h == list(range(lines)) for h in kind.values())
        listener.close()


def chat_resp3():
    chat(3)


LIMITER = """
local used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if used > tonumber(ARGV[1]) then return {0, redis.call('PTTL', KEYS[1])} end
return {1, used}
"""


def rate_limiter():
    client = connect()
    client.script_flush()
    limiter = client.register_script(LIMITER)
    allowed = []

    def work(_):
        own = connect()
        for _ in range(100):
            if limiter(["limit"], [250, 600000], own)[0]:
                allowed.append(1)

    in_threads(4, work)
    assert len(allowed) == 250, len(allowed)
    assert client.ttl("limit") > 500
    with client.pipeline() as pipe:
        limiter(["fresh"], [1, 600000], pipe)
        limiter(["fresh"], [1, 600000], pipe)
        first, second = pipe.execute()
    assert first == [1, 1] and second[0] == 0


def stream_queue():
    """A consumer group with retries: who claims what another has left."""
    client = connect()
    client.xgroup_create("jobs", "workers", mkstream=True)
    with client.pipeline(transaction=False) as pipe:
        for i in range(JOBS):
            pipe.xadd("jobs", {"n": i})
        pipe.execute()
    done = []

    def work(i):
        own = connect()
        while True:
            got = own.xreadgroup("workers", "w%d" % i, {"jobs": ">"}, count=10)
            if not got:
                break
            for entry, fields in got[0][1]:
                if int(fields["n"]) % 10 != 0:
                    done.append(int(fields["n"]))
                    own.xack("jobs", "workers", entry)

    in_threads(4, work)
    cursor = "0-0"
    while True:
        reply = client.xautoclaim("jobs", "workers", "last", min_idle_time=0, start_id=cursor, count=30)
        for entry, fields in reply[1]:
            done.append(int(fields["n"]))
            client.xack("jobs", "workers", entry)
        cursor = reply[0]
        if cursor == "0-0":
            break
    assert sorted(done) == list(range(JOBS)), len(done)
    assert client.xpending("jobs", "workers")["pending"] == 0


run([distributed_lock, pipelines, pipelines_resp3, optimistic_increments, chat, chat_resp3, rate_limiter,
     stream_queue])
