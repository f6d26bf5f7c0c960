"""Clients of a model check that are broken on purpose: a check that does not find all of it proves nothing about the hub."""

import copy
import random

from model_truth import MUST, key_of

#: Tables of which the model knows for certain who sees what.
CERTAIN = ("notes", "events")
SHARE = 12  # one change in so many
#: A version that no row ever has.
FORGED = 10 ** 9


class ModelTampering:
    """One client in five drops changes, one hands some on at the very end, one makes some up, one alters some, one shows what
    was another user's."""

    def __init__(self, seed):
        self.chance = random.Random(f"{seed} tampering")
        self.done = {"dropped": [], "held": [], "forged": [], "altered": [], "stolen": []}
        self._notes = {}  # the last change of notes that each user was told

    def apply(self, clients):
        kinds = (self._drop, self._hold, self._forge, self._alter, self._steal)
        for number, client in enumerate(clients):
            client.tamper = kinds[number % len(kinds)]

    def _is_chosen(self):
        return self.chance.randrange(SHARE) == 0

    def _note(self, kind, channel, payload):
        fold = channel.fold_of(payload)
        self.done[kind].append((channel.client, fold, payload))

    def _drop(self, channel, payload):
        if "record" in payload["data"] and self._is_chosen():
            self._note("dropped", channel, payload)
            return []
        return self._listen(channel, payload)

    def _hold(self, channel, payload):
        data = payload["data"]
        if data["table"] in CERTAIN and data["type"] == "INSERT" and self._is_chosen():
            self._note("held", channel, payload)
            return []
        return self._listen(channel, payload)

    def _forge(self, channel, payload):
        if "record" not in payload["data"] or not self._is_chosen():
            return self._listen(channel, payload)
        forged = copy.deepcopy(payload)
        forged["data"]["record"]["version"] += FORGED
        self._note("forged", channel, forged)
        return [payload, forged]

    def _alter(self, channel, payload):
        if "record" not in payload["data"] or not self._is_chosen():
            return self._listen(channel, payload)
        altered = copy.deepcopy(payload)
        altered["data"]["record"]["id"] += 1
        self._note("altered", channel, altered)
        return [altered]

    def _steal(self, channel, payload):
        other = next((one for user, one in self._notes.items() if user is not channel.client.user), None)
        if payload["data"]["table"] != "notes" or payload["data"]["type"] == "DELETE" or other is None:
            return self._listen(channel, payload)
        stolen = {**payload, "data": other}
        self._note("stolen", channel, stolen)
        return [payload, stolen]

    def _listen(self, channel, payload):
        data = payload["data"]
        if data["table"] == "notes" and data["type"] != "DELETE" and len(data["columns"]) == 5:
            self._notes[channel.client.user] = data
        return [payload]

    def finish(self):
        """What was held back comes after all."""
        for client, fold, payload in self.done["held"]:
            for channel in client.channels.values():
                if fold in channel.folds:
                    channel.take(payload)

    def complaints(self, outcome):
        """What was done and not found, or found and not done."""
        verdicts = {(client, fold): verdict for client, fold, verdict in outcome.verdicts}
        tampered = {(client, fold) for those in self.done.values() for client, fold, _ in those}
        yield from (f"nothing was {kind}" for kind, those in self.done.items() if not those)
        yield from (f"{fold} of client {client.name} is found to be bad, which is not"
                    for (client, fold), verdict in verdicts.items() if not verdict.is_good and (client, fold) not in tampered)
        for kind, text in (("dropped", "untold"), ("held", "wrong"), ("forged", "wrong"), ("altered", "wrong")):
            for client, fold, payload in self.done[kind]:
                if self._has_to_be_found(kind, outcome.truth, client, fold, payload["data"]) and not any(
                        self._names(sentence, fold, payload["data"]) for sentence in getattr(verdicts[client, fold], text)):
                    yield f"{kind} for client {client.name}, and not found: {payload['data']}"
        for client, fold, payload in self.done["stolen"]:
            verdict = verdicts[client, fold]
            if not any(self._names(sentence, fold, payload["data"]) for sentence in verdict.leaks + verdict.wrong):
                yield f"stolen for client {client.name}, and not found: {payload['data']}"

    def _has_to_be_found(self, kind, truth, client, fold, data):
        record = data["record"]
        if kind == "dropped":
            # Nobody can tell whether what a user was about to lose had to come.
            change = truth.by_version[record["version"]]
            return truth.grade(fold.table, change.new, client.user, change) == MUST and record["version"] not in fold.received
        if kind == "held":
            # Where nothing came behind it, it is late and no more; of several of a key the last one counts.
            key = key_of(fold.table, record)
            if [other["data"] for _, one, other in self.done["held"]
                    if one is fold and key_of(fold.table, other["data"]["record"]) == key][-1] is not data:
                return False
            change = truth.by_version[record["version"]]
            return any(other.number > change.number and key_of(fold.table, other.old or other.new) == key
                       and (not other.new or other.new["version"] in fold.received) for other in truth.by_table[fold.table])
        return True

    @staticmethod
    def _names(sentence, fold, data):
        return (f"version {data['record']['version']}" in sentence or f"'version': {data['record']['version']}" in sentence
                and f"{fold.table} {key_of(fold.table, data['record'])}" in sentence)

    @property
    def text(self):
        return "on purpose: " + ", ".join(f"{kind} {len(those)}" for kind, those in self.done.items())
