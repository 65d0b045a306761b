"""What an ε means, in words and in the odds of a guess: the one table that the commands, the pages and the documents show.

The odds: somebody knows all rows but yours, and would toss a coin on whether yours is in the table. Having seen everything that was
released for ε and δ, they are right with probability (e^ε + δ)/(1 + e^ε) at most, whatever they do: of those who say "in", at most e^ε
times as many are right as wrong, and δ more; and the same of those who say "out". Both at their limit give it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hedgerow.formatting import amount


@dataclass(frozen=True)
class Level:
    """protection: one word; when: what it is for"""

    epsilon: Fraction
    protection: str
    when: str


LEVELS = (
    Level(Fraction(1, 10), "very strong", "a score of a release; a forest only from very many rows"),
    Level(Fraction(1), "strong", "the usual choice for a forest about people, and a careful total for a table"),
    Level(Fraction(3), "moderate", "a total for several releases, where the harm is small"),
    Level(Fraction(8), "weak", "better than nothing: an attacker may be nearly certain"),
)
BEYOND, ALWAYS = "hardly any", "nearly always"
LARGE_DELTA = Fraction(1, 1000)  # where no number of rows is known
SUGGESTED_DELTA, TOTAL_DELTA = "1e-6", "1e-5"  # of one fit, and of a budget: the δ of its fits add up
INIT = f"hedgerow budget init budget.json --epsilon 2 --delta {TOTAL_DELTA}"  # as it is suggested everywhere
# With ε = so much / rows, noise moves a score by about 0.01. Measured with forests of two classes, 4,000 to 20,000 rows scored: the noise
# was about 2/(ε · rows) on an accuracy and 4/(ε · rows) on a Brier score; on an area under the ROC curve, in rows of the rarer class, 3 to
# 5/(ε · rows) where that has half of the rows, and 2 to 6/(ε · rows) where it has 5 %. Of eight classes it was 0.036 at ε = 200 / rows.
FOR_ACCURACY, FOR_AUC = 200, 400  # divided by all rows; by those of the rarer class
SCORE = (
    f"A score costs about ε = {FOR_ACCURACY} / rows for the accuracy (of C classes {FOR_ACCURACY // 2} · C / rows), {FOR_AUC} / rows for "
    f"the Brier score, and {FOR_AUC} / rows of the rarer class for the AUC and thresholds: with that, noise moves them by about 0.01. Of "
    "two classes ε = 0.1 is enough for the accuracy from 2,000 test rows on, and for the AUC where each has 4,000 (of three: three times "
    "that). Where the schema names persons, it takes rows_per_person times as much."
)
HEADS = ("ε in all", "protection", "a guess whether you are in the table is right at most", "what it is for")


def level_of(epsilon: Fraction) -> Level | None:
    """The level that an ε keeps: the first that is not below it, so that nothing is called stronger than it is."""
    return next((level for level in LEVELS if epsilon <= level.epsilon), None)


def protection(epsilon: Fraction, delta: Fraction = Fraction(0)) -> str:
    """In a word. A large δ counts as the ε whose guesses are right as often."""
    right = _right(epsilon, delta)
    level = level_of(epsilon if delta <= LARGE_DELTA else Fraction(math.log(right / (1 - right))) if right < 1 else Fraction(10**6))
    return BEYOND if level is None else level.protection


def _right(epsilon: Fraction, delta: Fraction) -> float:
    """The most that a guess is right, where a coin would be right half of the time: (e^ε + δ)/(1 + e^ε)."""
    less = math.exp(-min(float(epsilon), 700.0))
    return (1 + float(delta) * less) / (1 + less)


def odds(epsilon: Fraction, delta: Fraction = Fraction(0)) -> str:
    """The most that a guess is right, rounded up: "73.2 % of the time"."""
    right = _right(epsilon, delta)
    places = 1 if right < 0.999 else 2  # beyond that nothing is left to be told apart
    percent = math.ceil(right * 100 * 10**places - 1e-9) / 10**places
    return f"{percent:.{places}f} % of the time" if percent < 100 else ALWAYS


def sentence(epsilon: Fraction, delta: Fraction = Fraction(0)) -> str:
    """ "strong protection: a guess whether you are in the table is right at most 73.2 % of the time (a coin: 50 %)" """
    right = odds(epsilon, delta)
    right = right if right == ALWAYS else f"at most {right}"
    return f"{protection(epsilon, delta)} protection: a guess whether you are in the table is right {right} (a coin: 50 %)"


def large_delta(delta: Fraction, rows: int | None = None, about: bool = False) -> str | None:
    """What is wrong with a large δ: one above 1/rows, where a public number of rows is known, else above 1/1,000. None for others.

    about: the number is noisy
    """
    if delta <= (Fraction(1, rows) if rows else LARGE_DELTA):
        return None
    known = f"number of rows, about {rows or 0:,}" if about else f"{rows or 0:,} rows"
    many = f"more than one over the {known}" if rows else "far more than one over the number of rows of most tables"
    usual = f"δ = {SUGGESTED_DELTA} for a fit and {TOTAL_DELTA} for a budget, or less" if delta > Fraction(SUGGESTED_DELTA) else "less"
    return (
        f"δ = {amount(delta)} is large, {many}: for each person δ is how likely ε may not hold at all, and to publish whole rows of one "
        f"person in {math.ceil(1 / delta):,} would keep such a guarantee. Use {usual}: well below one over the number of people. Or leave "
        "δ out, for pure ε."
    )


def short() -> str:
    """For a line of help: "0.1 very strong, 1 strong, 3 moderate, 8 weak"."""
    return ", ".join(f"{amount(level.epsilon)} {level.protection}" for level in LEVELS)


def rows() -> list[tuple[str, str, str, str]]:
    """The table, line by line."""
    return [(amount(level.epsilon), level.protection, odds(level.epsilon), level.when) for level in LEVELS]


def markdown() -> str:
    """The table as documents have it."""
    lines = [HEADS, ("---",) * len(HEADS), *rows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
