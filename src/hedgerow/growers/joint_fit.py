"""The joint fit: a score of each class for every group of every attribute, all fitted together by damped Newton steps on noisy sums.

Of all rows with a value, Σ R and Σ H (`queries/boosting.py`) say in which direction its score is wrong, and how far a step may go. One
round brings these sums for all attributes, under the scores so far; K rounds share the price. σ is the noise of a sum in one round.

    θ ← θ + γ·(ΣR − r·θ) / (H + r)        r = 1/v + σ²/(K·v·H): the step of all rounds together is the best guess of a score that is a
                                          draw around 0 of variance v

Scores of an attribute add up to 0, and an intercept is fitted with them. γ is small where there are many attributes, since they may all
say the same and would go too far together; v likewise: margins, sums over m attributes, are taken for draws of variance V = m·v. The
result is the mean of the second half of the rounds. ΣH is averaged over the rounds, and believed as far as it stands out from its noise.
All of this is computed from released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.additive_model import gradient_width

Floats = NDArray[np.float64]
VARIANCE = 1.5  # V
STEP, STEP_OF_ALL = 0.5, 3.0  # γ is at most this; and this for all attributes together
LARGEST = 20.0  # the most that a score may become
STEPS = 10_000  # scores are whole in 1/STEPS, as a file holds them


class JointFit:
    """groups: of each attribute, how many, without that of undeclared values, which stands last in the sums and stays 0

    rows, shares: n̂, and the share of each class, for a first guess of H; sd: σ; w: the weight of Hessians in the sums
    """

    def __init__(self, groups: Sequence[int], rows: float, shares: Floats, sd: float, rounds: int, w: float) -> None:
        self.classes, self.rounds, self.sd, self.w = len(shares), rounds, sd, w
        self.v, self.gamma = VARIANCE / len(groups), min(STEP, STEP_OF_ALL / len(groups))
        spread = (shares * (1 - shares))[-gradient_width(len(shares)) :]
        self.guess = [np.tile(np.maximum(rows * spread / g, 1e-3), (g, 1)) for g in groups]
        self.scores = [np.zeros_like(h) for h in self.guess]
        self.intercept = np.zeros_like(spread)
        self.hessians = [np.zeros_like(h) for h in self.guess]
        self.late = [np.zeros_like(h) for h in self.guess]
        self.late_intercept = np.zeros_like(spread)
        self.taken = 0

    def learn(self, sums: Sequence[Floats]) -> None:
        """One round: of each attribute ΣR and Σ w·H, (groups and one, 2 · width)."""
        self.taken += 1
        width = self.intercept.size
        known = sum(1 / len(own) for own in sums)  # each attribute tells the sum over all rows, that with many groups worse
        total, curvature = np.zeros(width), np.zeros(width)
        for i, own in enumerate(sums):
            g = len(self.guess[i])
            self.hessians[i] += own[:g, width:] / self.w
            h = self._hessian(i)
            total += own[:, :width].sum(axis=0) / len(own) / known
            curvature += h.sum(axis=0) / len(own) / known
            gradient = own[:g, :width] - own[:g, :width].mean(axis=0)
            ridge = self._ridge(h, self.v, self.sd)
            moved = self.scores[i] + self.gamma * (gradient - ridge * self.scores[i]) / (h + ridge)
            self.scores[i] = np.clip(moved - moved.mean(axis=0), -LARGEST, LARGEST)
        ridge = self._ridge(curvature, VARIANCE, self.sd / math.sqrt(known))
        moved = self.intercept + self.gamma * (total - ridge * self.intercept) / (curvature + ridge)
        self.intercept = np.clip(moved, -LARGEST, LARGEST)
        if 2 * self.taken > self.rounds:
            for late, scores in zip(self.late, self.scores, strict=True):
                late += scores
            self.late_intercept += self.intercept

    def _hessian(self, i: int) -> Floats:
        """H, from the sums so far and the first guess."""
        guess, seen, sd = self.guess[i], self.hessians[i] / self.taken, self.sd / self.w / math.sqrt(self.taken)
        away = seen - guess
        believed = max(0.0, 1 - away.size * sd**2 / max(float((away**2).sum()), 1e-300))
        return np.asarray(np.maximum(guess + believed * away, 0.1 * guess))

    def _ridge(self, hessian: Floats, v: float, sd: float) -> Floats:
        return np.asarray(1 / v + sd**2 / (self.rounds * v * hessian))

    # ------------------------------------------------------------ what it says

    def now(self) -> list[Floats]:
        """The scores after the last round, as a model takes them."""
        return self._of_classes(self.scores, self.intercept)

    def result(self) -> list[Floats]:
        """The mean of the second half of the rounds. For each attribute (groups and one, classes); the intercept is with the first."""
        rounds = self.rounds - self.rounds // 2
        return self._of_classes([late / rounds for late in self.late], self.late_intercept / rounds)

    def errors(self) -> list[Floats]:
        """About what the noise did to each result, one number for all classes of a group."""
        found, gain = [], self._gain() * self.sd
        for i in range(len(self.guess)):
            h = self._hessian(i)
            error = gain / (h + self._ridge(h, self.v, self.sd)).min(axis=1, keepdims=True)
            halved = error / 2 if self.classes == 2 else error
            found.append(np.repeat(_whole(np.vstack([halved, [[0.0]]])), self.classes, axis=1))
        return found

    def _gain(self) -> float:
        """How much noise the mean holds, over the noise of one round: that of round s fades by 1 − γ in each round that follows."""
        kept, last = 1 - self.gamma, self.rounds - self.rounds // 2
        later = [np.arange(max(s, self.rounds - last), self.rounds) - s for s in range(self.rounds)]
        return math.sqrt(sum(float((self.gamma * kept**rounds).sum() / last) ** 2 for rounds in later))

    def _of_classes(self, scores: Sequence[Floats], intercept: Floats) -> list[Floats]:
        found = []
        for i, own in enumerate(scores):
            own = np.vstack([own, np.zeros(own.shape[1])]) + (intercept if i == 0 else 0.0)
            own = np.hstack([-own / 2, own / 2]) if self.classes == 2 else own - own.mean(axis=1, keepdims=True)
            found.append(_whole(own))
        return found


def _whole(values: Floats) -> Floats:
    return np.asarray(np.rint(values * STEPS) / STEPS)
