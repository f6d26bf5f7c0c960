"""What a client says to a server."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Traffic:
    """A subscriber sends `subscribe` after the upgrade and is ready when `answers` frames have come back; the publisher does
    the same with its own, and then sends messages that stand between `prefix` and `suffix`."""
    path: str = "/"
    subprotocol: str = ""
    subscribe: tuple = ()
    answers: int = 0
    publisher: tuple = ()
    publisher_answers: int = 0
    prefix: bytes = b""
    suffix: bytes = b""
    #: Frames of opcode 2 in place of text.
    is_binary: bool = False
