"""Trees as ONNX's tree ensembles write them: two branches at each node, all nodes of all trees in long lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hedgerow.exporters.portable import PortableTree, runs

_NODES = (
    "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids", "nodes_values",
)  # fmt: skip
_LEAVES = ("target_treeids", "target_nodeids", "target_ids", "target_weights")
NESTED = 1_500  # ways out of all questions of an oblivious tree: with more its model is too large, with fewer it is faster so


@dataclass
class Ensemble:
    """Binary trees, each adding to its target the whole number that stands where a row ends."""

    nodes: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _NODES})
    leaves: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _LEAVES})
    targets: int = 0
    trees: int = 0

    def add(self, *grow: Callable[[], Any]) -> None:
        """grow: each makes the root of a tree, by `split` and `leaf`; they have one target together"""
        for each in grow:
            self._next = 0
            each()
            self.trees += 1
        self.targets += 1

    def leaf(self, number: int) -> int:
        node = self._node(0, "LEAF", 0.0)
        for name, value in zip(_LEAVES, (self.trees, node, self.targets, float(number)), strict=True):
            self.leaves[name].append(value)
        return node

    def split(self, column: int, limit: float, below: Callable[[], int], above: Callable[[], int]) -> int:
        """Rows whose value is below the limit go one way, all others the other."""
        node = self._node(column, "BRANCH_LT", limit)
        place = len(self.nodes["nodes_nodeids"]) - 1
        self.nodes["nodes_falsenodeids"][place] = above()
        self.nodes["nodes_truenodeids"][place] = below()
        return node

    def _node(self, column: int, mode: str, limit: float) -> int:
        node, self._next = self._next, self._next + 1
        for name, value in zip(_NODES, (self.trees, node, column, mode, 0, 0, limit), strict=True):
            self.nodes[name].append(value)
        return node


def places(trees: Sequence[PortableTree]) -> Ensemble:
    """From codes to the number of the place in each tree. The levels of a large oblivious one are asked each by itself, and add up."""
    ensemble = Ensemble()
    for tree in trees:
        ensemble.add(*(_Places(ensemble, each).root for each in (_levels(tree) if _by_levels(tree) else [tree])))
    return ensemble


def numbers_at(tree: PortableTree) -> Any:
    """What stands at each place."""
    return tree.leaves if _by_levels(tree) else tree.values


def _by_levels(tree: PortableTree) -> bool:
    return bool(tree.levels) and sum(len(runs(branch)) for branch in tree.branch) > NESTED


def _levels(tree: PortableTree) -> list[PortableTree]:
    """A tree of one question for each level, which says what its answer adds to the number of the leaf."""
    found, worth = [], 1
    for column, radix, answers in reversed(tree.levels):
        found.append(PortableTree([column], [[~(worth * answer) for answer in answers]], tree.values))
        worth *= radix
    return found


class _Places:
    """One tree. The values of a question are halved until they lead to one child.

    Where they lead to the same child in several places, that child is written once, and all but the first have it as their true one. So
    converters of other libraries write membership in a set, and so onnxruntime takes it: the false child is always a new node.
    """

    def __init__(self, ensemble: Ensemble, tree: PortableTree) -> None:
        self.ensemble, self.tree = ensemble, tree

    def root(self) -> int:
        return self.node(0) if self.tree.attribute else self.ensemble.leaf(0)

    def node(self, node: int) -> int:
        if node < 0:
            return self.ensemble.leaf(~node)
        return _Question(self, self.tree.attribute[node], len(self.tree.branch[node])).halved(runs(self.tree.branch[node]), new=True)


class _Question:
    """What one node asks. made: the children that are written already."""

    def __init__(self, places: _Places, column: int, codes: int) -> None:
        self.places, self.column, self.codes = places, column, codes
        self.made: dict[int, int] = {}

    def halved(self, steps: list[tuple[int, int]], new: bool) -> int:
        """new: a node that is not written yet is wanted"""
        split = self.places.ensemble.split
        if len(steps) > 1:
            below, above = steps[: len(steps) // 2], steps[len(steps) // 2 :]
            return split(self.column, float(above[0][0]), lambda: self.halved(below, new=False), lambda: self.halved(above, new=True))
        child = steps[0][1]
        if child not in self.made or (new and child < 0):
            self.made[child] = self.places.node(child)  # a leaf is one node: where a new one is wanted it is written again
        elif new:
            every_code = float(self.codes)
            return split(self.column, every_code, lambda: self.made[child], lambda: self.places.ensemble.leaf(0))
        return self.made[child]


def cells(edges: Sequence[list[float]]) -> Ensemble:
    """From numbers to the number of edges that are not above each, a tree for each column."""
    ensemble = Ensemble()
    for column, ascending in enumerate(edges):

        def grow(column: int = column, edges: list[float] = ascending, first: int = 0) -> int:
            if not edges:
                return ensemble.leaf(first)
            middle = len(edges) // 2
            below, above = edges[:middle], edges[middle + 1 :]
            return ensemble.split(
                column, edges[middle], lambda: grow(column, below, first), lambda: grow(column, above, first + middle + 1)
            )

        ensemble.add(grow)
    return ensemble
