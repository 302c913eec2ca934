"""A port of this machine that a test serves itself."""

import socket
import threading


class Door:
    """Listens on .port of 127.0.0.1 and calls serve(socket) for each connection on a thread of its own, until close().

    It is closed when its thread has ended, not before: a thread on its way into accept() knows a number, and the next
    listener may be given the same one, whose connections it would take.
    """

    def __init__(self, serve, port=0):
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), now and ever after
        except OSError:
            pass
        self._thread.join()
        self._listener.close()
