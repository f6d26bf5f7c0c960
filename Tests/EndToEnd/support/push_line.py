"""`roost push --file -`: pushes as lines of JSON, and what became of each."""

import json
import os
import subprocess
import uuid

from support.apns import new_token
from support.hub import BINARY


def line(token=None, payload=None, type="alert", **more):
    """One push; an alert to a phone of its own where nothing is said."""
    payload = payload or {"aps": {"alert": {"title": "Ada", "body": "Hello"}}}
    return {"id": str(uuid.uuid4()), "token": token or new_token(), "environment": "sandbox", "type": type,
            "payload": payload, **more}


class Pushes:
    """A run of the program."""

    def __init__(self, apns, lines, *options, **settings):
        # Nothing of the tests' own surroundings, and of those of the stand-in all that it says.
        environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("ROOST_", "PG", "IOS_LIVE_ACTIVITY_"))}
        environment |= {**apns.environment, "ROOST_LOG_LEVEL": "info", **settings}
        self.lines = {each["id"]: each for each in lines}
        self.process = subprocess.Popen(
            [BINARY, "push", "--file", "-", *options], env=environment, cwd=apns.folder, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, within=120):
        """Until it ends: id → what it said about it, exactly one line each."""
        text = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in self.lines.values())
        try:
            output, self.log = self.process.communicate(text, timeout=within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, self.log = self.process.communicate()
            raise AssertionError(f"`roost push` did not end within {within} s: {self.log[-3000:]}{output[-1000:]}") from None
        self.status = self.process.returncode
        said = [json.loads(each) for each in output.splitlines()]
        self.outcomes = {each["id"]: each for each in said}
        assert len(said) == len(self.outcomes), "more than one outcome of a push"
        assert set(self.outcomes) == set(self.lines), f"outcomes of {len(said)} of {len(self.lines)}: {self.log[-2000:]}"
        all_delivered = all(each["outcome"] == "delivered" for each in said)
        assert (self.status == 0) == all_delivered, f"status {self.status}: {self.log[-2000:]}"
        return self.outcomes


def push(apns, *lines, within=120, options=(), **settings):
    """The outcomes of these lines, in their order."""
    outcomes = Pushes(apns, lines, *options, **settings).run(within)
    return [outcomes[each["id"]] for each in lines]
