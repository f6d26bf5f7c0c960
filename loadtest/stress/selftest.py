"""Clients that are broken on purpose: a check that cannot find them proves nothing about the hub."""

import json
import random


class Tampering:
    """One client in three drops one change in `share`, one hands some on too late, one makes some up."""

    def __init__(self, seed, share=1000):
        self.chance, self.share = random.Random(seed), share
        self.dropped = self.swapped = self.forged = 0
        self._held = {}  # by channel and row
        self.groups = {"lost": set(), "out_of_order": set(), "wrong": set()}

    def apply(self, cast):
        for number, client in enumerate(cast.raw):
            kind, tamper = (("lost", self._drop), ("out_of_order", self._swap), ("wrong", self._forge))[number % 3]
            client.tamper = tamper
            self.groups[kind].add(client)

    def _drop(self, channel, payload):
        if self.chance.randrange(self.share) == 0:
            self.dropped += 1
            return []
        return [payload]

    def _forge(self, channel, payload):
        if self.chance.randrange(self.share) > 0:
            return [payload]
        forged = json.loads(json.dumps(payload))
        record = forged["data"].get("record") or forged["data"]["old_record"]
        record["id"] += 1_000_000_000
        if "body" in record:
            record["body"] = f"{record['id']}.{record['version']} "
        self.forged += 1
        return [payload, forged]

    def _swap(self, channel, payload):
        """Holds a change back until the next one of its row."""
        data = payload["data"]
        row = (channel, (data.get("record") or data["old_record"])["id"])
        if row in self._held:
            self.swapped += 1
            return [payload, self._held.pop(row)]
        if data["type"] != "DELETE" and self.chance.randrange(self.share // 10) == 0:
            self._held[row] = payload
            return []
        return [payload]

    def finish(self):
        """What is still held back comes after all; it is the last of its row and in nobody's way."""
        for (channel, _), payload in self._held.items():
            channel.took("postgres_changes", payload, None, None)
        self._held.clear()

    def complaints(self, outcome):
        """How the verdict differs from what was done; none if the check is worth something."""
        found = {kind: {id(client): 0 for client in group} for kind, group in self.groups.items()}
        complaints = []
        for client, _, verdict in outcome.verdicts:
            for kind in found:
                count = len(getattr(verdict, kind))
                if id(client) in found[kind]:
                    found[kind][id(client)] += count
                elif count:
                    complaints.append(f"{kind.replace('_', ' ')}: {count} found at client {client.name}, which is not")
        sums = {kind: sum(counts.values()) for kind, counts in found.items()}
        if sums["lost"] != self.dropped or not self.dropped:
            complaints.append(f"{self.dropped} changes were dropped, {sums['lost']} found lost")
        if sums["wrong"] != self.forged or not self.forged:
            complaints.append(f"{self.forged} changes were made up, {sums['wrong']} found wrong")
        if sums["out_of_order"] < self.swapped or not self.swapped:
            complaints.append(f"{self.swapped} changes were swapped, {sums['out_of_order']} found out of order")
        return complaints

    @property
    def text(self):
        return f"dropped {self.dropped}, swapped {self.swapped}, made up {self.forged}, on purpose"
