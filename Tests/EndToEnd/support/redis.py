"""A private Redis: started, stopped, killed, frozen, followed by replicas, watched by Sentinel."""

import shutil
import signal
import socket
import subprocess
import tempfile

from support.deadline import PATIENCE, until
from support.freezing import freeze
from support.ports import free_port

#: What a user of hubs may do, as Sources/Redis/Protocol/RedisFailure.swift says it.
ACL = ("resetkeys resetchannels ~{roost:*}:* &{roost:*}:* -@all +eval +evalsha +script|load +xadd +xrange +xrevrange "
       "+publish +subscribe +ping +get +set +del +mget +hget +hset +hdel +hgetall +append +getrange "
       "+info +role +time +pubsub|numsub +client|setname")


class RedisError(Exception):
    """What the server answered."""


class Redis:
    """One server in a temporary folder, on a free port of 127.0.0.1 and a Unix socket.

    It keeps its data in memory; `settings` are lines of redis.conf, such as `appendonly yes`. With `pair` and `authority` (of
    support.certificates) it speaks TLS on a port of its own, too.
    """

    def __init__(self, *settings, password=None, users=(), pair=None, authority=None, sentinel=False):
        """`users` are pairs of a name and a password, with the rights that a hub needs."""
        self.folder = tempfile.mkdtemp(prefix="roost-e2e-redis-")
        self.port, self.tls_port = free_port(), free_port() if pair else None
        self.socket = f"{self.folder}/socket"
        self.password = password
        self._arguments = ["--sentinel"] if sentinel else []
        self._process = None
        lines = ["bind 127.0.0.1", f"port {self.port}", f"dir {self.folder}", "daemonize no", f"logfile {self.folder}/log"]
        if not sentinel:
            lines += [f"unixsocket {self.socket}", 'save ""', "appendonly no", "appendfsync no", "repl-diskless-sync-delay 0",
                      "repl-ping-replica-period 1"]
        if password:
            lines += [f"requirepass {password}", f"masterauth {password}"]
        lines += [f"user {name} on >{secret} {ACL}" for name, secret in users]
        if pair:
            lines += [f"tls-port {self.tls_port}", f"tls-cert-file {pair.certificate}", f"tls-key-file {pair.key}",
                      f"tls-ca-cert-file {authority.file}", "tls-auth-clients no"]
        # A Sentinel writes its file anew.
        self._lines = [*lines, *settings]

    def start(self, *more, wait=True):
        """Also again, after `stop` or `kill`, with the data that its folder has; `more` are lines for this time."""
        with open(f"{self.folder}/redis.conf", "w") as file:
            file.write("\n".join([*self._lines, *more]) + "\n")
        self._process = subprocess.Popen(["redis-server", f"{self.folder}/redis.conf", *self._arguments],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        if wait:
            until(self._answers, what=lambda: f"Redis answers, see {self.folder}/log")
        return self

    def _answers(self):
        assert self._process.poll() is None, open(f"{self.folder}/log").read()
        try:
            return self.ask("PING") == "PONG"
        except OSError:
            return False
        except RedisError as error:
            # While it reads its data.
            if str(error).startswith("LOADING"):
                return False
            raise

    def stop(self):
        """In order: it saves where it is told to."""
        self._end(signal.SIGTERM)

    def kill(self):
        self._end(signal.SIGKILL)

    def _end(self, number):
        if self._process:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None

    def freeze(self):
        """It does nothing any more, and its connections stay."""
        freeze(self._process.pid)

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    def kill_frozen(self):
        """Kills it as it is, so that what it was sent stays unread."""
        self._process.kill()
        self._process.wait(30)
        self._process = None

    def remove(self):
        if self._process:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *error):
        self.remove()

    # What hubs are told.

    def url(self, user=None, password=None, tls=False, options=""):
        secret = password or self.password
        who = f"{user or ''}:{secret}@" if secret else ""
        scheme, port = ("rediss", self.tls_port) if tls else ("redis", self.port)
        return f"{scheme}://{who}127.0.0.1:{port}{options}"

    @property
    def unix_url(self):
        return f"unix://{self.socket}" + (f"?password={self.password}" if self.password else "")

    # Looking at it, and harming it.

    def ask(self, *command):
        """The answer to one command on a connection of its own: texts, numbers, lists, None.

        Over the Unix socket, so that a test that counts connections of TCP does not count this one; Sentinel has none.
        """
        family, address = (socket.AF_UNIX, self.socket) if not self._arguments else (socket.AF_INET, ("127.0.0.1", self.port))
        with socket.socket(family) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(address)
            with connection.makefile("rwb") as file:
                if self.password:
                    _send(file, ("AUTH", self.password))
                    _read(file)
                _send(file, command)
                return _read(file)

    def information(self, section):
        """What INFO says, by name."""
        return dict(line.split(":", 1) for line in self.ask("INFO", section).splitlines() if ":" in line)

    def kill_clients(self, kind="normal"):
        """Cuts off all who send commands (`normal`) or all who listen (`pubsub`)."""
        return self.ask("CLIENT", "KILL", "TYPE", kind)

    def follow(self, primary):
        """Becomes a replica of the other one, and waits until it has its data."""
        self.ask("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: self.information("replication").get("master_link_status") == "up", what="the replica is in step")

    def cut_off(self):
        """A replica stays one, and hears nothing of its primary any more: what comes now is a tail that it lacks."""
        self.ask("REPLICAOF", "127.0.0.1", free_port())

    def promote(self):
        self.ask("REPLICAOF", "NO", "ONE")


def sentinel_of(primary, name="main", down_after=1000):
    """A Sentinel that watches the server, alone; not yet started."""
    return Redis(f"sentinel monitor {name} 127.0.0.1 {primary.port} 1", f"sentinel down-after-milliseconds {name} {down_after}",
                 f"sentinel failover-timeout {name} 10000", sentinel=True)


def _send(file, command):
    parts = [part if isinstance(part, bytes) else str(part).encode() for part in command]
    file.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
    file.flush()


def _read(file):
    line = file.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionResetError("Redis ended the connection")
    kind, rest = line[:1], line[1:-2]
    if kind == b"+":
        return rest.decode()
    if kind == b"-":
        raise RedisError(rest.decode())
    if kind == b":":
        return int(rest)
    if int(rest) < 0:
        return None
    if kind == b"*":
        return [_read(file) for _ in range(int(rest))]
    return file.read(int(rest) + 2)[:-2].decode(errors="surrogateescape")
