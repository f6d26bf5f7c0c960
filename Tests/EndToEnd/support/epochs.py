"""Who was a member when: proves from times, or from numbers in commit order, what each socket must and must not have."""

from dataclasses import dataclass, field


@dataclass
class Span:
    """From when something was begun to when it was known to be done. Numbers in commit order are spans of no length."""
    began: float
    done: float

    def is_before(self, other):
        return self.done < other.began


@dataclass
class Epoch:
    """A time as a member, or as none.

    `bell` is a message that was written towards its end and seen to be delivered, so that all that was committed before it
    was judged within the epoch. What was committed between the bell and the end may be judged after it, and proves nothing.
    """
    is_member: bool
    change: Span
    bell: Span | None = None

    def certainly_holds(self, message):
        return self.bell is not None and self.change.is_before(message) and message.is_before(self.bell)


@dataclass
class Timeline:
    """One user and one conversation."""
    epochs: list = field(default_factory=list)
    received: set = field(default_factory=set)

    def verdict(self, messages):
        """`messages`: number → span, all those of the conversation. Counts of what is proven; fails on what is wrong."""
        proven = {True: 0, False: 0}
        for epoch in self.epochs:
            certain = {number for number, span in messages.items() if epoch.certainly_holds(span)}
            wrong = certain - self.received if epoch.is_member else certain & self.received
            assert not wrong, (
                f"{len(wrong)} messages {'missed a member' if epoch.is_member else 'reached somebody who was removed'}: "
                f"{sorted(wrong)[:10]} of {len(certain)} in {epoch}")
            proven[epoch.is_member] += len(certain)
        return proven[True], proven[False]
