"""The Hedgerow forest, our own: a few chosen questions on top, the one-way tables of all attributes under them, added up as log-odds.

    0. n̂      a noisy number of rows, where none is declared public; paid in pure ε
    1. ν      = n̂ / (k̄·C·s): rows in a cell of a one-way table against its noise, if all the budget went there. A public number from
              here on; it and public facts decide everything below.                                       (`signal_to_noise`)
    2. Few rows (ν < 4): only the q = ⌈m·(ν/4)²⌉ attributes that tell most are measured, at least C − 1, privately chosen; numbers in
       coarser cells.
       Many rows (ν ≥ 8): up to two top questions are privately chosen, wherever their answers keep enough rows.
    3. Count  the tables of all attributes under the top tree, once, in one event: one row is in one cell of each.
    4. Read   the counts (`inference/additive.py`), in the way that gets the most rows right: a private choice.
    5. Step   (δ > 0 only) noisy gradient steps that correct what the attributes say together: they average out in Gaussian noise.
    6. Scale  the margins, so that probabilities fit: a private choice among a few numbers.

Every share is of what is left after n̂: of ε, or of ρ where δ > 0. What a stage does not need goes to the counts.
m attributes, q of them measured, d_j values, C classes, k̄ the mean of min(d_j, 16), s the standard deviation of the noise on a count
(where several rows of a person are counted, so many times as large: ν and all that follows from it see the true noise).
docs/HEDGEROW.md has the page with reasons and measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hedgerow.accounting.events import PERMUTE_AND_FLIP, Event
from hedgerow.accounting.noise import noise_of, variance_of
from hedgerow.errors import PlanError
from hedgerow.growers.budget_shares import SELECT_BELOW, BudgetShares, signal_to_noise
from hedgerow.inference.additive import RULES, SCALES, Reading, Tables
from hedgerow.inference.layout import MOST_CELLS, TOGETHER, Layout, attributes_to_ask, cells_of
from hedgerow.private_table import PrivateTable
from hedgerow.queries import Best, BestScale, Choose, GradientSums, LeafCounts, Rows
from hedgerow.queries.scores import BRIER, GINI, MAX
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.additive_model import GRID, AdditiveModel, MostProbable
from hedgerow.trees.forest import NO_CORRECTION, Correction, CountedForest, Grown
from hedgerow.trees.plan import ROWS_SHARE, Plan
from hedgerow.trees.splits import by_threshold, by_value
from hedgerow.trees.tree import Tree, TreeBuilder

ALGORITHM = "Hedgerow forest"

SELECT_SHARE = Fraction(1, 4)
TOP_FROM, TOP_SHARE, TOP_QUESTIONS = 8, Fraction(3, 100), 2
ROWS_AGAINST_NOISE = 2  # a top question needs so many rows for each (answer, class), in units of s
KEEPS = 2  # ν that the tables under a top question must keep
READ_SHARE, READ_FROM = Fraction(3, 100), 30  # a choice among readings is worth it if its rate times n̂ is at least this
SCALE_SHARE, SCALE_FROM = Fraction(2, 100), 250  # the same for the scale of the probabilities, which differ less
STEPS_MOST, STEPS_HALF = Fraction(1, 2), 10  # share of the gradient steps: half of STEPS_MOST at ν = STEPS_HALF
LENGTH_MOST, LENGTH_PER_NU = 12.0, 0.125  # how far the steps go in all
EPOCHS, STABLE = 20, 6.0  # at least so many steps, and enough that one of them is no longer than STABLE/q
LARGEST_STEP = 50.0  # no score is moved further: where a top question left few rows to its tables, cells are larger than they seem
SOFT = 4.0  # a cell counts as if it had so many standard deviations of noise more rows: small cells hardly move


@dataclass(frozen=True)
class Settings:
    """Nothing to tune."""


@dataclass(frozen=True)
class Stages:
    """What ν and public facts decide, before any row but n̂ was looked at."""

    nu: float
    measured: int
    questions: int
    reads: bool
    scales: bool
    steps: Fraction
    length: float
    epochs: int

    @classmethod
    def of(cls, codebook: Codebook, n: int, shares: BudgetShares) -> Stages:
        m = len(codebook.sizes)
        nu = signal_to_noise(codebook, n, shares)
        few = max(codebook.n_classes - 1, math.ceil(m * (nu / SELECT_BELOW) ** 2))
        measured = min(m, max(1, few)) if nu < SELECT_BELOW else m
        questions = TOP_QUESTIONS if nu >= TOP_FROM else 0
        reads = shares.rate(READ_SHARE) * n >= READ_FROM
        scales = shares.rate(SCALE_SHARE) * n >= SCALE_FROM
        steps, length = Fraction(0), 0.0
        if shares.concentrated:
            steps = STEPS_MOST * Fraction(round(100 * nu / (nu + STEPS_HALF)), 100)
            length = min(LENGTH_MOST, nu * LENGTH_PER_NU)
        return cls(nu, measured, questions, reads, scales, steps, length, max(EPOCHS, math.ceil(length * measured / STABLE)))

    @property
    def together(self) -> int:
        """Neighbouring numeric cells that share a branch: where rows are few, so that fewer numbers are noised."""
        return TOGETHER if self.nu < SELECT_BELOW else 1

    def left(self, levels: int, m: int) -> Fraction:
        """The share that the counts get when so many levels of top questions were asked."""
        spent = levels * TOP_SHARE + self.reads * READ_SHARE + self.scales * SCALE_SHARE + self.steps
        return 1 - spent - (SELECT_SHARE if self.measured < m else 0)

    def words(self, m: int) -> dict[str, str]:
        """Which stages run, why and for which share of what is left after n̂, for people."""

        def paid(share: Fraction) -> str:
            return f"for {100 * float(share):.3g} % of the budget"

        few = self.measured < m
        known = f"{self.measured} of {m} attributes, what tells most by private choice {paid(SELECT_SHARE)}: ν is below {SELECT_BELOW}"
        steps = f"they need δ > 0{'' if self.nu >= SELECT_BELOW else f' and ν of {SELECT_BELOW} or more'}"
        asked = f"up to {self.questions}, by private choice {paid(TOP_SHARE)} each: ν is {TOP_FROM} or more"
        return {
            "signal to noise ν": f"{self.nu:.3g}: rows in a cell of a table, spread evenly, against the noise on its counts",
            "measured": known if few else f"all {m} attributes",
            "top questions": asked if self.questions else f"none: ν is below {TOP_FROM}",
            "counts": f"{100 * float(self.left(self.questions, m)):.3g} % of the budget, and what other stages do not need",
            "reading": f"the best, by private choice {paid(READ_SHARE)}" if self.reads else "the plain one: too few rows for a choice",
            "probabilities": f"scaled, by private choice {paid(SCALE_SHARE)}" if self.scales else "as they come: too few rows for a choice",
            "gradient steps": f"{self.epochs} {paid(self.steps)}" if self.steps else f"none: {steps}",
        }


def plan(codebook: Codebook, settings: Settings, epsilon: Fraction, delta: Fraction, rows: int | None, public: bool) -> Plan:
    """What `grow` would do for a table of that many rows (a public number, or one that is assumed)."""
    if rows is None:
        raise PlanError(
            "plan: which stages run depends on the number of rows, and schema.rows declares none. Give an assumed size: plan(rows=10000)."
        )
    for_rows = Fraction(0) if public else ROWS_SHARE * epsilon
    rest = BudgetShares.after_rows(codebook, max(1, rows), epsilon, delta, for_rows)
    stages = Stages.of(codebook, max(1, rows), rest)
    m, questions, k = len(codebook.sizes), stages.questions, codebook.schema.k
    events: list[Event] = [] if public else [Rows.cost(for_rows, k)]
    events += [_choice(rest, SELECT_SHARE / stages.measured)] * (stages.measured if stages.measured < m else 0)
    events += [_choice(rest, TOP_SHARE)] * questions
    flat = Layout(TreeBuilder(codebook.sizes).build(), False, tuple(range(stages.measured)), stages.together, cells_of(codebook))
    events.append(LeafCounts.cost(rest.price(stages.left(questions, m)), k, stages.measured))
    if stages.reads:
        events.append(Best.cost(rest.choice(READ_SHARE, PERMUTE_AND_FLIP), k, MAX))
    if stages.steps:
        step = GradientSums.cost(rest.price(stages.steps / stages.epochs), k, stages.measured, codebook.n_classes)
        events += [step] * stages.epochs
    if stages.scales:
        events.append(BestScale.cost(rest.choice(SCALE_SHARE, PERMUTE_AND_FLIP), k, BRIER))
    source = "declared public" if public else "assumed; fit charges for a noisy count"
    return Plan(
        ALGORITHM,
        epsilon,
        rows,
        source,
        codebook.n_classes,
        tuple(events),
        flat.trees,
        public,
        settings,
        1,
        stages.words(m),
        delta,
    )


def _choice(shares: BudgetShares, share: Fraction) -> Event:
    return Choose.cost(shares.choice(share, shares.mechanism), shares.rows_per_person, GINI, shares.mechanism)


def grow(table: PrivateTable, plan: Plan) -> Grown:
    """Steps 0 to 6."""
    assert plan.epsilon is not None
    codebook = table.codebook
    released: dict[str, int] = {}
    n, paid = plan.rows or 1, Fraction(0)
    if not plan.fixed:  # 0.
        paid = ROWS_SHARE * plan.epsilon
        released["rows"] = table.ask(Rows(), paid)
        n = max(1, released["rows"])
    shares = BudgetShares.after_rows(codebook, n, plan.epsilon, plan.delta, paid)
    m = len(codebook.sizes)
    stages = Stages.of(codebook, n, shares)  # 1.
    wanted = _select(table, shares, stages) if stages.measured < m else tuple(range(m))  # 2.
    top, joined, levels = _top_tree(table, shares, stages, n)
    layout = Layout(top, joined, attributes_to_ask(top, joined, wanted), stages.together, cells_of(codebook))
    trees = layout.trees
    price = shares.price(stages.left(levels, m))
    counts = table.ask(LeafCounts(trees), price)  # 3.
    noise = noise_of(LeafCounts.cost(price, codebook.schema.k, len(trees)))
    forest = CountedForest(codebook, trees, tuple(counts), (noise,))
    tables = Tables(forest, layout)
    reading = _read(table, shares, stages, tables)  # 4.
    correction = _steps(table, shares, stages, tables, reading) if stages.steps else NO_CORRECTION  # 5.
    scale = _scale(table, shares, stages, tables.model(reading), correction)  # 6.
    chosen: dict[str, Any] = {
        "top questions": top.height,
        "joined": joined,
        "together": stages.together,
        "reading": reading.kind,
        "strength": reading.strength,
        "scale": scale,
        "rules": RULES,
        "attributes measured": len(tables.tables),
        "signal to noise": round(stages.nu, 3),
    }
    if correction.trees:
        chosen["gradient steps"] = stages.epochs
    return Grown(forest, released, chosen, correction)


def _select(table: PrivateTable, shares: BudgetShares, stages: Stages) -> tuple[int, ...]:
    """q attributes, one private choice after the other."""
    root, candidates = TreeBuilder(table.codebook.sizes).build(), by_value(table.codebook)
    allowed = np.ones((1, len(candidates)), dtype=bool)
    epsilon = shares.choice(SELECT_SHARE / stages.measured, shares.mechanism)
    for _ in range(stages.measured):
        pick = int(table.ask(Choose(root, [0], candidates, allowed, GINI, shares.mechanism), epsilon)[0])
        allowed[0, pick] = False
    return tuple(int(a) for a in np.flatnonzero(~allowed[0]))


def _top_tree(table: PrivateTable, shares: BudgetShares, stages: Stages, n: int) -> tuple[Tree, bool, int]:
    """The top tree, whether the tables are measured under it, and how many levels were paid for.

    The first question may have as many answers as leave rows for their class counts; the tables go under it only if they keep ν there.
    A second level is asked only under such tables, of what keeps them so.
    """
    codebook = table.codebook
    builder, candidates = TreeBuilder(codebook.sizes), by_threshold(codebook)
    answers = np.array([split.n_children for split in candidates.splits])
    s = shares.noise_sd(len(codebook.sizes))
    most_leaves = MOST_CELLS // max(1, sum(codebook.sizes) * codebook.n_classes)
    joined, levels, nu, below = False, 0, {0: stages.nu}, 1
    for level in range(stages.questions):
        tree = builder.build()
        nodes, rules = [], []
        for node in tree.leaves.tolist():
            known = {attribute for attribute, ways in tree.path(node) if len(ways) == 1}
            free = (answers > 1) & ~np.isin(candidates.attribute, list(known))
            enough = n / (answers * codebook.n_classes) >= ROWS_AGAINST_NOISE * s
            if level:
                enough = (nu[node] / answers >= KEEPS) & (below * answers <= most_leaves)
            if (free & enough).any():
                nodes.append(node)
                rules.append(free & enough)
        if not nodes:
            break
        epsilon = shares.choice(TOP_SHARE, shares.mechanism)
        picks = table.ask(Choose(tree, nodes, candidates, np.array(rules), GINI, shares.mechanism), epsilon)
        levels += 1
        for node, pick in zip(nodes, picks.tolist(), strict=True):
            split = candidates.splits[pick]
            for child in builder.split(node, split.attribute, split.groups):
                nu[child] = nu[node] / split.n_children
        if level == 0:
            below = len(nu) - 1
            joined = nu[1] >= KEEPS and below <= most_leaves
            if not joined:
                break
    return builder.build(), joined, levels


def _read(table: PrivateTable, shares: BudgetShares, stages: Stages, tables: Tables) -> Reading:
    readings = tables.readings
    if not stages.reads:
        return readings[0]
    models = [tables.model(reading) for reading in readings]
    best = table.ask(Best([MostProbable(model) for model in models]), shares.choice(READ_SHARE, PERMUTE_AND_FLIP))
    return readings[best]


def _steps(table: PrivateTable, shares: BudgetShares, stages: Stages, tables: Tables, reading: Reading) -> Correction:
    """`epochs` noisy gradient steps of length/epochs each, on one tree of one question for each measured attribute."""
    start = tables.model(reading)
    price = shares.price(stages.steps / stages.epochs)
    asked, scores, weight = [], [], []
    soft = SOFT * shares.noise_sd(len(tables.attributes), stages.steps)
    for j, attribute in tables.attributes.items():
        builder = TreeBuilder(table.codebook.sizes)
        groups = attribute.group.tolist()
        builder.split(0, j, groups)
        asked.append(builder.build())
        scores.append(np.zeros((1 + max(groups) + 1, table.codebook.n_classes)))
        weight.append(stages.length / stages.epochs / GRID / (np.maximum(attribute.rows, 1.0)[:, None] + soft))
    model = start
    for _ in range(stages.epochs):
        steps = []
        gradients = table.ask(GradientSums(asked, model), price)
        for one, sums, w in zip(scores, gradients, weight, strict=True):
            step = np.zeros_like(one)
            step[1:] = np.hstack([-w * sums, w * sums]) if one.shape[1] == 2 else w * sums
            step = np.clip(one + step, -LARGEST_STEP, LARGEST_STEP) - one
            steps.append(step)
            one += step
        model = AdditiveModel(model.base, (*model.trees, *asked), (*model.scores, *steps))  # goes on where the last one ended
    event = GradientSums.cost(price, table.codebook.schema.k, len(asked), table.codebook.n_classes)
    sd = math.sqrt(variance_of(noise_of(event)) * stages.epochs)
    errors = [np.vstack([[0.0], np.minimum(w * sd, 5.0)]) for w in weight]
    # Rounded as a file holds them: what is loaded predicts the same.
    rounded = tuple(np.asarray(np.round(one, 6), dtype=np.float64) for one in scores)
    return Correction(tuple(asked), rounded, tuple(np.repeat(np.round(e, 6), table.codebook.n_classes, axis=1) for e in errors))


def _scale(table: PrivateTable, shares: BudgetShares, stages: Stages, read: AdditiveModel, correction: Correction) -> float:
    if not stages.scales:
        return SCALES[0]
    model = AdditiveModel(read.base, (*read.trees, *correction.trees), (*read.scores, *correction.scores))
    return SCALES[table.ask(BestScale(model, SCALES), shares.choice(SCALE_SHARE, PERMUTE_AND_FLIP))]
