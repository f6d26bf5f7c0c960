"""All that a comparison has found, so that its tables can be made again."""

import collections
import dataclasses
import json
import time

import machine
from failure import Failure


class Record:
    def __init__(self, content):
        self.content = content

    @classmethod
    def begin(cls, options, peers, left_out, client, is_alone):
        return cls({
            "plan": dataclasses.asdict(options.plan),
            "pacing": client.pacing, "conditions": machine.conditions(client, is_alone),
            "peers": [{"name": peer.name, "title": peer.title, "version": peer.version()} for peer in peers],
            "left_out": left_out, "runs": [],
        })

    @classmethod
    def load(cls, path):
        try:
            content = json.loads(path.read_text())
            content["plan"], content["conditions"], content["peers"], content["runs"], content["left_out"]
        except OSError as error:
            raise Failure(f"{path} cannot be read: {error.strerror}", 66) from None
        except (ValueError, KeyError, TypeError):
            raise Failure(f"{path} is not what --json has written", 65) from None
        return cls(content)

    def save(self, path):
        if path:
            path.write_text(json.dumps(self.content, indent=1) + "\n")

    def add(self, number, peer, shape, outcome):
        run = {"round": number, "peer": peer.name, "sockets": shape.sockets, "size": shape.size, "window": shape.window,
               "at": round(time.time(), 1)}
        if isinstance(outcome, Failure):
            run["failure"] = str(outcome)
        else:
            run["figures"] = dataclasses.asdict(outcome)
        self.content["runs"].append(run)

    @property
    def plan(self):
        return self.content["plan"]

    @property
    def conditions(self):
        return self.content["conditions"]

    @property
    def peers(self):
        return self.content["peers"]

    @property
    def rounds(self):
        return max((run["round"] for run in self.content["runs"]), default=0)

    @property
    def failures(self):
        return [run for run in self.content["runs"] if "failure" in run]

    def figures(self, peer, name, **shape):
        """One for each round, by its number; where a round took several, their mean. Empty if a run of these failed:
        what did not deliver all has no figure."""
        values = collections.defaultdict(list)
        for run in self.content["runs"]:
            if run["peer"] == peer and all(run[key] == value for key, value in shape.items()):
                if "failure" in run:
                    return {}
                values[run["round"]].append(run["figures"][name])
        return {number: sum(each) / len(each) for number, each in values.items()}
