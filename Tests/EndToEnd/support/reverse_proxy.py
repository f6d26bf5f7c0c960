"""HAProxy, nginx and Caddy in front of a hub, as operators put them there, on ports of their own."""

import os
import shutil
import socket
import subprocess
import tempfile

from support.deadline import until
from support.ports import free_port

#: What the hub sees them come from. Not the address of the other tests: the hub slows down who keeps failing.
SOURCE = "127.0.0.6"

HAPROXY = """
global
    nbthread 1
    maxconn 500
defaults
    mode http
    option http-no-delay
    timeout connect 10s
    timeout client 30s
    timeout server 30s
    http-reuse always
frontend clients
    bind 127.0.0.1:{port}
    option forwardfor
    default_backend hub
backend hub
    server hub 127.0.0.1:{hub} source {source}
"""

NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/log;
events {{ worker_connections 500; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream hub {{
        server 127.0.0.1:{hub};
        keepalive 8;
    }}
    map $http_upgrade $wanted {{ default upgrade; "" ""; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://hub;
            proxy_bind {source};
            proxy_http_version 1.1;
            proxy_request_buffering off;
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $wanted;
        }}
    }}
}}
"""


#: As a first page of nginx' manual has it: answers are buffered, and the hub is asked in HTTP/1.0.
PLAIN_NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/log;
events {{ worker_connections 500; }}
http {{
    access_log off;
    gzip on;
    gzip_types text/event-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{hub};
            proxy_bind {source};
        }}
    }}
}}
"""

CADDY = """
{{
    admin off
    auto_https off
}}
http://127.0.0.1:{port} {{
    encode gzip
    reverse_proxy 127.0.0.1:{hub}
}}
"""

CONFIGURATIONS = {"haproxy": HAPROXY, "nginx": NGINX, "plain nginx": PLAIN_NGINX, "caddy": CADDY}


class ReverseProxy:
    def __init__(self, kind, hub_port):
        self.kind, self.hub_port = kind, hub_port
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix=f"roost-e2e-{kind.split()[-1]}-", dir="/tmp")
        self.process = None

    def start(self):
        text = CONFIGURATIONS[self.kind]
        path = f"{self.folder}/configuration"
        with open(path, "w") as file:
            file.write(text.format(port=self.port, hub=self.hub_port, folder=self.folder, source=SOURCE))
        name = self.kind.split()[-1]
        program = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
        assert program, f"scripts/setup.sh --tests installs {name}"
        arguments = {
            "haproxy": ["-db", "-f", path], "nginx": ["-e", f"{self.folder}/log", "-p", self.folder, "-c", path],
            "caddy": ["run", "--adapter", "caddyfile", "--config", path]}[name]
        with open(f"{self.folder}/output", "wb") as output:
            self.process = subprocess.Popen(
                [program, *arguments], env={**os.environ, "HOME": self.folder}, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        until(lambda: self._listens() or self.process.poll() is not None, what=f"{self.kind} listening")
        assert self.process.poll() is None, f"{self.kind} ended: {self.said}"
        return self

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def said(self):
        with open(f"{self.folder}/output", errors="replace") as file:
            return file.read()

    @property
    def connections(self):
        """The local ports of its open connections to the hub."""
        there, here = f"0100007F:{self.hub_port:04X}", "0600007F:"
        with open("/proc/net/tcp") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        return {row[1] for row in rows if row[2] == there and row[1].startswith(here) and row[3] == "01"}

    def remove(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)
