"""Judges the histories of clients of several hubs (support.cluster_history): each complaint is a sentence."""

from support.cluster_history import Sitting

#: Of a socket that ended, what was accepted so many seconds before has come or was told. The hub keeps for ten seconds what it
#: cannot pass on, and then says that it is lost.
SETTLED = 30.0
#: What was said of an absence may arrive so much later on a socket.
LATE = 5.0


def complaints(history, talk, kept):
    """All of them: `talk` is a topic without history, `kept` one with."""
    return [*rows(history), *once_and_in_order(history), *holes(history, talk, kept), *returns(history, kept),
            *ids(history, kept), *absences(history), *present(history)]


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


def holes(history, talk, kept):
    """What a hub accepted while a socket was joined came to it, or it was told that something is missing."""
    for sitting in history.sittings:
        for topic in (talk, kept):
            if topic not in sitting.joined:
                continue
            missing = _missing(history, topic, [sitting], sitting.joined[topic], topic == kept)
            if missing:
                yield f"{_name(sitting)} lacks in {topic}, and was not told: {_list(missing)}"


def returns(history, kept):
    """Whoever comes back with the id of its last message and is told that nothing is missing, lacks nothing."""
    for chain in _chains(history, kept):
        if len(chain) > 1:
            missing = _missing(history, kept, chain, chain[0].joined[kept], True)
            if missing:
                yield f"{_name(chain[-1])} lacks in {kept} over {len(chain)} sockets, and was not told: {_list(missing)}"


def _chains(history, kept):
    open_chains = {}
    for sitting in sorted(history.sittings, key=lambda sitting: (sitting.person, sitting.number)):
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


def _missing(history, topic, chain, since, echoes):
    """(sitting, n) of accepted messages that these sockets of one client lack and were not told of; its own if it `echoes`."""
    last: Sitting = chain[-1]
    heard = {(message.source, message.n) for sitting in chain for message in sitting.heard.get(topic, [])}
    newest = {}
    for source, n in heard:
        newest[source] = max(n, newest.get(source, 0))
    told = [at for sitting in chain for at in sitting.gaps.get(topic, [])]
    missing = []
    for publisher in history.sittings:
        if publisher.person == last.person and not echoes:
            continue
        for n, sent in publisher.sent.get(topic, {}).items():
            if sent.accepted is None or sent.at <= since or (publisher.source, n) in heard:
                continue
            # A socket that ends takes what is on its way with it; but what came behind the message is no excuse.
            has_ended = last.ended is not None and sent.accepted > last.ended - SETTLED
            if has_ended and n > newest.get(publisher.source, 0):
                continue
            if not any(at >= sent.at for at in told):
                missing.append((publisher, n))
    return missing


def ids(history, kept):
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
            moment = sent.at - 1, sent.accepted + 2
            if not history.is_trouble(*moment) and not history.is_start(*moment):
                yield f"{_message(publisher.source, n)} has several ids, without any trouble: {sorted(known)}"


# Presence


def absences(history):
    """Nobody is told that somebody left who was there, or came back within its window."""
    for sitting in history.sittings:
        used = set()
        for gone in sitting.gone:
            for number, absence in enumerate(history.absences):
                if number not in used and absence.key == gone.key and absence.since <= gone.at <= history.end_of(absence, LATE):
                    used.add(number)
                    break
            else:
                yield f"{_name(sitting)} saw {gone.key} leave at {gone.at:.2f}, and it had not"


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
