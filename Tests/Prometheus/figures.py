"""The names of figures, where they are made and where they are used."""

import re

#: What is used of a figure is not all recorded under its own name.
SUFFIX = re.compile(r"_(bucket|sum|count)$")
#: Not those that a rule records, which have colons.
NAME = re.compile(r"(?<![:\w])(?:roost|process)_[a-z0-9_]+(?![:\w])")


def made(exposition):
    """The figures of a hub, by name: their kind."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", exposition, re.MULTILINE))


def used(text, kinds):
    """The figures that expressions name. `kinds` tells which are histograms."""
    names = set()
    for name in NAME.findall(text):
        plain = SUFFIX.sub("", name)
        names.add(plain if kinds.get(plain) == "histogram" else name)
    return names


def explained(manual):
    """The figures that have a row in the manual's tables; a row may have several."""
    rows = re.findall(r"^\| (`(?:roost|process)_[^|]*) \|", manual, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([a-z0-9_]+)", row)]
