"""DEBUG about single values of every type and encoding, and MEMORY USAGE with SAMPLES."""

import re
import time

import pytest

pytestmark = pytest.mark.any_threads

# One key of each encoding, named by it.
FILL = [
    ("SET", "embstr", "x"), ("SET", "int", "12"), ("SET", "raw", "x" * 5000),
    ("RPUSH", "list_listpack", "a", "12", "b" * 100),
    ("HSET", "hash_listpack", "f", "v"), ("HSET", "hash_table", "f", "v" * 100),
    ("SADD", "intset", "1", "2"), ("SADD", "set_listpack", "a"), ("SADD", "set_table", "a" * 100),
    ("ZADD", "zset_listpack", "1", "a"), ("ZADD", "zset_skiplist", "1", "a" * 100),
    ("KEYDB.NHSET", "nested.a.b", "c"),
]
LISTPACKS = {"list_listpack", "hash_listpack", "set_listpack", "zset_listpack"}
TABLES = {"hash_table", "set_table", "zset_skiplist"}


@pytest.fixture
def filled(client, ours_only):
    for words in FILL:
        client.call(*words)
    client.call("RPUSH", "quicklist", *["%0100d" % i for i in range(1000)])
    return client


def names(client):
    return sorted(k.decode() for k in client.call("KEYS", "*"))


def test_which_value_is_what(filled):
    for name in names(filled):
        for command, kept, good in (
                ("LISTPACK", LISTPACKS, b"Listpack structure printed on stdout"),
                ("QUICKLIST", {"quicklist"}, b"Quicklist structure printed on stdout")):
            if name in kept:
                assert filled.call("DEBUG", command, name) == good
            else:
                assert filled.error("DEBUG", command, name) == \
                    b"ERR Not a %s encoded object." % command.lower().encode()
        if name in TABLES:
            text = filled.call("DEBUG", "HTSTATS-KEY", name, "full")
            assert b" number of elements: 1\n" in text and b"1: 1 (" in text
            assert b"Entries in a bucket" not in filled.call("DEBUG", "HTSTATS-KEY", name)
        else:
            assert b"not represented using an hash table" in \
                filled.error("DEBUG", "HTSTATS-KEY", name)
        assert filled.call("DEBUG", "OBJECT", name).startswith(b"Value at:0x")
        assert b"serializedlength" not in filled.call("DEBUG", "OBJECT", name, "fast")
    for command in ("LISTPACK", "QUICKLIST", "HTSTATS-KEY", "OBJECT", "SDSLEN"):
        assert filled.error("DEBUG", command, "missing") == b"ERR no such key"
    for words in (("OBJECT", "raw", "slow"), ("HTSTATS", "0", "x"), ("HTSTATS-KEY", "raw", "x")):
        assert filled.error("DEBUG", *words).startswith(b"ERR unknown subcommand or wrong number")


@pytest.mark.parametrize("words", [
    ("DEBUG", "LISTPACK", "h"), ("DEBUG", "QUICKLIST", "h"), ("DEBUG", "OBJECT", "h"),
    ("DEBUG", "HTSTATS-KEY", "h"), ("DEBUG", "DIGEST-VALUE", "h"), ("DEBUG", "SDSLEN", "h"),
    ("DEBUG", "DIGEST"), ("MEMORY", "USAGE", "h"), ("OBJECT", "ENCODING", "h")], ids=" ".join)
def test_a_hash_whose_fields_are_due(client, ours_only, words):
    """Nobody has removed them yet; who looks at the hash first must not mind."""
    client.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    for fields in (("f",), ("f", "g")):
        client.call("HSET", "h", "f", "v", "g", "w" * (100 if "HTSTATS-KEY" in words else 1))
        client.call("HPEXPIRE", "h", "1", "FIELDS", str(len(fields)), *fields)
        time.sleep(0.01)
        client.call(*words)
        assert client.call("HLEN", "h") == 2 - len(fields)
        client.call("DEL", "h")


def test_what_is_printed(make_server, ours_only):
    server = make_server()
    with server.connect() as client:
        client.call("RPUSH", "l", "12", "tex\nt", "b" * 100)
        client.ok("CONFIG", "SET", "list-max-listpack-size", "2")
        client.ok("CONFIG", "SET", "list-compress-depth", "1")
        client.call("RPUSH", "q", *["z" * 100] * 9)
        client.call("HSET", "h", "fie\"ld", "1", "g", "v" * 50)
        assert client.call("DEBUG", "LISTPACK", "l") is not None
        assert client.call("DEBUG", "LISTPACK", "h") is not None
        assert client.call("DEBUG", "QUICKLIST", "q", "1") is not None
        text = server.output()
    assert ", 3 elements\n" in text
    assert 'integer of 2 bytes: "12"' in text
    assert 'string of 5 bytes: "tex\\nt"' in text
    assert 'string of 100 bytes: "%s" ...' % ("b" * 40) in text
    assert 'field of 6 bytes: "fie\\"ld", value of 1 bytes: "1"' in text
    assert 'value of 50 bytes: "%s" ...' % ("v" * 40) in text
    assert "quicklist: 9 elements, 5 nodes, 1 uncompressed at each end" in text
    assert text.count(", compressed to ") == 3
    assert text.count('string of 100 bytes: "zzz') == 9


def test_quicklist_fields(client):
    """As the oracle tells them, where the same elements stand in as many nodes."""
    client.ok("CONFIG", "SET", "list-max-listpack-size", "10")
    client.call("RPUSH", "l", *["x" * 20] * 100)
    text = client.call("DEBUG", "OBJECT", "l").decode()
    fields = dict(re.findall(r"(ql_\w+):([-\d.]+)", text))
    assert fields["ql_nodes"] == "10" and fields["ql_avg_node"] == "10.00"
    assert fields["ql_listpack_max"] == "10" and fields["ql_compressed"] == "0"
    assert 2000 < int(fields["ql_uncompressed_size"]) < 3000
    client.ok("CONFIG", "SET", "list-max-listpack-size", "-1")
    client.ok("CONFIG", "SET", "list-compress-depth", "1")
    client.call("RPUSH", "m", *["x" * 200] * 100)
    text = client.call("DEBUG", "OBJECT", "m").decode()
    assert "ql_listpack_max:-1 ql_compressed:1 " in text


def test_sdslen(filled):
    text = filled.call("DEBUG", "SDSLEN", "embstr").decode()
    assert re.fullmatch(r"key_sds_len:6, key_sds_avail:0, key_zmalloc: \d+, val_sds_len:1, "
                        r"val_sds_avail:\d+, val_zmalloc: \d+", text)
    text = filled.call("DEBUG", "SDSLEN", "raw").decode()
    assert "val_sds_len:5000, " in text and int(text.split()[-1]) >= 5000
    for name in ("int", "quicklist", "nested"):
        assert filled.error("DEBUG", "SDSLEN", name) == b"ERR Not an sds encoded string."


def test_memory_usage_of_every_type(filled):
    """A sample of equal elements tells what all of them take."""
    for i in range(2000):
        filled.call("HSET", "hash", "field%04d" % i, "v" * 50)
        filled.call("SADD", "set", "member%04d" % i + "x" * 50)
        filled.call("ZADD", "zset", str(i), "member%04d" % i + "x" * 50)
        filled.call("RPUSH", "list", "element%04d" % i + "x" * 50)
        filled.call("KEYDB.NHSET", "tree.m.name%04d" % i, "v" * 50)
    for name in names(filled):
        whole = filled.call("MEMORY", "USAGE", name, "SAMPLES", "0")
        for samples in ("1", "5", "100", "9223372036854775807"):
            part = filled.call("MEMORY", "USAGE", name, "samples", samples)
            assert whole * 0.5 < part < whole * 2, (name, samples)
    for name in ("hash", "set", "zset", "list", "tree"):
        assert filled.call("MEMORY", "USAGE", name) > 2000 * 50
    assert filled.error("MEMORY", "USAGE", "hash", "SAMPLES", "-1") == b"ERR syntax error"
    assert filled.error("MEMORY", "USAGE", "hash", "SAMPLES") == b"ERR syntax error"
    assert filled.call("MEMORY", "USAGE", "missing", "SAMPLES", "1") is None
