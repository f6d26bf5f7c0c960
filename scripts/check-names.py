#!/usr/bin/env python3
"""Holds every Swift type of this tree to a name of its own, over Sources, Tests, loadtest and examples: a name that stands twice sends
a reader to the wrong file, and an import can change which of the two is meant. Prints each name that stands twice, with its
places, and ends with 1 where there is one. Part of `make lint`.

Types at the top level count, private ones and those of tests too. Types within a type do not: the outer name tells them
apart. Nor does the code of RoostClient's tutorial, which is not compiled: there each step shows the same type anew.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TYPE = re.compile(r"^(?:(?:@\w+(?:\([^)]*\))?|[a-z]+(?:\([a-z]+\))?)\s+)*?(?:actor|class|enum|protocol|struct|typealias)\s+(\w+)", re.MULTILINE)


def main():
    places = defaultdict(list)
    for folder in ("Sources", "Tests", "loadtest", "examples"):
        for path in sorted((ROOT / folder).rglob("*.swift")):
            if not any(part.endswith(".docc") or part == ".build" for part in path.parts):
                for name in TYPE.findall(path.read_text(encoding="utf-8")):
                    places[name].append(str(path.relative_to(ROOT)))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    for name, paths in sorted(twice.items()):
        print(f"check-names: {name} is the name of {len(paths)} types: {', '.join(paths)}", file=sys.stderr)
    sys.exit(1 if twice else 0)


if __name__ == "__main__":
    main()
