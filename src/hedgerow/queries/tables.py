"""`Tables`: (cell, class) counts of some attributes in some nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.prices import Price
from hedgerow.errors import PlanError
from hedgerow.queries.attacks import COPIES, DIGIT, MORE, PURE, Attack, copies_tree
from hedgerow.queries.forms import mask_form, nodes_form, read_mask, tree_form
from hedgerow.queries.nodes import Nodes, NodesForm, SplitCounts, decode_nodes, split_numbers
from hedgerow.queries.query import CountingQuery, Counts, Decoder, Encoder, QueryForm, Shapes, Sums, frozen, price_form
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.tree import Tree


class TablesForm(NodesForm, frozen=True, kw_only=True):
    """attributes: for each node, their positions; `asked` on the wire."""

    attributes: list[list[int]] = msgspec.field(name="asked")


@dataclass(frozen=True, eq=False)
class Tables(SplitCounts, CountingQuery[Counts]):
    """(cell, class) counts of some attributes of each node, 0 elsewhere: (nodes, cells, classes); no node may lie above another.

    attributes[i, a]: whether attribute a is counted at node i. The price is for all of them: each gets it / (most attributes of one node).
    """

    attributes: NDArray[np.bool_]

    name = "tables"
    label = "V6"
    Form = TablesForm

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "attributes", frozen(self.attributes))

    def check(self, codebook: Codebook) -> None:
        super().check(codebook)
        if (
            self.attributes.dtype != np.bool_
            or self.attributes.shape != (len(self.nodes), len(codebook.sizes))
            or not self.attributes.any()
        ):
            raise PlanError("tables: expected for each node which attributes are counted, and at least one.")

    @classmethod
    def all(cls, tree: Tree, nodes: Nodes) -> Tables:
        """Every attribute at every node."""
        return cls(tree, nodes, np.ones((len(nodes), len(tree.sizes)), dtype=bool))

    @property
    def queries(self) -> int:
        """A row is in one node, and in one cell of each attribute that is counted there."""
        return int(self.attributes.sum(axis=1).max())

    @cached_property
    def _wanted(self) -> NDArray[np.bool_]:
        return np.repeat(self.attributes, self.tree.sizes, axis=1)[:, :, None]

    def exact(self, sums: Sums, codebook: Codebook) -> Sums:
        return [np.where(self._wanted, self.declared(sums[0]), 0)]

    def released(self, noisy: Sums) -> Sums:
        return [np.where(self._wanted, noisy[0], 0)]

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(len(self.nodes), sum(codebook.sizes), codebook.n_classes)]

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        return TablesForm(
            number=0,
            tree=tree_form(self.tree),
            nodes=nodes_form(self.nodes),
            attributes=mask_form(self.attributes),
            price=price_form(price),
        )

    @classmethod
    def decode(cls, form: TablesForm, decode: Decoder) -> Tables:
        tree, nodes = decode_nodes(form, decode, split_numbers(decode.codebook))
        return cls(tree, nodes, read_mask(form.attributes, len(nodes), len(decode.codebook.sizes), "asked"))

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        def make(codebook: Codebook) -> Tables:
            tree, nodes = copies_tree()
            attributes = np.zeros((len(nodes), len(codebook.sizes)), dtype=bool)
            attributes[:, 2:] = True
            return cls(tree, nodes, attributes)

        why = "one row more in two tables at once"
        return [Attack(cls.name, why, PURE, MORE, make, runs=COPIES, copies=True, gaussian=True, read=_both_steps)]


def _both_steps(noisy: NDArray[Any]) -> NDArray[Any]:
    """One row more changes two counts, from 0 to 1 and from 50 to 51. The likelihood ratio of both is known: it follows their steps."""
    cells = noisy[:, 2 * DIGIT :]  # a=0, a=1, b=0, b=1
    ratio = np.clip(cells[:, 0, 1], 0, 1) + np.clip(cells[:, 3, 1], 50, 51)
    return np.concatenate([ratio[:, None], cells.reshape(len(cells), -1)], axis=1)
