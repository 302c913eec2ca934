"""A proxy that breaks promises on purpose: the canary of the history checks.

    lost updates   INCR is carried out as GET and SET, so two at once may count as one
    stale reads    a GET is now and then answered with the value that the client before saw
    off by one     STRLEN counts a byte too much where there is a value
    polling pops   BLPOP tries LPOP until it gets something, instead of waiting in a queue
"""

import random
import socket
import threading
import time

from lib.resp import Connection, encode
from lib.server import serve_all


class FaultyProxy:
    """Listens on .address; speaks just enough of the request protocol for lib.histories."""

    def __init__(self, server_address, fault):
        self.server_address, self.fault = server_address, fault
        self.old = {}
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(64)
        self.address = self.listener.getsockname()
        threading.Thread(target=serve_all, args=(self.listener, self._serve), daemon=True).start()

    def close(self):
        self.listener.close()

    def _serve(self, sock):
        with sock, Connection(self.server_address) as server:
            file = sock.makefile("rb")
            while True:
                head = file.readline()
                if not head:
                    return
                words = []
                for _ in range(int(head[1:])):
                    size = int(file.readline()[1:])
                    words.append(file.read(size + 2)[:-2])
                try:
                    sock.sendall(self._answer(server, words))
                except OSError:
                    return

    def _answer(self, server, words):
        if self.fault == "lost updates" and words[0] == b"INCR":
            number = int(server.call("GET", words[1]) or 0) + 1
            server.call("SET", words[1], number)
            return b":%d\r\n" % number
        if self.fault == "stale reads" and words[0] == b"GET" and len(words) == 2:
            before = self.old.get(words[1])
            raw = server.call_raw(*words)
            self.old[words[1]] = raw
            return before if before is not None and random.random() < 0.3 else raw
        if self.fault == "polling pops" and words[0] == b"BLPOP":
            return self._poll(server, words[1:-1], float(words[-1]))
        server.send_raw(encode(*words))
        raw, tree = server.read_reply()
        if self.fault == "off by one" and words[0] == b"STRLEN" and isinstance(tree, int) and tree:
            return b":%d\r\n" % (tree + 1)
        return raw

    def _poll(self, server, keys, timeout_s):
        end = time.monotonic() + (timeout_s or 60)
        while time.monotonic() < end:
            for key in keys:
                element = server.call("LPOP", key)
                if element is not None:
                    return encode(key, element)
            time.sleep(random.random() * 0.002)
        return b"*-1\r\n"
