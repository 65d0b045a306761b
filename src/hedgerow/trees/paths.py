"""The groups of persons that a tree or a rule set speaks of: one for each path (Sharkey et al. 2008, 2.1).

    label(p)    which codes of each attribute a path allows; an attribute that it does not ask about has all of them
    class(p)    its majority class          hit(p), miss(p)   persons of that class, and of all others

Where the class counts of a path are known they decide; hit and miss follow from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import LEAVES, CountedForest
from hedgerow.trees.tree import Tree

MANY = 6  # values that are named


@dataclass(frozen=True, eq=False)
class Paths:
    """All paths of one tree or rule set.

    allowed: (paths, codes of all attributes side by side): whether a person on the path may have that code
    asked:   (paths, attributes): whether the path says anything about the attribute
    label:   (paths,) the majority class
    hit, miss: (paths,) persons, or shares of the table where `rows` is needed to make persons of them
    counts:  (paths, classes) where they are known
    """

    codebook: Codebook
    allowed: NDArray[np.bool_]
    asked: NDArray[np.bool_]
    label: NDArray[np.int64]
    hit: NDArray[np.float64]
    miss: NDArray[np.float64]
    counts: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.label)

    @property
    def totals(self) -> NDArray[np.float64]:
        return self.hit + self.miss

    @cached_property
    def first_code(self) -> NDArray[np.int64]:
        """Where the codes of each attribute begin in `allowed`."""
        return np.concatenate([[0], np.cumsum(self.codebook.sizes)])

    def codes(self, path: int, attribute: int) -> NDArray[np.int64]:
        """The codes of one attribute that a path allows."""
        start, stop = self.first_code[attribute], self.first_code[attribute + 1]
        return np.flatnonzero(self.allowed[path, start:stop])

    def words(self, path: int) -> str:
        """label(p), for people."""
        asked = np.flatnonzero(self.asked[path])
        parts = [condition_words(self.codebook, int(attribute), self.codes(path, int(attribute))) for attribute in asked]
        return " and ".join(parts) or "everybody"

    def scaled(self, rows: float) -> Paths:
        """Shares of a table of so many rows as persons."""
        counts = None if self.counts is None else self.counts * rows
        return Paths(self.codebook, self.allowed, self.asked, self.label, self.hit * rows, self.miss * rows, counts)


def condition_words(codebook: Codebook, attribute: int, codes: Sequence[int] | NDArray[np.int64]) -> str:
    """One condition, for people: a value, a set of values, or an interval."""
    name = codebook.schema.names[attribute]
    cells = codebook.numeric_cells(attribute)
    numeric = sorted(int(code) for code in codes if code < cells)
    others = [codebook.labels[attribute][code] for code in codes if code >= cells]
    if numeric and numeric[-1] - numeric[0] == len(numeric) - 1:
        others = [codebook.range_text(attribute, numeric[0], numeric[-1]), *others]
    else:
        others = [codebook.range_text(attribute, code, code) for code in numeric] + others
    if len(others) == 1:
        return f"{name} = {others[0]}"
    return f"{name} in {{{', '.join(others[:MANY])}{', …' if len(others) > MANY else ''}}}"


def from_counts(codebook: Codebook, allowed: NDArray[np.bool_], asked: NDArray[np.bool_], counts: NDArray[np.float64]) -> Paths:
    """Paths whose class counts are known."""
    counts = np.asarray(counts, dtype=np.float64)
    hit = counts.max(axis=1)
    return Paths(codebook, allowed, asked, counts.argmax(axis=1), hit, counts.sum(axis=1) - hit, counts)


def paths_of(forest: CountedForest, tree: int = 0) -> Paths:
    """The paths of one tree of a forest, in the order of its leaves, with the class counts that were released."""
    structure = forest.trees[tree]
    counts = forest.counts[tree] if forest.measured == LEAVES else forest.node_counts[tree][structure.leaves]
    allowed, asked = reach(structure)
    return from_counts(forest.codebook, allowed[structure.leaves], asked[structure.leaves], counts.astype(np.float64))


def paths_with_hits(
    codebook: Codebook, tree: Tree, label: Sequence[int] | NDArray[np.int64], hit: Sequence[float], miss: Sequence[float]
) -> Paths:
    """The paths of a tree that tells only hit and miss in each leaf."""
    allowed, asked = reach(tree)
    arrays = np.asarray(label, dtype=np.int64), np.asarray(hit, dtype=np.float64), np.asarray(miss, dtype=np.float64)
    if any(array.shape != tree.leaves.shape for array in arrays) or (arrays[1] < 0).any() or (arrays[2] < 0).any():
        raise ReleaseError("a tree with hits and misses needs one class, one hit and one miss for each leaf, none below 0.")
    return Paths(codebook, allowed[tree.leaves], asked[tree.leaves], *arrays)


def paths_left(forest: CountedForest, tree: int, removed: NDArray[np.bool_]) -> Paths:
    """The paths of one tree without the marked nodes, which are closed downwards: where persons rest then, and their class counts.

    A node that loses all its children is a leaf. One that loses some keeps those persons at itself, with the codes that led to them.
    """
    structure, counts = forest.trees[tree], forest.node_counts[tree]
    allowed, asked = reach(structure)
    kept = ~removed
    has_kept = np.zeros(structure.n_nodes, dtype=bool)
    has_kept[structure.parent[1:][kept[1:]]] = True
    whole = np.flatnonzero(kept & ~has_kept)
    rests = [(allowed[whole], asked[whole], counts[whole])]
    first = np.concatenate([[0], np.cumsum(structure.sizes)])
    lost = np.flatnonzero(removed)
    for node in np.unique(structure.parent[lost[has_kept[structure.parent[lost]]]]):  # some children are gone, others are left
        attribute = int(structure.attribute[node])
        children = structure.children(int(node))
        gone = (children >= 0) & removed[np.maximum(children, 0)]
        here, also = allowed[node].copy(), asked[node].copy()
        here[first[attribute] : first[attribute + 1]] &= gone
        also[attribute] = True
        rests.append((here[None], also[None], counts[np.unique(children[gone])].sum(axis=0)[None]))
    parts = [np.concatenate(part) for part in zip(*rests, strict=True)]
    return from_counts(forest.codebook, parts[0], parts[1], parts[2])


MAX_CELLS = 1 << 31  # nodes times codes: what the paths of one tree may need


def reach(tree: Tree) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For every node which codes may reach it, and which attributes were asked above it."""
    first = np.concatenate([[0], np.cumsum(tree.sizes)])
    if tree.n_nodes * int(first[-1]) > MAX_CELLS:
        raise ReleaseError(f"tree: {tree.n_nodes:,} nodes over {int(first[-1]):,} values are too many to be told path by path.")
    allowed = np.ones((tree.n_nodes, int(first[-1])), dtype=bool)
    asked = np.zeros((tree.n_nodes, len(tree.sizes)), dtype=bool)
    for level in tree.levels[1:]:
        parent = tree.parent[level]
        allowed[level], asked[level] = allowed[parent], asked[parent]
        question = tree.attribute[parent]
        for attribute in np.unique(question):
            here = question == attribute
            nodes, above = level[here], parent[here]
            entries = tree.branch[tree.first_branch[above][:, None] + np.arange(tree.sizes[attribute])]
            allowed[nodes, first[attribute] : first[attribute + 1]] &= entries == nodes[:, None]
            asked[nodes, attribute] = True
    return allowed, asked
