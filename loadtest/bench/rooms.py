"""A crowd of sockets in a process of its own, room_crowd.py, that joins channels."""

import json
import pathlib
import subprocess
import sys

from programs import BenchError

#: Settings of a hub that leaves sockets alone that say nothing: neither its pings nor heartbeats are to be in a figure.
SILENCE = {"ROOST_TIMEOUTS_PING_AFTER": 3000, "ROOST_TIMEOUTS_IDLE": 6000}


class Rooms:
    """Commands and answers are those of room_crowd.py's Crowd; `tell` and `hear` apart let two crowds work at a time."""

    def __init__(self, hub, count):
        script = pathlib.Path(__file__).with_name("room_crowd.py")
        self.process = subprocess.Popen([sys.executable, script, str(hub.port), hub.token], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.count = count

    def __enter__(self):
        self.ask("connect", count=self.count)
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
        try:
            self.process.stdin.write(json.dumps({"do": do} | command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # told by `hear`

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise BenchError(f"a crowd of sockets ended: {self.process.stderr.read().strip()[-300:]}")
        answer = json.loads(line)
        if answer["errors"]:
            raise BenchError(f"sockets were closed or refused: {answer['errors']}")
        return answer
