"""The flat tree against definitions written out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import codes_for, trees

from hedgerow.errors import ReleaseError
from hedgerow.queries.kernels import leaf_counts
from hedgerow.trees.routing import route
from hedgerow.trees.tree import NODE, Tree, TreeBuilder

sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def walk(tree: Tree, row: np.ndarray) -> int:
    """Where a row ends, step by step."""
    node = 0
    while tree.attribute[node] >= 0:
        code = int(row[tree.attribute[node]])
        below = tree.children(node)
        if code >= len(below) or below[code] < 0:
            return node
        node = int(below[code])
    return node


@given(st.data(), sizes, st.integers(0, 2**32))
def test_routing_and_counting_by_definition(data: Any, sizes: tuple[int, ...], seed: int) -> None:
    tree = data.draw(trees(sizes))
    tree.check()
    codes = codes_for(sizes, 40, seed)
    ends = route(tree, codes)
    assert ends.tolist() == [walk(tree, row) for row in codes]
    classes = np.random.default_rng(seed).integers(0, 4, 40).astype(np.uint16)  # class 3 is not declared
    (counts,) = leaf_counts([tree], codes, classes, 3)
    wanted = np.zeros((len(tree.leaves), 3), dtype=np.int64)
    for node, label in zip(ends, classes, strict=True):
        if node in tree.leaves and label < 3:
            wanted[tree.leaves.tolist().index(node), label] += 1
    assert np.array_equal(counts, wanted)


@given(st.data(), sizes)
def test_paths_lead_to_their_nodes(data: Any, sizes: tuple[int, ...]) -> None:
    tree = data.draw(trees(sizes))
    for node in range(tree.n_nodes):
        path = tree.path(node)
        assert len(path) == tree.depth[node]
        at = 0
        for attribute, codes in path:
            assert tree.attribute[at] == attribute
            assert len({int(tree.children(at)[code]) for code in codes}) == 1
            at = int(tree.children(at)[codes[0]])
        assert at == node


@given(st.data(), sizes, st.integers(0, 2**32))
def test_adding_up(data: Any, sizes: tuple[int, ...], seed: int) -> None:
    tree = data.draw(trees(sizes))
    values = np.random.default_rng(seed).integers(-9, 9, (len(tree.leaves), 2))
    totals = tree.add_up(values)
    assert np.array_equal(totals[0], values.sum(axis=0))
    for node in np.flatnonzero(tree.attribute >= 0):
        assert np.array_equal(totals[node], sum(totals[c] for c in set(tree.children(int(node)).tolist())))
    assert tree.leaves_below()[0] == len(tree.leaves)


@given(st.data(), sizes)
def test_antichains_are_disjoint_sets_of_rows(data: Any, sizes: tuple[int, ...]) -> None:
    tree = data.draw(trees(sizes))
    nodes = data.draw(st.lists(st.integers(0, tree.n_nodes - 1), max_size=5))

    def above(node: int) -> set[int]:
        found = set()
        while node >= 0:
            found.add(node)
            node = int(tree.parent[node])
        return found

    disjoint = all(a not in above(b) and b not in above(a) for i, a in enumerate(nodes) for b in nodes[:i])
    assert tree.is_antichain(nodes) == disjoint
    assert tree.is_antichain(tree.leaves)


@pytest.mark.slow
@given(st.data(), sizes, st.integers(0, 2**32))
def test_pruned_rows_stop_above(data: Any, sizes: tuple[int, ...], seed: int) -> None:
    tree = data.draw(trees(sizes))
    gone = np.random.default_rng(seed).random(tree.n_nodes) < 0.3
    pruned = tree.without(gone)
    pruned.check()
    for row in codes_for(sizes, 30, seed):
        path = []
        node = walk(tree, row)
        while node >= 0:
            path.append(node)
            node = int(tree.parent[node])
        kept = 0
        for node in path[::-1][1:]:
            if gone[node]:
                break
            kept += 1
        assert pruned.depth[walk(pruned, row)] == kept


def a_tree() -> Tree:
    builder = TreeBuilder((2, 3))
    left, _ = builder.split(0, 0)
    builder.split(left, 1)
    return builder.build()


@pytest.mark.parametrize(
    ("attribute", "branch", "says"),
    [
        ([], [], "nodes"),
        ([5, -1], [1, 1, -1], "attribute"),
        ([-2], [], "attribute"),
        ([0, -1, -1], [1, 2], "branches"),
        ([0, -1, -1], [1, 2, 0], "−1 at every node"),
        ([0, -1, -1], [1, 3, -1], "does not exist"),
        ([0, -1, -1], [1, -7, -1], "does not exist"),
        ([0, 0, -1], [1, 2, -1, 0, 0, -1], "after its parent"),
        ([0, 0, -1, -1], [1, 2, -1, 2, 3, -1], "two parents"),
        ([0, -1, -1], [1, 1, -1], "two parents, or none"),
        ([0, 0, -1], [1, 2, -1, -1, -1, -1], "no branch"),
    ],
)
def test_arrays_that_are_no_tree(attribute: list[int], branch: list[int], says: str) -> None:
    a_tree().check()
    with pytest.raises(ReleaseError, match=says):
        Tree((2, 3), np.array(attribute, dtype=NODE), np.array(branch, dtype=NODE)).check()
