"""INFO, field by field: what a move of a field is, and the fields that no test of integration/test_info_*.py moves,
each with its reason.

A move is a generator: it does something, yields while the fields show it, and cleans up when it goes on. The same is
done to the oracle, which must show the same where it has the field: so a wrong belief about Redis fails as well.
"""

import re

from lib.bounds import eventually
from lib.faults import is_sanitized
from lib.resp import Connection
from lib.server import is_redis, parse_info

# Numbers in names: of databases, threads, replicas, listeners.
NUMBERED = re.compile(r"(?<=^db)\d+$|(?<=^slave)\d+$|(?<=^listener)\d+$|(?<=^thread_)\d+(?=_clients$|$)")
OPEN = re.compile(r"^(cmdstat_|errorstat_|latency_percentiles_usec_).*")

BUILD = "what was built, and on what it runs: it never changes"
ABSENT = "there is nothing of the kind here, and so nothing to count"

# Checked by test_info_fields.py where a value is known, and moved by nothing.
LISTED = {
    "redis_version": BUILD, "redis_git_sha1": BUILD, "redis_git_dirty": BUILD, "redis_build_id": BUILD, "server_name": BUILD,
    "keydb_version": BUILD, "os": BUILD, "arch_bits": BUILD, "monotonic_clock": BUILD, "multiplexing_api": BUILD,
    "atomicvar_api": BUILD, "gcc_version": BUILD, "executable": BUILD, "mem_allocator": BUILD,
    "total_system_memory": BUILD, "total_system_memory_human": BUILD,
    "redis_mode": "standalone until there is a cluster", "cluster_enabled": "0 until there is a cluster",
    "cluster_connections": "0 until there is a cluster", "mem_cluster_links": "0 until there is a cluster",
    "features": "KeyDB's list of experiments: there are none",
    "process_id": "of the process: checked", "run_id": "of the process: checked", "config_file": "of the process: checked",
    "io_threads_active": "the number of threads is given at the start: checked",
    "server_threads": "given at the start: checked",
    "process_supervised": "given at the start; test_process_options.py",
    "uptime_in_days": "takes a day",
    "shutdown_in_milliseconds": "there while a SHUTDOWN waits; test_failover.py, test_shutdown_signals.py",
    "current_client_thread": "a thread's number: which one a connection gets is the server's affair; test_threads.py",
    "used_memory_startup": "noted once, at the end of the start",
    "allocator_frag_ratio": "a quotient of two decimals of two figures that do move",
    "active_defrag_running": ABSENT, "active_defrag_hits": ABSENT, "active_defrag_misses": ABSENT,
    "active_defrag_key_hits": ABSENT, "active_defrag_key_misses": ABSENT, "total_active_defrag_time": ABSENT,
    "current_active_defrag_time": ABSENT,
    "used_memory_scripts_eval": "nothing is kept of a script but in its VM: used_memory_vm_eval has it",
    "master_global_link_status": "with one primary what master_link_status is; test_keydb_words.py",
    "connected_masters": "with one primary what master_link_status is; test_keydb_words.py",
    "availability_zone": "given at the start: checked",
    "storage_provider": ABSENT, "storage_provider_read_hits": ABSENT, "storage_provider_read_misses": ABSENT,
    "mvcc_depth": ABSENT + ": KeyDB's snapshots",
    "migrate_cached_sockets": ABSENT + ": each MIGRATE has a connection of its own",
    "reply_buffer_shrinks": ABSENT + ": replies are built in a buffer of the thread, which no client has",
    "reply_buffer_expands": ABSENT + ": replies are built in a buffer of the thread, which no client has",
    "module_fork_in_progress": ABSENT + ": no modules", "module_fork_last_cow_size": ABSENT + ": no modules",
    "lazyfree_pending_objects": "back at 0 before anybody can look; lazyfreed_objects is what moves",
    "mem_aof_buffer": "needs a log that hangs; test_buffers_not_counted.py",
    "aof_buffer_length": "needs a log that hangs; test_aof.py",
    "aof_pending_bio_fsync": "needs a sync that hangs; test_aof_faults.py",
    "aof_delayed_fsync": "needs a sync that hangs; test_aof_faults.py",
    "aof_last_write_status": "needs a disk that is full; test_aof_faults.py",
    "loading": "there while a file is loaded; test_loading.py", "async_loading": "the same; test_diskless_load.py",
    "loading_start_time": "the same; test_loading.py", "loading_total_bytes": "the same; test_loading.py",
    "loading_rdb_used_mem": "the same; test_loading.py", "loading_loaded_bytes": "the same; test_loading.py",
    "loading_loaded_perc": "the same; test_loading.py", "loading_eta_seconds": "the same; test_loading.py",
    "current_cow_size_age": "from one measurement to the next, a second later: mostly 0",
    "total_eviction_exceeded_time": "needs an eviction that cannot keep up; test_maxmemory.py",
    "current_eviction_exceeded_time": "needs an eviction that cannot keep up; test_maxmemory.py",
    "expired_time_cap_reached_count": "needs a sweep that takes long",
    "evicted_clients": "test_maxmemory_clients.py",
    "client_query_buffer_limit_disconnections": "test_wire_limits.py",
    "client_output_buffer_limit_disconnections": "test_output_limits.py",
    "instantaneous_lock_contention": "of chance: whether threads meet at the lock",
    "avg_lock_contention": "of chance: whether threads meet at the lock",
    "long_lock_waits": "of chance: whether threads meet at the lock",
    "lock_waited_ns_per_acquisition": "of chance: whether threads meet at the lock",
    "lock_waited_ns": "of chance: whether threads meet at the lock",
    "lock_parked": "of chance: whether threads meet at the lock",
    "clients_moved": "needs an unequal load; test_balancing.py",
    "master_failover_state": "test_failover.py",
    "master_sync_total_bytes": "there while a replica loads; test_replication_replica.py",
    "master_sync_read_bytes": "the same", "master_sync_left_bytes": "the same", "master_sync_perc": "the same",
    "master_sync_last_io_seconds_ago": "the same",
    "used_cpu_sys_children": "needs a child that works for long", "used_cpu_user_children": "the same",
    "used_cpu_sys_main_thread": "hundredths of a second: the main thread only waits",
    "used_cpu_user_main_thread": "hundredths of a second: the main thread only waits",
}


def normal(name):
    """A field's name without what there may be any number of."""
    found = OPEN.match(name)
    return found.group(1) + "*" if found else NUMBERED.sub("N", name)


class Look:
    """One INFO; values of names that there are several of are put together."""

    def __init__(self, fields):
        self.fields = {}
        for name, value in fields.items():
            self.fields.setdefault(normal(name), []).append(name + "=" + value if normal(name) != name else value)

    def text(self, name):
        return "; ".join(self.fields.get(name, []))

    def number(self, name):
        return float(self.text(name).rstrip("%") or "nan")


def has_moved(before, after, name, how):
    """`how`: "+" and "-" grows and falls, a number by how much, "~" is another text, "=text" is that text."""
    if how == "~":
        return before.text(name) != after.text(name)
    if isinstance(how, str) and how.startswith("="):
        return after.text(name) == how[1:]
    if how == "+" and not before.text(name):
        return after.number(name) > 0  # it was not there
    change = after.number(name) - before.number(name)
    if how in ("+", "-"):
        return change > 0 if how == "+" else change < 0
    return abs(change - how) < 1e-6


# A sanitizer's allocator tells the resident set of the process as its own.
OF_THE_ALLOCATOR = {"rss_overhead_ratio", "rss_overhead_bytes"}


class Stage:
    """A server, and what a move does with it."""

    def __init__(self, server, play=None, other=None):
        self.server, self.play, self.other = server, play, other
        self.is_ours = not is_redis(server.path)
        self.clients = []
        self.c = self.connect()
        self.again = False  # whether a move that has yielded is to be made once more

    def connect(self, to=None):
        self.clients.append(Connection((to or self.server).address()))
        return self.clients[-1]

    def look(self):
        return Look(parse_info(self.c.call("INFO", "everything")))

    def end(self):
        for client in self.clients:
            client.close()


def run_move(stage, move, expected):
    """Does the move and waits for all fields; those that the oracle has not got are left out there. Rates are back at
    nothing soon, unseen where the machine stands still: for them alone it is made again."""
    if is_sanitized(stage.server.path):
        expected = {name: how for name, how in expected.items() if name not in OF_THE_ALLOCATOR}
    before = stage.look()
    steps = move(stage)
    next(steps)

    waits = dict(expected)  # what has moved once has moved
    last = {}

    def all_moved():
        after = stage.look()
        for name, how in list(waits.items()):
            if has_moved(before, after, name, how) or not (
                    stage.is_ours or before.fields.get(name) or after.fields.get(name)):
                del waits[name]
        last.update({name: (how, before.text(name), after.text(name)) for name, how in waits.items()})
        stage.again = bool(waits) and all(name.startswith("instantaneous_") for name in waits)
        if stage.again:
            next(steps)
        return not waits

    try:
        eventually(all_moved, "moves", bound_s=30.0)
    except Exception as trouble:
        raise AssertionError("%s: %s" % ("ours" if stage.is_ours else "the oracle",
                                         {name: last[name] for name in waits})) from trouble
    finally:
        stage.again = False
        for _ in steps:
            pass
