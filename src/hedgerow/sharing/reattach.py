"""ATP with the owner's rows at hand: a leaf that fails is joined to its nearest sibling, and what hangs below that sibling stays.

The paper merges siblings into one leaf, and removes all that hung below them (3.2). Where a question has two answers, one failing leaf so
takes the whole rest of the tree with it. Its idea, to combine paths of a common prefix, allows more: the failing branch is joined to the
nearest one, and its persons go on down there by their own values, as C4.5 does where it raises a subtree. Every path is measured again from
the rows, so that what is published satisfies the requirement as after the paper's own merges.

From the leaves up, at each question: the failing leaf with the fewest persons is joined to the nearest sibling leaf with which it
satisfies the requirement; else to the nearest sibling that asks on, whose own leaves are then looked at again; else to the nearest leaf.
A question with one answer left is asked no more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.anonymity.groups import Group
from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError
from hedgerow.sharing.prune import REATTACH, Cut, Encoded, Node, Pruned, Pruning, built, check_all, groups_of
from hedgerow.trees.forest import CountedForest

Branch = tuple[tuple[int, ...], Node]


def prune_rows(forest: CountedForest, rows: Encoded, requirement: Requirement, hits_only: bool = False) -> Pruned:
    """The pruned tree, its paths measured from these rows: those that the tree counts."""
    codebook, tree = forest.codebook, forest.trees[0]
    requirement.check_classes(codebook.n_classes)
    pruning = Reattaching(codebook, requirement, rows, hits_only)
    root = pruning.run(tree, groups_of(forest, hits_only))
    left, kept = built(tree.sizes, root)
    if len(kept) < 2:
        return Pruned(requirement, codebook, None, (), tuple(pruning.cuts))
    check_all(kept, requirement, codebook.n_classes)
    return Pruned(requirement, codebook, left, tuple(kept), tuple(pruning.cuts))


class Reattaching(Pruning):
    def __init__(self, codebook: Any, requirement: Requirement, rows: Encoded, hits_only: bool) -> None:
        cuts: list[Cut] = []
        super().__init__(codebook, requirement, REATTACH, cuts)
        self.codes, self.classes = rows
        self.hits_only = hits_only

    def measured(self, rows: NDArray[np.int64]) -> Group:
        group = Group.of_counts(np.bincount(self.classes[rows], minlength=self.codebook.n_classes).astype(np.float64))
        return Group(group.label, group.hit, group.miss) if self.hits_only else group

    def begin(self, nodes: list[Node], leaves: list[Node]) -> None:
        counted = [self.group(leaf).total for leaf in leaves]
        for node in nodes:
            self.hold(node, np.empty(0, dtype=np.int64))
        self.add(nodes[0], np.flatnonzero(self.classes < self.codebook.n_classes))
        if [self.group(leaf).total for leaf in leaves] != counted:
            raise PlanError("prune: the rows are not those that the tree was learnt from: its leaves count others. Give the same table.")

    def prune(self, node: Node, where: str) -> None:
        while len(node.branches) > 1 and (failing := [branch for branch in node.branches if self.fails(branch[1])]):
            self.join(node, min(failing, key=lambda branch: (self.group(branch[1]).total, branch[0])), where)
        if len(node.branches) == 1:  # asked no more: also those go on who had no branch there
            ((_, child),) = node.branches
            self.add(child, np.setdiff1d(self.rows(node), self.rows(child)))
            node.attribute, node.branches, node.rows, node.group = child.attribute, child.branches, child.rows, child.group
            self.again(node, where)

    def join(self, node: Node, branch: Branch, where: str) -> None:
        """Join a failing leaf to one of its siblings."""
        codes, leaf = branch
        others = sorted(
            (other for other in node.branches if other[1] is not leaf), key=lambda other: self.distance(node.attribute, codes, other)
        )
        enough = [other for other in others if other[1].leaf and self.holds(self.joined(leaf, other[1]))]
        asking = [other for other in others if not other[1].leaf]
        near_codes, near = (enough or asking or others)[0]
        merged = tuple(sorted((*codes, *near_codes)))
        self.note(node, where, leaf, merged, self.joined(leaf, near), whole=len(others) == 1 and near.leaf)
        self.add(near, self.rows(leaf))
        node.branches = [(merged if other[1] is near else other[0], other[1]) for other in others]
        self.again(near, where)

    def add(self, node: Node, rows: NDArray[np.int64]) -> None:
        """Send rows on from a node to its leaves; a row whose value has no branch is counted in no leaf, as in any tree."""
        if not len(rows):
            return
        self.hold(node, np.concatenate([self.rows(node), rows]))
        for codes, child in node.branches:
            self.add(child, rows[np.isin(self.codes[rows, node.attribute], codes)])

    def again(self, node: Node, where: str) -> None:
        """Look at all questions below once more, from the leaves up: leaves that got rows may fail now."""
        if not node.leaf:
            for _, child in node.branches:
                self.again(child, where)
            self.prune(node, where)

    def hold(self, node: Node, rows: NDArray[np.int64]) -> None:
        node.rows, node.group = rows, self.measured(rows)

    def joined(self, one: Node, other: Node) -> Group:
        return self.measured(np.concatenate([self.rows(one), self.rows(other)]))

    @staticmethod
    def rows(node: Node) -> NDArray[np.int64]:
        assert node.rows is not None
        return node.rows
