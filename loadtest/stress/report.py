"""What a run found, for people and for CI."""

import collections

from subscription import named

SHOWN = 5


class Outcome:
    def __init__(self, truth, clients, verdicts, faults, settled, unsettled):
        self.truth, self.clients, self.verdicts, self.faults, self.settled = truth, clients, verdicts, faults, settled
        self.unsettled = unsettled
        self._writers = []

    def writers(self, writers):
        self._writers = writers
        self.faults.failures += [f"{writer.name}: {writer.failure!r}" for writer in writers if writer.failure]
        self.faults.failures += [f"{writer.name} does not end" for writer in writers if writer.is_alive()]

    def count(self, kind):
        return sum(len(getattr(verdict, kind)) for _, _, verdict in self.verdicts)

    @property
    def is_good(self):
        return not (self.unsettled or self.faults.failures
                    or any(not verdict.is_good for _, _, verdict in self.verdicts))

    def _sum(self, name):
        return sum(getattr(writer, name) for writer in self._writers)

    def text(self):
        subscriptions = [subscription for _, subscription, _ in self.verdicts]
        deliveries = sum(len(subscription.received) + subscription.repeats for subscription in subscriptions)
        repeats = sum(subscription.repeats for subscription in subscriptions)
        old = sum(subscription.since.sees(self.truth.by_key[value].transaction)
                  for subscription in subscriptions if subscription.since is not None
                  for value in subscription.received if value in self.truth.by_key)
        journal = sum((collections.Counter(client.journal.counts) for client in self.clients), collections.Counter())
        events = collections.Counter(change.event for change in self.truth.changes)
        faults = ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.counts.items())) or "none"
        lines = [
            f"writes       {len(self.truth.changes):,} committed changes ({events['INSERT']:,} inserts, "
            f"{events['UPDATE']:,} updates, {events['DELETE']:,} deletes) in {self._sum('committed'):,} transactions; "
            f"{self._sum('rolled_back'):,} rolled back, {self._sum('failed'):,} cut off by faults",
            f"deliveries   {deliveries:,} to {len(self.clients)} clients, of which {repeats:,} repeats "
            f"({repeats / max(deliveries, 1):.1%}); {old:,} were older than the client",
            f"faults       {sum(self.faults.counts.values())}: {faults}",
            f"clients      {journal['lost'] + journal['channel error']:,} losses of a socket or a channel, "
            f"{journal['joined']:,} joins, {journal['not connected']:,} attempts in vain, "
            f"{journal['join timed out']:,} joins timed out",
            f"settled in   {self.settled:.1f} s"
            + (f"; {len(self.unsettled)} clients have not come back" if self.unsettled else ""),
            f"lost         {self.count('lost')}",
            f"out of order {self.count('out_of_order')}",
            f"wrong        {self.count('wrong')}",
        ]
        return "\n".join(lines + [f"failed       {failure}" for failure in self.faults.failures])

    def details(self):
        """The first few faults that were found, with what happened to those clients at that time."""
        lines = []
        bad = [found for found in self.verdicts if not found[2].is_good]
        if bad:
            lines.append(f"{len(bad)} of {len(self.verdicts)} subscriptions are not as they should be; some of them:")
        for client, subscription, verdict in bad[:SHOWN]:
            lines.append(f"- client {client.name}, {subscription.binding}: lost {len(verdict.lost)}, out of order "
                         f"{len(verdict.out_of_order)}, wrong {len(verdict.wrong)}")
            lines += [f"    {sentence}" for sentence in (verdict.out_of_order[:3] + verdict.wrong[:3])]
            for value in verdict.lost[:3]:
                change = self.truth.by_key[value]
                lines.append(f"    lost {named(value)} ({change.event} by {change.transaction}, committed at {change.at:.3f}, "
                             f"written {change.at - change.written_at:.3f} s before)")
            if verdict.out_of_order and subscription.out_of_order:
                lines += [f"        {entry}" for entry in client.journal.around(subscription.out_of_order[0].at)]
            if verdict.lost:
                lines += [f"        {entry}" for entry in client.journal.around(self.truth.by_key[verdict.lost[0]].at)]
                lines += ["        and last:", *(f"        {entry}" for entry in client.journal.entries[-12:])]
        for client in self.unsettled[:SHOWN]:
            lines.append(f"- client {client.name} has not come back: {client.journal.entries[-5:]}")
        return "\n".join(lines)
