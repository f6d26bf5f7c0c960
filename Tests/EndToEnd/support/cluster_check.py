"""Judges the histories of clients of several hubs (support.cluster_history) by support.cluster_bounds: each complaint is a sentence."""

import bisect
import math

from support.cluster_bounds import HEAL, Bounds
from support.cluster_history import HUBS, Sitting


def complaints(history, talk, kept):
    """All of them: `talk` is a topic without history, `kept` one with."""
    bounds, sent = Bounds(history), Published(history)
    return [*history.late, *rows(history), *once_and_in_order(history), *holes(sent, bounds, talk, kept), *returns(sent, bounds, kept),
            *ids(history, bounds, kept), *absences(history, bounds), *present(history)]


class Published:
    """What was accepted, by topic and in the order in which it was sent."""

    def __init__(self, history):
        self.sittings = history.sittings
        self._by_topic = {}
        for publisher in history.sittings:
            for topic, messages in publisher.sent.items():
                self._by_topic.setdefault(topic, []).extend(
                    (sent.at, sent.accepted, publisher, n) for n, sent in messages.items() if sent.accepted is not None)
        for messages in self._by_topic.values():
            messages.sort(key=lambda message: message[0])

    def since(self, topic, moment):
        messages = self._by_topic.get(topic, [])
        return messages[bisect.bisect_right(messages, moment, key=lambda message: message[0]):]


# Rows


def rows(history):
    committed = {(row.id, row.n) for row in history.committed}
    last = {row.id: row.n for row in history.committed}
    for person, received in history.rows.items():
        had = {(row.id, row.n) for row in received}
        if lost := sorted(committed - had):
            yield f"{person} lacks {len(lost)} of {len(committed)} rows: {lost[:10]}"
        if made_up := sorted(had - committed):
            yield f"{person} has rows that nobody committed: {made_up[:10]}"
        newest, seen = {}, set()
        for row in received:
            # What is repeated is repeated in order, and was in order the first time.
            if (row.id, row.n) not in seen and row.n < newest.get(row.id, -1):
                yield f"{person} has version {row.n} of row {row.id} behind version {newest[row.id]}"
            seen.add((row.id, row.n))
            newest[row.id] = max(newest.get(row.id, -1), row.n)
        shown = {row.id: row.n for row in received}
        for id, n in shown.items():
            if n != last.get(id) and (id, last.get(id)) in had:
                yield f"{person} ends with version {n} of row {id}, not {last[id]}"


# Broadcasts


def once_and_in_order(history):
    for sitting in history.sittings:
        for topic, heard in sitting.heard.items():
            seen, newest = set(), {}
            for message in heard:
                if (message.source, message.n) in seen:
                    yield f"{_name(sitting)} heard {_message(message.source, message.n)} twice in {topic}"
                elif message.n < newest.get(message.source, 0):
                    yield (f"{_name(sitting)} heard {_message(message.source, message.n)} behind "
                           f"{newest[message.source]} in {topic}")
                seen.add((message.source, message.n))
                newest[message.source] = max(message.n, newest.get(message.source, 0))


def holes(sent, bounds, talk, kept):
    """What a hub accepted while a socket was joined came to it, or it was told that something is missing: in time."""
    for sitting in sent.sittings:
        for topic in (talk, kept):
            if topic not in sitting.joined:
                continue
            missing, late = _missing(sent, bounds, topic, [sitting], sitting.joined[topic], topic == kept)
            if missing:
                yield f"{_name(sitting)} lacks in {topic}, and was not told: {_list(missing)}"
            if late:
                by, publisher, n = max(late, key=lambda entry: entry[0])
                yield (f"{_name(sitting)} heard or was told of {len(late)} messages too late in {topic}, by up to {by:.2f} s "
                       f"({_message(publisher.source, n)}): {_list([entry[1:] for entry in late])}")


def returns(sent, bounds, kept):
    """Whoever comes back with the id of its last message and is told that nothing is missing, lacks nothing."""
    for chain in _chains(sent, kept):
        if len(chain) > 1:
            missing, _ = _missing(sent, bounds, kept, chain, chain[0].joined[kept], True)
            if missing:
                yield f"{_name(chain[-1])} lacks in {kept} over {len(chain)} sockets, and was not told: {_list(missing)}"


def _chains(sent, kept):
    open_chains = {}
    for sitting in sorted(sent.sittings, key=lambda sitting: (sitting.person, sitting.number)):
        if kept not in sitting.joined:
            continue
        chain = open_chains.get(sitting.person, [])
        if chain and sitting.complete is True:
            chain.append(sitting)
        else:
            if chain:
                yield chain
            chain = [sitting]
        open_chains[sitting.person] = chain
    yield from open_chains.values()


def _missing(sent, bounds, topic, chain, since, echoes):
    """(sitting, n) of accepted messages that these sockets of one client lack and were not told of, and (seconds, sitting, n) of those
    of which it knew too late; its own if it `echoes`."""
    last: Sitting = chain[-1]
    heard = {}
    for sitting in chain:
        for message in sitting.heard.get(topic, []):
            heard.setdefault((message.source, message.n), message.at)
    newest = {}
    for source, n in heard:
        newest[source] = max(n, newest.get(source, 0))
    told = sorted(at for sitting in chain for at in sitting.gaps.get(topic, []))
    end = math.inf if last.ended is None else last.ended
    missing, late = [], []
    for at, accepted, publisher, n in sent.since(topic, since):
        if at > end:
            break
        if publisher.person == last.person and not echoes:
            continue
        known = heard.get((publisher.source, n), math.inf)
        if told and told[-1] >= at:
            known = min(known, told[bisect.bisect_left(told, at)])
        if known <= accepted + HEAL:
            continue
        due = bounds.due(accepted, publisher.hub, last.hub)
        if known == math.inf:
            # A socket that ends takes what is on its way with it; but what came behind the message is no excuse.
            if due < end or n < newest.get(publisher.source, 0):
                missing.append((publisher, n))
        elif known > due and len(chain) == 1:
            late.append((known - due, publisher, n))
    return missing, late


def healing(history, talk):
    """Of messages that came, or were told of, after the end of a fault that held them up: by how many seconds."""
    sent, bounds = Published(history), Bounds(history)
    for sitting in history.sittings:
        heard = {(message.source, message.n): message.at for message in sitting.heard.get(talk, [])}
        told = sorted(sitting.gaps.get(talk, []))
        for at, accepted, publisher, n in sent.since(talk, sitting.joined.get(talk, math.inf)):
            if sitting.ended is not None and at > sitting.ended:
                break
            if publisher.person == sitting.person:
                continue
            known = heard.get((publisher.source, n), math.inf)
            if told and told[-1] >= at:
                known = min(known, told[bisect.bisect_left(told, at)])
            if known == math.inf or known < accepted + 0.05:
                continue
            base = bounds.base(accepted, publisher.hub, sitting.hub)
            if accepted < base < known:
                yield known - base


def ids(history, bounds, kept):
    """The ids of a channel's history stand for the same messages on all hubs, in one order."""
    meaning, given = {}, {}
    for sitting in history.sittings:
        newest = {}
        for message in sitting.heard.get(kept, []):
            if message.id is None:
                yield f"{_name(sitting)} heard {_message(message.source, message.n)} without an id"
                continue
            named = meaning.setdefault(message.id, (message.source, message.n))
            if named != (message.source, message.n):
                yield f"the id {message.id} is {_message(*named)} and {_message(message.source, message.n)}"
            given.setdefault((message.source, message.n), set()).add(message.id)
            epoch, position = message.id.split(".")
            if int(position, 36) <= newest.get(epoch, -1):
                yield f"{_name(sitting)} heard the id {message.id} behind {epoch}.{newest[epoch]}"
            newest[epoch] = int(position, 36)
    for publisher in history.sittings:
        for n, sent in publisher.sent.get(kept, {}).items():
            known = given.get((publisher.source, n), set())
            if len(known) < 2 or not sent.accepted:
                continue
            # It may still be on its way to the log when a fault begins.
            if bounds.is_calm(sent.at, sent.accepted + HEAL, *range(HUBS)):
                yield (f"{_message(publisher.source, n)} of {sent.at - history.began:.2f} s on hub{publisher.hub} has several ids, "
                       f"without any trouble: {sorted(known)}")


# Presence


def absences(history, bounds):
    """Nobody is told that somebody left who was there, or came back within its window."""
    allowed = bounds.absences(history)
    for sitting in history.sittings:
        used = set()
        for gone in sitting.gone:
            for number, absence in enumerate(allowed):
                if number not in used and absence.key == gone.key and absence.since <= gone.at <= _end(absence, bounds, sitting):
                    used.add(number)
                    break
            else:
                yield f"{_name(sitting)} saw {gone.key} leave at {gone.at - history.began:.2f} s, and it had not"


def _end(absence, bounds, sitting):
    """Until when a socket may be told of an absence."""
    return math.inf if absence.until is None else bounds.due(absence.until, sitting.hub, *absence.hubs)


def present(history):
    """At the end every hub shows who is there, once each, and so does every socket."""
    views = {f"hub{hub}": refs for hub, refs in history.shown.items()}
    views |= {_name(sitting): sitting.present for sitting in history.sittings
              if sitting.ended is None and sitting.present is not None}
    for name, refs in views.items():
        if ghosts := sorted(set(refs) - history.truth):
            yield f"{name} shows {ghosts}, who are gone"
        if missing := sorted(history.truth - set(refs)):
            yield f"{name} does not show {missing}"
        if doubled := sorted(key for key in refs if len(refs[key]) > 1):
            yield f"{name} shows {doubled} more than once"


def _name(sitting):
    return f"{sitting.person}/{sitting.number} on hub{sitting.hub}"


def _message(source, n):
    return f"{source[0]}/{source[1]}:{n}"


def _list(missing):
    """Runs of numbers, by the socket that sent them."""
    runs = []
    for publisher, n in missing:
        if runs and runs[-1][0] is publisher and runs[-1][2] == n - 1:
            runs[-1][2] = n
        else:
            runs.append([publisher, n, n])
    return ", ".join(f"{_name(publisher)}:{first}" + (f"-{last}" if last > first else "")
                     for publisher, first, last in runs[:12])
