"""What would be built and what it would cost, from public facts alone: shown before any row is touched."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hedgerow.accounting.events import Event
from hedgerow.accounting.loss import text_of_fraction, text_of_loss
from hedgerow.accounting.noise import noise_of, variance_of
from hedgerow.settings import DEFAULT_MAX_LEAVES as DEFAULT_MAX_LEAVES
from hedgerow.trees.tree import Tree

ROWS_SHARE = Fraction(3, 100)  # of ε, for a noisy number of rows where no public one is declared


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

    @property
    def n_leaves(self) -> int:
        return sum(len(tree.leaves) for tree in self.trees)

    @property
    def n_counts(self) -> int:
        return self.n_leaves * self.n_classes

    @property
    def height(self) -> int:
        return max((tree.height for tree in self.trees), default=0)

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
        lines = [("algorithm", self.algorithm)]
        if self.epsilon is not None:
            if self.delta:
                lines.append(("in all", text_of_loss(self.epsilon, self.delta)))
            else:
                lines.append(("ε in all", text_of_fraction(self.epsilon)))
        lines.append(("rows", "not needed" if self.rows is None else f"{self.rows:,} ({self.rows_source})"))
        if self.trees:
            size = f"{self.n_leaves:,} leaves × {self.n_classes} classes = {self.n_counts:,} counts"
            lines += [("trees", f"{len(self.trees)}, height {self.height}"), ("count arrays", size)]
        for event, times in Counter(self.events).items():
            what = "tree" if event.query in ("leaf_counts", "gradient_sums") else "table"
            kind, cost = ("ρ", event.rho) if event.rho else ("ε", event.epsilon)
            text = _short if any(e.rho for e in self.events) else text_of_fraction  # shares of ρ are long; the events have them exactly
            each = f", {text(cost / event.queries)} for each {what}" if event.queries > 1 else ""
            often = f"{times} × " if times > 1 else ""
            lines.append((f"charge: {event.query}", f"{often}{kind} = {text(cost)}{each}"))
        if self.events:
            together = f", of {self.tables} tables together" if self.tables > 1 else ""
            k = self.rows_per_person
            lines += [("rows of a person", f"at most {k} are counted: the noise is {k} times that for one")] if k > 1 else []
            lines.append(("noise on a count", f"standard deviation {self.noise_sd:.3g}{together}"))
        if self.rows_per_leaf is not None:
            weak = self.events and self.rows_per_leaf < self.noise_sd * math.sqrt(self.n_classes)
            said = ": LESS THAN THE NOISE on them. More ε, fewer or lower trees, or coarser domains would help" if weak else ""
            lines.append(("rows in a leaf", f"{self.rows_per_leaf:.3g} if spread evenly{said}"))
        lines += [(f"chosen: {name}", str(value)) for name, value in self.chosen.items()]
        return lines

    def __repr__(self) -> str:
        return f"Plan({self.algorithm}, {len(self.trees)} trees of height {self.height}, {self.n_counts:,} counts)"

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines())
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self.lines())


def _short(value: Fraction) -> str:
    return f"{float(value):.4g}"
