"""A column of a table: one figure of every server, in all rounds."""

import statistics

from table import spread

ROOST = "roost"
LIMIT = "limit"


class Column:
    """Less is better in all of them."""

    def __init__(self, record, title, figure, digits, scale=1, **shape):
        self.title, self.digits = title, digits
        found = {peer["name"]: record.figures(peer["name"], figure, **shape) for peer in record.peers}
        self.values = {name: {number: value * scale for number, value in rounds.items()} for name, rounds in found.items()}

    def median(self, name):
        values = self.values.get(name)
        return statistics.median(values.values()) if values else None

    @property
    def best(self):
        """Of those that are servers; the limit is none."""
        medians = {name: self.median(name) for name, values in self.values.items() if values and name != LIMIT}
        return min(medians, key=medians.get) if len(medians) > 1 else None

    def cell(self, name):
        values = self.values[name]
        if not values:
            return "–"
        text = spread(list(values.values()), self.digits)
        return f"**{text}**" if name == self.best else text

    def ratio(self, name):
        """To the limit of the same round."""
        ours, limit = self.values[name], self.values.get(LIMIT, {})
        return spread([ours[number] / limit[number] for number in ours if limit.get(number)], 2) if ours and limit else "–"

    def ahead(self, titles):
        """Who needs less than Roost, in words."""
        roost = self.values.get(ROOST)
        if not roost:
            return []
        sentences = []
        for name, values in self.values.items():
            if name in (ROOST, LIMIT) or not values or self.median(name) >= self.median(ROOST):
                continue
            both = [number for number in values if number in roost]
            won = sum(values[number] < roost[number] for number in both)
            sentences.append(f"{titles[name]}, {self.title} ({self.median(name):.{self.digits}f} against "
                             f"{self.median(ROOST):.{self.digits}f}; in {won} of {len(both)} rounds)")
        return sentences
