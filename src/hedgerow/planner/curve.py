"""What an earlier forest tells about the next one: its own score, and how forests went on from there on public sets.

    logit(accuracy at r·ε₀) = a + b·logit(s) + c·logit(M) + d·log(n·ε₀/C)

ε₀ is the ε of the earlier forest, s its accuracy as measured or, if it was not, how sure it is of rows of its own on average; M the share
of the largest class, C the number of classes, n the rows. The coefficients are those with the least mean error (not squared) over 23
public sets and parts of them: `benchmarks/advice.py`, docs/ADVICE.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RATIOS = (0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
# by whether there is a δ, and whether the accuracy was measured: a, b, c, d for each of RATIOS
COEFFICIENTS: dict[tuple[bool, bool], tuple[tuple[float, ...], ...]] = {
    (True, False): (
        (-0.164, 0.973, 0.12, -0.011), (0.048, 1.19, -0.116, -0.044), (0.29, 1.207, -0.329, -0.032),
        (0.401, 1.263, -0.5, -0.016), (0.581, 1.241, -0.612, -0.007), (0.814, 1.281, -0.701, -0.024),
    ),
    (True, True): (
        (-0.187, 0.783, 0.22, 0.027), (-0.008, 0.966, 0.019, 0.006), (0.225, 1.038, -0.179, 0.008),
        (0.456, 1.055, -0.312, 0.006), (0.646, 1.072, -0.412, 0.003), (1.005, 1.008, -0.468, -0.019),
    ),
    (False, False): (
        (-0.462, 1.057, 0.009, 0.044), (-0.133, 1.118, -0.115, 0.008), (-0.016, 1.251, -0.326, 0.008),
        (0.116, 1.263, -0.484, 0.015), (0.212, 1.164, -0.496, 0.028), (0.191, 1.281, -0.604, 0.04),
    ),
    (False, True): (
        (-0.248, 0.853, 0.161, 0.035), (-0.005, 0.955, 0.025, 0.007), (0.181, 1.04, -0.138, -0.001),
        (0.391, 1.002, -0.229, -0.006), (0.429, 1.009, -0.264, 0.005), (0.482, 1.137, -0.386, 0.003),
    ),
}  # fmt: skip
# mean absolute errors: of ten sets; of an earlier forest, of 23 sets that the coefficients do not know
OFF = {"dummy": 0.171, "like": 0.022, "forest": 0.055, "measured": 0.041}


def curve(epsilons: list[float], earlier: float, own: float, majority: float, rows: int, classes: int, *, delta: bool, measured: bool
          ) -> NDArray[np.float64]:  # fmt: skip
    """The accuracy to expect of a Hedgerow forest at each ε. It does not fall as ε grows. Above RATIOS it stays as it is; below,
    where nothing was measured, it goes on as between the first two of them, down to the share of the largest class. At the ε of the
    earlier forest it is the accuracy that was measured, if one was."""
    known = np.array([1.0, logit(own), logit(majority), np.log(max(rows * earlier / classes, 1.0))])
    heights = rising(np.array(COEFFICIENTS[delta, measured]) @ known, known[1] if measured else None)
    places, asked = np.log(RATIOS), np.log(np.array(epsilons) / earlier)
    slope = (heights[1] - heights[0]) / (places[1] - places[0])
    lower = np.maximum(heights[0] + slope * np.minimum(asked - places[0], 0.0), min(logit(majority), heights[0]))
    return np.asarray(share(np.where(asked < places[0], lower, np.interp(asked, places, heights))))


def rising(heights: NDArray[np.float64], measured: float | None) -> NDArray[np.float64]:
    """Heights at RATIOS that do not fall; through that of the earlier forest, if it was measured."""
    if measured is None:
        return np.maximum.accumulate(heights)
    at = RATIOS.index(1.0)
    return np.concatenate([np.minimum(heights[:at], measured), np.maximum.accumulate([measured, *heights[at + 1 :]])])


def logit(accuracy: float) -> float:
    inside = min(max(accuracy, 0.004), 0.996)
    return float(np.log(inside / (1 - inside)))


def share(height: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
    return 1 / (1 + np.exp(-height))
