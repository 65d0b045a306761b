"""What two attributes say only together, from the boosted trees of a Hedgerow forest. It costs nothing.

    size of (j, k) = Σ over their values of share_j · share_k · mean_c |g_{j,k}|          g_{j,k}: see `boosted_parts.py`, summed over trees

The effects of the attributes are what each says by itself on average (`effects.py`); these are what is missing from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.inference.additive import AdditiveForest
from hedgerow.inference.boosted_parts import pairs_of
from hedgerow.inference.effects import Effect, effects
from hedgerow.inference.tables import Floats
from hedgerow.inference.text import plain
from hedgerow.trees.oblivious import ObliviousTree

MOST_ATTRIBUTES = 12  # the most important ones, whose pairs are looked at


@dataclass(frozen=True, repr=False)
class Interaction:
    """attributes: two names; size: as above, on the scale of `Effect.size`; share: of all that attributes and these pairs do"""

    attributes: tuple[str, str]
    size: float
    share: float

    def __repr__(self) -> str:
        return f"<Interaction {self.text()}>"

    def text(self) -> str:
        return f"{plain(self.attributes[0])} and {plain(self.attributes[1])} together: {100 * self.share:.1f} %"


def interactions(forest: AdditiveForest, found: tuple[Effect, ...] | None = None) -> tuple[Interaction, ...]:
    """The pairs of attributes that say something only together, the strongest first."""
    found = effects(forest) if found is None else found
    codebook = forest.tables.codebook
    place = {name: j for j, name in enumerate(codebook.schema.names)}
    wanted = {place[effect.attribute] for effect in found[:MOST_ATTRIBUTES]}
    shares = {j: forest.shares_of_codes(j) for j in range(len(codebook.sizes))}
    sums: dict[tuple[int, int], Floats] = {}
    for tree, scores in zip(forest.correction.trees, forest.correction.scores, strict=True):
        if not isinstance(tree, ObliviousTree):
            continue
        for first, second, both in pairs_of(tree, forest.scale * scores, shares):
            j, k = first.attributes[0], second.attributes[0]
            if j in wanted and k in wanted:
                by_code = both[_leaves(first)][:, _leaves(second)]
                pair = (j, k) if j < k else (k, j)
                sums[pair] = sums.get(pair, 0.0) + (by_code if j < k else by_code.transpose(1, 0, 2))
    sizes = {pair: float(shares[pair[0]] @ np.abs(both).mean(axis=2) @ shares[pair[1]]) for pair, both in sums.items()}
    total = max(sum(effect.size for effect in found) + sum(sizes.values()), 1e-300)
    names = codebook.schema.names
    made = [Interaction((names[j], names[k]), size, size / total) for (j, k), size in sizes.items()]
    return tuple(sorted(made, key=lambda one: (-one.size, one.attributes)))


def _leaves(tree: ObliviousTree) -> np.ndarray:
    """For each code of its one attribute, the leaf."""
    j = tree.attributes[0]
    codes = np.zeros((tree.sizes[j], len(tree.sizes)), dtype=np.int64)
    codes[:, j] = np.arange(tree.sizes[j])
    return tree.leaves_of(codes)
