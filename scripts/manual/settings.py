"""A manual page of the settings, from the comments of config/roost.yaml, which are the manual."""

import re

from roff import bold, heading, item, line, paragraphs

#: `key: value`, or `#key: value` where the setting has no default.
KEY = re.compile(r"^(?P<indent> *)(?P<off>#?)(?P<key>[a-z0-9_]+):(?: (?P<value>.*))?$")
COMMENT = re.compile(r"^ *#(?: (?P<text>.*))?$")


def page(text, version, date):
    introduction, settings = read(text)
    parts = [
        heading("roost.yaml", 5, date, f"roost {version}", "File Formats"),
        r".SH NAME" + "\n" + r"roost.yaml \- the configuration of the realtime hub roost",
        ".SH SYNOPSIS\n.I /etc/roost/roost.yaml",
        ".SH DESCRIPTION\n" + paragraphs(introduction),
        ".SH SETTINGS",
    ]
    parts += [item(term(key, value), paragraphs(words) + long_default(value)) for key, value, words in settings]
    parts += [
        ".SH FILES",
        item(".I /etc/roost/roost.yaml", "What everybody may read."),
        item(".I /etc/roost/environment", "Secrets, as variables; systemd hands them to the hub."),
        ".SH SEE ALSO",
        line("roost(1), systemd.exec(5)"),
    ]
    return "\n".join(parts) + "\n"


#: Longer defaults stand on a line of their own.
SHORT = 50


def term(key, value):
    return bold(key) + (f" (default: {line(value)})" if value and len(value) <= SHORT else "")


def long_default(value):
    return f"\n.nf\nDefault: {line(value)}\n.fi" if value and len(value) > SHORT else ""


def read(text):
    """The words at the top, and the settings: key, default or None, words."""
    introduction, settings, comment, section = [], [], [], None
    for row in text.splitlines():
        key = KEY.match(row)
        if key:
            if not key["indent"]:
                section = None
            if key["value"] is None and not key["indent"]:
                section = key["key"]
            else:
                name = f"{section}.{key['key']}" if section else key["key"]
                settings.append((name, None if key["off"] else key["value"] or "", "\n".join(comment)))
            comment = []
        elif match := COMMENT.match(row):
            comment.append(match["text"] or "")
        else:
            # A blank line behind a comment that belongs to no key.
            if not settings and section is None:
                introduction += [*comment, ""]
            comment = []
    return "\n".join(introduction), settings
