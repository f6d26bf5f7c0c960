"""What all servers that are compared have in common."""

import contextlib
import dataclasses
import pathlib
import shutil
import signal
import socket
import string
import subprocess
import time

from failure import Failure
from programs import free_port

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Traffic:
    """A subscriber sends `subscribe` after the upgrade and is ready when `answers` frames have come back; the publisher does
    the same with its own, and then sends messages that stand between `prefix` and `suffix`."""
    path: str = "/"
    subprotocol: str = ""
    subscribe: tuple = ()
    answers: int = 0
    publisher: tuple = ()
    publisher_answers: int = 0
    prefix: bytes = b""
    suffix: bytes = b""
    #: Frames of opcode 2 in place of text.
    is_binary: bool = False


class Server:
    """A process that listens on `port`; `pids` are all of its processes."""

    def __init__(self, port, process):
        self.port, self.process = port, process

    @property
    def pids(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]


class Peer:
    """A kind of server: how it is started, fresh for each measurement, and spoken to."""
    name = title = ""
    #: The program, its Debian package first.
    program = package = ""
    #: How many it has when it is ready; those of a worker that is not there yet would be missing from every figure.
    processes = 1
    #: Nothing of theirs outlives a run, so most need not be asked to end.
    ending = signal.SIGKILL

    def __init__(self, tools):
        self.tools = tools
        self.folder = tools.folder / self.name
        self.folder.mkdir()

    @classmethod
    def packages(cls, options):
        return [cls.package] if cls.package else []

    def missing(self):
        """Why it cannot be measured here, or None."""
        return None if shutil.which(self.program) else f"{self.program} is not installed (apt-get install {self.package})"

    def version(self):
        return package_version(self.package)

    def command(self, port, window):
        raise NotImplementedError

    def environment(self):
        return None

    def traffic(self, size):
        raise NotImplementedError

    def open(self):
        """What must be there before the first start."""

    def close(self):
        pass

    @contextlib.contextmanager
    def running(self, window):
        port = free_port()
        with open(self.folder / "log", "w+") as log:
            process = subprocess.Popen([str(part) for part in self.command(port, window)], env=self.environment(),
                                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                server = Server(port, process)
                self._await(server, log)
                yield server
            finally:
                end(process, self.ending)

    def _await(self, server, log):
        deadline = time.monotonic() + 20
        while server.process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", server.port)) == 0 and len(server.pids) >= self.processes:
                    return
            time.sleep(0.02)
        log.seek(0)
        raise Failure(f"{self.title} did not start: {log.read().strip()[-300:] or 'it says nothing'}")

    def configuration(self, name, **values):
        """A file of ours with its $names filled in, where the server finds it."""
        text = string.Template((HERE / name).read_text())
        target = self.folder / name
        target.write_text(text.substitute(folder=self.folder, files=self.tools.files, **values))
        return target


def end(process, how):
    process.send_signal(how)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def package_version(package):
    if not shutil.which("dpkg-query"):
        return f"{package} of unknown version"
    outcome = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    return f"{package} {outcome.stdout}" if outcome.returncode == 0 else f"{package} of unknown version"
