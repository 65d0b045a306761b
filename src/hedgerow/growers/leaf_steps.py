"""Leaf steps: from the noisy sums of a boosted tree's leaves to what each leaf adds to the scores.

The true step s of a leaf is taken for a draw around 0 of variance v. The released R is then H·s, and the chance of the labels (variance H),
and noise (variance σ²): the best guess of s is R / (H + σ²/(vH) + 1/v).

v is ½, until the released sums of the last trees show that it is less: R² − σ² − H is v·H² in mean. With two classes v is at most that
quotient of sums and three standard errors of it, so little signal alone changes nothing. Where attributes mostly add up, the trees of a
large ε would else go on learning the chance of the labels. With more classes most of the steps are about 0 and a few are large, which one
variance describes badly: there v stays ½ (chess-krk and letter would lose 0.03).
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


class LeafSteps:
    """The leaves of one tree after the other. sd: σ of each sum; eta: η, the part of a step that is taken; w: the weight of Hessians."""

    def __init__(self, classes: int, sd: float, eta: float, w: float) -> None:
        self.classes, self.sd, self.eta, self.w = classes, sd, eta, w
        self.variance = StepVariance((sd**2, (sd / w) ** 2))

    def of(self, sums: Floats) -> tuple[Floats, Floats]:
        """From Σ R and Σ w·H of each leaf to what it adds to the scores, and about what the noise did to that: (leaves, classes)."""
        width = sums.shape[1] // 2
        gradient, hessian = sums[:, :width], np.maximum(sums[:, width:] / self.w, 1e-3)
        if self.classes == 2:
            self.variance.learn(gradient, hessian)
        else:
            gradient = gradient - gradient.mean(axis=1, keepdims=True)
        v = self.variance.v
        weight = self.eta * (self.classes - 1) / self.classes / (hessian + self.sd**2 / (v * hessian) + 1 / v)
        step = np.clip(weight * gradient, -LARGEST, LARGEST)
        step = np.hstack([-step, step]) if self.classes == 2 else step - step.mean(axis=1, keepdims=True)
        error = np.minimum(weight * self.sd, LARGEST).max(axis=1, keepdims=True)  # one for all classes of a leaf, as a file holds it
        return np.rint(step * STEPS) / STEPS, np.repeat(np.rint(error * STEPS) / STEPS, self.classes, axis=1)
