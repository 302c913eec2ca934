"""Every field of INFO moves when what it counts happens, beside the oracle, or stands in a list with its reason
(lib/info_fields.py). A new field that is neither moved nor listed fails here."""

import os
import re

import pytest

from integration import info_moves, info_moves_stats
from lib.bounds import eventually
from lib.info_fields import LISTED, Look, Stage, normal, run_move
from lib.resp import encode
from lib.server import parse_info

pytestmark = pytest.mark.any_threads
assert info_moves_stats  # it adds to the same list


@pytest.mark.parametrize("move", [m for m in info_moves.MOVES if not m.options], ids=lambda m: m.name)
def test_moves(server, oracle, play, move):
    for one in (server, oracle):
        stage = Stage(one, play)
        try:
            run_move(stage, move.run, move.expected)
        finally:
            stage.end()


@pytest.mark.parametrize("move", [m for m in info_moves.MOVES if m.options], ids=lambda m: m.name)
def test_moves_alone(make_server, make_oracle, play, move):
    """With servers of their own: replicas and primaries, files, save points."""
    for make in (make_server, make_oracle):
        options = dict(info_moves.BASE, **move.options)
        one, other = make(options), make(options) if move.pair else None
        for each in filter(None, (one, other)):
            each.expected_files |= {"dump.rdb", "appendonlydir"}
        stage = Stage(one, play, other)
        try:
            run_move(stage, move.run, move.expected)
        finally:
            stage.end()


def seen(server):
    return {normal(name) for name in server.info()}


def all_fields(make_server):
    """Of a primary with a log and min-replicas, of a replica of it, and of one that has lost it."""
    options = dict(info_moves.BASE, appendonly="yes", **{"min-replicas-to-write": "1"})
    primary, replica = make_server(options), make_server(info_moves.BASE)
    for each in (primary, replica):
        each.expected_files |= {"dump.rdb", "appendonlydir"}
    with primary.connect() as c, replica.connect() as r:
        c.call("NOSUCH")
        c.call("GET", "x")
        r.ok("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: replica.info()["master_link_status"] == "up" and "slave0" in primary.info(), "up")
        eventually(lambda: c.call("SET", "key", "value") == b"OK", "a good replica")
        fields = seen(primary) | seen(replica)
        r.ok("REPLICAOF", "127.0.0.1", 1)
        return fields | seen(replica)


def test_no_field_is_forgotten(make_server, ours_only):
    moved = {name for move in info_moves.MOVES for name in move.expected}
    fields = all_fields(make_server)
    assert fields - moved - set(LISTED) == set(), "neither moved nor listed"
    assert moved & set(LISTED) == set(), "moved, and listed as what cannot be"
    there_at_times = re.compile("loading_|master_sync_|shutdown_in")
    assert {name for name in moved | set(LISTED) if not there_at_times.match(name)} - fields == set(), "no such field"
    assert all(reason for reason in LISTED.values())


def test_what_is_known(make_server, ours_only, threads):
    server = make_server(config="hz 20\navailability-zone here\n")
    info = server.info()
    assert info["availability_zone"] == "here"
    assert info["process_id"] == str(server.pid)
    assert info["tcp_port"] == str(server.port)
    assert re.fullmatch("[0-9a-f]{40}", info["run_id"])
    assert os.path.samefile(info["executable"], server.path)
    assert os.path.isabs(info["config_file"]) and os.path.exists(info["config_file"])
    assert info["server_threads"] == str(threads)
    assert info["io_threads_active"] == str(int(threads > 1))
    assert info["arch_bits"] == "64" and info["redis_mode"] == "standalone"
    with open("/proc/meminfo", encoding="ascii") as file:
        total = int(re.search(r"MemTotal: +(\d+) kB", file.read()).group(1)) * 1024
    assert info["total_system_memory"] == str(total)
    assert (info["io_threaded_reads_processed"] != "0") == (threads > 1)


# ---- what a client did before its INFO is seen in it ----

SEEN = ["total_commands_processed", "total_reads_processed", "total_net_input_bytes", "total_error_replies",
        "keyspace_hits", "keyspace_misses", "rdb_changes_since_last_save"]


def calls(info, command):
    return re.sub(r"usec=[\d.]+,usec_per_call=[\d.]+", "", info.get("cmdstat_" + command, ""))


def told(before, text):
    """Counts that time decides nothing about, since INFO said `before`."""
    info, before = parse_info(text), parse_info(before)
    return [int(info[name]) - int(before[name]) for name in SEEN] + \
        [calls(info, name) for name in ("set", "get", "info", "lpush", "exec", "eval")]


def before_it(c, how):
    """Does things and asks for INFO: one by one, at once, in a transaction, in a script."""
    writes = [("SET", "k", n) for n in range(20)]
    reads = [("GET", "k")] * 10 + [("GET", "none"), ("LPUSH", "k"), ("NOSUCH",)]
    if how == "one by one":
        for words in writes + reads:
            c.call(*words)
        return c.call("INFO", "everything")
    if how == "script":
        return c.call("EVAL", "for i = 1, 20 do redis.call('SET', 'k', i) redis.call('GET', 'k') end "
                      "return redis.call('INFO', 'everything')", 0)
    words = writes + [w for w in reads if w != ("NOSUCH",) and len(w) > 1 and w[0] != "LPUSH"] \
        if how == "transaction" else writes + reads
    if how == "transaction":
        words = [("MULTI",)] + words + [("INFO", "everything"), ("EXEC",)]
        return c.pipeline(words)[-1][-1]
    return c.pipeline(words + [("INFO", "everything")])[-1]


@pytest.mark.parametrize("how", ["one by one", "at once", "transaction", "script"])
def test_own_deeds_are_seen(make_server, make_oracle, how):
    found = []
    for make in (make_server, make_oracle):
        server = make({"save": ""})
        with server.connect() as c:
            # Who asked whether it had started counts as well: as often as it did, and once more when its end is seen.
            eventually(lambda: c.call("CLIENT", "LIST").count(b"\n") == 1, "others have gone")
            found.append(told(c.call("INFO", "everything"), before_it(c, how)))
    assert found[0] == found[1]


def test_who_has_gone_is_counted(server):
    """A client that CLIENT LIST no longer shows has left nothing to be counted: what it read, ran and was sent stands
    in INFO, on whichever thread it was."""
    counts = ("total_commands_processed", "total_reads_processed", "total_writes_processed", "total_net_input_bytes")
    pipeline = b"".join(encode("SET", "k", n) for n in range(700))
    with server.connect() as c:
        for _ in range(60):
            others = [server.connect() for _ in range(8)]
            for other in others:
                other.call("PING")
            for other in others:
                other.send_raw(pipeline)
            for other in others:
                other.close()
            eventually(lambda: c.call("CLIENT", "LIST").count(b"\n") == 1, "others have gone", pause_s=0)
            first, second = (parse_info(c.call("INFO", "stats")) for _ in range(2))
            moved = {name: int(second[name]) - int(first[name]) for name in counts}
            assert moved == {name: 1 for name in counts} | {"total_net_input_bytes": len(encode("INFO", "stats"))}


def test_slow_log_and_latency_see_what_was_before(client):
    client.ok("CONFIG", "SET", "slowlog-log-slower-than", "0")
    client.ok("SLOWLOG", "RESET")
    replies = client.pipeline([("SET", "k", "v"), ("GET", "k"), ("SLOWLOG", "LEN"), ("SLOWLOG", "GET", "10")])
    names = [entry[3][0] for entry in replies[3]]
    assert replies[2] >= 2 and names.count(b"SET") == names.count(b"GET") == 1
    client.ok("CONFIG", "RESETSTAT")
    replies = client.pipeline([("SET", "k", "v"), ("GET", "k"), ("LATENCY", "HISTOGRAM", "set", "get")])
    assert {name for name in replies[2][::2]} == {b"set", b"get"}


def test_time_in_the_lock_is_never_a_riddle(client):
    """Asked for while the lock is held: by a transaction, by a script."""
    client.call("SET", "k", "v")
    for text in (client.pipeline([("MULTI",), ("SET", "k", "v"), ("INFO", "stats"), ("EXEC",)])[-1][-1],
                 client.call("EVAL", "redis.call('SET', 'k', 'v') return redis.call('INFO', 'stats')", 0)):
        assert 0 <= int(parse_info(text)["eventloop_duration_cmd_sum"]) < 10**9


# ---- CONFIG RESETSTAT ----

def statistics_after_reset(server, play):
    with server.connect() as c:
        stage = Stage(server, play)
        for move in info_moves.MOVES:
            if not move.options and move.in_reset:
                steps = move.run(stage)
                for _ in steps:
                    pass
        c.call("DEBUG", "SLEEP", "0.001")
        c.ok("CONFIG", "RESETSTAT")
        look = Look(parse_info(c.call("INFO", "everything")))
        stage.end()
        return {name for name in look.fields if look.text(name) in ("0", "0.00", "")}


def test_reset_sets_to_zero_what_the_oracle_does(make_server, make_oracle, play):
    ours, theirs = [statistics_after_reset(make(info_moves.BASE), play) for make in (make_server, make_oracle)]
    # What is of the last seconds, or of threads that the oracle has not got, is no matter of the reset.
    apart = {"io_threads_active", "io_threaded_reads_processed", "io_threaded_writes_processed",
             "client_recent_max_input_buffer", "client_recent_max_output_buffer", "current_fork_perc",
             "mem_clients_normal", "mem_fragmentation_bytes", "lru_clock", "instantaneous_ops_per_sec",
             "instantaneous_input_kbps", "instantaneous_output_kbps", "expired_stale_perc"}
    assert theirs - ours - apart - {"total_net_output_bytes", "total_writes_processed"} == set()
