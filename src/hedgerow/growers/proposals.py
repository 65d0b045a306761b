"""Random oblivious trees for a private choice: drawn from `random_state` and from earlier answers, never from rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.oblivious import Answers, ObliviousTree

ORDERED = 0.3  # share of the questions about categories that cut them in the order of a released score
LEARNT = 0.02  # how far each chosen question moves the chances of the attributes to its own
FORGOTTEN = 0.03  # and how far each chosen tree moves them all together again
MOST_VALUES = 2_000  # a category with more is in its table alone: a question about it would be as long
NEAR = 0.7  # share of the cuts of numbers that are drawn near chosen ones
CUTS_LEARNT, WIDTH = 0.1, 2.0  # how far each chosen cut moves the chances to those around it, and how far that is, in cells
DRAWN = 64  # questions about a category that are drawn at once
UPPERS, LOWERS = 4, 6  # halves that are drawn: each upper one with each lower one is a candidate, and four such share their sums
CANDIDATES = UPPERS * LOWERS


class Proposals:
    """Draws candidates, and learns from those that were chosen which attributes to ask about, and where to cut numbers.

    cells:  for each attribute the cell of every code; a number's are in order
    scores: for each attribute (codes, classes), where something about its codes is released, else zeros
    told:   how much each attribute tells, as far as is released
    """

    def __init__(
        self,
        sizes: tuple[int, ...],
        numeric: tuple[int, ...],
        cells: list[NDArray[np.int64]],
        scores: list[NDArray[np.float64]],
        told: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> None:
        self.sizes, self.numeric, self.cells, self.scores, self.rng = sizes, numeric, cells, scores, rng
        small = [bool(number) or size <= MOST_VALUES for number, size in zip(numeric, sizes, strict=True)]
        self.usable = np.array([int(cell.max()) > 0 and fits for cell, fits in zip(cells, small, strict=True)], dtype=np.float64)
        self.chance = self._shared(told + 0.05 * told.max())
        self._known: dict[tuple[int, bytes], Answers] = {}  # there are few, and each is asked about often
        self._ready: dict[int, list[Answers]] = {}
        self._near: dict[tuple[int, int], NDArray[np.float64]] = {}
        self.places = [max(1, int(cell[number - 1])) if number else 0 for cell, number in zip(cells, numeric, strict=True)]
        self.below = [np.arange(1, places + 1) / max(1, places) for places in self.places]  # the chance of a cut there or below

    @property
    def any(self) -> bool:
        """Whether there is anything to ask about."""
        return bool(self.usable.any())

    def candidates(self, depth: int, groups: int = 1) -> list[ObliviousTree]:
        """In each group CANDIDATES trees of so many levels: every upper half with every lower one."""
        levels = (depth // 2, depth - depth // 2)
        asked = [self.rng.choice(len(self.sizes), (groups, n, own), p=self.chance) for n, own in zip((UPPERS, LOWERS), levels, strict=True)]
        counts = np.bincount(np.concatenate([own.ravel() for own in asked])).tolist()
        drawn = {j: iter(self._questions(j, n)) for j, n in enumerate(counts) if n}

        def halves(group: list[list[int]]) -> list[ObliviousTree]:
            return [ObliviousTree(self.sizes, tuple(own), tuple([next(drawn[j]) for j in own])) for own in group]

        pairs = zip(*[[halves(group) for group in own.tolist()] for own in asked], strict=True)
        return [upper.above(lower) for uppers, lowers in pairs for upper in uppers for lower in lowers]

    def learn(self, tree: ObliviousTree) -> None:
        for j, answers in zip(tree.attributes, tree.answers, strict=True):
            self.chance *= 1 - LEARNT
            self.chance[j] += LEARNT
            if self.numeric[j]:
                self._learn_cut(j, answers)
        self.chance = self._shared(self.chance + FORGOTTEN / len(self.sizes))

    def _learn_cut(self, j: int, answers: Answers) -> None:
        """Cuts of a number near one that was chosen are drawn more often."""
        cut = int(self.cells[j][int(answers.array[: self.numeric[j]].argmax())])
        if (j, cut) not in self._near:
            near = np.exp(-0.5 * ((np.arange(1, self.places[j] + 1) - cut) / WIDTH) ** 2).cumsum()
            self._near[j, cut] = CUTS_LEARNT * near / near[-1]
        self.below[j] = (1 - CUTS_LEARNT) * self.below[j] + self._near[j, cut]

    def _shared(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        usable = weights * self.usable
        return np.asarray(usable / max(usable.sum(), 1e-300))

    def _questions(self, j: int, n: int) -> list[Answers]:
        """So many, yes or no for every code."""
        if self.numeric[j]:
            return self._thresholds(j, n)
        ready = self._ready.setdefault(j, [])  # of categories, which are drawn in the same way in each round
        if len(ready) < n:
            ready += self._sets(j, max(n, DRAWN))
        self._ready[j] = ready[n:]
        return ready[:n]

    def _thresholds(self, j: int, n: int) -> list[Answers]:
        """Of a number. A code without a cell of its own has any side."""
        near = self.below[j][:-1].searchsorted(self.rng.random(n))
        cut = 1 + np.where(self.rng.random(n) < NEAR, near, self.rng.integers(self.places[j], size=n))
        answers = np.empty((n, self.sizes[j] + 1), dtype=np.bool_)
        answers[:, : self.numeric[j]] = self.cells[j][: self.numeric[j]] >= cut[:, None]
        answers[:, self.numeric[j] :] = self.rng.random((n, self.sizes[j] + 1 - self.numeric[j])) < 0.5
        return self._answers(j, answers)

    def _sets(self, j: int, n: int) -> list[Answers]:
        """Some of the values of a category, but not all or none; a part of them are put in the order of a released score, and cut there."""
        d = self.sizes[j]
        answers = self.rng.random((n, d + 1)) < 0.5
        if d == 2:
            answers[:, :2] = (False, True)
            return self._answers(j, answers)
        sides = answers[:, :d]
        alike = np.flatnonzero(sides.all(axis=1) | ~sides.any(axis=1))
        sides[alike] = np.arange(d) == self.rng.integers(d, size=(len(alike), 1))
        ordered = np.flatnonzero(self.rng.random(n) < ORDERED)
        own = self.scores[j].T[self.rng.integers(self.scores[j].shape[1], size=len(ordered))]
        rank = (own + 1e-6 * self.rng.random(own.shape)).argsort(axis=1).argsort(axis=1)
        sides[ordered] = rank >= self.rng.integers(1, d, size=(len(ordered), 1))
        return self._answers(j, answers)

    def _answers(self, j: int, sides: NDArray[np.bool_]) -> list[Answers]:
        keys = [(j, own.tobytes()) for own in sides]
        return [self._known.get(key) or self._known.setdefault(key, Answers(own)) for key, own in zip(keys, sides, strict=True)]
