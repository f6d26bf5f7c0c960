#!/usr/bin/env python3
"""Counts words that make code hard to read, over Sources, and never lets them grow: functions that are named by one word, and comments
that open with a clause where a noun or a verb would do ("What is known of a hub"). Part of `make lint`.

A function's name is a verb and its object (`takeFrame`). One word is right for what Swift's own conventions name so (`append`, `start`,
`description(of:)`), so some always remain. `--list` prints every one that is counted.
"""

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The counts when they were last lowered. Lower them whenever there are fewer; a change that raises one needs other words.
ONE_WORD = 1988
CLAUSES = 36

FUNCTION = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:package |public |private |fileprivate |internal |static |mutating |override |consuming "
    r"|borrowing |nonisolated |final |class )*func (\w+)")
CLAUSE = re.compile(r"^\s*///?\s+(?:-\s+)?(?:What|Of|Where|Whose|Who|Whoever|How|From where|To whom|Whom)\b")


def counted(path):
    """The lines of a file that count, each with its kind."""
    before = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        function = FUNCTION.match(line)
        if function:
            yield "function", number, function[1], bool(re.fullmatch(r"[a-z0-9]+", function[1]))
        elif CLAUSE.match(line) and not before.lstrip().startswith("//"):
            yield "clause", number, line.strip(), True
        before = line


def main():
    count, functions, places = Counter(), 0, []
    for path in sorted((ROOT / "Sources").rglob("*.swift")):
        if any(part.endswith(".docc") for part in path.parts):
            continue
        for kind, number, text, is_bad in counted(path):
            functions += kind == "function"
            count[kind] += is_bad
            if is_bad:
                places.append(f"{path.relative_to(ROOT)}:{number}: {text}")
    if "--list" in sys.argv:
        print("\n".join(places))
    share = round(100 * count["function"] / functions)
    print(f"check-words: {count['function']} of {functions} functions ({share} %) are named by one word, {count['clause']} comments open with a clause")
    grown = [f"{what}: {now} where {most} were" for what, now, most in (
        ("functions that are named by one word", count["function"], ONE_WORD), ("comments that open with a clause", count["clause"], CLAUSES))
        if now > most]
    for problem in grown:
        print(f"check-words: more {problem}; scripts/check-words.py --list names all", file=sys.stderr)
    sys.exit(1 if grown else 0)


if __name__ == "__main__":
    main()
