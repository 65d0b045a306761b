"""DPDF, the greedy private forest.

Fletcher & Islam: A Differentially Private Decision Forest (2015), Algorithm 1. Pruning (Eq. 27) and voting are post-processing
and live in `inference/prune.py` and `inference/vote.py`.

    β   budget of the forest        τ   number of trees, their roots distinct       δ   depth, the root at depth 1
    ε = β / (τ(2δ − 1))   budget of one query (Eq. 10): Q1 on δ levels and Q2 on δ − 1
    Q1  noisy class counts of every node (Eq. 7)            Q2  a private choice of its attribute (Eq. 8)

Two things differ from the pseudo-code, which would not keep its ε. A node is split only if d < δ: line 16 tests d ≤ δ and would
ask one Q1 and one Q2 too many. And Q2 scores with the count-scaled Gini index, of global sensitivity 2: the paper's local
sensitivity, computed from a noisy size, is not a proof. `sensitivity="local"` runs the paper's version, and its release says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import Event
from hedgerow.errors import PlanError
from hedgerow.private_table import PrivateTable
from hedgerow.queries import Choose, ChooseLocally, ClassCounts
from hedgerow.queries.scores import GINI
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import NODES, CountedForest, Grown
from hedgerow.trees.plan import Plan
from hedgerow.trees.splits import by_value
from hedgerow.trees.tree import Tree, TreeBuilder

LARGEST_QUESTION = 1 << 25  # counts that one level may hold at once


@dataclass(frozen=True)
class Settings:
    """τ, δ and the termination rule of section 2.2."""

    n_estimators: int = 1
    max_depth: int = 5
    min_rows: int = 100
    sensitivity: str = "global"


def query_epsilon(settings: Settings, beta: Fraction) -> Fraction:
    """ε of Eq. 10."""
    return beta / (settings.n_estimators * (2 * settings.max_depth - 1))


def plan(codebook: Codebook, settings: Settings, beta: Fraction) -> Plan:
    """What is charged if no branch ends early; what is not used stays in the budget."""
    possible_roots = sum(size > 1 for size in codebook.sizes)
    if settings.n_estimators > max(1, possible_roots):
        raise PlanError(
            f"n_estimators: got {settings.n_estimators}; expected at most {possible_roots}, since every tree has a root "
            "attribute of its own with more than one value."
        )
    epsilon = query_epsilon(settings, beta)
    q1 = ClassCounts.cost(epsilon, codebook.schema.k)
    q2 = Choose.cost(epsilon, codebook.schema.k, GINI)
    events: list[Event] = ([q1, q2] * (settings.max_depth - 1) + [q1]) * settings.n_estimators
    chosen = {
        "trees": f"{settings.n_estimators}, each with a root of its own",
        "depth": f"at most {settings.max_depth} levels; a node is split if its noisy count is at least {settings.min_rows}",
    }
    return Plan("DPDF", beta, None, "", codebook.n_classes, tuple(events), (), settings=settings, chosen=chosen)


def grow(table: PrivateTable, plan: Plan, rng: np.random.Generator) -> Grown:
    """Procedure DPDF. No public randomness is needed: `rng` is not used."""
    assert plan.epsilon is not None
    settings: Settings = plan.settings
    epsilon = query_epsilon(settings, plan.epsilon)
    roots: set[int] = set()  # A_root
    trees, counts = [], []
    for _ in range(settings.n_estimators):  # lines 5 to 9
        tree, class_counts = build_tree(table, epsilon, settings, roots)
        trees.append(tree)
        counts.append(class_counts)
    noise = (ClassCounts.cost(epsilon, table.codebook.schema.k).scale,)
    forest = CountedForest(table.codebook, tuple(trees), tuple(counts), noise, NODES)
    names = table.codebook.schema.names
    asked = [names[tree.attribute[0]] for tree in trees if tree.attribute[0] >= 0]
    return Grown(forest, {}, {"roots": ", ".join(asked), "nodes": sum(tree.n_nodes for tree in trees)})


def build_tree(table: PrivateTable, epsilon: Fraction, settings: Settings, roots: set[int]) -> tuple[Tree, NDArray[np.int64]]:
    """Procedure BuildTree, a level at a time: its nodes are disjoint, so that Q1 costs ε once for all of them, and so does Q2."""
    candidates = by_value(table.codebook)
    builder = TreeBuilder(table.codebook.sizes)
    tree, level = builder.build(), [0]
    A = {0: [a for a, size in enumerate(table.codebook.sizes) if size > 1]}  # attributes left at each node
    A[0] = [a for a in A[0] if a not in roots]  # line 29: the root may not repeat
    N = [np.zeros((0, table.codebook.n_classes), dtype=np.int64)]
    for d in range(1, settings.max_depth + 1):
        f = table.ask(ClassCounts(tree, level), epsilon)  # line 14, Q1
        N.append(f)
        size = f.sum(axis=1)  # line 15
        pure = np.maximum(f, 0).max(axis=1) >= size  # f_c/|D| ≥ 1: noisy purity
        goes_on = [i for i, node in enumerate(level) if size[i] >= settings.min_rows and not pure[i] and A[node]]
        if d == settings.max_depth or not goes_on:  # line 16, with d < δ
            break
        goes_on = _at_most(goes_on, size, table.codebook)
        nodes = [level[i] for i in goes_on]
        allowed = np.array([[a in A[node] for a in range(len(candidates))] for node in nodes])
        if settings.sensitivity == "local":
            chosen = table.ask(ChooseLocally(tree, nodes, candidates, allowed, size[goes_on]), epsilon)  # lines 17 and 18
        else:
            chosen = table.ask(Choose(tree, nodes, candidates, allowed, GINI), epsilon)  # line 18, Q2
        level = []
        for node, a in zip(nodes, chosen.tolist(), strict=True):
            if node == 0:
                roots.add(a)  # line 33
                A[0] = [b for b, values in enumerate(table.codebook.sizes) if values > 1]
            children = builder.split(node, a)  # lines 20 to 23
            A |= {child: [b for b in A[node] if b != a] for child in children}  # line 19
            level += children
        tree = builder.build()
    return tree, np.concatenate(N)


def _at_most(goes_on: list[int], size: NDArray[np.int64], codebook: Codebook) -> list[int]:
    """As many nodes as one question can hold, the largest by their noisy size: a choice among released numbers."""
    most = max(1, LARGEST_QUESTION // (sum(codebook.sizes) * codebook.n_classes))
    if len(goes_on) <= most:
        return goes_on
    return sorted(sorted(goes_on, key=lambda i: -int(size[i]))[:most])
