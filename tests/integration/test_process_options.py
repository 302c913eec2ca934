"""The process among others: its title, its place in the kernel's order of victims, its cores, the
allocator's threads."""

import os
import subprocess

import pytest

from lib.bounds import eventually, scaled
from lib.resp import Connection
from lib.server import children_of, free_port, server_path

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]


def title(server):
    with open("/proc/%d/cmdline" % server.pid, "rb") as file:
        return file.read().rstrip(b"\0").decode()


def proc(pid, name):
    with open("/proc/%d/%s" % (pid, name), encoding="utf-8") as file:
        return file.read()


def threads_of(server):
    """name -> the cores it may run on, of each thread; numbers are left off the names."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % server.pid):
        fields = dict(line.split(":", 1) for line in proc(server.pid, "task/%s/status" % tid)
                      .splitlines() if ":" in line)
        name = fields["Name"].strip().rstrip("0123456789")
        found.setdefault(name, []).append(fields["Cpus_allowed_list"].strip())
    return found


# -- the title

def test_title(make_server):
    server = make_server()
    assert title(server) == "%s 127.0.0.1:%d" % (server_path(), server.port)
    assert proc(server.pid, "comm") == "keydb-server\n"  # pgrep, killall
    with server.connect() as c:
        c.ok("CONFIG", "SET", "proc-title-template",
             "{title}|{listen-addr}|{server-mode}|{port}|{tls-port}|{unixsocket}|{config-file}")
    assert title(server) == "%s|127.0.0.1:%d||%d|0||-" % (server_path(), server.port, server.port)


def test_title_of_a_unix_socket_with_a_file(make_server):
    server = make_server(config="proc-title-template 'db {listen-addr} {config-file} {server-mode}'\n",
                         options={"port": "0", "unixsocket": "s.sock"})
    path = os.path.realpath(server.file("server.conf"))
    assert title(server) == "db s.sock %s" % path


def test_a_long_title_is_cut_and_the_environment_stays(make_server):
    server = make_server(start=False)
    server.environment = {"KEYDB_TEST_MARK": "m" * 300}
    server.start()
    with server.connect() as c:
        c.ok("CONFIG", "SET", "proc-title-template", "x" * 100000)
        assert set(title(server)) == {"x"} and len(title(server)) >= 300
        c.ok("CONFIG", "SET", "proc-title-template", "short")
        assert title(server) == "short"
        assert c.call("PING") == b"PONG"


def test_title_left_alone(make_server):
    server = make_server({"set-proc-title": "no"})
    assert title(server).split("\0")[:3] == [server_path(), "--port", str(server.port)]
    with server.connect() as c:
        c.ok("CONFIG", "SET", "proc-title-template", "other")
    assert title(server).split("\0")[0] == server_path()


def slow_save(server):
    """A child that takes its time; its pid."""
    with server.connect() as c:
        c.ok("DEBUG", "POPULATE", "300000", "key", "500")
        c.call("BGSAVE")
    return eventually(lambda: children_of(server.pid), "a child saves")[0]


def of_child(server, look):
    """What look(pid) finds in a saving child, which may be over before it was looked at."""
    for _ in range(20):
        try:
            return look(slow_save(server))
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise AssertionError("each child had gone before it was seen")


def test_children_have_titles_cores_and_scores_of_their_own(make_server):
    core = max(os.sched_getaffinity(0))
    server = make_server({"bgsave_cpulist": str(core), "oom-score-adj": "absolute",
                          "oom-score-adj-values": ["100", "200", "800"]}, files=["dump.rdb"])
    wanted = ("keydb-rdb-bgsave 127.0.0.1:%d" % server.port, "800\n", {core})

    def look(pid):
        def all_three():
            cmdline = proc(pid, "cmdline").rstrip("\0")
            return (cmdline, proc(pid, "oom_score_adj"), os.sched_getaffinity(pid)) == wanted
        return eventually(all_three, "the child's title, score and cores")

    assert of_child(server, look)


# -- who goes first when memory is short

def score(server):
    return int(proc(server.pid, "oom_score_adj"))


def test_oom_score(make_server):
    server = make_server()
    start = score(server)
    with server.connect() as c:
        c.ok("CONFIG", "SET", "oom-score-adj-values", "100 200 300", "oom-score-adj", "absolute")
        assert score(server) == 100
        c.ok("CONFIG", "SET", "oom-score-adj-values", "150 200 300")
        assert score(server) == 150
        c.ok("CONFIG", "SET", "oom-score-adj", "yes")
        assert c.call("CONFIG", "GET", "oom-score-adj")[1] == b"yes"
        assert score(server) == min(1000, start + 150)
        c.ok("CONFIG", "SET", "oom-score-adj", "no")
        assert score(server) == start


def test_oom_score_goes_with_the_role(make_server):
    primary = make_server()
    server = make_server({"oom-score-adj": "absolute", "oom-score-adj-values": ["0", "200", "800"]},
                         files=["dump.rdb"])
    assert score(server) == 0
    with server.connect() as c:
        c.ok("REPLICAOF", "127.0.0.1", str(primary.port))
        eventually(lambda: score(server) == 200, "a replica's score")
        eventually(lambda: server.info("replication")["master_link_status"] == "up", "link", 30)
        c.ok("REPLICAOF", "NO", "ONE")  # refused while it loads
        eventually(lambda: score(server) == 0, "a primary's score")


# -- cores

def test_cores_by_work(make_server):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("the machine lets this process use one core only")
    server = make_server({"server-threads": "3", "server_cpulist": str(cores[0]),
                          "bio_cpulist": "%d-%d" % (cores[1], cores[1])})

    def all_are_there():
        """A thread takes its name and its cores itself, when it gets to run."""
        found = threads_of(server)
        return found.get("server-") == [str(cores[0])] * 3 and set(found["keydb-server"]) == {str(cores[0])} and \
            found.get("reclaim") == found.get("aof") == [str(cores[1])]
    eventually(all_are_there, "each on its cores")


def test_background_threads_are_not_confined_with_the_servers(make_server):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("the machine lets this process use one core only")
    free = proc(os.getpid(), "status").split("Cpus_allowed_list:")[1].split()[0]
    server = make_server({"server_cpulist": str(cores[0])})

    def all_are_there():
        found = threads_of(server)
        return set(found.get("server-", [])) == {str(cores[0])} and found.get("reclaim") == [free]
    eventually(all_are_there, "each on its cores")


def test_cores_that_are_not_there_are_told(make_server):
    server = make_server({"server_cpulist": "1023"})
    assert "server_cpulist" in server.output()
    with server.connect() as c:
        assert c.call("PING") == b"PONG"


# -- the allocator's threads

def test_allocators_threads(make_server):
    server = make_server()
    with server.connect() as c:
        if not c.call("INFO", "memory").count(b"mem_allocator:jemalloc"):
            pytest.skip("this build has a sanitizer's allocator")
        assert c.call("DEBUG", "MALLCTL", "background_thread") == 1
        c.ok("CONFIG", "SET", "jemalloc-bg-thread", "no")
        assert c.call("DEBUG", "MALLCTL", "background_thread") == 0
        c.ok("CONFIG", "SET", "jemalloc-bg-thread", "yes")
        assert c.call("DEBUG", "MALLCTL", "background_thread") == 1
    server = make_server({"jemalloc-bg-thread": "no"})
    with server.connect() as c:
        assert c.call("DEBUG", "MALLCTL", "background_thread") == 0


# -- in the background

def start_behind(folder, port):
    return subprocess.run([server_path(), "--port", str(port), "--bind", "127.0.0.1", "--daemonize", "yes"], cwd=folder,
                          timeout=scaled(30), capture_output=True, text=True, check=False)


def test_the_command_ends_when_connections_can_be_made(tmp_path, make_server):
    port = free_port()
    assert start_behind(tmp_path, port).returncode == 0
    with Connection(("127.0.0.1", port)) as c:
        assert c.call("PING") == b"PONG"
        c.send("SHUTDOWN", "NOSAVE")
        c.read_to_end()
    done = start_behind(tmp_path, make_server().port)
    assert done.returncode == 1 and "did not start" in done.stderr
