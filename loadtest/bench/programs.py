"""The programs that a benchmark runs, and ports for them."""

import json
import pathlib
import resource
import socket
import subprocess


class BenchError(Exception):
    """One sentence for whoever runs the benchmark."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Programs:
    def __init__(self, roost, roost_load, referee):
        self.roost = self._existing(roost)
        self.roost_load = self._existing(roost_load)
        self.rawfan = self.wsload = None
        # 10,000 sockets at either end.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._build_referee(referee)

    @staticmethod
    def _existing(path):
        if not path.exists():
            raise BenchError(f"{path} is not there: run make build")
        return path.resolve()

    def _build_referee(self, source):
        if not (source / "build").exists():
            print(f"There is no referee in {source}: fan-out is not compared with the limit.\n")
            return
        target = pathlib.Path(".build/bench").resolve()
        if not all((target / name).exists() and (target / name).stat().st_mtime > (source / f"{name}.c").stat().st_mtime
                   for name in ("rawfan", "wsload")):
            outcome = subprocess.run([source / "build", target], capture_output=True, text=True)
            if outcome.returncode != 0:
                print("The referee does not compile (it needs liburing-dev and libssl-dev): "
                      f"fan-out is not compared with the limit.\n{outcome.stderr[-500:]}")
                return
        self.rawfan, self.wsload = target / "rawfan", target / "wsload"

    def json_of(self, command, accept=(0,)):
        """Runs a program whose last line is JSON."""
        outcome = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        try:
            result = json.loads(outcome.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise BenchError(f"{command[0]} printed no result: {outcome.stderr.strip()[-300:]}") from None
        if outcome.returncode not in accept or "error" in result:
            raise BenchError(f"{command[0]} failed: {result.get('error', '')} {outcome.stderr.strip()[-300:]}")
        return result
