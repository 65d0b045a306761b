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


@dataclass
class Ensemble:
    """Binary trees, tree t writing to target t the whole number that stands where a row ends."""

    nodes: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _NODES})
    leaves: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _LEAVES})
    trees: int = 0

    def add(self, grow: Callable[[], Any]) -> None:
        """grow: makes the root of a tree, by `split` and `leaf`"""
        self._next = 0
        grow()
        self.trees += 1

    def leaf(self, number: int) -> int:
        node = self._node(0, "LEAF", 0.0)
        for name, value in zip(_LEAVES, (self.trees, node, self.trees, float(number)), strict=True):
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
    """From codes to the number of the place in each tree."""
    ensemble = Ensemble()
    for tree in trees:
        ensemble.add(_Places(ensemble, tree).root)
    return ensemble


class _Places:
    """One tree. Where the codes that lead to a child are not next to each other, several nodes have that child as their true one.

    So converters of other libraries write membership in a set, and so onnxruntime takes it: the false child is always a new node.
    """

    def __init__(self, ensemble: Ensemble, tree: PortableTree) -> None:
        self.ensemble, self.tree = ensemble, tree

    def root(self) -> int:
        return self._node(0) if self.tree.attribute else self.ensemble.leaf(0)

    def _node(self, node: int) -> int:
        if node < 0:
            return self.ensemble.leaf(~node)
        steps = runs(self.tree.branch[node])
        made: dict[int, int] = {}
        each_once = len({to for _, to in steps}) == len(steps)
        return (self._halved if each_once else self._in_turn)(steps, self.tree.attribute[node], made)

    def _halved(self, steps: list[tuple[int, int]], column: int, made: dict[int, int]) -> int:
        if len(steps) == 1:
            return self._node(steps[0][1])
        middle = len(steps) // 2
        below, above = steps[:middle], steps[middle:]
        return self.ensemble.split(
            column, float(above[0][0]), lambda: self._halved(below, column, made), lambda: self._halved(above, column, made)
        )

    def _in_turn(self, steps: list[tuple[int, int]], column: int, made: dict[int, int]) -> int:
        (_, to), rest = steps[0], steps[1:]
        if not rest:
            made[to] = self._node(to)
            return made[to]

        def child() -> int:
            if to not in made:
                made[to] = self._node(to)
            return made[to]

        return self.ensemble.split(column, float(rest[0][0]), child, lambda: self._in_turn(rest, column, made))


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
