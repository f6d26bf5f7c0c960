"""Filters of subscriptions, in three forms: as clients write them, as SQL has them, and as Python decides them."""

import operator
import re

COMPARISONS = {"eq": ("=", operator.eq), "neq": ("<>", operator.ne), "gt": (">", operator.gt), "gte": (">=", operator.ge),
               "lt": ("<", operator.lt), "lte": ("<=", operator.le)}


class Condition:
    """`column`, an operator of the protocol and its value; `is_negated` puts `not.` before it."""

    def __init__(self, column, name, value, is_negated=False):
        self.column, self.name, self.value, self.is_negated = column, name, value, is_negated

    def __str__(self):
        value = f"({','.join(map(str, self.value))})" if self.name == "in" else "null" if self.value is None else _text(self.value)
        return f"{self.column}={'not.' if self.is_negated else ''}{self.name}.{value}"

    @property
    def sql(self):
        """Its values are the plan's own: numbers, uuids and plain words."""
        if self.name == "in":
            condition = f"{self.column} in ({', '.join(map(_literal, self.value))})"
        elif self.name == "is":
            condition = f"{self.column} is {_text(self.value) if self.value is not None else 'null'}"
        elif self.name == "like":
            condition = f"{self.column} like {_literal(self.value)}"
        else:
            condition = f"{self.column} {COMPARISONS[self.name][0]} {_literal(self.value)}"
        return f"not ({condition})" if self.is_negated else f"({condition})"

    def holds(self, row):
        """As SQL has it: what is compared with NULL is neither so nor not so."""
        value = row[self.column]
        if self.name == "is":
            found = value is self.value
        elif value is None:
            return False
        elif self.name == "in":
            found = value in self.value
        elif self.name == "like":
            found = bool(re.fullmatch(re.escape(self.value).replace("%", ".*").replace("_", "."), value, re.DOTALL))
        else:
            found = COMPARISONS[self.name][1](value, self.value)
        return found != self.is_negated


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def _literal(value):
    return str(value) if isinstance(value, int) else f"'{value}'"


class Filter:
    """Conditions that all have to hold; none lets every row pass."""

    def __init__(self, *conditions):
        self.conditions = conditions

    def __str__(self):
        return ",".join(map(str, self.conditions))

    @property
    def sql(self):
        return " and ".join(condition.sql for condition in self.conditions) or "true"

    def holds(self, row):
        return all(condition.holds(row) for condition in self.conditions)


def draw(chance, table, user):
    """A filter on one of the model's tables, for a client of `user`; on what a DELETE shows alone."""
    choices = {
        "messages": lambda: [
            Filter(Condition("room", "eq", chance.randrange(6))),
            Filter(Condition("room", "in", chance.sample(range(6), 3))),
            Filter(Condition("n", "gt", 40)), Filter(Condition("n", "is", None, chance.random() < 0.5)),
            Filter(Condition("tag", "like", "r%")), Filter(Condition("tag", "neq", "red"), Condition("n", "lte", 70)),
            Filter(Condition("room", "in", [1, 2, 3, 4]), Condition("tag", "in", ["red", "blue"], chance.random() < 0.3))],
        "notes": lambda: [Filter(Condition("id", "gte", 1000)), Filter(Condition("id", "lt", 3010))],
        "posts": lambda: [
            Filter(Condition("is_public", "is", True)), Filter(Condition("kind", "eq", "open")),
            Filter(Condition("owner", "eq", user.sub)) if user.sub else Filter(Condition("n", "lt", 60)),
            Filter(Condition("kind", "in", ["open", "odd"]), Condition("n", "gte", 20))],
        "events": lambda: [Filter(Condition("part", "eq", chance.randrange(2))), Filter(Condition("id", "gt", 1005))],
    }[table]
    return chance.choice(choices())
