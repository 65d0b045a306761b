"""A release as plain numbers: what every target of an export is written from.

    columns   how a value becomes a code                 trees   how codes lead to a place, and the numbers that stand there
    finish    how the numbers of all trees become probabilities: one of four ways, as the votes in `inference` have it

Nothing is approximated: the numbers are those that a release predicts with. Codes that no tree tells apart are one code here, and a
branch in which nothing changes any more is cut off, so that what is written is as short as what the forest says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError
from hedgerow.exporters.merge_codes import merged
from hedgerow.inference.additive import AdditiveForest
from hedgerow.inference.confidence import ConfidentVote
from hedgerow.inference.vote import PRUNED_SUM, PrunedVote, SummedCounts
from hedgerow.release.release import Release
from hedgerow.schema.attributes import Value
from hedgerow.schema.coders import CategoricalCoder, DateCoder, NumericCoder
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.tree import Tree

Floats = NDArray[np.float64]

SUMS, SOFTMAX, VOTES, SHARES, CONFIDENT = "sums", "softmax", "votes", "shares", "confident"


@dataclass(frozen=True)
class PortableColumn:
    """How a value of one column becomes a code.

    codes:   of a column of categories, the code of every text that is declared; other: of a text that is not
    edges:   of a column of numbers, ascending: the code is the number of edges that are not above the value. None for categories
    date:    the declared format of its dates, which count as days since 1970-01-01; None where it has none
    missing: the code of a missing value; absent: of every row of a table that has no such column; size: number of all codes
    """

    name: str
    codes: dict[str, int]
    other: int
    edges: list[float] | None
    date: str | None
    missing: int
    absent: int
    size: int


@dataclass(frozen=True, eq=False)
class PortableTree:
    """attribute[i] is the column that inner node i asks about, branch[i][code] where that leads: to an inner node, or to place ~branch.

    The root is inner node 0; a tree without inner nodes has one place, where all rows are. values: (places, numbers).
    levels: of an oblivious tree, for each level the column, how many answers there are, and that of every code; they spell the number
            of a leaf, the first being the highest digit. leaves: (leaves, numbers), the same numbers by leaf
    """

    attribute: list[int]
    branch: list[list[int]]
    values: Floats
    levels: tuple[tuple[int, int, list[int]], ...] = ()
    leaves: Floats | None = None


@dataclass(frozen=True, eq=False)
class Portable:
    """finish: what is done with the numbers of all trees together, C of them for each class where nothing else is said.

    sums       added to `base`; below 0 counts as 0; divided by their total, `prior` where that is 0
    softmax    added to `base`; e to the power of each, divided by their total
    votes      C shares and C votes are added to `base`: votes by their total, plus a billionth of the shares, divided by the total
    shares     of one tree: its shares are the probabilities
    confident  C shares, the highest of them, its class: those of the first tree with the highest one of all; where two trees or two
               classes are even, the mean of all trees' shares
    """

    columns: list[PortableColumn]
    trees: list[PortableTree]
    finish: str
    base: list[float]
    prior: list[float]
    target: str
    classes: list[Value]
    facts: dict[str, Any]

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def used(self) -> set[int]:
        """The columns that some tree asks about."""
        return {j for tree in self.trees for j in tree.attribute}


def portable(release: Release) -> Portable:
    """Any release, ready to be written for another program."""
    trees, finish, base, prior = _numbers_of(release)
    if finish != CONFIDENT:  # what all rows get alike
        for tree in trees:
            base = base + (tree.values[0] if not tree.attribute else 0.0)
        nothing = PortableTree([], [], np.zeros((1, len(base))))  # a forest is never without a tree
        trees = [tree for tree in trees if tree.attribute] or [nothing]
    columns, trees = merged(_columns(release), trees)
    return Portable(
        columns,
        trees,
        finish,
        [float(number) for number in base],
        [float(number) for number in prior],
        release.schema.target.name,
        list(release.schema.target.classes),
        facts_of(release),
    )


def facts_of(release: Release) -> dict[str, Any]:
    """What travels with an export: where it is from, and its certificate, whole."""
    return {
        "made_by": release.made_by,
        "algorithm": release.algorithm,
        "vote": release.vote,
        "content_hash": release.content_hash,
        "guarantee": release.certificate.sentence(),
        "certificate": msgspec.to_builtins(release.certificate),
    }


def _numbers_of(release: Release) -> tuple[list[PortableTree], str, Floats, Floats]:
    """The trees with their numbers, how they are finished, what they are added to, and what stands for no number at all."""
    vote, classes = release._vote, release.codebook.n_classes
    forest, nothing = release.forest.trees, np.zeros(0)
    if isinstance(vote, AdditiveForest):
        model = vote.model
        return [_tree(t, s) for t, s in zip(model.trees, model.scores, strict=True)], SOFTMAX, np.asarray(model.base), nothing
    if isinstance(vote, SummedCounts):
        return [_tree(t, c) for t, c in zip(forest, vote.counts, strict=True)], SUMS, np.zeros(classes), np.asarray(vote.prior)
    if isinstance(vote, PrunedVote):
        one = len(forest) == 1
        values = [shares if one else np.hstack([shares, _votes(vote, t)]) for t, shares in enumerate(vote.shares)]
        rests = [here[place] for here, place in zip(values, vote.place, strict=True)]
        return [_tree(t, v) for t, v in zip(forest, rests, strict=True)], SHARES if one else VOTES, np.zeros(rests[0].shape[1]), nothing
    if isinstance(vote, ConfidentVote):
        tables = zip(vote.shares, vote.sure, vote.label, vote.chosen, strict=True)
        rests = [np.column_stack([shares, sure, label])[chosen] for shares, sure, label, chosen in tables]
        return [_tree(t, v) for t, v in zip(forest, rests, strict=True)], CONFIDENT, nothing, nothing
    raise ReleaseError(f"vote: {release.vote!r} cannot be exported.")  # a vote that is new here


def _votes(vote: PrunedVote, tree: int) -> Floats:
    """What each node of a tree gives to each class."""
    if vote.weigh == PRUNED_SUM:
        return vote.counts[tree]
    votes = np.zeros_like(vote.shares[tree])
    votes[np.arange(len(votes)), vote.label[tree]] = vote.weight[tree]
    return votes


# ---------------------------------------------------------------- trees


class _Builder:
    """Inner nodes from the leaves up; a node all of whose branches lead to the same is that."""

    def __init__(self) -> None:
        self.attribute: list[int] = []
        self.branch: list[list[int]] = []

    def node(self, attribute: int, branches: list[int]) -> int:
        if len(set(branches)) == 1:
            return branches[0]
        self.attribute.append(attribute)
        self.branch.append(branches)
        return len(self.attribute) - 1

    def tree(self, root: int, values: Floats) -> PortableTree:
        """The nodes numbered from the root down, and only the places that are left."""
        order, places = [root] if root >= 0 else [], {} if root >= 0 else {~root: 0}
        for node in order:  # grows while it is read
            order.extend(dict.fromkeys(to for to in self.branch[node] if to >= 0))
            for to in self.branch[node]:
                if to < 0:
                    places.setdefault(~to, len(places))
        number = {node: i for i, node in enumerate(order)}
        branch = [[number[to] if to >= 0 else ~places[~to] for to in self.branch[node]] for node in order]
        return PortableTree([self.attribute[node] for node in order], branch, values[list(places)])


def _tree(tree: Tree | ObliviousTree, node_values: Any) -> PortableTree:
    """node_values: (nodes, numbers) of a tree, (leaves, numbers) of an oblivious one."""
    values, place = np.unique(np.asarray(node_values, dtype=np.float64), axis=0, return_inverse=True)
    ends = [~int(p) for p in place.reshape(-1)]
    builder = _Builder()
    if not isinstance(tree, ObliviousTree):
        return builder.tree(_plain(builder, tree, ends), values)
    levels = tuple((j, answers.radix, answers.array.tolist()) for j, answers in zip(tree.attributes, tree.answers, strict=True))
    return replace(builder.tree(_oblivious(builder, tree, ends), values), levels=levels, leaves=np.asarray(node_values, dtype=np.float64))


def _plain(builder: _Builder, tree: Tree, ends: list[int]) -> int:
    to = list(ends)
    first, branch, sizes = tree.first_branch.tolist(), tree.branch.tolist(), tree.sizes
    for node in range(tree.n_nodes - 1, -1, -1):  # children come after their parents
        asked = int(tree.attribute[node])
        if asked >= 0:
            children = branch[first[node] : first[node] + sizes[asked] + 1]
            to[node] = builder.node(asked, [to[child] if child >= 0 else ends[node] for child in children])
    return to[0]


def _oblivious(builder: _Builder, tree: ObliviousTree, ends: list[int]) -> int:
    to = ends
    for attribute, answers in reversed(list(zip(tree.attributes, tree.answers, strict=True))):
        parts = (to[start : start + answers.radix] for start in range(0, len(to), answers.radix))
        codes = answers.array.tolist()
        to = [builder.node(attribute, [part[answer] for answer in codes]) for part in parts]
    return to[0]


# ---------------------------------------------------------------- columns


def _columns(release: Release) -> list[PortableColumn]:
    return [_column(name, coder) for name, coder in zip(release.schema.names, release.codebook.coders, strict=False)]


def _column(name: str, coder: Any) -> PortableColumn:
    if isinstance(coder, NumericCoder):
        date = coder.written if isinstance(coder, DateCoder) else None
        return PortableColumn(name, {}, coder.missing, coder.inner.tolist(), date, coder.missing, coder.stop, coder.stop + 1)
    assert isinstance(coder, CategoricalCoder)
    return PortableColumn(name, dict(coder.code_of_spelling), coder.other, None, None, coder.missing, coder.stop, coder.stop + 1)


def runs(branches: Sequence[int]) -> list[tuple[int, int]]:
    """Where the codes of a node lead, as (first code, to) for every change."""
    return [(code, to) for code, to in enumerate(branches) if code == 0 or branches[code - 1] != to]
