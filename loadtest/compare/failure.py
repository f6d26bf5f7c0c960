"""What ends the comparison, or costs a server its figure."""


class Failure(Exception):
    """One sentence for whoever runs the comparison; `code` is the exit status."""

    def __init__(self, sentence, code=1):
        super().__init__(sentence)
        self.code = code


def said(outcome):
    """The end of what a program wrote to standard error, on one line."""
    return " ".join(outcome.stderr.split())[-200:].rstrip(".") or "it says nothing"


class Undelivered(Failure):
    """A server did not deliver all that it was given, or was not all seen, so that what it used is no figure."""
