"""Which releases may be put together, and in words what keeps them apart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE
from hedgerow.errors import MergeError
from hedgerow.inference.vote import ADDITIVE
from hedgerow.release.certificate import all_disjoint, declared_rows
from hedgerow.release.certificate_checks import last_count
from hedgerow.release.parts import Part
from hedgerow.release.release import Release
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import LEAVES

# Algorithms whose counts can be added up: their trees do not depend on rows, or (top questions of a Hedgerow forest) stay as they are.
RANDOM_TREES = {"Private-RDT": "rdt", "SNR forest": "snr", "Hedgerow forest": "hedgerow"}
_ENOUGH = 64  # counts with a noise of at least 1: two tables have the same noise with probability below 2^−64


def check_random_trees(release: Release, name: str, columns: bool = False) -> None:
    """Refuse a forest whose trees follow from its rows, with the reason and what to use instead.

    columns: other owners hold other columns of the same persons
    """
    if columns and release.correction.trees:
        raise MergeError(
            f"{name} holds boosted trees, whose scores are made for all of its columns together: they do not add up with trees over other "
            "columns. Add up what such forests predict (`hedgerow predict a.json ROWS --with b.json`); or fit trees that vote: "
            "`hedgerow fit --algorithm rdt`, or snr."
        )
    instead = "Use --algorithm hedgerow, rdt or snr: `hedgerow plan --save` and `hedgerow count`, or `hedgerow fit` with one of them."
    if release.algorithm not in RANDOM_TREES:
        if not release.certificate.parts:
            raise MergeError(f"{name} ({release.algorithm}) holds exact counts without any privacy: not to be added to others. {instead}")
        raise MergeError(
            f"{name} ({release.algorithm}): its trees were chosen by looking at its rows, so other rows would have other trees, and counts "
            f"of different questions cannot be added. {instead}"
        )
    if release.correction.trees:
        raise MergeError(
            f"{name} holds boosted trees, each chosen and measured for what the model so far got wrong about its rows: counts of other "
            "rows cannot be added to them. Take the mean of what such forests predict (`hedgerow predict a.json ROWS --with b.json`); fit "
            "all rows at once; or, where rows come in batches or from several owners, count them from a shared plan "
            "(`hedgerow plan --save`, `hedgerow count`), or from the first batch on (`hedgerow fit --batch`, `partial_fit`)."
        )
    counted = [last_count(part) for part in release.certificate.parts if part.counted]
    noisy = all(event is not None and event.mechanism in (DISCRETE_LAPLACE, DISCRETE_GAUSSIAN) for event in counted)
    if not counted or not noisy or release.forest.measured != LEAVES:
        raise MergeError(f"{name} does not say with which noise its leaves were counted, so it cannot be put together with others.")


def check_one_group(release: Release, name: str) -> None:
    """Whoever merges can state that owners have no person in common; of the tables inside one file that is its owner's to say."""
    if not all_disjoint([part for part in release.certificate.parts if part.counted]):
        raise MergeError(
            f"{name} holds several tables of which nobody states that they have no person in common, so --disjoint (disjoint=True) would "
            "say that of them, too. Leave it out: the ε then add up. Or merge files that hold one table each."
        )


def check_same_plan(first: str, base: Release, name: str, release: Release) -> None:
    """Counts may be added only if every one of them answers the same question."""
    found = _setting_differences(base, release, ("algorithm", "vote", "parameters", "chosen"))
    found += _schema_differences(base, release)
    versions = [{part.counting for part in each.certificate.parts} for each in (base, release)]
    if len(versions[0] | versions[1]) > 1:
        found.append(f"how rows are read: version {sorted(versions[0])} and {sorted(versions[1])}")
    if not found and base.forest.trees != release.forest.trees:
        found = [_tree_difference(base, release)]
    if found and (_fitted(base) or _fitted(release)):
        schemas = _schema_differences(base, release)
        raise MergeError(
            f"{first} and {name}: these forests were fitted, each by itself, not counted in one plan, so that their counts do not answer "
            "the same questions and cannot be added. Use one plan for all: `hedgerow plan --save plan.json`, then `hedgerow count "
            "plan.json` on each table (in Python `public_plan` and `hedgerow.count`); or, for rows of one owner that come later, `hedgerow "
            "fit --batch` and `hedgerow update` (`partial_fit`)."
            + (f" Their schemas differ, too: {'; '.join(schemas[:5])}." if schemas else "")
        )
    if found:
        raise MergeError(
            f"{name} was not counted by the plan of {first}, so their counts cannot be added. What differs: {'; '.join(found[:5])}"
            + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
            + ". Count both from the same plan.json."
        )


def _fitted(release: Release) -> bool:
    """Whether a table of it was looked at for more than the counts of a plan, or declares its own number of rows: a `fit`."""
    counted = [part for part in release.certificate.parts if part.counted]
    declared = declared_rows(release.schema.rows)
    return any(declared in part.assumptions or any(event.query != "leaf_counts" for event in part.events) for part in counted)


def check_unitable(first: str, base: Release, name: str, release: Release) -> None:
    """Forests over different columns need the same target, and must be read in the same way."""
    if release.vote == ADDITIVE:
        raise MergeError(
            f"{name} ({release.algorithm}): its scores are made for all of its columns together, so that those of owners with different "
            "columns do not add up. Forests that vote can be united: `hedgerow fit --algorithm rdt` or `snr` at each owner."
        )
    found = _setting_differences(base, release, ("algorithm", "vote"))
    if base.noise_rule != release.noise_rule:
        found.append(f"noise rule {base.noise_rule} and {release.noise_rule}")
    found += _target_differences(base.schema.target, release.schema.target)
    if base.codebook.bins != release.codebook.bins:
        found.append(f"{base.codebook.bins} and {release.codebook.bins} bins")
    if found:
        raise MergeError(f"{name} cannot be united with {first}. What differs: {'; '.join(found)}.")


def united_schema(members: Sequence[tuple[str, Schema, tuple[str, ...]]]) -> Schema:
    """All columns of all members; one that several have must be declared in the same way."""
    found: dict[str, tuple[str, Categorical | Numeric]] = {}
    whose: dict[frozenset[str], str] = {}
    for name, schema, columns in members:
        if frozenset(columns) in whose:
            raise MergeError(
                f"{name} and {whose[frozenset(columns)]} have the same columns ({', '.join(columns[:5])}). To add the rows of owners with "
                "the same columns, merge without --columns."
            )
        whose[frozenset(columns)] = name
        for attribute in schema.attributes:
            if attribute.name not in columns:
                continue
            before = found.setdefault(attribute.name, (name, attribute))
            if _declared(before[1]) != _declared(attribute):
                raise MergeError(f"{name} and {before[0]} declare the column {attribute.name!r} differently. Agree on one declaration.")
    targets = [schema.target for _, schema, _ in members]
    target = next((target for target in targets if target.unreviewed), targets[0])
    if target.name in found:
        raise MergeError(f"the target {target.name!r} is an attribute of {found[target.name][0]}.")
    rows = {schema.rows for _, schema, _ in members}
    units = {(schema.person, schema.rows_per_person) for _, schema, _ in members}
    person, rows_per_person = units.pop() if len(units) == 1 else (None, None)  # else each table of the certificate has its own
    attributes = [attribute for _, attribute in found.values()]
    return Schema(attributes, target, rows.pop() if len(rows) == 1 else None, person=person, rows_per_person=rows_per_person)


class Tables:
    """The counted tables of all releases so far: none may be counted twice.

    batches:  an owner may come again
    disjoint: whoever merges states that no person is in two of them
    """

    def __init__(self, batches: bool, disjoint: bool = False) -> None:
        self.batches, self.disjoint = batches, disjoint
        self._signed: list[tuple[str, Part, frozenset[str]]] = []
        self._from: dict[tuple[str, ...], str] = {}
        self._owners: dict[str, str] = {}
        self._noise: dict[bytes, str] = {}

    def add(self, name: str, release: Release) -> None:
        counted = [part for part in release.certificate.parts if part.counted]
        # One batch may be counted on several sets of columns: it is known by its name and by those.
        known_as = {part.key: (*part.key, *release.forest.ensembles[part.ensemble].columns) for part in counted}
        owners_before = dict(self._owners)
        for part in counted:
            if known_as[part.key] in self._from:
                raise MergeError(
                    f"{name}: the table {part.name} is in {self._from[known_as[part.key]]} already. The same rows cannot be counted twice: "
                    "leave one out."
                )
            again = next((owner for owner in part.owners if owner in owners_before), None)
            if not self.batches and again is not None:
                raise MergeError(
                    f"{name}: its owner {again!r} is in {owners_before[again]} already. Leave one out; if it is another batch of "
                    "the same owner, add --batches (batches=True); if two owners have chosen the same name, let one of them count again "
                    "with another."
                )
        if not self.batches:
            self._check_signers(name, release, counted)
        for part in counted:
            self._from[known_as[part.key]] = name
            for owner in part.owners:
                self._owners.setdefault(owner, name)
        self._check_copy(name, release)

    def _check_signers(self, name: str, release: Release, counted: Sequence[Part]) -> None:
        """One key is one owner, whatever it is called: its tables are not taken as those of two owners with other persons.

        The keys on a file of one table are its owner's; of tables that were merged those that were recorded then.
        """
        fresh = frozenset(signature.key for signature in release.signatures) if len(counted) == 1 else frozenset()
        signed = [(name, part, frozenset(part.signed_by) or fresh) for part in counted]
        for _, part, keys in signed:
            for other, before, known in self._signed:
                one_owner = keys and known and (keys <= known or known <= keys)
                if one_owner and part.owners != before.owners and (self.disjoint or (part.disjoint and before.disjoint)):
                    raise MergeError(
                        f"{name}: it is signed with the key of {other}, under another owner's name: {' + '.join(part.owners)!r}, and "
                        f"{' + '.join(before.owners)!r} there. One key is one owner. If it is the same table, leave one out; if it has "
                        "rows of other persons, add --batches (batches=True). Count under one name from now on: `hedgerow count --owner`."
                    )
        self._signed += [each for each in signed if each[2]]

    def _check_copy(self, name: str, release: Release) -> None:
        counts = release.forest.counts
        if min(release.forest.tree_noise_sd) < 1 or sum(each.size for each in counts) < _ENOUGH:
            return
        digest = hashlib.blake2b()
        for each in counts:
            digest.update(each.tobytes())
        twin = self._noise.get(digest.digest())
        self._noise[digest.digest()] = name
        if twin is not None:
            raise MergeError(f"{name} holds the very counts of {twin}, noise and all: it is a copy under another name. Leave one out.")


# ---------------------------------------------------------------- in words


def _setting_differences(base: Release, release: Release, names: Sequence[str]) -> list[str]:
    found = []
    for name in names:
        a, b = getattr(base, name), getattr(release, name)
        if a == b:
            continue
        if isinstance(a, dict):
            keys = sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))
            found += [f"{key}: {_short(a.get(key))} and {_short(b.get(key))}" for key in keys]
        else:
            found.append(f"{name}: {_short(a)} and {_short(b)}")
    return found


def _schema_differences(base: Release, release: Release) -> list[str]:
    a, b = base.schema, release.schema
    found = _target_differences(a.target, b.target)
    mine, theirs = {x.name: x for x in a.attributes}, {x.name: x for x in b.attributes}
    if extra := [name for name in mine if name not in theirs]:
        found.append(f"the attributes {', '.join(extra[:5])} are in the first only")
    if extra := [name for name in theirs if name not in mine]:
        found.append(f"the attributes {', '.join(extra[:5])} are in the second only")
    if mine.keys() == theirs.keys():
        if a.names != b.names:
            found.append("the order of the attributes")
        found += [f"the attribute {name!r} is declared differently" for name in mine if _declared(mine[name]) != _declared(theirs[name])]
    if (a.person, a.k) != (b.person, b.k):
        found.append(f"what one person is: {_unit(a)} and {_unit(b)}")
    if a.rows != b.rows:
        found.append(f"rows planned for: {a.rows} and {b.rows}")
    if base.codebook.bins != release.codebook.bins:
        found.append(f"bins: {base.codebook.bins} and {release.codebook.bins}")
    return found


def _target_differences(a: Target, b: Target) -> list[str]:
    if a.name != b.name:
        return [f"the target: {a.name!r} and {b.name!r}"]
    if _declared(replace(a, unreviewed=False)) != _declared(replace(b, unreviewed=False)):
        return [f"the classes: {_short(', '.join(map(repr, a.classes)))} and {_short(', '.join(map(repr, b.classes)))}"]
    return [] if a.unreviewed == b.unreviewed else ["the target is reviewed in one and not in the other"]


def _unit(schema: Schema) -> str:
    return "not told by a column" if schema.person is None else f"a value of {schema.person!r}, at most {schema.k} rows of each"


def _tree_difference(base: Release, release: Release) -> str:
    a, b = base.forest.trees, release.forest.trees
    if len(a) != len(b):
        return f"{len(a)} trees and {len(b)} trees"
    different = [number for number, (x, y) in enumerate(zip(a, b, strict=True), start=1) if x != y]
    why = "each fit chose its own questions" if base.vote == ADDITIVE else "another seed?"
    return f"the structure of {len(different)} of {len(a)} trees, the first of them tree {different[0]} ({why})"


def _declared(entry: Categorical | Numeric | Target) -> bytes:
    """A declaration as text: Python takes 1 for True, and they are not the same value here."""
    return msgspec.json.encode(entry)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"
