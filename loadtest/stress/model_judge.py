"""Holds what one subscription of a client was told and shows against the truth."""

import bisect
import itertools
from collections import defaultdict
from dataclasses import dataclass, field

from model_truth import MAY, MUST, NEVER, key_of

#: Commits whose times are nearer than this have no certain order.
CLOSE = 1.0
#: How long after its end: until the hub knows that it is over.
UNNOTICED = 6.0


@dataclass
class Verdict:
    """Sentences. A hole that was told is none of these."""
    wrong: list = field(default_factory=list)
    leaks: list = field(default_factory=list)
    untold: list = field(default_factory=list)
    #: What happened to the first key that is shown wrongly.
    story: list = field(default_factory=list)

    @property
    def is_good(self):
        return not (self.wrong or self.leaks or self.untold)


@dataclass(slots=True)
class Step:
    """What a change makes of one key: a row, or none."""
    change: object
    row: dict
    grade: int


class Judge:
    """Of one fold of a channel, for a user. `holes` are the times in which changes could be lost; `reach` tells up to which commit
    clients had been told of changes at a time."""

    def __init__(self, truth, user, fold, absences, holes, reach):
        self.truth, self.user, self.fold, self.absences, self.holes, self.reach = truth, user, fold, absences, holes, reach
        self.steps = defaultdict(list)
        for change in truth.by_table[fold.table]:
            self._take(change)

    def _take(self, change):
        fold, table = self.fold, self.fold.table
        if change.old and not change.new:
            # The end of a row goes to whom it could be shown, and to nobody else.
            self.steps[key_of(table, change.old)].append(Step(change, None, self._grade(change.old, change)))
            return
        grade = self._grade(change.new, change)
        if change.new:
            self.steps[key_of(table, change.new)].append(Step(change, change.new, grade))
        if change.old and key_of(table, change.old) != key_of(table, change.new):
            # It may come as two changes or as one.
            matches = fold.filter.holds(change.old)
            is_certain = matches and grade == MUST
            self.steps[key_of(table, change.old)].append(
                Step(change, None, MUST if is_certain else MAY if matches or grade != NEVER else NEVER))

    def _grade(self, row, change, **until):
        return self.truth.grade(self.fold.table, row, self.user, change, **until) if self.fold.filter.holds(row) else NEVER

    # What is missing

    def missing(self):
        """Rows that it should have been told of since it loaded its data, and was not."""
        fold = self.fold
        return [step.change for steps in self.steps.values() for step in steps
                if step.row and step.grade == MUST and step.row["version"] not in fold.received
                and not fold.since.sees(step.change.transaction)]

    def unexplained(self):
        """Rows that were missing when it was told to load its data, though no fault lost them."""
        fold, found = self.fold, []
        for former, reload in zip(fold.reloads, fold.reloads[1:]):
            found += [(step.change, reload) for steps in self.steps.values() for step in steps
                      if step.row and step.grade == MUST and step.row["version"] not in fold.received
                      and reload.snapshot.sees(step.change.transaction)
                      and not former.snapshot.sees(step.change.transaction)
                      and not self._is_explained(step.change, former, reload)]
        return found

    def needless(self):
        """Loads that it was told to make before any fault that loses changes."""
        return [reload for reload in self.fold.reloads if reload.why and not any(hole.began < reload.at for hole in self.holes)]

    def _is_explained(self, change, former, reload):
        """Nobody had been told of it yet when a hole began, or this client was away; and so it was when the change was committed,
        or the hole was not over yet. A client that is refused its place misses all that came until it is back."""
        return any(
            former.at < hole.ended + UNNOTICED and hole.began < reload.at
            and (change.after > self.reach(hole.began) - CLOSE or self._was_away(change.before, hole.began))
            and (change.before < hole.ended + UNNOTICED or self._was_away(change.before, change.after + CLOSE))
            for hole in self.holes)

    def _was_away(self, start, end):
        return any(gone < end and back > start for gone, back in self.absences)

    # What is shown

    def disagreements(self):
        """Keys of which the client shows something else than it may."""
        fold = self.fold
        for key in self.steps.keys() | fold.rows.keys() | fold.loaded.keys():
            shown = fold.rows.get(key)
            allowed = self._allowed(key)
            if shown not in allowed:
                yield key, shown, allowed

    def _allowed(self, key):
        fold, allowed = self.fold, []
        for step in reversed(self.steps.get(key, ())):
            is_new = not fold.since.sees(step.change.transaction)
            came = step.row["version"] in fold.received_since if step.row else key in fold.gone_since
            if step.grade != NEVER and (is_new or came):
                allowed.append(fold.shown(step.row) if step.row else None)
            if step.grade == MUST and (is_new or came):
                return allowed
            if step.grade == MUST:
                break
        return [*allowed, fold.loaded.get(key)]

    # What came

    def _judge_events(self, verdict):
        fold, truth = self.fold, self.truth
        for at, data in fold.events:
            record, old = data.get("record"), data.get("old_record")
            if data["type"] == "DELETE":
                if key_of(fold.table, old) not in truth.gone[fold.table]:
                    verdict.wrong.append(f"{fold.table} {key_of(fold.table, old)} was never deleted")
                elif fold.is_guarded and all(step.grade == NEVER for step in self.steps[key_of(fold.table, old)] if not step.row):
                    verdict.leaks.append(f"the DELETE of {fold.table} {key_of(fold.table, old)} is not {self.user}'s: {sorted(old)}")
                continue
            change = truth.by_version.get(record["version"])
            name = f"{fold.table} {key_of(fold.table, record)} version {record['version']}"
            if change is None or change.table != fold.table:
                verdict.wrong.append(f"{name} was never committed")
                continue
            if record != fold.shown(change.new):
                verdict.wrong.append(f"{name} came as {record}, and is {change.new}")
            elif not fold.filter.holds(change.new):
                verdict.wrong.append(f"{name} does not match {fold.filter}: {change.new}")
            elif self.truth.grade(fold.table, change.new, self.user, change, at) == NEVER:
                verdict.leaks.append(f"{name} is not {self.user}'s: {change.new}, by {change.transaction}")
            elif (old and fold.is_guarded and not set(old) <= fold.key_columns and change.old
                  and self.truth.grade(fold.table, change.old, self.user, change, at) == NEVER):
                verdict.leaks.append(f"{name}: what it was before is not {self.user}'s: {old}")

    def verdict(self):
        found = Verdict()
        self._judge_events(found)
        found.untold += [
            f"{change.table} {key_of(change.table, change.new)} version {change.new['version']} ({change.event} by "
            f"{change.transaction}, committed at {change.after - self.truth.began:.3f}) never came" for change in self.missing()]
        found.untold += [
            f"{change.table} {key_of(change.table, change.new)} version {change.new['version']} ({change.event} by "
            f"{change.transaction}, committed at {change.after - self.truth.began:.3f}) had not come when \"{reload.why}\" was told at "
            f"{reload.at - self.truth.began:.3f}, and no fault took it" for change, reload in self.unexplained()]
        found.wrong += [f"{self.fold.table}: \"{reload.why}\" was told at {reload.at - self.truth.began:.3f}, where nothing was lost"
                        for reload in self.needless()]
        for key, shown, allowed in self.disagreements():
            found.wrong.append(f"{self.fold.table} {key} is shown as {shown}, and should be one of {allowed}")
            found.story = found.story or self._story(key)
        return found

    def _story(self, key):
        """The versions of a key and what came of it, in order."""
        fold, began = self.fold, self.truth.began
        lines = [(step.change.after - began,
                  f"committed {step.change.event} of version {step.row and step.row['version']}, {('never', 'may', 'must')[step.grade]}"
                  f"{', in the last load' if fold.since.sees(step.change.transaction) else ''}") for step in self.steps.get(key, ())]
        for at, data in fold.events:
            if key in [key_of(fold.table, row) for row in (data.get("record"), data.get("old_record")) if row]:
                lines.append((at - began, f"came {data['type']} of version {data.get('record', {}).get('version')}"))
        return [f"{at:.3f} {line}" for at, line in sorted(lines)]

    @property
    def is_content(self):
        """Whether all is there that has to come, so that nothing need be waited for."""
        return not self.missing() and next(self.disagreements(), None) is None


class Reach:
    """Up to which commit clients had been told of changes at a time."""

    def __init__(self, truth, folds):
        arrivals = sorted((at, truth.by_version[data["record"]["version"]].before) for fold in folds for at, data in fold.events
                          if data["type"] != "DELETE" and data["record"]["version"] in truth.by_version)
        self._times = [at for at, _ in arrivals]
        self._commits = list(itertools.accumulate((commit for _, commit in arrivals), max))

    def __call__(self, at):
        place = bisect.bisect_right(self._times, at)
        return self._commits[place - 1] if place else float("-inf")


def disagreement_of_model(truth, user, fold, rows):
    """What SELECT shows a user in the end is what the model says, or the model is wrong. Sentences."""
    last = {}
    for change in truth.by_table[fold.table]:
        if change.old:
            last.pop(key_of(fold.table, change.old), None)
        if change.new:
            last[key_of(fold.table, change.new)] = change
    selected = {key_of(fold.table, row): row for row in rows}
    for key, change in last.items():
        grade = truth.grade(fold.table, change.new, user, change) if fold.filter.holds(change.new) else NEVER
        row = selected.pop(key, None)
        if grade == MUST and row != fold.shown(change.new) or grade == NEVER and row:
            yield f"the model: {user} sees {row} by SELECT, and should see {change.new} ({grade})"
    yield from (f"the model: {user} sees {row} of {fold.table} by SELECT, which is gone" for row in selected.values())
