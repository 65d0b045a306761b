"""Oblivious trees: all nodes of a level ask the same question, so that the answers spell the number of the leaf.

    leaf(x) = Σ_l answers[l][x's code of attributes[l]] · stride_l          stride_l = the product of the answers of the levels below

Every code has an answer, also the one for "no declared value" (`sizes[j]`): each row is in exactly one leaf. A tree of one level may have
many answers, such as one for each group of an attribute's values; boosted trees have two on each level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError

MOST_LEAVES = 2**16
MOST_LEVELS = 16


class Answers:
    """The answer for each code of an attribute, and last for rows without a declared value: 0, 1, … It cannot be changed."""

    __slots__ = ("_hash", "array", "radix")

    def __init__(self, values: Sequence[int] | NDArray[Any]) -> None:
        given = np.asarray(values)
        sound = given.ndim == 1 and given.size and given.dtype.kind in "iub"
        if given.dtype == np.bool_ and sound:
            least, most = 0, int(given.any())  # the same, sooner
        else:
            least, most = (int(given.min()), int(given.max())) if sound else (-1, -1)
        if not 0 <= least <= most < MOST_LEAVES:
            raise ReleaseError(f"oblivious tree: expected for each code an answer from 0 to {MOST_LEAVES - 1}.")
        self.array: NDArray[np.uint16] = given.astype(np.uint16)
        self.array.setflags(write=False)
        self.radix = most + 1
        self._hash = hash(self.array.tobytes())

    def __len__(self) -> int:
        return len(self.array)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Answers) and np.array_equal(self.array, other.array))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return Answers, (self.array,)


@dataclass(frozen=True, eq=False)
class ObliviousTree:
    """A tree over attributes with the given domain sizes.

    attributes: what each level asks about, the top first
    answers:    for each level one of 0, 1, … for each code of its attribute, and last for rows without a declared value
    """

    sizes: tuple[int, ...]
    attributes: tuple[int, ...]
    answers: tuple[Answers, ...]

    radix: tuple[int, ...] = field(init=False, repr=False)  # how many answers each level has
    n_nodes: int = field(init=False, repr=False)  # its leaves: no other node has numbers of its own

    def __post_init__(self) -> None:
        answers = tuple([each if isinstance(each, Answers) else Answers(each) for each in self.answers])
        radix = tuple([each.radix for each in answers])
        n_nodes, m = math.prod(radix), len(self.sizes)
        sound = len(self.attributes) == len(answers) <= MOST_LEVELS and n_nodes <= MOST_LEAVES
        sound = sound and not [j for j in self.attributes if not 0 <= j < m]
        sound = sound and [len(each.array) for each in answers] == [self.sizes[j] + 1 for j in self.attributes]
        if not sound:
            raise ReleaseError(
                f"oblivious tree: expected at most {MOST_LEVELS} levels, {MOST_LEAVES} leaves, and on each level an answer for every code."
            )
        for name, value in (("answers", answers), ("radix", radix), ("n_nodes", n_nodes)):
            object.__setattr__(self, name, value)

    def above(self, lower: ObliviousTree) -> ObliviousTree:
        """This tree with another one below each of its leaves: of two sound trees, so that only the size is checked."""
        tree, n_nodes = object.__new__(ObliviousTree), self.n_nodes * lower.n_nodes
        attributes = self.attributes + lower.attributes
        if self.sizes != lower.sizes or len(attributes) > MOST_LEVELS or n_nodes > MOST_LEAVES:
            raise ReleaseError(f"oblivious tree: expected at most {MOST_LEVELS} levels and {MOST_LEAVES} leaves, over the same attributes.")
        tree.__dict__.update(
            sizes=self.sizes, attributes=attributes, answers=self.answers + lower.answers, radix=self.radix + lower.radix, n_nodes=n_nodes
        )
        return tree

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ObliviousTree)
            and self.sizes == other.sizes
            and self.attributes == other.attributes
            and self.answers == other.answers
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def steps(self) -> NDArray[np.uint16]:
        """For the compiled loops: (levels, codes), what a code adds to the number of the leaf."""
        return steps_of(self.answers, max(self.sizes) + 1)

    def leaves_of(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The leaf of every row of codes."""
        leaf = np.zeros(len(codes), dtype=np.int64)
        for j, step in zip(self.attributes, self.steps, strict=True):
            leaf += step[codes[:, j]]
        return leaf


def steps_of(answers: Sequence[Answers], width: int, stride: int = 1) -> NDArray[np.uint16]:
    """What each code adds to the number of the leaf, level by level; stride: how many leaves there are below these levels."""
    table = np.zeros((len(answers), width), dtype=np.uint16)
    for level in reversed(range(len(answers))):
        table[level, : len(answers[level])] = answers[level].array * np.int64(stride)  # below MOST_LEAVES in all
        stride *= answers[level].radix
    return table


def one_question(sizes: Sequence[int], attribute: int, answers: Sequence[int]) -> ObliviousTree:
    """A tree of one level."""
    return ObliviousTree(tuple(sizes), (attribute,), (Answers(list(answers)),))


def runs_of(answers: Answers) -> list[int]:
    """How many codes in a row have which answer: 0, 0, 0, 1 is [3, 0, 1, 1]. Thresholds are short so."""
    changes = np.flatnonzero(np.diff(answers.array)) + 1
    first = np.concatenate([[0], changes])
    lengths = np.diff(np.append(first, len(answers)))
    return [int(number) for number in np.stack([lengths, answers.array[first]], axis=1).ravel()]


def tree_of_runs(sizes: tuple[int, ...], attributes: Sequence[int], runs: Sequence[Sequence[int]]) -> ObliviousTree:
    """A tree as a file or a message holds it: refused before room is made for what it claims to be."""
    sound = len(attributes) == len(runs) <= MOST_LEVELS and all(
        0 <= j < len(sizes) and len(run) % 2 == 0 and min(run, default=-1) >= 0 and sum(run[::2]) == sizes[j] + 1
        for j, run in zip(attributes, runs, strict=False)
    )
    if not sound:
        raise ReleaseError("oblivious tree: expected for each level as many answers as its attribute has codes, and one more.")
    if any(max(run[1::2]) >= MOST_LEAVES for run in runs):
        raise ReleaseError(f"oblivious tree: expected for each code an answer from 0 to {MOST_LEAVES - 1}.")
    answers = tuple(Answers(np.repeat(run[1::2], run[::2])) for run in runs)
    return ObliviousTree(tuple(sizes), tuple(attributes), answers)
