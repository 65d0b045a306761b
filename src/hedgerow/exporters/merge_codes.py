"""Codes that no tree tells apart become one code: fewer edges of numbers, fewer values in lists."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedgerow.exporters.portable import PortableColumn, PortableTree


def merged(columns: list[PortableColumn], trees: list[PortableTree]) -> tuple[list[PortableColumn], list[PortableTree]]:
    """The same columns and trees with as few codes as the trees need."""
    new_codes = [_new_codes(j, column, trees) for j, column in enumerate(columns)]
    kept = [{new: old for old, new in reversed(list(enumerate(codes)))} for codes in new_codes]  # one old code for each new one
    fewer = []
    for tree in trees:
        asked = zip(tree.attribute, tree.branch, strict=True)
        branches = [[branch[kept[j][new]] for new in sorted(kept[j])] for j, branch in asked]
        levels = tuple((j, radix, [answers[kept[j][new]] for new in sorted(kept[j])]) for j, radix, answers in tree.levels)
        fewer.append(replace(tree, branch=branches, levels=levels))
    return [_column(column, codes) for column, codes in zip(columns, new_codes, strict=True)], fewer


def _new_codes(j: int, column: PortableColumn, trees: list[PortableTree]) -> list[int]:
    """For each code its new one. Those of numbers stay in order, so that only neighbours are put together."""
    asked = [branch for tree in trees for attribute, branch in zip(tree.attribute, tree.branch, strict=True) if attribute == j]
    told = [tuple(branch[code] for branch in asked) for code in range(column.size)]
    if column.edges is None:
        number: dict[tuple[int, ...], int] = {}
        return [number.setdefault(each, len(number)) for each in told]
    cells = len(column.edges) + 1
    new = [0]
    for code, (before, here) in enumerate(pairwise(told), 1):
        new.append(new[-1] + (before != here or code >= cells))  # the code of what is missing is none of the cells
    return new


def _column(column: PortableColumn, new: list[int]) -> PortableColumn:
    other = new[column.other]
    edges = None
    if column.edges is not None:
        edges = [edge for code, edge in enumerate(column.edges) if new[code] != new[code + 1]]
    return replace(
        column,
        codes={text: new[code] for text, code in column.codes.items() if new[code] != other},
        other=other,
        edges=edges,
        missing=new[column.missing],
        absent=new[column.absent],
        size=max(new) + 1,
    )
