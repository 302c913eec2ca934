"""Measures against their goals, as a table and as JSON."""

import json


class Measure:
    """One line of the table.  `goal` bounds `value`, which is a ratio to `other` unless the unit
    says that it is absolute; `better` tells on which side of the goal it should be."""

    def __init__(self, row, name, ours, other, value, goal, better="below", unit="", digits=2,
                 note="", spread=0.0):
        self.row = row
        self.name = name
        self.ours = ours
        self.other = other
        self.value = value
        self.goal = goal
        self.better = better
        self.unit = unit
        self.digits = digits
        self.note = note
        self.spread = spread

    @property
    def verdict(self):
        if self.goal is None or self.value is None:
            return "-"
        good = self.value <= self.goal if self.better == "below" else self.value >= self.goal
        return "yes" if good else "NO"

    def as_dict(self):
        return dict(self.__dict__, verdict=self.verdict)


def ratio_measure(row, name, ours, other, goal, better="below", unit="us", digits=2, note=""):
    """From two Series: the ratio of their medians."""
    value = ours.median / other.median if other.median else None
    noisy = ours.noisy + other.noisy
    if noisy:
        note = (note + "; " if note else "") + "%d noisy windows" % noisy
    return Measure(row, name, ours.median, other.median, value, goal, better, unit, digits, note,
                   max(ours.spread, other.spread))


def figure(value, digits):
    if value is None:
        return "-"
    if abs(value) >= 10000:
        return "%.0f" % value
    return "%.*f" % (digits, value)


HEAD = ("row", "measure", "ours", "oracle", "unit", "ratio", "goal", "met", "spread", "")


def cells(measure):
    sign = {"below": "<= ", "above": ">= "}[measure.better]
    absolute = measure.unit.endswith("(absolute)")
    ratio = "" if absolute else figure(measure.value, 3)
    goal = "" if measure.goal is None else sign + ("%g" % measure.goal)
    spread = "" if not measure.spread else "%.0f %%" % (measure.spread * 100)
    return (str(measure.row), measure.name, figure(measure.ours, measure.digits),
            figure(measure.other, measure.digits), measure.unit.replace(" (absolute)", ""), ratio,
            goal, measure.verdict, spread, measure.note)


def table(measures):
    lines = [HEAD] + [cells(each) for each in sorted(measures, key=lambda each: each.row)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    left = (1, 4, 9)

    def text(line):
        return "  ".join(word.ljust(width) if i in left else word.rjust(width)
                         for i, (word, width) in enumerate(zip(line, widths))).rstrip()

    return "\n".join([text(lines[0]), "-" * len(text(lines[0]))] + [text(line) for line in lines[1:]])


def save_json(path, setting, measures):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"setting": setting, "measures": [each.as_dict() for each in measures]}, file,
                  indent=1)
        file.write("\n")
