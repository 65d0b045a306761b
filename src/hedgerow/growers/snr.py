"""The signal-to-noise forest, DP-RF.

Fletcher & Islam: A Differentially Private Random Decision Forest Using Reliable Signal-to-Noise Ratios (2015). Every
parameter follows from public facts: β, the number of rows and the domain sizes. Pruning, node choice and voting are
post-processing and live in `inference/confidence.py`.

    β   budget of the forest          τ   number of trees           ε = β/τ   budget of one tree (Eq. 8)
    C   classes                       δ   mean domain size          θ = |C|·√2/ε   least support worth asking (Eq. 5)

Where up to k rows of a person are counted, noise is k times as large, and so is θ: the paper's ε stands for ε/k there.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hedgerow.accounting.events import Event
from hedgerow.errors import PlanError
from hedgerow.private_table import PrivateTable
from hedgerow.queries import LeafCounts, Rows
from hedgerow.schema.codebook import Codebook
from hedgerow.settings import later
from hedgerow.trees.forest import CountedForest, Grown
from hedgerow.trees.plan import DEFAULT_MAX_LEAVES, ROWS_SHARE, Plan
from hedgerow.trees.tree import Tree, TreeBuilder


@dataclass(frozen=True)
class Settings:
    """Nothing to tune. `noise_rule="tight"` replaces the paper's |C|·√2/ε by √(2|C|)/ε, the true standard deviation.

    `tables` of owners or batches, added up, have √tables times the noise: θ grows by that.
    stopping_rule: "ours" makes no node of less support than θ; "literal" makes it, and asks no more there.
    """

    noise_rule: str = "paper"
    max_leaves: int = DEFAULT_MAX_LEAVES
    tables: int = 1
    stopping_rule: str = later("ours")


def squared_threshold(n_classes: int, epsilon: Fraction, settings: Settings, rows_per_person: int = 1) -> Fraction:
    """θ² of Eq. 5, squared so that comparisons with √2 stay exact."""
    factor = n_classes**2 if settings.noise_rule == "paper" else n_classes
    return 2 * factor * settings.tables / (epsilon / rows_per_person) ** 2


def number_of_trees(codebook: Codebook, n: int, beta: Fraction, settings: Settings) -> int:
    """τ: the largest number up to |A| with θ < n/δ² (Eqs. 5, 8 and 9); 1 if even that fails."""
    delta = Fraction(sum(codebook.sizes), len(codebook.sizes))
    tau = len(codebook.sizes)
    while tau > 1 and not squared_threshold(codebook.n_classes, beta / tau, settings, codebook.schema.k) < (n / delta**2) ** 2:
        tau -= 1
    return tau


def build_random_tree(
    codebook: Codebook, root: int, n: int, theta_squared: Fraction, max_leaves: int, rng: np.random.Generator, literal: bool = False
) -> Tree:
    """Section 4.3: ask on until no attribute is left, or the next nodes' estimated support would not be above θ.

    Estimated support is n divided by the domain sizes on the path. The text, taken literally, makes those nodes and stops there, since
    their own support is below θ; but Eq. 9 asks for θ < n/δ² where n/δ² is the support of the *leaves*, and the accuracy agrees (nursery
    at ε = 0.1: 0.77 against 0.68). No node is made (or, literally, asks on) with less than one expected row, however large β is.
    """
    builder = TreeBuilder(codebook.sizes)
    least = max(theta_squared, Fraction(1))
    open_nodes = [(0, tuple(range(len(codebook.sizes))), Fraction(n))]
    leaves = 1
    while open_nodes:
        node, unused, support = open_nodes.pop()
        if not unused or (literal and support**2 < least):  # termination criterion 1, and 2 as it is written
            continue
        a = root if node == 0 else unused[int(rng.integers(len(unused)))]
        below = support / codebook.sizes[a]
        if not literal and below**2 <= least:  # termination criterion 2, as Eq. 9 means it
            continue
        children = builder.split(node, a)
        leaves += len(children) - 1
        if leaves > max_leaves:
            raise PlanError(
                f"plan: a tree would have more than {max_leaves:,} leaves to count, and max_leaves allows no more. Nothing "
                "was spent. Use a smaller epsilon, coarser domains, or a larger max_leaves."
            )
        rest = tuple(other for other in unused if other != a)
        open_nodes += [(child, rest, below) for child in children]
    return builder.build()


def structures(
    codebook: Codebook, n: int, beta: Fraction, settings: Settings, rng: np.random.Generator, widen: int = 0
) -> tuple[Tree, ...]:
    """τ trees, each with a root of its own (section 4.4). `widen` doubles θ so many times."""
    tau = number_of_trees(codebook, n, beta, settings)
    theta_squared = squared_threshold(codebook.n_classes, beta / tau, settings, codebook.schema.k) * 4**widen
    roots = rng.permutation(len(codebook.sizes))[:tau]
    trees: list[Tree] = []
    left = settings.max_leaves
    for root in roots:
        trees.append(build_random_tree(codebook, int(root), n, theta_squared, left, rng, settings.stopping_rule == "literal"))
        left -= len(trees[-1].leaves)
    return tuple(trees)


def structures_within_max_leaves(
    codebook: Codebook, n: int, beta: Fraction, settings: Settings, rng: np.random.Generator
) -> tuple[Tree, ...]:
    """As `structures`, for an n̂ that is paid for already: a larger θ instead of a refusal."""
    widen = 0
    while 4**widen <= 4 * n**2:  # at n/θ < 1 every tree is a single leaf
        with contextlib.suppress(PlanError):
            return structures(codebook, n, beta, settings, rng, widen)
        widen += 1
    return structures(codebook, n, beta, settings, rng, widen)


def budget_shares(epsilon: Fraction, rows_are_public: bool) -> tuple[Fraction, Fraction]:
    """(for n̂, β for the leaf counts)."""
    for_rows = Fraction(0) if rows_are_public else epsilon * ROWS_SHARE
    return for_rows, epsilon - for_rows


def plan(codebook: Codebook, settings: Settings, epsilon: Fraction, rows: int | None, public: bool, rng: np.random.Generator) -> Plan:
    """What `grow` would build for a table of that many rows (a public number, or one that is assumed)."""
    if rows is None:
        raise PlanError(
            "plan: the number of trees and their size depend on the number of rows, and schema.rows declares none. Give an "
            "assumed size: plan(rows=10000)."
        )
    if settings.max_leaves < len(codebook.sizes):
        raise PlanError(f"max_leaves: got {settings.max_leaves}; expected at least {len(codebook.sizes)}, one leaf for each possible tree.")
    for_rows, beta = budget_shares(epsilon, public)
    trees = structures(codebook, rows, beta, settings, rng)
    charges: list[Event] = [] if public else [Rows.cost(for_rows, codebook.schema.k)]
    charges.append(LeafCounts.cost(beta, codebook.schema.k, len(trees)))
    source = "declared public" if public else "assumed; fit charges for a noisy count"
    chosen = _chosen(codebook, trees, beta, settings)
    return Plan("SNR forest", epsilon, rows, source, codebook.n_classes, tuple(charges), trees, public, settings, settings.tables, chosen)


def _chosen(codebook: Codebook, trees: tuple[Tree, ...], beta: Fraction, settings: Settings) -> dict[str, str]:
    theta = float(squared_threshold(codebook.n_classes, beta / len(trees), settings, codebook.schema.k)) ** 0.5
    names = codebook.schema.names
    roots = [names[tree.attribute[0]] for tree in trees if tree.attribute[0] >= 0]
    return {
        "trees": f"{len(trees)} of at most {len(codebook.sizes)}",
        "least support": f"{theta:.4g} rows",
        "roots": ", ".join(roots) if roots else "none: too few rows for a question",
    }


def grow(table: PrivateTable, plan: Plan, rng: np.random.Generator) -> Grown:
    """Steps 1 to 3 of section 4.1; steps 4 to 6 are post-processing."""
    assert plan.epsilon is not None
    for_rows, beta = budget_shares(plan.epsilon, plan.fixed)
    released: dict[str, int] = {}
    # 1. tune τ and θ from β, n (declared public, or a noisy n̂ that is paid for) and the domain sizes; 2. build
    trees = plan.trees
    if not plan.fixed:
        released["rows"] = table.ask(Rows(), for_rows)
        trees = structures_within_max_leaves(table.codebook, max(1, released["rows"]), beta, plan.settings, rng)
    # 3. query the leaves (section 4.2): ε = β/τ for each tree (Eq. 8)
    counts = table.ask(LeafCounts(trees), beta)
    scale = LeafCounts.cost(beta, table.codebook.schema.k, len(trees)).scale
    forest = CountedForest(table.codebook, trees, tuple(counts), (scale,))
    return Grown(forest, released, _chosen(table.codebook, trees, beta, plan.settings))
