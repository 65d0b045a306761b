"""What a rule asks of one attribute, as a file says it, and as codes of the codebook.

    categorical    one of its values, or a list of them
    numeric        {"low": 20, "high": 40}, or a list of such intervals; the end that is left out is the attribute's own bound. The name of
                   the branch of missing numbers may stand in the list

An interval is made of whole cells [edge, next edge), the last one closed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Categorical, Numeric, text_of
from hedgerow.schema.codebook import Codebook

Mask = NDArray[np.bool_]
NAMED = 8  # values that a message names


def allowed_codes(codebook: Codebook, attribute: int, given: Any, rule: str) -> Mask:
    """For each code of the attribute whether the condition allows it. `rule` is how messages call the rule."""
    entry = codebook.schema.attributes[attribute]
    entries = list(given) if isinstance(given, (list, tuple)) else [given]
    if not entries:
        raise PlanError(f"{rule}: got no value of {entry.name!r}; expected at least one. Leave {entry.name!r} out if all are allowed.")
    mask = np.zeros(codebook.sizes[attribute], dtype=bool)
    for each in entries:
        mask |= _value(codebook, attribute, each, rule) if isinstance(entry, Categorical) else _cells(codebook, attribute, each, rule)
    return mask


def written(codebook: Codebook, attribute: int, codes: NDArray[np.int64]) -> list[Any]:
    """The same condition for a file: `allowed_codes` gives these codes back."""
    entry = codebook.schema.attributes[attribute]
    if isinstance(entry, Categorical):
        return [entry.domain[code] for code in codes]
    edges, cells = entry.cell_edges(codebook.bins), codebook.numeric_cells(attribute)
    inside = codes[codes < cells]
    runs = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1) if len(inside) else []
    found: list[Any] = [{"low": _short(edges[run[0]]), "high": _short(edges[run[-1] + 1])} for run in runs]
    return found + [entry.missing for code in codes if code >= cells]


def _value(codebook: Codebook, attribute: int, value: Any, rule: str) -> Mask:
    entry = codebook.schema.attributes[attribute]
    known = codebook.labels[attribute]
    said = text_of(value) if isinstance(value, (str, int, float, bool)) or hasattr(value, "item") else None
    if said not in known:
        raise PlanError(f"{rule}: {value!r:.80} is no value of {entry.name!r}; expected {named(known)}.")
    return np.asarray(np.arange(len(known)) == known.index(said))


def _cells(codebook: Codebook, attribute: int, given: Any, rule: str) -> Mask:
    entry = codebook.schema.attributes[attribute]
    assert isinstance(entry, Numeric)
    codes, cells = np.arange(codebook.sizes[attribute]), codebook.numeric_cells(attribute)
    if entry.missing is not None and given == entry.missing:
        return np.asarray(codes == cells)
    if not isinstance(given, Mapping) or not given or not given.keys() <= {"low", "high"}:
        also = "" if entry.missing is None else f", or {entry.missing!r}"
        raise PlanError(f'{rule}: got {given!r:.80} for the number {entry.name!r}; expected {{"low": …, "high": …}}{also}.')
    ends = [_number(given.get(end, getattr(entry, end)), f"{rule}: {end} of {entry.name!r}") for end in ("low", "high")]
    if not ends[0] < ends[1]:
        raise PlanError(f"{rule}: {entry.name!r} from {ends[0]:g} to {ends[1]:g}; expected low below high. Are they the wrong way round?")
    first, last = (_edge(codebook, attribute, number, rule) for number in ends)
    return (first <= codes) & (codes < last)


def _edge(codebook: Codebook, attribute: int, number: float, rule: str) -> int:
    """Which edge a number is: exactly, or in the six digits that are shown of one."""
    entry = codebook.schema.attributes[attribute]
    assert isinstance(entry, Numeric)
    edges = entry.cell_edges(codebook.bins)
    if number in edges:
        return edges.index(number)
    shown = [f"{edge:.6g}" for edge in edges]
    if shown.count(f"{number:.6g}") == 1:
        return shown.index(f"{number:.6g}")
    if not entry.low < number < entry.high:
        raise PlanError(f"{rule}: {number:g} is no {entry.name!r}; expected numbers from {entry.low:g} to {entry.high:g}.")
    place = int(np.searchsorted(edges, number))
    if entry.edges is not None:
        instead = "name them in the schema's edges"
    else:
        instead = f"say how many cells of equal width there are (bins, now {codebook.bins}), or name edges in the schema"
    raise PlanError(
        f"{rule}: {number:g} lies inside a cell of {entry.name!r}; expected whole cells. The nearest edges are {shown[place - 1]} and "
        f"{shown[place]}: take one of them, or {instead}."
    )


def _number(value: Any, what: str) -> float:
    plain = value.item() if hasattr(value, "item") else value
    try:
        number = math.nan if isinstance(plain, bool) or not isinstance(plain, (int, float)) else float(plain)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise PlanError(f"{what}: got {value!r:.80}; expected a finite number.")
    return number


def _short(edge: float) -> float | int:
    return int(edge) if edge.is_integer() and abs(edge) < 2**53 else edge


def named(values: tuple[str, ...]) -> str:
    """Values in a message: not hundreds of them."""
    more = len(values) - NAMED
    return "one of " + ", ".join(values[:NAMED]) + (f" and {more} more" if more > 0 else "")
