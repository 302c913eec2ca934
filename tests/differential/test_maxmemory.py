"""What is refused at the memory limit, and in which words: command by command beside the oracle."""

import pytest

SCRIPT_SET = "return redis.call('set', KEYS[1], 'v')"
SCRIPT_PSET = "return redis.pcall('set', KEYS[1], 'v')"
SCRIPT_GET = "return redis.call('get', KEYS[1])"
SCRIPT_LATE = "redis.call('del', 'other') return redis.call('set', KEYS[1], 'v')"

# (connection, words); connection 1 sets the limit, 0 meets it
FULL, EMPTY = (1, "CONFIG", "SET", "maxmemory", "1"), (1, "CONFIG", "SET", "maxmemory", "0")

SEQUENCES = {
    "plain": [
        (0, "SET", "a", "1"), (0, "RPUSH", "l", "1"), FULL, (0, "SET", "a", "2"), (0, "GET", "a"),
        (0, "SET", "a"), (0, "APPEND", "a", "x"), (0, "EXPIRE", "a", "100"), (0, "PERSIST", "a"),
        (0, "RPOPLPUSH", "l", "m"), (0, "LPOP", "l"), (0, "BLPOP", "l", "0.01"),
        (0, "BLMOVE", "l", "m", "LEFT", "LEFT", "0.01"), (0, "OBJECT", "HELP", "x"),
        (0, "RENAME", "a", "b"), (0, "MSETNX", "a", "1"), (0, "PUBLISH", "c", "m"),
        (0, "GETSET", "a", "1"), (0, "GETDEL", "b"), (0, "RESTORE", "r", "0", "x"),
        (0, "PFCOUNT", "h"), (0, "PFADD", "h", "x"), (0, "SORT", "l"), (0, "SORT_RO", "l"),
        (0, "GEORADIUS", "g", "0", "0", "1", "m"), (0, "XADD", "x", "*", "a", "b"),
        (0, "DBSIZE"), EMPTY, (0, "SET", "a", "2"),
    ],
    "before the limit and at it": [
        (0, "MULTI"), (0, "SET", "a", "1"), (0, "PUBLISH", "x", "y"), FULL, (0, "EXEC"),
        (0, "GET", "a"), EMPTY, (0, "MULTI"), (0, "GET", "a"), FULL, (0, "EXEC"), EMPTY,
        (0, "MULTI"), (0, "DEL", "a"), FULL, (0, "EXEC"),
    ],
    "in a transaction": [
        FULL, (0, "MULTI"), (0, "GET", "a"), (0, "MULTI"), (0, "WATCH", "a"), (0, "UNWATCH"),
        (0, "PING"), (0, "EXEC"), (0, "MULTI"), (0, "DISCARD"), (0, "MULTI"), (0, "EXEC"),
        (0, "WATCH", "a"), (0, "UNWATCH"), (0, "MULTI"), (0, "NONE"), (0, "EXEC"), (0, "MULTI"),
        (0, "RESET"), (0, "MULTI"), (0, "SET", "a", "1"), (0, "DISCARD"), (0, "EXEC"),
    ],
    "scripts": [
        FULL, (0, "EVAL", SCRIPT_SET, "1", "k"), (0, "EVAL", SCRIPT_PSET, "1", "k"),
        (0, "EVAL", SCRIPT_GET, "1", "k"), (0, "EVAL", SCRIPT_LATE, "1", "k"),
        (0, "EVAL", "#!lua\n" + SCRIPT_GET, "1", "k"), (0, "EVAL_RO", SCRIPT_GET, "1", "k"),
        (0, "EVAL_RO", "#!lua\n" + SCRIPT_GET, "1", "k"),
        (0, "EVAL", "#!lua flags=no-writes\n" + SCRIPT_GET, "1", "k"),
        (0, "EVAL", "#!lua flags=no-writes\n" + SCRIPT_SET, "1", "k"),
        (0, "EVAL", "#!lua flags=allow-oom\n" + SCRIPT_SET, "1", "k"),
        EMPTY, (0, "MULTI"), (0, "EVAL", SCRIPT_SET, "1", "k"),
        (0, "EVAL", "#!lua\n" + SCRIPT_SET, "1", "k"), (0, "GET", "k"), (0, "EXEC"),
        (0, "MULTI"), (0, "EVAL", SCRIPT_SET, "1", "k"), FULL, (0, "EXEC"),
    ],
    "subscribed": [
        (0, "SUBSCRIBE", "c"), FULL, (0, "GET", "a"), (0, "PING"), EMPTY, (0, "UNSUBSCRIBE"),
        (0, "GET", "a"),
    ],
    "everything goes": [
        (0, "SET", "a", "1"), (0, "SET", "b", "1", "EX", "100"),
        (1, "CONFIG", "SET", "maxmemory-policy", "volatile-lru"), FULL, (0, "GET", "b"),
        (0, "SET", "c", "1"), (0, "DBSIZE"),
        (1, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru"), (0, "GET", "a"),
        (0, "SET", "c", "1"), (0, "DBSIZE"), EMPTY, (0, "SET", "c", "1"), (0, "DBSIZE"),
    ],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_as_the_oracle(client, connect, oracle, name):
    with oracle.connect() as first, oracle.connect() as second:
        ours, theirs = [client, connect()], [first, second]
        for number, *words in SEQUENCES[name]:
            assert ours[number].call_raw(*words) == theirs[number].call_raw(*words), words
