"""The proxies of docs/proxies.md, started with the configuration that stands there; what belongs to a machine is put in its place."""

import os
import re
import shutil
import socket
import subprocess
import tempfile

from support.deadline import until
from support.hub import ROOT
from support.ports import free_port

PAGE = (ROOT / "docs/proxies.md").read_text()

#: Around what the page has for a file of sites-enabled.
NGINX = """
daemon off;
# Where it may be; the test that is about the socket's group runs it as somebody else.
user root;
pid {folder}/pid;
error_log {folder}/main.log;
worker_processes 1;
events {{ worker_connections 500; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{site}
}}
"""


def block(language):
    """The one block of the page in a language."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert len(found) == 1, language
    return found[0]


class PageProxy:
    """One of nginx, haproxy and caddy, as the page has it, with TLS and its logs in files of a folder."""

    def __init__(self, kind, hub, pair):
        self.kind, self.port = kind, free_port()
        self.folder = tempfile.mkdtemp(prefix=f"roost-page-{kind}-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.process = None
        text = getattr(self, f"_{kind}")(hub, pair)
        with open(f"{self.folder}/configuration", "w") as file:
            file.write(text)

    def _replaced(self, text, *pairs):
        for old, new in pairs:
            assert old in text, f"docs/proxies.md has no {old!r} for {self.kind} any more"
            text = text.replace(old, new)
        return text

    def _nginx(self, hub, pair):
        site = self._replaced(
            block("nginx"), ("/run/roost/roost.sock", hub.path), ("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"),
            ("/etc/letsencrypt/live/hub.example.com/fullchain.pem", pair.certificate),
            ("/etc/letsencrypt/live/hub.example.com/privkey.pem", pair.key), ("/var/log/nginx", self.folder))
        return NGINX.format(folder=self.folder, site=site)

    def _haproxy(self, hub, pair):
        both = f"{self.folder}/both.pem"
        with open(both, "w") as file:
            file.write(open(pair.certificate).read() + open(pair.key).read())
        return self._replaced(
            block("haproxy"), ("maxconn 20000", "maxconn 500"), ("log /dev/log local0", "log stdout format raw local0"),
            ("bind :443 ssl crt /etc/haproxy/hub.pem", f"bind 127.0.0.1:{self.port} ssl crt {both}"),
            ("127.0.0.1:4000", f"127.0.0.1:{hub.port}"))

    def _caddy(self, hub, pair):
        return self._replaced(
            block("caddy"), ("{\n    # Also", "{\n    admin off\n    auto_https off\n    # Also"),
            ("hub.example.com {", f"https://127.0.0.1:{self.port} {{\n    tls {pair.certificate} {pair.key}"),
            ("127.0.0.1:4000", f"127.0.0.1:{hub.port}"))

    def start(self, before=()):
        """`before`: a command that becomes the proxy, to be somebody else."""
        path = f"{self.folder}/configuration"
        program = shutil.which(self.kind, path=f"{os.environ['PATH']}:/usr/sbin")
        assert program, f"scripts/setup.sh --tests installs {self.kind}"
        arguments = {
            "haproxy": ["-db", "-f", path], "nginx": ["-e", f"{self.folder}/main.log", "-p", self.folder, "-c", path],
            "caddy": ["run", "--adapter", "caddyfile", "--config", path]}[self.kind]
        with open(f"{self.folder}/output", "wb") as output:
            self.process = subprocess.Popen(
                [*before, program, *arguments], env={**os.environ, "HOME": self.folder}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT)
        until(lambda: self._listens() or self.process.poll() is not None, what=f"{self.kind} listening")
        assert self.process.poll() is None, f"{self.kind} ended: {self.logs}"
        return self

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def logs(self):
        """All that it has written down."""
        texts = []
        for name in ("output", "main.log", "hub.log", "hub-error.log"):
            if os.path.exists(f"{self.folder}/{name}"):
                with open(f"{self.folder}/{name}", errors="replace") as file:
                    texts.append(file.read())
        return "".join(texts)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(30)

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
