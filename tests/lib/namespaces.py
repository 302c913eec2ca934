"""A network of the test's own: nodes in network namespaces, each with an interface `eth0` on one bridge, whose cables the test
pulls and whose addresses it changes. Only what ip(8) makes; it needs root.

    with Network(3) as network:     # NoNetwork says why there is none
        server = network.server(0)      # a Server that runs in there; tests talk with it over a Unix socket
        network.unplug(0)               # nothing reaches it, nor comes from it
        network.drop(0, 1)              # what 0 sends to 1 gets lost, the other way all is well
        network.mend()
        network.move(1, "10.77.0.201")  # it has another address
        network.name(0, "b", network.address(1))    # on node 0, b is that address

The names of the namespaces have the number of this process, so that what a killed one left behind is known and removed by the
next. The namespace of the machine is not touched.
"""

import contextlib
import os
import re
import shutil
import subprocess

from lib.server import Server

FILES = "/etc/netns"  # ip netns exec puts what is in a folder here in place of files of /etc
NOBODY = "02:00:00:00:00:fe"
PORT = "6379"


class NoNetwork(Exception):
    """Why there can be none."""


def ip(*words):
    done = subprocess.run(["ip", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    if done.returncode:
        raise NoNetwork("ip %s: %s" % (" ".join(words), done.stderr.decode("utf-8", "replace").strip()))
    return done.stdout.decode()


class NamespaceServer(Server):
    """Reached over its Unix socket, whatever becomes of the network."""

    def __init__(self, namespace, path=None, threads=1, options=None, config=None, password=None):
        options = {"port": PORT, "bind": "0.0.0.0", "protected-mode": "no", "unixsocket": "s.sock", **(options or {})}
        super().__init__(path, threads, options, config, password)
        self.namespace = namespace

    def arguments(self):
        return ["ip", "netns", "exec", self.namespace, *super().arguments()]

    def address(self):
        return self.unix_address()


class Network:
    def __init__(self, count):
        self.prefix = "kt%d-" % os.getpid()
        self.hub, self.count = self.prefix + "hub", count
        self.addresses = ["10.77.0.%d" % (i + 1) for i in range(count)]
        self.dropped = set()

    def __enter__(self):
        if os.geteuid() != 0:
            raise NoNetwork("network namespaces need root")
        if not shutil.which("ip"):
            raise NoNetwork("there is no ip")
        sweep()
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def _make(self):
        ip("netns", "add", self.hub)
        ip("-n", self.hub, "link", "add", "br0", "type", "bridge")
        ip("-n", self.hub, "link", "set", "br0", "up")
        for number in range(self.count):
            name = self.namespace(number)
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", self.hub, "link", "add", self.port(number), "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", self.hub, "link", "set", self.port(number), "master", "br0", "up")
            ip("-n", name, "address", "add", self.addresses[number] + "/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            os.makedirs(os.path.join(FILES, name))
            self._write_names(number, {})

    def _remove(self):
        remove(self.prefix)

    def namespace(self, number):
        return "%sn%d" % (self.prefix, number)

    @staticmethod
    def port(number):
        return "p%d" % number

    def address(self, number):
        return self.addresses[number]

    def server(self, number):
        """What makes it, as Server does."""
        return lambda *arguments: NamespaceServer(self.namespace(number), *arguments)

    # -- what happens to it

    def unplug(self, number):
        ip("-n", self.hub, "link", "set", self.port(number), "down")

    def drop(self, source, target):
        """Its frames go to a card that nobody has."""
        ip("-n", self.namespace(source), "neighbour", "replace", self.addresses[target], "lladdr", NOBODY,
           "nud", "permanent", "dev", "eth0")
        self.dropped.add((source, target))

    def mend(self):
        for number in range(self.count):
            ip("-n", self.hub, "link", "set", self.port(number), "up")
        for source, target in self.dropped:
            ip("-n", self.namespace(source), "neighbour", "delete", self.addresses[target], "dev", "eth0")
        self.dropped.clear()

    def move(self, number, address):
        """To an address that nobody has had: the others know no card for it yet."""
        for words in (("delete", self.addresses[number]), ("add", address)):
            ip("-n", self.namespace(number), "address", words[0], words[1] + "/24", "dev", "eth0")
        self.addresses[number] = address

    def name(self, number, host, address):
        self._write_names(number, {host: address})

    def _write_names(self, number, names):
        # In place: a running server has this very file for its /etc/hosts.
        with open(os.path.join(FILES, self.namespace(number), "hosts"), "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost\n" + "".join("%s %s\n" % (a, n) for n, a in names.items()))

    def disturb(self, number, *how):
        """Has what it sends come late, or not at all, as netem's words say."""
        words = ["tc", "-n", self.namespace(number), "qdisc", "replace", "dev", "eth0", "root", "netem", *how]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
        if done.returncode:
            raise NoNetwork("the kernel has no netem: %s" % done.stderr.decode("utf-8", "replace").strip())


def remove(prefix):
    """All namespaces of that name, with their interfaces, and their files."""
    for line in ip("netns", "list").splitlines():
        if line.startswith(prefix):
            with contextlib.suppress(NoNetwork):
                ip("netns", "delete", line.split()[0])
    if os.path.isdir(FILES):
        for name in os.listdir(FILES):
            if name.startswith(prefix):
                shutil.rmtree(os.path.join(FILES, name), ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(FILES)  # unless it is somebody else's


def sweep():
    """What processes left behind that were killed."""
    left = {line.split()[0] for line in ip("netns", "list").splitlines() if line}
    left |= set(os.listdir(FILES)) if os.path.isdir(FILES) else set()
    for match in filter(None, (re.match(r"kt(\d+)-", name) for name in left)):
        if not os.path.exists("/proc/" + match[1]):
            remove(match[0])
