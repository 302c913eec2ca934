"""Every option that the oracle knows, at the ends of its range and in all spellings, by CONFIG SET and by file: taken
or refused with the same words, and shown alike."""

import re

import pytest

from lib.config_lines import verdicts
from lib.resp import Error
from lib.server import ORACLE, server_path

pytestmark = pytest.mark.any_threads

NUMBERS = ["", " ", "0", "1", "-1", "00", "01", "+1", " 1", "1 ", "1.5", "0x10", "1e3", "2147483648", "-2147483649",
           "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "9" * 25]
SIZES = ["1k", "1KB", "2Mb", "1g", "5B", "1t", "k", "-1k", "0k", "1 k", "1kbx", "1.5gb", "50%", "0%", "100%", "101%",
         "-1%", "%", "1k%", "18446744073709551615k", "8589934592gb"]
WORDS = ["yes", "NO", "true", " yes", "yes ", '"yes"', "x", "a b", "1 2", "1 2 3 4", "a\nb"]
RANGE = re.compile(rb"between (-?\d+) and (-?\d+)")

# What these say or switch is each server's own, or leaves its mark on the machine.
OWN = {"dir", "logfile", "port", "tls-port", "bind", "unixsocket", "replicaof", "slaveof", "requirepass"}
NOT_ON_A_TEST_MACHINE = {"maxclients": "as many open files", "oom-score-adj": "asks the kernel",
                         "oom-score-adj-values": "asks the kernel"}
BIGGEST = (1 << 63) - 1


def beyond_biggest(text):
    match = re.fullmatch(r"(\d+)(k|gb)?", text)
    return match and int(match[1]) * {None: 1, "k": 1000, "gb": 1 << 30}[match[2]] > BIGGEST


# (options, values, reason): where ours is meant to answer otherwise.
DIFFERENCES = [
    ("maxmemory|maxmemory-clients|cluster-link-sendbuf-limit", beyond_biggest,
     "no size is beyond 2^63-1; Redis takes what does not fit modulo 2^64, or as a percentage"),
    ("activedefrag|tls-cluster", lambda text: text.strip("'").lower() == "yes", "the feature does not exist"),
    (".*_cpulist|cluster-enabled", lambda text: True, "the feature does not exist"),
    ("loglevel", lambda text: text.lower() not in ("debug", "verbose", "notice", "warning"),
     "7.2 has one more, which the error names"),
    ("save|latency-tracking-info-percentiles|client-output-buffer-limit|oom-score-adj-values|shutdown-on-sig.*",
     lambda text: text != text.strip() or '"' in text,
     "several words are read as on their line of a file: blanks around them and quotes say nothing"),
    ("syslog-ident", lambda text: True, "another default"),
    ("io-threads", lambda text: not 0 < int(text) <= 64, "64 threads are the most; Redis takes 128"),
    ("dbfilename", lambda text: text == "", "a data set without a file's name can't be saved"),
]


def is_intended(option, text):
    return any(re.fullmatch(options, option) and covers(text) for options, covers, _ in DIFFERENCES)


def configuration(client):
    flat = client.call("CONFIG", "GET", "*")
    return {n.decode(): v for n, v in zip(flat[0::2], flat[1::2])}


def ends(replies):
    """The neighbours of the ends that refusals name."""
    found = set()
    for reply in replies:
        match = isinstance(reply, Error) and RANGE.search(reply)
        for end in match.groups() if match else ():
            found |= {str(int(end) + step) for step in (-1, 0, 1)}
    return sorted(found)


@pytest.fixture
def both(make_server, make_oracle):
    servers = [make_server(), make_oracle()]
    for server in servers:
        server.expected_files.add("appendonlydir")
    return [server.connect() for server in servers]


def compare_by_set(clients, name, text, first):
    """What differs, or None. The option is put back, at once: `timeout 1` ends who says nothing for a second."""
    answers = [c.pipeline([["CONFIG", "SET", name, text], ["CONFIG", "GET", name], ["CONFIG", "SET", name, old]])
               for c, old in zip(clients, first)]
    replies, shown = [a[0] for a in answers], [a[1][1] for a in answers]
    taken = not isinstance(replies[0], Error) and not isinstance(replies[1], Error)
    same = replies[0] == replies[1] and (not taken or shown[0] == shown[1])
    return None if same or is_intended(name, text) else (name, text, replies, shown)


def test_every_option_by_config_set(both):
    known = [configuration(c) for c in both]
    assert sorted(set(known[1]) - set(known[0])) == []
    found = []
    for name in sorted(set(known[1]) - OWN - set(NOT_ON_A_TEST_MACHINE)):
        first = [k[name] for k in known]
        refusals = [c.call("CONFIG", "SET", name, text) for text in ("-3000000", "9" * 17) for c in both]
        for client, old in zip(both, first):
            client.call("CONFIG", "SET", name, old)
        is_immutable = b"immutable" in refusals[1]
        for text in ["1"] if is_immutable else dict.fromkeys(NUMBERS + SIZES + WORDS + ends(refusals)):
            found.append(compare_by_set(both, name, text, first))
    assert [f for f in found if f] == []
    assert [configuration(c) for c in both] == known


# ---- by file

# Options that only a file can set, with values at the ends; and lines that no CONFIG SET has.
BY_FILE = {
    "databases": ["0", "1", "-1", "2147483647", "2147483648", '""', "16k"],
    "unixsocketperm": ["0", "777", "1000", "888", "-1", '""', '" 1"', "+1"],
    "tcp-backlog": ["-1", "0", "2147483647", "2147483648"],
    "io-threads": ["0", "1", "64", "65", "128"],
    "daemonize": ["YES", "'no'", "1", '""'],
    "supervised": ["NO", "auto", "x"],
    "appendfilename": ['""', "a/b", "a b", '"a b"'],
    "appenddirname": ['""', "a/b"],
    "dbfilename": ['""', "a/b", "x"],
    "rdbchecksum": ["no", "0"],
    "always-show-logo": ["yes", "on"],
    "enable-debug-command": ["LOCAL", "x"],
    "syslog-facility": ["LOCAL7", "local8", "user"],
    "replicaof": ["host 0", "host 65535", "host 65536", "host -1", "host x", "host", "no one", '"no one"', "a b c"],
    "slaveof": ["host 1"],
    "repl-backlog-size": ["0", "1", "9223372036854775807", "9223372036854775808", "k"],
    "repl-backlog-ttl": ["0", "9223372036854775807", "-1"],
    "acllog-max-len": ["0", "9223372036854775807", "-1"],
    "maxmemory": ["1KB", "'1kb'", '""', "1%", "1 kb"],
    "maxmemory-clients": ["100%", "101%", "-1%", "'5%'"],
    "client-output-buffer-limit": ["normal 1 1 1", "normal k 1 1", "normal 1t 1 1", "normal 1 1 -1", "x 1 1 1",
                                   "normal 1 1", "slave 1gb 1MB 5", "normal 1 1 1 pubsub 2 2 2"],
    "save": ["0 1", "1 0", "1 -1", "1 2 3", '"1 2"'],
    "oom-score-adj-values": ["0 200 2000", "0 200 2001", "-2001 0 0", "1 2"],
    "latency-tracking-info-percentiles": ["0 100", "-1", "100.1", "x"],
    "shutdown-on-sigterm": ["save now", "save nosave", "DEFAULT", "x"],
}


def test_lines_of_a_file(tmp_path):
    cases = [(name, text) for name, texts in BY_FILE.items() for text in texts]
    lines = ["%s %s" % case for case in cases]
    ours, theirs = verdicts(server_path(), tmp_path, lines), verdicts(ORACLE, tmp_path, lines)
    different = [(line, a, b) for line, (name, text), a, b in zip(lines, cases, ours, theirs)
                 if a != b and not is_intended(name, text.strip("'\""))]
    assert different == []
