"""The taxonomies of a schema, level by level, as full-domain generalisation needs them.

    level 0      the values themselves: the codes of the codebook
    level 1, …   coarser and coarser groups, each level made of whole groups of the one below
    last level   one group of everything

- An attribute without a taxonomy has two levels: its values, and everything ("*").
- Where the branches of a taxonomy are not equally deep, a value with a short way to the top stays itself on the lower
  levels, so that every level is a partition of all values, and only the last one holds everything.
- The branches `other` and `missing`, where the taxonomy does not place them, and values that have no branch at all stay
  apart until the last level.
- The cells of a numeric attribute are those of the codebook. An edge of the taxonomy that is no edge of a cell moves to the
  nearest one, and the names of the groups say where it went. `with_numeric_taxonomies` gives a schema where nothing has to
  move, and where numbers without a taxonomy have one.
- A level that changes nothing is left out.

Everything here is public: it depends on the schema and the codebook alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import SchemaError
from hedgerow.schema.attributes import Categorical, Numeric, text_of
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema

EVERYTHING = "*"
CELLS = 32  # of equal width, of a numeric attribute that declares neither edges nor a taxonomy


@dataclass(frozen=True, eq=False)
class Level:
    """One level of one attribute.

    group: (codes + 1,) the group of every code, last that of values without a branch: the number of groups, or 0 on the last level
    names: what each group is called
    """

    group: NDArray[np.int32]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Taxonomies:
    """The levels of all attributes of a codebook. Attributes are given by their place in the schema."""

    codebook: Codebook

    @cached_property
    def levels(self) -> tuple[tuple[Level, ...], ...]:
        """For each attribute its levels, the values first."""
        return tuple(_levels(self.codebook, place) for place in range(len(self.codebook.sizes)))

    def n_levels(self, attribute: int) -> int:
        return len(self.levels[attribute])

    @property
    def top(self) -> tuple[int, ...]:
        """The last level of every attribute."""
        return tuple(len(levels) - 1 for levels in self.levels)

    def codes_at(self, attribute: int, level: int) -> NDArray[np.int32]:
        """The group of every code at a level; the last entry is for values that have no branch."""
        return self._level(attribute, level).group

    def names_at(self, attribute: int, level: int) -> tuple[str, ...]:
        """What the groups of a level are called."""
        return self._level(attribute, level).names

    def distance(self, attribute: int, code_a: int, code_b: int) -> int:
        """How many levels up the two codes are in one group for the first time; 0 for the same code."""
        return next(level for level, entry in enumerate(self.levels[attribute]) if entry.group[code_a] == entry.group[code_b])

    def schema_at(self, levels: Sequence[int]) -> Schema:
        """The schema of a table that is generalised to these levels: every group is a value."""
        schema = self.codebook.schema
        attributes = [
            Categorical(attribute.name, self.names_at(place, level), unreviewed=attribute.unreviewed)
            for place, (attribute, level) in enumerate(zip(schema.attributes, levels, strict=True))
        ]
        return Schema(attributes, schema.target)

    def _level(self, attribute: int, level: int) -> Level:
        if not 0 <= level < self.n_levels(attribute):
            name = self.codebook.schema.names[attribute]
            raise SchemaError(f"level of {name!r}: got {level}; expected 0 to {self.n_levels(attribute) - 1}.")
        return self.levels[attribute][level]


def with_numeric_taxonomies(schema: Schema) -> Schema:
    """The schema in which every numeric attribute has a taxonomy, and the cells of its finest level: so no edge has to move.

    Declared ones stay. An attribute with no edges has those of its taxonomy; without a taxonomy, CELLS of equal width. Cells without a
    taxonomy are merged two and two, level after level, until one is left.
    """
    return replace(schema, attributes=tuple(_with_taxonomy(each) if isinstance(each, Numeric) else each for each in schema.attributes))


def _with_taxonomy(attribute: Numeric) -> Numeric:
    if attribute.taxonomy is not None:
        return replace(attribute, edges=attribute.edges or attribute.taxonomy[0])
    levels = [attribute.cell_edges(CELLS)]
    while len(levels[-1]) > 2:
        levels.append((*levels[-1][:-1:2], attribute.high))
    return replace(attribute, edges=levels[0], taxonomy=levels[1:] or levels)


def _levels(codebook: Codebook, place: int) -> tuple[Level, ...]:
    attribute, size = codebook.schema.attributes[place], codebook.sizes[place]
    values = Level(np.arange(size + 1, dtype=np.int32), _distinct(codebook.labels[place]))
    between: list[Level] = []
    everything = EVERYTHING
    if isinstance(attribute, Categorical) and attribute.taxonomy is not None:
        between, everything = _groups_of_values(attribute)
    elif isinstance(attribute, Numeric) and attribute.taxonomy is not None:
        between = [_groups_of_cells(attribute, edges, codebook.bins) for edges in attribute.taxonomy[:-1]]
    kept = [values]
    for level in between:
        if 1 < len(level.names) < len(kept[-1].names):  # groups are made of whole groups, so fewer of them is all that can change
            kept.append(level)
    return (*kept, Level(np.zeros(size + 1, dtype=np.int32), (everything,)))


def _groups_of_values(attribute: Categorical) -> tuple[list[Level], str]:
    """The levels between the values and the top, and the name of the top."""
    assert attribute.taxonomy is not None
    parent_of = dict(attribute.taxonomy)
    (top,) = set(parent_of.values()) - parent_of.keys()
    ways = [_way_up(text_of(value), parent_of, top) for value in attribute.domain]
    deepest = max(map(len, ways)) - 1
    levels = []
    for depth in range(deepest - 1, 0, -1):  # groups so far below the top, or values that are not as deep
        found = [way[max(0, len(way) - 1 - depth)] for way in ways]
        levels.append(_level(found))
    return levels, top


def _way_up(text: str, parent_of: dict[str, str], top: str) -> list[str]:
    way = [text]
    while way[-1] != top:
        way.append(parent_of.get(way[-1], top))
    return way


def _groups_of_cells(attribute: Numeric, edges: Sequence[float], bins: int) -> Level:
    cells = np.asarray(attribute.cell_edges(bins))
    wanted = np.asarray(edges)
    after = np.clip(np.searchsorted(cells, wanted), 1, len(cells) - 1)
    nearest = np.where(wanted - cells[after - 1] <= cells[after] - wanted, after - 1, after)
    ends = np.unique(cells[nearest])
    group = np.searchsorted(ends, cells[:-1], side="right") - 1
    names = [_between(a, b) for a, b in pairwise(ends.tolist())]
    missing = [attribute.missing] if attribute.missing is not None else []
    group = np.concatenate([group, np.arange(len(names), len(names) + len(missing) + 1)])
    return Level(group.astype(np.int32), _distinct([*names, *missing]))


def _between(low: float, high: float) -> str:
    return f"{low:.6g} to {high:.6g}"


def _level(found: Sequence[str]) -> Level:
    """A level from the group that each code belongs to, groups in the order in which they are met."""
    code = {name: number for number, name in enumerate(dict.fromkeys(found))}
    return Level(np.array([*(code[name] for name in found), len(code)], dtype=np.int32), tuple(code))


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, numbered where two of them would read alike."""
    taken: dict[str, None] = {}
    for name in names:
        number, tried = 1, name
        while text_of(tried) in taken:
            number += 1
            tried = f"{name} ({number})"
        taken[text_of(tried)] = None
    return tuple(taken)
