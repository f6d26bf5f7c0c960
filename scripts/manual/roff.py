"""Text in the language of man(7)."""

import re


def escaped(text):
    # A hyphen is typographic unless it is escaped, and then nobody can paste an option.
    return text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")


def line(text):
    """One line of running text, `code` in bold."""
    parts = re.split(r"`([^`]+)`", text)
    words = "".join(escaped(part) if n % 2 == 0 else bold(part) for n, part in enumerate(parts))
    # A dot or quote at the beginning would be a request.
    return r"\&" + words if words.startswith((".", r"\(aq")) else words


def bold(text):
    return rf"\fB{escaped(text)}\fR"


def italic(text):
    return rf"\fI{escaped(text)}\fR"


def heading(name, section, date, source, manual):
    return f'.TH "{name.upper()}" "{section}" "{date}" "{source}" "{manual}"'


def paragraphs(text):
    """Lines of text of which blank ones part paragraphs."""
    blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n", text.strip())]
    return ("\n.PP\n").join(line(block) for block in blocks if block)


def item(term, text):
    return f".TP\n{term}\n{text}"
