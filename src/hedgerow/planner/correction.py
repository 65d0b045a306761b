"""What made rows get wrong on average, and how far they are off: constants from `benchmarks/advice.py` (docs/ADVICE.md).

The classes of pseudo-rows are drawn by the probabilities of an earlier, noisy forest: what its noise hid is chance in them, so that a
forest of more ε cannot learn it there, and the accuracy is expected too low, the more so the larger ε is. So far as sets have that in
common, it is added back: logit(expected) = logit(on made rows) + SHIFT(ε), the median over the sets, log-linear in ε between the points.
"""

from __future__ import annotations

import numpy as np

SHIFT: dict[str, dict[float, float]] = {"forest": {0.2: 0.27, 0.5: 0.29, 1.0: 0.35, 2.0: 0.44, 4.0: 0.61}}
OFF = {"forest": 0.059, "like": 0.032, "dummy": 0.155}  # mean absolute error; of "forest" with the shift of the other sets


def corrected(accuracy: float, epsilon: float, source: str) -> float:
    """The accuracy to expect where made rows of that source gave `accuracy`."""
    shift = SHIFT.get(source)
    if shift is None:
        return accuracy
    places = np.log(list(shift))
    moved = float(np.interp(np.log(epsilon), places, list(shift.values())))
    inside = min(max(accuracy, 1e-3), 1 - 1e-3)
    return float(1 / (1 + (1 - inside) / inside * np.exp(-moved)))
