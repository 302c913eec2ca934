"""A strict RESP2 and RESP3 client on a plain socket.

What a lenient client library forgives is a defect here: every byte of every reply is checked
against the grammar, a RESP3 type on a RESP2 connection is malformed, and so is a nil in the
spelling of the other protocol.  Each reply is given both as its raw bytes and as a decoded tree.

    Simple, Error, Verbatim    subclasses of bytes (compare equal to bytes)
    bulk string                bytes
    integer                    int
    big number, double, bool   BigNumber (int), Double (float, .text), bool
    array, set, push           list, Set (list), Push (list)
    map                        Map (list of pairs; .get(key) and .as_dict())
    nil of any spelling        None
"""

import array
import errno
import fcntl
import re
import select
import socket
import termios
import time

from lib.bounds import FACTOR, SILENCE_FACTOR, Bound, BoundPassed, scaled

CRLF = b"\r\n"
MAX_LINE_BYTES = 1 << 20
MAX_BULK_BYTES = 1 << 30
MAX_DEPTH = 64
# Of what is taken in before it is taken apart.
LONG_BYTES, MANY_BYTES = 1 << 16, 8 << 20

_INTEGER = re.compile(rb"(0|-?[1-9][0-9]*)\Z")
_LENGTH = re.compile(rb"(0|[1-9][0-9]*)\Z")
# of a bulk string of less than MAX_BULK_BYTES
_BLOB_HEAD = re.compile(rb"\$(0|[1-9][0-9]{0,8})\r\n")
_DOUBLE = re.compile(rb"(inf|-inf|nan|-nan|-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)\Z")


class Malformed(Exception):
    """The server sent bytes that are no reply."""


class Closed(Exception):
    """The server closed the connection where a reply was due."""


class Timeout(BoundPassed):
    """Nothing came within the bound."""


class Simple(bytes):
    """+text"""


class Error(bytes):
    """-text"""


class Verbatim(bytes):
    """=len; .format holds the three letters."""

    format = b""


class BigNumber(int):
    """(number"""


class Double(float):
    """,number; .text is the spelling."""

    text = b""


class Set(list):
    """~len"""


class Push(list):
    """>len"""


class Map(list):
    """%len, as a list of pairs, in the order sent."""

    def as_dict(self):
        return {k: v for k, v in self}

    def get(self, key, default=None):
        return self.as_dict().get(key, default)


class Attributed:
    """|len followed by the reply that it belongs to."""

    def __init__(self, attributes, value):
        self.attributes = attributes
        self.value = value


class _Incomplete(Exception):
    pass


def to_bytes(arg):
    """Argument to bytes, the way a client library would spell it."""
    if isinstance(arg, (bytes, bytearray)):
        return bytes(arg)
    if isinstance(arg, str):
        return arg.encode("utf-8", "surrogateescape")
    if isinstance(arg, bool):
        raise TypeError("say what a bool means to the command")
    if isinstance(arg, (int, float)):
        return repr(arg).encode()
    raise TypeError("cannot send a %s" % type(arg).__name__)


def encode(*args):
    """One multibulk request."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = to_bytes(arg)
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Decoder:
    """Incremental reply decoder: feed() bytes, then next() until it gives None."""

    def __init__(self, proto=2):
        self.proto = proto
        self._buffer = bytearray()
        self._start = 0
        self._wanted = 0
        self._partial = None  # of the outermost aggregate: where its items begin, those that are here, where it goes on

    def feed(self, data):
        self._buffer += data

    def size(self):
        """How many bytes are there and not yet part of a reply."""
        return len(self._buffer) - self._start

    def pending(self):
        """Bytes that are there and not yet part of a reply."""
        return bytes(self._buffer[self._start:])

    def next(self):
        """(raw, tree) of the next whole reply, or None."""
        if len(self._buffer) < self._wanted or self._start == len(self._buffer):
            return None
        try:
            tree, end = self._value(self._start, 0)
        except _Incomplete:
            return None
        self._wanted = 0
        self._partial = None
        raw = bytes(self._buffer[self._start:end])
        self._start = end
        if self._start > 1 << 16 or self._start == len(self._buffer):
            del self._buffer[:self._start]
            self._start = 0
        return raw, tree

    def _line(self, at):
        end = self._buffer.find(b"\n", at)
        if end < 0:
            if len(self._buffer) - at > MAX_LINE_BYTES:
                raise Malformed("a line without end: %r" % bytes(self._buffer[at:at + 80]))
            raise _Incomplete
        line = bytes(self._buffer[at:end - 1])
        if end == at or self._buffer[end - 1] != 13:
            raise Malformed("LF without CR in %r" % bytes(self._buffer[at:end + 1]))
        if b"\r" in line:
            raise Malformed("CR inside the line %r" % line)
        return line, end + 1

    def _length(self, line, what):
        if not _LENGTH.match(line):
            raise Malformed("%s length %r" % (what, line))
        return int(line)

    def _need(self, end):
        if len(self._buffer) < end:
            self._wanted = end
            raise _Incomplete

    def _blob(self, line, at):
        size = self._length(line, "bulk")
        if size > MAX_BULK_BYTES:
            raise Malformed("bulk of %d bytes" % size)
        end = at + size
        self._need(end + 2)
        if self._buffer[end:end + 2] != CRLF:
            raise Malformed("no CR LF after a bulk of %d bytes: %r"
                            % (size, bytes(self._buffer[end:end + 8])))
        return bytes(self._buffer[at:end]), end + 2

    def _items(self, count, at, depth):
        begin, items = at, []
        if depth == 0 and self._partial and self._partial[0] == begin:
            _, items, at = self._partial
        try:
            while len(items) < count:
                item, at = self._short_blob(at) if depth < MAX_DEPTH else (None, at)
                if item is None:
                    item, at = self._value(at, depth + 1)
                items.append(item)
        finally:
            if depth == 0:
                self._partial = begin, items, at
        return items, at

    def _short_blob(self, at):
        """What nearly all items are, a whole and right bulk string; (None, at) where there is none."""
        head = _BLOB_HEAD.match(self._buffer, at)
        if head:
            begin = head.end()
            end = begin + int(head[1])
            if self._buffer[end:end + 2] == CRLF:
                return bytes(self._buffer[begin:end]), end + 2
        return None, at

    def _pairs(self, line, at, depth):
        flat, at = self._items(2 * self._length(line, "map"), at, depth)
        return Map(zip(flat[0::2], flat[1::2])), at

    def _value(self, at, depth):
        if depth > MAX_DEPTH:
            raise Malformed("replies nested over %d deep" % MAX_DEPTH)
        if at >= len(self._buffer):
            raise _Incomplete
        kind = chr(self._buffer[at])
        if kind not in "+-:$*" and self.proto < 3 or kind not in "+-:$*_#,(=!~%>|":
            raise Malformed("type byte %r on RESP%d: %r"
                            % (kind, self.proto, bytes(self._buffer[at:at + 80])))
        line, at = self._line(at + 1)
        if kind in "$*" and line == b"-1":
            if self.proto == 3:
                raise Malformed("RESP2 nil %s-1 on RESP3" % kind)
            return None, at
        if kind in "+-:_#,(":
            return self._scalar(kind, line), at
        return self._aggregate(kind, line, at, depth)

    def _scalar(self, kind, line):
        if kind == "+":
            return Simple(line)
        if kind == "-":
            return Error(line)
        if kind in ":(":
            if not _INTEGER.match(line):
                raise Malformed("integer %r" % line)
            number = int(line)
            if kind == "(":
                return BigNumber(number)
            if not -2**63 <= number < 2**63:
                raise Malformed("integer %r does not fit 64 bits" % line)
            return number
        if kind == "_":
            if line:
                raise Malformed("null with a body: %r" % line)
            return None
        if kind == "#":
            if line not in (b"t", b"f"):
                raise Malformed("boolean %r" % line)
            return line == b"t"
        if not _DOUBLE.match(line):
            raise Malformed("double %r" % line)
        double = Double(line)
        double.text = line
        return double

    def _aggregate(self, kind, line, at, depth):
        if kind == "$":
            return self._blob(line, at)
        if kind == "!":
            data, at = self._blob(line, at)
            return Error(data), at
        if kind == "=":
            data, at = self._blob(line, at)
            if len(data) < 4 or data[3:4] != b":":
                raise Malformed("verbatim string %r" % data[:16])
            text = Verbatim(data[4:])
            text.format = data[:3]
            return text, at
        if kind == "%":
            return self._pairs(line, at, depth)
        if kind == "|":
            attributes, at = self._pairs(line, at, depth)
            value, at = self._value(at, depth)
            return Attributed(attributes, value), at
        items, at = self._items(self._length(line, "array"), at, depth)
        return {"*": list, "~": Set, ">": Push}[kind](items), at


def unread_by_peer(sock):
    """Bytes sent on a Unix socket that the other process has not read yet (Linux SIOCOUTQ)."""
    value = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, value)
    return value[0]


def wait_for(sock, seconds, writing=False):
    """(readable, writable) of a socket, once it is either or the time is over.  poll() rather than
    select(), which knows no descriptors over 1023."""
    watch = select.poll()
    watch.register(sock, select.POLLIN | (select.POLLOUT if writing else 0))
    found = watch.poll(max(seconds, 0) * 1000)
    events = found[0][1] if found else 0
    ended = events & (select.POLLHUP | select.POLLERR)
    return bool(events & select.POLLIN or ended), bool(writing and events & select.POLLOUT)


class Connection:
    """One client.  address is (host, port) or the path of a Unix socket."""

    def __init__(self, address, timeout_s=20.0):
        self.address = address
        self.timeout_s = scaled(timeout_s)
        self.is_unix = isinstance(address, str)
        if self.is_unix:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout_s)
        try:
            self.sock.connect(address)
        except OSError:
            self.sock.close()
            raise
        if not self.is_unix:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.decoder = Decoder()
        self.pushes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset_hard(self):
        """Close with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    # -- sending

    def send_raw(self, data):
        self.sock.sendall(data)

    def send(self, *args):
        self.send_raw(encode(*args))

    def send_pieces(self, pieces):
        """Each piece in a send of its own.  On a Unix socket the next one waits until the server
        has read the one before, so the server sees exactly these splits."""
        for piece in pieces:
            self.sock.sendall(piece)
            if self.is_unix:
                bound = Bound(self.timeout_s)
                while unread_by_peer(self.sock):
                    if not bound.left():
                        raise Timeout("the server does not read")
                    time.sleep(0)
            else:
                time.sleep(0)

    # -- receiving

    def _readable(self, seconds):
        """Waits no longer than that for something to read."""
        return wait_for(self.sock, seconds)[0]

    def receive(self, size, bound=None):
        """Up to so many bytes as they come, past the decoder."""
        bound = bound or Bound(self.timeout_s)
        while True:
            left = bound.left()
            if not left:
                raise Timeout("nothing within the bound; pending %r" % self.decoder.pending()[:200])
            if not self._readable(left):
                continue
            try:
                data = self.sock.recv(size)
            except ConnectionResetError:
                raise Closed("connection reset") from None
            except BlockingIOError:
                continue
            if not data:
                raise Closed("end of stream; pending %r" % self.decoder.pending()[:200])
            return data

    def _receive(self, bound):
        self.decoder.feed(self.receive(1 << 18, bound))
        # A long reply is taken apart from its beginning each time: first all of it that is there.
        try:
            while LONG_BYTES < self.decoder.size() < MANY_BYTES and self._readable(0):
                self.decoder.feed(self.receive(1 << 18, bound))
        except Closed:
            pass  # said again, after what came before it

    def read_frame(self, timeout_s=None):
        """(raw, tree) of the next frame of any kind, push or reply."""
        bound = Bound(self.timeout_s if timeout_s is None else scaled(timeout_s))
        while True:
            frame = self.decoder.next()
            if frame is not None:
                return frame
            self._receive(bound)

    def read_reply(self):
        """(raw, tree) of the next reply; pushes before it are put aside in self.pushes."""
        while True:
            frame = self.read_frame()
            if not isinstance(frame[1], Push):
                return frame
            self.pushes.append(frame[1])

    def read(self):
        return self.read_reply()[1]

    def call(self, *args):
        self.send(*args)
        return self.read()

    __call__ = call

    def call_raw(self, *args):
        """The raw bytes of the reply."""
        self.send(*args)
        return self.read_reply()[0]

    def exchange(self, data, count):
        """Send data while reading count replies, so that neither side's buffers can fill up and
        block both.  Gives the list of (raw, tree); an exception carries those that came as
        .replies."""
        replies = []
        view = memoryview(data)
        bound = Bound(self.timeout_s)
        self.sock.setblocking(False)
        try:
            while len(replies) < count:
                frame = self.decoder.next()
                if frame is not None:
                    if isinstance(frame[1], Push):
                        self.pushes.append(frame[1])
                    else:
                        replies.append(frame)
                    continue
                left = bound.left()
                if not left:
                    raise Timeout("%d of %d replies within the bound" % (len(replies), count))
                readable, writable = wait_for(self.sock, left, bool(view))
                if writable:
                    view = view[self._send_some(view):]
                if readable:
                    self._receive(bound)
        except (Timeout, Closed, Malformed) as trouble:
            trouble.replies = replies
            raise
        finally:
            self.sock.settimeout(self.timeout_s)
        return replies

    def _send_some(self, view):
        try:
            return self.sock.send(view[:1 << 18])
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.ECONNRESET):
                return len(view)  # what the server said before it closed is still to be read
            raise

    def pipeline(self, commands):
        """Trees of the replies to a list of commands sent at once."""
        commands = list(commands)
        data = b"".join(encode(*command) for command in commands)
        return [tree for _, tree in self.exchange(data, len(commands))]

    def read_to_end(self):
        """Everything the server sends until it closes: list of (raw, tree).  Timeout when it
        does not close, Malformed when the last frame is torn."""
        frames = []
        while True:
            try:
                frames.append(self.read_frame())
            except Closed:
                if self.decoder.pending():
                    raise Malformed("closed inside a frame: %r" % self.decoder.pending()) from None
                return frames

    def is_closed(self):
        """Whether the server closes now, with nothing more to say."""
        return self.read_to_end() == []

    def nothing_comes(self, quiet_s=0.1):
        """Whether the server stays silent for a while."""
        try:
            self.read_frame(timeout_s=quiet_s * SILENCE_FACTOR / FACTOR)
        except Timeout:
            return True
        return False

    # -- habits

    def hello(self, proto, *options):
        """HELLO proto; the decoder follows when the server agrees."""
        previous = self.decoder.proto
        self.send("HELLO", proto, *options)
        self.decoder.proto = int(proto)
        raw, tree = self.read_reply()
        if isinstance(tree, Error):
            self.decoder.proto = previous
        return tree

    def ok(self, *args):
        reply = self.call(*args)
        assert reply == b"OK" and isinstance(reply, Simple), (args, reply)

    def error(self, *args):
        reply = self.call(*args)
        assert isinstance(reply, Error), (args, reply)
        return reply
