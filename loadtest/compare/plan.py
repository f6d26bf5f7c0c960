"""What is measured, and how often."""

import dataclasses
import itertools


@dataclasses.dataclass(frozen=True)
class Shape:
    """One measurement: so many sockets get messages of so many bytes, `window` of them at a time."""
    sockets: int
    size: int
    window: int
    deliveries: int
    #: With many sockets and messages at a time they are what counts; the first of two may be a chance.
    least_bursts: int = 2
    warm_deliveries: int = 20_000
    settle_milliseconds: int = 500
    #: Seconds; somebody slow, on a busy machine, takes minutes.
    timeout: int = 180

    @property
    def messages(self):
        return max(self.deliveries // (self.sockets * self.window), self.least_bursts) * self.window

    @property
    def warm_messages(self):
        return max(self.warm_deliveries // self.sockets, 4)


@dataclasses.dataclass(frozen=True)
class Plan:
    rounds: int
    sockets: tuple
    sizes: tuple
    windows: tuple
    deliveries: int
    least_bursts: int
    settle_milliseconds: int
    seed: int

    def shapes(self):
        for sockets, size, window in itertools.product(self.sockets, self.sizes, self.windows):
            yield Shape(sockets, size, window, self.deliveries, self.least_bursts, settle_milliseconds=self.settle_milliseconds)


def full(rounds, seed):
    return Plan(rounds or 3, (1000, 5000, 10_000), (150, 500), (1, 4, 16), 60_000, 2, 500, seed)


def quick(rounds, seed):
    return Plan(rounds or 3, (1000, 5000), (150,), (1, 4), 30_000, 2, 200, seed)
