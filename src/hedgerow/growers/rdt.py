"""Random decision trees, plain and private.

Jagannathan, Pillaipakkamnatt & Wright: A Practical Differentially Private Random Decision Tree Classifier (2012), sections
3.3 and 5.1. The structure is drawn before any row is seen; only the counts in the leaves come from the rows.

    k   number of attributes          b   mean number of branches: domain sizes, or 2 for a number that is asked by thresholds
    n   number of rows                h   height of the trees, min(⌊k/2⌋, ⌊log_b n⌋ − 1), at least 1
    N   number of trees               T   number of classes
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import Event
from hedgerow.errors import PlanError
from hedgerow.private_table import PrivateTable
from hedgerow.queries import LeafCounts, Rows, UnprotectedTable
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import CountedForest, Grown
from hedgerow.trees.plan import DEFAULT_MAX_LEAVES, ROWS_SHARE, Plan
from hedgerow.trees.tree import NODE, Tree

Integers = NDArray[Any]


@dataclass(frozen=True)
class Settings:
    """What a user may set. `max_depth=None` is the paper's height rule, the only thing that needs the number of rows."""

    n_estimators: int = 10
    max_depth: int | None = None
    numeric_splits: str = "bins"
    max_leaves: int = DEFAULT_MAX_LEAVES


# ---------------------------------------------------------------- structure: public, drawn from `random_state`


def branches(codebook: Codebook, settings: Settings) -> tuple[int, ...]:
    """Of a question about each attribute: one for each value, or two where a number is asked by a threshold."""
    thresholds = settings.numeric_splits == "thresholds"
    return tuple(2 if thresholds and codebook.numeric_cells(a) > 1 else size for a, size in enumerate(codebook.sizes))


def height_rule(branches: Sequence[int], n: int) -> int:
    """h = min(⌊k/2⌋, ⌊log_b n⌋ − 1), at least 1 (section 5.1), in exact arithmetic."""
    k, b = len(branches), Fraction(sum(branches), len(branches))
    log, power = 0, b
    while power <= n and log <= k:
        log, power = log + 1, power * b
    return max(1, min(k // 2, log - 1))


def build_tree_structure(codebook: Codebook, height: int, numeric_splits: str, rng: np.random.Generator) -> Tree:
    """Algorithm 2, BuildTreeStructure, a whole level at once: a random attribute F at each node, no F twice on a path."""
    domain_size = np.array(codebook.sizes)
    X = np.arange(len(domain_size), dtype=np.uint16)[None, :]  # for each node of the level, the attributes left to ask
    attributes, branches, n_nodes = [], [], 1
    for _ in range(height):
        # Randomly choose an attribute F as testing attribute, and leave it out below: X − {F}
        drawn = rng.integers(X.shape[1], size=len(X))
        F = X[np.arange(len(X)), drawn]
        rest = X[np.arange(X.shape[1]) != drawn[:, None]].reshape(len(X), -1)
        # for i = 1 to m: a child for each value; one entry more, −1, for a value that has no branch
        m = domain_size[F] + 1
        node = np.repeat(np.arange(len(F)), m)
        value = np.arange(m.sum()) - np.repeat(np.cumsum(m) - m, m)
        child, n_children = _children(codebook, F, node, value, numeric_splits, rng)
        first_child = n_nodes + np.cumsum(n_children) - n_children
        branches.append(np.where(value == m[node] - 1, -1, first_child[node] + child))
        attributes.append(F)
        n_nodes += int(n_children.sum())
        X = np.repeat(rest, n_children, axis=0)
    attributes.append(np.full(len(X), -1))
    return Tree(codebook.sizes, np.concatenate(attributes).astype(NODE), np.concatenate([[], *branches]).astype(NODE))


def _children(
    codebook: Codebook, F: Integers, node: Integers, value: Integers, numeric_splits: str, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Which child of its node each value leads to, and the number of children: one for each value; or, for a numeric
    attribute, one below and one above a random threshold among its cells (section 3.3), and one for missing values."""
    domain_size = np.array(codebook.sizes)[F]
    if numeric_splits == "bins":
        return value, domain_size
    cells = np.array([codebook.numeric_cells(a) for a in range(len(codebook.sizes))])[F]
    split = cells > 1
    threshold = rng.integers(1, np.maximum(cells, 2))
    side = np.where(value < cells[node], value >= threshold[node], 2)
    return np.where(split[node], side, value), np.where(split, 2 + (domain_size > cells), domain_size)


def structures(codebook: Codebook, n: int | None, settings: Settings, rng: np.random.Generator) -> tuple[Tree, ...]:
    """The ensemble of N structures; refused if its leaves would be too many to count."""
    each = branches(codebook, settings)
    if settings.max_depth is not None:
        h = min(settings.max_depth, len(each))
    else:
        assert n is not None
        h = height_rule(each, n)
    fewest = sorted(each)[:h]
    if settings.n_estimators * math.prod(fewest) > settings.max_leaves:
        raise _too_many(settings.n_estimators * math.prod(fewest), settings, "at least ")
    trees: list[Tree] = []
    for _ in range(settings.n_estimators):
        trees.append(build_tree_structure(codebook, h, settings.numeric_splits, rng))
        if sum(len(tree.leaves) for tree in trees) > settings.max_leaves:
            raise _too_many(sum(len(tree.leaves) for tree in trees), settings, "more than ")
    return tuple(trees)


def _too_many(leaves: int, settings: Settings, how: str) -> PlanError:
    return PlanError(
        f"plan: the forest would have {how}{leaves:,} leaves to count, max_leaves allows {settings.max_leaves:,}. Nothing "
        "was spent. Use a smaller max_depth or n_estimators, coarser domains, or a larger max_leaves."
    )


def structures_within_max_leaves(codebook: Codebook, n: int, settings: Settings, rng: np.random.Generator) -> tuple[Tree, ...]:
    """As `structures`, for an n̂ that is paid for already: lower trees instead of a refusal, in the end single leaves."""
    for h in range(height_rule(branches(codebook, settings), n), 0, -1):
        with contextlib.suppress(PlanError):
            return structures(codebook, n, replace(settings, max_depth=h), rng)
    return structures(codebook, n, replace(settings, max_depth=0), rng)


# ---------------------------------------------------------------- the private forest


def events(settings: Settings, epsilon: Fraction, rows_are_public: bool, rows_per_person: int = 1) -> tuple[Event, ...]:
    """What the forest is charged: n̂ where the height rule needs it, then the leaf counts with what is left."""
    need_rows = settings.max_depth is None and not rows_are_public
    for_rows = epsilon * ROWS_SHARE if need_rows else Fraction(0)
    counts = LeafCounts.cost(epsilon - for_rows, rows_per_person, settings.n_estimators)
    return (Rows.cost(for_rows, rows_per_person), counts) if need_rows else (counts,)


def plan(codebook: Codebook, settings: Settings, epsilon: Fraction, rows: int | None, public: bool, rng: np.random.Generator) -> Plan:
    """What `grow` would build for a table of that many rows (a public number, or one that is assumed)."""
    if settings.max_depth is None and rows is None:
        raise PlanError(
            "plan: the height of the trees depends on the number of rows, and schema.rows declares none. Give an assumed "
            "size, plan(rows=10000), or fix the height with max_depth."
        )
    trees = structures(codebook, rows, settings, rng)
    charges = events(settings, epsilon, public, codebook.schema.k)
    fixed = all(event.query != "rows" for event in charges)
    source = "declared public" if public else "assumed" if fixed else "assumed; fit charges for a noisy count"
    return Plan("Private-RDT", epsilon, rows, source, codebook.n_classes, charges, trees, fixed, settings)


def grow(table: PrivateTable, plan: Plan, rng: np.random.Generator) -> Grown:
    """Algorithm 4, Private-RDT, N times."""
    charges = {event.query: event for event in plan.events}
    released: dict[str, int] = {}
    # 1. structures before any look at the leaves; where the height needs n and none is public, a noisy n̂ is paid for
    trees = plan.trees
    if not plan.fixed:
        released["rows"] = table.ask(Rows(), charges["rows"].epsilon)
        trees = structures_within_max_leaves(table.codebook, max(1, released["rows"]), plan.settings, rng)
    # 2. UpdateStatistics with Lap(N/ε) noise on every count; 3. no pruning: it would read the rows
    counts = table.ask(LeafCounts(trees), charges["leaf_counts"].epsilon)
    forest = CountedForest(table.codebook, trees, tuple(counts), (charges["leaf_counts"].scale,))
    return Grown(forest, released, {"height": max(tree.height for tree in trees)})


# ---------------------------------------------------------------- the plain forest: exact counts, no privacy


def grow_plain(table: UnprotectedTable, codebook: Codebook, settings: Settings, prune: bool, rng: np.random.Generator) -> CountedForest:
    """Algorithm 2, RDT, N times, with its last step: prune subtrees with zero counts."""
    n = table.ask(Rows()) if settings.max_depth is None else None
    trees = structures(codebook, n, settings, rng)
    counts = table.ask(LeafCounts(trees))
    if prune:
        kept = [_without_empty(tree, leaf_counts) for tree, leaf_counts in zip(trees, counts, strict=True)]
        trees, counts = tuple(tree for tree, _ in kept), [leaf_counts for _, leaf_counts in kept]
    return CountedForest(codebook, trees, tuple(counts))


def _without_empty(tree: Tree, counts: NDArray[np.int64]) -> tuple[Tree, NDArray[np.int64]]:
    empty = tree.add_up(counts).sum(axis=1) == 0
    kept_leaves = counts[~empty[tree.leaves]] if not empty[0] else np.zeros((1, counts.shape[1]), dtype=np.int64)
    return tree.without(empty), kept_leaves
