"""Metrics by HTTP: the formats, INFO's figures in them, who may see them, and where the server listens for it."""

import re
import socket

import pytest

from integration.test_debug_restart import anew
from integration.test_loading import Loading, SLOWLY, data, finish  # noqa: F401 (a fixture)
from lib.bounds import eventually
from lib.metrics import OPEN_METRICS, ask, parse, scrape, start_metered, value
from lib.resp import Error
from lib.server import children_of, free_port, holds_port, listens, parse_info

pytestmark = pytest.mark.usefixtures("ours_only")

HUMAN = "the same as the field without _human, for people"
# Numbers of INFO that are no metric, with the reason.
LEFT_OUT = {
    "server": {"arch_bits": "never changes", "redis_git_dirty": "never changes", "uptime_in_days": "uptime_in_seconds",
               "configured_hz": "hz", "redis_git_sha1": "a name", "redis_build_id": "a label of redis_instance_info",
               "tcp_port": "a label of redis_instance_info"},
    "clients": {"current_client_thread": "the thread of whoever asks: nobody's here",
                "thread_N_clients": "keydb_thread_clients"},
    "replication": {"master_port": "a label", "master_replid": "a name", "master_replid2": "a name"},
    "threads": {"lock_shared_acquisitions": "the sum over the threads", "lock_exclusive_acquisitions": "the sum",
                "lock_shared_held_ns": "the sum", "lock_exclusive_held_ns": "the sum", "lock_waited_ns": "the sum",
                "lock_parked": "the sum", "lock_shared_held_ns_per_acquisition": "a quotient",
                "lock_exclusive_held_ns_per_acquisition": "a quotient", "lock_shared_held_ns_per_command": "a quotient",
                "lock_exclusive_held_ns_per_command": "a quotient", "lock_waited_ns_per_acquisition": "a quotient"},
}
PARTS_LEFT_OUT = {"usec_per_call": "a quotient", "batch_mean": "a quotient", "port": "a label"}


@pytest.fixture
def start(make_server):
    def make(options=None, **more):
        return start_metered(make_server, options, **more)
    return make


def sections(text):
    """{section: {field: value}}"""
    result, section = {}, None
    for line in text.decode("utf-8", "replace").splitlines():
        if line.startswith("# "):
            section = result.setdefault(line[2:].lower(), {})
        elif ":" in line:
            at = line.rindex(":") if line.startswith("errorstat_") else line.index(":")
            section[line[:at]] = line[at + 1:]
    return result


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?%?", text) is not None


def claimed(families):
    """What the HELP lines say: {(section, field)} and {(section, prefix, part)}."""
    plain, parts = {}, {}
    for family in families.values():
        found = re.fullmatch(r"INFO (\w+): (\w+)(\*?)(?:, (\w+))?", family.help)
        if found and found.group(3):
            parts[found.group(1), found.group(2), found.group(4)] = family
        elif found:
            plain[found.group(1), found.group(2)] = family
    return plain, parts


def busy_server(start, make_server):
    """One with something in every section."""
    server = start({"latency-monitor-threshold": "1", "slowlog-log-slower-than": "0", "appendonly": "yes",
                    "min-replicas-to-write": "1"}, files=["appendonlydir", "dump.rdb"])
    with server.connect() as c:
        c.ok("CONFIG", "SET", "min-replicas-to-write", "0")
        c.ok("SET", "a", "1", "EX", 1000)
        c.call("HSET", "h", "f", "v")
        c.call("HEXPIRE", "h", 1000, "FIELDS", 1, "f")
        c.call("GET", "a")
        c.call("NOSUCH")
        c.call("EVAL", 'return redis.error_reply("MY\\"E:\\\\\\255 x")', 0)
        c.ok("CONFIG", "SET", "min-replicas-to-write", "1")
        c.call("DEBUG", "SLEEP", "0.02")
        c.call("GET", "a")
    return server


def test_every_number_of_info(start, make_server):
    server = busy_server(start, make_server)
    families = scrape(server.metrics_port)
    plain, parts = claimed(families)
    with server.connect() as c:
        info = sections(c.call("INFO", "everything"))
    missing = []
    for section, fields in info.items():
        for name, text in fields.items():
            general = re.sub(r"(?<=^thread_)\d+(?=_clients$)", "N", name)
            left_out = LEFT_OUT.get(section, {})
            if (section, name) in plain or general in left_out or name.endswith("_human"):
                continue
            kinds = [(prefix, part) for in_section, prefix, part in parts if in_section == section and name.startswith(prefix)]
            if kinds and section != "latencystats":
                told = {part for _, part in kinds}
                missing += [(section, name, part) for part, number in (p.split("=") for p in text.split(","))
                            if is_number(number) and part not in told and part not in PARTS_LEFT_OUT]
            elif not kinds and is_number(text):
                missing.append((section, name))
    assert not missing, "neither exported nor left out: %s" % missing
    for section, names in LEFT_OUT.items():
        for name in names:
            assert (section, name) not in plain, "left out and exported: %s" % name


def test_values_are_infos(start, make_server):
    """A metric lies between what INFO says before and after."""
    server = busy_server(start, make_server)
    with server.connect() as c:
        eventually(lambda: not sections(c.call("INFO", "everything"))["keyspace"]["db0"].count("avg_ttl=0,"),
                   "a mean time to live")
        before = sections(c.call("INFO", "everything"))
        families = scrape(server.metrics_port)
        after = sections(c.call("INFO", "everything"))
    plain, _ = claimed(families)
    compared = 0
    for (section, name), family in plain.items():
        first, last = before[section].get(name), after[section].get(name)
        if first is None or last is None or not is_number(first) or name == "server_time_usec":
            continue
        (shown,) = family.samples.values()
        if family.help.startswith("INFO") and not family.name.endswith("_info"):
            bounds = sorted(float(text.rstrip("%")) for text in (first, last))
            steady = section != "memory" and first == last and not name.startswith(("instant", "avg_", "aof_pending"))
            if family.type == "counter" or steady:
                assert bounds[0] <= float(shown) <= bounds[1], (name, first, shown, last)
                compared += 1
    assert compared > 100
    assert value(families, "redis_up") == 1
    assert value(families, "redis_db_keys", db="db0") == 2
    assert value(families, "redis_db_keys_expiring", db="db0") == 1
    assert 900 < value(families, "redis_db_avg_ttl_seconds", db="db0") <= 1000
    assert value(families, "redis_commands_total", cmd="set") == 1
    assert value(families, "redis_commands_total", cmd="config|set") == 2
    assert value(families, "redis_errors_total", err="ERR") == 1
    assert value(families, "redis_errors_total", err='MY"E_\\_') == 1
    assert value(families, "redis_rdb_last_bgsave_status") == 1
    assert value(families, "redis_slowlog_length") > 0
    with server.connect() as c:
        def spike():
            """What is told between two looks that say the same."""
            first = c.call("LATENCY", "LATEST")
            shown = value(scrape(server.metrics_port), "redis_latency_spike_duration_seconds", event_name="command")
            latest = {event[0]: event[2] for event in first if c.call("LATENCY", "LATEST") == first}
            return b"command" in latest and (shown * 1000, latest[b"command"])
        shown_ms, latest_ms = eventually(spike, "nothing is slow meanwhile")
        assert shown_ms == pytest.approx(latest_ms)
    info = dict(next(iter(families["redis_instance_info"].samples))[1])
    assert info["role"] == "master" and info["run_id"] == before["server"]["run_id"]


def alone(families):
    """They, when there is one client."""
    return sum(map(float, families["keydb_thread_clients"].samples.values())) == 1 and families


def test_threads(start):
    server = start()
    with server.connect() as c:
        for _ in range(100):
            c.call("PING")
        families = eventually(lambda: alone(scrape(server.metrics_port)), "whoever asked at the start has gone")
        for thread in range(server.threads):
            value(families, "keydb_thread_lock_wait_seconds_total", thread=str(thread))
            assert value(families, "keydb_thread_cpu_seconds_total", thread=str(thread)) >= 0

        def total(name):
            return sum(float(text) for text in families[name].samples.values())
        assert total("keydb_thread_clients") == 1 and total("keydb_thread_commands_total") >= 100
        assert total("keydb_thread_cpu_seconds_total") > 0


def test_histograms_are_latency_histograms(start):
    server = start()
    with server.connect() as c:
        for _ in range(50):
            c.call("SET", "a", "b")
        shown = c.call("LATENCY", "HISTOGRAM", "set")
        families = scrape(server.metrics_port)
    told = dict(zip(shown[1][0::2], shown[1][1::2]))
    steps = dict(zip(told[b"histogram_usec"][0::2], told[b"histogram_usec"][1::2]))
    for edge, count in steps.items():
        assert value({"x": only(families, "_bucket")}, "x", cmd="set", le=str(edge)) == count
    assert value({"x": only(families, "_count")}, "x", cmd="set") == told[b"calls"] == 50
    quantiles = families["redis_latency_percentiles_usec"]
    assert quantiles.type == "summary"
    assert value({"x": quantiles}, "x", cmd="set", quantile="0.5") > 0


def only(families, suffix):
    family = families["redis_commands_latencies_usec"]

    class Part:
        samples = {key: text for key, text in family.samples.items() if key[0] == family.name + suffix}
    return Part


def test_openmetrics(start):
    server = start()
    accept = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,*/*;q=0.1"
    answer = ask(server.metrics_port, headers={"Accept": accept})
    assert answer.status == 200 and answer.headers["Content-Type"] == OPEN_METRICS
    families = parse(answer.body.decode("utf-8"), is_open=True)
    assert families["redis_commands_processed"].type == "counter"
    assert families["redis_connected_clients"].type == "gauge"
    assert families.keys() <= {name.replace("_total", "") for name in scrape(server.metrics_port)} | \
        set(scrape(server.metrics_port))


def test_replication(start):
    primary = start()
    replica = start({"replicaof": ["127.0.0.1", str(primary.port)]})
    eventually(lambda: replica.info("replication").get("master_link_status") == "up", "the link")
    eventually(lambda: "redis_connected_slave_lag_seconds" in scrape(primary.metrics_port), "the replica")
    families = scrape(primary.metrics_port)
    assert 0 <= value(families, "redis_connected_slave_lag_seconds", slave_ip="127.0.0.1", slave_port=str(replica.port)) < 60
    families = scrape(replica.metrics_port)
    assert value(families, "redis_master_link_up", master_host="127.0.0.1", master_port=str(primary.port)) == 1
    assert value(families, "redis_slave_info", read_only="1") == 1


@pytest.mark.parametrize("prefix, options", [("repl_backlog_disk_", {}),
                                             ("active_log_disk_", {"active-replica": "yes"})])
def test_what_is_on_disk(start, play, prefix, options):
    server = start(dict(options, **{"repl-backlog-disk-reserve": "1mb", "repl-diskless-sync-delay": "0"}),
                   files=["active-node"] if options else [])
    if not options:
        play(server, ("capa", "eof")).full()
    eventually(lambda: server.info("replication").get(prefix + "state") == "ready", "the file")

    def told():
        return {name: text for name, text in server.info("replication").items() if name.startswith(prefix)}
    seen = {}

    def calm():
        """A node writes into its log when it likes: nothing has come between two looks that say the same."""
        seen.update(first=told(), families=scrape(server.metrics_port))
        return seen["first"] == told()
    eventually(calm, "nothing is written meanwhile")
    plain, _ = claimed(seen["families"])
    assert len(seen["first"]) >= 5
    for name, text in seen["first"].items():
        shown = value(seen["families"], plain["replication", name].name)
        assert shown == float({"ready": "1"}.get(text, text)), name


# ---- who may see it

def test_without_a_password(start):
    server = start()
    assert ask(server.metrics_port).status == 200
    assert ask(server.metrics_port, user=("default", "anything")).status == 200
    assert ask(server.metrics_port, user=("nobody", "x")).status == 401
    assert ask(server.metrics_port, headers={"Authorization": "Basic !!!!"}).status == 401
    assert ask(server.metrics_port, headers={"Authorization": "Digest x"}).status == 401
    assert ask(server.metrics_port, headers={"Authorization": ""}).status == 401


def test_users(start):
    server = start(password="secret", options={"requirepass": "secret"})
    port = server.metrics_port
    with server.connect() as c:
        c.ok("ACL", "SETUSER", "watcher", "on", ">see:it", "-@all", "+info")
        c.ok("ACL", "SETUSER", "clerk", "on", ">p", "+@all", "-info", "~*")
        c.ok("ACL", "SETUSER", "gone", "off", ">p", "+@all")
        c.ok("ACL", "SETUSER", "part", "on", ">p", "-@all", "+info", "+slowlog|get", "+scan", "+memory|usage", "~only:*")
        c.ok("ACL", "LOG", "RESET")
        for path in ("/metrics", "/", "/status.json", "/big-keys.json", "/nosuch"):
            refused = ask(port, path)
            assert refused.status == 401 and refused.headers["WWW-Authenticate"].startswith('Basic realm="keydb"')
            assert b"redis" not in refused.body
        assert ask(port, user=("default", "secret")).status == 200
        assert ask(port, user=("default", "wrong")).status == 401
        assert ask(port, user=("watcher", "see:it")).status == 200
        assert ask(port, user=("clerk", "p")).status == 403
        assert ask(port, user=("gone", "p")).status == 401
        assert ask(port, token="secret").status == 401
        assert ask(port, user=("", "")).status == 401
        log = [dict(zip(entry[0::2], entry[1::2])) for entry in c.call("ACL", "LOG")]
        assert {(e[b"reason"], e[b"username"], e[b"object"]) for e in log} == {
            (b"auth", b"default", b"metrics"), (b"auth", b"gone", b"metrics"), (b"auth", b"", b"metrics"),
            (b"command", b"clerk", b"info")}
        seen = ask(port, "/status.json", user=("watcher", "see:it")).json()
        assert seen["slowlog"] is None and seen["sees_keys"] is False
        assert ask(port, "/big-keys.json", user=("watcher", "see:it")).status == 403
        seen = ask(port, "/status.json", user=("part", "p")).json()
        assert seen["slowlog"] is not None and seen["sees_keys"] is False
        assert ask(port, "/status.json", user=("default", "secret")).json()["sees_keys"] is True
        assert c.call("ACL", "DELUSER", "watcher") == 1
        assert ask(port, user=("watcher", "see:it")).status == 401


def test_token(start, tmp_path):
    config = "metrics-token 'a b\"c'\nsave ''\n"
    server = start(config=config)
    port = server.metrics_port
    assert ask(port).status == 401
    assert ask(port, token='a b"c').status == 200
    assert ask(port, user=("", 'a b"c')).status == 200
    assert ask(port, user=("other", 'a b"c')).status == 401
    assert ask(port, token="a b").status == 401
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "metrics-token") == [b"metrics-token", b'a b"c']
        c.ok("CONFIG", "SET", "slowlog-log-slower-than", "0")
        c.ok("CONFIG", "SET", "metrics-token", "quite-hidden")
        assert ask(port, token='a b"c').status == 401
        assert ask(port, token="quite-hidden").status == 200
        assert b"quite-hidden" not in b"".join(word for entry in c.call("SLOWLOG", "GET", -1) for word in entry[3])
        c.ok("CONFIG", "REWRITE")
        c.ok("CONFIG", "SET", "metrics-token", "")
        assert ask(port).status == 200 and ask(port, token="quite-hidden").status == 401
    assert "metrics-token quite-hidden" in server.read("server.conf")
    assert "quite-hidden" not in server.output()


def test_names_of_others(start):
    """A page of another site reaches this machine by its own name: it gets nothing that it could read."""
    server = start()
    for path in ("/", "/status.json", "/big-keys.json"):
        for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example"):
            assert ask(server.metrics_port, path, headers={"Host": host}).status == 403
        for host in ("127.0.0.1:%d" % server.metrics_port, "localhost", "[::1]:9", "10.1.2.3"):
            assert ask(server.metrics_port, path, headers={"Host": host}).status == 200
        assert ask(server.metrics_port, path, headers={"Host": "db.example"}, user=("default", "x")).status == 200
    assert ask(server.metrics_port, headers={"Host": "db.example"}).status == 200


def test_protected_mode(start):
    """From another machine, nobody comes in without a word while there is no password."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            outside = probe.getsockname()[0]
        except OSError:
            pytest.skip("no address but the loopback's")
    if outside.startswith("127."):
        pytest.skip("no address but the loopback's")
    server = start({"metrics-bind": outside})
    assert ask(server.metrics_port, host=outside).status == 401
    with server.connect() as c:
        c.ok("CONFIG", "SET", "protected-mode", "no")
        assert ask(server.metrics_port, host=outside).status == 200


# ---- where it listens

def answers(port, host="127.0.0.1"):
    try:
        return ask(port, host=host).status == 200
    except OSError:
        return False


def test_off_unless_wanted(make_server):
    server = make_server()
    with server.connect() as c:
        assert c.call("CONFIG", "GET", "metrics-*") == [b"metrics-bind", b"127.0.0.1", b"metrics-port", b"0",
                                                        b"metrics-token", b""] or \
            sorted(c.call("CONFIG", "GET", "metrics-*")[0::2]) == [b"metrics-bind", b"metrics-port", b"metrics-token"]


def test_moving(make_server):
    server = make_server(config="save ''\n")
    first, second = free_port(), free_port()
    with server.connect() as c:
        c.ok("CONFIG", "SET", "metrics-port", first)
        assert answers(first)
        c.ok("CONFIG", "SET", "metrics-port", second)
        assert answers(second)
        eventually(lambda: not answers(first), "the first is closed")
        c.ok("CONFIG", "SET", "metrics-bind", "*")
        # Who came to the socket before it is refused when that is closed.
        eventually(lambda: answers(second) and answers(second, "127.0.0.2"), "all addresses")
        c.ok("CONFIG", "SET", "metrics-bind", "127.0.0.2", "metrics-port", first)
        assert answers(first, "127.0.0.2") and not answers(first)
        eventually(lambda: not answers(second), "the second is closed")
        c.ok("CONFIG", "SET", "metrics-bind", "127.0.0.1")
        c.ok("CONFIG", "REWRITE")
        c.ok("CONFIG", "SET", "metrics-port", 0)
        eventually(lambda: not answers(first), "off")
        c.ok("CONFIG", "SET", "metrics-port", second)
        assert answers(second)
    assert "metrics-port %d" % first in server.read("server.conf")


def test_a_port_that_is_taken(start):
    server = start()
    port = server.metrics_port
    with socket.socket() as other, server.connect() as c:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert isinstance(c.call("CONFIG", "SET", "metrics-port", taken), Error)
        assert c.call("CONFIG", "GET", "metrics-port")[1] == b"%d" % port and answers(port)
        assert isinstance(c.call("CONFIG", "SET", "metrics-port", server.port), Error)
        assert isinstance(c.call("CONFIG", "SET", "metrics-bind", "no.address"), Error)
        assert isinstance(c.call("CONFIG", "SET", "metrics-bind", ""), Error)
        # All of a CONFIG SET or nothing of it, whichever way round it is said.
        free = free_port()
        assert isinstance(c.call("CONFIG", "SET", "metrics-port", free, "port", taken), Error)
        assert isinstance(c.call("CONFIG", "SET", "port", taken, "metrics-port", free), Error)
        assert answers(port) and not answers(free)
        assert isinstance(c.call("CONFIG", "SET", "metrics-port", 65536), Error)
        assert answers(port)


def test_start_fails(make_server):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        server = make_server({"metrics-port": str(other.getsockname()[1])}, start=False)
        assert "Can't listen for metrics" in server.start_fails()


# ---- with the rest of the server

def those_of(count, families):
    """They, when there are so many clients."""
    return value(families, "redis_connected_clients") == count and families


def test_while_a_script_takes_long(start):
    server = start({"busy-reply-threshold": "10"})
    with server.connect() as c, server.connect() as other:
        c.ok("SET", "a", "b")
        c.send("EVAL", "while true do end", 0)
        eventually(lambda: isinstance(other.call("PING"), Error), "busy")
        families = eventually(lambda: those_of(2, scrape(server.metrics_port)), "whoever asked at the start has gone")
        assert value(families, "redis_up") == 1 and "redis_db_keys" not in families
        status = ask(server.metrics_port, "/status.json").json()
        assert status["whole"] is False and "keyspace" not in status["info"]
        other.ok("SCRIPT", "KILL")
        assert isinstance(c.read(), Error)
        eventually(lambda: "redis_db_keys" in scrape(server.metrics_port), "whole again")


def test_a_script_that_never_says_so(start):
    """Nor waits whoever asks for one that is not over its threshold."""
    server = start({"busy-reply-threshold": "0"})
    with server.connect() as c:
        c.ok("SET", "a", "b")
        c.send("EVAL", "redis.log(redis.LOG_WARNING, 'it runs') local t = redis.call('TIME') "
                       "local e = t[1] * 1000000 + t[2] + 4000000 "
                       "repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] > e "
                       "return 1", 0)
        eventually(lambda: "it runs" in server.output(), "the script")
        assert "redis_db_keys" not in scrape(server.metrics_port)
        assert c.read() == 1
        eventually(lambda: "redis_db_keys" in scrape(server.metrics_port), "whole again")


def test_while_loading(threads, data):  # noqa: F811 (the fixture)
    port = free_port()
    server = Loading(threads=threads, options=dict(SLOWLY, **{"metrics-port": str(port)}))
    server.expected_files.add("dump.rdb")
    with open(server.file("dump.rdb"), "wb") as file:
        file.write(data)
    try:
        server.start()
        families = eventually(lambda: answers(port) and scrape(port), "metrics")
        assert value(families, "redis_loading_dump_file") == 1
        assert value(families, "redis_loading_total_bytes") == len(data)
        finish(server)
        assert value(scrape(port), "redis_loading_dump_file") == 0
        server.stop()
        assert not server.problems(), server.problems()
    finally:
        server.kill()
        server.remove()


def test_children_do_not_keep_the_port(start):
    server = start({"rdb-key-save-delay": "1000000"}, files=["dump.rdb"])
    with server.connect() as c:
        for n in range(20):
            c.ok("SET", n, n)
        c.call("BGSAVE")
        child = eventually(lambda: children_of(server.pid), "the child")[0]
        assert listens(server.pid, server.metrics_port)
        assert answers(server.metrics_port)
        eventually(lambda: not holds_port(child, server.metrics_port), "let go of")


def test_restart(start):
    server = start()
    for _ in range(2):
        anew(server, "RESTART")
        assert answers(server.metrics_port)


def test_shutdown_beside_connections(start):
    server = start()
    with socket.create_connection(("127.0.0.1", server.metrics_port)) as open_one:
        open_one.sendall(b"GET /metrics HT")
        server.stop()
        assert not server.problems(), server.problems()
