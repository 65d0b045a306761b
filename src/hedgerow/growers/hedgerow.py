"""The Hedgerow forest, our own: one-way tables of the attributes that tell most, then boosted trees, each chosen privately.

    0. n̂       a noisy number of rows, where none is declared public; paid in pure ε. It and public facts decide all below (`sizes.py`).
    1. Cells   noisy sizes of fine cells of every number, put together to at most 128 of about equal mass.           (`inference/cells.py`)
    2. Tables  of q attributes, q = √(n̂ε/40): one after the other the one that tells most about what the tables before it leave open is
               privately chosen, and its class counts are released. Where q = m all are counted at once; in pure ε under one or two top
               questions that are privately chosen: a row is still in one cell of each table, so that the noise stays what it was.
    3. Start   of the model F. With Gaussian noise and rows enough a joint fit: scores of all attributes at once, in 16 rounds
               (`joint_fit.py`); the tables then get little, and tell how frequent values are. Else the tables, read as log-odds and shrunk
               as far as they are noise (`inference/additive.py`).
    4. Boost   T oblivious trees of depth D. In a round, one of 24 random trees is privately chosen by Σ_leaves ‖Σ R‖, and Σ R and Σ H
               of its leaves are released, R = e_y − p, H = p(1 − p), p = softmax F: F ← F + η·(C−1)/C·ΣR / (ΣH + σ²/(vΣH) + 1/v).
               v is ½; steps are smaller where released sums show it (`leaf_steps.py`). Four trees a round look at the same gradients.
    5. Scale   the margins, so that probabilities fit: a private choice among a few numbers.

Every share is of what is left after n̂: of ε, or of ρ where δ > 0 and there are rows enough for Gaussian noise. What a stage does not need
goes to the others. m attributes, C classes, σ the standard deviation of the noise on a sum. docs/HEDGEROW_DESIGN.md has the reasons
and measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import PERMUTE_AND_FLIP, Event
from hedgerow.accounting.noise import noise_of, variance_of
from hedgerow.errors import PlanError
from hedgerow.growers.budget_shares import BudgetShares, price_of_rows
from hedgerow.growers.joint_fit import JointFit
from hedgerow.growers.leaf_steps import LeafSteps
from hedgerow.growers.proposals import CANDIDATES, Proposals
from hedgerow.growers.sizes import MOST_CELLS, TOP_KEEPS, TOP_SHARE, Settings, Sizes, top_questions
from hedgerow.inference.additive import FLAT, RULES, SCALES, Reading, Tables
from hedgerow.inference.cells import equal_mass, fewer
from hedgerow.inference.layout import MOST_CELLS as MOST_NUMBERS
from hedgerow.inference.layout import cells_of, grouped_layout
from hedgerow.private_table import PrivateTable
from hedgerow.queries import BestModel, BestScale, BoostRound, Choose, ChooseTree, LeafCounts, LeafSizes, Rows
from hedgerow.queries.boosting import MOST_SUMS, hessian_weight, tree_score
from hedgerow.queries.boosting import MOST_TREES as MOST_CANDIDATES
from hedgerow.queries.scores import BRIER, GINI
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import GRID, AdditiveModel, gradient_width
from hedgerow.trees.forest import NO_CORRECTION, Correction, CountedForest, Grown
from hedgerow.trees.oblivious import ObliviousTree, one_question
from hedgerow.trees.plan import HEDGEROW, Plan
from hedgerow.trees.splits import Candidates
from hedgerow.trees.tree import Tree, TreeBuilder

ALGORITHM = HEDGEROW


def plan(codebook: Codebook, settings: Settings, epsilon: Fraction, delta: Fraction, rows: int | None, public: bool) -> Plan:
    """What `grow` would do for a table of that many rows (a public number, or one that is assumed)."""
    if rows is None:
        raise PlanError(
            "plan: what is measured depends on the number of rows, and schema.rows declares none. Give an assumed size: plan(rows=10000)."
        )
    if sum(codebook.sizes) * codebook.n_classes > MOST_NUMBERS:
        raise PlanError(
            f"schema: its attributes have {sum(codebook.sizes):,} values and cells, times {codebook.n_classes:,} classes: more than the "
            f"{MOST_NUMBERS:,} counts that one forest holds. Nothing was spent. Declare fewer values or classes, or set fewer bins."
        )
    for_rows = Fraction(0) if public else price_of_rows(epsilon, delta)
    shares = BudgetShares.after_rows(codebook, max(1, rows), epsilon, delta, for_rows)
    sizes = Sizes.of(codebook, max(1, rows), shares, epsilon, settings)
    k, classes = codebook.schema.k, codebook.n_classes
    events: list[Event] = [] if public else [Rows.cost(for_rows, k)]
    if sizes.cells:
        events.append(LeafSizes.cost(shares.price(sizes.cells), k, sizes.numbers))
    if sizes.chooses:
        epsilon_choice, score = shares.choice(sizes.of_choice, shares.mechanism), tree_score(classes, shares.concentrated)
        choice = ChooseTree.cost(epsilon_choice, k, score, shares.mechanism)
        events += [choice, LeafCounts.cost(shares.price(sizes.of_tables), k)] * sizes.measured
    else:
        events += [Choose.cost(shares.choice(TOP_SHARE, shares.mechanism), k, GINI, shares.mechanism)] * sizes.questions
        events.append(LeafCounts.cost(shares.price(sizes.of_tables), k, sizes.measured))
        if sizes.joint:
            events += BoostRound.costs(shares.price(sizes.of_joint_round), k, 1, sizes.measured, classes) * sizes.joint
    if sizes.reading:
        events.append(BestModel.cost(shares.choice(sizes.reading, PERMUTE_AND_FLIP), k, BRIER))
    if sizes.rounds:
        events += BoostRound.costs(shares.price(sizes.of_round), k, CANDIDATES, sizes.together, classes) * sizes.rounds
    if sizes.scale:
        events.append(BestScale.cost(shares.choice(sizes.scale, PERMUTE_AND_FLIP), k, BRIER))
    source = "declared public" if public else "assumed; fit charges for a noisy count"
    groups = {j: fewer(np.arange(codebook.sizes[j]), sizes.groups) if codebook.numeric_cells(j) else np.arange(codebook.sizes[j])
              for j in range(sizes.measured)}  # fmt: skip
    trees = grouped_layout(codebook, groups).trees
    boosted = (sizes.rounds * sizes.together, sizes.depth) if sizes.rounds else (0, 0)
    own: dict[str, Any] = {"chosen": sizes.words(), "delta": delta, "boosted": boosted}
    return Plan(ALGORITHM, epsilon, rows, source, classes, tuple(events), trees, public, settings, **own)


def grow(table: PrivateTable, plan: Plan, rng: np.random.Generator) -> Grown:
    """Steps 0 to 5."""
    assert plan.epsilon is not None
    codebook = table.codebook
    released: dict[str, int] = {}
    n, paid = plan.rows or 1, Fraction(0)
    if not plan.fixed:  # 0.
        paid = price_of_rows(plan.epsilon, plan.delta)
        released["rows"] = table.ask(Rows(), paid)
        n = max(1, released["rows"])
    shares = BudgetShares.after_rows(codebook, n, plan.epsilon, plan.delta, paid)
    sizes = Sizes.of(codebook, n, shares, plan.epsilon, plan.settings)
    cells = _cells(table, shares, sizes)  # 1.
    tables = _tables(table, shares, sizes, cells, rng)  # 2.
    reading = _read(table, shares, sizes, tables)
    start = tables.model(reading) if reading.strength else AdditiveModel(np.log(tables.pi), (), ())  # 3.
    joint = _joint(table, shares, sizes, tables, start, n) if sizes.joint else NO_CORRECTION
    correction = _boosted(table, shares, sizes, cells, tables, start, joint, rng) if sizes.rounds else joint  # 4.
    chosen: dict[str, Any] = {
        "top questions": tables.layout.top.height,
        "joined": tables.layout.joined,
        "reading": reading.kind,
        "strength": reading.strength,
        "scale": _scale(table, shares, sizes, start, correction),  # 5.
        "rules": RULES,
        "attributes measured": len(tables.tables),
        "signal to noise": round(sizes.x, 3),
    }
    if joint.trees:
        chosen |= {"joint rounds": sizes.joint}
    if len(correction.trees) > len(joint.trees):
        chosen |= {"boosted trees": len(correction.trees) - len(joint.trees), "depth": sizes.depth}
    return Grown(tables.forest, released, chosen, correction)


PLAIN = Reading(FLAT, 1.0)
SILENT = Reading(FLAT, 0.0)  # where scores are fitted jointly, tables have none


# ------------------------------------------------------------ 1. cells


def _cells(table: PrivateTable, shares: BudgetShares, sizes: Sizes) -> list[NDArray[np.int64]]:
    """For each attribute the cell of every code. Codes of a number that are no cells, such as that of missing values, keep their own."""
    codebook = table.codebook
    found = [np.arange(size) for size in codebook.sizes]
    numbers = [j for j, cells in enumerate(cells_of(codebook)) if cells > 2]
    if not numbers:
        return found
    price = shares.price(sizes.cells)
    counts = table.ask(LeafSizes([_by_group(codebook, j, found[j]) for j in numbers]), price)
    sd = math.sqrt(variance_of(noise_of(LeafSizes.cost(price, codebook.schema.k, len(numbers)))))
    for j, mass in zip(numbers, counts, strict=True):
        cells = codebook.numeric_cells(j)
        own = equal_mass(mass[:cells], sd, MOST_CELLS)
        found[j] = np.concatenate([own, own[-1] + 1 + np.arange(len(mass) - cells)])
    return found


def _by_group(codebook: Codebook, j: int, group: NDArray[np.int64]) -> Tree:
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, j, group.tolist())
    return builder.build()


# ------------------------------------------------------------ 2. tables


def _tables(table: PrivateTable, shares: BudgetShares, sizes: Sizes, cells: list[NDArray[np.int64]], rng: np.random.Generator) -> Tables:
    """The class counts of q attributes, chosen one after the other by what the tables so far leave to explain."""
    codebook = table.codebook
    groups = [_groups(codebook, j, cell, sizes.groups) for j, cell in enumerate(cells)]
    price = shares.price(sizes.of_tables)
    noise = noise_of(LeafCounts.cost(price, codebook.schema.k))
    counted: dict[int, NDArray[np.int64]] = {}

    def read() -> Tables:
        layout = grouped_layout(codebook, {j: groups[j] for j in counted})
        return Tables(CountedForest(codebook, layout.trees, tuple(counted.values()), (noise,)), layout)

    if not sizes.chooses:
        return _all_tables(table, shares, sizes, groups)
    epsilon = shares.choice(sizes.of_choice, shares.mechanism)
    model = AdditiveModel(np.zeros(codebook.n_classes), (), ())
    for _ in range(sizes.measured):
        left = _offered([j for j in range(len(groups)) if j not in counted], groups, 2 * gradient_width(codebook.n_classes), rng)
        questions = [one_question(codebook.sizes, j, [*groups[j].tolist(), 0]) for j in left]
        j = left[table.ask(ChooseTree(questions, model, shares.concentrated), epsilon)]
        counted[j] = table.ask(LeafCounts([_by_group(codebook, j, groups[j])]), price)[0]
        model = read().model(PLAIN)
    return read()


def _offered(left: list[int], groups: list[NDArray[np.int64]], width: int, rng: np.random.Generator) -> list[int]:
    """Those that one choice is among: all, or as many at random as can be summed at once."""
    leaves = {j: int(groups[j].max()) + 1 for j in left}
    if len(left) <= MOST_CANDIDATES and len(left) * max(leaves.values()) * width <= MOST_SUMS:
        return left
    some: list[int] = []
    widest = 0
    for j in rng.permutation(left).tolist():
        wider = max(widest, leaves[j])
        if len(some) < MOST_CANDIDATES and (len(some) + 1) * wider * width <= MOST_SUMS:
            some.append(j)
            widest = wider
    return some


def _all_tables(table: PrivateTable, shares: BudgetShares, sizes: Sizes, groups: list[NDArray[np.int64]]) -> Tables:
    """The class counts of all attributes at once, under top questions where the signal bears them."""
    codebook = table.codebook
    top, levels = _top_tree(table, shares, sizes)
    layout = grouped_layout(codebook, dict(enumerate(groups)), top, joined=top.n_nodes > 1)
    price, trees = shares.price(sizes.of_tables + (sizes.questions - levels) * TOP_SHARE), layout.trees
    counts = table.ask(LeafCounts(trees), price)
    noise = noise_of(LeafCounts.cost(price, codebook.schema.k, len(trees)))
    return Tables(CountedForest(codebook, trees, tuple(counts), (noise,)), layout)


def _top_tree(table: PrivateTable, shares: BudgetShares, sizes: Sizes) -> tuple[Tree, int]:
    """Up to two levels of questions, each privately chosen among those whose answers leave enough to the tables; and how many were paid."""
    codebook = table.codebook
    builder, candidates = TreeBuilder(codebook.sizes), Candidates(codebook, top_questions(codebook))
    answers = np.array([split.n_children for split in candidates.splits])
    most = MOST_NUMBERS // max(1, sum(codebook.sizes) * codebook.n_classes)
    signal, levels = {0: sizes.top}, 0
    for _ in range(sizes.questions):
        tree = builder.build()
        nodes, rules = [], []
        for node in tree.leaves.tolist():
            known = [attribute for attribute, ways in tree.path(node) if len(ways) == 1]
            keeps = (signal[node] / answers >= TOP_KEEPS) & (len(tree.leaves) * answers <= most) & ~np.isin(candidates.attribute, known)
            if keeps.any():
                nodes.append(node)
                rules.append(keeps)
        if not nodes:
            break
        choice = Choose(tree, nodes, candidates, np.array(rules), GINI, shares.mechanism)
        picks = table.ask(choice, shares.choice(TOP_SHARE, shares.mechanism))
        levels += 1
        for node, pick in zip(nodes, picks.tolist(), strict=True):
            split = candidates.splits[pick]
            for child in builder.split(node, split.attribute, split.groups):
                signal[child] = signal[node] / split.n_children
    return builder.build(), levels


def _read(table: PrivateTable, shares: BudgetShares, sizes: Sizes, tables: Tables) -> Reading:
    """With the top questions or without, and how strongly the attributes speak: what has the best probabilities, by private choice."""
    if sizes.joint:
        return SILENT
    readings = tables.readings
    if not sizes.reading:
        return replace(readings[0], strength=sizes.strength)
    models = [tables.model(reading).probabilities for reading in readings]
    return readings[table.ask(BestModel(models), shares.choice(sizes.reading, PERMUTE_AND_FLIP))]


def _groups(codebook: Codebook, j: int, cell: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The branch of every code in its table: a number's cells put together further, a category's values as they are."""
    cells = codebook.numeric_cells(j)
    if cells <= 2:
        return cell
    own = fewer(cell[:cells], most)
    return np.concatenate([own, own[-1] + 1 + np.arange(len(cell) - cells)])


# ------------------------------------------------------------ 3. joint fit


def _joint(table: PrivateTable, shares: BudgetShares, sizes: Sizes, tables: Tables, start: AdditiveModel, n: int) -> Correction:
    """A tree of one level for each attribute that has several groups, and its scores."""
    codebook, classes = table.codebook, table.codebook.n_classes
    groups = {j: tables.layout.branches(j) for j in tables.tables}
    trees = [one_question(codebook.sizes, j, [*group.tolist(), int(group.max()) + 1]) for j, group in groups.items() if group.max() > 0]
    if not trees:
        return NO_CORRECTION
    price = shares.price(sizes.of_joint_round)
    event = BoostRound.costs(price, codebook.schema.k, 1, len(trees), classes)[-1]
    sd = math.sqrt(variance_of(noise_of(event))) / GRID
    ordered = [_ordered(codebook, tree.attributes[0], groups[tree.attributes[0]]) for tree in trees]
    fit = JointFit([tree.n_nodes - 1 for tree in trees], ordered, n, tables.pi, sd, sizes.joint, hessian_weight(shares.concentrated))
    model = start
    for _ in range(sizes.joint):
        _, sums = table.ask(BoostRound(trees, model, shares.concentrated, len(trees)), price)
        fit.learn([own[: tree.n_nodes] / GRID for tree, own in zip(trees, sums, strict=True)])
        model = start.plus(trees, fit.now())
    return Correction(tuple(trees), tuple(fit.result()), tuple(fit.errors()))


def _ordered(codebook: Codebook, j: int, group: NDArray[np.int64]) -> int:
    """How many groups of an attribute are those of a number, in its order: the first."""
    cells = codebook.numeric_cells(j)
    return int(group[:cells].max()) + 1 if cells else 0


# ------------------------------------------------------------ 4. boosted trees


@dataclass
class _Boosted:
    """The trees so far."""

    trees: list[ObliviousTree] = field(default_factory=list)
    scores: list[NDArray[np.float64]] = field(default_factory=list)
    errors: list[NDArray[np.float64]] = field(default_factory=list)


def _boosted(
    table: PrivateTable,
    shares: BudgetShares,
    sizes: Sizes,
    cells: list[NDArray[np.int64]],
    tables: Tables,
    start: AdditiveModel,
    joint: Correction,
    rng: np.random.Generator,
) -> Correction:
    codebook, classes = table.codebook, table.codebook.n_classes
    model = start.plus(joint.trees, joint.scores)
    scores, told = _of_joint(codebook, tables, joint) if joint.trees else _of_tables(codebook, tables)
    proposals = Proposals(codebook.sizes, cells_of(codebook), cells, scores, np.maximum(told, 1e-9), rng)
    if not proposals.any:
        return joint
    price = shares.price(sizes.of_round)
    event = BoostRound.costs(price, codebook.schema.k, CANDIDATES, sizes.together, classes)[-1]
    sd = math.sqrt(variance_of(noise_of(event))) / GRID
    trees = sizes.rounds * sizes.together if shares.concentrated else None
    steps = LeafSteps(classes, sd, sizes.step(shares.concentrated), hessian_weight(shares.concentrated), trees)
    found = _Boosted()
    for _ in range(sizes.rounds):
        candidates = proposals.candidates(sizes.depth, sizes.together)
        chosen, sums = table.ask(BoostRound(candidates, model, shares.concentrated, sizes.together), price)
        for place, own in zip(chosen, sums, strict=True):
            step, error = steps.of(own / GRID)
            proposals.learn(candidates[place])
            found.trees.append(candidates[place])
            found.scores.append(step)
            found.errors.append(error)
        new = slice(-sizes.together, None)
        model = model.plus(found.trees[new], found.scores[new])
    return Correction((*joint.trees, *found.trees), (*joint.scores, *found.scores), (*joint.errors, *found.errors))


def _of_tables(codebook: Codebook, tables: Tables) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """What is released of each attribute: the scores of its codes, and how much it tells."""
    known = tables.attributes
    scores = [known[j].flat[known[j].group] if j in known else np.zeros((d, codebook.n_classes)) for j, d in enumerate(codebook.sizes)]
    most = max(one.told for one in known.values())
    return scores, np.array([known[j].told if j in known else 0.1 * most for j in range(len(codebook.sizes))])


def _of_joint(codebook: Codebook, tables: Tables, joint: Correction) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """The same, where scores were fitted jointly: how far they differ from row to row, less what the noise does."""
    scores, told = [np.zeros((d, codebook.n_classes)) for d in codebook.sizes], np.zeros(len(codebook.sizes))
    for tree, own, errors in zip(joint.trees, joint.scores, joint.errors, strict=True):
        assert isinstance(tree, ObliviousTree)
        j = tree.attributes[0]
        rows = np.maximum(tables.tables[j].sum(axis=(0, 2)), 1e-9)
        groups = own[:-1] - np.average(own[:-1], axis=0, weights=rows)
        scores[j] = groups[tree.answers[0].array[:-1]]
        told[j] = max(float(np.average((groups**2 - errors[:-1] ** 2).mean(axis=1), weights=rows)), 0.0)
    return scores, told + 1e-3 * max(float(told.max()), 1e-3)


# ------------------------------------------------------------ 5. scale


def _scale(table: PrivateTable, shares: BudgetShares, sizes: Sizes, start: AdditiveModel, correction: Correction) -> float:
    if not sizes.scale:
        return sizes.margins if correction.trees else SCALES[0]
    model = start.plus(correction.trees, correction.scores)
    return SCALES[table.ask(BestScale(model, SCALES), shares.choice(sizes.scale, PERMUTE_AND_FLIP))]
