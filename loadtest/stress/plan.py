"""Which faults come when: decided by the seed, before anything runs, so that a run can be repeated."""

import random
from dataclasses import dataclass

HUB = ("hub-kill", "hub-stop", "hub-freeze")
DATABASE = ("backend-kill", "backend-freeze", "pg-fast", "pg-immediate", "pg-kill")
CLIENTS = ("rst", "half-open", "stall", "reload", "slow")
KINDS = (*HUB, *DATABASE, *CLIENTS)

#: Clients lose their sockets more often than servers die.
WEIGHTS = {**dict.fromkeys(HUB, 2), **dict.fromkeys(DATABASE, 1), **dict.fromkeys(CLIENTS, 3)}
STALL = 10


@dataclass
class Fault:
    at: float  # seconds after the writers began
    kind: str
    seconds: float  # how long it lasts, or until what was ended is started again
    share: float  # of the clients
    seed: int

    def __str__(self):
        about = {"rst": f"{self.share:.0%} of the sockets", "half-open": f"{self.share:.0%} of the sockets",
                 "stall": f"{self.share:.0%} of the readers, {self.seconds:.0f} s", "reload": f"{self.share:.0%} of the pages",
                 "slow": f"{self.share:.0%} of the readers at 48 KB/s, {self.seconds:.0f} s", "backend-kill": "",
                 "pg-kill": ""}.get(self.kind, f"{self.seconds:.1f} s")
        return f"{self.at:7.1f} s  {self.kind} {about}".rstrip()


def plan(seed, seconds, only, every):
    """Faults for so many seconds, about one in `every`; each kind at least once where there is the time for it."""
    chance = random.Random(seed)
    kinds = [kind for kind in KINDS if kind in only]
    if not kinds:
        return []
    first = chance.sample(kinds, len(kinds))
    faults, at = [], 1.0
    while at < seconds:
        kind = first.pop() if first else chance.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
        # The last ones are short, so that all is well again when the writers stop.
        left = max(seconds + 4 - at, 1)
        lasts = {"hub-kill": chance.uniform(0, 3), "hub-stop": chance.uniform(0, 2), "hub-freeze": chance.uniform(1, 5),
                 "backend-freeze": chance.uniform(2, 20), "pg-fast": chance.uniform(0, 2),
                 "pg-immediate": chance.uniform(0, 2), "stall": STALL, "slow": STALL}.get(kind, 0)
        # One in four hits everybody.
        share = 1 if chance.random() < 0.25 else chance.uniform(0.03, 0.3)
        faults.append(Fault(at, kind, min(lasts, left), share if kind in CLIENTS else 0, chance.randrange(1 << 30)))
        at += chance.choice((0.1, 1, 2)) * every if chance.random() < 0.5 else every
    return faults
