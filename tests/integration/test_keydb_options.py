"""Every option that KeyDB has and Redis has not (reference/keydb.md, 1.3), at the ends of its range and in all
spellings: by CONFIG SET, by a line of a file, on the command line, and after CONFIG REWRITE and a restart. There is no
oracle for these: the table says what is right."""

import pathlib
import subprocess

import pytest

from lib.config_lines import verdicts
from lib.resp import Error
from lib.server import REPOSITORY, server_path

pytestmark = [pytest.mark.any_threads, pytest.mark.usefixtures("ours_only")]

BIGGEST = (1 << 63) - 1
NOT_AN_INTEGER = "argument couldn't be parsed into an integer"
NOT_A_SIZE = "argument must be a memory value"
NOT_YES_OR_NO = "argument must be 'yes' or 'no'"
NO_VERSION = "argument must be a version, such as 6.2.14"
NO_CORE = "argument must be 'true', 'false' or which core is the first, from 1 on"
NO_CONTROLS = "argument must not contain control characters"

SET, START = "CONFIG SET too", "only at the start"


class Kind:
    """Values that are taken with what is then shown, and values that are refused with the words of that."""

    def __init__(self, taken, refused):
        self.taken, self.refused = taken, refused


def between(least, most):
    return "argument must be between %d and %d inclusive" % (least, most)


def number(least, most):
    beyond = {str(end): between(least, most) for end in (least - 1, most + 1) if -BIGGEST - 1 <= end <= BIGGEST}
    words = ["", " ", "x", "1.5", "+1", "01", " 1", "0x10", "1k", "1 2", "yes", str(BIGGEST + 1), "9" * 30]
    return Kind({str(end): str(end) for end in (least, most)}, dict(dict.fromkeys(words, NOT_AN_INTEGER), **beyond))


def size():
    taken = {"0": 0, "1": 1, "5B": 5, "1k": 1000, "1KB": 1024, "2Mb": 2 << 20, "1gb": 1 << 30, str(BIGGEST): BIGGEST}
    return Kind({text: str(shown) for text, shown in taken.items()},
                dict(dict.fromkeys([" ", "-1", "x", "1.5gb", "50%", "1t", "+1", "1 k"], NOT_A_SIZE),
                     **dict.fromkeys([str(BIGGEST + 1), "8589934592gb"], between(0, BIGGEST))))


def words(*names):
    refusal = "argument(s) must be one of the following: " + ", ".join(names)
    return Kind({n: n for n in names} | {names[0].upper(): names[0]}, dict.fromkeys(["", "x", "1"], refusal))


def absent(off, refused, why):
    """What does not exist: the values that leave it off are taken."""
    return Kind(off, dict.fromkeys(refused, why))


WRONG_BOOLS = dict.fromkeys(["", " ", "0", "1", "true", "on", " yes", "yes ", "x", "yes no"], NOT_YES_OR_NO)
BOOL = Kind({"yes": "yes", "no": "no", "YES": "yes", "No": "no"}, WRONG_BOOLS)


def lacks(what):
    return Kind({"no": "no", "NO": "no"}, {"yes": what, "YES": what, "1": NOT_YES_OR_NO, "": NOT_YES_OR_NO})


NO_FLASH = "storage providers (FLASH) do not exist in this version"
NO_DISK_BACKLOG = "a backlog that is on disk and not in memory does not exist in this version"
# What makes a server a node stands in test_active_switch.py.
LEFT_OFF = Kind({"no": "no", "NO": "no"}, {"1": NOT_YES_OR_NO, "": NOT_YES_OR_NO})
# Names: any words.
NAMES = Kind({"": "", "a.example.org": "a.example.org", "*.b c": "*.b c", "  d   e ": "d e"}, {})

# name: (default, where it can be set, values)
OPTIONS = {
    "server-threads": ("2", START, number(1, 64)),
    "io-threads": ("2", START, number(1, 64)),
    "server-thread-affinity": ("false", START, Kind(
        {"true": "true", "FALSE": "false", "1": "true", "2": "2", "4096": "4096"},
        dict.fromkeys(["0", "-1", "4097", "x", "", "1.5", str(BIGGEST + 1)], NO_CORE))),
    "min-clients-per-thread": ("20", SET, number(0, 400)),
    "active-client-balancing": ("yes", SET, BOOL),
    "replica-weighting-factor": ("2", SET, number(1, (1 << 31) - 1)),
    "active-replica": ("no", SET, LEFT_OFF),
    "multi-master": ("no", SET, LEFT_OFF),
    "multi-master-no-forward": ("no", SET, BOOL),
    "replica-quorum": ("-1", SET, number(-1, (1 << 31) - 1)),
    "allow-write-during-load": ("yes", SET, BOOL),
    "enable-keydb-fastsync": ("no", SET, lacks("KeyDB's fast sync does not exist in this version")),
    "repl-backlog-disk-reserve": ("0", START, size()),
    "force-backlog-disk-reserve": ("no", SET, lacks(NO_DISK_BACKLOG)),
    "enable-async-commands": ("no", SET, BOOL),
    "max-snapshot-slip": ("400", SET, number(0, 5000)),
    "enable-async-rehash": ("yes", SET, BOOL),
    "prefetch-enabled": ("yes", SET, BOOL),
    "use-fork": ("yes", START, absent({"yes": "yes", "YES": "yes"}, ["no", "NO"],
                                      "saving without a fork does not exist in this version")),
    "multithread-load-enabled": ("no", SET, lacks("loading with several threads does not exist in this version")),
    "loading-process-events-interval-bytes": ("2097152", SET, number(1024, (1 << 31) - 1)),
    "loading-process-events-interval-keys": ("8192", SET, number(0, BIGGEST)),
    "allow-rdb-resize-op": ("yes", SET, BOOL),
    "soft-shutdown": ("no", SET, BOOL),
    "maxclients-reserved": ("0", SET, number(0, 100)),
    "overload-protect-percent": ("0", SET, number(0, 200)),
    "force-eviction-percent": ("0", SET, number(0, 100)),
    "delete-on-evict": ("no", SET, BOOL),
    "storage-provider": ("", START, absent({}, ["flash /tmp", "flash", "test"], NO_FLASH)),
    "storage-provider-options": ("", START, Kind({"a=1;b=2": "a=1;b=2"}, {})),
    "storage-cache-mode": ("writethrough", START, words("writethrough", "writeback")),
    "storage-flush-period": ("500", SET, number(1, 10000)),
    "maxstorage": ("0", SET, size()),
    "flash-disable-key-cache": ("no", SET, BOOL),
    "semi-ordered-set-bucket-size": ("0", SET, number(0, 1024)),
    "max-rand-count": (str(BIGGEST), SET, number(0, BIGGEST)),
    "db-s3-object": ("", SET, absent({}, ["s3://b/o", "x", "a b"], "saving to S3 does not exist in this version")),
    "tls-allowlist": ("", SET, NAMES),
    "tls-auditlog-blocklist": ("", SET, NAMES),
    "tls-rotation": ("no", SET, BOOL),
    "availability-zone": ("", SET, Kind({"": "", "us-east-1a": "us-east-1a", "a b": "a b", " ": " ", '"': '"'},
                                        {"a\nb": NO_CONTROLS, "\x7f": NO_CONTROLS})),
    "time-thread-priority": ("no", START, BOOL),
    "enable-motd": ("yes", START, BOOL),
    "version-override": ("", START, Kind({"6.2.14": "6.2.14", "7": "7"}, dict.fromkeys(["x", "v6", "6-2"], NO_VERSION))),
    "testmode": ("no", START, lacks("KeyDB's test mode does not exist in this version")),
    "rdbfuzz-mode": ("no", START, lacks("KeyDB's RDB fuzzing mode does not exist in this version")),
    "scratch-file-path": ("", START, absent({}, ["/tmp"], NO_FLASH)),
    "blob-support": ("no", START, lacks(NO_FLASH)),
}

# Each word of its value is a word of its line.
SEVERAL_WORDS = {"tls-allowlist", "tls-auditlog-blocklist", "storage-provider", "db-s3-object"}
# Not in the reference's table of options, or on the command line only.
REFERENCE_ONLY = {"is-flash-enabled": "ends the program (test_compat_options.py)"}


def quoted(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def line(name, text):
    """As it stands in a file."""
    return "%s %s" % (name, text if name in SEVERAL_WORDS and text.strip() else quoted(text))


def arguments(name, text):
    return ["--" + name] + (text.split() if name in SEVERAL_WORDS else [text])


def shown(client, name):
    return client.call("CONFIG", "GET", name)[1].decode()


def test_the_table_is_whole():
    """Every option that the file with all options names and that is KeyDB's stands in the table."""
    path = pathlib.Path(REPOSITORY, "tests/integration/test_compat_options.py").read_text(encoding="utf-8")
    listed = path.split('KEYDB = """')[1].split('"""')[0]
    redis = {"io-threads-do-reads", "use-exit-on-panic", "key-load-delay", "rdb-key-save-delay", "watchdog-period",
             "lua-replicate-commands"}
    names = {text.split()[0] for text in listed.splitlines() if text} - redis
    assert names - set(OPTIONS) == set()


@pytest.mark.parametrize("name", OPTIONS)
def test_by_config_set(client, name):
    default, where, kind = OPTIONS[name]
    if name not in ("server-threads", "io-threads", "min-clients-per-thread"):  # the tests' own
        assert shown(client, name) == default
    before = shown(client, name)
    if where == START:
        for text in list(kind.taken) + list(kind.refused):
            reply = client.call("CONFIG", "SET", name, text)
            assert isinstance(reply, Error) and b"can't set immutable config" in reply, text
            assert shown(client, name) == before
        return
    for text, words_shown in kind.taken.items():
        assert client.call("CONFIG", "SET", name, text) == b"OK", text
        assert shown(client, name) == words_shown, text
    now = shown(client, name)
    for text, why in kind.refused.items():
        reply = client.call("CONFIG", "SET", name, text)
        assert isinstance(reply, Error), text
        assert reply.decode() == "ERR CONFIG SET failed (possibly related to argument '%s') - %s" % (name, why), text
        assert shown(client, name) == now, text


def test_by_file(tmp_path):
    cases = [(name, text, "") for name, (_, _, kind) in OPTIONS.items() for text in kind.taken]
    for name, (_, _, kind) in OPTIONS.items():
        # One text for each way to be wrong, and the ends' neighbours; the parser of words is CONFIG SET's.
        for why in dict.fromkeys(kind.refused.values()):
            texts = [text for text, its in kind.refused.items() if its == why]
            cases += [(name, text, why) for text in (texts if "between" in why else texts[-1:])]
    said = verdicts(server_path(), tmp_path, [line(name, text) for name, text, _ in cases])
    assert [(case, a) for case, a in zip(cases, said) if case[2] != a] == []


@pytest.mark.parametrize("end", [0, -1], ids=["first", "last"])
def test_on_the_command_line_and_after_a_rewrite(make_server, end):
    """All options at once, in the first and in the last spelling that is taken."""
    wanted = {name: list(kind.taken.items())[end] for name, (_, _, kind) in OPTIONS.items()
              if kind.taken and name not in ("io-threads", "server-threads")}
    wanted["server-threads"] = [("1", "1"), ("64", "64")][end]
    options = {name: text if name not in SEVERAL_WORDS else text.split() or [""]
               for name, (text, _) in wanted.items()}
    server = make_server(config="# mine\n", options=options)
    with server.connect() as client:
        assert {n: shown(client, n) for n in wanted} == {n: words_shown for n, (_, words_shown) in wanted.items()}
        assert client.call("CONFIG", "REWRITE") == b"OK"
    # Without what was on the command line: now the file says it.
    server.stop()
    server.config = pathlib.Path(server.file("server.conf")).read_text(encoding="utf-8")
    server.options = {"server-threads": None, "min-clients-per-thread": None}
    server.start()
    with server.connect() as client:
        now = {n: shown(client, n) for n in wanted}
    assert {n: v for n, v in now.items() if v != wanted[n][1]} == {}


@pytest.mark.parametrize("name", [n for n, (_, where, kind) in OPTIONS.items() if where == START and kind.refused])
def test_refused_on_the_command_line(name, tmp_path):
    text, why = list(OPTIONS[name][2].refused.items())[0]
    done = subprocess.run([server_path()] + arguments(name, text), cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=20,
                          capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 1 and ">>> '%s" % name in said and why in said


@pytest.mark.parametrize("name", OPTIONS)
def test_no_value_is_refused(name, tmp_path):
    """A name alone on its line."""
    may = {"tls-allowlist", "tls-auditlog-blocklist"}
    said = verdicts(server_path(), tmp_path, [name])
    assert said != [""] or name in may
