"""DiffPID3: Friedman & Schuster, Data Mining with Differential Privacy (2010), the baseline of Fletcher & Islam 2015 (DPDF).

    β   budget of the tree          δ   depth, the root at depth 1          t   largest domain        C   classes
    ε = β / (2δ)   budget of one query: on every level a noisy count of each node, and a choice (inner nodes) or class counts
                   (leaves). The leaves of all levels are disjoint, so their class counts are asked together, once.

A node with noisy count N is a leaf if N / (t·|C|) < √2/ε, if no split is left, or at depth δ. Criteria: "gini" (count-scaled,
Δ = 2), "max" (Δ = 1), "information_gain" (Δ = log2(N + 1) + 1/ln 2 with a public N), and "gini_half", the Gini index with
Δ = 1/2 as DPDF's authors ran it. The choice is the exponential mechanism; the first three scores are monotone, so that
exp(ε·u / Δ) costs ε where the paper takes exp(ε·u / 2Δ). A numeric attribute is split at a threshold: all thresholds of all
numeric attributes stand beside the categorical attributes in the one charged choice, where the paper pays for a choice of its own
for each numeric attribute. Where up to k rows of a person are counted, ε/k stands for ε in all of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import EXPONENTIAL, Event
from hedgerow.private_table import PrivateTable
from hedgerow.queries import Choose, ClassCounts, Sizes
from hedgerow.queries.scores import GINI, MAX, NORMAL_GINI, Score, information_gain
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import CountedForest, Grown
from hedgerow.trees.plan import Plan
from hedgerow.trees.splits import Candidates, by_threshold
from hedgerow.trees.tree import TreeBuilder

SCORES = ("gini", "max", "information_gain", "gini_half")
LARGEST_QUESTION = 1 << 25  # counts that one level may hold at once


@dataclass(frozen=True)
class Settings:
    max_depth: int = 5
    criterion: str = "gini"
    most_rows: int = 1_000_000  # the public N of information gain


def score_named(settings: Settings) -> Score:
    """The member of the closed list of scores."""
    if settings.criterion == "information_gain":
        return information_gain(settings.most_rows)
    return {"gini": GINI, "max": MAX, "gini_half": NORMAL_GINI}[settings.criterion]


def query_epsilon(settings: Settings, beta: Fraction) -> Fraction:
    return beta / (2 * settings.max_depth)


def plan(codebook: Codebook, settings: Settings, beta: Fraction) -> Plan:
    epsilon = query_epsilon(settings, beta)
    k = codebook.schema.k
    count = Sizes.cost(epsilon, k)
    choice = Choose.cost(epsilon, k, score_named(settings), EXPONENTIAL)
    leaves = ClassCounts.cost(epsilon, k)
    events: list[Event] = [count, choice] * (settings.max_depth - 1) + [count, leaves]
    chosen = {"depth": f"at most {settings.max_depth} levels", "score": score_named(settings).name}
    return Plan("DiffPID3", beta, None, "", codebook.n_classes, tuple(events), (), settings=settings, chosen=chosen)


def grow(table: PrivateTable, plan: Plan, rng: np.random.Generator) -> Grown:
    """Build_DiffPID3, level by level. No public randomness is needed: `rng` is not used."""
    assert plan.epsilon is not None
    settings: Settings = plan.settings
    epsilon = query_epsilon(settings, plan.epsilon)
    codebook = table.codebook
    candidates = by_threshold(codebook)
    builder = TreeBuilder(codebook.sizes)
    tree, level = builder.build(), [0]
    left = {0: np.array([split.n_children > 1 for split in candidates.splits])}  # the splits that still say something
    t, C, k = max(codebook.sizes), codebook.n_classes, codebook.schema.k
    for depth in range(1, settings.max_depth + 1):
        N = table.ask(Sizes(tree, level), epsilon)
        # N / (t·|C|) < √2/ε, compared as squares so that it is exact; of k rows of a person, √2/(ε/k)
        small = [int(n) < 0 or Fraction(int(n), t * C) ** 2 < 2 / (epsilon / k) ** 2 for n in N]
        goes_on = [i for i, node in enumerate(level) if not small[i] and left[node].any()]
        if depth == settings.max_depth or not goes_on:
            break
        most = max(1, LARGEST_QUESTION // (sum(codebook.sizes) * C))
        nodes = [level[i] for i in sorted(sorted(goes_on, key=lambda i: -int(N[i]))[:most])]
        allowed = np.array([left[node] for node in nodes])
        chosen = table.ask(Choose(tree, nodes, candidates, allowed, score_named(settings), EXPONENTIAL), epsilon)
        level = []
        for node, column in zip(nodes, chosen.tolist(), strict=True):
            split = candidates.splits[column]
            children = builder.split(node, split.attribute, split.groups)
            for number, child in enumerate(children):
                left[child] = _splits_left(candidates, left[node], column, number)
            level += children
        tree = builder.build()
    counts = table.ask(ClassCounts(tree, tree.leaves), epsilon)  # all leaves at once: none lies above another
    scale = ClassCounts.cost(epsilon, k).scale
    forest = CountedForest(codebook, (tree,), (counts,), (scale,))
    return Grown(forest, {}, {"nodes": tree.n_nodes, "height": tree.height})


def _splits_left(candidates: Candidates, left: NDArray[np.bool_], column: int, child: int) -> NDArray[np.bool_]:
    """What may be asked below: a categorical attribute once, a numeric one at the edges inside the child's interval."""
    asked = candidates.splits[column]
    same = candidates.attribute == asked.attribute
    remaining: NDArray[np.bool_] = np.asarray(left & ~same)
    if candidates.codebook.numeric_cells(asked.attribute) > 1 and child < 2:
        edge = asked.groups.index(1)
        for i in np.flatnonzero(left & same):
            other = candidates.splits[i].groups.index(1)
            remaining[i] = other < edge if child == 0 else other > edge
    return remaining
