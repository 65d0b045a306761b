"""Reading a Hedgerow forest: from its noisy tables to an additive model. Post-processing: it costs nothing.

The class shares π of the table are drawn down the top tree, each node's to its parent's; the log-odds of every attribute likewise,
first for all rows, then inside each leaf of the top tree. Two ways to read the same counts:

    tree   F(x) = log π(leaf of x) + λ·Σ_j w_j·score_j(leaf of x, x_j)
    flat   F(x) = log π            + λ·Σ_j w_j·score_j(x_j)               the same without the top tree: naive Bayes

λ is the strength of the reading, w_j the information cap. Which reading fits best is a private choice (`growers/hedgerow.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError
from hedgerow.inference.base_rate import moved_base
from hedgerow.inference.coverage import far_by_noise, full_trees
from hedgerow.inference.layout import TOGETHER, Layout, grouped_layout_of, layout_of
from hedgerow.inference.tables import (
    Floats,
    add_groups,
    cap_errors,
    information,
    information_cap,
    information_error,
    log_odds,
    put_together,
    rows_of_groups,
    rows_of_values,
)
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.forest import NO_CORRECTION, Correction, CountedForest
from hedgerow.trees.tree import Tree

TREE, FLAT = "tree", "flat"
# How counts become scores: every constant here, in `tables.py`, `base_rate.py`, and what `coverage.py` says of whole tables (`BY_NOISE`,
# `class_shares`). A release that is loaded must predict as it did.
RULES = 5
COUNTED_RULES = 4  # the same, the intercept as the scores have it: of tables that are only added up, too
LACKING_RULES = 3  # the same, tables lacking rows from `LACKING` on: of 31 without such rows one was found in every third forest
WHOLE_RULES = 2  # the same, every table taken to hold all rows, also where many have no declared value
OLD_RULES = 1  # the same, all codes or equal numbers of them in a branch: of forests of version 0.1
LACKING = 3.0  # standard deviations by which a table must hold fewer rows than others, by the rules before
STRENGTHS = {TREE: (1.0, 0.5, 0.25, 0.125), FLAT: (1.0, 0.5, 0.25)}  # what the top tree says, attributes that repeat it say again
MANY, OF_MANY = 9, 0.7  # attributes from which on tables that are only added up are read at this strength: they repeat each other
SCALES = (1.0, 1.4, 2.0, 0.7, 0.5, 0.35)  # by which margins may be multiplied before they become probabilities
UNCHOSEN = 0.7  # those of boosted trees in pure ε, where rows are too few for a choice: clipped gradients make them too sure
BELOW = 0.25  # how far a leaf's own log-odds are trusted to differ from its parent's: its prior variance, in units of e²


@dataclass(frozen=True)
class Reading:
    """How the counts are read: with the top tree or without, and how strongly the attributes speak."""

    kind: str
    strength: float


@dataclass(frozen=True, eq=False)
class Attribute:
    """What one attribute says: `group` of every code; scores and their noise (leaves of `under`, groups, classes); of all rows: flat.
    told: how much it tells about the class, in nats, and the error of that
    """

    group: NDArray[np.int64]
    rows: Floats
    flat: Floats
    flat_noise: Floats
    told: float
    told_error: float
    scores: Floats
    noise: Floats
    told_below: float
    told_below_error: float


class Tables:
    """The counts of a forest, put in order once; every reading starts from them."""

    def __init__(self, forest: CountedForest, layout: Layout, rules: int = RULES) -> None:
        self.forest, self.layout, self.rules = forest, layout, rules
        self.codebook = forest.codebook
        self.s = forest.leaf_noise_sd
        self._measure()
        self.pi = _shares(self.total, max(self.total_sd, 1.0))
        self.n = max(float(self.total.sum()), 1.0)
        self._shares_down()

    # ------------------------------------------------------------ counts that agree

    def _measure(self) -> None:
        """Class totals of all rows and of each leaf of the top tree: every table tells them, the finer the worse."""
        layout, s2 = self.layout, max(self.s, 1e-9) ** 2
        counts = [np.asarray(c, dtype=np.float64) for c in self.forest.counts]
        own = counts[1:] if layout.asks else counts
        places, width = len(layout.under.leaves), self.codebook.n_classes
        lacking = self._lacking_trees(counts)
        self.tables: dict[int, Floats] = {}
        weight, told = np.zeros(places), np.zeros((places, width))
        for t, (j, flat) in enumerate(zip(layout.attributes, own, strict=True), len(counts) - len(own)):
            d = int(layout.branches(j).max()) + 1
            asked = layout.asked(j)
            table = np.full((places, d, width), np.nan)
            silent = places - len(asked)  # leaves of `under` that say the code already keep their own numbers, and come first
            table[asked] = flat[silent:].reshape(len(asked), d, width)
            self.tables[j] = table
            if t in lacking:
                continue
            weight[asked] += 1 / (d * s2)
            told[asked] += table[asked].sum(axis=1) / (d * s2)
            others = np.setdiff1d(np.arange(places), asked)
            weight[others] += 1 / s2
            told[others] += flat[:silent] / s2
        if layout.asks and layout.joined:
            weight, told = weight + 1 / s2, told + counts[0] / s2
        known = np.maximum(weight, 1e-300)  # 0 where the top tree tells everything: then it is not used
        totals, variance = told / known[:, None], 1 / known
        if layout.asks and not layout.joined:
            leaves = counts[0]
            both = weight[0] + 1 / (len(leaves) * s2)
            self.total = (told[0] + leaves.sum(axis=0) / (len(leaves) * s2)) / both
            self.total_sd = float(np.sqrt(1 / both))
            self.leaf_total, self.leaf_variance = leaves, np.full(len(leaves), s2)
            totals = self.total[None]
        else:
            self.total, self.total_sd = totals.sum(axis=0), float(np.sqrt(variance.sum()))
            self.leaf_total, self.leaf_variance = totals, variance
        n, first = max(float(self.total.sum()), 1.0), len(counts) - len(own)
        held = {j: float(counts[t].sum()) / n for t, j in enumerate(layout.attributes, first) if t in lacking}
        self.unknown = {j: float(np.clip(1 - share, 0, 1)) for j, share in held.items()}  # the share of rows that are in no cell
        own_sd = {j: self.s * np.sqrt(counts[t].size) for t, j in enumerate(layout.attributes, first) if t in lacking}
        self.unknown_errors = {j: float(np.hypot(sd, held[j] * np.sqrt(width) * self.total_sd) / n) for j, sd in own_sd.items()}
        for j, table in self.tables.items():
            if j not in self.unknown:
                table += ((totals - table.sum(axis=1)) / table.shape[1])[:, None, :]
        for j, table in self.tables.items():
            for place in np.flatnonzero(np.isnan(table[:, 0, 0])):  # all rows of that leaf have the code that its path says
                table[place] = 0.0
                table[place, layout.branches(j)[layout.known[place, j]]] = totals[place]
        for told_by_top in np.flatnonzero((layout.known >= 0).all(axis=0)).tolist() if layout.asks else ():
            table = np.zeros((1, self.codebook.sizes[told_by_top], width))  # the top tree is its table
            np.add.at(table[0], layout.known[:, told_by_top], self.leaf_total)
            self.tables[told_by_top] = table

    def _lacking_trees(self, counts: list[Floats]) -> set[int]:
        """Trees that hold clearly fewer rows than others: many rows have no declared value of their attribute, and are in no cell."""
        if self.rules < LACKING_RULES or self.s <= 0 or len(counts) < 2:
            return set()
        totals, errors = np.array([own.sum() for own in counts]), self.s * np.sqrt([own.size for own in counts])
        far = [LACKING] * len(counts) if self.rules == LACKING_RULES else far_by_noise(self.forest)
        return set(range(len(counts))) - full_trees(totals, errors, far)

    def _shares_down(self) -> None:
        """Class shares and rows of every node of the top tree, each node's shares drawn to its parent's."""
        top = self.layout.top
        totals = _add_up(top, self.leaf_total)
        sds = np.sqrt(_add_up(top, self.leaf_variance[:, None]))
        width = self.codebook.n_classes
        self.node_shares = np.tile(self.pi, (top.n_nodes, 1))
        self.node_rows = np.maximum(totals.sum(axis=1), np.maximum(sds[:, 0] * np.sqrt(width) / 2, 1.0))
        for nodes in top.levels[1:]:
            prior = self.node_shares[top.parent[nodes]]
            raw = totals[nodes].sum(axis=1, keepdims=True)
            odds = log_odds(totals[nodes], raw, prior, prior, self.node_rows[nodes, None], sds[nodes], 1.0)
            self.node_shares[nodes] = odds.shares

    # ------------------------------------------------------------ what each attribute says

    @cached_property
    def attributes(self) -> dict[int, Attribute]:
        return {j: self._attribute(j) for j in sorted(self.tables)}

    def _attribute(self, j: int) -> Attribute:
        table, layout = self.tables[j], self.layout
        whole = table.sum(axis=0)
        noise = self.noise(j)
        branch = layout.branches(j)
        cells = self.codebook.numeric_cells(j)
        n = max(self.n * (1 - self.unknown.get(j, 0.0)), 1.0)
        of_branch = put_together(whole, int(branch[cells - 1]) + 1 if cells else 0, n, noise)
        group = of_branch[branch]
        members = np.bincount(of_branch)[:, None]
        merged = add_groups(table, of_branch)
        everyone = merged.sum(axis=0)
        raw = everyone.sum(axis=1, keepdims=True)
        s = noise * np.sqrt(members)
        n_v = rows_of_groups(raw, np.full_like(raw, n / len(raw)), self.codebook.n_classes, s)
        odds = log_odds(everyone, raw, self.pi, self.pi, n_v, s, 1.0)
        told = information(n_v[:, 0], odds.shares, self.pi)
        told_error = information_error(n_v[:, 0], odds.shares, self.pi, odds.noise)
        below = (odds.scores[None], odds.noise[None], told, told_error)
        if layout.joined and j in layout.attributes:
            below = self._below(j, merged, members, odds.scores, odds.noise, n_v[:, 0] / n_v.sum())
        return Attribute(group, n_v[:, 0], odds.scores, odds.noise, told, told_error, *below)

    def noise(self, j: int) -> float:
        """Standard deviation of the noise on one number of the attribute's table, of all rows."""
        return self.s * math.sqrt(len(self.layout.asked(j)) if j in self.layout.attributes else 1)

    def shares_of_codes(self, j: int) -> Floats:
        """The share of rows with each code, from the table of the attribute; evenly where it was not measured. Values of a category differ
        as far as that is not noise. A number's cells share what their group has by their noisy counts, which may be below 0.
        """
        if j not in self.attributes:
            return np.full(self.codebook.sizes[j], 1 / self.codebook.sizes[j])
        one, branch = self.attributes[j], self.layout.branches(j)
        counted, members = self.tables[j].sum(axis=(0, 2)), np.bincount(branch)  # codes of one branch are alike
        if not self.codebook.numeric_cells(j):
            rows = (rows_of_values(counted, members, self.noise(j) * np.sqrt(self.codebook.n_classes)) / members)[branch]
            return np.asarray(rows / rows.sum())
        raw = (np.maximum(counted, 1e-9) / members)[branch]
        inside = raw / np.bincount(one.group, raw)[one.group]
        return np.asarray((one.rows / one.rows.sum())[one.group] * inside)

    def _below(
        self, j: int, merged: Floats, members: NDArray[np.int64], scores: Floats, noise: Floats, spread: Floats
    ) -> tuple[Floats, Floats, float, float]:
        """The log-odds inside each leaf of the top tree, level by level, each drawn to those of the node above it."""
        top, layout = self.layout.top, self.layout
        counts = _add_up(top, merged)
        asked = np.zeros(len(top.leaves))
        asked[layout.asked(j)] = 1
        draws = _add_up(top, asked[:, None])[:, 0]
        at = np.tile(scores, (top.n_nodes, 1, 1))
        error = np.tile(noise, (top.n_nodes, 1, 1))
        share = np.tile(spread, (top.n_nodes, 1))
        rows = np.ones((top.n_nodes, len(members)))
        told = np.ones_like(at) / self.codebook.n_classes
        for nodes in top.levels[1:]:
            up = top.parent[nodes]
            t = counts[nodes]
            raw = t.sum(axis=2, keepdims=True)
            s = self.s * np.sqrt(np.maximum(draws[nodes], 1)[:, None, None] * members[None])
            against = self.node_shares[nodes][:, None, :]
            prior = _softmax(np.log(against) + at[up])
            expected = (self.node_rows[nodes, None] * share[up])[:, :, None]
            n_v = rows_of_groups(raw, expected, self.codebook.n_classes, s)
            odds = log_odds(t, raw, prior, against, n_v, s, BELOW)
            at[nodes], error[nodes], told[nodes], rows[nodes] = odds.scores, odds.noise, odds.shares, n_v[:, :, 0]
            share[nodes] = rows[nodes] / rows[nodes].sum(axis=1, keepdims=True)
        places = layout.asked(j)
        leaves = top.leaves[places]
        rows_at = rows[leaves] / rows[leaves].sum(axis=1, keepdims=True) * self.node_rows[leaves, None]
        share_asked = float(self.node_rows[leaves].sum() / self.node_rows[top.leaves].sum())
        against = self.node_shares[leaves][:, None, :]
        known = information(rows_at, told[leaves], against), information_error(rows_at, told[leaves], against, error[leaves])
        return at[top.leaves], error[top.leaves], share_asked * known[0], share_asked * known[1]

    # ------------------------------------------------------------ readings

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The ways to read these counts, the plainest first."""
        kinds = (TREE, FLAT) if self.layout.asks else (FLAT,)
        return tuple(Reading(kind, strength) for kind in kinds for strength in STRENGTHS[kind])

    def weights(self, reading: Reading) -> dict[int, float]:
        """λ·w_j for each attribute."""
        used, entropy = self._capped(reading)
        told = [one.told if reading.kind == FLAT else one.told_below for one in used.values()]
        return dict(zip(used, (reading.strength * information_cap(np.array(told), entropy)).tolist(), strict=True))

    def weight_errors(self, reading: Reading) -> dict[int, float]:
        """What the noise may have done to w_j, as a share of it."""
        used, entropy = self._capped(reading)
        flat = reading.kind == FLAT
        told = [(one.told, one.told_error) if flat else (one.told_below, one.told_below_error) for one in used.values()]
        values, errors = np.array(told).reshape(-1, 2).T  # the top tree may ask all attributes
        return dict(zip(used, cap_errors(values, errors, entropy).tolist(), strict=True))

    def _capped(self, reading: Reading) -> tuple[dict[int, Attribute], float]:
        """The attributes of a reading, and what there is to know about the class."""
        if reading.kind == FLAT:
            return self.attributes, float(-(self.pi * np.log(self.pi)).sum())
        leaves = self.layout.top.leaves
        share = self.node_rows[leaves] / self.node_rows[leaves].sum()
        entropy = float(-(share[:, None] * self.node_shares[leaves] * np.log(self.node_shares[leaves])).sum())
        return {j: one for j, one in self.attributes.items() if j in self.layout.attributes}, entropy

    def model(self, reading: Reading) -> AdditiveModel:
        layout, width = self.layout, self.codebook.n_classes
        weights = self.weights(reading)
        base = np.log(self.pi) if reading.kind == FLAT else np.zeros(width)
        scores = []
        if layout.asks:
            top = np.log(self.node_shares) if reading.kind == TREE else np.zeros((layout.top.n_nodes, width))
            if reading.kind == FLAT:
                for j in set(weights) - set(layout.attributes):
                    top[layout.top.leaves] += self._codes(j, reading.kind, weights[j])[0][layout.known[:, j]]
            scores.append(top)
        for j, tree in zip(layout.attributes, self._own_trees, strict=True):
            node_scores = np.zeros((tree.n_nodes, width))
            codes = self._codes(j, reading.kind, weights.get(j, 0.0))
            asked = layout.asked(j)
            node_scores[layout.under.n_nodes :] = codes[asked][:, layout.first_codes(j)].reshape(-1, width)
            if reading.kind == FLAT and layout.joined:
                for place in np.setdiff1d(np.arange(len(layout.under.leaves)), asked):
                    node_scores[layout.under.leaves[place]] = codes[place, layout.known[place, j]]
            scores.append(node_scores)
        return AdditiveModel(base, self.forest.trees, tuple(scores))

    @property
    def _own_trees(self) -> tuple[Tree, ...]:
        return self.forest.trees[1:] if self.layout.asks else self.forest.trees

    def _codes(self, j: int, kind: str, weight: float) -> Floats:
        """Scores (leaves of `under`, codes, classes) of one attribute, weighted."""
        one = self.attributes[j]
        values = np.tile(one.flat, (len(self.layout.under.leaves), 1, 1)) if kind == FLAT else one.scores
        return np.asarray(weight * values[:, one.group])


def _shares(total: Floats, least: float) -> Floats:
    floored = np.maximum(total, least)
    return np.asarray(floored / floored.sum())


def _softmax(values: Floats) -> Floats:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _add_up(tree: Tree, leaf_values: Floats) -> Floats:
    """Sums over the leaves below every node."""
    return np.asarray(tree.add_up(leaf_values))  # type: ignore[arg-type]


# ---------------------------------------------------------------- what a release predicts with


class AdditiveForest:
    """A Hedgerow forest as a release holds it: its counts, the reading that was chosen, the correction by gradient steps.

    `model` gives margins, whose softmax are the probabilities; how far the noise may have moved them is in `effect_noise.py`. All of its
    scores are multiplied by `scale`, one number, privately chosen: attributes that repeat each other make a model too sure of itself, and
    trees that are shrunk for their noise not sure enough. `scale_rate` is the ε of that choice, for one row of a person, and `reading_rate`
    that of the choice of the reading; 0 without one. `joint_noise` is the standard deviation of the noise on a sum of gradients of a joint
    fit, after all of its rounds; 0 without one. `boosted_noise` is that of one sum of a boosted tree.
    """

    def __init__(
        self,
        forest: CountedForest,
        chosen: Mapping[str, Any],
        correction: Correction = NO_CORRECTION,
        scale_rate: float = 0.0,
        reading_rate: float = 0.0,
        joint_noise: float = 0.0,
        boosted_noise: float = 0.0,
    ) -> None:
        layout, self.reading = checked_reading(forest, chosen)
        self.tables, self.correction = Tables(forest, layout, chosen.get("rules", OLD_RULES)), correction
        self.scale, self.scale_rate, self.reading_rate = float(chosen.get("scale", 1.0)), scale_rate, reading_rate
        self.joint_noise, self.boosted_noise = joint_noise, boosted_noise

    @cached_property
    def model(self) -> AdditiveModel:
        scaled = self._scaled
        return AdditiveModel(scaled.base + self.moved, scaled.trees, scaled.scores)

    @cached_property
    def _scaled(self) -> AdditiveModel:
        read = self.tables.model(self.reading)
        scores = tuple(self.scale * scores for scores in (*read.scores, *self.correction.scores))
        return AdditiveModel(self.scale * read.base, (*read.trees, *self.correction.trees), scores)

    @cached_property
    def moved(self) -> Floats:
        """How far the intercept is moved where a class is rare, and the fit has bent it: by clipped gradients and a scale."""
        moves = self.tables.rules >= RULES and self.correction.trees
        return moved_base(self.tables, self._scaled) if moves else np.zeros(self.tables.codebook.n_classes)

    @cached_property
    def cap(self) -> dict[int, float]:
        """w_j of the attributes that are read from their counts: how much of what each says alone is added."""
        return self.tables.weights(Reading(self.reading.kind, 1.0)) if self.reading.strength else {}

    @cached_property
    def weights(self) -> dict[int, float]:
        """λ·w_j of the same attributes."""
        return self.tables.weights(self.reading) if self.reading.strength else {}

    @cached_property
    def weight_errors(self) -> dict[int, float]:
        return self.tables.weight_errors(self.reading)

    def probabilities(self, codes: NDArray[Any]) -> Floats:
        return self.model.probabilities(codes)

    @property
    def unused(self) -> tuple[NDArray[np.bool_], ...]:
        """For each counted tree all its nodes, if the tree adds nothing to any prediction in the reading that was chosen; else none."""
        trees = self.tables.forest.trees
        return tuple(np.full(tree.n_nodes, not scores.any()) for tree, scores in zip(trees, self.model.scores, strict=False))

    def shares_of_codes(self, j: int) -> Floats:
        return self.tables.shares_of_codes(j)

    def most_rows(self, j: int, code: int) -> float:
        """The share of rows of all codes that were counted together with that one; 1 where the attribute was not counted."""
        if j not in self.tables.attributes:
            return 1.0
        branch = self.tables.layout.branches(j)
        return float(self.shares_of_codes(j)[branch == branch[code]].sum())


def strength_of_counts(attributes: int) -> float:
    """At which tables are read that are only added up, where no choice is paid for: a public number."""
    return OF_MANY if attributes >= MANY else 1.0


def checked_reading(forest: CountedForest, chosen: Mapping[str, Any]) -> tuple[Layout, Reading]:
    """How the trees of a forest stand and how its counts are read; refused unless it says so in the usual words."""
    kind, strength, rules = chosen.get("reading", FLAT), chosen.get("strength", 1.0), chosen.get("rules", OLD_RULES)
    questions, joined, together = chosen.get("top questions", 0), chosen.get("joined", False), chosen.get("together", 1)
    if isinstance(rules, bool) or rules not in (OLD_RULES, WHOLE_RULES, LACKING_RULES, COUNTED_RULES, RULES):
        raise ReleaseError(f"its counts are to be read by rules {str(rules)[:20]}, known here are 1 to {RULES}: install a newer hedgerow.")
    sound = kind in (TREE, FLAT) and _number(strength, 0, 1) and isinstance(joined, bool) and chosen.get("scale", 1.0) in SCALES
    whole = not isinstance(questions, bool) and questions in (0, 1, 2) and not isinstance(together, bool) and together in (1, TOGETHER)
    if not sound or not whole or (not questions and (joined or kind == TREE)):
        raise ReleaseError("it does not say in the usual words how its counts are read.")
    if rules != OLD_RULES and together != 1:
        raise ReleaseError("it does not say in the usual words how its counts are read.")
    layout = grouped_layout_of(forest, questions, joined) if rules != OLD_RULES else layout_of(forest, questions, joined, together)
    return layout, Reading(str(kind), float(strength))


def _number(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and low <= value <= high
