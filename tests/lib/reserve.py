"""The file of repl-backlog-disk-reserve, which has no name: through the process that has it open."""

import os

from lib.bounds import eventually
from lib.replication import replication


def reserve_files(server):
    """Paths by which the test can open them."""
    found = []
    base = "/proc/%d/fd" % server.pid
    for number in os.listdir(base):
        path = os.path.join(base, number)
        try:
            target = os.readlink(path)
        except FileNotFoundError:
            continue
        if target.endswith(" (deleted)") and ("/#" in target or ".reserve" in target):
            found.append(path)
    return found


def on_disk(server):
    """What has been written is in the file, but for the end, of which it is not worth to wake the thread."""
    def queued():
        return [int(text) for name, text in replication(server).items() if name.endswith("_disk_queued")]
    eventually(lambda: queued() and max(queued()) < 300 << 10, "it is written", 30)


def damage(server):
    """Other bytes everywhere; the file stays as long as it is."""
    on_disk(server)
    for path in reserve_files(server):
        with open(path, "r+b") as file:
            length = file.seek(0, os.SEEK_END)
            for at in range(0, length, 4096):
                file.seek(at + 1000)
                file.write(b"\xff" * 100)


def cut_off(server):
    on_disk(server)
    for path in reserve_files(server):
        os.truncate(path, 20000)


def names_left(server):
    return [name for name in os.listdir(server.file(".")) if "reserve" in name]
