"""The joint fit: a score of each class for every group of every attribute, all fitted together by damped Newton steps on noisy sums.

Of all rows with a value, Σ R and Σ H (`queries/boosting.py`) say in which direction its score is wrong, and how far a step may go. One
round brings these sums for all attributes, under the scores so far; K rounds share the price. σ is the noise of a sum in one round.

    θ ← θ + γ·(H + P̃)⁻¹(ΣR − P̃·θ)        P̃ = (1 + σ²/(K·H))·P: the step of all rounds together is the best guess of scores that are
                                          draws around 0, P the inverse of their covariance

Scores have the variance v. Those of two categories say nothing of each other; neighbouring groups of a number resemble each other: S of
their variance is shared, with a correlation that fades over its range. Scores of an attribute add up to 0, and an intercept is fitted
with them. γ is small where there are many attributes, since they may all say the same and would go too far together; it begins with a
quarter of that and doubles, until a step goes back by more than noise does: then half of the last one is taken back, and γ is halved for
good. v is small there, too: margins, sums over m attributes, are taken for draws of variance V = m·v. The result is the mean of the
second half of the rounds. ΣH is averaged over the rounds, and believed as far as it stands out from its noise. All is computed from
released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.growers.leaf_steps import STEPS
from hedgerow.inference.evidence import MARGIN_VARIANCE as VARIANCE  # V
from hedgerow.trees.additive_model import gradient_width

Floats = NDArray[np.float64]
STEP, STEP_OF_ALL = 0.5, 3.0  # γ is at most this; and this for all attributes together
SMOOTH, REACH = 0.8, 1.0  # S; the correlation falls to 1/e over this part of a number's groups
LARGEST = 20.0  # the most that a score may become


class JointFit:
    """groups: of each attribute, how many, without that of undeclared values, which stands last in the sums and stays 0
    ordered: how many of them, the first, are those of a number, in its order

    rows, shares: n̂, and the share of each class, for a first guess of H; sd: σ; w: the weight of Hessians in the sums
    """

    def __init__(
        self, groups: Sequence[int], ordered: Sequence[int], rows: float, shares: Floats, sd: float, rounds: int, w: float
    ) -> None:
        self.classes, self.rounds, self.sd, self.w = len(shares), rounds, sd, w
        self.largest = min(STEP, STEP_OF_ALL / len(groups))
        self.gamma, self.taken = self.largest / 4, 0
        spread = (shares * (1 - shares))[-gradient_width(len(shares)) :]
        self.guess = [np.tile(np.maximum(rows * spread / g, 1e-3), (g, 1)) for g in groups]
        self.hessians = [np.zeros_like(h) for h in self.guess]
        # The attributes, and last the intercept, of which every attribute tells the sums, that with many groups worse.
        self.scores: list[Floats] = [*(np.zeros_like(h) for h in self.guess), np.zeros((1, spread.size))]
        self.known = sum(1 / (g + 1) for g in groups)
        self.noise = [*(sd for _ in groups), sd / math.sqrt(self.known)]
        v = VARIANCE / len(groups)
        self.precisions = [*(_precision(g, own) / v for g, own in zip(groups, ordered, strict=True)), np.ones((1, 1)) / VARIANCE]
        self.last = [np.zeros_like(scores) for scores in self.scores]
        self.moves = [np.zeros_like(scores) for scores in self.scores]
        self.late = [np.zeros_like(scores) for scores in self.scores]
        # How much of each round's noise is in the scores, in the last move, and in the sum of the late scores.
        self.held, self.moved, self.late_held = np.zeros((3, rounds))

    def learn(self, sums: Sequence[Floats]) -> None:
        """One round: of each attribute ΣR and Σ w·H, (groups and one, 2 · width)."""
        self.taken += 1
        width = self.scores[-1].size
        gradients = []
        for own, seen in zip(sums, self.hessians, strict=True):
            seen += own[:-1, width:] / self.w
            gradients.append(own[:-1, :width] - own[:-1, :width].mean(axis=0))
        gradients.append(sum(own[:, :width].sum(axis=0) / len(own) for own in sums)[None] / self.known)
        damped = self._damped()
        wanted = [gradient - _times(ridge, scores) for gradient, scores, (ridge, _) in zip(gradients, self.scores, damped, strict=True)]
        if self._goes_back(wanted, damped):
            self.gamma /= 2
            self.largest = self.gamma
            self.moves, self.moved = [-move / 2 for move in self.moves], -self.moved / 2
        else:
            self.last = [_times(inverse, own) for own, (_, inverse) in zip(wanted, damped, strict=True)]
            self.moves = [self.gamma * step for step in self.last]
            self.moved = self.gamma * ((np.arange(self.rounds) == self.taken - 1) - self.held)
            self.gamma = min(2 * self.gamma, self.largest)
        for i, move in enumerate(self.moves):
            moved = np.clip(self.scores[i] + move, -LARGEST, LARGEST)
            self.scores[i] = moved - moved.mean(axis=0) if i < len(sums) else moved
            self.late[i] += self.scores[i] if 2 * self.taken > self.rounds else 0.0
        self.held += self.moved
        self.late_held += self.held if 2 * self.taken > self.rounds else 0.0

    def _goes_back(self, wanted: list[Floats], damped: list[tuple[Floats, Floats]]) -> bool:
        """Whether this step would go back what the last one went, by more than noise does: all went too far together."""
        noise = sum(sd**2 * float(_diagonals(inverse).sum()) for sd, (_, inverse) in zip(self.noise, damped, strict=True))
        return -sum(float((now * last).sum()) for now, last in zip(wanted, self.last, strict=True)) > noise

    def _hessians(self) -> list[Floats]:
        """H, from the sums so far and the first guess."""
        found, sd = [], self.sd / self.w / math.sqrt(self.taken)
        for guess, seen in zip(self.guess, self.hessians, strict=True):
            away = seen / self.taken - guess
            believed = max(0.0, 1 - away.size * sd**2 / max(float((away**2).sum()), 1e-300))
            found.append(np.maximum(guess + believed * away, 0.1 * guess))
        return [*found, sum(h.sum(axis=0) / (len(h) + 1) for h in found)[None] / self.known]

    def _damped(self) -> list[tuple[Floats, Floats]]:
        """P̃, and the inverse of H + P̃; of more than two classes, which move together, the latter over C/(C − 1). As `_times` takes them."""
        together, found = (1.0 if self.classes == 2 else self.classes / (self.classes - 1)), []
        for h, precision, sd in zip(self._hessians(), self.precisions, self.noise, strict=True):
            more = 1 + sd**2 / (self.rounds * h)
            if precision.shape[1] == 1:
                ridge = more * precision
                inverse = 1 / (h + ridge)
            else:
                ridge = more.T[:, :, None] * precision
                inverse = np.asarray(np.linalg.inv(ridge + h.T[:, :, None] * np.eye(len(h))), dtype=np.float64)
            found.append((ridge, inverse / together))
        return found

    # ------------------------------------------------------------ what it says

    def now(self) -> list[Floats]:
        """The scores after the last round, as a model takes them."""
        return self._of_classes(self.scores)

    def result(self) -> list[Floats]:
        """The mean of the second half of the rounds. For each attribute (groups and one, classes); the intercept is with the first."""
        rounds = self.rounds - self.rounds // 2
        return self._of_classes([late / rounds for late in self.late])

    def errors(self) -> list[Floats]:
        """About what the noise did to each result, one number for all classes of a group: independent noises that, once the mean of an
        attribute is taken off, are as large as what is left of the real ones. That mean tells nothing, and no gradient is asked about it.
        """
        found, gain = [], float(np.linalg.norm(self.late_held)) / (self.rounds - self.rounds // 2) * self.sd
        for _, inverse in self._damped()[:-1]:
            lengths = inverse.max(axis=1) if inverse.ndim == 2 else _lengths(inverse).max(axis=0)
            error = gain * np.append(lengths, 0.0)[:, None]
            found.append(np.repeat(_whole(error / 2 if self.classes == 2 else error), self.classes, axis=1))
        return found

    def _of_classes(self, scores: Sequence[Floats]) -> list[Floats]:
        found = []
        for i, own in enumerate(scores[:-1]):
            own = np.vstack([own, np.zeros(own.shape[1])]) + (scores[-1] if i == 0 else 0.0)
            own = np.hstack([-own / 2, own / 2]) if self.classes == 2 else own - own.mean(axis=1, keepdims=True)
            found.append(_whole(own))
        return found


def _precision(groups: int, ordered: int) -> Floats:
    """P·v; of a category, where it is diagonal, one column. Centred as scores are, those of a number vary as much as others."""
    if ordered < 2:
        return np.ones((groups, 1))
    place, covariance = np.arange(ordered), np.eye(groups)
    near = np.exp(-np.abs(place[:, None] - place) / (REACH * ordered))
    near *= (ordered - 1) / (ordered - near.sum() / ordered)  # the traces of both, centred
    covariance[:ordered, :ordered] = (1 - SMOOTH) * np.eye(ordered) + SMOOTH * near
    return np.asarray(np.linalg.inv(covariance))


def _times(matrix: Floats, values: Floats) -> Floats:
    """Of each class a matrix times its column: (classes, groups, groups), or (groups, classes) where all are diagonal."""
    return np.asarray(matrix * values if matrix.ndim == 2 else np.einsum("kab,bk->ak", matrix, values))


def _diagonals(matrix: Floats) -> Floats:
    return matrix if matrix.ndim == 2 else np.einsum("kaa->ak", matrix)


def _lengths(inverse: Floats) -> Floats:
    """(classes, groups): of the rows of each matrix between two centrings, as large as before if it is diagonal."""
    g = inverse.shape[1]
    centre = np.eye(g) - 1 / g
    return np.asarray(np.linalg.norm(centre @ inverse @ centre, axis=2) * math.sqrt(g / (g - 1)))


def _whole(values: Floats) -> Floats:
    return np.asarray(np.rint(values * STEPS) / STEPS)
