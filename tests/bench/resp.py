"""A minimal RESP2 client for asking servers questions; the load comes from keydb-benchmark."""

import socket


class ReplyError(Exception):
    pass


class Client:
    def __init__(self, port, timeout_s=120.0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self.stream = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.stream.close()
        self.socket.close()

    def send(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        self.socket.sendall(b"".join(parts))

    def call(self, *words):
        self.send(*words)
        return self._read()

    def _read(self):
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise ReplyError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.stream.read(size + 2)[:-2]
        if kind == b"*":
            return None if int(rest) < 0 else [self._read() for _ in range(int(rest))]
        raise ConnectionError("no RESP2 reply: %r" % line)

    def info(self, *sections):
        """INFO as a dictionary of texts."""
        text = self.call("INFO", *sections).decode(errors="replace")
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
