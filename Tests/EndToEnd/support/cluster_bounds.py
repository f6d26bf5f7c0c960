"""How long hubs may take, after a fault is over, until they act as one again. Times are monotonic seconds."""

import math

from support.cluster_history import Absence, Trouble

#: Within so many seconds a message is with everybody whom it is for, or these are told that some are missing.
HEAL = 2.0
#: A hub that is killed is known to be dead when its lease is over, or, if Redis was away meanwhile, a lease and a beat after
#: it is back: hubs judge others only while their own link is whole.
LEASE, BEAT = 3.0, 0.5
#: Within so many seconds and the window of whoever is gone, all hubs show who is there.
PRESENCE = 3.0
#: What a client's clock and the hub's differ by, in the length of a window.
INEXACT = 0.25


class Bounds:
    """What is due when, by the faults and by how long the machine itself stood still."""

    def __init__(self, history):
        self.stalled = history.stalled
        # A machine that stands still for so long that hubs take each other for silent is a fault of its own.
        troubles = history.troubles + [Trouble(since, until, "the machine stood still") for since, until in history.stalls]
        engine = [trouble for trouble in troubles if not trouble.is_death]
        self.troubles = sorted(((trouble.since, _end(trouble, engine), trouble) for trouble in troubles), key=lambda entry: entry[0])

    def due(self, moment, *hubs):
        """The latest time at which these hubs know what happened at this moment on one of them."""
        due = self._due(moment, hubs)
        return due if due == math.inf else due + self.stalled(moment, due)

    def base(self, moment, *hubs):
        """From when on HEAL counts: the moment itself, or the end of the last fault that held it up."""
        return self._due(moment, hubs) - HEAL

    def _due(self, moment, hubs):
        due = moment + HEAL
        for since, until, trouble in self.troubles:
            if since > due:
                break
            if until + HEAL > moment and trouble.concerns(hubs):
                due = max(due, until + HEAL)
        return due

    def is_calm(self, since, until, *hubs):
        """Whether nothing that concerns these hubs was wrong in this time, or was being healed."""
        return not any(trouble.concerns(hubs) and begin <= until and end + HEAL >= since for begin, end, trouble in self.troubles)

    def may_have_left(self, gone):
        """Whether others may see somebody leave who is back: his time was over, or his return could not be known in it."""
        due, end = self._due(gone.back, gone.hubs), gone.lost + gone.window
        return gone.back + self.stalled(gone.lost, gone.back) > end - INEXACT or due > max(gone.back + HEAL, end)

    def absences(self, history):
        """All times in which others may take a client for gone."""
        return history.absences + [
            Absence(gone.key, gone.lost, max(gone.back, gone.lost + gone.window), "away for long, or out of reach", gone.hubs)
            for gone in history.returns if self.may_have_left(gone)]


def _end(trouble, engine):
    if trouble.until is None:
        return math.inf
    ended = trouble.since if trouble.is_death else trouble.unheard
    if ended is None:
        return trouble.until
    known = ended + LEASE
    for other in sorted(engine, key=lambda other: other.since):
        if other is not trouble and other.since <= known and (other.until is None or other.until >= ended):
            known = math.inf if other.until is None else max(known, other.until + LEASE + BEAT)
    return max(known, trouble.until)
