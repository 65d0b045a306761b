"""Private ID3 to the letter, for reproduction: its stated ε is NOT proven.

Jagannathan, Pillaipakkamnatt & Wright 2012, section 4: every look of Algorithm 1 at the training set S becomes a noisy query.

    1(a)  |S|                  is S empty? then a leaf with value Failure
    1(b)  |S_c|                does S hold one class alone? then a leaf with that class; also for the most frequent class
    3, 4  a table |S_dc|       of each attribute that is left: its AttributeEntropy, with the |S| of 1(a)

Each gets ε = ε′/q, with the q of their Table 1, k(k + 1)/2: the tables of a path, and nothing else. On k + 1 levels 1(a) and 1(b) are asked
as well, so that a path costs ε′·(q + 2(k + 1))/q. That is charged, and the release says that ε′ is not proven. `id3.py` keeps its ε.

Noise leaves two things open. S holds one class alone where exactly one noisy count is positive. A leaf with value Failure is one without a
count: `Release.failures` tells its rows, and `predict`, which has to answer, gives them the most frequent class of the table.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import Event
from hedgerow.accounting.loss import text_of_fraction
from hedgerow.growers.id3 import LARGEST_QUESTION, Counts, Settings, levels, number_of_queries
from hedgerow.private_table import PrivateTable
from hedgerow.queries import ClassCounts, Sizes, Tables
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import NODES, CountedForest, Grown
from hedgerow.trees.plan import Plan
from hedgerow.trees.splits import offsets
from hedgerow.trees.tree import Tree, TreeBuilder


def plan(codebook: Codebook, settings: Settings, epsilon: Fraction) -> Plan:
    """epsilon: the paper's ε′. What is charged is more."""
    q, n_levels, k, persons = number_of_queries(codebook, settings), levels(codebook, settings), len(codebook.sizes), codebook.schema.k
    each = epsilon / q
    node = [Sizes.cost(each, persons), ClassCounts.cost(each, persons)]
    events: list[Event] = []
    for level in range(n_levels):
        events += [*node, Tables.cost(each * (k - level), persons, k - level)]
    events += node
    whole, left_out = each * (q + 2 * (n_levels + 1)), 2 * (n_levels + 1)
    why = (
        f"as published, ε′ = {text_of_fraction(epsilon)} was divided by {q} queries, which leaves out {left_out} that are asked for the "
        f"sizes and classes of nodes: that this ε′ holds is not proven; {text_of_fraction(whole)} at most was charged"
    )
    chosen = {"queries": q, "left out of that number": left_out, "the paper's ε′": text_of_fraction(epsilon), "levels": n_levels}
    return Plan(
        "Private ID3", whole, None, "", codebook.n_classes, tuple(events), (), settings=settings, chosen=chosen, not_proven=why
    )  # fmt: skip


def grow(table: PrivateTable, plan: Plan, rng: np.random.Generator) -> Grown:
    """Algorithm 1, a level at a time. No public randomness is needed: `rng` is not used."""
    codebook, n_levels = table.codebook, levels(table.codebook, plan.settings)
    first, C = offsets(codebook.sizes), codebook.n_classes
    each = plan.events[0].epsilon
    builder = TreeBuilder(codebook.sizes)
    tree, level = builder.build(), [0]
    R = {0: np.ones(len(codebook.sizes), dtype=bool)}  # the attributes left
    counts: dict[int, NDArray[np.int64]] = {}
    for depth in range(n_levels + 1):
        S = table.ask(Sizes(tree, level), each)  # 1(a)
        classes = table.ask(ClassCounts(tree, level), each)  # 1(b)
        empty = S <= 0  # value Failure
        counts |= dict(zip(level, np.where(empty[:, None], 0, classes), strict=True))
        alike = (classes > 0).sum(axis=1) == 1
        goes_on = [i for i in np.flatnonzero(~empty & ~alike).tolist() if R[level[i]].any()]
        if depth == n_levels or not goes_on:
            break
        most = max(1, LARGEST_QUESTION // (int(first[-1]) * C))
        goes_on = sorted(sorted(goes_on, key=lambda i: -int(S[i]))[:most])
        nodes = [level[i] for i in goes_on]
        left = np.array([R[node] for node in nodes])
        tables = table.ask(Tables(tree, nodes, left), each * int(left[0].sum()))  # 3 and 4
        entropies = np.where(left, attribute_entropy(tables, S[goes_on], codebook), np.inf)
        level = []
        for node, D in zip(nodes, entropies.argmin(axis=1).tolist(), strict=True):  # the attribute with the largest gain
            children = builder.split(node, D)
            R |= dict.fromkeys(children, R[node] & (np.arange(len(R[node])) != D))
            level += children
        tree = builder.build()
    forest = CountedForest(codebook, (tree,), (_of_nodes(tree, counts),), (ClassCounts.cost(each, codebook.schema.k).scale,), NODES)
    failures = sum(not counts[leaf].any() for leaf in tree.leaves.tolist())
    return Grown(forest, {}, {**plan.chosen, "nodes": tree.n_nodes, "height": tree.height, "leaves with value Failure": failures})


def attribute_entropy(tables: Counts, S: NDArray[np.int64], codebook: Codebook) -> NDArray[np.float64]:
    """Σ_d |S_d|/|S| · Entropy(S_d) of every node and attribute. Entropy(S) is the same for all attributes of a node: the least is the best.

    Negative counts count as 0.
    """
    first = offsets(codebook.sizes)
    cells = np.maximum(tables, 0).astype(np.float64)
    S_d = cells.sum(axis=2)
    rows_entropy = S_d * np.log2(np.maximum(S_d, 1)) - (cells * np.log2(np.maximum(cells, 1))).sum(axis=2)  # |S_d| · Entropy(S_d)
    return np.asarray(np.add.reduceat(rows_entropy, first[:-1], axis=1) / S[:, None])


def _of_nodes(tree: Tree, counts: dict[int, NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.array([counts[node] for node in range(tree.n_nodes)], dtype=np.int64)
