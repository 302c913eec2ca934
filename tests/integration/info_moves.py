"""What moves the fields of INFO's server, clients, memory and persistence sections: one generator for what belongs
together (lib/info_fields.py). For test_info_fields.py."""

import os
import shutil
import signal
import time

from lib.bounds import eventually
from lib.server import children_of

BASE = {"save": "", "repl-diskless-sync-delay": "0", "enable-debug-command": "yes", "enable-protected-configs": "yes"}
ALONE = {"databases": "16"}  # an own server, and nothing else
MOVES = []
LIBRARY = "#!lua name=moves\nredis.register_function{function_name='move', callback=function() return 1 end}"


class Move:
    def __init__(self, run, expected, options, pair, in_reset):
        self.run, self.name, self.expected = run, run.__name__, expected
        self.options, self.pair, self.in_reset = options, pair, in_reset


def moves(options=None, pair=False, in_reset=True, **expected):
    """`options`: of servers of its own, a pair of them where it needs two."""
    def keep(run):
        MOVES.append(Move(run, expected, options or (ALONE if pair else {}), pair, in_reset))
        return run
    return keep


# ---- server ----

@moves(server_time_usec="+", uptime_in_seconds="+", lru_clock="+", in_reset=False)
def time_passes(stage):
    stage.c.call("PING")
    yield


@moves(hz="=20", configured_hz="=20", in_reset=False)
def ticks(stage):
    stage.c.ok("CONFIG", "SET", "hz", "20")
    yield
    stage.c.ok("CONFIG", "SET", "hz", "10")


@moves(options={"maxclients": "100"}, tcp_port="~", listenerN="~", maxclients="-")
def listens_elsewhere(stage):
    from lib.server import free_port
    stage.c.ok("CONFIG", "SET", "port", free_port(), "maxclients", "90")
    yield
    stage.c.ok("CONFIG", "SET", "port", stage.server.port)


# ---- clients ----

@moves(connected_clients=3, total_connections_received=3, thread_N_clients="~", thread_N="~")
def three_come(stage):
    clients = [stage.connect() for _ in range(3)]
    for c in clients:
        c.call("PING")
    yield
    for c in clients:
        c.close()


# On servers of their own: what others did a while ago is recent too, and was more, where time passes slowly.
@moves(options=ALONE, client_recent_max_input_buffer="+", mem_clients_normal="+")
def half_a_request(stage):
    c = stage.connect()
    c.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n" + b"x" * 500_000)
    yield
    c.close()


@moves(options=ALONE, client_recent_max_output_buffer="+")
def does_not_read(stage):
    stage.c.ok("SET", "large", "x" * 1_000_000)
    c = stage.connect()
    for _ in range(30):
        c.send("GET", "large")
    yield
    c.close()


@moves(blocked_clients=3, clients_in_timeout_table=1, total_blocking_keys=3, total_blocking_keys_on_nokey=1)
def wait_for_keys(stage):
    stage.c.call("XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM")
    words = [("BLPOP", "none", 0), ("BLPOP", "none2", 1000),
             ("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "stream", ">")]
    clients = [stage.connect() for _ in words]
    for c, each in zip(clients, words):
        c.send(*each)
    yield
    for c in clients:
        c.close()


@moves(tracking_clients=2, tracking_total_keys=1, tracking_total_items=1, tracking_total_prefixes=1)
def track(stage):
    one, two = stage.connect(), stage.connect()
    for c, more in ((one, []), (two, ["BCAST", "PREFIX", "p"])):
        c.hello(3)
        c.ok("CLIENT", "TRACKING", "ON", *more)
    stage.c.ok("SET", "tracked", "1")
    one.call("GET", "tracked")
    yield
    one.close()
    two.close()


# ---- memory ----

@moves(used_memory="+", used_memory_human="~", used_memory_rss="+", used_memory_rss_human="~", used_memory_peak="+",
       used_memory_peak_human="~", used_memory_peak_perc="~", used_memory_overhead="+", used_memory_dataset="+",
       used_memory_dataset_perc="~", allocator_allocated="+", allocator_active="+", allocator_resident="+",
       allocator_frag_bytes="~", allocator_rss_ratio="~", allocator_rss_bytes="~",
       rss_overhead_ratio="~", rss_overhead_bytes="~", mem_fragmentation_ratio="~", mem_fragmentation_bytes="~",
       available_system_memory="~", dbN="~", options=ALONE)
def fill(stage):
    stage.c.ok("DEBUG", "POPULATE", "100000", "key", "200")
    yield


# A server of its own: where others' scripts have run, Lua may collect their garbage meanwhile.
@moves(options=ALONE, used_memory_lua="+", used_memory_lua_human="~",
       used_memory_vm_eval="+", number_of_cached_scripts=40, used_memory_vm_total="+", used_memory_vm_total_human="~")
def load_scripts(stage):
    for n in range(40):
        stage.c.call("SCRIPT", "LOAD", "local t = {} " + "t[1] = %d " % n * 300 + "return t")
    yield
    stage.c.ok("SCRIPT", "FLUSH")


@moves(options=ALONE, number_of_functions=1, number_of_libraries=1, used_memory_functions="+",
       used_memory_vm_functions="+",
       used_memory_scripts="+", used_memory_scripts_human="~")
def load_library(stage):
    stage.c.call("FUNCTION", "LOAD", LIBRARY)
    yield
    stage.c.ok("FUNCTION", "FLUSH")


@moves(maxmemory="+", maxmemory_human="~", maxmemory_policy="=allkeys-lru", in_reset=False)
def limit(stage):
    stage.c.ok("CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru")
    yield
    stage.c.ok("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction")


@moves(evicted_keys="+")
def evict(stage):
    used = int(stage.look().text("used_memory"))
    stage.c.ok("CONFIG", "SET", "maxmemory", used + 1_000_000, "maxmemory-policy", "allkeys-random")
    for n in range(300):
        stage.c.ok("SET", "evicted:%d" % n, "x" * 10_000)
    yield
    stage.c.ok("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction")


@moves(lazyfreed_objects="+")
def flush(stage):
    stage.c.ok("DEBUG", "POPULATE", "1000")
    stage.c.ok("FLUSHALL", "ASYNC")
    yield


# ---- persistence ----

def delayed(stage, value):
    stage.c.ok("CONFIG", "SET", "rdb-key-save-delay", value)


def slow_child(stage, *commands):
    """What the child of the first one writes takes seconds; the delay ends with this."""
    stage.c.ok("DEBUG", "POPULATE", "20000")
    delayed(stage, "200")
    for command in commands:
        stage.c.call(command)
    yield
    delayed(stage, "0")


@moves(options={"save": "3600 100000"}, rdb_bgsave_in_progress="=1", rdb_current_bgsave_time_sec="+", rdb_saves=1,
       current_save_keys_total="+", current_save_keys_processed="+", current_fork_perc="+", current_cow_size="+",
       current_cow_peak="+", total_forks=1, latest_fork_usec="+")
def saving(stage):
    return slow_child(stage, "BGSAVE")


@moves(options={"save": "3600 100000"}, rdb_changes_since_last_save=2)
def change(stage):
    stage.c.call("MSET", "a", "1", "b", "2")
    yield


@moves(options=ALONE, rdb_last_save_time="+", rdb_last_bgsave_time_sec="+", rdb_last_cow_size="+",
       rdb_saves=3, total_forks=1)
def saved(stage):
    stage.c.ok("SET", "a", "1")
    stage.c.ok("SAVE")
    stage.c.ok("SAVE")
    time.sleep(max(0.0, int(stage.look().text("rdb_last_save_time")) + 1.01 - time.time()))
    stage.c.call("BGSAVE")
    yield


@moves(options={"save": "3600 100000"}, rdb_saves=0, rdb_changes_since_last_save=0, rdb_last_load_keys_loaded=1)
def files_that_are_no_saves(stage):
    stage.c.ok("SET", "a", "1")
    stage.c.ok("FLUSHALL")
    stage.c.ok("SET", "a", "1")
    stage.c.ok("DEBUG", "RELOAD")
    yield


@moves(options=ALONE, rdb_last_bgsave_status="=err", rdb_saves=1)
def cannot_save(stage):
    directory = stage.c.call("CONFIG", "GET", "dir")[1].decode()
    inner = os.path.join(directory, "gone")
    os.mkdir(inner)
    stage.c.ok("CONFIG", "SET", "dir", inner)
    shutil.rmtree(inner)
    stage.c.call("BGSAVE")
    yield
    stage.c.ok("CONFIG", "SET", "dir", directory)


@moves(options=ALONE, rdb_last_load_keys_loaded=5, rdb_last_load_keys_expired=1)
def reload(stage):
    stage.c.ok("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    stage.c.ok("DEBUG", "POPULATE", "5")
    stage.c.ok("SET", "over", "1", "PX", "300")
    stage.c.ok("SAVE")
    time.sleep(0.31)
    stage.c.ok("DEBUG", "RELOAD", "NOSAVE")
    yield


@moves(options=ALONE, aof_enabled="=1", aof_rewrites=2, aof_last_rewrite_time_sec="+",
       aof_last_cow_size="+", aof_current_size="~", aof_base_size="~", total_forks=2)
def log(stage):
    stage.c.ok("CONFIG", "SET", "appendonly", "yes")
    eventually(lambda: stage.look().text("aof_last_rewrite_time_sec") != "-1", "the first")
    stage.c.ok("SET", "a", "1")
    stage.c.call("BGREWRITEAOF")
    yield


@moves(options=ALONE, aof_rewrite_in_progress="=1", aof_current_rewrite_time_sec="+",
       current_save_keys_total="+")
def rewriting(stage):
    return slow_child(stage, "BGREWRITEAOF")


@moves(options={"appendonly": "yes"}, aof_rewrite_scheduled="=1", aof_pending_rewrite="=1")
def scheduled(stage):
    return slow_child(stage, "BGSAVE", "BGREWRITEAOF")


@moves(options={"appendonly": "yes"}, aof_last_bgrewrite_status="=err", aof_rewrites_consecutive_failures="+")
def rewrite_is_killed(stage):
    stage.c.ok("DEBUG", "POPULATE", "20000")
    delayed(stage, "1000")
    stage.c.call("BGREWRITEAOF")
    for child in eventually(lambda: children_of(stage.server.pid), "a child"):
        os.kill(child, signal.SIGKILL)
    delayed(stage, "0")
    yield
