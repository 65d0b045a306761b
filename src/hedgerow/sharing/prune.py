"""ATP, anonymity-based tree pruning (Sharkey et al. 2008, 3.2): siblings are merged until every path satisfies the requirement.

From the leaves up: where a leaf does not satisfy the requirement it is merged with its siblings, and what hung below them is removed.

    all        the whole family becomes one leaf, in the place of its parent
    needed     the leaf is merged with the nearest sibling, again and again, until the merged leaf satisfies the requirement: nearest by the
               schema's taxonomy, by the order of a numeric attribute's cells, or else the smallest
    reattach   what hangs below the nearest sibling stays (`reattach.py`); this needs the rows
    best       that of the last two which leaves more persons in leaves of their own class

When a tree with fewer than two leaves is left, the result is the *empty tree*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.anonymity.groups import Group, spread, together
from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError, ReleaseError
from hedgerow.schema.codebook import Codebook
from hedgerow.sharing.taxonomy import Taxonomies
from hedgerow.trees.forest import LEAVES, CountedForest
from hedgerow.trees.paths import Paths, condition_words, from_counts, paths_of, paths_with_hits, reach
from hedgerow.trees.tree import Tree, TreeBuilder

ALL, NEEDED, REATTACH, BEST = "all", "needed", "reattach", "best"
SIBLINGS = (ALL, NEEDED, REATTACH, BEST)
Encoded = tuple[NDArray[Any], NDArray[np.uint16]]  # codes and classes of rows
DIGITS = 9  # of a number of persons that is made of a share


@dataclass(frozen=True)
class Cut:
    """One merge: where, which values of which attribute, why, and what came of it."""

    where: str
    attribute: str
    merged: str
    why: str
    persons: float
    whole_family: bool

    def words(self) -> str:
        what = f"all branches of {self.attribute}" if self.whole_family else f"the branches {self.merged}"
        return f"{self.where}: {what} are merged ({self.why}); {self.persons:.6g} persons together"


@dataclass(frozen=True, eq=False)
class Pruned:
    """A tree that satisfies a requirement, or by name the empty tree.

    groups: the persons of each leaf, in order; or their shares of a table of so many `rows`
    """

    requirement: Requirement
    codebook: Codebook
    tree: Tree | None
    groups: tuple[Group, ...]
    cuts: tuple[Cut, ...]
    rows: float = 1.0

    @property
    def empty(self) -> bool:
        """No tree with at least two leaves satisfies the requirement: nothing is published."""
        return self.tree is None

    @property
    def paths(self) -> Paths:
        if self.tree is None:
            raise ReleaseError("the pruned tree is empty: it has no paths.")
        if all(group.counts is not None for group in self.groups):
            allowed, asked = reach(self.tree)
            leaves = self.tree.leaves
            return from_counts(self.codebook, allowed[leaves], asked[leaves], np.array([group.counts for group in self.groups]))
        label, hit, miss = ([getattr(group, name) for group in self.groups] for name in ("label", "hit", "miss"))
        return paths_with_hits(self.codebook, self.tree, label, hit, miss)

    @property
    def forest(self) -> CountedForest:
        """The tree with its class counts, to be published. Where only hit and miss are known, misses stand evenly in the other classes."""
        if self.tree is None:
            raise ReleaseError("the pruned tree is empty: there is nothing to publish.")
        n = self.codebook.n_classes
        persons = [_times(group, self.rows) for group in self.groups]
        rows = [group.counts if group.counts is not None else spread(group.label, group.hit, group.miss, n) for group in persons]
        return CountedForest(self.codebook, (self.tree,), (np.round(np.array(rows)).astype(np.int64),), (), LEAVES)


@dataclass(eq=False)
class Node:
    """A node while it is pruned: the codes that lead to each child, and the persons below."""

    attribute: int
    branches: list[tuple[tuple[int, ...], Node]] = field(default_factory=list)
    group: Group | None = None
    rows: NDArray[np.int64] | None = None  # where they are known
    merged: list[Group] = field(default_factory=list)  # the siblings that it was made of

    @property
    def leaf(self) -> bool:
        return not self.branches


def prune(
    forest: CountedForest, requirement: Requirement, *, siblings: str = NEEDED, hits_only: bool = False, rows: Encoded | None = None
) -> Pruned:
    """Prune a tree with known class counts. `hits_only` takes only hit and miss of each leaf from it, as the paper's trees tell.

    rows: the codes and classes of the rows that the tree counts, where paths are measured again
    """
    if siblings == BEST:
        tried = [prune(forest, requirement, siblings=NEEDED, hits_only=hits_only)]
        tried.append(prune(forest, requirement, siblings=REATTACH, hits_only=hits_only, rows=rows))
        return max(tried, key=lambda pruned: sum(group.hit for group in pruned.groups))
    if len(forest.trees) != 1:
        raise PlanError(
            f"prune: got {len(forest.trees)} trees. Each tree of a forest tells about the same persons, and what several tell together no "
            "requirement on each of them bounds: publish one tree."
        )
    if forest.noisy:
        raise PlanError("prune: the counts are noisy. A private release needs no pruning: publish it as it is.")
    if (siblings == REATTACH) != (rows is not None):
        raise PlanError(f"siblings: {REATTACH!r} and {BEST!r} need the rows that the tree was learnt from; others take none.")
    if rows is not None:
        from hedgerow.sharing.reattach import prune_rows

        return prune_rows(forest, rows, requirement, hits_only)
    return prune_groups(forest.codebook, forest.trees[0], groups_of(forest, hits_only), requirement, siblings=siblings)


def groups_of(forest: CountedForest, hits_only: bool = False) -> list[Group]:
    """The persons of each leaf, in order."""
    paths = paths_of(forest)
    return [
        Group(int(label), float(hit), float(miss), None if hits_only or paths.counts is None else paths.counts[i])
        for i, (label, hit, miss) in enumerate(zip(paths.label, paths.hit, paths.miss, strict=True))
    ]


def prune_groups(
    codebook: Codebook,
    tree: Tree,
    groups: Sequence[Group],
    requirement: Requirement,
    *,
    siblings: str = NEEDED,
    rows: float | None = None,
) -> Pruned:
    """ATP on any tree with the persons of each leaf, in order. `rows`: the groups are shares of a table with so many rows."""
    if siblings not in (ALL, NEEDED):
        raise PlanError(f"siblings: got {siblings!r}; expected one of {', '.join(SIBLINGS)}.")
    if len(groups) != len(tree.leaves):
        raise PlanError("prune: expected one group of persons for each leaf.")
    requirement.check_classes(codebook.n_classes)
    scale = 1.0 if rows is None else float(rows)
    scaled = [_times(group, scale) for group in groups]
    cuts: list[Cut] = []
    root = Pruning(codebook, requirement, siblings, cuts).run(tree, scaled)
    left, kept = built(tree.sizes, root)
    if len(kept) < 2:
        return Pruned(requirement, codebook, None, (), tuple(cuts), scale)
    shares = kept if rows is None else [_times(group, 1 / scale, exactly=True) for group in kept]
    check_all(kept, requirement, codebook.n_classes)
    return Pruned(requirement, codebook, left, tuple(shares), tuple(cuts), scale)


def check_all(groups: Sequence[Group], requirement: Requirement, n_classes: int) -> None:
    """By the measuring code, not by what the pruning remembers."""
    if not all(group.published_satisfies(requirement, n_classes) for group in groups):
        raise ReleaseError(f"the pruned tree does not satisfy {requirement.words()}: a defect, nothing is published.")


def _times(group: Group, factor: float, exactly: bool = False) -> Group:
    """Shares as persons, without the last digits that floats lose; or back (`exactly`)."""
    if factor == 1.0:
        return group

    def times(number: float) -> float:
        return number * factor if exactly else round(number * factor, DIGITS)

    counts = None if group.counts is None else np.array([times(float(number)) for number in group.counts])
    return Group(group.label, times(group.hit), times(group.miss), counts)


class Pruning:
    def __init__(self, codebook: Codebook, requirement: Requirement, siblings: str, cuts: list[Cut]) -> None:
        self.codebook, self.requirement, self.siblings, self.cuts = codebook, requirement, siblings, cuts
        self.taxonomies = Taxonomies(codebook)

    def run(self, tree: Tree, groups: Sequence[Group]) -> Node:
        nodes = [Node(int(attribute)) for attribute in tree.attribute]
        for leaf, group in zip(tree.leaves, groups, strict=True):
            nodes[leaf].group = group
        where = [""] * tree.n_nodes
        for number in range(tree.n_nodes):  # parents first
            if nodes[number].attribute < 0:
                continue
            children = tree.children(number)
            for child in np.unique(children[children >= 0]):
                codes = tuple(int(code) for code in np.flatnonzero(children == child))
                nodes[number].branches.append((codes, nodes[int(child)]))
                said = condition_words(self.codebook, nodes[number].attribute, codes)
                where[int(child)] = f"{where[number]} and {said}" if where[number] else said
        self.begin(nodes, [nodes[leaf] for leaf in tree.leaves])
        for number in reversed(range(tree.n_nodes)):  # children first
            if not nodes[number].leaf:
                self.prune(nodes[number], where[number] or "at the root")
        return nodes[0]

    def begin(self, nodes: list[Node], leaves: list[Node]) -> None:
        """Before anything is merged."""

    def prune(self, node: Node, where: str) -> None:
        """Lines 6 to 14: every leaf below satisfies the requirement afterwards, or the node is a leaf itself."""
        node.group = together([self.group(child) for _, child in node.branches], self.codebook.n_classes)
        failing = [(codes, child) for codes, child in node.branches if self.fails(child)]
        if not failing:
            return
        if self.siblings == ALL:
            self.note(node, where, failing[0][1], [code for codes, _ in node.branches for code in codes], node.group, whole=True)
            node.branches = []
            return
        while failing and len(node.branches) > 1:
            codes, child = min(failing, key=lambda branch: (self.group(branch[1]).total, branch[0]))
            others = [branch for branch in node.branches if branch[1] is not child]
            near_codes, near = min(others, key=lambda other: self.distance(node.attribute, codes, other))
            merged = tuple(sorted((*codes, *near_codes)))
            members = [group for each in (child, near) for group in each.merged or [self.group(each)]]
            group = together(members, self.codebook.n_classes)
            self.note(node, where, child, merged, group, whole=len(others) == 1)
            node.branches = [branch for branch in others if branch[1] is not near] + [(merged, Node(-1, [], group, merged=members))]
            failing = [branch for branch in node.branches if self.fails(branch[1])]
        if len(node.branches) == 1:
            node.group = self.group(node.branches[0][1])
            node.branches = []

    def distance(
        self, attribute: int, codes: tuple[int, ...], other: tuple[tuple[int, ...], Node]
    ) -> tuple[float, bool, float, tuple[int, ...]]:
        """How far a sibling is: by the taxonomy or the order of cells, then leaves before subtrees, small before large."""
        cells = self.codebook.numeric_cells(attribute)
        mine, theirs = [code for code in codes if code < cells], [code for code in other[0] if code < cells]
        if mine and theirs:
            near = float(min(abs(a - b) for a in mine for b in theirs))
        elif cells:
            near = float(cells)  # the branch for missing numbers is near to none
        else:
            near = float(max(self.taxonomies.distance(attribute, a, b) for a in codes for b in other[0]))
        return (near, not other[1].leaf, self.group(other[1]).total, other[0])

    def fails(self, node: Node) -> bool:
        return node.leaf and not self.holds(self.group(node))

    def holds(self, group: Group) -> bool:
        return group.published_satisfies(self.requirement, self.codebook.n_classes)

    @staticmethod
    def group(node: Node) -> Group:
        assert node.group is not None
        return node.group

    def note(self, node: Node, where: str, failing: Node, codes: Sequence[int], group: Group, whole: bool) -> None:
        lacking = self.group(failing)
        whole_numbers = lacking.in_whole_numbers(self.codebook.n_classes)
        why = lacking.why_not(self.requirement) or f"in whole persons: {whole_numbers.why_not(self.requirement)}"
        merged = condition_words(self.codebook, node.attribute, sorted(codes))
        self.cuts.append(Cut(where, self.codebook.schema.names[node.attribute], merged, why, group.total, whole))


def built(sizes: tuple[int, ...], root: Node) -> tuple[Tree, list[Group]]:
    """The pruned tree in the package's own form, with the persons of its leaves in order."""
    builder = TreeBuilder(sizes)
    leaves: dict[int, Group] = {}
    open_nodes = [(0, root)]
    for number, node in open_nodes:  # grows while it is gone through: level by level
        if node.leaf:
            assert node.group is not None
            leaves[number] = node.group
            continue
        place = {code: child for child, (codes, _) in enumerate(node.branches) for code in codes}
        children = builder.split(number, node.attribute, [place.get(code, -1) for code in range(sizes[node.attribute])])
        open_nodes += [(children[i], child) for i, (_, child) in enumerate(node.branches)]
    return builder.build(), [leaves[number] for number in sorted(leaves)]
