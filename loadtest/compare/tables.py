"""The tables of a comparison, in Markdown."""

from column import LIMIT, ROOST, Column

READING = """Every figure is the median of {rounds} interleaved {noun}, with the least and the most in brackets: for each \
measurement a round visits every server once, in a random order (seed {seed}), starts it afresh and ends it after. × is the \
ratio to the limit of the same round. CPU time and memory are those of the server's processes, from /proc; what the kernel \
holds for sockets is in neither. The bytes are those of the message that goes in; each protocol puts its own around them. \
**Bold** is the least of all servers; the limit is not one. A server that did not deliver every message to every socket has \
no figure: –."""

FANOUT = """CPU µs per delivery. All sockets are subscribed to one channel; one client publishes to it, so many messages at a \
time, and {pacing}."""

IDLE = """KB of memory and CPU µs that a socket costs by being there: connected, upgraded and subscribed, before anything is \
sent. A server that has just started grows by more than its sockets, which weighs most where these are few."""

LATENCY = """ms from the publisher's send to the client's receipt, one message at a time: how long until half of all sockets, \
and 99 of 100, have it. One loop of one process receives for all sockets, and its own time is in it."""


def text(record):
    return "\n\n".join(part for part in (
        conditions(record), reading(record), *fanout(record), idle(record), *latency(record), missing(record)) if part)


def conditions(record):
    facts = record.conditions + [[peer["title"], peer["version"]] for peer in record.peers]
    return "\n".join(f"- {name}: {value}" for name, value in facts)


def reading(record):
    rounds = record.rounds
    return READING.format(rounds=rounds, noun="round" if rounds == 1 else "rounds", seed=record.plan["seed"])


def fanout(record):
    plan = record.plan
    yield "### Fan-out"
    yield FANOUT.format(pacing=record.content["pacing"])
    for size in plan["sizes"]:
        for window in plan["windows"]:
            columns = [Column(record, at(sockets), "cpu_us_per_delivery", 2, sockets=sockets, size=size, window=window)
                       for sockets in plan["sockets"]]
            yield f"#### {size} bytes, {window} at a time"
            yield table(record, columns, with_ratio=True)
            yield ahead(record, columns)


def idle(record):
    sockets = record.plan["sockets"]
    columns = [Column(record, f"KB, {at(number)}", "kb_per_socket", 2, sockets=number) for number in sockets]
    columns += [Column(record, f"CPU µs, {at(number)}", "connect_cpu_us", 0, sockets=number) for number in sockets]
    return "\n\n".join(("### Idle sockets", IDLE, table(record, columns), ahead(record, columns)))


def latency(record):
    plan = record.plan
    if 1 not in plan["windows"]:
        return
    yield "### Latency"
    yield LATENCY
    for size in plan["sizes"]:
        columns = [Column(record, f"{name}, {at(sockets)}", f"{name}_us", 1, 1 / 1000, sockets=sockets, size=size, window=1)
                   for sockets in plan["sockets"] for name in ("p50", "p99")]
        yield f"#### {size} bytes"
        yield table(record, columns)
        yield ahead(record, columns)


def at(sockets):
    return f"{sockets:,} sockets"


def table(record, columns, with_ratio=False):
    head = ["server"]
    for column in columns:
        head += [column.title, "×"] if with_ratio else [column.title]
    rows = []
    for peer in record.peers:
        name = peer["name"]
        row = [peer["title"]]
        for column in columns:
            row.append(column.cell(name))
            if with_ratio:
                row.append("1" if name == LIMIT else column.ratio(name))
        rows.append(row)
    lines = ["| " + " | ".join(row) + " |" for row in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines)


def ahead(record, columns):
    """Where a peer wins, it is said."""
    titles = {peer["name"]: peer["title"] for peer in record.peers}
    if ROOST not in titles or not set(titles) - {ROOST, LIMIT}:
        return ""
    found = [sentence for column in columns for sentence in column.ahead(titles)]
    measured = any(column.values[ROOST] for column in columns)
    if not found:
        return "None of the others needs less than Roost." if measured else "Roost has no figure here."
    return f"Less than Roost: {'; '.join(found)}."


def missing(record):
    lines = [f"- {sentence}" for sentence in record.content["left_out"]]
    titles = {peer["name"]: peer["title"] for peer in record.peers}
    lines += [f"- {titles[run['peer']]}, {at(run['sockets'])}, {run['size']} bytes, {run['window']} at a time, round "
              f"{run['round']}: {run['failure']}" for run in record.failures]
    return "### What has no figure\n\n" + "\n".join(lines) if lines else ""
