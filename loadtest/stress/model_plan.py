"""Which faults of a model check come when, by the seed."""

import random

from plan import Fault

#: What nothing may be lost in, and what loses changes that clients have to be told of, by the capture that it breaks.
HARMLESS = ("rst", "half-open", "reload", "leave", "hub-kill", "hub-stop", "backend-kill", "pg-fast", "pg-immediate", "policy")
HOLES = {
    "triggers": ("outbox", "unwatch", "triggers-off", "swap", "partition"),
    "wal": ("outbox", "unwatch", "slot", "publication", "narrow", "swap", "partition"),
}
#: One run in so many has no holes: then nobody may be told of any.
PLAIN = 4
LENGTHS = {"hub-kill": (0, 1.5), "hub-stop": (0, 1), "pg-fast": (0, 0.7), "pg-immediate": (0, 0.7), "policy": (1.5, 3),
           "unwatch": (0.1, 2), "triggers-off": (0.1, 3), "publication": (0.1, 2), "narrow": (0.1, 2), "slot": (0.2, 1),
           "outbox": (0.2, 2), "swap": (0.1, 1.5), "partition": (0.1, 1.5)}


def kinds(capture, hubs):
    """Of a table that goes from one capture to the other, each may be broken."""
    holes = HOLES.get(capture) or tuple(dict.fromkeys(HOLES["triggers"] + HOLES["wal"]))
    return (*HARMLESS, *(("redis-kill",) if hubs > 1 else ()), *(("switch",) if capture == "both" else ())), holes


def model_plan(seed, seconds, capture, hubs, only=None):
    chance = random.Random(f"{seed} {capture} plan")
    harmless, holes = kinds(capture, hubs)
    if only is not None:
        harmless, holes = ([kind for kind in those if kind in only] for those in (harmless, holes))
    elif seed % PLAIN == 0:
        holes = ()
    faults, at = [], 0.7
    # Every kind comes in some seed: where there is no time for all, those that come differ.
    left = {True: [], False: []}
    while at < seconds and (harmless or holes):
        is_hole = bool(holes) and (not harmless or chance.random() < 0.45)
        those = holes if is_hole else harmless
        left[is_hole] = left[is_hole] or chance.sample(list(those), len(those))
        kind = left[is_hole].pop()
        share = 1 if chance.random() < 0.2 else chance.uniform(0.1, 0.5)
        faults.append(Fault(at, kind, chance.uniform(*LENGTHS.get(kind, (0, 0))), share, chance.randrange(1 << 30)))
        at += chance.uniform(0.2, 1.2)
    return faults
