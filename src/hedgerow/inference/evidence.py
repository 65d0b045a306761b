"""How much of what a value adds its own rows say, and how far chance may have moved it. Released numbers only.

A score is drawn to those of the other values as far as its rows are few: of what they say, the share b is believed. With

    n_v, π_c, q_c    noisy rows of the value; shares of class c in all rows and in its rows, the latter drawn to π as far as they are noise
    tables           b = e² / (e² + s²)               e = n_v·π_c, s the noise on a count (`tables.log_odds`)
    joint fit        b = v·H² / (v·H² + H + S²)       H = n_v·q_c·(1 − q_c), S the noise on a sum of gradients after all rounds, v the
                                                      variance by which scores of m attributes usually differ

Where b is below ½, the score is more the other values' than its own, and may have the wrong sign: its error does not tell that, since it is
the smaller the less is believed. H takes the larger of q(1 − q) and π(1 − π): rather a value too few is marked. A joint fit draws the
cells of a number to their neighbours, which is what a curve wants: they are marked only where they have far fewer rows than the others.

Who is in the table is chance, too: the log-odds of a value with the share r of all rows are off by about √((1 − r)/e) against those of all
rows, and b of that is in the score.
"""

from __future__ import annotations

import numpy as np

from hedgerow.inference.additive import AdditiveForest
from hedgerow.inference.effect_noise import centred_variance, in_log, squared_weight
from hedgerow.inference.tables import Floats

MARGIN_VARIANCE = 1.5  # m·v: margins, sums over m attributes, are taken for draws of this variance
FEWER, NEIGHBOURS = 0.25, 3  # of the rows of a mean cell; a cell of a number speaks with those beside it


def believed(forest: AdditiveForest, j: int) -> Floats:
    """(codes, classes): b of each value; 1 where its attribute was not counted, and of exact counts."""
    tables = forest.tables
    if j not in tables.attributes or tables.s <= 0:
        return np.ones((tables.codebook.sizes[j], tables.codebook.n_classes))
    if not forest.joint_noise:
        one, branch = tables.attributes[j], tables.layout.branches(j)
        counted = np.bincount(one.group[np.unique(branch, return_index=True)[1]])  # in each group of codes
        e, s = _expected(forest, j), tables.noise(j) * np.sqrt(counted)[one.group, None]
        return np.asarray(e**2 / np.maximum(e**2 + s**2, 1e-300))
    h, cells = _hessians(forest, j), tables.codebook.numeric_cells(j)
    v = np.full((len(h), 1), MARGIN_VARIANCE / len(tables.attributes))
    v[:cells] *= NEIGHBOURS
    b = v * h**2 / (v * h**2 + h + forest.joint_noise**2)
    if cells:
        rows = _rows(forest, j)[:cells]
        branches = int(tables.layout.branches(j)[cells - 1]) + 1
        b[:cells][rows >= FEWER * tables.n / branches] = 1.0
    return np.asarray(b)


def chance_variance(forest: AdditiveForest, j: int) -> Floats:
    """(codes, classes): of the centred scores, by the chance of who is in the table."""
    weight = forest.scale**2 if forest.joint_noise else squared_weight(forest, j)
    e = _expected(forest, j)
    others = 1 - np.minimum(e / (forest.tables.n * forest.tables.pi), 1.0)  # the share of rows without the value: they are compared
    return np.asarray(centred_variance(in_log(believed(forest, j) * np.sqrt(others / np.maximum(e, 1.0)))) * weight)


def _rows(forest: AdditiveForest, j: int) -> Floats:
    """(codes,): noisy rows of the branch of each code."""
    tables = forest.tables
    if j not in tables.attributes:
        return forest.shares_of_codes(j) * tables.n
    branch, n = tables.layout.branches(j), tables.n * (1 - tables.unknown.get(j, 0.0))
    return np.asarray((np.bincount(branch, forest.shares_of_codes(j)) * n)[branch])


def _expected(forest: AdditiveForest, j: int) -> Floats:
    """(codes, classes): e; of a table's group, whose codes have one score, that of all of them."""
    tables = forest.tables
    if j not in tables.attributes or forest.joint_noise:
        return np.asarray(_rows(forest, j)[:, None] * tables.pi)
    one = tables.attributes[j]
    return np.asarray(one.rows[one.group, None] * tables.pi)


def _hessians(forest: AdditiveForest, j: int) -> Floats:
    tables, one = forest.tables, forest.tables.attributes[j]
    q = tables.pi * np.exp(one.flat[one.group])
    return np.asarray(_rows(forest, j)[:, None] * np.maximum(q * (1 - q), tables.pi * (1 - tables.pi)))
