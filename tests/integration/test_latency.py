"""LATENCY: events over the threshold, the histogram, percentiles in INFO."""

import time

from lib.bounds import eventually
from lib.server import parse_info


def make_event(client):
    client.ok("CONFIG", "SET", "latency-monitor-threshold", "10")
    client.call("LATENCY", "RESET")
    client.ok("DEBUG", "SLEEP", "0.03")


def nothing_more(client):
    """What a busy machine holds up is no event from here on."""
    client.ok("CONFIG", "SET", "latency-monitor-threshold", "1000000")


def test_latest_and_history(client):
    make_event(client)
    seen = {}

    def calm():
        """No other command is slow between two looks that say the same."""
        seen.update(latest=client.call("LATENCY", "LATEST"), history=client.call("LATENCY", "HISTORY", "command"))
        return client.call("LATENCY", "LATEST") == seen["latest"]
    eventually(calm, "nothing is slow meanwhile")
    name, when, latest, highest = {e[0]: e for e in seen["latest"]}[b"command"]
    assert abs(when - time.time()) < 30 and latest >= 10 and highest >= 30 and highest >= latest
    assert [when, latest] in seen["history"]
    assert client.call("LATENCY", "HISTORY", "nothing") == []


def test_reset(client):
    make_event(client)
    nothing_more(client)
    assert client.call("LATENCY", "RESET", "nothing") == 0
    assert client.call("LATENCY", "RESET", "command") == 1
    assert client.call("LATENCY", "HISTORY", "command") == []
    make_event(client)
    nothing_more(client)
    assert client.call("LATENCY", "RESET") >= 1
    assert client.call("LATENCY", "LATEST") == []


def test_nothing_below_the_threshold_and_nothing_at_zero(client):
    client.ok("CONFIG", "SET", "latency-monitor-threshold", "0")
    client.call("LATENCY", "RESET")
    client.ok("DEBUG", "SLEEP", "0.03")
    assert client.call("LATENCY", "LATEST") == []


def test_graph_and_doctor(client):
    make_event(client)
    assert client.call("LATENCY", "GRAPH", "command").startswith(b"command - high ")
    assert client.error("LATENCY", "GRAPH", "nothing") == \
        b"ERR No samples available for event 'nothing'"
    assert len(client.call("LATENCY", "DOCTOR")) > 50


def test_histogram(connect, threads):
    client = connect(3)
    client.ok("CONFIG", "RESETSTAT")
    for number in range(4 * threads):
        other = connect()
        other.pipeline([["SET", "k", number]] * 25 + [["GET", "k"]] * 10)
    seen = {}

    def all_counted():
        """Another thread may have answered, and not yet counted."""
        seen.update(client.call("LATENCY", "HISTOGRAM", "set", "get", "nothing").as_dict())
        return {name: one.as_dict()[b"calls"] for name, one in seen.items()} == {b"set": 100 * threads, b"get": 40 * threads}
    eventually(all_counted, "all calls are counted")
    entry = seen[b"set"].as_dict()
    buckets = entry[b"histogram_usec"]
    bounds, counts = [b for b, _ in buckets], [n for _, n in buckets]
    assert bounds == sorted(bounds) and counts == sorted(counts)
    assert counts[-1] == 100 * threads
    assert b"get" in client.call("LATENCY", "HISTOGRAM").as_dict()


def test_histogram_in_resp2(client):
    client.ok("CONFIG", "RESETSTAT")
    client.ok("SET", "k", "v")
    name, entry = client.call("LATENCY", "HISTOGRAM", "set")
    assert name == b"set" and entry[0] == b"calls" and entry[1] == 1
    assert entry[2] == b"histogram_usec" and entry[3][1] == 1


def test_command_statistics_are_summed_over_the_threads(client, connect, threads):
    client.ok("CONFIG", "RESETSTAT")
    for _ in range(4 * threads):
        other = connect()
        other.pipeline([["INCR", "n"]] * 10 + [["GET"]] + [["INCRBY", "n", "x"]])
    seen = {}

    def all_counted():
        """Another thread may have answered, and not yet counted."""
        seen.update(parse_info(client.call("INFO", "everything")))
        return seen.get("errorstat_ERR") == "count=%d" % (8 * threads) and \
            "calls=%d," % (40 * threads) in seen.get("cmdstat_incr", "")
    eventually(all_counted, "all calls are counted")
    info = seen
    incr = dict(p.split("=") for p in info["cmdstat_incr"].split(","))
    assert incr["calls"] == str(40 * threads)
    assert incr["rejected_calls"] == "0" and incr["failed_calls"] == "0"
    assert "rejected_calls=%d" % (4 * threads) in info["cmdstat_get"]
    assert "failed_calls=%d" % (4 * threads) in info["cmdstat_incrby"]
    assert info["errorstat_ERR"] == "count=%d" % (8 * threads)
    assert set(p.split("=")[0] for p in info["latency_percentiles_usec_incr"].split(",")) == \
        {"p50", "p99", "p99.9"}
    assert int(info["total_commands_processed"]) >= 40 * threads


def test_resetstat(client):
    client.pipeline([["GET", "missing"]] * 10 + [["NOPE"]])
    info = parse_info(client.call("INFO", "everything"))
    assert int(info["keyspace_misses"]) >= 10
    client.ok("CONFIG", "RESETSTAT")
    info = parse_info(client.call("INFO", "everything"))
    assert info["keyspace_misses"] == "0" and "cmdstat_get" not in info
    assert "errorstat_ERR" not in info and info["total_error_replies"] == "0"


def test_hits_and_misses(client, connect, threads):
    client.ok("CONFIG", "RESETSTAT")
    client.ok("SET", "k", "v")
    for _ in range(2 * threads):
        other = connect()
        other.pipeline([["GET", "k"]] * 3 + [["GET", "missing"]] * 2)
        other.call("MGET", "k", "missing")
        other.call("EXISTS", "k", "missing")

    def counted():
        info = parse_info(client.call("INFO", "stats"))
        return info["keyspace_hits"], info["keyspace_misses"]
    eventually(lambda: counted() == (str(10 * threads), str(8 * threads)), "all threads have counted")
