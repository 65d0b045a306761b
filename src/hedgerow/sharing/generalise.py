"""LD, the method that publishes data instead of models: a table is generalised until every group is anonymous enough.

Full-domain generalisation (Sharkey et al. 2008, section 4, after Machanavajjhala et al., ℓ-diversity): every attribute is taken to one
level of its taxonomy, the same for all rows. Rows that then read alike are a group, and every group must satisfy the requirement, by its
real class counts. The class is what is sensitive and is published as it is; all other attributes are quasi-identifiers unless `quasi` names
some.

**Which rows it reads: all of them, exactly.** It is for an owner's own table, and neither its choice of levels nor the table that it makes
is differentially private. What comes out has the guarantee "anonymity" with its k, (c, ℓ) or (α, k), and never an ε.

    codebook = Codebook(with_numeric_taxonomies(schema))
    result = generalise(codebook.encode(table), codebook.encode_classes(target), codebook, Requirement.of(c=5, l=3))
    if not result.impossible:
        result.codebook, result.codes, result.labels      # the published table, and what its codes mean
        result.apply(codebook.encode(test_table))         # other rows, generalised alike
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.loss import exact_epsilon
from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError, TableError
from hedgerow.schema.codebook import Codebook
from hedgerow.sharing.lattice import Bounds, Found, Levels, Search
from hedgerow.sharing.taxonomy import Taxonomies

Codes = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, eq=False)
class Generalised:
    """A generalised table, or the named result that there is none (`impossible`).

    levels:     the level of each attribute; None if no generalisation satisfies the requirement
    kept:       (rows given,) whether a row is in the table: it has a declared class and was not left out
    codes:      (rows kept, attributes) groups, as `codebook` names them, in the order of the rows given
    labels:     (rows kept,) class codes
    rows:       rows with a declared class; `left_out` of them are suppressed
    groups:     groups in the table
    cost:       discernibility: Σ |group|² + rows left out · rows
    tried:      nodes of the lattice that were looked at, of `lattice` in all
    complete:   False if the search stopped at its limit: the table satisfies the requirement, but a better one may have been missed
    """

    guarantee: ClassVar[str] = "anonymity"

    requirement: Requirement
    taxonomies: Taxonomies = field(repr=False)
    quasi: tuple[int, ...]
    levels: Levels | None
    kept: NDArray[np.bool_] = field(repr=False)
    codes: Codes = field(repr=False)
    labels: NDArray[np.uint16] = field(repr=False)
    rows: int
    left_out: int
    groups: int
    cost: int
    tried: int
    complete: bool

    @property
    def impossible(self) -> bool:
        """No generalisation was found: not even one group of all rows satisfies the requirement, where no row may be left out."""
        return self.levels is None

    @property
    def suppressed(self) -> float:
        """The share of the rows that is left out."""
        return self.left_out / self.rows if self.rows else 0.0

    @property
    def lattice(self) -> int:
        """How many nodes the lattice has."""
        total = 1
        for place in self.quasi:
            total *= self.taxonomies.n_levels(place)
        return total

    @cached_property
    def codebook(self) -> Codebook:
        """What the codes of the generalised table mean: a schema whose values are the groups."""
        return Codebook(self.taxonomies.schema_at(self._levels()))

    def apply(self, codes: NDArray[Any]) -> Codes:
        """Other rows, taken to the same levels; for codes of the codebook that the table was given in."""
        levels = self._levels()
        return _taken_to(self.taxonomies, levels, _checked(codes, self.taxonomies.codebook), self.codebook)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The table with the names of the groups, None where a value was never declared; without the class."""
        names = self.codebook.schema.names
        labels = [np.array([*labels, None], dtype=object) for labels in self.codebook.labels]
        return {name: labels[place][self.codes[:, place]] for place, name in enumerate(names)}

    def words(self) -> str:
        asked = f"{self.requirement.words()} of groups that read alike in {len(self.quasi)} attribute(s)"
        if self.impossible:
            return f"impossible: no generalisation of {self.rows} rows satisfies {asked}."
        return f"anonymity, not differential privacy: {asked}; {self.groups} groups, {self.suppressed:.1%} of the rows left out."

    def _levels(self) -> Levels:
        if self.levels is None:
            raise PlanError(self.words())
        return self.levels


def generalise(
    codes: NDArray[Any],
    labels: NDArray[Any],
    codebook: Codebook,
    requirement: Requirement,
    suppression: Any = 0.0,
    quasi: Sequence[str] | None = None,
    most_nodes: int = 200_000,
) -> Generalised:
    """The table at the levels with the least discernibility cost among all that satisfy the requirement.

    codes, labels: all rows, as `codebook.encode` and `codebook.encode_classes` give them; rows without a declared class are no part of it
    suppression:   the largest share of the rows that may be left out: those of groups that fail
    quasi:         names of the quasi-identifiers; other attributes are published as they are and make no groups
    most_nodes:    the search stops after so many nodes (`complete` is then False)

    Nothing may be left out: what satisfies the requirement still does when it is generalised further, and that never costs less; so the
    best is one of the minimal generalisations (none of its attributes can be one level lower). With suppression neither is true: a coarser
    table may fail where a finer one can leave the failing groups out, and it may cost less because it leaves out fewer. The least cost then
    decides alone; the search is exact all the same (`sharing/lattice.py` says why), unless it stopped at its limit. The result is
    always judged again by the requirement itself before it is returned.

    Time: each node is one pass over the distinct rows that are left in its branch. Adult, 48,842 rows and all 14 attributes, 70 million
    nodes: under a second for (c, 2)-diversity, some seconds for k-anonymity, about 10 s if rows may be left out (one core).
    """
    search, columns, counts, known = _prepared(codes, labels, codebook, requirement, suppression, quasi, most_nodes)
    search.run(columns, counts)
    best = search.best if search.best is None else _lowered(search, columns, counts, search.best)
    return _result(search, columns, counts, known, np.asarray(codes), np.asarray(labels), codebook, requirement, best)


def minimal_generalisations(
    codes: NDArray[Any],
    labels: NDArray[Any],
    codebook: Codebook,
    requirement: Requirement,
    suppression: Any = 0.0,
    quasi: Sequence[str] | None = None,
    most_nodes: int = 200_000,
) -> list[Levels]:
    """The levels of all minimal generalisations that satisfy the requirement, in rising order; reads what `generalise` reads."""
    search, columns, counts, _ = _prepared(codes, labels, codebook, requirement, suppression, quasi, most_nodes)
    search.bounded = False
    search.run(columns, counts)
    if not search.complete:
        raise PlanError(f"most_nodes: the minimal generalisations are not all found after {most_nodes} nodes; allow more.")
    good = sorted({found.levels for found in search.found}, key=lambda levels: (sum(levels), levels))
    minimal: list[Levels] = []
    for levels in good:
        if not any(all(a <= b for a, b in zip(lower, levels, strict=True)) for lower in minimal):
            minimal.append(levels)
    return sorted(_with_others_unchanged(levels, search.quasi) for levels in minimal)


def _prepared(
    codes: Any, labels: Any, codebook: Codebook, requirement: Requirement, suppression: Any, quasi: Sequence[str] | None, most_nodes: int
) -> tuple[Search, NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    codes, labels = _checked(codes, codebook), np.asarray(labels)
    if labels.shape != codes.shape[:1]:
        raise TableError(f"labels: got shape {labels.shape}; expected one class code for each of the {len(codes)} rows.")
    known = labels < codebook.n_classes
    columns = np.ascontiguousarray(codes[known].T, dtype=np.int64)
    counts = np.zeros((columns.shape[1], codebook.n_classes), dtype=np.int64)
    counts[np.arange(len(counts)), labels[known]] = 1
    may_go = int(checked_share(suppression) * len(counts))
    search = Search(
        Taxonomies(codebook).levels,
        Bounds.of(requirement, len(counts)),
        may_go,
        checked_quasi(codebook, quasi),
        len(counts),
        most=most_nodes,
    )
    return search, columns, counts, known


def _checked(given: Any, codebook: Codebook) -> NDArray[Any]:
    codes: NDArray[Any] = np.asarray(given)
    if codes.ndim != 2 or codes.shape[1] != len(codebook.sizes) or codes.dtype.kind not in "iu":
        raise TableError(f"codes: got shape {codes.shape}; expected whole numbers, a row for each row and {len(codebook.sizes)} columns.")
    if len(codes) and ((codes < 0).any() or (codes > np.asarray(codebook.sizes)).any()):
        raise TableError("codes: some are none of the codebook's; expected what its encode gives.")
    return codes


def checked_share(suppression: Any) -> Fraction:
    """The share of the rows that may be left out, as an exact number."""
    nothing = isinstance(suppression, (int, float, Fraction)) and suppression == 0
    share = Fraction(0) if nothing else exact_epsilon(suppression, "suppression")
    if not share < 1:
        raise PlanError(f"suppression: got {suppression!r}; expected a share of the rows, from 0 to below 1.")
    return share


def checked_quasi(codebook: Codebook, quasi: Sequence[str] | None) -> tuple[int, ...]:
    """The places of the quasi-identifiers; of all attributes if none is named."""
    names = codebook.schema.names
    if quasi is None:
        return tuple(range(len(names)))
    asked = [quasi] if isinstance(quasi, str) else list(quasi)
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise PlanError(f"quasi: got {unknown}; expected names of attributes: {', '.join(names)}.")
    return tuple(place for place, name in enumerate(names) if name in asked)


def _lowered(search: Search, columns: NDArray[np.int64], counts: NDArray[np.int64], best: Found) -> Found:
    """The best node, or one below it that costs as much: a level that merges nothing in this table is not needed."""
    for place in search.quasi:
        while best.levels[place] > 0:
            levels = (*best.levels[:place], best.levels[place] - 1, *best.levels[place + 1 :])
            lower = search.node(columns, counts, levels)
            if lower is None or lower.cost > best.cost:
                break
            best = lower
    return best


def _with_others_unchanged(levels: Levels, quasi: tuple[int, ...]) -> Levels:
    return tuple(level if place in quasi else 0 for place, level in enumerate(levels))


def _taken_to(taxonomies: Taxonomies, levels: Levels, codes: NDArray[Any], codebook: Codebook) -> Codes:
    out = np.empty(codes.shape, dtype=codebook.dtype)
    for place, level in enumerate(levels):
        out[:, place] = taxonomies.codes_at(place, level)[codes[:, place]]
    return out


def _result(
    search: Search,
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
    known: NDArray[np.bool_],
    codes: NDArray[Any],
    labels: NDArray[Any],
    codebook: Codebook,
    requirement: Requirement,
    best: Found | None,
) -> Generalised:
    taxonomies, rows = Taxonomies(codebook), len(counts)
    seen: dict[str, Any] = {
        "requirement": requirement, "taxonomies": taxonomies, "quasi": search.quasi, "rows": rows,
        "tried": search.tried, "complete": search.complete,
    }  # fmt: skip
    if best is None:
        no_codes: Codes = np.empty((0, codes.shape[1]), dtype=codebook.dtype)
        no_labels = np.empty(0, dtype=np.uint16)
        return Generalised(levels=None, kept=np.zeros_like(known), codes=no_codes, labels=no_labels, left_out=0, groups=0, cost=0, **seen)
    ids, number = search.groups_at(columns, best.levels)
    of_group = np.zeros((number, counts.shape[1]), dtype=np.int64)
    np.add.at(of_group, ids, counts)
    good = _satisfied(requirement, of_group)
    left_out = int(of_group[~good].sum())
    if left_out != best.suppressed or left_out > search.may_go:
        raise PlanError("generalise: the table found does not satisfy the requirement. This is a mistake in hedgerow; nothing is returned.")
    levels = _with_others_unchanged(best.levels, search.quasi)
    kept = known.copy()
    kept[known] = good[ids]
    return Generalised(
        levels=levels,
        kept=kept,
        codes=_taken_to(taxonomies, levels, codes[kept], Codebook(taxonomies.schema_at(levels))),
        labels=labels[kept].astype(np.uint16),
        left_out=left_out,
        groups=int(good.sum()),
        cost=best.cost,
        **seen,
    )


def _satisfied(requirement: Requirement, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The requirement's own word on groups with these class counts."""
    hit: NDArray[Any] = counts.max(axis=1, initial=0)
    miss: NDArray[Any] = counts.sum(axis=1) - hit
    whole: NDArray[Any] = counts
    return requirement.satisfied(counts.argmax(axis=1), hit, miss, whole)
