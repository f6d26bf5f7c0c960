#!/usr/bin/env python3
"""Holds the rooms of docs/architecture.md to the code: what each room of the table is said to know is what its target in
Package.swift depends on and what its files import, and every room stands below all those that it knows, so that no two
know each other. Prints each difference and ends with 1 where there is one. Part of `make lint`.

C libraries and packages of others are no rooms and are not looked at. A room that is only a part of another's target does
not exist for the compiler, and so not here.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
IMPORT = re.compile(r"^ *(?:(?:public|package|internal|private|fileprivate|@\w+(?:\(\w+\))?) )*import (\w+)", re.MULTILINE)


def targets():
    """Each Swift target under Sources, with all that its declaration names in quotation marks."""
    text = (ROOT / "Package.swift").read_text(encoding="utf-8")
    starts = [match.start() for match in re.finditer(r"\.(?:target|executableTarget|testTarget|systemLibrary)\(\s*name:", text)]
    found = {}
    for start, end in zip(starts, starts[1:] + [len(text)]):
        declaration = text[start:end]
        name = re.search(r'name: "([^"]+)"', declaration).group(1)
        if any((ROOT / "Sources" / name).rglob("*.swift")):
            dependencies = re.search(r"dependencies: \[(.*)", declaration, re.DOTALL)
            found[name] = set(re.findall(r'"([^"]+)"', dependencies.group(1))) if dependencies else set()
    return found


def imports(room):
    return {name for path in (ROOT / "Sources" / room).rglob("*.swift")
            for name in IMPORT.findall(path.read_text(encoding="utf-8"))} - {room}


def table():
    """The rooms in the order of the page, each with those that it is said to know."""
    rows = {}
    lines = iter(PAGE.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith("| room |"):
            break
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"`\w+`", cells[0]):
            rows[cells[0].strip("`")] = set(re.findall(r"`(\w+)`", cells[1]))
    return rows


def main():
    declared, page, problems = targets(), table(), []
    for room in sorted(set(declared) ^ set(page)):
        where = "docs/architecture.md has no row for it" if room in declared else "it is no Swift target"
        problems.append(f"{room}: {where}")
    above = set()
    for room, known in page.items():
        above.add(room)
        if room not in declared:
            continue
        depends, imported = declared[room] & set(declared) - {room}, imports(room) & set(declared)
        for other in sorted(known - above):
            problems.append(f"{room}: it stands above {other}, which it knows")
        for what, those in (("docs/architecture.md says that it knows", known), ("it imports", imported),
                            ("Package.swift says that it depends on", depends)):
            for other in sorted(those - (known & imported & depends)):
                lacking = [place for place, others in (("docs/architecture.md", known), ("its imports", imported),
                                                       ("Package.swift", depends)) if other not in others]
                problems.append(f"{room}: {what} {other}, unlike {' and '.join(lacking)}")
    for problem in problems:
        print(f"check-rooms: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
