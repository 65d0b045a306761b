"""Whether rules are disjoint: any two differ in an attribute of which they have no value in common, so that nobody is in both."""

from __future__ import annotations

import numpy as np

from hedgerow.errors import PlanError
from hedgerow.trees.paths import Paths, condition_words

BLOCK = 512  # rules that are compared with all others at a time


def check_disjoint(paths: Paths) -> None:
    """Refuses rules that overlap, and names the first two of them."""
    found = overlap(paths)
    if found is None:
        return
    one, other = found
    both = paths.allowed[one] & paths.allowed[other]
    parts = np.split(both, paths.first_code[1:-1])
    asked = np.flatnonzero(paths.asked[one] | paths.asked[other])
    whom = " and ".join(condition_words(paths.codebook, int(j), np.flatnonzero(parts[j])) for j in asked) or "everybody"
    raise PlanError(
        f"rules {one + 1} and {other + 1} overlap: {paths.words(one)}; {paths.words(other)}. Who has {whom} is in both, and would be "
        "counted twice. Expected disjoint rules: change one of the two, so that nobody is in both."
    )


def overlap(paths: Paths) -> tuple[int, int] | None:
    """The first two rules that somebody may be in both of: their numbers, from 0."""
    parts = np.split(paths.allowed.astype(np.float32), paths.first_code[1:-1], axis=1)
    for start in range(0, len(paths), BLOCK):
        common = np.ones((min(BLOCK, len(paths) - start), len(paths)), dtype=bool)
        for part in parts:
            common &= part[start : start + BLOCK] @ part.T > 0
        later = np.arange(len(paths)) > np.arange(start, start + len(common))[:, None]
        ones, others = np.nonzero(common & later)
        if len(ones):
            return start + int(ones[0]), int(others[0])
    return None
