"""What happened to one client, for those who look into a loss."""

import time


class Journal:
    KEPT = 400

    def __init__(self):
        self.entries = []
        self.counts = {}

    def note(self, kind, detail=""):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(self.entries) < self.KEPT:
            self.entries.append((time.time(), kind, detail))

    def around(self, moment, margin=15):
        """The entries that lie near a moment of the wall clock, as lines."""
        return [f"{at - moment:+8.3f} s  {kind} {detail}".rstrip() for at, kind, detail in self.entries
                if abs(at - moment) < margin]
