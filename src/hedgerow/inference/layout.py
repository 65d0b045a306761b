"""How the trees of a Hedgerow forest stand: a small top tree, and under it a table for each attribute.

    trees[0]     the top tree, if it asks anything: one or two questions that were chosen first
    the others   one for each attribute j that was measured. Joined: the top tree with all codes of j asked at each of its leaves; not
                 joined: all codes of j asked at the root. A leaf of the top tree that already says the code of j is not asked again.

An attribute that every leaf of the top tree knows has no tree of its own: the top tree is its table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import LEAVES, CountedForest
from hedgerow.trees.tree import Tree, TreeBuilder

TOGETHER = 4  # neighbouring numeric cells that share a branch where rows are few
MOST_CELLS = 20_000_000  # (leaf, code, class) of all attributes together: 160 MB


@dataclass(frozen=True, eq=False)
class Layout:
    """top: the top tree (a single leaf where nothing was asked); attributes: those with a tree of their own, in order.

    together: how many neighbouring numeric cells share a branch; cells: of each attribute, how many of its codes are such cells
    groups: for each attribute with a tree the branch of each of its codes, where it is not that (rules 2)
    """

    top: Tree
    joined: bool
    attributes: tuple[int, ...]
    together: int = 1
    cells: tuple[int, ...] = ()
    groups: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def asks(self) -> bool:
        return self.top.n_nodes > 1

    @property
    def under(self) -> Tree:
        """The tree at whose leaves each attribute is asked."""
        return self.top if self.joined else TreeBuilder(self.top.sizes).build()

    @cached_property
    def known(self) -> NDArray[np.int64]:
        """known[leaf of the top tree, attribute]: the code that the path to it says, −1 where it says none."""
        codes = np.full((len(self.top.leaves), len(self.top.sizes)), -1, dtype=np.int64)
        for place, leaf in enumerate(self.top.leaves):
            for attribute, ways in self.top.path(int(leaf)):
                if len(ways) == 1:
                    codes[place, attribute] = ways[0]
        return codes

    def asked(self, attribute: int) -> NDArray[np.int64]:
        """The leaves of `under`, by place, at which the attribute is asked."""
        if not self.joined:
            return np.zeros(1, dtype=np.int64)
        return np.flatnonzero(self.known[:, attribute] < 0)

    def branches(self, attribute: int) -> NDArray[np.int64]:
        """For every code of the attribute the number of its branch."""
        if attribute in self.groups:
            return self.groups[attribute]
        codes = np.arange(self.top.sizes[attribute])
        numeric = self.cells[attribute] if self.together > 1 else 0
        if not numeric:
            return codes
        wide = -(-numeric // self.together)
        return np.where(codes < numeric, codes // self.together, wide + codes - numeric)

    def first_codes(self, attribute: int) -> NDArray[np.int64]:
        """The first code of every branch."""
        return np.unique(self.branches(attribute), return_index=True)[1]

    def tree(self, attribute: int) -> Tree:
        """The tree of one attribute: `under` keeps its node numbers, then come the codes at one leaf after the other."""
        under = self.under
        builder = TreeBuilder(under.sizes)
        for node in np.flatnonzero(under.attribute >= 0):
            _copy(under, int(node), builder)
        for place in self.asked(attribute):
            builder.split(int(under.leaves[place]), attribute, self.branches(attribute).tolist())
        return builder.build()

    @property
    def trees(self) -> tuple[Tree, ...]:
        own = tuple(self.tree(attribute) for attribute in self.attributes)
        return (self.top, *own) if self.asks else own


def _copy(tree: Tree, node: int, builder: TreeBuilder) -> None:
    """The question of one node, its children numbered in order of their first code, as `TreeBuilder` numbers them."""
    children = tree.children(node)
    present = children[children >= 0]
    first = int(present.min()) if len(present) else 0
    builder.split(node, int(tree.attribute[node]), [int(child) - first if child >= 0 else -1 for child in children])


def attributes_to_ask(top: Tree, joined: bool, wanted: Sequence[int]) -> tuple[int, ...]:
    """Those of the wanted attributes that the top tree does not tell everywhere."""
    known = Layout(top, joined, ()).known
    return tuple(a for a in wanted if top.n_nodes == 1 or (known[:, a] < 0).any())


def cells_of(codebook: Codebook) -> tuple[int, ...]:
    return tuple(codebook.numeric_cells(attribute) for attribute in range(len(codebook.sizes)))


def layout_of(forest: CountedForest, questions: int, joined: bool, together: int = 1) -> Layout:
    """The layout of a forest that says how many questions its top tree asks on the way down; anything else is refused."""
    trees, codebook = forest.trees, forest.codebook
    top = trees[0] if questions else TreeBuilder(codebook.sizes).build()
    own = trees[1:] if questions else trees
    attributes = tuple(_asked_by(tree, top if joined else None) for tree in own)
    layout = Layout(top, joined, attributes, together, cells_of(codebook))
    distinct = len(set(attributes)) == len(attributes) and -1 not in attributes
    simple = forest.measured == LEAVES and not forest.united and distinct and top.height == questions and (together == 1 or not questions)
    if not simple or not _small(layout, codebook.n_classes) or not _stands(layout, own) or layout.trees != trees:
        raise ReleaseError("its trees do not stand as those of a Hedgerow forest do: a top tree, and one tree for each attribute.")
    return layout


def grouped_layout(codebook: Codebook, groups: Mapping[int, NDArray[np.int64]], top: Tree | None = None, joined: bool = False) -> Layout:
    """For each of some attributes a table of groups of its codes, and perhaps a top tree."""
    above = TreeBuilder(codebook.sizes).build() if top is None else top
    asked = attributes_to_ask(above, joined, tuple(groups))
    return Layout(above, joined, asked, 1, cells_of(codebook), {j: groups[j] for j in asked})


def grouped_layout_of(forest: CountedForest, questions: int, joined: bool) -> Layout:
    """The same of a forest, whose trees say the groups; anything else is refused."""
    trees, codebook = forest.trees, forest.codebook
    top = trees[0] if questions else TreeBuilder(codebook.sizes).build()
    under = top if joined else TreeBuilder(codebook.sizes).build()
    groups: dict[int, NDArray[np.int64]] = {}
    for tree in trees[1:] if questions else trees:
        j = _asked_by(tree, top if joined else None)
        places = [node for node in under.leaves.tolist() if node < tree.n_nodes and int(tree.attribute[node]) == j]
        if j >= 0 and j not in groups and places:
            branch = tree.children(places[0]).astype(np.int64)
            groups[j] = branch - branch.min()
    layout = Layout(top, joined, tuple(groups), 1, cells_of(codebook), groups)
    simple = forest.measured == LEAVES and not forest.united and len(groups) == len(trees) - (questions > 0) and top.height == questions
    in_order = all(np.array_equal(np.unique(group), np.arange(int(group.max()) + 1)) for group in groups.values())
    if not simple or not in_order or not _small(layout, codebook.n_classes) or layout.trees != trees:
        raise ReleaseError("its trees do not stand as those of a Hedgerow forest do: a top tree, and one tree for each attribute.")
    return layout


def _asked_by(tree: Tree, under: Tree | None) -> int:
    """The attribute that the tree asks where `under` asks nothing; −1 if there is none."""
    above = np.array([-1]) if under is None else under.attribute
    here = tree.attribute[: len(above)]
    asks = np.flatnonzero((here >= 0) & (above[: len(here)] < 0))
    return int(here[asks[0]]) if len(asks) else -1


def _small(layout: Layout, n_classes: int) -> bool:
    """Whether its tables can be held: compared before anything is built, since the file may be anybody's."""
    leaves, m = len(layout.top.leaves), len(layout.top.sizes)
    places = leaves if layout.joined else 1
    return leaves * m <= MOST_CELLS and places * sum(layout.top.sizes[j] for j in layout.attributes) * n_classes <= MOST_CELLS


def _stands(layout: Layout, own: Sequence[Tree]) -> bool:
    """Whether every tree has as many nodes as it should."""
    under = layout.under.n_nodes
    expected = [under + len(layout.asked(j)) * (int(layout.branches(j).max()) + 1) for j in layout.attributes]
    return [tree.n_nodes for tree in own] == expected
