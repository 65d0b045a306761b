"""From paths to values: what a pseudo-row on a path may have in each attribute, and one of those drawn for each row.

    asked on the path, categorical    one of the codes that the path allows, all alike
    asked on the path, numeric        a number in the path's interval: its middle, an end, or drawn from it
    not asked                         one of the declared values, all alike; a number anywhere between the bounds. Or else, with `shares`,
                                      as often as the paths that do ask say it

An interval is made of cells [edge, next edge), the last one closed, and no number leaves it: its row takes the same path again. Of an
attribute that has whole numbers only, one of those is drawn where the interval holds one. Where a path allows several intervals, or the
branch of missing values beside one, each counts as much as it has codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.schema.attributes import Categorical, Numeric
from hedgerow.schema.codebook import Codebook
from hedgerow.sharing.pseudo.sizes import whole_numbers
from hedgerow.trees.paths import Paths

UNIFORM, MIDDLE, LOW, HIGH, NORMAL = "uniform", "middle", "low", "high", "normal"
NUMERIC = (UNIFORM, MIDDLE, LOW, HIGH, NORMAL)
TICKETS = 4_096  # into which the shares of values that are not alike are divided
WIDTH = 3.0  # standard deviations of "normal" from the middle of an interval to its ends


@dataclass(frozen=True, eq=False)
class Choices:
    """For one attribute the sets of codes that paths allow, each set once; set 0 is for paths that do not ask.

    which:       (paths,) the set of each path
    first, size: where the entries of each set begin, and how many there are
    code:        the codes of the sets, one after another; in set 0 a code may stand several times
    interval:    (3, entries), numeric attributes: the interval [low, end) that each code lies in, and the highest number inside;
                 NaN for the branch of missing values
    """

    which: NDArray[np.int32]
    first: NDArray[np.int64]
    size: NDArray[np.int64]
    code: NDArray[np.int64]
    interval: NDArray[np.float64] | None = None

    def places(self, path: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """For each row an entry of its path's set, all alike."""
        sets = self.which[path]
        return self.first[sets] + (rng.random(len(path)) * self.size[sets]).astype(np.int64)


class Templates:
    """All paths of one or several trees, as what may be drawn for them."""

    def __init__(self, codebook: Codebook, trees: Sequence[Paths], shares: Sequence[NDArray[np.int64]] | None = None) -> None:
        self.codebook = codebook
        self.choices = [_choices(codebook, j, trees, None if shares is None else shares[j]) for j in range(len(codebook.sizes))]

    @classmethod
    def of_everybody(cls, codebook: Codebook) -> Templates:
        """One path that asks nothing."""
        everything = np.ones((1, sum(codebook.sizes)), dtype=bool)
        nothing = np.zeros((1, len(codebook.sizes)), dtype=bool)
        one = np.ones(1)
        return cls(codebook, [Paths(codebook, everything, nothing, np.zeros(1, dtype=np.int64), one, 0 * one)])

    def draw(
        self, path: NDArray[np.int64], numeric: str, rng: np.random.Generator
    ) -> tuple[NDArray[np.unsignedinteger], dict[int, NDArray[np.float64]]]:
        """For each row, given its path: a row of codes, and for numeric attributes the numbers themselves."""
        codes = np.empty((len(path), len(self.choices)), dtype=self.codebook.dtype)
        numbers = {}
        for j, choices in enumerate(self.choices):
            place = choices.places(path, rng)
            if choices.interval is None:
                codes[:, j] = choices.code[place]
            else:
                asked = choices.which[path] > 0
                entry, interval = self.codebook.schema.attributes[j], choices.interval[:, place]
                drawn = _numbers(interval, asked, numeric, rng)
                numbers[j] = _whole(drawn, interval) if isinstance(entry, Numeric) and entry.integer else drawn
                codes[:, j] = self.codebook.coders[j].encode(numbers[j])
        return codes, numbers


def _numbers(interval: NDArray[np.float64], asked: NDArray[np.bool_], numeric: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """A number from each interval; where the path does not ask, anywhere in it."""
    low, end, high = interval
    where = rng.random(len(low))
    if numeric in (MIDDLE, LOW, HIGH):
        where = np.where(asked, {LOW: 0.0, MIDDLE: 0.5, HIGH: 1.0}[numeric], where)
    elif numeric == NORMAL:
        where = np.where(asked, 0.5 + _normal(len(low), rng) / (2 * WIDTH), where)
    return np.asarray(np.clip(low + where * (end - low), low, high))


def _whole(numbers: NDArray[np.float64], interval: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole numbers, where an interval holds one; missing values stay so."""
    low, _, high = interval
    below = np.floor(numbers)
    whole = np.where(below < low, np.ceil(low), below)
    return np.where(whole <= high, whole, numbers)


def _normal(rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Normal numbers, those beyond ±WIDTH drawn again."""
    drawn = rng.standard_normal(rows)
    while len(far := np.flatnonzero(np.abs(drawn) > WIDTH)):
        drawn[far] = rng.standard_normal(len(far))
    return drawn


def declared_codes(codebook: Codebook, attribute: int) -> int:
    """How many leading codes of an attribute stand for declared values or cells; the others are the branches `other` and `missing`."""
    entry = codebook.schema.attributes[attribute]
    return len(entry.values) if isinstance(entry, Categorical) else codebook.numeric_cells(attribute)


def shares_told(codebook: Codebook, trees: Sequence[Paths], rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """For each attribute how many of TICKETS each declared code has, told by the paths that ask about it; even where none does."""
    found = []
    for j, first in enumerate(np.cumsum(codebook.sizes) - codebook.sizes):
        told = np.zeros(declared_codes(codebook, j))
        for paths in trees:
            asking = paths.asked[:, j] & (paths.totals > 0)
            allowed = paths.allowed[asking, first : first + len(told)]
            told += (paths.totals[asking] / np.maximum(allowed.sum(axis=1), 1)) @ allowed
        found.append(whole_numbers(told if told.sum() > 0 else told + 1, TICKETS, rng))
    return found


def _choices(codebook: Codebook, attribute: int, trees: Sequence[Paths], tickets: NDArray[np.int64] | None) -> Choices:
    numeric = codebook.numeric_cells(attribute) > 0
    first_code, codes_here = sum(codebook.sizes[:attribute]), codebook.sizes[attribute]
    sets = [np.arange(declared_codes(codebook, attribute))]
    if tickets is not None:
        sets = [np.repeat(sets[0], tickets)]
    number: dict[bytes, int] = {}  # of each set that was met
    which = []
    for paths in trees:
        found = np.zeros(len(paths), dtype=np.int32)
        asking = np.flatnonzero(paths.asked[:, attribute])
        if len(asking):
            packed = np.packbits(paths.allowed[asking, first_code : first_code + codes_here], axis=1)
            different, back = np.unique(packed, axis=0, return_inverse=True)
            for bits in different:
                if bits.tobytes() not in number:
                    number[bits.tobytes()] = len(sets)
                    sets.append(np.flatnonzero(np.unpackbits(bits, count=codes_here)))
            found[asking] = np.array([number[bits.tobytes()] for bits in different], dtype=np.int32)[back.ravel()]
        which.append(found)
    size = np.array([len(codes) for codes in sets])
    interval = _intervals(codebook, attribute, sets, whole=tickets is None) if numeric else None
    return Choices(np.concatenate(which), np.cumsum(size) - size, size, np.concatenate(sets), interval)


def _intervals(codebook: Codebook, attribute: int, sets: Sequence[NDArray[np.int64]], whole: bool) -> NDArray[np.float64]:
    """For each code of each set the run of neighbouring cells that it belongs to. Of set 0 the whole range, or the cell itself."""
    entry = codebook.schema.attributes[attribute]
    assert not isinstance(entry, Categorical)
    edges = np.array(entry.cell_edges(codebook.bins))
    cells = len(edges) - 1
    highest = np.append(np.nextafter(edges[1:-1], -np.inf), edges[-1])  # in each cell
    free = np.repeat(edges[[0, -1, -1], None], len(sets[0]), axis=1) if whole else np.stack([edges[:-1], edges[1:], highest])[:, sets[0]]
    found = [free]
    for codes in sets[1:]:
        intervals = np.full((3, len(codes)), np.nan)
        inside = codes[codes < cells]
        runs = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1) if len(inside) else []
        for run in runs:
            intervals[:, np.isin(codes, run)] = [[edges[run[0]]], [edges[run[-1] + 1]], [highest[run[-1]]]]
        found.append(intervals)
    return np.concatenate(found, axis=1)
