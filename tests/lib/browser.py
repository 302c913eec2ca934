"""A headless Chromium, driven through its DevTools protocol over a pipe: what a page says, draws and complains of."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

from lib.bounds import Bound, BoundPassed, scaled

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "headless_shell")


def find():
    """The program, None where there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page. Every message of its console, and every exception of its scripts, is in `complaints`."""

    def __init__(self, program):
        self.directory = tempfile.mkdtemp(prefix="kt-browser-")
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()
        self.complaints, self.number, self.unread = [], 0, b""

        def take_pipes():  # the browser's are 3 and 4
            read_end, write_end = os.dup(to_read), os.dup(to_write)
            os.dup2(read_end, 3)
            os.dup2(write_end, 4)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir=" + self.directory,
             "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=take_pipes, start_new_session=True,
            env=dict(os.environ, HOME=self.directory, XDG_CONFIG_HOME=self.directory))
        os.close(to_read)
        os.close(to_write)
        os.set_blocking(self.from_browser, False)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        """Its processes are of a group of their own."""
        for end in (self.to_browser, self.from_browser):
            os.close(end)
        try:
            self.process.wait(timeout=scaled(10))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        for _ in range(50):
            shutil.rmtree(self.directory, ignore_errors=True)
            if not os.path.exists(self.directory):
                break
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- the protocol

    def _message(self, bound):
        while b"\0" not in self.unread:
            try:
                more = os.read(self.from_browser, 1 << 20)
                assert more, "the browser has ended"
                self.unread += more
            except BlockingIOError:
                if not bound.left():
                    raise BoundPassed("the browser does not answer") from None
                time.sleep(0.01)
        text, _, self.unread = self.unread.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        bound = Bound(scaled(30))
        while True:
            got = self._message(bound)
            if got.get("id") == self.number:
                assert "error" not in got, (method, got["error"])
                return got["result"]
            self._note(got)

    def _note(self, event):
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(event["params"]["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded":
            self.complaints.append(event["params"]["entry"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(event["params"]["args"]))

    # -- for tests

    def show(self, width, height, scheme, scale=1):
        """The size of the window, and "light" or "dark"."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url, headers=None):
        self.call("Network.setExtraHTTPHeaders", headers=headers or {})
        self.call("Page.navigate", url=url)

    def value(self, expression):
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def text(self, element_id):
        return self.value("(document.getElementById(%s) || {}).innerText" % json.dumps(element_id))

    def picture(self, path):
        """The whole page as a PNG."""
        got = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(got["data"]))
