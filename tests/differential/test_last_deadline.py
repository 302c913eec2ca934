"""The last millisecond that a number holds is a deadline like others, not "never": each way to set it,
each way to see it and keep it, beside the oracle."""

import pytest

LAST = "9223372036854775807"
ALMOST = "9223372036854775806"
LAST_SECOND = "9223372036854775"

WAYS = {
    "PEXPIREAT": ["SET k v", "PEXPIREAT k " + LAST],
    "PEXPIREAT, again": ["SET k v", "PEXPIREAT k " + ALMOST, "PEXPIREAT k " + LAST],
    "EXPIREAT": ["SET k v", "EXPIREAT k " + LAST_SECOND],
    "EXPIREAT, too late": ["SET k v", "EXPIREAT k 9223372036854776"],
    "NX": ["SET k v", "PEXPIREAT k %s NX" % LAST, "PEXPIREAT k %s NX" % ALMOST],
    "XX": ["SET k v", "PEXPIREAT k %s XX" % LAST, "PEXPIREAT k " + ALMOST, "PEXPIREAT k %s XX" % LAST],
    "GT": ["SET k v", "PEXPIREAT k %s GT" % LAST, "PEXPIREAT k " + ALMOST, "PEXPIREAT k %s GT" % LAST,
           "PEXPIREAT k %s GT" % LAST],
    "LT": ["SET k v", "PEXPIREAT k %s LT" % LAST, "PEXPIREAT k %s LT" % LAST, "PEXPIREAT k %s LT" % ALMOST],
    "SET PXAT": ["SET k v PXAT " + LAST],
    "SET EXAT": ["SET k v EXAT " + LAST_SECOND],
    "SET KEEPTTL": ["SET k v PXAT " + LAST, "SET k w KEEPTTL"],
    "SET EX, too long": ["SET k v EX " + LAST_SECOND],
    "GETEX PXAT": ["SET k v", "GETEX k PXAT " + LAST],
    "GETEX PERSIST": ["SET k v PXAT " + LAST, "GETEX k PERSIST"],
    "PERSIST": ["SET k v PXAT " + LAST, "PERSIST k", "PERSIST k"],
    "long value": ["SET k " + "v" * 5000, "PEXPIREAT k " + LAST, "APPEND k w"],
    "list": ["RPUSH k a b c", "PEXPIREAT k " + LAST, "LPOP k"],
    "RENAME": ["SET o v PXAT " + LAST, "RENAME o k"],
    "COPY": ["SET o v PXAT " + LAST, "COPY o k"],
    "MOVE": ["SET k v PXAT " + LAST, "MOVE k 1", "SELECT 1"],
    "script": [["EVAL", "return redis.call('SET', KEYS[1], 'v', 'PXAT', ARGV[1])", "1", "k", LAST]],
}


def words_of(line):
    return line.split() if isinstance(line, str) else line


def seen(client):
    """PTTL's own number passes with time."""
    return [client.call("EXISTS", "k"), client.call("PEXPIRETIME", "k"), client.call("PTTL", "k") > 10**18,
            client.call("TTL", "k") > 10**15]


@pytest.mark.any_threads
@pytest.mark.parametrize("name", sorted(WAYS))
def test_set_and_seen(server, oracle, name):
    with server.connect() as ours, oracle.connect() as theirs:
        for line in WAYS[name]:
            assert ours.call(*words_of(line)) == theirs.call(*words_of(line)), line
        assert seen(ours) == seen(theirs)
        payload = ours.call("DUMP", "k")
        for client in (ours, theirs) if payload else ():
            client.ok("RESTORE", "r", LAST, payload, "ABSTTL")
        assert ours.call("PEXPIRETIME", "r") == theirs.call("PEXPIRETIME", "r")


@pytest.mark.any_threads
def test_counted_among_those_that_expire(server):
    with server.connect() as client:
        client.ok("SET", "k", "v", "PXAT", LAST)
        assert b"db0:keys=1,expires=1," in client.call("INFO", "keyspace")


@pytest.mark.any_threads
def test_members(server):
    """Redis has no deadline of members that is so late: what was set is what is seen."""
    with server.connect() as client:
        client.call("ZADD", "k", "1", "a", "2", "b")
        assert client.call("PEXPIREMEMBERAT", "k", "a", LAST) == 1
        assert client.call("PTTL", "k", "a") > 10**18
        assert client.call("PTTL", "k", "b") == -1
        assert client.call("PERSIST", "k", "a") == 1
        assert client.call("PTTL", "k", "a") == -1
