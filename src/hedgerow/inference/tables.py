"""Noisy (cell, class) tables made sound: totals that agree, cells put together, log-odds with noise-aware shrinkage.

Everything here is computed from released counts and public noise scales. The symbols are those of docs/HEDGEROW_DESIGN.md:

    t[v, c]  noisy count of class c in cell v       n_v   rows of the cell         π_c   share of class c
    s        standard deviation of the noise on t   k     number of cells          C     number of classes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLEAR = 2.0  # standard deviations of the noise above which rows of a range are taken as counted
PARTS = 24  # a numeric attribute is put together into about so many cells with equally many rows


def put_together(table: Floats, cells: int, n: float, s: float) -> NDArray[np.int64]:
    """For every code its group: neighbouring numeric cells until they stand out from the noise, rare categories as one.

    cells: how many leading codes are cells in numeric order (0: the attribute is categorical)
    """
    rows = table.sum(axis=1)
    least = 2 * s * np.sqrt(table.shape[1])
    if not cells:
        rare = rows < least
        if rare.all():
            return np.zeros(len(table), dtype=np.int64)
        return np.where(rare, int((~rare).sum()), np.cumsum(~rare) - 1).astype(np.int64)
    need = max(n / PARTS, least)
    group = np.zeros(len(table), dtype=np.int64)
    now, held = 0, 0.0
    for v in range(cells):
        group[v] = now
        held += rows[v]
        if held >= need and v < cells - 1:
            now, held = now + 1, 0.0
    if held < need and now > 0:  # what is left over joins its neighbour
        group[:cells] = np.minimum(group[:cells], now - 1)
        now -= 1
    group[cells:] = now + 1 + np.arange(len(table) - cells)  # a branch for missing values stays by itself
    return group


def add_groups(tables: Floats, group: NDArray[np.int64]) -> Floats:
    """(…, cells, classes) → (…, groups, classes)."""
    member = np.zeros((int(group.max()) + 1, len(group)))
    member[group, np.arange(len(group))] = 1
    return np.asarray(member @ tables)


def rows_of_groups(raw: Floats, expected: Floats, n_classes: int, s: Floats) -> Floats:
    """n_v: what was counted, drawn to what is expected as far as the noise is the larger."""
    u2, noise = expected**2, n_classes * s**2
    return np.maximum((raw * u2 + expected * noise) / np.maximum(u2 + noise, 1e-300), 1e-6)


def rows_of_values(raw: Floats, members: NDArray[Any], sd: float) -> Floats:
    """Rows of each branch of a category: as counted where they stand out from even rows for each value; of the others, what lies beyond
    chance (James and Stein).

    members: values in each branch; sd: of the noise on the rows of a branch. They stand out where not one noise of so many is as large
    """
    apart = raw - np.median(raw / members) * members
    others = np.abs(apart) <= sd * np.sqrt(2 * np.log(max(len(raw), 2)))
    found = np.array(raw, dtype=np.float64)
    if others.sum() > 1:
        even = raw[others].sum() / members[others].sum() * members[others]
        differ = ((raw[others] - even) ** 2).sum() / (others.sum() - 1)
        found[others] = even + max(1 - sd**2 / max(differ, 1e-300), 0.0) * (raw[others] - even)
    return np.maximum(found, 1e-9)


def rows_of_ranges(raw: Floats, sd: Floats, n: float) -> Floats:
    """Rows of ranges of a number, which have n together: as counted where that stands out from noise; the others have what is left. Where
    nothing is left, or all stand out, what is too much is taken from each alike.
    """
    found = np.maximum(raw, 1e-9)
    if not sd.any():
        return np.asarray(found)
    clear = raw > CLEAR * sd
    left = n - raw[clear].sum()
    if left > 0 and not clear.all():
        found[~clear] *= left / found[~clear].sum()
    else:
        found[~clear] = 1e-9
        found[clear] = _with_sum(raw[clear], n)
    return np.asarray(found)


def _with_sum(values: Floats, total: float) -> Floats:
    """The nearest ones that are not below 0 and have that sum."""
    falling = np.sort(values)[::-1]
    more = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - more[np.flatnonzero(falling > more)[-1]], 1e-9))


@dataclass(frozen=True, eq=False)
class Odds:
    """shares of the classes; scores: their log, against given shares; noise: w·s/z, about what the noise does to log z_c alone."""

    shares: Floats
    scores: Floats
    noise: Floats


def log_odds(t: Floats, raw: Floats, prior: Floats, against: Floats, n_v: Floats, s: Floats, trust: float) -> Odds:
    """Class shares q of each group, drawn to `prior`: q ∝ (e + w·(t − raw·prior))⁺ + (1 + ½·min(s, e))·prior.

    e = n_v·prior is what is expected; w = trust·e²/(trust·e² + s²) how much of a deviation is believed.
    """
    e = n_v * prior
    w = trust * e**2 / np.maximum(trust * e**2 + s**2, 1e-300)
    z = np.maximum(e + w * (t - raw * prior), 0) + (1 + np.minimum(s, e) / 2) * prior
    q = z / z.sum(axis=-1, keepdims=True)
    return Odds(q, np.log(q) - np.log(against), w * s / np.maximum(z, 1e-300))


def information(rows: Floats, shares: Floats, against: Floats) -> float:
    """Mutual information of a table (nodes, groups, classes) with the class, in nats: what it tells beyond `against`."""
    weight = rows / rows.sum()
    return float((weight[..., None] * shares * (np.log(shares) - np.log(against))).sum())


def information_error(rows: Floats, shares: Floats, against: Floats, noise: Floats) -> float:
    """What the noise does to `information`, about: to the first order in log z, of which `noise` is the standard deviation."""
    weight, said = rows / rows.sum(), np.log(shares) - np.log(against)
    slope = weight[..., None] * shares * (said - (shares * said).sum(axis=-1, keepdims=True))
    return float(np.sqrt(((slope * np.log1p(noise)) ** 2).sum()))


def cap_errors(told: Floats, errors: Floats, entropy: float) -> Floats:
    """What errors of `told` do to the weights of `information_cap`, each as a share of its weight. They are independent of each other."""
    told = np.maximum(told, 1e-12)
    weights = information_cap(told, entropy)
    moved = [information_cap(told + step, entropy) - weights for step in np.diag(np.minimum(errors, told))]
    return np.asarray(np.sqrt((np.array(moved) ** 2).sum(axis=0)) / weights)


def information_cap(told: Floats, entropy: float) -> Floats:
    """Weights of the attributes: together they may not tell more than there is to know about the class.

    Redundant attributes say the same thing again and again. Where Σ told > entropy, w = min(1, λ·(told / max told)²) with λ such that
    Σ w·told = entropy: what tells most is kept longest.
    """
    told = np.maximum(told, 1e-12)
    if told.sum() <= entropy:
        return np.ones(len(told))
    ratio = (told / told.max()) ** 2
    low, high = 1e-9, 1e12
    for _ in range(120):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if (np.minimum(1, middle * ratio) * told).sum() > entropy else (middle, high)
    return np.asarray(np.minimum(1, low * ratio))
