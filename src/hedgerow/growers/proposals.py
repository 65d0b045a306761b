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
HALVES = 5  # upper and lower halves that are drawn: each pair of them is a candidate


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
        self._known: dict[tuple[int, int, bytes], Answers] = {}  # there are few, and each is asked about often
        self.places = [max(1, int(cell[number - 1])) if number else 0 for cell, number in zip(cells, numeric, strict=True)]
        self.below = [np.arange(1, places + 1) / max(1, places) for places in self.places]  # the chance of a cut there or below

    @property
    def any(self) -> bool:
        """Whether there is anything to ask about."""
        return bool(self.usable.any())

    def candidates(self, depth: int) -> list[ObliviousTree]:
        """HALVES² trees of so many levels: every upper half with every lower one."""
        asked = self.rng.choice(len(self.sizes), size=(HALVES, depth), p=self.chance).tolist()
        answers = [[self._question(j) for j in levels] for levels in asked]
        uppers, lowers = (
            [ObliviousTree(self.sizes, tuple(levels[part]), tuple(own[part])) for levels, own in zip(asked, answers, strict=True)]
            for part in (slice(0, depth // 2), slice(depth // 2, depth))
        )
        return [upper.above(lower) for upper in uppers for lower in lowers]

    def learn(self, tree: ObliviousTree) -> None:
        for j, answers in zip(tree.attributes, tree.answers, strict=True):
            self.chance *= 1 - LEARNT
            self.chance[j] += LEARNT
            if self.numeric[j]:
                self._learn_cut(j, answers)
        self.chance = self._shared(self.chance + FORGOTTEN / len(self.sizes))

    def _learn_cut(self, j: int, answers: Answers) -> None:
        """Cuts of a number near one that was chosen are drawn more often."""
        cut = int(self.cells[j][int(np.argmax(answers.array[: self.numeric[j]]))])
        near = np.exp(-0.5 * ((np.arange(1, self.places[j] + 1) - cut) / WIDTH) ** 2).cumsum()
        self.below[j] = (1 - CUTS_LEARNT) * self.below[j] + CUTS_LEARNT * near / near[-1]

    def _shared(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        usable = weights * self.usable
        return np.asarray(usable / max(usable.sum(), 1e-300))

    def _question(self, j: int) -> Answers:
        """Yes or no for every code: a threshold for a number, else some of the values. A value without a cell of its own has any side."""
        d, cells = self.sizes[j], self.numeric[j]
        if cells:
            cell, rest = self.cells[j][:cells], self.rng.random(d + 1 - cells) < 0.5
            near, places = self.rng.random() < NEAR, self.places[j]
            cut = 1 + (int(self.below[j][:-1].searchsorted(self.rng.random())) if near else int(self.rng.integers(places)))
            key = (j, cut, rest.tobytes())
            if key not in self._known:
                self._known[key] = Answers(np.concatenate([cell >= cut, rest]))
            return self._known[key]
        sides = self.rng.random(d + 1) < 0.5
        if d == 2:
            sides[:2] = (False, True)
        elif self.rng.random() < ORDERED:
            own = self.scores[j][:, self.rng.integers(self.scores[j].shape[1])]
            order = np.argsort(own + 1e-6 * self.rng.random(d))
            sides[:d] = False
            sides[order[self.rng.integers(1, d) :]] = True
        elif sides[:d].all() or not sides[:d].any():
            sides[:d] = False
            sides[self.rng.integers(d)] = True
        key = (j, 0, sides.tobytes())
        if key not in self._known:
            self._known[key] = Answers(sides)
        return self._known[key]
