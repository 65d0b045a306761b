"""A forest with released counts: what every algorithm makes and everything after the noise works on. No rows here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.noise import Noise, variance_of
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.tree import Tree

LEAVES, NODES = "leaves", "nodes"  # what was counted


@dataclass(frozen=True)
class Ensemble:
    """Trees that were counted in the same tables: how many, over which columns, with which noise on every count."""

    trees: int
    columns: tuple[str, ...]
    noise: tuple[Noise, ...]


@dataclass(frozen=True, eq=False)
class CountedForest:
    """Trees with a (noisy) count for each class in each leaf.

    counts:    for each tree an array (leaves, classes), in the order of `Tree.leaves`; noise may make a count negative
    noise:     the independent noises that every count holds, one for each table that was counted: a fraction is the scale of
               discrete Laplace noise, `Gaussian` has its σ² (none: the counts are exact)
    measured:  "leaves", or "nodes" where every node was counted by itself: (nodes, classes)
    united:    the ensembles of owners with different columns, in the order of the trees; `noise` is empty then
    """

    codebook: Codebook
    trees: tuple[Tree, ...]
    counts: tuple[NDArray[np.int64], ...]
    noise: tuple[Noise, ...] = ()
    measured: str = LEAVES
    united: tuple[Ensemble, ...] = ()

    @property
    def ensembles(self) -> tuple[Ensemble, ...]:
        return self.united or (Ensemble(len(self.trees), self.codebook.schema.names, self.noise),)

    @cached_property
    def scales(self) -> tuple[tuple[Noise, ...], ...]:
        """For each tree the noises that every count of it holds."""
        return tuple(ensemble.noise for ensemble in self.ensembles for _ in range(ensemble.trees))

    @property
    def noisy(self) -> bool:
        return any(self.scales)

    @cached_property
    def node_counts(self) -> tuple[NDArray[np.int64], ...]:
        """Class counts of every node: its own where nodes were counted, else the sum over the leaves below it."""
        if self.measured == NODES:
            return self.counts
        return tuple(tree.add_up(counts) for tree, counts in zip(self.trees, self.counts, strict=True))

    @cached_property
    def leaves_below(self) -> tuple[NDArray[np.int64], ...]:
        return tuple(tree.leaves_below() for tree in self.trees)

    @cached_property
    def tree_noise_sd(self) -> tuple[float, ...]:
        """For each tree the standard deviation of the noise on one count in a leaf: the variances of all tables add."""
        sds = [math.sqrt(sum(map(variance_of, ensemble.noise))) for ensemble in self.ensembles]
        return tuple(sd for sd, ensemble in zip(sds, self.ensembles, strict=True) for _ in range(ensemble.trees))

    @property
    def leaf_noise_sd(self) -> float:
        """Standard deviation of the noise on one count in a leaf: of the noisiest tree, where they differ."""
        return max(self.tree_noise_sd)

    def node_noise_sd(self, tree: int) -> NDArray[np.float64]:
        """Standard deviation of the noise on one class count of each node: independent noises of the leaves below."""
        draws = self.leaves_below[tree] if self.measured == LEAVES else np.ones(self.trees[tree].n_nodes)
        return self.tree_noise_sd[tree] * np.sqrt(draws)

    @cached_property
    def class_totals(self) -> NDArray[np.float64]:
        """Released class counts of the whole table, averaged over the trees."""
        return np.asarray(np.mean([counts[0] for counts in self.node_counts], axis=0))


@dataclass(frozen=True, eq=False)
class Correction:
    """What boosted trees add to the tables of an additive forest (of version 0.1: noisy gradient steps, a tree for each attribute).

    scores, errors: for each tree (nodes, classes): what is added, and the standard deviation that the noise may give it at most
    """

    trees: tuple[Tree | ObliviousTree, ...] = ()
    scores: tuple[NDArray[np.float64], ...] = ()
    errors: tuple[NDArray[np.float64], ...] = ()

    @property
    def boosted(self) -> bool:
        return any(isinstance(tree, ObliviousTree) for tree in self.trees)

    @property
    def boosted_trees(self) -> tuple[ObliviousTree, ...]:
        """Those of two levels or more: one level holds the scores of an attribute, from the joint fit."""
        return tuple(tree for tree in self.trees if isinstance(tree, ObliviousTree) and len(tree.attributes) > 1)


NO_CORRECTION = Correction()


@dataclass(frozen=True)
class Grown:
    """What a grower hands over: the forest, other numbers it paid for (the noisy n̂), and what it chose for itself."""

    forest: CountedForest
    released: dict[str, int]
    chosen: dict[str, Any]
    correction: Correction = NO_CORRECTION
