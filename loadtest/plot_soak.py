#!/usr/bin/env python3
"""Draws what a soak found over its time, for a document: `plot_soak.py RECORD > FILE.svg`, RECORD from `roost-load soak --record`."""

import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP = 860, 200, 64, 30, 30, 46
COLORS = {"p50": "#2a9d8f", "p99": "#e76f51", "memory": "#577590"}


class Panel:
    """One plot over the minutes, with values between two bounds."""

    def __init__(self, title, top, minutes, low, high, is_logarithmic):
        self.title, self.top, self.minutes = title, top, minutes
        self.scale = math.log10 if is_logarithmic else float
        self.low, self.high = self.scale(low), self.scale(high)

    def x(self, minute):
        return LEFT + (WIDTH - LEFT - RIGHT) * minute / self.minutes

    def y(self, value):
        share = (self.scale(value) - self.low) / (self.high - self.low)
        return self.top + HEIGHT * (1 - min(1, max(0, share)))

    def frame(self, values, unit):
        yield f'<text x="{LEFT}" y="{self.top - 10}" class="title">{self.title}</text>'
        for value in values:
            y = self.y(value)
            yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" class="axis" text-anchor="end">{value:g} {unit}</text>'
        step = max(1, round(self.minutes / 6))
        for minute in range(0, int(self.minutes) + 1, step):
            yield (f'<text x="{self.x(minute):.1f}" y="{self.top + HEIGHT + 18}" class="axis" '
                   f'text-anchor="middle">{minute} min</text>')

    def line(self, points, name):
        path = " ".join(f"{self.x(minute):.1f},{self.y(value):.1f}" for minute, value in points)
        yield f'<polyline points="{path}" fill="none" stroke="{COLORS[name]}" stroke-width="1.3"/>'


def legend(names, top):
    for number, (name, text) in enumerate(names):
        x = WIDTH - RIGHT - 150 * (len(names) - number)
        yield f'<rect x="{x}" y="{top - 20}" width="12" height="4" fill="{COLORS[name]}"/>'
        yield f'<text x="{x + 18}" y="{top - 14}" class="axis">{text}</text>'


def drawing(record):
    samples = [sample for sample in record["samples"] if sample["seconds"] > 0 and "p99_ns" in sample]
    minutes = max(sample["seconds"] for sample in samples) / 60
    delays = Panel("Delay of everything that was delivered in a second", TOP, minutes, 0.5, 100, True)
    yield from delays.frame([0.5, 1, 2, 5, 10, 20, 50, 100], "ms")
    yield from legend([("p50", "median"), ("p99", "99th percentile")], TOP)
    for name in ("p99", "p50"):
        yield from delays.line([(s["seconds"] / 60, s[f"{name}_ns"] / 1e6) for s in samples], name)
    memory = [(s["seconds"] / 60, p["memory_kb"] / 1024) for s in samples for p in s["processes"] if p["name"] == "hub"]
    high = 20 * math.ceil(max(value for _, value in memory) * 1.2 / 20)
    panel = Panel("Memory of the hub", TOP + HEIGHT + GAP + TOP, minutes, 0, high, False)
    yield from panel.frame(range(0, high + 1, 20), "MB")
    yield from panel.line(memory, "memory")


def main():
    with open(sys.argv[1]) as file:
        record = json.load(file)
    height = 2 * (TOP + HEIGHT + GAP)
    style = (".title{font:600 13px sans-serif;fill:#555}.axis{font:11px sans-serif;fill:#777}"
             ".grid{stroke:#999;stroke-opacity:.25}")
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
          f"<style>{style}</style>")
    print("\n".join(drawing(record)))
    print("</svg>")


if __name__ == "__main__":
    main()
