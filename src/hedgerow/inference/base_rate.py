"""How far the intercept of a forest is moved where one of two classes is rare, so that its mean probability comes near its released share.

From released numbers alone. All scores are multiplied by one private number, the intercept with them, and clipped gradients make a rare
class rarer: 12 fits of a table with 6 % of a class had means of 0.2 to 8 %. The mean is taken over made rows: their codes are drawn for
each class by what the tables say, as if attributes were independent given the class. The move is damped by what is not known: the noise on
the share, and how far made rows are from real ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.inference.coverage import class_shares

if TYPE_CHECKING:
    from hedgerow.inference.additive import Tables
    from hedgerow.trees.additive_model import AdditiveModel

RARE = 0.2  # the share of the rarer of two classes below which the intercept is moved; docs/HEDGEROW_TRIED.md says how these were judged
USUAL, MADE = 0.25, 0.1  # in log-odds squared: how far means usually are from shares, and those over made rows from those over real ones
ROWS, SEED, MOST, STEPS, GRID = 4096, 0, 12.0, 60, 64  # made rows; log-odds; halvings; the move is a multiple of 1/GRID


def moved_base(tables: Tables, model: AdditiveModel) -> NDArray[np.float64]:
    """What is added to the model's base."""
    shares, errors = class_shares(tables.forest)
    moved = np.zeros(len(shares))
    if len(shares) != 2 or shares.min() >= RARE:
        return moved
    known = np.maximum(shares, np.maximum(errors, 1e-6))  # a share that noise made 0 is not known to be
    known /= known.sum()
    rare = int(np.argmin(known))
    margins = model.margins(made_codes(tables, known))
    odds, low, high = margins[:, rare] - margins[:, 1 - rare], -MOST, MOST
    for _ in range(STEPS):
        middle = (low + high) / 2
        too_low = (1 / (1 + np.exp(-(odds + middle)))).mean() < known[rare]
        low, high = (middle, high) if too_low else (low, middle)
    error = errors[rare] / (known[rare] * (1 - known[rare]))
    moved[rare] = np.rint((low + high) / 2 * USUAL / (USUAL + error**2 + MADE) * GRID) / GRID
    return moved


def made_codes(tables: Tables, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Classes by their shares, and each attribute's code given the class. The stream of RandomState never changes."""
    draw, sizes = np.random.RandomState(SEED), tables.codebook.sizes
    classes = np.searchsorted(np.cumsum(shares), (np.arange(ROWS) + 0.5) / ROWS).clip(0, len(shares) - 1)
    codes = np.zeros((ROWS, len(sizes)), dtype=np.int64)
    for j in range(len(sizes)):
        given = np.maximum(tables.shares_of_codes(j), 0)[:, None] * np.ones(len(shares))
        if j in tables.attributes:
            one = tables.attributes[j]
            said = np.exp(one.flat[one.group]) * tables.pi  # P(class | code), as the forest shrinks it
            given = given * said / said.sum(axis=1, keepdims=True)
        up_to = np.cumsum(given / np.maximum(given.sum(axis=0), 1e-300), axis=0)
        places = draw.random_sample(ROWS)
        for c in range(len(shares)):
            here = classes == c
            codes[here, j] = np.searchsorted(up_to[:, c], places[here], side="right").clip(0, sizes[j] - 1)
    return codes
