"""Row 20: what one replica costs its primary."""

import time

from load import Series, pairs, series
from report import Measure, ratio_measure
from rows_load import load_note, test_arguments

REPLICA_BOUND_S = 120.0


def primary(bench, path):
    """A server with its keys in place, whose replicas may be as far behind as they like."""
    server = bench.server(path)
    for words in (("client-output-buffer-limit", "replica 0 0 0"), ("repl-backlog-size", "1mb"),
                  ("repl-diskless-sync-delay", "0")):
        server.call("CONFIG", "SET", *words)
    bench.preload(server, bench.keys)
    return server


def wait_in_step(primary_server, replica):
    deadline_s = time.monotonic() + REPLICA_BOUND_S
    while time.monotonic() < deadline_s:
        about = replica.info("replication")
        if about.get("master_link_status") == "up" and about["master_repl_offset"] == \
                primary_server.info("replication")["master_repl_offset"]:
            return
        time.sleep(0.05)
    raise RuntimeError("the replica does not come up with its primary")


def row_20(bench):
    """Both have a redis-server as replica, on the generator's core; the cost is the difference to a
    primary without one.  A window begins when the replica has everything."""
    replicas = {}
    contestants = {}
    for name, path in (("ours", bench.ours), ("oracle", bench.oracle)):
        contestants[name + ", alone"] = primary(bench, path)
        contestants[name] = primary(bench, path)
        replicas[contestants[name]] = bench.server(bench.oracle, cores=bench.generator.cores)
        replicas[contestants[name]].call("REPLICAOF", "127.0.0.1", contestants[name].port)

    def settle(_, server):
        if server in replicas:
            wait_in_step(server, replicas[server])

    windows = pairs(bench, contestants, test_arguments(bench, "set", 32), before=settle)
    whole = {name: series(windows[name], "cpu_us") for name in contestants}
    cost = {name: Series([with_one - alone.median for with_one in whole[name].values],
                         whole[name].noisy + alone.noisy)
            for name, alone in (("ours", whole["ours, alone"]), ("oracle", whole["oracle, alone"]))}
    return [
        ratio_measure(20, "CPU an op of one replica, SET, pipeline 32", cost["ours"], cost["oracle"],
                      1.0, note=load_note(windows)),
        Measure(20, "  the whole op with it", whole["ours"].median, whole["oracle"].median,
                whole["ours"].median / whole["oracle"].median, None, unit="us"),
    ]
