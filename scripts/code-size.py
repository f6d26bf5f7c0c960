#!/usr/bin/env python3
"""Counts the code: files, lines, the size of files and the types in them, for each room and for the whole.

    scripts/code-size.py                  Sources, room by room
    scripts/code-size.py FOLDER…          other folders, a row each: a project to compare with, Tests, loadtest
    scripts/code-size.py --suffix .sql    other files than .swift

Every line counts, comments and blank ones too. A type is a declaration of struct, class, enum, actor or protocol at the
beginning of a line, with its modifiers: nested ones are part of the type they are in.
"""

import argparse
import re
import statistics
from pathlib import Path

TYPE = re.compile(r"^(?:@\w+(?:\([^)]*\))? )*(?:(?:public|package|internal|private|fileprivate|open|final|indirect|nonisolated) )*"
                  r"(?:struct|class|enum|actor|protocol) \w", re.MULTILINE)
COLUMNS = ("files", "lines", "median", "p90", "max", "< 30", "> 300", "types/file", "files/1,000")


def files(folder, suffix):
    return sorted(path for path in folder.rglob("*" + suffix) if ".build" not in path.parts and path.is_file())


def row(paths):
    texts = [path.read_text(encoding="utf-8") for path in paths]
    sizes = sorted(text.count("\n") for text in texts)
    lines = sum(sizes)
    types = sum(len(TYPE.findall(text)) for text in texts)
    return (len(sizes), lines, round(statistics.median(sizes)), sizes[min(len(sizes) - 1, len(sizes) * 9 // 10)], sizes[-1],
            sum(size < 30 for size in sizes), sum(size > 300 for size in sizes),
            f"{types / len(sizes):.1f}", f"{len(sizes) * 1000 / lines:.1f}" if lines else "–")


def main():
    parser = argparse.ArgumentParser(description="Counts the code.")
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--suffix", default=".swift")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    if options.folders:
        groups = [(str(folder), files(folder, options.suffix)) for folder in options.folders]
    else:
        rooms = sorted(path for path in (root / "Sources").iterdir() if path.is_dir())
        groups = [(room.name, files(room, options.suffix)) for room in rooms]
        groups.append(("Sources", [path for _, paths in groups for path in paths]))
    table = [("", *COLUMNS)] + [(name, *map(str, row(paths))) for name, paths in groups if paths]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.ljust(width) if index == 0 else cell.rjust(width)
                        for index, (cell, width) in enumerate(zip(line, widths))).rstrip())


if __name__ == "__main__":
    main()
