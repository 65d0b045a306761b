"""Do probabilities mean what they say? What the counts of a reliability table tell, each number with its error.

A bin holds the rows whose largest class probability lies in it. If a forest is calibrated, the share of rows that it gets right there
is about that probability; the middle of the bin stands for it, which is off by half a bin's width at most. Where in its bin the rows
lie is not counted: the errors take it for unknown, evenly (`_placed`). Bins are narrow near 1, where most rows may lie.

    R_b, W_b   right and wrong rows of bin b (noisy)     m_b   middle of the bin     n = Σ (R_b + W_b)
    g_b = (1 − m_b)·R_b − m_b·W_b = (R_b + W_b)·(share right − m_b)                  expected calibration error: Σ |g_b| / n

Noise makes each |g_b| larger on average, by β(g_b) = E|g_b + noise| − |g_b|, which is known but for g_b. β at the *noisy* g_b is
subtracted. That takes away about half of what noise adds to a bin that is calibrated and nearly all where a bin is clearly off, and does
not make a forest look clearly better than it is: of noise of scale b, what is left in a bin lies between −0.07·b and +0.5·b on
average. The error counts it in. The chance of who is in the rows adds something, too, with or without noise: `by_chance` says how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.loss import noise_variance

if TYPE_CHECKING:
    from hedgerow.release.certificate import Certificate

Floats = NDArray[np.float64]
SEEN = 2.0  # a bin is told apart from an empty one by so many errors of its number of rows


@dataclass(frozen=True, repr=False, eq=False)
class Calibration:
    """Counts of (bin; wrong, right), noisy or, for public rows, exact. Everything else follows from them.

    edges:       of the bins, from 1/classes to 1; a probability on an edge is in the bin above it
    noise_scale: of the discrete Laplace noise on each count; 0 for exact counts of public rows, for which nothing was charged
    alike:  rows of a person, at most: for the chance of the draw they are as one
    """

    counts: NDArray[np.int64]
    edges: Floats
    noise_scale: Fraction
    certificate: Certificate
    alike: int = 1

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from hedgerow.plots.notebook import calibration_html  # see pyproject.toml

        return calibration_html(self)

    @property
    def charged(self) -> bool:
        """False for exact counts: the rows were taken as public."""
        return self.noise_scale > 0

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on one count."""
        return math.sqrt(noise_variance(self.noise_scale)) if self.charged else 0.0

    @property
    def rows(self) -> float:
        """Number of rows of a declared class."""
        return max(float(self.counts.sum()), 1.0)

    @property
    def rows_error(self) -> float:
        return self.noise_sd * math.sqrt(self.counts.size)

    @property
    def middles(self) -> Floats:
        """The middle of each bin."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def bin_rows(self) -> NDArray[np.int64]:
        """Rows in each bin."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def bin_rows_error(self) -> float:
        return self.noise_sd * math.sqrt(2)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Bins that hold rows, as far as the noise lets that be known. Of the others no share is told."""
        return np.asarray(self.bin_rows > SEEN * self.bin_rows_error)

    @property
    def shares(self) -> Floats:
        """The share of rows that are right in each bin; NaN for a bin that is not `seen`."""
        n = np.where(self.seen, self.bin_rows, 1)
        return np.where(self.seen, np.clip(self.counts[:, 1] / n, 0, 1), np.nan)

    @property
    def share_errors(self) -> Floats:
        """Standard errors of the shares: noise and the chance of the draw of rows together. NaN as in `shares`.

        The draw is taken as if one row more had been right and one wrong: a bin of three rows, all right, is not sure to be right.
        """
        p, n = self.shares, np.where(self.seen, self.bin_rows, 1).astype(np.float64)
        noise = self.noise_sd**2 * ((1 - p) ** 2 + p**2) / n**2
        drawn = (p * n + 1) / (n + 2)
        return np.minimum(0.5, np.sqrt(noise + self.alike * drawn * (1 - drawn) / n))

    @property
    def ece(self) -> float:
        """Expected calibration error of these rows, the contribution of the noise subtracted as far as it is known (see above).

        A calibrated forest does not get 0 but up to about `by_chance`: what the draw of rows adds is not subtracted, nor in the error.
        """
        return float(np.clip((np.abs(self._gaps).sum() - self._from_noise) / self.rows, 0, 1))

    @property
    def ece_error(self) -> float:
        """Standard error: noise, the chance of the draw of rows, where in their bins rows lie, and what may be left of the noise's bias (as
        much as was subtracted)."""
        m, e, side = self.middles, self.ece, np.where(self._gaps < 0, -1.0, 1.0)
        noise = self.noise_sd**2 * float(((side * (1 - m) - e) ** 2 + (side * m + e) ** 2).sum())
        counts = np.maximum(self.counts, 0)
        draw = float((counts[:, 1] * (1 - m) ** 2 + counts[:, 0] * m**2).sum()) - self.rows * e**2
        placed = float((self._placed**2).sum())
        return min(0.5, math.sqrt(noise + self.alike * max(draw, 0.0) + self._from_noise**2 + placed) / self.rows)

    @property
    def by_chance(self) -> float:
        """Up to about what a calibrated forest would show: by the draw of so many rows, and as the middle of a bin stands for its rows.
        Where these are spread over their bins it is less: what lies above the middle makes up for what lies below.
        """
        m = self.middles
        variance = self.alike * np.maximum(self.bin_rows, 0) * m * (1 - m) + self._placed**2
        return min(1.0, float(np.sqrt(2 / math.pi * variance).sum() / self.rows))

    @property
    def _placed(self) -> Floats:
        """How far the middle may put off the gap of a bin: rows may lie anywhere in it, all at one place."""
        return np.asarray(np.maximum(self.bin_rows, 0) * np.diff(self.edges) / math.sqrt(12))

    @property
    def _gaps(self) -> Floats:
        return (1 - self.middles) * self.counts[:, 1] - self.middles * self.counts[:, 0]

    @property
    def _from_noise(self) -> float:
        return float(growth(self._gaps, self.middles, float(self.noise_scale)).sum()) if self.charged else 0.0

    def __repr__(self) -> str:
        rows = f"about {self.rows:,.0f} ± {self.rows_error:.2g} rows" if self.charged else f"{self.rows:,.0f} public rows, not charged"
        return f"Calibration(expected calibration error {self.ece:.3f} ± {self.ece_error:.2g} on {rows}; {len(self.counts)} bins)"


def growth(gaps: Floats, middles: Floats, scale: float) -> Floats:
    """E|g + z| − |g| for z = (1 − m)·X − m·Y, with X and Y independent Laplace noise of that scale.

    z is a sum of Laplace noise of scales a = (1 − m)·scale and c = m·scale: (c³·e^(−|g|/c) − a³·e^(−|g|/a)) / (c² − a²).
    """
    x = np.abs(gaps)
    a = np.maximum(np.minimum(middles, 1 - middles), 1e-9) * scale
    c = np.maximum(np.maximum(middles, 1 - middles) * scale, a * (1 + 1e-4))  # where both are the same, the limit is close by
    return np.asarray((c**3 * np.exp(-x / c) - a**3 * np.exp(-x / a)) / (c**2 - a**2))
