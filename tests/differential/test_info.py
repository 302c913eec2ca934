"""INFO: the sections and fields that monitoring reads."""

import pytest

KEYDB = {b"server_threads", b"long_lock_waits", b"thread_0_clients", b"current_client_thread"}
SECTIONS = ["server", "clients", "memory", "persistence", "stats", "replication", "cpu", "modules",
            "commandstats", "errorstats", "latencystats", "cluster", "keyspace"]


def headings(text):
    return [line for line in text.split(b"\r\n") if line.startswith(b"#")]


def names(text):
    return [line.split(b":")[0] for line in text.split(b"\r\n")
            if line and not line.startswith(b"#")]


def prepare(client):
    client.ok("CONFIG", "RESETSTAT")
    client.ok("SET", "k", "v", "EX", "1000")
    client.call("NOPE")


@pytest.mark.any_threads
@pytest.mark.parametrize("section", SECTIONS + ["default", "all", "everything"])
def test_fields(client, oracle, section):
    """Each field of the oracle is there, and no line is no field."""
    prepare(client)
    with oracle.connect() as other:
        prepare(other)
        ours, theirs = client.call("INFO", section), other.call("INFO", section)
    missing = {n for n in names(theirs) if not n.startswith((b"cmdstat_", b"latency_perc"))}
    missing -= set(names(ours))
    assert not missing
    if section in ("default", "all", "everything"):
        assert [h for h in headings(theirs) if h not in headings(ours)] == []
    else:
        assert headings(ours) == headings(theirs)
    assert all(b":" in line or line.startswith(b"#") for line in ours.split(b"\r\n") if line)
    assert len(names(ours)) == len(set(names(ours)))


@pytest.mark.any_threads
def test_several_sections(client, oracle):
    with oracle.connect() as other:
        for words in (["server", "clients"], ["SERVER"], ["nothing"], ["nothing", "cpu"],
                      ["cpu", "cpu"], ["keyspace", "default"]):
            ours, theirs = client.call("INFO", *words), other.call("INFO", *words)
            assert sorted(headings(theirs)) == sorted(h for h in headings(ours)
                                                      if h in headings(theirs)), words
            assert bool(headings(ours)) == bool(headings(theirs)), words


@pytest.mark.any_threads
def test_resp3_gives_a_verbatim_string(connect):
    text = connect(3).call("INFO", "server")
    assert text.format == b"txt" and text.startswith(b"# Server\r\nredis_version:")


def test_what_keydb_has(client, ours_only, threads):
    text = client.call("INFO", "everything")
    assert KEYDB <= set(names(text))
    assert b"server_threads:%d\r\n" % threads in text
    assert b"\r\nredis_version:7.2." in text


@pytest.mark.any_threads
def test_keyspace_line(client, oracle):
    with oracle.connect() as other:
        for c in (client, other):
            c.ok("MSET", "a", "1", "b", "2")
            c.ok("SELECT", "3")
            c.ok("SET", "c", "1", "EX", "100")
        ours, theirs = client.call("INFO", "keyspace"), other.call("INFO", "keyspace")
    assert ours.split(b"avg_ttl")[0] == theirs.split(b"avg_ttl")[0]
    assert b"db3:keys=1,expires=1,avg_ttl=" in ours
