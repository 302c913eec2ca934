"""A node of KeyDB 6.3.4 with `active-replica yes`, played by the test: what such a one tells its replicas and its peers
(reference: shared/reference/keydb.md, 2.1 to 2.5), over a server of ours that has its data. Clients may write to it."""

import os
import queue
import socket
import threading
import time
import uuid

from lib.resp import Closed, Connection, Error, Map, Simple, Timeout, encode
from lib.server import serve_all

HISTORY_CHARS = 40
# What clients of it may write, in forms that need no rewriting.
WRITES = {b"SET", b"DEL", b"INCR", b"INCRBY", b"RPUSH", b"LPUSH", b"LPOP", b"SADD", b"SREM", b"HSET", b"ZADD", b"PEXPIREAT",
          b"PERSIST", b"FLUSHALL", b"APPEND"}


def now_ms():
    return int(time.time() * 1000)


class Author:
    """A process of KeyDB: its name and the numbers that it gives to what it says."""

    def __init__(self):
        self.uuid = str(uuid.uuid4()).encode()
        self.last = 0
        self.clock_ms = now_ms

    def number(self):
        """The wall clock's milliseconds and a counter; never back."""
        self.last = max(self.clock_ms() << 20, self.last + 1)
        return self.last

    def envelope(self, command, db=0, number=None):
        """`command`: words, or the bytes of another envelope, which is passed on."""
        inner = command if isinstance(command, bytes) else encode(*command)
        return encode("RREPLAY", self.uuid, inner, db, number or self.number())


def words_of(file):
    """One request from a file of a socket; None at its end."""
    head = file.readline()
    while head in (b"\n", b"\r\n"):  # a sign of life
        head = file.readline()
    if not head.startswith(b"*"):
        return None
    words = []
    for _ in range(int(head[1:])):
        size = int(file.readline()[1:]) + 2
        words.append(file.read(size)[:-2])
    return words


def reply_bytes(reply):
    """A decoded reply as it came, near enough for clients."""
    if reply is None:
        return b"$-1\r\n"
    if isinstance(reply, Error):
        return b"-%s\r\n" % reply
    if isinstance(reply, Simple):
        return b"+%s\r\n" % reply
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, list):
        items = [x for pair in reply for x in pair] if isinstance(reply, Map) else reply
        return b"*%d\r\n%s" % (len(items), b"".join(reply_bytes(x) for x in items))
    return b"$%d\r\n%s\r\n" % (len(reply), reply)


class Replica:
    """Who pulls from the node. Its socket is written by a thread of its own, so that nobody waits for it."""

    def __init__(self, sock):
        self.sock = sock
        self.todo = queue.Queue()
        self.asked, self.acked = None, -1
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            data = self.todo.get()
            try:
                if data is None:
                    self.sock.shutdown(socket.SHUT_RDWR)
                    return
                self.sock.sendall(data)
            except OSError:
                return


class Node(Author):
    """Listens on .port; `server` has its data, and nobody else writes there. `peers` are nodes that pull from it."""

    def __init__(self, server, port=None):
        super().__init__()
        self.server = server
        self.lock = threading.RLock()
        self.own = server.connect()
        self.peers, self.inbox, self.heard = [], queue.Queue(), {}
        self.history = (uuid.uuid4().hex * 2)[:HISTORY_CHARS].encode()
        self.begin, self.stream = 1000, bytearray()
        self.replicas, self.asked = [], []  # who pulls; the words of each PSYNC
        self.positions = {}  # of each peer: how far its stream was heard
        self.paused = self.over = False
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port or 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        self.socks = []
        threading.Thread(target=serve_all, args=(self.listener, self._serve), daemon=True).start()
        threading.Thread(target=self._hear, daemon=True).start()

    # ---- what it says

    def offset(self):
        return self.begin + len(self.stream)

    def say(self, command, db=0, number=None):
        """One message to replicas and peers, whatever it is."""
        with self.lock:
            message = self.envelope(command, db, number)
            self.stream += message
            for replica in self.replicas:
                replica.todo.put(message)
            for peer in self.peers:
                peer.inbox.put((self, message))
            return message

    def run(self, *command, db=0):
        """A client's write: done and said. Its reply."""
        with self.lock:
            self.own.ok("SELECT", db)
            reply = self.own.call(*command)
            if not isinstance(reply, Error):
                self.say(command, db)
            return reply

    def ping(self):
        self.say(["PING"])

    # ---- what it hears from peers

    def _hear(self):
        while True:
            told = self.inbox.get()
            if told is None:
                return
            sender, message = told
            with self.lock:
                self._take(message)
                self.positions[sender] += len(message)

    def _take(self, message):
        """Runs what is within all envelopes, and passes the message on, unless it has heard of one of them."""
        inner, db, levels = message, 0, []
        while True:
            words = parse(inner)
            if words[0].upper() != b"RREPLAY":
                break
            levels.append((words[1], int(words[4])))
            inner, db = words[2], int(words[3])
        for author, number in levels:
            if author == self.uuid or number <= self.heard.get(author, 0):
                return
        for author, number in levels:
            self.heard[author] = number
        # Whether one whose writes wait runs those of others meanwhile is not known: nobody may count on it.
        if words[0].upper() != b"PING" and not self.paused:
            self.own.ok("SELECT", db)
            self.own.call(*words)
        self.say(message, db)

    # ---- who comes

    def _serve(self, sock):
        self.socks.append(sock)
        replica, behind = Replica(sock), self.server.connect()
        try:
            file = sock.makefile("rb")
            while not self.over:
                words = words_of(file)
                if words is None:
                    break
                told = self._answer(replica, behind, words)
                if told:
                    replica.todo.put(told)
        except (OSError, Closed, Timeout):
            pass
        finally:
            behind.close()
            with self.lock:
                if replica in self.replicas:
                    self.replicas.remove(replica)
            replica.todo.put(None)

    def _answer(self, replica, behind, words):
        name = words[0].upper()
        if name == b"REPLCONF":
            if words[1].lower() == b"ack":
                replica.acked = int(words[2])
                return None
            if words[1].lower() == b"uuid":
                return b"+%s\r\n" % self.uuid
            return b"+OK active-replica\r\n" if b"capa" in words else b"+OK\r\n"
        if name == b"PSYNC":
            replica.asked = words
            self._sync(replica, words)
            return None
        if name == b"SHUTDOWN":
            self.close()
            return None
        if name == b"INFO" and b"replication" in words:
            return reply_bytes(self.about())
        if name == b"CLIENT" and words[1].upper() == b"PAUSE":
            self.paused = True
            return b"+OK\r\n"
        while self.paused and name in WRITES and not self.over:
            time.sleep(0.01)
        if self.over:
            raise Closed("it has ended")
        with self.lock:  # what is run is said in the same order
            reply = behind.call(*words)
            if name in WRITES and not isinstance(reply, Error):
                self.say(words)
            return reply_bytes(reply)

    def _sync(self, replica, words):
        with self.lock:
            self.asked.append(words)
            place = int(words[2]) - 1 - self.begin
            if words[1] == self.history and 0 <= place <= len(self.stream):
                replica.todo.put(b"+CONTINUE\r\n" + bytes(self.stream[place:]))
            else:
                data = self.data_set()
                replica.todo.put(b"+FULLRESYNC %s %d\r\n$%d\r\n%s" % (self.history, self.offset(), len(data), data))
            self.replicas.append(replica)

    def about(self):
        with self.lock:
            lines = ["# Replication", "role:active-replica", "master_global_link_status:up",
                     "connected_masters:%d" % len(self.positions)]
            lines += ["slave_repl_offset:%d" % position for position in self.positions.values()]
            lines += ["connected_slaves:%d" % len(self.replicas), "master_repl_offset:%d" % self.offset()]
        return "\r\n".join(lines + [""]).encode()

    def data_set(self):
        self.own.ok("SAVE")
        with open(os.path.join(self.server.directory, "dump.rdb"), "rb") as file:
            return file.read()

    # ---- its end

    def cut(self):
        """Ends the links of its replicas; the next one goes on or begins anew, as it asks."""
        with self.lock:
            for replica in self.replicas:
                replica.todo.put(None)
            self.replicas = []

    def close(self):
        self.over = True
        self.inbox.put(None)
        self.listener.close()
        for sock in self.socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def parse(data):
    """The words of a request that is whole."""
    words, at = [], data.index(b"\r\n") + 2
    for _ in range(int(data[1:at - 2])):
        end = data.index(b"\r\n", at)
        size = int(data[at + 1:end])
        words.append(data[end + 2:end + 2 + size])
        at = end + 2 + size + 2
    return words


def pair(*nodes):
    """Each pulls from each: the links of KeyDB are there at once."""
    for node in nodes:
        node.peers = [peer for peer in nodes if peer is not node]
        node.positions = {peer: peer.offset() for peer in node.peers}


def client_of(node, timeout_s=20.0):
    """A client of the node, as the server's are."""
    return Connection(("127.0.0.1", node.port), timeout_s)
