"""make install and uninstall into a folder, and the programs under Redis's names: by links of ours, and by
Debian's alternatives."""

import fcntl
import os
import re
import shutil
import subprocess

import pytest
import redis

from lib.bounds import eventually, scaled
from lib.server import REPOSITORY, server_path

pytestmark = pytest.mark.any_threads

PROGRAMS = os.path.dirname(server_path())
NAMES = ["server", "cli", "benchmark", "check-rdb", "check-aof"]
# The variables with which make takes what is built already.
VARIANTS = {"release": [], "debug": ["DEBUG=1"], "asan": ["SANITIZE=address"], "tsan": ["SANITIZE=thread"],
            "ubsan": ["SANITIZE=undefined"]}


def run(*words, status=0, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=scaled(300), **more)
    assert done.returncode == status, done
    return done


# ---- called by a name of Redis ----

@pytest.fixture
def links(tmp_path):
    """A folder with Redis's names."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NAMES:
        (folder / ("redis-" + name)).symlink_to(os.path.join(PROGRAMS, "keydb-" + name))
    (folder / "redis-sentinel").symlink_to(os.path.join(PROGRAMS, "keydb-server"))
    return folder


def test_names_and_versions(links):
    compat = re.search(r'REDIS_COMPAT_VERSION "(.*)"', open(os.path.join(REPOSITORY, "src/base/version.h"),
                                                            encoding="utf-8").read()).group(1)
    assert compat.startswith("7.2.")
    for name in NAMES[1:]:
        ours, theirs = run(os.path.join(PROGRAMS, "keydb-" + name), "-v"), run(links / ("redis-" + name), "-v")
        assert theirs.stdout == "redis-%s %s\n" % (name, compat)
        assert re.fullmatch(r"keydb-%s \d+\.\d+\.\d+\n" % name, ours.stdout)
        help_status = 1 if name.startswith("check") else 0
        help_of = run(links / ("redis-" + name), "--help", status=help_status)
        assert "Usage: redis-%s " % name in help_of.stdout + help_of.stderr
        # What Redis's program says of itself has this form too (redis-check-aof does so from 7.2 on).
        assert name == "check-aof" or re.match(r"redis-%s \d+\.\d+\.\d+" % name, run("redis-" + name, "-v").stdout)
    assert re.match(r"Redis server v=%s sha=\w+:0 malloc=\S+ bits=64 build=\w+\n$" % re.escape(compat),
                    run(links / "redis-server", "--version").stdout)
    assert run(os.path.join(PROGRAMS, "keydb-server"), "-v").stdout.startswith("KeyDB server v=")
    assert "Usage: redis-server " in run(links / "redis-server", "--help").stdout


def test_usage_goes_where_that_of_redis_goes(links):
    for name in "check-rdb", "check-aof":
        theirs = run("redis-" + name, status=1)
        ours = run(links / ("redis-" + name), status=1)
        assert ours.stdout.split("\n")[0] == theirs.stdout.split("\n")[0]
        assert ours.stderr.split("\n")[0] == theirs.stderr.split("\n")[0]


def test_messages_have_the_name(links):
    assert "redis-cli: --cluster does not exist yet" in run(links / "redis-cli", "--cluster", status=1).stderr
    assert "redis-benchmark --help lists" in run(links / "redis-benchmark", "--nosuch", status=1).stderr
    assert run(links / "redis-server", "--test-memory", status=1).stderr.startswith("redis-server: ")


def test_there_is_no_sentinel(links, tmp_path):
    (tmp_path / "sentinel.conf").write_text("port 26379\n")
    for words in (["redis-sentinel", "sentinel.conf"], ["redis-sentinel"], ["redis-server", "sentinel.conf", "--sentinel"],
                  ["redis-server", "--sentinel"]):
        refused = run(links / words[0], *words[1:], status=1, cwd=tmp_path)
        assert refused.stdout == "" and "there is no Sentinel in keydb-server yet" in refused.stderr


def test_a_server_under_the_name_of_redis(links, tmp_path):
    """Processes are found by it: pidof, pgrep, ps."""
    place = tmp_path / "s.sock"
    process = subprocess.Popen([links / "redis-server", "--port", "0", "--unixsocket", str(place), "--save"], cwd=tmp_path,
                               stdout=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=str(place), decode_responses=True)

    def answers():
        try:
            return client.ping()
        except redis.ConnectionError:
            assert process.poll() is None
            return False
    try:
        eventually(answers, "the server's start")
        with open("/proc/%d/comm" % process.pid, encoding="utf-8") as file:
            assert file.read() == "redis-server\n"
        with open("/proc/%d/cmdline" % process.pid, encoding="utf-8") as file:
            assert file.read().startswith("%s %s" % (links / "redis-server", place))
        assert run(links / "redis-cli", "-s", place, "PING").stdout == "PONG\n"
        assert "requests per second" in run(links / "redis-benchmark", "-s", place, "-q", "-n", "10", "-t", "get").stdout
        client.set("k", "v")
        client.save()
        assert run(links / "redis-check-rdb", tmp_path / "dump.rdb").returncode == 0
    finally:
        client.close()
        process.terminate()
        assert process.wait(scaled(30)) == 0


# ---- make install ----

@pytest.fixture(scope="module")
def make():
    """make('install', ...) with the programs that are under test; skips where they are of no build of this tree."""
    variant = os.path.basename(os.path.dirname(PROGRAMS))
    if os.path.realpath(PROGRAMS) != os.path.join(os.path.realpath(REPOSITORY), "build", variant, "bin") or \
            variant not in VARIANTS:
        pytest.skip("the programs under test are not in build/*/bin")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}

    def call(*words, status=0):
        # -o all: what was built stays as it is.
        with open(os.path.join(REPOSITORY, "build", "install-test.lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return run("make", "-o", "all", *VARIANTS[variant], *words, status=status, cwd=REPOSITORY, env=environment)
    return call


def files_under(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())


LINKS = sorted(["usr/bin/redis-" + n for n in NAMES] + ["usr/share/man/man1/redis-%s.1" % n for n in NAMES]
               + ["usr/share/bash-completion/completions/redis-" + n for n in NAMES])


def test_install_and_uninstall(make, tmp_path):
    make("install", "PREFIX=/usr", "DESTDIR=%s" % tmp_path)
    plain = files_under(tmp_path)
    for name in NAMES:
        assert {"usr/bin/keydb-" + name, "usr/share/man/man1/keydb-%s.1" % name,
                "usr/share/bash-completion/completions/keydb-" + name} <= set(plain)
    assert "usr/share/man/man5/keydb.conf.5" in plain and "etc/keydb/keydb.conf" in plain
    assert not [p for p in plain if "redis" in p]
    make("install", "PREFIX=/usr", "DESTDIR=%s" % tmp_path, "REDIS_LINKS=1")
    linked = files_under(tmp_path)
    assert sorted(set(linked) - set(plain)) == sorted(LINKS + ["etc/keydb/keydb.conf.new"])
    for link in LINKS:
        assert os.readlink(tmp_path / link) == os.path.basename(link).replace("redis", "keydb")
        assert (tmp_path / link).exists()
    assert run(tmp_path / "usr/bin/redis-cli", "-v").stdout.startswith("redis-cli 7.2.")
    make("uninstall", "PREFIX=/usr", "DESTDIR=%s" % tmp_path)
    assert files_under(tmp_path) == ["etc/keydb/keydb.conf", "etc/keydb/keydb.conf.new"]


def test_pages_name_the_places_of_the_prefix(make, tmp_path):
    make("install-pages", "PREFIX=/opt/k", "DESTDIR=%s" % tmp_path)
    assert "/opt/k/etc/keydb/keydb.conf" in (tmp_path / "opt/k/share/man/man1/keydb-server.1").read_text()


def test_what_is_somebody_elses_stays(make, tmp_path):
    """A redis-cli that is no link of ours keeps all links away, and uninstall leaves it."""
    theirs = tmp_path / "usr/bin/redis-cli"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("#!/bin/sh\n")
    refused = make("install", "PREFIX=/usr", "DESTDIR=%s" % tmp_path, "REDIS_LINKS=1", status=2)
    assert "usr/bin/redis-cli is there and not ours" in refused.stderr
    assert [p for p in files_under(tmp_path) if "redis" in p] == ["usr/bin/redis-cli"]
    make("uninstall", "PREFIX=/usr", "DESTDIR=%s" % tmp_path)
    assert theirs.read_text() == "#!/bin/sh\n"


# ---- the package's scripts ----

class Package:
    """A folder that stands for /, on which the scripts of a package run."""

    def __init__(self, folder):
        self.root, self.tools = folder / "root", folder / "tools"
        self.tools.mkdir()
        for name in NAMES:
            for place in "usr/bin/keydb-%s", "usr/share/man/man1/keydb-%s.1.gz", "usr/share/bash-completion/completions/keydb-%s":
                path = self.root / (place % name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(name)
        for place in "etc/alternatives", "var/lib/dpkg/alternatives", "var/log":
            (self.root / place).mkdir(parents=True)
        real = shutil.which("update-alternatives", path="/usr/bin:/usr/sbin")
        self.tool("update-alternatives", 'exec %s --root "%s" "$@"' % (real, self.root))
        # The server's script has more to do, which is not for a test.
        for name in "getent", "adduser", "dpkg-statoverride", "install", "chown", "chmod":
            self.tool(name, "exit 0")

    def tool(self, name, line):
        path = self.tools / name
        path.write_text("#!/bin/sh\n%s\n" % line)
        path.chmod(0o755)

    def call(self, script, *words):
        path = "%s:%s" % (self.tools, os.environ["PATH"])
        return run("sh", os.path.join(REPOSITORY, "pkg", "debian", script), *words, env={**os.environ, "PATH": path, "DPKG_ROOT": str(self.root)})

    def shown(self):
        found = {}
        for path in sorted(self.root.glob("usr/**/redis-*")):
            target = path
            while target.is_symlink():
                link = os.readlink(target)
                target = self.root / link.lstrip("/") if link.startswith("/") else target.parent / link
            found[str(path.relative_to(self.root))] = target.read_text()
        return found


@pytest.mark.parametrize("package,names", [("keydb-server", ["server"]), ("keydb-tools", NAMES[1:])])
def test_alternatives_of_the_package(tmp_path, package, names):
    if not shutil.which("update-alternatives"):
        pytest.skip("there are no alternatives here")
    place = Package(tmp_path)
    place.call(package + ".postinst", "configure")
    wanted = {p: n for n in names for p in ("usr/bin/redis-" + n, "usr/share/man/man1/redis-%s.1.gz" % n,
                                            "usr/share/bash-completion/completions/redis-" + n)}
    assert place.shown() == wanted
    # An upgrade: the old one's prerm, the new one's postinst.
    place.call(package + ".prerm", "upgrade", "7.2.1")
    assert place.shown() == wanted
    place.call(package + ".postinst", "configure", "7.2.0")
    assert place.shown() == wanted
    place.call(package + ".prerm", "remove")
    assert place.shown() == {}
    # A removal that is called off.
    place.call(package + ".postinst", "abort-remove")
    assert place.shown() == wanted
    place.call(package + ".prerm", "remove")
    assert place.shown() == {}
    # Redis's own package has its programs there, or links (Debian's redis-server is one): they stay.
    other = place.root / "usr/bin/theirs"
    other.write_text("theirs")
    for make in (lambda path: path.write_text("theirs")), (lambda path: path.symlink_to("theirs")):
        for name in names:
            make(place.root / ("usr/bin/redis-" + name))
        for script in ("postinst", "configure"), ("prerm", "upgrade", "7.2.1"), ("prerm", "remove"):
            place.call("%s.%s" % (package, script[0]), *script[1:])
            assert place.shown() == {"usr/bin/redis-" + name: "theirs" for name in names}
        for name in names:
            (place.root / ("usr/bin/redis-" + name)).unlink()


def test_packages_have_what_is_installed(make, tmp_path):
    """Each installed file is in one package, or not wanted by name."""
    make("install-programs", "install-headers", "install-pages", "PREFIX=/usr", "DESTDIR=%s" % tmp_path)
    lines = []
    for name in "keydb-server.install", "keydb-tools.install", "keydb-module-dev.install", "not-installed":
        with open(os.path.join(REPOSITORY, "pkg", "debian", name), encoding="utf-8") as file:
            lines += [line.split()[0] for line in file if line.strip()]
    assert len(lines) == len(set(lines))
    assert set(files_under(tmp_path)) <= set(lines)
