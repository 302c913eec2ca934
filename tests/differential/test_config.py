"""Configuration: the oracle's names, defaults, and error texts."""

import pytest

from lib.resp import Error

# Options of issue 2 and what goes with them; each must be known, with the oracle's default unless
# a reason stands here.
NAMES = """
active-expire-effort activerehashing dynamic-hz io-threads-do-reads always-show-logo
client-output-buffer-limit client-query-buffer-limit databases enable-debug-command
hz latency-monitor-threshold latency-tracking latency-tracking-info-percentiles
activedefrag maxmemory maxmemory-policy maxmemory-samples maxmemory-eviction-tenacity
lfu-log-factor lfu-decay-time
lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del lazyfree-lazy-user-del lazyfree-lazy-user-flush
logfile loglevel maxclients notify-keyspace-events port
proto-max-bulk-len protected-mode requirepass slowlog-log-slower-than slowlog-max-len
tracking-table-max-keys supervised tcp-backlog tcp-keepalive timeout unixsocketperm daemonize pidfile
""".split()

OTHER_DEFAULT = {
    "pidfile": "names another file",
    "port": "each server has its own",
}

BAD_VALUES = [
    ("timeout", "-1"), ("timeout", "x"), ("timeout", ""), ("timeout", "99999999999"),
    ("tcp-keepalive", "-1"), ("maxclients", "0"), ("maxclients", "x"),
    ("hz", "x"), ("hz", "-1"), ("hz", "2147483648"),
    ("protected-mode", "maybe"),
    ("slowlog-max-len", "-1"), ("slowlog-log-slower-than", "x"),
    ("latency-monitor-threshold", "-1"), ("proto-max-bulk-len", "1"),
    ("proto-max-bulk-len", "1zb"), ("proto-max-bulk-len", "-1"), ("proto-max-bulk-len", "x"),
    ("client-query-buffer-limit", "1"), ("client-query-buffer-limit", "x"),
    ("notify-keyspace-events", "Q"), ("databases", "4"), ("port", "x"), ("port", "65536"),
    ("daemonize", "yes"), ("nothing", "1"), ("latency-tracking-info-percentiles", "x"),
    ("latency-tracking-info-percentiles", "101"), ("active-expire-effort", "0"),
    ("active-expire-effort", "11"), ("bind", "not-an-address.invalid"), ("supervised", "no"),
    ("unixsocketperm", "777"), ("lazyfree-lazy-expire", "1"), ("latency-tracking", ""),
    ("maxmemory", "-1"), ("maxmemory", "1x"), ("maxmemory", "5%"),
    ("maxmemory-policy", "lru"), ("maxmemory-samples", "0"), ("maxmemory-samples", "2147483648"),
    ("maxmemory-eviction-tenacity", "-1"), ("maxmemory-eviction-tenacity", "101"),
    ("activedefrag", "x"), ("lazyfree-lazy-eviction", "maybe"),
]

GOOD_VALUES = [
    ("timeout", "100"), ("timeout", "0"), ("tcp-keepalive", "7"), ("maxclients", "500"),
    ("loglevel", "DEBUG"), ("loglevel", "notice"), ("protected-mode", "no"),
    ("proto-max-bulk-len", "2mb"), ("proto-max-bulk-len", "1048576"),
    ("proto-max-bulk-len", "512MB"), ("client-query-buffer-limit", "1gb"),
    ("slowlog-max-len", "0"), ("slowlog-log-slower-than", "-1"), ("requirepass", ""),
    ("latency-monitor-threshold", "10"), ("notify-keyspace-events", "KEA"),
    ("notify-keyspace-events", "Kg$"), ("notify-keyspace-events", ""),
    ("latency-tracking-info-percentiles", "50 99.9 100"),
    ("latency-tracking-info-percentiles", ""), ("active-expire-effort", "10"),
    ("hz", "100"), ("hz", "0"), ("hz", "501"), ("hz", "2147483647"),
    ("client-output-buffer-limit", "normal 1mb 2mb 3 pubsub 1 2 3"), ("latency-tracking", "no"),
    ("lazyfree-lazy-user-flush", "yes"), ("lazyfree-lazy-eviction", "yes"),
    ("maxmemory", "1gb"), ("maxmemory", "100MB"), ("maxmemory", "3k"), ("maxmemory", "0"),
    ("maxmemory-policy", "ALLKEYS-LRU"), ("maxmemory-policy", "volatile-ttl"),
    ("maxmemory-samples", "64"), ("maxmemory-samples", "100"),
    ("maxmemory-eviction-tenacity", "100"), ("activedefrag", "no"),
]


def value(client, name):
    flat = client.call("CONFIG", "GET", name)
    assert len(flat) == 2, (name, flat)
    return flat[1]


@pytest.mark.any_threads
@pytest.mark.parametrize("name", NAMES)
def test_defaults(client, oracle, name):
    with oracle.connect() as other:
        ours, theirs = value(client, name), value(other, name)
    if name not in OTHER_DEFAULT:
        assert ours == theirs


@pytest.mark.any_threads
@pytest.mark.parametrize("name,text", BAD_VALUES, ids=lambda x: x or "empty")
def test_bad_values(client, oracle, name, text):
    with oracle.connect() as other:
        ours = client.call("CONFIG", "SET", name, text)
        assert isinstance(ours, Error)
        assert ours == other.call("CONFIG", "SET", name, text)


@pytest.mark.any_threads
@pytest.mark.parametrize("name,text", GOOD_VALUES, ids=lambda x: x or "empty")
def test_good_values_come_back_as_the_oracle_spells_them(client, oracle, name, text):
    with oracle.connect() as other:
        client.ok("CONFIG", "SET", name, text)
        other.ok("CONFIG", "SET", name, text)
        assert value(client, name) == value(other, name)


@pytest.mark.any_threads
def test_log_levels_are_those_of_7_2(client, oracle):
    """7.2 has one more, which the error names."""
    with oracle.connect() as other:
        for text in ("shout", ""):
            theirs = other.call("CONFIG", "SET", "loglevel", text)
            assert client.call("CONFIG", "SET", "loglevel", text) == theirs + b", nothing"
    client.ok("CONFIG", "SET", "loglevel", "nothing")
    assert value(client, "loglevel") == b"nothing"


@pytest.mark.any_threads
def test_get_of_many_names_and_globs(client, oracle):
    with oracle.connect() as other:
        for words in (["timeout", "maxclients"], ["TIMEOUT"], ["time*t", "timeout"], ["nothing"],
                      ["tcp-keepal*"], ["nothing", "databases"], ["[td]imeout"]):
            ours = client.call("CONFIG", "GET", *words)
            theirs = other.call("CONFIG", "GET", *words)
            pairs = sorted(zip(ours[0::2], ours[1::2]))
            assert pairs == sorted(zip(theirs[0::2], theirs[1::2])), words


@pytest.mark.any_threads
@pytest.mark.parametrize("words", [
    ["timeout", "10", "maxclients", "x"], ["timeout", "10", "nothing", "1"],
    ["timeout", "10", "timeout", "20"], ["timeout", "10", "databases", "3"],
    ["timeout", "10", "tcp-keepalive"], ["loglevel", "debug", "hz", "x", "timeout", "5"],
], ids=lambda words: " ".join(words))
def test_set_of_many_is_all_or_nothing(client, oracle, words):
    names = ("timeout", "loglevel", "tcp-keepalive", "maxclients")
    before = [value(client, name) for name in names]
    with oracle.connect() as other:
        ours = client.call("CONFIG", "SET", *words)
        assert isinstance(ours, Error)
        assert ours == other.call("CONFIG", "SET", *words)
    assert [value(client, name) for name in names] == before


@pytest.mark.any_threads
def test_set_of_many(client):
    client.ok("CONFIG", "SET", "timeout", "11", "tcp-keepalive", "12", "LOGLEVEL", "warning")
    assert [value(client, n) for n in ("timeout", "tcp-keepalive", "loglevel")] == \
        [b"11", b"12", b"warning"]
