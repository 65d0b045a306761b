"""Releases put together: rows of several tables (Jagannathan et al. 2012, 5.2 and 5.3), or columns of several owners (5.3).

Noisy counts of the same trees are added, and trees over different columns are united. Both work on what was released and cost
nothing; what the result may claim follows from the parts alone (`certificate_of`), so that order and grouping do not matter.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.noise import Noise
from hedgerow.errors import MergeError
from hedgerow.release.certificate import certificate_of
from hedgerow.release.certificate_checks import last_count
from hedgerow.release.document import check_total
from hedgerow.release.merging_checks import Tables, check_one_group, check_random_trees, check_same_plan, check_unitable, united_schema
from hedgerow.release.parts import Part
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import LEAVES, CountedForest, Ensemble
from hedgerow.trees.tree import NODE, Tree


def merge(releases: Iterable[Release], *, disjoint: bool = False, batches: bool = False, names: Iterable[str] = ()) -> Release:
    """One forest from several that were counted in the same trees: their counts are added, and so is their noise.

    releases: counted from one plan, or in the trees of one forest; may be a generator, of which one at a time is held
    disjoint: you state that no person has rows in two of these files, and that which table a row is in depends on that row alone.
              Without it the losses add, where the owners have not stated it themselves.
    batches:  an owner may appear again, with another batch of rows
    names:    what to call the releases in messages
    """
    tables = Tables(batches, disjoint)
    total: list[NDArray[np.int64]] = []
    parts: list[Part] = []
    base: Release | None = None
    first = ""
    for name, release in _named(releases, names):
        check_random_trees(release, name)
        if release.forest.united:
            raise MergeError(f"{name} unites columns of several owners. Merge the rows of each owner's forests first, then the columns.")
        if base is None:
            base, first = release, name
            total = [np.zeros_like(counts) for counts in release.forest.counts]
        else:
            check_same_plan(first, base, name, release)
        tables.add(name, release)
        if disjoint:
            check_one_group(release, name)
        for sum_, counts in zip(total, release.forest.counts, strict=True):
            sum_ += counts  # each is far below 2^62, and so is the sum before: no overflow
        check_total(total)
        parts += [_recorded(part, release) for part in release.certificate.parts]
    if base is None:
        raise MergeError("merge: got no releases; expected at least one.")
    parts = _once(parts)
    certificate = certificate_of(_stated(parts) if disjoint else parts)
    return Release(
        CountedForest(base.codebook, base.forest.trees, tuple(total), _noise(certificate.parts), LEAVES),
        certificate,
        algorithm=base.algorithm,
        vote=base.vote,
        parameters=base.parameters,
        chosen=base.chosen,
    )


def merge_columns(releases: Iterable[Release], *, names: Iterable[str] = ()) -> Release:
    """One forest from owners who hold different columns of the same persons: the union of their trees (Algorithm 6).

    The losses of the ensembles add, since a person's row is in every owner's table. (The paper says that they do not.)
    """
    tables = Tables(batches=True)  # an owner may hold several sets of columns
    members: list[_Member] = []
    first: tuple[str, Release] | None = None
    for name, release in _named(releases, names):
        check_random_trees(release, name, columns=True)
        first = first or (name, release)
        check_unitable(*first, name, release)
        tables.add(name, release)
        members += _members(name, release)
    if first is None:
        raise MergeError("merge: got no releases; expected at least one.")
    base = first[1]
    members.sort(key=lambda member: member.ensemble.columns)
    schema = united_schema([(member.name, member.schema, member.ensemble.columns) for member in members])
    codebook = Codebook(schema, base.codebook.bins)
    trees: list[Tree] = []
    parts: list[Part] = []
    for number, member in enumerate(members):
        place = np.array([schema.names.index(name) for name in member.schema.names], dtype=NODE)
        for tree in member.trees:
            attribute = np.where(tree.attribute >= 0, place[tree.attribute], NODE(-1)).astype(NODE)
            trees.append(Tree(codebook.sizes, attribute, tree.branch))
        parts += [_recorded(msgspec.structs.replace(part, ensemble=number), member.release) for part in member.parts]
    counts = tuple(tree_counts for member in members for tree_counts in member.counts)
    check_total(counts)
    certificate = certificate_of(_once(parts))
    noise = [_noise([part for part in certificate.parts if part.ensemble == e]) for e in range(len(members))]
    united = tuple(replace(member.ensemble, noise=scales) for member, scales in zip(members, noise, strict=True))
    one = len(members) == 1
    settings = [member.release.parameters for member in members]
    same = {name: value for name, value in base.parameters.items() if all(name in each and each[name] == value for each in settings)}
    return Release(
        CountedForest(codebook, tuple(trees), counts, noise[0] if one else (), LEAVES, () if one else united),
        certificate,
        algorithm=base.algorithm,
        vote=base.vote,
        parameters=same,
        chosen=base.chosen if one else {},
    )


@dataclass(frozen=True)
class _Member:
    """One ensemble of a release that is to be united with others."""

    name: str
    release: Release
    ensemble: Ensemble
    trees: Sequence[Tree]
    counts: Sequence[NDArray[np.int64]]
    parts: Sequence[Part]

    @property
    def schema(self) -> Schema:
        return self.release.schema


def _members(name: str, release: Release) -> Iterator[_Member]:
    start, forest = 0, release.forest
    for number, ensemble in enumerate(forest.ensembles):
        stop = start + ensemble.trees
        parts = [part for part in release.certificate.parts if part.ensemble == number]
        yield _Member(name, release, ensemble, forest.trees[start:stop], forest.counts[start:stop], parts)
        start = stop


def _named(releases: Iterable[Release], names: Iterable[str]) -> Iterator[tuple[str, Release]]:
    given = iter(names)
    for number, release in enumerate(releases, start=1):
        yield next(given, f"release {number}"), release


def _recorded(part: Part, release: Release) -> Part:
    """The part as it stands in the merged certificate, with the keys that hold on its file."""
    keys = {*part.signed_by, *(signature.key for signature in release.signatures)} if part.counted else ()
    return msgspec.structs.replace(part, signed_by=sorted(keys))


def _once(parts: Sequence[Part]) -> list[Part]:
    """A table that only shaped the trees is listed once, and not at all where its counts, of the same run, are there, too."""
    kept: dict[tuple[int, str, str], Part] = {}
    for part in parts:
        place = (part.ensemble, *part.key)
        before = kept.get(place)
        if before is None:
            kept[place] = part
            continue
        more, less = (part, before) if _weight(part) > _weight(before) else (before, part)
        dearer = Fraction(less.epsilon) > Fraction(more.epsilon) or less.exact_delta > more.exact_delta
        if dearer or Counter(less.events) - Counter(more.events) or (less.released and less.released != more.released):
            raise MergeError(
                f"the table {part.name} stands in two files with different looks at its rows, so it was looked at twice under one name. "
                "Each run costs its own ε: give the second one a batch name of its own and merge its release."
            )
        kept[place] = more
    return list(kept.values())


def _weight(part: Part) -> tuple[bool, Fraction, Fraction, int, bool, bytes]:
    """Which of two entries for one table is kept, whatever their order: with its counts, else the larger loss, else more looks."""
    loss = Fraction(part.epsilon), part.exact_delta, len(part.events)
    return (part.counted, *loss, part.stated_beforehand, msgspec.json.encode(part))


def _stated(parts: Sequence[Part]) -> list[Part]:
    """The statement that no person is in two of the counted tables, under a name that follows from their names."""
    keys = sorted(part.key for part in parts if part.counted)
    group = hashlib.sha256(msgspec.json.encode(keys)).hexdigest()[:16]
    return [msgspec.structs.replace(part, group=group) if part.counted else part for part in parts]


def _noise(parts: Sequence[Part]) -> tuple[Noise, ...]:
    """One noise for each counted table, in the order of the certificate."""
    events = [(part, last_count(part)) for part in parts if part.counted]
    return tuple(part.noise(event) for part, event in events if event is not None)
