"""Firefox, driven by Marionette, its own protocol for tests: one JSON message with its length at a time."""

import json
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from tests.report.browser import TIMEOUT, lacking

NAMES = ("firefox-esr", "firefox")
PREFERENCES = {  # a free port, and nothing that Firefox itself asks of a network
    "marionette.port": 0,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.proxy.type": 1,
    "network.proxy.socks": "127.0.0.1",
    "network.proxy.socks_port": 9,
    "ui.prefersReducedMotion": 1,
}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element in WebDriver


class Firefox:
    """A window of Firefox; what is sent are commands of WebDriver."""

    def __init__(self, connection, stream):
        self.connection, self.stream = connection, stream
        self._receive()  # a greeting
        self.send("NewSession")

    def _receive(self):
        length = b""
        while (digit := self.stream.read(1)) != b":":
            assert digit, "Firefox has ended"
            length += digit
        return json.loads(self.stream.read(int(length)))

    def send(self, command, **parameters):
        """Send a command, and return its answer."""
        message = json.dumps([0, 1, f"WebDriver:{command}", parameters]).encode()
        self.connection.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._receive()
        assert error is None, f"{command}: {error['error']}: {error['message']}"
        return result.get("value") if isinstance(result, dict) else result

    def evaluate(self, expression, *arguments):
        """Return what an expression in the page is worth; `arguments` are its `arguments`."""
        return self.send("ExecuteScript", script=f"return ({expression})", args=arguments, sandbox=None)

    def wait(self, expression, *arguments):
        """Until an expression in the page is true."""
        end = monotonic() + TIMEOUT / 1000
        while not self.evaluate(expression, *arguments):
            assert monotonic() < end, f"never true: {expression}"
            sleep(0.02)

    def open(self, address):
        self.send("Navigate", url=address)
        self.wait("document.documentElement.dataset.ready === 'true'")

    def element(self, selector):
        return self.send("FindElement", using="css selector", value=selector)[ELEMENT]

    def click(self, selector):
        self.send("ElementClick", id=self.element(selector))

    def type(self, selector, text):
        self.send("ElementSendKeys", id=self.element(selector), text=text)

    def click_at(self, x, y):
        """Click at a place in the window."""
        move = {"type": "pointerMove", "x": round(x), "y": round(y), "origin": "viewport", "duration": 0}
        press, release = ({"type": f"pointer{way}", "button": 0} for way in ("Down", "Up"))
        mouse = {"type": "pointer", "id": "mouse", "actions": [move, press, release]}
        self.send("PerformActions", actions=[mouse])

    def press(self, key):
        """Press a key, wherever the focus is."""
        keys = [{"type": f"key{way}", "value": key} for way in ("Down", "Up")]
        self.send("PerformActions", actions=[{"type": "key", "id": "keys", "actions": keys}])


@contextmanager
def firefox_window(folder):
    """Start Firefox without a screen and with a fresh profile in the folder; give its window."""
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        lacking(f"no Firefox ({', '.join(NAMES)}) on the path: apt-get install firefox-esr")
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
    (folder / "user.js").write_text("\n".join(lines))
    command = [executable, "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        place = "127.0.0.1", _port(folder / "MarionetteActivePort", process)
        with (
            socket.create_connection(place, TIMEOUT / 1000) as connection,
            connection.makefile("rb") as stream,
        ):
            yield Firefox(connection, stream)
    finally:
        process.terminate()
        process.wait(60)


def _port(file: Path, process):
    """Return the port that Firefox listens on, when it has written it down."""
    end = monotonic() + TIMEOUT / 1000
    while not (file.exists() and file.read_text().strip()):
        assert process.poll() is None, "Firefox has ended"
        assert monotonic() < end, "Firefox opens no port"
        sleep(0.05)
    return int(file.read_text())
