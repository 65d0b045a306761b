"""Counts in some nodes of a tree, none above another: what `Sizes`, `ClassCounts`, `Tables` and `Choose` have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.queries.forms import Decoder, TreeForm, read_nodes, read_tree
from hedgerow.queries.query import Block, PriceForm, Query, QueryForm, Sums, frozen
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.tree import Tree

Nodes = Sequence[int] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class NodeQuery(Query[Any]):
    """Rows of some nodes of a tree. A row is in at most one of the nodes."""

    tree: Tree
    nodes: Nodes

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", frozen(self.nodes, np.int64))

    def check(self, codebook: Codebook) -> None:
        """Public: depends on the tree alone."""
        if self.tree.sizes != codebook.sizes or not len(self.nodes) or not self.tree.is_antichain(np.asarray(self.nodes)):
            raise PlanError("the nodes must be of a tree over this schema, at least one, and none above another.")

    @cached_property
    def _slot(self) -> Any:
        from hedgerow.queries import kernels

        return kernels.slots(self.tree, np.asarray(self.nodes))


@dataclass(frozen=True, eq=False)
class NodeCounts(NodeQuery):
    """Sums: class counts of each node, and last the rows of no declared class: (nodes, classes + 1)."""

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros((len(self.nodes), codebook.n_classes + 1), dtype=np.int64)]

    def add(self, block: Block, sums: Sums) -> None:
        from hedgerow.queries import kernels

        kernels.add_class_counts(self.tree, self._slot, block.codes, block.classes, sums[0])


@dataclass(frozen=True, eq=False)
class SplitCounts(NodeQuery):
    """Sums: (node, cell, class) counts. Each attribute has a last cell for rows without a branch; the last class is for undeclared ones."""

    def zeros(self, codebook: Codebook) -> Sums:
        from hedgerow.queries import kernels

        return [np.zeros((len(self.nodes), kernels.split_cells(self.tree)[1], codebook.n_classes + 1), dtype=np.int64)]

    def add(self, block: Block, sums: Sums) -> None:
        from hedgerow.queries import kernels

        kernels.add_split_counts(self.tree, self._slot, block.codes, block.classes, sums[0])

    def declared(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells of declared values and the declared classes alone: rows that could not go on, or have no class, support no split."""
        from hedgerow.queries import kernels

        first, _ = kernels.split_cells(self.tree)
        return np.ascontiguousarray(np.delete(counts, first + np.asarray(self.tree.sizes), axis=1)[:, :, :-1])


class NodesForm(QueryForm, frozen=True, kw_only=True):
    tree: TreeForm
    nodes: list[int]
    price: PriceForm


def decode_nodes(form: Any, decode: Decoder, each: int) -> tuple[Tree, NDArray[np.int64]]:
    """The tree and its nodes, where `each` numbers are counted for a node."""
    tree = read_tree(form.tree, decode.codebook)
    decode.bound(len(form.nodes) * each)
    return tree, read_nodes(form.nodes, tree)


def split_numbers(codebook: Codebook) -> int:
    """Numbers that are counted for a node that may be split."""
    return (sum(codebook.sizes) + len(codebook.sizes)) * (codebook.n_classes + 1)
