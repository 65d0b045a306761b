"""Rules that list only the edges that they use. Of a tree that was cut at values others would tell of rows, and no rule needs them.

What `trees/used_edges.py` does for trees.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedgerow.schema.attributes import Numeric
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.paths import Paths


def with_used_edges(paths: Paths) -> Paths:
    """The same rules, in which a number has the edges that some rule begins or ends at or its taxonomy needs, and no others."""
    codebook = paths.codebook
    attributes, kept = list(codebook.schema.attributes), []
    for place, part in enumerate(np.split(paths.allowed, paths.first_code[1:-1], axis=1)):
        entry = attributes[place]
        stay = np.ones(codebook.sizes[place], dtype=bool)
        if isinstance(entry, Numeric) and entry.edges is not None:
            edges, cells = np.array(entry.edges), len(entry.edges) - 1
            groups = entry.taxonomy[0] if entry.taxonomy else ()
            stay[1:cells] = (part[:, 1:cells] != part[:, : cells - 1]).any(axis=0) | np.isin(edges[1:-1], groups)
            left = (*edges[:-1][stay[:cells]].tolist(), entry.high)
            attributes[place] = replace(entry, edges=left if len(left) > 2 or codebook.bins > 1 else None)
        kept.append(stay)
    cut = Codebook(replace(codebook.schema, attributes=tuple(attributes)), codebook.bins)
    return replace(paths, codebook=cut, allowed=paths.allowed[:, np.concatenate(kept)])
