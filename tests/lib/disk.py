"""What a disk may hold after the power went: a layer (disklog.c, preloaded) records what a server
does to its files, and Disk builds from the record the states that are legal at a moment.

Legal is what a file system may do at worst, as long as it keeps the order of one file's writes:
  content   what was written before a sync that succeeded is there; of what came later a beginning,
            torn at a multiple of 512 bytes, or that and zeros up to the size that the file had;
  names     what was done in a directory before it was synced is there; of what came later all, the
            first ones, some, or none. A rename within a directory happens or does not; one between
            two directories may have happened in one of them only.
Names and contents know nothing of one another: a name may be there before its content.
"""

import os
import shutil
import struct
import tempfile

from lib.faults import compile_layer

HEAD = struct.Struct("<IIiiiiqq")
MAGIC = 0x4B534944
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "disklog.c")
SECTOR = 512


class Recorder:
    """Compiles the layer; environment(directory) has a server's files recorded from then on, also
    by further processes."""

    def __init__(self):
        self.directory, self.library = compile_layer(SOURCE)

    def log(self, directory):
        """A new record, which begins with what the directory holds."""
        handle, path = tempfile.mkstemp(dir=self.directory)
        os.close(handle)
        return Log(self.library, path, os.path.realpath(directory))

    def end(self):
        shutil.rmtree(self.directory)


class Log:
    def __init__(self, library, path, root):
        self.library, self.path, self.root = library, path, root
        self.initial = read_tree(root)

    def environment(self):
        return {"LD_PRELOAD": self.library, "KEYDB_TEST_DISK_LOG": self.path,
                "KEYDB_TEST_DISK_ROOT": self.root}

    def position(self):
        """All that has happened so far stands before it."""
        return os.path.getsize(self.path)

    def events(self, begin=0):
        """(position behind it, kind, pid, fd, flags, offset, ns, bytes) of each whole record."""
        with open(self.path, "rb") as file:
            data = file.read()
        at = begin
        while at + HEAD.size <= len(data):
            magic, size, kind, pid, fd, flags, offset, ns = HEAD.unpack_from(data, at)
            assert magic == MAGIC
            end = at + HEAD.size + size
            if end > len(data):
                break
            yield end, chr(kind), pid, fd, flags, offset, ns, data[at + HEAD.size:end]
            at = end

    def resume(self):
        """After all processes were killed, perhaps within a call, and before the next: what the
        kernel has and no record says is added."""
        disk, whole, last_ns = Disk(self.initial), 0, 0
        for event in self.events():
            disk.apply(event)
            whole, last_ns = event[0], event[6]
        os.truncate(self.path, whole)
        found = read_tree(self.root)
        with open(self.path, "ab") as log:
            def add(kind, fd, flags, offset, payload):
                log.write(HEAD.pack(MAGIC, len(payload), ord(kind), 0, fd, flags, offset, last_ns))
                log.write(payload)

            # A rename keeps what is durable of the file, so it is not to be taken for a new one.
            before = disk.files()
            missing = sorted(set(before) - set(found))
            renamed = {}
            for old in missing:
                new = [path for path, content in found.items()
                       if content and content == before[old] and before.get(path) != content
                       and path not in renamed]
                if new:
                    add("R", -1, 0, 0, ("%s\0%s" % (old, new[0])).encode())
                    renamed[new[0]] = old
                else:
                    add("U", -1, 0, 0, old.encode())
            for path, content in found.items():
                if path in renamed:
                    continue
                name = path.encode()
                if content is None:
                    if path not in disk.directories():
                        add("M", -1, 0, 0, name)
                elif before.get(path) != content:
                    # Only what differs: the rest may be durable.
                    known = before.get(path, b"")
                    same = len(os.path.commonprefix([known, content]))
                    add("O", 3, os.O_CREAT | os.O_WRONLY, 0, name)
                    if len(content) < len(known):
                        add("T", 3, 0, len(content), b"")
                    if same < len(content):
                        add("W", 3, 0, same, content[same:])


def read_tree(root):
    """{path: content, None for a directory} of all that is there."""
    found = {}
    for directory, names, files in os.walk(root):
        inside = os.path.relpath(directory, root)
        for name in names:
            found[os.path.normpath(os.path.join(inside, name))] = None
        for name in files:
            path = os.path.normpath(os.path.join(inside, name))
            if name not in ("stdout", "stderr"):
                try:
                    with open(os.path.join(root, path), "rb") as file:
                        found[path] = file.read()
                except OSError:
                    pass  # a socket, or gone
    return found


class File:
    """`durable` is on the disk; pending: (number, offset, bytes or None: cut there), not yet."""

    def __init__(self, durable=b""):
        self.durable, self.pending = bytearray(durable), []

    def content(self, count=None, torn=None):
        """With the first `count` pending changes (None: all), the last of them torn behind `torn`
        bytes of the file."""
        content = bytearray(self.durable)
        changes = self.pending if count is None else self.pending[:count]
        for i, (_, offset, data) in enumerate(changes):
            if data is None:
                del content[offset:]
                content.extend(bytes(offset - len(content)))
                continue
            if torn is not None and i == len(changes) - 1:
                data = data[:max(0, torn - offset)]
            if len(content) < offset:
                content.extend(bytes(offset - len(content)))
            content[offset:offset + len(data)] = data
        return bytes(content)

    def sync(self, number):
        covered = [change for change in self.pending if change[0] <= number]
        later = self.pending[len(covered):]
        self.pending = covered
        self.durable = bytearray(self.content())
        self.pending = later


class Directory:
    def __init__(self):
        self.durable = {}


class Disk:
    def __init__(self, initial):
        self.number = 0
        self.root = Directory()
        self.now = {"": self.root}  # path: File or Directory, as processes see it
        self.names = []  # pending: (number, [(Directory, name, node or None), ...])
        self.descriptors = {}  # (pid, fd): node
        self.begun = {}  # (pid, fd): number before a sync that runs
        for path in sorted(initial):
            node = Directory() if initial[path] is None else File(initial[path])
            self.now[path] = node
            parent, name = os.path.split(path)
            self.now[parent].durable[name] = node

    # -- what processes see

    def files(self):
        return {path: node.content() for path, node in self.now.items() if isinstance(node, File)}

    def directories(self):
        return {path for path, node in self.now.items() if isinstance(node, Directory)}

    # -- events

    def apply(self, event):
        _, kind, pid, fd, flags, offset, _, payload = event
        self.number += 1
        getattr(self, "_apply_" + kind)((pid, fd), flags, offset, payload)

    def _link(self, *parts):
        """Names change: (path, node or None) each."""
        changes = []
        for path, node in parts:
            parent, name = os.path.split(path)
            changes.append((self.now[parent], name, node))
            if node is None:
                self.now.pop(path, None)
            else:
                self.now[path] = node
        self.names.append((self.number, changes))

    def _apply_O(self, key, flags, _, payload):
        path = os.path.normpath(payload.decode()) if payload else ""
        path = "" if path == "." else path
        node = self.now.get(path)
        if node is None:
            node = File()
            self._link((path, node))
        elif flags & os.O_TRUNC:
            node.pending.append((self.number, 0, None))
        self.descriptors[key] = node

    def _apply_W(self, key, _, offset, payload):
        self.descriptors[key].pending.append((self.number, offset, payload))

    def _apply_T(self, key, _, offset, payload):
        node = self.now[payload.decode()] if payload else self.descriptors[key]
        node.pending.append((self.number, offset, None))

    def _apply_S(self, key, *_):
        self.begun[key] = self.number

    def _apply_E(self, key, *_):
        node, number = self.descriptors[key], self.begun.pop(key)
        if isinstance(node, File):
            node.sync(number)
            return
        left = []
        for done, changes in self.names:
            for directory, name, target in changes:
                if directory is node and done <= number:
                    self._set(directory.durable, name, target)
            changes = [c for c in changes if c[0] is not node or done > number]
            if changes:
                left.append((done, changes))
        self.names = left

    def _apply_R(self, key, _flags, _offset, payload):
        old, new = payload.decode().split("\0")
        self._link((new, self.now[old]), (old, None))

    def _apply_L(self, key, _flags, _offset, payload):
        old, new = payload.decode().split("\0")
        self._link((new, self.now[old]))

    def _apply_U(self, key, _flags, _offset, payload):
        self._link((payload.decode(), None))

    def _apply_M(self, key, _flags, _offset, payload):
        self._link((payload.decode(), Directory()))

    def _apply_F(self, key, *_):
        child, parent = key
        for (pid, fd), node in list(self.descriptors.items()):
            if pid == parent:
                self.descriptors[(child, fd)] = node

    # -- states

    @staticmethod
    def _set(names, name, node):
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node

    def state(self, rng, names, content):
        """{path: bytes, None for a directory} after the power went.  names: "all", "first", "some" or
        "none" of what is pending; content: "all", "none", "torn" or "zeros" of each file."""
        views = {}

        def view(directory):
            return views.setdefault(directory, dict(directory.durable))

        chosen = self.names
        if names == "none":
            chosen = []
        elif names == "first":
            chosen = chosen[:rng.randint(0, len(chosen))]
        for _, changes in chosen:
            whole = rng.random() < 0.5
            halves = len({directory for directory, _, _ in changes}) > 1
            for directory, name, node in changes:
                keep = names != "some" or (rng.random() < 0.5 if halves else whole)
                if keep:
                    self._set(view(directory), name, node)
        found = {}

        def walk(directory, inside):
            for name, node in view(directory).items():
                path = os.path.join(inside, name)
                if isinstance(node, Directory):
                    found[path] = None
                    walk(node, path)
                else:
                    found[path] = self._content(rng, node, content)

        walk(self.root, "")
        return found

    @staticmethod
    def _content(rng, file, kind):
        if kind == "all" or not file.pending:
            return file.content()
        if kind == "none":
            return bytes(file.durable)
        count = rng.randint(0, len(file.pending))
        torn = None
        if count and file.pending[count - 1][2] is not None:
            _, offset, data = file.pending[count - 1]
            begin = offset // SECTOR * SECTOR
            torn = rng.choice([None, rng.randrange(begin, offset + len(data), SECTOR)])
        content = file.content(count, torn)
        if kind == "zeros":
            content += bytes(max(0, len(file.content()) - len(content)))
        return content


def write_tree(root, state):
    """Makes the directory hold the state."""
    for path, content in state.items():
        full = os.path.join(root, path)
        if content is None:
            os.makedirs(full, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(content)
