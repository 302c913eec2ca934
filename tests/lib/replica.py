"""A replica that the test plays itself, against a primary."""

import re

from lib.bounds import eventually
from lib.resp import Connection

# What it tells of itself: it takes a data set by a mark, and goes on after a change of the id.
MODERN = ("capa", "eof", "capa", "psync2")


class Played:
    """A replica's end of the link, played by the test."""

    def __init__(self, server, *greeting):
        self.c = Connection(("127.0.0.1", server.port))
        for words in greeting:
            self.c.ok("REPLCONF", *words)

    def line(self):
        """The next line; signs of life between are left out."""
        while True:
            line = self.bytes_until(b"\n")
            if line != b"\n":
                return line.rstrip(b"\r\n")

    def bytes_until(self, end):
        got = b""
        while not got.endswith(end):
            got += self.take(1)
        return got

    def bytes_all(self, mark):
        """Everything up to the mark. Behind it may be line feeds, no more: the stream waits for an acknowledgement."""
        got = bytearray()
        while not got.rstrip(b"\n").endswith(mark):
            got += self.c.receive(1 << 20)
        return bytes(got.rstrip(b"\n")[:-len(mark)])

    def take(self, n):
        got = b""
        while len(got) < n:
            got += self.c.receive(n - len(got))
        return got

    def full(self, old=False):
        """Asks for everything; the id, the offset and the RDB's bytes."""
        identity = (None, None)
        if old:
            self.c.send("SYNC")
        else:
            self.c.send("PSYNC", "?", "-1")
            match = re.fullmatch(rb"\+FULLRESYNC ([0-9a-f]{40}) (\d+)", self.line())
            identity = match.group(1).decode(), int(match.group(2))
        head = self.line()
        if head.startswith(b"$EOF:"):
            rdb = self.bytes_all(head[5:])
        else:
            rdb = self.take(int(head[1:]))
        assert rdb.startswith(b"REDIS0")
        return identity + (rdb,)

    def go_online(self, server, port, offset=0):
        """Acknowledges what it was sent, having told that it listens on the port, until the server sees
        that it is online; and once more, since what Redis hears before it has seen its child end is
        lost."""
        def acknowledged():
            self.c.send("REPLCONF", "ACK", offset)
            return "port=%d,state=online" % port in str(server.info("replication"))
        eventually(acknowledged, "online")
        self.c.send("REPLCONF", "ACK", offset)

    def command(self):
        return self.c.read()

    def close(self):
        self.c.close()
