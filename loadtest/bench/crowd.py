"""Sockets in processes of their own, which do what they are asked in lines of JSON."""

import json
import pathlib
import subprocess
import sys

from programs import BenchError


class Crowd:
    """One process: a script on `fleet.py`, whose methods are the commands."""
    script = ""

    def __init__(self, hub, *arguments):
        script = pathlib.Path(__file__).with_name(self.script)
        self.process = subprocess.Popen([sys.executable, script, str(hub.port), *map(str, arguments)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, do, **command):
        self.tell(do, **command)
        return self.hear()

    def tell(self, do, **command):
        """The half of `ask` that does not wait, so that several crowds work at a time."""
        try:
            self.process.stdin.write(json.dumps({"do": do} | command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # `hear` says so.

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise BenchError(f"a crowd of sockets ended: {self.process.stderr.read().strip()[-300:]}")
        answer = json.loads(line)
        self.check(answer)
        return answer

    def check(self, answer):
        if answer["errors"]:
            raise BenchError(f"sockets were closed or refused: {answer['errors']}")


class Rooms(Crowd):
    """So many sockets that join channels and publish there; the commands are those of `RoomCrowd`."""
    script = "room_crowd.py"

    def __init__(self, hub, count):
        super().__init__(hub, hub.token)
        self.count = count

    def __enter__(self):
        self.ask("connect", count=self.count)
        return self
