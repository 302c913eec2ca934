"""Client libraries and job queues, unmodified and from their registries, against keydb-server.

    tests/clients/run.py [LANGUAGE ...]

Starts KEYDB_SERVER (default build/release/bin/keydb-server) with 4 server threads on a free port, installs each
language's packages under build/clients/ (versions are pinned in its folder), runs its programs and ends the
server. A program prints a line 'ok NAME' or 'failed NAME: why' for each of its jobs and exits with 1 if one failed.
A language whose registry does not answer is not run, which is said with the reason; where nothing else is wrong the
exit status then is 77. Standard library only."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(ROOT, "build", "clients")
THREADS = 4
# A job takes seconds; a bound only keeps a hang from lasting.
JOB_SECONDS = 180
INSTALL_SECONDS = 420
# Three tries, with so long between them.
RETRY_SECONDS = (5, 20)


NOT_RUN = 77


class Failure(Exception):
    pass


class NotRun(Exception):
    """A registry did not give what is needed: no fault of the server's."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(command, seconds, **kwargs):
    """Runs a program in a process group of its own, which is gone afterwards. Returns (status, output)."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True, text=True,
                               errors="replace", **kwargs)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return 124, output + "\n(ended after %d s)" % seconds
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what the program left behind
        except ProcessLookupError:
            pass


def build(command, **kwargs):
    status, output = run(command, INSTALL_SECONDS, **kwargs)
    if status != 0:
        raise Failure("%s: exit status %d\n%s" % (" ".join(command), status, output[-3000:]))


def install(command, **kwargs):
    """From a registry: they are far away, and now and then out of breath."""
    for wait_s in (0,) + RETRY_SECONDS:
        time.sleep(wait_s)
        status, output = run(command, INSTALL_SECONDS, **kwargs)
        if status == 0:
            return
        print("%s: exit status %d" % (" ".join(command[:4]), status), flush=True)
    raise NotRun("%s: exit status %d\n%s" % (" ".join(command), status, output[-3000:]))


def up_to_date(stamp, sources):
    """Whether what `stamp` stands for was installed from files like these."""
    wanted = "".join(open(source).read() for source in sources)
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return True, wanted
    return False, wanted


def python_programs():
    folder, venv = os.path.join(HERE, "python"), os.path.join(CACHE, "python")
    requirements = os.path.join(folder, "requirements.txt")
    stamp = os.path.join(venv, "installed")
    fresh, wanted = up_to_date(stamp, [requirements])
    if not fresh:
        shutil.rmtree(venv, ignore_errors=True)
        build(["/usr/bin/python3", "-m", "venv", venv])
        install([venv + "/bin/pip", "install", "-q", "--no-deps", "--disable-pip-version-check", "-r",
                 requirements])
        with open(stamp, "w") as f:
            f.write(wanted)
    for name in ("redis_py", "celery_jobs", "rq_jobs"):
        yield name, [venv + "/bin/python", name + ".py"], folder, {}


def node_programs():
    folder, place = os.path.join(HERE, "node"), os.path.join(CACHE, "node")
    package = os.path.join(folder, "package.json")
    stamp = os.path.join(place, "installed")
    fresh, wanted = up_to_date(stamp, [package])
    os.makedirs(place, exist_ok=True)
    shutil.copy(package, place)
    if not fresh:
        # package.json names every version; the optional packages are native code for other machines too.
        install(["npm", "install", "--no-package-lock", "--omit=optional", "--no-audit", "--no-fund",
                 "--ignore-scripts"], cwd=place)
        with open(stamp, "w") as f:
            f.write(wanted)
    # Modules are looked for beside the program that imports them.
    for name in ("common.mjs", "ioredis.mjs", "bullmq.mjs"):
        shutil.copy(os.path.join(folder, name), place)
    for name in ("ioredis", "bullmq"):
        yield name, ["node", name + ".mjs"], place, {}


def go_programs():
    folder, place = os.path.join(HERE, "go"), os.path.join(CACHE, "go")
    env = {"GOPATH": os.path.join(place, "path"), "GOCACHE": os.path.join(place, "cache"),
           "GOFLAGS": "-mod=readonly -modcacherw", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    install(["go", "mod", "download"], cwd=folder, env=dict(os.environ, **env))
    for name in ("goredis", "asynq"):
        binary = os.path.join(place, name)
        build(["go", "build", "-o", binary, "./" + name], cwd=folder, env=dict(os.environ, **env))
        yield name, [binary], place, {}


def java_programs():
    folder, place = os.path.join(HERE, "java"), os.path.join(CACHE, "java")
    pom, lib, classes = (os.path.join(*p) for p in
                         ((folder, "pom.xml"), (place, "lib"), (place, "classes")))
    stamp = os.path.join(place, "installed")
    fresh, wanted = up_to_date(stamp, [pom])
    if not fresh:
        shutil.rmtree(lib, ignore_errors=True)
        os.makedirs(place, exist_ok=True)
        install(["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies",
                 "-DoutputDirectory=" + lib, "-Dmaven.repo.local=" + os.path.join(place, "m2")])
        with open(stamp, "w") as f:
            f.write(wanted)
    sources = sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".java"))
    build(["javac", "-d", classes, "-cp", lib + "/*"] + sources)
    for name in ("Jedis", "Lettuce", "Redisson"):
        yield name.lower(), ["java", "-Xmx256m", "-cp", classes + ":" + lib + "/*", name + "Jobs"], place, {}


LANGUAGES = {"python": python_programs, "node": node_programs, "go": go_programs,
             "java": java_programs}


class Server:
    """keydb-server in a folder of its own."""

    def __init__(self):
        program = os.environ.get("KEYDB_SERVER", os.path.join(ROOT, "build/release/bin/keydb-server"))
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix="keydb-clients-")
        self.log = open(os.path.join(self.folder, "log"), "w+")
        arguments = ["--port", str(self.port), "--dir", self.folder, "--save", ""]
        if "keydb" in os.path.basename(program):
            arguments += ["--server-threads", str(THREADS)]
        self.process = subprocess.Popen([os.path.abspath(program)] + arguments, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT)
        for _ in range(200):
            try:
                if self.ask(b"PING\r\n") == b"+PONG\r\n":
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise Failure("%s does not answer\n%s" % (program, self.said()))

    def ask(self, request):
        with socket.create_connection(("127.0.0.1", self.port), 5) as s:
            s.settimeout(60)
            s.sendall(request)
            return s.recv(4096)

    def said(self):
        self.log.flush()
        with open(self.log.name, errors="replace") as f:
            return f.read()[-4000:]

    def stop(self):
        """Ends it; returns what is wrong about how it ended, or None."""
        died = self.process.poll()
        if died is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                return "did not end within 30 s of SIGTERM\n" + self.said()
        fault = None
        if died is not None or self.process.returncode != 0:
            fault = "exit status %d%s\n%s" % (self.process.returncode,
                                              " before its end" if died is not None else "", self.said())
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return fault


def run_program(server, title, command, folder, env):
    """Returns (jobs that passed, jobs that failed)."""
    server.ask(b"FLUSHALL\r\n")
    env = dict(os.environ, REDIS_HOST="127.0.0.1", REDIS_PORT=str(server.port), **env)
    started = time.monotonic()
    status, output = run(command, JOB_SECONDS, cwd=folder, env=env)
    passed = [line for line in output.splitlines() if line.startswith("ok ")]
    failed = [line for line in output.splitlines() if line.startswith("failed ")]
    for line in passed + failed:
        print("%s: %s" % (title, line), flush=True)
    if status != 0 and not failed or status == 0 and not passed:
        failed.append("failed")
        print("%s: failed: exit status %d" % (title, status), flush=True)
    if failed:
        print(output[-6000:], flush=True)
    print("%s: %.1f s" % (title, time.monotonic() - started), flush=True)
    return len(passed), len(failed)


def prepare(name):
    """Installs a language's packages; (its programs, None) or ([], what went wrong, an exception)."""
    started = time.monotonic()
    try:
        programs = list(LANGUAGES[name]())
    except (Failure, NotRun) as trouble:
        return [], trouble
    print("%s: installed, %.1f s" % (name, time.monotonic() - started), flush=True)
    return programs, None


def main(names):
    passed = failed = 0
    not_run = []
    names = names or list(LANGUAGES)
    os.makedirs(CACHE, exist_ok=True)
    # Mostly waiting for registries: all languages at once.
    with ThreadPoolExecutor(len(names)) as pool:
        prepared = dict(zip(names, pool.map(prepare, names)))
    server = Server()
    try:
        for name in names:
            programs, trouble = prepared[name]
            if trouble:
                print("%s: %s: %s" % (name, "not run" if isinstance(trouble, NotRun) else "failed", trouble), flush=True)
                failed += isinstance(trouble, Failure)
                not_run += [name] * isinstance(trouble, NotRun)
            for title, command, folder, env in programs:
                good, bad = run_program(server, title, command, folder, env)
                passed, failed = passed + good, failed + bad
    finally:
        fault = server.stop()
    if fault:
        failed += 1
        print("server: failed: " + fault)
    print("%d passed, %d failed%s" % (passed, failed, "; not run: " + " ".join(not_run) if not_run else ""))
    return 1 if failed else NOT_RUN if not_run else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
