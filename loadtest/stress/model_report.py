"""What a model check found, a line for each seed."""

import collections
import time

SHOWN, SENTENCES = 4, 3


class ModelOutcome:
    """`failures` are what kept the run from proving anything."""

    def __init__(self, run, truth, faults, settled, away, verdicts):
        self.run, self.truth, self.faults, self.settled, self.away, self.verdicts = run, truth, faults, settled, away, verdicts
        self.failures = faults.failures
        self.events = sum(len(fold.events) for _, fold, _ in verdicts)
        self.reloads = sum(1 for _, fold, _ in verdicts for reload in fold.reloads if reload.why)

    def count(self, kind):
        return sum(len(getattr(verdict, kind)) for _, _, verdict in self.verdicts)

    @property
    def is_good(self):
        return not (self.failures or self.away) and all(verdict.is_good for _, _, verdict in self.verdicts)

    @property
    def figures(self):
        return collections.Counter(
            changes=len(self.truth.changes), events=self.events, faults=sum(self.faults.counts.values()),
            holes=len(self.faults.holes), reloads=self.reloads, wrong=self.count("wrong"), leaks=self.count("leaks"),
            untold=self.count("untold"), failed=len(self.failures) + len(self.away))

    def line(self):
        return (f"seed {self.run.seed:<6} {self.run.capture:<9} {described(self.figures)}, settled in {self.settled:.1f} s"
                f"{'' if self.is_good else '   <<<'}")

    def details(self):
        """The first few of what was found, with what happened to those clients and to the hub."""
        run, began = self.run, self.run.began
        clock = time.time() - time.monotonic() + began  # of journals
        lines = [f"  failed: {failure}" for failure in self.failures[:8]]
        lines += [f"  hole {hole.kind}: {hole.began - began:.3f} to {hole.ended - began:.3f} s"
                  for hole in self.faults.holes]
        lines += [f"  {fault}" for fault in run.plan]
        for client, fold, verdict in [found for found in self.verdicts if not found[2].is_good][:SHOWN]:
            channel = next(channel for channel in client.channels.values() if fold in channel.folds)
            lines.append(f"- client {client.name}, version {client.version}, {client.habit}, "
                         f"{'with a cursor' if channel.has_cursor else 'without'}, {channel.topic}: {fold}; "
                         f"wrong {len(verdict.wrong)}, leaks {len(verdict.leaks)}, untold {len(verdict.untold)}")
            lines += [f"    {sentence[:600]}" for sentence in
                      verdict.wrong[:SENTENCES] + verdict.leaks[:SENTENCES] + verdict.untold[:SENTENCES]]
            lines += [f"        {line}" for line in verdict.story]
            lines += [f"    loaded at {reload.at - began:.3f}: {reload.why}" for reload in fold.reloads]
            lines.append(f"    away: {', '.join(f'{gone - began:.3f} to {back - began:.3f}' for gone, back in channel.absences)}")
            lines += [f"        {at - clock:.3f} {kind} {detail}".rstrip() for at, kind, detail in client.journal.entries[-30:]]
        lines += [f"- client {client.name} has not come back: {client.journal.entries[-5:]}" for client in self.away[:SHOWN]]
        return "\n".join(lines)


def described(figures):
    return (f"{figures['changes']:6,} changes {figures['events']:8,} events {figures['faults']:4} faults ({figures['holes']} holes) "
            f"{figures['reloads']:4} reloads: {figures['wrong']} wrong, {figures['leaks']} leaks, {figures['untold']} untold holes"
            + (f", {figures['failed']} failures" if figures["failed"] else ""))
