"""The same as info_moves.py for the sections stats, replication, cpu, threads, and those with a line a command."""

from integration.info_moves import ALONE, moves
from lib.bounds import eventually
from lib.replica import MODERN
from lib.resp import Closed


@moves(total_commands_processed="+", total_net_input_bytes="+", total_net_output_bytes="+", total_reads_processed="+",
       total_writes_processed="+", keyspace_hits=200, keyspace_misses=100, instantaneous_ops_per_sec="+",
       instantaneous_input_kbps="+", instantaneous_output_kbps="+", eventloop_cycles="+", eventloop_duration_sum="+",
       eventloop_duration_cmd_sum="+", instantaneous_eventloop_cycles_per_sec="+",
       instantaneous_eventloop_duration_usec="~", used_cpu_user="+", used_cpu_sys="+",
       lock_shared_acquisitions="+", lock_shared_commands="+", lock_shared_held_ns="+",
       lock_shared_held_ns_per_acquisition="~", lock_shared_held_ns_per_command="~", lock_exclusive_acquisitions="+",
       lock_exclusive_commands="+", lock_exclusive_held_ns="+", lock_exclusive_held_ns_per_acquisition="~",
       lock_exclusive_held_ns_per_command="~", io_threaded_reads_processed="~",
       io_threaded_writes_processed="~", options={"io-threads": "2", "io-threads-do-reads": "yes", "save": "1000 100"})
def traffic(stage):
    clients = [stage.connect() for _ in range(20)]
    sleeper = stage.connect()
    stage.c.ok("SET", "k", "x" * 1000)
    while True:
        for round_number in range(10):
            if round_number % 5 == 0:  # so that all of them have something to be read when it is over
                sleeper.send("DEBUG", "SLEEP", "0.1")
            for c in clients:
                c.send("GET", "k")
                c.send("SET", "k%d" % id(c), "x" * 1000)
            for c in clients:
                c.read()
                c.read()
        assert [sleeper.read(), sleeper.read()] == [b"OK", b"OK"]
        for _ in range(100):
            stage.c.call("GET", "none")
        yield
        if not stage.again:
            return


@moves(**{"cmdstat_*": "~", "errorstat_*": "~", "latency_percentiles_usec_*": "~", "total_error_replies": 2})
def commands(stage):
    stage.c.call("NOSUCHTHING")
    stage.c.call("LPUSH")
    stage.c.call("GETEX", "k")
    yield


@moves(expired_keys="+", expired_stale_perc="+", expire_cycle_cpu_milliseconds="+", options=ALONE)
def expire(stage):
    stage.c.call("EVAL", "for i = 1, 30000 do redis.call('SET', 'e' .. i, 'x', 'PX', i % 700 + 1) end", 0)
    yield


@moves(expired_subkeys=2, dbN="~")
def members_expire(stage):
    stage.c.ok("SET", "key", "1")
    if stage.is_ours:
        stage.c.call("HSET", "h", "a", "1", "b", "2", "c", "3")
        stage.c.call("HPEXPIRE", "h", "1", "FIELDS", "2", "a", "b")
    yield


@moves(pubsub_channels=2, pubsub_patterns=1, pubsubshard_channels=1)
def subscribe(stage):
    c = stage.connect()
    c.hello(3)
    for words in (("SUBSCRIBE", "a", "b"), ("PSUBSCRIBE", "p*"), ("SSUBSCRIBE", "s")):
        c.send(*words)
    yield
    c.close()


@moves(rejected_connections="+", options={"maxclients": "3"})
def refuse(stage):
    for _ in range(5):
        try:
            stage.connect().call("PING")
        except (Closed, OSError):
            pass
    yield
    for c in stage.clients[1:]:
        c.close()


@moves(acl_access_denied_auth=1, acl_access_denied_cmd=1, acl_access_denied_key=1, acl_access_denied_channel=1,
       in_reset=False)
def denied(stage):
    if not stage.is_ours:
        yield  # the oracle is older than these fields
        return
    stage.c.ok("ACL", "SETUSER", "small", "on", ">secret", "-@all", "+get", "+publish", "+auth", "~mine", "resetchannels")
    c = stage.connect()
    c.call("AUTH", "small", "wrong")
    c.ok("AUTH", "small", "secret")
    for words in (("SET", "mine", "1"), ("GET", "yours"), ("PUBLISH", "channel", "m")):
        c.call(*words)
    yield
    c.close()
    stage.c.call("ACL", "DELUSER", "small")


@moves(dump_payload_sanitizations="+", in_reset=False)
def restore(stage):
    """A stream is packed whoever writes it."""
    stage.c.call("CONFIG", "SET", "sanitize-dump-payload", "yes")
    stage.c.call("XADD", "packed", "*", "a", "1")
    payload = stage.c.call("DUMP", "packed")
    stage.c.ok("RESTORE", "packed2", "0", payload)
    yield
    stage.c.call("CONFIG", "SET", "sanitize-dump-payload", "no")


# ---- replication ----

@moves(options={"repl-backlog-size": "1mb"}, connected_slaves=1, connected_clients=0, slaveN="~", sync_full=1,
       repl_backlog_active=1, repl_backlog_histlen="+", repl_backlog_first_byte_offset="+", master_repl_offset="+",
       total_net_repl_output_bytes="+", instantaneous_output_repl_kbps="+", mem_replication_backlog="+",
       mem_total_replication_buffers="+", mem_clients_slaves="+", mem_not_counted_for_evict="+", total_forks=1,
       rdb_last_bgsave_time_sec="+", rdb_last_cow_size="+", rdb_saves=0)
def replica_comes(stage):
    p = stage.play(stage.server, MODERN)
    offset = p.full()[1]
    eventually(lambda: (p.c.send("REPLCONF", "ACK", offset), "online" in stage.look().text("slaveN"))[1], "online")
    for n in range(60):
        stage.c.ok("SET", "k%d" % n, "x" * 200_000)
    yield
    while stage.again:  # this one has taken what it takes
        p.close()
        p = stage.play(stage.server, MODERN)
        p.full()
        stage.c.ok("SET", "k", "x" * 200_000)
        yield
    p.close()


@moves(options={"rdb-key-save-delay": "200"}, rdb_bgsave_in_progress="=1", rdb_current_bgsave_time_sec="+",
       current_save_keys_total="+", current_save_keys_processed="+", current_fork_perc="+", current_cow_size="+",
       current_cow_peak="+")
def transfer(stage):
    """A child that writes for replicas is one that saves."""
    stage.c.ok("DEBUG", "POPULATE", "20000")
    p = stage.play(stage.server, MODERN)
    p.c.send("PSYNC", "?", "-1")
    yield
    p.close()


@moves(options={"repl-backlog-size": "100kb"}, sync_partial_ok=1, sync_partial_err=1)
def partial(stage):
    p = stage.play(stage.server, MODERN)
    identity, offset = p.full()[:2]
    p.close()
    for asked in (identity, "f" * 40):
        again = stage.play(stage.server, MODERN)
        again.c.send("PSYNC", asked, offset + 1)
        again.line()
        if asked == identity:
            again.close()
    yield
    again.close()


@moves(pair=True, role="=slave", master_host="~", master_port="~", master_link_status="=up", master_replid="~",
       slave_read_repl_offset="~", slave_repl_offset="~", total_net_repl_input_bytes="+", master_repl_offset="+",
       instantaneous_input_repl_kbps="+", unexpected_error_replies=1, slave_priority="=50", slave_read_only="=0",
       replica_announced="=0", rdb_last_load_keys_loaded=2, master_last_io_seconds_ago="~", repl_backlog_active=1,
       repl_backlog_size="+", second_repl_offset=0, master_sync_in_progress="=0", slave_expires_tracked_keys=1)
def follow(stage):
    other = stage.connect(stage.other)
    other.call("MSET", "a", "1", "b", "2")
    stage.c.ok("CONFIG", "SET", "replica-priority", "50", "replica-read-only", "no", "replica-announced", "no",
               "repl-backlog-size", "2mb")
    stage.c.ok("REPLICAOF", "127.0.0.1", stage.other.port)
    eventually(lambda: stage.look().text("master_link_status") == "up", "up")
    stage.c.call("SADD", "wrong", "x")
    stage.c.ok("SET", "own", "v", "EX", "1000")
    other.call("LPUSH", "wrong", "x")
    while True:
        for n in range(20):
            other.ok("SET", "k%d" % n, "x" * 100_000)
        yield
        if not stage.again:
            break
    stage.c.ok("REPLICAOF", "NO", "ONE")


@moves(pair=True, master_replid2="~", second_repl_offset="+", master_replid="~")
def takes_over(stage):
    other = stage.connect(stage.other)
    stage.c.ok("REPLICAOF", "127.0.0.1", stage.other.port)
    eventually(lambda: stage.look().text("master_link_status") == "up", "up")
    other.ok("SET", "k", "v")
    eventually(lambda: stage.c.call("EXISTS", "k") == 1, "told")
    stage.c.ok("REPLICAOF", "NO", "ONE")
    yield


@moves(pair=True, master_link_status="=down", master_link_down_since_seconds="+")
def lost(stage):
    other = stage.connect(stage.other)
    stage.c.ok("REPLICAOF", "127.0.0.1", stage.other.port)
    eventually(lambda: stage.look().text("master_link_status") == "up", "up")
    other.ok("CONFIG", "SET", "requirepass", "secret")
    other.call("CLIENT", "KILL", "TYPE", "replica")
    yield
    other.ok("CONFIG", "SET", "requirepass", "")
    stage.c.ok("REPLICAOF", "NO", "ONE")


@moves(options={"min-replicas-to-write": "1"}, min_slaves_good_slaves=1)
def good_one(stage):
    p = stage.play(stage.server, MODERN)
    offset = p.full()[1]
    eventually(lambda: (p.c.send("REPLCONF", "ACK", offset), "online" in stage.look().text("slaveN"))[1], "online")
    yield
    p.close()
