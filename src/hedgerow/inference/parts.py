"""An additive forest taken apart by attribute: what each adds to the scores of a row. It costs nothing.

    F(x) = base + Σ_j contribution_j(x)                     exactly the margins of the model

The score of a table or of a correction belongs to its attribute; a boosted tree is taken apart by `boosted_parts.py`. The top tree's
log π(leaf) is taken apart along the path: the step
log π(child) − log π(parent) belongs to the attribute that the parent asks about, and log π(root) to the base. A row that stops early,
at a value without a branch, has what it reached.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.inference.additive import TREE, AdditiveForest
from hedgerow.inference.boosted_parts import Step, Typical, taken_apart
from hedgerow.inference.effect_noise import (
    centred,
    correction_variance,
    pull_of,
    reading_error,
    scale_error,
    table_variance,
    top_variance,
)
from hedgerow.inference.tables import Floats
from hedgerow.trees.additive_model import AdditiveModel
from hedgerow.trees.few_rows import margins_to_show
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.tree import Tree

AnyTree = Tree | ObliviousTree


class Parts:
    """An additive forest taken apart: `base`, and for each attribute a model of what it adds and one of the variances of that.

    scores, variances: for a row; typical, typical_variances: on average over rows with the same value of the attribute
    boosted: what an attribute does on average in each boosted tree that asks about it, where there was no joint fit before them
    steps: the noise of an attribute's effect, step by step, where there was a joint fit
    """

    def __init__(self, forest: AdditiveForest) -> None:
        self.forest = forest
        model, layout = forest.model, forest.tables.layout
        self.base: Floats = model.base.copy()
        self._scores: dict[int, list[tuple[AnyTree, Floats, Floats]]] = {}
        self.boosted: dict[int, list[Typical]] = {}
        self.steps: dict[int, list[Step]] = {}
        own = len(layout.attributes)
        if layout.asks:
            self._take_top_apart(layout.top, model.scores[0])
        trees, scores = model.trees[layout.asks :], model.scores[layout.asks :]
        for j, tree, one in zip(layout.attributes, forest.tables.forest.trees[layout.asks :], scores[:own], strict=True):
            self._add(j, tree, one, self._own_variance(j, tree))
        boosted = []
        for any_tree, one, errors in zip(trees[own:], scores[own:], forest.correction.errors, strict=True):
            variance = correction_variance(errors, forest.scale)
            if isinstance(any_tree, ObliviousTree):
                boosted.append((any_tree, one, variance))
            else:
                self._along_path(any_tree, one, variance)
        self.typical, self.typical_variances = self._models({j: list(parts) for j, parts in self._scores.items()})
        if boosted:
            self._take_boosted_apart(boosted)
        self.scores, self.variances = self._models(self._scores)

    def _models(self, found: dict[int, list[tuple[AnyTree, Floats, Floats]]]) -> tuple[dict[int, AdditiveModel], dict[int, AdditiveModel]]:
        """For each attribute a model of the scores and one of their variances."""
        zero, by_attribute = np.zeros(len(self.base)), sorted(found.items())
        return (
            {j: AdditiveModel(zero, *_columns(parts, 1)) for j, parts in by_attribute},
            {j: AdditiveModel(zero, *_columns(parts, 2)) for j, parts in by_attribute},
        )

    def _take_boosted_apart(self, boosted: list[tuple[ObliviousTree, Floats, Floats]]) -> None:
        """Contributions of the trees, and typical effects. In what a row has, the noise of one tree adds to that of the others: that later
        trees take back some of what noise did before is left out there, so that these errors are rather too large where attributes are few.
        """
        shares = {j: self.forest.shares_of_codes(j) for j in range(len(self.forest.tables.codebook.sizes))}
        typical = {j: list(parts) for j, parts in self._scores.items()}
        joint = any(len(tree.attributes) == 1 for tree, _, _ in boosted)  # a level of its own for each attribute
        for number, (tree, scores, variance) in enumerate(boosted):
            apart = taken_apart(tree, scores, variance, shares, pull_of(self.forest, variance) if len(tree.attributes) > 1 else 0.0)
            self.base += apart.base
            for j, own in apart.contributions.items():
                self._add(j, tree, own, apart.noise[j])
                on_average = apart.own_trees[j], apart.typical[j], apart.variances[j]
                typical.setdefault(j, []).append(on_average)
                if joint:
                    self.steps.setdefault(j, []).append(apart.steps[j])
                else:
                    self.boosted.setdefault(j, []).append(Typical(number, *on_average))
        self.typical, self.typical_variances = self._models(typical)

    def _add(self, j: int, tree: AnyTree, scores: Floats, variances: Floats) -> None:
        self._scores.setdefault(j, []).append((tree, scores, variances))

    def _take_top_apart(self, top: Tree, scores: Floats) -> None:
        forest, layout = self.forest, self.forest.tables.layout
        if forest.reading.kind == TREE:
            self._along_path(top, scores, top_variance(forest))
            return
        weights = forest.tables.weights(forest.reading)  # flat: its leaves hold the tables of the attributes that it tells everywhere
        for j in sorted(set(weights) - set(layout.attributes)):
            one, said = forest.tables.attributes[j], np.zeros((2, *scores.shape))
            known = layout.known[:, j]
            said[0, top.leaves] = forest.scale * weights[j] * one.flat[one.group[known]]
            said[1, top.leaves] = table_variance(forest, j)[0, known]
            self._add(j, top, said[0], said[1])

    def _along_path(self, tree: Tree, scores: Floats, variances: Floats) -> None:
        """Each step down goes to the attribute asked above it, the root's score to the base."""
        self.base += scores[0]
        for j in np.unique(tree.attribute[tree.attribute >= 0]).tolist():
            said = np.zeros((2, *scores.shape))
            for nodes in tree.levels[1:]:
                up = tree.parent[nodes]
                asked = (tree.attribute[up] == j)[:, None]
                said[:, nodes] = said[:, up]
                said[0, nodes] += np.where(asked, scores[nodes] - scores[up], 0.0)
                said[1, nodes] += np.where(asked, variances[nodes], 0.0)
            self._add(j, tree, said[0], said[1])

    def _own_variance(self, j: int, tree: Tree) -> Floats:
        """For each node of the attribute's own tree, as `Tables` places its scores."""
        layout, codes = self.forest.tables.layout, table_variance(self.forest, j)
        out = np.zeros((tree.n_nodes, codes.shape[2]))
        asked = layout.asked(j)
        out[layout.under.n_nodes :] = codes[asked][:, layout.first_codes(j)].reshape(-1, codes.shape[2])
        if self.forest.reading.kind != TREE and layout.joined:
            for place in np.setdiff1d(np.arange(len(layout.under.leaves)), asked):
                out[layout.under.leaves[place]] = codes[place, layout.known[place, j]]
        return out

    def contributions(self, codes: NDArray[Any]) -> Floats:
        """(rows, attributes, classes)."""
        out = np.zeros((len(codes), codes.shape[1], len(self.base)))
        for j, model in self.scores.items():
            out[:, j] = margins_to_show(model, codes)
        return out

    def errors(self, codes: NDArray[Any]) -> Floats:
        """The standard errors of the centred contributions: (rows, attributes, classes)."""
        out = np.zeros((len(codes), codes.shape[1], len(self.base)))
        for j, model in self.variances.items():
            out[:, j] = np.sqrt(margins_to_show(model, codes))
        return out


def _columns(parts: list[tuple[AnyTree, Floats, Floats]], which: int) -> tuple[tuple[AnyTree, ...], tuple[Floats, ...]]:
    return tuple(part[0] for part in parts), tuple(part[which] for part in parts)  # type: ignore[misc]


def contributions(forest: AdditiveForest, codes: NDArray[Any]) -> Floats:
    """What each attribute adds to each class's score of each row: (rows, attributes, classes). With `Parts.base` they are the margins."""
    return Parts(forest).contributions(codes)


def score_errors(forest: AdditiveForest, codes: NDArray[Any]) -> Floats:
    """The standard errors that the noise gives the margins of each row, each against the mean of the classes: (rows, classes)."""
    parts = Parts(forest)
    return total_errors(forest, parts.errors(codes), centred(margins_to_show(forest.model, codes)))


def total_errors(forest: AdditiveForest, errors: Floats, margins: Floats) -> Floats:
    """From the errors of what the attributes add, (rows, attributes, classes), and centred margins: those of the margins, (rows, classes).
    A scale and a reading that were privately chosen may be off, and all that is added with them: that counts here, and not for each
    attribute.
    """
    scale = scale_error(forest.scale_rate, forest.tables.n) if forest.scale_rate else 0.0
    reading = reading_error(forest.reading_rate, forest.tables.n) if forest.reading_rate else 0.0
    return np.asarray(np.sqrt((errors**2).sum(axis=1) + (scale**2 + reading**2) * margins**2))
