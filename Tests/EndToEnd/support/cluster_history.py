"""What clients of several hubs saw and did: the histories that support.cluster_check judges. Times are monotonic seconds."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

HUBS = 3

#: What the hub tells members when messages of other hubs may be missing, or those of their history.
GAPS = ("Messages from another hub may be missing", "Messages that were sent while you were away are missing")


@dataclass
class Sent:
    """A message that a client sent; `accepted` when the hub answered."""
    at: float
    accepted: float | None = None


@dataclass
class Heard:
    at: float
    source: tuple  # the publisher and the number of its socket
    n: int  # of that source's messages to this topic, from 1
    id: str | None = None  # in the channel's history


@dataclass
class Gone:
    """A key that was in the list of who is present, and is not any more."""
    at: float
    key: str


@dataclass
class Sitting:
    """One socket of a client, from its opening to its end."""
    person: str
    number: int
    hub: int
    began: float = field(default_factory=time.monotonic)
    joined: dict = field(default_factory=dict)  # topic: when the join was answered
    ended: float | None = None
    sent: dict = field(default_factory=dict)  # topic: {n: Sent}
    heard: dict = field(default_factory=dict)  # topic: [Heard]
    gaps: dict = field(default_factory=dict)  # topic: [when one was told]
    #: Of its join: whether the hub said that nothing is missing since the sitting before. None: it did not say.
    complete: bool | None = None
    #: Who is present as this socket was told: key to the refs of its presences. None before the first word.
    present: dict | None = None
    gone: list = field(default_factory=list)

    @property
    def source(self):
        return self.person, self.number

    def hears(self, topic, body, id=None):
        self.heard.setdefault(topic, []).append(Heard(time.monotonic(), (body["person"], body["sitting"]), body["n"], id))

    def is_told(self, topic, message):
        if message.startswith(GAPS):
            self.gaps.setdefault(topic, []).append(time.monotonic())

    def shows(self, state):
        """All who are present."""
        self._become({key: {meta["phx_ref"] for meta in entry["metas"]} for key, entry in state.items()})

    def changes(self, diff):
        """As clients apply it: joins, then leaves."""
        if self.present is None:
            return
        now = {key: set(refs) for key, refs in self.present.items()}
        for key, entry in diff["joins"].items():
            now.setdefault(key, set()).update(meta["phx_ref"] for meta in entry["metas"])
        for key, entry in diff["leaves"].items():
            now.setdefault(key, set()).difference_update(meta["phx_ref"] for meta in entry["metas"])
        self._become({key: refs for key, refs in now.items() if refs})

    def _become(self, present):
        self.gone += [Gone(time.monotonic(), key) for key in (self.present or {}) if key not in present]
        self.present = present


@dataclass
class Absence:
    """A time in which the others may take a client for gone: each socket may be told so once.

    `until` is the end of it; what was said in it may arrive later. `hubs`: where it was and where it came back.
    """
    key: str
    since: float
    until: float | None
    why: str
    hubs: frozenset = frozenset()


@dataclass
class Return:
    """Somebody who was present lost his socket, and is present again: whether others may see him leave, the bounds say."""
    key: str
    lost: float
    back: float
    window: float  # seconds for which he counts meanwhile
    hubs: frozenset


@dataclass
class Trouble:
    """A time in which a fault kept hubs from acting as one: from its beginning until what was broken is there again.

    How long the hubs need from then on is what is judged, so that is no part of it. `hubs`: those that it cut off, None for all.
    """
    since: float
    until: float | None
    why: str
    hubs: frozenset | None = None
    #: The hub was killed: the others know so when its lease is over, and a new process has its name then.
    is_death: bool = False
    #: When the hub ended that could not say good-bye, as it did not reach Redis while it was told to stop: from then on as `is_death`.
    unheard: float | None = None

    def concerns(self, hubs):
        return self.hubs is None or not self.hubs.isdisjoint(hubs)


@dataclass
class Row:
    id: int
    n: int


@dataclass
class History:
    """A whole run."""
    sittings: list = field(default_factory=list)
    #: By person: its rows in the order of their arrival.
    rows: dict = field(default_factory=dict)
    committed: list = field(default_factory=list)  # Row, in the order of the commits
    absences: list = field(default_factory=list)
    returns: list = field(default_factory=list)
    troubles: list = field(default_factory=list)
    #: When the run began: complaints count from there.
    began: float = 0.0
    #: Seconds for which the machine stood still in a time, and each time in which it did so for long (support.watchdog).
    stalled: Callable = lambda since, until: 0.0
    stalls: list = field(default_factory=list)
    #: Complaints of looks at who is present in the middle of the run.
    late: list = field(default_factory=list)
    #: Who is to be present at the end, and what each hub shows a newcomer: {hub: {key: refs}}.
    truth: set = field(default_factory=set)
    shown: dict = field(default_factory=dict)
