"""/metrics, as Prometheus reads it."""

import collections
import re

from support.deadline import eventually

SAMPLE = re.compile(r'([a-z_0-9]+)(?:\{(.*)\})? (\S+)')


def scrape(hub):
    """By name with labels; checks the form of all of it."""
    status, text = hub.read_metrics()
    assert status == 200
    values, heads, last = {}, collections.Counter(), None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            last = line.split()[2]
            heads[last] += 1
        elif line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert name == last and kind in ("counter", "gauge", "histogram"), line
            assert (kind == "counter") == name.endswith("_total"), line
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name == last or re.sub("_(bucket|sum|count)$", "", name) == last, f"{line!r} below the head of {last}"
            key = f"{name}{{{labels}}}" if labels else name
            assert key not in values, f"{key} comes twice"
            values[key] = float(value)
    assert set(heads.values()) == {1}, "one head for each name"
    return values


async def came_to(hub, **wanted):
    """Loops publish once a second."""
    def fits():
        values = scrape(hub)
        return all(values.get(name) == value for name, value in wanted.items())
    await eventually(fits, what=lambda: f"{wanted}; it is {({name: scrape(hub).get(name) for name in wanted})}")
