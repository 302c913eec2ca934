"""keydb-cli's walks over the keyspace: --bigkeys, --memkeys and --hotkeys beside redis-cli 7.0.15, and
--keystats beside what redis-cli 7.4.1 was seen to print about the same figures. Types come in an order that
differs from run to run of redis-cli, so lines are compared sorted where there are several types."""

import os
import re
import signal
import subprocess
import threading

import pytest

from lib.cli import CLI, PATIENCE_S, THEIRS, Canned, Prompt, cli, run, same

pytestmark = pytest.mark.any_threads

# Without decay: a minute may end between two runs that are compared.
LFU = {"maxmemory-policy": "allkeys-lfu", "lfu-decay-time": "0", "enable-debug-command": "yes"}
SEED = b"""set a xx
set bbbbbb xxxxx
set "q\\"x \\xff y" 1
rpush l 1 2 3
hset h a b
zadd z 1 a 2 b
sadd s 1
xadd st 1-1 a b
"""


def sorted_lines(outcome):
    outcome.out = sorted(outcome.out.split(b"\n"))
    outcome.err = sorted(outcome.err.split(b"\n"))
    return outcome


def alike(port, *args, count=True):
    """Runs both, ours with pages of redis-cli's size, and compares all but the order."""
    theirs = sorted_lines(run(THEIRS, ["-p", port, *args]))
    ours = sorted_lines(run(CLI, ["-p", port, *args] + (["--count", 10] if count else [])))
    assert ours == theirs
    return ours


@pytest.fixture
def seeded(make_oracle):
    oracle = make_oracle(LFU)
    assert cli("-p", oracle.port, stdin=SEED).err == b""
    return oracle.port


MODES = ["--bigkeys", "--memkeys", "--memkeys-samples 0", "--memkeys-samples 3"]


def test_a_few_keys_of_all_types(seeded):
    for mode in MODES:
        outcome = alike(seeded, *mode.split(), count=False)
        assert outcome.status == 0 and b"Sampled 8 keys in the keyspace!" in outcome.out
        alike(seeded, *mode.split(), "--pattern", "[ab]*", count=False)
        alike(seeded, *mode.split(), "--quoted-pattern", '"q\\"*"', count=False)
        alike(seeded, *mode.split(), "-i", "0.01", count=False)
        alike(seeded, *mode.split(), "-n", "3", count=False)
    alike(seeded, "--bigkeys", "--raw")
    alike(seeded, "--bigkeys", "--csv")
    alike(seeded, "--bigkeys", "-3")


def test_many_keys(seeded):
    cli("-p", seeded, stdin=b"debug populate 3000\nselect 5\ndebug populate 200 other 500\n")
    for mode in MODES:
        alike(seeded, *mode.split())
        alike(seeded, *mode.split(), "-n", 5)
        # In pages of our own size the summary is the same.
        big = [line for line in cli("-p", seeded, *mode.split()).out.split(b"\n") if b"[" not in line]
        assert set(big) <= set(alike(seeded, *mode.split()).out)


def test_hot_keys(seeded):
    cli("-p", seeded, stdin=b"config set lfu-log-factor 0\n" + b"get a\n" * 20 + b"lrange l 0 -1\n" * 10)
    same("-p", seeded, "--hotkeys")
    cli("-p", seeded, "debug", "populate", "300")
    for args in [], ["-i", "0.01"]:
        theirs = run(THEIRS, ["-p", seeded, "--hotkeys"] + args)
        ours = run(CLI, ["-p", seeded, "--hotkeys", "--count", 10] + args)
        assert ours == theirs
        assert b'hot key found with counter: 25\tkeyname: "a"' in ours.out
    same("-p", seeded, "--hotkeys", "-n", 1)
    cli("-p", seeded, "config", "set", "maxmemory-policy", "noeviction")
    outcome = same("-p", seeded, "--hotkeys")
    assert outcome.status == 1 and b"LFU maxmemory policy is not selected" in outcome.err


def test_questions_go_in_pipelines(seeded):
    """Twenty thousand keys and three questions about each: few messages."""
    cli("-p", seeded, "debug", "populate", "20000")

    def figure(name):
        info = cli("-p", seeded, "info", "stats").out
        return int(re.search(name + rb":(\d+)", info).group(1))
    reads, commands = figure(rb"total_reads_processed"), figure(rb"total_commands_processed")
    assert b"Keys sampled: 20008\n" in cli("-p", seeded, "--keystats").out
    assert figure(rb"total_commands_processed") - commands > 60000
    assert figure(rb"total_reads_processed") - reads < 2000


def test_on_a_terminal(seeded):
    """Both print as anywhere else."""
    for mode in "--bigkeys", "--hotkeys":
        seen = []
        for program in THEIRS, CLI:
            p = Prompt("-p", seeded, mode, program=program)
            try:
                assert p.status() == 0
            finally:
                p.end()
            seen.append(sorted(p.seen.split(b"\r\n")))
        assert seen[0] == seen[1]


# ---- our server, with types of its own ----


def test_our_server(server, client):
    cli("-p", server.port, stdin=SEED)
    client.ok("CONFIG", "SET", *[word for pair in LFU.items() for word in pair if pair[0] != "enable-debug-command"])
    client.call("KEYDB.NHSET", "nested.a.b", "1")
    for mode in MODES + ["--hotkeys"]:
        alike(server.port, *mode.split(), count=False)
    report = cli("-p", server.port, "--keystats")
    assert report.status == 0 and report.err == b""
    assert re.search(rb"\nstring +3 ", report.out) and re.search(rb"\nstream +1 ", report.out)


# ---- a server with the figures that the test chose ----


class Keys(Canned):
    """Keys with a type, a size in memory and a length each (None: no answer that says so). After
    `pages` of ten, if given, SCAN is not answered any more, and `stuck` is set."""

    def __init__(self, keys, pages=None):
        self.keys, self.names, self.pages, self.stuck = keys, list(keys), pages, threading.Event()
        super().__init__(b"")

    def _reply(self, connection, name):
        args = self.commands[-1]
        answer = self.answer_to(name, args)
        if answer is None:
            self.stuck.set()
        else:
            connection.sendall(answer)
        return True

    def answer_to(self, name, args):
        if name == b"scan":
            return self.scan(int(args[1]))
        if name == b"dbsize":
            return b":%d\r\n" % len(self.names)
        if name == b"readonly":  # redis-cli 7.4
            return b"-ERR This instance has cluster support disabled\r\n"
        of_type, memory, length = self.keys[args[2] if name in (b"memory", b"object") else args[1]]
        if name == b"type":
            return b"+%s\r\n" % of_type
        number = memory if name in (b"memory", b"object") else length
        return b"$-1\r\n" if number is None else b":%d\r\n" % number

    def scan(self, cursor):
        if self.pages is not None and cursor >= 10 * self.pages:
            return None
        page = self.names[cursor : cursor + 10]
        following = b"%d" % (cursor + 10 if cursor + 10 < len(self.names) else 0)
        return b"*2\r\n$%d\r\n%s\r\n*%d\r\n" % (len(following), following, len(page)) + b"".join(
            b"$%d\r\n%s\r\n" % (len(name), name) for name in page
        )


@pytest.fixture
def keys():
    started = []

    def start(*args, **options):
        started.append(Keys(*args, **options))
        return started[-1]
    yield start
    for each in started:
        each.stop()


HEADER = b"""
# Scanning the entire keyspace to find the biggest keys and distribution information.
# Use -i 0.1 to sleep 0.1 sec per 100 SCAN commands (not usually needed).
# Use --cursor <n> to start the scan at the cursor <n> (usually after a Ctrl-C).
# Use --top <n> to display <n> top key sizes (default is 10).
# Ctrl-C to stop the scan.

"""
FEW = {
    b"a": (b"string", 56, 2), b"bbbbbb": (b"string", 64, 5), b'q"x y': (b"string", 48, 1),
    b"big": (b"string", 327728, 300000), b"l": (b"list", 144, 3), b"h": (b"hash", 64, 1),
    b"s": (b"set", 64, 1), b"z": (b"zset", 80, 2), b"st": (b"stream", 4728, 1),
    b"gone": (b"none", None, None), b"own": (b"tairhash-", 77, None),
}
# What redis-cli 7.4.1 printed of FEW; types that are not among the known six come last with us.
FEW_REPORT = HEADER + b""" 90.91% keys scanned
Keys sampled: 10
Keys size:    325.25K

--- Top 4 key sizes ---
  1  320.05K string     "big"
  2    4.62K stream     "st"
  3     144B list       "l"
  4      80B zset       "z"

--- Top size per type ---
list       l is 144B
hash       h is 64B
stream     st is 4.62K
string     big is 320.05K
set        s is 64B
zset       z is 80B
tairhash-  own is 77B

--- Top length and cardinality per type ---
list       l has 3 items
hash       h has 1 fields
stream     st has 1 entries
string     big has 292.97K
set        s has 1 members
zset       z has 2 members

Key size Percentile Total keys
-------- ---------- -----------
     48B    0.0000%           1
     64B   50.0000%           5
    144B   75.0000%           8
   4.62K   87.5000%           9
 320.06K  100.0000%          10
Note: 0.01% size precision, Mean: 32.53K, StdDeviation: 95.85K

Key name length Percentile Total keys
--------------- ---------- -----------
             6B  100.0000%          10
Total key length is 24B (2B avg)

Type        Total keys  Keys % Tot size Avg size  Total length/card Avg ln/card
--------- ------------ ------- -------- -------- ------------------ -----------
list                 1  10.00%     144B     144B            3 items        3.00
hash                 1  10.00%      64B      64B           1 fields        1.00
stream               1  10.00%    4.62K    4.62K          1 entries        1.00
string               4  40.00%  320.21K   80.05K            292.98K      73.24K
set                  1  10.00%      64B      64B          1 members        1.00
zset                 1  10.00%      80B      80B          2 members        2.00
tairhash-            1  10.00%      77B      77B                 -           - 
"""
MANY = {b"x" * i if i > 9 else b"%d" % i * i: (b"string", i * 37, i) for i in range(1, 401)}
MANY.update({b"z" * 70000: (b"stream", 1 << 40, 12345678901), b"y" * 2000000: (b"hash", 999, 7)})
# The end of what it printed of MANY.
MANY_REPORT = b"""
Key size Percentile Total keys
-------- ---------- -----------
     37B    0.0000%           1
   7.23K   50.0000%         201
  10.88K   75.0000%         302
  12.68K   87.5000%         352
  13.59K   93.7500%         377
  14.06K   96.8750%         390
  14.27K   98.4375%         396
  14.38K   99.2188%         399
  14.45K   99.6094%         401
   1.00T  100.0000%         402
Note: 0.01% size precision, Mean: 2.55G, StdDeviation: 51.01G

Key name length Percentile Total keys
--------------- ---------- -----------
            32B    7.9602%          32
           256B   63.6816%         256
         64.00K   99.5025%         400
          1.00M   99.7512%         401
          1.91M  100.0000%         402
Total key length is 2.05M (5.22K avg)

Type        Total keys  Keys % Tot size Avg size  Total length/card Avg ln/card
--------- ------------ ------- -------- -------- ------------------ -----------
hash                 1   0.25%     999B     999B           7 fields        7.00
stream               1   0.25%    1.00T    1.00T 12345678901 entries 12345678901.00
string             400  99.50%    2.83M    7.24K             78.32K        201B
"""


def test_keystats_of_a_few_keys(keys):
    outcome = cli("-p", keys(FEW).port, "--keystats", "--top", "4")
    assert (outcome.status, outcome.err) == (0, b"")
    assert outcome.out == FEW_REPORT


def test_keystats_of_no_keys(keys):
    outcome = cli("-p", keys({}).port, "--keystats")
    assert (outcome.status, outcome.err) == (0, b"")
    assert outcome.out.startswith(HEADER + b"  0.00% keys scanned\nKeys sampled: 0\nKeys size:    0B\n\n--- Top 10")
    assert b"Mean: 0B, StdDeviation: 0B" in outcome.out


def test_keystats_of_many_keys(keys):
    outcome = cli("-p", keys(MANY).port, "--keystats", "--top", "2")
    assert (outcome.status, outcome.err) == (0, b"")
    assert outcome.out.endswith(MANY_REPORT)


def test_keystats_goes_on(keys):
    """From a cursor; and Ctrl-C tells the one to go on from, with a report of what there is so far."""
    server = keys(MANY, pages=7)
    with subprocess.Popen([CLI, "-p", str(server.port), "--keystats"], stdout=subprocess.PIPE) as process:
        assert server.stuck.wait(PATIENCE_S)
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 0
    # Two pages were under way, of which not all was known.
    sampled = int(re.search(rb"Keys sampled: (\d+)\n", out).group(1))
    assert 50 <= sampled <= 70
    end = re.search(rb"\n\nScan interrupted:\nUse 'keydb-cli --keystats --cursor (\d+)' to restart from the last cursor.\n$",
                    out)
    assert int(end.group(1)) == sampled // 10 * 10
    server = keys(MANY)
    outcome = cli("-p", server.port, "--keystats", "--cursor", end.group(1).decode())
    assert b"Keys sampled: %d\n" % (402 - int(end.group(1))) in outcome.out
    scans = [args for args in server.commands if args[0] == b"SCAN"]
    assert scans[0][1] == end.group(1)


def test_keystats_asks_for_samples(keys):
    server = keys(FEW)
    cli("-p", server.port, "--keystats-samples", "7")
    asked = [args for args in server.commands if args[0] == b"MEMORY"]
    assert len(asked) == 10 and all(args[3:] == [b"SAMPLES", b"7"] for args in asked)


def test_keystats_draws(keys):
    """On a terminal a picture is drawn over by the next one, and the last by the report."""
    server = keys(MANY, pages=7)
    p = Prompt("-p", server.port, "--keystats", "--top", "3")
    try:
        seen = p.expect(rb"\x1b\[\d+A\r")
        assert server.stuck.wait(PATIENCE_S)
        os.kill(p.pid, signal.SIGINT)
        seen += p.expect(rb"from the last cursor.\r\n")
        assert p.status() == 0
    finally:
        p.end()
    first, rest = re.split(rb"\x1b\[\d+A\r", seen, maxsplit=1)
    bar = rb"\x1b\[2K\r +\d+\.\d\d% \x1b\[32m(\|*)\x1b\[31m(-*)\x1b\[39m\r\n"
    for picture in first, rest:
        found = re.search(bar, picture)
        assert len(found.group(1)) + len(found.group(2)) == 60
    up = int(re.search(rb"\x1b\[(\d+)A\r", seen).group(1))
    assert first.count(b"\x1b[2K\r") == up == first.count(b"\n") - HEADER.count(b"\n")
    assert re.search(rb"\x1b\[2K\rKey size Percentile Total keys\r\n", rest)


def test_what_has_no_length_or_goes(keys):
    """Types of modules, a key that goes in the middle, a size that is refused."""
    server = keys({**FEW, b"late": (b"hash", None, None)})
    for mode in "--bigkeys", "--memkeys":
        outcome = alike(server.port, mode)
        assert outcome.status == 0 and any(b"tairhash-s with" in line for line in outcome.out)
        assert any(line.endswith(b" on 'late' failed (may have changed type)") for line in outcome.err)
    outcome = alike(server.port, "--hotkeys")
    assert b"Warning: OBJECT freq on '\"late\"' failed (may have been deleted)" in outcome.err
    assert cli("-p", server.port, "--keystats").out.count(b"tairhash-") == 3


def interrupted(server, mode):
    with subprocess.Popen([CLI, "-p", str(server.port), mode], stdout=subprocess.PIPE) as process:
        assert server.stuck.wait(PATIENCE_S)
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 0
    return out


def test_ctrl_c_prints_what_there_is(keys):
    out = interrupted(keys(MANY, pages=10), "--bigkeys")
    found = re.search(rb"\n-------- summary -------\n\n\[(\d\d\.\d\d)%\] Sampled (\d+) keys in the keyspace!\n", out)
    assert 80 <= int(found.group(2)) <= 100 and 17 <= float(found.group(1)) <= 25
    assert b"%s strings with" % found.group(2) in out
    out = interrupted(keys(MANY, pages=10), "--hotkeys")
    assert re.search(rb"%\] Sampled \d+ keys in the keyspace!\nhot key found with counter: \d+\tkeyname: ", out)


# ---- servers that are none ----

PAGE = b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"
HOSTILE = [
    ({"dbsize": b"-ERR no\r\n"}, rb"Couldn't determine DBSIZE: ERR no\n"),
    ({"dbsize": b"+x\r\n"}, rb"Non INTEGER response from DBSIZE!\n"),
    ({"dbsize": b":-1\r\n"}, rb"Non INTEGER response from DBSIZE!\n"),
    ({"dbsize": b"xyz\r\n"}, rb'Error: Protocol error, got "x" as reply type byte\n'),
    ({"scan": b"-ERR no\r\n"}, rb"SCAN error: ERR no\n"),
    ({"scan": b"+x\r\n"}, rb"Non ARRAY response from SCAN!\n"),
    ({"scan": b"*2\r\n:1\r\n*0\r\n"}, rb"Invalid response from SCAN!\n"),
    ({"scan": b"*2\r\n$1\r\nx\r\n*0\r\n"}, rb"Invalid response from SCAN!\n"),
    ({"scan": b"*2\r\n$21\r\n123456789012345678901\r\n*0\r\n"}, rb"Invalid response from SCAN!\n"),
    ({"scan": b"*2\r\n$1\r\n0\r\n*1\r\n:1\r\n"}, rb"Invalid response from SCAN!\n"),
    ({"scan": b"*2\r\n$1\r\n0\r\n*99999999999999\r\n"}, rb"Error: .*\n"),
    ({"scan": b"*2\r\n$99999999999999999\r\n0\r\n"}, rb"Error: .*\n"),
    ({"type": b"-ERR no\r\n"}, rb"TYPE returned an error: ERR no\n"),
    ({"type": b":1\r\n"}, rb"Invalid reply for TYPE on key 'a'!\n"),
    ({"type": b"+\r\n"}, rb"Too many types, or none with such a name.\n"),
    ({"type": b"+\x1b[2J\r\n"}, rb"Too many types, or none with such a name.\n"),
    ({"type": b"+" + b"x" * 1000 + b"\r\n"}, rb"Too many types, or none with such a name.\n"),
    ({"type": None}, rb"Error: Server closed the connection\n"),
    ({"hlen": None}, rb"Error: Server closed the connection\n"),
    ({"hlen": b"garbage\r\n"}, rb'Error: Protocol error, got "g" as reply type byte\n'),
]


@pytest.mark.parametrize("answers,wanted", HOSTILE, ids=lambda v: repr(v)[:40])
def test_nonsense_from_the_server(answers, wanted):
    usual = {"dbsize": b":1\r\n", "scan": PAGE, "type": b"+hash\r\n", "hlen": b":1\r\n", "memory": b":1\r\n"}

    class Bad(Canned):
        def _reply(self, connection, name):
            answer = dict(usual, **answers).get(name.decode())
            if answer is not None:
                connection.sendall(answer)
            return answer is not None
    server = Bad(b"")
    try:
        for mode in "--bigkeys", "--keystats":
            if mode == "--keystats" or "hlen" not in answers or answers["hlen"] is None:
                outcome = cli("-p", server.port, mode)
                assert outcome.status == 1
                assert re.fullmatch(wanted, outcome.err), outcome
                assert b"summary" not in outcome.out and b"Percentile" not in outcome.out
    finally:
        server.stop()


def test_a_server_that_waits_to_be_read():
    """It reads no further before its answers are taken, and both directions are full."""
    names = [b"%04d" % i * 1000 for i in range(2000)]
    page = b"*2\r\n$1\r\n0\r\n*2000\r\n" + b"".join(b"$4000\r\n%s\r\n" % name for name in names)
    answers = {b"dbsize": b":2000\r\n", b"scan": page, b"type": b"+hash\r\n", b"memory": b"-%s\r\n" % (b"x" * 8000)}

    class Full(Canned):
        def _reply(self, connection, name):
            connection.sendall(answers[name])
            return True
    server = Full(b"")
    outcome = cli("-p", server.port, "--memkeys")
    server.stop()
    assert outcome.status == 0 and outcome.err.count(b"\n") == 2000
    assert b"2000 hashs with 0 bytes" in outcome.out


def test_names_do_nothing_to_a_terminal(keys):
    server = keys({b"\x1b[2Jx\n": (b"hash", None, None), b"\x1b]0;t\x07": (b"list", 5, 5)})
    for mode in "--bigkeys", "--memkeys", "--hotkeys", "--keystats":
        outcome = cli("-p", server.port, mode)
        assert outcome.status == 0
        assert b"\x1b" not in outcome.out + outcome.err


def test_sums_stop_at_the_largest_number(keys):
    most = (1 << 63) - 1
    server = keys({b"%d" % i: (b"hash", most, most) for i in range(5)})
    assert b"5 hashs with 18446744073709551615 fields" in cli("-p", server.port, "--bigkeys").out
    report = cli("-p", server.port, "--keystats").out
    assert b"Keys size:    8.00E\n" in report and b"  1    8.00E hash       \"0\"\n" in report
