"""A primary in the test's own hands: it answers the handshake and gives each full transfer to the
test, which sends what it likes."""

import queue
import socket
import threading

from lib.bounds import BoundPassed, scaled
from lib.server import serve_all

HISTORY = b"0123456789abcdef" * 2 + b"01234567"
OTHER = b"fedcba9876543210" * 2 + b"fedcba98"


class Transfer:
    """A replica that waits for a data set."""

    def __init__(self, sock, asked):
        self.sock, self.asked = sock, asked  # asked: the words of its PSYNC

    def say(self, history=HISTORY, offset=1000):
        self.sock.sendall(b"+FULLRESYNC %s %d\r\n" % (history, offset))

    def send(self, data):
        """False: the other side has gone."""
        try:
            self.sock.sendall(data)
            return True
        except OSError:
            return False

    def end(self):
        self.sock.close()


class HandMadePrimary:
    """Listens on .port; .transfer() is the next replica that asks for the stream. capa: what it answers to those that
    tell what they can do; asks: the word that asks."""

    def __init__(self, capa=b"+OK", asks=b"PSYNC"):
        self.capa = capa
        self.asks = asks
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(16)
        self.port = self.listener.getsockname()[1]
        self.waiting = queue.Queue()
        self.socks = []
        threading.Thread(target=serve_all, args=(self.listener, self._greet), daemon=True).start()

    def transfer(self, bound_s=30.0):
        try:
            return self.waiting.get(timeout=scaled(bound_s))
        except queue.Empty:
            raise BoundPassed("no replica asks for the stream") from None

    def close(self):
        self.listener.close()
        for sock in self.socks:
            sock.close()

    def _greet(self, sock):
        self.socks.append(sock)
        try:
            file = sock.makefile("rb", buffering=0)
            while True:
                head = file.readline()
                if not head.startswith(b"*"):
                    return
                words = []
                for _ in range(int(head[1:])):
                    size = int(file.readline()[1:]) + 2
                    word = b""
                    while len(word) < size:
                        word += file.read(size - len(word))
                    words.append(word[:-2])
                if words[0].upper() == self.asks:
                    self.waiting.put(Transfer(sock, words))
                    return
                told = self.capa if b"capa" in words else b"+OK"
                sock.sendall(b"+PONG\r\n" if words[0].upper() == b"PING" else told + b"\r\n")
        except OSError:
            return
