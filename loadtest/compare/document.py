"""The document that holds the tables."""

from failure import Failure

BEGIN = "<!-- compare:begin -->"
END = "<!-- compare:end -->"

FRAME = f"""# Performance

## Beside the limit and others of its trade

The limit is the least that a fan-out server can do: one ready-made frame per socket with `send(2)`. `make compare` makes the
tables below, on whatever machine it runs; the load average tells how quiet that one was. Figures of two machines, or of two
runs, are not to be compared: ratios within one run are.

{BEGIN}
{END}
"""


def check(path):
    """Before the hours of measuring: is there a place for what they will find?"""
    if path.exists():
        _parts(path.read_text(), path)
    elif not path.parent.is_dir():
        raise Failure(f"there is no folder {path.parent} for {path.name}", 64)


def write(path, text):
    check(path)
    before, after = _parts(path.read_text() if path.exists() else FRAME, path)
    path.write_text(f"{before}{BEGIN}\n{text.strip()}\n{END}{after}")


def _parts(document, path):
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Failure(f"{path} has no place for the tables: give it the lines {BEGIN} and {END}", 64)
    return before, after
