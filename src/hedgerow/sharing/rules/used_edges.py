"""Rules that list only the edges that they use. Of a tree that was cut at values others would tell of rows, and no rule needs them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.paths import Paths
from hedgerow.trees.used_edges import cut_edges


def with_used_edges(paths: Paths) -> Paths:
    """The same rules, in which a number has the edges that some rule begins or ends at or its taxonomy needs, and no others."""
    parts = np.split(paths.allowed, paths.first_code[1:-1], axis=1)

    def asked(place: int, cells: int) -> NDArray[np.bool_]:
        part = parts[place]
        return np.asarray((part[:, 1:cells] != part[:, : cells - 1]).any(axis=0))

    cut, kept = cut_edges(paths.codebook, asked)
    return replace(paths, codebook=cut, allowed=paths.allowed[:, np.concatenate([stay[:-1] for stay in kept])])
