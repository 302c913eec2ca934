"""keydb-check-aof: what it says, asks and does is redis-check-aof's; what it finds whole the server
loads, what it finds damaged the server refuses; no file is too much for it."""

import os
import re
import shutil
import subprocess

import pytest

from integration.test_rdb import make, sample  # noqa: F401 (a fixture)
from lib.resp import encode
from lib.seeds import generator, seeds
from lib.server import ORACLE, server_path

TOOL = os.path.join(os.path.dirname(server_path()), "keydb-check-aof")
THEIRS = os.path.join(os.path.dirname(ORACLE), "redis-check-aof")

pytestmark = [pytest.mark.any_threads]

SOME = b"".join(encode(*words) for words in (["SELECT", "0"], ["SET", "k", "v"], ["SET", "l", "w"]))
MULTI, EXEC = encode("MULTI"), encode("EXEC")
RDB = sample("redis-7.0.15.rdb")


def time(seconds):
    return b"#TS:%d\r\n" % seconds


TIMES = b"".join(time(seconds) + SOME for seconds in (1000, 2000, 3000))
MANIFEST = (b"file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n"
            b"file a.2.incr.aof seq 2 type i\n")


def parts(base, first, second, manifest=MANIFEST):
    return {"a.manifest": manifest, "a.1.base.rdb": base, "a.1.incr.aof": first,
            "a.2.incr.aof": second}


class Files:
    """Files in a directory of their own."""

    def __init__(self, directory, files):
        self.directory = directory
        shutil.rmtree(directory, ignore_errors=True)
        os.mkdir(directory)
        for name, data in files.items():
            with open(os.path.join(directory, name), "wb") as file:
                file.write(data)

    def check(self, tool, name, arguments=(), answer=""):
        return subprocess.run([tool, *arguments, name], cwd=self.directory, input=answer, text=True,
                              capture_output=True, timeout=120, errors="backslashreplace")

    def content(self):
        found = {}
        for name in os.listdir(self.directory):
            with open(os.path.join(self.directory, name), "rb") as file:
                found[name] = file.read()
        return found


def normal(text):
    """Without what differs by intent: a fault's own words, and the line, which we count up to what
    is whole, in each file from 1 and with notes; what only we tell of RDB files."""
    lines = []
    for line in text.split("\n"):
        if "libraries of functions" in line or re.match(r"0x[ 0-9a-f]{16}: |AOF \S+ format error", line):
            continue
        lines.append(re.sub(r"ok_up_to_line=\d+", "ok_up_to_line=N", line).replace("redis-", "keydb-")
                     .replace(" ./", " "))
    return lines


FIX, TO = ["--fix"], "--truncate-to-timestamp"
WHOLE = [
    ("commands", {"f": SOME}), ("transaction", {"f": SOME + MULTI + SOME + EXEC}),
    ("case", {"f": encode("multi") + SOME + encode("Exec")}), ("empty", {"f": b""}),
    ("times", {"f": TIMES}), ("note", {"f": b"#a note\r\n" + SOME}), ("preamble", {"f": RDB + SOME}),
    ("preamble only", {"f": RDB}), ("parts", parts(RDB, SOME, SOME)),
    ("base of commands", parts(SOME, SOME, SOME)), ("empty base", parts(b"", SOME, SOME)),
    ("empty increments", parts(RDB, b"", b"")), ("base with a tail", parts(RDB + SOME, SOME, SOME)),
    ("only a base", {"a.manifest": b"file b.rdb seq 1 type b\n", "b.rdb": RDB}),
    ("history", {"a.manifest": b"# why\nfile b.aof seq 1 type h\nfile c.aof seq 1 type i\n",
                 "b.aof": SOME[:-3], "c.aof": SOME}),
]
TORN = [
    ("torn", {"f": SOME[:-3]}), ("garbage", {"f": SOME + b"garbage\r\n" + SOME}),
    ("bad length", {"f": SOME + b"*1\r\n$x\r\n"}), ("bad count", {"f": SOME + b"*x\r\n$3\r\n"}),
    ("length below 0", {"f": SOME + b"*1\r\n$-3\r\n"}),
    ("huge length", {"f": SOME + b"*1\r\n$999999999999\r\nabc"}),
    ("no end", {"f": SOME + b"*1\r\n$3\r\nabcde"}), ("no string", {"f": SOME + b"*1\r\n:3\r\nabc\r\n"}),
    ("MULTI twice", {"f": SOME + MULTI + MULTI + SOME + EXEC}), ("EXEC alone", {"f": SOME + EXEC + SOME}),
    ("no EXEC", {"f": SOME + MULTI + SOME}), ("torn transaction", {"f": SOME + MULTI + SOME[:-3]}),
    ("too few words", {"f": SOME + b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n" + SOME}),
    ("torn behind a preamble", {"f": RDB + SOME[:-3]}), ("one byte", {"f": b"*"}), ("text", {"f": b"hello"}),
    ("last part torn", parts(RDB, SOME, SOME[:-3])), ("torn behind times", {"f": TIMES[:-3]}),
    ("last part torn behind times", parts(RDB, TIMES, TIMES[:-3])),
    ("torn transaction behind times", {"f": RDB + TIMES + MULTI + time(4000) + SOME}),
    ("garbage behind a preamble and times", {"f": RDB + TIMES + b"garbage\r\n" + TIMES}),
    ("base torn, alone", {"a.manifest": b"file b.aof seq 1 type b\n", "b.aof": SOME[:-3]}),
]
HOPELESS = [
    ("preamble cut", {"f": RDB[:5000]}), ("preamble changed", {"f": RDB[:5000] + b"x" + RDB[5001:] + SOME}),
    ("first part torn", parts(RDB, SOME[:-3], SOME)), ("base torn", parts(RDB[:500], SOME, SOME)),
    ("missing part", {"a.manifest": MANIFEST, "a.1.base.rdb": RDB}),
]
CUTS = [("times", {"f": TIMES}, second) for second in (500, 1000, 1500, 2000, 2500, 3000, 3500, -5)] + [
    ("no times", {"f": SOME}, 5), ("times behind others", {"f": SOME + TIMES}, 5),
    ("torn behind the time", {"f": TIMES[:-3]}, 2500), ("torn before the time", {"f": TIMES[:-3]}, 5000),
    ("bad time", {"f": b"#TS:x\r\n" + SOME}, 5), ("other note", {"f": b"#note\r\n" + SOME}, 5),
    ("behind a preamble", {"f": RDB + TIMES}, 2500), ("the preamble only", {"f": RDB + TIMES}, 25),
    ("last part", parts(RDB, SOME, TIMES), 2500), ("a base of commands", parts(SOME, SOME, TIMES), 2500),
    ("the base, alone", {"a.manifest": b"file b.aof seq 1 type b\n", "b.aof": TIMES}, 1500),
    ("the base", parts(TIMES, SOME, SOME), 1500),
    ("nothing behind the time", parts(RDB, TIMES, b""), 3500), ("no last part", parts(RDB, TIMES, TIMES), 2500),
    ("nothing before", parts(RDB, SOME, TIMES), 25), ("empty", {"f": b""}, 25),
]


def same_as_redis(directory, files, arguments, answer=""):
    """Runs both; (our exit status, the files behind it)."""
    name = "a.manifest" if "a.manifest" in files else "f"
    theirs = Files(directory, files)
    wanted = theirs.check(THEIRS, name, arguments, answer)
    wanted_files = theirs.content()
    ours = Files(directory, files)
    found = ours.check(TOOL, name, arguments, answer)
    assert found.returncode == wanted.returncode, found.stdout
    assert ours.content() == wanted_files
    assert found.stderr == ""
    return found, wanted, wanted_files


@pytest.mark.parametrize("name,files", WHOLE, ids=[w[0] for w in WHOLE])
def test_whole(tmp_path, threads, name, files):
    for arguments in ([], FIX):
        found, wanted, after = same_as_redis(str(tmp_path / "d"), files, arguments, "y\n")
        assert found.returncode == 0 and after == files
        assert normal(found.stdout) == normal(wanted.stdout)


@pytest.mark.parametrize("name,files", TORN, ids=[t[0] for t in TORN])
def test_torn(tmp_path, threads, name, files):
    directory = str(tmp_path / "d")
    for arguments, answer in (([], ""), (FIX, "n\n"), (FIX, ""), (FIX, "y\n"), (FIX, "Yes\n")):
        found, wanted, after = same_as_redis(directory, files, arguments, answer)
        assert normal(found.stdout) == normal(wanted.stdout)
        agreed = answer[:1] in ("y", "Y")
        assert found.returncode == (0 if agreed else 1)
        assert (after == files) != agreed
        assert re.search(r"^0x[ 0-9a-f]{16}: \S", found.stdout, re.M)
    again = Files(directory, after).check(TOOL, "a.manifest" if "a.manifest" in files else "f")
    assert again.returncode == 0


@pytest.mark.parametrize("name,files", HOPELESS, ids=[h[0] for h in HOPELESS])
def test_hopeless(tmp_path, threads, name, files):
    for arguments in ([], FIX):
        found, _, after = same_as_redis(str(tmp_path / "d"), files, arguments, "y\n")
        assert found.returncode == 1 and after == files


@pytest.mark.parametrize("name,files,seconds", CUTS, ids=["%s %d" % (c[0], c[2]) for c in CUTS])
def test_cut_at_a_time(tmp_path, threads, name, files, seconds):
    found, wanted, _ = same_as_redis(str(tmp_path / "d"), files, [TO, str(seconds)])
    assert normal(found.stdout) == normal(wanted.stdout)


def test_by_a_path(tmp_path, threads):
    """Files are looked for beside the manifest, and called by the names that Redis's program calls them."""
    for files, name in (parts(RDB, SOME, SOME[:-3]), "a.manifest"), ({"f": SOME[:-3]}, "f"), ({"f": RDB + SOME[:-3]}, "f"):
        for arguments in [], FIX, [TO, "5"]:
            seen = []
            for tool in THEIRS, TOOL:
                place = Files(str(tmp_path / "d"), files)
                done = subprocess.run([tool, *arguments, "d/" + name], cwd=tmp_path, input="y\n", text=True,
                                      capture_output=True, timeout=120)
                seen.append((done.returncode, normal(done.stdout), place.content()))
            assert seen[0] == seen[1]


def test_the_sample(tmp_path, threads):
    """An old file that begins with an RDB, as Redis's own tests have it."""
    data = sample("rdb-preamble.aof")
    for files, arguments in ({"f": data}, []), ({"f": data}, FIX), ({"f": data[:-2]}, []), ({"f": data[:-2]}, FIX):
        found, wanted, _ = same_as_redis(str(tmp_path / "d"), files, arguments, "y\n")
        assert normal(found.stdout) == normal(wanted.stdout)


def test_better_than_redis(tmp_path, threads):
    """A time within a transaction cuts before it, so that the server can load the rest; what only
    empty files follow is the end, as it is for the server."""
    directory = str(tmp_path / "d")
    files = Files(directory, {"f": SOME + time(1000) + MULTI + SOME + time(2000) + SOME + EXEC})
    assert files.check(TOOL, "f", [TO, "1500"]).returncode == 0
    assert files.content()["f"] == SOME + time(1000)
    files = Files(directory, parts(RDB, SOME[:-3], b""))
    assert files.check(TOOL, "a.manifest", FIX, "y\n").returncode == 0
    assert files.content()["a.1.incr.aof"] == SOME[:50]
    files = Files(directory, parts(RDB, TIMES, b""))
    assert files.check(TOOL, "a.manifest", [TO, "2500"]).returncode == 0
    assert files.content()["a.1.incr.aof"] == TIMES[:len(TIMES) // 3 * 2]
    for damaged in (SOME + b"*0\r\n", TIMES + b"#TS:40", SOME + b"#no end", b"REDIS"):
        assert Files(directory, {"f": damaged}).check(TOOL, "f").returncode == 1


def test_manifests(tmp_path, threads):
    for text in (b"file x\n", b"file c.aof seq 1 type z\n", b"file ../c.aof seq 1 type i\n",
                 b"file c.aof seq 1 type i", b"file c.aof seq x type i\n", b"file " + 2000 * b"x" + b"\n"):
        files = Files(str(tmp_path / "d"), {"m": text, "c.aof": SOME})
        done = files.check(TOOL, "m")
        assert done.returncode == 1 and "FATAL AOF MANIFEST FILE ERROR" in done.stdout
        assert "at line 1" in done.stdout


def test_arguments(tmp_path, threads):
    files = Files(str(tmp_path / "d"), {"f": SOME})
    for arguments in ([], ["--help"], ["--fix", "a", "b"], ["a", "b"], [TO, "5", "f", "g"], [TO, "5x", "f"],
                      ["nonexistent"], ["/"], ["/dev/null"], [TO, "", "f"], ["--fix", "/nonexistent/f"]):
        done = subprocess.run([TOOL] + arguments, cwd=files.directory, capture_output=True)
        assert done.returncode == 1, arguments
    assert subprocess.run([TOOL, "-v"], capture_output=True).stdout.startswith(b"keydb-check-aof ")
    assert files.content() == {"f": SOME}


# ---- any file

def every_record():
    """Some of everything, and where records that stand alone end."""
    pieces = [time(1000), encode("SET", "k", "v"), MULTI + encode("INCR", "n") + EXEC,
              encode("SET", "", b"\r\n*1\r\n")]
    ends, end = {0}, 0
    for piece in pieces:
        end += len(piece)
        ends.add(end)
    return b"".join(pieces), ends


def test_cut_at_every_byte(tmp_path, threads):
    data, ends = every_record()
    for cut in range(len(data) + 1):
        files = Files(str(tmp_path / "d"), {"f": data[:cut]})
        assert files.check(TOOL, "f").returncode == (0 if cut in ends else 1), cut
        if cut not in ends:
            assert files.check(TOOL, "f", FIX, "y\n").returncode == 0, cut
            assert files.content()["f"] == data[:max(e for e in ends if e < cut)]


def test_every_byte_changed(tmp_path, threads):
    """Never dies, never makes worse: what it has cut is the start of what there was, and whole."""
    data, _ = every_record()
    random = generator(next(iter(seeds(11, 1))))
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= random.choice([0xff, 1 << random.randrange(8)])
        changed = bytes(changed)
        files = Files(str(tmp_path / "d"), {"f": changed})
        status = files.check(TOOL, "f").returncode
        assert status in (0, 1) and files.content()["f"] == changed
        if status == 1:
            assert files.check(TOOL, "f", FIX, "y\n").returncode == 0, (at, changed)
            left = files.content()["f"]
            assert changed.startswith(left) and len(left) < len(changed)
            assert files.check(TOOL, "f").returncode == 0


def test_parts_with_bytes_changed(tmp_path, threads):
    """Manifest, RDB base and increment."""
    random = generator(next(iter(seeds(12, 1))))
    whole = parts(RDB, SOME, SOME)
    for round_ in range(150):
        files = dict(whole)
        name = random.choice(list(files))
        data = bytearray(files[name])
        for _ in range(random.choice([1, 1, 3])):
            data[random.randrange(len(data))] = random.randrange(256)
        files[name] = bytes(data[:random.randrange(len(data) + 1)] if round_ % 3 == 0 else data)
        done = Files(str(tmp_path / "d"), files).check(TOOL, "a.manifest", FIX, "y\n")
        assert done.returncode in (0, 1), (name, files[name], done)


# ---- the server agrees

# The loader counts a lone EXEC as a command that failed, and goes on.
AGREED = [case for case in WHOLE + TORN if case[0] != "EXEC alone"]


@pytest.mark.parametrize("name,files", AGREED, ids=[case[0] for case in AGREED])
def test_server_agrees(make_server, threads, name, files):
    """Without aof-load-truncated: starts with what is whole, and with what has been fixed."""
    server = make_server({"appendonly": "yes", "aof-load-truncated": "no"}, files=("appendonlydir",),
                         start=False)
    os.mkdir(server.file("appendonlydir"))
    if "f" in files:
        files = {"appendonly.aof.manifest": b"file f seq 1 type b\n", "f": files["f"]}
    else:
        files = {("appendonly.aof.manifest" if n == "a.manifest" else n): d for n, d in files.items()}
    for part, data in files.items():
        with open(server.file("appendonlydir/" + part), "wb") as file:
            file.write(data)
    manifest = server.file("appendonlydir/appendonly.aof.manifest")
    whole = subprocess.run([TOOL, manifest], capture_output=True).returncode == 0
    assert whole == (name in [w[0] for w in WHOLE])
    if not whole:
        assert "AOF" in server.start_fails()
        assert subprocess.run([TOOL, "--fix", manifest], input=b"y\n",
                              capture_output=True).returncode == 0
    server.start()
