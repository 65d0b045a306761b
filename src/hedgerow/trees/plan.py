"""What would be built and what it would cost, from public facts alone: shown before any row is touched."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hedgerow.accounting.events import Event
from hedgerow.accounting.meaning import large_delta, sentence
from hedgerow.accounting.noise import noise_of, variance_of
from hedgerow.accounting.zcdp import rho_for
from hedgerow.formatting import amount, loss, number, pairs_html, pairs_text, rough
from hedgerow.settings import DEFAULT_MAX_LEAVES as DEFAULT_MAX_LEAVES
from hedgerow.trees.tree import Tree

# What a Hedgerow forest makes of u = rows·ε/(classes·rows of a person), measured on 21 public sets at ε = 0.1 to 64 (docs/LEARNING.md): a
# band says what three of four had at least, of what boosting without privacy gains over the majority class (docs/HEDGEROW.md has the
# figures, tests/trees/test_verdict.py counts them). u alone decides, so the verdict cannot fall as ε or the rows grow, nor for a δ.
NEARLY, MOST, HALF, SOME, LITTLE = (
    "expect nearly what a model without privacy would learn",
    "expect most of what a model without privacy would learn",
    "expect about half of what a model without privacy would learn",
    "expect a third of what a model without privacy would learn, perhaps more",
    "expect little more than the majority class, or much more where one or two columns tell most: of what a model without privacy learns "
    "beyond it, a quarter of public tables had next to nothing, a quarter half or more",
)
EXPECTED = {
    False: ((64_000, NEARLY), (4_000, MOST), (250, HALF), (60, SOME), (0, LITTLE)),
    True: ((16_000, NEARLY), (1_000, MOST), (250, HALF), (60, SOME), (0, LITTLE)),
}  # by whether there is a δ
OF_FOUR = ", if the columns tell the class well; of a rare class or a weak signal less (three of four public tables had that)"
MANY_VALUES = 42  # no attribute of these tables has more
ENOUGH = 1_000  # from there on nothing needs to be advised
STANDS_OUT = (
    (8, "they stand well above it"),
    (1, "they stand above it, not by much"),
    (0, "expect little more than the majority class"),
)  # other forests, and tables that are added up: how far the rows of one number stand above its noise
GOOD = 8  # the same of these
HEDGEROW = "Hedgerow forest"
ADDED_UP = "the plain one: nothing is chosen where tables are added up"  # how the tables of a shared plan are read
RHO = "the cost of a query with Gaussian noise; all ρ together, with at most ε²/2 for each ε, are what the (ε, δ) above is worth"
GAUSSIAN_FROM = 180.0  # n̂·ε/(C·k) from which Gaussian noise is taken where there is a δ: below, few numbers are measured
ROWS_SHARE = Fraction(3, 100)  # of ε, for a noisy number of rows where no public one is declared


def counts_and_trees(attributes: int, boosted: int, depth: str) -> str:
    """What a Hedgerow forest is built of: "one-way counts of 13 attributes and 256 boosted trees of depth 6"."""
    counted = f"one-way counts of {attributes:,} {'attribute' if attributes == 1 else 'attributes'}"
    return f"{counted} and {boosted:,} boosted {'tree' if boosted == 1 else 'trees'} of depth {depth}" if boosted else counted


@dataclass(frozen=True, repr=False)
class Plan:
    """A forest before it has seen a row.

    epsilon:     what is charged at most; None where nothing is
    rows:        the number of rows it is planned for
    rows_source: where that number comes from, in words
    events:      what will be charged, in order
    trees:       the structures that it would have
    fixed:       whether they are final: they are not where they depend on a number of rows that is still to be asked for
    settings:    what the user set, for the grower
    tables:      how many tables will be counted and added up, each with noise of its own
    chosen:      what the algorithm chose for itself
    delta:       above 0 where the guarantee is (ε, δ); events may then cost ρ of concentrated privacy
    shared:      whether counts alone are planned, to be added up over tables: nothing that was chosen or boosted on rows
    boosted:     how many boosted trees a Hedgerow forest would have beside its one-way counts, and their depth
    not_proven:  why no ε is claimed, of a published algorithm that does not keep the one it states
    """

    algorithm: str
    epsilon: Fraction | None
    rows: int | None
    rows_source: str
    n_classes: int
    events: tuple[Event, ...]
    trees: tuple[Tree, ...]
    fixed: bool = True
    settings: Any = None
    tables: int = 1
    chosen: dict[str, Any] = field(default_factory=dict)
    delta: Fraction = Fraction(0)
    not_proven: str = ""
    shared: bool = False
    boosted: tuple[int, int] = (0, 0)

    @property
    def n_leaves(self) -> int:
        """Leaves of all trees."""
        return sum(len(tree.leaves) for tree in self.trees)

    @property
    def n_counts(self) -> int:
        """Numbers that are measured: classes in each leaf."""
        return self.n_leaves * self.n_classes

    @property
    def height(self) -> int:
        """Of the highest tree."""
        return max((tree.height for tree in self.trees), default=0)

    @property
    def _built(self) -> str:
        if self.algorithm == HEDGEROW:
            return counts_and_trees(len(self.trees), self.boosted[0], str(self.boosted[1]))
        return f"{len(self.trees)} trees of height {self.height}"

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on one count in a leaf, when all tables are added up."""
        noises = {noise_of(event) for event in self.events if event.query in ("leaf_counts", "class_counts", "tables")}
        return math.sqrt(self.tables * sum(map(variance_of, noises)))

    @property
    def rows_per_person(self) -> int:
        """How many rows of one person are counted at most: what the events' sensitivities are multiplied by."""
        found = [event for event in self.events if event.query in ("leaf_counts", "class_counts", "tables")]
        return max((math.isqrt(int(event.sensitivity)) if event.rho else int(event.sensitivity) for event in found), default=1)

    @property
    def rows_per_leaf(self) -> float | None:
        """Rows that a leaf would hold if they were spread evenly."""
        return None if self.rows is None or not self.trees else self.rows * len(self.trees) / self.n_leaves

    def lines(self) -> list[tuple[str, str]]:
        """The plan as (what, how much) pairs for a table."""
        lines, own = [("algorithm", self.algorithm)], self.algorithm == HEDGEROW
        if self.epsilon is not None:
            if self.delta:
                lines.append(("in all", loss(self.epsilon, self.delta)))
            else:
                lines.append(("ε in all", amount(self.epsilon)))
            lines.append(("what ε means", sentence(self.epsilon, self.delta)))
            large = large_delta(self.delta, self.rows)
            lines += [("WARNING", large)] if large else []
        lines.append(("rows", "not needed" if self.rows is None else f"{self.rows:,} ({self.rows_source})"))
        if self.trees:
            size = f"{self.n_leaves:,} leaves × {self.n_classes} classes = {self.n_counts:,} counts"
            lines += [("forest", self._built) if own else ("trees", f"{len(self.trees)}, height {self.height}"), ("count arrays", size)]
        for event, times in Counter(self.events).items():
            what = "tree" if event.query == "gradient_sums" or (event.query == "leaf_counts" and not own) else "attribute"
            kind, cost = ("ρ", event.rho) if event.rho else ("ε", event.epsilon)
            each = f", {rough(cost / event.queries)} for each {what}" if event.queries > 1 else ""
            often = f"{times} × " if times > 1 else ""
            lines.append((f"charge: {event.query}", f"{often}{kind} = {rough(cost)}{each}"))  # the events have it exactly
        if any(event.rho for event in self.events):
            lines.append(("what ρ means", RHO))
        if self.events:
            together = f", of {self.tables} tables together" if self.tables > 1 else ""
            k = self.rows_per_person
            lines += [("rows of a person", f"at most {k} are counted: the noise is {k} times that for one")] if k > 1 else []
            lines.append(("noise on a count", f"standard deviation {number(self.noise_sd, 3)}{together}"))
        if self.rows_per_leaf is not None and not self._fitted:
            weak = self.events and self.rows_per_leaf < self.noise_sd * math.sqrt(self.n_classes)
            said = ": LESS THAN THE NOISE on them. More ε, fewer or lower trees, or coarser domains would help" if weak else ""
            lines.append(("rows in a leaf", f"{number(self.rows_per_leaf, 3)} if spread evenly{said}"))
        lines += [(f"chosen: {name}", str(value)) for name, value in self.chosen.items()]
        return [*lines, *([("verdict", self.verdict)] if self.verdict else [])]

    @property
    def verdict(self) -> str:
        """What to expect of it, in words; nothing where no counts are planned, or for a number of rows that nobody has given."""
        if self.rows is None or self.rows_per_leaf is None or self.epsilon is None or not self.events:
            return ""
        if self._fitted:
            of_class = self.rows / (self.n_classes * self.rows_per_person)
            least, expected = _words(EXPECTED[bool(self.delta)], of_class * float(self.epsilon))
            pays = of_class * float(self.epsilon) >= GAUSSIAN_FROM
            helps = "More rows or a larger ε would help" + (", and on most tables a δ" if pays and not self.delta else "")
            more = f". {helps}" if least < ENOUGH else ""
            if self.delta and not any(event.rho for event in self.events):
                more += ". The δ buys nothing here: for so few rows all noise is that of pure ε, with or without it"
            hint = f"{OF_FOUR}{self._of_values(of_class)}" if expected != LITTLE else ""
            what = "rows of a class" if self.rows_per_person == 1 else f"times {self.rows_per_person} rows of a class"
            return (
                f"about {number(of_class, 2)} {what}, if all are as frequent, at {loss(self.epsilon, self.delta)}: {expected}{hint}{more}"
            )
        rows = self.rows_per_leaf / self.n_classes
        least, expected = _words(STANDS_OUT, rows / self.noise_sd if self.noise_sd else math.inf)
        more = ". More rows, a larger ε or fewer or coarser attributes would help" if least < GOOD else ""
        rare = "; those of a rare class or value less" if expected != LITTLE else ""
        return (
            f"about {number(rows, 2)} rows for each number that is measured, if all are as frequent, with noise of ± "
            f"{number(self.noise_sd, 2)}: {expected}{rare}{more}"
        )

    @property
    def _fitted(self) -> bool:
        """Whether it is a Hedgerow forest of one table: its counts are a start, and do not say by themselves what will be learnt."""
        return self.algorithm == HEDGEROW and self.tables == 1 and not self.shared

    def _of_values(self, of_class: float) -> str:
        """How the rows of one value stand against the noise where an attribute has many, if the attributes had all of the budget."""
        assert self.epsilon is not None
        values, attributes = max(len(tree.leaves) for tree in self.trees), len(self.trees)
        noise = math.sqrt(2) * attributes / float(self.epsilon)
        if self.delta:
            noise = min(noise, math.sqrt(attributes / (2 * float(rho_for(self.epsilon, self.delta)))))
        rows = of_class / values
        if values <= MANY_VALUES or rows >= GOOD * noise:
            return ""
        said = "less than that is learnt from them" if rows >= noise else "next to nothing is learnt from them"
        each = f"about {number(rows, 2)} rows of a class for each, and noise of ± {number(noise, 2)} at best"
        return f". An attribute has {values:,} values, with {each}: {said}"

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return pairs_html(self.lines(), str(self.algorithm))

    def __repr__(self) -> str:
        cost = "no ε" if self.epsilon is None else loss(self.epsilon, self.delta)
        return f"Plan({self.algorithm}, {cost}, {self._built}, {self.n_counts:,} counts)"

    def __str__(self) -> str:
        return pairs_text(self.lines())


def _words(bands: tuple[tuple[int, str], ...], value: float) -> tuple[int, str]:
    """The highest band that the value reaches."""
    return next(band for band in bands if value >= band[0])
