"""Several owners' forests as one prediction, from what they have released alone.

Forests over the same columns, of other rows: the mean of their probabilities. Forests over different columns of the same people: their
log-odds add up, less the prior that each of them holds,

    log P(c | x, x') = log P(c | x) + log P(c | x') − log π_c + constant

which is exact where the owners' columns are independent given the class. π is the share of each class in the released counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import MergeError
from hedgerow.release.release import Release
from hedgerow.schema.attributes import text_of
from hedgerow.schema.toml import same_columns

Floats = NDArray[np.float64]
LEAST = 1e-9  # of a probability: one owner alone is never sure beyond what all others say


def combined_proba(forests: Iterable[Release], X: Any) -> Floats:
    """The class probabilities of each row by several owners' forests together, in the order of `classes`. Costs no ε.

    Of forests over the same columns the mean; of forests over different columns of the same people the sum of their log-odds, for which
    the rows must have the columns of all. What a person loses is stated by the certificate of each: over different columns it adds up.
    """
    given = list(forests)
    if not given:
        raise MergeError("combined_proba: got no forests; expected at least one.")
    groups = grouped(given, [f"forest {number}" for number in range(1, len(given) + 1)])
    shares = [np.mean([forest.predict_proba(X) for forest in group], axis=0) for group in groups]
    return combined(shares, groups)


def grouped(forests: Sequence[Release], names: Sequence[str]) -> list[list[Release]]:
    """The forests by the columns that they have; refused where these overlap and are not the same, or where classes differ."""
    groups: list[list[Release]] = []
    first, first_name = forests[0], names[0]
    hashes: dict[str, str] = {}
    for forest, name in zip(forests, names, strict=True):
        if forest.content_hash in hashes:
            raise MergeError(f"{name} is the same release as {hashes[forest.content_hash]}; expected that of another owner.")
        hashes[forest.content_hash] = name
        if [*map(text_of, forest.schema.target.classes)] != [*map(text_of, first.schema.target.classes)]:
            raise MergeError(f"{name} has other classes than {first_name}; expected the same, in the same order.")
        same = next((group for group in groups if _same(group[0], forest)), None)
        if same is not None:
            same.append(forest)
            continue
        common = [each for group in groups for each in group[0].schema.names if each in forest.schema.names]
        if common:
            raise MergeError(
                f"{name} was fitted with another schema than {first_name}, and has the column {common[0]!r} as well; expected the "
                "same attributes, domains, classes and bins (owners of other rows), or none in common (owners of other columns)."
            )
        groups.append([forest])
    return groups


def combined(shares: Sequence[Floats], groups: Sequence[Sequence[Release]]) -> Floats:
    """Of each group the mean probabilities of some rows, put together: (rows, classes)."""
    if len(shares) == 1:
        return shares[0]
    margins = sum((np.log(np.maximum(each, LEAST)) for each in shares[1:]), start=np.log(np.maximum(shares[0], LEAST)))
    margins = margins - (len(shares) - 1) * np.log(prior(groups))
    odds = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def prior(groups: Sequence[Sequence[Release]]) -> Floats:
    """The share of each class, the mean over the owners' released counts; noise leaves none of them without a row."""
    totals = [np.maximum(np.asarray(forest.forest.class_totals, dtype=np.float64), 1.0) for group in groups for forest in group]
    return np.asarray(np.mean([each / each.sum() for each in totals], axis=0))


def aligned(streams: Sequence[Iterable[Floats]]) -> Iterator[list[Floats]]:
    """Blocks of the same rows from streams that cut them at different places."""
    waiting: list[Floats | None] = [None] * len(streams)
    sources = [iter(stream) for stream in streams]
    while True:
        for place, source in enumerate(sources):
            held = waiting[place]
            if held is None or not len(held):
                waiting[place] = next(source, None)
        blocks = [each for each in waiting if each is not None]
        if len(blocks) < len(streams):
            return
        rows = min(map(len, blocks))
        yield [each[:rows] for each in blocks]
        waiting = [each[rows:] for each in blocks]


def _same(first: Release, other: Release) -> bool:
    return same_columns(first.schema, other.schema) and first.codebook.bins == other.codebook.bins
