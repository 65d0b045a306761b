"""`Sizes`: how many rows each of some nodes holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.accounting.prices import Price
from hedgerow.queries.attacks import COPIES, MORE, ONE_MORE, PURE, Attack, copies_tree
from hedgerow.queries.forms import nodes_form, tree_form
from hedgerow.queries.nodes import NodeCounts, NodesForm, decode_nodes
from hedgerow.queries.query import CountingQuery, Counts, Decoder, Encoder, QueryForm, Shapes, Sums, price_form
from hedgerow.schema.codebook import Codebook


@dataclass(frozen=True, eq=False)
class Sizes(NodeCounts, CountingQuery[Counts]):
    """The number of rows in each node, of declared classes or not; no node may lie above another."""

    name = "sizes"
    label = "V4"
    Form = NodesForm

    def exact(self, sums: Sums, codebook: Codebook) -> Sums:
        return [sums[0].sum(axis=1)]

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(len(self.nodes),)]

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        return NodesForm(number=0, tree=tree_form(self.tree), nodes=nodes_form(self.nodes), price=price_form(price))

    @classmethod
    def decode(cls, form: NodesForm, decode: Decoder) -> Sizes:
        return cls(*decode_nodes(form, decode, decode.codebook.n_classes + 1))

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        return [Attack(cls.name, ONE_MORE, PURE, MORE, lambda codebook: cls(*copies_tree()), runs=COPIES, copies=True, gaussian=True)]
