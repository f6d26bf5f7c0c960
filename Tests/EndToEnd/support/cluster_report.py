"""What a fault run of several hubs found, in figures and for those who look into a complaint."""

import collections
import time

from support.cluster_bounds import Bounds
from support.cluster_check import healing
from support.cluster_people import KEPT, TALK


def summary(run):
    history, faults = run.history, run.faults
    sittings = history.sittings
    sent = [message for sitting in sittings for topic in sitting.sent.values() for message in topic.values()]
    counts = collections.Counter(faults.done)
    held, bounds = sorted(healing(history, TALK)), Bounds(history)
    return "\n".join([
        f"faults       {len(faults.done)}: {', '.join(f'{kind} {count}' for kind, count in sorted(counts.items()))}"
        f"; Redis cut off {faults.overflows} slow readers",
        f"clients      {len(run.people)} raw, {len(run.packaged)} from PyPI, {len(sittings)} sockets",
        f"broadcasts   {sum(message.accepted is not None for message in sent):,} of {len(sent):,} accepted, "
        f"{sum(len(heard) for sitting in sittings for heard in sitting.heard.values()):,} heard, "
        f"{sum(len(sitting.gaps.get(topic, [])) for sitting in sittings for topic in (TALK, KEPT))} gaps told",
        f"held up      {len(held):,} of those heard came, or were told of, after the fault's end: {_spread(held)}",
        f"rows         {len(history.committed):,} committed, {sum(map(len, history.rows.values())):,} received",
        f"presence     {len(run.looks)} looks: all hubs right after {_spread(sorted(run.looks))}; "
        f"{sum(len(sitting.gone) for sitting in sittings)} leaves seen, {len(bounds.absences(history))} absences, {len(history.returns)} returns",
        f"as one       {_spread(sorted(run.hubs.healed))} after the last of the faults that came together",
        f"the machine  stood still for {run.watchdog.total(run.began):.2f} s in all, {run.watchdog.longest:.2f} s at once; "
        f"the clients' process for {run.lag:.2f} s at once",
        f"took         {time.monotonic() - run.began:.0f} s",
    ])


def _spread(values):
    if not values:
        return "-"
    return f"p50 {values[len(values) // 2]:.2f}, p99 {values[min(len(values) - 1, len(values) * 99 // 100)]:.2f}, at most {values[-1]:.2f} s"


def story(run):
    """Who was where."""
    def at(moment):
        return "-" if moment is None else f"{moment - run.began:.2f}"
    history = run.history
    return "\n".join([
        *(f"{sitting.person}/{sitting.number} on hub{sitting.hub} from {at(sitting.began)} to {at(sitting.ended)}, joined "
          f"{[at(joined) for joined in sitting.joined.values()]}, told of gaps at {[at(told) for told in sitting.gaps.get(TALK, [])]}"
          f", saw {[(gone.key, at(gone.at)) for gone in sitting.gone]} leave"
          for sitting in history.sittings),
        *(f"absence {absence.key} from {at(absence.since)} to {at(absence.until)}: {absence.why}" for absence in Bounds(history).absences(history)),
        *(f"trouble from {at(trouble.since)} to {at(trouble.until)}: {trouble.why}" for trouble in history.troubles),
        *(f"hub{hub} shows {refs}" for hub, refs in history.shown.items())])
