"""Leaf steps: from the noisy sums of a boosted tree's leaves to what each leaf adds to the scores.

The true step s of a leaf is taken for a draw around 0 of variance v. The released R is then H·s, and the chance of the labels (variance H),
and noise (variance σ²): the best guess of s is w·R, w = 1 / (H + σ²/(vH) + 1/v), v = ½. Of that η is added.

Where attributes mostly add up, the trees of a large ε would go on learning the chance of the labels. Released sums show it: in mean R² is
then no more than σ² + H.
- Two classes (`StepVariance`): R² − σ² − H is v·H² in mean. v is at most that quotient of sums and three standard errors of it.
- More classes (`StepShare`). Most steps are about 0 there and a few are large, which one variance describes badly (chess-krk and letter
  would lose 0.03). So v stays, and the question is only whether trees find anything: m = Σ w(R² − σ² − H) / Σ w²R²H is about the multiple
  of the steps that is best for other rows of the same kind. (Rather too low: of clipped gradients chance makes R² 0.78·H where three
  classes are even, 0.70·H where 26 are, and less where rows are sure.) Where m is clearly above 0.2 after the first tenth of the trees,
  or once later, steps stay as they are; as long as it is not, they are cut to what m and three standard errors of it allow.
All of this is computed from released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
VARIANCE, LEAST = 0.5, 0.03  # v at first, and the least that it may become
MEMORY, ERRORS = 0.95, 3.0  # the share of its weight that a tree keeps at the next one; standard errors above the estimate
FIRST, FOUND, CLEAR = 0.1, 0.2, 2.0  # m is looked at after this share of the trees; above what it is clear, and by how many errors then
OF_A_STEP, LEAST_SHARE = 10 / 3, 0.02  # η of a step is taken, so it may be this times m; and the least that is taken of it
LARGEST = 2.0  # the most that one leaf moves a score
STEPS = 10_000  # leaf scores are whole in 1/STEPS, as a file holds them: what is loaded predicts the same


@dataclass
class StepVariance:
    """v, from the sums of the trees so far. noise: σ² of a sum of gradients, and of one of Hessians."""

    noise: tuple[float, float]
    v: float = VARIANCE
    signal: float = 0.0
    squares: float = 0.0
    variance: float = 0.0

    def learn(self, gradient: Floats, hessian: Floats) -> None:
        """One tree more, of two classes."""
        by_chance = self.noise[0] + hessian
        self.signal = MEMORY * self.signal + float((gradient**2 - by_chance).sum())
        self.squares = MEMORY * self.squares + float(np.maximum(hessian**2 - self.noise[1], 0).sum())
        self.variance = MEMORY**2 * self.variance + float((2 * (by_chance + self.v * hessian**2) ** 2).sum())
        if self.squares > 0:
            self.v = min(VARIANCE, max(LEAST, (self.signal + ERRORS * math.sqrt(self.variance)) / self.squares))


@dataclass
class StepShare:
    """How much of its steps a forest with several classes takes, from the sums of the trees so far.

    noise: σ² of a gradient less the mean of its classes; trees: how many there will be.
    """

    classes: int
    noise: float
    trees: int
    seen: int = 0
    brings: float = 0.0
    costs: float = 0.0
    variance: float = 0.0
    found: bool = False

    def learn(self, gradient: Floats, hessian: Floats, weight: Floats) -> float:
        """One tree more, whose whole steps are weight · gradient: the share of them to take."""
        by_chance = self.noise + hessian
        self.seen += 1
        self.brings = MEMORY * self.brings + float((weight * (gradient**2 - by_chance)).sum())
        self.costs = MEMORY * self.costs + float((weight**2 * gradient**2 * hessian).sum())
        self.variance = MEMORY**2 * self.variance + float((2 * (weight * by_chance) ** 2).sum())
        error = math.sqrt(self.variance * self.classes / (self.classes - 1))  # gradients of a leaf add up to 0
        first = math.ceil(FIRST * self.trees)
        if self.seen < first:
            return 1.0
        self.found = self.found or self.brings > (CLEAR if self.seen == first else ERRORS) * error + FOUND * self.costs
        if self.found or self.costs <= 0:
            return 1.0
        return min(1.0, max(LEAST_SHARE, OF_A_STEP * (self.brings + ERRORS * error) / self.costs))


class LeafSteps:
    """The leaves of one tree after the other. sd: σ of each sum; eta: η, the part of a step that is taken; w: the weight of Hessians.

    trees: how many there will be, where the noise is Gaussian; in pure ε there are few, with noise of heavy tails, and none is cut.
    """

    def __init__(self, classes: int, sd: float, eta: float, w: float, trees: int | None = None) -> None:
        self.classes, self.sd, self.eta, self.w = classes, sd, eta, w
        self.variance = StepVariance((sd**2, (sd / w) ** 2))
        self.share = StepShare(classes, sd**2 * (classes - 1) / classes, trees) if trees and classes > 2 else None

    def of(self, sums: Floats) -> tuple[Floats, Floats]:
        """From Σ R and Σ w·H of each leaf to what it adds to the scores, and about what the noise did to that: (leaves, classes)."""
        width = sums.shape[1] // 2
        gradient, hessian = sums[:, :width], np.maximum(sums[:, width:] / self.w, 1e-3)
        if self.classes == 2:
            self.variance.learn(gradient, hessian)
        else:
            gradient = gradient - gradient.mean(axis=1, keepdims=True)
        v = self.variance.v
        whole = 1 / (hessian + self.sd**2 / (v * hessian) + 1 / v)
        share = self.share.learn(gradient, hessian, whole) if self.share else 1.0
        weight = share * self.eta * (self.classes - 1) / self.classes * whole
        step = np.clip(weight * gradient, -LARGEST, LARGEST)
        step = np.hstack([-step, step]) if self.classes == 2 else step - step.mean(axis=1, keepdims=True)
        error = np.minimum(weight * self.sd, LARGEST).max(axis=1, keepdims=True)  # one for all classes of a leaf, as a file holds it
        return np.rint(step * STEPS) / STEPS, np.repeat(np.rint(error * STEPS) / STEPS, self.classes, axis=1)
