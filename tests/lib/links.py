"""Links between servers that a test cuts: each is a port whose connections are passed on to a server, until they are cut,
or held in one direction.

    links = Links()
    port = links.add("b from a", lambda: a.address())     # b is told to follow 127.0.0.1 port
    links["b from a"].cut()         # closed, and so is whoever comes
    links["b from a"].hold(down=True)     # stays open; what a says comes later
    links["b from a"].mend()        # as at first, and what was held comes

One thread serves all of them. `down` is from the server to whoever has connected, `up` the other way.
"""

import os
import selectors
import socket
import threading

CHUNK_BYTES = 1 << 18


class _Pipe:
    """One direction of a connection: what has been read and not yet written."""

    def __init__(self, source, target):
        self.source, self.target, self.data, self.ended = source, target, b"", False


class Link:
    def __init__(self, links, target):
        self.links, self.target = links, target
        self.is_cut, self.held = False, {"up": False, "down": False}
        self.connections = []  # of {"up": pipe, "down": pipe}
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]

    def cut(self):
        self.links.do(lambda: self._set(True, False, False))

    def hold(self, up=False, down=False):
        self.links.do(lambda: self._set(False, up, down))

    def mend(self):
        self.links.do(lambda: self._set(False, False, False))

    # -- by the links' thread

    def _set(self, is_cut, up, down):
        self.is_cut, self.held = is_cut, {"up": up, "down": down}
        for connection in list(self.connections):
            if is_cut:
                self.close(connection)
            else:
                self.watch(connection)

    def accept(self):
        try:
            near = self.listener.accept()[0]
        except OSError:
            return
        if self.is_cut:
            near.close()
            return
        try:
            far = socket.create_connection(self.target(), 1.0)
        except (OSError, LookupError, TypeError):
            near.close()  # there is no server
            return
        for sock in (near, far):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = {"up": _Pipe(near, far), "down": _Pipe(far, near)}
        self.connections.append(connection)
        self.watch(connection)

    def watch(self, connection):
        """Asks for what can be done with its sockets now."""
        wanted = {connection["up"].source: 0, connection["down"].source: 0}
        for name, pipe in connection.items():
            if self.held[name]:
                continue
            if pipe.data:
                wanted[pipe.target] |= selectors.EVENT_WRITE
            elif not pipe.ended:
                wanted[pipe.source] |= selectors.EVENT_READ
        for sock, events in wanted.items():
            self.links.want(sock, events, (self, connection))

    def step(self, connection):
        try:
            for name, pipe in connection.items():
                if not self.held[name]:
                    self._move(pipe)
        except OSError:
            self.close(connection)
            return
        if all(pipe.ended and not pipe.data for pipe in connection.values()):
            self.close(connection)
        else:
            self.watch(connection)

    @staticmethod
    def _move(pipe):
        try:
            if not pipe.data and not pipe.ended:
                pipe.data = pipe.source.recv(CHUNK_BYTES)
                pipe.ended = not pipe.data
            if pipe.data:
                pipe.data = pipe.data[pipe.target.send(pipe.data):]
            if pipe.ended and not pipe.data:
                pipe.target.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass

    def close(self, connection):
        self.connections.remove(connection)
        for sock in (connection["up"].source, connection["down"].source):
            self.links.want(sock, 0, None)
            sock.close()


class Links:
    def __init__(self):
        self.links, self.orders = {}, []
        self.selector, self.lock = selectors.DefaultSelector(), threading.Lock()
        self.wake_end, self.wake = os.pipe()
        self.selector.register(self.wake_end, selectors.EVENT_READ, None)
        self.over = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def add(self, name, target):
        """The port of a new link to the server at target()."""
        link = self.links[name] = Link(self, target)
        self.do(lambda: self.selector.register(link.listener, selectors.EVENT_READ, (link, None)))
        return link.port

    def __getitem__(self, name):
        return self.links[name]

    def __iter__(self):
        return iter(self.links)

    def mend(self):
        for link in self.links.values():
            link.mend()

    def do(self, order):
        """Has the thread run it, and waits for that."""
        done = threading.Event()
        with self.lock:
            self.orders.append((order, done))
        os.write(self.wake, b"x")
        done.wait(30)

    def close(self):
        def end():
            self.over = True
            for link in self.links.values():
                link._set(True, False, False)
                self.want(link.listener, 0, None)
                link.listener.close()
        self.do(end)
        self.thread.join()
        self.selector.close()
        os.close(self.wake_end)
        os.close(self.wake)

    def want(self, sock, events, data):
        known = sock.fileno() in self.selector.get_map() if sock.fileno() >= 0 else False
        if known and events:
            self.selector.modify(sock, events, data)
        elif known:
            self.selector.unregister(sock)
        elif events:
            self.selector.register(sock, events, data)

    def _run(self):
        while not self.over:
            for key, _ in self.selector.select():
                if key.data is None:
                    os.read(self.wake_end, 4096)
                    continue
                link, connection = key.data
                if connection is None:
                    link.accept()
                elif connection in link.connections:
                    link.step(connection)
            with self.lock:
                orders, self.orders = self.orders, []
            for order, done in orders:
                order()
                done.set()
