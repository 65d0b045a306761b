"""How much a Hedgerow forest does: tables, trees, depth, shares and passes, from n̂ and public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hedgerow.formatting import number
from hedgerow.growers.budget_shares import BudgetShares
from hedgerow.growers.proposals import CANDIDATES
from hedgerow.inference.additive import UNCHOSEN, strength_of_counts
from hedgerow.inference.layout import cells_of
from hedgerow.queries.boosting import MOST_SUMS
from hedgerow.queries.boosting import MOST_TREES as MOST_CANDIDATES
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import gradient_width
from hedgerow.trees.splits import Split

CELLS_SHARE, MOST_CELLS = Fraction(5, 100), 128
CHOICE_SHARE = Fraction(1, 4)  # of the tables, where they are chosen
ROWS_PER_TABLE = 40.0  # q² = n̂ε over this; where it is at least m, scores can be fitted jointly
TABLES_NU = {True: 4.0, False: 60.0}  # the tables get a = this/ν of the budget: by whether the noise is Gaussian
TABLES_LEAST, TABLES_MOST = {True: 0.1, False: 0.3}, {True: 0.6, False: 1.0}
JOINT_ROUNDS, FEWEST_JOINT = 16, 4  # of the joint fit, where the noise is Gaussian
JOINT_NU, JOINT_LEAST, JOINT_MOST = 2.0, 0.08, 0.6  # it and the tables get this/ν of the budget
BESIDE_JOINT = Fraction(3, 100)  # of that, the tables: then they tell how frequent values are, and no scores
TOP_SHARE, TOP_QUESTIONS = Fraction(3, 100), 2
# Under L answers the tables of all rows have √L times the noise, a loss wherever attributes only add up. So they are asked from ν·C/2 on,
# each answer must keep some of it, and of ν itself there is a floor, for very many classes.
TOP_FROM, TOP_KEEPS, TOP_LEAST = 16.0, 8.0, 4.0
TOP_ANSWERS = 3  # of a category as a top question, where there are two classes: more cost more rows in each cell than they tell
# A choice among readings is worth it if its rate times n̂ is at least this: by whether there are top questions.
FEW_PASSES = 4  # of so many none is spared for a choice among readings without them: boosted trees need each
READ_SHARE, READ_FROM = Fraction(3, 100), {True: 30, False: 50}
WEAKER_FROM = 30  # where that is too few, and in pure ε no trees follow, many tables are read below their strength from here on
TREES_LEAST = 0.1  # trees that would get less than this share are not grown
MOST_GROUPS, GROUPS_PER_ROOT = 24, 1.2  # of a number in its table: at most, and at most this·n̂^⅓
GROUPS_PER_SIGNAL = {True: 0.8, False: 0.4}  # by whether scores are fitted jointly, where neighbours help each other
TOP_PLACES = 32  # where a top question may cut a number
TREES_PER_ROOT = {True: 5.0, False: 0.25}  # T = this·√x
FEWEST_TREES, MOST_TREES = {True: 8, False: 2}, {True: 600, False: 128}
DEPTH_ADDED, MOST_DEPTH = {True: 2.0, False: 1.0}, 8
TOGETHER, MOST_TOGETHER = 4, 10  # trees that are chosen and measured on the same gradients; where passes are dear
STEP = {True: 0.3, False: 0.5}  # η
SCALE_SHARE, SCALE_FROM = Fraction(2, 100), 250  # a choice among scales is worth it if its rate times n̂ is at least this
MOST_SCORES = 2**21  # of all trees together: a release of some megabytes


@dataclass(frozen=True)
class Settings:
    """max_passes: so many looks at all rows at most; fewer rounds, with more trees in each"""

    max_passes: int | None = None


@dataclass(frozen=True)
class Sizes:
    """What n̂ and public facts decide, before any row but those of n̂ was looked at.

    x: rows of a class against the noise on one number that gets the whole budget; nu: the same of a cell of a table
    top: ν·C/2, which the answers of top questions divide
    joint: rounds of the joint fit; without any, the tables are the start of the model
    strength, margins: how strongly tables are read, and by what margins are multiplied, where no choice is paid for
    """

    x: float
    nu: float
    top: float
    numbers: int
    measured: int
    attributes: int
    groups: int
    cells: Fraction
    tables: Fraction
    joint_fit: Fraction
    trees: Fraction
    scale: Fraction
    joint: int
    rounds: int
    together: int
    depth: int
    questions: int
    reading: Fraction
    strength: float
    margins: float

    @classmethod
    def of(cls, codebook: Codebook, n: int, shares: BudgetShares, epsilon: Fraction, settings: Settings) -> Sizes:
        m, classes, gaussian = len(codebook.sizes), codebook.n_classes, shares.concentrated
        pure_x = n * float(epsilon) / (classes * shares.rows_per_person)
        x = n / (classes * shares.noise_sd(1)) if gaussian else pure_x
        numbers = sum(cells > 2 for cells in cells_of(codebook))
        cells = CELLS_SHARE if numbers else Fraction(0)
        scale = SCALE_SHARE if shares.rate(SCALE_SHARE) * n >= SCALE_FROM else Fraction(0)
        passes = (settings.max_passes or 10**9) - 2 - bool(cells) - bool(scale)  # one for n̂, whether it is asked or not, and one for tables
        width = 2 * gradient_width(classes)
        bears = pure_x * classes / ROWS_PER_TABLE
        joint = min(JOINT_ROUNDS, (passes - 1) // 2) if gaussian and bears >= m and classes > 1 and m <= MOST_CANDIDATES else 0
        joint = joint if joint >= FEWEST_JOINT and m * _widest(codebook) * width <= MOST_SUMS else 0
        measured = min(m, max(1, round(math.sqrt(bears))))
        if joint or 4 * measured > passes or max(codebook.sizes) * width > MOST_SUMS:
            measured = m  # counted at once, in one pass
        passes -= joint + (2 * measured - 1 if measured < m else 0)
        typical = sum(min(size, 16) for size in codebook.sizes) / m
        nu = n / (typical * classes * shares.noise_sd(measured))
        top = nu * classes / 2 if nu >= TOP_LEAST else 0.0
        asks = not gaussian and measured == m and top >= TOP_FROM and any(top / q.n_children >= TOP_KEEPS for q in top_questions(codebook))
        questions = TOP_QUESTIONS if asks and passes > TOP_QUESTIONS else 0
        reads = questions > 0 or (not joint and passes > FEW_PASSES and classes > 1)
        reading = READ_SHARE if reads and shares.rate(READ_SHARE) * n >= READ_FROM[questions > 0] else Fraction(0)
        passes -= questions + bool(reading)
        depth = min(max(round(DEPTH_ADDED[gaussian] + math.log2(max(x, 1.0)) / 3), 2), MOST_DEPTH)
        most = min(MOST_TREES[gaussian], max(MOST_TREES[gaussian] // 2, MOST_SCORES // (classes << depth)))  # not at the cost of depth
        trees = min(max(round(TREES_PER_ROOT[gaussian] * math.sqrt(x)), FEWEST_TREES[gaussian]), most)
        sums = min(MOST_SUMS // (CANDIDATES * MOST_TOGETHER * width), MOST_SCORES // (trees * classes))
        deepest = math.floor(math.log2(max(1, sums)))  # what can be summed in a pass, and held and sent as a model
        if joint:
            a = min(max(JOINT_NU / nu, JOINT_LEAST), JOINT_MOST)
        else:
            a = min(max(TABLES_NU[gaussian] / nu, TABLES_LEAST[gaussian]), TABLES_MOST[gaussian])
        grows = a <= 1 - TREES_LEAST and passes > 0 and classes > 1 and deepest >= 2
        part = Fraction(round(100 * a), 100) if grows else Fraction(1)
        rest = 1 - cells - scale
        signal = n / (classes * shares.noise_sd(measured, rest * part))
        groups = round(min(GROUPS_PER_SIGNAL[joint > 0] * signal, GROUPS_PER_ROOT * n ** (1 / 3)))
        weaker = not (gaussian or grows or questions) and shares.rate(READ_SHARE) * n >= WEAKER_FROM
        together = min(trees, max(TOGETHER, min(MOST_TOGETHER, -(-trees // max(1, passes)))))
        of_tables = BESIDE_JOINT if joint else part
        return cls(
            x, nu, top, numbers, measured, m, min(max(groups, 2), MOST_GROUPS), cells, rest * of_tables, rest * (part - of_tables),
            rest * (1 - part), scale, joint, min(-(-trees // together), passes) if part < 1 else 0, together,
            min(depth, deepest), questions, reading, strength_of_counts(m) if weaker else 1.0,
            UNCHOSEN if part < 1 and not gaussian else 1.0,
        )  # fmt: skip

    @property
    def chooses(self) -> bool:
        """Whether attributes are chosen: where all are measured there is nothing to choose."""
        return self.measured < self.attributes

    @property
    def of_choice(self) -> Fraction:
        """The share of the choice of one table."""
        return self.tables * CHOICE_SHARE / self.measured if self.chooses else Fraction(0)

    @property
    def of_tables(self) -> Fraction:
        """The share of the counts of one table, or of all tables where they are counted at once."""
        if self.chooses:
            return (self.tables * (1 - CHOICE_SHARE) - self.reading) / self.measured
        return self.tables - self.questions * TOP_SHARE - self.reading

    @property
    def of_joint_round(self) -> Fraction:
        return self.joint_fit / self.joint

    @property
    def of_round(self) -> Fraction:
        return self.trees / self.rounds

    @property
    def passes(self) -> int:
        """Looks at all rows, with that for n̂."""
        tables = (2 * self.measured if self.chooses else 1 + self.questions) + bool(self.reading)
        return 1 + bool(self.cells) + tables + self.joint + self.rounds + bool(self.scale)

    def step(self, concentrated: bool) -> float:
        """η: where many trees look at the same gradients, each goes less far."""
        return STEP[concentrated] * min(1.0, 5 / self.together)

    def words(self) -> dict[str, str]:
        """What is done, why and for which share of what is left after n̂, for people."""

        def paid(share: Fraction) -> str:
            return f"for {100 * float(share):.3g} % of the budget"

        which = f"{self.measured} of {self.attributes} attributes, the most telling by private choice" if self.chooses else "all attributes"
        trees = f"{self.rounds * self.together} of depth {self.depth}, {paid(self.trees)}; each is one of {CANDIDATES}, by private choice"
        return {
            "signal to noise": f"{number(self.x)} rows of a class for each unit of noise, if all the budget went to one number",
            "cells": f"at most {MOST_CELLS} of about equal mass for each of {self.numbers} numbers, {paid(self.cells)}"
            if self.cells else "none are needed: there are no numbers",
            "one-way counts": f"of {which}, {paid(self.tables)}; numbers in at most {self.groups} groups"
            + ("; under up to two top splits, by private choice" if self.questions else "")
            + (f"; how strongly they are read is a private choice {paid(self.reading)}" if self.reading else "")
            + (f"; read at {self.strength:g} of their strength" if self.strength < 1 and not self.reading else ""),
            "joint fit": f"of all attributes, in {self.joint} rounds, {paid(self.joint_fit)}"
            if self.joint else "none: the one-way counts are the start",
            "boosted trees": trees if self.rounds else "none: the one-way counts need all "
            f"({number(self.nu, 3)} rows in a cell for each unit of noise), or there are too many classes or too few passes",
            "probabilities": f"scaled, by private choice {paid(self.scale)}" if self.scale
            else f"{'as they come' if self.margins == 1 else f'scaled by {self.margins:g}'}: too few rows for a choice",
            "passes over the rows": f"{self.passes}",
        }  # fmt: skip


def _widest(codebook: Codebook) -> int:
    """The most groups that an attribute may have in the joint fit, with that of undeclared values."""
    cells = cells_of(codebook)
    return 1 + max(size - cells[j] + min(cells[j], MOST_GROUPS) for j, size in enumerate(codebook.sizes))


def top_questions(codebook: Codebook) -> tuple[Split, ...]:
    """All values of a category apart, or a threshold of a number, at one of a few places between its public bounds."""
    found = []
    most = TOP_ANSWERS if codebook.n_classes == 2 else max(codebook.sizes)
    for j, (size, cells) in enumerate(zip(codebook.sizes, cells_of(codebook), strict=True)):
        if not cells and 1 < size <= most:
            found.append(Split(j, tuple(range(size))))
        for place in range(1, min(cells, TOP_PLACES)):
            cut = cells * place // min(cells, TOP_PLACES)
            codes = np.arange(size)
            found.append(Split(j, tuple(np.where(codes < cells, codes >= cut, 2 + codes - cells).tolist())))
    return tuple(found)
